// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "regular.h"
#include "std.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

int regular_open(const char *path)
{
	int fd, ret, at = open(path, O_PATH | O_CLOEXEC);
	struct stat st;
	char link[32];

	if (at < 0)
		return -errno;
	ret = fstat(at, &st) ? -errno : S_ISREG(st.st_mode) ? 0 : -EINVAL;
	if (!ret) {
		snprintf(link, sizeof(link), "/proc/self/fd/%d", at);
		fd = open(link, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
		ret = fd < 0 ? -errno : fd;
	}
	close(at);
	return ret;
}
