// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "symbols.h"
#include "base/choice.h"
#include "symbols_private.h"

#include "symbols_kernel.h"

#include <unistd.h>

#define STACK_AREA 0x7ffc00000000ull /* x86-64 maps nothing but stacks and its own from here on */
#define HEAP_AFTER (1ull << 30) /* at most, behind the program: how far the kernel randomizes it */
#define MAPS_AREA \
	0x700000000000ull /* libraries, and a static program at an address of its own choice */
#define BELOW_MAX 16	  /* maps of a program */

CHOICE_NAMES(data_kind_name, enum data_kind, DATA_KIND_TABLE)

enum data_kind data_kind_of(const char *path)
{
	static const struct {
		const char *begins;
		enum data_kind kind;
	} kinds[] = {
		{ "[heap]", DATA_HEAP },
		{ "[stack", DATA_STACK },
		{ "[anon: glibc: pthread ", DATA_STACK }, /* with glibc.mem.decorate_maps */
		{ "[anon:", DATA_ANONYMOUS },
		{ "//anon", DATA_ANONYMOUS },
		{ "[anon_shmem:", DATA_SHARED },
		{ "/dev/zero", DATA_SHARED },
		{ "/SYSV", DATA_SHARED },
		{ "/memfd:", DATA_SHARED },
		{ "/dev/shm/", DATA_SHARED },
		{ "/anon_hugepage", DATA_SHARED },
		{ "/", DATA_NO_SYMBOL },
	};

	for (size_t i = 0; i < ARRAY_SIZE(kinds); i++)
		if (!strncmp(path, kinds[i].begins, strlen(kinds[i].begins)))
			return kinds[i].kind;
	return DATA_SPECIAL;
}

const char *data_place_label(const struct data_place *place, char *buf, size_t size)
{
	if (place->variable || !place->mapping || *place->mapping == '[')
		return place->variable ?: place->mapping;
	snprintf(buf, size, "[%.*s]", (int)size - 3, place->mapping);
	return buf;
}

static bool begins_with(const char *text, const char *with)
{
	return !strncmp(text, with, strlen(with));
}

/* Is it known that the file is no program? */
static bool is_other(const struct dso *d)
{
	int fd = d->elsewhere ? -ENOENT : file_open(&d->root, d->path);

	if (fd >= 0)
		close(fd);
	return fd == -EINVAL || fd == -ENOEXEC;
}

static struct dso *data_dso(struct symbols *s, __u32 tgid, const struct task_map *map)
{
	struct dso *d = dso_at(s, tgid, map);

	if (!d->opened && !map->exec && s->trusted && !map->build_id && is_other(d))
		d->opened = d->no_program = true;
	if (!d->opened)
		dso_open(s, d);
	return d;
}

/* Return: whether the file has a segment there. */
static bool find_variable(struct symbols *s, __u32 tgid, const struct task_map *map, __u64 addr,
			  struct data_place *out)
{
	struct dso *d = data_dso(s, tgid, map);
	__u64 offset = addr - map->start + map->pgoff;
	struct object_name name = {};

	if (!d->object ||
	    !object_variable(d->object, map->pgoff, map->exec, offset, &name, &out->offset))
		return false;
	out->variable = name.name;
	out->mangled = name.mangled;
	out->kind = out->variable ? DATA_VARIABLE : DATA_NO_SYMBOL;
	out->has_offset = out->variable;
	out->mapping = map->path;
	out->object = d->object;
	out->pgoff = map->pgoff;
	out->exec = map->exec;
	out->at = offset;
	return true;
}

static void find_kernel_data(struct symbols *s, const struct tasks *tasks, __u64 addr,
			     struct data_place *out)
{
	const char *module = NULL;
	struct task_map map;

	if (!s->kernel_tried)
		symbols_open_kernel(s, tasks_kernel(tasks, &map) ? &map : NULL);
	*out = (struct data_place){ .kind = DATA_KERNEL, .mapping = "[kernel]" };
	if (s->kernel)
		out->variable = kernel_symbols_variable(s->kernel, addr, &out->offset, &module);
	if (!out->variable)
		return;
	out->kind = DATA_VARIABLE;
	out->has_offset = true;
	out->mapping = module ?: out->mapping;
}

/* Whose stack is it, if it has no name of its own? */
static void name_stack(struct symbols *s, __u32 tgid, __u64 addr, __u64 time,
		       const struct task_map *map, struct data_place *out)
{
	__u32 tid = stack_pages_find(&s->stacks, tgid, addr, time, map->start, map->end);
	char text[32];

	if (!tid)
		return;
	out->kind = DATA_STACK;
	out->mapping = symbols_kept(s, &s->stack_names, tid);
	if (out->mapping)
		return;
	snprintf(text, sizeof(text), "[stack:%u]", tid);
	out->mapping = symbols_keep(s, &s->stack_names, tid, text);
}

/* No map has the address: is it of a program whose code has a map, or of the stack? */
static void find_unmapped(struct symbols *s, const struct tasks *tasks, __u32 tgid, __u64 addr,
			  __u64 time, struct data_place *out)
{
	struct task_map map;

	*out = (struct data_place){ .kind = DATA_UNMAPPED, .mapping = "[unmapped]" };
	for (int above = 0; above < 2; above++)
		if (tasks_map_near(tasks, tgid, addr, time, above, &map) && map.exec &&
		    data_kind_of(map.path) == DATA_NO_SYMBOL &&
		    find_variable(s, tgid, &map, addr, out))
			return;
	if (addr >= STACK_AREA && tasks_map_near(tasks, tgid, addr, time, true, &map) &&
	    (begins_with(map.path, "[stack]") || begins_with(map.path, "[v"))) {
		out->kind = DATA_STACK;
		out->mapping = "[stack]";
	} else if (!tasks_have_data(tasks)) {
		s->lacks_data = true;
	}
}

/* The map with a name that is next below @map or below .bss between them. Return: false also if @map is .bss itself. */
static bool file_below(const struct tasks *tasks, __u32 tgid, __u64 time,
		       const struct task_map *map, struct task_map *out)
{
	__u64 end;

	if (!tasks_map_near(tasks, tgid, map->start - 1, time, false, out))
		return false;
	if (!is_unnamed(out->path))
		return out->end < map->start || data_kind_of(out->path) == DATA_HEAP;
	end = out->start;
	return tasks_map_near(tasks, tgid, end - 1, time, false, out) && out->end == end;
}

/*
 * Is it the heap that brk() extends? The kernel names it only from the second time on that it grows: of a small one,
 * which grew once, all that is known is that it begins above the program, which has the lowest files of a process.
 */
static bool is_small_heap(const struct tasks *tasks, __u32 tgid, __u64 time,
			  const struct task_map *map)
{
	struct task_map program, below;

	if (!map->start || map->start >= MAPS_AREA || !file_below(tasks, tgid, time, map, &program))
		return false;
	if (data_kind_of(program.path) == DATA_HEAP)
		return program.end == map->start;
	if (data_kind_of(program.path) != DATA_NO_SYMBOL || map->start - program.end > HEAP_AFTER)
		return false;
	below = program;
	for (unsigned int i = 0; i < BELOW_MAX; i++) {
		if (!below.start ||
		    !tasks_map_near(tasks, tgid, below.start - 1, time, false, &below))
			return true;
		if (data_kind_of(below.path) == DATA_NO_SYMBOL &&
		    strcmp(below.path, program.path) != 0)
			return false;
	}
	return false;
}

void symbols_data(struct symbols *s, const struct tasks *tasks, __u32 tgid, __u64 addr, __u64 time,
		  struct data_place *out)
{
	struct task_map map, below;

	if (addr >> 63) {
		find_kernel_data(s, tasks, addr, out);
		return;
	}
	if (!tasks_map(tasks, tgid, addr, time, false, &map)) {
		find_unmapped(s, tasks, tgid, addr, time, out);
		return;
	}
	*out = (struct data_place){ .kind = data_kind_of(map.path), .mapping = map.path };
	if (out->kind == DATA_NO_SYMBOL && !find_variable(s, tgid, &map, addr, out)) {
		struct dso *d = data_dso(s, tgid, &map);

		out->kind = d->no_program			      ? DATA_FILE
			    : d->object && !object_problem(d->object) ? DATA_NO_SYMBOL
								      : DATA_NO_OBJECT;
		out->has_offset = d->no_program;
		out->offset = addr - map.start + map.pgoff;
	} else if ((out->kind == DATA_ANONYMOUS || out->kind == DATA_HEAP) && map.start &&
		   tasks_map(tasks, tgid, map.start - 1, time, false, &below) && !below.exec &&
		   data_kind_of(below.path) == DATA_NO_SYMBOL) {
		find_variable(s, tgid, &below, addr, out); /* .bss, of which files have nothing */
	}
	if (is_unnamed(out->mapping) && is_small_heap(tasks, tgid, time, &map)) {
		out->kind = DATA_HEAP;
		out->mapping = "[heap]";
	} else if (is_unnamed(out->mapping)) {
		out->mapping = "[anon]";
		name_stack(s, tgid, addr, time, &map, out);
	}
	out->start = map.start;
	out->end = map.end;
}

void symbols_data_expect(const struct symbols *s, __u32 tgid, __u64 addr, bool near)
{
	stack_pages_expect(&s->stacks, tgid, addr, near);
}

void symbols_type(struct symbols *s, const struct tasks *tasks, __u32 tgid, const __u64 *ip,
		  const struct data_place *data, unsigned int size, __u64 time,
		  struct type_access *out)
{
	struct type_access by_data;
	struct task_map map;
	struct dso *d;

	*out = (struct type_access){ .kind = ip ? TYPE_NO_FILE : TYPE_NO_ADDRESS };
	if (ip && tasks_map(tasks, tgid, *ip, time, false, &map) &&
	    data_kind_of(map.path) == DATA_NO_SYMBOL) {
		d = code_dso(s, tgid, &map);
		out->kind = TYPE_NO_OBJECT;
		if (d->object)
			object_type(d->object, *ip - map.start + map.pgoff, out);
	}
	if (!data->object || (TYPE_FOUND(out->kind) && out->field && out->kind != TYPE_VARIABLE))
		return;
	object_variable_type(data->object, data->pgoff, data->exec, data->at, size, &by_data);
	if (TYPE_FOUND(by_data.kind) && (by_data.field || !TYPE_FOUND(out->kind)))
		*out = by_data;
}

bool symbols_type_layout(struct symbols *s, const char *name, types_field_cb *cb, void *arg)
{
	for (size_t i = 0; i < s->n_dsos; i++)
		if (s->dsos[i].object && object_layout(s->dsos[i].object, name, cb, arg))
			return true;
	return s->slabs.types && kernel_types_layout(s->slabs.types, name, cb, arg);
}
