// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "perf_ring.h"

#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

struct perf_event_mmap_page *perf_ring_map(int fd, size_t pages)
{
	void *p = mmap(NULL, (1 + pages) * sysconf(_SC_PAGESIZE), PROT_READ | PROT_WRITE,
		       MAP_SHARED, fd, 0);

	return p == MAP_FAILED ? NULL : p;
}

void perf_ring_unmap(struct perf_event_mmap_page *ring)
{
	if (ring)
		munmap(ring, perf_ring_bytes(ring));
}

size_t perf_ring_bytes(const struct perf_event_mmap_page *ring)
{
	return ring->data_offset + ring->data_size;
}

__u64 perf_ring_head(const struct perf_event_mmap_page *ring)
{
	return __atomic_load_n(&ring->data_head, __ATOMIC_ACQUIRE);
}

void perf_ring_copy(const struct perf_event_mmap_page *ring, __u64 at, void *dst, size_t len)
{
	const char *data = (const char *)ring + ring->data_offset;
	__u64 size = ring->data_size, from = at % size;
	size_t first = len < size - from ? len : size - from;

	memcpy(dst, data + from, first);
	memcpy((char *)dst + first, data, len - first);
}

void perf_ring_done(struct perf_event_mmap_page *ring, __u64 tail)
{
	__atomic_store_n(&ring->data_tail, tail, __ATOMIC_RELEASE);
}
