// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Pins that others remove or replace: noticed, reported and pinned again. */
#include "collector_private.h"

#include "base/clock.h"

#include <string.h>

#define CHECK_S 5

/* Return: 0 if nothing is missing now, or a negative errno with @err. */
static int check_event(struct collector_event *e, unsigned int *missing, struct err *err)
{
	struct pins_checked pins;
	unsigned int links = 0;
	int ret = pins_check(e->pins, &pins, err);

	if (pins.header) {
		status_texts(e);
		pins_meta(e->pins)->outlives = pins_have_links(e->pins);
	}
	if (!ret) {
		pins.repaired += sampler_check_links(opened(e)->sampler, &links);
		if (links)
			ret = err_set(err, -EIO, "cannot pin links in %s", pins_links_dir(e->pins));
	}
	e->c->pins_repaired += pins.repaired + pins.header;
	*missing += pins.missing + links;
	return ret;
}

int collector_check_pins(struct collector *c, struct err *err)
{
	const unsigned int before = c->pins_repaired;
	unsigned int missing = 0;
	int ret = 0;

	c->next_pins_s = now_s() + CHECK_S;
	for_each_event (e, c)
		ret = check_event(e, &missing, err) ?: ret;
	if (c->pins_repaired != before)
		status_live(c);
	if (ret && strcmp(err->text, c->pins_err.text)) {
		log_error("readers and the next collector do not find all counters: %s; sampling "
			  "continues, and this is tried again every %d s",
			  err->text, CHECK_S);
		c->pins_err = *err;
	} else if (!ret && *c->pins_err.text) {
		log_info("all pins are in place again");
		*c->pins_err.text = 0;
	}
	c->pins_missing = missing;
	return ret;
}
