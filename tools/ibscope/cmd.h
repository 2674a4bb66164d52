/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The commands, and how they end. */
#ifndef IBSCOPE_CMD_H
#define IBSCOPE_CMD_H

enum {
	EXIT_DONE = 0,
	EXIT_FAILED = 1,
	EXIT_USAGE = 2,
	/* as a shell has it, of a command that we were to run */
	EXIT_NOT_RUN = 126,
	EXIT_NOT_FOUND = 127,
};

/* argv[0] is the command's name. */
int cmd_doctor(int argc, char **argv);
int cmd_hist(int argc, char **argv);
int cmd_record(int argc, char **argv);
int cmd_dump(int argc, char **argv);
int cmd_replay(int argc, char **argv);
int cmd_report(int argc, char **argv);
int cmd_serve(int argc, char **argv);
int cmd_ctl(int argc, char **argv);
int cmd_bench(int argc, char **argv);

#endif
