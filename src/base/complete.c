// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Shell completion from the option tables: with IBSCOPE_COMPLETE in the environment a program does
 * not run but prints candidates for its last argument, one per line, with a tab and a description.
 * Lines that begin with ':' are requests to the shell: ":files", ":dirs", ":commands".
 */
#include "options.h"

#include <stdlib.h>
#include <string.h>

#define ALLOWED "must be one of " /* precedes the list of values in errors */

const char *complete_mode(void)
{
	return getenv("IBSCOPE_COMPLETE");
}

void complete_offer(const char *word, const char *name, const char *help)
{
	int n = strcspn(help, ";\n");

	if (!strncmp(name, word, strlen(word)))
		printf("%s\t%.*s\n", name, n, help);
}

/* Offer the items of a list that @word does not have yet. */
static void offer_list(const char *word, const char *list, const char *separators)
{
	const char *comma = strrchr(word, ','), *last = comma ? comma + 1 : word;

	for (size_t n; *list; list += n) {
		list += strspn(list, separators);
		n = strcspn(list, separators);
		if (n && !strncmp(list, last, strlen(last)))
			printf("%.*s%.*s\t\n", (int)(last - word), word, (int)n, list);
	}
}

/* Errors about invalid values list the valid ones. */
static void offer_values(const struct option_row *row, void *ctx, const char *word)
{
	struct err err = { "" };
	const char *list;

	if (strstr(row->arg, "FILE") || strstr(row->arg, "DIR")) {
		puts(strstr(row->arg, "DIR") ? ":dirs" : ":files");
	} else if (row->choice) {
		for (unsigned int i = 0; i < row->max; i++)
			complete_offer(word, row->choice(i), "");
	} else if (strchr(row->arg, '|')) {
		offer_list(word, row->arg, "|");
	} else if (row->set && row->set(ctx, "?", &err)) {
		list = strstr(err.text, ALLOWED);
		if (list)
			offer_list(word, list + strlen(ALLOWED), ", ");
	}
}

static bool is_option(const struct option_row *row, const char *word)
{
	return *word == '-' && (word[1] == '-' ? !strcmp(word + 2, row->name)
					       : row->letter && word[1] == row->letter && !word[2]);
}

/* Offer the option name, as `ctl set` and `ctl unset` take it. */
static void offer_name(const char *word, const struct option_row *row)
{
	const char *mode = complete_mode();
	char name[64];

	if (!strcmp(mode, "set") || !strcmp(mode, "unset"))
		snprintf(name, sizeof(name), "%s%s", row->name,
			 row->arg && *row->arg != '[' && *mode == 's' ? "=" : "");
	else
		snprintf(name, sizeof(name), "--%s", row->name);
	complete_offer(word, name, row->help);
}

void complete_options(int argc, char **argv, const struct option_set *sets, size_t n_sets)
{
	static const struct option_row common[] = { { .name = "help", .help = "print the options" },
						    { .name = "version",
						      .help = "print the version" } };
	const char *word = argc > 1 ? argv[argc - 1] : "", *before = argc > 2 ? argv[argc - 2] : "";
	bool names = strcmp(complete_mode(), "1");

	for (size_t s = 0; s < n_sets; s++)
		for (size_t i = 0; i < sets[s].n; i++)
			if (sets[s].rows[i].arg && *sets[s].rows[i].arg != '[' &&
			    is_option(&sets[s].rows[i], before)) {
				offer_values(&sets[s].rows[i], sets[s].ctx, word);
				return;
			}
	if (*word != '-' && !names) {
		puts(":files");
		return;
	}
	for (size_t s = 0; s < n_sets; s++)
		for (size_t i = 0; i < sets[s].n; i++)
			if (!sets[s].skip || !sets[s].skip(sets[s].skip_arg, sets[s].rows[i].name))
				offer_name(word, &sets[s].rows[i]);
	for (size_t i = 0; !names && i < sizeof(common) / sizeof(common[0]); i++)
		offer_name(word, &common[i]);
}
