// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "symbols.h"
#include "symbols_private.h"

#include "base/clock.h"
#include "cgroup/container.h"
#include "disasm/disasm.h"
#include "symbols_kernel.h"
#include "trace/tasks.h"

#include <sys/utsname.h>
#include <unistd.h>

#define KALLSYMS      "/proc/kallsyms"
#define NOTES	      "/sys/kernel/notes"
#define SAME_BOOT_NS  10000000000ll /* that the clock may have been set meanwhile */
#define OUR_FORMAT    "ibscope"
#define COMMAND_CPU_S 120 /* for the names that a command shows; a pushed profile has less */

/* The time of boot according to both clocks differs between boots. */
static bool is_this_boot(const struct trace_info *info, const struct utsname *u)
{
	__s64 now = clock_ns(CLOCK_REALTIME) - clock_ns(CLOCK_MONOTONIC);
	__s64 then = info->realtime_ns - info->monotonic_ns;

	return info->realtime_ns && info->monotonic_ns && !strcmp(info->release, u->release) &&
	       llabs(now - then) < SAME_BOOT_NS;
}

int symbols_new(const struct symbols_opts *opts, struct symbols **out, struct err *err)
{
	struct symbols *s = xcalloc(1, sizeof(*s));
	struct utsname u;
	int ret = 0;

	s->opts = *opts;
	if (!uname(&u)) {
		s->trusted = !strcmp(u.nodename, opts->info->host);
		s->this_boot = s->trusted && is_this_boot(opts->info, &u);
	}
	/* what is not to ask servers cannot */
	if (!opts->debuginfod)
		unsetenv("DEBUGINFOD_URLS");
	s->naming = naming_new(&(struct naming_opts){ .debug_dir = opts->debug_dir,
						      .debuginfod = opts->debuginfod,
						      .mangled = opts->mangled,
						      .cpu_s = opts->cpu_s ?: COMMAND_CPU_S,
						      .wall_s = opts->wall_s,
						      .nice = opts->nice,
						      .memory = opts->memory });
	if (opts->kallsyms) {
		s->kernel_tried = true;
		ret = kernel_symbols_open(opts->kallsyms, 0, false, &s->kernel, err);
	}
	if (ret) {
		symbols_free(s);
		return ret;
	}
	*out = s;
	return 0;
}

void symbols_free(struct symbols *s)
{
	if (!s)
		return;
	for (size_t i = 0; i < s->n_dsos; i++) {
		object_close(s->dsos[i].object);
		u64_map_free(&s->dsos[i].names);
		u64_map_free(&s->dsos[i].lines);
		u64_map_free(&s->dsos[i].stack_access);
	}
	for (size_t i = 0; i < s->n_processes; i++) {
		object_close(s->processes[i].code_map.object);
		object_close(s->processes[i].code_dump.object);
	}
	free(s->noted);
	symbols_forget_recent(s);
	free(s->dsos);
	naming_free(s->naming);
	free(s->processes);
	u64_map_free(&s->process_of);
	u64_map_free(&s->dso_of);
	u64_map_free(&s->demangled);
	u64_map_free(&s->kernel_names);
	u64_map_free(&s->kernel_dsos);
	kernel_symbols_close(s->kernel);
	slab_types_close(&s->slabs);
	disasm_free(s->disasm);
	stack_pages_free(&s->stacks);
	u64_map_free(&s->stack_names);
	intern_free(&s->texts);
	free(s);
}

static bool kernel_has_build_id(const unsigned char *build_id, unsigned int len)
{
	unsigned char id[20];

	return notes_build_id(NOTES, id) == len && !memcmp(id, build_id, len);
}

/*
 * Where a symbol was in the recorded kernel. perf puts it behind the name of the map, and where
 * the offset would be: "[kernel.kallsyms]_text". Our own maps begin at _text.
 */
static const char *known_symbol(const struct symbols *s, const struct task_map *map, __u64 *addr)
{
	const char *format = s->opts.info->format, *name = strchr(map->path, ']');

	if (name && name[1] && map->pgoff) {
		*addr = map->pgoff;
		return name + 1;
	}
	*addr = map->start;
	return format && !strncmp(format, OUR_FORMAT, strlen(OUR_FORMAT)) ? "_text" : NULL;
}

/* Of another boot the kernel may have been elsewhere, and modules were. */
static void open_moved_kernel(struct symbols *s, const struct task_map *map)
{
	struct kernel_symbols *here;
	const char *name;
	__u64 was, is;
	struct err err;

	name = known_symbol(s, map, &was);
	if (!name) {
		snprintf(s->kernel_why, sizeof(s->kernel_why),
			 "recorded before this boot, and the address of the kernel is unknown");
		return;
	}
	if (kernel_symbols_open(KALLSYMS, 0, true, &here, &err)) {
		snprintf(s->kernel_why, sizeof(s->kernel_why), "%.200s", err.text);
		return;
	}
	if (!kernel_symbols_address(here, name, &is))
		snprintf(s->kernel_why, sizeof(s->kernel_why), "no symbol '%.64s' here", name);
	else if (kernel_symbols_open(KALLSYMS, was - is, true, &s->kernel, &err))
		snprintf(s->kernel_why, sizeof(s->kernel_why), "%.200s", err.text);
	kernel_symbols_close(here);
}

void symbols_open_kernel(struct symbols *s, const struct task_map *map)
{
	bool known = map && task_map_is_kernel(map) && map->build_id;
	struct err err;

	s->kernel_why[0] = 0;
	s->kernel_tried = known || s->this_boot;
	if (known && !kernel_has_build_id(map->build_id, map->build_id_len)) {
		snprintf(s->kernel_why, sizeof(s->kernel_why),
			 "recorded with another kernel than the one that runs");
	} else if (s->this_boot) {
		if (kernel_symbols_open(KALLSYMS, 0, false, &s->kernel, &err))
			snprintf(s->kernel_why, sizeof(s->kernel_why), "%.200s", err.text);
	} else if (known) {
		open_moved_kernel(s, map);
	} else {
		snprintf(s->kernel_why, sizeof(s->kernel_why),
			 "not known to be recorded since this machine booted; --kallsyms FILE "
			 "gives the list of the kernel that was");
	}
}

const char *symbols_keep(struct symbols *s, struct u64_map *m, __u64 key, const char *text)
{
	__u32 id = intern_get(&s->texts, text);

	u64_map_put(m, key, id);
	return intern_text(&s->texts, id);
}

const char *symbols_kept(const struct symbols *s, const struct u64_map *m, __u64 key)
{
	__u32 id = u64_map_get(m, key);

	return id == INTERN_NONE ? NULL : intern_text(&s->texts, id);
}

static void find_kernel(struct symbols *s, const struct task_map *map, __u64 addr,
			struct symbol *out)
{
	const char *name, *module = NULL, *dso = "[kernel]";
	char unnamed[4096 + 64];

	out->name = symbols_kept(s, &s->kernel_names, addr);
	out->dso = symbols_kept(s, &s->kernel_dsos, addr);
	if (out->name && out->dso)
		return;
	if (!s->kernel_tried)
		symbols_open_kernel(s, map);
	/* perf names the modules, as "[kvm]" or by file */
	if (map && !task_map_is_kernel(map))
		dso = map->path;
	name = s->kernel ? kernel_symbols_find(s->kernel, addr, &module) : NULL;
	if (module)
		dso = module;
	if (!name) {
		int bracket = *dso == '[';

		snprintf(unnamed, sizeof(unnamed), "[%.*s]",
			 bracket ? (int)strcspn(dso + 1, "]") : 4000, dso + bracket);
		name = unnamed;
	}
	out->name = symbols_keep(s, &s->kernel_names, addr, name);
	out->dso = symbols_keep(s, &s->kernel_dsos, addr, dso);
}

/* Whether a process still runs, and where its paths begin. */
struct process *process_of(struct symbols *s, __u32 tgid)
{
	__u32 known = u64_map_get(&s->process_of, tgid);
	struct process *p;

	if (known != U64_MAP_NONE)
		return &s->processes[known];
	array_reserve(s->processes, s->processes_room, s->n_processes + 1);
	u64_map_put(&s->process_of, tgid, s->n_processes);
	p = &s->processes[s->n_processes++];
	*p = (struct process){};
	/* of another boot the number is that of another process */
	p->alive = s->this_boot && tgid && file_root(tgid, s->opts.info->monotonic_ns, &p->root);
	return p;
}

void symbols_forget_recent(struct symbols *s)
{
	free(s->recent);
	s->recent = NULL;
	frame_codes_free(&s->codes);
	free(s->calls);
	s->calls = NULL;
	s->changes++;
}

unsigned int symbols_changes(const struct symbols *s)
{
	return s->changes;
}

void symbols_note_container(struct symbols *s, const struct tasks *tasks,
			    const struct trace_event *ev)
{
	struct task_cgroup cgroup;
	struct process *p;

	if (!s->trusted || !ev->sample.has_task || !ev->sample.tgid)
		return;
	p = process_of(s, ev->sample.tgid);
	if (p->noted || !tasks_cgroup(tasks, ev->sample.cgroup_id, &cgroup))
		return;
	p->noted = true;
	p->contained = *cgroup.container && !(s->this_boot && container_is_ours("", cgroup.path));
	if (!p->contained)
		return;
	symbols_forget_recent(s); /* its files are other ones now */
}

static bool same_build_id(const struct dso *d, const struct task_map *map)
{
	return d->build_id_len == map->build_id_len &&
	       !memcmp(d->build_id, map->build_id ?: d->build_id, d->build_id_len);
}

static struct dso *dso_for(struct symbols *s, const struct process *p, bool elsewhere,
			   const struct task_map *map)
{
	__u32 first = u64_map_get(&s->dso_of, (uintptr_t)map->path), i;
	struct dso *d;

	for (i = first; i != INTERN_NONE; i = s->dsos[i].next)
		if (same_build_id(&s->dsos[i], map) && s->dsos[i].root.id == p->root.id &&
		    s->dsos[i].elsewhere == elsewhere)
			return &s->dsos[i];
	array_reserve(s->dsos, s->room, s->n_dsos + 1);
	u64_map_put(&s->dso_of, (uintptr_t)map->path, s->n_dsos);
	d = &s->dsos[s->n_dsos++];
	*d = (struct dso){
		.path = map->path, .next = first, .root = p->root, .elsewhere = elsewhere
	};
	if (map->build_id && map->build_id_len <= sizeof(d->build_id)) {
		memcpy(d->build_id, map->build_id, map->build_id_len);
		d->build_id_len = map->build_id_len;
	}
	return d;
}

struct dso *dso_at(struct symbols *s, __u32 tgid, const struct task_map *map)
{
	const struct process *p = process_of(s, tgid);

	return dso_for(s, p, p->contained && !p->alive, map);
}

struct dso *dso_here(struct symbols *s, __u32 tgid, const struct task_map *map)
{
	return dso_for(s, process_of(s, tgid), false, map);
}

void dso_open(struct symbols *s, struct dso *d)
{
	const struct object_place place = {
		.root = d->root,
		.path = d->path,
		.build_id = d->build_id_len ? d->build_id : NULL,
		.build_id_len = d->build_id_len,
		/* that of the kernel is another after each update */
		.trusted = strcmp(d->path, "[vdso]") ? s->trusted : s->this_boot,
		.elsewhere = d->elsewhere,
	};

	d->opened = true;
	d->object = object_open(s->naming, &place, d->why, sizeof(d->why));
}

struct dso *code_dso(struct symbols *s, __u32 tgid, const struct task_map *map)
{
	struct dso *d = dso_at(s, tgid, map);

	if (!d->opened)
		dso_open(s, d);
	return d;
}

/* Names are kept as the linker has them: several may be printed alike. */
static void find_name(struct symbols *s, struct dso *d, __u64 offset, struct symbol *out)
{
	struct object_name name = {};
	char unnamed[4096 + 64];
	const char *demangled;

	out->name = symbols_kept(s, &d->names, offset);
	if (!out->name) {
		if (d->object)
			object_symbol(d->object, offset, &name);
		snprintf(unnamed, sizeof(unnamed), "[%.4000s]", d->path);
		out->name = symbols_keep(s, &d->names, offset, name.mangled ?: name.name ?: unnamed);
		if (name.mangled)
			symbols_keep(s, &s->demangled, (uintptr_t)out->name, name.name);
	}
	demangled = symbols_kept(s, &s->demangled, (uintptr_t)out->name);
	if (!demangled)
		return;
	out->mangled = out->name;
	out->name = demangled;
}

static void find(struct symbols *s, const struct tasks *tasks, __u32 tgid, __u64 addr, __u64 time,
		 bool kernel, bool srcline, struct symbol *out)
{
	struct task_map map;
	bool mapped = tasks_map(tasks, tgid, addr, time, kernel, &map);
	const char *line;
	struct dso *d;
	__u64 offset;

	*out = (struct symbol){ .name = addr == SYMBOLS_CUT ? "[cut]" : UNKNOWN };
	if (addr == SYMBOLS_CUT)
		return;
	if (kernel)
		find_kernel(s, mapped ? &map : NULL, addr, out);
	/* a map that was not executable when it was made may not be recorded */
	if (!kernel && (!mapped || is_generated(map.path)) &&
	    symbols_generated(s, process_of(s, tgid), tasks, tgid, addr, time, out)) {
		out->dso = mapped ? map.path : symbols_generated_dso;
		return;
	}
	if (kernel || !mapped)
		return;
	offset = addr - map.start + map.pgoff;
	out->dso = map.path;
	d = code_dso(s, tgid, &map);
	out->object = d->object;
	out->offset = offset;
	find_name(s, d, offset, out);
	out->lacks_time |= *out->name == '[' && d->object && object_lacks_time(d->object);
	out->given_up = *out->name == '[' && d->object && object_problem(d->object);
	if (!srcline || !d->object)
		return;
	out->srcline = symbols_kept(s, &d->lines, offset);
	if (!out->srcline) {
		line = object_srcline(d->object, offset);
		out->srcline = symbols_keep(s, &d->lines, offset, line ?: "");
	}
	if (!*out->srcline)
		out->srcline = NULL;
}

static struct recent_map *recent_map(const struct symbols *s, __u32 tgid, __u64 addr)
{
	return &s->recent->map[u64_hash(addr >> 20 ^ (__u64)tgid << 40) >> (68 - RECENT_BITS)];
}

static struct recent_name *recent_name(const struct symbols *s, const struct object *o,
				       __u64 offset)
{
	return &s->recent->name[u64_hash(offset ^ (uintptr_t)o << 20) >> (64 - RECENT_BITS)];
}

/* Return: whether the answer is known. */
static bool find_recent(const struct symbols *s, const struct recent_map *m, __u64 addr,
			struct symbol *out)
{
	const struct object *o = s->dsos[m->dso].object;
	const __u64 offset = addr - m->start + m->pgoff;
	const struct recent_name *n = recent_name(s, o, offset);

	if (!o || n->object != o || n->offset != offset)
		return false;
	*out = (struct symbol){ .name = n->name,
				.mangled = n->mangled,
				.dso = m->path,
				.object = s->dsos[m->dso].object,
				.offset = offset };
	return true;
}

/* Names never change, but one that is missing may come, or get another reason. */
static void remember(struct symbols *s, const struct symbol *sym)
{
	if (sym->object && *sym->name != '[')
		*recent_name(s, sym->object, sym->offset) =
			(struct recent_name){ sym->offset, sym->object, sym->name, sym->mangled };
}

void symbols_find(struct symbols *s, const struct tasks *tasks, __u32 tgid, __u64 addr, __u64 time,
		  bool kernel, bool srcline, struct symbol *out)
{
	const __u64 state = kernel || srcline ? 0 : tasks_state(tasks);
	const __u32 maps = state ? tasks_maps(tasks, tgid, time) : 0;
	struct recent_map *m;
	struct task_map map;

	if (!maps) {
		find(s, tasks, tgid, addr, time, kernel, srcline, out);
		return;
	}
	if (!s->recent)
		s->recent = xcalloc(1, sizeof(*s->recent));
	m = recent_map(s, tgid, addr);
	if (m->state == state && m->tgid == tgid && m->maps == maps && addr >= m->start &&
	    addr < m->end && find_recent(s, m, addr, out))
		return;
	find(s, tasks, tgid, addr, time, false, false, out);
	remember(s, out);
	if (!out->object || !tasks_map(tasks, tgid, addr, time, false, &map))
		return;
	*m = (struct recent_map){ state,     tgid,    maps,	 dso_at(s, tgid, &map) - s->dsos,
				  map.start, map.end, map.pgoff, map.path };
}

const struct inlined *symbols_inlined(const struct symbols *s, const struct symbol *sym)
{
	struct recent_name *n;

	if (s->opts.no_inline || !sym->object)
		return NULL;
	n = s->recent ? recent_name(s, sym->object, sym->offset) : NULL;
	if (!n || n->object != sym->object || n->offset != sym->offset)
		return object_inlined(sym->object, sym->offset);
	if (!n->has_inlined)
		n->inlined = object_inlined(sym->object, sym->offset);
	n->has_inlined = true;
	return n->inlined;
}

static bool kernel_code(struct symbols *s, const struct symbol *sym, __u64 addr,
			struct symbol_code *out)
{
	__u64 end;

	if (!s->kernel || !kernel_symbols_bounds(s->kernel, addr, &out->start, &end))
		return false;
	*out = (struct symbol_code){ .name = sym->name,
				     .dso = sym->dso,
				     .start = out->start,
				     .size = end - out->start,
				     .at = addr };
	return true;
}

bool symbols_code(struct symbols *s, const struct tasks *tasks, __u32 tgid, __u64 addr, __u64 time,
		  bool kernel, struct symbol_code *out)
{
	struct object_function f;
	struct task_map map;
	struct symbol sym;
	struct dso *d;

	symbols_find(s, tasks, tgid, addr, time, kernel, false, &sym);
	if (kernel)
		return kernel_code(s, &sym, addr, out);
	if (!tasks_map(tasks, tgid, addr, time, false, &map))
		return false;
	d = dso_at(s, tgid, &map);
	if (!d->object || !object_function(d->object, addr - map.start + map.pgoff, &f, &out->at))
		return false;
	*out = (struct symbol_code){ sym.name, sym.mangled, sym.dso, d->object,
				     f.start,  f.size,	    out->at };
	return true;
}

int symbols_code_read(struct symbols *s, const struct symbol_code *code, unsigned char *buf,
		      struct err *err)
{
	if (code->object)
		return object_read(code->object, code->start, buf, code->size) == code->size
			       ? 0
			       : err_set(err, -ENODATA, "%s: the file has no code of '%s'",
					 code->dso, code->name);
	if (!s->this_boot)
		return err_set(err, -ENODATA,
			       "the code of the kernel is read from the one that runs, and that is "
			       "not known to be the recorded one");
	return kernel_read(code->start, buf, code->size, err);
}

bool symbols_code_line(const struct symbol_code *code, __u64 addr, struct source_place *out)
{
	return code->object && object_line(code->object, addr, out);
}

const struct inlined *symbols_code_inlined(const struct symbols *s, const struct symbol_code *code,
					   __u64 addr)
{
	return s->opts.no_inline || !code->object ? NULL : object_inlined_at(code->object, addr);
}

void symbols_code_type(const struct symbol_code *code, __u64 addr, struct type_access *out)
{
	*out = (struct type_access){ .kind = TYPE_KERNEL };
	if (code->object)
		object_code_type(code->object, addr, out);
}

const char *symbols_code_name(const struct symbols *s, const struct symbol_code *code, __u64 addr)
{
	const char *name = NULL, *module;
	__u64 start, end;

	if (code->object)
		return object_name(code->object, addr);
	if (kernel_symbols_bounds(s->kernel, addr, &start, &end) && start == addr)
		name = kernel_symbols_find(s->kernel, addr, &module);
	return name;
}

void symbols_slab_type(struct symbols *s, const struct tasks *tasks, __u64 slab, __u64 addr,
		       unsigned int size, struct type_access *out)
{
	const struct ibs_slab *cache = slab_list_find(tasks_slabs(tasks), slab);
	struct task_map map;
	bool same = tasks_kernel(tasks, &map) && map.build_id
			    ? kernel_has_build_id(map.build_id, map.build_id_len)
			    : s->this_boot;

	if (cache)
		slab_types_find(&s->slabs, s->opts.btf, same, cache, slab, addr, size, out);
}

size_t symbols_problems(const struct symbols *s, void (*cb)(const char *text, void *arg), void *arg)
{
	char text[512];
	size_t n = 0;

	if (s->kernel_why[0]) {
		snprintf(text, sizeof(text), "the kernel: %s", s->kernel_why);
		cb(text, arg);
		n++;
	}
	if (s->slabs.why[0]) {
		cb(s->slabs.why, arg);
		n++;
	}
	n += symbols_code_problems(s, cb, arg);
	n += symbols_chain_problems(s, cb, arg);
	if (s->lacks_data) {
		cb("heaps, stacks and files of data: the recording has maps of code only; "
		   "ibscope record keeps all, and so does perf record -d",
		   arg);
		n++;
	}
	for (size_t i = 0; i < s->n_dsos; i++) {
		const struct dso *d = &s->dsos[i];

		const char *why = d->object ? object_problem(d->object) : d->why;

		/* memory without a file never has symbols */
		if (!d->opened || !why || d->no_program || (d->path[0] != '/' || d->path[1] == '/'))
			continue;
		snprintf(text, sizeof(text), "%.300s: %s", d->path, why);
		cb(text, arg);
		n++;
	}
	return n;
}
