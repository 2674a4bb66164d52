/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Tables of counters in ordinary memory, as the programs fill them. */
#ifndef IBSCOPE_TABLES_H
#define IBSCOPE_TABLES_H

#include "../unit/count_sample.h"
#include "base/err.h"
#include "base/num.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#define PATTERNS 16
#define SAMPLES	 1000 /* of a group in a shard */

/* Groups have samples in all shards, in one, in none. */
enum spread { EVERYWHERE, ONE_SHARD, NOWHERE, SPREADS };

static __u64 *patterns[PATTERNS];

static void __attribute__((noreturn)) die(const char *text)
{
	log_error("%s", text);
	exit(1);
}

/* An argument; a wrong one ends the program. */
static unsigned int tables_number(const char *name, const char *text, unsigned int max)
{
	const struct num_arg arg = { .name = name, .min = 1, .max = max };
	struct err err = {};
	uint64_t v;

	if (num_parse(&arg, text, &v, &err)) {
		log_error("%s", err.text);
		exit(2);
	}
	return v;
}

static void tables_patterns(const struct layout *layout)
{
	for (int p = 0; p < PATTERNS; p++) {
		patterns[p] = calloc(layout->words, sizeof(__u64));
		if (!patterns[p])
			die("out of memory");
		for (int i = 0; i < SAMPLES; i++) {
			__u64 regs[IBS_OP_REG_FIXED];

			ibs_sim_op(1, p, i, CAPS, regs);
			count_sample(layout, patterns[p], regs);
		}
	}
}

static void *tables_pages(size_t bytes)
{
	void *p = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (p == MAP_FAILED)
		die("out of memory for the table");
	madvise(p, bytes, MADV_NOHUGEPAGE); /* nor has a BPF map any */
	memset(p, 0, bytes);
	return p;
}

/* @series, @cpus, @owners: what @c points to */
static void tables_fill(const struct counts *c, __u64 *series, enum spread spread,
			struct ibs_cpu_state *cpus, struct ibs_slot_owner *owners)
{
	const size_t words = c->layout->words;
	__u64 n = 0;

	memset(series, 0, (size_t)c->shards * c->max_slots * words * sizeof(*series));
	for (__u32 slot = 1; slot < c->max_slots; slot++) {
		owners[slot].key.cgroup_id = 1000 + slot;
		owners[slot].used = 1;
		for (__u32 shard = 0; shard < c->shards && spread != NOWHERE; shard++) {
			if (spread == ONE_SHARD && shard != slot % c->shards)
				continue;
			memcpy(series + ((size_t)shard * c->max_slots + slot) * words,
			       patterns[(slot + shard) % PATTERNS], words * sizeof(*series));
			n += SAMPLES;
		}
	}
	cpus[0].seen = cpus[0].outcome[IBS_OUTCOME_AGGREGATED] = n;
}

#endif
