// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "symbols_kernel.h"

#include "base/array.h"
#include "base/regular.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define HIGH	 0x8000000000000000ull /* where the kernel begins */
#define MAX_SIZE (1u << 20)	       /* of a function: symbols end in gaps, too */

struct kernel_symbol {
	__u64 addr;
	size_t name, module; /* in `text`; module 0: of the kernel itself */
};

struct kernel_symbols {
	struct kernel_symbol *list;
	size_t n, room;
	char *text; /* names, each with its NUL; begins with one */
	size_t len, text_room;
};

static int add_text(struct kernel_symbols *k, const char *text, size_t n, size_t *at)
{
	if (array_reserve(k->text, k->text_room, k->len + n + 1))
		return -ENOMEM;
	*at = k->len;
	memcpy(k->text + k->len, text, n);
	k->text[k->len + n] = 0;
	k->len += n + 1;
	return 0;
}

/* "ffffffff81000000 T _stext\t[module]\n". Return: 1 for a symbol of code, 0, or -ENOMEM. */
static int add_line(struct kernel_symbols *k, char *line, __u64 shift, bool core)
{
	struct kernel_symbol *s;
	char *end, *name, *module = NULL;
	unsigned long long addr;
	size_t len;

	addr = strtoull(line, &end, 16);
	if (end == line || end[0] != ' ' || !strchr("tTwW", end[1]) || !end[1] || end[2] != ' ')
		return 0;
	name = end + 3;
	len = strcspn(name, " \t\n");
	module = name + len;
	module += strspn(module, " \t");
	if (!len || (*module == '[' && core) || addr < HIGH)
		return 0;
	if (array_reserve(k->list, k->room, k->n + 1))
		return -ENOMEM;
	s = &k->list[k->n];
	s->addr = addr + shift;
	s->module = 0;
	if (add_text(k, name, len, &s->name) ||
	    (*module == '[' && add_text(k, module, strcspn(module, "\n"), &s->module)))
		return -ENOMEM;
	k->n++;
	return 1;
}

static int compare(const void *pa, const void *pb)
{
	const struct kernel_symbol *a = pa, *b = pb;

	if (a->addr != b->addr)
		return a->addr < b->addr ? -1 : 1;
	return a->name < b->name ? -1 : a->name > b->name;
}

static int read_list(struct kernel_symbols *k, FILE *f, __u64 shift, bool core)
{
	size_t size = 0, none;
	char *line = NULL;
	int ret = add_text(k, "", 0, &none);

	errno = 0;
	while (ret >= 0 && getline(&line, &size, f) > 0)
		ret = add_line(k, line, shift, core);
	free(line);
	return ret < 0 ? ret : errno == ENOMEM ? -ENOMEM : 0;
}

int kernel_symbols_open(const char *path, __u64 shift, bool core, struct kernel_symbols **out,
			struct err *err)
{
	struct kernel_symbols *k;
	int ret, fd = regular_open(path);
	FILE *f = fd < 0 ? NULL : fdopen(fd, "r");

	if (fd < 0)
		return err_set(err, fd, "cannot open %s: %s", path,
			       fd == -EINVAL ? "not a regular file" : strerror(-fd));
	if (!f) {
		close(fd);
		return err_set(err, -ENOMEM, "out of memory");
	}
	k = calloc(1, sizeof(*k));
	if (!k) {
		fclose(f);
		return err_set(err, -ENOMEM, "out of memory");
	}
	ret = read_list(k, f, shift, core);
	if (!ret && ferror(f))
		ret = err_set(err, -EIO, "cannot read %s", path);
	else if (ret)
		err_set(err, ret, "%s: out of memory", path);
	else if (!k->n)
		ret = err_set(err, -EPERM,
			      "%s: no addresses of the kernel in it; without privilege they are "
			      "hidden (kernel.kptr_restrict)",
			      path);
	fclose(f);
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
	*module = s->module ? k->text + s->module : NULL;
	return k->text + s->name;
}

bool kernel_symbols_address(const struct kernel_symbols *k, const char *name, __u64 *addr)
{
	for (size_t i = 0; i < k->n; i++) {
		if (strcmp(k->text + k->list[i].name, name))
			continue;
		*addr = k->list[i].addr;
		return true;
	}
	return false;
}
