// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* ibscope merge: copy several recordings, each with its machine, into one file. */
#include "cmd.h"

#include "base/options.h"
#include "base/output_file.h"
#include "base/screen.h"
#include "input/job.h"
#include "trace/trace.h"
#include "base/text.h"

#include <getopt.h>
#include <unistd.h>

struct cmd {
	const char *output;
	uint64_t max_memory;
	struct trace_part *parts, *kept; /* kept: some of parts */
	size_t n, n_kept;
	struct trace_job *job;
	bool complete;
};

static const struct option_row merge_options[] = {
	{ "output", 'o', "FILE", "merged file; '-' is standard output",
	  OPTION_WORD(struct cmd, output) },
	{ "max-memory", 0, "SIZE", "memory limit for reading, in MiB or as in 4G; default 1G",
	  OPTION_SIZE(struct cmd, max_memory, 1 << 20, 16 << 20, 1ULL << 44) },
};

static void usage(FILE *f, const struct option_set *sets, size_t n)
{
	fprintf(f,
		"usage: ibscope merge -o FILE RECORDING ...\n\n"
		"Put recordings of several machines, or of the nodes of an MPI job, into one file. "
		"Each keeps\nits machine, topology, names and clock.\n\n"
		"  ibscope merge -o all.ibscope run.*.ibscope\n"
		"  ibscope report --by rank,host all.ibscope\n");
	options_help(f, sets, n);
	fprintf(f,
		"\nExit status: 0 done; 1 failed, or something is missing, left out or incomplete; "
		"2 wrong usage.\n");
}

/* Return: whether the recording can be read at all. */
static bool check_part(struct cmd *c, const struct trace_part *p)
{
	struct err err = { "" };
	struct trace *t = NULL;
	struct tasks *tasks = tasks_new();
	bool keep = false;
	int ret = trace_part_open(p, &t, &err);

	if (!ret && strcmp(trace_info(t)->format, "ibscope 1"))
		ret = err_set(
			&err, -EINVAL,
			"%s is %s, which cannot be merged; pass the files to `ibscope report` "
			"instead",
			p->name, trace_info(t)->format);
	if (!ret) {
		struct trace_event ev;

		while ((ret = trace_next(t, &ev, &err)) > 0)
			tasks_add(tasks, &ev);
	}
	if (ret) {
		log_warn("%s: left out", err.text);
	} else {
		keep = trace_job_add(c->job, p->name, trace_info(t), tasks);
		if (keep && !trace_end(t)->whole)
			log_warn("%s is incomplete: %s", p->name, trace_end(t)->missing);
		c->complete &= trace_end(t)->whole;
	}
	c->complete &= keep;
	tasks_free(tasks);
	trace_close(t);
	return keep;
}

static int merge(struct cmd *c, struct err *err)
{
	struct screen screen;
	struct output_file out;
	int ret;

	c->kept = xcalloc(c->n, sizeof(*c->kept));
	for (size_t i = 0; i < c->n; i++)
		if (check_part(c, &c->parts[i]))
			c->kept[c->n_kept++] = c->parts[i];
	if (!c->n_kept)
		return err_set(err, -EINVAL, "no recordings left to merge");
	c->complete &= trace_job_complete(c->job);
	ret = output_file_begin(&out, "-o", c->output, err);
	if (ret)
		return ret;
	ret = trace_parts_write(out.fd, c->kept, c->n_kept, err);
	if (ret)
		err_prefix(err, "%s", c->output);
	ret = output_file_end(&out, ret, err);
	if (ret)
		return ret;
	log_info("%zu of %zu recording%s merged, %zu rank%s", c->n_kept, c->n, text_plural(c->n),
		 trace_job_ranks(c->job), text_plural(trace_job_ranks(c->job)));
	screen_of(stderr, &screen);
	if (strcmp(c->output, "-"))
		screen_next(stderr, &screen, "report", c->output, "--by", "rank,host", NULL);
	return 0;
}

static int run(struct cmd *c, int argc, char **argv)
{
	struct err err = { "" };
	int ret = 0;

	if (!c->output || optind == argc) {
		log_error("merge: %s: ibscope merge -o FILE RECORDING ...",
			  c->output ? "missing recordings" : "missing -o");
		return EXIT_USAGE;
	}
	trace_limit_memory(c->max_memory);
	for (int i = optind; i < argc && !ret; i++)
		ret = trace_parts_add(argv[i], &c->parts, &c->n, &err);
	ret = ret ?: merge(c, &err);
	if (ret)
		log_error("%s", err.text);
	return ret || !c->complete ? EXIT_FAILED : EXIT_DONE;
}

int cmd_merge(int argc, char **argv)
{
	struct cmd c = { .complete = true, .job = trace_job_new() };
	const struct option_set sets[] = {
		{ "Options", merge_options, ARRAY_SIZE(merge_options), &c },
	};
	struct err err = { "" };
	int ret = options_parse(argc, argv, sets, 1, &err), status = EXIT_DONE;

	if (ret == OPTIONS_HELP)
		usage(stdout, sets, 1);
	else if (ret < 0)
		log_error("%s", err.text);
	status = ret < 0 ? EXIT_USAGE : ret ? EXIT_DONE : run(&c, argc, argv);
	free(c.kept);
	trace_parts_free(c.parts, c.n);
	trace_job_free(c.job);
	return status;
}
