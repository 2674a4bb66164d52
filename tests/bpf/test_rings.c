// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Samples as records: the program's own functions, run by the kernel on samples made here, forward
 * them into ring buffers; what comes out of those is what went in, and the ledger tells the rest.
 */
#include <errno.h>
#include <poll.h>
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

#include <ibscope/sim.h>

#include "bind_to.h"
#include "base/clock.h"
#include "pins/pins.h"
#include "sampler/sampler_private.h"
#include "twin_run.h"

#define ZEN4_CAPS 0xbffU
#define N	  3000

typedef __u64 regs_t[IBS_OP_REG_FIXED];

static const struct sampler_opts packed = {
	.source = SAMPLER_TWIN,
	.output = SAMPLER_RECORDS,
	.ibs.caps = ZEN4_CAPS,
};

static const struct sampler_opts raw = {
	.source = SAMPLER_TWIN,
	.output = SAMPLER_RECORDS_RAW,
	.ibs.caps = ZEN4_CAPS,
};

static struct sampler *open_twin(const struct sampler_opts *opts)
{
	struct sampler *s = NULL;
	struct err err = {};

	if (sampler_open(opts, &s, &err))
		fail_msg("%s", err.text);
	return s;
}

static struct ledger ledger(struct sampler *s)
{
	struct snapshot snap;
	struct err err = {};
	struct ledger l;

	if (sampler_snapshot(s, &snap, &err))
		fail_msg("%s", err.text);
	l = snap.ledger;
	snapshot_free(&snap);
	assert_int_equal(ledger_residual(&l), 0);
	return l;
}

static void run_regs(struct sampler *s, const regs_t *regs, size_t n, __u8 *outcomes)
{
	struct err err = {};

	if (twin_run_regs(s, regs, n, outcomes, &err))
		fail_msg("%s", err.text);
}

static enum ibs_outcome run_raw(struct sampler *s, const struct twin_raw *r)
{
	enum ibs_outcome out = IBS_OUTCOME_N;
	struct err err = {};

	if (twin_run_raw(s, r, &out, &err))
		fail_msg("%s", err.text);
	return out;
}

/* Half of them what hardware could say, half arbitrary bits. */
static void random_regs(__u64 seed, regs_t *regs, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		ibs_sim_op(seed, 0, i, ZEN4_CAPS, regs[i]);
		if (i & 1)
			for (int r = 0; r < IBS_OP_REG_FIXED; r++)
				regs[i][r] = ibs_sim_mix(seed + i * 8 + r);
	}
}

/* The cgroup that the caller is in, where only root's is known. */
static __u64 own_cgroup(void)
{
	char line[512], path[1024] = "", mount[256] = "";
	struct stat st;
	FILE *f = fopen("/proc/self/mountinfo", "r");

	assert_non_null(f);
	while (!mount[0] && fgets(line, sizeof(line), f))
		if (strstr(line, " - cgroup2 "))
			sscanf(line, "%*s %*s %*s %*s %255s", mount);
	fclose(f);
	if (!mount[0])
		return 1;
	f = fopen("/proc/self/cgroup", "r");
	assert_non_null(f);
	while (fgets(line, sizeof(line), f)) {
		if (strncmp(line, "0::", 3))
			continue;
		line[strcspn(line, "\n")] = 0;
		snprintf(path, sizeof(path), "%s%s", mount, line + 3);
	}
	fclose(f);
	assert_int_equal(stat(path, &st), 0);
	return st.st_ino;
}

/* All that was drained. */
struct got {
	struct ibs_record *packed;
	struct ibs_record_raw *raw;
	size_t n, batches, fail_at;
};

static int collect(const struct record_batch *b, void *arg, struct err *err)
{
	struct got *g = arg;

	assert_int_not_equal(b->n, 0);
	if (++g->batches == g->fail_at)
		return err_set(err, -ENOSPC, "as asked for");
	if (b->records) {
		g->packed = realloc(g->packed, (g->n + b->n) * sizeof(*g->packed));
		assert_non_null(g->packed);
		memcpy(g->packed + g->n, b->records, b->n * sizeof(*g->packed));
	} else {
		g->raw = realloc(g->raw, (g->n + b->n) * sizeof(*g->raw));
		assert_non_null(g->raw);
		memcpy(g->raw + g->n, b->raw, b->n * sizeof(*g->raw));
	}
	g->n += b->n;
	return 0;
}

static void drain(struct sampler *s, __u64 until, struct got *g)
{
	struct err err = {};

	if (rings_drain(sampler_rings(s), until, collect, g, &err))
		fail_msg("%s", err.text);
}

static void got_free(struct got *g)
{
	free(g->packed);
	free(g->raw);
	memset(g, 0, sizeof(*g));
}

static void check_packed(const struct ibs_record *r, const regs_t regs)
{
	regs_t back;

	ibs_record_regs(r, back);
	assert_int_equal(back[IBS_OP_RIP], regs[IBS_OP_RIP]);
	assert_int_equal(back[IBS_OP_DATA], regs[IBS_OP_DATA] & 0x1ffffffffffULL);
	assert_int_equal(back[IBS_OP_DATA2], regs[IBS_OP_DATA2] & 0x3ff);
	assert_int_equal(back[IBS_OP_DATA3], regs[IBS_OP_DATA3]);
	assert_int_equal(back[IBS_DC_LINADDR], regs[IBS_DC_LINADDR]);
	assert_int_equal(back[IBS_DC_PHYSADDR], regs[IBS_DC_PHYSADDR]);
}

static void test_packed_is_regs(void **state)
{
	static regs_t regs[N];
	struct sampler *s = open_twin(&packed);
	__u64 cgroup = own_cgroup(), start = clock_ns(CLOCK_MONOTONIC);
	static __u8 out[N];
	struct got g = {};

	(void)state;
	bind_to(0);
	random_regs(1, regs, N);
	run_regs(s, regs, N, out);
	drain(s, UINT64_MAX, &g);
	assert_int_equal(g.n, N);
	for (size_t i = 0; i < N; i++) {
		const struct ibs_record *r = &g.packed[i];

		assert_int_equal(out[i], IBS_OUTCOME_FORWARDED);
		check_packed(r, regs[i]);
		assert_int_equal(r->tgid, getpid());
		assert_int_equal(r->tid, gettid());
		assert_int_equal(r->cgroup_id, cgroup);
		assert_int_equal(ibs_record_cpu(r), 0);
		assert_true(r->time >= start);
		start = r->time;
	}
	assert_true(start <= clock_ns(CLOCK_MONOTONIC));
	assert_int_equal(ledger(s).outcome[IBS_OUTCOME_FORWARDED], N);
	got_free(&g);
	sampler_close(s);
}

/* The same samples by the way that copies registers, as the kernel hands them over. */
static void test_packed_is_raw(void **state)
{
	struct sampler *s = open_twin(&packed);
	struct got g = {};
	regs_t regs[64];

	(void)state;
	random_regs(2, regs, 64);
	for (int i = 0; i < 64; i++) {
		__u8 bytes[IBS_OP_RAW_MIN];
		const struct twin_raw r = { .raw = bytes, .bytes = sizeof(bytes) };
		__u32 caps = ZEN4_CAPS;

		memcpy(bytes, &caps, sizeof(caps));
		memcpy(bytes + sizeof(caps), regs[i], sizeof(regs_t));
		assert_int_equal(run_raw(s, &r), IBS_OUTCOME_FORWARDED);
	}
	drain(s, UINT64_MAX, &g);
	assert_int_equal(g.n, 64);
	for (int i = 0; i < 64; i++)
		check_packed(&g.packed[i], regs[i]);
	got_free(&g);
	sampler_close(s);
}

static void test_raw_sizes(void **state)
{
	struct sampler *s = open_twin(&raw);
	__u8 bytes[IBS_TWIN_RAW_MAX];
	struct got g = {};
	__u32 sizes = 0;

	(void)state;
	for (__u32 i = 0; i < sizeof(bytes); i++)
		bytes[i] = ibs_sim_mix(i);
	/* a store to L1: kept whatever the rest says */
	memset(bytes + 4 + 8 * IBS_OP_DATA3, 0, 8);
	bytes[4 + 8 * IBS_OP_DATA3] = IBS_OP_DATA3_ST_OP;
	for (__u32 size = 0; size <= sizeof(bytes); size++) {
		const struct twin_raw r = { .raw = bytes, .bytes = size };
		__u32 keeps = size < 76 ? size : 76;
		const struct ibs_record_raw *rec;

		if (!ibs_op_raw_size_ok(size)) {
			assert_int_equal(run_raw(s, &r), IBS_OUTCOME_LOST_BAD_RAW);
			continue;
		}
		sizes++;
		assert_int_equal(run_raw(s, &r), IBS_OUTCOME_FORWARDED);
		drain(s, UINT64_MAX, &g);
		assert_int_equal(g.n, 1);
		rec = &g.raw[0];
		assert_int_equal(rec->bytes, keeps);
		assert_memory_equal(&rec->caps, bytes, keeps);
		for (const char *p = (const char *)&rec->caps + keeps; p < (const char *)(rec + 1);
		     p++)
			assert_int_equal(*p, 0);
		assert_int_equal(rec->tgid, getpid());
		assert_int_equal(rec->tid, gettid());
		assert_int_equal(rec->fetch, 0);
		got_free(&g);
	}
	assert_int_equal(sizes, 25);
	sampler_close(s);
}

static void test_raw_is_regs(void **state)
{
	static regs_t regs[512];
	struct sampler *s = open_twin(&raw);
	const unsigned int cpu = may_run_on(1);
	struct got g = {};

	(void)state;
	bind_to(cpu);
	random_regs(3, regs, 512);
	run_regs(s, regs, 512, NULL);
	drain(s, UINT64_MAX, &g);
	assert_int_equal(g.n, 512);
	for (int i = 0; i < 512; i++) {
		assert_int_equal(g.raw[i].bytes, IBS_OP_RAW_MIN);
		assert_int_equal(g.raw[i].caps, ZEN4_CAPS);
		assert_int_equal(g.raw[i].cpu, cpu);
		assert_memory_equal(g.raw[i].regs, regs[i], sizeof(regs_t));
		assert_int_equal(g.raw[i].regs[IBS_BRTARGET], 0);
		assert_int_equal(g.raw[i].regs[IBS_OP_DATA4], 0);
	}
	got_free(&g);
	sampler_close(s);
}

/* What cannot be read leaves no record, and none half written. */
static void test_raw_unreadable(void **state)
{
	struct sampler *s = open_twin(&raw);
	__u8 bytes[IBS_OP_RAW_MIN] = "";
	struct twin_raw r = { .raw = bytes, .bytes = sizeof(bytes), .fault = IBS_TWIN_BAD_BYTES };
	struct got g = {};

	(void)state;
	assert_int_equal(run_raw(s, &r), IBS_OUTCOME_LOST_READ);
	r.fault = IBS_TWIN_WHOLE;
	assert_int_equal(run_raw(s, &r), IBS_OUTCOME_FORWARDED);
	drain(s, UINT64_MAX, &g);
	assert_int_equal(g.n, 1);
	got_free(&g);
	sampler_close(s);
}

/* Records are those that the selection keeps, no others. */
static void test_selected(void **state)
{
	static regs_t regs[N];
	struct sampler_opts opts = packed;
	static __u8 out[N];
	struct got g = {};
	struct sampler *s;
	struct ledger l;
	size_t at = 0;

	(void)state;
	opts.sel.op_mask = 1 << IBS_OP_KIND_LOAD;
	opts.sel.min_lat = 20;
	s = open_twin(&opts);
	random_regs(4, regs, N);
	run_regs(s, regs, N, out);
	drain(s, UINT64_MAX, &g);
	l = ledger(s);
	for (size_t i = 0; i < N; i++) {
		__u64 data3 = regs[i][IBS_OP_DATA3];
		bool keep = ibs_op_dc_miss_lat_valid(data3) && (data3 >> 32 & 0xffff) >= 20 &&
			    ibs_op_kind(regs[i][IBS_OP_DATA], data3) == IBS_OP_KIND_LOAD;

		assert_int_equal(out[i] == IBS_OUTCOME_FORWARDED, keep);
		if (keep)
			check_packed(&g.packed[at++], regs[i]);
	}
	assert_int_equal(at, g.n);
	assert_true(at > 100 && at < N / 2);
	assert_int_equal(l.outcome[IBS_OUTCOME_FORWARDED], at);
	assert_int_equal(l.outcome[IBS_OUTCOME_LOST_RING_FULL], 0);
	assert_int_equal(l.outcome[IBS_OUTCOME_AGGREGATED], 0);
	assert_int_equal(l.seen, N);
	got_free(&g);
	sampler_close(s);
}

/* A ring that is full loses what comes, and only that; read, it takes records again. */
static void test_ring_full(void **state)
{
	const size_t fits = SAMPLER_RING_MIN / sizeof(struct ibs_record);
	size_t taken = 0;
	struct sampler_opts opts = packed;
	struct sampler *s;
	static regs_t regs[N];
	static __u8 out[N];

	(void)state;
	bind_to(0);
	opts.ring_bytes = 1; /* rounded up to the least */
	s = open_twin(&opts);
	assert_int_equal(sampler_memory_used(s)->ring_bytes, SAMPLER_RING_MIN);
	random_regs(5, regs, N);
	for (int round = 1; round <= 3; round++) {
		struct got g = {};
		struct ledger l;

		run_regs(s, regs, N, out);
		l = ledger(s);
		drain(s, UINT64_MAX, &g);
		assert_int_equal(g.n, fits);
		for (size_t i = 0; i < N; i++)
			assert_int_equal(out[i], i < g.n ? IBS_OUTCOME_FORWARDED
							 : IBS_OUTCOME_LOST_RING_FULL);
		for (size_t i = 0; i < g.n; i++)
			check_packed(&g.packed[i], regs[i]);
		assert_int_equal(l.seen, round * N);
		taken += g.n;
		assert_int_equal(l.outcome[IBS_OUTCOME_FORWARDED], taken);
		assert_int_equal(l.outcome[IBS_OUTCOME_LOST_RING_FULL], l.seen - taken);
		got_free(&g);
	}
	sampler_close(s);
}

/* Records many times as many as a ring holds, so that positions wrap at every offset. */
static void test_wraps(void **state)
{
	struct sampler_opts opts = raw;
	static regs_t regs[100];
	struct sampler *s;
	size_t total = 0;

	(void)state;
	bind_to(0);
	opts.ring_bytes = SAMPLER_RING_MIN;
	s = open_twin(&opts);
	for (int round = 0; round < 300; round++) {
		struct got g = {};

		random_regs(round, regs, 100);
		run_regs(s, regs, 100, NULL);
		drain(s, UINT64_MAX, &g);
		assert_int_equal(g.n, 100);
		for (int i = 0; i < 100; i++)
			assert_memory_equal(g.raw[i].regs, regs[i], sizeof(regs_t));
		total += g.n;
		got_free(&g);
	}
	assert_int_equal(ledger(s).outcome[IBS_OUTCOME_FORWARDED], total);
	sampler_close(s);
}

/* Records of several CPUs in one order; what is later than asked for waits. */
static void test_order(void **state)
{
	static regs_t regs[2000];
	struct sampler *s = open_twin(&packed);
	__u64 middle = 0;
	struct got g = {};
	size_t early;

	(void)state;
	if (sysconf(_SC_NPROCESSORS_ONLN) < 2)
		skip();
	random_regs(6, regs, 2000);
	for (int i = 0; i < 2000; i += 50) {
		bind_to(i / 50 & 1);
		if (i == 1000)
			middle = clock_ns(CLOCK_MONOTONIC);
		run_regs(s, (const regs_t *)regs + i, 50, NULL);
	}
	drain(s, middle, &g);
	assert_int_equal(g.n, 1000);
	early = g.n;
	drain(s, UINT64_MAX, &g);
	assert_int_equal(g.n, 2000);
	for (size_t i = 0; i < 2000; i++) {
		check_packed(&g.packed[i], regs[i]);
		assert_int_equal(ibs_record_cpu(&g.packed[i]), i / 50 & 1);
		assert_int_equal(g.packed[i].time <= middle, i < early);
	}
	got_free(&g);
	sampler_close(s);
}

static bool readable(int fd, int ms)
{
	struct pollfd p = { .fd = fd, .events = POLLIN };

	return poll(&p, 1, ms) == 1;
}

/* A few records wake nobody; more than half a ring does, and once read no longer. */
static void test_wakeup(void **state)
{
	struct sampler_opts opts = packed;
	static regs_t regs[200];
	struct got g = {};
	struct sampler *s;
	int fd;

	(void)state;
	bind_to(0);
	opts.ring_bytes = SAMPLER_RING_MIN;
	s = open_twin(&opts);
	fd = rings_fd(sampler_rings(s));
	random_regs(7, regs, 200);
	drain(s, UINT64_MAX, &g);
	run_regs(s, regs, 50, NULL);
	assert_false(readable(fd, 100));
	run_regs(s, regs, 150, NULL);
	assert_true(readable(fd, 5000));
	drain(s, UINT64_MAX, &g);
	assert_int_equal(g.n, 200);
	assert_false(readable(fd, 100));
	run_regs(s, regs, 50, NULL);
	assert_false(readable(fd, 100));
	got_free(&g);
	sampler_close(s);
}

/* Half a ring wakes nobody; the next check after that finds more. */
static void test_half_full(void **state)
{
	struct sampler_opts opts = packed;
	static regs_t regs[N];
	struct sampler *s;
	__u32 slots;
	int fd;

	(void)state;
	bind_to(0);
	opts.ring_bytes = SAMPLER_RING_MIN;
	s = open_twin(&opts);
	slots = s->memory.ring_slots;
	assert_int_equal(slots / 2 % IBS_RING_CHECK, 0);
	fd = rings_fd(sampler_rings(s));
	random_regs(11, regs, N);
	run_regs(s, regs, slots / 2, NULL);
	assert_false(readable(fd, 0));
	run_regs(s, regs, IBS_RING_CHECK - 1, NULL);
	assert_false(readable(fd, 0));
	run_regs(s, regs, 1, NULL);
	assert_true(readable(fd, 0));
	sampler_close(s);
}

/* A place that no ring has: the sample is lost, and nothing is written. */
static void test_no_place(void **state)
{
	struct sampler *s = open_twin(&packed);
	static regs_t regs[10];
	struct ibs_ring *ring;
	struct got g = {};
	__u8 out[10];

	(void)state;
	bind_to(0);
	ring = &s->state->cpu[0].ring;
	random_regs(12, regs, 10);
	ring->first += 1U << 30;
	run_regs(s, regs, 10, out);
	for (int i = 0; i < 10; i++)
		assert_int_equal(out[i], IBS_OUTCOME_LOST_INTERNAL);
	assert_int_equal(ring->written, 0);
	ring->first -= 1U << 30;
	run_regs(s, regs, 10, out);
	drain(s, UINT64_MAX, &g);
	assert_int_equal(g.n, 10);
	got_free(&g);
	sampler_close(s);
}

/* Nothing or little comes: the reader sleeps longer and longer. A ring fills fast: it comes back at once. */
static void test_delay(void **state)
{
	struct sampler_opts opts = packed;
	static regs_t regs[200];
	struct got g = {};
	struct rings *r;
	struct sampler *s;

	(void)state;
	bind_to(0);
	opts.ring_bytes = SAMPLER_RING_MIN;
	s = open_twin(&opts);
	r = sampler_rings(s);
	assert_int_equal(rings_delay_ms(r), 1);
	for (int i = 0; i < 20; i++)
		drain(s, UINT64_MAX, &g);
	assert_int_equal(rings_delay_ms(r), RINGS_DELAY_MAX_MS);
	random_regs(8, regs, 200);
	run_regs(s, regs, 200, NULL);
	drain(s, UINT64_MAX, &g);
	assert_in_range(rings_delay_ms(r), 1, 20);
	/* a record now and then, however many were taken before */
	for (int i = 0; i < 10; i++) {
		usleep(30000);
		run_regs(s, regs, 1, NULL);
		drain(s, UINT64_MAX, &g);
	}
	assert_int_equal(rings_delay_ms(r), RINGS_DELAY_MAX_MS);
	got_free(&g);
	sampler_close(s);
}

static void test_callback_fails(void **state)
{
	static regs_t regs[10];
	struct sampler *s = open_twin(&packed);
	struct got g = { .fail_at = 1 };
	struct err err = {};

	(void)state;
	random_regs(9, regs, 10);
	run_regs(s, regs, 10, NULL);
	assert_int_equal(rings_drain(sampler_rings(s), UINT64_MAX, collect, &g, &err), -ENOSPC);
	assert_string_equal(err.text, "as asked for");
	drain(s, UINT64_MAX, &g);
	assert_int_equal(g.n, 0);
	sampler_close(s);
}

/* Sizes follow from options alone, also of machines that are not at hand. */
static void test_memory(void **state)
{
	static unsigned int cpus[768];
	struct sampler_opts opts = {
		.output = SAMPLER_RECORDS, .cpus = cpus, .n_cpus = 768, .ibs.caps = ZEN4_CAPS
	};
	struct sampler_memory m;
	struct err err = {};

	(void)state;
	assert_int_equal(sampler_memory(&opts, 96, &m, &err), 0);
	assert_int_equal(m.ring_bytes, 64 << 10);
	assert_int_equal(m.ring_slots, 1 << 10);
	assert_int_equal(m.rings, rings_bytes(768, 1 << 10, sizeof(struct ibs_record)));
	assert_true(m.total <= SAMPLER_MAX_MEMORY);
	opts.max_memory_bytes = 8 << 20;
	assert_int_equal(sampler_memory(&opts, 96, &m, &err), -ENOSPC);
	assert_non_null(strstr(err.text, "--max-memory"));
	opts.n_cpus = 2;
	assert_int_equal(sampler_memory(&opts, 1, &m, &err), 0);
	assert_int_equal(m.ring_bytes, SAMPLER_RING_MAX_DEFAULT);
	opts.ring_bytes = 16 << 20;
	assert_int_equal(sampler_memory(&opts, 1, &m, &err), -ENOSPC);
	opts.max_memory_bytes = 0;
	opts.ring_bytes = (32 << 20) - 5;
	assert_int_equal(sampler_memory(&opts, 1, &m, &err), 0);
	assert_int_equal(m.ring_bytes, 32 << 20);
	opts.n_cpus = 768;
	assert_int_equal(sampler_memory(&opts, 1, &m, &err), -E2BIG);
	assert_non_null(strstr(err.text, "--ring-size"));
	opts.output = SAMPLER_SERIES;
	assert_int_equal(sampler_memory(&opts, 1, &m, &err), 0);
	assert_int_equal(m.rings, 0);
}

/* A sampler that resumes pinned counters begins with empty rings, and without rings that it does not need. */
static void test_adopted(void **state)
{
	struct sampler_opts opts = { .source = SAMPLER_TWIN,
				     .ibs.caps = ZEN4_CAPS,
				     .by = IBS_BY_CGROUP };
	char bpffs[] = "/run/ibscope-rings-XXXXXX", dir[64];
	static regs_t regs[20];
	struct err err = {};

	(void)state;
	assert_non_null(mkdtemp(bpffs));
	assert_return_code(mount("bpf", bpffs, "bpf", 0, "mode=0700"), errno);
	snprintf(dir, sizeof(dir), "%s/pins", bpffs);
	random_regs(10, regs, 20);
	for (int round = 0; round < 3; round++) {
		struct sampler *s;

		if (pins_open(dir, 0600, &opts.pins, &err))
			fail_msg("%s", err.text);
		opts.copies = round < 2;
		s = open_twin(&opts);
		assert_int_equal(ledger(s).seen, round * 20);
		for (unsigned int cpu = 0; cpu < s->possible_cpus; cpu++) {
			const struct ibs_ring want = { .cpu = opts.copies ? cpu : 0,
						       .first = cpu * s->memory.ring_slots,
						       .slots = s->memory.ring_slots };

			assert_memory_equal(&s->state->cpu[cpu].ring, &want, sizeof(want));
			s->state->cpu[cpu].ring.next = s->state->cpu[cpu].ring.written = 3;
			s->state->cpu[cpu].ring.cgroup_key = s->state->cpu[cpu].ring.dropped = 1;
		}
		sampler_copy(s, true);
		run_regs(s, regs, 20, NULL);
		sampler_close(s);
		pins_close(opts.pins);
	}
	assert_return_code(umount(bpffs), errno);
	rmdir(bpffs);
}

static bool can_run(void)
{
	struct sampler *s = NULL;
	struct err err = {};
	int ret = sampler_open(&packed, &s, &err);

	sampler_close(s);
	if (ret == -EPERM || ret == -EOPNOTSUPP || ret == -ENOENT) {
		printf("skipped: %s\n", err.text);
		return false;
	}
	return true;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_packed_is_regs), cmocka_unit_test(test_packed_is_raw),
		cmocka_unit_test(test_raw_sizes),      cmocka_unit_test(test_raw_is_regs),
		cmocka_unit_test(test_raw_unreadable), cmocka_unit_test(test_selected),
		cmocka_unit_test(test_ring_full),      cmocka_unit_test(test_wraps),
		cmocka_unit_test(test_order),	       cmocka_unit_test(test_wakeup),
		cmocka_unit_test(test_delay),	       cmocka_unit_test(test_callback_fails),
		cmocka_unit_test(test_memory),	       cmocka_unit_test(test_adopted),
		cmocka_unit_test(test_half_full),      cmocka_unit_test(test_no_place),
	};

	if (!can_run())
		return 77;
	return cmocka_run_group_tests(tests, NULL, NULL);
}
