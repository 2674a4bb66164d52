// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* ibscope doctor: what this machine allows, and for each "no" why and the remedy. */
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "cmd.h"
#include "doctor.h"
#include "err.h"

#define WIDTH 100 /* when the output is no terminal */

static void usage(FILE *f)
{
	fprintf(f, "usage: ibscope doctor [--json]\n"
		   "\n"
		   "Check what this processor, kernel and privilege allow, by trying it. Samples "
		   "with\n"
		   "ibs_op on one CPU for 50 ms to see whether another profiler uses it.\n"
		   "\n"
		   "  --json      one JSON object\n"
		   "  -h, --help  this text\n"
		   "\n"
		   "Exit status: 0 IBS sampling works, 1 it does not, 2 wrong usage.\n");
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

int cmd_doctor(int argc, char **argv)
{
	static const struct option options[] = {
		{ "json", no_argument, NULL, 'j' },
		{ "help", no_argument, NULL, 'h' },
		{ 0 },
	};
	struct err e = { "" };
	struct doctor *d;
	bool json = false;
	int c, err = 0, status;

	while ((c = getopt_long(argc, argv, "h", options, NULL)) != -1) {
		switch (c) {
		case 'j':
			json = true;
			break;
		case 'h':
			usage(stdout);
			return 0;
		default:
			usage(stderr);
			return 2;
		}
	}
	if (optind < argc) {
		log_error("doctor: '%s': no arguments are expected", argv[optind]);
		usage(stderr);
		return 2;
	}
	if (doctor_run(NULL, &d, &e)) {
		log_error("%s", e.text);
		return 1;
	}
	status = doctor_can_sample(d) ? 0 : 1;
	if (json)
		err = doctor_print_json(d, stdout, &e);
	else
		doctor_print(d, stdout, terminal_width(), want_color());
	doctor_free(d);
	if (err) {
		log_error("%s", e.text);
		return 1;
	}
	if (fflush(stdout) || ferror(stdout)) {
		log_error("doctor: cannot write the report: %m");
		return 1;
	}
	return status;
}
