// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "num.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "err.h"

static int digit(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	if (c >= 'a' && c <= 'f')
		return c - 'a' + 10;
	if (c >= 'A' && c <= 'F')
		return c - 'A' + 10;
	return 16;
}

static uint64_t suffix(char c)
{
	switch (c) {
	case 'k':
	case 'K':
		return 1000;
	case 'm':
	case 'M':
		return 1000000;
	case 'g':
	case 'G':
		return 1000000000;
	default:
		return 0;
	}
}

/* 0, -EINVAL: not a number, -ERANGE: more than 64 bits. */
static int scan(const char *s, uint64_t *out)
{
	uint64_t v = 0, mul;
	bool over = false;
	int base = 10;

	if (s[0] == '0' && (s[1] == 'x' || s[1] == 'X')) {
		base = 16;
		s += 2;
	}
	if (digit(*s) >= base)
		return -EINVAL;
	for (; digit(*s) < base; s++)
		over |= __builtin_mul_overflow(v, (uint64_t)base, &v) ||
			__builtin_add_overflow(v, (uint64_t)digit(*s), &v);
	if (*s) {
		mul = base == 10 && !s[1] ? suffix(*s) : 0;
		if (!mul)
			return -EINVAL;
		over |= __builtin_mul_overflow(v, mul, &v);
	}
	*out = v;
	return over ? -ERANGE : 0;
}

int num_parse(const struct num_arg *arg, const char *text, uint64_t *out, struct err *e)
{
	const char *gap = arg->unit ? " " : "", *unit = arg->unit ? arg->unit : "";
	uint64_t v;
	int err;

	err = scan(text, &v);
	if (err == -EINVAL)
		return err_set(
			e, err,
			"%s: '%.40s' is not a number; give %" PRIu64 " to %" PRIu64
			"%s%s, decimal (K, M, G behind it mean 1e3, 1e6, 1e9) or 0x hexadecimal",
			arg->name, text, arg->min, arg->max, gap, unit);
	if (err || v < arg->min || v > arg->max)
		return err_set(e, -ERANGE,
			       "%s: %.40s is out of range; allowed are %" PRIu64 " to %" PRIu64
			       "%s%s",
			       arg->name, text, arg->min, arg->max, gap, unit);
	*out = v;
	return 0;
}

int num_parse_percent(const char *name, const char *text, double min, double max, double *ratio,
		      struct err *e)
{
	size_t n = strspn(text, "0123456789.");
	char *end = NULL;
	double v = n ? strtod(text, &end) : 0;

	if (!n || end != text + n || strcmp(end, "%"))
		return err_set(e, -EINVAL, "%s: '%s' is no percentage, as 0.5%%", name, text);
	if (v < min || v > max)
		return err_set(e, -ERANGE, "%s: %s is out of range: %g%% to %g%%", name, text, min,
			       max);
	*ratio = v / 100;
	return 0;
}

int num_parse_mode(const char *name, const char *text, mode_t *mode, struct err *e)
{
	unsigned long v = strtoul(text, NULL, 8);

	if (!*text || text[strspn(text, "01234567")] || v > 0777)
		return err_set(
			e, -EINVAL,
			"%s: '%.200s' is no file mode; give an octal one up to 0777, as 0600 "
			"or 0644",
			name, text);
	*mode = v;
	return 0;
}

int num_read_line(const char *root, const char *path, char *buf, size_t size, struct err *e)
{
	char full[PATH_MAX];
	ssize_t n = 0;
	size_t len = 0;
	int fd, err;

	if (snprintf(full, sizeof(full), "%s%s", root, path) >= (int)sizeof(full))
		return err_set(e, -ENAMETOOLONG, "%.60s...%s: path too long", root, path);
	fd = open(full, O_RDONLY | O_CLOEXEC);
	if (fd < 0) {
		err = -errno;
		return err_set(e, err, "%s: cannot open: %s", full, strerror(-err));
	}
	while (len < size && (n = read(fd, buf + len, size - len)) > 0)
		len += n;
	err = n < 0 ? -errno : 0;
	close(fd);
	if (err)
		return err_set(e, err, "%s: cannot read: %s", full, strerror(-err));
	if (len < size)
		buf[len] = 0;
	else if (!memchr(buf, '\n', size))
		return err_set(e, -EMSGSIZE, "%s: line longer than %zu bytes", full, size - 1);
	buf[strcspn(buf, "\n")] = 0;
	return 0;
}

int num_read(const char *root, const char *path, int64_t *out, struct err *e)
{
	char text[64];
	uint64_t v;
	bool neg;
	int err;

	err = num_read_line(root, path, text, sizeof(text), e);
	if (err)
		return err;
	neg = text[0] == '-';
	if (digit(text[neg]) > 9 || strpbrk(text, "kKmMgGxX") || scan(text + neg, &v) ||
	    v > INT64_MAX)
		return err_set(e, -EINVAL, "%s%s: '%s' is not a decimal number", root, path, text);
	*out = neg ? -(int64_t)v : (int64_t)v;
	return 0;
}
