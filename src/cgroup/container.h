/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Containers by what runtimes call their cgroups. That is their convention, not the kernel's: a
 * path that says nothing is no proof that there is no container.
 */
#ifndef IBSCOPE_CONTAINER_H
#define IBSCOPE_CONTAINER_H

#include <stdbool.h>
#include <stddef.h>

#define CONTAINER_ID_LEN 64

struct container {
	const char *runtime;	       /* "docker", "containerd", "cri-o", "podman"; "" not said */
	char id[CONTAINER_ID_LEN + 1]; /* hexadecimal; "" for the pod's own cgroup */
	char pod_uid[37];	       /* as Kubernetes writes it, with dashes; "" outside a pod */
	unsigned int depth; /* containers around it and itself: 2 is one inside another */
	unsigned int uid;   /* of the user whose runtime made the cgroup; 0: root's */
	bool host_pod;	    /* the pod is of root's kubelet, not of one inside a container */
	size_t path_len;    /* of the path, up to the cgroup that is the container's */
};

/*
 * Whoever owns a cgroup names those below it as they like, so that a name is evidence of a runtime of
 * theirs only. This is the topmost cgroup of a path that is not root's.
 */
struct container_owner {
	unsigned int uid; /* 0: all of the path is root's */
	size_t path_len;
};

/**
 * container_of_path() - which container or pod a cgroup belongs to
 * @path: as cgroup_tree_path() gives them
 * @owner: NULL: not known, then it is by user-UID.slice
 * @out:  all empty if there is none
 *
 * Cgroups below a container's own belong to it. Of nested ones (kind, Docker in Docker) it is the
 * innermost, with the pod that is nearest around it. A pod's cgroup that is in no container of it,
 * such as that of a conmon, has only a pod_uid.
 *
 * Return: whether there is a container or a pod.
 */
bool container_of_path(const char *path, const struct container_owner *owner,
		       struct container *out);

/* Return: 0 to continue. */
typedef int container_cb(void *arg, const struct container *c);

/**
 * container_each() - call @cb for each container and pod around a cgroup, the outermost first
 * @owner: as of container_of_path()
 * @scratch: what @cb is shown; in the end as of container_of_path()
 *
 * Return: 0, or what @cb returned.
 */
int container_each(const char *path, const struct container_owner *owner, struct container *scratch,
		   container_cb *cb, void *arg);

#endif
