/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* CPUs of all machines of an HTML report, each with a number of its own. */
#ifndef IBSCOPE_HTML_PLACES_H
#define IBSCOPE_HTML_PLACES_H

#include "base/intern.h"
#include "base/json_writer.h"
#include "trace/trace.h"

#define HTML_NO_CPU	65535
#define HTML_PLACES_MAX 65535

/* -1: unknown */
struct html_place {
	__u32 host, cpu;
	int socket, node, l3;
};

/* The zero value is empty. */
struct html_places {
	struct intern hosts;
	struct html_place *place;
	size_t n, room;
	struct u64_map numbers; /* by host and CPU */
	__u32 host;		/* of the current recording */
	const struct trace_topology *topology;
};

/* Switch to the machine of @info. */
void html_places_host(struct html_places *p, const struct trace_info *info);

/* Return: HTML_NO_CPU if there are too many. */
__u16 html_places_cpu(struct html_places *p, __u32 cpu);

/* The first known CPU with the same L3; the CPU itself without one. */
__u16 html_places_l3(const struct html_places *p, __u16 place);

void html_places_write(const struct html_places *p, struct json_writer *w);
void html_places_free(struct html_places *p);

#endif
