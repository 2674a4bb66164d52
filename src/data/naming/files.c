// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "files.h"

#include "base/clock.h"
#include "base/regular.h"
#include "code_dump.h"
#include "code_map.h"
#include "base/u64_map.h"

#include <dlfcn.h>
#include <elf.h>
#include <fcntl.h>
#include <link.h>
#include <signal.h>
#include <linux/openat2.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#define START_SLACK_NS 1000000000ull

/* When a process started, by CLOCK_MONOTONIC. Return: 0 if there is none. */
static __u64 started(pid_t pid)
{
	__u64 awake = clock_ns(CLOCK_MONOTONIC), all = clock_ns(CLOCK_BOOTTIME), ns;
	unsigned long long ticks = 0;
	char path[64], text[1024], *end;
	ssize_t n;
	int fd;

	snprintf(path, sizeof(path), "/proc/%d/stat", pid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return 0;
	n = read(fd, text, sizeof(text) - 1);
	close(fd);
	text[n > 0 ? n : 0] = 0;
	/* the name in brackets may have anything in it; 20 fields follow */
	end = strrchr(text, ')');
	if (!end || sscanf(end + 1,
			   " %*c %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s "
			   "%*s %*s %llu",
			   &ticks) != 1)
		return 0;
	ns = ticks * (1000000000ull / sysconf(_SC_CLK_TCK));
	return ns > all - awake ? ns - (all - awake) : 1;
}

/* Neither asks a remote file system, nor one of a hostile user. */
static __u64 identify(const char *path)
{
	struct statx st;

	if (statx(AT_FDCWD, path, AT_STATX_DONT_SYNC, STATX_INO | STATX_MNT_ID, &st))
		return 0;
	return words_hash(
		(const __u64[]){ st.stx_dev_major, st.stx_dev_minor, st.stx_ino, st.stx_mnt_id },
		4);
}

bool file_root(pid_t pid, __u64 started_before, struct naming_root *out)
{
	__u64 start = started(pid), id;
	char path[64];

	*out = (struct naming_root){};
	if (!start || start > started_before + START_SLACK_NS)
		return false;
	snprintf(path, sizeof(path), "/proc/%d/root", pid);
	id = identify(path);
	if (id && id != identify("/proc/self/root"))
		*out = (struct naming_root){ id, pid };
	return id;
}

/* Nothing of the path leads out of the root: neither "..", nor a link. */
static int open_below(const struct naming_root *root, const char *path, int flags)
{
	struct open_how how = { .flags = O_PATH | O_CLOEXEC | flags,
				.resolve = RESOLVE_IN_ROOT | RESOLVE_NO_MAGICLINKS };
	char name[64];
	int dir, at, fd;

	snprintf(name, sizeof(name), root->pid ? "/proc/%d/root" : "/", root->pid);
	dir = open(name, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (dir < 0)
		return -errno;
	at = syscall(SYS_openat2, dir, path, &how, sizeof(how));
	fd = at < 0 ? -errno : 0;
	close(dir);
	if (at < 0)
		return fd;
	snprintf(name, sizeof(name), "/proc/self/fd/%d", at);
	fd = regular_open(name);
	close(at);
	return fd;
}

/* Other files are none of the reader's business. */
static int check(int fd)
{
	char magic[SELFMAG];
	struct stat st;
	ssize_t n = 0;
	int ret = 0;

	if (fd < 0)
		return fd;
	if (fstat(fd, &st) || (n = pread(fd, magic, SELFMAG, 0)) < 0)
		ret = -errno;
	else if ((__u64)st.st_size > FILE_BYTES_MAX)
		ret = -EFBIG;
	else if (n != SELFMAG || memcmp(magic, ELFMAG, SELFMAG) != 0)
		ret = -ENOEXEC;
	if (ret)
		close(fd);
	return ret ?: fd;
}

int file_open(const struct naming_root *root, const char *path)
{
	return check(root && root->pid ? open_below(root, path, 0) : regular_open(path));
}

/* Its pid in its own namespace, and its effective user. */
static bool read_status(pid_t pid, int *own_pid, uid_t *uid)
{
	char path[64], line[1024];
	bool has_uid = false, has_pid = false;
	const char *last;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/status", pid);
	f = fopen(path, "re");
	if (!f)
		return false;
	while (fgets(line, sizeof(line), f)) {
		has_uid |= sscanf(line, "Uid: %*u %u", uid) == 1;
		last = strncmp(line, "NSpid:", 6) ? NULL : strrchr(line, '\t');
		has_pid |= last && sscanf(last, "%d", own_pid) == 1;
	}
	fclose(f);
	return has_uid && has_pid;
}

/* Its own list, and no bigger than it may be. */
static int check_list(int fd, uid_t uid, __u64 most)
{
	struct stat st;

	if (fstat(fd, &st))
		return -errno;
	if (st.st_uid && st.st_uid != uid)
		return -EPERM;
	return (__u64)st.st_size > most ? -EFBIG : 0;
}

/* The name of the file was that of the process's; a map may have another one, or an old one. */
static int check_dump(int fd, const char *path, int pid)
{
	__u32 head[6] = {}; /* magic, .., pid */
	char name[32];

	snprintf(name, sizeof(name), "/jit-%d.dump", pid);
	if (strcmp(strrchr(path, '/') ?: "", name) != 0 ||
	    pread(fd, head, sizeof(head), 0) != sizeof(head) || head[0] != CODE_DUMP_MAGIC ||
	    head[5] != (__u32)pid)
		return -ENOEXEC;
	return 0;
}

int file_open_code_list(const struct naming_root *root, pid_t pid, bool alive, const char *dump,
			char *path, size_t size)
{
	int own_pid = pid, ret, fd;
	uid_t uid = geteuid();

	/* another process with the number may have left the file */
	if (alive ? !read_status(pid, &own_pid, &uid) : !kill(pid, 0) || errno != ESRCH)
		return -ESRCH;
	if (dump && strlen(dump) >= size)
		return -ENAMETOOLONG;
	if (dump)
		strcpy(path, dump);
	else
		snprintf(path, size, "/tmp/perf-%d.map", own_pid);
	fd = open_below(root, path, O_NOFOLLOW);
	if (fd < 0)
		return fd;
	ret = check_list(fd, uid, dump ? FILE_BYTES_MAX : CODE_MAP_BYTES);
	if (!ret && dump)
		ret = check_dump(fd, path, own_pid);
	if (ret)
		close(fd);
	return ret ?: fd;
}

int file_open_vdso(void)
{
	const ElfW(Ehdr) *vdso = (const void *)getauxval(AT_SYSINFO_EHDR);
	size_t len;
	int fd, ret;

	if (!vdso)
		return -ENOENT;
	len = vdso->e_shoff + (size_t)vdso->e_shnum * vdso->e_shentsize;
	fd = memfd_create("vdso", MFD_CLOEXEC);
	if (fd < 0 || write(fd, vdso, len) == (ssize_t)len)
		return fd < 0 ? -errno : fd;
	ret = -errno;
	close(fd);
	return ret;
}

typedef struct debuginfod_client *begin_fn(void);
typedef int find_fn(struct debuginfod_client *c, const unsigned char *id, int len, char **path);
typedef void end_fn(struct debuginfod_client *c);

/* Loaded when it is wanted: most machines do without. */
int file_fetch(const char *id)
{
	const bool valid = *id && !id[strspn(id, "0123456789abcdef")];
	void *lib = valid ? dlopen("libdebuginfod.so.1", RTLD_LAZY) : NULL;
	begin_fn *begin = lib ? (begin_fn *)dlsym(lib, "debuginfod_begin") : NULL;
	find_fn *find = lib ? (find_fn *)dlsym(lib, "debuginfod_find_debuginfo") : NULL;
	end_fn *end = lib ? (end_fn *)dlsym(lib, "debuginfod_end") : NULL;
	struct debuginfod_client *client = begin && find && end ? begin() : NULL;
	int fd;

	if (!client)
		return -ENOENT;
	/* a length of 0: the id is text */
	fd = find(client, (const unsigned char *)id, 0, NULL);
	end(client);
	return check(fd);
}
