// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "report_usage.h"

#include "report/report.h"

void report_usage(FILE *f, const struct option_set *sets, size_t n)
{
	fprintf(f,
		"usage: ibscope report [options] [FILE ...]\n\n"
		"Add up the samples of a recording, of `ibscope record` or of `perf record "
		"--raw-samples`, by what\nthey have in common, and show how long they waited. '-' "
		"is standard input.\n\n"
		"  ibscope report --src dram FILE             the latency of DRAM: mean and "
		"percentiles\n"
		"  ibscope report --by symbol,src --top 20 FILE\n"
		"  ibscope report --by variable,offset FILE       what the data is\n"
		"  ibscope report --by type,field FILE            structs and their fields\n"
		"  ibscope report --by line --sort threads FILE   cache lines that threads "
		"share\n");
	options_help(f, sets, n);
	report_terms(f);
	fprintf(f,
		"\nPercentiles are upper edges of their buckets, at most 1/8 too high; '-' where "
		"the samples are\ntoo few, or a thing is not known. Exit status: 0 done, 1 "
		"failed or the recording is incomplete;\n2 wrong usage.\n");
}

void report_numa_usage(FILE *f, const struct option_set *sets, size_t n)
{
	fprintf(f,
		"usage: ibscope numa [options] [FILE]\n"
		"       ibscope numa --live [options] [INTERVAL [COUNT]] [-- COMMAND ...]\n\n"
		"Add up the loads and stores of a recording by the NUMA nodes of CPU and memory, "
		"and show what remote\nmemory costs above local memory. '-' is standard input.\n\n"
		"  ibscope numa FILE\n"
		"  ibscope numa --live 5                 the running system, every 5 seconds; see "
		"--live --help\n"
		"  ibscope numa -- COMMAND               a command\n"
		"  ibscope numa --by container FILE\n");
	options_help(f, sets, n);
	report_terms(f);
	fprintf(f,
		"\nExit status: 0 done, 1 failed or the recording is incomplete; 2 wrong usage.\n");
}
