/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Pins of a collector that samples nothing, in a directory of this process. After cmocka.h. */
#ifndef IBSCOPE_TESTS_MADE_PINS_H
#define IBSCOPE_TESTS_MADE_PINS_H

#include "../unit/open_files.h"
#include "counts/counts.h"
#include "pins/pins.h"

#include <bpf/bpf.h>
#include <errno.h>
#include <ibscope/caps.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#define CPUS  3 /* the state has room for a power of two of them */
#define SLOTS 25
#define ROOM  4

#define PIN_NAME(id, name, ...) name,
static const char *const pin_names[] = { IBS_PIN_TABLE(PIN_NAME) };

static struct layout slot_layout;
static struct ibs_meta_layout want; /* of a collector of this version */
static char dir[64];
static struct err err;

/* New maps of a program, and where they are mapped. */
static int maps[IBS_PIN_META];
static __u64 *series;
static struct ibs_slot_owner *owners;
static struct ibs_state *counted;

static inline size_t pages(size_t bytes)
{
	return (bytes + 4095) / 4096 * 4096;
}

static inline void *map_of(int fd, size_t bytes)
{
	void *at = mmap(NULL, pages(bytes), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);

	assert_true(at != MAP_FAILED);
	return at;
}

static inline int new_array(__u32 value, __u32 n)
{
	LIBBPF_OPTS(bpf_map_create_opts, opts, .map_flags = BPF_F_MMAPABLE);
	int fd = bpf_map_create(BPF_MAP_TYPE_ARRAY, "made", 4, value, n, &opts);

	assert_true(fd >= 0);
	return fd;
}

static inline void drop_maps(void)
{
	if (!series)
		return;
	munmap(series, pages(slot_layout.words * 8 * SLOTS));
	munmap(owners, pages(sizeof(*owners) * SLOTS));
	munmap(counted, pages(want.state_bytes));
	series = NULL;
	for (int i = 0; i < IBS_PIN_META; i++)
		close(maps[i]);
}

static inline void make_maps(void)
{
	drop_maps();
	maps[IBS_PIN_SERIES] = new_array(slot_layout.words * 8, SLOTS);
	maps[IBS_PIN_OWNERS] = new_array(sizeof(*owners), SLOTS);
	maps[IBS_PIN_STATE] = new_array(want.state_bytes, 1);
	for (int i = IBS_PIN_CGROUPS; i < IBS_PIN_META; i++)
		maps[i] = new_array(8, 1);
	series = map_of(maps[IBS_PIN_SERIES], slot_layout.words * 8 * SLOTS);
	owners = map_of(maps[IBS_PIN_OWNERS], sizeof(*owners) * SLOTS);
	counted = map_of(maps[IBS_PIN_STATE], want.state_bytes);
}

static inline void set_want(void)
{
	layout_init(&slot_layout, IBS_METRIC_DC_MISS_LAT, IBS_CAPS_ZEN4);
	want = (struct ibs_meta_layout){
		.n_cpus = CPUS,
		.shards = 1,
		.max_slots = SLOTS,
		.slot_words = slot_layout.words,
		.by = IBS_BY_CGROUP,
		.metric = IBS_METRIC_DC_MISS_LAT,
		.caps = IBS_CAPS_ZEN4,
		.outcomes = IBS_OUTCOME_N,
		.sources = IBS_SRC_N,
		.ops = IBS_OP_KIND_N,
		.buckets = IBS_LAT_BUCKETS,
		.state_bytes = sizeof(*counted) + ROOM * sizeof(*counted->cpu),
		.meta_bytes = sizeof(struct ibs_meta),
		.status_bytes = sizeof(struct ibs_meta_status),
		.name_bytes = sizeof(struct ibs_slot_name),
	};
	memcpy(want.entry, slot_layout.entry, sizeof(want.entry));
}

/* The path of a file in the directory; two at a time. */
static inline const char *in_dir(const char *name)
{
	static char path[2][512];
	static int i;

	i = !i;
	snprintf(path[i], sizeof(path[i]), "%s/%s", dir, name);
	return path[i];
}

static inline bool exists(const char *name)
{
	struct stat st;

	return !lstat(in_dir(name), &st);
}

static inline struct stat stat_of(const char *name)
{
	struct stat st;

	assert_int_equal(lstat(in_dir(name), &st), 0);
	return st;
}

static inline __u32 id_of_fd(int fd)
{
	struct bpf_map_info info = {};
	__u32 len = sizeof(info);

	assert_int_equal(bpf_obj_get_info_by_fd(fd, &info, &len), 0);
	return info.id;
}

/* The map that is pinned under that name. */
static inline __u32 id_of(const char *name)
{
	int fd = bpf_obj_get(in_dir(name));
	__u32 id;

	assert_true(fd >= 0);
	id = id_of_fd(fd);
	close(fd);
	return id;
}

static inline struct pins *take_over(void)
{
	struct pins *p = NULL;

	if (pins_open(dir, 0644, &p, &err))
		fail_msg("%s", err.text);
	return p;
}

static inline int adopt(struct pins *p, const struct ibs_meta_layout *l, const char **why)
{
	int ret = pins_adopt(p, l, why, &err);

	if (ret < 0)
		fail_msg("%s", err.text);
	return ret;
}

static inline void finish(struct pins *p, const struct ibs_meta_layout *l)
{
	if (pins_finish(p, l, maps, &err))
		fail_msg("%s", err.text);
}

/* A first collector, with new maps. */
static inline struct pins *start_new(void)
{
	struct pins *p = take_over();
	const char *why;

	make_maps();
	assert_int_equal(adopt(p, &want, &why), 0);
	finish(p, &want);
	return p;
}

/* Everything that is in a directory, and the directory. */
static inline void remove_pins(void)
{
	char command[128];

	snprintf(command, sizeof(command), "rm -rf %s", dir);
	assert_int_equal(system(command), 0);
}

/* Files of this process, and mappings of BPF maps. */
static inline int left_open(void)
{
	FILE *f = fopen("/proc/self/maps", "re");
	char line[1024];
	int n = 0;

	assert_non_null(f);
	while (fgets(line, sizeof(line), f))
		n += strstr(line, "bpf-map") != NULL;
	fclose(f);
	return n + open_files();
}

static int open_before;

static inline void name_dir(void)
{
	snprintf(dir, sizeof(dir), "/sys/fs/bpf/ibscope-unit-%d", (int)getpid());
}

static inline int new_dir(void **state)
{
	(void)state;
	open_before = left_open();
	set_want();
	name_dir();
	return 0;
}

static inline int no_dir(void **state)
{
	(void)state;
	drop_maps();
	remove_pins();
	assert_int_equal(left_open(), open_before);
	return 0;
}

/* Messages of the code under test are not those of a test. */
static inline void be_quiet(void)
{
	static FILE *null;

	null = null ?: fopen("/dev/null", "we");
	log_to(null);
}

static char *said;
static size_t said_bytes;
static FILE *listening;

static inline void listen_to(void)
{
	listening = open_memstream(&said, &said_bytes);
	assert_non_null(listening);
	log_to(listening);
}

/* A part of the messages since then; NULL: there is none. */
static inline const char *heard(const char *text)
{
	fflush(listening);
	return strstr(said, text);
}

/* The messages since then were of this @text. */
static inline void was_said(const char *text)
{
	be_quiet();
	fclose(listening);
	if (*text ? !strstr(said, text) : *said)
		fail_msg("%s", said);
	free(said);
}

/* False, with a reason, where nothing can be pinned. */
static inline bool can_pin(void)
{
	struct pins *p = NULL;
	int fd;

	set_want();
	new_dir(NULL);
	fd = bpf_map_create(BPF_MAP_TYPE_ARRAY, "made", 4, 8, 1, NULL);
	if (fd < 0) {
		printf("skipped: no BPF maps here: %s\n", strerror(errno));
		return false;
	}
	close(fd);
	if (pins_open(dir, 0644, &p, &err)) {
		printf("skipped: %s\n", err.text);
		return false;
	}
	pins_remove(p);
	pins_close(p);
	return true;
}

#endif
