// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Tables of options: what command lines and files set, what is refused, the help, and completion. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/err.h"
#include "base/options.h"

#include <unistd.h>

enum colour { RED, GREEN, BLUE };

static const char *colour_name(unsigned int i)
{
	return (const char *const[]){ "red", "green", "blue" }[i];
}

struct target {
	bool quiet;
	uint32_t n;
	uint64_t big;
	uint64_t limit;
	double interval;
	mode_t mode;
	enum colour colour;
	char label[9];
	char dir[16];
	const char *word;
	const char *list; /* of set_list() */
	unsigned int which, calls;
	bool skipped;
};

static int set_list(void *ctx, const char *arg, struct err *err)
{
	struct target *t = ctx;

	t->calls++;
	if (arg && !strcmp(arg, "?"))
		return err_set(err, -EINVAL, "--list: must be one of apple, pear, plum");
	t->list = arg ?: "none";
	return 0;
}

static int set_which(void *ctx, unsigned int which, const char *arg, struct err *err)
{
	struct target *t = ctx;

	(void)err;
	t->which = which;
	t->list = arg;
	return 0;
}

static const struct option_row main_rows[] = {
	{ "quiet", 'q', NULL, "print nothing", OPTION_FLAG(struct target, quiet) },
	{ "number", 'n', "N", "number of rows; the default is 3",
	  OPTION_NUMBER(struct target, n, 2, 100), .what = "rows" },
	{ "big", 0, "N", "large number", OPTION_NUMBER(struct target, big, 0, 1ull << 40) },
	{ "limit", 0, "SIZE", "memory limit", OPTION_SIZE(struct target, limit, 0, 4096, 1 << 30) },
	{ "interval", 'i', "TIME", "time between rows",
	  OPTION_DURATION(struct target, interval, .5, 3600) },
	{ "mode", 0, "MODE", "mode of the file", OPTION_MODE(struct target, mode) },
	{ "colour", 0, "COLOUR", "colour of rows",
	  OPTION_CHOICE(struct target, colour, "colour", colour_name, 3) },
};
static const struct option_row more_rows[] = {
	{ "label", 'l', "TEXT", "label of rows", OPTION_TEXT(struct target, label) },
	{ "state-dir", 0, "DIR", "directory of the state", OPTION_PATH(struct target, dir) },
	{ "word", 0, "WORD", "any word", OPTION_WORD(struct target, word) },
	{ "list", 0, "LIST", "list of fruit", set_list },
	{ "maybe", 'm', "[=X]", "value that may be absent", OPTION_WHICH(set_which, 7) },
};

#define N_SETS 2

static void make_sets(struct target *t, struct option_set sets[N_SETS])
{
	*t = (struct target){ .n = 3 };
	sets[0] = (struct option_set){ "Main options", main_rows,
				       sizeof(main_rows) / sizeof(*main_rows), t };
	sets[1] = (struct option_set){ "Others", more_rows, sizeof(more_rows) / sizeof(*more_rows),
				       t };
}

static int parse_all(struct target *t, struct err *err, int argc, const char *const *words)
{
	struct option_set sets[N_SETS];
	char *argv[16] = { "prog" };

	memcpy(argv + 1, words, argc * sizeof(*words));
	make_sets(t, sets);
	*err = (struct err){ "" };
	return options_parse(argc + 1, argv, sets, N_SETS, err);
}

#define parse(t, err, ...)                                                               \
	parse_all(t, err, sizeof((const char *const[]){ __VA_ARGS__ }) / sizeof(char *), \
		  (const char *const[]){ __VA_ARGS__ })

/* Each kind, from the first and the second set, long and short. */
static void test_kinds(void **unused)
{
	struct target t;
	struct err err;

	(void)unused;
	assert_int_equal(parse(&t, &err, "-qn", "100", "--big", "1099511627776", "--limit=8K",
			       "-i2", "rest"),
			 0);
	assert_true(t.quiet);
	assert_int_equal(t.n, 100);
	assert_int_equal(t.big, 1ull << 40);
	assert_int_equal(t.limit, 8192);
	assert_true(t.interval == 2);
	assert_int_equal(optind, 7);
	assert_int_equal(parse(&t, &err, "--mode", "640", "--colour", "blue", "-l", "12345678",
			       "--state-dir=/var/lib/12345", "--word", "--x", "--list", "y"),
			 0);
	assert_false(t.quiet);
	assert_int_equal(t.n, 3);
	assert_int_equal(t.mode, 0640);
	assert_int_equal(t.colour, BLUE);
	assert_string_equal(t.label, "12345678");
	assert_string_equal(t.dir, "/var/lib/12345");
	assert_string_equal(t.word, "--x");
	assert_string_equal(t.list, "y");
	assert_int_equal(t.calls, 1);
	/* the beginning of a name is enough if it begins no other one */
	assert_int_equal(parse(&t, &err, "--qu", "--n=2"), 0);
	assert_true(t.quiet);
	assert_int_equal(t.n, 2);
	assert_string_equal(err.text, "");
}

/* An argument in brackets is optional: "--maybe=x", "--maybe". */
static void test_optional(void **unused)
{
	struct target t;
	struct err err;

	(void)unused;
	assert_int_equal(parse(&t, &err, "--maybe=x"), 0);
	assert_int_equal(t.which, 7);
	assert_string_equal(t.list, "x");
	assert_int_equal(parse(&t, &err, "--maybe", "x"), 0);
	assert_int_equal(t.which, 7);
	assert_null(t.list);
}

static void refused(const char *want, int argc, const char *const *words)
{
	struct target t;
	struct err err;

	assert_int_equal(parse_all(&t, &err, argc, words), -EINVAL);
	assert_string_equal(err.text, want);
}

#define refuses(want, ...)                                                           \
	refused(want, sizeof((const char *const[]){ __VA_ARGS__ }) / sizeof(char *), \
		(const char *const[]){ __VA_ARGS__ })

static void test_unknown(void **unused)
{
	(void)unused;
	refuses("unknown option '-x'; see --help", "-x");
	refuses("unknown option '-x'; see --help", "-qx");
	refuses("unknown option '--zzzzzz'; see --help", "--zzzzzz");
	refuses("unknown option '--zzzzzz'; see --help", "--zzzzzz=quiet");
	refuses("unknown option '--quite'; did you mean '--quiet'?", "--quite=1");
	refuses("unknown option '--versoin'; did you mean '--version'?", "--versoin");
	refuses("ambiguous option '--l': could be --limit, --label, --list", "--l");
	refuses("ambiguous option '--li': could be --limit, --list", "--li=1");
	refuses("option '--quiet' takes no value", "--quiet=1");
	refuses("option '--quiet' takes no value", "--qui=1");
	refuses("option '--number' needs a value; see --help", "--number");
	refuses("option '-n' needs a value; see --help", "-n");
}

/* The caller prints the message; getopt() prints none. */
static void test_silent(void **unused)
{
	const int before = dup(STDERR_FILENO);
	FILE *f = tmpfile();
	struct target t;
	struct err err;

	(void)unused;
	assert_non_null(f);
	dup2(fileno(f), STDERR_FILENO);
	parse(&t, &err, "--zzzzzz");
	parse(&t, &err, "-n");
	parse(&t, &err, "-x");
	dup2(before, STDERR_FILENO);
	close(before);
	fseek(f, 0, SEEK_END);
	assert_int_equal(ftell(f), 0);
	fclose(f);
}

static void test_invalid(void **unused)
{
	(void)unused;
	/* an option is named by its letter, if it has one */
	refuses("-l: '123456789' has more than 8 characters", "--label", "123456789");
	refuses("--state-dir: invalid path 'tmp': must be absolute", "--state-dir", "tmp");
	refuses("--state-dir: '/345678901234567' has more than 15 characters", "--state-dir",
		"/345678901234567");
	refuses("--word: the value is empty", "--word", "");
	refuses("--colour: unknown colour 'gren'; did you mean 'green'? must be one of red, green, "
		"blue",
		"--colour", "gren");
	refuses("--list: must be one of apple, pear, plum", "--list", "?");
}

static void test_ranges(void **unused)
{
	struct target t;
	struct err err;

	(void)unused;
	assert_int_equal(parse(&t, &err, "-n", "1"), -ERANGE);
	assert_int_equal(strncmp(err.text, "-n: ", 4), 0);
	assert_int_equal(t.n, 3);
	assert_int_equal(parse(&t, &err, "-n", "101"), -ERANGE);
	assert_int_equal(parse(&t, &err, "--limit", "4095"), -ERANGE);
	assert_int_equal(strncmp(err.text, "--limit: ", 9), 0);
	assert_int_equal(parse(&t, &err, "--limit", "4096"), 0);
	assert_int_equal(parse(&t, &err, "-i", "499ms"), -ERANGE);
	assert_int_equal(parse(&t, &err, "-i", "500ms"), 0);
	assert_int_equal(parse(&t, &err, "-i", "3601"), -ERANGE);
}

static void test_help_and_version(void **unused)
{
	struct target t;
	struct err err;

	(void)unused;
	assert_int_equal(parse(&t, &err, "-q", "-h", "--zzz"), OPTIONS_HELP);
	assert_true(t.quiet);
	assert_int_equal(parse(&t, &err, "--help"), OPTIONS_HELP);
	assert_int_equal(parse(&t, &err, "-V"), OPTIONS_VERSION);
	assert_int_equal(parse(&t, &err, "--version"), OPTIONS_VERSION);
}

/* --- files --- */

static int text_of(struct target *t, struct err *err, const char *text)
{
	struct option_set sets[N_SETS];

	make_sets(t, sets);
	*err = (struct err){ "" };
	return options_text("file", text, strlen(text), sets, N_SETS, err);
}

static void test_text(void **unused)
{
	struct target t;
	struct err err;

	(void)unused;
	assert_int_equal(text_of(&t, &err,
				 "# comment = 1\n\n  quiet  \n number=5\n\tlabel =  a = b "
				 "\nmaybe\nstate-dir=/"),
			 0);
	assert_true(t.quiet);
	assert_int_equal(t.n, 5);
	assert_string_equal(t.label, "a = b");
	assert_int_equal(t.which, 7);
	assert_string_equal(t.dir, "/");
	/* the last line counts without a newline */
	assert_int_equal(text_of(&t, &err, "quiet\nnumber = 6"), 0);
	assert_int_equal(t.n, 6);
	assert_int_equal(text_of(&t, &err, ""), 0);
	assert_int_equal(text_of(&t, &err, "\n"), 0);
	assert_string_equal(err.text, "");
}

static void text_refused(const char *want, const char *text)
{
	struct target t;
	struct err err;

	assert_true(text_of(&t, &err, text) < 0);
	assert_string_equal(err.text, want);
}

/* A message has the name of the file and the number of the line; what follows the line is not read. */
static void test_text_refused(void **unused)
{
	struct option_set sets[N_SETS];
	struct target t;
	struct err err;

	(void)unused;
	text_refused("file:2: unknown option 'nummer'; did you mean 'number'?",
		     "quiet\nnummer = 5\nlist = a\n");
	text_refused(
		"file:1: unknown option 'zzzzzz': must be an option of --help, without the dashes",
		"zzzzzz");
	text_refused("file:3: 'number' needs a value: number = N", "quiet\n\nnumber\n");
	text_refused("file:1: 'quiet' takes no value", "quiet = 1\n");
	/* what would point into the text, as that of `config` */
	text_refused("file:2: 'word' cannot be set in a file", "quiet\nword = x\n");
	text_refused("file:1: 'word' cannot be set in a file", "word =\n");
	text_refused("file:1: 'word' cannot be set in a file", "word\n");
	text_refused("file:1: label: -l: '123456789' has more than 8 characters",
		     "label=123456789");
	assert_int_equal(text_of(&t, &err, "zzzzzz\nlist = a\n"), -EINVAL);
	assert_int_equal(t.calls, 0);
	make_sets(&t, sets);
	assert_int_equal(options_text("file", "quiet\nword=a\0b\n", 15, sets, N_SETS, &err),
			 -EINVAL);
	assert_string_equal(err.text, "file:2: a NUL byte");
}

static bool is_number(void *arg, const char *name)
{
	*(bool *)arg = true;
	return !strcmp(name, "number");
}

/* What is skipped is known, but changes nothing. */
static void test_skip(void **unused)
{
	struct option_set sets[N_SETS];
	struct target t;
	struct err err = { "" };

	(void)unused;
	make_sets(&t, sets);
	sets[0].skip = is_number;
	sets[0].skip_arg = &t.skipped;
	assert_int_equal(options_text("file", "number=1000\nquiet\n", 18, sets, N_SETS, &err), 0);
	assert_true(t.skipped);
	assert_int_equal(t.n, 3);
	assert_true(t.quiet);
	assert_ptr_equal(options_find("number", sets, N_SETS), &main_rows[1]);
	assert_ptr_equal(options_find("label", sets, N_SETS), &more_rows[0]);
	assert_ptr_equal(options_find("maybe", sets, N_SETS), &more_rows[4]);
	assert_null(options_find("mayb", sets, N_SETS));
	assert_null(options_find("maybe", sets, 1));
}

#define MIB (1 << 20)

/* A file has at most 1 MiB. */
static void test_file(void **unused)
{
	char path[] = "/tmp/test_options-XXXXXX", want[100], *text;
	const int fd = mkstemp(path);
	struct option_set sets[N_SETS];
	struct target t;
	struct err err;
	size_t size;

	(void)unused;
	assert_true(fd >= 0);
	assert_int_equal(write(fd, "quiet\nnumber = 7\nzzzzzz\n", 24), 24);
	make_sets(&t, sets);
	assert_int_equal(options_file(path, sets, N_SETS, &err), -EINVAL);
	snprintf(want, sizeof(want), "%s:3: unknown option 'zzzzzz'", path);
	assert_int_equal(strncmp(err.text, want, strlen(want)), 0);
	assert_int_equal(t.n, 7);
	assert_int_equal(ftruncate(fd, 17), 0);
	make_sets(&t, sets);
	assert_int_equal(options_file(path, sets, N_SETS, &err), 0);
	assert_true(t.quiet);
	assert_int_equal(options_read(path, &text, &size, &err), 0);
	assert_int_equal(size, 17);
	assert_memory_equal(text, "quiet\nnumber = 7\n", 17);
	free(text);
	assert_int_equal(ftruncate(fd, MIB), 0);
	assert_int_equal(options_read(path, &text, &size, &err), 0);
	assert_int_equal(size, MIB);
	free(text);
	assert_int_equal(ftruncate(fd, MIB + 1), 0);
	assert_int_equal(options_read(path, &text, &size, &err), -EFBIG);
	assert_null(text);
	snprintf(want, sizeof(want), "%s is larger than 1048576 bytes", path);
	assert_string_equal(err.text, want);
	close(fd);
	unlink(path);
	assert_int_equal(options_file(path, sets, N_SETS, &err), -ENOENT);
	snprintf(want, sizeof(want), "cannot open %s: No such file or directory", path);
	assert_string_equal(err.text, want);
	assert_int_equal(options_read("/tmp", &text, &size, &err), -EISDIR);
	assert_string_equal(err.text, "cannot read /tmp: Is a directory");
}

/* The last --config counts; its value may follow. */
static void test_config(void **unused)
{
	char *words[] = { "--config", "--config", "a", "--configs=x", "--config=b", "--config" };

	(void)unused;
	assert_null(options_config(1, words)); /* the first word is the program */
	assert_null(options_config(2, words));
	assert_string_equal(options_config(3, words), "a");
	assert_string_equal(options_config(4, words), "a");
	assert_string_equal(options_config(5, words), "b");
	assert_string_equal(options_config(6, words), "b");
}

/* --- what is printed --- */

static const struct option_row help_rows[] = {
	{ "letter", 'l', "ARG", "short help", set_list },
	{ "none", 0, NULL, "two\n  words", set_list },
	{ "maybe", 0, "[=X]", "", set_list },
	{ "eighteen-letters", 0, "A", "fits in 27 columns", set_list },
	{ "nineteen-letters-x", 0, "A", "does not", set_list },
	{ "long", 0, NULL, "1234567890 234567890 234567890 234567890 234567890 2 next", set_list },
	{ "long", 0, NULL, "1234567890 234567890 234567890 234567890 234567890 23 next", set_list },
};

/* Text is in columns 29 to 80; a longer option has it on the next line. */
static void test_help(void **unused)
{
	struct target t;
	const struct option_set sets[] = { { "Title", help_rows, 3, &t },
					   { NULL, help_rows + 3, 4, &t } };
	char *text;
	size_t size;
	FILE *f = open_memstream(&text, &size);

	(void)unused;
	options_help(f, sets, 2);
	fclose(f);
	assert_string_equal(
		text,
		"\nTitle:\n"
		"  -l, --letter ARG          short help\n"
		"      --none                two words\n"
		"      --maybe[=X]           \n"
		"      --eighteen-letters A  fits in 27 columns\n"
		"      --nineteen-letters-x A\n"
		"                            does not\n"
		"      --long                1234567890 234567890 234567890 234567890 234567890 2\n"
		"                            next\n"
		"      --long                1234567890 234567890 234567890 234567890 234567890\n"
		"                            23 next\n"
		"  -h, --help                print this text and exit\n"
		"  -V, --version             print the version and exit\n");
	free(text);
}

/* What options_parse() prints for completion of the last of @words. */
static const char *completed(const char *mode, int argc, const char *const *words)
{
	static char said[4096];
	FILE *f = tmpfile();
	const int before = dup(STDOUT_FILENO);
	struct target t;
	struct err err;
	size_t n;
	int ret;

	assert_non_null(f);
	fflush(stdout);
	dup2(fileno(f), STDOUT_FILENO);
	setenv("IBSCOPE_COMPLETE", mode, 1);
	ret = parse_all(&t, &err, argc, words);
	unsetenv("IBSCOPE_COMPLETE");
	fflush(stdout);
	dup2(before, STDOUT_FILENO);
	close(before);
	assert_int_equal(ret, OPTIONS_VERSION);
	rewind(f);
	n = fread(said, 1, sizeof(said) - 1, f);
	said[n] = 0;
	fclose(f);
	return said;
}

#define completes(mode, ...)                                                           \
	completed(mode, sizeof((const char *const[]){ __VA_ARGS__ }) / sizeof(char *), \
		  (const char *const[]){ __VA_ARGS__ })

static void test_complete_values(void **unused)
{
	(void)unused;
	assert_string_equal(completes("1", "--colour", "r"), "red\t\n");
	assert_string_equal(completes("1", "--colour", ""), "red\t\ngreen\t\nblue\t\n");
	assert_string_equal(completes("1", "--list", "p"), "pear\t\nplum\t\n");
	assert_string_equal(completes("1", "--list", "apple,p"), "apple,pear\t\napple,plum\t\n");
	assert_string_equal(completes("1", "--state-dir", ""), ":dirs\n");
	/* no value follows these */
	assert_string_equal(completes("1", "--quiet", ""), ":files\n");
	assert_string_equal(completes("1", "--maybe", ""), ":files\n");
	assert_string_equal(completes("1", "-l", ""), "");
	assert_string_equal(completes("1", "-x", ""), ":files\n");
	assert_string_equal(completes("1", "-qx", ""), ":files\n");
	assert_string_equal(completes("1", ""), ":files\n");
	assert_string_equal(completes("1", "list", "p"), ":files\n");
}

static void test_complete_names(void **unused)
{
	(void)unused;
	assert_string_equal(
		completes("1", "--l"),
		"--limit\tmemory limit\n--label\tlabel of rows\n--list\tlist of fruit\n");
	/* the first clause of the help */
	assert_string_equal(completes("1", "--nu"), "--number\tnumber of rows\n");
	assert_string_equal(completes("1", "-q", "--ver"), "--version\tprint the version\n");
	assert_string_equal(completes("1", "--h"), "--help\tprint the options\n");
	/* as `ctl set` and `ctl unset` take them */
	assert_string_equal(completes("set", "l"),
			    "limit=\tmemory limit\nlabel=\tlabel of rows\nlist=\tlist of fruit\n");
	assert_string_equal(completes("set", "m"),
			    "mode=\tmode of the file\nmaybe\tvalue that may be absent\n");
	assert_string_equal(completes("set", "qu"), "quiet\tprint nothing\n");
	assert_string_equal(completes("unset", "li"), "limit\tmemory limit\nlist\tlist of fruit\n");
	assert_string_equal(completes("set", "he"), "");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_kinds),
		cmocka_unit_test(test_optional),
		cmocka_unit_test(test_unknown),
		cmocka_unit_test(test_silent),
		cmocka_unit_test(test_invalid),
		cmocka_unit_test(test_ranges),
		cmocka_unit_test(test_help_and_version),
		cmocka_unit_test(test_text),
		cmocka_unit_test(test_text_refused),
		cmocka_unit_test(test_skip),
		cmocka_unit_test(test_file),
		cmocka_unit_test(test_config),
		cmocka_unit_test(test_help),
		cmocka_unit_test(test_complete_values),
		cmocka_unit_test(test_complete_names),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
