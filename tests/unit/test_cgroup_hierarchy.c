// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Which hierarchy tells cgroups apart, on hosts of every layout. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "cgroup/cgroup.h"
#include "base/err.h"
#include "tree.h"

#define CG "/sys/fs/cgroup"
#define ID "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"

#define UNIFIED "40 25 0:40 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw,nsdelegate\n"
#define FULL	"40 25 0:40 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n"
#define SYSTEMD "41 25 0:41 / /sys/fs/cgroup/systemd rw - cgroup cgroup rw,xattr,name=systemd\n"
#define MEMORY	"42 25 0:42 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n"
#define CPU	"43 25 0:43 / /sys/fs/cgroup/cpu,cpuacct rw - cgroup cgroup rw,cpu,cpuacct\n"
#define CPUSET	"44 25 0:44 / /sys/fs/cgroup/cpuset rw shared:7 - cgroup none rw,cpuset\n"
#define PART	"45 25 0:43 /docker/x /elsewhere rw - cgroup cgroup rw,cpu,cpuacct\n"

static void mounts(const char *text)
{
	put_file("/proc/self/mountinfo", text);
}

static void check(const char *name, const char *controller, const char *path)
{
	struct err e = { "" };
	struct cgroup_fs fs;

	if (cgroup_hierarchy_choose(root, name, &fs, &e))
		fail_msg("%s: %s", name, e.text);
	assert_string_equal(fs.controller, controller);
	assert_string_equal(fs.path, path);
}

static void test_named(void **state)
{
	struct cgroup_fs fs;
	struct err e;

	(void)state;
	mounts(UNIFIED SYSTEMD MEMORY PART CPU CPUSET);
	check("v2", "", CG "/unified");
	check("memory", "memory", CG "/memory");
	check("cpuacct", "cpuacct", CG "/cpu,cpuacct");
	check("cpu", "cpu", CG "/cpu,cpuacct");
	check("cpuset", "cpuset", CG "/cpuset");
	assert_int_equal(cgroup_hierarchy_choose(root, "cpus", &fs, &e), -ENOENT);
	assert_string_equal(e.text, "unknown or unmounted hierarchy 'cpus': must be one of "
				    "auto, v2, memory, cpu, cpuacct, cpuset");
	assert_int_equal(cgroup_hierarchy_choose(root, "systemd", &fs, &e), -ENOENT);
	assert_int_equal(cgroup_hierarchy_choose(root, "", &fs, &e), -ENOENT);
	mounts(MEMORY);
	assert_int_equal(cgroup_hierarchy_choose(root, "v2", &fs, &e), -ENOENT);
	mounts(FULL);
	assert_int_equal(cgroup_hierarchy_choose(root, "memory", &fs, &e), -ENOENT);
	assert_string_equal(e.text, "unknown or unmounted hierarchy 'memory': must be one of "
				    "auto, v2");
}

static void test_auto(void **state)
{
	(void)state;
	mounts("");
	check("auto", "", "");
	mounts(FULL);
	put_dir(CG "/memory/a/");
	check("auto", "", CG);
	/* nothing anywhere but in v1, as where no init system manages cgroups */
	mounts(UNIFIED SYSTEMD MEMORY CPU);
	put_dir(CG "/unified/");
	check("auto", "memory", CG "/memory");
	/* units, as systemd has them in both */
	put_dir(CG "/unified/system.slice/ssh.service/");
	check("auto", "", CG "/unified");
	/* Docker with cgroupfs: containers in v1 alone */
	put_dir(CG "/cpu,cpuacct/docker/" ID "/");
	check("auto", "cpu", CG "/cpu,cpuacct");
	put_dir(CG "/memory/docker/" ID "/");
	check("auto", "memory", CG "/memory");
	/* with systemd, in both */
	put_dir(CG "/unified/system.slice/docker-" ID ".scope/");
	check("auto", "", CG "/unified");
}

static void test_v1_only(void **state)
{
	(void)state;
	mounts(SYSTEMD);
	check("auto", "", "");
	mounts(CPUSET CPU MEMORY);
	check("auto", "memory", CG "/memory");
	put_dir(CG "/cpuset/jobs/");
	check("auto", "cpuset", CG "/cpuset");
	put_dir(CG "/cpu,cpuacct/kubepods/besteffort/pod0123456789abcdef/" ID "/");
	check("auto", "cpu", CG "/cpu,cpuacct");
}

/* No end, however large or deep the trees. */
static void test_large(void **state)
{
	char path[4000] = CG "/memory/";

	(void)state;
	mounts(UNIFIED MEMORY);
	put_dir(CG "/unified/");
	for (int i = 0; i < 200; i++)
		strcat(path, "deep/");
	put_dir(path);
	for (int i = 0; i < 5000; i++) {
		snprintf(path, sizeof(path), CG "/memory/d%d/", i);
		put_dir(path);
	}
	check("auto", "memory", CG "/memory");
}

static void test_without_mountinfo(void **state)
{
	(void)state;
	put_file(CG "/memory/tasks", "");
	put_file(CG "/pids/tasks", "");
	put_dir(CG "/pids/a/");
	check("auto", "pids", CG "/pids");
	check("memory", "memory", CG "/memory");
}

/* Names are those of the hierarchy that was chosen. */
static void test_tree(void **state)
{
	struct cgroup_tree *t = NULL;
	struct err e = { "" };
	struct cgroup_fs fs;
	uint64_t id;

	(void)state;
	mounts(UNIFIED MEMORY);
	put_dir(CG "/unified/");
	put_dir(CG "/memory/a/b/");
	assert_int_equal(cgroup_hierarchy_choose(root, "memory", &fs, &e), 0);
	assert_int_equal(cgroup_tree_open_at(root, &fs, &t, &e), 0);
	assert_true(cgroup_tree_per_cgroup(t));
	assert_int_equal(cgroup_id_of_path(t, CG "/memory/a/b", &id, &e), 0);
	assert_string_equal(cgroup_tree_path(t, id), "/a/b");
	assert_int_equal(cgroup_id_of_path(t, CG "/unified/a", &id, &e), -EINVAL);
	assert_string_equal(e.text, "cgroup '/sys/fs/cgroup/unified/a' is in another "
				    "hierarchy than memory at /sys/fs/cgroup/memory; "
				    "choose one with --cgroup-hierarchy");
	cgroup_tree_close(t);
}

#define T(f) cmocka_unit_test_setup_teardown(f, new_root, remove_root)

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(test_named),
		T(test_auto),
		T(test_v1_only),
		T(test_large),
		T(test_without_mountinfo),
		T(test_tree),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
