/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Opening and reading a perf.data that was made up; include after cmocka.h. */
#ifndef IBSCOPE_TESTS_PERF_DATA_READ_H
#define IBSCOPE_TESTS_PERF_DATA_READ_H

#include <errno.h>

#include "perf_data_build.h"
#include "perf_data_file.h"
#include "trace/trace.h"

static struct bytes b;
static struct trace *state;
static struct trace_event ev;
static struct err e;

static inline int reset(void **unused)
{
	(void)unused;
	b.n = 0;
	state = NULL;
	e = (struct err){ 0 };
	return 0;
}

static inline int clean(void **unused)
{
	(void)unused;
	if (state)
		perf_data_format.close(state);
	free(b.p);
	b = (struct bytes){ 0 };
	return 0;
}

static inline int open_built(void)
{
	int fd = memory_file(b.p, b.n), ret;

	assert_true(fd >= 0);
	assert_true(perf_data_format.magic(b.p, b.n));
	ret = perf_data_format.open(fd, 0, 0, &state, &e);
	if (ret)
		state = NULL;
	return ret;
}

static inline void must_open(void)
{
	if (open_built())
		fail_msg("%s", e.text);
}

static inline void refused(const char *why)
{
	assert_int_equal(open_built(), -EINVAL);
	if (!strstr(e.text, why))
		fail_msg("\"%s\" lacks \"%s\"", e.text, why);
}

static inline void next(enum trace_kind kind, __u64 time)
{
	int ret = perf_data_format.next(state, &ev, &e);

	if (ret != 1)
		fail_msg("%d instead of an event: %s", ret, e.text);
	assert_int_equal(ev.kind, kind);
	assert_int_equal(ev.time, time);
}

static inline const struct trace_end *at_end(void)
{
	assert_int_equal(perf_data_format.next(state, &ev, &e), 0);
	return trace_end(state);
}

static inline void whole(void)
{
	const struct trace_end *end = at_end();

	assert_string_equal(end->missing, "");
	assert_true(end->whole);
	assert_int_equal(end->skipped_blocks, 0);
	assert_int_equal(end->skipped_bytes, 0);
}

static inline void not_whole(const char *why)
{
	const struct trace_end *end = at_end();

	assert_false(end->whole);
	if (!strstr(end->missing, why))
		fail_msg("\"%s\" lacks \"%s\"", end->missing, why);
}

static inline void damage(const char *why)
{
	assert_true(perf_data_format.next(state, &ev, &e) < 0);
	if (!strstr(e.text, why))
		fail_msg("\"%s\" lacks \"%s\"", e.text, why);
	assert_false(trace_end(state)->whole);
	assert_non_null(strstr(trace_end(state)->missing, why));
	assert_true(perf_data_format.next(state, &ev, NULL) < 0);
}

#endif
