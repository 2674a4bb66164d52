// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* The processor, its names, and the events of its core. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "event/cpu.h"

static struct cpu_info c;

static void is(__u32 family, __u32 first, __u32 last, const char *name)
{
	for (__u32 model = first; model <= last; model++) {
		cpu_info_set(&c, "AuthenticAMD", family, model, 0);
		assert_string_equal(cpu_generation(&c), name);
	}
}

#define UNKNOWN "unknown generation"

/* Models as Linux has them in bsp_init_amd(), with those between that have no name. */
static void test_generations(void **state)
{
	(void)state;
	is(0x0f, 0x00, 0xff, UNKNOWN);
	is(0x10, 0x00, 0xff, "family 10h (K10)");
	is(0x11, 0x00, 0xff, "family 11h");
	is(0x12, 0x00, 0xff, "family 12h (Llano)");
	is(0x13, 0x00, 0xff, UNKNOWN);
	is(0x14, 0x00, 0xff, "family 14h (Bobcat)");
	is(0x15, 0x00, 0x01, "family 15h (Bulldozer)");
	is(0x15, 0x02, 0x1f, "family 15h (Piledriver)");
	is(0x15, 0x20, 0x2f, UNKNOWN);
	is(0x15, 0x30, 0x3f, "family 15h (Steamroller)");
	is(0x15, 0x40, 0x5f, UNKNOWN);
	is(0x15, 0x60, 0x7f, "family 15h (Excavator)");
	is(0x15, 0x80, 0xff, UNKNOWN);
	is(0x16, 0x00, 0xff, "family 16h (Jaguar)");
	is(0x17, 0x00, 0x2f, "Zen 1");
	is(0x17, 0x30, 0x4f, "Zen 2");
	is(0x17, 0x50, 0x5f, "Zen 1");
	is(0x17, 0x60, 0x7f, "Zen 2");
	is(0x17, 0x80, 0x8f, UNKNOWN);
	is(0x17, 0x90, 0xaf, "Zen 2");
	is(0x17, 0xb0, 0xff, UNKNOWN);
	is(0x18, 0x00, 0xff, "Hygon (Zen 1)");
	is(0x19, 0x00, 0x0f, "Zen 3");
	is(0x19, 0x10, 0x1f, "Zen 4");
	is(0x19, 0x20, 0x5f, "Zen 3");
	is(0x19, 0x60, 0xaf, "Zen 4");
	is(0x19, 0xb0, 0xff, UNKNOWN);
	is(0x1a, 0x00, 0x2f, "Zen 5");
	is(0x1a, 0x30, 0x3f, UNKNOWN);
	is(0x1a, 0x40, 0x4f, "Zen 5");
	is(0x1a, 0x50, 0x5f, "Zen 6");
	is(0x1a, 0x60, 0x7f, "Zen 5");
	is(0x1a, 0x80, 0xaf, "Zen 6");
	is(0x1a, 0xb0, 0xbf, UNKNOWN);
	is(0x1a, 0xc0, 0xcf, "Zen 6");
	is(0x1a, 0xd0, 0xff, UNKNOWN);
	/* of another vendor */
	cpu_info_set(&c, "GenuineIntel", 0x19, 0x01, 0);
	assert_string_equal(cpu_generation(&c), UNKNOWN);
}

static void test_set(void **state)
{
	(void)state;
	memset(&c, 0xff, sizeof(c));
	cpu_info_set(&c, "AuthenticAMD", 0x19, 0x11, 0xbff);
	assert_string_equal(c.vendor, "AuthenticAMD");
	assert_int_equal(c.family, 0x19);
	assert_int_equal(c.model, 0x11);
	assert_int_equal(c.stepping, 0);
	assert_true(c.amd && c.ibs);
	assert_false(c.hypervisor);
	assert_int_equal(c.caps, 0xbff);
	assert_int_equal(c.quirks, ibs_quirks(0x19, 0x11));
	/* without IBS */
	cpu_info_set(&c, "AuthenticAMD", 0x19, 0x11, 0);
	assert_true(c.amd);
	assert_false(c.ibs);
	assert_int_equal(c.caps, 0);
	/* a word that does not say that it is valid */
	cpu_info_set(&c, "AuthenticAMD", 0x19, 0x11, 0xbfe);
	assert_true(c.ibs);
	assert_int_equal(c.caps, IBS_CAPS_DEFAULT);
}

static void text(const char *name, const char *want)
{
	char buf[96];

	cpu_info_set(&c, "AuthenticAMD", 0x19, 0x11, 0);
	strcpy(c.name, name);
	assert_ptr_equal(cpu_text(&c, buf, sizeof(buf)), buf);
	assert_string_equal(buf, want);
}

static void test_text(void **state)
{
	(void)state;
	text("", "Zen 4");
	text("AMD EPYC 9654", "AMD EPYC 9654 (Zen 4)");
	text("Simulated Zen 4", "Simulated Zen 4");
}

/* The value of the first line of /proc/cpuinfo with that name, or "". */
static const char *kernels(const char *name)
{
	static char line[4096];
	FILE *f = fopen("/proc/cpuinfo", "re");
	char *colon, *value = NULL;

	assert_non_null(f);
	while (!value && fgets(line, sizeof(line), f)) {
		colon = strchr(line, ':');
		line[strcspn(line, "\n\t:")] = 0;
		value = colon && !strcmp(line, name) ? colon + 1 : NULL;
	}
	fclose(f);
	if (!value)
		return "";
	value[strcspn(value, "\n")] = 0;
	return value + strspn(value, " ");
}

/* The kernel leaves out some blanks. */
static void same_words(const char *a, const char *b)
{
	for (; *a || *b; a++, b++) {
		a += strspn(a, " ");
		b += strspn(b, " ");
		assert_int_equal(*a, *b);
		if (!*a)
			return;
	}
}

/* What the kernel says of this machine. */
static void test_read(void **state)
{
	(void)state;
	if (!*kernels("vendor_id")) {
		print_message("skipped: /proc/cpuinfo has no vendor_id\n");
		skip();
	}
	if (strstr(getenv("LD_PRELOAD") ?: "", "vgpreload")) {
		print_message("skipped: valgrind has a processor of its own\n");
		skip();
	}
	memset(&c, 0xff, sizeof(c));
	cpu_info_read(&c);
	assert_string_equal(c.vendor, kernels("vendor_id"));
	assert_int_equal(c.family, strtoul(kernels("cpu family"), NULL, 10));
	assert_int_equal(c.model, strtoul(kernels("model"), NULL, 10));
	assert_int_equal(c.stepping, strtoul(kernels("stepping"), NULL, 10));
	same_words(c.name, kernels("model name"));
	assert_int_equal(c.hypervisor, strstr(kernels("flags"), " hypervisor") != NULL);
	assert_int_equal(c.amd, strstr("AuthenticAMD HygonGenuine", c.vendor) != NULL);
	assert_true(c.ibs == !!c.caps);
	assert_true(c.hypervisor == !!*c.hypervisor_name);
}

/* --- leaves of other processors --- */

static struct {
	__u32 ext_max, caps, features; /* features: 0x80000001 ECX */
	__u32 version, hypervisor;     /* leaf 1 EAX; ECX[31] */
	const char *vendor, *name, *signature;
} fake;

/* The text in the registers @a, @b and @c, in this order. */
static void put_text(const char *text, __u32 *a, __u32 *b, __u32 *c)
{
	char bytes[12] = "";

	memcpy(bytes, text, strnlen(text, sizeof(bytes)));
	memcpy(a, bytes, 4);
	memcpy(b, bytes + 4, 4);
	memcpy(c, bytes + 8, 4);
}

static struct cpu_regs fake_leaf(__u32 nr)
{
	struct cpu_regs r = {};
	char name[49] = "";

	snprintf(name, sizeof(name), "%s", fake.name);
	if (nr == 0)
		put_text(fake.vendor, &r.ebx, &r.edx, &r.ecx);
	else if (nr == 1)
		r = (struct cpu_regs){ .eax = fake.version, .ecx = fake.hypervisor << 31 };
	else if (nr == 0x40000000)
		put_text(fake.signature, &r.ebx, &r.ecx, &r.edx);
	else if (nr == 0x80000000)
		r.eax = fake.ext_max;
	else if (nr == 0x80000001)
		r.ecx = fake.features;
	else if (nr >= 0x80000002 && nr <= 0x80000004)
		memcpy(&r, name + 16 * (nr - 0x80000002), sizeof(r));
	else if (nr == 0x8000001b)
		r.eax = fake.caps;
	else
		fail_msg("leaf %x", nr);
	return r;
}

static void decode(void)
{
	memset(&c, 0xff, sizeof(c));
	cpu_info_decode(fake_leaf, &c);
}

static void zen4_is_faked(void)
{
	fake.ext_max = 0x80000028;
	fake.caps = 0xbff;
	fake.features = 1 << 10;
	fake.version = 0x00a10f12;
	fake.hypervisor = 0;
	fake.vendor = "AuthenticAMD";
	fake.name = "  AMD EPYC 9654 96-Core Processor               ";
	fake.signature = "";
}

static void test_decode(void **state)
{
	(void)state;
	zen4_is_faked();
	decode();
	assert_string_equal(c.vendor, "AuthenticAMD");
	assert_string_equal(c.name, "AMD EPYC 9654 96-Core Processor");
	assert_int_equal(c.family, 0x19);
	assert_int_equal(c.model, 0x11);
	assert_int_equal(c.stepping, 2);
	assert_true(c.amd && c.ibs);
	assert_int_equal(c.caps, 0xbff);
	assert_int_equal(c.quirks, ibs_quirks(0x19, 0x11));
	assert_false(c.hypervisor);
	assert_string_equal(c.hypervisor_name, "");
	/* the extended family counts only with family 15, the extended model from family 6 on */
	fake.version = 0x00a30662;
	decode();
	assert_int_equal(c.family, 6);
	assert_int_equal(c.model, 0x36);
	fake.version = 0x00a30562;
	decode();
	assert_int_equal(c.family, 5);
	assert_int_equal(c.model, 6);
}

/* As Linux reads them: without the leaf, or if it is not valid, the default ones. */
static void test_decode_caps(void **state)
{
	(void)state;
	zen4_is_faked();
	fake.features = ~(1u << 10);
	decode();
	assert_false(c.ibs);
	assert_int_equal(c.caps, 0);
	zen4_is_faked();
	fake.caps = 0xbfe;
	decode();
	assert_int_equal(c.caps, IBS_CAPS_DEFAULT);
	zen4_is_faked();
	fake.ext_max = 0x8000001b;
	decode();
	assert_int_equal(c.caps, 0xbff);
	fake.ext_max = 0x8000001a;
	decode();
	assert_true(c.ibs);
	assert_int_equal(c.caps, IBS_CAPS_DEFAULT);
	fake.ext_max = 0x80000004;
	decode();
	assert_string_equal(c.name, "AMD EPYC 9654 96-Core Processor");
	fake.ext_max = 0x80000003;
	decode();
	assert_string_equal(c.name, "");
	fake.ext_max = 0x80000001;
	decode();
	assert_true(c.ibs);
	fake.ext_max = 0x80000000;
	decode();
	assert_false(c.ibs);
}

/* Names are printed on terminals, whatever a hypervisor says. */
static void test_decode_names(void **state)
{
	(void)state;
	zen4_is_faked();
	fake.hypervisor = 1;
	fake.signature = "KVMKVMKVM";
	decode();
	assert_true(c.hypervisor);
	assert_string_equal(c.hypervisor_name, "KVM");
	fake.signature = "unknown one!";
	decode();
	assert_string_equal(c.hypervisor_name, "unknown one!");
	fake.signature = "a\x1b[1m";
	decode();
	assert_string_equal(c.hypervisor_name, "a\\x1b[1m");
	fake.signature = "";
	decode();
	assert_string_equal(c.hypervisor_name, "unnamed");
	fake.name = "\n";
	decode();
	assert_string_equal(c.name, "\\x0a");
	fake.name = "    ";
	decode();
	assert_string_equal(c.name, "");
}

static void event(enum core_event e, __u64 config, const char *meaning)
{
	const struct perf_event_attr attr = core_event_attr(e);

	assert_int_equal(attr.size, sizeof(attr));
	assert_int_equal(attr.type, PERF_TYPE_RAW);
	assert_int_equal(attr.config, config);
	assert_int_equal(attr.read_format,
			 PERF_FORMAT_TOTAL_TIME_ENABLED | PERF_FORMAT_TOTAL_TIME_RUNNING);
	assert_true(attr.disabled);
	assert_false(attr.exclude_user || attr.exclude_kernel || attr.sample_period);
	assert_string_equal(core_event_meaning(e), meaning);
}

/* Bits 0 to 7 and 32 to 35 are the event, bits 8 to 15 the unit mask. */
static void test_core_events(void **state)
{
	(void)state;
	event(CORE_EVENT_CYCLES, 0x76, "cycles");
	event(CORE_EVENT_OPS, 0xc1, "retired ops");
	event(CORE_EVENT_TAGGED, 0x1000001cf, "tagged ops");
	event(CORE_EVENT_VALID, 0x1000010cf, "tagged ops that interrupted");
	event(CORE_EVENT_FETCH_KEPT, 0x100001888, "");
}

static void test_core_events_known(void **state)
{
	(void)state;
	cpu_info_set(&c, "AuthenticAMD", 0x17, 0x31, 0x3ff);
	assert_true(core_event_known(&c, CORE_EVENT_TAGGED));
	assert_false(core_event_known(&c, CORE_EVENT_FILTERED));
	assert_false(core_event_known(&c, CORE_EVENT_FETCH_TAGGED));
	c.caps |= IBS_CAPS_DIS;
	assert_true(core_event_known(&c, CORE_EVENT_FILTERED));
	assert_true(core_event_known(&c, CORE_EVENT_FETCH_KEPT));
	assert_false(core_event_known(&c, CORE_EVENT_FETCH_TAGGED));
	c.caps |= IBS_CAPS_OPLDLAT;
	assert_true(core_event_known(&c, CORE_EVENT_FETCH_TAGGED));
	/* before Zen, and of another vendor */
	cpu_info_set(&c, "AuthenticAMD", 0x16, 0, 0x3ff);
	assert_false(core_event_known(&c, CORE_EVENT_CYCLES));
	cpu_info_set(&c, "GenuineIntel", 0x19, 0, 0x3ff);
	assert_false(core_event_known(&c, CORE_EVENT_CYCLES));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_generations),  cmocka_unit_test(test_set),
		cmocka_unit_test(test_text),	     cmocka_unit_test(test_read),
		cmocka_unit_test(test_core_events),  cmocka_unit_test(test_core_events_known),
		cmocka_unit_test(test_decode),	     cmocka_unit_test(test_decode_caps),
		cmocka_unit_test(test_decode_names),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
