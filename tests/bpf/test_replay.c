// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Replay of random recordings with random selections, against a count that knows nothing of the
 * decision core; and the core in the kernel, with samples of real tasks, against the same core in
 * user space, to the unit and slot by slot. IBSCOPE_SEED chooses other ones.
 */
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include <ibscope/op_fields.h>
#include <ibscope/sim.h>

#include "view/hist.h"
#include "recording/recording.h"
#include "replay/engine.h"
#include "replay/replay.h"
#include "rows/rows.h"
#include "twin_child.h"

#define RECORDINGS 10
#define SELECTIONS 10
#define SAMPLES	   3000
#define COUNT(a)   (sizeof(a) / sizeof((a)[0]))

static __u64 state;

static __u64 draw(void)
{
	return ibs_sim_mix(state++);
}

static unsigned int below(unsigned int n)
{
	return draw() % n;
}

/* --- the world that is recorded --- */

#define BOX "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"

static const struct {
	__u64 id;
	const char *path; /* NULL: not told */
} cgroups[] = {
	{ 1, "/" },	   { 100, "/a" },
	{ 101, "/a/b" },   { 102, "/a/b/c" },
	{ 103, "/ab" },	   { 200, "/d/e-1" },
	{ 201, "/d/e-2" }, { 300, NULL },
	{ 0, NULL },	   { 500, "/system.slice/docker-" BOX ".scope" },
};

static const struct {
	__u32 tgid, tid;
	const char *comm, *later; /* NULL: not told, or never changed */
} threads[] = {
	{ 10, 10, "web", NULL },	 { 10, 11, "web worker", "db" },
	{ 12, 12, "db", NULL },		 { 13, 13, "fifteen bytes !", NULL },
	{ 70000, 70001, NULL, NULL },	 { 4194303, 4194303, "last", NULL },
	{ 5000000, 5000000, "x", NULL }, /* more than any kernel numbers */
};

#define RENAMED_AT (SAMPLES / 2 * 1000ULL)

static const __u32 caps_of[] = { 0x3ff, 0xbff, 0x81bff, 0x9fbff };
static const unsigned int cpus_of[] = { 0, 1, 2, 3, 7, 300 };

struct sample {
	__u64 time;
	unsigned int thread, cgroup, cpu;
	struct ibs_cpu ibs;
	__u64 regs[IBS_OP_REG_FIXED];
};

#define FUNCTIONS 3

static __u32 function_of(void *arg, const struct trace_event *ev)
{
	(void)arg;
	return ev->sample.op.reg[IBS_OP_DATA3] % FUNCTIONS;
}

static const char *name_of(void *arg, __u64 id, enum label l)
{
	static const char *const functions[FUNCTIONS] = { "f0", "f1", "f2" };

	return l == LABEL_SYMBOL ? functions[id] : replay_cgroup_name(arg, id, l);
}

struct world {
	struct sample samples[SAMPLES];
	size_t n;
	char path[64]; /* of the recording */
	int fd;
};

static void make_sample(struct sample *s, size_t i, struct ibs_cpu ibs)
{
	s->time = (i + 1) * 1000;
	s->thread = below(COUNT(threads));
	s->cgroup = below(COUNT(cgroups));
	s->cpu = cpus_of[below(COUNT(cpus_of))];
	s->ibs = ibs;
	ibs_sim_op(7, 0, draw(), ibs.caps, s->regs);
	if (i & 1)
		for (int r = 0; r < IBS_OP_REG_FIXED; r++)
			s->regs[r] = draw();
	else if (i & 2)
		s->regs[IBS_OP_RIP] |= 0xffff800000000000ULL;
}

static void check(int ret, const struct err *err)
{
	if (ret)
		fail_msg("%d: %s", ret, err->text);
}

static void put_names(struct recording *r)
{
	struct err err = {};

	for (size_t i = 0; i < COUNT(cgroups); i++) {
		struct trace_event ev = { .kind = TRACE_CGROUP };

		if (!cgroups[i].path)
			continue;
		ev.cgroup.id = cgroups[i].id;
		ev.cgroup.path = cgroups[i].path;
		check(recording_event(r, &ev, &err), &err);
	}
	for (int later = 0; later < 2; later++) {
		for (size_t i = 0; i < COUNT(threads); i++) {
			struct trace_event ev = { .kind = TRACE_COMM,
						  .time = later ? RENAMED_AT : 1 };

			ev.comm.tgid = threads[i].tgid;
			ev.comm.tid = threads[i].tid;
			ev.comm.name = later ? threads[i].later : threads[i].comm;
			if (ev.comm.name)
				check(recording_event(r, &ev, &err), &err);
		}
	}
}

static void put_raw(struct recording *r, const struct sample *s)
{
	struct ibs_record_raw raw = { .time = s->time,
				      .cgroup_id = cgroups[s->cgroup].id,
				      .tgid = threads[s->thread].tgid,
				      .tid = threads[s->thread].tid,
				      .cpu = s->cpu,
				      .bytes = IBS_OP_RAW_MIN,
				      .caps = s->ibs.caps };
	struct err err = {};

	memcpy(raw.regs, s->regs, sizeof(s->regs));
	check(recording_samples_raw(r, &raw, NULL, 1, &err), &err);
}

/* What of the registers a compact record cannot keep is cut from the sample too. */
static void put_compact(struct recording *r, struct sample *s)
{
	struct ibs_record rec = { .time = s->time,
				  .cgroup_id = cgroups[s->cgroup].id,
				  .tgid = threads[s->thread].tgid,
				  .tid = threads[s->thread].tid,
				  .ip = s->regs[IBS_OP_RIP],
				  .addr = s->regs[IBS_DC_LINADDR],
				  .phys = s->regs[IBS_DC_PHYSADDR],
				  .data3 = s->regs[IBS_OP_DATA3] };
	struct err err = {};

	rec.packed = ibs_record_pack(s->regs[IBS_OP_DATA], s->regs[IBS_OP_DATA2], s->cpu);
	ibs_record_regs(&rec, s->regs);
	check(recording_samples(r, &rec, NULL, 1, &err), &err);
}

/* Of the addresses that samples have here, some belong to no node. */
static const struct memory_range memory[] = {
	{ 0x100000000, 0x100300000, 0 },
	{ 0x100300000, 0x100700000, 7 },
	{ 0x100a00000, 0x100b00000, 1 },
	{ 0x100b00000, 0x200000000, 254 },
};

static struct world *make_world(bool raw)
{
	const __u32 caps = caps_of[below(COUNT(caps_of))];
	const __u32 model = below(2) ? 0x01 : 0x11; /* Zen 3's errata, or Zen 4 */
	struct trace_pmu pmu = { .name = "ibs_op/cnt_ctl=1/", .op = true, .period = 100000 };
	struct trace_info info = { .source = "ibs",
				   .has_cpu = true,
				   .pmu = &pmu,
				   .n_pmus = 1,
				   .full_registers = raw,
				   .memory = memory,
				   .n_memory = COUNT(memory) };
	const struct ledger ledger = { .seen = 5, .outcome[IBS_OUTCOME_FILTERED_SRC] = 5 };
	struct world *w = calloc(1, sizeof(*w));
	struct recording_opts opts = { .info = &info, .compress = true };
	struct recording *r;
	struct err err = {};
	bool mixed = raw && !below(3);

	assert_non_null(w);
	cpu_info_set(&info.cpu, "AuthenticAMD", 0x19, model, caps);
	w->fd = memfd_create("recording", 0);
	assert_true(w->fd >= 0);
	snprintf(w->path, sizeof(w->path), "/proc/self/fd/%d", w->fd);
	opts.fd = w->fd;
	check(recording_create(&opts, &r, &err), &err);
	put_names(r);
	w->n = below(8) ? SAMPLES : below(3);
	for (size_t i = 0; i < w->n; i++) {
		struct ibs_cpu ibs = { .caps = caps, .quirks = info.cpu.quirks };

		if (mixed && below(4) == 0)
			ibs.caps = caps_of[below(COUNT(caps_of))];
		make_sample(&w->samples[i], i, ibs);
		if (raw)
			put_raw(r, &w->samples[i]);
		else
			put_compact(r, &w->samples[i]);
	}
	check(recording_finish(r, &ledger, &err), &err);
	recording_close(r);
	return w;
}

static void free_world(struct world *w)
{
	close(w->fd);
	free(w);
}

/* --- selections, each with a test of its own --- */

static bool field(const struct sample *s, enum ibs_op_field f, __u64 *v)
{
	struct ibs_op_sample op = { .cpu = s->ibs,
				    .present = (1 << IBS_OP_REG_FIXED) - 1,
				    .nregs = IBS_OP_REG_FIXED };

	memcpy(op.reg, s->regs, sizeof(s->regs));
	return ibs_op_field(&op, f, v);
}

static bool is_user(const struct sample *s)
{
	__u64 v;

	return field(s, IBS_OP_FIELD_RIP, &v) && !(v >> 63);
}

static bool is_missed_load(const struct sample *s)
{
	__u64 miss, load;

	return field(s, IBS_OP_FIELD_DC_MISS, &miss) && miss &&
	       field(s, IBS_OP_FIELD_LD_OP, &load) && load;
}

static bool is_slow(const struct sample *s)
{
	__u64 v;

	return (field(s, IBS_OP_FIELD_DC_MISS_LAT, &v) && v > 200) || s->cpu == 2;
}

static bool is_task(const struct sample *s)
{
	return threads[s->thread].tgid != 10 || threads[s->thread].tid == 11;
}

static const struct {
	const char *text;
	bool (*test)(const struct sample *s);
} filters[] = {
	{ "user", is_user },
	{ "dc_miss && ld_op", is_missed_load },
	{ "dc_miss_lat > 200 || cpu == 2", is_slow },
	{ "pid != 10 || tid == 11", is_task },
};

/* What --cgroup is given, and the cgroups that are then in, by their place in the table above. */
static const struct {
	char *args[2];
	unsigned int in;   /* a bit each */
	unsigned int deep; /* of them, those with a least latency of 300 */
	bool containers;   /* of --container */
} cgroup_choices[] = {
	{ { "/a" }, 1 << 1 | 1 << 2 | 1 << 3, 0 },
	{ { "/" }, 0x7f | 1 << 9, 0 },
	{ { "/a", "!/a/b" }, 1 << 1, 0 },
	{ { "!/a/b" }, (0x7f & ~(1 << 2 | 1 << 3)) | 1 << 7 | 1 << 9, 0 },
	{ { "/d" }, 1 << 5 | 1 << 6, 0 },
	{ { "/d/e-*" }, 1 << 5 | 1 << 6, 0 },
	{ { "/a,/a/b/c:300" }, 1 << 1 | 1 << 2 | 1 << 3, 1 << 3 },
	{ { "/*/b" }, 1 << 2 | 1 << 3, 0 },
	{ { "101" }, 1 << 2 | 1 << 3, 0 },
	{ { "01234567" }, 1 << 9, 0, .containers = true },
	{ { "0123*:300" }, 1 << 9, 1 << 9, .containers = true },
	{ { "!" BOX }, 0x7f | 1 << 7, 0, .containers = true },
	{ { "300" }, 1 << 7, 0 },
};

struct choice {
	struct replay_opts opts;
	unsigned int labels;
	__u32 pids[2], tids[2];
	const char *comms[2];
	struct cpulist cpus;
	struct filter filter;
	int filter_nr, cgroup_nr; /* -1: none */
};

/* That of one of the samples, so that edges are met; or @otherwise. */
static __u32 a_latency(const struct world *w, enum ibs_metric metric, __u32 otherwise)
{
	for (int tries = 0; w->n && tries < 100; tries++) {
		const struct sample *s = &w->samples[2 * below(w->n / 2 + 1) % w->n];
		__u64 data3 = s->regs[IBS_OP_DATA3];

		if (ibs_op_metric_valid(metric, s->ibs.caps, data3) &&
		    ibs_op_metric(metric, s->regs, data3))
			return ibs_op_metric(metric, s->regs, data3);
	}
	return otherwise;
}

static void choose_cgroups(struct choice *c)
{
	char *const *args = cgroup_choices[c->cgroup_nr].args;
	size_t n = 1 + (args[1] != NULL);

	if (cgroup_choices[c->cgroup_nr].containers) {
		c->opts.containers = args;
		c->opts.n_containers = n;
	} else {
		c->opts.cgroups = args;
		c->opts.n_cgroups = n;
	}
}

static void choose(struct choice *c, const struct world *w)
{
	static const char *const comms[] = { "web", "db", "web worker", "nobody",
					     "fifteen bytes !" };
	struct selection *sel = &c->opts.sel;
	struct err err = {};

	memset(c, 0, sizeof(*c));
	c->filter_nr = c->cgroup_nr = -1;
	c->opts.metric = below(2) ? IBS_METRIC_DC_MISS_LAT : below(IBS_OP_METRIC_N);
	if (!below(3)) {
		c->pids[0] = threads[below(COUNT(threads) - 1)].tgid;
		c->pids[1] = threads[below(COUNT(threads) - 1)].tgid;
		sel->processes = (struct selected_pids){ c->pids, 1 + below(2), below(2) };
	}
	if (!below(4)) {
		c->tids[0] = threads[below(COUNT(threads) - 1)].tid;
		c->tids[1] = threads[below(COUNT(threads) - 1)].tid;
		sel->threads = (struct selected_pids){ c->tids, 1 + below(2), false };
	}
	if (!below(3)) {
		c->comms[0] = comms[below(COUNT(comms))];
		c->comms[1] = comms[below(COUNT(comms))];
		sel->comms = c->comms;
		sel->n_comms = 1 + below(2);
		sel->comms_but = below(2);
	}
	if (!below(3))
		sel->op_mask = 1 + below((1 << IBS_OP_KIND_N) - 1);
	if (!below(3))
		sel->src_mask = 1 + below((1 << IBS_SRC_N) - 1);
	if (!below(4))
		sel->min_lat = a_latency(w, c->opts.metric, 1 + below(500));
	if (!below(4))
		sel->max_lat = a_latency(w, c->opts.metric, 500 + below(1000));
	if (sel->max_lat && sel->max_lat < sel->min_lat)
		sel->max_lat = sel->min_lat;
	if (!below(3)) {
		for (int i = 0; i < 3; i++)
			cpulist_add(&c->cpus, cpus_of[below(COUNT(cpus_of))]);
		c->opts.cpus = &c->cpus;
	}
	if (!below(3)) {
		c->filter_nr = below(COUNT(filters));
		check(filter_parse(filters[c->filter_nr].text, &c->filter, &err), &err);
		c->opts.filter = &c->filter;
	}
	if (!below(2)) {
		/* the last is known by its samples alone */
		c->cgroup_nr = below(COUNT(cgroup_choices) - (w->n < SAMPLES));
		choose_cgroups(c);
	}
	c->labels = below(2) ? LABELS_DEFAULT : draw() & ((1 << LABEL_N) - 1);
	c->labels &= ~(1U << LABEL_CCX | 1U << LABEL_NODE | 1U << LABEL_DISTANCE |
		       1U << LABEL_SLAB | LABELS_FETCH);
	c->opts.by = labels_by(c->labels);
	c->opts.symbol = function_of;
	c->opts.max_groups = below(4) ? 512 : 1 + below(8);
}

/* --- the count that knows neither --- */

struct counted {
	char labels[256];
	struct series s;
	__u64 buckets[IBS_LAT_BUCKETS];
};

struct tally {
	struct counted rows[4096];
	size_t n;
	__u64 seen, outcome[IBS_OUTCOME_N];
};

static bool listed(const __u32 *pids, size_t n, __u32 pid)
{
	for (size_t i = 0; i < n; i++)
		if (pids[i] == pid)
			return true;
	return false;
}

static const char *comm_of(const struct sample *s)
{
	const char *later = threads[s->thread].later;

	return later && s->time >= RENAMED_AT ? later : threads[s->thread].comm;
}

static bool comm_in(const struct selection *sel, const char *comm)
{
	if (!comm)
		return false;
	for (size_t i = 0; i < sel->n_comms; i++)
		if (!strcmp(sel->comms[i], comm))
			return !sel->comms_but;
	return sel->comms_but;
}

static enum ibs_outcome judge(const struct choice *c, const struct sample *s)
{
	const struct selection *sel = &c->opts.sel;
	__u32 tgid = threads[s->thread].tgid, tid = threads[s->thread].tid, min = sel->min_lat;
	enum ibs_metric metric = c->opts.metric;
	__u64 data3 = s->regs[IBS_OP_DATA3];

	if (sel->processes.n &&
	    listed(sel->processes.pids, sel->processes.n, tgid) == sel->processes.but)
		return IBS_OUTCOME_FILTERED_PID;
	if (sel->threads.n && !listed(sel->threads.pids, sel->threads.n, tid))
		return IBS_OUTCOME_FILTERED_TID;
	if (sel->n_comms && !comm_in(sel, comm_of(s)))
		return IBS_OUTCOME_FILTERED_COMM;
	if (c->cgroup_nr >= 0) {
		if (!(cgroup_choices[c->cgroup_nr].in >> s->cgroup & 1))
			return IBS_OUTCOME_FILTERED_CGROUP;
		if (cgroup_choices[c->cgroup_nr].deep >> s->cgroup & 1)
			min = 300;
	}
	if (min || sel->max_lat) {
		__u32 lat = ibs_op_metric(metric, s->regs, data3);

		if (!ibs_op_metric_valid(metric, s->ibs.caps, data3) || lat < min ||
		    (sel->max_lat && lat > sel->max_lat))
			return IBS_OUTCOME_FILTERED_LAT;
	}
	if (sel->op_mask && !(sel->op_mask >> ibs_op_kind(s->regs[IBS_OP_DATA], data3) & 1))
		return IBS_OUTCOME_FILTERED_OP;
	if (sel->src_mask && !(sel->src_mask >> ibs_op_src(s->ibs, s->regs) & 1))
		return IBS_OUTCOME_FILTERED_SRC;
	if (c->filter_nr >= 0 && !filters[c->filter_nr].test(s))
		return IBS_OUTCOME_FILTERED_EXPR;
	return IBS_OUTCOME_AGGREGATED;
}

static const char *mode_of(const struct sample *s)
{
	__u64 v;

	if (!field(s, IBS_OP_FIELD_RIP, &v))
		return "unknown";
	return v >> 63 ? "kernel" : "user";
}

static bool cgroup_label(int l)
{
	return l == LABEL_CGROUP || l == LABEL_CONTAINER || l == LABEL_POD;
}

static const char *memory_node_of(const struct sample *s, char *buf, size_t size)
{
	int node = ibs_op_phys_valid(s->ibs.caps, s->regs)
			   ? memory_node(memory, COUNT(memory), s->regs[IBS_DC_PHYSADDR])
			   : -1;

	snprintf(buf, size, "%d", node);
	return node < 0 ? "unknown" : buf;
}

static void label_text(const struct choice *c, const struct sample *s, char *out, size_t size)
{
	const char *comm = comm_of(s), *path = cgroups[s->cgroup].path;
	size_t n = 0;

	*out = 0;
	for (int l = 0; l < LABEL_N; l++) {
		char text[128], node[16];

		if (!(c->labels >> l & 1))
			continue;
		if (cgroup_label(l) && !path)
			snprintf(text, sizeof(text), cgroups[s->cgroup].id ? "#%llu" : "unknown",
				 (unsigned long long)cgroups[s->cgroup].id);
		else if (l == LABEL_CGROUP)
			snprintf(text, sizeof(text), "%s", path);
		else if (cgroup_label(l))
			snprintf(text, sizeof(text), "%.12s",
				 l == LABEL_CONTAINER && strstr(path, BOX) ? BOX : "");
		else if (l == LABEL_PID)
			snprintf(text, sizeof(text), "%u", threads[s->thread].tgid);
		else if (l == LABEL_TID)
			snprintf(text, sizeof(text), "%u", threads[s->thread].tid);
		else if (l == LABEL_COMM)
			snprintf(text, sizeof(text), "%s", comm ?: "");
		else if (l == LABEL_CPU)
			snprintf(text, sizeof(text), "%u", s->cpu);
		else if (l == LABEL_SYMBOL)
			snprintf(text, sizeof(text), "f%llu",
				 (unsigned long long)s->regs[IBS_OP_DATA3] % FUNCTIONS);
		else if (l == LABEL_MODE)
			snprintf(text, sizeof(text), "%s", mode_of(s));
		else if (l == LABEL_MEM_NODE)
			snprintf(text, sizeof(text), "%s", memory_node_of(s, node, sizeof(node)));
		else if (l == LABEL_SRC)
			snprintf(text, sizeof(text), "%s", src_name(ibs_op_src(s->ibs, s->regs)));
		else
			snprintf(text, sizeof(text), "%s",
				 op_kind_name(
					 ibs_op_kind(s->regs[IBS_OP_DATA], s->regs[IBS_OP_DATA3])));
		n += snprintf(out + n, size - n, "%s|", text);
	}
}

static struct counted *find_row(struct tally *t, const char *labels, bool make)
{
	for (size_t i = 0; i < t->n; i++)
		if (!strcmp(t->rows[i].labels, labels))
			return &t->rows[i];
	if (!make)
		return NULL;
	assert_true(t->n < COUNT(t->rows));
	memset(&t->rows[t->n], 0, sizeof(t->rows[0]));
	strcpy(t->rows[t->n].labels, labels);
	return &t->rows[t->n++];
}

static void count_all(const struct choice *c, const struct world *w, struct tally *t)
{
	enum ibs_metric metric = c->opts.metric;
	struct counted *row;
	char labels[256];

	t->n = t->seen = 0;
	memset(t->outcome, 0, sizeof(t->outcome));
	for (size_t i = 0; i < w->n; i++) {
		const struct sample *s = &w->samples[i];
		enum ibs_outcome out;

		if (c->opts.cpus && !cpulist_has(c->opts.cpus, s->cpu))
			continue;
		out = judge(c, s);
		t->seen++;
		t->outcome[out]++;
		if (out != IBS_OUTCOME_AGGREGATED)
			continue;
		label_text(c, s, labels, sizeof(labels));
		row = find_row(t, labels, true);
		row->s.samples++;
		if (ibs_op_metric_valid(metric, s->ibs.caps, s->regs[IBS_OP_DATA3])) {
			__u32 lat = ibs_op_metric(metric, s->regs, s->regs[IBS_OP_DATA3]);

			row->s.valid++;
			row->s.sum += lat;
			row->buckets[ibs_lat_bucket(lat)]++;
		}
	}
}

/* --- the comparison --- */

/* A replay as it is printed; and, if @rows is not NULL, as it is. */
static char *replayed(const struct world *w, const struct choice *c, struct rows *rows,
		      struct snapshot *snap)
{
	struct hist_view view = { .opts.format = FORMAT_JSON };
	struct hist_info info = { .source = "replay", .event = "e", .metric = c->opts.metric };
	struct trace *t = NULL;
	struct replay *r = NULL;
	struct err err = {};
	char *text = NULL;
	size_t len;
	FILE *f = open_memstream(&text, &len);

	check(trace_open(w->path, &t, &err), &err);
	check(replay_open(t, &c->opts, &r, &err), &err);
	check(replay_run(r, &err), &err);
	check(replay_snapshot(r, snap, &err), &err);
	assert_int_equal(ledger_residual(&snap->ledger), 0);
	rows_build(snap, c->labels, name_of, r, rows);
	check(hist_print(f, &view, &info, snap, c->labels, name_of, r, &err), &err);
	view.opts.format = FORMAT_CSV;
	check(hist_print(f, &view, &info, snap, c->labels, name_of, r, &err), &err);
	fclose(f);
	assert_true(trace_end(t)->whole);
	assert_int_equal(trace_end(t)->ledger.seen, 5);
	replay_close(r);
	trace_close(t);
	return text;
}

static void compare_rows(const struct rows *rows, struct tally *t)
{
	size_t other = 0;

	for (size_t i = 0; i < rows->n; i++) {
		const struct row *r = &rows->row[i];
		const struct counted *want;
		char labels[256] = "";
		size_t n = 0;

		for (int l = 0; l < LABEL_N; l++)
			if (r->label[l])
				n += snprintf(labels + n, sizeof(labels) - n, "%s|", r->label[l]);
		want = find_row(t, labels, false);
		if (!want)
			fail_msg("row '%s' is not in the naive count", labels);
		assert_int_equal(r->series.samples, want->s.samples);
		assert_int_equal(r->series.valid, want->s.valid);
		assert_int_equal(r->series.sum, want->s.sum);
		if (want->s.valid)
			assert_memory_equal(r->series.buckets, want->buckets,
					    sizeof(want->buckets));
		other++;
	}
	assert_int_equal(other, t->n);
}

static void test_random(void **state_)
{
	static struct tally tally;
	unsigned int compared = 0, nonempty = 0;

	(void)state_;
	for (int i = 0; i < RECORDINGS; i++) {
		struct world *w = make_world(i & 1);

		for (int j = 0; j < SELECTIONS; j++) {
			struct snapshot snap;
			struct rows rows;
			struct choice c;

			choose(&c, w);
			free(replayed(w, &c, &rows, &snap));
			count_all(&c, w, &tally);
			assert_int_equal(snap.ledger.seen, tally.seen);
			assert_memory_equal(snap.ledger.outcome, tally.outcome,
					    sizeof(tally.outcome));
			if (!snap.n_groups || !snap.groups[0].other) {
				compare_rows(&rows, &tally);
				nonempty += rows.n > 0;
			}
			compared++;
			rows_free(&rows);
			snapshot_free(&snap);
			filter_free(&c.filter);
		}
		free_world(w);
	}
	print_message("%u replays compared, %u with rows\n", compared, nonempty);
	assert_true(compared >= RECORDINGS * SELECTIONS);
	assert_true(nonempty >= compared / 3);
}

/* More cgroups than are remembered: what finds no room is other, and nothing is lost. */
static void test_many_cgroups(void **state_)
{
	enum { MANY = 17000 };
	struct trace_pmu pmu = { .name = "ibs_op//", .op = true };
	struct trace_info info = { .source = "ibs", .has_cpu = true, .pmu = &pmu, .n_pmus = 1 };
	struct recording_opts opts = { .info = &info };
	struct world w = {};
	struct recording *r;
	struct err err = {};

	(void)state_;
	cpu_info_set(&info.cpu, "AuthenticAMD", 0x19, 0x11, 0xbff);
	w.fd = opts.fd = memfd_create("recording", 0);
	snprintf(w.path, sizeof(w.path), "/proc/self/fd/%d", w.fd);
	check(recording_create(&opts, &r, &err), &err);
	for (int i = 0; i < 2 * MANY; i++) {
		struct ibs_record rec = { .time = i + 1, .cgroup_id = 1000 + i % MANY };
		__u64 regs[IBS_OP_REG_FIXED];

		ibs_sim_op(9, 0, i, 0xbff, regs);
		rec.data3 = regs[IBS_OP_DATA3];
		rec.packed = ibs_record_pack(regs[IBS_OP_DATA], regs[IBS_OP_DATA2], 0);
		check(recording_samples(r, &rec, NULL, 1, &err), &err);
	}
	check(recording_finish(r, &(struct ledger){ .seen = 5, .outcome[0] = 5 }, &err), &err);
	recording_close(r);
	for (__u32 groups = 20; groups <= 1000; groups += 980) {
		struct choice c = { .labels = LABELS_DEFAULT,
				    .opts.by = IBS_BY_CGROUP,
				    .opts.max_groups = groups };

		struct snapshot snap;
		struct rows rows;

		free(replayed(&w, &c, &rows, &snap));
		assert_int_equal(snap.ledger.outcome[IBS_OUTCOME_AGGREGATED], 2 * MANY);
		assert_int_equal(snap.n_groups, groups + 1);
		rows_free(&rows);
		snapshot_free(&snap);
	}
	close(w.fd);
}

static int refused(const struct world *w, const struct replay_opts *opts, struct err *err)
{
	struct trace *t = NULL;
	struct replay *r = NULL;
	int ret;

	check(trace_open(w->path, &t, err), err);
	ret = replay_open(t, opts, &r, err);
	if (!ret)
		ret = replay_run(r, err);
	replay_close(r);
	trace_close(t);
	return ret;
}

static void test_refusals(void **state_)
{
	struct world *w = make_world(false);
	struct replay_opts opts = {};
	struct filter filter;
	struct err err = {};
	char *args[1];

	(void)state_;
	opts.cgroups = args;
	opts.n_cgroups = 1;
	args[0] = "/no/such";
	assert_int_equal(refused(w, &opts, &err), -ENOENT);
	assert_non_null(strstr(err.text, "/no/such"));
	args[0] = "/no*"; /* a pattern may match nothing */
	assert_int_equal(refused(w, &opts, &err), 0);
	args[0] = "!/a/x";
	assert_int_equal(refused(w, &opts, &err), -ENOENT);
	args[0] = "/a:70000";
	assert_int_equal(refused(w, &opts, &err), -ERANGE);
	args[0] = ",";
	assert_int_equal(refused(w, &opts, &err), -EINVAL);
	args[0] = "77";
	assert_int_equal(refused(w, &opts, &err), -ENOENT);
	opts.n_cgroups = 0;
	check(filter_parse("uid == 0", &filter, &err), &err);
	opts.filter = &filter;
	assert_int_equal(refused(w, &opts, &err), -ENODATA);
	assert_non_null(strstr(err.text, "uid"));
	filter_free(&filter);
	free_world(w);
}

/* --- the same core in the kernel --- */

#define WORKERS	   3
#define BATCHES	   24
#define BATCH	   64
#define TWIN_RUNS  25
#define CGROUPS	   5
#define STACK_SIZE (256 << 10)

/* A process of ours that shares our memory, and runs samples when it is asked to. */
struct worker {
	pid_t pid;
	int ask[2], done[2];
	/* what it is asked for */
	struct sampler *s;
	char cgroup[640];
	char comm[16];
	unsigned int cpu;
	const struct ibs_twin_sample *samples;
	struct err err;
	int ret;
	char stack[STACK_SIZE] __attribute__((aligned(64)));
};

static struct worker *workers;
static cpu_set_t cpus;

static int work(void *arg)
{
	struct worker *w = arg;
	cpu_set_t one;
	char c;

	while (read(w->ask[0], &c, 1) == 1) {
		CPU_ZERO(&one);
		CPU_SET(w->cpu, &one);
		w->ret = sched_setaffinity(0, sizeof(one), &one) || !enter_cgroup(w->cgroup) ||
			 prctl(PR_SET_NAME, w->comm) ||
			 twin_run(w->s, w->samples, BATCH, NULL, &w->err);
		if (write(w->done[1], &c, 1) != 1)
			break;
	}
	_exit(0);
}

static int workers_up(void **state_)
{
	if (children_up(state_) || sched_getaffinity(0, sizeof(cpus), &cpus))
		return -1;
	workers = calloc(WORKERS, sizeof(*workers));
	for (int i = 0; i < WORKERS; i++) {
		struct worker *w = &workers[i];

		if (pipe(w->ask) || pipe(w->done))
			return -1;
		w->pid = clone(work, w->stack + STACK_SIZE, CLONE_VM | CLONE_FILES | SIGCHLD, w);
		if (w->pid < 0)
			return -1;
	}
	return 0;
}

static int workers_down(void **state_)
{
	for (int i = 0; i < WORKERS; i++) {
		kill(workers[i].pid, SIGKILL);
		waitpid(workers[i].pid, NULL, 0);
	}
	free(workers);
	return children_down(state_);
}

static unsigned int a_cpu(void)
{
	unsigned int cpu;

	do
		cpu = below(64);
	while (!CPU_ISSET(cpu, &cpus));
	return cpu;
}

struct twin_choice {
	struct sampler_opts opts;
	__u32 pids[2], tids[2];
	const char *comms[2];
	struct selected_cgroup cgroups[2];
	struct filter filter;
};

static const char *const twin_comms[] = { "web", "db", "fifteen bytes !" };

static void choose_twin(struct twin_choice *c, const __u64 *ids)
{
	static const __u32 labels[] = { IBS_BY_CGROUP, IBS_BY_PID,  IBS_BY_TID,	    IBS_BY_CPU,
					IBS_BY_MODE,   IBS_BY_COMM, IBS_BY_MEM_NODE };
	struct selection *sel = &c->opts.sel;
	struct err err = {};

	memset(c, 0, sizeof(*c));
	c->opts.source = SAMPLER_TWIN;
	c->opts.memory = memory;
	c->opts.n_memory = COUNT(memory);
	c->opts.ibs.caps = caps_of[below(COUNT(caps_of))];
	c->opts.metric = below(2) ? IBS_METRIC_DC_MISS_LAT : below(IBS_OP_METRIC_N);
	c->opts.max_groups = below(2) ? 64 : 1 + below(4);
	c->opts.count_ops = below(2);
	c->opts.tlb = below(2);
	for (unsigned int i = 0; i < COUNT(labels); i++)
		c->opts.by |= below(3) ? 0 : labels[i];
	if (!below(3))
		c->opts.by = IBS_BY_CGROUP;
	for (int i = 0; i < 2; i++) {
		c->pids[i] = c->tids[i] = workers[below(WORKERS)].pid;
		c->comms[i] = twin_comms[below(COUNT(twin_comms))];
		c->cgroups[i].id = ids[below(CGROUPS / 2) + i * (CGROUPS / 2)];
		c->cgroups[i].out = below(2);
		c->cgroups[i].min_lat = below(3) || c->cgroups[i].out ? 0 : 1 + below(500);
	}
	if (!below(4))
		sel->processes = (struct selected_pids){ c->pids, 1 + below(2), below(2) };
	if (!below(4))
		sel->threads = (struct selected_pids){ c->tids, 1 + below(2), false };
	if (!below(3)) {
		sel->comms = c->comms;
		sel->n_comms = 1 + below(2);
		sel->comms_but = below(2);
	}
	if (!below(3)) {
		sel->cgroups = c->cgroups;
		sel->n_cgroups = 1 + below(2);
	}
	if (!below(4))
		sel->op_mask = 1 + below((1 << IBS_OP_KIND_N) - 1);
	if (!below(4))
		sel->src_mask = 1 + below((1 << IBS_SRC_N) - 1);
	if (!below(4))
		sel->min_lat = 1 + below(300);
	if (!below(4))
		sel->max_lat = 300 + below(1000);
	if (!below(3)) {
		check(filter_parse(filters[below(COUNT(filters))].text, &c->filter, &err), &err);
		sel->filter = &c->filter.prog;
	}
}

static void same_group(const struct group *a, const struct group *b)
{
	assert_int_equal(a->slot, b->slot);
	assert_memory_equal(&a->key, &b->key, sizeof(a->key));
	assert_memory_equal(&a->tlb, &b->tlb, sizeof(a->tlb));
	assert_int_equal(a->n_series, b->n_series);
	for (size_t i = 0; i < a->n_series; i++) {
		struct series x = a->series[i], y = b->series[i];

		assert_int_equal(!x.buckets, !y.buckets);
		if (x.buckets)
			assert_memory_equal(x.buckets, y.buckets,
					    IBS_LAT_BUCKETS * sizeof(*x.buckets));
		x.buckets = y.buckets = NULL;
		assert_memory_equal(&x, &y, sizeof(x));
	}
}

static void run_batch(struct worker *w, struct engine *e, __u32 caps, __u64 cgroup_id)
{
	static struct ibs_twin_sample samples[BATCH];
	struct task task = { .pid_tgid = (__u64)w->pid << 32 | w->pid, .cgroup_id = cgroup_id };
	char c = 0;

	for (size_t i = 0; i < BATCH; i++) {
		struct sample one;

		make_sample(&one, draw() & 0xff, (struct ibs_cpu){ .caps = caps });
		memcpy(samples[i].regs, one.regs, sizeof(one.regs));
		samples[i].period = 1 + below(100000);
	}
	w->samples = samples;
	w->cpu = task.cpu = a_cpu();
	strcpy(w->comm, twin_comms[below(COUNT(twin_comms))]);
	memcpy(task.comm, w->comm, strlen(w->comm));
	assert_int_equal(write(w->ask[1], &c, 1), 1);
	assert_int_equal(read(w->done[0], &c, 1), 1);
	check(w->ret, &w->err);
	for (size_t i = 0; i < BATCH; i++)
		engine_run(e, samples[i].regs, samples[i].period, &task, NULL);
}

static void test_twin(void **state_)
{
	__u64 ids[CGROUPS], selected = 0;
	char dirs[CGROUPS][640];

	(void)state_;
	if (!can_run())
		skip();
	need_cgroups();
	for (int i = 0; i < CGROUPS; i++)
		ids[i] = make_cgroup((const char *[]){ "a", "b", "c", "d", "e" }[i], dirs[i]);
	for (int run = 0; run < TWIN_RUNS; run++) {
		struct snapshot kernel, user;
		struct twin_choice c;
		struct engine_opts eo;
		struct engine *e;
		struct sampler *s;
		struct err err = {};

		choose_twin(&c, ids);
		eo = (struct engine_opts){ .ibs = c.opts.ibs,
					   .metric = c.opts.metric,
					   .by = c.opts.by,
					   .max_groups = c.opts.max_groups,
					   .sel = &c.opts.sel,
					   .count_ops = c.opts.count_ops,
					   .tlb = c.opts.tlb,
					   .memory = c.opts.memory,
					   .n_memory = c.opts.n_memory };
		s = open_twin(&c.opts);
		check(engine_open(&eo, &e, &err), &err);
		for (int b = 0; b < BATCHES; b++) {
			struct worker *w = &workers[below(WORKERS)];
			unsigned int in = below(CGROUPS);

			w->s = s;
			strcpy(w->cgroup, dirs[in]);
			run_batch(w, e, c.opts.ibs.caps, ids[in]);
		}
		check(sampler_snapshot(s, &kernel, &err), &err);
		check(engine_snapshot(e, &user, &err), &err);
		assert_memory_equal(kernel.ledger.outcome, user.ledger.outcome,
				    sizeof(user.ledger.outcome));
		assert_int_equal(kernel.ledger.seen, BATCHES * BATCH);
		assert_int_equal(kernel.n_groups, user.n_groups);
		for (size_t i = 0; i < user.n_groups; i++)
			same_group(&kernel.groups[i], &user.groups[i]);
		selected += user.ledger.outcome[IBS_OUTCOME_AGGREGATED];
		snapshot_free(&kernel);
		snapshot_free(&user);
		filter_free(&c.filter);
		engine_close(e);
		sampler_close(s);
	}
	print_message("%d selections, %llu samples selected\n", TWIN_RUNS, selected);
	assert_true(selected > TWIN_RUNS * BATCH);
}

static int setup(void **state_)
{
	const char *seed = getenv("IBSCOPE_SEED");

	(void)state_;
	state = seed ? strtoull(seed, NULL, 0) : 4;
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_refusals),
		cmocka_unit_test(test_many_cgroups),
		cmocka_unit_test(test_random),
		cmocka_unit_test_setup_teardown(test_twin, workers_up, workers_down),
	};

	return cmocka_run_group_tests(tests, setup, NULL);
}
