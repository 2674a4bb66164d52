// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Counters of the schema before, resumed by a collector of this one. */
#include "pins_private.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>

/*
 * Schema 13 has room for outcomes where schema 12 had what the loader or the program sets again: the last
 * cgroup, shard, nodes and hot lines. All else has the same place, and in place of LOST_LEASE there was
 * LOST_RING_FULL, which programs that count never come to.
 */
static void clear_new_outcomes(struct ibs_state *state, const struct ibs_meta_layout *l)
{
	for (__u32 cpu = 0; cpu < l->n_cpus; cpu++) {
		struct ibs_cpu_state *st = &state->cpu[cpu];

		memset(&st->outcome[l->outcomes], 0,
		       (IBS_OUTCOME_ROOM - l->outcomes) * sizeof(*st->outcome));
		st->lapsed = 0;
	}
	state->control.lease_ns = 0;
}

int pins_convert(struct pins *p, struct err *err)
{
	const struct ibs_meta_layout *l = &p->meta->layout;
	struct ibs_state *state;

	if (p->meta->schema == IBS_PIN_SCHEMA)
		return 0;
	state = pins_map(p->fd[IBS_PIN_STATE], l->state_bytes, true);
	if (!state)
		return err_set(err, -errno, "cannot map the pinned state in %s: %s", p->dir,
			       strerror(errno));
	clear_new_outcomes(state, l);
	munmap(state, l->state_bytes);
	p->meta->lease_ns = 0;
	log_info("the counters of version %.31s (schema %u) continue in version %s (schema %u)",
		 p->meta->version, p->meta->schema, IBSCOPE_VERSION, IBS_PIN_SCHEMA);
	return 0;
}
