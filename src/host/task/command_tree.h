/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The cgroups of commands as directories (fds): naming, locking, operations on whole trees. */
#ifndef IBSCOPE_COMMAND_TREE_H
#define IBSCOPE_COMMAND_TREE_H

#include <stdint.h>
#include <sys/types.h>

#define COMMAND_TREE_NAME 48 /* size of a name */

/**
 * command_tree_make() - create a cgroup with a unique name, and lock it
 * @at: its parent directory
 * @dir: set to an fd of the cgroup; closing it releases the lock
 *
 * Return: 0 with all set; a negative errno of mkdir(), or of opening the new cgroup; -EEXIST or
 * -ENOENT if other instances took every name that was tried. @dir is negative then, or unchanged.
 */
int command_tree_make(int at, char name[COMMAND_TREE_NAME], int *dir, uint64_t *id);

/* Move a process to a cgroup. Return: 0 or a negative errno. */
int command_tree_move(pid_t pid, int to);

/**
 * command_tree_remove() - remove a cgroup and everything below it
 * @at: its parent directory, where it is called @name
 * @dir: the cgroup
 * @to: cgroup to move remaining processes to; dying ones are waited for, two seconds at most
 *
 * Whatever another instance has locked below it stays, and so does the cgroup.
 *
 * Return: 0 when it is gone, or a negative errno.
 */
int command_tree_remove(int at, const char *name, int dir, int to);

/**
 * command_tree_sweep() - remove cgroups of instances that crashed or were killed
 * @mount: mount point of cgroup v2
 *
 * Moves their processes to the parent first; if that fails, they and their cgroup stay. A running
 * instance holds a lock on its cgroup's directory, whatever its pid namespace. Reads all
 * directories: some 15 us per cgroup.
 *
 * Return: the number removed, or a negative errno.
 */
int command_tree_sweep(const char *mount);

#endif
