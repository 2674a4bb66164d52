// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* The size of the program that samples: what a selection adds to it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "filter/filter.h"
#include "sampler/sampler.h"
#include "twin_model.h"

static __u32 size_with(const struct selection *sel, __u32 by, const char *expr)
{
	struct sampler_opts opts = zen4;
	struct sampler_prog_size size;
	struct filter filter = {};
	struct sampler *s;

	opts.source = SAMPLER_LOAD;
	opts.sel = *sel;
	opts.by = by;
	if (expr) {
		assert_int_equal(filter_parse(expr, &filter, NULL), 0);
		opts.sel.filter = &filter.prog;
	}
	s = open_twin(&opts);
	assert_int_equal(sampler_prog_size(s, &size, NULL), 0);
	sampler_close(s);
	filter_free(&filter);
	return size.insns;
}

/* What is not selected is not in the program; what is adds what it is alone. */
static void test_cost_follows_use(void **state)
{
	const struct selection none = {}, src = { .src_mask = 1 << IBS_SRC_DRAM };
	const struct selection pid = { .processes = { .pids = &(__u32){ 1 }, .n = 1 } };
	const struct selection lat = { .min_lat = 300 };
	const struct selection both = { .processes = pid.processes, .min_lat = 300 };
	__u32 least = size_with(&none, 0, NULL), filter = size_with(&none, 0, "swpf");

	(void)state;
	/* 376 where the verifier alone removes what is constant, and src/core/constants does not */
	assert_in_range(least, 1, 340);
	assert_int_equal(size_with(&src, 0, NULL), least);
	assert_in_range(size_with(&pid, 0, NULL), least + 1, least + 50);
	assert_in_range(size_with(&lat, 0, NULL), least + 1, least + 50);
	assert_int_equal(size_with(&both, 0, NULL) - least,
			 size_with(&pid, 0, NULL) + size_with(&lat, 0, NULL) - 2 * least);
	assert_in_range(filter, least + 1, least + 70);
	assert_int_equal(size_with(&pid, 0, "swpf") - least,
			 size_with(&pid, 0, NULL) + filter - 2 * least);
	/* a term more */
	assert_in_range(size_with(&none, 0, "swpf && locked"), filter + 1, filter + 30);
	assert_true(size_with(&none, IBS_BY_CGROUP, NULL) > least);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_cost_follows_use),
	};

	if (!can_run())
		return 77;
	return cmocka_run_group_tests(tests, NULL, NULL);
}
