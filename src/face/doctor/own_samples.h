/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Raw samples of the calling thread, taken on its own CPU. */
#ifndef IBSCOPE_OWN_SAMPLES_H
#define IBSCOPE_OWN_SAMPLES_H

#include "event/cpu.h"

#include <stddef.h>
#include <stdint.h>

struct err;
struct own_samples;

/**
 * own_samples_open() - prepare to sample the CPU that the calling thread is bound to
 * @event:  as for -e
 * @period: rounded down to a multiple of 16
 *
 * Return: 0, or a negative errno with @err; *@out is then NULL.
 */
int own_samples_open(const struct cpu_info *info, const char *event, uint64_t period,
		     unsigned int cpu, struct own_samples **out, struct err *err);
void own_samples_close(struct own_samples *o); /* accepts NULL */

/* Return: 0, or a negative errno with @err. */
int own_samples_start(struct own_samples *o, struct err *err);

/**
 * own_samples_stop() - stop sampling and look at what was taken
 * @fn: called for each sample of the calling thread, with caps and registers as in PERF_SAMPLE_RAW
 *
 * Return: false if some are missing: the kernel throttled, or had no room for them.
 */
bool own_samples_stop(struct own_samples *o, void (*fn)(void *ctx, const void *raw, size_t bytes),
		      void *ctx);

#endif
