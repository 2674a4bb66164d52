/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Identifies containers by the names that runtimes give cgroups. That is a convention, not the
 * kernel's: other paths may be containers, too.
 */
#ifndef IBSCOPE_CONTAINER_H
#define IBSCOPE_CONTAINER_H

#include <stdbool.h>
#include <stddef.h>

#define CONTAINER_ID_LEN    64
#define CONTAINER_NAME_PART 76 /* of containerd's namespaces and ids */
#define CONTAINER_ID_MAX    (2 * CONTAINER_NAME_PART + 1)

enum container_kind {
	CONTAINER_BY_ID,   /* the id is hexadecimal */
	CONTAINER_BY_NAME, /* the id is the name; LXC, systemd-nspawn */
	CONTAINER_GUESS,   /* the id is containerd's NAMESPACE/NAME, if a state file confirms it */
};

/* A container that contains others. */
struct container_outer {
	enum container_kind kind;
	unsigned int uid;
	const char *runtime;
	char id[CONTAINER_ID_MAX + 1]; /* "": none */
};

struct container {
	enum container_kind kind;
	const char *
		runtime; /* "docker", "containerd", "cri-o", "podman", "lxc", "nspawn"; "" unknown */
	char id[CONTAINER_ID_MAX + 1]; /* "" for the pod's own cgroup */
	char pod_uid
		[CONTAINER_ID_LEN +
		 1]; /* in Kubernetes' form with dashes; podman's id of the pod; "" outside a pod */
	unsigned int depth; /* nesting depth: 2 is a container inside another */
	unsigned int uid;   /* user of the runtime that created the cgroup; 0: root */
	bool host_pod;	    /* the pod belongs to root's kubelet, not to one inside a container */
	size_t path_len;    /* length of the path up to the container's cgroup */
	struct container_outer outer; /* outermost container around it or its pod */
};

/*
 * The owner of a cgroup can name its children freely, so a name only indicates a runtime of that
 * owner. This is the topmost cgroup of a path that is not root's.
 */
struct container_owner {
	unsigned int uid; /* 0: root owns the whole path */
	size_t path_len;
};

/**
 * container_of_path() - find the container or pod of a cgroup
 * @path: as cgroup_tree_path() returns it
 * @owner: NULL: unknown, derived from user-UID.slice
 * @out:  all empty if there is none
 *
 * Cgroups below a container's own belong to it. Of nested containers (kind, Docker in Docker) it is
 * the innermost, with its nearest pod. A pod's cgroup outside its containers, such as that of a
 * conmon, has only a pod_uid.
 *
 * Return: whether there is, or may be, a container or a pod.
 */
bool container_of_path(const char *path, const struct container_owner *owner,
		       struct container *out);

/**
 * container_is_ours() - whether the innermost container of a cgroup is that of this process
 * @root: prefix of the file system, "" for the real one
 *
 * A process in a container sees its own cgroup with the container's name unless it has a cgroup
 * namespace, and some runtimes make none for v1. What is in the same container has its files.
 */
bool container_is_ours(const char *root, const char *path);

/* Return: 0 to continue. */
typedef int container_cb(void *arg, const struct container *c);

/**
 * container_each() - call @cb for each container and pod around a cgroup, the outermost first
 * @owner: as of container_of_path()
 * @scratch: passed to @cb; at the end as from container_of_path()
 *
 * Return: 0, or what @cb returned.
 */
int container_each(const char *path, const struct container_owner *owner, struct container *scratch,
		   container_cb *cb, void *arg);

/*
 * Names of containers and pods, from the state files of docker, podman, containerd, nerdctl, CRI-O
 * and kubelet on this machine; no daemon is asked. The runtimes own these formats and may change
 * them, so a file that cannot be parsed gives no name, never an error.
 */

/*
 * Only letters, digits, "_", "." and "-"; "": unknown. For containers inside another one, the name,
 * and the namespace (podman: the name) of a pod, are prefixed with the outer label and a "/".
 */
struct container_name {
	const char *container; /* "POD" for the one with a pod's namespaces */
	const char *pod, *ns;  /* Kubernetes names; "" outside of it */
};

struct container_names;

/**
 * container_names_open() - reads nothing yet
 * @root: prefix of the file system, "" for the real one
 *
 * Not thread-safe.
 */
struct container_names *container_names_open(const char *root);
void container_names_close(struct container_names *n); /* accepts NULL */

/**
 * container_names_find() - the name of a container or pod
 * @c: from container_of_path() or container_each()
 *
 * Some 65,536 answers are cached, those used last, even after the container is gone. Unknown names
 * are looked up again, after 0.1 s at first and later every 30 s at most, since runtimes write some
 * files after creating the cgroup; known names after 10 s, since containers can be renamed. Root's
 * runtimes name containers in cgroups that root created, a user's runtimes those in cgroups of that
 * user. Inside another container anyone can invent names, so those are resolved from the files in
 * there by a separate process (CAP_SYS_PTRACE, CAP_SYS_CHROOT). Files above 1 MiB (lists: 4 MiB)
 * are not read. The directories of root's runtimes are found from their configuration and
 * processes, using at most 1 % of a CPU.
 *
 * Return: never NULL; valid until the next call.
 */
const struct container_name *container_names_find(struct container_names *n,
						  const struct container *c);

/**
 * container_names_label() - the label of a container
 *
 * Return: its name, else the first 12 digits of its id; "" if there is none, or if it is a user's
 * and no runtime of that user knows it. Valid until the next call.
 */
const char *container_names_label(struct container_names *n, const struct container *c);

/* The same for its pod: "namespace/pod", else the pod's uid, "" outside pods. */
const char *container_names_pod_label(struct container_names *n, const struct container *c);

/**
 * container_names_unreadable() - check for state that this process may not read
 * @path: gets its directory, relative to @root
 * @found: set to whether any runtime's state can be read
 *
 * Return: whether there is some; names are then missing.
 */
bool container_names_unreadable(const char *root, bool *found, char *path, size_t size);

#define CONTAINER_LABEL 512

/* What views for people print for processes in no container; names have no comma and no blank. */
#define CONTAINER_NONE "host, no container"

/* "ibscope-PID-NUMBER": the cgroup in which a measured command runs. */
#define CONTAINER_COMMAND "ibscope-"
bool container_is_command(const char *name);

/* The cgroup as people know it: without that of a measured command, which exists for its sake alone. Cuts @path. */
void container_cut_command(char *path);

/*
 * The same labels from a known name. @buf may hold the label; else it is valid as long as @c and
 * @name.
 */
const char *container_label(const struct container *c, const struct container_name *name,
			    char buf[CONTAINER_LABEL]);
const char *container_pod_label(const struct container *c, const struct container_name *name,
				char buf[CONTAINER_LABEL]);

/**
 * container_matches() - match a container or a pod's cgroup against a pattern
 * @pattern: CONTAINER, a pod's uid, NAMESPACE/POD (all of it), or NAMESPACE/POD/CONTAINER, prefixed
 *           with the label of an outer container and a "/"; each part as in fnmatch(3), except that
 *           backslashes are ordinary
 */
bool container_matches(const char *pattern, const struct container *c,
		       const struct container_name *name);

/* True for a container without a name, which may become known. */
static inline bool container_is_nameless(const struct container *c,
					 const struct container_name *name)
{
	return *c->id && c->kind == CONTAINER_BY_ID && !*name->container;
}

/* True if @text could be the beginning of an id: 4 to 64 hexadecimal digits. */
bool container_is_id_prefix(const char *text);

#endif
