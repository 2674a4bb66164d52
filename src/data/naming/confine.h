/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Gives up, for the rest of this process, everything but reading open files and one socket. */
#ifndef IBSCOPE_CONFINE_H
#define IBSCOPE_CONFINE_H

#include <signal.h>

/**
 * confine() - no other user's files, no capabilities, no new privileges, few system calls, limited resources
 * @on_open: called instead of the system call openat()
 *
 * Any other system call that reading files does not need kills the process.
 *
 * Return: 0, or a negative errno with which nobody should go on.
 */
int confine(void (*on_open)(int signal, siginfo_t *info, void *context));

#endif
