// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "doctor_private.h"

#include <errno.h>
#include <inttypes.h>
#include <unistd.h>

#include "base/num.h"
#include "base/text.h"

#define CPU_TIME "/proc/sys/kernel/perf_cpu_time_max_percent"

/* perf_event_max_sample_rate of a kernel that has not lowered it (kernel/events/core.c). */
#define MAX_SAMPLE_RATE_DEFAULT 100000

/* --- checks: kernel --- */

static void check_kernel(struct doctor *d, struct doctor_result *r)
{
	char text[128];

	if (num_read_line(d->root, "/proc/sys/kernel/osrelease", text, sizeof(text), NULL) ||
	    !*text) {
		doctor_value(r, DOCTOR_WARN, "unknown");
		doctor_why(r, "/proc/sys/kernel/osrelease cannot be read");
	} else {
		doctor_value(r, DOCTOR_INFO, "%s", text);
	}
}

static void check_btf(struct doctor *d, struct doctor_result *r)
{
	if (d->btf) {
		doctor_value(r, DOCTOR_OK, "/sys/kernel/btf/vmlinux");
		return;
	}
	doctor_value(r, DOCTOR_NO, "no");
	/* the remedy has what follows the semicolon */
	doctor_why(r, "the BPF program cannot be fitted to it: %.*s",
		   (int)strcspn(d->btf_err.text, ";"), d->btf_err.text);
}

static void check_registers(struct doctor *d, struct doctor_result *r)
{
	if (!d->btf) {
		doctor_value(r, DOCTOR_INFO, "unknown without BTF");
	} else if (d->btf_direct) {
		doctor_value(r, DOCTOR_OK, "direct register reads");
	} else {
		doctor_value(r, DOCTOR_INFO, "probe reads");
		doctor_why(
			r,
			"the kernel lacks bpf_cast_to_kern_ctx, bpf_rdonly_cast (Linux 6.2) or the "
			"type perf_ibs_data; a sample costs about 350 more instructions");
	}
}

static void check_perf_link(struct doctor *d, struct doctor_result *r)
{
	if (doctor_not_tried(d, r))
		return;
	if (!d->p.features_known) {
		doctor_value(r, DOCTOR_INFO, "unknown: no program can be loaded");
	} else if (d->p.features.perf_link) {
		doctor_value(r, DOCTOR_OK, "yes");
	} else {
		doctor_value(r, DOCTOR_WARN, "no");
		doctor_why(r, "events cannot be pinned: sampling ends with the process (perf links "
			      "need Linux 5.15)");
	}
}

/* --- checks: privileges and limits --- */

static void check_privileges(struct doctor *d, struct doctor_result *r)
{
	bool bpf = doctor_has_cap(d, CAP_BPF) || doctor_has_cap(d, CAP_SYS_ADMIN);

	doctor_value(r, doctor_may_load(d) ? DOCTOR_OK : DOCTOR_NO, "uid %u:%s%s%s%s", geteuid(),
		     doctor_has_cap(d, CAP_BPF) ? " CAP_BPF" : "",
		     doctor_has_cap(d, CAP_PERFMON) ? " CAP_PERFMON" : "",
		     doctor_has_cap(d, CAP_SYS_ADMIN) ? " CAP_SYS_ADMIN" : "",
		     doctor_has_cap(d, CAP_SYS_RESOURCE) ? " CAP_SYS_RESOURCE" : "");
	if (!d->cap_eff)
		doctor_more(r, " no capabilities");
	if (r->status == DOCTOR_OK)
		return;
	doctor_why(r, "sampling BPF programs need CAP_BPF and CAP_PERFMON; %s missing",
		   bpf		       ? "CAP_PERFMON is"
		   : doctor_perfmon(d) ? "CAP_BPF is"
				       : "both are");
	if (doctor_patched_paranoid(d))
		doctor_remedy(r,
			      "run as root; or setcap cap_bpf,cap_perfmon+ep ibscope and, for this "
			      "distribution's kernel, sysctl kernel.perf_event_paranoid=2");
}

static void check_paranoid(struct doctor *d, struct doctor_result *r)
{
	enum doctor_status bad = d->probed && d->p.sim != -EACCES ? DOCTOR_WARN : DOCTOR_NO;

	if (d->paranoid == -2) {
		doctor_value(r, DOCTOR_WARN, "unknown");
		doctor_why(
			r, PARANOID
			" cannot be read: proc is not mounted, or the kernel has no perf events");
		doctor_remedy(r, "mount proc; use a kernel with CONFIG_PERF_EVENTS");
	} else if (d->paranoid <= 0 || doctor_has_cap(d, CAP_SYS_ADMIN) ||
		   (doctor_has_cap(d, CAP_PERFMON) && !doctor_patched_paranoid(d))) {
		doctor_value(r, DOCTOR_OK, "%" PRId64, d->paranoid);
	} else if (doctor_patched_paranoid(d)) {
		doctor_value(r, bad, "%" PRId64, d->paranoid);
		doctor_why(r,
			   "above 2 this distribution's kernel requires CAP_SYS_ADMIN; CAP_PERFMON "
			   "is not enough");
		doctor_remedy(r, "run with CAP_SYS_ADMIN, or: sysctl kernel.perf_event_paranoid=2");
	} else {
		doctor_value(r, DOCTOR_NO, "%" PRId64, d->paranoid);
		doctor_why(r, "above 0 sampling whole CPUs requires CAP_PERFMON");
	}
}

static void check_pid_namespace(struct doctor *d, struct doctor_result *r)
{
	unsigned long long dev, ino;

	if (!kernel_pid_namespace(d->root, &dev, &ino)) {
		doctor_value(r, DOCTOR_OK, "the initial one");
		return;
	}
	doctor_value(r, DOCTOR_WARN, "another one");
	doctor_why(r, "processes of other namespaces, such as the host's, are sampled, but have "
		      "pid 0 and no "
		      "names or mappings");
}

static void check_unprivileged_bpf(struct doctor *d, struct doctor_result *r)
{
	const char *path = "/proc/sys/kernel/unprivileged_bpf_disabled";
	static const char *const meaning[] = { "allowed", "forbidden until reboot", "forbidden" };
	int64_t v;

	if (num_read(d->root, path, &v, NULL))
		doctor_value(r, DOCTOR_INFO, "unknown: %s cannot be read", path);
	else
		doctor_value(r, DOCTOR_INFO, "%" PRId64 " (%s)", v,
			     v >= 0 && v <= 2 ? meaning[v] : "?");
}

static void check_map_readers(struct doctor *d, struct doctor_result *r)
{
	if (doctor_not_tried(d, r))
		return;
	if (!d->p.reader) {
		doctor_value(r, DOCTOR_OK, "any process that can open the pinned file");
	} else if (d->p.reader == -EPERM) {
		doctor_value(r, DOCTOR_WARN, "privileged processes only");
		doctor_why(r,
			   "bpf() requires CAP_BPF on this kernel, for ibscope-exporter too (from "
			   "Linux 5.19 on file modes decide)");
	} else {
		doctor_value(r, DOCTOR_INFO, "unknown: %s",
			     d->p.reader == -255 ? "cannot fork" : strerror(-d->p.reader));
	}
}

/* Without newer helpers, the program reads pids and cgroups with bpf_probe_read_kernel(). */
static void check_lockdown(struct doctor *d, struct doctor_result *r)
{
	static const char unreported[] = "not reported (no lockdown, or no securityfs)";
	const char *mode = unreported;
	bool refused = d->p.features_known && !d->p.features.probe_read;
	char text[128];

	if (!num_read_line(d->root, "/sys/kernel/security/lockdown", text, sizeof(text), NULL))
		mode = strstr(text, "[confidentiality]") ? "confidentiality"
		       : strstr(text, "[integrity]")	 ? "integrity"
							 : "none";
	if (!d->p.features_known)
		refused = !strcmp(mode, "confidentiality");
	if (!refused) {
		doctor_value(r, mode == unreported ? DOCTOR_INFO : DOCTOR_OK, "%s", mode);
		return;
	}
	doctor_value(r, DOCTOR_NO, "%s", mode);
	doctor_why(r, "the kernel refuses programs that read kernel memory "
		      "(bpf_probe_read_kernel), as ours does");
}

static void check_memlock(struct doctor *d, struct doctor_result *r)
{
	rlim_t soft = d->p.memlock.rlim_cur;
	char text[32] = "unlimited";

	if (doctor_not_tried(d, r))
		return;
	if (soft != RLIM_INFINITY)
		snprintf(text, sizeof(text), "%s KiB", TEXT_COUNT(soft / 1024));
	if (d->p.features.memcg_charge) {
		doctor_value(r, DOCTOR_OK, "%s; irrelevant: BPF memory is charged to the cgroup",
			     text);
	} else if (!d->p.features_known) {
		doctor_value(r, DOCTOR_INFO, "%s; unknown whether BPF maps count against it", text);
	} else if (doctor_can_raise_memlock(d)) {
		doctor_value(r, DOCTOR_OK,
			     "%s; BPF maps count against it, and it is raised when needed", text);
	} else {
		doctor_value(r, DOCTOR_WARN, "%s", text);
		doctor_why(r,
			   "BPF maps count against it (before Linux 5.11), and raising it requires "
			   "CAP_SYS_RESOURCE");
	}
}

static void check_max_sample_rate(struct doctor *d, struct doctor_result *r)
{
	const char *path = "/proc/sys/kernel/perf_event_max_sample_rate";
	int64_t v, percent = 25;

	if (num_read(d->root, path, &v, NULL)) {
		doctor_value(r, DOCTOR_WARN, "unknown");
		doctor_why(
			r,
			"%s cannot be read: proc is not mounted, or the kernel has no perf events",
			path);
	} else if (v < MAX_SAMPLE_RATE_DEFAULT) {
		doctor_value(r, DOCTOR_WARN, "%s Hz", TEXT_COUNT(v));
		doctor_why(r,
			   "below the default %s: the kernel lowers it after slow interrupts and "
			   "never raises it again; samples above this rate are lost",
			   TEXT_COUNT(MAX_SAMPLE_RATE_DEFAULT));
		/* With 0 or 100 the kernel rejects a new rate with EINVAL (seen on 5.10 and 7.2). */
		num_read(d->root, CPU_TIME, &percent, NULL);
		if (percent == 0 || percent == 100)
			doctor_remedy(r, "sysctl kernel.perf_cpu_time_max_percent=25, then sysctl "
					 "kernel.perf_event_max_sample_rate=100000");
	} else {
		doctor_value(r, DOCTOR_OK, "%s Hz", TEXT_COUNT(v));
	}
}

static void check_cpu_time(struct doctor *d, struct doctor_result *r)
{
	int64_t v;

	if (num_read(d->root, CPU_TIME, &v, NULL)) {
		doctor_value(r, DOCTOR_INFO, "unknown: " CPU_TIME " cannot be read");
	} else if (v == 0 || v == 100) {
		doctor_value(r, DOCTOR_INFO,
			     "%" PRId64 " %% (the kernel never lowers the sample rate)", v);
	} else if (v < 5) {
		doctor_value(r, DOCTOR_WARN, "%" PRId64 " %%", v);
		doctor_why(r,
			   "the kernel may lower perf_event_max_sample_rate after interrupts that "
			   "are not slow");
	} else {
		doctor_value(r, DOCTOR_OK, "%" PRId64 " %%", v);
	}
}

/* clang-format off */
const struct doctor_check doctor_kernel_checks[] = {
	{ "kernel", "Kernel", "release", check_kernel, "mount proc" },
	{ "btf", "Kernel", "BTF types", check_btf,
	  "use a kernel with CONFIG_DEBUG_INFO_BTF=y (all current distributions have it)" },
	{ "registers", "Kernel", "register access", check_registers, "" },
	{ "perf_link", "Kernel", "perf event links", check_perf_link,
	  "keep the process running, or use a newer kernel" },

	{ "privileges", "Privileges and limits", "capabilities", check_privileges,
	  "run as root, or: setcap cap_bpf,cap_perfmon+ep ibscope; systemd: "
	  "AmbientCapabilities=CAP_BPF CAP_PERFMON" },
	{ "paranoid", "Privileges and limits", "perf_event_paranoid", check_paranoid,
	  "run as root or with CAP_PERFMON" },
	{ "pid_namespace", "Privileges and limits", "PID namespace", check_pid_namespace,
	  "run in that of the host: docker run --pid=host, or hostPID: true" },
	{ "unprivileged_bpf", "Privileges and limits", "unprivileged bpf()", check_unprivileged_bpf,
	  "" },
	{ "map_readers", "Privileges and limits", "pinned maps readable by", check_map_readers,
	  "give the exporter CAP_BPF, or use a newer kernel" },
	{ "lockdown", "Privileges and limits", "kernel lockdown", check_lockdown,
	  "boot with lockdown=integrity or without lockdown; if it is not locked down, a security "
	  "module refuses it" },
	{ "memlock", "Privileges and limits", "locked memory", check_memlock,
	  "ulimit -l unlimited; systemd: LimitMEMLOCK=infinity" },
	{ "max_sample_rate", "Privileges and limits", "max_sample_rate", check_max_sample_rate,
	  "sysctl kernel.perf_event_max_sample_rate=100000" },
	{ "cpu_time", "Privileges and limits", "perf_cpu_time_max", check_cpu_time,
	  "sysctl kernel.perf_cpu_time_max_percent=25" },
	{ 0 },
};
/* clang-format on */
