// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Cold lines are given up, hot ones stay complete. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <ibscope/sim.h>

#include "where/lines.h"

#define MOST	1000
#define COLD	20000
#define HOT	4
#define LATENCY 200

/* A load or a store of a line by CPU @cpu. */
static void add(struct line_set *s, const struct trace_info *info, __u64 phys, __u32 cpu, __u64 i)
{
	struct trace_event ev = { .kind = TRACE_SAMPLE_OP, .time = 1 + i };
	struct trace_sample *t = &ev.sample;
	__u64 *reg = t->op.reg;

	t->has_cpu = t->has_task = t->has_time = true;
	t->cpu = cpu;
	t->tgid = 1;
	t->tid = 1 + cpu;
	t->op.cpu = (struct ibs_cpu){ .caps = info->cpu.caps };
	t->op.present = ~0u;
	reg[IBS_OP_DATA3] = IBS_OP_DATA3_PHY_VALID | IBS_OP_DATA3_LIN_VALID |
			    (i % 2 ? IBS_OP_DATA3_LD_OP : IBS_OP_DATA3_ST_OP);
	if (i % 2) { /* data that another cache has modified */
		reg[IBS_OP_DATA2] = 5;
		reg[IBS_OP_DATA3] |=
			IBS_OP_DATA3_DC_MISS | IBS_OP_DATA3_L2_MISS | (__u64)LATENCY << 32;
	}
	reg[IBS_DC_PHYSADDR] = reg[IBS_DC_LINADDR] = phys;
	lines_add(s, &ev);
}

static void test_hot_lines_stay(void **state)
{
	struct trace_info info = { 0 };
	struct line_set *s;
	const struct lines *lines;
	__u64 kept = 0, hot = 0, cycles = 0, hitm = 0;

	(void)state;
	cpu_info_set(&info.cpu, "AuthenticAMD", 0x19, 0x11, 0xbff);
	s = lines_new(&(struct lines_opts){ &info, IBS_METRIC_DC_MISS_LAT, MOST });
	for (__u64 i = 0; i < COLD; i++) {
		add(s, &info, 0x100000 + 64 * i, 0, i);
		add(s, &info, 64 * (i % HOT + 1), i / HOT % 2, i / HOT);
	}
	lines = lines_finish(s);
	assert_in_range(lines->n, HOT, MOST);
	for (size_t i = 0; i < lines->n; i++) {
		const struct line *l = &lines->line[i];

		kept += l->samples;
		cycles += l->cycles;
		hitm += l->hitm_cycles;
		if (l->address >= 0x100000)
			continue;
		hot++;
		assert_int_equal(l->samples, COLD / HOT);
		assert_int_equal(l->threads, 2);
	}
	assert_int_equal(hot, HOT);
	assert_int_equal(kept + lines->trimmed, 2 * COLD);
	assert_int_equal(cycles + lines->trimmed_cycles, COLD * LATENCY);
	assert_int_equal(hitm + lines->trimmed_hitm, COLD * LATENCY);
	assert_true(lines->trimmed_hitm > 0);
	lines_free(s);
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_hot_lines_stay) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}
