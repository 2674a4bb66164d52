// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* What a terminal gets: text that fits as it is, the rest through a pager; lines of words are broken between words. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/err.h"
#include "pseudo_terminal.h"
#include "view/pager.h"

#include <signal.h>
#include <sys/wait.h>

#define MARKS "sed 's/^/P:/'" /* a pager that marks each line */

static struct winsize size;
static char said[1 << 18];

static int set_up(void **state)
{
	(void)state;
	size = (struct winsize){ .ws_row = 24, .ws_col = 80 };
	unsetenv("PAGER");
	unsetenv("LESS");
	unsetenv("LESSSECURE");
	unsetenv("SUDO_UID");
	setenv("IBSCOPE_PAGER", MARKS, 1);
	return 0;
}

struct printer {
	const char *text;
	bool interrupt; /* itself, behind the text */
};

static void print(const struct printer *a)
{
	struct pager p;
	struct err err;
	FILE *f = pager_open(&p, stdout);

	fputs(a->text, f);
	if (pager_close(&p, &err))
		_exit(3);
	if (a->interrupt)
		raise(SIGINT);
	_exit(0);
}

/* Return: its wait status. */
static int run(const struct printer *a)
{
	const struct pseudo_terminal t = pseudo_terminal_open(&size);
	char *to = said;
	size_t n = 0;
	ssize_t got;
	int status;
	pid_t pid;

	fflush(stdout);
	pid = fork();
	if (!pid) {
		pseudo_terminal_take(&t);
		print(a);
	}
	close(t.theirs);
	while ((got = read(t.ours, said + n, sizeof(said) - 1 - n)) > 0)
		n += got;
	said[n] = 0;
	for (const char *from = said; *from; from++)
		if (*from != '\r')
			*to++ = *from;
	*to = 0;
	close(t.ours);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	return status;
}

static const char *shown(const char *text)
{
	assert_int_equal(run(&(struct printer){ .text = text }), 0);
	return said;
}

static void check(const char *text, const char *want)
{
	assert_string_equal(shown(text), want);
}

static bool is_paged(const char *text)
{
	return !strncmp(shown(text), "P:", 2);
}

/* @n lines like @line */
static const char *lines(int n, const char *line)
{
	static char text[1 << 17];
	char *at = text;

	for (int i = 0; i < n; i++)
		at += sprintf(at, "%s\n", line);
	return text;
}

/* --- does it fit? --- */

static void test_height(void **state)
{
	(void)state;
	/* one line is for the prompt */
	assert_false(is_paged(lines(23, " x")));
	assert_true(is_paged(lines(24, " x")));
	assert_string_equal(said, lines(24, "P: x"));
	size.ws_row = 5;
	assert_false(is_paged(lines(4, " x")));
	assert_true(is_paged(lines(5, " x")));
	/* a terminal that does not say its size has 24 lines of 80 columns */
	size = (struct winsize){};
	assert_false(is_paged(lines(23, " x")));
	assert_true(is_paged(lines(24, " x")));
}

/* Lines that the terminal breaks count as many; colours take no columns, other characters one or two. */
static void test_width(void **state)
{
	char line[400];

	(void)state;
	size.ws_row = 5;
	size.ws_col = 20;
	snprintf(line, sizeof(line), " %018d", 0);
	assert_false(is_paged(lines(4, line)));
	snprintf(line, sizeof(line), " %019d", 0);
	assert_false(is_paged(lines(4, line)));
	snprintf(line, sizeof(line), " %020d", 0);
	assert_false(is_paged(lines(2, line)));
	assert_true(is_paged(lines(3, line)));
	snprintf(line, sizeof(line), " %039d", 0);
	assert_false(is_paged(lines(2, line)));
	snprintf(line, sizeof(line), " %040d", 0);
	assert_false(is_paged(lines(1, line)));
	assert_true(is_paged(lines(2, line)));
	snprintf(line, sizeof(line), "\033[31m %019d\033[0m", 0);
	assert_false(is_paged(lines(4, line)));
	/* nine of two columns each, and one more */
	assert_false(is_paged(lines(4, " 漢漢漢漢漢漢漢漢漢")));
	assert_true(is_paged(lines(4, " 漢漢漢漢漢漢漢漢漢漢")));
	assert_false(is_paged(lines(4, " äöüäöüäöüäöüäöüäöü")));
	/* a colour that is cut */
	assert_false(is_paged("\033[31"));
}

/* --- which pager --- */

static void test_choice(void **state)
{
	const char *text = lines(30, " x");

	(void)state;
	setenv("PAGER", "sed 's/^/Q:/'", 1);
	assert_true(is_paged(text));
	unsetenv("IBSCOPE_PAGER");
	assert_memory_equal(shown(lines(30, " x")), "Q: x", 4);
	setenv("IBSCOPE_PAGER", "", 1);
	check(lines(30, " x"), lines(30, " x"));
	setenv("IBSCOPE_PAGER", "cat", 1);
	check(lines(30, " x"), lines(30, " x"));
	/* one that fails has shown nothing */
	setenv("IBSCOPE_PAGER", "false", 1);
	check(lines(30, " x"), lines(30, " x"));
	setenv("IBSCOPE_PAGER", "exit 0", 1);
	for (int i = 0; i < 20; i++) /* before or after the text is written */
		check(lines(30, " x"), "");
	/* it may exit before it has read everything */
	check(lines(10000, " 0123456789"), "");
}

static void test_environment(void **state)
{
	(void)state;
	setenv("IBSCOPE_PAGER", "echo \"$LESS,$LESSSECURE\"", 1);
	check(lines(30, " x"), "FRX,\n");
	setenv("LESS", "M", 1);
	check(lines(30, " x"), "M,\n");
	setenv("SUDO_UID", "1000", 1);
	check(lines(30, " x"), "M,1\n");
}

/* Keys that interrupt are the pager's; behind it they are this program's again. */
static void test_signals(void **state)
{
	int status;

	(void)state;
	setenv("IBSCOPE_PAGER",
	       "read x; kill -INT $PPID; kill -QUIT $PPID; kill -PIPE $PPID; " MARKS, 1);
	assert_true(is_paged(lines(30, " x")));
	status = run(&(struct printer){ .text = lines(30, " x"), .interrupt = true });
	assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGINT);
}

/* A file gets the text as it is. */
static void test_file(void **state)
{
	FILE *f = tmpfile();
	char text[200] = "";
	struct pager p;
	struct err err;

	(void)state;
	assert_ptr_equal(pager_open(&p, f), f);
	fputs(lines(30, "x"), f);
	assert_int_equal(pager_close(&p, &err), 0);
	rewind(f);
	assert_int_equal(fread(text, 1, sizeof(text) - 1, f), 60);
	assert_string_equal(text, lines(30, "x"));
	fclose(f);
}

/* --- lines of words --- */

#define W50 "one two three four five six seven eight nine ten50"

static void test_words(void **state)
{
	(void)state;
	size.ws_col = 60;
	/* 60 columns fit */
	check(W50 " more is60\n", W50 " more is60\n");
	check(W50 " more isn61\n", W50 " more\n  isn61\n");
	check(W50 " more isn61", W50 " more\n  isn61\n");
	/* behind a label */
	check("samples   1,234 of them are more than so many words, as it seems\n",
	      "samples   1,234 of them are more than so many words, as it\n          seems\n");
	check("samples!  1,234 of them are more than so many words, as it seems\n",
	      "samples!  1,234 of them are more than so many words, as it\n          seems\n");
	check("samples!! 1,234 of them are more than so many words, as it seems\n",
	      "samples!! 1,234 of them are more than so many words, as it\n  seems\n");
	/* figures, and words */
	check("12 samples of a function that is so long that it has no room left\n",
	      "12 samples of a function that is so long that it has no room\n  left\n");
	check("3x as many samples as there were before, of a function of a name\n",
	      "3x as many samples as there were before, of a function of a\n  name\n");
}

/* Tables, code, commands to be copied and what has colours stay as they are. */
static void test_tables(void **state)
{
	static const char *const as_is[] = {
		" name and columns of a table that is wider than the terminal is",
		"1,234  mov 0x8(%rax),%rdi and more of it, so that it is too wide",
		"12 4567 are the figures of a line of code, which also is too wide",
		"12 Mov is not a word of a sentence, is it, as it begins like that",
		"12-34 are figures, not words of a sentence, and this is too wide",
		"Next: ibscope report --by symbol,src a-file-with-a-rather-long-name",
		"words with \033[31mcolours\033[0m and more of them, until it is too wide",
	};
	char text[128];

	(void)state;
	size.ws_col = 60;
	for (size_t i = 0; i < sizeof(as_is) / sizeof(*as_is); i++) {
		snprintf(text, sizeof(text), "%s\n", as_is[i]);
		check(text, text);
	}
	check("a\n\nb\n", "a\n\nb\n");
}

#define T(f) cmocka_unit_test_setup(f, set_up)

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(test_height),	 T(test_width), T(test_choice), T(test_environment),
		T(test_signals), T(test_file),	T(test_words),	T(test_tables),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
