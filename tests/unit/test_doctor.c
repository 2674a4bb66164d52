// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* The doctor's table: on fake machines of all kinds each complaint has a cause and a remedy. */
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

#include <jansson.h>

#include "event/cpu.h"
#include "doctor/doctor.h"
#include "base/err.h"
#include "ibs_tree.h"

#define ZEN2_CAPS 0x3ffu
#define ZEN4_CAPS 0xbffu
#define ZEN5_CAPS 0x1bffu
/* With every bit that Linux 7.2 knows. */
#define ZEN6_CAPS (0x9fbffu & ~IBS_CAPS_OPDATA4)

static struct doctor_report *run(const char *vendor, __u32 family, __u32 model, __u32 caps,
				 bool probes)
{
	struct cpu_info c;
	struct doctor_opts o = { .root = root, .cpu = &c, .no_probes = !probes };
	struct doctor_report *d = NULL;

	cpu_info_set(&c, vendor, family, model, caps);
	d = doctor_run(&o);
	return d;
}

/* What printing gives; a static buffer, since gcc 12 thinks that open_memstream()'s dangles. */
static char out[65536];

static json_t *as_json(const struct doctor_report *d)
{
	FILE *f = fmemopen(out, sizeof(out), "w");
	json_error_t je;
	struct err e;
	json_t *j;

	assert_int_equal(doctor_print_json(d, f, &e), 0);
	fclose(f);
	j = json_loads(out, JSON_REJECT_DUPLICATES, &je);
	if (!j)
		fail_msg("%s: %s", je.text, out);
	return j;
}

static char *as_text(const struct doctor_report *d, unsigned int width, bool color)
{
	FILE *f = fmemopen(out, sizeof(out), "w");

	doctor_print(d, f, width, color);
	fclose(f);
	return out;
}

static void check_json(const struct doctor_report *d)
{
	json_t *j = as_json(d), *list, *o;
	size_t i;

	list = json_object_get(j, "checks");
	assert_int_equal(json_array_size(list), d->n);
	json_array_foreach(list, i, o)
	{
		const struct doctor_result *r = &d->result[i];

		assert_string_equal(json_string_value(json_object_get(o, "id")), r->id);
		assert_string_equal(json_string_value(json_object_get(o, "status")),
				    doctor_status_names[r->status]);
		assert_string_equal(json_string_value(json_object_get(o, "value")), r->value);
		assert_true(json_is_null(json_object_get(o, "remedy")) == !*r->remedy);
		assert_true(json_is_null(json_object_get(o, "why")) == !*r->why);
	}
	assert_true(json_is_true(json_object_get(j, "can_sample")) == d->can_sample);
	o = json_object_get(j, "source_available");
	assert_true(json_is_true(json_object_get(o, "ibs")) == d->can_sample);
	assert_true(json_is_true(json_object_get(o, "sim")) == d->can_simulate);
	json_decref(j);
}

static void check_text(const struct doctor_report *d)
{
	char *text = as_text(d, 80, false), *line, *save;

	assert_null(strchr(text, '\033'));
	assert_non_null(strstr(text, d->can_sample ? "IBS sampling works" : "does not work"));
	for (line = strtok_r(text, "\n", &save); line; line = strtok_r(NULL, "\n", &save)) {
		if (*line == ' ' && strlen(line) > 80 && strchr(line + 32, ' ')) /* not one word */
			fail_msg("wider than 80: %s", line);
		assert_true(line[strlen(line) - 1] != ' ');
	}
	text = as_text(d, 0, true);
	assert_non_null(strstr(text, "\033[0m"));
}

/* Rules of the table; then both outputs. */
static void check_all(struct doctor_report *d)
{
	size_t i, k;

	assert_true(d->n >= 25);
	for (i = 0; i < d->n; i++) {
		const struct doctor_result *r = &d->result[i];
		bool bad = r->status >= DOCTOR_WARN;

		if (!*r->value || !*r->title || !*r->group)
			fail_msg("%s: incomplete", r->id);
		if (bad && (!*r->why || !*r->remedy))
			fail_msg("%s: %s without cause or remedy", r->id,
				 doctor_status_names[r->status]);
		if (!bad && *r->remedy)
			fail_msg("%s: a remedy for nothing", r->id);
		if (strpbrk(r->value, "\n\033") || strpbrk(r->why, "\n\033") ||
		    strpbrk(r->remedy, "\n\033"))
			fail_msg("%s: not one line", r->id);
		for (k = 0; k < i; k++)
			assert_string_not_equal(d->result[k].id, r->id);
		assert_ptr_equal(doctor_find(d, r->id), r);
	}
	assert_null(doctor_find(d, "no such check"));
	check_json(d);
	check_text(d);
	free(d);
}

static enum doctor_status status(const struct doctor_report *d, const char *id)
{
	assert_non_null(doctor_find(d, id));
	return doctor_find(d, id)->status;
}

static void put_machine(void)
{
	put_file("/proc/sys/kernel/osrelease", "6.1.0-56-amd64\n");
	put_file("/proc/sys/kernel/perf_event_paranoid", "3\n");
	put_file("/proc/sys/kernel/unprivileged_bpf_disabled", "2\n");
	put_file("/proc/sys/kernel/perf_cpu_time_max_percent", "25\n");
	put_file("/proc/self/status", "Name:\tx\nCapEff:\t000001ffffffffff\nSeccomp:\t0\n");
	put_file("/proc/self/mountinfo", "31 25 0:30 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n"
					 "32 25 0:31 / /sys/fs/bpf rw - bpf bpf rw\n");
	put_file("/sys/kernel/security/lockdown", "none [integrity] confidentiality\n");
}

static void test_good(void **state)
{
	struct doctor_report *d;

	(void)state;
	put_pmus(V6_1, ZEN4_CAPS);
	put_machine();
	d = run("AuthenticAMD", 0x19, 0x11, ZEN4_CAPS, false);
	assert_int_equal(status(d, "cpu"), DOCTOR_OK);
	assert_int_equal(status(d, "pmu_ibs_op"), DOCTOR_OK);
	assert_int_equal(status(d, "pmu_ibs_fetch"), DOCTOR_OK);
	assert_int_equal(status(d, "hw_filters"), DOCTOR_OK);
	assert_int_equal(status(d, "paranoid"), DOCTOR_OK);
	assert_int_equal(status(d, "privileges"), DOCTOR_OK);
	assert_int_equal(status(d, "lockdown"), DOCTOR_OK);
	assert_int_equal(status(d, "cgroup"), DOCTOR_OK);
	assert_int_equal(status(d, "bpffs"), DOCTOR_OK);
	assert_int_equal(status(d, "names"), DOCTOR_INFO);
	assert_int_equal(status(d, "nested_names"), DOCTOR_OK);
	assert_int_equal(status(d, "btf"), DOCTOR_NO);
	assert_string_equal(doctor_find(d, "perf_open")->value, "not tried");
	assert_false(d->can_sample); /* what was not tried is not promised */
	assert_false(d->can_simulate);
	check_all(d);
}

static void test_all_caps(void **state)
{
	__u32 words[] = { 0x7,	     0x1f,	ZEN2_CAPS,  ZEN4_CAPS,
			  ZEN5_CAPS, ZEN6_CAPS, 0xffffffff, 0x80000000 };
	__u32 models[][2] = { { 0x10, 2 },    { 0x17, 0x31 }, { 0x19, 0x01 },
			      { 0x1a, 0x02 }, { 0x1a, 0x50 }, { 0xff, 0xff } };
	size_t i, k;

	(void)state;
	put_machine();
	for (i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
		put_pmus(i % 3, words[i]);
		for (k = 0; k < sizeof(models) / sizeof(models[0]); k++)
			check_all(run("AuthenticAMD", models[k][0], models[k][1], words[i], false));
	}
}

static void test_kernel_behind_processor(void **state)
{
	struct doctor_report *d;

	(void)state;
	put_machine();
	put_pmus(V6_1, ZEN6_CAPS);
	d = run("AuthenticAMD", 0x1a, 0x50, ZEN6_CAPS, false);
	assert_int_equal(status(d, "hw_filters"), DOCTOR_WARN);
	assert_non_null(strstr(doctor_find(d, "hw_filters")->why, "ldlat"));
	check_all(d);
}

/* IBS in a guest: what its registers lack. */
static void test_guest(void **state)
{
	struct cpu_info c;
	struct doctor_opts o = { .root = root, .cpu = &c, .no_probes = true };
	struct doctor_report *d;

	(void)state;
	put_machine();
	put_pmus(V6_1, ZEN4_CAPS);
	cpu_info_set(&c, "AuthenticAMD", 0x19, 0x11, ZEN4_CAPS);
	c.hypervisor = true;
	strcpy(c.hypervisor_name, "KVM");
	d = doctor_run(&o);
	assert_int_equal(status(d, "hypervisor"), DOCTOR_INFO);
	assert_non_null(strstr(doctor_find(d, "hypervisor")->why, "physical address as 0"));
	check_all(d);
}

static void test_nothing(void **state)
{
	struct doctor_report *d;

	(void)state;
	d = run("AuthenticAMD", 0x19, 0x11, ZEN4_CAPS, false); /* an empty file system */
	assert_int_equal(status(d, "pmu_ibs_op"), DOCTOR_NO);
	assert_non_null(strstr(doctor_find(d, "pmu_ibs_op")->why, "mount sysfs"));
	check_all(d);
	check_all(run("GenuineIntel", 6, 0x8f, 0, false));
	check_all(run("", 0, 0, 0, false));
	put_file(DEV "software/type", "1\n");
	d = run("AuthenticAMD", 0x19, 0x11, ZEN4_CAPS, false);
	assert_non_null(strstr(doctor_find(d, "pmu_ibs_op")->why, "BIOS"));
	check_all(d);
	check_all(run("AuthenticAMD", 0x19, 0x11, 0, false));
}

static void test_garbage(void **state)
{
	static const char *const paths[] = {
		"/proc/sys/kernel/osrelease",
		"/proc/sys/kernel/perf_event_paranoid",
		"/proc/sys/kernel/unprivileged_bpf_disabled",
		"/proc/sys/kernel/perf_cpu_time_max_percent",
		"/proc/sys/kernel/perf_event_max_sample_rate",
		"/proc/self/status",
		"/proc/self/mountinfo",
		"/sys/kernel/security/lockdown",
		"/sys/kernel/btf/vmlinux",
		DEV "ibs_op/type",
		DEV "ibs_fetch/format/rand_en",
	};
	static const char *const texts[] = { "",
					     "\n",
					     "x",
					     "-9223372036854775809",
					     "99999999999",
					     "\033[31m\xff",
					     "CapEff: zzzz",
					     " - bpf ",
					     " - cgroup2 \\377\\040",
					     "-1" };
	size_t i, k;

	(void)state;
	put_machine();
	put_pmus(V7_2, ZEN5_CAPS);
	for (i = 0; i < sizeof(paths) / sizeof(paths[0]); i++) {
		for (k = 0; k < sizeof(texts) / sizeof(texts[0]); k++) {
			put_file(paths[i], texts[k]);
			check_all(run("AuthenticAMD", 0x1a, 0x02, ZEN5_CAPS, false));
		}
	}
}

static void test_limits(void **state)
{
	struct doctor_report *d;

	(void)state;
	put_machine();
	put_pmus(V7_2, ZEN5_CAPS);
	put_file("/proc/sys/kernel/perf_event_max_sample_rate", "25000\n");
	put_file("/proc/sys/kernel/perf_cpu_time_max_percent", "1\n");
	put_file("/sys/kernel/security/lockdown", "none integrity [confidentiality]\n");
	put_file("/proc/self/status", "CapEff:\t000000c000000000\n"); /* CAP_PERFMON, CAP_BPF */
	put_file("/proc/self/mountinfo",
		 "30 25 0:29 / /sys/fs/cgroup/cpu rw - cgroup cgroup rw,cpu\n");
	d = run("AuthenticAMD", 0x1a, 0x02, ZEN5_CAPS, false);
	assert_int_equal(status(d, "max_sample_rate"), DOCTOR_WARN);
	assert_int_equal(status(d, "cpu_time"), DOCTOR_WARN);
	assert_int_equal(status(d, "lockdown"), DOCTOR_NO);
	assert_int_equal(status(d, "privileges"), DOCTOR_OK);
	assert_int_equal(status(d, "paranoid"), DOCTOR_NO); /* level 3 */
	assert_int_equal(status(d, "cgroup"), DOCTOR_WARN);
	assert_int_equal(status(d, "bpffs"), DOCTOR_WARN);
	check_all(d);
	put_file("/proc/sys/kernel/perf_event_paranoid", "2\n");
	d = run("AuthenticAMD", 0x1a, 0x02, ZEN5_CAPS, false);
	assert_int_equal(status(d, "paranoid"), DOCTOR_OK);
	check_all(d);
	put_file("/proc/self/status", "CapEff:\t0000000000000000\n");
	d = run("AuthenticAMD", 0x1a, 0x02, ZEN5_CAPS, false);
	assert_int_equal(status(d, "privileges"), DOCTOR_NO);
	assert_int_equal(status(d, "paranoid"), DOCTOR_NO);
	check_all(d);
}

/* What names inside containers take, and what else lacks the capability. */
static void test_nested_names(void **state)
{
	static const struct {
		const char *caps, *value;
		bool service;
	} rows[] = {
		{ "0", "not readable without CAP_SYS_PTRACE and CAP_SYS_CHROOT", true },
		{ "40000", "not readable without CAP_SYS_PTRACE", true },
		{ "80000", "not readable without CAP_SYS_CHROOT", false },
	};
	struct doctor_report *d;
	char text[64];

	(void)state;
	put_machine();
	put_pmus(V7_2, ZEN5_CAPS);
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		snprintf(text, sizeof(text), "CapEff:\t%s\n", rows[i].caps);
		put_file("/proc/self/status", text);
		d = run("AuthenticAMD", 0x1a, 0x02, ZEN5_CAPS, false);
		assert_int_equal(status(d, "nested_names"), DOCTOR_INFO);
		assert_string_equal(doctor_find(d, "nested_names")->value, rows[i].value);
		assert_int_equal(!!strstr(doctor_find(d, "nested_names")->why, "service"),
				 rows[i].service);
		check_all(d);
	}
}

/* On whatever runs this test, with whatever rights. */
static void test_this_machine(void **state)
{
	struct doctor_report *d = NULL;

	(void)state;
	d = doctor_run(NULL);
	if (d->can_sample)
		assert_int_equal(status(d, "perf_open"), DOCTOR_OK);
	check_all(d);
	check_all(run("AuthenticAMD", 0x19, 0x11, ZEN4_CAPS, true));
}

#define T(f) cmocka_unit_test_setup_teardown(f, new_root, remove_root)

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(test_good),	T(test_all_caps),     T(test_kernel_behind_processor),
		T(test_guest),	T(test_nothing),      T(test_garbage),
		T(test_limits), T(test_nested_names), T(test_this_machine),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
