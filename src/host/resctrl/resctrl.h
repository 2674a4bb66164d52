/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Bandwidth of containers from resctrl monitoring groups that exist already; none is ever created.
 *
 * A group is a container's if all its tasks are. A container that also has tasks elsewhere, in a group that it shares,
 * has unknown figures: those of its own groups would be too low. The same holds for text instead of a number
 * ("Unavailable", "Unassigned", "Error"), counters that fall, and files that vanish.
 */
#ifndef IBSCOPE_RESCTRL_H
#define IBSCOPE_RESCTRL_H

#include <stdbool.h>
#include <stddef.h>

struct resctrl;

enum resctrl_measure {
	RESCTRL_TOTAL,	   /* memory traffic, bytes per second */
	RESCTRL_LOCAL,	   /* the part to memory of the same node */
	RESCTRL_OCCUPANCY, /* of the L3, bytes */
	RESCTRL_MEASURES
};

struct resctrl_figures {
	struct {
		double sum, peak;
		unsigned int readings; /* 0: unknown */
	} of[RESCTRL_MEASURES];
};

/*
 * @root: prefix of the file system, "" for the real one
 *
 * Return: NULL if resctrl is not mounted in /sys/fs/resctrl, or if processes of other PID namespaces are hidden: a
 * group may then have tasks that nobody sees.
 */
struct resctrl *resctrl_open(const char *root);
void resctrl_close(struct resctrl *r); /* accepts NULL */

/*
 * Read the counters once more, unless that was done within the last half second; rates are those since then. Every tenth time, and if @last, the tasks are read,
 * too: figures count only if the tasks were of the same containers before and after.
 */
void resctrl_read(struct resctrl *r, double now_s, bool last);

/* @container: "POD/NAME", or "NAME" outside pods. Return: false if nothing is known. */
bool resctrl_of(const struct resctrl *r, const char *container, unsigned int complex,
		struct resctrl_figures *out);

/* Monitoring groups, the root included, and those of one container each; as of the last look at the tasks. */
void resctrl_groups(const struct resctrl *r, size_t *all, size_t *owned);

/* "12.3 GB/s of memory traffic, 14.0 MiB of the L3"; "" if neither is known. The highest readings. */
void resctrl_text(const struct resctrl_figures *f, char *buf, size_t size);

#endif
