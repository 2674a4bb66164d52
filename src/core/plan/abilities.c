// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "abilities.h"

#include "base/err.h"
#include "base/std.h"
#include "event/cpu.h"
#include "event/event.h"

#include <sys/utsname.h>
#include <unistd.h>

#define ERRATA_1606 (IBS_QUIRK_LDLAT_1606_A | IBS_QUIRK_LDLAT_1606_B)

/* Requirements; for terms, event_rules has them. Linux arch/x86/events/amd/ibs.c, 5.10 to 7.2. */
static const struct {
	const char *term;
	uint32_t caps, quirks; /* required, and excluded */
	const char *generation, *since;
} rows[ABILITY_N] = {
	[ABILITY_L3MISSONLY] = { .term = "l3missonly" },
	[ABILITY_LDLAT] = { .term = "ldlat" },
	[ABILITY_LDLAT_ALONE] = { .caps = IBS_CAPS_OPLDLAT,
				  .quirks = ERRATA_1606,
				  .generation = "a processor without erratum 1606 (Zen 6)",
				  .since = "7.2" },
	[ABILITY_ADDRESS_BIT] = { .caps = IBS_CAPS_BIT63_FILTER,
				  .generation = "Zen 6",
				  .since = "7.1" },
	[ABILITY_FETCHLAT] = { .term = "fetchlat" },
	[ABILITY_SWFILT] = { .term = "swfilt" },
	[ABILITY_CGROUP_EVENTS] = { .since = "6.2" },
	[ABILITY_TAG_COUNTERS] = { .generation = "Zen", .since = "5.10" },
	[ABILITY_FETCH_COUNTERS] = { .caps = IBS_CAPS_OPLDLAT,
				     .generation = "Zen 5",
				     .since = "5.10" },
};

/* CPUID Fn8000_001B EAX, from boot logs. */
static const struct {
	const char *name;
	uint32_t family, model, caps;
} generations[] = {
	{ "zen1", 0x17, 0x01, 0x3ff },	{ "zen2", 0x17, 0x31, 0x3ff },
	{ "zen3", 0x19, 0x01, 0x3ff },	{ "zen4", 0x19, 0x11, 0xbff },
	{ "zen5", 0x1a, 0x02, 0x1bff }, { "zen6", 0x1a, 0x50, 0x9fbff },
};

struct needs {
	uint32_t caps, quirks;
	const char *generation, *since;
};

static struct needs needs_of(enum ability which)
{
	struct needs n = { rows[which].caps, rows[which].quirks, rows[which].generation,
			   rows[which].since };

	for (const struct event_rule *r = event_rules; rows[which].term && r->pmu; r++)
		/* both events have the same requirements for terms of the same name */
		if (!strcmp(r->term, rows[which].term))
			n = (struct needs){ r->caps, 0, r->generation, r->since };
	return n;
}

/* "6.12.107-amd64" and "6.12"; 0: something else. */
static unsigned int version(const char *text)
{
	unsigned int major, minor;

	return sscanf(text, "%u.%u", &major, &minor) == 2 && minor < 1000 ? major * 1000 + minor
									  : 0;
}

static void fill(const struct cpu_info *cpu, const char *release, struct abilities *out)
{
	snprintf(out->name, sizeof(out->name), "%s, Linux %.60s",
		 cpu->ibs ? cpu_generation(cpu) : "no IBS", release);
	out->caps = cpu->ibs ? cpu->caps : 0;
	out->cpu = out->kernel = 0;
	for (int i = 0; i < ABILITY_N; i++) {
		const struct needs n = needs_of(i);

		if (cpu->ibs && (cpu->caps & n.caps) == n.caps && !(cpu->quirks & n.quirks))
			out->cpu |= 1U << i;
		if (version(release) >= version(n.since))
			out->kernel |= 1U << i;
	}
	if (!core_event_known(cpu, CORE_EVENT_RETIRED))
		out->cpu &= ~(1U << ABILITY_TAG_COUNTERS);
}

void abilities_of(const struct cpu_info *cpu, const struct pmu *pmu, struct abilities *out)
{
	struct utsname u = {};

	uname(&u);
	fill(cpu, u.release, out);
	/* virtual machines may not have it */
	if (access("/sys/bus/event_source/devices/cpu", F_OK))
		out->kernel &= ~(1U << ABILITY_TAG_COUNTERS | 1U << ABILITY_FETCH_COUNTERS);
	for (int i = 0; i < ABILITY_N; i++) {
		const uint32_t bit = 1U << i;

		if (pmu && rows[i].term)
			out->kernel =
				(out->kernel & ~bit) | (pmu_format(pmu, rows[i].term) ? bit : 0);
	}
}

int abilities_parse(const char *text, struct abilities *out, struct err *err)
{
	const size_t len = strcspn(text, ":");
	const char *kernel = text + len + !!text[len];
	struct cpu_info cpu;

	for (size_t i = 0; i < ARRAY_SIZE(generations); i++) {
		if (strlen(generations[i].name) != len || strncmp(generations[i].name, text, len) ||
		    kernel[strspn(kernel, "0123456789.")] || !version(kernel))
			continue;
		cpu_info_set(&cpu, "AuthenticAMD", generations[i].family, generations[i].model,
			     generations[i].caps);
		fill(&cpu, kernel, out);
		return 0;
	}
	return err_set(err, -EINVAL,
		       "unknown machine '%.40s': must be GENERATION:KERNEL with a generation "
		       "from zen1 to zen6, as in zen5:6.12",
		       text);
}

bool abilities_has(const struct abilities *a, enum ability which)
{
	return a->cpu & a->kernel & 1U << which;
}

void abilities_requires(const struct abilities *a, enum ability which, char *buf, size_t size)
{
	const struct needs n = needs_of(which);

	if (!(a->cpu & 1U << which))
		snprintf(buf, size, "%s", n.generation ?: "a processor with IBS");
	else
		snprintf(buf, size, "Linux %s", n.since);
}
