// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * make_recording FILE SAMPLES [stacks|cut|self|random|bomb|bare|fetch]: a recording of simulated samples on four
 * CPUs, of processes and cgroups with names as nobody would like them. "stacks" adds call chains,
 * "cut" leaves the end out; "self" lets main() of this program be sampled, on this machine; "random"
 * has random values and events everywhere; "bomb" has three million forks; "bare" has neither
 * names of containers nor a topology, as version 1.0 of the format; of "fetch", and
 * "self-fetch", every third sample is of ibs_fetch, of "only-fetch" all of them, which is the only event. "node:K:RANKS:STATUS:SKEW" is node K of
 * an MPI job: with ranks 2K and 2K + 1, each with OpenMP's threads and regions, the wait status of the latter, and a clock so many seconds off.
 */
#include "recording_gen.h"

#include <fcntl.h>
#include <ibscope/sim.h>
#include <stdio.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <unistd.h>

#define CAPS	  0xbffu /* Zen 4 */
#define CPUS	  4
#define PROCESSES 9
#define BATCH	  1024
#define TEXT_AT	  0x400000ull
#define TEXT_LEN  0x10000ull

static const char *const comms[PROCESSES] = {
	"plain",
	"two|`<i> *w_",
	"esc\033[31m",
	"new\nline",
	"s\xc3\xa9mi;colon,\"q\"",
	"bad\xff\xfe",
	"=1+1",
	"-bash",
	("\xc2\x9b"
	 "2J\a\xe2\x80\xae"),
};

/* Of cgroups 1 and up; one more id has no path. The last one forges a line of our log. */
static const char *const cgroups[] = {
	"/",
	"/sys,tem.slice/a\"b\\c.service",
	"/system.slice/"
	"docker-0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef.scope",
	"/kubepods/burstable/pod01234567-89ab-cdef-0123-456789abcdef/"
	"fedcba9876543210fedcba9876543210fedcba9876543210fedcba9876543210",
	"/user.slice/\033]0;owned\a\nibscope: error: forged\xc2\x9b"
	"31m\xff",
};
#define CGROUPS (sizeof(cgroups) / sizeof(cgroups[0]))

/* "markup": what would break out of a page. */
#define BREAK	"</script></title><script>document.title='owned'</script>"
#define ON_LOAD "<img src=x onerror=\"document.title='owned'\">"
static const char *const markup[] = {
	"/",
	"/" BREAK,
	"/" ON_LOAD,
	"/<!--<script>\033[201~\nreboot",
	"/\u2028');document.title='owned'//\u2029",
};
_Static_assert(sizeof(markup) == sizeof(cgroups), "as many");

int main(int argc, char **argv);

static int failed(const struct err *err)
{
	fprintf(stderr, "make_recording: %s\n", err->text);
	return 1;
}

static int write_names(struct recording *r, bool bare, bool bad, struct err *err)
{
	int ret = 0;

	for (__u32 p = 0; !ret && p < PROCESSES; p++) {
		struct trace_event comm = { .kind = TRACE_COMM,
					    .comm = { 100 + p, 100 + p, true,
						      bad ? "</script><s>" : comms[p] } };
		struct trace_event map = { .kind = TRACE_MMAP,
					   .mmap = { .tgid = 100 + p,
						     .tid = 100 + p,
						     .exec = true,
						     .start = TEXT_AT,
						     .len = TEXT_LEN,
						     .path = bad ? "/" ON_LOAD "\nreboot\033[201~"
								 : "/no/such/program" } };

		ret = recording_event(r, &comm, err) ?: recording_event(r, &map, err);
	}
	for (__u64 i = 0; !ret && i < CGROUPS; i++) {
		struct trace_event ev = { .kind = TRACE_CGROUP,
					  .cgroup = { i + 1, bad ? markup[i] : cgroups[i] } };

		if (!bare && strstr(cgroups[i], "docker-"))
			ev.cgroup.container = "web";
		if (!bare && strstr(cgroups[i], "/pod")) {
			ev.cgroup.container = "db";
			ev.cgroup.pod = "db-0";
			ev.cgroup.ns = "shop";
		}
		if (bad && i == 2)
			ev.cgroup.container = ev.cgroup.pod = ev.cgroup.ns = BREAK ON_LOAD;
		ret = recording_event(r, &ev, err);
	}
	return ret;
}

/* The map of this program that main() is in. */
static int write_self(struct recording *r, struct err *err)
{
	struct trace_event map = { .kind = TRACE_MMAP, .mmap.exec = true };
	const __u64 at = (uintptr_t)main;
	FILE *f = fopen("/proc/self/maps", "r");
	char line[1024], path[512];
	int ret = 0;

	while (!ret && f && fgets(line, sizeof(line), f)) {
		unsigned long long start, end, pgoff;

		if (sscanf(line, "%llx-%llx %*s %llx %*s %*s %511s", &start, &end, &pgoff, path) <
			    4 ||
		    at < start || at >= end)
			continue;
		map.mmap.start = start;
		map.mmap.len = end - start;
		map.mmap.pgoff = pgoff;
		map.mmap.path = path;
		for (__u32 p = 0; !ret && p < PROCESSES; p++) {
			map.mmap.tgid = map.mmap.tid = 100 + p;
			ret = recording_event(r, &map, err);
		}
	}
	if (f)
		fclose(f);
	return ret;
}

static int write_random(struct recording *r, __u64 n, struct err *err)
{
	struct gen g = { n };
	__u64 time = 0;
	int ret = 0;

	for (int i = 0; !ret && i < 64; i++) {
		__u64 chain[TRACE_STACK_MAX];
		unsigned int len = gen_below(&g, TRACE_STACK_MAX);

		for (unsigned int k = 0; k < len; k++)
			chain[k] = gen_value(&g);
		ret = recording_stack(r, i, chain, len, err);
	}
	for (__u64 i = 0; !ret && i < n; i++) {
		struct ibs_record_extra chains = { .kernel = gen_below(&g, 64),
						   .user = gen_below(&g, 64),
						   .callers = -1 };
		struct trace_event ev;
		struct ibs_record rec;
		_Alignas(__u64) char buf[600];

		time += gen_below(&g, 5);
		gen_event(&g, &ev, buf, sizeof(buf));
		ev.time = time;
		/* so that some meet */
		if (ev.kind == TRACE_MMAP && gen_below(&g, 2))
			ev.mmap.tgid = gen_below(&g, 8);
		gen_record(&g, &rec);
		rec.time = time;
		if (gen_below(&g, 2))
			rec.tgid = gen_below(&g, 8);
		ret = recording_event(r, &ev, err) ?: recording_samples(r, &rec, &chains, 1, err);
	}
	return ret;
}

/* Readers keep something of each fork, and equal ones compress to nearly nothing. */
static int write_bomb(struct recording *r, struct err *err)
{
	int ret = 0;

	for (__u64 i = 0; !ret && i < 3000000; i++) {
		const struct trace_event ev = {
			.kind = TRACE_FORK, .fork = { 101, 101, ibs_sim_mix(i), ibs_sim_mix(~i) }
		};

		ret = recording_event(r, &ev, err);
	}
	return ret;
}

/* @fetch: one of so many samples is of ibs_fetch; 0: none */
static void make(__u64 n, unsigned int fetch, struct ibs_record *rec)
{
	__u64 regs[IBS_OP_REG_FIXED], r = ibs_sim_mix(n);
	__u32 cpu = n % CPUS;

	ibs_sim_op(1, cpu, n / CPUS, CAPS, regs);
	*rec = (struct ibs_record){
		.time = 1000 + 10 * n,
		.cgroup_id = 1 + (r & 0xff) % (CGROUPS + 1),
		.tgid = 100 + (r >> 8 & 0xff) % PROCESSES,
		.ip = TEXT_AT + (r >> 16 & 0xfff),
		.addr = 0x7f0000000000ull + (r >> 32 & 0x1fff),
		.phys = 0x100000000ull + (r >> 32 & 0x1fff),
		.data3 = regs[IBS_OP_DATA3],
		.packed = ibs_record_pack(regs[IBS_OP_DATA], regs[IBS_OP_DATA2], cpu),
	};
	if (fetch && n % fetch == 0) {
		ibs_sim_fetch(1, cpu, n / CPUS, regs);
		rec->data3 = regs[IBS_FETCH_CTL];
		rec->phys = regs[IBS_FETCH_PHYSADDR];
		rec->addr = regs[IBS_FETCH_EXTD];
		rec->packed = ibs_record_pack(0, 0, cpu) | IBS_RECORD_FETCH;
	}
	rec->tid = rec->tgid + (r >> 48 & 1) * 1000;
	if ((r >> 50 & 7) == 0) {
		rec->ip = 0xffffffff81000000ull + (r >> 16 & 0xfff);
		rec->addr |= 0xffff800000000000ull;
	}
}

static int write_samples(struct recording *r, __u64 n, bool stacks, bool self, unsigned int fetch,
			 struct err *err)
{
	static struct ibs_record records[BATCH];
	static struct ibs_record_extra chains[BATCH];
	int ret = 0;

	for (__u64 done = 0, k; !ret && done < n; done += k) {
		for (k = 0; k < BATCH && done + k < n; k++) {
			make(done + k, fetch, &records[k]);
			if (self)
				records[k].ip = (uintptr_t)main;
			chains[k] = (struct ibs_record_extra){ .kernel = -14,
							       .user = (done + k) % 3,
							       .callers = -1 };
		}
		ret = recording_samples(r, records, stacks ? chains : NULL, k, err);
	}
	return ret;
}

/* Of "node:...". Processes 100 to 103 are of one rank, the others of the next. */
struct node {
	unsigned int number, ranks;
	int status;
	long long skew;
};

static bool is_node(const char *how, struct node *n, struct trace_info *info)
{
	/* half of what make() accesses is of node 1 */
	static const struct memory_range memory[] = { { 0x100000000, 0x100001000, 0 },
						      { 0x100001000, 0x100010000, 1 } };

	if (sscanf(how, "node:%u:%u:%d:%lld", &n->number, &n->ranks, &n->status, &n->skew) != 4)
		return false;
	sprintf(info->host, "node%u", n->number);
	strcpy(info->job, "77");
	info->job_ranks = n->ranks;
	info->realtime_ns = (1700000000 + n->skew) * 1000000000;
	info->monotonic_ns = n->number + 1;
	info->memory = memory;
	info->n_memory = 2;
	return true;
}

static int write_ranks(struct recording *r, const struct node *n, __u64 end, struct err *err)
{
	int ret = 0;

	for (__u32 p = 0; !ret && p < PROCESSES; p++) {
		bool second = p >= PROCESSES / 2;
		struct trace_event ev = { .kind = TRACE_RANK,
					  .time = end,
					  .rank = { 100 + p, 2 * n->number + second, end != 0,
						    end && second ? n->status : 0 } };

		ret = recording_event(r, &ev, err);
	}
	return ret;
}

/* Each process has a team of two threads in one region, and main() is in another. */
static int write_teams(struct recording *r, struct err *err)
{
	int ret = 0;

	for (__u32 tid = 100; !ret && tid < 100 + PROCESSES; tid++) {
		struct trace_event ev = { .kind = TRACE_REGION,
					  .time = 1,
					  .region = { .tid = tid, .name = "</script>solve" } };

		if (tid % 2)
			ret = recording_event(r, &ev, err);
		ev.region.name = "";
		ev.region.omp = true;
		ev.region.addr = TEXT_AT + 8;
		ev.region.team = tid;
		for (ev.region.number = 0; !ret && ev.region.number < 2; ev.region.number++) {
			ret = recording_event(r, &ev, err);
			ev.region.tid += 1000;
		}
	}
	return ret;
}

int main(int argc, char **argv)
{
	static const struct trace_pmu pmu = {
		.name = "ibs_op/cnt_ctl=1/", .op = true, .physical = true, .period = 100000
	};
	const char *how = argc > 3 ? argv[3] : "";
	const __u64 chains[3][3] = {
		{ TEXT_AT + 1, TEXT_AT + 0x100, TEXT_AT + 0x200 },
		{ TEXT_AT + 2, TEXT_AT + 0x100, TEXT_AT + 0x200 },
		{ TEXT_AT + 3, TEXT_AT + 0x300, 0x1000 },
	};
	static const struct trace_topology topology = { .n = CPUS,
							.has_sockets = true,
							.ccx = { 0, 0, 1, 2 },
							.node = { 0, 0, 0, 1 },
							.socket = { 0, 0, 0, 1 } };
	struct trace_pmu pmus[] = { pmu,
				    { .name = "ibs_fetch//", .physical = true, .period = 50000 } };
	struct trace_info info = { .source = "sim",
				   .simulated = true,
				   .host = "host",
				   .release = "6.1.0",
				   .command = "record",
				   .has_cpu = true,
				   .n_cpus = CPUS,
				   .pmu = pmus,
				   .n_pmus = 1 };
	struct recording_opts opts = { .info = &info, .compress = true };
	struct trace_event lost = { .kind = TRACE_LOST,
				    .lost = { .n = 7, .samples = true, .cpu = 1 } };
	bool self = !strncmp(how, "self", 4), random = !strcmp(how, "random");
	bool bare = !strcmp(how, "bare"), bad = !strcmp(how, "markup");
	unsigned int fetch = !strcmp(how, "only-fetch") ? 1 : strstr(how, "fetch") ? 3 : 0;
	struct ledger ledgers[2] = {};
	struct node node = { 0 };
	struct recording *r;
	struct utsname u;
	struct err err = { "" };
	__u64 n;
	int ret;

	if (argc < 3)
		return 2;
	n = strtoull(argv[2], NULL, 0);
	info.topology = bare ? NULL : &topology;
	info.n_pmus += fetch == 3;
	info.pmu += fetch == 1;
	pmus[0].stacks = !strcmp(how, "stacks") || random || bad;
	info.alloc_bytes = random ? 4096 : 0;
	info.alloc_probes = random;
	cpu_info_set(&info.cpu, "AuthenticAMD", 0x19, 0x11, CAPS);
	strcpy(info.cpu.name, "AMD EPYC 9654");
	if (self && !uname(&u))
		strcpy(info.host, u.nodename);
	if (bad) {
		strcpy(info.host, "\033]0;owned\a</title><script>'\u2028\u202e\xff");
		strcpy(info.command, BREAK ON_LOAD);
	}
	is_node(how, &node, &info);
	opts.fd = open(argv[1], O_CREAT | O_TRUNC | O_WRONLY, 0600);
	if (opts.fd < 0 || recording_create(&opts, &r, &err))
		return failed(&err);
	/* files of containers whose processes have exited have no names: those of "self" are the host's */
	ret = write_names(r, bare || self, bad, &err);
	if (!ret && node.ranks)
		ret = write_ranks(r, &node, 0, &err) ?: write_teams(r, &err);
	if (!ret && self)
		ret = write_self(r, &err);
	if (!ret && !strcmp(how, "bomb"))
		ret = write_bomb(r, &err);
	for (int i = 0; !ret && pmus[0].stacks && i < 3; i++)
		ret = recording_stack(r, i, chains[i], 3, &err);
	if (!ret)
		ret = random ? write_random(r, n, &err)
			     : write_samples(r, n, pmus[0].stacks, self, fetch, &err);
	lost.time = 1000 + 10 * n;
	ret = ret ?: recording_event(r, &lost, &err);
	if (!ret && node.ranks)
		ret = write_ranks(r, &node, lost.time, &err);
	ledgers[1].seen = ledgers[1].outcome[IBS_OUTCOME_FORWARDED] = fetch == 3 ? (n + 2) / 3 : 0;
	n -= ledgers[1].seen;
	ledgers[0].seen = n + 7;
	ledgers[0].outcome[IBS_OUTCOME_FORWARDED] = n;
	ledgers[0].outcome[IBS_OUTCOME_LOST_READ] = 7;
	if (!strcmp(how, "cut"))
		ret = ret ?: recording_flush(r, ledgers, &err);
	else
		ret = ret ?: recording_finish(r, ledgers, &err);
	recording_close(r);
	return ret || close(opts.fd) ? failed(&err) : 0;
}
