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

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_hitm),
		cmocka_unit_test(test_period),
		cmocka_unit_test(test_not_at_the_start),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
