// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "record_output.h"

#include "base/array.h"
#include "base/output_file.h"
#include "live_names.h"
#include "recording/recording.h"

#include <fcntl.h>
#include <limits.h>
#include <sys/stat.h>
#include <unistd.h>

/* Slices that samples to come may belong to: more than the second that a drain may wait. */
#define SLICES 64

struct output {
	struct output_opts opts;
	const char *path; /* "-": standard output */
	struct live_names *names;
	bool kept; /* a file of that name, as NAME.old */
	int fd;
	struct recording *recording; /* OUTPUT_RECORDING */
	FILE *text;		     /* the others */
	unsigned char *stacks;	     /* bitmap of call chain ids in the file */
	__u64 records, second;
	struct {
		__u64 since;
		__u8 of;
	} slices[SLICES]; /* slice n is at n % SLICES */
	__u64 n_slices;	  /* 0: no strata */
	__u8 *strata;	  /* of the records of a batch */
	size_t strata_room;
	__u64 text_bytes;   /* of this file */
	__u64 closed_bytes; /* of previous files */
	int failed;
};

bool output_to_stdout(const struct output_opts *opts)
{
	return opts->path ? !strcmp(opts->path, "-") : opts->format != OUTPUT_RECORDING;
}

bool output_on_terminal(const struct output_opts *opts)
{
	return output_to_stdout(opts) && isatty(STDOUT_FILENO);
}

static int keep_old(struct output *o, struct err *err)
{
	const char *path = o->path;
	char old[PATH_MAX];
	struct stat st;

	/* non-regular files such as /dev/null or a FIFO are written to directly */
	if (lstat(path, &st) || !S_ISREG(st.st_mode) || !st.st_size)
		return 0;
	snprintf(old, sizeof(old), "%s.old", path);
	if (rename(path, old))
		return err_set(err, -errno, "cannot keep %s as %s: %s", path, old, strerror(errno));
	o->kept = true;
	log_info("renamed the existing %s to %s", path, old);
	return 0;
}

/* Undo keep_old() and begin(). */
static void put_back(const struct output *o)
{
	char old[PATH_MAX];
	struct stat st;

	snprintf(old, sizeof(old), "%s.old", o->path);
	if (o->kept && !rename(old, o->path))
		log_info("renamed %s back to %s", old, o->path);
	else if (o->fd >= 0 && !fstat(o->fd, &st) && S_ISREG(st.st_mode))
		unlink(o->path);
}

static ssize_t count_write(void *cookie, const char *bytes, size_t n)
{
	struct output *o = cookie;
	ssize_t done;

	do
		done = write(o->fd, bytes, n);
	while (done < 0 && errno == EINTR);
	if (done > 0)
		o->text_bytes += done;
	return done < 0 ? 0 : done; /* 0 means failure, see fopencookie(3) */
}

static int begin(struct output *o, struct err *err)
{
	struct recording_opts ro = { .info = o->opts.info, .compress = o->opts.compress };
	bool by_name = !o->opts.fd && strcmp(o->path, "-");
	int ret;

	o->fd = by_name ? output_file_open(o->path, o->opts.stop, err)
			: fcntl(o->opts.fd ?: STDOUT_FILENO, F_DUPFD_CLOEXEC, 3);
	if (o->fd < 0 && by_name)
		return o->fd;
	if (o->fd < 0)
		return err_set(err, -errno, "cannot write to standard output: %s", strerror(errno));
	o->records = o->second = o->text_bytes = 0;
	memset(o->stacks, 0, RECORDING_STACK_KEYS / 8);
	if (o->opts.format == OUTPUT_RECORDING) {
		ro.fd = o->fd;
		ret = recording_create(&ro, &o->recording, err);
		if (ret)
			err_prefix(err, "%s", o->path);
		return ret;
	}
	o->text = fopencookie(o, "w", (cookie_io_functions_t){ .write = count_write });
	if (!o->text)
		out_of_memory();
	setvbuf(o->text, NULL, _IOFBF, 1 << 16);
	if (o->opts.format == OUTPUT_CSV)
		sample_print_head(o->text, SAMPLE_CSV, o->opts.info, !o->opts.info->pmu[0].op);
	return 0;
}

int output_open(const struct output_opts *opts, struct output **out, struct err *err)
{
	struct output *o;
	int ret;

	if (opts->format == OUTPUT_RECORDING && output_on_terminal(opts))
		return err_set(err, -EINVAL,
			       "-o -: cannot write a recording to a terminal: redirect it, or use "
			       "--csv or --json");
	o = xcalloc(1, sizeof(*o));
	o->opts = *opts;
	o->fd = -1;
	o->path = output_to_stdout(opts) ? "-" : opts->path ?: OUTPUT_DEFAULT_PATH;
	o->stacks = xcalloc(RECORDING_STACK_KEYS / 8, 1);
	o->names = live_names_new();
	ret = opts->fd || output_to_stdout(opts) ? 0 : keep_old(o, err);
	ret = ret ?: begin(o, err);
	if (ret) {
		output_cancel(o);
		return ret;
	}
	*out = o;
	return 0;
}

const char *output_name(const struct output *o)
{
	return strcmp(o->path, "-") ? o->path : "standard output";
}

static int fail(struct output *o, int ret, struct err *err)
{
	err_prefix(err, "%s", output_name(o));
	o->failed = ret;
	return ret;
}

static int flush_text(struct output *o, struct err *err)
{
	errno = 0;
	if (!fflush(o->text) && !ferror(o->text))
		return 0;
	return err_set(err, errno ? -errno : -EIO, "cannot write: %s",
		       errno ? strerror(errno) : "the output is incomplete");
}

static int print_samples(struct output *o, const struct record_batch *batch, struct err *err)
{
	const struct trace_info *info = o->opts.info;
	const struct ibs_cpu cpu = { info->cpu.caps, info->cpu.quirks };
	enum sample_format format = o->opts.format == OUTPUT_CSV ? SAMPLE_CSV : SAMPLE_JSON;

	for (size_t i = 0; i < batch->n; i++) {
		struct trace_event ev;
		struct sample_names names;

		if (!batch->raw)
			recording_sample(&batch->records[i], cpu, &ev);
		else if (recording_sample_raw(&batch->raw[i], info->cpu.quirks, &ev))
			return err_set(
				err, -EUCLEAN,
				"invalid record; this is a bug of ibscope, please report it");
		ev.sample.has_time = true;
		ev.sample.pmu = trace_event_of(info, ev.kind == TRACE_SAMPLE_OP);
		names.comm = live_names_comm(o->names, ev.sample.tid);
		names.cgroup = live_names_cgroup(o->names, ev.sample.cgroup_id);
		sample_print(o->text, format, info, &ev, &names);
	}
	return ferror(o->text) ? flush_text(o, err) : 0;
}

void output_slice(struct output *o, enum stratum of, __u64 since)
{
	const __u64 at = o->n_slices++ % SLICES;

	o->slices[at].since = since;
	o->slices[at].of = of;
}

/* Only one stratum samples at a time, so the time of a sample says which. */
static __u8 stratum_at(const struct output *o, __u64 time)
{
	__u64 n = o->n_slices - 1;

	while (n && n + SLICES > o->n_slices && o->slices[n % SLICES].since > time)
		n--;
	return o->slices[n % SLICES].of;
}

static void add_strata(struct output *o, const struct record_batch *batch)
{
	array_reserve(o->strata, o->strata_room, batch->n);
	for (size_t i = 0; i < batch->n; i++) {
		o->strata[i] =
			stratum_at(o, batch->raw ? batch->raw[i].time : batch->records[i].time);
		o->second += o->strata[i] == STRATUM_MISS;
	}
	recording_strata(o->recording, o->strata);
}

int output_samples(struct output *o, const struct record_batch *batch, struct err *err)
{
	int ret;

	if (o->n_slices && o->recording)
		add_strata(o, batch);
	if (!o->text)
		recording_copies(o->recording, batch->copies, batch->copy_stride);
	if (o->text)
		ret = print_samples(o, batch, err);
	else if (batch->raw)
		ret = recording_samples_raw(o->recording, batch->raw, batch->extra, batch->n, err);
	else
		ret = recording_samples(o->recording, batch->records, batch->extra, batch->n, err);
	if (ret)
		return fail(o, ret, err);
	o->records += batch->n;
	for (size_t i = 0; i < batch->n; i++)
		o->second +=
			batch->raw ? batch->raw[i].fetch : ibs_record_is_fetch(&batch->records[i]);
	return 0;
}

bool output_has_stack(const struct output *o, __s32 id)
{
	return id < 0 || id >= RECORDING_STACK_KEYS || (o->stacks[id / 8] >> id % 8 & 1);
}

int output_stack(struct output *o, __s32 id, const __u64 *addresses, size_t n, struct err *err)
{
	int ret = 0;

	o->stacks[id / 8] |= 1 << id % 8;
	if (o->recording)
		ret = recording_stack(o->recording, id, addresses, n, err);
	return ret ? fail(o, ret, err) : 0;
}

int output_event(struct output *o, const struct trace_event *ev, struct err *err)
{
	int ret = 0;

	live_names_add(o->names, ev);
	if (ev->kind == TRACE_CGROUP && !*ev->cgroup.path)
		return 0;
	if (o->recording)
		ret = recording_event(o->recording, ev, err);
	return ret ? fail(o, ret, err) : 0;
}

bool output_has_cgroup(const struct output *o, __u64 id)
{
	return live_names_has_cgroup(o->names, id);
}

void output_lost_allocs(struct output *o, __u64 n)
{
	if (o->recording)
		recording_lost_allocs(o->recording, n);
}

int output_flush(struct output *o, const struct ledger *ledgers, struct err *err)
{
	int ret = o->text ? flush_text(o, err) : recording_flush(o->recording, ledgers, err);

	return ret ? fail(o, ret, err) : 0;
}

__u64 output_bytes(const struct output *o)
{
	return o->recording ? recording_bytes(o->recording) : o->text_bytes;
}

__u64 output_total_bytes(const struct output *o)
{
	return o->closed_bytes + output_bytes(o);
}

__u64 output_records(const struct output *o)
{
	return o->records;
}

__u64 output_second(const struct output *o)
{
	return o->second;
}

static void close_file(struct output *o)
{
	recording_close(o->recording);
	o->recording = NULL;
	if (o->text)
		fclose(o->text);
	o->text = NULL;
	if (o->fd >= 0)
		close(o->fd);
	o->fd = -1;
}

int output_finish(struct output *o, const struct ledger *ledgers, struct err *err)
{
	int ret;

	if (!o->text && !o->recording)
		return o->failed;
	ret = o->text ? flush_text(o, err) : recording_finish(o->recording, ledgers, err);

	return ret ? fail(o, ret, err) : 0;
}

/* Rename NAME.2 to NAME.3, NAME.1 to NAME.2, NAME to NAME.1; the last one is overwritten. */
static int shift(const struct output *o, struct err *err)
{
	for (unsigned int i = o->opts.rotate - 1; i > 0; i--) {
		char from[PATH_MAX], to[PATH_MAX];

		snprintf(from, sizeof(from), i > 1 ? "%s.%u" : "%s", o->path, i - 1);
		snprintf(to, sizeof(to), "%s.%u", o->path, i);
		if (rename(from, to) && errno != ENOENT)
			return err_set(err, -errno, "cannot rename %s to %s: %s", from, to,
				       strerror(errno));
	}
	return 0;
}

int output_rotate(struct output *o, const struct ledger *ledgers, struct err *err)
{
	__u64 bytes;
	int ret = output_finish(o, ledgers, err);

	if (ret)
		return ret;
	bytes = output_bytes(o);
	close_file(o);
	o->closed_bytes += bytes;
	live_names_forget_cgroups(o->names);
	ret = shift(o, err);
	ret = ret ?: begin(o, err);
	if (ret)
		o->failed = ret;
	return ret;
}

void output_cancel(struct output *o)
{
	if (!o->opts.fd && !output_to_stdout(&o->opts))
		put_back(o);
	output_close(o);
}

void output_close(struct output *o)
{
	if (!o)
		return;
	close_file(o);
	live_names_free(o->names);
	free(o->stacks);
	free(o->strata);
	free(o);
}
