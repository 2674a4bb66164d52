// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "pin_file.h"

#include <bpf/bpf.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define ASIDE_MAX 100 /* names that are tried */

bool pin_file_note(struct pin_file *p, const char *path)
{
	struct stat st;

	if (lstat(path, &st)) {
		memset(p, 0, sizeof(*p));
		return false;
	}
	*p = (struct pin_file){ st.st_dev, st.st_ino, st.st_mode & 0777, st.st_gid };
	return true;
}

bool pin_file_is(struct pin_file *p, const char *path)
{
	struct pin_file now;

	if (!pin_file_note(&now, path) || now.dev != p->dev || now.ino != p->ino)
		return false;
	*p = now;
	return true;
}

int pin_file_set_aside(const char *path, const char *dir, struct err *err)
{
	const char *slash = strrchr(path, '/');
	char to[PATH_MAX];

	for (int i = 1; i <= ASIDE_MAX; i++) {
		/* no '.', which bpffs rejects */
		snprintf(to, sizeof(to), "%s/%s-foreign%d", dir, slash ? slash + 1 : path, i);
		if (!renameat2(AT_FDCWD, path, AT_FDCWD, to, RENAME_NOREPLACE)) {
			log_warn("%s was not pinned by a collector: moved to %s; remove it if "
				 "nothing else uses it",
				 path, to);
			return 0;
		}
		if (errno == ENOENT)
			return 0;
		if (errno != EEXIST)
			break;
	}
	return err_set(err, -errno,
		       "%s was not pinned by a collector, and cannot be moved to %s: %s; remove it",
		       path, to, strerror(errno));
}

int pin_file_put(struct pin_file *p, int fd, const char *path, const char *aside, struct err *err)
{
	int ret = bpf_obj_pin(fd, path) ? -errno : 0;

	if (ret == -EEXIST) {
		ret = pin_file_set_aside(path, aside, err);
		if (ret)
			return ret;
		ret = bpf_obj_pin(fd, path) ? -errno : 0;
	}
	if (ret)
		return err_set(err, ret, "cannot pin %s: %s", path, strerror(-ret));
	pin_file_note(p, path);
	return 0;
}
