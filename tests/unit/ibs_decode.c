// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Decode raw IBS records to perf's text. Reads lines of "op|fetch FAMILY MODEL HEX"; each answer
 * ends with an empty line. For tests/vm/check_decode.py. The answer to "class FAMILY MODEL HEX" is the
 * kind, source and latencies of an op, for tests/cli/test_oracle.py.
 */
#include <stdlib.h>
#include <string.h>

#include "counts/snapshot.h"
#include "dump/op_text.h"

static int hex_digit(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	if (c >= 'a' && c <= 'f')
		return c - 'a' + 10;
	if (c >= 'A' && c <= 'F')
		return c - 'A' + 10;
	return -1;
}

/* Bytes decoded from @hex, blanks ignored; -1 if it is not hex or too long. */
static int from_hex(const char *hex, unsigned char *buf, size_t size)
{
	size_t digits = 0;

	for (; *hex; hex++) {
		int d = hex_digit(*hex);

		if (*hex == ' ' || *hex == '\n')
			continue;
		if (d < 0 || digits / 2 >= size)
			return -1;
		buf[digits / 2] = digits % 2 ? buf[digits / 2] << 4 | d : d;
		digits++;
	}
	return digits % 2 ? -1 : (int)(digits / 2);
}

/* "KIND SRC MODE", and of each metric of ibs_op the latency or "-". */
static void print_class(const struct ibs_op_sample *s)
{
	const __u64 data3 = s->reg[IBS_OP_DATA3];

	printf("%s %s %s", op_kind_name(ibs_op_kind(s->reg[IBS_OP_DATA], data3)),
	       src_name(ibs_op_src(s->cpu, s->reg)), mode_name(ibs_op_mode(s->cpu.caps, s->reg)));
	for (unsigned int m = 0; m < IBS_OP_METRIC_N; m++) {
		if (ibs_op_metric_valid(m, s->cpu.caps, data3))
			printf(" %u", ibs_op_metric(m, s->reg, data3));
		else
			printf(" -");
	}
	putchar('\n');
}

static int decode(const char *line, unsigned int perf)
{
	unsigned char raw[512];
	int family, model;
	char kind[6];
	int pos = 0, bytes;

	if (sscanf(line, "%5s %i %i %n", kind, &family, &model, &pos) < 3 || !pos)
		return -1;
	bytes = from_hex(line + pos, raw, sizeof(raw));
	if (bytes < 0)
		return -1;
	if (!strcmp(kind, "op") || !strcmp(kind, "class")) {
		struct ibs_op_sample s;

		if (ibs_op_parse_raw(raw, bytes, ibs_quirks(family, model), &s))
			return -1;
		if (*kind == 'c')
			print_class(&s);
		else
			ibs_op_print(stdout, &s, perf);
	} else if (!strcmp(kind, "fetch")) {
		struct ibs_fetch_sample s;

		if (ibs_fetch_parse_raw(raw, bytes, ibs_quirks(family, model), &s))
			return -1;
		ibs_fetch_print(stdout, &s, perf);
	} else {
		return -1;
	}
	putchar('\n');
	return 0;
}

int main(int argc, char **argv)
{
	unsigned int perf = IBS_PERF_NEWEST;
	char line[2048];
	int n = 0;

	if (argc == 2 && !strcmp(argv[1], "--perf-6.1")) {
		perf = IBS_PERF(6, 1);
	} else if (argc > 1) {
		fprintf(stderr,
			"usage: ibs_decode [--perf-6.1]  (op|fetch FAMILY MODEL HEX on stdin)\n");
		return 2;
	}
	while (fgets(line, sizeof(line), stdin)) {
		n++;
		if (decode(line, perf)) {
			fprintf(stderr, "ibs_decode: line %d: not a raw IBS record\n", n);
			return 1;
		}
	}
	return 0;
}
