// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Code that processes generate: its names are in a list that the process keeps. */
#include "symbols.h"
#include "symbols_private.h"

bool is_generated(const char *path)
{
	static const char *const begins[] = { "//anon",	   "[anon",	     "[heap]", "/memfd:",
					      "/dev/zero", "/anon_hugepage", "/SYSV" };

	for (size_t i = 0; i < ARRAY_SIZE(begins); i++)
		if (!strncmp(path, begins[i], strlen(begins[i])))
			return true;
	return false;
}

static void open_list(struct symbols *s, struct process *p, __u32 tgid)
{
	const struct code_map_place place = { .root = p->root, .pid = tgid, .alive = p->alive };

	p->code_tried = true;
	/* files of another machine, another boot or another container are those of other processes */
	if (s->this_boot && tgid && (p->alive || !p->contained))
		p->code = object_open_code_map(s->naming, &place, p->code_why, sizeof(p->code_why));
}

bool symbols_generated(struct symbols *s, struct process *p, __u32 tgid, __u64 addr,
		       struct symbol *out)
{
	struct object_name name;

	if (!p->code_tried)
		open_list(s, p, tgid);
	out->no_list = !p->code;
	if (!p->code || !object_symbol(p->code, addr, &name))
		return false;
	out->name = name.name;
	return true;
}
