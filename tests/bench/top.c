// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * What the live screen costs while nobody touches it: counters in ordinary memory, as the programs
 * fill them; each interval is read, kept and painted. What the terminal and the samples themselves
 * cost is not in it.
 *
 *   bench-top [GROUPS [SAMPLES [INTERVALS]]]	SAMPLES of each group in an interval of 1 s
 */
#include "../unit/count_sample.h"
#include "base/clock.h"
#include "base/num.h"
#include "perf/sample_cost.h"
#include "top/interval.h"
#include "top/top.h"

#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SAMPLES	    1
#define WIDTH	    200
#define HEIGHT	    50
#define GROUPS	    1000
#define INTERVALS   600
#define INTERVAL_NS 1000000000ULL

static struct layout layout;

static const char *name_of(void *arg, __u64 id, enum label l)
{
	static char text[128];

	(void)arg;
	snprintf(text, sizeof(text), l == LABEL_CGROUP ? "/kubepods.slice/pod%llu" : "shop-%llu",
		 (unsigned long long)id);
	return text;
}

static int one_interval(struct baseline *last, const struct counts *c, struct top *t,
			unsigned int i, FILE *out, struct err *err)
{
	const struct screen screen = { .width = WIDTH, .height = HEIGHT, .utf8 = true };
	struct snapshot now = { .time_ns = i * INTERVAL_NS,
				.pmu = { .cpus = 1, .enabled_ns = 1, .running_ns = 1 } };
	struct frame frame = { .end_ns = i * INTERVAL_NS, .by = IBS_BY_CGROUP, .period = 1000000 };
	struct snapshot interval;
	struct grid g;
	int ret = interval_read(last, c, &now, &interval, err);

	if (ret)
		return ret < 0 ? ret : 0;
	top_add(t, &interval, &frame, name_of, NULL);
	snapshot_free(&interval);
	grid_open(&g, WIDTH, HEIGHT);
	top_paint(t, &screen, &g);
	grid_print(out, &g, true);
	grid_free(&g);
	return 0;
}

static int bench(unsigned int groups, unsigned int samples, unsigned int intervals, struct err *err)
{
	struct top_source_info info = { .hist = { .source = "sim", .event = "ibs_op" },
					.by = IBS_BY_CGROUP,
					.by_possible = IBS_BY_CGROUP };
	const struct top_opts opts = { .view.sort = TABLE_CYCLES, .interval_s = 1, .info = &info };
	struct ibs_state *state =
		aligned_alloc(_Alignof(struct ibs_state), sizeof(*state) + sizeof(*state->cpu));
	struct ibs_slot_owner *owners = calloc(groups + 1, sizeof(*owners));
	__u64 *series = calloc((size_t)(groups + 1) * layout.words, sizeof(*series));
	double *ms = calloc(intervals, sizeof(*ms));
	const struct counts c = { .series = series,
				  .owners = owners,
				  .state = state,
				  .n_cpus = 1,
				  .outcomes = IBS_OUTCOME_N,
				  .shards = 1,
				  .max_slots = groups + 1,
				  .period = 1000000,
				  .layout = &layout };
	FILE *out = fopen("/dev/null", "w");
	size_t before, most = 0, now;
	struct baseline last = {};
	struct top *t = NULL;
	int ret = 0;

	if (!state || !owners || !series || !ms || !out)
		return err_set(err, -ENOMEM, "out of memory");
	t = top_new(&opts);
	memset(state, 0, sizeof(*state) + sizeof(*state->cpu));
	for (unsigned int g = 1; g <= groups; g++)
		owners[g] = (struct ibs_slot_owner){ .key.cgroup_id = 1000 + g, .used = 1 };
	before = mallinfo2().uordblks + mallinfo2().hblkhd;
	for (unsigned int i = 0; !ret && i < intervals; i++) {
		__u64 start;

		for (unsigned int k = 0; k < groups * samples; k++) {
			__u64 regs[IBS_OP_REG_FIXED];

			ibs_sim_op(1, i, k, CAPS, regs);
			count_sample(&layout, series + (size_t)(1 + k % groups) * layout.words,
				     regs);
		}
		state->cpu[0].seen += groups * samples;
		state->cpu[0].outcome[IBS_OUTCOME_AGGREGATED] += groups * samples;
		start = clock_ns(CLOCK_THREAD_CPUTIME_ID);
		ret = one_interval(&last, &c, t, i + 1, out, err);
		ms[i] = (clock_ns(CLOCK_THREAD_CPUTIME_ID) - start) / 1e6;
		now = mallinfo2().uordblks + mallinfo2().hblkhd - before;
		most = now > most ? now : most;
	}
	if (!ret) {
		double first = loop_median(ms, intervals / 2, NULL);
		double rest = loop_median(ms + intervals / 2, intervals - intervals / 2, NULL);

		printf("%u groups with %u sample%s a second each, an interval of 1 s: %.2f ms of "
		       "CPU, "
		       "%.2f %% of one (median of the second half of %u; of the first %.2f ms); "
		       "%.1f MiB "
		       "kept\n",
		       groups, samples, samples == 1 ? "" : "s", rest, rest / 10, intervals, first,
		       most / 1048576.0);
	}
	baseline_free(&last);
	top_free(t);
	fclose(out);
	free(ms);
	free(series);
	free(owners);
	free(state);
	return ret;
}

int main(int argc, char **argv)
{
	const struct num_arg arg = { .name = "GROUPS, SAMPLES or INTERVALS",
				     .min = 1,
				     .max = 100000 };
	uint64_t n[3] = { GROUPS, SAMPLES, INTERVALS };
	struct err err = {};
	int ret = 0;

	for (int i = 1; !ret && i < argc && i < 4; i++)
		ret = num_parse(&arg, argv[i], &n[i - 1], &err);
	layout_init(&layout, IBS_METRIC_DC_MISS_LAT, CAPS);
	ret = ret ?: bench(n[0], n[1], n[2], &err);
	if (ret)
		fprintf(stderr, "bench-top: %s\n", err.text);
	return ret ? 1 : 0;
}
