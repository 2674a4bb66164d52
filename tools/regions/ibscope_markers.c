// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * libibscope-markers.so: reports the regions that a program marks for LIKWID or Caliper to `ibscope record`. It
 * is loaded before the program's libraries (LD_PRELOAD), and defines the functions that begin and end a region.
 * Each also calls the library's function of the same name, so that LIKWID and Caliper work as usual.
 */
#include <ibscope/region.h>

#include <dlfcn.h>

/* Caliper's attribute for loop names. Its address is NULL in programs without Caliper. */
extern __attribute__((weak, visibility("default"))) uint64_t cali_loop_attr_id;

static int is_loop(uintptr_t attribute)
{
	return &cali_loop_attr_id && attribute == cali_loop_attr_id;
}

/*
 * Define the function `name`, which does `mark` and calls the library's function. That one cannot be found in a
 * library with local symbols (RTLD_LOCAL). All have one or two arguments, integers or pointers; with the calling
 * conventions of x86-64, passing an extra argument or returning an extra value does no harm.
 */
#define MARKER(name, mark)                                                                      \
	__attribute__((visibility("default"))) long name(uintptr_t a, uintptr_t b);             \
	long name(uintptr_t a, uintptr_t b)                                                     \
	{                                                                                       \
		static long (*known)(uintptr_t, uintptr_t);                                     \
		long (*next)(uintptr_t, uintptr_t) = __atomic_load_n(&known, __ATOMIC_RELAXED); \
                                                                                                \
		if (!next) {                                                                    \
			next = (long (*)(uintptr_t, uintptr_t))dlsym(RTLD_NEXT, #name);         \
			__atomic_store_n(&known, next, __ATOMIC_RELAXED);                       \
		}                                                                               \
		mark;                                                                           \
		return next ? next(a, b) : 0;                                                   \
	}

#define BEGINS(name) MARKER(name, ibscope_region_begin((const char *)a))
#define ENDS(name)   MARKER(name, ibscope_region_end())
/* A method's first argument is its object. */
#define METHOD_BEGINS(name) MARKER(name, ibscope_region_begin((const char *)b))

BEGINS(likwid_markerStartRegion)
ENDS(likwid_markerStopRegion)

BEGINS(cali_begin_region)
ENDS(cali_end_region)
BEGINS(cali_begin_phase)
ENDS(cali_end_phase)
BEGINS(cali_begin_comm_region)
ENDS(cali_end_comm_region)
MARKER(cali_begin_string, if (is_loop(a)) ibscope_region_begin((const char *)b))
MARKER(cali_end, if (is_loop(a)) ibscope_region_end())
/* CALI_CXX_MARK_FUNCTION and CALI_CXX_MARK_SCOPE: constructors and destructors of cali::Function and
 * cali::ScopeAnnotation */
METHOD_BEGINS(_ZN4cali8FunctionC1EPKc)
ENDS(_ZN4cali8FunctionD1Ev)
METHOD_BEGINS(_ZN4cali15ScopeAnnotationC1EPKc)
ENDS(_ZN4cali15ScopeAnnotationD1Ev)
