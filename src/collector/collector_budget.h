/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Sampling within a budget: feeds the governor and does what it decides. */
#ifndef IBSCOPE_COLLECTOR_BUDGET_H
#define IBSCOPE_COLLECTOR_BUDGET_H

#include "collector_state.h"

/*
 * Between sampling_open() and sampler_start(): measures the cost of a sample, if it is not known, and
 * starts with the period asked for, or with a longer one that was needed before. Return: 0 or a
 * negative errno with @err.
 */
int budget_open(struct collector *c, struct err *err);

/*
 * The same while sampling, after options have changed. Sampling resumes even if it was stopped.
 * @paused: set to whether sampling stopped to measure the cost of a sample. Return: 0; or a negative
 * errno with @err, and the collector has to end.
 */
int budget_reopen(struct collector *c, bool *paused, struct err *err);

/* To be called at budget.next_s. Return: 0; or a negative errno with @err: the collector has to end. */
int budget_step(struct collector *c, struct err *err);

/* Call it after runs of the program begin to be timed, and before that ends. */
void budget_timed(struct collector *c, bool on);

/* Fill in its part of c->status; the rest is up to date. */
void budget_status(struct collector *c, double now_s);

void budget_close(struct collector *c);

#endif
