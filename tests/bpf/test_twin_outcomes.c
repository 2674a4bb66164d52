// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * The program's own functions, run by the kernel on samples made here: every outcome that a sample
 * can come to, by its raw record and by each filter.
 */
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include <ibscope/op_fields.h>

#include "filter/filter_options.h"
#include "sampler/sampler.h"
#include "sampler/sampler_private.h"
#include "twin_run.h"
#include "bind_to.h"
#include "twin_child.h"
#include "twin_model.h"

/* --- raw records --- */

/* Short, ragged, exact, and longer than any record known today. */
static void test_raw_sizes(void **state)
{
	struct sampler *s = open_twin(&zen4);
	__u32 bytes, good = 0;
	struct snapshot snap;

	(void)state;
	for (bytes = 0; bytes <= IBS_TWIN_RAW_MAX; bytes++) {
		check_size(s, bytes);
		good += bytes >= 60 && bytes % 8 == 4;
	}
	snapshot(s, &snap);
	assert_int_equal(snap.ledger.seen, IBS_TWIN_RAW_MAX + 1);
	assert_int_equal(snap.ledger.outcome[IBS_OUTCOME_AGGREGATED], good);
	assert_int_equal(snap.groups[0].n_series, 1);
	assert_int_equal(snap.groups[0].series[0].src, IBS_SRC_DRAM);
	assert_int_equal(snap.groups[0].series[0].buckets[ibs_lat_bucket(300)], good);
	snapshot_free(&snap);
	sampler_close(s);
	/* the first sample of all must not be read by what a former one left */
	for (bytes = 52; bytes <= 84; bytes += 8) {
		s = open_twin(&zen4);
		check_size(s, bytes);
		close_twin(s);
	}
}

static const struct {
	enum ibs_twin_fault fault;
	enum ibs_outcome first, later;
} faults[] = {
	{ IBS_TWIN_WHOLE, IBS_OUTCOME_AGGREGATED, IBS_OUTCOME_AGGREGATED },
	{ IBS_TWIN_NO_RAW, IBS_OUTCOME_LOST_NO_RAW, IBS_OUTCOME_LOST_NO_RAW },
	{ IBS_TWIN_BAD_BYTES, IBS_OUTCOME_LOST_READ, IBS_OUTCOME_LOST_READ },
	/* once the distance is known these pointers are not looked at */
	{ IBS_TWIN_BAD_DATA, IBS_OUTCOME_LOST_NO_RAW, IBS_OUTCOME_AGGREGATED },
	{ IBS_TWIN_BAD_RAW, IBS_OUTCOME_LOST_READ, IBS_OUTCOME_AGGREGATED },
	{ IBS_TWIN_LEFT_OVERS, IBS_OUTCOME_LOST_NO_RAW, IBS_OUTCOME_AGGREGATED },
};

/* Nothing that is wrong with one sample harms the next. */
static void test_raw_faults(void **state)
{
	__u8 raw[IBS_TWIN_RAW_MAX];
	struct twin_raw whole = { .raw = raw };
	regs_t regs;

	(void)state;
	load_miss(regs, DRAM, 300);
	whole.bytes = to_raw(regs, raw);
	for (size_t i = 0; i < sizeof(faults) / sizeof(faults[0]); i++) {
		struct sampler *s = open_twin(&zen4);
		struct twin_raw bad = whole;

		bad.fault = faults[i].fault;
		assert_int_equal(run_raw(s, &bad), faults[i].first);
		assert_int_equal(run_raw(s, &bad), faults[i].first);
		assert_int_equal(run_raw(s, &whole), IBS_OUTCOME_AGGREGATED);
		assert_int_equal(run_raw(s, &bad), faults[i].later);
		assert_int_equal(run_raw(s, &whole), IBS_OUTCOME_AGGREGATED);
		close_twin(s);
	}
}

static __u64 samples_of(struct sampler *s, enum ibs_src src)
{
	struct snapshot snap;
	__u64 n = 0;

	snapshot(s, &snap);
	for (size_t g = 0; g < snap.n_groups; g++)
		for (size_t i = 0; i < snap.groups[g].n_series; i++)
			if (snap.groups[g].series[i].src == src)
				n += snap.groups[g].series[i].samples;
	snapshot_free(&snap);
	return n;
}

/*
 * Any part of the sample moves to another place: the record is found again, and it is the new one
 * that counts. From then on it is expected there: a left-over record tells, for which no pointer is.
 */
static void check_move(struct twin_raw move, bool relearn)
{
	struct sampler *s = open_twin(&zen4);
	__u8 raw[IBS_TWIN_RAW_MAX];
	struct twin_raw old = { .raw = raw };
	regs_t regs;

	load_miss(regs, L3, 60);
	old.bytes = to_raw(regs, raw);
	assert_int_equal(run_raw(s, &old), IBS_OUTCOME_AGGREGATED);
	move.raw = raw;
	move.bytes = old.bytes;
	move.fault = IBS_TWIN_LEFT_OVERS;
	assert_int_equal(run_raw(s, &move),
			 relearn ? IBS_OUTCOME_LOST_NO_RAW : IBS_OUTCOME_AGGREGATED);
	load_miss(regs, DRAM, 300);
	to_raw(regs, raw);
	move.fault = IBS_TWIN_WHOLE;
	assert_int_equal(run_raw(s, &move), IBS_OUTCOME_AGGREGATED);
	assert_int_equal(samples_of(s, IBS_SRC_DRAM), 1);
	move.fault = IBS_TWIN_LEFT_OVERS;
	assert_int_equal(run_raw(s, &move), IBS_OUTCOME_AGGREGATED);
	assert_int_equal(run_raw(s, &old), IBS_OUTCOME_AGGREGATED);
	assert_int_equal(samples_of(s, IBS_SRC_DRAM), 3);
	close_twin(s);
}

static void test_raw_moves(void **state)
{
	(void)state;
	bind_to(sched_getcpu()); /* each CPU remembers a place of its own */
	check_move((struct twin_raw){ .move_data = 512 }, false);
	check_move((struct twin_raw){ .move_ctx = 64, .move_raw = 64, .move_bytes = 64 }, false);
	check_move((struct twin_raw){ .move_ctx = 64 }, true);
	check_move((struct twin_raw){ .move_ctx = 8 }, true);
	check_move((struct twin_raw){ .move_raw = 8 }, true);
	check_move((struct twin_raw){ .move_raw = 1016 }, true);
	check_move((struct twin_raw){ .move_bytes = 8 }, true);
	check_move((struct twin_raw){ .move_raw = 128, .move_bytes = 256 }, true);
}

/* Each CPU remembers a place of its own. */
static void test_raw_cpus(void **state)
{
	struct sampler *s;
	__u8 raw[IBS_TWIN_RAW_MAX];
	struct twin_raw here = { .raw = raw }, there;
	cpu_set_t before;
	regs_t regs;

	(void)state;
	assert_int_equal(sched_getaffinity(0, sizeof(before), &before), 0);
	if (!CPU_ISSET(0, &before) || !CPU_ISSET(1, &before)) {
		print_message("skipped: needs CPUs 0 and 1\n");
		skip();
	}
	s = open_twin(&zen4);
	load_miss(regs, L3, 60);
	here.bytes = to_raw(regs, raw);
	there = here;
	there.move_raw = 128;
	there.move_bytes = 256;
	bind_to(0);
	assert_int_equal(run_raw(s, &here), IBS_OUTCOME_AGGREGATED);
	bind_to(1);
	assert_int_equal(run_raw(s, &there), IBS_OUTCOME_AGGREGATED);
	bind_to(0);
	here.fault = IBS_TWIN_LEFT_OVERS;
	assert_int_equal(run_raw(s, &here), IBS_OUTCOME_AGGREGATED);
	bind_to(1);
	there.fault = IBS_TWIN_LEFT_OVERS;
	assert_int_equal(run_raw(s, &there), IBS_OUTCOME_AGGREGATED);
	assert_int_equal(sched_setaffinity(0, sizeof(before), &before), 0);
	close_twin(s);
}

/* Raw records and registers, the two ways in, come to the same. */
static void test_raw_is_regs(void **state)
{
	enum { N = 3000 };
	struct sampler_opts opts = zen4;
	struct sampler *by_raw, *by_regs;
	struct snapshot a, b;
	regs_t *regs = malloc(N * sizeof(*regs));
	__u8 out[N], raw[IBS_TWIN_RAW_MAX];

	(void)state;
	assert_non_null(regs);
	opts.sel.op_mask = ~(1U << IBS_OP_KIND_BRANCH);
	opts.sel.src_mask = ~(1U << IBS_SRC_L2);
	opts.sel.min_lat = 50;
	by_raw = open_twin(&opts);
	by_regs = open_twin(&opts);
	random_regs(11, ZEN4_CAPS, regs, N);
	run_regs(by_regs, regs, N, out);
	for (int i = 0; i < N; i++) {
		struct twin_raw r = { .raw = raw, .bytes = to_raw(regs[i], raw) };

		r.bytes += i % 3 * 8; /* what is behind does not matter */
		r.move_raw = i / 100 * 8;
		assert_int_equal(run_raw(by_raw, &r), out[i]);
	}
	snapshot(by_raw, &a);
	snapshot(by_regs, &b);
	assert_memory_equal(&a.ledger, &b.ledger, sizeof(a.ledger));
	assert_int_equal(a.n_groups, b.n_groups);
	for (size_t g = 0; g < a.n_groups; g++) {
		assert_int_equal(a.groups[g].n_series, b.groups[g].n_series);
		for (size_t i = 0; i < a.groups[g].n_series; i++) {
			struct series *x = &a.groups[g].series[i], *y = &b.groups[g].series[i];

			assert_int_equal(x->samples, y->samples);
			assert_int_equal(x->sum, y->sum);
			assert_int_equal(!x->buckets, !y->buckets);
			if (x->buckets)
				assert_memory_equal(x->buckets, y->buckets,
						    IBS_LAT_BUCKETS * sizeof(*x->buckets));
		}
	}
	snapshot_free(&a);
	snapshot_free(&b);
	sampler_close(by_raw);
	sampler_close(by_regs);
	free(regs);
}

/* --- filters --- */

static void test_filter_pid(void **state)
{
	struct sampler_opts opts = zen4;
	struct child c = { .n = 1 };
	__u32 pid = getpid();
	struct sampler *s;
	regs_t regs;

	(void)state;
	load_miss(regs, DRAM, 300);
	c.regs = &regs;
	opts.sel.processes = (struct selected_pids){ .pids = &pid, .n = 1 };
	s = open_twin(&opts);
	assert_int_equal(run_one(s, regs), IBS_OUTCOME_AGGREGATED);
	run_child(s, &c);
	assert_int_equal(child_outcomes[0], IBS_OUTCOME_FILTERED_PID);
	assert_int_equal(run_raw(s, &(struct twin_raw){ .fault = IBS_TWIN_NO_RAW }),
			 IBS_OUTCOME_LOST_NO_RAW);
	close_twin(s);
	/* decided before a look at the registers */
	pid++;
	s = open_twin(&opts);
	assert_int_equal(run_one(s, regs), IBS_OUTCOME_FILTERED_PID);
	assert_int_equal(run_raw(s, &(struct twin_raw){ .fault = IBS_TWIN_NO_RAW }),
			 IBS_OUTCOME_FILTERED_PID);
	close_twin(s);
}

/* What a child of this process comes to, and its child, with this process selected. */
static void test_filter_pid_follow(void **state)
{
	struct sampler_opts opts = zen4;
	struct child c = { .n = 1 };
	__u32 pid = getpid();
	regs_t regs;

	(void)state;
	load_miss(regs, DRAM, 300);
	c.regs = &regs;
	opts.sel.processes = (struct selected_pids){ .pids = &pid, .n = 1 };
	opts.sel.follow = true;
	for (int but = 0; but < 2; but++) {
		struct sampler *s;

		opts.sel.processes.but = but;
		s = open_twin(&opts);
		assert_int_equal(run_one(s, regs),
				 but ? IBS_OUTCOME_FILTERED_PID : IBS_OUTCOME_AGGREGATED);
		run_child(s, &c);
		assert_int_equal(child_outcomes[0],
				 but ? IBS_OUTCOME_FILTERED_PID : IBS_OUTCOME_AGGREGATED);
		close_twin(s);
	}
	/* one that was there before the sampler, by its parent */
	for (int live = 0; live < 2; live++) {
		struct sampler *s;
		pid_t child;
		int go[2];

		assert_int_equal(pipe(go), 0);
		opts.sel.processes.but = false;
		opts.sel.live = live ? SAMPLER_LIVE_PROCESSES : 0;
		child = fork();
		assert_true(child >= 0);
		if (!child) {
			char byte;

			_exit(read(go[0], &byte, 1) != 1);
		}
		s = open_twin(&opts);
		assert_int_equal(s->select.processes[child], 1);
		assert_int_equal(write(go[1], "", 1), 1);
		assert_int_equal(waitpid(child, NULL, 0), child);
		close_twin(s);
		close(go[0]);
		close(go[1]);
	}
}

struct new_thread {
	struct sampler *s;
	const regs_t *regs;
	__u8 outcome;
};

static void *run_in_thread(void *arg)
{
	struct new_thread *t = arg;

	twin_run_regs(t->s, t->regs, 1, &t->outcome, NULL);
	return NULL;
}

/* A thread that a selected process starts belongs to it, and does not end its selection, nor that of threads. */
static void test_filter_new_thread(void **state)
{
	struct sampler_opts opts = zen4;
	__u32 pid = getpid(), tid = gettid();
	regs_t regs;

	(void)state;
	load_miss(regs, DRAM, 300);
	for (int i = 0; i < 4; i++) {
		const bool by_tid = i & 1, follow = i & 2;
		struct new_thread t = { .regs = (const regs_t *)&regs };
		pthread_t thread;

		opts.sel.processes = (struct selected_pids){ .pids = &pid, .n = !by_tid };
		opts.sel.threads = (struct selected_pids){ .pids = &tid, .n = by_tid };
		opts.sel.follow = follow;
		t.s = open_twin(&opts);
		assert_int_equal(pthread_create(&thread, NULL, run_in_thread, &t), 0);
		assert_int_equal(pthread_join(thread, NULL), 0);
		assert_int_equal(t.outcome, by_tid && !follow ? IBS_OUTCOME_FILTERED_TID
							      : IBS_OUTCOME_AGGREGATED);
		assert_int_equal(run_one(t.s, regs), IBS_OUTCOME_AGGREGATED);
		close_twin(t.s);
	}
}

static void test_filter_tid(void **state)
{
	struct sampler_opts opts = zen4;
	__u32 tid = gettid();
	struct sampler *s;
	regs_t regs;

	(void)state;
	load_miss(regs, DRAM, 300);
	opts.sel.threads = (struct selected_pids){ .pids = &tid, .n = 1 };
	s = open_twin(&opts);
	assert_int_equal(run_one(s, regs), IBS_OUTCOME_AGGREGATED);
	close_twin(s);
	tid++;
	s = open_twin(&opts);
	assert_int_equal(run_one(s, regs), IBS_OUTCOME_FILTERED_TID);
	close_twin(s);
}

static void test_filter_comm(void **state)
{
	static const char *const names[] = { "ibs-a", "a-name-of-15-ch", "ibs-abc" };
	static const struct {
		const char *comm;
		bool in;
	} rows[] = {
		{ "ibs-a", true },     { "ibs-ab", false },	    { "ibs-abc", true },
		{ "ibs-abcd", false }, { "a-name-of-15-ch", true }, { "a-name-of-15-c", false },
		{ "", false },
	};
	struct sampler_opts opts = zen4;
	struct child c = { .n = 1 };
	regs_t regs;

	(void)state;
	load_miss(regs, DRAM, 300);
	c.regs = &regs;
	opts.sel.comms = names;
	opts.sel.n_comms = 3;
	for (int i = 0; i < 4; i++) {
		const bool but = i & 1;
		struct sampler *s;

		opts.sel.comms_but = but;
		opts.probe_read = i & 2; /* by a helper instead of in place */
		s = open_twin(&opts);
		for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
			c.comm = rows[i].comm;
			run_child(s, &c);
			assert_int_equal(child_outcomes[0], rows[i].in != but
								    ? IBS_OUTCOME_AGGREGATED
								    : IBS_OUTCOME_FILTERED_COMM);
		}
		close_twin(s);
	}
}

/* Expressions in the program that samples: it keeps what the same terms keep in user space. */
static void test_filter_expr(void **state)
{
	static const char *const texts[] = {
		"mem_lvl == ram && weight1 > 300",
		"op == load || swpf",
		"tag_to_ret >= 100, addr > 0x100000",
		"ip & 0xff || phys_addr < 0x10000000",
		"data_src != dram && tlb_refill_lat > 10 || locked",
	};
	enum { N = 2000 };
	regs_t *regs = malloc(N * sizeof(*regs));
	__u8 *outcomes = malloc(N);

	(void)state;
	assert_non_null(regs);
	assert_non_null(outcomes);
	random_regs(11, ZEN4_CAPS, regs, N);
	for (size_t t = 0; t < sizeof(texts) / sizeof(texts[0]); t++) {
		const volatile struct ibs_cpu cpu = { .caps = ZEN4_CAPS };
		struct sampler_opts opts = zen4;
		struct filter filter;
		struct sampler *s;
		struct err err = {};
		int kept = 0;

		if (filter_parse(texts[t], &filter, &err))
			fail_msg("%s: %s", texts[t], err.text);
		opts.sel.filter = &filter.prog;
		s = open_twin(&opts);
		for (int at = 0; at < N; at += IBS_TWIN_SAMPLES) {
			int n = N - at < IBS_TWIN_SAMPLES ? N - at : IBS_TWIN_SAMPLES;

			assert_int_equal(twin_run_regs(s, &regs[at], n, &outcomes[at], &err), 0);
		}
		for (int i = 0; i < N; i++) {
			const struct ibs_filter_sample sample = { .regs = regs[i], .ibs = &cpu };
			bool want = ibs_filter_eval(&filter.prog, &sample);

			kept += want;
			assert_int_equal(outcomes[i],
					 want ? IBS_OUTCOME_AGGREGATED : IBS_OUTCOME_FILTERED_EXPR);
		}
		assert_in_range(kept, 1, N - 1);
		reached[IBS_OUTCOME_FILTERED_EXPR] += N - kept;
		close_twin(s);
		filter_free(&filter);
	}
	free(outcomes);
	free(regs);
}

/* Options that are parts of the filter, each with its own reason in the ledger. */
static void test_filter_reasons(void **state)
{
	static const struct {
		enum filter_option option;
		const char *arg;
		enum ibs_outcome reason;
	} rows[] = {
		{ FILTER_OPTION_TLB, "!l1", IBS_OUTCOME_FILTERED_TLB },
		{ FILTER_OPTION_PAGE_SIZE, "2m,1g", IBS_OUTCOME_FILTERED_PAGE_SIZE },
		{ FILTER_OPTION_RMT_NODE, "yes", IBS_OUTCOME_FILTERED_RMT_NODE },
		{ FILTER_OPTION_ADDR, "0-8000000000000000", IBS_OUTCOME_FILTERED_ADDR },
		{ FILTER_OPTION_IP, "!8000000000000000+2000000000000000", IBS_OUTCOME_FILTERED_IP },
		{ FILTER_OPTION_EXPR, "tag_to_ret > 2000", IBS_OUTCOME_FILTERED_EXPR },
		{ FILTER_OPTION_MODE, NULL, IBS_OUTCOME_FILTERED_MODE },
		{ FILTER_OPTION_TLB_LAT, NULL, IBS_OUTCOME_FILTERED_TLB_LAT },
	};
	enum { N = 1000, ROWS = sizeof(rows) / sizeof(rows[0]) };
	const volatile struct ibs_cpu cpu = { .caps = ZEN4_CAPS };
	regs_t *regs = malloc(N * sizeof(*regs));
	__u8 outcomes[N];

	(void)state;
	assert_non_null(regs);
	random_regs(12, ZEN4_CAPS, regs, N);
	/* each alone, and in the end all together */
	for (int row = 0; row <= ROWS; row++) {
		struct filter_options given = {};
		struct sampler_opts opts = zen4;
		struct filter filter;
		struct sampler *s;
		struct err err = {};
		int dropped = 0;

		for (int k = 0; k < ROWS; k++) {
			if (row != k && row != ROWS)
				continue;
			if (rows[k].option == FILTER_OPTION_MODE)
				given.user = true;
			else if (rows[k].option == FILTER_OPTION_TLB_LAT)
				given.min_tlb_lat = 50;
			else
				assert_int_equal(filter_options_add(&given, rows[k].option,
								    rows[k].arg, &err),
						 0);
		}
		assert_int_equal(filter_options_compile(&given, &filter, &err), 0);
		opts.sel.filter = &filter.prog;
		s = open_twin(&opts);
		assert_int_equal(twin_run_regs(s, regs, N, outcomes, &err), 0);
		for (int i = 0; i < N; i++) {
			struct ibs_filter_sample sample = { .regs = regs[i], .ibs = &cpu };

			sample.src = ibs_filter_src(&sample);
			assert_int_equal(outcomes[i], ibs_filter_outcome(&filter.prog, &sample));
			dropped += row < ROWS && outcomes[i] == rows[row].reason;
			reached[outcomes[i]]++;
		}
		if (row < ROWS)
			assert_in_range(dropped, 1, N - 1);
		close_twin(s);
		filter_free(&filter);
		filter_options_free(&given);
	}
	free(regs);
}

/* By copy too, registers are read that only the filter asks for. */
static void test_filter_expr_raw(void **state)
{
	static const char *const texts[] = { "addr == 0x7f0000001000", "addr != 0x7f0000001000" };
	struct {
		__u32 pad, caps;
		__u64 regs[IBS_OP_REG_FIXED];
	} raw = { .caps = ZEN4_CAPS };

	(void)state;
	load_miss(raw.regs, DRAM, 300);
	raw.regs[IBS_OP_DATA3] |= IBS_OP_DATA3_LIN_VALID;
	raw.regs[IBS_DC_LINADDR] = 0x7f0000001000;
	for (int t = 0; t < 2; t++) {
		struct sampler_opts opts = zen4;
		struct filter filter;
		struct sampler *s;

		assert_int_equal(filter_parse(texts[t], &filter, NULL), 0);
		opts.sel.filter = &filter.prog;
		s = open_twin(&opts);
		assert_int_equal(
			run_raw(s, &(struct twin_raw){ .raw = &raw.caps, .bytes = IBS_OP_RAW_MIN }),
			t ? IBS_OUTCOME_FILTERED_EXPR : IBS_OUTCOME_AGGREGATED);
		close_twin(s);
		filter_free(&filter);
	}
}

static void test_filter_op_src(void **state)
{
	enum { N = 800 };
	regs_t *regs = malloc(N * sizeof(*regs));
	struct sampler_opts opts = zen4;

	(void)state;
	assert_non_null(regs);
	random_regs(5, ZEN4_CAPS, regs, N);
	for (int op = 0; op < IBS_OP_KIND_N; op++) {
		opts.sel.op_mask = 1U << op;
		check_against_model(&opts, regs, N);
	}
	opts.sel.op_mask = 0;
	for (int src = 0; src < IBS_SRC_N; src++) {
		opts.sel.src_mask = 1U << src;
		check_against_model(&opts, regs, N);
	}
	opts.sel.op_mask = 1U << IBS_OP_KIND_LOAD | 1U << IBS_OP_KIND_LOCKED;
	opts.sel.src_mask = 1U << IBS_SRC_DRAM | 1U << IBS_SRC_REMOTE_DRAM;
	opts.sel.min_lat = 100;
	opts.sel.max_lat = 20000;
	check_against_model(&opts, regs, N);
	free(regs);
}

static enum ibs_outcome run_lat(const struct selection *sel, __u32 lat, __u64 data3)
{
	struct sampler_opts opts = zen4;
	enum ibs_outcome out;
	struct sampler *s;
	regs_t regs;

	opts.sel = *sel;
	s = open_twin(&opts);
	load_miss(regs, DRAM, lat);
	regs[IBS_OP_DATA3] ^= data3;
	out = run_one(s, regs);
	close_twin(s);
	return out;
}

static void test_filter_lat(void **state)
{
	static const struct {
		__u32 min, max, lat;
		__u64 flip; /* of data3 */
		bool in;
	} rows[] = {
		{ 100, 200, 99, 0, false },
		{ 100, 200, 100, 0, true },
		{ 100, 200, 200, 0, true },
		{ 100, 200, 201, 0, false },
		{ 100, 0, 65535, 0, true },
		{ 0, 100, 0, 0, true },
		{ 0, 65535, 65535, 0, true },
		{ 65535, 0, 65534, 0, false },
		{ 65535, 0, 65535, 0, true },
		{ 1, 0, 0, 0, false },
		/* not valid: a store, a hit, a prefetch, an uncached load */
		{ 100, 200, 150, IBS_OP_DATA3_LD_OP | IBS_OP_DATA3_ST_OP, false },
		{ 0, 65535, 0, IBS_OP_DATA3_DC_MISS, false },
		{ 0, 65535, 150, IBS_OP_DATA3_SW_PF, false },
		{ 1, 0, 150, IBS_OP_DATA3_UC_MEM_ACC, false },
		{ 0, 0, 150, IBS_OP_DATA3_UC_MEM_ACC, true },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		const struct selection sel = { .min_lat = rows[i].min, .max_lat = rows[i].max };

		assert_int_equal(run_lat(&sel, rows[i].lat, rows[i].flip),
				 rows[i].in ? IBS_OUTCOME_AGGREGATED : IBS_OUTCOME_FILTERED_LAT);
	}
}

static void test_filter_cgroup(void **state)
{
	(void)state;
	need_cgroups();
	check_filter_cgroup(zen4);
}

/* Runs last. */
static void test_all_outcomes(void **state)
{
	(void)state;
	for (int o = 0; o < IBS_OUTCOME_N; o++) {
		if (o == IBS_OUTCOME_FILTERED_CGROUP && !cgroup_root[0])
			continue;
		if (!reached[o] == can_reach(o))
			fail_msg("%s: %llu samples", outcome_name(o), reached[o]);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_raw_cpus),       cmocka_unit_test(test_raw_sizes),
		cmocka_unit_test(test_raw_faults),     cmocka_unit_test(test_raw_moves),
		cmocka_unit_test(test_raw_is_regs),    cmocka_unit_test(test_filter_pid),
		cmocka_unit_test(test_filter_op_src),  cmocka_unit_test(test_filter_pid_follow),
		cmocka_unit_test(test_filter_tid),     cmocka_unit_test(test_filter_expr),
		cmocka_unit_test(test_filter_reasons), cmocka_unit_test(test_filter_expr_raw),
		cmocka_unit_test(test_filter_comm),    cmocka_unit_test(test_filter_lat),
		cmocka_unit_test(test_filter_cgroup),  cmocka_unit_test(test_filter_new_thread),
		cmocka_unit_test(test_all_outcomes),
	};

	if (!can_run())
		return 77;
	return cmocka_run_group_tests(tests, children_up, children_down);
}
