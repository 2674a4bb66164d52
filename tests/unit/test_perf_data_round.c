// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Recordings written as perf.data and read back: as a file, and in the format of pipes. */
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <time.h>

#include <cmocka.h>

#include "memory_in_use.h"
#include "perf_data/perf_data_write.h"
#include "perf_data_read.h"

#define GIB (1ULL << 30)

static struct trace_topology cores;
static const __u64 chain[] = { PERF_CONTEXT_USER, 0x401000, 0x402000 };
static const unsigned char build_id[20] = { 1, 2, 3, 4, [19] = 9 };

static const struct memory_range memory[] = {
	{ 0, 2 * GIB, 0 },
	{ 2 * GIB, 3 * GIB, 2 },
	{ 4 * GIB, 70 * GIB, 0 },
	{ 70 * GIB, 129 * GIB, 2 },
};

static const struct trace_pmu pmus[] = {
	{ .name = "ibs_op/cnt_ctl=1/", .op = true, .stacks = true, .period = 0x12340 },
	{ .name = "ibs_fetch//", .freq = true, .period = 4000 },
};

static struct trace_info machine(void)
{
	return (struct trace_info){
		.host = "a-host",
		.release = "6.12.1",
		.command = "ls -l",
		.n_cpus = 7,
		.cpu = { .vendor = "AuthenticAMD",
			 .name = "AMD EPYC 9654",
			 .family = 0x19,
			 .model = 0x11,
			 .stepping = 1,
			 .caps = 0xbff },
		.has_cpu = true,
		.memory = memory,
		.n_memory = ARRAY_SIZE(memory),
		.pmu = pmus,
		.n_pmus = ARRAY_SIZE(pmus),
		.realtime_ns = 1700000000123456789,
		.monotonic_ns = 4711,
	};
}

static const struct trace_event *op_event(void)
{
	static struct trace_event op = { .kind = TRACE_SAMPLE_OP, .time = 9 };
	struct trace_sample *s = &op.sample;

	*s = (struct trace_sample){
		.tgid = 100,
		.tid = 101,
		.cpu = 3,
		.has_task = true,
		.has_cpu = true,
		.has_time = true,
		.cgroup_id = 4711,
		.ip = 0x401000,
		.has_ip = true,
		.stack = chain,
		.n_stack = ARRAY_SIZE(chain),
	};
	s->op.cpu.caps = 0xbff;
	s->op.nregs = IBS_OP_DATA4;
	s->op.present = (1U << IBS_OP_DATA4) - 1;
	for (unsigned int i = 0; i < IBS_OP_DATA4; i++)
		s->op.reg[i] = 0x1000 + i;
	return &op;
}

static const struct trace_event *fetch_event(void)
{
	static struct trace_event fetch = { .kind = TRACE_SAMPLE_FETCH, .time = 10 };
	struct trace_sample *s = &fetch.sample;

	*s = (struct trace_sample){ .pmu = 1, .ip = 1ULL << 63, .has_ip = true, .kernel = true };
	s->fetch.cpu.caps = 0xbff;
	s->fetch.nregs = IBS_FETCH_REG_N;
	s->fetch.present = (1U << IBS_FETCH_REG_N) - 1;
	for (unsigned int i = 0; i < IBS_FETCH_REG_N; i++)
		s->fetch.reg[i] = 0x2000 + i;
	return &fetch;
}

static const struct trace_event others[] = {
	{ .kind = TRACE_COMM, .time = 1, .comm = { 100, 101, true, "an exec" } },
	{ .kind = TRACE_COMM, .time = 2, .comm = { 100, 102, false, "renamed" } },
	{ .kind = TRACE_MMAP,
	  .time = 3,
	  .mmap = { .tgid = 100,
		    .tid = 101,
		    .exec = true,
		    .start = 0x400000,
		    .len = 0x1000,
		    .pgoff = 0x2000,
		    .path = "/bin/12345",
		    .build_id_len = 20,
		    .build_id = { 1, 2, 3, 4, [19] = 9 } } },
	{ .kind = TRACE_MMAP,
	  .time = 4,
	  .mmap = { .tgid = ~0U, .kernel = true, .start = 1ULL << 63, .len = 5, .path = "[k]" } },
	{ .kind = TRACE_FORK, .time = 5, .fork = { 200, 201, 100, 101 } },
	{ .kind = TRACE_EXIT, .time = 6, .fork = { 200, 202, 100, 102 } },
	{ .kind = TRACE_CGROUP, .time = 7, .cgroup = { .id = 4711, .path = "/a" } },
	{ .kind = TRACE_LOST, .time = 8, .lost = { .n = 55, .cpu = 2 } },
	{ .kind = TRACE_LOST, .time = 8, .lost = { .n = 66, .samples = true, .cpu = ~0U } },
	{ .kind = TRACE_REGION, .time = 8 }, /* perf knows none */
};

/* Write @info, and @n events, into a file as `b`; in the format of pipes if the file is appended to. */
static void write_file(const struct trace_info *info, const struct trace_event *const *events,
		       size_t n, bool append)
{
	int fd = memfd_create("perf.data", 0);
	struct perf_writer *w;
	off_t size;

	assert_true(fd >= 0);
	assert_int_equal(fcntl(fd, F_SETFL, append ? O_APPEND : 0), 0);
	if (perf_writer_open(fd, info, &w, &e))
		fail_msg("%s", e.text);
	for (size_t i = 0; i < n; i++)
		perf_writer_add(w, events[i]);
	if (perf_writer_close(w, &e))
		fail_msg("%s", e.text);
	size = lseek(fd, 0, SEEK_END);
	reset(NULL);
	put_words(&b, 0, (size + 7) / 8);
	b.n = size;
	assert_int_equal(pread(fd, b.p, b.n, 0), size);
	close(fd);
}

static void same_info(const struct trace_info *is, const struct trace_info *want)
{
	assert_string_equal(is->host, want->host);
	assert_string_equal(is->release, want->release);
	assert_string_equal(is->command, want->command);
	assert_string_equal(is->source, "ibs");
	assert_false(is->simulated);
	assert_true(is->has_cpu && is->full_registers);
	assert_int_equal(is->n_cpus, want->n_cpus);
	assert_string_equal(is->cpu.vendor, want->cpu.vendor);
	assert_string_equal(is->cpu.name, want->cpu.name);
	assert_int_equal(is->cpu.family, want->cpu.family);
	assert_int_equal(is->cpu.model, want->cpu.model);
	assert_int_equal(is->cpu.stepping, want->cpu.stepping);
	assert_int_equal(is->cpu.caps, want->cpu.caps);
	assert_int_equal(is->realtime_ns, want->realtime_ns);
	assert_int_equal(is->monotonic_ns, want->monotonic_ns);
	assert_int_equal(is->n_memory, want->n_memory);
	for (size_t i = 0; i < is->n_memory; i++) {
		assert_int_equal(is->memory[i].start, want->memory[i].start);
		assert_int_equal(is->memory[i].end, want->memory[i].end);
		assert_int_equal(is->memory[i].node, want->memory[i].node);
	}
	assert_int_equal(is->n_pmus, want->n_pmus);
	for (size_t i = 0; i < is->n_pmus; i++) {
		const struct trace_pmu *p = &is->pmu[i], *q = &want->pmu[i];

		assert_int_equal(p->op, q->op);
		assert_int_equal(p->freq, q->freq);
		assert_int_equal(p->stacks, q->stacks);
		assert_int_equal(p->period, q->period);
		assert_true(p->physical);
		assert_false(p->filtered);
		assert_int_equal(p->config, i ? 0 : 1 << 19);
	}
}

static void same_map(const struct trace_mmap *m, const struct trace_mmap *want)
{
	assert_int_equal(m->tgid, want->tgid);
	assert_int_equal(m->tid, want->tid);
	assert_int_equal(m->kernel, want->kernel);
	assert_int_equal(m->exec, want->exec);
	assert_int_equal(m->start, want->start);
	assert_int_equal(m->len, want->len);
	assert_int_equal(m->pgoff, want->pgoff);
	assert_string_equal(m->path, want->path);
	assert_int_equal(m->build_id_len, want->build_id_len);
	assert_memory_equal(m->build_id, want->build_id, want->build_id_len);
}

static void same_other(const struct trace_event *want)
{
	next(want->kind, want->time);
	switch (want->kind) {
	case TRACE_COMM:
		assert_int_equal(ev.comm.tgid, want->comm.tgid);
		assert_int_equal(ev.comm.tid, want->comm.tid);
		assert_int_equal(ev.comm.exec, want->comm.exec);
		assert_string_equal(ev.comm.name, want->comm.name);
		break;
	case TRACE_MMAP:
		same_map(&ev.mmap, &want->mmap);
		break;
	case TRACE_CGROUP:
		assert_int_equal(ev.cgroup.id, want->cgroup.id);
		assert_string_equal(ev.cgroup.path, want->cgroup.path);
		break;
	case TRACE_LOST:
		assert_int_equal(ev.lost.n, want->lost.n);
		assert_int_equal(ev.lost.samples, want->lost.samples);
		assert_int_equal(ev.lost.cpu, want->lost.cpu);
		break;
	default:
		assert_memory_equal(&ev.fork, &want->fork, sizeof(ev.fork));
	}
}

static void same_samples(void)
{
	const struct trace_sample *s = &ev.sample;

	next(TRACE_SAMPLE_OP, 9);
	assert_int_equal(s->pmu, 0);
	assert_int_equal(s->tgid, 100);
	assert_int_equal(s->tid, 101);
	assert_int_equal(s->cpu, 3);
	assert_true(s->has_task && s->has_cpu && s->has_time && s->has_ip);
	assert_false(s->kernel);
	assert_int_equal(s->ip, 0x401000);
	assert_int_equal(s->cgroup_id, 4711);
	assert_int_equal(s->n_stack, ARRAY_SIZE(chain));
	assert_memory_equal(s->stack, chain, sizeof(chain));
	assert_int_equal(s->op.cpu.caps, 0xbff);
	assert_int_equal(s->op.present, (1U << IBS_OP_DATA4) - 1);
	for (unsigned int i = 0; i < IBS_OP_DATA4; i++)
		assert_int_equal(s->op.reg[i], 0x1000 + i);
	next(TRACE_SAMPLE_FETCH, 10);
	assert_int_equal(s->pmu, 1);
	assert_false(s->has_task);
	assert_true(s->has_ip && s->kernel);
	assert_int_equal(s->ip, 1ULL << 63);
	assert_int_equal(s->n_stack, 0);
	for (unsigned int i = 0; i < IBS_FETCH_REG_N; i++)
		assert_int_equal(s->fetch.reg[i], 0x2000 + i);
}

/* Everything that perf.data has room for comes back as it was. */
static void test_read_back(void **unused)
{
	const struct trace_event *events[ARRAY_SIZE(others) + 2];
	const struct trace_info info = machine();

	(void)unused;
	for (size_t i = 0; i < ARRAY_SIZE(others); i++)
		events[i] = &others[i];
	events[ARRAY_SIZE(others)] = op_event();
	events[ARRAY_SIZE(others) + 1] = fetch_event();
	for (int append = 0; append < 2; append++) {
		write_file(&info, events, ARRAY_SIZE(events), append);
		assert_int_equal(perf_get64(b.p + 8),
				 append ? PERF_PIPE_HEADER_SIZE : sizeof(struct perf_file_header));
		must_open();
		same_info(trace_info(state), &info);
		for (size_t i = 0; i < ARRAY_SIZE(pmus); i++)
			assert_string_equal(trace_info(state)->pmu[i].name, pmus[i].name);
		for (size_t i = 0; i + 1 < ARRAY_SIZE(others); i++)
			same_other(&others[i]);
		same_samples();
		whole();
		perf_data_format.close(state);
		state = NULL;
	}
}

/* The bytes of a feature in a file with a head; {} if it has none. */
static struct perf_bytes feature(enum perf_feature nr)
{
	const struct perf_file_header *h = (const void *)b.p;
	size_t at = h->data.offset + h->data.size;

	if (!(h->features[0] >> nr & 1))
		return (struct perf_bytes){};
	at += sizeof(struct perf_section) *
	      __builtin_popcountll(h->features[0] & ((1ULL << nr) - 1));
	assert_true(perf_get64(b.p + at) + perf_get64(b.p + at + 8) <= b.n);
	return (struct perf_bytes){ b.p + perf_get64(b.p + at), perf_get64(b.p + at + 8) };
}

static void has_text(struct perf_bytes *f, const char *want)
{
	char text[64];

	assert_int_equal(perf_get32(f->p) % 64, 0); /* as perf pads them */
	assert_true(perf_take_string(f, text, sizeof(text)));
	assert_string_equal(text, want);
}

static void has32(struct perf_bytes *f, __u32 want)
{
	__u32 v;

	assert_true(perf_take32(f, &v));
	assert_int_equal(v, want);
}

static void has64(struct perf_bytes *f, __u64 want)
{
	__u64 v;

	assert_true(perf_take64(f, &v));
	assert_int_equal(v, want);
}

/* What is not known is left out, not written as zero. */
static void test_unknown(void **unused)
{
	struct trace_info info = { .pmu = pmus, .n_pmus = 1 };
	const __u64 always = 1ULL << PERF_FEATURE_ARCH | 1ULL << PERF_FEATURE_EVENT_DESC |
			     1ULL << PERF_FEATURE_PMU_MAPPINGS | 1ULL << PERF_FEATURE_PMU_CAPS;

	(void)unused;
	write_file(&info, NULL, 0, false);
	assert_int_equal(((struct perf_file_header *)b.p)->features[0], always);
	must_open();
	assert_string_equal(trace_info(state)->source, "ibs");
	assert_false(trace_info(state)->has_cpu);
	assert_int_equal(trace_info(state)->n_memory, 0);
	assert_int_equal(trace_info(state)->realtime_ns, 0);
	whole();
	perf_data_format.close(state);
	state = NULL;
	info.n_pmus = 0;
	assert_int_equal(perf_writer_open(1, &info, &(struct perf_writer *){ NULL }, &e), -EINVAL);
	assert_int_equal(perf_writer_close(NULL, &e), 0);
}

/* Simulated samples stay marked as such. */
static void test_simulated(void **unused)
{
	struct trace_info info = machine();

	(void)unused;
	info.simulated = true;
	for (int i = 0; i < 2; i++) {
		write_file(&info, NULL, 0, i);
		must_open();
		assert_true(trace_info(state)->simulated);
		assert_string_equal(trace_info(state)->source, "sim");
		assert_string_equal(trace_info(state)->command, "ls -l");
		perf_data_format.close(state);
		state = NULL;
	}
}

/* What perf reads of the head, and our reader does not. */
static void test_features(void **unused)
{
	struct trace_info info = machine();
	struct trace_pmu pmu = { .op = true, .period = 1000 };
	struct perf_bytes f;

	(void)unused;
	write_file(&info, NULL, 0, false);
	f = feature(PERF_FEATURE_ARCH);
	has_text(&f, "x86_64");
	f = feature(PERF_FEATURE_NRCPUS);
	has32(&f, 7);
	has32(&f, 7);
	f = feature(PERF_FEATURE_PMU_CAPS);
	has32(&f, 1);
	has32(&f, 1);
	has_text(&f, "zen4_ibs_extensions");
	has_text(&f, "1");
	has_text(&f, "ibs_op");
	assert_int_equal(f.n, 0);
	f = feature(PERF_FEATURE_PMU_MAPPINGS);
	has32(&f, 2);
	f = feature(PERF_FEATURE_CLOCK_DATA);
	has32(&f, 1);
	has32(&f, CLOCK_MONOTONIC);
	f = feature(PERF_FEATURE_EVENT_DESC);
	has32(&f, 2);
	has32(&f, sizeof(struct perf_event_attr));
	for (int i = 0; i < 2; i++) {
		struct perf_event_attr attr;

		memcpy(&attr, perf_take(&f, sizeof(attr)), sizeof(attr));
		assert_true(attr.sample_id_all && attr.comm && attr.comm_exec && attr.mmap &&
			    attr.mmap2 && attr.mmap_data && attr.task && attr.cgroup &&
			    attr.use_clockid);
		assert_int_equal(attr.clockid, CLOCK_MONOTONIC);
		assert_int_equal(attr.size, sizeof(attr));
		has32(&f, 1);
		has_text(&f, pmus[i].name);
		has64(&f, i + 1); /* the id in samples */
	}
	assert_int_equal(f.n, 0);

	info.cpu.caps = 0xff; /* Zen 3 */
	info.pmu = &pmu;
	info.n_pmus = 1;
	for (size_t n = 62; n <= 65;
	     n++) { /* with its end in as many pieces of 64 bytes as it needs */
		memset(pmu.name, 'n', n);
		write_file(&info, NULL, 0, false);
		f = feature(PERF_FEATURE_EVENT_DESC);
		assert_int_equal(perf_get32(f.p + 12 + sizeof(struct perf_event_attr)),
				 n < 64 ? 64 : 128);
		must_open();
		assert_string_equal(trace_info(state)->pmu[0].name, pmu.name);
		perf_data_format.close(state);
		state = NULL;
	}
	f = feature(PERF_FEATURE_PMU_CAPS);
	has32(&f, 1);
	has32(&f, 0);
	has_text(&f, "ibs_op");
	assert_int_equal(f.n, 0);
}

/* A stratum without a period of its own is no counting event. */
static void test_period_of_strata(void **unused)
{
	static const struct trace_pmu strata[] = {
		{ .name = "ibs_op//", .op = true, .reach = 1, .period = 0 },
		{ .name = "ibs_op//", .op = true, .reach = 0, .period = 0 },
	};
	const struct trace_info info = { .pmu = strata, .n_pmus = 2 };

	(void)unused;
	write_file(&info, NULL, 0, false);
	must_open();
	assert_int_equal(trace_info(state)->pmu[0].period, 1);
	assert_int_equal(trace_info(state)->pmu[1].period, 0);
}

/* CPUs by node, with its memory in KiB. */
static void test_nodes(void **unused)
{
	static const __u16 node[] = { 2, 2, 0, 0, 2, 7 };
	struct trace_info info = machine();
	struct perf_bytes f;

	(void)unused;
	cores = (struct trace_topology){ .n = ARRAY_SIZE(node) };
	memcpy(cores.node, node, sizeof(node));
	info.topology = &cores;
	write_file(&info, NULL, 0, false);
	f = feature(PERF_FEATURE_NUMA_TOPOLOGY);
	has32(&f, 3);
	has32(&f, 2);
	has64(&f, 60 * GIB / 1024);
	has64(&f, 0);
	has_text(&f, "0-1,4");
	has32(&f, 0);
	has64(&f, 68 * GIB / 1024);
	has64(&f, 0);
	has_text(&f, "2-3");
	has32(&f, 7);
	has64(&f, 0);
	has64(&f, 0);
	has_text(&f, "5");
	assert_int_equal(f.n, 0);
	f = feature(PERF_FEATURE_MEM_TOPOLOGY);
	has64(&f, 1);
	has64(&f, GIB);
	has64(&f, 2);
	has64(&f, 0);
	has64(&f, 129);
	has64(&f, 129);
	has64(&f, ~0ULL ^ 1 << 2 ^ 1 << 3);
	has64(&f, 0x3f);
	has64(&f, 0);
	has64(&f, 2);
	has64(&f, 129);
	has64(&f, 129);
	has64(&f, 1 << 2);
	has64(&f, ~0x3fULL);
	has64(&f, 1);
	assert_int_equal(f.n, 0);
}

/* More CPUs than a word has bits, and memory in one piece. */
static void test_one_node(void **unused)
{
	static const struct memory_range all = { 0, GIB, 0 };
	struct trace_info info = machine();
	struct perf_bytes f;

	(void)unused;
	info.memory = &all;
	info.n_memory = 1;
	cores = (struct trace_topology){ .n = 200 };
	info.topology = &cores;
	write_file(&info, NULL, 0, false);
	f = feature(PERF_FEATURE_NUMA_TOPOLOGY);
	has32(&f, 1);
	has32(&f, 0);
	has64(&f, GIB / 1024);
	has64(&f, 0);
	has_text(&f, "0-199");
	assert_int_equal(f.n, 0);
	must_open();
	assert_int_equal(trace_info(state)->n_memory, 1);
	assert_int_equal(trace_info(state)->memory->end, GIB);
}

/* Without the register that enables sampling, one is made for perf; our reader knows that it was not recorded. */
static void test_no_ctl(void **unused)
{
	const struct trace_info info = machine();
	struct trace_event op = *op_event();
	const struct trace_event *events[] = { &op };

	(void)unused;
	op.sample.op.present = ((1U << IBS_OP_REG_FIXED) - 1) & ~(1U << IBS_OP_CTL);
	write_file(&info, events, 1, false);
	must_open();
	assert_false(trace_info(state)->full_registers);
	assert_int_equal(trace_info(state)->cpu.caps,
			 0xbff & ~(IBS_CAPS_BRNTRGT | IBS_CAPS_OPDATA4));
	next(TRACE_SAMPLE_OP, 9);
	assert_int_equal(ev.sample.op.present, op.sample.op.present);
	assert_int_equal(ev.sample.op.reg[IBS_OP_CTL], 0);
	assert_int_equal(ev.sample.op.reg[IBS_OP_RIP], 0x1000 + IBS_OP_RIP);
	assert_int_equal(ev.sample.op.cpu.caps, trace_info(state)->cpu.caps);
	whole();
}

/* Too much for its buffer: perf.data has nothing of it rather than a part. */
static void test_no_room(void **unused)
{
	static const struct memory_range most[] = { { 0, 1ULL << 12, 0 },
						    { 1ULL << 40, 1ULL << 41, 0 } };
	struct trace_info info = machine();

	(void)unused;
	info.memory = most;
	info.n_memory = ARRAY_SIZE(most);
	cores = (struct trace_topology){ .n = 4096 };
	for (unsigned int cpu = 0; cpu < cores.n; cpu++)
		cores.node[cpu] = cpu;
	info.topology = &cores;
	write_file(&info, NULL, 0, false);
	assert_null(feature(PERF_FEATURE_MEM_TOPOLOGY).p);
	assert_null(feature(PERF_FEATURE_NUMA_TOPOLOGY).p);
	must_open();
	assert_int_equal(trace_info(state)->n_memory, 0);
}

/* Readers sort within two rounds: one ends when four seconds have passed since the last did. */
static void test_rounds(void **unused)
{
	static const struct {
		__u64 time;
		bool ends;
	} rows[] = {
		{ 4000000000, false }, { 4000000001, true }, { 8000000001, false },
		{ 8000000002, true },  { 1, false },	     { 12000000003, true },
	};
	const struct trace_info info = machine();
	struct trace_event comms[ARRAY_SIZE(rows)];
	const struct trace_event *events[ARRAY_SIZE(rows)];
	const struct perf_file_header *h;
	size_t at;

	(void)unused;
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		comms[i] = (struct trace_event){ .kind = TRACE_COMM, .time = rows[i].time };
		comms[i].comm.name = "x";
		events[i] = &comms[i];
	}
	write_file(&info, events, ARRAY_SIZE(events), false);
	h = (const void *)b.p;
	at = h->data.offset;
	for (size_t i = 0; i <= ARRAY_SIZE(rows); i++) {
		if (i == ARRAY_SIZE(rows) || rows[i].ends) { /* and at the end of the file */
			assert_int_equal(perf_get32(b.p + at), PERF_RECORD_FINISHED_ROUND);
			assert_int_equal(perf_get16(b.p + at + 6), 8);
			at += 8;
		}
		if (i < ARRAY_SIZE(rows)) {
			assert_int_equal(perf_get32(b.p + at), PERF_RECORD_COMM);
			at += perf_get16(b.p + at + 6);
		}
	}
	assert_int_equal(at, h->data.offset + h->data.size);
}

/* Words of records that our reader does not look at. */
static void test_map_words(void **unused)
{
	const struct trace_info info = machine();

	(void)unused;
	for (int exec = 0; exec < 2; exec++) {
		struct trace_event map = others[2];
		const struct trace_event *events[] = { &map };
		const unsigned char *p;

		map.mmap.exec = exec;
		write_file(&info, events, 1, false);
		p = b.p + ((struct perf_file_header *)b.p)->data.offset;
		assert_int_equal(perf_get32(p), PERF_RECORD_MMAP2);
		assert_int_equal(perf_get16(p + 4) & PERF_RECORD_MISC_CPUMODE_MASK,
				 PERF_RECORD_MISC_USER);
		p += sizeof(struct perf_event_header);
		assert_int_equal(p[32], 20);
		assert_memory_equal(p + 36, build_id, 20);
		assert_int_equal(perf_get32(p + 56), exec ? 5 : 1); /* PROT_READ, PROT_EXEC */
		assert_int_equal(perf_get32(p + 60), 2);	    /* MAP_PRIVATE */
		p += 64 + 16; /* path, padded; then the sample_id */
		assert_int_equal(perf_get32(p), 100);
		assert_int_equal(perf_get32(p + 4), 101);
		assert_int_equal(perf_get64(p + 8), 3);
		assert_int_equal(perf_get32(p + 16), ~0U);
		assert_int_equal(perf_get32(p + 20), 0);
		assert_int_equal(perf_get64(p + 24), 1);
	}
}

/* Each record of the format for pipes fills whole words, and the file ends with the last one. */
static void test_pipe_words(void **unused)
{
	struct trace_info info = machine();
	struct trace_event late = { .kind = TRACE_MMAP, .time = 5000000000 };
	const struct trace_event *events[] = { &late };
	unsigned int rounds = 0;

	(void)unused;
	late.mmap = (struct trace_mmap){ .path = "abc" };
	for (size_t n = 1; n <= 8; n++) {
		memset(info.command, 'c', n);
		write_file(&info, events, 1, true);
		rounds = 0;
		for (size_t at = PERF_PIPE_HEADER_SIZE; at < b.n;) {
			const __u32 type = perf_get32(b.p + at);

			assert_int_equal(perf_get16(b.p + at + 6) % 8, 0);
			assert_true(perf_get16(b.p + at + 6) >= 8);
			assert_int_equal(perf_get16(b.p + at + 4),
					 type == PERF_RECORD_MMAP2
						 ? PERF_RECORD_MISC_USER |
							   PERF_RECORD_MISC_MMAP_DATA
						 : 0);
			rounds += type == PERF_RECORD_FINISHED_ROUND;
			at += perf_get16(b.p + at + 6);
			assert_true(at <= b.n);
		}
		assert_int_equal(rounds, 2);
	}
}

/* A file whose writer was killed says so by its head; and a whole one ends with its last feature. */
static void test_unfinished(void **unused)
{
	const struct trace_info info = machine();
	const struct trace_event *op = op_event();
	const struct perf_file_header *h;
	struct perf_file_header head;
	struct perf_bytes f;
	struct perf_writer *w;
	int fd = memfd_create("perf.data", 0);

	(void)unused;
	assert_int_equal(perf_writer_open(fd, &info, &w, &e), 0);
	for (int i = 0; i < 1000; i++)
		perf_writer_add(w, op);
	assert_int_equal(pread(fd, &head, sizeof(head), 0), sizeof(head));
	assert_int_equal(head.magic, PERF_MAGIC);
	assert_int_equal(head.data.size, 0);
	assert_int_equal(head.features[0], 0);
	assert_int_equal(perf_writer_close(w, &e), 0);
	close(fd);
	write_file(&info, &op, 1, false);
	h = (const void *)b.p;
	f = feature(63 - __builtin_clzll(h->features[0]));
	assert_ptr_equal(f.p + f.n, b.p + b.n);
}

static void test_memory_comes_back(void **unused)
{
	const struct trace_info info = machine();
	const struct trace_event *op = op_event();
	size_t before = 0;

	(void)unused;
	for (int i = 0; i < 300; i++) {
		if (i == 10)
			before = memory_in_use();
		write_file(&info, &op, 1, i % 2);
	}
	assert_in_range(memory_in_use(), 0, before + MEMORY_SLACK);
}

/* A disk that is full is an error of the writer, at the latest when it ends. */
static void test_full(void **unused)
{
	const struct trace_info info = machine();
	const struct trace_event *op = op_event();
	struct perf_writer *w;
	int fd = open("/dev/full", O_WRONLY | O_CLOEXEC);

	(void)unused;
	if (fd < 0)
		skip();
	assert_int_equal(perf_writer_open(fd, &info, &w, &e), 0);
	for (int i = 0; i < 1000; i++)
		perf_writer_add(w, op);
	assert_int_equal(perf_writer_close(w, &e), -ENOSPC);
	assert_non_null(strstr(e.text, "cannot write: No space left"));
	close(fd);
	assert_int_equal(perf_writer_open(-1, &info, &w, &e), -EBADF);
	assert_non_null(strstr(e.text, "descriptor"));
}

int main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, reset, clean)
	const struct CMUnitTest tests[] = {
		TEST(test_read_back),	     TEST(test_unknown),
		TEST(test_simulated),	     TEST(test_features),
		TEST(test_period_of_strata), TEST(test_nodes),
		TEST(test_no_room),	     TEST(test_rounds),
		TEST(test_map_words),	     TEST(test_full),
		TEST(test_one_node),	     TEST(test_pipe_words),
		TEST(test_unfinished),	     TEST(test_memory_comes_back),
		TEST(test_no_ctl),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
