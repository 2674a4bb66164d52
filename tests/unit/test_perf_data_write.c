// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Samples that we write as perf.data, byte by byte: what perf reads of them that our own reader does not. */
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/err.h"
#include "base/std.h"
#include "perf_data/perf_data_format.h"
#include "perf_data/perf_data_write.h"

#define CAPS	   0xbffU /* Zen 4 */
#define PERIOD_MAX 0x7ffff0

static unsigned char bytes[1 << 16];
static size_t n_bytes;

/* Write one sample to @fd. What is at @from then is in `bytes`. */
static void write_sample(const struct trace_pmu *pmu, const struct trace_event *ev, int fd,
			 size_t from)
{
	const struct trace_info info = { .pmu = pmu, .n_pmus = 1 };
	struct perf_writer *w = NULL;
	struct err err = {};
	ssize_t n;

	if (perf_writer_open(fd, &info, &w, &err))
		fail_msg("%s", err.text);
	perf_writer_add(w, ev);
	if (perf_writer_close(w, &err))
		fail_msg("%s", err.text);
	n = pread(fd, bytes, sizeof(bytes), from);
	assert_in_range(n, 1, sizeof(bytes) - 1);
	n_bytes = n;
}

static int scratch(void)
{
	int fd = memfd_create("perf.data", 0);

	assert_true(fd >= 0);
	return fd;
}

/* The layout of samples without call chains, up to the raw data and behind it. */
struct before_raw {
	struct perf_event_header header;
	__u64 id, ip;
	__u32 tgid, tid;
	__u64 time, addr;
	__u32 cpu, zero;
	__u64 period;
	__u32 raw_bytes, caps;
};

struct behind_raw {
	__u64 weight, data_src, phys, cgroup;
};

static struct before_raw before;
static struct behind_raw behind;
static __u64 regs[IBS_OP_REG_N];

/* The one sample of a file, from @at on. */
static void find_sample(size_t at)
{
	struct perf_event_header h;

	do {
		assert_true(at + sizeof(h) <= n_bytes);
		memcpy(&h, bytes + at, sizeof(h));
		assert_true(h.size >= sizeof(h) && at + h.size <= n_bytes);
		at += h.size;
	} while (h.type != PERF_RECORD_SAMPLE);
	at -= h.size;
	memcpy(&before, bytes + at, sizeof(before));
	assert_in_range(before.raw_bytes, sizeof(before.caps), sizeof(before.caps) + sizeof(regs));
	memset(regs, 0, sizeof(regs));
	memcpy(regs, bytes + at + sizeof(before), before.raw_bytes - sizeof(before.caps));
	assert_int_equal(h.size,
			 sizeof(before) + before.raw_bytes - sizeof(before.caps) + sizeof(behind));
	memcpy(&behind, bytes + at + h.size - sizeof(behind), sizeof(behind));
}

static void sample_of(const struct trace_pmu *pmu, const struct trace_event *ev)
{
	struct perf_file_header h;
	int fd = scratch();

	write_sample(pmu, ev, fd, 0);
	close(fd);
	memcpy(&h, bytes, sizeof(h));
	assert_int_equal(h.magic, PERF_MAGIC);
	assert_int_equal(h.size, sizeof(h));
	find_sample(h.data.offset);
}

static struct trace_event op_sample(__u64 data2, __u64 data3)
{
	struct trace_event ev = { .kind = TRACE_SAMPLE_OP, .time = 1 };
	struct ibs_op_sample *op = &ev.sample.op;

	op->cpu.caps = CAPS;
	op->nregs = IBS_OP_REG_FIXED;
	op->present = ((1U << IBS_OP_REG_FIXED) - 1) & ~(1U << IBS_OP_CTL);
	op->reg[IBS_OP_DATA2] = data2;
	op->reg[IBS_OP_DATA3] = data3;
	return ev;
}

/* Snoops, as perf mem and perf c2c read them: of a line that another cache had modified, and of no other. */
static void test_hitm(void **state)
{
#define MISS (IBS_OP_DATA3_LD_OP | IBS_OP_DATA3_DC_MISS | IBS_OP_DATA3_L2_MISS)
	static const struct {
		__u64 data2, data3, snoop;
	} rows[] = {
		{ 1, MISS, PERF_MEM_SNOOP_HITM }, /* L3 */
		{ 2, MISS, PERF_MEM_SNOOP_HITM }, /* another complex */
		{ 5, MISS, PERF_MEM_SNOOP_HITM }, /* another node */
		{ 2 | IBS_OP_DATA2_OWNED, MISS, PERF_MEM_SNOOP_NA },
		{ 3, MISS, PERF_MEM_SNOOP_NA }, /* memory has no state */
		{ 2, MISS & ~IBS_OP_DATA3_L2_MISS, PERF_MEM_SNOOP_NA },
		{ 2, IBS_OP_DATA3_LD_OP, PERF_MEM_SNOOP_NA },
		{ 2, MISS ^ IBS_OP_DATA3_LD_OP ^ IBS_OP_DATA3_ST_OP, PERF_MEM_SNOOP_NA },
		{ 2, 0, PERF_MEM_SNOOP_NA },
	};
#undef MISS
	const struct trace_pmu pmu = { .name = "ibs_op//", .op = true, .period = 0x1000 };

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		const struct trace_event ev = op_sample(rows[i].data2, rows[i].data3);
		union perf_mem_data_src src;

		sample_of(&pmu, &ev);
		src.val = behind.data_src;
		if (src.mem_snoop != rows[i].snoop)
			fail_msg("row %zu: %u", i, (unsigned int)src.mem_snoop);
	}
}

/*
 * Without IBS_OP_CTL in the recording, it is made of the event: perf decodes only samples with En and Val, and its
 * period, in two fields, is that of the event.
 */
static void test_period(void **state)
{
	static const __u32 periods[] = { 0x10, 0x1000, 0xffff0, 0x100000, 0x123450, PERIOD_MAX };

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(periods); i++) {
		struct trace_pmu pmu = { .name = "ibs_op//", .op = true, .period = periods[i] };
		struct trace_event ev = op_sample(0, 0);
		__u64 ctl;

		sample_of(&pmu, &ev);
		ctl = regs[IBS_OP_CTL];
		assert_int_equal(before.period, periods[i]);
		assert_true(before.caps & PERF_RAW_NO_CTL);
		assert_int_equal(((ctl & 0xffff) | (ctl >> 20 & 0x7f) << 16) << 4, periods[i]);
		assert_int_equal(ctl >> 17 & 7, 3); /* En, Val; counts cycles */
		strcpy(pmu.name, "ibs_op/cnt_ctl=1/");
		sample_of(&pmu, &ev);
		assert_int_equal(regs[IBS_OP_CTL] >> 17 & 7, 7);
		/* what was recorded stays as it is */
		ev.sample.op.present |= 1U << IBS_OP_CTL;
		ev.sample.op.reg[IBS_OP_CTL] = 0x1234;
		sample_of(&pmu, &ev);
		assert_int_equal(regs[IBS_OP_CTL], 0x1234);
		assert_false(before.caps & PERF_RAW_NO_CTL);
	}
}

/*
 * The head at the start of a file is completed at the end. Behind other bytes, or in a file that is appended to,
 * there is nothing to come back to: the format is that of pipes.
 */
static void test_not_at_the_start(void **state)
{
	static const char text[] = "what was there before";
	const struct trace_pmu pmu = { .name = "ibs_op//", .op = true, .period = 0x1000 };
	const struct trace_event ev = op_sample(3, 0);

	(void)state;
	for (int append = 0; append < 2; append++) {
		__u64 head[2];
		int fd = scratch();

		assert_int_equal(write(fd, text, sizeof(text)), sizeof(text));
		if (append) {
			assert_int_equal(lseek(fd, 0, SEEK_SET), 0);
			assert_int_equal(fcntl(fd, F_SETFL, O_APPEND), 0);
		}
		write_sample(&pmu, &ev, fd, 0);
		assert_memory_equal(bytes, text, sizeof(text));
		memcpy(head, bytes + sizeof(text), sizeof(head));
		assert_int_equal(head[0], PERF_MAGIC);
		assert_int_equal(head[1], PERF_PIPE_HEADER_SIZE);
		find_sample(sizeof(text) + PERF_PIPE_HEADER_SIZE);
		assert_int_equal(before.time, 1);
		close(fd);
	}
}

/* Where the data came from, as perf mem reports it: level, its number, whether it is remote, and hops. */
static void test_sources(void **state)
{
#define L1_MISS	 (IBS_OP_DATA3_LD_OP | IBS_OP_DATA3_DC_MISS)
#define MISS	 (L1_MISS | IBS_OP_DATA3_L2_MISS)
#define HIT(lvl) (PERF_MEM_LVL_HIT | PERF_MEM_LVL_##lvl)
	static const struct {
		__u64 data2, data3, lvl;
		unsigned int num, remote, hops;
	} rows[] = {
		{ 0, IBS_OP_DATA3_LD_OP, HIT(L1), PERF_MEM_LVLNUM_L1, 0, 0 },
		{ 0, L1_MISS, HIT(L2), PERF_MEM_LVLNUM_L2, 0, 0 },
		{ 1, MISS, HIT(L3), PERF_MEM_LVLNUM_L3, 0, 0 },
		{ 2, MISS, HIT(REM_CCE1), PERF_MEM_LVLNUM_ANY_CACHE, 1, PERF_MEM_HOPS_0 },
		{ 5, MISS, HIT(REM_CCE2), PERF_MEM_LVLNUM_ANY_CACHE, 1, PERF_MEM_HOPS_1 },
		{ 3, MISS, HIT(LOC_RAM), PERF_MEM_LVLNUM_RAM, 0, 0 },
		{ 3 | IBS_OP_DATA2_RMT_NODE, MISS, HIT(REM_RAM1), PERF_MEM_LVLNUM_RAM, 1,
		  PERF_MEM_HOPS_1 },
		/* numbers that older headers of the kernel do not have: IO, uncached */
		{ 7, MISS, HIT(IO), 10, 0, 0 },
		{ 0, IBS_OP_DATA3_LD_OP | IBS_OP_DATA3_DC_MISS | IBS_OP_DATA3_UC_MEM_ACC, HIT(UNC),
		  8, 0, 0 },
		{ 4, MISS | IBS_OP_DATA3_NO_MAB, HIT(LFB), PERF_MEM_LVLNUM_LFB, 0, 0 },
		{ 4, MISS, PERF_MEM_LVL_NA, PERF_MEM_LVLNUM_NA, 0, 0 },
		{ 0, 0, PERF_MEM_LVL_NA, PERF_MEM_LVLNUM_NA, 0, 0 },
	};
	const struct trace_pmu pmu = { .name = "ibs_op//", .op = true, .period = 0x1000 };

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		struct trace_event ev = op_sample(rows[i].data2, rows[i].data3);
		union perf_mem_data_src src;

		sample_of(&pmu, &ev);
		src.val = behind.data_src;
		if (src.mem_lvl != rows[i].lvl || src.mem_lvl_num != rows[i].num ||
		    src.mem_remote != rows[i].remote || src.mem_hops != rows[i].hops ||
		    src.mem_op != (rows[i].data3 ? PERF_MEM_OP_LOAD : PERF_MEM_OP_NA))
			fail_msg("row %zu: %#llx", i, src.val);
		/* without one of the three registers that say it, it is not known */
		for (int r = IBS_OP_DATA; r <= IBS_OP_DATA3; r++) {
			ev.sample.op.present ^= 1U << r;
			sample_of(&pmu, &ev);
			src.val = behind.data_src;
			assert_int_equal(src.mem_lvl, PERF_MEM_LVL_NA);
			assert_int_equal(src.mem_lvl_num, PERF_MEM_LVLNUM_NA);
			assert_int_equal(src.mem_remote, 0);
			assert_int_equal(src.mem_hops, 0);
			assert_int_equal(src.mem_snoop, PERF_MEM_SNOOP_NA);
			ev.sample.op.present ^= 1U << r;
		}
	}
#undef HIT
#undef MISS
#undef L1_MISS
}

static void test_lock_and_tlb(void **state)
{
#define LOAD (IBS_OP_DATA3_LD_OP | IBS_OP_DATA3_LIN_VALID | IBS_OP_DATA3_PHY_VALID)
	static const struct {
		__u64 data3;
		unsigned int lock, tlb;
	} rows[] = {
		{ 0, PERF_MEM_LOCK_NA, PERF_MEM_TLB_NA },
		{ IBS_OP_DATA3_LOCKED_OP | IBS_OP_DATA3_L1TLB_MISS, PERF_MEM_LOCK_NA,
		  PERF_MEM_TLB_NA },
		{ LOAD, PERF_MEM_LOCK_NA, PERF_MEM_TLB_L1 | PERF_MEM_TLB_HIT },
		{ LOAD | IBS_OP_DATA3_LOCKED_OP, PERF_MEM_LOCK_LOCKED,
		  PERF_MEM_TLB_L1 | PERF_MEM_TLB_HIT },
		{ LOAD | IBS_OP_DATA3_L1TLB_MISS, PERF_MEM_LOCK_NA,
		  PERF_MEM_TLB_L2 | PERF_MEM_TLB_HIT },
		{ LOAD | IBS_OP_DATA3_L1TLB_MISS | IBS_OP_DATA3_L2TLB_MISS, PERF_MEM_LOCK_NA,
		  PERF_MEM_TLB_L2 | PERF_MEM_TLB_MISS },
	};
#undef LOAD
	const struct trace_pmu pmu = { .name = "ibs_op//", .op = true, .period = 0x1000 };

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		const struct trace_event ev = op_sample(0, rows[i].data3);
		union perf_mem_data_src src;

		sample_of(&pmu, &ev);
		src.val = behind.data_src;
		if (src.mem_lock != rows[i].lock || src.mem_dtlb != rows[i].tlb)
			fail_msg("row %zu: %#llx", i, src.val);
	}
}

/* Addresses and latency of an op, and what a sample has instead if they are not known. */
static void test_words(void **state)
{
	struct trace_pmu pmu = { .name = "ibs_op//", .op = true, .period = 0x1000 };
	struct trace_event ev =
		op_sample(0, IBS_OP_DATA3_LD_OP | IBS_OP_DATA3_DC_MISS | IBS_OP_DATA3_LIN_VALID |
				     IBS_OP_DATA3_PHY_VALID | 0x123ULL << 32);
	struct trace_sample *s = &ev.sample;

	(void)state;
	s->op.reg[IBS_DC_LINADDR] = 0x7f0000001234;
	s->op.reg[IBS_DC_PHYSADDR] = 0x56789;
	s->ip = 0x1234;
	s->tgid = 1;
	s->tid = 2;
	s->cgroup_id = 4711;
	sample_of(&pmu, &ev);
	assert_int_equal(before.header.misc, PERF_RECORD_MISC_CPUMODE_UNKNOWN);
	assert_int_equal(before.ip, 0);
	assert_int_equal(before.tgid, ~0U);
	assert_int_equal(before.tid, ~0U);
	assert_int_equal(before.zero, 0);
	assert_int_equal(before.addr, 0x7f0000001234);
	assert_int_equal(behind.phys, 0x56789);
	assert_int_equal(behind.weight, 0x123);
	assert_int_equal(behind.cgroup, 4711);
	assert_int_equal(before.caps,
			 (CAPS & ~(IBS_CAPS_BRNTRGT | IBS_CAPS_OPDATA4)) | PERF_RAW_NO_CTL);
	s->has_ip = s->has_task = true;
	s->op.reg[IBS_OP_DATA3] = 0;
	sample_of(&pmu, &ev);
	assert_int_equal(before.header.misc, PERF_RECORD_MISC_USER | PERF_RECORD_MISC_EXACT_IP);
	assert_int_equal(before.ip, 0x1234);
	assert_int_equal(before.tgid, 1);
	assert_int_equal(before.tid, 2);
	assert_int_equal(before.addr, 0);
	assert_int_equal(behind.phys, 0);
	assert_int_equal(behind.weight, 0);
	s->kernel = true;
	sample_of(&pmu, &ev);
	assert_int_equal(before.header.misc, PERF_RECORD_MISC_KERNEL | PERF_RECORD_MISC_EXACT_IP);

	/* at a frequency the period of a sample is in its own register, if that was recorded */
	pmu.freq = true;
	s->op.reg[IBS_OP_CTL] = 0x456; /* not recorded */
	sample_of(&pmu, &ev);
	assert_int_equal(before.period, 0);
	assert_int_equal(regs[IBS_OP_CTL], 3 << 17);
	s->op.present |= 1U << IBS_OP_CTL;
	s->op.reg[IBS_OP_CTL] = 0x123;
	sample_of(&pmu, &ev);
	assert_int_equal(before.period, 0x1230);
	/* registers that every record has are there, recorded or not */
	s->op.present = 1U << IBS_OP_CTL;
	sample_of(&pmu, &ev);
	assert_int_equal(before.raw_bytes, IBS_OP_RAW_MIN);
	/* that of strata is what the sample stands for */
	pmu.reach = 1;
	s->weight = 12345.6;
	sample_of(&pmu, &ev);
	assert_int_equal(before.period, 12346);
}

static void test_fetch(void **state)
{
	const struct trace_pmu pmu = { .name = "ibs_fetch//", .freq = true, .period = 4000 };
	struct trace_event ev = { .kind = TRACE_SAMPLE_FETCH, .time = 1 };
	struct trace_sample *s = &ev.sample;

	(void)state;
	s->fetch.cpu.caps = CAPS;
	s->fetch.present = (1U << IBS_FETCH_REG_FIXED) - 1;
	for (int i = 0; i < IBS_FETCH_REG_N; i++)
		s->fetch.reg[i] = ~0ULL - i;
	sample_of(&pmu, &ev);
	assert_int_equal(before.raw_bytes, IBS_FETCH_RAW_MIN);
	assert_int_equal(before.caps, CAPS);
	for (int i = 0; i < IBS_FETCH_REG_FIXED; i++)
		assert_int_equal(regs[i], ~0ULL - i);
	assert_int_equal(before.period, 0);
	assert_int_equal(before.addr, 0);
	assert_int_equal(behind.weight, 0);
	assert_int_equal(behind.data_src, 0);
	assert_int_equal(behind.phys, 0);
}

/* The words of a record, each of 4 bytes. */
static void is_record(const struct trace_event *ev, const __u32 *want, size_t n)
{
	const struct trace_pmu pmu = { .name = "ibs_op//", .op = true, .period = 0x1000 };
	struct perf_file_header h;
	int fd = scratch();
	__u32 word;

	write_sample(&pmu, ev, fd, 0);
	close(fd);
	memcpy(&h, bytes, sizeof(h));
	for (size_t i = 0; i < n; i++) {
		memcpy(&word, bytes + h.data.offset + i * sizeof(word), sizeof(word));
		if (word != want[i])
			fail_msg("kind %d, word %zu: %#x", (int)ev->kind, i, word);
	}
	/* and a mark behind it */
	memcpy(&word, bytes + h.data.offset + n * sizeof(word), sizeof(word));
	assert_int_equal(word, PERF_RECORD_FINISHED_ROUND);
	memcpy(&word, bytes + h.data.offset + (n + 1) * sizeof(word), sizeof(word));
	assert_int_equal(word, 8 << 16);
	assert_int_equal(h.data.size, (n + 2) * sizeof(word));
}

#define SIZE_OF(words)	   (sizeof(words) << 16)	 /* with no bits of misc */
#define ID(tgid, tid, cpu) tgid, tid, 7, 0, cpu, 0, 1, 0 /* sample_id, at time 7 */

static void test_records(void **state)
{
	__u32 comm[] = { PERF_RECORD_COMM, 0, 100, 101, 0x65646f6e, 0, ID(100, 101, ~0U) };
	__u32 fork[] = { PERF_RECORD_FORK, 0, 1, 3, 2, 4, 7, 0, ID(1, 2, ~0U) };
	__u32 group[] = { PERF_RECORD_CGROUP, 0, 4711, 0, 0x64636261, 0x676665, ID(0, 0, ~0U) };
	__u32 lost[] = { PERF_RECORD_LOST, 0, 1, 0, 55, 0, ID(0, 0, 2) };
	__u32 samples[] = { PERF_RECORD_LOST_SAMPLES, 0, 66, 0, ID(0, 0, ~0U) };
	struct trace_event ev = { .kind = TRACE_COMM, .time = 7 };

	(void)state;
	ev.comm.tgid = 100;
	ev.comm.tid = 101;
	ev.comm.name = "node";
	comm[1] = SIZE_OF(comm);
	is_record(&ev, comm, ARRAY_SIZE(comm));
	ev.comm.exec = true;
	comm[1] |= PERF_RECORD_MISC_COMM_EXEC;
	is_record(&ev, comm, ARRAY_SIZE(comm));

	ev = (struct trace_event){ .kind = TRACE_FORK, .time = 7, .fork = { 1, 2, 3, 4 } };
	fork[1] = SIZE_OF(fork);
	is_record(&ev, fork, ARRAY_SIZE(fork));
	ev.kind = TRACE_EXIT;
	fork[0] = PERF_RECORD_EXIT;
	is_record(&ev, fork, ARRAY_SIZE(fork));

	ev = (struct trace_event){ .kind = TRACE_CGROUP, .time = 7 };
	ev.cgroup.id = 4711;
	ev.cgroup.path = "abcdefg";
	group[1] = SIZE_OF(group);
	is_record(&ev, group, ARRAY_SIZE(group));

	ev = (struct trace_event){ .kind = TRACE_LOST, .time = 7 };
	ev.lost.n = 55;
	ev.lost.cpu = 2;
	lost[1] = SIZE_OF(lost);
	is_record(&ev, lost, ARRAY_SIZE(lost));
	ev.lost.n = 66;
	ev.lost.samples = true;
	ev.lost.cpu = ~0U;
	samples[1] = SIZE_OF(samples);
	is_record(&ev, samples, ARRAY_SIZE(samples));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_hitm),
		cmocka_unit_test(test_period),
		cmocka_unit_test(test_not_at_the_start),
		cmocka_unit_test(test_sources),
		cmocka_unit_test(test_lock_and_tlb),
		cmocka_unit_test(test_words),
		cmocka_unit_test(test_fetch),
		cmocka_unit_test(test_records),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
