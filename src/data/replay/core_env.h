/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What the decision core needs wherever it runs in user space (ibscope/decide_env.h): samples in plain memory, and
 * maps that are functions of the includer, find_MAP(core, key) and add_MAP(core, key, value).
 */
#ifndef IBSCOPE_CORE_ENV_H
#define IBSCOPE_CORE_ENV_H

#include <linux/types.h>

struct sample {
	const __u64 *regs;
	__u64 period;
};

#define barrier()
#define barrier_var(v) ((void)(v))
#define __noinline     /* NOLINT(bugprone-reserved-identifier): as of libbpf */

#define sample_period(s)	       ((s)->period)
#define count_add(word, n)	       (*(word) += (n))
#define map_find(core, map, key)       find_##map(core, key)
#define map_add(core, map, key, value) add_##map(core, key, value)

#endif
