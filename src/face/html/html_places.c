// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "html_places.h"

/* CPU and L3 of one host; L3s have numbers above those of all CPUs. */
#define L3_KEY		   (1u << 31)
#define PLACE_KEY(host, n) ((__u64)(host) << 32 | (n))

__u16 html_places_cpu(struct html_places *p, __u32 cpu)
{
	const struct trace_topology *t = p->topology;
	bool known = t && cpu < t->n;
	__u32 number = u64_map_get(&p->numbers, PLACE_KEY(p->host, cpu));

	if (number != U64_MAP_NONE)
		return number;
	if (p->n >= HTML_PLACES_MAX)
		return HTML_NO_CPU;
	array_reserve(p->place, p->room, p->n + 1);
	u64_map_put(&p->numbers, PLACE_KEY(p->host, cpu), p->n);
	p->place[p->n] =
		(struct html_place){ p->host, cpu, known && t->has_sockets ? t->socket[cpu] : -1,
				     known ? t->node[cpu] : -1, known ? t->ccx[cpu] : -1 };
	if (known &&
	    u64_map_get(&p->numbers, PLACE_KEY(p->host, L3_KEY | t->ccx[cpu])) == U64_MAP_NONE)
		u64_map_put(&p->numbers, PLACE_KEY(p->host, L3_KEY | t->ccx[cpu]), p->n);
	return p->n++;
}

__u16 html_places_l3(const struct html_places *p, __u16 place)
{
	const struct html_place *at = &p->place[place];

	if (place == HTML_NO_CPU || at->l3 < 0)
		return place;
	return u64_map_get(&p->numbers, PLACE_KEY(at->host, L3_KEY | at->l3));
}

void html_places_host(struct html_places *p, const struct trace_info *info)
{
	p->host = intern_get(&p->hosts, info->host);
	p->topology = info->topology;
	/* show all CPUs of a known machine, else only those with samples */
	for (unsigned int cpu = 0; p->topology && cpu < p->topology->n; cpu++)
		html_places_cpu(p, cpu);
}

static void put_level(struct json_writer *w, const char *name, int number)
{
	if (number >= 0)
		json_put_u64(w, name, number);
}

void html_places_write(const struct html_places *p, struct json_writer *w)
{
	json_begin_array(w, "hosts");
	for (size_t i = 0; i < p->hosts.n; i++)
		json_put_text(w, NULL, intern_text(&p->hosts, i));
	json_end(w);
	json_begin_array(w, "cpus");
	for (size_t i = 0; i < p->n; i++) {
		const struct html_place *at = &p->place[i];

		json_begin_object(w, NULL);
		json_put_u64(w, "host", at->host);
		json_put_u64(w, "cpu", at->cpu);
		put_level(w, "socket", at->socket);
		put_level(w, "node", at->node);
		put_level(w, "l3", at->l3);
		json_end(w);
	}
	json_end(w);
}

void html_places_free(struct html_places *p)
{
	intern_free(&p->hosts);
	u64_map_free(&p->numbers);
	free(p->place);
}
