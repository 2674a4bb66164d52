// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* ibscope top: a live screen of containers that wait for memory. */
#include "top_options.h"

#include "collector/control.h"

#include "../cmd.h"
#include "base/clock.h"
#include "base/signals.h"
#include "base/utf8.h"
#include "top/terminal.h"

#include <ibscope/pin_layout.h>

#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <math.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

_Static_assert((int)TERMINAL_KEYS == (int)TOP_UP, "terminal and top number keys alike");

#define DEFAULT_INTERVAL_S 2
#define ONCE_HEIGHT	   24
#define ONCE_PATIENCE_S	   10 /* for the first sample */

/* --- one frame --- */

static int open_source(struct top_cmd *c, struct err *err)
{
	int ret;

	c->labels = top_labels(c->view);
	c->source->interval_s = top_interval(c->view);
	ret = c->source->open(c->source, c->labels, err);
	c->began = now_s();
	return ret;
}

static int read_again(struct top_cmd *c, struct err *err)
{
	int ret = source_read_again(c->source, c->view, err);

	c->began = now_s();
	return ret;
}

static int add_interval(struct top_cmd *c, struct err *err)
{
	struct snapshot interval;
	struct frame frame;
	double now = now_s();
	int ret;

	c->source->interval_s = top_interval(c->view);
	ret = c->source->read(c->source, now - c->began, &interval, &frame, err);

	c->began = now;
	if (ret)
		return ret < 0 ? ret : 0;
	c->seen += interval.ledger.seen;
	top_add(c->view, &interval, &frame, c->source->name, c->source);
	snapshot_free(&interval);
	return 0;
}

static void paint(struct top_cmd *c, const struct screen *screen, int width, int height,
		  struct grid *g)
{
	grid_open(g, width, height);
	top_paint(c->view, screen, g);
}

static int print_once(struct top_cmd *c)
{
	struct screen screen;
	struct grid g;

	screen_of(stdout, &screen);
	paint(c, &screen, c->width ?: (int)screen.width,
	      c->height	      ? c->height
	      : screen.height ? (int)screen.height - 1
			      : ONCE_HEIGHT,
	      &g);
	if (c->html)
		grid_print_html(stdout, &g, "ibscope top");
	else
		grid_print(stdout, &g, screen.color);
	grid_free(&g);
	return 0;
}

/* --- the screen --- */

/* Show the last log message, but not before the next key if something answers the last one. */
static void show_log(struct top_cmd *c)
{
	char *line;

	if (!fflush(c->log) && ftell(c->log)) {
		c->log_text[strlen(c->log_text) - 1] = 0;
		line = strrchr(c->log_text, '\n');
		line = line ? line + 1 : c->log_text;
		if (!strncmp(line, "warning: ", 9) || !strncmp(line, "error: ", 7))
			snprintf(c->trouble, sizeof(c->trouble), "%s", line);
		rewind(c->log);
	}
	if (*c->trouble && !c->answered) {
		top_say(c->view, "%s", c->trouble);
		*c->trouble = 0;
	}
}

static void write_json(struct top_cmd *c, bool all)
{
	char name[64];
	struct err err = { "" };
	time_t now = time(NULL);
	FILE *f;
	int fd;

	strftime(name, sizeof(name), "ibscope-top-%Y%m%d-%H%M%S.json", localtime(&now));
	/* do not overwrite an existing file, and do not follow a link */
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

/* Show that the source failed; the next interval tries again. */
static void note_trouble(struct top_cmd *c, int ret, const struct err *err)
{
	if (ret)
		snprintf(c->source->info.trouble, sizeof(c->source->info.trouble), "%.255s",
			 err->text);
}

static void annotate_row(struct top_cmd *c)
{
	struct annotate *a;
	struct err err = { "" };

	if (!c->source->annotate) {
		top_say(c->view, "instructions need a recording");
		return;
	}
	if (c->source->annotate(c->source, c->view, &a, &err))
		top_say(c->view, "%s", err.text);
	else
		top_annotate(c->view, top_function(c->view), a);
	note_trouble(c, read_again(c, &err), &err);
}

/* Return: false to quit. */
static bool take_keys(struct top_cmd *c)
{
	enum terminal_event event;
	bool keys = false;
	unsigned int key;
	int y, x;

	while ((event = terminal_read(&key, &y, &x)) != TERMINAL_NONE) {
		if (event == TERMINAL_CLICK)
			top_click(c->view, y, x);
		keys |= event == TERMINAL_CLICK || event == TERMINAL_KEY;
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
		case TOP_ANNOTATE:
			annotate_row(c);
			break;
		default:
			break;
		}
	}
	if (keys)
		c->answered = top_says(c->view);
	return true;
}

static void show(struct top_cmd *c, struct screen *screen)
{
	int width, height;
	struct grid g;

	terminal_size(&width, &height);
	paint(c, screen, width, height, &g);
	terminal_show(&g);
	grid_free(&g);
}

/* Returns how many descriptors to poll for. */
static unsigned int source_fds(struct top_cmd *c, struct pollfd *fds)
{
	return c->source->fds ? c->source->fds(c->source, fds) : 0;
}

/* Returns for how many seconds to poll. */
static double time_until(struct top_cmd *c, double due)
{
	double wait = fmax(due - now_s(), 0);

	return c->source->tick ? fmin(wait, c->source->tick(c->source)) : wait;
}

static int run(struct top_cmd *c, struct err *err)
{
	struct pollfd fds[2 + SOURCE_FDS] = { { .fd = STDIN_FILENO, .events = POLLIN },
					      { .fd = c->sigfd, .events = POLLIN } };
	struct screen screen;
	double due = now_s() + top_interval(c->view);
	int ret;

	screen_of(stdout, &screen);
	for (;;) {
		unsigned int n = 2 + source_fds(c, fds + 2);

		show_log(c);
		show(c, &screen);
		/* paint only for events: housekeeping changes nothing on the screen */
		do {
			ret = poll(fds, n, ceil(time_until(c, due) * 1000));
		} while ((!ret || (ret > 0 && !fds[0].revents && !fds[1].revents)) &&
			 now_s() < due);
		if (ret > 0 && fds[1].revents)
			return 0;
		if (ret > 0 && fds[0].revents & (POLLHUP | POLLERR | POLLNVAL))
			return 0; /* the terminal is gone */
		if (!take_keys(c))
			return 0;
		if (top_labels(c->view) != c->labels) {
			/* the kernel does not group by these keys yet */
			if (labels_by(top_labels(c->view) & ~TABLE_JOINED) & ~c->source->info.by &
			    c->source->info.by_possible) {
				note_trouble(c,
					     c->source->speed > 0 ? read_again(c, err)
								  : open_source(c, err),
					     err);
				due = now_s() + top_interval(c->view);
			}
			c->labels = top_labels(c->view);
		}
		due = fmin(due, now_s() + top_interval(c->view));
		if (now_s() < due)
			continue;
		note_trouble(c, add_interval(c, err), err);
		/* an interval of a few milliseconds, after a late one, has no rows */
		due = due_again_s(due, top_interval(c->view), now_s());
	}
}

/* Return: false if a signal came first. */
static bool wait_interval(struct top_cmd *c)
{
	double due = c->began + c->top.interval_s;

	while (now_s() < due) {
		struct pollfd fds[1 + SOURCE_FDS] = { { .fd = c->sigfd, .events = POLLIN } };
		unsigned int n = 1 + source_fds(c, fds + 1);

		if (poll(fds, n, ceil(time_until(c, due) * 1000)) > 0 && fds[0].revents)
			return false;
	}
	return true;
}

static int once(struct top_cmd *c, struct err *err)
{
	double end = c->began + c->top.interval_s + ONCE_PATIENCE_S;
	int ret;

	if (c->trace) { /* all of it */
		c->began = -INFINITY;
		return add_interval(c, err) ?: print_once(c);
	}
	/* an interval without samples shows nothing: on a busy or idle machine the first may come late */
	for (bool more = true; more;) {
		more = wait_interval(c) && now_s() < end;
		ret = add_interval(c, err);
		if (ret)
			return ret;
		more = more && !c->seen;
	}
	return print_once(c);
}

static int with_screen(struct top_cmd *c, struct err *err)
{
	char command[sizeof(((struct top_cmd *)0)->command) * 2];
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

/* Whether a collector groups by the keys of --by. */
static int check_keys(struct top_cmd *c, struct err *err)
{
	int ret =
		labels_known(c->sampling.labels & ~TABLE_JOINED, c->source->info.by_possible, err);

	c->source->usage |= ret != 0;
	return ret;
}

/* Read a collector if an option says so, or if one is running and no option says what to sample. */
static int choose_source(struct top_cmd *c, bool selects, struct err *err)
{
	const enum source_event event = !*c->sampling.events		  ? SOURCE_FIRST
					: sampling_of_fetch(&c->sampling) ? SOURCE_FETCH
									  : SOURCE_OP;
	int ret;

	if (c->input.file) {
		recorded_selection(&c->sampling, &c->replay);
		c->input.strata = RECORDED_WEIGHTS;
		ret = recorded_open(&c->input, &c->trace, err);
		if (!ret)
			c->source = source_recording(c->trace, &c->replay, c->input.file,
						     c->speed ?: 1, c->mangled);
		return ret;
	}
	if (c->user_socket)
		return source_users(c->user_socket, event, &c->source, err) ?: check_keys(c, err);
	if (c->pin_dir || (!selects && !c->own)) {
		ret = source_pinned(c->pin_dir ?: IBS_PIN_DIR, event, &c->source, err);

		if (!ret)
			ret = check_keys(c, err);
		if (!ret || c->pin_dir)
			return ret;
		source_close(c->source);
		c->source = NULL;
		/* users who cannot read the pins may ask for their own cgroups */
		if ((ret == -EACCES || ret == -EPERM) &&
		    !source_users(USERS_PATH, event, &c->source, err))
			return check_keys(c, err);
	}
	c->source = source_live(&c->sampling);
	return 0;
}

static int top(struct top_cmd *c, bool selects, struct err *err)
{
	int ret;

	if (!c->once) {
		ret = terminal_check(err) ?: terminal_guard(err);
		if (ret)
			return ret;
	}
	c->sigfd = signals_open(true, err);
	if (c->sigfd < 0)
		return c->sigfd;
	gethostname(c->host, sizeof(c->host) - 1);
	c->top.host = c->host;
	c->top.command = c->command;
	c->top.once = c->once;
	c->top.note = top_note(&c->sampling.select);
	c->top.labels = c->sampling.labels;
	c->top.in_strata = c->sampling.strata != STRATA_OFF;
	ret = choose_source(c, selects, err);
	if (ret)
		return ret;
	c->top.info = &c->source->info;
	c->source->info.unselectable |= c->pin_dir != NULL;
	c->top.cpus = c->sampling.has_cpus ? &c->sampling.cpus : NULL;
	if (c->trace && *trace_info(c->trace)->host)
		c->top.host = trace_info(c->trace)->host;
	c->view = top_new(&c->top);
	ret = open_source(c, err);
	if (ret)
		return ret;
	if (c->once)
		return once(c, err);
	c->log = xmemopen(&c->log_text, &c->log_size);
	log_to(c->log);
	ret = with_screen(c, err);
	log_to(NULL);
	return ret;
}

static int check(struct top_cmd *c, const struct sampling_opts *none, bool *selects,
		 struct err *err)
{
	int ret;

	/* padding is equal, since none is a copy */
	/* NOLINTNEXTLINE(bugprone-suspicious-memory-comparison,cert-exp42-c,cert-flp37-c) */
	*selects = memcmp(none, &c->sampling, sizeof(*none));
	ret = top_check_options(c, *selects, err);
	if (!ret && !c->once && (c->html || c->width))
		ret = err_set(err, -EINVAL, "--%s works with --once only",
			      c->html ? "html" : "size");
	return ret ?: sampling_check(&c->sampling, err);
}

/* Of an option that other commands have. */
static int no_json(int argc, char **argv, int ret, struct err *err)
{
	for (int i = 1; ret < 0 && i < argc; i++)
		if (!strcmp(argv[i], "--json"))
			return err_set(
				err, ret,
				"top has no --json: `ibscope hist --json 2 1` prints one "
				"interval, and the key 'w' of top writes those on the screen");
	return ret;
}

/* @selects: set to whether options of sampling are given. Return: as options_parse() */
static int parse(struct top_cmd *c, int argc, char **argv, bool *selects, struct err *err)
{
	struct option_row view[VIEW_OPTIONS_MAX];
	const struct option_set sets[] = {
		{ "Screen", top_options, top_n_options, c },
		view_options(view, "sort columns", &top_columns, &c->top.view),
		{ "Sampling", sampling_options, sampling_n_options, &c->sampling },
		{ "Selection", select_option_rows, select_option_n_rows, &c->sampling.select },
	};
	struct sampling_opts none;
	int ret;

	sampling_init(&c->sampling);
	c->sampling.labels = 0;
	memcpy(&none, &c->sampling, sizeof(none));
	top_keep_command(c, argc, argv);
	ret = no_json(argc, argv, options_parse(argc, argv, sets, ARRAY_SIZE(sets), err), err);
	if (ret == OPTIONS_HELP)
		top_usage(stdout, sets, ARRAY_SIZE(sets));
	if (ret)
		return ret;
	if (optind + 1 == argc && !c->input.file && !access(argv[optind], F_OK))
		c->input.file = argv[optind++]; /* as in the commands that read recordings */
	if (optind < argc)
		return err_set(err, -EINVAL,
			       "unexpected argument '%s': there is no recording of that name; to "
			       "measure a command, use ibscope hist -- COMMAND",
			       argv[optind]);
	if (c->input.file)
		top_keep_annotate(c, argc, argv);
	none.labels = c->sampling.labels;
	none.order = c->sampling.order;
	if (c->pin_dir || c->user_socket) { /* -e chooses one of the collector's events */
		none.event[0].spec = c->sampling.event[0].spec;
		none.n_events = c->sampling.n_events;
		memcpy(none.events, c->sampling.events, sizeof(none.events));
	}
	return check(c, &none, selects, err);
}

int cmd_top(int argc, char **argv)
{
	struct top_cmd c = { .top = { .view = { .sort = TABLE_CURRENCY, .by_name = true },
				      .interval_s = DEFAULT_INTERVAL_S },
			     .sigfd = -1 };
	struct err err = { "" };
	bool selects = false;
	int ret = parse(&c, argc, argv, &selects, &err);

	if (ret) {
		if (ret < 0)
			log_error("%s", err.text);
		sampling_free(&c.sampling);
		return ret < 0 ? EXIT_USAGE : EXIT_DONE;
	}
	if (c.sampling.select.explain) {
		ret = c.input.file ? recorded_explain(&c.sampling.select)
				   : sampling_explain(&c.sampling, false);
		sampling_free(&c.sampling);
		return ret;
	}
	ret = top(&c, selects, &err);
	if (ret)
		log_error("%s", err.text);
	ret = !ret ? EXIT_DONE : c.source && c.source->usage ? EXIT_USAGE : EXIT_FAILED;
	if (c.sigfd >= 0)
		close(c.sigfd);
	source_close(c.source);
	trace_close(c.trace);
	top_free(c.view);
	if (c.log)
		fclose(c.log);
	free(c.log_text);
	sampling_free(&c.sampling);
	return ret;
}
