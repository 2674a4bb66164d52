// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "options.h"

#include "choice.h"
#include "num.h"
#include "trim.h"

#include <assert.h>
#include <getopt.h>

#define MAX_OPTIONS 128
#define FILE_MAX    (1 << 20)
/* above all letters: an option without a letter gets NO_LETTER + row number */
#define NO_LETTER 256
#define HELP	  (NO_LETTER + MAX_OPTIONS)
#define VERSION	  (HELP + 1)
#define LINE	  80
#define LEFT	  28 /* columns for the option itself */

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

static int store_integer(const struct option_row *row, void *to, uint64_t v)
{
	if (row->bytes == sizeof(uint64_t))
		*(uint64_t *)to = v;
	else
		*(uint32_t *)to = v;
	return 0;
}

static int store(const struct option_row *row, void *to, const char *arg, struct err *err)
{
	char name[64];
	const struct num_arg num = { name, row->what, row->min, row->max };
	const struct size_arg size = { name, row->bare, row->min, row->max };
	const struct duration_arg time = { name, 0, row->min / 1e9, row->max / 1e9 };
	const struct choices choices = { name, row->what, row->choice, row->max };
	uint64_t v = 0;

	if (row->letter)
		snprintf(name, sizeof(name), "-%c", row->letter);
	else
		snprintf(name, sizeof(name), "--%s", row->name);
	switch (row->kind) {
	case OPTION_KIND_NUMBER:
		return num_parse(&num, arg, &v, err) ?: store_integer(row, to, v);
	case OPTION_KIND_SIZE:
		return num_parse_size(&size, arg, &v, err) ?: store_integer(row, to, v);
	case OPTION_KIND_DURATION:
		return num_parse_duration(&time, arg, to, err);
	case OPTION_KIND_MODE:
		return num_parse_mode(name, arg, to, err);
	case OPTION_KIND_CHOICE:
		return choice_parse(&choices, arg, to, err);
	case OPTION_KIND_PATH:
		if (*arg != '/')
			return err_set(err, -EINVAL, "%s: invalid path '%.200s': must be absolute",
				       name, arg);
		/* fall through */
	case OPTION_KIND_TEXT:
		if (strlen(arg) >= row->bytes)
			return err_set(err, -EINVAL, "%s: '%.100s' has more than %zu characters",
				       name, arg, row->bytes - 1);
		strcpy(to, arg);
		return 0;
	case OPTION_KIND_WORD:
		if (!*arg)
			return err_set(err, -EINVAL, "%s: the value is empty", name);
		*(const char **)to = arg;
		return 0;
	case OPTION_KIND_FLAG:
		*(bool *)to = true;
	}
	return 0;
}

static int set(const struct option_row *row, const struct option_set *of, const char *arg,
	       struct err *err)
{
	if (of->skip && of->skip(of->skip_arg, row->name))
		return 0;
	if (row->set_which)
		return row->set_which(of->ctx, row->min, arg, err);
	return row->set ? row->set(of->ctx, arg, err)
			: store(row, (char *)of->ctx + row->at, arg, err);
}

/* Explain why getopt_long() rejected @what, "--name" or "--name=value". */
static int bad_long(const char *what, const struct option *longs, struct err *err)
{
	size_t len = strcspn(what, "=") - 2;
	const char *name = what + 2, *found = NULL;
	char matches[256] = "";
	struct suggestion near;
	size_t n = 0;

	suggestion_start(&near, name, len);
	for (const struct option *l = longs; l->name; l++) {
		suggestion_offer(&near, l->name);
		if (strncmp(l->name, name, len))
			continue;
		snprintf(matches + strlen(matches), sizeof(matches) - strlen(matches), "%s--%s",
			 n++ ? ", " : "", l->name);
		found = l->name;
		if (!l->name[len]) { /* exact match: ignore other names */
			n = 1;
			break;
		}
	}
	if (n > 1)
		return err_set(err, -EINVAL, "ambiguous option '--%.*s': could be %s", (int)len,
			       name, matches);
	if (n)
		return err_set(err, -EINVAL, "option '--%s' takes no value", found);
	if (near.best)
		return err_set(err, -EINVAL, "unknown option '--%.*s'; did you mean '--%s'?",
			       (int)len, name, near.best);
	return err_set(err, -EINVAL, "unknown option '--%.*s'; see --help", (int)len, name);
}

int options_parse(int argc, char **argv, const struct option_set *sets, size_t n_sets,
		  struct err *err)
{
	/* with ':' first, getopt_long() prints no messages of its own */
	char letters[2 * MAX_OPTIONS + 5] = ":hV", *l = letters + strlen(letters);
	struct option longs[MAX_OPTIONS + 3] = {};
	const struct option_row *row;
	const struct option_set *of;
	size_t n = 0;
	int c;

	if (complete_mode()) {
		complete_options(argc, argv, sets, n_sets);
		return OPTIONS_VERSION;
	}
	for (; (row = row_at(sets, n_sets, n, &of)); n++) {
		assert(n < MAX_OPTIONS); /* an option without room would be unknown */
		longs[n] = (struct option){ row->name,
					    !row->arg	       ? no_argument
					    : *row->arg == '[' ? optional_argument
							       : required_argument,
					    NULL, NO_LETTER + n };
		if (row->letter) {
			*l++ = row->letter;
			if (row->arg)
				*l++ = ':';
		}
	}
	longs[n++] = (struct option){ "help", no_argument, NULL, HELP };
	longs[n++] = (struct option){ "version", no_argument, NULL, VERSION };
	*l = 0;
	optind = 0;
	while ((c = getopt_long(argc, argv, letters, longs, NULL)) != -1) {
		const char *what = argv[optind - 1];

		if (c == 'h' || c == HELP)
			return OPTIONS_HELP;
		if (c == 'V' || c == VERSION) {
			printf("%s %s\n", program_invocation_short_name, IBSCOPE_VERSION);
			return OPTIONS_VERSION;
		}
		if (c == ':')
			return err_set(err, -EINVAL, "option '%s' needs a value; see --help", what);
		if (c == '?' && optopt && optopt < NO_LETTER)
			return err_set(err, -EINVAL, "unknown option '-%c'; see --help", optopt);
		if (c == '?')
			return bad_long(what, longs, err);
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
	int ret;

	if (!row) {
		struct suggestion near;

		suggestion_start(&near, name, strlen(name));
		for (size_t i = 0; (row = row_at(sets, n_sets, i, &of)); i++)
			suggestion_offer(&near, row->name);
		return err_set(err, -EINVAL, "unknown option '%.200s'%s", name,
			       near.best ? suggestion_text(&near)
					 : ": must be an option of --help, without the dashes");
	}
	if (row->arg && !value && *row->arg != '[')
		return err_set(err, -EINVAL, "'%s' needs a value: %s = %s", name, name, row->arg);
	if (!row->arg && value)
		return err_set(err, -EINVAL, "'%s' takes no value", name);
	ret = set(row, of, value, err);
	if (ret && row->letter) /* the message has only the letter */
		err_prefix(err, "%s", name);
	return ret;
}

static int file_line(char *line, const struct option_set *sets, size_t n_sets, struct err *err)
{
	char *name = trim(line), *value = strchr(name, '=');
	const struct option_row *row;

	if (!*name || *name == '#')
		return 0;
	if (value) {
		*value++ = 0;
		name = trim(name);
		value = trim(value);
	}
	row = options_find(name, sets, n_sets);
	if (row && row->kind == OPTION_KIND_WORD) /* it would point into the text of the file */
		return err_set(err, -EINVAL, "'%s' cannot be set in a file", name);
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
		ret = err_set(err, -EFBIG, "%s is larger than %d bytes", path, FILE_MAX);
	fclose(f);
	if (ret) {
		free(*text);
		*text = NULL;
	}
	return ret;
}

const char *options_config(int argc, char **argv)
{
	const char *found = NULL;

	for (int i = 1; i < argc && !complete_mode(); i++) {
		if (!strncmp(argv[i], "--config=", 9))
			found = argv[i] + 9;
		else if (!strcmp(argv[i], "--config") && i + 1 < argc)
			found = argv[++i];
	}
	return found;
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

/* Print the words of @text in columns LEFT to LINE; blanks and newlines only separate words. */
static void put_wrapped(FILE *f, const char *text)
{
	int column = LEFT;

	for (text += strspn(text, " \n"); *text; text += strspn(text, " \n")) {
		int n = strcspn(text, " \n");

		if (column > LEFT && column + 1 + n > LINE) {
			fprintf(f, "\n%*s", LEFT, "");
			column = LEFT;
		}
		column += fprintf(f, "%s%.*s", column > LEFT ? " " : "", n, text);
		text += n;
	}
	fputc('\n', f);
}

static void put_option(FILE *f, char letter, const char *name, const char *arg, const char *help)
{
	char left[64];
	int n;

	if (letter)
		n = snprintf(left, sizeof(left), "  -%c, --%s", letter, name);
	else
		n = snprintf(left, sizeof(left), "      --%s", name);
	if (arg)
		n += snprintf(left + n, sizeof(left) - n, "%s%s", *arg == '[' ? "" : " ", arg);
	if (n >= LEFT)
		fprintf(f, "%s\n%*s", left, LEFT, "");
	else
		fprintf(f, "%-*s", LEFT, left);
	put_wrapped(f, help);
}

void options_help(FILE *f, const struct option_set *sets, size_t n_sets)
{
	for (size_t s = 0; s < n_sets; s++) {
		if (sets[s].title)
			fprintf(f, "\n%s:\n", sets[s].title);
		for (size_t i = 0; i < sets[s].n; i++) {
			const struct option_row *r = &sets[s].rows[i];

			put_option(f, r->letter, r->name, r->arg, r->help);
		}
	}
	put_option(f, 'h', "help", NULL, "print this text and exit");
	put_option(f, 'V', "version", NULL, "print the version and exit");
}
