// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "l3_latency.h"

#include "base/err.h"
#include "base/num.h"
#include "event/event.h"

#include <errno.h>

#define NAME "amd_l3"

/*
 * L3PMCx0AC and L3PMCx0AD, with slice 3, all slices, all cores and both threads, as amdzen5 and amdzen6 of perf's
 * pmu-events have them. amdzen4 leaves them out: then the driver counts all slices, cores and threads.
 */
static const struct term {
	const char *name;
	uint64_t value;
} terms[] = {
	{ "event", 0 },	     { "umask", 0 },	 { "enallslices", 1 },
	{ "enallcores", 1 }, { "sliceid", 0x3 }, { "threadmask", 0x3 },
};
static const uint8_t unit_masks[] = {
#define L3_SOURCE_MASK(NAME, mask, ...) mask,
	L3_SOURCE_TABLE(L3_SOURCE_MASK)
#undef L3_SOURCE_MASK
};
#define EVENT_SUM      0xac
#define EVENT_REQUESTS 0xad

static int make(const struct pmu *pmu, uint64_t event, uint64_t mask, struct perf_event_attr *attr,
		struct err *e)
{
	*attr = (struct perf_event_attr){
		.size = sizeof(*attr),
		.type = pmu->type,
		.read_format = PERF_FORMAT_TOTAL_TIME_ENABLED | PERF_FORMAT_TOTAL_TIME_RUNNING,
	};
	for (size_t i = 0; i < ARRAY_SIZE(terms); i++) {
		const struct pmu_format *f = pmu_format(pmu, terms[i].name);
		uint64_t config = attr->config;
		uint64_t value = i == 0 ? event : i == 1 ? mask : terms[i].value;

		if (!f || f->word != PMU_CONFIG || pmu_format_put(f, value, &config))
			return err_set(e, -ENODEV, "the " NAME " PMU has no usable term '%s'",
				       terms[i].name);
		attr->config = config;
	}
	return 0;
}

int l3_latency_describe(const char *root, const struct cpu_info *cpu, struct l3_latency *out,
			struct err *e)
{
	char text[4096];
	struct pmu *pmu;
	int ret;

	if (!cpu->amd || !(cpu->caps & IBS_CAPS_ZEN4))
		return err_set(e, -EOPNOTSUPP,
			       "the L3 of processors before Zen 4 samples no latencies");
	ret = pmu_open(root, NAME, cpu, &pmu, e);
	if (ret == -ENODEV || ret == -ENOENT)
		return err_set(e, ret,
			       "the kernel has no " NAME " PMU (module amd_uncore, and not in "
			       "virtual machines)");
	if (ret)
		return ret;
	for (int i = 0; !ret && i < L3_SOURCE_N; i++)
		ret = make(pmu, EVENT_SUM, unit_masks[i], &out->of[i].sum, e)
			      ?: make(pmu, EVENT_REQUESTS, unit_masks[i], &out->of[i].requests, e);
	pmu_close(pmu);
	ret = ret
		      ?: num_read_line(root, "/sys/bus/event_source/devices/" NAME "/cpumask", text,
				       sizeof(text), e);
	return ret ?: cpulist_parse(NAME "/cpumask", text, &out->cpus, e);
}
