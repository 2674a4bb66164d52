// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "sampler_private.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <string.h>
#include <unistd.h>

int sampler_slabs(struct sampler *s, sampler_slab *cb, void *arg, struct err *err)
{
	struct bpf_link *link = bpf_program__attach_iter(s->slabs_prog, NULL);
	int fd = link ? bpf_iter_create(bpf_link__fd(link)) : -errno, ret = 0;
	struct ibs_slab slab;
	ssize_t got = 0;

	/* the kernel never returns part of what one run of the program wrote */
	while (fd >= 0 && !ret && (got = read(fd, &slab, sizeof(slab))) == sizeof(slab))
		ret = cb ? cb(&slab, arg, err) : 0;
	if (fd < 0 || got < 0)
		ret = err_set(err, fd < 0 ? fd : -errno,
			      "cannot list the slab caches of the kernel: %s",
			      strerror(fd < 0 ? -fd : errno));
	if (fd >= 0)
		close(fd);
	bpf_link__destroy(link);
	return ret;
}

static int keep_slab(const struct ibs_slab *slab, void *arg, struct err *err)
{
	(void)err;
	slab_list_add(arg, slab);
	return 0;
}

const char *sampler_slab_name(struct sampler *s, __u64 id)
{
	const struct ibs_slab *slab = slab_list_find(&s->slab_names, id);
	struct err ignored;

	if (!slab && !sampler_slabs(s, keep_slab, &s->slab_names, &ignored))
		slab = slab_list_find(&s->slab_names, id);
	return slab ? slab->name : NULL;
}
