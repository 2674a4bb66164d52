// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "perf.h"

#include "cpu_event.h"
#include "base/rlimit.h"

#include <bpf/bpf.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <time.h>
#include <unistd.h>

#define STAND_TRIES 5
#define STAND_MS    10

/*
 * Check whether events that look stalled really are. A guest's clock can stall for a tick, and longer
 * if the host is late, so wait until other events advance.
 */
static void confirm_stalled(struct perf_events *pe)
{
	const struct timespec wait = { .tv_nsec = STAND_MS * 1000000 };
	struct perf_events_total unused = {};
	size_t n = 1;

	for (int i = 0; n && i < STAND_TRIES; i++) {
		if (i)
			nanosleep(&wait, NULL);
		n = 0;
		for (size_t k = 0; k < pe->n; k++) {
			struct cpu_event *ev = &pe->ev[k];

			if (ev->stalled)
				ev->stalled = cpu_event_read(pe, ev, &unused) &&
					      ev->enabled_ns == ev->since_ns;
			n += ev->stalled;
		}
	}
}

int perf_events_open(const struct perf_event_attr *attr, const unsigned int *cpus, size_t n_cpus,
		     int cgroup, const char *event, const struct perf_event_attr *second,
		     struct perf_events **out, struct err *err)
{
	struct perf_events *pe = xcalloc(1, sizeof(*pe));
	int ret = 0;

	pe->cgroup = cgroup >= 0 ? fcntl(cgroup, F_DUPFD_CLOEXEC, 0) : -1;
	pe->ev = xcalloc(n_cpus, sizeof(*pe->ev));
	pe->event = xstrdup(event ?: "the event");
	pe->attr = *attr;
	/* enabled after a program is attached: earlier samples would be lost */
	pe->attr.disabled = 1;
	if (second) {
		pe->second = *second;
		pe->attr.read_format |= PERF_FORMAT_GROUP;
	}
	pe->prog_fd = -1;
	pe->closed.exact = true;
	/* a file and a link or another file per CPU, and a clock: 768 CPUs exceed the usual limit of 1024 */
	rlimit_files(3 * n_cpus);
	for (; pe->n < n_cpus && !ret; pe->n++) {
		pe->ev[pe->n] = CLOSED_EVENT(cpus[pe->n]);
		ret = cpu_event_open(pe, &pe->ev[pe->n], err);
	}
	if (!ret && !pe->n_open)
		ret = err_set(err, -ENODEV, "none of the %zu selected CPUs is online", n_cpus);
	if (ret)
		goto fail;
	*out = pe;
	return 0;
fail:
	perf_events_close(pe);
	return ret;
}

int perf_events_attach(struct perf_events *pe, int prog_fd, bool use_link, struct err *err)
{
	int ret = 0;

	pe->prog_fd = prog_fd;
	pe->use_link = use_link;
	for (size_t i = 0; i < pe->n && !ret; i++)
		if (pe->ev[i].fd >= 0)
			ret = cpu_event_attach(pe, &pe->ev[i], err);
	return ret;
}

void perf_events_pin_links(struct perf_events *pe, const char *dir)
{
	pe->pin_dir = dir;
	for (size_t i = 0; i < pe->n; i++)
		cpu_event_pin(pe, &pe->ev[i]);
}

bool perf_events_mark(const struct perf_events *pe,
		      void (*fn)(void *ctx, unsigned int cpu, __u32 link, __u32 rest), void *ctx,
		      __u64 *samples)
{
	const __u64 period = pe->attr.sample_period;
	bool known = !pe->attr.freq && period && period <= 1ULL << 32 && pe->cgroup < 0 &&
		     pe->closed.exact;

	*samples = pe->closed.samples;
	for (size_t i = 0; i < pe->n && known; i++) {
		const struct cpu_event *ev = &pe->ev[i];

		if (ev->fd < 0)
			continue;
		known = ev->link_id;
		*samples += ev->samples_before - ev->counted_before / period;
		fn(ctx, ev->cpu, ev->link_id, ev->counted_before % period);
	}
	return known;
}

void perf_events_let_end(struct perf_events *pe)
{
	pe->ends = true;
}

unsigned int perf_events_check_links(struct perf_events *pe, unsigned int *missing)
{
	unsigned int repaired = 0;

	*missing = 0;
	for (size_t i = 0; i < pe->n; i++) {
		if (cpu_event_is_pinned(pe, &pe->ev[i]))
			continue;
		if (cpu_event_pin(pe, &pe->ev[i]))
			++*missing;
		else
			repaired++;
	}
	pe->pin_warned = *missing;
	if (repaired)
		log_warn("%u link%s in %s %s removed or replaced; the same ones are pinned there "
			 "again",
			 repaired, repaired > 1 ? "s" : "", pe->pin_dir,
			 repaired > 1 ? "were" : "was");
	return repaired;
}

bool perf_events_are_enabled(const struct perf_events *pe)
{
	return pe->enabled;
}

void perf_events_disable(struct perf_events *pe)
{
	pe->enabled = false;
	for (size_t i = 0; i < pe->n; i++)
		if (pe->ev[i].fd >= 0)
			ioctl(pe->ev[i].fd, PERF_EVENT_IOC_DISABLE, 0);
}

/*
 * Disable first: the kernel detaches the program some milliseconds before it closes the event, and
 * samples in between would be neither seen nor counted.
 */
static void retire(struct perf_events *pe, struct cpu_event *ev)
{
	ioctl(ev->fd, PERF_EVENT_IOC_DISABLE, 0);
	cpu_event_read(pe, ev, &pe->closed);
	pe->throttled += perf_ring_throttled(ev->ring);
	cpu_event_close(pe, ev);
}

/* Returns 0 if the CPU is offline, too. */
static int revive(struct perf_events *pe, struct cpu_event *ev, struct err *err)
{
	int ret = cpu_event_open(pe, ev, err);

	if (ret || ev->fd < 0)
		return ret;
	if (pe->prog_fd >= 0)
		ret = cpu_event_attach(pe, ev, err);
	if (!ret)
		cpu_event_pin(pe, ev);
	if (!ret && pe->enabled)
		ret = cpu_event_enable(pe, ev, err);
	if (ret)
		cpu_event_close(pe, ev);
	return ret;
}

/*
 * While an event is disabled, it does not show that its CPU was offline. If so, the event is on
 * none of the kernel's lists any more: enabled again, it would look alive and never sample.
 */
static int renew(struct perf_events *pe, struct cpu_event *ev, struct err *err)
{
	retire(pe, ev);
	return revive(pe, ev, err);
}

/* @again: for events that were enabled before */
static int enable(struct perf_events *pe,
		  int (*again)(struct perf_events *pe, struct cpu_event *ev, struct err *err),
		  struct err *err)
{
	int ret = 0;

	if (pe->enabled)
		return 0;
	pe->enabled = true;
	for (size_t i = 0; i < pe->n; i++) {
		struct cpu_event *ev = &pe->ev[i];

		if (ev->fd >= 0)
			ret = (ev->begun ? again(pe, ev, err) : cpu_event_enable(pe, ev, err))
				      ?: ret;
	}
	return ret;
}

int perf_events_enable(struct perf_events *pe, struct err *err)
{
	return enable(pe, renew, err);
}

static void went_offline(struct perf_events *pe, struct cpu_event *ev)
{
	retire(pe, ev);
	pe->closed.went++;
	if (pe->attr.sample_period) /* a counter accompanies an event, which is reported */
		log_info("cpu %u went offline", ev->cpu);
}

static int came_online(struct perf_events *pe, struct cpu_event *ev, struct err *err)
{
	int ret = revive(pe, ev, err);

	if (ret || ev->fd < 0)
		return ret;
	pe->closed.came++;
	if (pe->attr.sample_period)
		log_info("cpu %u came online and is being sampled", ev->cpu);
	return 0;
}

/* Replace the event by one with another period; on failure it stays. */
static int replace(struct perf_events *pe, struct cpu_event *ev, __u64 period, struct err *err)
{
	const __u64 before = pe->attr.sample_period;
	struct cpu_event old = *ev;
	int ret;

	ioctl(old.fd, PERF_EVENT_IOC_DISABLE, 0);
	cpu_event_unpin(pe, &old);
	*ev = CLOSED_EVENT(old.cpu);
	pe->attr.sample_period = period;
	ret = revive(pe, ev, err);
	pe->attr.sample_period = before;
	if (ret) {
		*ev = old;
		cpu_event_pin(pe, ev);
		if (pe->enabled)
			ioctl(ev->fd, PERF_EVENT_IOC_ENABLE, 0);
		return ret;
	}
	/* the pin now belongs to the new event */
	if (old.link_fd >= 0)
		close(old.link_fd);
	old.link_fd = -1;
	retire(pe, &old);
	return 0;
}

/* @ev is disabled: take the next sample after @period, whatever is left of the current one. */
static int begin_period(struct perf_events *pe, struct cpu_event *ev, __u64 period, struct err *err)
{
	struct perf_events_total t = {};

	if (!cpu_event_read(pe, ev, &t))
		return err_set(err, -EIO, "cpu %u: the event's count cannot be read", ev->cpu);
	if (ioctl(ev->fd, PERF_EVENT_IOC_PERIOD, &period))
		return err_set(err, -errno, "cpu %u: the kernel rejects a period of %llu: %s",
			       ev->cpu, period, strerror(errno));
	ev->samples_before = t.samples;
	ev->counted_before = t.counted;
	return 0;
}

/* @ev is disabled, and was enabled before. */
static int resume(struct perf_events *pe, struct cpu_event *ev, struct err *err)
{
	const __u64 period = pe->attr.freq ? 0 : pe->attr.sample_period;
	int ret = period ? begin_period(pe, ev, period, err) : 0;

	if (!ret && ioctl(ev->fd, PERF_EVENT_IOC_ENABLE, 0))
		ret = err_set(err, -errno, "cpu %u: cannot enable the event: %s", ev->cpu,
			      strerror(errno));
	ev->fresh = false; /* read before it was enabled */
	return ret;
}

int perf_events_resume(struct perf_events *pe, struct err *err)
{
	return enable(pe, resume, err);
}

/* An enabled event that has stalled: its CPU went offline, and may be back. */
static int return_online(struct perf_events *pe, struct cpu_event *ev, __u64 period,
			 struct err *err)
{
	const __u64 before = pe->attr.sample_period;
	int ret;

	went_offline(pe, ev);
	pe->attr.sample_period = period;
	ret = came_online(pe, ev, err);
	pe->attr.sample_period = before;
	return ret;
}

/*
 * pe->attr has the current period. A software clock event forever reports the period it was opened
 * with (Linux kernel/events/core.c, perf_swevent_init_hrtimer()), so it is replaced; others are
 * disabled during the change.
 */
static int change_period(struct perf_events *pe, struct cpu_event *ev, __u64 period,
			 struct err *err)
{
	const bool stalled = ev->stalled;
	int ret;

	ev->stalled = false;
	if (pe->attr.type == PERF_TYPE_SOFTWARE)
		return replace(pe, ev, period, err);
	if (stalled)
		return return_online(pe, ev, period, err);
	ioctl(ev->fd, PERF_EVENT_IOC_DISABLE, 0);
	ret = begin_period(pe, ev, period, err);
	if (pe->enabled)
		ioctl(ev->fd, PERF_EVENT_IOC_ENABLE, 0);
	return ret;
}

/* Mark events whose CPU was offline since the last check: enabled again they would look alive. */
static void find_stalled(struct perf_events *pe)
{
	struct perf_events_total unused = {};

	for (size_t i = 0; i < pe->n; i++) {
		struct cpu_event *ev = &pe->ev[i];

		ev->stalled = pe->enabled && ev->fd >= 0 && cpu_event_read(pe, ev, &unused);
		ev->since_ns = ev->enabled_ns;
	}
	confirm_stalled(pe);
}

/* Renew all events. Report CPUs that were offline: the next check could not detect it. */
static int renew_all(struct perf_events *pe, struct err *err)
{
	int ret = 0;

	for (size_t i = 0; i < pe->n; i++) {
		struct cpu_event *ev = &pe->ev[i];
		const bool stalled = ev->stalled;

		ev->stalled = false;
		if (ev->fd >= 0)
			ret = (stalled ? return_online(pe, ev, pe->attr.sample_period, err)
				       : renew(pe, ev, err))
				      ?: ret;
	}
	return ret;
}

int perf_events_renew(struct perf_events *pe, struct err *err)
{
	find_stalled(pe);
	return renew_all(pe, err);
}

int perf_events_set_cgroup(struct perf_events *pe, int cgroup, struct err *err)
{
	struct err ignored;
	int ret;

	find_stalled(pe);
	if (pe->cgroup >= 0) {
		pe->closed.exact = false;
		close(pe->cgroup);
	}
	pe->cgroup = cgroup >= 0 ? fcntl(cgroup, F_DUPFD_CLOEXEC, 0) : -1;
	ret = renew_all(pe, err);
	if (ret && pe->cgroup >= 0) {
		close(pe->cgroup);
		pe->cgroup = -1;
		for (size_t i = 0; i < pe->n; i++)
			(pe->ev[i].fd < 0 ? revive : renew)(pe, &pe->ev[i], &ignored);
	}
	return ret;
}

bool perf_events_has_cgroup(const struct perf_events *pe)
{
	return pe->cgroup >= 0;
}

int perf_events_set_period(struct perf_events *pe, __u64 period, struct err *err)
{
	const __u64 old = pe->attr.sample_period;
	struct err ignored;
	size_t n = 0;
	int ret = 0;

	if (pe->attr.type != PERF_TYPE_SOFTWARE)
		find_stalled(pe);
	for (; n < pe->n && !ret; n++)
		if (pe->ev[n].fd >= 0)
			ret = change_period(pe, &pe->ev[n], period, err);
	pe->attr.sample_period = period;
	if (!ret)
		return 0;
	for (size_t i = 0; i + 1 < n; i++)
		if (pe->ev[i].fd >= 0)
			change_period(pe, &pe->ev[i], old, &ignored);
	pe->attr.sample_period = old;
	return ret;
}

__u64 perf_events_period(const struct perf_events *pe)
{
	return pe->attr.freq ? 0 : pe->attr.sample_period;
}

/* Mark events whose CPU was offline since the last check: during a suspend all but one are. */
static void find_returned(struct perf_events *pe, const struct cpulist *online)
{
	struct perf_events_total unused = {};

	for (size_t i = 0; i < pe->n; i++) {
		struct cpu_event *ev = &pe->ev[i];

		ev->stalled = false;
		if (!pe->enabled || ev->fd < 0 || !cpulist_has(online, ev->cpu))
			continue;
		if (!ev->fresh)
			cpu_event_read(pe, ev, &unused);
		ev->since_ns = ev->followed_ns;
		ev->stalled = ev->fresh && ev->enabled_ns == ev->followed_ns;
	}
	confirm_stalled(pe);
}

int perf_events_follow(struct perf_events *pe, const struct cpulist *online, struct err *err)
{
	int ret = 0;

	find_returned(pe, online);
	for (size_t i = 0; i < pe->n; i++) {
		struct cpu_event *ev = &pe->ev[i];
		bool is = cpulist_has(online, ev->cpu), stalled = ev->stalled;

		ev->stalled = ev->fresh = false;
		ev->followed_ns = ev->enabled_ns;
		if (ev->fd >= 0 && (!is || stalled))
			went_offline(pe, ev);
		if (is && ev->fd < 0)
			ret = came_online(pe, ev, err) ?: ret;
	}
	return ret;
}

size_t perf_events_n(const struct perf_events *pe)
{
	return pe->n_open;
}

void perf_events_read(struct perf_events *pe, struct perf_events_total *out)
{
	*out = pe->closed;
	out->cpus = pe->n_open;
	for (size_t i = 0; i < pe->n; i++)
		if (pe->ev[i].fd >= 0)
			cpu_event_read(pe, &pe->ev[i], out);
}

void perf_events_shares(const struct perf_events *pe,
			void (*fn)(void *ctx, unsigned int cpu, const struct perf_share *now),
			void *ctx)
{
	for (size_t i = 0; i < pe->n; i++) {
		const struct cpu_event *ev = &pe->ev[i];

		if (ev->fd >= 0)
			fn(ctx, ev->cpu,
			   &(struct perf_share){ ev->own_ns, ev->running_ns, ev->counted });
	}
}

int perf_events_realign(struct perf_events *pe, bool *enabled, struct err *err)
{
	int ret;

	find_stalled(pe);
	*enabled = pe->enabled;
	perf_events_disable(pe);
	ret = renew_all(pe, err);
	pe->closed.exact = true;
	return ret;
}

__u64 perf_events_throttled(struct perf_events *pe)
{
	for (size_t i = 0; i < pe->n; i++)
		pe->throttled += perf_ring_throttled(pe->ev[i].ring);
	return pe->throttled;
}

void perf_events_close(struct perf_events *pe)
{
	if (!pe)
		return;
	for (size_t i = 0; i < pe->n; i++)
		cpu_event_close(pe, &pe->ev[i]);
	if (pe->cgroup >= 0)
		close(pe->cgroup);
	free(pe->event);
	free(pe->ev);
	free(pe);
}
