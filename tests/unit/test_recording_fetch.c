// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Samples of ibs_fetch, alone and mixed with those of ibs_op, and the ledger of each event. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmocka.h>

#include "recording/recording.h"
#include "recording_gen.h"

#define N      9000 /* more than a block has */
#define ROUNDS 6

static const struct trace_pmu both[] = {
	{ .name = "ibs_op//", .op = true, .period = 100000 },
	{ .name = "ibs_fetch//", .period = 50000 },
};

static struct ibs_record records[ROUNDS][N];
static struct ibs_record_raw raws[ROUNDS][N];

static bool is_raw(unsigned int round)
{
	return round & 1;
}

/* @share: one in so many is of ibs_op; 0: none */
static void fill(struct gen *g, unsigned int share, __u64 *time)
{
	for (unsigned int k = 0; k < ROUNDS; k++)
		for (unsigned int i = 0; i < N; i++) {
			const bool fetch = !share || gen_below(g, share);
			struct ibs_record_raw *raw = &raws[k][i];

			gen_record(g, &records[k][i]);
			gen_raw(g, raw);
			records[k][i].time = raw->time = *time += 1 + gen_below(g, 100);
			if (!fetch)
				continue;
			records[k][i].packed = ibs_record_pack(0, 0, gen_u64(g)) | IBS_RECORD_FETCH;
			raw->fetch = 1;
			raw->caps = gen_value(g);
			raw->bytes = IBS_FETCH_RAW_MIN + 8 * !!(raw->caps & IBS_CAPS_FETCHCTLEXTD);
		}
}

static void check_fetch(const struct trace_event *ev, unsigned int k, unsigned int i,
			const struct cpu_info *cpu)
{
	const struct ibs_record *rec = &records[k][i];
	const struct ibs_record_raw *raw = &raws[k][i];
	const struct trace_sample *s = &ev->sample;
	struct ibs_fetch_sample want = { .cpu = { cpu->caps, cpu->quirks },
					 .present = cpu->caps & IBS_CAPS_FETCHCTLEXTD ? 15 : 7 };

	assert_int_equal(ev->kind, TRACE_SAMPLE_FETCH);
	if (is_raw(k))
		assert_int_equal(ibs_fetch_parse_raw(&raw->caps, raw->bytes, cpu->quirks, &want),
				 0);
	else
		ibs_record_fetch_regs(rec, want.reg);
	assert_int_equal(s->fetch.present, want.present);
	assert_int_equal(s->fetch.cpu.caps, want.cpu.caps);
	assert_memory_equal(s->fetch.reg, want.reg, sizeof(want.reg));
	assert_int_equal(s->cpu, is_raw(k) ? raw->cpu : ibs_record_cpu(rec));
	assert_true(s->ip == want.reg[IBS_FETCH_LINADDR] && s->has_ip == !!s->ip);
	assert_int_equal(s->kernel, s->ip >> 63);
}

static void check_op(const struct trace_event *ev, unsigned int k, unsigned int i)
{
	assert_int_equal(ev->kind, TRACE_SAMPLE_OP);
	assert_true(ev->sample.op.reg[IBS_OP_DATA3] ==
		    (is_raw(k) ? raws[k][i].regs[IBS_OP_DATA3] : records[k][i].data3));
}

/* @pmus: of @info, in any order */
static void round_trip(const struct trace_pmu *pmus, unsigned int n_pmus, unsigned int share)
{
	struct ledger ledgers[] = { { .seen = 5, .outcome = { 5 }, .unseen = 1 },
				    { .seen = 7, .outcome = { 7 }, .unseen = 2 } };
	struct trace_info info = {
		.source = "ibs", .has_cpu = true, .pmu = pmus, .n_pmus = n_pmus
	};
	struct recording_opts opts = { .fd = memfd_create("fetch", 0), .info = &info };
	struct gen g = { share };
	struct recording *r;
	struct trace_event ev;
	struct err err = {};
	struct trace *t;
	__u64 time = 1;
	char path[64];

	cpu_info_set(&info.cpu, "AuthenticAMD", 0x19, 0x11, 0xbff);
	fill(&g, share, &time);
	assert_int_equal(recording_create(&opts, &r, &err), 0);
	for (unsigned int k = 0; k < ROUNDS; k++) {
		assert_int_equal(is_raw(k) ? recording_samples_raw(r, raws[k], NULL, N, &err)
					   : recording_samples(r, records[k], NULL, N, &err),
				 0);
		assert_int_equal(recording_flush(r, ledgers, &err), 0);
	}
	assert_int_equal(recording_finish(r, ledgers, &err), 0);
	recording_close(r);
	snprintf(path, sizeof(path), "/proc/self/fd/%d", opts.fd);
	assert_int_equal(trace_open(path, &t, &err), 0);
	assert_int_equal(trace_info(t)->n_pmus, n_pmus);
	for (unsigned int k = 0; k < ROUNDS; k++)
		for (unsigned int i = 0; i < N; i++) {
			assert_int_equal(trace_next(t, &ev, &err), 1);
			assert_true(ev.time == records[k][i].time);
			assert_string_equal(pmus[ev.sample.pmu].name,
					    raws[k][i].fetch ? "ibs_fetch//" : "ibs_op//");
			if (raws[k][i].fetch)
				check_fetch(&ev, k, i, &info.cpu);
			else
				check_op(&ev, k, i);
		}
	assert_int_equal(trace_next(t, &ev, &err), 0);
	assert_true(trace_end(t)->whole && trace_end(t)->has_ledger);
	assert_int_equal(trace_end(t)->n_ledgers, n_pmus);
	assert_memory_equal(trace_end(t)->event_ledger, ledgers, n_pmus * sizeof(*ledgers));
	assert_int_equal(trace_end(t)->ledger.seen, n_pmus == 2 ? 12 : 5);
	assert_int_equal(trace_end(t)->ledger.unseen, n_pmus == 2 ? 3 : 1);
	trace_close(t);
	close(opts.fd);
	memset(raws, 0, sizeof(raws));
}

static void test_alone(void **state)
{
	(void)state;
	round_trip(&both[1], 1, 0);
}

static void test_mixed(void **state)
{
	const struct trace_pmu other_way[] = { both[1], both[0] };

	(void)state;
	round_trip(both, 2, 2);
	round_trip(both, 2, 1000);
	round_trip(other_way, 2, 2);
}

/* What the description does not have samples cannot be of: a damaged block. */
static void test_not_described(void **state)
{
	struct trace_info info = { .source = "ibs", .pmu = both, .n_pmus = 1 };
	struct recording_opts opts = { .fd = memfd_create("fetch", 0), .info = &info };
	struct ibs_record rec = { .packed = IBS_RECORD_FETCH };
	struct recording *r;
	struct trace_event ev;
	struct err err = {};
	struct trace *t;
	char path[64];

	(void)state;
	assert_int_equal(recording_create(&opts, &r, &err), 0);
	assert_int_equal(recording_samples(r, &rec, NULL, 1, &err), 0);
	assert_int_equal(recording_finish(r, NULL, &err), 0);
	recording_close(r);
	snprintf(path, sizeof(path), "/proc/self/fd/%d", opts.fd);
	assert_int_equal(trace_open(path, &t, &err), 0);
	assert_int_equal(trace_next(t, &ev, &err), 0);
	assert_false(trace_end(t)->whole);
	assert_non_null(strstr(trace_end(t)->missing, "no event of these samples"));
	trace_close(t);
	close(opts.fd);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_alone),
		cmocka_unit_test(test_mixed),
		cmocka_unit_test(test_not_described),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
