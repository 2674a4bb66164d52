// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Are adopted counters still what a collector has counted? Other programs can write to the maps. */
#include "pins_private.h"

#include "pinned.h"

#include <stdlib.h>
#include <sys/mman.h>

/* Copies for the counters of a collector that was killed while it folded groups. */
struct unfolded {
	struct ibs_state *state;
	struct ibs_slot_owner *owners;
};

/* Slots that were just freed may still have counts, which sampler_fold_repair() moves later. */
static void unfold(const struct ibs_meta_layout *l, struct unfolded *u, struct counts *counts)
{
	/* the size of each part is a multiple of the alignment */
	u->state = aligned_alloc(_Alignof(struct ibs_state), l->state_bytes);
	if (!u->state)
		out_of_memory();
	memcpy(u->state, counts->state, l->state_bytes);
	u->state->control.fold &= ~1U;
	u->owners = xcalloc(l->max_slots, sizeof(*u->owners));
	for (__u32 slot = 0; slot < l->max_slots; slot++)
		u->owners[slot] =
			(struct ibs_slot_owner){ counts->owners[slot].key, IBS_SLOT_LEAVING };
	counts->state = u->state;
	counts->owners = u->owners;
}

static int read_all(const struct ibs_meta_layout *l, void *const addr[IBS_PIN_N], struct err *err)
{
	struct unfolded u = {};
	struct layout layout;
	struct counts counts;
	struct snapshot now;
	int ret;

	pinned_place(l, addr, &layout, &counts);
	if (counts.state->control.fold & 1)
		unfold(l, &u, &counts);
	memset(&now, 0, sizeof(now));
	ret = counts_read(&counts, &now, err);
	if (!ret)
		snapshot_free(&now);
	free(u.state);
	free(u.owners);
	return ret;
}

int pins_balance(const struct pins *p, const struct ibs_meta_layout *l, struct err *err)
{
	const size_t bytes[IBS_PIN_N] = {
		[IBS_PIN_SERIES] = (size_t)l->shards * l->max_slots * l->slot_words * sizeof(__u64),
		[IBS_PIN_OWNERS] = l->max_slots * sizeof(struct ibs_slot_owner),
		[IBS_PIN_STATE] = l->state_bytes,
	};
	void *addr[IBS_PIN_N] = {};
	int ret = 0;

	for (int i = 0; i < IBS_PIN_N && !ret; i++) {
		addr[i] = bytes[i] ? pins_map(p->fd[i], bytes[i], false) : NULL;
		if (bytes[i] && !addr[i])
			ret = err_set(err, -errno, "cannot map a pin in %s: %s", p->dir,
				      strerror(errno));
	}
	ret = ret ?: read_all(l, addr, err);
	for (int i = 0; i < IBS_PIN_N; i++)
		if (addr[i])
			munmap(addr[i], bytes[i]);
	return ret;
}
