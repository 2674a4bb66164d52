/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Opens files that strangers named, so that a container's path is a file of that container. */
#ifndef IBSCOPE_NAMING_FILES_H
#define IBSCOPE_NAMING_FILES_H

#include "base/std.h"

#include <sys/types.h>

#define FILE_BYTES_MAX (2ULL << 30)

/* What a process sees as "/". */
struct naming_root {
	__u64 id;  /* of equal roots equal; 0: that of this process */
	pid_t pid; /* of a living process with it; 0: none is known */
};

/**
 * file_root() - the root directory of a process
 * @started_before: CLOCK_MONOTONIC; a process that started later is another one with its pid
 *
 * Return: false if the process has exited, or this one may not see its root.
 */
bool file_root(pid_t pid, __u64 started_before, struct naming_root *out);

/**
 * file_open() - open an ELF file
 * @root: NULL, or where paths begin and links end
 *
 * Return: an fd, or a negative errno: -EINVAL not a regular file, -ENOEXEC not an ELF file,
 * -EFBIG larger than FILE_BYTES_MAX.
 */
int file_open(const struct naming_root *root, const char *path);

/**
 * file_open_code_list() - open what a process notes of code it generates, below its root and with the pid that it has there
 * @alive: else the number must be free now, and the file one of the user who asks
 * @dump:  path of a file jit-PID.dump that the process mapped; NULL: /tmp/perf-PID.map
 * @path:  set to its path, @size bytes
 *
 * It must be a regular file of the process's user, or root's. Return: as file_open(), -EPERM: of another user, -ESRCH: no
 * such process, -ENOEXEC: not a dump of the process, -EFBIG: a list larger than CODE_MAP_BYTES.
 */
int file_open_code_list(const struct naming_root *root, pid_t pid, bool alive, const char *dump,
			char *path, size_t size);

/* A copy of the [vdso] of this process, which all processes of this kernel have. Return: as file_open(). */
int file_open_vdso(void);

/* A debug file from the servers of DEBUGINFOD_URLS. @id: hexadecimal. Return: as file_open(). */
int file_fetch(const char *id);

#endif
