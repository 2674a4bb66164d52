// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* In each cycle: results arrive, ops retire, stores commit, ops issue, ops are dispatched. */
#include "core.h"

#include <stdlib.h>
#include <string.h>

#include <ibscope/op.h>

#include "cache.h"
#include "stream.h"

#define SLOTS	 1024 /* a power of two, more than ops of a window */
#define NONE	 (~0u)
#define NO_STORE (~0ull)

struct slot {
	struct model_op op;
	uint64_t seq, dispatched, missed, completed; /* cycles; missed: 0: did not */
	unsigned int waits;			     /* operands that are missing */
	unsigned int waiter, next[2];		     /* lists of who waits: slot * 2 + operand */
	unsigned int stall, open, lat;
	uint8_t level;
	bool done, joined, sampled[2];
};

/* Ordered by age or by cycle. */
struct heap {
	struct heap_entry {
		uint64_t key;
		unsigned int slot;
	} entry[2 * SLOTS];
	unsigned int n;
};

struct machine {
	const struct model_core *core;
	struct stream *stream;
	struct caches caches;
	struct slot slot[SLOTS];
	uint64_t head, tail;  /* numbers of the oldest op in the window, and of the next op */
	uint64_t now, resume; /* resume: cycle of the next dispatch after a mispredicted branch */
	uint64_t blocked_by;  /* the mispredicted branch, if it has not completed */
	uint8_t last_branch;
	struct heap events, ready[2]; /* ready: arithmetic, memory */
	struct {		      /* stores from dispatch to commit, and those that retired */
		uint64_t addr;
		uint8_t insn;
		bool retired, requested;
	} store[SLOTS];
	uint64_t store_head, store_tail, store_retired;
	unsigned int period;
	uint64_t next_sample[2]; /* by ops, by cycles */
	uint64_t random;
	void (*sample)(void *ctx, const struct model_sample *s);
	void *ctx;
	struct model_run *run;
};

static void heap_push(struct heap *h, uint64_t key, unsigned int slot)
{
	unsigned int i = h->n++;

	for (; i && h->entry[(i - 1) / 2].key > key; i = (i - 1) / 2)
		h->entry[i] = h->entry[(i - 1) / 2];
	h->entry[i] = (struct heap_entry){ key, slot };
}

static unsigned int heap_pop(struct heap *h)
{
	unsigned int slot = h->entry[0].slot, i = 0;
	struct heap_entry last = h->entry[--h->n];

	for (;;) {
		unsigned int child = 2 * i + 1;

		if (child + 1 < h->n && h->entry[child + 1].key < h->entry[child].key)
			child++;
		if (child >= h->n || h->entry[child].key >= last.key)
			break;
		h->entry[i] = h->entry[child];
		i = child;
	}
	h->entry[i] = last;
	return slot;
}

static struct slot *slot_of(struct machine *m, uint64_t seq)
{
	return &m->slot[seq % SLOTS];
}

static bool of_memory(const struct model_op *op)
{
	return op->kind == MODEL_LOAD || op->kind == MODEL_STORE;
}

static void make_ready(struct machine *m, struct slot *s)
{
	heap_push(&m->ready[of_memory(&s->op)], s->seq, s->seq % SLOTS);
}

/* --- samples --- */

/* The registers as AMD's documents define them, of a core with the data sources of Zen 4. */
static void put_registers(const struct slot *s, uint64_t now, struct model_sample *out)
{
	static const uint8_t source[LEVELS] = { [LEVEL_L3] = 1, [LEVEL_DRAM] = 3 };
	uint64_t comp = now - s->completed, tag = now - s->dispatched, d3 = 0;

	out->data = (comp > 0xffff ? 0xffff : comp) | (tag > 0xffff ? 0xffff : tag) << 16;
	if (s->op.kind == MODEL_BRANCH)
		out->data |= IBS_OP_DATA_BRN_RET;
	if (of_memory(&s->op)) {
		d3 |= s->op.kind == MODEL_LOAD ? IBS_OP_DATA3_LD_OP : IBS_OP_DATA3_ST_OP;
		d3 |= IBS_OP_DATA3_LIN_VALID | IBS_OP_DATA3_PHY_VALID;
	}
	if (s->missed) {
		d3 |= IBS_OP_DATA3_DC_MISS | (uint64_t)(s->open & 0x3f) << 26;
		d3 |= (uint64_t)(s->lat > 0xffff ? 0xffff : s->lat) << 32;
		d3 |= s->joined ? IBS_OP_DATA3_NO_MAB : 0;
		d3 |= s->level > LEVEL_L2 ? IBS_OP_DATA3_L2_MISS : 0;
		out->data2 = s->op.kind == MODEL_LOAD ? source[s->level] : 0;
	}
	out->data3 = d3;
}

static void take_samples(struct machine *m, const struct slot *s)
{
	for (int by = 0; by < 2; by++) {
		struct model_sample out = {
			.insn = s->op.insn, .kind = s->op.kind, .by_cycles = by, .stall = s->stall
		};

		if (!s->sampled[by])
			continue;
		put_registers(s, m->now, &out);
		m->sample(m->ctx, &out);
	}
}

/* The op that is dispatched when a period ends. */
static void tag(struct machine *m, struct slot *s)
{
	const uint64_t at[2] = { s->seq, m->now };

	for (int by = 0; by < 2; by++) {
		s->sampled[by] = at[by] >= m->next_sample[by];
		if (s->sampled[by])
			m->next_sample[by] = at[by] + m->period -
					     (m->period > 128 ? model_random(&m->random) & 127 : 0);
	}
}

/* --- the stages --- */

static void complete(struct machine *m, struct slot *s)
{
	s->done = true;
	s->completed = m->now;
	if (s->missed && s->op.kind == MODEL_LOAD) {
		s->open = cache_open(&m->caches);
		s->lat = m->now - s->missed;
	}
	while (s->waiter != NONE) {
		struct slot *w = &m->slot[s->waiter / 2];

		s->waiter = w->next[s->waiter % 2];
		if (!--w->waits)
			make_ready(m, w);
	}
	if (m->blocked_by == s->seq) {
		m->blocked_by = 0;
		m->resume = m->now + m->core->redirect;
	}
}

static bool arrive(struct machine *m)
{
	bool any = false;

	while (m->events.n && m->events.entry[0].key <= m->now) {
		complete(m, &m->slot[heap_pop(&m->events)]);
		any = true;
	}
	return cache_fill(&m->caches, m->now) || any;
}

static unsigned int retire(struct machine *m)
{
	uint8_t insn[64];
	unsigned int n = 0;

	while (n < m->core->retire && m->head < m->tail) {
		struct slot *s = slot_of(m, m->head);

		if (!s->done || s->completed >= m->now)
			break;
		take_samples(m, s);
		if (s->op.kind == MODEL_STORE)
			m->store[m->store_retired++ % SLOTS].retired = true;
		m->run->stall[s->op.insn] += s->stall;
		m->run->time[s->op.insn] += s->stall;
		insn[n++] = s->op.insn;
		m->head++;
	}
	for (unsigned int i = 0; i < n; i++)
		m->run->time[insn[i]] += 1.0 / n;
	return n;
}

/* Cycles in which no op retires. */
static void account_wait(struct machine *m, uint64_t cycles)
{
	if (m->head < m->tail) {
		slot_of(m, m->head)->stall += cycles;
	} else if (m->blocked_by || m->resume > m->now) {
		m->run->time[m->last_branch] += cycles;
	} else if (m->store_tail - m->store_head >= m->core->store_queue) {
		uint8_t insn = m->store[m->store_head % SLOTS].insn;

		m->run->time[insn] += cycles;
		m->run->stall[insn] += cycles;
	}
}

/* Retired stores commit in order, one a cycle; the first eight fetch their lines. */
static bool commit(struct machine *m)
{
	bool any = false;
	struct mab *mab;

	for (uint64_t i = m->store_head; i < m->store_retired && i < m->store_head + 8; i++) {
		uint64_t addr = m->store[i % SLOTS].addr;

		if (i != m->store_head && m->store[i % SLOTS].requested)
			continue;
		switch (cache_access(&m->caches, addr, m->now, &mab)) {
		case CACHE_HIT:
			if (i == m->store_head)
				m->store_head++;
			any = true;
			m->store[i % SLOTS].requested = true;
			break;
		case CACHE_NEW:
			any = true;
			/* fall through */
		case CACHE_JOINED:
			m->store[i % SLOTS].requested = true;
			break;
		default:
			return any;
		}
	}
	return any;
}

/* Return: whether the op issued; else all MABs are in use. */
static bool issue_memory(struct machine *m, struct slot *s)
{
	uint64_t done = m->now + m->core->l1;
	enum cache_answer answer;
	struct mab *mab;

	if (s->op.kind == MODEL_STORE) { /* address and data are known; the line comes later */
		heap_push(&m->events, m->now + 1, s->seq % SLOTS);
		return true;
	}
	answer = cache_access(&m->caches, s->op.addr, m->now, &mab);
	if (answer != CACHE_HIT && !s->missed)
		s->missed = m->now;
	if (answer == CACHE_FULL)
		return false;
	if (answer != CACHE_HIT) {
		s->level = mab->level;
		s->joined = answer == CACHE_JOINED;
		done = mab->fill > m->now ? mab->fill : m->now + 1;
	} else {
		s->missed = 0;
	}
	heap_push(&m->events, done, s->seq % SLOTS);
	return true;
}

static unsigned int issue(struct machine *m)
{
	unsigned int n = 0, loads = m->core->loads, alus = m->core->alus;

	for (; alus && m->ready[0].n; alus--, n++) {
		struct slot *s = &m->slot[heap_pop(&m->ready[0])];

		heap_push(&m->events, m->now + s->op.latency, s->seq % SLOTS);
	}
	for (; loads && m->ready[1].n; loads--, n++) {
		unsigned int i = m->ready[1].entry[0].slot;

		if (!issue_memory(m, &m->slot[i]))
			break;
		heap_pop(&m->ready[1]);
	}
	return n;
}

static void find_operands(struct machine *m, struct slot *s)
{
	for (unsigned int i = 0; i < 2; i++) {
		uint64_t dep = s->op.dep[i];
		struct slot *producer = slot_of(m, dep);

		if (dep < m->head || !dep || producer->done)
			continue;
		s->waits++;
		s->next[i] = producer->waiter;
		producer->waiter = s->seq % SLOTS * 2 + i;
	}
	if (!s->waits)
		make_ready(m, s);
}

static bool can_dispatch(const struct machine *m)
{
	return m->tail - m->head < m->core->rob && !m->blocked_by && m->resume <= m->now &&
	       m->store_tail - m->store_head < m->core->store_queue;
}

static unsigned int dispatch(struct machine *m, uint64_t ops)
{
	unsigned int n = 0;

	for (; n < m->core->dispatch && m->tail <= ops && can_dispatch(m); n++) {
		struct slot *s = slot_of(m, m->tail);

		*s = (struct slot){ .op = *stream_next(m->stream),
				    .seq = m->tail++,
				    .dispatched = m->now,
				    .waiter = NONE };
		m->run->kind[s->op.insn] = s->op.kind;
		tag(m, s);
		find_operands(m, s);
		if (s->op.kind == MODEL_STORE) {
			m->store[m->store_tail % SLOTS].addr = s->op.addr;
			m->store[m->store_tail % SLOTS].insn = s->op.insn;
			m->store[m->store_tail % SLOTS].retired = false;
			m->store[m->store_tail++ % SLOTS].requested = false;
		}
		if (s->op.kind == MODEL_BRANCH && s->op.mispredicted) {
			m->blocked_by = s->seq;
			m->last_branch = s->op.insn;
		}
	}
	return n;
}

static uint64_t next_event(const struct machine *m)
{
	uint64_t next = cache_next(&m->caches);

	if (m->events.n && m->events.entry[0].key < next)
		next = m->events.entry[0].key;
	if (m->resume > m->now && m->resume < next)
		next = m->resume;
	if (next == ~0ull)
		abort(); /* the model hangs */
	return next > m->now ? next : m->now + 1;
}

void model_run(const struct model_core *core, struct stream *s, uint64_t ops, unsigned int period,
	       void (*sample)(void *ctx, const struct model_sample *s), void *ctx,
	       struct model_run *run)
{
	struct machine *m = calloc(1, sizeof(*m));

	if (!m)
		abort();
	m->core = core;
	m->stream = s;
	m->head = m->tail = m->now = 1;
	m->period = period;
	m->next_sample[0] = m->next_sample[1] = period;
	m->random = 1;
	m->sample = sample;
	m->ctx = ctx;
	m->run = run;
	*run = (struct model_run){ 0 };
	caches_init(&m->caches, core);
	while (m->head <= ops) {
		bool any = arrive(m);
		unsigned int retired = retire(m);
		uint64_t next;

		if (!retired)
			account_wait(m, 1);
		any |= commit(m);
		any |= issue(m) > 0;
		any |= dispatch(m, ops) > 0;
		next = any || retired ? m->now + 1 : next_event(m);
		if (next > m->now + 1)
			account_wait(m, next - m->now - 1);
		m->now = next;
	}
	run->cycles = m->now;
	caches_free(&m->caches);
	free(m);
}
