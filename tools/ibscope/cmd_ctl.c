// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* ibscope ctl: ask a collector how it is, and tell it what to do. */
#include "cmd.h"
#include "collector_text.h"
#include "control.h"
#include "hist.h"
#include "options.h"
#include "pinned.h"
#include "rows.h"

#include <errno.h>
#include <getopt.h>
#include <stdlib.h>
#include <string.h>

struct ctl {
	const char *pin_dir, *control; /* NULL: not given */
	bool json;
	unsigned int labels;
};

static int set_pin_dir(void *ctx, const char *arg, struct err *err)
{
	struct ctl *c = ctx;

	(void)err;
	c->pin_dir = arg;
	return 0;
}

static int set_control(void *ctx, const char *arg, struct err *err)
{
	struct ctl *c = ctx;

	(void)err;
	c->control = arg;
	return 0;
}

static int set_by(void *ctx, const char *arg, struct err *err)
{
	struct ctl *c = ctx;

	return labels_parse(arg, &c->labels, err);
}

static const struct option_row ctl_rows[] = {
	{ "pin-dir", 0, "DIR", "of the collector; default " IBS_PIN_DIR, set_pin_dir },
	{ "control", 0, "PATH", "the collector's socket; default: what its pins say", set_control },
	{ "json", 0, NULL, "of status, ledger and snapshot: as JSON",
	  OPTION_FLAG(struct ctl, json) },
	{ "by", 0, "LABEL,..", "of snapshot: labels; default cgroup,src,op", set_by },
};

/* @meta is what @out points to. */
static int read_collector(const struct pinned *p, struct ibs_meta *meta,
			  struct metrics_collector *out, struct err *err)
{
	struct snapshot now;
	int ret = pinned_snapshot(p, &now, err);

	if (ret)
		return ret;
	pinned_meta(p, meta);
	*out = (struct metrics_collector){
		.meta = meta,
		.status = meta->status,
		.ledger = now.ledger,
		.groups = now.n_groups,
	};
	snapshot_free(&now);
	return 0;
}

static int status(const struct ctl *c, const struct pinned *p, struct err *err)
{
	struct metrics_collector now;
	struct ibs_meta meta;
	int ret = read_collector(p, &meta, &now, err);

	if (ret)
		return ret;
	if (c->json)
		collector_print_json(stdout, &now);
	else
		collector_print(stdout, &now);
	return metrics_collector_alive(now.meta, &now.status)
		       ? 0
		       : err_set(err, -ESRCH,
				 "no collector runs; `ibscope serve` goes on with what is pinned");
}

static int ledger(const struct ctl *c, const struct pinned *p, struct err *err)
{
	struct metrics_collector now;
	struct ibs_meta meta;
	int ret = read_collector(p, &meta, &now, err);

	if (ret)
		return ret;
	if (c->json)
		return ledger_print_json(stdout, &now.ledger, err);
	ledger_print(stdout, &now.ledger);
	fputc('\n', stdout);
	return 0;
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

static int print_snapshot(const struct ctl *c, const struct pinned *p, struct err *err)
{
	struct ibs_meta m;
	struct snapshot now;
	struct names names = { .p = p, .s = &now };
	struct hist_info info;
	struct rows rows;
	int ret = pinned_snapshot(p, &now, err);

	if (ret)
		return ret;
	pinned_meta(p, &m);
	info = (struct hist_info){ .source = m.source,
				   .event = m.event,
				   .simulated = m.layout.simulated,
				   .metric = m.layout.metric,
				   .period = m.status.period };
	now.time_ns = m.status.enabled_ns / (m.status.cpus ? m.status.cpus : 1);
	if (rows_build(&now, c->labels, name_of, &names, &rows)) {
		snapshot_free(&now);
		return err_set(err, -ENOMEM, "out of memory for the output");
	}
	if (c->json)
		ret = hist_print_json(stdout, &info, &now, &rows, err);
	else
		hist_print_text(stdout, &info, &now, &rows);
	rows_free(&rows);
	snapshot_free(&now);
	return ret;
}

typedef int pins_run(const struct ctl *c, const struct pinned *p, struct err *err);

static const struct verb {
	const char *name, *args, *help;
	pins_run *run; /* from the pins; NULL: only a running collector can do it */
	bool asks;     /* a running collector can */
	bool json;
} verbs[] = {
	{ "status", NULL, "how the collector is, and what is set live", status, true, true },
	{ "ledger", NULL, "what became of the samples", ledger, true, true },
	{ "snapshot", NULL, "all that was counted, as hist shows it", print_snapshot, false, true },
	{ "set", "NAME=VALUE..", "change options of the running collector; NAME= for the default",
	  NULL, true },
	{ "unset", "NAME..", "what file and command line say of these again", NULL, true },
	{ "reset", NULL, "the same of all that is set live", NULL, true },
	{ "reload", NULL, "read file and command line again, as on SIGHUP", NULL, true },
};
#define VERBS (sizeof(verbs) / sizeof(verbs[0]))

static void usage(FILE *f, const struct option_set *set)
{
	fprintf(f, "usage: ibscope ctl [options] VERB [NAME=VALUE..]\n\n");
	for (size_t i = 0; i < VERBS; i++) {
		char left[32];

		snprintf(left, sizeof(left), "%s%s%s", verbs[i].name, verbs[i].args ? " " : "",
			 verbs[i].args ?: "");
		fprintf(f, "  %-18s %s\n", left, verbs[i].help);
	}
	options_help(f, set, 1);
	fprintf(f,
		"\nWhat is set live takes the place of what file and command line say of the "
		"same name,\nuntil the collector ends. Names are the long ones of `ibscope serve "
		"--help`.\nExit status: 0 done, 1 failed or, of status, no collector runs, 2 wrong "
		"usage.\n");
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
			err_set(err, -EINVAL, "%s: %s is expected", v->name, v->args);
		else
			err_set(err, -EINVAL, "%s takes nothing more", v->name);
		return NULL;
	}
	err_set(err, -EINVAL, "expected one verb of %s", known);
	return NULL;
}

/* --- a running collector --- */

/* Where it takes requests, as its pins tell it. */
static int find_control(const struct ctl *c, char *out, size_t size, struct err *err)
{
	struct ibs_meta m;
	struct pinned *p = NULL;
	int ret = c->control ? 0 : pinned_open(c->pin_dir ?: IBS_PIN_DIR, &p, err);

	snprintf(out, size, "%s", c->control ?: CONTROL_PATH);
	if (c->control)
		return 0;
	if (ret) /* who may not read them may be allowed to ask */
		return c->pin_dir ? ret : 0;
	pinned_meta(p, &m);
	/* where there is a socket, it knows best */
	if (!m.pid || (!*m.control && !metrics_collector_alive(&m, &m.status)))
		ret = err_set(err, -ESRCH, "no collector runs");
	else if (!*m.control)
		ret = err_set(err, -ENOTSUP,
			      "the collector, process %u, takes no requests: it was started with "
			      "--control none, or told why",
			      m.pid);
	else
		snprintf(out, size, "%s", m.control);
	pinned_close(p);
	return ret;
}

static int print_answer(struct control_answer *a, struct err *err)
{
	char *rest = a->text;

	if (a->result != CONTROL_OK) {
		rest = strchr(a->text, '\n');
		if (rest)
			*rest++ = 0;
		err_set(err, -EIO, "%s", a->text);
	}
	if (rest)
		fputs(rest, a->result == CONTROL_OK ? stdout : stderr);
	free(a->text);
	return a->result == CONTROL_OK	    ? EXIT_DONE
	       : a->result == CONTROL_USAGE ? EXIT_USAGE
					    : EXIT_FAILED;
}

/* Return: an exit status, with @err unless it is EXIT_DONE. */
static int ask(const struct ctl *c, const struct verb *verb, int argc, char **argv, struct err *err)
{
	struct control_answer answer = {};
	char path[sizeof(((struct ibs_meta *)0)->control)], *text = NULL;
	size_t n = 0;
	FILE *f;
	int ret;

	for (int i = 0; i < argc; i++) {
		if (!argv[i][strcspn(argv[i], "\r\n")] && *argv[i])
			continue;
		err_set(err, -EINVAL, "%s: an argument is empty, or has several lines", verb->name);
		return EXIT_USAGE;
	}
	if (find_control(c, path, sizeof(path), err))
		return EXIT_FAILED;
	f = open_memstream(&text, &n);
	if (!f) {
		err_set(err, -ENOMEM, "out of memory");
		return EXIT_FAILED;
	}
	fprintf(f, "%s\n%s", verb->name, c->json ? "json\n" : "");
	for (int i = 0; i < argc; i++)
		fprintf(f, "%s\n", argv[i]);
	fclose(f);
	ret = control_ask(path, text, n, &answer, err);
	free(text);
	return ret ? EXIT_FAILED : print_answer(&answer, err);
}

/* As ask(). */
static int read_pins(const struct ctl *c, const struct verb *verb, struct err *err)
{
	struct err why = { "" };
	struct pinned *p = NULL;
	int ret = pinned_open(c->pin_dir ?: IBS_PIN_DIR, &p, err);

	/* who may not read them may be allowed to ask */
	if ((ret == -EACCES || ret == -EPERM) && verb->asks && !c->pin_dir &&
	    ask(c, verb, 0, NULL, &why) == EXIT_DONE)
		return EXIT_DONE;
	ret = ret ?: verb->run(c, p, err);
	pinned_close(p);
	return ret ? EXIT_FAILED : EXIT_DONE;
}

int cmd_ctl(int argc, char **argv)
{
	struct ctl c = { .labels = LABELS_DEFAULT };
	const struct option_set set = { "Options", ctl_rows, sizeof(ctl_rows) / sizeof(ctl_rows[0]),
					&c };
	const struct verb *verb;
	struct err err = { "" };
	int ret = options_parse(argc, argv, &set, 1, &err);

	if (ret == OPTIONS_HELP) {
		usage(stdout, &set);
		return EXIT_DONE;
	}
	verb = ret ? NULL : find_verb(argc - optind, argv + optind, &err);
	if (verb && c.json && !verb->json) {
		err_set(&err, -EINVAL, "%s has no --json", verb->name);
		verb = NULL;
	}
	if (!verb) {
		log_error("%s", err.text);
		return EXIT_USAGE;
	}
	if (!verb->run || (c.control && verb->asks))
		ret = ask(&c, verb, argc - optind - 1, argv + optind + 1, &err);
	else
		ret = read_pins(&c, verb, &err);
	if (ret == EXIT_DONE && (fflush(stdout) || ferror(stdout))) {
		err_set(&err, -EIO, "cannot write the output: %s", strerror(errno));
		ret = EXIT_FAILED;
	}
	if (ret != EXIT_DONE)
		log_error("%s", err.text);
	return ret;
}
