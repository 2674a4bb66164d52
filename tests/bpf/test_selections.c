// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Random combinations of the options that select, given to a live run and to the replay of a recording
 * of the same samples: both must select the same ones. Samples of the live run come from processes of
 * their own, in cgroups of their own. IBSCOPE_SELECTIONS is the number of combinations, IBSCOPE_SEED
 * chooses other ones.
 */
#include <errno.h>
#include <fcntl.h>
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
#include <unistd.h>

#include <cmocka.h>

#include "recording/recording.h"
#include "replay/replay.h"
#include "cgroup_select/cgroup_select.h"
#include "session/session.h"
#include "../unit/tree.h"
#include "twin_child.h"

#define SELECTIONS 45 /* unless told otherwise */
#define WORLD	   50 /* of them with the same samples */
#define WORKERS	   9
#define SAMPLES	   6 /* of each worker */
#define STACK	   (256 << 10)
#define COUNT(a)   (sizeof(a) / sizeof((a)[0]))

#define ID1 "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
#define ID2 "0123fedcba9876540123456789abcdef0123456789abcdef0123456789abcdef"
#define ID3 "beef456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
#define POD "01234567-89ab-cdef-0123-456789abcdef"

static const char *const dirs[] = {
	"a",
	"a/b",
	"a/b/c",
	"a/docker-" ID1 ".scope",
	"a/docker-" ID1 ".scope/in",
	"ab",
	"d",
	"d/e-1",
	"d/e-2",
	"d/docker-" ID2 ".scope",
	"d/docker-" ID2 ".scope/docker-" ID3 ".scope",
	"pods",
	"pods/pod" POD,
	"pods/pod" POD "/" ID3,
	"x:200",
};

static const char *const comms[] = { "web", "db", "fifteen bytes !" };

struct worker {
	size_t dir;
	pid_t pid; /* 0: not started */
	unsigned int cpu;
	const char *comm;
	regs_t regs[SAMPLES];
	int go[2], done[2]; /* pipes */
	void *stack;
};

static struct worker workers[WORKERS];
static __u64 ids[COUNT(dirs)];
static char top[64]; /* of the test's cgroups, as a path */
static struct cgroup_tree *cgroups;
static struct container_names *names;
static __u64 state;

static unsigned int below(unsigned int n)
{
	return ibs_sim_mix(state++) % n;
}

static void check(int ret, const struct err *err)
{
	if (ret)
		fail_msg("%d: %s", ret, err->text);
}

/* --- samples --- */

static struct sampler *sampler; /* of the workers */

/*
 * A process of its own in this address space, so that it reaches samplers that are opened later; a
 * process that is forked later would not be the one that -p named. While it works we wait, so that we
 * can share even errno. No asserts here.
 */
static int work(void *arg)
{
	struct worker *w = arg;
	cpu_set_t cpus;
	char path[640], go = 1;
	bool ok;

	snprintf(path, sizeof(path), "%s/%s", cgroup_root, dirs[w->dir]);
	CPU_ZERO(&cpus);
	CPU_SET(w->cpu, &cpus);
	ok = !prctl(PR_SET_PDEATHSIG, SIGKILL) && !prctl(PR_SET_NAME, w->comm) &&
	     !sched_setaffinity(0, sizeof(cpus), &cpus) && enter_cgroup(path);
	while (write(w->done[1], ok ? "y" : "n", 1) == 1 && read(w->go[0], &go, 1) == 1 && go)
		ok = !twin_run_regs(sampler, w->regs, SAMPLES, child_outcomes, NULL);
	return 0;
}

static void wait_worker(const struct worker *w)
{
	char ok;

	assert_int_equal(read(w->done[0], &ok, 1), 1);
	if (ok != 'y')
		fail_msg("the process in %s failed", dirs[w->dir]);
}

static void run_worker(const struct worker *w)
{
	assert_int_equal(write(w->go[1], "g", 1), 1);
	wait_worker(w);
}

static void stop_workers(void)
{
	for (size_t i = 0; i < WORKERS; i++) {
		struct worker *w = &workers[i];

		if (!w->pid)
			continue;
		assert_int_equal(write(w->go[1], "", 1), 1);
		assert_int_equal(waitpid(w->pid, NULL, 0), w->pid);
		munmap(w->stack, STACK);
		for (int k = 0; k < 2; k++) {
			close(w->go[k]);
			close(w->done[k]);
		}
		w->pid = 0;
	}
}

static void start_workers(void)
{
	stop_workers();
	for (size_t i = 0; i < WORKERS; i++) {
		struct worker *w = &workers[i];

		w->dir = below(COUNT(dirs));
		w->cpu = below(sysconf(_SC_NPROCESSORS_ONLN));
		w->comm = comms[below(COUNT(comms))];
		for (size_t k = 0; k < SAMPLES; k++)
			ibs_sim_op(7, 0, ibs_sim_mix(state++), ZEN4_CAPS, w->regs[k]);
		assert_int_equal(pipe(w->go), 0);
		assert_int_equal(pipe(w->done), 0);
		w->stack = mmap(NULL, STACK, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
				-1, 0);
		assert_true(w->stack != MAP_FAILED);
		w->pid = clone(work, (char *)w->stack + STACK, CLONE_VM | CLONE_FILES | SIGCHLD, w);
		assert_true(w->pid > 0);
		wait_worker(w);
	}
}

/* A recording of all of them, and of all cgroups. Return: a file. */
static int record(char path[64])
{
	struct trace_pmu pmu = { .name = "ibs_op/cnt_ctl=1/", .op = true, .period = 100000 };
	struct trace_info info = {
		.source = "sim", .has_cpu = true, .pmu = &pmu, .n_pmus = 1, .full_registers = true
	};
	struct recording_opts opts = { .info = &info, .fd = memfd_create("recording", 0) };
	struct recording *r;
	struct container c;
	struct err err = {};
	char cgroup[256];

	assert_true(opts.fd >= 0);
	snprintf(path, 64, "/proc/self/fd/%d", opts.fd);
	cpu_info_set(&info.cpu, "AuthenticAMD", 0x19, 0x11, ZEN4_CAPS);
	check(recording_create(&opts, &r, &err), &err);
	for (size_t i = 0; i < COUNT(dirs); i++) {
		struct trace_event ev = { .kind = TRACE_CGROUP };

		snprintf(cgroup, sizeof(cgroup), "%s/%s", top, dirs[i]);
		ev.cgroup.id = ids[i];
		ev.cgroup.path = cgroup;
		if (container_of_path(cgroup, NULL, &c)) {
			const struct container_name *name = container_names_find(names, &c);

			ev.cgroup.container = name->container;
			ev.cgroup.pod = name->pod;
			ev.cgroup.ns = name->ns;
		}
		check(recording_event(r, &ev, &err), &err);
	}
	for (size_t i = 0; i < WORKERS; i++) {
		const struct worker *w = &workers[i];
		struct trace_event ev = { .kind = TRACE_COMM, .time = 1 };

		ev.comm.tgid = ev.comm.tid = w->pid;
		ev.comm.name = w->comm;
		check(recording_event(r, &ev, &err), &err);
		for (size_t k = 0; k < SAMPLES; k++) {
			struct ibs_record_raw raw = { .time = 1000 * (i * SAMPLES + k + 1),
						      .cgroup_id = ids[w->dir],
						      .tgid = w->pid,
						      .tid = w->pid,
						      .cpu = w->cpu,
						      .bytes = IBS_OP_RAW_MIN,
						      .caps = ZEN4_CAPS };

			memcpy(raw.regs, w->regs[k], sizeof(raw.regs));
			check(recording_samples_raw(r, &raw, NULL, 1, &err), &err);
		}
	}
	check(recording_finish(r, &(struct ledger){}, &err), &err);
	recording_close(r);
	return opts.fd;
}

/* --- options --- */

/* Options as on a command line, and what they are parsed to. */
struct draw {
	char text[2048]; /* for messages */
	struct sampling_opts sampling;
	int ret; /* of parsing */
};

static void add(struct draw *d, const char *option, const char *value)
{
	const struct option_set sets[] = {
		{ "", select_option_rows, select_option_n_rows, &d->sampling.select },
		{ "", sampling_options, sampling_n_options, &d->sampling },
	};
	struct err err = {};
	size_t n = strlen(d->text);

	snprintf(d->text + n, sizeof(d->text) - n, " --%s %s", option, value ?: "");
	if (!d->ret)
		d->ret = options_one(option, value, sets, 2, &err);
	if (d->ret && d->ret != -EINVAL) /* "!" and none in one option are refused together */
		fail_msg("%s: %s", d->text, err.text);
}

static const char * not(void)
{
	return below(3) ? "" : "!";
}

static void put_min(char *out, size_t size)
{
	size_t n = strlen(out);

	if (!below(4))
		snprintf(out + n, size - n, ":%u", 50 + below(400));
}

static void put_cgroup(char *out, size_t size)
{
	static const char *const patterns[] = {
		"/*",	 "/**",	   "/a/**",	"/?/e-*", "/a*",	  "/*/b",
		"/[!a]", "/**/in", "/**/[bd]*", "/**/c",  "/**/docker-*", "/nothing-*",
	};
	size_t i = below(COUNT(dirs));

	switch (below(12)) {
	case 0:
		snprintf(out, size, below(5) ? "/" : "/no/such");
		break;
	case 1:
		snprintf(out, size, "%s", top);
		break;
	case 2:
		snprintf(out, size, "%llu", (unsigned long long)ids[i]);
		break;
	case 3:
		snprintf(out, size, "/**/docker-*");
		break;
	case 4:
	case 5:
	case 6:
		snprintf(out, size, "%s%s", top, patterns[below(COUNT(patterns))]);
		break;
	case 7:
		snprintf(out, size, "%s/%s//", top + 1, dirs[i]);
		break;
	default:
		snprintf(out, size, "%s/%s", top, dirs[i]);
	}
}

static void put_container(char *out, size_t size)
{
	static const char *const some[] = { ID1,	"web",	 "we*",	 "db", "012345",
					    "0123f*",	"0123*", "beef", "*",  POD,
					    "nothing*", "b*",	 "fedc*" };

	snprintf(out, size, "%s", some[below(COUNT(some))]);
}

static void add_lists(struct draw *d, const char *option, void (*put)(char *out, size_t size))
{
	char one[256], list[1024];

	for (unsigned int n = 1 + below(2); n; n--) {
		snprintf(list, sizeof(list), "%s", not());
		for (unsigned int k = below(3);; k--) {
			put(one, sizeof(one));
			put_min(one, sizeof(one));
			strcat(list, one);
			if (!k)
				break;
			strcat(list, ",");
		}
		add(d, option, list);
	}
}

static void add_pids(struct draw *d, const char *option, const char *but)
{
	char list[128];
	int n = sprintf(list, "%s%d", but, workers[below(WORKERS)].pid);

	for (unsigned int k = below(5); k; k--)
		n += sprintf(list + n, ",%d", below(8) ? workers[below(WORKERS)].pid : 1);
	add(d, option, list);
}

static void add_some(struct draw *d, const char *option, const char *const *some, size_t n)
{
	char list[128];

	snprintf(list, sizeof(list), "%s%s", not(), some[below(n)]);
	if (below(2))
		strcat(strcat(list, ","), some[below(n)]);
	add(d, option, list);
}

static void add_latency(struct draw *d, const char *min, const char *max)
{
	char lo[16], hi[16];
	unsigned int v = 1 + below(200);

	snprintf(lo, sizeof(lo), "%u", v);
	snprintf(hi, sizeof(hi), "%u", v + below(600));
	if (below(3))
		add(d, min, lo);
	if (!below(3))
		add(d, max, hi);
}

static void add_filter(struct draw *d)
{
	char text[512];
	const char *dir = dirs[below(COUNT(dirs))];

	switch (below(8)) {
	case 0:
		snprintf(text, sizeof(text), "cgroup == \"%s/%s\"", top, dir);
		break;
	case 1:
		snprintf(text, sizeof(text), "cgroup != \"%s/%s\" && op == load", top, dir);
		break;
	case 2:
		snprintf(text, sizeof(text), "cgroup =~ \"%s/*/e-*\" || dc_miss_lat > 200", top);
		break;
	case 3:
		snprintf(text, sizeof(text), "container == " ID1 " || cgroup == \"%s/%s\"", top,
			 dir);
		break;
	case 4:
		snprintf(text, sizeof(text), "!(container =~ \"beef*\") && cgroup =~ \"%s/**\"",
			 top);
		break;
	case 5:
		snprintf(text, sizeof(text), "pid != %d || cpu == 0", workers[below(WORKERS)].pid);
		break;
	case 6:
		snprintf(text, sizeof(text), "tid == %d || (cpu == 1 && dc_miss)",
			 workers[below(WORKERS)].pid);
		break;
	default:
		snprintf(text, sizeof(text), "dc_miss && (ld_op || cgroup == \"%s\")", top);
	}
	add(d, "filter", text);
}

/* Around the address of one of the samples. */
static void add_range(struct draw *d, const char *option, unsigned int reg)
{
	__u64 at = workers[below(WORKERS)].regs[below(SAMPLES)][reg];
	char list[80];

	snprintf(list, sizeof(list), "%s%llx+%x", not(), (unsigned long long)at & ~0xfffULL,
		 1U << (12 + below(18)));
	add(d, option, list);
}

/* What the documentation promises: kinds are ANDed, and an exclusion wins. They select nothing. */
static const char *const none[][2][2] = {
	{ { "cgroup", "!/" }, { "cgroup", "/" } },
	{ { "cgroup", "/**" }, { "cgroup", "!/" } },
	{ { "cgroup", "/no/such/*" }, { "container", "*" } },
	{ { "container", "!*" }, { "container", "*" } },
	{ { "container", "nothing*" }, { "cgroup", "/" } },
	{ { "container", "*" }, { "comm", "nobody" } },
	{ { "cpu", "4000" }, { "cgroup", "/" } },
};

static void draw_options(struct draw *d, unsigned int i)
{
	static const char *const sources[] = { "l2", "l3", "dram", "remote-cache", "unknown" };
	static const char *const ops[] = { "load", "store", "locked", "prefetch", "other" };
	static const char *const tlb[] = { "l1", "l2", "walk" };
	static const char *const pages[] = { "4k", "2m", "1g" };
	static const char *const cpus[] = { "0", "1", "0-1", "1-3" };

	memset(d, 0, sizeof(*d));
	sampling_init(&d->sampling);
	if (i < COUNT(none)) {
		add(d, none[i][0][0], none[i][0][1]);
		add(d, none[i][1][0], none[i][1][1]);
		return;
	}
	if (below(4))
		add_lists(d, "cgroup", put_cgroup);
	if (!below(2))
		add_lists(d, "container", put_container);
	if (!below(4))
		add_pids(d, "pid", not());
	if (!below(8))
		add_pids(d, "tid", "");
	if (!below(4))
		add_some(d, "comm", comms, COUNT(comms));
	if (!below(6))
		add_some(d, "src", sources, COUNT(sources));
	if (!below(6))
		add_some(d, "op", ops, COUNT(ops));
	if (!below(5))
		add_latency(d, "min-lat", "max-lat");
	if (!below(12))
		add(d, "metric", "tlb_refill_lat");
	if (!below(8))
		add(d, below(2) ? "user" : "kernel", NULL);
	if (!below(8))
		add_some(d, "tlb", tlb, COUNT(tlb));
	if (!below(10))
		add_latency(d, "min-tlb-lat", "max-tlb-lat");
	if (!below(10))
		add_some(d, "page-size", pages, COUNT(pages));
	if (!below(12))
		add(d, "remote-node", below(2) ? "yes" : "no");
	if (!below(10))
		add_range(d, "ip", IBS_OP_RIP);
	if (!below(10))
		add_range(d, "addr", IBS_DC_LINADDR);
	if (!below(4))
		add_filter(d);
	if (!below(8))
		add(d, "cpu", cpus[below(COUNT(cpus))]);
}

/* --- both ways --- */

/* A live run has events on these CPUs only. */
static bool is_sampled(const struct sampling_opts *s, unsigned int cpu)
{
	return !s->has_cpus || cpulist_has(&s->cpus, cpu);
}

static int select_live(struct draw *d, bool selected[WORKERS][SAMPLES])
{
	const struct sampling_opts *s = &d->sampling;
	const struct cgroup_select_opts opts = {
		.cgroups = s->select.cgroups,
		.n_cgroups = s->select.n_cgroups,
		.containers = s->select.containers,
		.n_containers = s->select.n_containers,
		.filter = &s->select.filter[0],
	};
	struct sampler_opts twin = s->sampler;
	struct cgroup_select *select;
	struct cgroup_source src;
	struct err err = {};
	int ret;

	cgroup_source_of_tree(&src, cgroups, names);
	ret = cgroup_select_open(&src, &opts, &select, &err);
	if (ret)
		return ret;
	twin.source = SAMPLER_TWIN;
	twin.metric = s->event[0].metric;
	twin.tlb = true;
	twin.sel = sampling_selection(s, 0);
	twin.ibs.caps = ZEN4_CAPS;
	twin.by = 0;
	twin.sel.cgroups = cgroup_select_result(select, &twin.sel.n_cgroups);
	check(sampler_open(&twin, &sampler, &err), &err);
	for (size_t i = 0; i < WORKERS; i++) {
		run_worker(&workers[i]);
		for (size_t k = 0; k < SAMPLES; k++)
			selected[i][k] = child_outcomes[k] == IBS_OUTCOME_AGGREGATED &&
					 is_sampled(s, workers[i].cpu);
	}
	sampler_close(sampler);
	cgroup_select_close(select);
	return 0;
}

static int select_recorded(struct draw *d, const char *path, bool selected[WORKERS][SAMPLES])
{
	const struct sampling_opts *s = &d->sampling;
	const struct replay_opts opts = {
		.metric = s->event[0].metric,
		.sel = sampling_selection(s, 0),
		.filter = s->select.filter[0].text ? &s->select.filter[0] : NULL,
		.cgroups = s->select.cgroups,
		.n_cgroups = s->select.n_cgroups,
		.containers = s->select.containers,
		.n_containers = s->select.n_containers,
		.cpus = s->has_cpus ? &s->cpus : NULL,
	};
	struct trace_event ev;
	struct trace *trace = NULL;
	struct replay *r = NULL;
	struct err err = {};
	int ret;

	check(trace_open(path, &trace, &err), &err);
	ret = replay_open(trace, &opts, &r, &err);
	for (size_t n = 0; !ret && trace_next(trace, &ev, &err) > 0;) {
		if (ev.kind != TRACE_SAMPLE_OP)
			continue;
		selected[n / SAMPLES][n % SAMPLES] = replay_judge(r, &ev, &err) == 1;
		n++;
	}
	replay_close(r);
	trace_close(trace);
	return ret;
}

static void test_random(void **state_)
{
	const char *number = getenv("IBSCOPE_SELECTIONS");
	const unsigned int n = number ? atoi(number) : SELECTIONS;
	unsigned int ran = 0, refused = 0, some = 0;
	char path[64];
	int fd = -1;

	(void)state_;
	for (unsigned int i = 0; i < n; i++) {
		static bool live[WORKERS][SAMPLES], recorded[WORKERS][SAMPLES];
		struct err err = {};
		struct draw d;
		size_t in = 0;
		int ret;

		if (i % WORLD == 0) {
			if (fd >= 0)
				close(fd);
			start_workers();
			fd = record(path);
		}
		memset(live, 0, sizeof(live));
		memset(recorded, 0, sizeof(recorded));
		draw_options(&d, i);
		if (d.ret || sampling_check(&d.sampling, &err)) {
			sampling_free(&d.sampling);
			continue;
		}
		ret = select_live(&d, live);
		if (ret != select_recorded(&d, path, recorded))
			fail_msg("%s: only one of them is refused (live: %d)", d.text, ret);
		for (size_t w = 0; w < WORKERS; w++) {
			for (size_t k = 0; k < SAMPLES; k++) {
				if (live[w][k] != recorded[w][k])
					fail_msg("%s: sample %zu of %d (%s) in %s is selected %s "
						 "only",
						 d.text, k, workers[w].pid, workers[w].comm,
						 dirs[workers[w].dir],
						 live[w][k] ? "live" : "in the recording");
				in += live[w][k];
			}
		}
		if (i < COUNT(none) && (ret || in))
			fail_msg("%s: refused (%d), or %zu samples selected", d.text, ret, in);
		ran++;
		refused += ret != 0;
		some += in > 0;
		sampling_free(&d.sampling);
	}
	close(fd);
	stop_workers();
	print_message("%u combinations: %u refused, %u select some samples\n", ran, refused, some);
	assert_true(ran >= n / 2);
	assert_true(refused <= ran / 2);
	assert_true(some >= ran / 6);
}

static int up(void **state_)
{
	const char *seed = getenv("IBSCOPE_SEED");
	struct cgroup_fs fs;
	struct err err = {};
	char path[640];

	state = seed ? strtoull(seed, NULL, 0) : 12;
	if (children_up(state_))
		return -1;
	if (!cgroup_root[0])
		return 0;
	assert_int_equal(cgroup_mode_detect("", &fs, NULL), 0);
	snprintf(top, sizeof(top), "%s", cgroup_root + strlen(fs.path));
	make_cgroup("pods", path);
	for (size_t i = 0; i < COUNT(dirs); i++)
		ids[i] = make_cgroup(dirs[i], path);
	check(cgroup_tree_open("", &cgroups, &err), &err);
	assert_int_equal(new_root(NULL), 0);
	put_file("/var/lib/docker/containers/" ID1 "/config.v2.json", "{\"Name\":\"/web\"}");
	put_file("/var/lib/docker/containers/" ID2 "/config.v2.json", "{\"Name\":\"/db\"}");
	names = container_names_open(root);
	return 0;
}

static int down(void **state_)
{
	container_names_close(names);
	cgroup_tree_close(cgroups);
	remove_root(NULL);
	return children_down(state_);
}

static void test_with_cgroups(void **state_)
{
	need_cgroups();
	test_random(state_);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_with_cgroups),
	};

	if (!can_run())
		return 77;
	return cmocka_run_group_tests(tests, up, down);
}
