/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Parses the state files of runtimes, for container_names.c. Caches nothing. */
#ifndef IBSCOPE_CONTAINER_FILES_H
#define IBSCOPE_CONTAINER_FILES_H

#include "container.h"

#define CONTAINER_NAME_MAX 254 /* with the NUL; pods and containers have at most 253 characters */

struct container_text {
	char container[CONTAINER_NAME_MAX], pod[CONTAINER_NAME_MAX], ns[CONTAINER_NAME_MAX];
	char pod_id[CONTAINER_NAME_MAX]; /* podman's */
};

/* Kind of a directory of state files. */
enum container_place {
	PLACE_DOCKER,	  /* --data-root */
	PLACE_CONTAINERD, /* --state */
	PLACE_PODMAN,	  /* graphroot or runroot, also CRI-O's */
};

/* Fill the empty members of @out from the container's own files in @dir. */
void container_files_read(const char *root, enum container_place place, const char *dir,
			  const struct container *c, struct container_text *out);

/* Which containers to look for: those of this user's runtimes, in this container. */
struct container_scope {
	unsigned int uid;
	char outer[CONTAINER_ID_MAX + 1]; /* container that the runtimes run in; "": none */
};

/* True if all names are valid runtime names. The texts must be terminated. */
bool container_text_valid(const struct container_text *t);

/* @dir is relative to the root and valid during the call. */
typedef void container_place_cb(void *arg, enum container_place place, const char *dir);

/**
 * container_places_find() - find further directories of a user's runtimes
 *
 * From root's configuration, and from options and home directories of daemons and podman's monitors
 * that belong to the user and run in the container, if any.
 */
void container_places_find(const char *root, const struct container_scope *scope,
			   container_place_cb *cb, void *arg);

/* Open the /proc directory of a process in the scope. Return: an fd (O_PATH), or -1. */
int container_places_process(const char *root, const struct container_scope *scope);

/* Directories of a user's runtimes below the home directory in /etc/passwd. */
void container_places_of_home(const char *root, unsigned int uid, container_place_cb *cb,
			      void *arg);

struct container_item {
	char key[CONTAINER_ID_LEN + 1]; /* id or uid */
	char *container, *pod, *ns;	/* may be NULL */
};

/* A whole list, without entries that cannot be parsed. */
struct container_items {
	struct container_item *item; /* sorted by key */
	size_t n, room;
};

/* Read a list of this format. Return: 0, or an errno of reading it. */
typedef int container_items_read(const char *path, size_t max_bytes, struct container_items *out);
container_items_read container_read_podman;   /* a containers.json: names by id */
container_items_read container_read_pods;     /* podman's database: pods by their id */
container_items_read container_read_logs;     /* all three names by id */
container_items_read container_read_pod_logs; /* /var/log/pods: pod and namespace by uid */

void container_items_sort(struct container_items *l);
void container_items_free(struct container_items *l);

/* Fill the empty members of @out with those listed for @key. */
void container_items_find(const struct container_items *l, const char *key,
			  struct container_text *out);

#endif
