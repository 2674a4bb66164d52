// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "profile.h"

#include "pprof_words.h"

/* They are few: a call would cost more than the comparison. */
static bool same(const __u64 *a, const __u64 *b, size_t n)
{
	while (n && a[n - 1] == b[n - 1])
		n--;
	return !n;
}

__u32 word_table_at(struct word_table *t, const void *words, size_t n)
{
	const __u64 hash = words_hash(words, n);
	__u32 i;

	u64_map_for_each(i, &t->of, hash)
	{
		if (i + n <= t->n && same(&t->words[i], words, n))
			return i;
	}
	if (t->n + n >= U64_MAP_NONE)
		out_of_memory();
	array_reserve(t->words, t->room, t->n + n);
	u64_map_add(&t->of, hash, t->n);
	memcpy(&t->words[t->n], words, 8 * n);
	t->n += n;
	return t->n - n;
}

#define RECENT_BITS 12

/* The multiplications do not wait for each other, as those of words_hash() do. */
static __u32 *recent_at(const struct word_table *t, const __u64 *words, size_t n)
{
	__u64 sum = 0;

	for (size_t i = 0; i < n; i++)
		sum += (words[i] + i) * (0x9e3779b97f4a7c15ull + 2 * i);
	return &t->recent[u64_hash(sum) >> (64 - RECENT_BITS)];
}

__u32 word_table_again(struct word_table *t, const void *words, size_t n)
{
	__u32 *recent;

	if (!t->recent)
		t->recent = xcalloc(1 << RECENT_BITS, sizeof(*t->recent));
	recent = recent_at(t, words, n);
	if (*recent + n > t->n || !same(&t->words[*recent], words, n))
		*recent = word_table_at(t, words, n);
	return *recent;
}

void word_table_free(struct word_table *t)
{
	free(t->recent);
	free(t->words);
	u64_map_free(&t->of);
}

static __u64 hash_of(const struct pprof_row *row)
{
	return words_hash((const __u64[]){ (__u64)row->labels << 32 | row->stack, row->service },
			  2);
}

static void add_costs(struct pprof_row *to, const struct pprof_row *c)
{
	to->samples += c->samples;
	to->dram += c->dram;
	to->latency += c->latency;
	to->remote_latency += c->remote_latency;
	to->cycles += c->cycles;
	to->remote_cycles += c->remote_cycles;
	to->estimated += c->estimated;
}

static void add(struct pprof_rows *r, const struct pprof_row *row, __u64 hash)
{
	__u32 i;

	u64_map_for_each(i, &r->of, hash)
	{
		struct pprof_row *to = &r->row[i];

		if (to->labels != row->labels || to->stack != row->stack ||
		    to->service != row->service)
			continue;
		add_costs(to, row);
		return;
	}
	if (r->n == U64_MAP_NONE - 1)
		out_of_memory();
	array_reserve(r->row, r->room, r->n + 1);
	u64_map_add(&r->of, hash, r->n);
	r->row[r->n++] = *row;
}

/* At most PPROF_AT_ONCE rows. */
static void add_some(struct pprof_rows *r, const struct pprof_row *row, unsigned int n)
{
	__u64 hash[PPROF_AT_ONCE];

	for (unsigned int i = 0; i < n; i++) {
		hash[i] = hash_of(&row[i]);
		u64_map_prefetch(&r->of, hash[i]);
	}
	for (unsigned int i = 0; i < n; i++) {
		const __u32 first = u64_map_get(&r->of, hash[i]);

		if (first != U64_MAP_NONE)
			__builtin_prefetch(&r->row[first], 1);
	}
	for (unsigned int i = 0; i < n; i++)
		add(r, &row[i], hash[i]);
}

static void add_batch(void *ctx, const void *items, size_t n)
{
	const struct pprof_row *row = items;

	for (size_t i = 0; i < n; i += PPROF_AT_ONCE)
		add_some(ctx, &row[i], n - i < PPROF_AT_ONCE ? n - i : PPROF_AT_ONCE);
}

void pprof_rows_flush(struct pprof_rows *r)
{
	parallel_queue_flush(&r->queue);
}

void pprof_rows_add(struct pprof_rows *r, const struct pprof_row *row)
{
	if (!r->queue.work)
		r->queue = (struct parallel_queue){
			.item = sizeof(*row), .room = PPROF_BATCH, .work = add_batch, .ctx = r
		};
	parallel_queue_put(&r->queue, row, 1);
}

void pprof_rows_free(struct pprof_rows *r)
{
	parallel_queue_free(&r->queue);
	free(r->row);
	u64_map_free(&r->of);
}
