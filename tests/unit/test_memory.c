// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Nodes of memory: from a fake sysfs, sorted, and looked up. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "machine/memory.h"
#include "tree.h"

#define NODES "/sys/devices/system/node/"
#define BLOCK (128ull << 20)

static void block(unsigned int node, unsigned int n)
{
	char path[128];

	snprintf(path, sizeof(path), NODES "node%u/memory%u/", node, n);
	put_dir(path);
}

static void test_blocks(void **state)
{
	struct memory_range r[MEMORY_RANGES];

	(void)state;
	put_file(NODES "online", "0-1,3\n");
	put_file("/sys/devices/system/memory/block_size_bytes", "8000000\n");
	for (unsigned int n = 0; n < 4; n++)
		block(0, n);
	for (unsigned int n = 4; n < 12; n++)
		block(1, n);
	block(3, 32);
	block(0, 12);
	put_dir(NODES "node0/memory_failure/");
	put_dir(NODES "node1/memory4294967296000/");
	assert_int_equal(memory_ranges_read(root, r), 4);
	assert_int_equal(r[1].start, 4 * BLOCK);
	assert_int_equal(r[1].end, 12 * BLOCK);
	assert_int_equal(memory_node(r, 4, 0), 0);
	assert_int_equal(memory_node(r, 4, 4 * BLOCK - 1), 0);
	assert_int_equal(memory_node(r, 4, 4 * BLOCK), 1);
	assert_int_equal(memory_node(r, 4, 13 * BLOCK - 1), 0);
	assert_int_equal(memory_node(r, 4, 13 * BLOCK), -1);
	assert_int_equal(memory_node(r, 4, 32 * BLOCK), 3);
	assert_int_equal(memory_node(r, 4, 33 * BLOCK), -1);
	assert_int_equal(memory_node(r, 0, 0), -1);
}

static void test_one_node(void **state)
{
	struct memory_range r[MEMORY_RANGES];

	(void)state;
	assert_int_equal(memory_ranges_read(root, r), 0);
	put_file(NODES "online", "0-1\n");
	assert_int_equal(memory_ranges_read(root, r), 0);
	put_file(NODES "online", "0\n");
	assert_int_equal(memory_ranges_read(root, r), 1);
	assert_int_equal(memory_node(r, 1, 1ull << 40), 0);
}

static void test_too_many(void **state)
{
	struct memory_range r[MEMORY_RANGES];

	(void)state;
	put_file(NODES "online", "0-1\n");
	put_file("/sys/devices/system/memory/block_size_bytes", "8000000\n");
	for (unsigned int n = 0; n <= MEMORY_RANGES; n++)
		block(n % 2, n);
	assert_int_equal(memory_ranges_read(root, r), 0);
}

static void test_sort(void **state)
{
	struct memory_range overlap[] = { { 10, 20, 0 }, { 0, 11, 0 } };
	struct memory_range empty[] = { { 10, 10, 0 } };
	struct memory_range joined[] = { { 20, 30, 1 }, { 10, 20, 1 }, { 0, 10, 0 } };

	(void)state;
	assert_int_equal(memory_ranges_sort(overlap, 2), 0);
	assert_int_equal(memory_ranges_sort(empty, 1), 0);
	assert_int_equal(memory_ranges_sort(joined, 3), 2);
	assert_int_equal(joined[1].end, 30);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_blocks, new_root, remove_root),
		cmocka_unit_test_setup_teardown(test_one_node, new_root, remove_root),
		cmocka_unit_test_setup_teardown(test_too_many, new_root, remove_root),
		cmocka_unit_test(test_sort),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
