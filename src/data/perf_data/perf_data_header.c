// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "perf_data_header.h"

#include <unistd.h>

#define FEATURE_BYTES_MAX (64 << 20)
#define SEARCH_MAX	  (64 << 20) /* ids compared to name events */

static void note(struct perf_header *h, const char *text)
{
	if (!*h->note)
		snprintf(h->note, sizeof(h->note), "%s", text);
}

static bool read_command(struct perf_bytes *b, struct perf_header *h, struct trace_info *info)
{
	char word[sizeof(info->command)];
	size_t at = 0;
	__u32 n;

	(void)h;
	info->command[0] = 0;
	if (!perf_take32(b, &n))
		return false;
	while (n--) {
		if (!perf_take_string(b, word, sizeof(word)))
			return false;
		if (!at && !strcmp(word, PERF_SIMULATED)) {
			info->simulated = true;
			continue;
		}
		if (at < sizeof(info->command))
			at += snprintf(info->command + at, sizeof(info->command) - at, "%s%s",
				       at ? " " : "", word);
	}
	return true;
}

/* "AuthenticAMD,25,17,1" */
static bool read_cpuid(struct perf_bytes *b, struct perf_header *h, struct trace_info *info)
{
	char text[128];

	(void)info;
	if (!perf_take_string(b, text, sizeof(text)))
		return false;
	h->has_cpu = sscanf(text, "%12[^,],%9u,%9u,%9u", h->vendor, &h->family, &h->model,
			    &h->stepping) == 4;
	return true;
}

static bool read_pmus(struct perf_bytes *b, struct perf_header *h, struct trace_info *info)
{
	char name[64];
	__u32 n, type;

	(void)info;
	h->op_type = h->fetch_type = 0;
	if (!perf_take32(b, &n))
		return false;
	while (n--) {
		if (!perf_take32(b, &type) || !perf_take_string(b, name, sizeof(name)))
			return false;
		if (!strcmp(name, "ibs_op"))
			h->op_type = type;
		else if (!strcmp(name, "ibs_fetch"))
			h->fetch_type = type;
	}
	h->has_pmus = true;
	return true;
}

static bool read_names(struct perf_bytes *b, struct perf_header *h, struct trace_info *info)
{
	__u32 n, bytes, ids;

	(void)info;
	if (!perf_take32(b, &n) || !perf_take32(b, &bytes) || n > PERF_ATTRS_MAX ||
	    bytes < PERF_ATTR_SIZE_VER0 || n > b->n / bytes)
		return false;
	free(h->names);
	h->n_names = 0;
	h->names = xcalloc(n, sizeof(*h->names));
	while (n--) {
		struct perf_event_name *p = &h->names[h->n_names];
		const unsigned char *attr = perf_take(b, bytes);

		if (!attr || !perf_take32(b, &ids) ||
		    !perf_take_string(b, p->name, sizeof(p->name)) || ids > b->n / sizeof(__u64) ||
		    !perf_take(b, ids * sizeof(__u64)))
			return false;
		p->type = perf_get32(attr + offsetof(struct perf_event_attr, type));
		p->config = perf_get64(attr + offsetof(struct perf_event_attr, config));
		h->n_names++;
	}
	return true;
}

static bool read_build_ids(struct perf_bytes *b, struct perf_header *h, struct trace_info *info)
{
	(void)info;
	while (b->n >= sizeof(struct perf_event_header)) {
		struct perf_record rec;

		perf_record_set(&rec, b->p, 0);
		if (rec.size < sizeof(struct perf_event_header) || !perf_take(b, rec.size) ||
		    !perf_build_ids_add(&h->build_ids, &rec))
			return false;
	}
	return !b->n;
}

static bool read_clock(struct perf_bytes *b, struct perf_header *h, struct trace_info *info)
{
	__u32 version, clock;
	__u64 wall, time;

	(void)h;
	if (!perf_take32(b, &version) || !perf_take32(b, &clock) || !perf_take64(b, &wall) ||
	    !perf_take64(b, &time))
		return false;
	if (version == 1) {
		info->realtime_ns = wall;
		info->monotonic_ns = time;
	}
	return true;
}

/* contrary to its documentation, perf writes those that can be first */
static bool read_cpus(struct perf_bytes *b, struct perf_header *h, struct trace_info *info)
{
	__u32 available, online;

	(void)h;
	if (!perf_take32(b, &available) || !perf_take32(b, &online))
		return false;
	info->n_cpus = online;
	return true;
}

static bool read_directory(struct perf_bytes *b, struct perf_header *h, struct trace_info *info)
{
	__u64 version;

	(void)info;
	if (!perf_take64(b, &version))
		return false;
	if (version)
		note(h, "perf record --threads put samples into other files of its directory");
	return true;
}

static bool read_host(struct perf_bytes *b, struct perf_header *h, struct trace_info *info)
{
	(void)h;
	return perf_take_string(b, info->host, sizeof(info->host));
}

static bool read_release(struct perf_bytes *b, struct perf_header *h, struct trace_info *info)
{
	(void)h;
	return perf_take_string(b, info->release, sizeof(info->release));
}

static bool read_cpu_name(struct perf_bytes *b, struct perf_header *h, struct trace_info *info)
{
	(void)info;
	return perf_take_string(b, h->cpu_name, sizeof(h->cpu_name));
}

static bool read_nodes(struct perf_bytes *b, struct perf_header *h, struct trace_info *info)
{
	return perf_topology_nodes(b, &h->topology, info);
}

static bool read_caches(struct perf_bytes *b, struct perf_header *h, struct trace_info *info)
{
	return perf_topology_caches(b, &h->topology, info);
}

static bool read_memory(struct perf_bytes *b, struct perf_header *h, struct trace_info *info)
{
	return perf_topology_memory(b, &h->topology, info);
}

/* The features that are used here, by number. */
static bool (*const features[])(struct perf_bytes *b, struct perf_header *h,
				struct trace_info *info) = {
	[PERF_FEATURE_BUILD_ID] = read_build_ids, [PERF_FEATURE_HOSTNAME] = read_host,
	[PERF_FEATURE_OSRELEASE] = read_release,  [PERF_FEATURE_NRCPUS] = read_cpus,
	[PERF_FEATURE_CPUDESC] = read_cpu_name,	  [PERF_FEATURE_CPUID] = read_cpuid,
	[PERF_FEATURE_CMDLINE] = read_command,	  [PERF_FEATURE_EVENT_DESC] = read_names,
	[PERF_FEATURE_PMU_MAPPINGS] = read_pmus,  [PERF_FEATURE_DIR_FORMAT] = read_directory,
	[PERF_FEATURE_CLOCK_DATA] = read_clock,	  [PERF_FEATURE_NUMA_TOPOLOGY] = read_nodes,
	[PERF_FEATURE_CACHE] = read_caches,	  [PERF_FEATURE_MEM_TOPOLOGY] = read_memory,
};

static bool wanted(__u64 nr)
{
	return nr < ARRAY_SIZE(features) && features[nr];
}

static void read_feature(struct perf_header *h, unsigned int nr, struct perf_bytes b,
			 struct trace_info *info)
{
	char text[80];

	if (features[nr](&b, h, info))
		return;
	snprintf(text, sizeof(text), "feature %u of the header is damaged", nr);
	note(h, text);
}

/* Read all bytes or fail. Return: 0, -EBADMSG if the file is too short, or another errno. */
static int read_at(int fd, void *buf, size_t n, __u64 offset, struct err *err)
{
	size_t done = 0;

	while (done < n) {
		ssize_t got = pread(fd, (char *)buf + done, n - done, offset + done);

		if (got < 0 && errno == EINTR)
			continue;
		if (got < 0)
			return err_set(err, -errno, "cannot read at offset %llu: %s", offset,
				       strerror(errno));
		if (!got)
			return err_set(err, -EBADMSG, "the file ends at offset %llu",
				       offset + done);
		done += got;
	}
	return 0;
}

static bool inside(const struct perf_section *s, __u64 file)
{
	return s->offset <= file && s->size <= file - s->offset;
}

static int read_features(int fd, const struct perf_file_header *head, __u64 file,
			 struct perf_header *h, struct trace_info *info, struct err *err)
{
	__u64 at = h->end;

	for (unsigned int nr = 0; nr < 256; nr++) {
		struct perf_section s;
		unsigned char *p;
		int ret;

		if (!(head->features[nr / 64] >> nr % 64 & 1))
			continue;
		if (file - at < sizeof(s)) {
			note(h, "the file ends before the features of its header");
			return 0;
		}
		ret = read_at(fd, &s, sizeof(s), at, err);
		if (ret)
			return ret;
		at += sizeof(s);
		if (!inside(&s, file)) {
			note(h, "features of its header are not where it says");
			continue;
		}
		if (!wanted(nr) || !s.size || s.size > FEATURE_BYTES_MAX)
			continue;
		p = xrealloc(NULL, s.size);
		ret = read_at(fd, p, s.size, s.offset, err);
		if (!ret)
			read_feature(h, nr, (struct perf_bytes){ p, s.size }, info);
		free(p);
		if (ret)
			return ret;
	}
	return 0;
}

static int read_attr(int fd, const struct perf_file_header *head, __u64 at, __u64 file,
		     struct perf_attrs *a, struct err *err)
{
	size_t bytes = head->attr_size - sizeof(struct perf_section);
	unsigned char buf[4096];
	struct perf_section ids;
	void *p = NULL;
	int ret;

	ret = read_at(fd, buf, head->attr_size, at, err);
	if (ret)
		return ret;
	memcpy(&ids, buf + bytes, sizeof(ids));
	if (!inside(&ids, file) || ids.size / sizeof(__u64) > PERF_IDS_MAX)
		return err_set(err, -EBADMSG,
			       "damaged at offset %llu: an event with %llu bytes of ids at %llu",
			       at, ids.size, ids.offset);
	if (ids.size) {
		p = xrealloc(NULL, ids.size);
		ret = read_at(fd, p, ids.size, ids.offset, err);
	}
	if (!ret)
		ret = perf_attrs_add(a, buf, bytes, p, ids.size / sizeof(__u64), err);
	free(p);
	return ret < 0 ? ret : 0;
}

static int read_attrs(int fd, const struct perf_file_header *head, __u64 file, struct perf_attrs *a,
		      struct err *err)
{
	if (head->attr_size < PERF_ATTR_SIZE_VER0 + sizeof(struct perf_section) ||
	    head->attr_size > 4096)
		return err_set(err, -EBADMSG, "damaged at offset 16: events of %llu bytes",
			       head->attr_size);
	if (!inside(&head->attrs, file))
		return err_set(err, -EBADMSG,
			       "its events would be at offset %llu, %llu bytes, but the file has "
			       "only %llu bytes",
			       head->attrs.offset, head->attrs.size, file);
	for (__u64 i = 0; i < head->attrs.size / head->attr_size; i++) {
		int ret =
			read_attr(fd, head, head->attrs.offset + i * head->attr_size, file, a, err);

		if (ret)
			return ret;
	}
	return 0;
}

static int read_file(int fd, const struct perf_file_header *head, __u64 file, struct perf_header *h,
		     struct perf_attrs *a, struct trace_info *info, struct err *err)
{
	int ret = read_attrs(fd, head, file, a, err);

	if (ret)
		return ret;
	h->begin = head->data.offset;
	if (h->begin > file)
		return err_set(err, -EBADMSG,
			       "its data would begin at offset %llu, but the file has only %llu "
			       "bytes",
			       h->begin, file);
	h->end = h->begin + head->data.size;
	if (!head->data.size) {
		note(h, "perf record was killed before it wrote of which machine this is");
		h->cut = true;
		h->end = file;
		return 0;
	}
	if (!inside(&head->data, file)) {
		char text[PERF_NOTE_BYTES];

		snprintf(text, sizeof(text), "the file ends at offset %llu, but its data at %llu",
			 file, h->end);
		note(h, text);
		h->cut = true;
		h->end = file;
		return 0;
	}
	return read_features(fd, head, file, h, info, err);
}

static int check_magic(__u64 magic, struct err *err)
{
	if (magic == PERF_MAGIC)
		return 0;
	if (magic == PERF_MAGIC_FOREIGN)
		return err_set(err, -EINVAL,
			       "it was recorded on a machine of the other byte order, which has "
			       "no IBS");
	return err_set(err, -EINVAL,
		       "it was written by a perf older than Linux 3.2; record with a newer one");
}

int perf_header_read(int fd, struct perf_header *h, struct perf_attrs *a, struct trace_info *info,
		     struct err *err)
{
	struct perf_file_header head = { 0 };
	off_t file = lseek(fd, 0, SEEK_END);
	int ret;

	if (file < 0)
		return err_set(err, -errno, "cannot get its size: %s", strerror(errno));
	ret = read_at(fd, &head, PERF_PIPE_HEADER_SIZE, 0, err);
	if (!ret)
		ret = check_magic(head.magic, err);
	if (ret)
		return ret;
	if (head.size == PERF_PIPE_HEADER_SIZE) {
		h->pipe = true;
		h->begin = PERF_PIPE_HEADER_SIZE;
		h->end = file;
		h->cut = true; /* its length is not recorded */
		return 0;
	}
	if (head.size < sizeof(head))
		return err_set(err, -EBADMSG, "damaged at offset 8: a header of %llu bytes",
			       head.size);
	ret = read_at(fd, &head, sizeof(head), 0, err);
	return ret ? ret : read_file(fd, &head, file, h, a, info, err);
}

static int attr_record(const struct perf_record *rec, struct perf_attrs *a, struct err *err)
{
	const unsigned char *attr = rec->data + sizeof(struct perf_event_header);
	size_t n = rec->size - sizeof(struct perf_event_header);
	__u32 bytes;
	int ret;

	if (n < PERF_ATTR_SIZE_VER0)
		return err_set(err, -EBADMSG, "damaged at offset %llu: an event of %zu bytes",
			       rec->offset, n);
	bytes = perf_get32(attr + offsetof(struct perf_event_attr, size));
	if (!bytes)
		bytes = PERF_ATTR_SIZE_VER0;
	if (bytes > n)
		return err_set(err, -EBADMSG,
			       "damaged at offset %llu: an event of %u bytes in a record of %u",
			       rec->offset, bytes, rec->size);
	ret = perf_attrs_add(a, attr, bytes, attr + bytes, (n - bytes) / sizeof(__u64), err);
	return ret < 0 ? ret : 0;
}

static void update_record(struct perf_header *h, const struct perf_record *rec,
			  struct perf_attrs *a)
{
	struct perf_bytes b = perf_record_body(rec);
	struct perf_attr *p;
	__u64 type, id;

	if (!perf_take64(&b, &type) || type != PERF_EVENT_UPDATE_NAME || !perf_take64(&b, &id) ||
	    h->searched > SEARCH_MAX)
		return;
	h->searched += a->n_ids;
	p = perf_attrs_by_id(a, id);
	if (p)
		perf_copy_text(p->name, sizeof(p->name), b.p, b.n);
}

int perf_header_record(struct perf_header *h, const struct perf_record *rec, struct perf_attrs *a,
		       struct trace_info *info, struct err *err)
{
	struct perf_bytes b = perf_record_body(rec);
	__u64 nr;

	switch (rec->type) {
	case PERF_RECORD_HEADER_ATTR:
		return h->pipe ? attr_record(rec, a, err) : 0;
	case PERF_RECORD_EVENT_UPDATE:
		update_record(h, rec, a);
		return 0;
	case PERF_RECORD_HEADER_FEATURE:
		if (perf_take64(&b, &nr) && wanted(nr))
			read_feature(h, nr, b, info);
		return 0;
	default:
		return 0;
	}
}

static enum perf_attr_kind kind_of(const struct perf_header *h, const struct perf_attr *a)
{
	if (!(a->attr.sample_type & PERF_SAMPLE_RAW) || a->attr.type < PERF_TYPE_MAX)
		return PERF_ATTR_OTHER;
	if (!h->has_pmus)
		return PERF_ATTR_UNKNOWN;
	if (a->attr.type == h->op_type)
		return PERF_ATTR_OP;
	return a->attr.type == h->fetch_type ? PERF_ATTR_FETCH : PERF_ATTR_OTHER;
}

void perf_header_name_events(const struct perf_header *h, struct perf_attrs *a)
{
	for (size_t i = 0; i < a->n; i++) {
		struct perf_attr *p = &a->attr[i];

		p->kind = kind_of(h, p);
		if (!*p->name && i < h->n_names && h->names[i].type == p->attr.type &&
		    h->names[i].config == p->attr.config)
			memcpy(p->name, h->names[i].name, sizeof(p->name));
	}
}

void perf_header_free(struct perf_header *h)
{
	perf_build_ids_free(&h->build_ids);
	free(h->names);
}
