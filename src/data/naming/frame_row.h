/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * How to find the caller's registers at an instruction, as .eh_frame or .debug_frame say: plain numbers, so that a process
 * may use what another one, which trusts nobody, has read. Registers have the numbers of DWARF for x86-64.
 */
#ifndef IBSCOPE_FRAME_ROW_H
#define IBSCOPE_FRAME_ROW_H

#include "base/std.h"

#define FRAME_RAX  0
#define FRAME_RBX  3
#define FRAME_RBP  6
#define FRAME_RSP  7
#define FRAME_RIP  16
#define FRAME_REGS 17

enum frame_rule_kind {
	FRAME_LOST,	  /* its value is gone; of the return address: there is no caller */
	FRAME_SAME,	  /* as it is */
	FRAME_UNREADABLE, /* a rule that is not supported */
	FRAME_VALUE,	  /* base + offset */
	FRAME_AT,	  /* the word at base + offset */
	FRAME_AT_AT,	  /* the word at base + offset, plus `more` */
	FRAME_RULE_KINDS
};

#define FRAME_CFA FRAME_REGS /* the base is the canonical frame address */

struct frame_rule {
	__u8 kind, base; /* of FRAME_VALUE and later ones: a register, or FRAME_CFA */
	__s32 offset, more;
};

struct frame_row {
	struct frame_rule cfa; /* of kind FRAME_VALUE or FRAME_AT_AT, on a register */
	struct frame_rule reg[FRAME_REGS];
	__u32 of_signal; /* the caller was interrupted: its address is that of the next instruction to run */
};

#endif
