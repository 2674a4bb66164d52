/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Names from object files that strangers wrote. This process opens the files; a worker without privileges, confined
 * to the descriptors that it gets, reads them. An object that costs too much, or crashes the worker, is given up
 * and remembered, and the others are named.
 */
#ifndef IBSCOPE_NAMING_H
#define IBSCOPE_NAMING_H

#include "base/std.h"
#include "files.h"
#include "frame_row.h"
#include "source_place.h"
#include "types/data_types.h"

struct naming;
struct object;
struct naming_memory;

/* Objects that were given up, shared with all processes that are forked later. Return: NULL without memory. */
struct naming_memory *naming_memory_new(void);
void naming_memory_free(struct naming_memory *m);	     /* accepts NULL */
unsigned int naming_memory_n(const struct naming_memory *m); /* accepts NULL */
/* The next one, by a counter that began at 0. Return: false if there is none yet. */
bool naming_memory_next(const struct naming_memory *m, __u32 *seen, const char **path,
			const char **why);

struct naming_opts {
	const char *debug_dir; /* another one beside /usr/lib/debug, or NULL */
	bool debuginfod;       /* servers may be asked */
	bool mangled;	       /* names stay as the linker has them */
	/*
	 * CPU time of all objects together; then each has only OBJECT_SMALL_S more, and none after twice that time. 0: no
	 * limit
	 */
	double cpu_s;
	double wall_s; /* from naming_new() on; then no object is read. 0: no limit */
	int nice;      /* of the worker */
	struct naming_memory *memory; /* or NULL */
};

/* The worker starts with the first object. */
struct naming *naming_new(const struct naming_opts *opts);
void naming_free(struct naming *n); /* accepts NULL; after all its objects */

/* A file that was mapped. */
struct object_place {
	struct naming_root root;
	const char *path;
	const unsigned char *build_id; /* NULL: unknown */
	unsigned int build_id_len;
	bool trusted; /* the path is of this machine: a file without a build-id is believed */
	bool elsewhere; /* the path is that of a container whose files are out of reach: only a build-id finds it */
};

/**
 * object_open() - open the file that was mapped
 * @why: on failure, the reason for people, at most @size bytes
 *
 * Return: NULL if there is no such file, or it is another one; if it costs too much, an object without names.
 * It must be closed before @n is freed.
 */
struct object *object_open(struct naming *n, const struct object_place *place, char *why,
			   size_t size);
void object_close(struct object *o); /* accepts NULL */

/* Why names are missing, or NULL if none are, as far as has been asked. */
const char *object_problem(const struct object *o);
/* Are they missing because the time was up, and not because of the object alone? */
bool object_lacks_time(const struct object *o);

/*
 * Who has more objects than time tries them in an order of its own, the cheap ones first: objects are opened and asked with a
 * limit of 0, which reads nothing, and then tried again with limits at which they are not deferred.
 */

/* An object is deferred once an attempt has taken so much CPU time. INFINITY, as at first: none is. */
void naming_limit_attempt(struct naming *n, double cpu_s);
/* Is the time up, for all objects or for one that takes as much CPU time as @cost_s? */
bool naming_is_over(const struct naming *n);
bool naming_affords(const struct naming *n, double cost_s);
/* Read nothing from now on. */
void naming_end(struct naming *n);
/* Questions are asked again, of objects that were not given up, in what is left of the time. */
void naming_go_on(struct naming *n);

/* Begin an attempt. */
void object_attempt(struct object *o);
/* Did it exceed the limit? Then questions have no answers that are not known yet. */
bool object_deferred(const struct object *o);
/* Did it turn out that it is not the file that was mapped? Then close it. @why: as for object_open() */
bool object_is_other(const struct object *o, char *why, size_t size);
/* End an attempt: the worker closes the object; answers are kept. */
void object_rest(struct object *o);
/* CPU time that an attempt may take: as it took before, or by the size of its file. */
double object_cost(const struct object *o);
/* Whose file it is. */
__u64 object_owner(const struct object *o);

/* A process that may list the code it generates; see file_open_code_list(). */
struct code_map_place {
	struct naming_root root;
	pid_t pid;
	bool alive;
	const char
		*dump; /* the file jit-PID.dump that it mapped; NULL: /tmp/perf-PID.map is meant */
};

/*
 * The same of such a list, of which only object_symbol() may be asked, by address, or if it is a dump object_code_at().
 * *why: "" if there is no list and no map names one.
 */
struct object *object_open_code_map(struct naming *n, const struct code_map_place *place, char *why,
				    size_t size);

/* The name of code that was at an address at a time, by CLOCK_MONOTONIC, or NULL. */
const char *object_code_at(struct object *o, __u64 addr, __u64 time);

/* Texts below live as long as the struct naming. */

/* Names of functions and variables are as people write them, with namespaces and without parameters. */
struct object_name {
	const char *name;    /* NULL: none is known */
	const char *mangled; /* as the linker has it; NULL: the same */
};

#define INLINED_MAX 128 /* functions inlined into each other */

/* A function that the compiler inlined; those that it was inlined into follow. */
struct inlined {
	struct object_name function;
	const char *file; /* of the call; NULL: unknown */
	int line;
	unsigned int depth;	    /* at most INLINED_MAX */
	const struct inlined *into; /* NULL: the function that has the code */
};

/* The name at an offset in the file. Return: false if none is known. */
bool object_symbol(struct object *o, __u64 offset, struct object_name *out);

/*
 * The innermost function that was inlined at an offset in the file, or NULL; it lives as long as @o, and is the same for all
 * offsets of one inlining.
 */
const struct inlined *object_inlined(struct object *o, __u64 offset);
/* The same at an address that the linker gave. */
const struct inlined *object_inlined_at(struct object *o, __u64 addr);

/**
 * object_variable() - the variable at an address that belongs to a map of the file
 * @pgoff:  of the map in the file
 * @exec:   it is of code: then addresses of all segments count from it, else those of its own
 * @offset: of the address from the map's first byte, plus @pgoff; behind the map it may be in .bss
 * @name:   of the symbol with a size that covers the address
 * @at:     how far behind the first byte of the variable
 *
 * Return: false if the address is in no segment of the file.
 */
bool object_variable(struct object *o, __u64 pgoff, bool exec, __u64 offset,
		     struct object_name *name, __u64 *at);

/* The type and field that the instruction at an address accesses, as the linker gave it. */
void object_code_type(struct object *o, __u64 addr, struct type_access *out);
/* The same at an offset in the file. */
void object_type(struct object *o, __u64 offset, struct type_access *out);
/* The type and field of the variable at an address, as for object_variable(); @size: bytes accessed, 0: unknown. */
void object_variable_type(struct object *o, __u64 pgoff, bool exec, __u64 offset, unsigned int size,
			  struct type_access *out);
/* types_layout() of what has been asked for. */
bool object_layout(struct object *o, const char *name, types_field_cb *cb, void *arg);

/* A function and its first byte; name and addresses are those that the linker gave. */
struct object_function {
	const char *name;
	__u64 start, size;
};

/**
 * object_function() - the function at an offset in the file
 * @at: its address
 *
 * One without a size ends where the next begins. Return: false if there is none.
 */
bool object_function(struct object *o, __u64 offset, struct object_function *out, __u64 *at);

/* The name of the function that begins at an address, or NULL. */
const char *object_name(struct object *o, __u64 addr);

/* Code from an address on. Return: how many bytes the file has of it, at most @size. */
size_t object_read(struct object *o, __u64 addr, unsigned char *buf, size_t size);
/* The same from an offset in the file on; at most a few instructions. */
size_t object_code(struct object *o, __u64 offset, unsigned char *buf, size_t size);

/* How to find the caller at an offset in the file, or NULL; it lives until the next call. Its numbers may be any. */
const struct frame_row *object_frame(struct object *o, __u64 offset);

/* Is it a program of Go, by its sections? */
bool object_is_go(struct object *o);

/* The source line of an address. Return: false if not known. */
bool object_line(struct object *o, __u64 addr, struct source_place *out);
/* "file:line", or NULL. */
const char *object_srcline(struct object *o, __u64 offset);

#endif
