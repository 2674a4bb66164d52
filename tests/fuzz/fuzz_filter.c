// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Any text as a filter: no crash, and what is accepted says the same after --explain. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "err.h"
#include "filter.h"

static void need(int condition)
{
	if (!condition)
		abort();
}

/* On success frees @f. */
static void check(struct filter *f)
{
	static const __u64 zero[IBS_OP_REG_FIXED];
	const struct ibs_cpu cpu = { .caps = 0xbff };
	struct ibs_filter_sample s = { .regs = zero, .ibs = &cpu };
	struct filter again;
	struct err e = {};
	char *said = NULL;
	size_t size;
	FILE *out = open_memstream(&said, &size);

	need(out != NULL);
	filter_explain(out, f);
	fclose(out);
	*strchr(said, '\n') = 0;
	need(!filter_parse(said + strlen("filter: "), &again, &e));
	need(!memcmp(&again.prog, &f->prog, sizeof(f->prog)));
	need(!memcmp(again.cgroups, f->cgroups, sizeof(f->cgroups)));
	need(ibs_filter_eval(&again.prog, &s) == ibs_filter_eval(&f->prog, &s));
	free(said);
	filter_free(&again);
	filter_free(f);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *text = strndup((const char *)data, size);
	struct err e = {};
	struct filter f;

	need(text != NULL);
	if (!filter_parse(text, &f, &e))
		check(&f);
	else
		need(!strncmp(e.text, "column ", 7));
	free(text);
	return 0;
}
