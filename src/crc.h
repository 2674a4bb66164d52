/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The checksum of recordings: CRC-32 as zlib has it, at a tenth of the instructions. */
#ifndef IBSCOPE_CRC_H
#define IBSCOPE_CRC_H

#include <linux/types.h>
#include <stddef.h>

__u32 crc_of(const void *data, size_t bytes);

#endif
