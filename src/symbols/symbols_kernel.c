// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "symbols_kernel.h"

#include "base/regular.h"

#include <unistd.h>

#define HIGH	 0x8000000000000000ull /* where the kernel begins */
#define MAX_SIZE (1u << 20)	       /* of a function: symbols end in gaps, too */

struct kernel_symbol {
	__u64 addr;
	const char *name, *module; /* in `text`; NULL: of the kernel itself */
};

struct kernel_symbols {
	struct kernel_symbol *list;
	size_t n, room;
	char *text; /* the whole file */
};

/* "ffffffff81000000 T _stext\t[module]", of which only symbols of code are kept. */
static void add_line(struct kernel_symbols *k, char *line, __u64 shift, bool core)
{
	char *end, *name, *module;
	unsigned long long addr = strtoull(line, &end, 16);
	size_t len;

	if (end == line || end[0] != ' ' || !end[1] || !strchr("tTwW", end[1]) || end[2] != ' ')
		return;
	name = end + 3;
	len = strcspn(name, " \t");
	module = name + len + strspn(name + len, " \t");
	if (!len || (*module == '[' && core) || addr < HIGH)
		return;
	name[len] = 0;
	array_reserve(k->list, k->room, k->n + 1);
	k->list[k->n++] =
		(struct kernel_symbol){ addr + shift, name, *module == '[' ? module : NULL };
}

static int compare(const void *pa, const void *pb)
{
	const struct kernel_symbol *a = pa, *b = pb;

	if (a->addr != b->addr)
		return a->addr < b->addr ? -1 : 1;
	return a->name < b->name ? -1 : a->name > b->name;
}

static int read_list(struct kernel_symbols *k, int fd, __u64 shift, bool core)
{
	size_t room = 0, n = 0;
	char *save;
	ssize_t got;

	do {
		array_reserve(k->text, room, n + (1 << 16) + 1);
		got = read(fd, k->text + n, 1 << 16);
		n += got > 0 ? got : 0;
	} while (got > 0 || (got < 0 && errno == EINTR));
	k->text[n] = 0;
	for (char *line = strtok_r(k->text, "\n", &save); line; line = strtok_r(NULL, "\n", &save))
		add_line(k, line, shift, core);
	return got < 0 ? -errno : 0;
}

int kernel_symbols_open(const char *path, __u64 shift, bool core, struct kernel_symbols **out,
			struct err *err)
{
	struct kernel_symbols *k;
	int ret, fd = regular_open(path);

	if (fd < 0)
		return err_set(err, fd, "cannot open %s: %s", path,
			       fd == -EINVAL ? "not a regular file" : strerror(-fd));
	k = xcalloc(1, sizeof(*k));
	ret = read_list(k, fd, shift, core);
	close(fd);
	if (ret)
		err_set(err, ret, "cannot read %s: %s", path, strerror(-ret));
	else if (!k->n)
		ret = err_set(err, -EPERM,
			      "%s: no addresses of the kernel in it; without privilege they are "
			      "hidden (kernel.kptr_restrict)",
			      path);
	if (ret) {
		kernel_symbols_close(k);
		return ret;
	}
	qsort(k->list, k->n, sizeof(*k->list), compare);
	*out = k;
	return 0;
}

void kernel_symbols_close(struct kernel_symbols *k)
{
	if (!k)
		return;
	free(k->list);
	free(k->text);
	free(k);
}

/* How many symbols are below @addr, or with @at up to it. */
static size_t count(const struct kernel_symbols *k, __u64 addr, bool at)
{
	size_t lo = 0, hi = k->n;

	while (lo < hi) {
		size_t mid = lo + (hi - lo) / 2;

		if (k->list[mid].addr < addr || (at && k->list[mid].addr == addr))
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo;
}

const char *kernel_symbols_find(const struct kernel_symbols *k, __u64 addr, const char **module)
{
	const size_t n = count(k, addr, true);
	const struct kernel_symbol *s;

	if (!n || addr - k->list[n - 1].addr >= MAX_SIZE)
		return NULL;
	/* of several names for an address the first of the list, always the same */
	s = &k->list[count(k, k->list[n - 1].addr, false)];
	*module = s->module;
	return s->name;
}

bool kernel_symbols_address(const struct kernel_symbols *k, const char *name, __u64 *addr)
{
	for (size_t i = 0; i < k->n; i++) {
		if (strcmp(k->list[i].name, name))
			continue;
		*addr = k->list[i].addr;
		return true;
	}
	return false;
}
