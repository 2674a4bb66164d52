// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Nodes of memory: from a fake sysfs, sorted, and looked up. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <stdlib.h>

#include "machine/machine.h"
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

/* What the program looks up is what memory_node() finds. */
static void test_parts(void **state)
{
	static struct ibs_memory_nodes parts;
	struct memory_range r[MEMORY_RANGES];
	__u64 regs[IBS_OP_REG_FIXED] = { 0 };

	(void)state;
	srand(1);
	for (int round = 0; round < 300; round++) {
		size_t n = 0, want = round % MEMORY_RANGES;
		uint64_t at = round % 2 ? 0 : BLOCK;

		for (; n < want; n++) {
			r[n].start = at += rand() % 3 ? 0 : BLOCK;
			r[n].end = at += BLOCK * (1 + rand() % 3);
			r[n].node = rand() % 255;
		}
		assert_int_equal(memory_nodes_fill(r, n, &parts), 0);
		for (int i = 0; i < 400; i++) {
			uint64_t block = rand() % (at / BLOCK + 2) * BLOCK, k = rand() % 4;
			int node;

			regs[IBS_DC_PHYSADDR] = k == 3 ? block + rand() : block - 1 + k;
			node = memory_node(r, n, regs[IBS_DC_PHYSADDR]);
			if (!regs[IBS_DC_PHYSADDR] || (int64_t)regs[IBS_DC_PHYSADDR] < 0)
				continue;
			regs[IBS_OP_DATA3] = IBS_OP_DATA3_LD_OP | IBS_OP_DATA3_PHY_VALID;
			assert_int_equal(ibs_memory_node(&parts, 0, regs, false), node + 1);
			assert_int_equal(ibs_memory_node(&parts, IBS_CAPS_ZEN4, regs, false), 0);
			regs[IBS_OP_DATA3] = IBS_OP_DATA3_PHY_VALID;
			assert_int_equal(ibs_memory_node(&parts, 0, regs, false), 0);
			regs[IBS_OP_DATA3] = IBS_OP_DATA3_ST_OP;
			assert_int_equal(ibs_memory_node(&parts, 0, regs, false), 0);
		}
	}
	r[0] = (struct memory_range){ 0, BLOCK, 255 };
	assert_int_equal(memory_nodes_fill(r, 1, &parts), -E2BIG);
	for (size_t i = 0; i < MEMORY_RANGES; i++)
		r[i] = (struct memory_range){ (2 * i + 1) * BLOCK, (2 * i + 2) * BLOCK, i % 2 };
	assert_int_equal(memory_nodes_fill(r, MEMORY_RANGES, &parts), -E2BIG);
	assert_int_equal(memory_nodes_fill(r, MEMORY_RANGES - 1, &parts), 0);
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

static void test_distances(void **state)
{
	struct node_distances d;

	(void)state;
	node_distances_read(root, &d);
	assert_int_equal(node_distance(&d, 0, 0), 0);
	put_file(NODES "online", "0-1,3,70\n");
	put_file(NODES "node0/distance", "10 21 40 50\n");
	put_file(NODES "node1/distance", "21 10 255\n");
	put_file(NODES "node3/distance", "40 x\n");
	put_file(NODES "node70/distance", "50 50 50 10\n");
	node_distances_read(root, &d);
	assert_int_equal(node_distance(&d, 0, 0), 10);
	assert_int_equal(node_distance(&d, 0, 1), 21);
	assert_int_equal(node_distance(&d, 0, 2), 0);
	assert_int_equal(node_distance(&d, 0, 3), 40);
	assert_int_equal(node_distance(&d, 1, 3), 255);
	assert_int_equal(node_distance(&d, 3, 0), 40);
	assert_int_equal(node_distance(&d, 3, 1), 0);
	assert_int_equal(node_distance(&d, 0, 70), 0);
	assert_int_equal(node_distance(&d, 70, 0), 0);
	assert_int_equal(node_distance(&d, -1, 0), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_blocks, new_root, remove_root),
		cmocka_unit_test_setup_teardown(test_one_node, new_root, remove_root),
		cmocka_unit_test_setup_teardown(test_too_many, new_root, remove_root),
		cmocka_unit_test_setup_teardown(test_distances, new_root, remove_root),
		cmocka_unit_test(test_sort),
		cmocka_unit_test(test_parts),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
