// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "core_env.h"
#include "engine.h"

#include "base/array.h"
#include "base/key_map.h"
#include "counts/counts.h"
#include "rows/rows.h"
#include "select/selection.h"
#include "trace/trace.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

/* The maps of the program in plain memory, by the same names. */
struct engine {
	struct ibs_config config;
	struct ibs_memory_nodes memory_nodes;
	__u16 fetch_layout[IBS_FETCH_LAYOUT_ENTRIES];
	struct ibs_state *state;
	const struct task *task; /* of the current sample */

	__u8 *tgids, *tids;	 /* IBS_PID_MAX bytes each; NULL: not tested */
	struct key_map selected; /* by number: `selected_cgroups` */
	struct ibs_selected_cgroup *selected_cgroups;
	struct key_map cgroup_ids, group_keys;
	struct ibs_cgroup *cgroups; /* by number in `cgroup_ids` */
	struct u64_map
		symbol_groups; /* by number in `group_keys` and symbol: number of the group */
	__u32 *groups;	       /* slots, by number of the group */
	size_t n_groups;
	__u32 *symbols; /* of slots; NULL: not grouped by symbol */
	size_t room_cgroups, room_groups;
	struct ibs_slot_owner *slot_owners;
	__u64 *series;
	struct ibs_lines *hot_lines; /* NULL: none */
	size_t series_bytes;
	struct shard_cost *cost; /* of L3 complexes */
	unsigned int complexes;

	struct layout layout;
	struct counts counts;
};

/* --- helpers that the core calls --- */

typedef struct engine *core_t;
#define core_t core_t /* for decide_env.h */

#define core_config(e)		   (&(e)->config)
#define core_memory_nodes(e)	   (&(e)->memory_nodes)
#define core_fetch_layout(e)	   ((e)->fetch_layout)
#define core_control(e)		   (&(e)->state->control)
#define core_layout(e)		   ((e)->config.layout)
#define core_state(e)		   (&(e)->state->cpu[0])
#define task_pid_tgid(e)	   ((e)->task->pid_tgid)
#define task_uid_gid(e)		   ((void)(e), 0) /* recordings have none: such filters are refused */
#define task_cpu(e)		   ((e)->task->cpu)
#define task_cgroup_id(e, v1)	   ((void)(v1), (e)->task->cgroup_id)
#define task_cgroup_key(e, v1)	   task_cgroup_id(e, v1)
#define address_slab(e, addr)	   ((void)(addr), IBS_SLAB_ID((e)->task->slab))
#define task_ancestor_id(e, level) ((level) ? 0 : (e)->task->cgroup_id) /* resolved before */
#define map_delete(e, map, key)	   ((void)(e), (void)(key)) /* of slots: see add_slots() */

#define task_comm task_comm
static int task_comm(struct engine *e, __u64 *words)
{
	memcpy(words, e->task->comm, sizeof(e->task->comm));
	return 0;
}

static __u8 *find_tgids(struct engine *e, const __u32 *block)
{
	return *block < IBS_PID_MAX / IBS_PID_BLOCK ? e->tgids + *block * IBS_PID_BLOCK : NULL;
}

static __u8 *find_tids(struct engine *e, const __u32 *block)
{
	return *block < IBS_PID_MAX / IBS_PID_BLOCK ? e->tids + *block * IBS_PID_BLOCK : NULL;
}

static struct ibs_selected_cgroup *find_selected_cgroups(struct engine *e, const __u64 *id)
{
	long n = key_map_find_id(&e->selected, *id);

	return n < 0 ? NULL : &e->selected_cgroups[n];
}

static struct ibs_cgroup *find_cgroups(struct engine *e, const __u64 *id)
{
	long n = key_map_find_id(&e->cgroup_ids, *id);

	return n < 0 ? NULL : &e->cgroups[n];
}

static int add_cgroups(struct engine *e, const __u64 *id, const struct ibs_cgroup *value)
{
	size_t n = e->cgroup_ids.n;

	if (n >= config_max_cgroups(e->config.max_slots))
		return -E2BIG;
	array_reserve(e->cgroups, e->room_cgroups, n + 1);
	key_map_add_id(&e->cgroup_ids, *id);
	e->cgroups[n] = *value;
	return 0;
}

/* The key of a group as the program builds it, plus the labels that only user space knows. */
static __u64 symbol_key(const struct engine *e, long n)
{
	return (__u64)n << 32 | e->task->symbol;
}

static __u32 *find_groups(struct engine *e, const struct ibs_group_key *key)
{
	long n = key_map_find(&e->group_keys, key);
	__u32 group;

	if (n < 0 || !e->symbols)
		return n < 0 ? NULL : &e->groups[n];
	group = u64_map_get(&e->symbol_groups, symbol_key(e, n));
	return group == U64_MAP_NONE ? NULL : &e->groups[group];
}

static int add_groups(struct engine *e, const struct ibs_group_key *key, const __u32 *slot)
{
	long n = e->symbols ? key_map_find(&e->group_keys, key) : -1;

	if (n < 0)
		n = key_map_add(&e->group_keys, key);
	array_reserve(e->groups, e->room_groups, e->n_groups + 1);
	if (e->symbols) {
		u64_map_put(&e->symbol_groups, symbol_key(e, n), e->n_groups);
		e->symbols[*slot] = e->task->symbol;
	}
	e->groups[e->n_groups++] = *slot;
	return 0;
}

/* Nobody else takes slots, so those from the next one on are free. */
static int add_slots(struct engine *e, const __u32 *slot, const __u8 *used)
{
	(void)e;
	(void)slot;
	(void)used;
	return 0;
}

static struct ibs_slot_owner *find_slot_owners(struct engine *e, const __u32 *slot)
{
	return &e->slot_owners[*slot];
}

static __u64 *find_series(struct engine *e, const __u32 *index)
{
	return e->series + (size_t)*index * e->config.slot_words;
}

static void *find_hot_lines(struct engine *e, const __u32 *index)
{
	(void)index;
	return e->hot_lines;
}

#include <ibscope/decide.h>
#include <ibscope/line_feed.h>

/* --- the engine --- */

static int set_pids(__u8 **bytes, const struct selected_pids *set, __u8 bit, const char *what,
		    struct err *err)
{
	*bytes = xcalloc(IBS_PID_MAX, sizeof(**bytes));
	for (size_t i = 0; i < set->n; i++) {
		if (set->pids[i] >= IBS_PID_MAX)
			return err_set(err, -ERANGE, "%s %u: this kernel numbers them below %d",
				       what, set->pids[i], IBS_PID_MAX);
		(*bytes)[set->pids[i]] = bit;
	}
	return 0;
}

static void set_cgroups(struct engine *e, const struct selection *sel)
{
	struct ibs_control *control = core_control(e);

	control->cgroup_default = 1;
	e->selected_cgroups = xcalloc(sel->n_cgroups, sizeof(*e->selected_cgroups));
	for (size_t i = 0; i < sel->n_cgroups; i++) {
		e->selected_cgroups[i] = selected_cgroup_value(&sel->cgroups[i]);
		if (e->selected_cgroups[i].selected == IBS_CGROUP_IN)
			control->cgroup_default = 0;
		key_map_add_id(&e->selected, sel->cgroups[i].id);
	}
}

static int set_selection(struct engine *e, const struct selection *sel, struct err *err)
{
	bool out = selected_pids_left_out(&sel->processes);
	int ret = 0;

	config_select(&e->config, sel);
	if (ibs_metric_of_fetch(e->config.metric))
		config_fetch_layout(&e->config, e->fetch_layout);
	core_state(e)->lat = sel->max_lat << IBS_LAT_MAX_SHIFT | sel->min_lat;
	core_state(e)->live = IBS_LIVE_STEP | (out ? IBS_PID_TEST_OUT : IBS_PID_TEST_IN);
	if (selects_processes(sel))
		ret = set_pids(&e->tgids, &sel->processes, out ? IBS_PID_OUT : IBS_PID_IN,
			       "process", err);
	if (selects_threads(sel))
		ret = ret ?: set_pids(&e->tids, &sel->threads, IBS_PID_IN, "thread", err);
	set_cgroups(e, sel);
	return ret;
}

/* More aligned than what calloc() returns. */
static void *zeroed(size_t align, size_t bytes)
{
	void *p = aligned_alloc(align, bytes);

	if (!p)
		out_of_memory();
	return memset(p, 0, bytes);
}

/* The counters and what belongs to their slots. */
static void allocate(struct engine *e, const struct engine_opts *opts, __u32 max_slots)
{
	layout_init(&e->layout, opts->metric, opts->ibs.caps);
	e->series_bytes = (size_t)max_slots * e->layout.words * sizeof(__u64);
	/* most of it is never touched, so it takes no memory */
	e->series = mmap(NULL, e->series_bytes, PROT_READ | PROT_WRITE,
			 MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (e->series == MAP_FAILED)
		out_of_memory();
	if (opts->line_sets)
		e->hot_lines = xcalloc(1, IBS_LINES_BYTES((size_t)opts->line_sets));
	e->slot_owners = xcalloc(max_slots, sizeof(*e->slot_owners));
	e->state = zeroed(_Alignof(struct ibs_state), sizeof(*e->state) + sizeof(*e->state->cpu));
	e->complexes = opts->complexes;
	e->cost = xcalloc(opts->complexes, sizeof(*e->cost));
	if (opts->by & BY_SYMBOL)
		e->symbols = xcalloc(max_slots, sizeof(*e->symbols));
}

int engine_open(const struct engine_opts *opts, struct engine **out, struct err *err)
{
	const __u32 max_slots = config_max_slots(opts->max_groups);
	struct engine *e = zeroed(_Alignof(struct engine), sizeof(*e));
	int ret;

	e->config = (struct ibs_config){ .ibs = opts->ibs,
					 .by = opts->by,
					 .max_slots = max_slots,
					 .metric = opts->metric,
					 .weigh = opts->strata	    ? IBS_WEIGH_STRATA
						  : opts->count_ops ? IBS_WEIGH_PERIOD
								    : IBS_WEIGH_NO,
					 .reach = opts->reach,
					 .tlb = opts->tlb,
					 .line_sets = opts->line_sets,
					 .line_feed = opts->line_feed,
					 .exposed = opts->exposed };
	allocate(e, opts, max_slots);
	ret = set_selection(e, opts->sel, err);
	if (!ret && memory_nodes_fill(opts->memory, opts->n_memory, &e->memory_nodes))
		ret = err_set(err, -E2BIG, "the recording has memory in too many ranges of nodes");
	if (ret) {
		engine_close(e);
		return ret;
	}
	core_control(e)->strata.used = opts->strata;
	core_control(e)->exposed = opts->exposed;
	core_control(e)->next_slot = IBS_SLOT_OTHER + 1 + !opts->by;
	e->counts = (struct counts){ .series = e->series,
				     .owners = e->slot_owners,
				     .state = e->state,
				     .n_cpus = 1,
				     .outcomes = IBS_OUTCOME_N,
				     .shards = 1,
				     .max_slots = max_slots,
				     .by = opts->by,
				     .has_ops = opts->count_ops || opts->strata,
				     .period = opts->period,
				     .tlb = opts->tlb,
				     .layout = &e->layout };
	*out = e;
	return 0;
}

void engine_close(struct engine *e)
{
	if (!e)
		return;
	munmap(e->series, e->series_bytes);
	key_map_free(&e->selected);
	key_map_free(&e->cgroup_ids);
	key_map_free(&e->group_keys);
	free(e->selected_cgroups);
	free(e->cgroups);
	u64_map_free(&e->symbol_groups);
	free(e->groups);
	free(e->symbols);
	free(e->hot_lines);
	free(e->slot_owners);
	free(e->state);
	free(e->cost);
	free(e->tgids);
	free(e->tids);
	free(e);
}

void engine_weigh(struct engine *e, const double weight[2])
{
	core_control(e)->tag_ops = llround(weight[0]);
	core_control(e)->reach_ops = llround(weight[1]);
}

static void add_cost(struct engine *e, const __u64 *regs, const struct sample *s,
		     const struct place *at, unsigned int complex)
{
	const struct ibs_config *cfg = &e->config;
	__u64 data3 = regs[IBS_OP_DATA3], period = s->period;

	if (cfg->weigh == IBS_WEIGH_STRATA)
		period = strata_ops(e, at->word);

	if (complex < e->complexes && ibs_op_metric_valid(cfg->metric, cfg->ibs.caps, data3))
		e->cost[complex].cycles[ibs_op_src(cfg->ibs, regs)] +=
			ibs_op_metric(cfg->metric, regs, data3) *
			(cfg->weigh ? period : e->counts.period);
}

void engine_run(struct engine *e, const __u64 *regs, __u64 period, const struct task *task,
		enum ibs_outcome *outcome)
{
	const bool fetch = ibs_metric_of_fetch(e->config.metric);
	const struct sample s = { regs, period };
	struct place at = {};
	__u32 out;

	e->task = task;
	core_state(e)->complex = task->complex;
	core_state(e)->node = task->node;
	out = select_task(e, e->config.task_select);
	/* a cgroup's own minimum latency tests registers, too */
	if (out == IBS_OUTCOME_AGGREGATED && !regs && core_state(e)->min_lat)
		out = IBS_OUTCOME_FILTERED_LAT;
	if (out == IBS_OUTCOME_AGGREGATED && regs) {
		out = regs_select(e, regs, &at, fetch);
		if (out == IBS_OUTCOME_AGGREGATED && e->hot_lines && !fetch)
			line_feed(e, &s, at.status, at.word);
		if (out == IBS_OUTCOME_AGGREGATED)
			out = aggregate(e, &at, &s, fetch);
		if (out == IBS_OUTCOME_AGGREGATED && at.word & IBS_LAYOUT_HIST && !fetch)
			add_cost(e, regs, &s, &at, task->complex);
	}
	if (regs) {
		e->state->cpu[0].seen++;
		e->state->cpu[0].outcome[out]++;
	}
	if (outcome)
		*outcome = out;
}

const struct ibs_lines *engine_lines(const struct engine *e)
{
	return e->hot_lines;
}

int engine_snapshot(struct engine *e, struct snapshot *out, struct err *err)
{
	int ret;

	memset(out, 0, sizeof(*out));
	ret = counts_read(&e->counts, out, err);
	for (size_t i = 0; !ret && e->symbols && i < out->n_groups; i++)
		out->groups[i].symbol = e->symbols[out->groups[i].slot];
	if (ret || !e->complexes)
		return ret;
	out->shards = xcalloc(e->complexes, sizeof(*out->shards));
	out->n_shards = e->complexes;
	memcpy(out->shards, e->cost, e->complexes * sizeof(*e->cost));
	return 0;
}
