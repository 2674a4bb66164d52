// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "cmd.h"
#include "err.h"

#include <stdio.h>
#include <string.h>

static const struct cmd {
	const char *name, *synopsis, *help;
	int (*run)(int argc, char **argv);
} cmds[] = {
	{ "doctor", "[--json]", "what this CPU, kernel and privilege allow", cmd_doctor },
	{ "hist", "[options] [interval [count]]", "latency histograms and percentiles", cmd_hist },
	{ "record", "[options] [-- COMMAND]", "single samples, to a file or as text", cmd_record },
	{ "dump", "FILE [options]", "every sample of a recording", cmd_dump },
	{ "report", "FILE [options]", "a recording in summary", cmd_report },
	{ "replay", "FILE [options]", "what hist would have shown of a recording", cmd_replay },
	{ "serve", "[options]", "collect always; counters are pinned for an exporter", cmd_serve },
	{ "ctl", "[options] VERB", "ask a collector how it is, and tell it what to do", cmd_ctl },
	{ "bench", "[options]", "what samples and readings cost here, perf beside it", cmd_bench },
};
#define CMDS (sizeof(cmds) / sizeof(cmds[0]))

static void usage(FILE *f)
{
	fprintf(f, "usage: ibscope COMMAND [ARGUMENTS]\n\n"
		   "Memory latency from AMD Instruction-Based Sampling, per container, in the "
		   "kernel.\n\n");
	for (size_t i = 0; i < CMDS; i++)
		fprintf(f, "  %-8s %-30s %s\n", cmds[i].name, cmds[i].synopsis, cmds[i].help);
	fprintf(f, "\n`ibscope COMMAND --help` tells more.\n");
}

int main(int argc, char **argv)
{
	if (argc < 2) {
		usage(stderr);
		return EXIT_USAGE;
	}
	if (!strcmp(argv[1], "-h") || !strcmp(argv[1], "--help") || !strcmp(argv[1], "help")) {
		usage(stdout);
		return EXIT_DONE;
	}
	if (!strcmp(argv[1], "-V") || !strcmp(argv[1], "--version")) {
		printf("ibscope %s\n", IBSCOPE_VERSION);
		return EXIT_DONE;
	}
	for (size_t i = 0; i < CMDS; i++)
		if (!strcmp(argv[1], cmds[i].name))
			return cmds[i].run(argc - 1, argv + 1);
	log_error("there is no command '%s'; see `ibscope --help`", argv[1]);
	return EXIT_USAGE;
}
