// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* The directory of pins: created and locked. */
#include "pins_private.h"

#include "base/clock.h"
#include "base/rlimit.h"
#include "base/trusted_dir.h"

#include <bpf/bpf.h>
#include <dirent.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <linux/membarrier.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/vfs.h>
#include <time.h>
#include <unistd.h>

#define BPFFS "/sys/fs/bpf"

/* How long to wait for a lock whose owner is no living collector: more than a child of one that was killed has. */
#define LOCK_S 22

#define NAME(id, name, ...) name,

static const char *const names[] = { IBS_PIN_TABLE(NAME) };

void pins_path(const struct pins *p, enum ibs_pin pin, char out[PIN_PATH_MAX])
{
	snprintf(out, PIN_PATH_MAX, "%s/%s", p->dir, names[pin]);
}

void *pins_map(int fd, size_t bytes, bool write)
{
	void *addr = mmap(NULL, bytes, PROT_READ | (write ? PROT_WRITE : 0), MAP_SHARED, fd, 0);

	return addr == MAP_FAILED ? NULL : addr;
}

struct ibs_meta *pins_map_meta(const struct pins *p, bool write)
{
	struct ibs_meta *meta;
	char path[PIN_PATH_MAX];
	int fd;

	pins_path(p, IBS_PIN_META, path);
	fd = bpf_obj_get(path);
	if (fd < 0)
		return NULL;
	meta = pins_map(fd, sizeof(*meta), write);
	close(fd);
	if (!meta || ibs_pin_schema_known(meta))
		return meta;
	munmap(meta, sizeof(*meta));
	return NULL;
}

/* The process that holds the lock, according to meta; 0: unknown. */
static __u32 holder(struct pins *p)
{
	struct ibs_meta *meta = pins_map_meta(p, false);
	__u32 pid = meta ? meta->pid : 0;

	if (meta)
		munmap(meta, sizeof(*meta));
	return pid && (!kill(pid, 0) || errno != ESRCH) ? pid : 0;
}

void pins_set_stopped(struct pins *p)
{
	struct ibs_meta *meta = pins_map_meta(p, true);

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

#define MOUNT_BPFFS "mount -t bpf bpf " BPFFS

void pins_mount(const char *dir)
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

/* A file in the place of a directory of ours is moved, unless it could be a link of the user's. */
static int make_room(const char *path, bool links, struct err *err)
{
	char parent[sizeof(((struct pins *)0)->links)];
	struct stat st;

	if (lstat(path, &st) || S_ISDIR(st.st_mode) || (S_ISLNK(st.st_mode) && !links))
		return 0;
	snprintf(parent, sizeof(parent), "%.*s", (int)(strrchr(path, '/') - path), path);
	return pin_file_set_aside(path, parent, err);
}

static int make_links_dir(const struct pins *p, struct err *err)
{
	int ret = make_room(p->links, true, err), made;

	if (ret)
		return ret;
	made = make_dir(p->links, 0700);
	if (made < 0)
		return err_set(err, made, "cannot create %s: %s", p->links, strerror(-made));
	ret = trusted_dir_check(p->links, true, err);
	if (ret && made)
		rmdir(p->links);
	return ret;
}

static int make_dirs(struct pins *p, struct err *err)
{
	int ret, made;

	ret = is_bpffs(p->dir) ? make_room(p->dir, false, err) : 0;
	if (ret)
		return ret;
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
	ret = trusted_dir_check(p->dir, true, err) ?: make_links_dir(p, err);
	if (ret && made)
		rmdir(p->dir);
	return ret;
}

/* True if @fd is still the directory of that name. */
static bool is_still(int fd, const char *path)
{
	struct stat a, b;

	return !fstat(fd, &a) && !stat(path, &b) && a.st_dev == b.st_dev && a.st_ino == b.st_ino;
}

static int explain_lock(struct pins *p, int error, struct err *err)
{
	__u32 pid;

	if (error != EWOULDBLOCK)
		return err_set(err, -error, "cannot lock %s: %s", p->links, strerror(error));
	pid = holder(p);
	if (pid)
		return err_set(err, -EBUSY,
			       "a collector is already running as process %u; to start a second "
			       "one, give it another directory (--pin-dir)",
			       pid);
	return err_set(err, -EBUSY, "%s is locked by another process: find it with fuser -v %s",
		       p->links, p->links);
}

/* A child of a killed collector may be ending links; it has no name in the pins. */
static int lock_dir(struct pins *p, int fd)
{
	const struct timespec step = { .tv_nsec = 20000000 };
	const double until_s = now_s() + LOCK_S;
	bool said = false;

	while (flock(fd, LOCK_EX | LOCK_NB)) {
		const int error = errno;

		if (error != EWOULDBLOCK || holder(p) || now_s() > until_s)
			return error;
		if (!said)
			log_info("waiting %d s at most for the lock of %s: a child of a killed "
				 "collector may be ending its links",
				 LOCK_S, p->links);
		said = true;
		nanosleep(&step, NULL);
	}
	return 0;
}

/*
 * Lock the directory of links, since any user can lock a directory that he may read. A collector
 * that exits with --unpin may remove it before we have the lock.
 */
int pins_lock(struct pins *p, struct err *err)
{
	int ret, fd, error;

	for (;;) {
		ret = make_dirs(p, err);
		if (ret)
			return ret;
		fd = open(p->links, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
		if (fd < 0)
			return err_set(err, -errno, "cannot open %s: %s", p->links,
				       strerror(errno));
		if (fchmod(fd, 0700))
			ret = err_set(err, -errno, "cannot set the mode of %s: %s", p->links,
				      strerror(errno));
		else if ((error = lock_dir(p, fd)))
			ret = explain_lock(p, error, err);
		if (!ret && is_still(fd, p->links))
			break;
		close(fd);
		if (ret)
			return ret;
	}
	if (p->lock >= 0)
		close(p->lock);
	p->lock = fd;
	return 0;
}

int pins_lock_fd(const struct pins *p)
{
	return p->lock;
}

bool pins_are_locked(const struct pins *p)
{
	return is_still(p->lock, p->links);
}

bool pins_is_kind(int fd, const char *kind)
{
	char self[64], what[64] = "";

	/* maps, programs and links look the same except in /proc */
	snprintf(self, sizeof(self), "/proc/self/fd/%d", fd);
	return readlink(self, what, sizeof(what) - 1) > 0 && !strcmp(what, kind);
}
