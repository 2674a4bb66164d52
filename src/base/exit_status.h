/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Exit statuses of the programs. */
#ifndef IBSCOPE_EXIT_STATUS_H
#define IBSCOPE_EXIT_STATUS_H

enum {
	EXIT_DONE = 0,
	EXIT_FAILED = 1,
	EXIT_USAGE = 2,
	/* as shells report a command that could not be run */
	EXIT_NOT_RUN = 126,
	EXIT_NOT_FOUND = 127,
};

#endif
