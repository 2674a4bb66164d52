// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "parts.h"

#include "base/json_writer.h"
#include "base/text.h"

#include <fcntl.h>
#include <jansson.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#define MAGIC		"IBSMERG\n"
#define BYTE_ORDER_MARK 0x01020304u
#define MAJOR		1
#define PARTS_MAX	16384 /* the largest machines have some 10,000 nodes */
#define INDEX_MAX	(4u << 20)
#define COPY_BYTES	(1u << 20)

struct merged_head {
	char magic[8];
	__u32 byte_order;
	__u16 major, minor; /* a reader rejects other major versions */
	__u32 index_bytes, index_crc;
	__u32 crc; /* of the fields above */
};
_Static_assert(sizeof(struct merged_head) == 28, "merged_head has padding");

typedef unsigned long long ull;

static __u32 checksum(const void *data, size_t n)
{
	return crc32_z(0, data, n);
}

/* Return: 1; 0 if it is not a merged file; or a negative errno with @err. */
static int read_head(int fd, struct merged_head *h, struct err *err)
{
	if (pread(fd, h, sizeof(*h), 0) != sizeof(*h) || memcmp(h->magic, MAGIC, sizeof(h->magic)))
		return 0;
	if (h->crc != checksum(h, offsetof(struct merged_head, crc)))
		return err_set(err, -EINVAL, "the head of the merged file is damaged");
	if (h->byte_order != BYTE_ORDER_MARK || h->major != MAJOR)
		return err_set(
			err, -EINVAL,
			"it has version %u.%u of the format of merged files, and this program "
			"reads version %d: use the ibscope that wrote it",
			h->major, h->minor, MAJOR);
	return 1;
}

/*
 * Check the number and the ranges of recordings. Ranges that overlap would let a small file have the contents of
 * a large one; the writer puts one behind the other.
 */
static int check_index(const json_t *index, __u64 base, struct err *err)
{
	const size_t n = json_array_size(index);
	json_int_t end = 0; /* of the recording before */

	if (n > PARTS_MAX)
		return err_set(err, -EINVAL,
			       "the index of the merged file has %zu recordings, at most %d", n,
			       PARTS_MAX);
	for (size_t i = 0; i < n; i++) {
		const json_t *one = json_array_get(index, i);
		json_int_t offset = json_integer_value(json_object_get(one, "offset"));
		json_int_t bytes = json_integer_value(json_object_get(one, "bytes"));

		if (!json_is_string(json_object_get(one, "name")) || offset < 0 || bytes <= 0 ||
		    offset > INT64_MAX - bytes - (json_int_t)base)
			return err_set(err, -EINVAL,
				       "recording %zu in the index of the merged file is invalid",
				       i + 1);
		if (offset < end)
			return err_set(err, -EINVAL,
				       "recordings %zu and %zu of the merged file overlap", i,
				       i + 1);
		end = offset + bytes;
	}
	return 1;
}

/* The recordings of a merged file, as a JSON array. Return: as read_head(). */
static int read_index(int fd, const struct merged_head *h, json_t **out, struct err *err)
{
	json_t *j = NULL;
	char *text;
	int ret;

	*out = NULL;
	if (h->index_bytes > INDEX_MAX)
		return err_set(err, -EINVAL,
			       "the index of the merged file has %u bytes, at most %u",
			       h->index_bytes, INDEX_MAX);
	text = xcalloc(1, h->index_bytes + 1);
	if (pread(fd, text, h->index_bytes, sizeof(*h)) == (ssize_t)h->index_bytes &&
	    h->index_crc == checksum(text, h->index_bytes))
		j = json_loadb(text, h->index_bytes, 0, NULL);
	free(text);
	*out = json_incref(json_object_get(j, "recordings"));
	json_decref(j);
	ret = json_is_array(*out)
		      ? check_index(*out, sizeof(*h) + h->index_bytes, err)
		      : err_set(err, -EINVAL, "the index of the merged file is damaged");
	if (ret > 0)
		return ret;
	json_decref(*out);
	*out = NULL;
	return ret;
}

int trace_merged(int fd, size_t *n, struct err *err)
{
	struct merged_head h;
	json_t *index;
	int ret = read_head(fd, &h, err);

	ret = ret <= 0 ? ret : read_index(fd, &h, &index, err);
	if (ret <= 0)
		return ret;
	*n = json_array_size(index);
	json_decref(index);
	return 1;
}

static void add(struct trace_part **parts, size_t *n, const char *file, const char *name,
		__u64 offset, __u64 bytes)
{
	*parts = xrealloc(*parts, (*n + 1) * sizeof(**parts));
	(*parts)[(*n)++] = (struct trace_part){ xstrdup(file), xstrdup(name), offset, bytes };
}

/* @base: offset of the first recording in the file. */
static void add_index(json_t *index, const char *path, __u64 base, struct trace_part **parts,
		      size_t *n)
{
	const json_t *one;
	size_t i;

	json_array_foreach(index, i, one)
	{
		add(parts, n, path, json_string_value(json_object_get(one, "name")),
		    base + json_integer_value(json_object_get(one, "offset")),
		    json_integer_value(json_object_get(one, "bytes")));
	}
}

int trace_parts_add(const char *path, struct trace_part **parts, size_t *n, struct err *err)
{
	struct merged_head h;
	json_t *index = NULL;
	int fd = -1, ret = 0;
	struct stat st;

	/* do not open a FIFO twice: closing it would look like the end of its reader to the writer */
	if (strcmp(path, "-") && !stat(path, &st) && S_ISREG(st.st_mode))
		fd = open(path, O_RDONLY | O_CLOEXEC);
	/* trace_part_open() reports files that cannot be opened */
	if (fd >= 0) {
		ret = read_head(fd, &h, err);
		ret = ret <= 0 ? ret : read_index(fd, &h, &index, err);
		close(fd);
	}
	if (ret < 0)
		err_prefix(err, "%s", path);
	else if (!ret)
		add(parts, n, path, strcmp(path, "-") ? path : "standard input", 0, 0);
	else
		add_index(index, path, sizeof(h) + h.index_bytes, parts, n);
	json_decref(index);
	return ret < 0 ? ret : 0;
}

void trace_parts_free(struct trace_part *parts, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		free(parts[i].file);
		free(parts[i].name);
	}
	free(parts);
}

static int write_all(int fd, const void *data, size_t n, struct err *err)
{
	for (ssize_t done; n; n -= done, data = (const char *)data + done) {
		done = write(fd, data, n);
		if (done < 0 && errno != EINTR)
			return err_set(err, -errno, "cannot write: %s", strerror(errno));
		done = done < 0 ? 0 : done;
	}
	return 0;
}

static int copy(int fd, const struct trace_part *p, __u64 bytes, struct err *err)
{
	int from = open(p->file, O_RDONLY | O_CLOEXEC), ret = 0;
	off_t at = p->offset;

	if (from < 0)
		return err_set(err, -errno, "cannot open %s: %s", p->file, strerror(errno));
	while (bytes && !ret) {
		ssize_t n = sendfile(fd, from, &at, bytes < COPY_BYTES ? bytes : COPY_BYTES);

		if (n < 0 && errno != EINTR)
			ret = err_set(err, -errno, "cannot copy %s: %s", p->name, strerror(errno));
		else if (!n)
			ret = err_set(err, -ESTALE, "%s was truncated while it was copied",
				      p->name);
		bytes -= n > 0 ? n : 0;
	}
	close(from);
	return ret;
}

int trace_parts_write(int fd, const struct trace_part *parts, size_t n, struct err *err)
{
	struct merged_head h = { .magic = MAGIC, .byte_order = BYTE_ORDER_MARK, .major = MAJOR };
	__u64 *bytes = xcalloc(n, sizeof(*bytes)), offset = 0;
	char *text;
	size_t size;
	struct json_writer w = { .f = xmemopen(&text, &size) };
	struct stat st;
	int ret = n > PARTS_MAX ? err_set(err, -E2BIG, "too many recordings: %zu, at most %d", n,
					  PARTS_MAX)
				: 0;

	json_begin_object(&w, NULL);
	json_begin_array(&w, "recordings");
	for (size_t i = 0; i < n && !ret; i++) {
		if (stat(parts[i].file, &st))
			ret = err_set(err, -errno, "cannot open %s: %s", parts[i].file,
				      strerror(errno));
		else if ((__u64)st.st_size > parts[i].offset)
			bytes[i] = st.st_size - parts[i].offset;
		if (parts[i].bytes && parts[i].bytes < bytes[i])
			bytes[i] = parts[i].bytes;
		json_begin_object(&w, NULL);
		json_put_text(&w, "name", text_last_part(parts[i].name));
		json_put_i64(&w, "offset", offset);
		json_put_i64(&w, "bytes", bytes[i]);
		json_end(&w);
		offset += bytes[i];
	}
	json_end(&w);
	json_end(&w);
	xmemclose(w.f);
	h.index_bytes = size;
	if (!ret && h.index_bytes > INDEX_MAX)
		ret = err_set(
			err, -E2BIG,
			"names of recordings are too long: the index has %u bytes, at most %u",
			h.index_bytes, INDEX_MAX);
	h.index_crc = checksum(text, h.index_bytes);
	h.crc = checksum(&h, offsetof(struct merged_head, crc));
	ret = ret ?: write_all(fd, &h, sizeof(h), err);
	ret = ret ?: write_all(fd, text, h.index_bytes, err);
	for (size_t i = 0; i < n && !ret; i++)
		ret = copy(fd, &parts[i], bytes[i], err);
	free(text);
	free(bytes);
	return ret;
}
