/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Where profiles go, and how often. */
#ifndef IBSCOPE_PUSH_OPTS_H
#define IBSCOPE_PUSH_OPTS_H

#include <stdbool.h>

/* X(NAME, "name") */
#define PUSH_FORMAT_TABLE(X) X(PYROSCOPE, "pyroscope") X(PARCA, "parca")

enum push_format {
#define PUSH_FORMAT_ENUM(NAME, name) PUSH_##NAME,
	PUSH_FORMAT_TABLE(PUSH_FORMAT_ENUM)
#undef PUSH_FORMAT_ENUM
		PUSH_FORMATS
};

/* Zero: do not push. */
struct push_opts {
	char url[512]; /* "": no pushing */
	enum push_format format;
	double interval_s, duration_s; /* 0: the default */
	bool stacks;		       /* with call chains */
	char name[64];		       /* "": ibscope */
	char credentials[256], ca[256];
};

#endif
