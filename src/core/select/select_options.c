// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "select_options.h"

#include "base/choice.h"
#include "base/num.h"
#include "counts/snapshot.h"

#include <ibscope/maps.h>

static int keep_or_exclude(const char *option, struct err *err)
{
	return err_set(err, -EINVAL,
		       "%s: either list what to keep or, with '!', what to exclude, not both",
		       option);
}

/* "1,2,3", added to those of earlier options; "!1,2" means all others. */
static int add_pids(const char *option, const char *arg, __u32 **pids, struct selected_pids *set,
		    struct err *err)
{
	const struct num_arg num = { .name = option, .min = 1, .max = IBS_PID_MAX };
	bool but = *arg == '!';
	char one[32];

	if (set->n && but != set->but)
		return keep_or_exclude(option, err);
	if (!*pids)
		*pids = xcalloc(SELECT_PIDS_MAX, sizeof(**pids));
	set->but = but;
	set->pids = *pids;
	for (const char *p = arg + but;; p++) {
		size_t len = strcspn(p, ",");
		uint64_t pid;
		int ret;

		snprintf(one, sizeof(one), "%.*s", (int)len, p);
		ret = num_parse(&num, one, &pid, err);
		if (ret)
			return ret;
		if (set->n == SELECT_PIDS_MAX)
			return err_set(err, -E2BIG, "%s: too many; the maximum is %d", option,
				       SELECT_PIDS_MAX);
		(*pids)[set->n++] = pid;
		p += len;
		if (!*p)
			return 0;
	}
}

static int set_pid(void *ctx, const char *arg, struct err *err)
{
	struct select_options *o = ctx;

	return add_pids("-p", arg, &o->pids, &o->sel.processes, err);
}

static int set_tid(void *ctx, const char *arg, struct err *err)
{
	struct select_options *o = ctx;

	if (*arg == '!')
		return err_set(err, -EINVAL,
			       "-t: threads cannot be excluded: list those to keep, or exclude "
			       "with --filter 'tid != ..'");
	return add_pids("-t", arg, &o->tids, &o->sel.threads, err);
}

static int set_comm(void *ctx, const char *arg, struct err *err)
{
	struct select_options *o = ctx;
	struct selection *sel = &o->sel;
	bool but = *arg == '!';

	if (sel->n_comms && but != sel->comms_but)
		return keep_or_exclude("--comm", err);
	if (!o->comms)
		o->comms = xcalloc(IBS_COMMS_MAX, sizeof(*o->comms));
	sel->comms_but = but;
	sel->comms = (const char *const *)o->comms;
	for (const char *p = arg + but;; p++) {
		size_t len = strcspn(p, ",");

		if (!len || len > 15)
			return err_set(err, -EINVAL,
				       "--comm: invalid name '%.*s': a name has 1 to 15 bytes, as "
				       "the kernel cuts longer ones",
				       (int)len, p);
		if (sel->n_comms == IBS_COMMS_MAX)
			return err_set(err, -E2BIG, "--comm: too many names; the maximum is %d",
				       IBS_COMMS_MAX);
		o->comms[sel->n_comms] = xmemdup(p, len + 1);
		o->comms[sel->n_comms++][len] = 0;
		p += len;
		if (!*p)
			return 0;
	}
}

static int add_text(char ***list, size_t *n, const char *arg)
{
	*list = xrealloc(*list, (*n + 1) * sizeof(**list));
	(*list)[(*n)++] = xstrdup(arg);
	return 0;
}

static int set_cgroup(void *ctx, const char *arg, struct err *err)
{
	struct select_options *o = ctx;

	(void)err;
	return add_text(&o->cgroups, &o->n_cgroups, arg);
}

static int set_container(void *ctx, const char *arg, struct err *err)
{
	struct select_options *o = ctx;

	(void)err;
	return add_text(&o->containers, &o->n_containers, arg);
}

/* Parse "a,b" to bits by a table of names. */
static int parse_names(const char *option, const char *what, const char *text,
		       const char *(*name)(unsigned int), unsigned int n, __u32 *bits,
		       struct err *err)
{
	const struct choices c = { option, what, name, n };
	bool but = *text == '!'; /* all others */
	unsigned int list[32], n_list;
	int ret = choice_list_parse(&c, text + but, list, &n_list, err);

	if (ret)
		return ret;
	*bits = 0;
	for (unsigned int i = 0; i < n_list; i++)
		*bits |= 1U << list[i];
	if (but)
		*bits = ~*bits & ((1U << n) - 1);
	if (!*bits)
		return err_set(err, -EINVAL, "%s: '%s' excludes everything", option, text);
	return 0;
}

static int set_src(void *ctx, const char *arg, struct err *err)
{
	struct select_options *o = ctx;

	return parse_names("--src", "source", arg, src_name, IBS_SRC_N, &o->sel.src_mask, err);
}

static int set_op(void *ctx, const char *arg, struct err *err)
{
	struct select_options *o = ctx;

	return parse_names("--op", "op", arg, op_kind_name, IBS_OP_KIND_N, &o->sel.op_mask, err);
}

static int set_explain(void *ctx, const char *arg, struct err *err)
{
	struct select_options *o = ctx;

	(void)err;
	o->explain = true;
	o->machine = arg;
	return 0;
}

static int set_part(void *ctx, unsigned int which, const char *arg, struct err *err)
{
	struct select_options *o = ctx;

	return filter_options_add(&o->filter_options, which, arg, err);
}

#define OPTION_LATENCY(member) \
	OPTION_NUMBER(struct select_options, member, 1, IBS_LAT_MAX), .what = "cycles"

/* clang-format off: a row is a row */
const struct option_row select_option_rows[] = {
	{ "pid", 'p', "PID,..", "only these processes", set_pid },
	{ "tid", 't', "TID,..", "only these threads", set_tid },
	{ "follow", 0, NULL, "with -p and -t: also processes and threads that they start",
	  OPTION_FLAG(struct select_options, sel.follow) },
	{ "comm", 0, "NAME,..", "only threads of these names", set_comm },
	{ "cgroup", 0, "PATH[:MIN],..",
	  "only these cgroups (paths or patterns) and their descendants;\n"
	  "                            MIN: minimum latency of their own",
	  set_cgroup },
	{ "container", 0, "NAME[:MIN],..",
	  "only these containers: name, pattern, first digits of the id,\n"
	  "                            NAMESPACE/POD or NAMESPACE/POD/CONTAINER",
	  set_container },
	{ "src", 0, "NAME,..", "only data from these sources", set_src },
	{ "op", 0, "NAME,..", "only these kinds of op", set_op },
	{ "min-lat", 0, "CYCLES", "minimum latency", OPTION_LATENCY(sel.min_lat) },
	{ "max-lat", 0, "CYCLES", "maximum latency", OPTION_LATENCY(sel.max_lat) },
	{ "user", 0, NULL, "only ops in user space",
	  OPTION_FLAG(struct select_options, filter_options.user) },
	{ "kernel", 0, NULL, "only ops in the kernel",
	  OPTION_FLAG(struct select_options, filter_options.kernel) },
	{ "tlb", 0, "LEVEL,..", "only translations by these: l1, l2 (data TLB), walk",
	  OPTION_WHICH(set_part, FILTER_OPTION_TLB) },
	{ "min-tlb-lat", 0, "CYCLES", "minimum latency of the data TLB refill",
	  OPTION_LATENCY(filter_options.min_tlb_lat) },
	{ "max-tlb-lat", 0, "CYCLES", "maximum latency of the data TLB refill",
	  OPTION_LATENCY(filter_options.max_tlb_lat) },
	{ "page-size", 0, "SIZE,..", "only data in pages of these sizes: 4k, 2m, 1g",
	  OPTION_WHICH(set_part, FILTER_OPTION_PAGE_SIZE) },
	{ "remote-node", 0, "yes|no",
	  "only loads from memory of another node (yes) or of their own node (no)",
	  OPTION_WHICH(set_part, FILTER_OPTION_RMT_NODE) },
	{ "addr", 0, "LO-HI,..",
	  "only data at these addresses: hexadecimal, HI excluded as in\n"
	  "                            /proc/PID/maps; also LO+LENGTH, or a single address",
	  OPTION_WHICH(set_part, FILTER_OPTION_ADDR) },
	{ "ip", 0, "LO-HI,..", "only ops at these addresses",
	  OPTION_WHICH(set_part, FILTER_OPTION_IP) },
	{ "filter", 0, "EXPR",
	  "only samples where EXPR is true, such as\n"
	  "                            'mem_lvl == ram && weight1 > 300'; see --help filter",
	  OPTION_WHICH(set_part, FILTER_OPTION_EXPR) },
	{ "explain", 0, "[=CPU:KERNEL]",
	  "print which stage decides each option, and exit; with a value such as zen5:6.12 for "
	  "another machine",
	  set_explain },
};
/* clang-format on */
const size_t select_option_n_rows = ARRAY_SIZE(select_option_rows);

int select_options_check(struct select_options *o, bool fetch, struct err *err)
{
	const struct selection *sel = &o->sel;
	int ret;

	o->filter_options.fetch = fetch;
	ret = filter_options_compile(&o->filter_options, &o->filter[fetch], err);
	if (ret)
		return ret;
	if (sel->max_lat && sel->min_lat > sel->max_lat)
		return err_set(err, -EINVAL, "--min-lat %u is above --max-lat %u", sel->min_lat,
			       sel->max_lat);
	return 0;
}

static void free_texts(char **texts, size_t n)
{
	for (size_t i = 0; i < n; i++)
		free(texts[i]);
	free(texts);
}

void select_options_free(struct select_options *o)
{
	free(o->pids);
	free(o->tids);
	free_texts(o->comms, o->sel.n_comms);
	free_texts(o->cgroups, o->n_cgroups);
	free_texts(o->containers, o->n_containers);
	filter_free(&o->filter[0]);
	filter_free(&o->filter[1]);
	filter_options_free(&o->filter_options);
	memset(o, 0, sizeof(*o));
}
