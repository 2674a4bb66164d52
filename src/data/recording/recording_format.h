/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The file format, described in ibscope-recording(5). Numbers are little endian, as on all processors with
 * IBS. Private to recording_*.c and their tests.
 */
#ifndef IBSCOPE_RECORDING_FORMAT_H
#define IBSCOPE_RECORDING_FORMAT_H

#include <ibscope/op.h>
#include <ibscope/record.h>

#include "base/std.h"

#include <zlib.h>

/*
 * A reader rejects a greater major version, and skips unknown blocks and columns. Version 2 has copies of stacks, without
 * which the chains would be missing; version 3 has strata, whose samples represent different numbers of ops, and may
 * have copies of stacks.
 */
#define RECORDING_MAJOR	       1
#define RECORDING_MAJOR_COPIES 2
#define RECORDING_MAJOR_STRATA 3
#define RECORDING_MINOR \
	7 /* 1: names of containers, topology; 2: ranks; 3: regions; 4: ibs_fetch; 5: slabs; 6: callers; 7: allocations */

#define RECORDING_FILE_MAGIC  "IBSCOPE\n"
#define RECORDING_BYTE_ORDER  0x01020304u
#define RECORDING_BLOCK_MAGIC 0x4b4c4289u /* "\x89BLK" */

/* Limits of a block, which bound the reader's memory. */
#define RECORDING_BLOCK_MAX (1u << 20) /* bytes, decompressed */
#define RECORDING_JSON_MAX  (1u << 16)
#define RECORDING_BATCH	    8192 /* samples */
#define RECORDING_WRITTEN \
	4096 /* maximum of our writer, so that the encoded block stays in the cache */
#define RECORDING_STRING_MAX 8192 /* with its final 0 */

struct recording_file_head {
	char magic[8];
	__u32 byte_order;
	__u16 major, minor;
	__u32 block_head_bytes; /* sizeof(struct recording_block) */
	__u32 file;		/* chosen at random, repeated in each block */
	__u32 crc;		/* of what is before it */
};
_Static_assert(sizeof(struct recording_file_head) == 28, "recording_file_head has padding");

enum recording_block_type {
	RECORDING_META = 1,    /* JSON; first, and repeated in case the first is damaged */
	RECORDING_SAMPLES = 2, /* columns of ibs_op samples */
	RECORDING_EVENTS = 3,  /* struct recording_event; same time as the samples that follow */
	RECORDING_STACKS = 4,  /* struct recording_stack; before the samples that refer to them */
	RECORDING_LEDGER = 5,  /* JSON */
	RECORDING_END = 6,     /* JSON: the ledger; the writer ended cleanly */
	RECORDING_FETCHES = 7, /* columns of ibs_fetch samples; same time as SAMPLES right before */
	RECORDING_COPIES = 8,  /* struct recording_copy; of the samples up to the next such block */
};

#define RECORDING_ZSTD 1 /* flag: the data is a zstd frame */

struct recording_block {
	__u32 magic;
	__u32 file; /* as in the head of the file: blocks of other files are ignored */
	__u64 seq;  /* number of the block, from 0: shows gaps */
	__u16 type, flags;
	__u32 bytes;	 /* length of the data that follows */
	__u32 raw_bytes; /* its length when decompressed */
	__u32 entries;	 /* samples, events or stacks */
	__u32 data_crc;	 /* of the data */
	__u32 head_crc;	 /* of the fields above */
};
_Static_assert(sizeof(struct recording_block) == 40, "recording_block has padding");

/*
 * Columns of samples: X(NAME, id, transform, column it refers to, widest value in bytes). The transform
 * makes the column small; the file has the transform of each column. REPLACED is the value of
 * struct recording_stack at the time of the sample.
 */
#define RECORDING_COLUMN_TABLE(X)       \
	X(TIME, 0, DELTA, 0, 8)         \
	X(CGROUP, 1, PLAIN, 0, 8)       \
	X(TGID, 2, PLAIN, 0, 4)         \
	X(TID, 3, DISTANCE, 2, 4)       \
	X(CPU, 4, PLAIN, 0, 4)          \
	X(RAW_BYTES, 5, PLAIN, 0, 4)    \
	X(RAW_CAPS, 6, PLAIN, 0, 4)     \
	X(KERNEL_STACK, 7, PLAIN, 0, 4) \
	X(USER_STACK, 8, PLAIN, 0, 4)   \
	X(REPLACED, 9, PLAIN, 0, 8)     \
	X(SLAB, 10, PLAIN, 0, 8)        \
	X(CALLERS, 11, PLAIN, 0, 4)     \
	X(TOP0, 12, PLAIN, 0, 8)        \
	X(TOP1, 13, PLAIN, 0, 8)        \
	X(TOP2, 14, PLAIN, 0, 8)        \
	X(TOP3, 15, PLAIN, 0, 8)        \
	X(COPY, 25, PLAIN, 0, 4)        \
	X(STRATUM, 26, PLAIN, 0, 1)     \
	X(REG0, 16, PLAIN, 0, 8)        \
	X(REG1, 17, SIGNED, 0, 8)       \
	X(REG2, 18, PLAIN, 0, 8)        \
	X(REG3, 19, PLAIN, 0, 8)        \
	X(REG4, 20, PLAIN, 0, 8)        \
	X(REG5, 21, SIGNED, 0, 8)       \
	X(REG6, 22, XOR_SIGNED, 21, 8)  \
	X(REG7, 23, SIGNED, 0, 8)       \
	X(REG8, 24, PLAIN, 0, 8)

enum recording_column {
#define RECORDING_COLUMN_ENUM(NAME, id, ...) RECORDING_COLUMN_##NAME = (id),
	RECORDING_COLUMN_TABLE(RECORDING_COLUMN_ENUM)
#undef RECORDING_COLUMN_ENUM
		RECORDING_COLUMN_N = 32
};

enum recording_transform {
	RECORDING_PLAIN, /* the value */
	RECORDING_DELTA, /* zigzag of the difference to the previous value; to base for the first */
	RECORDING_XOR,	 /* xor with the same sample's value in another column */
	RECORDING_DISTANCE,   /* zigzag of the difference to that value */
	RECORDING_SIGNED,     /* zigzag of the value: addresses of user space and of the kernel */
	RECORDING_XOR_SIGNED, /* zigzag of the xor with the other column */
	RECORDING_TRANSFORM_N
};

/*
 * Data of a block of samples: one of these heads for each column, RECORDING_COLUMNS_END as id after the last
 * one, and then for each column the transformed numbers, minus `base` except with DELTA: `width` planes of one
 * byte per sample, least significant byte first. Planes in `absent` are all 0 and not stored. With
 * RECORDING_SPARSE the planes hold only samples with a number other than 0, and the others are 0 whatever `base`;
 * before them a bitmap, least significant bit first, marks the samples in the planes.
 */
struct recording_column_head {
	__u8 id, transform, other, width;
	__u8 flags, absent, zero[2];
	__u64 base;
};
#define RECORDING_SPARSE 1
_Static_assert(sizeof(struct recording_column_head) == 16, "recording_column_head has padding");
#define RECORDING_COLUMNS_END 0xff

enum recording_event_kind {
	RECORDING_COMM = 1,
	RECORDING_MMAP = 2,
	RECORDING_FORK = 3,
	RECORDING_EXIT = 4,
	RECORDING_CGROUP = 5,
	RECORDING_LOST = 6,
	RECORDING_RANK = 7,
	RECORDING_REGION = 8,
	RECORDING_SLAB = 9,
	RECORDING_ALLOC = 10,
	RECORDING_FREE = 11,
	RECORDING_SLICE = 12,
};

#define RECORDING_EXEC	     1 /* flag of COMM and MMAP */
#define RECORDING_KERNEL     2 /* flag of MMAP */
#define RECORDING_IN_SAMPLES 4 /* flag of LOST: the records were samples */
#define RECORDING_ENDED	     8 /* flag of RANK: exited with this status; of REGION: the last one ends */
#define RECORDING_OMP	     16 /* flag of REGION: an OpenMP region */
#define RECORDING_MAPPED     32 /* flag of ALLOC: by mmap */

struct recording_event {
	__u32 bytes; /* including this head and the strings after the fixed part, which end in 0 */
	__u16 kind, flags;
	__u64 time;
	union {
		struct {
			__u32 tgid, tid;
		} comm;
		struct {
			__u32 tgid, tid;
			__u64 start, len, pgoff;
			__u8 build_id_len, build_id[20], zero[3];
		} mmap;
		struct {
			__u32 tgid, tid, parent_tgid, parent_tid;
		} fork;
		struct {
			__u64 id;
		} cgroup; /* path, and since minor version 1 container, pod and its namespace */
		struct {
			__u64 n;
			__u32 cpu, zero;
		} lost;
		struct {
			__u32 tgid, rank;
			__s32 status;
			__u32 zero;
		} rank;
		struct {
			__u32 tid, team;
			__u64 addr;
			__u32 number, zero;
		} region; /* and its name */
		struct {
			__u64 id;
			__u32 object_size, size, pad;
			__u8 order, min_order, merged, zero;
		} slab; /* and its name */
		struct {
			__u32 tgid, tid;
			__u64 addr, size, weight;
			__u32 n_stack, zero;
		} alloc; /* and its stack */
		struct {
			__u32 tgid, tid;
			__u64 addr, size;
		} free;
		struct {
			__u64 start, end, ops, tags, period;
			__u32 of, zero;
		} slice;
	};
};
#define RECORDING_EVENT_BYTES(member) \
	(offsetof(struct recording_event, member) + sizeof(((struct recording_event *)0)->member))
_Static_assert(RECORDING_EVENT_BYTES(mmap) == 72, "recording_event has padding");

/*
 * `n` addresses follow, innermost first. Reuse of a key counts as a replacement: a reader that missed one
 * must not use older chains.
 */
struct recording_stack {
	__s32 key;
	__u16 n, flags;
	__u64 replaced; /* in the file so far, this one included */
};
_Static_assert(sizeof(struct recording_stack) == 16, "recording_stack has padding");
#define RECORDING_REPLACES 1 /* flag */

/*
 * `bytes` of a stack follow. The column COPY has the number in the block before, from 1; 0: none. Time and task are the
 * sample's, else the block that it means is lost.
 */
struct recording_copy {
	__u64 time;
	__u32 tid, flags;
	__u32 bytes, zero;
	__u64 regs[IBS_USER_REGS];
};
_Static_assert(sizeof(struct recording_copy) == 192, "recording_copy has padding");
#define RECORDING_CUT 1 /* flag: the stack went on */

/* CRC-32 of IEEE 802.3 */
static inline __u32 recording_crc(const void *data, size_t bytes)
{
	return crc32_z(0, data, bytes);
}

#endif
