// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "code_map.h"

#include "base/heap.h"

#include <ctype.h>
#include <unistd.h>

struct code {
	__u64 start, end;
	const char *name;
};

struct code_map {
	char *text; /* of the file; names are in it */
	struct code *line, *part;
	size_t n_lines, lines_room;
	size_t n, room; /* of parts, which do not overlap, by address */
};

void code_map_free(struct code_map *m)
{
	if (!m)
		return;
	free(m->text);
	free(m->line);
	free(m->part);
	free(m);
}

/* Up to the blank behind it. Return: what follows, or NULL. */
static const char *read_hex(const char *p, __u64 *out)
{
	const char *from = p += strncmp(p, "0x", 2) ? 0 : 2;
	__u64 v = 0;

	for (; isxdigit((unsigned char)*p); p++)
		v = v << 4 | (__u64)(*p <= '9' ? *p - '0' : (*p | 0x20) - 'a' + 10);
	*out = v;
	return p > from && p - from <= 16 && *p == ' ' ? p + 1 : NULL;
}

static void add_line(struct code_map *m, const char *line)
{
	__u64 start, size;
	const char *p = read_hex(line, &start);

	p = p ? read_hex(p, &size) : NULL;
	if (!p || !*p || !size || start + size < start)
		return;
	array_reserve(m->line, m->lines_room, m->n_lines + 1);
	m->line[m->n_lines++] = (struct code){ start, start + size, p };
}

/* Return: bytes of the file, or a negative errno. */
static ssize_t read_text(struct code_map *m, int fd)
{
	size_t n = 0;
	ssize_t got;

	m->text = xrealloc(NULL, CODE_MAP_BYTES + 1);
	/* the position of @fd is that of the process that opened it, too */
	while ((got = pread(fd, m->text + n, CODE_MAP_BYTES + 1 - n, n)) > 0)
		n += got;
	if (got < 0)
		return -errno;
	m->text = xrealloc(m->text, n + 1);
	return (ssize_t)n;
}

static int compare_starts(const void *pa, const void *pb, void *arg)
{
	const struct code_map *m = arg;
	const __u32 a = *(const __u32 *)pa, b = *(const __u32 *)pb;

	if (m->line[a].start != m->line[b].start)
		return m->line[a].start < m->line[b].start ? -1 : 1;
	return a < b ? -1 : a > b;
}

static void add_part(struct code_map *m, __u64 start, __u64 end, const char *name)
{
	if (m->n && m->part[m->n - 1].end == start && m->part[m->n - 1].name == name) {
		m->part[m->n - 1].end = end;
		return;
	}
	array_reserve(m->part, m->room, m->n + 1);
	m->part[m->n++] = (struct code){ start, end, name };
}

/* Go through all addresses where a line begins or the latest one ends. */
static void divide(struct code_map *m)
{
	__u32 *order = xcalloc(m->n_lines, sizeof(*order));
	struct heap open = {}; /* lines that have the address, the latest first */
	__u64 at = 0, next;
	size_t i = 0;

	for (size_t k = 0; k < m->n_lines; k++)
		order[k] = k;
	qsort_r(order, m->n_lines, sizeof(*order), compare_starts, m);
	while (i < m->n_lines || open.n) {
		const struct code *latest;

		at = open.n ? at : m->line[order[i]].start;
		for (; i < m->n_lines && m->line[order[i]].start <= at; i++)
			heap_push(&open, (struct heap_item){ .key = ~(__u64)order[i],
							     .item = &m->line[order[i]] });
		latest = open.item[0].item;
		if (latest->end <= at) {
			heap_pop(&open);
			continue;
		}
		next = i < m->n_lines && m->line[order[i]].start < latest->end
			       ? m->line[order[i]].start
			       : latest->end;
		add_part(m, at, next, latest->name);
		at = next;
	}
	heap_free(&open);
	free(order);
}

struct code_map *code_map_read(int fd, char *why, size_t size)
{
	struct code_map *m = xcalloc(1, sizeof(*m));
	ssize_t n = read_text(m, fd);
	char *line = m->text, *end;

	*why = 0;
	if (n < 0)
		snprintf(why, size, "%s", strerror((int)-n));
	else if (n > (ssize_t)CODE_MAP_BYTES)
		snprintf(why, size, "larger than %u MiB", CODE_MAP_BYTES >> 20);
	for (; !*why && (end = memchr(line, '\n', m->text + n - line)); line = end + 1) {
		*end = 0;
		add_line(m, line);
		if (m->n_lines > CODE_MAP_ENTRIES)
			snprintf(why, size, "it has more than %d lines", CODE_MAP_ENTRIES);
	}
	if (!*why && n && !m->n_lines)
		snprintf(why, size, "no line is like 'START SIZE NAME', in hexadecimal");
	if (*why) {
		code_map_free(m);
		return NULL;
	}
	divide(m);
	return m;
}

const char *code_map_find(const struct code_map *m, __u64 addr)
{
	size_t lo = 0, hi = m->n;

	while (lo < hi) {
		size_t mid = lo + (hi - lo) / 2;

		if (m->part[mid].start <= addr)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo && addr < m->part[lo - 1].end ? m->part[lo - 1].name : NULL;
}
