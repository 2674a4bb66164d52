// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "container.h"

#include <fcntl.h>
#include <limits.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/std.h"
#include "base/u64_map.h"
#include "container_files.h"
#include "container_nested.h"

#define NS_PER_S     1000000000ULL
#define RETRY_MIN_NS (NS_PER_S / 10)
#define RETRY_MAX_NS (30 * NS_PER_S)
#define RENAME_NS    (10 * NS_PER_S) /* interval to look up known names again */
/* Search for other places after this interval, using at most a hundredth of the time. */
#define PLACES_MIN_NS (NS_PER_S / 2)
#define PLACES_SHARE  100
/* Read a changed list again after this interval, using at most a tenth of the time. */
#define LIST_MIN_NS (NS_PER_S / 10)
#define LIST_SHARE  10
#define LIST_MAX    (4 << 20) /* bytes */
#define USER_MAX    (1 << 20)
#define ENTRIES_MAX 65536
#define USERS_MAX   64 /* users whose lists are cached */
#define PLACES_MAX  32 /* per user */

/*
 * Cached names of an id or, for a pod's own cgroup, of a uid. The key includes the owner, so that
 * nobody can take the name of another's container.
 */
#define KEY_SIZE (2 * CONTAINER_ID_MAX + 16)

struct entry {
	char key[KEY_SIZE];
	bool used;		    /* since the last search for an entry to replace */
	char *container, *pod, *ns; /* all in the block of `container` */
	const char *runtime;
	unsigned int uid;
	uint64_t retry_ns, wait_ns;
};

struct list {
	container_items_read *read;
	const char *path; /* relative to the root and the home directory */
	struct container_items items;
	uint64_t next_ns; /* next time to check */
	struct stat st;	  /* at the last read */
	bool fresh;	  /* read so soon after a change that its mtime may not show the next one */
};

#define PODMAN(driver)                                                                   \
	{ container_read_podman, "/" driver "-containers/containers.json" },             \
	{                                                                                \
		container_read_podman, "/" driver "-containers/volatile-containers.json" \
	}

static const struct list root_lists[] = {
	{ container_read_logs, "/var/log/containers" },
	{ container_read_pod_logs, "/var/log/pods" },
};
/* lists in a PLACE_PODMAN */
static const struct list podman_lists[] = {
	PODMAN("overlay"),
	PODMAN("vfs"),
	PODMAN("btrfs"),
	PODMAN("zfs"),
	{ container_read_pods, "/libpod/bolt_state.db" },
	{ container_read_pods, "/libpod/db.sql" },
	{ container_read_pods, "/libpod/db.sql-wal" },
};

struct place {
	enum container_place kind;
	char *dir; /* relative to the root; NULL: unused */
	struct list list[ARRAY_SIZE(podman_lists)];
};

static const struct {
	enum container_place kind;
	const char *dir;
} root_places[] = {
	{ PLACE_DOCKER, "/var/lib/docker" },
	{ PLACE_DOCKER, "/var/snap/docker/common/var-lib-docker" },
	{ PLACE_CONTAINERD, "/run/containerd" },
	{ PLACE_CONTAINERD, "/run/k3s/containerd" },
	{ PLACE_CONTAINERD, "/run/k0s/containerd" },
	{ PLACE_CONTAINERD, "/var/snap/microk8s/common/run/containerd" },
	{ PLACE_PODMAN, "/run/containers/storage" },
	{ PLACE_PODMAN, "/var/lib/containers/storage" },
};

/* A user with runtimes. */
struct user {
	unsigned int uid; /* 0 with places: root */
	struct place *place;
	size_t n_places, room;
};

struct container_names {
	char *root;
	struct u64_map by_key; /* by hash of the key */
	struct entry *entry;
	size_t n, room, hand; /* hand: where to search next for an entry to replace */
	struct list list[ARRAY_SIZE(root_lists)];
	uint64_t places_ns[2]; /* next search for other places of root, and of users */
	struct user root_user, user[USERS_MAX];
	size_t n_users; /* so far; the oldest are replaced */
	struct nested *nested;
	struct container_scope scope; /* scope of root's runtimes here */
	bool equal_names;	      /* already warned */
	char outer[CONTAINER_LABEL];  /* label of the container around the requested one */
	struct container_name answer;
	char label[CONTAINER_LABEL];
};

static const struct container_name nameless = { "", "", "" };

/* --- lists --- */

/* True if a runtime on this machine can know it. */
static bool has_runtime(const struct container *c)
{
	return *c->id && c->depth == (c->kind != CONTAINER_GUESS);
}

/* True if a runtime inside exactly one container can know it or its pod. */
static bool has_inner_runtime(const struct container *c)
{
	return *c->outer.id && c->depth == 1 + (*c->id != 0);
}

static bool may_have_name(const struct container *c)
{
	return *c->id && (has_runtime(c) || has_inner_runtime(c));
}

static bool podman_pod(const struct container *c)
{
	return c->host_pod && strlen(c->pod_uid) == CONTAINER_ID_LEN;
}

static const char *host_pod(const struct container *c)
{
	return c->host_pod ? c->pod_uid : "";
}

/* Read the list again if it has changed. */
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

/* Fill the empty members of @out from a list in @dir by @key. */
static void list_add(struct list *l, const char *prefix, const char *dir, size_t max_bytes,
		     const char *key, struct container_text *out)
{
	char path[PATH_MAX];

	if (!*key)
		return;
	if (snprintf(path, sizeof(path), "%s%s%s", prefix, dir, l->path) >= (int)sizeof(path))
		return;
	list_update(l, path, max_bytes);
	container_items_find(&l->items, key, out);
}

/* --- places --- */

static void place_set(struct place *p, enum container_place kind, const char *dir)
{
	p->kind = kind;
	p->dir = xstrdup(dir);
	memcpy(p->list, podman_lists, sizeof(podman_lists));
}

static void place_free(struct place *p)
{
	for (size_t i = 0; i < ARRAY_SIZE(p->list); i++)
		container_items_free(&p->list[i].items);
	free(p->dir);
	*p = (struct place){};
}

/* Read the files in a place of a user who has or may have the container. */
static void place_add(struct container_names *n, struct place *p, const struct container *c,
		      struct container_text *out)
{
	const size_t max = c->uid ? USER_MAX : LIST_MAX;

	if (!*out->container) {
		container_files_read(n->root, p->kind, p->dir, c, out);
		if (c->uid)
			*out->pod = 0; /* Kubernetes pods belong to root */
	}
	if (p->kind != PLACE_PODMAN)
		return;
	for (size_t i = 0; i < ARRAY_SIZE(p->list); i++) {
		if (p->list[i].read != container_read_pods) {
			if (!*out->container)
				list_add(&p->list[i], n->root, p->dir, max, c->id, out);
		} else if (!*out->pod) {
			list_add(&p->list[i], n->root, p->dir, max, c->pod_uid, out);
			list_add(&p->list[i], n->root, p->dir, max, out->pod_id, out);
		}
	}
}

static void add_place(void *arg, enum container_place kind, const char *dir)
{
	struct user *u = arg;

	for (size_t i = 0; i < u->n_places; i++)
		if (u->place[i].kind == kind && !strcmp(u->place[i].dir, dir))
			return;
	if (u->n_places == PLACES_MAX)
		return;
	array_reserve_zero(u->place, u->room, u->n_places + 1);
	place_set(&u->place[u->n_places++], kind, dir);
}

/*
 * Search for places; cgroups that only might be containers do not trigger frequent searches.
 *
 * Return: whether there may be places that were not checked yet.
 */
static bool find_places(struct container_names *n, struct user *u, const struct container *c)
{
	const struct container_scope theirs = { .uid = u->uid };
	uint64_t start = clock_ns(CLOCK_MONOTONIC), pause, *next = &n->places_ns[!!u->uid];
	bool guess = *next && c->kind == CONTAINER_GUESS;

	if (start < *next + (guess ? RETRY_MAX_NS : 0))
		return false;
	container_places_find(n->root, u->uid ? &theirs : &n->scope, add_place, u);
	pause = (clock_ns(CLOCK_MONOTONIC) - start) * PLACES_SHARE;
	*next = start + (pause > PLACES_MIN_NS ? pause : PLACES_MIN_NS);
	return true;
}

static void user_free(struct user *u)
{
	for (size_t i = 0; i < u->n_places; i++)
		place_free(&u->place[i]);
	free(u->place);
	*u = (struct user){};
}

static struct user *find_user(struct container_names *n, unsigned int uid)
{
	struct user *u;

	if (!uid)
		return &n->root_user;
	for (u = n->user; u < n->user + USERS_MAX; u++)
		if (u->uid == uid)
			return u;
	u = &n->user[n->n_users++ % USERS_MAX];
	user_free(u);
	u->uid = uid;
	container_places_of_home(n->root, uid, add_place, u);
	return u;
}

/* Ask the runtimes of the user who made the cgroup. */
static void ask_runtimes(struct container_names *n, const struct container *c,
			 struct container_text *out)
{
	struct user *u = find_user(n, c->uid);
	size_t asked = 0;

	do
		for (; asked < u->n_places; asked++)
			place_add(n, &u->place[asked], c, out);
	while (!*out->container && *c->id && find_places(n, u, c) && asked < u->n_places);
	if (c->uid)
		*out->ns = 0;
}

/* --- entries --- */

/* Find an entry that was not used recently; the table has ENTRIES_MAX. */
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
		array_reserve_zero(n->entry, n->room, n->n + 1);
		at = n->n++;
		e = &n->entry[at];
	}
	strcpy(e->key, key);
	e->used = true;
	u64_map_add(&n->by_key, hash, at);
	return e;
}

static void keep(char now[CONTAINER_NAME_MAX], const char *before)
{
	if (!*now)
		strcpy(now, before);
}

static void entry_set(struct entry *e, const struct container_text *t)
{
	size_t container = strlen(t->container) + 1, pod = strlen(t->pod) + 1;
	char *text = xrealloc(NULL, container + pod + strlen(t->ns) + 1);

	free(e->container);
	e->container = strcpy(text, t->container);
	e->pod = strcpy(text + container, t->pod);
	e->ns = strcpy(text + container + pod, t->ns);
}

static void resolve_inside(const struct container_scope *scope, const struct container *c,
			   struct container_text *t);

/* Prefix a name with the outer container's label, so that it cannot collide with outside names. */
static void qualify(char name[CONTAINER_NAME_MAX], const char *outer)
{
	char text[2 * CONTAINER_NAME_MAX];

	if (*name && snprintf(text, sizeof(text), "%s/%s", outer, name) >= CONTAINER_NAME_MAX)
		*text = 0;
	if (*name)
		strcpy(name, text);
}

static void ask_inside(struct container_names *n, const struct container *c,
		       struct container_text *t)
{
	struct container_scope scope = { .uid = c->uid };
	struct container inner = *c;

	memcpy(scope.outer, c->outer.id, sizeof(scope.outer));
	inner.depth--;
	inner.uid = 0;
	*inner.outer.id = 0;
	inner.host_pod = !c->host_pod;
	if (c->host_pod)
		*inner.pod_uid = 0;
	if (!n->nested)
		n->nested = nested_new(n->root, resolve_inside);
	nested_ask(n->nested, &scope, &inner, t);
	if (c->host_pod)
		*t->pod = *t->ns = 0;
	qualify(t->container, n->outer);
	qualify(*t->ns ? t->ns : t->pod, n->outer);
}

/* Look up all names. */
static void resolve(struct container_names *n, const struct container *c, struct container_text *t)
{
	const bool named = has_runtime(c);

	if (has_inner_runtime(c) && *n->outer)
		ask_inside(n, c, t);
	else if (c->kind == CONTAINER_BY_NAME && named)
		snprintf(t->container, sizeof(t->container), "%.*s", CONTAINER_NAME_MAX - 1, c->id);
	else if (named || (!c->uid && podman_pod(c)))
		ask_runtimes(n, c, t);
	for (size_t i = 0; i < ARRAY_SIZE(root_lists); i++) {
		bool of_pods = n->list[i].read == container_read_pod_logs;

		if (of_pods || (named && !c->uid))
			list_add(&n->list[i], n->root, "", LIST_MAX, of_pods ? host_pod(c) : c->id,
				 t);
	}
}

/* Runs in the process that has entered the root directory of a container. */
static void resolve_inside(const struct container_scope *scope, const struct container *c,
			   struct container_text *t)
{
	static struct container_names *inside;

	inside = inside ?: container_names_open("");
	inside->scope = *scope;
	resolve(inside, c, t);
}

/*
 * Warn if containers of different runtimes or users share a name, and thus a row; within one
 * runtime that is expected, since names are reused.
 */
static void note_equal(struct container_names *n, const struct entry *e)
{
	for (const struct entry *o = n->entry; !n->equal_names && o < n->entry + n->n; o++) {
		bool differ =
			o->runtime && *o->runtime && *e->runtime && strcmp(o->runtime, e->runtime);

		if (!o->container || strcmp(o->container, e->container) ||
		    (o->uid == e->uid && !differ))
			continue;
		n->equal_names = true;
		log_warn("containers of different runtimes or users have the same name '%s', and "
			 "are shown as one; --by cgroup,container separates them",
			 e->container);
	}
}

/* Known names stay until replaced by others: files are removed before the cgroup. */
static void entry_resolve(struct container_names *n, struct entry *e, const struct container *c)
{
	struct container_text t = { "" };
	bool known, fresh;

	resolve(n, c, &t);
	if (e->container) {
		keep(t.container, e->container);
		keep(t.pod, e->pod);
		keep(t.ns, e->ns);
	}
	known = (!may_have_name(c) || *t.container) && (!*host_pod(c) || *t.pod);
	fresh = !e->container || strcmp(e->container, t.container);
	entry_set(e, &t);
	e->runtime = c->runtime;
	e->uid = c->uid;
	if (fresh && e->container && *e->container)
		note_equal(n, e);
	e->wait_ns = known ? RENAME_NS : e->wait_ns ? e->wait_ns * 2 : RETRY_MIN_NS;
	if (e->wait_ns > RETRY_MAX_NS)
		e->wait_ns = RETRY_MAX_NS;
	e->retry_ns = clock_ns(CLOCK_MONOTONIC) + e->wait_ns;
}

/* Set the label of the outer container. */
static void name_outer(struct container_names *n, const struct container *c)
{
	struct container outer = { .kind = c->outer.kind,
				   .runtime = c->outer.runtime,
				   .uid = c->outer.uid,
				   .depth = 1,
				   .host_pod = c->host_pod };

	*n->outer = 0;
	if (!has_inner_runtime(c))
		return;
	memcpy(outer.id, c->outer.id, sizeof(outer.id));
	if (c->host_pod)
		memcpy(outer.pod_uid, c->pod_uid, sizeof(outer.pod_uid));
	snprintf(n->outer, sizeof(n->outer), "%s", container_names_label(n, &outer));
}

const struct container_name *container_names_find(struct container_names *n,
						  const struct container *c)
{
	char key[KEY_SIZE];
	struct entry *e;

	if (!*c->id && !*c->pod_uid)
		return &nameless;
	name_outer(n, c);
	snprintf(key, sizeof(key), "%s@%u%c%u%s", *c->id ? c->id : c->pod_uid, c->uid,
		 c->host_pod ? 'p' : '-', c->depth, c->outer.id);
	e = entry_get(n, key);
	if (clock_ns(CLOCK_MONOTONIC) >= e->retry_ns)
		entry_resolve(n, e, c);
	n->answer = (struct container_name){ e->container, e->pod, e->ns };
	return &n->answer;
}

/* --- labels --- */

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

/* --- opening --- */

bool container_names_unreadable(const char *root, bool *found, char *path, size_t size)
{
	static const char *const below[] = {
		[PLACE_DOCKER] = "/containers",
		[PLACE_CONTAINERD] = "/io.containerd.runtime.v2.task",
		[PLACE_PODMAN] = "/overlay-containers",
	};
	char full[PATH_MAX];

	*found = false;
	for (size_t i = 0; i < ARRAY_SIZE(root_places); i++) {
		int fd;

		snprintf(path, size, "%s%s", root_places[i].dir, below[root_places[i].kind]);
		snprintf(full, sizeof(full), "%s%s", root, path);
		fd = open(full, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
		if (fd >= 0) {
			*found = true;
			close(fd);
		} else if (errno == EACCES || errno == EPERM) {
			return true;
		}
	}
	return false;
}

struct container_names *container_names_open(const char *root)
{
	struct container_names *n = xcalloc(1, sizeof(*n));

	n->root = xstrdup(root);
	memcpy(n->list, root_lists, sizeof(root_lists));
	for (size_t i = 0; i < ARRAY_SIZE(root_places); i++)
		add_place(&n->root_user, root_places[i].kind, root_places[i].dir);
	return n;
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
	user_free(&n->root_user);
	nested_free(n->nested);
	for (size_t i = 0; i < ARRAY_SIZE(n->list); i++)
		container_items_free(&n->list[i].items);
	free(n->root);
	free(n);
}
