// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Repair of pins that others remove or replace while a collector runs. */
#include "pins_private.h"

#include <unistd.h>

static bool header_differs(const struct pins *p)
{
	const struct ibs_meta *m = p->meta;

	return m->magic != IBS_PIN_MAGIC || m->schema != IBS_PIN_SCHEMA ||
	       m->start_realtime_ns != p->start_realtime_ns || m->pid != (__u32)getpid() ||
	       m->seq & 1 || memcmp(&m->layout, &p->layout, sizeof(p->layout));
}

static void repair_header(struct pins *p)
{
	pins_put_header(p);
	p->meta->seq += p->meta->seq & 1;
	log_warn("%s/meta was overwritten; its layout and texts were written again", p->dir);
}

/* Return: 1 repaired, 0 nothing to do, or a negative errno with @err. */
static int repair(struct pins *p, enum ibs_pin pin, struct err *err)
{
	const struct pin_file was = p->file[pin];
	char path[PIN_PATH_MAX];
	int ret;

	pins_path(p, pin, path);
	if (p->fd[pin] < 0 || pin_file_is(&p->file[pin], path))
		return 0;
	ret = pins_put(p, pin, was.mode, err);
	if (ret) {
		p->file[pin] = was;
		return ret;
	}
	log_warn("%s was removed or replaced; the same map is pinned there again", path);
	if (was.gid == p->file[pin].gid)
		return 1;
	p->file[pin].gid = was.gid;
	if (lchown(path, -1, was.gid))
		log_warn("cannot give %s to group %u again: %s", path, was.gid, strerror(errno));
	return 1;
}

/* The directory of links, which has the lock. Return: as repair(). */
static int repair_dir(struct pins *p, struct err *err)
{
	int ret;

	if (pins_are_locked(p))
		return 0;
	ret = pins_lock(p, err);
	if (!ret)
		log_warn("%s was removed or replaced; it was created again", p->links);
	return ret ?: 1;
}

int pins_check(struct pins *p, struct pins_checked *out, struct err *err)
{
	int ret = repair_dir(p, err), failed = ret < 0 ? ret : 0;

	*out = (struct pins_checked){ .repaired = ret > 0,
				      .missing = ret < 0 ? IBS_PIN_N : 0,
				      .header = header_differs(p) };
	if (out->header)
		repair_header(p);
	for (int i = 0; i < IBS_PIN_N && ret >= 0; i++) {
		int now = repair(p, pins_in_order(i), err);

		out->repaired += now > 0;
		out->missing += now < 0;
		failed = now < 0 ? now : failed;
	}
	return failed;
}
