// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "bench_perf.h"

#include "clock.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define READY_S	   30 /* an emulated machine is slow */
#define SWITCH_S   10
#define IDLE_TURNS 16
#define INHERITED  100 /* descriptors that perf is to inherit are above */
#define ARGS	   40

/* --- what perf writes: records with a header of eight bytes each --- */

#define PERF_PIPE_HEADER 16
#define RECORD_HEAD	 8
#define RECORD_KEPT	 24 /* as much as is looked at */
/* In the header of a file: where the records begin, then how many bytes they have. */
#define PERF_DATA_AT 40

struct walk {
	size_t skip; /* bytes of no interest */
	size_t have; /* of `head` */
	__u8 head[RECORD_KEPT];
	struct bench_perf_read *out;
	bool bad;
};

static size_t record_size(const struct walk *w)
{
	__u16 size;

	memcpy(&size, w->head + 6, sizeof(size));
	return size;
}

static void record_done(struct walk *w)
{
	__u64 value[2];
	__u32 type;

	memcpy(&type, w->head, sizeof(type));
	memcpy(value, w->head + RECORD_HEAD, sizeof(value));
	if (type == PERF_RECORD_SAMPLE)
		w->out->samples++;
	else if (type == PERF_RECORD_LOST)
		w->out->lost += value[1];
	else if (type == PERF_RECORD_LOST_SAMPLES)
		w->out->lost += value[0];
	w->skip = record_size(w) - w->have;
	w->have = 0;
}

static void walk(struct walk *w, const __u8 *data, size_t n)
{
	w->out->bytes += n;
	while (n && !w->bad) {
		size_t take = w->skip, want;

		if (take) {
			take = take < n ? take : n;
			w->skip -= take;
		} else {
			want = w->have < RECORD_HEAD ? RECORD_HEAD : record_size(w);
			want = want < RECORD_KEPT ? want : RECORD_KEPT;
			take = want - w->have < n ? want - w->have : n;
			memcpy(w->head + w->have, data, take);
			w->have += take;
			if (w->have == RECORD_HEAD && record_size(w) < RECORD_HEAD)
				w->bad = true;
			else if (w->have >= RECORD_HEAD &&
				 (w->have == RECORD_KEPT || w->have == record_size(w)))
				record_done(w);
		}
		data += take;
		n -= take;
	}
}

static int walk_file(int fd, struct bench_perf_read *out, struct err *err)
{
	struct walk w = { .out = out };
	static __u8 buf[1 << 16];
	__u64 at[2];
	ssize_t n;

	if (pread(fd, at, sizeof(at), PERF_DATA_AT) != sizeof(at))
		return err_set(err, -EINVAL, "perf wrote no file");
	for (__u64 end = at[0] + at[1]; at[0] < end && !w.bad; at[0] += n) {
		n = pread(fd, buf, end - at[0] < sizeof(buf) ? end - at[0] : sizeof(buf), at[0]);
		if (n <= 0)
			break;
		walk(&w, buf, n);
	}
	return w.bad ? err_set(err, -EINVAL, "perf's file is not understood") : 0;
}

/* --- perf --- */

struct bench_perf {
	const struct bench *bench;
	struct bench_perf_opts opts;
	struct bench_child child;
	int ctl, ack;	/* -1: closed */
	int file, pipe; /* the same */
	char path[64], said[256];
	double ready_ns, switch_ns; /* CPU time: when it was ready, and of one command */
	unsigned long switches;
	pthread_t reader;
	bool reading;
	double reader_ns;
	struct bench_perf_read read;
};

static void close_fd(int *fd)
{
	if (*fd >= 0)
		close(*fd);
	*fd = -1;
}

/* What perf said last is why it does not do what it should. */
static int perf_failed(struct bench_perf *p, const char *what, struct err *err)
{
	bench_child_end(&p->child, SIGKILL, NULL);
	bench_child_said(&p->child, p->said, sizeof(p->said));
	return err_set(err, -EIO, "perf %s%s%s", what, *p->said ? ": " : "", p->said);
}

static int await_ack(struct bench_perf *p, double seconds, struct err *err)
{
	double deadline = now_s() + seconds;
	struct pollfd f = { .fd = p->ack, .events = POLLIN };
	char answer[16];
	int ret;

	do {
		ret = bench_check_stop(err);
		if (ret)
			return ret;
		if (poll(&f, 1, 100) <= 0)
			continue;
		return read(p->ack, answer, sizeof(answer)) > 0 ? 0 : perf_failed(p, "ended", err);
	} while (now_s() < deadline);
	return perf_failed(p, "does not answer", err);
}

static int command(struct bench_perf *p, const char *text, double seconds, struct err *err)
{
	if (write(p->ctl, text, strlen(text)) != (ssize_t)strlen(text))
		return perf_failed(p, "ended", err);
	return await_ack(p, seconds, err);
}

static int set(void *arg, bool on, struct err *err)
{
	struct bench_perf *p = arg;

	p->switches++;
	return command(p, on ? "enable\n" : "disable\n", SWITCH_S, err);
}

struct loop_subject bench_perf_subject(struct bench_perf *p)
{
	return (struct loop_subject){ .set = set, .arg = p };
}

static void *read_pipe(void *arg)
{
	struct bench_perf *p = arg;
	struct walk w = { .out = &p->read, .skip = PERF_PIPE_HEADER };
	static __u8 buf[1 << 16];
	ssize_t n;

	quiet_bind(p->bench->reader_cpu, NULL);
	while ((n = read(p->pipe, buf, sizeof(buf))) > 0)
		walk(&w, buf, n);
	p->reader_ns = clock_ns(CLOCK_THREAD_CPUTIME_ID);
	return NULL;
}

/* Two descriptors of a pipe: ours, and perf's, which it inherits. */
static int make_pipe(int *ours, int *theirs, bool we_read, struct err *err)
{
	int fds[2], ret = 0;

	if (pipe2(fds, O_CLOEXEC))
		return err_set(err, -errno, "cannot make a pipe: %s", strerror(errno));
	*ours = fds[we_read ? 0 : 1];
	*theirs = fcntl(fds[we_read ? 1 : 0], F_DUPFD, INHERITED);
	if (*theirs < 0)
		ret = err_set(err, -errno, "cannot make a pipe: %s", strerror(errno));
	close(fds[we_read ? 1 : 0]);
	return ret;
}

static int spawn(struct bench_perf *p, struct err *err)
{
	const struct bench *b = p->bench;
	char control[48], period[24], cpu[16];
	int ctl = -1, ack = -1, out = -1, ret, n = 0;
	char *argv[ARGS];

	argv[n++] = "perf";
	if (p->opts.mem)
		argv[n++] = "mem";
	argv[n++] = "record";
	argv[n++] = "-q";
	argv[n++] = "-B";
	argv[n++] = "-N";
	argv[n++] = "-o";
	argv[n++] = p->opts.pipe ? "-" : p->path;
	if (!p->opts.mem) {
		argv[n++] = "-e";
		argv[n++] = (char *)b->event;
		argv[n++] = "--raw-samples";
	}
	if (p->opts.filter) {
		argv[n++] = "--filter";
		argv[n++] = (char *)p->opts.filter;
	}
	argv[n++] = "-c";
	argv[n++] = period;
	argv[n++] = "-C";
	argv[n++] = cpu;
	argv[n++] = "-D";
	argv[n++] = "-1";
	argv[n++] = "--control";
	argv[n++] = control;
	argv[n] = NULL;
	ret = make_pipe(&p->ctl, &ctl, false, err) ?: make_pipe(&p->ack, &ack, true, err);
	if (!ret && p->opts.pipe)
		ret = make_pipe(&p->pipe, &out, true, err);
	snprintf(period, sizeof(period), "%llu", p->opts.period);
	snprintf(cpu, sizeof(cpu), "%u", b->cpu);
	snprintf(control, sizeof(control), "fd:%d,%d", ctl, ack);
	ret = ret ?: bench_child_start(b, argv, out, &p->child, err);
	close_fd(&ctl);
	close_fd(&ack);
	close_fd(&out);
	return ret;
}

/* Until it answers; then what its answers cost. */
static int get_ready(struct bench_perf *p, struct err *err)
{
	double before;
	int ret = command(p, "disable\n", READY_S, err);

	before = bench_child_cpu_ns(&p->child);
	for (int i = 0; !ret && i < IDLE_TURNS; i++)
		ret = command(p, "disable\n", SWITCH_S, err);
	p->ready_ns = bench_child_cpu_ns(&p->child);
	p->switch_ns = (p->ready_ns - before) / IDLE_TURNS;
	return ret;
}

int bench_perf_start(const struct bench *b, const struct bench_perf_opts *opts,
		     struct bench_perf **out, struct err *err)
{
	struct bench_perf *p;
	int ret = 0;

	if (!bench_in_path("perf"))
		return err_set(err, -ENOENT, "there is no perf in PATH");
	p = calloc(1, sizeof(*p));
	if (!p)
		return err_set(err, -ENOMEM, "out of memory");
	p->bench = b;
	p->opts = *opts;
	p->ctl = p->ack = p->file = p->pipe = -1;
	if (!opts->pipe) {
		ret = p->file = bench_tmpfile(err);
		snprintf(p->path, sizeof(p->path), "/proc/%d/fd/%d", getpid(), p->file);
	}
	if (ret >= 0)
		ret = spawn(p, err);
	if (!ret && opts->pipe) {
		ret = -pthread_create(&p->reader, NULL, read_pipe, p);
		if (ret)
			err_set(err, ret, "cannot make a thread: %s", strerror(-ret));
		p->reading = !ret;
	}
	ret = ret ?: get_ready(p, err);
	if (ret) {
		bench_perf_close(p);
		return ret;
	}
	*out = p;
	return 0;
}

/* The process and the thread, so that nothing is written any more. */
static int end(struct bench_perf *p, int sig, double *cpu_ns)
{
	int status = bench_child_end(&p->child, sig, cpu_ns);

	close_fd(&p->ctl);
	close_fd(&p->ack);
	if (p->reading)
		pthread_join(p->reader, NULL);
	p->reading = false;
	close_fd(&p->pipe);
	return status;
}

int bench_perf_end(struct bench_perf *p, struct bench_perf_read *out, struct err *err)
{
	double cpu_ns = 0;
	int status = end(p, SIGINT, &cpu_ns), ret = 0;

	/* it ends by the signal that ended it, if it ran no command */
	if (status < 0 || (WIFEXITED(status) && WEXITSTATUS(status)) ||
	    (WIFSIGNALED(status) && WTERMSIG(status) != SIGINT))
		return perf_failed(p, "failed", err);
	if (p->file >= 0)
		ret = walk_file(p->file, &p->read, err);
	p->read.cpu_ns = cpu_ns - p->ready_ns - p->switches * p->switch_ns + p->reader_ns;
	*out = p->read;
	return ret;
}

const char *bench_perf_file(const struct bench_perf *p)
{
	return p->path;
}

void bench_perf_close(struct bench_perf *p)
{
	if (!p)
		return;
	end(p, SIGKILL, NULL);
	close_fd(&p->file);
	if (p->child.said > 0)
		close(p->child.said);
	free(p);
}
