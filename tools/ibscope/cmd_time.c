// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Times as people write them, for --at. */
#include "cmd.h"
#include "base/array.h"
#include "base/num.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* The last time that clocks here showed HH:MM. Return: NAN if it is no such text. */
static double last_time_of_day(const char *text)
{
	const time_t now = time(NULL);
	struct tm tm;
	const char *rest;
	time_t at;

	localtime_r(&now, &tm);
	tm.tm_sec = 0;
	rest = strptime(text, "%H:%M:%S", &tm) ?: strptime(text, "%H:%M", &tm);
	if (!rest || *rest)
		return NAN;
	tm.tm_isdst = -1;
	at = mktime(&tm);
	if (at <= now)
		return at;
	tm.tm_mday--;
	tm.tm_isdst = -1;
	return mktime(&tm);
}

/* Seconds since 1970; a time of day without a zone is local. Return: NAN if it is none. */
static double parse_time(const char *text)
{
	static const char *const formats[] = { "%Y-%m-%dT%H:%M:%S", "%Y-%m-%dT%H:%M",
					       "%Y-%m-%d %H:%M:%S", "%Y-%m-%d %H:%M" };
	const struct duration_arg ago = { .name = "--at", .max_s = 10 * 366 * 86400. };
	double seconds;
	char *end;

	if (!strcmp(text, "now"))
		return time(NULL);
	if (*text == '-')
		return num_parse_duration(&ago, text + 1, &seconds, NULL) ? NAN
									  : time(NULL) - seconds;
	seconds = strtod(text, &end);
	if (end > text && !*end)
		return seconds;
	for (size_t i = 0; i < ARRAY_SIZE(formats); i++) {
		struct tm tm = { .tm_isdst = -1 };
		const char *rest = strptime(text, formats[i], &tm);

		if (rest && (!*rest || !strcmp(rest, "Z")))
			return *rest ? timegm(&tm) : mktime(&tm);
	}
	return last_time_of_day(text);
}

int cmd_time_parse(const char *arg, double *at_s, struct err *err)
{
	*at_s = parse_time(arg);
	if (isnan(*at_s) || *at_s < 0 || *at_s > 1e11)
		return err_set(
			err, -EINVAL,
			"--at: invalid time '%s': must be seconds since 1970, a time such as "
			"03:11, "
			"2026-11-24T03:11 or 2026-11-24T03:11:00Z, a duration ago such as -1h, or "
			"now",
			arg);
	return 0;
}
