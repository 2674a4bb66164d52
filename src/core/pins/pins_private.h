/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* A directory of pins, shared by the files that create, adopt and repair it. */
#ifndef IBSCOPE_PINS_PRIVATE_H
#define IBSCOPE_PINS_PRIVATE_H

#include "pins.h"

#include "base/pin_file.h"

struct pins {
	char dir[256], links[264];
	int lock; /* fd of the directory of links */
	mode_t mode;
	bool counted; /* this start is counted */
	int fd[IBS_PIN_N];
	struct pin_file file[IBS_PIN_N];
	struct ibs_meta_layout layout; /* as in meta, which others may overwrite */
	__u64 start_realtime_ns;
	__u64 rejected; /* samples in counters that could not be resumed */
	bool rejected_known;
	struct ibs_meta *meta;
	struct ibs_slot_name *names;
	size_t names_bytes;
};

#define PIN_PATH_MAX 512

void pins_path(const struct pins *p, enum ibs_pin pin, char out[PIN_PATH_MAX]);

/* Names first, meta last: without it readers find nothing. */
static inline enum ibs_pin pins_in_order(int i)
{
	return (i + IBS_PIN_META + 1) % IBS_PIN_N;
}

/* Mount a bpffs: systems without systemd, containers and small guests may have none. */
void pins_mount(const char *dir);

/* True if @fd is of that kind, as /proc names it. */
bool pins_is_kind(int fd, const char *kind);

/* Map the pinned meta, whoever wrote it. Return: NULL if there is none. */
struct ibs_meta *pins_map_meta(const struct pins *p, bool write);

/* Return: NULL if it cannot be mapped. */
void *pins_map(int fd, size_t bytes, bool write);

/*
 * Create the directory and that of links, and lock the latter. After a failure p->lock is as before;
 * otherwise the old one is closed. Return: as pins_open().
 */
int pins_lock(struct pins *p, struct err *err);

/* True if the directories are still those that are locked. */
bool pins_are_locked(const struct pins *p);

/* Pin p->fd[pin]. Return: 0 or a negative errno with @err. */
int pins_put(struct pins *p, enum ibs_pin pin, mode_t mode, struct err *err);

/* Write the part of meta that never changes. */
void pins_put_header(struct pins *p);

#endif
