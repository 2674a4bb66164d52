// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "plan.h"

#include "base/choice.h"
#include "base/json_writer.h"
#include "base/screen.h"
#include "strata/strata.h"

#include <limits.h>

/* Hardware compares latencies in steps, up to a maximum. */
#define LDLAT_STEP   128
#define LDLAT_MAX    2048
#define FETCHLAT_MAX 1920

struct query {
	const struct select_options *o;
	const struct plan_context *c;
	unsigned int names;   /* number of selected cgroups and containers */
	bool pattern;	      /* a name can match several */
	bool own_min;	      /* a cgroup has its own minimum latency */
	unsigned int min_lat; /* minimum latency of all selected samples */
	unsigned int stages;  /* 1 << enum plan_stage: allowed */
	const char *no_weights;
};

/* --- the selection --- */

static unsigned int smaller(unsigned int a, unsigned int b)
{
	return a < b ? a : b;
}

/* One use of --cgroup or --container: "A,B:MIN", or "!A,B". */
static void count_names(struct query *q, const char *list, bool container, bool *all_have_min)
{
	if (*list == '!')
		return;
	for (size_t len; *list; list += len + (list[len] == ',')) {
		const char *colon;
		unsigned int min;
		int end = 0;
		bool own;

		len = strcspn(list, ",");
		if (!len)
			continue;
		q->names++;
		q->pattern |= strcspn(list, "*?[") < len;
		colon = memrchr(list, ':', len);
		own = colon && sscanf(colon + 1, "%u%n", &min, &end) == 1 &&
		      colon + 1 + end == list + len;
		q->own_min |= own;
		if (own)
			q->min_lat = smaller(q->min_lat, min);
		*all_have_min &= own && container; /* a path may end in ":NUMBER" */
	}
}

static bool counts_tags(const struct plan_context *c)
{
	return abilities_has(c->abilities, event_of_fetch(c->event) ? ABILITY_FETCH_COUNTERS
								    : ABILITY_TAG_COUNTERS);
}

static void query_init(struct query *q, const struct select_options *o,
		       const struct plan_context *c)
{
	bool all_have_min = true;

	*q = (struct query){ o, c, .min_lat = UINT_MAX, .stages = c->stages };
	q->no_weights = counts_tags(c) ? c->no_weights : "no core counters of tagged ops here";
	if (c->stages & PLAN_AUTO)
		q->stages = (c->strata ? 0 : 1U << PLAN_SCHEDULER) |
			    (q->no_weights ? 0 : 1U << PLAN_HARDWARE);
	for (size_t i = 0; i < o->n_cgroups; i++)
		count_names(q, o->cgroups[i], false, &all_have_min);
	for (size_t i = 0; i < o->n_containers; i++)
		count_names(q, o->containers[i], true, &all_have_min);
	q->names += c->command;
	if (!all_have_min || !q->names || c->command)
		q->min_lat = smaller(q->min_lat, o->sel.min_lat);
}

static bool is_given(const struct query *q, enum plan_predicate p)
{
	const struct select_options *o = q->o;
	const struct selection *sel = &o->sel;

	switch (p) {
	case PLAN_BY_CPU:
		return q->c->cpus;
	case PLAN_BY_CGROUP:
		return o->n_cgroups || o->n_containers || q->c->command;
	case PLAN_BY_PID:
		return sel->processes.n || sel->threads.n;
	case PLAN_BY_COMM:
		return sel->n_comms;
	case PLAN_BY_OP:
		return sel->op_mask;
	case PLAN_BY_SRC:
		return sel->src_mask;
	case PLAN_BY_MIN_LAT:
		return sel->min_lat || q->own_min;
	case PLAN_BY_MAX_LAT:
		return sel->max_lat;
	case PLAN_BY_MODE:
		return o->filter_options.user != o->filter_options.kernel;
	default:
		return o->filter[event_of_fetch(q->c->event)].n_parts >
		       (o->filter_options.user != o->filter_options.kernel);
	}
}

/* --- stages: NULL, or the reason why the stage would lose selected samples --- */

static const char *any(const struct query *q)
{
	(void)q;
	return NULL;
}

static const char *one_cgroup(const struct query *q)
{
	if (q->pattern)
		return "a pattern can name several cgroups";
	if (!q->names)
		return "cgroups outside the excluded ones are selected";
	return q->names > 1 ? "an event counts while one cgroup runs, not several" : NULL;
}

static const char *only_l3_misses(const struct query *q)
{
	if (!q->o->sel.src_mask || q->o->sel.src_mask & ~PLAN_L3_MISSES)
		return "l3missonly may drop selected sources";
	return NULL;
}

static const char *loads_above(const struct query *q)
{
	if (q->c->metric != IBS_METRIC_DC_MISS_LAT)
		return "ldlat compares dc_miss_lat only";
	if (q->min_lat <= LDLAT_STEP)
		return "ldlat needs a minimum latency of 129 cycles or more";
	if (!abilities_has(q->c->abilities, ABILITY_LDLAT_ALONE) && only_l3_misses(q))
		return "the kernel adds l3missonly to ldlat (erratum 1606), which drops L2 and L3 "
		       "hits";
	return NULL;
}

static const char *fetches_from(const struct query *q)
{
	if (q->c->metric != IBS_METRIC_FETCH_LAT)
		return "fetchlat compares fetch_lat only";
	return q->min_lat < LDLAT_STEP ? "fetchlat needs a minimum latency of 128 cycles or more"
				       : NULL;
}

static const char *only_kernel(const struct query *q)
{
	return q->o->filter_options.kernel || event_of_fetch(q->c->event)
		       ? NULL
		       : "swfilt also drops user-space ops with a data address or branch "
			 "target in the kernel";
}

static void use_cgroup(const struct query *q, struct plan *p)
{
	(void)q;
	p->cgroup = true;
}

static void use_l3missonly(const struct query *q, struct plan *p)
{
	(void)q;
	p->l3missonly = true;
}

static void use_ldlat(const struct query *q, struct plan *p)
{
	p->ldlat = smaller((q->min_lat - 1) / LDLAT_STEP * LDLAT_STEP, LDLAT_MAX);
}

static void use_fetchlat(const struct query *q, struct plan *p)
{
	p->fetchlat = smaller(q->min_lat / LDLAT_STEP * LDLAT_STEP, FETCHLAT_MAX);
}

static void use_mode(const struct query *q, struct plan *p)
{
	p->user = q->o->filter_options.user;
	p->kernel = !p->user;
}

static void use_swfilt(const struct query *q, struct plan *p)
{
	p->swfilt = true;
	use_mode(q, p);
}

/* What each stage can do for a predicate, and when; the earliest stage of a predicate first. */
static const struct rule {
	enum plan_predicate predicate;
	enum plan_stage stage;
	const char *name;
	enum ability ability;
	const char *(*loses)(const struct query *q);
	void (*use)(const struct query *q, struct plan *p);
	const char *drops; /* NULL: everything that the predicate drops */
	const char *pmu;   /* PMU that supports it; NULL: both */
} rules[] = {
	{ PLAN_BY_CGROUP, PLAN_SCHEDULER, "a cgroup event", ABILITY_CGROUP_EVENTS, one_cgroup,
	  use_cgroup, NULL },
	{ PLAN_BY_SRC, PLAN_HARDWARE, "l3missonly", ABILITY_L3MISSONLY, only_l3_misses,
	  use_l3missonly, "ops that do not miss the L3" },
	{ PLAN_BY_MIN_LAT, PLAN_HARDWARE, "ldlat", ABILITY_LDLAT, loads_above, use_ldlat,
	  "short latencies, ops without one", "ibs_op" },
	{ PLAN_BY_MIN_LAT, PLAN_HARDWARE, "fetchlat", ABILITY_FETCHLAT, fetches_from, use_fetchlat,
	  "short latencies", "ibs_fetch" },
	{ PLAN_BY_MODE, PLAN_HARDWARE, "the address filter", ABILITY_ADDRESS_BIT, any, use_mode,
	  NULL },
	{ PLAN_BY_MODE, PLAN_DRIVER, "swfilt", ABILITY_SWFILT, only_kernel, use_swfilt, NULL },
};

static const struct stage {
	const char *option, *name, *cost;
} stages[] = {
#define STAGE_ROW(NAME, option, name, cost) { option, name, cost },
	PLAN_STAGE_TABLE(STAGE_ROW)
#undef STAGE_ROW
};

static const char *const predicates[][2] = {
#define PREDICATE_ROW(NAME, options, drops) { options, drops },
	PLAN_PREDICATE_TABLE(PREDICATE_ROW)
#undef PREDICATE_ROW
};

/* Write the reason why a rule is not usable to @buf. Return: false if it is usable. */
static bool refuse(const struct rule *r, const struct query *q, char *buf, size_t size)
{
	const struct plan_context *c = q->c;
	const char *loses = r->loses(q);
	char requires[64];

	if (c->simulated) {
		snprintf(buf, size, "%s: a simulation has only the program stage", r->name);
	} else if (!abilities_has(c->abilities, r->ability)) {
		abilities_requires(c->abilities, r->ability, requires, sizeof(requires));
		snprintf(buf, size, "%s requires %s", r->name, requires);
	} else if (loses) {
		snprintf(buf, size, "%s", loses);
	} else if (event_filter(c->event) && r->stage != PLAN_SCHEDULER) {
		snprintf(buf, size, "the event given with -e has filters already");
	} else if (r->stage == PLAN_HARDWARE && q->no_weights && c->stages & PLAN_AUTO) {
		snprintf(buf, size,
			 "%s would leave estimated ops unknown: %s; use --plan hw for it", r->name,
			 q->no_weights);
	} else if (!(q->stages & 1U << r->stage)) {
		snprintf(buf, size, "%s needs --plan %s%s", r->name, stages[r->stage].option,
			 r->stage != PLAN_HARDWARE || counts_tags(c)
				 ? "; the number of unseen samples is then unknown"
				 : "; estimated ops and unseen samples are then unknown");
	} else {
		return false;
	}
	return true;
}

static void place(struct plan *p, const struct query *q, enum plan_predicate predicate)
{
	struct plan_line *l = &p->lines[p->n++];

	*l = (struct plan_line){ predicate, PLAN_PROGRAM, predicates[predicate][1] };
	if (predicate == PLAN_BY_CPU) { /* with or without a plan */
		l->stage = PLAN_SCHEDULER;
		return;
	}
	for (size_t i = 0; i < ARRAY_SIZE(rules); i++) {
		const struct rule *r = &rules[i];
		const size_t len = strlen(l->why);

		if (r->predicate != predicate || (r->pmu && strcmp(r->pmu, q->c->event->pmu)))
			continue;
		if (refuse(r, q, l->why + len + 2 * !!len, sizeof(l->why) - len - 2 * !!len)) {
			if (len)
				memcpy(l->why + len, "; ", 2);
			continue;
		}
		l->stage = r->stage;
		l->rest = r->drops;
		l->drops = r->drops ?: l->drops;
		r->use(q, p);
		return;
	}
	if (!*l->why)
		snprintf(l->why, sizeof(l->why), "no earlier stage can test this");
}

void plan_event(const struct plan *p, const struct plan_context *c, struct event_spec *out)
{
	*out = *c->event;
	if (p->l3missonly)
		event_set_term(out, "l3missonly", 1);
	if (p->ldlat)
		event_set_term(out, "ldlat", p->ldlat);
	if (p->fetchlat)
		event_set_term(out, "fetchlat", p->fetchlat);
	if (p->swfilt)
		event_set_term(out, "swfilt", 1);
	out->user |= p->user;
	out->kernel |= p->kernel;
}

/* Write the reason why there are no strata to @buf, or "". */
static void refuse_strata(const struct query *q, const struct event_spec *event, char *buf,
			  size_t size)
{
	const struct plan_context *c = q->c;
	const struct abilities *a = c->abilities;
	const __u32 sources = q->o->sel.src_mask;
	const char *no_weights = counts_tags(c) ? c->no_slices : q->no_weights;
	char requires[64];

	if (!abilities_has(a, ABILITY_L3MISSONLY))
		abilities_requires(a, ABILITY_L3MISSONLY, requires, sizeof(requires));
	*buf = 0;
	if (c->no_strata)
		snprintf(buf, size, "%s", c->no_strata);
	else if (event_of_fetch(c->event))
		snprintf(buf, size, "only ibs_op can be sampled in strata");
	else if (c->simulated && !c->counters)
		snprintf(buf, size, "a simulation has no hardware filters");
	else if (sources && !(sources & PLAN_L3_MISSES))
		snprintf(buf, size, "no selected source is beyond the L3");
	else if (c->simulated)
		return;
	else if (!abilities_has(a, ABILITY_L3MISSONLY))
		snprintf(buf, size, "l3missonly requires %s", requires);
	else if (no_weights)
		snprintf(buf, size, "estimates need counters of tagged ops: %s", no_weights);
	else if (!(c->stages & PLAN_AUTO))
		snprintf(buf, size, "--plan chooses the hardware filters");
	else if (event_filter(c->event))
		snprintf(buf, size, "the event given with -e has filters already");
	else if (event_filter(event))
		snprintf(buf, size, "the hardware filters all the time: nothing else is selected");
}

void plan_miss_event(const struct plan *p, const struct plan_context *c, struct event_spec *out)
{
	plan_event(p, c, out);
	event_set_term(out, "l3missonly", 1);
}

static void make(const struct select_options *o, const struct plan_context *c, struct plan *out)
{
	struct event_spec event;
	struct query q;

	query_init(&q, o, c);
	*out = (struct plan){};
	for (int i = 0; i < PLAN_PREDICATE_N; i++)
		if (is_given(&q, i))
			place(out, &q, i);
	plan_event(out, c, &event);
	if (c->strata)
		refuse_strata(&q, &event, out->no_strata, sizeof(out->no_strata));
	out->strata = c->strata && !*out->no_strata;
	out->tags = (c->core_counters || out->strata ||
		     event_filter(&event) == EVENT_FILTER_HARDWARE) &&
		    counts_tags(c);
	out->estimates = event_filter(&event) != EVENT_FILTER_HARDWARE || out->tags;
	out->chosen = c->stages & PLAN_AUTO && event_filter(&event) == EVENT_FILTER_HARDWARE &&
		      event_filter(c->event) != EVENT_FILTER_HARDWARE;
	/* the clock of a simulation does not count its interrupts */
	out->unseen = event_filter(&event) == EVENT_FILTER_NONE && !out->cgroup && !c->simulated &&
		      !out->strata;
}

void plan_make(const struct select_options *o, const struct plan_context *c, struct plan *out)
{
	struct plan_context without = *c;
	struct plan plan;

	make(o, c, out);
	if (!c->strata || out->strata)
		return;
	/* with one event, other stages are possible */
	without.strata = false;
	make(o, &without, &plan);
	memcpy(plan.no_strata, out->no_strata, sizeof(plan.no_strata));
	*out = plan;
}

/* --- text --- */

#define INDENT 23 /* where texts begin */

static void print_text(FILE *f, const char *title, const char *text, unsigned int width)
{
	fprintf(f, "%*s", INDENT, title);
	screen_wrap(f, text, INDENT, width);
}

static void print_line(FILE *f, const struct plan_line *l, unsigned int width)
{
	char title[INDENT + 1], text[400];

	snprintf(title, sizeof(title), "%-*s", INDENT, predicates[l->predicate][0]);
	snprintf(text, sizeof(text), "%s%s: drops %s", stages[l->stage].name,
		 l->rest ? ", program" : "", l->drops);
	print_text(f, title, text, width);
	snprintf(text, sizeof(text), "a dropped sample costs %s", stages[l->stage].cost);
	print_text(f, "", text, width);
	if (!*l->why)
		return;
	snprintf(text, sizeof(text), "not earlier: %s", l->why);
	print_text(f, "", text, width);
}

static void print_strata(FILE *f, const struct plan *p, const struct plan_context *c,
			 unsigned int width)
{
	char event[EVENT_TEXT_MAX], title[INDENT + 1], text[EVENT_TEXT_MAX + 100];
	struct event_spec spec;

	if (!c->strata)
		return;
	plan_miss_event(p, c, &spec);
	event_print(&spec, event, sizeof(event));
	if (p->strata)
		snprintf(text, sizeof(text),
			 "this event samples all ops for %.0f%% of the time, and alternates with "
			 "%s at a shorter period",
			 100 * STRATA_FULL_SHARE, event);
	else
		snprintf(text, sizeof(text), "no: %s", p->no_strata);
	snprintf(title, sizeof(title), "%-*s", INDENT, "--strata");
	print_text(f, title, text, width);
}

void plan_print(FILE *f, const struct plan *p, const struct plan_context *c, unsigned int width)
{
	char event[EVENT_TEXT_MAX];
	struct event_spec spec;

	fprintf(f, "%s\n\n", c->abilities->name);
	for (size_t i = 0; i < p->n; i++)
		print_line(f, &p->lines[i], width);
	plan_event(p, c, &spec);
	event_print(&spec, event, sizeof(event));
	fprintf(f, "%sevent: %s\n", p->n ? "\n" : "", event);
	print_strata(f, p, c, width);
	if (p->cgroup)
		fprintf(f,
			"while tasks of the cgroup run; a CPU that switches to or from them pays "
			"1,500 instructions\n");
	fprintf(f, "estimated ops: %s; unseen samples: %s\n", p->estimates ? "known" : "unknown",
		p->unseen ? "known" : "unknown");
}

void plan_print_json(FILE *f, const struct plan *p, const struct plan_context *c)
{
	struct json_writer w = { .f = f };
	char event[EVENT_TEXT_MAX];
	struct event_spec spec;

	plan_event(p, c, &spec);
	event_print(&spec, event, sizeof(event));
	json_begin_object(&w, NULL);
	json_put_text(&w, "machine", c->abilities->name);
	json_begin_array(&w, "predicates");
	for (size_t i = 0; i < p->n; i++) {
		const struct plan_line *l = &p->lines[i];

		json_begin_object(&w, NULL);
		json_put_text(&w, "predicate", predicates[l->predicate][0]);
		json_put_text(&w, "stage", stages[l->stage].name);
		json_put_bool(&w, "program_too", l->rest);
		json_put_text(&w, "drops", l->drops);
		json_put_text(&w, "cost", stages[l->stage].cost);
		json_put_text_if_any(&w, "why_not_earlier", l->why);
		json_end(&w);
	}
	json_end(&w);
	json_put_text(&w, "event", event);
	json_put_bool(&w, "strata", p->strata);
	json_put_text_if_any(&w, "why_no_strata", p->no_strata);
	json_put_bool(&w, "one_cgroup", p->cgroup);
	json_put_bool(&w, "estimated_ops_known", p->estimates);
	json_put_bool(&w, "unseen_known", p->unseen);
	json_finish(&w);
}

static const char *option_at(unsigned int i)
{
	return i < PLAN_STAGE_N ? stages[i].option : "auto";
}

int plan_parse(const char *text, unsigned int *out, struct err *err)
{
	const unsigned int alone = 1U << PLAN_PROGRAM | PLAN_AUTO;
	const struct choices c = { "--plan", "stage", option_at, PLAN_STAGE_N + 1 };
	unsigned int list[PLAN_STAGE_N + 1], n;
	int ret = choice_list_parse(&c, strcmp(text, "off") ? text : "program", list, &n, err);

	if (ret)
		return ret;
	*out = 0;
	for (unsigned int i = 0; i < n; i++)
		*out |= 1U << list[i];
	if (*out & alone && n > 1)
		return err_set(err, -EINVAL, "--plan: '%s' excludes other stages",
			       option_at(*out & PLAN_AUTO ? PLAN_STAGE_N : PLAN_PROGRAM));
	*out &= ~(1U << PLAN_PROGRAM);
	return 0;
}
