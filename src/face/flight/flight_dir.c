// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "flight_dir.h"

#include "base/clock.h"
#include "base/err.h"
#include "base/text.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <fnmatch.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <ibscope/pin_layout.h>

#define DIGITS4 "[0-9][0-9][0-9][0-9]"
#define NAMES	"flight-" DIGITS4 DIGITS4 "T" DIGITS4 "[0-9][0-9].[0-9][0-9][0-9]Z.data"

static int make_dir(const char *dir, struct err *err)
{
	if (!mkdir(dir, 0700) || errno == EEXIST)
		return 0;
	return err_set(err, -errno, "--flight-dir: cannot create %s: %s", dir, strerror(errno));
}

int flight_dir_check(const char *dir, struct err *err)
{
	struct output_file probe;
	struct err ignored;
	char path[PATH_MAX];
	int ret = make_dir(dir, err);

	if (ret)
		return ret;
	snprintf(path, sizeof(path), "%s/flight", dir);
	ret = output_file_begin(&probe, NULL, path, err);
	if (ret)
		return ret;
	output_file_end(&probe, -ECANCELED, &ignored);
	return 0;
}

int flight_dir_begin(const char *dir, struct flight_file *f, struct err *err)
{
	char time[TEXT_TIME_STAMP_SIZE];
	int ret;

	ret = make_dir(dir, err);
	if (ret)
		return ret;
	f->time_ns = clock_ns(CLOCK_REALTIME);
	snprintf(f->path, sizeof(f->path), "%s/" IBS_FLIGHT_FILE, dir,
		 text_time_stamp(time, f->time_ns));
	return output_file_begin(&f->out, NULL, f->path, err);
}

static int is_ours(const struct dirent *e)
{
	return !fnmatch(NAMES, e->d_name, 0);
}

bool flight_dir_find(const char *dir, uint64_t from_ns, uint64_t to_ns, char path[PATH_MAX])
{
	char from[sizeof("flight-.data") + TEXT_TIME_STAMP_SIZE], to[sizeof(from)],
		stamp[TEXT_TIME_STAMP_SIZE];
	struct dirent **list;
	int n = scandir(dir, &list, is_ours, alphasort);
	bool found = false;

	snprintf(from, sizeof(from), IBS_FLIGHT_FILE, text_time_stamp(stamp, from_ns));
	snprintf(to, sizeof(to), IBS_FLIGHT_FILE, text_time_stamp(stamp, to_ns));
	for (int i = 0; i < n; i++) {
		/* the names order as the times do */
		if (!found && strcmp(list[i]->d_name, from) >= 0 &&
		    strcmp(list[i]->d_name, to) <= 0)
			found = snprintf(path, PATH_MAX, "%s/%s", dir, list[i]->d_name) < PATH_MAX;
		free(list[i]);
	}
	if (n >= 0)
		free(list);
	return found;
}

/* Return: bytes of a regular file, -1: it is none. */
static int64_t size_of(int dir, const char *name)
{
	struct stat st;

	return fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) || !S_ISREG(st.st_mode) ? -1
										    : st.st_size;
}

void flight_dir_prune(const char *dir, size_t files, uint64_t bytes)
{
	struct dirent **list;
	int n = scandir(dir, &list, is_ours, alphasort),
	    fd = open(dir, O_PATH | O_DIRECTORY | O_CLOEXEC);
	uint64_t sum = 0;
	size_t kept = 0;
	bool full = false;

	/* the names begin with the time: the newest is the last; all before the first that is too many go */
	for (int i = n - 1; i >= 0; i--) {
		int64_t size = size_of(fd, list[i]->d_name);

		full = full || (size >= 0 && kept && (kept >= files || sum + size > bytes));
		if (size >= 0 && full)
			unlinkat(fd, list[i]->d_name, 0);
		else if (size >= 0)
			kept++, sum += size;
		free(list[i]);
	}
	if (n >= 0)
		free(list);
	if (fd >= 0)
		close(fd);
}
