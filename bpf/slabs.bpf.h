/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The slab cache of a kernel address, and the kernel's list of all caches. */
#ifndef IBSCOPE_SLABS_BPF_H
#define IBSCOPE_SLABS_BPF_H

#include "compat.bpf.h"
#include <ibscope/record.h>

/* Addresses of the kernel variables vmemmap_base and page_offset_base; 0: unknown. */
const volatile __u64 cfg_vmemmap, cfg_page_offset;

/* Their values once the caches were listed; until then, the defaults of kernels without KASLR. */
struct {
	__u64 vmemmap, offset;
} slab_pages = { 0xffffea0000000000, 0xffff888000000000 };

/* v6.13 */
struct kmem_cache;
extern struct kmem_cache *bpf_get_kmem_cache(__u64 addr) __ksym __weak;

struct kmem_cache_order_objects {
	unsigned int x; /* the order is above bit 16 */
} __attribute__((preserve_access_index));

struct kmem_cache {
	const char *name;
	int refcount;
	unsigned int size, object_size, red_left_pad;
	struct kmem_cache_order_objects oo, min;
} __attribute__((preserve_access_index));

struct page {
	unsigned long flags;
} __attribute__((preserve_access_index));

struct slab {
	struct kmem_cache *slab_cache;
	unsigned int objects : 15;
} __attribute__((preserve_access_index));

/* True if the address lies in a slab of the cache with this many pages and objects. */
static __always_inline bool has_slab(const struct kmem_cache *cache, __u32 order_objects,
				     __u64 addr)
{
	__u64 first = addr & ~((4096ull << (order_objects >> 16 & 15)) - 1);
	struct slab *slab = (void *)slab_pages.vmemmap +
			    ((first - slab_pages.offset) >> 12) * bpf_core_type_size(struct page);

	return BPF_CORE_READ(slab, slab_cache) == cache &&
	       BPF_CORE_READ_BITFIELD_PROBED(slab, objects) == (order_objects & 0x7fff);
}

/* If memory is short, a cache gets slabs of fewer pages, which changes where its objects begin. */
static __always_inline __u64 slab_order(const struct kmem_cache *cache, __u64 addr)
{
	__u32 usual = cache->oo.x, least = cache->min.x;

	if (usual >> 16 == least >> 16)
		return IBS_SLAB_ORDER;
	if ((__u16)usual == (__u16)least)
		return 0;
	return has_slab(cache, usual, addr)   ? IBS_SLAB_ORDER
	       : has_slab(cache, least, addr) ? IBS_SLAB_MIN_ORDER
					      : 0;
}

/* Set ibs_record_extra.slab, through memory since the verifier forbids OR on a pointer. */
static __always_inline void put_slab(__u64 *out, __u64 addr)
{
	struct kmem_cache *cache = bpf_get_kmem_cache(addr);

	*out = (__u64)cache;
	barrier();
	/* sleepable programs must not dereference what the kfunc returns */
	if (cache)
		*out |= slab_order(
			bpf_rdonly_cast(cache, bpf_core_type_id_kernel(struct kmem_cache)), addr);
}

struct bpf_iter__kmem_cache {
	struct bpf_iter_meta *meta;
	struct kmem_cache *s;
} __attribute__((preserve_access_index));

SEC("iter/kmem_cache")
int ibs_slabs(struct bpf_iter__kmem_cache *ctx)
{
	struct kmem_cache *s = ctx->s;
	struct ibs_slab out = {};

	if (cfg_vmemmap && cfg_page_offset) {
		bpf_probe_read_kernel(&slab_pages.vmemmap, 8, (void *)cfg_vmemmap);
		bpf_probe_read_kernel(&slab_pages.offset, 8, (void *)cfg_page_offset);
	}
	if (!s)
		return 0;
	out.id = (__u64)s;
	out.object_size = s->object_size;
	out.size = s->size;
	if (bpf_core_field_exists(s->red_left_pad)) /* CONFIG_SLUB_DEBUG */
		out.pad = s->red_left_pad;
	out.order = s->oo.x >> 16;
	out.min_order = s->min.x >> 16;
	out.merged = s->refcount > 2; /* one reference is the iterator's */
	bpf_probe_read_kernel_str(out.name, sizeof(out.name), s->name);
	bpf_seq_write(ctx->meta->seq, &out, sizeof(out));
	return 0;
}

#endif
