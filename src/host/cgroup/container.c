// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "container.h"

#include <stdio.h>
#include <string.h>

#define HEX	     "0123456789abcdef"
#define ALNUM	     "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789"
#define UID_LEN	     36 /* 8-4-4-4-12 */
#define HASH_UID_LEN 32 /* static pods use a hash of their file */

struct text {
	const char *s;
	size_t len;
};

/* Names are PREFIX-ID, or with the systemd driver PREFIX-ID.scope. */
static const struct {
	const char *prefix, *runtime;
} prefixes[] = {
	{ "docker", "docker" },	     { "cri-containerd", "containerd" },
	{ "nerdctl", "containerd" }, { "crio", "cri-o" },
	{ "libpod", "podman" },	     { "libpod-payload", "podman" }, /* --cgroups=split */
};

#define N_PREFIXES (sizeof(prefixes) / sizeof(prefixes[0]))

static bool is(struct text t, const char *s)
{
	return t.len == strlen(s) && !memcmp(t.s, s, t.len);
}

static bool is_id(struct text t)
{
	return t.len == CONTAINER_ID_LEN && strspn(t.s, HEX) >= t.len;
}

static bool cut_suffix(struct text *t, const char *suffix)
{
	size_t n = strlen(suffix);

	if (t->len < n || memcmp(t->s + t->len - n, suffix, n))
		return false;
	t->len -= n;
	return true;
}

static bool cut_prefix(struct text *t, const char *prefix)
{
	size_t n = strlen(prefix);

	if (t->len < n || memcmp(t->s, prefix, n))
		return false;
	t->s += n;
	t->len -= n;
	return true;
}

/* True if it can be a name, and is not a systemd unit. */
static bool is_name(struct text t)
{
	static const char *const units[] = { ".slice", ".scope", ".service", ".mount" };

	if (!t.len || t.len > CONTAINER_NAME_PART || !*t.s || !strchr(ALNUM, *t.s) ||
	    strspn(t.s, ALNUM "_.-") < t.len)
		return false;
	for (size_t i = 0; i < sizeof(units) / sizeof(units[0]); i++) {
		struct text rest = t;

		if (cut_suffix(&rest, units[i]))
			return false;
	}
	return true;
}

static const char *runtime_of(struct text prefix)
{
	size_t i;

	for (i = 0; i < N_PREFIXES; i++) {
		if (is(prefix, prefixes[i].prefix))
			return prefixes[i].runtime;
	}
	return "";
}

/* "kubepods-burstable-pod0123_4567.slice" and "pod0123-4567", of any kubelet --cgroup-root. */
static bool is_kube_pod(struct text name, char uid[CONTAINER_ID_LEN + 1])
{
	const char *mark = "pod";
	char sep = '-';
	size_t i;

	if (cut_suffix(&name, ".slice")) {
		mark = "-pod"; /* slices repeat the names of their parents */
		sep = '_';
	}
	if (name.len > UID_LEN && memchr(name.s + name.len - UID_LEN, sep, UID_LEN))
		i = name.len - UID_LEN;
	else if (name.len > HASH_UID_LEN)
		i = name.len - HASH_UID_LEN;
	else
		return false;
	name.s += i;
	name.len -= i;
	if (i < strlen(mark) || memcmp(name.s - strlen(mark), mark, strlen(mark)) ||
	    (sep == '-' && i != strlen(mark)))
		return false;
	for (i = 0; i < name.len; i++) {
		bool dash = name.len == UID_LEN && (i == 8 || i == 13 || i == 18 || i == 23);

		if (dash ? name.s[i] != sep : !strchr(HEX, name.s[i]))
			return false;
		uid[i] = dash ? '-' : name.s[i];
	}
	uid[i] = 0;
	return true;
}

/* podman's, by driver: machine-libpod_pod_ID.slice (a user's: user-...), libpod_parent/ID */
static bool is_pod(struct text name, struct text parent, char uid[CONTAINER_ID_LEN + 1])
{
	struct text id = name;

	if (!is(parent, "libpod_parent")) {
		if (!cut_suffix(&id, ".slice") || (!cut_prefix(&id, "machine-libpod_pod_") &&
						   !cut_prefix(&id, "user-libpod_pod_")))
			return is_kube_pod(name, uid);
	}
	if (!is_id(id))
		return false;
	memcpy(uid, id.s, id.len);
	uid[id.len] = 0;
	return true;
}

/* True if @name is that of a container; @id gets its last 64 digits. */
static bool is_container(struct text name, struct text parent, struct text *id,
			 const char **runtime)
{
	size_t i;

	*id = name;
	if (is_id(name)) {
		*runtime = is(parent, "docker") ? "docker" : "";
		return true;
	}
	cut_suffix(&name, ".scope");
	for (i = 0; i < N_PREFIXES; i++) {
		*id = name;
		*runtime = prefixes[i].runtime;
		if (cut_prefix(id, prefixes[i].prefix) && cut_prefix(id, "-") && is_id(*id))
			return true;
	}
	return false;
}

/*
 * SLICE:PREFIX:ID, if kubelet uses the systemd driver and the runtime does not: the request to
 * systemd becomes the name of a directory.
 */
static bool is_request(struct text name, struct text *slice, struct text *id, const char **runtime)
{
	const char *colon = memrchr(name.s, ':', name.len);
	const char *first = colon ? memrchr(name.s, ':', colon - name.s) : NULL;

	if (!first)
		return false;
	*id = (struct text){ colon + 1, name.s + name.len - colon - 1 };
	*runtime = runtime_of((struct text){ first + 1, colon - first - 1 });
	if (!is_id(*id))
		return false;
	*slice = (struct text){ name.s, first - name.s };
	return true;
}

/* NAME of machine-NAME.scope, where systemd writes "-" as "\x2d". */
static bool unescape(struct text t, char id[CONTAINER_ID_MAX + 1])
{
	size_t n = 0;

	while (t.len && n <= CONTAINER_NAME_PART) {
		bool dash = cut_prefix(&t, "\\x2d");

		id[n++] = dash ? '-' : *t.s;
		t.s += !dash;
		t.len -= !dash;
	}
	id[n] = 0;
	return !t.len && is_name((struct text){ id, n });
}

/*
 * Containers with a name but no id. @first: @parent is at the top; @users: in a user's slice, where
 * LXC may run.
 *
 * Return: false if it is not a container.
 */
static bool is_named(struct text name, struct text parent, bool first, bool users,
		     struct container *out)
{
	struct text id = name;

	out->kind = CONTAINER_BY_NAME;
	if (cut_prefix(&id, "lxc.payload.") || is(parent, "lxc.payload")) {
		out->runtime = "lxc";
		return unescape(id, out->id);
	}
	if (users)
		return false;
	if (is(name, "payload")) {
		id = parent;
		out->runtime = "nspawn";
		if ((cut_prefix(&id, "machine-") && cut_suffix(&id, ".scope")) ||
		    (cut_prefix(&id, "systemd-nspawn@") && cut_suffix(&id, ".service")))
			return unescape(id, out->id);
	}
	/* "ctr run": /NAMESPACE/NAME, which may also be any other cgroup */
	if (!first || !is_name(parent) || !is_name(name))
		return false;
	out->kind = CONTAINER_GUESS;
	out->runtime = "containerd";
	snprintf(out->id, sizeof(out->id), "%.*s/%.*s", (int)parent.len, parent.s, (int)name.len,
		 name.s);
	return true;
}

/* The user of the slice that a path is in; systemd runs nothing of root's there. */
static struct container_owner owner_by_path(const char *path)
{
	struct container_owner o = { 0, 0 };
	int end = 0;

	if (sscanf(path, "/user.slice/user-%u.slice%n", &o.uid, &end) != 1 || !end ||
	    (path[end] && path[end] != '/'))
		o.uid = 0;
	o.path_len = end;
	return o;
}

/* A component of a path, and what it is. */
struct component {
	struct text name, slice, id;
	const char *runtime;
	char pod_uid[CONTAINER_ID_LEN + 1];
	unsigned int uid; /* that owns it */
	size_t end;	  /* of the path up to here */
	bool second;	  /* of the path: it may be named by its first two */
};

static void take_place(struct container *out, enum container_kind kind, const char *runtime,
		       const struct component *c)
{
	out->kind = kind;
	out->runtime = runtime;
	out->path_len = c->end;
	out->uid = c->uid;
}

/* Return: whether the component is a pod, or names one in front of a container. */
static bool take_container(struct container *out, struct component *c, struct text parent)
{
	struct container named;

	if (is_pod(c->name, parent, c->pod_uid))
		return true;
	if (is_container(c->name, parent, &c->id, &c->runtime) ||
	    is_request(c->name, &c->slice, &c->id, &c->runtime)) {
		memcpy(out->id, c->id.s, CONTAINER_ID_LEN);
		out->id[CONTAINER_ID_LEN] = 0;
		take_place(out, CONTAINER_BY_ID, c->runtime, c);
		out->depth++;
		return c->slice.len != c->name.len && is_pod(c->slice, parent, c->pod_uid);
	}
	/* not in another container: only the path identifies it */
	if (!out->depth && !*out->pod_uid && is_named(c->name, parent, c->second, c->uid, &named)) {
		memcpy(out->id, named.id, sizeof(out->id));
		take_place(out, named.kind, named.runtime, c);
		out->depth = named.kind != CONTAINER_GUESS;
	}
	return false;
}

static void take_pod(struct container *out, const struct component *c)
{
	memcpy(out->pod_uid, c->pod_uid, sizeof(c->pod_uid));
	out->host_pod = !c->uid && out->depth == (c->slice.len != c->name.len);
	if (c->slice.len == c->name.len) { /* the container around it is its node */
		*out->id = 0;
		take_place(out, CONTAINER_BY_ID, "", c);
	}
}

int container_each(const char *path, const struct container_owner *owner, struct container *out,
		   container_cb *cb, void *arg)
{
	struct container_owner by_path = owner_by_path(path);
	struct container_outer first = { .id = "" };
	struct component c = { .pod_uid = "" };
	struct text parent = { "", 0 };
	const char *s, *end;
	int ret = 0;

	if (!owner || (by_path.uid && (!owner->uid || by_path.path_len < owner->path_len)))
		owner = &by_path;
	memset(out, 0, sizeof(*out));
	out->runtime = "";
	for (s = path; *s && !ret; s = end) {
		s += *s == '/';
		end = strchrnul(s, '/');
		c.name = c.slice = (struct text){ s, end - s };
		c.uid = (size_t)(s - path) > owner->path_len ? owner->uid : 0;
		c.end = end - path;
		c.second = parent.s == path + 1;
		if (take_container(out, &c, parent))
			take_pod(out, &c);
		parent = c.name;
		if (out->depth == 1 && *out->id && !*first.id) {
			first = (struct container_outer){ out->kind, out->uid, out->runtime, "" };
			memcpy(first.id, out->id, sizeof(first.id));
		} else if (out->depth > 1 || !*out->id) {
			out->outer = first;
		}
		if (cb && out->path_len == c.end)
			ret = cb(arg, out);
	}
	return ret;
}

bool container_of_path(const char *path, const struct container_owner *owner, struct container *out)
{
	container_each(path, owner, out, NULL, NULL);
	return *out->id || *out->pod_uid;
}
