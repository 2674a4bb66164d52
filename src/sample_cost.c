// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "sample_cost.h"

#include "loop_loss.h"

#include <errno.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <unistd.h>

struct event {
	int fd;
	__u64 period;
};

static int set(void *arg, bool on, struct err *err)
{
	const struct event *ev = arg;

	if (ioctl(ev->fd, on ? PERF_EVENT_IOC_ENABLE : PERF_EVENT_IOC_DISABLE, 0))
		return err_set(err, -errno, "cannot switch the event: %s", strerror(errno));
	return 0;
}

static double samples(void *arg)
{
	const struct event *ev = arg;
	__u64 count[8] = {}; /* as much as any read_format of one event */

	if (read(ev->fd, count, sizeof(count)) < (ssize_t)sizeof(count[0]))
		return 0;
	return (double)count[0] / ev->period;
}

static int open_event(const struct perf_event_attr *attr, int prog_fd, unsigned int cpu,
		      struct event *out, struct err *err)
{
	struct perf_event_attr a = *attr;
	int ret;

	if (a.freq || !a.sample_period)
		return err_set(err, -EINVAL,
			       "the cost of a sample can be told only of a fixed period");
	a.disabled = 1;
	a.inherit = 0;
	out->period = a.sample_period;
	out->fd = syscall(SYS_perf_event_open, &a, -1, cpu, -1, PERF_FLAG_FD_CLOEXEC);
	if (out->fd < 0)
		return err_set(err, -errno,
			       "cpu %u: cannot open the event: %s; see `ibscope doctor`", cpu,
			       strerror(errno));
	if (prog_fd < 0 || !ioctl(out->fd, PERF_EVENT_IOC_SET_BPF, prog_fd))
		return 0;
	ret = err_set(err, -errno, "cpu %u: cannot attach the BPF program: %s", cpu,
		      strerror(errno));
	close(out->fd);
	return ret;
}

int sample_cost_measure(const struct perf_event_attr *attr, int prog_fd, unsigned int cpu,
			double seconds, struct sample_cost *out, struct err *err)
{
	const struct loop_opts opts = { .cpu = cpu, .seconds = seconds };
	struct loop_subject subject = { .set = set, .samples = samples };
	struct loop_loss loss;
	struct event ev;
	int ret = open_event(attr, prog_fd, cpu, &ev, err);

	if (ret)
		return ret;
	subject.arg = &ev;
	ret = loop_loss_measure(&subject, &opts, &loss, err);
	close(ev.fd);
	if (ret)
		return ret;
	*out = (struct sample_cost){ loss.ns, loss.ns_spread, loss.samples };
	if (!(loss.ns > loss.ns_spread))
		return err_set(
			err, -EAGAIN,
			"cpu %u: a sample costs %.0f ns, but the loop varies by %.0f ns a "
			"sample; measure longer, at a higher rate, or on a CPU with less to do",
			cpu, loss.ns, loss.ns_spread);
	return 0;
}
