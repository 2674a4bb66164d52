// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "perf.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#define SEE_DOCTOR "see `ibscope doctor`"
#define PRIVILEGES                                                  \
	"sampling a whole CPU requires CAP_PERFMON (or root; with " \
	"kernel.perf_event_paranoid above 2 CAP_SYS_ADMIN), or "    \
	"kernel.perf_event_paranoid <= 0"
#define FILES "each CPU needs a file: raise the open files limit (ulimit -n)"

static const struct {
	int error;
	const char *verb; /* NULL: cannot open */
	const char *remedy;
} reasons[] = {
	{ EACCES, NULL, PRIVILEGES },
	{ EPERM, NULL, PRIVILEGES },
	{ EMFILE, NULL, FILES },
	{ ENFILE, NULL, FILES },
	{ EINVAL, "the kernel rejects",
	  "try without filter terms, or see `ibscope doctor` for what this kernel and CPU "
	  "support" },
	{ ENOENT, "the PMU does not support", SEE_DOCTOR },
	{ EOPNOTSUPP, "the PMU does not support", SEE_DOCTOR },
	{ ENODEV, "the PMU does not support", SEE_DOCTOR },
	{ EBUSY, "cannot share", "stop the other profiler" },
};

int perf_open(const struct perf_event_attr *attr, unsigned int cpu)
{
	return perf_open_cgroup(attr, cpu, -1, -1);
}

int perf_open_cgroup(const struct perf_event_attr *attr, unsigned int cpu, int cgroup, int leader)
{
	return syscall(SYS_perf_event_open, attr, cgroup, cpu, leader,
		       PERF_FLAG_FD_CLOEXEC | (cgroup >= 0 ? PERF_FLAG_PID_CGROUP : 0));
}

int perf_open_clock(unsigned int cpu)
{
	const struct perf_event_attr attr = {
		.size = sizeof(attr),
		.type = PERF_TYPE_SOFTWARE,
		.config = PERF_COUNT_SW_DUMMY,
		.read_format = PERF_FORMAT_TOTAL_TIME_ENABLED | PERF_FORMAT_TOTAL_TIME_RUNNING,
	};

	return perf_open(&attr, cpu);
}

int perf_open_explain(struct err *err, int error, unsigned int cpu, const char *event)
{
	const char *verb = NULL, *remedy = SEE_DOCTOR;

	for (size_t i = 0; i < sizeof(reasons) / sizeof(reasons[0]); i++) {
		if (reasons[i].error != error)
			continue;
		verb = reasons[i].verb;
		remedy = reasons[i].remedy;
	}
	return err_set(err, -error, "cpu %u: %s %s: %s; %s", cpu, verb ? verb : "cannot open",
		       event, strerror(error), remedy);
}

struct perf_event_mmap_page *perf_ring_map(int fd, size_t pages)
{
	void *p = mmap(NULL, (1 + pages) * sysconf(_SC_PAGESIZE), PROT_READ | PROT_WRITE,
		       MAP_SHARED, fd, 0);

	return p == MAP_FAILED ? NULL : p;
}

void perf_ring_unmap(struct perf_event_mmap_page *ring)
{
	if (ring)
		munmap(ring, perf_ring_bytes(ring));
}

size_t perf_ring_bytes(const struct perf_event_mmap_page *ring)
{
	return ring->data_offset + ring->data_size;
}

__u64 perf_ring_head(const struct perf_event_mmap_page *ring)
{
	return __atomic_load_n(&ring->data_head, __ATOMIC_ACQUIRE);
}

void perf_ring_copy(const struct perf_event_mmap_page *ring, __u64 at, void *dst, size_t len)
{
	const char *data = (const char *)ring + ring->data_offset;
	__u64 size = ring->data_size, from = at % size;
	size_t first = len < size - from ? len : size - from;

	memcpy(dst, data + from, first);
	memcpy((char *)dst + first, data, len - first);
}

void perf_ring_done(struct perf_event_mmap_page *ring, __u64 tail)
{
	__atomic_store_n(&ring->data_tail, tail, __ATOMIC_RELEASE);
}

__u64 perf_ring_throttled(struct perf_event_mmap_page *ring)
{
	__u64 head, tail, n = 0;

	if (!ring)
		return 0;
	head = perf_ring_head(ring);
	tail = ring->data_tail;
	while (tail < head) {
		struct {
			struct perf_event_header h;
			__u64 id, lost;
		} rec;

		perf_ring_copy(ring, tail, &rec, sizeof(rec.h));
		if (rec.h.size < sizeof(rec.h))
			break;
		if (rec.h.type == PERF_RECORD_THROTTLE) {
			n++;
		} else if (rec.h.type == PERF_RECORD_LOST && rec.h.size >= sizeof(rec)) {
			/* records come in pairs: throttled and unthrottled */
			perf_ring_copy(ring, tail, &rec, sizeof(rec));
			n += (rec.lost + 1) / 2;
		}
		tail += rec.h.size;
	}
	perf_ring_done(ring, head);
	return n;
}
