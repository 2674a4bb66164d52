// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* The reader's side of a directory of pins: through mappings as root, and by lookups as another user. */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>

#include <cmocka.h>

#include "made_pins.h"
#include "pins/pinned.h"

#define WEB 9 /* id of a cgroup */

static struct pins *collector;

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

/* Five samples of a container in slot 2, of six that were seen. */
static void count_some(void)
{
	struct ibs_slot_name *n = &pins_names(collector)[2];
	struct ibs_meta *m = pins_meta(collector);

	counted->cpu[0].seen = 6;
	counted->cpu[0].outcome[IBS_OUTCOME_AGGREGATED] = 5;
	counted->cpu[0].outcome[IBS_OUTCOME_FILTERED_PID] = 1;
	owners[2].key.cgroup_id = WEB;
	owners[2].used = IBS_SLOT_USED;
	plain_pair(2)[IBS_PAIR_SAMPLES] = 5;
	plain_pair(2)[IBS_PAIR_OPS] = 500;
	n->cgroup_id = WEB;
	strcpy(n->cgroup, "/web");
	strcpy(n->container, "nginx");
	memset(n->pod, 'p', sizeof(n->pod)); /* as a writer of another version may */
	memset(n->name_space, 'n', sizeof(n->name_space));
	m->status.time_ns = 77;
	m->status.cpus = 2;
	m->status.enabled_ns = 1000;
	m->status.running_ns = 400;
	m->status.throttled = 3;
	m->status.cpus_went = 4;
	m->status.cpus_came = 5;
	m->status.pmu_samples = 8;
	m->lease_ns = 12;
	memset(m->version, 'v', sizeof(m->version));
	memset(m->event, 'e', sizeof(m->event));
	memset(m->source, 's', sizeof(m->source));
	memset(m->selection, 'l', sizeof(m->selection));
	memset(m->live, 'i', sizeof(m->live));
	memset(m->control, 'c', sizeof(m->control));
	memset(m->unresolved, 'u', sizeof(m->unresolved));
	memset(m->layout.hierarchy, 0, sizeof(m->layout.hierarchy));
}

static int set_up(void **state)
{
	new_dir(state);
	collector = start_new();
	count_some();
	return 0;
}

static int clean_up(void **state)
{
	pins_close(collector);
	return no_dir(state);
}

/* --- in any process: what is not as it should be is named --- */

static const char *bad_meta(const struct pinned *p)
{
	struct ibs_meta m;

	pinned_meta(p, &m);
	if (m.magic != IBS_PIN_MAGIC || m.starts != 1 || m.status.time_ns != 77)
		return "meta";
	if (strlen(m.version) != 31 || strlen(m.event) != 255 || strlen(m.source) != 15 ||
	    strlen(m.selection) != 1023 || strlen(m.live) != 1023 || strlen(m.control) != 107 ||
	    strlen(m.unresolved) != 495)
		return "a text";
	return m.lease_ns == 12 ? NULL : "the lease";
}

static const char *bad_counts(const struct pinned *p)
{
	struct snapshot snap;
	const char *bad = NULL;

	if (pinned_snapshot(p, &snap, &err))
		return err.text;
	if (snap.time_ns != 77 || snap.ledger.seen != 6 || snap.ledger.pmu_samples != 8 ||
	    snap.ledger.outcome[IBS_OUTCOME_AGGREGATED] != 5)
		bad = "the ledger";
	else if (snap.pmu.cpus != 2 || snap.pmu.enabled_ns != 1000 || snap.pmu.running_ns != 400 ||
		 snap.pmu.extra_ns != 600 || snap.pmu.throttled != 3 || snap.pmu.went != 4 ||
		 snap.pmu.came != 5)
		bad = "the PMU";
	else if (snap.n_groups != 1 || snap.groups[0].key.cgroup_id != WEB ||
		 snap.groups[0].n_series != 1 || snap.groups[0].series[0].samples != 5 ||
		 snap.groups[0].series[0].ops != 500)
		bad = "the groups";
	snapshot_free(&snap);
	return bad;
}

static const char *bad_names(const struct pinned *p)
{
	struct group g = { .slot = 2, .key.cgroup_id = WEB };
	struct ibs_slot_name n;

	pinned_name(p, &g, &n);
	if (strcmp(n.cgroup, "/web") || strcmp(n.container, "nginx") || strlen(n.pod) != 255 ||
	    strlen(n.name_space) != 63)
		return "the name of a group";
	g.key.cgroup_id++; /* the slot had another one */
	pinned_name(p, &g, &n);
	return *n.cgroup || *n.container || *n.pod ? "the name of another group" : NULL;
}

static const char *bad_reader(const struct pinned *p)
{
	return bad_meta(p) ?: bad_counts(p) ?: bad_names(p);
}

static struct pinned *open_reader(void)
{
	struct pinned *p = NULL;

	if (pinned_open(dir, &p, &err))
		fail_msg("%s", err.text);
	return p;
}

static void check(const char *bad)
{
	if (bad)
		fail_msg("%s", bad);
}

static void test_mapped(void **state)
{
	struct pinned *p = open_reader();

	(void)state;
	assert_true(pinned_mapped(p));
	assert_null(pinned_second(p));
	check(bad_reader(p));
	assert_true(pinned_current(p, -1, dir));
	/* what comes later is seen */
	counted->cpu[0].seen = 7;
	counted->cpu[0].outcome[IBS_OUTCOME_AGGREGATED] = 6;
	plain_pair(2)[IBS_PAIR_SAMPLES] = 6;
	assert_string_equal(bad_counts(p), "the ledger");
	pinned_close(p);
	pinned_close(NULL);
}

/* Counts that do not add up are not shown; a writer that died in the middle does not stop readers. */
static void test_inconsistent(void **state)
{
	struct pinned *p = open_reader();
	struct snapshot snap;

	(void)state;
	plain_pair(2)[IBS_PAIR_SAMPLES] = 4;
	assert_int_equal(pinned_snapshot(p, &snap, &err), -EUCLEAN);
	plain_pair(2)[IBS_PAIR_SAMPLES] = 5;
	pins_meta(collector)->seq = 1;
	pins_names(collector)[2].seq = 3;
	check(bad_reader(p));
	pinned_close(p);
}

/* Of the schema before, the place of the lease has a text. */
static void test_schema_before(void **state)
{
	struct pinned *p;
	struct ibs_meta m;

	(void)state;
	pins_meta(collector)->schema = IBS_PIN_SCHEMA_BEFORE;
	pins_meta(collector)->layout.outcomes = 20;
	p = open_reader();
	pinned_meta(p, &m);
	assert_int_equal(m.lease_ns, 0);
	assert_int_equal(pinned_counts(p)->outcomes, 20);
	pinned_close(p);
}

static void test_neighbours(void **state)
{
	struct ibs_neighbours *n = pins_neighbours(collector), got;
	struct pinned *p = open_reader();

	(void)state;
	n->n = 2;
	n->pairs = 9;
	n->pair[0] = (struct ibs_neighbour){ .victim_slot = SLOTS - 1, .suspect_slot = 1 };
	n->pair[1] = (struct ibs_neighbour){ .victim_slot = 1, .suspect_slot = SLOTS - 1 };
	pinned_neighbours(p, &got);
	assert_memory_equal(n, &got, sizeof(got));
	/* slots that do not exist, and more than there is room for */
	n->pair[1].suspect_slot = SLOTS;
	pinned_neighbours(p, &got);
	assert_int_equal(got.n, 0);
	assert_int_equal(got.pairs, 9);
	n->pair[1].suspect_slot = 1;
	n->pair[0].victim_slot = SLOTS;
	pinned_neighbours(p, &got);
	assert_int_equal(got.n, 0);
	n->pair[0].victim_slot = 0;
	n->n = IBS_NEIGHBOURS;
	pinned_neighbours(p, &got);
	assert_int_equal(got.n, IBS_NEIGHBOURS);
	n->n++;
	pinned_neighbours(p, &got);
	assert_int_equal(got.n, 0);
	pinned_close(p);
}

/* --- refused --- */

static void refused(int ret, const char *text)
{
	struct pinned *p = NULL;

	err.text[0] = 0;
	assert_int_equal(pinned_open(dir, &p, &err), ret);
	assert_null(p);
	if (!strstr(err.text, text))
		fail_msg("%s", err.text);
}

static void test_none(void **state)
{
	char text[256];

	(void)state;
	snprintf(text, sizeof(text),
		 "no collector has pinned its maps in %s: start `ibscope serve`", dir);
	assert_int_equal(unlink(in_dir("names")), 0);
	refused(-ENOENT, text);
	remove_pins();
	refused(-ENOENT, text);
	assert_int_equal(mkdir(dir, 0777), 0);
	assert_int_equal(chmod(dir, 0777), 0);
	refused(-EPERM, "has mode 0777");
}

#define MISMATCH "do not match: install the same version of both, and restart the collector"

#define DIFFERS(member, value, text)                                                            \
	({                                                                                      \
		const typeof(pins_meta(collector)->member) was_ = pins_meta(collector)->member; \
                                                                                                \
		pins_meta(collector)->member = (value);                                         \
		refused(-EPROTO, text);                                                         \
		pins_meta(collector)->member = was_;                                            \
	})

static void test_other_versions(void **state)
{
	(void)state;
	strcpy(pins_meta(collector)->version, "1.2");
	DIFFERS(schema, 99, "the collector (version 1.2, schema 99) and this program (");
	DIFFERS(schema, IBS_PIN_SCHEMA_BEFORE - 1, MISMATCH);
	DIFFERS(magic, 5, "the collector (version unknown, schema 0)");
	DIFFERS(layout.outcomes, IBS_OUTCOME_N + 1, MISMATCH);
	DIFFERS(layout.sources, IBS_SRC_N + 1, MISMATCH);
	DIFFERS(layout.ops, IBS_OP_KIND_N + 1, MISMATCH);
	DIFFERS(layout.buckets, IBS_LAT_BUCKETS + 1, MISMATCH);
	DIFFERS(layout.meta_bytes, sizeof(struct ibs_meta) + 1, MISMATCH);
	DIFFERS(layout.status_bytes, sizeof(struct ibs_meta_status) + 1, MISMATCH);
	DIFFERS(layout.name_bytes, sizeof(struct ibs_slot_name) + 1, MISMATCH);
	DIFFERS(layout.max_slots, 1, "the pinned map meta is damaged: ");
	pinned_close(open_reader());
}

static void replace(const char *name, __u32 value, __u32 n)
{
	int fd = new_array(value, n);

	assert_int_equal(unlink(in_dir(name)), 0);
	assert_int_equal(bpf_obj_pin(fd, in_dir(name)), 0);
	close(fd);
}

/* Maps that are smaller than their layout says, or have larger values, of which a lookup would write too much. */
static void test_shapes(void **state)
{
	(void)state;
	replace("meta", sizeof(struct ibs_meta) + 8, 1);
	refused(-EPROTO,
		"the collector's map meta has 1 entries of 4360 bytes, where this program (");
	remove_pins();
	pins_close(collector);
	collector = start_new();
	replace("names", want.name_bytes, SLOTS - 1);
	refused(-EPROTO, "map names has 24 entries of 1040 bytes");
	replace("names", want.name_bytes + 8, SLOTS);
	refused(-EPROTO, "map names has 25 entries of 1048 bytes");
	replace("names", want.name_bytes, SLOTS + 1);
	pinned_close(open_reader());
	replace("state", want.state_bytes + 1024, 1);
	refused(-EPROTO, "map state has");
	replace("state", want.state_bytes, 1);
	replace("series", slot_layout.words * 8, SLOTS - 1);
	refused(-EPROTO, "map series has 24 entries");
	replace("series", slot_layout.words * 8, SLOTS);
	replace("slot_owners", sizeof(*owners) + 8, SLOTS);
	refused(-EPROTO, "map slot_owners has 25 entries of 56 bytes");
	replace("slot_owners", sizeof(*owners), SLOTS);
	pinned_close(open_reader());
}

/* --- two events, and a collector that starts anew --- */

static void test_current(void **state)
{
	struct pinned *p = open_reader(), *two;
	struct pins *second = NULL;
	const char *why;
	char path[128];
	int fd = open(dir, O_PATH | O_DIRECTORY | O_CLOEXEC);

	(void)state;
	assert_true(pinned_current(p, -1, dir));
	assert_true(pinned_current(p, fd, dir));
	/* a second event that has no pins yet */
	snprintf(path, sizeof(path), "%s/" IBS_PIN_SECOND, dir);
	assert_int_equal(mkdir(path, 0755), 0);
	assert_true(pinned_current(p, -1, dir));
	assert_true(pinned_current(p, fd, dir));
	two = open_reader();
	assert_null(pinned_second(two));
	pinned_close(two);
	assert_int_equal(pins_open(path, 0644, &second, &err), 0);
	assert_int_equal(pins_adopt(second, &want, &why, &err), 0);
	finish(second, &want);
	assert_false(pinned_current(p, -1, dir));
	assert_false(pinned_current(p, fd, dir));
	pinned_close(p);
	p = open_reader();
	assert_non_null(pinned_second(p));
	assert_true(pinned_mapped(pinned_second(p)));
	assert_true(pinned_current(p, -1, dir));
	assert_true(pinned_current(p, fd, dir));
	pinned_close(p);
	assert_int_equal(pinned_open_at(fd, dir, &p, &err), 0);
	assert_non_null(pinned_second(p));
	/* the second one is gone, or has started anew */
	pins_disown(second);
	finish(second, &want);
	assert_false(pinned_current(p, fd, dir));
	pinned_close(p);
	p = open_reader();
	pins_remove(second);
	pins_close(second);
	assert_false(pinned_current(p, -1, dir));
	pinned_close(p);
	p = open_reader();
	assert_true(pinned_current(p, -1, dir));
	/* the first one has started anew */
	pins_disown(collector);
	finish(collector, &want);
	assert_false(pinned_current(p, -1, dir));
	assert_false(pinned_current(p, fd, dir));
	check(bad_counts(p)); /* what it has open stays readable */
	pinned_close(p);
	remove_pins();
	p = NULL;
	assert_int_equal(pinned_open_at(fd, dir, &p, &err), -ENOENT);
	close(fd);
}

/* --- another user, who may not write --- */

static const char *as_reader(int fd)
{
	struct ibs_neighbours n;
	struct pinned *p = NULL;
	const char *bad;

	if (pinned_open_at(fd, dir, &p, &err))
		return err.text;
	if (pinned_mapped(p))
		return "it is mapped";
	bad = bad_reader(p);
	pinned_neighbours(p, &n);
	if (!bad && n.pairs != 3)
		bad = "the neighbours";
	/* what comes later is seen: the test's own mapping is the collector's */
	counted->cpu[0].seen = 7;
	counted->cpu[0].outcome[IBS_OUTCOME_AGGREGATED] = 6;
	plain_pair(2)[IBS_PAIR_SAMPLES] = 6;
	if (!bad && strcmp(bad_counts(p) ?: "", "the ledger"))
		bad = "new counts are not seen";
	pins_meta(collector)->status.time_ns = 78;
	if (!bad && strcmp(bad_meta(p) ?: "", "meta"))
		bad = "a new status is not seen";
	if (!bad && !pinned_current(p, fd, dir))
		bad = "it is not current";
	pinned_close(p);
	return bad;
}

/* Return: what the child says. */
static const char *as_nobody(const char *(*f)(int fd))
{
	static char said[512];
	int fd[2], at = open(dir, O_PATH | O_DIRECTORY | O_CLOEXEC), status;
	const char *bad;
	ssize_t n;
	pid_t pid;

	assert_int_equal(pipe(fd), 0);
	pid = fork();
	assert_true(pid >= 0);
	if (!pid) {
		bad = "setresuid";
		if (!setresgid(65534, 65534, 65534) && !setresuid(65534, 65534, 65534) &&
		    !prctl(PR_SET_DUMPABLE, 1)) /* or /proc/self/fd is root's */
			bad = f(at) ?: "";
		_exit(write(fd[1], bad, strlen(bad)) < 0);
	}
	close(at);
	close(fd[1]);
	n = read(fd[0], said, sizeof(said) - 1);
	said[n > 0 ? n : 0] = 0;
	close(fd[0]);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	return said;
}

static void test_lookups(void **state)
{
	const char *said;

	(void)state;
	pins_neighbours(collector)->pairs = 3;
	said = as_nobody(as_reader);
	if (strstr(said, "kernels before 5.19")) {
		print_message("skipped: %s\n", said);
		skip();
	}
	assert_string_equal(said, "");
}

static const char *opens(int fd)
{
	struct pinned *p = NULL;

	return pinned_open_at(fd, dir, &p, &err) == -EACCES ? err.text : "no error";
}

static void test_forbidden(void **state)
{
	const char *said;

	(void)state;
	assert_int_equal(chmod(in_dir("state"), 0600), 0);
	said = as_nobody(opens);
	if (!strstr(said, "cannot open ") ||
	    !strstr(said, "/state: Permission denied; user 65534 needs x on "))
		fail_msg("%s", said);
}

#define T(f) cmocka_unit_test_setup_teardown(f, set_up, clean_up)

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(test_mapped),	 T(test_inconsistent),	 T(test_schema_before), T(test_neighbours),
		T(test_none),	 T(test_other_versions), T(test_shapes),	T(test_current),
		T(test_lookups), T(test_forbidden),
	};

	if (!can_pin())
		return 77;
	be_quiet();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
