// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "trace.h"

#include "base/clock.h"
#include "base/rlimit.h"
#include "base/status_line.h"
#include "event/event.h"
#include "base/text.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#define DEFAULT_MEMORY (1ULL << 30)

static const struct trace_format *const formats[] = { &recording_format, &perf_data_format };

/* The recording that is read, for the message when memory runs out. */
static struct {
	__u64 limit; /* 0: not set */
	char name[128];
	const struct trace *trace; /* NULL: not open yet, or closed */
} reading;

#define PROGRESS_S     0.25 /* from the start of a pass, and between two updates */
#define PROGRESS_EVERY 4096 /* events between two looks at the clock */

static struct {
	const struct trace *trace; /* NULL: not shown */
	unsigned int events;
	double next_s; /* 0: the pass has not begun */
} progress;

void trace_show_progress(const struct trace *t)
{
	progress.trace = status_line_possible() ? t : NULL;
}

static void show_progress(const struct trace *t)
{
	const double now = now_s();

	if (progress.next_s && now >= progress.next_s)
		status_line_show("reading: %llu%%", t->total ? 100 * t->done / t->total : 0);
	if (!progress.next_s || now >= progress.next_s)
		progress.next_s = now + PROGRESS_S;
}

static void end_progress(void)
{
	status_line_end();
	progress.next_s = 0;
}

static void need_more_memory(const void *unused)
{
	const struct trace *t = reading.trace;
	char where[96] = "";

	(void)unused;
	if (t)
		snprintf(where, sizeof(where), "; reading stopped at byte %llu of %llu", t->done,
			 t->total);
	log_error("%s: needs more than the %llu MiB of --max-memory%s", reading.name,
		  reading.limit >> 20, where);
}

void trace_limit_memory(__u64 bytes)
{
	reading.limit = bytes ?: DEFAULT_MEMORY;
}

/* All recordings are opened here, so no reader is without a limit. */
static void limit_memory(const char *name)
{
	if (!reading.limit)
		trace_limit_memory(0);
	snprintf(reading.name, sizeof(reading.name), "%s", name);
	reading.trace = NULL;
	out_of_memory_message = need_more_memory;
	rlimit_memory(reading.limit);
}

int trace_check_expansion(__u64 bytes, __u64 expanded, struct err *err)
{
	if (expanded <= TRACE_EXPANSION_FREE ||
	    (expanded - TRACE_EXPANSION_FREE) / TRACE_EXPANSION <= bytes)
		return 0;
	return err_set(err, -EBADMSG,
		       "it expands to more than %d times its size, which no recording does: it was "
		       "made to exhaust its reader, or is damaged",
		       TRACE_EXPANSION);
}

static ssize_t write_all(int fd, const char *p, size_t n)
{
	while (n) {
		ssize_t done = write(fd, p, n);

		if (done < 0 && errno != EINTR)
			return -errno;
		if (done > 0) {
			p += done;
			n -= done;
		}
	}
	return 0;
}

/* Copy @from to a seekable file: readers go over a recording twice. */
static int spool(int from, struct err *err)
{
	const char *dir = getenv("TMPDIR");
	static char buffer[1 << 16];
	int fd = open(dir && *dir ? dir : "/var/tmp", O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
	ssize_t n;
	int ret;

	if (fd < 0)
		fd = memfd_create("ibscope", MFD_CLOEXEC);
	if (fd < 0)
		return err_set(err, -errno, "cannot create a temporary file for standard input: %s",
			       strerror(errno));
	while ((n = read(from, buffer, sizeof(buffer)))) {
		if (n < 0 && errno == EINTR)
			continue;
		ret = n < 0 ? -errno : write_all(fd, buffer, n);
		if (ret) {
			close(fd);
			return err_set(err, ret, "cannot store standard input in %s: %s",
				       dir && *dir ? dir : "/var/tmp", strerror(-ret));
		}
	}
	lseek(fd, 0, SEEK_SET);
	return fd;
}

static int open_file(const char *path, struct err *err)
{
	bool from_stdin = !strcmp(path, "-");
	int fd = from_stdin ? fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, 3)
			    : open(path, O_RDONLY | O_CLOEXEC);
	int spooled;

	if (fd < 0)
		return err_set(err, -errno, "cannot open %s: %s", path, strerror(errno));
	if (from_stdin && isatty(fd)) {
		close(fd);
		return err_set(err, -EINVAL,
			       "standard input is a terminal; give the name of a recording, or "
			       "pipe one into this command");
	}
	if (lseek(fd, 0, SEEK_SET) == 0)
		return fd;
	spooled = spool(fd, err);
	close(fd);
	return spooled;
}

/* Compressed files, which must be unpacked first. */
static const struct {
	const char *program;
	unsigned int n;
	unsigned char magic[4];
} packed[] = {
	{ "zstd", 4, { 0x28, 0xb5, 0x2f, 0xfd } },
	{ "gzip", 2, { 0x1f, 0x8b } },
	{ "xz", 4, { 0xfd, '7', 'z', 'X' } },
};

/* Read all slices. Those of damaged parts are missing: who reads the recording reports the damage. */
static void read_slices(struct trace *t)
{
	struct trace_event ev;
	struct err ignored;

	trace_skip_samples(t);
	while (t->format->next(t, &ev, &ignored) > 0) {
		const struct trace_slice slice = {
			.end = ev.slice.end,
			.counts = { .of = ev.slice.of,
				    .ops = ev.slice.ops,
				    .tags = ev.slice.tags,
				    .seconds = (ev.slice.end - ev.slice.start) / 1e9,
				    .period = ev.slice.period },
		};

		if (ev.kind == TRACE_SLICE && ev.slice.of < STRATUM_N &&
		    ev.slice.end >= ev.slice.start)
			trace_weights_add(&t->weights, &slice);
	}
	trace_weights_end(&t->weights);
	t->format->rewind(t);
	t->skips_samples = false;
}

static void set_weight(struct trace *t, struct trace_event *ev)
{
	struct trace_sample *s = &ev->sample;
	bool reach;

	s->slice = NULL;
	s->weight = 0;
	if (!t->weights.n || s->pmu >= t->info.n_pmus)
		return;
	reach = t->info.pmu[s->pmu].reach >> ibs_op_src(s->op.cpu, s->op.reg) & 1;
	s->slice = trace_weights_at(&t->weights, s->pmu, ev->time);
	s->weight = s->slice ? s->slice->weight[reach] : 0;
}

bool trace_weights_known(const struct trace *t)
{
	for (size_t i = 0; i < t->weights.n; i++)
		if (t->weights.slice[i].weight[0] > 0)
			return true;
	return !trace_has_strata(&t->info);
}

const struct trace_slice *trace_slices(const struct trace *t, size_t *n)
{
	*n = t->weights.n;
	return t->weights.slice;
}

/* Takes ownership of @fd. @bytes 0: up to the end of the file. */
static int open_format(int fd, __u64 offset, __u64 bytes, const char *name, struct trace **out,
		       struct err *err)
{
	unsigned char magic[TRACE_MAGIC_BYTES];
	ssize_t n = pread(fd, magic, sizeof(magic), offset);
	int ret;

	limit_memory(name);
	if (n < 0) {
		ret = err_set(err, -errno, "cannot read %s: %s", name, strerror(errno));
		close(fd);
		return ret;
	}
	for (size_t i = 0; i < ARRAY_SIZE(formats); i++) {
		if (!formats[i]->magic(magic, n))
			continue;
		ret = formats[i]->open(fd, offset, bytes, out, err);
		if (ret)
			err_prefix(err, "%s", name);
		else
			(*out)->format = formats[i];
		if (!ret && trace_has_strata(&(*out)->info))
			read_slices(*out);
		reading.trace = ret ? NULL : *out;
		return ret;
	}
	close(fd);
	for (size_t i = 0; i < ARRAY_SIZE(packed); i++)
		if (n >= 4 && !memcmp(magic, packed[i].magic, packed[i].n))
			return err_set(
				err, -EINVAL,
				"%s is compressed with %s; unpack it, or pipe it: %s -dc %s | "
				"ibscope report -i -",
				name, packed[i].program, packed[i].program, name);
	return err_set(err, -EINVAL,
		       "%s: %s; it must be a recording of `ibscope record` or of "
		       "`perf record`",
		       name, n ? "unknown format" : "it is empty");
}

/* "FILE#2" is the second recording of a merged file. Return: 0 if @path has another form. */
static unsigned long part_number(const char *path, char **file)
{
	const char *mark = strrchr(path, '#');
	unsigned long part = mark && mark[1] && !mark[1 + strspn(mark + 1, "0123456789")]
				     ? strtoul(mark + 1, NULL, 10)
				     : 0;

	if (!part || !access(path, F_OK))
		return 0;
	*file = xstrdup(path);
	(*file)[mark - path] = 0;
	return part;
}

static int open_one_of(const char *path, char *file, unsigned long number, struct trace **out,
		       struct err *err)
{
	struct trace_part *parts = NULL;
	size_t n = 0;
	int ret = trace_parts_add(file, &parts, &n, err);

	if (!ret && number > n)
		ret = err_set(err, -ENOENT, "%s: %s holds %zu recording%s", path, file, n,
			      text_plural(n));
	ret = ret ?: trace_part_open(&parts[number - 1], out, err);
	trace_parts_free(parts, n);
	free(file);
	return ret;
}

int trace_open(const char *path, struct trace **out, struct err *err)
{
	char *file;
	unsigned long number = part_number(path, &file);
	size_t parts;
	int fd, ret;

	if (number)
		return open_one_of(path, file, number, out, err);
	fd = open_file(path, err);
	if (fd < 0)
		return fd;
	ret = trace_merged(fd, &parts, err);
	if (ret < 0)
		err_prefix(err, "%s", strcmp(path, "-") ? path : "standard input");
	if (ret) {
		close(fd);
		if (ret > 0 && parts == 1)
			return open_one_of(path, xstrdup(path), 1, out, err);
		return ret < 0 ? ret
			       : err_set(err, -EINVAL,
					 "%s holds %zu recordings, which `ibscope report` adds up; "
					 "other commands read one of them: %s#1 to %s#%zu",
					 path, parts, path, path, parts);
	}
	return open_format(fd, 0, 0, strcmp(path, "-") ? path : "standard input", out, err);
}

int trace_part_open(const struct trace_part *p, struct trace **out, struct err *err)
{
	int fd = open_file(p->file, err);

	return fd < 0 ? fd : open_format(fd, p->offset, p->bytes, p->name, out, err);
}

int trace_next(struct trace *t, struct trace_event *ev, struct err *err)
{
	int ret = t->format->next(t, ev, err);

	if (ret > 0 && ev->kind == TRACE_SAMPLE_OP)
		set_weight(t, ev);
	if (progress.trace == t && ret <= 0)
		end_progress();
	else if (progress.trace == t && !(progress.events++ % PROGRESS_EVERY))
		show_progress(t);
	if (ret == -EBADMSG && err && reading.trace == t)
		err_prefix(err, "%s", reading.name);
	return ret;
}

int trace_rewind(struct trace *t, struct err *err)
{
	(void)err;
	t->format->rewind(t);
	t->skips_samples = t->skips_first_threads = false;
	return 0;
}

static bool is_ours(const struct trace_info *info)
{
	return info->format && !strncmp(info->format, "ibscope", 7);
}

const char *trace_lost_kind(const struct trace_info *info)
{
	return is_ours(info) ? "process names and mappings" : "unknown kind";
}

void trace_lost_text(const struct trace_info *info, __u64 n, char *buf, size_t size)
{
	snprintf(buf, size, "%s record%s of %s %s lost%s", TEXT_COUNT(n), text_plural(n),
		 trace_lost_kind(info), n == 1 ? "was" : "were",
		 is_ours(info) ? "; some samples have no names" : "");
}

void trace_close(struct trace *t)
{
	if (reading.trace == t)
		reading.trace = NULL;
	if (progress.trace && progress.trace == t) {
		end_progress();
		progress.trace = NULL;
	}
	if (!t)
		return;
	trace_weights_free(&t->weights);
	t->format->close(t);
}

bool trace_event_filtered(const char *event)
{
	struct event_spec spec;

	return !event_parse(event, &spec, NULL) && event_filter(&spec) == EVENT_FILTER_HARDWARE;
}
