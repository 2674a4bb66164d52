// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "replay_cgroups.h"

#include "cgroup.h"
#include "container_names.h"
#include "num.h"

#include <errno.h>
#include <fnmatch.h>
#include <stdlib.h>
#include <string.h>

/* What an option or a predicate names. */
struct spec {
	enum { SPEC_PATH, SPEC_PATTERN, SPEC_ID, SPEC_CONTAINER, SPEC_CONTAINER_PATTERN } kind;
	char *text; /* of paths and patterns: canonical */
	__u64 id;
	__u16 min_lat;
	bool out;
	__u8 filter; /* a bit: it is a predicate; 0: of --cgroup */
	bool found;
};

struct specs {
	struct spec *list;
	size_t n, room;
};

int replay_cgroups_add(struct replay_cgroups *c, __u64 id, const char *path)
{
	long n = key_map_find_id(&c->ids, id);

	if (n < 0)
		n = key_map_add_id(&c->ids, id);
	if (n < 0)
		return -ENOMEM;
	if (c->room < c->ids.room) {
		char **paths = reallocarray(c->paths, c->ids.room, sizeof(*paths));

		if (!paths)
			return -ENOMEM;
		memset(paths + c->room, 0, (c->ids.room - c->room) * sizeof(*paths));
		c->paths = paths;
		c->room = c->ids.room;
	}
	if (!path || (c->paths[n] && !strcmp(c->paths[n], path)))
		return 0;
	free(c->paths[n]);
	c->paths[n] = strdup(path);
	return c->paths[n] ? 0 : -ENOMEM;
}

const char *replay_cgroups_path(const struct replay_cgroups *c, __u64 id)
{
	long n = key_map_find_id(&c->ids, id);

	return n < 0 || (size_t)n >= c->room ? NULL : c->paths[n];
}

void replay_cgroups_free(struct replay_cgroups *c)
{
	for (size_t i = 0; i < c->room; i++)
		free(c->paths[i]);
	free(c->paths);
	key_map_free(&c->ids);
	memset(c, 0, sizeof(*c));
}

static void specs_free(struct specs *s)
{
	for (size_t i = 0; i < s->n; i++)
		free(s->list[i].text);
	free(s->list);
}

/* "/a/b" of "a//b/"; "" is the root. Mounts where they usually are may stand in front. */
static char *canonical(const char *text)
{
	static const char *const mounts[] = { "/sys/fs/cgroup/unified", "/sys/fs/cgroup" };
	char *path = malloc(strlen(text) + 2), *d = path;
	const char *s = text, *end;

	if (!path)
		return NULL;
	for (size_t i = 0; i < 2 && s == text; i++) {
		size_t n = strlen(mounts[i]);

		if (!strncmp(s, mounts[i], n) && (!s[n] || s[n] == '/'))
			s += n;
	}
	for (; *s; s = end) {
		s += strspn(s, "/");
		end = strchrnul(s, '/');
		if (end == s || (end - s == 1 && *s == '.'))
			continue;
		*d++ = '/';
		d = mempcpy(d, s, end - s);
	}
	*d = 0;
	return path;
}

static bool only_digits(const char *s)
{
	return *s && !s[strspn(s, "0123456789")];
}

static struct spec *new_spec(struct specs *s, struct err *err)
{
	if (s->n == s->room) {
		size_t room = s->room ? 2 * s->room : 16;
		struct spec *list = reallocarray(s->list, room, sizeof(*list));

		if (!list) {
			err_set(err, -ENOMEM, "out of memory");
			return NULL;
		}
		s->list = list;
		s->room = room;
	}
	memset(&s->list[s->n], 0, sizeof(*s->list));
	return &s->list[s->n++];
}

static int set_path(struct spec *p, const char *text, bool pattern, struct err *err)
{
	p->kind = pattern ? SPEC_PATTERN : SPEC_PATH;
	p->text = canonical(text);
	return p->text ? 0 : err_set(err, -ENOMEM, "out of memory");
}

static const char *option(bool containers)
{
	return containers ? "--container" : "--cgroup";
}

/* Does the recording have a cgroup of exactly that path? */
static bool has_path(const struct replay_cgroups *c, const char *text)
{
	char *path = canonical(text);
	bool found = false;

	for (size_t i = 0; path && !found && i < c->ids.n; i++)
		found = c->paths[i] && !strcmp(c->paths[i], *path ? path : "/");
	free(path);
	return found;
}

/* PATH, PATTERN or ID, or a container's, with :MIN behind it perhaps. */
static int parse_name(const struct replay_cgroups *c, char *text, bool containers, struct spec *p,
		      struct err *err)
{
	const struct num_arg min_arg = {
		.name = option(containers), .unit = "cycles", .min = 1, .max = IBS_LAT_MAX
	};
	const struct num_arg id_arg = { .name = "--cgroup", .min = 1, .max = UINT64_MAX };
	char *colon = strrchr(text, ':');
	uint64_t v;
	int ret;

	/* a path can hold a colon: ours is one behind which stands a number, in no such path */
	if (colon && only_digits(colon + 1) && (containers || !has_path(c, text))) {
		ret = num_parse(&min_arg, colon + 1, &v, err);
		if (ret)
			return ret;
		p->min_lat = v;
		*colon = 0;
	}
	if (containers) {
		p->kind = strpbrk(text, "*?[") ? SPEC_CONTAINER_PATTERN : SPEC_CONTAINER;
		p->text = strdup(text);
		return p->text ? 0 : err_set(err, -ENOMEM, "out of memory");
	}
	if (only_digits(text)) {
		ret = num_parse(&id_arg, text, &v, err);
		p->kind = SPEC_ID;
		p->id = v;
		p->text = ret ? NULL : strdup(text);
		return ret ?: p->text ? 0 : err_set(err, -ENOMEM, "out of memory");
	}
	return set_path(p, text, strpbrk(text, "*?["), err);
}

static int parse_option(const struct replay_cgroups *c, const char *arg, bool containers,
			struct specs *s, struct err *err)
{
	char *copy = strdup(arg), *save;
	bool out = *arg == '!';
	size_t before = s->n;
	int ret = copy ? 0 : err_set(err, -ENOMEM, "out of memory");

	for (char *p = copy ? strtok_r(copy + out, ",", &save) : NULL; !ret && p;
	     p = strtok_r(NULL, ",", &save)) {
		struct spec *spec = new_spec(s, err);

		if (!spec) {
			ret = -ENOMEM;
			break;
		}
		spec->out = out;
		ret = parse_name(c, p, containers, spec, err);
	}
	free(copy);
	if (!ret && s->n == before)
		ret = err_set(err, -EINVAL, "%s: none is named", option(containers));
	return ret;
}

static int add_predicates(const struct filter *f, struct specs *s, struct err *err)
{
	for (unsigned int k = 0; f && k < f->n_cgroups; k++) {
		const struct filter_cgroup *q = &f->cgroups[k];
		struct spec *p = new_spec(s, err);
		int ret = 0;

		if (!p)
			return -ENOMEM;
		p->filter = 1U << k;
		p->found = true; /* a question may have no for an answer */
		if (q->kind == FILTER_CGROUP_PATH || q->kind == FILTER_CGROUP_GLOB) {
			ret = set_path(p, q->text, q->kind == FILTER_CGROUP_GLOB, err);
		} else {
			p->kind = q->kind == FILTER_CONTAINER ? SPEC_CONTAINER
							      : SPEC_CONTAINER_PATTERN;
			p->text = strdup(q->text);
			ret = p->text ? 0 : err_set(err, -ENOMEM, "out of memory");
		}
		if (ret)
			return ret;
	}
	return 0;
}

/* Recordings tell no names of containers: by the first digits of an id, or a pod's uid. */
static bool is_container(const struct spec *p, const char *path)
{
	static const struct container_name nameless = { "", "", "" };
	struct container box;

	if (!container_of_path(path, &box) || path[box.path_len])
		return false;
	if (p->kind == SPEC_CONTAINER && container_is_id_prefix(p->text) &&
	    !strncmp(box.id, p->text, strlen(p->text)))
		return true;
	if (p->kind == SPEC_CONTAINER)
		return *box.pod_uid && !strcmp(p->text, box.pod_uid);
	return (*box.id && !fnmatch(p->text, box.id, FNM_NOESCAPE)) ||
	       container_matches(p->text, &box, &nameless);
}

/* @path: "" is the root. */
static bool names_path(const struct spec *p, const char *path)
{
	switch (p->kind) {
	case SPEC_PATH:
		return !strcmp(p->text, path);
	case SPEC_PATTERN:
		return cgroup_path_matches(p->text, path);
	case SPEC_ID:
		return false;
	default:
		return is_container(p, path);
	}
}

/* What has been decided of a cgroup so far, from the root down. */
struct fate {
	struct selected_cgroup sel;
	bool decided;
};

static void apply(struct spec *p, struct fate *f)
{
	p->found = true;
	f->sel.filter |= p->filter;
	if (p->filter)
		return;
	f->decided = true;
	f->sel.out = p->out;
	f->sel.min_lat = p->min_lat;
}

/* An id names the cgroup of that id and all below its path. */
static void resolve_id(const struct replay_cgroups *c, struct spec *p)
{
	const char *path;

	if (p->kind != SPEC_ID || key_map_find_id(&c->ids, p->id) < 0)
		return;
	p->found = true;
	path = replay_cgroups_path(c, p->id);
	if (!path)
		return;
	free(p->text);
	p->kind = SPEC_PATH;
	p->text = canonical(path);
}

static void decide(struct specs *s, __u64 id, const char *path, struct fate *f)
{
	char *upto = path ? strdup(path) : NULL;
	size_t len = path ? strlen(path) : 0;

	f->sel.id = id;
	for (size_t end = 0; upto && end <= len; end++) {
		/* the root, each ancestor, and the cgroup itself */
		if (end && path[end] && path[end] != '/')
			continue;
		if (end == 1 && len == 1)
			break;
		upto[end] = 0;
		for (size_t i = 0; i < s->n; i++)
			if (names_path(&s->list[i], upto))
				apply(&s->list[i], f);
		upto[end] = path[end];
	}
	free(upto);
	for (size_t i = 0; i < s->n; i++)
		if (s->list[i].kind == SPEC_ID && s->list[i].id == id)
			apply(&s->list[i], f);
}

static int check_found(const struct replay_cgroups *c, const struct specs *s, struct err *err)
{
	size_t told = 0;

	for (size_t i = 0; i < c->ids.n; i++)
		told += c->paths[i] != NULL;
	for (size_t i = 0; i < s->n; i++) {
		const struct spec *p = &s->list[i];
		bool container = p->kind == SPEC_CONTAINER || p->kind == SPEC_CONTAINER_PATTERN;

		if (!p->found)
			return err_set(err, -ENOENT,
				       "%s: no %s of the recording is '%.256s'; it tells the paths "
				       "of %zu cgroups%s",
				       option(container), container ? "container" : "cgroup",
				       *p->text ? p->text : "/", told,
				       container ? ", and containers by their ids only" : "");
	}
	return 0;
}

int replay_cgroups_select(const struct replay_cgroups *c, char *const *args, size_t n_args,
			  char *const *containers, size_t n_containers, const struct filter *filter,
			  __u64 other, struct selected_cgroup **out, size_t *n_out, struct err *err)
{
	struct selected_cgroup *list = NULL;
	struct specs s = {};
	bool any_in = false;
	size_t n = 0;
	int ret = 0;

	*out = NULL;
	*n_out = 0;
	for (size_t i = 0; !ret && i < n_args; i++)
		ret = parse_option(c, args[i], false, &s, err);
	for (size_t i = 0; !ret && i < n_containers; i++)
		ret = parse_option(c, containers[i], true, &s, err);
	ret = ret ?: add_predicates(filter, &s, err);
	if (ret || !s.n)
		goto end;
	list = calloc(c->ids.n + 2, sizeof(*list));
	if (!list) {
		ret = err_set(err, -ENOMEM, "out of memory");
		goto end;
	}
	for (size_t i = 0; i < s.n; i++) {
		resolve_id(c, &s.list[i]);
		any_in |= !s.list[i].filter && !s.list[i].out;
	}
	for (size_t i = 0; i < c->ids.n; i++) {
		struct fate f = {};

		decide(&s, c->ids.keys[i].cgroup_id, c->paths[i], &f);
		f.sel.filter_only = !f.decided;
		if (f.decided || f.sel.filter)
			list[n++] = f.sel;
	}
	if (n_args || n_containers)
		list[n++] = (struct selected_cgroup){ .id = other, .out = true };
	if (any_in)
		list[n++] =
			(struct selected_cgroup){ .id = 0 }; /* also if all are left out again */
	ret = check_found(c, &s, err);
end:
	specs_free(&s);
	if (ret) {
		free(list);
		return ret;
	}
	*out = list;
	*n_out = n;
	return 0;
}
