// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "doctor.h"

#include <bpf/bpf.h>
#include <bpf/btf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <inttypes.h>
#include <jansson.h>
#include <limits.h>
#include <linux/bpf.h>
#include <linux/capability.h>
#include <linux/perf_event.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cgroup_mode.h"
#include "cpu.h"
#include "cpulist.h"
#include "err.h"
#include "event.h"
#include "num.h"
#include "pmu.h"

/* Debian 12's linux/capability.h has them, older ones do not. */
#ifndef CAP_PERFMON
#define CAP_PERFMON 38
#endif
#ifndef CAP_BPF
#define CAP_BPF 39
#endif

#define OTHER_USER_MS 50
#define PARANOID      "/proc/sys/kernel/perf_event_paranoid"
#define CPU_TIME      "/proc/sys/kernel/perf_cpu_time_max_percent"

/* perf_event_max_sample_rate of a kernel that has not lowered it (kernel/events/core.c). */
#define MAX_SAMPLE_RATE_DEFAULT 100000

/* What the running kernel answered; an errno is negative, 0 is success. */
struct probes {
	struct rlimit memlock; /* before libbpf raises it */
	int memlock_charged;   /* 1, 0, or -1: not known */
	int prog, link, ringbuf, reader, open, attach, sim, shared;
	int cpu; /* where the events were opened */
	uint64_t enabled_ns, running_ns;
};

struct doctor {
	const char *root;
	bool probed;
	struct cpu_info cpu;
	struct pmu *op, *fetch;
	struct err op_err, fetch_err;
	uint64_t cap_eff;
	int64_t paranoid;     /* kernel.perf_event_paranoid; -2 if not known */
	bool btf, btf_direct; /* there; with all that direct register reads need */
	struct err btf_err;
	struct probes p;
	size_t n;
	struct doctor_result *results;
};

/* --- results --- */

/* What comes from files and CPUID reaches terminals and JSON. */
static void put(char *buf, size_t size, const char *fmt, va_list ap)
{
	char *s;

	vsnprintf(buf, size, fmt, ap);
	for (s = buf; *s; s++) {
		if (*s < ' ' || *s > '~')
			*s = '?';
	}
	while (s > buf && s[-1] == ' ')
		*--s = 0;
}

static void value(struct doctor_result *r, enum doctor_status status, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));
static void value(struct doctor_result *r, enum doctor_status status, const char *fmt, ...)
{
	va_list ap;

	r->status = status;
	va_start(ap, fmt);
	put(r->value, sizeof(r->value), fmt, ap);
	va_end(ap);
}

static void why(struct doctor_result *r, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));
static void why(struct doctor_result *r, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	put(r->why, sizeof(r->why), fmt, ap);
	va_end(ap);
}

/* Instead of the one in the table, where a check has several. */
static void remedy(struct doctor_result *r, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));
static void remedy(struct doctor_result *r, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	put(r->remedy, sizeof(r->remedy), fmt, ap);
	va_end(ap);
}

static void more(struct doctor_result *r, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));
static void more(struct doctor_result *r, const char *fmt, ...)
{
	size_t n = strlen(r->value);
	va_list ap;

	va_start(ap, fmt);
	put(r->value + n, sizeof(r->value) - n, fmt, ap);
	va_end(ap);
}

/* True, with the result filled, when the running kernel was not asked. */
static bool not_tried(const struct doctor *d, struct doctor_result *r)
{
	if (!d->probed)
		value(r, DOCTOR_INFO, "not tried");
	return !d->probed;
}

static bool has_cap(const struct doctor *d, int cap)
{
	return d->cap_eff >> cap & 1;
}

/* Debian and Ubuntu added levels above 2, which let only CAP_SYS_ADMIN (seen on 5.10 to 7.2). */
static bool patched_paranoid(const struct doctor *d)
{
	return d->paranoid > 2;
}

static bool perfmon(const struct doctor *d)
{
	return has_cap(d, CAP_PERFMON) || has_cap(d, CAP_SYS_ADMIN);
}

static bool may_load(const struct doctor *d)
{
	return (has_cap(d, CAP_BPF) || has_cap(d, CAP_SYS_ADMIN)) && perfmon(d);
}

static bool can_raise_memlock(const struct doctor *d)
{
	return d->p.memlock.rlim_max == RLIM_INFINITY || has_cap(d, CAP_SYS_RESOURCE);
}

/* --- asking the kernel --- */

static int sys_bpf(int cmd, union bpf_attr *attr)
{
	return syscall(SYS_bpf, cmd, attr, sizeof(*attr)) < 0 ? -errno : 0;
}

static int perf_open(struct perf_event_attr *attr, int cpu)
{
	int fd = syscall(SYS_perf_event_open, attr, -1, cpu, -1, PERF_FLAG_FD_CLOEXEC);

	return fd < 0 ? -errno : fd;
}

static int take_close(int fd)
{
	if (fd < 0)
		return fd;
	close(fd);
	return 0;
}

/* Run @fn in a child, where it can spoil limits and privileges. Return: its value, 0 .. 255. */
static int in_child(int (*fn)(void))
{
	int status;
	pid_t pid;

	fflush(NULL); /* else the child's copy of a buffer could be written twice */
	pid = fork();
	if (!pid)
		_exit(fn());
	if (pid < 0)
		return 255;
	while (waitpid(pid, &status, 0) < 0) {
		if (errno != EINTR)
			return 255;
	}
	return WIFEXITED(status) ? WEXITSTATUS(status) : 255;
}

/*
 * v5.11 charges BPF memory to the cgroup, before that it counts against RLIMIT_MEMLOCK, for root
 * too: with a limit of 0 a map then cannot be made. Raw calls: libbpf would raise the limit.
 */
static int child_memlock(void)
{
	union bpf_attr attr = {
		.map_type = BPF_MAP_TYPE_ARRAY, .key_size = 4, .value_size = 4, .max_entries = 1
	};
	struct rlimit zero = { 0, 0 };

	if (sys_bpf(BPF_MAP_CREATE, &attr) || setrlimit(RLIMIT_MEMLOCK, &zero))
		return 2;
	return sys_bpf(BPF_MAP_CREATE, &attr) ? 1 : 0;
}

/* v5.19 lets everybody call bpf() on maps that file modes give them: EBADF comes before EPERM. */
static int child_reader(void)
{
	struct __user_cap_header_struct hdr = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct none[_LINUX_CAPABILITY_U32S_3] = { { 0 } };
	union bpf_attr attr = { .map_fd = -1 };
	int err;

	if (syscall(SYS_capset, &hdr, none))
		return 255;
	err = -sys_bpf(BPF_MAP_LOOKUP_ELEM, &attr);
	return err == EBADF ? 0 : err;
}

static int load_program(void)
{
	static const struct bpf_insn insns[] = {
		{ .code = BPF_ALU64 | BPF_MOV | BPF_K, .dst_reg = BPF_REG_0, .imm = 0 },
		{ .code = BPF_JMP | BPF_EXIT },
	};
	int fd = bpf_prog_load(BPF_PROG_TYPE_PERF_EVENT, "ibscope_doctor", "GPL", insns,
			       sizeof(insns) / sizeof(insns[0]), NULL);

	return fd < 0 ? -errno : fd;
}

/* The default event; on a processor that cannot count ops, the cycles one. */
static int ibs_attr(const struct doctor *d, struct perf_event_attr *attr)
{
	struct event_spec spec;
	int err;

	err = event_parse(EVENT_DEFAULT, &spec, NULL);
	if (!err)
		err = event_attr(&spec, d->op, &d->cpu, NULL, attr, NULL);
	if (err != -EOPNOTSUPP)
		return err;
	event_parse("ibs_op//", &spec, NULL);
	return event_attr(&spec, d->op, &d->cpu, NULL, attr, NULL);
}

/* Is the event on the hardware all the time? */
static int watch(int fd, struct probes *p)
{
	struct {
		uint64_t value, enabled, running;
	} r;

	if (ioctl(fd, PERF_EVENT_IOC_ENABLE, 0))
		return -errno;
	usleep(OTHER_USER_MS * 1000);
	if (ioctl(fd, PERF_EVENT_IOC_DISABLE, 0))
		return -errno;
	if (read(fd, &r, sizeof(r)) != sizeof(r))
		return -EIO;
	p->enabled_ns = r.enabled;
	p->running_ns = r.running;
	return 0;
}

static void probe_ibs(struct doctor *d, int prog)
{
	struct probes *p = &d->p;
	struct perf_event_attr attr;
	int fd;

	p->open = p->attach = p->shared = -ENODEV;
	if (!d->op)
		return;
	p->open = ibs_attr(d, &attr);
	if (p->open)
		return;
	fd = perf_open(&attr, p->cpu);
	p->open = fd < 0 ? fd : 0;
	if (fd < 0)
		return;
	if (prog >= 0)
		p->attach = ioctl(fd, PERF_EVENT_IOC_SET_BPF, prog) ? -errno : 0;
	else
		p->attach = prog;
	p->shared = watch(fd, p);
	close(fd);
}

static void probe_sim(struct probes *p, int prog)
{
	struct perf_event_attr attr = {
		.size = sizeof(attr),
		.type = PERF_TYPE_SOFTWARE,
		.config = PERF_COUNT_SW_CPU_CLOCK,
		.sample_period = 1000000,
		.disabled = 1,
	};
	int fd = perf_open(&attr, p->cpu);

	p->sim = fd < 0 ? fd : 0;
	if (fd >= 0 && prog >= 0 && ioctl(fd, PERF_EVENT_IOC_SET_BPF, prog))
		p->sim = -errno;
	if (fd >= 0)
		close(fd);
}

static void probe(struct doctor *d)
{
	struct probes *p = &d->p;
	struct cpulist online;
	int prog, n;

	getrlimit(RLIMIT_MEMLOCK, &p->memlock);
	n = in_child(child_memlock);
	p->memlock_charged = n > 1 ? -1 : n;
	p->reader = -in_child(child_reader);
	p->cpu = cpulist_read("", "online", &online, NULL) ? 0 : cpulist_next(&online, 0);

	prog = load_program();
	p->prog = prog < 0 ? prog : 0;
	p->link = prog < 0 ? prog : -EINVAL;
	if (prog >= 0 && bpf_link_create(prog, -1, BPF_PERF_EVENT, NULL) < 0)
		p->link = errno == EBADF ? 0 : -errno;
	p->ringbuf = bpf_map_create(BPF_MAP_TYPE_RINGBUF, NULL, 0, 0, sysconf(_SC_PAGESIZE), NULL);
	p->ringbuf = p->ringbuf < 0 ? -errno : take_close(p->ringbuf);
	probe_ibs(d, prog);
	probe_sim(p, prog);
	take_close(prog);
}

static void read_btf(struct doctor *d)
{
	static const struct {
		const char *name;
		__u32 kind;
	} needed[] = {
		{ "bpf_cast_to_kern_ctx", BTF_KIND_FUNC }, /* v6.2 */
		{ "bpf_rdonly_cast", BTF_KIND_FUNC },	   /* v6.2 */
		{ "perf_ibs_data", BTF_KIND_STRUCT },
	};
	char path[PATH_MAX];
	struct btf *btf;
	size_t i;

	if (snprintf(path, sizeof(path), "%s/sys/kernel/btf/vmlinux", d->root) >= (int)sizeof(path))
		return;
	btf = btf__parse(path, NULL);
	if (!btf) {
		err_set(&d->btf_err, -errno, "%s: %s", path, strerror(errno));
		return;
	}
	d->btf = d->btf_direct = true;
	for (i = 0; i < sizeof(needed) / sizeof(needed[0]); i++) {
		if (btf__find_by_name_kind(btf, needed[i].name, needed[i].kind) < 0)
			d->btf_direct = false;
	}
	btf__free(btf);
}

static void read_cap_eff(struct doctor *d)
{
	char path[PATH_MAX], line[256];
	FILE *f;

	if (snprintf(path, sizeof(path), "%s/proc/self/status", d->root) >= (int)sizeof(path))
		return;
	f = fopen(path, "re");
	if (!f)
		return;
	while (fgets(line, sizeof(line), f)) {
		if (sscanf(line, "CapEff: %" SCNx64, &d->cap_eff) == 1)
			break;
	}
	fclose(f);
}

/* --- checks: hardware --- */

static void check_cpu(struct doctor *d, struct doctor_result *r)
{
	const struct cpu_info *c = &d->cpu;

	value(r, c->amd ? DOCTOR_OK : DOCTOR_NO, "%s, family %xh model %xh stepping %u",
	      *c->name	   ? c->name
	      : *c->vendor ? c->vendor
			   : "unknown",
	      c->family, c->model, c->stepping);
	if (c->amd)
		more(r, " (%s)", cpu_generation(c));
	else
		why(r, "only AMD (family 10h and later) and Hygon processors have IBS");
}

static void check_ibs_cpuid(struct doctor *d, struct doctor_result *r)
{
	const char *cause, *fix;

	if (d->cpu.ibs) {
		value(r, DOCTOR_OK, "yes");
		return;
	}
	value(r, DOCTOR_NO, "no");
	pmu_why_missing(&d->cpu, &cause, &fix);
	why(r, "%s", cause);
	remedy(r, "%s", fix);
}

static void check_hypervisor(struct doctor *d, struct doctor_result *r)
{
	const struct cpu_info *c = &d->cpu;

	if (!c->hypervisor) {
		value(r, DOCTOR_OK, "no");
	} else if (c->ibs || !c->amd) {
		value(r, DOCTOR_INFO, "%s%s", c->hypervisor_name,
		      c->ibs ? ", shows IBS to its guest" : "");
	} else {
		value(r, DOCTOR_WARN, "%s", c->hypervisor_name);
		why(r, "it does not show IBS to its guest");
	}
}

static void check_ibs_caps(struct doctor *d, struct doctor_result *r)
{
	__u32 caps = d->cpu.caps, known = 0;
	const char *sep = "; lacks ";

	if (!d->cpu.ibs) {
		value(r, DOCTOR_INFO, "none");
		return;
	}
	value(r, DOCTOR_OK, "0x%08x:", caps);
#define HAVE(bit, name, meaning, gen) \
	known |= IBS_CAPS_##name;     \
	if (caps & IBS_CAPS_##name)   \
		more(r, " %s", #name);
	IBS_CAPS_TABLE(HAVE)
#undef HAVE
#define LACK(bit, name, meaning, gen)                               \
	if (!(caps & IBS_CAPS_##name)) {                            \
		more(r, "%s%s (%s, %s)", sep, #name, meaning, gen); \
		sep = ", ";                                         \
	}
	IBS_CAPS_TABLE(LACK)
#undef LACK
	if (caps & ~known)
		more(r, "; without a name: 0x%x", caps & ~known);
}

static void check_quirks(struct doctor *d, struct doctor_result *r)
{
	const char *sep = "";

	value(r, d->cpu.quirks ? DOCTOR_INFO : DOCTOR_OK, "%s", d->cpu.quirks ? "" : "none");
#define QUIRK(name, erratum, f0, m0, f1, m1, effect, who)            \
	if (d->cpu.quirks & IBS_QUIRK_##name) {                      \
		more(r, "%s%s: %s (%s)", sep, erratum, effect, who); \
		sep = "; ";                                          \
	}
	IBS_QUIRK_TABLE(QUIRK)
#undef QUIRK
}

/* --- checks: PMU --- */

static void show_pmu(const struct pmu *pmu, struct doctor_result *r)
{
	size_t i;

	value(r, DOCTOR_OK, "type %u; terms", pmu_type(pmu));
	for (i = 0; i < pmu_n_formats(pmu); i++)
		more(r, " %s", pmu_format_at(pmu, i)->name);
	if (!pmu_n_formats(pmu))
		more(r, " none");
	more(r, "; caps");
	for (i = 0; i < pmu_n_caps(pmu); i++)
		more(r, " %s", pmu_cap_at(pmu, i));
	if (!pmu_n_caps(pmu))
		more(r, " none");
}

static void check_pmu(const struct doctor *d, struct doctor_result *r, const struct pmu *pmu,
		      const struct err *e, enum doctor_status missing)
{
	const char *cause, *fix, *dir = "/sys/bus/event_source/devices/";

	if (pmu) {
		show_pmu(pmu, r);
		return;
	}
	value(r, missing, "no");
	if (strncmp(e->text, "no ", 3)) { /* not missing, but not readable either */
		why(r, "%s", e->text);
		remedy(r, "make %s%s readable; if it is, report this with its contents", dir,
		       r->title);
		return;
	}
	pmu_why_missing(&d->cpu, &cause, &fix);
	why(r, "%s", d->cpu.ibs ? cause : "the processor shows no IBS (see above)");
	remedy(r, "%s", fix);
}

static void check_pmu_op(struct doctor *d, struct doctor_result *r)
{
	check_pmu(d, r, d->op, &d->op_err, DOCTOR_NO);
}

static void check_pmu_fetch(struct doctor *d, struct doctor_result *r)
{
	check_pmu(d, r, d->fetch, &d->fetch_err, d->op ? DOCTOR_WARN : DOCTOR_NO);
}

/* Filters in hardware: which the kernel offers, and which it leaves unused. */
static void check_filters(struct doctor *d, struct doctor_result *r)
{
	const char *sep = "", *unused_sep = "", *last = "";
	const struct event_rule *rule;
	char unused[256] = "";
	size_t i;

	if (!d->op && !d->fetch) {
		value(r, DOCTOR_INFO, "none");
		return;
	}
	value(r, DOCTOR_OK, "%s", "");
	for (i = 0; (rule = event_rule_at(i)); i++) {
		const struct pmu *pmu = !strcmp(rule->pmu, "ibs_op") ? d->op : d->fetch;
		size_t n = strlen(unused);

		if (!pmu || (rule->caps && !(d->cpu.caps & rule->caps)))
			continue;
		if (pmu_format(pmu, rule->term, NULL)) {
			if (strcmp(last, rule->pmu))
				more(r, "%s%s:", sep, rule->pmu);
			more(r, " %s", rule->term);
			last = rule->pmu;
			sep = "; ";
		} else if (rule->caps) {
			snprintf(unused + n, sizeof(unused) - n, "%s%s of %s (Linux %s)",
				 unused_sep, rule->term, rule->pmu, rule->since);
			unused_sep = ", ";
		}
	}
	if (!*r->value)
		more(r, "none");
	if (*unused) {
		r->status = DOCTOR_WARN;
		why(r, "the processor can do more than this kernel's driver offers: %s", unused);
	}
}

/* --- checks: kernel --- */

static void check_kernel(struct doctor *d, struct doctor_result *r)
{
	char text[128];

	if (num_read_line(d->root, "/proc/sys/kernel/osrelease", text, sizeof(text), NULL) ||
	    !*text) {
		value(r, DOCTOR_WARN, "unknown");
		why(r, "/proc/sys/kernel/osrelease cannot be read");
	} else {
		value(r, DOCTOR_INFO, "%s", text);
	}
}

static void check_btf(struct doctor *d, struct doctor_result *r)
{
	if (d->btf) {
		value(r, DOCTOR_OK, "/sys/kernel/btf/vmlinux");
		return;
	}
	value(r, DOCTOR_NO, "no");
	why(r, "the BPF program cannot be fitted to this kernel without its types (%s)",
	    d->btf_err.text);
}

static void check_registers(struct doctor *d, struct doctor_result *r)
{
	if (!d->btf) {
		value(r, DOCTOR_INFO, "not known without BTF");
	} else if (d->btf_direct) {
		value(r, DOCTOR_OK, "direct register reads");
	} else {
		value(r, DOCTOR_INFO, "probe reads");
		why(r, "the kernel lacks bpf_cast_to_kern_ctx, bpf_rdonly_cast (Linux 6.2) or the "
		       "type perf_ibs_data; a sample costs some 350 instructions more");
	}
}

static void check_perf_link(struct doctor *d, struct doctor_result *r)
{
	if (not_tried(d, r))
		return;
	if (!d->p.link) {
		value(r, DOCTOR_OK, "yes");
	} else if (d->p.prog) {
		value(r, DOCTOR_INFO, "not known, since no program can be loaded");
	} else {
		value(r, DOCTOR_WARN, "no");
		why(r, "sampling cannot be pinned and ends with the process (Linux 5.15 brought "
		       "perf links)");
	}
}

static void check_ringbuf(struct doctor *d, struct doctor_result *r)
{
	if (not_tried(d, r))
		return;
	if (!d->p.ringbuf) {
		value(r, DOCTOR_OK, "yes");
	} else if (d->p.ringbuf == -EPERM) {
		value(r, DOCTOR_INFO, "not known, since no map can be made without privileges");
	} else {
		value(r, DOCTOR_WARN, "no");
		why(r, "'record' cannot forward samples: %s", strerror(-d->p.ringbuf));
	}
}

/* --- checks: privileges and limits --- */

static void check_privileges(struct doctor *d, struct doctor_result *r)
{
	bool bpf = has_cap(d, CAP_BPF) || has_cap(d, CAP_SYS_ADMIN);

	value(r, may_load(d) ? DOCTOR_OK : DOCTOR_NO, "uid %u:%s%s%s%s", geteuid(),
	      has_cap(d, CAP_BPF) ? " CAP_BPF" : "", has_cap(d, CAP_PERFMON) ? " CAP_PERFMON" : "",
	      has_cap(d, CAP_SYS_ADMIN) ? " CAP_SYS_ADMIN" : "",
	      has_cap(d, CAP_SYS_RESOURCE) ? " CAP_SYS_RESOURCE" : "");
	if (!d->cap_eff)
		more(r, " no capabilities");
	if (r->status == DOCTOR_OK)
		return;
	why(r, "loading BPF programs that sample needs CAP_BPF and CAP_PERFMON; %s missing",
	    bpf		 ? "CAP_PERFMON is"
	    : perfmon(d) ? "CAP_BPF is"
			 : "both are");
	if (patched_paranoid(d))
		remedy(r, "run as root; or setcap cap_bpf,cap_perfmon+ep ibscope and, for this "
			  "distribution's kernel, sysctl kernel.perf_event_paranoid=2");
}

static void check_paranoid(struct doctor *d, struct doctor_result *r)
{
	enum doctor_status bad = d->probed && d->p.sim != -EACCES ? DOCTOR_WARN : DOCTOR_NO;

	if (d->paranoid == -2) {
		value(r, DOCTOR_WARN, "unknown");
		why(r, PARANOID
		    " cannot be read: proc is not mounted, or the kernel has no perf events");
		remedy(r, "mount proc; use a kernel with CONFIG_PERF_EVENTS");
	} else if (d->paranoid <= 0 || has_cap(d, CAP_SYS_ADMIN) ||
		   (has_cap(d, CAP_PERFMON) && !patched_paranoid(d))) {
		value(r, DOCTOR_OK, "%" PRId64, d->paranoid);
	} else if (patched_paranoid(d)) {
		value(r, bad, "%" PRId64, d->paranoid);
		why(r, "above 2, this distribution's kernel lets only CAP_SYS_ADMIN sample; "
		       "CAP_PERFMON is not enough");
		remedy(r, "run with CAP_SYS_ADMIN, or: sysctl kernel.perf_event_paranoid=2");
	} else {
		value(r, DOCTOR_NO, "%" PRId64, d->paranoid);
		why(r, "above 0 it lets only CAP_PERFMON sample whole CPUs");
	}
}

static void check_unprivileged_bpf(struct doctor *d, struct doctor_result *r)
{
	const char *path = "/proc/sys/kernel/unprivileged_bpf_disabled";
	static const char *const meaning[] = { "allowed", "forbidden until reboot", "forbidden" };
	int64_t v;

	if (num_read(d->root, path, &v, NULL))
		value(r, DOCTOR_INFO, "unknown: %s cannot be read", path);
	else
		value(r, DOCTOR_INFO, "%" PRId64 " (%s)", v, v >= 0 && v <= 2 ? meaning[v] : "?");
}

static void check_map_readers(struct doctor *d, struct doctor_result *r)
{
	if (not_tried(d, r))
		return;
	if (!d->p.reader) {
		value(r, DOCTOR_OK, "any process that may open the pinned file");
	} else if (d->p.reader == -EPERM) {
		value(r, DOCTOR_WARN, "privileged processes only");
		why(r, "bpf() is closed to others, so ibscope-exporter needs CAP_BPF here (Linux "
		       "5.19 opened pinned maps by file mode)");
	} else {
		value(r, DOCTOR_INFO, "not known: %s",
		      d->p.reader == -255 ? "cannot try" : strerror(-d->p.reader));
	}
}

static void check_lockdown(struct doctor *d, struct doctor_result *r)
{
	char text[128];

	if (num_read_line(d->root, "/sys/kernel/security/lockdown", text, sizeof(text), NULL)) {
		value(r, DOCTOR_INFO, "not reported (no lockdown, or securityfs is not mounted)");
	} else if (!strstr(text, "[confidentiality]")) {
		value(r, DOCTOR_OK, "%s", strstr(text, "[integrity]") ? "integrity" : "none");
	} else {
		value(r, d->btf_direct ? DOCTOR_WARN : DOCTOR_NO, "confidentiality");
		why(r, "probe reads of kernel memory are forbidden%s",
		    d->btf_direct ? ", so only what direct reads reach is available"
				  : ", and this kernel needs them for the registers");
	}
}

static void check_memlock(struct doctor *d, struct doctor_result *r)
{
	rlim_t soft = d->p.memlock.rlim_cur;
	char text[32] = "unlimited";

	if (not_tried(d, r))
		return;
	if (soft != RLIM_INFINITY)
		snprintf(text, sizeof(text), "%llu KiB", (unsigned long long)soft / 1024);
	if (!d->p.memlock_charged) {
		value(r, DOCTOR_OK, "%s; does not matter, BPF memory is charged to the cgroup",
		      text);
	} else if (d->p.memlock_charged < 0) {
		value(r, DOCTOR_INFO, "%s; not known if the kernel charges it", text);
	} else if (can_raise_memlock(d)) {
		value(r, DOCTOR_OK, "%s; BPF maps count against it, ibscope raises it", text);
	} else {
		value(r, DOCTOR_WARN, "%s", text);
		why(r, "BPF maps count against it on this kernel (until Linux 5.11), and it cannot "
		       "be raised without CAP_SYS_RESOURCE");
	}
}

static void check_max_sample_rate(struct doctor *d, struct doctor_result *r)
{
	const char *path = "/proc/sys/kernel/perf_event_max_sample_rate";
	int64_t v, percent = 25;

	if (num_read(d->root, path, &v, NULL)) {
		value(r, DOCTOR_WARN, "unknown");
		why(r, "%s cannot be read: proc is not mounted, or the kernel has no perf events",
		    path);
	} else if (v < MAX_SAMPLE_RATE_DEFAULT) {
		value(r, DOCTOR_WARN, "%" PRId64 " Hz", v);
		why(r,
		    "below the usual %d: the kernel lowers it when an interrupt took long, and "
		    "never raises it again; more samples a second than this are lost",
		    MAX_SAMPLE_RATE_DEFAULT);
		/* With 0 or 100 the kernel takes no new rate: EINVAL (seen on 5.10 and 7.2). */
		num_read(d->root, CPU_TIME, &percent, NULL);
		if (percent == 0 || percent == 100)
			remedy(r, "sysctl kernel.perf_cpu_time_max_percent=25, then sysctl "
				  "kernel.perf_event_max_sample_rate=100000");
	} else {
		value(r, DOCTOR_OK, "%" PRId64 " Hz", v);
	}
}

static void check_cpu_time(struct doctor *d, struct doctor_result *r)
{
	int64_t v;

	if (num_read(d->root, CPU_TIME, &v, NULL)) {
		value(r, DOCTOR_INFO, "unknown: " CPU_TIME " cannot be read");
	} else if (v == 0 || v == 100) {
		value(r, DOCTOR_INFO, "%" PRId64 " %% (the kernel never lowers the sample rate)",
		      v);
	} else if (v < 5) {
		value(r, DOCTOR_WARN, "%" PRId64 " %%", v);
		why(r, "interrupts that are not slow may already lower perf_event_max_sample_rate");
	} else {
		value(r, DOCTOR_OK, "%" PRId64 " %%", v);
	}
}

/* --- checks: environment --- */

static void check_cgroup(struct doctor *d, struct doctor_result *r)
{
	struct cgroup_fs fs;
	struct err e;

	if (cgroup_mode_detect(d->root, &fs, &e)) {
		value(r, DOCTOR_WARN, "unknown");
		why(r, "%s", e.text);
		remedy(r, "mount proc");
		return;
	}
	switch (fs.mode) {
	case CGROUP_MODE_V2:
		value(r, DOCTOR_OK, "v2 at %s", fs.path);
		break;
	case CGROUP_MODE_HYBRID:
		value(r, DOCTOR_WARN, "hybrid, v2 at %s", fs.path);
		why(r, "ids are those of the v2 tree; containers that live only in v1 hierarchies "
		       "all appear as its root");
		break;
	case CGROUP_MODE_V1:
		value(r, DOCTOR_WARN, "v1");
		why(r, "no cgroup v2 is mounted: for it all tasks are in one root, so containers "
		       "cannot be told apart by it");
		break;
	case CGROUP_MODE_NONE:
		value(r, DOCTOR_WARN, "none");
		why(r, "no cgroup file system is mounted, so ids cannot become names");
		remedy(r, "mount -t cgroup2 cgroup2 /sys/fs/cgroup (in a container: mount the "
			  "host's)");
		break;
	}
	if (*fs.path && strcmp(fs.inner, "/")) {
		r->status = DOCTOR_WARN;
		why(r, "the mount at %s shows only the cgroup %s: others have no name here",
		    fs.path, fs.inner);
		remedy(r, "give the container the host's /sys/fs/cgroup and its cgroup namespace");
	}
}

static void check_bpffs(struct doctor *d, struct doctor_result *r)
{
	char path[PATH_MAX], line[1024], where[256] = "", found[256] = "";
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
		value(r, DOCTOR_WARN, "no");
		why(r, "'serve' has nowhere to pin its maps for the exporter");
	} else if (d->probed && access(found, W_OK | X_OK)) {
		value(r, DOCTOR_WARN, "%s", found);
		why(r, "this user may not create files there: %s", strerror(errno));
		remedy(r, "chown a directory in it to this user, or run as root");
	} else {
		value(r, DOCTOR_OK, "%s", found);
	}
}

/* --- checks: tried --- */

/* Why perf_event_open failed, for IBS and for the software clock. */
static void explain_open(const struct doctor *d, struct doctor_result *r, int err)
{
	switch (-err) {
	case EACCES:
		why(r, "no privilege: perf_event_open on a whole CPU needs %s",
		    patched_paranoid(d) ? "CAP_SYS_ADMIN while perf_event_paranoid is above 2"
					: "CAP_PERFMON");
		remedy(r, "%s",
		       patched_paranoid(d)
			       ? "run as root, or: sysctl kernel.perf_event_paranoid=2 and "
				 "CAP_PERFMON"
			       : "run as root or with CAP_PERFMON (systemd: AmbientCapabilities=)");
		break;
	case EPERM:
		why(r, "refused by a seccomp filter or a security module, as containers have them");
		remedy(r, "allow perf_event_open: give the container CAP_PERFMON (and, for some "
			  "runtimes, CAP_SYS_ADMIN) or an unconfined seccomp profile");
		break;
	case EINVAL:
	case EOPNOTSUPP:
		why(r, "the kernel's driver refuses a plain event (%s)", strerror(-err));
		remedy(r, "please report this with the output of 'ibscope doctor --json'");
		break;
	default:
		why(r, "perf_event_open on cpu%d: %s", d->p.cpu, strerror(-err));
	}
}

static void check_bpf_load(struct doctor *d, struct doctor_result *r)
{
	if (not_tried(d, r))
		return;
	if (!d->p.prog) {
		value(r, DOCTOR_OK, "yes");
		return;
	}
	value(r, DOCTOR_NO, "no");
	why(r, "loading a program of two instructions: %s", strerror(-d->p.prog));
	if (d->p.prog != -EPERM || !may_load(d))
		return;
	if (d->p.memlock_charged > 0 && !can_raise_memlock(d))
		remedy(r, "raise the limit on locked memory: ulimit -l unlimited; systemd: "
			  "LimitMEMLOCK=infinity");
	else
		remedy(r, "a seccomp filter or security module forbids bpf(): allow it for this "
			  "container");
}

static void check_perf_open(struct doctor *d, struct doctor_result *r)
{
	if (not_tried(d, r))
		return;
	if (!d->op) {
		value(r, DOCTOR_NO, "no");
		why(r, "there is no usable ibs_op PMU");
	} else if (!d->p.open) {
		value(r, DOCTOR_OK, "yes, on cpu%d", d->p.cpu);
	} else {
		value(r, DOCTOR_NO, "no");
		explain_open(d, r, d->p.open);
	}
}

static void check_attach(struct doctor *d, struct doctor_result *r)
{
	if (not_tried(d, r))
		return;
	if (!d->p.attach) {
		value(r, DOCTOR_OK, "yes");
		return;
	}
	value(r, DOCTOR_NO, "no");
	if (d->p.open || d->p.prog)
		why(r, "%s", d->p.open ? "there is no event to attach to" : "there is no program");
	else
		why(r, "PERF_EVENT_IOC_SET_BPF: %s", strerror(-d->p.attach));
}

static void check_other_user(struct doctor *d, struct doctor_result *r)
{
	uint64_t percent;

	if (not_tried(d, r))
		return;
	if (d->p.open) {
		value(r, DOCTOR_INFO, "not known, since no event can be opened");
		return;
	}
	if (d->p.shared || !d->p.enabled_ns) {
		value(r, DOCTOR_WARN, "unknown");
		why(r, "the event did not run on cpu%d: %s", d->p.cpu,
		    d->p.shared ? strerror(-d->p.shared) : "it was never enabled");
		remedy(r, "try again; if it stays, report this");
		return;
	}
	percent = d->p.running_ns * 100 / d->p.enabled_ns;
	if (percent >= 98) {
		value(r, DOCTOR_OK, "none on cpu%d", d->p.cpu);
		return;
	}
	value(r, DOCTOR_WARN, "yes, on cpu%d", d->p.cpu);
	why(r,
	    "a test event had the hardware only %" PRIu64
	    " %% of the time: another ibs_op user is active, and each CPU has one",
	    percent);
}

static void check_sim(struct doctor *d, struct doctor_result *r)
{
	if (not_tried(d, r))
		return;
	if (!d->p.sim && !d->p.prog) {
		value(r, DOCTOR_OK, "yes");
		return;
	}
	value(r, DOCTOR_NO, "no");
	if (d->p.sim)
		explain_open(d, r, d->p.sim);
	else
		why(r, "no BPF program can be loaded");
}

/* clang-format off */
static const struct check {
	const char *id, *group, *title;
	void (*fn)(struct doctor *d, struct doctor_result *r);
	const char *remedy; /* unless the check has a better one */
} checks[] = {
	{ "cpu", "Hardware", "processor", check_cpu,
	  "run on an AMD machine; --source sim shows the tool on simulated samples" },
	{ "ibs_cpuid", "Hardware", "IBS in CPUID", check_ibs_cpuid,
	  "look for 'IBS' in the BIOS setup" },
	{ "hypervisor", "Hardware", "virtual machine", check_hypervisor,
	  "run on the host or on a bare-metal instance" },
	{ "ibs_caps", "Hardware", "IBS capabilities", check_ibs_caps, "" },
	{ "quirks", "Hardware", "errata in force", check_quirks, "" },

	{ "pmu_ibs_op", "PMU", "ibs_op", check_pmu_op, "" },
	{ "pmu_ibs_fetch", "PMU", "ibs_fetch", check_pmu_fetch, "" },
	{ "hw_filters", "PMU", "terms that work", check_filters,
	  "a newer kernel; until then --min-lat, --src, --user and --kernel filter in BPF" },

	{ "kernel", "Kernel", "release", check_kernel, "mount proc" },
	{ "btf", "Kernel", "BTF types", check_btf,
	  "use a kernel with CONFIG_DEBUG_INFO_BTF=y (all current distributions have it)" },
	{ "registers", "Kernel", "register access", check_registers, "" },
	{ "perf_link", "Kernel", "perf event links", check_perf_link,
	  "keep the process running, or use a newer kernel" },
	{ "ringbuf", "Kernel", "BPF ring buffer", check_ringbuf, "use Linux 5.8 or later" },

	{ "privileges", "Privileges and limits", "capabilities", check_privileges,
	  "run as root, or: setcap cap_bpf,cap_perfmon+ep ibscope; systemd: "
	  "AmbientCapabilities=CAP_BPF CAP_PERFMON" },
	{ "paranoid", "Privileges and limits", "perf_event_paranoid", check_paranoid,
	  "run as root or with CAP_PERFMON" },
	{ "unprivileged_bpf", "Privileges and limits", "unprivileged bpf()", check_unprivileged_bpf,
	  "" },
	{ "map_readers", "Privileges and limits", "pinned maps readable by", check_map_readers,
	  "give the exporter CAP_BPF, or use a newer kernel" },
	{ "lockdown", "Privileges and limits", "kernel lockdown", check_lockdown,
	  "boot with lockdown=integrity" },
	{ "memlock", "Privileges and limits", "locked memory", check_memlock,
	  "ulimit -l unlimited; systemd: LimitMEMLOCK=infinity" },
	{ "max_sample_rate", "Privileges and limits", "max_sample_rate", check_max_sample_rate,
	  "sysctl kernel.perf_event_max_sample_rate=100000" },
	{ "cpu_time", "Privileges and limits", "perf_cpu_time_max", check_cpu_time,
	  "sysctl kernel.perf_cpu_time_max_percent=25" },

	{ "cgroup", "Environment", "cgroups", check_cgroup,
	  "boot with systemd.unified_cgroup_hierarchy=1, or use a container runtime on v2" },
	{ "bpffs", "Environment", "bpffs", check_bpffs, "mount -t bpf bpf /sys/fs/bpf" },

	{ "bpf_load", "Tried", "load a BPF program", check_bpf_load,
	  "run as root or with CAP_BPF and CAP_PERFMON" },
	{ "perf_open", "Tried", "open ibs_op", check_perf_open, "see ibs_op above" },
	{ "attach", "Tried", "attach the program", check_attach, "see the two rows above" },
	{ "other_user", "Tried", "another IBS user", check_other_user,
	  "stop the other profiler (perf, uProf, another ibscope), or live with fewer samples" },
	{ "sim", "Tried", "open the software clock", check_sim,
	  "run as root or with CAP_BPF and CAP_PERFMON" },
};
/* clang-format on */

#define N_CHECKS (sizeof(checks) / sizeof(checks[0]))

/* --- the report --- */

static void run_checks(struct doctor *d)
{
	for (d->n = 0; d->n < N_CHECKS; d->n++) {
		const struct check *c = &checks[d->n];
		struct doctor_result *r = &d->results[d->n];

		r->id = c->id;
		r->group = c->group;
		r->title = c->title;
		c->fn(d, r);
		if (r->status < DOCTOR_WARN)
			*r->remedy = 0;
		else if (!*r->remedy)
			remedy(r, "%s", c->remedy);
	}
}

int doctor_run(const struct doctor_opts *opts, struct doctor **out, struct err *e)
{
	libbpf_print_fn_t old;
	struct doctor *d;

	d = calloc(1, sizeof(*d));
	if (d)
		d->results = calloc(N_CHECKS, sizeof(*d->results));
	if (!d || !d->results) {
		doctor_free(d);
		return err_set(e, -ENOMEM, "doctor: out of memory");
	}
	d->root = opts && opts->root ? opts->root : "";
	d->probed = !opts || !opts->no_probes;
	if (opts && opts->cpu)
		d->cpu = *opts->cpu;
	else
		cpu_info_read(&d->cpu);
	pmu_open(d->root, "ibs_op", &d->cpu, &d->op, &d->op_err);
	pmu_open(d->root, "ibs_fetch", &d->cpu, &d->fetch, &d->fetch_err);
	old = libbpf_set_print(NULL); /* what it would say is a result here */
	read_cap_eff(d);
	if (num_read(d->root, PARANOID, &d->paranoid, NULL))
		d->paranoid = -2;
	read_btf(d);
	if (d->probed)
		probe(d);
	libbpf_set_print(old);
	run_checks(d);
	*out = d;
	return 0;
}

void doctor_free(struct doctor *d)
{
	if (!d)
		return;
	pmu_close(d->op);
	pmu_close(d->fetch);
	free(d->results);
	free(d);
}

size_t doctor_n(const struct doctor *d)
{
	return d->n;
}

const struct doctor_result *doctor_at(const struct doctor *d, size_t i)
{
	return &d->results[i];
}

const struct doctor_result *doctor_find(const struct doctor *d, const char *id)
{
	size_t i;

	for (i = 0; i < d->n; i++) {
		if (!strcmp(d->results[i].id, id))
			return &d->results[i];
	}
	return NULL;
}

const char *doctor_status_name(enum doctor_status status)
{
	static const char *const names[] = {
		[DOCTOR_OK] = "ok",
		[DOCTOR_INFO] = "info",
		[DOCTOR_WARN] = "warn",
		[DOCTOR_NO] = "no",
	};

	return names[status];
}

/* What the real program needs besides: its types, and a way to read kernel memory. */
static bool can_run(const struct doctor *d)
{
	const struct doctor_result *lockdown = doctor_find(d, "lockdown");

	return d->probed && d->btf && !d->p.prog && lockdown && lockdown->status != DOCTOR_NO;
}

bool doctor_can_sample(const struct doctor *d)
{
	return can_run(d) && d->op && !d->p.open && !d->p.attach;
}

bool doctor_can_simulate(const struct doctor *d)
{
	return can_run(d) && !d->p.sim;
}

#define INDENT 32 /* where values begin */

/* Break @s at blanks; the first line continues what is written, the others are indented. */
static void wrap(FILE *f, const char *s, unsigned int width)
{
	size_t room = width - INDENT, n, cut;

	for (;;) {
		n = strlen(s);
		for (cut = n; cut > room;) {
			const char *blank = memrchr(s, ' ', cut > room + 1 ? room + 1 : cut);

			cut = blank ? (size_t)(blank - s) : strcspn(s, " ");
			if (!blank)
				break;
		}
		fprintf(f, "%.*s\n", (int)cut, s);
		s += cut + strspn(s + cut, " ");
		if (!*s)
			return;
		fprintf(f, "%*s", INDENT, "");
	}
}

static void print_result(const struct doctor_result *r, FILE *f, unsigned int width, bool color)
{
	static const char *const codes[] = {
		[DOCTOR_OK] = "\033[32m",
		[DOCTOR_INFO] = "",
		[DOCTOR_WARN] = "\033[33m",
		[DOCTOR_NO] = "\033[1;31m",
	};
	static const char *const marks[] = {
		[DOCTOR_OK] = "ok",
		[DOCTOR_INFO] = "-",
		[DOCTOR_WARN] = "warn",
		[DOCTOR_NO] = "NO",
	};

	fprintf(f, "  %s%-4s%s  %-*s", color ? codes[r->status] : "", marks[r->status],
		color && *codes[r->status] ? "\033[0m" : "", INDENT - 8, r->title);
	wrap(f, r->value, width);
	if (*r->why) {
		fprintf(f, "%*s", INDENT, "why: ");
		wrap(f, r->why, width);
	}
	if (*r->remedy) {
		fprintf(f, "%*s", INDENT, "do: ");
		wrap(f, r->remedy, width);
	}
}

void doctor_print(const struct doctor *d, FILE *f, unsigned int width, bool color)
{
	const struct doctor_result *first = NULL;
	const char *group = "";
	size_t i, warns = 0;

	if (width < 60)
		width = 60;
	for (i = 0; i < d->n; i++) {
		const struct doctor_result *r = &d->results[i];

		if (strcmp(group, r->group))
			fprintf(f, "%s%s\n", *group ? "\n" : "", r->group);
		group = r->group;
		print_result(r, f, width, color);
		warns += r->status == DOCTOR_WARN;
		if (!first && r->status == DOCTOR_NO)
			first = r;
	}
	fprintf(f, "\n");
	if (doctor_can_sample(d))
		fprintf(f, "IBS sampling works here");
	else
		fprintf(f, "IBS sampling does not work here");
	if (warns)
		fprintf(f, " (%zu warning%s above)", warns, warns > 1 ? "s" : "");
	fprintf(f, ".\n");
	if (!doctor_can_sample(d) && first)
		fprintf(f, "First obstacle: %s: %s.\nDo: %s.\n", first->title, first->why,
			first->remedy);
	if (!doctor_can_sample(d) && doctor_can_simulate(d))
		fprintf(f, "--source sim works: the same program on simulated samples.\n");
}

static json_t *text_or_null(const char *s)
{
	return *s ? json_string(s) : json_null();
}

static json_t *to_json(const struct doctor *d)
{
	json_t *list = json_array();
	size_t i;

	for (i = 0; i < d->n; i++) {
		const struct doctor_result *r = &d->results[i];

		json_array_append_new(
			list, json_pack("{s:s,s:s,s:s,s:s,s:s,s:o,s:o}", "id", r->id, "group",
					r->group, "title", r->title, "status",
					doctor_status_name(r->status), "value", r->value, "why",
					text_or_null(r->why), "remedy", text_or_null(r->remedy)));
	}
	return json_pack("{s:o,s:b,s:{s:b,s:b}}", "checks", list, "can_sample",
			 doctor_can_sample(d), "source_available", "ibs", doctor_can_sample(d),
			 "sim", doctor_can_simulate(d));
}

int doctor_print_json(const struct doctor *d, FILE *f, struct err *e)
{
	json_t *o = to_json(d);
	int err;

	if (!o)
		return err_set(e, -ENOMEM, "doctor: out of memory");
	err = json_dumpf(o, f, JSON_INDENT(2)) || fputc('\n', f) == EOF;
	json_decref(o);
	return err ? err_set(e, -EIO, "cannot write the report: %s", strerror(errno)) : 0;
}
