/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* A cgroup tree on plain directories, whose inode numbers do as ids. After cmocka.h. */
#ifndef IBSCOPE_TESTS_CGROUP_TREE_H
#define IBSCOPE_TESTS_CGROUP_TREE_H

#include "cgroup/cgroup.h"
#include "base/err.h"
#include "tree.h"

#define FS "/sys/fs/cgroup"

/* Two at a time. */
static inline const char *at(const char *path)
{
	static char full[2][512];
	static int i;

	i = !i;
	snprintf(full[i], sizeof(full[i]), "%s" FS "%s", root, path);
	return full[i];
}

static inline uint64_t ino(const char *path)
{
	struct stat st;

	assert_int_equal(stat(at(path), &st), 0);
	return st.st_ino;
}

static inline void make(const char *path)
{
	assert_int_equal(mkdir(at(path), 0755), 0);
}

static inline struct cgroup_tree *open_tree(void)
{
	struct cgroup_tree *t = NULL;
	struct err e = { "" };

	if (cgroup_tree_open(root, &t, &e))
		fail_msg("%s", e.text);
	return t;
}

static inline struct cgroup_tree *usual(void)
{
	put_file(FS "/cgroup.controllers", "cpu\n");
	put_dir(FS "/a/b/c/");
	put_dir(FS "/a/x.service/");
	put_dir(FS "/system.slice/docker-0.scope/");
	put_dir(FS "/dev-disk\\x2dby.mount/");
	return open_tree();
}

static inline void check_path(struct cgroup_tree *t, uint64_t id, const char *path)
{
	const char *have = cgroup_tree_path(t, id);

	if (!path)
		assert_null(have);
	else if (!have)
		fail_msg("%s is not known", path);
	else
		assert_string_equal(have, path);
}

#endif
