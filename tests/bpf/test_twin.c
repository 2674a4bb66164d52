// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * The program's own functions, run by the kernel on samples made here: every outcome, every filter,
 * every grouping, and the counts that come out against a plain model of them.
 */
#include <dirent.h>
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include <bpf/bpf.h>
#include <ibscope/op_fields.h>
#include <ibscope/sim.h>

#include "cgroup_mode.h"
#include "sampler.h"
#include "filter_options.h"
#include "offline.h"
#include "sampler_private.h"
#include "twin.h"

#define ZEN3_CAPS 0x3ffU
#define ZEN4_CAPS 0xbffU
#define ZEN5_CAPS 0x81bffU

typedef __u64 regs_t[IBS_OP_REG_FIXED];

static __u64 reached[IBS_OUTCOME_N];

static const struct sampler_opts zen4 = {
	.source = SAMPLER_TWIN,
	.ibs.caps = ZEN4_CAPS,
	.max_groups = 64,
};

static struct sampler *open_twin(const struct sampler_opts *opts)
{
	struct sampler *s = NULL;
	struct err err = {};

	if (sampler_open(opts, &s, &err))
		fail_msg("%s", err.text);
	return s;
}

static void snapshot(struct sampler *s, struct snapshot *snap)
{
	struct err err = {};

	if (sampler_snapshot(s, snap, &err))
		fail_msg("%s", err.text);
	assert_int_equal(ledger_residual(&snap->ledger), 0);
	for (int o = 0; o < IBS_OUTCOME_N; o++)
		reached[o] += snap->ledger.outcome[o];
}

static enum ibs_outcome run_raw(struct sampler *s, const struct twin_raw *raw)
{
	enum ibs_outcome out = IBS_OUTCOME_N;
	struct err err = {};

	if (twin_run_raw(s, raw, &out, &err))
		fail_msg("%s", err.text);
	return out;
}

static void run_regs(struct sampler *s, const regs_t *regs, size_t n, __u8 *outcomes)
{
	struct err err = {};

	if (twin_run_regs(s, regs, n, outcomes, &err))
		fail_msg("%s", err.text);
}

static enum ibs_outcome run_one(struct sampler *s, const regs_t regs)
{
	__u8 out = IBS_OUTCOME_N;

	run_regs(s, (const regs_t *)regs, 1, &out);
	return out;
}

static void close_twin(struct sampler *s)
{
	struct snapshot snap;

	snapshot(s, &snap);
	snapshot_free(&snap);
	sampler_close(s);
}

/* --- samples --- */

#define LOAD_MISS \
	(IBS_OP_DATA3_LD_OP | IBS_OP_DATA3_DC_MISS | IBS_OP_DATA3_L2_MISS | IBS_OP_DATA3_LIN_VALID)
#define DRAM 3 /* DataSrc */
#define L3   1

static void load_miss(regs_t regs, __u32 data_src, __u32 lat)
{
	memset(regs, 0, sizeof(regs_t));
	regs[IBS_OP_DATA2] = data_src;
	regs[IBS_OP_DATA3] = LOAD_MISS | (__u64)lat << 32;
}

static size_t to_raw(const regs_t regs, __u8 *raw)
{
	__u32 caps = ZEN4_CAPS;

	memset(raw, 0x5a, IBS_TWIN_RAW_MAX);
	memcpy(raw, &caps, sizeof(caps));
	memcpy(raw + sizeof(caps), regs, sizeof(regs_t));
	return sizeof(caps) + sizeof(regs_t);
}

/* Half of them what hardware could say, half arbitrary bits. */
static void random_regs(__u64 seed, __u32 caps, regs_t *regs, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		ibs_sim_op(seed, 0, i, caps, regs[i]);
		if (i & 1)
			for (int r = 0; r < IBS_OP_REG_FIXED; r++)
				regs[i][r] = ibs_sim_mix(seed + i * 8 + r);
	}
}

/* --- the model: what must have been counted --- */

struct model_series {
	__u64 samples, valid, sum, buckets[IBS_LAT_BUCKETS];
};

struct model {
	struct model_series at[IBS_SRC_N][IBS_OP_KIND_N];
	__u64 outcome[IBS_OUTCOME_N];
	__u64 seen;
};

static enum ibs_outcome model_outcome(const struct sampler_opts *o, const regs_t regs)
{
	__u64 data3 = regs[IBS_OP_DATA3];
	__u32 lat = ibs_op_metric(o->metric, regs, data3);
	const struct selection *sel = &o->sel;

	if ((sel->min_lat || sel->max_lat) &&
	    (!ibs_op_metric_valid(o->metric, o->ibs.caps, data3) || lat < sel->min_lat ||
	     (sel->max_lat && lat > sel->max_lat)))
		return IBS_OUTCOME_FILTERED_LAT;
	if (sel->op_mask && !(sel->op_mask >> ibs_op_kind(regs[IBS_OP_DATA], data3) & 1))
		return IBS_OUTCOME_FILTERED_OP;
	if (sel->src_mask && !(sel->src_mask >> ibs_op_src(o->ibs, regs) & 1))
		return IBS_OUTCOME_FILTERED_SRC;
	return IBS_OUTCOME_AGGREGATED;
}

static enum ibs_outcome model_add(struct model *m, const struct sampler_opts *o, const regs_t regs)
{
	enum ibs_outcome out = model_outcome(o, regs);
	__u64 data3 = regs[IBS_OP_DATA3];
	struct model_series *s =
		&m->at[ibs_op_src(o->ibs, regs)][ibs_op_kind(regs[IBS_OP_DATA], data3)];
	__u32 lat = ibs_op_metric(o->metric, regs, data3), b = 0;

	m->seen++;
	m->outcome[out]++;
	if (out != IBS_OUTCOME_AGGREGATED)
		return out;
	s->samples++;
	if (!ibs_op_metric_valid(o->metric, o->ibs.caps, data3))
		return out;
	while (ibs_lat_le(b) < lat)
		b++;
	s->valid++;
	s->sum += lat;
	s->buckets[b]++;
	return out;
}

/* With @times the model holds for one of so many equal parts of the group. */
static void check_group(const struct group *g, const struct model *m, __u64 times)
{
	size_t n = 0;

	for (int src = 0; src < IBS_SRC_N; src++)
		for (int op = 0; op < IBS_OP_KIND_N; op++)
			n += m->at[src][op].samples > 0;
	assert_int_equal(g->n_series, n);
	for (size_t i = 0; i < g->n_series; i++) {
		const struct series *s = &g->series[i];
		const struct model_series *want = &m->at[s->src][s->op];

		assert_int_equal(s->samples, want->samples * times);
		assert_int_equal(s->valid, want->valid * times);
		assert_int_equal(s->sum, want->sum * times);
		for (int b = 0; b < IBS_LAT_BUCKETS; b++)
			assert_int_equal(s->buckets ? s->buckets[b] : 0, want->buckets[b] * times);
	}
}

static void check_ledger(const struct ledger *l, const struct model *m)
{
	assert_int_equal(l->seen, m->seen);
	for (int o = 0; o < IBS_OUTCOME_N; o++)
		assert_int_equal(l->outcome[o], m->outcome[o]);
}

/* @n samples go in, and what comes out is what the model says, sample by sample and in sum. */
static void check_against_model(const struct sampler_opts *opts, const regs_t *regs, size_t n)
{
	struct sampler *s = open_twin(opts);
	struct model *m = calloc(1, sizeof(*m));
	__u8 *outcomes = malloc(n);
	struct snapshot snap;

	assert_non_null(m);
	assert_non_null(outcomes);
	run_regs(s, regs, n, outcomes);
	for (size_t i = 0; i < n; i++)
		assert_int_equal(outcomes[i], model_add(m, opts, regs[i]));
	snapshot(s, &snap);
	check_ledger(&snap.ledger, m);
	assert_int_equal(snap.n_groups, 1);
	check_group(&snap.groups[0], m, 1);
	snapshot_free(&snap);
	free(outcomes);
	free(m);
	sampler_close(s);
}

/* Periods of every length: weights and TLB misses against sums made here, in the kernel and offline. */
#define WEIGHTS_N 3000

static void check_weights(const struct snapshot *snap, const struct ibs_twin_sample *sample,
			  bool weigh)
{
	__u64 weight[IBS_OP_KIND_N][IBS_SRC_N] = {};
	bool met[IBS_OP_KIND_N][IBS_SRC_N] = {};
	struct tlb_counts tlb = {};
	const struct group *g;
	size_t n_met = 0;

	for (size_t i = 0; i < WEIGHTS_N; i++) {
		const __u64 *regs = sample[i].regs, data3 = regs[IBS_OP_DATA3];
		const struct ibs_cpu cpu = { .caps = ZEN4_CAPS };
		struct ibs_op_sample s = { .cpu = cpu };
		enum ibs_op_kind kind = ibs_op_kind(regs[IBS_OP_DATA], data3);
		enum ibs_src src = ibs_op_src(cpu, regs);
		__u64 w = weigh ? sample[i].period : 0;

		memcpy(s.reg, regs, sizeof(sample[i].regs));
		n_met += !met[kind][src];
		met[kind][src] = true;
		weight[kind][src] += w;
		if (!ibs_op_valid_l2tlb(&s))
			continue;
		*(data3 >> 3 & 1 ? &tlb.l2_miss : &tlb.l2_hit) += 1;
		*(data3 >> 3 & 1 ? &tlb.l2_miss_weight : &tlb.l2_hit_weight) += w;
		if (ibs_op_valid_tlb_refill_lat(&s)) {
			tlb.refills++;
			tlb.refill_cycles += data3 >> 48;
		}
	}
	assert_int_equal(snap->n_groups, 1);
	g = &snap->groups[0];
	assert_int_equal(g->n_series, n_met);
	for (size_t i = 0; i < g->n_series; i++)
		assert_int_equal(g->series[i].weight, weight[g->series[i].op][g->series[i].src]);
	assert_true(tlb.l2_hit && tlb.l2_miss && tlb.refills);
	assert_memory_equal(&g->tlb, &tlb, sizeof(tlb));
}

static void test_weights(void **state)
{
	struct ibs_twin_sample *sample = calloc(WEIGHTS_N, sizeof(*sample));
	struct ibs_twin_who *who = calloc(WEIGHTS_N, sizeof(*who));
	regs_t *regs = calloc(WEIGHTS_N, sizeof(*regs));

	(void)state;
	assert_true(sample && who && regs);
	random_regs(7, ZEN4_CAPS, regs, WEIGHTS_N);
	for (size_t i = 0; i < WEIGHTS_N; i++) {
		memcpy(sample[i].regs, regs[i], sizeof(regs[i]));
		sample[i].period = ibs_sim_mix(i) >> (24 + i % 32);
		who[i].cgroup_id = 1;
	}
	for (int weigh = 0; weigh < 2; weigh++) {
		struct sampler_opts opts = zen4;
		struct offline *o = NULL;
		struct snapshot snap;
		struct sampler *s;
		struct err err = {};

		opts.weigh = weigh;
		opts.tlb = true;
		s = open_twin(&opts);
		assert_int_equal(twin_run_replay(s, sample, who, WEIGHTS_N, &err), 0);
		snapshot(s, &snap);
		check_weights(&snap, sample, weigh);
		snapshot_free(&snap);
		sampler_close(s);

		assert_int_equal(offline_open(&opts, &o, &err), 0);
		assert_int_equal(offline_run(o, sample, who, WEIGHTS_N, &err), 0);
		assert_int_equal(offline_snapshot(o, &snap, &err), 0);
		check_weights(&snap, sample, weigh);
		snapshot_free(&snap);
		offline_close(o);
	}
	free(sample);
	free(who);
	free(regs);
}

/* More cgroups than slots: in the end those that do most have one, and no sample is lost. */
#define ROOM_SLOTS 8

static void run_cgroups(struct sampler *s, __u64 first, size_t n, size_t samples, __u64 *total)
{
	struct ibs_twin_sample sample[IBS_TWIN_SAMPLES] = {};
	struct ibs_twin_who who[IBS_TWIN_SAMPLES] = {};
	struct err err = {};
	size_t k = 0;

	/* one after the other, as if all of them ran at once */
	for (size_t round = 0; round < samples; round++) {
		for (size_t i = 0; i < n; i++, k++) {
			assert_true(k < IBS_TWIN_SAMPLES);
			load_miss(sample[k].regs, DRAM, 300);
			sample[k].period = 1000;
			who[k].cgroup_id = first + i;
		}
	}
	assert_int_equal(twin_run_replay(s, sample, who, k, &err), 0);
	*total += k;
}

static size_t groups_in(struct sampler *s, __u64 first, size_t n, __u64 total)
{
	size_t found = 0;
	__u64 sum = 0;
	struct snapshot snap;

	snapshot(s, &snap);
	for (size_t g = 0; g < snap.n_groups; g++) {
		const struct group *gr = &snap.groups[g];

		for (size_t i = 0; i < gr->n_series; i++) {
			sum += gr->series[i].samples;
			assert_int_equal(gr->series[i].weight, 1000 * gr->series[i].samples);
		}
		found += !gr->other && gr->key.cgroup_id >= first && gr->key.cgroup_id < first + n;
	}
	assert_int_equal(sum, total);
	snapshot_free(&snap);
	return found;
}

/* Registers alone weigh the same whatever was replayed before; what has no period is refused. */
static void test_weights_of_regs(void **state)
{
	struct ibs_twin_sample sample = { .period = 1000 };
	struct ibs_twin_who who = { .cgroup_id = 1 };
	struct sampler_opts opts = zen4;
	enum ibs_outcome out;
	struct snapshot snap;
	struct err err = {};
	struct sampler *s;

	(void)state;
	opts.weigh = true;
	s = open_twin(&opts);
	load_miss(sample.regs, DRAM, 300);
	assert_int_equal(twin_run_replay(s, &sample, &who, 1, &err), 0);
	assert_int_equal(run_one(s, sample.regs), IBS_OUTCOME_AGGREGATED);
	assert_int_equal(twin_run_raw(s, &(struct twin_raw){}, &out, &err), -EINVAL);
	snapshot(s, &snap);
	assert_int_equal(snap.groups[0].series[0].samples, 2);
	assert_int_equal(snap.groups[0].series[0].weight, 1001);
	snapshot_free(&snap);
	sampler_close(s);
}

static struct sampler *open_rooms(__u32 slots)
{
	struct sampler_opts opts = zen4;

	opts.by = IBS_BY_CGROUP;
	opts.max_groups = slots;
	opts.weigh = true;
	return open_twin(&opts);
}

static void test_make_room(void **state)
{
	const __u64 quiet = 100, busy = 200;
	struct sampler *s = open_rooms(ROOM_SLOTS);
	__u64 total = 0, moved = 0;
	struct err err = {};

	(void)state;
	run_cgroups(s, quiet, ROOM_SLOTS, 1, &total);
	assert_int_equal(groups_in(s, quiet, ROOM_SLOTS, total), ROOM_SLOTS);
	assert_int_equal(sampler_make_room(s, &err), 0); /* the first look */
	for (int round = 0; round < 2 * ROOM_SLOTS; round++) {
		int n;

		run_cgroups(s, busy, ROOM_SLOTS, 20, &total);
		run_cgroups(s, quiet, ROOM_SLOTS, 1, &total);
		n = sampler_make_room(s, &err);
		assert_true(n >= 0 && n <= 1);
		moved += n;
		groups_in(s, quiet, ROOM_SLOTS, total);
	}
	assert_int_equal(groups_in(s, busy, ROOM_SLOTS, total), ROOM_SLOTS);
	assert_int_equal(groups_in(s, quiet, ROOM_SLOTS, total), 0);
	/* each made way once, but for those that came back for a moment */
	assert_in_range(moved, ROOM_SLOTS, 2 * ROOM_SLOTS);
	/* as many that do as much find nobody who would make way */
	moved = 0;
	for (int round = 0; round < 4; round++) {
		run_cgroups(s, busy, ROOM_SLOTS + 4, 20, &total);
		moved += sampler_make_room(s, &err);
	}
	assert_int_equal(moved, 0);
	assert_int_equal(groups_in(s, busy, ROOM_SLOTS, total), ROOM_SLOTS);
	sampler_close(s);
}

static bool has_slot(struct sampler *s, __u64 cgroup_id)
{
	struct ibs_cgroup cg;

	assert_int_equal(bpf_map_lookup_elem(sampler_fold_maps(s).cgroups, &cgroup_id, &cg), 0);
	return cg.slot != IBS_SLOT_OTHER;
}

static __u32 slots_used(struct sampler *s)
{
	const struct ibs_slot_owner *owners = s->slot_owners.addr;
	__u32 n = 0;

	for (__u32 slot = 1; slot < s->max_slots; slot++)
		n += owners[slot].used == IBS_SLOT_USED;
	return n;
}

/* A cgroup that asked for a slot while those that leave were not free yet. */
static void test_room_asked_early(void **state)
{
	struct sampler *s = open_rooms(ROOM_SLOTS);
	int cgroups = sampler_fold_maps(s).cgroups;
	const __u64 quiet = 100, busy = 200;
	struct ibs_cgroup cg;
	struct err err = {};
	__u64 total = 0;

	(void)state;
	run_cgroups(s, quiet, ROOM_SLOTS, 1, &total);
	assert_int_equal(sampler_make_room(s, &err), 0);
	run_cgroups(s, busy, 1, 20, &total);
	assert_false(has_slot(s, busy));
	assert_int_equal(bpf_map_lookup_elem(cgroups, &busy, &cg), 0);
	cg.gen++;
	assert_int_equal(bpf_map_update_elem(cgroups, &busy, &cg, BPF_EXIST), 0);
	assert_int_equal(sampler_make_room(s, &err), 1);
	run_cgroups(s, busy, 1, 1, &total);
	assert_true(has_slot(s, busy));
	assert_int_equal(groups_in(s, busy, 1, total), 1);
	close_twin(s);
}

static bool dead_in(void *arg, __u64 cgroup_id)
{
	for (const __u64 *id = arg; *id; id++)
		if (*id == cgroup_id)
			return true;
	return false;
}

/* Slots that are far from each other are all found. */
static void test_room_far(void **state)
{
	enum { SLOTS = 200 };
	struct sampler *s = open_rooms(SLOTS);
	__u64 dead[] = { 103, 150, 298, 0 };
	struct err err = {};
	__u64 total = 0;

	(void)state;
	run_cgroups(s, 100, SLOTS, 1, &total);
	run_cgroups(s, 500, 3, 1, &total);
	assert_int_equal(groups_in(s, 500, 3, total), 0);
	assert_int_equal(sampler_fold(s, dead_in, dead, &err), 3);
	run_cgroups(s, 500, 3, 20, &total);
	for (__u64 id = 500; id < 503; id++)
		assert_true(has_slot(s, id));
	assert_int_equal(slots_used(s), SLOTS);
	assert_int_equal(groups_in(s, 500, 3, total), 3);
	close_twin(s);
}

/* What dead cgroups leave to `other` is no activity of those that wait. */
static void test_room_after_fold(void **state)
{
	struct sampler *s = open_rooms(ROOM_SLOTS);
	const __u64 quiet = 100, waiting = 200;
	__u64 dead[] = { quiet, 0 };
	struct err err = {};
	__u64 total = 0;

	(void)state;
	run_cgroups(s, quiet, 1, 1000, &total);
	run_cgroups(s, quiet + 1, ROOM_SLOTS - 1, 1, &total);
	assert_int_equal(sampler_make_room(s, &err), 0);
	run_cgroups(s, waiting, 2, 1, &total);
	run_cgroups(s, quiet + 1, ROOM_SLOTS - 1, 5, &total);
	assert_int_equal(sampler_fold(s, dead_in, dead, &err), 1);
	run_cgroups(s, waiting, 2, 5, &total);
	assert_int_equal(slots_used(s), ROOM_SLOTS);
	assert_int_equal(sampler_make_room(s, &err), 0);
	/* but what those did before that is */
	run_cgroups(s, waiting + 1, 1, 100, &total);
	dead[0] = quiet + 1;
	assert_int_equal(sampler_fold(s, dead_in, dead, &err), 1);
	run_cgroups(s, waiting, 2, 1, &total);
	run_cgroups(s, waiting + 2, 1, 1, &total);
	assert_int_equal(slots_used(s), ROOM_SLOTS);
	assert_int_equal(sampler_make_room(s, &err), 1);
	groups_in(s, quiet, ROOM_SLOTS, total);
	close_twin(s);
}

/* Two slots of one cgroup, as two CPUs take that meet it at once: they become one, and none is lost. */
static void test_fold_twins(void **state)
{
	struct sampler *s = open_rooms(ROOM_SLOTS);
	int cgroups = sampler_fold_maps(s).cgroups;
	struct ibs_cgroup cg, no_slot;
	const __u64 id = 100;
	__u64 none[] = { 0 };
	struct snapshot snap;
	struct err err = {};
	__u64 total = 0;

	(void)state;
	for (int later = 0; later < 2; later++) {
		__u64 total_before = total;

		run_cgroups(s, id, 1, 5, &total);
		assert_int_equal(bpf_map_lookup_elem(cgroups, &id, &cg), 0);
		no_slot = cg;
		no_slot.gen--;
		no_slot.slot = IBS_SLOT_OTHER;
		assert_int_equal(bpf_map_update_elem(cgroups, &id, &no_slot, BPF_EXIST), 0);
		s->select.control->gen++;
		run_cgroups(s, id, 1, 7, &total);
		assert_int_equal(slots_used(s), 2);
		if (later) { /* the other one is used */
			assert_int_equal(bpf_map_lookup_elem(cgroups, &id, &no_slot), 0);
			no_slot.slot = cg.slot;
			assert_int_equal(bpf_map_update_elem(cgroups, &id, &no_slot, BPF_EXIST), 0);
		}
		assert_int_equal(sampler_fold(s, dead_in, none, &err), 0);
		assert_int_equal(slots_used(s), 1);
		assert_int_equal(total, total_before + 12);
		run_cgroups(s, id, 1, 1, &total);
		assert_int_equal(slots_used(s), 1);
		snapshot(s, &snap);
		assert_int_equal(snap.n_groups, 1);
		assert_int_equal(snap.groups[0].key.cgroup_id, id);
		assert_int_equal(snap.groups[0].series[0].samples, total);
		snapshot_free(&snap);
	}
	close_twin(s);
}

/* --- children: other processes, names and cgroups --- */

struct child {
	const char *cgroup; /* directory to enter, or NULL */
	const char *comm;
	const regs_t *regs;
	size_t n;
};

static __u8 *child_outcomes; /* shared with children */
#define CHILD_OUTCOMES 4096

static bool enter_cgroup(const char *dir)
{
	char path[640];
	bool ok;
	FILE *f;

	snprintf(path, sizeof(path), "%s/cgroup.procs", dir);
	f = fopen(path, "we");
	if (!f)
		return false;
	ok = fputs("0", f) >= 0;
	return !fclose(f) && ok;
}

/* No asserts here: a child must not go on with the tests. */
static int child_main(struct sampler *s, const struct child *c)
{
	if (c->cgroup && !enter_cgroup(c->cgroup))
		return 2;
	if (c->comm)
		prctl(PR_SET_NAME, c->comm);
	return twin_run_regs(s, c->regs, c->n, child_outcomes, NULL) ? 3 : 0;
}

static pid_t run_child(struct sampler *s, const struct child *c)
{
	int status;
	pid_t pid;

	assert_true(c->n <= CHILD_OUTCOMES);
	pid = fork();
	assert_true(pid >= 0);
	if (!pid)
		_exit(child_main(s, c));
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), 0);
	return pid;
}

static char cgroup_root[320];

/* A directory below the test's own; its id. */
static __u64 make_cgroup(const char *name, char path[640])
{
	struct stat st;

	snprintf(path, 640, "%s/%s", cgroup_root, name);
	assert_true(!mkdir(path, 0755) || errno == EEXIST);
	assert_int_equal(stat(path, &st), 0);
	return st.st_ino;
}

static void remove_tree(const char *dir)
{
	struct dirent *e;
	DIR *d = opendir(dir);

	while (d && (e = readdir(d))) {
		char path[640];

		if (e->d_type != DT_DIR || e->d_name[0] == '.')
			continue;
		snprintf(path, sizeof(path), "%s/%s", dir, e->d_name);
		remove_tree(path);
	}
	if (d)
		closedir(d);
	rmdir(dir);
}

static int cgroups_up(void **state)
{
	struct cgroup_fs fs;

	(void)state;
	if (cgroup_mode_detect("", &fs, NULL) || !fs.path[0])
		return 0;
	snprintf(cgroup_root, sizeof(cgroup_root), "%s/ibscope-test-%d", fs.path, getpid());
	if (mkdir(cgroup_root, 0755)) {
		print_message("%s: %s\n", cgroup_root, strerror(errno));
		cgroup_root[0] = 0;
	}
	return 0;
}

static int cgroups_down(void **state)
{
	(void)state;
	if (cgroup_root[0])
		remove_tree(cgroup_root);
	cgroup_root[0] = 0;
	return 0;
}

static void need_cgroups(void)
{
	if (!cgroup_root[0]) {
		print_message("skipped: no cgroup v2 hierarchy in which cgroups can be made\n");
		skip();
	}
}

/* --- raw records --- */

static void check_size(struct sampler *s, __u32 bytes)
{
	__u8 raw[IBS_TWIN_RAW_MAX];
	regs_t regs;

	load_miss(regs, DRAM, 300);
	to_raw(regs, raw);
	assert_int_equal(run_raw(s, &(struct twin_raw){ .raw = raw, .bytes = bytes }),
			 bytes >= 60 && bytes % 8 == 4 ? IBS_OUTCOME_AGGREGATED
						       : IBS_OUTCOME_LOST_BAD_RAW);
}

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
	check_move((struct twin_raw){ .move_data = 512 }, false);
	check_move((struct twin_raw){ .move_ctx = 64, .move_raw = 64, .move_bytes = 64 }, false);
	check_move((struct twin_raw){ .move_ctx = 64 }, true);
	check_move((struct twin_raw){ .move_raw = 8 }, true);
	check_move((struct twin_raw){ .move_raw = 1016 }, true);
	check_move((struct twin_raw){ .move_bytes = 8 }, true);
	check_move((struct twin_raw){ .move_raw = 128, .move_bytes = 256 }, true);
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

/* --- the whole decode against the pure functions --- */

static const struct ibs_cpu cpus[] = {
	{ .caps = IBS_CAPS_DEFAULT },
	{ .caps = ZEN3_CAPS, .quirks = IBS_QUIRK_OP_1293 },
	{ .caps = ZEN4_CAPS },
	{ .caps = ZEN5_CAPS },
};

static void test_random(void **state)
{
	enum { N = 12000 };
	regs_t *regs = malloc(N * sizeof(*regs));
	__u64 seed = 1;

	(void)state;
	assert_non_null(regs);
	for (size_t c = 0; c < sizeof(cpus) / sizeof(cpus[0]); c++) {
		for (int metric = 0; metric < IBS_METRIC_N; metric++) {
			struct sampler_opts opts = zen4;

			opts.ibs = cpus[c];
			opts.metric = metric;
			random_regs(seed++, cpus[c].caps, regs, N);
			check_against_model(&opts, regs, N);
		}
	}
	free(regs);
}

/* Each latency once: every bucket and both of its edges. */
static void test_every_latency(void **state)
{
	regs_t *regs = malloc((IBS_LAT_MAX + 1) * sizeof(*regs));

	(void)state;
	assert_non_null(regs);
	for (__u32 lat = 0; lat <= IBS_LAT_MAX; lat++)
		load_miss(regs[lat], DRAM, lat);
	check_against_model(&zen4, regs, IBS_LAT_MAX + 1);
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
		assert_int_equal(sampler_selection(s)->processes[child], 1);
		assert_int_equal(write(go[1], "", 1), 1);
		assert_int_equal(waitpid(child, NULL, 0), child);
		close_twin(s);
		close(go[0]);
		close(go[1]);
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
		{ "ibs-abcd", false }, { "a-name-of-15-ch", true }, { "a-name-of-15-c", false }
	};
	struct sampler_opts opts = zen4;
	struct child c = { .n = 1 };
	regs_t regs;

	(void)state;
	load_miss(regs, DRAM, 300);
	c.regs = &regs;
	opts.sel.comms = names;
	opts.sel.n_comms = 3;
	for (int but = 0; but < 2; but++) {
		struct sampler *s;

		opts.sel.comms_but = but;
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
	enum { N = 2000 };
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

/* --- cgroups --- */

static const char *const tree[] = { "a", "a/b", "a/b/c", "a/b/c/d", "a/x", "ab", "z" };
#define TREE_N (sizeof(tree) / sizeof(tree[0]))

static enum ibs_outcome outcome_in(struct sampler *s, const char *name, __u32 lat)
{
	struct child c = { .n = 1 };
	char path[640];
	regs_t regs;

	load_miss(regs, DRAM, lat);
	make_cgroup(name, path);
	c.cgroup = path;
	c.regs = &regs;
	run_child(s, &c);
	return child_outcomes[0];
}

static void check_filter_cgroup(struct sampler_opts opts)
{
	static const bool in[TREE_N] = { true, true, true, true, true, false, false };
	struct selected_cgroup sel = {};
	char path[640];

	for (size_t i = 0; i < TREE_N; i++)
		make_cgroup(tree[i], path);
	sel.id = make_cgroup("a", path);
	opts.sel.cgroups = &sel;
	opts.sel.n_cgroups = 1;
	for (int by = 0; by <= IBS_BY_CGROUP; by++) {
		struct sampler *s;

		opts.by = by;
		s = open_twin(&opts);
		/* twice: the second time from what the CPU remembers */
		for (size_t i = 0; i < 2 * TREE_N; i++)
			assert_int_equal(outcome_in(s, tree[i % TREE_N], 300),
					 in[i % TREE_N] ? IBS_OUTCOME_AGGREGATED
							: IBS_OUTCOME_FILTERED_CGROUP);
		close_twin(s);
	}
}

static void test_filter_cgroup(void **state)
{
	(void)state;
	need_cgroups();
	check_filter_cgroup(zen4);
}

/* Left out below what is selected, and selected again below that. */
static void test_filter_cgroup_out(void **state)
{
	static const bool in[TREE_N] = { true, false, false, true, true, false, false };
	struct sampler_opts opts = zen4;
	struct selected_cgroup sel[3] = {};
	struct sampler *s;
	char path[640];

	(void)state;
	need_cgroups();
	for (size_t i = 0; i < TREE_N; i++)
		make_cgroup(tree[i], path);
	sel[0].id = make_cgroup("a", path);
	sel[1].id = make_cgroup("a/b", path);
	sel[1].out = true;
	sel[2].id = make_cgroup("a/b/c/d", path);
	opts.sel.cgroups = sel;
	opts.sel.n_cgroups = 3;
	s = open_twin(&opts);
	for (size_t i = 0; i < TREE_N; i++)
		assert_int_equal(outcome_in(s, tree[i], 300),
				 in[i] ? IBS_OUTCOME_AGGREGATED : IBS_OUTCOME_FILTERED_CGROUP);
	close_twin(s);
	/* nothing but one left out: all else is in */
	opts.sel.cgroups = &sel[1];
	opts.sel.n_cgroups = 1;
	s = open_twin(&opts);
	for (size_t i = 0; i < TREE_N; i++)
		assert_int_equal(outcome_in(s, tree[i], 300), !strncmp(tree[i], "a/b", 3)
								      ? IBS_OUTCOME_FILTERED_CGROUP
								      : IBS_OUTCOME_AGGREGATED);
	close_twin(s);
}

/* The selection changes under a sampler that goes on; what is kept keeps its series. */
static void test_live(void **state)
{
	struct sampler_opts opts = zen4;
	struct selected_cgroup sel = {};
	struct selected_pids none = {}, others = {};
	struct err err = {};
	struct snapshot snap;
	struct sampler *s;
	__u32 pid = getpid();
	char path[640];
	regs_t regs;

	(void)state;
	need_cgroups();
	load_miss(regs, DRAM, 300);
	opts.sel.live = SAMPLER_LIVE_ALL;
	s = open_twin(&opts);
	assert_int_equal(outcome_in(s, "a", 300), IBS_OUTCOME_AGGREGATED);
	sel.id = make_cgroup("z", path);
	assert_int_equal(sampler_set_cgroups(s, &sel, 1, &err), 0);
	assert_int_equal(outcome_in(s, "a", 300), IBS_OUTCOME_FILTERED_CGROUP);
	assert_int_equal(outcome_in(s, "z", 300), IBS_OUTCOME_AGGREGATED);
	sel.id = make_cgroup("a", path);
	sel.min_lat = 400;
	assert_int_equal(sampler_set_cgroups(s, &sel, 1, &err), 0);
	assert_int_equal(outcome_in(s, "z", 300), IBS_OUTCOME_FILTERED_CGROUP);
	assert_int_equal(outcome_in(s, "a", 300), IBS_OUTCOME_FILTERED_LAT);
	assert_int_equal(outcome_in(s, "a", 400), IBS_OUTCOME_AGGREGATED);
	assert_int_equal(sampler_set_cgroups(s, NULL, 0, &err), 0);
	assert_int_equal(outcome_in(s, "a", 300), IBS_OUTCOME_AGGREGATED);

	others.pids = &pid;
	others.n = 1;
	others.but = true;
	assert_int_equal(sampler_set_processes(s, &others, &err), 0);
	assert_int_equal(run_one(s, regs), IBS_OUTCOME_FILTERED_PID);
	assert_int_equal(sampler_set_processes(s, &none, &err), 0);
	assert_int_equal(run_one(s, regs), IBS_OUTCOME_AGGREGATED);
	others.but = false;
	assert_int_equal(sampler_set_processes(s, &others, &err), 0);
	assert_int_equal(run_one(s, regs), IBS_OUTCOME_AGGREGATED);
	assert_int_equal(outcome_in(s, "a", 300), IBS_OUTCOME_FILTERED_PID);
	assert_int_equal(sampler_set_processes(s, &none, &err), 0);

	assert_int_equal(sampler_set_latency(s, 301, 0, &err), 0);
	assert_int_equal(run_one(s, regs), IBS_OUTCOME_FILTERED_LAT);
	assert_int_equal(sampler_set_latency(s, 0, 300, &err), 0);
	assert_int_equal(run_one(s, regs), IBS_OUTCOME_AGGREGATED);
	assert_int_equal(sampler_set_latency(s, 0, 299, &err), 0);
	assert_int_equal(run_one(s, regs), IBS_OUTCOME_FILTERED_LAT);
	assert_int_equal(sampler_set_latency(s, 0, 0, &err), 0);
	load_miss(regs, DRAM, 300);
	regs[IBS_OP_DATA3] |= IBS_OP_DATA3_UC_MEM_ACC;
	assert_int_equal(run_one(s, regs), IBS_OUTCOME_AGGREGATED);

	assert_int_equal(sampler_snapshot(s, &snap, &err), 0);
	assert_int_equal(ledger_residual(&snap.ledger), 0);
	assert_int_equal(snap.ledger.seen, 15);
	snapshot_free(&snap);
	close_twin(s);

	opts.sel.live = SAMPLER_LIVE_ALL & ~SAMPLER_LIVE_LATENCY;
	s = open_twin(&opts);
	assert_int_equal(sampler_set_latency(s, 1, 0, &err), -EINVAL);
	close_twin(s);
}

struct watched {
	struct sampler *s;
	_Atomic bool end;
	_Atomic unsigned int runs, filtered;
};

/* No asserts here: they are of the test's own thread. */
static void *watch(void *arg)
{
	static regs_t regs[IBS_TWIN_SAMPLES];
	struct watched *w = arg;

	for (size_t i = 0; i < IBS_TWIN_SAMPLES; i++)
		load_miss(regs[i], DRAM, 300);
	while (!w->end) {
		__u8 out[IBS_TWIN_SAMPLES];

		if (twin_run_regs(w->s, (const regs_t *)regs, IBS_TWIN_SAMPLES, out, NULL))
			break;
		for (size_t i = 0; i < IBS_TWIN_SAMPLES; i++)
			w->filtered += out[i] == IBS_OUTCOME_FILTERED_PID;
		w->runs++;
	}
	return NULL;
}

/* A process that the old selection has and the new one has too is never left out between. */
static void test_live_processes(void **state)
{
	__u32 self = getpid(), other = 0;
	const struct selected_pids sets[] = {
		{ NULL, 0, false },
		{ &self, 1, false },
		{ &other, 1, true },
		{ &self, 1, false },
	};
	struct sampler_opts opts = zen4;
	struct watched w = {};
	struct err err = {};
	pthread_t thread;

	(void)state;
	opts.sel.live = SAMPLER_LIVE_PROCESSES;
	opts.sel.follow = true; /* it takes longer */
	other = fork();
	if (!other) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		for (;;)
			pause();
	}
	w.s = open_twin(&opts);
	assert_int_equal(pthread_create(&thread, NULL, watch, &w), 0);
	for (int i = 0; i < 100; i++) {
		unsigned int before = w.runs;

		assert_int_equal(sampler_set_processes(w.s, &sets[i % 4], &err), 0);
		while (w.runs < before + 2)
			usleep(10);
	}
	w.end = true;
	assert_int_equal(pthread_join(thread, NULL), 0);
	kill(other, SIGKILL);
	waitpid(other, NULL, 0);
	assert_int_equal(w.filtered, 0);
	close_twin(w.s);
}

/* What a cgroup asks for holds for it and below, and overrides what is asked of all. */
static void test_cgroup_min_lat(void **state)
{
	static const struct {
		const char *name;
		__u32 min;
	} rows[] = { { "a", 200 },    { "a/x", 200 },	 { "a/b", 500 },
		     { "a/b/c", 50 }, { "a/b/c/d", 50 }, { "z", 100 } };
	struct sampler_opts opts = zen4;
	struct selected_cgroup sel[4] = {
		{ .min_lat = 200 },
		{ .min_lat = 500 },
		{ .min_lat = 50 },
		{ .min_lat = 0 },
	};
	struct sampler *s;
	char path[640];

	(void)state;
	need_cgroups();
	for (size_t i = 0; i < TREE_N; i++)
		make_cgroup(tree[i], path);
	sel[0].id = make_cgroup("a", path);
	sel[1].id = make_cgroup("a/b", path);
	sel[2].id = make_cgroup("a/b/c", path);
	sel[3].id = make_cgroup("z", path);
	opts.sel.cgroups = sel;
	opts.sel.n_cgroups = 4;
	opts.sel.min_lat = 100;
	s = open_twin(&opts);
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		assert_int_equal(outcome_in(s, rows[i].name, rows[i].min - 1),
				 IBS_OUTCOME_FILTERED_LAT);
		assert_int_equal(outcome_in(s, rows[i].name, rows[i].min), IBS_OUTCOME_AGGREGATED);
	}
	assert_int_equal(outcome_in(s, "ab", 65535), IBS_OUTCOME_FILTERED_CGROUP);
	close_twin(s);
	/* only a cgroup asks: no latency is asked of the others, but a latency there must be */
	opts.sel.min_lat = 0;
	s = open_twin(&opts);
	assert_int_equal(outcome_in(s, "a", 199), IBS_OUTCOME_FILTERED_LAT);
	assert_int_equal(outcome_in(s, "z", 0), IBS_OUTCOME_AGGREGATED);
	close_twin(s);
}

static const struct group *group_of(const struct snapshot *snap, const struct ibs_group_key *key)
{
	for (size_t i = 0; i < snap->n_groups; i++)
		if (!snap->groups[i].other && !memcmp(&snap->groups[i].key, key, sizeof(*key)))
			return &snap->groups[i];
	return NULL;
}

/* More cgroups than groups: the rest share one, and nothing is lost or counted twice. */
static void check_many_cgroups(__u32 by)
{
	enum { CGROUPS = 200, GROUPS = 120, N = 64, ROUNDS = 2 };
	struct sampler_opts opts = zen4;
	struct model *m = calloc(1, sizeof(*m));
	__u64 ids[CGROUPS], others = 0;
	struct child c = { .n = N };
	struct snapshot snap;
	struct sampler *s;
	char path[640];
	regs_t regs[N];

	assert_non_null(m);
	opts.by = by;
	opts.max_groups = GROUPS;
	s = open_twin(&opts);
	random_regs(23, ZEN4_CAPS, regs, N);
	c.regs = regs;
	c.cgroup = path;
	c.comm = "many"; /* for --by cgroup,comm */
	for (int i = 0; i < N; i++)
		model_add(m, &opts, regs[i]);
	for (int i = 0; i < ROUNDS * CGROUPS; i++) {
		char name[32];

		snprintf(name, sizeof(name), "many%d", i % CGROUPS);
		ids[i % CGROUPS] = make_cgroup(name, path);
		run_child(s, &c);
	}
	snapshot(s, &snap);
	assert_int_equal(snap.ledger.seen, ROUNDS * CGROUPS * N);
	assert_int_equal(snap.ledger.outcome[IBS_OUTCOME_AGGREGATED], ROUNDS * CGROUPS * N);
	assert_int_equal(snap.n_groups, GROUPS + 1);
	for (int i = 0; i < CGROUPS; i++) {
		struct ibs_group_key key = { .cgroup_id = ids[i] };
		const struct group *g;

		if (by & IBS_BY_COMM)
			strcpy(key.comm, "many");
		g = group_of(&snap, &key);
		assert_int_equal(!!g, i < GROUPS);
		if (g)
			check_group(g, m, ROUNDS);
		else
			others++;
	}
	assert_true(snap.groups[0].other);
	check_group(&snap.groups[0], m, ROUNDS * others);
	snapshot_free(&snap);
	sampler_close(s);
	free(m);
}

static void test_many_cgroups(void **state)
{
	(void)state;
	need_cgroups();
	check_many_cgroups(IBS_BY_CGROUP);
	check_many_cgroups(IBS_BY_CGROUP | IBS_BY_COMM);
}

/* --- groupings --- */

static void test_by_pid_comm(void **state)
{
	enum { CHILDREN = 5, N = 32 };
	struct sampler_opts opts = zen4;
	struct model *m = calloc(1, sizeof(*m));
	struct child c = { .n = N };
	pid_t pids[CHILDREN];
	struct snapshot snap;
	regs_t regs[N];

	(void)state;
	assert_non_null(m);
	random_regs(31, ZEN4_CAPS, regs, N);
	c.regs = regs;
	for (int i = 0; i < N; i++)
		model_add(m, &opts, regs[i]);
	for (int by = IBS_BY_PID; by <= (IBS_BY_PID | IBS_BY_COMM); by += IBS_BY_PID) {
		struct sampler *s;

		opts.by = by;
		s = open_twin(&opts);
		for (int i = 0; i < CHILDREN; i++) {
			c.comm = i % 2 ? "odd" : "even";
			pids[i] = run_child(s, &c);
		}
		snapshot(s, &snap);
		assert_int_equal(snap.n_groups, by & IBS_BY_PID ? CHILDREN : 2);
		for (int i = 0; i < CHILDREN; i++) {
			struct ibs_group_key key = {};
			const struct group *g;

			if (by & IBS_BY_PID)
				key.tgid = pids[i];
			if (by & IBS_BY_COMM)
				strcpy(key.comm, i % 2 ? "odd" : "even");
			g = group_of(&snap, &key);
			assert_non_null(g);
			check_group(g, m, by & IBS_BY_PID ? 1 : i % 2 ? 2 : 3);
		}
		snapshot_free(&snap);
		sampler_close(s);
	}
	free(m);
}

static void test_by_cpu(void **state)
{
	enum { N = 32 };
	struct sampler_opts opts = zen4;
	struct model *m = calloc(1, sizeof(*m));
	struct snapshot snap;
	struct sampler *s;
	cpu_set_t all, one;
	size_t n_cpus = 0;
	regs_t regs[N];

	(void)state;
	assert_non_null(m);
	random_regs(37, ZEN4_CAPS, regs, N);
	for (int i = 0; i < N; i++)
		model_add(m, &opts, regs[i]);
	opts.by = IBS_BY_CPU;
	s = open_twin(&opts);
	assert_int_equal(sched_getaffinity(0, sizeof(all), &all), 0);
	for (int cpu = 0; cpu < CPU_SETSIZE && n_cpus < 64; cpu++) {
		if (!CPU_ISSET(cpu, &all))
			continue;
		CPU_ZERO(&one);
		CPU_SET(cpu, &one);
		assert_int_equal(sched_setaffinity(0, sizeof(one), &one), 0);
		run_regs(s, regs, N, NULL);
		n_cpus++;
	}
	assert_int_equal(sched_setaffinity(0, sizeof(all), &all), 0);
	snapshot(s, &snap);
	assert_int_equal(snap.n_groups, n_cpus);
	for (int cpu = 0; cpu < CPU_SETSIZE; cpu++) {
		struct ibs_group_key key = { .cpu = cpu };
		const struct group *g = group_of(&snap, &key);

		if (CPU_ISSET(cpu, &all) && n_cpus < 64)
			assert_non_null(g);
		if (g)
			check_group(g, m, 1);
	}
	snapshot_free(&snap);
	sampler_close(s);
	free(m);
}

/* Cgroups made and removed one after the other are not taken for each other. */
static void check_cgroup_ids(struct sampler_opts opts)
{
	enum { N = 8 };
	struct snapshot snap;
	struct sampler *s;
	__u64 ids[N];

	s = open_twin(&opts);
	for (int i = 0; i < N; i++) {
		char path[640];

		ids[i] = make_cgroup("one", path);
		for (int k = 0; k < 3; k++)
			assert_int_equal(outcome_in(s, "one", 300), IBS_OUTCOME_AGGREGATED);
		assert_int_equal(rmdir(path), 0);
	}
	snapshot(s, &snap);
	assert_int_equal(snap.n_groups, N);
	for (int i = 0; i < N; i++) {
		struct ibs_group_key key = { .cgroup_id = ids[i] };
		const struct group *g;

		if (opts.by & IBS_BY_CPU)
			key.cpu = sched_getcpu();
		g = group_of(&snap, &key);
		assert_non_null(g);
		assert_int_equal(g->series[0].samples, 3);
	}
	snapshot_free(&snap);
	sampler_close(s);
}

/* The same where cgroups are told by a v1 hierarchy, read by plain loads and by copy. */
static void test_cgroup_v1(void **state)
{
	static const char *const controllers[] = { "memory", "pids", "cpu", "perf_event" };
	char root[sizeof(cgroup_root)];
	struct cgroup_fs fs = {};
	cpu_set_t all, one;

	(void)state;
	for (size_t i = 0; i < 4 && !*fs.path; i++)
		if (cgroup_mode_v1("", controllers[i], &fs, NULL))
			fs.path[0] = 0;
	if (!*fs.path) {
		print_message("skipped: no cgroup v1 hierarchy\n");
		skip();
	}
	assert_int_equal(sched_getaffinity(0, sizeof(all), &all), 0);
	CPU_ZERO(&one);
	CPU_SET(sched_getcpu(), &one);
	assert_int_equal(sched_setaffinity(0, sizeof(one), &one), 0);
	strcpy(root, cgroup_root);
	snprintf(cgroup_root, sizeof(cgroup_root), "%s/ibscope-test-%d", fs.path, getpid());
	assert_int_equal(mkdir(cgroup_root, 0755), 0);
	for (int probe = 0; probe < 2; probe++) {
		struct sampler_opts opts = zen4;

		opts.cgroup_controller = fs.controller;
		opts.probe_read = probe;
		check_filter_cgroup(opts);
		opts.by = IBS_BY_CGROUP;
		check_cgroup_ids(opts);
		opts.by = IBS_BY_CGROUP | IBS_BY_CPU;
		check_cgroup_ids(opts);
	}
	remove_tree(cgroup_root);
	strcpy(cgroup_root, root);
	assert_int_equal(sched_setaffinity(0, sizeof(all), &all), 0);
}

/* By copy, which does not read the op's address otherwise. */
static void test_by_mode(void **state)
{
	static const struct {
		__u64 rip, data;
		enum ibs_mode mode;
	} rows[] = {
		{ 0x401000, 0, IBS_MODE_USER },
		{ 0x7fffffffffff, 0, IBS_MODE_USER },
		{ 0xffffffff81000000, 0, IBS_MODE_KERNEL },
		{ 0xffffffff81000000, IBS_OP_DATA_RIP_INVALID, IBS_MODE_UNKNOWN },
		{ 0x401000, IBS_OP_DATA_RIP_INVALID, IBS_MODE_UNKNOWN },
	};
	static const __u64 want[IBS_MODE_N] = { 2, 2, 1 };
	struct sampler_opts opts = zen4;
	struct {
		__u32 pad, caps;
		__u64 regs[IBS_OP_REG_FIXED];
	} raw = { .caps = ZEN4_CAPS };
	struct snapshot snap;
	struct sampler *s;

	(void)state;
	opts.by = IBS_BY_MODE;
	s = open_twin(&opts);
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		load_miss(raw.regs, DRAM, 300);
		raw.regs[IBS_OP_RIP] = rows[i].rip;
		raw.regs[IBS_OP_DATA] |= rows[i].data;
		run_raw(s, &(struct twin_raw){ .raw = &raw.caps, .bytes = IBS_OP_RAW_MIN });
	}
	snapshot(s, &snap);
	assert_int_equal(snap.n_groups, IBS_MODE_N);
	for (int mode = 0; mode < IBS_MODE_N; mode++) {
		const struct group *g = group_of(&snap, &(struct ibs_group_key){ .mode = mode });

		assert_non_null(g);
		assert_int_equal(g->n_series, 1);
		assert_int_equal(g->series[0].samples, want[mode]);
	}
	snapshot_free(&snap);
	sampler_close(s);
}

static __u32 size_with(const struct selection *sel, __u32 by, const char *expr)
{
	struct sampler_opts opts = zen4;
	struct sampler_prog_size size;
	struct filter filter = {};
	struct sampler *s;

	opts.source = SAMPLER_LOAD;
	opts.sel = *sel;
	opts.by = by;
	if (expr) {
		assert_int_equal(filter_parse(expr, &filter, NULL), 0);
		opts.sel.filter = &filter.prog;
	}
	s = open_twin(&opts);
	assert_int_equal(sampler_prog_size(s, &size, NULL), 0);
	sampler_close(s);
	filter_free(&filter);
	return size.insns;
}

/* What is not selected is not in the program; what is adds what it is alone. */
static void test_cost_follows_use(void **state)
{
	const struct selection none = {}, src = { .src_mask = 1 << IBS_SRC_DRAM };
	const struct selection pid = { .processes = { .pids = &(__u32){ 1 }, .n = 1 } };
	const struct selection lat = { .min_lat = 300 };
	const struct selection both = { .processes = pid.processes, .min_lat = 300 };
	__u32 least = size_with(&none, 0, NULL), filter = size_with(&none, 0, "swpf");

	(void)state;
	assert_int_equal(size_with(&src, 0, NULL), least);
	assert_in_range(size_with(&pid, 0, NULL), least + 1, least + 50);
	assert_in_range(size_with(&lat, 0, NULL), least + 1, least + 50);
	assert_int_equal(size_with(&both, 0, NULL) - least,
			 size_with(&pid, 0, NULL) + size_with(&lat, 0, NULL) - 2 * least);
	assert_in_range(filter, least + 1, least + 70);
	assert_int_equal(size_with(&pid, 0, "swpf") - least,
			 size_with(&pid, 0, NULL) + filter - 2 * least);
	/* a term more */
	assert_in_range(size_with(&none, 0, "swpf && locked"), filter + 1, filter + 30);
	assert_true(size_with(&none, IBS_BY_CGROUP, NULL) > least);
}

/* --- the loop of benchmarks, and what is left behind --- */

static void test_loop(void **state)
{
	enum { N = 16, REPEAT = 1000 };
	struct sampler *s = open_twin(&zen4);
	struct snapshot snap;
	struct err err = {};
	regs_t regs[N];
	__u64 ns = 0;

	(void)state;
	random_regs(41, ZEN4_CAPS, regs, N);
	assert_int_equal(twin_load(s, regs, N, &err), 0);
	assert_int_equal(twin_load(s, regs, N - 1, &err), -EINVAL);
	assert_int_equal(twin_loop(s, IBS_TWIN_REGS, N, REPEAT, &ns, &err), 0);
	assert_true(ns > 0);
	check_size(s, 60);
	assert_int_equal(twin_loop(s, IBS_TWIN_RAW, N, REPEAT, &ns, &err), 0);
	assert_int_equal(twin_loop(s, IBS_TWIN_FLOOR, N, REPEAT, &ns, &err), 0);
	assert_int_equal(twin_loop(s, IBS_TWIN_FLOOR, N, TWIN_REPEAT_MAX, &ns, &err), 0);
	assert_int_equal(twin_loop(s, IBS_TWIN_FLOOR, N, TWIN_REPEAT_MAX + 1, &ns, &err), -EINVAL);
	snapshot(s, &snap);
	assert_int_equal(snap.ledger.outcome[IBS_OUTCOME_AGGREGATED], 2 * REPEAT + 1);
	snapshot_free(&snap);
	sampler_close(s);
}

static int count_fds(void)
{
	struct dirent *e;
	DIR *d = opendir("/proc/self/fd");
	int n = 0;

	assert_non_null(d);
	while ((e = readdir(d)))
		n++;
	closedir(d);
	return n;
}

static int count_bpf_mappings(void)
{
	FILE *f = fopen("/proc/self/maps", "re");
	char line[512];
	int n = 0;

	assert_non_null(f);
	while (fgets(line, sizeof(line), f))
		n += strstr(line, "bpf") && strstr(line, "anon_inode");
	fclose(f);
	return n;
}

static void test_no_leak(void **state)
{
	int fds = count_fds(), mappings = count_bpf_mappings();
	struct sampler_opts opts = zen4;
	struct sampler *s = open_twin(&opts);
	enum ibs_outcome out;
	struct err err = {};

	(void)state;
	assert_true(count_fds() > fds && count_bpf_mappings() > mappings);
	close_twin(s);
	assert_int_equal(count_fds(), fds);
	assert_int_equal(count_bpf_mappings(), mappings);
	opts.max_memory_bytes = 1;
	assert_int_equal(sampler_open(&opts, &s, &err), -ENOSPC);
	assert_int_equal(count_fds(), fds);
	/* a sampler of events takes no samples from here */
	opts = zen4;
	opts.source = SAMPLER_SIM;
	opts.attr.type = PERF_TYPE_SOFTWARE;
	opts.attr.size = sizeof(opts.attr);
	opts.attr.config = PERF_COUNT_SW_CPU_CLOCK;
	opts.attr.sample_period = 1000000000;
	opts.cpus = &(unsigned int){ 0 };
	opts.n_cpus = 1;
	s = open_twin(&opts);
	assert_int_equal(twin_run_raw(s, &(struct twin_raw){}, &out, &err), -EINVAL);
	sampler_close(s);
	assert_int_equal(count_fds(), fds);
	assert_int_equal(count_bpf_mappings(), mappings);
}

/* Runs last. What no sample can come to today is listed here, so that it is noticed when it can. */
static void test_all_outcomes(void **state)
{
	(void)state;
	for (int o = 0; o < IBS_OUTCOME_N; o++) {
		bool can = o != IBS_OUTCOME_FORWARDED && o != IBS_OUTCOME_LOST_RING_FULL &&
			   o != IBS_OUTCOME_LOST_INTERNAL;

		if (o == IBS_OUTCOME_FILTERED_CGROUP && !cgroup_root[0])
			continue;
		if (!reached[o] == can)
			fail_msg("%s: %llu samples", outcome_name(o), reached[o]);
	}
}

static bool can_run(void)
{
	struct sampler *s = NULL;
	struct err err = {};
	int ret = sampler_open(&zen4, &s, &err);

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
		cmocka_unit_test(test_raw_sizes),
		cmocka_unit_test(test_raw_faults),
		cmocka_unit_test(test_raw_moves),
		cmocka_unit_test(test_raw_is_regs),
		cmocka_unit_test(test_random),
		cmocka_unit_test(test_weights),
		cmocka_unit_test(test_weights_of_regs),
		cmocka_unit_test(test_make_room),
		cmocka_unit_test(test_room_asked_early),
		cmocka_unit_test(test_room_far),
		cmocka_unit_test(test_room_after_fold),
		cmocka_unit_test(test_fold_twins),
		cmocka_unit_test(test_every_latency),
		cmocka_unit_test(test_filter_pid),
		cmocka_unit_test(test_filter_op_src),
		cmocka_unit_test(test_filter_pid_follow),
		cmocka_unit_test(test_filter_tid),
		cmocka_unit_test(test_filter_expr),
		cmocka_unit_test(test_filter_reasons),
		cmocka_unit_test(test_filter_expr_raw),
		cmocka_unit_test(test_filter_comm),
		cmocka_unit_test(test_cgroup_v1),
		cmocka_unit_test(test_filter_cgroup_out),
		cmocka_unit_test(test_live),
		cmocka_unit_test(test_live_processes),
		cmocka_unit_test(test_filter_lat),
		cmocka_unit_test(test_filter_cgroup),
		cmocka_unit_test(test_cgroup_min_lat),
		cmocka_unit_test(test_many_cgroups),
		cmocka_unit_test(test_by_pid_comm),
		cmocka_unit_test(test_by_cpu),
		cmocka_unit_test(test_by_mode),
		cmocka_unit_test(test_cost_follows_use),
		cmocka_unit_test(test_loop),
		cmocka_unit_test(test_no_leak),
		cmocka_unit_test(test_all_outcomes),
	};

	if (!can_run())
		return 77;
	child_outcomes = mmap(NULL, CHILD_OUTCOMES, PROT_READ | PROT_WRITE,
			      MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (child_outcomes == MAP_FAILED)
		return 1;
	return cmocka_run_group_tests(tests, cgroups_up, cgroups_down);
}
