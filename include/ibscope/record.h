/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A sample as it is forwarded and stored: 64 bytes with every documented register field, except
 * those of the ibs_op control register, which describe the event, and of the registers after
 * IBS_DC_PHYSADDR. Pure functions, in BPF and user space.
 */
#ifndef IBSCOPE_RECORD_H
#define IBSCOPE_RECORD_H

#include <ibscope/fetch.h>

/* Widths in `packed`; higher bits of DATA and DATA2 have no published meaning up to Zen 6. */
#define IBS_RECORD_DATA_BITS  41 /* CompToRetCtr to Microcode */
#define IBS_RECORD_DATA2_BITS 10 /* DataSrc to RmtSocket */
#define IBS_RECORD_CPU_BITS   11
#define IBS_RECORD_CPUS	      (1 << IBS_RECORD_CPU_BITS)
#define IBS_RECORD_FETCH      IBS_BIT(63) /* the sample is of ibs_fetch */

/* Brackets: what the members hold in samples of ibs_fetch. */
struct ibs_record {
	__u64 time; /* CLOCK_MONOTONIC, ns, when the program ran */
	__u64 cgroup_id;
	__u32 tgid, tid; /* in the PID namespace of the loader */
	__u64 ip;	 /* IBS_OP_RIP; valid unless RipInvalid [IBS_FETCH_LINADDR] */
	__u64 addr;	 /* IBS_DC_LINADDR, valid with DcLinAddrValid [IBS_FETCH_EXTD] */
	__u64 phys;	 /* IBS_DC_PHYSADDR, valid with DcPhyAddrValid [IBS_FETCH_PHYSADDR] */
	__u64 data3;	 /* [IBS_FETCH_CTL] */
	__u64 packed;	 /* from bit 0: DATA, DATA2 [0, 0], CPU; IBS_RECORD_FETCH */
};
_Static_assert(sizeof(struct ibs_record) == 64, "a record must be a cache line");

/* The same with all registers unmodified (--raw). */
struct ibs_record_raw {
	__u64 time;
	__u64 cgroup_id;
	__u32 tgid, tid;
	__u32 cpu;
	__u32 bytes; /* size of the kernel's raw record, from `caps` on; the rest is zero */
	__u32 fetch; /* 1: the sample is of ibs_fetch, with the registers of enum ibs_fetch_reg */
	__u32 caps;
	__u64 regs[IBS_OP_REG_N];
};
_Static_assert(sizeof(struct ibs_record_raw) == 112, "ibs_record_raw has implicit padding");
_Static_assert(__builtin_offsetof(struct ibs_record_raw, regs) ==
		       __builtin_offsetof(struct ibs_record_raw, caps) + 4,
	       "caps and registers must be laid out as in the raw record");

/* Addresses of a call chain at most: kernel.perf_event_max_stack by default. */
#define IBS_STACK_MAX 127

/* Ids of call chains below this are of the map `stacks`, the next IBS_MORE_STACKS of `more_stacks`. */
#define IBS_STACKS	16384
#define IBS_MORE_STACKS 4096

/* Words at the top of the user stack that are recorded with a call chain. */
#define IBS_STACK_TOP 4

/*
 * Follows either record if call chains or slab caches are recorded. Keys are of the stack map; below
 * 0: no chain, and -errno says why.
 */
struct ibs_record_extra {
	__s32 kernel, user; /* chains that begin where the kernel began to unwind */
	__s32 callers; /* chain of user space that lacks its first address, which is the op's */
	__u32 zero;
	/* slab cache of the data address: ibs_slab.id, with flags below it; 0: none */
	__u64 slab;
	/* of the stack in user space, from the stack pointer up; 0: unknown, or not an address of code */
	__u64 top[IBS_STACK_TOP];
};
_Static_assert(sizeof(struct ibs_record_extra) == 56, "ibs_record_extra has implicit padding");

/* Registers of struct pt_regs of x86-64. */
#define IBS_USER_REGS 21
enum ibs_user_reg { IBS_USER_RIP = 16, IBS_USER_CS = 17, IBS_USER_RSP = 19 };

/*
 * Follows the extra if the user's stack is copied, for a reader that unwinds it: the registers that
 * the task had in user space, and `bytes` of its stack, from the stack pointer up.
 */
struct ibs_user_copy {
	__u64 regs[IBS_USER_REGS]; /* of IBS_COPY_REGS */
	__u32 bytes;
	__u32 flags;
};
_Static_assert(sizeof(struct ibs_user_copy) == 176, "ibs_user_copy has implicit padding");

#define IBS_COPY_REGS 1 /* the registers are known */
#define IBS_COPY_CUT  2 /* the stack went on where the room for the copy ended */

/* Bytes of the stack that a copy has room for are a multiple of the step. */
#define IBS_COPY_STEP	 512
#define IBS_COPY_DEFAULT 8192
#define IBS_COPY_MAX	 65536

/* Whether the slab has 1 << order or 1 << min_order pages; neither flag: unknown. */
#define IBS_SLAB_ORDER	   1ull
#define IBS_SLAB_MIN_ORDER 2ull
#define IBS_SLAB_ID(slab)  ((slab) & ~3ull)

/* A slab cache, as the kernel lists it. */
struct ibs_slab {
	__u64 id;	   /* address of its struct kmem_cache */
	__u32 object_size; /* as requested at creation */
	__u32 size, pad;   /* bytes from object to object, and before the first one of a slab */
	__u8 order;	   /* a slab has 1 << order pages */
	__u8 min_order;	   /* or 1 << min_order if memory was short */
	__u8 merged;	   /* caches of other objects were merged into it */
	char name[61];
};
_Static_assert(sizeof(struct ibs_slab) == 88, "ibs_slab has implicit padding");

static __always_inline __u64 ibs_record_pack(__u64 data, __u64 data2, __u32 cpu)
{
	return (data & (IBS_BIT(IBS_RECORD_DATA_BITS) - 1)) |
	       (data2 & (IBS_BIT(IBS_RECORD_DATA2_BITS) - 1)) << IBS_RECORD_DATA_BITS |
	       (__u64)(cpu & (IBS_RECORD_CPUS - 1))
		       << (IBS_RECORD_DATA_BITS + IBS_RECORD_DATA2_BITS);
}

static __always_inline bool ibs_record_is_fetch(const struct ibs_record *r)
{
	return r->packed & IBS_RECORD_FETCH;
}

static __always_inline __u32 ibs_record_cpu(const struct ibs_record *r)
{
	return r->packed >> (IBS_RECORD_DATA_BITS + IBS_RECORD_DATA2_BITS) & (IBS_RECORD_CPUS - 1);
}

static __always_inline __u64 ibs_record_data(const struct ibs_record *r)
{
	return r->packed & (IBS_BIT(IBS_RECORD_DATA_BITS) - 1);
}

static __always_inline __u64 ibs_record_data2(const struct ibs_record *r)
{
	return r->packed >> IBS_RECORD_DATA_BITS & (IBS_BIT(IBS_RECORD_DATA2_BITS) - 1);
}

/**
 * ibs_record_regs() - unpack the registers of a record
 * @regs: gets IBS_OP_REG_FIXED registers; IBS_OP_CTL and reserved bits are 0
 */
static __always_inline void ibs_record_regs(const struct ibs_record *r, __u64 *regs)
{
	regs[IBS_OP_CTL] = 0;
	regs[IBS_OP_RIP] = r->ip;
	regs[IBS_OP_DATA] = ibs_record_data(r);
	regs[IBS_OP_DATA2] = ibs_record_data2(r);
	regs[IBS_OP_DATA3] = r->data3;
	regs[IBS_DC_LINADDR] = r->addr;
	regs[IBS_DC_PHYSADDR] = r->phys;
}

/* The same for a sample of ibs_fetch: IBS_FETCH_REG_N registers. */
static __always_inline void ibs_record_fetch_regs(const struct ibs_record *r, __u64 *regs)
{
	regs[IBS_FETCH_CTL] = r->data3;
	regs[IBS_FETCH_LINADDR] = r->ip;
	regs[IBS_FETCH_PHYSADDR] = r->phys;
	regs[IBS_FETCH_EXTD] = r->addr;
}

#endif
