// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Events on two CPUs: what they count while they are enabled, stopped, reopened, given another period, or pinned. The
 * event is a uprobe on a function of this program, so that it counts its calls and nothing else.
 */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <bpf/bpf.h>
#include <cmocka.h>

#include "../unit/open_files.h"
#include "base/num.h"
#include "bind_to.h"
#include "clock_attr.h"
#include "one_at_a_time.h"
#include "perf/cpu_event.h"
#include "perf/perf.h"

#define PERIOD 10

static struct perf_event_attr hits, others;
static struct perf_events *pe;
static struct err err;
static char program[512];

/* --- what is counted --- */

static volatile int calls;

__attribute__((noinline)) static void hit(void)
{
	calls++;
}

__attribute__((noinline)) static void other(void)
{
	calls--;
}

static void call(void (*f)(void), unsigned int cpu, int n)
{
	bind_to(cpu);
	while (n--)
		f();
}

/* Where a function is in the file of this program. */
static __u64 place_of(void (*f)(void))
{
	unsigned long begin, end, offset, at = (unsigned long)f;
	FILE *maps = fopen("/proc/self/maps", "re");
	char line[1024];

	assert_non_null(maps);
	while (fgets(line, sizeof(line), maps))
		if (sscanf(line, "%lx-%lx %*s %lx", &begin, &end, &offset) == 3 && begin <= at &&
		    at < end) {
			fclose(maps);
			return at - begin + offset;
		}
	fail_msg("no mapping has the function");
	return 0;
}

static struct perf_event_attr probe_of(void (*f)(void), __u32 type)
{
	return (struct perf_event_attr){
		.size = sizeof(struct perf_event_attr),
		.type = type,
		.config1 = (uintptr_t)program,
		.config2 = place_of(f),
		.sample_period = PERIOD,
		.read_format = PERF_FORMAT_TOTAL_TIME_ENABLED | PERF_FORMAT_TOTAL_TIME_RUNNING,
	};
}

/* Set the events. Return: false, with a reason, if this machine has none. */
static bool can_probe(void)
{
	const char *file = "/sys/bus/event_source/devices/uprobe/type";
	char text[32];
	ssize_t n = readlink("/proc/self/exe", program, sizeof(program) - 1);
	int fd;

	if (n < 0 || num_read_line("", file, text, sizeof(text), &err)) {
		printf("skipped: the kernel has no uprobe events\n");
		return false;
	}
	hits = probe_of(hit, atoi(text));
	others = probe_of(other, atoi(text));
	others.sample_period = 0;
	fd = perf_open(&hits, 1);
	if (fd < 0) {
		printf("skipped: no uprobe event on cpu 1: %s\n", strerror(errno));
		return false;
	}
	close(fd);
	return true;
}

static int files;

static int open_both(void **state)
{
	static const unsigned int cpus[] = { 0, 1 };

	(void)state;
	files = open_files();
	if (perf_events_open(&hits, cpus, 2, -1, "calls", NULL, &pe, &err))
		fail_msg("%s", err.text);
	return 0;
}

/* Nothing that was opened is left. */
static int close_all(void **state)
{
	(void)state;
	perf_events_close(pe);
	pe = NULL;
	assert_int_equal(open_files(), files);
	return 0;
}

static void enable(void)
{
	if (perf_events_enable(pe, &err))
		fail_msg("%s", err.text);
	assert_true(perf_events_are_enabled(pe));
}

static struct perf_events_total totals(void)
{
	struct perf_events_total t;

	memset(&t, 0xff, sizeof(t));
	perf_events_read(pe, &t);
	return t;
}

static void has(__u64 counted, __u64 samples)
{
	struct perf_events_total t = totals();

	assert_int_equal(t.counted, counted);
	assert_int_equal(t.samples, samples);
	assert_true(t.running_ns == t.enabled_ns);
	assert_int_equal(t.second, 0);
}

/* Samples that the kernel has put into the ring of an event: each is a header alone. */
static __u64 taken(unsigned int i)
{
	return perf_ring_head(pe->ev[i].ring) / sizeof(struct perf_event_header);
}

/* --- counting --- */

static void test_counts(void **state)
{
	struct perf_events_total t;
	__u64 before;

	(void)state;
	assert_int_equal(perf_events_n(pe), 2);
	assert_int_equal(perf_events_period(pe), PERIOD);
	assert_false(perf_events_has_cgroup(pe));
	assert_false(perf_events_are_enabled(pe));
	call(hit, 0, 5); /* not enabled yet */
	has(0, 0);
	enable();
	call(hit, 0, 25);
	call(hit, 1, 13);
	has(38, 2 + 1);
	assert_int_equal(taken(0), 2);
	assert_int_equal(taken(1), 1);
	enable(); /* it is already */
	t = totals();
	assert_int_equal(t.cpus, 2);
	assert_int_equal(t.went, 0);
	assert_int_equal(t.came, 0);
	assert_true(t.exact);
	assert_true(t.enabled_ns > 0);
	perf_events_disable(pe);
	assert_false(perf_events_are_enabled(pe));
	before = totals().enabled_ns;
	call(hit, 0, 7);
	has(38, 3);
	assert_int_equal(totals().enabled_ns, before);
	assert_int_equal(perf_events_throttled(pe), 0);
}

/* Each begins a new period; what was counted before stays. */
static void test_enabled_again(void **state)
{
	(void)state;
	enable();
	call(hit, 0, 25);
	call(hit, 1, 13);
	perf_events_disable(pe);
	enable();
	has(38, 3);
	call(hit, 0, 5); /* completes no period: it began anew */
	has(43, 3);
	call(hit, 0, 5);
	has(48, 4);
	assert_int_equal(totals().went, 0);
	assert_int_equal(totals().came, 0);
}

static void test_resumed(void **state)
{
	int fd[2];

	(void)state;
	assert_int_equal(perf_events_resume(pe, &err), 0); /* for the first time */
	call(hit, 0, 25);
	call(hit, 1, 13);
	perf_events_disable(pe);
	for (int i = 0; i < 2; i++)
		fd[i] = pe->ev[i].fd;
	assert_int_equal(perf_events_resume(pe, &err), 0);
	assert_true(perf_events_are_enabled(pe));
	for (int i = 0; i < 2; i++)
		assert_int_equal(pe->ev[i].fd, fd[i]);
	has(38, 3);
	call(hit, 0, 9);
	has(47, 3);
	call(hit, 0, 1);
	has(48, 4);
	call(hit, 1, 10);
	has(58, 5);
}

static void test_period(void **state)
{
	(void)state;
	enable();
	call(hit, 0, 25);
	assert_int_equal(perf_events_set_period(pe, 4, &err), 0);
	assert_int_equal(perf_events_period(pe), 4);
	has(25, 2);
	call(hit, 0, 3);
	has(28, 2);
	call(hit, 0, 4);
	call(hit, 1, 8);
	has(40, 3 + 2);
	assert_int_equal(taken(0), 3);
	assert_int_equal(taken(1), 2);
	/* events that are opened later have it, too */
	assert_int_equal(perf_events_renew(pe, &err), 0);
	call(hit, 0, 4);
	has(44, 6);
	/* while they are disabled */
	perf_events_disable(pe);
	assert_int_equal(perf_events_set_period(pe, 5, &err), 0);
	call(hit, 0, 5);
	has(44, 6);
	assert_false(perf_events_are_enabled(pe));
	enable();
	call(hit, 0, 5);
	has(49, 7);
}

/* What one event refuses, none gets. */
static void test_period_refused(void **state)
{
	int null = open("/dev/null", O_RDONLY | O_CLOEXEC), second = pe->ev[1].fd;
	int keep = fcntl(second, F_DUPFD_CLOEXEC, 0);

	(void)state;
	enable();
	assert_true(perf_events_set_period(pe, 1ull << 63, &err) < 0);
	assert_non_null(strstr(err.text, "cpu 0: the kernel rejects a period of"));
	assert_int_equal(perf_events_period(pe), PERIOD);
	call(hit, 0, 20);
	has(20, 2);
	/* the second one cannot be read */
	assert_int_equal(dup3(null, second, O_CLOEXEC), second);
	assert_int_equal(perf_events_set_period(pe, 4, &err), -EIO);
	assert_non_null(strstr(err.text, "cpu 1: the event's count cannot be read"));
	assert_false(totals().exact);
	assert_int_equal(dup3(keep, second, O_CLOEXEC), second);
	close(keep);
	close(null);
	assert_int_equal(perf_events_period(pe), PERIOD);
	call(hit, 0, 5);
	has(25, 2);
	call(hit, 0, 5);
	has(30, 3);
	assert_int_equal(taken(0), 3); /* the first one has its period again */
}

/* A software event reports the period that it was opened with, so another one takes its place. */
static void test_period_of_software(void **state)
{
	static const unsigned int cpus[] = { 0, 1 };
	const struct perf_event_attr clock = CLOCK_ATTR(1000000);
	struct perf_events_total t;
	int first;

	(void)state;
	perf_events_close(pe);
	assert_int_equal(perf_events_open(&clock, cpus, 2, -1, NULL, NULL, &pe, &err), 0);
	enable();
	first = open_files();
	usleep(20000);
	assert_int_equal(perf_events_set_period(pe, 4000000, &err), 0);
	assert_int_equal(open_files(), first);
	assert_int_equal(perf_events_period(pe), 4000000);
	t = totals();
	assert_true(t.counted >= 40000000 && t.samples >= 38); /* of both CPUs */
	usleep(20000);
	perf_events_disable(pe);
	assert_true(totals().counted >= t.counted + 40000000);
	assert_true(totals().samples >= t.samples + 8);
	assert_true(totals().samples <= t.samples + (totals().counted - t.counted) / 4000000 + 2);
	/* one that is refused leaves those that are open */
	t = totals();
	assert_true(perf_events_set_period(pe, 1ull << 63, &err) < 0);
	assert_int_equal(perf_events_period(pe), 4000000);
	assert_int_equal(open_files(), first);
	assert_int_equal(totals().counted, t.counted);
	enable();
	usleep(5000);
	assert_true(totals().counted >= t.counted + 10000000);
}

static void test_frequency(void **state)
{
	static const unsigned int cpu;
	struct perf_event_attr freq = hits;
	struct perf_events_total t;

	(void)state;
	perf_events_close(pe);
	freq.freq = 1;
	freq.sample_freq = 1000;
	assert_int_equal(perf_events_open(&freq, &cpu, 1, -1, NULL, NULL, &pe, &err), 0);
	assert_int_equal(perf_events_period(pe), 0);
	assert_int_equal(perf_events_resume(pe, &err), 0);
	call(hit, 0, 30);
	t = totals();
	assert_int_equal(t.counted, 30);
	assert_int_equal(t.samples, 0); /* the period varies */
	perf_events_disable(pe);
	assert_int_equal(perf_events_resume(pe, &err), 0);
	call(hit, 0, 3);
	assert_int_equal(totals().counted, 33);
}

/* Without a period they only count: there is no ring for throttling. */
static void test_counters(void **state)
{
	static const unsigned int cpus[] = { 1, 0 };

	(void)state;
	perf_events_close(pe);
	assert_int_equal(perf_events_open(&others, cpus, 2, -1, "calls", &hits, &pe, &err), 0);
	assert_null(pe->ev[0].ring);
	enable();
	call(other, 0, 3);
	call(other, 1, 4);
	call(hit, 0, 20);
	call(hit, 1, 5);
	assert_int_equal(totals().counted, 7);
	assert_int_equal(totals().second, 25);
	assert_int_equal(totals().samples, 0);
	perf_events_disable(pe);
	call(hit, 1, 5);
	enable();
	call(hit, 1, 1);
	assert_int_equal(totals().second, 26);
	assert_true(totals().exact);
}

static void test_not_opened(void **state)
{
	static const unsigned int none = 1u << 20;
	static const unsigned int cpus[] = { 0, 1u << 20 };
	struct perf_event_attr bad = others;
	struct perf_events *p = NULL;
	const int before = open_files();

	(void)state;
	assert_true(perf_events_open(&hits, &none, 1, -1, "my/event/", NULL, &p, &err) < 0);
	assert_non_null(strstr(err.text, "cpu 1048576: "));
	assert_non_null(strstr(err.text, "my/event/"));
	assert_true(perf_events_open(&hits, cpus, 2, -1, NULL, NULL, &p, &err) < 0);
	assert_non_null(strstr(err.text, "the event"));
	bad.config2 = 1ull << 60;
	assert_true(perf_events_open(&hits, cpus, 1, -1, NULL, &bad, &p, &err) < 0);
	assert_null(p);
	assert_int_equal(open_files(), before);
	/* no CPU at all */
	assert_int_equal(perf_events_open(&hits, cpus, 0, -1, NULL, NULL, &p, &err), -ENODEV);
	assert_string_equal(err.text, "none of the 0 selected CPUs is online");
	perf_events_close(NULL);
}

/* --- CPUs that go and come --- */

static struct cpulist online_of(bool second)
{
	struct cpulist l = {};

	cpulist_add(&l, 0);
	if (second)
		cpulist_add(&l, 1);
	return l;
}

static void follow(bool second)
{
	struct cpulist l = online_of(second);

	if (perf_events_follow(pe, &l, &err))
		fail_msg("%s", err.text);
}

static void test_follow(void **state)
{
	(void)state;
	enable();
	call(hit, 0, 10);
	call(hit, 1, 13);
	follow(true);
	assert_int_equal(perf_events_n(pe), 2);
	follow(false);
	assert_int_equal(perf_events_n(pe), 1);
	assert_int_equal(totals().cpus, 1);
	assert_int_equal(totals().went, 1);
	assert_int_equal(totals().came, 0);
	call(hit, 1, 30); /* nobody counts there */
	call(hit, 0, 1);
	has(24, 2);
	follow(false);
	assert_int_equal(totals().went, 1);
	follow(true);
	assert_int_equal(perf_events_n(pe), 2);
	assert_int_equal(totals().went, 1);
	assert_int_equal(totals().came, 1);
	call(hit, 1, 10);
	has(34, 3);
	follow(true);
	follow(true);
	assert_int_equal(totals().went, 1);
	assert_int_equal(totals().came, 1);
	/* an event that is opened while all are disabled does not count */
	perf_events_disable(pe);
	follow(false);
	follow(true);
	call(hit, 1, 10);
	has(34, 3);
	enable();
	call(hit, 1, 10);
	has(44, 4);
	assert_true(totals().exact);
}

/* An event whose CPU was offline between two looks is enabled no longer. */
static void stall(unsigned int i)
{
	assert_int_equal(ioctl(pe->ev[i].fd, PERF_EVENT_IOC_DISABLE, 0), 0);
}

static void returned(unsigned int times)
{
	assert_int_equal(totals().went, times);
	assert_int_equal(totals().came, times);
	assert_int_equal(perf_events_n(pe), 2);
}

static void test_returned(void **state)
{
	bool was;

	(void)state;
	enable();
	call(hit, 1, 13);
	follow(true);
	returned(0);
	stall(1);
	follow(true); /* of a read before that */
	follow(true); /* it was enabled for a while since the last look */
	assert_int_equal(pe->closed.went, 0);
	follow(true);
	returned(1);
	call(hit, 1, 10);
	has(23, 2);
	follow(true);
	returned(1);
	/* a read in between is as good as one of its own */
	stall(0);
	totals();
	follow(true);
	totals();
	follow(true);
	returned(2);
	call(hit, 0, 10);
	has(33, 3);
	/* whatever else opens events again reports them */
	stall(1);
	assert_int_equal(perf_events_renew(pe, &err), 0);
	returned(3);
	stall(1);
	assert_int_equal(perf_events_set_period(pe, 5, &err), 0);
	returned(4);
	call(hit, 1, 5);
	has(38, 4);
	stall(0);
	assert_int_equal(perf_events_realign(pe, &was, &err), 0);
	assert_true(was);
	assert_false(perf_events_are_enabled(pe));
	assert_int_equal(totals().went, 5);
	/* while they are disabled on purpose, none of them stalls */
	follow(true);
	follow(true);
	assert_int_equal(perf_events_renew(pe, &err), 0);
	returned(5);
	enable();
	call(hit, 0, 5);
	has(43, 5);
}

static void test_realigned(void **state)
{
	bool was = true;

	(void)state;
	assert_int_equal(perf_events_realign(pe, &was, &err), 0);
	assert_false(was);
	enable();
	call(hit, 0, 25);
	pe->closed.exact = false; /* another user had the PMU */
	assert_false(totals().exact);
	assert_int_equal(perf_events_realign(pe, &was, &err), 0);
	assert_true(was);
	assert_true(totals().exact);
	assert_false(perf_events_are_enabled(pe));
	call(hit, 0, 10);
	has(25, 2);
	enable();
	call(hit, 0, 10);
	has(35, 3);
	returned(0);
}

static struct perf_share share[2];
static int shares;

static void put_share(void *ctx, unsigned int cpu, const struct perf_share *now)
{
	assert_ptr_equal(ctx, share);
	share[cpu] = *now;
	shares++;
}

static void test_shares(void **state)
{
	(void)state;
	enable();
	call(hit, 0, 3);
	call(hit, 1, 4);
	totals();
	perf_events_shares(pe, put_share, share);
	assert_int_equal(shares, 2);
	for (int i = 0; i < 2; i++) {
		assert_int_equal(share[i].counted, 3 + i);
		assert_true(share[i].enabled_ns > 0);
		assert_int_equal(share[i].running_ns, share[i].enabled_ns);
	}
	/* a reopened event begins from 0; a closed one has none */
	perf_events_disable(pe);
	enable();
	follow(false);
	totals();
	shares = 0;
	perf_events_shares(pe, put_share, share);
	assert_int_equal(shares, 1);
	assert_int_equal(share[0].counted, 0);
}

/* --- cgroups --- */

static const char *const v2_mounts[] = { "/sys/fs/cgroup/unified", "/sys/fs/cgroup" };

static int open_v2(void)
{
	char path[64];

	for (int i = 0; i < 2; i++) {
		snprintf(path, sizeof(path), "%s/cgroup.controllers", v2_mounts[i]);
		if (!access(path, F_OK))
			return open(v2_mounts[i], O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	}
	return -1;
}

static void test_cgroup(void **state)
{
	int fd = open_v2(), tmp = open("/tmp", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	struct perf_event_attr attr = hits;
	int event;

	(void)state;
	event = fd < 0 ? -1 : perf_open_cgroup(&attr, 0, fd, -1);
	if (event < 0) {
		print_message("skipped: no events of cgroups here\n");
		close(tmp);
		close(fd);
		skip();
	}
	close(event);
	enable();
	call(hit, 0, 15);
	assert_int_equal(perf_events_set_cgroup(pe, fd, &err), 0);
	assert_true(perf_events_has_cgroup(pe));
	assert_true(pe->ev[1].clock_fd >= 0);
	call(hit, 0, 10); /* all tasks are in the root */
	assert_int_equal(totals().counted, 25);
	assert_false(totals().exact);
	/* that the cgroup did not run is not that the CPU was offline */
	follow(true);
	usleep(1000);
	follow(true);
	returned(0);
	/* a directory that is not a cgroup: the events count always */
	assert_true(perf_events_set_cgroup(pe, tmp, &err) < 0);
	assert_non_null(strstr(err.text, "calls"));
	assert_false(perf_events_has_cgroup(pe));
	assert_int_equal(perf_events_n(pe), 2);
	call(hit, 1, 10);
	assert_int_equal(totals().counted, 35);
	assert_int_equal(perf_events_set_cgroup(pe, -1, &err), 0);
	call(hit, 1, 10);
	assert_int_equal(totals().counted, 45);
	assert_false(totals().exact);
	returned(0);
	close(fd);
	close(tmp);
}

/* --- programs and links --- */

/* For a probe: 1, so that the event counts. */
static int new_program(void)
{
	static const struct bpf_insn insns[] = {
		{ .code = BPF_ALU64 | BPF_MOV | BPF_K, .dst_reg = BPF_REG_0, .imm = 1 },
		{ .code = BPF_JMP | BPF_EXIT },
	};
	int fd = bpf_prog_load(BPF_PROG_TYPE_KPROBE, "one", "GPL", insns, 2, NULL);

	assert_true(fd >= 0);
	return fd;
}

static char dir[64], links[80];

static const char *in_links(const char *name)
{
	static char path[128];

	snprintf(path, sizeof(path), "%s/%s", links, name);
	return path;
}

static bool make_links_dir(void)
{
	snprintf(dir, sizeof(dir), "/sys/fs/bpf/ibscope-unit-perf-%d", (int)getpid());
	snprintf(links, sizeof(links), "%s/links", dir);
	if (mkdir(dir, 0755) || mkdir(links, 0700)) {
		print_message("skipped: cannot create %s: %s\n", dir, strerror(errno));
		return false;
	}
	return true;
}

static void remove_links_dir(void)
{
	rmdir(links);
	assert_int_equal(rmdir(dir), 0);
}

struct marked {
	__u32 link[2], rest[2];
	unsigned int n;
};

static void mark(void *ctx, unsigned int cpu, __u32 link, __u32 rest)
{
	struct marked *m = ctx;

	m->link[cpu] = link;
	m->rest[cpu] = rest;
	m->n++;
}

static __u32 link_id(const char *path)
{
	struct bpf_link_info info = {};
	__u32 len = sizeof(info);
	int fd = bpf_obj_get(path);

	assert_true(fd >= 0);
	assert_int_equal(bpf_obj_get_info_by_fd(fd, &info, &len), 0);
	close(fd);
	return info.id;
}

/* What must be known to count the samples by the links alone. */
static void test_marked(void **state)
{
	int prog = new_program();
	struct marked m = {};
	__u64 samples;

	(void)state;
	files++; /* the program */
	assert_int_equal(perf_events_attach(pe, prog, false, &err), 0);
	assert_false(perf_events_mark(pe, mark, &m, &samples)); /* it has no link */
	close_all(NULL);
	open_both(NULL);
	assert_int_equal(perf_events_attach(pe, prog, true, &err), 0);
	enable();
	call(hit, 0, 25);
	call(hit, 1, 13);
	perf_events_disable(pe);
	assert_int_equal(perf_events_resume(pe, &err), 0); /* periods begin at 25 and 13 */
	call(hit, 1, 10);
	memset(&m, 0, sizeof(m));
	assert_true(perf_events_mark(pe, mark, &m, &samples));
	assert_int_equal(m.n, 2);
	assert_int_equal(m.rest[0], 5);
	assert_int_equal(m.rest[1], 3);
	assert_int_not_equal(m.link[0], m.link[1]);
	assert_true(m.link[0] && m.link[1]);
	/* whole periods above the rest, of (25 - 5) / 10 and (23 - 3) / 10: all samples but those */
	assert_int_equal(samples, 0);
	perf_events_disable(pe);
	enable();
	assert_true(perf_events_mark(pe, mark, &m, &samples));
	assert_int_equal(samples, 4);
	assert_int_equal(m.rest[0], 0);
	/* a CPU that is offline has none */
	m.n = 0;
	follow(false);
	assert_true(perf_events_mark(pe, mark, &m, &samples));
	assert_int_equal(m.n, 1);
	/* events that do not count exactly */
	pe->closed.exact = false;
	assert_false(perf_events_mark(pe, mark, &m, &samples));
	pe->closed.exact = true;
	pe->attr.freq = 1;
	assert_false(perf_events_mark(pe, mark, &m, &samples));
	pe->attr.freq = 0;
	pe->attr.sample_period = 0;
	assert_false(perf_events_mark(pe, mark, &m, &samples));
	pe->attr.sample_period = (1ull << 32) + 1;
	assert_false(perf_events_mark(pe, mark, &m, &samples));
	pe->attr.sample_period--;
	assert_true(perf_events_mark(pe, mark, &m, &samples));
	close(prog);
	files--;
}

/* Periods that began anew before they had ended are no samples. */
static void test_marked_rest(void **state)
{
	int prog = new_program();
	struct marked m = {};
	__u64 samples;

	(void)state;
	assert_int_equal(perf_events_attach(pe, prog, true, &err), 0);
	enable();
	for (int i = 0; i < 5; i++) {
		call(hit, 0, 7);
		perf_events_disable(pe);
		assert_int_equal(perf_events_resume(pe, &err), 0);
	}
	has(35, 0);
	assert_int_equal(taken(0), 0);
	assert_true(perf_events_mark(pe, mark, &m, &samples));
	assert_int_equal(m.rest[0], 5);
	/* three periods are counted above the rest, of which none is a sample */
	assert_true(samples + (35 - 5) / PERIOD == 0);
	close(prog);
}

/* A program that the kernel refuses for the event. */
static void test_not_attached(void **state)
{
	static const struct bpf_insn insns[] = {
		{ .code = BPF_ALU64 | BPF_MOV | BPF_K, .dst_reg = BPF_REG_0 },
		{ .code = BPF_JMP | BPF_EXIT },
	};
	int prog = bpf_prog_load(BPF_PROG_TYPE_SOCKET_FILTER, "none", "GPL", insns, 2, NULL);

	(void)state;
	for (int by_link = 0; by_link < 2; by_link++) {
		assert_true(perf_events_attach(pe, prog, by_link, &err) < 0);
		assert_non_null(strstr(err.text, "cpu 0: cannot attach the BPF program: "));
		assert_non_null(strstr(err.text, "; it requires CAP_BPF and CAP_PERFMON"));
	}
	/* nor for those that take its place: they are closed, and tried again later */
	enable();
	perf_events_disable(pe);
	assert_true(perf_events_enable(pe, &err) < 0);
	assert_int_equal(perf_events_n(pe), 0);
	close(prog);
}

static void test_pinned(void **state)
{
	int prog = new_program(), foreign;
	unsigned int missing = 5;
	__u32 id[2];

	(void)state;
	if (!make_links_dir()) {
		close(prog);
		skip();
	}
	assert_int_equal(perf_events_check_links(pe, &missing), 0); /* none is to be pinned */
	assert_int_equal(missing, 0);
	assert_int_equal(perf_events_attach(pe, prog, true, &err), 0);
	enable();
	call(hit, 1, 10);
	perf_events_pin_links(pe, links);
	id[0] = link_id(in_links("cpu0"));
	id[1] = link_id(in_links("cpu1"));
	assert_int_equal(id[0], pe->ev[0].link_id);
	assert_int_equal(id[1], pe->ev[1].link_id);
	missing = 5;
	assert_int_equal(perf_events_check_links(pe, &missing), 0);
	assert_int_equal(missing, 0);
	/* removed, or replaced by something else, which goes elsewhere */
	assert_int_equal(unlink(in_links("cpu1")), 0);
	assert_int_equal(perf_events_check_links(pe, &missing), 1);
	assert_int_equal(missing, 0);
	assert_int_equal(link_id(in_links("cpu1")), id[1]);
	assert_int_equal(unlink(in_links("cpu0")), 0);
	foreign = bpf_map_create(BPF_MAP_TYPE_ARRAY, "made", 4, 8, 1, NULL);
	assert_int_equal(bpf_obj_pin(foreign, in_links("cpu0")), 0);
	close(foreign);
	assert_int_equal(unlink(in_links("cpu1")), 0);
	assert_int_equal(perf_events_check_links(pe, &missing), 2);
	assert_int_equal(missing, 0);
	assert_int_equal(link_id(in_links("cpu0")), id[0]);
	assert_int_equal(unlink(in_links("../cpu0-foreign1")), 0);
	/* those that are opened again are pinned again, and their links are others */
	perf_events_disable(pe);
	enable();
	assert_int_not_equal(link_id(in_links("cpu0")), id[0]);
	call(hit, 1, 10);
	has(20, 2);
	/* that of a CPU that is offline ends */
	follow(false);
	assert_int_equal(access(in_links("cpu1"), F_OK), -1);
	assert_int_equal(perf_events_check_links(pe, &missing), 0);
	assert_int_equal(missing, 0);
	follow(true);
	assert_int_equal(access(in_links("cpu1"), F_OK), 0);
	/* what cannot be pinned */
	unlink(in_links("cpu0"));
	unlink(in_links("cpu1"));
	assert_int_equal(rmdir(links), 0);
	assert_int_equal(perf_events_check_links(pe, &missing), 0);
	assert_int_equal(missing, 2);
	assert_int_equal(mkdir(links, 0700), 0);
	assert_int_equal(perf_events_check_links(pe, &missing), 2);
	assert_int_equal(missing, 0);
	/* a file that has taken the place of ours is not ours to remove */
	assert_int_equal(unlink(in_links("cpu0")), 0);
	foreign = bpf_map_create(BPF_MAP_TYPE_ARRAY, "made", 4, 8, 1, NULL);
	assert_int_equal(bpf_obj_pin(foreign, in_links("cpu0")), 0);
	close(foreign);
	perf_events_close(pe);
	pe = NULL;
	assert_int_equal(access(in_links("cpu1"), F_OK), -1);
	assert_int_equal(unlink(in_links("cpu0")), 0);
	close(prog);
	remove_links_dir();
}

/* A new event of software takes over the pin of the one before. */
static void test_pinned_software(void **state)
{
	static const unsigned int cpus[] = { 0, 1 };
	static const struct bpf_insn insns[] = {
		{ .code = BPF_ALU64 | BPF_MOV | BPF_K, .dst_reg = BPF_REG_0 },
		{ .code = BPF_JMP | BPF_EXIT },
	};
	const struct perf_event_attr clock = CLOCK_ATTR(10000000);
	int prog = bpf_prog_load(BPF_PROG_TYPE_PERF_EVENT, "none", "GPL", insns, 2, NULL);
	unsigned int missing;
	__u32 before;

	(void)state;
	if (!make_links_dir()) {
		close(prog);
		skip();
	}
	perf_events_close(pe);
	assert_int_equal(perf_events_open(&clock, cpus, 2, -1, NULL, NULL, &pe, &err), 0);
	assert_int_equal(perf_events_attach(pe, prog, true, &err), 0);
	perf_events_pin_links(pe, links);
	enable();
	before = link_id(in_links("cpu1"));
	assert_int_equal(perf_events_set_period(pe, 20000000, &err), 0);
	assert_int_not_equal(link_id(in_links("cpu1")), before);
	assert_int_equal(link_id(in_links("cpu1")), pe->ev[1].link_id);
	assert_int_equal(perf_events_check_links(pe, &missing), 0);
	assert_int_equal(missing, 0);
	/* if it cannot be opened, the old one is pinned as before */
	before = link_id(in_links("cpu0"));
	assert_true(perf_events_set_period(pe, 1ull << 63, &err) < 0);
	assert_int_equal(link_id(in_links("cpu0")), before);
	assert_int_equal(perf_events_check_links(pe, &missing), 0);
	assert_int_equal(missing, 0);
	perf_events_close(pe);
	pe = NULL;
	close(prog);
	remove_links_dir();
}

/* Each event ends with its first sample. */
static void test_ends(void **state)
{
	(void)state;
	perf_events_let_end(pe);
	enable();
	call(hit, 0, 5);
	has(5, 0);
	call(hit, 0, 100);
	assert_in_range(totals().counted, PERIOD, 50);
}

#define T(f) cmocka_unit_test_setup_teardown(f, open_both, close_all)

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(test_counts),		 T(test_enabled_again),	 T(test_resumed),
		T(test_period),		 T(test_period_refused), T(test_period_of_software),
		T(test_frequency),	 T(test_counters),	 T(test_not_opened),
		T(test_follow),		 T(test_returned),	 T(test_realigned),
		T(test_shares),		 T(test_cgroup),	 T(test_marked),
		T(test_marked_rest),	 T(test_not_attached),	 T(test_pinned),
		T(test_pinned_software), T(test_ends),
	};

	if (!can_probe())
		return 77;
	if (!one_at_a_time())
		return 1;
	log_to(fopen("/dev/null", "we")); /* CPUs that seem to come and go */
	return cmocka_run_group_tests(tests, NULL, NULL);
}
