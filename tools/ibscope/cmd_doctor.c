// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* ibscope doctor: what this machine can sample, and for each "no" the reason and the remedy. */
#include "cmd.h"
#include "doctor/doctor.h"
#include "doctor/doctor_verify.h"
#include "base/json_writer.h"
#include "base/num.h"
#include "base/options.h"
#include "base/output_file.h"
#include "base/screen.h"
#include "event/cpu.h"
#include "event/event.h"
#include "perf/sample_cost.h"
#include "sampler/sampler.h"

#include <errno.h>
#include <getopt.h>
#include <math.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#define WIDTH 100 /* unless the output is a terminal */

struct doctor_options {
	bool cost, json, no_loops;
	double verify_s; /* 0: do not */
};

/* --- the cost of a sample --- */

#define SECONDS	   4 /* of the busy loop, all rows together */
#define SIM_CAPS   0xbffu
#define RING_BYTES (16u << 20) /* for all samples forwarded while measuring */

static const __u32 init_pid = 1;

static const struct cost_row {
	const char *name, *what;
	struct sampler_opts opts;
} costs[] = {
	{ "floor", "interrupt and driver alone" },
	{ "rejected",
	  "rejected: another process",
	  { .by = IBS_BY_CGROUP, .sel.processes = { .pids = &init_pid, .n = 1 } } },
	{ "aggregated", "aggregated by cgroup", { .by = IBS_BY_CGROUP } },
	{ "forwarded",
	  "forwarded to the ring",
	  { .output = SAMPLER_RECORDS, .ring_bytes = RING_BYTES } },
};
#define ROWS (sizeof(costs) / sizeof(costs[0]))

struct cost {
	unsigned int cpu;
	bool simulated;
	struct ibs_cpu ibs;
	struct perf_event_attr attr;
	int empty_fd;
	struct sampler *samplers[ROWS]; /* NULL for the floor */
	struct sample_event *events[ROWS];
	struct loop_loss loss[ROWS];
};

static int choose_event(struct cost *c, struct err *err)
{
	struct event_spec spec;
	struct cpu_info info;
	struct pmu *pmu;
	int ret;

	cpu_info_read(&info);
	ret = pmu_open("", "ibs_op", &info, &pmu, err);
	if (ret == -ENODEV || ret == -ENOENT) {
		c->simulated = true;
		c->ibs.caps = SIM_CAPS;
		c->attr = (struct perf_event_attr){ .size = sizeof(c->attr),
						    .type = PERF_TYPE_SOFTWARE,
						    .sample_type = PERF_SAMPLE_RAW };
		c->attr = sample_cost_event(&c->attr);
		return 0;
	}
	if (ret)
		return ret;
	event_parse(EVENT_DEFAULT, &spec, NULL);
	ret = event_attr(&spec, pmu, &info, NULL, &c->attr, err);
	pmu_close(pmu);
	c->ibs = (struct ibs_cpu){ .caps = info.caps, .quirks = info.quirks };
	c->attr = sample_cost_event(&c->attr);
	return ret;
}

/* Open an event of our own for the sampler's program, which can be switched quickly and counted. */
static int open_row(struct cost *c, size_t i, struct err *err)
{
	struct sampler_opts opts = costs[i].opts;
	int ret, fd = c->empty_fd;

	if (i) {
		opts.source = c->simulated ? SAMPLER_SIM : SAMPLER_IBS;
		opts.ibs = c->ibs;
		opts.attr = c->attr;
		opts.event = c->simulated ? "cpu-clock" : "ibs_op//";
		opts.cpus = &c->cpu;
		opts.n_cpus = 1;
		opts.sim_seed = 1;
		ret = sampler_open(&opts, &c->samplers[i], err);
		if (ret)
			return ret;
		fd = sampler_prog_fd(c->samplers[i]);
	}
	return sample_event_open(&c->attr, fd, c->cpu, &c->events[i], err);
}

static int measure(struct cost *c, struct err *err)
{
	const struct loop_opts opts = { .cpu = c->cpu, .seconds = SECONDS };
	struct loop_subject subjects[ROWS];
	int ret = 0;

	for (size_t i = 0; !ret && i < ROWS; i++) {
		ret = open_row(c, i, err);
		if (!ret)
			subjects[i] = sample_event_subject(c->events[i]);
	}
	ret = ret ?: loop_loss_measure(subjects, ROWS, &opts, c->loss, err);
	for (size_t i = 0; i < ROWS; i++) {
		sample_event_close(c->events[i]);
		sampler_close(c->samplers[i]);
	}
	return ret;
}

static bool is_known(const struct loop_loss *l)
{
	return l->sampled_rounds && l->ns > l->ns_spread;
}

static int print_json(const struct cost *c, FILE *f, struct err *err)
{
	struct json_writer w = { .f = f, .precision = 6 };

	json_begin_object(&w, NULL);
	json_put_text(&w, "event", c->simulated ? "cpu-clock" : "ibs_op");
	json_put_bool(&w, "simulated", c->simulated);
	json_put_u64(&w, "cpu", c->cpu);
	json_begin_array(&w, "samples");
	for (size_t i = 0; i < ROWS; i++) {
		const struct loop_loss *l = &c->loss[i];

		json_begin_object(&w, NULL);
		json_put_text(&w, "outcome", costs[i].name);
		json_put_double(&w, "ns", is_known(l) ? l->ns : (double)NAN);
		json_put_double(&w, "spread_ns", is_known(l) ? l->ns_spread : (double)NAN);
		json_put_u64(&w, "measured", l->samples);
		json_end(&w);
	}
	json_finish(&w);
	return output_stream_flush(f, err);
}

static void print_cost(const struct cost *c, FILE *f)
{
	fprintf(f, "%s on cpu %u, caches hot\n\n%-28s %10s %8s %9s\n",
		c->simulated ? "SIMULATED: software clock (an interrupt, not an NMI)" : "ibs_op",
		c->cpu, "A SAMPLE", "ns", "+-", "SAMPLES");
	for (size_t i = 0; i < ROWS; i++) {
		const struct loop_loss *l = &c->loss[i];

		if (is_known(l))
			fprintf(f, "%-28s %10.0f %8.0f %9llu\n", costs[i].what, l->ns, l->ns_spread,
				l->samples);
		else
			fprintf(f, "%-28s %10s %8s %9llu\n", costs[i].what, "unknown", "",
				l->samples);
	}
	if (is_known(&c->loss[2]))
		fprintf(f,
			"\n1,000 aggregated samples per second take %.2f %% of a CPU while caches "
			"stay hot.\n",
			c->loss[2].ns * 1000 / 1e9 * 100);
}

/* Measure the CPU time of a sample for each outcome. */
static int show_cost(FILE *f, bool json, struct err *err)
{
	struct cost c = { .cpu = sched_getcpu(), .empty_fd = -1 };
	int ret = choose_event(&c, err);

	if (ret)
		return ret;
	c.empty_fd = sample_cost_empty_program();
	if (c.empty_fd < 0)
		return err_set(err, c.empty_fd,
			       "cannot load a BPF program: %s; see `ibscope doctor`",
			       strerror(-c.empty_fd));
	ret = measure(&c, err);
	close(c.empty_fd);
	if (ret)
		return ret;
	if (json)
		return print_json(&c, f, err);
	print_cost(&c, f);
	return 0;
}

/* --- the command --- */

static void usage(const struct option_set *set)
{
	printf("usage: ibscope doctor [OPTIONS]\n\n"
	       "Check what this CPU, kernel and user can sample, and print a remedy for each "
	       "\"no\".\nSamples one CPU with ibs_op for 50 ms, which also shows whether another "
	       "profiler uses it.\n");
	options_help(stdout, set, 1);
	printf("\nExit status: 0 sampling with IBS works (--cost: the cost was measured; --verify: "
	       "samples\nand counters agree), 1 it does not (or nothing could be compared), 2 "
	       "wrong "
	       "usage.\n");
}

static bool want_color(void)
{
	const char *no = getenv("NO_COLOR"), *term = getenv("TERM");

	return isatty(STDOUT_FILENO) && !(no && *no) && term && strcmp(term, "dumb");
}

static unsigned int terminal_width(void)
{
	struct winsize ws;

	if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &ws) || !ws.ws_col)
		return WIDTH;
	return ws.ws_col;
}

#define VERIFY_S     10
#define VERIFY_MAX_S 3600

static int set_verify(void *ctx, const char *arg, struct err *err)
{
	const struct duration_arg d = { .name = "--verify", .min_s = 0.1, .max_s = VERIFY_MAX_S };
	struct doctor_options *o = ctx;

	o->verify_s = VERIFY_S;
	return arg ? num_parse_duration(&d, arg, &o->verify_s, err) : 0;
}

static const struct option_row rows[] = {
	{ "cost", 0, NULL,
	  "measure the cost of a sample instead: takes 4 s on one CPU; uses the software clock "
	  "(SIMULATED) if there is no IBS",
	  OPTION_FLAG(struct doctor_options, cost) },
	{ "verify", 0, "[=SECONDS]",
	  "sample all CPUs for 10 s, or SECONDS, instead, and compare the samples with core "
	  "counters and the L3; then sample loops of known behaviour",
	  set_verify },
	{ "no-loops", 0, NULL, "with --verify: no loops",
	  OPTION_FLAG(struct doctor_options, no_loops) },
	{ "json", 0, NULL, "print one JSON object", OPTION_FLAG(struct doctor_options, json) },
};

static void print_next(const struct doctor_report *d)
{
	struct screen screen;

	screen_of(stdout, &screen);
	if (d->can_sample || d->can_simulate)
		screen_next(stdout, &screen, "hist", d->can_sample ? "" : "--source=sim", "10", "1",
			    NULL);
}

int cmd_doctor(int argc, char **argv)
{
	struct doctor_options o = {};
	const struct option_set set = { "Options", rows, sizeof(rows) / sizeof(rows[0]), &o };
	struct err e = { "" };
	struct doctor_report *d;
	int err = options_parse(argc, argv, &set, 1, &e), status;

	if (err > 0) {
		if (err == OPTIONS_HELP)
			usage(&set);
		return EXIT_DONE;
	}
	if (!err && optind < argc)
		err = err_set(&e, -EINVAL, "unexpected argument '%s'; doctor takes options only",
			      argv[optind]);
	if (!err && o.cost && o.verify_s)
		err = err_set(&e, -EINVAL, "--cost and --verify exclude each other");
	if (!err && o.no_loops && !o.verify_s)
		err = err_set(&e, -EINVAL, "--no-loops needs --verify");
	if (err) {
		log_error("%s", e.text);
		return EXIT_USAGE;
	}
	if (o.verify_s) {
		bool agree;

		if (!doctor_verify(o.verify_s, !o.no_loops, o.json, &agree, &e))
			return agree ? EXIT_DONE : EXIT_FAILED;
		log_error("%s", e.text);
		return EXIT_FAILED;
	}
	if (o.cost) {
		if (!show_cost(stdout, o.json, &e))
			return EXIT_DONE;
		log_error("%s", e.text);
		return EXIT_FAILED;
	}
	d = doctor_run(NULL);
	status = d->can_sample ? EXIT_DONE : EXIT_FAILED;
	if (o.json)
		err = doctor_print_json(d, stdout, &e);
	else
		doctor_print(d, stdout, terminal_width(), want_color());
	if (!o.json)
		print_next(d);
	free(d);
	if (err) {
		log_error("%s", e.text);
		return EXIT_FAILED;
	}
	return status;
}
