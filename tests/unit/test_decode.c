// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * The decode of raw samples: against vectors (samples with the text that perf printed of them),
 * and against the rules written down once more. Vectors: tests/data/seed.jsonl, and files given as
 * arguments or in IBSCOPE_VECTORS.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <jansson.h>

#include "dump/op_text.h"

#ifndef ARRAY_SIZE
#define ARRAY_SIZE(a) (sizeof(a) / sizeof((a)[0]))
#endif

#ifndef SEED
#define SEED "tests/data/seed.jsonl"
#endif

/* ------------------------------------------------------------------ vectors */

struct vector {
	const char *where; /* file:line */
	json_t *json;
	bool fetch;
	struct ibs_op_sample op;
	struct ibs_fetch_sample fe;
};

#define CHECK(v, cond, ...)                              \
	do {                                             \
		if (!(cond)) {                           \
			print_error("%s: ", (v)->where); \
			print_error(__VA_ARGS__);        \
			print_error("\n");               \
			fail();                          \
		}                                        \
	} while (0)

static const char *text_line(const struct vector *v, const char *prefix)
{
	json_t *line;
	size_t i;

	json_array_foreach(json_object_get(v->json, "text"), i, line)
	{
		const char *s = json_string_value(line);

		if (!strncmp(s, prefix, strlen(prefix)))
			return s;
	}
	return NULL;
}

static bool text_has(const struct vector *v, const char *prefix, const char *what)
{
	const char *line = text_line(v, prefix);

	return line && strstr(line, what);
}

/* A number in JSON, as one or as hex or decimal text. */
static bool json_number(const json_t *j, __u64 *value)
{
	char *end;

	if (json_is_integer(j)) {
		*value = json_integer_value(j);
		return true;
	}
	if (!json_is_string(j))
		return false;
	*value = strtoull(json_string_value(j), &end, 0);
	return end != json_string_value(j) && !*end;
}

/* A register of the vector whose key holds @word but not @without. */
static bool vector_reg(const struct vector *v, const char *word, const char *without, __u64 *value)
{
	const char *key;
	json_t *j;

	json_object_foreach(json_object_get(v->json, "regs"), key, j)
	{
		if (strstr(key, word) && !(without && strstr(key, without)))
			return json_number(j, value);
	}
	return false;
}

/* The least capable processor whose sample perf prints like this. */
static __u32 infer_caps(const struct vector *v)
{
	const char *ctl = v->fetch ? "ibs_fetch_ctl" : "ibs_op_ctl";
	__u32 caps = 0x3ff;

	if (text_has(v, ctl, "L3MissOnly"))
		caps |= IBS_CAPS_ZEN4;
	if (text_has(v, ctl, "LdLatEn"))
		caps |= IBS_CAPS_OPLDLAT;
	if (text_has(v, "ibs_op_data2", "RmtSocket"))
		caps |= IBS_CAPS_STRMST_RMTSOCKET;
	if (text_line(v, "ibs_op_data3") && !text_has(v, "ibs_op_data3", "DcL1TlbHit2M"))
		caps |= IBS_CAPS_OPDTLBPGSIZE;
	return caps;
}

static __u32 infer_quirks(const struct vector *v)
{
	__u64 family, model;

	if (json_number(json_object_get(v->json, "family"), &family) &&
	    json_number(json_object_get(v->json, "model"), &model))
		return ibs_quirks(family, model);
	if (v->fetch && !text_has(v, "ibs_fetch_ctl", " Lat "))
		return ibs_quirks(0x1a, 0x50);
	if (v->fetch && !text_has(v, "ibs_fetch_ctl", " IcMiss "))
		return ibs_quirks(0x19, 0x01);
	if (!v->fetch && !text_has(v, "ibs_op_data3", " L2Miss "))
		return ibs_quirks(0x19, 0x01);
	return 0;
}

static void vector_regs(struct vector *v, struct ibs_cpu cpu)
{
	static const struct {
		const char *word, *without;
	} op[IBS_OP_REG_N] = {
		[IBS_OP_CTL] = { "ctl", NULL },	    [IBS_OP_RIP] = { "rip", NULL },
		[IBS_OP_DATA2] = { "data2", NULL },
		[IBS_OP_DATA3] = { "data3", NULL }, [IBS_DC_LINADDR] = { "lin", NULL },
		[IBS_DC_PHYSADDR] = { "phys", NULL }, [IBS_BRTARGET] = { "br", NULL },
		[IBS_OP_DATA4] = { "data4", NULL },
	}, fetch[IBS_FETCH_REG_N] = {
		[IBS_FETCH_CTL] = { "ctl", "ext" }, [IBS_FETCH_LINADDR] = { "lin", NULL },
		[IBS_FETCH_PHYSADDR] = { "phys", NULL }, [IBS_FETCH_EXTD] = { "ext", NULL },
	};
	const json_t *regs = json_object_get(v->json, "regs");
	unsigned int r;

	v->op.cpu = v->fe.cpu = cpu;
	for (r = 0; !v->fetch && r < IBS_OP_REG_N; r++) {
		bool found = r == IBS_OP_DATA
				     ? json_number(json_object_get(regs, "data"), &v->op.reg[r])
				     : vector_reg(v, op[r].word, op[r].without, &v->op.reg[r]);

		/* registers that perf did not print are null */
		if (found || r < IBS_OP_REG_FIXED)
			v->op.present |= 1u << r;
		CHECK(v, found || r >= IBS_DC_LINADDR || (r == IBS_OP_DATA2 || r == IBS_OP_RIP),
		      "no register %u", r);
	}
	for (r = 0; v->fetch && r < IBS_FETCH_REG_N; r++) {
		bool found = vector_reg(v, fetch[r].word, fetch[r].without, &v->fe.reg[r]);

		if (found || r < IBS_FETCH_REG_FIXED)
			v->fe.present |= 1u << r;
		CHECK(v, found || r > IBS_FETCH_CTL, "no register %u", r);
	}
}

static size_t unhex(const char *hex, unsigned char *buf, size_t size)
{
	size_t n;

	for (n = 0; hex[2 * n] && n < size; n++) {
		unsigned int byte;

		assert_int_equal(sscanf(hex + 2 * n, "%2x", &byte), 1);
		buf[n] = byte;
	}
	assert_int_equal(hex[2 * n], 0);
	return n;
}

/* A perf sample holds, mostly at its end, u32 size, u32 caps and the registers. */
static void check_raw_hex(const struct vector *v, const char *hex, bool caps_given)
{
	size_t least = v->fetch ? IBS_FETCH_RAW_MIN : IBS_OP_RAW_MIN, at, bytes;
	unsigned char buf[1024];
	unsigned int r;
	__u32 size = 0;

	bytes = unhex(hex, buf, sizeof(buf));
	for (at = 0; at + 12 <= bytes; at += 4) {
		__u64 ctl;

		memcpy(&size, buf + at, sizeof(size));
		memcpy(&ctl, buf + at + 8, sizeof(ctl));
		if (size >= least && size % 8 == 4 && at + 4 + size <= bytes &&
		    ctl == (v->fetch ? v->fe.reg[IBS_FETCH_CTL] : v->op.reg[IBS_OP_CTL]))
			break;
	}
	CHECK(v, at + 12 <= bytes, "no raw record in raw_hex");
	if (v->fetch) {
		struct ibs_fetch_sample s = {};

		assert_int_equal(ibs_fetch_parse_raw(buf + at + 4, size, v->fe.cpu.quirks, &s), 0);
		CHECK(v, !caps_given || s.cpu.caps == v->fe.cpu.caps, "caps %#x in raw_hex",
		      s.cpu.caps);
		for (r = 0; r < IBS_FETCH_REG_N; r++)
			CHECK(v, !v->fe.reg[r] || s.reg[r] == v->fe.reg[r], "register %u", r);
	} else {
		struct ibs_op_sample s = {};

		assert_int_equal(ibs_op_parse_raw(buf + at + 4, size, v->op.cpu.quirks, &s), 0);
		CHECK(v, !caps_given || s.cpu.caps == v->op.cpu.caps, "caps %#x in raw_hex",
		      s.cpu.caps);
		for (r = 0; r < IBS_OP_REG_N; r++)
			CHECK(v, !v->op.reg[r] || s.reg[r] == v->op.reg[r], "register %u", r);
	}
}

static int find_field(const struct vector *v, const char *perf_name)
{
	const struct ibs_field *fields = v->fetch ? ibs_fetch_fields : ibs_op_fields;
	int i, n = v->fetch ? (int)IBS_FETCH_FIELD_N : (int)IBS_OP_FIELD_N;

	for (i = 0; i < n; i++)
		if (!strcmp(fields[i].perf_name, perf_name))
			return i;
	return -1;
}

/* The registers that perf prints in full, by the name of their line. */
static bool whole_register(const struct vector *v, const char *name, __u64 *value)
{
	static const struct {
		const char *name;
		int reg;
		bool fetch;
	} lines[] = {
		{ "ibs_op_ctl", IBS_OP_CTL, false },
		{ "ibs_op_data", IBS_OP_DATA, false },
		{ "ibs_op_data2", IBS_OP_DATA2, false },
		{ "ibs_op_data3", IBS_OP_DATA3, false },
		{ "ibs_fetch_ctl", IBS_FETCH_CTL, true },
		{ "ic_ibs_ext_ctl", IBS_FETCH_EXTD, true },
		{ "ic_ibs_extd_ctl", IBS_FETCH_EXTD, true },
	};
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(lines); i++) {
		if (lines[i].fetch != v->fetch || strcmp(lines[i].name, name))
			continue;
		*value = v->fetch ? v->fe.reg[lines[i].reg] : v->op.reg[lines[i].reg];
		return true;
	}
	return false;
}

/* What perf shows for a field: scaled, composed or in words. */
static __u64 shown(const struct vector *v, int field, __u64 bits, char *words, size_t size)
{
	static const char *const op_pages[4] = { "4K", "2M", "1G", "??" };

	if (!v->fetch && field == IBS_OP_FIELD_OPMAXCNT)
		return ibs_op_period(&v->op);
	if (v->fetch && (field == IBS_FETCH_FIELD_MAXCNT || field == IBS_FETCH_FIELD_CNT))
		return bits << 4;
	if (!v->fetch && field == IBS_OP_FIELD_OP_MEM_WIDTH)
		return bits ? 1ULL << (bits - 1) : 0;
	if (!v->fetch && field == IBS_OP_FIELD_DC_PAGE_SIZE)
		snprintf(words, size, "%s", op_pages[bits]);
	if (v->fetch && field == IBS_FETCH_FIELD_L1TLB_PGSZ) {
		__u64 bytes;

		if (!ibs_fetch_page_size(&v->fe, &bytes))
			snprintf(words, size, "RESERVED");
		else if (bytes >= 1 << 30)
			snprintf(words, size, "%lluGB", bytes >> 30);
		else if (bytes >= 1 << 20)
			snprintf(words, size, "%lluMB", bytes >> 20);
		else
			snprintf(words, size, "%lluKB", bytes >> 10);
	}
	return bits;
}

static void check_decoded_entry(const struct vector *v, const char *key, const char *said)
{
	__u64 bits, strict = 0, want;
	char words[32] = "";
	bool valid;
	int field;

	if (whole_register(v, key, &bits)) {
		CHECK(v, strtoull(said, NULL, 16) == bits, "%s: %s, not %llx", key, said, bits);
		return;
	}
	if (!v->fetch && !strcmp(key, "DataSrc")) {
		bits = ibs_op_data_src(v->op.cpu, v->op.reg[IBS_OP_DATA2]);
		CHECK(v, strtoull(said, NULL, 10) == bits, "DataSrc: %s, not %llu", said, bits);
		return;
	}
	field = find_field(v, key);
	CHECK(v, field >= 0, "no field %s", key);
	if (v->fetch) {
		bits = ibs_field_bits(&ibs_fetch_fields[field], v->fe.reg);
		valid = ibs_fetch_field(&v->fe, field, &strict);
		want = ibs_fetch_fields[field].width == 64 ? 16 : 10;
	} else {
		bits = ibs_field_bits(&ibs_op_fields[field], v->op.reg);
		valid = ibs_op_field(&v->op, field, &strict);
		want = ibs_op_fields[field].width == 64 ? 16 : 10;
	}
	CHECK(v, !valid || strict == bits, "%s: %llx, bits %llx", key, strict, bits);
	bits = shown(v, field, bits, words, sizeof(words));
	if (*words) {
		said += strspn(said, " ");
		CHECK(v, !strcmp(said, words), "%s: %s, not %s", key, said, words);
		return;
	}
	want = strtoull(said, NULL, want);
	CHECK(v, want == bits, "%s: %s, not %llu (%#llx)", key, said, bits, bits);
}

static char *print_vector(const struct vector *v, unsigned int perf)
{
	size_t size;
	char *text;
	FILE *f = open_memstream(&text, &size);

	assert_non_null(f);
	if (v->fetch)
		ibs_fetch_print(f, &v->fe, perf);
	else
		ibs_op_print(f, &v->op, perf);
	fclose(f);
	return text;
}

/* The line of our text that is of the same register, in an excerpt of perf's. */
static const char *skip_to(const char *text, const char *want)
{
	const char *at = text;

	while (*at && strncmp(at, want, strcspn(want, ":") + 1) != 0) {
		at += strcspn(at, "\n");
		at += *at == '\n';
	}
	return *at ? at : text;
}

/* The first line that differs, or -1. */
static int text_difference(const struct vector *v, const char *text, bool report)
{
	const json_t *lines = json_object_get(v->json, "text");
	const bool excerpt = json_is_true(json_object_get(v->json, "excerpt"));
	size_t i, n = json_array_size(lines);

	for (i = 0; i < n; i++) {
		const char *want = json_string_value(json_array_get(lines, i));
		size_t len;

		text = excerpt ? skip_to(text, want) : text;
		len = strcspn(text, "\n");
		if (strlen(want) != len || strncmp(want, text, len)) {
			if (report)
				print_error("%s:\nperf %s\nours %.*s\n", v->where, want, (int)len,
					    text);
			return i;
		}
		text += len + (text[len] == '\n');
	}
	if (excerpt)
		return -1;
	if (*text && report)
		print_error("%s:\nperf ends\nours %s\n", v->where, text);
	return *text ? (int)n : -1;
}

/*
 * perf's text of a sample depends on its release, and it knows caps from sysfs, where an old kernel
 * does not list them all. The vectors do not tell either.
 */
static void check_text(const struct vector *v)
{
	static const unsigned int releases[] = { IBS_PERF_NEWEST, IBS_PERF(6, 16), IBS_PERF(6, 12),
						 IBS_PERF(6, 1) };
	struct vector listed = *v;
	unsigned int i;
	char *text;
	int where;

	listed.op.cpu.caps &= infer_caps(v);
	listed.fe.cpu.caps &= infer_caps(v);
	for (i = 0; i < 2 * ARRAY_SIZE(releases); i++) {
		text = print_vector(i % 2 ? &listed : v, releases[i / 2]);
		where = text_difference(v, text, false);
		free(text);
		if (where < 0)
			return;
	}
	text = print_vector(v, IBS_PERF_NEWEST);
	text_difference(v, text, true);
	free(text);
	fail_msg("%s: no perf release prints this", v->where);
}

static void check_vector(const char *where, json_t *json)
{
	const char *event = json_string_value(json_object_get(json, "event")), *key;
	struct vector v = { .where = where, .json = json };
	json_t *decoded, *said;
	char number[32];
	bool caps_given;
	__u64 caps;

	CHECK(&v, event, "no event");
	v.fetch = !strncmp(event, "ibs_fetch", 9);
	caps_given = json_number(json_object_get(json, "caps"), &caps);
	if (!caps_given)
		caps = infer_caps(&v);
	vector_regs(&v, (struct ibs_cpu){ .caps = caps, .quirks = infer_quirks(&v) });
	decoded = json_object_get(json, "decoded");
	json_object_foreach(decoded, key, said)
	{
		if (json_is_integer(said))
			snprintf(number, sizeof(number), "%" JSON_INTEGER_FORMAT,
				 json_integer_value(said));
		else
			CHECK(&v, json_is_string(said), "%s: not text", key);
		check_decoded_entry(&v, key,
				    json_is_string(said) ? json_string_value(said) : number);
	}
	CHECK(&v, json_object_size(decoded), "nothing decoded");
	if (json_array_size(json_object_get(json, "text")))
		check_text(&v);
	if (json_is_string(json_object_get(json, "raw_hex")))
		check_raw_hex(&v, json_string_value(json_object_get(json, "raw_hex")), caps_given);
}

static void check_file(const char *path)
{
	FILE *f = fopen(path, "r");
	char *line = NULL, where[512];
	int n = 0, vectors = 0;
	size_t size = 0;

	if (!f)
		fail_msg("%s: cannot open", path);
	while (getline(&line, &size, f) > 0) {
		json_error_t err;
		json_t *json;

		n++;
		if (line[strspn(line, " \t\r\n")] == '\0')
			continue;
		json = json_loads(line, 0, &err);
		if (!json)
			fail_msg("%s:%d: %s", path, n, err.text);
		snprintf(where, sizeof(where), "%s:%d", path, n);
		check_vector(where, json);
		json_decref(json);
		vectors++;
	}
	free(line);
	fclose(f);
	assert_true(vectors > 0);
	print_message("%s: %d vectors\n", path, vectors);
}

static int n_paths;
static char **paths;

static void test_vectors(void **state)
{
	const char *more = getenv("IBSCOPE_VECTORS");
	int i;

	(void)state;
	check_file(SEED);
	if (more && *more)
		check_file(more);
	for (i = 0; i < n_paths; i++)
		check_file(paths[i]);
}

/* ------------------------------------------------------------------ raw record */

static size_t make_raw(unsigned char *buf, __u32 caps, unsigned int nregs)
{
	unsigned int i;

	memcpy(buf, &caps, sizeof(caps));
	for (i = 0; i < nregs; i++) {
		__u64 v = 0x1111111111111111ULL * (i + 1);

		memcpy(buf + 4 + 8 * i, &v, sizeof(v));
	}
	return 4 + 8 * nregs;
}

static __u64 nth(unsigned int n)
{
	return 0x1111111111111111ULL * (n + 1);
}

static void test_op_parse(void **state)
{
	unsigned char buf[128];
	struct ibs_op_sample s;
	size_t bytes;

	(void)state;
	assert_int_equal(ibs_op_parse_raw(buf, make_raw(buf, 0x3df, 7), 0, &s), 0); /* 60 */
	assert_int_equal(s.present, 0x7f);
	assert_int_equal(s.nregs, 7);
	assert_int_equal(ibs_op_parse_raw(buf, make_raw(buf, 0x3ff, 8), 5, &s), 0); /* 68 */
	assert_int_equal(s.cpu.caps, 0x3ff);
	assert_int_equal(s.cpu.quirks, 5);
	assert_int_equal(s.present, 0xff);
	assert_int_equal(s.reg[IBS_OP_CTL], nth(0));
	assert_int_equal(s.reg[IBS_DC_PHYSADDR], nth(6));
	assert_int_equal(s.reg[IBS_BRTARGET], nth(7));
	assert_int_equal(s.reg[IBS_OP_DATA4], 0);
	/* OP_DATA4 moves up where there is no branch target */
	assert_int_equal(ibs_op_parse_raw(buf, make_raw(buf, 0x7df, 8), 0, &s), 0);
	assert_int_equal(s.present, 0x17f);
	assert_int_equal(s.reg[IBS_BRTARGET], 0);
	assert_int_equal(s.reg[IBS_OP_DATA4], nth(7));
	assert_int_equal(ibs_op_parse_raw(buf, make_raw(buf, 0x7ff, 9), 0, &s), 0); /* 76 */
	assert_int_equal(s.present, 0x1ff);
	assert_int_equal(s.reg[IBS_BRTARGET], nth(7));
	assert_int_equal(s.reg[IBS_OP_DATA4], nth(8));
	/* registers of the future */
	assert_int_equal(ibs_op_parse_raw(buf, make_raw(buf, 0x3ff, 11), 0, &s), 0);
	assert_int_equal(s.present, 0xff);
	assert_int_equal(s.nregs, 11);
	/* promised and not there */
	assert_int_equal(ibs_op_parse_raw(buf, make_raw(buf, 0x3ff, 7), 0, &s), 0);
	assert_int_equal(s.present, 0x7f);

	make_raw(buf, 0x3ff, 9);
	memset(&s, 0x5a, sizeof(s));
	for (bytes = 0; bytes <= 76; bytes++) {
		bool ok = bytes == 60 || bytes == 68 || bytes == 76;

		assert_int_equal(ibs_op_parse_raw(buf, bytes, 0, &s), ok ? 0 : -EINVAL);
		if (bytes < 60)
			assert_int_equal(s.nregs, 0x5a5a5a5a); /* untouched */
	}
	assert_int_equal(ibs_op_parse_raw(buf, (1ULL << 32) + 60, 0, &s), -EINVAL);
}

static void test_fetch_parse(void **state)
{
	unsigned char buf[128];
	struct ibs_fetch_sample s;
	size_t bytes;

	(void)state;
	assert_int_equal(ibs_fetch_parse_raw(buf, make_raw(buf, 0x1ff, 3), 7, &s), 0);
	assert_int_equal(s.present, 7);
	assert_int_equal(s.cpu.quirks, 7);
	assert_int_equal(ibs_fetch_parse_raw(buf, make_raw(buf, 0x3ff, 4), 0, &s), 0);
	assert_int_equal(s.present, 0xf);
	assert_int_equal(s.reg[IBS_FETCH_LINADDR], nth(1));
	assert_int_equal(s.reg[IBS_FETCH_EXTD], nth(3));
	assert_int_equal(ibs_fetch_parse_raw(buf, make_raw(buf, 0x1ff, 4), 0, &s), 0);
	assert_int_equal(s.present, 7); /* something else, caps do not have EXTD */
	make_raw(buf, 0x3ff, 5);
	for (bytes = 0; bytes <= 44; bytes++)
		assert_int_equal(ibs_fetch_parse_raw(buf, bytes, 0, &s),
				 bytes == 28 || bytes == 36 || bytes == 44 ? 0 : -EINVAL);
}

static void test_op_period(void **state)
{
	struct ibs_op_sample s = { .reg[IBS_OP_CTL] = 0x7ULL << 20 | 0x186a };

	(void)state;
	assert_int_equal(ibs_op_period(&s), 100000);
	s.cpu.caps = IBS_CAPS_OPCNTEXT;
	assert_int_equal(ibs_op_period(&s), 100000 + (7 << 20));
	s.reg[IBS_OP_CTL] = ~0ULL;
	assert_int_equal(ibs_op_period(&s), 0x7fffff0);
}

/* ------------------------------------------------------------------ field tables */

/* Bits of a register that a table covers; no two fields overlap but the two page-size encodings. */
static __u64 covered(const struct ibs_field *fields, unsigned int n, unsigned int reg)
{
	__u64 sum = 0;
	unsigned int i;

	for (i = 0; i < n; i++) {
		__u64 mask = fields[i].width == 64 ? ~0ULL : (1ULL << fields[i].width) - 1;

		if (fields[i].reg != reg || !strcmp(fields[i].name, "dc_page_size"))
			continue;
		assert_true(fields[i].lo + fields[i].width <= 64);
		assert_int_equal(sum & mask << fields[i].lo, 0);
		sum |= mask << fields[i].lo;
	}
	return sum;
}

static void test_tables(void **state)
{
	static const __u64 op[IBS_OP_REG_N] = {
		[IBS_OP_CTL] = 0xffffffff07ffffffULL,
		[IBS_OP_RIP] = ~0ULL,
		[IBS_OP_DATA] = 0x000001fcffffffffULL,
		[IBS_OP_DATA2] = 0x3f7,
		[IBS_OP_DATA3] = 0xffffffffffffe1ffULL,
		[IBS_DC_LINADDR] = ~0ULL,
		[IBS_DC_PHYSADDR] = ~0ULL,
		[IBS_BRTARGET] = ~0ULL,
		[IBS_OP_DATA4] = ~0ULL,
	};
	static const __u64 fetch[IBS_FETCH_REG_N] = {
		[IBS_FETCH_CTL] = 0x3fffffffffffffffULL,
		[IBS_FETCH_LINADDR] = ~0ULL,
		[IBS_FETCH_PHYSADDR] = ~0ULL,
		[IBS_FETCH_EXTD] = 0xffff,
	};
	unsigned int r;

	(void)state;
	for (r = 0; r < IBS_OP_REG_N; r++)
		assert_int_equal(covered(ibs_op_fields, IBS_OP_FIELD_N, r), op[r]);
	for (r = 0; r < IBS_FETCH_REG_N; r++)
		assert_int_equal(covered(ibs_fetch_fields, IBS_FETCH_FIELD_N, r), fetch[r]);
}

/* ------------------------------------------------------------------ validity */

#define LD    IBS_OP_DATA3_LD_OP
#define ST    IBS_OP_DATA3_ST_OP
#define L1T   IBS_OP_DATA3_L1TLB_MISS
#define L2T   IBS_OP_DATA3_L2TLB_MISS
#define DCM   IBS_OP_DATA3_DC_MISS
#define UC    IBS_OP_DATA3_UC_MEM_ACC
#define NOMAB IBS_OP_DATA3_NO_MAB
#define LIN   IBS_OP_DATA3_LIN_VALID
#define PHY   IBS_OP_DATA3_PHY_VALID
#define L2M   IBS_OP_DATA3_L2_MISS
#define PF    IBS_OP_DATA3_SW_PF

/* A sample in which as much as possible is valid: a load and store that missed everything. */
static struct ibs_op_sample good_op(enum ibs_op_field f)
{
	struct ibs_op_sample s = {
		.cpu.caps = 0x1ffff,
		.present = (1u << IBS_OP_REG_N) - 1,
		.nregs = IBS_OP_REG_N,
		.reg = {
			[IBS_OP_CTL] = 0x8000000000000000ULL | 9ULL << 59 | 707ULL << 32 | 0x3f186a,
			[IBS_OP_RIP] = 0xffffffff81143526ULL,
			[IBS_OP_DATA] = 0x1bc02550001ULL,
			[IBS_OP_DATA2] = 0x313, /* DRAM, remote node and socket, streaming */
			[IBS_OP_DATA3] = LD | ST | L1T | L2T | DCM | LIN | PHY | L2M | 4 << 22 |
					 5u << 26 | 476ULL << 32 | 99ULL << 48,
			[IBS_DC_LINADDR] = 0xffff899f7c3b5784ULL,
			[IBS_DC_PHYSADDR] = 0x11f7c3b5784ULL,
			[IBS_BRTARGET] = 0xffffffff81143534ULL,
			[IBS_OP_DATA4] = 0x1234,
		},
	};

	if (f == IBS_OP_FIELD_CACHE_HIT_ST)
		s.reg[IBS_OP_DATA2] = 0x22; /* another CCX, O state */
	if (f == IBS_OP_FIELD_DC_PAGE_SIZE)
		s.cpu.caps |= IBS_CAPS_OPDTLBPGSIZE;
	return s;
}

static bool op_valid(const struct ibs_op_sample *s, enum ibs_op_field f)
{
	__u64 value = 0x5a5a;
	bool valid = ibs_op_field(s, f, &value);

	if (!valid)
		assert_int_equal(value, 0x5a5a); /* never 0 for absent */
	return valid;
}

enum { CAPS = 100, QUIRKS, PRESENT };

/* One change to the good sample, and what it makes of the field. */
struct rule {
	int field;
	int where; /* register or one of the above */
	__u64 clear, set;
	bool valid;
};

/* Conditions of a memory access, of DATA2 and of the dTLB, to repeat for each of their fields. */
#define RULES_MEM(F)                                                              \
	{ F, IBS_OP_DATA3, LD | ST, 0, false }, { F, IBS_OP_DATA3, ST, 0, true }, \
	{                                                                         \
		F, IBS_OP_DATA3, LD, 0, true                                      \
	}
#define RULES_CACHED(F)                       \
	{                                     \
		F, IBS_OP_DATA3, 0, UC, false \
	}
#define RULES_MISS(F)                                 \
	{ F, IBS_OP_DATA3, DCM, 0, false },           \
	{                                             \
		F, QUIRKS, 0, IBS_QUIRK_OP_1293, true \
	}
#define RULES_DATA2(F)                                                                \
	{ F, IBS_OP_DATA3, LD | ST, 0, false }, { F, IBS_OP_DATA3, LD, 0, false },    \
		{ F, IBS_OP_DATA3, ST, 0, true }, { F, IBS_OP_DATA3, L2M, 0, false }, \
		{ F, IBS_OP_DATA3, 0, PF | NOMAB, true }, RULES_CACHED(F), RULES_MISS(F)
#define RULES_TLB(F) { F, IBS_OP_DATA3, LIN, 0, false }, RULES_MEM(F)

#define F(NAME) IBS_OP_FIELD_##NAME

static const struct rule op_rules[] = {
	{ F(L3_MISS_ONLY), CAPS, IBS_CAPS_ZEN4, 0, false },
	{ F(CNT_CTL), CAPS, IBS_CAPS_OPCNT, 0, false },
	{ F(OPMAXCNT_EXT), CAPS, IBS_CAPS_OPCNTEXT, 0, false },
	{ F(OPCURCNT), CAPS, IBS_CAPS_RDWROPCNT, 0, false },
	{ F(LDLAT_THRSH), CAPS, IBS_CAPS_OPLDLAT, 0, false },
	{ F(LDLAT_EN), CAPS, IBS_CAPS_OPLDLAT, 0, false },
	{ F(OP_RIP_INVALID), CAPS, IBS_CAPS_RIPINVALIDCHK, 0, false },
	{ F(OP_BRN_FUSE), CAPS, IBS_CAPS_OPBRNFUSE, 0, false },

	{ F(RIP), IBS_OP_DATA, 0, IBS_OP_DATA_RIP_INVALID, false },
	{ F(OP_RETURN), IBS_OP_DATA, IBS_OP_DATA_BRN_RET, 0, false },
	{ F(OP_BRN_TAKEN), IBS_OP_DATA, IBS_OP_DATA_BRN_RET, 0, false },
	{ F(OP_BRN_MISP), IBS_OP_DATA, IBS_OP_DATA_BRN_RET, 0, false },
	{ F(BR_TARGET), IBS_OP_DATA, IBS_OP_DATA_BRN_RET, 0, false },
	{ F(BR_TARGET), IBS_BRTARGET, ~0ULL, 0, false },
	{ F(BR_TARGET), PRESENT, 1 << IBS_BRTARGET, 0, false },
	{ F(OP_DATA4), PRESENT, 1 << IBS_OP_DATA4, 0, false },
	{ F(OP_DATA4), IBS_OP_DATA4, ~0ULL, 0, true },

	RULES_DATA2(F(DATA_SRC_LO)),
	RULES_DATA2(F(DATA_SRC_HI)),
	{ F(DATA_SRC_HI), CAPS, IBS_CAPS_ZEN4, 0, false },
	RULES_DATA2(F(RMT_NODE)),
	{ F(RMT_NODE), IBS_OP_DATA2, 7, 0, false }, /* no source */
	{ F(RMT_NODE), IBS_OP_DATA2, 7, 2, false }, /* caches: near and far are in the code */
	{ F(RMT_NODE), IBS_OP_DATA2, 7, 5, false },
	{ F(RMT_NODE), IBS_OP_DATA2, 7, 7, false },    /* IO */
	{ F(RMT_NODE), IBS_OP_DATA2, 7, 6, true },     /* long-latency DIMM */
	{ F(RMT_NODE), IBS_OP_DATA2, 7, 0x40, true },  /* 8, extension memory */
	{ F(RMT_NODE), IBS_OP_DATA2, 0, 0x40, false }, /* 11, reserved */
	RULES_DATA2(F(CACHE_HIT_ST)),
	{ F(CACHE_HIT_ST), IBS_OP_DATA2, 7, 1, true },
	{ F(CACHE_HIT_ST), IBS_OP_DATA2, 7, 5, true },
	{ F(CACHE_HIT_ST), IBS_OP_DATA2, 7, 3, false },
	{ F(CACHE_HIT_ST), IBS_OP_DATA2, 7, 4, false },
	{ F(CACHE_HIT_ST), IBS_OP_DATA2, 7, 0, false },
	{ F(CACHE_HIT_ST), IBS_OP_DATA2, 0, 0x40, false }, /* 10, reserved */
	{ F(CACHE_HIT_ST), CAPS, IBS_CAPS_ZEN4, 0, true }, /* 2 is a cache before Zen 4 too */
	{ F(CACHE_HIT_ST), QUIRKS, 0, IBS_QUIRK_NO_CACHE_HIT_ST_A, false },
	{ F(CACHE_HIT_ST), QUIRKS, 0, IBS_QUIRK_NO_CACHE_HIT_ST_B, false },
	{ F(STRM_ST), CAPS, IBS_CAPS_STRMST_RMTSOCKET, 0, false },
	{ F(STRM_ST), IBS_OP_DATA3, ST, 0, false },
	{ F(STRM_ST), IBS_OP_DATA3, LD | DCM | L2M, 0, true },
	RULES_DATA2(F(RMT_SOCKET)),
	{ F(RMT_SOCKET), CAPS, IBS_CAPS_STRMST_RMTSOCKET, 0, false },
	{ F(RMT_SOCKET), IBS_OP_DATA2, 7, 2, false },

	RULES_TLB(F(DC_L1TLB_MISS)),
	{ F(DC_L1TLB_MISS), IBS_OP_DATA3, PHY, 0, true },
	{ F(DC_L1TLB_MISS), IBS_OP_DATA3, L1T, 0, true },
	RULES_TLB(F(DC_L2TLB_MISS)),
	{ F(DC_L2TLB_MISS), IBS_OP_DATA3, L1T, 0, false },
	RULES_TLB(F(DC_L1TLB_HIT_2M)),
	{ F(DC_L1TLB_HIT_2M), CAPS, 0, IBS_CAPS_OPDTLBPGSIZE, false },
	RULES_TLB(F(DC_L1TLB_HIT_1G)),
	{ F(DC_L1TLB_HIT_1G), CAPS, 0, IBS_CAPS_OPDTLBPGSIZE, false },
	RULES_TLB(F(DC_L2TLB_HIT_2M)),
	{ F(DC_L2TLB_HIT_2M), IBS_OP_DATA3, L1T, 0, false },
	{ F(DC_L2TLB_HIT_2M), CAPS, 0, IBS_CAPS_OPDTLBPGSIZE, false },
	RULES_TLB(F(DC_L2_TLB_HIT_1G)),
	{ F(DC_L2_TLB_HIT_1G), IBS_OP_DATA3, L1T, 0, false },
	{ F(DC_L2_TLB_HIT_1G), CAPS, 0, IBS_CAPS_OPDTLBPGSIZE, false },
	RULES_MEM(F(DC_PAGE_SIZE)),
	{ F(DC_PAGE_SIZE), IBS_OP_DATA3, PHY, 0, false },
	{ F(DC_PAGE_SIZE), IBS_OP_DATA3, LIN, 0, true },
	{ F(DC_PAGE_SIZE), CAPS, IBS_CAPS_OPDTLBPGSIZE, 0, false },

	RULES_MEM(F(DC_MISS)),
	RULES_CACHED(F(DC_MISS)),
	{ F(DC_MISS), IBS_OP_DATA3, DCM, 0, true },
	RULES_MEM(F(L2_MISS)),
	RULES_CACHED(F(L2_MISS)),
	RULES_MISS(F(L2_MISS)),
	{ F(L2_MISS), IBS_OP_DATA3, L2M, 0, true },
	{ F(L2_MISS), IBS_OP_DATA3, 0, PF | NOMAB, true },
	RULES_MEM(F(OP_DC_MISS_OPEN_MEM_REQS)),
	RULES_CACHED(F(OP_DC_MISS_OPEN_MEM_REQS)),
	RULES_MISS(F(OP_DC_MISS_OPEN_MEM_REQS)),
	{ F(OP_DC_MISS_OPEN_MEM_REQS), IBS_OP_DATA3, 0x3fu << 26, 0, false },
	RULES_MEM(F(DC_MIS_ACC)),
	RULES_MEM(F(DC_WC_MEM_ACC)),
	RULES_MEM(F(DC_UC_MEM_ACC)),
	RULES_MEM(F(DC_LOCKED_OP)),
	RULES_MEM(F(DC_MISS_NO_MAB_ALLOC)),
	RULES_MEM(F(DC_LIN_ADDR_VALID)),
	RULES_MEM(F(DC_PHY_ADDR_VALID)),
	RULES_MEM(F(SW_PF)),
	RULES_MEM(F(OP_MEM_WIDTH)),
	{ F(OP_MEM_WIDTH), IBS_OP_DATA3, 15 << 22, 0, false },

	RULES_CACHED(F(DC_MISS_LAT)),
	RULES_MISS(F(DC_MISS_LAT)),
	{ F(DC_MISS_LAT), IBS_OP_DATA3, LD, 0, false }, /* stores have none */
	{ F(DC_MISS_LAT), IBS_OP_DATA3, 0, PF, false },
	{ F(DC_MISS_LAT), IBS_OP_DATA3, L2M, 0, true },
	{ F(DC_MISS_LAT), IBS_OP_DATA3, 0, NOMAB, true },
	RULES_TLB(F(TLB_REFILL_LAT)),
	{ F(TLB_REFILL_LAT), IBS_OP_DATA3, L1T, 0, false },
	{ F(TLB_REFILL_LAT), IBS_OP_DATA3, PHY, 0, false },
	{ F(TLB_REFILL_LAT), IBS_OP_DATA3, DCM, 0, true },

	RULES_MEM(F(DC_LIN_AD)),
	{ F(DC_LIN_AD), IBS_OP_DATA3, LIN, 0, false },
	{ F(DC_LIN_AD), IBS_OP_DATA3, PHY, 0, true },
	RULES_MEM(F(DC_PHYS_AD)),
	{ F(DC_PHYS_AD), IBS_OP_DATA3, PHY, 0, false },
	{ F(DC_PHYS_AD), IBS_OP_DATA3, LIN, 0, false }, /* Zen 4 */
	{ F(DC_PHYS_AD), IBS_DC_PHYSADDR, ~0ULL, 0, false },
};

static void apply(const struct rule *r, struct ibs_cpu *cpu, __u32 *present, __u64 *regs)
{
	if (r->where == CAPS)
		cpu->caps = (cpu->caps & ~r->clear) | r->set;
	else if (r->where == QUIRKS)
		cpu->quirks = (cpu->quirks & ~r->clear) | r->set;
	else if (r->where == PRESENT)
		*present &= ~r->clear;
	else
		regs[r->where] = (regs[r->where] & ~r->clear) | r->set;
}

static void test_op_validity(void **state)
{
	static const char *const functions[] = {
#define FUNCTION(NAME, perf, name, reg, lo, width, valid) #valid,
		IBS_OP_FIELD_TABLE(FUNCTION)
#undef FUNCTION
	};
	unsigned int i, f;

	(void)state;
	for (f = 0; f < IBS_OP_FIELD_N; f++) {
		struct ibs_op_sample s = good_op(f);
		bool ruled = !strcmp(functions[f], "always");

		if (!op_valid(&s, f))
			fail_msg("%s absent in a good sample", ibs_op_fields[f].name);
		s.present &= ~(1u << ibs_op_fields[f].reg);
		if (op_valid(&s, f))
			fail_msg("%s without its register", ibs_op_fields[f].name);
		for (i = 0; i < ARRAY_SIZE(op_rules) && !ruled; i++)
			ruled = op_rules[i].field == (int)f && !op_rules[i].valid;
		if (!ruled)
			fail_msg("%s has a condition and no test", ibs_op_fields[f].name);
	}
	for (i = 0; i < ARRAY_SIZE(op_rules); i++) {
		const struct rule *r = &op_rules[i];
		struct ibs_op_sample s = good_op(r->field);

		apply(r, &s.cpu, &s.present, s.reg);
		if (op_valid(&s, r->field) != r->valid)
			fail_msg("%s, rule %u (%d clear %#llx set %#llx): should be %s",
				 ibs_op_fields[r->field].name, i, r->where, r->clear, r->set,
				 r->valid ? "valid" : "absent");
	}
}

static void test_op_values(void **state)
{
	static const struct {
		enum ibs_op_field field;
		__u64 value;
	} want[] = {
		{ F(OPMAXCNT), 0x186a },
		{ F(L3_MISS_ONLY), 1 },
		{ F(OP_EN), 1 },
		{ F(OP_VAL), 1 },
		{ F(CNT_CTL), 1 },
		{ F(OPMAXCNT_EXT), 3 },
		{ F(OPCURCNT), 707 },
		{ F(LDLAT_THRSH), 9 },
		{ F(LDLAT_EN), 1 },
		{ F(RIP), 0xffffffff81143526ULL },
		{ F(COMP_TO_RET_CTR), 1 },
		{ F(TAG_TO_RET_CTR), 597 },
		{ F(OP_RETURN), 1 },
		{ F(OP_BRN_TAKEN), 1 },
		{ F(OP_BRN_MISP), 1 },
		{ F(OP_BRN_RET), 1 },
		{ F(OP_RIP_INVALID), 0 },
		{ F(OP_BRN_FUSE), 1 },
		{ F(OP_MICROCODE), 1 },
		{ F(DATA_SRC_LO), 3 },
		{ F(DATA_SRC_HI), 0 },
		{ F(RMT_NODE), 1 },
		{ F(CACHE_HIT_ST), 1 },
		{ F(STRM_ST), 1 },
		{ F(RMT_SOCKET), 1 },
		{ F(OP_MEM_WIDTH), 4 },
		{ F(OP_DC_MISS_OPEN_MEM_REQS), 5 },
		{ F(DC_MISS_LAT), 476 },
		{ F(TLB_REFILL_LAT), 99 },
		{ F(DC_LIN_AD), 0xffff899f7c3b5784ULL },
		{ F(DC_PHYS_AD), 0x11f7c3b5784ULL },
		{ F(BR_TARGET), 0xffffffff81143534ULL },
		{ F(OP_DATA4), 0x1234 },
	};
	unsigned int i;

	(void)state;
	for (i = 0; i < ARRAY_SIZE(want); i++) {
		struct ibs_op_sample s = good_op(want[i].field);
		__u64 value;

		assert_true(ibs_op_field(&s, want[i].field, &value));
		if (value != want[i].value)
			fail_msg("%s is %#llx", ibs_op_fields[want[i].field].name, value);
	}
}

/* Conditions that hold together with others, which one change to the good sample cannot show. */
static void test_op_combined(void **state)
{
	static const __u64 causes[] = { PF, NOMAB };
	static const enum ibs_op_field spoilt[] = { F(DATA_SRC_LO),
						    F(DATA_SRC_HI),
						    F(RMT_NODE),
						    F(CACHE_HIT_ST),
						    F(RMT_SOCKET),
						    F(L2_MISS),
						    F(OP_DC_MISS_OPEN_MEM_REQS) };
	struct ibs_op_sample s;
	unsigned int i, j;

	(void)state;
	for (i = 0; i < ARRAY_SIZE(causes); i++) {
		for (j = 0; j < ARRAY_SIZE(spoilt); j++) {
			s = good_op(spoilt[j]);
			s.reg[IBS_OP_DATA3] |= causes[i];
			assert_true(op_valid(&s, spoilt[j]));
			s.cpu.quirks = IBS_QUIRK_OP_1293;
			assert_false(op_valid(&s, spoilt[j]));
		}
		s = good_op(F(DC_MISS));
		s.reg[IBS_OP_DATA3] |= causes[i];
		s.cpu.quirks = IBS_QUIRK_OP_1293;
		assert_true(op_valid(&s, F(DC_MISS)));
		assert_true(op_valid(&s, F(SW_PF)));
	}
	/* before Zen 4 a physical address needs no linear one, nor TlbRefillLat a physical one */
	s = good_op(F(DC_PHYS_AD));
	s.cpu.caps &= ~IBS_CAPS_ZEN4;
	s.reg[IBS_OP_DATA3] &= ~LIN;
	assert_true(op_valid(&s, F(DC_PHYS_AD)));
	s = good_op(F(TLB_REFILL_LAT));
	s.cpu.caps &= ~IBS_CAPS_ZEN4;
	s.reg[IBS_OP_DATA3] &= ~PHY;
	assert_true(op_valid(&s, F(TLB_REFILL_LAT)));
	/* before Zen 4 only DRAM is memory, and only 2 a cache */
	for (i = 0; i < 8; i++) {
		s = good_op(F(RMT_NODE));
		s.cpu.caps &= ~IBS_CAPS_ZEN4;
		s.reg[IBS_OP_DATA2] = 0x50 | i;
		assert_int_equal(op_valid(&s, F(RMT_NODE)), i == 3);
		assert_int_equal(op_valid(&s, F(CACHE_HIT_ST)), i == 2);
	}
	/* with the page size encoding, TLB misses need the physical address too */
	s = good_op(F(DC_PAGE_SIZE));
	assert_true(op_valid(&s, F(DC_L1TLB_MISS)));
	assert_true(op_valid(&s, F(DC_L2TLB_MISS)));
	s.reg[IBS_OP_DATA3] &= ~PHY;
	assert_false(op_valid(&s, F(DC_L1TLB_MISS)));
	assert_false(op_valid(&s, F(DC_L2TLB_MISS)));
	assert_false(op_valid(&s, F(TLB_REFILL_LAT)));
	/* RipInvalid is a reserved bit where caps do not have it */
	s = good_op(F(RIP));
	s.cpu.caps &= ~IBS_CAPS_RIPINVALIDCHK;
	s.reg[IBS_OP_DATA] |= IBS_OP_DATA_RIP_INVALID;
	assert_true(op_valid(&s, F(RIP)));
	assert_false(op_valid(&s, IBS_OP_FIELD_N));
}

static void test_metrics(void **state)
{
	static const struct {
		enum ibs_metric metric;
		enum ibs_op_field field;
	} same[] = {
		{ IBS_METRIC_DC_MISS_LAT, F(DC_MISS_LAT) },
		{ IBS_METRIC_TLB_REFILL_LAT, F(TLB_REFILL_LAT) },
		{ IBS_METRIC_TAG_TO_RET, F(TAG_TO_RET_CTR) },
		{ IBS_METRIC_COMP_TO_RET, F(COMP_TO_RET_CTR) },
	};
	unsigned int i;
	__u64 bits;

	(void)state;
	assert_int_equal(ARRAY_SIZE(same), IBS_OP_METRIC_N);
	for (i = 0; i < ARRAY_SIZE(same); i++) {
		/* every subset of the bits that any metric depends on */
		for (bits = 0; bits < 1 << 9; bits++) {
			static const __u64 flag[] = { LD, ST, L1T, DCM, UC, LIN, PHY, PF, 0 };
			struct ibs_op_sample s = good_op(same[i].field);
			__u64 d3 = 476ULL << 32 | 99ULL << 48, value;
			unsigned int b;
			bool valid;

			for (b = 0; b < ARRAY_SIZE(flag); b++)
				if (bits >> b & 1)
					d3 |= flag[b];
			if (bits >> 8 & 1)
				s.cpu.caps &= ~IBS_CAPS_ZEN4;
			s.reg[IBS_OP_DATA3] = d3;
			valid = ibs_op_field(&s, same[i].field, &value);
			assert_int_equal(valid,
					 ibs_op_metric_valid(same[i].metric, s.cpu.caps, d3));
			if (valid)
				assert_int_equal(value, ibs_op_metric(same[i].metric, s.reg, d3));
		}
	}
}

static struct ibs_fetch_sample good_fetch(void)
{
	struct ibs_fetch_sample s = {
		.cpu.caps = 0xbff,
		.present = (1u << IBS_FETCH_REG_N) - 1,
		.nregs = IBS_FETCH_REG_N,
		.reg = {
			[IBS_FETCH_CTL] = 0x3fffULL << 48 | 321ULL << 32 | 0x1234ULL << 16 | 0x186a,
			[IBS_FETCH_LINADDR] = 0xffffffff81143526ULL,
			[IBS_FETCH_PHYSADDR] = 0x1143526,
			[IBS_FETCH_EXTD] = 0x77,
		},
	};

	s.reg[IBS_FETCH_CTL] &= ~(3ULL << 53);
	s.reg[IBS_FETCH_CTL] |= 1ULL << 53;
	return s;
}

static bool fetch_valid(const struct ibs_fetch_sample *s, enum ibs_fetch_field f)
{
	__u64 value = 0x5a5a;
	bool valid = ibs_fetch_field(s, f, &value);

	if (!valid)
		assert_int_equal(value, 0x5a5a);
	return valid;
}

#define C(NAME) IBS_FETCH_CLASS_##NAME
#define I(NAME) IBS_FETCH_ITLB_##NAME
#define DONE	IBS_FETCH_CTL_COMP
#define PHYS	IBS_FETCH_CTL_PHY_VALID
#define IC	IBS_FETCH_CTL_IC_MISS
#define IL2	IBS_FETCH_CTL_L2_MISS
#define IL3	IBS_FETCH_CTL_L3_MISS
#define OC	IBS_FETCH_CTL_OC_MISS
#define W1	IBS_FETCH_CTL_L1TLB_MISS
#define W2	IBS_FETCH_CTL_L2TLB_MISS

/* What a fetch is, by the words of the documents: on Zen 2, Zen 3, Zen 4 and Zen 6. */
static void test_fetch_classes(void **state)
{
	static const struct ibs_cpu cpus[] = {
		{ .caps = 0x3ff },
		{ .caps = 0x3ff, .quirks = IBS_QUIRK_FETCH_1238 | IBS_QUIRK_FETCH_1347 },
		{ .caps = 0xbff },
		{ .caps = 0x9fbff, .quirks = IBS_QUIRK_FETCH_NEEDS_PHY_A },
	};
	static const struct {
		__u64 ctl;
		int page;
		enum ibs_fetch_class class[4];
		enum ibs_fetch_itlb itlb[4];
		bool lat, refill, no_phys; /* latencies valid; on Zen 6 neither if no_phys */
	} rows[] = {
		{ DONE | PHYS,
		  0,
		  { C(L1), C(L1_L2), C(OP_CACHE), C(OP_CACHE) },
		  { I(L1), I(L1), I(L1), I(L1) },
		  true,
		  false,
		  false },
		{ DONE | PHYS | OC,
		  0,
		  { C(L1), C(L1_L2), C(L1), C(L1) },
		  { I(L1), I(L1), I(L1), I(L1) },
		  true,
		  false,
		  false },
		{ DONE | PHYS | OC | IC | W1,
		  1,
		  { C(L2), C(L1_L2), C(L2), C(L2) },
		  { I(L2), I(L2), I(L2), I(L2) },
		  true,
		  true,
		  false },
		{ DONE | PHYS | OC | IC | IL2 | W1 | W2,
		  0,
		  { C(L2_MISS), C(L2_MISS), C(L3), C(L3) },
		  { I(WALK_4K), I(WALK_4K), I(WALK_4K), I(WALK_4K) },
		  true,
		  true,
		  false },
		{ DONE | PHYS | OC | IC | IL2 | IL3 | W1 | W2,
		  1,
		  { C(L2_MISS), C(L2_MISS), C(L3_MISS), C(L3_MISS) },
		  { I(WALK_2M), I(WALK_16K), I(WALK_2M), I(WALK_2M) },
		  true,
		  true,
		  false },
		{ DONE | PHYS | W1 | W2,
		  2,
		  { C(L1), C(L1_L2), C(OP_CACHE), C(OP_CACHE) },
		  { I(WALK_1G), I(WALK_2M), I(WALK_1G), I(WALK_1G) },
		  true,
		  true,
		  false },
		{ DONE | PHYS | W1 | W2,
		  3,
		  { C(L1), C(L1_L2), C(OP_CACHE), C(OP_CACHE) },
		  { I(WALK), I(WALK_1G), I(WALK), I(WALK) },
		  true,
		  true,
		  false },
		{ DONE | W1 | W2,
		  0,
		  { C(L1), C(L1_L2), C(OP_CACHE), C(UNKNOWN) },
		  { I(WALK), I(WALK), I(WALK), I(UNKNOWN) },
		  true,
		  true,
		  true },
		{ DONE,
		  0,
		  { C(L1), C(L1_L2), C(OP_CACHE), C(UNKNOWN) },
		  { I(UNKNOWN), I(UNKNOWN), I(UNKNOWN), I(UNKNOWN) },
		  true,
		  false,
		  true },
		{ PHYS,
		  0,
		  { C(ABORTED), C(ABORTED), C(ABORTED), C(ABORTED) },
		  { I(L1), I(L1), I(L1), I(L1) },
		  false,
		  false,
		  false },
		{ W1,
		  0,
		  { C(ABORTED), C(ABORTED), C(ABORTED), C(ABORTED) },
		  { I(L2), I(L2), I(L2), I(UNKNOWN) },
		  false,
		  true,
		  true },
		{ IC,
		  0,
		  { C(ABORTED), C(KILLED), C(ABORTED), C(ABORTED) },
		  { I(UNKNOWN), I(UNKNOWN), I(UNKNOWN), I(UNKNOWN) },
		  false,
		  false,
		  true },
		{ 0,
		  0,
		  { C(KILLED), C(KILLED), C(KILLED), C(ABORTED) },
		  { I(UNKNOWN), I(UNKNOWN), I(UNKNOWN), I(UNKNOWN) },
		  false,
		  false,
		  true },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		for (int c = 0; c < 4; c++) {
			const __u64 ctl = rows[i].ctl | (__u64)rows[i].page << 53 | 321ULL << 32;
			const __u64 regs[IBS_FETCH_REG_N] = { ctl, 0, 0, 0xab000077 };
			const bool known = c != 3 || !rows[i].no_phys;

			if (ibs_fetch_class(cpus[c], ctl) != rows[i].class[c] ||
			    ibs_fetch_itlb(cpus[c], ctl) != rows[i].itlb[c])
				fail_msg("row %zu, processor %d: %d, %d", i, c,
					 ibs_fetch_class(cpus[c], ctl),
					 ibs_fetch_itlb(cpus[c], ctl));
			assert_int_equal(ibs_fetch_metric_valid(IBS_METRIC_FETCH_LAT, cpus[c], ctl),
					 rows[i].lat && known);
			assert_int_equal(
				ibs_fetch_metric_valid(IBS_METRIC_ITLB_REFILL_LAT, cpus[c], ctl),
				rows[i].refill && known);
			assert_int_equal(ibs_fetch_metric(IBS_METRIC_FETCH_LAT, regs, *regs), 321);
			assert_int_equal(ibs_fetch_metric(IBS_METRIC_ITLB_REFILL_LAT, regs, 0),
					 0x77);
		}
	}
	assert_false(ibs_fetch_metric_valid(IBS_METRIC_ITLB_REFILL_LAT,
					    (struct ibs_cpu){ .caps = 0x1f }, W1));
	assert_true(ibs_fetch_raw_size_ok(0x1f, 28) && ibs_fetch_raw_size_ok(0x3ff, 36) &&
		    ibs_fetch_raw_size_ok(0x3ff, 44));
	assert_false(ibs_fetch_raw_size_ok(0x3ff, 28) || ibs_fetch_raw_size_ok(0x3ff, 40) ||
		     ibs_fetch_raw_size_ok(0x1f, 20));
}

#undef C
#undef I

#define G(NAME) IBS_FETCH_FIELD_##NAME

static const struct rule fetch_rules[] = {
	{ G(IC_MISS), QUIRKS, 0, IBS_QUIRK_FETCH_1238, false },
	{ G(L1TLB_PGSZ), IBS_FETCH_CTL, IBS_FETCH_CTL_PHY_VALID, 0, false },
	{ G(L1TLB_PGSZ), QUIRKS, 0, IBS_QUIRK_FETCH_1347, true },
	{ G(L2_MISS), IBS_FETCH_CTL, IBS_FETCH_CTL_COMP, 0, false },
	{ G(L3_MISS_ONLY), CAPS, IBS_CAPS_ZEN4, 0, false },
	{ G(OC_MISS), CAPS, IBS_CAPS_ZEN4, 0, false },
	{ G(L3_MISS), CAPS, IBS_CAPS_ZEN4, 0, false },
	{ G(LIN_AD), IBS_FETCH_LINADDR, ~0ULL, 0, true },
	{ G(LIN_AD), QUIRKS, 0, IBS_QUIRK_FETCH_1197, true },
	{ G(PHYS_AD), IBS_FETCH_CTL, IBS_FETCH_CTL_PHY_VALID, 0, false },
	{ G(PHYS_AD), IBS_FETCH_PHYSADDR, ~0ULL, 0, false },
	{ G(ITLB_REFILL_LAT), PRESENT, 1 << IBS_FETCH_EXTD, 0, false },
};

static void test_fetch_validity(void **state)
{
	static const __u32 needs_phy[] = { IBS_QUIRK_FETCH_NEEDS_PHY_A, IBS_QUIRK_FETCH_NEEDS_PHY_B,
					   IBS_QUIRK_FETCH_NEEDS_PHY_C,
					   IBS_QUIRK_FETCH_NEEDS_PHY_D };
	static const bool status[IBS_FETCH_FIELD_N] = {
		[G(LAT)] = true,	[G(IC_MISS)] = true,
		[G(L1TLB_PGSZ)] = true, [G(L1TLB_MISS)] = true,
		[G(L2TLB_MISS)] = true, [G(L2_MISS)] = true,
		[G(OC_MISS)] = true,	[G(L3_MISS)] = true,
		[G(PHYS_AD)] = true,	[G(ITLB_REFILL_LAT)] = true,
	};
	struct ibs_fetch_sample s;
	unsigned int i, f;
	__u64 value;

	(void)state;
	for (f = 0; f < IBS_FETCH_FIELD_N; f++) {
		s = good_fetch();
		if (!fetch_valid(&s, f))
			fail_msg("%s absent in a good sample", ibs_fetch_fields[f].name);
		for (i = 0; i < ARRAY_SIZE(needs_phy); i++) {
			s = good_fetch();
			s.cpu.quirks = needs_phy[i];
			assert_true(fetch_valid(&s, f));
			s.reg[IBS_FETCH_CTL] &= ~IBS_FETCH_CTL_PHY_VALID;
			if (fetch_valid(&s, f) == status[f])
				fail_msg("%s without physical address", ibs_fetch_fields[f].name);
		}
		/* elsewhere only page size and address need it */
		s.cpu.quirks = 0;
		assert_int_equal(fetch_valid(&s, f), f != G(L1TLB_PGSZ) && f != G(PHYS_AD));
	}
	for (i = 0; i < ARRAY_SIZE(fetch_rules); i++) {
		const struct rule *r = &fetch_rules[i];

		s = good_fetch();
		apply(r, &s.cpu, &s.present, s.reg);
		if (fetch_valid(&s, r->field) != r->valid)
			fail_msg("%s, rule %u: should be %s", ibs_fetch_fields[r->field].name, i,
				 r->valid ? "valid" : "absent");
	}
	s = good_fetch();
	s.cpu.quirks = IBS_QUIRK_FETCH_1197;
	s.reg[IBS_FETCH_LINADDR] = 0;
	assert_false(fetch_valid(&s, G(LIN_AD)));
	assert_false(fetch_valid(&s, IBS_FETCH_FIELD_N));

	s = good_fetch();
	assert_true(ibs_fetch_field(&s, G(LAT), &value));
	assert_int_equal(value, 321);
	assert_true(ibs_fetch_field(&s, G(MAXCNT), &value));
	assert_int_equal(value, 0x186a);
	assert_true(ibs_fetch_field(&s, G(CNT), &value));
	assert_int_equal(value, 0x1234);
	assert_true(ibs_fetch_field(&s, G(L1TLB_PGSZ), &value));
	assert_int_equal(value, 1);
	assert_true(ibs_fetch_field(&s, G(ITLB_REFILL_LAT), &value));
	assert_int_equal(value, 0x77);
}

static void test_fetch_page_size(void **state)
{
	static const __u64 plain[4] = { 4096, 2 << 20, 1 << 30, 0 };
	static const __u64 erratum[4] = { 4096, 16384, 2 << 20, 1 << 30 };
	unsigned int code;

	(void)state;
	for (code = 0; code < 4; code++) {
		struct ibs_fetch_sample s = good_fetch();
		__u64 bytes = 0;

		s.reg[IBS_FETCH_CTL] &= ~(3ULL << 53);
		s.reg[IBS_FETCH_CTL] |= (__u64)code << 53;
		assert_int_equal(ibs_fetch_page_size(&s, &bytes), plain[code] != 0);
		assert_int_equal(bytes, plain[code]);
		s.cpu.quirks = IBS_QUIRK_FETCH_1347;
		assert_true(ibs_fetch_page_size(&s, &bytes));
		assert_int_equal(bytes, erratum[code]);
		s.reg[IBS_FETCH_CTL] &= ~IBS_FETCH_CTL_PHY_VALID;
		assert_false(ibs_fetch_page_size(&s, &bytes));
	}
}

/* ------------------------------------------------------------------ what op.h says */

#define CPU(c, q) ((struct ibs_cpu){ .caps = (c), .quirks = (q) })

static const __u64 ld_miss = LD | DCM | L2M;

static enum ibs_src src_of(struct ibs_cpu cpu, __u64 data2, __u64 data3)
{
	__u64 regs[IBS_OP_REG_N] = { [IBS_OP_DATA2] = data2, [IBS_OP_DATA3] = data3 };

	return ibs_op_src(cpu, regs);
}

static void test_data_src(void **state)
{
	/* [code][RmtNode]; the rest is reserved */
	static const struct {
		unsigned int code;
		enum ibs_src near, far;
	} zen4[] = {
		{ 1, IBS_SRC_L3, IBS_SRC_L3 },
		{ 2, IBS_SRC_NEAR_CACHE, IBS_SRC_NEAR_CACHE },
		{ 3, IBS_SRC_DRAM, IBS_SRC_REMOTE_DRAM },
		{ 5, IBS_SRC_REMOTE_CACHE, IBS_SRC_REMOTE_CACHE },
		{ 6, IBS_SRC_PMEM, IBS_SRC_REMOTE_PMEM },
		{ 7, IBS_SRC_IO, IBS_SRC_IO },
		{ 8, IBS_SRC_CXL, IBS_SRC_REMOTE_CXL },
		{ 12, IBS_SRC_PEER, IBS_SRC_PEER },
	}, coarse[] = {
		{ 2, IBS_SRC_LOCAL_CACHE, IBS_SRC_LOCAL_CACHE },
		{ 3, IBS_SRC_DRAM, IBS_SRC_REMOTE_DRAM },
		{ 4, IBS_SRC_REMOTE_CACHE, IBS_SRC_REMOTE_CACHE },
		{ 7, IBS_SRC_IO, IBS_SRC_IO },
	};
	unsigned int code, i, rmt;

	(void)state;
	for (code = 0; code < 32; code++) {
		for (rmt = 0; rmt < 2; rmt++) {
			__u64 data2 = (code & 7) | rmt << 4 | (code >> 3) << 6;
			enum ibs_src want4 = IBS_SRC_UNKNOWN, want = IBS_SRC_UNKNOWN;

			for (i = 0; i < ARRAY_SIZE(zen4); i++)
				if (zen4[i].code == code)
					want4 = rmt ? zen4[i].far : zen4[i].near;
			for (i = 0; i < ARRAY_SIZE(coarse); i++) /* the upper bits are not there */
				if (coarse[i].code == (code & 7))
					want = rmt ? coarse[i].far : coarse[i].near;
			assert_int_equal(src_of(CPU(0xbff, 0), data2, ld_miss), want4);
			assert_int_equal(src_of(CPU(0x3ff, 0), data2, ld_miss), want);
			/* bits around it do not matter */
			assert_int_equal(src_of(CPU(0xbff, 0), data2 | ~0xd7ULL, ld_miss), want4);
			/* without a source, a load that joined a miss */
			assert_int_equal(src_of(CPU(0xbff, 0), data2, ld_miss | NOMAB),
					 want4 == IBS_SRC_UNKNOWN ? IBS_SRC_MAB : want4);
		}
	}
}

static void test_src_order(void **state)
{
	const struct ibs_cpu cpu = CPU(0xbff, 0), zen3 = CPU(0x3ff, ibs_quirks(0x19, 1));

	(void)state;
	assert_int_equal(src_of(cpu, 3, DCM | L2M | UC | NOMAB), IBS_SRC_NONE);
	assert_int_equal(src_of(cpu, 3, ld_miss | UC), IBS_SRC_UNCACHED);
	assert_int_equal(src_of(cpu, 3, LD | UC), IBS_SRC_UNCACHED);
	assert_int_equal(src_of(cpu, 7, LD | UC), IBS_SRC_IO);
	assert_int_equal(src_of(cpu, 0x47, LD | UC), IBS_SRC_UNCACHED);	      /* 15 is not IO */
	assert_int_equal(src_of(zen3, 0x47, LD | UC), IBS_SRC_IO);	      /* 7, no upper bits */
	assert_int_equal(src_of(zen3, 7, LD | UC | NOMAB), IBS_SRC_UNCACHED); /* erratum 1293 */
	assert_int_equal(src_of(cpu, 7, ST | UC), IBS_SRC_UNCACHED); /* DATA2 is for loads */
	assert_int_equal(src_of(cpu, 3, LD | L2M | NOMAB), IBS_SRC_L1);
	assert_int_equal(src_of(cpu, 3, ST | L2M), IBS_SRC_L1);
	assert_int_equal(src_of(cpu, 3, LD | DCM | NOMAB), IBS_SRC_L2);
	assert_int_equal(src_of(cpu, 3, ST | DCM), IBS_SRC_L2);
	assert_int_equal(src_of(cpu, 3, ST | DCM | L2M), IBS_SRC_UNKNOWN);
	assert_int_equal(src_of(cpu, 3, ST | DCM | L2M | NOMAB), IBS_SRC_MAB);
	assert_int_equal(src_of(cpu, 3, LD | ST | DCM | L2M), IBS_SRC_DRAM);
	assert_int_equal(src_of(cpu, 3, ld_miss | PF), IBS_SRC_DRAM);
	/* erratum 1293: neither L2Miss nor DATA2 */
	assert_int_equal(src_of(zen3, 3, ld_miss), IBS_SRC_DRAM);
	assert_int_equal(src_of(zen3, 3, LD | DCM), IBS_SRC_L2);
	assert_int_equal(src_of(zen3, 3, ld_miss | PF), IBS_SRC_UNKNOWN);
	assert_int_equal(src_of(zen3, 3, LD | DCM | PF), IBS_SRC_UNKNOWN);
	assert_int_equal(src_of(zen3, 3, ld_miss | NOMAB), IBS_SRC_MAB);
	assert_int_equal(src_of(zen3, 3, LD | DCM | NOMAB), IBS_SRC_MAB);
	assert_int_equal(src_of(zen3, 3, LD | PF | NOMAB), IBS_SRC_L1);
}

static void test_kind(void **state)
{
	/*
	 * [SwPf][Locked] for each of load+store, then the same with BrnRet: a branch only without
	 * memory access. l load, s store, k locked, p prefetch, b branch, o other.
	 */
	static const char *const want[2][4] = {
		{ "oooo", "lkpp", "skpp", "lkpp" },
		{ "bbbb", "lkpp", "skpp", "lkpp" },
	};
	static const char letters[] = "lskpbo";
	unsigned int brn, mem, pf, lock;

	(void)state;
	for (brn = 0; brn < 2; brn++)
		for (mem = 0; mem < 4; mem++)
			for (pf = 0; pf < 2; pf++)
				for (lock = 0; lock < 2; lock++) {
					enum ibs_op_kind k = ibs_op_kind(
						brn ? IBS_OP_DATA_BRN_RET : 0,
						mem | (pf ? PF : 0) | (lock ? 1 << 15 : 0));

					assert_int_equal(letters[k], want[brn][mem][pf * 2 + lock]);
				}
}

static void test_caps(void **state)
{
	static const struct {
		int bit;
		const char *name;
	} want[] = {
		{ 0, "AVAIL" },
		{ 1, "FETCHSAM" },
		{ 2, "OPSAM" },
		{ 3, "RDWROPCNT" },
		{ 4, "OPCNT" },
		{ 5, "BRNTRGT" },
		{ 6, "OPCNTEXT" },
		{ 7, "RIPINVALIDCHK" },
		{ 8, "OPBRNFUSE" },
		{ 9, "FETCHCTLEXTD" },
		{ 10, "OPDATA4" },
		{ 11, "ZEN4" },
		{ 12, "OPLDLAT" },
		{ 13, "DIS" },
		{ 14, "FETCHLAT" },
		{ 15, "BIT63_FILTER" },
		{ 16, "STRMST_RMTSOCKET" },
		{ 19, "OPDTLBPGSIZE" },
	};
	static const struct {
		int bit;
		const char *name;
		unsigned int value;
	} have[] = {
#define ROW(b, n, ...) { b, #n, IBS_CAPS_##n },
		IBS_CAPS_TABLE(ROW)
#undef ROW
	};
	unsigned int i;

	(void)state;
	assert_int_equal(ARRAY_SIZE(have), ARRAY_SIZE(want));
	for (i = 0; i < ARRAY_SIZE(want); i++) {
		assert_int_equal(have[i].bit, want[i].bit);
		assert_string_equal(have[i].name, want[i].name);
		assert_int_equal(have[i].value, 1u << want[i].bit);
	}
}

/* First and last model of each rule, and the ones beside them. */
static void test_quirks(void **state)
{
	const __u32 zen3 = IBS_QUIRK_OP_1293 | IBS_QUIRK_NO_CACHE_HIT_ST_A | IBS_QUIRK_FETCH_1197 |
			   IBS_QUIRK_FETCH_1238 | IBS_QUIRK_FETCH_1347;
	const struct {
		__u32 family, model, quirks;
	} want[] = {
		{ 0x0f, 0xff, 0 },
		{ 0x10, 0x00, IBS_QUIRK_OP_420 },
		{ 0x10, 0xff, IBS_QUIRK_OP_420 },
		{ 0x11, 0x00, 0 },
		{ 0x15, 0xff, 0 },
		{ 0x16, 0x00, IBS_QUIRK_FETCH_RESET },
		{ 0x17, 0x31, IBS_QUIRK_FETCH_RESET },
		{ 0x18, 0xff, IBS_QUIRK_FETCH_RESET },
		{ 0x19, 0x00, zen3 },
		{ 0x19, 0x0f, zen3 },
		{ 0x19, 0x10, 0 },
		{ 0x19, 0x1f, 0 },
		{ 0x19, 0x20, IBS_QUIRK_NO_CACHE_HIT_ST_B },
		{ 0x19, 0x5f, IBS_QUIRK_NO_CACHE_HIT_ST_B },
		{ 0x19, 0x60, 0 },
		{ 0x19, 0xff, 0 },
		{ 0x1a, 0x00, IBS_QUIRK_LDLAT_1606_A },
		{ 0x1a, 0x4f, IBS_QUIRK_LDLAT_1606_A },
		{ 0x1a, 0x50, IBS_QUIRK_FETCH_NEEDS_PHY_A },
		{ 0x1a, 0x5f, IBS_QUIRK_FETCH_NEEDS_PHY_A },
		{ 0x1a, 0x60, IBS_QUIRK_LDLAT_1606_B },
		{ 0x1a, 0x7f, IBS_QUIRK_LDLAT_1606_B },
		{ 0x1a, 0x80, IBS_QUIRK_FETCH_NEEDS_PHY_B },
		{ 0x1a, 0xaf, IBS_QUIRK_FETCH_NEEDS_PHY_B },
		{ 0x1a, 0xb0, 0 },
		{ 0x1a, 0xbf, 0 },
		{ 0x1a, 0xc0, IBS_QUIRK_FETCH_NEEDS_PHY_C },
		{ 0x1a, 0xcf, IBS_QUIRK_FETCH_NEEDS_PHY_C },
		{ 0x1a, 0xd0, 0 },
		{ 0x1b, 0x00, IBS_QUIRK_FETCH_NEEDS_PHY_D },
		{ 0x20, 0x12, IBS_QUIRK_FETCH_NEEDS_PHY_D },
	};
	unsigned int i;

	(void)state;
	for (i = 0; i < ARRAY_SIZE(want); i++)
		if (ibs_quirks(want[i].family, want[i].model) != want[i].quirks)
			fail_msg("%02xh %02x: %#x, not %#x", want[i].family, want[i].model,
				 ibs_quirks(want[i].family, want[i].model), want[i].quirks);
}

/* ------------------------------------------------------------------ text */

static char *print_op(const struct ibs_op_sample *s, unsigned int perf)
{
	return print_vector(&(struct vector){ .op = *s }, perf);
}

static char *print_fetch(const struct ibs_fetch_sample *s, unsigned int perf)
{
	return print_vector(&(struct vector){ .fetch = true, .fe = *s }, perf);
}

static void assert_text(char *text, const char *what, bool there)
{
	if (!!strstr(text, what) != there)
		fail_msg("'%s' %s in:\n%s", what, there ? "not" : "wrongly", text);
	free(text);
}

#define NEWEST IBS_PERF_NEWEST
#define V6_16  IBS_PERF(6, 16)

/* What the emulated hardware's oracle, perf 6.1, cannot show. */
static void test_text_newest(void **state)
{
	struct ibs_op_sample s = good_op(F(DC_PAGE_SIZE));
	struct ibs_fetch_sample f;

	(void)state;
	assert_text(print_op(&s, NEWEST), " DcL1TlbMiss 1 DcL2TlbMiss 1 DcPageSize   4K DcMiss 1",
		    true);
	assert_text(print_op(&s, NEWEST), " CurCnt       707 LdLatThrsh  9 LdLatEn 1\n", true);
	assert_text(print_op(&s, NEWEST), " RmtSocket 1 StrmSt 1 RmtNode 1 DataSrc 3=DRAM\n", true);
	assert_text(print_op(&s, V6_16), " RmtSocket", false);
	assert_text(print_op(&s, V6_16), " DcPageSize   4K", true);
	assert_text(print_op(&s, IBS_PERF(6, 12)), "DcPageSize", false);
	assert_text(print_op(&s, IBS_PERF(6, 12)), "LdLat", false);
	assert_text(print_op(&s, IBS_PERF(6, 1)), " DataSrc 3=Data returned from DRAM\n", true);
	s.reg[IBS_OP_DATA3] |= 2 << 4;
	assert_text(print_op(&s, NEWEST), " DcPageSize   1G", true);
	s.reg[IBS_OP_DATA3] &= ~PHY;
	assert_text(print_op(&s, NEWEST), " StOp 1 DcMiss 1", true);
	assert_text(print_op(&s, NEWEST), " DcMissLat   476\n", true);
	assert_text(print_op(&s, V6_16), " DcMissLat   476 TlbRefillLat    99\n", true);
	s = good_op(F(DC_PHYS_AD));
	assert_text(print_op(&s, NEWEST), "IbsDCPhysAd:\t0000011f7c3b5784\n", true);
	s.reg[IBS_DC_PHYSADDR] = 0;
	assert_text(print_op(&s, NEWEST), "IbsDCPhysAd", false);
	assert_text(print_op(&s, V6_16), "IbsDCPhysAd", true);
	s = good_op(F(DC_PHYS_AD));
	s.reg[IBS_OP_DATA3] &= ~LIN;
	assert_text(print_op(&s, NEWEST), "IbsDCPhysAd", false);
	assert_text(print_op(&s, V6_16), "IbsDCPhysAd", true);
	s.cpu.caps &= ~IBS_CAPS_ZEN4;
	assert_text(print_op(&s, NEWEST), "IbsDCPhysAd", true);
	s.reg[IBS_OP_CTL] &= ~(1ULL << 18);
	assert_text(print_op(&s, NEWEST), "ibs_op", false);

	f = good_fetch();
	assert_text(print_fetch(&f, NEWEST), " L2Miss 1 L3MissOnly 1 FetchOcMiss 1 FetchL3Miss 1\n",
		    true);
	f.cpu.quirks = IBS_QUIRK_FETCH_NEEDS_PHY_A;
	assert_text(print_fetch(&f, NEWEST),
		    "ic_ibs_ext_ctl:\t0000000000000077 IbsItlbRefillLat 119\n", true);
	f.reg[IBS_FETCH_CTL] &= ~IBS_FETCH_CTL_PHY_VALID;
	assert_text(print_fetch(&f, NEWEST),
		    " MaxCnt  100000 Cnt   74560 En 1 Val 1 Comp 1 PhyAddrValid 0 RandEn 1 "
		    "L3MissOnly 1\n",
		    true);
	assert_text(print_fetch(&f, NEWEST), "ic_ibs", false);
	assert_text(print_fetch(&f, V6_16), " Lat   321 En 1", true);
	f.reg[IBS_FETCH_CTL] &= ~(1ULL << 48);
	assert_text(print_fetch(&f, NEWEST), "ibs_fetch", false);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_vectors),	       cmocka_unit_test(test_op_parse),
		cmocka_unit_test(test_fetch_parse),    cmocka_unit_test(test_op_period),
		cmocka_unit_test(test_tables),	       cmocka_unit_test(test_op_validity),
		cmocka_unit_test(test_op_values),      cmocka_unit_test(test_op_combined),
		cmocka_unit_test(test_metrics),	       cmocka_unit_test(test_fetch_classes),
		cmocka_unit_test(test_fetch_validity), cmocka_unit_test(test_fetch_page_size),
		cmocka_unit_test(test_data_src),       cmocka_unit_test(test_src_order),
		cmocka_unit_test(test_kind),	       cmocka_unit_test(test_caps),
		cmocka_unit_test(test_quirks),	       cmocka_unit_test(test_text_newest),
	};

	n_paths = argc - 1;
	paths = argv + 1;
	return cmocka_run_group_tests(tests, NULL, NULL);
}
