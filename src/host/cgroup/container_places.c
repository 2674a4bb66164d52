// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "container_files.h"
#include "base/regular.h"
#include "base/std.h"

#include <ctype.h>
#include <dirent.h>
#include <fcntl.h>
#include <jansson.h>
#include <limits.h>
#include <pwd.h>
#include <sys/stat.h>
#include <unistd.h>

#define TEXT_MAX (1 << 20) /* limit for a configuration file or command line */
#define PROC_MAX (16 << 10)

struct search {
	const char *root;
	const struct container_scope *scope;
	container_place_cb *cb;
	void *arg;
};

/* Read the beginning of a file. Return: terminated text to be freed; NULL on failure. */
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

/* A user's directories must belong to the user: nobody else's state names their containers. */
static void report_place(const struct search *s, enum container_place place, const char *dir)
{
	char path[PATH_MAX];
	struct stat st;

	if (*dir != '/' || !dir[1])
		return;
	if (s->scope->uid &&
	    (snprintf(path, sizeof(path), "%s%s", s->root, dir) >= (int)sizeof(path) ||
	     stat(path, &st) || st.st_uid != s->scope->uid))
		return;
	s->cb(s->arg, place, dir);
}

/* --- configuration --- */

static void find_docker(const struct search *s, const char *text)
{
	json_t *o = json_loads(text, 0, NULL);

	report_place(s, PLACE_DOCKER, json_string_value(json_object_get(o, "data-root")) ?: "");
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
			report_place(s, place, dir);
	}
}

static void find_in_file(const struct search *s, enum container_place place, const char *file)
{
	size_t len;
	char *text = read_below(s, file, TEXT_MAX, &len);

	if (text && place == PLACE_DOCKER)
		find_docker(s, text);
	else if (text && place == PLACE_CONTAINERD)
		find_toml(s, place, text, "state");
	else if (text)
		find_toml(s, place, text, "graphroot");
	if (text && place == PLACE_PODMAN)
		find_toml(s, place, text, "runroot");
	free(text);
}

/* --- home directories --- */

static void find_in_home(const struct search *s, const char *home)
{
	static const struct {
		enum container_place place;
		const char *dir, *config;
	} below[] = {
		{ PLACE_DOCKER, "/.local/share/docker", "/.config/docker/daemon.json" },
		{ PLACE_PODMAN, "/.local/share/containers/storage",
		  "/.config/containers/storage.conf" },
	};
	char path[PATH_MAX];

	for (size_t i = 0; i < ARRAY_SIZE(below); i++) {
		if (snprintf(path, sizeof(path), "%s%s", home, below[i].dir) < (int)sizeof(path))
			s->cb(s->arg, below[i].place, path);
		if (snprintf(path, sizeof(path), "%s%s", home, below[i].config) < (int)sizeof(path))
			find_in_file(s, below[i].place, path);
	}
}

void container_places_of_home(const char *root, unsigned int uid, container_place_cb *cb, void *arg)
{
	const struct container_scope scope = { .uid = uid };
	const struct search s = { root, &scope, cb, arg };
	char path[PATH_MAX];
	struct passwd *pw;
	bool known = false;
	FILE *f;

	snprintf(path, sizeof(path), "%s/etc/passwd", root);
	f = fopen(path, "re");
	while (f && !known && (pw = fgetpwent(f))) {
		known = pw->pw_uid == uid && *pw->pw_dir == '/';
		if (known)
			find_in_home(&s, pw->pw_dir);
	}
	if (f)
		fclose(f);
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
 * True if a process belongs to the user and is not in another container, which could name itself
 * anything. Checked before reading a process and again afterwards, since its pid may be reused.
 */
static bool is_theirs(const struct search *s, const char *pid)
{
	char below[64], *text, *save = NULL;
	unsigned int uid[4] = { -1, -1, -1, -1 }, n_pids = 0;
	const char *outer = s->scope->outer;
	struct container c;
	bool ok, found, inside = !*outer;
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
	for (int i = 0; i < 4; i++)
		if (uid[i] != s->scope->uid)
			return false;
	if (n_pids != 1 && !*outer)
		return false;
	snprintf(below, sizeof(below), "/proc/%s/cgroup", pid);
	text = read_below(s, below, PROC_MAX, &len);
	ok = text && *text;
	for (char *l = ok ? strtok_r(text, "\n", &save) : NULL; l;
	     l = strtok_r(NULL, "\n", &save)) {
		const char *path = strchr(l, ':');

		path = path ? strchr(path + 1, ':') : NULL;
		found = path && container_of_path(path + 1, NULL, &c) && *c.id &&
			c.kind != CONTAINER_GUESS;
		if (found && c.depth == 1 && !strcmp(c.id, outer))
			inside = true;
		else if ((found && !container_is_ours(s->root, path + 1)) || !path)
			ok = false;
	}
	free(text);
	return ok && inside;
}

static const struct {
	const char *comm, *option;
	enum container_place place;
	bool file; /* the value is a configuration file */
	int below; /* depth of the value below the place */
} options[] = {
	{ "conmon\n", "-b", PLACE_PODMAN, false, 3 }, /* GRAPHROOT/overlay-containers/ID/userdata */
	{ "dockerd\n", "--data-root", PLACE_DOCKER, false, 0 },
	{ "dockerd\n", "--config-file", PLACE_DOCKER, true, 0 },
	{ "containerd\n", "--state", PLACE_CONTAINERD, false, 0 },
	{ "containerd\n", "--config", PLACE_CONTAINERD, true, 0 },
	{ "containerd\n", "-c", PLACE_CONTAINERD, true, 0 },
};

/* The value in "OPTION=VALUE", or @next. Return: NULL if it is another option. */
static char *value_of(char *arg, const char *option, char *next)
{
	size_t len = strlen(option);

	if (strncmp(arg, option, len))
		return NULL;
	return arg[len] == '=' ? arg + len + 1 : arg[len] ? NULL : next;
}

/* Use $HOME: users of a directory service are not in /etc/passwd. */
static void find_in_environ(const struct search *s, const char *pid)
{
	char below[64], *text;
	size_t len;

	snprintf(below, sizeof(below), "/proc/%.10s/environ", pid);
	text = read_below(s, below, PROC_MAX, &len);
	if (!text || !is_theirs(s, pid))
		len = 0;
	for (size_t at = 0; at < len; at += strlen(text + at) + 1)
		if (!strncmp(text + at, "HOME=/", 6))
			find_in_home(s, text + at + 5);
	free(text);
}

static void find_in_argv(const struct search *s, const char *pid, const char *comm)
{
	char below[64], *argv = NULL, *value;
	size_t len = 0, at, i;

	for (i = 0; i < ARRAY_SIZE(options); i++)
		if (!strcmp(comm, options[i].comm))
			break;
	if (i == ARRAY_SIZE(options) || !is_theirs(s, pid))
		return;
	snprintf(below, sizeof(below), "/proc/%.10s/cmdline", pid);
	argv = read_below(s, below, PROC_MAX, &len);
	if (!argv || !is_theirs(s, pid))
		len = 0;
	for (at = 0; at < len; at += strlen(argv + at) + 1) {
		char *next = argv + at + strlen(argv + at);

		next += next < argv + len; /* the last one is terminated, too */
		for (i = 0; i < ARRAY_SIZE(options); i++) {
			if (strcmp(comm, options[i].comm))
				continue;
			value = value_of(argv + at, options[i].option, next);
			if (!value)
				continue;
			if (options[i].file)
				find_in_file(s, options[i].place, value);
			else if (cut_names(value, options[i].below))
				report_place(s, options[i].place, value);
		}
	}
	free(argv);
	if (s->scope->uid)
		find_in_environ(s, pid);
}

/* Return: 0, or what @each returned. */
static int each_process(const struct search *s,
			int (*each)(const struct search *s, const char *pid))
{
	char path[PATH_MAX];
	struct dirent *e;
	int ret = 0;
	DIR *d;

	snprintf(path, sizeof(path), "%s/proc", s->root);
	d = opendir(path);
	while (d && !ret && (e = readdir(d)))
		if (isdigit((unsigned char)*e->d_name) && strlen(e->d_name) <= 10)
			ret = each(s, e->d_name);
	if (d)
		closedir(d);
	return ret;
}

static int find_in_process(const struct search *s, const char *pid)
{
	char below[64], *comm;
	size_t len;

	snprintf(below, sizeof(below), "/proc/%.10s/comm", pid);
	comm = read_below(s, below, sizeof(below), &len);
	if (comm)
		find_in_argv(s, pid, comm);
	free(comm);
	return 0;
}

/* Open a process directory, which keeps referring to the process that was checked. */
static int open_process(const struct search *s, const char *pid)
{
	char path[PATH_MAX];
	int fd;

	snprintf(path, sizeof(path), "%s/proc/%.10s", s->root, pid);
	fd = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (fd >= 0 && is_theirs(s, pid))
		return fd;
	if (fd >= 0)
		close(fd);
	return 0;
}

int container_places_process(const char *root, const struct container_scope *scope)
{
	const struct search s = { .root = root, .scope = scope };

	return each_process(&s, open_process) ?: -1;
}

void container_places_find(const char *root, const struct container_scope *scope,
			   container_place_cb *cb, void *arg)
{
	const struct search s = { root, scope, cb, arg };

	if (!scope->uid || *scope->outer) {
		find_in_file(&s, PLACE_DOCKER, "/etc/docker/daemon.json");
		find_in_file(&s, PLACE_CONTAINERD, "/etc/containerd/config.toml");
		find_in_file(&s, PLACE_PODMAN, "/etc/containers/storage.conf");
	}
	each_process(&s, find_in_process);
}
