// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * A collector in this process, of the software clock: requests of `ibscope ctl`, options that change while it samples, users,
 * the flight recorder, and counters that the next collector resumes. In a mount namespace with a /run of its own.
 */
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>
#include <jansson.h>

#include "base/array.h"
#include "base/clock.h"
#include "collector/collector.h"
#include "collector/collector_private.h"
#include "flight/flight.h"
#include "live_lines/live_lines.h"
#include "pins/pinned.h"
#include "trace/trace.h"

#define DIR	  "/run/t"
#define CONTROL	  DIR "/ctl"
#define USERS	  DIR "/users"
#define PINS	  DIR "/bpf/pins"
#define NOBODY	  65534
#define TIMEOUT_S 30
#define WORDS	  24
#define ROOM	  (4 << 20)

#ifndef SO_PEERPIDFD
#define SO_PEERPIDFD 77
#endif

/* The answer that a client got. */
struct said {
	int ret;
	enum control_result result;
	size_t n;
	char text[];
};

static struct collector *c;
static struct said *said;
static bool answered;

static int check_extra(struct collector_settings *set, struct err *err)
{
	return *(bool *)set->extra ? live_lines_prepare(&set->sampling, 0, err) : 0;
}

static const struct option_row extra_rows[] = {
	{ "hot-lines", 0, NULL, "keep hot lines", .bytes = sizeof(bool) },
};

static const struct collector_extra extra = {
	.title = "More", .rows = extra_rows, .n = 1, .size = sizeof(bool), .check = check_extra
};

/* @line: words with single blanks, besides those that all have. Return: as collector_open(). */
static int try_begin(const char *line, struct err *err)
{
	static char text[1024], *argv[WORDS];
	struct collector_opts opts = { .argv = argv, .extra = &extra };
	char *save;
	int ret;

	snprintf(text, sizeof(text),
		 "serve --source=sim --sim-ops=random -c 100000 --max-overhead=off --nmi-cost=2us "
		 "--max-groups=64 --pin-dir=" PINS " %s",
		 line);
	for (char *w = strtok_r(text, " ", &save); w; w = strtok_r(NULL, " ", &save))
		argv[opts.argc++] = w;
	argv[opts.argc] = NULL;
	optind = 1;
	ret = collector_new(&opts, &c, err);
	return ret ?: collector_open(c, err);
}

static void begin(const char *line)
{
	struct err err = { "" };

	if (try_begin(line, &err))
		fail_msg("%s", err.text);
}

static void end(void)
{
	struct err err = { "" };

	if (!c)
		return;
	if (collector_finish(c, 0, &err))
		fail_msg("%s", err.text);
	collector_free(c);
	c = NULL;
}

static int tear_down(void **state)
{
	(void)state;
	end();
	return 0;
}

static void turn(void)
{
	struct pollfd fds[COLLECTOR_FDS];
	int ms = collector_prepare(c, fds);
	struct err err = { "" };

	poll(fds, COLLECTOR_FDS, ms < 0 || ms > 20 ? 20 : ms);
	if (collector_run(c, fds, &err))
		fail_msg("%s", err.text);
}

/* Samples on this CPU. */
static void spin(double seconds)
{
	const double stop = thread_cpu_s() + seconds;

	while (thread_cpu_s() < stop)
		;
}

/* What a child does as a client while the collector runs. */
static int client(void (*work)(void *arg), void *arg)
{
	int status;
	pid_t pid;

	memset(said, 0, sizeof(*said) + 1);
	fflush(NULL);
	pid = fork();
	if (!pid) {
		work(arg);
		_exit(0);
	}
	while (!waitpid(pid, &status, WNOHANG))
		turn();
	return status;
}

struct request {
	const char *path, *text, *cgroup;
	uid_t uid;
};

static void ask_it(void *arg)
{
	const struct request *r = arg;
	struct control_answer a = {};
	struct err err = { "" };

	if (r->cgroup) {
		int fd = open(r->cgroup, O_WRONLY);

		if (fd < 0 || write(fd, "0", 1) != 1)
			_exit(2);
	}
	if (r->uid && setresuid(r->uid, r->uid, r->uid))
		_exit(3);
	said->ret = control_ask(r->path, r->text, strlen(r->text), &a, &err);
	said->result = a.result;
	said->n = a.n;
	memcpy(said->text, said->ret ? err.text : a.text, said->ret ? sizeof(err.text) : a.n + 1);
	free(a.text);
}

static const char *ask_as(const struct request *r)
{
	assert_int_equal(client(ask_it, (void *)r), 0);
	return said->text;
}

static void *ask_in_thread(void *arg)
{
	ask_it(arg);
	__atomic_store_n(&answered, true, __ATOMIC_RELEASE);
	return NULL;
}

/* As this user, without a process of its own, which would take longer. */
static const char *ask(const char *text)
{
	struct request request = { .path = CONTROL, .text = text };
	pthread_t thread;

	memset(said, 0, sizeof(*said) + 1);
	answered = false;
	assert_int_equal(pthread_create(&thread, NULL, ask_in_thread, &request), 0);
	while (!__atomic_load_n(&answered, __ATOMIC_ACQUIRE))
		turn();
	assert_int_equal(pthread_join(thread, NULL), 0);
	return said->text;
}

static void check(const char *request, enum control_result result, const char *text)
{
	const char *is = ask(request);

	if (said->ret || said->result != result || strncmp(is, text, strlen(text)))
		fail_msg("%s: %d %d: %s", request, said->ret, said->result, is);
}

static json_t *json(const char *request)
{
	json_t *o;

	ask(request);
	assert_int_equal(said->ret, 0);
	assert_int_equal(said->result, CONTROL_OK);
	o = json_loads(said->text, JSON_REJECT_DUPLICATES, NULL);
	if (!o)
		fail_msg("%s", said->text);
	return o;
}

static long long number(const char *key)
{
	json_t *o = json("status\njson\n");
	long long n = json_integer_value(json_object_get(o, key));

	json_decref(o);
	return n;
}

static bool live_is(const char *want)
{
	json_t *o = json("status\njson\n");
	const char *live = json_string_value(json_object_get(o, "live"));
	bool found = *want ? strstr(live, want) != NULL : !*live;

	json_decref(o);
	return found;
}

/* --- requests --- */

static void test_status(void **state)
{
	char want[128];
	json_t *o;

	(void)state;
	begin("--unpin --control=" CONTROL);
	spin(0.05);
	o = json("status\njson\n");
	assert_true(json_is_true(json_object_get(o, "alive")));
	assert_true(json_is_true(json_object_get(o, "simulated")));
	assert_int_equal(json_integer_value(json_object_get(o, "pid")), getpid());
	assert_int_equal(json_integer_value(json_object_get(o, "period")), 100000);
	assert_int_equal(json_integer_value(json_object_get(o, "cpus")),
			 sysconf(_SC_NPROCESSORS_ONLN));
	assert_string_equal(json_string_value(json_object_get(o, "source")), "sim");
	assert_string_equal(json_string_value(json_object_get(o, "live")), "");
	json_decref(o);
	snprintf(want, sizeof(want), "SIMULATED samples, not measurements\ncollector: process %d, ",
		 getpid());
	check("status\n", CONTROL_OK, want);
	assert_non_null(strstr(said->text, "\ncontrol: " CONTROL ", 0 changes\n"));
	o = json("ledger\njson\n");
	assert_true(json_integer_value(json_object_get(o, "seen")) > 100);
	json_decref(o);
	check("ledger\n", CONTROL_OK, "seen ");
	check("help\n", CONTROL_OK, "status    show the state of the collector");
	assert_non_null(strstr(said->text, "\nstop      exit as after SIGTERM\n"));
}

static void test_wrong(void **state)
{
	(void)state;
	begin("--unpin --control=" CONTROL);
	check("frobnicate\n", CONTROL_USAGE, "unknown verb 'frobnicate'; `help` lists them");
	check("help\nx\n", CONTROL_USAGE, "help takes no arguments");
	check("status\nx\n", CONTROL_USAGE, "status takes no arguments but 'json'");
	check("status\njson\njson\n", CONTROL_USAGE, "status takes no arguments but 'json'");
	check("ledger\njson = 1\n", CONTROL_USAGE, "ledger takes no arguments but 'json'");
	check("reload\nx\n", CONTROL_USAGE, "reload takes no arguments");
	check("reset\nx\n", CONTROL_USAGE, "reset takes no arguments");
	check("stop\nx\n", CONTROL_USAGE, "stop takes no arguments");
	check("hot-lines\nx\n", CONTROL_USAGE, "hot-lines takes no arguments");
	check("hot-lines\n", CONTROL_FAILED,
	      "the collector keeps no hot lines: start it with --hot-lines");
	check("dump\n", CONTROL_FAILED,
	      "the collector has no flight recorder: start it with --flight 60s");
	check("set\n", CONTROL_USAGE, "set: no option given: NAME=VALUE, or NAME= for its default");
	check("set\nwait\n", CONTROL_USAGE, "set: no option given");
	check("set\nnonsense = 1\n", CONTROL_USAGE,
	      "unknown option 'nonsense'; `ibscope serve --help` lists them, here without dashes");
	check("set\ngrce = 1\n", CONTROL_USAGE, "unknown option 'grce'; did you mean 'grace'?");
	check("set\npin-dir = /a\n", CONTROL_USAGE,
	      "'pin-dir' cannot be set live: restart the collector to change it");
	check("set\nflight-dir = /a\n", CONTROL_USAGE,
	      "'flight-dir' cannot be set live: edit the file and run `ibscope ctl reload`");
	check("set\nhot-lines\n", CONTROL_USAGE,
	      "'hot-lines' cannot be set live: restart the collector to change it");
	check("set\ngrace\n", CONTROL_USAGE, "'grace' needs a value: grace=TIME");
	check("set\nunpin = 1\n", CONTROL_USAGE,
	      "'unpin' takes no value: give 'unpin' to set it, or 'unpin=' to clear it");
	check("set\ngrace = 0\n", CONTROL_USAGE, "--grace: ");
	check("set\ngrace = 9s\nlease = 1s\n", CONTROL_USAGE, "--lease: ");
	assert_true(live_is(""));
	assert_true(collector_settings(c)->grace_s == 300);
	check("unset\n", CONTROL_USAGE, "unset: no option given");
	check("unset\ngrace = 3\n", CONTROL_USAGE, "unset: give 'grace' without a value");
	check("unset\ngrace\n", CONTROL_USAGE,
	      "'grace' is not set live; `ibscope ctl status` shows what is");
	assert_int_equal(number("unresolved"), 0);
}

/* Who may use the socket is not who may see physical addresses. */
static void test_not_root(void **state)
{
	(void)state;
	begin("--unpin --hot-lines --flight=60s --control-mode=0666 --control=" CONTROL);
	ask_as(&(struct request){ .path = CONTROL, .text = "hot-lines\n", .uid = NOBODY });
	assert_int_equal(said->result, CONTROL_FAILED);
	assert_string_equal(said->text, "hot-lines: only root may ask, since the answer has "
					"physical addresses\n");
	ask_as(&(struct request){ .path = CONTROL, .text = "dump\n", .uid = NOBODY });
	assert_int_equal(said->result, CONTROL_FAILED);
	assert_string_equal(said->text, "dump: only root may ask, since the samples have physical "
					"addresses\n");
	spin(0.02);
	ask("hot-lines\n");
	assert_int_equal(said->result, CONTROL_OK);
	assert_memory_equal(said->text, IBSCOPE_VERSION, sizeof(IBSCOPE_VERSION));
	check("dump\n", CONTROL_FAILED, "dump: no file to write to was passed with the request");
}

static void test_set(void **state)
{
	(void)state;
	begin("--unpin --control=" CONTROL);
	check("set\ngrace = 20s\n", CONTROL_OK, "changed while sampling\n");
	/* that it was logged is no part of the answer */
	assert_string_equal(said->text, "changed while sampling\n");
	assert_true(collector_settings(c)->grace_s == 20);
	assert_true(live_is("grace=20s"));
	check("set\ngrace = 20s\n", CONTROL_OK, "nothing changed\n");
	check("set\nlease = 9s\n", CONTROL_OK, "changed while sampling\n");
	assert_true(live_is("grace=20s") && live_is("lease=9s"));
	/* the program lacks the test until it is loaded with it; then values change at once */
	check("set\nmin-lat = 100\n", CONTROL_OK, "reopened: sampling paused for a moment\n");
	assert_int_equal(collector_settings(c)->sampling.select.sel.min_lat, 100);
	check("set\nmin-lat = 200\n", CONTROL_OK, "changed while sampling\n");
	assert_int_equal(collector_settings(c)->sampling.select.sel.min_lat, 200);
	check("set\nperiod = 200000\n", CONTROL_OK, "changed while sampling\n");
	assert_int_equal(number("period"), 200000);
	check("unset\nperiod\n", CONTROL_OK, "changed while sampling\n");
	assert_int_equal(number("period"), 100000);
	assert_false(live_is("period"));
	check("set\nmin-lat =\n", CONTROL_OK, "");
	assert_int_equal(collector_settings(c)->sampling.select.sel.min_lat, 0);
	check("status\n", CONTROL_OK, "");
	assert_non_null(strstr(said->text, "\ncontrol: " CONTROL ", 7 changes\n"));
	/* other groups: the counters are others */
	check("set\nby = cgroup,comm\n", CONTROL_OK, "reopened: counters start from zero\n");
	check("reset\n", CONTROL_OK, "reopened: counters start from zero\n");
	assert_true(live_is(""));
	assert_true(collector_settings(c)->grace_s == 300 && collector_settings(c)->lease_s == 600);
	check("reset\n", CONTROL_OK, "nothing changed\n");
}

/* A cgroup must exist, unless the request says that it may come later. */
static void test_names(void **state)
{
	(void)state;
	begin("--unpin --control=" CONTROL);
	check("set\ncgroup = /no/such\n", CONTROL_USAGE, "");
	assert_non_null(strstr(said->text, "; --wait selects it as soon as it exists"));
	check("set\ncgroup = /no/such\nwait\n", CONTROL_OK, "");
	assert_non_null(strstr(said->text, "waiting for: --cgroup /no/such\n"));
	assert_int_equal(number("unresolved"), 1);
	assert_true(live_is("cgroup=/no/such"));
	assert_false(live_is("wait"));
	/* that one is no reason to refuse another change */
	check("set\ngrace = 20s\n", CONTROL_OK, "changed while sampling\nwaiting for: ");
	check("reset\n", CONTROL_OK, "");
	assert_int_equal(number("unresolved"), 0);
}

static void put(const char *path, const char *text)
{
	FILE *f = fopen(path, "w");

	assert_non_null(f);
	fputs(text, f);
	fclose(f);
}

static void test_reload(void **state)
{
	(void)state;
	put(DIR "/conf", "grace = 20s\n");
	begin("--unpin --config=" DIR "/conf --control=" CONTROL);
	assert_true(collector_settings(c)->grace_s == 20);
	put(DIR "/conf", "grace = 30s\n");
	check("reload\n", CONTROL_OK, "");
	assert_true(collector_settings(c)->grace_s == 30);
	put(DIR "/conf", "grace = x\n");
	check("reload\n", CONTROL_USAGE, "");
	assert_non_null(strstr(said->text, "conf:1: "));
	assert_true(collector_settings(c)->grace_s == 30);
	put(DIR "/conf", "grace = 40s\n");
	collector_reload(c);
	assert_true(collector_settings(c)->grace_s == 40);
	unlink(DIR "/conf");
}

static void test_stop(void **state)
{
	const struct timespec limit = { .tv_sec = TIMEOUT_S };
	sigset_t set;

	(void)state;
	begin("--unpin --control=" CONTROL);
	sigemptyset(&set);
	sigaddset(&set, SIGTERM);
	sigprocmask(SIG_BLOCK, &set, NULL);
	check("stop\n", CONTROL_OK, "");
	assert_int_equal(sigtimedwait(&set, NULL, &limit), SIGTERM);
	sigprocmask(SIG_UNBLOCK, &set, NULL);
	end();
	assert_int_equal(access(CONTROL, F_OK), -1);
	assert_int_equal(access(PINS, F_OK), -1);
}

/* --- its beginning --- */

static char *logged;

/* Begin and note warnings and infos. */
static int begin_logged(const char *line, struct err *err)
{
	size_t n;
	FILE *f;
	int ret;

	free(logged);
	f = xmemopen(&logged, &n);
	log_copy_to(f);
	ret = try_begin(line, err);
	log_copy_to(NULL);
	xmemclose(f);
	return ret;
}

/* Of the default socket, it is no error if it cannot be used. */
static void test_no_socket(void **state)
{
	struct err err = { "" };

	(void)state;
	put("/run/ibscope", "");
	assert_int_equal(begin_logged("--unpin", &err), 0);
	assert_non_null(strstr(logged, "no control socket, so `ibscope ctl` cannot change "
				       "options: "));
	assert_non_null(strstr(logged, "; choose another path with --control, or none"));
	end();
	assert_int_equal(begin_logged("--unpin --control=none", &err), 0);
	assert_null(strstr(logged, "control socket"));
	end();
	unlink("/run/ibscope");
	assert_int_equal(begin_logged("--unpin --control=" CONTROL, &err), 0);
	assert_non_null(strstr(logged, "control socket: " CONTROL));
	end();
	assert_true(try_begin("--unpin --control=" DIR "/a/b/ctl", &err) < 0);
	assert_memory_equal(err.text, "--control: ", 11);
	collector_finish(c, -1, &err);
	collector_free(c);
	c = NULL;
}

/* Ten changes in a minute are logged, of more their number. */
static void test_logged(void **state)
{
	char request[32];
	unsigned int lines = 0;
	size_t n;
	FILE *f;

	(void)state;
	begin("--unpin --control=" CONTROL);
	free(logged);
	f = xmemopen(&logged, &n);
	log_to(f);
	for (int i = 1; i <= 12; i++) {
		snprintf(request, sizeof(request), "set\ngrace = %ds\n", i);
		ask(request);
	}
	c->changes.since_s -= 61;
	ask("set\ngrace = 20s\n");
	log_to(NULL);
	xmemclose(f);
	for (const char *at = logged; (at = strstr(at, ": set grace=")); at++)
		lines++;
	assert_int_equal(lines, 11);
	assert_non_null(strstr(logged, ": set grace=10s: changed while sampling"));
	assert_null(strstr(logged, "set grace=11s"));
	assert_non_null(strstr(logged, "2 more changes by requests"));
	assert_non_null(strstr(logged, ": set grace=20s"));
}

/* The CPU time of this process is that of all kinds of work together. */
static void test_work(void **state)
{
	double sum = 0, control = 0;
	const char *key;
	json_t *o, *of;

	(void)state;
	begin("--unpin --control=" CONTROL);
	for (int i = 0; i < 30; i++)
		ask("status\n");
	o = json("status\njson\n");
	json_object_foreach(json_object_get(o, "work"), key, of)
	{
		const double s = json_number_value(json_object_get(of, "cpu_s"));

		assert_true(s >= 0);
		control += strcmp(key, "control") ? 0 : s;
		sum += s;
	}
	json_decref(o);
	assert_true(control > 0);
	assert_true(sum <= clock_ns(CLOCK_PROCESS_CPUTIME_ID) / 1e9 + 0.001);
}

/* The next collector resumes the counters of the one before, and one at a time has them. */
static void test_resume(void **state)
{
	struct collector *first;
	struct err err = { "" };
	double enabled_s;
	__u64 seen;
	json_t *o, *of;

	(void)state;
	begin("--control=" CONTROL);
	spin(0.05);
	*collector_push_counts(c) = (struct ibs_push_counts){
		.collectors = 1, .retries = 3, .profiles = { 7 }, .samples = { 100 }
	};
	o = json("status\njson\n");
	enabled_s = json_number_value(json_object_get(o, "enabled_s"));
	json_decref(o);
	assert_true(enabled_s > 0);
	o = json("ledger\njson\n");
	seen = json_integer_value(json_object_get(o, "seen"));
	json_decref(o);
	assert_true(seen > 0);
	first = c;
	assert_int_equal(try_begin("--control=none", &err), -EBUSY);
	collector_finish(c, -1, &err);
	collector_free(c);
	c = first;
	end();
	begin("--unpin --control=" CONTROL);
	o = json("ledger\njson\n");
	assert_true(json_integer_value(json_object_get(o, "seen")) >= (long long)seen);
	json_decref(o);
	assert_int_equal(number("starts"), 2);
	/* as are its own counts */
	*collector_push_counts(c) = (struct ibs_push_counts){
		.collectors = 1, .retries = 2, .profiles = { 1 }, .samples = { 10 }
	};
	o = json("status\njson\n");
	assert_true(json_number_value(json_object_get(o, "enabled_s")) > enabled_s);
	of = json_object_get(o, "push");
	assert_int_equal(json_integer_value(json_object_get(of, "retries")), 5);
	assert_int_equal(
		json_integer_value(json_object_get(json_object_get(of, "profiles"), "delivered")),
		8);
	assert_int_equal(
		json_integer_value(json_object_get(json_object_get(of, "samples"), "delivered")),
		110);
	json_decref(o);
	end();
	assert_int_equal(access(PINS, F_OK), -1);
}

/* --- users --- */

static char cgroup[512], inner[600], procs[700], name[64];

/* A cgroup of root in one of nobody, with a process that keeps a CPU busy. Return: the process. */
static pid_t busy_cgroup(void)
{
	pid_t pid;
	int fd;

	snprintf(name, sizeof(name), "/ibscope-collector-%d", getpid());
	snprintf(cgroup, sizeof(cgroup), "%s%s",
		 cgroup_tree_mount(session_tree(collector_session(c))), name);
	snprintf(inner, sizeof(inner), "%s/inner", cgroup);
	snprintf(procs, sizeof(procs), "%s/cgroup.procs", inner);
	assert_return_code(mkdir(cgroup, 0755), errno);
	assert_return_code(chown(cgroup, NOBODY, NOBODY), errno);
	assert_return_code(mkdir(inner, 0755), errno);
	pid = fork();
	if (!pid) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		fd = open(procs, O_WRONLY);
		if (fd < 0 || write(fd, "0", 1) != 1)
			_exit(1);
		for (;;)
			;
	}
	return pid;
}

/* A cgroup of root whose name begins with that of nobody's, with a process as above. */
static pid_t busy_neighbour(char other[700])
{
	pid_t pid;
	int fd;

	snprintf(other, 700, "%s-2", cgroup);
	assert_return_code(mkdir(other, 0755), errno);
	pid = fork();
	if (!pid) {
		char file[800];

		prctl(PR_SET_PDEATHSIG, SIGKILL);
		snprintf(file, sizeof(file), "%s/cgroup.procs", other);
		fd = open(file, O_WRONLY);
		if (fd < 0 || write(fd, "0", 1) != 1)
			_exit(1);
		for (;;)
			;
	}
	return pid;
}

static void end_neighbour(pid_t pid, const char *other)
{
	const double stop = now_s() + TIMEOUT_S;

	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	while (rmdir(other) && errno == EBUSY && now_s() < stop)
		usleep(1000);
}

/* Is the cgroup among the groups that root sees in the pins? */
static bool is_counted(const char *path)
{
	struct err err = { "" };
	struct snapshot s;
	struct pinned *p;
	bool found = false;

	if (pinned_open(PINS, &p, &err) || pinned_snapshot(p, &s, &err))
		fail_msg("%s", err.text);
	for (size_t i = 0; i < s.n_groups; i++) {
		struct ibs_slot_name of;

		pinned_name(p, &s.groups[i], &of);
		found |= !strcmp(of.cgroup, path);
	}
	snapshot_free(&s);
	pinned_close(p);
	return found;
}

static void end_cgroup(pid_t pid)
{
	const double stop = now_s() + TIMEOUT_S;

	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	while (rmdir(inner) && errno == EBUSY && now_s() < stop)
		usleep(1000);
	while (rmdir(cgroup) && errno == EBUSY && now_s() < stop)
		usleep(1000);
}

static bool sees(uid_t uid, bool inside)
{
	ask_as(&(struct request){
		.path = USERS, .text = "snapshot\n", .uid = uid, .cgroup = inside ? procs : NULL });
	assert_int_equal(said->ret, 0);
	assert_int_equal(said->result, CONTROL_OK);
	return strstr(said->text, name) != NULL;
}

/* Connects in the job, and exits; a child of it sends the request when its parent is a zombie. */
static void ask_for_the_dead(void *arg)
{
	const pid_t parent = getpid();
	struct sockaddr_un to = { .sun_family = AF_UNIX, .sun_path = USERS };
	int dir = open(procs, O_WRONLY), fd = socket(AF_UNIX, SOCK_STREAM, 0);
	ssize_t n;

	(void)arg;
	if (dir < 0 || write(dir, "0", 1) != 1 || setresuid(NOBODY - 1, NOBODY - 1, NOBODY - 1) ||
	    connect(fd, (struct sockaddr *)&to, sizeof(to)))
		_exit(1);
	if (fork())
		_exit(0);
	while (getppid() == parent)
		usleep(1000);
	said->result = CONTROL_FAILED;
	if (write(fd, "snapshot\n\n", 10) == 10)
		while ((n = read(fd, said->text + said->n, ROOM / 2 - said->n)) > 0)
			said->n += n;
	said->text[said->n] = 0;
	__atomic_store_n(&said->ret, 1, __ATOMIC_RELEASE);
	_exit(0);
}

static bool kernel_has_peer_pidfd(void)
{
	int pair[2], fd = -1;
	socklen_t n = sizeof(fd);
	bool has;

	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, pair), 0);
	has = !getsockopt(pair[0], SOL_SOCKET, SO_PEERPIDFD, &fd, &n);
	if (fd >= 0)
		close(fd);
	close(pair[0]);
	close(pair[1]);
	return has;
}

/* Users see the groups of their own cgroups, and of the jobs that they are in. */
static void test_users(void **state)
{
	const double stop = now_s() + TIMEOUT_S;
	char other[700], path[100];
	pid_t pid, dead, neighbour;

	(void)state;
	begin("--unpin --control=none --user-socket=" USERS " --user-jobs=/ibscope-collector-*");
	pid = busy_cgroup();
	while (!sees(NOBODY, false) && now_s() < stop)
		turn();
	assert_true(sees(NOBODY, false));
	assert_false(sees(NOBODY - 1, false));
	assert_true(sees(NOBODY - 1, true));
	/* a job is that of the process that connected, as long as it lives: another may have its id */
	memset(said, 0, sizeof(*said) + 1);
	if (!(dead = fork()))
		ask_for_the_dead(NULL);
	while (!__atomic_load_n(&said->ret, __ATOMIC_ACQUIRE) && now_s() < stop)
		turn();
	assert_memory_equal(said->text, "ok\n", 3);
	if (kernel_has_peer_pidfd())
		assert_null(strstr(said->text, name));
	else
		print_message("no pidfds of peers before Linux 6.5\n");
	assert_int_equal(waitpid(dead, NULL, 0), dead);
	/* nothing belongs to root, whose pins have all */
	assert_false(sees(0, false));
	ask_as(&(struct request){ .path = USERS, .text = "status\n", .uid = NOBODY });
	assert_int_equal(said->result, CONTROL_USAGE);
	assert_string_equal(said->text, "this socket answers 'snapshot' only, without arguments\n");
	ask_as(&(struct request){ .path = USERS, .text = "snapshot\nx\n", .uid = NOBODY });
	assert_int_equal(said->result, CONTROL_USAGE);
	/* a name that begins like that of a user's cgroup is not below it */
	neighbour = busy_neighbour(other);
	snprintf(path, sizeof(path), "%s-2", name);
	while (!is_counted(path) && now_s() < stop)
		turn();
	assert_true(is_counted(path));
	assert_true(sees(NOBODY, false));
	assert_null(strstr(said->text, path));
	end_neighbour(neighbour, other);
	end_cgroup(pid);
	/* nobody knows whose it was */
	while (sees(NOBODY, false) && now_s() < stop + TIMEOUT_S)
		turn();
	assert_false(sees(NOBODY, false));
}

/* Without jobs, it does not matter where a process is. */
static void test_no_jobs(void **state)
{
	const double stop = now_s() + TIMEOUT_S;
	pid_t pid;

	(void)state;
	begin("--unpin --control=none --user-socket=" USERS);
	pid = busy_cgroup();
	while (!sees(NOBODY, false) && now_s() < stop)
		turn();
	assert_true(sees(NOBODY, false));
	assert_false(sees(NOBODY - 1, true));
	end_cgroup(pid);
}

static void test_unreachable(void **state)
{
	struct err err = { "" };

	(void)state;
	assert_return_code(mkdir(DIR "/private", 0700), errno);
	assert_int_equal(
		begin_logged("--unpin --control=none --user-socket=" DIR "/private/u", &err), 0);
	assert_non_null(strstr(logged, "--user-socket: other users do not reach it, as " DIR
				       "/private has mode 0700: make it 0755"));
	end();
	assert_return_code(chmod(DIR "/private", 0711), errno);
	assert_int_equal(
		begin_logged("--unpin --control=none --user-socket=" DIR "/private/u", &err), 0);
	assert_null(strstr(logged, "other users"));
	end();
	rmdir(DIR "/private");
}

/* --- the flight recorder --- */

static void dump_it(void *arg)
{
	struct control_answer a = {};
	struct err err = { "" };

	said->ret = control_dump(CONTROL, arg, &a, &err);
	said->result = a.result;
	snprintf(said->text, sizeof(err.text), "%s", said->ret ? err.text : a.text ?: "");
}

struct counted {
	__u64 samples, ours, in_cgroups, first, last;
	struct trace_end end;
};

static struct counted read_file(const char *path)
{
	struct counted n = {};
	struct u64_map named = {};
	struct trace_event ev;
	struct trace *t;
	struct err err;
	int ret;

	if (trace_open(path, &t, &err))
		fail_msg("%s", err.text);
	while ((ret = trace_next(t, &ev, &err)) > 0) {
		if (ev.kind == TRACE_CGROUP)
			u64_map_put(&named, ev.cgroup.id, 0);
		if (ev.kind != TRACE_SAMPLE_OP)
			continue;
		/* names come before what they name; cgroups of others may have ended without one */
		if (ev.sample.cgroup_id && ev.sample.tgid == (__u32)getpid()) {
			assert_int_equal(u64_map_get(&named, ev.sample.cgroup_id), 0);
			n.in_cgroups++;
		}
		n.first = n.first ?: ev.time;
		n.last = ev.time;
		n.samples++;
		n.ours += ev.sample.tgid == (__u32)getpid();
	}
	assert_int_equal(ret, 0);
	u64_map_free(&named);
	n.end = *trace_end(t);
	trace_close(t);
	return n;
}

/* @file: into which they are written. Return: as the answer has it. */
static struct counted dump(const char *file, double *window_s, __u64 *overwritten)
{
	unsigned long long samples, more;
	double mib, took_s, cpu_s;
	struct counted n;
	struct stat st;

	assert_int_equal(client(dump_it, (void *)file), 0);
	if (said->ret || said->result != CONTROL_OK)
		fail_msg("%s", said->text);
	n = read_file(file);
	/* thousands have commas */
	for (char *s = said->text; (s = strchr(s, ','));)
		if (s[1] >= '0' && s[1] <= '9' && strspn(s + 1, "0123456789") == 3)
			memmove(s, s + 1, strlen(s));
		else
			s++;
	assert_int_equal(sscanf(said->text,
				"%llu samples of the last %lf s, %llu overwritten; %lf MiB written "
				"in %lf s, %lf s of CPU time",
				&samples, window_s, &more, &mib, &took_s, &cpu_s),
			 6);
	assert_int_equal(samples, n.samples);
	assert_int_equal(stat(file, &st), 0);
	assert_true(mib > st.st_size / 1048576.0 - 0.1 && mib < st.st_size / 1048576.0 + 0.1);
	assert_true(took_s >= 0 && took_s < TIMEOUT_S && cpu_s >= 0 && cpu_s < TIMEOUT_S);
	assert_true(n.end.whole && n.end.has_ledger);
	assert_int_equal(n.end.ledger.outcome[IBS_OUTCOME_FORWARDED], samples);
	assert_int_equal(n.end.ledger.outcome[IBS_OUTCOME_LOST_OVERWRITTEN], more);
	assert_int_equal(n.end.ledger.seen, samples + more);
	*overwritten = more;
	return n;
}

/* The last samples are written to a file of the client. */
static void test_dump(void **state)
{
	const __u64 began = clock_ns(CLOCK_MONOTONIC);
	double window_s, since_s;
	__u64 overwritten;
	struct counted n;

	(void)state;
	begin("--unpin --flight=60s --control=" CONTROL);
	spin(0.3);
	n = dump(DIR "/dump", &window_s, &overwritten);
	since_s = (clock_ns(CLOCK_MONOTONIC) - began) / 1e9;
	assert_int_equal(overwritten, 0);
	assert_true(n.samples > 500);
	assert_true(n.ours > 500);
	assert_true(n.in_cgroups > 500);
	assert_true(n.first >= began && n.last <= clock_ns(CLOCK_MONOTONIC));
	/* since the recorder began, which is not a minute ago */
	assert_true(window_s > 0.2 && window_s <= since_s + 0.1);
	unlink(DIR "/dump");
	assert_int_equal(client(dump_it, (void *)"/no/such/dir/file"), 0);
	assert_int_equal(said->ret, -ENOENT);
}

/* Rings of 32 KiB keep fewer samples than there were. */
static void test_overwritten(void **state)
{
	double window_s;
	__u64 overwritten;
	struct counted n;

	(void)state;
	begin("--unpin --flight=60s:32K --control=" CONTROL);
	spin(0.3);
	n = dump(DIR "/dump", &window_s, &overwritten);
	assert_true(n.samples > 0 && n.samples < 1000);
	assert_true(overwritten > 500);
	unlink(DIR "/dump");
}

/* Groups have their slowest samples beside their names, slowest first, of a second ago or so, in one recording. */
static void check_slowest(void)
{
	const __u64 now = clock_ns(CLOCK_REALTIME);
	__u64 recording = 0;
	struct snapshot s;
	struct pinned *p;
	struct err err = { "" };
	unsigned int n = 0;

	if (pinned_open(PINS, &p, &err) || pinned_snapshot(p, &s, &err))
		fail_msg("%s", err.text);
	for (size_t i = 0; i < s.n_groups; i++) {
		struct ibs_slot_name of;

		pinned_name(p, &s.groups[i], &of);
		for (int k = 0; k < IBS_EXEMPLARS && of.slowest[k].time_ns; k++, n++) {
			const struct ibs_exemplar *x = &of.slowest[k];

			recording = recording ?: x->recording_ns;
			assert_int_equal(x->recording_ns, recording);
			assert_true(x->time_ns < now && now - x->time_ns < TIMEOUT_S * 1e9);
			assert_true(x->latency > 0);
			if (k)
				assert_true(x->latency <= of.slowest[k - 1].latency &&
					    x->src != of.slowest[k - 1].src);
		}
	}
	assert_true(n > 0);
	assert_true(recording && recording < now);
	snapshot_free(&s);
	pinned_close(p);
}

/* On SIGUSR2 it writes into its directory; the slowest samples are then beside the counters. */
static void test_own_dump(void **state)
{
	const double stop = now_s() + TIMEOUT_S;
	json_t *o, *f;
	bool written = false;
	long long skipped = 0;

	(void)state;
	begin("--unpin --flight=60s --flight-dir=" DIR "/flight --control=" CONTROL);
	spin(0.1);
	collector_dump_flight(c);
	collector_dump_flight(c); /* while that one is written */
	while (!written && now_s() < stop) {
		turn();
		o = json("status\njson\n");
		f = json_object_get(o, "flight");
		written = json_integer_value(json_object_get(f, "written")) == 1;
		assert_int_equal(json_integer_value(json_object_get(f, "failed")), 0);
		skipped += written ? json_integer_value(json_object_get(f, "skipped")) : 0;
		json_decref(o);
	}
	assert_true(written);
	assert_int_equal(skipped, 1);
	check_slowest();
	end();
	assert_int_equal(system("rm -r " DIR "/flight"), 0);
}

/* A condition that becomes true lets it write by itself, once. */
static void test_condition(void **state)
{
	const double stop = now_s() + TIMEOUT_S;
	long long written = 0;
	json_t *o;

	(void)state;
	begin("--unpin --flight=60s --flight-on=samples>0 --flight-dir=" DIR
	      "/flight --control=" CONTROL);
	while (!written && now_s() < stop) {
		spin(0.1);
		turn();
		o = json("status\njson\n");
		written = json_integer_value(
			json_object_get(json_object_get(o, "flight"), "written"));
		json_decref(o);
	}
	assert_int_equal(written, 1);
	end();
	assert_int_equal(system("rm -r " DIR "/flight"), 0);
}

static long mapped_pages(void)
{
	FILE *f = fopen("/proc/self/statm", "r");
	long n;

	assert_non_null(f);
	assert_int_equal(fscanf(f, "%ld", &n), 1);
	fclose(f);
	return n;
}

/* A recorder that is not used leaves nothing behind. */
static void test_flight_memory(void **state)
{
	long before;

	(void)state;
	flight_free(flight_new());
	before = mapped_pages();
	for (int i = 0; i < 300; i++)
		flight_free(flight_new());
	assert_true(mapped_pages() < before + 300);
}

static int set_up_machine(void)
{
	struct err err = { "" };
	int ret;

	if (geteuid() || unshare(CLONE_NEWNS) ||
	    mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) ||
	    mount("run", "/run", "tmpfs", 0, "mode=0755") || mkdir(DIR, 0755) ||
	    mkdir(DIR "/bpf", 0755) || mount("bpf", DIR "/bpf", "bpf", 0, "mode=0755")) {
		printf("skipped: no mount namespace with a bpffs: %s\n", strerror(errno));
		return 77;
	}
	said = mmap(NULL, ROOM, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	ret = try_begin("--unpin --control=none", &err);
	if (ret == -EPERM || ret == -EACCES || ret == -EOPNOTSUPP) {
		printf("skipped: %s\n", err.text);
		ret = 77;
	} else if (ret) {
		fprintf(stderr, "%s\n", err.text);
		ret = 1;
	}
	collector_finish(c, ret, &err);
	collector_free(c);
	c = NULL;
	return ret;
}

#define T(f) cmocka_unit_test_teardown(f, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(test_status), T(test_wrong),	       T(test_not_root),  T(test_set),
		T(test_names),	T(test_reload),	       T(test_stop),	  T(test_no_socket),
		T(test_resume), T(test_users),	       T(test_no_jobs),	  T(test_unreachable),
		T(test_dump),	T(test_overwritten),   T(test_own_dump),  T(test_logged),
		T(test_work),	T(test_flight_memory), T(test_condition),
	};
	int ret = set_up_machine();

	if (ret)
		return ret;
	ret = cmocka_run_group_tests(tests, NULL, NULL);
	free(logged);
	return ret;
}
