/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Samples handed to a sampler of SAMPLER_TWIN, as if the caller had been interrupted: its process,
 * cgroup and CPU are those of the sample. They go through the functions of the perf_event programs
 * and end up in sampler_snapshot().
 *
 * Samples of one sampler lie in one place, so load and run from one thread; only twin_loop() may
 * run in several at once, each bound to a CPU of its own, as counters belong to the CPU.
 */
#ifndef IBSCOPE_TESTS_TWIN_RUN_H
#define IBSCOPE_TESTS_TWIN_RUN_H

#include <errno.h>
#include <stddef.h>
#include <string.h>

#include <bpf/bpf.h>

#include <ibscope/twin_area.h>

#include "sampler/sampler.h"

/* A perf sample with its raw record. The zero value has neither bytes nor fault. */
struct twin_raw {
	const void *raw; /* u32 of caps, then registers */
	__u32 bytes;	 /* at most IBS_TWIN_RAW_MAX */
	enum ibs_twin_fault fault;
	/* moves parts of it, in bytes, multiples of 8 below 1024: they lie elsewhere on the stack */
	__u32 move_ctx, move_data, move_raw, move_bytes;
};

/* A map of the stack of the kernel's driver: far enough from each other for every move. */
#define TWIN_CTX_AT   0
#define TWIN_DATA_AT  2048
#define TWIN_RAW_AT   4096
#define TWIN_BYTES_AT 6144
#define TWIN_MOVE_MAX 1024

static const struct ibs_twin_ctx twin_still = {
	.ctx_at = TWIN_CTX_AT,
	.data_at = TWIN_DATA_AT,
	.raw_at = TWIN_RAW_AT,
	.bytes_at = TWIN_BYTES_AT,
};

static inline int twin_run_prog(struct sampler *s, struct ibs_twin_ctx *ctx, struct err *err)
{
	LIBBPF_OPTS(bpf_test_run_opts, opts, .ctx_in = ctx, .ctx_size_in = sizeof(*ctx));
	int fd = sampler_twin_fd(s);

	if (fd < 0)
		return err_set(err, fd, "the sampler was not opened for samples of the user's");
	if (bpf_prog_test_run_opts(fd, &opts))
		return err_set(err, -errno, "cannot run the BPF program: %s", strerror(errno));
	if (opts.retval)
		return err_set(err, -EIO, "the BPF program did not run the samples");
	return 0;
}

static inline bool twin_move_ok(__u32 bytes)
{
	return bytes < TWIN_MOVE_MAX && !(bytes & 7);
}

/**
 * twin_run_raw() - one sample, by the way of every kernel: registers copied by probe reads
 * @out: what it came to
 *
 * It has no period, so what a sampler with `count_ops` counts of it means nothing.
 *
 * Return: 0, or a negative errno with @err: -EINVAL if @raw is not as said above.
 */
static inline int twin_run_raw(struct sampler *s, const struct twin_raw *raw, enum ibs_outcome *out,
			       struct err *err)
{
	struct ibs_twin_area *area = sampler_twin_area(s);
	struct ibs_twin_ctx ctx = twin_still;
	int ret;

	if (raw->bytes > IBS_TWIN_RAW_MAX || !twin_move_ok(raw->move_ctx) ||
	    !twin_move_ok(raw->move_data) || !twin_move_ok(raw->move_raw) ||
	    !twin_move_ok(raw->move_bytes))
		return err_set(err, -EINVAL, "not a sample that can be built");
	ctx.mode = IBS_TWIN_RAW;
	ctx.repeat = 1;
	ctx.tell = 1;
	ctx.fault = raw->fault;
	ctx.bytes = raw->bytes;
	ctx.ctx_at += raw->move_ctx;
	ctx.data_at += raw->move_data;
	ctx.raw_at += raw->move_raw;
	ctx.bytes_at += raw->move_bytes;
	if (area) {
		memset(area->stage, 0, sizeof(area->stage));
		if (raw->bytes)
			memcpy(area->stage + ctx.bytes_at, raw->raw, raw->bytes);
		area->outcome[0] = IBS_OUTCOME_N;
	}
	ret = twin_run_prog(s, &ctx, err);
	if (!ret && area)
		*out = area->outcome[0];
	return ret;
}

/**
 * twin_run() - samples that are registers already
 * @outcomes: @n of enum ibs_outcome; may be NULL
 */
static inline int twin_run(struct sampler *s, const struct ibs_twin_sample *samples, size_t n,
			   __u8 *outcomes, struct err *err)
{
	struct ibs_twin_area *area = sampler_twin_area(s);
	int ret = 0;

	for (size_t done = 0, chunk; !ret && done < n; done += chunk) {
		struct ibs_twin_ctx ctx = twin_still;

		chunk = n - done < IBS_TWIN_SAMPLES ? n - done : IBS_TWIN_SAMPLES;
		ctx.mode = IBS_TWIN_REGS;
		ctx.repeat = chunk;
		ctx.mask = IBS_TWIN_SAMPLES - 1;
		ctx.tell = 1;
		if (area)
			memcpy(area->sample, samples + done, chunk * sizeof(*samples));
		ret = twin_run_prog(s, &ctx, err);
		if (!ret && outcomes && area)
			memcpy(outcomes + done, area->outcome, chunk);
	}
	return ret;
}

static inline void twin_put_samples(struct ibs_twin_sample *to,
				    const __u64 (*regs)[IBS_OP_REG_FIXED], size_t n)
{
	for (size_t i = 0; i < n; i++) {
		memcpy(to[i].regs, regs[i], sizeof(to[i].regs));
		to[i].period = 1;
	}
}

/* The same of @n times IBS_OP_REG_FIXED registers; each stands for one op, also of twin_load(). */
static inline int twin_run_regs(struct sampler *s, const __u64 (*regs)[IBS_OP_REG_FIXED], size_t n,
				__u8 *outcomes, struct err *err)
{
	struct ibs_twin_sample samples[64];
	int ret = 0;

	for (size_t done = 0, chunk; !ret && done < n; done += chunk) {
		chunk = n - done < 64 ? n - done : 64;
		twin_put_samples(samples, regs + done, chunk);
		ret = twin_run(s, samples, chunk, outcomes ? outcomes + done : NULL, err);
	}
	return ret;
}

/**
 * twin_load() - what twin_loop() goes through again and again
 * @n: a power of two, at most IBS_TWIN_SAMPLES
 *
 * With IBS_TWIN_RAW every sample is that of the last twin_run_raw(), which must not have moved it.
 */
static inline int twin_load(struct sampler *s, const __u64 (*regs)[IBS_OP_REG_FIXED], size_t n,
			    struct err *err)
{
	struct ibs_twin_area *area = sampler_twin_area(s);

	if (!area || !n || n > IBS_TWIN_SAMPLES || (n & (n - 1)))
		return err_set(err, -EINVAL, "%zu samples cannot be looped over", n);
	twin_put_samples(area->sample, regs, n);
	return 0;
}

#define TWIN_REPEAT_MAX (1U << 23) /* of bpf_loop(): Linux include/linux/bpf_verifier.h */
/**
 * twin_loop() - the same samples many times over, within the kernel
 * @mode:   what is run; IBS_TWIN_FLOOR measures the loop itself
 * @n:	    as loaded
 * @repeat: samples to run in all, at most TWIN_REPEAT_MAX
 * @ns:	    time it took
 *
 * Return: 0, or a negative errno with @err: -EINVAL for too many.
 */
static inline int twin_loop(struct sampler *s, enum ibs_twin_mode mode, size_t n, __u32 repeat,
			    __u64 *ns, struct err *err)
{
	struct ibs_twin_ctx ctx = twin_still;
	int ret;

	if (repeat > TWIN_REPEAT_MAX)
		return err_set(err, -EINVAL, "%u samples in a row; at most %u are possible", repeat,
			       TWIN_REPEAT_MAX);
	ctx.mode = mode;
	ctx.fault = IBS_TWIN_AS_IS;
	ctx.repeat = repeat;
	ctx.mask = n - 1;
	ret = twin_run_prog(s, &ctx, err);
	if (!ret)
		*ns = ctx.ns;
	return ret;
}

#endif
