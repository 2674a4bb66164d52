// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "cpu.h"

static const struct {
	__u32 event, umask, caps;
	const char *meaning;
} events[] = {
#define CORE_EVENT_ROW(NAME, event, umask, caps, meaning) { event, umask, caps, meaning },
	CORE_EVENT_TABLE(CORE_EVENT_ROW)
#undef CORE_EVENT_ROW
};

bool core_event_known(const struct cpu_info *cpu, enum core_event e)
{
	return cpu->amd && cpu->family >= 0x17 && (cpu->caps & events[e].caps) == events[e].caps;
}

const char *core_event_meaning(enum core_event e)
{
	return events[e].meaning;
}

struct perf_event_attr core_event_attr(enum core_event e)
{
	const __u64 code = events[e].event;

	return (struct perf_event_attr){
		.size = sizeof(struct perf_event_attr),
		.type = PERF_TYPE_RAW,
		.config = (code & 0xff) | (code >> 8) << 32 | events[e].umask << 8,
		.read_format = PERF_FORMAT_TOTAL_TIME_ENABLED | PERF_FORMAT_TOTAL_TIME_RUNNING,
		.disabled = 1,
	};
}
