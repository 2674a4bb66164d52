// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* ibscope annotate: source and assembly of a function, with the cost of its instructions. */
#include "cmd.h"
#include "annotate/annotate_print.h"
#include "base/output_file.h"
#include "input/recorded.h"
#include "view/pager.h"

struct cmd {
	struct sampling_opts sampling;
	struct recorded in;
	struct annotate_opts opts;
	struct annotate_print print;
	const char *html_path; /* NULL: no HTML */
	struct view_opts view;
	struct annotate *annotate;
};

/* clang-format off: a row is a row */
static const struct option_row annotate_options[] = {
	{ "object", 0, "FILE", "file of the function, if several have one of this name",
	  OPTION_WORD(struct cmd, opts.object) },
	{ "all", 0, NULL, "print all instructions, also those far from any sample",
	  OPTION_FLAG(struct cmd, print.all) },
	{ "intel", 0, NULL, "use Intel's syntax instead of AT&T's",
	  OPTION_FLAG(struct cmd, opts.intel) },
	{ "html", 0, "FILE", "write one self-contained HTML file",
	  OPTION_WORD(struct cmd, html_path) },
};
/* clang-format on */

static void usage(FILE *f, const struct option_set *sets, size_t n)
{
	fprintf(f,
		"usage: ibscope annotate [options] [FUNCTION] [FILE]\n\n"
		"Print the source and the instructions of a function, and the cost of each in a "
		"recording of\n`ibscope record` or `perf record --raw-samples`. FUNCTION is a "
		"symbol that\n`ibscope report --by symbol` prints; default the one with most "
		"miss cycles.\n\n"
		"  ibscope annotate FILE                     the function with most miss cycles\n"
		"  ibscope annotate walk_list FILE\n"
		"  ibscope annotate --src dram --html walk.html walk_list\n");
	options_help(f, sets, n);
	columns_help(f, &annotate_columns);
	fprintf(f, "\nSamples of ops have exact addresses. Exit status: 0 done, 1 failed or the "
		   "recording is incomplete;\n2 wrong usage.\n");
}

static int read_all(struct cmd *c, struct err *err)
{
	struct trace_event ev;
	int ret;

	c->opts.info = c->in.head.info;
	c->opts.tasks = c->in.tasks;
	c->opts.symbols = c->in.symbols;
	c->annotate = annotate_new(&c->opts);
	while ((ret = recorded_next(&c->in, &ev, err)) > 0)
		annotate_add(c->annotate, &ev);
	return ret ?: annotate_finish(c->annotate, err);
}

static int write_html(struct cmd *c, struct err *err)
{
	struct output_file out;
	int ret = output_file_begin(&out, "--html", c->html_path, err);

	if (ret)
		return ret;
	annotate_print_html(output_file_stream(&out), &c->print, c->annotate);
	return output_file_end(&out, 0, err);
}

static int print(struct cmd *c, struct err *err)
{
	struct pager pager = { .f = stdout, .to = stdout };

	c->print.head = &c->in.head;
	c->print.file = recorded_again(&c->in.input);
	if (c->html_path)
		return write_html(c, err);
	if (c->view.format == FORMAT_JSON) {
		annotate_print_json(stdout, &c->print, c->annotate);
	} else {
		pager_open(&pager, stdout);
		annotate_print(pager.f, &c->print, c->annotate);
	}
	return pager_close(&pager, err);
}

static int run(void *cmd)
{
	struct cmd *c = cmd;
	struct screen screen;
	struct err err = { "" };
	int ret = c->html_path ? output_file_check(c->html_path, &err) : 0, status;

	ret = ret ?: recorded_start(&c->in, &c->sampling, true, true, &err);
	screen_of(stdout, &screen);
	c->print.screen = &screen;
	c->print.view = &c->view;
	c->opts.name = c->in.input.argument && c->in.input.n_files ? c->in.input.files[0] : NULL;
	c->opts.metric = c->sampling.event[0].metric;
	ret = ret ?: read_all(c, &err);
	if (ret == -ENOENT && c->in.trace && !c->in.head.selected)
		recorded_nothing(c->in.replay, "ibs_op");
	ret = ret ?: print(c, &err);
	status = recorded_status(&c->in, ret, &err);
	if (ret)
		recorded_problems(&c->in);
	annotate_free(c->annotate);
	return status;
}

static int check(void *cmd, struct err *err)
{
	struct cmd *c = cmd;

	return c->view.format && c->html_path
		       ? err_set(err, -EINVAL, "--json and --html exclude each other")
		       : 0;
}

int cmd_annotate(int argc, char **argv)
{
	struct cmd c = { .in.input = { .argument = "FUNCTION", .strata = RECORDED_WEIGHTS } };
	struct option_row view[VIEW_OPTIONS_MAX];
	const struct recorded_command command = {
		.sampling = &c.sampling,
		.in = &c.in,
		.own = { "Function", annotate_options, ARRAY_SIZE(annotate_options), &c },
		.view = view_options(view, "columns json", &annotate_columns, &c.view),
		.cmd = &c,
		.symbols = true,
		.inlined = true,
		.usage = usage,
		.check = check,
		.run = run,
	};

	return recorded_command(&command, argc, argv);
}
