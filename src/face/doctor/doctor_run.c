// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "doctor.h"
#include "doctor_private.h"
#include "base/num.h"

#include <bpf/libbpf.h>
#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stdarg.h>
#include <stdlib.h>

static void read_cap_eff(struct doctor *d)
{
	char path[PATH_MAX], line[256];
	FILE *f;

	if (snprintf(path, sizeof(path), "%s/proc/self/status", d->root) >= (int)sizeof(path))
		return;
	f = fopen(path, "re");
	if (!f)
		return;
	while (fgets(line, sizeof(line), f)) {
		if (sscanf(line, "CapEff: %" SCNx64, &d->cap_eff) == 1)
			break;
	}
	fclose(f);
}

/* In the order of the report. */
static const struct doctor_check *const tables[] = {
	doctor_hw_checks,
	doctor_kernel_checks,
	doctor_tried_checks,
};

#define TABLES (sizeof(tables) / sizeof(tables[0]))

bool doctor_not_tried(const struct doctor *d, struct doctor_result *r)
{
	if (!d->probed)
		doctor_value(r, DOCTOR_INFO, "not tried");
	return !d->probed;
}

bool doctor_has_cap(const struct doctor *d, int cap)
{
	return d->cap_eff >> cap & 1;
}

bool doctor_patched_paranoid(const struct doctor *d)
{
	return d->paranoid > 2;
}

bool doctor_perfmon(const struct doctor *d)
{
	return doctor_has_cap(d, CAP_PERFMON) || doctor_has_cap(d, CAP_SYS_ADMIN);
}

bool doctor_may_load(const struct doctor *d)
{
	return (doctor_has_cap(d, CAP_BPF) || doctor_has_cap(d, CAP_SYS_ADMIN)) &&
	       doctor_perfmon(d);
}

bool doctor_can_raise_memlock(const struct doctor *d)
{
	return d->p.memlock.rlim_max == RLIM_INFINITY || doctor_has_cap(d, CAP_SYS_RESOURCE);
}

/* Texts from files and CPUID reach terminals and JSON. */
void doctor_put(char *buf, size_t size, const char *fmt, ...)
{
	va_list ap;
	char *s;

	va_start(ap, fmt);
	vsnprintf(buf, size, fmt, ap);
	va_end(ap);
	for (s = buf; *s; s++)
		if (*s < ' ' || *s > '~')
			*s = '?';
	while (s > buf && s[-1] == ' ')
		*--s = 0;
}

static void run_check(struct doctor *d, const struct doctor_check *c, struct doctor_result *r)
{
	r->id = c->id;
	r->group = c->group;
	r->title = c->title;
	c->fn(d, r);
	if (r->status < DOCTOR_WARN)
		*r->remedy = 0;
	else if (!*r->remedy)
		doctor_remedy(r, "%s", c->remedy);
}

const struct doctor_result *doctor_find(const struct doctor_report *d, const char *id)
{
	for (size_t i = 0; i < d->n; i++)
		if (!strcmp(d->result[i].id, id))
			return &d->result[i];
	return NULL;
}

/* What the real program needs beyond an event: kernel types, and a way to read kernel memory. */
static bool can_run(const struct doctor *d, const struct doctor_report *r)
{
	return d->probed && d->btf && !d->p.prog && doctor_find(r, "lockdown")->status != DOCTOR_NO;
}

struct doctor_report *doctor_run(const struct doctor_opts *opts)
{
	static const struct doctor_opts defaults;
	struct doctor_report *r;
	struct doctor d = {};
	libbpf_print_fn_t old;
	size_t n = 0;

	opts = opts ?: &defaults;
	for (size_t i = 0; i < TABLES; i++)
		for (const struct doctor_check *c = tables[i]; c->id; c++)
			n++;
	r = xcalloc(1, sizeof(*r) + n * sizeof(r->result[0]));
	d.root = opts->root ?: "";
	d.probed = !opts->no_probes;
	if (opts->cpu)
		d.cpu = *opts->cpu;
	else
		cpu_info_read(&d.cpu);
	pmu_open(d.root, "ibs_op", &d.cpu, &d.op, &d.op_err);
	pmu_open(d.root, "ibs_fetch", &d.cpu, &d.fetch, &d.fetch_err);
	old = libbpf_set_print(NULL); /* failed probes are results, not messages */
	read_cap_eff(&d);
	if (num_read(d.root, PARANOID, &d.paranoid, NULL))
		d.paranoid = -2;
	d.btf = !kernel_features_btf(d.root, &d.btf_direct, &d.btf_err);
	if (d.probed)
		doctor_probe(&d.p, d.op, &d.cpu);
	libbpf_set_print(old);
	for (size_t i = 0; i < TABLES; i++)
		for (const struct doctor_check *c = tables[i]; c->id; c++)
			run_check(&d, c, &r->result[r->n++]);
	r->can_sample = can_run(&d, r) && d.op && !d.p.open && !d.p.attach;
	r->can_simulate = can_run(&d, r) && !d.p.sim;
	pmu_close(d.op);
	pmu_close(d.fetch);
	return r;
}
