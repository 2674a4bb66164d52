// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* trace_cat FILE [end]: every event of a recording, or only its end, as a JSON object a line, for the tests of record. */
#include "trace/trace.h"

#include <stdio.h>
#include <string.h>

typedef unsigned long long ull;

static void put_string(const char *name, const char *text)
{
	printf(",\"%s\":\"", name);
	for (; *text; text++)
		if (*text == '"' || *text == '\\' || (unsigned char)*text < 32 || *text & 0x80)
			putchar('?');
		else
			putchar(*text);
	putchar('"');
}

static void put_sample(const struct trace_sample *s)
{
	printf("\"kind\":\"sample\",\"cpu\":%u,\"tgid\":%u,\"tid\":%u,\"cgroup\":%llu,"
	       "\"caps\":%u,\"present\":%u,\"regs\":[",
	       s->cpu, s->tgid, s->tid, (ull)s->cgroup_id, s->op.cpu.caps, s->op.present);
	for (int r = 0; r < IBS_OP_REG_N; r++)
		printf("%s%llu", r ? "," : "", (ull)s->op.reg[r]);
	putchar(']');
	printf(",\"slab\":%llu,\"stack\":[", (ull)s->slab);
	for (unsigned int i = 0; i < s->n_stack; i++)
		printf("%s%llu", i ? "," : "", (ull)s->stack[i]);
	putchar(']');
}

static void put_fetch(const struct trace_sample *s)
{
	printf("\"kind\":\"fetch\",\"cpu\":%u,\"tgid\":%u,\"tid\":%u,\"cgroup\":%llu,"
	       "\"caps\":%u,\"present\":%u,\"stack\":%u,\"regs\":[%llu,%llu,%llu,%llu]",
	       s->cpu, s->tgid, s->tid, (ull)s->cgroup_id, s->fetch.cpu.caps, s->fetch.present,
	       s->n_stack, (ull)s->fetch.reg[0], (ull)s->fetch.reg[1], (ull)s->fetch.reg[2],
	       (ull)s->fetch.reg[3]);
}

static void put_event(const struct trace_event *ev)
{
	printf("{\"time\":%llu,", (ull)ev->time);
	switch (ev->kind) {
	case TRACE_SAMPLE_OP:
		put_sample(&ev->sample);
		break;
	case TRACE_SAMPLE_FETCH:
		put_fetch(&ev->sample);
		break;
	case TRACE_COMM:
		printf("\"kind\":\"comm\",\"tgid\":%u,\"tid\":%u,\"exec\":%d", ev->comm.tgid,
		       ev->comm.tid, ev->comm.exec);
		put_string("name", ev->comm.name);
		break;
	case TRACE_MMAP:
		printf("\"kind\":\"mmap\",\"tgid\":%u,\"kernel\":%d,\"exec\":%d,\"start\":%llu,"
		       "\"len\":%llu,\"build_id\":%u",
		       ev->mmap.tgid, ev->mmap.kernel, ev->mmap.exec, (ull)ev->mmap.start,
		       (ull)ev->mmap.len, ev->mmap.build_id_len);
		put_string("path", ev->mmap.path);
		break;
	case TRACE_FORK:
	case TRACE_EXIT:
		printf("\"kind\":\"%s\",\"tgid\":%u,\"tid\":%u,\"parent\":%u",
		       ev->kind == TRACE_FORK ? "fork" : "exit", ev->fork.tgid, ev->fork.tid,
		       ev->fork.parent_tgid);
		break;
	case TRACE_CGROUP:
		printf("\"kind\":\"cgroup\",\"id\":%llu", (ull)ev->cgroup.id);
		put_string("path", ev->cgroup.path);
		break;
	case TRACE_RANK:
		printf("\"kind\":\"rank\",\"tgid\":%u,\"rank\":%u,\"ended\":%d,\"status\":%d",
		       ev->rank.tgid, ev->rank.rank, ev->rank.ended, ev->rank.status);
		break;
	case TRACE_REGION:
		printf("\"kind\":\"region\",\"tid\":%u,\"omp\":%d,\"end\":%d,\"number\":%u,"
		       "\"addr\":%llu",
		       ev->region.tid, ev->region.omp, ev->region.end, ev->region.number,
		       (ull)ev->region.addr);
		put_string("name", ev->region.name);
		break;
	case TRACE_SLAB:
		printf("\"kind\":\"slab\",\"id\":%llu", (ull)ev->slab.id);
		put_string("name", ev->slab.name);
		break;
	case TRACE_ALLOC:
		printf("\"kind\":\"alloc\",\"tgid\":%u,\"tid\":%u,\"addr\":%llu,\"size\":%llu,"
		       "\"weight\":%llu,\"mapped\":%d,\"stack\":[",
		       ev->alloc.tgid, ev->alloc.tid, (ull)ev->alloc.addr, (ull)ev->alloc.size,
		       (ull)ev->alloc.weight, ev->alloc.mapped);
		for (unsigned int i = 0; i < ev->alloc.n_stack; i++)
			printf("%s%llu", i ? "," : "", (ull)ev->alloc.stack[i]);
		printf("]");
		break;
	case TRACE_FREE:
		printf("\"kind\":\"free\",\"tgid\":%u,\"tid\":%u,\"addr\":%llu,\"size\":%llu",
		       ev->free.tgid, ev->free.tid, (ull)ev->free.addr, (ull)ev->free.size);
		break;
	default:
		printf("\"kind\":\"other\"");
	}
	printf("}\n");
}

static void put_end(const struct trace_end *e)
{
	printf("{\"kind\":\"end\",\"whole\":%d,\"has_ledger\":%d,\"seen\":%llu,\"forwarded\":%llu,"
	       "\"ring_full\":%llu,\"residual\":%lld",
	       e->whole, e->has_ledger, (ull)e->ledger.seen,
	       (ull)e->ledger.outcome[IBS_OUTCOME_FORWARDED],
	       (ull)e->ledger.outcome[IBS_OUTCOME_LOST_RING_FULL], ledger_residual(&e->ledger));
	put_string("missing", e->missing);
	printf(",\"events\":[");
	for (unsigned int i = 0; i < e->n_ledgers; i++) {
		const struct ledger *l = &e->event_ledger[i];

		printf("%s{\"seen\":%llu,\"forwarded\":%llu,\"ring_full\":%llu}", i ? "," : "",
		       (ull)l->seen, (ull)l->outcome[IBS_OUTCOME_FORWARDED],
		       (ull)l->outcome[IBS_OUTCOME_LOST_RING_FULL]);
	}
	printf("]}\n");
}

int main(int argc, char **argv)
{
	const struct trace_info *info;
	struct err err = { "" };
	struct trace_event ev;
	struct trace *t;
	int ret;

	bool all = argc == 2;

	if (argc < 2)
		return 2;
	if (trace_open(argv[1], &t, &err)) {
		log_error("%s", err.text);
		return 1;
	}
	info = trace_info(t);
	printf("{\"kind\":\"info\",\"simulated\":%d,\"period\":%llu,\"raw\":%d,\"cpus\":%u,"
	       "\"ranks\":%u",
	       info->simulated, (ull)info->pmu[0].period, info->full_registers, info->n_cpus,
	       info->job_ranks);
	put_string("job", info->job);
	put_string("event", info->pmu[0].name);
	put_string("command", info->command);
	put_string("filter", info->filter);
	put_string("source", info->source);
	printf("}\n");
	while ((ret = trace_next(t, &ev, &err)) > 0)
		if (all)
			put_event(&ev);
	if (ret)
		log_error("%s", err.text);
	else
		put_end(trace_end(t));
	trace_close(t);
	return ret != 0;
}
