// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Events: syntax, what each kernel and processor can do, and some thousand broken ones. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include <linux/perf_event.h>

#include "event/cpu.h"
#include "base/err.h"
#include "event/event.h"
#include "ibs_tree.h"

#define ZEN2_CAPS 0x3ffu
#define ZEN4_CAPS 0xbffu
#define ZEN5_CAPS 0x1bffu
/* With every bit that Linux 7.2 knows. */
#define ZEN6_CAPS (0x9fbffu & ~IBS_CAPS_OPDATA4)

/* --- syntax --- */

static void test_good_syntax(void **state)
{
	static const struct {
		const char *text, *canonical;
	} rows[] = {
		{ "ibs_op", "ibs_op//" },
		{ "ibs_op//", "ibs_op//" },
		{ "ibs_fetch//", "ibs_fetch//" },
		{ "ibs_op/cnt_ctl/", "ibs_op/cnt_ctl=1/" },
		{ "ibs_op/cnt_ctl=1,l3missonly=1,ldlat=256/",
		  "ibs_op/cnt_ctl=1,l3missonly=1,ldlat=256/" },
		{ "ibs_op/ldlat=0x100,cnt_ctl=0/", "ibs_op/ldlat=256,cnt_ctl=0/" },
		{ "ibs_op/period=1M/", "ibs_op/period=1000000/" },
		{ "ibs_op/period=0/", "ibs_op/period=0/" },
		{ "ibs_op/freq=99,cnt_ctl/", "ibs_op/cnt_ctl=1,freq=99/" },
		{ "ibs_op/future-term.1=2/", "ibs_op/future-term.1=2/" },
		{ "ibs_op:u", "ibs_op//u" },
		{ "ibs_op//u", "ibs_op//u" },
		{ "ibs_op//:k", "ibs_op//k" },
		{ "ibs_op//uk", "ibs_op//" },
		{ "ibs_op//uuu", "ibs_op//u" },
		{ "ibs_fetch/rand_en,swfilt/:u", "ibs_fetch/rand_en=1,swfilt=1/u" },
		{ "ibs_op/x=18446744073709551615/", "ibs_op/x=18446744073709551615/" },
	};
	char text[EVENT_TEXT_MAX];
	struct event_spec s, again;
	struct err e;
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		if (event_parse(rows[i].text, &s, &e))
			fail_msg("%s", e.text);
		assert_int_equal(event_print(&s, text, sizeof(text)), strlen(rows[i].canonical));
		assert_string_equal(text, rows[i].canonical);
		assert_int_equal(event_parse(text, &again, &e), 0);
		event_print(&again, text, sizeof(text));
		assert_string_equal(text, rows[i].canonical);
	}
	assert_int_equal(event_parse("ibs_op/cnt_ctl,ldlat=256,period=160/", &s, &e), 0);
	assert_int_equal(s.n_terms, 2);
	assert_int_equal(s.terms[1].column, 16);
	assert_int_equal(event_term(&s, "ldlat"), 256);
	assert_int_equal(event_term(&s, "period"), 0);
	assert_true(s.rate.has_period && !s.rate.has_freq && s.rate.period == 160);
	assert_int_equal(s.rate_column, 26);
	assert_true(event_print(&s, text, 5) == strlen("ibs_op/cnt_ctl=1,ldlat=256,period=160/"));
	assert_string_equal(text, "ibs_");
	event_print(&s, NULL, 0);
}

static void test_bad_syntax(void **state)
{
	static const struct {
		const char *text;
		int err;
		const char *says;
	} rows[] = {
		{ "", -ENODEV, "column 1" },
		{ "cycles", -ENODEV, "ibs_op" },
		{ "ibs_op2", -ENODEV, "ibs_op" },
		{ "IBS_OP//", -ENODEV, "ibs_op" },
		{ " ibs_op", -ENODEV, "column 1" },
		{ "/cnt_ctl/", -ENODEV, "column 1" },
		{ "ibs_opibs_opibs_opibs_opibs_opibs_opibs_opibs_opibs_opibs_op", -ENODEV,
		  "column 1" },
		{ "ibs_op/", -EINVAL, "column 8" },
		{ "ibs_op/cnt_ctl", -EINVAL, "closing /" },
		{ "ibs_op/cnt_ctl=", -EINVAL, "needs a number" },
		{ "ibs_op/cnt_ctl=/", -EINVAL, "needs a number" },
		{ "ibs_op/cnt_ctl=x/", -EINVAL, "column 16" },
		{ "ibs_op/cnt_ctl=1x/", -EINVAL, "invalid number" },
		{ "ibs_op/cnt_ctl=-1/", -EINVAL, "invalid number" },
		{ "ibs_op/cnt_ctl==1/", -EINVAL, "needs a number" },
		{ "ibs_op/cnt_ctl=18446744073709551616/", -ERANGE, "out of range" },
		{ "ibs_op/=1/", -EINVAL, "column 8" },
		{ "ibs_op/,/", -EINVAL, "column 8" },
		{ "ibs_op/cnt_ctl,/", -EINVAL, "column 16" },
		{ "ibs_op/,cnt_ctl/", -EINVAL, "column 8" },
		{ "ibs_op/cnt_ctl,,ldlat/", -EINVAL, "column 16" },
		{ "ibs_op/cnt_ctl ldlat/", -EINVAL, "column 15" },
		{ "ibs_op/cnt_ctl,cnt_ctl/", -EINVAL, "duplicate" },
		{ "ibs_op/period=160,freq=10/", -EINVAL, "column 19" },
		{ "ibs_op/period=160,period=160/", -EINVAL, "column 19" },
		{ "ibs_op/a,b,c,d,e,f,g,h,i,j,k,l,m,n,o,p,q/", -E2BIG, "16 terms" },
		{ "ibs_op/an_overlong_name_of_32_characters/", -EINVAL, "longer" },
		{ "ibs_op/a=11111111111111111111111111111111111111111111111111111/", -EINVAL,
		  "needs" },
		{ "ibs_op//x", -EINVAL, "invalid modifier" },
		{ "ibs_op//p", -EINVAL, "always precise" },
		{ "ibs_op//upp", -EINVAL, "column 10" },
		{ "ibs_op//:", -EINVAL, "':'" },
		{ "ibs_op:", -EINVAL, "':'" },
		{ "ibs_op//::u", -EINVAL, "invalid modifier" },
		{ "ibs_op///", -EINVAL, "column 9" },
		{ "ibs_op//,ibs_fetch//", -EINVAL, "one event" },
		{ "ibs_op,ibs_fetch", -EINVAL, "one event" },
		{ "ibs_op//\n", -EINVAL, "column 9" },
		{ "ibs_op/\xff\xfe/", -EINVAL, "column 8" },
	};
	struct event_spec s = { .n_terms = 99 };
	struct err e;
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		e.text[0] = 0;
		assert_int_equal(event_parse(rows[i].text, &s, &e), rows[i].err);
		assert_int_equal(s.n_terms, 99);
		if (!strstr(e.text, rows[i].says) || strncmp(e.text, "event '", 7))
			fail_msg("'%s' lacks '%s'", e.text, rows[i].says);
		assert_int_equal(event_parse(rows[i].text, &s, NULL), rows[i].err);
	}
}

/* Messages as users see them: what is wrong, where, and what would be right. */
static void test_syntax_messages(void **state)
{
	static const struct {
		const char *text, *says;
	} rows[] = {
		{ "cycles", "column 1: unknown event 'cycles': must be ibs_op/.../ or "
			    "ibs_fetch/.../" },
		{ "ibs_opibs_opibs_op/a/", "column 1: unknown event 'ibs_opibs_opibs_op': must be "
					   "ibs_op/.../ or ibs_fetch/.../" },
		{ "0123456789012345678901234567890123456789x",
		  "column 1: unknown event '0123456789012345678901234567890123456789': must be "
		  "ibs_op/.../ or ibs_fetch/.../" },
		{ "ibs_op/freq=10,period=160/",
		  "column 16: 'period' conflicts with an earlier period or freq; give one" },
		{ "ibs_op/period=160,freq=10/",
		  "column 19: 'freq' conflicts with an earlier period or freq; give one" },
		{ "ibs_op/freq=10,freq=10/",
		  "column 16: 'freq' conflicts with an earlier period or freq; give one" },
		{ "ibs_op/a,b,b/", "column 12: duplicate term 'b', first at column 10" },
		{ "ibs_op/a,b,c,d,e,f,g,h,i,j,k,l,m,n,o,p,q/", "column 40: more than 16 terms" },
		{ "ibs_op/,/", "column 8: expected a term such as cnt_ctl=1" },
		{ "ibs_op/a,a_name_of_thirty_two_characters_/",
		  "column 10: term longer than 31 characters" },
		{ "ibs_op/a,cnt_ctl=/", "column 18: 'cnt_ctl=' needs a number, as in cnt_ctl=1" },
		{ "ibs_op/a=000000000000000000000000000000000000000000000001/",
		  "column 10: 'a=' needs a number, as in a=1" },
		{ "ibs_op/cnt_ctl", "column 15: missing closing /" },
		{ "ibs_op/cnt_ctl ldlat/", "column 15: expected ',' or '/' before ' ldlat/'" },
		{ "ibs_op/a:01234567890123456789",
		  "column 9: expected ',' or '/' before ':0123456789012345678'" },
		{ "ibs_op:",
		  "column 7: missing modifier after ':': must be u (user) or k (kernel)" },
		{ "ibs_op//up",
		  "column 10: invalid modifier 'p': IBS is always precise; remove it" },
		{ "ibs_op//P", "column 9: invalid modifier 'P': IBS is always precise; remove it" },
		{ "ibs_op//:ux0123456789012345678901",
		  "column 11: invalid modifier 'x0123456789012345678': must be u (user) or k "
		  "(kernel); only one event is supported" },
	};
	char want[400];
	struct event_spec s;
	struct err e;

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		assert_true(event_parse(rows[i].text, &s, &e) < 0);
		snprintf(want, sizeof(want), "event '%s': %s", rows[i].text, rows[i].says);
		assert_string_equal(e.text, want);
	}
	/* the longest name, and the longest number */
	assert_int_equal(event_parse("ibs_op/a_name_of_thirty_one_characters_="
				     "00000000000000000000000000000000000000000000007/",
				     &s, &e),
			 -EINVAL);
	assert_int_equal(event_parse("ibs_op/a_name_of_thirty_one_characters="
				     "00000000000000000000000000000000000000000000007/",
				     &s, &e),
			 0);
	assert_int_equal(event_term(&s, "a_name_of_thirty_one_characters"), 7);
}

static struct event_spec spec_of(const char *text)
{
	struct event_spec s;
	struct err e;

	if (event_parse(text, &s, &e))
		fail_msg("%s", e.text);
	return s;
}

/* Both modifiers are the same as none. */
static void test_modifiers(void **state)
{
	struct event_spec s = spec_of("ibs_op//u");

	(void)state;
	assert_true(s.user && !s.kernel);
	s = spec_of("ibs_op//:ku");
	assert_true(!s.user && !s.kernel);
	s = spec_of("ibs_op:k");
	assert_true(!s.user && s.kernel);
	assert_false(event_of_fetch(&s));
	s = spec_of("ibs_fetch");
	assert_true(!s.user && !s.kernel);
	assert_true(event_of_fetch(&s));
}

/* What drops samples before a program sees them. */
static void test_filters(void **state)
{
	static const struct {
		const char *text;
		enum event_filter filter;
	} rows[] = {
		{ "ibs_op//", EVENT_FILTER_NONE },
		{ "ibs_op/cnt_ctl/", EVENT_FILTER_NONE },
		{ "ibs_op/ldlat=0/", EVENT_FILTER_NONE },
		{ "ibs_op/swfilt/", EVENT_FILTER_NONE },
		{ "ibs_op/swfilt/uk", EVENT_FILTER_NONE },
		{ "ibs_op/l3missonly/", EVENT_FILTER_HARDWARE },
		{ "ibs_op/ldlat=256/", EVENT_FILTER_HARDWARE },
		{ "ibs_op/strmst/", EVENT_FILTER_HARDWARE },
		{ "ibs_fetch/fetchlat=128/", EVENT_FILTER_HARDWARE },
		{ "ibs_op//u", EVENT_FILTER_HARDWARE },
		{ "ibs_op/swfilt=0/k", EVENT_FILTER_HARDWARE },
		{ "ibs_op/swfilt/u", EVENT_FILTER_DRIVER },
		{ "ibs_op/swfilt/k", EVENT_FILTER_DRIVER },
		{ "ibs_op/swfilt,l3missonly/k", EVENT_FILTER_HARDWARE },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		const struct event_spec s = spec_of(rows[i].text);

		assert_int_equal(event_filter(&s), rows[i].filter);
	}
}

static void test_set_term(void **state)
{
	struct event_spec s = spec_of("ibs_op/a,b,c,d,e,f,g,h,i,j,k,l,m,n,o/");

	(void)state;
	assert_true(event_set_term(&s, "ldlat", 256));
	assert_int_equal(event_term(&s, "ldlat"), 256);
	assert_int_equal(s.n_terms, 16);
	assert_false(event_set_term(&s, "another", 1));
	assert_int_equal(event_term(&s, "another"), 0);
	assert_int_equal(s.n_terms, 16);
	assert_true(event_set_term(&s, "a", 2));
	assert_int_equal(event_term(&s, "a"), 2);
	assert_int_equal(event_term(&s, "b"), 1);
	assert_int_equal(s.n_terms, 16);
}

static const struct event_rate both_rates = { true, true, 160, 99 };

static void test_rates(void **state)
{
	const struct event_rate none = {};
	const struct event_rate period = { .has_period = true, .period = 160 };
	const struct event_rate freq = { .has_freq = true, .freq = 99 };
	const struct event_spec plain = spec_of("ibs_op"),
				with_period = spec_of("ibs_op/period=160/"),
				with_freq = spec_of("ibs_op/freq=99/");
	const struct event_rate *r = NULL;
	struct err e = { "" };

	(void)state;
	assert_int_equal(event_rate_choose(&plain, NULL, &r, &e), 0);
	assert_true(!r->has_period && !r->has_freq);
	assert_int_equal(event_rate_choose(&plain, &none, &r, &e), 0);
	assert_true(!r->has_period && !r->has_freq);
	assert_int_equal(event_rate_choose(&plain, &period, &r, &e), 0);
	assert_ptr_equal(r, &period);
	assert_int_equal(event_rate_choose(&plain, &freq, &r, &e), 0);
	assert_ptr_equal(r, &freq);
	assert_int_equal(event_rate_choose(&with_period, &none, &r, &e), 0);
	assert_ptr_equal(r, &with_period.rate);
	assert_int_equal(event_rate_choose(&with_freq, NULL, &r, &e), 0);
	assert_ptr_equal(r, &with_freq.rate);
	assert_string_equal(e.text, "");
	assert_int_equal(event_rate_choose(&plain, &both_rates, &r, &e), -EINVAL);
	assert_string_equal(e.text, "-c and -F are mutually exclusive");
	assert_int_equal(event_rate_choose(&with_period, &period, &r, &e), -EINVAL);
	assert_string_equal(e.text, "the event has period=, which conflicts with a period (-c); "
				    "give one");
	assert_int_equal(event_rate_choose(&with_period, &freq, &r, &e), -EINVAL);
	assert_string_equal(e.text, "the event has period=, which conflicts with a frequency "
				    "(-F); give one");
	assert_int_equal(event_rate_choose(&with_freq, &freq, &r, &e), -EINVAL);
	assert_string_equal(e.text, "the event has freq=, which conflicts with a frequency (-F); "
				    "give one");
}

static void checks(const char *text, __u32 caps, struct event_rate cli, int code, const char *want)
{
	const struct event_spec s = spec_of(text);
	struct err e = { "" };
	struct cpu_info c;

	cpu_info_set(&c, "AuthenticAMD", 0x19, 0x11, caps);
	assert_int_equal(event_rate_check(&s, &c, &cli, &e), code);
	assert_string_equal(e.text, want);
}

/* Without a PMU, no limit of frequencies is known. */
static void test_rate_check(void **state)
{
	const struct event_rate none = {}, no_period = { .has_period = true };
	const struct event_rate fast = { .has_freq = true, .freq = UINT64_MAX };
	const struct event_rate no_freq = { .has_freq = true };

	(void)state;
	checks("ibs_op", ZEN4_CAPS, none, 0, "");
	checks("ibs_op", ZEN4_CAPS, fast, 0, "");
	checks("ibs_op/freq=1/", ZEN4_CAPS, none, 0, "");
	checks("ibs_op", ZEN4_CAPS, no_freq, -ERANGE,
	       "-F (freq): invalid frequency 0: must be 1 Hz or more");
	checks("ibs_op/a,freq=0/", ZEN4_CAPS, none, -ERANGE,
	       "column 10: invalid frequency 0: must be 1 Hz or more");
	checks("ibs_op", ZEN4_CAPS, no_period, -ERANGE,
	       "-c (period): invalid period 0: must be a multiple of 16 from 144 to 134217712");
	checks("ibs_fetch", ZEN4_CAPS, no_period, -ERANGE,
	       "-c (period): invalid period 0: must be a multiple of 16 from 16 to 1048560");
	checks("ibs_op/period=128/", 0x1f, none, -ERANGE,
	       "column 8: period 128 is too short for ibs_op: must be a multiple of 16 from 144 "
	       "to 1048560");
	checks("ibs_fetch/period=1048576/", ZEN4_CAPS, none, -ERANGE,
	       "column 11: period 1048576 is more than ibs_fetch of this processor can count "
	       "without extra interrupts: must be a multiple of 16 from 16 to 1048560");
	checks("ibs_op/period=145/", ZEN4_CAPS, none, -EINVAL,
	       "column 8: period 145 is not a multiple of 16 and would be rounded down silently; "
	       "give 144 or 160");
	checks("ibs_fetch/period=1048545/", ZEN4_CAPS, none, -EINVAL,
	       "column 11: period 1048545 is not a multiple of 16 and would be rounded down "
	       "silently; give 1048544 or 1048560");
	checks("ibs_op", ZEN4_CAPS, both_rates, -EINVAL, "-c and -F are mutually exclusive");
}

/* --- attr --- */

struct machine {
	const char *name;
	enum kernel kernel;
	__u32 family, model, caps;
};

static const struct machine old = { "5.10 Zen 5", V5_10, 0x1a, 0x02, ZEN5_CAPS };
static const struct machine zen4 = { "6.1 Zen 4", V6_1, 0x19, 0x11, ZEN4_CAPS };
static const struct machine zen5 = { "7.2 Zen 5", V7_2, 0x1a, 0x02, ZEN5_CAPS };
static const struct machine zen6 = { "7.2 Zen 6", V7_2, 0x1a, 0x50, ZEN6_CAPS };
static const struct machine k10 = { "6.1 10h", V6_1, 0x10, 0x02, 0x1f };
static const struct machine zen6_old = { "6.1 Zen 6", V6_1, 0x1a, 0x50, ZEN6_CAPS };
static const struct machine bare = { "6.1 default caps", V6_1, 0x10, 0x02, 0x7 };

static int try_attr(const struct machine *m, const char *text, const struct event_rate *rate,
		    struct perf_event_attr *attr, struct err *e)
{
	struct event_spec s;
	struct cpu_info c;
	struct pmu *p;
	int err;

	e->text[0] = 0;
	new_root(NULL);
	put_pmus(m->kernel, m->caps);
	cpu_info_set(&c, "AuthenticAMD", m->family, m->model, m->caps);
	err = event_parse(text, &s, e);
	if (!err)
		err = pmu_open(root, s.pmu, &c, &p, e);
	if (!err) {
		err = event_attr(&s, p, &c, rate, attr, e);
		pmu_close(p);
	}
	remove_root(NULL);
	return err;
}

static void test_good_attr(void **state)
{
	static const struct {
		const struct machine *m;
		const char *text;
		uint64_t config, config1, config2;
		bool user_only, kernel_only;
	} rows[] = {
		{ &old, "ibs_op", 0, 0, 0, 0, 0 },
		{ &old, "ibs_op/cnt_ctl=1/", 1 << 19, 0, 0, 0, 0 },
		{ &old, "ibs_fetch/rand_en/", UINT64_C(1) << 57, 0, 0, 0, 0 },
		{ &bare, "ibs_op//", 0, 0, 0, 0, 0 },
		{ &zen4, "ibs_op/cnt_ctl,l3missonly/", 9 << 16, 0, 0, 0, 0 },
		{ &zen4, "ibs_fetch/l3missonly=1/", UINT64_C(1) << 59, 0, 0, 0, 0 },
		{ &zen5, "ibs_op/cnt_ctl=1,l3missonly=1,ldlat=256/", 9 << 16, 256, 0, 0, 0 },
		{ &zen5, "ibs_op/ldlat=2048/", 0, 2048, 0, 0, 0 },
		{ &zen5, "ibs_op/ldlat=128/", 0, 128, 0, 0, 0 },
		{ &zen5, "ibs_op/ldlat=0/", 0, 0, 0, 0, 0 },
		{ &zen5, "ibs_op/swfilt/u", 0, 0, 1, true, false },
		{ &zen5, "ibs_fetch/swfilt/k", 0, 0, 1, false, true },
		{ &zen6, "ibs_op//u", 0, 0, 0, true, false },
		{ &zen6, "ibs_fetch//k", 0, 0, 0, false, true },
		{ &zen6, "ibs_op/strmst,ldlat=512/", 0, 1 << 12 | 512, 0, 0, 0 },
		{ &zen6, "ibs_fetch/fetchlat=1920/", 0, 1920, 0, 0, 0 },
	};
	struct perf_event_attr a;
	struct err e;
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		memset(&a, 0xff, sizeof(a));
		if (try_attr(rows[i].m, rows[i].text, NULL, &a, &e))
			fail_msg("%s: %s", rows[i].m->name, e.text);
		assert_int_equal(a.type, strncmp(rows[i].text, "ibs_op", 6) ? 10 : 11);
		assert_int_equal(a.size, sizeof(a));
		assert_true(a.config == rows[i].config);
		assert_true(a.config1 == rows[i].config1);
		assert_true(a.config2 == rows[i].config2);
		assert_int_equal(a.exclude_kernel, rows[i].user_only);
		assert_int_equal(a.exclude_user, rows[i].kernel_only);
		assert_int_equal(a.sample_period, EVENT_DEFAULT_PERIOD);
		assert_int_equal(a.freq, 0);
		assert_int_equal(a.sample_type, PERF_SAMPLE_RAW);
		assert_int_equal(a.disabled, 1);
		assert_int_equal(
			a.inherit | a.pinned | a.precise_ip | a.exclude_hv | a.exclude_idle, 0);
		assert_int_equal(a.read_format,
				 PERF_FORMAT_TOTAL_TIME_ENABLED | PERF_FORMAT_TOTAL_TIME_RUNNING);
	}
}

static void test_bad_attr(void **state)
{
	static const struct {
		const struct machine *m;
		const char *text;
		int err;
		const char *says, *and;
	} rows[] = {
		{ &zen4, "ibs_op/bogus=1/", -EINVAL, "column 8",
		  "cnt_ctl, l3missonly, period, freq" },
		{ &zen4, "ibs_op/cnt_ctl,rand_en/", -EINVAL, "column 16",
		  "unknown term 'rand_en' of ibs_op" },
		{ &zen4, "ibs_op/config=1/", -EINVAL, "'config'", "not here: ldlat" },
		{ &zen4, "ibs_op/ldlat=256/", -EOPNOTSUPP, "EAX[12]", "--min-lat" },
		{ &old, "ibs_op/ldlat=256/", -EOPNOTSUPP, "not supported by this kernel", "6.15" },
		{ &old, "ibs_op/l3missonly/", -EOPNOTSUPP, "not supported by this kernel", "5.19" },
		{ &old, "ibs_op/swfilt/u", -EOPNOTSUPP, "not supported by this kernel", "--user" },
		{ &bare, "ibs_op/cnt_ctl/", -EOPNOTSUPP, "EAX[4]", "cnt_ctl=0" },
		{ &k10, "ibs_op/l3missonly/", -EOPNOTSUPP, "EAX[11]", "Zen 4" },
		{ &zen5, "ibs_op/strmst/", -EOPNOTSUPP, "EAX[16]", "remove it" },
		{ &zen5, "ibs_fetch/fetchlat=128/", -EOPNOTSUPP, "EAX[14]", "Zen 6" },
		{ &zen6_old, "ibs_fetch/fetchlat=128/", -EOPNOTSUPP, "not supported by this kernel",
		  "7.1" },
		{ &zen5, "ibs_op/ldlat=127/", -ERANGE, "128 to 2048 cycles", "column 8" },
		{ &zen5, "ibs_op/ldlat=2049/", -ERANGE, "128 to 2048 cycles", "0 (off)" },
		{ &zen5, "ibs_op/ldlat=1/", -ERANGE, "ldlat=1 ", "" },
		{ &zen5, "ibs_op/ldlat/", -ERANGE, "ldlat=1 ", "" },
		{ &zen6, "ibs_fetch/fetchlat=1921/", -ERANGE, "128 to 1920 cycles", "" },
		{ &zen5, "ibs_op/cnt_ctl=2/", -ERANGE, "0 to 1", "cnt_ctl=2" },
		{ &zen5, "ibs_op/swfilt=18446744073709551615/", -ERANGE, "0 to 1", "" },
		{ &zen5, "ibs_op//u", -EOPNOTSUPP, "swfilt=1", "--user" },
		{ &zen5, "ibs_op/swfilt=0/k", -EOPNOTSUPP, "swfilt=1", "--kernel" },
		{ &zen4, "ibs_op:u", -EOPNOTSUPP, "6.14", "--user" },
		{ &zen6_old, "ibs_op//k", -EOPNOTSUPP, "6.14", "--kernel" },
	};
	struct perf_event_attr a;
	struct err e;
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		assert_int_equal(try_attr(rows[i].m, rows[i].text, NULL, &a, &e), rows[i].err);
		if (!strstr(e.text, rows[i].says) || !strstr(e.text, rows[i].and))
			fail_msg("%s: '%s' lacks '%s' or '%s'", rows[i].m->name, e.text,
				 rows[i].says, rows[i].and);
		assert_null(strchr(e.text, '\n'));
	}
}

/* What is said of terms that a machine lacks, with what to do. */
static void test_attr_messages(void **state)
{
	static const struct {
		const struct machine *m;
		const char *text, *says;
	} rows[] = {
		{ &zen4, "ibs_op/bogus=1/",
		  "column 8: unknown term 'bogus' of ibs_op: must be one of cnt_ctl, l3missonly, "
		  "period, freq (not here: ldlat, strmst, swfilt)" },
		{ &zen6, "ibs_op/a/",
		  "column 8: unknown term 'a' of ibs_op: must be one of cnt_ctl, l3missonly, "
		  "ldlat, "
		  "strmst, swfilt, period, freq" },
		{ &zen4, "ibs_op/ldlat=256/",
		  "column 8: ldlat: not supported by this processor (family 19h model 11h, Zen 4): "
		  "CPUID Fn8000_001B EAX[12] is 0; requires Zen 5; use --min-lat, which filters in "
		  "BPF" },
		{ &zen5, "ibs_op/strmst/",
		  "column 8: strmst: not supported by this processor (family 1ah model 2h, Zen 5): "
		  "CPUID Fn8000_001B EAX[16] is 0; requires Zen 6; remove it" },
		{ &zen6_old, "ibs_op/strmst/",
		  "column 8: strmst: supported by the processor, but not supported by this kernel: "
		  "its ibs_op PMU does not have the term; requires Linux 7.1; remove it" },
		{ &old, "ibs_op/swfilt/u",
		  "column 8: swfilt: not supported by this kernel: its ibs_op PMU does not have "
		  "the "
		  "term; requires Linux 6.14; use --user or --kernel, which filter in BPF" },
		{ &zen5, "ibs_op/ldlat=127/",
		  "column 8: ldlat=127 is out of range: must be 0 (off) or 128 to 2048 cycles" },
		{ &zen5, "ibs_op/cnt_ctl=2/",
		  "column 8: cnt_ctl=2 is out of range: must be 0 to 1" },
		{ &zen5, "ibs_op//u",
		  "modifier 'u': not supported in hardware by this processor or kernel; add the "
		  "term swfilt=1, or use --user, which filters in BPF" },
		{ &zen4, "ibs_op//k",
		  "modifier 'k': not supported by this kernel (swfilt requires Linux 6.14); use "
		  "--kernel, which filters in BPF" },
		{ &zen4, "ibs_op/cnt_ctl,period=17/",
		  "column 16: period 17 is too short for ibs_op: must be a multiple of 16 from 144 "
		  "to 134217712" },
		{ &zen4, "ibs_op/freq=100001/",
		  "column 8: frequency 100001 Hz is above the kernel's limit: must be 1 to 100000 "
		  "Hz, or raise sysctl kernel.perf_event_max_sample_rate" },
	};
	struct perf_event_attr a;
	char want[500];
	struct err e;

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		assert_true(try_attr(rows[i].m, rows[i].text, NULL, &a, &e) < 0);
		snprintf(want, sizeof(want), "event '%s': %s", rows[i].text, rows[i].says);
		assert_string_equal(e.text, want);
	}
}

/* Any of what came with the kernel's filter of modes shows that the kernel has it. */
static void test_mode_caps(void **state)
{
	static const char *const caps[] = { "strmst", "rmtsocket", "fetchlat", "ldlat" };
	const struct event_spec s = spec_of("ibs_op//u");
	struct perf_event_attr a;
	struct cpu_info c;
	struct pmu *p;
	struct err e;

	(void)state;
	for (size_t i = 0; i < sizeof(caps) / sizeof(caps[0]); i++) {
		char path[64];

		new_root(NULL);
		put_pmus(V6_1, ZEN6_CAPS);
		snprintf(path, sizeof(path), DEV "ibs_op/caps/%s", caps[i]);
		put_file(path, "1\n");
		cpu_info_set(&c, "AuthenticAMD", 0x1a, 0x50, ZEN6_CAPS);
		assert_int_equal(pmu_open(root, "ibs_op", &c, &p, &e), 0);
		assert_int_equal(event_attr(&s, p, &c, NULL, &a, &e), i < 3 ? 0 : -EOPNOTSUPP);
		c.caps &= ~IBS_CAPS_BIT63_FILTER;
		assert_int_equal(event_attr(&s, p, &c, NULL, &a, &e), -EOPNOTSUPP);
		pmu_close(p);
		remove_root(NULL);
	}
}

/* A term that only a later kernel has, in a word that perf_event_attr here does not have. */
static void test_future_terms(void **state)
{
	struct perf_event_attr a;
	struct event_spec s;
	struct cpu_info c;
	struct pmu *p;
	struct err e;

	(void)state;
	new_root(NULL);
	put_pmus(V7_2, ZEN6_CAPS);
	put_file(DEV "ibs_op/format/novel", "config1:20-23\n");
	put_file(DEV "ibs_op/format/beyond", "config4:0\n");
	cpu_info_set(&c, "AuthenticAMD", 0x1a, 0x50, ZEN6_CAPS);
	assert_int_equal(pmu_open(root, "ibs_op", &c, &p, &e), 0);
	assert_int_equal(event_parse("ibs_op/novel=15/", &s, &e), 0);
	assert_int_equal(event_attr(&s, p, &c, NULL, &a, &e), 0);
	assert_true(a.config1 == 0xf00000);
	assert_int_equal(event_parse("ibs_op/novel=16/", &s, &e), 0);
	assert_int_equal(event_attr(&s, p, &c, NULL, &a, &e), -ERANGE);
	assert_int_equal(event_parse("ibs_op/beyond/", &s, &e), 0);
	assert_int_equal(event_attr(&s, p, &c, NULL, &a, &e), -EOPNOTSUPP);
	assert_non_null(strstr(e.text, "config4"));
	assert_int_equal(event_parse("ibs_fetch//", &s, &e), 0);
	assert_int_equal(event_attr(&s, p, &c, NULL, &a, &e), -EINVAL);
	pmu_close(p);
	remove_root(NULL);
}

static void test_periods(void **state)
{
	static const struct {
		const struct machine *m;
		const char *pmu;
		uint64_t period;
		int err;
		const char *says;
	} rows[] = {
		{ &zen4, "ibs_op", 0x90, 0, "" },
		{ &zen4, "ibs_op", 100000, 0, "" },
		{ &zen4, "ibs_op", 0x7fffff0, 0, "" },
		{ &k10, "ibs_op", 0xffff0, 0, "" },
		{ &zen4, "ibs_fetch", 0x10, 0, "" },
		{ &zen4, "ibs_fetch", 0xffff0, 0, "" },
		{ &zen4, "ibs_op", 0, -ERANGE, "144 to 134217712" },
		{ &zen4, "ibs_op", 1, -ERANGE, "144" },
		{ &zen4, "ibs_op", 0x80, -ERANGE, "144" },
		{ &zen5, "ibs_op", 0x8f, -ERANGE, "144" },
		{ &zen4, "ibs_op", 0x91, -EINVAL, "give 144 or 160" },
		{ &zen4, "ibs_op", 100001, -EINVAL, "give 100000 or 100016" },
		{ &zen4, "ibs_op", 0x7fffff1, -ERANGE, "134217712" },
		{ &zen4, "ibs_op", 0x8000000, -ERANGE, "134217712" },
		{ &zen4, "ibs_op", UINT64_MAX, -ERANGE, "134217712" },
		{ &k10, "ibs_op", 0x100000, -ERANGE, "1048560" },
		{ &zen4, "ibs_fetch", 0, -ERANGE, "16 to 1048560" },
		{ &zen4, "ibs_fetch", 15, -ERANGE, "16 to 1048560" },
		{ &zen4, "ibs_fetch", 17, -EINVAL, "give 16 or 32" },
		{ &zen4, "ibs_fetch", 0x100000, -ERANGE, "1048560" },
	};
	struct perf_event_attr a;
	char text[64];
	struct err e;
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct event_rate r = { .has_period = true, .period = rows[i].period };

		assert_int_equal(try_attr(rows[i].m, rows[i].pmu, &r, &a, &e), rows[i].err);
		assert_non_null(strstr(e.text, rows[i].says));
		if (!rows[i].err)
			assert_true(a.sample_period == rows[i].period && !a.freq);
		/* The same as a term. */
		snprintf(text, sizeof(text), "%s/period=%llu/", rows[i].pmu,
			 (unsigned long long)rows[i].period);
		assert_int_equal(try_attr(rows[i].m, text, NULL, &a, &e), rows[i].err);
		assert_non_null(strstr(e.text, rows[i].says));
		if (rows[i].err)
			assert_non_null(strstr(e.text, "column"));
	}
}

static void test_freqs(void **state)
{
	struct event_rate both = { true, true, 100000, 99 }, f = { .has_freq = true }, none = { 0 };
	struct event_rate p = { .has_period = true, .period = 100000 };
	struct perf_event_attr a;
	struct err e;

	(void)state;
	assert_int_equal(try_attr(&zen4, "ibs_op", &both, &a, &e), -EINVAL);
	assert_non_null(strstr(e.text, "-c"));
	assert_int_equal(try_attr(&zen4, "ibs_op", &f, &a, &e), -ERANGE);
	f.freq = 100000;
	assert_int_equal(try_attr(&zen4, "ibs_op", &f, &a, &e), 0);
	assert_true(a.freq && a.sample_freq == 100000);
	f.freq = 100001;
	assert_int_equal(try_attr(&zen4, "ibs_op", &f, &a, &e), -ERANGE);
	assert_non_null(strstr(e.text, "perf_event_max_sample_rate"));
	assert_int_equal(try_attr(&zen4, "ibs_op/freq=1000/", &none, &a, &e), 0);
	assert_true(a.freq && a.sample_freq == 1000);
	/* One of two would be without effect. */
	assert_int_equal(try_attr(&zen4, "ibs_op/freq=1000/", &f, &a, &e), -EINVAL);
	assert_non_null(
		strstr(e.text, "the event has freq=, which conflicts with a frequency (-F)"));
	assert_int_equal(try_attr(&zen4, "ibs_op/freq=1000/", &p, &a, &e), -EINVAL);
	assert_int_equal(try_attr(&zen4, "ibs_op/period=160/", &p, &a, &e), -EINVAL);
	assert_int_equal(try_attr(&zen4, "ibs_op/period=160/", &f, &a, &e), -EINVAL);
	assert_int_equal(try_attr(&zen4, "ibs_op/freq=0/", NULL, &a, &e), -ERANGE);
	assert_int_equal(try_attr(&zen4, "ibs_op", &none, &a, &e), 0);
	assert_int_equal(a.sample_period, EVENT_DEFAULT_PERIOD);
	assert_int_equal(try_attr(&bare, "ibs_op", &none, &a, &e), 0); /* fits 16 bits */
}

static void test_notice(void **state)
{
	struct event_spec s;
	struct cpu_info c;

	(void)state;
	cpu_info_set(&c, "AuthenticAMD", 0x1a, 0x02, ZEN5_CAPS);
	assert_int_equal(event_parse("ibs_op/ldlat=256/", &s, NULL), 0);
	assert_non_null(event_notice(&s, &c));
	assert_int_equal(event_parse("ibs_op/ldlat=256,l3missonly/", &s, NULL), 0);
	assert_null(event_notice(&s, &c));
	assert_int_equal(event_parse("ibs_op/ldlat=0/", &s, NULL), 0);
	assert_null(event_notice(&s, &c));
	cpu_info_set(&c, "AuthenticAMD", 0x1a, 0x50, ZEN6_CAPS);
	assert_int_equal(event_parse("ibs_op/ldlat=256/", &s, NULL), 0);
	assert_null(event_notice(&s, &c));
}

static void test_rules(void **state)
{
	size_t i;

	(void)state;
	for (i = 0; event_rules[i].pmu; i++) {
		const struct event_rule *r = &event_rules[i];

		assert_true(!strcmp(r->pmu, "ibs_op") || !strcmp(r->pmu, "ibs_fetch"));
		assert_true(__builtin_popcount(r->caps) <= 1);
		assert_true(!r->caps == !r->generation);
		assert_true(r->min <= r->max);
		assert_non_null(r->since);
	}
	assert_true(i >= 9);
}

/* Broken events: a message or an attr, never a crash; what is accepted survives printing. */
static void test_mutated(void **state)
{
	static const char *const seeds[] = {
		"ibs_op/cnt_ctl=1,l3missonly=1,ldlat=256/u",
		"ibs_fetch/rand_en,fetchlat=0x80,swfilt/:k",
		"ibs_op/period=1000016,strmst=1/",
		"ibs_op/freq=99/",
		"ibs_op:u",
	};
	static const char alphabet[] = "/:,=ukp0x19abcdefKMG_- \n\xff";
	char text[256], printed[EVENT_TEXT_MAX], again[EVENT_TEXT_MAX];
	struct perf_event_attr a;
	struct event_spec s, t;
	struct pmu *pmus[2];
	struct cpu_info c;
	unsigned int n, k, accepted = 0;
	struct err e;

	(void)state;
	new_root(NULL);
	put_pmus(V7_2, ZEN6_CAPS);
	cpu_info_set(&c, "AuthenticAMD", 0x1a, 0x50, ZEN6_CAPS);
	assert_int_equal(pmu_open(root, "ibs_op", &c, &pmus[0], &e), 0);
	assert_int_equal(pmu_open(root, "ibs_fetch", &c, &pmus[1], &e), 0);
	remove_root(NULL);
	srandom(20261121);
	for (n = 0; n < 20000; n++) {
		size_t len;

		strcpy(text, seeds[n % (sizeof(seeds) / sizeof(seeds[0]))]);
		for (k = random() % 4 + 1; k; k--) {
			size_t at;

			len = strlen(text);
			at = len ? random() % len : 0;
			switch (random() % 5) {
			case 0: /* replace */
				text[at] = alphabet[random() % (sizeof(alphabet) - 1)];
				break;
			case 1: /* insert */
				memmove(text + at + 1, text + at, len - at + 1);
				text[at] = alphabet[random() % (sizeof(alphabet) - 1)];
				break;
			case 2: /* delete */
				memmove(text + at, text + at + !!len, len - at + !len);
				break;
			case 3: /* cut */
				text[at] = 0;
				break;
			case 4: /* double the tail */
				if (len < 60)
					memmove(text + len, text + at, len - at + 1);
				break;
			}
		}
		e.text[0] = 0;
		if (event_parse(text, &s, &e)) {
			assert_true(e.text[0]);
			continue;
		}
		assert_true(event_print(&s, printed, sizeof(printed)) < sizeof(printed));
		assert_int_equal(event_parse(printed, &t, &e), 0);
		event_print(&t, again, sizeof(again));
		assert_string_equal(printed, again);
		e.text[0] = 0;
		if (event_attr(&s, pmus[!strcmp(s.pmu, "ibs_fetch")], &c, NULL, &a, &e)) {
			assert_true(e.text[0]);
			continue;
		}
		assert_true(a.freq || a.sample_period % 16 == 0);
		accepted++;
	}
	assert_true(accepted > 100); /* else the mutations prove little */
	pmu_close(pmus[0]);
	pmu_close(pmus[1]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_good_syntax),	cmocka_unit_test(test_bad_syntax),
		cmocka_unit_test(test_good_attr),	cmocka_unit_test(test_bad_attr),
		cmocka_unit_test(test_future_terms),	cmocka_unit_test(test_periods),
		cmocka_unit_test(test_freqs),		cmocka_unit_test(test_notice),
		cmocka_unit_test(test_rules),		cmocka_unit_test(test_mutated),
		cmocka_unit_test(test_syntax_messages), cmocka_unit_test(test_modifiers),
		cmocka_unit_test(test_filters),		cmocka_unit_test(test_set_term),
		cmocka_unit_test(test_rates),		cmocka_unit_test(test_rate_check),
		cmocka_unit_test(test_attr_messages),	cmocka_unit_test(test_mode_caps),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
