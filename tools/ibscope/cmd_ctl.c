// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* ibscope ctl: show or change a running collector. */
#include "cmd.h"
#include "cmd_serve.h"
#include "status/reading.h"
#include "collector/control.h"
#include "view/hist.h"
#include "base/options.h"
#include "capture/capture.h"
#include "base/screen.h"
#include "base/utf8.h"
#include "pins/pinned.h"
#include "rows/rows.h"
#include "rows/snapshot_json.h"

#include <errno.h>
#include <getopt.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

struct ctl {
	const char *pin_dir, *control; /* NULL: not given */
	const char *output;	       /* NULL: not given */
	bool json, wait;
	unsigned int event;    /* enum event_choice */
	unsigned int labels;   /* of --by; 0: not given */
	struct hist_view view; /* of snapshot */
};

enum event_choice { EVENT_ALL, EVENT_OP, EVENT_FETCH, EVENT_CHOICES };

static const char *event_choice_name(unsigned int i)
{
	static const char *const names[] = { "all", "ibs_op", "ibs_fetch" };

	return names[i];
}

static bool wants(const struct ctl *c, enum ibs_metric metric)
{
	return !c->event || (c->event == EVENT_FETCH) == ibs_metric_of_fetch(metric);
}

static int set_by(void *ctx, const char *arg, struct err *err)
{
	struct ctl *c = ctx;

	/* no counter has symbols */
	return labels_parse(arg, &c->labels, &c->view.order, err)
		       ?: labels_counted(c->labels & 1U << LABEL_SYMBOL, false, err);
}

static const struct option_row ctl_rows[] = {
	{ "pin-dir", 0, "DIR", "directory of the collector's pins; default " IBS_PIN_DIR,
	  OPTION_WORD(struct ctl, pin_dir) },
	{ "control", 0, "PATH",
	  "the collector's socket; by default the one named in the pins, or for snapshot, if those "
	  "cannot be read, " USERS_PATH,
	  OPTION_WORD(struct ctl, control) },
	{ "event", 'e', "NAME",
	  "event that ledger and snapshot show: ibs_op, ibs_fetch, or all (default)",
	  OPTION_CHOICE(struct ctl, event, "event", event_choice_name, EVENT_CHOICES) },
	{ "json", 0, NULL, "print status, ledger or snapshot as JSON",
	  OPTION_FLAG(struct ctl, json) },
	{ "by", 0, "KEY,..",
	  "group snapshot by these keys; default one row per container, in JSON cgroup,src,op "
	  "or cgroup,fetch,itlb",
	  set_by },
	{ "output", 'o', "FILE", "recording that dump writes; default " OUTPUT_DEFAULT_PATH,
	  OPTION_WORD(struct ctl, output) },
	{ "wait", 0, NULL, "let set accept cgroups and containers that do not exist yet",
	  OPTION_FLAG(struct ctl, wait) },
};

static void print_next(const struct ctl *c)
{
	struct screen screen;

	screen_of(stdout, &screen);
	screen_next(stdout, &screen, "ctl", c->pin_dir ? "--pin-dir" : "", c->pin_dir ?: "",
		    "snapshot", NULL);
}

static int status(const struct ctl *c, const struct pinned *p, struct err *err)
{
	const unsigned int n = pinned_second(p) ? 2 : 1;
	struct reading now[2];
	int ret = reading_pinned(p, &now[0], err);

	if (!ret && n > 1)
		ret = reading_pinned(pinned_second(p), &now[1], err);
	if (ret)
		return ret;
	if (c->json)
		collector_print_json(stdout, now, n, NULL);
	else
		collector_print(stdout, now, n);
	if (!c->json)
		print_next(c);
	if (collector_alive(&now[0].meta))
		return 0;
	return err_set(err, -ESRCH,
		       "the collector is not running; `ibscope serve` resumes its counters");
}

static int no_event(const struct ctl *c, struct err *err)
{
	return err_set(err, -ENOENT, "-e %s: the collector does not sample it",
		       event_choice_name(c->event));
}

static int ledger(const struct ctl *c, const struct pinned *p, struct err *err)
{
	const bool two = pinned_second(p);
	bool any = false;
	int ret = 0;

	for (; p && !ret; p = pinned_second(p)) {
		enum ibs_metric metric;
		struct reading now;

		ret = reading_pinned(p, &now, err);
		metric = ret ? 0 : reading_metric(&now.meta);
		if (ret || !wants(c, metric))
			continue;
		any = true;
		ledger_print_line(stdout,
				  two ? event_choice_name(EVENT_OP + ibs_metric_of_fetch(metric))
				      : NULL,
				  &now.ledger, c->json);
	}
	return ret ?: any ? 0 : no_event(c, err);
}

struct names {
	const struct pinned *p;
	const struct snapshot *s;
	struct ibs_slot_name name;
};

static const char *name_of(void *arg, __u64 id, enum label l)
{
	struct names *n = arg;

	for (size_t i = 0; i < n->s->n_groups; i++) {
		if (n->s->groups[i].key.cgroup_id != id)
			continue;
		pinned_name(n->p, &n->s->groups[i], &n->name);
		if (l == LABEL_CONTAINER)
			return n->name.container;
		if (l == LABEL_POD)
			return n->name.pod;
		return *n->name.cgroup ? n->name.cgroup : NULL;
	}
	return NULL;
}

static int print_event(const struct ctl *c, const struct pinned *p, const struct ibs_meta *m,
		       struct err *err)
{
	struct snapshot now;
	struct names names = { .p = p, .s = &now };
	struct hist_view view = c->view;
	struct hist_info info;
	unsigned int labels = c->labels;
	int ret;

	if (labels_counted(labels, ibs_metric_of_fetch(m->layout.metric), err) ||
	    labels_known(labels, m->layout.by, err))
		return EXIT_USAGE;
	ret = pinned_snapshot(p, &now, err);
	if (ret)
		return ret;
	if (!labels && !(m->layout.by & IBS_BY_CGROUP))
		labels = labels_of_event(labels_of_by(m->layout.by) |
						 (c->json || !m->layout.by ? LABELS_OP : 0),
					 ibs_metric_of_fetch(m->layout.metric));
	info = (struct hist_info){ .source = m->source,
				   .event = m->event,
				   .simulated = m->layout.simulated,
				   .metric = m->layout.metric,
				   .period = m->status.period,
				   .since_ns = m->start_realtime_ns };
	now.time_ns = m->status.enabled_ns / (m->status.cpus ? m->status.cpus : 1);
	ret = hist_print(stdout, &view, &info, &now, labels, name_of, &names, err);
	snapshot_free(&now);
	return ret;
}

/* Choose the events that all keys of --by apply to: both, or only one. Return: 0, or EXIT_USAGE with @err. */
static int choose_events(struct ctl *c, bool two, struct err *err)
{
	if (!two || c->event)
		return 0;
	if (labels_counted(c->labels, false, NULL))
		c->event = EVENT_FETCH;
	else if (labels_counted(c->labels, true, NULL))
		c->event = EVENT_OP;
	if (c->event || c->view.opts.format != FORMAT_CSV)
		return 0;
	err_set(err, -EINVAL,
		"--csv: two events have different columns: use --json, or choose one with -e");
	return EXIT_USAGE;
}

static int print_snapshot(const struct ctl *c, const struct pinned *p, struct err *err)
{
	struct ctl of = *c;
	bool any = false;
	int ret = choose_events(&of, pinned_second(p), err);

	for (; p && !ret; p = pinned_second(p)) {
		struct ibs_meta m;

		pinned_meta(p, &m);
		if (!wants(&of, reading_metric(&m)))
			continue;
		if (any && !c->json)
			putchar('\n');
		ret = print_event(&of, p, &m, err);
		any = true;
	}
	return ret ?: any ? 0 : no_event(c, err);
}

static const char *name_of_read(void *arg, __u64 id, enum label l)
{
	return snapshot_read_name(arg, id, l);
}

static int print_own_event(const struct ctl *c, struct snapshot_read *now, struct err *err)
{
	const struct hist_info info = { .source = now->about.source,
					.event = now->about.event,
					.simulated = now->about.simulated,
					.metric = now->about.metric,
					.period = now->about.period };
	struct hist_view view = c->view;

	if (now->left_out)
		log_warn("%zu groups are left out: the answer would be too long", now->left_out);
	if (labels_counted(c->labels, ibs_metric_of_fetch(info.metric), err) ||
	    labels_known(c->labels, now->about.by, err))
		return EXIT_USAGE;
	return hist_print(stdout, &view, &info, &now->snapshot, c->labels, name_of_read, now, err);
}

/* Print the answer of --user-socket, which has only the caller's cgroups. Return: as pins_run. */
static int print_own(const struct ctl *c, const char *path, struct err *err)
{
	struct snapshot_read now[CONTROL_SNAPSHOTS];
	struct ctl of = *c;
	bool any = false;
	size_t groups = 0;
	struct u64_map slots[CONTROL_SNAPSHOTS] = {};
	int n = control_ask_snapshots(path, slots, now, err);
	int ret = n < 0 ? n : choose_events(&of, n > 1, err);

	for (int i = 0; i < n; i++) {
		u64_map_free(&slots[i]);
		if (!ret && wants(&of, now[i].about.metric)) {
			if (any && !c->json)
				putchar('\n');
			ret = print_own_event(&of, &now[i], err);
			any = true;
			groups += now[i].snapshot.n_groups;
		}
		snapshot_read_free(&now[i]);
	}
	if (any && !groups)
		log_warn("no samples so far in cgroups that belong to you; see --user-socket in "
			 "ibscope-serve(1)");
	return ret ?: any ? 0 : no_event(c, err);
}

/* Return: 0, or with @err EXIT_USAGE or a negative errno. */
typedef int pins_run(const struct ctl *c, const struct pinned *p, struct err *err);

static const struct verb {
	const char *name, *args, *help;
	pins_run *run; /* reads the pins; NULL: only the collector can answer */
	bool asks;     /* the collector can answer */
	bool json, wait;
	bool ends, removes; /* sampling; pins */
	bool dumps;
} verbs[] = {
	{ "status", NULL, "show the state of the collector and its live options", status, true,
	  true },
	{ "ledger", NULL, "show the outcome of all samples", ledger, true, true },
	{ "snapshot", NULL, "show all counters, in the format of hist", print_snapshot, false,
	  true },
	{ "set", "NAME=VALUE..", "change options until the collector exits; NAME= for the default",
	  NULL, true, false, true },
	{ "unset", "NAME..", "return these options to the values of file and command line", NULL,
	  true },
	{ "reset", NULL, "return all options to the values of file and command line", NULL, true },
	{ "reload", NULL, "read file and command line again, as SIGHUP does", NULL, true },
	{ "dump", NULL, "write the last samples of serve --flight to a recording", .dumps = true },
	{ "stop", NULL, "end sampling, with or without a collector; counters are kept",
	  .ends = true },
	{ "unpin", NULL, "end sampling and remove all pins, and with them the counters",
	  .ends = true, .removes = true },
};
#define VERBS ARRAY_SIZE(verbs)

#define SETS 3

static void usage(FILE *f, const struct option_set *sets)
{
	fprintf(f, "usage: ibscope ctl [OPTIONS] VERB [NAME=VALUE..]\n\n");
	for (size_t i = 0; i < VERBS; i++) {
		char left[32];

		snprintf(left, sizeof(left), "%s%s%s", verbs[i].name, verbs[i].args ? " " : "",
			 verbs[i].args ?: "");
		fprintf(f, "  %-18s %s\n", left, verbs[i].help);
	}
	options_help(f, sets, SETS);
	columns_help(f, &hist_columns);
	fprintf(f,
		"\nOptions set live override those of the same name in file and command line "
		"until the\ncollector exits. NAME is a long option of `ibscope serve`, without "
		"dashes.\nExit status: 0 done, 1 failed, or status found no running collector, 2 "
		"wrong usage.\n");
}

static bool view_given(const struct hist_view *v)
{
	const struct view_opts *o = &v->opts;

	return (o->format && o->format != FORMAT_JSON) || v->histograms || o->top || o->has_sort ||
	       o->n_columns;
}

static const struct verb *find_verb(int argc, char **argv, struct err *err)
{
	char known[128] = "";

	for (size_t i = 0; i < VERBS; i++) {
		const struct verb *v = &verbs[i];

		if (argc < 1 || strcmp(argv[0], v->name)) {
			strcat(known, i ? ", " : "");
			strcat(known, v->name);
			continue;
		}
		if (!v->args == (argc == 1))
			return v;
		if (v->args)
			err_set(err, -EINVAL, "%s: missing %s", v->name, v->args);
		else
			err_set(err, -EINVAL, "%s takes no arguments", v->name);
		return NULL;
	}
	if (argc < 1)
		err_set(err, -EINVAL, "missing verb: one of %s", known);
	else
		err_set(err, -EINVAL, "unknown verb '%.40s': must be one of %s", argv[0], known);
	return NULL;
}

/* Do the options fit the verb? */
static int check(struct ctl *c, const struct verb *verb, struct err *err)
{
	if (c->json && !verb->json)
		return err_set(err, -EINVAL, "%s does not take --json", verb->name);
	if (c->wait && !verb->wait)
		return err_set(err, -EINVAL, "%s does not take --wait", verb->name);
	if (c->json && format_set(&c->view.opts.format, FORMAT_JSON, err))
		return -EINVAL;
	if (c->output && !verb->dumps)
		return err_set(err, -EINVAL, "-o: only dump writes a file");
	if (c->event && verb->run != print_snapshot && verb->run != ledger)
		return err_set(err, -EINVAL, "-e: %s is the same for all events", verb->name);
	if (c->event && c->control && verb->run == ledger)
		return err_set(
			err, -EINVAL,
			"-e: with --control, the collector prints the ledgers of all events; leave "
			"out --control");
	if (view_given(&c->view) && verb->run != print_snapshot)
		return err_set(err, -EINVAL, "%s: options for output apply to snapshot only",
			       verb->name);
	return hist_view_check(&c->view, err);
}

/* --- a running collector --- */

/* The path of its socket, from --control or its pins. */
static int find_control(const struct ctl *c, char *out, size_t size, struct err *err)
{
	struct ibs_meta m;
	struct pinned *p = NULL;
	int ret = c->control ? 0 : pinned_open(c->pin_dir ?: IBS_PIN_DIR, &p, err);

	snprintf(out, size, "%s", c->control ?: CONTROL_PATH);
	if (c->control)
		return 0;
	if (ret) /* users who cannot read the pins may still use the socket */
		return c->pin_dir ? ret : 0;
	pinned_meta(p, &m);
	/* connecting to the socket shows whether a collector is listening */
	if (!m.pid || (!*m.control && !collector_alive(&m)))
		ret = err_set(err, -ESRCH, "no collector is running");
	else if (!*m.control)
		ret = err_set(err, -ENOTSUP,
			      "the collector, process %u, has no control socket: it was started "
			      "with --control none, or its log says why",
			      m.pid);
	else
		snprintf(out, size, "%s", m.control);
	pinned_close(p);
	return ret;
}

/* @ok: where to print a success */
static int print_answer(struct control_answer *a, FILE *ok, struct err *err)
{
	static const int exits[] = { EXIT_DONE, EXIT_USAGE, EXIT_FAILED };
	char *rest = a->text, *line;

	if (a->result != CONTROL_OK) {
		rest = strchr(a->text, '\n');
		if (rest)
			*rest++ = 0;
		err_set(err, -EIO, "%s", a->text);
	}
	while ((line = strsep(&rest, "\n"))) {
		if (!rest && !*line)
			break;
		utf8_put(a->result == CONTROL_OK ? ok : stderr, line);
		fputc('\n', a->result == CONTROL_OK ? ok : stderr);
	}
	free(a->text);
	return exits[a->result];
}

/* Return: an exit status, with @err unless it is EXIT_DONE. */
static int ask(const struct ctl *c, const char *verb, int argc, char **argv, struct err *err)
{
	struct control_answer answer = {};
	char path[sizeof(((struct ibs_meta *)0)->control)], *text = NULL;
	size_t n = 0;
	FILE *f;
	int ret, wrong;

	for (int i = 0; i < argc; i++) {
		if (!argv[i][strcspn(argv[i], "\r\n")] && *argv[i])
			continue;
		err_set(err, -EINVAL, "%s: an argument is empty or has several lines", verb);
		return EXIT_USAGE;
	}
	if (find_control(c, path, sizeof(path), err))
		return EXIT_FAILED;
	f = xmemopen(&text, &n);
	fprintf(f, "%s\n%s%s", verb, c->json ? "json\n" : "", c->wait ? "wait\n" : "");
	for (int i = 0; i < argc; i++)
		fprintf(f, "%s\n", argv[i]);
	xmemclose(f);
	ret = control_ask(path, text, n, &answer, err);
	wrong = ret && !strcmp(verb, "set") && serve_check_set(text, n, err);
	free(text);
	return wrong ? EXIT_USAGE : ret ? EXIT_FAILED : print_answer(&answer, stdout, err);
}

/* Return: as ask(). */
static int dump(const struct ctl *c, struct err *err)
{
	char path[sizeof(((struct ibs_meta *)0)->control)];
	const char *name = c->output ?: OUTPUT_DEFAULT_PATH;
	const bool to_stdout = !strcmp(name, "-");
	struct control_answer answer = {};
	struct screen screen;
	int ret;

	if (find_control(c, path, sizeof(path), err) || control_dump(path, name, &answer, err))
		return EXIT_FAILED;
	ret = print_answer(&answer, to_stdout ? stderr : stdout, err);
	screen_of(stdout, &screen);
	if (ret == EXIT_DONE && !to_stdout)
		screen_next(stdout, &screen, "report", name, NULL);
	return ret;
}

#define STOP_S 30 /* a collector exits within this time */

/* End sampling of a collector, or of one that was killed. Return: as ask(). */
static int end_sampling(const struct ctl *c, const struct verb *verb, struct err *err)
{
	const struct timespec wait = { .tv_nsec = 100000000 };
	char path[sizeof(((struct ibs_meta *)0)->control)];
	const char *dir = c->pin_dir ?: IBS_PIN_DIR;
	bool found = !find_control(c, path, sizeof(path), err);
	int asked = 0, ret;

	for (int i = 0; i < STOP_S * 10; i++) {
		ret = orphan_stop(dir, verb->removes, err);
		if (ret == -ENOENT && i) /* it removed its pins itself, as with --unpin */
			ret = 0;
		if (!ret && found)
			control_clear(path);
		if (ret != -EBUSY)
			return ret ? EXIT_FAILED : EXIT_DONE;
		asked = i ? asked : ask(c, "stop", 0, NULL, err);
		if (asked)
			return asked;
		nanosleep(&wait, NULL);
	}
	return EXIT_FAILED;
}

/* Ask the user socket, for users who cannot read the pins. */
static int snapshot_of_user(const struct ctl *c, struct err *err)
{
	struct err why;
	int ret = print_own(c, c->control ?: USERS_PATH, &why);

	/* without such a socket, the error of the pins is more helpful */
	if (ret && (c->control || (ret != -ENOENT && ret != -ECONNREFUSED)))
		*err = why;
	return ret < 0 ? EXIT_FAILED : ret;
}

/* As ask(). */
static int read_pins(const struct ctl *c, const struct verb *verb, struct err *err)
{
	struct err why = { "" };
	struct pinned *p = NULL;
	int ret = pinned_open(c->pin_dir ?: IBS_PIN_DIR, &p, err);

	/* users who cannot read the pins may still use the socket */
	if ((ret == -EACCES || ret == -EPERM) && verb->asks && !c->pin_dir &&
	    ask(c, verb->name, 0, NULL, &why) == EXIT_DONE)
		return EXIT_DONE;
	if (ret && verb->run == print_snapshot && !c->pin_dir)
		return snapshot_of_user(c, err);
	ret = ret ?: verb->run(c, p, err);
	pinned_close(p);
	return ret < 0 ? EXIT_FAILED : ret;
}

/* Complete verbs; after set and unset, options of serve. */
static void complete(int argc, char **argv)
{
	char *serve[] = { "serve", argv[argc - 1], NULL };

	for (int i = 1; i < argc - 1; i++) {
		if (!strcmp(argv[i], "set") || !strcmp(argv[i], "unset")) {
			setenv("IBSCOPE_COMPLETE", argv[i], true);
			cmd_serve(2, serve);
			return;
		}
	}
	for (size_t i = 0; i < VERBS; i++)
		complete_offer(argv[argc - 1], verbs[i].name, verbs[i].help);
}

int cmd_ctl(int argc, char **argv)
{
	struct ctl c = {};
	struct option_row rows[VIEW_OPTIONS_MAX];
	const struct option_set sets[SETS] = {
		{ "Options", ctl_rows, sizeof(ctl_rows) / sizeof(ctl_rows[0]), &c },
		hist_options("Output of snapshot", &c.view),
		/* other verbs take --json, too */
		view_options(rows, "top sort columns markdown csv", &hist_columns, &c.view.opts),
	};
	const struct verb *verb;
	struct err err = { "" };
	int ret;

	if (complete_mode() && argv[argc - 1][0] != '-' && argv[argc - 2][0] != '-') {
		complete(argc, argv);
		return EXIT_DONE;
	}
	ret = options_parse(argc, argv, sets, SETS, &err);
	if (ret > 0) {
		if (ret == OPTIONS_HELP)
			usage(stdout, sets);
		return EXIT_DONE;
	}
	verb = ret ? NULL : find_verb(argc - optind, argv + optind, &err);
	if (!verb || check(&c, verb, &err)) {
		log_error("%s", err.text);
		return EXIT_USAGE;
	}
	if (c.control && !c.pin_dir && verb->run == print_snapshot)
		ret = snapshot_of_user(&c, &err);
	else if (verb->dumps)
		ret = dump(&c, &err);
	else if (verb->ends)
		ret = end_sampling(&c, verb, &err);
	else if (!verb->run || (c.control && verb->asks))
		ret = ask(&c, verb->name, argc - optind - 1, argv + optind + 1, &err);
	else
		ret = read_pins(&c, verb, &err);
	if (ret != EXIT_DONE)
		log_error("%s", err.text);
	return ret;
}
