// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * What a selection costs before a sample is taken: the program is loaded with each, attached to
 * nothing, and the kernel asked how many instructions its verifier left. A selection that is not
 * made must leave none; the first column of figures shows it.
 *
 *   bench-selections [--json]
 */
#include "filter/filter_options.h"
#include "machine/kernel.h"
#include "sampler/sampler.h"

#include <stdio.h>
#include <string.h>
#include <sys/utsname.h>

static const struct selected_cgroup a_cgroup = { .id = 2 };
static const __u32 a_pid = 1;
static const char *const a_comm[] = { "a" };

/* With a filter: what the option is given. --user and --min-tlb-lat are flags of their own. */
static const struct row {
	const char *name;
	struct selection sel;
	__u32 by;
	const char *controller;
	enum filter_option option;
	const char *arg;
} rows[] = {
	{ "nothing, all in one" },
	{ "-p PID", { .processes = { .pids = &a_pid, .n = 1 } } },
	{ "-t TID", { .threads = { .pids = &a_pid, .n = 1 } } },
	{ "--comm NAME", { .comms = a_comm, .n_comms = 1 } },
	{ "--cgroup PATH", { .cgroups = &a_cgroup, .n_cgroups = 1 } },
	{ "--cgroup PATH, v1", { .cgroups = &a_cgroup, .n_cgroups = 1 }, 0, "memory" },
	{ "--min-lat 300", { .min_lat = 300 } },
	{ "--op load", { .op_mask = 1 << IBS_OP_KIND_LOAD } },
	{ "--src dram", { .src_mask = 1 << IBS_SRC_DRAM } },
	{ "--user", .option = FILTER_OPTION_MODE, .arg = "" },
	{ "--tlb walk", .option = FILTER_OPTION_TLB, .arg = "walk" },
	{ "--tlb l1,walk", .option = FILTER_OPTION_TLB, .arg = "l1,walk" },
	{ "--min-tlb-lat 100", .option = FILTER_OPTION_TLB_LAT, .arg = "" },
	{ "--page-size 4k", .option = FILTER_OPTION_PAGE_SIZE, .arg = "4k" },
	{ "--remote-node yes", .option = FILTER_OPTION_RMT_NODE, .arg = "yes" },
	{ "--addr LO-HI", .option = FILTER_OPTION_ADDR, .arg = "1000-2000" },
	{ "--addr, 8 ranges", .option = FILTER_OPTION_ADDR,
	  .arg = "10-11,20-21,30-31,40-41,50-51,60-61,70-71,80-81" },
	{ "--ip LO-HI", .option = FILTER_OPTION_IP, .arg = "1000-2000" },
	{ "--filter 'tag_to_ret > 300'", .option = FILTER_OPTION_EXPR, .arg = "tag_to_ret > 300" },
	{ "--filter 'mem_lvl == ram'", .option = FILTER_OPTION_EXPR, .arg = "mem_lvl == ram" },
	{ "--filter, 3 of data_src", .option = FILTER_OPTION_EXPR,
	  .arg = "data_src == dram || data_src == cxl || data_src == io" },
	{ "--by cgroup", .by = IBS_BY_CGROUP },
	{ "--by cgroup, v1", .by = IBS_BY_CGROUP, .controller = "memory" },
	{ "--by pid", .by = IBS_BY_PID },
	{ "--by mode", .by = IBS_BY_MODE },
	{ "--by node", .by = IBS_BY_NODE },
	{ "--by mem_node", .by = IBS_BY_MEM_NODE },
	{ "--by cgroup,pid,comm,cpu,mode",
	  .by = IBS_BY_CGROUP | IBS_BY_PID | IBS_BY_COMM | IBS_BY_CPU | IBS_BY_MODE },
};
#define ROWS (sizeof(rows) / sizeof(rows[0]))

static int add_filter(const struct row *row, struct filter *filter, struct err *err)
{
	struct filter_options opts = {};
	int ret = 0;

	if (row->option == FILTER_OPTION_MODE)
		opts.user = true;
	else if (row->option == FILTER_OPTION_TLB_LAT)
		opts.min_tlb_lat = 100;
	else
		ret = filter_options_add(&opts, row->option, row->arg, err);
	ret = ret ?: filter_options_compile(&opts, filter, err);
	filter_options_free(&opts);
	return ret;
}

static int measure(const struct row *row, bool copy, struct sampler_prog_size *out, struct err *err)
{
	struct sampler_opts opts = {
		.source = SAMPLER_LOAD,
		.ibs = { .caps = 0xbff }, /* Zen 4 */
		.sel = row->sel,
		.by = row->by,
		.cgroup_controller = row->controller,
		.probe_read = copy,
	};
	struct filter filter = {};
	struct sampler *s;
	int ret = 0;

	if (row->arg) {
		ret = add_filter(row, &filter, err);
		opts.sel.filter = &filter.prog;
	}
	ret = ret ?: sampler_open(&opts, &s, err);
	if (!ret) {
		ret = sampler_prog_size(s, out, err);
		sampler_close(s);
	}
	filter_free(&filter);
	return ret;
}

int main(int argc, char **argv)
{
	bool json = argc > 1 && !strcmp(argv[1], "--json");
	struct sampler_prog_size none[2] = {};
	struct utsname u;

	uname(&u);
	if (!json)
		printf("Linux %s: instructions that the verifier leaves of the program\n"
		       "%-32s %21s   %21s\n%-32s %8s %12s   %8s %12s\n",
		       u.release, "", "registers in place", "by copy", "selection", "all",
		       "above none", "all", "above none");
	for (size_t i = 0; i < ROWS; i++) {
		struct sampler_prog_size size[2];

		if (rows[i].controller && kernel_cgroup_subsys(rows[i].controller, NULL) < 0)
			continue;
		for (int copy = 0; copy < 2; copy++) {
			struct err err = { "" };

			if (measure(&rows[i], copy, &size[copy], &err)) {
				fprintf(stderr, "%s: %s\n", rows[i].name, err.text);
				return 1;
			}
		}
		if (!i)
			memcpy(none, size, sizeof(none));
		if (json) {
			printf("{\"selection\":\"%s\",\"kernel\":\"%s\"", rows[i].name, u.release);
			for (int copy = 0; copy < 2; copy++)
				printf(",\"%s\":{\"insns\":%u,\"above_none\":%d,\"bytes\":%u,"
				       "\"verified\":%u}",
				       copy ? "copy" : "direct", size[copy].insns,
				       (int)(size[copy].insns - none[copy].insns), size[copy].bytes,
				       size[copy].verified);
			puts("}");
			continue;
		}
		printf("%-32s %8u %12d   %8u %12d\n", rows[i].name, size[0].insns,
		       (int)(size[0].insns - none[0].insns), size[1].insns,
		       (int)(size[1].insns - none[1].insns));
	}
	return 0;
}
