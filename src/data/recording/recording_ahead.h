/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Decodes the next block of samples in another thread while the reader works through the last one. It decides
 * nothing: a block that is damaged or not the expected one is left to the reader, so that what is said of
 * damage does not depend on threads.
 */
#ifndef IBSCOPE_RECORDING_AHEAD_H
#define IBSCOPE_RECORDING_AHEAD_H

#include "recording_columns.h"

struct recording_ahead;

/* Return: NULL if there is no second CPU, or no thread to be had. @fd stays the caller's, and open. */
struct recording_ahead *recording_ahead_new(int fd);
void recording_ahead_free(struct recording_ahead *a); /* accepts NULL */

/* Begin to decode the samples of a block whose data begins @at in the file. @head is valid. */
void recording_ahead_begin(struct recording_ahead *a, __u64 at, const struct recording_block *head);

/**
 * recording_ahead_take() - the samples of that block
 * @columns: on success exchanged with those of the block
 *
 * Return: false if another block was begun last, or it is damaged; *columns is unchanged then.
 */
bool recording_ahead_take(struct recording_ahead *a, __u64 at, const struct recording_block *head,
			  struct recording_columns **columns);

#endif
