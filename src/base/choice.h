/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Words from a fixed set: parsing, and messages that list the set and suggest the nearest word. */
#ifndef IBSCOPE_CHOICE_H
#define IBSCOPE_CHOICE_H

#include <stddef.h>

struct err;

/* The best match for a misspelled word among the candidates offered so far. */
struct suggestion {
	const char *word;
	size_t len;
	const char *best; /* NULL: nothing is close */
	unsigned int distance;
	char text[80];
};

void suggestion_start(struct suggestion *s, const char *word, size_t len);
/* @candidate must outlive @s. */
void suggestion_offer(struct suggestion *s, const char *candidate);
/* "; did you mean 'x'?", or "" if nothing is close. */
const char *suggestion_text(struct suggestion *s);

/* A function for the names of an enum, from a table of rows X(ID, "name", ...). */
#define CHOICE_NAME(id, name, ...) name,
#define CHOICE_NAMES(function, type, TABLE)                                \
	const char *function(type i)                                       \
	{                                                                  \
		static const char *const names[] = { TABLE(CHOICE_NAME) }; \
                                                                           \
		return names[i];                                           \
	}

struct choices {
	const char *option; /* as the user wrote it: "--by" */
	const char *what;   /* singular noun for messages */
	const char *(*name)(unsigned int i);
	unsigned int n;
	const char *const *names; /* instead of `name` */
};

/**
 * choice_parse() - parse one word
 *
 * Return: 0 with *which set, or -EINVAL with @err.
 */
int choice_parse(const struct choices *c, const char *text, unsigned int *which, struct err *err);

/**
 * choice_list_parse() - parse "a,b,c", keeping the user's order
 * @list: gets each choice once, at most c->n
 *
 * Return: 0, or -EINVAL with @err.
 */
int choice_list_parse(const struct choices *c, const char *text, unsigned int *list,
		      unsigned int *n, struct err *err);

#endif
