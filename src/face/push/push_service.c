// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "push_service.h"

#include "base/std.h"

#include <fcntl.h>
#include <linux/types.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define VERSION	    2
#define PAYLOAD_MAX 16384

/* The head of the mapping. */
struct context {
	char signature[8]; /* "OTEL_CTX" */
	__u32 version, bytes;
	__u64 published_ns; /* 0: being changed */
	__u64 payload;	    /* address */
};

/* Return: address of the mapping, or 0. */
static __u64 find_mapping(pid_t pid)
{
	char path[64], *line = NULL;
	unsigned long long start = 0;
	size_t room = 0;
	bool found = false;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/maps", pid);
	f = fopen(path, "re");
	while (f && !found && xgetline(&line, &room, f) > 0)
		found = (strstr(line, "[anon:OTEL_CTX]") || strstr(line, "/memfd:OTEL_CTX") ||
			 strstr(line, "[anon_shmem:OTEL_CTX]")) &&
			sscanf(line, "%llx-", &start) == 1;
	free(line);
	if (f)
		fclose(f);
	return found ? start : 0;
}

/*
 * The payload is a protobuf message where an attribute is {key (1), value (2) {string (1)}}. Search for its
 * bytes at any depth, since the enclosing messages differ between drafts.
 */
static bool find_name(const unsigned char *payload, size_t n, char out[PUSH_SERVICE_MAX])
{
	static const unsigned char key[] = "\x0a\x0cservice.name\x12";
	const size_t key_len = sizeof(key) - 1;
	const unsigned char *at = memmem(payload, n, key, key_len);
	size_t len;

	if (!at || n - (at - payload) < key_len + 3)
		return false;
	at += key_len;
	len = at[2];
	if (at[1] != 0x0a || at[0] != len + 2 || !len || len >= PUSH_SERVICE_MAX ||
	    len + 3 > n - (at - payload) || memchr(at + 3, 0, len))
		return false;
	memcpy(out, at + 3, len);
	out[len] = 0;
	return true;
}

const char *push_service_name(pid_t pid, char out[PUSH_SERVICE_MAX])
{
	static unsigned char payload[PAYLOAD_MAX];
	__u64 start = find_mapping(pid);
	struct context c, again;
	bool found = false;
	char path[64];
	int fd;

	if (!start)
		return NULL;
	snprintf(path, sizeof(path), "/proc/%d/mem", pid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return NULL;
	if (pread(fd, &c, sizeof(c), start) == sizeof(c) &&
	    !memcmp(c.signature, "OTEL_CTX", sizeof(c.signature)) && c.version == VERSION &&
	    c.published_ns && c.bytes <= PAYLOAD_MAX &&
	    pread(fd, payload, c.bytes, c.payload) == (ssize_t)c.bytes &&
	    pread(fd, &again, sizeof(again), start) == sizeof(again) &&
	    !memcmp(&again, &c, sizeof(c)))
		found = find_name(payload, c.bytes, out);
	close(fd);
	return found ? out : NULL;
}
