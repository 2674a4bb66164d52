/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Containers by what runtimes call their cgroups. That is their convention, not the kernel's: a
 * path that says nothing is no proof that there is no container.
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
	CONTAINER_BY_NAME, /* it is the name; LXC, systemd-nspawn */
	CONTAINER_GUESS,   /* it is NAMESPACE/NAME of containerd, if a state file says so */
};

/* A container that others are in. */
struct container_outer {
	enum container_kind kind;
	unsigned int uid;
	const char *runtime;
	char id[CONTAINER_ID_MAX + 1]; /* "": there is none */
};

struct container {
	enum container_kind kind;
	const char *
		runtime; /* "docker", "containerd", "cri-o", "podman", "lxc", "nspawn"; "" unknown */
	char id[CONTAINER_ID_MAX + 1]; /* "" for the pod's own cgroup */
	char pod_uid
		[CONTAINER_ID_LEN +
		 1]; /* as Kubernetes writes it, with dashes; podman's id of it; "" outside a pod */
	unsigned int depth; /* containers around it and itself: 2 is one inside another */
	unsigned int uid;   /* of the user whose runtime made the cgroup; 0: root's */
	bool host_pod;	    /* the pod is of root's kubelet, not of one inside a container */
	size_t path_len;    /* of the path, up to the cgroup that is the container's */
	struct container_outer outer; /* the outermost one around it, or around its pod */
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
 * Return: whether there is, or may be, a container or a pod.
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

/*
 * Names of containers and pods, from the state files of docker, podman, containerd, nerdctl, CRI-O
 * and kubelet on this machine; no daemon is asked. The runtimes own these
 * formats and may change them, so a file that is not understood gives no name, never an error.
 */

/*
 * Letters, digits, "_", "." and "-" only; "" is not known. What is inside another container has that
 * one's label and a "/" before its name, and before the namespace (podman: the name) of a pod in there.
 */
struct container_name {
	const char *container; /* "POD" for the one that holds a pod's namespaces */
	const char *pod, *ns;  /* of Kubernetes; "" outside of it */
};

struct container_names;

/**
 * container_names_open() - nothing is read yet
 * @root: prefix of the file system, "" for the real one
 *
 * For use by one thread at a time.
 */
struct container_names *container_names_open(const char *root);
void container_names_close(struct container_names *n); /* accepts NULL */

/**
 * container_names_find() - what a container or pod is called
 * @c: what container_of_path() or container_each() said
 *
 * Answers are remembered, some 65,536, those used last, also after the container is gone. What is not
 * known is looked for again, after 0.1 s at first and at most every 30 s later, since runtimes
 * write some files after they made the cgroup; what is known, after 10 s, since it may be renamed.
 * Root's runtimes name the containers whose cgroups root made, a user's those that this user made.
 * What is inside another container, where everyone can make any name up, is named by the files in
 * there, which a process of their own reads (CAP_SYS_PTRACE, CAP_SYS_CHROOT). Files above 1 MiB
 * (lists: 4 MiB) are not read. Where root's runtimes keep their files is taken from their
 * configuration and their processes, for at most 1 % of a CPU.
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

/**
 * container_names_unreadable() - state that is there, and that this process may not read
 * @path: filled with its directory, behind @root
 * @found: set to whether any runtime's state can be read
 *
 * Return: whether there is some; then names are missing.
 */
bool container_names_unreadable(const char *root, bool *found, char *path, size_t size);

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
 * @pattern: CONTAINER, a pod's uid, NAMESPACE/POD (all of it), or NAMESPACE/POD/CONTAINER, with the
 *	     label of a container around it and a "/" before; each part as fnmatch(3) has it, but
 *	     that backslashes are ordinary
 */
bool container_matches(const char *pattern, const struct container *c,
		       const struct container_name *name);

/* Is it a container without a name, which may become known? */
static inline bool container_is_nameless(const struct container *c,
					 const struct container_name *name)
{
	return *c->id && c->kind == CONTAINER_BY_ID && !*name->container;
}

/* Is @text such as could begin an id: 4 to 64 hexadecimal digits? */
bool container_is_id_prefix(const char *text);

#endif
