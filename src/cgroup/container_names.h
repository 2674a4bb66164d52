/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Names of containers and pods, from the state files of docker, podman, containerd, nerdctl, CRI-O
 * and kubelet on this machine; no daemon is asked. Such files are formats of their makers, who may
 * change them: what is not understood is no name, never an error.
 */
#ifndef IBSCOPE_CONTAINER_NAMES_H
#define IBSCOPE_CONTAINER_NAMES_H

#include "container.h"

/* Letters, digits, "_", "." and "-" only; "" is not known. */
struct container_name {
	const char *container; /* "POD" for the one that holds a pod's namespaces */
	const char *pod, *ns;  /* of Kubernetes; "" outside of it */
};

struct container_names;

/**
 * container_names_open() - nothing is read yet
 * @root: prefix of the file system, "" for the real one
 *
 * For use by one thread at a time. Return: 0 or -ENOMEM.
 */
int container_names_open(const char *root, struct container_names **out);
void container_names_close(struct container_names *n); /* accepts NULL */

/**
 * container_names_find() - what a container or pod is called
 * @c: what container_of_path() or container_each() said
 *
 * Answers are remembered, the 65,536 used last, also after the container is gone. What is not
 * known is looked for again, after 0.1 s at first and at most every 30 s later, since runtimes
 * write some files after they made the cgroup. Root's runtimes name the containers whose cgroups root
 * made, a user's those that this user made, and neither names what is inside another container, where
 * everyone can make any name up. Files above 1 MiB (lists: 4 MiB) not at all.
 *
 * Return: never NULL; valid until the next call.
 */
const struct container_name *container_names_find(struct container_names *n,
						  const struct container *c);

/**
 * container_names_label() - how a container is shown
 *
 * Return: its name, else the first 12 digits of its id; "" if there is none, or if it is a user's and
 * no runtime of theirs knows it. Valid until the next call.
 */
const char *container_names_label(struct container_names *n, const struct container *c);

/* The same of its pod: "namespace/pod", else the pod's uid, "" outside pods. */
const char *container_names_pod_label(struct container_names *n, const struct container *c);

#define CONTAINER_LABEL 512

/*
 * The same labels from a name that is known. @buf may hold the label; else it lives as long as @c and
 * @name.
 */
const char *container_label(const struct container *c, const struct container_name *name,
			    char buf[CONTAINER_LABEL]);
const char *container_pod_label(const struct container *c, const struct container_name *name,
				char buf[CONTAINER_LABEL]);

/**
 * container_matches() - does a pattern fit a container or a pod's cgroup?
 * @pattern: CONTAINER, a pod's uid, NAMESPACE/POD (all of it), or NAMESPACE/POD/CONTAINER, each
 *	     part as fnmatch(3) has it, but that backslashes are ordinary
 */
bool container_matches(const char *pattern, const struct container *c,
		       const struct container_name *name);

/* Is @text such as could begin an id: 4 to 64 hexadecimal digits? */
bool container_is_id_prefix(const char *text);

#endif
