// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "perf_data_write.h"

#include "base/cpulist.h"
#include "perf_data_format.h"

#include <errno.h>
#include <fcntl.h>
#include <ibscope/filter_fields.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define FETCH_TYPE 10 /* any number; perf reads the mapping from the file */
#define OP_TYPE	   11
#define CNT_CTL	   (1ULL << 19)
#define ID_OF(pmu) ((pmu) + 1ULL)

/*
 * Readers sort within two rounds. Events are nearly in order: the recorder sorted each batch, which is far
 * smaller.
 */
#define ROUND_NS 4000000000ULL

#define SAMPLE_TYPE                                                                     \
	(PERF_SAMPLE_IDENTIFIER | PERF_SAMPLE_IP | PERF_SAMPLE_TID | PERF_SAMPLE_TIME | \
	 PERF_SAMPLE_ADDR | PERF_SAMPLE_CPU | PERF_SAMPLE_PERIOD | PERF_SAMPLE_RAW |    \
	 PERF_SAMPLE_WEIGHT | PERF_SAMPLE_DATA_SRC | PERF_SAMPLE_PHYS_ADDR | PERF_SAMPLE_CGROUP)

struct perf_writer {
	const struct trace_info *info;
	FILE *f;
	bool pipe;
	unsigned char buf[1 << 15]; /* a record or feature: strings of events are at most 8 KiB */
	size_t n;
	__u64 data, round;
};

static void put(struct perf_writer *w, const void *p, size_t n)
{
	if (n > sizeof(w->buf) - w->n)
		n = sizeof(w->buf) - w->n;
	if (n)
		memcpy(w->buf + w->n, p, n);
	w->n += n;
}

static void put32(struct perf_writer *w, __u32 v)
{
	put(w, &v, sizeof(v));
}

static void put64(struct perf_writer *w, __u64 v)
{
	put(w, &v, sizeof(v));
}

/* A string with its final 0, up to a multiple of @align bytes. */
static void put_padded(struct perf_writer *w, const char *text, size_t align)
{
	static const char zeros[64];
	size_t n = strlen(text);

	put(w, text, n);
	put(w, zeros, align - n % align);
}

/* The strings of features. */
static void put_text(struct perf_writer *w, const char *text)
{
	put32(w, strlen(text) / 64 * 64 + 64);
	put_padded(w, text, 64);
}

static void begin(struct perf_writer *w, __u32 type, __u16 misc)
{
	const struct perf_event_header h = { .type = type, .misc = misc };

	w->n = 0;
	put(w, &h, sizeof(h));
}

static void finish(struct perf_writer *w)
{
	const __u16 size = w->n;

	memcpy(w->buf + offsetof(struct perf_event_header, size), &size, sizeof(size));
	fwrite(w->buf, 1, w->n, w->f);
}

/* sample_id, at the end of all records except samples. */
static void finish_event(struct perf_writer *w, __u32 tgid, __u32 tid, __u64 time, __u32 cpu)
{
	put32(w, tgid);
	put32(w, tid);
	put64(w, time);
	put32(w, cpu);
	put32(w, 0);
	put64(w, ID_OF(0));
	finish(w);
}

static bool is_op_count(const struct trace_pmu *p)
{
	return p->op && strstr(p->name, "cnt_ctl=1");
}

static struct perf_event_attr attr_of(const struct trace_pmu *p)
{
	return (struct perf_event_attr){
		.type = p->op ? OP_TYPE : FETCH_TYPE,
		.size = sizeof(struct perf_event_attr),
		.config = is_op_count(p) ? CNT_CTL : 0,
		.sample_period = p->period,
		.freq = p->freq,
		.sample_type = SAMPLE_TYPE | (p->stacks ? PERF_SAMPLE_CALLCHAIN : 0),
		.sample_id_all = 1,
		.comm = 1,
		.comm_exec = 1,
		.mmap = 1,
		.mmap2 = 1,
		.mmap_data = 1,
		.task = 1,
		.cgroup = 1,
		.use_clockid = 1,
		.clockid = CLOCK_MONOTONIC,
	};
}

static void put_events(struct perf_writer *w)
{
	put32(w, w->info->n_pmus);
	put32(w, sizeof(struct perf_event_attr));
	for (unsigned int i = 0; i < w->info->n_pmus; i++) {
		const struct perf_event_attr attr = attr_of(&w->info->pmu[i]);

		put(w, &attr, sizeof(attr));
		put32(w, 1);
		put_text(w, w->info->pmu[i].name);
		put64(w, ID_OF(i));
	}
}

/* The mapping by which perf decodes raw samples. */
static void put_pmu_caps(struct perf_writer *w)
{
	bool zen4 = w->info->cpu.caps & IBS_CAPS_ZEN4;

	put32(w, 1);
	put32(w, zen4);
	if (zen4) {
		put_text(w, "zen4_ibs_extensions");
		put_text(w, "1");
	}
	put_text(w, "ibs_op");
}

/* Memory of nodes, as bitmaps of blocks; `perf c2c report` rejects a file without this and the next feature. */
static bool put_memory(struct perf_writer *w)
{
	const struct memory_range *range = w->info->memory;
	const size_t n = w->info->n_memory, at = w->n + 2 * sizeof(__u64);
	__u64 edges = 0, end = 0, block, nodes = 0;
	unsigned int most = 0;

	for (size_t i = 0; i < n; i++) {
		edges |= range[i].start | range[i].end;
		end = range[i].end > end ? range[i].end : end;
		most = range[i].node > most ? range[i].node : most;
	}
	if (!end)
		return false;
	block = edges & -edges;
	put64(w, 1);
	put64(w, block);
	put64(w, 0);
	for (unsigned int node = 0; node <= most && w->n < sizeof(w->buf); node++) {
		const __u64 bits = end / block;
		bool has = false;

		for (size_t i = 0; i < n; i++)
			has |= range[i].node == node;
		if (!has)
			continue;
		nodes++;
		put64(w, node);
		put64(w, bits);
		put64(w, bits);
		for (__u64 b = 0; b < bits && w->n < sizeof(w->buf); b += 64) {
			__u64 word = 0;

			for (size_t i = 0; i < n; i++)
				for (__u64 k = b; k < b + 64 && range[i].node == node; k++)
					if (k * block >= range[i].start && k * block < range[i].end)
						word |= 1ull << (k - b);
			put64(w, word);
		}
	}
	memcpy(w->buf + at, &nodes, sizeof(nodes));
	return w->n < sizeof(w->buf);
}

/* Nodes with CPUs. */
static bool put_nodes(struct perf_writer *w)
{
	const struct trace_topology *t = w->info->topology;
	struct cpulist done = { 0 };
	const size_t at = w->n;
	char list[4096];
	__u32 n = 0;

	put32(w, 0);
	for (__u32 first = 0; t && first < t->n; first++) {
		struct cpulist cpus = { 0 };
		__u64 bytes = 0;

		for (__u32 cpu = first; cpu < t->n && !cpulist_has(&done, first); cpu++)
			if (t->node[cpu] == t->node[first])
				cpulist_add(&cpus, cpu);
		if (!cpulist_count(&cpus))
			continue;
		for (size_t i = 0; i < sizeof(done.bits) / sizeof(*done.bits); i++)
			done.bits[i] |= cpus.bits[i];
		for (size_t i = 0; i < w->info->n_memory; i++)
			if (w->info->memory[i].node == t->node[first])
				bytes += w->info->memory[i].end - w->info->memory[i].start;
		put32(w, t->node[first]);
		put64(w, bytes / 1024);
		put64(w, 0); /* free memory: not recorded */
		cpulist_print(&cpus, list, sizeof(list));
		put_text(w, list);
		n++;
	}
	memcpy(w->buf + at, &n, sizeof(n));
	return n && w->n < sizeof(w->buf);
}

/* Return: false if the contents of the feature are unknown. */
static bool put_feature(struct perf_writer *w, enum perf_feature nr)
{
	const struct trace_info *info = w->info;
	char text[64];

	switch (nr) {
	case PERF_FEATURE_HOSTNAME:
		put_text(w, info->host);
		return *info->host;
	case PERF_FEATURE_OSRELEASE:
		put_text(w, info->release);
		return *info->release;
	case PERF_FEATURE_ARCH:
		put_text(w, "x86_64");
		return true;
	case PERF_FEATURE_NRCPUS:
		put32(w, info->n_cpus);
		put32(w, info->n_cpus);
		return info->n_cpus;
	case PERF_FEATURE_CPUDESC:
		put_text(w, info->cpu.name);
		return *info->cpu.name;
	case PERF_FEATURE_CPUID:
		snprintf(text, sizeof(text), "%s,%u,%u,%u", info->cpu.vendor, info->cpu.family,
			 info->cpu.model, info->cpu.stepping);
		put_text(w, text);
		return info->has_cpu;
	case PERF_FEATURE_CMDLINE:
		put32(w, info->simulated + 1);
		if (info->simulated)
			put_text(w, PERF_SIMULATED);
		put_text(w, info->command);
		return info->simulated || *info->command;
	case PERF_FEATURE_EVENT_DESC:
		put_events(w);
		return true;
	case PERF_FEATURE_NUMA_TOPOLOGY:
		return put_nodes(w);
	case PERF_FEATURE_MEM_TOPOLOGY:
		return put_memory(w);
	case PERF_FEATURE_PMU_MAPPINGS:
		put32(w, 2);
		put32(w, OP_TYPE);
		put_text(w, "ibs_op");
		put32(w, FETCH_TYPE);
		put_text(w, "ibs_fetch");
		return true;
	case PERF_FEATURE_CLOCK_DATA:
		put32(w, 1);
		put32(w, CLOCK_MONOTONIC);
		put64(w, info->realtime_ns);
		put64(w, info->monotonic_ns);
		return info->realtime_ns;
	default:
		put_pmu_caps(w);
		return true;
	}
}

static const enum perf_feature features[] = {
	PERF_FEATURE_HOSTNAME,	   PERF_FEATURE_OSRELEASE,    PERF_FEATURE_ARCH,
	PERF_FEATURE_NRCPUS,	   PERF_FEATURE_CPUDESC,      PERF_FEATURE_CPUID,
	PERF_FEATURE_CMDLINE,	   PERF_FEATURE_EVENT_DESC,   PERF_FEATURE_NUMA_TOPOLOGY,
	PERF_FEATURE_PMU_MAPPINGS, PERF_FEATURE_MEM_TOPOLOGY, PERF_FEATURE_CLOCK_DATA,
	PERF_FEATURE_PMU_CAPS,
};
#define FEATURES (sizeof(features) / sizeof(features[0]))

static void write_pipe_head(struct perf_writer *w)
{
	const __u64 head[] = { PERF_MAGIC, PERF_PIPE_HEADER_SIZE };

	fwrite(head, 1, sizeof(head), w->f);
	for (unsigned int i = 0; i < w->info->n_pmus; i++) {
		const struct perf_event_attr attr = attr_of(&w->info->pmu[i]);

		begin(w, PERF_RECORD_HEADER_ATTR, 0);
		put(w, &attr, sizeof(attr));
		put64(w, ID_OF(i));
		finish(w);
	}
	for (size_t i = 0; i < FEATURES; i++) {
		begin(w, PERF_RECORD_HEADER_FEATURE, 0);
		put64(w, features[i]);
		if (put_feature(w, features[i])) {
			put_padded(w, "", 8 - w->n % 8);
			finish(w);
		}
	}
}

static void write_file_head(struct perf_writer *w, __u64 end, const __u64 *bits)
{
	const unsigned int n = w->info->n_pmus;
	struct perf_file_header h = {
		.magic = PERF_MAGIC,
		.size = sizeof(h),
		.attr_size = sizeof(struct perf_event_attr) + sizeof(struct perf_section),
		.features = { bits[0], bits[1], bits[2], bits[3] },
	};

	h.attrs = (struct perf_section){ sizeof(h) + n * sizeof(__u64), n * h.attr_size };
	w->data = h.data.offset = h.attrs.offset + h.attrs.size;
	h.data.size = end ? end - w->data : 0;
	fwrite(&h, 1, sizeof(h), w->f);
	for (unsigned int i = 0; i < n; i++)
		fwrite(&(__u64){ ID_OF(i) }, 1, sizeof(__u64), w->f);
	for (unsigned int i = 0; i < n; i++) {
		const struct perf_event_attr attr = attr_of(&w->info->pmu[i]);
		const struct perf_section ids = { sizeof(h) + i * sizeof(__u64), sizeof(__u64) };

		fwrite(&attr, 1, sizeof(attr), w->f);
		fwrite(&ids, 1, sizeof(ids), w->f);
	}
}

/* After the data is a table of sections, in the order of the feature bits. */
static void write_features(struct perf_writer *w)
{
	struct perf_section table[FEATURES];
	__u64 end = ftello(w->f), at = end, bits[4] = { 0 };
	size_t n = 0, written = 0;

	for (size_t i = 0; i < FEATURES; i++) {
		w->n = 0;
		if (!put_feature(w, features[i]))
			continue;
		bits[features[i] / 64] |= 1ULL << features[i] % 64;
		table[n++].size = w->n;
	}
	at += n * sizeof(table[0]);
	for (size_t i = 0; i < n; i++) {
		table[i].offset = at;
		at += table[i].size;
	}
	fwrite(table, sizeof(table[0]), n, w->f);
	for (size_t i = 0; written < n; i++) {
		w->n = 0;
		if (!put_feature(w, features[i]))
			continue;
		fwrite(w->buf, 1, w->n, w->f);
		written++;
	}
	rewind(w->f);
	write_file_head(w, end, bits);
}

int perf_writer_open(int fd, const struct trace_info *info, struct perf_writer **out,
		     struct err *err)
{
	struct perf_writer *w;
	struct stat st;
	int copy;

	if (!info->n_pmus)
		return err_set(err, -EINVAL, "the recording names no event");
	copy = fcntl(fd, F_DUPFD_CLOEXEC, 3);
	if (copy < 0)
		return err_set(err, -errno, "cannot duplicate the output's descriptor: %m");
	w = xcalloc(1, sizeof(*w));
	w->f = fdopen(copy, "w");
	if (!w->f)
		out_of_memory();
	w->info = info;
	/* the head, at the start of the file, can only be completed at the end */
	w->pipe = fstat(fd, &st) || !S_ISREG(st.st_mode) || lseek(fd, 0, SEEK_CUR) ||
		  fcntl(fd, F_GETFL) & O_APPEND;
	if (w->pipe)
		write_pipe_head(w);
	else
		write_file_head(w, 0, (const __u64[4]){ 0 });
	*out = w;
	return 0;
}

/* In the layout of the kernel. */
static void put_raw(struct perf_writer *w, __u32 caps, const __u64 *regs, __u32 present,
		    unsigned int n)
{
	const __u32 bytes = sizeof(caps) + __builtin_popcount(present) * sizeof(*regs);

	put32(w, bytes);
	put32(w, caps);
	for (unsigned int r = 0; r < n; r++)
		if (present >> r & 1)
			put64(w, regs[r]);
}

/* perf decodes samples only if IBS_OP_CTL has En and Val set. */
static void put_op(struct perf_writer *w, const struct ibs_op_sample *op, const struct trace_pmu *p)
{
	const __u32 fixed = (1u << IBS_OP_REG_FIXED) - 1;
	__u64 regs[IBS_OP_REG_N], period = p->freq ? 0 : p->period >> 4;
	__u32 caps = op->cpu.caps;

	memcpy(regs, op->reg, sizeof(regs));
	if (!(op->present >> IBS_OP_CTL & 1)) {
		caps &= ~(IBS_CAPS_BRNTRGT | IBS_CAPS_OPDATA4);
		caps |= PERF_RAW_NO_CTL;
		regs[IBS_OP_CTL] = 3ULL << 17 /* IbsOpEn, IbsOpVal */ | (period & 0xffff) |
				   (period >> 16 & 0x7f) << 20 | (is_op_count(p) ? CNT_CTL : 0);
	}
	put_raw(w, caps, regs, op->present | fixed, IBS_OP_REG_N);
}

static __u64 op_field(const struct trace_event *ev, enum ibs_op_field field)
{
	__u64 v;

	return ev->kind == TRACE_SAMPLE_OP && ibs_op_field(&ev->sample.op, field, &v) ? v : 0;
}

/* As in samples of the kernel (ibs.c). */
static __u64 data_src(const struct ibs_op_sample *op)
{
	static const __u16 levels[IBS_SRC_N] = {
		[IBS_SRC_L1] = PERF_MEM_LVL_HIT | PERF_MEM_LVL_L1,
		[IBS_SRC_L2] = PERF_MEM_LVL_HIT | PERF_MEM_LVL_L2,
		[IBS_SRC_L3] = PERF_MEM_LVL_HIT | PERF_MEM_LVL_L3,
		[IBS_SRC_MAB] = PERF_MEM_LVL_HIT | PERF_MEM_LVL_LFB,
		[IBS_SRC_NEAR_CACHE] = PERF_MEM_LVL_HIT | PERF_MEM_LVL_REM_CCE1,
		[IBS_SRC_REMOTE_CACHE] = PERF_MEM_LVL_HIT | PERF_MEM_LVL_REM_CCE2,
		[IBS_SRC_DRAM] = PERF_MEM_LVL_HIT | PERF_MEM_LVL_LOC_RAM,
		[IBS_SRC_REMOTE_DRAM] = PERF_MEM_LVL_HIT | PERF_MEM_LVL_REM_RAM1,
		[IBS_SRC_IO] = PERF_MEM_LVL_HIT | PERF_MEM_LVL_IO,
		[IBS_SRC_UNCACHED] = PERF_MEM_LVL_HIT | PERF_MEM_LVL_UNC,
	};
	const struct ibs_filter_sample s = { .regs = op->reg, .ibs = &op->cpu };
	const __u32 need = 1u << IBS_OP_DATA | 1u << IBS_OP_DATA2 | 1u << IBS_OP_DATA3;
	const __u32 src = (op->present & need) == need ? ibs_filter_src(&s) : IBS_SRC_UNKNOWN;
	union perf_mem_data_src d = {
		.mem_op = ibs_filter_mem_op(&s),
		.mem_lvl = levels[src] ?: PERF_MEM_LVL_NA,
		.mem_snoop = PERF_MEM_SNOOP_NA,
		.mem_lock = PERF_MEM_LOCK_NA,
		.mem_dtlb = PERF_MEM_TLB_NA,
		.mem_lvl_num = PERF_MEM_LVLNUM_NA,
	};

	if (src > IBS_SRC_NONE) {
		d.mem_lvl_num = ibs_filter_mem_lvl(src) ?: PERF_MEM_LVLNUM_NA;
		d.mem_remote = IBS_FILTER_REMOTE >> src & 1;
		d.mem_hops = ibs_filter_valid_hops(src) ? ibs_filter_mem_hops(src) : 0;
	}
	if (src > IBS_SRC_NONE && ibs_filter_valid_mem_snoop(&s))
		d.mem_snoop = PERF_MEM_SNOOP_HITM;
	if (ibs_op_valid_mem(op))
		d.mem_lock = ibs_filter_mem_lock(&s);
	if (ibs_op_valid_l1tlb(op))
		d.mem_dtlb = ibs_filter_mem_dtlb(&s);
	return d.val;
}

static void add_sample(struct perf_writer *w, const struct trace_event *ev)
{
	const struct trace_sample *s = &ev->sample;
	const struct trace_pmu *p = &w->info->pmu[s->pmu];
	bool op = ev->kind == TRACE_SAMPLE_OP, whole = op && s->op.present >> IBS_OP_CTL & 1;

	begin(w, PERF_RECORD_SAMPLE,
	      !s->has_ip  ? PERF_RECORD_MISC_CPUMODE_UNKNOWN
	      : s->kernel ? PERF_RECORD_MISC_KERNEL | PERF_RECORD_MISC_EXACT_IP
			  : PERF_RECORD_MISC_USER | PERF_RECORD_MISC_EXACT_IP);
	put64(w, ID_OF(s->pmu));
	put64(w, s->has_ip ? s->ip : 0);
	put32(w, s->has_task ? s->tgid : ~0u);
	put32(w, s->has_task ? s->tid : ~0u);
	put64(w, ev->time);
	put64(w, op_field(ev, IBS_OP_FIELD_DC_LIN_AD));
	put32(w, s->cpu);
	put32(w, 0);
	put64(w, !p->freq ? p->period : whole ? ibs_op_period(&s->op) : 0);
	if (p->stacks) {
		put64(w, s->n_stack);
		put(w, s->stack, s->n_stack * sizeof(*s->stack));
	}
	if (op)
		put_op(w, &s->op, p);
	else
		put_raw(w, s->fetch.cpu.caps, s->fetch.reg, s->fetch.present, IBS_FETCH_REG_N);
	put64(w, op_field(ev, IBS_OP_FIELD_DC_MISS_LAT));
	put64(w, op ? data_src(&s->op) : 0);
	put64(w, op_field(ev, IBS_OP_FIELD_DC_PHYS_AD));
	put64(w, s->cgroup_id);
	finish(w);
}

static void add_map(struct perf_writer *w, const struct trace_event *ev)
{
	const struct trace_mmap *m = &ev->mmap;
	__u8 build_id[24] = { m->build_id_len };

	begin(w, PERF_RECORD_MMAP2,
	      (m->kernel ? PERF_RECORD_MISC_KERNEL : PERF_RECORD_MISC_USER) |
		      (m->exec ? 0 : PERF_RECORD_MISC_MMAP_DATA) |
		      (m->build_id_len ? PERF_RECORD_MISC_MMAP_BUILD_ID : 0));
	memcpy(build_id + 4, m->build_id, sizeof(m->build_id));
	put32(w, m->tgid);
	put32(w, m->tid);
	put64(w, m->start);
	put64(w, m->len);
	put64(w, m->pgoff);
	put(w, build_id, sizeof(build_id));
	put32(w, m->exec ? 5 : 1); /* PROT_READ, PROT_EXEC */
	put32(w, 2);		   /* MAP_PRIVATE */
	put_padded(w, m->path, 8);
	finish_event(w, m->tgid, m->tid, ev->time, ~0u);
}

static void add_task(struct perf_writer *w, const struct trace_event *ev)
{
	begin(w, ev->kind == TRACE_FORK ? PERF_RECORD_FORK : PERF_RECORD_EXIT, 0);
	put32(w, ev->fork.tgid);
	put32(w, ev->fork.parent_tgid);
	put32(w, ev->fork.tid);
	put32(w, ev->fork.parent_tid);
	put64(w, ev->time);
	finish_event(w, ev->fork.tgid, ev->fork.tid, ev->time, ~0u);
}

void perf_writer_add(struct perf_writer *w, const struct trace_event *ev)
{
	if (ev->time > w->round + ROUND_NS) {
		begin(w, PERF_RECORD_FINISHED_ROUND, 0);
		finish(w);
		w->round = ev->time;
	}
	switch (ev->kind) {
	case TRACE_SAMPLE_OP:
	case TRACE_SAMPLE_FETCH:
		add_sample(w, ev);
		break;
	case TRACE_COMM:
		begin(w, PERF_RECORD_COMM, ev->comm.exec ? PERF_RECORD_MISC_COMM_EXEC : 0);
		put32(w, ev->comm.tgid);
		put32(w, ev->comm.tid);
		put_padded(w, ev->comm.name, 8);
		finish_event(w, ev->comm.tgid, ev->comm.tid, ev->time, ~0u);
		break;
	case TRACE_MMAP:
		add_map(w, ev);
		break;
	case TRACE_FORK:
	case TRACE_EXIT:
		add_task(w, ev);
		break;
	case TRACE_CGROUP:
		begin(w, PERF_RECORD_CGROUP, 0);
		put64(w, ev->cgroup.id);
		put_padded(w, ev->cgroup.path, 8);
		finish_event(w, 0, 0, ev->time, ~0u);
		break;
	case TRACE_LOST:
		begin(w, ev->lost.samples ? PERF_RECORD_LOST_SAMPLES : PERF_RECORD_LOST, 0);
		if (!ev->lost.samples)
			put64(w, ID_OF(0));
		put64(w, ev->lost.n);
		finish_event(w, 0, 0, ev->time, ev->lost.cpu);
		break;
	case TRACE_RANK:
	case TRACE_REGION:
	case TRACE_SLAB: /* perf has no such records */
		break;
	}
}

int perf_writer_close(struct perf_writer *w, struct err *err)
{
	bool failed;
	int ret;

	if (!w)
		return 0;
	errno = 0;
	begin(w, PERF_RECORD_FINISHED_ROUND, 0);
	finish(w);
	if (!w->pipe)
		write_features(w);
	failed = ferror(w->f);
	ret = fclose(w->f) || failed ? -(errno ?: EIO) : 0;
	free(w);
	return ret ? err_set(err, ret, "cannot write: %s", strerror(-ret)) : 0;
}
