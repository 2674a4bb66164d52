/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef IBSCOPE_BENCH_CLOCK_H
#define IBSCOPE_BENCH_CLOCK_H

#include <stdbool.h>

/**
 * bench_clock_counts_instructions() - is a nanosecond of CLOCK_MONOTONIC one instruction?
 *
 * As in a virtual machine whose clock is the count of its instructions. Told from loops of equally
 * many instructions, of which one takes many times as long on any processor.
 */
bool bench_clock_counts_instructions(void);

#endif
