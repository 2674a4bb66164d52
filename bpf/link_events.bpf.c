// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * What the events of links have counted. Links that outlive their collector are the only way to these
 * events, and user space cannot read an event through its link.
 */
#include <linux/bpf.h>
#include <bpf/bpf_core_read.h>
#include <bpf/bpf_helpers.h>
#include <ibscope/link_event.h>
#include "kernel_types.h"

SEC("iter/bpf_link")
int link_events(struct bpf_iter__bpf_link *ctx)
{
	const struct bpf_perf_link *link = (const void *)ctx->link;
	const struct perf_event *event;
	struct ibs_link_event out = {};

	if (!link || BPF_CORE_READ(link, link.type) != BPF_LINK_TYPE_PERF_EVENT)
		return 0;
	event = BPF_CORE_READ(link, perf_file, private_data);
	out.link = BPF_CORE_READ(link, link.id);
	bpf_core_read(&out.counted, sizeof(out.counted), &event->count);
	out.period = BPF_CORE_READ(event, hw.sample_period);
	out.enabled_ns = BPF_CORE_READ(event, total_time_enabled);
	out.running_ns = BPF_CORE_READ(event, total_time_running);
	bpf_seq_write(ctx->meta->seq, &out, sizeof(out));
	return 0;
}

char _license[] SEC("license") = "Dual BSD/GPL";
