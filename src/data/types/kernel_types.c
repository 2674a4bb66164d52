// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "kernel_types.h"

#include "base/intern.h"
#include "base/text.h"

#include <bpf/btf.h>
#include <dirent.h>

#define MODULES	   "/sys/kernel/btf"
#define DEPTH	   24 /* of structs in structs */
#define PATH_BYTES 512

struct kernel_types {
	struct btf *kernel, **module;
	size_t n, room;
	bool modules_tried, whole; /* whole: also read modules */
	struct intern texts, caches;
	struct object {
		const struct btf *btf;
		__u32 id; /* of its struct; 0: unknown */
		const char *name;
	} * object; /* by number in `caches` */
	size_t objects_room;
};

/*
 * Caches with another name than their struct. Objects of the marked caches are longer than the struct: the data
 * after it depend on the machine.
 */
static const struct {
	const char *cache, *type;
	bool longer;
} aliases[] = {
	{ "task_struct", "task_struct", true },
	{ "mm_struct", "mm_struct", true },
	{ "TCP", "tcp_sock", false },
	{ "TCPv6", "tcp6_sock", false },
	{ "UDP", "udp_sock", false },
	{ "UDPv6", "udp6_sock", false },
	{ "UNIX", "unix_sock", false },
	{ "UNIX-STREAM", "unix_sock", false },
	{ "RAW", "raw_sock", false },
	{ "RAWv6", "raw6_sock", false },
	{ "bdev_cache", "bdev_inode", false },
	{ "blkdev_ioc", "io_context", false },
	{ "cred_jar", "cred", false },
	{ "eventpoll_epi", "epitem", false },
	{ "eventpoll_pwq", "eppoll_entry", false },
	{ "ext4_inode_cache", "ext4_inode_info", false },
	{ "file_lock_cache", "file_lock", false },
	{ "files_cache", "files_struct", false },
	{ "filp", "file", false },
	{ "fs_cache", "fs_struct", false },
	{ "hugetlbfs_inode_cache", "hugetlbfs_inode_info", false },
	{ "inode_cache", "inode", false },
	{ "ip_dst_cache", "rtable", false },
	{ "ip6_dst_cache", "rt6_info", false },
	{ "iommu_iova", "iova", false },
	{ "jbd2_journal_head", "journal_head", false },
	{ "kernfs_node_cache", "kernfs_node", false },
	{ "kernfs_iattrs_cache", "kernfs_iattrs", false },
	{ "key_jar", "key", false },
	{ "mnt_cache", "mount", false },
	{ "mqueue_inode_cache", "mqueue_inode_info", false },
	{ "net_namespace", "net", false },
	{ "nf_conntrack", "nf_conn", false },
	{ "overlay_inode", "ovl_inode", false },
	{ "proc_inode_cache", "proc_inode", false },
	{ "radix_tree_node", "xa_node", false },
	{ "request_sock_TCP", "tcp_request_sock", false },
	{ "shmem_inode_cache", "shmem_inode_info", false },
	{ "sighand_cache", "sighand_struct", false },
	{ "signal_cache", "signal_struct", false },
	{ "skbuff_fclone_cache", "sk_buff_fclones", false },
	{ "skbuff_head_cache", "sk_buff", false },
	{ "sock_inode_cache", "socket_alloc", false },
	{ "squashfs_inode_cache", "squashfs_inode_info", false },
	{ "tw_sock_TCP", "tcp_timewait_sock", false },
};

int kernel_types_open(const char *path, struct kernel_types **out, struct err *err)
{
	struct btf *btf = path ? btf__parse(path, NULL) : btf__load_vmlinux_btf();
	struct kernel_types *k;
	int ret = -errno;

	if (!btf)
		return err_set(err, ret, "%s: cannot read type information (BTF): %s",
			       path ?: "the kernel", strerror(-ret));
	k = xcalloc(1, sizeof(*k));
	k->kernel = btf;
	k->whole = !path;
	*out = k;
	return 0;
}

void kernel_types_close(struct kernel_types *k)
{
	if (!k)
		return;
	for (size_t i = 0; i < k->n; i++)
		btf__free(k->module[i]);
	btf__free(k->kernel);
	free(k->module);
	free(k->object);
	intern_free(&k->texts);
	intern_free(&k->caches);
	free(k);
}

static void read_modules(struct kernel_types *k)
{
	DIR *dir = k->whole && !k->modules_tried ? opendir(MODULES) : NULL;
	struct dirent *d;
	struct btf *btf;

	k->modules_tried = true;
	while (dir && (d = readdir(dir))) {
		if (*d->d_name == '.' || !strcmp(d->d_name, "vmlinux"))
			continue;
		btf = btf__load_module_btf(d->d_name, k->kernel);
		if (!btf)
			continue;
		array_reserve(k->module, k->room, k->n + 1);
		k->module[k->n++] = btf;
	}
	if (dir)
		closedir(dir);
}

/* Count the structs of that name and size from type @id on in *n; *out is the last of them. */
static void find_structs(const struct btf *btf, __u32 id, const char *name, __u64 bytes,
			 bool longer, struct object *out, unsigned int *n)
{
	for (; id < btf__type_cnt(btf); id++) {
		const struct btf_type *t = btf__type_by_id(btf, id);

		if (!btf_is_struct(t) || (longer ? t->size > bytes : t->size != bytes) ||
		    strcmp(btf__name_by_offset(btf, t->name_off), name))
			continue;
		out->btf = btf;
		out->id = id;
		++*n;
	}
}

static void find_object(struct kernel_types *k, const char *cache, __u64 bytes, struct object *out)
{
	const char *name = cache;
	bool longer = false;
	char text[128];
	unsigned int n = 0;

	for (size_t i = 0; i < ARRAY_SIZE(aliases); i++) {
		if (strcmp(aliases[i].cache, cache))
			continue;
		name = aliases[i].type;
		longer = aliases[i].longer;
	}
	*out = (struct object){ 0 };
	find_structs(k->kernel, 1, name, bytes, longer, out, &n);
	if (!n)
		read_modules(k);
	for (size_t i = 0; !out->id && i < k->n; i++)
		find_structs(k->module[i], btf__type_cnt(k->kernel), name, bytes, longer, out, &n);
	if (n != 1)
		*out = (struct object){ 0 };
	snprintf(text, sizeof(text), "struct %s", name);
	out->name = intern_text(&k->texts, intern_get(&k->texts, text));
}

static const struct btf_type *peel(const struct btf *btf, __u32 id)
{
	const struct btf_type *t = btf__type_by_id(btf, id);

	for (int depth = 0; depth < DEPTH && t && (btf_is_mod(t) || btf_is_typedef(t)); depth++)
		t = btf__type_by_id(btf, t->type);
	return t;
}

static __u64 size_of(const struct btf *btf, __u32 id)
{
	__s64 size = btf__resolve_size(btf, id);

	return size < 0 ? 0 : size;
}

/* The innermost thing at an offset. */
struct leaf {
	char path[PATH_BYTES];
	__u64 begin, size; /* offset in the outermost struct; size, 0: several things, or none */
};

static void append(struct leaf *leaf, const char *separator, const char *text)
{
	text_append(leaf->path, sizeof(leaf->path), "%s%s", *leaf->path ? separator : "", text);
}

/*
 * Does member @i contain the offset? In a union, only a member with the accessed size, or with members of its own:
 * the access does not mean a number of another size.
 */
static bool has_offset(const struct btf *btf, const struct btf_type *t, int i, __u64 off,
		       unsigned int size)
{
	const struct btf_member *m = &btf_members(t)[i];
	__u32 at = btf_member_bit_offset(t, i), bits = btf_member_bitfield_size(t, i);
	__u64 bytes = bits ? (at % 8 + bits + 7) / 8 : size_of(btf, m->type);

	if (btf_is_union(t) && size && bytes != size && !btf_is_composite(peel(btf, m->type)))
		return false;
	return off >= at / 8 && off - at / 8 < bytes;
}

/* The only member at the offset; else -1, with the names of all such members appended to the path. */
static int member_at(const struct btf *btf, const struct btf_type *t, __u64 off, unsigned int size,
		     struct leaf *leaf)
{
	int found = -1, n = 0;

	for (int i = 0; i < btf_vlen(t); i++)
		if (has_offset(btf, t, i, off, size)) {
			found = i;
			n++;
		}
	if (n == 1)
		return found;
	if (!n)
		append(leaf, ".", "[padding]");
	for (int i = 0, k = 0; n && i < btf_vlen(t); i++) {
		const char *name = btf__name_by_offset(btf, btf_members(t)[i].name_off);

		if (has_offset(btf, t, i, off, size))
			append(leaf, k++ ? "|" : ".", *name ? name : "[unnamed]");
	}
	return -1;
}

static void find_leaf(const struct btf *btf, __u32 id, __u64 off, unsigned int size,
		      struct leaf *leaf)
{
	for (int depth = 0; depth < DEPTH; depth++) {
		const struct btf_type *t = peel(btf, id);
		const char *name;
		__u64 one;
		int m;

		if (t && btf_is_array(t)) {
			id = btf_array(t)->type;
			one = size_of(btf, id);
			append(leaf, "", "[]");
			off %= one ?: 1;
			leaf->size = one;
			continue;
		}
		if (!t || !btf_is_composite(t))
			return;
		m = member_at(btf, t, off, size, leaf);
		if (m < 0) {
			leaf->size = 0;
			return;
		}
		name = btf__name_by_offset(btf, btf_members(t)[m].name_off);
		if (*name)
			append(leaf, ".", name);
		one = btf_member_bit_offset(t, m) / 8;
		leaf->begin += one;
		off -= one;
		id = btf_members(t)[m].type;
		leaf->size = size_of(btf, id);
	}
}

bool kernel_types_field(struct kernel_types *k, const char *cache, __u64 bytes, __u64 offset,
			unsigned int size, struct type_access *out)
{
	const __u32 n = intern_get(&k->caches, cache);
	struct leaf leaf = { 0 };
	struct object *o;

	array_reserve_zero(k->object, k->objects_room, (size_t)n + 1);
	o = &k->object[n];
	if (!o->name)
		find_object(k, cache, bytes, o);
	if (!o->id)
		return false;
	*out = (struct type_access){ .kind = TYPE_SLAB, .type = o->name, .offset = offset };
	if (offset >= btf__type_by_id(o->btf, o->id)->size) {
		out->field = "[behind the struct]";
		return true;
	}
	find_leaf(o->btf, o->id, offset, size, &leaf);
	out->field = intern_text(&k->texts, intern_get(&k->texts, leaf.path));
	out->field_size = leaf.size;
	out->field_offset = leaf.size ? leaf.begin : 0;
	return true;
}

static void walk(const struct btf *btf, __u32 id, const char *path, __u64 begin, int depth,
		 types_field_cb *cb, void *arg)
{
	const struct btf_type *t = peel(btf, id);
	char inner[PATH_BYTES];

	if (depth && t && btf_is_array(t) && *path) {
		snprintf(inner, sizeof(inner), "%s[]", path);
		walk(btf, btf_array(t)->type, inner, begin, depth - 1, cb, arg);
		return;
	}
	if (!depth || !t || !btf_is_composite(t)) {
		cb(path, begin, size_of(btf, id), arg);
		return;
	}
	for (int i = 0; i < btf_vlen(t); i++) {
		const struct btf_member *m = &btf_members(t)[i];
		const char *name = btf__name_by_offset(btf, m->name_off);

		snprintf(inner, sizeof(inner), "%s%s%s", path, *path && *name ? "." : "", name);
		walk(btf, m->type, inner, begin + btf_member_bit_offset(t, i) / 8, depth - 1, cb,
		     arg);
	}
}

bool kernel_types_layout(struct kernel_types *k, const char *name, types_field_cb *cb, void *arg)
{
	for (size_t i = 0; i < k->caches.n; i++) {
		const struct object *o = &k->object[i];

		if (!o->id || strcmp(o->name, name))
			continue;
		walk(o->btf, o->id, "", 0, DEPTH, cb, arg);
		return true;
	}
	return false;
}
