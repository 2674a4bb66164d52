// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "collector_private.h"

void collector_renew_lease(struct collector *c)
{
	bool any = false, lapsed;

	for_each_event (e, c) {
		pins_meta(e->pins)->lease_ns =
			sampler_renew_lease(opened(e)->sampler, c->set.lease_s, &lapsed);
		any |= lapsed;
	}
	if (any)
		log_warn("sampling had ended, since this process did not run for longer than its "
			 "lease; it continues");
}
