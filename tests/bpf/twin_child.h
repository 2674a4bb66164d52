/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Samples in other processes, with names and in cgroups of their own. With children_up() and
 * children_down() around a program's tests. After cmocka.h.
 */
#ifndef IBSCOPE_TESTS_TWIN_CHILD_H
#define IBSCOPE_TESTS_TWIN_CHILD_H

#include <dirent.h>
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cgroup/cgroup.h"
#include "sampler/sampler.h"
#include "twin_model.h"

struct child {
	const char *cgroup; /* directory to enter, or NULL */
	const char *comm;
	const regs_t *regs;
	size_t n;
};

static __u8 *child_outcomes; /* shared with children */
#define CHILD_OUTCOMES 4096

static inline bool enter_cgroup(const char *dir)
{
	char path[640];
	bool ok;
	FILE *f;

	if (snprintf(path, sizeof(path), "%s/cgroup.procs", dir) >= (int)sizeof(path))
		return false;
	f = fopen(path, "we");
	if (!f)
		return false;
	ok = fputs("0", f) >= 0;
	return !fclose(f) && ok;
}

/* No asserts here: a child must not go on with the tests. */
static inline int child_main(struct sampler *s, const struct child *c)
{
	if (c->cgroup && !enter_cgroup(c->cgroup))
		return 2;
	if (c->comm)
		prctl(PR_SET_NAME, c->comm);
	return twin_run_regs(s, c->regs, c->n, child_outcomes, NULL) ? 3 : 0;
}

/* A process made for it runs the samples: their outcomes are in child_outcomes. Return: its pid. */
static inline pid_t run_child(struct sampler *s, const struct child *c)
{
	int status;
	pid_t pid;

	assert_true(c->n <= CHILD_OUTCOMES);
	pid = fork();
	assert_true(pid >= 0);
	if (!pid)
		_exit(child_main(s, c));
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), 0);
	return pid;
}

/* Empty where no cgroup can be made. */
static char cgroup_root[320];

/* A directory below the test's own; its id. */
static inline __u64 make_cgroup(const char *name, char path[640])
{
	struct stat st;

	snprintf(path, 640, "%s/%s", cgroup_root, name);
	assert_true(!mkdir(path, 0755) || errno == EEXIST);
	assert_int_equal(stat(path, &st), 0);
	return st.st_ino;
}

static inline void remove_tree(const char *dir)
{
	struct dirent *e;
	DIR *d = opendir(dir);

	while (d && (e = readdir(d))) {
		char path[640];

		if (e->d_type != DT_DIR || e->d_name[0] == '.')
			continue;
		if (snprintf(path, sizeof(path), "%s/%s", dir, e->d_name) < (int)sizeof(path))
			remove_tree(path);
	}
	if (d)
		closedir(d);
	rmdir(dir);
}

static inline int children_up(void **state)
{
	struct cgroup_fs fs;

	(void)state;
	child_outcomes = mmap(NULL, CHILD_OUTCOMES, PROT_READ | PROT_WRITE,
			      MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (child_outcomes == MAP_FAILED)
		return -1;
	if (cgroup_mode_detect("", &fs, NULL) || !fs.path[0])
		return 0;
	snprintf(cgroup_root, sizeof(cgroup_root), "%s/ibscope-test-%d", fs.path, getpid());
	if (mkdir(cgroup_root, 0755)) {
		print_message("%s: %s\n", cgroup_root, strerror(errno));
		cgroup_root[0] = 0;
	}
	return 0;
}

static inline int children_down(void **state)
{
	(void)state;
	if (cgroup_root[0])
		remove_tree(cgroup_root);
	cgroup_root[0] = 0;
	return 0;
}

/* Skips the test without them. */
static inline void need_cgroups(void)
{
	if (!cgroup_root[0]) {
		print_message("skipped: no cgroup v2 hierarchy in which cgroups can be made\n");
		skip();
	}
}

/* Cgroups within each other, and one whose name begins as another's does. */
static const char *const tree[] = { "a", "a/b", "a/b/c", "a/b/c/d", "a/x", "ab", "z" };
#define TREE_N (sizeof(tree) / sizeof(tree[0]))

static inline void make_tree(void)
{
	char path[640];

	for (size_t i = 0; i < TREE_N; i++)
		make_cgroup(tree[i], path);
}

/* Of one sample that a child makes in that cgroup, which is made if need be. */
static inline enum ibs_outcome outcome_in(struct sampler *s, const char *name, __u32 lat)
{
	struct child c = { .n = 1 };
	char path[640];
	regs_t regs;

	load_miss(regs, DRAM, lat);
	make_cgroup(name, path);
	c.cgroup = path;
	c.regs = &regs;
	run_child(s, &c);
	return child_outcomes[0];
}

/* One with all below it selected, grouped and not. */
static inline void check_filter_cgroup(struct sampler_opts opts)
{
	static const bool in[TREE_N] = { true, true, true, true, true, false, false };
	struct selected_cgroup sel = {};
	char path[640];

	make_tree();
	sel.id = make_cgroup("a", path);
	opts.sel.cgroups = &sel;
	opts.sel.n_cgroups = 1;
	for (int by = 0; by <= IBS_BY_CGROUP; by++) {
		struct sampler *s;

		opts.by = by;
		s = open_twin(&opts);
		/* twice: the second time from what the CPU remembers */
		for (size_t i = 0; i < 2 * TREE_N; i++)
			assert_int_equal(outcome_in(s, tree[i % TREE_N], 300),
					 in[i % TREE_N] ? IBS_OUTCOME_AGGREGATED
							: IBS_OUTCOME_FILTERED_CGROUP);
		close_twin(s);
	}
}

#endif
