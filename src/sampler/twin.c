// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "twin.h"

#include "sampler_private.h"

#include <bpf/bpf.h>
#include <errno.h>
#include <string.h>

/* A map of the stack of the kernel's driver: far enough from each other for every move. */
#define CTX_AT	 0
#define DATA_AT	 2048
#define RAW_AT	 4096
#define BYTES_AT 6144
#define MOVE_MAX 1024

static const struct ibs_twin_ctx still = {
	.ctx_at = CTX_AT,
	.data_at = DATA_AT,
	.raw_at = RAW_AT,
	.bytes_at = BYTES_AT,
};

static int run(struct sampler *s, struct ibs_twin_ctx *ctx, struct err *err)
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

static bool move_ok(__u32 bytes)
{
	return bytes < MOVE_MAX && !(bytes & 7);
}

int twin_run_raw(struct sampler *s, const struct twin_raw *raw, enum ibs_outcome *out,
		 struct err *err)
{
	struct ibs_twin_area *area = sampler_twin_area(s);
	struct ibs_twin_ctx ctx = still;
	int ret;

	if (s->count_ops)
		return err_set(err, -EINVAL, "a raw sample has no period to estimate ops from");
	if (raw->bytes > IBS_TWIN_RAW_MAX || !move_ok(raw->move_ctx) || !move_ok(raw->move_data) ||
	    !move_ok(raw->move_raw) || !move_ok(raw->move_bytes))
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
	ret = run(s, &ctx, err);
	if (!ret && area)
		*out = area->outcome[0];
	return ret;
}

int twin_run(struct sampler *s, const struct ibs_twin_sample *samples, size_t n, __u8 *outcomes,
	     struct err *err)
{
	struct ibs_twin_area *area = sampler_twin_area(s);
	int ret = 0;

	for (size_t done = 0, chunk; !ret && done < n; done += chunk) {
		struct ibs_twin_ctx ctx = still;

		chunk = n - done < IBS_TWIN_SAMPLES ? n - done : IBS_TWIN_SAMPLES;
		ctx.mode = IBS_TWIN_REGS;
		ctx.repeat = chunk;
		ctx.mask = IBS_TWIN_SAMPLES - 1;
		ctx.tell = 1;
		if (area)
			memcpy(area->sample, samples + done, chunk * sizeof(*samples));
		ret = run(s, &ctx, err);
		if (!ret && outcomes && area)
			memcpy(outcomes + done, area->outcome, chunk);
	}
	return ret;
}

static void put_samples(struct ibs_twin_sample *to, const __u64 (*regs)[IBS_OP_REG_FIXED], size_t n)
{
	for (size_t i = 0; i < n; i++) {
		memcpy(to[i].regs, regs[i], sizeof(to[i].regs));
		to[i].period = 1;
	}
}

int twin_run_regs(struct sampler *s, const __u64 (*regs)[IBS_OP_REG_FIXED], size_t n,
		  __u8 *outcomes, struct err *err)
{
	struct ibs_twin_sample samples[64];
	int ret = 0;

	for (size_t done = 0, chunk; !ret && done < n; done += chunk) {
		chunk = n - done < 64 ? n - done : 64;
		put_samples(samples, regs + done, chunk);
		ret = twin_run(s, samples, chunk, outcomes ? outcomes + done : NULL, err);
	}
	return ret;
}

int twin_load(struct sampler *s, const __u64 (*regs)[IBS_OP_REG_FIXED], size_t n, struct err *err)
{
	struct ibs_twin_area *area = sampler_twin_area(s);

	if (!area || !n || n > IBS_TWIN_SAMPLES || (n & (n - 1)))
		return err_set(err, -EINVAL, "%zu samples cannot be looped over", n);
	put_samples(area->sample, regs, n);
	return 0;
}

int twin_loop(struct sampler *s, enum ibs_twin_mode mode, size_t n, __u32 repeat, __u64 *ns,
	      struct err *err)
{
	struct ibs_twin_ctx ctx = still;
	int ret;

	if (repeat > TWIN_REPEAT_MAX)
		return err_set(err, -EINVAL, "%u samples in a row; at most %u are possible", repeat,
			       TWIN_REPEAT_MAX);
	ctx.mode = mode;
	ctx.fault = IBS_TWIN_AS_IS;
	ctx.repeat = repeat;
	ctx.mask = n - 1;
	ret = run(s, &ctx, err);
	if (!ret)
		*ns = ctx.ns;
	return ret;
}
