// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Which cache lines a sample writes: those of the state of its CPU and those of the counters of its
 * core complex, and no two CPUs of different complexes write the same. The program's own functions are run
 * on one CPU after the other, and what has changed in the maps since tells the lines. Where all CPUs
 * share an L3, each is shown an id of its own in sysfs.
 */
#include <errno.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <ibscope/sim.h>

#include "bind_to.h"
#include "base/cpulist.h"
#include "pins/pins.h"
#include "sampler/sampler.h"
#include "sampler/sampler_private.h"
#include "machine/machine.h"
#include "twin_run.h"

#define CAPS	 0xbffU /* Zen 4 */
#define LINE	 64
#define MAX_CPUS 16 /* of those there are */
#define MAX_HASH 64 /* entries */

typedef __u64 regs_t[IBS_OP_REG_FIXED];

static unsigned int cpus[MAX_CPUS], complex_of[MAX_CPUS], n_cpus, n_complexes;
static bool neighbours; /* two of them are of one complex */
static regs_t regs[IBS_TWIN_SAMPLES];

/* Memory that the programs write. */
struct region {
	const char *name;
	const char *addr;
	size_t bytes;
	char *was;
};

enum { SERIES, OWNERS, STATE, REGIONS };

/* Entries of the hash maps, in the order that the kernel has them. */
struct entries {
	size_t bytes;
	char data[MAX_HASH * 64];
};

struct observed {
	struct sampler *s;
	struct region region[REGIONS];
	/* by CPU and region: a byte a line, 1 if it was written */
	char *written[MAX_CPUS][REGIONS];
};

static const enum ibs_pin hashes[] = { IBS_PIN_CGROUPS, IBS_PIN_GROUPS, IBS_PIN_SLOTS };
#define HASHES (sizeof(hashes) / sizeof(hashes[0]))

static void read_entries(const struct sampler *s, enum ibs_pin pin, struct entries *out)
{
	struct bpf_map *map = sampler_map((struct sampler *)s, pin);
	size_t key_bytes = bpf_map__key_size(map), value_bytes = bpf_map__value_size(map);
	char key[64], *prev = NULL;
	int fd = bpf_map__fd(map);

	out->bytes = 0;
	for (; !bpf_map_get_next_key(fd, prev, key); prev = key) {
		assert_true(out->bytes + key_bytes + value_bytes <= sizeof(out->data));
		memcpy(out->data + out->bytes, key, key_bytes);
		assert_int_equal(bpf_map_lookup_elem(fd, key, out->data + out->bytes + key_bytes),
				 0);
		out->bytes += key_bytes + value_bytes;
	}
}

static void open_observed(const struct sampler_opts *opts, struct observed *o)
{
	struct err err = {};

	memset(o, 0, sizeof(*o));
	if (sampler_open(opts, &o->s, &err))
		fail_msg("%s", err.text);
	o->region[SERIES] = (struct region){ "series", o->s->series.addr,
					     (size_t)o->s->memory.shards * o->s->max_slots *
						     o->s->layout.words * sizeof(__u64) };
	o->region[OWNERS] = (struct region){ "slot_owners", o->s->slot_owners.addr,
					     o->s->max_slots * sizeof(struct ibs_slot_owner) };
	o->region[STATE] = (struct region){ "control, state of the CPUs", o->s->state_map.addr,
					    o->s->state_map.bytes };
	for (int r = 0; r < REGIONS; r++) {
		/* of a page, and so of a line */
		assert_int_equal((uintptr_t)o->region[r].addr % LINE, 0);
		o->region[r].was = malloc(o->region[r].bytes);
		assert_non_null(o->region[r].was);
		for (unsigned int i = 0; i < n_cpus; i++) {
			o->written[i][r] = calloc(o->region[r].bytes / LINE + 1, 1);
			assert_non_null(o->written[i][r]);
		}
	}
}

static void close_observed(struct observed *o)
{
	for (int r = 0; r < REGIONS; r++) {
		free(o->region[r].was);
		for (unsigned int i = 0; i < n_cpus; i++)
			free(o->written[i][r]);
	}
	sampler_close(o->s);
}

static void run_on(struct observed *o, unsigned int cpu)
{
	__u32 raw[(IBS_OP_RAW_MIN + 3) / 4] = { CAPS };
	struct twin_raw one = { .raw = raw, .bytes = IBS_OP_RAW_MIN };
	enum ibs_outcome out;
	struct err err = {};

	memcpy(raw + 1, regs[0], sizeof(regs[0]));
	bind_to(cpu);
	if (twin_run_regs(o->s, (const regs_t *)regs, IBS_TWIN_SAMPLES, NULL, &err) ||
	    twin_run_raw(o->s, &one, &out, &err))
		fail_msg("%s", err.text);
}

static void compare(const struct region *r, char *written)
{
	for (size_t at = 0; at < r->bytes; at += LINE)
		written[at / LINE] = memcmp(r->was + at, r->addr + at,
					    r->bytes - at < LINE ? r->bytes - at : LINE) != 0;
}

/* Samples on each CPU in turn, and what they wrote. */
static void observe(struct observed *o)
{
	static struct entries before[HASHES], after;

	/* groups, slots and what CPUs remember are made by the first samples */
	for (unsigned int i = 0; i < n_cpus; i++)
		run_on(o, cpus[i]);
	for (size_t h = 0; h < HASHES; h++)
		read_entries(o->s, hashes[h], &before[h]);
	for (unsigned int i = 0; i < n_cpus; i++) {
		for (int r = 0; r < REGIONS; r++)
			memcpy(o->region[r].was, o->region[r].addr, o->region[r].bytes);
		run_on(o, cpus[i]);
		for (int r = 0; r < REGIONS; r++)
			compare(&o->region[r], o->written[i][r]);
	}
	for (size_t h = 0; h < HASHES; h++) {
		read_entries(o->s, hashes[h], &after);
		assert_int_equal(after.bytes, before[h].bytes);
		assert_memory_equal(after.data, before[h].data, after.bytes);
	}
}

/* Lines of a region that both CPUs wrote. */
static unsigned int shared(const struct observed *o, int r, unsigned int a, unsigned int b)
{
	unsigned int n = 0;

	for (size_t line = 0; line <= o->region[r].bytes / LINE; line++)
		n += o->written[a][r][line] && o->written[b][r][line];
	return n;
}

static unsigned int written(const struct observed *o, int r, unsigned int i)
{
	return shared(o, r, i, i);
}

/* Lines that a CPU wrote are of its own entry of @bytes, the first of which is at @at. */
static void check_own(const struct observed *o, int r, unsigned int i, size_t at, size_t bytes)
{
	size_t first = (at + cpus[i] * bytes) / LINE, end = first + bytes / LINE;

	assert_true(written(o, r, i) > 0);
	for (size_t line = 0; line <= o->region[r].bytes / LINE; line++)
		if (o->written[i][r][line])
			assert_true(line >= first && line < end);
}

/* Everybody may read the state. Words of 32 bits that are all ones are no addresses. */
static void check_no_address(const struct region *r)
{
	for (size_t at = 0; at + sizeof(__u64) <= r->bytes; at += sizeof(__u64)) {
		__u64 word;

		memcpy(&word, r->addr + at, sizeof(word));
		if (word >= 0xffff800000000000 && word < 0xffffffff00000000)
			fail_msg("the kernel's address %#llx is at %#zx of the state",
				 (unsigned long long)word, at);
	}
}

/* True of all output: a CPU's state is its own, who owns what is not written again. */
static void check_state(const struct observed *o)
{
	check_no_address(&o->region[STATE]);
	for (unsigned int i = 0; i < n_cpus; i++) {
		assert_int_equal(written(o, OWNERS, i), 0);
		check_own(o, STATE, i, sizeof(struct ibs_state), sizeof(struct ibs_cpu_state));
	}
}

/* The most lines of counters that two CPUs share, of one complex or of two. */
static unsigned int each_pair(const struct observed *o, bool same_complex)
{
	unsigned int most = 0;

	for (unsigned int a = 0; a < n_cpus; a++) {
		for (unsigned int b = 0; b < a; b++) {
			unsigned int n = shared(o, SERIES, a, b);

			if ((complex_of[a] == complex_of[b]) == same_complex)
				most = n > most ? n : most;
		}
	}
	return most;
}

static const struct sampler_opts twin = {
	.source = SAMPLER_TWIN,
	.ibs.caps = CAPS,
	.max_groups = 3,
	.max_memory_bytes = 1ULL << 32,
};

static void check_aggregated(__u32 by)
{
	struct sampler_opts opts = twin;
	struct observed o;

	opts.by = by;
	open_observed(&opts, &o);
	assert_int_equal(o.s->memory.shards, n_complexes);
	observe(&o);
	check_state(&o);
	for (unsigned int i = 0; i < n_cpus; i++)
		assert_true(written(&o, SERIES, i) > 20);
	assert_int_equal(each_pair(&o, false), 0);
	/* of one complex they do, by choice; that is what this can see */
	if (neighbours)
		assert_true(each_pair(&o, true) > 20);
	print_message(
		"by %#x: %u CPUs, %u complexes; lines a CPU writes: %u of counters, %u of its "
		"own; lines two complexes share: 0\n",
		by, n_cpus, n_complexes, written(&o, SERIES, 0), written(&o, STATE, 0));
	close_observed(&o);
}

static void aggregated(void **state)
{
	static const __u32 all[] = {
		0, IBS_BY_CGROUP, IBS_BY_PID, IBS_BY_CGROUP | IBS_BY_COMM, IBS_BY_MODE,
	};

	(void)state;
	for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++)
		check_aggregated(all[i]);
}

/* With memory for one shard they are shared, by choice, and counters are all that is. */
static void one_shard(void **state)
{
	struct sampler_opts opts = twin;
	struct sampler_memory mem;
	struct observed o;
	struct err err = {};

	(void)state;
	opts.by = IBS_BY_CGROUP;
	assert_int_equal(sampler_memory(&opts, 1, &mem, &err), 0);
	opts.max_memory_bytes = mem.total;
	open_observed(&opts, &o);
	assert_int_equal(o.s->memory.shards, 1);
	observe(&o);
	check_state(&o);
	assert_true(each_pair(&o, false) > 20);
	close_observed(&o);
}

static void rejected(void **state)
{
	static const __u32 nobody = 32000;
	struct sampler_opts opts = twin;
	struct observed o;

	(void)state;
	opts.by = IBS_BY_CGROUP;
	for (int by_latency = 0; by_latency < 2; by_latency++) {
		opts.sel.processes.pids = &nobody;
		opts.sel.processes.n = !by_latency;
		opts.sel.min_lat = by_latency ? IBS_LAT_MAX : 0;
		open_observed(&opts, &o);
		observe(&o);
		check_state(&o);
		for (unsigned int i = 0; i < n_cpus; i++)
			assert_int_equal(written(&o, SERIES, i), 0);
		close_observed(&o);
	}
}

/* --- the machine --- */

/*
 * In a name space of our own; false if this machine does not let us. Virtual machines may have no
 * caches in sysfs, so the whole directory of a CPU is replaced.
 */
static bool fake_complexes(void)
{
	if (unshare(CLONE_NEWNS) || mount("", "/", NULL, MS_REC | MS_PRIVATE, NULL))
		return false;
	for (unsigned int i = 0; i < n_cpus; i++) {
		char path[128];
		size_t end;
		FILE *f;

		end = snprintf(path, sizeof(path), "/sys/devices/system/cpu/cpu%u", cpus[i]);
		if (mount("tmpfs", path, "tmpfs", 0, NULL))
			return false;
		strcpy(path + end, "/cache");
		mkdir(path, 0755);
		strcat(path, "/index3");
		mkdir(path, 0755);
		strcat(path, "/id");
		f = fopen(path, "we");
		if (!f)
			return false;
		fprintf(f, "%u\n", i);
		fclose(f);
	}
	return true;
}

static void count_complexes(void)
{
	struct topology *t = topology_open("", libbpf_num_possible_cpus());

	n_complexes = topology_n_complexes(t);
	neighbours = false;
	for (unsigned int i = 0; i < n_cpus; i++) {
		complex_of[i] = topology_complex(t, cpus[i]);
		neighbours |= i && complex_of[i] == complex_of[i - 1];
	}
	topology_close(t);
}

/* All, or pairs of neighbours from the first to the last. */
static void choose_cpus(const unsigned int *all, unsigned int n)
{
	n_cpus = n < MAX_CPUS ? n : MAX_CPUS;
	for (unsigned int i = 0; i < n_cpus; i++)
		cpus[i] =
			n <= MAX_CPUS ? all[i] : all[i / 2 * (n - 2) / (MAX_CPUS / 2 - 1) + i % 2];
}

static int fail_all(const char *why)
{
	printf("%s\n", why);
	return 1;
}

static int skip_all(const char *why)
{
	printf("%s\n", why);
	return 77;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(aggregated),
		cmocka_unit_test(one_shard),
		cmocka_unit_test(rejected),
	};
	static unsigned int all[CPULIST_MAX];
	struct cpulist online;
	struct err err = {};
	struct sampler *s;
	unsigned int n = 0;
	int cpu, ret;

	if (geteuid())
		return skip_all("root is needed to load BPF programs");
	if (cpulist_read("", "online", &online, &err))
		return fail_all(err.text);
	if (cpulist_count(&online) < 2)
		return skip_all("two CPUs are needed");
	cpulist_for_each (cpu, &online)
		all[n++] = cpu;
	choose_cpus(all, n);
	count_complexes();
	if (n_complexes == 1) {
		if (!fake_complexes())
			return skip_all("all CPUs share an L3, and sysfs cannot be made to say "
					"otherwise");
		count_complexes();
		if (n_complexes == 1)
			return fail_all("each CPU was shown an L3 of its own, and one was read");
	}
	ret = sampler_open(&twin, &s, &err);
	if (ret == -EPERM || ret == -EOPNOTSUPP || ret == -ENOENT)
		return skip_all(err.text);
	if (ret)
		return fail_all(err.text);
	sampler_close(s);
	for (unsigned int i = 0; i < IBS_TWIN_SAMPLES; i++)
		ibs_sim_op(1, 0, i, CAPS, regs[i]);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
