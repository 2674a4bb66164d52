// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* ibscope export: write a recording in the format of another tool. */
#include "cmd.h"
#include "base/output_file.h"
#include "base/screen.h"
#include "perf_data/perf_data_write.h"
#include "input/recorded.h"
#include "profile/profile.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

struct cmd {
	struct sampling_opts sampling;
	const char *path;
	struct recorded in;
	struct output_file out;
	bool opened;
	struct perf_writer *writer;
	bool hwloc; /* instead of perf.data */
	struct report *report;
	__u64 written;
};

static int set_path(void *ctx, const char *arg, struct err *err)
{
	struct cmd *c = ctx;

	if (c->path)
		return err_set(err, -EINVAL, "give one of -o, --perf-data and --hwloc");
	c->path = arg;
	return 0;
}

static int set_hwloc(void *ctx, const char *arg, struct err *err)
{
	struct cmd *c = ctx;

	c->hwloc = true;
	return set_path(ctx, arg, err);
}

static const struct option_row export_options[] = {
	{ "perf-data", 0, "FILE", "write perf.data to FILE; '-' is standard output", set_path },
	{ "output", 'o', "FILE", "the same as --perf-data", set_path },
	{ "hwloc", 0, "FILE",
	  "write the topology and the samples of each CPU to FILE as hwloc XML, for lstopo",
	  set_hwloc },
};

static void usage(FILE *f, const struct option_set *sets, size_t n)
{
	fprintf(f,
		"usage: ibscope export --perf-data|--hwloc OUTPUT [options] [FILE]\n\n"
		"Write a recording as perf.data with raw IBS samples, for perf and tools that read "
		"perf.data,\nor its topology for hwloc. '-' is standard input or output.\n\n"
		"  ibscope export --perf-data perf.data && perf report -D\n"
		"  ibscope export -o - --container web | perf script -i -\n"
		"  ibscope export --hwloc node.xml && lstopo -i node.xml\n");
	options_help(f, sets, n);
	fprintf(f, "\nExit status: 0 done, 1 failed or the recording is incomplete, 2 wrong "
		   "usage.\n");
}

static int open_hwloc(struct cmd *c, struct err *err)
{
	struct report_opts opts = { .by = { LABEL_CPU },
				    .n_by = 1,
				    .metric = c->sampling.event[0].metric,
				    .info = trace_info(c->in.trace) };

	return report_new(&opts, &c->report, err);
}

static int write_hwloc(struct cmd *c)
{
	static const struct report_order order;
	struct report_table table;
	int ret;

	ret = report_table(c->report, &order, &table);
	report_hwloc(output_file_stream(&c->out), trace_info(c->in.trace), &table);
	report_table_free(&table);
	return ret;
}

static int open_all(struct cmd *c, struct err *err)
{
	struct replay_opts opts;
	int ret = recorded_open(&c->in.input, &c->in.trace, err);

	if (ret)
		return ret;
	if (c->hwloc && !report_hwloc_can(trace_info(c->in.trace)))
		return err_set(err, -ENODATA, "%s has no valid topology",
			       recorded_name(&c->in.input));
	if (!c->hwloc && !strcmp(trace_info(c->in.trace)->format, "perf.data"))
		return err_set(err, -EINVAL, "%s is already a perf.data file",
			       recorded_name(&c->in.input));
	recorded_selection(&c->sampling, &opts);
	if (replay_selects(&opts))
		ret = recorded_open_replay(&c->in, &opts, err);
	if (ret)
		return ret;
	ret = output_file_begin(&c->out, c->hwloc ? NULL : "--perf-data", c->path, err);
	if (ret)
		return ret;
	c->opened = true;
	if (!c->hwloc && trace_copies_stacks(trace_info(c->in.trace)))
		log_warn("--perf-data leaves out the copies of user stacks, so its call chains end "
			 "at the op; `ibscope report` unwinds them, also for --pprof and --folded");
	return c->hwloc ? open_hwloc(c, err)
			: perf_writer_open(c->out.fd, trace_info(c->in.trace), &c->writer, err);
}

static int write_all(struct cmd *c, struct err *err)
{
	struct trace_event ev;
	int ret;

	while ((ret = trace_next(c->in.trace, &ev, err)) > 0) {
		if (ev.kind == TRACE_SAMPLE_OP || ev.kind == TRACE_SAMPLE_FETCH) {
			ret = c->in.replay ? replay_judge(c->in.replay, &ev, err) : 1;
			if (ret < 0)
				return ret;
			if (!ret)
				continue;
			c->written++;
		}
		if (c->report)
			report_add(c->report, &ev);
		else
			perf_writer_add(c->writer, &ev);
	}
	return ret;
}

static void print_next(const struct cmd *c)
{
	struct screen screen;

	screen_of(stderr, &screen);
	if (!strcmp(c->path, "-"))
		return;
	if (c->hwloc)
		screen_next(stderr, &screen, "report", recorded_again(&c->in.input), "--by",
			    "cpu,src", NULL);
	else
		screen_next(stderr, &screen, "report", c->path, "--by", "symbol,src", NULL);
}

static int run(void *cmd)
{
	struct cmd *c = cmd;
	struct err err = { "" }, unused;
	int ret = open_all(c, &err) ?: write_all(c, &err), closed;

	closed = perf_writer_close(c->writer, ret ? &unused : &err);
	if (closed && !ret)
		err_prefix(&err, "%s", strcmp(c->path, "-") ? c->path : "standard output");
	ret = ret ?: closed;
	if (c->report && !ret)
		ret = write_hwloc(c);
	report_free(c->report);
	if (c->opened)
		ret = output_file_end(&c->out, ret, &err);
	if (!ret && !c->written)
		recorded_nothing(c->in.replay, NULL);
	else if (!ret)
		print_next(c);
	return recorded_status(&c->in, ret, &err);
}

static int check(void *cmd, struct err *err)
{
	return ((struct cmd *)cmd)->path
		       ? 0
		       : err_set(err, -EINVAL,
				 "missing output file: give --perf-data FILE or --hwloc FILE; '-' "
				 "is standard output");
}

int cmd_export(int argc, char **argv)
{
	struct cmd c = { .in.input.strata = RECORDED_WEIGHTS };
	const struct recorded_command command = {
		.sampling = &c.sampling,
		.in = &c.in,
		.own = { "Export", export_options, ARRAY_SIZE(export_options), &c },
		.cmd = &c,
		.usage = usage,
		.check = check,
		.run = run,
	};

	return recorded_command(&command, argc, argv);
}
