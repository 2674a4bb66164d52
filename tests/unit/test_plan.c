// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Plans of selections: what is used where, and, against a model of processors and kernels that drops
 * all that it may drop, that no selected sample is lost.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <jansson.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "base/err.h"
#include "base/std.h"
#include "event/cpu.h"
#include "plan/plan.h"

#define BIT(n) (1U << (n))
#define ALL    (BIT(PLAN_HARDWARE) | BIT(PLAN_SCHEDULER) | BIT(PLAN_DRIVER))
#define FAR    (BIT(IBS_SRC_DRAM) | BIT(IBS_SRC_REMOTE_DRAM))

static const struct machine {
	const char *name;
	__u32 caps;
	bool erratum_1606;
} cpus[] = {
	{ "zen1", 0x3ff, false }, { "zen2", 0x3ff, false }, { "zen3", 0x3ff, false },
	{ "zen4", 0xbff, false }, { "zen5", 0x1bff, true }, { "zen6", 0x9fbff, false },
};

static const char *const kernels[] = { "5.10", "5.19", "6.1",  "6.2", "6.12",
				       "6.14", "6.15", "6.18", "7.1", "7.2" };

static unsigned int number(const char *kernel)
{
	unsigned int major = 0, minor = 0;

	sscanf(kernel, "%u.%u", &major, &minor);
	return major * 100 + minor;
}

struct given {
	struct event_spec event;
	struct abilities abilities;
	struct select_options o;
	struct plan_context c;
	struct plan plan;
	struct event_spec result;
};

static void make(struct given *g, const char *machine, const char *event, unsigned int stages)
{
	struct err e = { "" };

	if (abilities_parse(machine, &g->abilities, &e))
		fail_msg("%s: %s", machine, e.text);
	assert_int_equal(event_parse(event, &g->event, &e), 0);
	g->c.abilities = &g->abilities;
	g->c.event = &g->event;
	g->c.stages = stages;
	plan_make(&g->o, &g->c, &g->plan);
	plan_event(&g->plan, &g->c, &g->result);
}

/* --- fixed cases --- */

static char *one[] = { "/a" }, *two[] = { "/a,/b" }, *pattern[] = { "/a/*" }, *but[] = { "!/a" },
	    *one_but[] = { "/a", "!/a/b" }, *min[] = { "/a:400" };

static const struct expected {
	const char *machine, *event;
	unsigned int stages;
	struct {
		char **cgroups;
		size_t n;
		__u32 src, min_lat;
		bool user, kernel;
		enum ibs_metric metric;
	} of;
	const char *result;
	bool cgroup, estimates,
		unseen; /* estimates: without counters of what was tagged; with them always */
} cases[] = {
	/* the scheduler */
	{ "zen4:6.12", "ibs_op//", PLAN_AUTO, { one, 1 }, "ibs_op//", true, true, false },
	{ "zen4:6.2", "ibs_op//", PLAN_AUTO, { one_but, 2 }, "ibs_op//", true, true, false },
	{ "zen4:6.1", "ibs_op//", ALL, { one, 1 }, "ibs_op//", false, true, true },
	{ "zen4:6.12", "ibs_op//", 0, { one, 1 }, "ibs_op//", false, true, true },
	{ "zen4:6.12", "ibs_op//", ALL, { two, 1 }, "ibs_op//", false, true, true },
	{ "zen4:6.12", "ibs_op//", ALL, { pattern, 1 }, "ibs_op//", false, true, true },
	{ "zen4:6.12", "ibs_op//", ALL, { but, 1 }, "ibs_op//", false, true, true },
	/* sources */
	{ "zen4:6.12",
	  "ibs_op//",
	  PLAN_AUTO,
	  { .src = FAR },
	  "ibs_op/l3missonly=1/",
	  false,
	  true,
	  true },
	{ "zen4:6.12", "ibs_op//", ALL, { .src = FAR }, "ibs_op/l3missonly=1/" },
	{ "zen4:5.10", "ibs_op//", ALL, { .src = FAR }, "ibs_op//", false, true, true },
	{ "zen3:7.2", "ibs_op//", ALL, { .src = FAR }, "ibs_op//", false, true, true },
	{ "zen5:7.2",
	  "ibs_op//",
	  ALL,
	  { .src = FAR | BIT(IBS_SRC_L3) },
	  "ibs_op//",
	  false,
	  true,
	  true },
	{ "zen5:7.2",
	  "ibs_op//",
	  ALL,
	  { .src = FAR | BIT(IBS_SRC_IO) },
	  "ibs_op//",
	  false,
	  true,
	  true },
	/* latencies */
	{ "zen6:7.2", "ibs_op//", ALL, { .min_lat = 300 }, "ibs_op/ldlat=256/" },
	{ "zen6:7.2", "ibs_op//", ALL, { .min_lat = 129 }, "ibs_op/ldlat=128/" },
	{ "zen6:7.2", "ibs_op//", ALL, { .min_lat = 256 }, "ibs_op/ldlat=128/" },
	{ "zen6:7.2", "ibs_op//", ALL, { .min_lat = 257 }, "ibs_op/ldlat=256/" },
	{ "zen6:7.2", "ibs_op//", ALL, { .min_lat = 9999 }, "ibs_op/ldlat=2048/" },
	{ "zen6:7.2", "ibs_op//", ALL, { .min_lat = 128 }, "ibs_op//", false, true, true },
	{ "zen6:6.18", "ibs_op//", ALL, { .min_lat = 300 }, "ibs_op//", false, true, true },
	{ "zen5:7.2", "ibs_op//", ALL, { .min_lat = 300 }, "ibs_op//", false, true, true },
	{ "zen5:7.2",
	  "ibs_op//",
	  ALL,
	  { .min_lat = 300, .src = FAR },
	  "ibs_op/l3missonly=1,ldlat=256/" },
	{ "zen6:7.2",
	  "ibs_op//",
	  ALL,
	  { .min_lat = 300, .metric = IBS_METRIC_TAG_TO_RET },
	  "ibs_op//",
	  false,
	  true,
	  true },
	{ "zen6:7.2",
	  "ibs_op//",
	  BIT(PLAN_HARDWARE),
	  { min, 1, .min_lat = 300 },
	  "ibs_op/ldlat=256/" },
	{ "zen6:7.2", "ibs_op//", BIT(PLAN_HARDWARE), { min, 1 }, "ibs_op//", false, true, true },
	/* fetches: the hardware keeps latencies from the multiple on */
	{ "zen6:7.2",
	  "ibs_fetch//",
	  ALL,
	  { .min_lat = 300, .metric = IBS_METRIC_FETCH_LAT },
	  "ibs_fetch/fetchlat=256/" },
	{ "zen6:7.2",
	  "ibs_fetch//",
	  ALL,
	  { .min_lat = 256, .metric = IBS_METRIC_FETCH_LAT },
	  "ibs_fetch/fetchlat=256/" },
	{ "zen6:7.2",
	  "ibs_fetch//",
	  ALL,
	  { .min_lat = 9999, .metric = IBS_METRIC_FETCH_LAT },
	  "ibs_fetch/fetchlat=1920/" },
	{ "zen6:7.2",
	  "ibs_fetch//",
	  ALL,
	  { .min_lat = 127, .metric = IBS_METRIC_FETCH_LAT },
	  "ibs_fetch//",
	  false,
	  true,
	  true },
	{ "zen5:7.2",
	  "ibs_fetch//",
	  ALL,
	  { .min_lat = 300, .metric = IBS_METRIC_FETCH_LAT },
	  "ibs_fetch//",
	  false,
	  true,
	  true },
	{ "zen6:7.2",
	  "ibs_fetch//",
	  ALL,
	  { .min_lat = 300, .metric = IBS_METRIC_ITLB_REFILL_LAT },
	  "ibs_fetch//",
	  false,
	  true,
	  true },
	{ "zen5:7.2",
	  "ibs_fetch//",
	  ALL,
	  { .user = true, .metric = IBS_METRIC_FETCH_LAT },
	  "ibs_fetch/swfilt=1/u",
	  false,
	  true,
	  false },
	/* user and kernel */
	{ "zen6:7.2", "ibs_op//", ALL, { .user = true }, "ibs_op//u" },
	{ "zen6:7.2",
	  "ibs_op//",
	  BIT(PLAN_DRIVER),
	  { .kernel = true },
	  "ibs_op/swfilt=1/k",
	  false,
	  true,
	  false },
	{ "zen2:7.2",
	  "ibs_op//",
	  ALL,
	  { .kernel = true },
	  "ibs_op/swfilt=1/k",
	  false,
	  true,
	  false },
	{ "zen2:7.2", "ibs_op//", ALL, { .user = true }, "ibs_op//", false, true, true },
	{ "zen2:6.12", "ibs_op//", ALL, { .kernel = true }, "ibs_op//", false, true, true },
	{ "zen6:7.2",
	  "ibs_op//",
	  ALL,
	  { .user = true, .kernel = true },
	  "ibs_op//",
	  false,
	  true,
	  true },
	/* an event that has filters already */
	{ "zen6:7.2", "ibs_op/l3missonly=1/", ALL, { .min_lat = 300 }, "ibs_op/l3missonly=1/" },
	{ "zen6:7.2",
	  "ibs_op/swfilt=1/k",
	  ALL,
	  { .src = FAR },
	  "ibs_op/swfilt=1/k",
	  false,
	  true,
	  false },
};

static void test_cases(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		const struct expected *x = &cases[i];
		struct given g = { .o = { .cgroups = x->of.cgroups, .n_cgroups = x->of.n },
				   .c.metric = x->of.metric };
		char text[EVENT_TEXT_MAX];

		g.o.sel.src_mask = x->of.src;
		g.o.sel.min_lat = x->of.min_lat;
		g.o.filter_options.user = x->of.user;
		g.o.filter_options.kernel = x->of.kernel;
		make(&g, x->machine, x->event, x->stages);
		assert_true(g.plan.estimates);
		g.abilities.kernel &= ~(BIT(ABILITY_TAG_COUNTERS) | BIT(ABILITY_FETCH_COUNTERS));
		plan_make(&g.o, &g.c, &g.plan);
		event_print(&g.result, text, sizeof(text));
		if (strcmp(text, x->result) || g.plan.cgroup != x->cgroup ||
		    g.plan.estimates != x->estimates || g.plan.unseen != x->unseen)
			fail_msg("case %zu, %s: %s, cgroup %d, estimates %d, unseen %d", i,
				 x->machine, text, g.plan.cgroup, g.plan.estimates, g.plan.unseen);
	}
}

/* Without --plan the hardware filters where estimates stay known, and the plan says why it does not elsewhere. */
static void test_auto(void **state)
{
	static const char reason[] = "a recording has no counts of tagged ops";
	struct given g = { .o.sel.src_mask = FAR };

	(void)state;
	make(&g, "zen4:6.12", "ibs_op//", PLAN_AUTO);
	assert_true(g.plan.chosen && g.plan.l3missonly && g.plan.tags && g.plan.estimates);
	assert_false(g.plan.unseen);

	g.c.no_weights = reason;
	make(&g, "zen4:6.12", "ibs_op//", PLAN_AUTO);
	assert_false(g.plan.chosen || g.plan.l3missonly);
	assert_true(g.plan.estimates && g.plan.unseen);
	assert_non_null(strstr(g.plan.lines[0].why, reason));
	make(&g, "zen4:6.12", "ibs_op//", ALL); /* whoever asks for it gets it */
	assert_true(g.plan.l3missonly && !g.plan.chosen);

	g.c.no_weights = NULL;
	make(&g, "zen4:6.12", "ibs_op/l3missonly=1/",
	     PLAN_AUTO); /* so does the event's own filter */
	assert_false(g.plan.chosen);
	make(&g, "zen3:6.12", "ibs_op//", PLAN_AUTO);
	assert_false(g.plan.chosen);
	assert_true(g.plan.unseen);
	g.o.sel.src_mask = 0;
	make(&g, "zen4:6.12", "ibs_op//", PLAN_AUTO);
	assert_false(g.plan.chosen);
}

/* The command's cgroup is one more, and has no minimum of its own. */
static void test_command(void **state)
{
	static char *container[] = { "web:400" };
	static const struct {
		char **cgroups, **containers;
		__u32 min_lat;
		const char *alone, *with_command;
		bool cgroup_alone, cgroup_with_command;
	} rows[] = {
		{ NULL, NULL, 0, "ibs_op//", "ibs_op//", false, true },
		{ NULL, NULL, 300, "ibs_op/ldlat=256/", "ibs_op/ldlat=256/", false, true },
		{ one, NULL, 0, "ibs_op//", "ibs_op//", true, false },
		{ NULL, container, 0, "ibs_op/ldlat=384/", "ibs_op//", true, false },
		{ NULL, container, 300, "ibs_op/ldlat=384/", "ibs_op/ldlat=256/", true, false },
		{ min, NULL, 300, "ibs_op/ldlat=256/", "ibs_op/ldlat=256/", true, false },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		for (int command = 0; command < 2; command++) {
			struct given g = { .o = { .cgroups = rows[i].cgroups,
						  .n_cgroups = rows[i].cgroups != NULL,
						  .containers = rows[i].containers,
						  .n_containers = rows[i].containers != NULL },
					   .c.command = command };
			char text[EVENT_TEXT_MAX];

			g.o.sel.min_lat = rows[i].min_lat;
			make(&g, "zen6:7.2", "ibs_op//", ALL);
			event_print(&g.result, text, sizeof(text));
			assert_string_equal(text, command ? rows[i].with_command : rows[i].alone);
			assert_int_equal(g.plan.cgroup, command ? rows[i].cgroup_with_command
								: rows[i].cgroup_alone);
		}
	}
}

/* --- all machines, random selections and samples --- */

static __u64 seed = 1;

static __u64 rnd(void)
{
	seed ^= seed << 13;
	seed ^= seed >> 7;
	return seed ^= seed << 17;
}

static bool chance(unsigned int one_in)
{
	return rnd() % one_in == 0;
}

/* Any bits, but loads from beyond the L3 often enough. */
static void random_sample(__u64 *regs)
{
	static const __u64 far[] = { 2, 3, 5, 6, 8 };

	for (int i = 0; i < IBS_OP_REG_N; i++)
		regs[i] = rnd();
	if (chance(2))
		return;
	regs[IBS_OP_DATA3] |= IBS_OP_DATA3_LD_OP | IBS_OP_DATA3_DC_MISS | IBS_OP_DATA3_L2_MISS;
	regs[IBS_OP_DATA3] &= ~(IBS_OP_DATA3_UC_MEM_ACC | IBS_OP_DATA3_SW_PF);
	regs[IBS_OP_DATA3] &= ~(0xf000ULL << 32); /* latencies around those of the filter */
	regs[IBS_OP_DATA2] &= ~0xc7ULL;
	regs[IBS_OP_DATA2] |= far[rnd() % ARRAY_SIZE(far)] & 7;
	if (chance(5))
		regs[IBS_OP_DATA2] |= 0x40, regs[IBS_OP_DATA2] &= ~7ULL;
}

static bool is_selected(const struct given *g, const struct machine *cpu, const __u64 *regs)
{
	const struct selection *sel = &g->o.sel;
	const struct filter_options *f = &g->o.filter_options;
	const struct ibs_cpu ibs = { .caps = cpu->caps };
	const __u64 data3 = regs[IBS_OP_DATA3];
	enum ibs_mode mode = ibs_op_mode(cpu->caps, regs);

	if (sel->src_mask && !(sel->src_mask >> ibs_op_src(ibs, regs) & 1))
		return false;
	if (sel->op_mask && !(sel->op_mask >> ibs_op_kind(regs[IBS_OP_DATA], data3) & 1))
		return false;
	if (sel->min_lat && (!ibs_op_metric_valid(g->c.metric, cpu->caps, data3) ||
			     ibs_op_metric(g->c.metric, regs, data3) < sel->min_lat))
		return false;
	return f->user == f->kernel || mode == (f->user ? IBS_MODE_USER : IBS_MODE_KERNEL);
}

/* What processor and kernel surely let through. */
static bool passes(const struct event_spec *ev, const struct machine *cpu, const char *kernel,
		   const __u64 *regs)
{
	const __u64 data3 = regs[IBS_OP_DATA3], data2 = regs[IBS_OP_DATA2];
	const unsigned int code = (data2 & 7) | (data2 >> 6 & 3) << 3;
	const bool load = data3 & IBS_OP_DATA3_LD_OP, missed = data3 & IBS_OP_DATA3_DC_MISS,
		   uncached = data3 & IBS_OP_DATA3_UC_MEM_ACC;
	const bool unknown_ip = regs[IBS_OP_DATA] & IBS_OP_DATA_RIP_INVALID,
		   in_kernel = regs[IBS_OP_RIP] >> 63;
	const uint64_t ldlat = event_term(ev, "ldlat");
	bool l3_miss = load && missed && !uncached && data3 & IBS_OP_DATA3_L2_MISS && code < 16 &&
		       1U << code & 0x16c;

	if (event_term(ev, "l3missonly") && !l3_miss)
		return false;
	if (ldlat && (cpu->erratum_1606 || number(kernel) < 702) && !l3_miss)
		return false;
	if (ldlat && (!load || !missed || uncached || (data3 >> 32 & 0xffff) <= ldlat))
		return false;
	if ((ev->user || ev->kernel) && (unknown_ip || in_kernel != ev->kernel))
		return false;
	if (ev->user && event_term(ev, "swfilt") &&
	    ((data3 & IBS_OP_DATA3_LIN_VALID && regs[IBS_DC_LINADDR] >> 63) ||
	     (regs[IBS_OP_DATA] & IBS_OP_DATA_BRN_RET && regs[IBS_BRTARGET] >> 63)))
		return false;
	return true;
}

/* Terms that this machine would refuse or ignore. */
static bool is_possible(const struct given *g, const struct machine *cpu, const char *kernel)
{
	const unsigned int n = number(kernel);
	const struct event_spec *ev = &g->result;
	const bool mode = ev->user || ev->kernel, swfilt = event_term(ev, "swfilt");

	return (!event_term(ev, "l3missonly") || (cpu->caps & IBS_CAPS_ZEN4 && n >= 519)) &&
	       (!event_term(ev, "ldlat") || (cpu->caps & IBS_CAPS_OPLDLAT && n >= 615)) &&
	       (!swfilt || n >= 614) &&
	       (!mode || swfilt || (cpu->caps & IBS_CAPS_BIT63_FILTER && n >= 701)) &&
	       (!g->plan.cgroup || n >= 602);
}

static void random_selection(struct given *g)
{
	static const __u32 lats[] = { 0, 0, 1, 128, 129, 257, 300, 2048, 2049, 3000 };
	struct selection *sel = &g->o.sel;

	*g = (struct given){};
	if (chance(2))
		sel->src_mask = chance(2) ? FAR : rnd() & (BIT(IBS_SRC_N) - 1);
	if (chance(4))
		sel->op_mask = rnd() & (BIT(IBS_OP_KIND_N) - 1);
	sel->min_lat = lats[rnd() % ARRAY_SIZE(lats)];
	g->o.filter_options.user = chance(3);
	g->o.filter_options.kernel = chance(3);
	g->c.metric = chance(3) ? rnd() % IBS_OP_METRIC_N : IBS_METRIC_DC_MISS_LAT;
}

static void test_loses_nothing(void **state)
{
	unsigned int used = 0, selected = 0, dropped = 0;
	char machine[32];

	(void)state;
	for (int i = 0; i < 60 * 100; i++) {
		const struct machine *cpu = &cpus[i % ARRAY_SIZE(cpus)];
		const char *kernel = kernels[i / ARRAY_SIZE(cpus) % ARRAY_SIZE(kernels)];
		struct given g;

		random_selection(&g);
		snprintf(machine, sizeof(machine), "%s:%s", cpu->name, kernel);
		make(&g, machine, "ibs_op/cnt_ctl=1/", rnd() & ALL);
		assert_true(is_possible(&g, cpu, kernel));
		used += event_filter(&g.result) != EVENT_FILTER_NONE;
		for (int k = 0; k < 200; k++) {
			__u64 regs[IBS_OP_REG_N];
			bool is, through;

			random_sample(regs);
			is = is_selected(&g, cpu, regs);
			through = passes(&g.result, cpu, kernel, regs);
			selected += is;
			dropped += !through;
			if (is && !through) {
				char text[EVENT_TEXT_MAX];

				event_print(&g.result, text, sizeof(text));
				fail_msg("selection %d on %s: %s loses a sample", i, machine, text);
			}
		}
	}
	assert_true(used > 500 && selected > 10000 && dropped > 10000);
}

/* What a plan says of each predicate, in both outputs. */
static const struct {
	const char *option, *stage, *drops;
	bool program_too;
} said[] = {
	{ "-C", "scheduler", "samples of other CPUs", false },
	{ "--cgroup, --container", "program", "tasks of other cgroups", false },
	{ "-p, -t", "program", "other processes and threads", false },
	{ "--comm", "program", "threads of other names", false },
	{ "--op", "program", "other kinds of op", false },
	{ "--src", "hardware", "ops that do not miss the L3", true },
	{ "--min-lat", "hardware", "short latencies, ops without one", true },
	{ "--max-lat", "program", "longer latencies, ops without one", false },
	{ "--user, --kernel", "hardware", "ops in the other half of addresses", false },
	{ "other filters", "program", "samples that do not match", false },
};

static void check_json(const char *text)
{
	json_t *j = json_loads(text, 0, NULL), *list = json_object_get(j, "predicates");

	assert_non_null(j);
	assert_string_equal(json_string_value(json_object_get(j, "machine")), "Zen 6, Linux 7.2");
	assert_string_equal(json_string_value(json_object_get(j, "event")),
			    "ibs_op/l3missonly=1,ldlat=256/u");
	assert_true(json_is_false(json_object_get(j, "one_cgroup")));
	assert_true(json_is_true(json_object_get(j, "estimated_ops_known")));
	assert_true(json_is_false(json_object_get(j, "unseen_known")));
	assert_int_equal(json_array_size(list), ARRAY_SIZE(said));
	for (size_t i = 0; i < ARRAY_SIZE(said); i++) {
		const char *predicate, *stage, *drops, *cost;
		json_t *why;
		json_error_t e;
		int too;

		if (json_unpack_ex(json_array_get(list, i), &e, 0, "{s:s, s:s, s:b, s:s, s:s, s:o}",
				   "predicate", &predicate, "stage", &stage, "program_too", &too,
				   "drops", &drops, "cost", &cost, "why_not_earlier", &why))
			fail_msg("%s", e.text);
		assert_string_equal(predicate, said[i].option);
		assert_string_equal(stage, said[i].stage);
		assert_string_equal(drops, said[i].drops);
		assert_int_equal(too, said[i].program_too);
		assert_string_equal(cost, strcmp(stage, "program")
						  ? "nothing"
						  : "the interrupt and 70 to 130 instructions");
		/* a reason, where there are earlier stages that could not be used */
		assert_int_equal(json_is_string(why), !strcmp(stage, "program"));
	}
	json_decref(j);
}

static void check_text(const char *text)
{
	const char *at = text;

	for (size_t i = 0; i < ARRAY_SIZE(said); i++) {
		char begin[128];

		snprintf(begin, sizeof(begin), "\n%-22s %s%s: drops ", said[i].option,
			 said[i].stage, said[i].program_too ? ", program" : "");
		at = strstr(at, begin);
		assert_non_null(at);
		assert_non_null(strstr(at, said[i].drops));
	}
	assert_memory_equal(text, "Zen 6, Linux 7.2\n", 17);
	assert_non_null(strstr(at, "\nevent: ibs_op/l3missonly=1,ldlat=256/u\n"
				   "estimated ops: known; unseen samples: unknown\n"));
}

static void test_output(void **state)
{
	static char *cgroups[] = { "/a", "/b" };
	static const __u32 tid = 7;
	static const char *const comm = "x";
	struct given g = { .o = { .cgroups = cgroups, .n_cgroups = 2 }, .c.cpus = true };
	struct selection *sel = &g.o.sel;

	(void)state;
	sel->threads = (struct selected_pids){ &tid, 1, false };
	sel->comms = &comm;
	sel->n_comms = 1;
	sel->op_mask = BIT(IBS_OP_KIND_LOAD);
	sel->src_mask = FAR;
	sel->min_lat = 300;
	sel->max_lat = 3000;
	g.o.filter_options.user = true;
	g.o.filter[0].n_parts = 2; /* --user is one */
	make(&g, "zen6:7.2", "ibs_op//", ALL);
	for (int json = 0; json < 2; json++) {
		char *text = NULL;
		size_t n;
		FILE *f = open_memstream(&text, &n);

		assert_non_null(f);
		if (json)
			plan_print_json(f, &g.plan, &g.c);
		else
			plan_print(f, &g.plan, &g.c, 80);
		fclose(f);
		if (json)
			check_json(text);
		else
			check_text(text);
		free(text);
	}
}

/* Each way to give a selection, alone: what is not given has no line. */
static void test_given(void **state)
{
	static char *names[] = { "/a", "/b" };
	static const __u32 pid = 7;
	const struct selected_pids pids = { &pid, 1, false };

	(void)state;
	for (int i = 0; i < 8; i++) {
		struct given g = { .c.command = i == 4, .c.cpus = i == 5 };
		const enum plan_predicate want = i < 2	 ? PLAN_BY_PID
						 : i < 5 ? PLAN_BY_CGROUP
						 : i < 6 ? PLAN_BY_CPU
							 : PLAN_BY_OTHER;

		if (i < 2)
			*(i ? &g.o.sel.threads : &g.o.sel.processes) = pids;
		if (i == 2) {
			g.o.cgroups = names;
			g.o.n_cgroups = 2;
		}
		if (i == 3) {
			g.o.containers = names;
			g.o.n_containers = 2;
		}
		g.o.filter_options.user = g.o.filter_options.kernel = i == 7; /* that is all ops */
		g.o.filter[0].n_parts = i >= 6;
		make(&g, "zen4:6.12", "ibs_op//", ALL);
		assert_int_equal(g.plan.n, 1);
		assert_int_equal(g.plan.lines[0].predicate, want);
		assert_int_equal(g.plan.cgroup, i == 4); /* two cgroups have no event */
		plan_make(&g.o, &g.c, &g.plan);		 /* begins anew */
		assert_int_equal(g.plan.n, 1);
	}
}

/* All reasons, from the earliest stage on. */
static void test_reasons(void **state)
{
	static const struct {
		const char *machine, *why;
	} rows[] = {
		{ "zen2:5.10", "the address filter requires Zen 6; swfilt requires Linux 6.14" },
		{ "zen6:7.2",
		  "the address filter needs --plan hw; the number of unseen samples is then "
		  "unknown; "
		  "swfilt needs --plan driver; the number of unseen samples is then unknown" },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		struct given g = { .o.filter_options.kernel = true };

		make(&g, rows[i].machine, "ibs_op//", 0);
		assert_int_equal(g.plan.n, 1);
		assert_int_equal(g.plan.lines[0].stage, PLAN_PROGRAM);
		assert_string_equal(g.plan.lines[0].why, rows[i].why);
	}
}

/* What an unmet requirement is: of the processor first, then of the kernel. */
static void test_requirements(void **state)
{
	static const struct {
		const char *machine;
		enum ability which;
		const char *requires; /* NULL: it has it */
	} rows[] = {
		{ "zen3:7.2", ABILITY_L3MISSONLY, "Zen 4" },
		{ "zen4:5.10", ABILITY_L3MISSONLY, "Linux 5.19" },
		{ "zen4:5.19", ABILITY_L3MISSONLY, NULL },
		{ "zen3:5.10", ABILITY_L3MISSONLY, "Zen 4" },
		{ "zen5:7.2", ABILITY_LDLAT_ALONE, "a processor without erratum 1606 (Zen 6)" },
		{ "zen6:7.1", ABILITY_LDLAT_ALONE, "Linux 7.2" },
		{ "zen1:6.1", ABILITY_CGROUP_EVENTS, "Linux 6.2" },
		{ "zen1:6.2", ABILITY_CGROUP_EVENTS, NULL },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		struct abilities a;
		char text[64];

		assert_int_equal(abilities_parse(rows[i].machine, &a, NULL), 0);
		assert_int_equal(abilities_has(&a, rows[i].which), !rows[i].requires);
		if (!rows[i].requires)
			continue;
		abilities_requires(&a, rows[i].which, text, sizeof(text));
		assert_string_equal(text, rows[i].requires);
	}
}

/* Of this machine: no core counters of tags without a known processor, and terms are those of the PMU. */
static void test_machine(void **state)
{
	struct pmu pmu = { .name = "ibs_op", .n_formats = 1, .formats[0].name = "ldlat" };
	const uint32_t counters = BIT(ABILITY_TAG_COUNTERS) | BIT(ABILITY_FETCH_COUNTERS);
	struct cpu_info cpu;
	struct abilities a, bare;
	struct utsname u;
	char machine[96];

	(void)state;
	cpu_info_set(&cpu, "AuthenticAMD", 0x1a, 0x50, 0x9fbff);
	abilities_of(&cpu, NULL, &bare);
	assert_int_equal(bare.caps, 0x9fbff);
	/* the kernel is this one */
	assert_int_equal(uname(&u), 0);
	snprintf(machine, sizeof(machine), "zen6:%.*s", (int)strspn(u.release, "0123456789."),
		 u.release);
	assert_int_equal(abilities_parse(machine, &a, NULL), 0);
	assert_int_equal(bare.kernel & ~counters, a.kernel & ~counters);
	assert_memory_equal(bare.name, "Zen 6, Linux ", 13);
	abilities_of(&cpu, &pmu, &a);
	assert_true(abilities_has(&a, ABILITY_LDLAT));
	assert_false(abilities_has(&a, ABILITY_L3MISSONLY));
	assert_false(abilities_has(&a, ABILITY_SWFILT));
	pmu.formats[0].name[0] = 'x';
	abilities_of(&cpu, &pmu, &a);
	assert_false(abilities_has(&a, ABILITY_LDLAT));
	/* what is not a term stays as the kernel's version says */
	assert_int_equal(a.kernel & BIT(ABILITY_CGROUP_EVENTS),
			 bare.kernel & BIT(ABILITY_CGROUP_EVENTS));
	if (access("/sys/bus/event_source/devices/cpu", F_OK))
		assert_false(abilities_has(&a, ABILITY_TAG_COUNTERS) ||
			     abilities_has(&a, ABILITY_FETCH_COUNTERS));
	cpu_info_set(&cpu, "GenuineIntel", 6, 1, 0);
	abilities_of(&cpu, NULL, &a);
	assert_int_equal(a.caps, 0);
	assert_int_equal(a.cpu, 0);
	assert_memory_equal(a.name, "no IBS, Linux ", 14);
}

/* A stage that is not allowed is never used, and the line says what would allow it. */
static void test_stages(void **state)
{
	(void)state;
	for (unsigned int stages = 0; stages <= ALL; stages++) {
		struct given g = { .o = { .cgroups = one, .n_cgroups = 1 } };

		g.o.sel.src_mask = FAR;
		g.o.filter_options.kernel = true;
		make(&g, "zen4:7.2", "ibs_op//", stages);
		assert_int_equal(g.plan.n, 3);
		for (size_t i = 0; i < g.plan.n; i++) {
			const struct plan_line *l = &g.plan.lines[i];

			assert_true(l->stage == PLAN_PROGRAM || stages >> l->stage & 1);
			if (l->stage == PLAN_PROGRAM)
				assert_non_null(strstr(l->why, "needs --plan "));
		}
		assert_int_equal(g.plan.cgroup, stages >> PLAN_SCHEDULER & 1);
		assert_int_equal(g.plan.l3missonly, stages & 1);
		assert_int_equal(g.plan.swfilt, stages >> PLAN_DRIVER & 1);
	}
}

static void test_parse(void **state)
{
	static const char *const bad[] = { "",		"x",	    "zen4",	"zen4:",
					   ":6.12",	"zen4:6",   "zen4:6.x", "zen4: 6.12",
					   "zen7:6.12", "zen:6.12", "zen4:+6.1" };
	struct abilities a;
	struct err e;
	unsigned int stages;

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
		assert_int_equal(abilities_parse(bad[i], &a, &e), -EINVAL);
		assert_non_null(strstr(e.text, "zen5:6.12"));
	}
	assert_int_equal(abilities_parse("zen5:6.12.1", &a, &e), 0);
	assert_string_equal(a.name, "Zen 5, Linux 6.12.1");
	assert_int_equal(plan_parse("off", &stages, &e), 0);
	assert_int_equal(stages, 0);
	assert_int_equal(plan_parse("driver,hw", &stages, &e), 0);
	assert_int_equal(stages, BIT(PLAN_HARDWARE) | BIT(PLAN_DRIVER));
	assert_int_equal(plan_parse("off,hw", &stages, &e), -EINVAL);
	assert_int_equal(plan_parse("hardware", &stages, &e), -EINVAL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_cases),	     cmocka_unit_test(test_auto),
		cmocka_unit_test(test_command),	     cmocka_unit_test(test_loses_nothing),
		cmocka_unit_test(test_stages),	     cmocka_unit_test(test_parse),
		cmocka_unit_test(test_output),	     cmocka_unit_test(test_given),
		cmocka_unit_test(test_requirements), cmocka_unit_test(test_machine),
		cmocka_unit_test(test_reasons),

	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
