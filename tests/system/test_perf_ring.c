// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* The kernel's ring of records: what is mapped, what is left, records that wrap. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "perf/perf.h"

static size_t mapped_rings(void)
{
	FILE *f = fopen("/proc/self/maps", "r");
	char line[4096];
	size_t n = 0;

	assert_non_null(f);
	while (fgets(line, sizeof(line), f))
		n += strstr(line, "perf_event") != NULL;
	fclose(f);
	return n;
}

/* Of different sizes, as a side band has them where memory that may be locked runs out. */
static void test_nothing_is_left(void **state)
{
	static const struct perf_event_attr attr = { .size = sizeof(attr),
						     .type = PERF_TYPE_SOFTWARE,
						     .config = PERF_COUNT_SW_DUMMY };
	static const size_t pages[] = { 8, 2, 1 };
	struct perf_event_mmap_page *ring[3];
	int fd[3];

	(void)state;
	for (size_t i = 0; i < 3; i++) {
		fd[i] = perf_open(&attr, 0);
		if (fd[i] < 0 && (errno == EACCES || errno == EPERM)) {
			print_message("skipped: events of a CPU need privilege\n");
			skip();
		}
		assert_true(fd[i] >= 0);
		ring[i] = perf_ring_map(fd[i], pages[i]);
		assert_non_null(ring[i]);
		assert_int_equal(perf_ring_bytes(ring[i]), (1 + pages[i]) * sysconf(_SC_PAGESIZE));
	}
	assert_int_equal(mapped_rings(), 3);
	for (size_t i = 0; i < 3; i++) {
		perf_ring_unmap(ring[i]);
		close(fd[i]);
	}
	perf_ring_unmap(NULL);
	assert_int_equal(mapped_rings(), 0);
}

static void test_wraps(void **state)
{
	static union {
		struct perf_event_mmap_page ring;
		char bytes[sizeof(struct perf_event_mmap_page) + 16];
	} u;
	char got[8] = {};

	(void)state;
	u.ring.data_offset = sizeof(u.ring);
	u.ring.data_size = 16;
	memcpy(u.bytes + sizeof(u.ring), "cdefghijklmnopab", 16);
	perf_ring_copy(&u.ring, 16 * 5 + 14, got, 6);
	assert_string_equal(got, "abcdef");
	perf_ring_copy(&u.ring, 10, got, 6);
	assert_string_equal(got, "mnopab");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_nothing_is_left),
		cmocka_unit_test(test_wraps),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
