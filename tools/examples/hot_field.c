// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * An array of structures of which a loop reads one field: every 64 bytes are fetched for 8 of them.
 *
 *   cc -O1 -g -o hot_field hot_field.c
 *   ibscope record -- ./hot_field 5 && ibscope report --by type,field
 */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

struct order {
	unsigned long id;
	char customer[40];
	double price;
	unsigned long flags;
};

static __attribute__((noinline)) double sum_prices(const struct order *orders, size_t n)
{
	double sum = 0;

	for (size_t i = 0; i < n; i++)
		sum += orders[i].price;
	return sum;
}

static __attribute__((noinline)) unsigned long find_order(const struct order *orders, size_t n,
							  unsigned long id)
{
	size_t i = 0;

	while (i < n && orders[i].id != id)
		i++;
	return i;
}

int main(int argc, char **argv)
{
	const size_t n = 1 << 20;
	struct order *orders = calloc(n, sizeof(*orders));
	unsigned long found = 0;
	double sum = 0;
	time_t end;

	if (!orders) {
		perror("calloc");
		return 1;
	}
	for (size_t i = 0; i < n; i++)
		orders[i] = (struct order){ .id = i, .price = i % 100 };
	end = time(NULL) + (argc > 1 ? atoi(argv[1]) : 5);
	while (time(NULL) < end) {
		for (int i = 0; i < 8; i++)
			sum += sum_prices(orders, n);
		found += find_order(orders, n, n / 2);
	}
	printf("sum %.0f, found %lu\n", sum, found);
	return 0;
}
