// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* The options of record, one function and one row each. */
#include "num.h"
#include "record_private.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define ROTATE_MAX     10000
#define DURATION_MAX_S 1e9

/* K, M and G multiply by 1024 and so on, as with perf. Return: 0, or with @err -EINVAL or -ERANGE. */
static int parse_size(const char *option, const char *text, __u64 min, __u64 max, __u64 *out,
		      struct err *err)
{
	static const char units[] = "KMG";
	unsigned long long n;
	const char *unit;
	int shift = 0;
	char *end;

	errno = 0;
	n = strtoull(text, &end, 10);
	if (*text < '0' || *text > '9' || (*end && end[1]) ||
	    (*end && !(unit = strchr(units, *end))))
		return err_set(err, -EINVAL,
			       "%s: '%s' is no size: give bytes, or a number with K, M or G",
			       option, text);
	if (*end)
		shift = 10 * (1 + (unit - units));
	if (errno || n > max >> shift || n << shift < min)
		return err_set(err, -ERANGE, "%s: '%s' is out of range: from %lluK to %lluK",
			       option, text, min >> 10, max >> 10);
	*out = n << shift;
	return 0;
}

static int set_output(void *ctx, const char *arg, struct err *err)
{
	struct record *r = ctx;

	if (!*arg)
		return err_set(err, -EINVAL, "-o: a file name, or '-', is expected");
	r->out.path = arg;
	return 0;
}

static int set_raw(void *ctx, const char *arg, struct err *err)
{
	struct record *r = ctx;

	(void)arg;
	(void)err;
	r->sampling.opts.output = SAMPLER_RECORDS_RAW;
	return 0;
}

static int set_ring_size(void *ctx, const char *arg, struct err *err)
{
	struct record *r = ctx;
	__u64 bytes;
	int ret = parse_size("--ring-size", arg, SAMPLER_RING_MIN, SAMPLER_RING_MAX, &bytes, err);

	r->sampling.opts.ring_bytes = bytes;
	return ret;
}

static int set_max_size(void *ctx, const char *arg, struct err *err)
{
	struct record *r = ctx;

	return parse_size("--max-size", arg, 4096, 1ULL << 60, &r->max_bytes, err);
}

static int set_rotate(void *ctx, const char *arg, struct err *err)
{
	const struct num_arg num = {
		.name = "--rotate", .unit = "files", .min = 2, .max = ROTATE_MAX
	};
	struct record *r = ctx;
	uint64_t n;
	int ret = num_parse(&num, arg, &n, err);

	r->out.rotate = n;
	return ret;
}

static int set_duration(void *ctx, const char *arg, struct err *err)
{
	struct record *r = ctx;
	char *end;

	r->duration_s = strtod(arg, &end);
	if (end == arg || *end || !(r->duration_s > 0) || r->duration_s > DURATION_MAX_S)
		return err_set(err, -EINVAL,
			       "--duration: '%s' is no time: give seconds, above 0 and up to %g",
			       arg, DURATION_MAX_S);
	return 0;
}

static int set_max_loss(void *ctx, const char *arg, struct err *err)
{
	struct record *r = ctx;

	return num_parse_percent("--max-loss", arg, 0, 100, &r->max_loss, err);
}

/* clang-format off: a row is a row */
const struct option_row record_options[] = {
	{ "output", 'o', "FILE",
	  "default " OUTPUT_DEFAULT_PATH ", for text '-', which is stdout;\n"
	  "                            a file of that name is kept as FILE.old",
	  set_output },
	{ "csv", 0, NULL, "a line of text a sample, with a header",
	  OPTION_FLAG(struct record, csv) },
	{ "json", 0, NULL, "a JSON object a line and sample", OPTION_FLAG(struct record, json) },
	{ "raw", 0, NULL, "all registers, as they were read", set_raw },
	{ "stacks", 'g', NULL, "call chains, too; the kernel unwinds at each sample, kept or not",
	  OPTION_FLAG(struct record, sampling.opts.stacks) },
	{ "duration", 0, "SECONDS", "end after that", set_duration },
	{ "max-size", 0, "SIZE", "end when the file is as large, as in 500M", set_max_size },
	{ "rotate", 0, "N", "then go on with a new file, and keep N: FILE, FILE.1, ..",
	  set_rotate },
	{ "ring-size", 0, "SIZE",
	  "kernel buffer of each CPU, as in 256K; a power of two;\n"
	  "                            default what fits --max-memory, up to 1M",
	  set_ring_size },
	{ "compress", 'z', NULL, "a file of half the size, with zstd, at thrice the work",
	  OPTION_FLAG(struct record, out.compress) },
	{ "max-loss", 0, "N%",
	  "fail at the end if more of the samples found their ring full;\n"
	  "                            default 10%",
	  set_max_loss },
};
/* clang-format on */
const size_t record_n_options = sizeof(record_options) / sizeof(record_options[0]);
