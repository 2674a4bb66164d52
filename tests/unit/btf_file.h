/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Type information of a kernel that is made by tests, as a file. After cmocka.h. */
#ifndef IBSCOPE_TESTS_BTF_FILE_H
#define IBSCOPE_TESTS_BTF_FILE_H

#include <bpf/btf.h>
#include <stdio.h>

/* Write it, and free @b. */
static inline void btf_put(struct btf *b, const char *path)
{
	const void *raw;
	__u32 size;
	FILE *f;

	raw = btf__raw_data(b, &size);
	assert_non_null(raw);
	f = fopen(path, "w");
	assert_non_null(f);
	assert_int_equal(fwrite(raw, 1, size, f), size);
	fclose(f);
	btf__free(b);
}

#endif
