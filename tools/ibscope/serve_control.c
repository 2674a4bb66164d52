// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* What a collector does on request, and the options of the socket where it is asked. */
#include "serve.h"

#include "clock.h"
#include "collector_text.h"
#include "hist.h"
#include "num.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* --- options --- */

static int set_control(void *ctx, const char *arg, struct err *err)
{
	struct serve_options *o = ctx;

	if ((*arg != '/' && strcmp(arg, "none")) || strlen(arg) > CONTROL_PATH_MAX)
		return err_set(err, -EINVAL,
			       "--control: '%.200s' is neither 'none' nor an absolute path of at "
			       "most %d characters",
			       arg, CONTROL_PATH_MAX);
	strcpy(o->control, arg);
	o->control_given = true;
	return 0;
}

static int set_control_mode(void *ctx, const char *arg, struct err *err)
{
	struct serve_options *o = ctx;

	return num_parse_mode("--control-mode", arg, &o->control_mode, err);
}

const struct option_row serve_control_rows[] = {
	{ "control", 0, "PATH", "the socket of `ibscope ctl`; default " CONTROL_PATH "; or none",
	  set_control },
	{ "control-mode", 0, "MODE",
	  "of that socket: who may write to it may change options;\n"
	  "                            default 0600",
	  set_control_mode },
};
const size_t serve_control_n_rows = sizeof(serve_control_rows) / sizeof(serve_control_rows[0]);

/* --- which options can be set, and how --- */

#define BY_RESTART "it is for the collector's whole life: restart it"

/* Those that are not here take effect by opening the events anew. */
static const struct live_row {
	const char *name;
	unsigned int change; /* enum sampling_change: while sampling goes on */
	bool at_once;	     /* nothing of sampling is concerned */
	bool governs;	     /* the governor begins anew */
	const char *refused; /* why it cannot be set */
} live_rows[] = {
	{ "min-lat", .change = SAMPLING_LATENCY },
	{ "max-lat", .change = SAMPLING_LATENCY },
	{ "pid", .change = SAMPLING_PROCESSES },
	{ "cgroup", .change = SAMPLING_CGROUPS },
	{ "container", .change = SAMPLING_CGROUPS },
	{ "period", .change = SAMPLING_PERIOD, .governs = true },
	{ "max-overhead", .governs = true },
	{ "nmi-cost", .governs = true },
	{ "max-bpf-time", .governs = true },
	{ "max-rss", .governs = true },
	{ "grace", .at_once = true },
	{ "unpin", .at_once = true },
	{ "verbose", .at_once = true },
	{ "config", .refused = "edit the file, and let it be read with `ibscope ctl reload`" },
	{ "config-check", .refused = "it is for starting only" },
	{ "explain", .refused = "it is for starting only" },
	{ "source", .refused = BY_RESTART },
	{ "seed", .refused = BY_RESTART },
	{ "pin-dir", .refused = BY_RESTART },
	{ "pin-mode", .refused = BY_RESTART },
	{ "control", .refused = BY_RESTART },
	{ "control-mode", .refused = BY_RESTART },
	{ "web.listen-address", .refused = BY_RESTART },
	{ "web.config.file", .refused = BY_RESTART },
};

static const struct live_row *find_row(const char *name)
{
	static const struct live_row reopens;

	for (size_t i = 0; i < sizeof(live_rows) / sizeof(live_rows[0]); i++)
		if (!strcmp(live_rows[i].name, name))
			return &live_rows[i];
	return &reopens;
}

static int check_name(struct serve *s, const struct control_line *l, struct err *err)
{
	const struct option_row *option = serve_find_option(s, l->name);
	const struct live_row *row = find_row(l->name);

	if (!option)
		return err_set(err, -EINVAL,
			       "'%.200s' is no option of serve; `ibscope serve --help` lists them, "
			       "the dashes are left out",
			       l->name);
	if (row->refused)
		return err_set(err, -EINVAL, "'%s' cannot be set live: %s", l->name, row->refused);
	if (option->arg && !l->value)
		return err_set(err, -EINVAL, "'%s' needs a value: %s=%s", l->name, l->name,
			       option->arg);
	if (!option->arg && l->value && *l->value)
		return err_set(err, -EINVAL,
			       "'%s' takes no value: give it alone, or '%s=' for not having it",
			       l->name, l->name);
	return 0;
}

/* --- changing --- */

/* What it takes to go from one to the other. */
struct plan {
	bool any, reopen, governs;
	unsigned int change;
};

static void plan_names(struct plan *p, const struct live_options *names,
		       const struct live_options *old, const struct live_options *next)
{
	for (size_t i = 0; i < names->n; i++) {
		const char *name = names->one[i].name;
		const struct live_row *row = find_row(name);

		if (live_options_same(old, next, name))
			continue;
		p->any = true;
		p->change |= row->change;
		p->governs |= row->governs;
		p->reopen |= !row->change && !row->at_once && !row->governs;
	}
}

static void take_at_once(struct serve_options *o, const struct serve_options *fresh)
{
	o->grace_s = fresh->grace_s;
	o->unpin = fresh->unpin;
	o->max_overhead = fresh->max_overhead;
	o->overhead_given = fresh->overhead_given;
	o->nmi_ns = fresh->nmi_ns;
	o->max_bpf_ns = fresh->max_bpf_ns;
	o->max_rss_bytes = fresh->max_rss_bytes;
}

static enum control_result failed(bool usage)
{
	return usage ? CONTROL_USAGE : CONTROL_FAILED;
}

/* @fresh: parsed and prepared; is taken over or closed. @how is set if it is done. */
static enum control_result reopen(struct serve *s, struct serve_options *fresh,
				  const struct plan *plan, const char **how, struct err *err)
{
	bool usage = false;

	/* so that what is changed once can be changed again without a gap */
	s->live_bits |= sampling_change_needs(plan->change);
	if (serve_replace(s, fresh, &usage, err))
		return failed(usage);
	*how = sampler_adopted(s->opts.sampling.sampler) ? "reopened: sampling paused for a moment"
							 : "reopened: the counters begin anew";
	return CONTROL_OK;
}

/* As reopen(), but without it where that can be. */
static enum control_result apply(struct serve *s, struct serve_options *fresh,
				 const struct plan *plan, const char **how, struct err *err)
{
	struct sampling *now = &s->opts.sampling;
	bool usage, paused = false;
	int ret = 1;

	if (!plan->reopen)
		ret = plan->change ? sampling_change(now, &fresh->sampling, plan->change, err) : 0;
	if (ret > 0)
		return reopen(s, fresh, plan, how, err);
	if (!ret) {
		take_at_once(&s->opts, fresh);
		ret = plan->governs ? serve_governor_renew(s, &paused, err) : 0;
		s->broken = ret;
		s->broken_err = *err;
	}
	usage = fresh->sampling.usage;
	sampling_close(&fresh->sampling);
	*how = paused ? "changed: sampling paused while the cost of a sample was measured"
		      : "changed while sampling";
	return ret ? failed(usage) : CONTROL_OK;
}

static void log_change(const struct control_request *r, const char *how)
{
	char *text = NULL;
	size_t n = 0;
	FILE *f = open_memstream(&text, &n);

	if (!f)
		return;
	for (size_t i = 0; i < r->n; i++)
		fprintf(f, " %s%s%s", r->line[i].name, r->line[i].value ? "=" : "",
			r->line[i].value ?: "");
	fclose(f);
	log_info("uid %u, process %d: %s%.900s: %s", r->uid, r->pid, r->verb, text, how);
	free(text);
}

/* Let @next be what is set live; it is taken over or freed. */
static enum control_result change(struct serve *s, struct live_options *next,
				  const struct control_request *r, FILE *out, struct err *err)
{
	enum control_result result = CONTROL_USAGE;
	bool verbose = log_is_verbose();
	struct live_options old = s->live;
	struct serve_options fresh;
	struct plan plan = {};
	const char *how;

	plan_names(&plan, &old, &old, next);
	plan_names(&plan, next, &old, next);
	if (!plan.any) {
		fprintf(out, "nothing changed\n");
		live_options_free(next);
		return CONTROL_OK;
	}
	if (serve_parse(s, next, &fresh, err)) {
		sampling_close(&fresh.sampling);
	} else if (sampling_prepare(&fresh.sampling, err)) {
		result = failed(fresh.sampling.usage);
		sampling_close(&fresh.sampling);
	} else {
		s->live = *next; /* what sampling begins with, if it has to */
		result = apply(s, &fresh, &plan, &how, err);
		s->live = old;
	}
	if (result != CONTROL_OK) {
		log_set_verbose(verbose);
		if (!s->broken)
			serve_status_live(s);
		live_options_free(next);
		return result;
	}
	live_options_free(&old);
	s->live = *next;
	s->status.live_changes++;
	serve_status_live(s);
	serve_status_update(s, now_s(), err);
	log_copy_to(NULL);
	log_change(r, how);
	fprintf(out, "%s\n", how);
	return CONTROL_OK;
}

/* --- verbs --- */

typedef enum control_result verb_run(struct serve *s, const struct control_request *r, FILE *out,
				     struct err *err);

static enum control_result set(struct serve *s, const struct control_request *r, FILE *out,
			       struct err *err)
{
	struct live_options next;

	if (!r->n) {
		err_set(err, -EINVAL, "set: which options? NAME=VALUE, or NAME= for the default");
		return CONTROL_USAGE;
	}
	for (size_t i = 0; i < r->n; i++)
		if (check_name(s, &r->line[i], err))
			return CONTROL_USAGE;
	if (live_options_copy(&next, &s->live) || live_options_set(&next, r)) {
		err_set(err, -ENOMEM, "out of memory");
		return CONTROL_FAILED;
	}
	return change(s, &next, r, out, err);
}

static enum control_result unset(struct serve *s, const struct control_request *r, FILE *out,
				 struct err *err)
{
	struct live_options next;

	if (!r->n) {
		err_set(err, -EINVAL, "unset: which options?");
		return CONTROL_USAGE;
	}
	if (live_options_copy(&next, &s->live)) {
		err_set(err, -ENOMEM, "out of memory");
		return CONTROL_FAILED;
	}
	for (size_t i = 0; i < r->n; i++) {
		if (!r->line[i].value && live_options_unset(&next, r->line[i].name))
			continue;
		live_options_free(&next);
		err_set(err, -EINVAL,
			r->line[i].value ? "unset: '%.200s' alone, without a value"
					 : "'%.200s' is not set live; `ibscope ctl status` shows "
					   "what is",
			r->line[i].name);
		return CONTROL_USAGE;
	}
	return change(s, &next, r, out, err);
}

static enum control_result no_lines(const struct control_request *r, struct err *err)
{
	if (!r->n)
		return CONTROL_OK;
	err_set(err, -EINVAL, "%s: nothing can be given with it", r->verb);
	return CONTROL_USAGE;
}

static enum control_result reset(struct serve *s, const struct control_request *r, FILE *out,
				 struct err *err)
{
	struct live_options none = {};

	return no_lines(r, err) ?: change(s, &none, r, out, err);
}

static enum control_result reload(struct serve *s, const struct control_request *r, FILE *out,
				  struct err *err)
{
	bool usage;

	if (no_lines(r, err))
		return CONTROL_USAGE;
	if (serve_reload(s, &usage, err))
		return failed(usage);
	(void)out; /* what is logged is the answer */
	return CONTROL_OK;
}

/* Return: a line "json" is there, or none. */
static enum control_result want_json(const struct control_request *r, bool *json, struct err *err)
{
	*json = r->n == 1 && !strcmp(r->line[0].name, "json") && !r->line[0].value;
	if (!r->n || *json)
		return CONTROL_OK;
	err_set(err, -EINVAL, "%s: only 'json' can be given with it", r->verb);
	return CONTROL_USAGE;
}

static enum control_result ledger(struct serve *s, const struct control_request *r, FILE *out,
				  struct err *err)
{
	struct pmu_state pmu;
	struct ledger l;
	bool json;

	if (want_json(r, &json, err))
		return CONTROL_USAGE;
	if (sampler_ledger(s->opts.sampling.sampler, &l, &pmu, err))
		return CONTROL_FAILED;
	if (json)
		return ledger_print_json(out, &l, err) ? CONTROL_FAILED : CONTROL_OK;
	ledger_print(out, &l);
	fputc('\n', out);
	return CONTROL_OK;
}

static enum control_result status(struct serve *s, const struct control_request *r, FILE *out,
				  struct err *err)
{
	struct metrics_collector c = { .meta = pins_meta(s->pins) };
	struct snapshot now;
	bool json;

	if (want_json(r, &json, err))
		return CONTROL_USAGE;
	if (serve_status_update(s, now_s(), err) ||
	    sampler_snapshot(s->opts.sampling.sampler, &now, err))
		return CONTROL_FAILED;
	c.status = s->status;
	c.ledger = now.ledger;
	c.groups = now.n_groups;
	if (json)
		collector_print_json(out, &c);
	else
		collector_print(out, &c);
	snapshot_free(&now);
	return CONTROL_OK;
}

static verb_run help;

static const struct verb {
	const char *name, *help;
	verb_run *run;
	bool tells; /* what is logged meanwhile ends the answer */
} verbs[] = {
	{ "status", "how the collector is; with a line `json` as JSON", status },
	{ "ledger", "what became of the samples; with a line `json` as JSON", ledger },
	{ "set", "options for as long as the collector runs; a line each: NAME = VALUE", set,
	  true },
	{ "unset", "no more those of these names; a line each: NAME", unset, true },
	{ "reset", "none at all", reset, true },
	{ "reload", "read file and command line again, as on SIGHUP", reload, true },
	{ "help", "this list", help },
};
#define VERBS (sizeof(verbs) / sizeof(verbs[0]))

static enum control_result help(struct serve *s, const struct control_request *r, FILE *out,
				struct err *err)
{
	(void)s;
	if (no_lines(r, err))
		return CONTROL_USAGE;
	for (size_t i = 0; i < VERBS; i++)
		fprintf(out, "%-8s %s\n", verbs[i].name, verbs[i].help);
	return CONTROL_OK;
}

static enum control_result handle(void *arg, const struct control_request *r, FILE *out,
				  struct err *err)
{
	struct serve *s = arg;
	enum control_result result;
	char *said = NULL;
	size_t i = 0, n = 0;
	FILE *f;

	while (i < VERBS && strcmp(r->verb, verbs[i].name))
		i++;
	if (i == VERBS) {
		err_set(err, -EINVAL, "'%.200s' is no verb; `help` lists them", r->verb);
		return CONTROL_USAGE;
	}
	f = verbs[i].tells ? open_memstream(&said, &n) : NULL;
	log_copy_to(f);
	result = verbs[i].run(s, r, out, err);
	log_copy_to(NULL);
	if (f) {
		fclose(f);
		fwrite(said, 1, n, out);
		free(said);
	}
	return result;
}

int serve_control_start(struct serve *s, struct err *err)
{
	const struct control_opts opts = {
		.path = s->opts.control,
		.mode = s->opts.control_mode,
		.handle = handle,
		.arg = s,
	};
	int ret;

	if (!strcmp(s->opts.control, "none"))
		return 0;
	ret = control_open(&opts, &s->control, err);
	if (ret && s->opts.control_given) {
		err_prefix(err, "--control");
		return ret;
	}
	if (ret)
		log_warn("`ibscope ctl` cannot change anything: %s; --control says another place, "
			 "or none",
			 err->text);
	else
		log_info("taking requests at %s", s->opts.control);
	return 0;
}
