/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Names of functions and source lines for addresses of a recording. A file is used only if it
 * has the build-id that was recorded, or none was recorded and the recording is of this machine;
 * code that processes generated, they may have listed in jit-PID.dump or /tmp/perf-PID.map;
 * what cannot be named is shown as file and offset. Nothing is asked of the network.
 */
#ifndef IBSCOPE_SYMBOLS_H
#define IBSCOPE_SYMBOLS_H

#include "naming/naming.h"
#include "trace/tasks.h"
#include "types/data_types.h"

struct symbols;

struct symbols_opts {
	const struct trace_info *info; /* outlives the symbols */
	const char *kallsyms; /* file to believe; NULL: this kernel's, if it is that recorded */
	const char *btf; /* file with the types of the recorded kernel; NULL: as for kallsyms */
	const char *debug_dir; /* a further one beside /usr/lib/debug, or NULL */
	bool debuginfod;       /* the network may be asked (DEBUGINFOD_URLS) */
	bool mangled;	       /* names of C++ and Rust stay as the linker has them */
	bool no_inline; /* inlined functions are not looked for, which takes debug information */
	double cpu_s;	/* for names of all files together; 0: the default, of a command */
	double wall_s;	/* the same, of time; 0: no limit */
	int nice;	/* of the process that reads files */
	struct naming_memory *memory; /* files that were given up before, or NULL */
};

/*
 * Takes DEBUGINFOD_URLS out of the environment unless opts->debuginfod. Return: 0; or with
 * @err what reading opts->kallsyms failed with.
 */
int symbols_new(const struct symbols_opts *opts, struct symbols **out, struct err *err);
void symbols_free(struct symbols *s); /* accepts NULL */

/*
 * Call it for each sample before what it says of its process: the paths of one that was in a container mean nothing on
 * the host, once it has exited.
 */
void symbols_note_container(struct symbols *s, const struct tasks *tasks,
			    const struct trace_event *ev);

/* Grows when the answers for a process change though its maps do not. */
unsigned int symbols_changes(const struct symbols *s);

/*
 * To have as many files as possible named in little time: note all samples, then have them named, and then ask, of which nothing
 * is read any more. @chains: only code, to follow chains, and names of callers that are found so; of files that were named, in
 * what is left of the time.
 */
void symbols_note(struct symbols *s, const struct tasks *tasks, const struct trace_event *ev);
void symbols_name_noted(struct symbols *s, const struct tasks *tasks, bool chains);
/* Number of files that were not read for lack of time. */
size_t symbols_lack_time(const struct symbols *s);

/* The address of callers that are not known because the copy of the stack ends before them; its name is [cut]. */
#define SYMBOLS_CUT 1

/* Where an op was, as far as it is known. All strings live as long as the symbols. */
struct symbol {
	const char *name;    /* "[path]" without a name, "[unknown]" without a file */
	const char *mangled; /* as the linker has it; NULL: the same. Several may have one name. */
	const char *dso;     /* "[kernel]", "[module]"; NULL: not known */
	const char *srcline; /* "file:12"; NULL: not known, or not asked for */
	bool given_up;	     /* no name, since reading the file costs too much */
	bool lacks_time;     /* the same, since the time was up before it was read */
	bool no_list;	     /* no name, since the process lists no code that it generates */

	/* for symbols_inlined(): the file with the address, NULL: none; where in it */
	struct object *object;
	__u64 offset;
};

/**
 * symbols_find() - the symbol of an address at a time
 * @srcline: find the source line too, which is slow
 *
 * Return: 0
 */
void symbols_find(struct symbols *s, const struct tasks *tasks, __u32 tgid, __u64 addr, __u64 time,
		  bool kernel, bool srcline, struct symbol *out);

/*
 * The innermost function that was inlined at the symbol's address, or NULL. Equal inlinings have equal pointers. Kernel and
 * generated code have none.
 */
const struct inlined *symbols_inlined(const struct symbols *s, const struct symbol *sym);

/* The function that an address is in. Addresses are those that the linker gave; the kernel's are its own. */
struct symbol_code {
	const char *name, *mangled, *dso; /* as in struct symbol */
	struct object *object;		  /* NULL: of the kernel */
	__u64 start, size;
	__u64 at; /* of the address */
};

/* Return: false if no symbol covers it; what it is then, symbols_find() says. */
bool symbols_code(struct symbols *s, const struct tasks *tasks, __u32 tgid, __u64 addr, __u64 time,
		  bool kernel, struct symbol_code *out);

/* All code->size bytes of a function. Return: 0, or a negative errno with @err. */
int symbols_code_read(struct symbols *s, const struct symbol_code *code, unsigned char *buf,
		      struct err *err);

/* The source line of an address in the function's file. Return: false if not known. */
bool symbols_code_line(const struct symbol_code *code, __u64 addr, struct source_place *out);

/* symbols_inlined() of an address in the function's file. */
const struct inlined *symbols_code_inlined(const struct symbols *s, const struct symbol_code *code,
					   __u64 addr);

/* The type and field that the instruction at an address in the function's file accesses. */
void symbols_code_type(const struct symbol_code *code, __u64 addr, struct type_access *out);

/* The function of the same file that begins at an address, or NULL. */
const char *symbols_code_name(const struct symbols *s, const struct symbol_code *code, __u64 addr);

/* What lies at the address of data. X(NAME, "name", "meaning") */
#define DATA_KIND_TABLE(X)                                                                       \
	X(VARIABLE, "variable", "a variable of a program, a library or the kernel")              \
	X(HEAP, "heap", "the heap that brk() extends")                                           \
	X(STACK, "stack", "the stack of a thread")                                               \
	X(ANONYMOUS, "anonymous", "other private memory: large blocks, stacks not proven")       \
	X(SHARED, "shared", "shared memory without a file")                                      \
	X(FILE, "file", "a mapped file that is not a program")                                   \
	X(SPECIAL, "special", "what the kernel maps into processes, as [vdso]")                  \
	X(NO_SYMBOL, "no_symbol", "a program or library, but no symbol covers the address")      \
	X(NO_OBJECT, "no_object",                                                                \
	  "a program or library that cannot be read, costs too much to read, or is another one") \
	X(KERNEL, "kernel", "kernel memory outside its variables")                               \
	X(UNMAPPED, "unmapped", "no recorded map has the address")                               \
	X(NO_ADDRESS, "no_address", "the sample has no data address, or no process")

enum data_kind {
#define DATA_KIND_ENUM(name, ...) DATA_##name,
	DATA_KIND_TABLE(DATA_KIND_ENUM)
#undef DATA_KIND_ENUM
		DATA_KIND_N
};

const char *data_kind_name(enum data_kind k);

/* All strings live as long as the symbols and the tasks. */
struct data_place {
	enum data_kind kind;
	const char *mapping;  /* the file, "[heap]", "[stack:TID]", "[anon]", "[kernel]" ... */
	__u64 start, end;     /* of that map, @end behind it; 0: no map has the address */
	const char *variable; /* NULL: it is not DATA_VARIABLE */
	const char *mangled;  /* its name as the linker has it; NULL: the same */
	bool has_offset;      /* in the variable, or in a DATA_FILE: */
	__u64 offset;

	/* for symbols_type(): the file with a segment there, NULL: none; as for object_variable() */
	struct object *object;
	__u64 pgoff, at;
	bool exec;
};

/**
 * data_place_label() - the variable, or what else is there, in brackets
 * @buf: the label may be in it
 *
 * Return: NULL if nothing is known.
 */
const char *data_place_label(const struct data_place *place, char *buf, size_t size);

/**
 * symbols_data() - what lay at a data address of a process at a time
 *
 * Variables are found by address and size in the symbols of what was mapped; of the kernel, by their
 * neighbours in its list. Where the recording has maps of code only, as perf's without -d, those
 * still say where variables are. Memory that no map has is the stack if it is where only stacks are.
 */
void symbols_data(struct symbols *s, const struct tasks *tasks, __u32 tgid, __u64 addr, __u64 time,
		  struct data_place *out);

/* Begin to load what that will need; @near: some calls later, to continue. */
void symbols_data_expect(const struct symbols *s, __u32 tgid, __u64 addr, bool near);

/* Learn the same from one sample, for those who ask symbols_data() only after the last one. */
void symbols_learn_stack(struct symbols *s, const struct tasks *tasks,
			 const struct trace_event *ev);

/**
 * symbols_read_stacks() - learn from all samples of a recording what is the stack of which thread
 *
 * The kernel names the stack of the first thread alone. A later symbols_data() knows those of others as far as
 * stack_pages.h says. The recording is rewound before and after.
 *
 * Return: 0 or what trace_next() returned.
 */
int symbols_read_stacks(struct symbols *s, const struct tasks *tasks, struct trace *trace,
			struct err *err);

/**
 * symbols_type() - the type and field that an op of a process accessed
 * @ip:   NULL: unknown
 * @data: what lies at the data's address, by symbols_data(), or DATA_NO_ADDRESS
 * @size: bytes accessed, 0: unknown
 *
 * By the instruction; where that gives no field of a type, by the variable that has the address.
 */
void symbols_type(struct symbols *s, const struct tasks *tasks, __u32 tgid, const __u64 *ip,
		  const struct data_place *data, unsigned int size, __u64 time,
		  struct type_access *out);

/*
 * The same of an address in a slab cache of the kernel, by the type information of the recorded kernel. Where that
 * says nothing for sure, out->type is the cache in brackets; *out stays if the cache is not known.
 * @slab: of the sample
 */
void symbols_slab_type(struct symbols *s, const struct tasks *tasks, __u64 slab, __u64 addr,
		       unsigned int size, struct type_access *out);

/* types_layout() of the first file that has the type. */
bool symbols_type_layout(struct symbols *s, const char *name, types_field_cb *cb, void *arg);

/**
 * symbols_problems() - what could not be used, and why: a call a file
 *
 * Return: how many.
 */
size_t symbols_problems(const struct symbols *s, void (*cb)(const char *text, void *arg),
			void *arg);

#endif
