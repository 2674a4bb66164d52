// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* A process context of OpenTelemetry, in this process, as the specification has it and otherwise. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <cmocka.h>

#include "open_files.h"
#include "push/push_service.h"

#ifndef PR_SET_VMA
#define PR_SET_VMA	     0x53564d41
#define PR_SET_VMA_ANON_NAME 0
#endif

#define SIZE	4096
#define PAYLOAD 64 /* where it begins */

static unsigned char *context;

/* A field of protocol buffers: a text or a message of less than 128 bytes. Return: its length. */
static size_t field(unsigned char *out, int number, const void *data, size_t len)
{
	out[0] = number << 3 | 2;
	out[1] = len;
	memcpy(out + 2, data, len);
	return len + 2;
}

static size_t attribute(unsigned char *out, const char *key, const char *text)
{
	unsigned char value[256], pair[512];
	size_t n = field(pair, 1, key, strlen(key));

	n += field(pair + n, 2, value, field(value, 1, text, strlen(text)));
	return field(out, 1, pair, n); /* of a Resource */
}

static void publish(const char *name)
{
	const uint32_t version = 2;
	const uint64_t when = 1, where = (uintptr_t)context + PAYLOAD;
	unsigned char resource[1024];
	size_t n = attribute(resource, "service.namespace", "shop");
	uint32_t len;

	n += attribute(resource + n, "service.name", name);
	len = field(context + PAYLOAD, 1, resource, n);
	memcpy(context, "OTEL_CTX", 8);
	memcpy(context + 8, &version, sizeof(version));
	memcpy(context + 12, &len, sizeof(len));
	memcpy(context + 16, &when, sizeof(when));
	memcpy(context + 24, &where, sizeof(where));
}

static const char *name(void)
{
	static char out[PUSH_SERVICE_MAX];

	return push_service_name(getpid(), out);
}

static int map(int fd)
{
	context = mmap(NULL, SIZE, PROT_READ | PROT_WRITE,
		       fd < 0 ? MAP_PRIVATE | MAP_ANONYMOUS : MAP_SHARED, fd, 0);
	if (fd >= 0)
		close(fd);
	return context == MAP_FAILED;
}

static int up(void **state)
{
	int fd = memfd_create("OTEL_CTX", MFD_CLOEXEC);

	(void)state;
	return fd < 0 || ftruncate(fd, SIZE) || map(fd);
}

static int down(void **state)
{
	(void)state;
	return munmap(context, SIZE);
}

static void test_memfd(void **state)
{
	const int files = open_files();

	(void)state;
	assert_null(name());
	publish("checkout");
	assert_string_equal(name(), "checkout");
	publish("payments");
	assert_string_equal(name(), "payments");
	assert_int_equal(open_files(), files);
}

/* Of kernels with CONFIG_ANON_VMA_NAME. */
static void test_anonymous(void **state)
{
	(void)state;
	assert_int_equal(map(-1), 0);
	publish("checkout");
	assert_null(name());
	if (prctl(PR_SET_VMA, PR_SET_VMA_ANON_NAME, context, SIZE, "OTEL_CTX")) {
		print_message("this kernel gives anonymous maps no names (CONFIG_ANON_VMA_NAME)\n");
		skip();
	}
	assert_string_equal(name(), "checkout");
	munmap(context, SIZE);
}

/* One byte is different. */
static void test_not_understood(void **state)
{
	static const struct {
		const char *what;
		size_t at;
		unsigned char byte;
	} rows[] = {
		{ "signature", 0, 'o' },
		{ "version", 8, 1 },
		{ "being changed", 16, 0 },
		{ "huge", 15, 1 },
		{ "an address of none", 31, 0x70 },
		{ "empty", 12, 0 },
		{ "cut", 12, 30 },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		publish("checkout");
		context[rows[i].at] = rows[i].byte;
		if (name())
			fail_msg("%s: %s", rows[i].what, name());
	}
	publish("");
	assert_null(name());
	/* the text is longer than the message around it */
	publish("checkout");
	((unsigned char *)memmem(context, SIZE,
				 "\x08"
				 "checkout",
				 9))[0] = 9;
	assert_null(name());
}

static void test_long(void **state)
{
	char text[101] = "";

	(void)state;
	memset(text, 'x', 70);
	publish(text);
	assert_string_equal(name(), text);
}

/* The whole payload, which ends with the name; one that is longer than any, and one that ends within the attribute. */
static void test_limits(void **state)
{
	enum { MOST = 16384 };
	static unsigned char payload[MOST + 1];
	static const char attribute_of[] = "\x0a\x0cservice.name\x12\x04\x0a\x02"
					   "ab";
	const size_t n = sizeof(attribute_of) - 1, key = 15;
	const uint64_t where = (uintptr_t)payload;
	uint32_t len = MOST;

	(void)state;
	publish("checkout");
	memcpy(context + 24, &where, sizeof(where));
	memcpy(context + 12, &len, sizeof(len));
	memcpy(payload + MOST - n, attribute_of, n);
	assert_string_equal(name(), "ab");
	len = MOST + 1;
	memcpy(context + 12, &len, sizeof(len));
	assert_null(name());
	len = MOST;
	memcpy(context + 12, &len, sizeof(len));
	for (size_t bytes = key; bytes < n; bytes++) {
		memset(payload, 0, sizeof(payload));
		memcpy(payload + MOST - bytes, attribute_of, bytes);
		assert_null(name());
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_memfd, up, down),
		cmocka_unit_test(test_anonymous),
		cmocka_unit_test_setup_teardown(test_not_understood, up, down),
		cmocka_unit_test_setup_teardown(test_long, up, down),
		cmocka_unit_test_setup_teardown(test_limits, up, down),
	};

	return cmocka_run_group_tests_name("push_service", tests, NULL, NULL);
}
