// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* What the running kernel supports, against its version and what libbpf says of it. */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <bpf/btf.h>
#include <bpf/libbpf.h>
#include <cmocka.h>

#include "machine/kernel.h"

static struct err err;

static bool has_helper(enum bpf_prog_type type, enum bpf_func_id helper)
{
	return libbpf_probe_bpf_helper(type, helper, NULL) > 0;
}

static bool is_at_least(unsigned int major, unsigned int minor)
{
	unsigned int has_major, has_minor;
	struct utsname u;

	assert_int_equal(uname(&u), 0);
	assert_int_equal(sscanf(u.release, "%u.%u", &has_major, &has_minor), 2);
	return has_major > major || (has_major == major && has_minor >= minor);
}

static struct kernel_features probe(void)
{
	struct kernel_features f;

	memset(&f, 0xff, sizeof(f));
	if (kernel_features_probe(&f, &err))
		fail_msg("%s", err.text);
	return f;
}

static void test_features(void **state)
{
	const struct kernel_features f = probe();
	bool direct;

	(void)state;
	assert_int_equal(f.ancestor_helper, has_helper(BPF_PROG_TYPE_PERF_EVENT,
						       BPF_FUNC_get_current_ancestor_cgroup_id));
	assert_int_equal(f.task_btf,
			 has_helper(BPF_PROG_TYPE_PERF_EVENT, BPF_FUNC_get_current_task_btf));
	assert_int_equal(f.task_pt_regs,
			 has_helper(BPF_PROG_TYPE_PERF_EVENT, BPF_FUNC_task_pt_regs));
	assert_int_equal(f.probe_read,
			 has_helper(BPF_PROG_TYPE_PERF_EVENT, BPF_FUNC_probe_read_kernel));
	/* from these versions on */
	assert_int_equal(f.memcg_charge, is_at_least(5, 11));
	assert_int_equal(f.syscall_prog, is_at_least(5, 14));
	assert_int_equal(f.perf_link, is_at_least(5, 15));
	assert_int_equal(f.limit_after_prog, is_at_least(6, 10));
	assert_int_equal(kernel_features_btf("", &direct, &err), 0);
	assert_int_equal(f.direct_read, direct);
	if (!is_at_least(6, 2))
		assert_false(direct);
}

static void test_types(void **state)
{
	struct btf *btf = btf__load_vmlinux_btf();
	bool direct = true;

	(void)state;
	assert_non_null(btf);
	assert_int_equal(
		kernel_finds_slabs(),
		btf__find_by_name_kind(btf, "bpf_get_kmem_cache", BTF_KIND_FUNC) > 0 &&
			btf__find_by_name_kind(btf, "bpf_iter__kmem_cache", BTF_KIND_STRUCT) > 0);
	assert_int_equal(kernel_features_btf("", &direct, &err), 0);
	assert_int_equal(direct,
			 btf__find_by_name_kind(btf, "perf_ibs_data", BTF_KIND_STRUCT) > 0 &&
				 btf__find_by_name_kind(btf, "bpf_rdonly_cast", BTF_KIND_FUNC) > 0);
	btf__free(btf);
	/* a kernel without types */
	direct = true;
	assert_int_equal(kernel_features_btf("/nowhere", &direct, &err), -ENOENT);
	assert_false(direct);
	assert_non_null(strstr(err.text, "(/nowhere/sys/kernel/btf/vmlinux)"));
}

/* The number of a file of a process without stdin is as good as others. */
static void test_without_stdin(void **state)
{
	const struct kernel_features with = probe();
	struct kernel_features without;
	int in = fcntl(0, F_DUPFD_CLOEXEC, 3), ret;

	(void)state;
	close(0);
	ret = kernel_features_probe(&without, &err);
	assert_int_equal(fcntl(0, F_GETFD), -1); /* all are closed */
	if (in >= 0) {
		assert_int_equal(dup2(in, 0), 0);
		close(in);
	}
	assert_int_equal(ret, 0);
	assert_memory_equal(&with, &without, sizeof(with));
}

#define PICKED 5

/* Symbols all over /proc/kallsyms; of several with the same name, the first one. */
static void test_symbols(void **state)
{
	unsigned long long addr, want[PICKED] = {};
	char line[512], name[PICKED][256] = { "schedule" }, text[256], type;
	FILE *f = fopen("/proc/kallsyms", "re");

	(void)state;
	assert_non_null(f);
	for (int i = 0, n = 1; n < PICKED && fgets(line, sizeof(line), f); i++)
		if (i % 20000 == 500 && sscanf(line, "%*x %*c %255s", text) == 1)
			strcpy(name[n++], text);
	rewind(f);
	while (fgets(line, sizeof(line), f)) {
		assert_int_equal(sscanf(line, "%llx %c %255s", &addr, &type, text), 3);
		for (int n = 0; n < PICKED; n++)
			if (!want[n] && !strcmp(text, name[n]))
				want[n] = addr;
	}
	fclose(f);
	for (int n = 0; n < PICKED; n++)
		if (*name[n])
			assert_true(kernel_symbol(name[n]) == want[n]);
	assert_true(kernel_symbol("no_such_symbol_anywhere") == 0);
	assert_true(kernel_symbol("schedul") == 0); /* a part of others */
}

static void test_controllers(void **state)
{
	int id;

	(void)state;
	id = kernel_cgroup_subsys("memory", &err);
	if (id < 0) {
		print_message("skipped: %s\n", err.text);
		skip();
	}
	assert_int_equal(kernel_cgroup_subsys("cpuset", &err), 0); /* the first of all kernels */
	assert_int_not_equal(id, kernel_cgroup_subsys("blkio", &err));
	assert_int_equal(kernel_cgroup_subsys("nonsense", &err), -EOPNOTSUPP);
	assert_string_equal(err.text, "this kernel has no cgroup controller 'nonsense'");
	assert_int_equal(kernel_cgroup_subsys("io", &err), kernel_cgroup_subsys("blkio", &err));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_features),      cmocka_unit_test(test_types),
		cmocka_unit_test(test_without_stdin), cmocka_unit_test(test_symbols),
		cmocka_unit_test(test_controllers),
	};
	struct kernel_features f;

	if (kernel_features_probe(&f, &err)) {
		printf("skipped: %s\n", err.text);
		return 77;
	}
	return cmocka_run_group_tests(tests, NULL, NULL);
}
