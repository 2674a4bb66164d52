/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The decision core: whether a sample is selected, which group it belongs to, where it is counted.
 * The BPF program runs this code in the NMI, user space for recordings. decide_env.h lists what to
 * define before including it. @fetch is a constant of the caller: registers of ibs_fetch.
 */
#ifndef IBSCOPE_DECIDE_H
#define IBSCOPE_DECIDE_H

#include <ibscope/decide_count.h>
#include <ibscope/decide_filter.h>

#endif
