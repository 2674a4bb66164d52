// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* The pinned maps: opened, adopted or created, and removed. */
#include "pins_private.h"

#include "base/clock.h"

#include <bpf/bpf.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define NAME(id, name, ...) name,
#define READ(id, name, why) sizeof(why) > 1,

static const char *const names[] = { IBS_PIN_TABLE(NAME) };
static const bool for_readers[] = { IBS_PIN_TABLE(READ) };

void pins_disown(struct pins *p)
{
	if (p->meta)
		munmap(p->meta, sizeof(*p->meta));
	if (p->names)
		munmap(p->names, p->names_bytes);
	p->meta = NULL;
	p->names = NULL;
	for (int i = 0; i < IBS_PIN_N; i++) {
		if (p->fd[i] >= 0)
			close(p->fd[i]);
		p->fd[i] = -1;
	}
}

static void unlink_all(const struct pins *p)
{
	char path[PIN_PATH_MAX];

	/* meta first: without it readers find nothing */
	for (int i = IBS_PIN_N - 1; i >= 0; i--) {
		pins_path(p, i, path);
		unlink(path);
	}
}

int pins_open(const char *dir, mode_t mode, struct pins **out, struct err *err)
{
	struct pins *p = xcalloc(1, sizeof(*p));
	int ret;

	p->lock = -1;
	p->mode = mode;
	for (int i = 0; i < IBS_PIN_N; i++)
		p->fd[i] = -1;
	snprintf(p->dir, sizeof(p->dir), "%s", dir);
	snprintf(p->links, sizeof(p->links), "%s/links", p->dir);
	if (strlen(dir) >= sizeof(p->dir))
		ret = err_set(err, -ENAMETOOLONG, "%s: longer than %zu characters", dir,
			      sizeof(p->dir) - 1);
	else {
		pins_mount(p->dir);
		ret = pins_lock(p, err);
	}
	if (ret) {
		pins_close(p);
		return ret;
	}
	*out = p;
	return 0;
}

const char *pins_dir(const struct pins *p)
{
	return p->dir;
}

const char *pins_links_dir(const struct pins *p)
{
	return p->links;
}

static const char other_version[] = "they are from another version";

/* The reason why the counters cannot be resumed, or NULL if they can. */
static const char *find_mismatch(const struct ibs_meta *m, const struct ibs_meta_layout *want)
{
	const struct ibs_meta_layout *l = &m->layout;
	struct ibs_meta_layout converted = *l;

	if (!ibs_pin_schema_known(m) || l->outcomes > want->outcomes ||
	    l->meta_bytes != want->meta_bytes || l->status_bytes != want->status_bytes ||
	    l->name_bytes != want->name_bytes)
		return other_version;
	converted.outcomes = want->outcomes; /* see pins_convert() */
	if (!memcmp(&converted, want, sizeof(*l)))
		return NULL;
	if (l->simulated != want->simulated)
		return "only one of old and new samples is simulated";
	if (l->by != want->by || l->metric != want->metric)
		return "they have other labels (--by) or another metric (--metric)";
	if (strncmp(l->hierarchy, want->hierarchy, sizeof(l->hierarchy)))
		return "they have another cgroup hierarchy (--cgroup-hierarchy)";
	if (l->max_slots != want->max_slots || l->shards != want->shards)
		return "they have another size (--max-groups, --max-memory)";
	return "they are from another machine or build";
}

/* A pin whose mode was changed can be opened again. Return: fd, or -1 with errno. */
static int open_path(const struct pins *p, enum ibs_pin pin, const char *path)
{
	int fd = bpf_obj_get(path);

	if (fd < 0 && errno == EACCES && !chmod(path, for_readers[pin] ? p->mode : 0600)) {
		log_warn("the mode of %s was wrong, and was set again", path);
		fd = bpf_obj_get(path);
	}
	return fd;
}

/*
 * Open a pin. What a collector cannot have pinned is set aside, as if there were none.
 * Return: 0, with p->fd[pin] -1 if there is none; or -errno with @err.
 */
static int open_pin(struct pins *p, enum ibs_pin pin, struct bpf_map_info *info, struct err *err)
{
	__u32 len = sizeof(*info);
	char path[PIN_PATH_MAX];
	int fd;

	pins_path(p, pin, path);
	fd = open_path(p, pin, path);
	if (fd < 0 && errno == ENOENT)
		return 0;
	if (fd < 0 && (errno == EPERM || errno == EMFILE || errno == ENFILE || errno == ENOMEM))
		return err_set(err, -errno, "cannot open the pinned map %s: %s", path,
			       strerror(errno));
	if (fd >= 0 && pins_is_kind(fd, "anon_inode:bpf-map") &&
	    !bpf_obj_get_info_by_fd(fd, info, &len) && pin_file_note(&p->file[pin], path)) {
		p->fd[pin] = fd;
		return 0;
	}
	if (fd >= 0)
		close(fd);
	return pin_file_set_aside(path, p->dir, err);
}

static bool is_names(const struct bpf_map_info *info, const struct ibs_meta_layout *layout)
{
	return info->type == BPF_MAP_TYPE_ARRAY && info->value_size == layout->name_bytes &&
	       info->max_entries == layout->max_slots;
}

#define META_MAX (1 << 20) /* bytes, of any version */

/* Is it what a collector of another version wrote? Each begins with the same word. */
static bool is_any_meta(int fd, const struct bpf_map_info *info)
{
	__u32 zero = 0;
	struct ibs_meta *value;
	bool is;

	if (info->type != BPF_MAP_TYPE_ARRAY || info->value_size < sizeof(value->magic) ||
	    info->value_size > META_MAX)
		return false;
	value = xcalloc(1, info->value_size);
	is = !bpf_map_lookup_elem(fd, &zero, value) && value->magic == IBS_PIN_MAGIC;
	free(value);
	return is;
}

static const char one_missing[] = "one of them is missing";

/* The first words of meta, which say where the counts are; they may be those of another version. */
static bool read_layout(int fd, const struct bpf_map_info *info, struct ibs_meta_layout *out)
{
	char *value = xcalloc(1, info->value_size);
	const size_t at = offsetof(struct ibs_meta, layout);
	__u32 zero = 0;
	bool ok = info->value_size >= at + sizeof(*out) && info->value_size <= META_MAX &&
		  !bpf_map_lookup_elem(fd, &zero, value);

	if (ok)
		memcpy(out, value + at, sizeof(*out));
	free(value);
	return ok;
}

/*
 * Count the samples in pinned counters that do not fit. Of another version the number is known only if the sizes of
 * both maps are those in its layout, and those of this version for as many CPUs.
 */
static void count_samples(struct pins *p, const struct bpf_map_info info[IBS_PIN_N])
{
	const __u32 bytes = info[IBS_PIN_STATE].value_size;
	struct ibs_meta_layout l;
	struct ibs_state *state;
	__u64 cpus = 1;

	if (p->fd[IBS_PIN_META] < 0 || p->fd[IBS_PIN_STATE] < 0 ||
	    !read_layout(p->fd[IBS_PIN_META], &info[IBS_PIN_META], &l) ||
	    l.meta_bytes != info[IBS_PIN_META].value_size || l.state_bytes != bytes)
		return;
	while (cpus < l.n_cpus)
		cpus *= 2;
	if (bytes != sizeof(*state) + cpus * sizeof(state->cpu[0]))
		return;
	state = pins_map(p->fd[IBS_PIN_STATE], bytes, false);
	if (!state)
		return;
	p->rejected_known = true;
	for (__u32 cpu = 0; cpu < l.n_cpus; cpu++)
		p->rejected += __atomic_load_n(&state->cpu[cpu].seen, __ATOMIC_RELAXED);
	munmap(state, bytes);
}

bool pins_rejected(const struct pins *p, __u64 *samples)
{
	*samples = p->rejected;
	return p->rejected_known;
}

int pins_reject(struct pins *p, enum ibs_pin pin, const char **why, struct err *err)
{
	char path[PIN_PATH_MAX];

	pins_path(p, pin, path);
	pins_disown(p);
	*why = one_missing;
	return pin_file_set_aside(path, p->dir, err);
}

/* Open all pins. Return: their number, or -errno with @err. */
static int open_pins(struct pins *p, struct bpf_map_info info[IBS_PIN_N], struct err *err)
{
	int n = 0;

	for (int i = 0; i < IBS_PIN_N; i++) {
		int ret = open_pin(p, i, &info[i], err);

		if (ret)
			return ret;
		n += p->fd[i] >= 0;
	}
	return n;
}

int pins_adopt(struct pins *p, const struct ibs_meta_layout *layout, const char **why,
	       struct err *err)
{
	struct bpf_map_info info[IBS_PIN_N] = {};
	const char *bad = NULL;
	int n;

	*why = "";
	p->rejected = 0;
	p->rejected_known = false;
	pins_disown(p); /* those before a reload */
	n = open_pins(p, info, err);
	if (n > 0 && p->fd[IBS_PIN_META] >= 0) {
		if (!is_any_meta(p->fd[IBS_PIN_META], &info[IBS_PIN_META]))
			return pins_reject(p, IBS_PIN_META, why, err);
		if (info[IBS_PIN_META].value_size != sizeof(struct ibs_meta))
			bad = other_version;
		else
			p->meta = pins_map(p->fd[IBS_PIN_META], sizeof(*p->meta), true);
		if (!bad && !p->meta)
			return pins_reject(p, IBS_PIN_META, why, err);
		bad = bad ?: find_mismatch(p->meta, layout);
	}
	if (n > 0 && n < IBS_PIN_N && !bad)
		bad = one_missing;
	if (n == IBS_PIN_N && !bad && !is_names(&info[IBS_PIN_NAMES], layout))
		return pins_reject(p, IBS_PIN_NAMES, why, err);
	if (n == IBS_PIN_N && !bad)
		return 1;
	*why = bad ?: "";
	if (bad)
		count_samples(p, info);
	pins_disown(p);
	return n < 0 ? n : 0;
}

int pins_fd(const struct pins *p, enum ibs_pin pin)
{
	return p->fd[pin];
}

int pins_put(struct pins *p, enum ibs_pin pin, mode_t mode, struct err *err)
{
	char path[PIN_PATH_MAX];
	int ret;

	pins_path(p, pin, path);
	ret = pin_file_put(&p->file[pin], p->fd[pin], path, p->dir, err);
	if (ret)
		return ret;
	if (chmod(path, mode))
		return err_set(err, -errno, "cannot set the mode of %s: %s", path, strerror(errno));
	p->file[pin].mode = mode;
	return 0;
}

/* An array that only user space writes. */
static int make_array(struct pins *p, enum ibs_pin pin, __u32 value, __u32 n, struct err *err)
{
	LIBBPF_OPTS(bpf_map_create_opts, opts, .map_flags = BPF_F_MMAPABLE);
	char name[16];

	snprintf(name, sizeof(name), "ibs_%s", names[pin]);
	p->fd[pin] = bpf_map_create(BPF_MAP_TYPE_ARRAY, name, sizeof(__u32), value, n, &opts);
	if (p->fd[pin] < 0)
		return err_set(err, -errno, "cannot create the map %s: %s", names[pin],
			       strerror(errno));
	return 0;
}

/* Pin all maps, replacing existing pins. */
static int pin_all(struct pins *p, const int *maps, struct err *err)
{
	int ret = 0;

	unlink_all(p);
	for (int pin = 0; !ret && pin < IBS_PIN_META; pin++) {
		if (maps[pin] < 0)
			continue;
		p->fd[pin] = fcntl(maps[pin], F_DUPFD_CLOEXEC, 0);
		if (p->fd[pin] < 0)
			ret = err_set(err, -errno, "cannot keep the map %s open: %s", names[pin],
				      strerror(errno));
	}
	for (int i = 0; !ret && i < IBS_PIN_N; i++) {
		enum ibs_pin pin = pins_in_order(i);

		if (p->fd[pin] >= 0)
			ret = pins_put(p, pin, for_readers[pin] ? p->mode : 0600, err);
	}
	return ret;
}

void pins_put_header(struct pins *p)
{
	p->meta->layout = p->layout;
	p->meta->start_realtime_ns = p->start_realtime_ns;
	p->meta->pid = getpid();
	p->meta->schema = IBS_PIN_SCHEMA;
	p->meta->magic = IBS_PIN_MAGIC;
}

int pins_finish(struct pins *p, const struct ibs_meta_layout *layout, const int *maps,
		struct err *err)
{
	bool fresh = !p->meta;
	int ret = 0;

	p->names_bytes = (size_t)layout->max_slots * sizeof(*p->names);
	if (fresh) {
		ret = make_array(p, IBS_PIN_META, sizeof(*p->meta), 1, err);
		ret = ret
			      ?: make_array(p, IBS_PIN_NAMES, sizeof(*p->names), layout->max_slots,
					    err);
		if (ret)
			return ret;
		p->meta = pins_map(p->fd[IBS_PIN_META], sizeof(*p->meta), true);
	}
	p->names = pins_map(p->fd[IBS_PIN_NAMES], p->names_bytes, true);
	if (!p->meta || !p->names)
		return err_set(err, -errno, "cannot map the arrays in %s: %s", p->dir,
			       strerror(errno));
	if (fresh) {
		p->layout = *layout;
		p->start_realtime_ns = clock_ns(CLOCK_REALTIME);
		pins_put_header(p);
		ret = pin_all(p, maps, err);
		if (ret)
			return ret;
	}
	if (p->meta->seq & 1)
		p->meta->seq++; /* an earlier collector was killed during a write */
	for (__u32 i = 0; i < layout->max_slots; i++)
		p->names[i].seq += p->names[i].seq & 1;
	p->layout = *layout;
	p->start_realtime_ns = p->meta->start_realtime_ns;
	pins_put_header(p);
	p->meta->starts += fresh || !p->counted;
	p->counted = true;
	return 0;
}

struct ibs_meta *pins_meta(struct pins *p)
{
	return p->meta;
}

struct ibs_slot_name *pins_names(struct pins *p)
{
	return p->names;
}

struct ibs_neighbours *pins_neighbours(struct pins *p)
{
	return (struct ibs_neighbours *)&p->names[IBS_SLOT_OTHER];
}

void pins_write_begin(__u32 *seq)
{
	__atomic_fetch_add(seq, 1, __ATOMIC_SEQ_CST);
}

void pins_write_end(__u32 *seq)
{
	__atomic_fetch_add(seq, 1, __ATOMIC_SEQ_CST);
}

void pins_remove(struct pins *p)
{
	pins_disown(p);
	unlink_all(p);
	pins_end_links(p);
	rmdir(p->links);
	rmdir(p->dir);
}

void pins_close(struct pins *p)
{
	if (!p)
		return;
	if (p->meta)
		p->meta->pid = 0;
	pins_disown(p);
	if (p->lock >= 0)
		close(p->lock);
	free(p);
}
