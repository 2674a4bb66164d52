// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Names that rows refer to by number: rank, role and region of a sample, and the site of its data, which is the code that
 * allocated it, in recordings with allocations.
 */
#include "html_facts.h"

#include "base/array.h"
#include "heap/heap_blocks.h"

struct html_bytes {
	__u64 least, most; /* 0: not of blocks */
};

static __u16 name_of(struct html_report *r, enum html_name kind, const char *text)
{
	struct intern *names = &r->names[kind];
	__u32 number = intern_find(names, text);

	if (number != INTERN_NONE)
		return number;
	return intern_get(names, names->n < HTML_NAMES_MAX ? text : "[others]");
}

static __u16 number_of(struct html_report *r, const char *text)
{
	const __u32 number = name_of(r, HTML_SITE, text);

	array_reserve_zero(r->block_bytes, r->room_block_bytes, number + 1u);
	return number;
}

/* One number for all blocks of a stack, as long as the maps of its process are the same. */
static __u16 site_of_block(struct html_report *r, const struct heap_block *b)
{
	const __u64 key = words_hash(
		(const __u64[]){ (uintptr_t)b->stack, tasks_maps(r->opts.tasks, b->tgid, b->time) },
		2);
	__u32 site = u64_map_get(&r->site_of, key);
	char text[REPORT_SITE];

	if (site != U64_MAP_NONE)
		return site;
	report_site(r->opts.symbols, r->opts.tasks, b, text, sizeof(text));
	site = number_of(r, text);
	u64_map_put(&r->site_of, key, site);
	return site;
}

/* The allocation that a sample accessed, or what its data is instead. */
static __u16 site_of(struct html_report *r, const struct trace_event *ev)
{
	struct html_bytes *bytes;
	char text[REPORT_SITE];
	struct heap_block b;
	__u16 site;

	if (!tasks_heap(r->opts.tasks))
		return 0;
	if (!report_sample_block(r->opts.symbols, r->opts.tasks, ev, &b, text, sizeof(text)))
		return number_of(r, text);
	site = site_of_block(r, &b);
	bytes = &r->block_bytes[site];
	bytes->least = bytes->least && bytes->least < b.size ? bytes->least : b.size;
	bytes->most = bytes->most > b.size ? bytes->most : b.size;
	return site;
}

void html_names_add(struct html_report *r, const struct trace_event *ev, struct html_key *key)
{
	const struct trace_sample *s = &ev->sample;
	const char *region = s->has_task ? tasks_region(r->opts.tasks, s->tid, ev->time) : NULL;
	char text[512];
	__u32 rank;

	if (!region && report_omp_region(r->opts.tasks, r->opts.symbols, ev, text, sizeof(text)))
		region = text;
	if (region)
		key->region = name_of(r, HTML_REGION, region);
	if ((r->ranked || region) && report_role(r->opts.tasks, ev, text, sizeof(text)))
		key->role = name_of(r, HTML_ROLE, text);
	if (s->has_task && tasks_rank(r->opts.tasks, s->tgid, ev->time, &rank)) {
		snprintf(text, sizeof(text), "%u", rank);
		key->rank = name_of(r, HTML_RANK, text);
	}
	key->site = site_of(r, ev);
}

void html_names_write(const struct html_report *r, struct json_writer *w)
{
	static const char *const kinds[HTML_NAMES] = { [HTML_RANK] = "rank",
						       [HTML_ROLE] = "role",
						       [HTML_REGION] = "region",
						       [HTML_SITE] = "site" };

	json_begin_object(w, "names");
	for (unsigned int k = 0; k < HTML_NAMES; k++) {
		json_begin_array(w, kinds[k]);
		for (size_t i = 0; i < r->names[k].n; i++)
			json_put_text(w, NULL, intern_text(&r->names[k], i));
		json_end(w);
	}
	json_end(w);
	json_begin_array(w, "block_bytes");
	for (size_t i = 0; i < r->names[HTML_SITE].n; i++) {
		const bool known = i < r->room_block_bytes;

		json_put_u64(w, NULL, known ? r->block_bytes[i].least : 0);
		json_put_u64(w, NULL, known ? r->block_bytes[i].most : 0);
	}
	json_end(w);
}
