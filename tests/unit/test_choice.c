// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Words from a fixed set: which is found, what is said of an unknown one, and which word is suggested. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/choice.h"
#include "base/err.h"

static const char *const colours[] = { "red", "green", "blue" };

static const char *colour(unsigned int i)
{
	return colours[i];
}

static const struct choices by_name = {
	.option = "--by", .what = "colour", .names = colours, .n = 3
};
static const struct choices by_function = {
	.option = "--by", .what = "colour", .name = colour, .n = 3
};

static void test_one(void **unused)
{
	struct err err = { "" };
	unsigned int which = 9;

	(void)unused;
	assert_int_equal(choice_parse(&by_name, "red", &which, &err), 0);
	assert_int_equal(which, 0);
	assert_int_equal(choice_parse(&by_function, "blue", &which, &err), 0);
	assert_int_equal(which, 2);
	assert_string_equal(err.text, "");
	assert_int_equal(choice_parse(&by_function, "grey", &which, &err), -EINVAL);
	assert_string_equal(err.text, "--by: unknown colour 'grey'; did you mean 'green'? must be "
				      "one of red, green, blue");
	assert_int_equal(choice_parse(&by_name, "purple", &which, &err), -EINVAL);
	assert_string_equal(err.text,
			    "--by: unknown colour 'purple': must be one of red, green, blue");
	assert_int_equal(choice_parse(&by_name, "", &which, &err), -EINVAL);
	assert_string_equal(err.text, "--by: unknown colour '': must be one of red, green, blue");
	/* a name and more is another word */
	assert_int_equal(choice_parse(&by_name, "redder", &which, &err), -EINVAL);
	assert_int_equal(which, 2);
}

/* Of a long word, 100 characters are in the message. */
static void test_long(void **unused)
{
	char word[151], want[300];
	struct err err = { "" };
	unsigned int which;

	(void)unused;
	for (unsigned int n = 99; n <= 150; n++) {
		memset(word, 'x', n);
		word[n] = 0;
		assert_int_equal(choice_parse(&by_name, word, &which, &err), -EINVAL);
		snprintf(want, sizeof(want),
			 "--by: unknown colour '%.100s': must be one of red, green, blue", word);
		assert_string_equal(err.text, want);
	}
}

static void test_list(void **unused)
{
	struct err err = { "" };
	unsigned int list[3], n = 9;

	(void)unused;
	assert_int_equal(choice_list_parse(&by_name, "blue", list, &n, &err), 0);
	assert_int_equal(n, 1);
	assert_int_equal(list[0], 2);
	assert_int_equal(choice_list_parse(&by_name, "blue,red,green", list, &n, &err), 0);
	assert_int_equal(n, 3);
	assert_int_equal(list[0], 2);
	assert_int_equal(list[1], 0);
	assert_int_equal(list[2], 1);
	/* each once, where it is first */
	assert_int_equal(choice_list_parse(&by_name, "green,red,green,green,red", list, &n, &err),
			 0);
	assert_int_equal(n, 2);
	assert_int_equal(list[0], 1);
	assert_int_equal(list[1], 0);
}

/* A message about a word after the first one has its column, which begins at 1. */
static void test_list_unknown(void **unused)
{
	struct err err = { "" };
	unsigned int list[3], n;

	(void)unused;
	assert_int_equal(choice_list_parse(&by_name, "xyz,red", list, &n, &err), -EINVAL);
	assert_string_equal(err.text,
			    "--by: unknown colour 'xyz': must be one of red, green, blue");
	assert_int_equal(choice_list_parse(&by_name, "red,gren,blue", list, &n, &err), -EINVAL);
	assert_string_equal(err.text, "--by: column 5: unknown colour 'gren'; did you mean "
				      "'green'? must be one of red, green, blue");
	assert_int_equal(choice_list_parse(&by_name, "red,", list, &n, &err), -EINVAL);
	assert_string_equal(err.text,
			    "--by: column 5: unknown colour '': must be one of red, green, blue");
}

/* What is suggested for @word, of @candidates, which end with NULL. */
static const char *suggested(const char *word, const char *const *candidates)
{
	static struct suggestion s;

	suggestion_start(&s, word, strlen(word));
	assert_null(s.best);
	assert_string_equal(suggestion_text(&s), "");
	for (; *candidates; candidates++)
		suggestion_offer(&s, *candidates);
	return s.best ?: "";
}

#define suggests(word, ...) suggested(word, (const char *const[]){ __VA_ARGS__, NULL })

/* An insertion, a deletion, a replacement and a swap of neighbours are one step each. */
static void test_steps(void **unused)
{
	struct suggestion s;

	(void)unused;
	/* up to a third of the longer word, rounded up */
	assert_string_equal(suggests("perod", "period"), "period");
	assert_string_equal(suggests("perriod", "period"), "period");
	assert_string_equal(suggests("pexiod", "period"), "period");
	assert_string_equal(suggests("peroid", "period"), "period");
	assert_string_equal(suggests("xyriod", "period"), "period");
	assert_string_equal(suggests("xyziod", "period"), "");
	assert_string_equal(suggests("xyzriod", "perriod"), "");
	assert_string_equal(suggests("epiroid", "period"), "");
	/* words of one or two letters: one step */
	assert_string_equal(suggests("l", "l2"), "l2");
	assert_string_equal(suggests("l1", "l2"), "l2");
	assert_string_equal(suggests("2l", "l2"), "l2");
	assert_string_equal(suggests("ab", "l2"), "");
	assert_string_equal(suggests("l", "l23"), "");
	assert_string_equal(suggests("", "l"), "");
	/* the nearest one, and of equal ones the first */
	assert_string_equal(suggests("container", "contained", "containers", "contain"),
			    "contained");
	assert_string_equal(suggests("latncy", "lancy", "latency"), "lancy");
	assert_string_equal(suggests("perixx", "perill", "period", "perixy"), "perixy");
	suggestion_start(&s, "perod, and so on", 5);
	suggestion_offer(&s, "period");
	assert_string_equal(suggestion_text(&s), "; did you mean 'period'?");
	assert_int_equal(s.distance, 1);
}

/* A word that begins another one is one step from it, if both have three letters. */
static void test_beginnings(void **unused)
{
	(void)unused;
	assert_string_equal(suggests("con", "containers"), "containers");
	assert_string_equal(suggests("containersandmore", "con"), "con");
	assert_string_equal(suggests("co", "containers"), "");
	assert_string_equal(suggests("containers", "co"), "");
	assert_string_equal(suggests("cox", "containers"), "");
	/* the same word is nearer still */
	assert_string_equal(suggests("con", "cont", "con"), "con");
}

/* Words of more than 32 letters are not typos. */
static void test_very_long(void **unused)
{
	const char *n32 = "abcdefghijklmnopqrstuvwxyzabcdef",
		   *n33 = "abcdefghijklmnopqrstuvwxyzabcdefg",
		   *near = "abcdefghijklmnopqrstuvwxyzabxdef";

	(void)unused;
	assert_string_equal(suggests(n32, near), near);
	assert_string_equal(suggests(n33, near), "");
	assert_string_equal(suggests(n32, n33), "");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_one),	  cmocka_unit_test(test_long),
		cmocka_unit_test(test_list),	  cmocka_unit_test(test_list_unknown),
		cmocka_unit_test(test_steps),	  cmocka_unit_test(test_beginnings),
		cmocka_unit_test(test_very_long),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
