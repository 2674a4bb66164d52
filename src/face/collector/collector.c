// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "collector.h"

#include "collector_private.h"
#include "orphan.h"
#include "base/clock.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <systemd/sd-daemon.h>
#include <unistd.h>

#define TICK_S	       1
#define FOLD_EVERY_S   10
#define EARLY_S	       0.02 /* tasks due within this time are run now */
#define ACCEPT_EVERY_S 0.05 /* connections of users whose requests are on hold */

enum { FD_CONTROL, FD_USERS, FD_CGROUPS };

int collector_new(const struct collector_opts *opts, struct collector **out, struct err *err)
{
	struct collector *c = xcalloc(1, sizeof(*c));

	*out = c;
	c->opts = *opts;
	c->session = session_new();
	c->flight = flight_new();
	c->neighbours = neighbour_watch_new();
	c->stats_fd = -1;
	c->source = (struct settings_source){ .argc = opts->argc,
					      .argv = opts->argv,
					      .extra = opts->extra };
	return settings_read_config(&c->source, err)
		       ?: settings_parse(&c->source, &c->live, &c->set, err);
}

void collector_free(struct collector *c)
{
	if (!c)
		return;
	session_free(c->session);
	settings_close(&c->set);
	live_options_free(&c->live);
	served_lines_free(&c->lines);
	flight_free(c->flight);
	neighbour_watch_free(c->neighbours);
	free(c->source.config_text);
	free(c);
}

struct session *collector_session(const struct collector *c)
{
	return c->session;
}

const struct collector_settings *collector_settings(const struct collector *c)
{
	return &c->set;
}

void collector_help(const struct collector *c, FILE *f)
{
	settings_help(&c->source, f);
}

bool collector_usage_error(const struct collector *c)
{
	return !c->running && session_usage(c->session);
}

int collector_open(struct collector *c, struct err *err)
{
	struct pins *pins[COLLECTOR_EVENTS] = {};
	int ret = orphan_open(c->set.pin_dir, c->set.pin_mode, pins, err);

	for (int i = 0; i < COLLECTOR_EVENTS; i++)
		c->event[i].pins = pins[i];
	ret = ret ?: requests_open(c, err) ?: users_open(c, err);
	ret = ret ?: collector_begin(c, err);
	if (ret)
		return ret;
	c->next_tick_s = now_s();
	c->running = true;
	sd_notifyf(0, "READY=1\nSTATUS=%s%s%s%s",
		   opened(c->event)->info.simulated ? "SIMULATED " : "", opened(c->event)->text,
		   c->n_events > 1 ? "," : "", c->n_events > 1 ? opened(c->event + 1)->text : "");
	return 0;
}

/* --- work that others cause --- */

__u64 collector_work_begin(void)
{
	return clock_ns(CLOCK_PROCESS_CPUTIME_ID);
}

void collector_work_end(struct collector *c, enum ibs_work kind, __u64 began)
{
	work_limit_charge(&c->work, kind, clock_ns(CLOCK_PROCESS_CPUTIME_ID) - began, now_s());
}

void collector_set_push(struct collector *c, const struct reading_push *now)
{
	c->push = *now;
	c->pushes = true;
}

struct ibs_push_counts *collector_push_counts(struct collector *c)
{
	return &c->pushed;
}

double collector_work_wait(struct collector *c, enum ibs_work kind)
{
	return work_limit_wait(&c->work, kind, now_s());
}

/* Follow changes of cgroups, unless that has exceeded its CPU limit. */
static void follow_cgroups(struct collector *c, bool names)
{
	double wait_s = collector_work_wait(c, IBS_WORK_CGROUPS);
	__u64 began;

	if (wait_s > 0) {
		c->next_follow_s = fmax(c->next_follow_s, now_s() + wait_s);
		return;
	}
	began = collector_work_begin();
	for_each_event (e, c)
		if (names)
			collector_names_update(e);
	c->next_follow_s = now_s() + session_follow(c->session);
	collector_work_end(c, IBS_WORK_CGROUPS, began);
}

/* --- ticks --- */

static bool is_dead(void *arg, __u64 cgroup_id)
{
	const struct collector_event *e = arg;

	return cgroup_tree_died(session_tree(e->c->session), cgroup_id, e->c->set.grace_s * 1e9);
}

static void fold(struct collector_event *e)
{
	e->status.folded += sampler_fold(opened(e)->sampler, is_dead, e);
	e->status.displaced += sampler_make_room(opened(e)->sampler);
}

/* Log the unresolved names at the start and whenever their number changes. */
static void log_unresolved(struct collector_event *e)
{
	const __u32 n = e->status.unresolved;

	if (n && n != e->unresolved)
		log_warn("waiting for %u name%s of the selection: %s", n, n > 1 ? "s" : "",
			 pins_meta(e->pins)->unresolved);
	else if (e->unresolved && !n)
		log_info("all names of the selection exist now");
	e->unresolved = n;
}

static void run_flight(struct collector *c)
{
	struct ibs_meta_status *st = &c->event[0].status;
	const struct flight_slowest *slowest;
	__u64 n[IBS_FLIGHT_N];

	flight_tick(c->flight);
	st->flight_on &= IBS_FLIGHT_SLOWEST;
	slowest = flight_new_slowest(c->flight);
	if (slowest) {
		collector_put_slowest(&c->event[0], slowest);
		st->flight_on = IBS_FLIGHT_SLOWEST;
	}
	if (flight_counts(c->flight, n))
		st->flight_on |= IBS_FLIGHT_ON;
	else
		st->flight_on = 0;
	st->flight_written += n[IBS_FLIGHT_WRITTEN];
	st->flight_failed += n[IBS_FLIGHT_FAILED];
	st->flight_skipped += n[IBS_FLIGHT_SKIPPED];
}

static void judge_neighbours(struct collector *c)
{
	__u64 began;

	if (collector_work_wait(c, IBS_WORK_NEIGHBOURS) > 0)
		return;
	began = collector_work_begin();
	neighbour_watch_tick(c);
	collector_work_end(c, IBS_WORK_NEIGHBOURS, began);
}

void collector_dump_flight(struct collector *c)
{
	flight_signal(c->flight);
}

static int tick(struct collector *c, struct err *err)
{
	double now = now_s();
	struct err ignored;
	int ret = 0;

	collector_renew_lease(c); /* before the tick takes an event that ended for an offline CPU */
	session_tick(c->session);
	follow_cgroups(c, true);
	requests_log_rest(c, false);
	run_flight(c);
	judge_neighbours(c);
	if (now >= c->next_fold_s) {
		c->next_fold_s = now + fmin(FOLD_EVERY_S, c->set.grace_s);
		for_each_event (e, c)
			fold(e);
		cgroup_tree_forget_dead(session_tree(c->session), 2 * c->set.grace_s * 1e9);
	}
	if (now >= c->next_pins_s)
		collector_check_pins(c, &ignored);
	ret = ret ?: status_tick(c, now, err);
	if (!ret) /* both events select by the same names */
		log_unresolved(&c->event[0]);
	sd_notify(0, "WATCHDOG=1");
	return ret;
}

/* --- the loop --- */

static double turn_due(const struct collector *c)
{
	double due_s = INFINITY;

	for (unsigned int i = 0; i < c->n_events && !c->broken; i++)
		due_s = fmin(due_s, sampler_turn_due(opened(&c->event[i])->sampler));
	return due_s;
}

int collector_prepare(struct collector *c, struct pollfd fds[COLLECTOR_FDS])
{
	double wait_s = collector_work_wait(c, IBS_WORK_CGROUPS);
	double due_s = fmin(fmin(c->next_tick_s, c->next_step_s), turn_due(c));
	double users_s = collector_work_wait(c, IBS_WORK_USERS);
	int ms, control_ms = c->control ? control_timeout_ms(c->control) : -1;
	int users_ms = c->users ? control_timeout_ms(c->users) : -1;

	fds[FD_CGROUPS] = (struct pollfd){ .fd = wait_s <= 0 ? session_fd(c->session) : -1,
					   .events = POLLIN };
	fds[FD_CONTROL] =
		(struct pollfd){ .fd = c->control ? control_fd(c->control) : -1, .events = POLLIN };
	/*
	 * User requests beyond the limit wait, like other work that others cause. Connections are
	 * accepted meanwhile, so that one user's do not keep those of others out.
	 */
	fds[FD_USERS] = (struct pollfd){ .fd = c->users && !users_s ? control_fd(c->users) : -1,
					 .events = POLLIN };
	if (c->users && users_s > 0)
		users_ms = ceil(fmin(users_s, fmax(c->next_accept_s - now_s(), 0)) * 1000);
	if (users_ms >= 0 && (control_ms < 0 || users_ms < control_ms))
		control_ms = users_ms;
	due_s = fmin(due_s, wait_s > 0 ? now_s() + wait_s : c->next_follow_s);
	ms = ceil(fmax(due_s - now_s(), 0) * 1000);
	return control_ms >= 0 && control_ms < ms ? control_ms : ms;
}

static void answer(struct collector *c, struct control *socket, enum ibs_work kind)
{
	__u64 began = collector_work_begin();
	bool waits = socket && collector_work_wait(c, kind) > 0;

	if (!socket || (waits && now_s() < c->next_accept_s))
		return;
	if (waits)
		c->next_accept_s = now_s() + ACCEPT_EVERY_S;
	control_run(socket, !waits);
	collector_work_end(c, kind, began);
}

int collector_run(struct collector *c, const struct pollfd fds[COLLECTOR_FDS], struct err *err)
{
	const bool changed = fds[FD_CGROUPS].fd >= 0 && fds[FD_CGROUPS].revents;
	int ret = 0;

	if (!c->broken)
		served_lines_run(&c->lines, c->session, keeps_lines(c), &c->event[0].status.lines);
	answer(c, c->control, IBS_WORK_CONTROL);
	answer(c, c->users, IBS_WORK_USERS);
	if (c->broken) {
		*err = c->broken_err;
		return c->broken;
	}
	if (changed || now_s() >= c->next_follow_s)
		follow_cgroups(c, false);
	for_each_event (e, c)
		ret = ret ?: sampler_turn(opened(e)->sampler, err);
	if (!ret && now_s() >= c->next_step_s - EARLY_S)
		ret = budget_step(c, err);
	if (!ret && now_s() >= c->next_tick_s - EARLY_S) {
		ret = tick(c, err);
		/* in some milliseconds a container that is busy may have no sample */
		c->next_tick_s = due_again_s(c->next_tick_s, TICK_S, now_s());
	}
	return ret;
}

void collector_reload(struct collector *c)
{
	struct err err;
	bool usage;

	reload_options(c, &usage, &err);
}

int collector_finish(struct collector *c, int ret, struct err *err)
{
	struct err last;

	if (c->running && session_is_open(c->session)) {
		sd_notify(0, "STOPPING=1");
		session_stop(c->session);
		for_each_event (e, c)
			collector_names_update(e); /* groups since the last tick */
		if (status_update(c, now_s(), ret ? &last : err))
			ret = ret ?: -EUCLEAN;
	}
	requests_log_rest(c, true);
	control_close(c->control);
	users_close(c);
	budget_close(c);
	if (c->stats_fd >= 0)
		close(c->stats_fd);
	session_close(c->session);
	for (int i = COLLECTOR_EVENTS - 1; i >= 0; i--) {
		if (c->event[i].pins && c->set.unpin)
			pins_remove(c->event[i].pins);
		pins_close(c->event[i].pins);
	}
	return ret;
}
