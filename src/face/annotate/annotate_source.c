// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "annotate_source.h"

#include "base/regular.h"

#include <unistd.h>

#define SIZE_MAX_SOURCE (16 << 20)
#define TAB		4

static bool has_suffix(const char *path)
{
	static const char *const suffixes[] = { "c",   "h",   "cc",  "cpp", "cxx", "C",	  "hh",
						"hpp", "hxx", "tcc", "inl", "inc", "ipp", "rs",
						"go",  "S",   "s",   "asm", "f",   "f90", "F90",
						"d",   "zig", "adb", "ads", "m",   "mm",  "y",
						"l",   "pas", "nim" };
	const char *dot = strrchr(path, '.');

	for (size_t i = 0; dot && i < ARRAY_SIZE(suffixes); i++)
		if (!strcmp(dot + 1, suffixes[i]))
			return true;
	return false;
}

/* Return: NULL with errno. */
static char *read_text(int fd, size_t size)
{
	char *text = xcalloc(1, size + 1);
	ssize_t got = 1;

	for (size_t n = 0; n < size && got > 0; n += got)
		got = read(fd, text + n, size - n);
	if (got >= 0)
		return text;
	free(text);
	return NULL;
}

static char *expand_tabs(const char *line)
{
	char *out = xcalloc(TAB, strlen(line) + 1);
	size_t n = 0;

	for (; *line; line++) {
		do
			out[n++] = *line == '\t' ? ' ' : *line;
		while (*line == '\t' && n % TAB);
	}
	while (n && (out[n - 1] == ' ' || out[n - 1] == '\r'))
		n--;
	out[n] = 0;
	return out;
}

static void read_file(struct source_file *f, int fd, const struct stat *st)
{
	char *text = read_text(fd, st->st_size), *rest = text, *line;
	size_t room = 0;

	if (!text)
		f->why = strerror(errno);
	while (text && (line = strsep(&rest, "\n"))) {
		array_reserve(f->line, room, f->n + 1);
		f->line[f->n++] = expand_tabs(line);
	}
	free(text);
}

static void open_file(const struct source_files *s, struct source_file *f, const char *path)
{
	struct stat st, program;
	int fd;

	f->why = *path != '/'	     ? "its directory is not known"
		 : !has_suffix(path) ? "its name is not that of a source"
				     : NULL;
	if (f->why)
		return;
	fd = regular_open(path);
	if (fd < 0 || fstat(fd, &st)) {
		f->why = fd == -EINVAL ? "not a regular file" : strerror(fd < 0 ? -fd : errno);
	} else if (st.st_size > SIZE_MAX_SOURCE) {
		f->why = "larger than 16 MiB";
	} else if (s->program && !stat(s->program, &program) && st.st_mtime > program.st_mtime) {
		f->why = "changed after the program was built";
	} else {
		read_file(f, fd, &st);
	}
	if (fd >= 0)
		close(fd);
}

const char *source_line(struct source_files *s, const char *path, int line)
{
	const size_t known = s->paths.n;
	const __u32 i = intern_get(&s->paths, path);

	if (i == known) {
		array_reserve(s->v, s->room, i + 1);
		s->v[i] = (struct source_file){ 0 };
		open_file(s, &s->v[i], path);
	}
	return line > 0 && (size_t)line <= s->v[i].n ? s->v[i].line[line - 1] : NULL;
}

void source_warn(const struct source_files *s)
{
	for (size_t i = 0; i < s->paths.n; i++)
		if (s->v[i].why)
			log_warn("no source lines of %s: %s", intern_text(&s->paths, i),
				 s->v[i].why);
}

void source_free(struct source_files *s)
{
	for (size_t i = 0; i < s->paths.n; i++) {
		for (size_t k = 0; k < s->v[i].n; k++)
			free(s->v[i].line[k]);
		free(s->v[i].line);
	}
	free(s->v);
	intern_free(&s->paths);
}
