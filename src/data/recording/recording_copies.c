// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "recording_copies.h"

#include "base/array.h"

bool recording_copies_take(struct recording_copies *c, const unsigned char *data, size_t bytes)
{
	struct recording_copy head;
	size_t at = 0;

	c->n = 0;
	while (bytes - at >= sizeof(head)) {
		memcpy(&head, data + at, sizeof(head));
		if (head.bytes > IBS_COPY_MAX || head.bytes > bytes - at - sizeof(head))
			break;
		array_reserve(c->at, c->room, c->n + 1);
		c->at[c->n++] = at;
		at += sizeof(head) + head.bytes;
	}
	if (at < bytes || !c->n) {
		c->n = 0;
		return false;
	}
	free(c->data);
	c->data = xmemdup(data, bytes);
	return true;
}

const struct trace_copy *recording_copies_find(struct recording_copies *c, __u64 number,
					       const struct trace_event *ev)
{
	struct recording_copy head;

	if (!number || number > c->n)
		return NULL;
	memcpy(&head, c->data + c->at[number - 1], sizeof(head));
	if (head.time != ev->time || head.tid != ev->sample.tid)
		return NULL;
	memcpy(c->regs, head.regs, sizeof(c->regs));
	c->found = (struct trace_copy){ .regs = c->regs,
					.data = c->data + c->at[number - 1] + sizeof(head),
					.bytes = head.bytes,
					.cut = head.flags & RECORDING_CUT };
	return &c->found;
}

void recording_copies_free(struct recording_copies *c)
{
	free(c->data);
	free(c->at);
	*c = (struct recording_copies){};
}
