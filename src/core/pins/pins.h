/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The collector's side of a directory of pins, which one collector at a time owns. */
#ifndef IBSCOPE_PINS_H
#define IBSCOPE_PINS_H

#include "base/err.h"

#include <ibscope/pin_layout.h>
#include <sys/types.h>

struct pins;

/**
 * pins_open() - take over a directory in bpffs, with the pins of an earlier collector
 * @dir:  created if needed
 * @mode: of the pins that readers open, such as 0644
 *
 * A killed collector may have left links, which sample on: pins_end_links(). A child of one that ends links still has
 * the lock, for which this waits; see orphan.c of collector.
 *
 * Return: 0; or a negative errno with @err:
 * -EBUSY   another collector owns it; @err names its process
 * -ENOTSUP @dir is not on a bpffs
 * -EPERM   other users could replace pins: a directory is theirs, or not sticky
 */
int pins_open(const char *dir, mode_t mode, struct pins **out, struct err *err);

/* The descriptor that locks the directory: while any process has it open. Owned by @p. */
int pins_lock_fd(const struct pins *p);

/* True if a killed collector has left links. */
bool pins_have_links(const struct pins *p);

/**
 * pins_count_links() - note in the pinned state what the events of the links have counted
 * @since_ns: CLOCK_MONOTONIC before the PMU was held, as it must be now
 *
 * Samples that these events took and no program saw are then unseen to the collector that resumes the
 * counters. Without it, or before Linux 5.19, they are in no ledger.
 */
void pins_count_links(struct pins *p, __u64 since_ns);

/*
 * Remove the links, which stops the sampling that a killed collector has left. No sample is lost if
 * the PMU is held meanwhile (pmu_hold.h of collector).
 */
void pins_end_links(struct pins *p);

/* Tell readers that the collector that wrote the pinned status is gone, and samples no more. */
void pins_set_stopped(struct pins *p);

/**
 * pins_adopt() - resume the pinned counters, if they match
 * @layout: required meaning of the counters
 *
 * If @layout matches and no map is missing, pins_fd() returns the maps. Otherwise they stay until
 * pins_finish() replaces them.
 *
 * What is pinned under these names but is no map of a collector is moved to NAME-foreignN, and
 * logged.
 *
 * Return: 1 adopted; 0 start from zero, *why says what does not match ("" if nothing was pinned);
 * or a negative errno with @err, which names the pin.
 */
int pins_adopt(struct pins *p, const struct ibs_meta_layout *layout, const char **why,
	       struct err *err);

/*
 * After pins_adopt() returned 0 with a reason: how many samples are in the counters that pins_finish() replaces.
 * Return: false if that is not known.
 */
bool pins_rejected(const struct pins *p, __u64 *samples);

/* Give up adopted maps: pins_finish() replaces them. */
void pins_disown(struct pins *p);

/*
 * Give up adopted maps because this one is not the collector's, and set that one aside.
 * Return: 0 with *why, as pins_adopt(), or a negative errno with @err.
 */
int pins_reject(struct pins *p, enum ibs_pin pin, const char **why, struct err *err);

/**
 * pins_convert() - give adopted counters of the schema before the layout of this one
 *
 * Call it while nothing samples; again after a crash it does the same. Until pins_finish() a collector of
 * either schema can resume them.
 *
 * Return: 0, also if nothing is to be done; or a negative errno with @err.
 */
int pins_convert(struct pins *p, struct err *err);

/**
 * pins_balance() - check that adopted counters add up, while nothing samples
 *
 * The maps have the shape of @layout. Return: 0; or a negative errno with @err: -EUCLEAN others have written
 * to them.
 */
int pins_balance(const struct pins *p, const struct ibs_meta_layout *layout, struct err *err);

/* An adopted map of the program; -1: none. It stays open with @p. */
int pins_fd(const struct pins *p, enum ibs_pin pin);

/**
 * pins_finish() - continue the adopted counters, or pin new ones
 * @maps: new maps of the program, by enum ibs_pin up to IBS_PIN_META; below 0: none. The caller
 *        keeps them.
 *
 * New maps replace the pinned ones, and their counters are lost: call it when nothing else can fail.
 *
 * Return: 0 or a negative errno with @err.
 */
int pins_finish(struct pins *p, const struct ibs_meta_layout *layout, const int *maps,
		struct err *err);

struct pins_checked {
	unsigned int repaired, missing; /* pins, and the directory of links */
	bool header;			/* that of meta was overwritten: write its texts again */
};

/**
 * pins_check() - pin the maps again where others have removed or replaced the pins
 *
 * After pins_finish(). The maps and so the counters are the same as before, and so are mode and group of the
 * files; what has taken the place of a pin is moved to NAME-foreignN. A directory that is gone is
 * created and locked again, if there is a bpffs.
 *
 * Return: 0 if nothing is missing now, or a negative errno with @err.
 */
int pins_check(struct pins *p, struct pins_checked *out, struct err *err);

/* The mapped meta. Write all but `layout` between the two calls, so that readers can tell. */
struct ibs_meta *pins_meta(struct pins *p);
void pins_write_begin(__u32 *seq);
void pins_write_end(__u32 *seq);

/* max_slots of them. */
struct ibs_slot_name *pins_names(struct pins *p);

/* Mapped, too; write them between pins_write_begin() and pins_write_end() of its `seq`. */
struct ibs_neighbours *pins_neighbours(struct pins *p);

const char *pins_dir(const struct pins *p);

/* Links pinned here keep sampling while no collector runs: perf_events_pin_links(). */
const char *pins_links_dir(const struct pins *p);

/* Remove all pins and the directory. The counters are freed with their last reader. */
void pins_remove(struct pins *p);

void pins_close(struct pins *p); /* accepts NULL; pins stay */

#endif
