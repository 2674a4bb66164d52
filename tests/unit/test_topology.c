// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Caches, nodes and sockets of a made-up machine; known distances; the list of slab caches; what a kernel's files say. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "machine/kernel.h"
#include "machine/machine.h"
#include "tree.h"

#define CPUS 6

static void put_cpu(unsigned int cpu, const char *l3, const char *socket)
{
	char path[100];

	snprintf(path, sizeof(path), "/sys/devices/system/cpu/cpu%u/cache/index3/id", cpu);
	put_file(path, l3);
	snprintf(path, sizeof(path), "/sys/devices/system/cpu/cpu%u/topology/physical_package_id",
		 cpu);
	put_file(path, socket);
}

/* Complexes are numbered in the order of their first CPU; CPU 4 is offline. */
static void test_machine(void **unused)
{
	static const unsigned int complex[CPUS] = { 0, 1, 0, 2, 0, 1 },
				  node[CPUS] = { 0, 1, 0, 1, 0, 0 },
				  socket[CPUS] = { 0, 1, 0, 1, 0, 0 };
	struct topology *t;

	(void)unused;
	put_cpu(0, "8\n", "0\n");
	put_cpu(1, "3\n", "1\n");
	put_cpu(2, "8\n", "-1\n");
	put_cpu(3, "0\n", "1\n");
	put_cpu(5, "3\n", "x\n");
	put_file("/sys/devices/system/node/online", "0-2\n");
	put_file("/sys/devices/system/node/node0/cpulist", "0,2\n");
	put_file("/sys/devices/system/node/node1/cpulist",
		 "1,3,6-7\n");					  /* 6 and 7 are not possible */
	put_file("/sys/devices/system/node/node2/cpulist", "\n"); /* memory only */
	t = topology_open(root, CPUS);
	assert_int_equal(topology_n_complexes(t), 3);
	for (unsigned int cpu = 0; cpu < CPUS; cpu++) {
		assert_int_equal(topology_complex(t, cpu), complex[cpu]);
		assert_int_equal(topology_node(t, cpu), node[cpu]);
		assert_int_equal(topology_socket(t, cpu), socket[cpu]);
	}
	assert_int_equal(topology_complex(t, CPUS), 0);
	assert_int_equal(topology_node(t, CPUS), 0);
	assert_int_equal(topology_socket(t, CPUS), 0);
	assert_int_equal(topology_complex_of_l3(t, 8), 0);
	assert_int_equal(topology_complex_of_l3(t, 3), 1);
	assert_int_equal(topology_complex_of_l3(t, 0), 2);
	assert_int_equal(topology_complex_of_l3(t, 1), -1);
	topology_close(t);
	topology_close(NULL);
}

/* Without any information there is one complex, and no L3 is known. */
static void test_nothing(void **unused)
{
	struct topology *t = topology_open(root, CPUS);

	(void)unused;
	assert_int_equal(topology_n_complexes(t), 1);
	assert_int_equal(topology_complex(t, 3), 0);
	assert_int_equal(topology_complex_of_l3(t, 0), -1);
	assert_int_equal(topology_node(t, 3), 0);
	topology_close(t);
}

static void test_shards(void **unused)
{
	(void)unused;
	assert_int_equal(topology_shard(0, 8, 4), 0);
	assert_int_equal(topology_shard(1, 8, 4), 0);
	assert_int_equal(topology_shard(2, 8, 4), 1);
	assert_int_equal(topology_shard(7, 8, 4), 3);
	assert_int_equal(topology_shard(2, 3, 3), 2);
}

/* Known distances, one after the other, from the first node on. */
static void test_distances(void **unused)
{
	struct node_distances d = { .of = { [0][1] = 20, [2][0] = 32, [63][63] = 10 } };
	unsigned int i = 0;

	(void)unused;
	assert_true(node_distance_next(&d, &i));
	assert_int_equal(i, 1);
	i++;
	assert_true(node_distance_next(&d, &i));
	assert_int_equal(i, 2 * DISTANCE_NODES);
	i++;
	assert_true(node_distance_next(&d, &i));
	assert_int_equal(i, 64 * 64 - 1);
	i++;
	assert_false(node_distance_next(&d, &i));
	assert_int_equal(node_distance(&d, 0, 1), 20);
	assert_int_equal(node_distance(&d, 1, 0), 0);
	assert_int_equal(node_distance(&d, 63, 63), 10);
	assert_int_equal(node_distance(&d, 64, 0), 0);
	assert_int_equal(node_distance(&d, 0, 64), 0);
	assert_int_equal(node_distance(&d, -1, -1), 0);
}

/* A cache that several had the number of has no name; of one, whether it is merged adds up. */
static void test_slabs(void **unused)
{
	const struct ibs_slab a = { .id = IBS_SLAB_ID(0x1000), .size = 64, .name = "dentry" },
			      other = { .id = IBS_SLAB_ID(0x2000), .size = 128, .name = "inode" };
	struct ibs_slab again = a, renamed = other, resized = a;
	struct slab_list l = {};

	(void)unused;
	assert_null(slab_list_find(&l, 0x1000));
	slab_list_add(&l, &a);
	slab_list_add(&l, &other);
	assert_int_equal(l.n, 2);
	assert_string_equal(slab_list_find(&l, 0x1000)->name, "dentry");
	assert_string_equal(slab_list_find(&l, 0x2000)->name, "inode");
	assert_null(slab_list_find(&l, 0x3000));
	assert_null(slab_list_find(&l, 0));
	assert_false(slab_list_find(&l, 0x1000)->merged);
	again.merged = true;
	slab_list_add(&l, &again);
	assert_true(slab_list_find(&l, 0x1000)->merged);
	slab_list_add(&l, &a);
	assert_true(slab_list_find(&l, 0x1000)->merged);
	assert_int_equal(l.n, 2);
	strcpy(renamed.name, "file");
	slab_list_add(&l, &renamed);
	assert_null(slab_list_find(&l, 0x2000));
	resized.size = 65;
	slab_list_add(&l, &resized);
	assert_null(slab_list_find(&l, 0x1000));
	slab_list_free(&l);
}

/* The number of a namespace is that of its file, unless it is the initial one. */
static void test_pid_namespace(void **unused)
{
	unsigned long long dev = 7, ino = 7;
	char path[200];
	struct stat st;

	(void)unused;
	assert_false(kernel_pid_namespace(root, &dev, &ino));
	assert_int_equal(dev, 0);
	assert_int_equal(ino, 0);
	put_file("/proc/self/ns/pid", "");
	snprintf(path, sizeof(path), "%s/proc/self/ns/pid", root);
	assert_int_equal(stat(path, &st), 0);
	assert_true(kernel_pid_namespace(root, &dev, &ino));
	assert_int_equal(dev, st.st_dev);
	assert_int_equal(ino, st.st_ino);
}

/* A kernel without types. */
static void test_no_btf(void **unused)
{
	char want[200];
	bool direct_read = true;
	struct err err = { "" };

	(void)unused;
	assert_int_equal(kernel_features_btf(root, &direct_read, &err), -ENOENT);
	assert_false(direct_read);
	snprintf(want, sizeof(want),
		 "the kernel has no type information (%s/sys/kernel/btf/vmlinux): No such file or "
		 "directory; ",
		 root);
	assert_int_equal(strncmp(err.text, want, strlen(want)), 0);
}

#define R(f) cmocka_unit_test_setup_teardown(f, new_root, remove_root)

int main(void)
{
	const struct CMUnitTest tests[] = {
		R(test_machine),
		R(test_nothing),
		cmocka_unit_test(test_shards),
		cmocka_unit_test(test_distances),
		cmocka_unit_test(test_slabs),
		R(test_pid_namespace),
		R(test_no_btf),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
