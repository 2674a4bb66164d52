// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "naming.h"
#include "naming_private.h"

#include "base/clock.h"

#include <math.h>
#include <sys/mman.h>

#define FILES_MAX 1024	/* then the oldest is forgotten, and tried again */
#define COSTS	  4096	/* files that take long; one may take the place of another */
#define NAMES	  32768 /* of them */

/*
 * By inode: a build-id is what the file says of itself, so a stranger could have the file of another forgotten.
 * Who writes to it changes its time, and nobody can set that.
 */
struct forgone {
	__u64 dev, ino, changed_ns;
	char why[WHY_BYTES], path[256];
};

/* A file as someone sees it: its names may come from other files that are found below that root. */
struct identity {
	__u64 dev, ino, changed_ns, root;
};

struct cost {
	struct identity file;
	double s;
};

struct kept_name {
	struct identity file; /* ino: 0: there is none */
	__u64 offset;
	__u32 build_id_len; /* of what was mapped, which is another file if it was replaced */
	unsigned char build_id[20];
	char text
		[448]; /* the name, and behind it the one that the linker has, or ""; "": without a name */
};

struct naming_memory {
	__u32 n; /* ever */
	struct forgone v[FILES_MAX];
	struct cost costs[COSTS];
	struct kept_name names[NAMES];
	double allowance_s, allowed_s; /* the latter by now_s(); 0: never */
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

static struct identity identity_of(const struct object *o)
{
	return (struct identity){ o->stat.st_dev, o->stat.st_ino, changed_ns(&o->stat),
				  o->root.id };
}

static bool is_same(const struct identity *a, const struct identity *b)
{
	return a->ino == b->ino && a->dev == b->dev && a->changed_ns == b->changed_ns &&
	       a->root == b->root;
}

static __u64 hash_of(const struct identity *file, __u64 offset)
{
	const __u64 words[] = { u64_map_seed,	  file->dev,  file->ino,
				file->changed_ns, file->root, offset };

	return words_hash(words, ARRAY_SIZE(words));
}

/* --- costs --- */

double naming_cost(const struct naming_memory *m, const struct object *o)
{
	struct identity file = identity_of(o);
	const struct cost *c = m ? &m->costs[hash_of(&file, 0) % COSTS] : NULL;

	return c && file.ino && is_same(&c->file, &file) ? c->s : 0;
}

void naming_remember_cost(struct naming_memory *m, const struct object *o)
{
	struct identity file = identity_of(o);

	if (m && file.ino)
		m->costs[hash_of(&file, 0) % COSTS] = (struct cost){ file, o->spent_ns / 1e9 };
}

double naming_allowance(struct naming_memory *m, double most_s)
{
	double now = now_s();

	m->allowance_s = m->allowed_s
				 ? fmin(most_s, m->allowance_s + (now - m->allowed_s) * DEAR_SHARE)
				 : most_s;
	m->allowed_s = now;
	return m->allowance_s;
}

void naming_spend(struct naming_memory *m, double cpu_s)
{
	if (m)
		m->allowance_s -= cpu_s;
}

/* --- names --- */

static struct kept_name *name_at(const struct naming_memory *m, const struct identity *file,
				 __u64 offset)
{
	return (struct kept_name *)&m->names[hash_of(file, offset) % NAMES];
}

bool naming_recall(const struct naming_memory *m, const struct object *o, __u64 offset,
		   const char *texts[2])
{
	struct identity file = identity_of(o);
	const struct kept_name *k = m ? name_at(m, &file, offset) : NULL;

	if (!k || !file.ino || !is_same(&k->file, &file) || k->offset != offset ||
	    k->build_id_len != o->build_id_len ||
	    memcmp(k->build_id, o->build_id, sizeof(k->build_id)) != 0)
		return false;
	texts[0] = *k->text ? k->text : NULL;
	texts[1] = *k->text ? k->text + strlen(k->text) + 1 : NULL;
	if (texts[1] && !*texts[1])
		texts[1] = NULL;
	return true;
}

/* A writer may be killed at any moment. */
void naming_keep(struct naming_memory *m, const struct object *o, __u64 offset,
		 const char *const texts[2])
{
	const char *name = texts[0] ?: "", *mangled = texts[1] ?: "";
	struct identity file = identity_of(o);
	struct kept_name *k;

	if (!m || !file.ino || strlen(name) + strlen(mangled) + 2 > sizeof(k->text))
		return;
	k = name_at(m, &file, offset);
	__atomic_store_n(&k->file.ino, 0, __ATOMIC_RELEASE);
	strcpy(stpcpy(k->text, name) + 1, mangled);
	k->offset = offset;
	k->build_id_len = o->build_id_len;
	memcpy(k->build_id, o->build_id, sizeof(k->build_id));
	k->file.dev = file.dev;
	k->file.changed_ns = file.changed_ns;
	k->file.root = file.root;
	__atomic_store_n(&k->file.ino, file.ino, __ATOMIC_RELEASE);
}
