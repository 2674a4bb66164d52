// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* The collector's side of a directory of pins: created, resumed, rejected, converted, repaired and removed. */
#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include <cmocka.h>

#include "base/clock.h"
#include "clock_attr.h"
#include "made_pins.h"
#include "perf/perf.h"
#include "perf/sample_cost.h"

#define EVERY_NAME(i) for (int i = 0; i < IBS_PIN_N; i++)

static const char *why;

/* Return: what pins_adopt() returned; the collector before has gone. */
static int resume(struct pins **p, const struct ibs_meta_layout *l)
{
	*p = take_over();
	return adopt(*p, l, &why);
}

static void be_gone(struct pins *p)
{
	pins_remove(p);
	EVERY_NAME(i)
	assert_int_equal(pins_fd(p, i), -1);
	assert_false(exists(""));
	pins_close(p);
}

/* --- new ones --- */

static void test_new(void **state)
{
	static const bool readers[IBS_PIN_N] = { [IBS_PIN_SERIES] = true,
						 [IBS_PIN_OWNERS] = true,
						 [IBS_PIN_STATE] = true,
						 [IBS_PIN_META] = true,
						 [IBS_PIN_NAMES] = true };
	const __u64 before = clock_ns(CLOCK_REALTIME);
	struct pins *p = take_over();
	__u64 samples = 1;

	(void)state;
	assert_string_equal(pins_dir(p), dir);
	assert_string_equal(pins_links_dir(p), in_dir("links"));
	assert_int_equal(stat_of("links").st_mode & 07777, 0700);
	assert_true(fcntl(pins_lock_fd(p), F_GETFD) & FD_CLOEXEC);
	make_maps();
	assert_int_equal(adopt(p, &want, &why), 0);
	assert_string_equal(why, "");
	assert_false(pins_rejected(p, &samples));
	assert_int_equal(samples, 0);
	EVERY_NAME(i)
	assert_int_equal(pins_fd(p, i), -1);
	finish(p, &want);
	EVERY_NAME(i)
	{
		assert_int_equal(stat_of(pin_names[i]).st_mode & 07777, readers[i] ? 0644 : 0600);
		assert_int_equal(id_of(pin_names[i]), id_of_fd(pins_fd(p, i)));
		if (i >= IBS_PIN_META)
			continue;
		assert_int_equal(id_of(pin_names[i]), id_of_fd(maps[i]));
		assert_int_not_equal(pins_fd(p, i), maps[i]); /* the caller keeps those */
		assert_true(fcntl(pins_fd(p, i), F_GETFD) & FD_CLOEXEC);
	}
	assert_int_equal(pins_meta(p)->magic, IBS_PIN_MAGIC);
	assert_int_equal(pins_meta(p)->schema, IBS_PIN_SCHEMA);
	assert_int_equal(pins_meta(p)->pid, getpid());
	assert_int_equal(pins_meta(p)->starts, 1);
	assert_int_equal(pins_meta(p)->seq, 0);
	assert_memory_equal(&pins_meta(p)->layout, &want, sizeof(want));
	assert_in_range(pins_meta(p)->start_realtime_ns, before, clock_ns(CLOCK_REALTIME));
	/* names of as many slots, of which the first has the neighbours */
	pins_names(p)[SLOTS - 1].cgroup_id = 7;
	assert_ptr_equal(pins_neighbours(p), pins_names(p));
	be_gone(p);
}

static void test_names_of_directories(void **state)
{
	char longest[300];
	struct pins *p = NULL;

	(void)state;
	memset(longest, 'x', sizeof(longest));
	memcpy(longest, "/sys/fs/bpf/", 12);
	longest[256] = 0;
	assert_int_equal(pins_open(longest, 0644, &p, &err), -ENAMETOOLONG);
	assert_non_null(strstr(err.text, "longer than 255 characters"));
	longest[255] = 0;
	assert_int_equal(pins_open(longest, 0644, &p, &err), 0);
	pins_remove(p);
	pins_close(p);
	pins_close(NULL);
	rmdir("/tmp/ibscope-unit-pins");
	assert_int_equal(pins_open("/tmp/ibscope-unit-pins", 0644, &p, &err), -ENOTSUP);
	assert_string_equal(err.text, "/tmp/ibscope-unit-pins is not on a bpffs: mount -t bpf bpf "
				      "/sys/fs/bpf");
	assert_int_equal(access("/tmp/ibscope-unit-pins", F_OK), -1);
	snprintf(longest, sizeof(longest), "%s/a/b", dir);
	assert_int_equal(pins_open(longest, 0644, &p, &err), -ENOENT);
	assert_non_null(strstr(err.text, "cannot create"));
	assert_int_equal(pins_open("/nowhere/at/all", 0644, &p, &err), -ENOENT);
}

/* A directory that others could change is refused, and nothing is left of what was made for it. */
static void test_untrusted(void **state)
{
	struct pins *p = NULL;

	(void)state;
	assert_int_equal(mkdir(dir, 0755), 0);
	assert_int_equal(chmod(dir, 0777), 0);
	assert_int_equal(pins_open(dir, 0644, &p, &err), -EPERM);
	assert_non_null(strstr(err.text, "has mode 0777"));
	assert_false(exists("links"));
	assert_int_equal(chmod(dir, 0755), 0);
	assert_int_equal(mkdir(in_dir("links"), 0700), 0);
	assert_int_equal(chown(in_dir("links"), 65534, 65534), 0);
	assert_int_equal(pins_open(dir, 0644, &p, &err), -EPERM);
	assert_non_null(strstr(err.text, "links belongs to uid 65534"));
	assert_true(exists("links"));
	/* the mode of what root has made is set */
	assert_int_equal(chown(in_dir("links"), 0, 0), 0);
	assert_int_equal(chmod(in_dir("links"), 0755), 0);
	p = take_over();
	assert_int_equal(stat_of("links").st_mode & 07777, 0700);
	be_gone(p);
}

/* --- one collector at a time --- */

static void test_locked(void **state)
{
	struct pins *p = start_new(), *second = NULL;
	char text[32];

	(void)state;
	assert_int_equal(pins_open(dir, 0644, &second, &err), -EBUSY);
	snprintf(text, sizeof(text), "as process %d;", (int)getpid());
	assert_non_null(strstr(err.text, text));
	assert_non_null(strstr(err.text, "(--pin-dir)"));
	assert_null(second);
	pins_close(p);
	p = take_over();
	/* nor does a pid that ran once hold it: only its lock does */
	assert_int_equal(adopt(p, &want, &why), 1);
	pins_meta(p)->pid = 1;
	pins_disown(p);
	assert_int_equal(pins_open(dir, 0644, &second, &err), -EBUSY);
	assert_non_null(strstr(err.text, "as process 1;"));
	be_gone(p);
}

/* A child that has inherited the lock keeps it for a while. */
static pid_t hold_on(struct pins *p)
{
	pid_t pid = fork();

	assert_true(pid >= 0);
	if (!pid) {
		usleep(200000);
		_exit(pins_lock_fd(p) < 0);
	}
	pins_close(p);
	return pid;
}

static void set_pid(pid_t pid)
{
	int fd = bpf_obj_get(in_dir("meta"));
	struct ibs_meta *m = map_of(fd, sizeof(*m));

	m->pid = pid;
	munmap(m, pages(sizeof(*m)));
	close(fd);
}

/* A lock without a living collector is waited for, whether or not there is a status. */
static void test_lock_of_a_child(void **state)
{
	const pid_t dead = fork();
	struct pins *p;
	pid_t child;
	double began;
	int status;

	(void)state;
	if (!dead)
		_exit(0);
	assert_int_equal(waitpid(dead, &status, 0), dead);
	for (int with_meta = 0; with_meta < 3; with_meta++) {
		p = with_meta ? start_new() : take_over();
		began = now_s();
		child = hold_on(p);
		if (with_meta == 2) /* a collector that was killed */
			set_pid(dead);
		p = take_over();
		assert_true(now_s() - began > 0.1);
		assert_int_equal(waitpid(child, &status, 0), child);
		assert_int_equal(status, 0);
		be_gone(p);
	}
}

static void test_stopped(void **state)
{
	struct pins *p = start_new();

	(void)state;
	pins_set_stopped(p);
	assert_int_equal(pins_meta(p)->pid, 0);
	/* of another version, the place of the pid is unknown */
	pins_meta(p)->pid = 5;
	pins_meta(p)->schema = IBS_PIN_SCHEMA_BEFORE;
	pins_set_stopped(p);
	assert_int_equal(pins_meta(p)->pid, 0);
	pins_meta(p)->pid = 5;
	pins_meta(p)->schema = IBS_PIN_SCHEMA_BEFORE - 1;
	pins_set_stopped(p);
	assert_int_equal(pins_meta(p)->pid, 5);
	be_gone(p);
}

/* --- resumed --- */

static void test_resumed(void **state)
{
	struct pins *p = start_new();
	__u32 ids[IBS_PIN_N];
	__u64 began, samples;

	(void)state;
	EVERY_NAME(i)
	ids[i] = id_of(pin_names[i]);
	began = pins_meta(p)->start_realtime_ns;
	strcpy(pins_names(p)[2].pod, "web");
	pins_names(p)[2].seq = 4;
	pins_names(p)[0].seq = 3;
	pins_names(p)[SLOTS].seq = 3; /* behind the last one */
	pins_names(p)[3].seq = 7;     /* it was killed while it wrote these */
	pins_meta(p)->seq = 11;
	pins_close(p);
	assert_int_equal(resume(&p, &want), 1);
	assert_string_equal(why, "");
	assert_false(pins_rejected(p, &samples));
	EVERY_NAME(i)
	assert_int_equal(id_of_fd(pins_fd(p, i)), ids[i]);
	assert_int_equal(pins_convert(p, &err), 0);
	make_maps(); /* those of the new program are not needed */
	finish(p, &want);
	EVERY_NAME(i)
	assert_int_equal(id_of(pin_names[i]), ids[i]);
	assert_int_equal(pins_meta(p)->starts, 2);
	assert_int_equal(pins_meta(p)->start_realtime_ns, began);
	assert_int_equal(pins_meta(p)->pid, getpid());
	assert_int_equal(pins_meta(p)->seq, 12);
	assert_int_equal(pins_names(p)[2].seq, 4);
	assert_int_equal(pins_names(p)[0].seq, 4);
	assert_int_equal(pins_names(p)[SLOTS].seq, 3);
	assert_int_equal(pins_names(p)[3].seq, 8);
	assert_string_equal(pins_names(p)[2].pod, "web");
	/* a reload is not another start, unless the counters are new */
	assert_int_equal(adopt(p, &want, &why), 1);
	finish(p, &want);
	assert_int_equal(pins_meta(p)->starts, 2);
	assert_int_equal(adopt(p, &want, &why), 1);
	pins_disown(p);
	EVERY_NAME(i)
	assert_int_equal(pins_fd(p, i), -1);
	assert_null(pins_meta(p));
	finish(p, &want);
	assert_int_equal(pins_meta(p)->starts, 1);
	EVERY_NAME(i)
	assert_int_not_equal(id_of(pin_names[i]), ids[i]);
	/* a collector that has gone says so */
	pins_close(p);
	p = take_over();
	assert_int_equal(adopt(p, &want, &why), 1);
	assert_int_equal(pins_meta(p)->pid, 0);
	be_gone(p);
}

/* --- not resumed --- */

#define VERSION "they are from another version"
#define LABELS	"they have other labels (--by) or another metric (--metric)"
#define SIZE	"they have another size (--max-groups, --max-memory)"
#define MACHINE "they are from another machine or build"

static void count_some(void)
{
	counted->cpu[0].seen = 5;
	counted->cpu[CPUS - 1].seen = 7;
	counted->cpu[CPUS].seen = 1000; /* no CPU has this */
}

/* A collector that wants @l, or another layout than @has, starts from zero; @known: samples that it replaces. */
static void differ(const struct ibs_meta_layout *has, const struct ibs_meta_layout *l,
		   const char *reason, bool known)
{
	struct pins *p = start_new();
	__u32 before = id_of("series");
	__u64 samples;

	count_some();
	pins_meta(p)->layout = *has;
	pins_close(p);
	assert_int_equal(resume(&p, l), 0);
	assert_string_equal(why, reason);
	assert_int_equal(pins_rejected(p, &samples), known);
	assert_int_equal(samples, known ? 12 : 0);
	EVERY_NAME(i)
	assert_int_equal(pins_fd(p, i), -1);
	assert_int_equal(id_of("series"), before); /* until the new ones are there */
	make_maps();
	finish(p, &want);
	assert_int_not_equal(id_of("series"), before);
	assert_int_equal(pins_meta(p)->starts, 1);
	/* the next one has nothing to reject */
	assert_int_equal(adopt(p, &want, &why), 1);
	assert_false(pins_rejected(p, &samples));
	assert_int_equal(samples, 0);
	be_gone(p);
}

#define WANTS(member, value, reason)              \
	({                                        \
		struct ibs_meta_layout l_ = want; \
                                                  \
		l_.member = (value);              \
		differ(&want, &l_, reason, true); \
	})

#define HAS(member, value, reason, known)          \
	({                                         \
		struct ibs_meta_layout l_ = want;  \
                                                   \
		l_.member = (value);               \
		differ(&l_, &want, reason, known); \
	})

static void test_mismatches(void **state)
{
	struct ibs_meta_layout l = want;

	(void)state;
	WANTS(simulated, 1, "only one of old and new samples is simulated");
	WANTS(by, IBS_BY_PID, LABELS);
	WANTS(metric, IBS_METRIC_TAG_TO_RET, LABELS);
	WANTS(max_slots, SLOTS + 1, SIZE);
	WANTS(shards, 2, SIZE);
	WANTS(caps, IBS_CAPS_ZEN4 + 2, MACHINE);
	WANTS(n_cpus, CPUS + 1, MACHINE);
	WANTS(meta_bytes, want.meta_bytes + 8, VERSION);
	WANTS(status_bytes, want.status_bytes + 8, VERSION);
	WANTS(name_bytes, want.name_bytes + 8, VERSION);
	WANTS(outcomes, IBS_OUTCOME_N - 1, VERSION);
	strcpy(l.hierarchy, "memory");
	differ(&want, &l, "they have another cgroup hierarchy (--cgroup-hierarchy)", true);
	/* the number of samples is known if the sizes are those of the maps */
	HAS(meta_bytes, want.meta_bytes + 8, VERSION, false);
	HAS(state_bytes, want.state_bytes + 8, MACHINE, false);
	HAS(n_cpus, 5, MACHINE, false); /* has room for eight */
	HAS(n_cpus, 2, MACHINE, false);
	HAS(caps, 1, MACHINE, true);
}

static void test_schemas(void **state)
{
	static const struct {
		__u32 schema;
		int ret;
	} rows[] = { { IBS_PIN_SCHEMA_BEFORE - 1, 0 },
		     { IBS_PIN_SCHEMA_BEFORE, 1 },
		     { IBS_PIN_SCHEMA, 1 },
		     { IBS_PIN_SCHEMA + 1, 0 } };
	struct pins *p;

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		p = start_new();
		pins_meta(p)->schema = rows[i].schema;
		pins_close(p);
		assert_int_equal(resume(&p, &want), rows[i].ret);
		assert_string_equal(why, rows[i].ret ? "" : VERSION);
		make_maps();
		finish(p, &want);
		assert_int_equal(pins_meta(p)->schema, IBS_PIN_SCHEMA);
		be_gone(p);
	}
}

/* Without one of them, the others are of no use. */
static void test_missing(void **state)
{
	(void)state;
	EVERY_NAME(i)
	{
		const bool known = i != IBS_PIN_META && i != IBS_PIN_STATE;
		struct pins *p = start_new();
		__u64 samples;

		count_some();
		pins_close(p);
		assert_int_equal(unlink(in_dir(pin_names[i])), 0);
		assert_int_equal(resume(&p, &want), 0);
		assert_string_equal(why, "one of them is missing");
		assert_int_equal(pins_rejected(p, &samples), known);
		assert_int_equal(samples, known ? 12 : 0);
		make_maps();
		finish(p, &want);
		EVERY_NAME(k)
		assert_true(exists(pin_names[k]));
		be_gone(p);
	}
}

/* One of them alone. */
static void test_rest(void **state)
{
	(void)state;
	EVERY_NAME(i)
	{
		struct pins *p = start_new();

		pins_meta(p)->schema = 99;
		pins_close(p);
		EVERY_NAME(k)
		if (k != i)
			assert_int_equal(unlink(in_dir(pin_names[k])), 0);
		assert_int_equal(resume(&p, &want), 0);
		assert_string_equal(why, i == IBS_PIN_META ? VERSION : "one of them is missing");
		be_gone(p);
	}
}

static void set_override(bool on)
{
	struct __user_cap_header_struct head = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct caps[2];

	assert_int_equal(syscall(SYS_capget, &head, caps), 0);
	if (on)
		caps[0].effective |= 1u << CAP_DAC_OVERRIDE;
	else
		caps[0].effective &= ~(1u << CAP_DAC_OVERRIDE);
	assert_int_equal(syscall(SYS_capset, &head, caps), 0);
}

/* A mode that lets nobody open a pin is set again. */
static void test_modes(void **state)
{
	(void)state;
	EVERY_NAME(i)
	{
		struct pins *p = start_new();
		const mode_t mode = stat_of(pin_names[i]).st_mode;

		pins_close(p);
		assert_int_equal(chmod(in_dir(pin_names[i]), 0), 0);
		p = take_over();
		listen_to();
		set_override(false);
		assert_int_equal(adopt(p, &want, &why), 1);
		set_override(true);
		was_said("was wrong, and was set again");
		assert_int_equal(stat_of(pin_names[i]).st_mode, mode);
		be_gone(p);
	}
}

/* --- what no collector has pinned --- */

static void pin_at(int fd, const char *name)
{
	assert_int_equal(bpf_obj_pin(fd, in_dir(name)), 0);
	close(fd);
}

static int new_program(void)
{
	static const struct bpf_insn insns[] = {
		{ .code = BPF_ALU64 | BPF_MOV | BPF_K, .dst_reg = BPF_REG_0 },
		{ .code = BPF_JMP | BPF_EXIT },
	};
	int fd = bpf_prog_load(BPF_PROG_TYPE_SOCKET_FILTER, "none", "GPL", insns, 2, NULL);

	assert_true(fd >= 0);
	return fd;
}

/* A map of meta with this first word, in as many bytes. */
static int meta_map(__u32 magic, __u32 bytes)
{
	int fd = new_array(bytes, 1);
	char value[2 * sizeof(struct ibs_meta)] = {};
	__u32 zero = 0;

	memcpy(value, &magic, sizeof(magic));
	assert_int_equal(bpf_map_update_elem(fd, &zero, value, 0), 0);
	return fd;
}

/* It is moved, nothing is resumed, and new counters take its place. */
static void set_aside(const char *name, int fd)
{
	struct pins *p = start_new();
	char moved[64];

	pins_close(p);
	assert_int_equal(unlink(in_dir(name)), 0);
	if (fd >= 0)
		pin_at(fd, name);
	else
		assert_int_equal(mkdir(in_dir(name), 0700), 0);
	assert_int_equal(resume(&p, &want), 0);
	assert_string_equal(why, "one of them is missing");
	snprintf(moved, sizeof(moved), "%s-foreign1", name);
	assert_true(exists(moved));
	assert_false(exists(name));
	EVERY_NAME(i)
	assert_int_equal(pins_fd(p, i), -1);
	assert_null(pins_meta(p));
	make_maps();
	finish(p, &want);
	assert_true(exists(name));
	pins_close(p);
	remove_pins();
}

static void test_foreign(void **state)
{
	const __u32 bytes = sizeof(struct ibs_meta);

	(void)state;
	set_aside("series", new_program());
	set_aside("groups", -1);
	set_aside("meta", new_program());
	set_aside("meta", meta_map(IBS_PIN_MAGIC + 1, bytes));
	set_aside("meta", new_array(2, 1));
	set_aside("meta", new_array((1 << 20) + 8, 1));
	set_aside("meta", bpf_map_create(BPF_MAP_TYPE_HASH, "made", 4, bytes, 1, NULL));
	/* it cannot be mapped */
	set_aside("meta", ({
			  int fd = bpf_map_create(BPF_MAP_TYPE_ARRAY, "made", 4, bytes, 1, NULL);
			  struct ibs_meta m = { .magic = IBS_PIN_MAGIC };
			  __u32 zero = 0;

			  assert_int_equal(bpf_map_update_elem(fd, &zero, &m, 0), 0);
			  fd;
		  }));
	set_aside("names", new_array(want.name_bytes, SLOTS - 1));
	set_aside("names", new_array(want.name_bytes + 8, SLOTS));
	set_aside("names",
		  bpf_map_create(BPF_MAP_TYPE_HASH, "made", 4, want.name_bytes, SLOTS, NULL));
}

/* A meta of another size is another version's, if it begins as all do. */
static void test_other_meta(void **state)
{
	static const __u32 sizes[] = { 4, sizeof(struct ibs_meta) - 8,
				       sizeof(struct ibs_meta) + 8 };
	struct pins *p;
	__u64 samples;

	(void)state;
	for (size_t i = 0; i < sizeof(sizes) / sizeof(*sizes); i++) {
		p = start_new();
		count_some();
		pins_close(p);
		assert_int_equal(unlink(in_dir("meta")), 0);
		pin_at(meta_map(IBS_PIN_MAGIC, sizes[i]), "meta");
		assert_int_equal(resume(&p, &want), 0);
		assert_string_equal(why, VERSION);
		assert_false(pins_rejected(p, &samples)); /* its layout says nothing */
		assert_false(exists("meta-foreign1"));
		be_gone(p);
	}
}

/* Of a larger meta, whose first words are those of this version, the samples are known. */
static void test_larger_meta(void **state)
{
	const __u32 bytes = sizeof(struct ibs_meta) + 8;
	struct pins *p = start_new();
	char value[sizeof(struct ibs_meta) + 8] = {};
	struct ibs_meta m = *pins_meta(p);
	__u32 zero = 0;
	__u64 samples;
	int fd = new_array(bytes, 1);

	(void)state;
	count_some();
	pins_close(p);
	m.schema++;
	m.layout.meta_bytes = bytes;
	memcpy(value, &m, sizeof(m));
	assert_int_equal(bpf_map_update_elem(fd, &zero, value, 0), 0);
	assert_int_equal(unlink(in_dir("meta")), 0);
	pin_at(fd, "meta");
	assert_int_equal(resume(&p, &want), 0);
	assert_string_equal(why, VERSION);
	assert_true(pins_rejected(p, &samples));
	assert_int_equal(samples, 12);
	be_gone(p);
}

static void test_reject(void **state)
{
	struct pins *p = start_new();
	int fd;

	(void)state;
	pins_close(p);
	assert_int_equal(resume(&p, &want), 1);
	assert_int_equal(pins_reject(p, IBS_PIN_SLOTS, &why, &err), 0);
	assert_string_equal(why, "one of them is missing");
	assert_true(exists("slots-foreign1"));
	assert_false(exists("slots"));
	EVERY_NAME(i)
	assert_int_equal(pins_fd(p, i), -1);
	pins_close(p);
	/* a file where the directories should be */
	remove_pins();
	fd = new_array(8, 1);
	assert_int_equal(bpf_obj_pin(fd, dir), 0);
	close(fd);
	p = take_over();
	be_gone(p);
	snprintf(dir, sizeof(dir), "/sys/fs/bpf/ibscope-unit-%d-foreign1", (int)getpid());
	assert_int_equal(unlink(dir), 0);
	name_dir();
	assert_int_equal(mkdir(dir, 0755), 0);
	pin_at(new_array(8, 1), "links");
	p = take_over();
	assert_true(exists("links-foreign1"));
	assert_int_equal(unlink(in_dir("links-foreign1")), 0);
	be_gone(p);
}

static void nothing_to_repair(struct pins *p);

/* --- converted --- */

/* What schema 12 had where schema 13 has room for outcomes is cleared; the counts stay. */
static void test_converted(void **state)
{
	const __u32 outcomes = 20;
	struct pins *p = start_new();

	(void)state;
	for (int cpu = 0; cpu < CPUS; cpu++) {
		for (int o = 0; o < IBS_OUTCOME_ROOM; o++)
			counted->cpu[cpu].outcome[o] = 100 * cpu + o + 1;
		counted->cpu[cpu].lapsed = 1;
		counted->cpu[cpu].shard = 3;
	}
	counted->cpu[CPUS].lapsed = 1; /* no CPU has this */
	counted->control.lease_ns = 9;
	pins_meta(p)->schema = IBS_PIN_SCHEMA_BEFORE;
	pins_meta(p)->layout.outcomes = outcomes;
	pins_meta(p)->lease_ns = 8;
	strcpy(pins_meta(p)->version, "0.9");
	pins_close(p);
	assert_int_equal(resume(&p, &want), 1);
	for (int i = 0; i < 2; i++) { /* again after a crash */
		listen_to();
		assert_int_equal(pins_convert(p, &err), 0);
		was_said("the counters of version 0.9 (schema 12) continue in "
			 "version " IBSCOPE_VERSION " (schema 13)");
		assert_int_equal(pins_meta(p)->lease_ns, 0);
		assert_int_equal(counted->control.lease_ns, 0);
		for (int cpu = 0; cpu < CPUS; cpu++) {
			for (__u32 o = 0; o < IBS_OUTCOME_ROOM; o++)
				assert_int_equal(counted->cpu[cpu].outcome[o],
						 o < outcomes ? 100 * cpu + o + 1 : 0);
			assert_int_equal(counted->cpu[cpu].lapsed, 0);
			assert_int_equal(counted->cpu[cpu].shard, 3);
		}
		/* a collector of that schema can still resume them */
		assert_int_equal(pins_meta(p)->schema, IBS_PIN_SCHEMA_BEFORE);
		assert_int_equal(pins_meta(p)->layout.outcomes, outcomes);
	}
	assert_int_equal(counted->cpu[CPUS].lapsed, 1);
	finish(p, &want);
	assert_int_equal(pins_meta(p)->schema, IBS_PIN_SCHEMA);
	assert_int_equal(pins_meta(p)->layout.outcomes, IBS_OUTCOME_N);
	nothing_to_repair(p);
	/* counters of this schema are as they should be */
	counted->cpu[0].outcome[IBS_OUTCOME_ROOM - 1] = 1;
	counted->cpu[0].lapsed = 1;
	counted->control.lease_ns = 4;
	pins_meta(p)->lease_ns = 5;
	assert_int_equal(adopt(p, &want, &why), 1);
	assert_int_equal(pins_convert(p, &err), 0);
	assert_int_equal(counted->cpu[0].outcome[IBS_OUTCOME_ROOM - 1], 1);
	assert_int_equal(counted->cpu[0].lapsed, 1);
	assert_int_equal(counted->control.lease_ns, 4);
	assert_int_equal(pins_meta(p)->lease_ns, 5);
	be_gone(p);
}

/* --- do they add up? --- */

/* The first pair without a histogram, in a slot. */
static __u64 *plain_pair(__u32 slot)
{
	for (unsigned int pair = 0; pair < IBS_LAYOUT_ENTRIES; pair++)
		if (layout_has(&slot_layout, pair) && !(slot_layout.entry[pair] & IBS_LAYOUT_HIST))
			return series + (size_t)slot * slot_layout.words +
			       (slot_layout.entry[pair] & IBS_LAYOUT_WORD);
	fail_msg("all pairs have histograms");
	return NULL;
}

static void test_balance(void **state)
{
	struct pins *p = start_new();

	(void)state;
	counted->cpu[0].seen = 6;
	counted->cpu[0].outcome[IBS_OUTCOME_AGGREGATED] = 4;
	counted->cpu[0].outcome[IBS_OUTCOME_FILTERED_PID] = 2;
	counted->cpu[2].seen = counted->cpu[2].outcome[IBS_OUTCOME_AGGREGATED] = 3;
	owners[SLOTS - 1].key.cgroup_id = 7;
	owners[SLOTS - 1].used = IBS_SLOT_USED;
	plain_pair(0)[IBS_PAIR_SAMPLES] = 2;
	plain_pair(SLOTS - 1)[IBS_PAIR_SAMPLES] = 5;
	assert_int_equal(pins_balance(p, &want, &err), 0);
	plain_pair(SLOTS - 1)[IBS_PAIR_SAMPLES]++;
	assert_int_equal(pins_balance(p, &want, &err), -EUCLEAN);
	plain_pair(SLOTS - 1)[IBS_PAIR_SAMPLES] -= 2;
	assert_int_equal(pins_balance(p, &want, &err), -EUCLEAN);
	/* a collector was killed while it moved counts: a slot that it has freed still has some */
	plain_pair(1)[IBS_PAIR_SAMPLES] = 1;
	assert_int_equal(pins_balance(p, &want, &err), -EUCLEAN);
	counted->control.fold = 1;
	assert_int_equal(pins_balance(p, &want, &err), 0);
	assert_int_equal(counted->control.fold, 1); /* only looked at */
	assert_int_equal(owners[1].used, IBS_SLOT_FREE);
	plain_pair(1)[IBS_PAIR_SAMPLES] = 2;
	assert_int_equal(pins_balance(p, &want, &err), -EUCLEAN);
	be_gone(p);
}

/* --- repaired --- */

static struct pins_checked check(struct pins *p)
{
	struct pins_checked c;

	if (pins_check(p, &c, &err))
		fail_msg("%s", err.text);
	return c;
}

static void nothing_to_repair(struct pins *p)
{
	struct pins_checked c = check(p);

	assert_int_equal(c.repaired, 0);
	assert_int_equal(c.missing, 0);
	assert_false(c.header);
}

static void test_repaired(void **state)
{
	struct pins *p = start_new();

	(void)state;
	nothing_to_repair(p);
	EVERY_NAME(i)
	{
		const char *name = pin_names[i];
		__u32 id = id_of(name);
		char moved[64];

		/* mode and group that the administrator gave it */
		assert_int_equal(chmod(in_dir(name), 0640), 0);
		assert_int_equal(chown(in_dir(name), 0, 5), 0);
		nothing_to_repair(p);
		for (int by_map = 0; by_map < 2; by_map++) {
			assert_int_equal(unlink(in_dir(name)), 0);
			if (by_map)
				pin_at(new_array(8, 1), name);
			listen_to();
			assert_int_equal(check(p).repaired, 1);
			assert_null(heard("cannot give"));
			was_said("was removed or replaced; the same map is pinned there again");
			assert_int_equal(id_of(name), id);
			assert_int_equal(stat_of(name).st_mode & 07777, 0640);
			assert_int_equal(stat_of(name).st_gid, 5);
			assert_int_equal(stat_of(name).st_uid, 0);
		}
		nothing_to_repair(p);
		snprintf(moved, sizeof(moved), "%s-foreign1", name);
		assert_int_equal(unlink(in_dir(moved)), 0);
	}
	be_gone(p);
}

static void test_repaired_directories(void **state)
{
	struct pins *p = start_new(), *second = NULL;
	struct pins_checked c;
	struct stat before;

	(void)state;
	assert_int_equal(rmdir(in_dir("links")), 0);
	listen_to();
	c = check(p);
	was_said("links was removed or replaced; it was created again");
	assert_int_equal(c.repaired, 1);
	assert_int_equal(c.missing, 0);
	assert_int_equal(stat_of("links").st_mode & 07777, 0700);
	nothing_to_repair(p);
	/* another one of that name has no lock */
	before = stat_of("links");
	assert_int_equal(rename(in_dir("links"), in_dir("old")), 0);
	assert_int_equal(mkdir(in_dir("links"), 0700), 0);
	assert_int_not_equal(stat_of("links").st_ino, before.st_ino);
	assert_int_equal(check(p).repaired, 1);
	nothing_to_repair(p);
	assert_int_equal(pins_open(dir, 0644, &second, &err), -EBUSY);
	assert_int_equal(rmdir(in_dir("old")), 0);
	/* all of it */
	remove_pins();
	c = check(p);
	assert_int_equal(c.repaired, 1 + IBS_PIN_N);
	assert_int_equal(c.missing, 0);
	nothing_to_repair(p);
	assert_int_equal(pins_open(dir, 0644, &second, &err), -EBUSY);
	/* others cannot be repaired */
	remove_pins();
	assert_int_equal(mkdir(dir, 0755), 0);
	assert_int_equal(chown(dir, 65534, 0), 0);
	listen_to();
	assert_int_equal(pins_check(p, &c, &err), -EPERM);
	was_said("");
	assert_int_equal(c.repaired, 0);
	assert_int_equal(c.missing, IBS_PIN_N);
	assert_false(exists("meta"));
	assert_int_equal(chown(dir, 0, 0), 0);
	assert_int_equal(check(p).repaired, 1 + IBS_PIN_N);
	be_gone(p);
}

/* A pin that cannot take its place is missing; the others are repaired. */
static void test_not_repaired(void **state)
{
	struct pins *p = start_new();
	struct pins_checked c;

	(void)state;
	assert_int_equal(chmod(in_dir("series"), 0640), 0);
	assert_int_equal(chown(in_dir("series"), 0, 5), 0);
	nothing_to_repair(p);
	assert_int_equal(unlink(in_dir("series")), 0);
	assert_int_equal(unlink(in_dir("meta")), 0);
	assert_int_equal(mkdir(in_dir("series"), 0700), 0);
	assert_int_equal(mount("none", in_dir("series"), "tmpfs", 0, NULL), 0);
	assert_int_equal(pins_check(p, &c, &err), -EBUSY);
	assert_non_null(strstr(err.text, "series"));
	assert_int_equal(c.repaired, 1);
	assert_int_equal(c.missing, 1);
	assert_int_equal(umount(in_dir("series")), 0);
	c = check(p);
	assert_int_equal(c.repaired, 1);
	assert_int_equal(c.missing, 0);
	assert_int_equal(stat_of("series").st_mode & 07777, 0640);
	assert_int_equal(stat_of("series").st_gid, 5);
	assert_int_equal(rmdir(in_dir("series-foreign1")), 0);
	be_gone(p);
}

#define OVERWRITE(member, value)                                               \
	({                                                                     \
		const typeof(pins_meta(p)->member) was = pins_meta(p)->member; \
		struct pins_checked c;                                         \
                                                                               \
		pins_meta(p)->member = (value);                                \
		c = check(p);                                                  \
		assert_true(c.header);                                         \
		assert_int_equal(c.repaired, 0);                               \
		assert_int_equal(pins_meta(p)->member, was);                   \
		nothing_to_repair(p);                                          \
	})

static void test_repaired_header(void **state)
{
	struct pins *p = start_new();

	(void)state;
	OVERWRITE(magic, 1);
	OVERWRITE(schema, IBS_PIN_SCHEMA_BEFORE);
	OVERWRITE(start_realtime_ns, 3);
	OVERWRITE(pid, 1);
	OVERWRITE(layout.n_cpus, 1);
	OVERWRITE(layout.hierarchy[31], 1);
	pins_meta(p)->seq = 5; /* nobody writes now */
	listen_to();
	assert_true(check(p).header);
	was_said("/meta was overwritten; its layout and texts were written again");
	assert_int_equal(pins_meta(p)->seq, 6);
	nothing_to_repair(p);
	pins_write_begin(&pins_meta(p)->seq);
	assert_int_equal(pins_meta(p)->seq, 7);
	pins_write_end(&pins_meta(p)->seq);
	assert_int_equal(pins_meta(p)->seq, 8);
	be_gone(p);
}

/* --- files --- */

static int take_stdin(void)
{
	int in = fcntl(0, F_DUPFD_CLOEXEC, 3);

	close(0);
	return in;
}

static void give_stdin(int in)
{
	assert_int_equal(fcntl(0, F_GETFD), -1); /* what was opened is closed */
	if (in < 0)
		return;
	assert_int_equal(dup2(in, 0), 0);
	close(in);
}

/* A process without stdin gets 0 as the number of its lock, or of one of the program's maps. */
static void test_without_stdin(void **state)
{
	struct pins *p = start_new();
	int in;

	(void)state;
	pins_close(p);
	in = take_stdin();
	p = take_over();
	assert_int_equal(pins_lock_fd(p), 0);
	pins_close(p);
	give_stdin(in);
	remove_pins();
	p = take_over();
	in = take_stdin();
	finish(p, &want);
	assert_int_equal(pins_fd(p, IBS_PIN_SERIES), 0);
	assert_int_equal(id_of("series"), id_of_fd(maps[IBS_PIN_SERIES]));
	assert_int_equal(unlink(in_dir("series")), 0);
	assert_int_equal(check(p).repaired, 1);
	assert_true(exists("series"));
	pins_disown(p);
	give_stdin(in);
	/* the caller's map is that file */
	in = take_stdin();
	assert_int_equal(dup(maps[IBS_PIN_SLOTS]), 0);
	close(maps[IBS_PIN_SLOTS]);
	maps[IBS_PIN_SLOTS] = 0;
	finish(p, &want);
	assert_true(exists("slots"));
	be_gone(p);
	close(0);
	maps[IBS_PIN_SLOTS] = -1;
	give_stdin(in);
}

/* Let @n more files be open. */
static struct rlimit let_open(int n)
{
	struct rlimit was, few;
	int lowest = open("/dev/null", O_RDONLY | O_CLOEXEC);

	assert_true(lowest >= 0);
	close(lowest);
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &was), 0);
	few = (struct rlimit){ lowest + n, was.rlim_max };
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &few), 0);
	return was;
}

/* What cannot be opened for lack of files is an error: nothing is set aside for it, and nothing replaced. */
static void test_few_files(void **state)
{
	struct pins *p = start_new();
	struct rlimit was;
	__u32 before;
	int ret, n = 0;

	(void)state;
	pins_close(p);
	was = let_open(0);
	ret = pins_open(dir, 0644, &p, &err);
	setrlimit(RLIMIT_NOFILE, &was);
	assert_int_equal(ret, -EMFILE);
	assert_non_null(strstr(err.text, "cannot open"));
	p = take_over();
	before = id_of("series");
	do {
		was = let_open(n);
		ret = pins_adopt(p, &want, &why, &err);
		setrlimit(RLIMIT_NOFILE, &was);
		if (ret != 1) {
			assert_int_equal(ret, -EMFILE);
			assert_non_null(strstr(err.text, "cannot open the pinned map "));
			EVERY_NAME(i)
			assert_int_equal(pins_fd(p, i), -1);
		}
		n++;
	} while (ret != 1);
	assert_in_range(n, IBS_PIN_N, IBS_PIN_N + 2);
	EVERY_NAME(i)
	assert_true(exists(pin_names[i]));
	/* new maps, of which some can be opened */
	make_maps();
	for (n = 0, ret = -1; ret; n++) {
		pins_disown(p);
		was = let_open(n);
		ret = pins_finish(p, &want, maps, &err);
		setrlimit(RLIMIT_NOFILE, &was);
		assert_true(ret == 0 || ret == -EMFILE);
		if (!n)
			assert_string_equal(err.text,
					    "cannot create the map meta: Too many open files");
	}
	assert_in_range(n, IBS_PIN_N, IBS_PIN_N + 2);
	assert_int_not_equal(id_of("series"), before);
	be_gone(p);
}

/* --- links of a collector that was killed --- */

#define PERIOD 1000000

static struct perf_events *events;
static __u32 link_of[2], rest_of[2];

static void note_link(void *ctx, unsigned int cpu, __u32 link, __u32 rest)
{
	(void)ctx;
	link_of[cpu] = link;
	rest_of[cpu] = rest;
}

/* Software clocks with an empty program, linked in the directory. Return: the samples that they had before. */
static __u64 open_links(struct pins *p)
{
	static const unsigned int cpus[] = { 0, 1 };
	const struct perf_event_attr clock = CLOCK_ATTR(PERIOD);
	int prog = sample_cost_empty_program();
	__u64 before;

	assert_true(prog >= 0);
	assert_int_equal(perf_events_open(&clock, cpus, 2, -1, NULL, NULL, &events, &err), 0);
	assert_int_equal(perf_events_attach(events, prog, true, &err), 0);
	close(prog);
	perf_events_pin_links(events, pins_links_dir(p));
	assert_int_equal(perf_events_enable(events, &err), 0);
	assert_true(perf_events_mark(events, note_link, NULL, &before));
	return before;
}

/* What a collector notes for the next one. */
static void mark(__u64 before)
{
	for (int cpu = 0; cpu < 2; cpu++) {
		counted->cpu[cpu].link = link_of[cpu];
		counted->cpu[cpu].link_rest = rest_of[cpu];
	}
	counted->control.pmu_samples = before + 100; /* of events that were closed */
	counted->control.pmu_total = 0;
	counted->control.pmu_marked = IBS_PMU_COUNTS;
}

/* The samples of all links are in the ledger of the next collector; what is not known is not guessed. */
static void test_links(void **state)
{
	const __u64 since = clock_ns(CLOCK_MONOTONIC);
	struct pins *p = start_new();
	struct perf_events_total t;
	__u64 before;

	(void)state;
	assert_false(pins_have_links(p));
	before = open_links(p);
	assert_true(pins_have_links(p));
	usleep(20000);
	perf_events_disable(events); /* as a collector holds the PMU */
	perf_events_read(events, &t);
	assert_true(t.samples >= 38);
	mark(before);
	pins_count_links(p, since);
	assert_int_equal(counted->control.pmu_marked, IBS_PMU_ENDED);
	assert_int_equal(counted->control.pmu_total, t.samples + 100);
	assert_true(pins_have_links(p)); /* only looked at */
	/* part of a period that had begun before is not one more */
	mark(before);
	counted->cpu[1].link_rest += PERIOD;
	pins_count_links(p, since);
	assert_int_equal(counted->control.pmu_total, t.samples + 99);
	/* nobody has noted anything */
	mark(before);
	counted->control.pmu_marked = IBS_PMU_UNKNOWN;
	pins_count_links(p, since);
	assert_int_equal(counted->control.pmu_marked, IBS_PMU_UNKNOWN);
	assert_int_equal(counted->control.pmu_total, 0);
	/* a link that is another one, or is not noted, or counts less than was noted */
	mark(before);
	counted->cpu[1].link = 1u << 31;
	pins_count_links(p, since);
	assert_int_equal(counted->control.pmu_marked, IBS_PMU_UNKNOWN);
	mark(before);
	counted->cpu[1].link = 0;
	pins_count_links(p, since);
	assert_int_equal(counted->control.pmu_marked, IBS_PMU_UNKNOWN);
	mark(before);
	counted->cpu[0].link_rest = ~0u;
	pins_count_links(p, since);
	assert_int_equal(counted->control.pmu_marked, IBS_PMU_UNKNOWN);
	assert_int_equal(counted->control.pmu_total, 0);
	/* they have ended already, and others are of a collector that was killed before it began */
	mark(before);
	counted->control.pmu_marked = IBS_PMU_ENDED;
	counted->control.pmu_total = 55;
	counted->cpu[0].link = counted->cpu[1].link = 1u << 31;
	pins_count_links(p, since);
	assert_int_equal(counted->control.pmu_marked, IBS_PMU_ENDED);
	assert_int_equal(counted->control.pmu_total, 55);
	/* of a state with another size, or none, nothing is known; nor without a status */
	mark(before);
	pins_meta(p)->layout.state_bytes++;
	pins_count_links(p, since);
	pins_meta(p)->layout.state_bytes--;
	pins_meta(p)->layout.n_cpus = 5;
	pins_count_links(p, since);
	pins_meta(p)->layout.n_cpus = CPUS;
	assert_int_equal(counted->control.pmu_marked, IBS_PMU_COUNTS);
	assert_int_equal(rename(in_dir("state"), in_dir("elsewhere")), 0);
	pins_count_links(p, since);
	pin_at(new_program(), "state");
	pins_count_links(p, since);
	assert_int_equal(unlink(in_dir("state")), 0);
	assert_int_equal(rename(in_dir("elsewhere"), in_dir("state")), 0);
	assert_int_equal(rename(in_dir("meta"), in_dir("elsewhere")), 0);
	pins_count_links(p, since);
	assert_int_equal(rename(in_dir("elsewhere"), in_dir("meta")), 0);
	assert_int_equal(counted->control.pmu_marked, IBS_PMU_COUNTS);
	perf_events_close(events);
	be_gone(p);
}

/* Links end with their pins; what else is among them is moved away. */
static void test_links_end(void **state)
{
	struct pins *p = start_new();
	char path[512];
	int fd, again;

	(void)state;
	open_links(p);
	snprintf(path, sizeof(path), "%s/none", pins_links_dir(p));
	fd = new_array(8, 1);
	assert_int_equal(bpf_obj_pin(fd, path), 0);
	close(fd);
	pins_end_links(p);
	assert_false(pins_have_links(p));
	assert_true(exists("none-foreign1"));
	assert_int_equal(unlink(in_dir("none-foreign1")), 0);
	perf_events_close(events);
	/* also by a collector that removes all of it */
	open_links(p);
	fd = open(pins_links_dir(p), O_PATH | O_CLOEXEC);
	pins_remove(p);
	assert_false(exists(""));
	perf_events_close(events); /* they know the directory's name */
	pins_close(p);
	close(fd);
	/* a process without stdin */
	p = start_new();
	open_links(p);
	again = take_stdin();
	pins_end_links(p);
	assert_false(pins_have_links(p));
	give_stdin(again);
	perf_events_close(events);
	be_gone(p);
}

/* A link of the user's stays where a directory is ours to make; in the directory itself none is. */
static void test_symbolic_links(void **state)
{
	struct pins *p = start_new();

	(void)state;
	assert_int_equal(rmdir(in_dir("links")), 0);
	assert_int_equal(symlink("/tmp", in_dir("links")), 0);
	pins_close(p);
	p = take_over();
	assert_true(S_ISDIR(stat_of("links").st_mode));
	assert_int_equal(unlink(in_dir("links-foreign1")), 0);
	be_gone(p);
	assert_int_equal(mkdir("/sys/fs/bpf/ibscope-unit-target", 0755), 0);
	assert_int_equal(symlink("/sys/fs/bpf/ibscope-unit-target", dir), 0);
	p = take_over();
	pins_close(p);
	assert_int_equal(unlink(dir), 0);
	assert_int_equal(rmdir("/sys/fs/bpf/ibscope-unit-target/links"), 0);
	assert_int_equal(rmdir("/sys/fs/bpf/ibscope-unit-target"), 0);
}

/* Where no bpffs is mounted, one is; in a child that has its own mounts. */
static void test_mounted(void **state)
{
	struct pins *p = NULL;
	int status;
	pid_t pid = fork();

	(void)state;
	assert_true(pid >= 0);
	if (!pid) {
		if (unshare(CLONE_NEWNS) || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL))
			_exit(77);
		while (!umount2("/sys/fs/bpf", MNT_DETACH))
			;
		if (pins_open("/run/ibscope-unit", 0644, &p, &err) != -ENOTSUP)
			_exit(1);
		if (mkdir("/sys/fs/bpf/ibscope-unit", 0755) != -1)
			_exit(2);
		listen_to();
		if (pins_open(dir, 0644, &p, &err))
			_exit(3);
		fflush(listening);
		if (!strstr(said, "mounted a bpffs on /sys/fs/bpf"))
			_exit(4);
		_exit(umount2("/sys/fs/bpf", MNT_DETACH) ? 5 : 0);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	if (WEXITSTATUS(status) == 77) {
		print_message("skipped: no mount namespaces here\n");
		skip();
	}
	assert_int_equal(status, 0);
}

#define T(f) cmocka_unit_test_setup_teardown(f, new_dir, no_dir)

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(test_new),
		T(test_names_of_directories),
		T(test_untrusted),
		T(test_locked),
		T(test_lock_of_a_child),
		T(test_stopped),
		T(test_resumed),
		T(test_mismatches),
		T(test_schemas),
		T(test_missing),
		T(test_rest),
		T(test_modes),
		T(test_foreign),
		T(test_other_meta),
		T(test_larger_meta),
		T(test_reject),
		T(test_converted),
		T(test_balance),
		T(test_repaired),
		T(test_repaired_directories),
		T(test_not_repaired),
		T(test_repaired_header),
		T(test_without_stdin),
		T(test_few_files),
		T(test_links),
		T(test_links_end),
		T(test_symbolic_links),
		T(test_mounted),
	};

	if (!can_pin())
		return 77;
	be_quiet();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
