/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What the files of this room share; naming.h goes before it. */
#ifndef IBSCOPE_NAMING_PRIVATE_H
#define IBSCOPE_NAMING_PRIVATE_H

#include "base/intern.h"
#include "naming_wire.h"

#include <sys/stat.h>

/* What one object may cost. */
#define OBJECT_CPU_S   10.0 /* of the worker, for all questions */
#define OBJECT_SMALL_S 0.5  /* the same, once all objects together have taken their time */
#define OBJECT_STUCK_S 30.0 /* without progress: its file system does not answer */
#define OBJECT_MEMORY  (256ULL << 20) /* bytes that are not of files */
#define OBJECT_TEXTS   (32ULL << 20)  /* bytes of names */
#define WHY_BYTES      160

/* Code of all objects that is kept, 4 MiB at most. */
#define CODE_CHUNK  4096u /* bytes */
#define CODE_CHUNKS 1024
_Static_assert(CODE_CHUNK <= NAMING_TEXTS * NAMING_TEXT_MAX, "a reply has room for a chunk");

/* In an attempt: a worker that waits so long keeps others from being read. */
#define ATTEMPT_STUCK_S 3.0
#define KEPT_S		0.05 /* what takes more is remembered, with its names */

struct naming {
	struct naming_opts opts;
	char *debug_dir;
	pid_t pid; /* of the worker; 0: none */
	int sock;
	__u32 generation; /* workers so far */
	__u32 served;	  /* objects that this worker opened */
	__u64 base_ns;	  /* its CPU time that has been accounted for */
	__u64 spent_ns;	  /* CPU time of all workers */
	double began_s;
	double attempt_s; /* limit of an attempt */
	bool ended;
	bool asks_inlined;   /* object_inlined() was called: its answer comes with names */
	char why[WHY_BYTES]; /* there is no worker, and will be none */
	struct intern texts;
	__u32 objects; /* so far */
	struct naming_request request;
	struct naming_reply reply;
	struct code_chunk *chunk; /* CODE_CHUNKS, by the hash of object and offset; NULL: none */
};

/* An answer is kept, since samples ask the same again and again. */
struct answer {
	__u32 op, size, flag;
	__u64 a, b;
	__s32 ret;
	__u64 v[3];
	const char *text[3]; /* the last one is text 3 of the reply */
};

/* Offsets in a file with the same name. */
struct name_span {
	__u64 from, until; /* the end is excluded */
	__u64 inlined;	   /* id of the innermost function that was inlined there; 0: none */
	bool has_inlined;  /* it was asked for */
	const char *text[2];
};

struct object {
	struct naming *naming;
	struct naming_root root;
	int fd; /* -1: its path names no usable file, for the reason in path_errno */
	int path_errno;
	struct stat stat;
	char *path;
	unsigned char build_id[20];
	unsigned int build_id_len;
	bool trusted;
	__u32 code_list;	  /* NAMING_CODE_MAP or NAMING_CODE_DUMP; 0: it is an ELF file */
	__u32 number, generation; /* of the worker that has it open; 0: none */
	__u64 spent_ns;		  /* CPU time of this attempt */
	__u64 text_bytes;
	bool given_up; /* it is not asked any more */
	bool is_last; /* the time of all objects was up after that much CPU time of this attempt: */
	double last_from_s;
	bool lacks_time;     /* because the time was up */
	bool deferred;	     /* it is not asked in this attempt */
	bool other;	     /* it is not the file that was mapped, or none */
	char why[WHY_BYTES]; /* names are missing */
	struct answer *answers;
	size_t n_answers, room;
	struct u64_map answer_of; /* by hash of the question */
	struct name_span *spans;  /* by `from`; of a well-formed file they do not overlap */
	size_t n_spans, spans_room;
	struct inlined **inlined;
	size_t n_inlined, inlined_room;
	/* by id; by offset, and by address, the innermost one or NOT_INLINED */
	struct u64_map inlined_of, inlined_at[2];
	struct known_frame *frames; /* of object_frame() */
	size_t n_frames, frames_room;
	struct u64_map frame_of; /* by offset */
};

/**
 * naming_ask() - put naming->request to the worker
 *
 * Starts a worker and opens the object in it if needed. An object that fails in a worker that others were read by is
 * tried again in a new one, so that the right one is blamed.
 *
 * Return: false if the object is given up; else naming->reply is valid.
 * @texts: its texts
 */
bool naming_ask(struct object *o, const char *texts[NAMING_TEXTS]);

/* Have the worker close it. */
void naming_close(struct object *o);

/* Open the object in a worker. Return: false with o->why. */
bool naming_open(struct object *o);

/* The object ends. */
void object_forget_code(const struct object *o);

/* Why was this file given up before? NULL: it was not. */
const char *naming_remembered(const struct naming_memory *m, const struct stat *st);
void naming_remember(struct naming_memory *m, const struct object *o);

/* CPU time of an attempt, in which it was read or deferred. Return: 0 if unknown. */
double naming_cost(const struct naming_memory *m, const struct object *o);
void naming_remember_cost(struct naming_memory *m, const struct object *o);

/*
 * What dear objects may take over many profiles: DEAR_SHARE of the time, and at most @most_s at once, with which the memory
 * begins.
 */
#define DEAR_S	   0.25
#define DEAR_SHARE 0.05
double naming_allowance(struct naming_memory *m, double most_s);
void naming_spend(struct naming_memory *m, double cpu_s);

/* Names of objects that take long to read. Return: false if it is not known whether there is a name. */
bool naming_recall(const struct naming_memory *m, const struct object *o, __u64 offset,
		   const char *texts[2]);
void naming_keep(struct naming_memory *m, const struct object *o, __u64 offset,
		 const char *const texts[2]);

#endif
