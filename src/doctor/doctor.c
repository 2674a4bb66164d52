// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "doctor.h"
#include "doctor_check.h"

#include <bpf/libbpf.h>
#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "base/num.h"

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

#define N_TABLES (sizeof(tables) / sizeof(tables[0]))

static size_t count_checks(void)
{
	const struct doctor_check *c;
	size_t i, n = 0;

	for (i = 0; i < N_TABLES; i++) {
		for (c = tables[i]; c->id; c++)
			n++;
	}
	return n;
}

static void run_check(struct doctor *d, const struct doctor_check *c)
{
	struct doctor_result *r = &d->results[d->n++];

	r->id = c->id;
	r->group = c->group;
	r->title = c->title;
	c->fn(d, r);
	if (r->status < DOCTOR_WARN)
		*r->remedy = 0;
	else if (!*r->remedy)
		doctor_remedy(r, "%s", c->remedy);
}

static void run_checks(struct doctor *d)
{
	const struct doctor_check *c;
	size_t i;

	for (i = 0; i < N_TABLES; i++) {
		for (c = tables[i]; c->id; c++)
			run_check(d, c);
	}
}

int doctor_run(const struct doctor_opts *opts, struct doctor **out, struct err *e)
{
	libbpf_print_fn_t old;
	struct doctor *d;

	d = calloc(1, sizeof(*d));
	if (d)
		d->results = calloc(count_checks(), sizeof(*d->results));
	if (!d || !d->results) {
		doctor_free(d);
		return err_set(e, -ENOMEM, "doctor: out of memory");
	}
	d->root = opts && opts->root ? opts->root : "";
	d->probed = !opts || !opts->no_probes;
	if (opts && opts->cpu)
		d->cpu = *opts->cpu;
	else
		cpu_info_read(&d->cpu);
	pmu_open(d->root, "ibs_op", &d->cpu, &d->op, &d->op_err);
	pmu_open(d->root, "ibs_fetch", &d->cpu, &d->fetch, &d->fetch_err);
	old = libbpf_set_print(NULL); /* failed probes are results, not messages */
	read_cap_eff(d);
	if (num_read(d->root, PARANOID, &d->paranoid, NULL))
		d->paranoid = -2;
	d->btf = !kernel_features_btf(d->root, &d->btf_direct, &d->btf_err);
	if (d->probed)
		doctor_probe(&d->p, d->op, &d->cpu);
	libbpf_set_print(old);
	run_checks(d);
	*out = d;
	return 0;
}

void doctor_free(struct doctor *d)
{
	if (!d)
		return;
	pmu_close(d->op);
	pmu_close(d->fetch);
	free(d->results);
	free(d);
}

size_t doctor_n(const struct doctor *d)
{
	return d->n;
}

const struct doctor_result *doctor_at(const struct doctor *d, size_t i)
{
	return &d->results[i];
}

const struct doctor_result *doctor_find(const struct doctor *d, const char *id)
{
	size_t i;

	for (i = 0; i < d->n; i++) {
		if (!strcmp(d->results[i].id, id))
			return &d->results[i];
	}
	return NULL;
}

const char *doctor_status_name(enum doctor_status status)
{
	static const char *const names[] = {
		[DOCTOR_OK] = "ok",
		[DOCTOR_INFO] = "info",
		[DOCTOR_WARN] = "warn",
		[DOCTOR_NO] = "no",
	};

	return names[status];
}

/* What the real program needs beyond an event: kernel types, and a way to read kernel memory. */
static bool can_run(const struct doctor *d)
{
	const struct doctor_result *lockdown = doctor_find(d, "lockdown");

	return d->probed && d->btf && !d->p.prog && lockdown && lockdown->status != DOCTOR_NO;
}

bool doctor_can_sample(const struct doctor *d)
{
	return can_run(d) && d->op && !d->p.open && !d->p.attach;
}

bool doctor_can_simulate(const struct doctor *d)
{
	return can_run(d) && !d->p.sim;
}
