// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * The web server with pins of a made-up collector: when they count as ready, who may have written them, texts that are too
 * long to keep, and the history. In a mount namespace with a /run of its own.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <poll.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>
#include <jansson.h>

#include "base/array.h"
#include "base/clock.h"
#include "base/std.h"
#include "counts/counts.h"
#include "pins/pinned.h"
#include "pins/pins.h"
#include "status/reading.h"
#include "web/web_server.h"

#include <bpf/bpf.h>
#include <ibscope/caps.h>

#define PRIVATE	  "/run/t"
#define DIR	  PRIVATE "/bpf/pins"
#define NOBODY	  65534
#define FIRST	  1 /* slot of a group; 0 is the rest */
#define SLOTS	  282
#define TIMEOUT_S 30
#define SECOND	  1000000000ull

static struct layout layout;
static struct pins *pins;
static __u64 *series;
static struct ibs_slot_owner *owners;
static struct ibs_state *counted;
static struct err err;

/* --- the collector --- */

static void *make(int *fd, __u32 value, __u32 entries)
{
	LIBBPF_OPTS(bpf_map_create_opts, opts, .map_flags = BPF_F_MMAPABLE);
	const size_t bytes = ((size_t)value * entries + 4095) / 4096 * 4096;
	void *p;

	*fd = bpf_map_create(BPF_MAP_TYPE_ARRAY, "made", 4, value, entries, &opts);
	if (*fd < 0)
		return NULL;
	p = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, *fd, 0);
	return p == MAP_FAILED ? NULL : p;
}

/* Pins without groups. Return: 0, or a negative errno. */
static int begin(void)
{
	struct ibs_meta_layout l = { .n_cpus = 1,
				     .shards = 1,
				     .max_slots = SLOTS,
				     .by = IBS_BY_CGROUP,
				     .metric = IBS_METRIC_DC_MISS_LAT,
				     .caps = IBS_CAPS_ZEN4,
				     .simulated = 1,
				     .outcomes = IBS_OUTCOME_N,
				     .sources = IBS_SRC_N,
				     .ops = IBS_OP_KIND_N,
				     .buckets = IBS_LAT_BUCKETS,
				     .meta_bytes = sizeof(struct ibs_meta),
				     .status_bytes = sizeof(struct ibs_meta_status),
				     .name_bytes = sizeof(struct ibs_slot_name) };
	int maps[IBS_PIN_META], ret;
	const char *why;

	layout_init(&layout, IBS_METRIC_DC_MISS_LAT, IBS_CAPS_ZEN4);
	l.slot_words = layout.words;
	l.state_bytes = sizeof(*counted) + sizeof(*counted->cpu);
	memcpy(l.entry, layout.entry, sizeof(layout.entry));
	for (int pin = 0; pin < IBS_PIN_META; pin++)
		maps[pin] = -1;
	series = make(&maps[IBS_PIN_SERIES], layout.words * 8, SLOTS);
	owners = series ? make(&maps[IBS_PIN_OWNERS], sizeof(*owners), SLOTS) : NULL;
	counted = owners ? make(&maps[IBS_PIN_STATE], l.state_bytes, 1) : NULL;
	if (!counted)
		return err_set(&err, -errno, "no BPF maps: %s", strerror(errno));
	ret = pins_open(DIR, 0644, &pins, &err);
	ret = ret ?: pins_adopt(pins, &l, &why, &err);
	ret = ret < 0 ? ret : pins_finish(pins, &l, maps, &err);
	for (int pin = 0; pin < IBS_PIN_META; pin++)
		if (maps[pin] >= 0)
			close(maps[pin]);
	if (ret)
		return ret;
	strcpy(pins_meta(pins)->version, IBSCOPE_VERSION);
	strcpy(pins_meta(pins)->event, "made");
	strcpy(pins_meta(pins)->source, "sim");
	return 0;
}

/* It was here @ago_s seconds ago. */
static void update(double ago_s)
{
	struct ibs_meta *m = pins_meta(pins);

	pins_write_begin(&m->seq);
	m->status.time_ns = clock_ns(CLOCK_BOOTTIME) - (__u64)(ago_s * 1e9);
	m->status.cpus = 1;
	m->status.enabled_ns += SECOND;
	m->status.running_ns = m->status.enabled_ns;
	pins_write_end(&m->seq);
}

/* Samples of all sources and buckets in the first groups. */
static void count(__u32 groups)
{
	for (__u32 slot = FIRST; slot < FIRST + groups; slot++) {
		__u64 *words = series + (size_t)slot * layout.words;

		owners[slot].key.cgroup_id = 1000 + slot;
		owners[slot].used = IBS_SLOT_USED;
		pins_names(pins)[slot].cgroup_id = 1000 + slot;
		snprintf(pins_names(pins)[slot].container, 64, "container-%03u", slot);
		for (unsigned int pair = 0; pair < IBS_LAYOUT_ENTRIES; pair++) {
			__u64 *w = words + (layout.entry[pair] & IBS_LAYOUT_WORD), n = 0;

			if (!layout_has(&layout, pair))
				continue;
			if (layout.entry[pair] & IBS_LAYOUT_HIST)
				for (int b = 0; b < IBS_LAT_BUCKETS; b++) {
					w[IBS_HIST_BUCKET + b]++;
					w[IBS_HIST_SUM] += ibs_lat_le(b);
					w[IBS_HIST_CYCLES] += ibs_lat_le(b) * 1000;
					n++;
				}
			else
				w[IBS_PAIR_SAMPLES] += n = 1;
			w[IBS_PAIR_OPS] += n * 1000;
			counted->cpu[0].seen += n;
			counted->cpu[0].outcome[IBS_OUTCOME_AGGREGATED] += n;
		}
	}
}

static void stop(void);

static int set_up(void **state)
{
	(void)state;
	if (begin())
		return -1;
	update(0);
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	stop();
	if (pins)
		pins_remove(pins);
	pins_close(pins);
	pins = NULL;
	munmap(series, ((size_t)layout.words * 8 * SLOTS + 4095) / 4096 * 4096);
	munmap(owners, (sizeof(*owners) * SLOTS + 4095) / 4096 * 4096);
	munmap(counted, (sizeof(*counted) + sizeof(*counted->cpu) + 4095) / 4096 * 4096);
	return 0;
}

/* --- ready? --- */

static const struct metrics_opts full = { .detail = METRICS_FULL };
static struct metrics_self self;

static struct web_scrapes *open_scrapes(void)
{
	self = (struct metrics_self){};
	return web_scrapes_open(DIR, &full, &self);
}

/* @why: NULL: it is ready */
static void ready(int want, const char *why)
{
	struct web_scrapes *all = open_scrapes();
	struct err e = { "" };

	assert_int_equal(web_scrapes_ready(all, &e), want);
	assert_string_equal(e.text, why ?: "");
	web_scrapes_close(all);
}

static void test_ready(void **state)
{
	struct ibs_meta *m = pins_meta(pins);

	(void)state;
	ready(0, NULL);
	m->pins_missing = 2;
	ready(-ENOENT, "2 pins are missing: readers and the next collector do not find all "
		       "counters; the log of the collector gives the reason");
	m->pins_missing = 0;
	update(9);
	ready(0, NULL);
	update(11);
	ready(-ESRCH, "the collector is not running; its counters are kept and do not change");
	m->outlives = 1;
	ready(-ESRCH, "the collector was killed, and sampling continues without a governor: start "
		      "it again, or run `ibscope ctl stop`");
	update(0);
	m->pid = 0;
	ready(-ESRCH, "the collector is not running; its counters are kept and do not change");
	pins_remove(pins);
	ready(-ENOENT, "no collector has pinned its maps in " DIR ": start `ibscope serve`");
}

/* A check, too, is for a second. */
static void test_ready_for_a_second(void **state)
{
	struct web_scrapes *all = open_scrapes();
	struct err e = { "" };

	(void)state;
	assert_int_equal(web_scrapes_ready(all, &e), 0);
	pins_meta(pins)->pid = 0;
	assert_int_equal(web_scrapes_ready(all, &e), 0);
	web_scrapes_close(all);
	all = open_scrapes();
	assert_int_equal(web_scrapes_ready(all, &e), -ESRCH);
	pins_meta(pins)->pid = 1;
	assert_int_equal(web_scrapes_ready(all, &e), -ESRCH);
	assert_non_null(strstr(e.text, "is not running"));
	web_scrapes_close(all);
}

/* --- who can open them, and who may have written them --- */

/* Messages of a reading. */
static char *logged;

static struct web_scrape *get(struct web_scrapes *all)
{
	struct web_scrape *s;
	size_t n;
	FILE *f;

	free(logged);
	f = xmemopen(&logged, &n);
	log_to(f);
	s = web_scrape_get(all);
	log_to(NULL);
	xmemclose(f);
	return s;
}

static bool has_groups(struct web_scrape *s)
{
	const struct web_flat *flat = web_scrape_flat(s, METRICS_TEXT, false);

	return memmem(flat->text, flat->n, "container-00", 12) != NULL;
}

/* Without privileges the directory is used that was opened before. */
static void test_dropped(void **state)
{
	struct web_scrapes *all = open_scrapes();
	struct web_scrape *s;
	struct err e = { "" };

	(void)state;
	count(2);
	assert_int_equal(web_scrapes_ready(all, &e), 0);
	assert_return_code(seteuid(NOBODY), errno);
	s = get(all);
	assert_return_code(seteuid(0), errno);
	assert_string_equal(logged, "");
	assert_false(self.failing);
	assert_true(self.mapped);
	assert_true(has_groups(s));
	web_scrape_put(all, s);
	web_scrapes_close(all);
}

static void test_never_opened(void **state)
{
	struct web_scrapes *all = open_scrapes();
	struct web_scrape *s;
	struct err e = { "" };

	(void)state;
	count(2);
	assert_return_code(seteuid(NOBODY), errno);
	assert_int_equal(web_scrapes_ready(all, &e), -EACCES);
	s = get(all);
	assert_return_code(seteuid(0), errno);
	assert_string_equal(e.text,
			    "cannot open " DIR ": Permission denied; let user 0 search the "
			    "directories above it, or start `ibscope serve` first and the exporter "
			    "as root after it");
	assert_non_null(strstr(logged, "cannot open " DIR ": Permission denied"));
	assert_true(self.failing);
	assert_int_equal(self.read_errors, 1);
	assert_false(has_groups(s));
	web_scrape_put(all, s);
	web_scrapes_close(all);
}

/* What a new collector has made cannot be opened; that is known. */
static void test_removed(void **state)
{
	struct web_scrapes *all = open_scrapes();
	struct web_scrape *s;
	struct err e = { "" };

	(void)state;
	assert_int_equal(web_scrapes_ready(all, &e), 0);
	pins_remove(pins);
	assert_return_code(seteuid(NOBODY), errno);
	s = get(all);
	assert_return_code(seteuid(0), errno);
	assert_non_null(strstr(logged, DIR " was removed, and user 0 cannot open a new one: "
					   "restart the exporter"));
	assert_true(self.failing);
	web_scrape_put(all, s);
	web_scrapes_close(all);
}

/* The next reading is a second after this one, or later if it took long: lookups cost more than mapped memory. */
static void test_rests(void **state)
{
	struct web_scrape *s;

	(void)state;
	count(SLOTS - FIRST);
	for (int copies = 0; copies < 2; copies++) {
		struct web_scrapes *all = open_scrapes();
		struct err e = { "" };
		double cpu_s, due_s;

		assert_return_code(chmod(PRIVATE, 0755), errno);
		assert_return_code(seteuid(copies ? NOBODY : 0), errno);
		cpu_s = thread_cpu_s();
		s = web_scrape_get(all);
		due_s = web_scrapes_due_s(all) - now_s();
		cpu_s = thread_cpu_s() - cpu_s;
		assert_return_code(seteuid(0), errno);
		assert_int_equal(web_scrapes_ready(all, &e), 0);
		assert_int_equal(self.mapped, !copies);
		if (!copies)
			assert_true(due_s <= fmax(1, 4 * cpu_s));
		/* fifty times as long as it took, of which most is that of the lookups */
		if (copies && cpu_s > 0.04)
			assert_true(due_s > 20 * cpu_s || due_s > 14);
		web_scrape_put(all, s);
		web_scrapes_close(all);
		assert_return_code(chmod(PRIVATE, 0700), errno);
	}
}

/* Missing pins are no failure. */
static void test_missing(void **state)
{
	struct web_scrapes *all = open_scrapes();
	struct web_scrape *s;

	(void)state;
	pins_remove(pins);
	s = get(all);
	assert_string_equal(logged, "");
	assert_false(self.failing);
	assert_int_equal(self.read_errors, 0);
	assert_int_equal(self.reads, 1);
	web_scrape_put(all, s);
	web_scrapes_close(all);
}

/* Others could have made them: nothing of the directory is used, not even later. */
static void test_untrusted(void **state)
{
	struct web_scrapes *all = open_scrapes();
	struct web_scrape *s;
	struct err e = { "" };

	(void)state;
	count(2);
	assert_return_code(chmod(DIR, 0777), errno);
	assert_int_equal(web_scrapes_ready(all, &e), -EPERM);
	assert_memory_equal(e.text, DIR " has mode 0777", strlen(DIR " has mode 0777"));
	assert_return_code(seteuid(NOBODY), errno);
	s = get(all);
	assert_return_code(seteuid(0), errno);
	assert_non_null(strstr(logged, "cannot open " DIR ": Permission denied"));
	assert_false(has_groups(s));
	web_scrape_put(all, s);
	web_scrapes_close(all);
	/* no other file was closed */
	assert_true(fcntl(STDIN_FILENO, F_GETFD) >= 0);
	assert_return_code(chmod(DIR, 0755), errno);
}

/* --- the server --- */

static struct web *w;
static struct sockaddr_in address;
static char *got;
static size_t got_n;

static void serve(struct web_opts *o)
{
	socklen_t n = sizeof(address);

	strcpy(o->pin_dir, DIR);
	strcpy(o->listen[0], "127.0.0.1:0");
	o->n_listen = 1;
	if (web_listen_all(o, &w, &err))
		fail_msg("%s", err.text);
	assert_int_equal(getsockname(w->sockets[0], (struct sockaddr *)&address, &n), 0);
	if (web_start(w, &err))
		fail_msg("%s", err.text);
}

static void stop(void)
{
	web_close(w);
	w = NULL;
	free(got);
	got = NULL;
}

/* Return: the body. */
static const char *ask(const char *path)
{
	const double end = now_s() + TIMEOUT_S;
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	size_t room = 0;
	char text[256];
	ssize_t more;

	free(got);
	got = NULL;
	got_n = 0;
	assert_int_equal(connect(fd, (struct sockaddr *)&address, sizeof(address)), 0);
	snprintf(text, sizeof(text),
		 "GET %s HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n", path);
	assert_int_equal(send(fd, text, strlen(text), 0), strlen(text));
	do {
		struct pollfd fds[] = { { .fd = web_fd(w), .events = POLLIN },
					{ .fd = fd, .events = POLLIN } };

		poll(fds, 2, web_timeout_ms(w) > 0 ? 10 : 0);
		web_run(w);
		array_reserve(got, room, got_n + (1 << 20));
		more = recv(fd, got + got_n, room - got_n - 1, MSG_DONTWAIT);
		got_n += more > 0 ? more : 0;
	} while ((more > 0 || (more < 0 && errno == EAGAIN)) && now_s() < end);
	close(fd);
	got[got_n] = 0;
	assert_memory_equal(got, "HTTP/1.1 200 ", 13);
	return strstr(got, "\r\n\r\n") + 4;
}

/* A text beyond 8 MiB is made while it is sent, with all of its bytes. */
static void test_stream(void **state)
{
	struct web_opts o = { .metrics.detail = METRICS_FULL };
	struct web_scrape *s;
	const char *body, *length;
	char *want;
	size_t n;
	__u64 reads;
	FILE *f;

	(void)state;
	count(SLOTS - FIRST);
	serve(&o);
	do { /* in one reading */
		s = web_scrape_get(w->scrapes);
		reads = w->self.reads;
		body = ask("/metrics");
		if (reads != w->self.reads)
			web_scrape_put(w->scrapes, s);
	} while (reads != w->self.reads);
	print_message("%zu bytes of %u groups\n", web_scrape_flat(s, METRICS_TEXT, false)->n,
		      SLOTS - FIRST);
	assert_null(web_scrape_flat(s, METRICS_TEXT, false)->text);
	assert_true(web_scrape_flat(s, METRICS_TEXT, false)->big);
	f = xmemopen(&want, &n);
	metrics_print(f, s->metrics, METRICS_TEXT);
	xmemclose(f);
	assert_true(n > 8 << 20);
	length = strstr(got, "\r\nContent-Length: ");
	assert_non_null(length);
	assert_int_equal(strtoull(length + 18, NULL, 10), n);
	assert_int_equal(got_n - (body - got), n);
	assert_memory_equal(body, want, n);
	assert_int_equal(web_scrape_flat(s, METRICS_TEXT, false)->n, n);
	web_scrape_put(w->scrapes, s);
	free(want);
	stop();
}

static json_t *history(const char *path)
{
	json_t *o = json_loads(ask(path), 0, NULL);

	if (!o)
		fail_msg("%s", got);
	return o;
}

static size_t intervals(const char *path)
{
	json_t *o = history(path);
	size_t n = json_array_size(json_object_get(o, "intervals"));

	json_decref(o);
	return n;
}

/* Of intervals that a client has it gets no more; without a valid number it gets all. */
static void test_history(void **state)
{
	struct web_opts o = { .history = { .length_s = 3600, .interval_s = 1 } };
	const double end = now_s() + TIMEOUT_S;
	char path[64];
	json_t *all;

	(void)state;
	count(2);
	serve(&o);
	while (metrics_history_seconds(w->history) < 1.5 && now_s() < end) {
		web_run(w);
		if (web_timeout_ms(w) > 0) {
			usleep(1000 * web_timeout_ms(w));
			count(2);
			update(0);
		}
	}
	all = history("/api/history.json");
	assert_true(json_array_size(json_object_get(all, "intervals")) >= 2);
	json_decref(all);
	assert_true(w->self.history_s >= 1.5);
	assert_true(w->self.history_bytes > 0);
	w->next_history_s = now_s() + 1000; /* no more of them */
	for (int i = 0; i < 3; i++) {
		snprintf(path, sizeof(path), "/api/history.json?after=%s",
			 i == 0	  ? "0"
			 : i == 1 ? "-1"
				  : "x");
		assert_int_equal(intervals(path), intervals("/api/history.json"));
	}
	assert_int_equal(intervals("/api/history.json?after=1"),
			 intervals("/api/history.json") - 1);
	assert_int_equal(intervals("/api/history.json?after=01"),
			 intervals("/api/history.json") - 1);
	stop();
}

/* --- `ctl status` of pins --- */

static void test_reading(void **state)
{
	struct pinned *p;
	struct reading r;

	(void)state;
	count(3);
	assert_int_equal(pinned_open(DIR, &p, &err), 0);
	assert_int_equal(reading_pinned(p, &r, &err), 0);
	assert_int_equal(r.groups, 3);
	assert_int_equal(r.ledger.seen, counted->cpu[0].seen);
	assert_int_equal(ledger_residual(&r.ledger), 0);
	assert_string_equal(r.meta.event, "made");
	assert_int_equal(reading_groups_limit(&r.meta), SLOTS - 2);
	assert_false(r.neighbours.known);
	assert_int_equal(r.strata.used, 0);
	pinned_close(p);
}

static int set_up_machine(void)
{
	int ret;

	if (geteuid() || unshare(CLONE_NEWNS) ||
	    mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) ||
	    mount("run", "/run", "tmpfs", 0, "mode=0755") || mkdir(PRIVATE, 0700) ||
	    mkdir(PRIVATE "/bpf", 0755) || mount("bpf", PRIVATE "/bpf", "bpf", 0, "mode=0755")) {
		printf("skipped: no mount namespace with a bpffs: %s\n", strerror(errno));
		return 77;
	}
	ret = begin();
	if (ret == -EPERM || ret == -EACCES) {
		printf("skipped: %s\n", err.text);
		return 77;
	}
	if (ret) {
		fprintf(stderr, "%s\n", err.text);
		return 1;
	}
	return tear_down(NULL);
}

#define T(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(test_ready),	 T(test_ready_for_a_second),
		T(test_dropped), T(test_never_opened),
		T(test_rests),	 T(test_removed),
		T(test_missing), T(test_untrusted),
		T(test_stream),	 T(test_history),
		T(test_reading),
	};
	int ret = set_up_machine();

	if (ret)
		return ret;
	ret = cmocka_run_group_tests(tests, NULL, NULL);
	free(logged);
	return ret;
}
