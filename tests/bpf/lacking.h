/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Samplers that take this kernel for an older one, without some of its features. The program is linked with
 * --wrap=kernel_features_probe.
 */
#ifndef IBSCOPE_TESTS_LACKING_H
#define IBSCOPE_TESTS_LACKING_H

#include "machine/kernel.h"

int __real_kernel_features_probe(struct kernel_features *f, struct err *err);
int __wrap_kernel_features_probe(struct kernel_features *f, struct err *err);

static struct kernel_features lacking; /* members that are set: the kernel has no such feature */

int __wrap_kernel_features_probe(struct kernel_features *f, struct err *err)
{
	const int ret = __real_kernel_features_probe(f, err);

	f->ancestor_helper &= !lacking.ancestor_helper;
	f->task_pt_regs &= !lacking.task_pt_regs;
	return ret;
}

#endif
