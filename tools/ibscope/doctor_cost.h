/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef IBSCOPE_DOCTOR_COST_H
#define IBSCOPE_DOCTOR_COST_H

#include "base/err.h"

#include <stdbool.h>
#include <stdio.h>

/*
 * doctor_cost() - measure what a sample takes from the CPU it interrupts, for each outcome
 *
 * Samples ibs_op, or the software clock where there is no IBS, for some seconds on one CPU.
 *
 * Return: 0, or a negative errno with @err if nothing could be measured.
 */
int doctor_cost(FILE *f, bool json, struct err *err);

#endif
