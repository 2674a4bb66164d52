// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "perf_events.h"

#include "rlimit.h"

#include <bpf/bpf.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

struct cpu_event {
	unsigned int cpu;
	int fd, link_fd;
	struct perf_event_mmap_page *ring; /* NULL: throttling cannot be told */
};

struct perf_events {
	struct cpu_event *ev;
	size_t n;
	__u64 throttled;
	bool ring_warned;
};

#define RING_PAGES 1

static int perf_event_open(const struct perf_event_attr *attr, unsigned int cpu)
{
	return syscall(SYS_perf_event_open, attr, -1, cpu, -1, PERF_FLAG_FD_CLOEXEC);
}

static int explain_open(struct err *err, int error, unsigned int cpu, const char *event)
{
	switch (error) {
	case EACCES:
	case EPERM:
		return err_set(
			err, -error,
			"cpu %u: cannot open %s: %s; sampling a whole CPU needs CAP_PERFMON (or "
			"root; with kernel.perf_event_paranoid above 2 CAP_SYS_ADMIN), or "
			"kernel.perf_event_paranoid <= 0",
			cpu, event, strerror(error));
	case EMFILE:
	case ENFILE:
		return err_set(
			err, -error,
			"cpu %u: cannot open %s: %s; one file a CPU is needed: raise the open "
			"files limit (ulimit -n)",
			cpu, event, strerror(error));
	case EINVAL:
		return err_set(
			err, -error,
			"cpu %u: the kernel refuses %s: %s; try without filter terms, or see "
			"`ibscope doctor` for what this kernel and CPU can do",
			cpu, event, strerror(error));
	case ENOENT:
	case EOPNOTSUPP:
	case ENODEV:
		return err_set(err, -error,
			       "cpu %u: the PMU does not take %s: %s; see `ibscope doctor`", cpu,
			       event, strerror(error));
	case EBUSY:
		return err_set(err, -error,
			       "cpu %u: %s is in exclusive use: %s; stop the other profiler", cpu,
			       event, strerror(error));
	default:
		return err_set(err, -error, "cpu %u: cannot open %s: %s; see `ibscope doctor`", cpu,
			       event, strerror(error));
	}
}

static void map_ring(struct perf_events *pe, struct cpu_event *ev)
{
	size_t len = (1 + RING_PAGES) * sysconf(_SC_PAGESIZE);

	ev->ring = mmap(NULL, len, PROT_READ | PROT_WRITE, MAP_SHARED, ev->fd, 0);
	if (ev->ring != MAP_FAILED)
		return;
	ev->ring = NULL;
	if (!pe->ring_warned)
		log_warn("cpu %u: no ring buffer for throttle notices: %s; throttling will not be "
			 "reported (raise kernel.perf_event_mlock_kb)",
			 ev->cpu, strerror(errno));
	pe->ring_warned = true;
}

int perf_events_open(const struct perf_event_attr *attr, const unsigned int *cpus, size_t n_cpus,
		     const char *event, struct perf_events **out, struct err *err)
{
	struct perf_event_attr a = *attr;
	struct perf_events *pe = calloc(1, sizeof(*pe));
	int ret;

	if (!pe)
		return err_set(err, -ENOMEM, "out of memory");
	pe->ev = calloc(n_cpus ? n_cpus : 1, sizeof(*pe->ev));
	if (!pe->ev) {
		free(pe);
		return err_set(err, -ENOMEM, "out of memory");
	}
	/* a file and a link a CPU: 768 CPUs do not fit the usual limit of 1024 */
	rlimit_files(2 * n_cpus);
	/* enabled only once a program is attached: samples before that would be seen by nobody */
	a.disabled = 1;
	for (size_t i = 0; i < n_cpus; i++) {
		struct cpu_event *ev = &pe->ev[pe->n];

		ev->fd = perf_event_open(&a, cpus[i]);
		if (ev->fd < 0 && errno == ENODEV) {
			log_warn("cpu %u went offline, skipped", cpus[i]);
			continue;
		}
		if (ev->fd < 0) {
			ret = explain_open(err, errno, cpus[i], event);
			goto fail;
		}
		ev->cpu = cpus[i];
		ev->link_fd = -1;
		pe->n++;
		map_ring(pe, ev);
	}
	if (!pe->n) {
		ret = err_set(err, -ENODEV, "none of the %zu CPUs asked for is online", n_cpus);
		goto fail;
	}
	*out = pe;
	return 0;
fail:
	perf_events_close(pe);
	return ret;
}

int perf_events_attach(struct perf_events *pe, int prog_fd, bool use_link, struct err *err)
{
	for (size_t i = 0; i < pe->n; i++) {
		struct cpu_event *ev = &pe->ev[i];
		int ret;

		if (use_link) {
			ret = bpf_link_create(prog_fd, ev->fd, BPF_PERF_EVENT, NULL);
			if (ret >= 0)
				ev->link_fd = ret;
		} else {
			ret = ioctl(ev->fd, PERF_EVENT_IOC_SET_BPF, prog_fd);
		}
		if (ret < 0)
			return err_set(err, -errno, "cpu %u: cannot attach the BPF program: %s; %s",
				       ev->cpu, strerror(errno),
				       errno == EMFILE ? "raise the open files limit (ulimit -n)"
						       : "it needs CAP_BPF and CAP_PERFMON");
	}
	return 0;
}

int perf_events_enable(struct perf_events *pe, struct err *err)
{
	for (size_t i = 0; i < pe->n; i++)
		if (ioctl(pe->ev[i].fd, PERF_EVENT_IOC_ENABLE, 0))
			return err_set(err, -errno, "cpu %u: cannot enable the event: %s",
				       pe->ev[i].cpu, strerror(errno));
	return 0;
}

void perf_events_disable(struct perf_events *pe)
{
	for (size_t i = 0; i < pe->n; i++)
		ioctl(pe->ev[i].fd, PERF_EVENT_IOC_DISABLE, 0);
}

size_t perf_events_n(const struct perf_events *pe)
{
	return pe->n;
}

int perf_events_read(struct perf_events *pe, size_t i, struct perf_event_count *out)
{
	struct {
		__u64 value, enabled, running;
	} r;

	if (read(pe->ev[i].fd, &r, sizeof(r)) != sizeof(r))
		return -EIO;
	*out = (struct perf_event_count){ .cpu = pe->ev[i].cpu,
					  .count = r.value,
					  .enabled_ns = r.enabled,
					  .running_ns = r.running };
	return 0;
}

/* The bytes at @tail of the ring, which may wrap. */
static void ring_copy(const struct perf_event_mmap_page *ring, __u64 tail, void *dst, size_t len)
{
	const char *data = (const char *)ring + ring->data_offset;

	for (size_t i = 0; i < len; i++)
		((char *)dst)[i] = data[(tail + i) % ring->data_size];
}

static __u64 drain_ring(struct perf_event_mmap_page *ring)
{
	__u64 head = __atomic_load_n(&ring->data_head, __ATOMIC_ACQUIRE);
	__u64 tail = ring->data_tail, throttled = 0;

	while (tail < head) {
		struct {
			struct perf_event_header h;
			__u64 id, lost;
		} rec;

		ring_copy(ring, tail, &rec, sizeof(rec.h));
		if (rec.h.size < sizeof(rec.h))
			break;
		if (rec.h.type == PERF_RECORD_THROTTLE) {
			throttled++;
		} else if (rec.h.type == PERF_RECORD_LOST && rec.h.size >= sizeof(rec)) {
			/* notices come in pairs: throttled and unthrottled */
			ring_copy(ring, tail, &rec, sizeof(rec));
			throttled += (rec.lost + 1) / 2;
		}
		tail += rec.h.size;
	}
	__atomic_store_n(&ring->data_tail, head, __ATOMIC_RELEASE);
	return throttled;
}

__u64 perf_events_throttled(struct perf_events *pe)
{
	for (size_t i = 0; i < pe->n; i++)
		if (pe->ev[i].ring)
			pe->throttled += drain_ring(pe->ev[i].ring);
	return pe->throttled;
}

void perf_events_close(struct perf_events *pe)
{
	if (!pe)
		return;
	for (size_t i = 0; i < pe->n; i++) {
		struct cpu_event *ev = &pe->ev[i];

		if (ev->link_fd >= 0)
			close(ev->link_fd);
		if (ev->ring)
			munmap(ev->ring, (1 + RING_PAGES) * sysconf(_SC_PAGESIZE));
		close(ev->fd);
	}
	free(pe->ev);
	free(pe);
}
