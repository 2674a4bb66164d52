// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "recording_events.h"

/*
 * Events, a row each: X(KIND, member, string that follows or NONE, fields). Fields have the same name
 * in a file and in a trace: COPY(field), or FLAG(field, bit of `flags`).
 */
#define EVENTS(X)                                                                                 \
	X(COMM, comm, comm.name, FLAG(comm.exec, RECORDING_EXEC) COPY(comm.tgid) COPY(comm.tid))  \
	X(MMAP, mmap, mmap.path,                                                                  \
	  FLAG(mmap.exec, RECORDING_EXEC) FLAG(mmap.kernel, RECORDING_KERNEL) COPY(mmap.tgid)     \
		  COPY(mmap.tid) COPY(mmap.start) COPY(mmap.len) COPY(mmap.pgoff)                 \
			  COPY(mmap.build_id_len))                                                \
	X(FORK, fork, NONE, FORK_FIELDS)                                                          \
	X(EXIT, fork, NONE, FORK_FIELDS)                                                          \
	X(CGROUP, cgroup, cgroup.path, COPY(cgroup.id))                                           \
	X(LOST, lost, NONE, FLAG(lost.samples, RECORDING_IN_SAMPLES) COPY(lost.n) COPY(lost.cpu)) \
	X(RANK, rank, NONE,                                                                       \
	  FLAG(rank.ended, RECORDING_ENDED) COPY(rank.tgid) COPY(rank.rank) COPY(rank.status))    \
	X(REGION, region, region.name,                                                            \
	  FLAG(region.end, RECORDING_ENDED) FLAG(region.omp, RECORDING_OMP) COPY(region.tid)      \
		  COPY(region.team) COPY(region.number) COPY(region.addr))                        \
	X(SLAB, slab, slab.name,                                                                  \
	  COPY(slab.id) COPY(slab.object_size) COPY(slab.size) COPY(slab.pad) COPY(slab.order)    \
		  COPY(slab.min_order) COPY(slab.merged))                                         \
	X(ALLOC, alloc, NONE,                                                                     \
	  FLAG(alloc.mapped, RECORDING_MAPPED) COPY(alloc.tgid) COPY(alloc.tid) COPY(alloc.addr)  \
		  COPY(alloc.size) COPY(alloc.weight) COPY(alloc.n_stack))                        \
	X(FREE, free, NONE, COPY(free.tgid) COPY(free.tid) COPY(free.addr) COPY(free.size))       \
	X(SLICE, slice, NONE,                                                                     \
	  COPY(slice.of) COPY(slice.start) COPY(slice.end) COPY(slice.ops) COPY(slice.tags)       \
		  COPY(slice.period))
#define FORK_FIELDS COPY(fork.tgid) COPY(fork.tid) COPY(fork.parent_tgid) COPY(fork.parent_tid)

#define NONE kind /* a member without a string */

static const struct kind {
	enum trace_kind trace;
	__u16 kind;
	__u16 bytes;  /* of the fixed part */
	__u16 string; /* where its address is in a trace_event; 0: none follows */
} kinds[] = {
#define KIND(kind, member, string, fields)                               \
	{ TRACE_##kind, RECORDING_##kind, RECORDING_EVENT_BYTES(member), \
	  offsetof(struct trace_event, string) },
	EVENTS(KIND)
};

static const struct kind *find(bool of_trace, unsigned int kind)
{
	for (size_t k = 0; k < ARRAY_SIZE(kinds); k++)
		if ((of_trace ? kinds[k].trace : kinds[k].kind) == kind)
			return &kinds[k];
	return NULL;
}

size_t recording_event_encode(const struct trace_event *ev, struct recording_event *out,
			      const char *strings[RECORDING_STRINGS], unsigned int *n)
{
#define FLAG(field, bit) out->flags |= ev->field ? (bit) : 0;
#define COPY(field)	 out->field = ev->field;
#define CASE(kind, member, string, fields) \
	case TRACE_##kind:                 \
		fields break;
	const struct kind *k = find(true, ev->kind);

	if (!k)
		return 0;
	*out = (struct recording_event){ .kind = k->kind, .time = ev->time };
	/* NOLINTBEGIN(bugprone-branch-clone): cases are rows of a table */
	switch (ev->kind) {
		EVENTS(CASE)
	default:
		break;
	}
	/* NOLINTEND(bugprone-branch-clone) */
#undef FLAG
#undef COPY
	if (ev->kind == TRACE_ALLOC && ev->alloc.n_stack > TRACE_STACK_MAX)
		out->alloc.n_stack = TRACE_STACK_MAX;
	if (ev->kind == TRACE_MMAP) {
		const size_t most = sizeof(ev->mmap.build_id), len = ev->mmap.build_id_len;

		out->mmap.build_id_len = len < most ? len : most;
		memcpy(out->mmap.build_id, ev->mmap.build_id, out->mmap.build_id_len);
	}
	*n = k->string != 0;
	if (ev->kind == TRACE_SLAB)
		strings[0] = ev->slab.name;
	else if (k->string)
		memcpy(strings, (const char *)ev + k->string, sizeof(*strings));
	if (ev->kind == TRACE_CGROUP) {
		strings[1] = ev->cgroup.container ?: "";
		strings[2] = ev->cgroup.pod ?: "";
		strings[3] = ev->cgroup.ns ?: "";
		*n = *strings[1] || *strings[2] || *strings[3] ? 4 : 1;
	}
	if (*n)
		strings[0] = strings[0] ?: "";
	return k->bytes;
}

/* The string after @s, "" if @s is the last one. The last byte before @end is 0. */
static const char *next_string(const char *s, const char *end)
{
	s += strlen(s);
	return s + 1 < end ? s + 1 : s;
}

static void decode_string(const char *s, const char *end, const struct kind *k,
			  struct trace_event *out)
{
	if (out->kind == TRACE_SLAB)
		snprintf(out->slab.name, sizeof(out->slab.name), "%s", s);
	else if (k->string)
		memcpy((char *)out + k->string, &s, sizeof(s));
	if (out->kind == TRACE_CGROUP) {
		out->cgroup.container = next_string(s, end);
		out->cgroup.pod = next_string(out->cgroup.container, end);
		out->cgroup.ns = next_string(out->cgroup.pod, end);
	}
}

/*
 * Read the fixed part of the event at the start of a buffer, and check the rest. Return: as recording_event_decode();
 * @e and @k are set with 1.
 */
static int check(const unsigned char *in, size_t n, struct recording_event *e,
		 const struct kind **k, size_t *bytes)
{
	const size_t head = offsetof(struct recording_event, comm);

	if (n < head)
		return -EINVAL;
	memcpy(e, in, head);
	if (e->bytes < head || e->bytes > n)
		return -EINVAL;
	*bytes = e->bytes;
	*k = find(false, e->kind);
	if (!*k)
		return 0;
	if (e->bytes < (*k)->bytes + (size_t) !!(*k)->string || ((*k)->string && in[e->bytes - 1]))
		return -EINVAL;
	memcpy(e, in, (*k)->bytes);
	if ((*k)->trace == TRACE_MMAP &&
	    e->mmap.build_id_len > sizeof(((struct trace_event *)NULL)->mmap.build_id))
		return -EINVAL;
	if ((*k)->trace == TRACE_ALLOC &&
	    (e->alloc.n_stack > TRACE_STACK_MAX ||
	     e->alloc.n_stack * sizeof(__u64) > e->bytes - (*k)->bytes))
		return -EINVAL;
	return 1;
}

int recording_event_decode(const unsigned char *in, size_t n, struct trace_event *out,
			   size_t *bytes)
{
#define FLAG(field, bit) out->field = e.flags & (bit);
#define COPY(field)	 out->field = e.field;
	struct recording_event e = {};
	const struct kind *k;
	const int ret = check(in, n, &e, &k, bytes);

	if (ret <= 0)
		return ret;
	*out = (struct trace_event){ .kind = k->trace, .time = e.time };
	/* NOLINTBEGIN(bugprone-branch-clone): cases are rows of a table */
	switch (out->kind) {
		EVENTS(CASE)
	default:
		break;
	}
	/* NOLINTEND(bugprone-branch-clone) */
	if (out->kind == TRACE_MMAP)
		memcpy(out->mmap.build_id, e.mmap.build_id, out->mmap.build_id_len);
	if (out->kind == TRACE_ALLOC)
		out->alloc.stack = (const void *)(in + k->bytes);
	decode_string((const char *)in + k->bytes, (const char *)in + e.bytes, k, out);
	return 1;
}

bool recording_events_ok(const unsigned char *data, size_t bytes)
{
	struct recording_event e;
	const struct kind *k;
	size_t n;

	for (; bytes; data += n, bytes -= n)
		if (check(data, bytes, &e, &k, &n) < 0)
			return false;
	return true;
}

size_t recording_event_skips_alloc(const unsigned char *in)
{
	struct recording_event e;

	memcpy(&e, in, offsetof(struct recording_event, comm));
	return e.kind == RECORDING_ALLOC || e.kind == RECORDING_FREE ? e.bytes : 0;
}
