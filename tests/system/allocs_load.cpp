// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Operators new and delete, and a container: prints addresses and sizes like allocs_load.c. */
#include <cstdio>
#include <memory>
#include <unistd.h>
#include <vector>

struct Big {
	char bytes[20000];
};

__attribute__((noinline)) static Big *by_new()
{
	return new Big();
}

__attribute__((noinline)) static void by_vector()
{
	std::vector<double> v;

	v.reserve(5000);
	std::printf("alloc malloc %d %p %zu by_vector\nfree %d %p\n", getpid(), (void *)v.data(),
		    5000 * sizeof(double), getpid(), (void *)v.data());
}

int main()
{
	Big *p = by_new();
	auto array = std::make_unique<int[]>(3000);

	std::printf("alloc malloc %d %p %zu by_new\n", getpid(), (void *)p, sizeof(Big));
	std::printf("alloc malloc %d %p %zu main\n", getpid(), (void *)array.get(), 3000 * sizeof(int));
	by_vector();
	std::printf("free %d %p\n", getpid(), (void *)p);
	delete p;
	std::printf("free %d %p\n", getpid(), (void *)array.get());
	return 0;
}
