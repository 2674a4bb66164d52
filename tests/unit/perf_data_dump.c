// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * perf_data_dump [--perf-6.1] FILE[.zst]: the events of a perf.data a line each, registers in
 * perf's words. For tests/system/test_perf_data.py. --quiet only counts, to measure.
 */
#include <errno.h>
#include <fcntl.h>
#include <time.h>

#include "dump/op_text.h"
#include "perf_data_file.h"
#include "trace/trace.h"

static unsigned int perf = IBS_PERF_NEWEST;

static void print_info(const struct trace_info *i)
{
	printf("info %s|%s|%s|%u|%s,%u,%u,%u\n", i->host, i->release, i->command, i->n_cpus,
	       i->cpu.vendor, i->cpu.family, i->cpu.model, i->cpu.stepping);
	for (unsigned int n = 0; n < i->n_pmus; n++)
		printf("pmu %s|%s|%s %llu|%s\n", i->pmu[n].name, i->pmu[n].op ? "op" : "fetch",
		       i->pmu[n].freq ? "freq" : "period", i->pmu[n].period,
		       i->pmu[n].stacks ? "stacks" : "");
}

static void print_sample(const struct trace_event *ev)
{
	const struct trace_sample *s = &ev->sample;

	if (ev->kind == TRACE_SAMPLE_OP)
		ibs_op_print(stdout, &s->op, perf);
	else
		ibs_fetch_print(stdout, &s->fetch, perf);
	printf("sample %llu cpu %d %d/%d ip %#llx cgroup %llu pmu %u %s\n", ev->time,
	       s->has_cpu ? (int)s->cpu : -1, s->has_task ? (int)s->tgid : -1,
	       s->has_task ? (int)s->tid : -1, s->has_ip ? s->ip : 0, s->cgroup_id, s->pmu,
	       s->kernel ? "kernel" : "user");
	for (unsigned int i = 0; i < s->n_stack; i++)
		printf("  %016llx\n", s->stack[i]);
}

static void print_mmap(const struct trace_event *ev)
{
	const struct trace_mmap *m = &ev->mmap;

	printf("mmap %llu %d/%d %#llx %#llx %#llx %s%s ", ev->time, (int)m->tgid, (int)m->tid,
	       m->start, m->len, m->pgoff, m->kernel ? "kernel " : "", m->exec ? "x" : "-");
	for (unsigned int i = 0; i < m->build_id_len; i++)
		printf("%02x", m->build_id[i]);
	printf(" %s\n", m->path);
}

static void print_event(const struct trace_event *ev)
{
	switch (ev->kind) {
	case TRACE_SAMPLE_OP:
	case TRACE_SAMPLE_FETCH:
		print_sample(ev);
		break;
	case TRACE_COMM:
		printf("comm %llu %d/%d%s %s\n", ev->time, (int)ev->comm.tgid, (int)ev->comm.tid,
		       ev->comm.exec ? " exec" : "", ev->comm.name);
		break;
	case TRACE_MMAP:
		print_mmap(ev);
		break;
	case TRACE_FORK:
	case TRACE_EXIT:
		printf("%s %llu %d/%d of %d/%d\n", ev->kind == TRACE_FORK ? "fork" : "exit",
		       ev->time, (int)ev->fork.tgid, (int)ev->fork.tid, (int)ev->fork.parent_tgid,
		       (int)ev->fork.parent_tid);
		break;
	case TRACE_CGROUP:
		printf("cgroup %llu %llu %s\n", ev->time, ev->cgroup.id, ev->cgroup.path);
		break;
	case TRACE_LOST:
		printf("lost %llu %llu%s\n", ev->time, ev->lost.n,
		       ev->lost.samples ? " samples" : "");
		break;
	case TRACE_RANK:
	case TRACE_REGION:
	case TRACE_SLAB:
	case TRACE_ALLOC:
	case TRACE_FREE:
	case TRACE_SLICE:
	case TRACE_KIND_N:
		break;
	}
}

/* As trace_open() would give it to the reader. */
static int open_file(const char *path)
{
	size_t n, length = strlen(path);
	unsigned char *p;
	int fd;

	if (length < 4 || strcmp(path + length - 4, ".zst"))
		return open(path, O_RDONLY);
	p = load_file(path, &n);
	fd = p ? memory_file(p, n) : -1;
	free(p);
	return fd;
}

static double seconds(void)
{
	struct timespec t;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
	return t.tv_sec + t.tv_nsec / 1e9;
}

static int run(struct trace *t, bool quiet, struct err *e)
{
	const struct trace_end *end = trace_end(t);
	unsigned long long events = 0, samples = 0;
	struct trace_event ev;
	double start = seconds();
	int ret;

	while ((ret = perf_data_format.next(t, &ev, e)) > 0) {
		events++;
		samples += ev.kind == TRACE_SAMPLE_OP || ev.kind == TRACE_SAMPLE_FETCH;
		if (!quiet)
			print_event(&ev);
	}
	printf("end %s, other samples %llu, skipped %llu: %s\n", end->whole ? "whole" : "not whole",
	       end->other_samples, end->skipped_blocks, end->missing);
	if (quiet)
		printf("%llu events, %llu samples, %.2f M samples a second of CPU time\n", events,
		       samples, samples / (seconds() - start) / 1e6);
	return ret;
}

int main(int argc, char **argv)
{
	bool quiet = false;
	struct err e = { 0 };
	struct trace *t;
	int fd, ret, i;

	for (i = 1; i < argc && argv[i][0] == '-'; i++) {
		if (!strcmp(argv[i], "--perf-6.1"))
			perf = IBS_PERF(6, 1);
		else if (!strcmp(argv[i], "--quiet"))
			quiet = true;
	}
	if (i + 1 != argc) {
		fprintf(stderr, "usage: perf_data_dump [--perf-6.1] [--quiet] FILE\n");
		return 2;
	}
	fd = open_file(argv[i]);
	if (fd < 0) {
		fprintf(stderr, "perf_data_dump: cannot open %s\n", argv[i]);
		return 1;
	}
	ret = perf_data_format.open(fd, 0, 0, &t, &e);
	if (!ret) {
		print_info(trace_info(t));
		ret = run(t, quiet, &e);
		perf_data_format.close(t);
	}
	if (ret)
		fprintf(stderr, "perf_data_dump: %s: %s\n", argv[i], e.text);
	return ret ? 1 : 0;
}
