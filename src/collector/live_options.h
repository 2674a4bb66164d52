/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Options that are set while a collector runs. They override those of file and command line. */
#ifndef IBSCOPE_LIVE_OPTIONS_H
#define IBSCOPE_LIVE_OPTIONS_H

#include "control.h"
#include "base/options.h"

#include <time.h>

struct live_option {
	char *name;
	char *value; /* NULL: the option takes none; "": its default */
	uid_t uid;   /* that set it */
	time_t when; /* when that was */
};

/* A name may be there several times, as an option may be given. The zero value is empty. */
struct live_options {
	struct live_option *one;
	size_t n, room;
};

/* Return: 0 or -ENOMEM. */
int live_options_copy(struct live_options *to, const struct live_options *from);

/* The lines of a request override those set before with the same names. Return: 0 or -ENOMEM. */
int live_options_set(struct live_options *l, const struct control_request *r);

/* Return: whether there was one of that name. */
bool live_options_unset(struct live_options *l, const char *name);

/* Return: whether both give that option the same values. */
bool live_options_same(const struct live_options *a, const struct live_options *b,
		       const char *name);

/* For struct option_set: is @name of file and command line overridden? @arg is a struct live_options. */
bool live_options_hide(void *arg, const char *name);

/* Return: 0, or a negative errno with @err. */
int live_options_apply(const struct live_options *l, const struct option_set *sets, size_t n_sets,
		       struct err *err);

void live_options_free(struct live_options *l);

#endif
