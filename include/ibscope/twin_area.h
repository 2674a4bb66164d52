/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Input of the program ibs_op_twin: perf_event programs cannot be run on request, so a
 * SEC("syscall") program runs their functions on samples in the map `twin`.
 */
#ifndef IBSCOPE_TWIN_H
#define IBSCOPE_TWIN_H

#include <ibscope/op.h>

#define IBS_TWIN_SAMPLES 1024 /* a power of two */
#define IBS_TWIN_RAW_MAX 256  /* bytes of a raw record */
#define IBS_TWIN_STAGE	 8192 /* a power of two */

enum ibs_twin_mode {
	IBS_TWIN_REGS,	 /* registers, as in ibs_op_sim */
	IBS_TWIN_RAW,	 /* a perf sample with a raw record, as in ibs_op_nmi on 5.10 */
	IBS_TWIN_FLOOR,	 /* nothing: the cost of the loop */
};

/* Fault to inject into the perf sample. */
enum ibs_twin_fault {
	IBS_TWIN_WHOLE,
	IBS_TWIN_NO_RAW,     /* no raw record */
	IBS_TWIN_BAD_DATA,   /* invalid pointer to the sample */
	IBS_TWIN_BAD_RAW,    /* invalid pointer to the raw record */
	IBS_TWIN_BAD_BYTES,  /* invalid pointer to its data */
	IBS_TWIN_LEFT_OVERS, /* no raw record, but a stale one in its place */
	IBS_TWIN_AS_IS,	     /* build nothing: use what the last run left */
};

/* Context of the program; the kernel copies it back. */
struct ibs_twin_ctx {
	__u32 mode;
	__u32 repeat; /* samples to run */
	__u32 mask;   /* run n uses sample[n & mask] */
	__u32 tell;   /* fill outcome[] */
	/* with IBS_TWIN_RAW; offsets in `stage`, multiples of 8 */
	__u32 fault;
	__u32 bytes;
	__u32 ctx_at, data_at, raw_at, bytes_at;
	__u64 ns; /* out: duration */
};
_Static_assert(sizeof(struct ibs_twin_ctx) == 48, "ibs_twin_ctx has implicit padding");

struct ibs_twin_sample {
	__u64 regs[IBS_OP_REG_FIXED];
	__u64 period; /* period of the sample */
};
_Static_assert(sizeof(struct ibs_twin_sample) == 64, "index must be a shift");

struct ibs_twin_area {
	struct ibs_twin_sample sample[IBS_TWIN_SAMPLES];
	__u8 outcome[IBS_TWIN_SAMPLES];
	/* where context, sample, raw record and its data are built, and room after them */
	__u8 stage[IBS_TWIN_STAGE + 4096];
};

#endif
