// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Hot lines of a running session: windows that a collector keeps, its answer, and what a reader makes of it. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmocka.h>
#include <jansson.h>

#include "base/array.h"
#include "base/clock.h"
#include "live_lines/live_lines.h"
#include "live_lines/served_lines.h"

#define PERIOD	100000 /* ns */
#define DETAILS 1024

static struct sampling_opts opts;
static struct session *session;

static int open_session(struct err *err)
{
	sampling_init(&opts);
	opts.source = SOURCE_SIM;
	opts.all = opts.any_period = true;
	opts.event[0].rate = (struct event_rate){ .has_period = true, .period = PERIOD };
	session = session_new();
	return sampling_check(&opts, err) ?: live_lines_prepare(&opts, 0, err)
	       ?: session_open(session, &opts, err) ?: session_start(session, err);
}

/* Stores and loads of some lines on this CPU, most of them of the first one, of which the simulation makes samples. */
static void spin(void)
{
	static volatile struct {
		_Alignas(LINE_BYTES) long a, b;
	} lines[4];
	const double end = thread_cpu_s() + 0.05;

	while (thread_cpu_s() < end)
		for (int i = 0; i < 20000; i++) {
			lines[0].a = i;
			(void)lines[0].b;
			lines[1].a = i;
			(void)lines[0].a;
			lines[0].b = i;
			(void)lines[2].b;
			lines[0].a = i;
			(void)lines[0].b;
			lines[3].a = i;
			(void)lines[0].a;
			lines[0].b = i;
			(void)lines[0].b;
		}
}

static __u64 lack_of(const struct hot_window *w)
{
	return w->hidden > w->lack ? w->hidden : w->lack;
}

/* A window at a time; sums of all, and what a line may lack in the last six together. */
static void test_windows(void **state)
{
	struct served_lines l = {};
	struct ibs_lines_counts c = {};
	__u64 fed = 0, no_address = 0, replaced = 0, lack;

	(void)state;
	served_lines_run(&l, session, true, &c);
	assert_int_equal(c.on, 1);
	assert_int_equal(l.n, 0);
	assert_true(l.next_s > now_s() + 9 && l.next_s <= now_s() + 10);
	spin();
	served_lines_run(&l, session, true, &c);
	assert_int_equal(l.n, 0);
	l.next_s = now_s();
	served_lines_run(&l, session, true, &c);
	assert_int_equal(l.n, 1);
	assert_true(l.next_s > now_s() + 9);
	assert_true(c.fed > 0);
	fed = c.fed;
	no_address = c.no_address;
	replaced = c.replaced;
	for (size_t i = 1; i < SERVED_WINDOWS + 2; i++) {
		const struct hot_window *w;

		spin();
		served_lines_take(&l, session, &c);
		assert_int_equal(l.n, i + 1);
		w = l.window[i % SERVED_WINDOWS];
		fed += w->fed;
		no_address += w->no_address;
		replaced += w->replaced;
		assert_int_equal(c.lines, w->lines);
		assert_true(w->fed > 0 && w->n > 0 && w->n <= DETAILS && w->lines > 0);
		lack = 0;
		for (size_t k = 0; k <= i && k < SERVED_WINDOWS; k++)
			lack += lack_of(l.window[k]);
		assert_int_equal(c.lack, lack);
	}
	assert_int_equal(c.fed, fed);
	assert_int_equal(c.no_address, no_address);
	assert_int_equal(c.replaced, replaced);
	/* options were read again */
	served_lines_run(&l, session, false, &c);
	assert_int_equal(c.on, 0);
	assert_int_equal(l.n, 0);
	assert_true(l.next_s == 0);
	for (size_t i = 0; i < SERVED_WINDOWS; i++)
		assert_null(l.window[i]);
}

static bool is_ours(const struct hot_window *w)
{
	const __u32 self = getpid();

	return w->n == 1 &&
	       (w->detail[0].d.reader.tgid == self || w->detail[0].d.writer.tgid == self);
}

/* @share of the time another user had the PMU: each sample represents as many more ops. */
static void test_window(void **state)
{
	struct hot_window *w = live_lines_window(session, DETAILS, 1), *half;
	const struct ibs_line_user *user;
	struct task_cgroup cgroup;
	struct tasks *tasks;
	struct err err;

	(void)state;
	assert_int_equal(w->period, sampler_period(session_event(session, 0)->sampler));
	assert_int_equal(w->weighed, 0);
	assert_int_equal(w->feed, IBS_LINE_FEED_SHARING);
	assert_true(w->time <= clock_ns(CLOCK_MONOTONIC));
	assert_int_equal(w->tables, session_event(session, 0)->opts.n_cpus);
	spin();
	half = live_lines_window(session, 1, 0.5);
	assert_int_equal(half->period, 2 * w->period);
	assert_true(half->time > w->time);
	assert_true(half->n <= 1);
	/* what is not in the details is bounded */
	assert_true(half->hidden > 0);
	/* who accesses its line has a name; that is us, unless others are as busy */
	for (int i = 0; i < 50 && !is_ours(half); i++) {
		free(half);
		spin();
		half = live_lines_window(session, 1, 1);
	}
	assert_true(is_ours(half));
	tasks = tasks_new();
	assert_int_equal(live_lines_names(tasks, NULL, half, &err), 0);
	assert_non_null(tasks_comm(tasks, getpid(), getpid(), 0));
	tasks_free(tasks);
	/* with a session, cgroups have names, too */
	tasks = tasks_new();
	user = half->detail[0].d.writer.tgid == (__u32)getpid() ? &half->detail[0].d.writer
								: &half->detail[0].d.reader;
	assert_int_equal(live_lines_names(tasks, session, half, &err), 0);
	assert_true(tasks_cgroup(tasks, user->cgroup_id, &cgroup));
	assert_int_equal(*cgroup.path, '/');
	half->n = 0;
	assert_int_equal(live_lines_names(tasks, NULL, half, &err), 0);
	tasks_free(tasks);
	free(w);
	free(half);
}

/* --- the answer --- */

static struct served_lines kept;
static char *text;
static size_t text_size;

static void make_answer(void)
{
	struct ibs_lines_counts c = {};
	FILE *f;

	for (int i = 0; i < 2; i++) {
		spin();
		served_lines_take(&kept, session, &c);
	}
	f = xmemopen(&text, &text_size);
	served_lines_answer(&kept, session, f);
	xmemclose(f);
}

static void drop_answer(void)
{
	served_lines_free(&kept);
	free(text);
	text = NULL;
}

struct asked {
	struct served_answer a;
	struct recorded in;
	struct line_set *set;
	struct err err;
};

static int read_answer(struct asked *k, const char *of, size_t n)
{
	*k = (struct asked){ .a = { .path = "sock", .text = of, .n = n } };
	return served_lines_read(&k->a, &k->in, &k->set, &k->err);
}

static void close_answer(struct asked *k)
{
	lines_free(k->set);
	symbols_free(k->in.symbols);
	tasks_free(k->in.tasks);
}

/* A reader has the same lines, with names of the processes and cgroups that accessed them. */
static void test_answer(void **state)
{
	const struct trace_info info = { .format = "ibscope" };
	struct line_set *direct =
		lines_new(&(struct lines_opts){ .info = &info, .metric = IBS_METRIC_DC_MISS_LAT });
	const struct lines *want, *is;
	__u64 fed = 0, ours = 0, cgroups = 0;
	struct asked k;

	(void)state;
	make_answer();
	if (read_answer(&k, text, text_size))
		fail_msg("%s", k.err.text);
	for (size_t i = 0; i < 2; i++) {
		fed += kept.window[i]->fed;
		lines_add_window(direct, kept.window[i]);
	}
	want = lines_finish(direct);
	is = lines_finish(k.set);
	assert_int_equal(k.a.at, text_size);
	assert_int_equal(is->hot.windows, 2);
	assert_int_equal(is->hot.fed, fed);
	assert_int_equal(is->n, want->n);
	assert_true(is->n > 0);
	assert_int_equal(is->total.samples, want->total.samples);
	assert_int_equal(is->total.cycles, want->total.cycles);
	assert_int_equal(k.in.head.op_samples, fed);
	assert_int_equal(k.in.head.selected, fed);
	assert_string_equal(k.in.head.info->format, "ibscope");
	assert_string_equal(k.in.head.info->source, "sim");
	assert_true(k.in.head.info->simulated);
	assert_int_equal(k.in.head.info->n_pmus, 1);
	assert_true(k.in.head.info->pmu[0].op);
	assert_true(k.in.head.end->whole);
	for (const struct line_access *x = is->line[0].access; x < is->end; x++) {
		struct task_cgroup c;

		if (x->tgid == (__u32)getpid()) {
			const char *comm = tasks_comm(k.in.tasks, x->tgid, x->tid, 0);

			assert_non_null(comm);
			/* a thread's name has 15 characters */
			assert_memory_equal(comm, program_invocation_short_name, 15);
			ours++;
		}
		if (!x->cgroup_id)
			continue;
		assert_true(tasks_cgroup(k.in.tasks, x->cgroup_id, &c));
		/* those of others may have ended */
		assert_true(*c.path == '/' || x->tgid != (__u32)getpid());
		cgroups += *c.path == '/';
	}
	assert_true(ours > 0);
	assert_true(cgroups > 0);
	lines_free(direct);
	close_answer(&k);
	drop_answer();
}

static void bad(const char *of, size_t n)
{
	struct asked k;

	assert_int_equal(read_answer(&k, of, n), -EPROTO);
	assert_string_equal(k.err.text,
			    "sock: the collector is not of this version, " IBSCOPE_VERSION
			    ": restart it, or use its ibscope");
	close_answer(&k);
}

/* One that ends early, or is of another version, is refused. */
static void test_cut(void **state)
{
	const size_t head = sizeof(struct served_head);
	const size_t window = sizeof(struct hot_window), detail = sizeof(struct hot_detail);
	struct served_head *h;
	struct hot_window *w;
	size_t end;
	char *copy;

	(void)state;
	make_answer();
	end = head + 2 * window + (kept.window[0]->n + kept.window[1]->n) * detail;
	assert_true(end < text_size);
	const size_t cuts[] = { 0,
				1,
				head - 1,
				head,
				head + window - 1,
				head + window,
				head + window + detail,
				head + window + kept.window[0]->n * detail - 1,
				end - 1,
				end,
				end + 7,
				end + 8,
				end + 9,
				text_size - 1,
				text_size - 2,
				text_size - 4 };

	for (size_t i = 0; i < ARRAY_SIZE(cuts); i++) {
		/* to the byte, so that none behind is read; the NUL is not counted */
		copy = xcalloc(1, cuts[i] + 1);
		memcpy(copy, text, cuts[i]);
		bad(copy, cuts[i]);
		free(copy);
	}
	copy = xmemdup(text, text_size);
	h = (struct served_head *)copy;
	h->version[0]++;
	bad(copy, text_size);
	h->version[0]--;
	h->detail_bytes++;
	bad(copy, text_size);
	h->detail_bytes--;
	w = (struct hot_window *)(copy + head);
	w->n = DETAILS + 1;
	bad(copy, text_size);
	free(copy);
	drop_answer();
}

/* Before the first window there is nothing. */
static void test_empty(void **state)
{
	const struct lines *lines;
	struct asked k;
	FILE *f = xmemopen(&text, &text_size);

	(void)state;
	served_lines_answer(&kept, session, f);
	xmemclose(f);
	assert_int_equal(text_size, sizeof(struct served_head));
	assert_int_equal(read_answer(&k, text, text_size), 0);
	lines = lines_finish(k.set);
	assert_int_equal(lines->n, 0);
	assert_int_equal(k.in.head.op_samples, 0);
	close_answer(&k);
	drop_answer();
}

/* --- what `c2c --live` prints --- */

static json_t *printed(struct lines_print *p, int want)
{
	const struct session_event *e = session_event(session, 0);
	int out = dup(STDOUT_FILENO), file = memfd_create("out", 0), ret;
	struct snapshot now;
	struct err err = { "" };
	json_t *o;

	assert_int_equal(sampler_snapshot(e->sampler, &now, &err), 0);
	fflush(stdout);
	dup2(file, STDOUT_FILENO);
	ret = live_lines_print(p, session, &now, &err);
	fflush(stdout);
	dup2(out, STDOUT_FILENO);
	close(out);
	snapshot_free(&now);
	if (ret != want)
		fail_msg("%d: %s", ret, err.text);
	lseek(file, 0, SEEK_SET);
	o = json_loadfd(file, 0, NULL);
	close(file);
	assert_non_null(o);
	return o;
}

static void test_print(void **state)
{
	struct lines_print p = { .view = {
					 .format = FORMAT_JSON, .sort = TABLE_CYCLES, .top = 5 } };
	json_t *o, *lines, *one;

	(void)state;
	spin();
	o = printed(&p, 0);
	lines = json_object_get(o, "lines");
	assert_true(json_array_size(lines) > 0);
	assert_true(json_integer_value(json_object_get(json_object_get(o, "total"), "samples")) >
		    0);
	json_decref(o);
	/* one that has no sample */
	p.has_line = p.is_address = true;
	p.line = 0xdead00000000; /* no address */
	spin();
	o = printed(&p, 1);
	one = json_object_get(o, "line");
	assert_true(json_is_null(one));
	json_decref(o);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_windows), cmocka_unit_test(test_window),
		cmocka_unit_test(test_answer),	cmocka_unit_test(test_cut),
		cmocka_unit_test(test_empty),	cmocka_unit_test(test_print),
	};
	struct err err = { "" };
	int ret = open_session(&err);

	if (ret == -EPERM || ret == -EACCES || ret == -EOPNOTSUPP || ret == -ENOENT) {
		printf("skipped: %s\n", err.text);
		session_free(session);
		return 77;
	}
	if (ret) {
		fprintf(stderr, "%s\n", err.text);
		return 1;
	}
	ret = cmocka_run_group_tests(tests, NULL, NULL);
	session_free(session);
	sampling_free(&opts);
	return ret;
}
