// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* ibscope export: a recording in the format of another tool. */
#include "cmd.h"
#include "base/output_file.h"
#include "perf_data/perf_data_write.h"
#include "recorded.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

struct cmd {
	struct sampling sampling;
	const char *path;
	struct recorded_input input;
	struct trace *trace;
	struct replay *replay; /* NULL: all samples are wanted */
	struct perf_writer *writer;
	__u64 written;
	bool usage;
};

static int set_path(void *ctx, const char *arg, struct err *err)
{
	struct cmd *c = ctx;

	if (c->path)
		return err_set(err, -EINVAL, "-o and --perf-data name the same file: give one");
	c->path = arg;
	return 0;
}

static const struct option_row export_options[] = {
	{ "perf-data", 0, "FILE", "perf.data to write; '-' is standard output", set_path },
	{ "output", 'o', "FILE", "the same", set_path },
};

static void usage(FILE *f, const struct option_set *sets, size_t n)
{
	fprintf(f,
		"usage: ibscope export --perf-data OUTPUT [options] [FILE]\n\n"
		"Write a recording as perf.data with raw IBS samples, for perf and what reads its "
		"files. '-' is\nstandard input or output.\n\n"
		"  ibscope export --perf-data perf.data && perf report -D\n"
		"  ibscope export -o - --container web | perf script -i -\n");
	options_help(f, sets, n);
	fprintf(f, "\nExit status: 0 done, 1 failed or the recording is incomplete; 2 wrong "
		   "usage.\n");
}

static int open_all(struct cmd *c, struct err *err)
{
	struct replay_opts opts;
	int ret = recorded_open(&c->input, &c->trace, err), fd;

	if (ret)
		return ret;
	if (!strcmp(trace_info(c->trace)->format, "perf.data"))
		return err_set(err, -EINVAL, "%s is perf.data already", recorded_name(&c->input));
	recorded_selection(&c->sampling, &opts);
	opts.by = 0;
	if (replay_selects(&opts)) {
		ret = replay_open(c->trace, &opts, &c->replay, err);
		c->usage = ret == -EINVAL || ret == -ERANGE;
	}
	if (ret)
		return ret;
	fd = output_file_open_binary("--perf-data", c->path, err);
	if (fd < 0)
		return fd;
	ret = perf_writer_open(fd, trace_info(c->trace), &c->writer, err);
	close(fd);
	return ret;
}

static int write_all(struct cmd *c, struct err *err)
{
	struct trace_event ev;
	int ret;

	while ((ret = trace_next(c->trace, &ev, err)) > 0) {
		if (ev.kind == TRACE_SAMPLE_OP || ev.kind == TRACE_SAMPLE_FETCH) {
			ret = c->replay ? replay_judge(c->replay, &ev, err) : 1;
			if (ret < 0)
				return ret;
			if (!ret)
				continue;
			c->written++;
		}
		perf_writer_add(c->writer, &ev);
	}
	return ret;
}

static int run(struct cmd *c)
{
	struct err err = { "" }, unused;
	int ret = open_all(c, &err);
	bool opened = c->writer;

	ret = ret ?: write_all(c, &err);
	ret = perf_writer_close(c->writer, ret ? &unused : &err) ?: ret;
	if (ret && opened && err.text[0])
		err_prefix(&err, "%s", strcmp(c->path, "-") ? c->path : "standard output");
	if (ret) {
		recorded_fail(ret, &err);
		return c->usage ? EXIT_USAGE : EXIT_FAILED;
	}
	if (!c->written)
		recorded_nothing(c->replay);
	return recorded_complete(&c->input, c->trace) ? EXIT_DONE : EXIT_FAILED;
}

int cmd_export(int argc, char **argv)
{
	struct recorded_options rows;
	struct err err = { "" };
	struct cmd c = {};
	int ret, status = EXIT_DONE;

	recorded_options(&rows, false);
	const struct option_set sets[] = {
		{ "Export", export_options, sizeof(export_options) / sizeof(export_options[0]),
		  &c },
		{ "Selection", rows.select, rows.n_select, &c.sampling.select },
		{ "Measurement", rows.other, rows.n_other, &c.sampling },
		{ "Input", recorded_input_rows, RECORDED_INPUT_ROWS, &c.input },
	};

	sampling_init(&c.sampling);
	ret = recorded_parse(&c.sampling, argc, argv, sets, 4, &c.input, &err);
	if (ret == OPTIONS_HELP)
		usage(stdout, sets, 4);
	if (!ret && !c.path && !c.sampling.select.explain)
		ret = err_set(&err, -EINVAL, "give the file to write: --perf-data FILE, or '-'");
	if (ret < 0) {
		log_error("%s", err.text);
		status = EXIT_USAGE;
	} else if (!ret && c.sampling.select.explain) {
		status = recorded_explain(&c.sampling.select);
	} else if (!ret) {
		status = run(&c);
	}
	replay_close(c.replay);
	trace_close(c.trace);
	sampling_close(&c.sampling);
	return status;
}
