// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* What is remembered of files from one profile to the next: those given up, what they cost, names, and the time that is left. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

#include "naming/naming.h"
#include "naming/naming_private.h"

#define FILES_MAX 1024

/* The clock of this program stands. */
static struct timespec now = { 100, 0 };

int clock_gettime(clockid_t clock, struct timespec *out)
{
	(void)clock;
	*out = now;
	return 0;
}

static struct object file(unsigned int inode)
{
	struct object o = {
		.fd = 3, .path = "/a/b", .why = "too slow", .build_id = "id", .build_id_len = 2
	};

	o.stat.st_dev = 7;
	o.stat.st_ino = inode;
	o.stat.st_ctim.tv_sec = 1000;
	o.stat.st_ctim.tv_nsec = 5;
	return o;
}

static void test_given_up(void **unused)
{
	struct naming_memory *m = naming_memory_new();
	struct object a = file(1), other = file(1);
	const char *path, *why;
	__u32 seen = 0;

	(void)unused;
	assert_int_equal(naming_memory_n(NULL), 0);
	assert_int_equal(naming_memory_n(m), 0);
	assert_null(naming_remembered(m, &a.stat));
	assert_null(naming_remembered(NULL, &a.stat));
	assert_false(naming_memory_next(m, &seen, &path, &why));
	assert_false(naming_memory_next(NULL, &seen, &path, &why));
	naming_remember(m, &a);
	naming_remember(m, &a);
	naming_remember(NULL, &a);
	assert_int_equal(naming_memory_n(m), 1);
	assert_string_equal(naming_remembered(m, &a.stat), "too slow");
	/* a file that was changed, or another one */
	other.stat.st_ctim.tv_nsec++;
	assert_null(naming_remembered(m, &other.stat));
	other = file(1);
	other.stat.st_ctim.tv_sec++;
	assert_null(naming_remembered(m, &other.stat));
	other = file(2);
	assert_null(naming_remembered(m, &other.stat));
	other = file(1);
	other.stat.st_dev++;
	assert_null(naming_remembered(m, &other.stat));
	other = file(3);
	other.fd = -1; /* it names no file */
	naming_remember(m, &other);
	assert_int_equal(naming_memory_n(m), 1);
	assert_true(naming_memory_next(m, &seen, &path, &why));
	assert_string_equal(path, "/a/b");
	assert_string_equal(why, "too slow");
	assert_false(naming_memory_next(m, &seen, &path, &why));
	naming_memory_free(m);
	naming_memory_free(NULL);
}

/* The oldest of 1024 is forgotten. */
static void test_forgotten(void **unused)
{
	struct naming_memory *m = naming_memory_new();
	const char *path, *why;
	char text[20];
	struct object o;
	__u32 seen = 0;

	(void)unused;
	for (unsigned int i = 1; i <= FILES_MAX; i++) {
		o = file(i);
		o.path = text;
		snprintf(text, sizeof(text), "/%u", i);
		naming_remember(m, &o);
	}
	o = file(1);
	assert_non_null(naming_remembered(m, &o.stat));
	o = file(FILES_MAX);
	assert_non_null(naming_remembered(m, &o.stat));
	o = file(FILES_MAX + 1);
	naming_remember(m, &o);
	assert_non_null(naming_remembered(m, &o.stat));
	o = file(1);
	assert_null(naming_remembered(m, &o.stat));
	o = file(2);
	assert_non_null(naming_remembered(m, &o.stat));
	assert_int_equal(naming_memory_n(m), FILES_MAX + 1);
	/* who comes late sees those that are left, in order */
	assert_true(naming_memory_next(m, &seen, &path, &why));
	assert_string_equal(path, "/2");
	assert_true(naming_memory_next(m, &seen, &path, &why));
	assert_string_equal(path, "/3");
	naming_memory_free(m);
}

static void test_costs(void **unused)
{
	struct naming_memory *m = naming_memory_new();
	struct object a = file(1), other = file(1), none = file(0);
	struct naming n = { .opts.memory = m };

	(void)unused;
	a.naming = other.naming = &n;
	a.stat.st_size = 1000;
	assert_true(naming_cost(m, &a) == 0);
	assert_true(fabs(object_cost(&a) - 1e-5) < 1e-9); /* 10 ns a byte */
	a.spent_ns = 2500000000;
	naming_remember_cost(m, &a);
	naming_remember_cost(NULL, &a);
	assert_true(naming_cost(m, &a) == 2.5);
	assert_true(object_cost(&a) == 2.5);
	assert_true(naming_cost(NULL, &a) == 0);
	/* as seen in another root it may have other names, and so other costs */
	other.root.id = 5;
	assert_true(naming_cost(m, &other) == 0);
	none.spent_ns = 1000000000;
	naming_remember_cost(m, &none);
	assert_true(naming_cost(m, &none) == 0);
	/* of one tenant */
	other.stat.st_uid = 9;
	assert_int_equal(object_owner(&other), 5);
	other.root.id = 0;
	assert_int_equal(object_owner(&other), 9);
	naming_memory_free(m);
}

/* A twentieth of the time, and at most @most_s at once, with which it begins. */
static void test_allowance(void **unused)
{
	struct naming_memory *m = naming_memory_new();
	struct naming n = { .opts = { .memory = m, .cpu_s = 3 } };

	(void)unused;
	assert_true(naming_allowance(m, 3) == 3);
	naming_spend(m, 2);
	naming_spend(NULL, 2);
	assert_true(naming_allowance(m, 3) == 1);
	now.tv_sec += 10;
	assert_true(fabs(naming_allowance(m, 3) - 1.5) < 1e-6);
	now.tv_sec += 1000;
	assert_true(naming_allowance(m, 3) == 3);
	naming_spend(m, 2.5);
	/* what takes a quarter of a second is not asked for */
	assert_true(naming_affords(&n, .25));
	assert_true(naming_affords(&n, .5));
	assert_false(naming_affords(&n, .51));
	naming_spend(m, 2.5);
	assert_true(naming_affords(&n, .25));
	assert_false(naming_affords(&n, .26));
	n.opts.memory = NULL;
	assert_true(naming_affords(&n, 1e6));
	naming_memory_free(m);
}

static bool recalls(const struct naming_memory *m, const struct object *o, __u64 offset,
		    const char *name, const char *mangled)
{
	const char *texts[2] = { "?", "?" };

	if (!naming_recall(m, o, offset, texts))
		return false;
	if (name)
		assert_string_equal(texts[0], name);
	else
		assert_null(texts[0]);
	if (mangled)
		assert_string_equal(texts[1], mangled);
	else
		assert_null(texts[1]);
	return true;
}

static void test_names(void **unused)
{
	struct naming_memory *m = naming_memory_new();
	struct object a = file(1), other = file(1), none = file(0);

	(void)unused;
	assert_false(recalls(m, &a, 16, NULL, NULL));
	naming_keep(m, &a, 16, (const char *const[]){ "f()", "_Z1fv" });
	naming_keep(m, &a, 32, (const char *const[]){ "g", NULL });
	naming_keep(m, &a, 48, (const char *const[]){ NULL, NULL });
	assert_true(recalls(m, &a, 16, "f()", "_Z1fv"));
	assert_true(recalls(m, &a, 32, "g", NULL));
	assert_true(recalls(m, &a, 48, NULL, NULL)); /* it is known that it has none */
	assert_false(recalls(m, &a, 64, NULL, NULL));
	assert_false(recalls(NULL, &a, 16, NULL, NULL));
	naming_keep(m, &a, 16, (const char *const[]){ "h", NULL });
	assert_true(recalls(m, &a, 16, "h", NULL));
	/* a file that was replaced */
	other.build_id[0]++;
	assert_false(recalls(m, &other, 16, NULL, NULL));
	other = file(1);
	other.build_id_len = 1;
	assert_false(recalls(m, &other, 16, NULL, NULL));
	other = file(1);
	other.root.id = 5;
	assert_false(recalls(m, &other, 16, NULL, NULL));
	naming_keep(m, &none, 16, (const char *const[]){ "n", NULL });
	assert_false(recalls(m, &none, 16, NULL, NULL));
	naming_keep(NULL, &a, 16, (const char *const[]){ "n", NULL });
	naming_memory_free(m);
}

/* Both names have 448 bytes with their ends; longer ones are not kept. */
static void test_long_names(void **unused)
{
	struct naming_memory *m = naming_memory_new();
	struct object a = file(1);
	char name[448], mangled[20] = "_Z456789";

	(void)unused;
	memset(name, 'x', sizeof(name));
	name[438] = 0;
	naming_keep(m, &a, 16, (const char *const[]){ name, mangled });
	assert_true(recalls(m, &a, 16, name, mangled));
	name[438] = 'x';
	name[439] = 0;
	naming_keep(m, &a, 32, (const char *const[]){ name, mangled });
	assert_false(recalls(m, &a, 32, NULL, NULL));
	naming_memory_free(m);
}

static void test_attempts(void **unused)
{
	struct object o = file(1);
	char why[8] = "?";

	(void)unused;
	assert_false(object_is_other(&o, why, sizeof(why)));
	assert_string_equal(why, "?");
	o.other = true;
	assert_true(object_is_other(&o, why, sizeof(why)));
	assert_string_equal(why, "too slo");
	o.deferred = o.is_last = true;
	o.spent_ns = 5;
	assert_true(object_deferred(&o));
	object_attempt(&o);
	assert_false(object_deferred(&o));
	assert_false(o.is_last);
	assert_int_equal(o.spent_ns, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_given_up), cmocka_unit_test(test_forgotten),
		cmocka_unit_test(test_costs),	 cmocka_unit_test(test_allowance),
		cmocka_unit_test(test_names),	 cmocka_unit_test(test_long_names),
		cmocka_unit_test(test_attempts),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
