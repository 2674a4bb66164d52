// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * --user-socket: any user may ask for the groups of the cgroups that belong to them. A cgroup
 * belongs to the user who owns its directory or an ancestor of it, and to the processes of a job
 * that includes it; nothing belongs to root here, who reads the pins. Counters of removed cgroups
 * belong to nobody: a path that was created again may be another user's.
 */
#include "collector_private.h"

#include "rows/snapshot_json.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

#define PER_USER   2	     /* connections of one uid at a time */
#define ANSWER_MAX (1 << 20) /* bytes; groups that do not fit are only counted */

struct asker {
	uid_t uid;
	char *job; /* path of the cgroup of its job; NULL: none */
};

/*
 * The client's job. Its process may have exited and its pid been reused: the pidfd tells; without
 * one, require at least a process of the same user.
 */
static char *find_job(const struct collector *c, const struct control_request *r)
{
	struct pollfd exited = { .fd = r->pidfd, .events = POLLIN };
	char dir[32], *own = NULL;
	struct stat st;
	ssize_t len;
	int proc;

	if (!c->jobs)
		return NULL;
	snprintf(dir, sizeof(dir), "/proc/%d", r->pid);
	proc = open(dir, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (proc >= 0 && !fstat(proc, &st) && (r->pidfd >= 0 || st.st_uid == r->uid))
		own = cgroup_of_process(cgroup_tree_fs(session_tree(c->session)), proc);
	if (proc >= 0)
		close(proc);
	len = own && (r->pidfd < 0 || !poll(&exited, 1, 0)) ? cgroup_pattern_deepest(c->jobs, own)
							    : -1;
	if (len <= 0) {
		free(own);
		return NULL;
	}
	own[len] = 0;
	return own;
}

/* True if the user owns the cgroup's directory or an ancestor. Cgroupfs has no symbolic links. */
static bool owns(const struct collector *c, uid_t uid, const char *path)
{
	const char *mount = cgroup_tree_mount(session_tree(c->session));
	char *dir = xcalloc(1, strlen(mount) + strlen(path) + 1);
	size_t len = strlen(mount), end = len + strlen(path);
	bool found = false;
	struct stat st;

	memcpy(dir, mount, len);
	memcpy(dir + len, path, end - len);
	for (size_t at = len + 1; at <= end && uid && !found; at++) {
		char was = dir[at];

		if (was && was != '/')
			continue;
		dir[at] = 0;
		found = !lstat(dir, &st) && st.st_uid == uid;
		dir[at] = was;
	}
	free(dir);
	return found;
}

static bool may_see(const struct collector_event *e, const struct asker *a, const struct group *g)
{
	struct cgroup_tree *tree = session_tree(e->c->session);
	const char *path;
	size_t len;

	if (g->other || !g->key.cgroup_id || !cgroup_tree_alive(tree, g->key.cgroup_id))
		return false;
	path = cgroup_tree_path(tree, g->key.cgroup_id);
	if (!path || *path != '/')
		return false;
	len = a->job ? strlen(a->job) : 0;
	if (a->job && !strncmp(path, a->job, len) && (!path[len] || path[len] == '/'))
		return true;
	return owns(e->c, a->uid, path);
}

static void put_group(const struct collector_event *e, FILE *out, const struct group *g)
{
	struct ibs_slot_name name = pins_names(e->pins)[g->slot];

	if (name.cgroup_id != g->key.cgroup_id) { /* not named yet */
		memset(&name, 0, sizeof(name));
		snprintf(name.cgroup, sizeof(name.cgroup), "%s",
			 cgroup_tree_path(session_tree(e->c->session), g->key.cgroup_id));
	}
	snapshot_put_group(out, g, &name);
}

/* @max: limit of bytes in @out */
static int put_event(const struct collector_event *e, const struct asker *asker, long max,
		     FILE *out, struct err *err)
{
	const struct ibs_meta *meta = pins_meta(e->pins);
	struct snapshot_about about;
	struct snapshot now;
	size_t left_out = 0;

	if (sampler_snapshot(opened(e)->sampler, &now, err))
		return -EIO;
	about = (struct snapshot_about){ .simulated = meta->layout.simulated,
					 .metric = meta->layout.metric,
					 .period = meta->status.period,
					 .by = now.by,
					 .cpus = now.pmu.cpus,
					 .enabled_ns = now.pmu.enabled_ns };
	snprintf(about.source, sizeof(about.source), "%s", meta->source);
	snprintf(about.event, sizeof(about.event), "%s", meta->event);
	snapshot_put_head(out, &about);
	for (size_t i = 0; i < now.n_groups; i++) {
		if (!may_see(e, asker, &now.groups[i]))
			continue;
		if (ftell(out) < max)
			put_group(e, out, &now.groups[i]);
		else
			left_out++;
	}
	snapshot_put_end(out, left_out);
	snapshot_free(&now);
	return 0;
}

static enum control_result answer(void *arg, const struct control_request *r, FILE *out,
				  struct err *err)
{
	struct collector *c = arg;
	struct asker asker = { .uid = r->uid };
	int ret = 0;

	if (strcmp(r->verb, "snapshot") || r->n) {
		err_set(err, -EINVAL, "this socket answers 'snapshot' only, without arguments");
		return CONTROL_USAGE;
	}
	asker.job = find_job(c, r);
	for_each_event (e, c)
		ret = ret ?: put_event(e, &asker, ftell(out) + ANSWER_MAX, out, err);
	free(asker.job);
	return ret ? CONTROL_FAILED : CONTROL_OK;
}

/* Warn if other users cannot reach the socket in its directory. */
static void warn_unreachable(const char *path)
{
	char *dir = xstrdup(path), *slash = strrchr(dir, '/');
	struct stat st;

	if (slash)
		slash[slash == dir] = 0;
	if (slash && !stat(dir, &st) && !(st.st_mode & S_IXOTH))
		log_warn("--user-socket: other users do not reach it, as %s has mode %04o: "
			 "make it 0755 (RuntimeDirectoryMode= of the unit)",
			 dir, st.st_mode & 07777);
	free(dir);
}

int users_open(struct collector *c, struct err *err)
{
	const struct control_opts opts = {
		.path = c->set.user_socket,
		.mode = 0666,
		.per_user = PER_USER,
		.handle = answer,
		.arg = c,
	};
	int ret;

	if (!strcmp(c->set.user_socket, "none"))
		return 0;
	if (*c->set.user_jobs)
		cgroup_pattern_new(c->set.user_jobs, &c->jobs);
	ret = control_open(&opts, &c->users, err);
	if (ret)
		err_prefix(err, "--user-socket");
	else
		warn_unreachable(c->set.user_socket);
	return ret;
}

void users_close(struct collector *c)
{
	control_close(c->users);
	cgroup_pattern_free(c->jobs);
}
