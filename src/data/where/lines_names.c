// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "lines_names.h"

#include "cgroup/container.h"
#include "heap/heap_blocks.h"
#include "base/screen.h"
#include "report/report.h"

#include <stdio.h>

static const char *container_of(struct line_namer *n, __u64 cgroup_id)
{
	__u32 i = u64_map_get(&n->containers, cgroup_id);
	char buf[CONTAINER_LABEL];
	struct container c;
	const char *text;

	if (i == U64_MAP_NONE) {
		text = report_cgroup_text(n->tasks, LABEL_CONTAINER, cgroup_id, &c, buf);
		i = intern_get(&n->texts, text);
		u64_map_put(&n->containers, cgroup_id, i);
	}
	return intern_text(&n->texts, i);
}

void line_namer_place(const struct line_namer *n, const struct line_access *a,
		      struct data_place *out)
{
	*out = (struct data_place){ .kind = DATA_NO_ADDRESS };
	if (a->addr && (a->has & LINE_HAS_TASK || a->addr >> 63))
		symbols_data(n->symbols, n->tasks, a->tgid, a->addr, a->first, out);
}

/* Blocks with one stack have one site, as long as the maps of their process are the same. */
static const char *site_of(struct line_namer *n, const struct heap_block *b)
{
	const __u64 key = words_hash(
		(const __u64[]){ (uintptr_t)b->stack, tasks_maps(n->tasks, b->tgid, b->time) }, 2);
	__u32 i = u64_map_get(&n->sites, key);
	char text[REPORT_SITE];

	if (i == U64_MAP_NONE) {
		report_site(n->symbols, n->tasks, b, text, sizeof(text));
		i = intern_get(&n->texts, text);
		u64_map_put(&n->sites, key, i);
	}
	return intern_text(&n->texts, i);
}

static const char *allocation_of(struct line_namer *n, const struct line_access *a,
				 struct data_place *place, struct heap_block *b)
{
	line_namer_place(n, a, place);
	return report_block(n->tasks, a->tgid, a->addr, a->first, place, b) ? site_of(n, b) : NULL;
}

bool line_namer_block(struct line_namer *n, const struct line *l, struct heap_block *out,
		      const char **site)
{
	const struct line_access *most = NULL;
	struct data_place place;

	for (size_t i = 0; i < l->n_access; i++)
		if (!most || l->access[i].samples > most->samples)
			most = &l->access[i];
	*site = most ? allocation_of(n, most, &place, out) : NULL;
	return *site;
}

static const char *variable_of(struct line_namer *n, const struct line_access *a, bool field,
			       const char **mangled)
{
	char buf[4096], with[4096 + 32];
	struct data_place place;
	struct heap_block b;
	const char *name = allocation_of(n, a, &place, &b);
	const bool allocated = name;

	if (allocated) {
		place.has_offset = true;
		place.offset = a->addr - b.addr;
	} else {
		name = data_place_label(&place, buf, sizeof(buf));
		*mangled = place.mangled;
	}
	if (name && field && place.has_offset && place.offset) {
		snprintf(with, sizeof(with), allocated ? "%.4000s + %llu" : "%.4000s+%llu", name,
			 (unsigned long long)place.offset);
		name = with;
	}
	return name ? intern_text(&n->texts, intern_get(&n->texts, name)) : NULL;
}

static void find_function(const struct line_namer *n, const struct line_access *a,
			  struct symbol *out)
{
	symbols_find(n->symbols, n->tasks, a->tgid, a->ip, a->first, a->has & LINE_KERNEL, false,
		     out);
}

enum code_kind line_namer_code(struct line_namer *n, const struct line_access *a)
{
	const __u64 state = a->has & LINE_KERNEL ? 0 : tasks_state(n->tasks);
	const __u32 maps = state ? tasks_maps(n->tasks, a->tgid, a->first) : 0;
	const struct chain_place place = { .state = maps ? state : 0,
					   .addr = a->ip,
					   .tgid = a->tgid,
					   .maps = maps,
					   .changes = symbols_changes(n->symbols) };
	enum code_kind kind;
	struct symbol sym;
	__u32 number;

	if (!(a->has & LINE_HAS_IP))
		return report_code_kind(false, &sym);
	if (chain_memo_get(&n->named, &place, &number))
		return CODE_NAMED;
	find_function(n, a, &sym);
	kind = report_code_kind(true, &sym);
	if (kind == CODE_NAMED)
		chain_memo_put(&n->named, &place, 0);
	return kind;
}

void line_namer_expect(const struct line_namer *n, const struct line_access *a, bool near)
{
	if (!near)
		chain_memo_prefetch(&n->named, a->ip, a->tgid, 0);
	symbols_data_expect(n->symbols, a->tgid, a->addr, near);
}

static const char *keep(struct line_namer *n, const char *text)
{
	return text ? intern_text(&n->texts, intern_get(&n->texts, text)) : NULL;
}

static void function_of(struct line_namer *n, const struct line_access *a, struct line_label *out)
{
	const struct inlined *f;
	struct symbol sym;

	if (!(a->has & LINE_HAS_IP))
		return;
	find_function(n, a, &sym);
	f = symbols_inlined(n->symbols, &sym);
	if (!f) {
		out->name = sym.name;
		out->mangled = sym.mangled;
		return;
	}
	out->name = keep(n, f->function.name);
	out->mangled = keep(n, f->function.mangled);
	out->into = keep(n, f->into ? f->into->function.name : sym.name);
	out->into_mangled = keep(n, f->into ? f->into->function.mangled : sym.mangled);
	out->code = sym.name;
}

void line_namer_of(struct line_namer *n, enum line_name what, const struct line_access *a,
		   struct line_label *out)
{
	*out = (struct line_label){ 0 };
	switch (what) {
	case LINE_FUNCTION:
		function_of(n, a, out);
		break;
	case LINE_FIELD:
	case LINE_VARIABLE:
		out->name = variable_of(n, a, what == LINE_FIELD, &out->mangled);
		break;
	case LINE_COMM:
		if (a->has & LINE_HAS_TASK)
			out->name = tasks_comm(n->tasks, a->tgid, a->tid, a->first);
		break;
	default:
		out->name = a->cgroup_id ? container_of(n, a->cgroup_id) : NULL;
	}
}

const char *line_label_text(struct line_namer *n, const struct line_label *l, bool mangled)
{
	const char *name = (mangled ? l->mangled : NULL) ?: l->name, *kept;
	char *text;

	if (!l->into)
		return name;
	text = xasprintf("%s%s%s)", name, SCREEN_INLINED,
			 (mangled ? l->into_mangled : NULL) ?: l->into);
	kept = keep(n, text);
	free(text);
	return kept;
}

/* NULL is last. */
static int compare_names(const char *a, const char *b)
{
	return a == b ? 0 : !a ? 1 : !b ? -1 : strcmp(a, b);
}

int line_label_compare(const struct line_label *a, const struct line_label *b)
{
	return compare_names(a->name, b->name) ?: compare_names(a->mangled, b->mangled)
	       ?: compare_names(a->into, b->into)
	       ?: compare_names(a->into_mangled, b->into_mangled);
}

void line_namer_free(struct line_namer *n)
{
	intern_free(&n->texts);
	u64_map_free(&n->containers);
	u64_map_free(&n->sites);
	chain_memo_free(&n->named);
}

static int compare_tallied(const void *pa, const void *pb)
{
	const struct line_tallied *a = pa, *b = pb;

	if (a->samples != b->samples)
		return a->samples > b->samples ? -1 : 1;
	return line_label_compare(&a->label, &b->label);
}

void line_tally(struct line_namer *n, const struct line *l, enum line_name what, unsigned int kinds,
		unsigned int slots, struct line_tally *out)
{
	struct u64_map of = { 0 };

	*out = (struct line_tally){ 0 };
	for (size_t i = 0; i < l->n_access; i++) {
		const struct line_access *a = &l->access[i];
		struct line_label label;
		__u64 key;
		__u32 k;

		if (!(a->kind & kinds) || (~slots && !(line_access_slots(a) & slots)))
			continue;
		line_namer_of(n, what, a, &label);
		if (!label.name)
			continue;
		key = words_hash((const __u64[]){ (uintptr_t)label.name, (uintptr_t)label.mangled,
						  (uintptr_t)label.into,
						  (uintptr_t)label.into_mangled },
				 4);
		k = u64_map_get(&of, key);
		if (k == U64_MAP_NONE) {
			k = out->n++;
			array_reserve(out->v, out->room, out->n);
			out->v[k] = (struct line_tallied){ .label = label };
			u64_map_put(&of, key, k);
		}
		out->v[k].samples += a->samples;
	}
	u64_map_free(&of);
	if (out->n)
		qsort(out->v, out->n, sizeof(*out->v), compare_tallied);
}
