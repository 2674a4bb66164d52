// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * libibscope-alloc.so: tells `ibscope record --allocs` what memory a program allocates and frees. It is loaded before
 * the program's libraries (LD_PRELOAD), and defines malloc and its family, which call those of the next library: the C
 * library or jemalloc. C++ operators new and delete call malloc and free, or are the allocator's own: see redirect.h.
 *
 * Most calls only subtract a size, or look at a count. Those that are noted come to functions with a frame pointer,
 * built so for all of this library, where walks begin.
 */
#include "noting.h"
#include "live.h"
#include "redirect.h"
#include "ring.h"
#include "sampling.h"
#include "stack.h"

#include <ibscope/region.h>

#include <dlfcn.h>
#include <errno.h>
#include <link.h>
#include <stdarg.h>
#include <sys/mman.h>
#include <sys/resource.h>

#define EXPORT	  __attribute__((visibility("default")))
#define UNLIKELY  __attribute__((noinline, cold))
#define rarely(x) __builtin_expect(!!(x), 0)

#define STACK_MAX     (64ul << 20) /* of a thread; less if there is a limit */
#define BYTES_DEFAULT 4096

/* --- functions of the next library */

static void *first_malloc(size_t size);
static void *first_calloc(size_t n, size_t size);
static void *first_realloc(void *old, size_t size);
static void first_free(void *p);

/* The first call of any of these four finds them all. */
static struct {
	void *(*malloc)(size_t);
	void *(*calloc)(size_t, size_t);
	void *(*realloc)(void *, size_t);
	void (*free)(void *);
	void *(*memalign)(size_t, size_t);
	int (*posix_memalign)(void **, size_t, size_t);
	void *(*aligned_alloc)(size_t, size_t);
	void *(*valloc)(size_t);
	void *(*pvalloc)(size_t);
	void *(*mmap)(void *, size_t, int, int, int, off_t);
	int (*munmap)(void *, size_t);
	void *(*mremap)(void *, size_t, size_t, int, ...);
	int (*dlclose)(void *);
} next = {
	.malloc = first_malloc, .calloc = first_calloc, .realloc = first_realloc, .free = first_free
};

/* Memory for dlsym(), should it need some while it finds malloc. It is never freed. */
static char early[4096] __attribute__((aligned(16)));
static size_t early_used;

static bool is_early(const void *p)
{
	return (const char *)p >= early && (const char *)p < early + sizeof(early);
}

static void *take_early(size_t size)
{
	void *p = early + early_used;

	if (size > sizeof(early) - early_used)
		return NULL;
	early_used += (size + 15) & ~15ul;
	live_mark(p); /* so that free() looks twice */
	return p;
}

static void find_functions(void)
{
	static __thread bool busy;

	if (busy)
		return;
	busy = true;
#define FIND(name) *(void **)&next.name = dlsym(RTLD_NEXT, #name)
	FIND(memalign);
	FIND(posix_memalign);
	FIND(aligned_alloc);
	FIND(valloc);
	FIND(pvalloc);
	FIND(mmap);
	FIND(munmap);
	FIND(mremap);
	FIND(dlclose);
	FIND(calloc);
	FIND(realloc);
	FIND(free);
	FIND(malloc);
#undef FIND
	busy = false;
}

static void *first_malloc(size_t size)
{
	find_functions();
	return next.malloc == first_malloc ? take_early(size) : next.malloc(size);
}

static void *first_calloc(size_t n, size_t size)
{
	find_functions();
	return next.calloc == first_calloc ? take_early(n * size) : next.calloc(n, size);
}

static void *first_realloc(void *old, size_t size)
{
	find_functions();
	return next.realloc == first_realloc ? NULL : next.realloc(old, size);
}

static void first_free(void *p)
{
	find_functions();
	if (next.free != first_free)
		next.free(p);
}

/* Another function of the next library; NULL without one. */
#define NEXT(name) (next.name ? next.name : (find_functions(), next.name))

/* --- what each thread has */

static __thread struct {
	int64_t left; /* bytes of small allocations up to the next one that is noted */
	uint64_t random;
	struct stack_bounds stack;
	uint32_t tid; /* 0: not known yet */
	bool busy;    /* this thread notes something: calls of its own are not noted */
} own;

/* All of this size are noted. Until the environment is read, and without ibscope, none. */
static size_t threshold = SIZE_MAX;
static struct stack_bounds main_stack;
static size_t stack_max = STACK_MAX;

/* The library with the next malloc: what it maps is for allocations, which are noted. */
static struct {
	uintptr_t start, end;
} allocator;

static bool is_allocators(const void *code)
{
	return (uintptr_t)code >= allocator.start && (uintptr_t)code < allocator.end;
}

static bool records(void)
{
	return threshold != SIZE_MAX;
}

static bool is_main_stack(uintptr_t address)
{
	return address >= main_stack.start && address < main_stack.end;
}

/* Call before anything is noted. It allocates no memory: an allocator may call mmap() with its locks taken. */
static void prepare_thread(const uintptr_t *frame)
{
	const uintptr_t top = (uintptr_t)&own;

	own.tid = (uint32_t)syscall(SYS_gettid);
	/* the C library puts what each thread has above its stack */
	if (!own.stack.end)
		own.stack = is_main_stack((uintptr_t)frame)
				    ? main_stack
				    : (struct stack_bounds){ top - stack_max, top };
}

/* --- noting */

static uint64_t now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

/* @time: 0: now. @frame: where a walk begins, NULL: no stack */
static void put(enum ibscope_alloc_kind kind, uint64_t time, const void *p, uint64_t size,
		const uintptr_t *frame)
{
	struct ibscope_alloc_event e = { .addr = (uintptr_t)p, .size = size, .kind = kind };
	uint64_t stack[IBSCOPE_ALLOC_STACK];
	const int error = errno;

	own.busy = true;
	if (!own.tid)
		prepare_thread(frame ? frame : __builtin_frame_address(0));
	e.tid = own.tid;
	if (frame)
		e.n_stack = stack_walk(frame, own.stack, stack, IBSCOPE_ALLOC_STACK);
	e.time_ns = time ? time : now();
	ring_put(&e, stack);
	own.busy = false;
	errno = error;
}

/*
 * A thread's first small allocation begins its sampling. Return: whether the allocation that reached the point is
 * noted.
 */
static bool take_point(size_t size)
{
	const uint64_t mean = (uint64_t)threshold * IBSCOPE_ALLOC_INTERVAL;
	bool is_sampled = true;

	if (!records()) {
		own.left = INT64_MAX;
		return false;
	}
	if (!own.random) {
		own.random = now() * 0x9e3779b97f4a7c15ull ^ (uintptr_t)&own;
		own.random |= 1;
		sampling_random(&own.random);
		own.left = sampling_distance(&own.random, mean);
		is_sampled = sampling_pass(&own.left, size);
	}
	sampling_next(&own.left, &own.random, mean);
	return is_sampled && !own.busy;
}

/* Is a call that came this far to be noted, and as what? Return: 0 if not. */
static enum ibscope_alloc_kind choose(size_t size)
{
	if (size >= threshold)
		return own.busy ? 0 : IBSCOPE_ALLOC_CERTAIN;
	return own.left < 0 && take_point(size) ? IBSCOPE_ALLOC_SAMPLED : 0;
}

static void note(enum ibscope_alloc_kind kind, void *p, size_t size, const uintptr_t *frame)
{
	if (!kind || !p)
		return;
	if (!live_add(p))
		ring_lose();
	put(kind, 0, p, size, frame);
}

/* Does an allocation take the fast way? */
static inline bool passes(size_t size)
{
	return size < threshold && !sampling_pass(&own.left, size);
}

enum ibscope_alloc_kind noting_begin(size_t size)
{
	return passes(size) ? 0 : choose(size);
}

void noting_end(enum ibscope_alloc_kind kind, void *p, size_t size, const uintptr_t *frame)
{
	note(kind, p, size, frame);
}

void noting_free(void *p)
{
	if (rarely(live_may_have(p)) && !own.busy && live_remove(p))
		put(IBSCOPE_ALLOC_FREED, 0, p, 0, NULL);
}

struct noting_move noting_move_begin(const void *old, enum ibscope_alloc_kind kind)
{
	/* before another thread can get that memory */
	const bool was = live_may_have(old) && !own.busy && live_remove(old);

	return (struct noting_move){ kind, was ? now() : 0 };
}

void noting_move_end(const struct noting_move *m, const void *old, void *p, size_t size,
		     const uintptr_t *frame)
{
	if (m->time && !p && size)
		live_add(old); /* it is still there */
	else if (m->time)
		put(IBSCOPE_ALLOC_FREED, m->time, old, 0, NULL);
	note(m->kind, p, size, frame);
}

#define FRAME ((const uintptr_t *)__builtin_frame_address(0))

/* --- malloc and its family */

static UNLIKELY void *noted_malloc(size_t size)
{
	const enum ibscope_alloc_kind kind = choose(size);
	void *p = next.malloc(size);

	note(kind, p, size, FRAME);
	return p;
}

/* Known by this name, too, as a program's own malloc takes the other one. */
static void *our_malloc(size_t size)
{
	return rarely(!passes(size)) ? noted_malloc(size) : next.malloc(size);
}

EXPORT void *malloc(size_t size) __attribute__((alias("our_malloc")));

static UNLIKELY void *noted_calloc(size_t n, size_t size)
{
	const enum ibscope_alloc_kind kind = choose(n * size);
	void *p = next.calloc(n, size);

	note(kind, p, n * size, FRAME);
	return p;
}

EXPORT void *calloc(size_t n, size_t size)
{
	size_t all;

	/* let the library refuse it */
	if (rarely(__builtin_mul_overflow(n, size, &all)))
		return next.calloc(n, size);
	return rarely(!passes(all)) ? noted_calloc(n, size) : next.calloc(n, size);
}

static UNLIKELY void noted_free(void *p)
{
	if (!own.busy && live_remove(p))
		put(IBSCOPE_ALLOC_FREED, 0, p, 0, NULL);
	if (!is_early(p))
		next.free(p);
}

EXPORT void free(void *p)
{
	if (rarely(live_may_have(p)))
		noted_free(p);
	else
		next.free(p);
}

static void *move_early(const void *old, size_t size)
{
	const size_t most = early + sizeof(early) - (const char *)old;
	void *p = next.malloc(size);

	return p ? memcpy(p, old, size < most ? size : most) : NULL;
}

/* @reached: the allocation has reached a point, or is large */
static UNLIKELY void *noted_realloc(void *old, size_t size, bool reached)
{
	const struct noting_move m = noting_move_begin(old, reached ? choose(size) : 0);
	void *p = is_early(old) ? move_early(old, size) : next.realloc(old, size);

	noting_move_end(&m, old, p, size, FRAME);
	return p;
}

EXPORT void *realloc(void *old, size_t size)
{
	const bool reached = !passes(size);

	if (rarely(reached || live_may_have(old)))
		return noted_realloc(old, size, reached);
	return next.realloc(old, size);
}

EXPORT void *reallocarray(void *old, size_t n, size_t size)
{
	size_t all;

	if (!__builtin_mul_overflow(n, size, &all))
		return realloc(old, all);
	errno = ENOMEM;
	return NULL;
}

#define CALLER __builtin_return_address(0)

/* jemalloc's new, which is noted itself, calls aligned_alloc(). */
static enum ibscope_alloc_kind begin_aligned(size_t size, const void *caller)
{
	return is_allocators(caller) ? 0 : noting_begin(size);
}

/* Functions that align are rare. Each calls the next library's, and notes what it returns. */
#define ALIGNED(call)                                                     \
	const enum ibscope_alloc_kind kind = begin_aligned(size, CALLER); \
	void *p = call;                                                   \
                                                                          \
	note(kind, p, size, FRAME);                                       \
	return p

EXPORT void *memalign(size_t alignment, size_t size);
EXPORT void *memalign(size_t alignment, size_t size)
{
	ALIGNED(NEXT(memalign) ? next.memalign(alignment, size) : NULL);
}

EXPORT void *aligned_alloc(size_t alignment, size_t size)
{
	ALIGNED(NEXT(aligned_alloc) ? next.aligned_alloc(alignment, size) : NULL);
}

EXPORT void *valloc(size_t size)
{
	ALIGNED(NEXT(valloc) ? next.valloc(size) : NULL);
}

EXPORT void *pvalloc(size_t size);
EXPORT void *pvalloc(size_t size)
{
	ALIGNED(NEXT(pvalloc) ? next.pvalloc(size) : NULL);
}

EXPORT int posix_memalign(void **out, size_t alignment, size_t size)
{
	const enum ibscope_alloc_kind kind = begin_aligned(size, CALLER);
	const int error = NEXT(posix_memalign) ? next.posix_memalign(out, alignment, size) : ENOMEM;

	if (!error)
		note(kind, *out, size, FRAME);
	return error;
}

/* --- mappings */

/* @caller: of mmap(), munmap() or mremap() */
static bool is_noted(size_t size, const void *caller)
{
	return size >= threshold && !own.busy && !is_allocators(caller);
}

EXPORT void *mmap(void *at, size_t size, int prot, int flags, int fd, off_t offset)
{
	void *p = NEXT(mmap) ? next.mmap(at, size, prot, flags, fd, offset) : MAP_FAILED;

	if (p != MAP_FAILED && is_noted(size, CALLER))
		put(IBSCOPE_ALLOC_MAPPED, 0, p, size, FRAME);
	return p;
}

EXPORT void *mmap64(void *at, size_t size, int prot, int flags, int fd, off64_t offset)
	__attribute__((alias("mmap")));

/* Parts of mappings are unmapped, too, so that the size does not matter. */
static uint64_t unmap_time(const void *caller)
{
	return records() && is_noted(threshold, caller) ? now() : 0;
}

EXPORT int munmap(void *p, size_t size)
{
	const uint64_t time = unmap_time(CALLER);
	const int ret = NEXT(munmap) ? next.munmap(p, size) : -1;

	if (time && !ret)
		put(IBSCOPE_ALLOC_UNMAPPED, time, p, size, NULL);
	return ret;
}

EXPORT void *mremap(void *old, size_t old_size, size_t size, int flags, ...)
{
	const uint64_t time = unmap_time(CALLER);
	void *at, *p;
	va_list args;

	va_start(args, flags);
	at = flags & MREMAP_FIXED ? va_arg(args, void *) : NULL;
	va_end(args);
	p = NEXT(mremap) ? next.mremap(old, old_size, size, flags, at) : MAP_FAILED;
	if (!time || p == MAP_FAILED)
		return p;
	if (old_size)
		put(IBSCOPE_ALLOC_UNMAPPED, time, old, old_size, NULL);
	if (is_noted(size, CALLER))
		put(IBSCOPE_ALLOC_MAPPED, 0, p, size, FRAME);
	return p;
}

EXPORT int dlclose(void *handle)
{
	const int ret = NEXT(dlclose) ? next.dlclose(handle) : -1;

	stack_forget();
	return ret;
}

/* --- begin */

static void forked(void)
{
	ring_forked();
	own.tid = 0;
}

/* The stack of the main thread ends above the environment, and grows down to its limit. */
static void find_main_stack(char **environment)
{
	const uintptr_t end = (uintptr_t)environment;
	struct rlimit limit;

	if (!getrlimit(RLIMIT_STACK, &limit) && limit.rlim_cur < stack_max)
		stack_max = limit.rlim_cur;
	main_stack = (struct stack_bounds){ end - stack_max, end };
}

static int find_allocator(struct dl_phdr_info *info, size_t size, void *arg)
{
	const uintptr_t code = (uintptr_t)next.malloc;

	(void)size;
	(void)arg;
	for (int i = 0; i < info->dlpi_phnum; i++) {
		const ElfW(Phdr) *p = &info->dlpi_phdr[i];
		const uintptr_t start = info->dlpi_addr + p->p_vaddr;

		if (p->p_type != PT_LOAD || code < start || code - start >= p->p_memsz)
			continue;
		allocator.start = start;
		allocator.end = start + p->p_memsz;
		return 1;
	}
	return 0;
}

__attribute__((constructor)) static void begin(int argc, char **argv, char **environment)
{
	const char *dir = getauxval(AT_SECURE) ? NULL : getenv(IBSCOPE_REGION_DIR);
	const char *bytes = getenv(IBSCOPE_ALLOC_BYTES);
	const bool own_malloc = dlsym(RTLD_DEFAULT, "malloc") != (void *)our_malloc;
	size_t size;

	(void)argc;
	(void)argv;
	if (next.malloc == first_malloc)
		find_functions();
	if (!dir || !bytes)
		return;
	size = strtoull(bytes, NULL, 10);
	find_main_stack(environment);
	dl_iterate_phdr(find_allocator, NULL);
	ring_init(dir, size ? size : BYTES_DEFAULT, own_malloc);
	pthread_atfork(NULL, NULL, forked);
	if (own_malloc)
		ring_open();
	else
		redirect_allocator(allocator.start, allocator.end);
	own.left = 0;
	__atomic_store_n(&threshold, size ? size : BYTES_DEFAULT, __ATOMIC_RELEASE);
}
