// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Options of live hot lines: which samples are kept, and which selections hide who shares a line. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/err.h"
#include "live_lines/live_lines.h"

#define SHARING ((__u32)IBS_LINE_FEED_STORES | IBS_SRC_CACHES)

static __u32 feed_of(const char *text)
{
	struct err err;
	__u32 feed;

	if (live_lines_feed(text, &feed, &err))
		fail_msg("%s", err.text);
	return feed;
}

static void bad_feed(const char *text, const char *want)
{
	struct err err = { "" };
	__u32 feed;

	assert_int_equal(live_lines_feed(text, &feed, &err), -EINVAL);
	err.text[strlen(want)] = 0;
	assert_string_equal(err.text, want);
}

/* Stores and caches are needed; dram and walks add to them. */
static void test_feed(void **state)
{
	(void)state;
	assert_int_equal(feed_of("stores,caches"), SHARING);
	assert_int_equal(feed_of("caches,stores"), SHARING);
	assert_int_equal(feed_of("stores,caches,dram"), SHARING | IBS_SRC_MEMORY);
	assert_int_equal(feed_of("stores,caches,walks"), SHARING | (__u32)IBS_LINE_FEED_WALKS);
	assert_int_equal(feed_of("walks,dram,caches,stores"),
			 SHARING | (__u32)IBS_LINE_FEED_WALKS | IBS_SRC_MEMORY);
	bad_feed("stores", "--feed: invalid list 'stores': sharing cannot be judged without stores "
			   "and caches; add them");
	bad_feed("caches", "--feed: invalid list 'caches': sharing cannot be judged without stores "
			   "and caches; add them");
	bad_feed("dram,walks", "--feed: invalid list 'dram,walks': sharing cannot be judged");
	bad_feed("stores,cashes", "--feed: column 8: unknown kind of sample 'cashes'");
	bad_feed("", "--feed: ");
}

static void hidden(struct select_options *o, const char *want)
{
	struct err err = { "" };

	assert_int_equal(live_lines_check_selection(o, &err), -EINVAL);
	err.text[strlen(want)] = 0;
	assert_string_equal(err.text, want);
}

static void test_selection(void **state)
{
	struct select_options none = {}, o = {};
	struct err err;

	(void)state;
	assert_int_equal(live_lines_check_selection(&none, &err), 0);
	o.sel.min_lat = 3;
	hidden(&o, "--min-lat drops all stores, which have no latency: sharing cannot be judged; "
		   "`ibscope report --by line --phys` prints the lines of such a selection");
	o = none;
	o.sel.max_lat = 3;
	hidden(&o, "--max-lat drops all stores, which have no latency: sharing cannot be judged");
	o = none;
	o.sel.src_mask = 1u << IBS_SRC_DRAM;
	hidden(&o, "--src without l1, l2 and unknown drops stores: sharing cannot be judged");
	o.sel.src_mask = 1u << IBS_SRC_L1 | 1u << IBS_SRC_L2 | 1u << IBS_SRC_UNKNOWN;
	hidden(&o, "--src without l3, near-cache and remote-cache drops hits in other caches");
	o.sel.src_mask = (1u << IBS_SRC_N) - 1;
	assert_int_equal(live_lines_check_selection(&o, &err), 0);
	o.sel.op_mask = 1;
	hidden(&o, "--op must include load, store and locked: sharing cannot be judged");
}

static int prepare(const char *event, __u32 feed, struct sampling_opts *o, struct err *err)
{
	*o = (struct sampling_opts){ .n_events = 1 };
	snprintf(o->events, sizeof(o->events), "%s", event);
	assert_int_equal(event_parse(event, &o->event[0].spec, err), 0);
	return live_lines_prepare(o, feed, err);
}

static void refused(const char *event, const char *why)
{
	struct sampling_opts o;
	struct err err;

	assert_int_equal(prepare(event, 0, &o, &err), -EINVAL);
	assert_string_equal(err.text, why);
	assert_int_equal(o.sampler.line_sets, 0);
}

/* The sampler keeps lines, unless the event drops what tells who shares them. */
static void test_prepare(void **state)
{
	struct sampling_opts o;
	struct err err;

	(void)state;
	assert_int_equal(prepare("ibs_op//", 0, &o, &err), 0);
	assert_int_equal(o.sampler.line_sets, IBS_LINE_SETS);
	assert_int_equal(o.sampler.line_feed, SHARING);
	assert_int_equal(
		prepare("ibs_op/l3missonly=0,cnt_ctl=1/", SHARING | IBS_SRC_MEMORY, &o, &err), 0);
	assert_int_equal(o.sampler.line_feed, SHARING | IBS_SRC_MEMORY);
	refused("ibs_fetch//", "-e ibs_fetch//: samples of ibs_fetch have no data addresses");
	refused("ibs_op/l3missonly=1/", "-e ibs_op/l3missonly=1/: l3missonly drops hits in caches "
					"of the same complex: sharing cannot be judged");
	refused("ibs_op/ldlat=1/", "-e ibs_op/ldlat=1/: ldlat drops all stores, and fast hits in "
				   "caches: sharing cannot be judged");
	refused("ibs_op/ldlat=4095/", "-e ibs_op/ldlat=4095/: ldlat drops all stores, and fast "
				      "hits in caches: sharing cannot be judged");
	refused("ibs_op/strmst=1/", "-e ibs_op/strmst=1/: strmst drops everything but streaming "
				    "stores: sharing cannot be judged");
	o = (struct sampling_opts){ .n_events = 1, .select.sel.min_lat = 3 };
	assert_int_equal(live_lines_prepare(&o, 0, &err), -EINVAL);
	assert_int_equal(o.sampler.line_sets, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_feed),
		cmocka_unit_test(test_selection),
		cmocka_unit_test(test_prepare),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
