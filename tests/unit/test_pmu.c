// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Reading sysfs: whole, old, missing, unreadable and malformed; cgroup mounts; processors. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "cgroup/cgroup.h"
#include "event/cpu.h"
#include "base/err.h"
#include "doctor/l3_latency.h"
#include "perf/perf.h"
#include "event/event.h"
#include "ibs_tree.h"

#define ZEN2_CAPS 0x3ffu
#define ZEN4_CAPS 0xbffu
#define ZEN5_CAPS 0x1bffu
/* With every bit that Linux 7.2 knows. */
#define ZEN6_CAPS (0x9fbffu & ~IBS_CAPS_OPDATA4)

static struct cpu_info amd(__u32 family, __u32 model, __u32 caps)
{
	struct cpu_info c;

	cpu_info_set(&c, "AuthenticAMD", family, model, caps);
	return c;
}

static struct pmu *must_open(const char *name)
{
	struct cpu_info c = amd(0x19, 0x11, ZEN4_CAPS);
	struct pmu *p = NULL;
	struct err e = { "" };
	int err;

	err = pmu_open(root, name, &c, &p, &e);
	if (err)
		fail_msg("%s", e.text);
	return p;
}

static int open_error(const struct cpu_info *c, const char *name, struct err *e)
{
	struct pmu *p = (struct pmu *)1;
	int err;

	e->text[0] = 0;
	err = pmu_open(root, name, c, &p, e);
	assert_true(err < 0);
	assert_ptr_equal(p, (struct pmu *)1);
	assert_true(strlen(e->text) > 10);
	assert_null(strchr(e->text, '\n'));
	return err;
}

static void test_5_10(void **state)
{
	const struct pmu_format *f;
	struct pmu *p;

	(void)state;
	put_pmus(V5_10, ZEN4_CAPS);
	p = must_open("ibs_op");
	assert_string_equal(p->name, "ibs_op");
	assert_int_equal(p->type, 11);
	assert_int_equal(p->n_formats, 1);
	assert_int_equal(p->n_caps, 0);
	assert_non_null(f = pmu_format(p, "cnt_ctl"));
	assert_int_equal(f->word, PMU_CONFIG);
	assert_true(f->mask == 1 << 19);
	assert_null(pmu_format(p, "l3missonly"));
	assert_null(pmu_format(p, ""));
	assert_int_equal(p->max_sample_rate, 100000);
	pmu_close(p);
	pmu_close(NULL);
}

static void test_7_2(void **state)
{
	static const char *const names[] = { "cnt_ctl", "l3missonly", "ldlat", "strmst", "swfilt" };
	const struct pmu_format *f;
	struct pmu *p;
	size_t i;

	(void)state;
	put_pmus(V7_2, ZEN6_CAPS);
	p = must_open("ibs_op");
	assert_int_equal(p->n_formats, 5);
	for (i = 0; i < 5; i++)
		assert_string_equal(p->formats[i].name, names[i]);
	assert_non_null(f = pmu_format(p, "ldlat"));
	assert_int_equal(f->word, PMU_CONFIG1);
	assert_true(f->mask == 0xfff);
	assert_true(pmu_format_max(f) == 0xfff);
	assert_int_equal(p->n_caps, 4);
	assert_string_equal(p->caps[0], "ldlat");
	assert_true(pmu_has_cap(p, "rmtsocket"));
	assert_false(pmu_has_cap(p, "fetchlat"));
	pmu_close(p);
	p = must_open("ibs_fetch");
	assert_int_equal(p->type, 10);
	assert_non_null(f = pmu_format(p, "rand_en"));
	assert_true(f->mask == UINT64_C(1) << 57);
	assert_true(pmu_has_cap(p, "fetchlat"));
	pmu_close(p);
}

static void test_formats(void **state)
{
	static const struct {
		const char *text;
		unsigned int word;
		uint64_t mask; /* 0: malformed */
	} rows[] = {
		{ "config:0-63\n", 0, UINT64_MAX },
		{ "config:63", 0, UINT64_C(1) << 63 },
		{ "config1:0-7,32-35\n", 1, UINT64_C(0xf000000ff) },
		{ "config2:0\n", 2, 1 },
		{ "config3:4\n", 3, 16 }, /* a later kernel's */
		{ "config9:4\n", 9, 16 },
		{ "config0:4\n", 0, 0 },
		{ "", 0, 0 },
		{ "\n", 0, 0 },
		{ "config\n", 0, 0 },
		{ "config:\n", 0, 0 },
		{ "config:64\n", 0, 0 },
		{ "config:8-4\n", 0, 0 },
		{ "config:-4\n", 0, 0 },
		{ "config:4-\n", 0, 0 },
		{ "config:4,\n", 0, 0 },
		{ "config:4 \n", 0, 0 },
		{ "config: 4\n", 0, 0 },
		{ "config:+4\n", 0, 0 },
		{ "config:0x4\n", 0, 0 },
		{ "config10:4\n", 0, 0 },
		{ "confog:4\n", 0, 0 },
		{ "config:99999999999999999999\n", 0, 0 },
		{ "config:1-99999999999999999999\n", 0, 0 },
		{ "event=0x12\n", 0, 0 },
	};
	struct cpu_info c = amd(0x19, 0x11, ZEN4_CAPS);
	const struct pmu_format *f;
	struct pmu *p;
	struct err e;
	size_t i;

	(void)state;
	put_pmus(V6_1, ZEN4_CAPS);
	for (i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		put_file(DEV "ibs_op/format/test", rows[i].text);
		if (rows[i].mask) {
			p = must_open("ibs_op");
			assert_non_null(f = pmu_format(p, "test"));
			assert_int_equal(f->word, rows[i].word);
			assert_true(f->mask == rows[i].mask);
			pmu_close(p);
		} else {
			assert_int_equal(open_error(&c, "ibs_op", &e), -EINVAL);
			assert_non_null(strstr(e.text, "format/test"));
		}
	}
}

static void test_format_put(void **state)
{
	struct pmu_format f = { "f", PMU_CONFIG, 0xf0f0 };
	uint64_t w = 0x10001;

	(void)state;
	assert_int_equal(pmu_format_put(&f, 0xa5, &w), 0);
	assert_true(w == 0x1a051);
	assert_int_equal(pmu_format_put(&f, 0, &w), 0);
	assert_true(w == 0x10001);
	assert_int_equal(pmu_format_put(&f, 0x100, &w), -ERANGE);
	assert_true(w == 0x10001);
	f.mask = UINT64_MAX;
	assert_int_equal(pmu_format_put(&f, UINT64_MAX, &w), 0);
	assert_true(w == UINT64_MAX);
}

static void test_malformed(void **state)
{
	static const char *const types[] = { "", "x\n", "-1\n", "4294967296\n", "1 2\n" };
	struct cpu_info c = amd(0x19, 0x11, ZEN4_CAPS);
	char path[192];
	struct pmu *p;
	struct err e;
	size_t i;

	(void)state;
	put_pmus(V6_1, ZEN4_CAPS);
	for (i = 0; i < sizeof(types) / sizeof(types[0]); i++) {
		put_file(DEV "ibs_op/type", types[i]);
		assert_int_equal(open_error(&c, "ibs_op", &e), -EINVAL);
		assert_non_null(strstr(e.text, "ibs_op/type"));
	}
	put_file(DEV "ibs_op/type", "11\n");
	put_file(DEV "ibs_op/format/a_name_of_thirty_two_characters_", "config:1\n");
	assert_int_equal(open_error(&c, "ibs_op", &e), -EINVAL);
	assert_non_null(strstr(e.text, "name longer than 31 characters"));
	snprintf(path, sizeof(path), "%s" DEV "ibs_op/format/a_name_of_thirty_two_characters_",
		 root);
	assert_int_equal(unlink(path), 0);
	put_file(DEV "ibs_op/format/a_name_of_thirty_one_characters", "config:1\n");
	assert_int_equal(pmu_open(root, "ibs_op", &c, &p, &e), 0);
	pmu_close(p);
	snprintf(path, sizeof(path), "%s" DEV "ibs_fetch/format/dir", root);
	mkdir(path, 0755);
	assert_int_equal(open_error(&c, "ibs_fetch", &e), -EISDIR);
	rmdir(path);
	for (i = 0; i < 100; i++) {
		snprintf(path, sizeof(path), DEV "ibs_fetch/format/f%zu", i);
		put_file(path, "config:1\n");
	}
	assert_int_equal(open_error(&c, "ibs_fetch", &e), -EINVAL);
	for (i = 0; i < 3; i++) {
		static const char *const names[] = { "", "../x", "a/b" };

		assert_int_equal(open_error(&c, names[i], &e), -EINVAL);
	}
}

static void test_unreadable(void **state)
{
	struct cpu_info c = amd(0x19, 0x11, ZEN4_CAPS);
	char path[128];
	struct err e;

	(void)state;
	put_pmus(V6_1, ZEN4_CAPS);
	/* Mode 0 does not stop root, a dangling link does. */
	snprintf(path, sizeof(path), "%s" DEV "ibs_op/format/cnt_ctl", root);
	unlink(path);
	assert_int_equal(symlink("/nonexistent", path), 0);
	assert_int_equal(open_error(&c, "ibs_op", &e), -ENOENT);
	assert_non_null(strstr(e.text, "cnt_ctl"));
	unlink(path);
	snprintf(path, sizeof(path), "%s" DEV "ibs_op/type", root);
	if (geteuid()) {
		chmod(path, 0);
		assert_int_equal(open_error(&c, "ibs_op", &e), -EACCES);
		assert_non_null(strstr(e.text, "type"));
	}
	unlink(path);
	assert_int_equal(open_error(&c, "ibs_op", &e), -ENOENT);
}

/* Where a directory must be, there is a file. */
static void test_no_directory(void **state)
{
	struct cpu_info c = amd(0x19, 0x11, ZEN4_CAPS);
	char want[256];
	struct err e;

	(void)state;
	put_pmus(V5_10, ZEN4_CAPS);
	put_file(DEV "ibs_op/caps", "");
	assert_int_equal(open_error(&c, "ibs_op", &e), -ENOTDIR);
	snprintf(want, sizeof(want), "%s" DEV "ibs_op/caps: cannot open: Not a directory", root);
	assert_string_equal(e.text, want);
}

static void test_why_missing(void **state)
{
	struct cpu_info c;
	struct err e;

	(void)state;
	c = amd(0x19, 0x11, ZEN4_CAPS);
	assert_int_equal(open_error(&c, "ibs_op", &e), -ENOENT);
	assert_non_null(strstr(e.text, "mount sysfs"));
	put_file(DEV "software/type", "1\n");

	assert_int_equal(open_error(&c, "ibs_op", &e), -ENODEV);
	assert_non_null(strstr(e.text, "BIOS"));
	assert_non_null(strstr(e.text, "firmware bug"));
	c = amd(0x19, 0x11, 0);
	assert_int_equal(open_error(&c, "ibs_op", &e), -ENODEV);
	assert_non_null(strstr(e.text, "disabled"));
	c.hypervisor = true;
	assert_int_equal(open_error(&c, "ibs_fetch", &e), -ENODEV);
	assert_non_null(strstr(e.text, "hypervisor"));
	cpu_info_set(&c, "GenuineIntel", 6, 0x8f, 0);
	assert_int_equal(open_error(&c, "ibs_op", &e), -ENODEV);
	assert_non_null(strstr(e.text, "only AMD"));
}

static void test_cpu(void **state)
{
	static const struct {
		__u32 family, model;
		const char *name;
	} rows[] = {
		{ 0x10, 0x02, "K10" },	   { 0x15, 0x01, "Bulldozer" }, { 0x17, 0x01, "Zen 1" },
		{ 0x17, 0x31, "Zen 2" },   { 0x17, 0x71, "Zen 2" },	{ 0x18, 0x00, "Hygon" },
		{ 0x19, 0x01, "Zen 3" },   { 0x19, 0x11, "Zen 4" },	{ 0x19, 0x21, "Zen 3" },
		{ 0x19, 0x61, "Zen 4" },   { 0x19, 0xa0, "Zen 4" },	{ 0x1a, 0x02, "Zen 5" },
		{ 0x1a, 0x44, "Zen 5" },   { 0x1a, 0x50, "Zen 6" },	{ 0x1a, 0xff, "unknown" },
		{ 0x77, 0x00, "unknown" },
	};
	struct cpu_info c;
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		c = amd(rows[i].family, rows[i].model, ZEN2_CAPS);
		assert_non_null(strstr(cpu_generation(&c), rows[i].name));
	}
	cpu_info_set(&c, "HygonGenuine", 0x18, 0, 0x3fe);
	assert_true(c.amd && c.ibs);
	assert_int_equal(c.caps, IBS_CAPS_DEFAULT); /* AVAIL is clear */
	cpu_info_set(&c, "GenuineIntel", 0x19, 0x01, 0xbff);
	assert_false(c.amd || c.ibs || c.caps || c.quirks);
	cpu_info_set(&c, "a vendor that is too long", 1, 1, 1);
	assert_int_equal(strlen(c.vendor), 12);
	cpu_info_read(&c);
	assert_true(c.ibs == !!c.caps);
	assert_true(c.hypervisor == !!*c.hypervisor_name);
}

#define V1    "30 25 0:29 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n"
#define PROC  "22 27 0:21 / /proc rw,relatime - proc proc rw\n"
#define FULL  "31 25 0:30 / /sys/fs/cgroup rw,nosuid shared:9 master:2 - cgroup2 cgroup2 rw\n"
#define OTHER "32 25 0:30 / /mnt/a\\040b\\134c rw - cgroup2 none rw\n"
#define PART  "33 25 0:30 /docker/x /sys/fs/cgroup ro - cgroup2 cgroup rw\n"

static void test_cgroup(void **state)
{
	static const struct {
		const char *text;
		enum cgroup_mode mode;
		const char *path, *inner;
	} rows[] = {
		{ PROC FULL, CGROUP_MODE_V2, "/sys/fs/cgroup", "/" },
		{ OTHER FULL, CGROUP_MODE_V2, "/sys/fs/cgroup", "/" },
		{ FULL OTHER, CGROUP_MODE_V2, "/sys/fs/cgroup", "/" },
		{ PART OTHER, CGROUP_MODE_V2, "/mnt/a b\\c", "/" },
		{ PART, CGROUP_MODE_V2, "/sys/fs/cgroup", "/docker/x" },
		{ V1 OTHER, CGROUP_MODE_HYBRID, "/mnt/a b\\c", "/" },
		{ V1 PROC, CGROUP_MODE_V1, "", "" },
		{ PROC, CGROUP_MODE_NONE, "", "" },
		{ "", CGROUP_MODE_NONE, "", "" },
		{ "garbage\n - \n - cgroup2\n1 2 3 - cgroup2 x y\n\n", CGROUP_MODE_NONE, "", "" },
		{ FULL "31 25 0:30 / /x rw - cgrou", CGROUP_MODE_V2, "/sys/fs/cgroup", "/" },
	};
	struct cgroup_fs fs;
	struct err e;
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		put_file("/proc/self/mountinfo", rows[i].text);
		assert_int_equal(cgroup_mode_detect(root, &fs, &e), 0);
		assert_int_equal(fs.mode, rows[i].mode);
		assert_string_equal(fs.path, rows[i].path);
		assert_string_equal(fs.inner, rows[i].inner);
	}
}

static void test_cgroup_without_mountinfo(void **state)
{
	struct cgroup_fs fs;
	struct err e;

	(void)state;
	assert_int_equal(cgroup_mode_detect(root, &fs, &e), 0);
	assert_string_equal(cgroup_mode_name(fs.mode), "none");
	put_file("/sys/fs/cgroup/memory/tasks", "");
	assert_int_equal(cgroup_mode_detect(root, &fs, &e), 0);
	assert_string_equal(cgroup_mode_name(fs.mode), "v1");
	put_file("/sys/fs/cgroup/unified/cgroup.controllers", "");
	assert_int_equal(cgroup_mode_detect(root, &fs, &e), 0);
	assert_string_equal(cgroup_mode_name(fs.mode), "hybrid");
	assert_string_equal(fs.path, "/sys/fs/cgroup/unified");
	assert_int_equal(cgroup_mode_detect("", &fs, &e), 0);
}

#define T(f) cmocka_unit_test_setup_teardown(f, new_root, remove_root)

static int describe_l3(__u32 caps, struct l3_latency *out, struct err *e)
{
	struct cpu_info c = amd(0x19, 0x11, caps);

	return l3_latency_describe(root, &c, out, e);
}

/* As amd_uncore of Linux 6.12 shows it on a processor with two complexes of eight CPUs. */
static void put_l3(const char *slice)
{
	put_file(DEV "amd_l3/type", "15\n");
	put_file(DEV "amd_l3/cpumask", "0,8\n");
	put_file(DEV "amd_l3/format/event", "config:0-7\n");
	put_file(DEV "amd_l3/format/umask", "config:8-15\n");
	put_file(DEV "amd_l3/format/coreid", "config:42-44\n");
	put_file(DEV "amd_l3/format/enallslices", "config:46\n");
	put_file(DEV "amd_l3/format/enallcores", "config:47\n");
	put_file(DEV "amd_l3/format/sliceid", slice);
	put_file(DEV "amd_l3/format/threadmask", "config:56-57\n");
}

static void test_l3_latency(void **state)
{
	/* all; DRAM, another CCX's cache, extension memory, each near and far (amdzen6/l3-cache.json) */
	static const uint64_t masks[L3_SOURCE_N] = { 0x3f, 1, 2, 4, 8, 0x10, 0x20 };
	struct l3_latency l3;
	struct err e;

	(void)state;
	put_pmus(V7_2, ZEN4_CAPS);
	assert_int_equal(describe_l3(ZEN4_CAPS, &l3, &e), -ENODEV);
	assert_non_null(strstr(e.text, "amd_uncore"));
	put_l3("config:48-50\n");
	assert_int_equal(describe_l3(ZEN2_CAPS, &l3, &e), -EOPNOTSUPP);
	assert_int_equal(describe_l3(ZEN4_CAPS, &l3, &e), 0);
	/* enallcores 47, enallslices 46, sliceid 3 << 48, threadmask 3 << 56 */
	for (size_t i = 0; i < sizeof(masks) / sizeof(masks[0]); i++) {
		assert_int_equal(l3.of[i].sum.type, 15);
		assert_true(l3.of[i].sum.config == (0x0303c000000000acULL | masks[i] << 8));
		assert_true(l3.of[i].requests.config == (0x0303c000000000adULL | masks[i] << 8));
	}
	assert_int_equal(cpulist_count(&l3.cpus), 2);
	assert_true(cpulist_has(&l3.cpus, 8));
	/* older drivers have a mask of slices in its place */
	put_l3("config1:48-50\n");
	assert_int_equal(describe_l3(ZEN4_CAPS, &l3, &e), -ENODEV);
	assert_non_null(strstr(e.text, "sliceid"));
	put_l3("config:48-50\n");
	put_file(DEV "amd_l3/cpumask", "x\n");
	assert_int_equal(describe_l3(ZEN4_CAPS, &l3, &e), -EINVAL);
}

static void put_process(const char *pid, const char *comm, const char *target)
{
	char path[256];

	snprintf(path, sizeof(path), "/proc/%s/comm", pid);
	put_file(path, comm);
	snprintf(path, sizeof(path), "/proc/%s/fd/", pid);
	put_dir(path);
	snprintf(path, sizeof(path), "%s/proc/%s/fd/0", root, pid);
	assert_int_equal(symlink("/dev/null", path), 0);
	snprintf(path, sizeof(path), "%s/proc/%s/fd/7", root, pid);
	assert_int_equal(symlink(target, path), 0);
}

/* Who else may use the PMU. */
static void test_users(void **state)
{
	char text[256], small[16], pid[12];

	(void)state;
	assert_int_equal(perf_users(root, text, sizeof(text)), 0);
	assert_string_equal(text, "");
	put_process("12", "perf\n", "anon_inode:[perf_event]");
	put_process("13", "bash\n", "anon_inode:[eventpoll]");
	put_process("14", "cat\n", "anon_inode:[perf_event]x");
	put_file("/proc/stat", "");
	assert_int_equal(perf_users(root, text, sizeof(text)), 1);
	assert_string_equal(text, "perf (12)");
	put_process("15", "AMD\x1b[1m\n", "anon_inode:[perf_event]");
	assert_int_equal(perf_users(root, text, sizeof(text)), 2);
	assert_non_null(strstr(text, "perf (12)"));
	assert_non_null(strstr(text, "AMD\\x1b[1m (15)"));
	put_dir("/sys/module/damon_ibs/");
	for (int i = 20; i < 26; i++) {
		snprintf(pid, sizeof(pid), "%d", i);
		put_process(pid, "x\n", "anon_inode:[perf_event]");
	}
	assert_int_equal(perf_users(root, text, sizeof(text)), 9);
	assert_non_null(strstr(text, "DAMON (module damon_ibs), "));
	assert_non_null(strstr(text, ", 5 more"));
	perf_users(root, small, sizeof(small));
	assert_int_equal(strlen(small), sizeof(small) - 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(test_5_10),	      T(test_7_2),
		T(test_formats),      cmocka_unit_test(test_format_put),
		T(test_malformed),    T(test_unreadable),
		T(test_why_missing),  cmocka_unit_test(test_cpu),
		T(test_cgroup),	      T(test_cgroup_without_mountinfo),
		T(test_l3_latency),   T(test_users),
		T(test_no_directory),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
