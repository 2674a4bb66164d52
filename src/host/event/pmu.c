// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "event.h"

#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cpu.h"
#include "base/err.h"
#include "base/num.h"

#define BUS "/sys/bus/event_source/devices"

void pmu_why_missing(const struct cpu_info *cpu, const char **why, const char **remedy)
{
	if (!cpu->amd) {
		*why = "only AMD (family 10h and later) and Hygon processors have IBS";
		*remedy = "run on such a machine";
	} else if (!cpu->ibs && cpu->hypervisor) {
		*why = "this hypervisor does not expose IBS to its guest (CPUID Fn8000_0001 "
		       "ECX[10] is 0)";
		*remedy = "run on the host or on a bare-metal instance";
	} else if (!cpu->ibs) {
		*why = "CPUID Fn8000_0001 ECX[10] is 0: the processor has no IBS, or it is "
		       "disabled";
		*remedy = "enable IBS in the BIOS setup";
	} else {
		*why = "the processor has IBS, but the kernel's driver did not start, usually "
		       "because the BIOS assigned no interrupt (EILVT)";
		*remedy = "see dmesg | grep -iE 'ibs|firmware bug', then enable IBS in the BIOS "
			  "setup or update the BIOS";
	}
}

static int no_pmu(const char *name, const struct cpu_info *cpu, struct err *e)
{
	const char *why, *remedy;

	pmu_why_missing(cpu, &why, &remedy);
	return err_set(e, -ENODEV, "no %s PMU: %s; %s", name, why, remedy);
}

/* "config1:0-11", "config:0-7,32-35": the word and the bits. */
static bool scan_format(const char *s, struct pmu_format *f)
{
	unsigned long lo, hi;
	char *end;

	if (strncmp(s, "config", 6))
		return false;
	s += 6;
	f->word = *s >= '1' && *s <= '9' ? *s++ - '0' : PMU_CONFIG;
	if (*s != ':')
		return false;
	f->mask = 0;
	do {
		s++;
		if (*s < '0' || *s > '9')
			return false;
		lo = hi = strtoul(s, &end, 10);
		if (*end == '-') {
			s = end + 1;
			if (*s < '0' || *s > '9')
				return false;
			hi = strtoul(s, &end, 10);
		}
		if (hi > 63 || lo > hi)
			return false;
		f->mask |= (hi - lo == 63 ? ~UINT64_C(0) : ((UINT64_C(1) << (hi - lo + 1)) - 1))
			   << lo;
		s = end;
	} while (*s == ',');
	return !*s;
}

static int read_format(struct pmu *p, const char *root, const char *dir, const char *name,
		       struct err *e)
{
	struct pmu_format *f = &p->formats[p->n_formats];
	char path[PATH_MAX], text[256];
	int err;

	if (p->n_formats == PMU_FORMATS_MAX)
		return err_set(e, -EINVAL, "%s%s: more than %d terms", root, dir, PMU_FORMATS_MAX);
	if (strlen(name) >= sizeof(f->name))
		return err_set(e, -EINVAL, "%s%s/%s: name longer than %zu characters", root, dir,
			       name, sizeof(f->name) - 1);
	snprintf(path, sizeof(path), "%s/%s", dir, name);
	err = num_read_line(root, path, text, sizeof(text), e);
	if (err)
		return err;
	if (!scan_format(text, f))
		return err_set(e, -EINVAL,
			       "%s%s: invalid bit range '%.40s': must be like config1:0-11", root,
			       path, text);
	memcpy(f->name, name, strlen(name) + 1);
	p->n_formats++;
	return 0;
}

static int read_cap(struct pmu *p, const char *root, const char *dir, const char *name,
		    struct err *e)
{
	char path[PATH_MAX], text[64];
	int err;

	if (p->n_caps == PMU_CAPS_MAX || strlen(name) >= sizeof(p->caps[0]))
		return err_set(e, -EINVAL, "%s%s: too many or too long names (%.40s)", root, dir,
			       name);
	snprintf(path, sizeof(path), "%s/%s", dir, name);
	err = num_read_line(root, path, text, sizeof(text), e);
	if (err)
		return err;
	if (strcmp(text, "0"))
		memcpy(p->caps[p->n_caps++], name, strlen(name) + 1);
	return 0;
}

typedef int (*entry_fn)(struct pmu *p, const char *root, const char *dir, const char *name,
			struct err *e);

static int read_dir(struct pmu *p, const char *root, const char *sub, entry_fn fn, struct err *e)
{
	char dir[128], full[PATH_MAX];
	struct dirent *d;
	int err = 0;
	DIR *dp;

	snprintf(dir, sizeof(dir), BUS "/%s/%s", p->name, sub);
	if (snprintf(full, sizeof(full), "%s%s", root, dir) >= (int)sizeof(full))
		return err_set(e, -ENAMETOOLONG, "%.60s...%s: path too long", root, dir);
	dp = opendir(full);
	if (!dp && errno == ENOENT)
		return 0; /* caps/ came with v5.19; without any term there may be no format/ */
	if (!dp) {
		err = -errno;
		return err_set(e, err, "%s: cannot open: %s", full, strerror(-err));
	}
	while (!err && (errno = 0, d = readdir(dp))) {
		if (d->d_name[0] != '.')
			err = fn(p, root, dir, d->d_name, e);
	}
	if (!err && errno) {
		err = -errno;
		err_set(e, err, "%s: cannot list: %s", full, strerror(-err));
	}
	closedir(dp);
	return err;
}

static int by_name(const void *a, const void *b)
{
	return strcmp(a, b); /* both kinds of element begin with their name */
}

static int read_pmu(struct pmu *p, const char *root, struct err *e)
{
	int64_t type, rate;
	char path[128];
	int err;

	snprintf(path, sizeof(path), BUS "/%s/type", p->name);
	err = num_read(root, path, &type, e);
	if (err)
		return err;
	if (type < 0 || type > UINT32_MAX)
		return err_set(e, -EINVAL, "%s%s: invalid PMU type %lld", root, path,
			       (long long)type);
	p->type = type;
	err = read_dir(p, root, "format", read_format, e);
	if (err)
		return err;
	err = read_dir(p, root, "caps", read_cap, e);
	if (err)
		return err;
	if (!num_read(root, "/proc/sys/kernel/perf_event_max_sample_rate", &rate, NULL) && rate > 0)
		p->max_sample_rate = rate;
	qsort(p->formats, p->n_formats, sizeof(p->formats[0]), by_name);
	qsort(p->caps, p->n_caps, sizeof(p->caps[0]), by_name);
	return 0;
}

int pmu_open(const char *root, const char *name, const struct cpu_info *cpu, struct pmu **out,
	     struct err *e)
{
	char path[PATH_MAX];
	struct pmu *p;
	int err;

	if (strlen(name) >= sizeof(p->name) || strchr(name, '/') || *name == '.' || !*name)
		return err_set(e, -EINVAL, "unknown PMU '%.40s': must be ibs_op or ibs_fetch",
			       name);
	snprintf(path, sizeof(path), "%s" BUS, root);
	if (access(path, F_OK)) {
		err = -errno;
		return err_set(
			e, err,
			"%s: %s; mount sysfs there (in a container: give it the host's /sys, "
			"read-only is enough)",
			path, strerror(-err));
	}
	snprintf(path, sizeof(path), "%s" BUS "/%s", root, name);
	if (access(path, F_OK))
		return errno == ENOENT ? no_pmu(name, cpu, e) : err_set(e, -errno, "%s: %m", path);
	p = xcalloc(1, sizeof(*p));
	snprintf(p->name, sizeof(p->name), "%s", name);
	err = read_pmu(p, root, e);
	if (err)
		pmu_close(p);
	else
		*out = p;
	return err;
}

void pmu_close(struct pmu *p)
{
	free(p);
}

const struct pmu_format *pmu_format(const struct pmu *p, const char *name)
{
	for (size_t i = 0; i < p->n_formats; i++)
		if (!strcmp(p->formats[i].name, name))
			return &p->formats[i];
	return NULL;
}

bool pmu_has_cap(const struct pmu *p, const char *name)
{
	for (size_t i = 0; i < p->n_caps; i++)
		if (!strcmp(p->caps[i], name))
			return true;
	return false;
}

uint64_t pmu_format_max(const struct pmu_format *fmt)
{
	int bits = __builtin_popcountll(fmt->mask);

	return bits == 64 ? ~UINT64_C(0) : (UINT64_C(1) << bits) - 1;
}

int pmu_format_put(const struct pmu_format *fmt, uint64_t value, uint64_t *word)
{
	uint64_t mask, bits = 0;

	if (value > pmu_format_max(fmt))
		return -ERANGE;
	for (mask = fmt->mask; mask; mask &= mask - 1, value >>= 1) {
		if (value & 1)
			bits |= mask & -mask;
	}
	*word = (*word & ~fmt->mask) | bits;
	return 0;
}
