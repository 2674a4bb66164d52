// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "pinned.h"

#include "base/trusted_dir.h"

#include <bpf/bpf.h>
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#define NAME(id, name, ...) name,

static const char *const names[] = { IBS_PIN_TABLE(NAME) };
static const enum ibs_pin wanted[] = { IBS_PIN_META, IBS_PIN_SERIES, IBS_PIN_OWNERS, IBS_PIN_STATE,
				       IBS_PIN_NAMES };
#define WANTED (sizeof(wanted) / sizeof(wanted[0]))

/* A writer that died leaves an odd number: after these tries the data are used as they are. */
#define SEQ_TRIES     10000
#define LOOK_UP_TRIES 10

/*
 * The kernel lets only writers map a BPF map (a shared mapping of a read-only file counts as
 * private). Other readers use lookups: `addr` is then a copy, for SERIES of one slot.
 */
struct pinned {
	int fd[IBS_PIN_N];
	void *addr[IBS_PIN_N];
	size_t bytes[IBS_PIN_N]; /* of mappings */
	size_t value[IBS_PIN_N], entries[IBS_PIN_N];
	bool copies;
	struct pinned *second; /* NULL: only one event */
	struct stat meta_file;
	const struct ibs_meta *meta; /* for its layout; in a copy the rest is stale */
	struct ibs_meta_layout meta_layout;
	struct layout layout;
	struct counts counts;
};

static int look_up(const struct pinned *p, enum ibs_pin pin, __u32 key, void *value)
{
	return bpf_map_lookup_elem(p->fd[pin], &key, value) ? -errno : 0;
}

/* Copy all entries by one call (v5.6). */
static int copy_batch(const struct pinned *p, enum ibs_pin pin)
{
	__u32 n = p->entries[pin], next, *keys = xcalloc(n, sizeof(*keys));
	/* ENOENT means that the end of the map was reached */
	int ret = bpf_map_lookup_batch(p->fd[pin], NULL, &next, keys, p->addr[pin], &n, NULL) &&
				  errno != ENOENT
			  ? -1
			  : 0;

	free(keys);
	return ret ?: n == p->entries[pin] ? 0 : -1;
}

static int copy_entries(const struct pinned *p, enum ibs_pin pin)
{
	int ret = 0;

	if (p->entries[pin] > 1 && !copy_batch(p, pin))
		return 0;
	for (size_t i = 0; i < p->entries[pin] && !ret; i++)
		ret = look_up(p, pin, i, (char *)p->addr[pin] + i * p->value[pin]);
	return ret;
}

static int copy_pin(struct pinned *p, enum ibs_pin pin, struct err *err)
{
	size_t align = _Alignof(struct ibs_state), n = pin == IBS_PIN_SERIES ? 1 : p->entries[pin];
	int ret;

	if (pin == IBS_PIN_NAMES)
		return 0;
	/* the strictest alignment of all */
	p->addr[pin] = aligned_alloc(align, (n * p->value[pin] + align - 1) / align * align);
	if (!p->addr[pin])
		out_of_memory();
	memset(p->addr[pin], 0, n * p->value[pin]);
	ret = pin == IBS_PIN_SERIES ? 0 : copy_entries(p, pin);
	if (ret)
		return err_set(err, ret, "cannot read the pinned map %s: %s", names[pin],
			       strerror(-ret));
	return 0;
}

/* A lookup writes the map's value size, whatever the buffer's size. */
static int check_shape(const struct pinned *p, enum ibs_pin pin, size_t value, size_t entries,
		       struct err *err)
{
	struct bpf_map_info info = {};
	__u32 len = sizeof(info);

	if (bpf_obj_get_info_by_fd(p->fd[pin], &info, &len))
		return err_set(err, -errno, "cannot inspect the pinned map %s: %s", names[pin],
			       strerror(errno));
	if (info.key_size != sizeof(__u32) || info.value_size > value || info.max_entries < entries)
		return err_set(err, -EPROTO,
			       "the collector's map %s has %u entries of %u bytes, where this "
			       "program (%s, schema %u) reads %zu of %zu: install the same "
			       "version of both, and restart the collector",
			       names[pin], info.max_entries, info.value_size, IBSCOPE_VERSION,
			       IBS_PIN_SCHEMA, entries, value);
	return 0;
}

/* @value: bytes of an entry, a multiple of 8 */
static int map_pin(struct pinned *p, enum ibs_pin pin, size_t value, size_t entries,
		   struct err *err)
{
	size_t page = sysconf(_SC_PAGESIZE), bytes = (value * entries + page - 1) / page * page;
	int ret = check_shape(p, pin, value, entries, err);

	if (ret)
		return ret;
	p->value[pin] = value;
	p->entries[pin] = entries;
	if (p->copies)
		return copy_pin(p, pin, err);
	p->addr[pin] = mmap(NULL, bytes, PROT_READ, MAP_SHARED, p->fd[pin], 0);
	if (p->addr[pin] == MAP_FAILED) {
		p->addr[pin] = NULL;
		return err_set(err, -errno, "cannot map the pinned map %s: %s", names[pin],
			       strerror(errno));
	}
	p->bytes[pin] = bytes;
	/* the mapping needs no file, and without a file nobody can write */
	close(p->fd[pin]);
	p->fd[pin] = -1;
	return 0;
}

/* Copy the parts that change again; names are read one by one. */
static int refresh(void *arg)
{
	const struct pinned *p = arg;

	return copy_entries(p, IBS_PIN_STATE) ?: copy_entries(p, IBS_PIN_OWNERS);
}

static const __u64 *read_slot(void *arg, __u32 shard, __u32 slot)
{
	const struct pinned *p = arg;
	__u32 key = shard * p->counts.max_slots + slot;

	return look_up(p, IBS_PIN_SERIES, key, p->addr[IBS_PIN_SERIES]) ? NULL
									: p->addr[IBS_PIN_SERIES];
}

/* True if a pair's words lie within a slot, and its kind and source have names. */
static bool entry_ok(const struct ibs_meta_layout *l, unsigned int pair)
{
	__u32 entry = l->entry[pair], word = entry & IBS_LAYOUT_WORD;

	return word < IBS_LAYOUT_FIRST ||
	       (word + (entry & IBS_LAYOUT_HIST ? IBS_HIST_WORDS : IBS_PLAIN_WORDS) <=
			l->slot_words &&
		pair % IBS_LAYOUT_OPS < layout_ops(l->metric) &&
		pair / IBS_LAYOUT_OPS < layout_sources(l->metric));
}

bool pinned_layout_ok(const struct ibs_meta_layout *l)
{
	for (unsigned int pair = 0; pair < IBS_LAYOUT_ENTRIES; pair++)
		if (!entry_ok(l, pair))
			return false;
	return l->n_cpus && l->outcomes <= IBS_OUTCOME_N && l->shards && l->max_slots > 1 &&
	       (__u64)l->shards * l->max_slots <= UINT32_MAX && l->slot_words >= IBS_TLB_WORDS &&
	       l->slot_words <= IBS_LAYOUT_WORD + IBS_HIST_REACH && l->metric < IBS_METRIC_N &&
	       sizeof(struct ibs_state) + (__u64)l->n_cpus * sizeof(struct ibs_cpu_state) <=
		       l->state_bytes;
}

void pinned_place(const struct ibs_meta_layout *l, void *const addr[IBS_PIN_N],
		  struct layout *layout, struct counts *out)
{
	memcpy(layout->entry, l->entry, sizeof(layout->entry));
	layout->words = l->slot_words;
	*out = (struct counts){
		.series = addr[IBS_PIN_SERIES],
		.owners = addr[IBS_PIN_OWNERS],
		.state = addr[IBS_PIN_STATE],
		.n_cpus = l->n_cpus,
		.outcomes = l->outcomes,
		.shards = l->shards,
		.max_slots = l->max_slots,
		.by = l->by,
		.has_ops = true,
		.tlb = true,
		.layout = layout,
	};
}

static int check_meta(struct pinned *p, struct err *err)
{
	const struct ibs_meta *m = p->addr[IBS_PIN_META];

	if (!ibs_pin_schema_known(m) || m->layout.outcomes > IBS_OUTCOME_N ||
	    m->layout.sources != layout_sources(m->layout.metric) ||
	    m->layout.ops != layout_ops(m->layout.metric) || m->layout.buckets != IBS_LAT_BUCKETS ||
	    m->layout.meta_bytes != sizeof(*m) || m->layout.status_bytes != sizeof(m->status) ||
	    m->layout.name_bytes != sizeof(struct ibs_slot_name))
		return err_set(err, -EPROTO,
			       "the collector (version %.31s, schema %u) and this program (%s, %u) "
			       "do not match: install the same version of both, and restart the "
			       "collector",
			       m->magic == IBS_PIN_MAGIC ? m->version : "unknown",
			       m->magic == IBS_PIN_MAGIC ? m->schema : 0, IBSCOPE_VERSION,
			       IBS_PIN_SCHEMA);
	p->meta = m;
	/* others may write the map, so keep the copy that was checked */
	p->meta_layout = m->layout;
	if (!pinned_layout_ok(&p->meta_layout))
		return err_set(
			err, -EPROTO,
			"the pinned map meta is damaged: stop the collector, remove the map, "
			"and start the collector again");
	return 0;
}

static int map_all(struct pinned *p, struct err *err)
{
	const struct ibs_meta_layout *l;
	int ret = map_pin(p, IBS_PIN_META, sizeof(struct ibs_meta), 1, err) ?: check_meta(p, err);

	if (ret)
		return ret;
	l = &p->meta_layout;
	ret = map_pin(p, IBS_PIN_SERIES, l->slot_words * sizeof(__u64),
		      (size_t)l->shards * l->max_slots, err);
	ret = ret ?: map_pin(p, IBS_PIN_OWNERS, sizeof(struct ibs_slot_owner), l->max_slots, err);
	ret = ret ?: map_pin(p, IBS_PIN_STATE, l->state_bytes, 1, err);
	ret = ret ?: map_pin(p, IBS_PIN_NAMES, sizeof(struct ibs_slot_name), l->max_slots, err);
	if (ret)
		return ret;
	pinned_place(l, p->addr, &p->layout, &p->counts);
	p->counts.arg = p;
	if (p->copies) {
		p->counts.series = NULL;
		p->counts.read_slot = read_slot;
		p->counts.refresh = refresh;
	}
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
			       "cannot open %s: %s; kernels before 5.19 let only CAP_BPF read "
			       "maps: run the reader with it",
			       path, strerror(error));
	if (error == EACCES)
		return err_set(err, -EACCES,
			       "cannot open %s: %s; user %u needs x on every directory of that "
			       "path and r on the file (`ibscope serve --pin-mode`)",
			       path, strerror(error), getuid());
	return err_set(err, -error, "cannot open %s: %s", path, strerror(error));
}

/* The path of a pin: bpf() of old kernels takes no directory fd. */
static void pin_path(int dir_fd, const char *dir, enum ibs_pin pin, char *out, size_t size)
{
	if (dir_fd >= 0)
		snprintf(out, size, "/proc/self/fd/%d/%s", dir_fd, names[pin]);
	else
		snprintf(out, size, "%s/%s", dir, names[pin]);
}

static int explain_pin(const char *dir, enum ibs_pin pin, int error, struct err *err)
{
	char path[512];

	pin_path(-1, dir, pin, path, sizeof(path));
	return explain(path, dir, error, err);
}

static int open_pins(struct pinned *p, int dir_fd, const char *dir, bool write, struct err *err)
{
	LIBBPF_OPTS(bpf_obj_get_opts, opts, .file_flags = write ? 0 : BPF_F_RDONLY);
	char path[512];

	p->copies = !write;
	for (size_t i = 0; i < WANTED; i++) {
		enum ibs_pin pin = wanted[i];

		pin_path(dir_fd, dir, pin, path, sizeof(path));
		p->fd[pin] = bpf_obj_get_opts(path, &opts);
		if (p->fd[pin] < 0)
			return explain_pin(dir, pin, errno, err);
	}
	return 0;
}

static void close_pins(struct pinned *p)
{
	for (int i = 0; i < IBS_PIN_N; i++) {
		if (p->bytes[i])
			munmap(p->addr[i], p->bytes[i]);
		else
			free(p->addr[i]);
		if (p->fd[i] >= 0)
			close(p->fd[i]);
		p->addr[i] = NULL;
		p->bytes[i] = 0;
		p->fd[i] = -1;
	}
}

static int stat_meta(int dir_fd, const char *dir, struct stat *st, struct err *err)
{
	char path[512];

	pin_path(dir_fd, dir, IBS_PIN_META, path, sizeof(path));
	return stat(path, st) ? explain_pin(dir, IBS_PIN_META, errno, err) : 0;
}

/* The directory of the second event. */
static int open_second_dir(int dir_fd, const char *dir, char *path, size_t size)
{
	if (snprintf(path, size, "%s/" IBS_PIN_SECOND, dir) >= (int)size)
		return -1;
	return openat(dir_fd >= 0 ? dir_fd : AT_FDCWD, dir_fd >= 0 ? IBS_PIN_SECOND : path,
		      O_PATH | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
}

bool pinned_current(const struct pinned *p, int dir_fd, const char *dir)
{
	struct stat st;
	char path[512];
	bool same;
	int fd;

	if (stat_meta(dir_fd, dir, &st, NULL) || st.st_dev != p->meta_file.st_dev ||
	    st.st_ino != p->meta_file.st_ino)
		return false;
	fd = open_second_dir(dir_fd, dir, path, sizeof(path));
	if (fd < 0)
		return !p->second;
	same = p->second ? pinned_current(p->second, fd, path)
			 : stat_meta(fd, path, &st, NULL) != 0;
	close(fd);
	return same;
}

static int open_second(struct pinned *p, int dir_fd, const char *dir, struct err *err)
{
	char path[512];
	int ret, fd = open_second_dir(dir_fd, dir, path, sizeof(path));

	if (fd < 0)
		return 0;
	ret = pinned_open_at(fd, path, &p->second, err);
	close(fd);
	return ret == -ENOENT ? 0 : ret; /* not pinned yet */
}

struct pinned *pinned_second(const struct pinned *p)
{
	return p->second;
}

int pinned_open_at(int dir_fd, const char *dir, struct pinned **out, struct err *err)
{
	struct pinned *p = xcalloc(1, sizeof(*p));
	int ret;

	for (int i = 0; i < IBS_PIN_N; i++)
		p->fd[i] = -1;
	ret = open_pins(p, dir_fd, dir, true, err);
	if (ret == -EACCES) {
		close_pins(p);
		ret = open_pins(p, dir_fd, dir, false, err);
	}
	ret = ret ?: stat_meta(dir_fd, dir, &p->meta_file, err);
	ret = ret ?: map_all(p, err) ?: open_second(p, dir_fd, dir, err);
	if (ret) {
		pinned_close(p);
		return ret;
	}
	*out = p;
	return 0;
}

int pinned_open(const char *dir, struct pinned **out, struct err *err)
{
	/* opening explains other errors better */
	if (trusted_dir_check(dir, true, err) == -EPERM)
		return -EPERM;
	return pinned_open_at(-1, dir, out, err);
}

bool pinned_mapped(const struct pinned *p)
{
	return !p->copies;
}

/* Make a consistent copy of data protected by @seq. */
static void copy_consistent(void *to, const void *from, size_t n, const __u32 *seq)
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

/*
 * The same by lookups. A single one may be torn: two that are equal and have an even number are
 * consistent. @again: room for @n bytes; @seq lies in @out, which is left unchanged if reads fail.
 */
static void look_up_consistent(const struct pinned *p, enum ibs_pin pin, __u32 key, void *out,
			       void *again, size_t n, const __u32 *seq)
{
	for (int tries = 0; tries < LOOK_UP_TRIES; tries++) {
		if (look_up(p, pin, key, out) || look_up(p, pin, key, again))
			return;
		if (!(*seq & 1) && !memcmp(out, again, n))
			return;
	}
}

/* Terminate a text, whatever a writer does. */
#define END_TEXT(text) ((text)[sizeof(text) - 1] = 0)

void pinned_meta(const struct pinned *p, struct ibs_meta *out)
{
	struct ibs_meta again;

	if (p->copies) {
		*out = *p->meta;
		look_up_consistent(p, IBS_PIN_META, 0, out, &again, sizeof(again), &out->seq);
	} else {
		copy_consistent(out, p->meta, sizeof(*out), &p->meta->seq);
	}
	END_TEXT(out->version);
	END_TEXT(out->event);
	END_TEXT(out->source);
	END_TEXT(out->selection);
	END_TEXT(out->live);
	END_TEXT(out->control);
	END_TEXT(out->unresolved);
	END_TEXT(out->layout.hierarchy);
	if (out->schema == IBS_PIN_SCHEMA_BEFORE)
		out->lease_ns = 0;
}

const struct counts *pinned_counts(const struct pinned *p)
{
	return &p->counts;
}

void pinned_ledger(const struct ibs_meta_status *st, struct ledger *out)
{
	out->pmu_samples = st->pmu_samples;
	out->unseen = st->unseen;
	out->pmu_exact = st->pmu_exact;
	out->dropped = st->dropped;
	out->dropped_known = st->dropped_known;
	out->undelivered = st->undelivered;
	out->undelivered_known = st->undelivered_known;
}

void pinned_pmu(const struct pinned *p, const struct ibs_meta_status *st, struct pmu_state *out)
{
	*out = (struct pmu_state){ .cpus = st->cpus,
				   .enabled_ns = st->enabled_ns,
				   .running_ns = st->running_ns,
				   .throttled = st->throttled,
				   .went = st->cpus_went,
				   .came = st->cpus_came };
	/* the collector weighs samples by the time that others had the PMU */
	if (p->counts.has_ops)
		out->extra_ns = (__s64)(st->enabled_ns - st->running_ns);
}

int pinned_snapshot(const struct pinned *p, struct snapshot *out, struct err *err)
{
	const struct ibs_meta_status *st;
	struct ibs_meta meta;
	int ret = -EUCLEAN;

	pinned_meta(p, &meta);
	st = &meta.status;
	for (int tries = 0; ret == -EUCLEAN && tries < 3; tries++) {
		memset(out, 0, sizeof(*out));
		ret = counts_read(&p->counts, out, err);
	}
	if (ret)
		return ret;
	out->time_ns = st->time_ns;
	pinned_ledger(st, &out->ledger);
	pinned_pmu(p, st, &out->pmu);
	return 0;
}

static void read_name(const struct pinned *p, __u32 slot, struct ibs_slot_name *out)
{
	const struct ibs_slot_name *all = p->addr[IBS_PIN_NAMES];
	struct ibs_slot_name again;

	memset(out, 0, sizeof(*out));
	if (p->copies)
		look_up_consistent(p, IBS_PIN_NAMES, slot, out, &again, sizeof(again), &out->seq);
	else
		copy_consistent(out, &all[slot], sizeof(*out), &all[slot].seq);
}

void pinned_name(const struct pinned *p, const struct group *g, struct ibs_slot_name *out)
{
	read_name(p, g->slot, out);
	if (out->cgroup_id != g->key.cgroup_id)
		memset(out, 0, sizeof(*out));
	END_TEXT(out->cgroup);
	END_TEXT(out->name_space);
	END_TEXT(out->pod);
	END_TEXT(out->container);
}

void pinned_neighbours(const struct pinned *p, struct ibs_neighbours *out)
{
	const __u32 max_slots = p->counts.max_slots;
	struct ibs_slot_name place;

	read_name(p, IBS_SLOT_OTHER, &place);
	memcpy(out, &place, sizeof(*out));
	if (out->n > IBS_NEIGHBOURS)
		out->n = 0;
	for (__u32 i = 0; i < out->n; i++)
		if (out->pair[i].victim_slot >= max_slots || out->pair[i].suspect_slot >= max_slots)
			out->n = 0;
}

void pinned_close(struct pinned *p)
{
	if (!p)
		return;
	pinned_close(p->second);
	close_pins(p);
	free(p);
}
