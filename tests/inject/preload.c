// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * LD_PRELOAD library that makes one call of a program fail: the n-th allocation, or the n-th of some system calls.
 *
 * INJECT_STATE  file that starts with struct state, mapped by the program and the processes that it forks
 * INJECT_WHAT   'alloc', or names of system calls with commas between them, or 'calls': all that are known here
 * INJECT_N      which call fails, from 1; 0: none, but log a hash of the stack of each call
 * INJECT_ALL    if set, the later calls fail, too
 *
 * Only programs whose name starts with "ibscope" are changed, from main() on. System calls are caught by a seccomp filter
 * that traps those made by libc, since stdio and syscall() do not call functions that a library could replace.
 */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <link.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <ucontext.h>
#include <unistd.h>
#include <unwind.h>

#define LOG_MAX	   (1u << 20)
#define TEXT_MAX   8192
#define HASH_DEPTH 12
#define SHOW_DEPTH 24

struct state {
	_Atomic uint64_t calls, failed;
	char stack
		[TEXT_MAX]; /* of the first call that failed: its name, and lines of "MODULE+0xOFFSET SYMBOL" */
	uint32_t log[LOG_MAX];
};

static const struct call {
	const char *name;
	int nr, error;
} known[] = {
	{ "write", SYS_write, ENOSPC },
	{ "writev", SYS_writev, ENOSPC },
	{ "pwrite64", SYS_pwrite64, ENOSPC },
	{ "read", SYS_read, EIO },
	{ "pread64", SYS_pread64, EIO },
	{ "mmap", SYS_mmap, ENOMEM },
	{ "mremap", SYS_mremap, ENOMEM },
	{ "open", SYS_open, EMFILE },
	{ "openat", SYS_openat, EMFILE },
	{ "close", SYS_close, EIO },
	{ "fsync", SYS_fsync, EIO },
	{ "fcntl", SYS_fcntl, EMFILE },
	{ "fstat", SYS_newfstatat, EIO },
	{ "lseek", SYS_lseek, EIO },
	{ "rename", SYS_rename, EIO },
	{ "renameat", SYS_renameat, EIO },
	{ "linkat", SYS_linkat, EIO },
	{ "ftruncate", SYS_ftruncate, ENOSPC },
	{ "getrandom", SYS_getrandom, ENOSYS },
	{ "memfd_create", SYS_memfd_create, EMFILE },
	{ "pipe2", SYS_pipe2, EMFILE },
	{ "socket", SYS_socket, EMFILE },
	{ "socketpair", SYS_socketpair, EMFILE },
	{ "bind", SYS_bind, EADDRINUSE },
	{ "epoll_create1", SYS_epoll_create1, EMFILE },
	{ "epoll_ctl", SYS_epoll_ctl, ENOMEM },
	{ "eventfd2", SYS_eventfd2, EMFILE },
	{ "timerfd_create", SYS_timerfd_create, EMFILE },
	{ "ioctl", SYS_ioctl, EIO },
	{ "perf_event_open", SYS_perf_event_open, EMFILE },
	{ "bpf", SYS_bpf, ENOMEM },
};
#define KNOWN (sizeof(known) / sizeof(*known))

static struct state *state;
static bool allocations, all;
static uint64_t which;
static __attribute__((tls_model("initial-exec"))) _Thread_local bool inside;

void *__libc_malloc(size_t n);
void *__libc_calloc(size_t n, size_t size);
void *__libc_realloc(void *p, size_t n);
void *__libc_memalign(size_t align, size_t n);

/* --- stacks --- */

struct walk {
	uintptr_t at[SHOW_DEPTH];
	int n, max;
};

static _Unwind_Reason_Code step(struct _Unwind_Context *c, void *arg)
{
	struct walk *w = arg;

	if (w->n >= w->max)
		return _URC_END_OF_STACK;
	w->at[w->n++] = _Unwind_GetIP(c);
	return _URC_NO_REASON;
}

static uint32_t hash_stack(void)
{
	struct walk w = { .max = HASH_DEPTH };
	uint32_t h = 2166136261u;

	_Unwind_Backtrace(step, &w);
	for (int i = 0; i < w.n; i++) {
		struct dl_find_object o;
		uintptr_t at = w.at[i];

		if (!_dl_find_object((void *)at, &o))
			at -= (uintptr_t)o.dlfo_map_start;
		h = (h ^ (uint32_t)at) * 16777619u;
	}
	return h;
}

static void show_stack(const char *what)
{
	struct walk w = { .max = SHOW_DEPTH };
	int used = snprintf(state->stack, TEXT_MAX, "%s\n", what);

	_Unwind_Backtrace(step, &w);
	for (int i = 0; i < w.n && used < TEXT_MAX - 512; i++) {
		Dl_info info = {};
		struct dl_find_object o;
		const char *module = "";
		uintptr_t base = 0;

		if (!_dl_find_object((void *)w.at[i], &o)) {
			module = o.dlfo_link_map->l_name;
			base = o.dlfo_link_map->l_addr;
		}
		dladdr((void *)w.at[i], &info);
		used += snprintf(state->stack + used, 512, "%.200s+0x%lx %.200s\n", module,
				 (unsigned long)(w.at[i] - base), info.dli_sname ?: "");
	}
}

/* Count a call. Return: whether it fails. */
static bool must_fail(const char *what)
{
	uint64_t n = atomic_fetch_add(&state->calls, 1) + 1;
	bool fails = which && (n == which || (all && n > which));

	inside = true;
	if (!which && n <= LOG_MAX)
		state->log[n - 1] = hash_stack();
	if (fails && !atomic_fetch_add(&state->failed, 1))
		show_stack(what);
	inside = false;
	return fails;
}

/* --- allocations --- */

static bool no_memory(void)
{
	if (!allocations || inside || !must_fail("alloc"))
		return false;
	errno = ENOMEM;
	return true;
}

void *malloc(size_t n)
{
	return no_memory() ? NULL : __libc_malloc(n);
}

void *calloc(size_t n, size_t size)
{
	return no_memory() ? NULL : __libc_calloc(n, size);
}

void *realloc(void *p, size_t n)
{
	return no_memory() ? NULL : __libc_realloc(p, n);
}

void *memalign(size_t align, size_t n)
{
	return no_memory() ? NULL : __libc_memalign(align, n);
}

void *aligned_alloc(size_t align, size_t n)
{
	return memalign(align, n);
}

int posix_memalign(void **p, size_t align, size_t n)
{
	void *got = memalign(align, n);

	if (!got)
		return ENOMEM;
	*p = got;
	return 0;
}

/* --- system calls --- */

static _Noreturn void refuse(const char *why)
{
	dprintf(STDERR_FILENO, "inject: %s\n", why);
	_exit(99);
}

static const struct call *call_of(int nr)
{
	size_t i = 0;

	while (i < KNOWN - 1 && known[i].nr != nr)
		i++;
	return &known[i];
}

/* Add the numbers of the calls with a name, or of all. */
static int add_calls(int *nr, int n, const char *name)
{
	int before = n;

	for (size_t i = 0; i < KNOWN; i++)
		if (n < (int)KNOWN && (!strcmp(name, "calls") || !strcmp(known[i].name, name)))
			nr[n++] = known[i].nr;
	if (n == before)
		refuse("unknown system call");
	return n;
}

/* Not of libc, so that the filter lets it pass. */
static long raw(long nr, const greg_t *g)
{
	register long r10 __asm__("r10") = g[REG_R10], r8 __asm__("r8") = g[REG_R8],
			  r9 __asm__("r9") = g[REG_R9];
	long ret;

	__asm__ volatile("syscall"
			 : "=a"(ret)
			 : "a"(nr), "D"(g[REG_RDI]), "S"(g[REG_RSI]), "d"(g[REG_RDX]), "r"(r10),
			   "r"(r8), "r"(r9)
			 : "rcx", "r11", "memory");
	return ret;
}

/* Messages are what tests look for, and a descriptor is closed even if close() fails. */
static void trapped(int sig, siginfo_t *si, void *context)
{
	greg_t *g = ((ucontext_t *)context)->uc_mcontext.gregs;
	int nr = si->si_syscall, saved = errno;
	const struct call *call = call_of(nr);
	bool message = (nr == SYS_write || nr == SYS_writev) && g[REG_RDI] == STDERR_FILENO;
	bool fails = !inside && !message && must_fail(call->name);

	(void)sig;
	if (!fails || nr == SYS_close)
		g[REG_RAX] = raw(nr, g);
	if (fails)
		g[REG_RAX] = -call->error;
	errno = saved;
}

/* SIGSYS must come in threads that block all signals. */
static int mask(int (*real)(int, const sigset_t *, sigset_t *), int how, const sigset_t *set,
		sigset_t *old)
{
	sigset_t less;

	if (set && state && !allocations && how != SIG_UNBLOCK) {
		less = *set;
		sigdelset(&less, SIGSYS);
		set = &less;
	}
	return real(how, set, old);
}

int pthread_sigmask(int how, const sigset_t *set, sigset_t *old)
{
	static int (*real)(int, const sigset_t *, sigset_t *);

	if (!real)
		real = (int (*)(int, const sigset_t *, sigset_t *))dlsym(RTLD_NEXT,
									 "pthread_sigmask");
	return mask(real, how, set, old);
}

int sigprocmask(int how, const sigset_t *set, sigset_t *old)
{
	static int (*real)(int, const sigset_t *, sigset_t *);

	if (!real)
		real = (int (*)(int, const sigset_t *, sigset_t *))dlsym(RTLD_NEXT, "sigprocmask");
	return mask(real, how, set, old);
}

struct range {
	uintptr_t from, to;
};

static int find_libc(struct dl_phdr_info *info, size_t size, void *arg)
{
	struct range *r = arg;

	(void)size;
	if (!strstr(info->dlpi_name, "/libc.so"))
		return 0;
	for (int i = 0; i < info->dlpi_phnum; i++)
		if (info->dlpi_phdr[i].p_type == PT_LOAD && info->dlpi_phdr[i].p_flags & PF_X) {
			r->from = info->dlpi_addr + info->dlpi_phdr[i].p_vaddr;
			r->to = r->from + info->dlpi_phdr[i].p_memsz;
		}
	return 1;
}

#define LOAD(offset)	     BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offset)
#define JUMP(op, k, yes, no) BPF_JUMP(BPF_JMP | (op) | BPF_K, k, yes, no)
#define DO(action)	     BPF_STMT(BPF_RET | BPF_K, action)
#define IP		     offsetof(struct seccomp_data, instruction_pointer)

/* A program that this one starts has its libc elsewhere, and is left alone. */
static void trap_calls(const int *nr, int n, char **argv)
{
	struct sock_filter f[KNOWN + 9];
	struct sigaction sa = { .sa_sigaction = trapped, .sa_flags = SA_SIGINFO };
	struct sock_fprog prog = { .filter = f };
	struct range libc = {};
	int k = 0;

	dl_iterate_phdr(find_libc, &libc);
	if (!libc.to)
		refuse("no libc");
	if (libc.from >> 32 != (libc.to - 1) >> 32) { /* seldom; it will be elsewhere */
		execv("/proc/self/exe", argv);
		refuse("cannot start again");
	}
	f[k++] = (struct sock_filter)LOAD(offsetof(struct seccomp_data, nr));
	for (int i = 0; i < n; i++)
		f[k++] = (struct sock_filter)JUMP(BPF_JEQ, nr[i], n - i, 0);
	f[k++] = (struct sock_filter)DO(SECCOMP_RET_ALLOW);
	f[k++] = (struct sock_filter)LOAD(IP + 4);
	f[k++] = (struct sock_filter)JUMP(BPF_JEQ, libc.from >> 32, 0, 4);
	f[k++] = (struct sock_filter)LOAD(IP);
	f[k++] = (struct sock_filter)JUMP(BPF_JGE, (uint32_t)libc.from, 0, 2);
	f[k++] = (struct sock_filter)JUMP(BPF_JGE, (uint32_t)(libc.to - 1) + 1, 1, 0);
	f[k++] = (struct sock_filter)DO(SECCOMP_RET_TRAP);
	f[k++] = (struct sock_filter)DO(SECCOMP_RET_ALLOW);
	prog.len = k;
	sigaction(SIGSYS, &sa, NULL);
	if (prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &prog) &&
	    (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) ||
	     prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &prog)))
		refuse("no seccomp filter");
}

/* --- start --- */

static bool is_ours(void)
{
	char path[4096];
	ssize_t n = readlink("/proc/self/exe", path, sizeof(path) - 1);
	const char *name;

	path[n < 0 ? 0 : n] = 0;
	name = strrchr(path, '/');
	return name && !strncmp(name + 1, "ibscope", 7);
}

static void start(char **argv)
{
	const char *file = getenv("INJECT_STATE"), *what = getenv("INJECT_WHAT");
	const char *n = getenv("INJECT_N");
	int nr[KNOWN], calls = 0, fd;
	char *names, *save, *name;
	struct state *s;

	if (!file || !what || !is_ours())
		return;
	fd = open(file, O_RDWR | O_CLOEXEC);
	s = fd < 0 ? MAP_FAILED : mmap(NULL, sizeof(*s), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (s == MAP_FAILED)
		refuse("no INJECT_STATE");
	close(fd);
	which = n ? strtoull(n, NULL, 10) : 0;
	all = getenv("INJECT_ALL");
	names = strdup(what);
	for (name = strtok_r(names, ",", &save); name; name = strtok_r(NULL, ",", &save))
		if (strcmp(name, "alloc"))
			calls = add_calls(nr, calls, name);
	free(names);
	state = s;
	if (calls)
		trap_calls(nr, calls, argv);
	else
		allocations = true;
}

static int (*real_main)(int, char **, char **);

static int started(int argc, char **argv, char **env)
{
	start(argv);
	return real_main(argc, argv, env);
}

int __libc_start_main(int (*main)(int, char **, char **), int argc, char **argv, void (*init)(void),
		      void (*fini)(void), void (*rtld_fini)(void), void *stack_end);
int __libc_start_main(int (*main)(int, char **, char **), int argc, char **argv, void (*init)(void),
		      void (*fini)(void), void (*rtld_fini)(void), void *stack_end)
{
	int (*real)(int (*)(int, char **, char **), int, char **, void (*)(void), void (*)(void),
		    void (*)(void), void *);

	*(void **)&real = dlsym(RTLD_NEXT, "__libc_start_main");
	real_main = main;
	return real(started, argc, argv, init, fini, rtld_fini, stack_end);
}
