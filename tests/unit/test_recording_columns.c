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
	for (size_t i = bytes; i < bytes + 100 && i < sizeof(data); i++)
		assert_int_equal(data[i], 0xa5);
	for (int i = 0; i < __builtin_popcount(in.present); i++) {
		struct recording_column_head h;

		memcpy(&h, data + i * sizeof(h), sizeof(h));
		assert_int_equal(h.absent >> h.width, 0);
	}
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
	/* others may write as much as there is room for: nothing of the next column, which came before, is lost */
	in.present = 0;
	fill(RECORDING_COLUMN_COPY, SMALL, RECORDING_BATCH);
	fill(RECORDING_COLUMN_REG8, CONSTANT, RECORDING_BATCH);
	round_trip(RECORDING_BATCH);
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

/* The bytes of a column of these values, without its head; others follow in memory. */
static size_t room_of(__u8 id, const __u64 *v, unsigned int n)
{
	in.present = 1u << id;
	memcpy(in.v[id], v, (n + 1) * sizeof(*v));
	return round_trip(n) - 2 * sizeof(struct recording_column_head);
}

/* A byte for each value that differs from the others by less than 256, wherever the least and the greatest are. */
static void test_range(void **unused)
{
	static const __u8 ids_of_range[] = { RECORDING_COLUMN_CGROUP, RECORDING_COLUMN_TGID };
	enum { VALUES = 9 };
	__u64 v[VALUES + 1];

	(void)unused;
	for (size_t k = 0; k < sizeof(ids_of_range); k++)
		for (unsigned int least = 0; least < VALUES; least++)
			for (unsigned int most = 0; most < VALUES; most++) {
				for (unsigned int i = 0; i <= VALUES; i++)
					v[i] = 1000;
				v[most] = 900 + 255;
				v[least] = 900;
				v[VALUES] = most % 2 ? 0 : ~0ULL;
				assert_int_equal(room_of(ids_of_range[k], v, VALUES), VALUES);
			}
	/* other columns: what all have in common takes no room */
	for (unsigned int i = 0; i <= VALUES; i++)
		v[i] = 0x123456789abcdef;
	assert_int_equal(room_of(RECORDING_COLUMN_REG4, v, VALUES), 0);
	v[0] ^= 0xff00;
	assert_int_equal(room_of(RECORDING_COLUMN_REG4, v, VALUES), VALUES);
	v[0] ^= 0xffff00000000;
	assert_int_equal(room_of(RECORDING_COLUMN_REG4, v, VALUES), 3 * VALUES);
	assert_int_equal(room_of(RECORDING_COLUMN_REG4, (__u64[]){ 1, 2, 0 }, 2), 2);
	/* and bytes that are all 0 take none, wherever they are; numbers of registers share no range */
	for (unsigned int i = 0; i <= VALUES; i++)
		v[i] = 0x10000 * (i + 1);
	assert_int_equal(room_of(RECORDING_COLUMN_REG4, v, VALUES), VALUES);
	for (unsigned int i = 0; i <= VALUES; i++)
		v[i] = 250 + i;
	assert_int_equal(room_of(RECORDING_COLUMN_REG0, v, VALUES), 2 * VALUES);
}

/* Zeros take a bit each if one in four is found among every thirteenth value. */
static void test_sparse(void **unused)
{
	static const struct {
		unsigned int n, zero;
		bool sparse;
	} rows[] = { { 40, 0, true },	{ 40, 13, true },  { 40, 26, true },  { 40, 39, true },
		     { 40, 1, false },	{ 40, 12, false }, { 40, 14, false }, { 40, 27, false },
		     { 40, 38, false }, { 39, 39, false }, { 53, 0, false },  { 52, 0, true } };
	__u64 v[60];

	(void)unused;
	for (size_t r = 0; r < sizeof(rows) / sizeof(rows[0]); r++) {
		for (unsigned int i = 0; i < 60; i++)
			v[i] = draw() | 1;
		v[rows[r].zero] = 0;
		assert_int_equal(room_of(RECORDING_COLUMN_REG0, v, rows[r].n),
				 rows[r].sparse ? (rows[r].n + 7) / 8 + 8 * (rows[r].n - 1)
						: 8 * rows[r].n);
	}
	/* those that are not 0 may be constant */
	for (unsigned int i = 0; i < 60; i++)
		v[i] = i ? 0x123456789abcdef : 0;
	for (unsigned int n = 33; n <= 40; n++)
		assert_int_equal(room_of(RECORDING_COLUMN_REG0, v, n), 5);
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

/* A column of nine bytes a value is not one of a later version that could be read. */
static void test_width(void **unused)
{
	struct recording_column_head h[2] = { { .id = RECORDING_COLUMN_CGROUP },
					      { .id = RECORDING_COLUMNS_END } };

	(void)unused;
	memset(data, 1, sizeof(data));
	for (unsigned int width = 0; width < 12; width++) {
		h[0].width = width;
		memcpy(data, h, sizeof(h));
		assert_int_equal(!recording_columns_decode(&out, 10, data, sizeof(h) + 10 * width),
				 width <= 8);
	}
}

/* A map of more values than there are samples. */
static void test_map(void **unused)
{
	struct recording_column_head h[2] = {
		{ .id = RECORDING_COLUMN_CGROUP, .width = 1, .flags = RECORDING_SPARSE },
		{ .id = RECORDING_COLUMNS_END }
	};
	unsigned char *map = data + sizeof(h);

	(void)unused;
	memset(data, 1, sizeof(data));
	memcpy(data, h, sizeof(h));
	map[0] = 0xff;
	assert_null(recording_columns_decode(&out, 9, data, sizeof(h) + 2 + 9));
	assert_string_equal(recording_columns_decode(&out, 9, data, sizeof(h) + 2 + 8),
			    "a column is longer than its block");
	map[1] = 3;
	assert_non_null(recording_columns_decode(&out, 9, data, sizeof(h) + 2 + 10));
}

/* Constant columns of times and ids, then one of the last register. Return: what is wrong */
static const char *decode_two(__u8 transform, __u8 other)
{
	const struct recording_column_head h[] = {
		{ .id = RECORDING_COLUMN_TIME },
		{ .id = RECORDING_COLUMN_COPY, .base = 7 },
		{ .id = RECORDING_COLUMN_REG8, .transform = transform, .other = other, .base = 4 },
		{ .id = RECORDING_COLUMNS_END }
	};

	memcpy(data, h, sizeof(h));
	return recording_columns_decode(&out, RECORDING_BATCH, data, sizeof(h));
}

/* Each transform, also of a writer that uses it for other columns; those that are not known, or refer to nothing. */
static void test_transforms(void **unused)
{
	static const __u64 decoded[RECORDING_TRANSFORM_N] = {
		[RECORDING_PLAIN] = 4,	      [RECORDING_DELTA] = 4,  [RECORDING_XOR] = 4 ^ 7,
		[RECORDING_DISTANCE] = 2 + 7, [RECORDING_SIGNED] = 2, [RECORDING_XOR_SIGNED] = 5,
	};
	static const char nothing[] = "a column refers to one that is not before it";

	(void)unused;
	for (unsigned int t = 0; t < RECORDING_TRANSFORM_N; t++) {
		assert_null(decode_two(t, RECORDING_COLUMN_COPY));
		for (unsigned int i = 0; i < RECORDING_BATCH; i++) {
			assert_int_equal(out.v[RECORDING_COLUMN_REG8][i], decoded[t]);
			assert_int_equal(out.v[RECORDING_COLUMN_COPY][i], 7);
		}
	}
	assert_string_equal(decode_two(RECORDING_TRANSFORM_N, RECORDING_COLUMN_COPY),
			    "a column is encoded in a way that this program does not know");
	for (unsigned int other = 0; other < 256; other++)
		if (other != RECORDING_COLUMN_COPY && other != RECORDING_COLUMN_TIME)
			assert_string_equal(decode_two(RECORDING_XOR, other), nothing);
}

static void test_twice(void **unused)
{
	static const __u8 twice[] = { RECORDING_COLUMN_TIME, RECORDING_COLUMN_CGROUP,
				      RECORDING_COLUMN_STRATUM };

	(void)unused;
	for (size_t k = 0; k < sizeof(twice); k++) {
		const struct recording_column_head h[] = { { .id = twice[k] },
							   { .id = RECORDING_COLUMN_TGID },
							   { .id = twice[k] },
							   { .id = RECORDING_COLUMNS_END } };

		memcpy(data, h, sizeof(h));
		assert_string_equal(recording_columns_decode(&out, 9, data, sizeof(h)),
				    "it has a column twice");
	}
}

/* The list of columns ends with a head of which only the id counts, within the block, and after 255 at most. */
static void test_list(void **unused)
{
	static const char endless[] = "the list of its columns does not end";
	struct recording_column_head h[300];

	(void)unused;
	for (unsigned int n = 0; n < 299; n++) {
		for (unsigned int i = 0; i < n; i++)
			h[i] = (struct recording_column_head){ .id = RECORDING_COLUMN_N + i % 9 };
		h[n] = (struct recording_column_head){ .id = RECORDING_COLUMNS_END,
						       .width = 20,
						       .flags = 0xff };
		memcpy(data, h, sizeof(h));
		assert_true(!recording_columns_decode(&out, 9, data, (n + 1) * sizeof(*h)) ==
			    (n <= 255));
		assert_string_equal(recording_columns_decode(&out, 9, data, n * sizeof(*h)),
				    endless);
		assert_string_equal(
			recording_columns_decode(&out, 9, data, (n + 1) * sizeof(*h) - 1), endless);
	}
}

/* Each stratum is an event of the recording, of the PMU of the block. */
static void test_strata_ok(void **unused)
{
	static struct trace_pmu pmu[] = { { .op = true }, { .op = true }, {} };
	const struct trace_info info = { .pmu = pmu, .n_pmus = 3 };

	(void)unused;
	out = (struct recording_columns){ .n = 2 };
	out.v[RECORDING_COLUMN_STRATUM][2] = 9; /* no sample */
	for (__u64 event = 0; event < 5; event++) {
		out.v[RECORDING_COLUMN_STRATUM][1] = event;
		assert_int_equal(recording_columns_strata_ok(&out, &info, true), event < 2);
		assert_false(recording_columns_strata_ok(&out, &info, false));
	}
	out.v[RECORDING_COLUMN_STRATUM][0] = out.v[RECORDING_COLUMN_STRATUM][1] = 2;
	assert_true(recording_columns_strata_ok(&out, &info, false));
	out.v[RECORDING_COLUMN_STRATUM][0] = 3;
	assert_false(recording_columns_strata_ok(&out, &info, false));
}

static void test_crc(void **unused)
{
	(void)unused;
	assert_int_equal(recording_crc("123456789", 9), 0xcbf43926);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_kinds),	   cmocka_unit_test(test_all_at_once),
		cmocka_unit_test(test_room),	   cmocka_unit_test(test_flags),
		cmocka_unit_test(test_crc),	   cmocka_unit_test(test_range),
		cmocka_unit_test(test_twice),	   cmocka_unit_test(test_list),
		cmocka_unit_test(test_transforms), cmocka_unit_test(test_map),
		cmocka_unit_test(test_width),	   cmocka_unit_test(test_sparse),
		cmocka_unit_test(test_strata_ok),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
