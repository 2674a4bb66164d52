// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Attempts to read objects that may take long. */
#include "naming.h"
#include "naming_private.h"

#define BYTE_S 10e-9 /* of a file with many symbols */

void naming_limit_attempt(struct naming *n, double cpu_s)
{
	n->attempt_s = cpu_s;
}

bool naming_affords(const struct naming *n, double cost_s)
{
	return cost_s <= DEAR_S || !n->opts.memory ||
	       cost_s <= naming_allowance(n->opts.memory, n->opts.cpu_s);
}

void naming_end(struct naming *n)
{
	n->ended = true;
}

void naming_go_on(struct naming *n)
{
	n->ended = false;
}

void object_attempt(struct object *o)
{
	o->deferred = o->is_last = false;
	o->spent_ns = 0;
}

bool object_deferred(const struct object *o)
{
	return o->deferred;
}

bool object_is_other(const struct object *o, char *why, size_t size)
{
	if (o->other)
		snprintf(why, size, "%s", o->why);
	return o->other;
}

void object_rest(struct object *o)
{
	naming_close(o);
	if (o->spent_ns > KEPT_S * 1e9)
		naming_remember_cost(o->naming->opts.memory, o);
}

double object_cost(const struct object *o)
{
	return naming_cost(o->naming->opts.memory, o) ?: o->stat.st_size * BYTE_S;
}

/* In another root all users are those of one tenant. */
__u64 object_owner(const struct object *o)
{
	return o->root.id ?: o->stat.st_uid;
}
