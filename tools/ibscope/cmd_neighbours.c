// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* ibscope neighbours: which container slows which on the cores that share an L3. */
#include "cmd.h"
#include "cmd_neighbours.h"
#include "base/array.h"
#include "base/clock.h"
#include "base/json_writer.h"
#include "base/num.h"
#include "base/signals.h"
#include "base/utf8.h"
#include "input/recorded.h"
#include "resctrl/resctrl.h"
#include "table/columns.h"
#include "top/source.h"

#include <ibscope/pin_layout.h>

#include <getopt.h>
#include <math.h>
#include <poll.h>
#include <unistd.h>

#define WINDOW_S      1.
#define DEFAULT_S     60.
#define SAMPLING_ROWS 40

struct cmd {
	struct sampling_opts sampling;
	struct view_opts view;
	struct recorded_input input;
	struct replay_opts replay;
	struct trace *trace;
	const char *pin_dir;
	bool own;
	double duration_s;
	struct top_source *source;
	struct neighbours *neighbours;
	struct intern names;
	struct resctrl *resctrl; /* NULL: a recording, or not mounted */
	int sigfd;
};

/* clang-format off: a row is a row */
static const struct option_row neighbours_options[] = {
	{ "input", 'i', "FILE", "read a recording", OPTION_WORD(struct cmd, input.file) },
	{ "pin-dir", 0, "DIR",
	  "read the collector with pins in DIR, which must group by container and ccx; by default "
	  "the one in " IBS_PIN_DIR ", if it does",
	  OPTION_WORD(struct cmd, pin_dir) },
	{ "own", 0, NULL, "sample, even if a collector is running", OPTION_FLAG(struct cmd, own) },
	{ "duration", 0, "SECONDS", "stop after SECONDS, also as in 5m; default 60",
	  OPTION_DURATION(struct cmd, duration_s, 1, 86400) },
};
/* clang-format on */

static void usage(FILE *f, const struct option_set *sets, size_t n)
{
	fprintf(f,
		"usage: ibscope neighbours [OPTIONS] [FILE]\n\n"
		"Print which containers have to wait longer for data from L3 and beyond while "
		"another container on\nthe same L3 is busy: windows of a second of a recording, of "
		"a running collector, or sampled now.\nNobody is named without evidence: what is "
		"missing is printed.\n");
	options_help(f, sets, n);
	fprintf(f, "\nExit status: 0 done, also if nobody is named; 1 failed, 2 wrong usage.\n");
}

static void add_group(struct top_source *source, struct neighbours *judge, struct intern *names,
		      const struct group *g)
{
	struct neighbours_activity a;
	char *name, *pod, *text;

	if (!neighbours_activity_of(g, &a))
		return;
	name = group_label(g, LABEL_CONTAINER, source->name, source);
	pod = group_label(g, LABEL_POD, source->name, source);
	text = xasprintf("%s%s%s", pod, *pod ? "/" : "", name);
	if (*name)
		neighbours_add(judge, g->key.complex, intern_get(names, text), &a);
	free(text);
	free(pod);
	free(name);
}

int neighbours_read_window(struct top_source *source, double seconds, struct neighbours *judge,
			   struct intern *names, struct err *err)
{
	struct snapshot interval;
	struct frame frame;
	int ret = source->read(source, seconds, &interval, &frame, err);

	if (ret)
		return ret < 0 ? ret : source->info.ended;
	for (size_t i = 0; i < interval.n_groups; i++)
		add_group(source, judge, names, &interval.groups[i]);
	neighbours_end_window(judge, interval.time_ns > seconds * 5e8);
	snapshot_free(&interval);
	return 0;
}

static int read_window(struct cmd *c, struct err *err)
{
	return neighbours_read_window(c->source, WINDOW_S, c->neighbours, &c->names, err);
}

/* Return: false if a signal came first. */
static bool wait_until(struct cmd *c, double due)
{
	while (now_s() < due) {
		struct pollfd fds[1 + SOURCE_FDS] = { { .fd = c->sigfd, .events = POLLIN } };
		double wait = due - now_s();
		unsigned int n = 1;

		if (c->source->fds)
			n += c->source->fds(c->source, fds + 1);
		if (c->source->tick)
			wait = fmin(wait, c->source->tick(c->source));
		if (poll(fds, n, (int)ceil(fmax(wait, 0) * 1000)) > 0 && fds[0].revents)
			return false;
	}
	return true;
}

static void read_resctrl(struct cmd *c, bool last)
{
	if (c->resctrl)
		resctrl_read(c->resctrl, now_s(), last);
}

static int read_windows(struct cmd *c, struct err *err)
{
	const double begin = now_s();
	int ret = 0;

	if (c->trace) {
		while (!(ret = read_window(c, err)))
			;
		return ret < 0 ? ret : 0;
	}
	c->resctrl = resctrl_open("");
	read_resctrl(c, false);
	for (unsigned long i = 1; i * WINDOW_S <= c->duration_s && !ret; i++) {
		if (!wait_until(c, begin + i * WINDOW_S))
			break;
		ret = read_window(c, err);
		read_resctrl(c, false);
	}
	read_resctrl(c, true);
	return ret < 0 ? ret : 0;
}

static const char *name_of(const struct cmd *c, unsigned int container)
{
	return intern_text(&c->names, container);
}

static bool resctrl_of_suspect(const struct cmd *c, const struct neighbours_pair *p,
			       struct resctrl_figures *out)
{
	return c->resctrl && resctrl_of(c->resctrl, name_of(c, p->suspect), p->complex, out);
}

static void put_resctrl_json(struct json_writer *w, const struct cmd *c,
			     const struct neighbours_pair *p)
{
	static const char *const names[RESCTRL_MEASURES] = { "total", "local", "occupancy" };
	struct resctrl_figures f;

	if (!resctrl_of_suspect(c, p, &f))
		return;
	json_begin_object(w, "resctrl");
	for (int m = 0; m < RESCTRL_MEASURES; m++) {
		if (!f.of[m].readings)
			continue;
		json_begin_object(w, names[m]);
		json_put_double(w, "mean", f.of[m].sum / f.of[m].readings);
		json_put_double(w, "peak", f.of[m].peak);
		json_put_u64(w, "readings", f.of[m].readings);
		json_end(w);
	}
	json_end(w);
}

static void put_resctrl_groups_json(struct json_writer *w, const struct cmd *c)
{
	size_t all, owned;

	if (!c->resctrl)
		return;
	resctrl_groups(c->resctrl, &all, &owned);
	json_begin_object(w, "resctrl");
	json_put_u64(w, "groups", all);
	json_put_u64(w, "owned", owned);
	json_end(w);
}

static void print_json(const struct cmd *c, const struct neighbours_pair *p, size_t n,
		       const struct neighbours_lack *lack)
{
	struct json_writer w = { .f = stdout, .precision = 6 };

	json_begin_object(&w, NULL);
	json_put_text(&w, "source", c->source->info.hist.source);
	json_put_bool(&w, "simulated", c->source->info.hist.simulated);
	json_put_u64(&w, "windows", lack->windows);
	json_put_u64(&w, "containers", lack->containers);
	json_put_u64(&w, "too_few_samples", lack->too_few);
	json_put_u64(&w, "undecided", lack->undecided);
	json_put_known(&w, "windows_needed", lack->more_windows, lack->more_windows);
	json_put_u64(&w, "alike", lack->alike);
	put_resctrl_groups_json(&w, c);
	json_begin_array(&w, "pairs");
	for (size_t i = 0; i < n; i++) {
		json_line_break(&w);
		json_begin_object(&w, NULL);
		json_put_u64(&w, "ccx", p[i].complex);
		json_put_text(&w, "victim", name_of(c, p[i].victim));
		json_put_text(&w, "suspect", name_of(c, p[i].suspect));
		json_put_double(&w, "latency", p[i].latency);
		json_put_double(&w, "baseline", p[i].baseline);
		json_put_double(&w, "share", p[i].share);
		json_put_double(&w, "correlation", p[i].correlation);
		json_put_u64(&w, "lag", p[i].lag);
		json_put_u64(&w, "runs", p[i].runs);
		json_put_u64(&w, "windows_busy", p[i].busy);
		json_put_u64(&w, "windows_quiet", p[i].quiet);
		json_put_double(&w, "chance", p[i].chance);
		json_put_u64(&w, "first", p[i].first);
		json_put_u64(&w, "last", p[i].last);
		put_resctrl_json(&w, c, &p[i]);
		json_end(&w);
	}
	json_finish(&w);
}

static void print_csv(const struct cmd *c, const struct neighbours_pair *p, size_t n)
{
	struct resctrl_figures f;

	printf("ccx,victim,suspect,latency,baseline,share,correlation,lag,runs,windows_busy,"
	       "windows_quiet,chance,first,last,traffic_peak\n");
	for (size_t i = 0; i < n; i++) {
		printf("%u,", p[i].complex);
		utf8_put_csv(stdout, name_of(c, p[i].victim));
		putchar(',');
		utf8_put_csv(stdout, name_of(c, p[i].suspect));
		printf(",%.1f,%.1f,%.4f,%.3f,%u,%u,%u,%u,%.3g,%u,%u,", p[i].latency, p[i].baseline,
		       p[i].share, p[i].correlation, p[i].lag, p[i].runs, p[i].busy, p[i].quiet,
		       p[i].chance, p[i].first, p[i].last);
		if (resctrl_of_suspect(c, &p[i], &f) && f.of[RESCTRL_TOTAL].readings)
			printf("%.0f", f.of[RESCTRL_TOTAL].peak);
		putchar('\n');
	}
}

static int width_of(const struct cmd *c, const struct neighbours_pair *p, size_t n, bool victim)
{
	unsigned int width = 9;

	for (size_t i = 0; i < n; i++) {
		unsigned int w = utf8_width(name_of(c, victim ? p[i].victim : p[i].suspect));

		width = w > width ? w : width;
	}
	return (int)width;
}

static void put_name(const char *name, int width)
{
	printf("%*s  ", width - (int)utf8_put(stdout, name), "");
}

static void print_lack(const struct neighbours_lack *l)
{
	if (l->windows < NEIGHBOURS_KNOWN)
		printf("%u s are too few to judge: at least %u\n", l->windows, NEIGHBOURS_KNOWN);
	if (l->containers < 2)
		printf("%s with samples from L3 or beyond: nobody to compare\n",
		       l->containers ? "1 container" : "no container");
	if (l->too_few)
		printf("%u of %u containers have too few samples to be judged; %.0f times as many "
		       "would do for the first\n",
		       l->too_few, l->containers, ceil(l->more_samples));
	if (l->undecided)
		printf("%u undecided %s: slower, but without enough evidence", l->undecided,
		       l->undecided == 1 ? "pair" : "pairs");
	if (l->undecided && l->more_windows)
		printf("; about %u s more like these would decide", l->more_windows);
	if (l->undecided)
		putchar('\n');
	if (l->alike)
		printf("%u suspects are busy at the same times as another: nobody can say which "
		       "it is\n",
		       l->alike);
}

/* A line of its own: few machines have it. */
static void put_resctrl(const struct cmd *c, const struct neighbours_pair *p)
{
	struct resctrl_figures f;
	char text[128] = "";

	if (resctrl_of_suspect(c, p, &f))
		resctrl_text(&f, text, sizeof(text));
	if (*text)
		printf("      the suspect had up to %s (resctrl)\n", text);
}

#define ALL_COLUMNS 100 /* on a narrower screen some are left out */

static void print_text(const struct cmd *c, const struct neighbours_pair *p, size_t n,
		       const struct neighbours_lack *lack)
{
	const int victim = width_of(c, p, n, true), suspect = width_of(c, p, n, false);
	struct screen screen;
	bool wide;

	screen_of(stdout, &screen);
	wide = screen.width >= ALL_COLUMNS;
	if (c->source->info.hist.simulated)
		printf("SIMULATED samples, not measurements\n");
	if (n)
		printf("%4s  %-*s  %-*s  LATENCY  BASELINE  SLOWER  SHARE  %sEVIDENCE\n", "CCX",
		       victim, "VICTIM", suspect, "SUSPECT", wide ? "CORRELATION  LAG  " : "");
	for (size_t i = 0; i < n; i++) {
		printf("%4u  ", p[i].complex);
		put_name(name_of(c, p[i].victim), victim);
		put_name(name_of(c, p[i].suspect), suspect);
		printf("%7.0f  %8.0f  %4.0f %%  %3.0f %%  ", p[i].latency, p[i].baseline,
		       100 * (p[i].latency / p[i].baseline - 1), 100 * p[i].share);
		if (wide)
			printf("%11.2f  %u s  ", p[i].correlation, p[i].lag);
		printf("%u times busy", p[i].runs);
		if (wide)
			printf(", %u s against %u s", p[i].busy, p[i].quiet);
		putchar('\n');
		put_resctrl(c, &p[i]);
	}
	if (!n)
		printf("no container is shown to slow another one\n");
	print_lack(lack);
	if (!c->trace || !strcmp(c->input.file, "-"))
		return;
	screen_next(stdout, &screen, "report", c->input.file, "--by", "ccx,container,src", NULL);
}

static void print(struct cmd *c)
{
	struct neighbours_lack lack;
	size_t n;
	const struct neighbours_pair *p = neighbours_pairs(c->neighbours, &n);

	neighbours_lack(c->neighbours, &lack);
	if (c->view.format == FORMAT_JSON)
		print_json(c, p, n, &lack);
	else if (c->view.format == FORMAT_CSV)
		print_csv(c, p, n);
	else
		print_text(c, p, n, &lack);
}

/* A collector without these groups is of no use, unless it was asked for. */
static int choose_pins(struct cmd *c, struct err *err)
{
	int ret = source_pinned(c->pin_dir ?: IBS_PIN_DIR, SOURCE_OP, &c->source, err);

	if (ret || !(labels_by(NEIGHBOURS_LABELS) & ~c->source->info.by))
		return ret;
	source_close(c->source);
	c->source = NULL;
	return err_set(err, -ENODATA,
		       "the collector does not group by container and ccx; start it with "
		       "`ibscope serve --by container,ccx,src,op`, or use --own");
}

static int choose_source(struct cmd *c, bool selects, struct err *err)
{
	int ret;

	if (c->input.file) {
		recorded_selection(&c->sampling, &c->replay);
		c->input.strata = RECORDED_WEIGHTS;
		ret = recorded_open(&c->input, &c->trace, err);
		if (!ret)
			c->source = source_recording(c->trace, &c->replay, c->input.file, 1, false);
		return ret;
	}
	if (c->pin_dir || (!selects && !c->own)) {
		ret = choose_pins(c, err);
		if (!ret || c->pin_dir || ret == -ENODATA)
			return ret;
	}
	c->source = source_live(&c->sampling);
	return 0;
}

static int run(struct cmd *c, bool selects, struct err *err)
{
	int ret;

	c->sigfd = signals_open(true, err);
	if (c->sigfd < 0)
		return c->sigfd;
	ret = choose_source(c, selects, err);
	if (ret)
		return ret;
	c->neighbours = neighbours_new(true);
	ret = c->source->open(c->source, NEIGHBOURS_LABELS, err) ?: read_windows(c, err);
	if (ret)
		return ret;
	print(c);
	return fflush(stdout) ? err_set(err, -errno, "writing the output failed") : 0;
}

static int parse(struct cmd *c, int argc, char **argv, bool *selects, struct err *err)
{
	struct option_row view[VIEW_OPTIONS_MAX];
	struct option_row sampling[SAMPLING_ROWS];
	size_t n_sampling = 0;
	struct option_set sets[] = {
		{ "Neighbours", neighbours_options, ARRAY_SIZE(neighbours_options), c },
		view_options(view, "csv json", &hist_columns, &c->view),
		{ "Sampling", sampling, 0, &c->sampling },
		{ "Selection", select_option_rows, select_option_n_rows, &c->sampling.select },
	};
	struct sampling_opts none;
	int ret;

	for (size_t i = 0; i < sampling_n_options; i++)
		if (strcmp(sampling_options[i].name, "by"))
			sampling[n_sampling++] = sampling_options[i];
	sets[2].n = n_sampling;
	sampling_init(&c->sampling);
	memcpy(&none, &c->sampling, sizeof(none));
	ret = options_parse(argc, argv, sets, ARRAY_SIZE(sets), err);
	if (ret == OPTIONS_HELP)
		usage(stdout, sets, ARRAY_SIZE(sets));
	if (ret)
		return ret;
	if (argc - optind > (c->input.file ? 0 : 1))
		return err_set(err, -EINVAL, "unexpected argument '%s'", argv[argc - 1]);
	if (optind < argc)
		c->input.file = argv[optind];
	/* padding is equal, since none is a copy */
	/* NOLINTNEXTLINE(bugprone-suspicious-memory-comparison,cert-exp42-c,cert-flp37-c) */
	*selects = memcmp(&none, &c->sampling, sizeof(none));
	ret = sampling_check(&c->sampling, err);
	if (!ret && sampling_of_fetch(&c->sampling))
		ret = err_set(err, -EINVAL, "-e: neighbours are judged by ibs_op only");
	return ret;
}

int cmd_neighbours(int argc, char **argv)
{
	struct cmd c = { .duration_s = DEFAULT_S, .sigfd = -1 };
	struct err err = { "" };
	bool selects = false;
	int ret = parse(&c, argc, argv, &selects, &err);

	if (ret) {
		if (ret < 0)
			log_error("%s", err.text);
		sampling_free(&c.sampling);
		return ret < 0 ? EXIT_USAGE : EXIT_DONE;
	}
	if (c.sampling.select.explain) {
		ret = c.input.file ? recorded_explain(&c.sampling.select)
				   : sampling_explain(&c.sampling, false);
		sampling_free(&c.sampling);
		return ret;
	}
	ret = run(&c, selects, &err);
	if (ret)
		log_error("%s", err.text);
	ret = !ret ? EXIT_DONE : c.source && c.source->usage ? EXIT_USAGE : EXIT_FAILED;
	source_close(c.source);
	trace_close(c.trace);
	neighbours_free(c.neighbours);
	intern_free(&c.names);
	resctrl_close(c.resctrl);
	sampling_free(&c.sampling);
	if (c.sigfd >= 0)
		close(c.sigfd);
	return ret;
}
