/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The caches, miss buffers and DRAM of a modelled core. */
#ifndef MODEL_CACHE_H
#define MODEL_CACHE_H

#include "core.h"

enum model_level { LEVEL_L1, LEVEL_L2, LEVEL_L3, LEVEL_DRAM, LEVELS };

#define MODEL_MABS 64

struct mab {
	uint64_t line, fill; /* cycle of the data; 0: free */
	uint8_t level;
};

struct cache_level {
	unsigned int sets, ways;
	uint64_t *line; /* sets x ways, most recently used first; 0: empty */
};

struct caches {
	const struct model_core *core;
	struct cache_level level[LEVEL_DRAM];
	struct mab mab[MODEL_MABS];
	uint64_t next_line; /* cycle from which on DRAM takes another request */
	uint64_t random;
	uint64_t streams[16]; /* last lines of recent streams of misses */
	unsigned int stream;
};

enum cache_answer { CACHE_HIT, CACHE_NEW, CACHE_JOINED, CACHE_FULL };

void caches_init(struct caches *c, const struct model_core *core);
void caches_free(struct caches *c);

/* Look an address up in cycle @now. @mab: the miss buffer of CACHE_NEW and CACHE_JOINED */
enum cache_answer cache_access(struct caches *c, uint64_t addr, uint64_t now, struct mab **mab);

/* MABs in use, also those whose data have just arrived. */
unsigned int cache_open(const struct caches *c);

/* Free the MABs whose data arrived until @now. Return: whether there were any. */
bool cache_fill(struct caches *c, uint64_t now);

/* The next cycle after @now in which data arrive, or ~0. */
uint64_t cache_next(const struct caches *c);

#endif
