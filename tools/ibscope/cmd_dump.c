// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* ibscope dump: every sample of a recording, with every valid field. */
#include "cmd.h"
#include "base/output_file.h"
#include "base/screen.h"
#include "base/text.h"
#include "input/recorded.h"
#include "dump/dump.h"

struct cmd {
	struct sampling_opts sampling;
	enum sample_format format;
	bool csv, json, events, fetch;
	uint64_t limit; /* 0: none */
	struct recorded in;
	uint64_t shown;
	bool selects;	     /* the selection drops samples */
	uint64_t other_kind; /* samples of the PMU that the CSV leaves out */
};

static const struct option_row dump_options[] = {
	{ "csv", 0, NULL, "print a table with a column for each field; invalid fields are empty",
	  OPTION_FLAG(struct cmd, csv) },
	{ "json", 0, NULL, "print one JSON object per line; invalid fields are left out",
	  OPTION_FLAG(struct cmd, json) },
	{ "events", 0, NULL, "also print names, maps, forks, exits, cgroups and losses",
	  OPTION_FLAG(struct cmd, events) },
	{ "fetch", 0, NULL, "with --csv: print ibs_fetch samples instead of ibs_op",
	  OPTION_FLAG(struct cmd, fetch) },
	{ "limit", 0, "N", "stop after N samples",
	  OPTION_NUMBER(struct cmd, limit, 1, UINT64_MAX) },
};

static void usage(FILE *f, const struct option_set *sets, size_t n)
{
	fprintf(f, "usage: ibscope dump [options] [FILE]\n\n"
		   "Print every sample of a recording by `ibscope record` or `perf record "
		   "--raw-samples`, with its\nregisters as `perf report -D` prints them.\n");
	options_help(f, sets, n);
	fprintf(f,
		"\nCgroups have the paths that they had while recording.\nExit status: 0 done, 1 "
		"failed or the recording is incomplete, 2 wrong usage.\n");
}

static bool has_column_for(const struct cmd *c, const struct trace_event *ev)
{
	return c->format != SAMPLE_CSV || c->fetch == (ev->kind == TRACE_SAMPLE_FETCH);
}

/* Return: 1 if the sample was printed, 0 if it was dropped, or a negative errno with @err. */
static int dump_sample(struct cmd *c, const struct trace_event *ev, struct err *err)
{
	struct sample_names names;
	int ret;

	if (!has_column_for(c, ev)) {
		c->other_kind++;
		return 0;
	}
	if (c->selects) {
		ret = replay_judge(c->in.replay, ev, err);
		if (ret <= 0)
			return ret;
	}
	names.comm = replay_comm(c->in.replay, ev);
	names.cgroup = replay_cgroup_name(c->in.replay, ev->sample.cgroup_id, LABEL_CGROUP);
	sample_print(stdout, c->format, trace_info(c->in.trace), ev, &names);
	return 1;
}

/* Return: 0; 1 if --limit was reached; or a negative errno with @err. */
static int dump_all(struct cmd *c, struct err *err)
{
	struct trace_event ev;
	int ret;

	if (c->format == SAMPLE_TEXT || (c->format == SAMPLE_JSON && c->events))
		trace_print_info(stdout, trace_info(c->in.trace), c->format == SAMPLE_JSON);
	sample_print_head(stdout, c->format, trace_info(c->in.trace), c->fetch);
	while ((ret = trace_next(c->in.trace, &ev, err)) > 0) {
		if (ev.kind == TRACE_SAMPLE_OP || ev.kind == TRACE_SAMPLE_FETCH) {
			ret = dump_sample(c, &ev, err);
			if (ret < 0)
				break;
			c->shown += ret;
		} else if (c->events) {
			trace_print_event(stdout, &ev, c->format == SAMPLE_JSON);
		}
		if (ferror(stdout))
			break;
		if (c->limit && c->shown == c->limit)
			return 1;
	}
	return ret < 0 ? ret : 0;
}

/* Suggest what sums up the samples. */
static void print_next(struct cmd *c)
{
	struct screen screen;

	screen_of(stdout, &screen);
	if (c->format == SAMPLE_TEXT && c->shown)
		screen_next(stdout, &screen, "report", recorded_again(&c->in.input),
			    sampling_of_fetch(&c->sampling) ? "--event=ibs_fetch//" : "", NULL);
}

static int run(void *cmd)
{
	struct cmd *c = cmd;
	struct replay_opts opts;
	struct err err = { "" };
	int ret = recorded_open(&c->in.input, &c->in.trace, &err);

	recorded_selection(&c->sampling, &opts);
	opts.names = true;
	c->selects = replay_selects(&opts);
	ret = ret ?: recorded_open_replay(&c->in, &opts, &err);
	ret = ret ?: dump_all(c, &err);
	if (!ret && !c->shown)
		recorded_nothing(c->in.replay, NULL);
	if (ret >= 0)
		print_next(c);
	if (ret >= 0)
		ret = output_stream_flush(stdout, &err) ?: ret;
	if (c->other_kind)
		log_info("%s %s samples are not printed; %s", TEXT_COUNT(c->other_kind),
			 c->fetch ? "ibs_op" : "ibs_fetch",
			 c->fetch ? "leave out --fetch to print them" : "--fetch prints them");
	/* whether a recording is complete is known only at its end */
	return ret > 0 ? EXIT_DONE : recorded_status(&c->in, ret, &err);
}

static int check(void *cmd, struct err *err)
{
	struct cmd *c = cmd;

	if (c->csv && c->json)
		return err_set(err, -EINVAL, "--csv and --json exclude each other");
	c->format = c->csv ? SAMPLE_CSV : c->json ? SAMPLE_JSON : SAMPLE_TEXT;
	if (c->csv && c->events)
		return err_set(err, -EINVAL,
			       "--events: --csv prints samples only; use --json or text");
	if (!c->csv && c->fetch)
		return err_set(err, -EINVAL,
			       "--fetch needs --csv; other formats print samples of both kinds");
	return 0;
}

int cmd_dump(int argc, char **argv)
{
	struct cmd c = { .in.input.strata = RECORDED_SAMPLES };
	const struct recorded_command command = {
		.sampling = &c.sampling,
		.in = &c.in,
		.own = { "Output", dump_options, ARRAY_SIZE(dump_options), &c },
		.cmd = &c,
		.usage = usage,
		.check = check,
		.run = run,
	};

	return recorded_command(&command, argc, argv);
}
