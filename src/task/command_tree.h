/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The cgroups of commands as directories: how they are named and locked, and what is done to all in
 * one and below it. Directories are fds.
 */
#ifndef IBSCOPE_COMMAND_TREE_H
#define IBSCOPE_COMMAND_TREE_H

#include <stdint.h>
#include <sys/types.h>

#define COMMAND_TREE_NAME 48 /* bytes that a name takes */

/**
 * command_tree_make() - make a cgroup, named as nothing else is, and lock it
 * @at: the directory that gets it
 * @dir: of the cgroup, which is the caller's to close; that ends the lock
 *
 * Return: 0 with all set; a negative errno of mkdir(), or of opening what was made; -EEXIST or
 * -ENOENT if other instances took every name that was tried. @dir is negative then, or unchanged.
 */
int command_tree_make(int at, char name[COMMAND_TREE_NAME], int *dir, uint64_t *id);

/* Move a process to a cgroup. Return: 0 or a negative errno. */
int command_tree_move(pid_t pid, int to);

/**
 * command_tree_remove() - remove a cgroup with all below it
 * @at: the directory that has it, as @name
 * @dir: the cgroup
 * @to: the cgroup that gets processes which are still there; those that are about to die are waited
 *      for, two seconds at most
 *
 * What another instance has locked below it stays, and so does the cgroup.
 *
 * Return: 0 when it is gone, or a negative errno.
 */
int command_tree_remove(int at, const char *name, int dir, int to);

/**
 * command_tree_sweep() - remove cgroups of instances that crashed or were killed
 * @mount: where cgroup v2 is mounted
 *
 * Processes in them are moved to the parent first; if it does not take them, they and their cgroup
 * stay. An instance holds a lock on its cgroup's directory as long as it lives, in whatever pid
 * namespace. Reads all directories: some 15 us a cgroup.
 *
 * Return: how many were removed, or a negative errno.
 */
int command_tree_sweep(const char *mount);

#endif
