// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* A bpftrace program that makes a histogram a cgroup, as a measure for ours. */
#include "bench_child.h"

#include "clock.h"
#include "sample_cost.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define RATE	  10000
#define READY_S	  60
#define ATTACH_NS 500000000 /* from its first line to its last probe */

struct tracer {
	const struct bench *bench;
	char program[256];
	struct bench_child child;
	double ready_ns, cpu_ns;
};

static int failed(struct tracer *t, struct err *err)
{
	char said[256];

	bench_child_end(&t->child, SIGKILL, NULL);
	bench_child_said(&t->child, said, sizeof(said));
	close(t->child.said);
	return err_set(err, -EIO, "bpftrace does not run%s%s", *said ? ": " : "", said);
}

/* It prints a line when it begins, which may be long after. */
static int start(struct tracer *t, struct err *err)
{
	char *argv[] = { "bpftrace", "-q", "-B", "none", "-e", t->program, NULL };
	double deadline = now_s() + READY_S;
	struct pollfd f = { .events = POLLIN };
	int fds[2], ret;
	char c;

	if (pipe2(fds, O_CLOEXEC))
		return err_set(err, -errno, "cannot make a pipe: %s", strerror(errno));
	ret = bench_child_start(t->bench, argv, fds[1], &t->child, err);
	close(fds[1]);
	f.fd = fds[0];
	while (!ret) {
		ret = bench_check_stop(err);
		if (!ret && now_s() > deadline)
			ret = failed(t, err);
		if (ret || poll(&f, 1, 100) <= 0)
			continue;
		if (read(fds[0], &c, 1) != 1)
			ret = failed(t, err);
		break;
	}
	/* what it prints at its end, into a pipe that nobody reads, is as nothing */
	close(fds[0]);
	if (!ret)
		nanosleep(&(struct timespec){ .tv_nsec = ATTACH_NS }, NULL);
	t->ready_ns = bench_child_cpu_ns(&t->child);
	return ret;
}

static int set(void *arg, bool on, struct err *err)
{
	struct tracer *t = arg;

	if (on)
		return start(t, err);
	if (t->child.pid) {
		t->cpu_ns += bench_child_cpu_ns(&t->child) - t->ready_ns;
		bench_child_end(&t->child, SIGINT, NULL);
		close(t->child.said);
	}
	return 0;
}

static int measure(struct bench *b, struct sample_event *empty, struct loop_loss *loss,
		   struct tracer *t, struct err *err)
{
	const struct loop_subject subjects[] = { sample_event_subject(empty),
						 { .set = set, .arg = t } };
	const struct loop_opts opts = { .cpu = b->cpu,
					.slice_s = bench_of(b, 0.1, 1),
					.seconds = bench_of(b, 4, 40),
					.stop = &bench_stop };

	return loop_loss_measure(subjects, 2, &opts, loss, err);
}

/* Beside a program that does nothing. */
static int compare(struct bench *b, struct loop_loss *loss, struct tracer *t, struct err *err)
{
	struct perf_event_attr attr = b->attr;
	struct sample_event *empty = NULL;
	struct sampler *s;
	int ret;

	attr.sample_period = 1000000000 / RATE;
	ret = bench_case_open(b, &bench_cases[0], attr.sample_period, &s, err);
	if (ret)
		return ret;
	ret = sample_event_open(&attr, sampler_prog_fd(s), b->cpu, &empty, err);
	ret = ret ?: measure(b, empty, loss, t, err);
	sample_event_close(empty);
	sampler_close(s);
	return ret;
}

int bench_bpftrace(struct bench *b, struct err *err)
{
	struct bench_row row = { .name = "bpftrace",
				 .what = "bpftrace: a histogram a cgroup",
				 .from = BENCH_FROM_EVENT,
				 .unit = b->unit };
	struct tracer t = { .bench = b };
	struct loop_loss both[2], *loss = &both[1];
	double per_sample = 1e9 / RATE, reader;
	int ret;

	if (!bench_in_path("bpftrace"))
		return err_set(err, -ENOENT, "there is no bpftrace in PATH");
	if (b->source == SAMPLER_IBS)
		return err_set(err, -EOPNOTSUPP,
			       "bpftrace has no probe for the PMU ibs_op, only for hardware and "
			       "software events");
	snprintf(t.program, sizeof(t.program),
		 "BEGIN { printf(\"ready\\n\"); } software:cpu-clock:%d /cpu == %u/ "
		 "{ @[cgroup] = hist(nsecs %% 65536); }",
		 1000000000 / RATE, b->cpu);
	ret = compare(b, both, &t, err);
	if (ret)
		return ret;
	reader = t.cpu_ns / (loss->on_s * RATE);
	row.spread = loss->share_spread * per_sample;
	row.value = loss->share * per_sample + reader;
	row.rounds = loss->rounds;
	bench_more(&row, "above_empty", loss->share_beyond * per_sample + reader);
	bench_more(&row, "above_empty_spread", loss->share_beyond_spread * per_sample);
	bench_more(&row, "loop", loss->share * per_sample);
	bench_more(&row, "reader", reader);
	bench_more(&row, "loss_percent", 100 * loss->share);
	bench_add(b, &row);
	return 0;
}
