// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "cpu_event.h"

#include "perf.h"

#include <bpf/bpf.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#define RING_PAGES 1

static void map_ring(struct perf_events *pe, struct cpu_event *ev)
{
	ev->ring = perf_ring_map(ev->fd, RING_PAGES);
	if (ev->ring)
		return;
	if (!pe->ring_warned)
		log_warn("cpu %u: no ring buffer for throttle records: %s; throttling will not be "
			 "reported (raise kernel.perf_event_mlock_kb)",
			 ev->cpu, strerror(errno));
	pe->ring_warned = true;
}

int cpu_event_attach(const struct perf_events *pe, struct cpu_event *ev, struct err *err)
{
	struct bpf_link_info info = {};
	__u32 len = sizeof(info);
	int ret;

	if (pe->use_link) {
		ret = bpf_link_create(pe->prog_fd, ev->fd, BPF_PERF_EVENT, NULL);
		if (ret >= 0)
			ev->link_fd = ret;
		if (ret >= 0 && !bpf_obj_get_info_by_fd(ret, &info, &len))
			ev->link_id = info.id;
	} else {
		ret = ioctl(ev->fd, PERF_EVENT_IOC_SET_BPF, pe->prog_fd);
	}
	if (ret < 0)
		return err_set(err, -errno, "cpu %u: cannot attach the BPF program: %s; %s",
			       ev->cpu, strerror(errno),
			       errno == EMFILE ? "raise the open files limit (ulimit -n)"
					       : "it requires CAP_BPF and CAP_PERFMON");
	return 0;
}

static void pin_path(const struct perf_events *pe, const struct cpu_event *ev, char *out,
		     size_t size)
{
	snprintf(out, size, "%s/cpu%u", pe->pin_dir, ev->cpu);
}

int cpu_event_pin(struct perf_events *pe, struct cpu_event *ev)
{
	char path[512], aside[512];
	struct err err;
	int ret;

	if (!pe->pin_dir || ev->link_fd < 0)
		return 0;
	pin_path(pe, ev, path, sizeof(path));
	/* the directory has only links, or the next collector would take others for ours */
	snprintf(aside, sizeof(aside), "%.*s", (int)(strrchr(pe->pin_dir, '/') - pe->pin_dir),
		 pe->pin_dir);
	ret = pin_file_put(&ev->pin, ev->link_fd, path, aside, &err);
	if (ret && !pe->pin_warned)
		log_warn("%s; sampling of that CPU will end if the collector is killed", err.text);
	pe->pin_warned |= ret < 0;
	return ret;
}

bool cpu_event_is_pinned(const struct perf_events *pe, struct cpu_event *ev)
{
	char path[512];

	if (!pe->pin_dir || ev->link_fd < 0)
		return true;
	pin_path(pe, ev, path, sizeof(path));
	return pin_file_is(&ev->pin, path);
}

void cpu_event_unpin(const struct perf_events *pe, struct cpu_event *ev)
{
	char path[512];

	if (!pe->pin_dir || ev->link_fd < 0 || !cpu_event_is_pinned(pe, ev))
		return;
	pin_path(pe, ev, path, sizeof(path));
	unlink(path);
}

/* Enable for the first time; see renew(). */
int cpu_event_enable(const struct perf_events *pe, struct cpu_event *ev, struct err *err)
{
	if (pe->ends ? ioctl(ev->fd, PERF_EVENT_IOC_REFRESH, 1)
		     : ioctl(ev->fd, PERF_EVENT_IOC_ENABLE, 0))
		return err_set(err, -errno, "cpu %u: cannot enable the event: %s", ev->cpu,
			       strerror(errno));
	ev->fresh = false; /* read before it was enabled */
	ev->begun = true;
	return 0;
}

/* Returns 0 for an offline CPU, too: the event stays closed. */
int cpu_event_open(struct perf_events *pe, struct cpu_event *ev, struct err *err)
{
	int error;

	ev->fd = perf_open_cgroup(&pe->attr, ev->cpu, pe->cgroup, -1);
	if (ev->fd < 0 && errno == ENODEV)
		return 0;
	if (ev->fd < 0)
		return perf_open_explain(err, errno, ev->cpu, pe->event);
	if (pe->second.size)
		ev->second_fd = perf_open_cgroup(&pe->second, ev->cpu, pe->cgroup, ev->fd);
	if (pe->second.size && ev->second_fd < 0) {
		error = errno;
		close(ev->fd);
		ev->fd = -1;
		return error == ENODEV ? 0 : perf_open_explain(err, error, ev->cpu, pe->event);
	}
	if (pe->cgroup >= 0)
		ev->clock_fd = perf_open_clock(ev->cpu);
	pe->n_open++;
	if (pe->attr.sample_period)
		map_ring(pe, ev);
	return 0;
}

/* Add the counts of an event to @t. Return: false if it cannot be read. */
bool cpu_event_read(const struct perf_events *pe, struct cpu_event *ev, struct perf_events_total *t)
{
	struct {
		__u64 value, enabled, running;
	} r, clock;
	struct {
		__u64 n, enabled, running, value[2];
	} group;
	const bool alone = !pe->second.size;
	const ssize_t size = alone ? sizeof(r) : sizeof(group);

	if (read(ev->fd, alone ? (void *)&r : &group, size) != size) {
		t->exact = false;
		return false;
	}
	if (!alone) {
		r.value = group.value[0];
		r.enabled = group.enabled;
		r.running = group.running;
		t->second += group.value[1];
	}
	ev->enabled_ns = ev->own_ns = r.enabled;
	ev->running_ns = r.running;
	ev->counted = r.value;
	if (ev->clock_fd >= 0 && read(ev->clock_fd, &clock, sizeof(clock)) == sizeof(clock))
		ev->enabled_ns = clock.enabled;
	ev->fresh = true;
	t->enabled_ns += r.enabled;
	t->running_ns += r.running;
	t->counted += r.value;
	if (!pe->attr.freq && pe->attr.sample_period)
		t->samples += ev->samples_before +
			      (r.value - ev->counted_before) / pe->attr.sample_period;
	/* the count misses part of a period each time the event leaves the PMU */
	if (r.enabled != r.running || pe->cgroup >= 0)
		t->exact = false;
	return true;
}

void cpu_event_close(struct perf_events *pe, struct cpu_event *ev)
{
	if (ev->fd < 0)
		return;
	cpu_event_unpin(pe, ev);
	if (ev->link_fd >= 0)
		close(ev->link_fd);
	if (ev->clock_fd >= 0)
		close(ev->clock_fd);
	if (ev->second_fd >= 0)
		close(ev->second_fd);
	perf_ring_unmap(ev->ring);
	close(ev->fd);
	*ev = CLOSED_EVENT(ev->cpu);
	pe->n_open--;
}
