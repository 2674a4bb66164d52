// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "flight.h"
#include "flight_dir.h"
#include "flight_file.h"

#include "base/child.h"
#include "base/clock.h"
#include "base/num.h"
#include "base/text.h"
#include "capture/capture.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#define BYTES	     (16ULL << 20)
#define BYTES_MIN    (32ULL << 10)
#define BYTES_MAX    (2ULL << 30)
#define SECONDS_MAX  3600
#define MARKS	     64 /* a dump begins up to 1/63 of the time, or a second, earlier than asked for */
#define CHILD_S	     25		    /* clients wait 30 s */
#define CHILD_MEMORY (512ULL << 20) /* bytes, besides the copies of the rings */
#define EVERY_S	     600
#define FILES	     8
#define DIR_BYTES    (256ULL << 20)

/* Where the rings were at a time. */
struct mark {
	__u64 time_ns; /* CLOCK_MONOTONIC */
	__u64 period;  /* as of sampler_period() */
	__u32 *written;
};

struct flight {
	struct flight_opts opts;
	struct session *session;
	/* the newest at (n_marks - 1) % MARKS */
	struct mark mark[MARKS];
	size_t n_marks;

	/* the recording that is being written */
	pid_t child; /* 0: none */
	struct flight_request request;
	struct flight_file file; /* to be put in place, if own_file */
	bool own_file;
	struct flight_result *result; /* in shared memory */

	struct flight_slowest slowest; /* of the newest file of its own */
	bool slowest_new;	       /* nobody has asked for them yet */

	/* conditions */
	struct {
		double held_s; /* it has been true for so long */
		bool fired;    /* since it became true */
	} on[FLIGHT_CONDITIONS];
	struct snapshot last;
	bool has_last;
	__u64 fired_ns; /* CLOCK_MONOTONIC of the last start; 0: none */
	__u64 counts[IBS_FLIGHT_N];
};

/* --- options --- */

static int set_flight(void *ctx, const char *arg, struct err *err)
{
	static const struct duration_arg time = {
		.name = "--flight", .bare_s = 1, .min_s = 1, .max_s = SECONDS_MAX
	};
	static const struct size_arg size = {
		.name = "--flight", .bare = 1 << 20, .min = BYTES_MIN, .max = BYTES_MAX
	};
	struct flight_opts *o = ctx;
	const char *colon = strchr(arg, ':');
	size_t n = colon ? (size_t)(colon - arg) : strlen(arg);
	uint64_t bytes = BYTES;
	double seconds;
	char text[32];

	if (!strcmp(arg, "off")) {
		o->seconds = 0;
		return 0;
	}
	snprintf(text, sizeof(text), "%.*s", (int)n, arg);
	if (n >= sizeof(text) || num_parse_duration(&time, text, &seconds, err) ||
	    (colon && num_parse_size(&size, colon + 1, &bytes, err)))
		return err_set(err, -EINVAL,
			       "--flight: invalid TIME[:SIZE] '%.40s': must be from 1s to %dh and "
			       "from %lluK to %lluG, such as 60s:%lluM, or off",
			       arg, SECONDS_MAX / 3600, BYTES_MIN >> 10, BYTES_MAX >> 30,
			       BYTES >> 20);
	o->seconds = seconds;
	o->bytes = bytes;
	return 0;
}

static int add_condition(void *ctx, const char *arg, struct err *err)
{
	struct flight_opts *o = ctx;

	if (o->n_on == FLIGHT_CONDITIONS)
		return err_set(err, -E2BIG, "--flight-on: at most %d conditions",
			       FLIGHT_CONDITIONS);
	return flight_condition_parse(arg, &o->on[o->n_on++], err);
}

const struct option_row flight_options[] = {
	{ "flight", 0, "TIME[:SIZE]|off",
	  "keep the samples of the last TIME, such as 60s, in SIZE of memory, for "
	  "`ibscope ctl dump`; default off, SIZE 16M",
	  set_flight },
	{ "flight-on", 0, "CONDITION",
	  "also write them when it is true, such as 'container == web && p99 > 2000 for 5s'; "
	  "can be repeated",
	  add_condition },
	{ "flight-dir", 0, "DIR",
	  "write recordings of --flight-on and SIGUSR2 there; default " FLIGHT_DIR_DEFAULT,
	  OPTION_PATH(struct flight_opts, dir) },
	{ "flight-every", 0, "TIME",
	  "least time between two recordings of --flight-on; default 10m",
	  OPTION_DURATION(struct flight_opts, every_s, 1, 86400) },
	{ "flight-keep", 0, "N", "recordings to keep in that directory, the newest ones; default 8",
	  OPTION_NUMBER(struct flight_opts, files, 1, 10000) },
	{ "flight-keep-bytes", 0, "SIZE", "size of the recordings to keep there; default 256M",
	  OPTION_SIZE(struct flight_opts, dir_bytes, 1 << 20, 1 << 20, 1ULL << 40) },
};
const size_t flight_n_options = sizeof(flight_options) / sizeof(flight_options[0]);

static int check_condition(const struct flight_condition *c, const struct sampling_opts *s,
			   struct err *err)
{
	const unsigned int labels = flight_condition_labels(c);
	int ret = labels_counted(labels, false, err)
			  ?: labels_known(labels, labels_by(s->event[0].labels), err);

	if (ret)
		err_prefix(err, "--flight-on");
	return ret;
}

int flight_check(const struct flight_opts *opts, struct sampling_opts *s, struct err *err)
{
	if (!opts->seconds)
		return opts->n_on ? err_set(err, -EINVAL,
					    "--flight-on needs --flight, such as --flight 60s")
				  : 0;
	if (sampling_of_fetch(s) || s->n_events > 1)
		return err_set(err, -EINVAL,
			       "--flight keeps ibs_op samples only; with -e ibs_fetch it cannot be "
			       "used");
	for (unsigned int i = 0; i < opts->n_on; i++)
		if (check_condition(&opts->on[i], s, err))
			return -EINVAL;
	s->sampler.copies = true;
	s->sampler.history_bytes = opts->bytes;
	return 0;
}

/* --- marks --- */

struct flight *flight_new(void)
{
	struct flight *f = xcalloc(1, sizeof(*f));

	f->result = mmap(NULL, sizeof(*f->result), PROT_READ | PROT_WRITE,
			 MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (f->result == MAP_FAILED)
		out_of_memory();
	return f;
}

static struct sampler *sampler_of(const struct flight *f)
{
	return session_event(f->session, 0)->sampler;
}

static void forget_marks(struct flight *f)
{
	for (size_t i = 0; i < MARKS; i++)
		free(f->mark[i].written);
	memset(f->mark, 0, sizeof(f->mark));
	f->n_marks = 0;
}

static void put_mark(struct flight *f)
{
	const struct rings *rings = sampler_rings(sampler_of(f));
	struct mark *m = &f->mark[f->n_marks++ % MARKS];

	if (!m->written)
		m->written = xcalloc(rings_n(rings), sizeof(*m->written));
	m->time_ns = clock_ns(CLOCK_MONOTONIC);
	m->period = sampler_period(sampler_of(f));
	rings_mark(rings, m->written);
}

static const char *dir_of(const struct flight *f)
{
	return *f->opts.dir ? f->opts.dir : FLIGHT_DIR_DEFAULT;
}

int flight_begin(struct flight *f, const struct flight_opts *opts, struct session *s,
		 struct err *err)
{
	int ret;

	forget_marks(f);
	snapshot_free(&f->last);
	f->has_last = false;
	memset(f->on, 0, sizeof(f->on));
	f->opts = *opts;
	f->session = s;
	if (!f->opts.seconds)
		return 0;
	put_mark(f);
	sampler_copy(sampler_of(f), true);
	ret = opts->n_on || *opts->dir ? flight_dir_check(dir_of(f), err) : 0;
	capture_prepare();
	return ret;
}

static const struct mark *newest(const struct flight *f)
{
	return &f->mark[(f->n_marks - 1) % MARKS];
}

/* The last mark that is at least as old as the time to keep; the oldest if there is none. */
static const struct mark *window_start(const struct flight *f, bool *same_period)
{
	const __u64 now = clock_ns(CLOCK_MONOTONIC), period = sampler_period(sampler_of(f));
	const struct mark *m = newest(f);

	*same_period = m->period == period;
	for (size_t i = 1; i < f->n_marks && i < MARKS && now - m->time_ns < f->opts.seconds * 1e9;
	     i++) {
		m = &f->mark[(f->n_marks - 1 - i) % MARKS];
		*same_period &= m->period == period;
	}
	return m;
}

/* --- recordings --- */

/* Put a file of our own in place. */
static int end_own_file(struct flight *f, bool whole, struct err *err)
{
	int ret = output_file_end(&f->file.out, whole ? 0 : -EIO, err);

	f->own_file = false;
	if (ret || !whole)
		return ret;
	flight_dir_prune(dir_of(f), f->opts.files ?: FILES, f->opts.dir_bytes ?: DIR_BYTES);
	return 0;
}

static void log_success(const struct flight *f, bool own)
{
	char text[FLIGHT_TEXT_MAX];

	flight_result_text(f->result, text);
	log_info("flight: %s: %s%s%s", f->request.by, text, own ? " to " : "",
		 own ? f->file.path : "");
}

static void log_failure(const struct flight *f, int status, const struct err *err)
{
	if (WIFSIGNALED(status))
		log_warn("flight: %s: the process that writes the recording was killed (%s)",
			 f->request.by,
			 WTERMSIG(status) == SIGALRM ? "it took too long"
						     : strsignal(WTERMSIG(status)));
	else
		log_warn("flight: %s: %.300s", f->request.by,
			 *err->text ? err->text : f->result->err.text);
}

static void reap(struct flight *f)
{
	struct err err = { "" };
	bool own = f->own_file, whole;
	int status;

	if (!f->child || waitpid(f->child, &status, WNOHANG) != f->child)
		return;
	f->child = 0;
	whole = WIFEXITED(status) && !WEXITSTATUS(status);
	if (own && end_own_file(f, whole, &err) && whole)
		whole = false;
	f->counts[whole ? IBS_FLIGHT_WRITTEN : IBS_FLIGHT_FAILED]++;
	if (whole && own) {
		f->slowest = f->result->slowest;
		f->slowest_new = true;
	}
	if (whole)
		log_success(f, own);
	else
		log_failure(f, status, &err);
}

/* The whole answer fits the buffer of the socket. */
static void answer(int connection, int ret, const struct flight_result *r)
{
	char text[FLIGHT_TEXT_MAX], out[FLIGHT_TEXT_MAX + sizeof(r->err.text) + 16];
	int n;

	flight_result_text(r, text);
	n = ret ? snprintf(out, sizeof(out), "error failed\n%s\n", r->err.text)
		: snprintf(out, sizeof(out), "ok\n%s\n", text);
	send(connection, out, n, MSG_NOSIGNAL);
}

static void child_main(const struct flight *f, const struct flight_request *r, pid_t parent)
{
	struct flight_window w = { .session = f->session };
	const struct mark *m;
	bool same_period;
	int ret;

	child_enter(parent, r->file, r->connection >= 0 ? r->connection : r->file,
		    CHILD_MEMORY + f->opts.bytes);
	alarm(CHILD_S);
	m = window_start(f, &same_period);
	w.since_ns = m->time_ns;
	w.written = m->written;
	w.period = same_period ? m->period : 0;
	w.recording_ns = f->file.time_ns;
	ret = flight_write(&w, r->file, f->result, &f->result->err);
	if (r->connection >= 0)
		answer(r->connection, ret, f->result);
	_exit(ret != 0);
}

int flight_dump(struct flight *f, const struct flight_request *r, struct err *err)
{
	const pid_t parent = getpid();
	int flags = fcntl(r->file, F_GETFL);

	if (!f->opts.seconds)
		return err_set(err, -ENODATA,
			       "the collector has no flight recorder: start it with --flight 60s");
	if (flags < 0 || (flags & O_ACCMODE) == O_RDONLY)
		return err_set(err, -EBADF,
			       "dump: no file to write to was passed with the request");
	reap(f);
	if (f->child)
		return err_set(err, -EBUSY, "another dump is being written; try again");
	*f->result = (struct flight_result){};
	f->request = *r;
	f->child = fork();
	if (!f->child)
		child_main(f, r, parent);
	if (f->child > 0)
		return 0;
	f->child = 0;
	return err_set(err, -errno, "cannot start a process: %s", strerror(errno));
}

/* --- recordings without a request --- */

static void dump_to_dir(struct flight *f, const char *why)
{
	struct flight_request r = { .connection = -1 };
	struct err err;

	reap(f);
	snprintf(r.by, sizeof(r.by), "%s", why);
	if (f->child) {
		f->counts[IBS_FLIGHT_SKIPPED]++;
		log_warn("flight: %s: skipped, as another recording is being written", why);
		return;
	}
	f->own_file = true;
	if (!flight_dir_begin(dir_of(f), &f->file, &err)) {
		r.file = f->file.out.fd;
		if (!flight_dump(f, &r, &err))
			return;
		output_file_end(&f->file.out, -EIO, &err);
	}
	f->own_file = false;
	f->counts[IBS_FLIGHT_FAILED]++;
	log_warn("flight: %s: %s", why, err.text);
}

void flight_signal(struct flight *f)
{
	if (!f->opts.seconds)
		log_warn("SIGUSR2: no flight recorder: start with --flight 60s");
	else
		dump_to_dir(f, "SIGUSR2");
}

static void fire(struct flight *f, const struct flight_condition *c, const char *value)
{
	const __u64 now = clock_ns(CLOCK_MONOTONIC);
	char why[sizeof(f->request.by)];

	snprintf(why, sizeof(why), "%s (%s)", c->text, value);
	if (f->fired_ns && now - f->fired_ns < (f->opts.every_s ?: EVERY_S) * 1e9) {
		f->counts[IBS_FLIGHT_SKIPPED]++;
		log_info("flight: %s: skipped, as the last recording began %.0f s ago", why,
			 (now - f->fired_ns) / 1e9);
		return;
	}
	f->fired_ns = now;
	dump_to_dir(f, why);
}

/* Ticks come about once a second: half a second of slack makes "for 5s" five of them. */
#define SLACK_S 0.5

static void check_conditions(struct flight *f, const struct flight_second *s)
{
	char value[64];

	for (unsigned int i = 0; i < f->opts.n_on; i++) {
		const struct flight_condition *c = &f->opts.on[i];

		if (!flight_condition_true(c, s, value, sizeof(value))) {
			f->on[i].held_s = 0;
			f->on[i].fired = false;
			continue;
		}
		f->on[i].held_s += s->length_s;
		/* while another recording is written, it waits */
		if (f->on[i].fired || f->on[i].held_s + SLACK_S < c->for_s || f->child)
			continue;
		f->on[i].fired = true;
		fire(f, c, value);
	}
}

static void look(struct flight *f)
{
	struct snapshot now, diff;
	unsigned int labels = 0;
	struct err ignored;
	struct rows rows;

	if (sampler_snapshot(sampler_of(f), &now, &ignored))
		return;
	if (f->has_last) {
		for (unsigned int i = 0; i < f->opts.n_on; i++)
			labels |= flight_condition_labels(&f->opts.on[i]);
		snapshot_diff(&now, &f->last, &diff);
		rows_build(&diff, labels, session_cgroup_name, f->session, &rows);
		check_conditions(f, &(struct flight_second){ diff.time_ns / 1e9, &diff, &rows });
		rows_free(&rows);
		snapshot_free(&diff);
		snapshot_free(&f->last);
	}
	f->last = now;
	f->has_last = true;
}

void flight_tick(struct flight *f)
{
	reap(f);
	if (!f->opts.seconds)
		return;
	if (clock_ns(CLOCK_MONOTONIC) - newest(f)->time_ns >= f->opts.seconds * 1e9 / (MARKS - 1))
		put_mark(f);
	if (f->opts.n_on)
		look(f);
}

bool flight_counts(struct flight *f, __u64 out[IBS_FLIGHT_N])
{
	memcpy(out, f->counts, sizeof(f->counts));
	memset(f->counts, 0, sizeof(f->counts));
	return f->opts.seconds > 0;
}

const struct flight_slowest *flight_new_slowest(struct flight *f)
{
	bool is_new = f->slowest_new;

	f->slowest_new = false;
	return is_new ? &f->slowest : NULL;
}

void flight_free(struct flight *f)
{
	struct err ignored;

	if (!f)
		return;
	reap(f);
	if (f->child) {
		kill(f->child, SIGKILL);
		waitpid(f->child, NULL, 0);
		if (f->own_file)
			output_file_end(&f->file.out, -EINTR, &ignored);
		log_info("flight: %s: not complete, since the collector exits", f->request.by);
	}
	forget_marks(f);
	snapshot_free(&f->last);
	munmap(f->result, sizeof(*f->result));
	free(f);
}
