// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "perf_data_event.h"

#define HEADER sizeof(struct perf_event_header)

/* More registers than any processor has. */
#define RAW_MAX (4 + 8 * 32)

/* Bytes of each kind of record before its string or its end; 0: not ours. */
static const __u16 fixed_bytes[] = {
	[PERF_RECORD_MMAP] = HEADER + 32,  [PERF_RECORD_MMAP2] = HEADER + 64,
	[PERF_RECORD_COMM] = HEADER + 8,   [PERF_RECORD_FORK] = HEADER + 24,
	[PERF_RECORD_EXIT] = HEADER + 24,  [PERF_RECORD_LOST] = HEADER + 16,
	[PERF_RECORD_SAMPLE] = HEADER,	   [PERF_RECORD_LOST_SAMPLES] = HEADER + 8,
	[PERF_RECORD_CGROUP] = HEADER + 8,
};

bool perf_is_event(const struct perf_record *rec)
{
	return rec->type < ARRAY_SIZE(fixed_bytes) && fixed_bytes[rec->type];
}

static unsigned int cpu_mode(const struct perf_record *rec)
{
	return rec->misc & PERF_RECORD_MISC_CPUMODE_MASK;
}

bool perf_record_time(const struct perf_attr *a, const struct perf_record *rec, __u64 *time)
{
	*time = 0;
	if (rec->type == PERF_RECORD_SAMPLE) {
		if (rec->size < a->fixed)
			return false;
		if (a->time)
			*time = perf_get64(rec->data + a->time);
		return true;
	}
	if (rec->size < HEADER + a->trailer)
		return false;
	if (a->end_time)
		*time = perf_get64(rec->data + rec->size - a->end_time);
	return true;
}

/* The string at @at, if it ends before the trailer. */
static const char *text(const struct perf_attr *a, const struct perf_record *rec, size_t at)
{
	size_t end = rec->size - a->trailer;

	if (at >= end || !memchr(rec->data + at, 0, end - at))
		return NULL;
	return (const char *)rec->data + at;
}

enum perf_attr_kind perf_guess_kind(const struct perf_sample_body *body)
{
	__u32 n = body->raw_bytes;

	if (!body->raw || n < IBS_FETCH_RAW_MIN || n > RAW_MAX || (n & 7) != 4 ||
	    !(perf_get32(body->raw) & IBS_CAPS_AVAIL))
		return PERF_ATTR_OTHER;
	return n < IBS_OP_RAW_MIN ? PERF_ATTR_FETCH : PERF_ATTR_OP;
}

static void set_ip(struct trace_sample *s, const struct perf_attr *a, const struct perf_record *rec,
		   bool op)
{
	unsigned int mode = cpu_mode(rec);

	s->ip = 0;
	if (a->ip) {
		s->ip = perf_get64(rec->data + a->ip);
		s->has_ip = s->ip || mode != PERF_RECORD_MISC_CPUMODE_UNKNOWN;
	} else if (op) {
		s->has_ip = ibs_op_field(&s->op, IBS_OP_FIELD_RIP, &s->ip);
	} else {
		s->has_ip = ibs_fetch_field(&s->fetch, IBS_FETCH_FIELD_LIN_AD, &s->ip);
	}
	if (mode == PERF_RECORD_MISC_CPUMODE_UNKNOWN)
		s->kernel = s->has_ip && s->ip >> 63;
	else
		s->kernel =
			mode == PERF_RECORD_MISC_KERNEL || mode == PERF_RECORD_MISC_GUEST_KERNEL;
}

static void set_stack(struct perf_convert *c, struct trace_sample *s,
		      const struct perf_sample_body *body)
{
	s->n_stack = body->n_stack < TRACE_STACK_MAX ? body->n_stack : TRACE_STACK_MAX;
	s->stack = s->n_stack ? c->stack : NULL;
	s->chain_lost = false;
	s->top = NULL;
	s->copy = NULL;
	if (s->n_stack)
		memcpy(c->stack, body->stack, s->n_stack * sizeof(c->stack[0]));
}

static enum perf_converted sample(struct perf_convert *c, const struct perf_attr *a,
				  const struct perf_record *rec, struct trace_event *ev)
{
	struct trace_sample *s = &ev->sample;
	struct perf_sample_body body;
	bool op = a->kind == PERF_ATTR_OP;

	if (!perf_sample_body(a, rec, &body) || !body.raw)
		return PERF_DAMAGED;
	if (op ? ibs_op_parse_raw(body.raw, body.raw_bytes, c->quirks, &s->op)
	       : ibs_fetch_parse_raw(body.raw, body.raw_bytes, c->quirks, &s->fetch))
		return PERF_DAMAGED;
	if (op && s->op.cpu.caps & PERF_RAW_NO_CTL) {
		s->op.cpu.caps &= ~PERF_RAW_NO_CTL;
		s->op.present &= ~(1u << IBS_OP_CTL);
		s->op.reg[IBS_OP_CTL] = 0;
	}
	ev->kind = op ? TRACE_SAMPLE_OP : TRACE_SAMPLE_FETCH;
	s->pmu = a->pmu;
	s->tgid = a->task ? perf_get32(rec->data + a->task) : 0;
	s->tid = a->task ? perf_get32(rec->data + a->task + 4) : 0;
	/* -1: the task has exited */
	s->has_task = a->task && s->tid != ~0U;
	s->cpu = a->cpu ? perf_get32(rec->data + a->cpu) : 0;
	s->has_cpu = a->cpu;
	s->has_time = a->time;
	s->cgroup_id = body.cgroup;
	s->slab = 0;
	set_ip(s, a, rec, op);
	set_stack(c, s, &body);
	return PERF_CONVERTED;
}

static enum perf_converted map(struct perf_convert *c, const struct perf_attr *a,
			       const struct perf_record *rec, struct trace_event *ev)
{
	const unsigned char *p = rec->data + HEADER;
	struct trace_mmap *m = &ev->mmap;
	unsigned int mode = cpu_mode(rec);

	/* of a guest, at addresses that samples of the host do not have */
	if (mode == PERF_RECORD_MISC_GUEST_KERNEL || mode == PERF_RECORD_MISC_GUEST_USER)
		return PERF_NOT_OURS;
	*m = (struct trace_mmap){
		.tgid = perf_get32(p),
		.tid = perf_get32(p + 4),
		.kernel = mode == PERF_RECORD_MISC_KERNEL,
		.exec = !(rec->misc & PERF_RECORD_MISC_MMAP_DATA),
		.start = perf_get64(p + 8),
		.len = perf_get64(p + 16),
		.pgoff = perf_get64(p + 24),
		.path = text(a, rec, fixed_bytes[rec->type]),
	};
	if (!m->path)
		return PERF_DAMAGED;
	ev->kind = TRACE_MMAP;
	if (rec->type == PERF_RECORD_MMAP2 && (rec->misc & PERF_RECORD_MISC_MMAP_BUILD_ID)) {
		if (p[32] > sizeof(m->build_id))
			return PERF_DAMAGED;
		m->build_id_len = p[32];
		memcpy(m->build_id, p + 36, m->build_id_len);
	}
	if (!m->build_id_len)
		m->build_id_len = perf_build_ids_find(c->build_ids, m->path, m->build_id);
	return PERF_CONVERTED;
}

static enum perf_converted comm(const struct perf_attr *a, const struct perf_record *rec,
				struct trace_event *ev)
{
	ev->kind = TRACE_COMM;
	ev->comm.tgid = perf_get32(rec->data + HEADER);
	ev->comm.tid = perf_get32(rec->data + HEADER + 4);
	ev->comm.exec = rec->misc & PERF_RECORD_MISC_COMM_EXEC;
	ev->comm.name = text(a, rec, HEADER + 8);
	return ev->comm.name ? PERF_CONVERTED : PERF_DAMAGED;
}

static void task(const struct perf_record *rec, struct trace_event *ev)
{
	const unsigned char *p = rec->data + HEADER;

	ev->kind = rec->type == PERF_RECORD_FORK ? TRACE_FORK : TRACE_EXIT;
	ev->fork.tgid = perf_get32(p);
	ev->fork.parent_tgid = perf_get32(p + 4);
	ev->fork.tid = perf_get32(p + 8);
	ev->fork.parent_tid = perf_get32(p + 12);
	if (!ev->time)
		ev->time = perf_get64(p + 16);
}

/*
 * LOST counts records that did not fit into a buffer, of all events that share it. From Linux 6.0 on the
 * kernel also counts the samples of each event, and perf adds one LOST_SAMPLES for each at the end.
 */
static enum perf_converted lost(const struct perf_convert *c, const struct perf_attr *a,
				const struct perf_record *rec, struct trace_event *ev)
{
	const unsigned char *p = rec->data + HEADER;

	ev->kind = TRACE_LOST;
	ev->lost.samples = rec->type == PERF_RECORD_LOST_SAMPLES;
	ev->lost.n = perf_get64(ev->lost.samples ? p : p + 8);
	/* records that perf synthesized have no time and no CPU */
	ev->lost.cpu =
		a->end_cpu && ev->time ? perf_get32(rec->data + rec->size - a->end_cpu) : ~0U;
	if (!ev->lost.n)
		return PERF_NOT_OURS;
	if (!ev->lost.samples)
		return c->lost_by_event ? PERF_NOT_OURS : PERF_CONVERTED;
	if (a->pmu < 0 || (rec->misc & PERF_MISC_LOST_SAMPLES_BPF))
		return PERF_NOT_OURS;
	return PERF_CONVERTED;
}

static enum perf_converted cgroup(const struct perf_attr *a, const struct perf_record *rec,
				  struct trace_event *ev)
{
	ev->kind = TRACE_CGROUP;
	ev->cgroup.id = perf_get64(rec->data + HEADER);
	ev->cgroup.path = text(a, rec, HEADER + 8);
	/* perf does not know names of containers */
	ev->cgroup.container = ev->cgroup.pod = ev->cgroup.ns = NULL;
	return ev->cgroup.path ? PERF_CONVERTED : PERF_DAMAGED;
}

enum perf_converted perf_convert(struct perf_convert *c, const struct perf_attr *a,
				 const struct perf_record *rec, __u64 time, struct trace_event *ev)
{
	ev->time = time;
	ev->offset = rec->offset;
	if (rec->type == PERF_RECORD_SAMPLE)
		return sample(c, a, rec, ev);
	if (rec->size < fixed_bytes[rec->type] + a->trailer)
		return PERF_DAMAGED;
	switch (rec->type) {
	case PERF_RECORD_MMAP:
	case PERF_RECORD_MMAP2:
		return map(c, a, rec, ev);
	case PERF_RECORD_COMM:
		return comm(a, rec, ev);
	case PERF_RECORD_FORK:
	case PERF_RECORD_EXIT:
		task(rec, ev);
		return PERF_CONVERTED;
	case PERF_RECORD_LOST:
	case PERF_RECORD_LOST_SAMPLES:
		return lost(c, a, rec, ev);
	default:
		return cgroup(a, rec, ev);
	}
}
