// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* What goes into a recording comes out of it. */
#include <errno.h>
#include <fcntl.h>
#include <linux/perf_event.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "recording/recording.h"
#include "recording/recording_format.h"
#include "recording_gen.h"

#define EVENTS	60
#define STACKS	50
#define STRINGS 304

static const struct trace_pmu pmu = {
	.name = "ibs_op/cnt_ctl=1/", .op = true, .period = 100000, .physical = true, .stacks = true
};

static struct trace_info some_info(void)
{
	struct trace_info info = { .source = "ibs",
				   .host = "a.host",
				   .release = "6.1.0-x",
				   .command = "ibscope record -o '\xc3\xa4 b' -- x",
				   .has_cpu = true,
				   .n_cpus = 96,
				   .pmu = &pmu,
				   .n_pmus = 1,
				   .filter = "src == dram",
				   .full_registers = true,
				   .alloc_bytes = 4096,
				   .alloc_probes = true,
				   .realtime_ns = 1700000000123456789,
				   .monotonic_ns = 987654321012345 };

	cpu_info_set(&info.cpu, "AuthenticAMD", 0x19, 1, 0x3ff);
	strcpy(info.cpu.name, "AMD EPYC \"7xx3\"");
	info.cpu.stepping = 2;
	info.cpu.hypervisor = true;
	strcpy(info.cpu.hypervisor_name, "KVM");
	return info;
}

static struct trace_info info;

static struct recording *create(int fd, bool compress)
{
	struct recording_opts opts = { .fd = fd, .info = &info, .compress = compress };
	struct recording *r;
	struct err err = {};

	if (recording_create(&opts, &r, &err))
		fail_msg("%s", err.text);
	return r;
}

static struct trace *open_fd(int fd)
{
	struct err err = {};
	struct trace *t;
	char path[64];

	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	if (trace_open(path, &t, &err))
		fail_msg("%s", err.text);
	return t;
}

static void next(struct trace *t, struct trace_event *ev)
{
	struct err err = {};

	assert_int_equal(trace_next(t, ev, &err), 1);
}

static void at_end(struct trace *t)
{
	struct trace_event ev;
	struct err err = {};

	assert_int_equal(trace_next(t, &ev, &err), 0);
	assert_int_equal(trace_next(t, &ev, &err), 0);
}

static void same_info(const struct trace_info *a, const struct trace_info *b)
{
	assert_string_equal(a->source, b->source);
	assert_int_equal(a->simulated, b->simulated);
	assert_string_equal(a->host, b->host);
	assert_string_equal(a->release, b->release);
	assert_string_equal(a->command, b->command);
	assert_string_equal(a->filter, b->filter);
	assert_int_equal(a->has_cpu, b->has_cpu);
	assert_memory_equal(&a->cpu, &b->cpu, sizeof(a->cpu));
	assert_int_equal(a->n_cpus, b->n_cpus);
	assert_int_equal(a->n_pmus, b->n_pmus);
	assert_int_equal(a->full_registers, b->full_registers);
	assert_true(a->alloc_bytes == b->alloc_bytes);
	assert_true(a->alloc_probes == b->alloc_probes);
	assert_true(a->realtime_ns == b->realtime_ns);
	assert_true(a->monotonic_ns == b->monotonic_ns);
	assert_string_equal(a->pmu->name, b->pmu->name);
	assert_int_equal(a->pmu->op, b->pmu->op);
	assert_int_equal(a->pmu->freq, b->pmu->freq);
	assert_int_equal(a->pmu->physical, b->pmu->physical);
	assert_int_equal(a->pmu->stacks, b->pmu->stacks);
	assert_true(a->pmu->period == b->pmu->period);
}

static void same_event(const struct trace_event *a, const struct trace_event *b)
{
	assert_int_equal(a->kind, b->kind);
	assert_true(a->time == b->time);
	switch (a->kind) {
	case TRACE_COMM:
		assert_int_equal(a->comm.tgid, b->comm.tgid);
		assert_int_equal(a->comm.tid, b->comm.tid);
		assert_int_equal(a->comm.exec, b->comm.exec);
		assert_string_equal(a->comm.name, b->comm.name);
		break;
	case TRACE_MMAP:
		assert_int_equal(a->mmap.tgid, b->mmap.tgid);
		assert_int_equal(a->mmap.tid, b->mmap.tid);
		assert_int_equal(a->mmap.kernel, b->mmap.kernel);
		assert_int_equal(a->mmap.exec, b->mmap.exec);
		assert_true(a->mmap.start == b->mmap.start && a->mmap.len == b->mmap.len);
		assert_true(a->mmap.pgoff == b->mmap.pgoff);
		assert_string_equal(a->mmap.path, b->mmap.path);
		assert_int_equal(a->mmap.build_id_len, b->mmap.build_id_len);
		assert_memory_equal(a->mmap.build_id, b->mmap.build_id, sizeof(a->mmap.build_id));
		break;
	case TRACE_CGROUP:
		assert_true(a->cgroup.id == b->cgroup.id);
		assert_string_equal(a->cgroup.path, b->cgroup.path);
		assert_string_equal(a->cgroup.container ?: "", b->cgroup.container ?: "");
		assert_string_equal(a->cgroup.pod ?: "", b->cgroup.pod ?: "");
		assert_string_equal(a->cgroup.ns ?: "", b->cgroup.ns ?: "");
		break;
	case TRACE_LOST:
		assert_true(a->lost.n == b->lost.n);
		assert_int_equal(a->lost.samples, b->lost.samples);
		assert_int_equal(a->lost.cpu, b->lost.cpu);
		break;
	case TRACE_RANK:
		assert_int_equal(a->rank.tgid, b->rank.tgid);
		assert_int_equal(a->rank.rank, b->rank.rank);
		assert_int_equal(a->rank.ended, b->rank.ended);
		assert_int_equal(a->rank.status, b->rank.status);
		break;
	case TRACE_REGION:
		assert_int_equal(a->region.tid, b->region.tid);
		assert_int_equal(a->region.omp, b->region.omp);
		assert_int_equal(a->region.end, b->region.end);
		assert_int_equal(a->region.team, b->region.team);
		assert_int_equal(a->region.number, b->region.number);
		assert_true(a->region.addr == b->region.addr);
		assert_string_equal(a->region.name, b->region.name);
		break;
	case TRACE_SLAB:
		assert_memory_equal(&a->slab, &b->slab, offsetof(struct ibs_slab, name));
		assert_string_equal(a->slab.name, b->slab.name);
		break;
	case TRACE_ALLOC:
		assert_int_equal(a->alloc.tgid, b->alloc.tgid);
		assert_int_equal(a->alloc.tid, b->alloc.tid);
		assert_true(a->alloc.addr == b->alloc.addr && a->alloc.size == b->alloc.size);
		assert_true(a->alloc.weight == b->alloc.weight);
		assert_int_equal(a->alloc.mapped, b->alloc.mapped);
		assert_int_equal(a->alloc.n_stack, b->alloc.n_stack);
		assert_memory_equal(a->alloc.stack, b->alloc.stack,
				    a->alloc.n_stack * sizeof(__u64));
		break;
	case TRACE_FREE:
		assert_memory_equal(&a->free, &b->free, sizeof(a->free));
		break;
	case TRACE_SLICE:
		assert_int_equal(a->slice.of, b->slice.of);
		assert_true(a->slice.start == b->slice.start && a->slice.end == b->slice.end);
		assert_true(a->slice.ops == b->slice.ops && a->slice.tags == b->slice.tags);
		assert_true(a->slice.period == b->slice.period);
		break;
	default:
		assert_memory_equal(&a->fork, &b->fork, sizeof(a->fork));
	}
}

/* All that one round gives to the writer. */
struct round {
	bool raw, with_stacks;
	unsigned int n, n_events;
	struct ibs_record *records;
	struct ibs_record_raw *raws;
	struct ibs_record_extra *stacks;
	struct trace_event events[EVENTS];
	_Alignas(__u64) char strings[EVENTS][STRINGS];
	__u64 chain[STACKS][TRACE_STACK_MAX]; /* by key, as of this round */
	unsigned int chain_n[STACKS];
};

static struct round *make_round(struct gen *g, unsigned int n, __u64 *clock)
{
	struct round *r = calloc(1, sizeof(*r));
	__u64 time = *clock;

	r->raw = gen_below(g, 2);
	r->with_stacks = gen_below(g, 2);
	r->n = n;
	r->records = calloc(n, sizeof(*r->records));
	r->raws = calloc(n, sizeof(*r->raws));
	r->stacks = calloc(n, sizeof(*r->stacks));
	for (unsigned int i = 0; i < n; i++) {
		time += gen_below(g, 1000);
		gen_record(g, &r->records[i]);
		gen_raw(g, &r->raws[i]);
		r->records[i].time = r->raws[i].time = time;
		r->stacks[i].kernel = (int)gen_below(g, STACKS + 10) - 10;
		r->stacks[i].user = (int)gen_below(g, STACKS + 10) - 10;
		r->stacks[i].callers = (int)gen_below(g, STACKS + 10) - 10;
		/* one of the two, as programs have it; walks may find nothing */
		*(gen_below(g, 2) ? &r->stacks[i].user : &r->stacks[i].callers) = -1;
		if (!gen_below(g, 8) && r->stacks[i].callers >= 0)
			r->stacks[i].callers = -EFAULT;
		for (unsigned int k = 0; k < IBS_STACK_TOP; k++)
			r->stacks[i].top[k] = gen_below(g, 2) ? gen_u64(g) : 0;
	}
	r->n_events = gen_below(g, EVENTS + 1);
	time = *clock;
	for (unsigned int i = 0; i < r->n_events; i++) {
		gen_event(g, &r->events[i], r->strings[i], STRINGS);
		r->events[i].time = time += gen_below(g, 1000 * (n / EVENTS + 1));
	}
	*clock += 2000 * (n + EVENTS);
	for (unsigned int k = 0; k < STACKS; k++) {
		r->chain_n[k] = gen_below(g, TRACE_STACK_MAX + 1);
		for (unsigned int i = 0; i < r->chain_n[k]; i++)
			r->chain[k][i] = gen_u64(g);
	}
	return r;
}

static void free_round(struct round *r)
{
	free(r->records);
	free(r->raws);
	free(r->stacks);
	free(r);
}

static void write_round(struct recording *rec, const struct round *r)
{
	const struct ibs_record_extra *s = r->with_stacks ? r->stacks : NULL;
	struct err err = {};
	unsigned int i;

	for (i = 0; i < STACKS; i++)
		assert_int_equal(recording_stack(rec, i, r->chain[i], r->chain_n[i], &err), 0);
	for (i = 0; i < r->n_events; i++)
		assert_int_equal(recording_event(rec, &r->events[i], &err), 0);
	if (r->raw)
		assert_int_equal(recording_samples_raw(rec, r->raws, s, r->n, &err), 0);
	else
		assert_int_equal(recording_samples(rec, r->records, s, r->n, &err), 0);
}

static void check_stack(const struct round *r, unsigned int i, const struct trace_sample *s)
{
	const struct ibs_record_extra *x = &r->stacks[i];
	int keys[3] = { x->kernel, x->user, x->callers };
	__u64 marks[3] = { PERF_CONTEXT_KERNEL, PERF_CONTEXT_USER, PERF_CONTEXT_USER };
	unsigned int at = 0;

	assert_true(!s->top == !r->with_stacks);
	if (s->top)
		assert_memory_equal(s->top, x->top, sizeof(x->top));
	for (int k = 0; k < 3; k++) {
		/* the function of the kernel that a task was in, without what called it there */
		if (r->with_stacks && k == 1 && !at && s->kernel && keys[k] >= 0) {
			assert_true(s->stack[at++] == PERF_CONTEXT_KERNEL);
			assert_true(s->stack[at++] == s->ip);
		}
		if (r->with_stacks && k == 2 && keys[k] == -EFAULT) {
			assert_true(s->stack[at++] == PERF_CONTEXT_USER);
			assert_true(s->stack[at++] == s->ip);
		}
		if (!r->with_stacks || keys[k] < 0 || !r->chain_n[keys[k]])
			continue;
		assert_true(at < s->n_stack);
		assert_true(s->stack[at++] == marks[k]);
		if (k == 2)
			assert_true(s->stack[at++] == s->ip);
		assert_true(at + r->chain_n[keys[k]] <= s->n_stack);
		assert_memory_equal(s->stack + at, r->chain[keys[k]], 8 * r->chain_n[keys[k]]);
		at += r->chain_n[keys[k]];
	}
	assert_int_equal(at, s->n_stack);
}

static void check_regs(const struct trace_sample *s, const struct ibs_record *r)
{
	__u64 regs[IBS_OP_REG_FIXED];

	ibs_record_regs(r, regs);
	assert_int_equal(s->op.present, 0x7e);
	assert_memory_equal(s->op.reg, regs, sizeof(regs));
	assert_int_equal(s->op.cpu.caps, info.cpu.caps);
	assert_int_equal(s->op.cpu.quirks, info.cpu.quirks);
	assert_int_equal(s->cpu, ibs_record_cpu(r));
	assert_true(s->ip == r->ip);
	assert_int_equal(s->has_ip, !(r->packed & IBS_OP_DATA_RIP_INVALID));
	assert_int_equal(s->kernel, s->has_ip && r->ip >> 63);
}

static void check_sample(const struct round *r, unsigned int i, const struct trace_event *ev)
{
	const struct trace_sample *s = &ev->sample;
	const struct ibs_record_raw *raw = &r->raws[i];
	const struct ibs_record *rec = &r->records[i];
	struct ibs_op_sample op;

	assert_int_equal(ev->kind, TRACE_SAMPLE_OP);
	assert_true(ev->time == rec->time);
	assert_true(s->has_task && s->has_cpu && s->has_time);
	assert_true(s->cgroup_id == (r->raw ? raw->cgroup_id : rec->cgroup_id));
	assert_int_equal(s->tgid, r->raw ? raw->tgid : rec->tgid);
	assert_int_equal(s->tid, r->raw ? raw->tid : rec->tid);
	if (r->raw) {
		assert_int_equal(ibs_op_parse_raw(&raw->caps, raw->bytes, info.cpu.quirks, &op), 0);
		assert_int_equal(s->op.present, op.present);
		assert_int_equal(s->op.nregs, op.nregs);
		assert_int_equal(s->op.cpu.caps, raw->caps);
		assert_memory_equal(s->op.reg, op.reg, sizeof(op.reg));
		assert_int_equal(s->cpu, raw->cpu);
	} else {
		check_regs(s, rec);
	}
	check_stack(r, i, s);
}

/* Events come before the samples of the same time. */
static void check_round(struct trace *t, const struct round *r)
{
	struct trace_event ev;
	unsigned int e = 0, s = 0;

	while (e < r->n_events || s < r->n) {
		next(t, &ev);
		if (e < r->n_events && (s == r->n || r->events[e].time <= r->records[s].time))
			same_event(&ev, &r->events[e++]);
		else
			check_sample(r, s++, &ev);
	}
}

static struct ledger some_ledger(struct gen *g)
{
	struct ledger l = { .pmu_exact = true };

	for (int i = 0; i < IBS_OUTCOME_N; i++)
		l.seen += l.outcome[i] = gen_below(g, 1000000);
	l.unseen = gen_below(g, 1000);
	l.pmu_samples = l.seen + l.unseen;
	return l;
}

static void test_round_trip(void **state)
{
	static const unsigned int sizes[] = { 0, 1, 700, RECORDING_BATCH, 2 * RECORDING_BATCH + 7 };
	const unsigned int n = 12;
	struct gen g = { 1 };
	struct round *rounds[12];
	struct ledger ledger;
	struct err err = {};
	struct recording *rec;
	struct trace *t;
	__u64 clock = 1;
	int fd;

	(void)state;
	for (int compress = 0; compress < 2; compress++) {
		fd = memfd_create("recording", 0);
		info = some_info();
		rec = create(fd, compress);
		for (unsigned int i = 0; i < n; i++) {
			rounds[i] = make_round(&g, sizes[i % 5], &clock);
			write_round(rec, rounds[i]);
			ledger = some_ledger(&g);
			recording_lost_allocs(rec, i);
			assert_int_equal(recording_flush(rec, i % 3 ? &ledger : NULL, &err), 0);
			assert_int_equal(recording_bytes(rec), lseek(fd, 0, SEEK_CUR));
		}
		assert_int_equal(recording_finish(rec, &ledger, &err), 0);
		recording_close(rec);
		t = open_fd(fd);
		same_info(trace_info(t), &info);
		assert_string_equal(trace_info(t)->format, "ibscope 1");
		for (int again = 0; again < 2; again++) {
			for (unsigned int i = 0; i < n; i++)
				check_round(t, rounds[i]);
			at_end(t);
			assert_true(trace_end(t)->whole);
			assert_string_equal(trace_end(t)->missing, "");
			assert_true(!trace_end(t)->skipped_blocks && !trace_end(t)->skipped_bytes);
			assert_true(trace_end(t)->has_ledger);
			assert_int_equal(trace_end(t)->lost_allocs, n - 1);
			assert_memory_equal(&trace_end(t)->ledger, &ledger, sizeof(ledger));
			assert_int_equal(trace_rewind(t, &err), 0);
		}
		trace_close(t);
		for (unsigned int i = 0; i < n; i++)
			free_round(rounds[i]);
		close(fd);
	}
}

/* More than one block: what is buffered cannot be written. */
static int write_much(struct recording *r, struct err *err)
{
	static struct ibs_record records[RECORDING_BATCH];
	struct gen g = { 3 };
	int ret = 0;

	for (int i = 0; i < RECORDING_BATCH; i++)
		gen_record(&g, &records[i]);
	for (int i = 0; i < 4 && !ret; i++)
		ret = recording_samples(r, records, NULL, RECORDING_BATCH, err);
	return ret ? ret : recording_flush(r, NULL, err);
}

static void test_nobody_reads(void **state)
{
	struct ledger ledger = {};
	struct recording *r;
	struct err err = {};
	int fds[2];

	(void)state;
	info = some_info();
	signal(SIGPIPE, SIG_IGN);
	assert_int_equal(pipe(fds), 0);
	r = create(fds[1], true);
	close(fds[0]);
	assert_int_equal(write_much(r, &err), -EPIPE);
	assert_non_null(strstr(err.text, "Broken pipe"));
	assert_int_equal(recording_flush(r, NULL, &err), -EIO);
	assert_int_equal(recording_finish(r, &ledger, &err), -EPIPE);
	recording_close(r);
	close(fds[1]);
}

/* A pipe that is full for a while and does not block: all arrives. */
static void test_slow_pipe(void **state)
{
	struct recording_opts opts = { .info = &info };
	static char buffer[5000];
	struct ledger ledger = {};
	struct trace_event ev;
	struct recording *r;
	struct err err = {};
	struct trace *t;
	int fds[2], copy, samples = 0;
	ssize_t n;
	pid_t pid;

	(void)state;
	info = some_info();
	assert_int_equal(pipe2(fds, O_NONBLOCK), 0);
	pid = fork();
	if (!pid) {
		close(fds[0]);
		opts.fd = fds[1];
		_exit(recording_create(&opts, &r, &err) || write_much(r, &err) ||
		      recording_finish(r, &ledger, &err));
	}
	close(fds[1]);
	copy = memfd_create("copy", 0);
	while ((n = read(fds[0], buffer, sizeof(buffer)))) {
		if (n < 0)
			usleep(1000);
		else
			assert_int_equal(write(copy, buffer, n), n);
	}
	close(fds[0]);
	t = open_fd(copy);
	while (trace_next(t, &ev, &err) > 0)
		samples++;
	assert_int_equal(samples, 4 * RECORDING_BATCH);
	assert_true(trace_end(t)->whole);
	trace_close(t);
	close(copy);
	assert_int_equal(waitpid(pid, &samples, 0), pid);
	assert_int_equal(samples, 0);
}

static void test_device_full(void **state)
{
	struct recording_opts opts = { .fd = open("/dev/full", O_WRONLY), .info = &info };
	struct recording *r;
	struct err err = {};

	(void)state;
	info = some_info();
	assert_int_equal(recording_create(&opts, &r, &err), -ENOSPC);
	assert_non_null(strstr(err.text, "No space left"));
	close(opts.fd);
}

/* Room for some blocks and a part of one; then, once there is room again, the end. */
static void test_no_room(void **state)
{
	struct rlimit limit, old;
	struct ledger ledger = { .seen = 5, .outcome[IBS_OUTCOME_FORWARDED] = 5 };
	int samples = 0, fd = memfd_create("small", 0);
	struct trace_event ev;
	struct recording *r;
	struct err err = {};
	struct trace *t;

	(void)state;
	info = some_info();
	signal(SIGXFSZ, SIG_IGN);
	assert_int_equal(getrlimit(RLIMIT_FSIZE, &old), 0);
	limit = old;
	r = create(fd, false);
	limit.rlim_cur = 900000;
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &limit), 0);
	assert_int_equal(write_much(r, &err), -EFBIG);
	assert_int_equal(recording_bytes(r), 900000);
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &old), 0);
	assert_int_equal(recording_finish(r, &ledger, &err), 0);
	recording_close(r);

	t = open_fd(fd);
	while (trace_next(t, &ev, &err) > 0)
		samples++;
	assert_int_equal(samples, 3 * RECORDING_BATCH / 2);
	assert_false(trace_end(t)->whole);
	assert_non_null(strstr(trace_end(t)->missing, "could not write everything"));
	assert_true(trace_end(t)->skipped_bytes > 100000);
	assert_true(trace_end(t)->has_ledger);
	assert_int_equal(trace_end(t)->ledger.seen, 5);
	trace_close(t);
	close(fd);
}

/* What is wrong with the call leaves the recording as it was. */
static void test_refused(void **state)
{
	struct trace_event ev = { .kind = TRACE_SAMPLE_OP };
	int fd = memfd_create("refused", 0);
	__u64 chain[TRACE_STACK_MAX + 1] = {};
	struct recording *r;
	struct err err = {};
	struct trace *t;
	static char name[2 * RECORDING_STRING_MAX];

	(void)state;
	info = some_info();
	memset(name, 'x', sizeof(name) - 1);
	r = create(fd, true);
	assert_int_equal(recording_event(r, &ev, &err), -EINVAL);
	assert_int_equal(recording_stack(r, -1, chain, 1, &err), -EINVAL);
	assert_int_equal(recording_stack(r, RECORDING_STACK_KEYS, chain, 1, &err), -EINVAL);
	assert_int_equal(recording_stack(r, 0, chain, TRACE_STACK_MAX + 1, &err), -EINVAL);
	assert_non_null(strstr(err.text, "at most 127"));
	ev.kind = TRACE_COMM;
	ev.comm.name = name;
	assert_int_equal(recording_event(r, &ev, &err), 0);
	assert_int_equal(recording_finish(r, NULL, &err), 0);
	recording_close(r);
	t = open_fd(fd);
	next(t, &ev);
	assert_int_equal(strlen(ev.comm.name), RECORDING_STRING_MAX - 1);
	at_end(t);
	assert_true(trace_end(t)->whole);
	assert_false(trace_end(t)->has_ledger);
	trace_close(t);
	close(fd);
}

/* A key that comes again means the new chain to samples given after it, and to those only. */
static void test_stack_key_again(void **state)
{
	struct ibs_record records[2] = { { .time = 1 }, { .time = 2 } };
	const struct ibs_record_extra stacks[2] = { { -1, 7 }, { -1, 7 } };
	int fd = memfd_create("again", 0);
	struct trace_event ev;
	struct recording *r;
	struct err err = {};
	struct trace *t;

	(void)state;
	info = some_info();
	r = create(fd, true);
	for (__u64 chain = 0; chain < 3; chain++) {
		assert_int_equal(recording_stack(r, 7, &chain, 1, &err), 0);
		assert_int_equal(recording_samples(r, records, stacks, 2, &err), 0);
	}
	assert_int_equal(recording_finish(r, NULL, &err), 0);
	recording_close(r);
	t = open_fd(fd);
	for (unsigned int i = 0; i < 6; i++) {
		next(t, &ev);
		assert_int_equal(ev.sample.n_stack, 2);
		assert_int_equal(ev.sample.stack[1], i / 2);
	}
	at_end(t);
	trace_close(t);
	close(fd);
}

/* Samples of first threads are skipped up to the next rewind, those of others and all events stay. */
static void test_first_threads(void **state)
{
	const struct ibs_record records[] = { { .time = 1, .tgid = 5, .tid = 5 },
					      { .time = 2, .tgid = 5, .tid = 6 },
					      { .time = 3, .tgid = 6, .tid = 6 },
					      { .time = 4, .tgid = 6, .tid = 5 },
					      { .time = 5, .tgid = 5, .tid = 5 } };
	const struct trace_event comm = { .kind = TRACE_COMM,
					  .time = 3,
					  .comm = { 6, 6, true, "a" } };
	static const __u64 skipped[] = { 2, 3, 4 }, all[] = { 1, 2, 3, 3, 4, 5 };
	int fd = memfd_create("threads", 0);
	struct trace_event ev;
	struct recording *r;
	struct err err = {};
	struct trace *t;

	(void)state;
	info = some_info();
	r = create(fd, true);
	assert_int_equal(recording_event(r, &comm, &err), 0);
	assert_int_equal(recording_samples(r, records, NULL, ARRAY_SIZE(records), &err), 0);
	assert_int_equal(recording_finish(r, NULL, &err), 0);
	recording_close(r);
	t = open_fd(fd);
	trace_skip_first_threads(t);
	for (unsigned int i = 0; i < ARRAY_SIZE(skipped); i++) {
		next(t, &ev);
		assert_int_equal(ev.time, skipped[i]);
	}
	at_end(t);
	trace_rewind(t, &err);
	for (unsigned int i = 0; i < ARRAY_SIZE(all); i++) {
		next(t, &ev);
		assert_int_equal(ev.time, all[i]);
	}
	at_end(t);
	trace_close(t);
	close(fd);
}

/* Command lines hold anything; a simulated recording stays one; nothing is known of a fresh one. */
static void test_description(void **state)
{
	int fd = memfd_create("description", 0);
	struct trace_info want;
	struct recording *r;
	struct err err = {};
	struct trace *t;

	(void)state;
	info = (struct trace_info){ .source = "sim",
				    .simulated = true,
				    .pmu = &pmu,
				    .n_pmus = 1,
				    .command = "a \xff\xc3 \x01\"" };
	want = info;
	strcpy(want.command, "a ?? \x01\"");
	r = create(fd, true);
	assert_int_equal(recording_finish(r, NULL, &err), 0);
	recording_close(r);
	t = open_fd(fd);
	same_info(trace_info(t), &want);
	at_end(t);
	trace_close(t);
	close(fd);
}

static void test_lost_text(void **state)
{
	const struct trace_info ours = { .format = "ibscope 1" },
				of_perf = { .format = "perf.data" };
	char text[128];

	(void)state;
	trace_lost_text(&ours, 1234, text, sizeof(text));
	assert_string_equal(text, "1,234 records of process names and mappings were lost; some "
				  "samples have no names");
	trace_lost_text(&of_perf, 1, text, sizeof(text));
	assert_string_equal(text, "1 record of unknown kind was lost");
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_round_trip),    cmocka_unit_test(test_nobody_reads),
		cmocka_unit_test(test_slow_pipe),     cmocka_unit_test(test_device_full),
		cmocka_unit_test(test_no_room),	      cmocka_unit_test(test_refused),
		cmocka_unit_test(test_description),   cmocka_unit_test(test_stack_key_again),
		cmocka_unit_test(test_first_threads), cmocka_unit_test(test_lost_text),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
