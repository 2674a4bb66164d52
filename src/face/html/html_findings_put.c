// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Containers and functions of the page as rows that are compared, and what to run next for those that differ. */
#include "html_facts.h"
#include "html_findings.h"

#include "table/table.h"

#include <ibscope/hot_lines.h>
#include <stdlib.h>

#define SLOW_SHARE .1 /* of all accesses to local DRAM: the slowest */

enum compared { CONTAINERS, FUNCTIONS, COMPARED };

/* Sums of all rows. */
struct comparison {
	const struct html_report *r;
	unsigned int slow;     /* the last bucket of local DRAM that is not slow */
	double valid, squares; /* samples with a latency, as html_part_add() counts them */
	struct html_tally *tally[COMPARED];
	size_t n[COMPARED];
};

/* How many samples a row counts as, and the squares of what each does: those of strata represent different numbers of ops. */
static double count_of(const struct html_report *r, const struct html_row *row)
{
	return html_report_strata(r) ? row->operations : row->samples;
}

static double squares_of(const struct html_report *r, const struct html_row *row)
{
	return html_report_strata(r) ? row->squares : row->samples;
}

static double part_of(const struct html_report *r, const struct html_row *row,
		      bool (*has)(const struct html_row *row))
{
	return row->key.bucket != HTML_NO_LATENCY && has(row) ? count_of(r, row) : 0;
}

static bool is_dram(const struct html_row *row)
{
	return row->key.source == IBS_SRC_DRAM;
}

/* The bucket that holds the percentile, of all samples. */
static unsigned int slow_bucket(const struct html_report *r)
{
	const struct html_rows *rows = &r->rows;
	double samples[IBS_LAT_BUCKETS] = { 0 }, all = 0, below = 0;
	unsigned int b = 0;

	for (size_t i = 0; i < rows->n; i++) {
		double n = part_of(r, &rows->row[i], is_dram);

		all += n;
		if (n)
			samples[rows->row[i].key.bucket] += n;
	}
	while (b + 1 < IBS_LAT_BUCKETS && (below += samples[b]) < (1 - SLOW_SHARE) * all)
		b++;
	return b;
}

static void add(const struct comparison *c, struct html_tally *t, const struct html_row *row)
{
	const double n = count_of(c->r, row), squares = squares_of(c->r, row);
	const enum ibs_src src = row->key.source;
	const bool has[HTML_CAUSES] = {
		[HTML_CAUSE_HITM] = row->key.flags & HTML_HITM,
		[HTML_CAUSE_REMOTE] = table_is_remote(src),
		[HTML_CAUSE_FAR] = src == IBS_SRC_PMEM || src == IBS_SRC_REMOTE_PMEM ||
				   src == IBS_SRC_CXL || src == IBS_SRC_REMOTE_CXL,
		[HTML_CAUSE_WALK] = row->key.flags & HTML_WALK,
		[HTML_CAUSE_SLOW] = row->key.bucket > c->slow,
		[HTML_CAUSE_MEMORY] = IBS_SRC_MEMORY >> src & 1,
	};

	for (unsigned int i = 0; i < HTML_CAUSES; i++)
		if (i != HTML_CAUSE_SLOW)
			html_part_add(&t->of[i], n, squares, row->cycles, has[i]);
		else if (src == IBS_SRC_DRAM) /* of accesses, not of their costs */
			html_part_add(&t->of[i], n, squares, n, has[i]);
	t->cycles += row->cycles;
	t->dram_cycles += src == IBS_SRC_DRAM ? row->cycles : 0;
}

static void compare_rows(struct comparison *c)
{
	const struct html_report *r = c->r;

	c->n[CONTAINERS] = r->groups.n;
	c->n[FUNCTIONS] = r->frames.n;
	for (unsigned int k = 0; k < COMPARED; k++)
		c->tally[k] = xcalloc(c->n[k] + 1, sizeof(*c->tally[k]));
	for (size_t i = 0; i < r->frames.n; i++)
		c->tally[FUNCTIONS][i].nameless = *intern_text(&r->frames, i) == '[';
	c->slow = slow_bucket(r);
	for (size_t i = 0; i < r->rows.n; i++) {
		const struct html_row *row = &r->rows.row[i];

		if (row->key.bucket == HTML_NO_LATENCY || row->cycles <= 0)
			continue;
		c->valid += count_of(r, row);
		c->squares += squares_of(r, row);
		add(c, &c->tally[CONTAINERS][row->key.group], row);
		if (row->key.stack)
			add(c, &c->tally[FUNCTIONS][r->nodes[row->key.stack].frame], row);
	}
}

/* What shows the cause of a container's finding in a recording. */
static const struct {
	const char *command, *by, *src;
} containers_next[HTML_CAUSES] = {
	[HTML_CAUSE_HITM] = { "c2c" },
	[HTML_CAUSE_REMOTE] = { "numa" },
	[HTML_CAUSE_FAR] = { "numa" },
	[HTML_CAUSE_WALK] = { "report", "page_size,symbol" },
	[HTML_CAUSE_SLOW] = { "report", "node,mem_node", "dram" },
	[HTML_CAUSE_MEMORY] = { "report", "symbol,src" },
};

static void put_words(struct json_writer *w, const char *const *word, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (word[i] && *word[i])
			json_put_text(w, NULL, word[i]);
}

/* The command to run next, as words; the page quotes them. */
static void put_command(const struct html_report *r, enum compared kind,
			const struct html_finding *f, struct json_writer *w)
{
	const char *option = kind == CONTAINERS ? r->group[f->row].option : NULL;
	const char *name = intern_text(kind == CONTAINERS ? &r->groups : &r->frames, f->row);
	const char *const chosen = option ? name : NULL;
	const char *command = containers_next[f->cause].command, *by = containers_next[f->cause].by;
	const char *src = containers_next[f->cause].src;
	const char *sim = r->opts.info->simulated ? "--source=sim" : NULL;

	if (r->parts > 1) { /* only `report` reads several recordings */
		command = "report";
		by = "host,symbol,src";
		src = NULL;
	}
	json_begin_array(w, "command");
	if (!r->parts)
		put_words(w,
			  (const char *const[]){ "hist", sim, option, chosen, "--by", "comm,src",
						 "10", "1" },
			  8);
	else if (kind == FUNCTIONS && r->parts == 1)
		put_words(w, (const char *const[]){ "annotate", "-i", r->opts.again, name }, 4);
	else
		put_words(w,
			  (const char *const[]){ command, r->opts.again, option, chosen,
						 by ? "--by" : NULL, by, src ? "--src" : NULL,
						 src },
			  8);
	json_end(w);
}

static void put_finding(const struct html_report *r, enum compared kind,
			const struct html_finding *f, struct json_writer *w)
{
	json_begin_object(w, NULL);
	json_put_u64(w, kind == CONTAINERS ? "group" : "frame", f->row);
	json_put_text(w, "cause", html_cause_name(f->cause));
	json_put_number(w, "share", f->share);
	json_put_number(w, "rest", f->rest);
	json_put_number(w, "excess", f->excess);
	put_command(r, kind, f, w);
	json_end(w);
}

/* Of both lists, most expensive first. */
static void put_list(const struct html_report *r,
		     struct html_finding found[COMPARED][HTML_FINDINGS_MAX],
		     const size_t n[COMPARED], struct json_writer *w)
{
	size_t at[COMPARED] = { 0 };

	json_begin_array(w, "list");
	for (unsigned int i = 0; i < HTML_FINDINGS_MAX; i++) {
		bool more[COMPARED] = { at[CONTAINERS] < n[CONTAINERS],
					at[FUNCTIONS] < n[FUNCTIONS] };
		enum compared kind = CONTAINERS;

		if (!more[CONTAINERS] && !more[FUNCTIONS])
			break;
		if (!more[CONTAINERS] ||
		    (more[FUNCTIONS] && found[FUNCTIONS][at[FUNCTIONS]].excess >
						found[CONTAINERS][at[CONTAINERS]].excess))
			kind = FUNCTIONS;
		put_finding(r, kind, &found[kind][at[kind]++], w);
	}
	json_end(w);
}

static __u64 costly(const struct html_tally *t, size_t n)
{
	__u64 rows = 0;

	for (size_t i = 0; i < n; i++)
		rows += t[i].cycles > 0 && !t[i].nameless;
	return rows;
}

void html_findings_put(const struct html_report *r, struct json_writer *w)
{
	struct html_finding found[COMPARED][HTML_FINDINGS_MAX];
	struct comparison c = { .r = r };
	size_t n[COMPARED];

	compare_rows(&c);
	for (unsigned int k = 0; k < COMPARED; k++)
		n[k] = html_findings_find(c.tally[k], c.n[k], HTML_FALSE / COMPARED, found[k],
					  HTML_FINDINGS_MAX);
	if (!(c.valid * c.valid >= HTML_FINDINGS_SAMPLES * c.squares && c.squares > 0)) {
		json_put_null(w, "findings");
	} else {
		json_begin_object(w, "findings");
		json_put_u64(w, "containers", costly(c.tally[CONTAINERS], c.n[CONTAINERS]));
		json_put_u64(w, "functions", costly(c.tally[FUNCTIONS], c.n[FUNCTIONS]));
		json_put_u64(w, "slow", ibs_lat_le(c.slow));
		put_list(r, found, n, w);
		json_end(w);
	}
	for (unsigned int k = 0; k < COMPARED; k++)
		free(c.tally[k]);
}
