/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Names of functions and source lines for addresses of a recording. A file is believed only if it
 * has the build-id that was recorded, or none was recorded and the recording is of this machine;
 * what cannot be named is shown as file and offset. Nothing is asked of the network.
 */
#ifndef IBSCOPE_SYMBOLS_H
#define IBSCOPE_SYMBOLS_H

#include "trace/tasks.h"

struct symbols;

struct symbols_opts {
	const struct trace_info *info; /* outlives the symbols */
	const char *kallsyms;  /* file to believe; NULL: this kernel's, if it is that recorded */
	const char *debug_dir; /* a further one beside /usr/lib/debug, or NULL */
	bool debuginfod;       /* the network may be asked (DEBUGINFOD_URLS) */
};

/*
 * Takes DEBUGINFOD_URLS out of the environment unless opts->debuginfod. Return: 0; or with
 * @err what reading opts->kallsyms failed with.
 */
int symbols_new(const struct symbols_opts *opts, struct symbols **out, struct err *err);
void symbols_free(struct symbols *s); /* accepts NULL */

/* Where an op was, as far as it is known. All strings live as long as the symbols. */
struct symbol {
	const char *name;    /* "[path]" without a name, "[unknown]" without a file */
	const char *dso;     /* "[kernel]", "[module]"; NULL: not known */
	const char *srcline; /* "file:12"; NULL: not known, or not asked for */
};

/**
 * symbols_find() - the symbol of an address at a time
 * @srcline: find the source line too, which is slow
 *
 * Return: 0
 */
int symbols_find(struct symbols *s, const struct tasks *tasks, __u32 tgid, __u64 addr, __u64 time,
		 bool kernel, bool srcline, struct symbol *out);

/**
 * symbols_problems() - what could not be used, and why: a call a file
 *
 * Return: how many.
 */
size_t symbols_problems(const struct symbols *s, void (*cb)(const char *text, void *arg),
			void *arg);

#endif
