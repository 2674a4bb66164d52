// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "doctor_private.h"

#include <errno.h>
#include <linux/bpf.h>
#include <linux/perf_event.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/cpulist.h"
#include "event/event.h"
#include "perf/perf.h"
#include "perf/sample_cost.h"

#include "loop_code.h"
#include "loops_place.h"
#include "own_samples.h"

#include <ibscope/op_fields.h>
#include <sched.h>

#define OTHER_USER_MS 50

static int sys_bpf(int cmd, union bpf_attr *attr)
{
	return syscall(SYS_bpf, cmd, attr, sizeof(*attr)) < 0 ? -errno : 0;
}

/* Run @fn in a child, which can give up privileges. Return: its value, 0 .. 255. */
static int in_child(int (*fn)(void))
{
	int status;
	pid_t pid;

	fflush(NULL); /* otherwise the child would write buffered output again */
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

/* v5.19: bpf() on a map needs no capability, only its file's mode; so a bad fd gives EBADF, not EPERM. */
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

/* The default event; without OpCnt the one that counts cycles. */
static int ibs_attr(const struct pmu *op, const struct cpu_info *cpu, struct perf_event_attr *attr)
{
	struct event_spec spec;
	int err;

	err = event_parse(EVENT_DEFAULT, &spec, NULL);
	if (!err)
		err = event_attr(&spec, op, cpu, NULL, attr, NULL);
	if (err != -EOPNOTSUPP)
		return err;
	event_parse("ibs_op//", &spec, NULL);
	return event_attr(&spec, op, cpu, NULL, attr, NULL);
}

/* Measure the event's share of time on the PMU. */
static int measure_share(int fd, struct doctor_probes *p)
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

static void probe_ibs(struct doctor_probes *p, const struct pmu *op, const struct cpu_info *cpu,
		      int prog)
{
	struct perf_event_attr attr;
	int fd;

	p->open = p->attach = p->shared = -ENODEV;
	if (!op)
		return;
	p->open = ibs_attr(op, cpu, &attr);
	if (p->open)
		return;
	fd = perf_open(&attr, p->cpu);
	p->open = fd < 0 ? -errno : 0;
	if (fd < 0)
		return;
	if (prog >= 0)
		p->attach = ioctl(fd, PERF_EVENT_IOC_SET_BPF, prog) ? -errno : 0;
	else
		p->attach = prog;
	p->shared = measure_share(fd, p);
	close(fd);
}

#define ADDRESS_PERIOD 100000
#define ADDRESS_ROUNDS 1000
#define ADDRESS_S      0.02 /* of the loop's CPU time */
#define ADDRESS_TRIES  10   /* until a sample has one: few are taken where a host is busy */

static void add_address(void *ctx, const void *raw, size_t bytes)
{
	struct doctor_probes *p = ctx;
	struct ibs_op_sample s;

	if (ibs_op_parse_raw(raw, bytes, 0, &s) || !(s.reg[IBS_OP_DATA3] & IBS_OP_DATA3_MEM) ||
	    !ibs_op_phys_known(s.cpu.caps, s.reg[IBS_OP_DATA3]))
		return;
	p->phys++;
	p->phys_zero += !s.reg[IBS_DC_PHYSADDR];
}

/* Does the processor, or the hypervisor, report physical addresses? */
static void probe_addresses(struct doctor_probes *p, const struct cpu_info *cpu)
{
	static _Alignas(LOOP_LINE) char line[LOOP_LINE];
	struct own_samples *own;
	cpu_set_t before;
	struct err ignored;

	if (p->open || sched_getaffinity(0, sizeof(before), &before))
		return;
	if (!cpulist_bind(p->cpu, &ignored) &&
	    !own_samples_open(cpu, EVENT_DEFAULT, ADDRESS_PERIOD, p->cpu, &own, &ignored)) {
		for (int i = 0; i < ADDRESS_TRIES && !p->phys; i++) {
			const double end = thread_cpu_s() + ADDRESS_S;

			if (own_samples_start(own, &ignored))
				break;
			while (thread_cpu_s() < end)
				loop_stores.run(line, ADDRESS_ROUNDS);
			own_samples_stop(own, add_address, p);
		}
		own_samples_close(own);
	}
	sched_setaffinity(0, sizeof(before), &before);
}

static void probe_core(struct doctor_probes *p, const struct cpu_info *cpu)
{
	for (int i = 0; i < CORE_EVENT_N; i++) {
		const struct perf_event_attr attr = core_event_attr(i);
		int fd = core_event_known(cpu, i) ? perf_open(&attr, p->cpu) : -1;

		p->core[i] = !core_event_known(cpu, i) ? -ENODEV : fd < 0 ? -errno : 0;
		if (fd >= 0)
			close(fd);
	}
}

static void probe_sim(struct doctor_probes *p, int prog)
{
	struct perf_event_attr attr = {
		.size = sizeof(attr),
		.type = PERF_TYPE_SOFTWARE,
		.config = PERF_COUNT_SW_CPU_CLOCK,
		.sample_period = 1000000,
		.disabled = 1,
	};
	int fd = perf_open(&attr, p->cpu);

	p->sim = fd < 0 ? -errno : 0;
	if (fd >= 0 && prog >= 0 && ioctl(fd, PERF_EVENT_IOC_SET_BPF, prog))
		p->sim = -errno;
	if (fd >= 0)
		close(fd);
}

void doctor_probe(struct doctor_probes *p, const struct pmu *op, const struct cpu_info *cpu)
{
	struct cpulist online;
	int prog;

	getrlimit(RLIMIT_MEMLOCK, &p->memlock); /* libbpf raises it later */
	p->reader = -in_child(child_reader);
	p->cpu = cpulist_read("", "online", &online, NULL) ? 0 : cpulist_next(&online, 0);

	prog = sample_cost_empty_program();
	p->prog = prog < 0 ? prog : 0;
	p->features_known = kernel_features_probe(&p->features, NULL) != -EPERM && prog >= 0;
	probe_ibs(p, op, cpu, prog);
	probe_addresses(p, cpu);
	probe_core(p, cpu);
	probe_sim(p, prog);
	if (prog >= 0)
		close(prog);
}
