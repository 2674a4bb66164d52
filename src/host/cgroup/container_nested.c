// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "container_nested.h"

#include "base/child.h"
#include "base/clock.h"
#include "base/regular.h"
#include "base/std.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#define NS_PER_S     1000000000ULL
#define ANSWER_MS    2000
#define CREDIT_NS    (2 * NS_PER_S) /* initial credit */
#define SHARE	     100	    /* refilled with 1/SHARE of the time */
#define STUCK_NS     (300 * NS_PER_S)
#define STUCK_MAX    4 /* with this many stuck helpers, ask no container */
#define IDLE_S	     2
#define LIFE_NS	     (10 * NS_PER_S) /* a restarted container has another root directory */
#define HELPERS_MAX  64
#define MEMORY_BYTES (64ULL << 20)

/* A helper process in the root directory of a container. */
struct helper {
	struct container_scope scope;
	pid_t pid; /* 0: none */
	int fd;
	uint64_t stuck_ns; /* when it failed to answer; 0: it did answer */
};

struct nested {
	char *root;
	nested_resolve *resolve;
	struct helper helper[HELPERS_MAX];
	size_t n; /* used so far; the oldest are replaced */
	uint64_t opened_ns, spent_ns;
	bool denied; /* the user knows */
};

struct answer {
	bool denied;
	struct container_text text;
};

struct nested *nested_new(const char *root, nested_resolve *resolve)
{
	struct nested *n = xcalloc(1, sizeof(*n));

	n->root = xstrdup(root);
	n->resolve = resolve;
	n->opened_ns = clock_ns(CLOCK_MONOTONIC);
	return n;
}

/* --- the process --- */

/* Return: 0, even if there is no process; a negative errno if it may not be entered. */
static int enter(const char *root, const struct container_scope *scope, bool *found)
{
	int process = container_places_process(root, scope), dir, ret;

	*found = false;
	if (process < 0)
		return 0;
	dir = openat(process, "root", O_PATH | O_DIRECTORY | O_CLOEXEC);
	ret = dir < 0 ? -errno : regular_chroot(dir);
	*found = !ret;
	return ret == -EACCES || ret == -EPERM ? ret : 0;
}

/* Do not keep stdout and stderr open: another user's file system may block us forever. */
static void close_output(void)
{
	int null = open("/dev/null", O_RDWR | O_CLOEXEC);

	for (int fd = 0; fd <= STDERR_FILENO; fd++)
		if (dup2(null, fd) < 0)
			_exit(1);
}

static void helper_main(const struct nested *n, const struct container_scope *scope, pid_t parent,
			int fd)
{
	const uint64_t end = clock_ns(CLOCK_MONOTONIC) + LIFE_NS;
	struct answer a = {};
	struct container c;
	bool found;

	child_enter(parent, fd, fd, MEMORY_BYTES);
	alarm(IDLE_S);
	close_output();
	a.denied = enter(n->root, scope, &found);
	while (clock_ns(CLOCK_MONOTONIC) < end && read(fd, &c, sizeof(c)) == sizeof(c)) {
		alarm(IDLE_S);
		a.text = (struct container_text){ "" };
		if (found)
			n->resolve(scope, &c, &a.text);
		if (write(fd, &a, sizeof(a)) != sizeof(a))
			break;
	}
	_exit(0);
}

static void helper_start(const struct nested *n, struct helper *h)
{
	pid_t parent = getpid();
	int fds[2];

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, fds))
		return;
	h->pid = fork();
	if (!h->pid)
		helper_main(n, &h->scope, parent, fds[1]);
	close(fds[1]);
	h->fd = fds[0];
	if (h->pid < 0) {
		close(h->fd);
		h->pid = 0;
	}
}

/* Do not wait for a helper that hangs in the kernel. */
static void helper_stop(struct helper *h)
{
	if (!h->pid)
		return;
	if (h->fd >= 0)
		close(h->fd);
	h->fd = -1;
	kill(h->pid, SIGKILL);
	if (waitpid(h->pid, NULL, h->stuck_ns ? WNOHANG : 0))
		h->pid = 0;
}

/* --- asking --- */

static struct helper *find_helper(struct nested *n, const struct container_scope *scope)
{
	struct helper *h;

	for (h = n->helper; h < n->helper + HELPERS_MAX; h++)
		if (h->scope.uid == scope->uid && !strcmp(h->scope.outer, scope->outer))
			return h;
	h = &n->helper[n->n++ % HELPERS_MAX];
	helper_stop(h);
	*h = (struct helper){ .scope = *scope, .fd = -1 };
	return h;
}

/* Return: false if the helper has exited. */
static bool ask(struct helper *h, const struct container *c, struct answer *a)
{
	struct pollfd p = { .fd = h->fd, .events = POLLIN };

	if (send(h->fd, c, sizeof(*c), MSG_NOSIGNAL) != sizeof(*c))
		return false;
	if (poll(&p, 1, ANSWER_MS) > 0)
		return recv(h->fd, a, sizeof(*a), 0) == sizeof(*a);
	h->stuck_ns = clock_ns(CLOCK_MONOTONIC);
	return false;
}

static void note_denied(struct nested *n)
{
	if (!n->denied)
		log_warn("cannot read the names of containers inside other containers: requires "
			 "CAP_SYS_PTRACE and CAP_SYS_CHROOT");
	n->denied = true;
}

/* Count stuck helpers; those that have exited meanwhile may be asked again. */
static size_t count_stuck(struct nested *n, uint64_t now)
{
	size_t stuck = 0;

	for (struct helper *h = n->helper; h < n->helper + HELPERS_MAX; h++) {
		if (h->stuck_ns)
			helper_stop(h);
		if (h->stuck_ns && !h->pid && now > h->stuck_ns + STUCK_NS)
			h->stuck_ns = 0;
		stuck += h->stuck_ns > 0;
	}
	return stuck;
}

void nested_ask(struct nested *n, const struct container_scope *scope, const struct container *c,
		struct container_text *out)
{
	const uint64_t start = clock_ns(CLOCK_MONOTONIC);
	struct helper *h = find_helper(n, scope);
	struct answer a = {};
	bool answered = false;

	if (count_stuck(n, start) >= STUCK_MAX || h->stuck_ns ||
	    n->spent_ns > CREDIT_NS + (start - n->opened_ns) / SHARE)
		return;
	for (int i = 0; i < 2 && !answered && !h->stuck_ns; i++) {
		if (!h->pid)
			helper_start(n, h);
		answered = h->pid && ask(h, c, &a);
		if (!answered)
			helper_stop(h);
	}
	if (answered && a.denied)
		note_denied(n);
	if (answered && container_text_valid(&a.text))
		*out = a.text;
	if (!h->stuck_ns)
		n->spent_ns += clock_ns(CLOCK_MONOTONIC) - start;
}

void nested_free(struct nested *n)
{
	if (!n)
		return;
	for (size_t i = 0; i < HELPERS_MAX; i++)
		helper_stop(&n->helper[i]);
	free(n->root);
	free(n);
}
