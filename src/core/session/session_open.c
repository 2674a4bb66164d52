// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* A session: opened, changed, closed. */
#include "session_private.h"

#include "base/exit_status.h"
#include "cgroup/container.h"
#include "perf/perf.h"
#include "select/selection.h"
#include "base/text.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct session *session_new(void)
{
	return xcalloc(1, sizeof(struct session));
}

void session_free(struct session *s)
{
	if (s)
		session_close(s);
	free(s);
}

/*
 * What is sampled, and its memory. On a terminal, tables and screens say what matters of it in their own
 * head; a log has it.
 */
static void announce(const struct session_event *e)
{
	const struct sampler_memory *m = sampler_memory_used(e->sampler);
	const size_t cpus = sampler_n_cpus(e->sampler);
	const bool brief =
		e->opts.output == SAMPLER_SERIES && !e->opts.pins && isatty(STDERR_FILENO);
	char of[64] = "";

	if (brief && !log_is_verbose())
		return;

	if (e->opts.output != SAMPLER_SERIES) {
		log_info("%s%s on %zu CPU%s, %.1f MiB of kernel memory with a ring of %u KiB for "
			 "each CPU, %s",
			 e->info.simulated ? "SIMULATED " : "", e->text, cpus, text_plural(cpus),
			 m->total / 1048576.0, m->ring_bytes >> 10,
			 sampler_reads_direct(e->sampler) ? "registers read in place"
							  : "registers read by copy");
		return;
	}
	if (m->shards < m->complexes)
		snprintf(of, sizeof(of), " (of %u core complexes)", m->complexes);
	log_info("%s%s on %zu CPU%s, %.1f MiB of kernel memory for %s groups in %u shard%s%s, %s",
		 e->info.simulated ? "SIMULATED " : "", e->text, cpus, text_plural(cpus),
		 m->total / 1048576.0, TEXT_COUNT(config_max_slots(e->opts.max_groups) - 1),
		 m->shards, text_plural(m->shards), of,
		 sampler_reads_direct(e->sampler) ? "registers read in place"
						  : "registers read by copy");
}

/* True if a process's id is a label, part of a record or selected by. */
static bool needs_pids(const struct sampler_opts *o)
{
	return o->output != SAMPLER_SERIES || o->by & (IBS_BY_PID | IBS_BY_TID) ||
	       o->sel.processes.n || o->sel.threads.n;
}

static int open_event(struct session *s, struct session_event *e, struct err *err)
{
	int ret;

	e->opts.cgroup = session_bound_cgroup(s, e);
	ret = sampler_open(&e->opts, &e->sampler, err);
	if (e->opts.cgroup)
		close(e->opts.cgroup);
	if (ret)
		return ret;
	running(s, e)->unbindable = running(s, e)->bound && !sampler_has_cgroup(e->sampler);
	announce(e);
	if (e == s->setup->event && needs_pids(&e->opts) && sampler_in_pid_namespace(e->sampler))
		log_info("this is not the host's PID namespace: processes of other namespaces have "
			 "pid 0 and no names; with --pid=host, a container sees them");
	return 0;
}

/* What the user should know about an event, apart from its samples. */
static void give_notice(const struct session *s, const struct session_event *e)
{
	const char *notice = e->info.simulated ? NULL : event_notice(e->spec, &s->setup->cpu);

	if (notice)
		log_info("%s", notice);
	if (*e->plan.no_strata)
		log_info("--strata: %s", e->plan.no_strata);
	if (e->plan.chosen)
		log_info("%s: the hardware drops most unselected ops without an interrupt; "
			 "`unseen` is then unknown; --plan program counts every sample",
			 e->text);
	if (e->opts.pins && e->opts.filter == EVENT_FILTER_HARDWARE && !e->plan.tags)
		log_warn("%s: estimates exclude ops that the hardware drops, so estimated ops are "
			 "too low",
			 e->text);
}

int session_open(struct session *s, const struct sampling_opts *o, struct err *err)
{
	int ret;

	session_close(s);
	ret = setup_new(o, &s->setup, &s->usage, err);
	if (ret)
		return ret;
	for_each_event (e, s)
		give_notice(s, e);
	ret = session_check_rate(s, err);
	ret = ret ?: session_prepare_command(s, err);
	ret = ret ?: session_open_tree(s, err);
	if (!ret)
		session_select_command(s);
	ret = ret ?: session_select_cgroups(s, err);
	for_each_event (e, s)
		ret = ret ?: open_event(s, e, err);
	return ret ?: session_strata_open(s, err);
}

void session_close(struct session *s)
{
	session_strata_close(s);
	if (s->setup)
		for_each_event (e, s)
			sampler_close(e->sampler);
	setup_free(s->setup);
	command_close(s->command);
	cgroup_tree_close(s->tree);
	cgroup_select_close(s->cgroups);
	container_names_close(s->names);
	free(s->command_pids);
	/* callers ask after a failed start; what was chosen holds for the next one */
	*s = (struct session){ .usage = s->usage, .kept = s->kept };
}

int session_start(struct session *s, struct err *err)
{
	int ret = 0;

	for_each_event (e, s)
		ret = ret
			      ?: s->strata ? session_strata_begin(s, err)
					   : sampler_start(e->sampler, err);
	if (ret || !s->command)
		return ret;
	ret = command_start(s->command, err);
	if (ret) {
		s->status = ret == -ENOENT ? EXIT_NOT_FOUND : EXIT_NOT_RUN;
		session_stop(s);
	}
	s->command_runs = !ret;
	return ret;
}

void session_stop(struct session *s)
{
	for_each_event (e, s)
		sampler_stop(e->sampler);
	if (s->strata)
		sampler_stop(session_strata_sampler(s));
}

void session_tick(struct session *s)
{
	for_each_event (e, s)
		sampler_tick(e->sampler);
	if (s->strata)
		sampler_tick(session_strata_sampler(s));
}

bool sampling_warn_other(const struct snapshot *interval)
{
	const bool other = interval->n_groups && interval->groups[0].other;

	if (other)
		log_warn("more groups than --max-groups: the rest is counted as 'other'");
	return other;
}

void session_warn(struct session *s, unsigned int n, const struct snapshot *interval)
{
	struct running *r = &s->running[n];
	const struct session_event *e = &s->setup->event[n];
	char users[256], text[256];

	if (interval->pmu.throttled && !r->warned_throttled) {
		r->warned_throttled = true;
		log_warn("the kernel throttled sampling: use a longer period (-c) or a higher "
			 "kernel.perf_event_max_sample_rate");
	}
	if (interval->pmu.running_ns < interval->pmu.enabled_ns && !r->warned_shared) {
		r->warned_shared = true;
		log_warn(
			"the event was on the PMU %.1f%% of the time: another user of %s shares it "
			"(%s); estimates are scaled up%s, and the number of missed samples is "
			"unknown",
			100.0 * interval->pmu.running_ns / interval->pmu.enabled_ns, e->spec->pmu,
			perf_users("", users, sizeof(users)) ? users : "perf, another ibscope",
			e->opts.count_ops ? ""
					  : ", as if it had the same share and period on all CPUs "
					    "(--plan program does not need that)");
	}
	if (!r->warned_rate && session_rate_warning(s, n, interval, text, sizeof(text))) {
		r->warned_rate = true;
		log_warn("%s", text);
	}
	if (!r->warned_other)
		r->warned_other = sampling_warn_other(interval);
}

/* --- live changes --- */

static bool same_texts(char *const *a, size_t n_a, char *const *b, size_t n_b)
{
	for (size_t i = 0; n_a == n_b && i < n_a; i++)
		if (strcmp(a[i], b[i]))
			return false;
	return n_a == n_b;
}

static bool same_pids(const struct selected_pids *a, const struct selected_pids *b)
{
	return a->n == b->n && a->but == b->but &&
	       (!a->n || !memcmp(a->pids, b->pids, a->n * sizeof(*a->pids)));
}

unsigned int session_apply_needs(const struct session *s, const struct sampling_opts *o)
{
	const struct select_options *a = &s->setup->options.select, *b = &o->select;
	unsigned int live = 0;

	if (a->sel.min_lat != b->sel.min_lat || a->sel.max_lat != b->sel.max_lat)
		live |= SAMPLER_LIVE_LATENCY;
	if (!same_pids(&a->sel.processes, &b->sel.processes))
		live |= SAMPLER_LIVE_PROCESSES;
	if (!same_texts(a->cgroups, a->n_cgroups, b->cgroups, b->n_cgroups) ||
	    !same_texts(a->containers, a->n_containers, b->containers, b->n_containers))
		live |= SAMPLER_LIVE_CGROUPS;
	return live;
}

/* Complete a setup with what is open. Return: whether the samplers can change to it. */
static bool take_over(struct session *s, struct setup *to, unsigned int live)
{
	bool can = !s->command && to->options.n_events == s->setup->options.n_events;

	for (unsigned int i = 0; can && i < to->options.n_events; i++) {
		const struct session_event *old = &s->setup->event[i];
		struct session_event *e = &to->event[i];
		bool fixed = old->info.period && e->info.period;

		e->sampler = old->sampler;
		e->opts.cgroup_controller = old->opts.cgroup_controller;
		e->opts.sel.live = old->opts.sel.live;
		e->opts.count_ops = old->opts.count_ops;
		/* with other terms the event must be reopened */
		can = !(live & ~old->opts.sel.live) && !strcmp(e->text, old->text) &&
		      e->plan.strata == old->plan.strata &&
		      (fixed || old->info.period == e->info.period);
	}
	return can;
}

/* Change the samplers to s->setup. Changes that can fail for more reasons come first. */
static int change(struct session *s, const struct setup *from, unsigned int live, struct err *err)
{
	int ret = live & SAMPLER_LIVE_CGROUPS ? session_reselect_cgroups(s, err) : 0;

	for_each_event (e, s) {
		const struct selection *sel = &e->opts.sel;
		const struct session_event *old = &from->event[e - s->setup->event];

		if (!ret && live & SAMPLER_LIVE_PROCESSES)
			ret = sampler_set_processes(e->sampler, &sel->processes, err);
		if (!ret && live & SAMPLER_LIVE_LATENCY)
			ret = sampler_set_latency(e->sampler, sel->min_lat, sel->max_lat, err);
		if (!ret && e->info.period != old->info.period)
			ret = sampler_set_period(e->sampler, e->info.period, err);
	}
	return ret;
}

int session_apply(struct session *s, const struct sampling_opts *o, struct err *err)
{
	const unsigned int live = session_apply_needs(s, o);
	struct setup *old = s->setup, *fresh;
	struct err again;
	bool usage;
	int ret = setup_new(o, &fresh, &s->usage, err);

	if (ret)
		return ret;
	if (!take_over(s, fresh, live)) {
		setup_free(fresh);
		return 1;
	}
	s->setup = fresh;
	ret = change(s, old, live, err);
	if (ret) {
		s->setup = old;
		usage_error(&usage, ret);
		/* the first change failed: nothing was changed */
		if (ret < 0 && change(s, fresh, live, &again))
			log_error("cannot restore the previous selection: %s", again.text);
		s->usage = usage;
	}
	setup_free(ret ? fresh : old);
	return ret;
}

/* --- what is open --- */

bool session_usage(const struct session *s)
{
	return s->usage;
}

const struct sampling_opts *session_options(const struct session *s)
{
	return &s->setup->options;
}

bool session_is_open(const struct session *s)
{
	return s->setup && s->setup->event[s->setup->options.n_events - 1].sampler;
}

const struct session_event *session_event(const struct session *s, unsigned int n)
{
	return &s->setup->event[n];
}

const struct cpu_info *session_cpu(const struct session *s)
{
	return &s->setup->cpu;
}

struct cgroup_tree *session_tree(const struct session *s)
{
	return s->tree;
}

struct container_names *session_names(const struct session *s)
{
	return s->names;
}

int session_fd(const struct session *s)
{
	return cgroup_tree_fd(s->tree);
}

struct command *session_command(const struct session *s)
{
	return s->command;
}

__u64 session_command_cgroup(const struct session *s)
{
	return s->command_cgroup;
}
