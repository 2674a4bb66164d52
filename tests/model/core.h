/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A model of an out-of-order core that samples itself as IBS does, and knows what IBS does not: how
 * many cycles retirement waited for each op. It judges estimates made from IBS registers.
 *
 * Modelled: dispatch, issue in the order of age as operands arrive, miss buffers (MABs) that secondary
 * misses join, set-associative caches, DRAM with a limited rate, a stream prefetcher, stores that
 * commit in order after retirement, mispredicted branches, retirement in order.
 * Not modelled: ops of wrong paths, TLBs, store forwarding, schedulers of limited size. Samples of
 * stores have no miss: the line is fetched after they retire.
 */
#ifndef MODEL_CORE_H
#define MODEL_CORE_H

#include <stdbool.h>
#include <stdint.h>

#define MODEL_INSNS 32 /* instructions of a stream */

enum model_kind { MODEL_ALU, MODEL_LOAD, MODEL_STORE, MODEL_BRANCH };

struct model_op {
	uint8_t insn, kind;
	uint8_t latency;   /* of an MODEL_ALU or MODEL_BRANCH */
	bool mispredicted; /* nothing is dispatched until it completes */
	uint64_t addr;
	uint64_t dep[2]; /* numbers of ops it needs the results of, from 1; 0: none */
};

struct model_core {
	unsigned int rob, dispatch, retire, loads, alus; /* ops, and ops per cycle */
	unsigned int mabs, store_queue;
	unsigned int l1, l2, l3, dram; /* cycles to data */
	unsigned int jitter, gap;      /* of DRAM: mean extra cycles; cycles between two lines */
	unsigned int redirect;	       /* cycles from a mispredicted branch to new ops */
	bool prefetch;
};

/* A sample: registers as in Linux' raw record, and the truth about this op. */
struct model_sample {
	uint8_t insn, kind;
	bool by_cycles; /* taken every so many cycles rather than ops */
	uint64_t data, data2, data3;
	unsigned int stall; /* cycles in which retirement waited for this op */
};

struct model_run {
	uint64_t cycles;
	double time[MODEL_INSNS]; /* cycles: of stalls, and shares of cycles in which ops retired */
	uint64_t stall[MODEL_INSNS]; /* cycles in which retirement waited for this instruction */
	uint8_t kind[MODEL_INSNS];
};

struct stream;

/*
 * Run @ops ops. @sample takes samples of each @period ops, and of each @period cycles; as in hardware,
 * periods vary by up to 127, but for those of up to 128.
 */
void model_run(const struct model_core *core, struct stream *s, uint64_t ops, unsigned int period,
	       void (*sample)(void *ctx, const struct model_sample *s), void *ctx,
	       struct model_run *run);

/* Random numbers, the same for the same seed everywhere. */
static inline uint64_t model_random(uint64_t *state)
{
	uint64_t z = *state += 0x9e3779b97f4a7c15;

	z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9;
	z = (z ^ z >> 27) * 0x94d049bb133111eb;
	return z ^ z >> 31;
}

#endif
