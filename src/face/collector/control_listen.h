/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The place in the file system where a collector listens. Private to control*.c. */
#ifndef IBSCOPE_CONTROL_LISTEN_H
#define IBSCOPE_CONTROL_LISTEN_H

#include <stdbool.h>
#include <sys/stat.h>
#include <sys/un.h>

struct err;

#define CONTROL_NEW ".new" /* suffix of the socket until it listens */

struct control_place {
	char path[sizeof(((struct sockaddr_un *)0)->sun_path)];
	int fd;
	bool bound; /* the socket is the file with these: */
	dev_t dev;
	ino_t ino;
};

/* Listen at p->path. Return: 0, or a negative errno with @err; call control_leave() in any case. */
int control_listen(struct control_place *p, mode_t mode, struct err *err);
/* Close the socket, and remove it unless it is that of another collector. */
void control_leave(struct control_place *p);

/* As control_clear(). */
void control_remove(const char *path);

#endif
