// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * make_places FILE [WITH]: simulated loads of this program's own memory, of each kind, with its own maps;
 * WITH "code" keeps maps of code only; "small" names the heap as the kernel does one that grew once. The n-th kind, from 1 on, has n samples of each of its addresses.
 * WITH "sharing": two threads share lines, 20 loads and 20 stores each: the fields of a struct, two
 * variables, one variable, and memory of the heap.
 * WITH "walks": ten loads each, of anonymous memory in pages of 4 KiB with page walks of 100 cycles, of a
 * variable in pages of 2 MiB with walks of 40, and of the heap without any.
 * WITH "stacks": threads access memory through the stack pointer, and otherwise; see stacks(). "stacks-back": the
 * same samples from the last to the first.
 */
#include "made_recording.h"
#include "trace/tasks.h"

#include <stdint.h>
#include <stdio.h>
#include <sys/auxv.h>
#include <sys/mman.h>

struct stats {
	long requests, errors;
};

struct stats places_data = { 1, 2 };
struct stats places_bss[1000]; /* more than a page, so that it has a map of its own */
const struct stats places_const = { 3, 4 };
static long places_static = 5;
_Alignas(64) struct stats places_shared = { 6, 7 };
_Alignas(64) struct stats places_lock[4];
/* One behind the other, which compilers do not promise. */
__asm__(".pushsection .data\n"
	".balign 64\n"
	".type places_a, @object; .size places_a, 16; places_a: .zero 16\n"
	".type places_b, @object; .size places_b, 8; places_b: .zero 8\n"
	".popsection");
extern long places_a[2], places_b;
/* Not executed: samples have their addresses. */
__asm__(".pushsection .text\n"
	"places_push: push %rdx\n"
	"places_load: mov 8(%rsp), %rdx\n"
	"places_other: mov (%rax), %rdx\n"
	"places_push_other: push (%rax)\n"
	".popsection");
extern const char places_push[], places_load[], places_other[], places_push_other[];

static int put_event(const struct trace_event *ev, void *with, struct err *err)
{
	struct trace_event copy = *ev;

	if (!strcmp(with, "code") && ev->kind == TRACE_MMAP && !ev->mmap.exec)
		return 0;
	if (!strcmp(with, "small") && ev->kind == TRACE_MMAP && !strcmp(ev->mmap.path, "[heap]"))
		copy.mmap.path = "//anon";
	return recording_event(made, &copy, err);
}

static struct ibs_record access_by(const void *ip, const void *at, unsigned int thread, __u64 data3,
				   __u64 data2)
{
	return (struct ibs_record){
		.tgid = getpid(),
		.tid = getpid() + thread,
		.ip = (uintptr_t)ip,
		.addr = (uintptr_t)at,
		.data3 = data3 | (at ? IBS_OP_DATA3_LIN_VALID : 0) | 4ull << 22,
		.packed = ibs_record_pack(0, data2, thread),
	};
}

static void access_memory(const void *at, unsigned int thread, __u64 data3, __u64 data2)
{
	made_add(access_by(access_memory, at, thread, data3, data2), NULL);
}

static void load(const void *at, unsigned int n)
{
	for (unsigned int i = 0; i < n; i++)
		access_memory(at, 0, IBS_OP_DATA3_LD_OP, 0);
}

/* Loads of lines that another complex had modified, and stores. */
static void share(const void *a, const void *b)
{
	const __u64 miss = IBS_OP_DATA3_DC_MISS | IBS_OP_DATA3_L2_MISS | 200ull << 32;

	for (unsigned int i = 0; i < 40; i++) {
		access_memory(i % 2 ? b : a, i % 2, IBS_OP_DATA3_LD_OP | miss, 2);
		access_memory(i % 2 ? b : a, i % 2, IBS_OP_DATA3_ST_OP, 0);
	}
}

static void *map(int fd)
{
	void *p = mmap(NULL, 8192, PROT_READ | PROT_WRITE,
		       fd < 0 ? MAP_PRIVATE | MAP_ANONYMOUS : MAP_SHARED, fd, 0);

	if (p == MAP_FAILED)
		exit(1);
	return p;
}

static void walk(const void *at, unsigned int page, unsigned int cycles)
{
	__u64 data3 = IBS_OP_DATA3_LD_OP | IBS_OP_DATA3_PHY_VALID | (__u64)page << 4 |
		      (__u64)cycles << 48;

	if (cycles)
		data3 |= IBS_OP_DATA3_L1TLB_MISS | IBS_OP_DATA3_L2TLB_MISS;
	for (unsigned int i = 0; i < 10; i++)
		access_memory(at, 0, data3, 0);
}

/* Pages between two without access: adjacent maps would be one. */
static char *map_alone(size_t pages)
{
	char *p = mmap(NULL, (pages + 2) * 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (p == MAP_FAILED || mprotect(p + 4096, pages * 4096, PROT_READ | PROT_WRITE))
		exit(1);
	return p + 4096;
}

#define STACKS 5
static char *stack_maps[STACKS];

/*
 * What the n-th thread does by the stack pointer: push (p), load (l), the store (S), the load (L) and both (B) of
 * a push of memory; o: by another register, n times.
 */
static const struct stack_step {
	unsigned char map, page, thread;
	char how;
	unsigned char n;
} stack_steps[] = {
	/* a stack: its owner and another thread access it, and a page that the stack pointer is never in */
	{ 0, 0, 1, 'o', 1 },
	{ 0, 0, 1, 'p', 1 },
	{ 0, 0, 1, 'o', 2 },
	{ 0, 0, 6, 'o', 4 },
	{ 0, 0, 1, 'l', 1 },
	{ 0, 1, 1, 'o', 8 },
	/* a page that two threads use as a stack one after the other, and one that they share */
	{ 1, 0, 2, 'p', 1 },
	{ 1, 0, 6, 'o', 16 },
	{ 1, 0, 2, 'p', 1 },
	{ 1, 0, 6, 'o', 3 },
	{ 1, 0, 3, 'p', 1 },
	{ 1, 0, 6, 'o', 32 },
	{ 1, 0, 3, 'p', 1 },
	{ 1, 1, 2, 'p', 1 },
	{ 1, 1, 3, 'p', 1 },
	{ 1, 1, 6, 'o', 64 },
	{ 1, 1, 2, 'p', 1 },
	{ 1, 1, 3, 'p', 1 },
	/* two mappings of one thread, and one of the first thread */
	{ 2, 0, 4, 'p', 1 },
	{ 3, 0, 4, 'p', 1 },
	{ 3, 1, 0, 'p', 1 },
	/* of a push of memory only the store is by the stack pointer */
	{ 4, 0, 5, 'L', 5 },
	{ 4, 1, 5, 'S', 7 },
	{ 4, 0, 5, 'B', 6 },
};

static void step(const struct stack_step *s, __u64 time)
{
	const char *ip = s->how == 'p'	 ? places_push
			 : s->how == 'l' ? places_load
			 : s->how == 'o' ? places_other
					 : places_push_other;
	__u64 data3 = (strchr("pSB", s->how) ? IBS_OP_DATA3_ST_OP : 0) |
		      (strchr("loLB", s->how) ? IBS_OP_DATA3_LD_OP : 0);
	struct ibs_record rec =
		access_by(ip, stack_maps[s->map] + s->page * 4096 + 64, s->thread, data3, 0);
	struct err err;

	rec.time = time;
	for (unsigned int i = 0; i < s->n; i++) {
		need(!recording_samples(made, &rec, NULL, 1, &err));
		made_samples++;
	}
}

static void stacks(bool back)
{
	const size_t n = sizeof(stack_steps) / sizeof(*stack_steps);

	for (size_t i = 0; i < n; i++)
		step(&stack_steps[back ? n - 1 - i : i], 1000 + (back ? n - 1 - i : i));
}

/* What is not in a map when the recording begins: the stack further down, and memory of nobody. */
static void load_all(const char *shared, const char *anon, const char *file, const void *heap)
{
	const char *stack = (const char *)__builtin_frame_address(0);

	load(&places_data.errors, 1);
	load(&places_bss[700].errors, 2);
	load(&places_const, 3);
	load(&places_static, 4);
	load(heap, 5);
	load(stack, 6);
	load(stack - (1 << 20), 7);
	load(anon + 4096, 8);
	load(shared + 8, 9);
	load(file + 4100, 10);
	load((const void *)getauxval(AT_SYSINFO_EHDR), 11);
	load((const void *)64, 12);
	load((const void *)0xffffffff82000018ull, 13);
	load((const void *)0xffff888000000000ull, 14);
	load(NULL, 15);
}

int main(int argc, char **argv)
{
	struct trace_info info = made_info();
	const __u32 self = getpid();
	struct task_choice choice;
	struct err err = { "" };
	const char *with = argc > 2 ? argv[2] : "";
	char *shared, *anon, *file, *heap;
	int fd;

	if (argc < 2)
		return 2;
	/* older ones do not report the size of the page of a walk */
	if (!strcmp(with, "walks"))
		cpu_info_set(&info.cpu, "AuthenticAMD", 0x1a, 0x50, 0x9bbff);
	made_begin(argv[1], &info);
	file = map(made_fd);
	fd = memfd_create("places", 0);
	if (ftruncate(fd, 8192))
		return 1;
	shared = map(fd);
	anon = map(-1);
	for (unsigned int i = 0; i < STACKS; i++)
		stack_maps[i] = map_alone(2);
	task_choice_init(&choice, &self, 1, false);
	if (task_events_now("", &choice, true, 0, put_event, (void *)with, &err))
		return 1;
	heap = (char *)sbrk(0) - 64;
	if (!strcmp(with, "sharing")) {
		share(&places_shared.requests, &places_shared.errors);
		share(places_a, &places_b);
		share(&places_lock[1].errors, &places_lock[1].errors);
		share(heap, heap + 8);
	} else if (!strncmp(with, "stacks", 6)) {
		stacks(with[6]);
	} else if (!strcmp(with, "walks")) {
		walk(anon + 4096, 0, 100);
		walk(&places_bss[700], 1, 40);
		walk(heap, 0, 0);
	} else {
		load_all(shared, anon, file, heap);
	}
	task_choice_free(&choice);
	return made_end();
}
