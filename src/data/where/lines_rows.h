/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Rows of the tables of lines. Private to lines_*.c. */
#ifndef IBSCOPE_LINES_ROWS_H
#define IBSCOPE_LINES_ROWS_H

#include "lines_names.h"
#include "lines_print.h"

#define NAMES_MAX 14
#define LINE_ANY  (LINE_LOAD | LINE_STORE | LINE_PREFETCH)

/* What people and programs see: a line, or those of its accesses that have the same names. */
struct line_row {
	const char *name[NAMES_MAX]; /* NULL: not known */
	const struct line *l;
	bool sum;  /* of several lines: sets were not joined */
	bool slot; /* of one slot of a hot line: cycles and sources are known of the line alone */
};

struct line_rows {
	const struct lines_print *p;
	const struct lines *lines;
	struct line_namer namer;
	const char *key[NAMES_MAX]; /* headings of names */
	unsigned int n_keys;
	unsigned int whole; /* 1 << bits of keys that are cut only after the others */
	struct line_row *row;
	bool for_people;
	bool tells_few; /* sentences have lines of fewer than TABLE_FEW samples; set by line_rows_answer() */
	bool by_comm;		  /* thread names take the place of containers */
	size_t n, n_rest, hidden; /* hidden ones are in the rest, too */
	struct line rest;
	struct line total;
	__u64 data[DATA_KIND_N], code[CODE_KIND_N]; /* samples */
};

/* Room for @n rows, zeroed. */
struct line_rows line_rows_new(const struct lines_print *p, const struct lines *lines, size_t n);
void line_rows_free(struct line_rows *rows);

/* The address of a line as people see it. @with_space: with the process. Return: false if it has none. */
#define LINE_ADDRESS 64
bool line_address(const struct line *l, bool with_space, char buf[LINE_ADDRESS]);

/* Count what lies at the addresses of a line. */
void line_rows_count(struct line_rows *rows, const struct line *l);

/* What a column says; NAN: nothing. */
double line_rows_value(const struct line_rows *rows, const struct line_row *r, enum table_column c);
void line_rows_add(struct line *to, const struct line *l);
void line_rows_head(FILE *f, const struct line_rows *rows);
void line_rows_table(FILE *f, const struct line_rows *rows);
void line_rows_csv(FILE *f, const struct line_rows *rows);
/* Make @l, which is not NULL, the only row, with the names of the table of all lines. */
void line_rows_only(struct line_rows *rows, const struct line *l);
/* Suggest what shows the code of the function that writes most to the line, or else reads most. */
void line_rows_next_function(FILE *f, struct line_rows *rows, const struct line *l);
/* The members of a row of the table of all lines. */
void line_rows_put_line(struct json_writer *w, struct line_rows *rows, const struct line_row *r);
/*
 * Does the line have a part in sentences about sharing? One of a handful of samples (TABLE_FEW) has
 * none if others have more, or if all of them cost little.
 */
bool line_rows_tells(const struct line_rows *rows, const struct line *l);
/* Sentences: what is shared, and what it costs. */
void line_rows_answer(FILE *f, struct line_rows *rows);
/* Advice about the line, if there is any, wrapped. */
void line_rows_advice(FILE *f, struct line_rows *rows, const struct line *l, const char *label,
		      unsigned int indent);
/* Print all lines, as lines_print() does. */
void line_rows_list(FILE *f, const struct lines_print *p, const struct lines *lines);

/* Writes the members of a row. */
typedef void line_rows_put(struct json_writer *w, struct line_rows *rows, const struct line_row *r);

/*
 * @line: the line that rows are accesses of, for --line, written by @put_line; @what: the name of
 * the array of objects whose members @put writes
 */
void line_rows_json(FILE *f, struct line_rows *rows, const struct line *line,
		    line_rows_put *put_line, const char *what, line_rows_put *put);

void line_rows_put_values(struct json_writer *w, const struct line_rows *rows,
			  const struct line_row *r);

#endif
