/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The reader's side of a directory of pins: needs no privilege except to open the files. */
#ifndef IBSCOPE_PINNED_READER_H
#define IBSCOPE_PINNED_READER_H

#include "counts/counts.h"

#include <ibscope/pin_layout.h>

struct pinned;

/**
 * pinned_open() - open the pins of a collector
 *
 * A reader that may write the files maps them, and gives up write access; others read by bpf().
 * Cheap enough for every scrape; open again to detect a collector that has started from zero.
 *
 * Return: 0; or a negative errno with @err:
 * -ENOENT  there is and was no collector
 * -EACCES  file modes forbid it; @err names the file
 * -EPERM   the kernel lets only CAP_BPF read maps (before v5.19), or other users could have created
 *     @dir or its contents
 * -EPROTO  of a schema that this build does not read
 */
int pinned_open(const char *dir, struct pinned **out, struct err *err);

/**
 * pinned_open_at() - the same through an open directory
 * @dir_fd: opened with O_PATH: search permission above it is no longer needed; -1: by path
 * @dir:    its path, for messages; the caller has checked who may write to it
 */
int pinned_open_at(int dir_fd, const char *dir, struct pinned **out, struct err *err);

/* The counters of ibs_fetch if the collector samples both events, else NULL. Closed with @p. */
struct pinned *pinned_second(const struct pinned *p);

/* True if the directory still has the same counters. */
bool pinned_current(const struct pinned *p, int dir_fd, const char *dir);

/* True if memory is mapped, so that reading costs no samples; a lookup may cost one on its CPU. */
bool pinned_mapped(const struct pinned *p);

/* A consistent copy, although status and texts are being written; texts are terminated. */
void pinned_meta(const struct pinned *p, struct ibs_meta *out);

const struct counts *pinned_counts(const struct pinned *p);

/* What the PMU did, by the collector's status. */
void pinned_pmu(const struct pinned *p, const struct ibs_meta_status *st, struct pmu_state *out);

/* The collector's own numbers: sets all but `seen` and the outcomes. */
void pinned_ledger(const struct ibs_meta_status *st, struct ledger *out);

/**
 * pinned_snapshot() - everything counted so far, including the PMU's state
 *
 * As sampler_snapshot(), but the PMU's counts are as old as the collector's last tick.
 */
int pinned_snapshot(const struct pinned *p, struct snapshot *out, struct err *err);

/* Names of a group from counts_read(); all "" if there are none yet. */
void pinned_name(const struct pinned *p, const struct group *g, struct ibs_slot_name *out);

/* What the collector says of neighbours. */
void pinned_neighbours(const struct pinned *p, struct ibs_neighbours *out);

/* True if the layout does not lead outside the maps. */
bool pinned_layout_ok(const struct ibs_meta_layout *l);

/* Set the positions of the counts in maps of this layout, indexed by enum ibs_pin. */
void pinned_place(const struct ibs_meta_layout *l, void *const addr[IBS_PIN_N],
		  struct layout *layout, struct counts *out);

void pinned_close(struct pinned *p); /* accepts NULL */

#endif
