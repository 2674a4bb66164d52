// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// Count IBS op samples and fold their registers, in the perf event's BPF hook.
#include <linux/types.h>
#include <linux/bpf.h>
#include <linux/bpf_perf_event.h>
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_core_read.h>

// Only the members that are read; CO-RE finds them in the running kernel.
struct perf_raw_frag { void *data; __u32 size; } __attribute__((preserve_access_index));
struct perf_raw_record { struct perf_raw_frag frag; } __attribute__((preserve_access_index));
struct perf_sample_data { struct perf_raw_record *raw; } __attribute__((preserve_access_index));
struct bpf_perf_event_data_kern { struct perf_sample_data *data; } __attribute__((preserve_access_index));

struct totals { __u64 samples, noraw, loads, xor3, sumlat, size, caps; };
struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct totals);
} totals SEC(".maps");

SEC("perf_event")
int on_sample(struct bpf_perf_event_data *ctx)
{
	struct bpf_perf_event_data_kern *k = (void *)ctx;
	struct perf_raw_record *raw = NULL;
	struct perf_sample_data *d = NULL;
	__u32 zero = 0, size = 0;
	struct totals *t = bpf_map_lookup_elem(&totals, &zero);
	void *p = NULL;
	struct { __u32 caps; __u64 r[7]; } __attribute__((packed)) b;

	if (!t)
		return 0;
	t->samples++;
	bpf_core_read(&d, sizeof(d), &k->data);
	if (d)
		bpf_core_read(&raw, sizeof(raw), &d->raw);
	if (raw) {
		bpf_core_read(&p, sizeof(p), &raw->frag.data);
		bpf_core_read(&size, sizeof(size), &raw->frag.size);
	}
	// raw is left over from nothing when the event lacks PERF_SAMPLE_RAW
	if (!p || size < sizeof(b) || bpf_probe_read_kernel(&b, sizeof(b), p)) {
		t->noraw++;
		return 0;
	}
	t->size = size;
	t->caps = b.caps;
	t->xor3 ^= b.r[4];
	if (b.r[4] & 1) {
		t->loads++;
		if (b.r[4] & 0x80)
			t->sumlat += b.r[4] >> 32 & 0xffff;
	}
	return 0;
}

char LICENSE[] SEC("license") = "GPL";
