// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "doctor_private.h"

#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <linux/magic.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "base/trusted_dir.h"
#include "cgroup/cgroup.h"
#include "cgroup/container.h"
#include "perf/perf.h"

/* --- checks: environment --- */

static void check_cgroup(struct doctor *d, struct doctor_result *r)
{
	struct cgroup_fs fs;
	struct err e;

	if (cgroup_hierarchy_choose(d->root, "auto", &fs, &e)) {
		doctor_value(r, DOCTOR_WARN, "unknown");
		doctor_why(r, "%s", e.text);
		doctor_remedy(r, "mount proc");
		return;
	}
	switch (fs.mode) {
	case CGROUP_MODE_V2:
		doctor_value(r, DOCTOR_OK, "v2 at %s", fs.path);
		break;
	case CGROUP_MODE_HYBRID:
	case CGROUP_MODE_V1:
		doctor_value(r, DOCTOR_WARN, "%s, using %s at %s", cgroup_mode_name(fs.mode),
			     *fs.controller ? fs.controller : "v2", fs.path);
		doctor_why(r, "only one hierarchy is used; tasks whose cgroups are in another one "
			      "appear in its root; chosen by where containers (or else cgroups) "
			      "are now");
		doctor_remedy(r, "if containers are in another hierarchy, select it with "
				 "--cgroup-hierarchy");
		if (*fs.path)
			break;
		doctor_value(r, DOCTOR_WARN, "%s", cgroup_mode_name(fs.mode));
		doctor_why(r, "no hierarchy with a controller is mounted: all samples belong to "
			      "the root");
		doctor_remedy(r, "mount -t cgroup2 cgroup2 DIRECTORY");
		break;
	case CGROUP_MODE_NONE:
		doctor_value(r, DOCTOR_WARN, "none");
		doctor_why(r, "no cgroup file system is mounted: cgroups have ids but no names");
		doctor_remedy(r,
			      "mount -t cgroup2 cgroup2 /sys/fs/cgroup (in a container: mount the "
			      "host's)");
		break;
	}
	if (*fs.path && strcmp(fs.inner, "/")) {
		r->status = DOCTOR_WARN;
		doctor_why(r, "the mount at %s contains only the cgroup %s: others have no names",
			   fs.path, fs.inner);
		doctor_remedy(
			r, "give the container the host's /sys/fs/cgroup and its cgroup namespace");
	}
}

static void check_names(struct doctor *d, struct doctor_result *r)
{
	char path[256];
	bool found;

	if (container_names_unreadable(d->root, &found, path, sizeof(path))) {
		doctor_value(r, DOCTOR_WARN, "incomplete");
		doctor_why(r, "%s cannot be read: containers are shown by the digits of their ids",
			   path);
	} else if (found) {
		doctor_value(r, DOCTOR_OK, "readable");
	} else {
		doctor_value(r, DOCTOR_INFO, "no state of a container runtime");
	}
}

/* Most machines do not need them, and the shipped units do not grant them: no warning. */
static void check_nested_names(struct doctor *d, struct doctor_result *r)
{
	const bool ptrace = doctor_has_cap(d, CAP_SYS_PTRACE);
	const bool chroot = doctor_has_cap(d, CAP_SYS_CHROOT);

	if (ptrace && chroot) {
		doctor_value(r, DOCTOR_OK, "readable");
		return;
	}
	doctor_value(r, DOCTOR_INFO, "not readable without %s%s%s", ptrace ? "" : "CAP_SYS_PTRACE",
		     ptrace || chroot ? "" : " and ", chroot ? "" : "CAP_SYS_CHROOT");
	doctor_why(r,
		   "containers inside other containers (kind, Docker in Docker) are shown by the "
		   "digits of their ids%s",
		   ptrace ? ""
			  : "; profiles of --push lack the service, and containers of users that "
			    "only a directory service (LDAP) knows may lack names");
}

/* Whether `serve` would refuse to create its directory there, or the one it has. */
static int check_pins_place(const char *bpffs, struct err *err)
{
	char dir[PATH_MAX];
	int ret;

	snprintf(dir, sizeof(dir), "%s/ibscope", bpffs);
	ret = trusted_dir_check(dir, true, err);
	return ret == -ENOENT ? 0 : ret;
}

/* False where another file system was mounted over it later. */
static bool is_on_top(const char *bpffs)
{
	struct statfs fs;

	return statfs(bpffs, &fs) || fs.f_type == (typeof(fs.f_type))BPF_FS_MAGIC;
}

static void check_bpffs(struct doctor *d, struct doctor_result *r)
{
	char path[PATH_MAX], line[1024], where[256] = "", found[256] = "";
	struct err err;
	FILE *f;

	snprintf(path, sizeof(path), "%s/proc/self/mountinfo", d->root);
	f = fopen(path, "re");
	while (f && fgets(line, sizeof(line), f)) {
		if (strstr(line, " - bpf ") && sscanf(line, "%*s %*s %*s %*s %255s", where) == 1 &&
		    (!*found || !strcmp(where, "/sys/fs/bpf")))
			memcpy(found, where, sizeof(found));
	}
	if (f)
		fclose(f);
	if (!*found) {
		doctor_value(r, DOCTOR_WARN, "no");
		doctor_why(r, "'serve' cannot pin its maps for the exporter");
	} else if (d->probed && !is_on_top(found)) {
		doctor_value(r, DOCTOR_WARN, "hidden");
		doctor_why(r,
			   "another file system is mounted over %s, so that 'serve' cannot pin its "
			   "maps",
			   found);
	} else if (d->probed && access(found, W_OK | X_OK)) {
		doctor_value(r, DOCTOR_WARN, "%s", found);
		doctor_why(r, "this user cannot create files there: %s", strerror(errno));
		doctor_remedy(r, "chown a directory in it to this user, or run as root");
	} else if (d->probed && check_pins_place(found, &err)) {
		doctor_value(r, DOCTOR_WARN, "%s", found);
		doctor_why(r, "'serve' refuses it: %s", err.text);
		doctor_remedy(r, "let root only write there");
	} else {
		doctor_value(r, DOCTOR_OK, "%s", found);
	}
}

/* --- checks: tried --- */

/* Why perf_event_open failed, for IBS or the software clock. */
static void explain_open(const struct doctor *d, struct doctor_result *r, int err)
{
	switch (-err) {
	case EACCES:
		doctor_why(r, "no privilege: perf_event_open on a whole CPU needs %s",
			   doctor_patched_paranoid(d)
				   ? "CAP_SYS_ADMIN while perf_event_paranoid is above 2"
				   : "CAP_PERFMON");
		doctor_remedy(r, "%s",
			      doctor_patched_paranoid(d)
				      ? "run as root, or: sysctl kernel.perf_event_paranoid=2 and "
					"CAP_PERFMON"
				      : "run as root or with CAP_PERFMON (systemd: "
					"AmbientCapabilities=)");
		break;
	case EPERM:
		doctor_why(r, "refused by a seccomp filter or a security module, common in "
			      "containers");
		doctor_remedy(
			r, "allow perf_event_open: give the container CAP_PERFMON (some runtimes: "
			   "CAP_SYS_ADMIN) or an unconfined seccomp profile");
		break;
	case EINVAL:
	case EOPNOTSUPP:
		doctor_why(r, "the kernel's driver rejects a plain event (%s)", strerror(-err));
		doctor_remedy(r, "report this with the output of 'ibscope doctor --json'");
		break;
	default:
		doctor_why(r, "perf_event_open on cpu%d: %s", d->p.cpu, strerror(-err));
	}
}

static void check_bpf_load(struct doctor *d, struct doctor_result *r)
{
	if (doctor_not_tried(d, r))
		return;
	if (!d->p.prog) {
		doctor_value(r, DOCTOR_OK, "yes");
		return;
	}
	doctor_value(r, DOCTOR_NO, "no");
	doctor_why(r, "loading a program of two instructions: %s", strerror(-d->p.prog));
	if (d->p.prog != -EPERM || !doctor_may_load(d))
		return;
	if (doctor_can_raise_memlock(d))
		doctor_remedy(r, "a seccomp filter or security module forbids bpf(): allow it for "
				 "this container");
	else
		doctor_remedy(r, "a seccomp filter or security module forbids bpf(): allow it for "
				 "this container; before Linux 5.11 also: ulimit -l unlimited, "
				 "systemd: LimitMEMLOCK=infinity");
}

static void check_perf_open(struct doctor *d, struct doctor_result *r)
{
	if (doctor_not_tried(d, r))
		return;
	if (!d->op) {
		doctor_value(r, DOCTOR_NO, "no");
		doctor_why(r, "no usable ibs_op PMU");
	} else if (!d->p.open) {
		doctor_value(r, DOCTOR_OK, "yes, on cpu%d", d->p.cpu);
	} else {
		doctor_value(r, DOCTOR_NO, "no");
		explain_open(d, r, d->p.open);
	}
}

static void check_attach(struct doctor *d, struct doctor_result *r)
{
	if (doctor_not_tried(d, r))
		return;
	if (!d->p.attach) {
		doctor_value(r, DOCTOR_OK, "yes");
		return;
	}
	doctor_value(r, DOCTOR_NO, "no");
	if (d->p.open || d->p.prog)
		doctor_why(r, "%s", d->p.open ? "no event to attach to" : "no program to attach");
	else
		doctor_why(r, "PERF_EVENT_IOC_SET_BPF: %s", strerror(-d->p.attach));
}

static void check_other_user(struct doctor *d, struct doctor_result *r)
{
	uint64_t percent;
	char users[256];

	if (doctor_not_tried(d, r))
		return;
	if (d->p.open) {
		doctor_value(r, DOCTOR_INFO, "unknown: no event can be opened");
		return;
	}
	if (d->p.shared || !d->p.enabled_ns) {
		doctor_value(r, DOCTOR_WARN, "unknown");
		doctor_why(r, "the event did not run on cpu%d: %s", d->p.cpu,
			   d->p.shared ? strerror(-d->p.shared) : "it was never enabled");
		doctor_remedy(r, "try again; report this if it persists");
		return;
	}
	percent = d->p.running_ns * 100 / d->p.enabled_ns;
	if (percent >= 98) {
		doctor_value(r, DOCTOR_OK, "none on cpu%d", d->p.cpu);
		return;
	}
	doctor_value(r, DOCTOR_WARN, "yes, on cpu%d", d->p.cpu);
	doctor_why(r,
		   "a test event ran only %" PRIu64
		   " %% of the time: another ibs_op user is active, and a CPU has one IBS",
		   percent);
	if (perf_users(d->root, users, sizeof(users)))
		doctor_put(r->why + strlen(r->why), sizeof(r->why) - strlen(r->why),
			   "; performance events are in use by %s", users);
}

/* A hypervisor may give its guest the valid bit without the address. */
static void check_physical(struct doctor *d, struct doctor_result *r)
{
	if (doctor_not_tried(d, r))
		return;
	if (!d->p.phys) {
		doctor_value(r, DOCTOR_INFO, "unknown: no sample has one");
	} else if (d->p.phys_zero < d->p.phys) {
		doctor_value(r, DOCTOR_OK, "yes");
	} else {
		doctor_value(r, DOCTOR_WARN, "read as 0");
		doctor_why(r,
			   "%llu of %llu accesses are said to have one, and it is 0: nodes and "
			   "pages of memory are unknown, hot lines of recordings go by virtual "
			   "address, and there are no live ones",
			   d->p.phys_zero, d->p.phys);
	}
}

/* Required for estimates under a hardware filter. */
static void check_core(struct doctor *d, struct doctor_result *r)
{
	const int *core = d->p.core, error = core[CORE_EVENT_RETIRED] ?: core[CORE_EVENT_OPS];
	const char *sep = "";

	if (doctor_not_tried(d, r))
		return;
	if (!core_event_known(&d->cpu, CORE_EVENT_RETIRED)) {
		doctor_value(r, DOCTOR_INFO, "none known for this processor");
		return;
	}
	doctor_value(r, error ? DOCTOR_WARN : DOCTOR_OK, "%s", "");
	for (int i = 0; i < CORE_EVENT_N; i++) {
		if (core[i] || !*core_event_meaning(i))
			continue;
		doctor_more(r, "%s%s", sep, core_event_meaning(i));
		sep = ", ";
	}
	if (!*sep)
		doctor_more(r, "no");
	if (error == -EACCES || error == -EPERM)
		explain_open(d, r, error);
	else if (error)
		doctor_why(r,
			   "the kernel has no counters for them: %s; estimated ops are unknown "
			   "with --plan hw",
			   strerror(-error));
}

static void check_sim(struct doctor *d, struct doctor_result *r)
{
	if (doctor_not_tried(d, r))
		return;
	if (!d->p.sim && !d->p.prog) {
		doctor_value(r, DOCTOR_OK, "yes");
		return;
	}
	doctor_value(r, DOCTOR_NO, "no");
	if (d->p.sim)
		explain_open(d, r, d->p.sim);
	else
		doctor_why(r, "no BPF program can be loaded");
}

/* clang-format off */
const struct doctor_check doctor_tried_checks[] = {
	{ "cgroup", "Environment", "cgroups", check_cgroup,
	  "boot with systemd.unified_cgroup_hierarchy=1, or use a container runtime on v2" },
	{ "names", "Environment", "container names", check_names,
	  "run as root or with CAP_DAC_READ_SEARCH" },
	{ "nested_names", "Environment", "names in containers", check_nested_names, "" },
	{ "bpffs", "Environment", "bpffs", check_bpffs, "mount -t bpf bpf /sys/fs/bpf" },

	{ "bpf_load", "Tried", "load a BPF program", check_bpf_load,
	  "run as root or with CAP_BPF and CAP_PERFMON" },
	{ "perf_open", "Tried", "open ibs_op", check_perf_open, "see ibs_op above" },
	{ "attach", "Tried", "attach the program", check_attach, "see the two rows above" },
	{ "other_user", "Tried", "another IBS user", check_other_user,
	  "stop the other profiler (perf, uProf, another ibscope), or expect fewer samples" },
	{ "physical", "Tried", "physical addresses", check_physical,
	  "sample on the host, or record there" },
	{ "core_events", "Tried", "core counters", check_core,
	  "run on the host; a hypervisor may hide its counters" },
	{ "sim", "Tried", "open the software clock", check_sim,
	  "run as root or with CAP_BPF and CAP_PERFMON" },
	{ 0 },
};
/* clang-format on */
