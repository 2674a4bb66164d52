// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "probes.h"

#include "base/array.h"
#include "base/std.h"
#include "machine/kernel.h"

#include <bpf/libbpf.h>
#include <fcntl.h>
#include <limits.h>
#include <sys/stat.h>
#include <unistd.h>

#include "alloc_probes.skel.h"

#define FILES_MAX 64 /* that are listened to */

struct probes {
	struct alloc_probes_bpf *bpf;
	struct ring_buffer *ring;
	struct bpf_link *links[2 * FILES_MAX];
	size_t n_links, n_files;
	struct attached {
		dev_t dev;
		ino_t ino;
		__u32 pid;
	} files[FILES_MAX];
	probes_cb *cb;
	void *arg;
};

static int take(void *arg, void *data, size_t bytes)
{
	struct probes *p = arg;

	(void)bytes;
	/* an event that was read is gone, even at an error, which only ends this reading */
	return p->cb(data, p->arg) ? 0 : -EAGAIN;
}

int probes_open(struct probes **out, struct err *err)
{
	struct probes *p = xcalloc(1, sizeof(*p));
	int ret;

	p->bpf = alloc_probes_bpf__open();
	if (!p->bpf) {
		ret = -errno;
		goto fail;
	}
	kernel_pid_namespace("", (unsigned long long *)&p->bpf->rodata->cfg_pid_ns_dev,
			     (unsigned long long *)&p->bpf->rodata->cfg_pid_ns_ino);
	ret = alloc_probes_bpf__load(p->bpf);
	if (ret)
		goto fail;
	p->ring = ring_buffer__new(bpf_map__fd(p->bpf->maps.probe_events), take, p, NULL);
	ret = p->ring ? 0 : -errno;
	if (ret)
		goto fail;
	*out = p;
	return 0;
fail:
	probes_close(p);
	return err_set(err, ret, "cannot load the BPF programs for probes of allocations: %s",
		       strerror(-ret));
}

void probes_close(struct probes *p)
{
	if (!p)
		return;
	for (size_t i = 0; i < p->n_links; i++)
		bpf_link__destroy(p->links[i]);
	ring_buffer__free(p->ring);
	alloc_probes_bpf__destroy(p->bpf);
	free(p);
}

/* --- attaching */

static int attach(struct probes *p, struct bpf_program *prog, const char *path, __u32 pid,
		  const char *name, struct err *err)
{
	struct bpf_link *link = bpf_program__attach_usdt(prog, pid ? (pid_t)pid : -1, path,
							 PROBES_PROVIDER, name, NULL);
	const int ret = link ? 0 : -errno;

	if (ret)
		return err_set(err, ret,
			       "cannot attach to the probe " PROBES_PROVIDER ":%s of %s: %s%s",
			       name, path, strerror(-ret),
			       ret == -EACCES || ret == -EPERM ? "; run as root" : "");
	p->links[p->n_links++] = link;
	return 0;
}

static bool is_attached(const struct probes *p, const struct stat *st, __u32 pid)
{
	for (size_t i = 0; i < p->n_files; i++)
		if (p->files[i].dev == st->st_dev && p->files[i].ino == st->st_ino &&
		    p->files[i].pid == pid)
			return true;
	return false;
}

int probes_attach(struct probes *p, const char *path, __u32 pid, struct err *err)
{
	struct err none = { "" };
	struct stat st;
	int ret;

	if (stat(path, &st))
		return err_set(err, -errno, "cannot read %s: %s", path, strerror(errno));
	if (is_attached(p, &st, pid))
		return 0;
	if (p->n_files == FILES_MAX)
		return err_set(err, -E2BIG, "more than %d files with probes " PROBES_PROVIDER,
			       FILES_MAX);
	ret = attach(p, p->bpf->progs.probe_alloc, path, pid, "alloc", err);
	if (ret)
		return ret;
	/* without it, an allocation ends with the next one at its address */
	ret = attach(p, p->bpf->progs.probe_free, path, pid, "free", &none);
	if (ret && ret != -ENOENT)
		return err_set(err, ret, "%s", none.text);
	p->files[p->n_files++] = (struct attached){ st.st_dev, st.st_ino, pid };
	return 0;
}

static int explain_unreadable(int errnum, __u32 pid, const char *path, struct err *err)
{
	const bool denied = errnum == EACCES || errnum == EPERM;

	return err_set(err, -errnum, "cannot look for probes in process %u: %s: %s%s", pid, path,
		       strerror(errnum),
		       denied ? "; run this as root, or give it CAP_SYS_PTRACE" : "");
}

/* Open the list of what the process maps, if its files can be read as well. */
static int open_mappings(__u32 pid, FILE **out, struct err *err)
{
	char path[64];
	int fd;

	snprintf(path, sizeof(path), "/proc/%u/root/", pid);
	fd = open(path, O_PATH | O_CLOEXEC);
	if (fd < 0)
		return explain_unreadable(errno, pid, path, err);
	close(fd);
	snprintf(path, sizeof(path), "/proc/%u/maps", pid);
	*out = fopen(path, "re");
	return *out ? 0 : explain_unreadable(errno, pid, path, err);
}

/* Attach to the file of a line of /proc/PID/maps, if it has the probe. Return: 1 if so, 0, or a negative errno with @err. */
static int attach_mapping(struct probes *p, __u32 pid, bool children, char *line, struct err *err)
{
	char path[PATH_MAX + 64], *file = strchr(line, '/');
	const char *flags = strchr(line, ' ');
	int fd, ret = 0;

	if (!file || !flags || flags[3] != 'x')
		return 0;
	file[strcspn(file, "\n")] = 0;
	/* as the process sees it, which may be in a container */
	snprintf(path, sizeof(path), "/proc/%u/root%s", pid, file);
	fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	if (fd < 0)
		return 0; /* it was deleted */
	if (probes_has(fd))
		ret = probes_attach(p, path, children ? 0 : pid, err) ?: 1;
	close(fd);
	return ret;
}

int probes_attach_process(struct probes *p, __u32 pid, bool children, struct err *err)
{
	char *line = NULL;
	int ret, n = 0;
	size_t room = 0;
	FILE *f;

	ret = open_mappings(pid, &f, err);
	if (ret)
		return ret;
	while (ret >= 0 && xgetline(&line, &room, f) >= 0) {
		ret = attach_mapping(p, pid, children, line, err);
		n += ret > 0;
	}
	free(line);
	fclose(f);
	return ret < 0 ? ret : n;
}

/* --- events */

void probes_read(struct probes *p, probes_cb *cb, void *arg)
{
	p->cb = cb;
	p->arg = arg;
	ring_buffer__consume(p->ring);
}

__u64 probes_lost(const struct probes *p)
{
	return __atomic_load_n(&p->bpf->bss->probes_lost, __ATOMIC_RELAXED);
}

size_t probes_files(const struct probes *p)
{
	return p->n_files;
}
