// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "cpulist.h"

#include "err.h"
#include "num.h"
#include "text.h"

#include <sched.h>

bool cpulist_has(const struct cpulist *l, unsigned int cpu)
{
	return cpu < CPULIST_MAX && (l->bits[cpu / 64] >> cpu % 64 & 1);
}

void cpulist_add(struct cpulist *l, unsigned int cpu)
{
	if (cpu < CPULIST_MAX)
		l->bits[cpu / 64] |= UINT64_C(1) << cpu % 64;
}

unsigned int cpulist_count(const struct cpulist *l)
{
	unsigned int i, n = 0;

	for (i = 0; i < CPULIST_MAX / 64; i++)
		n += __builtin_popcountll(l->bits[i]);
	return n;
}

int cpulist_next(const struct cpulist *l, unsigned int from)
{
	unsigned int i = from / 64;
	uint64_t w;

	if (from >= CPULIST_MAX)
		return -1;
	w = l->bits[i] & ~UINT64_C(0) << from % 64;
	while (!w) {
		if (++i == CPULIST_MAX / 64)
			return -1;
		w = l->bits[i];
	}
	return i * 64 + __builtin_ctzll(w);
}

int cpulist_outside(const struct cpulist *l, const struct cpulist *of)
{
	int cpu;

	cpulist_for_each (cpu, l) {
		if (!cpulist_has(of, cpu))
			return cpu;
	}
	return -1;
}

/* Return: 0, -EINVAL or -ERANGE; *s moves past the digits. */
static int scan_cpu(const char **s, unsigned int *out)
{
	unsigned int v = 0;

	if (**s < '0' || **s > '9')
		return -EINVAL;
	for (; **s >= '0' && **s <= '9'; ++*s) {
		if (v < CPULIST_MAX) /* skip further digits */
			v = v * 10 + (**s - '0');
	}
	*out = v;
	return v < CPULIST_MAX ? 0 : -ERANGE;
}

int cpulist_parse(const char *what, const char *text, struct cpulist *out, struct err *e)
{
	struct cpulist l = { 0 };
	unsigned int a = 0, b;
	const char *s = text;
	int err;

	for (;;) {
		err = scan_cpu(&s, &a);
		b = a;
		if (!err && *s == '-') {
			s++;
			err = scan_cpu(&s, &b);
		}
		if (err)
			break;
		if (b < a)
			return err_set(e, -EINVAL,
				       "%s: invalid range %u-%u in '%.60s': must ascend", what, a,
				       b, text);
		for (; a <= b; a++)
			cpulist_add(&l, a);
		if (*s != ',')
			break;
		s++;
	}
	if (err == -ERANGE)
		return err_set(e, err,
			       "%s: CPU number in '%.60s' out of range: must be at most %u; see "
			       "/sys/devices/system/cpu/online",
			       what, text, CPULIST_MAX - 1);
	if (*s == '\n')
		s++;
	if (err || *s)
		return err_set(e, -EINVAL,
			       "%s: invalid CPU list '%.60s' at character %zu: must be like 0-3,8",
			       what, text, (size_t)(s - text) + 1);
	*out = l;
	return 0;
}

int cpulist_read(const char *root, const char *name, struct cpulist *out, struct err *e)
{
	char path[64], text[4096]; /* a sysfs file has at most a page */
	int err;

	snprintf(path, sizeof(path), "/sys/devices/system/cpu/%s", name);
	err = num_read_line(root, path, text, sizeof(text), e);
	return err ? err : cpulist_parse(path, text, out, e);
}

size_t cpulist_print(const struct cpulist *l, char *buf, size_t size)
{
	size_t n = 0;
	int a, b;

	if (size)
		*buf = 0;
	for (a = cpulist_next(l, 0); a >= 0; a = cpulist_next(l, b + 1)) {
		for (b = a; cpulist_has(l, b + 1); b++)
			;
		n = text_at(buf, size, n, n ? ",%d" : "%d", a);
		if (b > a)
			n = text_at(buf, size, n, "-%d", b);
	}
	return n;
}

int cpulist_bind(unsigned int cpu, struct err *e)
{
	const size_t bytes = CPU_ALLOC_SIZE(CPULIST_MAX);
	cpu_set_t *set = CPU_ALLOC(CPULIST_MAX);
	int ret = 0;

	if (!set)
		return err_set(e, -ENOMEM, "out of memory");
	CPU_ZERO_S(bytes, set);
	CPU_SET_S(cpu, bytes, set);
	if (sched_setaffinity(0, bytes, set))
		ret = err_set(e, -errno, "cannot run on cpu %u: %s", cpu, strerror(errno));
	CPU_FREE(set);
	return ret;
}
