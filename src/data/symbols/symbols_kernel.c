// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "symbols_kernel.h"

#include "base/regular.h"

#include <elf.h>
#include <unistd.h>

#define KCORE	 "/proc/kcore"
#define HIGH	 0x8000000000000000ull /* where the kernel begins */
#define MAX_SIZE (1u << 20)	       /* of a function: symbols end in gaps, too */

struct kernel_symbol {
	__u64 addr;
	const char *name, *module; /* in `text`; NULL: of the kernel itself */
};

struct symbol_list {
	struct kernel_symbol *v; /* by address */
	size_t n, room;
};

struct kernel_symbols {
	struct symbol_list code, data;
	char *text; /* the whole file */
};

/* "ffffffff81000000 T _stext\t[module]" */
static void add_line(struct kernel_symbols *k, char *line, __u64 shift, bool core)
{
	char *end, *name, *module;
	unsigned long long addr = strtoull(line, &end, 16);
	struct symbol_list *list;
	size_t len;

	if (end == line || end[0] != ' ' || !end[1] || end[2] != ' ')
		return;
	list = strchr("tTwW", end[1]) ? &k->code : strchr("dDbBrRvV", end[1]) ? &k->data : NULL;
	if (!list)
		return;
	name = end + 3;
	len = strcspn(name, " \t");
	module = name + len + strspn(name + len, " \t");
	if (!len || (*module == '[' && core) || addr < HIGH)
		return;
	name[len] = 0;
	array_reserve(list->v, list->room, list->n + 1);
	list->v[list->n++] =
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
	else if (!k->code.n)
		ret = err_set(err, -EPERM,
			      "%s: no addresses of the kernel in it; without privilege they are "
			      "hidden (kernel.kptr_restrict)",
			      path);
	if (ret) {
		kernel_symbols_close(k);
		return ret;
	}
	qsort(k->code.v, k->code.n, sizeof(*k->code.v), compare);
	if (k->data.n)
		qsort(k->data.v, k->data.n, sizeof(*k->data.v), compare);
	*out = k;
	return 0;
}

void kernel_symbols_close(struct kernel_symbols *k)
{
	if (!k)
		return;
	free(k->code.v);
	free(k->data.v);
	free(k->text);
	free(k);
}

/* How many symbols are below @addr, or with @at up to it. */
static size_t count(const struct symbol_list *l, __u64 addr, bool at)
{
	size_t lo = 0, hi = l->n;

	while (lo < hi) {
		size_t mid = lo + (hi - lo) / 2;

		if (l->v[mid].addr < addr || (at && l->v[mid].addr == addr))
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo;
}

const char *kernel_symbols_find(const struct kernel_symbols *k, __u64 addr, const char **module)
{
	const struct symbol_list *l = &k->code;
	const size_t n = count(l, addr, true);
	const struct kernel_symbol *s;

	if (!n || addr - l->v[n - 1].addr >= MAX_SIZE)
		return NULL;
	/* of several names for an address the first of the list, always the same */
	s = &l->v[count(l, l->v[n - 1].addr, false)];
	*module = s->module;
	return s->name;
}

/* Is it a mark of the linker's between sections, as __bss_stop, rather than a variable? */
static bool is_mark(const char *name)
{
	static const char *const whole[] = { "_data", "_sdata",	     "_edata",
					     "_end",  "__bss_start", "__bss_stop" };
	static const char *const begins[] = { "__start_", "__stop_", "__begin_", "__end_" };
	bool is = false;

	for (size_t i = 0; i < ARRAY_SIZE(whole); i++)
		is |= !strcmp(name, whole[i]);
	for (size_t i = 0; i < ARRAY_SIZE(begins); i++)
		is |= !strncmp(name, begins[i], strlen(begins[i]));
	return is;
}

static bool same_module(const struct kernel_symbol *a, const struct kernel_symbol *b)
{
	return a->module && b->module ? !strcmp(a->module, b->module) : a->module == b->module;
}

const char *kernel_symbols_variable(const struct kernel_symbols *k, __u64 addr, __u64 *at,
				    const char **module)
{
	const struct symbol_list *d = &k->data;
	const size_t n = count(d, addr, true), code = count(&k->code, addr, true);
	const struct kernel_symbol *s;
	bool bounded;

	if (!n)
		return NULL;
	s = &d->v[n - 1];
	/* functions in between: the address is of code */
	if (code && k->code.v[code - 1].addr > s->addr)
		return NULL;
	bounded = (n < d->n && same_module(&d->v[n], s)) ||
		  (code < k->code.n && same_module(&k->code.v[code], s));
	for (s = &d->v[count(d, s->addr, false)]; s < &d->v[n] && is_mark(s->name);)
		s++;
	if (!bounded || s == &d->v[n] || addr - s->addr >= MAX_SIZE)
		return NULL;
	*at = addr - s->addr;
	*module = s->module;
	return s->name;
}

bool kernel_symbols_address(const struct kernel_symbols *k, const char *name, __u64 *addr)
{
	for (size_t i = 0; i < k->code.n; i++) {
		if (strcmp(k->code.v[i].name, name))
			continue;
		*addr = k->code.v[i].addr;
		return true;
	}
	return false;
}

bool kernel_symbols_bounds(const struct kernel_symbols *k, __u64 addr, __u64 *start, __u64 *end)
{
	const size_t n = count(&k->code, addr, true);

	if (!n)
		return false;
	*start = k->code.v[n - 1].addr;
	*end = n < k->code.n ? k->code.v[n].addr : addr + 1;
	if (*end - *start > MAX_SIZE)
		*end = *start + MAX_SIZE;
	return addr < *end;
}

static int read_kcore(int fd, __u64 addr, unsigned char *buf, size_t size)
{
	Elf64_Ehdr eh;
	Elf64_Phdr ph;

	if (pread(fd, &eh, sizeof(eh), 0) != sizeof(eh))
		return -EIO;
	for (unsigned int i = 0; i < eh.e_phnum; i++) {
		ssize_t got = pread(fd, &ph, sizeof(ph), eh.e_phoff + i * sizeof(ph));

		if (got != sizeof(ph))
			return -EIO;
		if (ph.p_type != PT_LOAD || addr < ph.p_vaddr || addr - ph.p_vaddr >= ph.p_memsz)
			continue;
		got = pread(fd, buf, size, addr - ph.p_vaddr + ph.p_offset);
		return got == (ssize_t)size ? 0 : got < 0 ? -errno : -EIO;
	}
	return -ENOENT;
}

int kernel_read(__u64 addr, unsigned char *buf, size_t size, struct err *err)
{
	int fd = regular_open(KCORE), ret;

	ret = fd < 0 ? fd : read_kcore(fd, addr, buf, size);
	if (fd >= 0)
		close(fd);
	return ret ? err_set(err, ret, "cannot read the kernel's code from " KCORE ": %s",
			     strerror(-ret))
		   : 0;
}
