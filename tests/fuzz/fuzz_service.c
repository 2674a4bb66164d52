// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Any bytes as the context that a process publishes for OpenTelemetry: no crash, and what is taken for the name of
 * its service is text of the context. The address of the payload in the input is relative to the mapping.
 */
#include <linux/types.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "push/push_service.h"

#define ROOM	   (1 << 16)
#define PAYLOAD_AT 24

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void need(int condition)
{
	if (!condition)
		abort();
}

/* Memory of this process, which reads itself as it would another one. */
static unsigned char *map(void)
{
	int fd = memfd_create("OTEL_CTX", MFD_CLOEXEC);
	void *p;

	need(fd >= 0 && !ftruncate(fd, ROOM));
	p = mmap(NULL, ROOM, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	need(p != MAP_FAILED && !close(fd));
	return p;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static unsigned char *context;
	static size_t used;
	char name[PUSH_SERVICE_MAX];
	const char *found;
	__u64 payload;

	if (!context)
		context = map();
	memset(context, 0, used);
	used = size < ROOM ? size : ROOM;
	memcpy(context, data, used);
	memcpy(&payload, context + PAYLOAD_AT, sizeof(payload));
	payload += (uintptr_t)context;
	memcpy(context + PAYLOAD_AT, &payload, sizeof(payload));
	memset(name, 0xff, sizeof(name));
	found = push_service_name(getpid(), name);
	if (!found)
		return 0;
	need(found == name && *name && memchr(name, 0, sizeof(name)));
	need(memmem(context, ROOM, name, strlen(name)) != NULL);
	return 0;
}
