/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What a process and its worker send each other over a SOCK_SEQPACKET pair. The worker reads files that strangers
 * wrote, so whatever it sends may be anything: see naming_reply_check().
 */
#ifndef IBSCOPE_NAMING_WIRE_H
#define IBSCOPE_NAMING_WIRE_H

#include "base/std.h"

#include <limits.h>

/* argv[0] of a worker. A variable, so that the linker takes the worker into each program that starts one. */
extern const char naming_worker[];
#define NAMING_FD 3 /* its socket */

#define NAMING_TEXT_MAX 4096  /* longer names are cut */
#define NAMING_TEXTS	4     /* in a reply */
#define NAMING_OBJECTS	65536 /* that a worker has open */
#define NAMING_FROM_NET \
	"debuginfod:" /* path of a debug file that servers may have, with its build-id */
#define NAMING_DEBUG_DIR "/usr/lib/debug"

enum naming_op {
	NAMING_OPEN,  /* text: path, debug directory, flag: NAMING_* bits */
	NAMING_CLOSE, /* no reply */
	/* a: offset; with the flag v[0]: id of NAMING_INLINED, 0: none; v[1] and v[2]: offsets with the same answer */
	NAMING_SYMBOL,
	NAMING_VARIABLE,      /* a: pgoff, b: offset, flag: exec */
	NAMING_VARIABLE_TYPE, /* as well, size */
	NAMING_CODE_TYPE,     /* a: address */
	NAMING_TYPE,	      /* a: offset */
	NAMING_FUNCTION,      /* a: offset */
	NAMING_NAME,	      /* a: address */
	NAMING_READ,	      /* a: address, size */
	NAMING_CODE,	      /* a: offset, size */
	NAMING_IS_GO,
	NAMING_FRAME,	/* a: offset; the data is a struct frame_row */
	NAMING_LINE,	/* a: address */
	NAMING_SRCLINE, /* a: offset */
	NAMING_LAYOUT,	/* text: type, a: number of the field */
	NAMING_CODE_AT, /* a: address, b: time; the answer holds from v[0] to v[1] */
	/*
	 * a: offset, or with the flag an address; b: 0 for the innermost one, 1 for that around it, and so on. v: its id,
	 * line of the call, id of the one around it or 0; text 3: file of the call
	 */
	NAMING_INLINED,
	NAMING_FILE, /* not a question, but what became of a path; a: errno, or 0 with an fd */
};

struct naming_request {
	__u32 op, object;
	__u64 a, b;
	__u32 size, flag;
	__u32 trusted, debuginfod, build_id_len;
	unsigned char build_id[20];
	__u32 text_len; /* used bytes of `text` */
	char text[2 * PATH_MAX];
};

enum {
	NAMING_MANGLED = 1, /* names stay as the linker has them */
	NAMING_CODE_MAP =
		2, /* it is a list of generated code, and only symbols are asked for, by address */
	NAMING_CODE_DUMP = 4, /* the same with times */
};

enum naming_reply_kind {
	NAMING_READY, /* the worker is confined; the first message */
	NAMING_ANSWER,
	NAMING_WANTS_FILE, /* to be opened: text 0 */
};

struct naming_reply {
	__u32 kind;
	__s32 ret;
	__u64 v[3];
	__u32 len[NAMING_TEXTS]; /* of texts one after the other, with their NUL; 0: NULL */
	__u32 data_len;		 /* of bytes instead of texts */
	char text[NAMING_TEXTS * NAMING_TEXT_MAX];
};

#define NAMING_REPLY_HEAD offsetof(struct naming_reply, text)

/* Bytes of a request that are sent. */
static inline size_t naming_request_bytes(const struct naming_request *q)
{
	return offsetof(struct naming_request, text) + q->text_len;
}

/**
 * naming_reply_check() - is a message of @bytes a reply?
 * @texts: set to the texts in it
 */
bool naming_reply_check(const struct naming_reply *r, size_t bytes,
			const char *texts[NAMING_TEXTS]);

/* One message, with a descriptor unless @fd is negative. Return: 0 or a negative errno. */
int naming_send(int sock, const void *data, size_t bytes, int fd);

/* Return: bytes; 0 at the end; or a negative errno. *fd: a descriptor that came with it, or -1. */
ssize_t naming_receive(int sock, void *data, size_t bytes, int *fd);

#endif
