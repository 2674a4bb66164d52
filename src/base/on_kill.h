/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What is left to do when a signal ends the program. */
#ifndef IBSCOPE_ON_KILL_H
#define IBSCOPE_ON_KILL_H

/**
 * on_kill() - call a function before a signal ends this process
 * @clean: async-signal-safe; does nothing if there is nothing to do. Registering it again changes nothing.
 *
 * It is called for SIGINT, SIGTERM, SIGHUP, SIGQUIT and SIGXFSZ, unless they are handled or ignored when on_kill() is
 * called, and not in children that did not exec.
 */
void on_kill(void (*clean)(void));

#endif
