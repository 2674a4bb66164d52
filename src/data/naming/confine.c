// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "confine.h"

#include "base/std.h"

#include <grp.h>
#include <linux/audit.h>
#include <linux/capability.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#define ADDRESSES (6ULL << 30) /* bytes: files are mapped, so most of it is not memory */
#define CPU_S	  600	       /* of all objects that it reads; each has a limit of its own */
#define FILES	  65536
#define NOBODY	  65534
#define OWN_UID	  0x7fff0000u /* plus the pid: nobody else has it, so nobody can signal it */

#if defined(__SANITIZE_ADDRESS__)
#define SANITIZED 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define SANITIZED 1
#endif
#endif

#define LOAD(field) BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, field))
#define IS(value)   BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, value, 0, 1)
#define DO(action)  BPF_STMT(BPF_RET | BPF_K, action)
#define ALLOW(name) IS(SYS_##name), DO(SECCOMP_RET_ALLOW)
/* The process answers these itself. */
#define TRAP(name) IS(SYS_##name), DO(SECCOMP_RET_TRAP)
/* Fails as if the file did not exist. */
#define FAIL(name) IS(SYS_##name), DO(SECCOMP_RET_ERRNO | ENOENT)
/* Unless it is for code that was not there before. */
#define ALLOW_DATA(name)                                                                      \
	BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_##name, 0, 4), LOAD(args[2]),                 \
		BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, PROT_EXEC, 1, 0), DO(SECCOMP_RET_ALLOW), \
		DO(SECCOMP_RET_KILL_PROCESS)

static int filter_calls(void)
{
	static struct sock_filter rules[] = {
		LOAD(arch),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, AUDIT_ARCH_X86_64, 1, 0),
		DO(SECCOMP_RET_KILL_PROCESS),
		LOAD(nr),
		ALLOW(pread64),
		ALLOW(read),
		ALLOW(recvmsg),
		ALLOW(sendmsg),
		ALLOW(close),
		ALLOW(fstat),
		ALLOW(lseek),
		ALLOW(fcntl), /* of descriptors that it has */
		ALLOW_DATA(mmap),
		ALLOW_DATA(mprotect),
		ALLOW(munmap),
		ALLOW(mremap),
		ALLOW(madvise),
		ALLOW(brk),
		ALLOW(futex),
		ALLOW(sysinfo), /* qsort() asks for the size of memory */
		ALLOW(clock_gettime),
		ALLOW(getrandom), /* malloc() does */
		ALLOW(rt_sigreturn),
		ALLOW(rt_sigprocmask),
		ALLOW(exit_group),
		TRAP(open),
		TRAP(openat),
		TRAP(newfstatat),
		FAIL(stat),
		FAIL(lstat),
		FAIL(access),
		FAIL(readlink),
		FAIL(readlinkat),
#ifdef SANITIZED
		/* for its reports */
		ALLOW(write),
		ALLOW(getpid),
		ALLOW(gettid),
		ALLOW(sigaltstack),
		ALLOW(sched_yield),
#endif
		DO(SECCOMP_RET_KILL_PROCESS),
	};
	const struct sock_fprog program = { ARRAY_SIZE(rules), rules };

	return prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) ? -errno : 0;
}

/* A hard limit that is lower already stays. */
static void limit(int what, rlim_t most)
{
	struct rlimit rl;

	if (getrlimit(what, &rl))
		return;
	rl.rlim_max = rl.rlim_max < most ? rl.rlim_max : most;
	rl.rlim_cur = rl.rlim_max;
	setrlimit(what, &rl);
}

static void limit_resources(void)
{
#ifndef SANITIZED
	limit(RLIMIT_AS, ADDRESSES);
#endif
	limit(RLIMIT_CPU, CPU_S);
	limit(RLIMIT_NOFILE, FILES);
	limit(RLIMIT_FSIZE, 0);
	limit(RLIMIT_NPROC, 0);
	limit(RLIMIT_CORE, 0);
	limit(RLIMIT_MEMLOCK, 0);
	limit(RLIMIT_MSGQUEUE, 0);
}

static int become(unsigned int id)
{
	return setresgid(id, id, id) || setresuid(id, id, id) ? -errno : 0;
}

/*
 * A service may lack CAP_SETUID, and a user namespace ids to change to. What is left of root without capabilities is
 * its files, of which the process can open none.
 */
static void drop_user(void)
{
	if (geteuid())
		return;
	setgroups(0, NULL);
	if (become(OWN_UID + (unsigned int)getpid()))
		become(NOBODY);
}

static int drop_capabilities(void)
{
	struct __user_cap_header_struct head = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct none[2] = {};

	prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0);
	return syscall(SYS_capset, &head, none) ? -errno : 0;
}

int confine(void (*on_open)(int signal, siginfo_t *info, void *context))
{
	const struct sigaction trap = { .sa_sigaction = on_open,
					.sa_flags = SA_SIGINFO | SA_NODEFER };
	int ret;

	limit_resources();
	drop_user();
	ret = drop_capabilities();
	if (ret)
		return ret;
	/* after the change of user, which resets it: no other process may look into this one */
	if (prctl(PR_SET_DUMPABLE, 0) || prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) ||
	    sigaction(SIGSYS, &trap, NULL))
		return -errno;
	return filter_calls();
}
