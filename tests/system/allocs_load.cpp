// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Operators new and delete, and a container: prints addresses and sizes like allocs_load.c. */
#include <cstdint>
#include <cstdio>
#include <memory>
#include <new>
#include <unistd.h>
#include <vector>

struct Big {
	char bytes[20000];
};

__attribute__((noinline)) static Big *by_new()
{
	return new Big();
}

struct alignas(128) Aligned {
	char bytes[12800];
};

__attribute__((noinline)) static void by_aligned()
{
	auto p = std::make_unique<Aligned>();

	std::printf("alloc malloc %d %p %zu by_aligned\nfree %d %p\n", getpid(), (void *)p.get(),
		    sizeof(Aligned), getpid(), (void *)p.get());
}

__attribute__((noinline)) static void by_nothrow()
{
	char *p = new (std::nothrow) char[15000];

	std::printf("alloc malloc %d %p %d by_nothrow\nfree %d %p\n", getpid(), (void *)p, 15000,
		    getpid(), (void *)p);
	::operator delete[](p, std::nothrow);
}

/* What the caller of new gets if there is no memory is as it was. */
__attribute__((noinline)) static bool by_too_much()
{
	volatile size_t much = SIZE_MAX / 4;

	try {
		delete[] new char[much];
		return false;
	} catch (const std::bad_alloc &) {
		return !new (std::nothrow) char[much];
	}
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
	std::printf("alloc malloc %d %p %zu main\n", getpid(), (void *)array.get(),
		    3000 * sizeof(int));
	by_vector();
	by_aligned();
	by_nothrow();
	if (!by_too_much())
		return 1;
	std::printf("free %d %p\n", getpid(), (void *)p);
	delete p;
	std::printf("free %d %p\n", getpid(), (void *)array.get());
	return 0;
}
