// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* What a session samples, in intervals. */
#include "session_private.h"

#include "base/clock.h"

#include <math.h>
#include <poll.h>

/* Throttle records wait in a small buffer. */
#define TICK_S	      0.5
#define SHARED_TICK_S 0.1

/* How soon to tick: weights of samples follow what other users of the PMU do. */
static double tick_s(const struct session *s)
{
	for_each_event (e, s)
		if (sampler_is_shared(e->sampler))
			return SHARED_TICK_S;
	return TICK_S;
}

/*
 * Take turns between strata, and wait until @deadline. Checks signals and events once even if it has passed, as it has when printing takes
 * longer than an interval.
 *
 * Return: 0; 1 if a signal came or the command ended first; or a negative errno with @err.
 */
static int wait_until(struct session *s, const struct session_intervals *o, double deadline,
		      struct err *err)
{
	struct pollfd fds[] = {
		{ .fd = o->sigfd, .events = POLLIN },
		{ .fd = session_fd(s), .events = POLLIN },
		{ .fd = session_command_fd(s), .events = POLLIN },
	};
	double follow = 0;
	int ret;

	do {
		double left = fmax(fmin(deadline, session_strata_due(s)) - now_s(), 0);

		poll(fds, ARRAY_SIZE(fds), ceil(fmin(left, fmin(tick_s(s), follow)) * 1000));
		if (fds[0].revents)
			session_take_signal(o->signals, o->sigfd);
		if (o->signals->n)
			return 1;
		if (session_command_ended(s))
			return 1;
		follow = session_follow(s);
		ret = session_strata_turn(s, err);
		if (ret)
			return ret;
		session_tick(s);
	} while (now_s() < deadline);
	return 0;
}

/* Of strata: pass on the samples since the last call. */
static int end_strata(struct session *s, const struct session_intervals *o, struct err *err)
{
	struct snapshot interval;
	int ret = session_strata_end(s, &interval, err);

	if (ret)
		return ret;
	ret = o->print(o->arg, 0, &interval, &interval, err);
	session_warn(s, 0, &interval);
	snapshot_free(&interval);
	return ret;
}

/* Pass on the samples since @last. */
static int end_one(struct session *s, const struct session_intervals *o, unsigned int n,
		   struct snapshot *last, struct err *err)
{
	struct snapshot now, interval;
	int ret = sampler_snapshot(session_event(s, n)->sampler, &now, err);

	if (ret)
		return ret;
	snapshot_diff(&now, last, &interval);
	if (ledger_residual(&interval.ledger))
		ret = err_set(err, -EUCLEAN,
			      "the ledger does not balance by %lld samples; this is a "
			      "bug of ibscope, please report it",
			      ledger_residual(&interval.ledger));
	ret = ret ?: o->print(o->arg, n, &interval, &now, err);
	session_warn(s, n, &interval);
	snapshot_free(&interval);
	snapshot_free(last);
	*last = now;
	return ret;
}

int session_run_intervals(struct session *s, const struct session_intervals *o, struct err *err)
{
	const unsigned int n = session_options(s)->n_events;
	struct snapshot last[SESSION_EVENTS] = { 0 };
	double next;
	bool is_last = false;
	int ret = s->strata ? session_strata_start(s, o->interval_s, err) : 0;

	for (unsigned int e = 0; !ret && e < n; e++)
		ret = sampler_snapshot(session_event(s, e)->sampler, &last[e], err);
	ret = ret ?: session_start(s, err);
	next = now_s();
	for (uint64_t i = 1; !ret && !is_last; i++) {
		/* a late interval becomes longer; the next ones are not shortened */
		next = fmax(next + o->interval_s, now_s());
		ret = wait_until(s, o, o->interval_s ? next : INFINITY, err);
		if (ret < 0)
			break;
		is_last = ret || i == o->count;
		ret = 0;
		if (is_last)
			session_stop(s); /* the last snapshot is exact */
		for (unsigned int e = 0; !ret && e < n; e++)
			ret = s->strata ? end_strata(s, o, err) : end_one(s, o, e, &last[e], err);
	}
	for (unsigned int e = 0; e < n; e++)
		snapshot_free(&last[e]);
	return ret;
}
