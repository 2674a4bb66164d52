// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "kernel.h"

#include <bpf/bpf.h>
#include <bpf/btf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <limits.h>
#include <linux/bpf.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define INSN(c, d, s, o, i) \
	((struct bpf_insn){ .code = (c), .dst_reg = (d), .src_reg = (s), .off = (o), .imm = (i) })
#define EXIT_0 INSN(BPF_ALU64 | BPF_MOV | BPF_K, 0, 0, 0, 0), INSN(BPF_JMP | BPF_EXIT, 0, 0, 0, 0)

static int load(const struct bpf_insn *insns, size_t n)
{
	return bpf_prog_load(BPF_PROG_TYPE_PERF_EVENT, "ibs_probe", "GPL", insns, n, NULL);
}

/* With a bad fd, a known link type fails with EBADF, any other with EINVAL. */
static bool have_perf_link(int prog_fd)
{
	int fd = bpf_link_create(prog_fd, -1, BPF_PERF_EVENT, NULL);

	if (fd >= 0)
		close(fd);
	return fd >= 0 || errno == EBADF;
}

static bool has_helper(enum bpf_prog_type type, enum bpf_func_id helper)
{
	return libbpf_probe_bpf_helper(type, helper, NULL) > 0;
}

static struct btf *load_btf(const char *root, char *path, size_t size)
{
	snprintf(path, size, "%s/sys/kernel/btf/vmlinux", root);
	/* libbpf also finds the running kernel's in /boot. */
	return *root ? btf__parse(path, NULL) : btf__load_vmlinux_btf();
}

/* Is there a struct without such a member? */
static bool lacks_member(const struct btf *btf, const char *type, const char *member)
{
	__s32 id = btf__find_by_name_kind(btf, type, BTF_KIND_STRUCT);
	const struct btf_type *t = id > 0 ? btf__type_by_id(btf, id) : NULL;
	const struct btf_member *m = t ? btf_members(t) : NULL;

	for (int i = 0; t && i < btf_vlen(t); i++)
		if (!strcmp(btf__name_by_offset(btf, m[i].name_off) ?: "", member))
			return false;
	return t;
}

/* Set the members of @f that follow from the kernel's types. */
static int read_btf(const char *root, struct kernel_features *f, struct err *err)
{
	static const struct {
		const char *name;
		__u32 kind;
	} needed[] = {
		{ "bpf_cast_to_kern_ctx", BTF_KIND_FUNC }, /* v6.2 */
		{ "bpf_rdonly_cast", BTF_KIND_FUNC },	   /* v6.2 */
		{ "perf_ibs_data", BTF_KIND_STRUCT },
	};
	char path[PATH_MAX];
	struct btf *btf;
	size_t i;

	f->direct_read = false;
	btf = load_btf(root, path, sizeof(path));
	if (!btf)
		return err_set(err, -ENOENT,
			       "the kernel has no type information (%s): %s; boot one built with "
			       "CONFIG_DEBUG_INFO_BTF=y, as distribution kernels are",
			       path, strerror(errno));
	f->direct_read = true;
	for (i = 0; i < sizeof(needed) / sizeof(needed[0]); i++)
		f->direct_read &= btf__find_by_name_kind(btf, needed[i].name, needed[i].kind) > 0;
	/* until then the program took the place of the overflow handler, which was kept here */
	f->limit_after_prog = lacks_member(btf, "perf_event", "orig_overflow_handler");
	btf__free(btf);
	return 0;
}

int kernel_features_btf(const char *root, bool *direct_read, struct err *err)
{
	struct kernel_features f;
	int ret = read_btf(root, &f, err);

	*direct_read = f.direct_read;
	return ret;
}

bool kernel_finds_slabs(void)
{
	char path[PATH_MAX];
	struct btf *btf = load_btf("", path, sizeof(path));
	bool does = btf && btf__find_by_name_kind(btf, "bpf_get_kmem_cache", BTF_KIND_FUNC) > 0 &&
		    btf__find_by_name_kind(btf, "bpf_iter__kmem_cache", BTF_KIND_STRUCT) > 0;

	btf__free(btf);
	return does;
}

#define INITIAL_PID_NS 0xEFFFFFFC /* Linux include/linux/proc_ns.h, PROC_PID_INIT_INO */

bool kernel_pid_namespace(const char *root, unsigned long long *dev, unsigned long long *ino)
{
	char path[PATH_MAX];
	struct stat st;

	*dev = *ino = 0;
	snprintf(path, sizeof(path), "%s/proc/self/ns/pid", root);
	if (stat(path, &st) || st.st_ino == INITIAL_PID_NS)
		return false;
	*dev = st.st_dev;
	*ino = st.st_ino;
	return true;
}

unsigned long long kernel_symbol(const char *name)
{
	FILE *f = fopen("/proc/kallsyms", "re");
	unsigned long long addr, found = 0;
	char line[512], type, text[256];

	while (f && !found && fgets(line, sizeof(line), f))
		if (strstr(line, name) && sscanf(line, "%llx %c %255s", &addr, &type, text) == 3 &&
		    !strcmp(text, name))
			found = addr;
	if (f)
		fclose(f);
	return found;
}

int kernel_features_probe(struct kernel_features *f, struct err *err)
{
	const struct bpf_insn empty[] = { EXIT_0 };
	/* bpf_probe_read_kernel(fp - 8, 8, NULL) */
	const struct bpf_insn probe_read[] = {
		INSN(BPF_ALU64 | BPF_MOV | BPF_X, 1, 10, 0, 0),
		INSN(BPF_ALU64 | BPF_ADD | BPF_K, 1, 0, 0, -8),
		INSN(BPF_ALU64 | BPF_MOV | BPF_K, 2, 0, 0, 8),
		INSN(BPF_ALU64 | BPF_MOV | BPF_K, 3, 0, 0, 0),
		INSN(BPF_JMP | BPF_CALL, 0, 0, 0, BPF_FUNC_probe_read_kernel),
		EXIT_0,
	};
	int fd, no_btf;

	memset(f, 0, sizeof(*f));
	no_btf = read_btf("", f, err);
	fd = load(empty, 2);
	if (fd < 0 && (errno == EPERM || errno == EACCES))
		return err_set(
			err, -EPERM,
			"cannot load BPF programs: %s; CAP_BPF and CAP_PERFMON (or root) are "
			"needed",
			strerror(errno));
	if (fd < 0)
		return err_set(err, -errno, "cannot load BPF programs: %s; see `ibscope doctor`",
			       strerror(errno));
	f->perf_link = have_perf_link(fd);
	close(fd);
	/*
	 * Not libbpf_probe_bpf_helper(): it recognises a helper that lockdown denies by the
	 * verifier's message, and old versions of libbpf do not know the messages of newer kernels.
	 */
	fd = load(probe_read, 7);
	f->probe_read = fd >= 0;
	if (fd >= 0)
		close(fd);
	f->ancestor_helper =
		has_helper(BPF_PROG_TYPE_PERF_EVENT, BPF_FUNC_get_current_ancestor_cgroup_id);
	f->task_btf = has_helper(BPF_PROG_TYPE_PERF_EVENT, BPF_FUNC_get_current_task_btf);
	f->task_pt_regs = has_helper(BPF_PROG_TYPE_PERF_EVENT, BPF_FUNC_task_pt_regs);
	f->syscall_prog = libbpf_probe_bpf_prog_type(BPF_PROG_TYPE_SYSCALL, NULL) > 0;
	/* the helper is as old as charging the cgroup; libbpf tests for it in the same way */
	f->memcg_charge = has_helper(BPF_PROG_TYPE_SOCKET_FILTER, BPF_FUNC_ktime_get_coarse_ns);
	return no_btf;
}

int kernel_cgroup_subsys(const char *controller, struct err *err)
{
	/* v1 uses another name */
	const char *name = strcmp(controller, "blkio") ? controller : "io";
	char path[PATH_MAX], want[64];
	struct btf *btf = load_btf("", path, sizeof(path));
	const struct btf_type *t;
	int id, ret = -ENOENT;

	if (!btf)
		return err_set(err, -ENOENT, "the kernel has no type information (%s)", path);
	snprintf(want, sizeof(want), "%s_cgrp_id", name);
	id = btf__find_by_name_kind(btf, "cgroup_subsys_id", BTF_KIND_ENUM);
	t = id > 0 ? btf__type_by_id(btf, id) : NULL;
	for (int i = 0; t && i < btf_vlen(t); i++)
		if (!strcmp(btf__name_by_offset(btf, btf_enum(t)[i].name_off), want))
			ret = btf_enum(t)[i].val;
	btf__free(btf);
	if (ret < 0)
		return err_set(err, -EOPNOTSUPP, "this kernel has no cgroup controller '%.40s'",
			       controller);
	return ret;
}
