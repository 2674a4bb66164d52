// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "naming.h"
#include "naming_private.h"

#include <sys/mman.h>

#define FILES_MAX 1024 /* then the oldest is forgotten, and tried again */

/*
 * By inode: a build-id is what the file says of itself, so a stranger could have the file of another forgotten.
 * Who writes to it changes its time, and nobody can set that.
 */
struct forgone {
	__u64 dev, ino, changed_ns;
	char why[WHY_BYTES], path[256];
};

struct naming_memory {
	__u32 n; /* ever */
	struct forgone v[FILES_MAX];
};

struct naming_memory *naming_memory_new(void)
{
	void *m = mmap(NULL, sizeof(struct naming_memory), PROT_READ | PROT_WRITE,
		       MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	return m == MAP_FAILED ? NULL : m;
}

void naming_memory_free(struct naming_memory *m)
{
	if (m)
		munmap(m, sizeof(*m));
}

static __u64 changed_ns(const struct stat *st)
{
	return st->st_ctim.tv_sec * 1000000000ull + st->st_ctim.tv_nsec;
}

const char *naming_remembered(const struct naming_memory *m, const struct stat *st)
{
	for (__u32 i = 0; m && i < FILES_MAX && i < m->n; i++)
		if (m->v[i].ino == st->st_ino && m->v[i].dev == st->st_dev &&
		    m->v[i].changed_ns == changed_ns(st))
			return m->v[i].why;
	return NULL;
}

void naming_remember(struct naming_memory *m, const struct object *o)
{
	struct forgone *f;

	if (!m || o->fd < 0 || naming_remembered(m, &o->stat))
		return;
	f = &m->v[m->n % FILES_MAX];
	*f = (struct forgone){ o->stat.st_dev, o->stat.st_ino, changed_ns(&o->stat) };
	snprintf(f->why, sizeof(f->why), "%s", o->why);
	snprintf(f->path, sizeof(f->path), "%s", o->path);
	m->n++;
}

unsigned int naming_memory_n(const struct naming_memory *m)
{
	return m ? m->n : 0;
}

bool naming_memory_next(const struct naming_memory *m, __u32 *seen, const char **path,
			const char **why)
{
	if (!m || *seen == m->n)
		return false;
	if (m->n - *seen > FILES_MAX)
		*seen = m->n - FILES_MAX;
	*path = m->v[*seen % FILES_MAX].path;
	*why = m->v[*seen % FILES_MAX].why;
	++*seen;
	return true;
}
