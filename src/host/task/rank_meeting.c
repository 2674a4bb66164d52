// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "rank_meeting.h"

#include "base/clock.h"

#include <poll.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#define RETRY_MS 5
#define LEAVE_MS 5000	     /* wait for the end of a recording */
#define MAGIC	 0x32534249u /* "IBS2": change it with the message format */

struct hello {
	__u32 magic, rank, pid;
	char regions[RANK_REGIONS_MAX];
};

struct rank_meeting {
	int listener, epoll;
	struct rank_member *member;
	size_t n, room, n_ended;
};

/* The launcher of this node's ranks: the peer of the socket they inherited, or their parent. */
static pid_t launcher_pid(const struct mpi_rank *r)
{
	struct ucred peer = {};
	socklen_t len = sizeof(peer);

	if (r->launcher_fd >= 0)
		getsockopt(r->launcher_fd, SOL_SOCKET, SO_PEERCRED, &peer, &len);
	return peer.pid > 0 ? peer.pid : getppid();
}

/* The name of the socket. */
static socklen_t address(const struct mpi_rank *r, struct sockaddr_un *a)
{
	const size_t size = sizeof(a->sun_path) - 1;
	int n;

	*a = (struct sockaddr_un){ .sun_family = AF_UNIX };
	if (*r->job)
		n = snprintf(a->sun_path + 1, size, "ibscope-ranks/%u/%s", geteuid(), r->job);
	else
		n = snprintf(a->sun_path + 1, size, "ibscope-ranks/%u/launcher-%d", geteuid(),
			     launcher_pid(r));
	return offsetof(struct sockaddr_un, sun_path) + 1 + n;
}

static bool same_user(int fd)
{
	struct ucred peer;
	socklen_t len = sizeof(peer);

	return !getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &len) && peer.uid == geteuid();
}

static bool ready(int fd, int ms)
{
	struct pollfd p = { .fd = fd, .events = POLLIN };

	return poll(&p, 1, ms) > 0;
}

static void take_member(struct rank_meeting *m, int fd)
{
	struct epoll_event ev = { .events = EPOLLIN };
	struct hello h;

	if (same_user(fd) && ready(fd, 1000) &&
	    recv(fd, &h, sizeof(h), MSG_DONTWAIT) == sizeof(h) && h.magic == MAGIC &&
	    !epoll_ctl(m->epoll, EPOLL_CTL_ADD, fd, &ev)) {
		array_reserve(m->member, m->room, m->n + 1);
		m->member[m->n] = (struct rank_member){ .rank = h.rank, .pid = h.pid, .fd = fd };
		snprintf(m->member[m->n++].regions, RANK_REGIONS_MAX, "%.*s", RANK_REGIONS_MAX - 1,
			 h.regions);
		return;
	}
	log_warn("refused a connection from a process that is not a rank of this job");
	close(fd);
}

static int gather(struct rank_meeting *m, const struct mpi_rank *own)
{
	double end = now_s() + RANK_WAIT_S;

	while (m->n + 1 < own->locals && now_s() < end) {
		int fd = ready(m->listener, 100) ? accept4(m->listener, NULL, NULL, SOCK_CLOEXEC)
						 : -1;

		if (fd >= 0)
			take_member(m, fd);
	}
	if (m->n + 1 < own->locals)
		log_warn("%zu of %u ranks of this node did not connect within %d s: they are not "
			 "sampled",
			 own->locals - 1 - m->n, own->locals, RANK_WAIT_S);
	return 0;
}

int rank_meeting_open(const struct mpi_rank *own, struct rank_meeting **out, struct err *err)
{
	struct rank_meeting *m = xcalloc(1, sizeof(*m));
	struct sockaddr_un a;
	socklen_t len = address(own, &a);
	int ret = 0;

	m->listener = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	m->epoll = epoll_create1(EPOLL_CLOEXEC);
	if (m->listener < 0 || m->epoll < 0)
		ret = err_set(err, -errno, "cannot create a socket: %s", strerror(errno));
	else if (bind(m->listener, (void *)&a, len) || listen(m->listener, SOMAXCONN))
		ret = err_set(err, -errno,
			      "cannot listen at @%s for the other ranks of this node: %s",
			      a.sun_path + 1,
			      errno == EADDRINUSE ? "another rank already collects for this job"
						  : strerror(errno));
	ret = ret ?: gather(m, own);
	if (ret)
		rank_meeting_close(m);
	else
		*out = m;
	return ret;
}

const struct rank_member *rank_meeting_members(const struct rank_meeting *m, size_t *n)
{
	*n = m->n;
	return m->member;
}

void rank_meeting_start(struct rank_meeting *m)
{
	for (size_t i = 0; i < m->n; i++)
		send(m->member[i].fd, "", 1, MSG_NOSIGNAL);
}

int rank_meeting_fd(const struct rank_meeting *m)
{
	return m ? m->epoll : -1;
}

const struct rank_member *rank_meeting_ended(struct rank_meeting *m)
{
	for (size_t i = 0; i < m->n; i++) {
		struct rank_member *r = &m->member[i];
		ssize_t n;

		if (r->ended)
			continue;
		n = recv(r->fd, &r->status, sizeof(r->status), MSG_DONTWAIT);
		if (n < 0 && (errno == EAGAIN || errno == EINTR))
			continue;
		r->ended = true;
		r->has_status = n == sizeof(r->status);
		epoll_ctl(m->epoll, EPOLL_CTL_DEL, r->fd, NULL);
		m->n_ended++;
		return r;
	}
	return NULL;
}

bool rank_meeting_over(const struct rank_meeting *m)
{
	return !m || m->n_ended == m->n;
}

void rank_meeting_close(struct rank_meeting *m)
{
	if (!m)
		return;
	/* members that disconnect without this have crashed */
	rank_meeting_start(m);
	for (size_t i = 0; i < m->n; i++)
		close(m->member[i].fd);
	if (m->listener >= 0)
		close(m->listener);
	if (m->epoll >= 0)
		close(m->epoll);
	free(m->member);
	free(m);
}

int rank_join(const struct mpi_rank *own, pid_t pid, const char *regions, struct err *err)
{
	struct hello h = { MAGIC, own->rank, pid, "" };
	double end = now_s() + RANK_WAIT_S;
	struct sockaddr_un a;
	socklen_t len = address(own, &a);
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);

	snprintf(h.regions, sizeof(h.regions), "%s", regions);
	if (fd < 0)
		return err_set(err, -errno, "cannot create a socket: %s", strerror(errno));
	while (connect(fd, (void *)&a, len)) {
		if (now_s() > end || (errno != ECONNREFUSED && errno != EINTR)) {
			close(fd);
			return err_set(err, -ETIMEDOUT,
				       "the first rank of this node is not collecting: start all "
				       "ranks with `ibscope record --per-rank`");
		}
		poll(NULL, 0, RETRY_MS);
	}
	if (same_user(fd) && send(fd, &h, sizeof(h), MSG_NOSIGNAL) == sizeof(h))
		return fd;
	close(fd);
	return err_set(err, -EPERM, "the collecting process on this node belongs to another user");
}

bool rank_wait(int fd)
{
	ssize_t n;
	char go;

	do
		n = recv(fd, &go, 1, 0);
	while (n < 0 && errno == EINTR);
	return n == 1;
}

void rank_leave(int fd, int status)
{
	send(fd, &status, sizeof(status), MSG_NOSIGNAL);
	if (status)
		ready(fd, LEAVE_MS);
	close(fd);
}
