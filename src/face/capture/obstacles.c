// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "obstacles.h"

#include <elf.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define PROGRAM_HEADERS 256 /* most that are looked at */

bool obstacle_has_loader(int fd)
{
	Elf64_Ehdr head;
	Elf64_Phdr p;

	if (pread(fd, &head, sizeof(head), 0) != sizeof(head) ||
	    memcmp(head.e_ident, ELFMAG, SELFMAG) != 0)
		return true;
	if (head.e_ident[EI_CLASS] != ELFCLASS64 || head.e_machine != EM_X86_64)
		return false;
	for (unsigned int i = 0; i < head.e_phnum && i < PROGRAM_HEADERS; i++) {
		const off_t at = (off_t)(head.e_phoff + (__u64)i * head.e_phentsize);

		if (pread(fd, &p, sizeof(p), at) == sizeof(p) && p.p_type == PT_INTERP)
			return true;
	}
	return false;
}

enum obstacle obstacle_of(__u32 pid)
{
	enum obstacle is = OBSTACLE_NONE;
	struct stat st;
	char path[64];
	int fd;

	snprintf(path, sizeof(path), "/proc/%u/exe", pid);
	fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	if (fd >= 0 && !obstacle_has_loader(fd))
		is = OBSTACLE_LOADER;
	if (fd >= 0)
		close(fd);
	snprintf(path, sizeof(path), "/proc/%u", pid);
	/* root can write to any directory; a process that may not be dumped seems to belong to root, too */
	if (!is && !stat(path, &st) && st.st_uid != geteuid() && st.st_uid)
		is = OBSTACLE_USER;
	return is;
}
