// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "sampler_private.h"

#include <bpf/libbpf.h>
#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

int map_array(struct bpf_map *map, struct mapping *out, struct err *err)
{
	size_t page = sysconf(_SC_PAGESIZE);

	out->bytes = (size_t)(bpf_map__value_size(map) + 7) / 8 * 8 * bpf_map__max_entries(map);
	out->bytes = (out->bytes + page - 1) / page * page;
	out->addr = mmap(NULL, out->bytes, PROT_READ | PROT_WRITE, MAP_SHARED, bpf_map__fd(map), 0);
	if (out->addr == MAP_FAILED) {
		out->addr = NULL;
		return err_set(err, -errno, "cannot map the BPF map %s: %s", bpf_map__name(map),
			       strerror(errno));
	}
	return 0;
}

void unmap(struct mapping *m)
{
	if (m->addr)
		munmap(m->addr, m->bytes);
}
