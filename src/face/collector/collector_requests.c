// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "collector.h"
#include "collector_private.h"

#include "base/clock.h"
#include "cgroup_select/cgroup_select.h"
#include "counts/snapshot.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* --- options that can be set live --- */

#define BY_RESTART "restart the collector to change it"
#define BY_FILE	   "edit the file and run `ibscope ctl reload`"

/* Options not listed take effect by reopening the events. */
static const struct live_row {
	const char *name;
	bool live;	     /* see session_apply() */
	bool at_once;	     /* does not affect sampling */
	bool governs;	     /* restarts the governor */
	const char *refused; /* not settable live: what to do instead */
} live_rows[] = {
	{ "min-lat", .live = true },
	{ "max-lat", .live = true },
	{ "pid", .live = true },
	{ "cgroup", .live = true },
	{ "container", .live = true },
	{ "period", .live = true, .governs = true },
	{ "max-overhead", .governs = true },
	{ "nmi-cost", .governs = true },
	{ "max-bpf-time", .governs = true },
	{ "max-rss", .governs = true },
	{ "grace", .at_once = true },
	{ "lease", .at_once = true },
	{ "unpin", .at_once = true },
	{ "verbose", .at_once = true },
	{ "config", .refused = BY_FILE },
	{ "config-check", .refused = "it is an option for starting only" },
	{ "explain", .refused = "it is an option for starting only" },
	{ "source", .refused = BY_RESTART },
	{ "seed", .refused = BY_RESTART },
	{ "pin-dir", .refused = BY_RESTART },
	{ "pin-mode", .refused = BY_RESTART },
	{ "control", .refused = BY_RESTART },
	{ "control-mode", .refused = BY_RESTART },
	{ "user-socket", .refused = BY_RESTART },
	{ "user-jobs", .refused = BY_RESTART },
	/* who may set options must not choose where root writes and removes files */
	{ "flight-dir", .refused = BY_FILE },
	{ "flight-keep", .refused = BY_FILE },
	{ "flight-keep-bytes", .refused = BY_FILE },
};

static const struct live_row *find_row(const char *name)
{
	static const struct live_row reopens;

	for (size_t i = 0; i < sizeof(live_rows) / sizeof(live_rows[0]); i++)
		if (!strcmp(live_rows[i].name, name))
			return &live_rows[i];
	return &reopens;
}

static int check_name(const struct settings_source *source, const struct control_line *l,
		      struct err *err)
{
	struct suggestion near;
	const struct option_row *option = settings_find_option(source, l->name, &near);
	const struct collector_extra *extra = source->extra;
	bool is_extra = extra && option >= extra->rows && option < extra->rows + extra->n;
	const char *refused = is_extra ? BY_RESTART : find_row(l->name)->refused;

	if (!option)
		return err_set(err, -EINVAL, "unknown option '%.200s'%s", l->name,
			       near.best ? suggestion_text(&near)
					 : "; `ibscope serve --help` lists them, here without "
					   "dashes");
	if (refused)
		return err_set(err, -EINVAL, "'%s' cannot be set live: %s", l->name, refused);
	if (option->arg && !l->value)
		return err_set(err, -EINVAL, "'%s' needs a value: %s=%s", l->name, l->name,
			       option->arg);
	if (!option->arg && l->value && *l->value)
		return err_set(err, -EINVAL,
			       "'%s' takes no value: give '%s' to set it, or '%s=' to clear it",
			       l->name, l->name, l->name);
	return 0;
}

/* --- changing --- */

/* Requirements of a change. */
struct change {
	bool any, reopen, governs;
};

static void plan_names(struct change *p, const struct live_options *names,
		       const struct live_options *old, const struct live_options *next)
{
	for (size_t i = 0; i < names->n; i++) {
		const char *name = names->one[i].name;
		const struct live_row *row = find_row(name);

		if (live_options_same(old, next, name))
			continue;
		p->any = true;
		p->governs |= row->governs;
		p->reopen |= !row->live && !row->at_once && !row->governs;
	}
}

static enum control_result failed(bool usage)
{
	return usage ? CONTROL_USAGE : CONTROL_FAILED;
}

/* @fresh: parsed and prepared; taken over or closed. *@how: description of what was done */
static enum control_result reopen(struct collector *c, struct collector_settings *fresh,
				  const char **how, struct err *err)
{
	bool usage = false;

	/* so that the next change needs no pause */
	c->live_bits |= session_apply_needs(c->session, &fresh->sampling);
	if (collector_replace(c, fresh, &usage, err))
		return failed(usage);
	*how = "reopened: sampling paused for a moment";
	for_each_event (e, c)
		if (!sampler_adopted(opened(e)->sampler))
			*how = "reopened: counters start from zero";
	return CONTROL_OK;
}

/* Change the options, reopening the events only if needed. */
static enum control_result apply(struct collector *c, struct collector_settings *fresh,
				 const struct change *plan, const char **how, struct err *err)
{
	bool usage = false, paused = false;
	int ret = plan->reopen ? 1 : session_apply(c->session, &fresh->sampling, err);

	if (ret > 0)
		return reopen(c, fresh, how, err);
	if (!ret) {
		struct collector_settings old = settings_replace(c, fresh);

		settings_close(&old);
		ret = plan->governs ? budget_reopen(c, &paused, err) : 0;
		c->broken = ret;
		c->broken_err = *err;
	} else {
		usage = session_usage(c->session);
		settings_close(fresh);
	}
	*how = paused ? "changed: sampling paused while the cost of a sample was measured"
		      : "changed while sampling";
	return ret ? failed(usage) : CONTROL_OK;
}

#define LOGGED_MAX     10 /* changes in LOGGED_EVERY_S; of others the number is logged */
#define LOGGED_EVERY_S 60

void requests_log_rest(struct collector *c, bool now)
{
	if (!c->changes.n || (!now && now_s() < c->changes.since_s + LOGGED_EVERY_S))
		return;
	if (c->changes.n > LOGGED_MAX)
		log_info("%u more changes by requests", c->changes.n - LOGGED_MAX);
	c->changes.n = 0;
}

/* Whoever may change options may do it a thousand times a second. */
static void log_change(struct collector *c, const struct control_request *r, const char *how)
{
	char *text;
	size_t n;
	FILE *f;

	requests_log_rest(c, false);
	if (!c->changes.n)
		c->changes.since_s = now_s();
	if (c->changes.n++ >= LOGGED_MAX)
		return;
	f = xmemopen(&text, &n);
	for (size_t i = 0; i < r->n; i++)
		fprintf(f, " %s%s%s", r->line[i].name, r->line[i].value ? "=" : "",
			r->line[i].value ?: "");
	xmemclose(f);
	log_info("uid %u, process %d: %s%.900s: %s", r->uid, r->pid, r->verb, text, how);
	free(text);
}

/* Replace the live options by @next, which is taken over or freed. */
static enum control_result change(struct collector *c, struct live_options *next,
				  const struct control_request *r, FILE *out, struct err *err)
{
	enum control_result result = CONTROL_USAGE;
	bool verbose = log_is_verbose();
	struct live_options old = c->live;
	struct collector_settings fresh;
	struct change plan = {};
	const char *how = "";
	bool usage;

	plan_names(&plan, &old, &old, next);
	plan_names(&plan, next, &old, next);
	if (!plan.any) {
		fprintf(out, "nothing changed\n");
		live_options_free(next);
		return CONTROL_OK;
	}
	if (settings_parse(&c->source, next, &fresh, err)) {
		settings_close(&fresh);
	} else if (session_check(&fresh.sampling, &usage, err)) {
		result = failed(usage);
		settings_close(&fresh);
	} else {
		c->live = *next; /* status_live() of a reopened sampler shows it */
		result = apply(c, &fresh, &plan, &how, err);
		c->live = old;
	}
	if (result != CONTROL_OK) {
		log_set_verbose(verbose);
		if (!c->broken)
			status_live(c);
		live_options_free(next);
		return result;
	}
	live_options_free(&old);
	c->live = *next;
	c->event[0].status.live_changes++;
	status_live(c);
	status_update(c, now_s(), err);
	log_copy_to(NULL);
	log_change(c, r, how);
	fprintf(out, "%s\n", how);
	if (c->event[0].status.unresolved)
		fprintf(out, "waiting for: %s\n", pins_meta(c->event[0].pins)->unresolved);
	return CONTROL_OK;
}

/* --- names that must exist --- */

#define WAIT "wait" /* a line of `set`: cgroups that do not exist yet are accepted */

static bool is_wait(const struct control_line *l)
{
	return !strcmp(l->name, WAIT) && !l->value;
}

static bool may_wait(const struct control_request *r)
{
	for (size_t i = 0; i < r->n; i++)
		if (is_wait(&r->line[i]))
			return true;
	return false;
}

/* Values of an option in a request. Return: their number. */
static size_t values_of(const struct control_request *r, const char *name, char **out)
{
	size_t n = 0;

	for (size_t i = 0; i < r->n; i++)
		if (!strcmp(r->line[i].name, name) && r->line[i].value && *r->line[i].value)
			out[n++] = (char *)r->line[i].value;
	return n;
}

/* Check only names in the request: unresolved names from before are no reason to reject it. */
static int check_names_exist(struct collector *c, const struct control_request *r, struct err *err)
{
	char *cgroups[CONTROL_LINES], *containers[CONTROL_LINES];
	const struct cgroup_select_opts opts = {
		.cgroups = cgroups,
		.n_cgroups = values_of(r, "cgroup", cgroups),
		.containers = containers,
		.n_containers = values_of(r, "container", containers),
	};
	struct cgroup_select *select = NULL;
	struct cgroup_source src;
	int ret;

	if (!opts.n_cgroups && !opts.n_containers)
		return 0;
	cgroup_source_of_tree(&src, session_tree(c->session), session_names(c->session));
	ret = cgroup_select_open(&src, &opts, &select, err);
	cgroup_select_close(select);
	if (ret == -ENOENT) {
		struct err why = *err;

		err_set(err, ret, "%s; --wait selects it as soon as it exists", why.text);
	}
	return ret;
}

/* --- verbs --- */

typedef enum control_result verb_run(struct collector *c, const struct control_request *r,
				     FILE *out, struct err *err);

static enum control_result set(struct collector *c, const struct control_request *r, FILE *out,
			       struct err *err)
{
	struct live_options next;
	size_t options = 0;

	for (size_t i = 0; i < r->n; i++) {
		if (is_wait(&r->line[i]))
			continue;
		if (check_name(&c->source, &r->line[i], err))
			return CONTROL_USAGE;
		options++;
	}
	if (!options) {
		err_set(err, -EINVAL, "set: no option given: NAME=VALUE, or NAME= for its default");
		return CONTROL_USAGE;
	}
	if (!may_wait(r) && check_names_exist(c, r, err))
		return CONTROL_USAGE;
	live_options_copy(&next, &c->live);
	live_options_set(&next, r);
	live_options_unset(&next, WAIT);
	return change(c, &next, r, out, err);
}

int collector_check_set(const struct collector_extra *extra, char *text, size_t n, struct err *err)
{
	char *argv[] = { "serve", NULL };
	const struct settings_source source = { .argc = 1, .argv = argv, .extra = extra };
	struct collector_settings settings = {};
	struct live_options options = {};
	struct control_request r;
	int ret = control_parse(text, n, &r, err);

	for (size_t i = 0; !ret && i < r.n; i++)
		ret = is_wait(&r.line[i]) ? 0 : check_name(&source, &r.line[i], err);
	if (ret)
		return ret;
	live_options_set(&options, &r);
	live_options_unset(&options, WAIT);
	ret = settings_parse(&source, &options, &settings, err);
	settings_close(&settings);
	live_options_free(&options);
	return ret;
}

static enum control_result unset(struct collector *c, const struct control_request *r, FILE *out,
				 struct err *err)
{
	struct live_options next;

	if (!r->n) {
		err_set(err, -EINVAL, "unset: no option given");
		return CONTROL_USAGE;
	}
	live_options_copy(&next, &c->live);
	for (size_t i = 0; i < r->n; i++) {
		if (!r->line[i].value && live_options_unset(&next, r->line[i].name))
			continue;
		live_options_free(&next);
		err_set(err, -EINVAL,
			r->line[i].value ? "unset: give '%.200s' without a value"
					 : "'%.200s' is not set live; `ibscope ctl status` shows "
					   "what is",
			r->line[i].name);
		return CONTROL_USAGE;
	}
	return change(c, &next, r, out, err);
}

static enum control_result no_lines(const struct control_request *r, struct err *err)
{
	if (!r->n)
		return CONTROL_OK;
	err_set(err, -EINVAL, "%s takes no arguments", r->verb);
	return CONTROL_USAGE;
}

static enum control_result reset(struct collector *c, const struct control_request *r, FILE *out,
				 struct err *err)
{
	struct live_options none = {};

	return no_lines(r, err) ?: change(c, &none, r, out, err);
}

static enum control_result reload(struct collector *c, const struct control_request *r, FILE *out,
				  struct err *err)
{
	bool usage;

	if (no_lines(r, err))
		return CONTROL_USAGE;
	if (reload_options(c, &usage, err))
		return failed(usage);
	(void)out; /* the answer is the log */
	return CONTROL_OK;
}

/* Return: CONTROL_OK if the request has no further line, or only "json". */
static enum control_result want_json(const struct control_request *r, bool *json, struct err *err)
{
	*json = r->n == 1 && !strcmp(r->line[0].name, "json") && !r->line[0].value;
	if (!r->n || *json)
		return CONTROL_OK;
	err_set(err, -EINVAL, "%s takes no arguments but 'json'", r->verb);
	return CONTROL_USAGE;
}

static enum control_result ledger(struct collector *c, const struct control_request *r, FILE *out,
				  struct err *err)
{
	struct pmu_state pmu;
	struct ledger l;
	bool json;

	if (want_json(r, &json, err))
		return CONTROL_USAGE;
	for_each_event (e, c) {
		if (sampler_ledger(opened(e)->sampler, &l, &pmu, err))
			return CONTROL_FAILED;
		ledger_print_line(out, c->n_events > 1 ? opened(e)->spec->pmu : NULL, &l, json);
	}
	return CONTROL_OK;
}

static enum control_result status(struct collector *c, const struct control_request *r, FILE *out,
				  struct err *err)
{
	struct reading of[COLLECTOR_EVENTS];
	struct snapshot now;
	unsigned int n = 0;
	bool json;
	int ret;

	if (want_json(r, &json, err))
		return CONTROL_USAGE;
	ret = status_update(c, now_s(), err);
	for_each_event (e, c) {
		reading_begin(&of[n], pins_meta(e->pins));
		if (ret || sampler_snapshot(opened(e)->sampler, &now, err))
			return CONTROL_FAILED;
		reading_finish(&of[n], sampler_counts(opened(e)->sampler), &now.ledger,
			       snapshot_groups(&now));
		if (!n++)
			neighbour_watch_read(c, of);
		snapshot_free(&now);
	}
	if (json)
		collector_print_json(out, of, n, c->pushes ? &c->push : NULL);
	else
		collector_print(out, of, n);
	if (!json && c->pushes && *c->push.failure)
		fprintf(out, "push: %s\n", c->push.failure);
	return CONTROL_OK;
}

/* Root only, whatever the mode of the socket: physical addresses help to attack the kernel. */
static enum control_result hot_lines(struct collector *c, const struct control_request *r,
				     FILE *out, struct err *err)
{
	if (no_lines(r, err))
		return CONTROL_USAGE;
	if (r->uid) {
		err_set(err, -EPERM,
			"hot-lines: only root may ask, since the answer has physical addresses");
		return CONTROL_FAILED;
	}
	if (!keeps_lines(c)) {
		err_set(err, -ENODATA,
			"the collector keeps no hot lines: start it with --hot-lines");
		return CONTROL_FAILED;
	}
	if (!c->lines.n) /* what there is, rather than nothing */
		served_lines_take(&c->lines, c->session, &c->event[0].status.lines);
	served_lines_answer(&c->lines, c->session, out);
	return CONTROL_OK;
}

/* Root only, as for hot-lines. The client opens the file: a collector must not write where others say. */
static enum control_result dump(struct collector *c, const struct control_request *r, FILE *out,
				struct err *err)
{
	struct flight_request to = { .file = r->file, .connection = r->connection };

	(void)out;
	if (no_lines(r, err))
		return CONTROL_USAGE;
	if (r->uid) {
		err_set(err, -EPERM,
			"dump: only root may ask, since the samples have physical addresses");
		return CONTROL_FAILED;
	}
	snprintf(to.by, sizeof(to.by), "uid %u, process %d", r->uid, r->pid);
	return flight_dump(c->flight, &to, err) ? CONTROL_FAILED : CONTROL_HANDED_OVER;
}

/* The main loop reads the signal after the answer is sent. */
static enum control_result stop(struct collector *c, const struct control_request *r, FILE *out,
				struct err *err)
{
	(void)c, (void)out;
	if (no_lines(r, err))
		return CONTROL_USAGE;
	log_info("uid %u, process %d: stop", r->uid, r->pid);
	return kill(getpid(), SIGTERM) ? CONTROL_FAILED : CONTROL_OK;
}

static verb_run help;

static const struct verb {
	const char *name, *help;
	verb_run *run;
	bool logs; /* add log messages to the answer */
} verbs[] = {
	{ "status", "show the state of the collector; with a line `json` as JSON", status },
	{ "ledger", "show the outcome of all samples; with a line `json` as JSON", ledger },
	{ "set", "set options until the collector exits, one a line: NAME = VALUE, or wait", set,
	  true },
	{ "unset", "return these options to file and command line, one a line: NAME", unset, true },
	{ "reset", "return all options to file and command line", reset, true },
	{ "reload", "read file and command line again, as SIGHUP does", reload, true },
	{ "hot-lines", "the cache lines of --hot-lines, for `ibscope c2c --control`", hot_lines },
	{ "dump",
	  "write the samples of --flight to the file that was passed, for `ibscope ctl dump`",
	  dump },
	{ "stop", "exit as after SIGTERM", stop },
	{ "help", "show this list", help },
};
#define VERBS (sizeof(verbs) / sizeof(verbs[0]))

static enum control_result help(struct collector *c, const struct control_request *r, FILE *out,
				struct err *err)
{
	(void)c;
	if (no_lines(r, err))
		return CONTROL_USAGE;
	for (size_t i = 0; i < VERBS; i++)
		fprintf(out, "%-9s %s\n", verbs[i].name, verbs[i].help);
	return CONTROL_OK;
}

static enum control_result handle(void *arg, const struct control_request *r, FILE *out,
				  struct err *err)
{
	struct collector *c = arg;
	enum control_result result;
	char *logged = NULL;
	size_t i = 0, n = 0;
	FILE *f;

	while (i < VERBS && strcmp(r->verb, verbs[i].name))
		i++;
	if (i == VERBS) {
		err_set(err, -EINVAL, "unknown verb '%.200s'; `help` lists them", r->verb);
		return CONTROL_USAGE;
	}
	f = verbs[i].logs ? xmemopen(&logged, &n) : NULL;
	log_copy_to(f);
	result = verbs[i].run(c, r, out, err);
	log_copy_to(NULL);
	if (f) {
		xmemclose(f);
		fwrite(logged, 1, n, out);
		free(logged);
	}
	return result;
}

int requests_open(struct collector *c, struct err *err)
{
	const struct control_opts opts = {
		.path = c->set.control,
		.mode = c->set.control_mode,
		.takes_files = true,
		.handle = handle,
		.arg = c,
	};
	int ret;

	if (!strcmp(c->set.control, "none"))
		return 0;
	ret = control_open(&opts, &c->control, err);
	if (ret && c->set.control_given) {
		err_prefix(err, "--control");
		return ret;
	}
	if (ret)
		log_warn("no control socket, so `ibscope ctl` cannot change options: %s; choose "
			 "another path with --control, or none",
			 err->text);
	else
		log_info("control socket: %s", c->set.control);
	return 0;
}
