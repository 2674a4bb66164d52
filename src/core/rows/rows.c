// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "rows.h"

#include "base/choice.h"
#include "base/std.h"

/* The label of a group under a key, in memory of the caller. */
typedef char *group_labeler(const struct group *g, enum label l, cgroup_namer name, void *arg);

static group_labeler cgroup_label, pid_label, tid_label, comm_label, cpu_label, ccx_label,
	node_label, mem_node_label, distance_label, mode_label, slab_label, symbol_label;

#define COUNTED(id, name, by, label, flags, get, print, meaning) { name, by, flags, meaning },
#define RECORDED(id, name, flags, get, print, meaning)		 { name, 0, flags, meaning },
#define LABELER(id, name, by, label, ...)			 label,

const struct label_info label_info[LABEL_ALL] = { LABEL_TABLE(COUNTED)
							  RECORDED_KEY_TABLE(RECORDED) };
static group_labeler *const labelers[] = { LABEL_TABLE(LABELER) };

/* A row during sorting. */
struct draft {
	struct row row;
	__u64 group_samples;
};

const char *label_name(enum label l)
{
	return label_info[l].name;
}

int labels_parse(const char *text, unsigned int *labels, struct label_order *order, struct err *err)
{
	const struct choices keys = { "--by", "key", label_name, LABEL_N };
	unsigned int list[LABEL_N], n;
	int ret = choice_list_parse(&keys, text, list, &n, err);

	if (ret)
		return ret;
	*labels = 0;
	for (unsigned int i = 0; i < n; i++) {
		order->at[i] = list[i];
		*labels |= 1U << list[i];
	}
	if (*labels >> LABEL_SLAB & 1 && *labels >> LABEL_COMM & 1)
		return err_set(
			err, -EINVAL,
			"--by slab,comm: counters have room for one of them: leave one out, or "
			"use ibscope report --by slab,comm with a recording");
	for (unsigned int l = 0; l < LABEL_N; l++)
		if (!(*labels >> l & 1))
			order->at[n++] = l;
	return 0;
}

__u32 labels_by(unsigned int labels)
{
	__u32 by = 0;

	for (int l = 0; l < LABEL_N; l++)
		if (labels >> l & 1)
			by |= label_info[l].by;
	return by;
}

const char *series_label(const struct series *s, enum label l)
{
	switch (l) {
	case LABEL_SRC:
		return src_name(s->src);
	case LABEL_OP:
		return op_kind_name(s->op);
	case LABEL_FETCH:
		return fetch_class_name(s->src);
	default:
		return itlb_name(s->op);
	}
}

int label_check_event(enum label l, bool fetch, struct err *err)
{
	if (!(label_info[l].flags & (fetch ? KEY_OF_OP : KEY_OF_FETCH)))
		return 0;
	return err_set(err, -EINVAL, "--by %s: samples of %s do not have that; use %s",
		       label_name(l), fetch ? "ibs_fetch" : "ibs_op",
		       fetch ? "fetch or itlb" : "src or op, or -e ibs_fetch//");
}

int labels_counted(unsigned int labels, bool fetch, struct err *err)
{
	int ret = 0;

	for (int l = 0; l < LABEL_N && !ret; l++)
		if (labels >> l & 1)
			ret = label_check_event(l, fetch, err);
	if (ret || !(labels >> LABEL_SYMBOL & 1))
		return ret;
	return err_set(err, -EINVAL,
		       "--by symbol: only recordings have addresses of ops, counters do not: use "
		       "ibscope record, then ibscope report --by symbol or ibscope top -i FILE "
		       "--by symbol");
}

unsigned int labels_of_by(__u32 by)
{
	unsigned int labels = 0;

	for (int l = 0; l < LABEL_N; l++)
		if (by & label_info[l].by & ~labels_by(labels))
			labels |= 1U << l;
	return labels;
}

int labels_known(unsigned int labels, __u32 by, struct err *err)
{
	char known[256] = "";
	size_t n = 0;

	for (int l = 0; l < LABEL_N; l++)
		if (label_info[l].by && !(label_info[l].by & ~by))
			n += snprintf(known + n, sizeof(known) - n, "%s%s", n ? ", " : "",
				      label_info[l].name);
	for (int l = 0; l < LABEL_N; l++)
		if (labels >> l & 1 && label_info[l].by & ~by)
			return err_set(err, -EINVAL, "--by %s: not counted; available keys: %s",
				       label_info[l].name, n ? known : "src, op");
	return 0;
}

/* Recordings may lack the number (replay.h). */
static char *number_label(__u32 number)
{
	char buf[32];

	snprintf(buf, sizeof(buf), "%u", number);
	return xstrdup(number == ~0U ? "unknown" : buf);
}

static struct node_distances distances;
static bool has_distances;

void rows_distances(const struct node_distances *d)
{
	distances = *d;
	has_distances = true;
}

static char *distance_text(const struct ibs_group_key *key)
{
	if (!has_distances)
		node_distances_read("", &distances);
	has_distances = true;
	return number_label(node_distance(&distances, key->node, key->mem_node - 1U) ?: ~0U);
}

static char *cgroup_label(const struct group *g, enum label l, cgroup_namer name, void *arg)
{
	const char *known = name ? name(arg, g->key.cgroup_id, l) : NULL;

	return known ? xstrdup(known) : xasprintf("#%llu", (unsigned long long)g->key.cgroup_id);
}

static char *symbol_label(const struct group *g, enum label l, cgroup_namer name, void *arg)
{
	const char *known = name ? name(arg, g->symbol, l) : NULL;

	return xstrdup(known ?: "[unknown]");
}

static char *slab_label(const struct group *g, enum label l, cgroup_namer name, void *arg)
{
	const char *known = g->key.slab == IBS_KEY_SLAB_NONE	  ? "[no slab]"
			    : g->key.slab == IBS_KEY_SLAB_USER	  ? "[user]"
			    : g->key.slab == IBS_KEY_SLAB_UNKNOWN ? "unknown"
			    : name				  ? name(arg, g->key.slab, l)
								  : NULL;

	return xstrdup(known ?: "[gone]");
}

/* Labels that are in the key itself. */
#define KEY_LABEL(name, text)                                                                 \
	static char *name(const struct group *g, enum label l, cgroup_namer namer, void *arg) \
	{                                                                                     \
		(void)l;                                                                      \
		(void)namer;                                                                  \
		(void)arg;                                                                    \
		return text;                                                                  \
	}

KEY_LABEL(pid_label, number_label(g->key.tgid))
KEY_LABEL(tid_label, number_label(g->key.tid))
KEY_LABEL(comm_label, xstrndup(g->key.comm, sizeof(g->key.comm)))
KEY_LABEL(cpu_label, number_label(g->key.cpu))
KEY_LABEL(ccx_label, number_label(g->key.complex))
KEY_LABEL(node_label, number_label(g->key.node))
KEY_LABEL(mem_node_label, number_label(g->key.mem_node - 1U))
KEY_LABEL(distance_label, distance_text(&g->key))
KEY_LABEL(mode_label, xstrdup(mode_name(g->key.mode)))

char *group_label(const struct group *g, enum label l, cgroup_namer name, void *arg)
{
	if (g->other && label_info[l].by)
		return xstrdup("other");
	return labelers[l](g, l, name, arg);
}

static void label_row(struct row *r, const struct group *g, const struct series *s,
		      unsigned int labels, cgroup_namer name, void *arg)
{
	for (int l = 0; l < LABEL_N; l++) {
		if (!(labels >> l & 1))
			continue;
		if (LABELS_PAIR >> l & 1)
			r->label[l] = xstrdup(series_label(s, l));
		else
			r->label[l] = group_label(g, l, name, arg);
	}
	r->series.op = s->op;
	r->series.src = s->src;
	series_add(&r->series, s);
}

static void row_free(struct row *r)
{
	for (int l = 0; l < LABEL_N; l++)
		free(r->label[l]);
	series_free(&r->series);
}

static int compare_labels(const struct row *a, const struct row *b, int from, int to)
{
	for (int l = from; l < to; l++) {
		int c = a->label[l] ? strcmp(a->label[l], b->label[l]) : 0;

		if (c)
			return c;
	}
	return 0;
}

/* Order by group, then in the order of the tables rather than alphabetically. */
static int compare_rows(const void *pa, const void *pb)
{
	const struct row *a = pa, *b = pb;
	int c = compare_labels(a, b, 0, LABEL_SRC);

	if (c)
		return c;
	if ((a->label[LABEL_SRC] || a->label[LABEL_FETCH]) && a->series.src != b->series.src)
		return a->series.src < b->series.src ? -1 : 1;
	if ((a->label[LABEL_OP] || a->label[LABEL_ITLB]) && a->series.op != b->series.op)
		return a->series.op < b->series.op ? -1 : 1;
	return 0;
}

static int compare_drafts(const void *pa, const void *pb)
{
	const struct draft *a = pa, *b = pb;

	if (a->group_samples != b->group_samples)
		return a->group_samples > b->group_samples ? -1 : 1;
	return compare_rows(&a->row, &b->row);
}

/* Merge equal neighbours. */
static void merge_rows(struct rows *r)
{
	size_t n = 0;

	for (size_t i = 0; i < r->n; i++) {
		if (n && !compare_rows(&r->row[n - 1], &r->row[i])) {
			series_add(&r->row[n - 1].series, &r->row[i].series);
			row_free(&r->row[i]);
		} else {
			r->row[n++] = r->row[i];
		}
	}
	r->n = n;
}

static void order_by_samples(struct rows *r)
{
	struct draft *d = xcalloc(r->n, sizeof(*d));
	size_t first = 0;

	for (size_t i = 0; i < r->n; i++)
		d[i].row = r->row[i];
	for (size_t i = 0; i <= r->n; i++) {
		__u64 sum = 0;

		if (i < r->n && !compare_labels(&r->row[first], &r->row[i], 0, LABEL_SRC))
			continue;
		for (size_t j = first; j < i; j++)
			sum += r->row[j].series.samples;
		for (size_t j = first; j < i; j++)
			d[j].group_samples = sum;
		first = i;
	}
	qsort(d, r->n, sizeof(*d), compare_drafts);
	for (size_t i = 0; i < r->n; i++)
		r->row[i] = d[i].row;
	free(d);
}

void rows_build(const struct snapshot *s, unsigned int labels, cgroup_namer name, void *arg,
		struct rows *out)
{
	size_t max = 0;

	memset(out, 0, sizeof(*out));
	for (size_t i = 0; i < s->n_groups; i++)
		max += s->groups[i].n_series;
	out->row = xcalloc(max, sizeof(*out->row));
	for (size_t i = 0; i < s->n_groups; i++) {
		const struct group *g = &s->groups[i];

		for (size_t j = 0; j < g->n_series; j++)
			label_row(&out->row[out->n++], g, &g->series[j], labels, name, arg);
	}
	qsort(out->row, out->n, sizeof(*out->row), compare_rows);
	merge_rows(out);
	order_by_samples(out);
}

void rows_free(struct rows *r)
{
	for (size_t i = 0; i < r->n; i++)
		row_free(&r->row[i]);
	free(r->row);
	memset(r, 0, sizeof(*r));
}
