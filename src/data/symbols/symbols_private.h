/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What the files share that answer for addresses of a recording; symbols.h goes before it. */
#ifndef IBSCOPE_SYMBOLS_PRIVATE_H
#define IBSCOPE_SYMBOLS_PRIVATE_H

#include "base/intern.h"
#include "frame_state.h"
#include "stack_pages.h"
#include "symbols_slab.h"

#define UNKNOWN "[unknown]" /* name of a symbol without a file */

/* A file that maps were of; several of one path if it was replaced, or is of several containers. */
struct dso {
	const char *path; /* of tasks, where equal paths have one address */
	struct naming_root root;
	bool elsewhere; /* as in struct object_place */
	unsigned char build_id[20];
	unsigned int build_id_len;
	bool opened;
	struct object *object;
	char why[160];		      /* there is none */
	bool no_program;	      /* nor is it an ELF file */
	struct u64_map names, lines;  /* by offset in the file */
	struct u64_map stack_access;  /* enum insn_access bits, by offset in the file */
	bool stacks_asked, no_stacks; /* its code proves nothing of stacks */
	__u32 next;		      /* with the same path */
};

/* Where the paths of a process begin. */
struct process {
	struct naming_root root;
	bool alive;	/* `root` is known */
	bool noted;	/* `contained` is known */
	bool contained; /* it was in a container: without its root, its paths mean nothing here */
	struct code_list {
		bool tried;
		struct object *object; /* NULL: none is known */
		char why[160];	       /* there is one, but it cannot be used */
	} code_map, code_dump;	       /* /tmp/perf-PID.map, jit-PID.dump */
};

/* Recent answers, found by hash; newer ones replace others. */
#define RECENT_BITS 14
struct recent {
	/* what a process with certain maps has around an address */
	struct recent_map {
		__u64 state; /* of tasks; 0: none */
		__u32 tgid, maps, dso;
		__u64 start, end, pgoff;
		const char *path;
	} map[1 << RECENT_BITS >> 4];
	/* the name at an offset in a file */
	struct recent_name {
		__u64 offset;
		const struct object *object; /* NULL: none */
		const char *name, *mangled;
		const struct inlined *inlined;
		bool has_inlined;
	} name[1 << RECENT_BITS];
};

struct noted;

struct symbols {
	struct symbols_opts opts;
	bool trusted; /* recorded on this machine */
	bool this_boot;
	struct intern texts;

	struct dso *dsos;
	size_t n_dsos, room;
	struct u64_map dso_of;	  /* by address of the path */
	struct u64_map demangled; /* by address of the mangled name in `texts` */
	struct naming *naming;
	struct process *processes;
	size_t n_processes, processes_room;
	struct u64_map process_of; /* by tgid */

	struct recent *recent; /* NULL: none yet */
	unsigned int changes;  /* times that recent answers were dropped */

	struct noted *noted; /* by symbols_note() */
	size_t n_noted, noted_room;

	bool lacks_data; /* an address was asked for, and maps of data were not recorded */
	bool kernel_tried;
	struct kernel_symbols *kernel;
	char kernel_why[256];
	struct u64_map kernel_names, kernel_dsos; /* by address */
	struct slab_types slabs;
	struct disasm *disasm; /* NULL: not used yet */
	struct frame_codes codes;
	struct call_memo *calls; /* of call_before.c; NULL: none yet */
	struct chain_counts {
		__u64 unwound, cut; /* chains */
		__u64 time;	    /* of the last one */
		__u32 tid;
	} chains;
	struct stack_pages stacks;
	struct u64_map stack_names; /* by tid */
};

/* Recent answers are no longer valid. */
void symbols_forget_recent(struct symbols *s);

struct process *process_of(struct symbols *s, __u32 tgid);

/* The file of a map of code of a process, opened if it can be. It lives until the next call. */
struct dso *code_dso(struct symbols *s, __u32 tgid, const struct task_map *map);

/* The same, unopened. */
struct dso *dso_at(struct symbols *s, __u32 tgid, const struct task_map *map);

/* The same as if the process were in no container, which is found out only while samples are read. */
struct dso *dso_here(struct symbols *s, __u32 tgid, const struct task_map *map);

void dso_open(struct symbols *s, struct dso *d);

/* Which kernel it was is known by its own map, @map, or since it still runs. */
void symbols_open_kernel(struct symbols *s, const struct task_map *map);

/* Keep a text under a key. Return: it. */
const char *symbols_keep(struct symbols *s, struct u64_map *m, __u64 key, const char *text);
/* NULL: none was kept. */
const char *symbols_kept(const struct symbols *s, const struct u64_map *m, __u64 key);

/* By the names that the kernel gives to maps; variables are found first. */
enum data_kind data_kind_of(const char *path);

/* Is it, by its name, a map of memory that only has code if a process generated that? */
bool is_generated(const char *path);

/* Where generated code is without a map. */
extern const char symbols_generated_dso[];

/* Set out->name by the process's lists of such code, or out->no_list. Return: false if no name is known. */
bool symbols_generated(struct symbols *s, struct process *p, const struct tasks *tasks, __u32 tgid,
		       __u64 addr, __u64 time, struct symbol *out);

/* symbols_problems() of these lists. */
size_t symbols_code_problems(const struct symbols *s, void (*cb)(const char *text, void *arg),
			     void *arg);

/* A chain was unwound. Views may do that several times for a sample, one after the other. */
void symbols_count_chain(struct symbols *s, const struct trace_event *ev, bool cut);

/* symbols_problems() of call chains. */
size_t symbols_chain_problems(const struct symbols *s, void (*cb)(const char *text, void *arg),
			      void *arg);

/* Memory that nobody has named. */
static inline bool is_unnamed(const char *path)
{
	return !strcmp(path, "//anon");
}

#endif
