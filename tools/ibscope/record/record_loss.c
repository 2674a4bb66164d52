// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Too many samples lost to a full ring: a warning at once, and an error at the end. */
#include "record_private.h"
#include "base/text.h"

#define LOSS_MIN 100 /* samples for a meaningful share */

static double share(__u64 lost, __u64 kept)
{
	return lost + kept ? (double)lost / (lost + kept) : 0;
}

void record_loss_check(struct record *r, const struct ledger *all)
{
	__u64 lost = all->outcome[IBS_OUTCOME_LOST_RING_FULL];
	__u64 kept = all->outcome[IBS_OUTCOME_FORWARDED];
	__u64 new_lost = lost - r->loss.lost, new_kept = kept - r->loss.kept;

	if (new_lost + new_kept < LOSS_MIN)
		return;
	r->loss.lost = lost;
	r->loss.kept = kept;
	if (r->loss.warned || share(new_lost, new_kept) <= r->max_loss)
		return;
	r->loss.warned = true;
	log_warn("%.1f%% of the last samples were lost because a buffer was full; use a larger "
		 "--ring-size, a longer period (-c) or a narrower selection",
		 100 * share(new_lost, new_kept));
}

int record_loss_end(const struct record *r, const struct ledger *all, struct err *err)
{
	__u64 lost = all->outcome[IBS_OUTCOME_LOST_RING_FULL];
	__u64 kept = all->outcome[IBS_OUTCOME_FORWARDED];
	double lost_share = share(lost, kept);

	/* --max-loss 0% tolerates no loss, however few samples there are */
	if (lost_share <= r->max_loss || (r->max_loss && lost + kept < LOSS_MIN))
		return 0;
	return err_set(err, -ENOBUFS,
		       "%.1f%% of the samples (%s) were lost because a buffer was full, more than "
		       "--max-loss allows (%g%%); the file is usable. Use a larger --ring-size, a "
		       "longer period (-c) or a narrower selection",
		       100 * lost_share, TEXT_COUNT(lost), 100 * r->max_loss);
}
