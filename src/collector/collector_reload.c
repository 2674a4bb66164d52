// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "collector_private.h"

#include "base/clock.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <systemd/sd-daemon.h>

/*
 * What the program must be able to change while it samples: what has been changed live, and latency
 * and processes where it tests for them anyway. Everything else would cost each sample instructions.
 */
static unsigned int live_bits(const struct collector *c)
{
	const struct selection *sel = &c->set.sampling.opts.sel;
	unsigned int bits = c->live_bits;

	if (sel->min_lat || sel->max_lat)
		bits |= SAMPLER_LIVE_LATENCY;
	if (sel->processes.n)
		bits |= SAMPLER_LIVE_PROCESSES;
	return bits;
}

/* Sampling has not begun, so all counts are those of earlier collectors. */
static int log_adopted(struct collector *c, struct err *err)
{
	struct sampler *sampler = c->set.sampling.sampler;
	struct pmu_state pmu;
	struct ledger l;
	int ret;

	if (!sampler_adopted(sampler))
		return 0;
	ret = sampler_ledger(sampler, &l, &pmu, err);
	if (!ret)
		log_info("resuming counters pinned in %s: %llu samples seen, %llu unseen",
			 c->set.pin_dir, (unsigned long long)l.seen, (unsigned long long)l.unseen);
	c->stats_seen = l.seen;
	return ret;
}

int collector_begin(struct collector *c, struct err *err)
{
	struct sampling *sampling = &c->set.sampling;
	int ret;

	sampling->opts.pins = c->pins;
	sampling->opts.count_ops = true;
	sampling->opts.sel.live = live_bits(c);
	ret = sampling_open(sampling, err);
	if (ret)
		return ret;
	sampler_fold_into(sampling->sampler, collector_heir, c);
	status_begin(c);
	status_live(c);
	machine_watch_start(c);
	c->next_follow_s = 0;
	ret = log_adopted(c, err);
	ret = ret ?: budget_open(c, err);
	ret = ret ?: sampler_start(sampling->sampler, err);
	return ret ?: status_update(c, now_s(), err);
}

int collector_replace(struct collector *c, struct collector_settings *fresh, bool *usage,
		      struct err *err)
{
	struct collector_settings old;
	void *extra = c->set.extra;
	int ret;

	sd_notifyf(0, "RELOADING=1\nMONOTONIC_USEC=%llu", (unsigned long long)(now_s() * 1e6));
	if (c->opts.closing)
		c->opts.closing();
	sampler_stop(c->set.sampling.sampler);
	status_update(c, now_s(), err);
	sampling_release(&c->set.sampling);
	old = c->set;
	strcpy(fresh->control, old.control);
	old.extra = fresh->extra;
	c->set = *fresh;
	c->set.extra = extra;
	sampling_moved(&c->set.sampling);
	ret = collector_begin(c, err);
	if (ret) {
		*usage = c->set.sampling.usage;
		sampling_close(&c->set.sampling);
		free(old.extra);
		c->set = old;
		c->set.extra = extra;
		sampling_moved(&c->set.sampling);
		c->broken = collector_begin(c, &c->broken_err);
	} else {
		settings_close(&old);
	}
	sd_notify(0, "READY=1");
	return ret;
}

/* Errors are found before sampling stops for them. @out is to be closed in any case. */
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
	ret = sampling_prepare(&out->sampling, err);
	*usage = out->sampling.usage;
	return ret;
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
		c->status.reloads++;
		free(old.config_text);
		log_info("options reloaded");
		return 0;
	}
	log_set_verbose(verbose);
	log_error("options not reloaded: %s", err->text);
	c->status.config_errors++;
	c->live_bits = bits;
	free(c->source.config_text);
	c->source = old;
	return ret;
}
