// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "lines_rows.h"

#include "base/utf8.h"
#include "table/table.h"
#include "base/text.h"

#include <math.h>

#define ABSENT "[unknown]"
#define AHEAD  16ll /* accesses */

/* X(COLUMN, "name", digits, COLUMN_*, value of row `r` with line `l`, "meaning") */
#define COLUMNS(X)                                                                                \
	X(CYCLES, "miss_cycles", 0, COLUMN_KEPT,                                                  \
	  !l->valid || rows->lines->has_period ? l->cycles : (double)NAN,                         \
	  "latency x ops that a sample represents")                                               \
	X(LOW, "low", 0, 0, interval_of(rows, l).low,                                             \
	  "lower end of the 95 % interval of miss_cycles")                                        \
	X(HIGH, "high", 0, 0, interval_of(rows, l).high, "upper end of it")                       \
	X(SHARE, "share", COLUMN_DIGITS, 0,                                                       \
	  l->valid ? share(l->cycles, rows->lines->total.cycles) : (double)NAN,                   \
	  "share of all miss cycles")                                                             \
	X(SHARE_LOW, "share_low", COLUMN_DIGITS, 0, share_interval_of(rows, l).low,               \
	  "lower end of the 95 % interval of share")                                              \
	X(SHARE_HIGH, "share_high", COLUMN_DIGITS, 0, share_interval_of(rows, l).high,            \
	  "upper end of it")                                                                      \
	X(SAMPLES, "samples", 0, COLUMN_OF_SLOT, l->samples, "samples that load or store")        \
	X(HITM, "hitm", COLUMN_DIGITS, COLUMN_OF_STATES | COLUMN_KEPT,                            \
	  share(l->hitm_cycles, l->known),                                                        \
	  "share of the line's miss cycles that loads of modified data cost")                     \
	X(HITM_CCX, "hitm_ccx", 0, COLUMN_OF_STATES, l->from[LINE_FROM_HITM_CCX],                 \
	  "loads of data modified in the same complex; before Zen 4, the same node")              \
	X(HITM_NEAR, "hitm_near", 0, COLUMN_OF_STATES | COLUMN_OF_CACHES,                         \
	  l->from[LINE_FROM_HITM_NEAR], "loads of data modified in another complex of the node")  \
	X(HITM_REMOTE, "hitm_remote", 0, COLUMN_OF_STATES | COLUMN_OF_CACHES,                     \
	  l->from[LINE_FROM_HITM_REMOTE], "loads of data modified in another node")               \
	X(HITM_SOCKET, "hitm_socket", 0, COLUMN_OF_STATES | COLUMN_OF_SOCKETS,                    \
	  l->from[LINE_FROM_HITM_SOCKET], "loads of data modified in another socket; Zen 6")      \
	X(OWNED, "owned", 0, COLUMN_OF_STATES, l->from[LINE_FROM_OWNED],                          \
	  "loads that a cache with the line in state O answered")                                 \
	X(TRANSFERS, "transfers", 0, 0, l->from[LINE_FROM_TRANSFERS],                             \
	  "loads that another cache answered without reporting the line's state")                 \
	X(LOADS, "loads", 0, COLUMN_OF_SLOT, l->loads, "samples that load, including prefetches") \
	X(STORES, "stores", 0, COLUMN_OF_SLOT, l->stores, "samples that store")                   \
	X(MEAN, "mean", 1, 0, rows->lines->strata ? (double)NAN : share(l->sum, l->valid),        \
	  "mean latency, cycles")                                                                 \
	X(CPUS, "cpus", 0, COLUMN_OF_SLOT, r->sum ? (double)NAN : l->cpus, "different CPUs")      \
	X(THREADS, "threads", 0, COLUMN_OF_SLOT, r->sum ? (double)NAN : l->threads,               \
	  "different threads")

static const struct column columns[] = { COLUMNS(COLUMN_ROW) };
const struct columns lines_columns = { columns, ARRAY_SIZE(columns), .exact = true };

/* COLUMN_* bits of what the processor does not report. */
static unsigned int unreported(const struct lines *lines)
{
	return (lines->cpu.quirks & IBS_QUIRK_NO_CACHE_HIT_ST ? COLUMN_OF_STATES : 0) |
	       (lines->cpu.caps & IBS_CAPS_ZEN4 ? 0 : COLUMN_OF_CACHES) |
	       (lines->cpu.caps & IBS_CAPS_STRMST_RMTSOCKET ? 0 : COLUMN_OF_SOCKETS);
}

static double share(double part, double all)
{
	return all > 0 ? part / all : (double)NAN;
}

static struct estimate waits_of(const struct line *l)
{
	return (struct estimate){ l->cycles, l->squares, l->largest };
}

static const struct bounds unknown = { NAN, NAN };

/* Counters of hot lines do not tell how unlike their latencies are. */
static struct bounds interval_of(const struct line_rows *rows, const struct line *l)
{
	const struct estimate e = waits_of(l);

	return (l->valid && !rows->lines->has_period) || isnan(l->squares)
		       ? unknown
		       : estimate_interval(&e, 0);
}

/* Without periods, cycles of all lines have one unit, too. */
static struct bounds share_interval_of(const struct line_rows *rows, const struct line *l)
{
	const struct estimate e = waits_of(l), all = waits_of(&rows->lines->total);

	return !l->valid || isnan(all.squares) ? unknown : estimate_share(&e, &all);
}

double line_rows_value(const struct line_rows *rows, const struct line_row *r, enum table_column c)
{
	const struct column *column = column_find(&lines_columns, c);
	const struct line *l = r->l;

	if (!column || column->flags & unreported(rows->lines) ||
	    (r->slot && !(column->flags & COLUMN_OF_SLOT)))
		return NAN;
	switch (c) {
		COLUMNS(COLUMN_CASE)
	default:
		return NAN;
	}
}

bool line_address(const struct line *l, bool with_space, char buf[LINE_ADDRESS])
{
	const bool process = with_space && l->virtual && l->space != LINE_SPACE_KERNEL;
	size_t at;

	if (!l->physical && !l->virtual)
		return false;
	at = text_at(buf, LINE_ADDRESS, 0, "0x%llx", (unsigned long long)l->address);
	if (process)
		text_at(buf, LINE_ADDRESS, at, "@%llu", (unsigned long long)l->space);
	return true;
}

void line_rows_add(struct line *to, const struct line *l)
{
	to->samples += l->samples;
	to->loads += l->loads;
	to->stores += l->stores;
	to->valid += l->valid;
	to->sum += l->sum;
	to->cycles += l->cycles;
	to->squares += l->squares;
	to->largest = l->largest > to->largest ? l->largest : to->largest;
	to->known += l->known;
	to->hitm_cycles += l->hitm_cycles;
	for (unsigned int f = 0; f < LINE_FROM_N; f++)
		to->from[f] += l->from[f];
}

/* The columns for programs, as asked for or all. */
static unsigned int columns_of(const struct line_rows *rows, const struct column **out)
{
	const struct view_opts *v = &rows->p->view;
	const unsigned int n = v->n_columns ?: lines_columns.n;

	for (unsigned int i = 0; i < n; i++)
		out[i] = v->n_columns ? column_find(&lines_columns, v->columns[i])
				      : &lines_columns.column[i];
	return n;
}

static void view_row(const struct line_rows *rows, const struct line_row *r, struct table_row *out)
{
	const struct line *l = r->l;
	struct series all = { .samples = l->samples, .valid = l->valid, .sum = l->sum };

	*out = (struct table_row){ .all = all,
				   .cycles = line_rows_value(rows, r, TABLE_CYCLES),
				   .waits = waits_of(l),
				   .value = xcalloc(TABLE_COLUMNS, sizeof(*out->value)) };
	for (enum table_column c = 0; c < TABLE_COLUMNS; c++)
		out->value[c] = line_rows_value(rows, r, c);
	for (unsigned int k = 0; !r->sum && k < rows->n_keys; k++)
		out->name[k] = table_name(r->name[k] ?: ABSENT, LABEL_CONTAINER);
}

/* Functions of hot lines are examples: samples have none. */
static struct report_kinds kinds_of(const struct line_rows *rows)
{
	return (struct report_kinds){ .data = rows->data,
				      .code = rows->lines->hot.tables ? NULL : rows->code };
}

static void print_trust(FILE *f, const struct screen *screen, const struct table *view)
{
	char *text = table_trust_text(screen, view);

	fputs(text, f);
	free(text);
}

void line_rows_table(FILE *f, const struct line_rows *rows)
{
	const struct report_kinds kinds = kinds_of(rows);
	/* the most useful first: as many as fit are printed */
	static const enum table_column useful[] = {
		TABLE_CYCLES,	TABLE_HITM,	 TABLE_SHARE,	    TABLE_STORES,
		TABLE_LOADS,	TABLE_HITM_NEAR, TABLE_HITM_REMOTE, TABLE_HITM_SOCKET,
		TABLE_OWNED,	TABLE_TRANSFERS, TABLE_THREADS,	    TABLE_CPUS,
		TABLE_HITM_CCX, TABLE_MEAN,
	};
	const struct view_opts *v = &rows->p->view;
	enum table_column usual[ARRAY_SIZE(useful)];
	const struct line_row rest = { .l = &rows->rest, .sum = true };
	const struct line_row total = { .l = &rows->total, .sum = true };
	struct table view = { .key = rows->key,
			      .n_keys = rows->n_keys,
			      .metric = rows->p->metric,
			      .usual = usual,
			      .whole = rows->whole,
			      .n = rows->n,
			      .n_rest = rows->n_rest,
			      .row = xcalloc(rows->n, sizeof(*view.row)) };

	for (unsigned int i = 0; i < ARRAY_SIZE(useful); i++)
		if (line_rows_value(rows, &total, useful[i]) > 0 || useful[i] == TABLE_CPUS ||
		    useful[i] == TABLE_THREADS)
			usual[view.n_usual++] = useful[i];
	while (view.n_kept < view.n_usual &&
	       column_find(&lines_columns, usual[view.n_kept])->flags & COLUMN_KEPT)
		view.n_kept++;
	for (size_t i = 0; i < rows->n; i++)
		view_row(rows, &rows->row[i], &view.row[i]);
	view_row(rows, &rest, &view.rest);
	view_row(rows, &total, &view.total);
	table_print(f, rows->p->screen, &view, v->n_columns ? v->columns : NULL, v->n_columns);
	if (!isnan(rows->total.squares))
		print_trust(f, rows->p->screen, &view);
	report_kinds_print(f, &kinds);
	table_free(&view);
}

/* "stores, cache hits and memory loads" */
static const char *fed_by(__u64 feed)
{
	static const struct {
		__u32 bits;
		const char *what;
	} feeds[] = {
#define FEED(id, name, bits, what) { bits, what },
		LINE_FEED_TABLE(FEED)
	};
	static char text[128];
	unsigned int n = 0;

	*text = 0;
	for (unsigned int i = 0; i < ARRAY_SIZE(feeds); i++) {
		if (!(feed & feeds[i].bits))
			continue;
		feed &= ~(__u64)feeds[i].bits;
		n += snprintf(text + n, sizeof(text) - n, "%s%s",
			      !n     ? ""
			      : feed ? ", "
				     : " and ",
			      feeds[i].what);
	}
	return text;
}

static void put_hot(struct json_writer *w, const struct lines_hot *hot)
{
	json_begin_object(w, "hot");
	json_begin_array(w, "feed");
	for (unsigned int i = 0; line_feed_name(i); i++)
		if (hot->feed & line_feed_bits(i))
			json_put_text(w, NULL, line_feed_name(i));
	json_end(w);
	json_put_u64(w, "fed", hot->fed);
	json_put_u64(w, "kept", hot->kept);
	json_put_u64(w, "lack", hot->lack);
	json_put_u64(w, "replaced", hot->replaced);
	json_put_u64(w, "cpus", hot->cpus);
	json_end(w);
}

void line_rows_head(FILE *f, const struct line_rows *rows)
{
	const struct lines *lines = rows->lines;

	report_print_head(f, rows->p->head, rows->p->metric);
	if (lines->physical && !lines->only_virtual && !lines->hot.tables && !lines->moved &&
	    !log_is_verbose())
		return;
	fprintf(f, "lines     %s",
		lines->physical || lines->hot.tables
			? "by physical address"
			: "by VIRTUAL address: no physical one is recorded, "
			  "so sharing between processes does not show");
	if (lines->physical && lines->only_virtual)
		fprintf(f, "; %s samples have only a virtual one", TEXT_COUNT(lines->only_virtual));
	if (lines->no_address)
		fprintf(f, "; %s sample%s no address", TEXT_COUNT(lines->no_address),
			lines->no_address == 1 ? " has" : "s have");
	if (lines->hot.tables)
		fprintf(f, "; %s of %s %s of %s CPU%s are in them, a line lacks at most %s",
			TEXT_COUNT(lines->hot.kept), TEXT_COUNT(lines->hot.fed),
			fed_by(lines->hot.feed), TEXT_COUNT(lines->hot.cpus),
			text_plural(lines->hot.cpus), TEXT_COUNT(lines->hot.lack));
	if (lines->moved)
		fprintf(f, "; %s page%s moved", TEXT_COUNT(lines->moved),
			lines->moved > 1 ? "s" : "");
	fputc('\n', f);
}

static void csv_row(FILE *f, const struct line_rows *rows, const struct line_row *r)
{
	const char *source = rows->p->head->info->source ?: "";
	const struct column *column[TABLE_COLUMNS];
	unsigned int n = columns_of(rows, column);

	for (unsigned int k = 0; k < rows->n_keys; k++) {
		fputs(k ? "," : "", f);
		if (r->sum && !k)
			fputs("[rest]", f);
		else if (!r->sum && r->name[k])
			utf8_put_csv(f, r->name[k]);
	}
	for (unsigned int i = 0; i < n; i++)
		column_csv(f, column[i], line_rows_value(rows, r, column[i]->id));
	fputc(',', f);
	utf8_put_csv(f, source);
	fputc('\n', f);
}

void line_rows_csv(FILE *f, const struct line_rows *rows)
{
	const struct report_kinds kinds = kinds_of(rows);
	const struct line_row rest = { .l = &rows->rest, .sum = true };
	const struct column *column[TABLE_COLUMNS];
	unsigned int n = columns_of(rows, column);

	for (unsigned int k = 0; k < rows->n_keys; k++)
		fprintf(f, "%s%s", k ? "," : "", rows->key[k]);
	for (unsigned int i = 0; i < n; i++)
		fprintf(f, ",%s", column[i]->name);
	fputs(",source\n", f);
	for (size_t i = 0; i < rows->n; i++)
		csv_row(f, rows, &rows->row[i]);
	if (rows->n_rest)
		csv_row(f, rows, &rest);
	report_kinds_log(&kinds);
}

void line_rows_put_values(struct json_writer *w, const struct line_rows *rows,
			  const struct line_row *r)
{
	const struct column *column[TABLE_COLUMNS];
	unsigned int n = columns_of(rows, column);

	for (unsigned int i = 0; i < n; i++)
		column_json(w, &lines_columns, column[i], line_rows_value(rows, r, column[i]->id));
}

static void put_addresses(struct json_writer *w, const struct lines *lines)
{
	json_begin_object(w, "addresses");
	json_put_u64(w, "physical", lines->physical);
	json_put_u64(w, "virtual", lines->only_virtual);
	json_put_u64(w, "none", lines->no_address);
	json_put_u64(w, "moved_pages", lines->moved);
	json_end(w);
}

void line_rows_json(FILE *f, struct line_rows *rows, const struct line *line,
		    line_rows_put *put_line, const char *what, line_rows_put *put)
{
	const struct report_kinds kinds = kinds_of(rows);
	const struct line_row rest = { .l = &rows->rest, .sum = true };
	const struct line_row total = { .l = &rows->total, .sum = true };
	const struct line_row one = { .l = line };
	struct json_writer w = { .f = f };

	json_begin_object(&w, NULL);
	report_head_put(&w, rows->p->head, rows->p->metric);
	put_addresses(&w, rows->lines);
	if (rows->lines->hot.tables)
		put_hot(&w, &rows->lines->hot);
	data_kinds_put(&w, kinds.data);
	code_kinds_put(&w, kinds.code);
	if (line) {
		json_begin_object(&w, "line");
		put_line(&w, rows, &one);
		json_end(&w);
	} else if (rows->p->has_line) {
		json_put_null(&w, "line");
	}
	json_begin_array(&w, what);
	for (size_t i = 0; i < rows->n; i++) {
		json_line_break(&w);
		json_begin_object(&w, NULL);
		put(&w, rows, &rows->row[i]);
		json_end(&w);
	}
	json_end(&w);
	json_line_break(&w);
	json_begin_object(&w, "rest");
	json_put_u64(&w, "lines", rows->n_rest);
	line_rows_put_values(&w, rows, &rest);
	json_end(&w);
	json_begin_object(&w, "total");
	line_rows_put_values(&w, rows, &total);
	json_finish(&w);
}

struct line_rows line_rows_new(const struct lines_print *p, const struct lines *lines, size_t n)
{
	return (struct line_rows){ .p = p,
				   .lines = lines,
				   .namer = { .tasks = p->tasks, .symbols = p->symbols },
				   .row = xcalloc(n, sizeof(struct line_row)),
				   .n = n };
}

void line_rows_count(struct line_rows *rows, const struct line *l)
{
	struct data_place place;

	/* accesses of most lines are few, but those of the next lines come after them */
	for (size_t i = 0; i < l->n_access; i++) {
		if (rows->lines->end - &l->access[i] > AHEAD) {
			line_namer_expect(&rows->namer, &l->access[i + AHEAD], false);
			line_namer_expect(&rows->namer, &l->access[i + AHEAD / 2], true);
		}
		line_namer_place(&rows->namer, &l->access[i], &place);
		rows->data[place.kind] += l->access[i].samples;
		if (!rows->lines->hot.tables)
			rows->code[line_namer_code(&rows->namer, &l->access[i])] +=
				l->access[i].samples;
	}
}

void line_rows_free(struct line_rows *rows)
{
	line_namer_free(&rows->namer);
	free(rows->row);
}
