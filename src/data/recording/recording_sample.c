// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* A record of the program as an event of a trace. */
#include "recording.h"

#include "trace/trace.h"

/* Fill in the members that both kinds of record share, from the registers. */
static void set_common(struct trace_event *ev, __u32 tgid, __u32 tid, __u32 cpu, __u64 cgroup_id)
{
	struct trace_sample *s = &ev->sample;

	s->tgid = tgid;
	s->tid = tid;
	s->cpu = cpu;
	s->has_task = s->has_cpu = true;
	s->cgroup_id = cgroup_id;
	if (ev->kind == TRACE_SAMPLE_FETCH) {
		s->ip = s->fetch.reg[IBS_FETCH_LINADDR];
		s->has_ip = s->ip; /* erratum 1197 */
	} else {
		s->ip = s->op.reg[IBS_OP_RIP];
		s->has_ip = ibs_op_valid_rip(&s->op);
	}
	s->kernel = s->has_ip && (__s64)s->ip < 0;
}

void recording_sample(const struct ibs_record *rec, struct ibs_cpu cpu, struct trace_event *out)
{
	struct trace_sample *s = &out->sample;

	*out = (struct trace_event){ .kind = TRACE_SAMPLE_OP, .time = rec->time };
	if (ibs_record_is_fetch(rec)) {
		out->kind = TRACE_SAMPLE_FETCH;
		s->fetch.cpu = cpu;
		s->fetch.nregs = cpu.caps & IBS_CAPS_FETCHCTLEXTD ? (int)IBS_FETCH_REG_N
								  : (int)IBS_FETCH_REG_FIXED;
		s->fetch.present = (1u << s->fetch.nregs) - 1;
		ibs_record_fetch_regs(rec, s->fetch.reg);
	} else {
		s->op.cpu = cpu;
		s->op.nregs = IBS_OP_REG_FIXED;
		s->op.present = ((1u << IBS_OP_REG_FIXED) - 1) & ~(1u << IBS_OP_CTL);
		ibs_record_regs(rec, s->op.reg);
	}
	set_common(out, rec->tgid, rec->tid, ibs_record_cpu(rec), rec->cgroup_id);
}

int recording_sample_raw(const struct ibs_record_raw *rec, __u32 quirks, struct trace_event *out)
{
	struct trace_sample *s = &out->sample;
	int ret;

	*out = (struct trace_event){ .kind = rec->fetch ? TRACE_SAMPLE_FETCH : TRACE_SAMPLE_OP,
				     .time = rec->time };
	ret = rec->fetch ? ibs_fetch_parse_raw(&rec->caps, rec->bytes, quirks, &s->fetch)
			 : ibs_op_parse_raw(&rec->caps, rec->bytes, quirks, &s->op);
	set_common(out, rec->tgid, rec->tid, rec->cpu, rec->cgroup_id);
	if (ret)
		s->ip = s->has_ip = s->kernel = 0;
	return ret;
}
