// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Any bytes as each state file of a runtime, and as the path of a cgroup: no crash, and a name is
 * only letters, digits, '_', '.' and '-'.
 */
#include <ftw.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cgroup/container.h"

#define ID	"0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
#define ALLOWED "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.-"

static const char *const files[] = {
	"/var/lib/docker/containers/" ID "/config.v2.json",
	"/run/containerd/io.containerd.runtime.v2.task/k8s.io/" ID "/config.json",
	"/run/containers/storage/overlay-containers/" ID "/userdata/config.json",
	"/var/lib/containers/storage/overlay-containers/containers.json",
	"/etc/docker/daemon.json",
	"/etc/passwd",
	"/var/lib/containers/storage/libpod/bolt_state.db",
	"/etc/containerd/config.toml",
	"/run/containerd/io.containerd.runtime.v2.task/default/web/config.json",
};
#define N_FILES (sizeof(files) / sizeof(files[0]))

static char root[64];

static void need(int condition)
{
	if (!condition)
		abort();
}

static int remove_one(const char *path, const struct stat *st, int flag, struct FTW *ftw)
{
	(void)st, (void)flag, (void)ftw;
	return remove(path);
}

static void remove_tree(void)
{
	nftw(root, remove_one, 16, FTW_DEPTH | FTW_PHYS);
}

static void make_tree(void)
{
	char path[512];

	strcpy(root, "/tmp/ibscope-fuzz-XXXXXX");
	need(mkdtemp(root) != NULL);
	atexit(remove_tree);
	for (size_t i = 0; i < N_FILES; i++) {
		snprintf(path, sizeof(path), "%s%s", root, files[i]);
		for (char *s = path + strlen(root) + 1; (s = strchr(s, '/')); *s++ = '/') {
			*s = 0;
			mkdir(path, 0700);
		}
	}
}

static void check(const char *name)
{
	need(name[strspn(name, ALLOWED)] == 0 && strlen(name) < 254);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* The first byte chooses the file. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const struct container_name *name;
	struct container_names *names;
	struct container c;
	char path[512], *text;
	FILE *f;

	if (!size)
		return 0;
	if (!*root)
		make_tree();
	snprintf(path, sizeof(path), "%s%s", root, files[*data % N_FILES]);
	f = fopen(path, "w");
	need(f && fwrite(data + 1, 1, size - 1, f) == size - 1 && !fclose(f));
	names = container_names_open(root);
	need(container_of_path("/user.slice/user-1000.slice/docker-" ID ".scope", NULL, &c));
	container_names_find(names, &c);
	need(container_of_path("/default/web", NULL, &c));
	check(container_names_find(names, &c)->container);
	need(container_of_path("/libpod_parent/" ID "/libpod-" ID, NULL, &c));
	check(container_names_find(names, &c)->pod);
	need(container_of_path("/docker/" ID, NULL, &c));
	name = container_names_find(names, &c);
	check(name->container);
	check(name->pod);
	check(name->ns);
	text = strndup((const char *)data, size);
	need(text != NULL);
	container_matches(text, &c, name);
	container_of_path(text, NULL, &c);
	container_names_label(names, &c);
	container_names_pod_label(names, &c);
	container_names_close(names);
	free(text);
	unlink(path);
	return 0;
}
