// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "sample_cost.h"

#include "perf_open.h"
#include "perf_ring.h"

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

/* As events of a sampler have them, since the kernel keeps the first one up to date in each NMI. */
#define RING_PAGES 1

static int set(void *arg, bool on, struct err *err)
{
	const struct sample_event *ev = arg;

	if (ioctl(ev->fd, on ? PERF_EVENT_IOC_ENABLE : PERF_EVENT_IOC_DISABLE, 0))
		return err_set(err, -errno, "cannot switch the event: %s", strerror(errno));
	return 0;
}

static double samples(void *arg)
{
	const struct sample_event *ev = arg;
	__u64 count[8] = {}; /* as much as any read_format of one event */

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
			       "the cost of a sample can be told only of a fixed period");
	ev = calloc(1, sizeof(*ev));
	if (!ev)
		return err_set(err, -ENOMEM, "out of memory");
	a.disabled = 1;
	a.inherit = 0;
	ev->period = a.sample_period;
	ev->fd = perf_open(&a, cpu);
	if (ev->fd < 0) {
		ret = err_set(err, -errno,
			      "cpu %u: cannot open the event: %s; see `ibscope doctor`", cpu,
			      strerror(errno));
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
	*out = (struct sample_cost){ loss.ns, loss.ns_spread, loss.samples };
	if (!loss.sampled_rounds)
		return err_set(err, -EAGAIN,
			       "cpu %u: fewer than %d rounds of the busy loop had samples; sample "
			       "more often, or measure longer",
			       cpu, LOOP_ROUNDS_MIN);
	if (!(loss.ns > loss.ns_spread))
		return err_set(
			err, -EAGAIN,
			"cpu %u: a sample costs %.0f ns, but the loop varies by %.0f ns a "
			"sample; measure longer, at a higher rate, or on a CPU with less to do",
			cpu, loss.ns, loss.ns_spread);
	return 0;
}
