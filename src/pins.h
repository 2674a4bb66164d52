/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The collector's side of a directory of pins: it is one collector's at a time. */
#ifndef IBSCOPE_PINS_H
#define IBSCOPE_PINS_H

#include "err.h"

#include <ibscope/pinned.h>
#include <sys/types.h>

struct pins;

/**
 * pins_open() - take a directory in bpffs, and what an earlier collector left there
 * @dir:  made if it is not there
 * @mode: of what readers need, as 0644
 *
 * What an earlier collector that was killed has left sampling is stopped.
 *
 * Return: 0; or a negative errno with @err:
 * -EBUSY   another collector has it, whose pid @err tells
 * -ENOTSUP @dir is not on a bpffs
 */
int pins_open(const char *dir, mode_t mode, struct pins **out, struct err *err);

/**
 * pins_adopt() - go on with the counters that are there, if they fit
 * @layout: what the counters are to mean
 *
 * If @layout is that of the counters and none is missing, pins_fd() has them. Otherwise they stay
 * until pins_finish() puts others in their place.
 *
 * Return: 1 adopted, 0 anew with *why telling what does not fit ("" where there was nothing); or a
 * negative errno with @err.
 */
int pins_adopt(struct pins *p, const struct ibs_meta_layout *layout, const char **why,
	       struct err *err);

/* Of an adopted map of the program; -1 if there is none. @p keeps it. */
int pins_fd(const struct pins *p, enum ibs_pin pin);

/**
 * pins_finish() - be the collector of the counters that were adopted, or pin new ones
 * @maps: of the program, by enum ibs_pin up to IBS_PIN_META, if they are new; below 0: there is none.
 *        They stay the caller's.
 *
 * New ones take the place of whatever is pinned there, whose counters are lost. So it is called when
 * nothing else can fail any more; meta and names are made before that, too.
 *
 * Return: 0 or a negative errno with @err.
 */
int pins_finish(struct pins *p, const struct ibs_meta_layout *layout, const int *maps,
		struct err *err);

/* Mapped, to be written; between the two calls for whatever is not in `layout`. */
struct ibs_meta *pins_meta(struct pins *p);
void pins_write_begin(__u32 *seq);
void pins_write_end(__u32 *seq);

/* max_slots of them. */
struct ibs_slot_name *pins_names(struct pins *p);

/* Where links are pinned that keep sampling while no collector runs: perf_events_pin_links(). */
const char *pins_links_dir(const struct pins *p);

/* Remove all pins and the directory: the counters go with the last reader. */
void pins_remove(struct pins *p);

void pins_close(struct pins *p); /* accepts NULL; pins stay */

#endif
