// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * sharing FILE STEPS: threads and processes that share cache lines, or do not, in ways that sharing.py knows, until
 * each of them has made so many steps. FILE gets "NAME VIRTUAL-ADDRESS PID" of each line. Accesses are marked for the rig, which then samples
 * their real addresses and answers loads as caches would.
 */
#define _GNU_SOURCE
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <unistd.h>

#define HUGE (2 << 20)

struct line {
	volatile uint64_t slot[8];
} __attribute__((aligned(64)));

/*
 * The rig knows an access by the instruction behind it. Samples are taken where a translation block begins, mostly
 * after indirect calls: so each access is the first instruction of a function that is called by address.
 */
#define ACCESS(name, insn)                                       \
	void name(volatile uint64_t *slot);                      \
	asm(#name ":\t" insn "\n\tnopl 0x1b5c0de(%rdi)\n\tret"); \
	static void (*volatile call_##name)(volatile uint64_t * slot) = name;
ACCESS(load, "mov (%rdi), %rax")
ACCESS(store, "mov %rax, (%rdi)")
ACCESS(add, "lock incq (%rdi)")
#define LOAD  call_load
#define STORE call_store
#define ADD   call_add

/* Each is run by two, of which @me is 0 or 1. */
static void false_sharing(struct line *l, int me)
{
	LOAD(&l->slot[me]);
	STORE(&l->slot[me]);
}

static void true_sharing(struct line *l, int me)
{
	(void)me;
	ADD(&l->slot[3]);
}

static void seqlock(struct line *l, int me)
{
	if (me) {
		LOAD(&l->slot[0]);
		LOAD(&l->slot[1]);
		LOAD(&l->slot[0]);
	} else {
		STORE(&l->slot[0]);
		STORE(&l->slot[1]);
		STORE(&l->slot[0]);
	}
}

static void per_cpu(struct line *l, int me)
{
	LOAD(&l[me].slot[0]);
	STORE(&l[me].slot[0]);
}

static void locked_counter(struct line *l, int me)
{
	(void)me;
	ADD(&l->slot[0]);
	LOAD(&l->slot[1]);
	STORE(&l->slot[1]);
	STORE(&l->slot[0]);
}

static void shared_memory(struct line *l, int me)
{
	if (me)
		LOAD(&l->slot[2]);
	else
		STORE(&l->slot[2]);
}

static void huge_page(struct line *l, int me)
{
	LOAD(&l->slot[4 * me]);
	if (!me)
		STORE(&l->slot[0]);
}

static const struct {
	const char *name;
	void (*step)(struct line *l, int me);
	enum { HEAP, PROCESSES, HUGE_PAGE } memory;
} kinds[] = {
	{ "false_sharing", false_sharing },
	{ "true_sharing", true_sharing },
	{ "seqlock", seqlock },
	{ "per_cpu", per_cpu },
	{ "locked_counter", locked_counter },
	{ "shared_memory", shared_memory, PROCESSES },
	{ "huge_page", huge_page, HUGE_PAGE },
};
#define KINDS (int)(sizeof(kinds) / sizeof(*kinds))

static struct role {
	int kind, me;
	struct line *line;
	volatile unsigned long steps;
} (*roles)[2];

/* Two of a kind are on CPUs of different complexes, or of the same if the kind has an odd number. */
static void *run(void *arg)
{
	struct role *r = arg;
	const int n = sysconf(_SC_NPROCESSORS_ONLN);
	const int cpu = (r->kind + r->me * (r->kind % 2 ? 1 : n / 2)) % n;
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET(cpu, &set);
	sched_setaffinity(0, sizeof(set), &set);
	for (;; r->steps++)
		kinds[r->kind].step(r->line, r->me);
	return NULL;
}

static void *map(size_t bytes, int flags, int fd)
{
	void *p = mmap(NULL, bytes, PROT_READ | PROT_WRITE, flags, fd, 0);

	if (p == MAP_FAILED) {
		perror("sharing: mmap");
		exit(1);
	}
	return p;
}

int main(int argc, char **argv)
{
	FILE *f = argc == 3 ? fopen(argv[1], "w") : NULL;
	pthread_t thread;

	if (!f)
		return 2;
	roles = map(4096, MAP_SHARED | MAP_ANONYMOUS, -1);
	for (int k = 0; k < KINDS; k++) {
		const int fd = kinds[k].memory == PROCESSES ? memfd_create("sharing", 0) : -1;
		struct line *l = aligned_alloc(sizeof(*l), 2 * sizeof(*l));

		if (fd >= 0 && ftruncate(fd, 4096))
			return 1;
		if (fd >= 0)
			l = map(4096, MAP_SHARED, fd);
		if (kinds[k].memory == HUGE_PAGE) {
			char *p = map(2 * HUGE, MAP_PRIVATE | MAP_ANONYMOUS, -1);

			p += -(uintptr_t)p % HUGE;
			madvise(p, HUGE, MADV_HUGEPAGE);
			l = (struct line *)(p + 0x12340);
		}
		l[0].slot[7] = l[1].slot[7] = 0; /* the pages are there */
		for (int me = 0; me < 2; me++) {
			pid_t pid = getpid();

			if (fd >= 0 && me)
				l = map(4096, MAP_SHARED, fd); /* at another address */
			roles[k][me] = (struct role){ k, me, l, 0 };
			if (fd >= 0 && me && !(pid = fork())) {
				prctl(PR_SET_PDEATHSIG, SIGKILL);
				l->slot[7] = 0;
				run(&roles[k][me]);
			}
			fprintf(f, "%s %p %d\n", kinds[k].name,
				(void *)(kinds[k].step == per_cpu ? l + me : l), pid);
		}
	}
	fclose(f);
	for (int k = 0; k < KINDS; k++)
		for (int me = 0; me < 2; me++)
			if ((kinds[k].memory != PROCESSES || !me) &&
			    pthread_create(&thread, NULL, run, &roles[k][me]))
				return 1;
	for (int i = 0; i < 2 * KINDS; i++)
		while (roles[i / 2][i % 2].steps < strtoul(argv[2], NULL, 10))
			usleep(10000);
	return 0;
}
