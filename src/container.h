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
	size_t path_len;    /* of the path, up to the cgroup that is the container's */
};

/**
 * container_of_path() - which container or pod a cgroup belongs to
 * @path: as cgroup_tree_path() gives them
 * @out:  all empty if there is none
 *
 * Cgroups below a container's own belong to it. Of nested ones (kind, Docker in Docker) it is the
 * innermost, with the pod that is nearest around it. A pod's cgroup that is in no container of it,
 * such as that of a conmon, has only a pod_uid.
 *
 * Return: whether there is a container or a pod.
 */
bool container_of_path(const char *path, struct container *out);

#endif
