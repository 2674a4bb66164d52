// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// jitted RUN: a JSON line for each map of the kernel and each program of kind perf_event that is
// loaded: what the addresses in their code mean. Bytes are hexadecimal.
#include <linux/bpf.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

static long bpf(int cmd, union bpf_attr *attr)
{
	return syscall(SYS_bpf, cmd, attr, sizeof(*attr));
}

static int info(int fd, void *p, __u32 n)
{
	union bpf_attr a = { .info = { .bpf_fd = fd, .info_len = n, .info = (unsigned long)p } };

	return bpf(BPF_OBJ_GET_INFO_BY_FD, &a);
}

// The next object of a kind after *id; -1: none.
static int next(int next_cmd, int open_cmd, __u32 *id)
{
	union bpf_attr a = { .start_id = *id };

	if (bpf(next_cmd, &a))
		return -1;
	*id = a.next_id;
	a = (union bpf_attr){ .map_id = *id };
	return bpf(open_cmd, &a);
}

static void hex(const char *name, const void *p, size_t n)
{
	printf(",\"%s\":\"", name);
	for (size_t i = 0; i < n; i++)
		printf("%02x", ((const unsigned char *)p)[i]);
	printf("\"");
}

static void print_map(const char *run, int fd)
{
	struct bpf_map_info m = {};

	if (!info(fd, &m, sizeof(m)))
		printf("{\"map\":\"%s\",\"id\":%u,\"of\":%s,\"type\":%u,\"value_size\":%u,"
		       "\"max_entries\":%u}\n",
		       m.name, m.id, run, m.type, m.value_size, m.max_entries);
}

static void print_btf(__u32 id)
{
	union bpf_attr a = { .btf_id = id };
	struct bpf_btf_info b = {};
	int fd = bpf(BPF_BTF_GET_FD_BY_ID, &a);
	void *p;

	if (fd < 0 || info(fd, &b, sizeof(b)))
		return;
	p = malloc(b.btf_size);
	b = (struct bpf_btf_info){ .btf = (unsigned long)p, .btf_size = b.btf_size };
	if (!info(fd, &b, sizeof(b)))
		hex("btf", p, b.btf_size);
	free(p);
	close(fd);
}

static void print_program(const char *run, int fd)
{
	struct bpf_prog_info p = {}, q = {};

	if (info(fd, &p, sizeof(p)) || p.type != BPF_PROG_TYPE_PERF_EVENT)
		return;
#define ROOM(n, count, size) q.n = (unsigned long)calloc((count) + 1, size)
	q.jited_prog_len = p.jited_prog_len;
	ROOM(jited_prog_insns, p.jited_prog_len, 1);
	q.xlated_prog_len = p.xlated_prog_len;
	ROOM(xlated_prog_insns, p.xlated_prog_len, 1);
	q.nr_jited_ksyms = p.nr_jited_ksyms;
	ROOM(jited_ksyms, p.nr_jited_ksyms, 8);
	q.nr_jited_func_lens = p.nr_jited_func_lens;
	ROOM(jited_func_lens, p.nr_jited_func_lens, 4);
	q.nr_line_info = p.nr_line_info;
	q.line_info_rec_size = sizeof(struct bpf_line_info);
	ROOM(line_info, p.nr_line_info, sizeof(struct bpf_line_info));
	q.nr_jited_line_info = p.nr_jited_line_info;
	q.jited_line_info_rec_size = 8;
	ROOM(jited_line_info, p.nr_jited_line_info, 8);
	if (info(fd, &q, sizeof(q)))
		return;
	printf("{\"program\":\"%s\",\"of\":%s", q.name, run);
	hex("jited", (void *)q.jited_prog_insns, q.jited_prog_len);
	hex("xlated", (void *)q.xlated_prog_insns, q.xlated_prog_len);
	hex("ksyms", (void *)q.jited_ksyms, 8 * q.nr_jited_ksyms);
	hex("lens", (void *)q.jited_func_lens, 4 * q.nr_jited_func_lens);
	hex("lines", (void *)q.line_info, sizeof(struct bpf_line_info) * q.nr_line_info);
	hex("at", (void *)q.jited_line_info, 8 * q.nr_jited_line_info);
	print_btf(p.btf_id);
	printf("}\n");
}

int main(int argc, char **argv)
{
	const char *run = argc > 1 ? argv[1] : "0";
	int fd;

	for (__u32 id = 0; (fd = next(BPF_MAP_GET_NEXT_ID, BPF_MAP_GET_FD_BY_ID, &id)) >= 0;
	     close(fd))
		print_map(run, fd);
	for (__u32 id = 0; (fd = next(BPF_PROG_GET_NEXT_ID, BPF_PROG_GET_FD_BY_ID, &id)) >= 0;
	     close(fd))
		print_program(run, fd);
	return 0;
}
