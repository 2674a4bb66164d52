// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * How many samples a second `ibscope report` takes in: a recording of SIMULATED samples is written
 * and added up by several keys.
 *
 *   bench-report [--json] [SAMPLES [FILE]]     FILE is kept; without one it lies in /var/tmp
 */
#include "base/clock.h"
#include "recording/recording.h"
#include "report/report.h"

#include <errno.h>
#include <fcntl.h>
#include <ibscope/sim.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define CAPS	0xbffu /* Zen 4 */
#define CPUS	64
#define BATCH	65536
#define DEFAULT 10000000ull

static const char *const by[] = { "src",    "src,op,cpu", "pid,src",   "comm,src",
				  "symbol", "line",	  "type,field" };

static int fail(const struct err *err)
{
	fprintf(stderr, "bench-report: %s\n", err->text);
	return 1;
}

/* The executable map of this program, whose functions are sampled. */
static struct trace_mmap text;
static char program[1024];

static int find_text(struct err *err)
{
	FILE *f = fopen("/proc/self/maps", "r");
	char line[2048];
	int ret = -ENOENT;

	while (ret && f && fgets(line, sizeof(line), f)) {
		unsigned long long start, end, pgoff;

		if (sscanf(line, "%llx-%llx %*s %llx %*s %*s %1023s", &start, &end, &pgoff,
			   program) < 4 ||
		    (uintptr_t)find_text < start || (uintptr_t)find_text >= end)
			continue;
		text = (struct trace_mmap){ .exec = true,
					    .start = start,
					    .len = end - start,
					    .pgoff = pgoff,
					    .path = program };
		ret = 0;
	}
	if (f)
		fclose(f);
	return ret ? err_set(err, ret, "cannot find the program's own map") : 0;
}

static void make(__u64 n, struct ibs_record *rec)
{
	__u64 regs[IBS_OP_REG_FIXED], r = ibs_sim_mix(n);
	__u32 cpu = n % CPUS;

	ibs_sim_op(1, cpu, n / CPUS, CAPS, regs);
	*rec = (struct ibs_record){
		.time = 1000000 + 1000 * n,
		.cgroup_id = 1 + (r & 63),
		.tgid = 1000 + (r >> 8 & 255),
		.tid = 1000 + (r >> 8 & 255),
		.ip = text.start + (r >> 16 & 0xffffff) % text.len,
		.addr = regs[IBS_DC_LINADDR],
		.phys = regs[IBS_DC_PHYSADDR],
		.data3 = regs[IBS_OP_DATA3],
		.packed = ibs_record_pack(regs[IBS_OP_DATA], regs[IBS_OP_DATA2], cpu),
	};
}

static int write_tasks(struct recording *r, struct err *err)
{
	int ret = 0;

	for (__u32 p = 1000; !ret && p < 1256; p++) {
		struct trace_event comm = { .kind = TRACE_COMM, .comm = { p, p, true, "program" } };
		struct trace_event map = { .kind = TRACE_MMAP, .mmap = text };

		map.mmap.tgid = map.mmap.tid = p;
		ret = recording_event(r, &comm, err) ?: recording_event(r, &map, err);
	}
	return ret;
}

static int write_file(int fd, __u64 n, struct err *err)
{
	static struct ibs_record records[BATCH];
	static const struct trace_pmu pmu = { .name = "ibs_op/cnt_ctl=1/",
					      .op = true,
					      .period = 100000 };
	struct trace_info info = { .source = "sim",
				   .simulated = true,
				   .has_cpu = true,
				   .n_cpus = CPUS,
				   .pmu = &pmu,
				   .n_pmus = 1 };
	struct recording_opts opts = { .fd = fd, .info = &info, .compress = true };
	struct ledger ledger = { .seen = n, .outcome[IBS_OUTCOME_FORWARDED] = n };
	struct recording *r;
	int ret;

	gethostname(info.host, sizeof(info.host) - 1); /* symbols are those of this machine */
	cpu_info_set(&info.cpu, "AuthenticAMD", 0x19, 0x11, CAPS);
	ret = recording_create(&opts, &r, err);
	if (ret)
		return ret;
	ret = write_tasks(r, err);
	for (__u64 done = 0, k; !ret && done < n; done += k) {
		for (k = 0; k < BATCH && done + k < n; k++)
			make(done + k, &records[k]);
		ret = recording_samples(r, records, NULL, k, err);
	}
	ret = ret ?: recording_finish(r, &ledger, err);
	recording_close(r);
	return ret;
}

/* What the command does, without its output. @keys NULL: only read. */
static int run(const char *file, const char *keys, __u64 *n, struct err *err)
{
	struct report_order order = { .sort = TABLE_TOTAL };
	struct report_opts opts = { 0 };
	struct symbols_opts symbols_opts;
	struct symbols *symbols = NULL;
	struct report *r = NULL;
	struct tasks *tasks = NULL;
	struct report_table table;
	struct trace_event ev;
	struct trace *t;
	int ret = trace_open(file, &t, err);

	if (ret)
		return ret;
	opts.info = symbols_opts.info = trace_info(t);
	symbols_opts = (struct symbols_opts){ .info = opts.info };
	ret = keys ? report_keys_parse(keys, opts.by, &opts.n_by, err) : 0;
	tasks = tasks_new();
	if (!ret && report_keys_flags(opts.by, opts.n_by) & REPORT_NEEDS_TASKS)
		ret = tasks_read(tasks, t, err);
	ret = ret ?: symbols_new(&symbols_opts, &symbols, err);
	opts.tasks = tasks;
	opts.symbols = symbols;
	ret = ret ?: report_new(&opts, &r, err);
	for (*n = 0; !ret && (ret = trace_next(t, &ev, err)) > 0;) {
		*n += ev.kind == TRACE_SAMPLE_OP;
		ret = keys ? report_add(r, &ev) : 0;
	}
	if (!ret) {
		ret = report_table(r, &order, &table);
		report_table_free(&table);
	}
	report_free(r);
	symbols_free(symbols);
	tasks_free(tasks);
	trace_close(t);
	return ret;
}

static double cpu_s(void)
{
	return clock_ns(CLOCK_PROCESS_CPUTIME_ID) / 1e9;
}

int main(int argc, char **argv)
{
	bool json = argc > 1 && !strcmp(argv[1], "--json");
	const char *samples = argc > 1 + json ? argv[1 + json] : NULL;
	char name[] = "/var/tmp/bench-report.XXXXXX";
	const char *file = argc > 2 + json ? argv[2 + json] : name;
	__u64 n = samples ? strtoull(samples, NULL, 0) : DEFAULT, got = 0;
	struct err err = { "" };
	int fd = file == name ? mkstemp(name) : open(file, O_CREAT | O_TRUNC | O_RDWR, 0600);
	int ret = 0;

	if (fd < 0) {
		perror("bench-report");
		return 1;
	}
	ret = find_text(&err) ?: write_file(fd, n, &err);
	if (!ret && !json)
		printf("%llu samples, %.1f bytes each\n%-12s %12s %12s %14s\n",
		       (unsigned long long)n, (double)lseek(fd, 0, SEEK_END) / n, "--by", "seconds",
		       "CPU seconds", "samples/s/CPU");
	for (int i = -1; !ret && i < (int)(sizeof(by) / sizeof(by[0])); i++) {
		const char *keys = i < 0 ? NULL : by[i];
		double start = now_s(), cpu_start = cpu_s(), s, cpu;

		ret = run(file, keys, &got, &err);
		s = now_s() - start;
		cpu = cpu_s() - cpu_start;
		if (!ret && got != n)
			ret = err_set(&err, -1, "%llu samples were written and %llu read",
				      (unsigned long long)n, (unsigned long long)got);
		if (json)
			printf("{\"by\":\"%s\",\"samples\":%llu,\"seconds\":%.3f,\"cpu_seconds\":%."
			       "3f,\"per_second\":%.0f}\n",
			       keys ? keys : "", (unsigned long long)got, s, cpu, got / cpu);
		else
			printf("%-12s %12.3f %12.3f %14.0f\n", keys ? keys : "(reading)", s, cpu,
			       got / cpu);
	}
	if (file == name)
		unlink(name);
	close(fd);
	return ret ? fail(&err) : 0;
}
