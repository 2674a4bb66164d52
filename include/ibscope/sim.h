/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Registers of simulated ops: a model behind `--source sim`, for machines without IBS. Ops are those
 * of the interrupted tasks, with their own addresses (bpf/sim.bpf.h), or drawn at random; then a
 * CPU's n-th sample depends only on seed, CPU and caps, so user space can compute what the kernel
 * must have counted. Shares and latencies are plausible round figures, not measurements.
 */
#ifndef IBSCOPE_SIM_H
#define IBSCOPE_SIM_H

#include <ibscope/fetch.h>

/* splitmix64 (Steele, Lea, Flood 2014): the state is a counter, so samples can be drawn singly. */
static __always_inline __u64 ibs_sim_mix(__u64 z)
{
	z += 0x9e3779b97f4a7c15ULL;
	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ULL;
	z = (z ^ (z >> 27)) * 0x94d049bb133111ebULL;
	return z ^ (z >> 31);
}

/*
 * Distribution of misses beyond L2: X(upper limit of the draw from 0 .. 255, DataSrc from Zen 4 on,
 * DataSrc before, RmtNode, minimum latency, mask of the random addend), in cycles.
 */
#define IBS_SIM_SRC_TABLE(X)        \
	X(150, 1, 2, 0, 45, 63)     \
	X(166, 2, 2, 0, 120, 127)   \
	X(182, 5, 4, 0, 200, 255)   \
	X(230, 3, 3, 0, 280, 255)   \
	X(246, 3, 3, 1, 400, 511)   \
	X(250, 8, 3, 0, 650, 1023)  \
	X(253, 7, 7, 0, 1500, 4095) \
	X(256, 0, 0, 0, 40, 255)

/* The random numbers of a CPU's n-th sample. */
struct ibs_sim_draw {
	__u64 a, b;
};

static __always_inline struct ibs_sim_draw ibs_sim_draw(__u64 seed, __u32 cpu, __u64 n)
{
	struct ibs_sim_draw r;

	r.a = ibs_sim_mix(ibs_sim_mix(seed ^ (__u64)cpu << 32) + n);
	r.b = ibs_sim_mix(r.a);
	return r;
}

/* What the model knows of the line of an access. */
enum ibs_sim_line {
	IBS_SIM_ANY,	 /* nothing */
	IBS_SIM_TOUCHED, /* it was accessed lately */
	IBS_SIM_COLD,	 /* it was not: misses are likely */
	IBS_SIM_FOREIGN, /* another CPU has written it since: it is modified there */
};

/* Of 256 accesses, those that miss L1, and of 256 of these, those that miss L2. */
static __always_inline __u32 ibs_sim_l1_misses(enum ibs_sim_line line)
{
	return line == IBS_SIM_FOREIGN ? 256 :
	       line == IBS_SIM_COLD    ? 200 :
	       line == IBS_SIM_TOUCHED ? 16 :
					 72;
}

static __always_inline __u32 ibs_sim_l2_misses(enum ibs_sim_line line)
{
	return line == IBS_SIM_FOREIGN ? 256 :
	       line == IBS_SIM_COLD    ? 220 :
	       line == IBS_SIM_TOUCHED ? 64 :
					 140;
}

/*
 * Cores of a complex wait for the same L3 and memory. As in any queue, an access takes 1/(1 - u) times as long
 * as on an idle machine when a share u of the capacity is in use: here that of a core that does nothing but miss
 * L2.
 */
#define IBS_SIM_WAIT_UNIT 256
#define IBS_SIM_USE_MAX	  230 /* of 256: ten times as long */
#define IBS_SIM_QUEUE_NS  (1ULL << 28) /* the share is that of about this time */

/* @miss_ns: CPU time of cores that missed, in the last IBS_SIM_QUEUE_NS */
static __always_inline __u32 ibs_sim_wait(__u64 miss_ns)
{
	__u64 use = miss_ns * 256 / IBS_SIM_QUEUE_NS;

	if (use > IBS_SIM_USE_MAX)
		use = IBS_SIM_USE_MAX;
	return IBS_SIM_WAIT_UNIT * 256 / (256 - (__u32)use);
}

/* What is left of @miss_ns @ns later. */
static __always_inline __u64 ibs_sim_queue_left(__u64 miss_ns, __u64 ns)
{
	if (ns >= IBS_SIM_QUEUE_NS)
		return 0;
	return miss_ns - (miss_ns * (ns >> 8)) / (IBS_SIM_QUEUE_NS >> 8);
}

/**
 * ibs_sim_answer() - registers of an op
 * @data:  IBS_OP_DATA_BRN_RET or 0
 * @data3: what the op does, by bits of IBS_OP_DATA3
 * @wait:  latency beyond L2 in units of that of an idle machine, times IBS_SIM_WAIT_UNIT
 * @regs:  gets IBS_OP_CTL and the data registers
 */
static __always_inline void ibs_sim_answer(const struct ibs_sim_draw *d, __u32 caps,
					   enum ibs_sim_line line, __u64 data, __u64 data3,
					   __u32 wait, __u64 *regs)
{
	__u64 r = d->a, r2 = d->b, data2 = 0;
	__u32 draw = r >> 32 & 255, lat = 0, code = 0, rmt = 0;

	data |= (r2 & 31) + 1;
	if (data3) {
		data3 |= IBS_OP_DATA3_LIN_VALID | IBS_OP_DATA3_PHY_VALID;
		if ((r >> 8 & 255) < 23)
			data3 |= IBS_OP_DATA3_L1TLB_MISS | (8 + (r2 >> 8 & 255)) << 48;
		if ((r >> 16 & 255) < ibs_sim_l1_misses(line))
			data3 |= IBS_OP_DATA3_DC_MISS;
	}
	if ((data3 & IBS_OP_DATA3_DC_MISS) && (r >> 24 & 255) < ibs_sim_l2_misses(line)) {
		data3 |= IBS_OP_DATA3_L2_MISS;
#define IBS_SIM_SRC(below, zen4, coarse, rmt_node, min, mask)    \
	if (!lat && draw < (below)) {                            \
		code = caps & IBS_CAPS_ZEN4 ? (zen4) : (coarse); \
		rmt = (rmt_node);                                \
		lat = (min) + (r2 >> 16 & (mask));               \
	}
		IBS_SIM_SRC_TABLE(IBS_SIM_SRC)
#undef IBS_SIM_SRC
		if (line == IBS_SIM_FOREIGN) {
			code = 2;
			rmt = 0;
			lat = 120 + (r2 >> 16 & 127);
		} else if (line != IBS_SIM_ANY && (caps & IBS_CAPS_ZEN4) && (code == 2 || code == 5)) {
			code = 1; /* no other CPU has it */
		}
		lat = lat * wait / IBS_SIM_WAIT_UNIT;
		if (data3 & IBS_OP_DATA3_LD_OP)
			data2 = (code & 7) | rmt << 4 | (code >> 3) << 6;
		if (line == IBS_SIM_TOUCHED || line == IBS_SIM_COLD)
			data2 |= IBS_OP_DATA2_OWNED; /* nor has it modified it */
	} else if (data3 & IBS_OP_DATA3_DC_MISS) {
		lat = 11 + (r2 >> 16 & 15);
	}
	if (data3 & IBS_OP_DATA3_LD_OP)
		data3 |= (__u64)lat << 32;
	regs[IBS_OP_CTL] = IBS_BIT(17) | IBS_BIT(18);
	regs[IBS_OP_DATA] = data | ((data & 0xffff) + 20 + lat) << 16;
	regs[IBS_OP_DATA2] = data2;
	regs[IBS_OP_DATA3] = data3;
}

/**
 * ibs_sim_op() - registers of a CPU's n-th op, drawn at random
 * @regs: gets IBS_OP_REG_FIXED registers
 */
static __always_inline void ibs_sim_op(__u64 seed, __u32 cpu, __u64 n, __u32 caps, __u64 *regs)
{
	const struct ibs_sim_draw d = ibs_sim_draw(seed, cpu, n);
	__u32 kind = d.a & 255;
	__u64 data = 0, data3 = 0;

	if (kind < 97)
		data3 = IBS_OP_DATA3_LD_OP;
	else if (kind < 138)
		data3 = IBS_OP_DATA3_ST_OP;
	else if (kind < 148)
		data3 = IBS_OP_DATA3_LD_OP | IBS_OP_DATA3_ST_OP | IBS_OP_DATA3_LOCKED_OP;
	else if (kind < 202)
		data = IBS_OP_DATA_BRN_RET;
	ibs_sim_answer(&d, caps, IBS_SIM_ANY, data, data3, IBS_SIM_WAIT_UNIT, regs);
	regs[IBS_OP_RIP] = 0x400000 + (d.b >> 40);
	/* the AND leaves fewer bits set, so some lines are hotter than others */
	regs[IBS_DC_LINADDR] = data3 ? 0x7f0000000000 | (d.b >> 24 & d.a >> 40 & 0xffffff) : 0;
	regs[IBS_DC_PHYSADDR] = data3 ? 0x100000000 | (d.b >> 24 & d.a >> 40 & 0xffffff) : 0;
}

/*
 * ibs_sim_fetch() - the same for ibs_fetch
 * @regs: gets IBS_FETCH_REG_N registers
 */
static __always_inline void ibs_sim_fetch(__u64 seed, __u32 cpu, __u64 n, __u64 *regs)
{
	__u64 r = ibs_sim_mix(ibs_sim_mix(seed ^ (__u64)cpu << 32) + n);
	__u64 r2 = ibs_sim_mix(r);
	__u64 ctl = IBS_BIT(48) | IBS_BIT(49), extd = 0, lat = 2 + (r2 & 7);

	if ((r & 255) >= 20)
		ctl |= IBS_FETCH_CTL_COMP;
	if ((r >> 8 & 255) >= 13)
		ctl |= IBS_FETCH_CTL_PHY_VALID | (__u64)((r2 >> 8 & 255) < 20) << 53;
	if ((r >> 16 & 255) < 15) {
		ctl |= IBS_FETCH_CTL_L1TLB_MISS;
		extd = 5 + (r2 >> 16 & 15);
		if ((r >> 24 & 255) < 77) {
			ctl |= IBS_FETCH_CTL_L2TLB_MISS;
			extd = 30 + (r2 >> 16 & 255);
		}
		lat += extd;
	}
	if ((r >> 32 & 255) < 102) {
		ctl |= IBS_FETCH_CTL_OC_MISS;
		if ((r >> 40 & 255) < 38) {
			ctl |= IBS_FETCH_CTL_IC_MISS;
			lat += 14 + (r2 >> 24 & 31);
			if ((r >> 48 & 255) < 77) {
				ctl |= IBS_FETCH_CTL_L2_MISS;
				lat += 40 + (r2 >> 24 & 63);
				if (r >> 56 < 77) {
					ctl |= IBS_FETCH_CTL_L3_MISS;
					lat += 200 + (r2 >> 32 & 1023);
				}
			}
		}
	}
	regs[IBS_FETCH_CTL] = ctl | lat << 32;
	regs[IBS_FETCH_LINADDR] = 0x400000 + (r2 >> 40);
	regs[IBS_FETCH_PHYSADDR] = 0x100000000 | r2 >> 40;
	regs[IBS_FETCH_EXTD] = extd;
}

#endif
