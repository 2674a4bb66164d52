// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* A perf.data of hundreds of megabytes: apart from the small ones, since it takes a thousand times as long. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/u64_map.h"
#include "perf_data_read.h"

/* Without marks of rounds, memory is bounded all the same. */
static void test_no_rounds(void **unused)
{
	static __u64 body[60000 / sizeof(__u64)];
	const unsigned int n = 6000; /* 360 MB */
	struct build o = build_default();
	__u64 done, total;

	(void)unused;
	build_begin(&b, &o);
	for (unsigned int i = 0; i < n; i++) {
		begin_sample(&b, OP_ID, 101, 1000 + i, 0);
		put_raw(&b, true, i);
		/* compressible, but not like a bomb */
		for (unsigned int k = 0; k < ARRAY_SIZE(body) / 30; k++)
			body[k] = u64_hash(body[k] + i + k);
		put(&b, body, sizeof(body));
		finish(&b);
	}
	compress_from(&b, b.data, 1 << 16, PERF_RECORD_COMPRESSED);
	build_end(&b, &o);
	must_open();
	for (unsigned int i = 0; i < n; i++) {
		next(TRACE_SAMPLE_OP, 1000 + i);
		done = state->done, total = state->total;
		assert_true(i || done < total * 8 / 10);
	}
	whole();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_no_rounds, reset, clean),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
