// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* ibscope why FILE: where the data of a container is, as c2c and numa see it. */
#include "cmd_why.h"
#include "base/json_writer.h"
#include "base/screen.h"
#include "base/utf8.h"
#include "report/report.h"
#include "where/lines_print.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define STANDS_OUT   0.05      /* of the container's miss cycles: less explains nothing */
#define ACCESSES_MAX (1 << 20) /* of lines: 100 MiB; the coldest ones give way */

/* What memory of other nodes costs: shares of the container's miss cycles. */
struct remote {
	double price, worst; /* of all nodes; of the two that cost most */
	double accesses; /* share of all accesses that are known to be to other nodes; NAN: none is known */
	char *node, *mem_node; /* of the two; NULL: unknown */
};

struct why_places {
	struct line_set *lines; /* NULL: sharing cannot be judged as it was recorded */
	struct report *report;
	struct report_opts opts;
	bool has_hottest, has_remote; /* they stand out */
	struct lines_hottest hottest;
	struct remote remote;
};

struct why_places *why_places_new(const struct recorded *in)
{
	struct why_places *p = xcalloc(1, sizeof(*p));
	const struct lines_opts lines = { .info = in->head.info, .most = ACCESSES_MAX };
	struct err ignored;

	p->opts = (struct report_opts){ .by = { LABEL_NODE, LABEL_MEM_NODE },
					.n_by = 2,
					.price = true,
					.info = in->head.info,
					.tasks = in->tasks };
	report_new(&p->opts, &p->report, &ignored);
	if (!lines_hidden_in(in->head.info, &ignored))
		p->lines = lines_new(&lines);
	return p;
}

void why_places_free(struct why_places *p)
{
	if (!p)
		return;
	lines_free(p->lines);
	report_free(p->report);
	lines_hottest_free(&p->hottest);
	free(p->remote.node);
	free(p->remote.mem_node);
	free(p);
}

void why_places_add(void *places, const struct trace_event *ev)
{
	struct why_places *p = places;

	if (!trace_accesses_memory(ev))
		return;
	report_add(p->report, ev);
	if (p->lines)
		lines_add(p->lines, ev);
}

static char *copy(const char *text)
{
	return text && *text ? xstrdup(text) : NULL;
}

/* As the table of numa has it. */
static void find_remote(struct why_places *p)
{
	const struct report_order order = { .sort = TABLE_PRICE };
	struct remote *r = &p->remote;
	struct report_table t;
	double all;

	report_table(p->report, &order, &t);
	all = report_value(&t, &t.total, TABLE_CYCLES);
	r->price = report_value(&t, &t.total, TABLE_PRICE) / all;
	r->accesses = NAN;
	for (size_t i = 0; i < t.n; i++) {
		const char *const *label = t.rows[i].label;

		if (!label[0] || !label[1])
			continue;
		r->accesses = isnan(r->accesses) ? 0 : r->accesses;
		if (strcmp(label[0], label[1]) != 0)
			r->accesses += report_value(&t, &t.rows[i], TABLE_SAMPLE_SHARE);
	}
	if (t.n && all > 0) {
		r->worst = report_value(&t, &t.rows[0], TABLE_PRICE) / all;
		r->node = copy(t.rows[0].label[0]);
		r->mem_node = copy(t.rows[0].label[1]);
		p->has_remote = r->price >= STANDS_OUT && t.rows[0].samples >= TABLE_FEW;
	}
	report_table_free(&t);
}

static void find_hottest(struct why_places *p, const struct recorded *in, const struct screen *s)
{
	const struct lines_print print = {
		.head = &in->head, .tasks = in->tasks, .symbols = in->symbols, .screen = s
	};

	p->has_hottest = lines_hottest(&print, lines_finish(p->lines), STANDS_OUT, &p->hottest);
}

void why_places_finish(struct why_places *p, const struct recorded *in, const struct screen *s)
{
	find_remote(p);
	if (p->lines)
		find_hottest(p, in, s);
}

/* "Probably falsely shared line 0x1000: `counters`, fields `hits` and `misses`, by count; 45.0% of HITM" */
static void put_hottest(const struct lines_hottest *h, const struct screen *s)
{
	const char *how = line_verdict_how(h->verdict);
	char share[32], *text;
	size_t size;
	FILE *f = xmemopen(&text, &size);

	screen_percent(s, h->share, share, sizeof(share));
	if (h->likely)
		fprintf(f, "Probably %s", how);
	else
		fprintf(f, "%c%s", *how - 'a' + 'A', how + 1);
	fprintf(f, " shared line %s: %s", h->line ?: "at an unknown address", h->name);
	if (h->function) {
		fputs(", by ", f);
		utf8_put(f, h->function);
	}
	fprintf(f, "; %s of %s", share, h->of_hitm ? "HITM" : "miss cycles");
	xmemclose(f);
	screen_wrap(stdout, text, 0, s->width);
	free(text);
}

/* "Remote memory: 34.6% of accesses, costs 12.0% of miss cycles (node 2 to 0: 10.2%)" */
static void put_remote(const struct remote *r, const struct screen *s)
{
	char accesses[32], price[32], worst[32], *text;
	size_t size;
	FILE *f = xmemopen(&text, &size);

	screen_percent(s, r->accesses, accesses, sizeof(accesses));
	screen_percent(s, r->price, price, sizeof(price));
	screen_percent(s, r->worst, worst, sizeof(worst));
	fputs("Remote memory: ", f);
	if (!isnan(r->accesses))
		fprintf(f, "%s of accesses, ", accesses);
	fprintf(f, "costs %s of miss cycles (node %s", price, r->node ?: "unknown");
	if (r->mem_node)
		fprintf(f, " to %s", r->mem_node);
	fprintf(f, ": %s)", worst);
	xmemclose(f);
	screen_wrap(stdout, text, 0, s->width);
	free(text);
}

void why_places_put(const struct why_places *p, const struct screen *s)
{
	if (p->has_hottest)
		put_hottest(&p->hottest, s);
	if (p->has_remote)
		put_remote(&p->remote, s);
}

static void put_hottest_json(const struct lines_hottest *h, struct json_writer *w)
{
	json_begin_object(w, "hot_line");
	json_put_text(w, "line", h->line);
	json_put_text(w, "verdict", line_verdict_name(h->verdict));
	json_put_bool(w, "likely", h->likely);
	json_put_text(w, "name", h->name);
	json_put_text(w, "function", h->function);
	json_put_text(w, "share_of", h->of_hitm ? "hitm" : "miss_cycles");
	json_put_double(w, "share", h->share);
	json_put_double(w, "miss_cycles_share", h->cycles_share);
	json_end(w);
}

void why_places_put_json(void *places, struct json_writer *w)
{
	const struct why_places *p = places;
	const struct remote *r = &p->remote;

	if (p->has_hottest)
		put_hottest_json(&p->hottest, w);
	else
		json_put_null(w, "hot_line");
	if (!p->has_remote) {
		json_put_null(w, "remote_memory");
		return;
	}
	json_begin_object(w, "remote_memory");
	json_put_double(w, "accesses_share", r->accesses);
	json_put_double(w, "price_share", r->price);
	json_put_text(w, "node", r->node);
	json_put_text(w, "mem_node", r->mem_node);
	json_put_double(w, "pair_share", r->worst);
	json_end(w);
}

bool why_places_line(const struct why_places *p)
{
	return p->has_hottest;
}

bool why_places_remote(const struct why_places *p)
{
	return p->has_remote;
}
