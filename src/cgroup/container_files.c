// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * The formats, seen in: moby daemon (config.v2.json), containers/storage (containers.json, which
 * podman and CRI-O use), OCI runtime-spec (config.json; annotations of containerd's CRI plugin,
 * nerdctl and CRI-O), kubelet (names of logs).
 */
#include "container_files.h"

#include "base/array.h"
#include "base/regular.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <limits.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define CONFIG_MAX     (1 << 20)
#define NAMESPACES_MAX 64 /* of one containerd */
#define HEX	       "0123456789abcdef"
#define NAME	       "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.-"

static const char *const docker_dirs[] = { "/var/lib/docker",
					   "/var/snap/docker/common/var-lib-docker" };
static const char *const containerd_dirs[] = { "/run/containerd", "/run/k3s/containerd",
					       "/run/k0s/containerd",
					       "/var/snap/microk8s/common/run/containerd" };
static const char *const storage_dirs[] = { "/run/containers/storage",
					    "/var/lib/containers/storage" };

#define N(a) (sizeof(a) / sizeof((a)[0]))

/* Names go to terminals, labels and patterns: what could be anything else there is none. */
static bool is_name(const char *s, size_t len)
{
	return len && len < CONTAINER_NAME_MAX && strspn(s, NAME) >= len;
}

static void set(char out[CONTAINER_NAME_MAX], const char *s, size_t len)
{
	if (*out || !is_name(s, len))
		return;
	memcpy(out, s, len);
	out[len] = 0;
}

/* "" of what is no string, or is not there. */
static const char *text_of(const json_t *object, const char *key)
{
	return json_string_value(json_object_get(object, key)) ?: "";
}

static void set_text(char out[CONTAINER_NAME_MAX], const json_t *object, const char *key)
{
	const char *s = text_of(object, key);

	set(out, s, strlen(s));
}

/* Some of the directories are in the hands of users. */
static int open_regular(const char *path, size_t max, int *err)
{
	int fd = regular_open(path);
	struct stat st;

	*err = fd < 0 ? fd : fstat(fd, &st) ? -errno : (size_t)st.st_size > max ? -EFBIG : 0;
	if (*err && fd >= 0)
		close(fd);
	return *err ? -1 : fd;
}

/* Return: NULL with *@err set if there is no such file, or no JSON in it. */
static json_t *read_json(const char *path, size_t max, int *err)
{
	int fd = open_regular(path, max, err);
	size_t n = 0, room = 16384;
	json_t *json = NULL;
	char *buf;

	if (fd < 0)
		return NULL;
	buf = malloc(room);
	*err = buf ? 0 : -ENOMEM;
	while (!*err) {
		ssize_t got = read(fd, buf + n, room - n);

		if (got < 0 && errno == EINTR)
			continue;
		if (got < 0)
			*err = -errno;
		if (got <= 0)
			break;
		n += got;
		if (n < room)
			continue;
		if (n > max) { /* it grew */
			*err = -EFBIG;
			break;
		}
		*err = array_reserve(buf, room, 2 * room);
	}
	close(fd);
	if (!*err) {
		json = json_loadb(buf, n, 0, NULL);
		*err = json ? 0 : -EINVAL;
	}
	free(buf);
	return json;
}

/* --- files of one container --- */

static bool complete(const struct container_text *t)
{
	return *t->container && *t->pod && *t->ns;
}

static void read_docker(const char *path, struct container_text *out)
{
	const char *name;
	json_t *o, *labels;
	int err;

	o = read_json(path, CONFIG_MAX, &err);
	labels = json_object_get(json_object_get(o, "Config"), "Labels");
	set_text(out->container, labels, "io.kubernetes.container.name");
	set_text(out->pod, labels, "io.kubernetes.pod.name");
	set_text(out->ns, labels, "io.kubernetes.pod.namespace");
	name = text_of(o, "Name");
	name += *name == '/';
	set(out->container, name, strlen(name));
	json_decref(o);
}

static void read_oci(const char *path, struct container_text *out)
{
	json_t *o, *notes;
	int err;

	o = read_json(path, CONFIG_MAX, &err);
	notes = json_object_get(o, "annotations");
	set_text(out->container, notes, "io.kubernetes.cri.container-name");
	set_text(out->container, notes, "io.kubernetes.container.name");
	set_text(out->container, notes, "nerdctl/name");
	set_text(out->pod, notes, "io.kubernetes.cri.sandbox-name");
	set_text(out->pod, notes, "io.kubernetes.pod.name");
	set_text(out->ns, notes, "io.kubernetes.cri.sandbox-namespace");
	set_text(out->ns, notes, "io.kubernetes.pod.namespace");
	/* containerd's has no name; CRI-O and docker call it so */
	if (!strcmp(text_of(notes, "io.kubernetes.cri.container-type"), "sandbox"))
		set(out->container, "POD", 3);
	json_decref(o);
}

static void read_docker_in(const char *root, const char *dir, const char *id,
			   struct container_text *out)
{
	char path[PATH_MAX];

	if (snprintf(path, sizeof(path), "%s%s/containers/%s/config.v2.json", root, dir, id) <
	    (int)sizeof(path))
		read_docker(path, out);
}

static void read_docker_moved(const char *root, const char *id, struct container_text *out)
{
	char path[PATH_MAX];
	const char *dir;
	json_t *o;
	int err;

	snprintf(path, sizeof(path), "%s/etc/docker/daemon.json", root);
	o = read_json(path, CONFIG_MAX, &err);
	dir = text_of(o, "data-root");
	if (*dir == '/')
		read_docker_in(root, dir, id, out);
	json_decref(o);
}

static void read_containerd_in(const char *root, const char *dir, const char *id,
			       struct container_text *out)
{
	char path[PATH_MAX];
	struct dirent *e;
	DIR *d;

	snprintf(path, sizeof(path), "%s%s/io.containerd.runtime.v2.task", root, dir);
	d = opendir(path);
	for (int i = 0; d && i < NAMESPACES_MAX && !*out->container && (e = readdir(d)); i++) {
		if (*e->d_name == '.')
			continue;
		snprintf(path, sizeof(path), "%s%s/io.containerd.runtime.v2.task/%s/%s/config.json",
			 root, dir, e->d_name, id);
		read_oci(path, out);
	}
	if (d)
		closedir(d);
}

void container_files_by_id(const char *root, const char *id, struct container_text *out)
{
	char path[PATH_MAX];

	for (size_t i = 0; i < N(docker_dirs) && !*out->container; i++)
		read_docker_in(root, docker_dirs[i], id, out);
	for (size_t i = 0; i < N(containerd_dirs) && !*out->container; i++)
		read_containerd_in(root, containerd_dirs[i], id, out);
	for (size_t i = 0; i < N(storage_dirs) && !*out->container; i++) {
		snprintf(path, sizeof(path), "%s%s/overlay-containers/%s/userdata/config.json",
			 root, storage_dirs[i], id);
		read_oci(path, out);
	}
	if (!*out->container)
		read_docker_moved(root, id, out);
}

void container_files_by_user(const char *root, const char *home, const char *id,
			     struct container_text *out)
{
	char dir[PATH_MAX];

	if (!complete(out) &&
	    snprintf(dir, sizeof(dir), "%s/.local/share/docker", home) < (int)sizeof(dir))
		read_docker_in(root, dir, id, out);
}

bool container_home(const char *root, unsigned int uid, char *home, size_t size)
{
	char path[PATH_MAX];
	struct passwd *pw;
	bool found = false;
	FILE *f;
	int fd, err;

	snprintf(path, sizeof(path), "%s/etc/passwd", root);
	fd = open_regular(path, CONFIG_MAX, &err);
	f = fd < 0 ? NULL : fdopen(fd, "r");
	if (!f && fd >= 0)
		close(fd);
	while (f && !found && (pw = fgetpwent(f)))
		found = pw->pw_uid == uid && pw->pw_dir[0] == '/' &&
			snprintf(home, size, "%s", pw->pw_dir) < (int)size;
	if (f)
		fclose(f);
	return found;
}

/* --- lists --- */

static struct container_item *add_item(struct container_items *l, const char *key, size_t len)
{
	struct container_item *item;

	if (len >= sizeof(item->key))
		return NULL;
	if (array_reserve(l->item, l->room, l->n + 1))
		return NULL;
	item = &l->item[l->n++];
	memset(item, 0, sizeof(*item));
	memcpy(item->key, key, len);
	return item;
}

static char *name_dup(const char *s, size_t len)
{
	return is_name(s, len) ? strndup(s, len) : NULL;
}

static int read_podman(const char *path, size_t max, struct container_items *out)
{
	json_t *list, *one;
	size_t i;
	int err;

	list = read_json(path, max, &err);
	json_array_foreach(list, i, one)
	{
		const char *id = text_of(one, "id");
		const char *name =
			json_string_value(json_array_get(json_object_get(one, "names"), 0));
		struct container_item *item;

		if (strlen(id) != CONTAINER_ID_LEN || strspn(id, HEX) != CONTAINER_ID_LEN || !name)
			continue;
		item = add_item(out, id, CONTAINER_ID_LEN);
		if (!item) {
			err = -ENOMEM;
			break;
		}
		item->container = name_dup(name, strlen(name));
	}
	json_decref(list);
	return err;
}

/* POD_NAMESPACE_CONTAINER-ID.log; none of the first two has a "_", nor has an id a "-". */
static int add_log(const char *name, struct container_items *out)
{
	const char *pod = name, *ns = strchr(name, '_');
	const char *container = ns ? strchr(ns + 1, '_') : NULL;
	const char *id = container ? strrchr(container, '-') : NULL;
	struct container_item *item;

	if (!id || strspn(id + 1, HEX) != CONTAINER_ID_LEN ||
	    strcmp(id + 1 + CONTAINER_ID_LEN, ".log") || id <= container + 1)
		return 0;
	item = add_item(out, id + 1, CONTAINER_ID_LEN);
	if (!item)
		return -ENOMEM;
	item->pod = name_dup(pod, ns - pod);
	item->ns = name_dup(ns + 1, container - ns - 1);
	item->container = name_dup(container + 1, id - container - 1);
	return 0;
}

/* NAMESPACE_POD_UID */
static int add_pod_log(const char *name, struct container_items *out)
{
	const char *pod = strchr(name, '_');
	const char *uid = pod ? strchr(pod + 1, '_') : NULL;
	struct container_item *item;

	if (!uid || !uid[1] || strspn(uid + 1, HEX "-") != strlen(uid + 1) ||
	    strlen(uid + 1) > CONTAINER_ID_LEN)
		return 0;
	item = add_item(out, uid + 1, strlen(uid + 1));
	if (!item)
		return -ENOMEM;
	item->ns = name_dup(name, pod - name);
	item->pod = name_dup(pod + 1, uid - pod - 1);
	return 0;
}

static int read_logs(const char *path, bool pods, struct container_items *out)
{
	DIR *d = opendir(path);
	struct dirent *e;
	int err = 0;

	if (!d)
		return -errno;
	while (!err && (e = readdir(d)))
		err = pods ? add_pod_log(e->d_name, out) : add_log(e->d_name, out);
	closedir(d);
	return err;
}

static int by_key(const void *a, const void *b)
{
	return strcmp(((const struct container_item *)a)->key,
		      ((const struct container_item *)b)->key);
}

int container_items_read(enum container_list_kind kind, const char *path, size_t max_bytes,
			 struct container_items *out)
{
	int err;

	memset(out, 0, sizeof(*out));
	if (kind == CONTAINER_LIST_PODMAN)
		err = read_podman(path, max_bytes, out);
	else
		err = read_logs(path, kind == CONTAINER_LIST_POD_LOGS, out);
	if (err)
		container_items_free(out);
	else if (out->n)
		qsort(out->item, out->n, sizeof(*out->item), by_key);
	return err;
}

void container_items_free(struct container_items *l)
{
	for (size_t i = 0; i < l->n; i++) {
		free(l->item[i].container);
		free(l->item[i].pod);
		free(l->item[i].ns);
	}
	free(l->item);
	memset(l, 0, sizeof(*l));
}

const struct container_item *container_items_find(const struct container_items *l, const char *key)
{
	struct container_item want = { "" };

	if (!l->n || strlen(key) >= sizeof(want.key))
		return NULL;
	strcpy(want.key, key);
	return bsearch(&want, l->item, l->n, sizeof(want), by_key);
}

void container_text_add(struct container_text *out, const struct container_item *item)
{
	if (!item)
		return;
	set(out->container, item->container ?: "", strlen(item->container ?: ""));
	set(out->pod, item->pod ?: "", strlen(item->pod ?: ""));
	set(out->ns, item->ns ?: "", strlen(item->ns ?: ""));
}
