// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "pins.h"
#include "base/array.h"
#include "base/clock.h"
#include "base/rlimit.h"
#include "base/trusted_dir.h"

#include <bpf/bpf.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <linux/membarrier.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/vfs.h>
#include <time.h>
#include <unistd.h>

#define BPFFS "/sys/fs/bpf"

#define NAME(id, name, ...) name,
#define READ(id, name, why) sizeof(why) > 1,

static const char *const names[] = { IBS_PIN_TABLE(NAME) };
static const bool for_readers[] = { IBS_PIN_TABLE(READ) };

struct pins {
	char dir[256], links[264];
	int lock; /* fd of the directory of links */
	mode_t mode;
	bool counted; /* this start is counted */
	int fd[IBS_PIN_N];
	struct ibs_meta *meta;
	struct ibs_slot_name *names;
	size_t names_bytes;
};

static void path_of(const struct pins *p, enum ibs_pin pin, char *out, size_t size)
{
	snprintf(out, size, "%s/%s", p->dir, names[pin]);
}

static void close_fds(struct pins *p)
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
	char path[512];

	/* meta first: without it readers find nothing */
	for (int i = IBS_PIN_N - 1; i >= 0; i--) {
		path_of(p, i, path, sizeof(path));
		unlink(path);
	}
}

static void *map_fd(int fd, size_t bytes, bool write)
{
	void *addr = mmap(NULL, bytes, PROT_READ | (write ? PROT_WRITE : 0), MAP_SHARED, fd, 0);

	return addr == MAP_FAILED ? NULL : addr;
}

/* Map the pinned meta, whoever wrote it. Return: NULL if there is none. */
static struct ibs_meta *map_meta(const struct pins *p, bool write)
{
	struct ibs_meta *meta;
	char path[512];
	int fd;

	path_of(p, IBS_PIN_META, path, sizeof(path));
	fd = bpf_obj_get(path);
	if (fd < 0)
		return NULL;
	meta = map_fd(fd, sizeof(*meta), write);
	close(fd);
	if (!meta || (meta->magic == IBS_PIN_MAGIC && meta->schema == IBS_PIN_SCHEMA))
		return meta;
	munmap(meta, sizeof(*meta));
	return NULL;
}

/* The process that holds the lock, according to meta; 0: unknown. */
static __u32 holder(struct pins *p)
{
	struct ibs_meta *meta = map_meta(p, false);
	__u32 pid = meta ? meta->pid : 0;

	if (meta)
		munmap(meta, sizeof(*meta));
	return pid;
}

void pins_set_stopped(struct pins *p)
{
	struct ibs_meta *meta = map_meta(p, true);

	if (!meta)
		return;
	meta->pid = 0;
	munmap(meta, sizeof(*meta));
}

static bool is_bpffs(const char *path)
{
	struct statfs fs;

	return !statfs(path, &fs) && fs.f_type == (typeof(fs.f_type))BPF_FS_MAGIC;
}

#define MOUNT_BPFFS "mount -t bpf -o mode=0700 bpf " BPFFS

/* Mount a bpffs: systems without systemd, containers and small guests may have none. */
static void mount_bpffs(const char *dir)
{
	if (strncmp(dir, BPFFS "/", sizeof(BPFFS)) || is_bpffs(BPFFS))
		return;
	if (!mount("bpf", BPFFS, "bpf", MS_NOSUID | MS_NODEV | MS_NOEXEC, "mode=0755"))
		log_info("mounted a bpffs on " BPFFS);
}

/* Create a directory with this mode despite the umask. Return: 1 created, 0 exists, or -errno. */
static int make_dir(const char *path, mode_t mode)
{
	if (mkdir(path, mode))
		return errno == EEXIST ? 0 : -errno;
	return chmod(path, mode) ? -errno : 1;
}

static int make_dirs(struct pins *p, struct err *err)
{
	int ret, made;

	mount_bpffs(p->dir);
	made = make_dir(p->dir, 0755);
	if (made < 0)
		return err_set(err, made,
			       "cannot create %s: %s; if no bpffs is mounted there: " MOUNT_BPFFS,
			       p->dir, strerror(-made));
	if (!is_bpffs(p->dir)) {
		if (made)
			rmdir(p->dir);
		return err_set(err, -ENOTSUP, "%s is not on a bpffs: " MOUNT_BPFFS, p->dir);
	}
	/* in a sticky directory, the default of bpffs, others cannot touch a directory of root's */
	ret = trusted_dir_check(p->dir, true, err);
	if (ret) {
		if (made)
			rmdir(p->dir);
		return ret;
	}
	ret = make_dir(p->links, 0700);
	if (ret < 0)
		return err_set(err, ret, "cannot create %s: %s", p->links, strerror(-ret));
	return trusted_dir_check(p->links, true, err);
}

/* True if @fd is still the directory of that name. */
static bool is_still(int fd, const char *path)
{
	struct stat a, b;

	return !fstat(fd, &a) && !stat(path, &b) && a.st_dev == b.st_dev && a.st_ino == b.st_ino;
}

/*
 * Lock the directory of links, since any user can lock a directory that he may read. A collector
 * that exits with --unpin may remove it before we have the lock.
 */
static int lock_dir(struct pins *p, struct err *err)
{
	__u32 pid;
	int ret;

	for (;;) {
		ret = make_dirs(p, err);
		if (ret)
			return ret;
		p->lock = open(p->links, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
		if (p->lock < 0)
			return err_set(err, -errno, "cannot open %s: %s", p->links,
				       strerror(errno));
		if (fchmod(p->lock, 0700))
			return err_set(err, -errno, "cannot set the mode of %s: %s", p->links,
				       strerror(errno));
		if (flock(p->lock, LOCK_EX | LOCK_NB))
			break;
		if (is_still(p->lock, p->links))
			return 0;
		close(p->lock);
	}
	if (errno != EWOULDBLOCK)
		return err_set(err, -errno, "cannot lock %s: %s", p->links, strerror(errno));
	pid = holder(p);
	if (pid)
		return err_set(err, -EBUSY,
			       "a collector is already running as process %u; to start a second "
			       "one, give it another directory (--pin-dir)",
			       pid);
	return err_set(err, -EBUSY, "%s is locked by another process: find it with fuser -v %s",
		       p->links, p->links);
}

bool pins_have_links(const struct pins *p)
{
	DIR *dir = opendir(p->links);
	struct dirent *e;
	bool any = false;

	while (dir && !any && (e = readdir(dir)))
		any = *e->d_name != '.';
	if (dir)
		closedir(dir);
	return any;
}

/* After a grace period the kernel drops an unlinked pin's reference; it takes less than this. */
#define UNLINK_MS 50

/*
 * The last reference decides when the kernel closes the event: if it is a file of this process, before
 * close() returns; if it is the pin, some milliseconds after the program was detached, and samples
 * in between reach no program.
 */
void pins_end_links(struct pins *p)
{
	const struct timespec ts = { .tv_nsec = UNLINK_MS * 1000000L };
	DIR *dir = opendir(p->links);
	int *files = NULL;
	size_t n = 0, room = 0;
	struct dirent *e;
	char path[sizeof(p->links) + sizeof(e->d_name)];

	while (dir && (e = readdir(dir))) {
		if (*e->d_name == '.')
			continue;
		snprintf(path, sizeof(path), "%s/%s", p->links, e->d_name);
		rlimit_files(1);
		array_reserve(files, room, n + 1);
		files[n] = bpf_obj_get(path);
		n += files[n] >= 0;
		unlink(path);
	}
	if (dir)
		closedir(dir);
	if (n) {
		syscall(SYS_membarrier, MEMBARRIER_CMD_GLOBAL, 0, 0);
		nanosleep(&ts, NULL);
	}
	for (size_t i = 0; i < n; i++)
		close(files[i]);
	free(files);
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
	else
		ret = lock_dir(p, err);
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

	if (m->magic != IBS_PIN_MAGIC || m->schema != IBS_PIN_SCHEMA ||
	    l->meta_bytes != want->meta_bytes || l->status_bytes != want->status_bytes ||
	    l->name_bytes != want->name_bytes)
		return other_version;
	if (!memcmp(l, want, sizeof(*l)))
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

/* Open a pin. Return: 0, with p->fd[pin] -1 if there is none; or -errno with @err. */
static int open_pin(struct pins *p, enum ibs_pin pin, struct bpf_map_info *info, struct err *err)
{
	char path[512], self[64], what[64] = "";
	__u32 len = sizeof(*info);
	int fd;

	path_of(p, pin, path, sizeof(path));
	fd = bpf_obj_get(path);
	if (fd < 0 && errno == ENOENT)
		return 0;
	if (fd < 0)
		return err_set(err, -errno,
			       "cannot open the pinned map %s: %s; remove it if "
			       "nothing else uses it",
			       path, strerror(errno));
	p->fd[pin] = fd;
	/* maps, programs and links look the same except in /proc */
	snprintf(self, sizeof(self), "/proc/self/fd/%d", fd);
	if (readlink(self, what, sizeof(what) - 1) < 0)
		return err_set(err, -errno, "%s: %s", self, strerror(errno));
	if (strcmp(what, "anon_inode:bpf-map"))
		return err_set(err, -EEXIST,
			       "%s is not a map but %s: remove it if nothing else uses it", path,
			       what);
	if (bpf_obj_get_info_by_fd(fd, info, &len))
		return err_set(err, -errno, "%s: %s", path, strerror(errno));
	return 0;
}

static int check_names(struct pins *p, const struct bpf_map_info *info,
		       const struct ibs_meta_layout *layout, struct err *err)
{
	if (info->type == BPF_MAP_TYPE_ARRAY && info->value_size == layout->name_bytes &&
	    info->max_entries == layout->max_slots)
		return 0;
	return pins_wrong_map(p, IBS_PIN_NAMES, err);
}

int pins_wrong_map(const struct pins *p, enum ibs_pin pin, struct err *err)
{
	char path[512];

	path_of(p, pin, path, sizeof(path));
	return err_set(err, -EEXIST,
		       "%s is not the map that the collector pinned there: remove %s/meta to start "
		       "from zero",
		       path, p->dir);
}

int pins_adopt(struct pins *p, const struct ibs_meta_layout *layout, const char **why,
	       struct err *err)
{
	struct bpf_map_info info[IBS_PIN_N] = {};
	const char *bad = NULL;

	*why = "";
	close_fds(p); /* those before a reload */
	for (int i = 0; i < IBS_PIN_N; i++) {
		int ret = open_pin(p, i, &info[i], err);

		if (ret) {
			close_fds(p);
			return ret;
		}
	}
	if (p->fd[IBS_PIN_META] < 0) {
		close_fds(p); /* an earlier collector exited before it had pinned everything */
		return 0;
	}
	if (info[IBS_PIN_META].value_size != sizeof(struct ibs_meta))
		bad = other_version;
	if (!bad) {
		p->meta = map_fd(p->fd[IBS_PIN_META], sizeof(*p->meta), true);
		if (!p->meta)
			return err_set(err, -errno, "cannot map %s/meta: %s", p->dir,
				       strerror(errno));
		bad = find_mismatch(p->meta, layout);
	}
	for (int i = 0; i < IBS_PIN_N && !bad; i++)
		if (p->fd[i] < 0)
			bad = "one of them is missing";
	if (!bad)
		return check_names(p, &info[IBS_PIN_NAMES], layout, err) ?: 1;
	*why = bad;
	close_fds(p);
	return 0;
}

int pins_fd(const struct pins *p, enum ibs_pin pin)
{
	return p->fd[pin];
}

static int pin_fd(struct pins *p, enum ibs_pin pin, int fd, struct err *err)
{
	char path[512];

	path_of(p, pin, path, sizeof(path));
	if (bpf_obj_pin(fd, path))
		return err_set(err, -errno, "cannot pin %s: %s", path, strerror(errno));
	if (chmod(path, for_readers[pin] ? p->mode : 0600))
		return err_set(err, -errno, "cannot set the mode of %s: %s", path, strerror(errno));
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
	for (int pin = 0; !ret && pin < IBS_PIN_META; pin++)
		if (maps[pin] >= 0)
			ret = pin_fd(p, pin, maps[pin], err);
	ret = ret ?: pin_fd(p, IBS_PIN_NAMES, p->fd[IBS_PIN_NAMES], err);
	return ret ?: pin_fd(p, IBS_PIN_META, p->fd[IBS_PIN_META], err);
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
		p->meta = map_fd(p->fd[IBS_PIN_META], sizeof(*p->meta), true);
	}
	p->names = map_fd(p->fd[IBS_PIN_NAMES], p->names_bytes, true);
	if (!p->meta || !p->names)
		return err_set(err, -errno, "cannot map the arrays in %s: %s", p->dir,
			       strerror(errno));
	if (fresh) {
		p->meta->layout = *layout;
		p->meta->start_realtime_ns = clock_ns(CLOCK_REALTIME);
		p->meta->schema = IBS_PIN_SCHEMA;
		p->meta->magic = IBS_PIN_MAGIC;
		ret = pin_all(p, maps, err);
		if (ret)
			return ret;
	}
	if (p->meta->seq & 1)
		p->meta->seq++; /* an earlier collector was killed during a write */
	for (__u32 i = 0; i < layout->max_slots; i++)
		p->names[i].seq += p->names[i].seq & 1;
	p->meta->pid = getpid();
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
	close_fds(p);
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
	close_fds(p);
	if (p->lock >= 0)
		close(p->lock);
	free(p);
}
