// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* The terminal that a command shares with us: a shell with a pseudo terminal, in it a job of ours, in it the command. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/err.h"
#include "open_files.h"
#include "task/command.h"

#define SECONDS 20 /* for a test on a busy machine; then its processes are killed */

/* In forked children, where cmocka cannot report. */
#define CHECK(x)                                                                             \
	do {                                                                                 \
		if (!(x)) {                                                                  \
			fprintf(stderr, "line %d: %s: %s\n", __LINE__, #x, strerror(errno)); \
			_exit(1);                                                            \
		}                                                                            \
	} while (0)
/* Without a limit: alarm() ends it. */
#define UNTIL(x)     \
	while (!(x)) \
	poll(NULL, 0, 1)

/* What the job shows to the shell. */
static struct {
	volatile pid_t command;
	sigset_t before, during, after;
	pid_t foreground;
	int files_before, files_during, files_after;
	int status;
	volatile sig_atomic_t handled;
} * job;

static int master, tty, go[2], up[2];

/* --- the job --- */

static struct command *command;

static void handle(int sig)
{
	job->handled = sig;
}

static void pass_on(int sig)
{
	command_pass_on(command, sig, true);
}

/* As our programs run a command; its stdin and stdout are pipes to the shell. */
static _Noreturn void run_job(const char *script, const struct command_signals *signals)
{
	char *argv[] = { (char *)"sh", (char *)"-c", (char *)script, NULL };
	const struct command_opts opts = { .argv = argv,
					   .cgroup = COMMAND_CGROUP_NONE,
					   .signals = signals };
	struct err err = { "" };

	job->files_before = open_files();
	sigprocmask(SIG_SETMASK, NULL, &job->before);
	CHECK(dup2(go[0], 0) == 0 && dup2(up[1], 1) == 1);
	CHECK(!command_prepare(&opts, &command, &err));
	job->command = command_pid(command);
	CHECK(!command_start(command, &err));
	sigprocmask(SIG_SETMASK, NULL, &job->during);
	job->files_during = open_files();
	while (command_wait(command, &job->status) == -EINTR)
		;
	sigprocmask(SIG_SETMASK, NULL, &job->after);
	job->foreground = tcgetpgrp(tty);
	command_close(command);
	job->files_after = open_files();
	exit(0); /* looks for leaks */
}

/* --- the shell --- */

enum how { BACKGROUND, FOREGROUND };

static pid_t fork_job(enum how how)
{
	pid_t pid;

	memset(job, 0, sizeof(*job));
	CHECK(!pipe2(go, O_CLOEXEC) && !pipe2(up, O_CLOEXEC));
	pid = fork();
	CHECK(pid >= 0);
	/* either may be first; the terminal is the job's alone to take, which may have lent it to the command already */
	setpgid(pid, pid);
	if (!pid) {
		sigset_t none;

		CHECK(how == BACKGROUND || !tcsetpgrp(tty, getpid()));
		sigemptyset(&none);
		sigprocmask(SIG_SETMASK, &none, NULL);
		prctl(PR_SET_PDEATHSIG, SIGKILL);
	}
	return pid;
}

static pid_t start(const char *script, enum how how)
{
	const pid_t pid = fork_job(how);

	if (!pid)
		run_job(script, NULL);
	return pid;
}

/* The command's next letter. */
static char letter(void)
{
	char c = 0;

	CHECK(read(up[0], &c, 1) == 1);
	return c;
}

static void say(int fd, const char *text)
{
	CHECK(write(fd, text, strlen(text)) == (ssize_t)strlen(text));
}

static int next_status(pid_t pid)
{
	int status;

	CHECK(waitpid(pid, &status, WUNTRACED) == pid);
	return status;
}

static bool lent(void)
{
	return job->command && tcgetpgrp(tty) == job->command;
}

/* The job was stopped, as a shell sees it, which then takes the terminal. */
static void stops_with(pid_t pid, int sig)
{
	const int status = next_status(pid);

	CHECK(WIFSTOPPED(status) && WSTOPSIG(status) == sig);
	CHECK(!lent());
	CHECK(!tcsetpgrp(tty, getpgrp()));
}

/* The job has exited with nothing left; its command with @want. */
static void ends_with(pid_t pid, int want)
{
	CHECK(next_status(pid) == 0);
	CHECK(job->status == want);
	CHECK(!memcmp(&job->before, &job->after, sizeof(job->after)));
	CHECK(job->files_before == job->files_after);
}

static void to_foreground(pid_t pid)
{
	CHECK(!tcsetpgrp(tty, pid));
	CHECK(!kill(-pid, SIGCONT));
}

/* A value of /proc/PID/status, such as "State:\t". */
static const char *status_of(pid_t pid, const char *key)
{
	static char line[256];
	char path[64];
	bool found = false;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/status", pid);
	f = fopen(path, "r");
	CHECK(f);
	while (!found && fgets(line, sizeof(line), f))
		found = !strncmp(line, key, strlen(key));
	fclose(f);
	return found ? line + strlen(key) : "";
}

static bool stopped(pid_t pid)
{
	return *status_of(pid, "State:\t") == 'T';
}

/* A signal that comes before the shell waits in read() would only be noted. */
static bool sleeps(pid_t pid)
{
	return *status_of(pid, "State:\t") == 'S';
}

static bool is_pending(pid_t pid, int sig)
{
	return strtoull(status_of(pid, "ShdPnd:\t"), NULL, 16) >> (sig - 1) & 1;
}

/* Run a shell that is the leader of a session, with or without a terminal. */
static void in_shell(void (*work)(void), bool terminal)
{
	const struct rlimit no_core = { 0, 0 };
	sigset_t set;
	pid_t pid;
	int status;

	pid = fork();
	if (pid) {
		assert_int_equal(waitpid(pid, &status, 0), pid);
		assert_int_equal(status, 0);
		return;
	}
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	alarm(SECONDS);
	CHECK(setsid() > 0 && !setrlimit(RLIMIT_CORE, &no_core));
	/* also where nohup(1) has started this test */
	for (int sig = 1; sig < NSIG; sig++)
		signal(sig, SIG_DFL);
	/* to set the foreground from the background */
	sigemptyset(&set);
	sigaddset(&set, SIGTTOU);
	sigprocmask(SIG_SETMASK, &set, NULL);
	tty = -1;
	if (terminal) {
		CHECK(!grantpt(master) && !unlockpt(master));
		tty = open(ptsname(master), O_RDWR | O_CLOEXEC); /* becomes our terminal */
		CHECK(tty >= 0 && tcgetpgrp(tty) == getpgrp());
	}
	work();
	_exit(0);
}

/* --- tests --- */

/* The command stays in our process group, and no signals are blocked. */
static void no_terminal(void)
{
	pid_t pid;

	CHECK(!pipe2(go, O_CLOEXEC) && !pipe2(up, O_CLOEXEC));
	pid = fork();
	if (!pid) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		run_job("echo u; read x; exit 4", NULL);
	}
	CHECK(letter() == 'u');
	CHECK(getpgid(job->command) == getpgrp());
	say(go[1], "\n");
	ends_with(pid, 4 << 8);
	CHECK(!memcmp(&job->before, &job->during, sizeof(job->during)));
	CHECK(job->files_during == job->files_before + 1); /* command_pidfd() */
}

static void test_no_terminal(void **state)
{
	(void)state;
	in_shell(no_terminal, false);
}

/* The command has a process group of its own; we keep the terminal, and block its signals except SIGINT. */
static void own_group(void)
{
	static const int blocked[] = {
		SIGHUP, SIGQUIT, SIGCHLD, SIGTSTP, SIGTTIN, SIGTTOU, SIGWINCH
	};
	const pid_t pid = start("echo u; read x; exit 4", FOREGROUND);
	unsigned int n = 0;

	CHECK(letter() == 'u');
	CHECK(getpgid(job->command) == job->command);
	CHECK(tcgetpgrp(tty) == pid);
	say(go[1], "\n");
	ends_with(pid, 4 << 8);
	CHECK(tcgetpgrp(tty) == pid);
	CHECK(job->files_during == job->files_before + 2); /* and the terminal */
	for (int sig = 1; sig < NSIG; sig++)
		n += sigismember(&job->during, sig) == 1;
	CHECK(n == sizeof(blocked) / sizeof(*blocked));
	for (unsigned int i = 0; i < n; i++)
		CHECK(sigismember(&job->during, blocked[i]) == 1);
}

static void test_own_group(void **state)
{
	(void)state;
	in_shell(own_group, true);
}

/* The command has the terminal, and exits with 0 when it has read a word. */
static void gets_word(pid_t pid)
{
	UNTIL(lent() && !stopped(job->command));
	say(master, "word\n");
	ends_with(pid, 0);
}

/* A command that reads gets the terminal until it exits; the shell sees nothing of that. */
static void reads(void)
{
	const pid_t pid = start("read x </dev/tty; [ $x = word ]", FOREGROUND);

	gets_word(pid);
	CHECK(job->foreground == pid);
}

static void test_reads(void **state)
{
	(void)state;
	in_shell(reads, true);
}

/* ^Z reaches us alone: we pass it on, and stop; all of the command is continued with us, without the terminal. */
static void stop(void)
{
	const pid_t pid = start("exec 3<&0; sh -c 'echo u; read x <&3; exit 6' & wait $!; exit $?",
				FOREGROUND);

	CHECK(letter() == 'u');
	say(master, "\032");
	stops_with(pid, SIGTSTP);
	UNTIL(stopped(job->command));
	to_foreground(pid);
	UNTIL(!stopped(job->command));
	CHECK(!stopped(pid));
	CHECK(tcgetpgrp(tty) == pid);
	say(go[1], "\n");
	ends_with(pid, 6 << 8);
}

static void test_stop(void **state)
{
	(void)state;
	in_shell(stop, true);
}

/* With the terminal, the command alone gets ^Z: we stop, too, and return the terminal when we are continued. */
static void stop_lent(void)
{
	const pid_t pid = start("sh -c 'read x </dev/tty; [ $x = word ]'; exit $?", FOREGROUND);

	UNTIL(lent() && !stopped(job->command));
	say(master, "\032");
	stops_with(pid, SIGTSTP);
	CHECK(stopped(job->command));
	to_foreground(pid);
	UNTIL(lent() && !stopped(job->command));
	/* the same by a signal that no terminal sends */
	kill(-job->command, SIGSTOP);
	stops_with(pid, SIGTSTP);
	/* in the background it goes on, until it reads again */
	CHECK(!kill(-pid, SIGCONT));
	stops_with(pid, SIGTTIN);
	to_foreground(pid);
	gets_word(pid);
	CHECK(job->foreground == pid);
}

static void test_stop_lent(void **state)
{
	(void)state;
	in_shell(stop_lent, true);
}

/* A job in the background stops as a whole, with the signal that the command got, each time it is continued there. */
static void background(void)
{
	pid_t pid = start("read x </dev/tty; [ $x = word ]", BACKGROUND);

	stops_with(pid, SIGTTIN);
	CHECK(stopped(job->command));
	CHECK(!kill(-pid, SIGCONT));
	stops_with(pid, SIGTTIN);
	to_foreground(pid);
	gets_word(pid);

	CHECK(!tcsetpgrp(tty, getpgrp()));
	pid = start("stty -echo </dev/tty; exit 3", BACKGROUND);
	stops_with(pid, SIGTTOU);
	to_foreground(pid);
	ends_with(pid, 3 << 8);
	CHECK(job->foreground == pid);
}

static void test_background(void **state)
{
	(void)state;
	in_shell(background, true);
}

/* Who stops the command with kill(1) will also continue it. The size of the terminal changes meanwhile. */
static void stopped_alone(void)
{
	const pid_t pid = start("trap 'echo w; exit 5' WINCH; echo u; read x", FOREGROUND);
	int status;

	CHECK(letter() == 'u' && letter() == '\n');
	UNTIL(sleeps(job->command));
	kill(job->command, SIGSTOP);
	UNTIL(stopped(job->command));
	/* we handle the lower signal first: when this one has arrived, we know of the stop */
	kill(pid, SIGWINCH);
	UNTIL(is_pending(job->command, SIGWINCH));
	CHECK(stopped(job->command));
	CHECK(waitpid(pid, &status, WUNTRACED | WNOHANG) == 0);
	CHECK(!stopped(pid));
	kill(job->command, SIGCONT);
	CHECK(letter() == 'w');
	ends_with(pid, 5 << 8);
}

static void test_stopped_alone(void **state)
{
	(void)state;
	in_shell(stopped_alone, true);
}

/* What would kill us is passed on before it does. */
static void deadly(int sig, const char *script)
{
	const pid_t pid = start(script, FOREGROUND);
	int status;

	CHECK(letter() == 'u' && letter() == '\n');
	UNTIL(sleeps(job->command));
	kill(pid, sig);
	CHECK(letter() == 'd');
	status = next_status(pid);
	CHECK(WIFSIGNALED(status) && WTERMSIG(status) == sig);
}

static void both_die(void)
{
	deadly(SIGHUP, "trap 'echo d; exit' HUP; echo u; read x");
	deadly(SIGQUIT, "trap 'echo d; exit' QUIT; echo u; read x");
}

static void test_both_die(void **state)
{
	(void)state;
	in_shell(both_die, true);
}

/* A signal that we handle is passed on, too, and the command continued. */
static void handled(void)
{
	const pid_t pid = fork_job(FOREGROUND);

	if (!pid) {
		signal(SIGQUIT, handle);
		run_job("trap 'echo q; exit 2' QUIT; echo u; read x", NULL);
	}
	CHECK(letter() == 'u' && letter() == '\n');
	UNTIL(sleeps(job->command));
	kill(job->command, SIGSTOP);
	UNTIL(stopped(job->command));
	kill(pid, SIGQUIT);
	CHECK(letter() == 'q');
	ends_with(pid, 2 << 8);
	CHECK(job->handled == SIGQUIT);
}

static void test_handled(void **state)
{
	(void)state;
	in_shell(handled, true);
}

/* What nohup(1) has made us ignore stays with us, whatever the command does with it. */
static void ignored(void)
{
	const pid_t pid = fork_job(FOREGROUND);

	if (!pid) {
		struct command_signals s;

		command_signals_get(&s);
		signal(SIGHUP, SIG_IGN);
		run_job("trap 'echo h' HUP; trap 'echo w; exit 5' WINCH; echo u; read x", &s);
	}
	CHECK(letter() == 'u' && letter() == '\n');
	UNTIL(sleeps(job->command));
	kill(pid, SIGHUP);
	kill(pid, SIGWINCH);
	CHECK(letter() == 'w');
	ends_with(pid, 5 << 8);
	CHECK(!sigismember(&job->during, SIGHUP));
}

static void test_ignored(void **state)
{
	(void)state;
	in_shell(ignored, true);
}

/* A signal for the command reaches its whole group: the terminal has sent it to ours alone. */
static void whole_group(void)
{
	const pid_t pid = fork_job(FOREGROUND);

	if (!pid) {
		signal(SIGTERM, pass_on);
		run_job("exec 3<&0; trap 'wait; exit 9' TERM; sh -c 'trap \"echo c; exit\" "
			"TERM; echo u; read x <&3' & wait; exit 1",
			NULL);
	}
	CHECK(letter() == 'u' && letter() == '\n');
	UNTIL(sleeps(job->command));
	kill(pid, SIGTERM);
	CHECK(letter() == 'c');
	ends_with(pid, 9 << 8);
}

static void test_whole_group(void **state)
{
	(void)state;
	in_shell(whole_group, true);
}

static int open_master(void **state)
{
	(void)state;
	master = posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC);
	return master < 0;
}

static int close_master(void **state)
{
	(void)state;
	return close(master);
}

#define T(f) cmocka_unit_test_setup_teardown(f, open_master, close_master)

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(test_no_terminal), T(test_own_group),	 T(test_reads),		T(test_stop),
		T(test_stop_lent),   T(test_background), T(test_stopped_alone), T(test_both_die),
		T(test_handled),     T(test_ignored),	 T(test_whole_group),
	};

	if (open_master(NULL)) {
		printf("no pseudo terminals here: %s\n", strerror(errno));
		return 77;
	}
	close_master(NULL);
	job = mmap(NULL, sizeof(*job), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	return job == MAP_FAILED || cmocka_run_group_tests(tests, NULL, NULL);
}
