// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "doctor_private.h"

#include <bpf/libbpf.h>
#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <linux/capability.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "num.h"

/* --- results --- */

/* What comes from files and CPUID reaches terminals and JSON. */
static void put(char *buf, size_t size, const char *fmt, va_list ap)
{
	char *s;

	vsnprintf(buf, size, fmt, ap);
	for (s = buf; *s; s++) {
		if (*s < ' ' || *s > '~')
			*s = '?';
	}
	while (s > buf && s[-1] == ' ')
		*--s = 0;
}

void doctor_value(struct doctor_result *r, enum doctor_status status, const char *fmt, ...)
{
	va_list ap;

	r->status = status;
	va_start(ap, fmt);
	put(r->value, sizeof(r->value), fmt, ap);
	va_end(ap);
}

void doctor_why(struct doctor_result *r, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	put(r->why, sizeof(r->why), fmt, ap);
	va_end(ap);
}

/* Instead of the one in the table, where a check has several. */
void doctor_remedy(struct doctor_result *r, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	put(r->remedy, sizeof(r->remedy), fmt, ap);
	va_end(ap);
}

void doctor_more(struct doctor_result *r, const char *fmt, ...)
{
	size_t n = strlen(r->value);
	va_list ap;

	va_start(ap, fmt);
	put(r->value + n, sizeof(r->value) - n, fmt, ap);
	va_end(ap);
}

/* True, with the result filled, when the running kernel was not asked. */
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

/* Debian and Ubuntu added levels above 2, which let only CAP_SYS_ADMIN (seen on 5.10 to 7.2). */
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

/* --- the report --- */

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
	old = libbpf_set_print(NULL); /* what it would say is a result here */
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

/* What the real program needs besides: its types, and a way to read kernel memory. */
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
