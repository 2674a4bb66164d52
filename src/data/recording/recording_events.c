// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "recording_events.h"

static const struct {
	enum trace_kind trace;
	__u16 kind;
	__u16 bytes; /* of the fixed part */
	bool string; /* follows */
} kinds[] = {
	{ TRACE_COMM, RECORDING_COMM, RECORDING_EVENT_BYTES(comm), true },
	{ TRACE_MMAP, RECORDING_MMAP, RECORDING_EVENT_BYTES(mmap), true },
	{ TRACE_FORK, RECORDING_FORK, RECORDING_EVENT_BYTES(fork), false },
	{ TRACE_EXIT, RECORDING_EXIT, RECORDING_EVENT_BYTES(fork), false },
	{ TRACE_CGROUP, RECORDING_CGROUP, RECORDING_EVENT_BYTES(cgroup), true },
	{ TRACE_LOST, RECORDING_LOST, RECORDING_EVENT_BYTES(lost), false },
	{ TRACE_RANK, RECORDING_RANK, RECORDING_EVENT_BYTES(rank), false },
	{ TRACE_REGION, RECORDING_REGION, RECORDING_EVENT_BYTES(region), true },
	{ TRACE_SLAB, RECORDING_SLAB, RECORDING_EVENT_BYTES(slab), true },
};
#define KINDS (ARRAY_SIZE(kinds))

static void encode_mmap(const struct trace_mmap *m, struct recording_event *out)
{
	size_t n = m->build_id_len;

	out->flags = (m->exec ? RECORDING_EXEC : 0) | (m->kernel ? RECORDING_KERNEL : 0);
	out->mmap.tgid = m->tgid;
	out->mmap.tid = m->tid;
	out->mmap.start = m->start;
	out->mmap.len = m->len;
	out->mmap.pgoff = m->pgoff;
	out->mmap.build_id_len = n < sizeof(m->build_id) ? n : sizeof(m->build_id);
	memcpy(out->mmap.build_id, m->build_id, out->mmap.build_id_len);
}

size_t recording_event_encode(const struct trace_event *ev, struct recording_event *out,
			      const char *strings[RECORDING_STRINGS], unsigned int *n)
{
	unsigned int k;

	for (k = 0; k < KINDS && kinds[k].trace != ev->kind; k++)
		;
	if (k == KINDS)
		return 0;
	*out = (struct recording_event){ .kind = kinds[k].kind, .time = ev->time };
	*n = kinds[k].string;
	switch (ev->kind) {
	case TRACE_COMM:
		out->flags = ev->comm.exec ? RECORDING_EXEC : 0;
		out->comm.tgid = ev->comm.tgid;
		out->comm.tid = ev->comm.tid;
		strings[0] = ev->comm.name ?: "";
		break;
	case TRACE_MMAP:
		encode_mmap(&ev->mmap, out);
		strings[0] = ev->mmap.path ?: "";
		break;
	case TRACE_CGROUP:
		out->cgroup.id = ev->cgroup.id;
		strings[0] = ev->cgroup.path ?: "";
		strings[1] = ev->cgroup.container ?: "";
		strings[2] = ev->cgroup.pod ?: "";
		strings[3] = ev->cgroup.ns ?: "";
		*n = *strings[1] || *strings[2] || *strings[3] ? 4 : 1;
		break;
	case TRACE_LOST:
		out->flags = ev->lost.samples ? RECORDING_IN_SAMPLES : 0;
		out->lost.n = ev->lost.n;
		out->lost.cpu = ev->lost.cpu;
		break;
	case TRACE_RANK:
		out->flags = ev->rank.ended ? RECORDING_ENDED : 0;
		out->rank.tgid = ev->rank.tgid;
		out->rank.rank = ev->rank.rank;
		out->rank.status = ev->rank.status;
		break;
	case TRACE_REGION:
		out->flags = (ev->region.end ? RECORDING_ENDED : 0) |
			     (ev->region.omp ? RECORDING_OMP : 0);
		out->region.tid = ev->region.tid;
		out->region.team = ev->region.team;
		out->region.number = ev->region.number;
		out->region.addr = ev->region.addr;
		strings[0] = ev->region.name ?: "";
		break;
	case TRACE_SLAB:
		out->slab.id = ev->slab.id;
		out->slab.object_size = ev->slab.object_size;
		out->slab.size = ev->slab.size;
		out->slab.pad = ev->slab.pad;
		out->slab.order = ev->slab.order;
		out->slab.min_order = ev->slab.min_order;
		out->slab.merged = ev->slab.merged;
		strings[0] = ev->slab.name;
		break;
	default:
		out->fork.tgid = ev->fork.tgid;
		out->fork.tid = ev->fork.tid;
		out->fork.parent_tgid = ev->fork.parent_tgid;
		out->fork.parent_tid = ev->fork.parent_tid;
	}
	return kinds[k].bytes;
}

static int decode_mmap(const struct recording_event *e, struct trace_mmap *m)
{
	if (e->mmap.build_id_len > sizeof(m->build_id))
		return -EINVAL;
	m->tgid = e->mmap.tgid;
	m->tid = e->mmap.tid;
	m->kernel = e->flags & RECORDING_KERNEL;
	m->exec = e->flags & RECORDING_EXEC;
	m->start = e->mmap.start;
	m->len = e->mmap.len;
	m->pgoff = e->mmap.pgoff;
	m->build_id_len = e->mmap.build_id_len;
	memcpy(m->build_id, e->mmap.build_id, m->build_id_len);
	return 1;
}

/* The string after @s, "" if @s is the last one. The last byte before @end is 0. */
static const char *next_string(const char *s, const char *end)
{
	s += strlen(s);
	return s + 1 < end ? s + 1 : s;
}

int recording_event_decode(const unsigned char *in, size_t n, struct trace_event *out,
			   size_t *bytes)
{
	struct recording_event e = {};
	const char *string;
	unsigned int k;

	if (n < offsetof(struct recording_event, comm))
		return -EINVAL;
	memcpy(&e, in, offsetof(struct recording_event, comm));
	if (e.bytes < offsetof(struct recording_event, comm) || e.bytes > n)
		return -EINVAL;
	*bytes = e.bytes;
	for (k = 0; k < KINDS && kinds[k].kind != e.kind; k++)
		;
	if (k == KINDS)
		return 0;
	if (e.bytes < kinds[k].bytes + (size_t)kinds[k].string ||
	    (kinds[k].string && in[e.bytes - 1]))
		return -EINVAL;
	memcpy(&e, in, kinds[k].bytes);
	string = (const char *)in + kinds[k].bytes;
	*out = (struct trace_event){ .kind = kinds[k].trace, .time = e.time };
	switch (out->kind) {
	case TRACE_COMM:
		out->comm.exec = e.flags & RECORDING_EXEC;
		out->comm.tgid = e.comm.tgid;
		out->comm.tid = e.comm.tid;
		out->comm.name = string;
		return 1;
	case TRACE_MMAP:
		out->mmap.path = string;
		return decode_mmap(&e, &out->mmap);
	case TRACE_CGROUP:
		out->cgroup.id = e.cgroup.id;
		out->cgroup.path = string;
		out->cgroup.container = next_string(string, (const char *)in + e.bytes);
		out->cgroup.pod = next_string(out->cgroup.container, (const char *)in + e.bytes);
		out->cgroup.ns = next_string(out->cgroup.pod, (const char *)in + e.bytes);
		return 1;
	case TRACE_LOST:
		out->lost.samples = e.flags & RECORDING_IN_SAMPLES;
		out->lost.n = e.lost.n;
		out->lost.cpu = e.lost.cpu;
		return 1;
	case TRACE_RANK:
		out->rank.tgid = e.rank.tgid;
		out->rank.rank = e.rank.rank;
		out->rank.ended = e.flags & RECORDING_ENDED;
		out->rank.status = e.rank.status;
		return 1;
	case TRACE_REGION:
		out->region.end = e.flags & RECORDING_ENDED;
		out->region.omp = e.flags & RECORDING_OMP;
		out->region.tid = e.region.tid;
		out->region.team = e.region.team;
		out->region.number = e.region.number;
		out->region.addr = e.region.addr;
		out->region.name = string;
		return 1;
	case TRACE_SLAB:
		out->slab = (struct ibs_slab){ .id = e.slab.id,
					       .object_size = e.slab.object_size,
					       .size = e.slab.size,
					       .pad = e.slab.pad,
					       .order = e.slab.order,
					       .min_order = e.slab.min_order,
					       .merged = e.slab.merged };
		snprintf(out->slab.name, sizeof(out->slab.name), "%s", string);
		return 1;
	default:
		out->fork.tgid = e.fork.tgid;
		out->fork.tid = e.fork.tid;
		out->fork.parent_tgid = e.fork.parent_tgid;
		out->fork.parent_tid = e.fork.parent_tid;
		return 1;
	}
}
