// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "reading_neighbours.h"
#include "base/text.h"
#include "base/utf8.h"
#include "reading_text.h"

#include <math.h>
#include <string.h>

#define JUDGED_NS 10000000000ULL /* what is older is unknown now */

static bool take_name(struct neighbour_name *to, const struct ibs_slot_name *n)
{
	snprintf(to->name_space, sizeof(to->name_space), "%.*s", (int)sizeof(n->name_space) - 1,
		 n->name_space);
	snprintf(to->pod, sizeof(to->pod), "%.*s", (int)sizeof(n->pod) - 1, n->pod);
	snprintf(to->container, sizeof(to->container), "%.*s", (int)sizeof(n->container) - 1,
		 n->container);
	return *to->container;
}

void neighbours_read(struct reading_neighbours *to, __u64 time_ns, const struct ibs_neighbours *all,
		     neighbour_name_cb *name, const void *arg)
{
	*to = (struct reading_neighbours){ .known = all->time_ns &&
						    time_ns < all->time_ns + JUDGED_NS,
					   .time_ns = time_ns,
					   .pairs = all->pairs,
					   .judged = all->judged };
	for (__u32 i = 0; to->known && i < all->n && i < IBS_NEIGHBOURS; i++) {
		const struct ibs_neighbour *p = &all->pair[i];
		struct ibs_slot_name victim, suspect;

		name(arg,
		     &(struct group){ .slot = p->victim_slot, .key.cgroup_id = p->victim_cgroup },
		     &victim);
		name(arg,
		     &(struct group){ .slot = p->suspect_slot, .key.cgroup_id = p->suspect_cgroup },
		     &suspect);
		if (!take_name(&to->victim[to->n], &victim) ||
		    !take_name(&to->suspect[to->n], &suspect))
			continue;
		to->use[to->n] = all->use[i];
		to->pair[to->n++] = *p;
	}
}

static double ago_s(const struct reading_neighbours *all, __u64 ns)
{
	return all->time_ns > ns ? (all->time_ns - ns) / 1e9 : 0;
}

static void print_name(FILE *f, const struct neighbour_name *n)
{
	utf8_put(f, n->pod);
	fputs(*n->pod ? "/" : "", f);
	utf8_put(f, n->container);
}

static void print_use(FILE *f, const struct ibs_neighbour_use *u)
{
	const bool traffic = u->known & IBS_NEIGHBOUR_TRAFFIC;

	if (!u->known)
		return;
	fprintf(f, "    the suspect had up to ");
	if (traffic)
		fprintf(f, "%.1f GB/s of memory traffic", u->traffic / 1e9);
	if (u->known & IBS_NEIGHBOUR_L3)
		fprintf(f, "%s%.1f MiB of the L3", traffic ? ", " : "", u->l3 / (1 << 20));
	fprintf(f, " (resctrl)\n");
}

void neighbours_print(FILE *f, const struct reading_neighbours *all)
{
	fprintf(f, "neighbours: %u containers judged, %u %s\n", all->judged, all->pairs,
		all->pairs == 1 ? "pair" : "pairs");
	for (unsigned int i = 0; i < all->n; i++) {
		const struct ibs_neighbour *p = &all->pair[i];

		fprintf(f, "  ccx %u: ", p->complex);
		print_name(f, &all->victim[i]);
		fprintf(f, " is %.0f %% slower while ", 100 * neighbour_slowdown(p));
		print_name(f, &all->suspect[i]);
		fprintf(f, " is busy (%.0f %% of the accesses", 100 * p->share);
		fprintf(f, "; %u times busy, last named %.0f s ago)\n", p->runs,
			ago_s(all, p->last_ns));
		print_use(f, &all->use[i]);
	}
}

static void put_name(struct json_writer *w, const char *key, const struct neighbour_name *n)
{
	json_begin_object(w, key);
	collector_put_text(w, "namespace", n->name_space);
	collector_put_text(w, "pod", n->pod);
	collector_put_text(w, "container", n->container);
	json_end(w);
}

void neighbours_put(struct json_writer *w, const struct reading_neighbours *all)
{
	json_begin_object(w, "neighbours");
	json_put_u64(w, "judged", all->judged);
	json_put_u64(w, "named", all->pairs);
	json_begin_array(w, "pairs");
	for (unsigned int i = 0; i < all->n; i++) {
		const struct ibs_neighbour *p = &all->pair[i];

		json_begin_object(w, NULL);
		json_put_u64(w, "ccx", p->complex);
		put_name(w, "victim", &all->victim[i]);
		put_name(w, "suspect", &all->suspect[i]);
		json_put_double(w, "latency", p->latency);
		json_put_double(w, "baseline", p->baseline);
		json_put_double(w, "share", p->share);
		json_put_double(w, "correlation", p->correlation);
		json_put_u64(w, "lag", p->lag);
		json_put_u64(w, "runs", p->runs);
		json_put_u64(w, "windows_busy", p->busy);
		json_put_double(w, "chance", p->chance);
		json_put_double(w, "first_s", ago_s(all, p->first_ns));
		json_put_double(w, "last_s", ago_s(all, p->last_ns));
		if (all->use[i].known & IBS_NEIGHBOUR_TRAFFIC)
			json_put_double(w, "memory_traffic", all->use[i].traffic);
		if (all->use[i].known & IBS_NEIGHBOUR_L3)
			json_put_double(w, "l3_occupancy", all->use[i].l3);
		json_end(w);
	}
	json_end(w);
	json_end(w);
}
