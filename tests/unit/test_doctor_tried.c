// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* What doctor says of results of its probes: each check of what was tried, of made-up results. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/err.h"
#include "doctor/doctor_private.h"

#define CAP(n) (1ull << (n))

static struct doctor d;
static struct pmu op;

static int begin(void **state)
{
	(void)state;
	memset(&d, 0, sizeof(d));
	d.root = "/nowhere/at/all";
	d.probed = true;
	d.op = &op;
	d.p.cpu = 3;
	d.p.enabled_ns = d.p.running_ns = 1000;
	cpu_info_set(&d.cpu, "AuthenticAMD", 0x19, 0x11, 0xbff);
	return 0;
}

/* @why, @remedy: how they begin; "": nothing */
static void check(const char *id, enum doctor_status status, const char *value, const char *why,
		  const char *remedy)
{
	struct doctor_result r = {};
	const struct doctor_check *c = doctor_tried_checks;

	while (c->id && strcmp(c->id, id))
		c++;
	assert_non_null(c->id);
	c->fn(&d, &r);
	assert_int_equal(r.status, status);
	assert_string_equal(r.value, value);
	if (*why)
		r.why[strlen(why)] = 0;
	assert_string_equal(r.why, why);
	if (*remedy)
		r.remedy[strlen(remedy)] = 0;
	assert_string_equal(r.remedy, remedy);
}

static void test_good(void **state)
{
	(void)state;
	check("bpf_load", DOCTOR_OK, "yes", "", "");
	check("perf_open", DOCTOR_OK, "yes, on cpu3", "", "");
	check("attach", DOCTOR_OK, "yes", "", "");
	check("other_user", DOCTOR_OK, "none on cpu3", "", "");
	check("sim", DOCTOR_OK, "yes", "", "");
}

static void test_not_tried(void **state)
{
	static const char *const ids[] = { "bpf_load", "perf_open",   "attach", "other_user",
					   "physical", "core_events", "sim" };

	(void)state;
	d.probed = false;
	for (size_t i = 0; i < sizeof(ids) / sizeof(*ids); i++)
		check(ids[i], DOCTOR_INFO, "not tried", "", "");
}

static void test_load(void **state)
{
	static const char forbidden[] = "a seccomp filter or security module forbids bpf(): allow "
					"it for this container";

	(void)state;
	d.p.prog = -ENOSYS;
	check("bpf_load", DOCTOR_NO, "no",
	      "loading a program of two instructions: Function not implemented", "");
	/* without the capabilities, nothing else is to blame */
	d.p.prog = -EPERM;
	check("bpf_load", DOCTOR_NO, "no",
	      "loading a program of two instructions: Operation not permitted", "");
	d.cap_eff = CAP(CAP_SYS_ADMIN);
	check("bpf_load", DOCTOR_NO, "no", "loading a program of two instructions: ", forbidden);
	d.p.prog = -ENOSYS;
	check("bpf_load", DOCTOR_NO, "no", "loading a program of two instructions: ", "");
}

static void test_open(void **state)
{
	(void)state;
	d.p.open = -EACCES;
	check("perf_open", DOCTOR_NO, "no",
	      "no privilege: perf_event_open on a whole CPU needs CAP_PERFMON",
	      "run as root or with CAP_PERFMON (systemd: AmbientCapabilities=)");
	d.paranoid = 3;
	check("perf_open", DOCTOR_NO, "no",
	      "no privilege: perf_event_open on a whole CPU needs CAP_SYS_ADMIN while "
	      "perf_event_paranoid is above 2",
	      "run as root, or: sysctl kernel.perf_event_paranoid=2 and CAP_PERFMON");
	d.p.open = -EPERM;
	check("perf_open", DOCTOR_NO, "no",
	      "refused by a seccomp filter or a security module, common in containers",
	      "allow perf_event_open: give the container CAP_PERFMON");
	d.p.open = -EINVAL;
	check("perf_open", DOCTOR_NO, "no",
	      "the kernel's driver rejects a plain event (Invalid argument)",
	      "report this with the output of 'ibscope doctor --json'");
	d.p.open = -EOPNOTSUPP;
	check("perf_open", DOCTOR_NO, "no",
	      "the kernel's driver rejects a plain event (Operation not supported)",
	      "report this with the output of 'ibscope doctor --json'");
	d.p.open = -EMFILE;
	check("perf_open", DOCTOR_NO, "no", "perf_event_open on cpu3: Too many open files", "");
	d.op = NULL;
	check("perf_open", DOCTOR_NO, "no", "no usable ibs_op PMU", "");
}

static void test_attach(void **state)
{
	(void)state;
	d.p.attach = -EBUSY;
	check("attach", DOCTOR_NO, "no", "PERF_EVENT_IOC_SET_BPF: Device or resource busy", "");
	d.p.prog = -EPERM;
	check("attach", DOCTOR_NO, "no", "no program to attach", "");
	d.p.open = -EPERM;
	check("attach", DOCTOR_NO, "no", "no event to attach to", "");
	d.p.prog = 0;
	check("attach", DOCTOR_NO, "no", "no event to attach to", "");
}

/* An event that has its PMU for 98 % of the time is alone. */
static void test_other_user(void **state)
{
	(void)state;
	d.p.running_ns = 980;
	check("other_user", DOCTOR_OK, "none on cpu3", "", "");
	d.p.running_ns = 979;
	check("other_user", DOCTOR_WARN, "yes, on cpu3",
	      "a test event ran only 97 % of the time: another ibs_op user is active, and a CPU "
	      "has one IBS",
	      "");
	d.p.enabled_ns = 0;
	check("other_user", DOCTOR_WARN, "unknown",
	      "the event did not run on cpu3: it was never enabled",
	      "try again; report this if it persists");
	d.p.shared = -EIO;
	d.p.enabled_ns = 1000;
	check("other_user", DOCTOR_WARN, "unknown",
	      "the event did not run on cpu3: Input/output error",
	      "try again; report this if it persists");
	d.p.open = -EACCES;
	check("other_user", DOCTOR_INFO, "unknown: no event can be opened", "", "");
}

static void test_physical(void **state)
{
	(void)state;
	check("physical", DOCTOR_INFO, "unknown: no sample has one", "", "");
	d.p.phys = 10;
	d.p.phys_zero = 9;
	check("physical", DOCTOR_OK, "yes", "", "");
	d.p.phys_zero = 10;
	check("physical", DOCTOR_WARN, "read as 0",
	      "10 of 10 accesses are said to have one, and it is 0: nodes and pages of memory are "
	      "unknown",
	      "");
}

/* Each counter that can be opened is named; without those of ops, estimates lack them. */
static void test_core(void **state)
{
	struct doctor_result r = {};
	const struct doctor_check *c = doctor_tried_checks;

	(void)state;
	while (strcmp(c->id, "core_events"))
		c++;
	c->fn(&d, &r);
	assert_int_equal(r.status, DOCTOR_OK);
	assert_string_equal(r.why, "");
	assert_memory_equal(r.value, "cycles, retired ops, tagged ops, ", 33);
	for (int i = 0; i < CORE_EVENT_N; i++)
		d.p.core[i] = -ENOENT;
	check("core_events", DOCTOR_WARN, "no",
	      "the kernel has no counters for them: No such file or directory; estimated ops are "
	      "unknown with --plan hw",
	      "");
	d.p.core[CORE_EVENT_CYCLES] = 0;
	check("core_events", DOCTOR_WARN, "cycles", "the kernel has no counters", "");
	d.p.core[CORE_EVENT_RETIRED] = 0;
	check("core_events", DOCTOR_WARN, "cycles, tagged ops that retired",
	      "the kernel has no counters", "");
	/* those of ops and of retired tags suffice */
	d.p.core[CORE_EVENT_OPS] = 0;
	check("core_events", DOCTOR_OK, "cycles, retired ops, tagged ops that retired", "", "");
	d.p.core[CORE_EVENT_RETIRED] = -EACCES;
	check("core_events", DOCTOR_WARN, "cycles, retired ops", "no privilege: ", "run as root");
	d.p.core[CORE_EVENT_RETIRED] = -EPERM;
	check("core_events", DOCTOR_WARN, "cycles, retired ops", "refused by a seccomp filter",
	      "allow perf_event_open");
	cpu_info_set(&d.cpu, "GenuineIntel", 6, 1, 0);
	check("core_events", DOCTOR_INFO, "none known for this processor", "", "");
}

static void test_sim(void **state)
{
	(void)state;
	d.p.prog = -EPERM;
	check("sim", DOCTOR_NO, "no", "no BPF program can be loaded", "");
	d.p.sim = -EPERM;
	check("sim", DOCTOR_NO, "no", "refused by a seccomp filter", "allow perf_event_open");
	d.p.prog = 0;
	check("sim", DOCTOR_NO, "no", "refused by a seccomp filter", "allow perf_event_open");
}

/* --- the report --- */

static struct doctor_report *report(size_t n, const struct doctor_result *result)
{
	struct doctor_report *out = calloc(1, sizeof(*out) + n * sizeof(*result));

	assert_non_null(out);
	out->n = n;
	memcpy(out->result, result, n * sizeof(*result));
	return out;
}

static void check_print(const struct doctor_report *rep, unsigned int width, bool color,
			const char *want)
{
	char *text;
	size_t n;
	FILE *f = open_memstream(&text, &n);

	doctor_print(rep, f, width, color);
	fclose(f);
	assert_string_equal(text, want);
	free(text);
}

static void test_print(void **state)
{
	static const struct doctor_result results[] = {
		{ "a", "One", "first", DOCTOR_OK, "yes", "", "" },
		{ "b", "One", "second", DOCTOR_INFO, "2", "", "" },
		{ "c", "Two", "third", DOCTOR_WARN, "3", "because", "" },
		{ "d", "Two", "fourth", DOCTOR_NO, "no", "it is off", "turn it on" },
		{ "e", "Two", "fifth", DOCTOR_NO, "no", "same", "nothing" },
	};
	struct doctor_report *all = report(5, results), *good = report(2, results);

	(void)state;
	check_print(all, 100, false,
		    "One\n"
		    "  ok    first                   yes\n"
		    "  -     second                  2\n"
		    "\nTwo\n"
		    "  warn  third                   3\n"
		    "                           why: because\n"
		    "  NO    fourth                  no\n"
		    "                           why: it is off\n"
		    "                            do: turn it on\n"
		    "  NO    fifth                   no\n"
		    "                           why: same\n"
		    "                            do: nothing\n"
		    "\nIBS sampling does not work here (1 warning above).\n"
		    "First obstacle: fourth: it is off.\n"
		    "Do: turn it on.\n");
	all->can_simulate = true;
	all->result[1].status = DOCTOR_WARN;
	all->n = 3;
	check_print(all, 100, true,
		    "One\n"
		    "  \033[32mok  \033[0m  first                   yes\n"
		    "  \033[33mwarn\033[0m  second                  2\n"
		    "\nTwo\n"
		    "  \033[33mwarn\033[0m  third                   3\n"
		    "                           why: because\n"
		    "\nIBS sampling does not work here (2 warnings above).\n"
		    "--source sim works: it runs the same program on simulated samples.\n");
	good->can_sample = true;
	check_print(good, 100, true,
		    "One\n"
		    "  \033[32mok  \033[0m  first                   yes\n"
		    "  -     second                  2\n"
		    "\nIBS sampling works here.\n");
	/* lines are at least 60 columns wide: 28 are left of them for values */
	strcpy(good->result[0].value, "aaaaaaaaa bbbbbbbbb cccccccc d");
	good->n = 1;
	check_print(good, 10, false,
		    "One\n"
		    "  ok    first                   aaaaaaaaa bbbbbbbbb cccccccc\n"
		    "                                d\n"
		    "\nIBS sampling works here.\n");
	free(all);
	free(good);
}

/* Reasons and remedies are null where there are none. */
static void test_json(void **state)
{
	static const struct doctor_result results[] = {
		{ "a", "One", "first", DOCTOR_OK, "yes", "", "" },
		{ "b", "Two", "second", DOCTOR_NO, "no", "it is off", "turn it on" },
	};
	struct doctor_report *rep = report(2, results);
	struct err err;
	char *text;
	size_t n;
	FILE *f = open_memstream(&text, &n);

	(void)state;
	rep->can_simulate = true;
	assert_int_equal(doctor_print_json(rep, f, &err), 0);
	fclose(f);
	assert_string_equal(text, "{\n"
				  "  \"checks\": [\n"
				  "    {\n"
				  "      \"id\": \"a\",\n"
				  "      \"group\": \"One\",\n"
				  "      \"title\": \"first\",\n"
				  "      \"status\": \"ok\",\n"
				  "      \"value\": \"yes\",\n"
				  "      \"why\": null,\n"
				  "      \"remedy\": null\n"
				  "    },\n"
				  "    {\n"
				  "      \"id\": \"b\",\n"
				  "      \"group\": \"Two\",\n"
				  "      \"title\": \"second\",\n"
				  "      \"status\": \"no\",\n"
				  "      \"value\": \"no\",\n"
				  "      \"why\": \"it is off\",\n"
				  "      \"remedy\": \"turn it on\"\n"
				  "    }\n"
				  "  ],\n"
				  "  \"can_sample\": false,\n"
				  "  \"source_available\": {\n"
				  "    \"ibs\": false,\n"
				  "    \"sim\": true\n"
				  "  }\n"
				  "}\n");
	free(text);
	free(rep);
}

#define R(f) cmocka_unit_test_setup(f, begin)

int main(void)
{
	const struct CMUnitTest tests[] = {
		R(test_good),	R(test_not_tried),  R(test_load),     R(test_open),
		R(test_attach), R(test_other_user), R(test_physical), R(test_core),
		R(test_sim),	R(test_print),	    R(test_json),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
