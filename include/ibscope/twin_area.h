/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * How user space feeds the program ibs_op_twin: perf_event programs cannot be run on request, so a
 * SEC("syscall") program runs their functions on samples that lie in the map `twin`.
 */
#ifndef IBSCOPE_TWIN_H
#define IBSCOPE_TWIN_H

#include <ibscope/op.h>

#define IBS_TWIN_SAMPLES 1024 /* a power of two */
#define IBS_TWIN_RAW_MAX 256  /* bytes of a raw record */
#define IBS_TWIN_STAGE	 8192 /* a power of two */

enum ibs_twin_mode {
	IBS_TWIN_REGS,	 /* registers, as ibs_op_sim has them */
	IBS_TWIN_RAW,	 /* a perf sample with a raw record, as ibs_op_nmi has it on 5.10 */
	IBS_TWIN_FLOOR,	 /* nothing: what the loop costs */
};

/* What is wrong with the perf sample that the program is shown. */
enum ibs_twin_fault {
	IBS_TWIN_WHOLE,
	IBS_TWIN_NO_RAW,     /* no raw record */
	IBS_TWIN_BAD_DATA,   /* the pointer to the sample is not one, */
	IBS_TWIN_BAD_RAW,    /* or that to the raw record, */
	IBS_TWIN_BAD_BYTES,  /* or that to its bytes */
	IBS_TWIN_LEFT_OVERS, /* no raw record, but an old one where it would be */
	IBS_TWIN_AS_IS,	     /* build nothing: as the last run left it */
};

/* Context of the program; the kernel copies it back. */
struct ibs_twin_ctx {
	__u32 mode;
	__u32 repeat; /* samples to run */
	__u32 mask;   /* the n-th is sample[n & mask] */
	__u32 tell;   /* fill outcome[] */
	/* with IBS_TWIN_RAW; offsets in `stage`, multiples of 8 */
	__u32 fault;
	__u32 bytes;
	__u32 ctx_at, data_at, raw_at, bytes_at;
	__u64 ns; /* out: time it took */
};
_Static_assert(sizeof(struct ibs_twin_ctx) == 48, "ibs_twin_ctx has implicit padding");

struct ibs_twin_sample {
	__u64 regs[IBS_OP_REG_FIXED];
	__u64 period; /* that the sample ended */
};
_Static_assert(sizeof(struct ibs_twin_sample) == 64, "index must be a shift");

struct ibs_twin_area {
	struct ibs_twin_sample sample[IBS_TWIN_SAMPLES];
	__u8 outcome[IBS_TWIN_SAMPLES];
	/* where context, sample, raw record and its bytes are built, and room behind the last */
	__u8 stage[IBS_TWIN_STAGE + 4096];
};

#endif
