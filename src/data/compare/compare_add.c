// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Both sides, added up by cause and by row, in blocks of time. The length of a recording is not known
 * before its end, so blocks begin short, and neighbours are joined when there are too many.
 */
#include "compare_private.h"

#include <math.h>

#define SHORTEST    (1ULL << 10) /* ns */
#define ENOUGH	    20		 /* blocks */
#define CALLS	    16		 /* samples of the shortest block without times */
#define SPREAD	    64		 /* blocks of counts without times */
#define RANDOM_MAX  4096	 /* samples to spread one by one */
#define OTHER_CAUSE "other"

struct compare *compare_new(bool per_second, unsigned int rounds)
{
	struct compare *c = xcalloc(1, sizeof(*c));

	c->per_second = per_second;
	c->rounds = rounds;
	c->random = 1;
	return c;
}

void compare_free(struct compare *c)
{
	if (!c)
		return;
	for (unsigned int s = 0; s < COMPARE_SIDES; s++)
		for (unsigned int k = 0; k < COMPARE_CAUSES; k++)
			free(c->side[s].part[k]);
	intern_free(&c->causes);
	intern_free(&c->texts);
	free(c->names);
	free(c->line);
	u64_map_free(&c->line_of);
	free(c->cell);
	u64_map_free(&c->cell_of);
	free(c);
}

unsigned int compare_cause(struct compare *c, const char *name)
{
	if (c->causes.n >= COMPARE_CAUSES - 1 && intern_find(&c->causes, name) == INTERN_NONE)
		name = OTHER_CAUSE;
	return intern_get(&c->causes, name);
}

const char *compare_cause_name(const struct compare *c, unsigned int cause)
{
	return intern_text(&c->causes, cause);
}

__u32 compare_row(struct compare *c, const char *const *names, unsigned int n)
{
	__u64 word[COMPARE_NAMES], hash;
	__u32 row;
	bool same;

	c->n_names = n;
	for (unsigned int i = 0; i < n; i++)
		word[i] = names[i] ? intern_get(&c->texts, names[i]) : INTERN_NONE;
	hash = words_hash(word, n);
	u64_map_for_each(row, &c->line_of, hash)
	{
		same = true;
		for (unsigned int i = 0; i < n; i++)
			same &= c->names[c->line[row].name + i] == word[i];
		if (same)
			return row;
	}
	array_reserve_zero(c->line, c->line_room, c->n_lines + 1);
	array_reserve(c->names, c->names_room, (c->n_lines + 1) * n);
	c->line[c->n_lines].name = c->n_lines * n;
	for (unsigned int i = 0; i < n; i++)
		c->names[c->n_lines * n + i] = word[i];
	u64_map_add(&c->line_of, hash, c->n_lines);
	return c->n_lines++;
}

static void halve(struct compare *c, enum compare_side side)
{
	struct compare_stream *s = &c->side[side];
	const unsigned int n = (s->n + 1) / 2;

	for (unsigned int i = 0; i < n; i++) {
		const unsigned int from = 2 * i;
		const bool two = from + 1 < s->n;

		s->base[i] = s->base[from] + (two ? s->base[from + 1] : 0);
		for (size_t l = 0; l < c->n_lines; l++) {
			float *v = c->line[l].cycles[side];

			v[i] = v[from] + (two ? v[from + 1] : 0);
		}
		for (unsigned int k = 0; k < c->causes.n; k++) {
			struct compare_part *p = s->part[k], *q = p ? &p[from + 1] : NULL;

			if (!p)
				continue;
			p[i] = p[from];
			for (unsigned int b = 0; two && b < IBS_LAT_BUCKETS; b++)
				p[i].bucket[b] += q->bucket[b];
			p[i].ops += two ? q->ops : 0;
			p[i].cycles += two ? q->cycles : 0;
		}
	}
	for (unsigned int i = n; i < s->n; i++) {
		s->base[i] = 0;
		for (size_t l = 0; l < c->n_lines; l++)
			c->line[l].cycles[side][i] = 0;
		for (unsigned int k = 0; k < c->causes.n; k++)
			if (s->part[k])
				s->part[k][i] = (struct compare_part){};
	}
	s->n = n;
	s->width *= 2;
}

void compare_width(struct compare *c, enum compare_side side, __u64 ns)
{
	c->side[side].width = ns;
}

void compare_at(struct compare *c, enum compare_side side, __u64 ns)
{
	struct compare_stream *s = &c->side[side];

	c->now = side;
	if (!s->started) {
		s->started = true;
		s->timed = ns;
		if (!s->width)
			s->width = ns ? SHORTEST : CALLS;
		s->first = s->last = ns;
	}
	ns = s->timed ? ns : s->calls++;
	ns = ns > s->first ? ns : s->first;
	s->last = ns > s->last ? ns : s->last;
	while ((ns - s->first) / s->width >= COMPARE_BLOCKS) {
		s->n = COMPARE_BLOCKS;
		halve(c, side);
	}
	s->block = (ns - s->first) / s->width;
	if (s->block >= s->n)
		s->n = s->block + 1;
}

static struct compare_part *part_of(struct compare_stream *s, unsigned int cause)
{
	if (!s->part[cause])
		s->part[cause] = xcalloc(COMPARE_BLOCKS, sizeof(*s->part[cause]));
	return &s->part[cause][s->block];
}

static struct compare_cell *cell_of(struct compare *c, __u64 key)
{
	__u32 i = u64_map_get(&c->cell_of, key);

	if (i != U64_MAP_NONE)
		return &c->cell[i];
	array_reserve_zero(c->cell, c->cell_room, c->n_cells + 1);
	u64_map_put(&c->cell_of, key, c->n_cells);
	return &c->cell[c->n_cells++];
}

struct compare_cell compare_cell_of(const struct compare *c, __u32 row, unsigned int cause,
				    enum compare_side side)
{
	const struct compare_cell none = { 0 };
	__u32 i = u64_map_get(&c->cell_of, cell_key(row, cause, side));

	return i == U64_MAP_NONE ? none : c->cell[i];
}

void compare_add(struct compare *c, __u32 row, unsigned int cause, const struct compare_amount *a)
{
	struct compare_stream *s = &c->side[c->now];
	struct compare_part *p;
	struct compare_cell *cell;

	s->samples += a->samples;
	s->base[s->block] += a->base;
	if (!a->valid)
		return;
	s->valid += a->valid;
	s->ops += a->ops;
	s->squares += a->ops * a->ops / a->valid;
	p = part_of(s, cause);
	p->ops += a->ops;
	p->cycles += a->cycles;
	c->line[row].valid += a->valid;
	c->line[row].cycles[c->now][s->block] += a->cycles;
	cell = cell_of(c, cell_key(row, cause, c->now));
	cell->ops += a->ops;
	cell->cycles += a->cycles;
}

void compare_latency(struct compare *c, unsigned int cause, __u32 bucket, double ops)
{
	part_of(&c->side[c->now], cause)->bucket[bucket] += ops;
}

void compare_wide(struct compare *c, unsigned int cause, __u32 from, __u32 to, double ops)
{
	const double begin = from ? ibs_lat_le(from - 1) : 0, width = ibs_lat_le(to) - begin;
	double low = begin;

	for (__u32 b = from; b <= to; b++) {
		const double high = ibs_lat_le(b);

		compare_latency(c, cause, b, width > 0 ? ops * (high - low) / width : ops);
		c->inner[b] |= b < to;
		c->wide |= b < to;
		low = high;
	}
}

void compare_no_latency(struct compare *c)
{
	c->no_latency = true;
}

__u32 compare_random(__u64 *state, __u32 n)
{
	*state += 0x9e3779b97f4a7c15ull;
	return (u64_hash(*state) >> 32) * n >> 32;
}

/* How many of @n samples are in one of @blocks blocks. Many are near the expected number, exactly at random. */
static __u64 share_of(struct compare *c, __u64 n, unsigned int blocks)
{
	__u64 in = 0;
	double mean = (double)n / blocks, noise = 0;

	if (blocks == 1)
		return n;
	if (n <= RANDOM_MAX) {
		for (__u64 i = 0; i < n; i++)
			in += !compare_random(&c->random, blocks);
		return in;
	}
	/* the sum of twelve uniform numbers has variance 1 */
	for (int i = 0; i < 12; i++)
		noise += compare_random(&c->random, 1 << 20) / (double)(1 << 20);
	mean += (noise - 6) * sqrt(mean * (1 - 1.0 / blocks));
	return mean < 0 ? 0 : mean > n ? n : (__u64)(mean + .5);
}

static double middle(__u32 bucket)
{
	return bucket ? (ibs_lat_le(bucket - 1) + 1 + ibs_lat_le(bucket)) / 2. : 0;
}

void compare_spread(struct compare *c, enum compare_side side, __u32 row, unsigned int cause,
		    const struct compare_amount *a, const __u64 *buckets)
{
	struct compare_stream *s = &c->side[side];
	const double ops = a->valid ? a->ops / a->valid : 0;
	const double base = a->samples ? a->base / a->samples : 0;
	double sum = 0, scale;
	__u64 rest = a->samples - a->valid, left[IBS_LAT_BUCKETS];

	c->now = side;
	s->started = s->spread = true;
	s->n = SPREAD;
	s->width = 1;
	for (unsigned int b = 0; b < IBS_LAT_BUCKETS; b++) {
		left[b] = buckets[b];
		sum += buckets[b] * middle(b) * ops;
	}
	scale = sum > 0 ? a->cycles / sum : 0;
	for (s->block = 0; s->block < SPREAD; s->block++) {
		struct compare_amount in = {};
		__u64 n = share_of(c, rest, SPREAD - s->block);

		rest -= n;
		in.samples = n;
		for (unsigned int b = 0; b < IBS_LAT_BUCKETS; b++) {
			if (!left[b])
				continue;
			n = share_of(c, left[b], SPREAD - s->block);
			left[b] -= n;
			in.samples += n;
			in.valid += n;
			in.ops += n * ops;
			in.cycles += n * middle(b) * ops * scale;
			if (n)
				compare_latency(c, cause, b, n * ops);
		}
		in.base = in.samples * base;
		compare_add(c, row, cause, &in);
	}
}

void compare_seconds(struct compare *c, enum compare_side side, double seconds)
{
	c->side[side].seconds = seconds;
}

double compare_effective(const struct compare_stream *s)
{
	return s->squares > 0 ? s->ops * s->ops / s->squares : s->valid;
}

void compare_finish_side(struct compare *c, enum compare_side side)
{
	struct compare_stream *s = &c->side[side];

	while (s->timed && s->width < COMPARE_SECOND && s->n >= 2 * ENOUGH)
		halve(c, side);
	for (unsigned int i = 0; c->per_second && i < s->n; i++) {
		const __u64 begin = i * s->width, end = begin + s->width, last = s->last - s->first;

		s->base[i] = s->seconds > 0 ? s->seconds / s->n
					    : ((end < last ? end : last) - begin) / 1e9;
	}
	if (s->timed && !(s->seconds > 0))
		s->seconds = (s->last - s->first) / 1e9;
}
