// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Counters that outlive the sampler. */
#include "sampler_private.h"

#include "pins.h"

#include <bpf/libbpf.h>
#include <errno.h>
#include <string.h>
#include <unistd.h>

int sampler_pins_adopt(struct sampler *s, const struct sampler_opts *opts, struct err *err)
{
	struct ibs_meta_layout layout;
	const char *why;
	int ret;

	if (!opts->pins)
		return 0;
	sampler_layout(s, opts, &layout);
	ret = pins_adopt(opts->pins, &layout, &why, err);
	if (ret < 0)
		return ret;
	s->misfit = why;
	s->adopted = ret;
	for (int pin = 0; ret && pin < IBS_PIN_META; pin++) {
		int e = bpf_map__reuse_fd(sampler_map(s, pin), pins_fd(opts->pins, pin));

		if (e)
			return err_set(err, e, "cannot go on with the pinned map %s: %s",
				       bpf_map__name(sampler_map(s, pin)), strerror(-e));
	}
	return 0;
}

int sampler_pins_put(struct sampler *s, const struct sampler_opts *opts, struct err *err)
{
	struct ibs_meta_layout layout;
	int maps[IBS_PIN_META], ret;

	if (!opts->pins)
		return 0;
	for (int pin = 0; pin < IBS_PIN_META; pin++)
		maps[pin] = bpf_map__fd(sampler_map(s, pin));
	sampler_layout(s, opts, &layout);
	ret = pins_finish(opts->pins, &layout, maps, err);
	if (!ret && *s->misfit)
		log_warn("the counters that were pinned could not be gone on with, and begin anew: "
			 "%s",
			 s->misfit);
	return ret;
}

void sampler_pins_resume(struct sampler *s, const struct sampler_opts *opts)
{
	const struct ibs_meta_status *st;

	if (!s->adopted)
		return;
	sampler_fold_repair(s);
	/* what was decided for another selection is void */
	__atomic_fetch_add(&s->select.control->gen, 1, __ATOMIC_SEQ_CST);
	st = &pins_meta(opts->pins)->status;
	s->unseen = st->unseen;
	s->pmu_before = (struct pmu_state){ .enabled_ns = st->enabled_ns,
					    .running_ns = st->running_ns,
					    .counted = st->counted,
					    .throttled = st->throttled,
					    .went = st->cpus_went,
					    .came = st->cpus_came };
}

int sampler_pins_start(struct sampler *s, struct err *err)
{
	struct ledger now;
	int ret = s->adopted ? counts_ledger(&s->counts, &now, err) : 0;

	/* samples after the last collector's last look at the PMU were seen, or are unknown */
	if (!ret && s->adopted)
		s->pmu_samples_before = now.seen + s->unseen;
	return ret;
}

bool sampler_adopted(const struct sampler *s)
{
	return s->adopted;
}
