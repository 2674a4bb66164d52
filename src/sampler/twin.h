/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Samples handed to a sampler of SAMPLER_TWIN, as if the caller had been interrupted: its process,
 * cgroup and CPU are those of the sample. They go through the functions of the perf_event programs
 * and end up in sampler_snapshot().
 *
 * Samples of one sampler lie in one place, so load and run from one thread; only twin_loop() may
 * run in several at once, each bound to a CPU of its own, as counters belong to the CPU.
 */
#ifndef IBSCOPE_TWIN_USER_H
#define IBSCOPE_TWIN_USER_H

#include "base/err.h"

#include <ibscope/outcome.h>
#include <ibscope/twin_area.h>
#include <stddef.h>

struct sampler;

/* A perf sample with its raw record. The zero value has neither bytes nor fault. */
struct twin_raw {
	const void *raw; /* u32 of caps, then registers */
	__u32 bytes;	 /* at most IBS_TWIN_RAW_MAX */
	enum ibs_twin_fault fault;
	/* moves parts of it, in bytes, multiples of 8 below 1024: they lie elsewhere on the stack */
	__u32 move_ctx, move_data, move_raw, move_bytes;
};

/**
 * twin_run_raw() - one sample, by the way of every kernel: registers copied by probe reads
 * @out: what it came to
 *
 * It has no period: not for samplers opened with `count_ops`.
 *
 * Return: 0, or a negative errno with @err: -EINVAL if @raw is not as said above, or @s counts ops.
 */
int twin_run_raw(struct sampler *s, const struct twin_raw *raw, enum ibs_outcome *out,
		 struct err *err);

/**
 * twin_run() - samples that are registers already
 * @outcomes: @n of enum ibs_outcome; may be NULL
 */
int twin_run(struct sampler *s, const struct ibs_twin_sample *samples, size_t n, __u8 *outcomes,
	     struct err *err);

/* The same of @n times IBS_OP_REG_FIXED registers; each stands for one op, also of twin_load(). */
int twin_run_regs(struct sampler *s, const __u64 (*regs)[IBS_OP_REG_FIXED], size_t n,
		  __u8 *outcomes, struct err *err);

/**
 * twin_load() - what twin_loop() goes through again and again
 * @n: a power of two, at most IBS_TWIN_SAMPLES
 *
 * With IBS_TWIN_RAW every sample is that of the last twin_run_raw(), which must not have moved it.
 */
int twin_load(struct sampler *s, const __u64 (*regs)[IBS_OP_REG_FIXED], size_t n, struct err *err);

/**
 * twin_loop() - the same samples many times over, within the kernel
 * @mode:   what is run; IBS_TWIN_FLOOR measures the loop itself
 * @n:	    as loaded
 * @repeat: samples to run in all, at most TWIN_REPEAT_MAX
 * @ns:	    time it took
 *
 * Return: 0, or a negative errno with @err: -EINVAL for too many.
 */
#define TWIN_REPEAT_MAX (1U << 23) /* of bpf_loop(): Linux include/linux/bpf_verifier.h */
int twin_loop(struct sampler *s, enum ibs_twin_mode mode, size_t n, __u32 repeat, __u64 *ns,
	      struct err *err);

#endif
