// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "doctor_check.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* Texts from files and CPUID reach terminals and JSON. */
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
