// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * A program in regions of LIKWID and Caliper, by what their headers declare, and with -DLIBRARY in place of
 * their libraries one that counts the calls; -DLIKWID leaves out Caliper's, to link with LIKWID itself.
 */
#include <cstdint>
#include <cstdio>
#include <ctime>

extern "C" {
int likwid_markerStartRegion(const char *tag);
int likwid_markerStopRegion(const char *tag);
void cali_begin_region(const char *name);
void cali_end_region(const char *name);
void cali_begin_string(uint64_t attribute, const char *value);
void cali_end(uint64_t attribute);
extern uint64_t cali_loop_attr_id;
}

namespace cali
{
struct Function {
	Function(const char *name);
	~Function();
};
struct ScopeAnnotation {
	ScopeAnnotation(const char *name);
	~ScopeAnnotation();
};
} // namespace cali

#ifdef LIBRARY
static int calls;

int likwid_markerStartRegion(const char *)
{
	return ++calls;
}

int likwid_markerStopRegion(const char *)
{
	return ++calls;
}

void cali_begin_region(const char *)
{
	calls++;
}

void cali_end_region(const char *)
{
	calls++;
}

uint64_t cali_loop_attr_id = 7;

void cali_begin_string(uint64_t attribute, const char *)
{
	calls += attribute == 7;
}

void cali_end(uint64_t attribute)
{
	calls += attribute == 7;
}

cali::Function::Function(const char *)
{
	calls++;
}

cali::Function::~Function()
{
	calls++;
}

cali::ScopeAnnotation::ScopeAnnotation(const char *)
{
	calls++;
}

cali::ScopeAnnotation::~ScopeAnnotation()
{
	printf("%d calls\n", ++calls);
}
#else
static void spin()
{
	clock_t end = clock() + CLOCKS_PER_SEC / 20;

	while (clock() < end)
		;
}

#ifndef LIKWID
static void caliper()
{
	cali::ScopeAnnotation scope("scope");
	spin();
	{
		cali::Function function("function");
		cali_begin_string(cali_loop_attr_id, "loop");
		spin();
		cali_begin_string(cali_loop_attr_id + 1, "iteration");
		cali_end(cali_loop_attr_id + 1);
		spin();
		cali_end(cali_loop_attr_id);
	}
	cali_begin_region("region");
	spin();
	cali_end_region("region");
}
#endif

int main()
{
	likwid_markerStartRegion("likwid");
	spin();
	likwid_markerStopRegion("likwid");
#ifndef LIKWID
	caliper();
#endif
	spin();
	return 0;
}
#endif
