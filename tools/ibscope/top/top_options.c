// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "top_options.h"

#include "collector/control.h"

#include "base/num.h"
#include "base/text.h"

#include <ibscope/pin_layout.h>

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static int set_size(void *ctx, const char *arg, struct err *err)
{
	struct top_cmd *c = ctx;
	char end;

	if (sscanf(arg, "%dx%d%c", &c->width, &c->height, &end) != 2 || c->width < 1 ||
	    c->height < 1 || c->width > 1000 || c->height > 1000)
		return err_set(err, -EINVAL,
			       "invalid size '%s': must be COLUMNSxLINES, as in 80x24, each 1 to "
			       "1000",
			       arg);
	return 0;
}

static int set_speed(void *ctx, const char *arg, struct err *err)
{
	struct top_cmd *c = ctx;
	char *end;

	c->speed = strtod(arg, &end);
	if (*end || end == arg || !(c->speed >= 0.01 && c->speed <= 1e6))
		return err_set(err, -EINVAL,
			       "invalid speed '%s': must be a number from 0.01 to 1000000, such "
			       "as 10 for ten times as fast",
			       arg);
	return 0;
}

/* clang-format off: a row is a row */
const struct option_row top_options[] = {
	{ "interval", 'd', "SECONDS", "time between frames, 0.1 to 60, also as in 500ms; default 2",
	  OPTION_DURATION(struct top_cmd, top.interval_s, TOP_MIN_INTERVAL_S, TOP_MAX_INTERVAL_S) },
	{ "reverse", 0, NULL, "sort smallest first", OPTION_FLAG(struct top_cmd, top.reverse) },
	{ "match", 0, "TEXT", "show only rows with TEXT in their name",
	  OPTION_TEXT(struct top_cmd, top.match) },
	{ "input", 'i', "FILE", "show a recording as if it were live; so does FILE alone",
	  OPTION_WORD(struct top_cmd, input.file) },
	{ "speed", 0, "N", "with -i: play N times as fast; default 1", set_speed },
	{ "no-demangle", 0, NULL, "with -i: print names of C++ and Rust as the linker has them",
	  OPTION_FLAG(struct top_cmd, mangled) },
	{ "pin-dir", 0, "DIR",
	  "show the collector with pins in DIR; by default the one in " IBS_PIN_DIR
	  ", if it is running and nothing is selected; -e ibs_fetch// shows its fetches",
	  OPTION_WORD(struct top_cmd, pin_dir) },
	{ "user-socket", 0, "PATH",
	  "ask a collector for the caller's own cgroups; default " USERS_PATH
	  " if its pins cannot be read",
	  OPTION_WORD(struct top_cmd, user_socket) },
	{ "own", 0, NULL, "sample, even if a collector is running",
	  OPTION_FLAG(struct top_cmd, own) },
	{ "strata", 0, STRATA_OPTION_CHOICES, STRATA_OPTION_HELP,
	  OPTION_CHOICE(struct top_cmd, sampling.strata, "choice", strata_option_name,
			STRATA_OPTIONS) },
	{ "once", 0, NULL, "print one frame as text and exit", OPTION_FLAG(struct top_cmd, once) },
	{ "html", 0, NULL, "with --once: print the frame as an HTML page",
	  OPTION_FLAG(struct top_cmd, html) },
	{ "size", 0, "COLUMNSxLINES", "with --once: size of the frame", set_size },
};
/* clang-format on */
const size_t top_n_options = sizeof(top_options) / sizeof(top_options[0]);

void top_usage(FILE *f, const struct option_set *sets, size_t n)
{
	fprintf(f, "usage: ibscope top [OPTIONS] [FILE]\n\n"
		   "Show live how many cycles each container spends on cache misses, and where its "
		   "data comes\nfrom. Keys sort, filter, zoom in and scroll back through the last "
		   "ten minutes; '?' lists them.\n");
	options_help(f, sets, n);
	columns_help(f, &top_columns);
	top_keys_help(f);
	fprintf(f, "\nExit status: 0 done, 1 failed, 2 wrong usage.\n");
}

/* The option of table_options that @word is; -1: none. *value: in the word, or "" if it is the next one. */
static int row_option(const char *word, const char **value)
{
	static const char *const longer[TABLE_OPTIONS] = { "--pid", "--tid", "--cpu" };

	for (int o = 0; o < TABLE_OPTIONS; o++) {
		const char *option = table_options[o].option;
		const size_t n = strlen(option), m = longer[o] ? strlen(longer[o]) : 0;

		if (!strncmp(word, option, n) && (n == 2 || !word[n] || word[n] == '='))
			*value = word + n + (word[n] == '=');
		else if (m && !strncmp(word, longer[o], m) && (!word[m] || word[m] == '='))
			*value = word + m + (word[m] == '=');
		else
			continue;
		return o;
	}
	return -1;
}

static void keep_word(char *to, size_t size, const char *word)
{
	size_t n = strlen(to), len;
	char *text;
	FILE *f = xmemopen(&text, &len);

	fputc(' ', f);
	text_put_word(f, word);
	xmemclose(f);
	snprintf(to + n, size - n, "%s", text);
	free(text);
}

/* Whether ibscope annotate takes this option of top. *next: its value is the next word */
static bool annotate_takes(const char *word, bool *next)
{
	static const struct option_row others[] = {
		{ .name = "cpu", .letter = 'C', .arg = "" },
		{ .name = "metric", .arg = "" },
		{ .name = "no-demangle" },
		{ .name = "verbose", .letter = 'v' },
	};
	const struct option_set sets[] = {
		{ .rows = select_option_rows, .n = select_option_n_rows },
		{ .rows = others, .n = sizeof(others) / sizeof(others[0]) },
	};
	const size_t len = strcspn(word, "=");

	*next = false;
	for (size_t s = 0; s < 2; s++) {
		for (size_t i = 0; i < sets[s].n; i++) {
			const struct option_row *row = &sets[s].rows[i];
			const bool is_long = !strncmp(word, "--", 2) &&
					     strlen(row->name) == len - 2 &&
					     !strncmp(word + 2, row->name, len - 2);
			const bool is_short = row->letter && *word == '-' && word[1] == row->letter;

			if (!is_long && !is_short)
				continue;
			*next = row->arg && *row->arg != '[' && !word[is_long ? len : 2];
			return true;
		}
	}
	return false;
}

void top_keep_annotate(struct top_cmd *c, int argc, char **argv)
{
	const char *value;
	bool next;

	snprintf(c->annotate, sizeof(c->annotate), "ibscope annotate -i");
	keep_word(c->annotate, sizeof(c->annotate), c->input.file);
	for (int i = 1; i < argc; i++) {
		const int o = row_option(argv[i], &value);
		bool kept = annotate_takes(argv[i], &next);

		value = next && i + 1 < argc ? argv[i + 1] : value;
		/* as in top_keep_command() */
		kept &= o < 0 || *value == '!' || strchr(value, ':');
		if (kept)
			keep_word(c->annotate, sizeof(c->annotate), argv[i]);
		i += next;
		if (kept && next && i < argc)
			keep_word(c->annotate, sizeof(c->annotate), argv[i]);
	}
	c->top.annotate = c->annotate;
}

void top_keep_command(struct top_cmd *c, int argc, char **argv)
{
	static const char *const changed[] = { "--by", "--sort",    "--match", "--interval",
					       "-d",   "--reverse", "--once" };
	const char *value;

	snprintf(c->command, sizeof(c->command), "ibscope top");
	for (int i = 1; i < argc; i++) {
		size_t k = 0, len = strcspn(argv[i], "=");
		int o = row_option(argv[i], &value);
		bool next = o >= 0 && !*value && i + 1 < argc, kept;

		while (k < 7 && (strlen(changed[k]) != len || strncmp(argv[i], changed[k], len)))
			k++;
		if (k < 7) {
			i += k < 5 && !argv[i][len];
			continue;
		}
		value = next ? argv[i + 1] : value;
		/* what it excludes, or a minimum, goes for rows, too */
		kept = o < 0 || *value == '!' || strchr(value, ':');
		for (int last = i + next; i <= last; i++)
			keep_word(kept ? c->command : c->given[o],
				  kept ? sizeof(c->command) : sizeof(c->given[o]), argv[i]);
		i--;
	}
	for (int o = 0; o < TABLE_OPTIONS; o++)
		c->top.given[o] = c->given[o];
}

const char *top_note(const struct select_options *s)
{
	bool root = false, below = true;

	for (size_t i = 0; i < s->n_cgroups; i++) {
		root |= !strcmp(s->cgroups[i], "/") || !strncmp(s->cgroups[i], "/:", 2);
		below &= strcmp(s->cgroups[i], "!/*") != 0;
	}
	return root && below ? "--cgroup /: all cgroups" : NULL;
}

int top_check_options(const struct top_cmd *c, bool selects, struct err *err)
{
	const struct sampling_opts *s = &c->sampling;

	if (!!c->input.file + !!c->pin_dir + !!c->user_socket + c->own > 1)
		return err_set(err, -EINVAL,
			       "-i, --pin-dir, --user-socket and --own exclude each other");
	if ((c->speed || c->mangled) && !c->input.file)
		return err_set(err, -EINVAL, "--%s works with -i only",
			       c->speed ? "speed" : "no-demangle");
	if (!c->input.file && labels_counted(s->labels, false, err))
		return -EINVAL;
	if ((c->pin_dir || c->user_socket) && selects)
		return err_set(err, -EINVAL,
			       "--pin-dir, --user-socket: the collector decides what is sampled; "
			       "leave out options for sampling and selection, except -e");
	if (s->strata && !c->input.file && c->top.interval_s < TOP_STRATA_INTERVAL_S)
		return err_set(err, -EINVAL,
			       "--strata: an interval of %g s is too short for slices of both "
			       "strata; use -d %d or longer, or --strata off",
			       c->top.interval_s, TOP_STRATA_INTERVAL_S);
	if (c->input.file &&
	    (s->source || s->strata || s->event[0].rate.has_period || s->event[0].rate.has_freq ||
	     s->all || *s->hierarchy || s->sim_faults || s->sampler.max_memory_bytes))
		return err_set(
			err, -EINVAL,
			"-i: leave out options for sampling; they do not apply to recordings");
	return 0;
}
