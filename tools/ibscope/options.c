// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "options.h"

#include "trim.h"

#include <errno.h>
#include <getopt.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#define MAX_OPTIONS 64
#define FILE_MAX    (1 << 20)
#define NO_LETTER   256 /* above all letters: row number + NO_LETTER */

static const struct option_row *row_at(const struct option_set *sets, size_t n_sets, size_t i,
				       const struct option_set **of)
{
	for (size_t s = 0; s < n_sets; s++) {
		if (i < sets[s].n) {
			*of = &sets[s];
			return &sets[s].rows[i];
		}
		i -= sets[s].n;
	}
	return NULL;
}

static int set(const struct option_row *row, const struct option_set *of, const char *arg,
	       struct err *err)
{
	if (of->skip && of->skip(of->skip_arg, row->name))
		return 0;
	if (row->set)
		return row->set(of->ctx, arg, err);
	*(bool *)((char *)of->ctx + row->flag) = true;
	return 0;
}

int options_parse(int argc, char **argv, const struct option_set *sets, size_t n_sets,
		  struct err *err)
{
	char letters[2 * MAX_OPTIONS + 4] = ":h", *l = letters + strlen(letters);
	struct option longs[MAX_OPTIONS + 2] = {};
	const struct option_row *row;
	const struct option_set *of;
	size_t n = 0;
	int c;

	for (; n < MAX_OPTIONS && (row = row_at(sets, n_sets, n, &of)); n++) {
		longs[n] = (struct option){ row->name, row->arg ? required_argument : no_argument,
					    NULL, NO_LETTER + n };
		if (row->letter) {
			*l++ = row->letter;
			if (row->arg)
				*l++ = ':';
		}
	}
	longs[n] = (struct option){ "help", no_argument, NULL, 'h' };
	*l = 0;
	opterr = 0;
	optind = 0;
	while ((c = getopt_long(argc, argv, letters, longs, NULL)) != -1) {
		const char *what = argv[optind - 1];

		if (c == 'h')
			return OPTIONS_HELP;
		if (c == ':')
			return err_set(err, -EINVAL, "option '%s' needs a value; see --help", what);
		if (c == '?' && optopt && optopt < NO_LETTER)
			return err_set(err, -EINVAL, "there is no option '-%c'; see --help",
				       optopt);
		if (c == '?')
			return err_set(err, -EINVAL,
				       "'%s' is not an option, or takes no value, or is "
				       "short for several; see --help",
				       what);
		for (size_t i = 0; (row = row_at(sets, n_sets, i, &of)); i++)
			if (c == row->letter || c == (int)(NO_LETTER + i))
				break;
		if (row) {
			int ret = set(row, of, optarg, err);

			if (ret)
				return ret;
		}
	}
	return 0;
}

static const struct option_row *find(const char *name, const struct option_set *sets, size_t n_sets,
				     const struct option_set **of)
{
	const struct option_row *row;

	for (size_t i = 0; (row = row_at(sets, n_sets, i, of)); i++)
		if (!strcmp(row->name, name))
			break;
	return row;
}

const struct option_row *options_find(const char *name, const struct option_set *sets,
				      size_t n_sets)
{
	const struct option_set *of;

	return find(name, sets, n_sets, &of);
}

int options_one(const char *name, const char *value, const struct option_set *sets, size_t n_sets,
		struct err *err)
{
	const struct option_set *of;
	const struct option_row *row = find(name, sets, n_sets, &of);

	if (!row)
		return err_set(err, -EINVAL,
			       "'%.200s' is not an option; those of --help can be given, without "
			       "the dashes",
			       name);
	if (row->arg && !value)
		return err_set(err, -EINVAL, "'%s' needs a value: %s = %s", name, name, row->arg);
	if (!row->arg && value)
		return err_set(err, -EINVAL, "'%s' takes no value", name);
	return set(row, of, value, err);
}

static int file_line(char *line, const struct option_set *sets, size_t n_sets, struct err *err)
{
	char *name = trim(line), *value = strchr(name, '=');

	if (!*name || *name == '#')
		return 0;
	if (value) {
		*value++ = 0;
		name = trim(name);
		value = trim(value);
	}
	return options_one(name, value, sets, n_sets, err);
}

int options_text(const char *where, const char *text, size_t size, const struct option_set *sets,
		 size_t n_sets, struct err *err)
{
	char *copy = NULL;
	unsigned int number = 0;
	int ret = 0;

	for (size_t at = 0, len; !ret && at < size; at += len + 1) {
		const char *end = memchr(text + at, '\n', size - at);

		number++;
		len = end ? (size_t)(end - text) - at : size - at;
		free(copy);
		copy = strndup(text + at, len);
		if (!copy)
			return err_set(err, -ENOMEM, "out of memory");
		if (strlen(copy) < len)
			ret = err_set(err, -EINVAL, "a NUL byte");
		else
			ret = file_line(copy, sets, n_sets, err);
		if (ret)
			err_prefix(err, "%s:%u", where, number);
	}
	free(copy);
	return ret;
}

int options_read(const char *path, char **text, size_t *size, struct err *err)
{
	FILE *f = fopen(path, "re");
	int ret = 0;

	if (!f)
		return err_set(err, -errno, "cannot open %s: %s", path, strerror(errno));
	*text = malloc(FILE_MAX + 1);
	if (!*text) {
		fclose(f);
		return err_set(err, -ENOMEM, "out of memory");
	}
	*size = fread(*text, 1, FILE_MAX + 1, f);
	if (ferror(f))
		ret = err_set(err, -errno, "cannot read %s: %s", path, strerror(errno));
	else if (*size > FILE_MAX)
		ret = err_set(err, -EFBIG, "%s has more than %d bytes", path, FILE_MAX);
	fclose(f);
	if (ret) {
		free(*text);
		*text = NULL;
	}
	return ret;
}

int options_file(const char *path, const struct option_set *sets, size_t n_sets, struct err *err)
{
	char *text;
	size_t size;
	int ret = options_read(path, &text, &size, err);

	if (ret)
		return ret;
	ret = options_text(path, text, size, sets, n_sets, err);
	free(text);
	return ret;
}

void options_help(FILE *f, const struct option_set *sets, size_t n_sets)
{
	for (size_t s = 0; s < n_sets; s++) {
		fprintf(f, "\n%s:\n", sets[s].title);
		for (size_t i = 0; i < sets[s].n; i++) {
			const struct option_row *r = &sets[s].rows[i];
			char left[64];
			int n = 0;

			if (r->letter)
				n = snprintf(left, sizeof(left), "  -%c, --%s", r->letter, r->name);
			else
				n = snprintf(left, sizeof(left), "      --%s", r->name);
			if (r->arg)
				snprintf(left + n, sizeof(left) - n, " %s", r->arg);
			fprintf(f, strlen(left) > 27 ? "%s\n%28s%s\n" : "%-28s%s%s\n", left, "",
				r->help);
		}
	}
	fprintf(f, "  -h, --help                this text\n");
}
