// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* What commands share that read recordings: options, the input, several recordings, and the exit status. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include "base/exit_status.h"
#include "base/screen.h"
#include "input/recorded.h"
#include "logged.h"
#include "recording/recording.h"
#include "tree.h"

static struct sampling_opts s;
static struct recorded r;
static struct err err;

/* --- recordings --- */

static struct trace_pmu pmus[2];
static struct trace_info info;
static struct ledger ledgers[2];

/* Ops of process 7 on CPU 0, every second one with a latency of 300; @fetches: of process 8 */
static void record(const char *name, unsigned int ops, unsigned int fetches, __u64 lost, bool whole)
{
	struct recording_opts opts = { .info = &info };
	struct trace_event lose = { .kind = TRACE_LOST, .time = 1, .lost = { lost, true, ~0u } };
	struct recording *rec;

	opts.fd = open(name, O_CREAT | O_TRUNC | O_RDWR, 0600);
	assert_true(opts.fd >= 0);
	assert_int_equal(recording_create(&opts, &rec, &err), 0);
	if (lost) {
		assert_int_equal(recording_event(rec, &lose, &err), 0);
		lose.lost.samples = false;
		lose.lost.n = 1;
		assert_int_equal(recording_event(rec, &lose, &err), 0);
	}
	for (unsigned int i = 0; i < ops + fetches; i++) {
		const bool fetch = i >= ops;
		const struct ibs_record one = {
			.time = 1000 + i,
			.tgid = fetch ? 8 : 7,
			.tid = fetch ? 8 : 7,
			.ip = 0x1000,
			.data3 = i & 1 ? IBS_OP_DATA3_LD_OP | IBS_OP_DATA3_DC_MISS | 300ull << 32
				       : 0,
			.packed = ibs_record_pack(0, 0, 0) | (fetch ? IBS_RECORD_FETCH : 0),
		};

		assert_int_equal(recording_samples(rec, &one, NULL, 1, &err), 0);
	}
	if (whole)
		assert_int_equal(recording_finish(rec, ledgers, &err), 0);
	else
		assert_int_equal(recording_flush(rec, NULL, &err), 0);
	recording_close(rec);
	close(opts.fd);
}

static int set_up(void **state)
{
	new_root(state);
	if (chdir(root))
		return -1;
	log_begin();
	pmus[0] = (struct trace_pmu){ .name = "ibs_op/cnt_ctl=1/", .op = true, .period = 1000 };
	pmus[1] = (struct trace_pmu){ .name = "ibs_fetch//", .period = 4096 };
	info = (struct trace_info){ .source = "sim",
				    .host = "h1",
				    .has_cpu = true,
				    .n_cpus = 2,
				    .pmu = pmus,
				    .n_pmus = 2 };
	cpu_info_set(&info.cpu, "AuthenticAMD", 0x19, 0x11, 0xbff);
	memset(ledgers, 0, sizeof(ledgers));
	ledgers[0].seen = ledgers[0].outcome[IBS_OUTCOME_FORWARDED] = 10;
	memset(&r, 0, sizeof(r));
	memset(&s, 0, sizeof(s));
	return 0;
}

static int clean_up(void **state)
{
	log_end();
	return chdir("/") || remove_root(state);
}

/* --- a command --- */

static struct {
	unsigned int runs, samples, usages;
	size_t sets;
	enum trace_kind kind;
	char options[256], file[256], argument[256];
	struct report_head head;
	int bad; /* what check() returns */
} got;

static int check(void *cmd, struct err *e)
{
	assert_ptr_equal(cmd, &got);
	return got.bad ? err_set(e, got.bad, "it does not fit") : 0;
}

static void usage(FILE *f, const struct option_set *sets, size_t n)
{
	assert_ptr_equal(f, stdout);
	assert_string_equal(sets[2].title, "Selection");
	got.usages++;
	got.sets = n;
}

static int run(void *cmd)
{
	struct trace_event ev;
	int ret;

	(void)cmd;
	got.runs++;
	snprintf(got.options, sizeof(got.options), "%s", r.options);
	snprintf(got.file, sizeof(got.file), "%s", recorded_name(&r.input));
	snprintf(got.argument, sizeof(got.argument), "%s", r.input.argument ?: "(none)");
	ret = recorded_start(&r, &s, false, false, &err);
	if (ret)
		return recorded_status(&r, ret, &err);
	while ((ret = recorded_next(&r, &ev, &err)) > 0) {
		got.samples++;
		got.kind = ev.kind;
	}
	got.head = r.head;
	if (!ret && !got.samples)
		recorded_nothing(r.replay, "ibs_op");
	return recorded_status(&r, ret, &err);
}

static int command_of(const struct recorded_command *how, char **argv)
{
	struct recorded_command c = *how;
	int argc = 0;

	while (argv[argc])
		argc++;
	memset(&got, 0, offsetof(__typeof__(got), bad));
	c.sampling = &s;
	c.in = &r;
	c.cmd = &got;
	c.usage = usage;
	c.check = check;
	c.run = run;
	return recorded_command(&c, argc, argv);
}

static struct recorded_input input; /* what the next command takes */

/* Run a command with these words. Return: its exit status. */
#define COMMAND(...)                                                        \
	({                                                                  \
		r = (struct recorded){ .input = input };                    \
		s = (struct sampling_opts){ 0 };                            \
		command_of(&(struct recorded_command){ .symbols = true },   \
			   (char *[]){ (char *)"x", ##__VA_ARGS__, NULL }); \
	})
#define W(word) ((char *)(word))

static int set_up_command(void **state)
{
	input = (struct recorded_input){ 0 };
	got.bad = 0;
	if (set_up(state))
		return -1;
	record("f", 10, 3, 0, true);
	return 0;
}

static void test_read(void **state)
{
	(void)state;
	assert_int_equal(COMMAND(W("f")), EXIT_DONE);
	assert_int_equal(got.samples, 10);
	assert_int_equal(got.head.op_samples, 10);
	assert_int_equal(got.head.fetch_samples, 3);
	assert_int_equal(got.head.selected, 10);
	assert_string_equal(got.options, "");
	assert_string_equal(got.file, "f");
	assert_int_equal(COMMAND(W("-p"), W("7"), W("-i"), W("f"), W("-v")), EXIT_DONE);
	assert_int_equal(got.samples, 10);
	assert_string_equal(got.options, "-p 7 -v");
	log_set_verbose(false);
	assert_int_equal(COMMAND(W("-if"), W("--min-lat"), W("300")), EXIT_DONE);
	assert_int_equal(got.samples, 5);
	assert_int_equal(got.head.op_samples, 10);
	assert_int_equal(got.head.selected, 5);
	assert_string_equal(got.options, "--min-lat 300");
	assert_int_equal(COMMAND(W("--input=f")), EXIT_DONE);
	assert_string_equal(got.options, "");
	said_is("");
	/* the default */
	assert_int_equal(COMMAND(), EXIT_FAILED);
	said_is("no file ibscope.data here: `ibscope record` writes it; or name a recording");
	record("ibscope.data", 2, 0, 0, true);
	assert_int_equal(COMMAND(), EXIT_DONE);
	assert_int_equal(got.samples, 2);
	assert_int_equal(COMMAND(W("other")), EXIT_FAILED);
	assert_null(strstr(logged(), "ibscope record"));
}

/* Nothing is selected: which part of the selection dropped the samples, or that there are none. */
static void test_nothing(void **state)
{
	(void)state;
	assert_int_equal(COMMAND(W("-p"), W("9"), W("f")), EXIT_DONE);
	assert_int_equal(got.samples, 0);
	said_is("no sample is selected; samples dropped by each part of the selection: pid 10\n");
	assert_int_equal(COMMAND(W("-C"), W("3"), W("f")), EXIT_DONE);
	said_is("no sample is selected; samples dropped by each part of the selection: cpu 10\n");
	assert_int_equal(
		COMMAND(W("-p"), W("7"), W("--min-lat"), W("301"), W("-C"), W("0"), W("f")),
		EXIT_DONE);
	said_is("selection: latency 10\n");
	record("none", 0, 3, 0, true);
	assert_int_equal(COMMAND(W("none")), EXIT_DONE);
	said_is("no sample is selected: the recording has none of ibs_op\n");
	recorded_nothing(NULL, NULL);
	said_is("no sample is selected: the recording has none\n");
}

static void test_incomplete(void **state)
{
	(void)state;
	record("cut", 4, 0, 5, false);
	assert_int_equal(COMMAND(W("cut")), EXIT_FAILED);
	assert_int_equal(got.samples, 4);
	assert_int_equal(got.head.lost_samples, 5);
	assert_int_equal(got.head.lost_records, 1);
	said_is("cut is incomplete: ");
}

static void wrong(int status, const char *message)
{
	assert_int_equal(status, EXIT_USAGE);
	assert_int_equal(got.runs, 0);
	said_is(message);
}

static void test_usage(void **state)
{
	(void)state;
	wrong(COMMAND(W("--follow"), W("f")), "--follow works on live processes only; list the");
	wrong(COMMAND(W("f"), W("g")), "unexpected argument 'g': give one recording\n");
	wrong(COMMAND(W("-i"), W("f"), W("g")),
	      "unexpected argument 'g': the recording was already given with -i\n");
	wrong(COMMAND(W("--debug-dir"), W("gone"), W("f")),
	      "--debug-dir: cannot use gone: No such file or directory\n");
	wrong(COMMAND(W("--debug-dir"), W("f"), W("f")), "--debug-dir: f is not a directory\n");
	wrong(COMMAND(W("-e"), W("ibs_fetch//"), W("f")), "unknown option '-e'");
	got.bad = -EINVAL;
	wrong(COMMAND(W("f")), "it does not fit\n");
	got.bad = 0;
	assert_int_equal(COMMAND(W("--debug-dir"), W("/tmp"), W("--max-memory"), W("1G"), W("f")),
			 EXIT_DONE);
	assert_string_equal(got.options, "--debug-dir /tmp --max-memory 1G");
	assert_int_equal(COMMAND(W("--help")), EXIT_DONE);
	assert_int_equal(got.usages, 1);
	assert_int_equal(got.runs, 0);
	assert_int_equal(got.sets, 6);
	r = (struct recorded){ 0 };
	s = (struct sampling_opts){ 0 };
	assert_int_equal(command_of(&(struct recorded_command){ .groups = true },
				    (char *[]){ W("x"), W("--help"), NULL }),
			 EXIT_DONE);
	assert_int_equal(got.sets, 5); /* without those of symbols */
	wrong(COMMAND(W("--by"), W("pid"), W("f")), "unknown option '--by'");
	/* it has no plan to explain */
	wrong(COMMAND(W("--explain"), W("f")), "--explain: a recording has no plan");
}

/* Options that only one of the two events has, or the recording has only one. */
static void test_event(void **state)
{
	(void)state;
	input.takes_fetch = true;
	assert_int_equal(COMMAND(W("f")), EXIT_DONE);
	assert_int_equal(got.kind, TRACE_SAMPLE_OP);
	assert_int_equal(COMMAND(W("-e"), W("ibs_fetch//"), W("f")), EXIT_DONE);
	assert_int_equal(got.kind, TRACE_SAMPLE_FETCH);
	assert_int_equal(got.samples, 3);
	assert_int_equal(COMMAND(W("--metric"), W("fetch_lat"), W("f")), EXIT_DONE);
	assert_int_equal(got.kind, TRACE_SAMPLE_FETCH);
	assert_int_equal(COMMAND(W("--metric"), W("tag_to_ret"), W("f")), EXIT_DONE);
	assert_int_equal(got.kind, TRACE_SAMPLE_OP);
	input.asks_fetch = true;
	assert_int_equal(COMMAND(W("f")), EXIT_DONE);
	assert_int_equal(got.kind, TRACE_SAMPLE_FETCH);
	input.asks_fetch = false;
	pmus[0] = pmus[1];
	info.n_pmus = 1;
	record("fetches", 0, 3, 0, true);
	assert_int_equal(COMMAND(W("fetches")), EXIT_DONE);
	assert_int_equal(got.kind, TRACE_SAMPLE_FETCH);
	info.n_pmus = 0;
	record("unknown", 2, 0, 0, true);
	assert_int_equal(COMMAND(W("unknown")), EXIT_DONE);
	assert_int_equal(got.kind, TRACE_SAMPLE_OP);
}

/* "FUNCTION FILE", where either may be left out. */
static void test_argument(void **state)
{
	(void)state;
	input.argument = "FUNCTION";
	record("ibscope.data", 2, 0, 0, true);
	assert_int_equal(COMMAND(W("main")), EXIT_DONE);
	assert_string_equal(got.file, "ibscope.data");
	assert_string_equal(got.argument, "FUNCTION");
	assert_string_equal(got.options, "");
	assert_int_equal(COMMAND(W("main"), W("f")), EXIT_DONE);
	assert_string_equal(got.file, "f");
	assert_string_equal(got.argument, "FUNCTION");
	assert_int_equal(COMMAND(W("-p"), W("7"), W("f")), EXIT_DONE);
	assert_string_equal(got.file, "f");
	assert_string_equal(got.argument, "(none)");
	assert_string_equal(got.options, "-p 7");
	assert_int_equal(COMMAND(W("-i"), W("f"), W("main")), EXIT_DONE);
	assert_string_equal(got.file, "f");
	assert_string_equal(got.argument, "FUNCTION");
	/* a file that is not a recording may be a program with the name of a function */
	put_file("/work", "text");
	put_file("/old.data", "text");
	assert_int_equal(COMMAND(W("work")), EXIT_DONE);
	assert_string_equal(got.file, "ibscope.data");
	assert_int_equal(COMMAND(W("old.data")), EXIT_FAILED);
	assert_string_equal(got.file, "old.data");
	assert_int_equal(COMMAND(W("./work")), EXIT_FAILED);
	assert_string_equal(got.file, "./work");
	logged();
	wrong(COMMAND(W("main"), W("f"), W("g")),
	      "unexpected argument 'g': give one FUNCTION, and one recording after it\n");
	wrong(COMMAND(W("-i"), W("f"), W("main"), W("f")),
	      "unexpected argument 'f': give one FUNCTION, as the recording was already given "
	      "with -i\n");
	wrong(COMMAND(W("f"), W("main")),
	      "unexpected argument 'main': give the FUNCTION first, and then the recording\n");
	wrong(COMMAND(W("main"), W("work")),
	      "unexpected argument 'work': give one FUNCTION, and then a recording, which this "
	      "is not\n");
	wrong(COMMAND(W("f"), W("ibscope.data")),
	      "'f' and 'ibscope.data' are both files: if the first is a FUNCTION, give the "
	      "recording with -i\n");
}

/* Samples of strata have weights, which a command may not be able to use. */
static void test_strata(void **state)
{
	struct trace *t = NULL;

	(void)state;
	pmus[1] = pmus[0];
	pmus[0].reach = pmus[1].reach = 1 << IBS_SRC_DRAM;
	record("strata", 2, 0, 0, true);
	input.file = "strata";
	assert_int_equal(recorded_open(&input, &t, &err), -EINVAL);
	assert_null(t);
	assert_non_null(strstr(err.text, "strata was recorded with --strata, whose samples have "
					 "different weights"));
	input.strata = RECORDED_WEIGHTS;
	assert_int_equal(recorded_open(&input, &t, &err), -ENODATA);
	assert_null(t);
	assert_non_null(strstr(err.text, "strata was recorded with --strata, and has no complete "
					 "slice"));
	input.strata = RECORDED_SAMPLES;
	assert_int_equal(recorded_open(&input, &t, &err), 0);
	trace_close(t);
	for (input.strata = RECORDED_NO_STRATA; input.strata <= RECORDED_SAMPLES; input.strata++) {
		input.file = "f";
		assert_int_equal(recorded_open(&input, &t, &err), 0);
		trace_close(t);
	}
}

static void test_names(void **state)
{
	struct recorded_input in = { .file = "-" };
	char text[128];

	(void)state;
	assert_string_equal(recorded_name(&in), "standard input");
	assert_string_equal(recorded_again(&in), "-");
	in.file = "-f";
	assert_string_equal(recorded_name(&in), "-f");
	assert_string_equal(recorded_again(&in), "-");
	in.file = "f";
	assert_string_equal(recorded_again(&in), "f");
	assert_false(recorded_left_out(IBS_METRIC_DC_MISS_LAT, 0, text, sizeof(text)));
	assert_true(recorded_left_out(IBS_METRIC_DC_MISS_LAT, 1, text, sizeof(text)));
	assert_string_equal(text, "1 sample of ibs_fetch is left out; -e ibs_fetch shows it");
	assert_true(recorded_left_out(IBS_METRIC_FETCH_LAT, 1200, text, sizeof(text)));
	assert_string_equal(text, "1,200 samples of ibs_op are left out; -e ibs_op shows them");
	assert_int_equal(recorded_rows(&(struct screen){ .height = 0 }), 20);
	assert_int_equal(recorded_rows(&(struct screen){ .height = 10 }), 5);
	assert_int_equal(recorded_rows(&(struct screen){ .height = 21 }), 5);
	assert_int_equal(recorded_rows(&(struct screen){ .height = 22 }), 6);
	assert_int_equal(recorded_rows(&(struct screen){ .height = 50 }), 34);
}

/* The larger of what notices and the ledger say. */
static void test_losses(void **state)
{
	struct trace_end end = { .whole = true };
	struct report_head head = { .file = "f", .info = &info, .end = &end };

	(void)state;
	recorded_losses(&head);
	said_is("");
	head.lost_samples = 5;
	recorded_losses(&head);
	said_is("f: 5 samples were lost while recording\n");
	end.ledger.outcome[IBS_OUTCOME_LOST_READ] = 1006;
	recorded_losses(&head);
	said_is("f: 5 samples were lost while recording\n"); /* the ledger is not of the file */
	end.has_ledger = true;
	recorded_losses(&head);
	said_is("f: 1,006 samples were lost while recording\n");
	head.lost_samples = end.has_ledger = 0;
	head.lost_records = 2;
	recorded_losses(&head);
	said_is("f: 2 records of unknown kind were lost");
}

/* --- several --- */

static void open_parts(char **files, int n)
{
	memset(&r, 0, sizeof(r));
	sampling_init(&s);
	assert_int_equal(sampling_check(&s, &err), 0);
	r.input.file = files[0];
	r.input.files = files;
	r.input.n_files = n;
	r.input.strata = RECORDED_WEIGHTS;
	r.input.takes_several = true;
	assert_int_equal(recorded_list(&r, &err), 0);
}

/* Read all that can be. Return: how many that are. */
static unsigned int read_parts(void)
{
	unsigned int n = 0;
	struct trace_event ev;

	for (size_t i = 0; i < r.n_parts; i++) {
		if (!recorded_start_part(&r, i, &s, false))
			continue;
		while (recorded_next(&r, &ev, &err) > 0)
			;
		recorded_end_part(&r);
		n++;
	}
	return n;
}

static void close_parts(void)
{
	recorded_close(&r);
	sampling_free(&s);
}

static void test_sum(void **state)
{
	char *files[] = { W("f"), W("g") };

	(void)state;
	info.monotonic_ns = 5;
	ledgers[1].seen = 3;
	strcpy(info.filter, "pid 7");
	record("g", 4, 2, 5, true);
	open_parts(files, 2);
	assert_int_equal(r.n_parts, 2);
	assert_int_equal(read_parts(), 2);
	assert_int_equal(recorded_sum(&r, &err), 0);
	assert_string_equal(r.head.file, "f");
	assert_int_equal(r.head.n_parts, 2);
	assert_int_equal(r.head.op_samples, 14);
	assert_int_equal(r.head.fetch_samples, 5);
	assert_int_equal(r.head.selected, 14);
	assert_int_equal(r.head.lost_samples, 5);
	assert_int_equal(r.head.lost_records, 1);
	assert_int_equal(r.head.info->n_cpus, 4);
	assert_false(r.head.info->simulated);
	assert_string_equal(r.head.info->source, "sim");
	assert_string_equal(r.head.info->host, "h1");
	assert_string_equal(r.head.info->filter, "");
	assert_true(r.head.end->whole && r.head.end->has_ledger);
	assert_int_equal(r.head.end->ledger.seen, 10 + 10 + 3);
	assert_int_equal(r.head.end->n_ledgers, 2);
	assert_int_equal(r.head.end->event_ledger[0].seen, 20);
	assert_int_equal(r.head.end->event_ledger[1].seen, 3);
	assert_string_equal(r.head.part[1].file, "g");
	assert_string_equal(r.head.part[1].info->filter, "pid 7");
	assert_string_equal(r.head.part[1].info->pmu[1].name, "ibs_fetch//");
	assert_int_equal(r.head.part[1].op_samples, 4);
	assert_false(r.left_out);
	said_is("");
	close_parts();
}

/* Fields that differ are empty or "mixed" in the sum. */
static void test_mixed(void **state)
{
	char *files[] = { W("f"), W("g") };

	(void)state;
	info.monotonic_ns = 5;
	info.source = "ibs";
	info.simulated = true;
	info.n_pmus = 1;
	strcpy(info.host, "h2");
	record("g", 4, 0, 0, false);
	open_parts(files, 2);
	assert_int_equal(read_parts(), 2);
	said_is("g is incomplete: ");
	assert_int_equal(recorded_sum(&r, &err), 0);
	assert_string_equal(r.head.info->source, "mixed");
	assert_true(r.head.info->simulated);
	assert_string_equal(r.head.info->host, "");
	assert_false(r.head.end->whole || r.head.end->has_ledger);
	assert_string_equal(r.head.end->missing, "some of the recordings are incomplete");
	assert_int_equal(r.head.end->n_ledgers, 0);
	close_parts();
}

/* A merged file that is damaged. */
static void test_list(void **state)
{
	char *files[] = { W("both") };
	struct trace_part *parts = NULL;
	const int fd = open("both", O_CREAT | O_RDWR, 0600);
	size_t n = 0;

	(void)state;
	assert_int_equal(trace_parts_add("f", &parts, &n, &err), 0);
	assert_int_equal(trace_parts_add("f", &parts, &n, &err), 0);
	assert_int_equal(trace_parts_write(fd, parts, n, &err), 0);
	trace_parts_free(parts, n);
	open_parts(files, 1);
	assert_int_equal(r.n_parts, 2);
	close_parts();
	assert_int_equal(ftruncate(fd, 100), 0);
	close(fd);
	memset(&r, 0, sizeof(r));
	r.input.file = "both";
	assert_true(recorded_list(&r, &err) < 0);
	recorded_close(&r);
}

/* Recordings that cannot be read, come twice, or differ in strata. */
static void test_left_out(void **state)
{
	char *files[] = { W("gone"), W("f"), W("f"), W("strata") };

	(void)state;
	info.monotonic_ns = 5; /* two of the same time are one */
	record("f", 10, 0, 0, true);
	pmus[1] = pmus[0];
	pmus[0].reach = pmus[1].reach = 1 << IBS_SRC_DRAM;
	record("strata", 2, 0, 0, true);
	open_parts(files, 1);
	assert_int_equal(read_parts(), 0);
	said_is("gone: ");
	assert_int_equal(recorded_sum(&r, &err), -ENODATA);
	assert_string_equal(err.text, "none of the 1 recordings can be read");
	close_parts();
	open_parts(files, 4);
	assert_int_equal(r.n_parts, 4);
	r.input.strata = RECORDED_SAMPLES;
	assert_int_equal(read_parts(), 1);
	said_is("strata was recorded with --strata, unlike f: report it by itself: left out\n");
	assert_true(r.left_out);
	assert_int_equal(recorded_sum(&r, &err), 0);
	assert_int_equal(r.head.op_samples, 10);
	close_parts();
	open_parts(files + 3, 1);
	assert_int_equal(read_parts(), 0);
	said_is("has no complete slice of the full stratum");
	close_parts();
}

#define T(f) cmocka_unit_test_setup_teardown(f, set_up_command, clean_up)

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(test_read),	T(test_nothing),  T(test_incomplete), T(test_usage),
		T(test_event),	T(test_argument), T(test_strata),     T(test_names),
		T(test_losses), T(test_sum),	  T(test_mixed),      T(test_left_out),
		T(test_list),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
