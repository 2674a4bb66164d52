// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Chooses the mutant of a BPF object before it is loaded: with MUTANT its number becomes that of the constant
 * mutant_number, and a load that fails leaves a file of that name in the directory MUTANT_REJECTED. With MUTANT_REACHED
 * instead, programs note which mutants they reach in a map that all objects of a process and its children share.
 */
#include <bpf/bpf.h>
#include <bpf/btf.h>
#include <bpf/libbpf.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

extern int mutant_number;
extern unsigned char *mutant_reached;

int __real_bpf_object__load(struct bpf_object *obj);
int __real_bpf_object__load_skeleton(struct bpf_object_skeleton *s);
int __wrap_bpf_object__load(struct bpf_object *obj);
int __wrap_bpf_object__load_skeleton(struct bpf_object_skeleton *s);

static int shared_fd = -1;
static size_t n_shared;

/* The constant in the contents of its map, or NULL. */
static int *find_constant(struct bpf_object *obj)
{
	struct bpf_map *map = bpf_object__find_map_by_name(obj, ".rodata");
	const struct btf *btf = bpf_object__btf(obj);
	int id = btf ? btf__find_by_name_kind(btf, ".rodata", BTF_KIND_DATASEC) : -1;
	const struct btf_type *sec = id > 0 ? btf__type_by_id(btf, id) : NULL;
	size_t size;

	for (int i = 0; map && sec && i < btf_vlen(sec); i++) {
		const struct btf_var_secinfo *v = btf_var_secinfos(sec) + i;
		const struct btf_type *t = btf__type_by_id(btf, v->type);

		if (!strcmp(btf__name_by_offset(btf, t->name_off), "mutant_number"))
			return (int *)((char *)bpf_map__initial_value(map, &size) + v->offset);
	}
	return NULL;
}

static void share_notes(struct bpf_map *map)
{
	if (shared_fd < 0) {
		LIBBPF_OPTS(bpf_map_create_opts, opts, .map_flags = bpf_map__map_flags(map));

		n_shared = bpf_map__value_size(map);
		shared_fd = bpf_map_create(BPF_MAP_TYPE_ARRAY, "mutants", 4, n_shared, 1, &opts);
	}
	if (shared_fd < 0 || bpf_map__reuse_fd(map, shared_fd))
		abort();
}

__attribute__((destructor)) static void put_notes(void)
{
	unsigned char *notes = calloc(1, n_shared + 1);
	__u32 zero = 0;

	if (shared_fd >= 0 && notes && !bpf_map_lookup_elem(shared_fd, &zero, notes))
		for (size_t i = 0; i < n_shared; i++)
			mutant_reached[i] |= notes[i];
	free(notes);
}

static void choose(struct bpf_object *obj)
{
	int *constant = find_constant(obj);
	struct bpf_map *notes = bpf_object__find_map_by_name(obj, ".data.mutants");

	if (!constant || !notes)
		return;
	*constant = mutant_number;
	if (mutant_number || !getenv("MUTANT_REACHED"))
		return;
	*constant = -1;
	share_notes(notes);
}

static int loaded(int ret)
{
	const char *dir = getenv("MUTANT_REJECTED");
	char path[4096];

	if (ret && dir) {
		snprintf(path, sizeof(path), "%s/%d", dir, mutant_number);
		close(open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0666));
	}
	return ret;
}

int __wrap_bpf_object__load(struct bpf_object *obj)
{
	choose(obj);
	return loaded(__real_bpf_object__load(obj));
}

int __wrap_bpf_object__load_skeleton(struct bpf_object_skeleton *s)
{
	choose(*s->obj);
	return loaded(__real_bpf_object__load_skeleton(s));
}
