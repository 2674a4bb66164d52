// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "tasks.h"

#include "base/intern.h"
#include "base/num.h"

#include <ibscope/maps.h>

#include <ctype.h>
#include <dirent.h>
#include <elf.h>
#include <limits.h>
#include <unistd.h>

int task_choice_init(struct task_choice *c, const __u32 *tgids, size_t n, bool follow)
{
	memset(c, 0, sizeof(*c));
	c->follow = follow;
	if (!n)
		return 0;
	c->pids = xcalloc(IBS_PID_MAX / 8, 1);
	for (size_t i = 0; i < n; i++)
		task_choice_add(c, tgids[i]);
	return 0;
}

bool task_choice_has(const struct task_choice *c, __u32 tgid)
{
	return !c->pids || (tgid < IBS_PID_MAX && c->pids[tgid / 8] >> tgid % 8 & 1);
}

void task_choice_add(struct task_choice *c, __u32 tgid)
{
	if (c->pids && tgid < IBS_PID_MAX)
		c->pids[tgid / 8] |= 1 << tgid % 8;
}

void task_choice_free(struct task_choice *c)
{
	free(c->pids);
	memset(c, 0, sizeof(*c));
}

struct scan {
	const char *root;
	const struct task_choice *choice;
	bool data;
	__u64 time;
	trace_event_cb *cb;
	void *arg;
	struct err *err;
};

static FILE *open_text(const struct scan *s, const char *path)
{
	char full[PATH_MAX];

	snprintf(full, sizeof(full), "%s%s", s->root, path);
	return fopen(full, "re");
}

/* A directory entry that is a number, or 0. */
static __u32 entry_pid(const struct dirent *e)
{
	char *end;
	unsigned long pid;

	if (!isdigit((unsigned char)e->d_name[0]))
		return 0;
	pid = strtoul(e->d_name, &end, 10);
	return *end || pid >= IBS_PID_MAX ? 0 : pid;
}

static int thread_name(const struct scan *s, __u32 tgid, __u32 tid)
{
	struct trace_event ev = { .kind = TRACE_COMM, .time = s->time };
	char path[64], name[64];
	FILE *f;
	size_t n;

	/* not by lines: a name may hold a newline */
	snprintf(path, sizeof(path), "/proc/%u/task/%u/comm", tgid, tid);
	f = open_text(s, path);
	if (!f)
		return 0;
	n = fread(name, 1, sizeof(name) - 1, f);
	fclose(f);
	if (!n)
		return 0;
	name[n - (name[n - 1] == '\n')] = 0;
	ev.comm.tgid = tgid;
	ev.comm.tid = tid;
	ev.comm.name = name;
	return s->cb(&ev, s->arg, s->err);
}

/* Parse a line of /proc/PID/maps; @m->path points into it. Return: false if it is invalid or the map is inaccessible. */
static bool parse_map(char *line, char *perms, struct trace_mmap *m)
{
	unsigned long long start, end, pgoff;
	int at = 0;

	line[strcspn(line, "\n")] = 0;
	if (sscanf(line, "%llx-%llx %4s %llx %*s %*s %n", &start, &end, perms, &pgoff, &at) < 4 ||
	    !at || end <= start)
		return false;
	m->exec = perms[2] == 'x';
	m->start = start;
	m->len = end - start;
	m->pgoff = pgoff;
	m->path = line[at] ? line + at : "//anon";
	return memcmp(perms, "---", 3) != 0;
}

/*
 * Most maps are constants of programs and libraries. Leave them out: their location follows from the map
 * of the code.
 */
static int process_maps(const struct scan *s, __u32 tgid)
{
	struct trace_event ev = { .kind = TRACE_MMAP, .time = s->time };
	char path[64], perms[5] = "", *line = NULL;
	struct intern programs = { 0 };
	size_t size = 0;
	int ret = 0;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%u/maps", tgid);
	f = open_text(s, path);
	if (!f)
		return 0;
	ev.mmap.tgid = ev.mmap.tid = tgid;
	while (s->data && xgetline(&line, &size, f) > 0)
		if (parse_map(line, perms, &ev.mmap) && ev.mmap.exec && ev.mmap.path[1] != '/')
			intern_get(&programs, ev.mmap.path);
	rewind(f);
	while (!ret && xgetline(&line, &size, f) > 0) {
		if (!parse_map(line, perms, &ev.mmap))
			continue;
		if (ev.mmap.exec ||
		    (s->data &&
		     (perms[1] == 'w' || intern_find(&programs, ev.mmap.path) == INTERN_NONE)))
			ret = s->cb(&ev, s->arg, s->err);
	}
	intern_free(&programs);
	free(line);
	fclose(f);
	return ret;
}

static int process(const struct scan *s, __u32 tgid)
{
	char path[PATH_MAX];
	struct dirent *e;
	int ret = 0;
	DIR *d;

	snprintf(path, sizeof(path), "%s/proc/%u/task", s->root, tgid);
	d = opendir(path);
	if (!d)
		return 0;
	while (!ret && (e = readdir(d))) {
		__u32 tid = entry_pid(e);

		if (tid)
			ret = thread_name(s, tgid, tid);
	}
	closedir(d);
	return ret ?: process_maps(s, tgid);
}

unsigned int notes_build_id(const char *path, unsigned char id[20])
{
	_Alignas(Elf64_Nhdr) char notes[4096];
	FILE *f = fopen(path, "re");
	size_t n, at = 0;

	if (!f)
		return 0;
	n = fread(notes, 1, sizeof(notes), f);
	fclose(f);
	while (at <= n && n - at >= sizeof(Elf64_Nhdr)) {
		const Elf64_Nhdr *h = (const Elf64_Nhdr *)(notes + at);
		size_t name = at + sizeof(*h), desc = name + (h->n_namesz + 3ULL) / 4 * 4;

		if (h->n_namesz > n || h->n_descsz > n || desc + h->n_descsz > n)
			return 0;
		if (h->n_type == NT_GNU_BUILD_ID && h->n_namesz == 4 &&
		    !memcmp(notes + name, "GNU", 4) && h->n_descsz <= 20) {
			memcpy(id, notes + desc, h->n_descsz);
			return h->n_descsz;
		}
		at = desc + (h->n_descsz + 3ULL) / 4 * 4;
	}
	return 0;
}

struct text_place {
	unsigned long long start, end;
};

/* Of the running kernel, which does not move; 0: not read yet, or hidden. */
static struct text_place remembered;

static bool find_text(const char *root, struct text_place *out)
{
	unsigned long long address, start = 0, end = 0;
	char line[512], name[128], path[PATH_MAX], buffer[16384];
	FILE *f;

	snprintf(path, sizeof(path), "%s/proc/kallsyms", root);
	f = fopen(path, "re");
	if (!f)
		return false;
	/* there are 100,000 lines and more, and the usual buffer has one KiB */
	setvbuf(f, buffer, _IOFBF, sizeof(buffer));
	while ((!start || !end) && fgets(line, sizeof(line), f)) {
		if (!strstr(line, "text"))
			continue;
		if (sscanf(line, "%llx %*c %127s", &address, name) != 2)
			continue;
		if (!strcmp(name, "_text") || (!start && !strcmp(name, "_stext")))
			start = address;
		else if (!strcmp(name, "_etext"))
			end = address;
	}
	fclose(f);
	*out = (struct text_place){ start, end };
	return start && end > start;
}

void task_events_remember_kernel(void)
{
	struct text_place found;

	if (!remembered.end && find_text("", &found))
		remembered = found;
}

static int kernel_text(const struct scan *s)
{
	struct trace_event ev = { .kind = TRACE_MMAP, .time = s->time };
	struct text_place place = remembered;
	char path[PATH_MAX];

	if ((*s->root || !place.end) && !find_text(s->root, &place))
		return 0;
	ev.mmap.kernel = ev.mmap.exec = true;
	ev.mmap.start = place.start;
	ev.mmap.len = place.end - place.start;
	ev.mmap.path = "[kernel.kallsyms]";
	snprintf(path, sizeof(path), "%s/sys/kernel/notes", s->root);
	ev.mmap.build_id_len = notes_build_id(path, ev.mmap.build_id);
	return s->cb(&ev, s->arg, s->err);
}

static int modules(const struct scan *s)
{
	char line[4096], name[128], path[PATH_MAX], shown[160];
	FILE *f = open_text(s, "/proc/modules");
	int ret = 0;

	if (!f)
		return 0;
	while (!ret && fgets(line, sizeof(line), f)) {
		struct trace_event ev = { .kind = TRACE_MMAP, .time = s->time };
		unsigned long long size, start;

		if (sscanf(line, "%127s %llu %*s %*s %*s %llx", name, &size, &start) != 3 || !start)
			continue;
		snprintf(shown, sizeof(shown), "[%s]", name);
		snprintf(path, sizeof(path), "%s/sys/module/%s/notes/.note.gnu.build-id", s->root,
			 name);
		ev.mmap.kernel = ev.mmap.exec = true;
		ev.mmap.start = start;
		ev.mmap.len = size;
		ev.mmap.path = shown;
		ev.mmap.build_id_len = notes_build_id(path, ev.mmap.build_id);
		ret = s->cb(&ev, s->arg, s->err);
	}
	fclose(f);
	return ret;
}

int task_events_now(const char *root, const struct task_choice *choice, bool data, __u64 time,
		    trace_event_cb *cb, void *arg, struct err *err)
{
	const struct scan s = { root, choice, data, time, cb, arg, err };
	char path[PATH_MAX];
	struct dirent *e;
	int ret;
	DIR *d;

	snprintf(path, sizeof(path), "%s/proc", root);
	d = opendir(path);
	if (!d)
		return err_set(err, -errno, "cannot read %s: %s; processes have no names", path,
			       strerror(errno));
	snprintf(path, sizeof(path), "%s/proc/self", root);
	if (access(path, F_OK) && !*root)
		log_warn("proc is not mounted on /proc: processes that run already have no names "
			 "and no mappings");
	ret = kernel_text(&s);
	ret = ret ?: modules(&s);
	while (!ret && (e = readdir(d))) {
		__u32 tgid = entry_pid(e);

		if (tgid && task_choice_has(choice, tgid))
			ret = process(&s, tgid);
	}
	closedir(d);
	return ret;
}

int tasks_read(struct tasks *t, struct trace *trace, struct err *err)
{
	struct trace_event ev;
	int ret;

	trace_rewind(trace, err);
	trace_skip_samples(trace);
	while ((ret = trace_next(trace, &ev, err)) > 0)
		tasks_add(t, &ev);
	return ret ?: trace_rewind(trace, err);
}
