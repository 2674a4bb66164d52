// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* ibscope why: what a container waits for that it did not before, now, at a time that has passed, or in a recording. */
#include "cmd.h"
#include "cmd_why.h"
#include "base/array.h"
#include "base/options.h"
#include "flight/flight_dir.h"

#include <ibscope/pin_layout.h>

#include <getopt.h>
#include <string.h>

#define MIN_S 10. /* compare.h needs COMPARE_FEW windows */

struct why {
	double at_s, duration_s;
	const char *wanted; /* as given */
	struct why_now now;
	struct why_moment moment;
	struct why_file file;
	bool json;
};

static int set_at(void *ctx, const char *arg, struct err *err)
{
	struct why *w = ctx;

	return cmd_time_parse(arg, &w->at_s, err);
}

/* clang-format off: a row is a row */
static const struct option_row why_options[] = {
	{ "input", 'i', "FILE", "a recording: compare its end with what was before",
	  OPTION_WORD(struct why, file.file) },
	{ "pin-dir", 0, "DIR", "pins of the collector; default " IBS_PIN_DIR,
	  OPTION_WORD(struct why, now.pin_dir) },
	{ "duration", 0, "TIME",
	  "how long 'now' is, 10s to 1h, default 30s; with --at 'then', default 2m, of Prometheus "
	  "5m",
	  OPTION_DURATION(struct why, duration_s, MIN_S, 3600) },
	{ "at", 0, "TIME",
	  "ask about a time that has passed: when it began, such as 03:12, -10m; or where 'now' "
	  "begins in a recording",
	  set_at },
	{ "exporter", 0, "URL",
	  "the ibscope-exporter that has its history; default http://localhost:9950",
	  OPTION_WORD(struct why, moment.exporter) },
	{ "prometheus", 0, "URL", "a Prometheus server that has scraped it instead",
	  OPTION_WORD(struct why, moment.prometheus) },
	{ "match", 0, "LABELS",
	  "with --prometheus: only series with these labels, such as 'instance=\"host:9950\"'",
	  OPTION_WORD(struct why, moment.match) },
	{ "flight-dir", 0, "DIR", "where recordings of then may be; default " FLIGHT_DIR_DEFAULT,
	  OPTION_WORD(struct why, moment.flight_dir) },
	{ "json", 0, NULL, "print JSON, as `ibscope diff --json` does",
	  OPTION_FLAG(struct why, json) },
};
/* clang-format on */

static void usage(FILE *f, const struct option_set *sets)
{
	fprintf(f, "usage: ibscope why [OPTIONS] [CONTAINER]\n"
		   "       ibscope why --at TIME [OPTIONS] [CONTAINER]\n"
		   "       ibscope why [OPTIONS] FILE | -i FILE [CONTAINER]\n\n"
		   "Say what a container waits for now that it did not before: the next 30 seconds "
		   "against all\nthat the running collector has counted. Without CONTAINER it is "
		   "the one that waits most.\nOf a recording, FILE, its end is compared with what "
		   "was before.\nCONTAINER is its name, as pod/name or "
		   "namespace/pod/name "
		   "if others have the same, or the path\nof a cgroup.\n");
	options_help(f, sets, 1);
	fprintf(f, "\nExit status: 0 done; 1 failed, no such container, too few samples or an "
		   "incomplete\nrecording; 2 wrong usage.\n");
}

/* Every answer gets what applies to it; a recording can be the argument instead of a container. */
static int check(struct why *w, struct err *err)
{
	const struct why_moment *m = &w->moment;

	if (!w->file.file && w->wanted && why_is_file(w->wanted)) {
		w->file.file = w->wanted;
		w->wanted = NULL;
	}
	w->now.wanted = w->moment.wanted = w->file.wanted = w->wanted;
	w->now.duration_s = w->moment.duration_s = w->file.duration_s = w->duration_s;
	w->now.json = w->moment.json = w->file.json = w->json;
	w->moment.at_s = w->file.at_s = w->at_s;
	if (w->file.file &&
	    (w->now.pin_dir || m->exporter || m->prometheus || m->match || m->flight_dir))
		return err_set(err, -EINVAL,
			       "%s is a recording: it excludes --pin-dir, --exporter, "
			       "--prometheus, --match and --flight-dir",
			       w->file.file);
	w->now.pin_dir = w->now.pin_dir ?: IBS_PIN_DIR;
	return w->file.file ? 0 : why_moment_check(m, err);
}

static int answer(const struct why *w, struct err *err)
{
	if (w->file.file)
		return why_file_answer(&w->file, err);
	return w->at_s ? why_moment_answer(&w->moment, err) : why_now_answer(&w->now, err);
}

int cmd_why(int argc, char **argv)
{
	struct why w = {};
	const struct option_set sets[] = { { "Options", why_options, ARRAY_SIZE(why_options),
					     &w } };
	struct err err = { "" };
	int ret = options_parse(argc, argv, sets, 1, &err);

	if (ret == OPTIONS_HELP)
		usage(stdout, sets);
	if (!ret && argc - optind > 1)
		ret = err_set(&err, -EINVAL, "unexpected argument '%s': give one container",
			      argv[optind + 1]);
	w.wanted = optind < argc ? argv[optind] : NULL;
	ret = ret ?: check(&w, &err);
	if (ret < 0)
		log_error("%s", err.text);
	if (ret)
		return ret < 0 ? EXIT_USAGE : EXIT_DONE;
	ret = answer(&w, &err);
	if (ret && *err.text)
		log_error("%s", err.text);
	return ret ? EXIT_FAILED : EXIT_DONE;
}
