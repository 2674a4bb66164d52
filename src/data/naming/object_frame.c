// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "naming.h"
#include "naming_private.h"

#define FRAMES_MAX (1U << 15) /* of an object; then it is asked again */

struct known_frame {
	bool found;
	struct frame_row row;
};

const struct frame_row *object_frame(struct object *o, __u64 offset)
{
	const struct naming_reply *r = &o->naming->reply;
	__u32 known = u64_map_get(&o->frame_of, offset);
	const char *texts[NAMING_TEXTS];
	struct known_frame *f;

	if (known != U64_MAP_NONE)
		return o->frames[known].found ? &o->frames[known].row : NULL;
	if (o->code_list)
		return NULL;
	o->naming->request =
		(struct naming_request){ .op = NAMING_FRAME, .object = o->number, .a = offset };
	if (!naming_ask(o, texts))
		return NULL;
	if (o->n_frames >= FRAMES_MAX) {
		o->n_frames = 0;
		u64_map_free(&o->frame_of);
	}
	array_reserve(o->frames, o->frames_room, o->n_frames + 1);
	u64_map_put(&o->frame_of, offset, o->n_frames);
	f = &o->frames[o->n_frames++];
	f->found = r->data_len == sizeof(f->row);
	if (f->found)
		memcpy(&f->row, r->text, sizeof(f->row));
	return f->found ? &f->row : NULL;
}
