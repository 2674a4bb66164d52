// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* What doctor says of processor, kernel and privileges: each check of what it reads, of made-up machines. */
#include <errno.h>
#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/array.h"
#include "doctor/doctor_private.h"
#include "tree.h"

#define CAP(n) (1ull << (n))
#define SYS    "/proc/sys/kernel/"

static struct doctor d;

static int begin(void **state)
{
	memset(&d, 0, sizeof(d));
	d.root = root;
	cpu_info_set(&d.cpu, "AuthenticAMD", 0x19, 0x11, 0xbff);
	return new_root(state);
}

static struct doctor_result run(const struct doctor_check *c, const char *id)
{
	struct doctor_result r = {};

	while (c->id && strcmp(c->id, id))
		c++;
	assert_non_null(c->id);
	r.title = c->title;
	c->fn(&d, &r);
	return r;
}

static void same(const struct doctor_result *r, enum doctor_status status, const char *value,
		 const char *why, const char *remedy)
{
	assert_string_equal(r->value, value);
	assert_int_equal(r->status, status);
	assert_string_equal(r->why, why);
	assert_string_equal(r->remedy, remedy);
}

/* "" as @why and @remedy: none of its own */
static void check(const char *id, enum doctor_status status, const char *value, const char *why,
		  const char *remedy)
{
	const struct doctor_result r = run(doctor_kernel_checks, id);

	same(&r, status, value, why, remedy);
}

static void check_hw(const char *id, enum doctor_status status, const char *value, const char *why,
		     const char *remedy)
{
	const struct doctor_result r = run(doctor_hw_checks, id);

	same(&r, status, value, why, remedy);
}

/* --- kernel --- */

static void test_kernel(void **state)
{
	static const char unread[] = SYS "osrelease cannot be read";

	(void)state;
	check("kernel", DOCTOR_WARN, "unknown", unread, "");
	put_file(SYS "osrelease", "\n");
	check("kernel", DOCTOR_WARN, "unknown", unread, "");
	put_file(SYS "osrelease", "6.12.1\n");
	check("kernel", DOCTOR_INFO, "6.12.1", "", "");
}

static void test_btf(void **state)
{
	(void)state;
	err_set(&d.btf_err, -ENOENT, "no types; use another kernel");
	check("btf", DOCTOR_NO, "no", "the BPF program cannot be fitted to it: no types", "");
	check("registers", DOCTOR_INFO, "unknown without BTF", "", "");
	d.btf = true;
	check("btf", DOCTOR_OK, "/sys/kernel/btf/vmlinux", "", "");
	check("registers", DOCTOR_INFO, "probe reads",
	      "the kernel lacks bpf_cast_to_kern_ctx, bpf_rdonly_cast (Linux 6.2) or the type "
	      "perf_ibs_data; a sample costs about 350 more instructions",
	      "");
	d.btf_direct = true;
	check("registers", DOCTOR_OK, "direct register reads", "", "");
}

static void test_links(void **state)
{
	(void)state;
	check("perf_link", DOCTOR_INFO, "not tried", "", "");
	d.probed = true;
	check("perf_link", DOCTOR_INFO, "unknown: no program can be loaded", "", "");
	d.p.features_known = true;
	check("perf_link", DOCTOR_WARN, "no",
	      "events cannot be pinned: sampling ends with the process (perf links need Linux "
	      "5.15)",
	      "");
	d.p.features.perf_link = true;
	check("perf_link", DOCTOR_OK, "yes", "", "");
}

/* --- privileges --- */

static void privileges(__u64 caps, enum doctor_status status, const char *names,
		       const char *missing)
{
	char value[128], why[128] = "";

	d.cap_eff = caps;
	snprintf(value, sizeof(value), "uid %u:%s", geteuid(), names);
	if (*missing)
		snprintf(why, sizeof(why),
			 "sampling BPF programs need CAP_BPF and CAP_PERFMON; %s missing", missing);
	check("privileges", status, value, why, "");
}

static void test_privileges(void **state)
{
	struct doctor_result r;

	(void)state;
	privileges(0, DOCTOR_NO, " no capabilities", "both are");
	privileges(CAP(CAP_SYS_RESOURCE), DOCTOR_NO, " CAP_SYS_RESOURCE", "both are");
	privileges(CAP(CAP_BPF), DOCTOR_NO, " CAP_BPF", "CAP_PERFMON is");
	privileges(CAP(CAP_PERFMON), DOCTOR_NO, " CAP_PERFMON", "CAP_BPF is");
	privileges(CAP(CAP_BPF) | CAP(CAP_PERFMON), DOCTOR_OK, " CAP_BPF CAP_PERFMON", "");
	privileges(CAP(CAP_SYS_ADMIN), DOCTOR_OK, " CAP_SYS_ADMIN", "");
	privileges(CAP(CAP_SYS_ADMIN) | CAP(CAP_BPF), DOCTOR_OK, " CAP_BPF CAP_SYS_ADMIN", "");
	d.cap_eff = 0;
	d.paranoid = 2;
	privileges(0, DOCTOR_NO, " no capabilities", "both are");
	d.paranoid = 3;
	r = run(doctor_kernel_checks, "privileges");
	assert_string_equal(r.remedy,
			    "run as root; or setcap cap_bpf,cap_perfmon+ep ibscope and, for this "
			    "distribution's kernel, sysctl kernel.perf_event_paranoid=2");
}

static void test_paranoid(void **state)
{
	static const char above[] = "above 0 sampling whole CPUs requires CAP_PERFMON",
			  patched[] = "above 2 this distribution's kernel requires CAP_SYS_ADMIN; "
				      "CAP_PERFMON is not enough",
			  remedy[] = "run with CAP_SYS_ADMIN, or: sysctl "
				     "kernel.perf_event_paranoid=2";

	(void)state;
	d.paranoid = -2;
	check("paranoid", DOCTOR_WARN, "unknown",
	      PARANOID " cannot be read: proc is not mounted, or the kernel has no perf events",
	      "mount proc; use a kernel with CONFIG_PERF_EVENTS");
	d.paranoid = -1;
	check("paranoid", DOCTOR_OK, "-1", "", "");
	d.paranoid = 0;
	check("paranoid", DOCTOR_OK, "0", "", "");
	d.paranoid = 1;
	check("paranoid", DOCTOR_NO, "1", above, "");
	d.paranoid = 2;
	check("paranoid", DOCTOR_NO, "2", above, "");
	d.paranoid = 3;
	check("paranoid", DOCTOR_NO, "3", patched, remedy);
	d.cap_eff = CAP(CAP_PERFMON);
	check("paranoid", DOCTOR_NO, "3", patched, remedy);
	d.paranoid = 2;
	check("paranoid", DOCTOR_OK, "2", "", "");
	d.cap_eff = CAP(CAP_SYS_ADMIN);
	d.paranoid = 3;
	check("paranoid", DOCTOR_OK, "3", "", "");
	/* the event was opened all the same */
	d.cap_eff = 0;
	d.probed = true;
	check("paranoid", DOCTOR_WARN, "3", patched, remedy);
	d.p.sim = -EPERM;
	check("paranoid", DOCTOR_WARN, "3", patched, remedy);
	d.p.sim = -EACCES;
	check("paranoid", DOCTOR_NO, "3", patched, remedy);
}

static void test_pid_namespace(void **state)
{
	(void)state;
	check("pid_namespace", DOCTOR_OK, "the initial one", "", "");
	put_file("/proc/self/ns/pid", "");
	check("pid_namespace", DOCTOR_WARN, "another one",
	      "processes of other namespaces, such as the host's, are sampled, but have pid 0 and "
	      "no names or mappings",
	      "");
}

static void test_unprivileged(void **state)
{
	static const char *const values[] = { "0 (allowed)", "1 (forbidden until reboot)",
					      "2 (forbidden)", "3 (?)" };
	char text[8];

	(void)state;
	check("unprivileged_bpf", DOCTOR_INFO,
	      "unknown: " SYS "unprivileged_bpf_disabled cannot be read", "", "");
	for (size_t i = 0; i < ARRAY_SIZE(values); i++) {
		snprintf(text, sizeof(text), "%zu\n", i);
		put_file(SYS "unprivileged_bpf_disabled", text);
		check("unprivileged_bpf", DOCTOR_INFO, values[i], "", "");
	}
	put_file(SYS "unprivileged_bpf_disabled", "-1\n");
	check("unprivileged_bpf", DOCTOR_INFO, "-1 (?)", "", "");
}

static void test_readers(void **state)
{
	(void)state;
	check("map_readers", DOCTOR_INFO, "not tried", "", "");
	d.probed = true;
	check("map_readers", DOCTOR_OK, "any process that can open the pinned file", "", "");
	d.p.reader = -EPERM;
	check("map_readers", DOCTOR_WARN, "privileged processes only",
	      "bpf() requires CAP_BPF on this kernel, for ibscope-exporter too (from Linux 5.19 on "
	      "file modes decide)",
	      "");
	d.p.reader = -ENOSYS;
	check("map_readers", DOCTOR_INFO, "unknown: Function not implemented", "", "");
	d.p.reader = -255;
	check("map_readers", DOCTOR_INFO, "unknown: cannot fork", "", "");
}

/* What a program showed decides, else what the kernel says of itself. */
static void test_lockdown(void **state)
{
	static const char refused[] = "the kernel refuses programs that read kernel memory "
				      "(bpf_probe_read_kernel), as ours does",
			  unreported[] = "not reported (no lockdown, or no securityfs)";
	char path[128];

	(void)state;
	check("lockdown", DOCTOR_INFO, unreported, "", "");
	put_file("/sys/kernel/security/lockdown", "[none] integrity confidentiality\n");
	check("lockdown", DOCTOR_OK, "none", "", "");
	put_file("/sys/kernel/security/lockdown", "none [integrity] confidentiality\n");
	check("lockdown", DOCTOR_OK, "integrity", "", "");
	d.p.features_known = true;
	check("lockdown", DOCTOR_NO, "integrity", refused, "");
	d.p.features.probe_read = true;
	check("lockdown", DOCTOR_OK, "integrity", "", "");
	put_file("/sys/kernel/security/lockdown", "none integrity [confidentiality]\n");
	check("lockdown", DOCTOR_OK, "confidentiality", "", "");
	d.p.features_known = false;
	check("lockdown", DOCTOR_NO, "confidentiality", refused, "");
	snprintf(path, sizeof(path), "%s/sys/kernel/security/lockdown", root);
	assert_int_equal(unlink(path), 0);
	d.p.features_known = true;
	d.p.features.probe_read = false;
	check("lockdown", DOCTOR_NO, unreported, refused, "");
}

/* --- limits --- */

static void test_memlock(void **state)
{
	(void)state;
	check("memlock", DOCTOR_INFO, "not tried", "", "");
	d.probed = true;
	d.p.memlock = (struct rlimit){ 8 << 20, 8 << 20 };
	check("memlock", DOCTOR_INFO, "8,192 KiB; unknown whether BPF maps count against it", "",
	      "");
	d.p.features_known = true;
	check("memlock", DOCTOR_WARN, "8,192 KiB",
	      "BPF maps count against it (before Linux 5.11), and raising it requires "
	      "CAP_SYS_RESOURCE",
	      "");
	d.p.memlock.rlim_max = RLIM_INFINITY;
	check("memlock", DOCTOR_OK,
	      "8,192 KiB; BPF maps count against it, and it is raised when needed", "", "");
	d.p.memlock.rlim_max = 8 << 20;
	d.cap_eff = CAP(CAP_SYS_RESOURCE);
	check("memlock", DOCTOR_OK,
	      "8,192 KiB; BPF maps count against it, and it is raised when needed", "", "");
	d.cap_eff = 0;
	d.p.features.memcg_charge = true;
	check("memlock", DOCTOR_OK, "8,192 KiB; irrelevant: BPF memory is charged to the cgroup",
	      "", "");
	d.p.memlock.rlim_cur = RLIM_INFINITY;
	check("memlock", DOCTOR_OK, "unlimited; irrelevant: BPF memory is charged to the cgroup",
	      "", "");
}

/* A rate that the kernel has lowered; with a limit of 0 or 100 % it takes no other. */
static void test_sample_rate(void **state)
{
	static const char lowered[] = "below the default 100,000: the kernel lowers it after slow "
				      "interrupts and never raises it again; samples above this "
				      "rate are lost",
			  both[] = "sysctl kernel.perf_cpu_time_max_percent=25, then sysctl "
				   "kernel.perf_event_max_sample_rate=100000";
	static const struct {
		const char *percent;
		bool both;
	} rows[] = { { "25\n", false },
		     { "0\n", true },
		     { "1\n", false },
		     { "100\n", true },
		     { "99\n", false } };

	(void)state;
	check("max_sample_rate", DOCTOR_WARN, "unknown",
	      SYS "perf_event_max_sample_rate cannot be read: proc is not mounted, or the kernel "
		  "has no perf events",
	      "");
	put_file(SYS "perf_event_max_sample_rate", "100000\n");
	check("max_sample_rate", DOCTOR_OK, "100,000 Hz", "", "");
	put_file(SYS "perf_event_max_sample_rate", "99999\n");
	check("max_sample_rate", DOCTOR_WARN, "99,999 Hz", lowered, "");
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		put_file(SYS "perf_cpu_time_max_percent", rows[i].percent);
		check("max_sample_rate", DOCTOR_WARN, "99,999 Hz", lowered,
		      rows[i].both ? both : "");
	}
}

static void test_cpu_time(void **state)
{
	static const struct {
		const char *text;
		enum doctor_status status;
		const char *value;
	} rows[] = {
		{ "0\n", DOCTOR_INFO, "0 % (the kernel never lowers the sample rate)" },
		{ "100\n", DOCTOR_INFO, "100 % (the kernel never lowers the sample rate)" },
		{ "1\n", DOCTOR_WARN, "1 %" },
		{ "4\n", DOCTOR_WARN, "4 %" },
		{ "5\n", DOCTOR_OK, "5 %" },
		{ "25\n", DOCTOR_OK, "25 %" },
		{ "99\n", DOCTOR_OK, "99 %" },
	};

	(void)state;
	check("cpu_time", DOCTOR_INFO, "unknown: " SYS "perf_cpu_time_max_percent cannot be read",
	      "", "");
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		put_file(SYS "perf_cpu_time_max_percent", rows[i].text);
		check("cpu_time", rows[i].status, rows[i].value,
		      rows[i].status == DOCTOR_WARN
			      ? "the kernel may lower perf_event_max_sample_rate after interrupts "
				"that are not slow"
			      : "",
		      "");
	}
}

/* --- hardware --- */

static void test_cpu(void **state)
{
	(void)state;
	d.cpu = (struct cpu_info){ .amd = true, .family = 0x19, .model = 0x11, .stepping = 2 };
	strcpy(d.cpu.vendor, "AuthenticAMD");
	check_hw("cpu", DOCTOR_OK, "AuthenticAMD, family 19h model 11h stepping 2 (Zen 4)", "", "");
	strcpy(d.cpu.name, "AMD EPYC");
	check_hw("cpu", DOCTOR_OK, "AMD EPYC, family 19h model 11h stepping 2 (Zen 4)", "", "");
	d.cpu = (struct cpu_info){ .family = 6, .model = 0x8f };
	check_hw("cpu", DOCTOR_NO, "unknown, family 6h model 8fh stepping 0",
		 "only AMD (family 10h and later) and Hygon processors have IBS", "");
}

static void test_hypervisor(void **state)
{
	static const char zero[] = "a guest may read every physical address as 0: see 'physical "
				   "addresses' below";

	(void)state;
	d.cpu.hypervisor = false;
	check_hw("hypervisor", DOCTOR_OK, "no", "", "");
	d.cpu.hypervisor = true;
	strcpy(d.cpu.hypervisor_name, "KVM");
	d.cpu.ibs = true;
	check_hw("hypervisor", DOCTOR_INFO, "KVM, exposes IBS to its guest", zero, "");
	d.cpu.ibs = false;
	check_hw("hypervisor", DOCTOR_WARN, "KVM", "it does not expose IBS to its guest", "");
	d.cpu.amd = false;
	check_hw("hypervisor", DOCTOR_INFO, "KVM", "", "");
}

static void test_capabilities(void **state)
{
	struct doctor_result r;

	(void)state;
	d.cpu.ibs = false;
	check_hw("ibs_caps", DOCTOR_INFO, "none", "", "");
	r = run(doctor_hw_checks, "ibs_cpuid");
	assert_int_equal(r.status, DOCTOR_NO);
	assert_string_equal(r.value, "no");
	assert_true(*r.why && *r.remedy);
	d.cpu.ibs = true;
	check_hw("ibs_cpuid", DOCTOR_OK, "yes", "", "");
	d.cpu.caps = 0xffffffff & ~IBS_CAPS_ZEN4;
	r = run(doctor_hw_checks, "ibs_caps");
	assert_int_equal(r.status, DOCTOR_OK);
	assert_memory_equal(r.value, "0xfffff7ff: ", 12);
	assert_null(strstr(strstr(r.value, "; lacks ") + 8, "lacks"));
	assert_memory_equal(strstr(r.value, "; lacks "), "; lacks ZEN4 (L3 miss filter, ", 30);
	assert_non_null(strstr(r.value, "; unknown: 0xfff60000"));
	d.cpu.caps = 0xff;
	r = run(doctor_hw_checks, "ibs_caps");
	assert_null(strstr(r.value, "unknown"));
}

static void test_quirks(void **state)
{
	struct doctor_result r;

	(void)state;
	d.cpu.quirks = 0;
	check_hw("quirks", DOCTOR_OK, "none", "", "");
	d.cpu.quirks = ~0u;
	r = run(doctor_hw_checks, "quirks");
	assert_int_equal(r.status, DOCTOR_INFO);
	assert_non_null(strstr(r.value, "; "));
	assert_int_not_equal(*r.value, ';');
}

/* Each quirk once, with what it does and who knows. */
static void test_quirk(void **state)
{
	(void)state;
	d.cpu.quirks = IBS_QUIRK_FETCH_1238;
	check_hw("quirks", DOCTOR_INFO,
		 "erratum 1238: IbsIcMiss of fetch samples is not valid (decode)", "", "");
	d.cpu.quirks = IBS_QUIRK_FETCH_1197 | IBS_QUIRK_FETCH_1238;
	check_hw("quirks", DOCTOR_INFO,
		 "erratum 1197: fetch samples after CC6 carry no address (kernel drops them); "
		 "erratum 1238: IbsIcMiss of fetch samples is not valid (decode)",
		 "", "");
}

/* --- PMUs --- */

/* @terms and @caps: words with blanks between them */
static void make_pmu(struct pmu *p, const char *name, const char *terms, const char *caps)
{
	char text[256], *rest = text, *word;

	*p = (struct pmu){ .type = 11 };
	snprintf(p->name, sizeof(p->name), "%s", name);
	snprintf(text, sizeof(text), "%s", terms);
	while ((word = strsep(&rest, " ")))
		if (*word)
			snprintf(p->formats[p->n_formats++].name, sizeof(p->formats[0].name), "%s",
				 word);
	rest = strcpy(text, caps);
	while ((word = strsep(&rest, " ")))
		if (*word)
			snprintf(p->caps[p->n_caps++], sizeof(p->caps[0]), "%s", word);
}

static void test_pmu(void **state)
{
	struct pmu op, fetch;

	(void)state;
	make_pmu(&op, "ibs_op", "cnt_ctl ldlat", "ldlat zen4_ibs_extensions");
	make_pmu(&fetch, "ibs_fetch", "", "");
	d.op = &op;
	d.fetch = &fetch;
	check_hw("pmu_ibs_op", DOCTOR_OK,
		 "type 11; terms cnt_ctl ldlat; caps ldlat zen4_ibs_extensions", "", "");
	check_hw("pmu_ibs_fetch", DOCTOR_OK, "type 11; terms none; caps none", "", "");
}

/* Without ibs_fetch the rest works. */
static void test_no_pmu(void **state)
{
	static const char why[] = "the processor has IBS, but the kernel's driver did not start, "
				  "usually because the BIOS assigned no interrupt (EILVT)",
			  dmesg[] = "see dmesg | grep -iE 'ibs|firmware bug', then enable IBS in "
				    "the BIOS setup or update the BIOS";
	struct pmu op;

	(void)state;
	make_pmu(&op, "ibs_op", "", "");
	err_set(&d.op_err, 0, "no ibs_op PMU: for a reason");
	err_set(&d.fetch_err, 0, "no ibs_fetch PMU: for a reason");
	d.cpu.ibs = true;
	check_hw("pmu_ibs_op", DOCTOR_NO, "no", why, dmesg);
	check_hw("pmu_ibs_fetch", DOCTOR_NO, "no", why, dmesg);
	d.op = &op;
	check_hw("pmu_ibs_fetch", DOCTOR_WARN, "no", why, dmesg);
	d.op = NULL;
	d.cpu.ibs = false;
	check_hw("pmu_ibs_op", DOCTOR_NO, "no", "the processor has no IBS (see above)",
		 "enable IBS in the BIOS setup");
	/* there is one, which cannot be read */
	err_set(&d.op_err, 0, "/sys/x: not a number");
	err_set(&d.fetch_err, 0, "/sys/y: not a number");
	check_hw("pmu_ibs_op", DOCTOR_NO, "no", "/sys/x: not a number",
		 "make /sys/bus/event_source/devices/ibs_op readable; if it is already, report "
		 "this with its contents");
	check_hw("pmu_ibs_fetch", DOCTOR_NO, "no", "/sys/y: not a number",
		 "make /sys/bus/event_source/devices/ibs_fetch readable; if it is already, report "
		 "this with its contents");
}

#define UNUSED "supported by the processor but not by this kernel's driver: "

/* The terms that filter, of those that both the processor and the kernel have, and what the kernel lacks. */
static void test_filters(void **state)
{
	struct pmu op, fetch;

	(void)state;
	check_hw("hw_filters", DOCTOR_INFO, "none", "", "");
	make_pmu(&op, "ibs_op", "cnt_ctl l3missonly other", "");
	make_pmu(&fetch, "ibs_fetch", "l3missonly rand_en swfilt", "");
	d.op = &op;
	d.cpu.caps = IBS_CAPS_OPCNT | IBS_CAPS_ZEN4;
	check_hw("hw_filters", DOCTOR_OK, "ibs_op: cnt_ctl l3missonly", "", "");
	d.fetch = &fetch;
	check_hw("hw_filters", DOCTOR_OK,
		 "ibs_op: cnt_ctl l3missonly; ibs_fetch: rand_en l3missonly swfilt", "", "");
	d.op = NULL;
	check_hw("hw_filters", DOCTOR_OK, "ibs_fetch: rand_en l3missonly swfilt", "", "");
	/* terms that the processor lacks do nothing */
	d.cpu.caps = 0;
	check_hw("hw_filters", DOCTOR_OK, "ibs_fetch: rand_en swfilt", "", "");
	make_pmu(&fetch, "ibs_fetch", "l3missonly", "");
	check_hw("hw_filters", DOCTOR_OK, "none", "", "");
	/* an older kernel */
	d.op = &op;
	d.fetch = NULL;
	d.cpu.caps = IBS_CAPS_OPCNT | IBS_CAPS_OPLDLAT;
	check_hw("hw_filters", DOCTOR_WARN, "ibs_op: cnt_ctl",
		 UNUSED "ldlat of ibs_op (Linux 6.15)", "");
	d.fetch = &fetch;
	d.cpu.caps = ~0U;
	check_hw("hw_filters", DOCTOR_WARN, "ibs_op: cnt_ctl l3missonly; ibs_fetch: l3missonly",
		 UNUSED "ldlat of ibs_op (Linux 6.15), strmst of ibs_op (Linux 7.1), fetchlat of "
			"ibs_fetch (Linux 7.1)",
		 "");
}

#define T(f) cmocka_unit_test_setup_teardown(f, begin, remove_root)

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(test_kernel),	  T(test_btf),		T(test_links),	       T(test_privileges),
		T(test_paranoid), T(test_unprivileged), T(test_pid_namespace), T(test_readers),
		T(test_lockdown), T(test_memlock),	T(test_sample_rate),   T(test_cpu_time),
		T(test_cpu),	  T(test_hypervisor),	T(test_capabilities),  T(test_quirks),
		T(test_quirk),	  T(test_pmu),		T(test_no_pmu),	       T(test_filters),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
