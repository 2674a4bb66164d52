/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* How to find the caller of a function, from the .eh_frame of the loaded file that has its code. */
#ifndef IBSCOPE_ALLOCS_CFI_H
#define IBSCOPE_ALLOCS_CFI_H

#include <stdint.h>

/* The canonical frame address: the stack pointer of the caller. */
enum cfi_frame {
	CFI_FRAME_UNKNOWN, /* no description, one that needs more than these rules, or the outermost function */
	CFI_FRAME_SP,	 /* stack pointer + offset */
	CFI_FRAME_BP,	 /* frame pointer + offset */
	CFI_FRAME_AT_BP, /* the word at frame pointer + offset: a function that aligns its stack */
};

/* The caller's frame pointer. */
enum cfi_bp {
	CFI_BP_SAME,
	CFI_BP_AT_FRAME, /* saved at frame address + offset */
	CFI_BP_AT_BP,	 /* saved at frame pointer + offset */
};

/* The return address is always right below the frame address. */
union cfi_rule {
	struct {
		uint64_t frame : 2, bp : 2;
		int64_t frame_offset : 30, bp_offset : 30;
	};
	uint64_t word; /* all of it, to be stored at once */
};

/* The rule at a return address. Takes a microsecond. */
union cfi_rule cfi_find(uintptr_t pc);

#endif
