/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* How many files are open, to see that none was left. After cmocka.h. */
#ifndef IBSCOPE_TESTS_OPEN_FILES_H
#define IBSCOPE_TESTS_OPEN_FILES_H

#include <dirent.h>

/* Of this process, with the one that counts them. */
static inline int open_files(void)
{
	DIR *d = opendir("/proc/self/fd");
	int n = 0;

	assert_non_null(d);
	while (readdir(d))
		n++;
	closedir(d);
	return n;
}

#endif
