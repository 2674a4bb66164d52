// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "pinned.h"

#include <bpf/bpf.h>
#include <errno.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define NAME(id, name, ...) name,

static const char *const names[] = { IBS_PIN_TABLE(NAME) };
static const enum ibs_pin wanted[] = { IBS_PIN_META, IBS_PIN_SERIES, IBS_PIN_OWNERS, IBS_PIN_STATE,
				       IBS_PIN_NAMES };
#define WANTED (sizeof(wanted) / sizeof(wanted[0]))

/* A writer that died leaves an odd number behind: then what is there is taken as it is. */
#define SEQ_TRIES 10000

struct pinned {
	int fd[IBS_PIN_N];
	void *addr[IBS_PIN_N];
	size_t bytes[IBS_PIN_N];
	const struct ibs_meta *meta;
	struct layout layout;
	struct counts counts;
};

static int map_pin(struct pinned *p, enum ibs_pin pin, size_t bytes, struct err *err)
{
	size_t page = sysconf(_SC_PAGESIZE);

	bytes = (bytes + page - 1) / page * page;
	p->addr[pin] = mmap(NULL, bytes, PROT_READ, MAP_SHARED, p->fd[pin], 0);
	if (p->addr[pin] == MAP_FAILED) {
		p->addr[pin] = NULL;
		return err_set(err, -errno, "cannot map the pinned map %s: %s", names[pin],
			       strerror(errno));
	}
	p->bytes[pin] = bytes;
	return 0;
}

static int check_meta(struct pinned *p, struct err *err)
{
	const struct ibs_meta *m = p->addr[IBS_PIN_META];

	if (m->magic != IBS_PIN_MAGIC || m->schema != IBS_PIN_SCHEMA ||
	    m->layout.outcomes != IBS_OUTCOME_N || m->layout.sources != IBS_SRC_N ||
	    m->layout.ops != IBS_OP_KIND_N || m->layout.buckets != IBS_LAT_BUCKETS)
		return err_set(err, -EPROTO,
			       "the collector is of another version of ibscope (%.31s; this is "
			       "%s): install the same of both, and restart the collector",
			       m->magic == IBS_PIN_MAGIC ? m->version : "unknown", IBSCOPE_VERSION);
	p->meta = m;
	return 0;
}

static int map_all(struct pinned *p, struct err *err)
{
	const struct ibs_meta_layout *l;
	int ret = map_pin(p, IBS_PIN_META, sizeof(struct ibs_meta), err) ?: check_meta(p, err);

	if (ret)
		return ret;
	l = &p->meta->layout;
	ret = map_pin(p, IBS_PIN_SERIES,
		      (size_t)l->shards * l->max_slots * l->slot_words * sizeof(__u64), err);
	ret = ret ?: map_pin(p, IBS_PIN_OWNERS, l->max_slots * sizeof(struct ibs_slot_owner), err);
	ret = ret ?: map_pin(p, IBS_PIN_STATE, l->state_bytes, err);
	ret = ret ?: map_pin(p, IBS_PIN_NAMES, l->max_slots * sizeof(struct ibs_slot_name), err);
	if (ret)
		return ret;
	memcpy(p->layout.entry, l->entry, sizeof(p->layout.entry));
	p->layout.words = l->slot_words;
	p->counts = (struct counts){
		.series = p->addr[IBS_PIN_SERIES],
		.owners = p->addr[IBS_PIN_OWNERS],
		.cpus = (void *)((char *)p->addr[IBS_PIN_STATE] + l->cpus_at),
		.control = (void *)((char *)p->addr[IBS_PIN_STATE] + l->control_at),
		.n_cpus = l->n_cpus,
		.shards = l->shards,
		.max_slots = l->max_slots,
		.one_group = !l->by,
		.layout = &p->layout,
	};
	return 0;
}

static int explain(const char *path, const char *dir, int error, struct err *err)
{
	if (error == ENOENT)
		return err_set(err, -ENOENT,
			       "no collector has pinned its maps in %s: start "
			       "`ibscope serve`",
			       dir);
	if (error == EPERM)
		return err_set(err, -EPERM,
			       "cannot open %s: %s; kernels before 5.19 let only "
			       "CAP_BPF read maps: give it that, or take them from the "
			       "collector's socket (--socket)",
			       path, strerror(error));
	if (error == EACCES)
		return err_set(err, -EACCES,
			       "cannot open %s: %s; user %u needs x on every "
			       "directory of that path and r on the file (`ibscope serve "
			       "--pin-mode`), or the collector's socket (--socket)",
			       path, strerror(error), getuid());
	return err_set(err, -error, "cannot open %s: %s", path, strerror(error));
}

static struct pinned *new_pinned(struct err *err)
{
	struct pinned *p = calloc(1, sizeof(*p));

	if (!p)
		err_set(err, -ENOMEM, "out of memory");
	for (int i = 0; p && i < IBS_PIN_N; i++)
		p->fd[i] = -1;
	return p;
}

int pinned_open(const char *dir, struct pinned **out, struct err *err)
{
	LIBBPF_OPTS(bpf_obj_get_opts, opts, .file_flags = BPF_F_RDONLY);
	struct pinned *p = new_pinned(err);
	char path[512];
	int ret = 0;

	if (!p)
		return -ENOMEM;
	for (size_t i = 0; i < WANTED && !ret; i++) {
		snprintf(path, sizeof(path), "%s/%s", dir, names[wanted[i]]);
		p->fd[wanted[i]] = bpf_obj_get_opts(path, &opts);
		if (p->fd[wanted[i]] < 0)
			ret = explain(path, dir, errno, err);
	}
	ret = ret ?: map_all(p, err);
	if (ret) {
		pinned_close(p);
		return ret;
	}
	*out = p;
	return 0;
}

int pinned_from_fds(const int *fds, struct pinned **out, struct err *err)
{
	static const enum ibs_pin order[] = { IBS_PIN_SERIES, IBS_PIN_OWNERS, IBS_PIN_STATE,
					      IBS_PIN_META, IBS_PIN_NAMES };
	struct pinned *p = new_pinned(err);
	int ret = p ? 0 : -ENOMEM;

	for (size_t i = 0; i < WANTED; i++) {
		if (p)
			p->fd[order[i]] = fds[i];
		else
			close(fds[i]);
	}
	ret = ret ?: map_all(p, err);
	if (ret) {
		pinned_close(p);
		return ret;
	}
	*out = p;
	return 0;
}

const struct ibs_meta *pinned_meta(const struct pinned *p)
{
	return p->meta;
}

/* Copy what is written under @seq. */
static void copy_whole(void *to, const void *from, size_t n, const __u32 *seq)
{
	for (int tries = 0; tries < SEQ_TRIES; tries++) {
		__u32 before = __atomic_load_n(seq, __ATOMIC_ACQUIRE);

		memcpy(to, from, n);
		__atomic_thread_fence(__ATOMIC_ACQUIRE);
		if (!(before & 1) && before == __atomic_load_n(seq, __ATOMIC_ACQUIRE))
			return;
		if (tries % 100 == 99)
			sched_yield();
	}
}

void pinned_status(const struct pinned *p, struct ibs_meta_status *out)
{
	copy_whole(out, &p->meta->status, sizeof(*out), &p->meta->seq);
}

const struct counts *pinned_counts(const struct pinned *p)
{
	return &p->counts;
}

int pinned_snapshot(const struct pinned *p, struct snapshot *out, struct err *err)
{
	struct ibs_meta_status st;
	int ret = -EUCLEAN;

	pinned_status(p, &st);
	for (int tries = 0; ret == -EUCLEAN && tries < 3; tries++) {
		memset(out, 0, sizeof(*out));
		ret = counts_read(&p->counts, out, err);
	}
	if (ret)
		return ret;
	out->time_ns = st.time_ns;
	out->ledger.pmu_samples = st.pmu_samples;
	out->ledger.unseen = st.unseen;
	out->ledger.pmu_exact = st.pmu_exact;
	out->pmu = (struct pmu_state){ .cpus = st.cpus,
				       .enabled_ns = st.enabled_ns,
				       .running_ns = st.running_ns,
				       .throttled = st.throttled,
				       .went = st.cpus_went,
				       .came = st.cpus_came };
	return 0;
}

void pinned_name(const struct pinned *p, const struct group *g, struct ibs_slot_name *out)
{
	const struct ibs_slot_name *all = p->addr[IBS_PIN_NAMES];

	copy_whole(out, &all[g->slot], sizeof(*out), &all[g->slot].seq);
	if (out->cgroup_id != g->key.cgroup_id)
		memset(out, 0, sizeof(*out));
	/* whatever a writer does, texts end */
	out->cgroup[sizeof(out->cgroup) - 1] = 0;
	out->name_space[sizeof(out->name_space) - 1] = 0;
	out->pod[sizeof(out->pod) - 1] = 0;
	out->container[sizeof(out->container) - 1] = 0;
}

void pinned_close(struct pinned *p)
{
	if (!p)
		return;
	for (int i = 0; i < IBS_PIN_N; i++) {
		if (p->addr[i])
			munmap(p->addr[i], p->bytes[i]);
		if (p->fd[i] >= 0)
			close(p->fd[i]);
	}
	free(p);
}
