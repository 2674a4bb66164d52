// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "cache.h"

#include <stdlib.h>
#include <string.h>

#define LINE(addr) (((addr) >> 6) + 1) /* 0 is no line */

void caches_init(struct caches *c, const struct model_core *core)
{
	static const struct cache_level sizes[LEVEL_DRAM] = {
		[LEVEL_L1] = { .sets = 64, .ways = 8 },	   /* 32 KiB */
		[LEVEL_L2] = { .sets = 512, .ways = 8 },   /* 256 KiB */
		[LEVEL_L3] = { .sets = 2048, .ways = 16 }, /* 2 MiB */
	};

	*c = (struct caches){ .core = core, .random = 7 };
	for (int l = 0; l < LEVEL_DRAM; l++) {
		c->level[l] = sizes[l];
		c->level[l].line =
			calloc((size_t)sizes[l].sets * sizes[l].ways, sizeof(*c->level[l].line));
		if (!c->level[l].line)
			abort();
	}
}

void caches_free(struct caches *c)
{
	for (int l = 0; l < LEVEL_DRAM; l++)
		free(c->level[l].line);
}

/* Look a line up and make it the most recently used one. @fill: put it there if it is missing */
static bool touch(struct cache_level *l, uint64_t line, bool fill)
{
	uint64_t *set = &l->line[line % l->sets * l->ways];
	unsigned int w = 0;
	bool hit;

	while (w < l->ways && set[w] != line)
		w++;
	hit = w < l->ways;
	if (!hit && !fill)
		return false;
	if (!hit)
		w = l->ways - 1;
	memmove(set + 1, set, w * sizeof(*set));
	*set = line;
	return hit;
}

/* Extra cycles of DRAM: 0 or more, few of them many times the mean. */
static unsigned int jitter(struct caches *c)
{
	unsigned int n = 0, mean = c->core->jitter;

	if (!mean)
		return 0;
	while (n < 4 && !(model_random(&c->random) & 1))
		n++;
	return n * mean + model_random(&c->random) % mean;
}

static uint64_t arrival(struct caches *c, enum model_level level, uint64_t now)
{
	const struct model_core *core = c->core;
	uint64_t at = now;

	if (level == LEVEL_L2)
		return now + core->l2;
	if (level == LEVEL_L3)
		return now + core->l3 + model_random(&c->random) % (core->l3 / 4 + 1);
	if (at < c->next_line)
		at = c->next_line;
	c->next_line = at + core->gap;
	return at + core->dram + jitter(c);
}

static struct mab *find(struct caches *c, uint64_t line)
{
	for (unsigned int i = 0; i < c->core->mabs; i++)
		if (c->mab[i].fill && c->mab[i].line == line)
			return &c->mab[i];
	return NULL;
}

static struct mab *allocate(struct caches *c, uint64_t line, uint64_t now)
{
	struct mab *m = c->mab;
	enum model_level level = LEVEL_L2;

	while (m < c->mab + c->core->mabs && m->fill)
		m++;
	if (m == c->mab + c->core->mabs)
		return NULL;
	while (level < LEVEL_DRAM && !touch(&c->level[level], line, true))
		level++;
	*m = (struct mab){ .line = line, .level = level, .fill = arrival(c, level, now) };
	return m;
}

/* The second miss of adjacent lines starts a stream, which runs four lines ahead. */
static void prefetch(struct caches *c, uint64_t line, bool miss, uint64_t now)
{
	unsigned int i = 0;

	while (i < 16 && c->streams[i] + 1 != line)
		i++;
	if (i == 16) {
		if (miss)
			c->streams[c->stream++ % 16] = line;
		return;
	}
	c->streams[i] = line;
	for (uint64_t ahead = line + 1; ahead <= line + 4; ahead++)
		if (cache_open(c) + 4 < c->core->mabs && !find(c, ahead) &&
		    !touch(&c->level[LEVEL_L1], ahead, false))
			allocate(c, ahead, now);
}

enum cache_answer cache_access(struct caches *c, uint64_t addr, uint64_t now, struct mab **mab)
{
	uint64_t line = LINE(addr);
	enum cache_answer answer;

	if (touch(&c->level[LEVEL_L1], line, false)) {
		if (c->core->prefetch)
			prefetch(c, line, false, now);
		return CACHE_HIT;
	}
	*mab = find(c, line);
	answer = *mab ? CACHE_JOINED : CACHE_NEW;
	if (!*mab)
		*mab = allocate(c, line, now);
	if (!*mab)
		return CACHE_FULL;
	if (c->core->prefetch)
		prefetch(c, line, true, now);
	return answer;
}

unsigned int cache_open(const struct caches *c)
{
	unsigned int n = 0;

	for (unsigned int i = 0; i < c->core->mabs; i++)
		n += c->mab[i].fill != 0;
	return n;
}

bool cache_fill(struct caches *c, uint64_t now)
{
	bool any = false;

	for (unsigned int i = 0; i < c->core->mabs; i++) {
		if (!c->mab[i].fill || c->mab[i].fill > now)
			continue;
		touch(&c->level[LEVEL_L1], c->mab[i].line, true);
		c->mab[i].fill = 0;
		any = true;
	}
	return any;
}

uint64_t cache_next(const struct caches *c)
{
	uint64_t next = ~0ull;

	for (unsigned int i = 0; i < c->core->mabs; i++)
		if (c->mab[i].fill && c->mab[i].fill < next)
			next = c->mab[i].fill;
	return next;
}
