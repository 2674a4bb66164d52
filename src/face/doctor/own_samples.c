// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "own_samples.h"

#include "base/err.h"
#include "base/std.h"
#include "event/event.h"
#include "perf/perf.h"

#include <errno.h>
#include <linux/perf_event.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#define PAGES	   64 /* of the ring: 2,500 samples */
#define RECORD_MAX 1024

struct own_samples {
	int fd;
	struct perf_event_mmap_page *ring;
	__u32 tid;
};

/* As the kernel writes it for PERF_SAMPLE_TID | PERF_SAMPLE_RAW. */
struct sample {
	struct perf_event_header header;
	__u32 pid, tid;
	__u32 bytes;
	unsigned char raw[];
};

int own_samples_open(const struct cpu_info *info, const char *event, uint64_t period,
		     unsigned int cpu, struct own_samples **out, struct err *err)
{
	const struct event_rate rate = { .has_period = true, .period = period / 16 * 16 };
	struct perf_event_attr attr;
	struct event_spec spec;
	struct own_samples *o;
	struct pmu *pmu;
	int ret;

	*out = NULL;
	ret = event_parse(event, &spec, err) ?: pmu_open("", spec.pmu, info, &pmu, err);
	if (ret)
		return ret;
	ret = event_attr(&spec, pmu, info, &rate, &attr, err);
	pmu_close(pmu);
	if (ret)
		return ret;
	attr.sample_type |= PERF_SAMPLE_TID;
	o = xcalloc(1, sizeof(*o));
	o->tid = gettid();
	o->fd = perf_open(&attr, cpu);
	if (o->fd < 0)
		ret = perf_open_explain(err, errno, cpu, event);
	else if (!(o->ring = perf_ring_map(o->fd, PAGES)))
		ret = err_set(err, -errno, "cannot map the buffer of samples: %s", strerror(errno));
	if (ret)
		own_samples_close(o);
	else
		*out = o;
	return ret;
}

void own_samples_close(struct own_samples *o)
{
	if (!o)
		return;
	perf_ring_unmap(o->ring);
	if (o->fd >= 0)
		close(o->fd);
	free(o);
}

int own_samples_start(struct own_samples *o, struct err *err)
{
	if (ioctl(o->fd, PERF_EVENT_IOC_ENABLE, 0))
		return err_set(err, -errno, "cannot start sampling: %s", strerror(errno));
	return 0;
}

bool own_samples_stop(struct own_samples *o, void (*fn)(void *ctx, const void *raw, size_t bytes),
		      void *ctx)
{
	union {
		struct sample s;
		unsigned char bytes[RECORD_MAX];
	} u;
	bool complete = true;
	__u64 at, head;

	ioctl(o->fd, PERF_EVENT_IOC_DISABLE, 0);
	head = perf_ring_head(o->ring);
	for (at = o->ring->data_tail; at + sizeof(u.s.header) <= head; at += u.s.header.size) {
		perf_ring_copy(o->ring, at, &u, sizeof(u.s.header));
		if (u.s.header.size < sizeof(u.s.header))
			break;
		if (u.s.header.type == PERF_RECORD_LOST || u.s.header.type == PERF_RECORD_THROTTLE)
			complete = false;
		if (u.s.header.type != PERF_RECORD_SAMPLE || u.s.header.size > sizeof(u) ||
		    u.s.header.size < sizeof(u.s))
			continue;
		perf_ring_copy(o->ring, at, &u, u.s.header.size);
		if (u.s.tid == o->tid && u.s.bytes <= u.s.header.size - sizeof(u.s))
			fn(ctx, u.s.raw, u.s.bytes);
	}
	perf_ring_done(o->ring, head);
	return complete;
}
