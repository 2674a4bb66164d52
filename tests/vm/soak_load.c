// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// soak_load cpu DIR CPU SHARE: busy on one CPU for SHARE percent of the time, in a cgroup v2
//	directory that exists.
// soak_load churn DIR MS STOP: a cgroup made below DIR every MS, with a process that is busy in it
//	and ends; each is removed when some others were made. Until the file STOP is there.
// soak_load share SECONDS PERIOD FILE: another user of ibs_op: samples all CPUs, and appends to FILE
//	the CPU and the registers of each of its samples, as the rig's log writes them, then a line "lost N".
#define _GNU_SOURCE
#include "busy.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/perf_event.h>
#include <poll.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define CPUS_MAX   64
#define RING_PAGES 64
#define ALIVE	   8 /* cgroups at a time */
#define BUSY_S	   0.12

static int load_cpu(const char *dir, int cpu, int share)
{
	if (join(dir) || pin(cpu) || nice(10) < 0)
		return perror("soak_load"), 1;
	for (;;) {
		spin_until(now() + share * 2e-4);
		usleep((100 - share) * 200);
	}
}

static int churn(const char *dir, int ms, const char *stop)
{
	double start = now();
	char path[4096];
	pid_t child[ALIVE];
	int n = INT_MAX - ALIVE;

	for (int i = 0; i < n + ALIVE; i++) {
		if (n > i && !access(stop, F_OK))
			n = i;
		if (i >= ALIVE) {
			int status;

			waitpid(child[i % ALIVE], &status, 0);
			snprintf(path, sizeof(path), "%s/c%d", dir, i - ALIVE);
			if (status || rmdir(path))
				return perror(path), 1;
		}
		if (i >= n)
			continue;
		snprintf(path, sizeof(path), "%s/c%d", dir, i);
		if (mkdir(path, 0755))
			return perror(path), 1;
		child[i % ALIVE] = fork();
		if (!child[i % ALIVE]) {
			if (join(path))
				_exit(1);
			spin_until(now() + BUSY_S);
			_exit(0);
		}
		while (now() < start + (i + 1) * ms / 1e3)
			usleep(10000);
	}
	printf("%d cgroups in %.0f s\n", n, now() - start);
	return 0;
}

struct event {
	int fd;
	struct perf_event_mmap_page *ring;
};

static void ring_copy(const struct perf_event_mmap_page *ring, uint64_t at, void *dst, size_t len)
{
	const char *data = (const char *)ring + ring->data_offset;

	for (size_t i = 0; i < len; i++)
		((char *)dst)[i] = data[(at + i) % ring->data_size];
}

/* Raw data are the caps and the registers CTL RIP DATA DATA2 DATA3 LINAD PHYSAD ... */
static void print_sample(FILE *f, int cpu, const char *raw)
{
	uint64_t reg[7];

	memcpy(reg, raw + 4, sizeof(reg));
	fprintf(f, "%d", cpu);
	for (int i = 0; i < 7; i++)
		fprintf(f, ",0x%llx", (unsigned long long)reg[i]);
	fputc('\n', f);
}

static void drain(FILE *f, int cpu, const struct event *e, uint64_t *lost)
{
	uint64_t head = __atomic_load_n(&e->ring->data_head, __ATOMIC_ACQUIRE);
	uint64_t tail = e->ring->data_tail;

	while (tail < head) {
		union {
			struct perf_event_header h;
			char bytes[512];
		} rec;

		ring_copy(e->ring, tail, &rec, sizeof(rec.h));
		if (rec.h.size < sizeof(rec.bytes))
			ring_copy(e->ring, tail, &rec, rec.h.size);
		if (rec.h.type == PERF_RECORD_SAMPLE)
			print_sample(f, cpu, rec.bytes + sizeof(rec.h) + 4);
		else if (rec.h.type == PERF_RECORD_LOST)
			*lost += *(uint64_t *)(rec.bytes + sizeof(rec.h) + 8);
		tail += rec.h.size;
	}
	__atomic_store_n(&e->ring->data_tail, head, __ATOMIC_RELEASE);
}

static int open_event(struct event *e, int cpu, int type, uint64_t period)
{
	struct perf_event_attr attr = { .size = sizeof(attr),
					.type = type,
					.sample_period = period,
					.sample_type = PERF_SAMPLE_RAW,
					.disabled = 1 };

	e->fd = syscall(SYS_perf_event_open, &attr, -1, cpu, -1, 0);
	if (e->fd < 0)
		return errno == ENODEV ? 0 : -1;
	e->ring = mmap(NULL, (1 + RING_PAGES) * 4096, PROT_READ | PROT_WRITE, MAP_SHARED, e->fd, 0);
	return e->ring == MAP_FAILED ? -1 : ioctl(e->fd, PERF_EVENT_IOC_ENABLE, 0);
}

static int share_pmu(double seconds, uint64_t period, const char *file)
{
	struct event ev[CPUS_MAX];
	double end = now() + seconds;
	uint64_t lost = 0;
	int type, n = sysconf(_SC_NPROCESSORS_CONF);
	FILE *f = fopen("/sys/bus/event_source/devices/ibs_op/type", "r");

	if (!f || fscanf(f, "%d", &type) != 1 || fclose(f))
		return perror("ibs_op"), 1;
	f = fopen(file, "a");
	if (!f)
		return perror(file), 1;
	for (int cpu = 0; cpu < n; cpu++)
		if (open_event(&ev[cpu], cpu, type, period))
			return perror("perf_event_open"), 1;
	while (now() < end) {
		usleep(50000);
		for (int cpu = 0; cpu < n; cpu++)
			if (ev[cpu].fd >= 0)
				drain(f, cpu, &ev[cpu], &lost);
	}
	for (int cpu = 0; cpu < n; cpu++) {
		if (ev[cpu].fd < 0)
			continue;
		ioctl(ev[cpu].fd, PERF_EVENT_IOC_DISABLE, 0);
		drain(f, cpu, &ev[cpu], &lost);
	}
	fprintf(f, "lost %llu\n", (unsigned long long)lost);
	return fclose(f) ? perror(file), 1 : 0;
}

int main(int argc, char **argv)
{
	if (argc == 5 && !strcmp(argv[1], "cpu"))
		return load_cpu(argv[2], atoi(argv[3]), atoi(argv[4]));
	if (argc == 5 && !strcmp(argv[1], "churn"))
		return churn(argv[2], atoi(argv[3]), argv[4]);
	if (argc == 5 && !strcmp(argv[1], "share"))
		return share_pmu(atof(argv[2]), strtoull(argv[3], NULL, 0), argv[4]);
	return fprintf(stderr, "soak_load: see its source\n"), 125;
}
