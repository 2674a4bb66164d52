// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* The BPF object of a sampler: its constants, the sizes of its maps, the program, the load. */
#include "constants/constants.h"
#include "machine/kernel.h"
#include "machine/machine.h"
#include "sampler_private.h"

#include "ibs_op.skel.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <stddef.h>
#include <sys/resource.h>

static void set_config(struct sampler *s, const struct sampler_opts *opts)
{
	typeof(s->skel->rodata) cfg = s->skel->rodata;
	struct ibs_config c = { .ibs = opts->ibs,
				.cpu_mask = sampler_cpu_entries(s->possible_cpus) - 1,
				.by = sampler_group_by(opts),
				.max_slots = s->max_slots,
				.metric = opts->metric,
				.weigh = !opts->count_ops	     ? IBS_WEIGH_NO
					 : opts->miss_attr.size	     ? IBS_WEIGH_STRATA
					 : sampler_weighs_tags(opts) ? IBS_WEIGH_TAG
								     : IBS_WEIGH_PERIOD,
				.tlb = opts->tlb,
				.line_sets = opts->line_sets,
				.line_feed = opts->line_feed,
				.reach = opts->reach,
				.exposed = opts->exposed };

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
	/* kfuncs came later (v6.2), and nothing else tells */
	cfg->cfg_comm_padded = s->direct && s->features.task_btf;
	cfg->cfg_ring_overwrites = opts->history_bytes;
	cfg->cfg_record_raw = opts->output == SAMPLER_RECORDS_RAW;
	cfg->cfg_stacks = sampler_has_chains(opts);
	cfg->cfg_copy_bytes = opts->copy_bytes;
	cfg->cfg_stacks_kernel = opts->kernel_stacks;
	cfg->cfg_task_pt_regs = s->features.task_pt_regs;
	cfg->cfg_slabs = opts->slabs;
	if (opts->slabs) {
		cfg->cfg_vmemmap = kernel_symbol("vmemmap_base");
		cfg->cfg_page_offset = kernel_symbol("page_offset_base");
	}
	cfg->cfg_twin_forward = opts->output != SAMPLER_SERIES;
	cfg->cfg_pid_follow = opts->sel.follow;
	cfg->cfg_sim_seed = opts->sim_seed;
	cfg->cfg_sim_tasks = opts->sim_ops != SAMPLER_SIM_RANDOM;
	cfg->cfg_sim_contended = opts->sim_ops == SAMPLER_SIM_CONTENDED;
	kernel_pid_namespace("", (unsigned long long *)&cfg->cfg_pid_ns_dev,
			     (unsigned long long *)&cfg->cfg_pid_ns_ino);
	cfg->cfg_lease_disables = opts->pins && s->features.limit_after_prog;
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

static int set_stacks(struct bpf_map *map, __u32 entries, const struct sampler_opts *opts)
{
	int err = bpf_map__set_max_entries(map, entries);

	err = err ?: bpf_map__set_value_size(map, sampler_stack_depth() * sizeof(__u64));
	return err ?: bpf_map__set_autocreate(map, sampler_has_chains(opts));
}

int sampler_set_map_sizes(struct sampler *s, const struct sampler_opts *opts, struct err *e)
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
	err = err ?: set_stacks(m->stacks, IBS_STACKS, opts);
	err = err ?: set_stacks(m->more_stacks, IBS_MORE_STACKS, opts);
	err = err ?: bpf_map__set_autocreate(m->sim_lines, opts->source == SAMPLER_SIM);
	err = err ?: bpf_map__set_autocreate(m->sim_ops, opts->source == SAMPLER_SIM);
	err = err ?: bpf_map__set_autocreate(m->sim_queues, opts->source == SAMPLER_SIM);
	if (selects_processes(&opts->sel))
		err = err ?: bpf_map__set_max_entries(m->tgids, sampler_pid_blocks());
	if (selects_threads(&opts->sel))
		err = err ?: bpf_map__set_max_entries(m->tids, sampler_pid_blocks());
	return err ? err_set(e, err, "cannot size the BPF maps: %s", strerror(-err)) : 0;
}

struct bpf_program *sampler_choose_prog(struct sampler *s, const struct sampler_opts *opts)
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
int sampler_handle_programs(struct sampler *s)
{
	LIBBPF_OPTS(libbpf_prog_handler_opts, opts, .cookie = (long)s,
		    .prog_prepare_load_fn = use_constants);

	return libbpf_register_prog_handler(NULL, BPF_PROG_TYPE_PERF_EVENT, 0, &opts);
}

void sampler_put_fetch_layout(struct sampler *s)
{
	__u16 places[IBS_FETCH_LAYOUT_ENTRIES];
	__u32 zero = 0;

	config_fetch_layout((const struct ibs_config *)&s->skel->rodata->config, places);
	bpf_map_update_elem(bpf_map__fd(s->skel->maps.fetch_layout), &zero, places, 0);
}

static int load_error(const struct sampler *s, int error, struct err *err)
{
	const double mib = s->memory.total / 1048576.0;
	struct rlimit locked;

	if (error == -ENOMEM)
		return err_set(err, error,
			       "cannot allocate %.1f MiB for the BPF maps: raise the memory limit "
			       "of the cgroup (MemoryMax= of the unit), or lower --max-memory",
			       mib);
	/* libbpf raised the limit if it could; the kernel reports it as EPERM */
	if (error == -EPERM && !s->features.memcg_charge && !getrlimit(RLIMIT_MEMLOCK, &locked) &&
	    locked.rlim_cur != RLIM_INFINITY)
		return err_set(err, error,
			       "cannot allocate %.1f MiB for the BPF maps: before Linux 5.11 they "
			       "count as locked memory, and its limit is %llu KiB: raise it with "
			       "`ulimit -l unlimited`, or LimitMEMLOCK=infinity of a unit",
			       mib, (unsigned long long)locked.rlim_cur / 1024);
	return err_set(err, error,
		       "the kernel rejects the BPF program: %s; run again with -v for the "
		       "verifier log, and see `ibscope doctor` for privileges and lockdown",
		       strerror(-error));
}

int sampler_load(struct sampler *s, const struct sampler_opts *opts, struct bpf_program *prog,
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
	s->slabs_prog = s->skel->progs.ibs_slabs;
	ret = ibs_op_bpf__load(s->skel);
	if (ret)
		return load_error(s, ret, err);
	if (ibs_metric_of_fetch(opts->metric))
		sampler_put_fetch_layout(s);
	ret = opts->slabs ? sampler_slabs(s, NULL, NULL, err)
			  : 0; /* the program relies on its results */
	ret = ret ?: map_array(s->skel->maps.state, &s->state_map, err);
	if (ret)
		return ret;
	s->state = s->state_map.addr;
	if (!s->adopted) {
		s->state->control.next_slot = IBS_SLOT_OTHER + 1 + !sampler_group_by(opts);
		s->state->control.exposed = opts->exposed;
	}
	return 0;
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
