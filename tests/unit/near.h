/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Numbers that are calculated in another order than in the test. After cmocka.h. */
#ifndef IBSCOPE_TESTS_NEAR_H
#define IBSCOPE_TESTS_NEAR_H

#include <math.h>

static inline void near(double is, double want)
{
	if (!(fabs(is - want) <= 1e-9 * fmax(1, fabs(want))))
		fail_msg("%.12g is not %.12g", is, want);
}

#endif
