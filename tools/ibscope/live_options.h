/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Options that are set while a collector runs. They come after file and command line, and what is
 * said here of a name takes the place of all that those say of it.
 */
#ifndef IBSCOPE_LIVE_OPTIONS_H
#define IBSCOPE_LIVE_OPTIONS_H

#include "control.h"
#include "options.h"

#include <time.h>

struct live_option {
	char *name;
	char *value; /* NULL: takes none; "": as if it were not given */
	uid_t uid;   /* who set it, */
	time_t when; /* as the clock was then */
};

/* Several of one name are several times that option. The zero value is none at all. */
struct live_options {
	struct live_option *one;
	size_t n;
};

/* Return: 0 or -ENOMEM. */
int live_options_copy(struct live_options *to, const struct live_options *from);

/* What a request says of a name takes the place of what was set. Return: 0 or -ENOMEM. */
int live_options_set(struct live_options *l, const struct control_request *r);

/* Return: was there one of that name? */
bool live_options_unset(struct live_options *l, const char *name);

/* Do both say the same of that name? */
bool live_options_same(const struct live_options *a, const struct live_options *b,
		       const char *name);

/* For struct option_set: is what file and command line say of @name void? @arg is a struct live_options. */
bool live_options_hide(void *arg, const char *name);

/* Return: 0, or a negative errno with @err. */
int live_options_apply(const struct live_options *l, const struct option_set *sets, size_t n_sets,
		       struct err *err);

void live_options_free(struct live_options *l);

#endif
