// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "sampler.h"

#include "sampler_private.h"
#include "constants/constants.h"
#include "machine/topology.h"

#include "ibs_op.skel.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Errors for users are made from the errno; messages of libbpf are only shown with -v. */
static int libbpf_log(enum libbpf_print_level level, const char *fmt, va_list ap)
{
	char *text, *rest, *line;

	if (level == LIBBPF_DEBUG || !log_is_verbose())
		return 0;
	if (vasprintf(&text, fmt, ap) < 0) /* a verifier log has megabytes */
		return 0;
	rest = text;
	while ((line = strsep(&rest, "\n")))
		if (*line)
			log_debug("%s", line);
	free(text);
	return 0;
}

static void set_config(struct sampler *s, const struct sampler_opts *opts)
{
	typeof(s->skel->rodata) cfg = s->skel->rodata;
	struct ibs_config c = { .ibs = opts->ibs,
				.cpu_mask = sampler_cpu_entries(s->possible_cpus) - 1,
				.by = sampler_group_by(opts),
				.max_slots = s->max_slots,
				.metric = opts->metric,
				.weigh = !opts->count_ops	     ? IBS_WEIGH_NO
					 : sampler_weighs_tags(opts) ? IBS_WEIGH_TAG
								     : IBS_WEIGH_PERIOD,
				.tlb = opts->tlb,
				.line_sets = opts->line_sets,
				.line_feed = opts->line_feed };

	config_select(&c, &opts->sel);
	if (opts->by & IBS_BY_MODE)
		c.filter.needs |= IBS_FILTER_NEEDS_REG(IBS_OP_RIP);
	if (opts->by & IBS_BY_SLAB)
		c.filter.needs |= IBS_FILTER_NEEDS_REG(IBS_DC_LINADDR);
	if (opts->by & IBS_BY_MEM_NODE)
		c.filter.needs |= IBS_FILTER_NEEDS_REG(IBS_DC_PHYSADDR);
	memcpy((void *)&cfg->config, &c, sizeof(c));
	cfg->cfg_ancestor_helper = s->features.ancestor_helper;
	cfg->cfg_task_btf = s->features.task_btf && !opts->probe_read;
	cfg->cfg_record_raw = opts->output == SAMPLER_RECORDS_RAW;
	cfg->cfg_stacks = opts->stacks;
	cfg->cfg_slabs = opts->slabs;
	if (opts->slabs) {
		cfg->cfg_vmemmap = kernel_symbol("vmemmap_base");
		cfg->cfg_page_offset = kernel_symbol("page_offset_base");
	}
	cfg->cfg_twin_forward = opts->output != SAMPLER_SERIES;
	cfg->cfg_pid_follow = opts->sel.follow;
	cfg->cfg_sim_seed = opts->sim_seed;
	cfg->cfg_sim_tasks = !opts->sim_random;
}

static int set_memory_nodes(struct sampler *s, const struct sampler_opts *opts, struct err *err)
{
	struct memory_range here[MEMORY_RANGES];
	const struct memory_range *ranges = opts->memory ?: here;
	size_t n = opts->n_memory;

	if (!(sampler_group_by(opts) & IBS_BY_MEM_NODE))
		return 0;
	if (!opts->memory)
		n = memory_ranges_read("", here);
	if (!n)
		return err_set(err, -EOPNOTSUPP,
			       "--by mem_node: this kernel does not report which memory belongs to "
			       "which node (/sys/devices/system/node/node*/memory*, "
			       "CONFIG_MEMORY_HOTPLUG)");
	if (memory_nodes_fill(ranges, n, (struct ibs_memory_nodes *)&s->skel->rodata->memory_nodes))
		return err_set(err, -E2BIG,
			       "--by mem_node: the memory of this machine is in too many ranges");
	return 0;
}

static int set_map_sizes(struct sampler *s, const struct sampler_opts *opts, struct err *e)
{
	typeof(s->skel->maps) *m = &s->skel->maps;
	bool by_groups = sampler_group_by(opts) && opts->by != IBS_BY_CGROUP;
	size_t n_sel = sampler_max_selected_entries(&opts->sel);
	__u32 cpus = sampler_cpu_entries(s->possible_cpus);
	int err;

	err = bpf_map__set_value_size(m->series, s->layout.words * sizeof(__u64));
	err = err ?: bpf_map__set_max_entries(m->series, s->memory.shards * s->max_slots);
	err = err
		      ?: bpf_map__set_value_size(m->state,
						 sizeof(struct ibs_state) +
							 cpus * sizeof(struct ibs_cpu_state));
	err = err ?: bpf_map__set_value_size(m->raw_places, cpus * sizeof(struct ibs_raw_place));
	err = err ?: bpf_map__set_max_entries(m->cgroups, config_max_cgroups(s->max_slots));
	err = err ?: bpf_map__set_max_entries(m->groups, by_groups ? s->max_slots : 1);
	err = err ?: bpf_map__set_max_entries(m->slots, s->max_slots);
	err = err ?: bpf_map__set_max_entries(m->slot_owners, s->max_slots);
	err = err ?: bpf_map__set_max_entries(m->selected_cgroups, n_sel ? n_sel : 1);
	err = err
		      ?: bpf_map__set_max_entries(m->records,
						  sampler_ring_cpus(opts) * s->memory.ring_slots);
	err = err ?: bpf_map__set_value_size(m->records, sampler_record_bytes(opts));
	err = err ?: bpf_map__set_autocreate(m->records, sampler_has_rings(opts));
	err = err ?: bpf_map__set_autocreate(m->bell, sampler_has_rings(opts));
	err = err ?: bpf_map__set_autocreate(m->fetch_layout, ibs_metric_of_fetch(opts->metric));
	err = err ?: bpf_map__set_max_entries(m->hot_lines, 2 * sampler_sampled_cpus(opts));
	err = err ?: bpf_map__set_value_size(m->hot_lines, sampler_line_bytes(opts));
	err = err ?: bpf_map__set_autocreate(m->hot_lines, opts->line_sets);
	err = err ?: bpf_map__set_max_entries(m->stacks, SAMPLER_STACKS);
	err = err ?: bpf_map__set_value_size(m->stacks, sampler_stack_depth() * sizeof(__u64));
	err = err ?: bpf_map__set_autocreate(m->stacks, opts->stacks);
	err = err ?: bpf_map__set_autocreate(m->sim_lines, opts->source == SAMPLER_SIM);
	err = err ?: bpf_map__set_autocreate(m->sim_ops, opts->source == SAMPLER_SIM);
	if (selects_processes(&opts->sel))
		err = err ?: bpf_map__set_max_entries(m->tgids, sampler_pid_blocks());
	if (selects_threads(&opts->sel))
		err = err ?: bpf_map__set_max_entries(m->tids, sampler_pid_blocks());
	return err ? err_set(e, err, "cannot size the BPF maps: %s", strerror(-err)) : 0;
}

static struct bpf_program *choose_prog(struct sampler *s, const struct sampler_opts *opts)
{
	const typeof(s->skel->progs) *p = &s->skel->progs;

	if (opts->source == SAMPLER_TWIN)
		return s->skel->progs.ibs_op_twin;
	if (opts->prog == SAMPLER_PROG_EMPTY)
		return s->skel->progs.ibs_op_empty;
	const int how = opts->source == SAMPLER_SIM ? 2 : !s->direct;
	const int what = opts->output != SAMPLER_SERIES ? 1 : opts->copies ? 2 : 0;
	struct bpf_program *const progs[][3] = {
#define NMI_AND_SIM(event, what) \
	{ p->event##_nmi##what, p->event##_nmi_copy##what, p->event##_sim##what }
		NMI_AND_SIM(ibs_op, ), NMI_AND_SIM(ibs_op, _forward), NMI_AND_SIM(ibs_op, _copied),
		NMI_AND_SIM(ibs_fetch, ), NMI_AND_SIM(ibs_fetch, _forward)
#undef NMI_AND_SIM
	};

	if (ibs_metric_of_fetch(opts->metric))
		return what < 2 ? progs[3 + what][how] : NULL;
	return progs[what][how];
}

static int use_constants(struct bpf_program *prog, struct bpf_prog_load_opts *opts, long cookie)
{
	const struct sampler *s = (const struct sampler *)cookie;
	const typeof(s->skel->maps) *m = &s->skel->maps;
	const struct constants known = { .map_fd = bpf_map__fd(m->rodata),
					 .value = (const char *)s->skel->rodata,
					 .bytes = bpf_map__value_size(m->rodata),
					 .by_value = { { bpf_map__fd(m->state),
							 offsetof(struct ibs_state, cpu) },
						       { bpf_map__fd(m->raw_places) },
						       { bpf_map__fd(m->fetch_layout) } },
					 .unfolded = s->unfolded };

	if (bpf_program__type(prog) == BPF_PROG_TYPE_SYSCALL)
		opts->prog_flags |= BPF_F_SLEEPABLE; /* as libbpf's own handler does */
	return constants_use(prog, opts, &known);
}

/*
 * Handle programs in sections that libbpf does not know (SAMPLE_SECTION), from opening the object
 * until it is loaded. Handlers of named sections are no alternative: libbpf 1.1 corrupts its heap
 * when the last of them is removed. Returns an id or a negative errno.
 */
static int handle_programs(struct sampler *s)
{
	LIBBPF_OPTS(libbpf_prog_handler_opts, opts, .cookie = (long)s,
		    .prog_prepare_load_fn = use_constants);

	return libbpf_register_prog_handler(NULL, BPF_PROG_TYPE_PERF_EVENT, 0, &opts);
}

int sampler_slabs(struct sampler *s, sampler_slab *cb, void *arg, struct err *err)
{
	return slabs_list(s->skel->progs.ibs_slabs, cb, arg, err);
}

static int load(struct sampler *s, const struct sampler_opts *opts, struct bpf_program *prog,
		struct err *err)
{
	struct bpf_program *p;
	int ret;

	if (opts->slabs && !kernel_finds_slabs())
		return err_set(
			err, -EOPNOTSUPP,
			"%s: in this kernel, BPF programs cannot look up the slab cache of an "
			"address; requires Linux 6.13",
			opts->by & IBS_BY_SLAB ? "--by slab" : "--slabs");
	set_config(s, opts);
	ret = set_memory_nodes(s, opts, err);
	if (ret)
		return ret;
	if (opts->cgroup_controller && *opts->cgroup_controller) {
		struct ibs_config *c = (struct ibs_config *)&s->skel->rodata->config;

		ret = kernel_cgroup_subsys(opts->cgroup_controller, err);
		if (ret < 0)
			return ret;
		c->cgroup_v1 = true;
		if (c->task_select & IBS_TASK_CGROUP)
			c->task_select |= IBS_TASK_CGROUP_V1;
		s->skel->rodata->cfg_cgroup_subsys = ret;
	}
	bpf_object__for_each_program (p, s->skel->obj)
		bpf_program__set_autoload(
			p, p == prog || (p == s->skel->progs.ibs_fork && watches_forks(opts)) ||
				   (p == s->skel->progs.ibs_slabs && opts->slabs));
	bpf_map__set_autocreate(s->skel->maps.twin, opts->source == SAMPLER_TWIN);
	bpf_program__set_type(s->skel->progs.ibs_op_twin, BPF_PROG_TYPE_SYSCALL);
	ret = ibs_op_bpf__load(s->skel);
	if (ret)
		return err_set(err, ret,
			       "the kernel rejects the BPF program: %s; run again with -v for the "
			       "verifier log, and see `ibscope doctor` for privileges and lockdown",
			       strerror(-ret));
	if (ibs_metric_of_fetch(opts->metric)) {
		__u16 places[IBS_FETCH_LAYOUT_ENTRIES];
		__u32 zero = 0;

		config_fetch_layout((const struct ibs_config *)&s->skel->rodata->config, places);
		bpf_map_update_elem(bpf_map__fd(s->skel->maps.fetch_layout), &zero, places, 0);
	}
	ret = opts->slabs ? sampler_slabs(s, NULL, NULL, err)
			  : 0; /* the program relies on its results */
	ret = ret ?: map_array(s->skel->maps.state, &s->state_map, err);
	if (ret)
		return ret;
	s->state = s->state_map.addr;
	if (!s->adopted)
		s->state->control.next_slot = IBS_SLOT_OTHER + 1 + !sampler_group_by(opts);
	return 0;
}

/* Call before entering the first pid, so that no child is missed. */
static int watch_forks(struct sampler *s, const struct sampler_opts *opts, struct err *err)
{
	if (!watches_forks(opts))
		return 0;
	s->fork_link =
		bpf_program__attach_raw_tracepoint(s->skel->progs.ibs_fork, "sched_process_fork");
	if (!s->fork_link)
		return err_set(err, -errno, "cannot trace process creation: %s", strerror(errno));
	return 0;
}

/* Initialize the state of sampler_select.c. */
static int select_open(struct sampler *s, const struct sampler_opts *opts, struct err *err)
{
	typeof(s->skel->maps) *m = &s->skel->maps;
	int ret = 0;

	s->select.control = &s->state->control;
	s->select.cpus = s->state->cpu;
	s->select.n_cpus = s->possible_cpus;
	select_renew(&s->select);
	s->select.live = opts->sel.live;
	if (sampler_max_selected(&opts->sel))
		s->select.cgroups_fd = bpf_map__fd(m->selected_cgroups);
	s->select.cgroups_max = sampler_max_selected(&opts->sel);
	if (selects_processes(&opts->sel))
		ret = map_array(m->tgids, &s->tgids, err);
	if (selects_threads(&opts->sel))
		ret = ret ?: map_array(m->tids, &s->tids, err);
	s->select.processes = s->tgids.addr;
	s->select.threads = s->tids.addr;
	s->select.pids_n = sampler_pid_blocks() * IBS_PID_BLOCK;
	s->select.follow = opts->sel.follow;
	return ret;
}

struct sampler_select *sampler_selection(struct sampler *s)
{
	return &s->select;
}

struct bpf_map *sampler_map(struct sampler *s, enum ibs_pin pin)
{
	typeof(s->skel->maps) *m = &s->skel->maps;

	switch (pin) {
	case IBS_PIN_SERIES:
		return m->series;
	case IBS_PIN_OWNERS:
		return m->slot_owners;
	case IBS_PIN_STATE:
		return m->state;
	case IBS_PIN_CGROUPS:
		return m->cgroups;
	case IBS_PIN_GROUPS:
		return m->groups;
	case IBS_PIN_SLOTS:
		return m->slots;
	default:
		return NULL; /* written by user space only */
	}
}

void sampler_layout(struct sampler *s, const struct sampler_opts *opts, struct ibs_meta_layout *out)
{
	memset(out, 0, sizeof(*out));
	out->n_cpus = s->possible_cpus;
	out->shards = s->memory.shards;
	out->max_slots = s->max_slots;
	out->slot_words = s->layout.words;
	out->by = opts->by;
	out->metric = opts->metric;
	out->caps = opts->ibs.caps;
	out->simulated = opts->source != SAMPLER_IBS;
	out->outcomes = IBS_OUTCOME_N;
	out->sources = layout_sources(opts->metric);
	out->ops = layout_ops(opts->metric);
	out->buckets = IBS_LAT_BUCKETS;
	out->state_bytes = bpf_map__value_size(s->skel->maps.state);
	out->meta_bytes = sizeof(struct ibs_meta);
	out->status_bytes = sizeof(struct ibs_meta_status);
	out->name_bytes = sizeof(struct ibs_slot_name);
	if (opts->by & IBS_BY_CGROUP && opts->cgroup_controller)
		snprintf(out->hierarchy, sizeof(out->hierarchy), "%s", opts->cgroup_controller);
	memcpy(out->entry, s->layout.entry, sizeof(out->entry));
}

struct sampler_fold_maps sampler_fold_maps(const struct sampler *s)
{
	typeof(s->skel->maps) *m = &s->skel->maps;

	return (struct sampler_fold_maps){ .cgroups = bpf_map__fd(m->cgroups),
					   .groups = bpf_map__fd(m->groups),
					   .slots = bpf_map__fd(m->slots),
					   .by_groups = bpf_map__max_entries(m->groups) > 1 };
}

/* If there are fewer shards than complexes, neighbouring complexes share a shard. */
static void place_cpus(struct sampler *s, const struct sampler_opts *opts,
		       const struct topology *topo)
{
	const struct ibs_config *cfg = (const struct ibs_config *)&s->skel->rodata->config;
	struct ibs_cpu_state *st = s->state->cpu;

	for (unsigned int cpu = 0; cpu < s->possible_cpus; cpu++) {
		unsigned int complex = topology_complex(topo, cpu);

		st[cpu].shard =
			topology_shard(complex, topology_n_complexes(topo), s->memory.shards);
		st[cpu].complex = complex;
		st[cpu].node = topology_node(topo, cpu);
		st[cpu].lines = opts->source == SAMPLER_TWIN ? 2 * cpu : ~0u;
		memcpy(st[cpu].layout, cfg->layout, sizeof(st[cpu].layout));
	}
	for (size_t i = 0; opts->source != SAMPLER_TWIN && i < opts->n_cpus; i++)
		st[opts->cpus[i]].lines = 2 * i;
}

static int open_lines(struct sampler *s, const struct sampler_opts *opts, struct err *err)
{
	s->line_sets = opts->line_sets;
	s->line_tables = opts->line_sets ? sampler_sampled_cpus(opts) : 0;
	return s->line_sets ? map_array(s->skel->maps.hot_lines, &s->hot_lines, err) : 0;
}

static int open_rings(struct sampler *s, const struct sampler_opts *opts, struct err *err)
{
	struct rings_opts ro = {
		.states = s->state->cpu,
		.cpus = opts->cpus,
		.n_cpus = sampler_ring_cpus(opts),
		.slots = s->memory.ring_slots,
		.raw = opts->output == SAMPLER_RECORDS_RAW,
		.extra = opts->stacks || opts->slabs,
	};
	unsigned int *all;
	int ret;

	/* adopted state has the rings of the previous collector, whose records are counted */
	for (unsigned int cpu = 0; cpu < s->possible_cpus; cpu++) {
		struct ibs_ring *ring = &s->state->cpu[cpu].ring;

		*ring = (struct ibs_ring){ .forwarded = ring->forwarded };
	}
	if (!sampler_has_rings(opts))
		return 0;
	ret = map_array(s->skel->maps.records, &s->records, err);
	if (ret)
		return ret;
	ro.records = s->records.addr;
	ro.bell_fd = bpf_map__fd(s->skel->maps.bell);
	if (opts->source != SAMPLER_TWIN)
		return rings_open(&ro, &s->rings, err);
	/* the caller may run on any CPU */
	all = xcalloc(s->possible_cpus, sizeof(*all));
	for (unsigned int cpu = 0; cpu < s->possible_cpus; cpu++)
		all[cpu] = cpu;
	ro.cpus = all;
	ret = rings_open(&ro, &s->rings, err);
	free(all);
	return ret;
}

static int check_twin(const struct sampler *s, struct err *err)
{
	if (s->features.syscall_prog &&
	    libbpf_probe_bpf_helper(BPF_PROG_TYPE_SYSCALL, BPF_FUNC_loop, NULL) > 0)
		return 0;
	return err_set(err, -EOPNOTSUPP,
		       "this kernel cannot run BPF programs on request; Linux 5.17 and later can");
}

int sampler_open(const struct sampler_opts *opts, struct sampler **out, struct err *err)
{
	struct sampler *s = xcalloc(1, sizeof(*s));
	struct topology *topo = NULL;
	struct bpf_program *prog;
	__u64 period; /* of each sample; 0: unknown */
	int ret, n, handler = -1;

	libbpf_set_print(libbpf_log);
	n = libbpf_num_possible_cpus();
	if (n < 0) {
		ret = err_set(err, n, "cannot read the possible CPUs: %s", strerror(-n));
		goto fail;
	}
	s->possible_cpus = n;
	s->max_slots = sampler_max_slots(opts);
	s->counts_periods = opts->source == SAMPLER_IBS && !opts->attr.freq && !opts->filter;
	s->filter = opts->filter;
	s->by_freq = opts->attr.freq;
	period = opts->attr.freq || opts->filter == EVENT_FILTER_HARDWARE
			 ? 0
			 : opts->attr.sample_period;
	s->simulated = opts->source != SAMPLER_IBS;
	s->count_ops = opts->count_ops;
	s->by = sampler_group_by(opts);
	layout_init(&s->layout, opts->metric, opts->ibs.caps);
	topo = topology_open("", s->possible_cpus);
	ret = sampler_memory(opts, topology_n_complexes(topo), &s->memory, err);
	if (ret)
		goto fail;
	ret = kernel_features_probe(&s->features, err);
	if (ret)
		goto fail;
	s->direct = s->features.direct_read && !opts->probe_read;
	s->unfolded = opts->unfolded;
	handler = handle_programs(s);
	errno = handler < 0 ? -handler : 0;
	s->skel = errno ? NULL : ibs_op_bpf__open();
	if (!s->skel) {
		ret = err_set(err, -errno, "cannot open the BPF object: %s", strerror(errno));
		goto fail;
	}
	prog = choose_prog(s, opts);
	ret = opts->source == SAMPLER_TWIN ? check_twin(s, err) : 0;
	if (opts->copies && ibs_metric_of_fetch(opts->metric))
		ret = err_set(err, -EOPNOTSUPP,
			      "profiles consist of ibs_op samples; ibs_fetch samples cannot "
			      "be copied");
	ret = ret ?: set_map_sizes(s, opts, err);
	ret = ret ?: sampler_pins_adopt(s, opts, err);
	ret = ret ?: load(s, opts, prog, err);
	libbpf_unregister_prog_handler(handler);
	handler = -1;
	s->prog_fd = bpf_program__fd(prog);
	ret = ret ?: map_array(s->skel->maps.series, &s->series, err);
	ret = ret ?: map_array(s->skel->maps.slot_owners, &s->slot_owners, err);
	ret = ret ?: open_lines(s, opts, err);
	ret = ret ?: open_rings(s, opts, err);
	ret = ret ?: select_open(s, opts, err);
	ret = ret ?: watch_forks(s, opts, err);
	ret = ret ?: select_set(&s->select, &opts->sel, err);
	if (ret)
		goto fail;
	s->counts = (struct counts){ .series = s->series.addr,
				     .owners = s->slot_owners.addr,
				     .state = s->state,
				     .n_cpus = s->possible_cpus,
				     .shards = s->memory.shards,
				     .max_slots = s->max_slots,
				     .by = sampler_group_by(opts),
				     .has_ops = opts->count_ops,
				     .period = period,
				     .tlb = opts->tlb,
				     .layout = &s->layout };
	place_cpus(s, opts, topo);
	sampler_fold_reserve(s, opts);
	sampler_pins_resume(s, opts);
	if (opts->source == SAMPLER_TWIN)
		ret = map_array(s->skel->maps.twin, &s->twin, err);
	else if (opts->source != SAMPLER_LOAD)
		ret = sampler_events_open(s, opts, err);
	ret = ret ?: sampler_pins_put(s, opts, err);
	if (ret)
		goto fail;
	topology_close(topo);
	*out = s;
	return 0;
fail:
	if (handler >= 0)
		libbpf_unregister_prog_handler(handler);
	topology_close(topo);
	sampler_close(s);
	return ret;
}

struct rings *sampler_rings(struct sampler *s)
{
	return s->rings;
}

void sampler_copy(struct sampler *s, bool on)
{
	for (unsigned int cpu = 0; cpu < s->possible_cpus; cpu++)
		__atomic_store_n(&s->state->cpu[cpu].ring.copies,
				 on && s->state->cpu[cpu].ring.slots, __ATOMIC_RELAXED);
}

__u64 sampler_copies_dropped(const struct sampler *s)
{
	__u64 n = 0;

	for (unsigned int cpu = 0; cpu < s->possible_cpus; cpu++)
		n += __atomic_load_n(&s->state->cpu[cpu].ring.dropped, __ATOMIC_RELAXED);
	return n;
}

int sampler_stack(struct sampler *s, __s32 id, __u64 *addresses)
{
	int depth = sampler_stack_depth(), n = 0;

	memset(addresses, 0, depth * sizeof(*addresses));
	if (bpf_map_lookup_elem(bpf_map__fd(s->skel->maps.stacks), &id, addresses))
		return -errno;
	/* chains from the IBS driver begin with perf's marker for user or kernel */
	for (int i = 0; i < depth && addresses[i]; i++)
		if (addresses[i] < (__u64)PERF_CONTEXT_MAX)
			addresses[n++] = addresses[i];
	return n;
}

int sampler_prog_fd(const struct sampler *s)
{
	return s->prog_fd;
}

const struct sampler_memory *sampler_memory_used(const struct sampler *s)
{
	return &s->memory;
}

bool sampler_reads_direct(const struct sampler *s)
{
	return s->direct;
}

int sampler_twin_fd(const struct sampler *s)
{
	return s->twin.addr ? bpf_program__fd(s->skel->progs.ibs_op_twin) : -EINVAL;
}

struct ibs_twin_area *sampler_twin_area(const struct sampler *s)
{
	return s->twin.addr;
}

void sampler_close(struct sampler *s)
{
	if (!s)
		return;
	perf_events_close(s->events);
	FOR_COUNTERS(s, p)
	perf_events_close(*p);
	rings_close(s->rings);
	bpf_link__destroy(s->fork_link);
	select_close(&s->select);
	unmap(&s->state_map);
	unmap(&s->series);
	unmap(&s->slot_owners);
	unmap(&s->records);
	unmap(&s->hot_lines);
	unmap(&s->tgids);
	unmap(&s->tids);
	unmap(&s->twin);
	free(s->slots_seen);
	slab_list_free(&s->slab_names);
	ibs_op_bpf__destroy(s->skel);
	free(s);
}
