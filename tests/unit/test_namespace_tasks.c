// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Tasks of other PID namespaces, and programs whose allocations cannot be noted: children of this process. */
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "capture/namespace_tasks.h"
#include "capture/obstacles.h"

#define NONE   0x7ffffff0 /* no process has this id */
#define NOBODY 65534

static pid_t child;
static int ready[2]; /* the child closes its end when it is as the test wants it */

static void begin(void)
{
	assert_int_equal(pipe2(ready, O_CLOEXEC), 0);
	child = fork();
	assert_true(child >= 0);
	if (!child)
		prctl(PR_SET_PDEATHSIG, SIGKILL);
}

/* Return: what the child has written. */
static int await_child(void)
{
	int said = 0;

	close(ready[1]);
	while (read(ready[0], &said, sizeof(said)) > 0)
		;
	close(ready[0]);
	return said;
}

static int tear_down(void **state)
{
	(void)state;
	if (child > 0) {
		kill(child, SIGKILL);
		waitpid(child, NULL, 0);
	}
	child = 0;
	return 0;
}

static void stay(void)
{
	close(ready[1]);
	for (;;)
		pause();
}

/* --- namespaces --- */

static void test_own(void **state)
{
	struct stat st;

	(void)state;
	assert_int_equal(stat("/proc/self/ns/pid", &st), 0);
	assert_int_equal(namespace_of(0), st.st_ino);
	assert_int_equal(namespace_of(getpid()), st.st_ino);
	assert_int_equal(namespace_of(NONE), 0);
}

static void *wait_in_thread(void *arg)
{
	int *ids = arg, c;

	ids[2] = gettid();
	close(ids[1]);
	/* until the test has seen it */
	while (read(ids[0], &c, 1) > 0)
		;
	return NULL;
}

static void test_threads(void **state)
{
	int seen[2], tells[2], ids[3], c;
	pthread_t thread;

	(void)state;
	assert_int_equal(pipe2(seen, O_CLOEXEC) | pipe2(tells, O_CLOEXEC), 0);
	ids[0] = seen[0];
	ids[1] = tells[1];
	assert_int_equal(pthread_create(&thread, NULL, wait_in_thread, ids), 0);
	assert_int_equal(read(tells[0], &c, 1), 0);
	assert_int_equal(namespace_thread(getpid(), getpid()), getpid());
	assert_int_equal(namespace_thread(getpid(), ids[2]), ids[2]);
	assert_int_equal(namespace_thread(getpid(), NONE), 0);
	assert_int_equal(namespace_thread(NONE, ids[2]), 0);
	close(seen[1]);
	pthread_join(thread, NULL);
	close(seen[0]);
	close(tells[0]);
}

/* A process that is the first one of its namespace; its parent writes the id that we see, and waits for it. */
static void be_first(void)
{
	pid_t first;

	if (unshare(CLONE_NEWPID))
		_exit(1);
	first = fork();
	if (!first) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		stay();
	}
	if (write(ready[1], &first, sizeof(first)) != sizeof(first))
		_exit(1);
	close(ready[1]);
	waitpid(first, NULL, 0);
	_exit(0);
}

static void test_other(void **state)
{
	__u64 ns;
	int first;

	(void)state;
	begin();
	if (!child)
		be_first();
	first = await_child();
	if (!first) {
		print_message("skipped: a PID namespace needs root\n");
		skip();
	}
	ns = namespace_of(first);
	assert_int_not_equal(ns, 0);
	assert_int_not_equal(ns, namespace_of(0));
	assert_int_equal(namespace_process(ns, 1), first);
	assert_int_equal(namespace_thread(first, 1), first);
	/* it has no other process, and other namespaces have none of its ids */
	assert_int_equal(namespace_process(ns, NONE), 0);
	assert_int_equal(namespace_process(1, 1), 0);
	assert_int_equal(namespace_process(namespace_of(0), getpid()), getpid());
}

/* --- obstacles --- */

static void test_none(void **state)
{
	(void)state;
	assert_int_equal(obstacle_of(getpid()), OBSTACLE_NONE);
	assert_int_equal(obstacle_of(NONE), OBSTACLE_NONE);
}

static void be_nobody(void)
{
	if (setresgid(NOBODY, NOBODY, NOBODY) || setresuid(NOBODY, NOBODY, NOBODY))
		_exit(OBSTACLES);
	prctl(PR_SET_PDEATHSIG, SIGKILL); /* another user has none */
}

/* A process of another user is an obstacle, unless that user is root, who can write to any directory. */
static void test_user(void **state)
{
	int status;

	(void)state;
	if (geteuid()) {
		print_message("skipped: only root can become another user\n");
		skip();
	}
	begin();
	if (!child) {
		be_nobody();
		stay();
	}
	await_child();
	assert_int_equal(obstacle_of(child), OBSTACLE_USER);
	tear_down(NULL);
	begin();
	if (!child) {
		be_nobody();
		_exit(obstacle_of(getppid()));
	}
	await_child();
	assert_int_equal(waitpid(child, &status, 0), child);
	child = 0;
	assert_int_equal(status, OBSTACLE_NONE << 8);
}

#define AT 0x400000

/* A program without a loader, which waits. */
static void be_static(void)
{
	static const unsigned char code[] = { 0xb8, 34, 0, 0, 0, 0x0f, 0x05, 0xeb, 0xf7 };
	struct {
		Elf64_Ehdr head;
		Elf64_Phdr load;
		unsigned char code[sizeof(code)];
	} file = {
		.head = { .e_ident = ELFMAG,
			  .e_type = ET_EXEC,
			  .e_machine = EM_X86_64,
			  .e_version = EV_CURRENT,
			  .e_entry = AT + sizeof(Elf64_Ehdr) + sizeof(Elf64_Phdr),
			  .e_phoff = sizeof(Elf64_Ehdr),
			  .e_ehsize = sizeof(Elf64_Ehdr),
			  .e_phentsize = sizeof(Elf64_Phdr),
			  .e_phnum = 1 },
		.load = { .p_type = PT_LOAD,
			  .p_flags = PF_R | PF_X,
			  .p_vaddr = AT,
			  .p_filesz = sizeof(file),
			  .p_memsz = sizeof(file),
			  .p_align = 4096 },
	};
	char *none[] = { "static", NULL };
	int fd = memfd_create("static", MFD_CLOEXEC);

	file.head.e_ident[EI_CLASS] = ELFCLASS64;
	file.head.e_ident[EI_DATA] = ELFDATA2LSB;
	file.head.e_ident[EI_VERSION] = EV_CURRENT;
	memcpy(file.code, code, sizeof(code));
	if (write(fd, &file, sizeof(file)) == sizeof(file))
		fexecve(fd, none, none + 1);
	_exit(1);
}

static void test_static(void **state)
{
	(void)state;
	begin();
	if (!child)
		be_static();
	await_child();
	assert_int_equal(obstacle_of(child), OBSTACLE_LOADER);
	assert_int_equal(waitpid(child, NULL, WNOHANG), 0);
}

#define T(f) cmocka_unit_test_teardown(f, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(test_own),  T(test_threads), T(test_other),
		T(test_none), T(test_user),    T(test_static),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
