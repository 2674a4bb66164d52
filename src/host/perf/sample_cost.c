// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "sample_cost.h"
#include "base/std.h"

#include "perf.h"

#include <bpf/bpf.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

struct sample_event {
	int fd;
	__u64 period;
	struct perf_event_mmap_page *ring; /* NULL: none */
};

/* Like a sampler's events: the kernel updates the first page in each NMI. */
#define RING_PAGES 1

/* Some 40,000 samples a second of a busy CPU. */
#define FLOOR_OPS 100000
#define FLOOR_NS  50000

static int set(void *arg, bool on, struct err *err)
{
	const struct sample_event *ev = arg;

	if (ioctl(ev->fd, on ? PERF_EVENT_IOC_ENABLE : PERF_EVENT_IOC_DISABLE, 0))
		return err_set(err, -errno, "cannot enable or disable the event: %s",
			       strerror(errno));
	return 0;
}

static double samples(void *arg)
{
	const struct sample_event *ev = arg;
	__u64 count[8] = {}; /* large enough for any read_format */

	if (read(ev->fd, count, sizeof(count)) < (ssize_t)sizeof(count[0]))
		return 0;
	return (double)count[0] / ev->period;
}

struct loop_subject sample_event_subject(struct sample_event *ev)
{
	return (struct loop_subject){ .set = set, .samples = samples, .arg = ev };
}

int sample_event_open(const struct perf_event_attr *attr, int prog_fd, unsigned int cpu,
		      struct sample_event **out, struct err *err)
{
	struct perf_event_attr a = *attr;
	struct sample_event *ev;
	int ret;

	if (a.freq || !a.sample_period)
		return err_set(err, -EINVAL,
			       "the cost of a sample can only be measured with a fixed period");
	ev = xcalloc(1, sizeof(*ev));
	a.disabled = 1;
	a.inherit = 0;
	ev->period = a.sample_period;
	ev->fd = perf_open(&a, cpu);
	if (ev->fd < 0) {
		ret = perf_open_explain(err, errno, cpu, "the event");
		goto fail;
	}
	if (prog_fd >= 0 && ioctl(ev->fd, PERF_EVENT_IOC_SET_BPF, prog_fd)) {
		ret = err_set(err, -errno, "cpu %u: cannot attach the BPF program: %s", cpu,
			      strerror(errno));
		goto fail;
	}
	ev->ring = perf_ring_map(ev->fd, RING_PAGES);
	if (!ev->ring)
		log_debug("cpu %u: no ring buffer for the event: %s", cpu, strerror(errno));
	*out = ev;
	return 0;
fail:
	sample_event_close(ev);
	return ret;
}

void sample_event_close(struct sample_event *ev)
{
	if (!ev)
		return;
	perf_ring_unmap(ev->ring);
	if (ev->fd >= 0)
		close(ev->fd);
	free(ev);
}

int sample_cost_measure(const struct perf_event_attr *attr, int prog_fd, unsigned int cpu,
			double seconds, struct sample_cost *out, struct err *err)
{
	const struct loop_opts opts = { .cpu = cpu, .seconds = seconds };
	struct loop_subject subject;
	struct sample_event *ev;
	struct loop_loss loss;
	int ret = sample_event_open(attr, prog_fd, cpu, &ev, err);

	if (ret)
		return ret;
	subject = sample_event_subject(ev);
	ret = loop_loss_measure(&subject, 1, &opts, &loss, err);
	sample_event_close(ev);
	if (ret)
		return ret;
	*out = (struct sample_cost){ .ns = loss.ns,
				     .spread_ns = loss.ns_spread,
				     .samples = loss.samples };
	if (loss.sampled_ns > loss.samples * loss.ns)
		out->per_ns = loss.samples * (double)attr->sample_period /
			      (loss.sampled_ns - loss.samples * loss.ns);
	if (!loss.sampled_rounds)
		return err_set(err, -EAGAIN,
			       "cpu %u: fewer than %d rounds of the busy loop had samples; sample "
			       "more often, or measure longer",
			       cpu, LOOP_ROUNDS_MIN);
	if (!(loss.ns > loss.ns_spread))
		return err_set(
			err, -EAGAIN,
			"cpu %u: the cost of a sample, %.0f ns, is below the noise of %.0f ns; "
			"measure longer, at a higher rate, or on a CPU with less to do",
			cpu, loss.ns, loss.ns_spread);
	return 0;
}

struct perf_event_attr sample_cost_event(const struct perf_event_attr *like)
{
	struct perf_event_attr attr = *like;

	attr.freq = 0;
	if (attr.type == PERF_TYPE_SOFTWARE) {
		attr.config = PERF_COUNT_SW_CPU_CLOCK;
		attr.sample_period = FLOOR_NS;
		return attr;
	}
	attr.sample_period = FLOOR_OPS;
	attr.config &= 1ULL << 19; /* cnt_ctl */
	attr.config1 = attr.config2 = 0;
	attr.exclude_user = attr.exclude_kernel = 0;
	return attr;
}

int sample_cost_empty_program(void)
{
	static const struct bpf_insn insns[] = {
		{ .code = BPF_ALU64 | BPF_MOV | BPF_K, .dst_reg = BPF_REG_0 },
		{ .code = BPF_JMP | BPF_EXIT },
	};

	return bpf_prog_load(BPF_PROG_TYPE_PERF_EVENT, "ibs_nothing", "Dual BSD/GPL", insns,
			     sizeof(insns) / sizeof(insns[0]), NULL);
}

int sample_cost_floor(const struct perf_event_attr *like, unsigned int cpu, double seconds,
		      struct sample_cost *out, struct err *err)
{
	const struct perf_event_attr attr = sample_cost_event(like);
	int fd = sample_cost_empty_program();
	int ret = sample_cost_measure(&attr, fd, cpu, seconds, out, err);

	if (fd >= 0)
		close(fd);
	if (!ret && (out->ns < SAMPLE_COST_MIN_NS || out->ns > SAMPLE_COST_MAX_NS))
		return err_set(err, -ERANGE, "implausible result of %.0f ns", out->ns);
	return ret;
}
