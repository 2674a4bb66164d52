// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "container.h"

#include <errno.h>
#include <fnmatch.h>
#include <limits.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/array.h"
#include "base/clock.h"
#include "base/u64_map.h"
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
#define USERS_MAX   64 /* whose lists are kept */
#define ID_SHORT    12
#define ID_PREFIX   4 /* digits, at least */

/*
 * What is known of an id or, for a pod's own cgroup, of a uid. Whose it is belongs to the key, so that
 * nobody can take the name of another's container.
 */
#define KEY_SIZE (CONTAINER_ID_LEN + 16)

struct entry {
	char key[KEY_SIZE];
	bool known;
	bool used;		    /* since the last search for one to replace */
	char *container, *pod, *ns; /* in one block, of `container` */
	uint64_t retry_ns, wait_ns;
};

struct list {
	container_items_read *read;
	const char *path; /* behind the root and the home directory */
	struct container_items items;
	uint64_t next_ns; /* not looked at before */
	struct stat st;	  /* as of the last reading */
	bool fresh; /* it had changed so lately when read that its time may not show the next change */
};

#define PODMAN(dir)                                                               \
	{ container_read_podman, dir "-containers/containers.json" },             \
	{                                                                         \
		container_read_podman, dir "-containers/volatile-containers.json" \
	}
#define PODMAN_LISTS(dir) PODMAN(dir "overlay"), PODMAN(dir "vfs"), PODMAN(dir "btrfs")

static const struct list root_lists[] = {
	{ container_read_logs, "/var/log/containers" },
	{ container_read_pod_logs, "/var/log/pods" },
	PODMAN_LISTS("/var/lib/containers/storage/"),
	{ container_read_podman,
	  "/run/containers/storage/overlay-containers/volatile-containers.json" },
};
static const struct list user_lists[] = { PODMAN_LISTS("/.local/share/containers/storage/") };

#define N_ROOT_LISTS (sizeof(root_lists) / sizeof(root_lists[0]))
#define N_USER_LISTS (sizeof(user_lists) / sizeof(user_lists[0]))

struct user {
	unsigned int uid;
	char *home;
	struct list list[N_USER_LISTS];
};

struct container_names {
	char *root;
	struct u64_map by_key; /* by hash of the key */
	struct entry *entry;
	size_t n, room, hand; /* hand: where to search next for an entry to replace */
	struct list list[N_ROOT_LISTS];
	struct user user[USERS_MAX];
	size_t n_users; /* so far; the oldest are replaced */
	struct container_name answer;
	char label[CONTAINER_LABEL];
};

static const struct container_name nameless = { "", "", "" };

/* --- lists --- */

/* Can a runtime on this machine know it? One inside another container is made by a runtime in there. */
static bool has_runtime(const struct container *c)
{
	return *c->id && c->depth == 1;
}

static const char *host_pod(const struct container *c)
{
	return c->host_pod ? c->pod_uid : "";
}

/* Read it again if it is another than before. */
static void list_update(struct list *l, const char *path, size_t max_bytes)
{
	uint64_t start = clock_ns(CLOCK_MONOTONIC), changed, cost;
	struct stat st;

	if (start < l->next_ns)
		return;
	l->next_ns = start + LIST_MIN_NS;
	if (stat(path, &st))
		st = (struct stat){};
	else if (!l->fresh && l->st.st_ino == st.st_ino && l->st.st_size == st.st_size &&
		 !memcmp(&l->st.st_mtim, &st.st_mtim, sizeof(st.st_mtim)))
		return;
	container_items_free(&l->items);
	l->st = st;
	if (!st.st_ino)
		return;
	if (l->read(path, max_bytes, &l->items))
		container_items_free(&l->items);
	container_items_sort(&l->items);
	changed = st.st_mtim.tv_sec * NS_PER_S + st.st_mtim.tv_nsec;
	l->fresh = changed + NS_PER_S > clock_ns(CLOCK_REALTIME);
	cost = clock_ns(CLOCK_MONOTONIC) - start;
	if (cost * LIST_SHARE > LIST_MIN_NS)
		l->next_ns = start + cost * LIST_SHARE;
}

static void list_add(struct list *l, const char *prefix, const char *home, size_t max_bytes,
		     const struct container *c, struct container_text *out)
{
	const char *key = l->read == container_read_pod_logs ? host_pod(c) : c->id;
	char path[PATH_MAX];

	if (!*key)
		return;
	if (snprintf(path, sizeof(path), "%s%s%s", prefix, home, l->path) >= (int)sizeof(path))
		return;
	list_update(l, path, max_bytes);
	container_items_find(&l->items, key, out);
}

/* --- users --- */

static void user_free(struct user *u)
{
	for (size_t i = 0; i < N_USER_LISTS; i++)
		container_items_free(&u->list[i].items);
	free(u->home);
	*u = (struct user){};
}

static struct user *find_user(struct container_names *n, unsigned int uid)
{
	char home[PATH_MAX];
	struct user *u;

	for (u = n->user; u < n->user + USERS_MAX; u++)
		if (u->home && u->uid == uid)
			return u;
	if (!container_home(n->root, uid, home, sizeof(home)))
		return NULL;
	u = &n->user[n->n_users % USERS_MAX];
	user_free(u);
	u->uid = uid;
	u->home = strdup(home);
	if (!u->home)
		return NULL;
	memcpy(u->list, user_lists, sizeof(user_lists));
	n->n_users++;
	return u;
}

static void add_user(struct container_names *n, const struct container *c,
		     struct container_text *out)
{
	struct user *u = find_user(n, c->uid);

	if (!u)
		return;
	container_files_by_user(n->root, u->home, c->id, out);
	for (size_t i = 0; i < N_USER_LISTS && !*out->container; i++)
		list_add(&u->list[i], n->root, u->home, USER_MAX, c, out);
	*out->pod = *out->ns = 0; /* pods are root's */
}

/* --- entries --- */

/* One that was not used lately; there are ENTRIES_MAX. */
static struct entry *replace_entry(struct container_names *n, __u32 *at)
{
	struct entry *e;

	for (;; n->hand = (n->hand + 1) % n->n) {
		e = &n->entry[n->hand];
		if (!e->used)
			break;
		e->used = false;
	}
	*at = n->hand;
	u64_map_remove(&n->by_key, text_hash(e->key), *at);
	free(e->container);
	*e = (struct entry){};
	return e;
}

static struct entry *entry_get(struct container_names *n, const char *key)
{
	const __u64 hash = text_hash(key);
	struct entry *e;
	__u32 at;

	u64_map_for_each(at, &n->by_key, hash)
	{
		e = &n->entry[at];
		if (!strcmp(e->key, key)) {
			e->used = true;
			return e;
		}
	}
	if (n->n == ENTRIES_MAX) {
		e = replace_entry(n, &at);
	} else {
		if (array_reserve_zero(n->entry, n->room, n->n + 1))
			return NULL;
		at = n->n++;
		e = &n->entry[at];
	}
	strcpy(e->key, key);
	e->used = true;
	/* without memory it is not found again, and replaced some time */
	u64_map_add(&n->by_key, hash, at);
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
static void entry_resolve(struct container_names *n, struct entry *e, const struct container *c)
{
	const bool named = has_runtime(c), pod = *host_pod(c);
	struct container_text t = { "", "", "" };

	if (e->container) {
		strcpy(t.container, e->container);
		strcpy(t.pod, e->pod);
		strcpy(t.ns, e->ns);
	}
	if (named && !*t.container && c->uid)
		add_user(n, c, &t);
	else if (named && !*t.container)
		container_files_by_id(n->root, c->id, &t);
	for (size_t i = 0; i < N_ROOT_LISTS; i++) {
		bool of_pods = n->list[i].read == container_read_pod_logs;

		if ((!named || c->uid || *t.container) && (!pod || (*t.pod && *t.ns)))
			break;
		if (of_pods || (named && !c->uid))
			list_add(&n->list[i], n->root, "", LIST_MAX, c, &t);
	}
	e->known = (!named || *t.container) && (!pod || (*t.pod && *t.ns));
	entry_set(e, &t);
	e->wait_ns = e->wait_ns ? e->wait_ns * 2 : RETRY_MIN_NS;
	if (e->wait_ns > RETRY_MAX_NS)
		e->wait_ns = RETRY_MAX_NS;
	e->retry_ns = clock_ns(CLOCK_MONOTONIC) + e->wait_ns;
}

const struct container_name *container_names_find(struct container_names *n,
						  const struct container *c)
{
	char key[KEY_SIZE];
	struct entry *e;

	if (!*c->id && !*c->pod_uid)
		return &nameless;
	snprintf(key, sizeof(key), "%s@%u%c%c", *c->id ? c->id : c->pod_uid, c->uid,
		 c->depth > 1 ? '+' : '-', c->host_pod ? 'p' : '-');
	e = entry_get(n, key);
	if (e && !e->known && clock_ns(CLOCK_MONOTONIC) >= e->retry_ns)
		entry_resolve(n, e, c);
	if (!e || !e->container)
		return &nameless;
	n->answer = (struct container_name){ e->container, e->pod, e->ns };
	return &n->answer;
}

/* --- labels and patterns --- */

const char *container_label(const struct container *c, const struct container_name *name,
			    char buf[CONTAINER_LABEL])
{
	if (!*c->id || *name->container || c->uid)
		return *c->id ? name->container : "";
	snprintf(buf, CONTAINER_LABEL, "%.*s", ID_SHORT, c->id);
	return buf;
}

const char *container_pod_label(const struct container *c, const struct container_name *name,
				char buf[CONTAINER_LABEL])
{
	if (!*name->pod || !*name->ns)
		return c->pod_uid;
	snprintf(buf, CONTAINER_LABEL, "%.253s/%.253s", name->ns, name->pod);
	return buf;
}

const char *container_names_label(struct container_names *n, const struct container *c)
{
	return container_label(c, container_names_find(n, c), n->label);
}

const char *container_names_pod_label(struct container_names *n, const struct container *c)
{
	const char *label = container_pod_label(c, container_names_find(n, c), n->label);

	if (label != n->label)
		snprintf(n->label, sizeof(n->label), "%s", label);
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
	if (!n)
		return;
	for (size_t i = 0; i < n->n; i++)
		free(n->entry[i].container);
	free(n->entry);
	u64_map_free(&n->by_key);
	for (size_t i = 0; i < USERS_MAX; i++)
		user_free(&n->user[i]);
	for (size_t i = 0; i < N_ROOT_LISTS; i++)
		container_items_free(&n->list[i].items);
	free(n->root);
	free(n);
}
