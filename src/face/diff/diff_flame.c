// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Call chains of both sides in one tree. Each frame is as wide as the side that has more of it: what went
 * away is seen as well as what came.
 */
#include "diff_private.h"

#include "base/array.h"
#include "base/u64_map.h"
#include "base/utf8.h"

#include <math.h>
#include <string.h>

#define WIDTH	  1200
#define ROW	  17
#define ROWS_MAX  40
#define NODES_MAX 4000 /* that are drawn */
#define PIXELS	  1.0  /* narrower frames are not drawn */
#define LETTER	  6.6  /* pixels of a letter */
#define STEPS	  4    /* of colour on each side of none */

#define NONE 0 /* the root is nobody's child */

struct node {
	const char *name; /* not terminated */
	size_t length;
	__u32 parent, child, next; /* in flame.node */
	double y[COMPARE_SIDES];
	double most; /* of either side, or of all children together */
};

struct flame {
	struct node *node; /* the first is the root; parents come before their children */
	size_t n, room;
	struct u64_map of;	   /* by parent and name */
	char *text[COMPARE_SIDES]; /* the names are there */
	double worst;		   /* largest change of a frame */
	unsigned int drawn, rows;
	double scale; /* pixels of a unit of y */
	double k;     /* of y, as people read it */
};

static __u32 child_of(struct flame *f, __u32 parent, const char *name, size_t length)
{
	const __u64 hash = bytes_hash(name, length) ^ u64_hash(parent);
	__u32 i;

	u64_map_for_each(i, &f->of, hash)
	{
		const struct node *n = &f->node[i];

		if (n->parent == parent && n->length == length && !memcmp(n->name, name, length))
			return i;
	}
	array_reserve(f->node, f->room, f->n + 1);
	f->node[f->n] = (struct node){
		.name = name, .length = length, .parent = parent, .next = f->node[parent].child
	};
	f->node[parent].child = f->n;
	u64_map_add(&f->of, hash, f->n);
	return f->n++;
}

/* Lines of folded_print(): "comm;outer;inner 123". */
static double sum_lines(const char *text)
{
	double sum = 0;

	for (const char *end; (end = strchr(text, '\n')); text = end + 1) {
		const char *n = memrchr(text, ' ', end - text);

		sum += n ? strtod(n, NULL) : 0;
	}
	return sum;
}

static void add_lines(struct flame *f, enum compare_side side, double y)
{
	const char *text = f->text[side];
	const double sum = sum_lines(text);

	for (const char *end; (end = strchr(text, '\n')); text = end + 1) {
		const char *n = memrchr(text, ' ', end - text), *stop;
		const double part = n && sum > 0 ? strtod(n, NULL) / sum * y : 0;
		__u32 at = 0;

		f->node[at].y[side] += part;
		for (const char *p = text; n && p < n; p = stop + 1) {
			stop = memchr(p, ';', n - p) ?: n;
			at = child_of(f, at, p, stop - p);
			f->node[at].y[side] += part;
		}
	}
}

static void measure(struct flame *f)
{
	for (size_t i = f->n; i--;) {
		struct node *n = &f->node[i];

		n->most = fmax(n->most, fmax(n->y[COMPARE_A], n->y[COMPARE_B]));
		if (i)
			f->node[n->parent].most += n->most;
		f->worst = fmax(f->worst, fabs(n->y[COMPARE_B] - n->y[COMPARE_A]));
	}
}

static int by_width(const void *pa, const void *pb)
{
	const struct node *a = *(struct node *const *)pa, *b = *(struct node *const *)pb;

	return a->most == b->most ? (a > b) - (a < b) : (a->most < b->most) - (a->most > b->most);
}

static void put_name(FILE *out, const struct node *n, size_t letters)
{
	char *text = xstrndup(n->name, n->length);
	size_t at = 0;

	while (text[at] && letters--)
		at += utf8_len(text + at) ?: 1;
	if (text[at] && at)
		text[at] = 0;
	utf8_put_markup(out, text);
	free(text);
}

static void put_frame(FILE *out, const struct flame *f, const struct node *n, double x,
		      double width, unsigned int depth)
{
	const double change = n->y[COMPARE_B] - n->y[COMPARE_A];
	const int step = f->worst > 0 ? lround(fabs(change) / f->worst * STEPS) : 0;
	char class[8] = "ghost";

	if (step)
		snprintf(class, sizeof(class), "%s%d", change > 0 ? "up" : "down", step);
	fprintf(out, "<g><title>");
	put_name(out, n, n->length);
	fprintf(out, "\nA %.4g  B %.4g  change %+.4g</title>", n->y[COMPARE_A] * f->k,
		n->y[COMPARE_B] * f->k, change * f->k);
	fprintf(out, "<rect class=\"%s\" x=\"%.1f\" y=\"%u\" width=\"%.1f\" height=\"%u\"/>", class,
		x, depth * ROW, width - .5, ROW - 1);
	if (width > 4 * LETTER) {
		fprintf(out, "<text class=\"%s\" x=\"%.1f\" y=\"%u\">",
			step < 3 ? "ink" : "on-high", x + 3, depth * ROW + 12);
		put_name(out, n, width / LETTER - 1);
		fputs("</text>", out);
	}
	fputs("</g>\n", out);
}

/* Draw the children of a frame, the widest first. */
static void put_children(FILE *out, struct flame *f, const struct node *n, double x,
			 unsigned int depth)
{
	const struct node **child;
	size_t count = 0, i = 0;

	for (__u32 c = n->child; c != NONE; c = f->node[c].next)
		count++;
	if (!count || depth >= ROWS_MAX)
		return;
	child = xcalloc(count, sizeof(*child));
	for (__u32 c = n->child; c != NONE; c = f->node[c].next)
		child[i++] = &f->node[c];
	qsort(child, count, sizeof(*child), by_width);
	f->rows = depth + 1 > f->rows ? depth + 1 : f->rows;
	for (i = 0; i < count; i++) {
		const double width = child[i]->most * f->scale;

		if (width < PIXELS || f->drawn >= NODES_MAX)
			break;
		f->drawn++;
		put_frame(out, f, child[i], x, width, depth);
		put_children(out, f, child[i], x, depth + 1);
		x += width;
	}
	free(child);
}

bool diff_put_flame(FILE *out, const struct diff *d, const struct compare_result *r, double k)
{
	struct flame f = { .k = k, .n = 1 };
	char *frames;
	size_t bytes;
	FILE *m;

	if (!d->folded[COMPARE_A] || !d->folded[COMPARE_B])
		return false;
	array_reserve_zero(f.node, f.room, 1);
	for (unsigned int s = 0; s < COMPARE_SIDES; s++) {
		m = xmemopen(&f.text[s], &bytes);
		folded_print(m, d->folded[s]);
		xmemclose(m);
		add_lines(&f, s, r->side[s].y);
	}
	measure(&f);
	f.scale = f.node->most > 0 ? WIDTH / f.node->most : 0;
	m = xmemopen(&frames, &bytes);
	put_children(m, &f, f.node, 0, 0);
	xmemclose(m);
	fprintf(out,
		"<svg viewBox=\"0 0 %d %u\" role=\"img\" aria-label=\"call chains, and how their "
		"miss cycles changed\">\n%s</svg>\n",
		WIDTH, f.rows * ROW, frames);
	free(frames);
	free(f.node);
	u64_map_free(&f.of);
	for (unsigned int s = 0; s < COMPARE_SIDES; s++)
		free(f.text[s]);
	return true;
}
