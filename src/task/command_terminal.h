/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The terminal that a command shares with us. The command gets a process group of its own, so that ^C
 * reaches us alone. When it reads from the terminal or sets its modes, the kernel stops it, and it is
 * given the terminal, as shells and sudo(8) do; its keys, ^C included, are then its own. The two are
 * stopped and continued together.
 */
#ifndef IBSCOPE_COMMAND_TERMINAL_H
#define IBSCOPE_COMMAND_TERMINAL_H

#include <sys/types.h>

struct command_terminal;

/*
 * From now on, for a child that has not called exec yet; blocks the signals of terminals but SIGINT.
 * Return: NULL without a terminal: the child stays in our process group.
 */
struct command_terminal *command_terminal_open(pid_t pid);

/* Take the terminal back; @t may be NULL. */
void command_terminal_close(struct command_terminal *t);

#endif
