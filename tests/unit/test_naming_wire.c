// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Messages of a worker that reads files of strangers, and the names that it makes readable. */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "naming/demangle.h"
#include "naming/naming_wire.h"

#define HEAD NAMING_REPLY_HEAD

static struct naming_reply r;
static const char *texts[NAMING_TEXTS];

static bool checks(size_t bytes)
{
	return naming_reply_check(&r, bytes, texts);
}

static void test_texts(void **state)
{
	(void)state;
	memset(&r, 0, sizeof(r));
	assert_false(checks(0));
	assert_false(checks(HEAD - 1));
	assert_true(checks(HEAD));
	for (int i = 0; i < NAMING_TEXTS; i++)
		assert_null(texts[i]);
	assert_true(checks(sizeof(r)));
	assert_false(checks(sizeof(r) + 1));
	/* "abc", none, "" and "de", one after the other */
	memcpy(r.text, "abc\0\0de", 8);
	r.len[0] = 4;
	r.len[2] = 1;
	r.len[3] = 3;
	assert_true(checks(HEAD + 8));
	assert_string_equal(texts[0], "abc");
	assert_null(texts[1]);
	assert_string_equal(texts[2], "");
	assert_string_equal(texts[3], "de");
	assert_false(checks(HEAD + 7));
	/* a NUL before the end, and none at the end */
	r.len[0] = 5;
	assert_false(checks(HEAD + 9));
	r.len[0] = 3;
	assert_false(checks(HEAD + 8));
}

static void test_limits(void **state)
{
	(void)state;
	memset(&r, 0, sizeof(r));
	memset(r.text, 'x', NAMING_TEXT_MAX);
	r.text[NAMING_TEXT_MAX - 1] = 0;
	r.len[1] = NAMING_TEXT_MAX;
	assert_true(checks(HEAD + NAMING_TEXT_MAX));
	assert_int_equal(strlen(texts[1]), NAMING_TEXT_MAX - 1);
	r.text[NAMING_TEXT_MAX - 1] = 'x';
	r.len[1] = NAMING_TEXT_MAX + 1;
	assert_false(checks(HEAD + NAMING_TEXT_MAX + 1));
	r.len[1] = ~0u;
	assert_false(checks(sizeof(r)));
	memset(&r, 0, sizeof(r));
	r.data_len = 9;
	assert_true(checks(HEAD + 9));
	assert_false(checks(HEAD + 8));
}

static void test_messages(void **state)
{
	struct stat sent, got;
	char text[16] = "";
	int s[2], fd, file = memfd_create("sent", MFD_CLOEXEC);

	(void)state;
	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, s), 0);
	assert_int_equal(naming_send(s[0], "abcd", 4, -1), 0);
	assert_int_equal(naming_send(s[0], "xyz", 3, file), 0);
	fd = 99;
	assert_int_equal(naming_receive(s[1], text, sizeof(text), &fd), 4);
	assert_memory_equal(text, "abcd", 5);
	assert_int_equal(fd, -1);
	assert_int_equal(naming_receive(s[1], text, sizeof(text), &fd), 3);
	assert_memory_equal(text, "xyzd", 5);
	assert_true(fd >= 0 && fd != file);
	assert_int_equal(fcntl(fd, F_GETFD), FD_CLOEXEC);
	assert_int_equal(fstat(file, &sent), 0);
	assert_int_equal(fstat(fd, &got), 0);
	assert_int_equal(sent.st_dev, got.st_dev);
	assert_int_equal(sent.st_ino, got.st_ino);
	close(fd);
	close(file);
	close(s[1]);
	/* no signal if nobody reads */
	assert_int_equal(naming_send(s[0], "a", 1, -1), -EPIPE);
	fd = 99;
	assert_int_equal(naming_receive(s[0], text, sizeof(text), &fd), 0);
	assert_int_equal(fd, -1);
	close(s[0]);
	assert_int_equal(naming_receive(-1, text, sizeof(text), &fd), -EBADF);
	assert_int_equal(naming_send(-1, "a", 1, -1), -EBADF);
}

static void reads(const char *name, const char *want)
{
	char buf[64] = "";

	assert_true(demangle(name, buf, sizeof(buf)));
	assert_string_equal(buf, want);
}

static void test_demangle(void **state)
{
	char buf[64];

	(void)state;
	reads("_ZN4shop3buyEi", "shop::buy");
	reads("_ZN4shop4CartC1Ev", "shop::Cart::Cart");
	/* Rust, before and since its own mangling */
	reads("_ZN7mycrate3foo17h05af221e174051e9E", "mycrate::foo");
	reads("_RNvC7mycrate3foo", "mycrate::foo");
	assert_false(demangle("main", buf, sizeof(buf)));
	assert_false(demangle("", buf, sizeof(buf)));
	assert_false(demangle("_ZN4shop", buf, sizeof(buf)));
	/* "shop::buy" and its NUL */
	assert_true(demangle("_ZN4shop3buyEi", buf, 10));
	assert_string_equal(buf, "shop::buy");
	assert_false(demangle("_ZN4shop3buyEi", buf, 9));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_texts),
		cmocka_unit_test(test_limits),
		cmocka_unit_test(test_messages),
		cmocka_unit_test(test_demangle),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
