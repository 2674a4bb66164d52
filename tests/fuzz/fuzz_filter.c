// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Any text as a filter: no crash, and what is accepted says the same after --explain. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "filter/filter_options.h"

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
	filter_explain(out, f, 80);
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

/* The same text as an option that is a filter underneath. */
static void check_option(enum filter_option o, const char *text)
{
	struct filter_options opts = {};
	struct filter f, again;
	struct err e = {};

	if (!filter_options_add(&opts, o, text, &e)) {
		need(!filter_options_compile(&opts, &f, &e));
		need(f.n_parts == 1 && !filter_parse(f.parts[0].text, &again, &e));
		need(!strcmp(again.text, f.text) && again.prog.n == f.prog.n);
		filter_free(&again);
		filter_free(&f);
	} else {
		need(!strncmp(e.text, "--", 2) && strstr(e.text, ": column "));
	}
	filter_options_free(&opts);
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
	for (int o = FILTER_OPTION_TLB; o < FILTER_OPTION_EXPR; o++)
		if (o != FILTER_OPTION_TLB_LAT)
			check_option(o, text);
	free(text);
	return 0;
}
