// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "command_terminal.h"

#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/std.h"

#define RETRY_US 100000

struct command_terminal {
	pid_t pid;
	int tty;
	bool lent;
	pthread_t thread;
	sigset_t wait, before;
};

static void set_foreground(struct command_terminal *t, bool lend)
{
	/* SIGTTOU is blocked, so that this works from the background, too */
	tcsetpgrp(t->tty, lend ? t->pid : getpgrp());
	t->lent = lend;
}

static bool in_foreground(const struct command_terminal *t)
{
	return tcgetpgrp(t->tty) == getpgrp();
}

/* Take the default action of @sig, which we received; returns if stopped and continued. */
static void act_on(int sig)
{
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, sig);
	pthread_sigmask(SIG_UNBLOCK, &set, NULL);
	pthread_sigmask(SIG_BLOCK, &set, NULL);
}

static void on_stop(struct command_terminal *t, int sig)
{
	const bool wants_terminal = sig == SIGTTIN || sig == SIGTTOU;

	/* stopped by kill(1), which will also continue it */
	if (!t->lent && !wants_terminal)
		return;
	if (!wants_terminal || !in_foreground(t)) {
		/* for the shell to see: the whole job is stopped */
		if (t->lent)
			set_foreground(t, false);
		sig = wants_terminal ? sig : SIGTSTP;
		kill(0, sig);
		act_on(sig);
	}
	if (in_foreground(t))
		set_foreground(t, true);
	else if (wants_terminal)
		usleep(RETRY_US); /* no shell left to stop us */
	kill(-t->pid, SIGCONT);
}

static void *keep(void *arg)
{
	struct command_terminal *t = arg;
	siginfo_t info;
	int sig;

	while (!sigwait(&t->wait, &sig)) {
		if (sig == SIGCHLD) {
			info.si_pid = 0;
			if (!waitid(P_PID, t->pid, &info, WSTOPPED | WNOHANG) && info.si_pid)
				on_stop(t, info.si_status);
			continue;
		}
		kill(-t->pid, sig);
		if (sig == SIGWINCH)
			continue;
		raise(sig);
		act_on(sig);
		kill(-t->pid, SIGCONT);
	}
	return NULL;
}

static void release(struct command_terminal *t)
{
	pthread_sigmask(SIG_SETMASK, &t->before, NULL);
	close(t->tty);
	free(t);
}

struct command_terminal *command_terminal_open(pid_t pid)
{
	static const int passed_on[] = { SIGTSTP, SIGHUP, SIGQUIT, SIGWINCH };
	struct command_terminal *t;
	int tty = open("/dev/tty", O_RDWR | O_NOCTTY | O_CLOEXEC);
	struct sigaction sa;
	sigset_t set, all;
	int err;

	if (tty < 0)
		return NULL;
	t = xcalloc(1, sizeof(*t));
	t->pid = pid;
	t->tty = tty;
	sigemptyset(&t->wait);
	sigaddset(&t->wait, SIGCHLD);
	for (size_t i = 0; i < ARRAY_SIZE(passed_on); i++) {
		if (!sigaction(passed_on[i], NULL, &sa) && sa.sa_handler != SIG_IGN)
			sigaddset(&t->wait, passed_on[i]);
	}
	set = t->wait;
	sigaddset(&set, SIGTTIN);
	sigaddset(&set, SIGTTOU);
	pthread_sigmask(SIG_BLOCK, &set, &t->before);
	/* the main thread handles all others */
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &set);
	err = pthread_create(&t->thread, NULL, keep, t);
	pthread_sigmask(SIG_SETMASK, &set, NULL);
	if (!err) {
		setpgid(pid, pid);
		return t;
	}
	release(t);
	return NULL;
}

void command_terminal_close(struct command_terminal *t)
{
	if (!t)
		return;
	pthread_cancel(t->thread);
	pthread_join(t->thread, NULL);
	if (t->lent)
		set_foreground(t, false);
	release(t);
}
