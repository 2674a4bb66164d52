// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "collector_private.h"

#include "base/clock.h"
#include "base/text.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <systemd/sd-daemon.h>
#include <unistd.h>

/*
 * Parts of the selection that the program must be able to change while it samples: those that have
 * been changed live, and latency and processes if it tests for them anyway. Anything else would
 * cost each sample instructions.
 */
static unsigned int live_bits(const struct collector *c)
{
	const struct selection *sel = &c->set.sampling.select.sel;
	unsigned int bits = c->live_bits;

	if (sel->min_lat || sel->max_lat)
		bits |= SAMPLER_LIVE_LATENCY;
	if (sel->processes.n)
		bits |= SAMPLER_LIVE_PROCESSES;
	return bits;
}

/* Sampling has not started, so all counts are from earlier collectors. */
static int log_adopted(struct collector_event *e, const char *dir, struct err *err)
{
	struct sampler *sampler = opened(e)->sampler;
	struct pmu_state pmu;
	struct ledger l;
	int ret;

	if (!sampler_adopted(sampler))
		return 0;
	ret = sampler_ledger(sampler, &l, &pmu, err);
	if (!ret)
		log_info("resuming counters pinned in %s: %s samples seen, %s unseen", dir,
			 TEXT_COUNT(l.seen), TEXT_COUNT(l.unseen));
	e->stats_seen = l.seen;
	return ret;
}

/* The second event has its pins in a directory below the first one's. */
static int open_second_pins(struct collector *c, bool create, struct err *err)
{
	char dir[sizeof(c->set.pin_dir) + sizeof(IBS_PIN_SECOND) + 1];

	snprintf(dir, sizeof(dir), "%s/" IBS_PIN_SECOND, c->set.pin_dir);
	if (c->event[1].pins || (!create && access(dir, F_OK)))
		return 0;
	return pins_open(dir, c->set.pin_mode, &c->event[1].pins, err);
}

/* With one event, remove the second event's pins: to readers the counters would look stalled. */
static int remove_second_pins(struct collector *c, struct err *err)
{
	struct pins **pins = &c->event[1].pins;
	int ret = open_second_pins(c, false, err);

	if (*pins)
		pins_remove(*pins);
	pins_close(*pins);
	*pins = NULL;
	return ret;
}

static int open_session(struct collector *c, struct err *err)
{
	struct sampling_opts *o = &c->set.sampling;

	o->live = live_bits(c);
	for (unsigned int i = 0; i < COLLECTOR_EVENTS; i++)
		o->event[i].pins = c->event[i].pins;
	return session_open(c->session, o, err);
}

static int begin_event(struct collector_event *e, struct err *err)
{
	sampler_fold_into(opened(e)->sampler, collector_heir, e);
	status_begin(e);
	return log_adopted(e, pins_dir(e->pins), err);
}

int collector_begin(struct collector *c, struct err *err)
{
	int ret;

	c->n_events = c->set.sampling.n_events;
	for (unsigned int i = 0; i < COLLECTOR_EVENTS; i++)
		c->event[i].c = c;
	ret = c->n_events > 1 ? open_second_pins(c, true, err) : 0;
	ret = ret ?: open_session(c, err);
	for_each_event (e, c)
		ret = ret ?: begin_event(e, err);
	if (ret)
		return ret;
	status_live(c);
	machine_watch_start(c);
	ret = flight_begin(c->flight, &c->set.flight, c->session, err);
	if (ret)
		return ret;
	neighbour_watch_begin(c);
	c->next_follow_s = 0;
	collector_renew_lease(c);
	ret = budget_open(c, err);
	ret = ret ?: session_start(c->session, err);
	for_each_event (e, c)
		pins_meta(e->pins)->outlives = pins_have_links(e->pins);
	if (!ret && c->n_events == 1)
		ret = remove_second_pins(c, err);
	return ret ?: status_update(c, now_s(), err);
}

struct collector_settings settings_replace(struct collector *c, struct collector_settings *fresh)
{
	struct collector_settings old = c->set;

	strcpy(fresh->control, old.control);
	c->set = *fresh;
	c->set.extra = old.extra;
	old.extra = fresh->extra;
	return old;
}

int collector_replace(struct collector *c, struct collector_settings *fresh, bool *usage,
		      struct err *err)
{
	struct collector_settings old;
	int ret = collector_check_pins(c, err);

	if (ret) { /* neither new options nor the old ones could resume the counters */
		settings_close(fresh);
		return ret;
	}
	sd_notifyf(0, "RELOADING=1\nMONOTONIC_USEC=%llu", (unsigned long long)(now_s() * 1e6));
	if (c->opts.closing)
		c->opts.closing(c->opts.arg);
	if (keeps_lines(c))
		served_lines_take(&c->lines, c->session, &c->event[0].status.lines);
	session_stop(c->session);
	status_update(c, now_s(), err);
	old = settings_replace(c, fresh);
	ret = collector_begin(c, err);
	if (ret) {
		*usage = session_usage(c->session);
		old = settings_replace(c, &old);
		c->broken = collector_begin(c, &c->broken_err);
	}
	settings_close(&old);
	sd_notify(0, "READY=1");
	return ret;
}

/* Find errors before sampling stops. Close @out in any case. */
static int parse_again(struct collector *c, struct collector_settings *out, bool *usage,
		       struct err *err)
{
	int ret = settings_parse(&c->source, &c->live, out, err);

	if (ret > 0)
		return err_set(err, -EINVAL, "--help and --version are for the command line only");
	if (ret)
		return ret;
	if (strcmp(out->pin_dir, c->set.pin_dir))
		return err_set(err, -EINVAL, "--pin-dir cannot be changed without a restart");
	if (out->sampling.select.explain)
		return err_set(err, -EINVAL, "--explain cannot be given to a running collector");
	return session_check(&out->sampling, usage, err);
}

int reload_options(struct collector *c, bool *usage, struct err *err)
{
	const struct settings_source old = c->source;
	const unsigned int bits = c->live_bits;
	const bool verbose = log_is_verbose();
	struct collector_settings fresh;
	int ret = settings_read_config(&c->source, err);

	*usage = true;
	if (!ret) {
		ret = parse_again(c, &fresh, usage, err);
		c->live_bits = 0;
		if (ret)
			settings_close(&fresh);
		else
			ret = collector_replace(c, &fresh, usage, err);
	}
	if (!ret) {
		c->event[0].status.reloads++;
		free(old.config_text);
		log_info("options reloaded");
		return 0;
	}
	log_set_verbose(verbose);
	log_error("options not reloaded: %s", err->text);
	c->event[0].status.config_errors++;
	c->live_bits = bits;
	free(c->source.config_text);
	c->source = old;
	return ret;
}
