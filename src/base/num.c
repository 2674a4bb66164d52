// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "num.h"

#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <math.h>
#include <unistd.h>

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
	char range[64];
	uint64_t v;
	int err;

	if (arg->max == UINT64_MAX)
		snprintf(range, sizeof(range), "at least %" PRIu64, arg->min);
	else
		snprintf(range, sizeof(range), "from %" PRIu64 " to %" PRIu64, arg->min, arg->max);
	err = scan(text, &v);
	if (err == -EINVAL)
		return err_set(e, err,
			       "%s: invalid number '%.40s': must be %s%s%s, decimal (K, M, G "
			       "multiply by 1e3, 1e6, 1e9) or 0x hexadecimal",
			       arg->name, text, range, gap, unit);
	if (err || v < arg->min || v > arg->max)
		return err_set(e, -ERANGE, "%s: %.40s is out of range: must be %s%s%s", arg->name,
			       text, range, gap, unit);
	*out = v;
	return 0;
}

/* A unit of durations or sizes; tables have the largest first. @value is the size of one unit. */
struct unit {
	const char *name;
	double value;
};

static const struct unit durations[] = { { "d", 86400 }, { "h", 3600 },	 { "m", 60 },	{ "s", 1 },
					 { "ms", 1e-3 }, { "us", 1e-6 }, { "ns", 1e-9 } };

/* The number at the start of @text, without sign and exponent; @unit gets what follows it. */
static int scan_fraction(const char *text, double *out, const char **unit)
{
	size_t n = strspn(text, "0123456789.");
	char digits[40], *end;

	if (!n || n >= sizeof(digits))
		return -EINVAL;
	memcpy(digits, text, n);
	digits[n] = 0;
	*out = strtod(digits, &end);
	*unit = text + n;
	return *end || end == digits ? -EINVAL : 0;
}

void num_format_duration(double seconds, char *buf, size_t size)
{
	size_t i = 0;

	/* the largest unit that gives a whole number, or else one that gives at least 1 */
	for (; i + 1 < ARRAY_SIZE(durations); i++) {
		double n = seconds / durations[i].value;

		if (n >= 0.9999999 && (fabs(n - round(n)) < 1e-6 * n || durations[i].value <= 1))
			break;
	}
	snprintf(buf, size, "%g%s", seconds / durations[i].value, durations[i].name);
}

int num_parse_duration(const struct duration_arg *arg, const char *text, double *seconds,
		       struct err *e)
{
	char min[32], max[32];
	const char *unit;
	double v, scale = arg->bare_s ?: 1;
	int ret = scan_fraction(text, &v, &unit);

	if (!ret && *unit) {
		ret = -EINVAL;
		for (size_t i = 0; i < ARRAY_SIZE(durations); i++) {
			if (!strcmp(unit, durations[i].name)) {
				scale = durations[i].value;
				ret = 0;
			}
		}
	}
	num_format_duration(arg->min_s, min, sizeof(min));
	num_format_duration(arg->max_s, max, sizeof(max));
	if (ret)
		return err_set(e, ret,
			       "%s: invalid duration '%.40s': must be from %s to %s, a number with "
			       "ns, us, ms, s, m, h or d",
			       arg->name, text, min, max);
	v *= scale;
	/* values like 2.5us are not exact in binary */
	if (v < arg->min_s * (1 - 1e-9) || v > arg->max_s * (1 + 1e-9))
		return err_set(e, -ERANGE, "%s: %.40s is out of range: must be from %s to %s",
			       arg->name, text, min, max);
	*seconds = v;
	return 0;
}

static void format_size(uint64_t bytes, char *buf, size_t size)
{
	static const char *const names[] = { " bytes", "K", "M", "G" };
	int i = 0;

	for (; i < 3 && bytes && !(bytes & 1023); i++)
		bytes >>= 10;
	snprintf(buf, size, "%" PRIu64 "%s", bytes, names[i]);
}

int num_parse_size(const struct size_arg *arg, const char *text, uint64_t *bytes, struct err *e)
{
	static const char *const suffixes[3][3] = { { "K", "k", "KiB" },
						    { "M", "m", "MiB" },
						    { "G", "g", "GiB" } };
	uint64_t v = 0, unit = arg->bare ?: 1;
	char min[32], max[32];
	const char *s = text;
	bool over = false, known = digit(*s) < 10;

	for (; digit(*s) < 10; s++)
		over |= __builtin_mul_overflow(v, (uint64_t)10, &v) ||
			__builtin_add_overflow(v, (uint64_t)digit(*s), &v);
	if (known && *s) {
		known = false;
		for (int i = 0; i < 9; i++) {
			if (!strcmp(s, suffixes[i / 3][i % 3])) {
				unit = 1ULL << 10 * (i / 3 + 1);
				known = true;
			}
		}
	}
	over |= __builtin_mul_overflow(v, unit, &v);
	format_size(arg->min, min, sizeof(min));
	format_size(arg->max, max, sizeof(max));
	if (!known)
		return err_set(e, -EINVAL,
			       "%s: invalid size '%.40s': must be from %s to %s, in %s or with "
			       "K, M or G (KiB, MiB, GiB)",
			       arg->name, text, min, max,
			       (arg->bare ?: 1) == 1 << 20 ? "MiB" : "bytes");
	if (over || v < arg->min || v > arg->max)
		return err_set(e, -ERANGE, "%s: %.40s is out of range: must be from %s to %s",
			       arg->name, text, min, max);
	*bytes = v;
	return 0;
}

int num_parse_percent(const char *name, const char *text, double min, double max, double *ratio,
		      struct err *e)
{
	const char *unit;
	double v;

	if (scan_fraction(text, &v, &unit) || strcmp(unit, "%"))
		return err_set(e, -EINVAL,
			       "%s: invalid percentage '%.40s': expected a number followed by %%, "
			       "as in 0.5%%",
			       name, text);
	if (v < min || v > max)
		return err_set(e, -ERANGE, "%s: %.40s is out of range: must be from %g%% to %g%%",
			       name, text, min, max);
	*ratio = v / 100;
	return 0;
}

int num_parse_mode(const char *name, const char *text, mode_t *mode, struct err *e)
{
	unsigned long v = strtoul(text, NULL, 8);

	if (!*text || text[strspn(text, "01234567")] || v > 0777)
		return err_set(
			e, -EINVAL,
			"%s: invalid file mode '%.200s': must be octal, up to 0777, as in 0600 "
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

void num_put(FILE *f, uint64_t v, unsigned int base)
{
	char digits[24], *p = digits + sizeof(digits);

	do
		*--p = "0123456789abcdef"[v % base];
	while (v /= base);
	fwrite_unlocked(p, 1, digits + sizeof(digits) - p, f);
}
