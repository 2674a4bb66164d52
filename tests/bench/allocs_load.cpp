// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Programs that allocate in different ways: allocs_load KIND [DIVISOR]. Prints the CPU time that it took, in seconds,
 * without its begin and end. DIVISOR: that part of the work; 0: none.
 */
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <memory>
#include <string>
#include <time.h>
#include <vector>

static unsigned int state = 1;
static int divisor = 1;

/* Of @all rounds, those to do. */
static int rounds(int all)
{
	return divisor ? all / divisor : 0;
}

static unsigned int draw(unsigned int n)
{
	state = state * 1664525u + 1013904223u;
	return (state >> 8) % n;
}

/* A table by name, as of a parser: nearly all of its time is allocation, comparison and copying of small objects. */
static void names()
{
	std::map<std::string, std::vector<int>> table;
	const int n = rounds(700000);

	for (int i = 0; i < n; i++) {
		std::string key(20 + draw(60), 'x');

		std::snprintf(&key[0], key.size(), "name %u", draw(20000));
		auto &v = table[key];
		v.push_back(i);
		if (v.size() > 40)
			table.erase(key);
	}
}

/* Trees that are built, walked and freed. */
struct Node {
	std::unique_ptr<Node> left, right;
	int value;
};

static std::unique_ptr<Node> build(int depth)
{
	auto n = std::make_unique<Node>();

	n->value = depth;
	if (depth) {
		n->left = build(depth - 1);
		n->right = build(depth - 1);
	}
	return n;
}

static long sum(const Node *n)
{
	return n ? n->value + sum(n->left.get()) + sum(n->right.get()) : 0;
}

static void trees()
{
	const int n = rounds(150);
	long all = 0;

	for (int i = 0; i < n; i++)
		all += sum(build(15).get());
	if (n && !all)
		std::abort();
}

/* Buffers of 4 to 128 KiB, each of which is noted, written and read once. */
static void buffers()
{
	const int n = rounds(100000);
	long all = 0;

	for (int i = 0; i < n; i++) {
		std::vector<int> v((4096 + draw(124 * 1024)) / sizeof(int), i);

		for (int x : v)
			all += x;
	}
	if (all == 1)
		std::abort();
}

/* Nothing but malloc and free of one small size: the most that the library can cost. */
static void pairs()
{
	const int n = rounds(30000000);

	for (int i = 0; i < n; i++) {
		void *volatile p = std::malloc(64);

		std::free(p);
	}
}

/* No allocations but one. */
static void sorting()
{
	std::vector<unsigned int> v(rounds(4000000));

	for (auto &x : v)
		x = draw(1u << 24);
	std::sort(v.begin(), v.end());
}

static double cpu_seconds()
{
	struct timespec t;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
	return t.tv_sec + t.tv_nsec / 1e9;
}

int main(int argc, char **argv)
{
	static const struct {
		const char *name;
		void (*run)();
	} kinds[] = { { "names", names },
		      { "trees", trees },
		      { "buffers", buffers },
		      { "pairs", pairs },
		      { "sorting", sorting } };
	const double begin = cpu_seconds();

	if (argc > 2)
		divisor = std::atoi(argv[2]);
	for (auto &k : kinds)
		if (argc > 1 && !std::strcmp(k.name, argv[1])) {
			k.run();
			std::printf("%.6f\n", cpu_seconds() - begin);
			return 0;
		}
	return 2;
}
