// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* record --allocs: libibscope-alloc.so is loaded into the command's processes. */
#include "record_private.h"

#include "base/array.h"
#include "base/text.h"
#include "probes/probes.h"

#include <ibscope/alloc_file.h>

#include <elf.h>
#include <fcntl.h>
#include <limits.h>
#include <paths.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#define LIBRARY "libibscope-alloc.so"

/* Find the file that execvp() would run. Return: false if there is none. */
static bool find_program(const char *name, char path[PATH_MAX])
{
	const char *dirs = getenv("PATH") ?: _PATH_DEFPATH;

	if (strchr(name, '/'))
		return snprintf(path, PATH_MAX, "%s", name) < PATH_MAX && !access(path, X_OK);
	for (size_t n; *dirs; dirs += n + (dirs[n] == ':')) {
		n = strcspn(dirs, ":");
		if (snprintf(path, PATH_MAX, "%.*s%s%s", (int)n, dirs, n ? "/" : "", name) <
			    PATH_MAX &&
		    !access(path, X_OK))
			return true;
	}
	return false;
}

/* Does it run with more rights than we have, so that loaders ignore LD_PRELOAD? */
static bool is_privileged(int fd, const struct stat *st)
{
	return (st->st_mode & S_ISUID && st->st_uid != geteuid()) ||
	       (st->st_mode & S_ISGID && st->st_gid != getegid()) ||
	       (geteuid() && fgetxattr(fd, "security.capability", NULL, 0) > 0);
}

/* Why nothing can be loaded into a program; NULL: it can, or nobody knows. */
static const char *obstacle(int fd)
{
	Elf64_Ehdr head;
	struct stat st;

	if (fstat(fd, &st) || !S_ISREG(st.st_mode) ||
	    pread(fd, &head, sizeof(head), 0) != sizeof(head) ||
	    memcmp(head.e_ident, ELFMAG, SELFMAG))
		return NULL;
	if (head.e_ident[EI_CLASS] != ELFCLASS64 || head.e_machine != EM_X86_64)
		return "is not a 64-bit x86 program; " LIBRARY " is";
	if (is_privileged(fd, &st))
		return "is setuid or setgid or has capabilities, so that nothing is loaded into "
		       "it; "
		       "record as the user that it runs as";
	if (!obstacle_has_loader(fd))
		return "is statically linked, so that " LIBRARY
		       " cannot be loaded into it; link it dynamically";
	return NULL;
}

/* The interpreter of a script, in place of its name. Return: false if it is none. */
static bool find_interpreter(int fd, char path[PATH_MAX])
{
	char line[PATH_MAX] = "";
	const ssize_t n = pread(fd, line, sizeof(line) - 1, 0);
	const char *word = line + 2;

	line[n < 0 ? 0 : n] = 0;
	if (strncmp(line, "#!", 2) != 0)
		return false;
	word += strspn(word, " \t");
	snprintf(path, PATH_MAX, "%.*s", (int)strcspn(word, " \t\n"), word);
	return true;
}

/* Find the file of a program, or of its interpreter. Return: false if there is none: starting it fails with the reason. */
static bool find_file(const char *name, char path[PATH_MAX])
{
	int fd;

	if (!find_program(name, path))
		return false;
	fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	if (fd < 0)
		return false;
	find_interpreter(fd, path);
	close(fd);
	return true;
}

static int check_program(const char *path, struct err *err)
{
	const char *why = NULL;
	int fd;

	fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	if (fd >= 0) {
		why = obstacle(fd);
		close(fd);
	}
	return why ? err_set(err, -EINVAL, "--allocs: %s %s", path, why) : 0;
}

static bool has_probes(const char *path)
{
	const int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	const bool has = fd >= 0 && probes_has(fd);

	if (fd >= 0)
		close(fd);
	return has;
}

/* The file with probes in the program, or the first in LD_PRELOAD; NULL: none. */
static char *find_probes(const char *program)
{
	char *list = xstrdup(getenv("LD_PRELOAD") ?: ""), *rest = list, *name, *found = NULL;

	if (has_probes(program))
		found = xstrdup(program);
	while (!found && (name = strsep(&rest, ": ")))
		if (*name == '/' && has_probes(name))
			found = xstrdup(name);
	free(list);
	return found;
}

static int load_library(const struct record *r, struct err *err)
{
	char bytes[32];
	int ret = record_add_library("LD_PRELOAD", LIBRARY, err);

	if (ret)
		return ret;
	snprintf(bytes, sizeof(bytes), "%llu", r->alloc_bytes);
	return setenv(IBSCOPE_ALLOC_BYTES, bytes, 1) ? err_set(err, -ENOMEM, "out of memory") : 0;
}

int record_allocs_prepare(struct record *r, struct err *err)
{
	const bool running =
		r->sampling.select.sel.processes.n && !r->sampling.select.sel.processes.but;
	char path[PATH_MAX];
	int ret;

	if (!r->alloc_bytes)
		return 0;
	if ((!r->sampling.argv && !running) || r->out.format != OUTPUT_RECORDING)
		return err_set(
			err, -EINVAL,
			"--allocs: put the program after '--', or choose processes that have "
			"probes with --pid, and record to a file");
	if (r->out.rotate)
		return err_set(err, -EINVAL,
			       "--allocs and --rotate exclude each other: a new file would lack "
			       "the allocations before it");
	r->alloc_probes = running;
	if (running || !find_file(r->sampling.argv[0], path))
		return 0;
	r->probe_file = find_probes(path);
	r->alloc_probes = r->probe_file;
	if (r->alloc_probes)
		return 0;
	ret = check_program(path, err);
	return ret ?: load_library(r, err);
}

/* Attach to the processes that were chosen. */
static int attach_processes(const struct record *r, struct probes *probes, struct err *err)
{
	const struct selection *sel = &r->sampling.select.sel;
	int ret;

	for (size_t i = 0; i < sel->processes.n; i++) {
		const __u32 pid = sel->processes.pids[i];

		ret = probes_attach_process(probes, pid, sel->follow, err);
		if (ret < 0)
			return ret;
		if (!ret)
			return err_set(err, -ENOENT,
				       "--allocs: process %u has no file with the USDT "
				       "probe " PROBES_PROVIDER
				       ":alloc; start its program with `ibscope record --allocs -- "
				       "PROGRAM`",
				       pid);
	}
	return 0;
}

int record_allocs_begin(struct record *r, struct err *err)
{
	struct probes *probes;
	int ret;

	if (!r->alloc_probes)
		return 0;
	ret = probes_open(&probes, err);
	if (ret)
		return ret;
	ret = r->probe_file ? probes_attach(probes, r->probe_file, 0, err)
			    : attach_processes(r, probes, err);
	if (ret) {
		probes_close(probes);
		return ret;
	}
	r->capture.allocs = r->capture.allocs ?: allocs_new();
	allocs_add_probes(r->capture.allocs, probes, &r->capture.choice);
	return 0;
}

void record_allocs_summary(const struct record *r)
{
	const struct allocs_counts c = allocs_counts(r->capture.allocs);

	if (!r->alloc_bytes)
		return;
	if (r->alloc_probes)
		log_info("%s allocations and frees by probes of %s file%s", TEXT_COUNT(c.events),
			 TEXT_COUNT(c.probes), text_plural(c.probes));
	else
		log_info("%s allocations and frees of %s program%s", TEXT_COUNT(c.events),
			 TEXT_COUNT(c.programs), text_plural(c.programs));
	if (c.lost)
		log_warn("%s allocations and frees were lost; some data has a wrong allocation or "
			 "none",
			 TEXT_COUNT(c.lost));
	if (c.own_malloc)
		log_warn(
			"%s program%s defined malloc: only mappings of such a program are recorded",
			TEXT_COUNT(c.own_malloc), text_plural(c.own_malloc));
	if (c.obstacle[OBSTACLE_USER])
		log_warn("%s process%s ran as another user: their allocations are not recorded; "
			 "record as that user",
			 TEXT_COUNT(c.obstacle[OBSTACLE_USER]),
			 c.obstacle[OBSTACLE_USER] == 1 ? "" : "es");
	if (c.obstacle[OBSTACLE_LOADER])
		log_warn("%s process%s could not load " LIBRARY
			 ", statically linked or not of 64 bits: their allocations are not "
			 "recorded",
			 TEXT_COUNT(c.obstacle[OBSTACLE_LOADER]),
			 c.obstacle[OBSTACLE_LOADER] == 1 ? "" : "es");
	if (!c.programs && !r->alloc_probes)
		log_warn("no allocations were recorded: the command made none, or "
			 "runs programs that are statically linked, setuid, or of another user");
}
