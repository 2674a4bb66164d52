// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "loops_place.h"

#include "base/cpulist.h"
#include "base/num.h"
#include "base/std.h"

#include <sched.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#define CPU_DIR	   "/sys/devices/system/cpu/cpu%u/"
#define NODE_DIR   "/sys/devices/system/node/"
#define HUGE_BYTES ((size_t)2 << 20)
#define MPOL_BIND  2 /* linux/mempolicy.h */
#define CACHES_MAX 8
#define NODE_MASK  1024

static bool read_text(char *buf, size_t size, const char *fmt, unsigned int cpu, unsigned int index,
		      const char *file)
{
	char path[256], dir[200];

	snprintf(dir, sizeof(dir), fmt, cpu, index);
	snprintf(path, sizeof(path), "%s%s", dir, file);
	return !num_read_line("", path, buf, size, NULL);
}

static void read_cache(unsigned int cpu, unsigned int index, struct loops_place *out)
{
	char level[16], type[32], size[32], *end;
	size_t *const of[] = { &out->l1, &out->l2, &out->l3 };
	const char *dir = CPU_DIR "cache/index%u/";
	size_t kib;

	if (!read_text(level, sizeof(level), dir, cpu, index, "level") ||
	    !read_text(type, sizeof(type), dir, cpu, index, "type") ||
	    !read_text(size, sizeof(size), dir, cpu, index, "size"))
		return;
	kib = strtoul(size, &end, 10);
	if (!strcmp(type, "Instruction") || *end != 'K' || level[0] < '1' || level[0] > '3')
		return;
	*of[level[0] - '1'] = kib << 10;
}

static bool read_list(struct cpulist *out, const char *file, unsigned int cpu)
{
	char text[4096];

	return read_text(text, sizeof(text), CPU_DIR "%.0u", cpu, 0, file) &&
	       !cpulist_parse(file, text, out, NULL);
}

/* A CPU of another core, if possible one that shares the L3. */
static int find_other(unsigned int cpu)
{
	struct cpulist core, near, online;
	int i, any = -1;

	if (cpulist_read("", "online", &online, NULL))
		return -1;
	if (!read_list(&core, "topology/thread_siblings_list", cpu))
		memset(&core, 0, sizeof(core));
	if (!read_list(&near, "cache/index3/shared_cpu_list", cpu))
		near = online;
	cpulist_for_each (i, &online) {
		if (i == (int)cpu || cpulist_has(&core, i))
			continue;
		if (cpulist_has(&near, i))
			return i;
		any = any < 0 ? i : any;
	}
	return any;
}

static int find_other_node(int node)
{
	struct cpulist nodes;
	char text[4096];
	int i;

	if (num_read_line("", NODE_DIR "has_memory", text, sizeof(text), NULL) ||
	    cpulist_parse("has_memory", text, &nodes, NULL))
		return -1;
	cpulist_for_each (i, &nodes)
		if (i != node)
			return i;
	return -1;
}

void loops_place_read(unsigned int cpu, struct loops_place *out)
{
	unsigned int ignored, node;

	*out = (struct loops_place){ .cpu = cpu, .node = -1 };
	for (unsigned int i = 0; i < CACHES_MAX; i++)
		read_cache(cpu, i, out);
	out->other_cpu = find_other(cpu);
	if (!syscall(SYS_getcpu, &ignored, &node, NULL))
		out->node = node;
	out->other_node = find_other_node(out->node);
}

/* Anonymous memory of this process in huge pages, in KiB; -1: unknown */
static long huge_kib(void)
{
	FILE *f = fopen("/proc/self/smaps_rollup", "re");
	char line[256];
	long kib = -1;

	while (f && fgets(line, sizeof(line), f))
		if (sscanf(line, "AnonHugePages: %ld kB", &kib) == 1)
			break;
	if (f)
		fclose(f);
	return kib;
}

static int bind_memory(const struct loops_memory *m, int node)
{
	unsigned long mask[NODE_MASK / (8 * sizeof(long))] = { 0 };

	if (node < 0)
		return 0;
	if (node >= NODE_MASK)
		return -EINVAL;
	mask[node / (8 * sizeof(long))] = 1UL << node % (8 * sizeof(long));
	return syscall(SYS_mbind, m->map, m->mapped, MPOL_BIND, mask, NODE_MASK, 0) ? -errno : 0;
}

int loops_memory_get(size_t bytes, bool huge, int node, struct loops_memory *out, struct err *err)
{
	struct loops_memory m = { .bytes = (bytes + HUGE_BYTES - 1) & -HUGE_BYTES };
	long before = huge_kib();
	int ret;

	*out = (struct loops_memory){ .map = NULL };
	m.mapped = m.bytes + HUGE_BYTES;
	m.map = mmap(NULL, m.mapped, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (m.map == MAP_FAILED)
		return err_set(err, -errno, "no memory of %zu MiB: %s", m.mapped >> 20,
			       strerror(errno));
	m.at = (char *)(((uintptr_t)m.map + HUGE_BYTES - 1) & -HUGE_BYTES);
	madvise(m.map, m.mapped, huge ? MADV_HUGEPAGE : MADV_NOHUGEPAGE);
	ret = bind_memory(&m, node);
	if (ret) {
		munmap(m.map, m.mapped);
		return err_set(err, ret, "no memory of node %d: %s", node, strerror(-ret));
	}
	for (size_t i = 0; i < m.bytes; i += 4096)
		m.at[i] = 1;
	m.huge = before >= 0 && huge_kib() - before >= (long)(m.bytes >> 10) * 9 / 10;
	*out = m;
	return 0;
}

void loops_memory_free(struct loops_memory *m)
{
	if (m->map)
		munmap(m->map, m->mapped);
	m->map = NULL;
}
