// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Help for the measurements of `ibscope bench`. */
#include "bench.h"

#include "clock.h"
#include "sample_cost.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define TRY_PERIOD 100000 /* to learn how fast the event counts */
#define TRY_S	   0.1

volatile sig_atomic_t bench_stop;

int bench_check_stop(struct err *err)
{
	return bench_stop ? err_set(err, -EINTR, "interrupted") : 0;
}

double bench_of(const struct bench *b, double quick, double full)
{
	return b->quick ? quick : full;
}

int bench_tmpfile(struct err *err)
{
	const char *const dirs[] = { getenv("TMPDIR"), "/var/tmp", "/tmp" };
	char path[512];
	int fd = -1;

	errno = ENOENT;
	for (size_t i = 0; fd < 0 && i < sizeof(dirs) / sizeof(dirs[0]); i++) {
		if (!dirs[i] || !*dirs[i])
			continue;
		snprintf(path, sizeof(path), "%s/ibscope-bench.XXXXXX", dirs[i]);
		fd = mkostemp(path, O_CLOEXEC);
	}
	if (fd < 0)
		return err_set(err, -errno,
			       "cannot make a file in TMPDIR, /var/tmp or /tmp: %s: %s", path,
			       strerror(errno));
	unlink(path);
	return fd;
}

static int learn_rate(struct bench *b, struct err *err)
{
	struct perf_event_attr attr = b->attr;
	struct loop_subject subject;
	struct sample_event *ev;
	double start, samples;
	int ret;

	attr.sample_period = TRY_PERIOD;
	ret = sample_event_open(&attr, -1, b->cpu, &ev, err);
	if (ret)
		return ret;
	subject = sample_event_subject(ev);
	start = now_s();
	ret = subject.set(subject.arg, true, err);
	loop_for(b->instructions ? TRY_S / 4 : TRY_S);
	ret = ret ?: subject.set(subject.arg, false, err);
	samples = subject.samples(subject.arg);
	b->events_per_s = samples * TRY_PERIOD / (now_s() - start);
	sample_event_close(ev);
	if (!ret && samples < 1)
		ret = err_set(err, -ENODATA, "there is no sample of %s; see `ibscope doctor`",
			      b->event);
	return ret;
}

int bench_period(struct bench *b, double rate, __u64 *period, struct err *err)
{
	uint64_t min, max;
	int ret;

	if (b->source != SAMPLER_IBS) {
		*period = 1e9 / rate;
		return 0;
	}
	if (!b->events_per_s) {
		ret = learn_rate(b, err);
		if (ret)
			return ret;
	}
	event_period_bounds("ibs_op", &b->cpu_info, &min, &max);
	*period = (__u64)(b->events_per_s / rate) & ~15ULL;
	*period = *period < min ? min : *period > max ? max : *period;
	return 0;
}
