/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What is in the state files of runtimes, for container_names.c. Nothing is remembered here. */
#ifndef IBSCOPE_CONTAINER_FILES_H
#define IBSCOPE_CONTAINER_FILES_H

#include "container.h"

#define CONTAINER_NAME_MAX 254 /* with the zero; pods and containers have at most 253 characters */

struct container_text {
	char container[CONTAINER_NAME_MAX], pod[CONTAINER_NAME_MAX], ns[CONTAINER_NAME_MAX];
};

/* Fill those members of @out that are empty and that the container's own files tell. */
void container_files_by_id(const char *root, const char *id, struct container_text *out);

/* The same from those of the user with the home directory @home. */
void container_files_by_user(const char *root, const char *home, const char *id,
			     struct container_text *out);

struct container_item {
	char key[CONTAINER_ID_LEN + 1]; /* id or uid */
	char *container, *pod, *ns;	/* may be NULL */
};

/* A whole list, what is not understood in it left out. */
struct container_items {
	struct container_item *item; /* sorted by key */
	size_t n, room;
};

/* Read a list of that format. Return: 0; -ENOMEM; else an errno of reading it. */
typedef int container_items_read(const char *path, size_t max_bytes, struct container_items *out);
container_items_read container_read_podman;   /* a containers.json: names by id */
container_items_read container_read_logs;     /* /var/log/containers: all three by id */
container_items_read container_read_pod_logs; /* /var/log/pods: pod and namespace by uid */

void container_items_sort(struct container_items *l);
void container_items_free(struct container_items *l);

/* Fill what is empty in @out with what is listed for @key. */
void container_items_find(const struct container_items *l, const char *key,
			  struct container_text *out);

/* Home directory of @uid in /etc/passwd below @root. Return: whether there is one. */
bool container_home(const char *root, unsigned int uid, char *home, size_t size);

#endif
