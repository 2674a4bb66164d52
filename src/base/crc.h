/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* CRC-32 of IEEE 802.3, as zlib computes it. */
#ifndef IBSCOPE_CRC_H
#define IBSCOPE_CRC_H

#include <linux/types.h>
#include <stddef.h>
#include <zlib.h>

static inline __u32 crc_of(const void *data, size_t bytes)
{
	return crc32_z(0, data, bytes);
}

#endif
