// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "kernel_features.h"

#include <bpf/bpf.h>
#include <bpf/btf.h>
#include <errno.h>
#include <linux/bpf.h>
#include <string.h>
#include <unistd.h>

#define INSN(c, d, s, o, i) \
	((struct bpf_insn){ .code = (c), .dst_reg = (d), .src_reg = (s), .off = (o), .imm = (i) })
#define EXIT_0 INSN(BPF_ALU64 | BPF_MOV | BPF_K, 0, 0, 0, 0), INSN(BPF_JMP | BPF_EXIT, 0, 0, 0, 0)

static int load(enum bpf_prog_type type, const struct bpf_insn *insns, size_t n)
{
	LIBBPF_OPTS(bpf_prog_load_opts, opts);

	if (type == BPF_PROG_TYPE_SYSCALL)
		opts.prog_flags = BPF_F_SLEEPABLE;
	return bpf_prog_load(type, "ibs_probe", "GPL", insns, n, &opts);
}

static bool loads(enum bpf_prog_type type, const struct bpf_insn *insns, size_t n)
{
	int fd = load(type, insns, n);

	if (fd >= 0)
		close(fd);
	return fd >= 0;
}

/* With a link type the kernel knows, bad fds are EBADF; one that it does not know is EINVAL. */
static bool have_perf_link(int prog_fd)
{
	int fd = bpf_link_create(prog_fd, -1, BPF_PERF_EVENT, NULL);

	if (fd >= 0)
		close(fd);
	return fd >= 0 || errno == EBADF;
}

int kernel_features_probe(struct kernel_features *f, struct err *err)
{
	const struct bpf_insn empty[] = { EXIT_0 };
	const struct bpf_insn ancestor[] = {
		INSN(BPF_ALU64 | BPF_MOV | BPF_K, 1, 0, 0, 0),
		INSN(BPF_JMP | BPF_CALL, 0, 0, 0, BPF_FUNC_get_current_ancestor_cgroup_id),
		EXIT_0,
	};
	struct btf *btf;
	int fd;

	memset(f, 0, sizeof(*f));
	fd = load(BPF_PROG_TYPE_PERF_EVENT, empty, 2);
	if (fd < 0 && (errno == EPERM || errno == EACCES))
		return err_set(err, -EPERM,
			       "cannot load BPF programs: %s; CAP_BPF and CAP_PERFMON (or root) are "
			       "needed",
			       strerror(errno));
	if (fd < 0)
		return err_set(err, -errno, "cannot load BPF programs: %s; see `ibscope doctor`",
			       strerror(errno));
	btf = btf__load_vmlinux_btf();
	if (!btf) {
		close(fd);
		return err_set(err, -ENOENT,
			       "the kernel has no type information (/sys/kernel/btf/vmlinux): %s; boot "
			       "one built with CONFIG_DEBUG_INFO_BTF=y, as distribution kernels are",
			       strerror(errno));
	}
	f->perf_link = have_perf_link(fd);
	close(fd);
	f->direct_read = btf__find_by_name_kind(btf, "bpf_cast_to_kern_ctx", BTF_KIND_FUNC) > 0 &&
			 btf__find_by_name_kind(btf, "bpf_rdonly_cast", BTF_KIND_FUNC) > 0 &&
			 btf__find_by_name_kind(btf, "perf_ibs_data", BTF_KIND_STRUCT) > 0;
	btf__free(btf);
	f->ancestor_helper = loads(BPF_PROG_TYPE_PERF_EVENT, ancestor, 4);
	f->syscall_prog = loads(BPF_PROG_TYPE_SYSCALL, empty, 2);
	/* bpf_ktime_get_coarse_ns() came with the kernel that charges memcg, as libbpf has it */
	const struct bpf_insn coarse[] = {
		INSN(BPF_JMP | BPF_CALL, 0, 0, 0, BPF_FUNC_ktime_get_coarse_ns),
		EXIT_0,
	};
	f->memcg_charge = loads(BPF_PROG_TYPE_SOCKET_FILTER, coarse, 3);
	return 0;
}
