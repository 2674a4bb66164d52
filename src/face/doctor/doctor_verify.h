/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* ibscope doctor --verify */
#ifndef IBSCOPE_DOCTOR_VERIFY_H
#define IBSCOPE_DOCTOR_VERIFY_H

#include <stdbool.h>

struct err;

/**
 * doctor_verify() - sample all CPUs, count with core counters at the same time, and print both
 * @loops: then sample loops of known behaviour, too
 * @agree: whether samples and counters agree, and loops look as they must
 *
 * Return: 0, or a negative errno with @err.
 */
int doctor_verify(double seconds, bool loops, bool json, bool *agree, struct err *err);

#endif
