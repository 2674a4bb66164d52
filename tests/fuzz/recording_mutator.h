/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* A mutator that puts the checksums of a recording right, so that what they guard is reached. */
#ifndef RECORDING_MUTATOR_H
#define RECORDING_MUTATOR_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "recording/recording_format.h"

size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max, unsigned int seed);
size_t LLVMFuzzerMutate(uint8_t *data, size_t size, size_t max);

static void seal(uint8_t *data, size_t size)
{
	struct recording_file_head *file = (void *)data;
	struct recording_block h;
	size_t at = sizeof(*file);
	__u32 magic = RECORDING_BLOCK_MAGIC;
	uint8_t *found;

	if (size < at)
		return;
	file->crc = recording_crc(file, offsetof(struct recording_file_head, crc));
	while (at < size) {
		found = memmem(data + at, size - at, &magic, sizeof(magic));
		if (!found || found + sizeof(h) > data + size)
			return;
		at = found - data;
		memcpy(&h, found, sizeof(h));
		h.file = file->file;
		if (h.bytes > size - at - sizeof(h))
			h.bytes = size - at - sizeof(h);
		if (!(h.flags & RECORDING_ZSTD) && h.bytes < 4096)
			h.raw_bytes = h.bytes;
		h.data_crc = recording_crc(found + sizeof(h), h.bytes);
		h.head_crc = recording_crc(&h, offsetof(struct recording_block, head_crc));
		memcpy(found, &h, sizeof(h));
		at += sizeof(h) + h.bytes;
	}
}

size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max, unsigned int seed)
{
	size = LLVMFuzzerMutate(data, size, max);
	if (seed % 8)
		seal(data, size);
	return size;
}

#endif
