// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* What is set aside in place of a pin: no more than a hundred, of which the oldest goes. */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/pin_file.h"
#include "tree.h"

#define ASIDE 100

static char pin[256];

static const char *aside(int i)
{
	static char path[300];

	snprintf(path, sizeof(path), "%s-foreign%d", pin, i);
	return path;
}

/* Create a file that has @text, and wait until a later one has a later time. */
static void put(const char *path, const char *text)
{
	struct stat first, st;
	int fd = open(path, O_WRONLY | O_CREAT | O_EXCL, 0600);

	assert_true(fd >= 0);
	assert_int_equal(write(fd, text, strlen(text)), strlen(text));
	assert_int_equal(fstat(fd, &first), 0);
	do {
		usleep(200);
		assert_int_equal(fchmod(fd, 0600), 0);
		assert_int_equal(fstat(fd, &st), 0);
	} while (first.st_ctim.tv_nsec == st.st_ctim.tv_nsec);
	close(fd);
}

static void has(const char *path, const char *text)
{
	char got[32] = "";
	int fd = open(path, O_RDONLY);

	assert_true(fd >= 0);
	assert_true(read(fd, got, sizeof(got) - 1) >= 0);
	assert_string_equal(got, text);
	close(fd);
}

static void set_aside(const char *text)
{
	struct err err = { "" };

	put(pin, text);
	assert_int_equal(pin_file_set_aside(pin, root, &err), 0);
	assert_int_equal(access(pin, F_OK), -1);
}

static void test_set_aside(void **state)
{
	struct err err = { "" };
	char text[16];

	(void)state;
	snprintf(pin, sizeof(pin), "%s/pin", root);
	/* nothing is there */
	assert_int_equal(pin_file_set_aside(pin, root, &err), 0);
	/* the 42nd is the oldest file; the first one is older, but a directory with something in it */
	put_dir("/pin-foreign1/x/");
	put(aside(42), "oldest");
	put(aside(7), "second");
	for (int i = 2; i <= ASIDE; i++)
		if (i != 42 && i != 7) {
			snprintf(text, sizeof(text), "%d", i);
			put(aside(i), text);
		}
	set_aside("a");
	has(aside(42), "a");
	has(aside(7), "second");
	set_aside("b");
	has(aside(7), "b");
	set_aside("c");
	has(aside(2), "c");
	has(aside(42), "a");
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_set_aside) };

	return cmocka_run_group_tests(tests, new_root, remove_root);
}
