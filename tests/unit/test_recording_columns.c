// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Columns of samples: what was encoded comes back, whatever it is, and takes no room needlessly. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <ibscope/sim.h>

#include "recording/recording_columns.h"

static struct recording_columns in, out;
static unsigned char data[RECORDING_BLOCK_MAX];

static __u64 state;

static __u64 draw(void)
{
	return ibs_sim_mix(state++);
}

/* Kinds of columns, told by how their values come about. */
enum kind { ZERO, CONSTANT, SMALL, RARE, HALF, USER, BOTH_HALVES, RISING, ANYTHING, KINDS };

static __u64 value(enum kind kind, unsigned int i)
{
	switch (kind) {
	case ZERO:
		return 0;
	case CONSTANT:
		return 0x123456789abcdef;
	case SMALL:
		return 1000 + draw() % 50;
	case RARE:
		return draw() % 50 ? 0 : draw();
	case HALF:
		return draw() & 1 ? 0 : 0x7f0000000000 + draw() % 0x10000;
	case USER:
		return 0x7fff00000000 + draw() % 0x100000000;
	case BOTH_HALVES:
		return (draw() & 1 ? 0xffffffff81000000 : 0x555555554000) + draw() % 0x100000;
	case RISING:
		return 1000000000000 + i * 50000ull + draw() % 1000;
	default:
		return draw();
	}
}

static const __u8 ids[] = {
#define ROW(NAME, id, ...) (id),
	RECORDING_COLUMN_TABLE(ROW)
#undef ROW
};
#define IDS (sizeof(ids) / sizeof(ids[0]))

static const __u8 widths[RECORDING_COLUMN_N] = {
#define ROW(NAME, id, transform, other, bytes) [id] = (bytes),
	RECORDING_COLUMN_TABLE(ROW)
#undef ROW
};

static size_t round_trip(unsigned int n)
{
	const char *wrong;
	size_t bytes;

	in.n = n;
	memset(data, 0xa5, sizeof(data));
	bytes = recording_columns_encode(&in, data);
	assert_true(bytes <= sizeof(data));
	memset(&out, 0x5a, sizeof(out));
	wrong = recording_columns_decode(&out, n, data, bytes);
	if (wrong)
		fail_msg("%s", wrong);
	assert_int_equal(out.present, in.present);
	assert_int_equal(out.n, n);
	for (size_t k = 0; k < IDS; k++)
		if (in.present & 1u << ids[k])
			assert_memory_equal(out.v[ids[k]], in.v[ids[k]], n * sizeof(__u64));
	/* what is cut or longer is no block */
	assert_non_null(recording_columns_decode(&out, n, data, bytes - 1));
	assert_non_null(recording_columns_decode(&out, n, data, bytes + 1));
	return bytes;
}

static void fill(__u8 id, enum kind kind, unsigned int n)
{
	in.present |= 1u << id;
	for (unsigned int i = 0; i < n; i++)
		in.v[id][i] = value(kind, i) & ~0ULL >> (64 - 8 * widths[id]);
}

/* Each column as each kind, alone but for the one it may refer to, with all ways to end a vector. */
static void test_kinds(void **unused)
{
	static const unsigned int sizes[] = {
		1, 2, 7, 8, 9, 15, 16, 17, 33, 1000, RECORDING_BATCH
	};

	(void)unused;
	for (size_t s = 0; s < sizeof(sizes) / sizeof(sizes[0]); s++)
		for (size_t k = 0; k < IDS; k++)
			for (enum kind kind = 0; kind < KINDS; kind++) {
				unsigned int n = sizes[s];

				if (n == RECORDING_BATCH && k % 5)
					continue;
				in.present = 0;
				fill(RECORDING_COLUMN_TGID, SMALL, n);
				fill(RECORDING_COLUMN_REG5, BOTH_HALVES, n);
				fill(ids[k], kind, n);
				round_trip(n);
			}
}

static void test_all_at_once(void **unused)
{
	(void)unused;
	for (int round = 0; round < 50; round++) {
		unsigned int n = 1 + draw() % RECORDING_WRITTEN;

		in.present = 0;
		for (size_t k = 0; k < IDS; k++)
			if (draw() & 3)
				fill(ids[k], draw() % KINDS, n);
		if (!(in.present >> RECORDING_COLUMN_TGID & 1))
			fill(RECORDING_COLUMN_TGID, ANYTHING, n);
		if (!(in.present >> RECORDING_COLUMN_REG5 & 1))
			fill(RECORDING_COLUMN_REG5, ANYTHING, n);
		round_trip(n);
	}
	/* the most that there can be */
	in.present = 0;
	for (size_t k = 0; k < IDS; k++)
		fill(ids[k], ANYTHING, RECORDING_WRITTEN);
	round_trip(RECORDING_WRITTEN);
}

static double bytes_each(__u8 id, enum kind kind)
{
	in.present = 0;
	fill(id, kind, 8000);
	return (round_trip(8000) - 2 * sizeof(struct recording_column_head)) / 8000.0;
}

static void test_room(void **unused)
{
	(void)unused;
	assert_true(bytes_each(RECORDING_COLUMN_CGROUP, ZERO) == 0);
	assert_true(bytes_each(RECORDING_COLUMN_CGROUP, CONSTANT) == 0);
	assert_true(bytes_each(RECORDING_COLUMN_TGID, SMALL) <= 1);
	assert_true(bytes_each(RECORDING_COLUMN_TIME, RISING) <= 3);
	assert_true(bytes_each(RECORDING_COLUMN_REG4, RARE) < 0.4);
	assert_true(bytes_each(RECORDING_COLUMN_REG5, HALF) < 1.7);
	assert_true(bytes_each(RECORDING_COLUMN_REG1, USER) <= 5);
	assert_true(bytes_each(RECORDING_COLUMN_REG1, BOTH_HALVES) <= 6);
	assert_true(bytes_each(RECORDING_COLUMN_REG0, ANYTHING) == 8);
}

/* How long a column is follows from its flags, so that not even one of a newer writer is passed over. */
static void test_flags(void **unused)
{
	struct recording_column_head h;
	size_t bytes;

	(void)unused;
	in.n = 100;
	in.present = 0;
	state = 0; /* with it, some values are not 0 */
	fill(RECORDING_COLUMN_CGROUP, RARE, in.n);
	bytes = recording_columns_encode(&in, data);
	memcpy(&h, data, sizeof(h));
	assert_int_equal(h.flags, RECORDING_SPARSE);
	for (int newer = 0; newer < 2; newer++) {
		h.id = newer ? RECORDING_COLUMN_N : RECORDING_COLUMN_CGROUP;
		for (unsigned int bit = 0; bit < 8; bit++) {
			h.flags = RECORDING_SPARSE | 1u << bit;
			memcpy(data, &h, sizeof(h));
			assert_true(!recording_columns_decode(&out, in.n, data, bytes) ==
				    (h.flags == RECORDING_SPARSE));
		}
	}
}

static void test_crc(void **unused)
{
	(void)unused;
	assert_int_equal(recording_crc("123456789", 9), 0xcbf43926);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_kinds), cmocka_unit_test(test_all_at_once),
		cmocka_unit_test(test_room),  cmocka_unit_test(test_flags),
		cmocka_unit_test(test_crc),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
