// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* A load for tests/bench/types_perf.py: globals, heap structs, arrays, and code that compilers inline. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define ARTICLES  64
#define BUCKETS	  128
#define CUSTOMERS 300
#define ORDERS	  2000

struct article {
	char name[16];
	double price;
	int stock, sold;
};

struct line {
	struct article *article;
	int count;
	struct line *next;
};

struct order {
	long id;
	struct customer *customer;
	struct line *lines;
	struct order *next;
	union {
		double total;
		long cents;
	};
	unsigned int paid : 1, sent : 1;
};

struct customer {
	unsigned int key;
	struct customer *chain, *left, *right;
	struct {
		int orders;
		double spent;
	} sums;
	char name[24];
};

static struct article articles[ARTICLES];
static struct customer *buckets[BUCKETS];
static struct customer *root;
static struct order *orders;
static double sales[12][ARTICLES];
static struct {
	long lookups, misses;
} counts;
static unsigned int seed = 1;

static unsigned int rnd(unsigned int n)
{
	seed = seed * 1103515245 + 12345;
	return (seed >> 16) % n;
}

static void insert(struct customer *c)
{
	struct customer **at = &root;

	while (*at)
		at = c->key < (*at)->key ? &(*at)->left : &(*at)->right;
	*at = c;
}

static struct customer *find(unsigned int key)
{
	struct customer *c;

	counts.lookups++;
	for (c = buckets[key % BUCKETS]; c; c = c->chain)
		if (c->key == key)
			return c;
	counts.misses++;
	c = calloc(1, sizeof(*c));
	c->key = key;
	snprintf(c->name, sizeof(c->name), "customer %u", key);
	c->chain = buckets[key % BUCKETS];
	buckets[key % BUCKETS] = c;
	insert(c);
	return c;
}

static void add_line(struct order *o, int article, int count, int month)
{
	struct line *l = malloc(sizeof(*l));

	l->article = &articles[article];
	l->count = count;
	l->next = o->lines;
	o->lines = l;
	l->article->stock -= count;
	l->article->sold += count;
	sales[month][article] += count * l->article->price;
	o->total += count * l->article->price;
}

static void add_order(long id)
{
	struct order *o = calloc(1, sizeof(*o));

	o->id = id;
	o->customer = find(rnd(CUSTOMERS) * 7919);
	for (int n = 1 + rnd(4); n--;)
		add_line(o, rnd(ARTICLES), 1 + rnd(3), rnd(12));
	o->customer->sums.orders++;
	o->customer->sums.spent += o->total;
	o->next = orders;
	orders = o;
}

static double walk(const struct customer *c)
{
	return c ? walk(c->left) + c->sums.spent + walk(c->right) : 0;
}

static double smooth(double (*month)[ARTICLES], int n)
{
	double sum = 0;

	for (int m = 1; m + 1 < n; m++)
		for (int a = 0; a < ARTICLES; a++)
			sum += month[m - 1][a] - 2 * month[m][a] + month[m + 1][a];
	return sum;
}

static int compare(const void *pa, const void *pb)
{
	const struct article *a = pa, *b = pb;

	return (a->sold < b->sold) - (a->sold > b->sold);
}

int main(void)
{
	struct article copy[ARTICLES];
	long length = 0, paid = 0;

	for (int i = 0; i < ARTICLES; i++) {
		snprintf(articles[i].name, sizeof(articles[i].name), "article %d", i);
		articles[i].price = 1 + rnd(1000) / 100.0;
		articles[i].stock = 1000;
	}
	for (long id = 0; id < ORDERS; id++)
		add_order(id);
	for (struct order *o = orders; o; o = o->next) {
		for (const struct line *l = o->lines; l; l = l->next)
			paid += l->count;
		o->paid = o->total > 10;
		length += o->paid ? strlen(o->customer->name) : 0;
	}
	memcpy(copy, articles, sizeof(copy));
	qsort(copy, ARTICLES, sizeof(*copy), compare);
	printf("%s %g %g %ld %ld %ld\n", copy[0].name, walk(root), smooth(sales, 12), length, paid,
	       counts.misses);
	return 0;
}
