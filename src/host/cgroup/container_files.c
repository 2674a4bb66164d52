// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Formats, as in the sources of: moby daemon (config.v2.json), containers/storage (containers.json,
 * used by podman and CRI-O), OCI runtime-spec (config.json; annotations of containerd's CRI plugin,
 * nerdctl and CRI-O), kubelet (names of logs).
 */
#include "container_files.h"
#include "base/regular.h"
#include "base/std.h"

#include <dirent.h>
#include <glob.h>
#include <jansson.h>
#include <limits.h>
#include <sys/stat.h>
#include <unistd.h>

#define CONFIG_MAX     (1 << 20)
#define NAMESPACES_MAX 64 /* per containerd */
#define HEX	       "0123456789abcdef"
#define NAME	       "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.-"

/* Names are used in output, labels and patterns: reject any that could be misread there. */
static bool is_name(const char *s, size_t len)
{
	return len && len < CONTAINER_NAME_MAX && strspn(s, NAME) >= len;
}

bool container_text_valid(const struct container_text *t)
{
	const char *const texts[] = { t->container, t->pod, t->ns };

	for (size_t i = 0; i < ARRAY_SIZE(texts); i++)
		if (*texts[i] && !is_name(texts[i], strnlen(texts[i], CONTAINER_NAME_MAX)))
			return false;
	return true;
}

static void set(char out[CONTAINER_NAME_MAX], const char *s)
{
	if (!*out && is_name(s, strlen(s)))
		strcpy(out, s);
}

/* The value of a key; "" if it is missing or not a string. */
static const char *text_of(const json_t *object, const char *key)
{
	return json_string_value(json_object_get(object, key)) ?: "";
}

/* Users control some of the directories. Return: NULL with *@err set. */
static FILE *open_file(const char *path, size_t max, size_t *size, int *err)
{
	int fd = regular_open(path);
	struct stat st = {};
	FILE *f;

	*err = fd < 0 ? fd : fstat(fd, &st) ? -errno : (size_t)st.st_size > max ? -EFBIG : 0;
	f = *err ? NULL : fdopen(fd, "r");
	*size = st.st_size;
	if (!f && fd >= 0)
		close(fd);
	if (!f && !*err)
		out_of_memory();
	return f;
}

/* Return: NULL with *@err set if there is no such file, or no JSON in it. It may be growing. */
static json_t *read_json(const char *path, size_t max, int *err)
{
	size_t size;
	FILE *f = open_file(path, max, &size, err);
	json_t *json;
	char *text;
	size_t n;

	if (!f)
		return NULL;
	text = xrealloc(NULL, size + 1);
	n = fread(text, 1, size + 1, f);
	json = n > size || ferror(f) ? NULL : json_loadb(text, n, 0, NULL);
	*err = json ? 0 : -EINVAL;
	free(text);
	fclose(f);
	return json;
}

/* --- files of one container --- */

/* Keys of labels and annotations: the first one present counts. */
static const struct {
	const char *key;
	size_t at; /* in struct container_text */
} name_keys[] = {
	{ "io.kubernetes.cri.container-name", offsetof(struct container_text, container) },
	{ "io.kubernetes.container.name", offsetof(struct container_text, container) },
	{ "nerdctl/name", offsetof(struct container_text, container) },
	{ "io.kubernetes.cri.sandbox-name", offsetof(struct container_text, pod) },
	{ "io.kubernetes.pod.name", offsetof(struct container_text, pod) },
	{ "io.kubernetes.cri.sandbox-namespace", offsetof(struct container_text, ns) },
	{ "io.kubernetes.pod.namespace", offsetof(struct container_text, ns) },
};

static void set_names(const json_t *labels, struct container_text *out)
{
	for (size_t i = 0; i < sizeof(name_keys) / sizeof(name_keys[0]); i++)
		set((char *)out + name_keys[i].at, text_of(labels, name_keys[i].key));
}

static void read_docker(const json_t *o, const struct container *c, struct container_text *out)
{
	const char *name = text_of(o, "Name");

	(void)c;
	set_names(json_object_get(json_object_get(o, "Config"), "Labels"), out);
	set(out->container, name + (*name == '/'));
}

static void read_oci(const json_t *o, const struct container *c, struct container_text *out)
{
	const json_t *notes = json_object_get(o, "annotations");
	const char *path = text_of(json_object_get(o, "linux"), "cgroupsPath");

	set_names(notes, out);
	/* containerd does not name it; CRI-O and docker use this name */
	if (!strcmp(text_of(notes, "io.kubernetes.cri.container-type"), "sandbox"))
		set(out->container, "POD");
	/* a podman pod without an infra container */
	if (!strcmp(text_of(notes, "io.container.manager"), "libpod"))
		set(out->pod_id, text_of(notes, "io.kubernetes.cri-o.SandboxID"));
	/* plain containerd: the file confirms that this cgroup belongs to it */
	if (c->kind == CONTAINER_GUESS && *path == '/' && !strcmp(path + 1, c->id))
		set(out->container, strchr(c->id, '/') + 1);
}

/* Patterns of the runtimes' files, relative to the place; %s is the id. */
static const struct {
	enum container_place place;
	bool guess; /* for NAMESPACE/NAME */
	const char *pattern;
	void (*read)(const json_t *o, const struct container *c, struct container_text *out);
} files[] = {
	{ PLACE_DOCKER, false, "/containers/%s/config.v2.json", read_docker },
	/* userns-remap */
	{ PLACE_DOCKER, false, "/[0-9]*.[0-9]*/containers/%s/config.v2.json", read_docker },
	{ PLACE_CONTAINERD, false, "/io.containerd.runtime.v2.task/*/%s/config.json", read_oci },
	{ PLACE_CONTAINERD, true, "/io.containerd.runtime.v2.task/%s/config.json", read_oci },
	{ PLACE_PODMAN, false, "/*-containers/%s/userdata/config.json", read_oci },
};

void container_files_read(const char *root, enum container_place place, const char *dir,
			  const struct container *c, struct container_text *out)
{
	for (size_t i = 0; i < ARRAY_SIZE(files) && !*out->container; i++) {
		char below[2 * CONTAINER_ID_MAX], path[PATH_MAX];
		glob_t g;

		if (files[i].place != place || files[i].guess != (c->kind == CONTAINER_GUESS))
			continue;
		if (c->uid && strchr(files[i].pattern, '*'))
			continue; /* users can create any number of files */
		snprintf(below, sizeof(below), files[i].pattern, c->id);
		if (snprintf(path, sizeof(path), "%s%s%s", root, dir, below) >= (int)sizeof(path) ||
		    glob(path, GLOB_NOSORT, NULL, &g))
			continue;
		for (size_t k = 0; k < g.gl_pathc && k < NAMESPACES_MAX && !*out->container; k++) {
			int err;
			json_t *o = read_json(g.gl_pathv[k], CONFIG_MAX, &err);

			files[i].read(o, c, out);
			json_decref(o);
		}
		globfree(&g);
	}
}

/* --- lists --- */

static char *name_dup(const char *s, size_t len)
{
	return is_name(s, len) ? xstrndup(s, len) : NULL;
}

static struct container_item *add_item(struct container_items *l, const char *key, size_t len)
{
	array_reserve_zero(l->item, l->room, l->n + 1);
	memcpy(l->item[l->n].key, key, len);
	return &l->item[l->n++];
}

int container_read_podman(const char *path, size_t max, struct container_items *out)
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
		item->container = name_dup(name, strlen(name));
	}
	json_decref(list);
	return err;
}

/*
 * In either database, bolt or SQLite, a pod is JSON: {"id":"64 digits","name":"NAME",... Search for
 * it as text; this may also find removed pods.
 */
int container_read_pods(const char *path, size_t max, struct container_items *out)
{
	static const char before[] = "{\"id\":\"", between[] = "\",\"name\":\"";
	size_t size, n = 0;
	int err;
	FILE *f = open_file(path, max, &size, &err);
	char *text = f ? xcalloc(size + 1, 1) : NULL;

	if (text)
		n = fread(text, 1, size, f);
	for (const char *s = text, *end = text + n;
	     !err && s && (s = memmem(s, end - s, before, sizeof(before) - 1));) {
		const char *id = s + sizeof(before) - 1, *name = id + CONTAINER_ID_LEN;
		struct container_item *item;
		size_t len = 0;

		s = id;
		if ((size_t)(end - id) < CONTAINER_ID_LEN + sizeof(between) + 1 ||
		    strspn(id, HEX) != CONTAINER_ID_LEN ||
		    memcmp(name, between, sizeof(between) - 1))
			continue;
		name += sizeof(between) - 1;
		while (name + len < end && strchr(NAME, name[len]) && name[len])
			len++;
		if (name + len == end || name[len] != '"')
			continue;
		item = add_item(out, id, CONTAINER_ID_LEN);
		item->pod = name_dup(name, len);
	}
	free(text);
	if (f)
		fclose(f);
	return err;
}

/* POD_NAMESPACE_CONTAINER-ID.log; the first two have no "_", the id has no "-". */
static void add_log(const char *pod, struct container_items *out)
{
	const char *ns = strchr(pod, '_'), *container = ns ? strchr(ns + 1, '_') : NULL;
	const char *id = container ? strrchr(container, '-') : NULL;
	struct container_item *item;

	if (!id || strspn(id + 1, HEX) != CONTAINER_ID_LEN ||
	    strcmp(id + 1 + CONTAINER_ID_LEN, ".log") || id <= container + 1)
		return;
	item = add_item(out, id + 1, CONTAINER_ID_LEN);
	item->pod = name_dup(pod, ns - pod);
	item->ns = name_dup(ns + 1, container - ns - 1);
	item->container = name_dup(container + 1, id - container - 1);
}

/* NAMESPACE_POD_UID */
static void add_pod_log(const char *ns, struct container_items *out)
{
	const char *pod = strchr(ns, '_'), *uid = pod ? strchr(pod + 1, '_') : NULL;
	struct container_item *item;

	if (!uid || !uid[1] || strspn(uid + 1, HEX "-") != strlen(uid + 1) ||
	    strlen(uid + 1) > CONTAINER_ID_LEN)
		return;
	item = add_item(out, uid + 1, strlen(uid + 1));
	item->ns = name_dup(ns, pod - ns);
	item->pod = name_dup(pod + 1, uid - pod - 1);
}

static int read_names(const char *path, void (*add)(const char *name, struct container_items *out),
		      struct container_items *out)
{
	DIR *d = opendir(path);
	struct dirent *e;

	if (!d)
		return -errno;
	while ((e = readdir(d)))
		add(e->d_name, out);
	closedir(d);
	return 0;
}

int container_read_logs(const char *path, size_t max, struct container_items *out)
{
	(void)max;
	return read_names(path, add_log, out);
}

int container_read_pod_logs(const char *path, size_t max, struct container_items *out)
{
	(void)max;
	return read_names(path, add_pod_log, out);
}

static int by_key(const void *a, const void *b)
{
	return strcmp(((const struct container_item *)a)->key,
		      ((const struct container_item *)b)->key);
}

void container_items_sort(struct container_items *l)
{
	if (l->n)
		qsort(l->item, l->n, sizeof(*l->item), by_key);
}

void container_items_free(struct container_items *l)
{
	for (size_t i = 0; i < l->n; i++) {
		free(l->item[i].container);
		free(l->item[i].pod);
		free(l->item[i].ns);
	}
	free(l->item);
	*l = (struct container_items){};
}

void container_items_find(const struct container_items *l, const char *key,
			  struct container_text *out)
{
	struct container_item want = { "" }, *item;

	if (!l->n || strlen(key) >= sizeof(want.key))
		return;
	strcpy(want.key, key);
	item = bsearch(&want, l->item, l->n, sizeof(want), by_key);
	if (!item)
		return;
	set(out->container, item->container ?: "");
	set(out->pod, item->pod ?: "");
	set(out->ns, item->ns ?: "");
}
