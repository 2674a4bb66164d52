// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "perf_data_write.h"

#include "perf_data_features.h"

#include <errno.h>
#include <fcntl.h>
#include <ibscope/filter_fields.h>
#include <math.h>
#include <sys/stat.h>
#include <unistd.h>

/*
 * Readers sort within two rounds. Events are nearly in order: the recorder sorted each batch, which is far
 * smaller.
 */
#define ROUND_NS 4000000000ULL

static void begin(struct perf_writer *w, __u32 type, __u16 misc)
{
	const struct perf_event_header h = { .type = type, .misc = misc };

	w->n = 0;
	perf_put(w, &h, sizeof(h));
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
	perf_put32(w, tgid);
	perf_put32(w, tid);
	perf_put64(w, time);
	perf_put32(w, cpu);
	perf_put32(w, 0);
	perf_put64(w, PERF_ID_OF(0));
	finish(w);
}

static void write_pipe_head(struct perf_writer *w)
{
	const __u64 head[] = { PERF_MAGIC, PERF_PIPE_HEADER_SIZE };

	fwrite(head, 1, sizeof(head), w->f);
	for (unsigned int i = 0; i < w->info->n_pmus; i++) {
		const struct perf_event_attr attr = perf_attr_of(&w->info->pmu[i]);

		begin(w, PERF_RECORD_HEADER_ATTR, 0);
		perf_put(w, &attr, sizeof(attr));
		perf_put64(w, PERF_ID_OF(i));
		finish(w);
	}
	for (size_t i = 0; i < PERF_FEATURES; i++) {
		begin(w, PERF_RECORD_HEADER_FEATURE, 0);
		perf_put64(w, perf_features[i]);
		if (perf_put_feature(w, perf_features[i])) {
			perf_put_padded(w, "", 8 - w->n % 8);
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
		fwrite(&(__u64){ PERF_ID_OF(i) }, 1, sizeof(__u64), w->f);
	for (unsigned int i = 0; i < n; i++) {
		const struct perf_event_attr attr = perf_attr_of(&w->info->pmu[i]);
		const struct perf_section ids = { sizeof(h) + i * sizeof(__u64), sizeof(__u64) };

		fwrite(&attr, 1, sizeof(attr), w->f);
		fwrite(&ids, 1, sizeof(ids), w->f);
	}
}

/* After the data is a table of sections, in the order of the feature bits. Return: 0, or -1 with errno. */
static int write_features(struct perf_writer *w)
{
	struct perf_section table[PERF_FEATURES];
	const off_t end = ftello(w->f);
	__u64 at = end, bits[4] = { 0 };
	size_t n = 0, written = 0;

	if (end < 0)
		return -1;

	for (size_t i = 0; i < PERF_FEATURES; i++) {
		w->n = 0;
		if (!perf_put_feature(w, perf_features[i]))
			continue;
		bits[perf_features[i] / 64] |= 1ULL << perf_features[i] % 64;
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
		if (!perf_put_feature(w, perf_features[i]))
			continue;
		fwrite(w->buf, 1, w->n, w->f);
		written++;
	}
	if (fseeko(w->f, 0, SEEK_SET)) /* rewind() would forget errors */
		return -1;
	write_file_head(w, end, bits);
	return 0;
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

	perf_put32(w, bytes);
	perf_put32(w, caps);
	for (unsigned int r = 0; r < n; r++)
		if (present >> r & 1)
			perf_put64(w, regs[r]);
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
				   (period >> 16 & 0x7f) << 20 |
				   (perf_is_op_count(p) ? PERF_CNT_CTL : 0);
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
	perf_put64(w, PERF_ID_OF(s->pmu));
	perf_put64(w, s->has_ip ? s->ip : 0);
	perf_put32(w, s->has_task ? s->tgid : ~0u);
	perf_put32(w, s->has_task ? s->tid : ~0u);
	perf_put64(w, ev->time);
	perf_put64(w, op_field(ev, IBS_OP_FIELD_DC_LIN_AD));
	perf_put32(w, s->cpu);
	perf_put32(w, 0);
	perf_put64(w, p->reach	 ? (__u64)llround(s->weight)
		      : !p->freq ? p->period
		      : whole	 ? ibs_op_period(&s->op)
				 : 0);
	if (p->stacks) {
		perf_put64(w, s->n_stack);
		perf_put(w, s->stack, s->n_stack * sizeof(*s->stack));
	}
	if (op)
		put_op(w, &s->op, p);
	else
		put_raw(w, s->fetch.cpu.caps, s->fetch.reg, s->fetch.present, IBS_FETCH_REG_N);
	perf_put64(w, op_field(ev, IBS_OP_FIELD_DC_MISS_LAT));
	perf_put64(w, op ? data_src(&s->op) : 0);
	perf_put64(w, op_field(ev, IBS_OP_FIELD_DC_PHYS_AD));
	perf_put64(w, s->cgroup_id);
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
	perf_put32(w, m->tgid);
	perf_put32(w, m->tid);
	perf_put64(w, m->start);
	perf_put64(w, m->len);
	perf_put64(w, m->pgoff);
	perf_put(w, build_id, sizeof(build_id));
	perf_put32(w, m->exec ? 5 : 1); /* PROT_READ, PROT_EXEC */
	perf_put32(w, 2);		/* MAP_PRIVATE */
	perf_put_padded(w, m->path, 8);
	finish_event(w, m->tgid, m->tid, ev->time, ~0u);
}

static void add_task(struct perf_writer *w, const struct trace_event *ev)
{
	begin(w, ev->kind == TRACE_FORK ? PERF_RECORD_FORK : PERF_RECORD_EXIT, 0);
	perf_put32(w, ev->fork.tgid);
	perf_put32(w, ev->fork.parent_tgid);
	perf_put32(w, ev->fork.tid);
	perf_put32(w, ev->fork.parent_tid);
	perf_put64(w, ev->time);
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
		perf_put32(w, ev->comm.tgid);
		perf_put32(w, ev->comm.tid);
		perf_put_padded(w, ev->comm.name, 8);
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
		perf_put64(w, ev->cgroup.id);
		perf_put_padded(w, ev->cgroup.path, 8);
		finish_event(w, 0, 0, ev->time, ~0u);
		break;
	case TRACE_LOST:
		begin(w, ev->lost.samples ? PERF_RECORD_LOST_SAMPLES : PERF_RECORD_LOST, 0);
		if (!ev->lost.samples)
			perf_put64(w, PERF_ID_OF(0));
		perf_put64(w, ev->lost.n);
		finish_event(w, 0, 0, ev->time, ev->lost.cpu);
		break;
	case TRACE_RANK:
	case TRACE_REGION:
	case TRACE_SLAB:
	case TRACE_ALLOC:
	case TRACE_FREE:
	case TRACE_SLICE:
	case TRACE_KIND_N: /* perf has no such records */
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
	failed = !w->pipe && write_features(w);
	failed |= ferror(w->f) != 0;
	ret = fclose(w->f) || failed ? -(errno ?: EIO) : 0;
	free(w);
	return ret ? err_set(err, ret, "cannot write: %s", strerror(-ret)) : 0;
}
