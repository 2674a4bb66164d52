// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* ibscope record: record the selected samples to a file or as lines of text. */
#include "base/clock.h"
#include "../cmd.h"
#include "record_private.h"
#include "base/output_file.h"
#include "base/screen.h"
#include "base/status_line.h"
#include "base/text.h"
#include "capture/record_info.h"

#include <getopt.h>
#include <math.h>
#include <poll.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define TICK_S		   0.5 /* throttle records wait in a small buffer */
#define PRIORITY	   -10
#define STALL_S		   10 /* limit for writing output after the first signal */
#define RECORD_OPTIONS_MAX 64

/* Records are not grouped, so leave out the options for grouping. */
static size_t sampling_rows(struct option_row *rows)
{
	size_t n = 0;

	for (size_t i = 0; i < sampling_n_options && n < RECORD_OPTIONS_MAX; i++)
		if (strcmp(sampling_options[i].name, "by") &&
		    strcmp(sampling_options[i].name, "max-groups"))
			rows[n++] = sampling_options[i];
	return n;
}

static void usage(FILE *f, const struct option_set *sets, size_t n)
{
	fprintf(f, "usage: ibscope record [OPTIONS] [-- COMMAND ...]\n\n"
		   "Sample memory accesses with AMD IBS and record every selected sample, until "
		   "interrupted\nor until COMMAND exits.\n");
	options_help(f, sets, n);
	fprintf(f,
		"\nExit status: 0 done, 1 failed, 2 wrong usage; with COMMAND, that of COMMAND.\n");
}

static int check_options(struct record *r, int argc, char **argv, struct err *err)
{
	if (argc > optind)
		return err_set(err, -EINVAL,
			       "unexpected argument '%s'; to measure a command, put it after '--': "
			       "ibscope record [OPTIONS] -- %s",
			       argv[optind], argv[optind]);
	if (r->csv && r->json)
		return err_set(err, -EINVAL, "--csv and --json exclude each other");
	r->out.format = r->csv ? OUTPUT_CSV : r->json ? OUTPUT_JSON : OUTPUT_RECORDING;
	if (r->csv && r->sampling.n_events == 2)
		return err_set(
			err, -EINVAL,
			"--csv: two events have different columns: use --json, or one event");
	if (r->sampling.sampler.stacks && r->out.format != OUTPUT_RECORDING)
		return err_set(err, -EINVAL,
			       "-g: text output has no call chains; record to a file");
	if (r->sampling.sampler.slabs && r->out.format != OUTPUT_RECORDING)
		return err_set(err, -EINVAL,
			       "--slabs: text output has no slab caches; record to a file");
	if (r->out.rotate && !r->max_bytes)
		return err_set(err, -EINVAL, "--rotate needs --max-size");
	if (r->out.rotate && output_to_stdout(&r->out))
		return err_set(err, -EINVAL,
			       "--rotate: cannot rotate standard output; give a file with -o");
	return r->sampling.strata ? record_check_strata(r, err) : 0;
}

/* --- signals: the first one ends recording cleanly, the second one at once */

static struct session_signals signals;
static struct command *measured; /* NULL: none, or not started yet */
static bool of_launcher;	 /* --per-rank */

static void interrupt(int sig, siginfo_t *info, void *context)
{
	(void)context;
	/* a launcher of MPI jobs sends SIGTERM once, and only to its own children */
	if (measured && (signals.n || (of_launcher && sig == SIGTERM)))
		command_pass_on(measured, sig, info->si_code > 0);
	if (signals.n) {
		signal(sig, SIG_DFL);
		raise(sig);
	}
	session_signal(&signals, sig, info->si_code > 0);
	alarm(STALL_S);
}

static void stalled(int sig)
{
	static const char text[] =
		"ibscope: error: the reader of the output is blocked; unwritten samples are "
		"lost\n";

	(void)sig;
	if (write(STDERR_FILENO, text, sizeof(text) - 1) < 0)
		_exit(EXIT_FAILED);
	_exit(EXIT_FAILED);
}

static void catch_signals(void)
{
	const struct sigaction end = { .sa_sigaction = interrupt,
				       .sa_flags = SA_RESTART | SA_SIGINFO };
	const struct sigaction stall = { .sa_handler = stalled };

	sigaction(SIGINT, &end, NULL);
	sigaction(SIGTERM, &end, NULL);
	sigaction(SIGALRM, &stall, NULL);
}

/* Signals are blocked except while waiting or writing, so that none comes between a test and a wait. */
static void block_signals(bool on, sigset_t *old)
{
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGINT);
	sigaddset(&set, SIGTERM);
	sigprocmask(on ? SIG_BLOCK : SIG_UNBLOCK, &set, old);
}

/* --- writing */

/* Write all samples so far. @last: sampling has stopped, so there is nothing to wait for. */
static int put_all(struct record *r, bool last, struct err *err)
{
	__u64 until = last ? UINT64_MAX - 1 : clock_ns(CLOCK_MONOTONIC) - CAPTURE_SETTLE_NS;
	int ret;

	r->follow_at = now_s() + session_follow(r->session);
	block_signals(false, NULL);
	ret = capture_drain(&r->capture, until, err);
	block_signals(true, NULL);
	output_lost_allocs(r->capture.output, allocs_counts(r->capture.allocs).lost);
	return ret;
}

static int put_state(struct record *r, struct err *err)
{
	return record_put_ranks(r, err) ?: capture_state(&r->capture, err);
}

/* --- the ledger of a file: samples that are forwarded but not yet written belong to the next file */

static const struct session_event *event(const struct record *r, unsigned int n)
{
	return session_event(r->session, n);
}

/* Is it the sampler of ibs_fetch, or of the miss stratum? */
static bool is_second(const struct record *r, unsigned int n)
{
	return session_strata_reach(r->session) ? n == STRATUM_MISS
						: event_of_fetch(event(r, n)->spec);
}

/* Records of one sampler in the open file. */
static __u64 written(const struct record *r, unsigned int n)
{
	__u64 second = output_second(r->capture.output);

	return is_second(r, n) ? second : output_records(r->capture.output) - second;
}

/* The ledger of one sampler for the open file, where forwarded means written to that file. */
static int event_ledger(struct record *r, unsigned int n, struct ledger *out, struct err *err)
{
	struct snapshot snap = {}; /* records have no groups */
	int ret = sampler_ledger(session_sampler(r->session, n), &snap.ledger, &snap.pmu, err);
	__u64 records = written(r, n);

	if (ret)
		return ret;
	*out = snap.ledger;
	if (n < r->sampling.n_events)
		session_warn(r->session, n, &snap);
	ledger_add(out, &r->filed[n], -1);
	out->seen -= out->outcome[IBS_OUTCOME_FORWARDED] - records;
	out->outcome[IBS_OUTCOME_FORWARDED] = records;
	return 0;
}

/* @out: of TRACE_EVENTS */
static int file_ledgers(struct record *r, struct ledger *out, struct err *err)
{
	int ret = 0;

	for (unsigned int i = 0; !ret && i < session_samplers(r->session); i++)
		ret = event_ledger(r, i, &out[i], err);
	return ret;
}

/* The ledger of all files and events. */
static struct ledger all_events(const struct record *r, const struct ledger *file)
{
	struct ledger all = file[0];

	ledger_add(&all, &r->filed[0], 1);
	for (unsigned int i = 1; i < session_samplers(r->session); i++) {
		ledger_add(&all, &file[i], 1);
		ledger_add(&all, &r->filed[i], 1);
	}
	return all;
}

static int rotate(struct record *r, struct err *err)
{
	struct ledger l[TRACE_EVENTS];
	int ret = file_ledgers(r, l, err);

	ret = ret ?: output_rotate(r->capture.output, l, err);
	if (ret)
		return ret;
	for (unsigned int i = 0; i < session_samplers(r->session); i++)
		ledger_add(&r->filed[i], &l[i], 1);
	return put_state(r, err);
}

/* --- progress and summary */

static void show_progress(struct record *r, const struct ledger *all)
{
	double now = now_s();
	__u64 records = all->outcome[IBS_OUTCOME_FORWARDED];

	if (!r->progress)
		return;
	status_line_show("%s%.1f s  %.0f/s  kept %s  rejected %s  lost %s  %.1f MiB",
			 r->info.simulated ? "SIMULATED  " : "", now - r->started,
			 (records - r->shown_records) / fmax(now - r->shown, 1e-3),
			 TEXT_COUNT(records),
			 TEXT_COUNT(ledger_sum(all, IBS_OUTCOME_KIND_FILTERED)),
			 TEXT_COUNT(ledger_sum(all, IBS_OUTCOME_KIND_LOST)),
			 output_total_bytes(r->capture.output) / 1048576.0);
	r->shown = now;
	r->shown_records = records;
}

static void print_ledger(const struct record *r, unsigned int n, const struct ledger *file)
{
	const bool strata = session_strata_reach(r->session), named = r->sampling.n_events > 1;
	struct ledger all = *file;

	ledger_add(&all, &r->filed[n], 1);
	if (strata)
		fprintf(stderr, "ibscope: %s stratum: ", stratum_name(n));
	else
		fprintf(stderr, "ibscope: %s%s", named ? event(r, n)->spec->pmu : "",
			named ? ": " : "");
	ledger_print(stderr, &all);
	fputc('\n', stderr);
}

/* Suggest what shows the file. */
static void suggest(const struct record *r)
{
	const char *path = r->out.path ?: OUTPUT_DEFAULT_PATH;
	struct screen screen;
	struct stat st;

	screen_of(stderr, &screen);
	if (r->out.format == OUTPUT_RECORDING && !output_to_stdout(&r->out) && !r->out.rotate &&
	    *path != '-' && !stat(path, &st) && S_ISREG(st.st_mode))
		screen_next(stderr, &screen, "report", path, NULL);
}

/* Print the ledgers of all files. */
static void summary(struct record *r, const struct ledger *l)
{
	struct ledger all = all_events(r, l);
	__u64 lost = sideband_lost(r->capture.sideband);
	char text[128];

	status_line_end();
	log_info("%s%s records in %.1f s, %.1f MiB to %s%s", r->info.simulated ? "SIMULATED: " : "",
		 TEXT_COUNT(all.outcome[IBS_OUTCOME_FORWARDED]), now_s() - r->started,
		 output_total_bytes(r->capture.output) / 1048576.0, output_name(r->capture.output),
		 r->out.rotate && r->filed[0].seen ? " and the files before it" : "");
	for (unsigned int i = 0; i < session_samplers(r->session); i++)
		print_ledger(r, i, &l[i]);
	if (lost) {
		trace_lost_text(&r->info, lost, text, sizeof(text));
		log_warn("%s", text);
	}
	if (r->capture.chains_lost)
		log_warn("%s samples have no call chain: there were more distinct ones than fit in "
			 "the kernel's map",
			 TEXT_COUNT(r->capture.chains_lost));
	lost = regions_lost(r->capture.regions);
	if (lost)
		log_warn("%s records of regions were lost; some samples have a wrong region or "
			 "none",
			 TEXT_COUNT(lost));
	record_allocs_summary(r);
	suggest(r);
}

/* --- the run */

static int flush(struct record *r, struct err *err)
{
	struct ledger l[TRACE_EVENTS], all;
	int ret = capture_late_names(&r->capture, err);

	ret = ret ?: file_ledgers(r, l, err);
	if (ret)
		return ret;
	block_signals(false, NULL);
	ret = output_flush(r->capture.output, l, err);
	block_signals(true, NULL);
	all = all_events(r, l);
	show_progress(r, &all);
	record_loss_check(r, &all);
	return ret;
}

/*
 * Has the file reached its maximum size? Buffered data is compressed when written, so write it and check
 * again; the last twentieth is not worth ever smaller blocks.
 */
static int full(struct record *r, bool *is_full, struct err *err)
{
	int ret;

	*is_full = false;
	if (!r->max_bytes || output_bytes(r->capture.output) < r->max_bytes)
		return 0;
	ret = flush(r, err);
	*is_full = output_bytes(r->capture.output) >= r->max_bytes - r->max_bytes / 20;
	return ret;
}

/* Wait until there is something to write, or until @deadline. */
static void wait_for_records(struct record *r, double deadline, const sigset_t *open)
{
	const unsigned int samplers = session_samplers(r->session);
	struct pollfd fds[4 + SESSION_EVENTS] = {
		{ .fd = sideband_fd(r->capture.sideband), .events = POLLIN },
		{ .fd = session_fd(r->session), .events = POLLIN },
		{ .fd = r->rank_ended ? -1 : session_command_fd(r->session), .events = POLLIN },
		{ .fd = rank_meeting_fd(r->meeting), .events = POLLIN },
	};
	struct rings *rings = sampler_rings(event(r, 0)->sampler); /* joined with the others */
	double own = fmin(regions_delay_s(r->capture.regions), allocs_delay_s(r->capture.allocs));
	double delay = fmin(rings_delay_ms(rings) / 1e3, own);
	double wait = fmin(delay, fmax(deadline - now_s(), 0));
	const struct timespec t = { .tv_sec = wait, .tv_nsec = (wait - floor(wait)) * 1e9 };

	for (unsigned int i = 0; i < samplers; i++)
		fds[4 + i] = (struct pollfd){ .fd = rings_fd(sampler_rings(
						      session_sampler(r->session, i))),
					      .events = POLLIN };
	ppoll(fds, 4 + samplers, &t, open);
}

/*
 * When a rank exits with an error, the launcher kills the others, some with SIGKILL. So end recording when a
 * rank of this node fails: its exit is passed on only after the recording is complete.
 */
static bool commands_ended(const struct record *r)
{
	return r->rank_failed ||
	       (session_command_ended(r->session) && rank_meeting_over(r->meeting));
}

static int collect(struct record *r, const sigset_t *open, struct err *err)
{
	double end = r->duration_s ? r->started + r->duration_s : INFINITY;
	double next_tick = r->started + TICK_S;
	bool is_full = false;
	int ret = 0;

	while (!ret && !signals.n && now_s() < end && !commands_ended(r)) {
		wait_for_records(r,
				 fmin(fmin(end, session_slice_due(r->session)),
				      fmin(next_tick, r->follow_at)),
				 open);
		ret = capture_slice(&r->capture, false, err);
		ret = ret ?: put_all(r, false, err);
		ret = ret ?: record_ended_ranks(r, err);
		if (!ret && now_s() >= next_tick) {
			session_tick(r->session);
			ret = flush(r, err);
			next_tick = now_s() + TICK_S;
		}
		ret = ret ?: full(r, &is_full, err);
		if (ret || !is_full)
			continue;
		if (!r->out.rotate)
			break;
		ret = rotate(r, err);
	}
	return ret;
}

/* Write all forwarded samples, or report how many are missing. */
static int end(struct record *r, int ret, struct err *err)
{
	struct err second = { "" };
	struct ledger l[TRACE_EVENTS], all;
	int ret2;

	session_stop(r->session);
	if (!ret)
		ret = capture_slice(&r->capture, true, err);
	if (!ret)
		ret = put_all(r, true, err);
	ret = ret ?: record_ended_ranks(r, err);
	if (!ret)
		ret = capture_late_names(&r->capture, err);
	ret2 = file_ledgers(r, l, &second);
	if (!ret2) {
		block_signals(false, NULL);
		ret2 = output_finish(r->capture.output, l, &second);
		block_signals(true, NULL);
		summary(r, l);
		all = all_events(r, l);
		ret2 = ret2 ?: record_loss_end(r, &all, &second);
	}
	alarm(0);
	if (!ret && ret2) {
		ret = ret2;
		*err = second;
	}
	return ret;
}

static int check_complete(struct record *r, unsigned int event_n, struct err *err)
{
	__u64 n = r->filed[event_n].outcome[IBS_OUTCOME_FORWARDED] + written(r, event_n);
	struct snapshot snap;
	int ret = sampler_snapshot(session_sampler(r->session, event_n), &snap, err);

	if (ret)
		return ret;
	if (snap.ledger.outcome[IBS_OUTCOME_FORWARDED] != n)
		ret = err_set(err, -EUCLEAN,
			      "%llu samples were forwarded, %llu written; this is a bug of "
			      "ibscope, please report it",
			      snap.ledger.outcome[IBS_OUTCOME_FORWARDED], n);
	snapshot_free(&snap);
	return ret;
}

static bool samples_data(const struct trace_info *info)
{
	for (unsigned int i = 0; i < info->n_pmus; i++)
		if (info->pmu[i].op)
			return true;
	return false;
}

static int run(struct record *r, const sigset_t *open, struct err *err)
{
	int ret;

	/* on busy CPUs the rings would fill up before we run; our own work is small */
	setpriority(PRIO_PROCESS, 0, PRIORITY);
	record_info(&r->info, r->pmu, r->session, r->sampling.n_events);
	record_strata(&r->info, r->pmu, r->session);
	r->info.job_ranks = r->rank.ranks;
	snprintf(r->info.job, sizeof(r->info.job), "%s", r->rank.job);
	record_topology(&r->info, &r->topology, r->memory);
	r->out.info = &r->info;
	ret = capture_begin(&r->capture, r->session, !r->code_maps && samples_data(&r->info), err);
	ret = ret ?: record_regions_begin(r, err);
	if (ret)
		return ret;
	r->out.stop = &signals.n;
	block_signals(false, NULL);
	ret = output_open(&r->out, &r->capture.output, err);
	block_signals(true, NULL);
	if (ret)
		return ret;
	ret = put_state(r, err);
	/* while we read the state, others fill the buffers that the first events of the command need */
	ret = ret ?: put_all(r, false, err);
	ret = ret ?: session_slices_start(r->session, err) ?: session_start(r->session, err);
	if (ret) {
		output_cancel(r->capture.output);
		r->capture.output = NULL;
		return ret;
	}
	capture_strata(&r->capture);
	measured = session_command(r->session);
	if (r->meeting)
		rank_meeting_start(r->meeting);
	r->started = r->shown = now_s();
	r->progress = status_line_possible() && !output_on_terminal(&r->out);
	ret = collect(r, open, err);
	ret = end(r, ret, err);
	for (unsigned int i = 0; !ret && i < session_samplers(r->session); i++)
		ret = check_complete(r, i, err);
	return ret;
}

static void close_record(struct record *r)
{
	regions_free(r->capture.regions);
	allocs_free(r->capture.allocs);
	regions_dir_remove(r->regions_dir);
	capture_close(&r->capture);
	rank_meeting_close(r->meeting);
	free(r->rank_path);
	free(r->probe_file);
	free(r->rank_pids);
	session_free(r->session);
	sampling_free(&r->sampling);
}

static void record_init(struct record *r)
{
	r->session = session_new();
	sampling_init(&r->sampling);
	r->sampling.labels = 0;
	r->sampling.takes_two = true;
	r->sampling.sampler.output = SAMPLER_RECORDS;
	for (unsigned int i = 0; i < SESSION_EVENTS; i++)
		r->filed[i].pmu_exact = true;
}

static int sample(struct record *r, struct err *err)
{
	sigset_t open;
	int ret;

	of_launcher = r->per_rank;
	catch_signals();
	block_signals(true, &open);
	ret = record_rank_meet(r, err);
	if (!ret && !r->out.fd && !output_to_stdout(&r->out)) /* before anything is loaded */
		ret = output_file_check(r->out.path ?: OUTPUT_DEFAULT_PATH, err);
	ret = ret ?: session_open(r->session, &r->sampling, err);
	ret = ret ?: run(r, &open, err);
	rank_meeting_close(r->meeting);
	r->meeting = NULL;
	if (ret)
		log_error("%s", err->text);
	ret = session_end(r->session, &signals, ret);
	record_rank_end(r);
	return ret;
}

int cmd_record(int argc, char **argv)
{
	struct option_row rows[RECORD_OPTIONS_MAX];
	struct record r = { .max_loss = 0.1 };
	const struct option_set sets[] = {
		{ "Sampling", rows, sampling_rows(rows), &r.sampling },
		{ "Selection", select_option_rows, select_option_n_rows, &r.sampling.select },
		{ "Output", record_options, record_n_options, &r },
	};
	struct err err = { "" };
	int ret, words;

	record_init(&r);
	record_command(&r.info, argc, argv);
	ret = words = sampling_cut_command(&r.sampling, argc, argv, &err);
	if (words > 0)
		ret = options_parse(words, argv, sets, 3, &err);
	if (ret > 0) {
		if (ret == OPTIONS_HELP)
			usage(stdout, sets, 3);
		close_record(&r);
		return EXIT_DONE;
	}
	ret = ret ?: sampling_check(&r.sampling, &err);
	ret = ret ?: check_options(&r, words, argv, &err);
	ret = ret ?: record_rank_prepare(&r, &err);
	if (ret) {
		log_error("%s", err.text);
		close_record(&r);
		return EXIT_USAGE;
	}
	if (r.sampling.select.explain) {
		ret = sampling_explain(&r.sampling, false);
		close_record(&r);
		return ret;
	}
	ret = record_allocs_prepare(&r, &err);
	ret = ret ?: record_regions_prepare(&r, &err);
	if (ret) {
		log_error("%s", err.text);
		close_record(&r);
		return EXIT_USAGE;
	}
	ret = record_rank_follows(&r) ? record_rank_follow(&r) : sample(&r, &err);
	close_record(&r);
	record_rank_raise(&r);
	return ret;
}
