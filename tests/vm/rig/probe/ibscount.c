// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// ibscount OBJ SECONDS [PERIOD [CONFIG [SAMPLE_TYPE]]]: system-wide ibs_op with BPF.
#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <linux/perf_event.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <unistd.h>

struct totals { __u64 samples, noraw, loads, xor3, sumlat, size, caps; };

int main(int argc, char **argv)
{
	int n = libbpf_num_possible_cpus(), type = -1, fds[n], zero = 0;
	struct totals per[n], sum = {};
	struct perf_event_attr a = { .size = sizeof(a), .disabled = 1 };
	struct bpf_object *o = bpf_object__open_file(argv[1], NULL);
	FILE *f = fopen("/sys/bus/event_source/devices/ibs_op/type", "r");

	if (!o || bpf_object__load(o) || !f || fscanf(f, "%d", &type) != 1)
		return perror("setup"), 1;
	struct bpf_program *prog = bpf_object__find_program_by_name(o, "on_sample");

	a.type = type;
	a.sample_period = argc > 3 ? strtoull(argv[3], 0, 0) : 100000;
	a.config = argc > 4 ? strtoull(argv[4], 0, 0) : 0;
	a.sample_type = argc > 5 ? strtoull(argv[5], 0, 0) : PERF_SAMPLE_RAW;
	for (int i = 0; i < n; i++) {
		fds[i] = syscall(SYS_perf_event_open, &a, -1, i, -1, 0);
		if (fds[i] < 0)
			return fprintf(stderr, "cpu %d: %s\n", i, strerror(errno)), 1;
		if (!bpf_program__attach_perf_event(prog, fds[i]))
			return perror("attach"), 1;
	}
	sleep(atoi(argv[2]));
	for (int i = 0; i < n; i++)
		ioctl(fds[i], PERF_EVENT_IOC_DISABLE, 0);
	if (bpf_map_lookup_elem(bpf_object__find_map_fd_by_name(o, "totals"), &zero, per))
		return perror("map"), 1;
	for (int i = 0; i < n; i++) {
		sum.samples += per[i].samples, sum.noraw += per[i].noraw;
		sum.loads += per[i].loads, sum.xor3 ^= per[i].xor3;
		sum.sumlat += per[i].sumlat;
		if (per[i].size)
			sum.size = per[i].size, sum.caps = per[i].caps;
	}
	printf("samples=%llu noraw=%llu loads=%llu xor3=%016llx sumlat=%llu fragsize=%llu caps=%#llx\n",
	       sum.samples, sum.noraw, sum.loads, sum.xor3, sum.sumlat, sum.size, sum.caps);
	return 0;
}
