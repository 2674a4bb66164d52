// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* ibscope doctor: what this machine allows, and for each "no" why and the remedy. */
#include <errno.h>
#include <getopt.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "cmd.h"
#include "doctor/doctor.h"
#include "doctor_cost.h"
#include "base/options.h"

#define WIDTH 100 /* when the output is no terminal */

struct doctor_options {
	bool cost, json;
};

static void usage(const struct option_set *set)
{
	printf("usage: ibscope doctor [OPTIONS]\n\n"
	       "Check what this CPU, kernel and user can sample, by trying it: ibs_op samples one "
	       "CPU for\n50 ms, which also shows whether another profiler uses it.\n");
	options_help(stdout, set, 1);
	printf("\nExit status: 0 sampling with IBS works (--cost: the cost was measured), 1 it "
	       "does "
	       "not,\n2 wrong usage.\n");
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

static int finish(int status)
{
	if (!fflush(stdout) && !ferror(stdout))
		return status;
	log_error("doctor: cannot write the report: %m");
	return EXIT_FAILED;
}

static const struct option_row rows[] = {
	{ "cost", 0, NULL,
	  "measure what a sample costs instead: takes 4 s on one CPU; uses the software clock "
	  "(SIMULATED) if there is no IBS",
	  OPTION_FLAG(struct doctor_options, cost) },
	{ "json", 0, NULL, "print one JSON object", OPTION_FLAG(struct doctor_options, json) },
};

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
	if (err) {
		log_error("%s", e.text);
		return EXIT_USAGE;
	}
	if (o.cost) {
		if (!doctor_cost(stdout, o.json, &e))
			return finish(EXIT_DONE);
		log_error("%s", e.text);
		return EXIT_FAILED;
	}
	if (doctor_run(NULL, &d, &e)) {
		log_error("%s", e.text);
		return EXIT_FAILED;
	}
	status = d->can_sample ? EXIT_DONE : EXIT_FAILED;
	if (o.json)
		err = doctor_print_json(d, stdout, &e);
	else
		doctor_print(d, stdout, terminal_width(), want_color());
	free(d);
	if (err) {
		log_error("%s", e.text);
		return EXIT_FAILED;
	}
	return finish(status);
}
