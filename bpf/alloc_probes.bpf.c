// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * USDT probes by which allocators say what they allocate and free: otel_memory:alloc(ptr, size, weighted_bytes) and
 * otel_memory:free(ptr). They choose what they say, so that everything is sent.
 */
#include <linux/bpf.h>
#include <linux/ptrace.h>
#include <stdbool.h>
#include "compat.bpf.h"
#include <bpf/usdt.bpf.h>
#include <ibscope/alloc_probe.h>

#define RING_BYTES (4u << 20)
#define FREE_BYTES offsetof(struct ibs_alloc_probe_event, stack)

struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, RING_BYTES);
} probe_events SEC(".maps");

__u64 probes_lost; /* events that found no room, or whose arguments could not be read */

static __always_inline void lose(void)
{
	__sync_fetch_and_add(&probes_lost, 1);
}

static __always_inline void fill(struct ibs_alloc_probe_event *e, __u64 task, __u64 addr)
{
	e->time_ns = bpf_ktime_get_ns();
	e->addr = addr;
	e->size = 0;
	e->weight = 0;
	e->tgid = task >> 32;
	e->tid = task;
	e->frees = 1;
	e->n_stack = 0;
}

SEC("usdt")
int probe_alloc(struct pt_regs *ctx)
{
	const __u64 task = current_pid_tgid();
	struct ibs_alloc_probe_event *e;
	long addr, size, weight, n;

	if (!task)
		return 0;
	if (bpf_usdt_arg(ctx, 0, &addr) || bpf_usdt_arg(ctx, 1, &size) ||
	    bpf_usdt_arg(ctx, 2, &weight)) {
		lose();
		return 0;
	}
	e = bpf_ringbuf_reserve(&probe_events, sizeof(*e), 0);
	if (!e) {
		lose();
		return 0;
	}
	fill(e, task, addr);
	e->size = size;
	e->weight = weight;
	e->frees = 0;
	n = bpf_get_stack(ctx, e->stack, sizeof(e->stack), BPF_F_USER_STACK);
	e->n_stack = n > 0 ? n / sizeof(__u64) : 0;
	e->stack[0]++; /* the others are behind a call, too */
	bpf_ringbuf_submit(e, BPF_RB_NO_WAKEUP);
	return 0;
}

SEC("usdt")
int probe_free(struct pt_regs *ctx)
{
	const __u64 task = current_pid_tgid();
	struct ibs_alloc_probe_event *e;
	long addr;

	if (!task)
		return 0;
	if (bpf_usdt_arg(ctx, 0, &addr)) {
		lose();
		return 0;
	}
	e = bpf_ringbuf_reserve(&probe_events, FREE_BYTES, 0);
	if (!e) {
		lose();
		return 0;
	}
	fill(e, task, addr);
	bpf_ringbuf_submit(e, BPF_RB_NO_WAKEUP);
	return 0;
}

char _license[] SEC("license") = "Dual BSD/GPL";
