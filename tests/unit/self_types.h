/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Types of this program, by its own debug information; include after cmocka.h. */
#ifndef IBSCOPE_TESTS_SELF_TYPES_H
#define IBSCOPE_TESTS_SELF_TYPES_H

#include <link.h>
#include <stdint.h>
#include <unistd.h>

#include "types/data_types.h"

static Dwfl *dwfl;
static struct types *t;
static __u64 load_address;
static struct type_access got;

static int first_object(struct dl_phdr_info *info, size_t size, void *arg)
{
	(void)size;
	*(__u64 *)arg = info->dlpi_addr;
	return 1;
}

static int set_up(void **state)
{
	static const Dwfl_Callbacks callbacks = {
		.find_elf = dwfl_build_id_find_elf,
		.find_debuginfo = dwfl_standard_find_debuginfo,
		.section_address = dwfl_offline_section_address,
	};
	char path[4096] = "";
	Dwfl_Module *module;
	GElf_Addr bias;

	(void)state;
	assert_true(readlink("/proc/self/exe", path, sizeof(path) - 1) > 0);
	dl_iterate_phdr(first_object, &load_address);
	dwfl = dwfl_begin(&callbacks);
	module = dwfl_report_offline(dwfl, "", path, -1);
	assert_non_null(module);
	assert_int_equal(dwfl_report_end(dwfl, NULL, NULL), 0);
	assert_non_null(dwfl_module_getelf(module, &bias));
	t = types_new(module, bias);
	return 0;
}

static int clean_up(void **state)
{
	(void)state;
	types_free(t);
	dwfl_end(dwfl);
	return 0;
}

static __u64 linked(const volatile void *at)
{
	return (uintptr_t)at - load_address;
}

static void found(enum type_kind kind, const char *type, const char *field, __u64 offset,
		  __u64 begin, __u64 size)
{
	assert_int_equal(got.kind, kind);
	assert_string_equal(got.type, type);
	assert_string_equal(got.field ?: "(none)", field ?: "(none)");
	assert_int_equal(got.offset, offset);
	assert_int_equal(got.field_offset, begin);
	assert_int_equal(got.field_size, size);
}

static void none(const char *at, enum type_kind kind)
{
	types_of_code(t, linked(at), &got);
	assert_int_equal(got.kind, kind);
	assert_null(got.type);
	assert_null(got.field);
}

static inline void list(const char *path, __u64 offset, __u64 size, void *arg)
{
	char *text = arg;

	sprintf(text + strlen(text), "%s %llu %llu\n", path, offset, size);
}

#endif
