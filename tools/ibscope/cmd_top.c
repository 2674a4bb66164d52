// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* ibscope top: a live screen of what waits for memory. */
#include "cmd.h"
#include "recorded.h"
#include "base/clock.h"
#include "base/choice.h"
#include "base/num.h"
#include "base/utf8.h"
#include "session/session.h"
#include "top/source.h"
#include "view/terminal.h"

#include <ibscope/pin_layout.h>

#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <math.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <time.h>
#include <unistd.h>

_Static_assert((int)TERMINAL_KEYS == (int)TOP_UP, "keys have one number");

#define DEFAULT_INTERVAL_S 2
#define ONCE_HEIGHT	   24
#define ONCE_PATIENCE_S	   10 /* for the first sample */

struct cmd {
	struct sampling sampling;
	struct top_opts top;
	bool once, html, own;
	const char *pin_dir; /* NULL: not given */
	struct recorded_input input;
	struct trace *trace;
	struct replay_opts replay;
	double speed;
	int width, height; /* of --size; 0: that of the terminal */
	struct top_source *source;
	struct top *view;
	int sigfd;
	FILE *log; /* what others log while the screen is up */
	char *log_text;
	size_t log_size;
	unsigned int labels; /* that the source is open with */
	double began;	     /* the interval that runs */
	__u64 seen;	     /* samples of all intervals */
	char command[1024], host[256];
};

static int set_interval(void *ctx, const char *arg, struct err *err)
{
	const struct duration_arg interval = { .name = "-d",
					       .min_s = TOP_MIN_INTERVAL_S,
					       .max_s = TOP_MAX_INTERVAL_S };
	struct cmd *c = ctx;

	return num_parse_duration(&interval, arg, &c->top.interval_s, err);
}

static const char *sort_name_at(unsigned int i)
{
	return i == TABLE_HISTOGRAM ? "name" : table_column_name(i);
}

static int set_sort(void *ctx, const char *arg, struct err *err)
{
	/* those that have an order, and the name in place of the first that has none */
	const struct choices columns = { "--sort", "column", sort_name_at, TABLE_HISTOGRAM + 1 };
	struct cmd *c = ctx;
	unsigned int i;
	int ret = choice_parse(&columns, arg, &i, err);

	if (!ret)
		c->top.sort = i == TABLE_HISTOGRAM ? TABLE_COLUMNS : i;
	return ret;
}

static int set_columns(void *ctx, const char *arg, struct err *err)
{
	const struct choices columns = { "--columns", "column", table_column_name, TABLE_EXTRA };
	unsigned int list[TABLE_COLUMNS];
	struct cmd *c = ctx;
	int ret = choice_list_parse(&columns, arg, list, &c->top.n_columns, err);

	for (unsigned int i = 0; !ret && i < c->top.n_columns; i++)
		c->top.columns[i] = list[i];
	return ret;
}

static int set_match(void *ctx, const char *arg, struct err *err)
{
	struct cmd *c = ctx;

	if (strlen(arg) >= sizeof(c->top.match))
		return err_set(err, -EINVAL, "--match: text longer than %zu bytes",
			       sizeof(c->top.match) - 1);
	strcpy(c->top.match, arg);
	return 0;
}

static int set_size(void *ctx, const char *arg, struct err *err)
{
	struct cmd *c = ctx;
	char end;

	if (sscanf(arg, "%dx%d%c", &c->width, &c->height, &end) != 2 || c->width < 1 ||
	    c->height < 1 || c->width > 1000 || c->height > 1000)
		return err_set(err, -EINVAL,
			       "invalid size '%s': must be COLUMNSxLINES, as in 80x24, each 1 to "
			       "1000",
			       arg);
	return 0;
}

static int set_pin_dir(void *ctx, const char *arg, struct err *err)
{
	struct cmd *c = ctx;

	(void)err;
	c->pin_dir = arg;
	return 0;
}

static int set_input(void *ctx, const char *arg, struct err *err)
{
	struct cmd *c = ctx;

	if (!*arg)
		return err_set(err, -EINVAL, "-i: the file name is empty");
	c->input.file = arg;
	return 0;
}

static int set_speed(void *ctx, const char *arg, struct err *err)
{
	struct cmd *c = ctx;
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
static const struct option_row top_options[] = {
	{ "interval", 'd', "SECONDS", "time between frames, 0.1 to 60, also as in 500ms; default 2",
	  set_interval },
	{ "sort", 0, "COLUMN", "largest first; a column, or name; default cycles", set_sort },
	{ "reverse", 0, NULL, "smallest first", NULL, offsetof(struct cmd, top.reverse) },
	{ "columns", 0, "COLUMN,..",
	  "columns after the names, in this order; by default as many as fit: samples, cycles, "
	  "share, dram, remote, p50, p90, p99, histogram, trend; also valid, estimated_ops, mean",
	  set_columns },
	{ "match", 0, "TEXT", "show only rows with TEXT in their name", set_match },
	{ "input", 'i', "FILE", "show a recording as if it were live", set_input },
	{ "speed", 0, "N", "with -i: N times as fast; default 1", set_speed },
	{ "pin-dir", 0, "DIR",
	  "read the collector whose pins are in DIR; by default the one in " IBS_PIN_DIR
	  ", if it runs and nothing is selected",
	  set_pin_dir },
	{ "own", 0, NULL, "sample, even if a collector is running", OPTION_FLAG(struct cmd, own) },
	{ "once", 0, NULL, "print one frame as text and exit", OPTION_FLAG(struct cmd, once) },
	{ "html", 0, NULL, "with --once: print it as an HTML page", OPTION_FLAG(struct cmd, html) },
	{ "size", 0, "COLUMNSxLINES", "with --once: size of the frame", set_size },
};
/* clang-format on */
#define TOP_OPTIONS (sizeof(top_options) / sizeof(top_options[0]))

static void usage(FILE *f, const struct option_set *sets, size_t n)
{
	fprintf(f, "usage: ibscope top [OPTIONS]\n\n"
		   "Show live which containers spend how many cycles on cache misses, and where. "
		   "Keys sort,\nfilter, zoom in and scroll back through the last ten minutes; '?' "
		   "lists them.\n");
	options_help(f, sets, n);
	top_keys_help(f);
	fprintf(f, "\nExit status: 0 done, 1 failed, 2 wrong usage.\n");
}

/* --- one frame --- */

static int open_source(struct cmd *c, struct err *err)
{
	int ret;

	c->labels = top_labels(c->view);
	ret = c->source->open(c->source, c->labels, err);
	c->began = now_s();
	return ret;
}

static int add_interval(struct cmd *c, struct err *err)
{
	struct snapshot interval;
	struct frame frame;
	double now = now_s();
	int ret = c->source->read(c->source, now - c->began, &interval, &frame, err);

	c->began = now;
	if (ret)
		return ret < 0 ? ret : 0;
	c->seen += interval.ledger.seen;
	ret = top_add(c->view, &interval, &frame, c->source->name, c->source);
	snapshot_free(&interval);
	return ret ? err_set(err, ret, "out of memory for an interval") : 0;
}

static int paint(struct cmd *c, const struct screen *screen, int width, int height, struct grid *g)
{
	int ret = grid_open(g, width, height);

	ret = ret ?: top_paint(c->view, screen, g);
	if (ret)
		grid_free(g);
	return ret;
}

static int print_once(struct cmd *c, struct err *err)
{
	struct screen screen;
	struct grid g;
	int ret;

	screen_of(stdout, &screen);
	ret = paint(c, &screen, c->width ?: (int)screen.width,
		    c->height	    ? c->height
		    : screen.height ? (int)screen.height - 1
				    : ONCE_HEIGHT,
		    &g);
	if (ret)
		return err_set(err, ret, "out of memory for a frame");
	if (c->html)
		grid_print_html(stdout, &g, "ibscope top");
	else
		grid_print(stdout, &g, screen.color);
	grid_free(&g);
	if (fflush(stdout) || ferror(stdout))
		return err_set(err, -EIO, "cannot write the output: %s", strerror(errno));
	return 0;
}

/* --- the screen --- */

/* The last line of what was logged. */
static void show_log(struct cmd *c)
{
	char *line;

	if (fflush(c->log) || !ftell(c->log))
		return;
	c->log_text[strlen(c->log_text) - 1] = 0;
	line = strrchr(c->log_text, '\n');
	line = line ? line + 1 : c->log_text;
	if (!strncmp(line, "warning: ", 9) || !strncmp(line, "error: ", 7))
		top_say(c->view, "%s", line);
	rewind(c->log);
}

static void write_json(struct cmd *c, bool all)
{
	char name[64];
	struct err err = { "" };
	time_t now = time(NULL);
	FILE *f;
	int fd;

	strftime(name, sizeof(name), "ibscope-top-%Y%m%d-%H%M%S.json", localtime(&now));
	/* neither a file that is there, nor what a link leads to */
	fd = open(name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
	f = fd < 0 ? NULL : fdopen(fd, "w");
	if (!f) {
		top_say(c->view, "cannot write %s: %s", name, strerror(errno));
		return;
	}
	if (top_write(c->view, all, f, &err))
		top_say(c->view, "cannot write %s: %s", name, err.text);
	else if (fflush(f) || ferror(f))
		top_say(c->view, "cannot write %s: %s", name, strerror(errno));
	else
		top_say(c->view, "wrote %s", name);
	fclose(f);
}

/* Return: false to quit. */
static bool take_keys(struct cmd *c)
{
	enum terminal_event event;
	unsigned int key;
	int y, x;

	while ((event = terminal_read(&key, &y, &x)) != TERMINAL_NONE) {
		if (event == TERMINAL_CLICK)
			top_click(c->view, y, x);
		if (event != TERMINAL_KEY)
			continue;
		switch (top_key(c->view, key)) {
		case TOP_QUIT:
			return false;
		case TOP_WRITE_FRAME:
			write_json(c, false);
			break;
		case TOP_WRITE_HISTORY:
			write_json(c, true);
			break;
		default:
			break;
		}
	}
	return true;
}

static int show(struct cmd *c, struct screen *screen)
{
	int width, height, ret;
	struct grid g;

	terminal_size(&width, &height);
	ret = paint(c, screen, width, height, &g);
	if (ret)
		return ret;
	terminal_show(&g);
	grid_free(&g);
	return 0;
}

/* The source failed while the screen is up: say so, and try again. */
static void note_trouble(struct cmd *c, int ret, const struct err *err)
{
	if (ret)
		snprintf(c->source->info.trouble, sizeof(c->source->info.trouble), "%.255s",
			 err->text);
}

static int run(struct cmd *c, struct err *err)
{
	struct pollfd fds[2 + SOURCE_FDS] = { { .fd = STDIN_FILENO, .events = POLLIN },
					      { .fd = c->sigfd, .events = POLLIN } };
	struct screen screen;
	double due = now_s() + top_interval(c->view), wait;
	int ret;

	screen_of(stdout, &screen);
	for (;;) {
		unsigned int n = 2 + c->source->fds(c->source, fds + 2);

		show_log(c);
		ret = show(c, &screen);
		if (ret)
			return err_set(err, ret, "out of memory for a frame");
		/* painting is for events: housekeeping alone changes nothing on the screen */
		do {
			wait = fmin(fmax(due - now_s(), 0), c->source->tick(c->source));
			ret = poll(fds, n, ceil(wait * 1000));
		} while ((!ret || (ret > 0 && !fds[0].revents && !fds[1].revents)) &&
			 now_s() < due);
		if (ret > 0 && fds[1].revents)
			return 0;
		if (ret > 0 && fds[0].revents & (POLLHUP | POLLERR | POLLNVAL))
			return 0; /* the terminal is gone */
		if (!take_keys(c))
			return 0;
		if (top_labels(c->view) != c->labels) {
			/* groups that are not told apart yet */
			if (labels_by(top_labels(c->view) & ~TABLE_JOINED) & ~c->source->info.by &
			    c->source->info.by_possible) {
				note_trouble(c, open_source(c, err), err);
				due = now_s() + top_interval(c->view);
			}
			c->labels = top_labels(c->view);
		}
		due = fmin(due, now_s() + top_interval(c->view));
		if (now_s() < due)
			continue;
		note_trouble(c, add_interval(c, err), err);
		due = fmax(due + top_interval(c->view), now_s());
	}
}

static int open_signals(struct err *err)
{
	sigset_t set;
	int fd;

	sigemptyset(&set);
	sigaddset(&set, SIGINT);
	sigaddset(&set, SIGTERM);
	sigaddset(&set, SIGHUP);
	sigprocmask(SIG_BLOCK, &set, NULL);
	fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
	return fd < 0 ? err_set(err, -errno, "cannot wait for signals: %s", strerror(errno)) : fd;
}

/* The arguments that no key changes, as they were given. */
static void keep_command(struct cmd *c, int argc, char **argv)
{
	static const char *const changed[] = { "--by", "--sort",    "--match", "--interval",
					       "-d",   "--reverse", "--once" };
	size_t n = snprintf(c->command, sizeof(c->command), "ibscope top");

	for (int i = 1; i < argc && n < sizeof(c->command); i++) {
		size_t k = 0, len = strcspn(argv[i], "=");

		while (k < 7 && (strlen(changed[k]) != len || strncmp(argv[i], changed[k], len)))
			k++;
		if (k == 7)
			n += snprintf(c->command + n, sizeof(c->command) - n, " %s", argv[i]);
		else if (k < 5 && !argv[i][len])
			i++;
	}
}

/* Options that have no effect on what is shown are errors. */
static int check_source(const struct cmd *c, bool selects, struct err *err)
{
	const struct sampling *s = &c->sampling;

	if (!!c->input.file + !!c->pin_dir + c->own > 1)
		return err_set(err, -EINVAL, "-i, --pin-dir and --own exclude each other");
	if (c->speed && !c->input.file)
		return err_set(err, -EINVAL, "--speed works with -i only");
	if (c->pin_dir && selects)
		return err_set(err, -EINVAL,
			       "--pin-dir: the collector has chosen what is sampled: leave out "
			       "options for sampling and selection");
	if (c->input.file && (s->source || s->rate.has_period || s->rate.has_freq || s->all ||
			      *s->hierarchy || s->sim_faults || s->opts.max_memory_bytes))
		return err_set(err, -EINVAL,
			       "-i: a recording has been sampled: leave out options for sampling");
	return 0;
}

/* Return: false if a signal came before. */
static bool wait_interval(struct cmd *c)
{
	double due = c->began + c->top.interval_s;

	while (now_s() < due) {
		struct pollfd fds[1 + SOURCE_FDS] = { { .fd = c->sigfd, .events = POLLIN } };
		unsigned int n = 1 + c->source->fds(c->source, fds + 1);
		double wait = fmin(fmax(due - now_s(), 0), c->source->tick(c->source));

		if (poll(fds, n, ceil(wait * 1000)) > 0 && fds[0].revents)
			return false;
	}
	return true;
}

static int once(struct cmd *c, struct err *err)
{
	double end = c->began + c->top.interval_s + ONCE_PATIENCE_S;
	int ret;

	if (c->trace) { /* all of it */
		c->began = -INFINITY;
		return add_interval(c, err) ?: print_once(c, err);
	}
	/* an interval without any sample shows nothing: a busy or idle machine may begin late */
	for (bool more = true; more;) {
		more = wait_interval(c) && now_s() < end;
		ret = add_interval(c, err);
		if (ret)
			return ret;
		more = more && !c->seen;
	}
	return print_once(c, err);
}

static int with_screen(struct cmd *c, struct err *err)
{
	char command[sizeof(((struct cmd *)0)->command) * 2];
	int ret = terminal_open(err);

	if (ret)
		return ret;
	ret = run(c, err);
	terminal_close();
	top_command(c->view, command, sizeof(command));
	utf8_put(stdout, command);
	fputc('\n', stdout);
	return ret;
}

/* A collector is read if it is asked for, or if it runs and nothing says what to sample. */
static int choose_source(struct cmd *c, bool selects, struct err *err)
{
	if (c->input.file) {
		recorded_selection(&c->sampling, &c->replay);
		return recorded_open(&c->input, &c->trace, err)
			       ?: source_recording(c->trace, &c->replay, c->input.file,
						   c->speed ?: 1, &c->source, err);
	}
	if (c->pin_dir || (!selects && !c->own)) {
		int ret = source_pinned(c->pin_dir ?: IBS_PIN_DIR, &c->source, err);

		if (!ret || c->pin_dir)
			return ret;
	}
	return source_live(&c->sampling, &c->source, err);
}

static int top(struct cmd *c, bool selects, struct err *err)
{
	int ret;

	if (!c->once) {
		ret = terminal_guard(err);
		if (ret)
			return ret;
	}
	c->sigfd = open_signals(err);
	if (c->sigfd < 0)
		return c->sigfd;
	gethostname(c->host, sizeof(c->host) - 1);
	c->top.host = c->host;
	c->top.command = c->command;
	c->top.labels = c->sampling.labels;
	ret = choose_source(c, selects, err);
	if (ret)
		return ret;
	c->top.info = &c->source->info;
	if (top_new(&c->top, &c->view))
		return err_set(err, -ENOMEM, "out of memory");
	ret = open_source(c, err);
	if (ret)
		return ret;
	if (c->once)
		return once(c, err);
	c->log = open_memstream(&c->log_text, &c->log_size);
	if (!c->log)
		return err_set(err, -ENOMEM, "out of memory");
	log_to(c->log);
	ret = with_screen(c, err);
	log_to(NULL);
	return ret;
}

int cmd_top(int argc, char **argv)
{
	struct cmd c = { .top = { .sort = TABLE_CYCLES, .interval_s = DEFAULT_INTERVAL_S },
			 .sigfd = -1 };
	const struct option_set sets[] = {
		{ "Screen", top_options, TOP_OPTIONS, &c },
		{ "Sampling", sampling_options, sampling_n_options, &c.sampling },
		{ "Selection", select_option_rows, select_option_n_rows, &c.sampling.select },
	};
	struct sampling none;
	struct err err = { "" };
	bool selects = false;
	int ret;

	sampling_init(&c.sampling);
	c.sampling.labels = 0;
	memcpy(&none, &c.sampling, sizeof(none));
	keep_command(&c, argc, argv);
	ret = options_parse(argc, argv, sets, 3, &err);
	if (ret > 0) {
		if (ret == OPTIONS_HELP)
			usage(stdout, sets, 3);
		sampling_close(&c.sampling);
		return EXIT_DONE;
	}
	if (!ret && optind < argc)
		ret = err_set(&err, -EINVAL,
			      "unexpected argument '%s'; to measure a command, use ibscope hist",
			      argv[optind]);
	if (!ret) {
		none.labels = c.sampling.labels;
		/* a copy, padding included */
		/* NOLINTNEXTLINE(bugprone-suspicious-memory-comparison,cert-exp42-c,cert-flp37-c) */
		selects = memcmp(&none, &c.sampling, sizeof(none));
		ret = check_source(&c, selects, &err);
	}
	if (!ret && !c.once && (c.html || c.width))
		ret = err_set(&err, -EINVAL, "--%s works with --once only",
			      c.html ? "html" : "size");
	ret = ret ?: sampling_filter(&c.sampling, &err);
	if (ret) {
		log_error("%s", err.text);
		sampling_close(&c.sampling);
		return EXIT_USAGE;
	}
	if (c.sampling.select.explain) {
		filter_explain(stdout, &c.sampling.select.filter);
		sampling_close(&c.sampling);
		return fflush(stdout) || ferror(stdout) ? EXIT_FAILED : EXIT_DONE;
	}
	ret = top(&c, selects, &err);
	if (ret)
		log_error("%s", err.text);
	ret = !ret ? EXIT_DONE : c.sampling.usage ? EXIT_USAGE : EXIT_FAILED;
	if (c.sigfd >= 0)
		close(c.sigfd);
	source_close(c.source);
	trace_close(c.trace);
	top_free(c.view);
	if (c.log)
		fclose(c.log);
	free(c.log_text);
	sampling_close(&c.sampling);
	return ret;
}
