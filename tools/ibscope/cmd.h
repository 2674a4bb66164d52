/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The commands. */
#ifndef IBSCOPE_CMD_H
#define IBSCOPE_CMD_H

#include "base/err.h"
#include "base/exit_status.h"

#include <stdbool.h>

/* argv[0] is the command's name. */
int cmd_doctor(int argc, char **argv);
int cmd_hist(int argc, char **argv);
int cmd_top(int argc, char **argv);
int cmd_record(int argc, char **argv);
int cmd_dump(int argc, char **argv);
int cmd_replay(int argc, char **argv);
int cmd_report(int argc, char **argv);
int cmd_diff(int argc, char **argv);
int cmd_merge(int argc, char **argv);
int cmd_c2c(int argc, char **argv);
int cmd_numa(int argc, char **argv);
int cmd_annotate(int argc, char **argv);
int cmd_neighbours(int argc, char **argv);
int cmd_why(int argc, char **argv);

int cmd_export(int argc, char **argv);
int cmd_serve(int argc, char **argv);
int cmd_ctl(int argc, char **argv);

/* The time of --at, in seconds since 1970; a time of day is the last such. Return: 0 or -EINVAL with @err. */
int cmd_time_parse(const char *arg, double *at_s, struct err *err);

#endif
