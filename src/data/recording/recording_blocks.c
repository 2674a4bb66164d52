// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "recording_blocks.h"

#include "trace/trace.h"

#include <stdarg.h>
#include <sys/stat.h>
#include <unistd.h>

#define JSON_COST 8 /* time to read a byte of JSON, in that of other bytes */

/* @at: within the recording, or its end. Return: bytes read, fewer only at that end; or a negative errno. */
static ssize_t read_at(const struct recording_blocks *b, void *to, size_t bytes, __u64 at)
{
	size_t have = 0;
	ssize_t n;

	if (bytes > b->size - at)
		bytes = b->size - at;
	while (have < bytes) {
		n = pread(b->fd, (char *)to + have, bytes - have, b->base + at + have);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -errno;
		if (!n)
			break;
		have += n;
	}
	return have;
}

static int cannot_read(struct err *err, ssize_t ret, __u64 at)
{
	return err_set(err, ret, "cannot read at offset %llu: %s", at, strerror(-ret));
}

__attribute__((format(printf, 3, 4))) static void damaged(struct recording_blocks *b, __u64 at,
							  const char *fmt, ...)
{
	va_list ap;

	if (*b->damage.reason)
		return;
	b->damage.offset = at;
	va_start(ap, fmt);
	vsnprintf(b->damage.reason, sizeof(b->damage.reason), fmt, ap);
	va_end(ap);
}

/* Read the head of the file if it is intact; blocks can be found without it. */
static int read_file_head(struct recording_blocks *b, struct err *err)
{
	struct recording_file_head h;
	ssize_t n = read_at(b, &h, sizeof(h), 0);

	if (n < 0)
		return cannot_read(err, n, 0);
	b->start = sizeof(h);
	if (n < (ssize_t)sizeof(h))
		return err_set(err, -EINVAL, "it ends at offset %zd, inside the head of the file",
			       n);
	if (!memcmp(h.magic, RECORDING_FILE_MAGIC, sizeof(h.magic)) &&
	    h.byte_order == __builtin_bswap32(RECORDING_BYTE_ORDER))
		return err_set(err, -EINVAL,
			       "it was written on a big-endian machine, which this program cannot "
			       "read");
	b->head_damaged = h.crc != recording_crc(&h, offsetof(struct recording_file_head, crc));
	if (b->head_damaged)
		return 0;
	if (h.major < RECORDING_MAJOR || h.major > RECORDING_MAJOR_STRATA)
		return err_set(err, -EINVAL,
			       "it has version %u.%u, and this program reads versions %u.x to "
			       "%u.x; use the ibscope that wrote it, or a newer one",
			       h.major, h.minor, RECORDING_MAJOR, RECORDING_MAJOR_STRATA);
	if (h.block_head_bytes != sizeof(struct recording_block))
		return err_set(err, -EINVAL,
			       "offset 16: heads of blocks have %u bytes, expected %zu",
			       h.block_head_bytes, sizeof(struct recording_block));
	b->file = h.file;
	b->knows_file = true;
	return 0;
}

int recording_blocks_open(int fd, __u64 offset, __u64 bytes, struct recording_blocks *b,
			  struct err *err)
{
	struct stat st;
	int ret;

	*b = (struct recording_blocks){ .fd = fd, .base = offset, .zstd = ZSTD_createDCtx() };
	if (!b->zstd)
		out_of_memory();
	if (fstat(fd, &st))
		return err_set(err, -errno, "fstat: %s", strerror(errno));
	b->size = (__u64)st.st_size > offset ? st.st_size - offset : 0;
	if (bytes && bytes < b->size)
		b->size = bytes;
	ret = read_file_head(b, err);
	recording_blocks_rewind(b);
	return ret;
}

void recording_blocks_rewind(struct recording_blocks *b)
{
	b->at = b->start;
	b->good_end = b->head_damaged ? 0 : b->start;
	b->next_seq = b->wasted = b->expanded = b->packed = 0;
	b->peeked = false;
	b->damage = (struct recording_damage){};
	if (b->head_damaged)
		damaged(b, 0, "the head of the file is damaged");
}

static bool head_ok(const struct recording_blocks *b, const struct recording_block *h)
{
	return h->magic == RECORDING_BLOCK_MAGIC &&
	       h->head_crc == recording_crc(h, offsetof(struct recording_block, head_crc)) &&
	       (!b->knows_file || h->file == b->file) && h->seq >= b->next_seq &&
	       h->bytes <= RECORDING_BLOCK_MAX && h->raw_bytes <= RECORDING_BLOCK_MAX;
}

/* Step over a hole of a sparse file, which may be larger than anything that can be read. */
static __u64 next_data(const struct recording_blocks *b, __u64 at)
{
	off_t data = lseek(b->fd, b->base + at, SEEK_DATA);

	if (data == -1)
		return errno == ENXIO ? b->size : at;
	return data - b->base;
}

/* The next offset from @at on that looks like a block; the size of the file if there is none. */
static int find_magic(struct recording_blocks *b, __u64 *at, struct err *err)
{
	static const __u32 magic = RECORDING_BLOCK_MAGIC;
	const unsigned char *from, *found;
	ssize_t n;

	while (*at + sizeof(struct recording_block) <= b->size) {
		if (*at < b->window_at ||
		    *at + sizeof(struct recording_block) > b->window_at + b->window_bytes) {
			n = read_at(b, b->window, sizeof(b->window), *at);
			if (n < 0)
				return cannot_read(err, n, *at);
			b->window_at = *at;
			b->window_bytes = n;
			if (n < (ssize_t)sizeof(struct recording_block))
				break; /* truncated meanwhile */
		}
		from = b->window + (*at - b->window_at);
		found = memmem(from, b->window + b->window_bytes - from, &magic, sizeof(magic));
		if (!found) {
			*at = next_data(b, b->window_at + b->window_bytes - (sizeof(magic) - 1));
			continue;
		}
		*at += found - from;
		if (*at + sizeof(struct recording_block) <= b->window_at + b->window_bytes)
			return 0;
	}
	*at = b->size;
	return 0;
}

static int read_head(struct recording_blocks *b, __u64 at, struct recording_block *h,
		     struct err *err)
{
	ssize_t n;

	if (at >= b->window_at && at + sizeof(*h) <= b->window_at + b->window_bytes) {
		memcpy(h, b->window + (at - b->window_at), sizeof(*h));
		return sizeof(*h);
	}
	n = read_at(b, h, sizeof(*h), at);
	return n < 0 ? cannot_read(err, n, at) : (int)n;
}

int recording_blocks_peek(struct recording_blocks *b, struct recording_block *head, __u64 *offset,
			  struct err *err)
{
	__u64 at = b->at;
	int n;

	while (!b->peeked) {
		n = at < b->size ? read_head(b, at, &b->head, err) : 0;
		if (n < 0)
			return n;
		if (n == sizeof(b->head) && head_ok(b, &b->head))
			break;
		if (at < b->size && n < (int)sizeof(b->head))
			damaged(b, at, "the file ends inside the head of a block");
		else if (at < b->size)
			damaged(b, at, "here should be the head of a block");
		at++;
		n = find_magic(b, &at, err);
		if (n)
			return n;
		if (at < b->size)
			continue;
		b->at = b->size;
		b->damage.bytes += b->size - b->good_end;
		b->good_end = b->size;
		return 0;
	}
	if (!b->peeked) {
		b->at = at;
		b->damage.blocks += b->head.seq - b->next_seq;
		if (b->head.seq != b->next_seq)
			damaged(b, at, "%llu blocks before it are not there",
				b->head.seq - b->next_seq);
		b->next_seq = b->head.seq + 1;
		b->peeked = true;
	}
	*head = b->head;
	*offset = b->at;
	return 1;
}

/* Read the data. Return: NULL, or what is wrong with it; *ret is a negative errno if reading failed. */
static const char *load(struct recording_blocks *b, ssize_t *ret)
{
	const struct recording_block *h = &b->head;

	*ret = read_at(b, b->stored, h->bytes, b->at + sizeof(*h));
	if (*ret < 0)
		return NULL;
	b->wasted += *ret;
	if (*ret < (ssize_t)h->bytes)
		return "the file ends inside the block";
	if (h->data_crc != recording_crc(b->stored, h->bytes))
		return "the block has a wrong checksum";
	b->wasted -= *ret;
	return NULL;
}

static const char *unpack(struct recording_blocks *b, const unsigned char **data)
{
	const struct recording_block *h = &b->head;

	if (h->flags & ~RECORDING_ZSTD)
		return "the block is encoded in a way that this program does not know";
	*data = b->stored;
	if (!(h->flags & RECORDING_ZSTD))
		return h->raw_bytes == h->bytes ? NULL : "the block has two lengths";
	*data = b->raw;
	if (ZSTD_decompressDCtx(b->zstd, b->raw, h->raw_bytes, b->stored, h->bytes) != h->raw_bytes)
		return "the block cannot be decompressed";
	return NULL;
}

static void count_damaged(struct recording_blocks *b, const char *reason)
{
	b->damage.blocks++;
	if (b->head.type == RECORDING_SAMPLES)
		b->damage.samples += b->head.entries;
	damaged(b, b->at, "%s", reason);
}

/* Constant columns of samples take no bytes, even without a compressor; JSON takes longer to read than others. */
static int check_expansion(struct recording_blocks *b, struct err *err)
{
	const struct recording_block *h = &b->head;

	b->packed += sizeof(*h) + h->bytes;
	b->expanded += h->raw_bytes;
	if (h->type == RECORDING_SAMPLES || h->type == RECORDING_FETCHES)
		b->expanded += (h->entries < RECORDING_BATCH ? h->entries : RECORDING_BATCH) *
			       sizeof(struct ibs_record);
	else if (h->type != RECORDING_EVENTS && h->type != RECORDING_STACKS &&
		 h->type != RECORDING_COPIES)
		b->expanded += JSON_COST * (__u64)h->raw_bytes;
	return trace_check_expansion(b->packed, b->expanded, err);
}

/* The block is not damaged. */
static void accept(struct recording_blocks *b)
{
	const __u64 begin = b->at;

	b->at = begin + sizeof(b->head) + b->head.bytes;
	b->peeked = false;
	b->file = b->head.file;
	b->knows_file = true;
	b->damage.bytes += begin - b->good_end;
	b->good_end = b->at;
}

int recording_blocks_pass(struct recording_blocks *b, struct err *err)
{
	int ret = check_expansion(b, err);

	if (!ret)
		accept(b);
	return ret;
}

bool recording_blocks_next(struct recording_blocks *b, struct recording_block *head, __u64 *offset)
{
	*offset = b->at;
	return b->at < b->size && read_head(b, b->at, head, &(struct err){}) == sizeof(*head) &&
	       head_ok(b, head);
}

int recording_blocks_take(struct recording_blocks *b, const unsigned char **data, struct err *err)
{
	__u64 begin = b->at, end = begin + sizeof(b->head) + b->head.bytes;
	const char *wrong;
	ssize_t ret = check_expansion(b, err);

	if (ret)
		return ret;
	array_reserve(b->stored, b->stored_room, b->head.bytes + 1);
	array_reserve(b->raw, b->raw_room, b->head.raw_bytes + 1);
	b->peeked = false;
	wrong = load(b, &ret);
	if (ret < 0)
		return cannot_read(err, ret, begin);
	if (wrong) {
		count_damaged(b, wrong);
		/*
		 * Where bytes are missing the next block begins before the end of this one. Not
		 * for ever: heads inside of blocks must not make the work grow with the square.
		 */
		b->at = b->wasted > b->size + RECORDING_BLOCK_MAX ? end : begin + sizeof(b->head);
		return 0;
	}
	wrong = data ? unpack(b, data) : NULL;
	if (wrong)
		count_damaged(b, wrong);
	if (wrong)
		b->at = end;
	else
		accept(b);
	return !wrong;
}

void recording_blocks_reject(struct recording_blocks *b, const char *reason)
{
	__u64 next = b->at;

	b->at -= sizeof(b->head) + b->head.bytes;
	count_damaged(b, reason);
	b->damage.bytes += next - b->at;
	b->at = next;
}

void recording_blocks_close(struct recording_blocks *b)
{
	ZSTD_freeDCtx(b->zstd);
	free(b->stored);
	free(b->raw);
}

void recording_blocks_describe_end(const struct recording_blocks *b, bool ended, bool unwritten,
				   struct trace_end *e)
{
	const struct recording_damage *d = &b->damage;
	char *to = e->missing;
	size_t room = sizeof(e->missing);
	int n = 0;

	e->skipped_blocks = d->blocks;
	e->skipped_bytes = d->bytes;
	e->whole = ended && !d->blocks;
	e->missing[0] = 0;
	if (e->whole)
		return;
	if (!ended)
		n = snprintf(to, room,
			     "the file ends at offset %llu without the mark of an orderly end: the "
			     "writer was stopped, or the file was cut",
			     (unsigned long long)b->size);
	else if (unwritten)
		n = snprintf(to, room, "the writer could not write everything");
	if (*d->reason)
		snprintf(to + n, room - n, "%s%llu bytes unreadable%s, from offset %llu on: %s",
			 n ? "; " : "", (unsigned long long)d->bytes,
			 d->samples ? " (with samples)" : "", (unsigned long long)d->offset,
			 d->reason);
}
