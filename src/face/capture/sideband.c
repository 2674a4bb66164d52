// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "sideband.h"

#include "perf/perf.h"
#include "perf_data/perf_data_event.h"
#include "base/rlimit.h"

#include <linux/perf_event.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <time.h>
#include <unistd.h>

#define RING_PAGES	16
#define RING_PAGES_DATA 64    /* there are many more data mappings than code mappings */
#define RECORD_MAX	65536 /* perf_event_header.size has 16 bits */

#ifndef PERF_FORMAT_LOST
#define PERF_FORMAT_LOST (1U << 4) /* v6.0 */
#endif

struct sb_ring {
	unsigned int cpu;
	int fd;
	struct perf_event_mmap_page *page;
	__u64 head, tail; /* in this pass */
	__u64 time;	  /* of the record at `tail`; UINT64_MAX: none */
};

struct sideband {
	struct sb_ring *ring;
	size_t n;
	size_t ring_pages; /* for the next ring: earlier ones may have more */
	int epoll_fd;
	struct task_choice *choice;
	bool tells_lost;
	__u64 lost; /* from LOST records */
	struct perf_attrs attrs;
	struct perf_build_ids build_ids; /* none: records have their own */
	struct perf_convert convert;
	struct sb_ring *next;  /* ring with the earliest record; NULL: unknown */
	unsigned char *record; /* RECORD_MAX bytes */
};

/* What sample_id_all appends to each record, for the sample_type below. */
struct sb_id {
	__u32 pid, tid;
	__u64 time;
	__u32 cpu, pad;
};

static const struct perf_event_attr base = {
	.size = sizeof(base),
	.type = PERF_TYPE_SOFTWARE,
	.config = PERF_COUNT_SW_DUMMY,
	.sample_type = PERF_SAMPLE_TID | PERF_SAMPLE_TIME | PERF_SAMPLE_CPU,
	.sample_id_all = 1,
	.use_clockid = 1,
	.clockid = CLOCK_MONOTONIC,
	.mmap = 1,
	.mmap2 = 1,
	.comm = 1,
	.comm_exec = 1,
	.task = 1,
	.exclude_kernel = 1,
	.watermark = 1,
};

/* Open with all features of the kernel: loss from v6.0 on, build ids from v5.12. */
static int open_best(struct perf_event_attr *attr, unsigned int cpu)
{
	int fd = perf_open(attr, cpu);

	if (fd < 0 && errno == EINVAL && attr->read_format) {
		attr->read_format = 0;
		fd = perf_open(attr, cpu);
	}
	if (fd < 0 && errno == EINVAL && attr->build_id) {
		attr->build_id = 0;
		fd = perf_open(attr, cpu);
	}
	return fd;
}

/* Without privilege locked memory is limited: smaller buffers are better than none. */
static int map_ring(struct sideband *sb, struct sb_ring *ring, struct err *err)
{
	for (; sb->ring_pages; sb->ring_pages /= 2) {
		ring->page = perf_ring_map(ring->fd, sb->ring_pages);
		if (ring->page)
			return 0;
		if (errno != EPERM)
			break;
	}
	return err_set(err, -errno,
		       "cpu %u: no buffer for names and maps of processes: %s; raise "
		       "kernel.perf_event_mlock_kb",
		       ring->cpu, strerror(errno));
}

static int open_cpu(struct sideband *sb, struct perf_event_attr *attr, unsigned int cpu,
		    struct err *err)
{
	struct epoll_event ev = { .events = EPOLLIN | EPOLLET };
	struct sb_ring *ring = &sb->ring[sb->n];
	int ret;

	ring->fd = open_best(attr, cpu);
	if (ring->fd < 0 && errno == ENODEV)
		return 0; /* went offline */
	if (ring->fd < 0)
		return err_set(err, -errno,
			       "cpu %u: cannot watch processes: %s; it needs CAP_PERFMON, or "
			       "kernel.perf_event_paranoid <= 0",
			       cpu, strerror(errno));
	ring->cpu = cpu;
	ring->time = UINT64_MAX;
	sb->n++;
	ret = map_ring(sb, ring, err);
	if (ret)
		return ret;
	if (epoll_ctl(sb->epoll_fd, EPOLL_CTL_ADD, ring->fd, &ev))
		return err_set(err, -errno, "cpu %u: cannot poll process events: %s", cpu,
			       strerror(errno));
	return 0;
}

int sideband_open(const struct sideband_opts *opts, struct sideband **out, struct err *err)
{
	struct perf_event_attr attr = base;
	struct sideband *sb = xcalloc(1, sizeof(*sb));
	int ret = 0;

	sb->ring_pages = opts->data ? RING_PAGES_DATA : RING_PAGES;
	sb->choice = opts->choice;
	rlimit_files(opts->n_cpus);
	sb->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	sb->ring = xcalloc(opts->n_cpus, sizeof(*sb->ring));
	sb->record = xrealloc(NULL, RECORD_MAX);
	if (sb->epoll_fd < 0)
		ret = err_set(err, -errno, "cannot watch processes: %s", strerror(errno));
	attr.cgroup = opts->cgroups;
	attr.mmap_data = opts->data;
	attr.build_id = 1;
	attr.read_format = PERF_FORMAT_LOST;
	attr.wakeup_watermark = RING_PAGES * sysconf(_SC_PAGESIZE) / 4;
	for (size_t i = 0; !ret && i < opts->n_cpus; i++)
		ret = open_cpu(sb, &attr, opts->cpus[i], err);
	sb->tells_lost = attr.read_format;
	sb->convert.build_ids = &sb->build_ids;
	perf_attrs_add(&sb->attrs, &attr, sizeof(attr), NULL, 0, NULL);
	if (ret)
		sideband_close(sb);
	else
		*out = sb;
	return ret;
}

void sideband_close(struct sideband *sb)
{
	if (!sb)
		return;
	for (size_t i = 0; i < sb->n; i++) {
		perf_ring_unmap(sb->ring[i].page);
		close(sb->ring[i].fd);
	}
	if (sb->epoll_fd >= 0)
		close(sb->epoll_fd);
	perf_attrs_free(&sb->attrs);
	free(sb->ring);
	free(sb->record);
	free(sb);
}

int sideband_fd(const struct sideband *sb)
{
	return sb->epoll_fd;
}

/* Set ring->time to that of the record at the tail. */
static void ring_read_time(struct sb_ring *ring)
{
	struct perf_event_header h;
	struct sb_id id;

	ring->time = UINT64_MAX;
	if (ring->head - ring->tail < sizeof(h))
		return;
	perf_ring_copy(ring->page, ring->tail, &h, sizeof(h));
	if (h.size < sizeof(h) + sizeof(id)) {
		ring->tail = ring->head; /* invalid record: the kernel never does that */
		return;
	}
	perf_ring_copy(ring->page, ring->tail + h.size - sizeof(id), &id, sizeof(id));
	ring->time = id.time;
}

void sideband_refresh(struct sideband *sb)
{
	struct epoll_event woken[64];

	epoll_wait(sb->epoll_fd, woken, ARRAY_SIZE(woken), 0);
	for (size_t i = 0; i < sb->n; i++) {
		struct sb_ring *ring = &sb->ring[i];

		ring->head = perf_ring_head(ring->page);
		ring_read_time(ring);
	}
	sb->next = NULL;
}

__u64 sideband_peek(struct sideband *sb)
{
	if (!sb)
		return UINT64_MAX;
	if (!sb->next) {
		sb->next = &sb->ring[0];
		for (size_t i = 1; i < sb->n; i++)
			if (sb->ring[i].time < sb->next->time)
				sb->next = &sb->ring[i];
	}
	return sb->n ? sb->next->time : UINT64_MAX;
}

/* All processes of other PID namespaces have the id 0: their names and mappings would be of all of them. */
static bool is_of_other_namespace(const struct trace_event *ev)
{
	switch (ev->kind) {
	case TRACE_COMM:
		return !ev->comm.tgid;
	case TRACE_MMAP:
		return !ev->mmap.tgid;
	case TRACE_FORK:
	case TRACE_EXIT:
		return !ev->fork.tgid;
	default:
		return false;
	}
}

/* True if the process is selected. Adds its children. */
static bool is_selected(struct sideband *sb, const struct trace_event *ev)
{
	if (is_of_other_namespace(ev))
		return false;
	switch (ev->kind) {
	case TRACE_COMM:
		return task_choice_has(sb->choice, ev->comm.tgid);
	case TRACE_MMAP:
		return task_choice_has(sb->choice, ev->mmap.tgid);
	case TRACE_FORK:
		if (sb->choice->follow && task_choice_has(sb->choice, ev->fork.parent_tgid))
			task_choice_add(sb->choice, ev->fork.tgid);
		return task_choice_has(sb->choice, ev->fork.tgid);
	case TRACE_EXIT:
		return task_choice_has(sb->choice, ev->fork.tgid);
	default:
		return true;
	}
}

static bool parse(struct sideband *sb, const struct sb_ring *ring, __u16 size,
		  struct trace_event *ev)
{
	struct perf_record rec;

	perf_ring_copy(ring->page, ring->tail, sb->record, size);
	perf_record_set(&rec, sb->record, 0);
	if (!perf_is_event(&rec) ||
	    perf_convert(&sb->convert, sb->attrs.attr, &rec, ring->time, ev) != PERF_CONVERTED)
		return false;
	if (ev->kind == TRACE_LOST)
		sb->lost += ev->lost.n;
	return true;
}

bool sideband_next(struct sideband *sb, struct trace_event *ev)
{
	while (sideband_peek(sb) != UINT64_MAX) {
		struct sb_ring *ring = sb->next;
		struct perf_event_header h;
		bool wanted;

		perf_ring_copy(ring->page, ring->tail, &h, sizeof(h));
		wanted = parse(sb, ring, h.size, ev) && is_selected(sb, ev);
		ring->tail += h.size;
		perf_ring_done(ring->page, ring->tail);
		ring_read_time(ring);
		sb->next = NULL;
		if (wanted)
			return true;
	}
	return false;
}

__u64 sideband_lost(const struct sideband *sb)
{
	__u64 sum = 0;

	if (!sb->tells_lost)
		return sb->lost;
	for (size_t i = 0; i < sb->n; i++) {
		__u64 values[2]; /* count, lost */

		if (read(sb->ring[i].fd, values, sizeof(values)) == sizeof(values))
			sum += values[1];
	}
	return sum;
}

__u64 sideband_untold(struct sideband *sb)
{
	const __u64 told = sb ? sb->lost : 0, lost = sb ? sideband_lost(sb) : 0;

	if (lost <= told)
		return 0;
	sb->lost = lost;
	return lost - told;
}
