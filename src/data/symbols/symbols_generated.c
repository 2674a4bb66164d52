// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Code that processes generate: its names are in a list that the process keeps. */
#include "symbols.h"
#include "symbols_private.h"

const char symbols_generated_dso[] = "[generated]";

bool is_generated(const char *path)
{
	static const char *const begins[] = { "//anon",	   "[anon",	     "[heap]", "/memfd:",
					      "/dev/zero", "/anon_hugepage", "/SYSV" };

	for (size_t i = 0; i < ARRAY_SIZE(begins); i++)
		if (!strncmp(path, begins[i], strlen(begins[i])))
			return true;
	return false;
}

static struct object *open_list(struct symbols *s, struct code_list *l, const struct process *p,
				__u32 tgid, const char *dump)
{
	const struct code_map_place place = {
		.root = p->root, .pid = tgid, .alive = p->alive, .dump = dump
	};

	if (l->tried)
		return l->object;
	l->tried = true;
	/* files of another machine, another boot or another container are those of other processes */
	if (s->this_boot && tgid && (p->alive || !p->contained))
		l->object = object_open_code_map(s->naming, &place, l->why, sizeof(l->why));
	return l->object;
}

static bool lacks_time(const struct code_list *l)
{
	return l->object && object_lacks_time(l->object);
}

bool symbols_generated(struct symbols *s, struct process *p, const struct tasks *tasks, __u32 tgid,
		       __u64 addr, __u64 time, struct symbol *out)
{
	const char *dump = tasks_code_dump(tasks, tgid);
	struct object *o = dump ? open_list(s, &p->code_dump, p, tgid, dump) : NULL;
	struct object_name name;

	out->name = o ? object_code_at(o, addr, time) : NULL;
	if (out->name)
		return true;
	out->name = UNKNOWN;
	out->no_list = !o;
	o = open_list(s, &p->code_map, p, tgid, NULL);
	out->no_list &= !o;
	if (o && object_symbol(o, addr, &name)) {
		out->name = name.name;
		return true;
	}
	out->lacks_time = lacks_time(&p->code_dump) || lacks_time(&p->code_map);
	return false;
}

static size_t print_problem(const struct code_list *l, __u32 tgid, const char *what,
			    void (*cb)(const char *text, void *arg), void *arg)
{
	const char *why = l->object ? object_problem(l->object) : l->why;
	char text[256];

	if (!why || !*why)
		return 0;
	snprintf(text, sizeof(text), "%s of process %u: %s", what, tgid, why);
	cb(text, arg);
	return 1;
}

size_t symbols_code_problems(const struct symbols *s, void (*cb)(const char *text, void *arg),
			     void *arg)
{
	size_t n = 0;

	for (__u32 i = 0; i < s->process_of.size; i++) {
		const struct u64_map_slot *slot = &s->process_of.slots[i];
		const struct process *p =
			slot->value == U64_MAP_NONE ? NULL : &s->processes[slot->value];

		if (!p)
			continue;
		n += print_problem(&p->code_dump, slot->key, "jit-PID.dump", cb, arg);
		n += print_problem(&p->code_map, slot->key, "/tmp/perf-PID.map", cb, arg);
	}
	return n;
}
