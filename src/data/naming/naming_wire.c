// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "naming_wire.h"

#include <sys/socket.h>
#include <unistd.h>

bool naming_reply_check(const struct naming_reply *r, size_t bytes, const char *texts[NAMING_TEXTS])
{
	size_t at = 0, room;

	if (bytes < NAMING_REPLY_HEAD || bytes > sizeof(*r))
		return false;
	room = bytes - NAMING_REPLY_HEAD;
	for (int i = 0; i < NAMING_TEXTS; i++) {
		size_t len = r->len[i];

		texts[i] = len ? r->text + at : NULL;
		if (len > NAMING_TEXT_MAX || len > room - at ||
		    (len && strnlen(r->text + at, len) != len - 1))
			return false;
		at += len;
	}
	return r->data_len <= room;
}

union control {
	struct cmsghdr head;
	char room[CMSG_SPACE(sizeof(int))];
};

int naming_send(int sock, const void *data, size_t bytes, int fd)
{
	struct iovec part = { (void *)data, bytes };
	struct msghdr m = { .msg_iov = &part, .msg_iovlen = 1 };
	union control c = { .head = { .cmsg_len = CMSG_LEN(sizeof(int)),
				      .cmsg_level = SOL_SOCKET,
				      .cmsg_type = SCM_RIGHTS } };
	ssize_t n;

	if (fd >= 0) {
		memcpy(CMSG_DATA(&c.head), &fd, sizeof(fd));
		m.msg_control = &c;
		m.msg_controllen = sizeof(c);
	}
	do {
		n = sendmsg(sock, &m, MSG_NOSIGNAL);
	} while (n < 0 && errno == EINTR);
	return n < 0 ? -errno : 0;
}

ssize_t naming_receive(int sock, void *data, size_t bytes, int *fd)
{
	struct iovec part = { data, bytes };
	union control c = {};
	struct msghdr m = {
		.msg_iov = &part, .msg_iovlen = 1, .msg_control = &c, .msg_controllen = sizeof(c)
	};
	struct cmsghdr *h;
	ssize_t n;

	*fd = -1;
	do {
		n = recvmsg(sock, &m, MSG_CMSG_CLOEXEC);
	} while (n < 0 && errno == EINTR);
	if (n < 0)
		return -errno;
	h = CMSG_FIRSTHDR(&m);
	if (h && h->cmsg_level == SOL_SOCKET && h->cmsg_type == SCM_RIGHTS &&
	    h->cmsg_len == CMSG_LEN(sizeof(int)))
		memcpy(fd, CMSG_DATA(h), sizeof(*fd));
	return n;
}
