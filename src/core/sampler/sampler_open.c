// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "sampler.h"

#include "sampler_private.h"
#include "base/rlimit.h"
#include "machine/machine.h"

#include "ibs_op.skel.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Open files of the object with its maps and programs, and of the attempts that load it. */
#define BPF_FILES 35

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
		st[cpu].lapsed = 0; /* in adopted state, a lease may have ended */
		/* and another user may have had the PMU */
		st[cpu].share = IBS_SHARE_ONE;
		st[cpu].live &= ~IBS_LIVE_SHARED;
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
		.copy_bytes = opts->copy_bytes,
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

/* What follows from the options alone. */
static void describe(struct sampler *s, const struct sampler_opts *opts)
{
	s->max_slots = sampler_max_slots(opts);
	s->pinned = opts->pins;
	s->counts_periods = opts->source == SAMPLER_IBS && !opts->attr.freq && !opts->filter &&
			    !opts->miss_attr.size;
	s->filter = opts->miss_attr.size ? EVENT_FILTER_HARDWARE : opts->filter;
	s->by_freq = opts->attr.freq;
	s->simulated = opts->source != SAMPLER_IBS;
	s->count_ops = opts->count_ops;
	s->by = sampler_group_by(opts);
	s->unfolded = opts->unfolded;
	layout_init(&s->layout, opts->metric, opts->ibs.caps);
}

/* Load the program, into the maps that are pinned, if they are adopted. */
static int load_program(struct sampler *s, const struct sampler_opts *opts, struct err *err)
{
	int ret, handler = sampler_handle_programs(s);
	struct bpf_program *prog;

	errno = handler < 0 ? -handler : 0;
	s->skel = errno ? NULL : ibs_op_bpf__open();
	if (!s->skel) {
		ret = err_set(err, -errno, "cannot open the BPF object: %s", strerror(errno));
		goto out;
	}
	prog = sampler_choose_prog(s, opts);
	ret = opts->source == SAMPLER_TWIN ? check_twin(s, err) : 0;
	if (opts->copies && ibs_metric_of_fetch(opts->metric))
		ret = err_set(err, -EOPNOTSUPP,
			      "profiles consist of ibs_op samples; ibs_fetch samples cannot "
			      "be copied");
	ret = ret ?: sampler_set_map_sizes(s, opts, err);
	ret = ret ?: sampler_pins_adopt(s, opts, err);
	ret = ret ?: sampler_load(s, opts, prog, err);
	s->prog_fd = bpf_program__fd(prog);
out:
	if (handler >= 0)
		libbpf_unregister_prog_handler(handler);
	return ret;
}

static int map_memory(struct sampler *s, const struct sampler_opts *opts, struct err *err)
{
	bool known =
		!opts->attr.freq && opts->filter != EVENT_FILTER_HARDWARE && !opts->miss_attr.size;
	int ret;

	ret = map_array(s->skel->maps.series, &s->series, err);
	ret = ret ?: map_array(s->skel->maps.slot_owners, &s->slot_owners, err);
	ret = ret ?: open_lines(s, opts, err);
	ret = ret ?: open_rings(s, opts, err);
	ret = ret ?: select_open(s, opts, err);
	ret = ret ?: watch_forks(s, opts, err);
	ret = ret ?: select_set(&s->select, &opts->sel, err);
	if (ret)
		return ret;
	s->counts = (struct counts){ .series = s->series.addr,
				     .owners = s->slot_owners.addr,
				     .state = s->state,
				     .n_cpus = s->possible_cpus,
				     .outcomes = IBS_OUTCOME_N,
				     .shards = s->memory.shards,
				     .max_slots = s->max_slots,
				     .by = s->by,
				     .has_ops = opts->count_ops,
				     .period = known ? opts->attr.sample_period : 0,
				     .tlb = opts->tlb,
				     .layout = &s->layout };
	return 0;
}

/* Start the source of samples, which is disabled still. */
static int open_source(struct sampler *s, const struct sampler_opts *opts, struct err *err)
{
	switch (opts->source) {
	case SAMPLER_LOAD:
		return 0;
	case SAMPLER_TWIN:
		return map_array(s->skel->maps.twin, &s->twin, err);
	default:
		return sampler_events_open(s, opts, err);
	}
}

int sampler_open(const struct sampler_opts *opts, struct sampler **out, struct err *err)
{
	struct sampler *s = xcalloc(1, sizeof(*s));
	struct topology *topo = NULL;
	int ret, n;

	libbpf_set_print(libbpf_log);
	describe(s, opts);
	ret = rlimit_need_files(BPF_FILES + opts->n_cpus, err);
	if (ret)
		goto fail;
	n = libbpf_num_possible_cpus();
	if (n < 0) {
		ret = err_set(err, n, "cannot read the possible CPUs: %s", strerror(-n));
		goto fail;
	}
	s->possible_cpus = n;
	topo = topology_open("", s->possible_cpus);
	ret = sampler_memory(opts, topology_n_complexes(topo), &s->memory, err)
		      ?: kernel_features_probe(&s->features, err);
	if (ret)
		goto fail;
	s->direct = s->features.direct_read && !opts->probe_read;
	ret = load_program(s, opts, err) ?: map_memory(s, opts, err);
	if (ret)
		goto fail;
	place_cpus(s, opts, topo);
	sampler_share_open(s);
	sampler_fold_reserve(s, opts);
	ret = sampler_pins_resume(s, opts, err) ?: sampler_strata_leave(s, err) ?: open_source(s, opts, err) ?: sampler_pins_put(s, opts, err);
	if (ret)
		goto fail;
	topology_close(topo);
	*out = s;
	return 0;
fail:
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
	const struct bpf_map *map =
		id < IBS_STACKS ? s->skel->maps.stacks : s->skel->maps.more_stacks;
	int depth = sampler_stack_depth(), n = 0;
	__u32 key = id < IBS_STACKS ? id : id - IBS_STACKS;

	memset(addresses, 0, depth * sizeof(*addresses));
	if (bpf_map_lookup_elem(bpf_map__fd(map), &key, addresses))
		return -errno;
	/* chains from the IBS driver begin with perf's marker for user or kernel */
	for (int i = 0; i < depth && addresses[i]; i++)
		if (addresses[i] < (__u64)PERF_CONTEXT_MAX)
			addresses[n++] = addresses[i];
	return n;
}

/* The next key is asked for before its predecessor is gone, since the walk goes on from a key that exists. */
static void empty_stacks(const struct bpf_map *map)
{
	int fd = bpf_map__fd(map);
	__u32 key, next;
	bool any;

	if (fd < 0)
		return;
	any = !bpf_map_get_next_key(fd, NULL, &next);
	while (any) {
		key = next;
		any = !bpf_map_get_next_key(fd, &key, &next);
		bpf_map_delete_elem(fd, &key);
	}
}

void sampler_forget_stacks(struct sampler *s)
{
	empty_stacks(s->skel->maps.stacks);
	empty_stacks(s->skel->maps.more_stacks);
}

int sampler_prog_fd(const struct sampler *s)
{
	return s->prog_fd;
}

const struct sampler_memory *sampler_memory_used(const struct sampler *s)
{
	return &s->memory;
}

bool sampler_in_pid_namespace(const struct sampler *s)
{
	return s->skel->rodata->cfg_pid_ns_ino;
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
	sampler_strata_close(s);
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
	free(s->shares);
	slab_list_free(&s->slab_names);
	ibs_op_bpf__destroy(s->skel);
	free(s);
}
