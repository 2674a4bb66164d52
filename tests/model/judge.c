// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "judge.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include <ibscope/exposed.h>

const char *const judge_names[JUDGE_N] = {
#define JUDGE_NAME(id, name, value, meaning) [JUDGE_##id] = name,
	JUDGE_TABLE(JUDGE_NAME)
#undef JUDGE_NAME
};

const char *const judge_meanings[JUDGE_N] = {
#define JUDGE_MEANING(id, name, value, meaning) [JUDGE_##id] = meaning,
	JUDGE_TABLE(JUDGE_MEANING)
#undef JUDGE_MEANING
};

struct sums {
	bool by_cycles;
	double samples[MODEL_INSNS], estimate[JUDGE_N][MODEL_INSNS];
	const struct judge_cells *elsewhere;
	struct judge_cells *here;
	float (*of_cell)[JUDGE_CELLS]; /* latencies by instruction */
	struct judgement *out;
};

/* Two steps to an octave. */
static unsigned int step(unsigned int v)
{
	unsigned int octave = v ? 31 - __builtin_clz(v) : 0;

	return octave ? 2 * octave + (v >> (octave - 1) & 1) : v;
}

/* Equal fields: latency, open requests, whether it blocked, the wait before the miss, and a joined miss. */
static unsigned int cell_of(const struct model_sample *s)
{
	unsigned int lat = s->data3 >> 32 & 0xffff, comp = s->data & 0xffff;
	unsigned int tag = s->data >> 16 & 0xffff;
	unsigned int before = tag > comp + lat ? tag - comp - lat : 0;

	return step(lat) % 32 | step(IBS_OP_DATA3_OPEN_REQS(s->data3)) % 16 << 5 | (comp > 1) << 9 |
	       (step(before) / 2) % 16 << 10 | !!(s->data3 & IBS_OP_DATA3_NO_MAB) << 14;
}

/* Stall cycles of a cycle of latency. */
static double mean_of(const struct judge_cells *cells, unsigned int cell)
{
	return cells && cells->lat[cell] ? cells->stall[cell] / cells->lat[cell] : 0;
}

static void add_estimates(struct sums *s, const struct model_sample *m)
{
	const double lat = m->data3 >> 32 & 0xffff, open = IBS_OP_DATA3_OPEN_REQS(m->data3);
	const double exposed = ibs_op_exposed(m->data, m->data3), here = 0;
	const double elsewhere = lat * mean_of(s->elsewhere, cell_of(m));
	const bool blocked = ibs_op_blocked(m->data), joined = m->data3 & IBS_OP_DATA3_NO_MAB;
	const double value[JUDGE_N] = {
#define JUDGE_VALUE(id, name, value, meaning) [JUDGE_##id] = value,
		JUDGE_TABLE(JUDGE_VALUE)
#undef JUDGE_VALUE
	};

	for (unsigned int e = 0; e < JUDGE_N; e++)
		s->estimate[e][m->insn] += value[e];
}

static void add_sample(void *ctx, const struct model_sample *m)
{
	struct sums *s = ctx;
	unsigned int cell;

	if (m->by_cycles != s->by_cycles || m->kind != MODEL_LOAD)
		return;
	s->samples[m->insn]++;
	if (!ibs_op_dc_miss_lat_valid(m->data3))
		return;
	s->out->excess = fmax(s->out->excess, m->stall - (double)(m->data3 >> 32 & 0xffff));
	s->out->hidden += ibs_op_blocked(m->data) ? 0 : m->stall;
	add_estimates(s, m);
	if (!s->here)
		return;
	cell = cell_of(m);
	s->here->stall[cell] += m->stall;
	s->here->lat[cell] += m->data3 >> 32 & 0xffff;
	s->of_cell[m->insn][cell] += m->data3 >> 32 & 0xffff;
}

static double sum_of(const double *v)
{
	double sum = 0;

	for (unsigned int i = 0; i < MODEL_INSNS; i++)
		sum += v[i];
	return sum;
}

static double error_of(const double *estimate, const double *truth)
{
	double all = sum_of(estimate), all_true = sum_of(truth), error = 0;

	for (unsigned int i = 0; i < MODEL_INSNS; i++)
		error += fabs((all ? estimate[i] / all : 0) - (all_true ? truth[i] / all_true : 0));
	return error / 2;
}

/* The mean of the cells of the samples of each instruction. */
static void set_best_here(struct sums *s)
{
	for (unsigned int i = 0; i < MODEL_INSNS; i++)
		for (unsigned int c = 0; c < JUDGE_CELLS; c++)
			if (s->of_cell[i][c])
				s->estimate[JUDGE_BEST][i] +=
					s->of_cell[i][c] * mean_of(s->here, c);
}

void judge(const struct model_core *core, const struct stream_kind *kind, uint64_t seed,
	   uint64_t ops, struct judge_sampling sampling, const struct judge_cells *elsewhere,
	   struct judge_cells *here, struct judgement *out)
{
	struct sums *s = calloc(1, sizeof(*s));
	struct stream *stream = calloc(1, sizeof(*stream));
	double truth[MODEL_INSNS] = { 0 }, scale;

	if (!s || !stream)
		abort();
	*out = (struct judgement){ 0 };
	s->by_cycles = sampling.by_cycles;
	s->elsewhere = elsewhere;
	s->here = here;
	s->out = out;
	if (here) {
		memset(here, 0, sizeof(*here));
		s->of_cell = calloc(MODEL_INSNS, sizeof(*s->of_cell));
		if (!s->of_cell)
			abort();
	}
	stream_init(stream, kind, seed);
	model_run(core, stream, ops, sampling.period, add_sample, s, &out->run);
	if (here)
		set_best_here(s);
	for (unsigned int i = 0; i < MODEL_INSNS; i++)
		truth[i] = out->run.kind[i] == MODEL_LOAD ? out->run.stall[i] : 0;
	out->samples = error_of(s->samples, truth);
	scale = sampling.period == 1 ? 1 : NAN; /* the hardware's periods vary */
	for (unsigned int e = 0; e < JUDGE_N; e++) {
		bool known = here || (e != JUDGE_LEARNT && e != JUDGE_BEST);

		out->error[e] = known ? error_of(s->estimate[e], truth) : (double)NAN;
		out->total[e] = scale * sum_of(s->estimate[e]) / sum_of(truth);
	}
	free(s->of_cell);
	free(stream);
	free(s);
}

static unsigned int between(uint64_t *random, unsigned int low, unsigned int high)
{
	return low + model_random(random) % (high - low + 1);
}

struct model_core judge_core(uint64_t seed)
{
	uint64_t r = seed * 977 + 5;

	return (struct model_core){
		.rob = between(&r, 96, 512),
		.dispatch = between(&r, 4, 8),
		.retire = between(&r, 4, 8),
		.loads = between(&r, 2, 4),
		.alus = between(&r, 3, 6),
		.mabs = between(&r, 10, 48),
		.store_queue = between(&r, 24, 104),
		.l1 = between(&r, 4, 5),
		.l2 = between(&r, 10, 16),
		.l3 = between(&r, 30, 70),
		.dram = between(&r, 180, 600),
		.jitter = between(&r, 0, 100),
		.gap = between(&r, 2, 24),
		.redirect = between(&r, 10, 20),
		.prefetch = model_random(&r) & 1,
	};
}
