// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Small decisions that each sample takes, against plain statements of them, for all that they depend on. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include <ibscope/exposed.h>
#include <ibscope/fetch_fields.h>
#include <ibscope/hot_lines.h>
#include <ibscope/memory_nodes.h>
#include <ibscope/record.h>
#include <ibscope/region.h>

#include "random_word.h"

#define LENGTH(a) (sizeof(a) / sizeof((a)[0]))

static void test_mode(void **state)
{
	static const struct {
		__u32 caps;
		__u64 data, rip;
		enum ibs_mode mode;
	} rows[] = {
		{ 0, 0, 1, IBS_MODE_USER },
		{ 0, IBS_OP_DATA_RIP_INVALID, 1, IBS_MODE_USER },
		{ IBS_CAPS_RIPINVALIDCHK, ~IBS_OP_DATA_RIP_INVALID, 1, IBS_MODE_USER },
		{ IBS_CAPS_RIPINVALIDCHK, IBS_OP_DATA_RIP_INVALID, 1, IBS_MODE_UNKNOWN },
		{ ~IBS_CAPS_RIPINVALIDCHK, IBS_OP_DATA_RIP_INVALID, ~0ULL, IBS_MODE_KERNEL },
		{ IBS_CAPS_RIPINVALIDCHK, 0, 1ULL << 63, IBS_MODE_KERNEL },
		{ IBS_CAPS_RIPINVALIDCHK, 0, (1ULL << 63) - 1, IBS_MODE_USER },
	};

	(void)state;
	for (size_t i = 0; i < LENGTH(rows); i++) {
		const __u64 regs[IBS_OP_REG_N] = {
			[IBS_OP_RIP] = rows[i].rip, [IBS_OP_DATA] = rows[i].data
		};

		assert_int_equal(ibs_op_mode(rows[i].caps, regs), rows[i].mode);
	}
	assert_int_equal(ibs_fetch_mode(0), IBS_MODE_UNKNOWN);
	assert_int_equal(ibs_fetch_mode(1), IBS_MODE_USER);
	assert_int_equal(ibs_fetch_mode((1ULL << 63) - 1), IBS_MODE_USER);
	assert_int_equal(ibs_fetch_mode(1ULL << 63), IBS_MODE_KERNEL);
}

/* Registers that a record does not have are not read, and those that caps do not have are not kept. */
static void test_fetch_registers(void **state)
{
	const __u32 extended = IBS_CAPS_FETCHCTLEXTD;
	unsigned char raw[64];
	struct ibs_fetch_sample s;

	(void)state;
	memset(raw, 0x11, sizeof(raw));
	for (unsigned int n = 3; n <= 6; n++) {
		for (int has = 0; has < 2; has++) {
			memcpy(raw, has ? &extended : &(const __u32){ ~extended }, 4);
			assert_int_equal(ibs_fetch_parse_raw(raw, 4 + 8 * n, 0, &s), 0);
			assert_int_equal(s.nregs, n);
			assert_int_equal(s.present, has && n > 3 ? 15 : 7);
			assert_int_equal(s.reg[IBS_FETCH_EXTD],
					 has && n > 3 ? 0x1111111111111111 : 0);
		}
	}
}

/* Which cache a line came from, modified or not, by all that says so. */
static void test_line_from(void **state)
{
	static const __u32 all_caps[] = { 0, IBS_CAPS_ZEN4, IBS_CAPS_STRMST_RMTSOCKET,
					  IBS_CAPS_ZEN4 | IBS_CAPS_STRMST_RMTSOCKET };

	(void)state;
	for (__u32 i = 0; i < 4 * 2 * IBS_SRC_N * 1024; i++) {
		const __u64 data2 = i % 1024;
		const __u32 src = i / 1024 % IBS_SRC_N;
		const struct ibs_cpu cpu = {
			.caps = all_caps[i / 1024 / IBS_SRC_N % 4],
			.quirks = i / 1024 / IBS_SRC_N / 4 ? IBS_QUIRK_NO_CACHE_HIT_ST : 0,
		};
		const bool zen4 = cpu.caps & IBS_CAPS_ZEN4;
		const bool cache = src == IBS_SRC_L3 || src == IBS_SRC_LOCAL_CACHE ||
				   src == IBS_SRC_NEAR_CACHE || src == IBS_SRC_REMOTE_CACHE;
		const bool socket = (cpu.caps & IBS_CAPS_STRMST_RMTSOCKET) && data2 >> 9 & 1;
		enum line_from want;

		if (src == IBS_SRC_UNKNOWN)
			want = LINE_FROM_UNKNOWN;
		else if (!cache)
			want = LINE_FROM_OTHER;
		else if (!ibs_op_reports_state(cpu, data2))
			want = src == IBS_SRC_L3 ? LINE_FROM_OTHER : LINE_FROM_TRANSFERS;
		else if (data2 >> 5 & 1)
			want = LINE_FROM_OWNED;
		else if (!zen4 || src == IBS_SRC_L3)
			want = LINE_FROM_HITM_CCX;
		else if (src == IBS_SRC_NEAR_CACHE)
			want = LINE_FROM_HITM_NEAR;
		else
			want = socket ? LINE_FROM_HITM_SOCKET : LINE_FROM_HITM_REMOTE;
		assert_int_equal(ibs_line_from(cpu, src, data2), want);
	}
	for (__u32 from = 0; from < LINE_FROM_N; from++)
		assert_int_equal(line_from_hitm(from), from == LINE_FROM_HITM_CCX ||
							       from == LINE_FROM_HITM_NEAR ||
							       from == LINE_FROM_HITM_REMOTE ||
							       from == LINE_FROM_HITM_SOCKET);
}

/* The node of an address by looking through all parts. */
static __u8 node_of(const struct ibs_memory_nodes *m, __u64 phys)
{
	__u32 at = 0;

	for (__u32 i = 1; i < m->n; i++)
		if (phys > m->before[i])
			at = i;
	return m->node[at];
}

static void test_memory_node(void **state)
{
	static struct ibs_memory_nodes m;

	(void)state;
	for (m.n = 1; m.n <= IBS_MEMORY_PARTS; m.n *= 2) {
		/* what is not used is there to be found by mistake */
		memset(m.before, 0, sizeof(m.before));
		for (__u32 i = 1; i < m.n; i++)
			m.before[i] = i * 0x1000000ULL - 1 + random_word() % 0x1000000;
		for (__u32 i = 0; i < IBS_MEMORY_PARTS; i++)
			m.node[i] = i < m.n ? 1 + i % 100 : 200;
		for (int i = 0; i < 4000; i++) {
			const __u32 part = random_word() % m.n;
			const __u64 phys = m.before[part] + 2 - i % 3;
			__u64 op[IBS_OP_REG_N] = { [IBS_DC_PHYSADDR] = phys },
			      fetch[IBS_FETCH_REG_N] = { [IBS_FETCH_PHYSADDR] = phys };

			op[IBS_OP_DATA3] = IBS_OP_DATA3_LD_OP;
			assert_int_equal(ibs_memory_node(&m, 0, op, false), 0);
			assert_int_equal(ibs_memory_node(&m, 0, fetch, true), 0);
			op[IBS_OP_DATA3] |= IBS_OP_DATA3_PHY_VALID;
			fetch[IBS_FETCH_CTL] = IBS_FETCH_CTL_PHY_VALID;
			assert_int_equal(ibs_memory_node(&m, 0, op, false),
					 phys ? node_of(&m, phys) : 0);
			assert_int_equal(ibs_memory_node(&m, 0, fetch, true),
					 phys ? node_of(&m, phys) : 0);
		}
	}
}

static void test_exposed(void **state)
{
	static const struct {
		__u64 data, open, lat;
		bool valid;
		__u32 cycles;
	} rows[] = {
		{ 2, 4, 1000, true, 250 },
		{ 2, 63, 0xffff, true, 0xffff / 63 },
		{ 2, 0, 1000, false, 1000 },
		{ 1ULL << 16, 1, 1000, true, 1000 }, /* CompToRet is 0 */
		{ 3, 4, 1000, true, 0 },
		{ 3, 0, 1000, true, 0 },
		{ 0xffff, 4, 1000, true, 0 },
	};

	(void)state;
	for (size_t i = 0; i < LENGTH(rows); i++) {
		const __u64 data3 = rows[i].open << 26 | rows[i].lat << 32 | 0xffffULL << 48;

		assert_int_equal(ibs_op_exposed_valid(0, rows[i].data, data3), rows[i].valid);
		assert_int_equal(ibs_op_exposed(rows[i].data, data3), rows[i].cycles);
	}
}

/* A record has all that fits into it, each part in its own bits. */
static void test_record(void **state)
{
	(void)state;
	for (int i = 0; i < 1000; i++) {
		const __u64 data = random_word(), data2 = random_word();
		const __u32 cpu = random_word() >> 20;
		const struct ibs_record r = { .packed = ibs_record_pack(data, data2, cpu),
					      .ip = random_word(),
					      .data3 = random_word(),
					      .addr = random_word(),
					      .phys = random_word() };
		const __u64 data_mask = (1ULL << IBS_RECORD_DATA_BITS) - 1,
			    data2_mask = (1ULL << IBS_RECORD_DATA2_BITS) - 1;
		__u64 op[IBS_OP_REG_N], fetch[IBS_FETCH_REG_N];

		memset(op, 0x5a, sizeof(op));
		memset(fetch, 0x5a, sizeof(fetch));
		ibs_record_regs(&r, op);
		ibs_record_fetch_regs(&r, fetch);
		assert_int_equal(ibs_record_data(&r), data & data_mask);
		assert_int_equal(ibs_record_data2(&r), data2 & data2_mask);
		assert_int_equal(ibs_record_cpu(&r), cpu % IBS_RECORD_CPUS);
		assert_false(ibs_record_is_fetch(&r));
		assert_int_equal(op[IBS_OP_CTL], 0);
		assert_int_equal(op[IBS_OP_RIP], r.ip);
		assert_int_equal(op[IBS_OP_DATA], data & data_mask);
		assert_int_equal(op[IBS_OP_DATA2], data2 & data2_mask);
		assert_int_equal(op[IBS_OP_DATA3], r.data3);
		assert_int_equal(op[IBS_DC_LINADDR], r.addr);
		assert_int_equal(op[IBS_DC_PHYSADDR], r.phys);
		assert_int_equal(fetch[IBS_FETCH_CTL], r.data3);
		assert_int_equal(fetch[IBS_FETCH_LINADDR], r.ip);
		assert_int_equal(fetch[IBS_FETCH_PHYSADDR], r.phys);
		assert_int_equal(fetch[IBS_FETCH_EXTD], r.addr);
	}
	assert_true(ibs_record_is_fetch(&(struct ibs_record){ .packed = IBS_RECORD_FETCH }));
}

static void test_metric_of_fetch(void **state)
{
	(void)state;
	for (int m = 0; m < IBS_METRIC_N; m++)
		assert_int_equal(ibs_metric_of_fetch(m), m >= IBS_OP_METRIC_N);
	assert_true(ibs_metric_of_fetch(IBS_METRIC_FETCH_LAT));
	assert_false(ibs_metric_of_fetch(IBS_METRIC_DC_MISS_LAT));
}

/* Programs have it compiled into them, and an older or newer collector reads what they write: it cannot change. */
static void test_region_check(void **state)
{
	static const struct {
		struct ibscope_region_event e;
		__u64 n;
		__u32 check;
	} rows[] = {
		{ { 0 }, 0, 0x7e154af9 },
		{ { .tid = 4711, .time_ns = 123456789012345, .value = 7, .kind = 1 },
		  0,
		  0xd4600fbd },
		{ { .tid = 4711,
		    .time_ns = 123456789012345,
		    .value = 0x401234,
		    .team = 4710,
		    .number = 3,
		    .kind = 3 },
		  99999,
		  0x3bb0dcfe },
		{ { .tid = ~0U,
		    .time_ns = ~0ULL,
		    .value = ~0ULL,
		    .team = ~0U,
		    .number = 0xffff,
		    .kind = 0xffff },
		  1ULL << 40,
		  0xb7609af2 },
	};

	(void)state;
	for (size_t i = 0; i < LENGTH(rows); i++)
		assert_int_equal(ibscope_region_check(&rows[i].e, rows[i].n), rows[i].check);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_mode),
		cmocka_unit_test(test_fetch_registers),
		cmocka_unit_test(test_line_from),
		cmocka_unit_test(test_memory_node),
		cmocka_unit_test(test_exposed),
		cmocka_unit_test(test_record),
		cmocka_unit_test(test_metric_of_fetch),
		cmocka_unit_test(test_region_check),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
