// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "descendants.h"

#include "base/num.h"

#include <dirent.h>

struct process {
	__u32 pid, ppid;
	bool in;
};

struct table {
	struct process *p;
	size_t n, room;
};

/* Parse the parent in /proc/PID/stat: "pid (comm) state ppid ...", where comm may contain ")". */
static int parse_ppid(const char *stat, __u32 *ppid)
{
	const char *p = strrchr(stat, ')');

	return p && sscanf(p, ") %*c %u", ppid) == 1 ? 0 : -EINVAL;
}

static void add(struct table *t, __u32 pid, __u32 ppid)
{
	array_reserve(t->p, t->room, t->n + 1);
	t->p[t->n++] = (struct process){ .pid = pid, .ppid = ppid };
}

static int by_pid(const void *a, const void *b)
{
	const struct process *x = a, *y = b;

	return (x->pid > y->pid) - (x->pid < y->pid);
}

static int read_table(const char *root, struct table *t, struct err *err)
{
	char path[4096], line[1024];
	struct dirent *d;
	DIR *dir;

	snprintf(path, sizeof(path), "%s/proc", root);
	dir = opendir(path);
	if (!dir)
		return err_set(err, -errno, "cannot read %s: %s", path, strerror(errno));
	while ((d = readdir(dir))) {
		__u32 pid = strtoul(d->d_name, NULL, 10), ppid;

		if (!pid)
			continue;
		snprintf(path, sizeof(path), "/proc/%u/stat", pid);
		/* already gone, or not visible to us */
		if (num_read_line(root, path, line, sizeof(line), NULL) || parse_ppid(line, &ppid))
			continue;
		add(t, pid, ppid);
	}
	closedir(dir);
	if (t->n)
		qsort(t->p, t->n, sizeof(*t->p), by_pid);
	return 0;
}

static struct process *find(const struct table *t, __u32 pid)
{
	const struct process key = { .pid = pid };

	return t->n ? bsearch(&key, t->p, t->n, sizeof(*t->p), by_pid) : NULL;
}

int descendants(const char *root, const __u32 *pids, size_t n, int (*found)(void *arg, __u32 pid),
		void *arg, struct err *err)
{
	struct table t = {};
	bool more = true;
	int ret = read_table(root, &t, err);

	for (size_t i = 0; i < n; i++) {
		struct process *p = find(&t, pids[i]);

		if (p)
			p->in = true;
	}
	/* a pass finds at least one generation, and usually all, since pids mostly grow */
	while (!ret && more) {
		more = false;
		for (size_t i = 0; i < t.n && !ret; i++) {
			struct process *parent;

			if (t.p[i].in)
				continue;
			parent = find(&t, t.p[i].ppid);
			if (!parent || !parent->in)
				continue;
			t.p[i].in = more = true;
			ret = found(arg, t.p[i].pid);
		}
	}
	free(t.p);
	return ret;
}

/* For each thread of a process. */
struct thread_visitor {
	const char *root;
	int (*found)(void *arg, __u32 tid);
	void *arg;
};

static int visit_threads(void *arg, __u32 pid)
{
	const struct thread_visitor *v = arg;
	char path[4096];
	struct dirent *d;
	DIR *dir;
	int ret = 0;

	snprintf(path, sizeof(path), "%s/proc/%u/task", v->root, pid);
	dir = opendir(path);
	while (dir && !ret && (d = readdir(dir))) {
		__u32 tid = strtoul(d->d_name, NULL, 10);

		if (tid)
			ret = v->found(v->arg, tid);
	}
	if (dir)
		closedir(dir);
	return ret;
}

/* Add the living children of a thread to @t. */
static void read_children(const char *root, __u32 tid, struct table *t)
{
	char path[4096];
	__u32 pid;
	FILE *f;

	snprintf(path, sizeof(path), "%s/proc/%u/task/%u/children", root, tid, tid);
	f = fopen(path, "re");
	while (f && fscanf(f, "%u", &pid) == 1)
		add(t, pid, 0);
	if (f)
		fclose(f);
}

int descendant_threads(const char *root, const __u32 *tids, size_t n,
		       int (*found)(void *arg, __u32 tid), void *arg, struct err *err)
{
	struct thread_visitor v = { .root = root, .found = found, .arg = arg };
	struct table made = {};
	__u32 *pids;
	int ret = 0;

	for (size_t i = 0; i < n; i++)
		read_children(root, tids[i], &made);
	pids = xcalloc(made.n, sizeof(*pids));
	for (size_t i = 0; i < made.n && !ret; i++) {
		pids[i] = made.p[i].pid;
		ret = visit_threads(&v, pids[i]);
	}
	if (!ret && made.n)
		ret = descendants(root, pids, made.n, visit_threads, &v, err);
	free(pids);
	free(made.p);
	return ret;
}
