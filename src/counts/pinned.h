/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The reader's side of a directory of pins: needs no privilege but to open the files. */
#ifndef IBSCOPE_PINNED_READER_H
#define IBSCOPE_PINNED_READER_H

#include "counts.h"

#include <ibscope/pin_layout.h>

struct pinned;

/**
 * pinned_open() - read what a collector has pinned
 *
 * Who may write the files maps them, and gives up the right to write; others read by bpf(). Cheap
 * enough for every scrape; open again to find a collector that has started from zero.
 *
 * Return: 0; or a negative errno with @err:
 * -ENOENT  there is no collector, nor was one
 * -EACCES  file modes forbid it; @err names the file
 * -EPERM   the kernel lets nobody without CAP_BPF read maps (before v5.19), or other users could have put
 *	    @dir or what is in it there
 * -EPROTO  of a schema that this build does not read
 */
int pinned_open(const char *dir, struct pinned **out, struct err *err);

/**
 * pinned_open_at() - the same through an open directory
 * @dir_fd: opened with O_PATH: directories above it need not let us pass any more; -1: by path
 * @dir:    its path, for messages; the caller has checked who may write to it
 */
int pinned_open_at(int dir_fd, const char *dir, struct pinned **out, struct err *err);

/* The counters of ibs_fetch, where the collector samples both events; else NULL. Closed with @p. */
struct pinned *pinned_second(const struct pinned *p);

/* The directory still has the same counters. */
bool pinned_current(const struct pinned *p, int dir_fd, const char *dir);

/* Memory is mapped and reading costs no samples; else each look-up may cost one, on its CPU. */
bool pinned_mapped(const struct pinned *p);

/* A whole copy, as status and texts are written meanwhile; its texts end. */
void pinned_meta(const struct pinned *p, struct ibs_meta *out);

const struct counts *pinned_counts(const struct pinned *p);

/* What the collector knows of samples beside what is counted: all but `seen` and the outcomes. */
void pinned_ledger(const struct ibs_meta_status *st, struct ledger *out);

/**
 * pinned_snapshot() - everything counted so far, the PMU's state included
 *
 * As sampler_snapshot(), but the PMU's counts are as old as the collector's last tick.
 */
int pinned_snapshot(const struct pinned *p, struct snapshot *out, struct err *err);

/* The names of a group that counts_read() found; all "" where there are none yet. */
void pinned_name(const struct pinned *p, const struct group *g, struct ibs_slot_name *out);

/* Nothing that a layout says leads outside the maps that it says there are. */
bool pinned_layout_ok(const struct ibs_meta_layout *l);

/* Where the counts are in maps of such a layout, by enum ibs_pin. */
void pinned_place(const struct ibs_meta_layout *l, void *const addr[IBS_PIN_N],
		  struct layout *layout, struct counts *out);

void pinned_close(struct pinned *p); /* accepts NULL */

#endif
