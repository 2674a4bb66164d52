// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* ibscope report and numa: summarize recordings. */
#include "../cmd.h"
#include "../cmd_hist.h"
#include "report_options.h"
#include "base/output_file.h"
#include "html/html_report.h"
#include "live_lines/live_lines.h"
#include "profile/profile.h"
#include "report/report_print.h"
#include "view/pager.h"
#include "base/screen.h"

#include <getopt.h>
#include <unistd.h>

static bool by(const struct report_cmd *c, enum label key)
{
	return report_by(&c->opts, key);
}

/* KEY_* of all keys. */
static unsigned int flags(const struct report_cmd *c)
{
	return report_keys_flags(c->opts.by, c->opts.n_by);
}

static void choose_columns(struct report_cmd *c)
{
	if (!c->view.n_columns)
		c->opts.cpus = c->opts.threads = flags(c) & KEY_ADDRESS;
	if (!c->view.n_columns && !format_is_text(c->view.format)) /* text prints as many as fit */
		c->view.n_columns =
			report_columns_default(&c->opts, c->in.n_parts > 1, c->view.columns);
	for (unsigned int i = 0; i < c->view.n_columns; i++)
		report_count_column(&c->opts, c->view.columns[i]);
	report_count_column(&c->opts, c->order.sort);
}

static void prepare(struct report_cmd *c)
{
	static const enum table_column of_fields[] = { TABLE_SAMPLES, TABLE_LOADS, TABLE_STORES,
						       TABLE_CYCLES,  TABLE_DRAM,  TABLE_HITM,
						       TABLE_P50,     TABLE_P99 };
	static const enum label nodes[] = { LABEL_NODE, LABEL_MEM_NODE };
	struct err err;

	screen_of(stdout, &c->screen);
	if (c->pages)
		c->view.format = FORMAT_CSV;
	c->order.sort = c->view.sort;
	c->order.top = c->view.top;
	c->order.weak_last = format_is_text(c->view.format);
	c->order.fold_few = c->order.weak_last && !c->order.top && !c->order.min_samples;
	if (format_is_text(c->view.format) && !c->order.top)
		c->order.top = recorded_rows(&c->screen);

	c->opts.metric = c->sampling.event[0].metric;
	c->opts.price = c->opts.pages = c->numa;
	for (unsigned int i = 0; c->numa && i < 2; i++)
		if (!by(c, nodes[i]))
			c->opts.by[c->opts.n_by++] = nodes[i];
	if (c->opts.type && !c->opts.n_by) {
		report_keys_parse("field_offset,field_size,field", c->opts.by, &c->opts.n_by, &err);
		c->order.by_key = !c->view.has_sort;
		if (!c->view.n_columns && !format_is_text(c->view.format)) {
			memcpy(c->view.columns, of_fields, sizeof(of_fields));
			c->view.n_columns = ARRAY_SIZE(of_fields);
		}
		c->order.top = c->order.top == recorded_rows(&c->screen) ? 0 : c->order.top;
		c->layout = true;
	}
	if (!c->opts.n_by && c->pprof_path)
		report_keys_parse(sampling_of_fetch(&c->sampling) ? PPROF_FETCH_LABELS
								  : PPROF_LABELS,
				  c->opts.by, &c->opts.n_by, &err);
	else if (!c->opts.n_by)
		c->opts.by[c->opts.n_by++] =
			sampling_of_fetch(&c->sampling) ? LABEL_FETCH : LABEL_SRC;
	if (c->pages && !c->damon) {
		c->opts.by[c->opts.n_by++] = LABEL_PHYS_PAGE;
		c->opts.by[c->opts.n_by++] = LABEL_MEM_NODE;
	}
	c->opts.phys |= c->damon;
	/* a virtual address is meaningful only in its address space */
	if (((!c->opts.phys && flags(c) & KEY_ADDRESS) || by(c, LABEL_RANGE)) &&
	    !by(c, LABEL_PID) && !by(c, LABEL_TID) && !by(c, LABEL_SPACE))
		c->opts.by[c->opts.n_by++] = LABEL_SPACE;
	if (c->in.n_parts > 1 && flags(c) & KEY_OF_HOST && !by(c, LABEL_HOST)) {
		memmove(&c->opts.by[1], c->opts.by, c->opts.n_by++ * sizeof(*c->opts.by));
		c->opts.by[0] = LABEL_HOST;
	}
	c->in.places = c->html_path || flags(c) & KEY_DATA;
	c->in.heap = c->numa || c->html_path || flags(c) & KEY_HEAP;
	c->in.places_last = c->html_path; /* its lines are named at the end */
	choose_columns(c);
}

/* Start the page of a recording, or add another recording to it. */
static void start_html(struct report_cmd *c)
{
	struct err why;
	const struct html_report_opts opts = {
		.info = c->opts.info,
		.tasks = c->opts.tasks,
		.symbols = c->opts.symbols,
		.several = c->in.n_parts > 1,
		.lines_hidden = live_lines_check_selection(&c->sampling.select, &why) != 0,
		.file = c->in.input.n_files > 1 ? "" : recorded_name(&c->in.input),
		.again = c->in.input.n_files > 1 ? NULL : recorded_again(&c->in.input),
		.options = c->in.options,
	};

	c->html = c->html ?: html_report_new(&opts);
	if (opts.several)
		html_report_part(c->html, opts.info, opts.tasks, opts.symbols);
}

static int open_all(struct report_cmd *c, struct err *err)
{
	const bool allocations = c->folds && flags(c) & KEY_HEAP;
	const struct trace_info *info;
	bool chains = c->folds || c->html_path || c->pprof_path;
	bool symbols = chains || c->opts.type || flags(c) & REPORT_NEEDS_SYMBOLS;
	bool tasks = symbols || flags(c) & REPORT_NEEDS_TASKS;
	int ret;

	if (c->opts.type && chains) {
		c->in.usage = true;
		return err_set(err, -EINVAL, "--type excludes --folded, --html and --pprof");
	}
	ret = recorded_start(&c->in, &c->sampling, tasks, symbols, err);
	if (ret)
		return ret;
	info = c->opts.info = c->in.head.info;
	if (c->folds && !allocations && !trace_has_chains(info))
		return err_set(err, -ENODATA, "--folded: %s has no call chains; record with -g",
			       recorded_name(&c->in.input));
	ret = report_check_recorded(c->opts.by, c->opts.n_by, info, recorded_name(&c->in.input),
				    err);
	if (ret)
		return ret;
	c->opts.tasks = c->in.tasks;
	c->opts.symbols = c->in.symbols;
	if (c->numa && tasks_heap(c->in.tasks))
		c->homes = report_homes_new();
	if (c->folds) {
		struct folded_opts opts = {
			.weight = c->weight,
			.metric = c->opts.metric,
			.allocations = allocations,
			.simulated = info->simulated,
			.strata = trace_has_strata(info),
			.tasks = c->in.tasks,
			.symbols = c->in.symbols,
		};

		c->folded = folded_new(&opts);
		return 0;
	}
	if (c->html_path) {
		start_html(c);
		return 0;
	}
	if (c->pprof_path)
		c->pprof = pprof_new(&c->opts);
	if (c->layout && format_is_text(c->view.format)) {
		struct report_opts opts = c->opts;

		memcpy(opts.by, report_layout_keys, sizeof(report_layout_keys));
		opts.n_by = REPORT_LAYOUT_KEYS;
		report_new(&opts, &c->accessors, err);
	}
	return c->pprof_path ? 0 : report_new(&c->opts, &c->report, err);
}

static int check_html(int ret, struct err *err)
{
	return ret ? err_set(err, ret,
			     "--html: too many different samples for one page; select fewer")
		   : 0;
}

static int add_html(struct report_cmd *c, const struct trace_event *ev, struct err *err)
{
	enum report_unit unit;

	return check_html(html_report_add(c->html, ev, report_period(c->in.head.info, ev, &unit)),
			  err);
}

/* Far enough ahead for memory, and near enough that it is still in the caches then. */
#define AHEAD 8

static void expect(const struct report_cmd *c)
{
	struct trace_hint hint;

	if (!(c->html || c->pprof) || !trace_ahead(c->in.trace, AHEAD, &hint))
		return;
	if (c->html)
		html_report_expect(c->html, &hint);
	else
		pprof_expect(c->pprof, &hint);
}

static int add_sample(struct report_cmd *c, const struct trace_event *ev, struct err *err)
{
	expect(c);
	if (c->numa && !trace_accesses_memory(ev))
		return 0;
	if (c->html)
		return add_html(c, ev, err);
	if (c->pprof)
		pprof_add(c->pprof, ev, NULL);
	else if (c->folds)
		folded_add(c->folded, ev);
	else
		report_add(c->report, ev);
	if (c->homes)
		report_homes_add(c->homes, &c->opts, ev);
	if (c->accessors)
		report_add(c->accessors, ev);
	return 0;
}

static int read_all(struct report_cmd *c, struct err *err)
{
	struct trace_event ev;
	int ret, bad;

	while ((ret = recorded_next(&c->in, &ev, err)) > 0) {
		bad = add_sample(c, &ev, err);
		if (bad)
			return bad;
	}
	return ret;
}

/* Read all recordings into one report. */
static int read_parts(struct report_cmd *c, struct err *err)
{
	bool symbols = c->html_path || flags(c) & REPORT_NEEDS_SYMBOLS;
	int ret = 0;

	if (c->folds || c->pprof_path || c->opts.price || c->opts.type) {
		c->in.usage = true;
		return err_set(
			err, -EINVAL,
			"%s works on one recording, not %zu; select one of a merged file as in "
			"FILE#1",
			c->folds	? "--folded"
			: c->pprof_path ? "--pprof"
			: c->opts.type	? "--type"
					: "the price of remote memory (remote_price, numa)",
			c->in.n_parts);
	}
	for (size_t i = 0; i < c->in.n_parts && !ret; i++) {
		if (!recorded_start_part(&c->in, i, &c->sampling, symbols))
			continue;
		c->opts.info = c->in.head.info;
		c->opts.tasks = c->in.tasks;
		c->opts.symbols = c->in.symbols;
		if (flags(c) & KEY_HEAP)
			ret = report_check_recorded(c->opts.by, c->opts.n_by, c->opts.info,
						    c->in.head.file, err);
		if (c->html_path)
			start_html(c);
		else if (c->report)
			report_part(c->report, c->opts.info, c->opts.tasks, c->opts.symbols);
		else
			report_new(&c->opts, &c->report, err);
		ret = ret ?: read_all(c, err);
		if (!ret && c->html)
			html_report_part_end(c->html);
		if (!ret && c->report)
			report_part_end(c->report);
		if (!ret)
			recorded_end_part(&c->in);
	}
	ret = ret ?: recorded_sum(&c->in, err);
	if (!ret && c->html)
		html_report_part(c->html, c->in.head.info, NULL, NULL);
	else if (!ret)
		report_part(c->report, c->in.head.info, NULL, NULL);
	return ret;
}

static int write_html(struct report_cmd *c, struct err *err)
{
	struct output_file out;
	int ret = output_file_begin(&out, "--html", c->html_path, err);

	if (ret)
		return ret;
	ret = html_report_write(c->html, c->in.head.end, c->in.head.fetch_samples,
				output_file_stream(&out));
	return output_file_end(&out, check_html(ret, err), err);
}

static int write_pprof(struct report_cmd *c, struct err *err)
{
	struct output_file out;
	int ret = output_file_begin(&out, "--pprof", c->pprof_path, err);

	if (ret)
		return ret;
	ret = pprof_write(c->pprof, &c->in.head, out.fd, err);
	return output_file_end(&out, ret, err);
}

/* Samples of the other event; numa never shows those of ibs_fetch. */
static bool left_out(const struct report_cmd *c, char *buf, size_t size)
{
	const struct report_head *h = &c->in.head;

	return recorded_left_out(c->opts.metric,
				 sampling_of_fetch(&c->sampling) ? h->op_samples : h->fetch_samples,
				 buf, size) &&
	       !c->numa;
}

/* The lines below the table. */
static void print_below(struct report_cmd *c, const struct report_table *t, FILE *f)
{
	size_t size;
	char *below, text[128];
	FILE *lines = xmemopen(&below, &size);

	report_print_balance(lines, t);
	report_fetches_print(lines, c->report);
	if (c->homes)
		report_homes_print(lines, c->homes, c->in.tasks);
	if (left_out(c, text, sizeof(text)))
		fprintf(lines, "%s\n", text);
	if (c->accessors)
		report_layout_print(lines, c->accessors);
	report_print_strata(lines, &c->in.head, t);
	xmemclose(lines);
	format_lines(f, c->view.format, below);
	free(below);
}

/* A name of the first row, or NULL. */
static const char *name_of(const struct report_cmd *c, const struct report_table *t, enum label l)
{
	for (unsigned int k = 0; k < c->opts.n_by && t->n; k++)
		if (c->opts.by[k] == l)
			return t->rows[0].label[k];
	return NULL;
}

/* The function with the code of the first row, or NULL. */
static const char *function_of(const struct report_cmd *c, const struct report_table *t)
{
	return t->n && t->rows[0].inlined ? t->rows[0].inlined->function
					  : name_of(c, t, LABEL_SYMBOL);
}

/* Suggest what shows more of the first row. */
static void print_next(struct report_cmd *c, const struct report_table *t, FILE *f)
{
	const bool fetch = sampling_of_fetch(&c->sampling);
	const char *file = recorded_again(&c->in.input),
		   *event = fetch ? "--event=ibs_fetch//" : "";
	const char *option = "", *name = "", *symbol = function_of(c, t);
	const struct symbols_opts *files = &c->in.symbols_opts;

	if (c->in.n_parts > 1 || !t->n)
		return;
	for (size_t i = 0; i < TABLE_OPTIONS && !*option; i++) {
		name = name_of(c, t, table_options[i].label);
		if (table_is_selectable(name))
			option = table_options[i].option;
	}
	if (!by(c, LABEL_SYMBOL) && c->numa)
		screen_next(f, &c->screen, "numa", file, "--by", "symbol", option,
			    *option ? name : "", NULL);
	else if (!by(c, LABEL_SYMBOL))
		screen_next(f, &c->screen, "report", file, event, "--by",
			    fetch ? "symbol,fetch" : "symbol,src", option, *option ? name : "",
			    NULL);
	else if (!fetch && symbol && *symbol && !strchr("[-", *symbol) && !files->kallsyms &&
		 !files->debug_dir && !files->debuginfod) /* the code is where the name is from */
		screen_next(f, &c->screen, "annotate", "-i", file, symbol, NULL);
	if (!fetch && !c->numa && !by(c, LABEL_TYPE) && !c->opts.type)
		screen_next(f, &c->screen, "report", file, "--by", "type,field", NULL);
}

static int print(struct report_cmd *c, struct err *err)
{
	struct report_table table;
	struct pager pager = { .f = stdout, .to = stdout };

	if (c->pprof)
		return write_pprof(c, err);
	if (c->html)
		return write_html(c, err);
	if (c->folds) {
		folded_print(stdout, c->folded);
		return pager_close(&pager, err);
	}
	if (c->layout && !report_add_fields(c->report))
		log_warn("--type: no accesses to '%s'; --by type lists the names", c->opts.type);
	report_table(c->report, &c->order, &table);
	if (format_is_text(c->view.format))
		pager_open(&pager, stdout);
	if (c->damon)
		report_regions_print(stdout, &table, c->in.head.info->simulated);
	else
		report_print(pager.f, &c->screen, c->view.format, &c->in.head, &table,
			     c->view.columns, c->view.n_columns);
	if (c->view.format == FORMAT_CSV)
		report_kinds_log(&table.kinds);
	if (format_is_text(c->view.format))
		print_below(c, &table, pager.f);
	if (!c->view.format && !c->damon)
		print_next(c, &table, pager.f);
	report_table_free(&table);
	return pager_close(&pager, err);
}

/* For formats without a head, log the losses that it would show. */
static void show_losses(const struct report_cmd *c)
{
	char text[128];

	if ((!c->report || !format_is_text(c->view.format)) && left_out(c, text, sizeof(text)))
		log_info("%s%s", text, c->html ? ", without --html" : "");
	if (c->folds || c->pprof || c->view.format == FORMAT_CSV)
		recorded_losses(&c->in.head);
}

static int run_all(struct report_cmd *c)
{
	struct err err = { "" };
	bool several;
	const char *path = c->html_path ?: c->pprof_path;
	int ret = path ? output_file_check(path, &err) : 0;

	ret = ret ?: recorded_list(&c->in, &err);
	if (ret)
		return recorded_status(&c->in, ret, &err);
	prepare(c);
	several = c->in.n_parts > 1;
	ret = several ? read_parts(c, &err) : open_all(c, &err);
	ret = ret || several ? ret : read_all(c, &err);
	ret = ret ?: print(c, &err);
	if (ret)
		return recorded_status(&c->in, ret, &err);
	if (several) {
		if (!c->in.head.selected)
			log_warn("no sample is selected");
		show_losses(c);
		return c->in.left_out || !c->in.head.end->whole ? EXIT_FAILED : EXIT_DONE;
	}
	if (!c->in.head.selected)
		recorded_nothing(c->in.replay, c->sampling.event[0].spec.pmu);
	if (c->numa && !c->in.head.info->n_memory)
		log_warn("%s has no memory ranges of the nodes: accesses count as remote by the "
			 "source that the processor reported",
			 c->in.head.file);
	show_losses(c);
	return recorded_status(&c->in, 0, &err);
}

static int run(void *cmd)
{
	struct report_cmd *c = cmd;
	int status = run_all(c);

	report_free(c->report);
	report_free(c->accessors);
	report_homes_free(c->homes);
	folded_free(c->folded);
	html_report_free(c->html);
	pprof_free(c->pprof);
	return status;
}

static int check(void *cmd, struct err *err)
{
	return report_check_options(cmd, err);
}

static int report(int argc, char **argv, bool numa)
{
	struct option_row own[REPORT_OPTIONS_MAX], view[VIEW_OPTIONS_MAX];
	struct report_cmd c = { .numa = numa,
				.in.input = { .takes_several = true,
					      .takes_fetch = !numa,
					      .strata = RECORDED_WEIGHTS },
				.view.sort = TABLE_CURRENCY };
	const struct recorded_command command = {
		.sampling = &c.sampling,
		.in = &c.in,
		.own = report_options(own, &c),
		.view = view_options(view, VIEW_OPTIONS_ALL, &report_columns, &c.view),
		.cmd = &c,
		.symbols = true,
		.inlined = true,
		.usage = numa ? report_numa_usage : report_usage,
		.check = check,
		.run = run,
	};

	return recorded_command(&command, argc, argv);
}

int cmd_report(int argc, char **argv)
{
	return report(argc, argv, false);
}

int cmd_numa(int argc, char **argv)
{
	for (int i = 1; i < argc; i++)
		if (!strcmp(argv[i], "--live") || !strcmp(argv[i], "--"))
			return hist_run(argc, argv, true, NULL);
	return report(argc, argv, true);
}
