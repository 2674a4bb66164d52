/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Groups of a snapshot as text for other processes: a JSON object per line: head, groups, end. */
#ifndef IBSCOPE_SNAPSHOT_JSON_H
#define IBSCOPE_SNAPSHOT_JSON_H

#include "base/u64_map.h"
#include "rows.h"

#include <ibscope/pin_layout.h>

/* How the snapshot was measured. */
struct snapshot_about {
	char source[16], event[sizeof(((struct ibs_meta *)0)->event)];
	bool simulated;
	enum ibs_metric metric;
	__u64 period; /* 0: it varies */
	__u32 by;     /* enum ibs_by bits */
	unsigned int cpus;
	__u64 enabled_ns; /* of the event, over all CPUs */
};

void snapshot_put_head(FILE *f, const struct snapshot_about *about);
void snapshot_put_group(FILE *f, const struct group *g, const struct ibs_slot_name *name);

/* @left_out: groups that were not written. */
void snapshot_put_end(FILE *f, size_t left_out);

/* A parsed snapshot. Its ledger covers only these groups. */
struct snapshot_read {
	struct snapshot_about about;
	struct snapshot snapshot;
	struct ibs_slot_name *names; /* as many as groups, in any order */
	size_t left_out;
};

/**
 * snapshot_parse() - parse the text that the functions above write
 * @text:  modified, and moved past the end: a collector of two events sends two snapshots
 * @slots: numbers of groups by their keys, from earlier snapshots; new ones are added
 *
 * Return: 0, to be freed with snapshot_read_free(); or -EPROTO with @err.
 */
int snapshot_parse(char **text, struct u64_map *slots, struct snapshot_read *out, struct err *err);
/* A cgroup_namer for the parsed names. Return: NULL if the cgroup is unknown. */
const char *snapshot_read_name(const struct snapshot_read *r, __u64 id, enum label l);
void snapshot_read_free(struct snapshot_read *r);

#endif
