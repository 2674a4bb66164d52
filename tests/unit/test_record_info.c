// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* What the head of a recording says: the command line, the selection as options, the events and the machine. Sessions are made up here. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/clock.h"
#include "base/std.h"
#include "capture/record_info.h"
#include "machine/machine.h"

/* --- a session --- */

struct session {
	struct sampling_opts opts;
	struct session_event event[2];
	struct cpu_info cpu;
	struct command *command;
	__u64 command_cgroup;
	__u32 reach;
};

static struct session s;
static struct event_spec spec[2];
static struct trace_info info;
static struct trace_pmu pmu[2];

const struct sampling_opts *session_options(const struct session *of)
{
	return &of->opts;
}

const struct session_event *session_event(const struct session *of, unsigned int n)
{
	return &of->event[n];
}

const struct cpu_info *session_cpu(const struct session *of)
{
	return &of->cpu;
}

struct command *session_command(const struct session *of)
{
	return of->command;
}

uint64_t command_cgroup_id(const struct command *c)
{
	assert_ptr_equal(c, s.command);
	return s.command_cgroup;
}

__u32 session_strata_reach(const struct session *of)
{
	return of->reach;
}

static int set_up(void **state)
{
	(void)state;
	memset(&s, 0, sizeof(s));
	memset(&info, 0, sizeof(info));
	memset(pmu, 0, sizeof(pmu));
	strcpy(spec[0].pmu, "ibs_op");
	strcpy(spec[1].pmu, "ibs_fetch");
	for (int i = 0; i < 2; i++)
		s.event[i].spec = &spec[i];
	strcpy(s.event[0].text, "ibs_op/cnt_ctl=1/");
	strcpy(s.event[1].text, "ibs_fetch/rand_en=1/");
	s.event[0].info.source = "ibs";
	cpu_info_set(&s.cpu, "AuthenticAMD", 0x1a, 0x02, 0x1bff);
	s.event[0].opts.ibs.caps = 0x1bff;
	return 0;
}

static void describe(unsigned int n_events)
{
	record_info(&info, pmu, &s, n_events);
}

/* --- the command line --- */

static const char *command(int argc, char **argv)
{
	memset(info.command, 'x', sizeof(info.command));
	record_command(&info, argc, argv);
	return info.command;
}

#define COMMAND(...) \
	command(sizeof((char *[]){ __VA_ARGS__ }) / sizeof(char *), (char *[]){ __VA_ARGS__ })

static void test_command(void **state)
{
	char long_word[2000];

	(void)state;
	assert_string_equal(command(0, NULL), "ibscope");
	assert_string_equal(COMMAND("record", "-c", "1000", "--cgroup=/a_b.c:d@e%f^g+h,i"),
			    "ibscope record -c 1000 --cgroup=/a_b.c:d@e%f^g+h,i");
	/* what a shell would interpret */
	assert_string_equal(COMMAND("a b", "", "$x", "it's", "*"),
			    "ibscope 'a b' '' '$x' 'it'\\''s' '*'");
	/* what does not fit is cut */
	memset(long_word, 'y', sizeof(long_word) - 1);
	long_word[sizeof(long_word) - 1] = 0;
	assert_int_equal(strlen(COMMAND("record", long_word, "z")), sizeof(info.command) - 1);
	assert_memory_equal(info.command, "ibscope record yyy", 18);
	assert_int_equal(info.command[sizeof(info.command) - 2], 'y');
	memset(long_word, ' ', sizeof(long_word) - 1);
	assert_int_equal(strlen(COMMAND(long_word)), sizeof(info.command) - 1);
}

/* --- the selection --- */

static void selects(const char *want)
{
	describe(1);
	assert_string_equal(info.filter, want);
}

static void test_tasks(void **state)
{
	static const __u32 pids[] = { 12, 345 };
	static const char *const comms[] = { "nginx", "java" };
	struct selection *sel = &s.event[0].opts.sel;

	(void)state;
	selects("");
	sel->processes = (struct selected_pids){ pids, 1, false };
	selects("-p 12");
	sel->processes = (struct selected_pids){ pids, 2, true };
	sel->follow = true;
	selects("-p !12,345 --follow");
	sel->threads = (struct selected_pids){ pids, 2, false };
	sel->comms = comms;
	sel->n_comms = 2;
	selects("-p !12,345 -t 12,345 --follow --comm nginx,java");
	sel->processes.n = sel->threads.n = 0;
	sel->follow = false;
	sel->comms_but = true;
	selects("--comm !nginx,java");
}

static void test_cgroups(void **state)
{
	static char *cgroups[] = { "/a", "!/a/*" }, *containers[] = { "web" };
	static char *argv[] = { "sleep", "1", NULL };
	struct select_options *o = &s.opts.select;

	(void)state;
	/* the command is selected by its cgroup, unless another one is */
	s.opts.argv = argv;
	s.command = (struct command *)&s;
	selects("");
	s.command_cgroup = 7;
	selects("-- sleep");
	o->containers = containers;
	o->n_containers = 1;
	selects("--container web");
	o->cgroups = cgroups;
	o->n_cgroups = 2;
	selects("--cgroup /a --cgroup '!/a/*' --container web");
	o->n_containers = 0;
	selects("--cgroup /a --cgroup '!/a/*'");
	s.command = NULL;
	o->n_cgroups = 0;
	selects("");
}

static void test_ops(void **state)
{
	struct selection *sel = &s.event[0].opts.sel;

	(void)state;
	sel->src_mask = 1U << IBS_SRC_DRAM;
	selects("--src dram");
	sel->src_mask |= 1U << IBS_SRC_MAB | 1U << IBS_SRC_L2;
	sel->op_mask = 1U << IBS_OP_KIND_LOAD;
	selects("--src l2,dram,mab --op load");
	sel->src_mask = sel->op_mask = 0;
	sel->min_lat = 100;
	selects("--min-lat 100");
	sel->max_lat = 200;
	s.event[0].opts.metric = IBS_METRIC_TLB_REFILL_LAT;
	selects("--min-lat 100 --max-lat 200 --metric tlb_refill_lat");
	sel->min_lat = 0;
	selects("--max-lat 200 --metric tlb_refill_lat");
	/* without a limit the metric does not select */
	sel->max_lat = 0;
	selects("");
	s.opts.select.filter[0].text = "dc_miss && !uc";
	s.opts.select.filter[1].text = "of fetches";
	selects("--filter 'dc_miss && !uc'");
	s.event[0].spec = &spec[1];
	selects("--filter 'of fetches'");
}

/* --- events and the machine --- */

static void test_events(void **state)
{
	struct session_event *op = &s.event[0], *fetch = &s.event[1];

	(void)state;
	op->opts.attr.sample_period = 1000016;
	op->opts.filter = EVENT_FILTER_HARDWARE;
	op->opts.stacks = true;
	op->opts.copy_bytes = 4096;
	fetch->opts.attr.freq = 1;
	fetch->opts.attr.sample_freq = 997;
	fetch->opts.filter = EVENT_FILTER_DRIVER;
	describe(2);
	assert_int_equal(info.n_pmus, 2);
	assert_ptr_equal(info.pmu, pmu);
	assert_string_equal(pmu[0].name, "ibs_op/cnt_ctl=1/");
	assert_true(pmu[0].op && pmu[0].filtered && pmu[0].physical && pmu[0].stacks);
	assert_false(pmu[0].freq);
	assert_int_equal(pmu[0].period, 1000016);
	assert_int_equal(pmu[0].copy_bytes, 4096);
	assert_string_equal(pmu[1].name, "ibs_fetch/rand_en=1/");
	assert_true(pmu[1].freq && pmu[1].physical);
	assert_false(pmu[1].op || pmu[1].filtered || pmu[1].stacks);
	assert_int_equal(pmu[1].period, 997);
	assert_false(info.full_registers);
	/* as many as are asked for */
	memset(pmu, 0, sizeof(pmu));
	describe(1);
	assert_int_equal(info.n_pmus, 1);
	assert_string_equal(pmu[1].name, "");
	/* all registers: of raw samples, and of ibs_fetch alone */
	s.event[0].opts.output = SAMPLER_RECORDS_RAW;
	describe(2);
	assert_true(info.full_registers);
	s.event[0].opts.output = SAMPLER_RECORDS;
	s.event[0].spec = &spec[1];
	describe(2);
	assert_false(info.full_registers);
	describe(1);
	assert_true(info.full_registers);
}

static void test_machine(void **state)
{
	const __u64 before = clock_ns(CLOCK_MONOTONIC), real = clock_ns(CLOCK_REALTIME);
	struct utsname u;

	(void)state;
	assert_int_equal(uname(&u), 0);
	s.event[0].opts.ibs.quirks = IBS_QUIRK_LDLAT_1606_A;
	describe(1);
	assert_string_equal(info.format, "ibscope 1");
	assert_string_equal(info.source, "ibs");
	assert_false(info.simulated);
	assert_string_equal(info.host, u.nodename);
	assert_string_equal(info.release, u.release);
	assert_true(info.has_cpu);
	assert_string_equal(info.cpu.vendor, "AuthenticAMD");
	assert_int_equal(info.cpu.family, 0x1a);
	assert_int_equal(info.cpu.caps, 0x1bff);
	assert_int_equal(info.cpu.quirks, IBS_QUIRK_LDLAT_1606_A);
	assert_int_equal(info.n_cpus, sysconf(_SC_NPROCESSORS_ONLN));
	assert_in_range(info.monotonic_ns, before, clock_ns(CLOCK_MONOTONIC));
	/* somebody may set the clock meanwhile */
	assert_true(fabs((double)info.realtime_ns - real) < 86400e9);
	/* the simulation has a processor of its own */
	s.event[0].info.simulated = true;
	s.event[0].info.source = "sim";
	s.event[0].opts.ibs.caps = 0xbff;
	describe(1);
	assert_true(info.simulated);
	assert_string_equal(info.source, "sim");
	assert_string_equal(info.cpu.name, "SIMULATED Zen 4");
	assert_int_equal(info.cpu.family, 0x19);
	assert_int_equal(info.cpu.model, 0x11);
	assert_int_equal(info.cpu.caps, 0xbff);
}

static void test_strata(void **state)
{
	(void)state;
	strcpy(s.event[0].miss_text, "ibs_op/cnt_ctl=1,l3missonly=1/");
	s.event[0].opts.attr.sample_period = 1000016;
	describe(1);
	record_strata(&info, pmu, &s);
	assert_int_equal(info.n_pmus, 1);
	s.reach = 0x300;
	record_strata(&info, pmu, &s);
	assert_int_equal(info.n_pmus, STRATUM_N);
	assert_int_equal(pmu[STRATUM_FULL].reach, 0x300);
	assert_int_equal(pmu[STRATUM_FULL].period, 1000016);
	assert_string_equal(pmu[STRATUM_FULL].name, "ibs_op/cnt_ctl=1/");
	assert_false(pmu[STRATUM_FULL].filtered);
	assert_int_equal(pmu[STRATUM_MISS].reach, 0x300);
	assert_int_equal(pmu[STRATUM_MISS].period, 0);
	assert_true(pmu[STRATUM_MISS].op && pmu[STRATUM_MISS].filtered);
	assert_string_equal(pmu[STRATUM_MISS].name, "ibs_op/cnt_ctl=1,l3missonly=1/");
}

/* --- where CPUs are: made, as on most machines all are of one complex, node and socket --- */

static struct topology *const made = (void *)&info;
static bool is_open;

struct topology *topology_open(const char *root, unsigned int cpus)
{
	assert_string_equal(root, "");
	assert_int_equal(cpus, sysconf(_SC_NPROCESSORS_CONF));
	is_open = true;
	return made;
}

void topology_close(struct topology *t)
{
	assert_ptr_equal(t, made);
	is_open = false;
}

unsigned int topology_complex(const struct topology *t, unsigned int cpu)
{
	assert_ptr_equal(t, made);
	return 100 + cpu;
}

unsigned int topology_node(const struct topology *t, unsigned int cpu)
{
	assert_ptr_equal(t, made);
	return 200 + cpu;
}

unsigned int topology_socket(const struct topology *t, unsigned int cpu)
{
	assert_ptr_equal(t, made);
	return 300 + cpu;
}

static void test_topology(void **state)
{
	static struct trace_topology got;
	static struct memory_range memory[MEMORY_RANGES], want[MEMORY_RANGES];

	(void)state;
	record_topology(&info, &got, memory);
	assert_false(is_open);
	assert_ptr_equal(info.topology, &got);
	assert_ptr_equal(info.memory, memory);
	assert_int_equal(got.n, sysconf(_SC_NPROCESSORS_CONF));
	for (unsigned int cpu = 0; cpu < got.n; cpu++) {
		assert_int_equal(got.ccx[cpu], 100 + cpu);
		assert_int_equal(got.node[cpu], 200 + cpu);
		assert_int_equal(got.socket[cpu], 300 + cpu);
	}
	assert_true(got.has_sockets);
	/* memory is that of this machine */
	assert_int_equal(info.n_memory, memory_ranges_read("", want));
	assert_memory_equal(memory, want, info.n_memory * sizeof(*want));
}

#define T(f) cmocka_unit_test_setup(f, set_up)

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(test_command), T(test_tasks),	  T(test_cgroups), T(test_ops),
		T(test_events),	 T(test_machine), T(test_strata),  T(test_topology),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
