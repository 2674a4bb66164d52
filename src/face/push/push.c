// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "push.h"
#include "base/choice.h"

#include "base/child.h"
#include "base/clock.h"
#include "base/text.h"
#include "capture/capture.h"
#include "capture/record_info.h"
#include "push_http.h"
#include "push_profile.h"

#include <fcntl.h>
#include <math.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#define INTERVAL_S   60
#define DURATION_S   10
#define RING_BYTES   (128U << 10)
#define SAMPLES_MAX  262144	    /* a profile ends when it has so many */
#define CHILD_MEMORY (512ULL << 20) /* bytes */
#define CHILD_CPU_S  60		    /* in which a profile is made, besides the time for names */
#define CHILD_S	     600	    /* limit for naming and posting, with all tries */
#define LATE_S	     90		    /* after its end a profile is late */
#define TICK_S	     0.5

/* Result of the child, in shared memory. */
struct report {
	__u32 retries;
	__u32 unnamed_files;
	__u64 unnamed_samples;
	int ret;
	struct err err;
};

struct push {
	struct push_opts opts;
	struct session *session;
	double next_s; /* when the next profile begins */

	/* the profile that is being recorded */
	bool taking;
	double ends_s;
	int file; /* its recording; -1: none */
	struct capture capture;
	struct trace_info info;
	struct trace_pmu pmu;
	struct trace_topology topology;
	struct memory_range memory[MEMORY_RANGES];
	__u64 period; /* as of sampler_period() */
	__u64 began_ns, dropped_before;

	/* the profile that is being named and posted */
	pid_t child; /* 0: none */
	int ended;   /* pipe that the child keeps open */
	struct report *report;
	__u64 samples;
	double ended_s; /* when its last sample was copied */

	struct naming_memory *given_up; /* files that are not named */
	__u32 given_up_logged;
	bool unnamed; /* the last profile lacks names */

	struct ibs_push_counts *counts;
	struct err failure; /* the last one; "" after a success */
};

CHOICE_NAMES(push_format_name, unsigned int, PUSH_FORMAT_TABLE)

/* --- options --- */

/* Does the rest of a URL, after "://", name this machine? */
static bool is_local(const char *host)
{
	static const char *const names[] = { "localhost", "127.0.0.1", "[::1]" };

	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		size_t n = strlen(names[i]);

		if (!strncmp(host, names[i], n) && (!host[n] || strchr(":/", host[n])))
			return true;
	}
	return false;
}

static int check_url(struct push_opts *o, struct err *err)
{
	bool plain = !strncmp(o->url, "http://", 7), tls = !strncmp(o->url, "https://", 8);
	const char *host = o->url + 7 + tls;
	size_t n = strlen(o->url);

	if ((!plain && !tls) || !*host || *host == '/' || strpbrk(host, "?#@ "))
		return err_set(err, -EINVAL,
			       "--push: invalid URL '%s': must be http://HOST[:PORT][/PATH] or "
			       "https://..., without a query; for credentials use "
			       "--push-credentials",
			       o->url);
	if (plain && *o->credentials && !is_local(host))
		return err_set(err, -EINVAL,
			       "--push: %s would send the credentials unencrypted: use https://",
			       o->url);
	if (o->url[n - 1] == '/')
		o->url[n - 1] = 0;
	return 0;
}

int push_check(struct push_opts *o, struct sampling_opts *s, struct err *err)
{
	struct push_secret secret;
	int ret;

	if (!*o->url) {
		if (o->stacks)
			return err_set(err, -EINVAL,
				       "--stacks: only profiles have call chains; add --push URL");
		if (o->interval_s || o->duration_s || *o->name || *o->credentials || *o->ca)
			return err_set(err, -EINVAL,
				       "--push-...: no URL to push to; add --push URL");
		return 0;
	}
	if (sampling_of_fetch(s))
		return err_set(err, -EINVAL,
			       "--push: profiles consist of ibs_op samples; %s samples cannot be "
			       "copied",
			       s->event[0].spec.pmu);
	if (s->sampler.history_bytes)
		return err_set(err, -EINVAL,
			       "--push and --flight cannot be combined: both use the copies of "
			       "samples");
	ret = check_url(o, err) ?: push_secret_read(o->credentials, &secret, err);
	if (ret)
		return ret;
	if (*o->ca && access(o->ca, R_OK))
		return err_set(err, -errno, "--push-ca: cannot read %s: %s", o->ca,
			       strerror(errno));
	if (!o->interval_s)
		o->interval_s = INTERVAL_S;
	if (!o->duration_s)
		o->duration_s = fmin(DURATION_S, o->interval_s);
	if (o->duration_s > o->interval_s)
		return err_set(err, -EINVAL,
			       "--push-duration is longer than --push-interval: %g s, %g s",
			       o->duration_s, o->interval_s);
	if (!*o->name)
		strcpy(o->name, "ibscope");
	s->sampler.copies = true;
	s->sampler.stacks = o->stacks;
	/* records with chains are nearly twice as long: room for as many of them */
	s->sampler.ring_bytes = o->stacks ? 2 * RING_BYTES : RING_BYTES;
	return 0;
}

struct push *push_new(const struct push_opts *opts, struct session *s,
		      struct ibs_push_counts *counts)
{
	struct push *p = xcalloc(1, sizeof(*p));

	p->opts = *opts;
	p->session = s;
	p->counts = counts;
	counts->collectors++;
	p->report = mmap(NULL, sizeof(*p->report), PROT_READ | PROT_WRITE,
			 MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	p->given_up = naming_memory_new();
	p->file = p->ended = -1;
	p->next_s = now_s();
	return p;
}

/* Of ibs_op: checked. It changes when the collector opens its session again. */
static struct sampler *sampler_of(const struct push *p)
{
	return session_event(p->session, 0)->sampler;
}

/* --- results --- */

static void count(struct push *p, enum ibs_push_outcome outcome, __u64 samples)
{
	p->counts->profiles[outcome]++;
	p->counts->samples[outcome] += samples;
}

/* The same failure is logged once until a profile arrives. */
static void fail(struct push *p, enum ibs_push_outcome outcome, __u64 samples,
		 const struct err *err)
{
	count(p, outcome, samples);
	if (strcmp(p->failure.text, err->text))
		log_warn("push: %s; %s samples were not delivered", err->text, TEXT_COUNT(samples));
	p->failure = *err;
}

static void succeed(struct push *p)
{
	if (*p->failure.text)
		log_info("push: %s accepts profiles again", p->opts.url);
	*p->failure.text = 0;
	count(p, now_s() - p->ended_s > LATE_S ? IBS_PUSH_LATE : IBS_PUSH_DELIVERED, p->samples);
}

static void log_given_up(struct push *p)
{
	const char *path, *why;

	while (naming_memory_next(p->given_up, &p->given_up_logged, &path, &why))
		log_warn("push: functions of %s are not named: %s", path, why);
}

/* Once until a profile has all names again. */
static void log_unnamed(struct push *p)
{
	__u32 n = p->report->unnamed_files;

	if (n && !p->unnamed)
		log_warn("push: functions of %u file%s are not named in a profile, for lack of "
			 "time: "
			 "see ibscope_push_unnamed_files_total",
			 n, n == 1 ? "" : "s");
	p->unnamed = n;
}

/* --- the child --- */

/* Runs in the child; failures are reported as text. */
static int name_and_post(const struct push *p, int recording, __u64 until_ns, __u64 dropped,
			 struct err *err)
{
	int fd = memfd_create("ibscope-profile", MFD_CLOEXEC), ret;
	struct push_profile profile;
	off_t bytes;
	void *data;

	if (fd < 0)
		return err_set(err, -errno, "cannot make a profile: %s", strerror(errno));
	ret = push_profile(recording, fd, p->began_ns, until_ns, dropped,
			   session_event(p->session, 0)->opts.metric, p->given_up, &profile, err);
	if (ret)
		return ret;
	p->report->unnamed_files = profile.unnamed_files;
	p->report->unnamed_samples = profile.unnamed_samples;
	bytes = lseek(fd, 0, SEEK_END);
	data = mmap(NULL, bytes, PROT_READ, MAP_SHARED, fd, 0);
	if (data == MAP_FAILED)
		return err_set(err, -errno, "cannot read the profile: %s", strerror(errno));
	return push_post(&p->opts,
			 &(struct push_body){ .data = data,
					      .bytes = bytes,
					      .from_s = profile.from_s,
					      .until_s = profile.until_s,
					      .host = profile.host,
					      .estimates = profile.estimates },
			 &p->report->retries, err);
}

static void child_main(const struct push *p, pid_t parent, int recording, int ended, __u64 until_ns,
		       __u64 dropped)
{
	struct report *r = p->report;

	child_enter(parent, recording, ended, CHILD_MEMORY);
	alarm(CHILD_S);
	setrlimit(RLIMIT_CPU, &(struct rlimit){ CHILD_CPU_S, CHILD_CPU_S });
	r->ret = name_and_post(p, recording, until_ns, dropped, &r->err);
	_exit(r->ret != 0);
}

static void start_child(struct push *p, __u64 until_ns, __u64 dropped)
{
	pid_t parent = getpid();
	struct err err;
	int fds[2];

	p->child = -1;
	if (p->report != MAP_FAILED && !pipe2(fds, O_CLOEXEC)) {
		*p->report = (struct report){};
		p->child = fork();
		if (!p->child)
			child_main(p, parent, p->file, fds[1], until_ns, dropped);
		close(fds[1]);
		p->ended = fds[0];
	}
	if (p->child < 0) {
		err_set(&err, -errno, "cannot start a process: %s", strerror(errno));
		fail(p, IBS_PUSH_FAILED, p->samples, &err);
		close(p->ended);
		p->ended = -1;
		p->child = 0;
	}
	close(p->file);
	p->file = -1;
}

/* The child has exited, so its end of the pipe is closed. */
static void reap_child(struct push *p)
{
	enum ibs_push_outcome outcome = IBS_PUSH_FAILED;
	struct report *r = p->report;
	int status;

	close(p->ended);
	p->ended = -1;
	while (waitpid(p->child, &status, 0) < 0 && errno == EINTR)
		;
	p->child = 0;
	p->counts->retries += r->retries;
	p->counts->unnamed_files += r->unnamed_files;
	p->counts->unnamed_samples += r->unnamed_samples;
	log_given_up(p);
	log_unnamed(p);
	if (WIFEXITED(status) && !WEXITSTATUS(status)) {
		succeed(p);
		return;
	}
	r->err.text[sizeof(r->err.text) - 1] = 0;
	if (WIFSIGNALED(status) && WTERMSIG(status) == SIGALRM)
		r->ret = err_set(&r->err, -EAGAIN, "%s: not done after %d s", p->opts.url, CHILD_S);
	else if (!*r->err.text)
		err_set(&r->err, -EIO, "the process that makes profiles failed (status %#x)",
			status);
	if (r->ret == -EAGAIN)
		outcome = IBS_PUSH_UNAVAILABLE;
	else if (r->ret == -EPROTO)
		outcome = IBS_PUSH_REFUSED;
	fail(p, outcome, p->samples, &r->err);
}

/* --- the profile --- */

static int discard(const struct record_batch *batch, void *arg, struct err *err)
{
	struct push *p = arg;

	(void)err;
	p->counts->samples[IBS_PUSH_DROPPED] += batch->n;
	return 0;
}

static void close_capture(struct push *p)
{
	p->counts->profiles[IBS_PUSH_CHAINS_LOST] += p->capture.chains_lost;
	capture_close(&p->capture);
}

static void abandon(struct push *p, const struct err *err)
{
	__u64 samples = p->capture.output ? output_records(p->capture.output) : 0;

	sampler_copy(sampler_of(p), false);
	close_capture(p);
	if (p->file >= 0)
		close(p->file);
	p->file = -1;
	p->taking = false;
	fail(p, IBS_PUSH_FAILED, samples, err);
}

static int begin(struct push *p, struct err *err)
{
	struct session *s = p->session;
	struct output_opts out = { .compress = true, .info = &p->info };
	int ret;

	p->info = (struct trace_info){};
	p->pmu = (struct trace_pmu){};
	record_info(&p->info, &p->pmu, s, 1);
	p->period = sampler_period(sampler_of(p));
	if (p->period)
		p->pmu.period = p->period;
	record_topology(&p->info, &p->topology, p->memory);
	ret = capture_begin(&p->capture, s, false, err);
	if (ret)
		return ret;
	p->file = memfd_create("ibscope-recording", MFD_CLOEXEC);
	if (p->file < 0)
		return err_set(err, -errno, "cannot make a file in memory: %s", strerror(errno));
	out.fd = p->file;
	ret = output_open(&out, &p->capture.output, err);
	ret = ret ?: capture_state(&p->capture, err);
	/* drop copies that were in flight when the last profile ended */
	ret = ret ?: rings_drain(sampler_rings(sampler_of(p)), UINT64_MAX, discard, p, err);
	if (!ret) /* a reload may have added or removed --stacks */
		sampler_forget_stacks(sampler_of(p));
	return ret;
}

static void take(struct push *p)
{
	struct err err;

	p->next_s = fmax(p->next_s + p->opts.interval_s, now_s());
	if (!sampler_rings(sampler_of(p)))
		return; /* --push was removed by a reload */
	p->taking = true;
	if (begin(p, &err)) {
		abandon(p, &err);
		return;
	}
	p->began_ns = clock_ns(CLOCK_MONOTONIC);
	p->ends_s = now_s() + p->opts.duration_s;
	p->dropped_before = sampler_copies_dropped(sampler_of(p));
	sampler_copy(sampler_of(p), true);
}

static int finish_file(struct push *p, __u64 until_ns, __u64 *dropped, struct err *err)
{
	struct output *out = p->capture.output;
	struct ledger l = {};
	int ret = capture_drain(&p->capture, until_ns, err);

	ret = ret ?: capture_late_names(&p->capture, err);
	if (ret)
		return ret;
	*dropped = sampler_copies_dropped(sampler_of(p)) - p->dropped_before;
	p->samples = output_records(out);
	l.outcome[IBS_OUTCOME_FORWARDED] = p->samples;
	l.outcome[IBS_OUTCOME_LOST_RING_FULL] = *dropped;
	l.seen = p->samples + *dropped;
	return output_finish(out, &l, err);
}

/* @until_ns: drop later samples; UINT64_MAX - 1: keep all. */
static void end(struct push *p, __u64 until_ns)
{
	__u64 dropped = 0, ended_ns = clock_ns(CLOCK_MONOTONIC);
	struct err err;

	sampler_copy(sampler_of(p), false);
	if (finish_file(p, until_ns, &dropped, &err)) {
		abandon(p, &err);
		return;
	}
	p->counts->samples[IBS_PUSH_DROPPED] += dropped;
	close_capture(p);
	p->taking = false;
	p->ended_s = now_s();
	if (p->samples) {
		start_child(p, ended_ns, dropped);
	} else {
		close(p->file);
		p->file = -1;
	}
}

void push_run(struct push *p, __u64 until_ns)
{
	struct pollfd child = { .fd = p->ended, .events = POLLIN };
	struct err err;

	if (p->child && poll(&child, 1, 0) > 0)
		reap_child(p);
	if (p->taking) {
		/* estimates use one period, so drop samples with another one */
		if (sampler_period(sampler_of(p)) != p->period)
			end(p, until_ns);
		else if (now_s() >= p->ends_s || output_records(p->capture.output) >= SAMPLES_MAX)
			end(p, UINT64_MAX - 1);
		else if (capture_drain(&p->capture, clock_ns(CLOCK_MONOTONIC) - CAPTURE_SETTLE_NS,
				       &err))
			abandon(p, &err);
	} else if (!p->child && now_s() >= p->next_s) {
		take(p);
	}
}

int push_prepare(struct push *p, struct pollfd fds[PUSH_FDS])
{
	double wait_s = INFINITY;

	fds[0] = (struct pollfd){ .fd = p->ended, .events = POLLIN };
	fds[1] = (struct pollfd){ .fd = -1 };
	if (p->taking) {
		struct rings *rings = sampler_rings(sampler_of(p));

		fds[1] = (struct pollfd){ .fd = rings_fd(rings), .events = POLLIN };
		wait_s = fmin(TICK_S, rings_delay_ms(rings) / 1e3);
		wait_s = fmin(wait_s, fmax(p->ends_s - now_s(), 0));
	} else if (!p->child) {
		wait_s = fmax(p->next_s - now_s(), 0);
	}
	return wait_s < INFINITY ? ceil(wait_s * 1000) : -1;
}

void push_closing(struct push *p)
{
	if (p->taking)
		end(p, UINT64_MAX - 1);
}

/* @lost: samples of an undelivered profile. */
static void give_up(struct push *p, __u64 lost)
{
	count(p, IBS_PUSH_UNFINISHED, lost);
	log_info("push: %s samples of an unfinished profile are not delivered", TEXT_COUNT(lost));
}

void push_free(struct push *p)
{
	struct err err;

	if (!p)
		return;
	if (p->taking) {
		sampler_copy(sampler_of(p), false);
		capture_drain(&p->capture, UINT64_MAX - 1, &err);
		give_up(p, output_records(p->capture.output));
		capture_close(&p->capture);
		close(p->file);
	}
	if (p->child && poll(&(struct pollfd){ .fd = p->ended, .events = POLLIN }, 1, 0) > 0)
		reap_child(p);
	if (p->child) {
		kill(p->child, SIGKILL);
		waitpid(p->child, NULL, 0);
		close(p->ended);
		p->counts->retries += p->report->retries;
		give_up(p, p->samples);
	}
	if (p->report != MAP_FAILED)
		munmap(p->report, sizeof(*p->report));
	naming_memory_free(p->given_up);
	free(p);
}

/* --- status --- */

bool push_pending(const struct push *p)
{
	return p->taking || p->child;
}

const char *push_failure(const struct push *p)
{
	return p->failure.text;
}

unsigned int push_given_up(const struct push *p)
{
	return naming_memory_n(p->given_up);
}
