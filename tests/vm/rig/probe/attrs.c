// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// attrs: which perf_event_attr combinations the running ibs driver accepts.
#include <errno.h>
#include <linux/perf_event.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

static int type_of(const char *pmu)
{
	char p[200];
	int t = -1;
	FILE *f;

	snprintf(p, sizeof(p), "/sys/bus/event_source/devices/%s/type", pmu);
	f = fopen(p, "r");
	if (f) {
		if (fscanf(f, "%d", &t) != 1)
			t = -1;
		fclose(f);
	}
	return t;
}

static const char *name(int e)
{
	switch (e) {
	case EINVAL: return "EINVAL"; case ENOENT: return "ENOENT";
	case EOPNOTSUPP: return "EOPNOTSUPP"; case ENOSPC: return "ENOSPC";
	case EACCES: return "EACCES"; case EPERM: return "EPERM";
	case EBUSY: return "EBUSY"; case E2BIG: return "E2BIG";
	case ENODEV: return "ENODEV";
	}
	return strerror(e);
}

static int try(const char *what, struct perf_event_attr *a, int pid, int cpu, int group)
{
	int fd = syscall(SYS_perf_event_open, a, pid, cpu, group, 0);

	printf("%-52s %s\n", what, fd < 0 ? name(errno) : "ok");
	fflush(stdout);
	return fd;
}

#define T(what, pid, cpu, ...) do { \
	struct perf_event_attr a = base; __VA_ARGS__; \
	int fd_ = try(what, &a, pid, cpu, -1); if (fd_ >= 0) close(fd_); } while (0)

int main(void)
{
	int op = type_of("ibs_op"), fe = type_of("ibs_fetch");
	struct perf_event_attr base = {
		.size = sizeof(base), .type = op, .sample_period = 100000,
		.sample_type = PERF_SAMPLE_RAW | PERF_SAMPLE_IP, .disabled = 1,
	};
	int fd, fd2;

	T("op, cpu-wide, period 100000", -1, 0, );
	T("op, per task (pid self, cpu -1)", 0, -1, );
	T("op, per task and cpu (pid self, cpu 0)", 0, 0, );
	T("op, per task, inherit", 0, -1, a.inherit = 1);
	T("op, period 100001 (low nibble set)", -1, 0, a.sample_period = 100001);
	T("op, period 0x10", -1, 0, a.sample_period = 0x10);
	T("op, period 0x80", -1, 0, a.sample_period = 0x80);
	T("op, period 0x90", -1, 0, a.sample_period = 0x90);
	T("op, period 8", -1, 0, a.sample_period = 8);
	T("op, period 0 (counting), config 0", -1, 0, a.sample_period = 0);
	T("op, period 0, MaxCnt in config 0x186a", -1, 0, a.sample_period = 0; a.config = 0x186a);
	T("op, period 100000 and MaxCnt in config", -1, 0, a.config = 0x186a);
	T("op, period 1<<28 (beyond 27 bits)", -1, 0, a.sample_period = 1 << 28);
	T("op, freq 1000", -1, 0, a.freq = 1; a.sample_freq = 1000);
	T("op, freq 100000", -1, 0, a.freq = 1; a.sample_freq = 100000);
	T("op, freq 200000 (above max_sample_rate)", -1, 0, a.freq = 1; a.sample_freq = 200000);
	T("op, cnt_ctl=1 (config 1<<19)", -1, 0, a.config = 1 << 19);
	T("op, l3missonly=1 (config 1<<16)", -1, 0, a.config = 1 << 16);
	T("op, reserved config bit 1<<27", -1, 0, a.config = 1 << 27);
	T("op, enable bit in config 1<<17", -1, 0, a.config = 1 << 17);
	T("op, config1=0x100 (ldlat 256)", -1, 0, a.config1 = 0x100);
	T("op, config1=0x7f (ldlat 127)", -1, 0, a.config1 = 0x7f);
	T("op, config1=0x801 (ldlat 2049)", -1, 0, a.config1 = 0x801);
	T("op, config2=1 (swfilt)", -1, 0, a.config2 = 1);
	T("op, exclude_kernel", -1, 0, a.exclude_kernel = 1);
	T("op, exclude_user", -1, 0, a.exclude_user = 1);
	T("op, exclude_hv", -1, 0, a.exclude_hv = 1);
	T("op, exclude_kernel + swfilt", -1, 0, a.exclude_kernel = 1; a.config2 = 1);
	T("op, exclude_idle", -1, 0, a.exclude_idle = 1);
	T("op, exclude_guest", -1, 0, a.exclude_guest = 1);
	T("op, exclude_host", -1, 0, a.exclude_host = 1);
	T("op, precise_ip 1", -1, 0, a.precise_ip = 1);
	T("op, precise_ip 2", -1, 0, a.precise_ip = 2);
	T("op, precise_ip 3", -1, 0, a.precise_ip = 3);
	T("op, pinned", -1, 0, a.pinned = 1);
	T("op, exclusive", -1, 0, a.exclusive = 1);
	T("op, sample_type DATA_SRC|WEIGHT|ADDR|PHYS_ADDR", -1, 0, a.sample_type |=
	  PERF_SAMPLE_DATA_SRC | PERF_SAMPLE_WEIGHT | PERF_SAMPLE_ADDR | PERF_SAMPLE_PHYS_ADDR);
	T("op, sample_type WEIGHT_STRUCT", -1, 0, a.sample_type |= 1U << 24);
	T("op, sample_type DATA_PAGE_SIZE", -1, 0, a.sample_type |= 1U << 22);
	T("op, sample_type CALLCHAIN", -1, 0, a.sample_type |= PERF_SAMPLE_CALLCHAIN);
	T("op, sample_type BRANCH_STACK", -1, 0, a.sample_type |= PERF_SAMPLE_BRANCH_STACK;
	  a.branch_sample_type = PERF_SAMPLE_BRANCH_ANY);
	T("fetch, cpu-wide, period 100000", -1, 0, a.type = fe);
	T("fetch, rand_en (1<<57)", -1, 0, a.type = fe; a.config = 1ULL << 57);
	T("fetch, l3missonly (1<<59)", -1, 0, a.type = fe; a.config = 1ULL << 59);
	T("fetch, period 0x10", -1, 0, a.type = fe; a.sample_period = 0x10);
	T("cycles:p (HW cycles, precise_ip 1)", -1, 0, a.type = 0; a.config = 0; a.precise_ip = 1);
	T("r076:p", -1, 0, a.type = 4; a.config = 0x76; a.precise_ip = 1);
	T("r0C1:p", -1, 0, a.type = 4; a.config = 0xc1; a.precise_ip = 1);

	base.disabled = 0;
	fd = try("two op events on one cpu: first", &base, -1, 0, -1);
	fd2 = try("two op events on one cpu: second opens", &base, -1, 0, -1);
	if (fd2 >= 0) {
		struct { unsigned long long v, en, run; } r;
		struct perf_event_attr a = base;

		close(fd);
		close(fd2);
		a.read_format = PERF_FORMAT_TOTAL_TIME_ENABLED | PERF_FORMAT_TOTAL_TIME_RUNNING;
		fd = syscall(SYS_perf_event_open, &a, -1, 0, -1, 0);
		fd2 = syscall(SYS_perf_event_open, &a, -1, 0, -1, 0);
		usleep(300000);
		if (read(fd, &r, sizeof(r)) == sizeof(r))
			printf("  first:  running %llu%% of enabled\n", r.en ? r.run * 100 / r.en : 0);
		if (read(fd2, &r, sizeof(r)) == sizeof(r))
			printf("  second: running %llu%% of enabled\n", r.en ? r.run * 100 / r.en : 0);
	}
	close(fd2);
	fd2 = try("op event in a group led by an op event", &base, -1, 0, fd);
	if (fd2 >= 0)
		close(fd2);
	close(fd);
	T("op with pinned while another is active", -1, 0, a.pinned = 1);

	struct perf_event_attr ld = { .size = sizeof(ld), .type = PERF_TYPE_SOFTWARE,
				      .config = PERF_COUNT_SW_CPU_CLOCK };
	fd = try("software leader", &ld, -1, 0, -1);
	fd2 = try("op event in a group led by a software event", &base, -1, 0, fd);
	close(fd2);
	close(fd);
	fd = try("ioctl PERIOD: event", &base, -1, 0, -1);
	for (unsigned long long p = 200000; p < 200016; p += 15) {
		int r = ioctl(fd, PERF_EVENT_IOC_PERIOD, &p);
		printf("  PERF_EVENT_IOC_PERIOD %llu: %s\n", p, r ? name(errno) : "ok");
	}
	{
		unsigned long long p = 0x80;
		int r = ioctl(fd, PERF_EVENT_IOC_PERIOD, &p);
		printf("  PERF_EVENT_IOC_PERIOD 0x80: %s\n", r ? name(errno) : "ok");
	}
	close(fd);

	if (fork() == 0) {
		if (setgid(65534) || setuid(65534))
			_exit(1);
		prctl(PR_SET_DUMPABLE, 1);
		system("echo paranoid=$(cat /proc/sys/kernel/perf_event_paranoid)");
		base.disabled = 1;
		T("unprivileged: op, cpu-wide", -1, 0, );
		T("unprivileged: op, per task", 0, -1, );
		T("unprivileged: op, per task, exclude_kernel", 0, -1, a.exclude_kernel = 1);
		T("unprivileged: op, per task, excl_kernel+swfilt", 0, -1, a.exclude_kernel = 1; a.config2 = 1);
		_exit(0);
	}
	wait(NULL);
	return 0;
}
