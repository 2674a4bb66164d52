// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* What `ctl status` says of a collector, as text and as JSON: its state, its counts, the governor, pushes, neighbours. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>

#include <cmocka.h>
#include <jansson.h>

#include "json_same.h"
#include "base/array.h"
#include "base/clock.h"
#include "memory_in_use.h"
#include "status/reading.h"

#define SECOND 1000000000ull

static struct reading r[2];
static char *said;

/* A collector that updated its status just now; the reading is 2.4 seconds later. */
static int set_up(void **state)
{
	struct ibs_meta *m = &r[0].meta;

	(void)state;
	memset(r, 0, sizeof(r));
	m->pid = 77;
	m->starts = 3;
	m->start_realtime_ns = 1500 * SECOND;
	m->status.time_ns = clock_ns(CLOCK_BOOTTIME);
	m->status.cpus = 2;
	m->layout.max_slots = 1002;
	m->layout.metric = IBS_METRIC_DC_MISS_LAT;
	strcpy(m->version, "0.9");
	strcpy(m->event, "ibs_op//");
	strcpy(m->source, "ibs");
	r[0].time_ns = m->status.time_ns + 12 * SECOND / 5;
	r[0].groups = 12;
	r[0].ledger = (struct ledger){ .seen = 1010 };
	r[0].ledger.outcome[IBS_OUTCOME_AGGREGATED] = 1000;
	r[0].ledger.outcome[IBS_OUTCOME_FILTERED_PID] = 10;
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	free(said);
	said = NULL;
	return 0;
}

static struct ibs_meta_status *st(void)
{
	return &r[0].meta.status;
}

static const char *text(unsigned int n)
{
	size_t size;
	FILE *f;

	free(said);
	f = open_memstream(&said, &size);
	collector_print(f, r, n);
	fclose(f);
	return said;
}

/* @line is one of the lines. */
static void has(const char *line)
{
	char want[512];

	snprintf(want, sizeof(want), "\n%s\n", line);
	if (!strstr(text(1), want) && (strncmp(said, want + 1, strlen(want + 1))))
		fail_msg("no '%s' in\n%s", line, said);
}

static void lacks(const char *begin)
{
	if (strstr(text(1), begin))
		fail_msg("'%s' in\n%s", begin, said);
}

static json_t *json(unsigned int n, const struct reading_push *push)
{
	json_error_t why;
	size_t size;
	json_t *o;
	FILE *f;

	free(said);
	f = open_memstream(&said, &size);
	collector_print_json(f, r, n, push);
	fclose(f);
	o = json_loads(said, JSON_REJECT_DUPLICATES, &why);
	if (!o)
		fail_msg("%s: %s", why.text, said);
	return o;
}

/* The whole status of the first event. */
static void object(const char *key, const char *want)
{
	json_t *o = json(1, NULL);

	same(o, key, want);
	json_decref(o);
}

static void real(const char *key, double want)
{
	json_t *o = json(1, NULL), *v = json_object_get(o, key);

	if (isnan(want))
		assert_true(json_is_null(v));
	else
		assert_true(fabs(json_number_value(v) - want) < 1e-6);
	json_decref(o);
}

/* --- is it running? --- */

static void test_alive(void **state)
{
	(void)state;
	assert_true(collector_alive(&r[0].meta));
	has("collector: process 77, version 0.9, last update 2.4 s ago");
	lacks("SIMULATED");
	object("alive", "true");
	object("orphaned", "false");
	real("age_s", 2.4);
	real("lease_s", NAN);
	r[0].meta.layout.simulated = 1;
	has("SIMULATED samples, not measurements");
	object("simulated", "true");
	/* it exited */
	r[0].meta.pid = 0;
	assert_false(collector_alive(&r[0].meta));
	has("collector: not running for 2 s; its counters are kept");
	object("alive", "false");
}

/* Killed more than ten seconds ago: it samples on if its links stayed, and until its lease ends. */
static void test_orphaned(void **state)
{
	struct ibs_meta *m = &r[0].meta;

	(void)state;
	m->outlives = 1;
	assert_false(collector_orphaned(m));
	m->status.time_ns -= 9 * SECOND;
	assert_true(collector_alive(m));
	m->status.time_ns -= 11 * SECOND;
	assert_false(collector_alive(m));
	assert_true(isnan(collector_lease_s(m)));
	assert_true(collector_orphaned(m));
	has("collector: orphaned for 22 s: it was killed, and sampling continues without a governor"
	    "; resume it with `ibscope serve`, or end it with `ibscope ctl stop`");
	object("orphaned", "true");
	m->lease_ns = clock_ns(CLOCK_MONOTONIC) + 1000 * SECOND;
	assert_true(collector_lease_s(m) > 990 && collector_lease_s(m) <= 1000);
	assert_true(collector_orphaned(m));
	assert_non_null(strstr(text(1), " without a governor for another "));
	assert_non_null(strstr(said, " s (--lease); resume it"));
	m->lease_ns = 1;
	assert_true(collector_lease_s(m) == 0);
	assert_false(collector_orphaned(m));
	has("collector: not running for 22 s: it was killed, and sampling ended with its lease; "
	    "its counters are kept");
	m->lease_ns = 0;
	/* a governor had stopped it, its links did not stay, or it exited */
	m->status.governor_state = GOVERNOR_STATE_STOPPED;
	assert_false(collector_orphaned(m));
	m->status.governor_state = GOVERNOR_STATE_AT_RATE;
	m->outlives = 0;
	assert_false(collector_orphaned(m));
	has("collector: not running for 22 s; its counters are kept");
	m->outlives = 1;
	m->pid = 0;
	assert_false(collector_orphaned(m));
	has("collector: not running for 22 s; its counters are kept");
}

/* --- what it does --- */

static void test_texts(void **state)
{
	struct ibs_meta *m = &r[0].meta;
	struct utsname machine;
	json_t *o;

	(void)state;
	has("sampling: ibs_op// on 2 CPUs");
	has("options: none");
	lacks("set live: ");
	lacks("waiting for: ");
	lacks("pins: ");
	lacks("control: ");
	strcpy(m->selection, "--src\tdram");
	strcpy(m->live, "min-lat=3");
	strcpy(m->control, "/run/c");
	strcpy(m->unresolved, "--container w");
	m->status.live_changes = 4;
	m->pins_missing = 2;
	m->pins_repaired = 5;
	m->status.cpus = 1;
	has("sampling: ibs_op// on 1 CPU");
	has("options: --src\\x09dram");
	has("set live: min-lat=3");
	has("control: /run/c, 4 changes");
	has("pins: 2 are missing, and cannot be pinned again: the log of the collector gives the "
	    "reason");
	lacks("waiting for: ");
	object("waiting_for", "''");
	m->status.unresolved = 1;
	has("waiting for: --container w");
	o = json(1, NULL);
	same(o, "waiting_for", "'--container w'");
	same(o, "version", "'0.9'");
	same(o, "event", "'ibs_op//'");
	same(o, "source", "'ibs'");
	same(o, "selection", "'--src\\\\x09dram'");
	same(o, "live", "'min-lat=3'");
	same(o, "metric", "'dc_miss_lat'");
	same(o, "pins_missing", "2");
	same(o, "pins_repaired", "5");
	same(o, "unresolved", "1");
	assert_int_equal(uname(&machine), 0);
	assert_string_equal(json_string_value(json_object_get(o, "host")), machine.nodename);
	json_decref(o);
	/* of one that does not run, what was set is of no interest */
	m->pid = 0;
	lacks("set live: ");
	lacks("waiting for: ");
	lacks("pins: ");
	lacks("control: ");
	m->layout.metric = IBS_METRIC_N;
	assert_int_equal(reading_metric(m), IBS_METRIC_DC_MISS_LAT);
}

static void test_counts(void **state)
{
	json_t *o;

	(void)state;
	*st() = (struct ibs_meta_status){ .time_ns = st()->time_ns,
					  .cpus = 2,
					  .folded = 1234,
					  .displaced = 5,
					  .cpus_went = 6,
					  .cpus_came = 7,
					  .clock_steps = 8,
					  .suspends = 9,
					  .pmu_shared = 10,
					  .throttled = 11,
					  .memory_bytes = 3 << 20,
					  .rss_bytes = 5 << 19,
					  .enabled_ns = 20 * SECOND,
					  .running_ns = 15 * SECOND,
					  .period = 4000,
					  .cpu_ns = SECOND };
	has("groups: 12 of 1,000, 1,234 folded, 5 displaced by busier ones");
	has("machine: 6 CPUs went offline, 7 came online, clock set 8 times, suspended 9 times, "
	    "PMU shared 10 times");
	has("memory: 3.0 MiB of maps, 2.5 MiB of the collector");
	has("ledger: seen 1,010 = aggregated 1,000 + filtered 10 (pid 10) + lost 0; unseen "
	    "unknown");
	o = json(1, NULL);
	same(o, "pid", "77");
	same(o, "starts", "3");
	same(o, "cpus", "2");
	same(o, "groups", "12");
	same(o, "groups_limit", "1000");
	same(o, "groups_folded", "1234");
	same(o, "groups_displaced", "5");
	same(o, "map_bytes", "3145728");
	same(o, "rss_bytes", "2621440");
	same(o, "cpus_went_offline", "6");
	same(o, "cpus_came_online", "7");
	same(o, "clock_steps", "8");
	same(o, "suspends", "9");
	same(o, "pmu_shared", "10");
	same(o, "throttled", "11");
	same(o, "period", "4000");
	assert_null(json_object_get(o, "push"));
	assert_null(json_object_get(o, "flight"));
	assert_null(json_object_get(o, "neighbours"));
	assert_null(json_object_get(o, "strata"));
	assert_null(json_object_get(o, "fetch"));
	json_decref(o);
	real("enabled_s", 20);
	real("running_s", 15);
	real("start_s", 1500);
	real("time_s", r[0].time_ns / 1e9);
	st()->period = 0;
	object("period", "null");
	r[0].meta.layout.max_slots = 2;
	assert_int_equal(reading_groups_limit(&r[0].meta), 0);
	r[0].meta.layout.max_slots = 3;
	assert_int_equal(reading_groups_limit(&r[0].meta), 1);
}

/* CPU time of programs and collector, of all time that events were enabled. */
static void test_cost(void **state)
{
	(void)state;
	lacks("cost: ");
	real("overhead", NAN);
	assert_string_equal(status_bpf_source(st()), "assumed");
	assert_true(status_bpf_ns(st()) == 500);
	st()->bpf_ns = 3 * SECOND;
	st()->bpf_runs = 4 * SECOND / 1000;
	st()->cpu_ns = SECOND / 2;
	has("cost: 750 ns per sample in BPF, 3.0 s in total; collector 0.5 s");
	assert_string_equal(status_bpf_source(st()), "measured");
	real("overhead", NAN);
	st()->enabled_ns = 100 * SECOND;
	real("overhead", 0.035);
	r[1] = r[0];
	assert_true(fabs(collector_overhead(r, 2) - 0.065) < 1e-9);
}

static void test_work(void **state)
{
	(void)state;
	st()->work_ns[IBS_WORK_COUNTERS] = 3 * SECOND / 2;
	st()->work_ns[IBS_WORK_NEIGHBOURS] = SECOND / 4;
	st()->work_delayed_ns[IBS_WORK_WEB] = 2 * SECOND;
	has("work: counters 1.5 s, cgroups 0.0 s, web 0.0 s (delayed for 2.0 s), control 0.0 s, "
	    "users 0.0 s, neighbours 0.2 s");
	object("work",
	       "{'counters':{'cpu_s':1.5,'delayed_s':0.0},'cgroups':{'cpu_s':0.0,'delayed_s':0.0},"
	       "'web':{'cpu_s':0.0,'delayed_s':2.0},'control':{'cpu_s':0.0,'delayed_s':0.0},"
	       "'users':{'cpu_s':0.0,'delayed_s':0.0},"
	       "'neighbours':{'cpu_s':0.25,'delayed_s':0.0}}");
}

/* --- the governor --- */

static void test_governor(void **state)
{
	json_t *o, *g;

	(void)state;
	has("governor: off");
	has("overhead: not known yet, not controlled; per sample 0 ns without BPF (assumed) and "
	    "500 ns in BPF (assumed)");
	st()->governor_state = GOVERNOR_STATE_AT_RATE;
	st()->period = st()->period_asked = 200000;
	has("governor: at_rate, period 200,000");
	st()->governor_state = GOVERNOR_STATE_BACKED_OFF;
	st()->governor_reason = GOVERNOR_REASON_BUDGET;
	st()->period = 400000;
	st()->governor_changes[GOVERNOR_REASON_NONE] = 99;
	st()->governor_changes[GOVERNOR_REASON_BUDGET] = 1500;
	st()->governor_changes[GOVERNOR_REASON_CALM] = 2;
	st()->overhead_ppb = 4 * 1000000;
	st()->budget_ppb = 5 * 1000000;
	st()->overhead_ns = 7 * SECOND;
	st()->nmi_ns = 2100;
	st()->nmi_source = IBS_NMI_MEASURED;
	st()->kernel_rate = 50000;
	has("governor: backed_off (budget), period 400,000 instead of 200,000; changes: budget "
	    "1,500, calm 2");
	has("overhead: 0.400% of CPU time, budget 0.5%; per sample 2,100 ns without BPF (measured) "
	    "and 500 ns in BPF (assumed)");
	st()->kernel_lowered = 3;
	has("overhead: 0.400% of CPU time, budget 0.5%; per sample 2,100 ns without BPF (measured) "
	    "and 500 ns in BPF (assumed); sample rate limit lowered by the kernel 3 times, now "
	    "50,000/s");
	o = json(1, NULL);
	g = json_object_get(o, "governor");
	same(g, "state", "'backed_off'");
	same(g, "reason", "'budget'");
	same(g, "budget", "0.005");
	same(g, "overhead", "0.004");
	same(g, "overhead_s", "7.0");
	same(g, "period_asked", "200000");
	same(g, "nmi_ns", "2100");
	same(g, "nmi_source", "'measured'");
	same(g, "bpf_ns", "500.0");
	same(g, "bpf_source", "'assumed'");
	same(g, "kernel_max_sample_rate", "50000");
	same(g, "kernel_rate_lowered", "3");
	same(g, "changes", "{'budget':1500,'calm':2}");
	assert_null(json_object_get(g, "retry_s"));
	json_decref(o);
}

static void test_stopped(void **state)
{
	json_t *o, *g;

	(void)state;
	st()->governor_state = GOVERNOR_STATE_STOPPED;
	st()->governor_reason = GOVERNOR_REASON_MEMORY;
	st()->period = 400000;
	st()->governor_retry_ns = r[0].time_ns + 42 * SECOND;
	assert_true(status_stopped(st()));
	has("governor: stopped (memory), next try in 42 s");
	o = json(1, NULL);
	g = json_object_get(o, "governor");
	same(g, "retry_s", "42.0");
	same(g, "budget", "null");
	same(g, "overhead", "null");
	same(g, "period_asked", "null");
	same(g, "kernel_max_sample_rate", "null");
	json_decref(o);
	/* the time has come */
	st()->governor_retry_ns = r[0].time_ns - SECOND;
	has("governor: stopped (memory), next try in 0 s");
	/* of a later version */
	st()->governor_state = GOVERNOR_STATE_N;
	st()->governor_reason = GOVERNOR_REASON_N;
	st()->nmi_source = IBS_NMI_SOURCES;
	st()->period = 0;
	has("governor: unknown (unknown)");
	assert_string_equal(status_nmi_source(st()), "unknown");
	st()->nmi_source = IBS_NMI_SOURCES - 1;
	assert_string_equal(status_nmi_source(st()), "given");
	assert_string_equal(governor_reason_help(GOVERNOR_REASON_MEMORY),
			    "the collector's memory was above its limit");
}

/* --- pushes, recordings, neighbours --- */

static void test_push(void **state)
{
	const struct reading_push now = { .pending = true, .failure = "no", .files_given_up = 3 };
	json_t *o, *p;

	(void)state;
	lacks("push: ");
	st()->push.collectors = 1;
	has("push: profiles 0 delivered; samples 0 delivered; 0 tries again");
	for (int i = 0; i < IBS_PUSH_N; i++) {
		st()->push.profiles[i] = 10 + i;
		st()->push.samples[i] = 1000 + i;
	}
	st()->push.retries = 4;
	st()->push.profiles[IBS_PUSH_CHAINS_LOST] = 0; /* profiles have no outcome "dropped" */
	has("push: profiles 10 delivered, 11 refused, 12 unavailable, 13 failed, 14 unfinished, "
	    "16 late; samples 1,000 delivered, 1,001 refused, 1,002 unavailable, 1,003 failed, "
	    "1,004 unfinished, 1,005 dropped, 1,006 late; 4 tries again");
	st()->push.unnamed_files = 5;
	st()->push.unnamed_samples = 6000;
	st()->push.profiles[IBS_PUSH_CHAINS_LOST] = 7;
	assert_non_null(strstr(text(1), "; 4 tries again; for lack of time 5 files with 6,000 "
					"samples not named; 7 samples without call chain, which "
					"found no room\n"));
	o = json(1, NULL);
	same(o, "push",
	     "{'profiles':{'delivered':10,'refused':11,'unavailable':12,'failed':13,'unfinished':"
	     "14,"
	     "'dropped':0,'late':16},'samples':{'delivered':1000,'refused':1001,'unavailable':1002,"
	     "'failed':1003,'unfinished':1004,'dropped':1005,'late':1006},'retries':4,"
	     "'unnamed_files':5,'unnamed_samples':6000,'chains_lost':7}");
	json_decref(o);
	o = json(1, &now);
	p = json_object_get(o, "push");
	same(p, "pending", "true");
	same(p, "files_given_up", "3");
	same(p, "failure", "'no'");
	json_decref(o);
}

static void test_flight(void **state)
{
	(void)state;
	st()->flight_written = 1;
	st()->flight_failed = 2000;
	st()->flight_skipped = 3;
	lacks("flight recorder");
	st()->flight_on = IBS_FLIGHT_ON;
	has("flight recorder: recordings 1 written, 2,000 failed, 3 skipped");
	object("flight", "{'written':1,'failed':2000,'skipped':3}");
}

/* Names of cgroups 10 and 11 in slots 1 and 2; no others have one. */
static void name(const void *arg, const struct group *g, struct ibs_slot_name *out)
{
	(void)arg;
	memset(out, 0, sizeof(*out));
	if (g->slot == 1 && g->key.cgroup_id == 10) {
		strcpy(out->container, "db");
	} else if (g->slot == 2 && g->key.cgroup_id == 11) {
		strcpy(out->container, "batch");
		strcpy(out->pod, "jobs");
		strcpy(out->name_space, "prod");
	}
}

static void test_neighbours(void **state)
{
	struct ibs_neighbours all = {
		.n = 2,
		.time_ns = r[0].time_ns - 9 * SECOND,
		.pairs = 3,
		.judged = 5,
		.pair = { { .victim_slot = 1, .victim_cgroup = 12 },
			  { .victim_slot = 1,
			    .victim_cgroup = 10,
			    .suspect_slot = 2,
			    .suspect_cgroup = 11,
			    .first_ns = r[0].time_ns - 60 * SECOND,
			    .last_ns = r[0].time_ns - 4 * SECOND,
			    .latency = 150,
			    .baseline = 100,
			    .share = 0.25,
			    .correlation = 0.5,
			    .chance = 0.125,
			    .complex = 7,
			    .lag = 2,
			    .runs = 8,
			    .busy = 9 } },
		.use = { {},
			 { .known = IBS_NEIGHBOUR_TRAFFIC | IBS_NEIGHBOUR_L3,
			   .traffic = 2.5e9,
			   .l3 = 3 << 20 } },
	};
	struct reading_neighbours *n = &r[0].neighbours;

	(void)state;
	lacks("neighbours: ");
	/* the first has no name any more */
	neighbours_read(n, r[0].time_ns, &all, name, NULL);
	assert_true(n->known);
	assert_int_equal(n->n, 1);
	has("neighbours: 5 containers judged, 3 pairs");
	has("  ccx 7: db is 50 % slower while jobs/batch is busy (25 % of the accesses; 8 times "
	    "busy, last named 4 s ago)");
	has("    the suspect had up to 2.5 GB/s of memory traffic, 3.0 MiB of the L3 (resctrl)");
	object("neighbours",
	       "{'judged':5,'named':3,'pairs':[{'ccx':7,"
	       "'victim':{'namespace':'','pod':'','container':'db'},"
	       "'suspect':{'namespace':'prod','pod':'jobs','container':'batch'},"
	       "'latency':150.0,'baseline':100.0,'share':0.25,'correlation':0.5,'lag':2,'runs':8,"
	       "'windows_busy':9,'chance':0.125,'first_s':60.0,'last_s':4.0,"
	       "'memory_traffic':2500000000.0,'l3_occupancy':3145728.0}]}");
	n->use[0].known = IBS_NEIGHBOUR_L3;
	has("    the suspect had up to 3.0 MiB of the L3 (resctrl)");
	n->use[0].known = IBS_NEIGHBOUR_TRAFFIC;
	has("    the suspect had up to 2.5 GB/s of memory traffic (resctrl)");
	n->use[0].known = 0;
	lacks("the suspect had");
	n->pairs = 1;
	has("neighbours: 5 containers judged, 1 pair");
	/* judged ten seconds ago: nobody knows what is now */
	all.time_ns = r[0].time_ns - 10 * SECOND;
	neighbours_read(n, r[0].time_ns, &all, name, NULL);
	assert_false(n->known);
	assert_int_equal(n->n, 0);
	lacks("neighbours: ");
	all.time_ns = 0;
	neighbours_read(n, 0, &all, name, NULL);
	assert_false(n->known);
}

/* --- two events --- */

/* The second event has a governor, groups and a ledger of its own; what is of the collector is said once. */
static void test_second(void **state)
{
	json_t *o, *fetch;

	(void)state;
	r[1] = r[0];
	strcpy(r[1].meta.event, "ibs_fetch//");
	r[1].groups = 3;
	r[1].ledger.seen = 2000;
	r[1].meta.status.period = 100;
	r[1].meta.status.bpf_ns = r[1].meta.status.bpf_runs = SECOND;
	assert_non_null(strstr(text(2), "\nsampling: ibs_fetch// on 2 CPUs\n"
					"governor: off, period 100 instead of 0\n"
					"groups: 3 of 1,000, 0 folded, 0 displaced by busier ones\n"
					"cost: 1 ns per sample in BPF, 1.0 s in total\n"
					"ledger: seen 2,000 = "));
	o = json(2, NULL);
	fetch = json_object_get(o, "fetch");
	same(fetch, "event", "'ibs_fetch//'");
	same(fetch, "groups", "3");
	assert_null(json_object_get(fetch, "fetch"));
	json_decref(o);
}

/* Numbers of the reading are those of the pinned status; what was counted is given. */
static void test_begin(void **state)
{
	static struct ibs_state counted;
	const struct counts counts = { .state = &counted };
	const struct ledger l = { .seen = 5, .unseen = 99 };
	const struct ibs_meta meta = r[0].meta;
	struct reading one;

	(void)state;
	memset(&one, 0xff, sizeof(one));
	counted.control.strata.used = 1;
	reading_begin(&one, &meta);
	assert_memory_equal(&one.meta, &meta, sizeof(meta));
	assert_int_equal(one.groups, 0);
	assert_true(one.time_ns >= meta.status.time_ns && one.time_ns <= clock_ns(CLOCK_BOOTTIME));
	one.meta.status.unseen = 4;
	reading_finish(&one, &counts, &l, 8);
	assert_int_equal(one.ledger.seen, 5);
	assert_int_equal(one.ledger.unseen, 4);
	assert_int_equal(one.groups, 8);
	assert_int_equal(one.strata.used, 1);
}

/* A name that fills its place has no end. */
static void name_without_end(const void *arg, const struct group *g, struct ibs_slot_name *out)
{
	(void)arg;
	(void)g;
	memset(out, 'x', sizeof(*out));
}

static void test_long_names(void **state)
{
	const struct ibs_neighbours all = { .n = 1, .time_ns = r[0].time_ns };
	struct reading_neighbours *n = &r[0].neighbours;

	(void)state;
	neighbours_read(n, r[0].time_ns, &all, name_without_end, NULL);
	assert_int_equal(n->n, 1);
	assert_int_equal(strlen(n->victim[0].container),
			 sizeof(((struct ibs_slot_name *)0)->container) - 1);
	assert_int_equal(strlen(n->victim[0].pod), sizeof(((struct ibs_slot_name *)0)->pod) - 1);
	assert_int_equal(strlen(n->suspect[0].name_space),
			 sizeof(((struct ibs_slot_name *)0)->name_space) - 1);
}

static void test_memory(void **state)
{
	size_t before;

	(void)state;
	json_decref(json(1, NULL));
	before = memory_in_use();
	for (int i = 0; i < 300; i++)
		json_decref(json(1, NULL));
	assert_true(memory_in_use() <= before + MEMORY_SLACK);
}

#define T(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(test_alive), T(test_orphaned), T(test_texts),	     T(test_counts),
		T(test_cost),  T(test_work),	 T(test_governor),   T(test_stopped),
		T(test_push),  T(test_flight),	 T(test_neighbours), T(test_second),
		T(test_begin), T(test_memory),	 T(test_long_names),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
