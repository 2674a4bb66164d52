// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "doctor_private.h"

#include "event/event.h"

/* --- checks: hardware --- */

static void check_cpu(struct doctor *d, struct doctor_result *r)
{
	const struct cpu_info *c = &d->cpu;

	doctor_value(r, c->amd ? DOCTOR_OK : DOCTOR_NO, "%s, family %xh model %xh stepping %u",
		     *c->name	  ? c->name
		     : *c->vendor ? c->vendor
				  : "unknown",
		     c->family, c->model, c->stepping);
	if (c->amd)
		doctor_more(r, " (%s)", cpu_generation(c));
	else
		doctor_why(r, "only AMD (family 10h and later) and Hygon processors have IBS");
}

static void check_ibs_cpuid(struct doctor *d, struct doctor_result *r)
{
	const char *cause, *fix;

	if (d->cpu.ibs) {
		doctor_value(r, DOCTOR_OK, "yes");
		return;
	}
	doctor_value(r, DOCTOR_NO, "no");
	pmu_why_missing(&d->cpu, &cause, &fix);
	doctor_why(r, "%s", cause);
	doctor_remedy(r, "%s", fix);
}

static void check_hypervisor(struct doctor *d, struct doctor_result *r)
{
	const struct cpu_info *c = &d->cpu;

	if (!c->hypervisor) {
		doctor_value(r, DOCTOR_OK, "no");
	} else if (c->ibs || !c->amd) {
		doctor_value(r, DOCTOR_INFO, "%s%s", c->hypervisor_name,
			     c->ibs ? ", exposes IBS to its guest" : "");
		if (c->ibs)
			doctor_why(r, "a guest may read every physical address as 0: see "
				      "'physical addresses' below");
	} else {
		doctor_value(r, DOCTOR_WARN, "%s", c->hypervisor_name);
		doctor_why(r, "it does not expose IBS to its guest");
	}
}

static void check_ibs_caps(struct doctor *d, struct doctor_result *r)
{
	__u32 caps = d->cpu.caps, known = 0;
	const char *sep = "; lacks ";

	if (!d->cpu.ibs) {
		doctor_value(r, DOCTOR_INFO, "none");
		return;
	}
	doctor_value(r, DOCTOR_OK, "0x%08x:", caps);
#define HAVE(bit, name, meaning, gen) \
	known |= IBS_CAPS_##name;     \
	if (caps & IBS_CAPS_##name)   \
		doctor_more(r, " %s", #name);
	IBS_CAPS_TABLE(HAVE)
#undef HAVE
#define LACK(bit, name, meaning, gen)                                      \
	if (!(caps & IBS_CAPS_##name)) {                                   \
		doctor_more(r, "%s%s (%s, %s)", sep, #name, meaning, gen); \
		sep = ", ";                                                \
	}
	IBS_CAPS_TABLE(LACK)
#undef LACK
	if (caps & ~known)
		doctor_more(r, "; unknown: 0x%x", caps & ~known);
}

static void check_quirks(struct doctor *d, struct doctor_result *r)
{
	const char *sep = "";

	doctor_value(r, d->cpu.quirks ? DOCTOR_INFO : DOCTOR_OK, "%s", d->cpu.quirks ? "" : "none");
#define QUIRK(name, erratum, f0, m0, f1, m1, effect, who)                   \
	if (d->cpu.quirks & IBS_QUIRK_##name) {                             \
		doctor_more(r, "%s%s: %s (%s)", sep, erratum, effect, who); \
		sep = "; ";                                                 \
	}
	IBS_QUIRK_TABLE(QUIRK)
#undef QUIRK
}

/* --- checks: PMU --- */

static void show_pmu(const struct pmu *pmu, struct doctor_result *r)
{
	size_t i;

	doctor_value(r, DOCTOR_OK, "type %u; terms", pmu->type);
	for (i = 0; i < pmu->n_formats; i++)
		doctor_more(r, " %s", pmu->formats[i].name);
	if (!pmu->n_formats)
		doctor_more(r, " none");
	doctor_more(r, "; caps");
	for (i = 0; i < pmu->n_caps; i++)
		doctor_more(r, " %s", pmu->caps[i]);
	if (!pmu->n_caps)
		doctor_more(r, " none");
}

static void check_pmu(const struct doctor *d, struct doctor_result *r, const struct pmu *pmu,
		      const struct err *e, enum doctor_status missing)
{
	const char *cause, *fix, *dir = "/sys/bus/event_source/devices/";

	if (pmu) {
		show_pmu(pmu, r);
		return;
	}
	doctor_value(r, missing, "no");
	if (strncmp(e->text, "no ", 3)) { /* present but unreadable */
		doctor_why(r, "%s", e->text);
		doctor_remedy(r,
			      "make %s%s readable; if it is already, report this with its contents",
			      dir, r->title);
		return;
	}
	pmu_why_missing(&d->cpu, &cause, &fix);
	doctor_why(r, "%s", d->cpu.ibs ? cause : "the processor has no IBS (see above)");
	doctor_remedy(r, "%s", fix);
}

static void check_pmu_op(struct doctor *d, struct doctor_result *r)
{
	check_pmu(d, r, d->op, &d->op_err, DOCTOR_NO);
}

static void check_pmu_fetch(struct doctor *d, struct doctor_result *r)
{
	check_pmu(d, r, d->fetch, &d->fetch_err, d->op ? DOCTOR_WARN : DOCTOR_NO);
}

/* Hardware filters: those that the kernel supports, and those that it leaves unused. */
static void check_filters(struct doctor *d, struct doctor_result *r)
{
	const char *sep = "", *unused_sep = "", *last = "";
	char unused[256] = "";

	if (!d->op && !d->fetch) {
		doctor_value(r, DOCTOR_INFO, "none");
		return;
	}
	doctor_value(r, DOCTOR_OK, "%s", "");
	for (const struct event_rule *rule = event_rules; rule->pmu; rule++) {
		const struct pmu *pmu = !strcmp(rule->pmu, "ibs_op") ? d->op : d->fetch;
		size_t n = strlen(unused);

		if (!pmu || (rule->caps && !(d->cpu.caps & rule->caps)))
			continue;
		if (pmu_format(pmu, rule->term)) {
			if (strcmp(last, rule->pmu))
				doctor_more(r, "%s%s:", sep, rule->pmu);
			doctor_more(r, " %s", rule->term);
			last = rule->pmu;
			sep = "; ";
		} else if (rule->caps) {
			snprintf(unused + n, sizeof(unused) - n, "%s%s of %s (Linux %s)",
				 unused_sep, rule->term, rule->pmu, rule->since);
			unused_sep = ", ";
		}
	}
	if (!*r->value)
		doctor_more(r, "none");
	if (*unused) {
		r->status = DOCTOR_WARN;
		doctor_why(r, "supported by the processor but not by this kernel's driver: %s",
			   unused);
	}
}

/* clang-format off */
const struct doctor_check doctor_hw_checks[] = {
	{ "cpu", "Hardware", "processor", check_cpu,
	  "run on an AMD machine; --source sim demonstrates ibscope with simulated samples" },
	{ "ibs_cpuid", "Hardware", "IBS in CPUID", check_ibs_cpuid,
	  "enable IBS in the BIOS setup" },
	{ "hypervisor", "Hardware", "virtual machine", check_hypervisor,
	  "run on the host or on a bare-metal instance" },
	{ "ibs_caps", "Hardware", "IBS capabilities", check_ibs_caps, "" },
	{ "quirks", "Hardware", "errata in force", check_quirks, "" },

	{ "pmu_ibs_op", "PMU", "ibs_op", check_pmu_op, "" },
	{ "pmu_ibs_fetch", "PMU", "ibs_fetch", check_pmu_fetch, "" },
	{ "hw_filters", "PMU", "terms that work", check_filters,
	  "use a newer kernel; until then --min-lat, --src, --user and --kernel filter in BPF" },
	{ 0 },
};
/* clang-format on */
