// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "report_options.h"

static int set_by(void *ctx, const char *arg, struct err *err)
{
	struct report_cmd *c = ctx;
	int ret = report_keys_parse(arg, c->opts.by, &c->opts.n_by, err);

	if (!ret)
		c->in.input.asks_fetch |=
			report_keys_flags(c->opts.by, c->opts.n_by) & KEY_OF_FETCH;
	return ret;
}

static int set_output(void *ctx, const char *arg, struct err *err)
{
	struct report_cmd *c = ctx;

	c->pages = true;
	c->damon = !strcmp(arg, "damon");
	if (!c->damon && strcmp(arg, "csv") != 0)
		return err_set(err, -EINVAL, "--format: '%s' must be damon or csv", arg);
	c->n_formats++;
	return 0;
}

static int set_folded(void *ctx, const char *arg, struct err *err)
{
	struct report_cmd *c = ctx;

	if (!strcmp(arg, "samples"))
		c->weight = FOLDED_SAMPLES;
	else if (!strcmp(arg, "total"))
		c->weight = FOLDED_TOTAL;
	else
		return err_set(err, -EINVAL, "--folded: '%s' must be samples or total", arg);
	c->folds = true;
	c->n_formats++;
	return 0;
}

/* clang-format off: a row is a row */
static const struct option_row all[] = {
	{ "by", 0, "KEY,..",
	  "group by these keys; default src, or fetch for ibs_fetch; numa adds node,mem_node",
	  set_by },
	{ "limit", 0, "N", "the same as --top",
	  OPTION_NUMBER(struct report_cmd, view.top, 1, 1 << 30), .what = "rows" },
	{ "min-samples", 0, "N", "print only rows with at least N samples",
	  OPTION_NUMBER(struct report_cmd, order.min_samples, 0, UINT64_MAX) },
	{ "type", 0, "NAME",
	  "print the layout of a type, as named by --by type: all fields, sorted by offset",
	  OPTION_WORD(struct report_cmd, opts.type) },
	{ "phys", 0, NULL, "use physical addresses for pages and lines",
	  OPTION_FLAG(struct report_cmd, opts.phys) },
	{ "format", 0, "damon|csv",
	  "with --by page: print ranges of physical pages for damo; or CSV with both addresses and "
	  "the node",
	  set_output },
	{ "folded", 0, "samples|total",
	  "print call chains for flame graphs, weighted by samples or by total latency; with --by "
	  "allocation, those that allocated the data",
	  set_folded },
	{ "html", 0, "FILE", "write one self-contained HTML file with linked views",
	  OPTION_WORD(struct report_cmd, html_path) },
	{ "pprof", 0, "FILE", "write a profile for pprof, with the keys of --by as labels",
	  OPTION_WORD(struct report_cmd, pprof_path) },
};
/* clang-format on */
_Static_assert(ARRAY_SIZE(all) <= REPORT_OPTIONS_MAX, "room for all");

struct option_set report_options(struct option_row out[REPORT_OPTIONS_MAX], struct report_cmd *c)
{
	static const char *const not_of_numa[] = { "limit", "type",  "folded",
						   "html",  "pprof", "format" };
	static const struct option_row live = {
		"live", 0, NULL,
		"sample now instead of reading a recording; takes the options of hist",
		OPTION_FLAG(struct report_cmd, live)
	};
	struct option_set set = { "Report", out, 0, c };

	for (size_t i = 0; i < ARRAY_SIZE(all); i++) {
		size_t k = 0;

		while (c->numa && k < ARRAY_SIZE(not_of_numa) &&
		       strcmp(all[i].name, not_of_numa[k]))
			k++;
		if (k == (c->numa ? ARRAY_SIZE(not_of_numa) : 0))
			out[set.n++] = all[i];
	}
	if (c->numa)
		out[set.n++] = live;
	return set;
}

#define FORMAT_LISTED(id, name, ...) "--" name ", "

int report_check_options(const struct report_cmd *c, struct err *err)
{
	const struct view_opts *v = &c->view;

	if (!!v->format + c->n_formats + !!c->html_path + !!c->pprof_path > 1)
		return err_set(
			err, -EINVAL,
			FORMAT_TABLE(
				FORMAT_LISTED) "--format, --folded, --html and --pprof exclude "
					       "each other");
	if (c->html_path && sampling_of_fetch(&c->sampling))
		return err_set(err, -EINVAL,
			       "--html: the page shows samples of ibs_op only; leave out --html");
	if (c->html_path && (c->opts.n_by || v->has_sort || v->n_columns || v->top ||
			     c->order.min_samples || c->opts.type))
		return err_set(err, -EINVAL,
			       "--html has fixed views and excludes --by, --sort, --columns, "
			       "--top, --min-samples and --type");
	if (c->opts.type && sampling_of_fetch(&c->sampling))
		return err_set(err, -EINVAL, "--type: samples of ibs_fetch have no type");
	if (c->pages && (c->opts.n_by != 1 || c->opts.by[0] != LABEL_PAGE))
		return err_set(err, -EINVAL, "--format prints pages: use it with --by page alone");
	return report_keys_check(c->opts.by, c->opts.n_by, sampling_of_fetch(&c->sampling), err);
}

void report_usage(FILE *f, const struct option_set *sets, size_t n)
{
	fprintf(f, "usage: ibscope report [options] [FILE ...]\n\n"
		   "Group the samples of a recording of `ibscope record` or `perf record "
		   "--raw-samples`, and print the\nlatencies of each group. '-' is standard "
		   "input.\n\n"
		   "  ibscope report --src dram FILE                 latency of DRAM\n"
		   "  ibscope report --by symbol,src --top 20 FILE   functions and their sources\n"
		   "  ibscope report --by variable,offset FILE       variables\n"
		   "  ibscope report --by type,field FILE            structs and their fields\n"
		   "  ibscope report --by line --sort threads FILE   cache lines that threads "
		   "share; see also c2c\n"
		   "  ibscope report --tlb walk --metric tlb_refill_lat --by mapping,page_size "
		   "FILE\n");
	options_help(f, sets, n);
	report_terms(f);
	fprintf(f,
		"\nPercentiles are upper edges of their buckets, at most 1/8 too high; '-' means "
		"too few samples\nor unknown. Exit status: 0 done, 1 failed or the recording is "
		"incomplete, 2 wrong usage.\n");
}

void report_numa_usage(FILE *f, const struct option_set *sets, size_t n)
{
	fprintf(f,
		"usage: ibscope numa [options] [FILE]\n"
		"       ibscope numa --live [options] [INTERVAL [COUNT]] [-- COMMAND ...]\n\n"
		"Add up the loads and stores of a recording by the NUMA nodes of CPU and memory, "
		"and print what\nremote memory costs compared with local memory. '-' is standard "
		"input.\n\n"
		"  ibscope numa FILE\n"
		"  ibscope numa --live 5                 the running system, every 5 seconds; see "
		"--live --help\n"
		"  ibscope numa -- COMMAND               a command\n"
		"  ibscope numa --by container FILE\n");
	options_help(f, sets, n);
	report_terms(f);
	fprintf(f,
		"\nExit status: 0 done, 1 failed or the recording is incomplete, 2 wrong usage.\n");
}
