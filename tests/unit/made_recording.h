/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The recording that a program of tests makes: simulated ops of a Zen 4 with one CPU. What fails ends the program. */
#ifndef IBSCOPE_TESTS_MADE_RECORDING_H
#define IBSCOPE_TESTS_MADE_RECORDING_H

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "recording/recording.h"

static struct recording *made;
static __u64 made_samples;
static int made_fd;

static inline void need(bool condition)
{
	if (!condition)
		exit(1);
}

/* What the file says of the machine, this host; made_begin() takes it, changed or not. */
static inline struct trace_info made_info(void)
{
	static struct trace_pmu pmu = { .name = "ibs_op/cnt_ctl=1/", .op = true, .period = 1000 };
	struct trace_info info = { .source = "sim",
				   .simulated = true,
				   .has_cpu = true,
				   .n_cpus = 1,
				   .pmu = &pmu,
				   .n_pmus = 1 };
	struct utsname u;

	uname(&u);
	strcpy(info.host, u.nodename);
	cpu_info_set(&info.cpu, "AuthenticAMD", 0x19, 0x11, 0xbff);
	return info;
}

static inline void made_begin(const char *path, const struct trace_info *info)
{
	struct recording_opts opts = { .info = info, .compress = true };
	struct err err;

	opts.fd = made_fd = open(path, O_CREAT | O_TRUNC | O_RDWR, 0600);
	need(made_fd >= 0 && !recording_create(&opts, &made, &err));
}

/* A sample, one nanosecond after the one before; @extra: its stacks and so on, or NULL. */
static inline void made_add(struct ibs_record rec, const struct ibs_record_extra *extra)
{
	struct err err;

	rec.time = 1000 + made_samples++;
	need(!recording_samples(made, &rec, extra, 1, &err));
}

/* Returns the status to exit with. */
static inline int made_end(void)
{
	struct ledger ledger = { .seen = made_samples };
	struct err err;

	ledger.outcome[IBS_OUTCOME_FORWARDED] = made_samples;
	need(!recording_finish(made, &ledger, &err));
	recording_close(made);
	return close(made_fd);
}

#endif
