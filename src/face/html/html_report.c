// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "html_report.h"

#include "html_facts.h"
#include "html_write.h"

#include "base/array.h"
#include "cgroup/container.h"
#include "report/report.h"
#include "table/table.h"
#include "where/lines_print.h"

#include <errno.h>
#include <ibscope/exposed.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define GROUPS_MAX	 65535u
#define GROUP_NAME	 8192
#define LINES_MAX	 200	    /* enough that they include lines of a selected container */
#define LINES_OF_SEVERAL 50	    /* of each recording */
#define ACCESSES_MAX	 (1u << 18) /* of lines; 40 MB */
#define REGISTERS_OF_SRC (1u << IBS_OP_DATA | 1u << IBS_OP_DATA2 | 1u << IBS_OP_DATA3)

struct html_report *html_report_new(const struct html_report_opts *opts)
{
	struct html_report *r = xcalloc(1, sizeof(*r));

	r->opts = *opts;
	r->n_nodes = 1; /* 0 is the root: no frame at all */
	r->same_period = true;
	r->rows.rows_max = opts->rows_max;
	r->hot_file = xmemopen(&r->hot_lines, &r->hot_size);
	r->hot_writer.f = r->hot_file;
	for (unsigned int i = 0; i < HTML_NAMES; i++)
		intern_get(&r->names[i], "");
	if (!opts->several)
		html_report_part(r, opts->info, opts->tasks, opts->symbols);
	return r;
}

void html_report_part(struct html_report *r, const struct trace_info *info,
		      const struct tasks *tasks, struct symbols *symbols)
{
	size_t ranks = 0;

	r->opts.info = info;
	r->opts.tasks = tasks;
	r->opts.symbols = symbols;
	u64_map_free(&r->thread_of); /* names of threads are the recording's */
	u64_map_free(&r->site_of);
	if (!tasks) /* all were added, or there are no samples */
		return;
	tasks_ranks(tasks, &ranks);
	r->ranked = ranks != 0;
	u64_map_free(&r->group_of); /* cgroup ids are valid for one machine only */
	html_places_host(&r->places, info);
	lines_free(r->lines);
	r->lines = lines_new(&(struct lines_opts){ .info = info,
						   .metric = IBS_METRIC_DC_MISS_LAT,
						   .most = r->opts.accesses_max ?: ACCESSES_MAX });
	if (!r->parts++) {
		r->clock = info->monotonic_ns;
		r->realtime = info->realtime_ns;
	}
	r->time_shift = 0;
	if (r->realtime && info->realtime_ns)
		r->time_shift = info->realtime_ns - r->realtime - (info->monotonic_ns - r->clock);
}

void html_report_free(struct html_report *r)
{
	if (!r)
		return;
	parallel_queue_free(&r->queue);
	html_rows_free(&r->rows);
	lines_free(r->lines);
	xmemclose(r->hot_file);
	free(r->hot_lines);
	intern_free(&r->frames);
	intern_free(&r->groups);
	u64_map_free(&r->group_of);
	free(r->group);
	u64_map_free(&r->node_of);
	u64_map_free(&r->thread_of);
	chain_memo_free(&r->memo);
	for (unsigned int i = 0; i < HTML_NAMES; i++)
		intern_free(&r->names[i]);
	u64_map_free(&r->site_of);
	free(r->block_bytes);
	html_places_free(&r->places);
	free(r->nodes);
	free(r);
}

/* Name a group as hist does: POD/CONTAINER, CONTAINER, or the cgroup. Return: the option that selects it, or NULL. */
static const char *name_group(const struct html_report *r, __u64 cgroup_id, char *buf, size_t size)
{
	char label[CONTAINER_LABEL], pod_label[CONTAINER_LABEL];
	struct task_cgroup cgroup;
	struct container_name name;
	struct container c;
	const char *container, *pod;

	if (!cgroup_id || !tasks_cgroup(r->opts.tasks, cgroup_id, &cgroup)) {
		snprintf(buf, size, cgroup_id ? "#%llu" : "[cgroup unknown]",
			 (unsigned long long)cgroup_id);
		return NULL;
	}
	name = (struct container_name){ cgroup.container, cgroup.pod, cgroup.ns };
	if (container_of_path(cgroup.path, NULL, &c) &&
	    *(container = container_label(&c, &name, label))) {
		pod = container_pod_label(&c, &name, pod_label);
		snprintf(buf, size, "%s%s%s", pod, *pod ? "/" : "", container);
		/* --container does not accept a pod without a name */
		return !*pod || *name.pod ? "--container" : NULL;
	}
	snprintf(buf, size, "%s", cgroup.path);
	container_cut_command(buf);
	return "--cgroup";
}

/* The number of a sample's group. */
static __u32 group_of(struct html_report *r, __u64 cgroup_id)
{
	__u32 group = u64_map_get(&r->group_of, cgroup_id);
	char name[GROUP_NAME];
	const char *option;

	if (group != U64_MAP_NONE)
		return group;
	option = name_group(r, cgroup_id, name, sizeof(name));
	group = intern_get(&r->groups, name);
	u64_map_put(&r->group_of, cgroup_id, group);
	array_reserve(r->group, r->room_groups, r->groups.n);
	r->group[group].option = option;
	return group;
}

/* Which machine a line is of, and which containers use it. */
static void put_users(void *ctx, struct json_writer *w, const struct line *l)
{
	struct html_report *r = ctx;
	__u32 groups[8];
	unsigned int n = 0;

	json_put_u64(w, "host", r->places.host);
	json_begin_array(w, "groups");
	for (size_t i = 0; i < l->n_access && n < ARRAY_SIZE(groups); i++) {
		unsigned int k = 0;

		groups[n] = group_of(r, l->access[i].cgroup_id);
		while (groups[k] != groups[n])
			k++;
		if (k == n)
			json_put_u64(w, NULL, groups[n++]);
	}
	json_end(w);
}

void html_report_part_end(struct html_report *r)
{
	const struct lines_print p = {
		.tasks = r->opts.tasks,
		.symbols = r->opts.symbols,
		.metric = IBS_METRIC_DC_MISS_LAT,
		.view = { .format = FORMAT_JSON,
			  .sort = TABLE_CYCLES,
			  .top = r->opts.several ? LINES_OF_SEVERAL : LINES_MAX },
	};
	const struct lines *lines;
	struct err why;

	if (!r->lines)
		return;
	lines = lines_finish(r->lines);
	r->trimmed += lines->trimmed;
	r->lines_private += lines_put_top(
		&r->hot_writer, &p, lines,
		!r->opts.lines_hidden && !lines_hidden_in(r->opts.info, &why), put_users, r);
	lines_free(r->lines);
	r->lines = NULL;
}

static __u8 flags_of(const struct ibs_op_sample *op)
{
	const __u64 data3 = op->reg[IBS_OP_DATA3];
	__u8 flags = ibs_op_kind(op->reg[IBS_OP_DATA], data3);

	if (ibs_op_tlb_valid(op->cpu.caps, data3)) {
		flags |= HTML_TLB_VALID;
		if ((data3 & IBS_OP_DATA3_L1TLB_MISS) && (data3 & IBS_OP_DATA3_L2TLB_MISS))
			flags |= HTML_WALK;
	}
	return flags;
}

static void count_address(struct html_report *r, const struct ibs_op_sample *op)
{
	enum html_address kind = HTML_PHYSICAL;
	__u64 addr;

	if (!ibs_op_field(op, IBS_OP_FIELD_DC_PHYS_AD, &addr))
		kind = ibs_op_field(op, IBS_OP_FIELD_DC_LIN_AD, &addr) ? HTML_VIRTUAL
								       : HTML_NO_ADDRESS;
	r->addresses[kind] += op->reg[IBS_OP_DATA3] & IBS_OP_DATA3_MEM ? 1 : 0;
}

/* As a report adds it up. */
static void set_exposed(struct html_report *r, const struct trace_event *ev, struct html_sample *to)
{
	const struct ibs_op_sample *op = &ev->sample.op;
	const __u64 data = op->reg[IBS_OP_DATA], data3 = op->reg[IBS_OP_DATA3];
	enum report_unit unit;

	if (!ibs_op_dc_miss_lat_valid(data3))
		return;
	if (report_period(r->opts.info, ev, &unit) && unit == REPORT_OPS &&
	    op->present >> IBS_OP_DATA & 1 && ibs_op_exposed_valid(op->cpu.quirks, data, data3))
		to->exposed = ibs_op_exposed(data, data3);
	else
		r->exposed_unknown = true;
}

int html_report_add(struct html_report *r, const struct trace_event *ev, __u64 period)
{
	const struct trace_sample *s = &ev->sample;
	struct html_key key = { .bucket = HTML_NO_LATENCY, .cpu = HTML_NO_CPU };
	struct report_wait wait = {};
	struct html_sample sample;
	__u32 group;
	int memory;

	if (ev->kind != TRACE_SAMPLE_OP)
		return 0;
	if ((s->op.present & REGISTERS_OF_SRC) != REGISTERS_OF_SRC) {
		r->without_registers++;
		return 0;
	}
	key.stack = html_stack_of(r, ev);
	group = group_of(r, s->cgroup_id);
	if (group > GROUPS_MAX)
		return -E2BIG;
	key.group = group;
	if (s->has_cpu)
		key.cpu = html_places_cpu(&r->places, s->cpu);
	key.source = ibs_op_src(s->op.cpu, s->op.reg);
	key.flags = flags_of(&s->op);
	memory = report_memory_node(r->opts.info, &s->op);
	key.memory = memory < 0 || memory > HTML_NO_NODE ? HTML_NO_NODE : memory;
	r->node_kinds[report_node_kind(r->opts.info, s)]++;
	html_names_add(r, ev, &key);
	if (report_wait(IBS_METRIC_DC_MISS_LAT, s, period, &wait)) {
		key.bucket = ibs_lat_bucket(wait.lat);
		r->hitm_known |= wait.has_state;
		key.flags |= wait.hitm ? HTML_HITM : 0;
	}
	if (!r->samples++)
		r->period = period;
	r->same_period &= period && period == r->period && !html_report_strata(r);
	r->sources |= 1u << key.source;
	count_address(r, &s->op);
	lines_add(r->lines, ev);
	sample = (struct html_sample){ .key = key,
				       .time_ns = s->has_time && ev->time ? ev->time + r->time_shift
									  : 0,
				       .period = period,
				       .latency = wait.lat };
	set_exposed(r, ev, &sample);
	return html_fold_sample(r, &sample);
}

/* The group of a row, named as in name_group(). */
static __u32 group_of_row(struct html_report *r, const struct row *row)
{
	const char *container = row->label[LABEL_CONTAINER], *pod = row->label[LABEL_POD];
	bool contained = *container && *container != '#', in_pod = contained && *pod;
	char name[GROUP_NAME];
	__u32 group;

	/* groups without a slot have the label "other" for every key */
	in_pod &= strcmp(pod, container) != 0;
	snprintf(name, sizeof(name), "%s%s%s", in_pod ? pod : "", in_pod ? "/" : "",
		 contained		     ? container
		 : *row->label[LABEL_CGROUP] ? row->label[LABEL_CGROUP]
					     : "/");
	container_cut_command(name);
	group = intern_get(&r->groups, name);
	array_reserve(r->group, r->room_groups, r->groups.n);
	r->group[group].option = *name == '/'				      ? "--cgroup"
				 : contained && (!in_pod || strchr(pod, '/')) ? "--container"
									      : NULL;
	return group;
}

static int add_series(struct html_report *r, struct html_key key, const struct series *s,
		      __u64 time_ns)
{
	double edges = 0, ops = s->samples ? (double)s->ops / s->samples : 0;
	struct html_row sums;
	int ret = 0;

	for (__u32 b = 0; s->buckets && b < IBS_LAT_BUCKETS; b++)
		edges += (double)s->buckets[b] * ibs_lat_le(b);
	for (__u32 b = 0; !ret && s->buckets && b < IBS_LAT_BUCKETS; b++) {
		double part = edges > 0 ? s->buckets[b] * (ibs_lat_le(b) / edges) : 0;

		if (!s->buckets[b])
			continue;
		sums = (struct html_row){ .samples = s->buckets[b],
					  .latencies = part * s->sum,
					  .operations = s->buckets[b] * ops,
					  .cycles = part * s->sum * ops,
					  /* which latencies were exposed was not counted */
					  .exposed = part * s->exposed,
					  .max = ibs_lat_le(b) };
		key.bucket = b;
		ret = html_fold_add(r, key, time_ns, &sums);
	}
	sums = (struct html_row){ .samples = s->samples - s->valid,
				  .operations = (s->samples - s->valid) * ops };
	key.bucket = HTML_NO_LATENCY;
	return ret || !sums.samples ? ret : html_fold_add(r, key, time_ns, &sums);
}

int html_report_interval(struct html_report *r, const struct rows *rows, __u64 end_ns,
			 __u64 length_ns)
{
	int ret = 0;

	if (!r->rows.bin_ns) {
		r->rows.bin_ns = r->step_ns = length_ns ?: 1;
		r->first_ns = end_ns - length_ns;
	}
	r->length_ns += length_ns;
	for (size_t i = 0; !ret && i < rows->n; i++) {
		const struct series *s = &rows->row[i].series;
		struct html_key key = {
			.cpu = HTML_NO_CPU, .memory = HTML_NO_NODE, .source = s->src, .flags = s->op
		};
		__u32 group = group_of_row(r, &rows->row[i]);

		if (group > GROUPS_MAX)
			return -E2BIG;
		key.group = group;
		r->samples += s->samples;
		r->sources |= 1u << s->src;
		r->period = r->period ?: !!s->ops;
		r->exposed_unknown |= s->sum && isnan(series_exposed(s));
		ret = add_series(r, key, s, r->first_ns + r->intervals * r->step_ns);
	}
	r->intervals++;
	r->same_period = false;
	return ret;
}

int html_report_write(struct html_report *r, const struct trace_end *end, __u64 fetches, FILE *f)
{
	__u8 sources[IBS_SRC_N];
	char band[1024], *json;
	size_t size;
	int ret = html_fold_flush(r);
	FILE *facts;

	if (ret)
		return ret;
	facts = xmemopen(&json, &size);
	html_report_part_end(r);
	fflush(r->hot_file);
	html_rows_sort(&r->rows);
	html_facts_sources(r, sources);
	html_facts_band(r, end, fetches, band, sizeof(band));
	html_facts_write(r, end, facts);
	xmemclose(facts);
	html_write_head(f, r->opts.info->host[0] ? r->opts.info->host : "ibscope report", band);
	html_write_views(f);
	html_write_facts(f, json, size);
	free(json);
	html_write_rows(f, &r->rows, sources, r->same_period ? r->period : 0,
			html_facts_exposed(r));
	html_write_tail(f);
	return 0;
}
