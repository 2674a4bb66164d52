/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Shared by the files of the command `top`. */
#ifndef IBSCOPE_TOP_OPTIONS_H
#define IBSCOPE_TOP_OPTIONS_H

#include "input/recorded.h"
#include "base/options.h"
#include "session/session.h"
#include "top/source.h"

struct top_cmd {
	struct sampling_opts sampling;
	struct top_opts top;
	bool once, html, own;
	const char *pin_dir, *user_socket; /* NULL: not given */
	struct recorded_input input;
	struct trace *trace;
	struct replay_opts replay;
	double speed;
	bool mangled;	   /* names of functions stay as the linker has them */
	int width, height; /* of --size; 0: size of the terminal */
	struct top_source *source;
	struct top *view;
	int sigfd;
	FILE *log; /* collects log messages while the screen is up */
	char *log_text;
	size_t log_size;
	char trouble[1024];  /* the last warning that was not shown yet */
	bool answered;	     /* the line on the screen is what a key led to */
	unsigned int labels; /* requested from the source */
	double began;	     /* start of the current interval */
	__u64 seen;	     /* samples of all intervals */
	char command[1024], annotate[1024], host[256];
	char given[TABLE_OPTIONS][512]; /* of the command, what rows replace */
};

/* Their context is a struct top_cmd. */
extern const struct option_row top_options[];
extern const size_t top_n_options;

void top_usage(FILE *f, const struct option_set *sets, size_t n);

/* Keep the arguments that no key changes, as given. */
void top_keep_command(struct top_cmd *c, int argc, char **argv);

/* The command that shows the instructions of a function of the recording, without the function. */
void top_keep_annotate(struct top_cmd *c, int argc, char **argv);

/* A word on options that select more than they seem to; NULL: none. */
const char *top_note(const struct select_options *s);

/* Options without effect are errors. @selects: some options select samples. */
int top_check_options(const struct top_cmd *c, bool selects, struct err *err);

#endif
