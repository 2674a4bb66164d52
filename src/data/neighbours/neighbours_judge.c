// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Windows of containers on complexes, and whom to name. */
#include "neighbours_private.h"
#include "base/array.h"
#include "base/std.h"

#include <math.h>

#define SUSPECTS_MAX	  16  /* with more than a tenth of the accesses each */
#define RECENT		  10  /* windows */
#define ALONE_DEVIATIONS  2.5 /* of an effect while another suspect is quiet */
#define BESIDE_DEVIATIONS 4.  /* of one that is left when that of another suspect is removed */
#define BESIDE_TESTS	  100 /* for each: what is removed is an estimate, chosen among several */
#define LIKELY_DEVIATIONS 3.  /* of one of two that may hide each other */
#define ALONE_RUNS	  3   /* experiments that show that there is none */
#define FAR_LARGER	  3. /* of two with the same schedule, the one that accesses this much more */

struct neighbours *neighbours_new(bool explains)
{
	struct neighbours *n = xcalloc(1, sizeof(*n));

	n->explains = explains;
	return n;
}

void neighbours_free(struct neighbours *n)
{
	if (!n)
		return;
	for (size_t i = 0; i < n->n; i++)
		free(n->resident[i]);
	free(n->resident);
	free(n->pair);
	u64_map_free(&n->by_key);
	free(n);
}

static __u64 key_of(unsigned int complex, unsigned int container)
{
	return (__u64)complex << 32 | container;
}

static struct resident *resident(struct neighbours *n, unsigned int complex, unsigned int container)
{
	__u32 at = u64_map_get(&n->by_key, key_of(complex, container));

	if (at == U64_MAP_NONE) {
		at = n->n++;
		array_reserve(n->resident, n->room, n->n);
		n->resident[at] = xcalloc(1, sizeof(**n->resident));
		n->resident[at]->complex = complex;
		n->resident[at]->container = container;
		u64_map_put(&n->by_key, key_of(complex, container), at);
	}
	return n->resident[at];
}

void neighbours_add(struct neighbours *n, unsigned int complex, unsigned int container,
		    const struct neighbours_activity *a)
{
	const unsigned int at = n->window % NEIGHBOURS_HISTORY;
	const struct neighbours_activity w = neighbours_activity_weighed(a);
	struct resident *r;

	if (!(w.samples > 0))
		return;
	r = resident(n, complex, container);
	r->seen = n->window;
	r->samples[at] += w.samples;
	r->accesses[at] += w.accesses > 0 ? w.accesses : w.samples;
	r->latency[at] += w.latency; /* a sum until the window ends */
}

/* --- judging --- */

static void read_series(const struct neighbours *n, const struct resident *r,
			struct window_series *w)
{
	const unsigned int seen = n->window + 1;
	const unsigned int first = seen > NEIGHBOURS_HISTORY ? seen - NEIGHBOURS_HISTORY : 0;
	unsigned int at = first % NEIGHBOURS_HISTORY;

	w->n = seen - first;
	for (unsigned int i = 0; i < w->n; i++) {
		w->known[i] = n->known[at];
		w->samples[i] = r->samples[at];
		w->accesses[i] = r->accesses[at];
		w->latency[i] = r->latency[at];
		at = at + 1 == NEIGHBOURS_HISTORY ? 0 : at + 1;
	}
}

/* What a victim needs besides. */
static void read_victim(const struct neighbours *n, const struct resident *r,
			struct window_series *w)
{
	unsigned int at = (n->window + 1 - w->n) % NEIGHBOURS_HISTORY;

	for (unsigned int i = 0; i < w->n; i++) {
		w->volume[i] = r->volume[at];
		w->weight[i] =
			w->known[i] && w->samples[i] >= NEIGHBOURS_SAMPLES ? w->samples[i] : 0;
		w->weighted[i] = w->weight[i] * w->latency[i];
		at = at + 1 == NEIGHBOURS_HISTORY ? 0 : at + 1;
	}
}

static double chance_of(double deviations, double tests)
{
	return fmin(1, tests * 0.5 * erfc(deviations / M_SQRT2));
}

static bool is_effect(const struct evidence *e)
{
	return e->rise >= log(NEIGHBOURS_RISE) && e->correlation >= NEIGHBOURS_CORRELATION;
}

/* Without what evidence_estimate() leaves out. */
static bool may_be_enough(const struct evidence *e, double tests)
{
	return is_effect(e) && e->runs >= NEIGHBOURS_RUNS &&
	       e->busy + e->quiet >= NEIGHBOURS_WINDOWS &&
	       chance_of(e->deviations, tests) <= NEIGHBOURS_FALSE;
}

static bool is_enough(const struct evidence *e, double tests)
{
	return may_be_enough(e, tests) && e->coincidence <= NEIGHBOURS_COINCIDENCE;
}

/* The pair is undecided: how many windows like these would decide it. */
static void note_undecided(struct neighbours_lack *lack, const struct evidence *e, double tests)
{
	const double windows = e->busy + e->quiet;
	double needed = 5, more;

	while (chance_of(needed, tests) > NEIGHBOURS_FALSE)
		needed += 0.1;
	needed /= fmax(e->deviations, 0.1);
	more = ceil(fmax(windows * (needed * needed - 1), NEIGHBOURS_WINDOWS - windows));
	if (e->runs < NEIGHBOURS_RUNS || e->coincidence > NEIGHBOURS_COINCIDENCE)
		more = fmax(more, windows); /* twice as many runs, each as long as those */
	lack->undecided++;
	if (more >= 1 && more < 1e6 && (!lack->more_windows || more < lack->more_windows))
		lack->more_windows = (unsigned int)more;
}

/* One complex while it is judged. */
struct complex_view {
	struct resident *const *resident;
	size_t n;
	struct suspect suspect[SUSPECTS_MAX];
	const struct resident *who[SUSPECTS_MAX];
	unsigned int n_suspects;
	double total[NEIGHBOURS_HISTORY];
	double tests; /* pairs and lags that are looked at */
};

static struct neighbours_pair *find_pair(struct neighbours *n, unsigned int complex,
					 unsigned int victim, unsigned int suspect)
{
	for (size_t i = 0; i < n->n_pairs; i++)
		if (n->pair[i].complex == complex && n->pair[i].victim == victim &&
		    n->pair[i].suspect == suspect)
			return &n->pair[i];
	return NULL;
}

static void keep_pair(struct neighbours *n, const struct neighbours_pair *p)
{
	struct neighbours_pair *old = find_pair(n, p->complex, p->victim, p->suspect);

	if (old) {
		if (p->deviations > old->deviations) {
			unsigned int first = old->first;

			*old = *p;
			old->first = first;
		}
		old->last = old->judged = n->window;
		return;
	}
	n->n_pairs++;
	array_reserve(n->pair, n->room_pairs, n->n_pairs);
	n->pair[n->n_pairs - 1] = *p;
}

static void name_pair(struct neighbours *n, const struct complex_view *c,
		      const struct resident *victim, unsigned int suspect, const struct evidence *e)
{
	struct neighbours_pair p = { .complex = victim->complex,
				     .victim = victim->container,
				     .suspect = c->who[suspect]->container,
				     .baseline = e->baseline,
				     .latency = e->baseline * exp(e->rise),
				     .share = c->suspect[suspect].share,
				     .correlation = e->correlation,
				     .lag = e->lag,
				     .runs = e->runs,
				     .busy = e->busy,
				     .quiet = e->quiet,
				     .deviations = e->deviations,
				     .chance = chance_of(e->deviations, c->tests),
				     .first = n->window,
				     .last = n->window,
				     .judged = n->window };

	keep_pair(n, &p);
}

enum alone { ALONE_UNKNOWN, ALONE_NOTHING, ALONE_SLOWS };

/* What does @a do while @b is quiet? */
static enum alone alone(const struct window_series *victim, const struct suspect *a,
			const struct suspect *b)
{
	struct evidence e;

	if (!evidence_gather(victim, a, b, &e))
		return ALONE_UNKNOWN;
	if (is_effect(&e) && e.deviations >= ALONE_DEVIATIONS)
		return ALONE_SLOWS;
	return e.runs >= ALONE_RUNS && e.rise < log(NEIGHBOURS_RISE) ? ALONE_NOTHING
								     : ALONE_UNKNOWN;
}

/* What is known of a victim and each suspect. */
struct verdicts {
	struct evidence evidence[SUSPECTS_MAX];
	bool effect[SUSPECTS_MAX], guilty[SUSPECTS_MAX];
};

/* Is there an effect of @a beside that of @b, which is removed? */
static bool is_beside(const struct window_series *victim, const struct complex_view *c,
		      const struct verdicts *v, unsigned int a, unsigned int b)
{
	static struct window_series rest;
	struct evidence e;

	rest = *victim;
	evidence_remove(&rest, &c->suspect[b], &v->evidence[b]);
	return evidence_gather(&rest, &c->suspect[a], NULL, &e) && is_effect(&e) &&
	       e.deviations >= BESIDE_DEVIATIONS;
}

/* Could the effect of @a be that of another suspect with the same schedule? */
static bool is_alone(const struct window_series *victim, const struct complex_view *c,
		     const struct verdicts *v, unsigned int a, struct neighbours_lack *lack)
{
	for (unsigned int b = 0; b < c->n_suspects; b++) {
		const struct suspect *x = &c->suspect[a], *y = &c->suspect[b];
		enum alone by_a, by_b;

		if (a == b || !v->effect[b])
			continue;
		by_a = alone(victim, x, y);
		if (by_a == ALONE_SLOWS || (by_a == ALONE_UNKNOWN && is_beside(victim, c, v, a, b)))
			continue;
		by_b = alone(victim, y, x);
		if (by_b == ALONE_SLOWS || by_a == ALONE_NOTHING)
			return false;
		if (by_b != ALONE_NOTHING && x->share < FAR_LARGER * y->share) {
			lack->alike += y->share < FAR_LARGER * x->share;
			return false;
		}
	}
	return true;
}

static void note_samples(struct neighbours_lack *lack, const struct window_series *w)
{
	unsigned int enough = 0, recent = 0;
	double samples = 0, more;

	for (unsigned int i = w->n > RECENT ? w->n - RECENT : 0; i < w->n; i++) {
		recent++;
		samples += w->samples[i];
		enough += w->known[i] && w->samples[i] >= NEIGHBOURS_SAMPLES;
	}
	lack->containers += samples > 0;
	if (2 * enough >= recent || !(samples > 0))
		return;
	more = fmax(2, 2 * NEIGHBOURS_SAMPLES * recent / samples);
	lack->too_few++;
	if (!(lack->more_samples > 0) || more < lack->more_samples)
		lack->more_samples = more;
}

static bool is_known(const struct window_series *w)
{
	unsigned int known = 0;

	for (unsigned int i = 0; i < w->n; i++)
		known += w->known[i] && w->samples[i] >= NEIGHBOURS_SAMPLES;
	return known >= NEIGHBOURS_KNOWN;
}

/* A pair that was named lately and may still be, is. */
static bool is_still_named(struct neighbours *n, const struct resident *victim,
			   const struct resident *suspect)
{
	struct neighbours_pair *p =
		find_pair(n, victim->complex, victim->container, suspect->container);

	if (!p || n->window - p->judged >= RECENT)
		return false;
	p->last = n->window;
	return true;
}

/* Is there a suspect to look closer at, or two that may hide each other? Almost always there is none. */
static bool has_suspect(struct neighbours *n, const struct complex_view *c,
			const struct resident *victim, const struct window_series *series)
{
	unsigned int likely = 0;

	for (unsigned int s = 0; s < c->n_suspects; s++) {
		struct evidence e;

		if (c->who[s] == victim || !evidence_estimate(series, &c->suspect[s], &e) ||
		    is_still_named(n, victim, c->who[s]))
			continue;
		if (may_be_enough(&e, c->tests))
			return true;
		likely += is_effect(&e) && e.runs >= NEIGHBOURS_RUNS &&
			  e.deviations >= LIKELY_DEVIATIONS;
	}
	return likely > 1;
}

static void judge_suspect(const struct window_series *series, const struct complex_view *c,
			  struct verdicts *v, unsigned int s, double tests)
{
	struct evidence e;

	if (!evidence_gather(series, &c->suspect[s], NULL, &e) || !is_effect(&e) ||
	    (v->effect[s] && e.deviations <= v->evidence[s].deviations))
		return;
	v->evidence[s] = e;
	v->effect[s] = e.deviations >= ALONE_DEVIATIONS;
	v->guilty[s] = is_enough(&e, tests);
}

/* The suspect with the clearest effect, but for @except; n_suspects: none */
static unsigned int clearest(const struct complex_view *c, const struct verdicts *v,
			     unsigned int except)
{
	unsigned int best = c->n_suspects;

	for (unsigned int s = 0; s < c->n_suspects; s++)
		if (s != except && v->effect[s] &&
		    (best == c->n_suspects ||
		     v->evidence[s].deviations > v->evidence[best].deviations))
			best = s;
	return best;
}

/* Of two that slow a victim at times of their own, each hides the other: look again without the other's effect. */
static void judge_beside(const struct window_series *series, const struct complex_view *c,
			 const struct resident *victim, struct verdicts *v)
{
	const unsigned int first = clearest(c, v, c->n_suspects);
	const double tests = c->tests * BESIDE_TESTS;
	static struct window_series rest;
	unsigned int second;

	if (first == c->n_suspects)
		return;
	rest = *series;
	evidence_remove(&rest, &c->suspect[first], &v->evidence[first]);
	for (unsigned int s = 0; s < c->n_suspects; s++)
		if (s != first && c->who[s] != victim && !v->guilty[s])
			judge_suspect(&rest, c, v, s, tests);
	second = clearest(c, v, first);
	if (second == c->n_suspects || v->guilty[first])
		return;
	rest = *series;
	evidence_remove(&rest, &c->suspect[second], &v->evidence[second]);
	judge_suspect(&rest, c, v, first, tests);
}

static void judge_victim(struct neighbours *n, const struct complex_view *c,
			 const struct resident *victim)
{
	static struct window_series series;
	struct verdicts v = { 0 };

	read_series(n, victim, &series);
	note_samples(&n->lack, &series);
	if (!is_known(&series))
		return;
	read_victim(n, victim, &series);
	if (!n->explains && !has_suspect(n, c, victim, &series))
		return;
	for (unsigned int s = 0; s < c->n_suspects; s++)
		if (c->who[s] != victim)
			judge_suspect(&series, c, &v, s, c->tests);
	judge_beside(&series, c, victim, &v);
	for (unsigned int s = 0; s < c->n_suspects; s++)
		if (v.effect[s] && !v.guilty[s])
			note_undecided(&n->lack, &v.evidence[s], c->tests);
	for (unsigned int s = 0; s < c->n_suspects; s++)
		if (v.guilty[s] && is_alone(&series, c, &v, s, &n->lack))
			name_pair(n, c, victim, s, &v.evidence[s]);
}

/* Does it have enough of the accesses in any window? Few have, so that the others need no closer look. */
static bool may_be_suspect(const struct neighbours *n, const struct resident *r,
			   const double *ring_total)
{
	const unsigned int seen =
		n->window < NEIGHBOURS_HISTORY ? n->window + 1 : NEIGHBOURS_HISTORY;
	bool any = false;

	for (unsigned int at = 0; at < seen; at++)
		any |= (double)r->accesses[at] >= 0.99 * NEIGHBOURS_SHARE * ring_total[at] &&
		       r->accesses[at] > 0;
	return any;
}

static void judge_complex(struct neighbours *n, struct resident *const *resident, size_t count)
{
	static struct complex_view c;
	double ring_total[NEIGHBOURS_HISTORY] = { 0 };

	c = (struct complex_view){ .resident = resident, .n = count };
	for (size_t i = 0; i < count; i++)
		for (unsigned int at = 0; at < NEIGHBOURS_HISTORY; at++)
			ring_total[at] += (double)resident[i]->accesses[at];
	for (unsigned int t = 0, seen = n->window + 1; t < seen && t < NEIGHBOURS_HISTORY; t++)
		c.total[t] =
			ring_total[(seen > NEIGHBOURS_HISTORY ? seen + t : t) % NEIGHBOURS_HISTORY];
	for (size_t i = 0; i < count && c.n_suspects < SUSPECTS_MAX; i++) {
		struct suspect *s = &c.suspect[c.n_suspects];

		if (!may_be_suspect(n, resident[i], ring_total))
			continue;
		read_series(n, resident[i], &s->series);
		if (suspect_prepare(s, c.total))
			c.who[c.n_suspects++] = resident[i];
	}
	c.tests = fmax(1, (double)count * c.n_suspects * (NEIGHBOURS_LAG + 1));
	for (size_t i = 0; i < count; i++)
		judge_victim(n, &c, resident[i]);
}

static int by_complex(const void *a, const void *b)
{
	const struct resident *x = *(struct resident *const *)a, *y = *(struct resident *const *)b;

	return (x->complex > y->complex) - (x->complex < y->complex)
		       ?: (x->container > y->container) - (x->container < y->container);
}

/* Forget who left, and bring the others in order. */
static void arrange(struct neighbours *n)
{
	size_t kept = 0;

	for (size_t i = 0; i < n->n; i++) {
		if (n->window - n->resident[i]->seen >= NEIGHBOURS_HISTORY)
			free(n->resident[i]);
		else
			n->resident[kept++] = n->resident[i];
	}
	n->n = kept;
	if (kept)
		qsort(n->resident, kept, sizeof(*n->resident), by_complex);
	u64_map_free(&n->by_key);
	n->by_key = (struct u64_map){};
	for (size_t i = 0; i < kept; i++)
		u64_map_put(&n->by_key, key_of(n->resident[i]->complex, n->resident[i]->container),
			    i);
}

void neighbours_end_window(struct neighbours *n, bool known)
{
	const unsigned int at = n->window % NEIGHBOURS_HISTORY,
			   next = (n->window + 1) % NEIGHBOURS_HISTORY;
	size_t begin = 0;

	n->known[at] = known;
	for (size_t i = 0; i < n->n; i++) {
		struct resident *r = n->resident[i];

		r->latency[at] = r->samples[at] > 0 && r->latency[at] > 0
					 ? logf(r->latency[at] / r->samples[at])
					 : 0;
		if (!(r->latency[at] > 0))
			r->samples[at] = 0;
		r->volume[at] = r->samples[at] > 0 ? log(r->samples[at]) : 0;
	}
	arrange(n);
	n->lack = (struct neighbours_lack){ .windows = n->window + 1 };
	for (size_t i = 0; i < n->n; i++) {
		if (i + 1 < n->n && n->resident[i + 1]->complex == n->resident[begin]->complex)
			continue;
		judge_complex(n, n->resident + begin, i + 1 - begin);
		begin = i + 1;
	}
	n->window++;
	for (size_t i = 0; i < n->n; i++)
		n->resident[i]->samples[next] = n->resident[i]->accesses[next] =
			n->resident[i]->latency[next] = 0;
}

static int clearest_first(const void *a, const void *b)
{
	const struct neighbours_pair *x = a, *y = b;

	return (x->deviations < y->deviations) - (x->deviations > y->deviations)
		       ?: (x->complex > y->complex) - (x->complex < y->complex)
		       ?: (x->victim > y->victim) - (x->victim < y->victim)
		       ?: (x->suspect > y->suspect) - (x->suspect < y->suspect);
}

const struct neighbours_pair *neighbours_pairs(struct neighbours *n, size_t *count)
{
	if (n->n_pairs)
		qsort(n->pair, n->n_pairs, sizeof(*n->pair), clearest_first);
	*count = n->n_pairs;
	return n->pair;
}

void neighbours_forget(struct neighbours *n, unsigned int windows)
{
	size_t kept = 0;

	for (size_t i = 0; i < n->n_pairs; i++)
		if (n->window - n->pair[i].last <= windows)
			n->pair[kept++] = n->pair[i];
	n->n_pairs = kept;
}

void neighbours_lack(const struct neighbours *n, struct neighbours_lack *out)
{
	*out = n->lack;
}
