// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "cmd.h"
#include "base/choice.h"
#include "base/output_file.h"
#include "base/std.h"
#include "base/options.h"
#include "filter/filter.h"

static const struct cmd {
	const char *name, *synopsis, *help;
	int (*run)(int argc, char **argv);
} cmds[] = {
	{ "doctor", "[OPTIONS]", "check what this CPU, kernel and user can sample", cmd_doctor },
	{ "hist", "[OPTIONS] [INTERVAL [COUNT]] [-- COMMAND]",
	  "print which containers spend cycles on cache misses", cmd_hist },
	{ "top", "[OPTIONS]", "show the same table, live, with the last ten minutes", cmd_top },
	{ "record", "[OPTIONS] [-- COMMAND]", "record single samples to a file or as text",
	  cmd_record },
	{ "report", "[OPTIONS] [FILE]", "summarize a recording", cmd_report },
	{ "diff", "[OPTIONS] A B", "say what changed between two measurements, and why", cmd_diff },
	{ "merge", "-o FILE RECORDING...", "put recordings of several machines into one file",
	  cmd_merge },
	{ "c2c", "[OPTIONS] [FILE]", "find the cache lines of a recording that threads share",
	  cmd_c2c },
	{ "annotate", "[OPTIONS] [FUNCTION | FILE]",
	  "print the instructions of a function and their cost", cmd_annotate },
	{ "numa", "[OPTIONS] [FILE]", "print what memory of other nodes costs", cmd_numa },
	{ "neighbours", "[OPTIONS] [FILE]", "print which container slows which on a shared L3",
	  cmd_neighbours },
	{ "why", "[OPTIONS] [CONTAINER | FILE]",
	  "say what a container waits for now that it did not before", cmd_why },
	{ "dump", "[OPTIONS] [FILE]", "print every sample of a recording", cmd_dump },
	{ "replay", "[OPTIONS] [FILE]", "print what hist would have shown for a recording",
	  cmd_replay },
	{ "export", "--perf-data OUTPUT [FILE]", "write a recording as perf.data", cmd_export },
	{ "serve", "[OPTIONS]", "collect continuously; counters are pinned in bpffs", cmd_serve },
	{ "ctl", "[OPTIONS] VERB", "show or change a running collector", cmd_ctl },
};
#define CMDS (sizeof(cmds) / sizeof(cmds[0]))

static const struct topic {
	const char *name, *help;
	void (*print)(FILE *f);
} topics[] = {
	{ "filter", "terms of --filter", filter_print_terms },
};
#define TOPICS (sizeof(topics) / sizeof(topics[0]))

static void usage(FILE *f)
{
	fprintf(f, "usage: ibscope COMMAND [ARGUMENTS]\n\n"
		   "Memory latency per container, sampled in the kernel with AMD IBS.\n\n"
		   "Commands:\n");
	for (size_t i = 0; i < CMDS; i++)
		fprintf(f, "  %-10s %s\n", cmds[i].name, cmds[i].help);
	fprintf(f, "\nUsage:\n");
	for (size_t i = 0; i < CMDS; i++)
		fprintf(f, "    ibscope %-10s %s\n", cmds[i].name, cmds[i].synopsis);
	fprintf(f, "\nSee also: `ibscope help COMMAND`");
	for (size_t i = 0; i < TOPICS; i++)
		fprintf(f, ", `ibscope help %s` (%s)", topics[i].name, topics[i].help);
	fprintf(f, ", `ibscope --version`.\n");
}

static const struct cmd *find_cmd(const char *name)
{
	for (size_t i = 0; i < CMDS; i++)
		if (!strcmp(name, cmds[i].name))
			return &cmds[i];
	return NULL;
}

static const struct topic *find_topic(const char *name)
{
	for (size_t i = 0; i < TOPICS; i++)
		if (!strcmp(name, topics[i].name))
			return &topics[i];
	return NULL;
}

static int unknown(const char *what, const char *name)
{
	struct suggestion near;

	suggestion_start(&near, name, strlen(name));
	for (size_t i = 0; i < CMDS; i++)
		suggestion_offer(&near, cmds[i].name);
	log_error("unknown %s '%s'%s", what, name,
		  near.best ? suggestion_text(&near) : "; see `ibscope --help`");
	return EXIT_USAGE;
}

static int help(char *name)
{
	char option[] = "--help", *argv[] = { name, option, NULL };
	const struct topic *topic;
	const struct cmd *cmd;

	if (!name) {
		usage(stdout);
		return EXIT_DONE;
	}
	topic = find_topic(name);
	if (topic) {
		topic->print(stdout);
		return EXIT_DONE;
	}
	cmd = find_cmd(name);
	return cmd ? cmd->run(2, argv) : unknown("command or topic", name);
}

static int is_help(const char *arg)
{
	return !strcmp(arg, "-h") || !strcmp(arg, "--help");
}

/* Offers completions to the shell; commands complete their own options. */
static int complete(int argc, char **argv)
{
	static char dash[] = "-";
	const char *word = argc > 1 ? argv[argc - 1] : "";
	const struct cmd *cmd = argc > 2 ? find_cmd(argv[1]) : NULL;
	bool of_help = argc == 3 && !strcmp(argv[1], "help");

	for (int i = 1; i < argc - 1; i++) {
		if (!strcmp(argv[i], "--")) {
			puts(":commands");
			return EXIT_DONE;
		}
	}
	/* not yet the end of options */
	if (!strcmp(word, "--"))
		argv[argc - 1] = dash;
	if (cmd)
		return cmd->run(argc - 1, argv + 1);
	for (size_t i = 0; i < CMDS && (argc <= 2 || of_help); i++)
		complete_offer(word, cmds[i].name, cmds[i].help);
	for (size_t i = 0; i < TOPICS && of_help; i++)
		complete_offer(word, topics[i].name, topics[i].help);
	if (argc <= 2) {
		complete_offer(word, "help", "print the help of a command or topic");
		complete_offer(word, "--help", "print the commands");
		complete_offer(word, "--version", "print the version");
	}
	return EXIT_DONE;
}

static int run(int argc, char **argv)
{
	const struct cmd *cmd;

	if (complete_mode())
		return complete(argc, argv);
	if (argc < 2) {
		usage(stderr);
		return EXIT_USAGE;
	}
	if (is_help(argv[1]) || !strcmp(argv[1], "help"))
		return help(argv[2]);
	if (!strcmp(argv[1], "-V") || !strcmp(argv[1], "--version")) {
		printf("ibscope %s\n", IBSCOPE_VERSION);
		return EXIT_DONE;
	}
	cmd = find_cmd(argv[1]);
	if (!cmd)
		return unknown(*argv[1] == '-' ? "option" : "command", argv[1]);
	/* `ibscope hist --help filter` */
	if (argc == 4 && is_help(argv[2]) && find_topic(argv[3]))
		return help(argv[3]);
	return cmd->run(argc - 1, argv + 1);
}

int main(int argc, char **argv)
{
	json_checked_memory();
	output_start();
	return output_end(run(argc, argv));
}
