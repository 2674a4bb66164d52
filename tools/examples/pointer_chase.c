// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * A linked list in random order: each load needs the one before it, and nothing is in a cache.
 *
 *   cc -O1 -g -o pointer_chase pointer_chase.c
 *   ibscope record -- ./pointer_chase 5 && ibscope report --by symbol,src && ibscope annotate
 *
 * `./pointer_chase SECONDS NODES` makes a list of another length; 1000 nodes fit into a cache.
 */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

struct node {
	struct node *next;
	unsigned long value;
	char payload[48];
};

/* One cycle through all nodes (Sattolo's shuffle). */
static struct node *make_list(size_t n)
{
	struct node *nodes = calloc(n, sizeof(*nodes));
	size_t *order = calloc(n, sizeof(*order));

	if (!nodes || !order) {
		free(order);
		free(nodes);
		return NULL;
	}
	for (size_t i = 0; i < n; i++)
		order[i] = i;
	for (size_t i = n - 1; i > 0; i--) {
		size_t other = random() % i, kept = order[i];

		order[i] = order[other];
		order[other] = kept;
	}
	for (size_t i = 0; i < n; i++) {
		nodes[order[i]].next = &nodes[order[(i + 1) % n]];
		nodes[order[i]].value = i;
	}
	free(order);
	return nodes;
}

static __attribute__((noinline)) unsigned long walk_list(struct node **at, size_t steps)
{
	unsigned long sum = 0;

	for (; steps; steps--) {
		sum += (*at)->value;
		*at = (*at)->next;
	}
	return sum;
}

int main(int argc, char **argv)
{
	struct node *at = make_list(argc > 2 ? strtoul(argv[2], NULL, 0) : 1 << 20);
	time_t end = time(NULL) + (argc > 1 ? atoi(argv[1]) : 5);
	unsigned long sum = 0;

	if (!at) {
		perror("calloc");
		return 1;
	}
	while (time(NULL) < end)
		sum += walk_list(&at, 100000);
	printf("sum %lu\n", sum);
	return 0;
}
