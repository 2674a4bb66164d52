// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Options of commands that read recordings. */
#include "recorded.h"
#include "base/exit_status.h"

#include <getopt.h>
#include <limits.h>
#include <sys/stat.h>

#define ROWS 32

/* The options that apply to recordings. */
struct recorded_options {
	struct option_row select[ROWS]; /* their context is struct select_options */
	struct option_row other[ROWS];	/* of these: struct sampling_opts */
	size_t n_select, n_other;
};

static int refuse_follow(void *ctx, const char *arg, struct err *err)
{
	(void)ctx;
	(void)arg;
	return err_set(err, -EINVAL,
		       "--follow works on live processes only; list the children, too, or select "
		       "with --cgroup or --comm");
}

static void add_row(struct recorded_options *o, const char *name)
{
	for (size_t i = 0; i < sampling_n_options; i++)
		if (!strcmp(sampling_options[i].name, name))
			o->other[o->n_other++] = sampling_options[i];
}

static void add_event(struct recorded_options *o)
{
	add_row(o, "event");
	o->other[o->n_other - 1].help = "show samples of ibs_op or of ibs_fetch; default ibs_op, "
					"or the only event in the recording";
}

static void choose_rows(struct recorded_options *o, const struct recorded_command *c)
{
	for (size_t i = 0; i < select_option_n_rows; i++) {
		struct option_row *row = &o->select[o->n_select++];

		*row = select_option_rows[i];
		if (!strcmp(row->name, "follow")) {
			row->help = "not possible for recordings";
			row->set = refuse_follow;
		}
	}
	add_row(o, "cpu");
	add_row(o, "metric");
	if (c->groups) {
		add_row(o, "by");
		add_row(o, "max-groups");
	}
	if (c->in->input.takes_fetch)
		add_event(o);
	add_row(o, "verbose");
}

static const struct option_row input_rows[] = {
	{ "input", 'i', "FILE", "recording to read; default " RECORDED_FILE,
	  OPTION_WORD(struct recorded_input, file) },
	{ "max-memory", 0, "SIZE", "memory limit for reading, in MiB or as in 4G; default 1G",
	  OPTION_SIZE(struct recorded_input, max_memory, 1 << 20, 16 << 20, 1ULL << 44) },
};

static int set_debug_dir(void *ctx, const char *arg, struct err *err)
{
	struct symbols_opts *o = ctx;
	struct stat st;

	if (stat(arg, &st))
		return err_set(err, -errno, "--debug-dir: cannot use %s: %s", arg, strerror(errno));
	if (!S_ISDIR(st.st_mode))
		return err_set(err, -ENOTDIR, "--debug-dir: %s is not a directory", arg);
	o->debug_dir = arg;
	return 0;
}

const struct option_row recorded_symbol_rows[RECORDED_SYMBOL_ROWS] = {
	{ "btf", 0, "FILE", "read kernel types from FILE, a copy of /sys/kernel/btf/vmlinux",
	  OPTION_WORD(struct symbols_opts, btf) },
	{ "kallsyms", 0, "FILE", "read kernel symbols from FILE, a copy of /proc/kallsyms",
	  OPTION_WORD(struct symbols_opts, kallsyms) },
	{ "debug-dir", 0, "DIR", "look for debug files by build-id in DIR, besides /usr/lib/debug",
	  set_debug_dir },
	{ "debuginfod", 0, NULL, "ask the servers of DEBUGINFOD_URLS for debug files",
	  OPTION_FLAG(struct symbols_opts, debuginfod) },
	{ "no-demangle", 0, NULL, "print names of C++ and Rust as the linker has them",
	  OPTION_FLAG(struct symbols_opts, mangled) },
	{ "no-inline", 0, NULL, "ignore inlined functions: their samples count for their callers",
	  OPTION_FLAG(struct symbols_opts, no_inline) },
};

int recorded_explain(const struct select_options *o)
{
	const struct filter *filter = &o->filter[o->filter_options.fetch];
	struct screen screen;

	if (o->machine || !filter->text) {
		log_error("--explain: a recording has no plan, only the tests of --filter and "
			  "similar options: %s",
			  o->machine ? "leave the machine out" : "give one");
		return EXIT_USAGE;
	}
	screen_of(stdout, &screen);
	filter_explain(stdout, filter, screen.width);
	return EXIT_DONE;
}

/* Count the words of the input at @word: "-i FILE", "-iFILE", "--input=FILE" or "FILE". */
static int input_words(const struct recorded_input *in, const char *word)
{
	for (int i = 0; i < in->n_files; i++)
		if (word == in->files[i])
			return 1;
	if (word == in->file) /* behind an argument that is not a file */
		return 1;
	if (!in->from_option)
		return 0;
	if (!strcmp(word, "-i") || !strcmp(word, "--input"))
		return 2;
	return !strncmp(word, "-i", 2) || !strncmp(word, "--input=", 8);
}

/* Keep the command line without the input, which the head prints separately. */
static void keep_options(struct recorded *r, int argc, char **argv)
{
	size_t len = 1;

	for (int i = 1; i < argc; i++)
		len += strlen(argv[i]) + 1;
	r->options = xcalloc(1, len);
	for (int i = 1; i < argc; i++) {
		int skip = input_words(&r->input, argv[i]);

		if (skip)
			i += skip - 1;
		else
			strcat(strcat(r->options, *r->options ? " " : ""), argv[i]);
	}
}

/* @in: complete except for the memory limit. */
static bool has_only_fetches(struct recorded_input *in)
{
	struct trace *t = NULL;
	const struct trace_info *info;
	struct err err;
	struct stat st;
	char first[PATH_MAX + 2];
	bool only = false;

	/* neither standard input nor a FIFO can be opened twice */
	if (!strcmp(in->file, "-") || (!stat(in->file, &st) && !S_ISREG(st.st_mode)))
		return false;
	snprintf(first, sizeof(first), "%s#1", in->file);
	/* opening it again later reports the error */
	if (!recorded_open(in, &t, &err) || !trace_open(first, &t, &err)) {
		info = trace_info(t);
		only = trace_event_of(info, true) == info->n_pmus && info->n_pmus;
		trace_close(t);
	}
	return only;
}

static bool is_recording(const char *name)
{
	const struct recorded_input in = { .file = name, .strata = RECORDED_SAMPLES };
	struct trace *t = NULL;
	struct err unused;

	if (recorded_open(&in, &t, &unused))
		return false;
	trace_close(t);
	return true;
}

/* Does an argument name a file rather than a function? Programs often have the name of a function. */
static bool is_file(const char *name)
{
	const char *suffix = strrchr(name, '.');
	struct stat st;

	return !stat(name, &st) && (strchr(name, '/') || (suffix && !strcmp(suffix, ".data")) ||
				    (S_ISREG(st.st_mode) && is_recording(name)));
}

static void choose_event(struct sampling_opts *s, struct recorded_input *in)
{
	bool fetch = in->asks_fetch || s->labels & LABELS_FETCH;

	if (s->metric != IBS_METRIC_N)
		fetch |= ibs_metric_of_fetch(s->metric);
	else if (!fetch && !s->select.explain)
		fetch = has_only_fetches(in);
	if (fetch)
		event_parse("ibs_fetch//", &s->event[0].spec, NULL);
}

/*
 * Of an argument that is not a file, and the recording behind it: "FUNCTION FILE". A recording alone is that. Return: 0
 * or -EINVAL with @err.
 */
static int take_argument(struct recorded_input *in, struct err *err)
{
	const char *last = in->n_files ? in->files[in->n_files - 1] : NULL;
	const bool file = last && (!strcmp(last, "-") || is_file(last));

	if (in->n_files > 2 || (in->n_files == 2 && in->from_option))
		return err_set(err, -EINVAL,
			       in->from_option ? "unexpected argument '%s': give one %s, as the "
						 "recording was already given with -i"
					       : "unexpected argument '%s': give one %s, and one "
						 "recording after it",
			       last, in->argument);
	if (in->n_files == 2 && !file)
		return err_set(
			err, -EINVAL,
			is_file(in->files[0])
				? "unexpected argument '%s': give the %s first, and then the "
				  "recording"
				: "unexpected argument '%s': give one %s, and then a "
				  "recording, which this is not",
			last, in->argument);
	if (in->n_files == 2 && is_file(in->files[0]))
		return err_set(err, -EINVAL,
			       "'%s' and '%s' are both files: if the first is a %s, give the "
			       "recording with -i",
			       in->files[0], last, in->argument);
	if (!file || in->from_option)
		return 0;
	in->file = last;
	if (in->n_files == 1)
		in->argument = NULL;
	in->n_files = 1;
	return 0;
}

/* Parse options, file arguments and the event. */
static int parse(struct sampling_opts *s, int argc, char **argv, const struct option_set *sets,
		 size_t n_sets, struct recorded_input *in, struct err *err)
{
	int ret = options_parse(argc, argv, sets, n_sets, err);

	if (ret)
		return ret;
	in->from_option = in->file;
	in->files = argv + optind;
	in->n_files = argc - optind;
	if (in->n_files > 1 && !in->takes_several && !in->argument)
		return err_set(err, -EINVAL, "unexpected argument '%s': give one recording",
			       argv[optind + 1]);
	if (in->from_option && optind < argc && !in->argument)
		return err_set(err, -EINVAL,
			       "unexpected argument '%s': the recording was already given with -i",
			       argv[optind]);
	if (!in->from_option)
		in->file = optind < argc && !in->argument ? argv[optind] : RECORDED_FILE;
	ret = in->argument ? take_argument(in, err) : 0;
	if (ret)
		return ret;
	if (in->takes_fetch && !*s->events)
		choose_event(s, in);
	return sampling_check(s, err);
}

int recorded_command(const struct recorded_command *c, int argc, char **argv)
{
	struct sampling_opts *s = c->sampling;
	struct recorded_options rows = {};
	struct err err = { "" };
	int ret, status;

	choose_rows(&rows, c);
	const struct option_set sets[] = {
		c->own,
		c->view,
		{ "Selection", rows.select, rows.n_select, &s->select },
		{ "Measurement", rows.other, rows.n_other, s },
		{ "Input", input_rows, ARRAY_SIZE(input_rows), &c->in->input },
		{ "Symbols", recorded_symbol_rows,
		  c->inlined ? RECORDED_SYMBOL_ROWS : RECORDED_NAME_ROWS, &c->in->symbols_opts },
	};
	const size_t n = ARRAY_SIZE(sets) - !c->symbols;

	sampling_init(s);
	s->labels = 0;
	ret = parse(s, argc, argv, sets, n, &c->in->input, &err);
	if (!ret && c->check && !s->select.explain)
		ret = c->check(c->cmd, &err);
	if (ret > 0) {
		if (ret == OPTIONS_HELP)
			c->usage(stdout, sets, n);
		status = EXIT_DONE;
	} else if (ret) {
		log_error("%s", err.text);
		status = EXIT_USAGE;
	} else if (s->select.explain) {
		status = recorded_explain(&s->select);
	} else {
		keep_options(c->in, argc, argv);
		status = c->run(c->cmd);
	}
	recorded_close(c->in);
	sampling_free(s);
	return status;
}
