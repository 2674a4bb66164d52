// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "flight_file.h"

#include "base/clock.h"
#include "base/text.h"
#include "capture/capture.h"
#include "capture/record_info.h"

#include <stdlib.h>

void flight_result_text(const struct flight_result *r, char text[FLIGHT_TEXT_MAX])
{
	snprintf(text, FLIGHT_TEXT_MAX,
		 "%s sample%s of the last %.1f s, %s overwritten; %.1f MiB written in %.2f s, "
		 "%.2f s of CPU time",
		 TEXT_COUNT(r->samples), r->samples == 1 ? "" : "s", r->window_s,
		 TEXT_COUNT(r->overwritten), r->bytes / 1048576.0, r->took_s, r->cpu_s);
}

struct head {
	struct trace_info info;
	struct trace_pmu pmu;
	struct trace_topology topology;
	struct memory_range memory[MEMORY_RANGES];
};

static void make_head(struct head *h, const struct flight_window *w)
{
	record_info(&h->info, &h->pmu, w->session, 1);
	if (!h->pmu.freq)
		h->pmu.period = w->period;
	snprintf(h->info.command, sizeof(h->info.command), "ibscope serve --flight");
	record_topology(&h->info, &h->topology, h->memory);
}

static void each(const struct record_batch *b, void *arg)
{
	flight_slow_add(arg, b);
}

static int write_records(const struct flight_window *w, struct capture *c, struct rings *rings,
			 const struct rings_kept *kept, struct err *err)
{
	struct ledger l = {};

	l.outcome[IBS_OUTCOME_FORWARDED] = kept->kept;
	l.outcome[IBS_OUTCOME_LOST_OVERWRITTEN] = kept->overwritten;
	l.seen = kept->kept + kept->overwritten;
	return capture_kept(c, w->session, rings, w->since_ns, err)
		       ?: output_finish(c->output, &l, err);
}

int flight_write(const struct flight_window *w, int file, struct flight_result *out,
		 struct err *err)
{
	const __u64 began = clock_ns(CLOCK_MONOTONIC);
	struct head *h = xcalloc(1, sizeof(*h));
	struct output_opts opts = {
		.path = "the recording", .fd = file, .compress = true, .info = &h->info
	};
	struct flight_slow *slow = flight_slow_new(session_event(w->session, 0));
	struct capture c = { .each = each, .each_arg = slow };
	struct rings_kept kept;
	struct rings *rings;
	int ret;

	/* first, so that names read later are not behind the samples */
	rings = rings_copy(sampler_rings(session_event(w->session, 0)->sampler), w->written, &kept);
	out->window_s = (began - w->since_ns) / 1e9;
	cgroup_tree_freeze(session_tree(w->session));
	make_head(h, w);
	ret = output_open(&opts, &c.output, err);
	ret = ret ?: write_records(w, &c, rings, &kept, err);
	rings_close(rings);
	flight_slow_get(slow, w->recording_ns, &out->slowest);
	flight_slow_free(slow);
	out->samples = kept.kept;
	out->overwritten = kept.overwritten;
	out->bytes = c.output ? output_bytes(c.output) : 0;
	capture_close(&c);
	out->cpu_s = clock_ns(CLOCK_PROCESS_CPUTIME_ID) / 1e9;
	out->took_s = (clock_ns(CLOCK_MONOTONIC) - began) / 1e9;
	free(h);
	return ret;
}
