// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "container_files.h"
#include "base/regular.h"
#include "base/std.h"

#include <ctype.h>
#include <dirent.h>
#include <jansson.h>
#include <limits.h>
#include <unistd.h>

#define TEXT_MAX (1 << 20) /* of a configuration file, or a command line */
#define PROC_MAX (16 << 10)

struct search {
	const char *root;
	container_place_cb *cb;
	void *arg;
};

/* Return: what a file begins with, ended by a zero; NULL if it cannot be read. To be freed. */
static char *read_text(const char *path, size_t max, size_t *len)
{
	int fd = regular_open(path);
	ssize_t n = 0, got;
	char *text;

	if (fd < 0)
		return NULL;
	text = xcalloc(max + 1, 1);
	while (n < (ssize_t)max && (got = read(fd, text + n, max - n)) > 0)
		n += got;
	close(fd);
	*len = n;
	return text;
}

static char *read_below(const struct search *s, const char *below, size_t max, size_t *len)
{
	char path[PATH_MAX];

	if (snprintf(path, sizeof(path), "%s%s", s->root, below) >= (int)sizeof(path))
		return NULL;
	return read_text(path, max, len);
}

static void found(const struct search *s, enum container_place place, const char *dir)
{
	if (*dir == '/' && dir[1])
		s->cb(s->arg, place, dir);
}

/* --- configuration --- */

static void find_docker(const struct search *s, const char *text)
{
	json_t *o = json_loads(text, 0, NULL);

	found(s, PLACE_DOCKER, json_string_value(json_object_get(o, "data-root")) ?: "");
	json_decref(o);
}

/* The value in a line of TOML: KEY = "VALUE" */
static void find_toml(const struct search *s, enum container_place place, const char *text,
		      const char *key)
{
	char dir[PATH_MAX];

	for (const char *line = text; line; line = strchr(line, '\n')) {
		line += strspn(line, " \t\n");
		if (strncmp(line, key, strlen(key)))
			continue;
		*dir = 0;
		if (sscanf(line + strlen(key), " = \"%4095[^\"\n]\"", dir) == 1)
			found(s, place, dir);
	}
}

static void find_configured(const struct search *s)
{
	static const struct {
		const char *file;
		enum container_place place;
		const char *key;
	} files[] = {
		{ "/etc/docker/daemon.json", PLACE_DOCKER, NULL },
		{ "/etc/containerd/config.toml", PLACE_CONTAINERD, "state" },
		{ "/etc/containers/storage.conf", PLACE_PODMAN, "graphroot" },
		{ "/etc/containers/storage.conf", PLACE_PODMAN, "runroot" },
	};

	for (size_t i = 0; i < ARRAY_SIZE(files); i++) {
		size_t len;
		char *text = read_below(s, files[i].file, TEXT_MAX, &len);

		if (text && files[i].key)
			find_toml(s, files[i].place, text, files[i].key);
		else if (text)
			find_docker(s, text);
		free(text);
	}
}

/* --- processes --- */

/* Cut @n names from the end of a path. */
static bool cut_names(char *path, int n)
{
	char *slash = path;

	while (n-- && (slash = strrchr(path, '/')))
		*slash = 0;
	return slash && *path;
}

/*
 * A process of root's, and in no container, whose root could call itself anything. Asked before a
 * process is read and again afterwards, when the number may be that of another.
 */
static bool is_roots(const struct search *s, const char *pid)
{
	char below[64], *text, *save = NULL;
	unsigned int uid[4] = { 1, 1, 1, 1 }, n_pids = 0;
	struct container c;
	bool ok;
	size_t len;

	snprintf(below, sizeof(below), "/proc/%s/status", pid);
	text = read_below(s, below, PROC_MAX, &len);
	for (char *l = text ? strtok_r(text, "\n", &save) : NULL; l;
	     l = strtok_r(NULL, "\n", &save)) {
		sscanf(l, "Uid: %u %u %u %u", &uid[0], &uid[1], &uid[2], &uid[3]);
		if (!strncmp(l, "NSpid:", 6))
			for (char *p = l; (p = strchr(p, '\t')); p++)
				n_pids++;
	}
	free(text);
	if (uid[0] || uid[1] || uid[2] || uid[3] || n_pids != 1)
		return false;
	snprintf(below, sizeof(below), "/proc/%s/cgroup", pid);
	text = read_below(s, below, PROC_MAX, &len);
	ok = text && *text;
	for (char *l = ok ? strtok_r(text, "\n", &save) : NULL; l;
	     l = strtok_r(NULL, "\n", &save)) {
		const char *path = strchr(l, ':');

		path = path ? strchr(path + 1, ':') : NULL;
		if (!path ||
		    (container_of_path(path + 1, NULL, &c) && *c.id && c.kind != CONTAINER_GUESS))
			ok = false;
	}
	free(text);
	return ok;
}

/* conmon -b GRAPHROOT/overlay-containers/ID/userdata */
static void find_conmon(const struct search *s, const char *pid)
{
	char below[64], *text;
	size_t len, at;

	snprintf(below, sizeof(below), "/proc/%s/cmdline", pid);
	text = read_below(s, below, PROC_MAX, &len);
	for (at = 0; text && at < len; at += strlen(text + at) + 1) {
		char *bundle = text + at + 3;

		if (strcmp(text + at, "-b") || at + 3 >= len)
			continue;
		if (cut_names(bundle, 3) && is_roots(s, pid))
			found(s, PLACE_PODMAN, bundle);
		break;
	}
	free(text);
}

/* What docker mounts from DATA-ROOT/containers/ID/hostname. */
static void find_mounted(const struct search *s, const char *config)
{
	size_t len, i;
	char *text = read_text(config, TEXT_MAX, &len), dir[PATH_MAX];
	json_t *o = text ? json_loads(text, 0, NULL) : NULL, *mount;

	json_array_foreach(json_object_get(o, "mounts"), i, mount)
	{
		const char *to = json_string_value(json_object_get(mount, "destination")) ?: "";
		const char *from = json_string_value(json_object_get(mount, "source")) ?: "";

		if (strcmp(to, "/etc/hostname") ||
		    snprintf(dir, sizeof(dir), "%s", from) >= (int)sizeof(dir))
			continue;
		if (cut_names(dir, 2) && !strcmp(strrchr(dir, '/') ?: "", "/containers") &&
		    cut_names(dir, 1))
			found(s, PLACE_DOCKER, dir);
	}
	json_decref(o);
	free(text);
}

/* A shim's directory is STATE/io.containerd.runtime.v2.task/NAMESPACE/ID. */
static void find_shim(const struct search *s, const char *pid)
{
	char link[PATH_MAX], dir[PATH_MAX];
	ssize_t n;

	snprintf(link, sizeof(link), "%s/proc/%s/cwd", s->root, pid);
	n = readlink(link, dir, sizeof(dir) - sizeof("/config.json"));
	if (n <= 0 || !is_roots(s, pid))
		return;
	dir[n] = 0;
	snprintf(link, sizeof(link), "%s%s", s->root, dir);
	strncat(link, "/config.json", sizeof(link) - strlen(link) - 1);
	if (strstr(dir, "/moby/"))
		find_mounted(s, link);
	if (cut_names(dir, 3))
		found(s, PLACE_CONTAINERD, dir);
}

static void find_running(const struct search *s)
{
	char path[PATH_MAX], below[64], *comm;
	struct dirent *e;
	size_t len;
	DIR *d;

	snprintf(path, sizeof(path), "%s/proc", s->root);
	d = opendir(path);
	while (d && (e = readdir(d))) {
		if (!isdigit((unsigned char)*e->d_name) || strlen(e->d_name) > 10)
			continue;
		snprintf(below, sizeof(below), "/proc/%s/comm", e->d_name);
		comm = read_below(s, below, sizeof(below), &len);
		if (comm && !strcmp(comm, "conmon\n") && is_roots(s, e->d_name))
			find_conmon(s, e->d_name);
		else if (comm && !strcmp(comm, "containerd-shim\n") && is_roots(s, e->d_name))
			find_shim(s, e->d_name);
		free(comm);
	}
	if (d)
		closedir(d);
}

void container_places_find(const char *root, container_place_cb *cb, void *arg)
{
	const struct search s = { root, cb, arg };

	find_configured(&s);
	find_running(&s);
}
