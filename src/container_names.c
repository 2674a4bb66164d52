// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "container_names.h"

#include <errno.h>
#include <fnmatch.h>
#include <limits.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "clock.h"
#include "container_files.h"

#define NS_PER_S     1000000000ULL
#define RETRY_MIN_NS (NS_PER_S / 10)
#define RETRY_MAX_NS (30 * NS_PER_S)
/* A list that has changed is read again after this, and for a tenth of the time at most. */
#define LIST_MIN_NS (NS_PER_S / 10)
#define LIST_SHARE  10
#define LIST_MAX    (4 << 20) /* bytes */
#define USER_MAX    (1 << 20)
#define ENTRIES_MAX 65536
#define BUCKETS	    8192
#define USERS_MAX   64 /* whose lists are kept */
#define ID_SHORT    12
#define ID_PREFIX   4 /* digits, at least */

/*
 * What is known of an id or, for a pod's own cgroup, of a uid. In a user's part of the tree the user
 * belongs to the key, so that nobody can name the containers of others.
 */
#define KEY_SIZE (CONTAINER_ID_LEN + 12)

struct entry {
	char key[KEY_SIZE];
	bool known;
	char *container, *pod, *ns; /* in one block, of `container` */
	uint64_t retry_ns, wait_ns;
	struct entry *chain, *older, *newer;
};

struct list {
	enum container_list_kind kind;
	const char *path; /* behind the root and the home directory */
	struct container_items items;
	uint64_t next_ns; /* not looked at before */
	struct timespec mtime;
	ino_t ino;
	off_t size;
	bool fresh; /* it had changed so lately when read that its time may not show the next change */
};

#define PODMAN(dir, driver)                                                                  \
	{ .kind = CONTAINER_LIST_PODMAN, .path = dir driver "-containers/containers.json" }, \
	{                                                                                    \
		.kind = CONTAINER_LIST_PODMAN,                                               \
		.path = dir driver "-containers/volatile-containers.json"                    \
	}
#define PODMAN_LISTS(dir) PODMAN(dir, "overlay"), PODMAN(dir, "vfs"), PODMAN(dir, "btrfs")

static const struct list root_lists[] = {
	{ .kind = CONTAINER_LIST_LOGS, .path = "/var/log/containers" },
	{ .kind = CONTAINER_LIST_POD_LOGS, .path = "/var/log/pods" },
	PODMAN_LISTS("/var/lib/containers/storage/"),
	{ .kind = CONTAINER_LIST_PODMAN,
	  .path = "/run/containers/storage/overlay-containers/volatile-containers.json" },
};
static const struct list user_lists[] = { PODMAN_LISTS("/.local/share/containers/storage/") };

#define N_ROOT_LISTS (sizeof(root_lists) / sizeof(root_lists[0]))
#define N_USER_LISTS (sizeof(user_lists) / sizeof(user_lists[0]))

struct user {
	unsigned int uid;
	char *home;
	struct list list[N_USER_LISTS];
	struct user *next;
};

struct container_names {
	char *root;
	struct entry *bucket[BUCKETS];
	struct entry *oldest, *newest; /* by last use */
	size_t n;
	struct list list[N_ROOT_LISTS];
	struct user *users;
	size_t n_users;
	struct container_name answer;
	char label[2 * CONTAINER_NAME_MAX + 1];
};

static const struct container_name nameless = { "", "", "" };

/* --- lists --- */

static bool same_time(struct timespec a, struct timespec b)
{
	return a.tv_sec == b.tv_sec && a.tv_nsec == b.tv_nsec;
}

/* Read it again if it is another than before. */
static void list_update(struct list *l, const char *path, size_t max_bytes)
{
	uint64_t start = clock_ns(CLOCK_MONOTONIC), changed, cost;
	struct stat st;

	if (start < l->next_ns)
		return;
	l->next_ns = start + LIST_MIN_NS;
	if (stat(path, &st)) {
		container_items_free(&l->items);
		l->ino = 0;
		return;
	}
	if (!l->fresh && l->ino == st.st_ino && l->size == st.st_size &&
	    same_time(l->mtime, st.st_mtim))
		return;
	container_items_free(&l->items);
	container_items_read(l->kind, path, max_bytes, &l->items);
	changed = st.st_mtim.tv_sec * NS_PER_S + st.st_mtim.tv_nsec;
	l->fresh = changed + NS_PER_S > clock_ns(CLOCK_REALTIME);
	l->ino = st.st_ino;
	l->size = st.st_size;
	l->mtime = st.st_mtim;
	cost = clock_ns(CLOCK_MONOTONIC) - start;
	if (cost * LIST_SHARE > LIST_MIN_NS)
		l->next_ns = start + cost * LIST_SHARE;
}

static void list_add(struct list *l, const char *prefix, const char *home, size_t max_bytes,
		     const struct container *c, struct container_text *out)
{
	const char *key = l->kind == CONTAINER_LIST_POD_LOGS ? c->pod_uid : c->id;
	char path[PATH_MAX];

	if (!*key)
		return;
	if (snprintf(path, sizeof(path), "%s%s%s", prefix, home, l->path) >= (int)sizeof(path))
		return;
	list_update(l, path, max_bytes);
	container_text_add(out, container_items_find(&l->items, key));
}

/* --- users --- */

static void user_free(struct user *u)
{
	for (size_t i = 0; i < N_USER_LISTS; i++)
		container_items_free(&u->list[i].items);
	free(u->home);
	free(u);
}

/* The user in whose part of the tree a cgroup is; root's own runtimes are not there. */
static bool uid_of_path(const char *path, unsigned int *uid)
{
	int end = 0;

	return sscanf(path, "/user.slice/user-%u.slice/%n", uid, &end) == 1 && end;
}

static struct user *find_user(struct container_names *n, unsigned int uid)
{
	char home[PATH_MAX];
	struct user **at, *u;

	for (at = &n->users; (u = *at); at = &u->next)
		if (u->uid == uid)
			return u;
	if (!container_home(n->root, uid, home, sizeof(home)))
		return NULL;
	if (n->n_users == USERS_MAX) {
		u = n->users;
		n->users = u->next;
		user_free(u);
		n->n_users--;
		for (at = &n->users; *at; at = &(*at)->next)
			;
	}
	u = calloc(1, sizeof(*u));
	if (!u)
		return NULL;
	u->uid = uid;
	u->home = strdup(home);
	if (!u->home) {
		free(u);
		return NULL;
	}
	memcpy(u->list, user_lists, sizeof(user_lists));
	*at = u;
	n->n_users++;
	return u;
}

static void add_user(struct container_names *n, const char *path, const struct container *c,
		     struct container_text *out)
{
	struct user *u;
	unsigned int uid;

	if (!uid_of_path(path, &uid))
		return;
	u = find_user(n, uid);
	if (!u)
		return;
	container_files_by_user(n->root, u->home, c->id, out);
	for (size_t i = 0; i < N_USER_LISTS && !*out->container; i++)
		list_add(&u->list[i], n->root, u->home, USER_MAX, c, out);
}

/* --- entries --- */

static void unlink_age(struct container_names *n, struct entry *e)
{
	*(e->older ? &e->older->newer : &n->oldest) = e->newer;
	*(e->newer ? &e->newer->older : &n->newest) = e->older;
}

static void link_newest(struct container_names *n, struct entry *e)
{
	e->newer = NULL;
	e->older = n->newest;
	*(n->newest ? &n->newest->newer : &n->oldest) = e;
	n->newest = e;
}

static struct entry **slot_of(struct container_names *n, const char *key)
{
	uint64_t hash = 14695981039346656037ULL; /* FNV-1a */
	struct entry **at;

	for (const char *s = key; *s; s++)
		hash = (hash ^ (unsigned char)*s) * 1099511628211ULL;
	for (at = &n->bucket[hash % BUCKETS]; *at && strcmp((*at)->key, key); at = &(*at)->chain)
		;
	return at;
}

static void entry_remove(struct container_names *n, struct entry *e)
{
	*slot_of(n, e->key) = e->chain;
	unlink_age(n, e);
	free(e->container);
	free(e);
	n->n--;
}

static struct entry *entry_get(struct container_names *n, const char *key)
{
	struct entry **at = slot_of(n, key), *e = *at;

	if (e) {
		unlink_age(n, e);
	} else {
		if (n->n == ENTRIES_MAX)
			entry_remove(n, n->oldest);
		e = calloc(1, sizeof(*e));
		if (!e)
			return NULL;
		strcpy(e->key, key);
		at = slot_of(n, key);
		*at = e;
		n->n++;
	}
	link_newest(n, e);
	return e;
}

static void entry_set(struct entry *e, const struct container_text *t)
{
	size_t container = strlen(t->container) + 1, pod = strlen(t->pod) + 1;
	char *text = malloc(container + pod + strlen(t->ns) + 1);

	if (!text)
		return;
	free(e->container);
	e->container = strcpy(text, t->container);
	e->pod = strcpy(text + container, t->pod);
	e->ns = strcpy(text + container + pod, t->ns);
}

/* What was known stays: files go before the cgroup does. */
static void entry_resolve(struct container_names *n, struct entry *e, const char *path,
			  const struct container *c)
{
	struct container_text t = { "", "", "" };

	if (e->container) {
		strcpy(t.container, e->container);
		strcpy(t.pod, e->pod);
		strcpy(t.ns, e->ns);
	}
	if (*c->id) {
		if (!*t.container)
			container_files_by_id(n->root, c->id, &t);
		if (!*t.container)
			add_user(n, path, c, &t);
	}
	for (size_t i = 0; i < N_ROOT_LISTS; i++) {
		bool pod_known = !*c->pod_uid || (*t.pod && *t.ns);

		if (pod_known && (!*c->id || *t.container))
			break;
		list_add(&n->list[i], n->root, "", LIST_MAX, c, &t);
	}
	e->known = (!*c->id || *t.container) && (!*c->pod_uid || (*t.pod && *t.ns));
	entry_set(e, &t);
	e->wait_ns = e->wait_ns ? e->wait_ns * 2 : RETRY_MIN_NS;
	if (e->wait_ns > RETRY_MAX_NS)
		e->wait_ns = RETRY_MAX_NS;
	e->retry_ns = clock_ns(CLOCK_MONOTONIC) + e->wait_ns;
}

const struct container_name *container_names_find(struct container_names *n, const char *path,
						  const struct container *c)
{
	const char *id = *c->id ? c->id : c->pod_uid;
	char key[KEY_SIZE];
	struct entry *e;
	unsigned int uid;

	if (uid_of_path(path, &uid))
		snprintf(key, sizeof(key), "%s@%u", id, uid);
	else
		snprintf(key, sizeof(key), "%s", id);
	e = *id ? entry_get(n, key) : NULL;
	if (e && !e->known && clock_ns(CLOCK_MONOTONIC) >= e->retry_ns)
		entry_resolve(n, e, path, c);
	if (!e || !e->container)
		return &nameless;
	n->answer = (struct container_name){ e->container, e->pod, e->ns };
	return &n->answer;
}

/* --- labels and patterns --- */

const char *container_names_label(struct container_names *n, const char *path)
{
	const struct container_name *name;
	struct container c;

	if (!container_of_path(path, &c) || !*c.id)
		return "";
	name = container_names_find(n, path, &c);
	if (*name->container)
		return name->container;
	snprintf(n->label, sizeof(n->label), "%.*s", ID_SHORT, c.id);
	return n->label;
}

const char *container_names_pod_label(struct container_names *n, const char *path)
{
	const struct container_name *name;
	struct container c;

	if (!container_of_path(path, &c))
		return "";
	name = container_names_find(n, path, &c);
	if (*name->pod && *name->ns)
		snprintf(n->label, sizeof(n->label), "%s/%s", name->ns, name->pod);
	else
		snprintf(n->label, sizeof(n->label), "%s", c.pod_uid);
	return n->label;
}

bool container_is_id_prefix(const char *text)
{
	size_t n = strspn(text, "0123456789abcdef");

	return n >= ID_PREFIX && n <= CONTAINER_ID_LEN && !text[n];
}

static bool fits(const char *pattern, size_t len, const char *name)
{
	char part[CONTAINER_NAME_MAX];

	if (!*name || len >= sizeof(part))
		return false;
	memcpy(part, pattern, len);
	part[len] = 0;
	return !fnmatch(part, name, FNM_NOESCAPE);
}

bool container_matches(const char *pattern, const struct container *c,
		       const struct container_name *name)
{
	const char *pod = strchr(pattern, '/'), *container;

	if (!pod)
		return fits(pattern, strlen(pattern), *c->id ? name->container : "") ||
		       (*c->pod_uid && !strcmp(pattern, c->pod_uid));
	container = strchrnul(pod + 1, '/');
	if (!fits(pattern, pod - pattern, name->ns) ||
	    !fits(pod + 1, container - pod - 1, name->pod))
		return false;
	return !*container ||
	       fits(container + 1, strlen(container + 1), *c->id ? name->container : "");
}

/* --- opening --- */

int container_names_open(const char *root, struct container_names **out)
{
	struct container_names *n = calloc(1, sizeof(*n));

	if (!n)
		return -ENOMEM;
	n->root = strdup(root);
	if (!n->root) {
		free(n);
		return -ENOMEM;
	}
	memcpy(n->list, root_lists, sizeof(root_lists));
	*out = n;
	return 0;
}

void container_names_close(struct container_names *n)
{
	struct user *u;

	if (!n)
		return;
	while (n->oldest)
		entry_remove(n, n->oldest);
	while ((u = n->users)) {
		n->users = u->next;
		user_free(u);
	}
	for (size_t i = 0; i < N_ROOT_LISTS; i++)
		container_items_free(&n->list[i].items);
	free(n->root);
	free(n);
}
