// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "flight.h"
#include "flight_file.h"

#include "base/child.h"
#include "base/clock.h"
#include "base/num.h"
#include "base/text.h"

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

	/* the dump that is being written */
	pid_t child; /* 0: none */
	struct flight_request request;
	struct flight_result *result; /* in shared memory */
};

/* --- options --- */

int flight_parse(const char *arg, struct flight_opts *out, struct err *err)
{
	static const struct duration_arg time = {
		.name = "--flight", .bare_s = 1, .min_s = 1, .max_s = SECONDS_MAX
	};
	static const struct size_arg size = {
		.name = "--flight", .bare = 1 << 20, .min = BYTES_MIN, .max = BYTES_MAX
	};
	struct flight_opts o = { .bytes = BYTES };
	const char *colon = strchr(arg, ':');
	char text[32];

	snprintf(text, sizeof(text), "%.*s", colon ? (int)(colon - arg) : 31, arg);
	if (!strcmp(arg, "off")) {
		*out = (struct flight_opts){};
		return 0;
	}
	if ((colon ? (size_t)(colon - arg) : strlen(arg)) >= sizeof(text) ||
	    num_parse_duration(&time, text, &o.seconds, err) ||
	    (colon && num_parse_size(&size, colon + 1, (uint64_t *)&o.bytes, err)))
		return err_set(err, -EINVAL,
			       "--flight: invalid TIME[:SIZE] '%.40s': must be from 1s to %dh and "
			       "from %lluK to %lluG, such as 60s:%lluM, or off",
			       arg, SECONDS_MAX / 3600, BYTES_MIN >> 10, BYTES_MAX >> 30,
			       BYTES >> 20);
	*out = o;
	return 0;
}

int flight_check(const struct flight_opts *opts, struct sampling_opts *s, struct err *err)
{
	if (!opts->seconds)
		return 0;
	if (sampling_of_fetch(s) || s->n_events > 1)
		return err_set(err, -EINVAL,
			       "--flight keeps ibs_op samples only; with -e ibs_fetch it cannot be "
			       "used");
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

void flight_begin(struct flight *f, const struct flight_opts *opts, struct session *s)
{
	forget_marks(f);
	f->opts = *opts;
	f->session = s;
	if (!f->opts.seconds)
		return;
	put_mark(f);
	sampler_copy(sampler_of(f), true);
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

/* --- dumps --- */

static void log_dump(const struct flight *f, int status)
{
	const struct flight_result *r = f->result;
	char text[FLIGHT_TEXT_MAX];

	if (WIFEXITED(status) && !WEXITSTATUS(status)) {
		flight_result_text(r, text);
		log_info("flight: %s: %s", f->request.by, text);
		return;
	}
	if (WIFSIGNALED(status))
		log_warn("flight: %s: the process that writes the recording was killed (%s)",
			 f->request.by,
			 WTERMSIG(status) == SIGALRM ? "it took too long"
						     : strsignal(WTERMSIG(status)));
	else
		log_warn("flight: %s: %.300s", f->request.by, r->err.text);
}

static void reap(struct flight *f)
{
	int status;

	if (!f->child || waitpid(f->child, &status, WNOHANG) != f->child)
		return;
	f->child = 0;
	log_dump(f, status);
}

void flight_tick(struct flight *f)
{
	reap(f);
	if (!f->opts.seconds)
		return;
	if (clock_ns(CLOCK_MONOTONIC) - newest(f)->time_ns >= f->opts.seconds * 1e9 / (MARKS - 1))
		put_mark(f);
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
	f->child = fork();
	if (!f->child)
		child_main(f, r, parent);
	if (f->child > 0) {
		f->request = *r;
		return 0;
	}
	f->child = 0;
	return err_set(err, -errno, "cannot start a process: %s", strerror(errno));
}

void flight_free(struct flight *f)
{
	if (!f)
		return;
	reap(f);
	if (f->child) {
		kill(f->child, SIGKILL);
		waitpid(f->child, NULL, 0);
		log_info("flight: %s: not complete, since the collector exits", f->request.by);
	}
	forget_marks(f);
	munmap(f->result, sizeof(*f->result));
	free(f);
}
