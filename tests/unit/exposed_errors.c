// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Print how far estimates of exposed cycles are from the truth of the model, by stream, over cores that
 * differ in window, width, miss buffers, latencies, bandwidth and prefetching: exposed_errors [CORES [OPS]]
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "../model/judge.h"

#define CORES_MAX 256

static const struct judge_sampling each_op = { .period = 1 };

/* Errors of samples alone, then of the estimates. */
#define COLUMNS (1 + JUDGE_N)

static struct judge_cells *known; /* of each stream, over all cores */

static void add_cells(struct judge_cells *to, const struct judge_cells *from, double weight)
{
	for (unsigned int c = 0; c < JUDGE_CELLS; c++) {
		to->stall[c] += from->stall[c] * weight;
		to->lat[c] += from->lat[c] * weight;
	}
}

/* Each run counts the same. */
static void learn(unsigned int cores, uint64_t ops)
{
	struct judge_cells *here = calloc(1, sizeof(*here));

	known = calloc(stream_kinds_n, sizeof(*known));
	if (!known || !here)
		abort();
	for (unsigned int k = 0; k < stream_kinds_n; k++) {
		for (unsigned int c = 1; c <= cores; c++) {
			struct model_core core = judge_core(c);
			struct judgement j;

			judge(&core, &stream_kinds[k], c, ops, each_op, NULL, here, &j);
			add_cells(&known[k], here, 1.0 / j.run.cycles);
		}
	}
	free(here);
}

static int compare(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return x < y ? -1 : x > y;
}

static void print_row(const char *name, const char *what, const double *v, double factor)
{
	printf("%-10s %-7s", name, what);
	for (unsigned int e = 0; e < COLUMNS; e++) {
		if (isnan(v[e]))
			printf("%9s", "-");
		else
			printf("%9.*f", factor > 1 ? 1 : 2, factor * v[e]);
	}
	putchar('\n');
}

struct range {
	double error[COLUMNS][CORES_MAX], total[COLUMNS][CORES_MAX];
};

static void judge_stream(unsigned int k, unsigned int cores, uint64_t ops,
			 struct judge_sampling sampling, struct range *r)
{
	const bool all = sampling.period == 1; /* else fewer samples than cells */
	struct judge_cells *elsewhere = calloc(1, sizeof(*elsewhere)),
			   *here = calloc(1, sizeof(*here));

	if (!elsewhere || !here)
		abort();
	for (unsigned int other = 0; other < stream_kinds_n; other++)
		if (other != k)
			add_cells(elsewhere, &known[other], 1);
	for (unsigned int c = 1; c <= cores; c++) {
		struct model_core core = judge_core(c);
		struct judgement j;

		judge(&core, &stream_kinds[k], c, ops, sampling, all ? elsewhere : NULL,
		      all ? here : NULL, &j);
		r->error[0][c - 1] = j.samples;
		r->total[0][c - 1] = NAN;
		for (unsigned int e = 0; e < JUDGE_N; e++) {
			r->error[1 + e][c - 1] = j.error[e];
			r->total[1 + e][c - 1] = j.total[e];
		}
	}
	free(elsewhere);
	free(here);
}

static void print_stream(const char *name, unsigned int cores, struct range *r, double *mean)
{
	double at[5][COLUMNS];

	for (unsigned int e = 0; e < COLUMNS; e++) {
		qsort(r->error[e], cores, sizeof(double), compare);
		qsort(r->total[e], cores, sizeof(double), compare);
		at[0][e] = r->error[e][cores / 2];
		at[1][e] = r->error[e][cores - 1];
		at[2][e] = r->total[e][0];
		at[3][e] = r->total[e][cores / 2];
		at[4][e] = r->total[e][cores - 1];
		mean[e] += at[0][e] / stream_kinds_n;
	}
	print_row(name, "median", at[0], 100);
	print_row("", "worst", at[1], 100);
	if (isnan(at[3][1]))
		return;
	print_row("", "total", at[3], 1);
	print_row("", " least", at[2], 1);
	print_row("", " most", at[4], 1);
}

static void print_table(const char *title, unsigned int cores, uint64_t ops,
			struct judge_sampling sampling)
{
	struct range *r = calloc(1, sizeof(*r));
	double mean[COLUMNS] = { 0 };

	if (!r)
		abort();
	printf("\n%s\n%-10s %-7s%9s", title, "", "", "samples");
	for (unsigned int e = 0; e < JUDGE_N; e++)
		printf("%9s", judge_names[e]);
	putchar('\n');
	for (unsigned int k = 0; k < stream_kinds_n; k++) {
		judge_stream(k, cores, ops, sampling, r);
		print_stream(stream_kinds[k].name, cores, r, mean);
	}
	print_row("mean", "median", mean, 100);
	free(r);
}

int main(int argc, char **argv)
{
	unsigned int cores = argc > 1 ? strtoul(argv[1], NULL, 0) : 16;
	uint64_t ops = argc > 2 ? strtoull(argv[2], NULL, 0) : 200000;

	if (!cores || cores > CORES_MAX || !ops) {
		fprintf(stderr, "usage: %s [CORES [OPS]], 1 to %d cores\n", argv[0], CORES_MAX);
		return 2;
	}
	printf("Error by instruction that loads, in percent: half the sum of |estimated share - "
	       "true share|.\n"
	       "%u cores, %llu ops of each stream. total: estimated cycles over true ones.\n\n",
	       cores, (unsigned long long)ops);
	for (unsigned int e = 0; e < JUDGE_N; e++)
		printf("%-9s %s\n", judge_names[e], judge_meanings[e]);
	putchar('\n');
	for (unsigned int k = 0; k < stream_kinds_n; k++)
		printf("%-9s %s\n", stream_kinds[k].name, stream_kinds[k].what);
	learn(cores, ops);
	print_table("Each op is a sample", cores, ops, each_op);
	print_table("An event that counts ops, 1 sample of about 340", cores, 5 * ops,
		    (struct judge_sampling){ .period = 400 });
	print_table("An event that counts cycles, 1 sample of about 340", cores, 5 * ops,
		    (struct judge_sampling){ .period = 400, .by_cycles = true });
	free(known);
	return 0;
}
