/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What twin.c needs of a sampler's insides. */
#ifndef IBSCOPE_SAMPLER_PRIVATE_H
#define IBSCOPE_SAMPLER_PRIVATE_H

#include <ibscope/twin.h>

struct sampler;

/* Of the program ibs_op_twin, or -EINVAL if the sampler is not of SAMPLER_TWIN. */
int sampler_twin_fd(const struct sampler *s);

/* Mapped, and shared with the program; NULL if the sampler is not of SAMPLER_TWIN. */
struct ibs_twin_area *sampler_twin_area(const struct sampler *s);

#endif
