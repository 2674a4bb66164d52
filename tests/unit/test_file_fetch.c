// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Debug files of a server, which is a directory here. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include <dlfcn.h>
#include <errno.h>
#include <unistd.h>

#include "naming/files.h"
#include "tree.h"

#define ELF_HEAD "\177ELF\2\1\1 and more"

static int set_up(void **state)
{
	char text[128];

	new_root(state);
	snprintf(text, sizeof(text), "file://%s/server", root);
	setenv("DEBUGINFOD_URLS", text, 1);
	snprintf(text, sizeof(text), "%s/cache", root);
	setenv("DEBUGINFOD_CACHE_PATH", text, 1);
	put_file("/server/buildid/0123abcd/debuginfo", ELF_HEAD);
	put_file("/server/buildid/0123abce/debuginfo", "text");
	return 0;
}

static void test_fetch(void **state)
{
	char text[64] = "";
	int fd;

	(void)state;
	if (!dlopen("libdebuginfod.so.1", RTLD_LAZY)) {
		puts("libdebuginfod is not installed");
		skip();
	}
	for (int again = 0; again < 2; again++) { /* then from the cache */
		fd = file_fetch("0123abcd");
		assert_true(fd >= 0);
		assert_true(pread(fd, text, sizeof(text) - 1, 0) > 0);
		assert_string_equal(text, ELF_HEAD);
		close(fd);
	}
	assert_int_equal(file_fetch("0123abce"), -ENOEXEC);
	assert_int_equal(file_fetch("0123abcf"), -ENOENT);
}

/* Invalid build-ids are not sent to a server. */
static void test_bad_ids(void **state)
{
	static const char *const ids[] = { "", "0123ABCD", "../0123abcd", "0123abcd/",
					   "0123abcd " };

	(void)state;
	put_file("/server/buildid/0123ABCD/debuginfo", ELF_HEAD);
	for (size_t i = 0; i < sizeof(ids) / sizeof(*ids); i++)
		assert_int_equal(file_fetch(ids[i]), -ENOENT);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_fetch, set_up, remove_root),
		cmocka_unit_test_setup_teardown(test_bad_ids, set_up, remove_root),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
