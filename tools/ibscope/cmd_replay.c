// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* ibscope replay: the histograms that `hist` would have shown for a recording. */
#include "cmd.h"
#include "input/recorded.h"
#include "view/hist.h"
#include "base/text.h"

struct cmd {
	struct sampling_opts sampling;
	struct hist_view view;
	unsigned int labels; /* of --by; 0: not given */
	struct recorded in;
	char event[1024];
	struct hist_recorded recorded;
	struct hist_info info;
	__u64 selected;
};

static void usage(FILE *f, const struct option_set *sets, size_t n)
{
	fprintf(f, "usage: ibscope replay [options] [FILE]\n\n"
		   "Print what `ibscope hist` would have shown for a recording by `ibscope record` "
		   "or\n`perf record --raw-samples`. Needs no privileges. '-' is standard "
		   "input.\n");
	options_help(f, sets, n);
	columns_help(f, &hist_columns);
	fprintf(f,
		"\nCgroups have the paths that they had while recording.\nExit status: 0 done, 1 "
		"failed or the recording is incomplete, 2 wrong usage.\n");
}

/* Describe the recorded events; the period is shown only if it is the same for all of them. */
static void describe(struct cmd *c)
{
	const struct trace_info *info = trace_info(c->in.trace);
	bool first = true;
	size_t n = 0;

	/* of strata, each has a line of its own */
	for (unsigned int i = 0; i < (trace_has_strata(info) ? 1 : info->n_pmus); i++) {
		const struct trace_pmu *p = &info->pmu[i];
		__u64 period = p->freq || p->filtered ? 0 : p->period;

		if (p->op == sampling_of_fetch(&c->sampling))
			continue;
		if (n < sizeof(c->event))
			n += snprintf(c->event + n, sizeof(c->event) - n, "%s%s", first ? "" : " ",
				      p->name);
		c->info.period = first || c->info.period == period ? period : 0;
		first = false;
	}
	if (first)
		snprintf(c->event, sizeof(c->event), "%s//", c->sampling.event[0].spec.pmu);
	c->info.source = "replay";
	c->info.event = c->event;
	c->info.metric = c->sampling.event[0].metric;
	c->info.simulated = info->simulated;
	c->info.recorded = &c->recorded;
}

static void log_rest(const struct cmd *c, const struct replay *r)
{
	const __u32 by = labels_by(c->sampling.labels);
	struct replay_rest rest;
	char text[128];

	replay_rest(r, &rest);
	if (recorded_left_out(c->info.metric, rest.other_event, text, sizeof(text)))
		log_info("%s", text);
	if (rest.other_cpus)
		log_info("%s samples of other CPUs than those of -C are left out",
			 TEXT_COUNT(rest.other_cpus));
	if (rest.no_task && by & (IBS_BY_PID | IBS_BY_TID))
		log_info("the task of %s samples is unknown", TEXT_COUNT(rest.no_task));
	if (rest.no_cgroup && by & IBS_BY_CGROUP)
		log_info("the cgroup of %s samples is unknown", TEXT_COUNT(rest.no_cgroup));
}

static int print(struct cmd *c, struct replay *r, struct err *err)
{
	struct snapshot snap;
	int ret = replay_snapshot(r, &snap, err);

	if (ret)
		return ret;
	if (ledger_residual(&snap.ledger)) {
		ret = err_set(err, -EUCLEAN,
			      "the ledger does not balance by %lld samples; this is a bug of "
			      "ibscope, please report it",
			      ledger_residual(&snap.ledger));
	} else {
		ret = hist_print(stdout, &c->view, &c->info, &snap, c->labels, replay_cgroup_name,
				 r, err);
		c->selected = snap.ledger.outcome[IBS_OUTCOME_AGGREGATED];
		sampling_warn_other(&snap);
	}
	snapshot_free(&snap);
	return ret;
}

/* The ledger of the shown event, if the recording has one per event. */
static const struct ledger *recorded_ledger(const struct cmd *c, const struct trace_end *end)
{
	unsigned int i = trace_event_of(trace_info(c->in.trace), !sampling_of_fetch(&c->sampling));

	if (!end->has_ledger)
		return NULL;
	return i < end->n_ledgers && !trace_has_strata(trace_info(c->in.trace))
		       ? &end->event_ledger[i]
		       : &end->ledger;
}

static int replay(struct cmd *c, struct err *err)
{
	const struct trace_end *end;
	struct replay_rest rest;
	struct replay_opts opts;
	int ret = recorded_open(&c->in.input, &c->in.trace, err);

	if (ret)
		return ret;
	describe(c);
	recorded_selection(&c->sampling, &opts);
	opts.by = labels_by(c->sampling.labels);
	opts.period = trace_has_strata(trace_info(c->in.trace)) ? 0 : c->info.period;
	ret = recorded_open_replay(&c->in, &opts, err) ?: replay_run(c->in.replay, err);
	if (ret)
		return ret;
	end = trace_end(c->in.trace);
	replay_rest(c->in.replay, &rest);
	c->recorded = (struct hist_recorded){ .file = recorded_again(&c->in.input),
					      .ledger = recorded_ledger(c, end),
					      .lost = rest.lost,
					      .whole = end->whole };
	ret = print(c, c->in.replay, err);
	if (!ret && !c->selected)
		recorded_nothing(c->in.replay, c->sampling.event[0].spec.pmu);
	log_rest(c, c->in.replay);
	return ret;
}

static int run(void *cmd)
{
	struct cmd *c = cmd;
	struct err err = { "" };
	bool fetch = sampling_of_fetch(&c->sampling);
	int ret;

	c->labels = c->sampling.labels;
	c->view.order = c->sampling.order;
	if (!c->labels)
		c->sampling.labels = c->view.opts.format == FORMAT_JSON
					     ? labels_of_event(LABELS_DEFAULT, fetch)
					     : TABLE_LABELS & ~TABLE_JOINED;
	ret = replay(c, &err);
	return recorded_status(&c->in, ret, &err);
}

static int check(void *cmd, struct err *err)
{
	struct cmd *c = cmd;

	return hist_view_check(&c->view, err)
		       ?: labels_counted(c->sampling.labels, sampling_of_fetch(&c->sampling), err);
}

int cmd_replay(int argc, char **argv)
{
	struct cmd c = { .in.input = { .takes_fetch = true, .strata = RECORDED_WEIGHTS } };
	struct option_row rows[VIEW_OPTIONS_MAX];
	const struct recorded_command command = {
		.sampling = &c.sampling,
		.in = &c.in,
		.view = view_options(rows, VIEW_OPTIONS_ALL, &hist_columns, &c.view.opts),
		.own = hist_options("Output", &c.view),
		.cmd = &c,
		.groups = true,
		.usage = usage,
		.check = check,
		.run = run,
	};

	return recorded_command(&command, argc, argv);
}
