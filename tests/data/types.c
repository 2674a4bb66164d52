// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * What tests/cli/test_types.py compiles and asks for. Behind `->` are the types and fields that the instructions of
 * the line access, with ';' between them; `or` is where compilers differ.
 */
/* its functions are looked up in the program, not called from elsewhere */
#pragma GCC diagnostic ignored "-Wmissing-prototypes"
#pragma GCC diagnostic ignored "-Wunused-parameter"
#include <stddef.h>
#include <stdint.h>

#define APART __attribute__((noinline))

struct point {
	int x, y;
};

struct node {
	long key;
	struct point at;
	struct node *next;
	struct point corner[4];
	union {
		double number;
		uint16_t small;
	};
	unsigned int low : 3, high : 5;
	char pad;
	struct point *far;
};

typedef struct {
	short a, b;
} pair_t;

struct table {
	size_t n;
	struct node *slot[16];
	pair_t pair;
};

struct list {
	struct list *next;
};

struct entry {
	long id;
	struct list link;
};

long counter;
static int hits[8];
struct node first;
struct table table;
pair_t pairs[32];
struct node nodes[100];

APART void add_counter(void)
{
	counter++; /* -> long int or long */
}

APART int get_hit(long i)
{
	return hits[i]; /* -> int */
}

APART void set_hit(long i)
{
	hits[i] = 3; /* -> int */
}

APART int get_first(void)
{
	return first.at.y; /* -> struct node at.y */
}

APART int get_pair(long i)
{
	return pairs[i].b; /* -> pair_t b */
}

APART int get_nodes(long i)
{
	return nodes[i].corner[2].x; /* -> struct node corner[].x */
}

APART long get_key(const struct node *n)
{
	return n->key; /* -> struct node key */
}

APART int get_next_y(const struct node *n)
{
	return n->next->at.y; /* -> struct node next; struct node at.y */
}

APART int get_far(const struct node *n)
{
	return n->next->far->y; /* -> struct node next; struct node far; struct point y */
}

APART int get_corner(const struct node *n, long i)
{
	return n->corner[i].y; /* -> struct node corner[].y */
}

APART double get_number(const struct node *n)
{
	return n->number; /* -> struct node number */
}

APART int get_small(const struct node *n)
{
	return n->small; /* -> struct node small */
}

APART int get_high(const struct node *n)
{
	return n->high; /* -> struct node low|high */
}

APART long sum_list(const struct node *n)
{
	long sum = 0;

	for (; n; n = n->next) /* -> struct node next */
		sum += n->key; /* -> struct node key */
	return sum;
}

APART long sum_array(const struct node *n, size_t count)
{
	long sum = 0;

	for (size_t i = 0; i < count; i++)
		sum += n[i].at.x; /* -> struct node at.x */
	return sum;
}

APART long sum_longs(const long *v, size_t count)
{
	long sum = 0;

	for (size_t i = 0; i < count; i++)
		sum += v[i]; /* -> long int or long */
	return sum;
}

APART long get_slot(const struct table *t, long i)
{
	return t->slot[i]->key; /* -> struct table slot[]; struct node key */
}

APART void set_pair(struct table *t)
{
	t->pair.b = 5; /* -> struct table pair.b */
}

APART long get_id(struct list *l)
{
	return ((struct entry *)((char *)l - offsetof(struct entry, link)))
		->id; /* -> struct entry id or [outside] */
}

APART long get_raw(const void *p)
{
	return *(const long *)p; /* -> [untyped] */
}

void use(struct point *p);

APART int use_local(int i)
{
	struct point points[4] = { { 1, 2 } };

	use(points);
	return points[2].y; /* -> struct point y */
}

APART int call_then(struct node *n)
{
	use(&n->at);
	return n->at.x; /* -> struct node at.x */
}

static inline int deep(const struct point *p)
{
	return p->y; /* -> struct point y or struct node corner[].y */
}

APART int inlined(const struct node *n)
{
	return deep(&n->corner[1]);
}

struct node *find(long key);

APART long found(long key)
{
	return find(key)->key; /* -> struct node key */
}

APART struct node *find(long key)
{
	return &nodes[key];
}

APART void use(struct point *p)
{
	p->y++; /* -> struct point y */
}

int main(void)
{
	struct node n = { .next = &first, .far = &first.at };

	return sum_list(&n) + (int)found(1);
}
