/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The terminal that a command shares with us. The command gets its own process group, so that ^C
 * reaches only us. When it reads from the terminal or sets its modes, the kernel stops it, and we
 * lend it the terminal, as shells and sudo(8) do; then it gets the terminal's signals, including
 * ^C. Both are stopped and continued together.
 */
#ifndef IBSCOPE_COMMAND_TERMINAL_H
#define IBSCOPE_COMMAND_TERMINAL_H

#include <sys/types.h>

struct command_terminal;

/*
 * Start sharing the terminal with a child that has not called exec yet; blocks terminal signals
 * except SIGINT. Return: NULL without a terminal: the child stays in our process group.
 */
struct command_terminal *command_terminal_open(pid_t pid);

/* Take the terminal back; @t may be NULL. */
void command_terminal_close(struct command_terminal *t);

#endif
