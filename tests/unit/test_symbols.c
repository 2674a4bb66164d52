// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* This program is the object whose symbols are looked for: as it is, and in copies. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <link.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "symbols/symbols.h"

#define TIME 1000

extern volatile int sink;
volatile int sink;

static const int first_line = __LINE__;
__attribute__((noinline)) void symbols_test_target(int n);
void symbols_test_target(int n)
{
	for (int i = 0; i < n; i++)
		sink += i;
}
static const int last_line = __LINE__;

/* With a name of C++. */
__attribute__((noinline)) void symbols_test_other(int n) __asm__("_Z10made_namesi");
void symbols_test_other(int n)
{
	sink -= n;
}

static char dir[] = "/tmp/test_symbols.XXXXXX";
static struct trace_mmap self; /* the map that the target is in */
static struct trace_info here; /* a recording of this machine and boot */
static __u64 target;
static char path[512];

static int find_build_id(struct dl_phdr_info *i, size_t size, void *arg)
{
	(void)size;
	(void)arg;
	for (int p = 0; p < i->dlpi_phnum; p++) {
		const char *at = (const char *)i->dlpi_addr + i->dlpi_phdr[p].p_vaddr;
		const char *end = at + i->dlpi_phdr[p].p_memsz;

		while (i->dlpi_phdr[p].p_type == PT_NOTE && at < end) {
			const ElfW(Nhdr) *h = (const void *)at;
			const char *desc = at + sizeof(*h) + (h->n_namesz + 3) / 4 * 4;

			if (h->n_type == NT_GNU_BUILD_ID && h->n_descsz <= 20) {
				memcpy(self.build_id, desc, h->n_descsz);
				self.build_id_len = h->n_descsz;
			}
			at = desc + (h->n_descsz + 3) / 4 * 4;
		}
	}
	return 1; /* the first is the program */
}

static void find_self(void)
{
	FILE *f = fopen("/proc/self/maps", "r");
	char line[1024];

	target = (uintptr_t)symbols_test_target + 1;
	while (fgets(line, sizeof(line), f)) {
		unsigned long long start, end, pgoff;

		if (sscanf(line, "%llx-%llx %*s %llx %*s %*s %511s", &start, &end, &pgoff, path) <
			    4 ||
		    target < start || target >= end)
			continue;
		self.start = start;
		self.len = end - start;
		self.pgoff = pgoff;
		break;
	}
	fclose(f);
	self.tgid = 1;
	self.path = path;
	dl_iterate_phdr(find_build_id, NULL);
}

static __s64 ns(clockid_t clock)
{
	struct timespec t;

	clock_gettime(clock, &t);
	return t.tv_sec * 1000000000ll + t.tv_nsec;
}

static int setup(void **state)
{
	struct utsname u;

	(void)state;
	uname(&u);
	strcpy(here.host, u.nodename);
	strcpy(here.release, u.release);
	here.realtime_ns = ns(CLOCK_REALTIME);
	here.monotonic_ns = ns(CLOCK_MONOTONIC);
	find_self();
	return mkdtemp(dir) ? 0 : -1;
}

static int teardown(void **state)
{
	char cmd[256];

	(void)state;
	snprintf(cmd, sizeof(cmd), "rm -rf %s", dir);
	return system(cmd);
}

__attribute__((format(printf, 1, 2))) static void shell(const char *fmt, ...)
{
	char cmd[4096];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(cmd, sizeof(cmd), fmt, ap);
	va_end(ap);
	assert_int_equal(system(cmd), 0);
}

struct asked {
	char name[4200], dso[4200], line[4200]; /* "" for NULL */
	char problem[512];
	size_t problems;
};

static void keep_problem(const char *text, void *arg)
{
	struct asked *a = arg;

	snprintf(a->problem, sizeof(a->problem), "%s", text);
}

/* What is known of an address if a map is all that a recording tells. */
static void ask(const struct symbols_opts *opts, const struct trace_mmap *map, __u64 addr,
		bool kernel, struct asked *out)
{
	struct trace_event ev = { .kind = TRACE_MMAP, .mmap = *map };
	struct symbols *s;
	struct symbol sym;
	struct tasks *t;

	memset(out, 0, sizeof(*out));
	t = tasks_new();
	tasks_add(t, &ev);
	assert_int_equal(symbols_new(opts, &s, NULL), 0);
	for (int again = 0; again < 2; again++) { /* the second time it comes from a table */
		symbols_find(s, t, 1, addr, TIME, kernel, true, &sym);
		snprintf(out->name, sizeof(out->name), "%s", sym.name);
		snprintf(out->dso, sizeof(out->dso), "%s", sym.dso ? sym.dso : "");
		snprintf(out->line, sizeof(out->line), "%s", sym.srcline ? sym.srcline : "");
	}
	out->problems = symbols_problems(s, keep_problem, out);
	symbols_free(s);
	tasks_free(t);
}

static const char *name_of(struct symbols *s, const struct tasks *t, __u32 tgid, __u64 addr,
			   __u64 time)
{
	struct symbol sym;

	symbols_find(s, t, tgid, addr, time, false, false, &sym);
	return sym.name;
}

static void assert_target(const struct asked *a, bool line)
{
	const char *file;

	assert_string_equal(a->name, "symbols_test_target");
	assert_int_equal(a->problems, 0);
	if (!line) {
		assert_string_equal(a->line, "");
		return;
	}
	file = strstr(a->line, "test_symbols.c:");
	assert_non_null(file);
	assert_in_range(atoi(strchr(file, ':') + 1), first_line, last_line);
}

static void assert_unnamed(const struct asked *a, const struct trace_mmap *map, const char *why)
{
	char want[4200];

	snprintf(want, sizeof(want), "[%s]", map->path);
	assert_string_equal(a->name, want);
	assert_string_equal(a->dso, map->path);
	assert_string_equal(a->line, "");
	assert_int_equal(a->problems, 1);
	assert_non_null(strstr(a->problem, why));
}

static void test_self(void **state)
{
	const struct symbols_opts opts = { .info = &here };
	struct trace_mmap map = self;
	struct asked a;

	(void)state;
	if (!self.build_id_len) {
		puts("this program has no build-id");
		skip();
	}
	ask(&opts, &map, target, false, &a);
	assert_target(&a, true);
	assert_string_equal(a.dso, path);
	ask(&opts, &map, target - 1, false, &a);
	assert_target(&a, true);
	/* not told, but of this machine */
	map.build_id_len = 0;
	ask(&opts, &map, target, false, &a);
	assert_target(&a, true);
	/* where nothing was mapped */
	ask(&opts, &map, self.start - 1, false, &a);
	assert_string_equal(a.name, "[unknown]");
	assert_string_equal(a.dso, "");
}

/* In .bss, far behind what the file has. */
extern char symbols_test_large[1 << 16];
char symbols_test_large[1 << 16];

/* The first map of this program whose permissions are these, as an event. */
static bool find_map(const char *permissions, struct trace_event *ev)
{
	FILE *f = fopen("/proc/self/maps", "r");
	char line[1024], mode[8], name[512] = "";
	bool found = false;

	*ev = (struct trace_event){ .kind = TRACE_MMAP, .mmap = self };
	while (!found && fgets(line, sizeof(line), f)) {
		unsigned long long start, end, pgoff;

		found = sscanf(line, "%llx-%llx %7s %llx %*s %*s %511s", &start, &end, mode, &pgoff,
			       name) == 5 &&
			!strcmp(mode, permissions) && !strcmp(name, path);
		ev->mmap.start = start;
		ev->mmap.len = end - start;
		ev->mmap.pgoff = pgoff;
		ev->mmap.exec = permissions[2] == 'x';
	}
	fclose(f);
	return found;
}

/* Where only code has maps, they say where variables are; a map of data says nothing of what is beside it. */
static void test_unmapped_data(void **state)
{
	const struct symbols_opts opts = { .info = &here };
	const __u64 at = (uintptr_t)symbols_test_large + 60000;

	(void)state;
	for (int code = 0; code < 2; code++) {
		struct tasks *t = tasks_new();
		struct data_place place;
		struct trace_event ev;
		struct symbols *s;

		assert_int_equal(symbols_new(&opts, &s, NULL), 0);
		assert_true(find_map(code ? "r-xp" : "rw-p", &ev));
		tasks_add(t, &ev);
		symbols_data(s, t, 1, at, TIME, &place);
		assert_string_equal(data_kind_name(place.kind), code ? "variable" : "unmapped");
		if (code) {
			assert_string_equal(place.variable, "symbols_test_large");
			assert_int_equal(place.offset, 60000);
			assert_true(place.has_offset);
		}
		symbols_free(s);
		tasks_free(t);
	}
}

/* A name as people write it, beside that of the linker; or only the latter. */
static void test_demangled(void **state)
{
	const struct symbols_opts opts = { .info = &here },
				  mangled = { .info = &here, .mangled = true };
	struct trace_event ev = { .kind = TRACE_MMAP, .mmap = self };
	const __u64 other = (uintptr_t)symbols_test_other + 1;
	struct tasks *t = tasks_new();
	struct symbol sym;

	(void)state;
	tasks_add(t, &ev);
	for (int as_is = 0; as_is < 2; as_is++) {
		struct symbols *s;

		assert_int_equal(symbols_new(as_is ? &mangled : &opts, &s, NULL), 0);
		for (int again = 0; again < 3; again++) {
			symbols_find(s, t, 1, other + (again == 2), TIME, false, false, &sym);
			assert_string_equal(sym.name, as_is ? "_Z10made_namesi" : "made_names");
			if (as_is)
				assert_null(sym.mangled);
			else
				assert_string_equal(sym.mangled, "_Z10made_namesi");
			symbols_find(s, t, 1, target, TIME, false, false, &sym);
			assert_string_equal(sym.name, "symbols_test_target");
			assert_null(sym.mangled);
		}
		symbols_free(s);
	}
	tasks_free(t);
}

#define NEAR 8192 /* bytes, of which many share a place in the table */

/* The program in processes 1, 2, where something else follows, and 4, where something else is in its second half. */
static void add_maps(struct tasks *t)
{
	struct trace_event ev = { .kind = TRACE_MMAP, .mmap = self };

	tasks_add(t, &ev);
	ev.mmap.tgid = 2; /* elsewhere, and later gone */
	ev.mmap.start = self.start + 0x10000000;
	tasks_add(t, &ev);
	ev.mmap.tgid = 4; /* its second half is not of the file */
	ev.mmap.len = target - self.start;
	tasks_add(t, &ev);
	ev.mmap.start += ev.mmap.len;
	ev.mmap.len = self.len - ev.mmap.len;
	ev.mmap.path = (char *)"//anon";
	ev.mmap.build_id_len = 0;
	tasks_add(t, &ev);
	ev.mmap.tgid = 2;
	ev.mmap.start = self.start + 0x10000000;
	ev.mmap.len = self.len;
	ev.time = 2 * TIME;
	tasks_add(t, &ev);
}

/*
 * Answers come from a table by hash, whose places are shared: by offsets of a file, by processes and by maps. Each
 * address gives the same name as without the table, in whatever order.
 */
static void test_recent(void **state)
{
	const struct symbols_opts opts = { .info = &here };
	struct trace_event ev = { .kind = TRACE_MMAP, .mmap = self };
	struct symbols *s, *fresh;
	struct tasks *t = tasks_new();
	static const char *want[NEAR];
	const __u64 from = target - NEAR / 2;
	size_t names = 0;

	(void)state;
	add_maps(t);
	assert_int_equal(symbols_new(&opts, &s, NULL), 0);
	assert_int_equal(symbols_new(&opts, &fresh, NULL), 0);
	for (size_t i = 0; i < NEAR; i++) {
		struct symbol sym;

		/* with lines of source, the table is not asked */
		symbols_find(fresh, t, 1, from + i, TIME, false, true, &sym);
		want[i] = sym.name;
		names += i && strcmp(want[i], want[i - 1]) != 0;
	}
	assert_true(names > 4);
	for (int turn = 0; turn < 2; turn++)
		for (size_t k = 0; k < NEAR; k++) {
			const size_t i = turn ? k * 4099 % NEAR : k;

			assert_string_equal(name_of(s, t, 1, from + i, TIME), want[i]);
			assert_string_equal(name_of(s, t, 2, from + i + 0x10000000, TIME), want[i]);
		}
	assert_string_equal(name_of(s, t, 2, target + 0x10000000, TIME), "symbols_test_target");
	/* not what is there at another time, in another process, or after the map */
	assert_string_not_equal(name_of(s, t, 2, target + 0x10000000, 3 * TIME),
				"symbols_test_target");
	assert_string_not_equal(name_of(s, t, 2, target, TIME), "symbols_test_target");
	assert_string_not_equal(name_of(s, t, 3, target, TIME), "symbols_test_target");
	assert_string_not_equal(name_of(s, t, 1, target + self.len, TIME), "symbols_test_target");
	assert_string_equal(name_of(s, t, 1, target, TIME), "symbols_test_target");
	for (int i = 16; i >= 0; i--) /* from one map to the next */
		assert_string_equal(name_of(s, t, 4, target + 0x10000000 - i, TIME),
				    i ? want[NEAR / 2 - i] : "[//anon]");
	/* a map that comes later than an answer */
	ev.mmap.path = (char *)"//anon";
	ev.mmap.build_id_len = 0;
	ev.time = TIME - 1;
	tasks_add(t, &ev);
	assert_string_not_equal(name_of(s, t, 1, target, TIME), "symbols_test_target");
	symbols_free(fresh);
	symbols_free(s);
	tasks_free(t);
}

static void test_other_machine(void **state)
{
	struct trace_info info = { .host = "somewhere else" };
	const struct symbols_opts opts = { .info = &info };
	struct trace_mmap map = self;
	struct asked a;

	(void)state;
	/* the build-id says that it is the same */
	ask(&opts, &map, target, false, &a);
	assert_target(&a, true);
	map.build_id_len = 0;
	ask(&opts, &map, target, false, &a);
	assert_unnamed(&a, &map, "no build-id was recorded");
	info.host[0] = 0; /* not told: it may have been any */
	ask(&opts, &map, target, false, &a);
	assert_unnamed(&a, &map, "no build-id was recorded");
}

static void test_wrong_build_id(void **state)
{
	const struct symbols_opts opts = { .info = &here };
	struct trace_mmap map = self;
	struct asked a;

	(void)state;
	map.build_id[3] ^= 1;
	ask(&opts, &map, target, false, &a);
	assert_unnamed(&a, &map, "build-id");
	map = self;
	map.build_id_len--;
	ask(&opts, &map, target, false, &a);
	assert_unnamed(&a, &map, "build-id");
}

/* Two files that followed each other at one path. */
static void test_replaced(void **state)
{
	const struct symbols_opts opts = { .info = &here };
	struct trace_event old = { .kind = TRACE_MMAP, .time = 1, .mmap = self };
	struct trace_event new = { .kind = TRACE_MMAP, .time = 100, .mmap = self };
	struct symbols *s;
	struct symbol sym;
	struct tasks *t;

	(void)state;
	old.mmap.build_id[0] ^= 1;
	t = tasks_new();
	tasks_add(t, &old);
	tasks_add(t, &new);
	assert_int_equal(symbols_new(&opts, &s, NULL), 0);
	symbols_find(s, t, 1, target, 50, false, false, &sym);
	assert_int_equal(sym.name[0], '[');
	symbols_find(s, t, 1, target, 150, false, false, &sym);
	assert_string_equal(sym.name, "symbols_test_target");
	symbols_find(s, t, 1, target, 50, false, false, &sym);
	assert_int_equal(sym.name[0], '[');
	symbols_free(s);
	tasks_free(t);
}

#define CODE 0x7e0000000000ull

static struct symbol find_generated(struct symbols *s, const struct tasks *t, pid_t pid, __u64 addr)
{
	struct symbol sym;

	symbols_find(s, t, pid, addr, TIME, false, true, &sym);
	return sym;
}

static void write_list(const char *list, pid_t pid)
{
	FILE *f = fopen(list, "w");

	assert_non_null(f);
	fprintf(f, "%llx 10 first\n%llx 10 %d\n%llx 10 unmapped\n", CODE, CODE + 0x10, pid,
		CODE - 0x10000);
	assert_int_equal(fclose(f), 0);
}

/* Code of two processes at one address; a list that cannot be used; and none. */
static void test_generated(void **state)
{
	const struct symbols_opts opts = { .info = &here };
	struct trace_event ev = { .kind = TRACE_MMAP,
				  .mmap = { .start = CODE, .len = 0x1000, .path = "//anon" } };
	struct asked a = { .problem = "" };
	struct tasks *t = tasks_new();
	char list[3][64], text[16];
	struct symbol sym;
	struct symbols *s;
	pid_t pid[4];

	(void)state;
	for (int i = 0; i < 4; i++) {
		pid[i] = fork();
		if (!pid[i]) {
			prctl(PR_SET_PDEATHSIG, SIGKILL);
			pause();
			_exit(1);
		}
		ev.mmap.tgid = pid[i];
		tasks_add(t, &ev);
		if (i == 3)
			break;
		snprintf(list[i], sizeof(list[i]), "/tmp/perf-%d.map", pid[i]);
		unlink(list[i]);
		if (i < 2)
			write_list(list[i], pid[i]);
		else
			assert_int_equal(mkfifo(list[i], 0600), 0);
	}
	here.realtime_ns = ns(CLOCK_REALTIME);
	here.monotonic_ns = ns(CLOCK_MONOTONIC);
	assert_int_equal(symbols_new(&opts, &s, NULL), 0);
	for (int i = 0; i < 2; i++) {
		sym = find_generated(s, t, pid[i], CODE + 15);
		assert_string_equal(sym.name, "first");
		assert_string_equal(sym.dso, "//anon");
		snprintf(text, sizeof(text), "%d", pid[i]);
		assert_string_equal(find_generated(s, t, pid[i], CODE + 16).name, text);
		sym = find_generated(s, t, pid[i], CODE + 32);
		assert_string_equal(sym.name, "[//anon]");
		assert_false(sym.no_list);
		sym = find_generated(s, t, pid[i], CODE - 0x10000);
		assert_string_equal(sym.name, "unmapped");
		assert_string_equal(sym.dso, "[generated]");
	}
	for (int i = 2; i < 4; i++) {
		sym = find_generated(s, t, pid[i], CODE);
		assert_string_equal(sym.name, "[//anon]");
		assert_true(sym.no_list);
	}
	assert_int_equal(symbols_problems(s, keep_problem, &a), 1);
	snprintf(a.name, sizeof(a.name), "/tmp/perf-PID.map of process %d: not a regular file",
		 pid[2]);
	assert_string_equal(a.problem, a.name);
	symbols_free(s);
	/* of a process that has exited the list is still there; of another boot it is that of another process */
	for (int i = 0; i < 4; i++) {
		kill(pid[i], SIGKILL);
		waitpid(pid[i], NULL, 0);
	}
	assert_int_equal(symbols_new(&opts, &s, NULL), 0);
	assert_string_equal(find_generated(s, t, pid[0], CODE).name, "first");
	symbols_free(s);
	here.realtime_ns -= 3600000000000ll;
	assert_int_equal(symbols_new(&opts, &s, NULL), 0);
	assert_true(find_generated(s, t, pid[0], CODE).no_list);
	symbols_free(s);
	here.realtime_ns += 3600000000000ll;
	for (int i = 0; i < 3; i++)
		unlink(list[i]);
	tasks_free(t);
}

static void test_not_there(void **state)
{
	static const struct {
		const char *path, *why;
	} files[] = {
		{ "/no/such/file", "No such file" },	{ "/tmp/x (deleted)", "deleted" },
		{ "/memfd:jit (deleted)", "deleted" },	{ "/dev/null", "not a regular file" },
		{ "/proc/self", "not a regular file" }, { "/etc/passwd", "ELF" },
	};
	const struct symbols_opts opts = { .info = &here };
	struct trace_mmap map = self;
	char fifo[128];
	struct asked a;

	(void)state;
	for (size_t i = 0; i < sizeof(files) / sizeof(files[0]); i++) {
		map.path = files[i].path;
		ask(&opts, &map, target, false, &a);
		assert_unnamed(&a, &map, files[i].why);
	}
	/* no writer: opening it would wait */
	snprintf(fifo, sizeof(fifo), "%s/fifo", dir);
	assert_int_equal(mkfifo(fifo, 0600), 0);
	map.path = fifo;
	ask(&opts, &map, target, false, &a);
	assert_unnamed(&a, &map, "not a regular file");
	/* never files, and no news */
	map.path = "//anon";
	ask(&opts, &map, target, false, &a);
	assert_int_equal(a.problems, 0);
	assert_int_equal(a.name[0], '[');
	map.path = "[heap]";
	ask(&opts, &map, target, false, &a);
	assert_int_equal(a.problems, 0);
}

/* The names are in a file of their own, which is found by the build-id. */
static void test_separate_debug_file(void **state)
{
	struct symbols_opts opts = { .info = &here };
	struct trace_mmap map = self;
	char copy[128], hex[41] = "";
	struct asked a;

	(void)state;
	for (unsigned int i = 0; i < self.build_id_len; i++)
		sprintf(hex + 2 * i, "%02x", self.build_id[i]);
	snprintf(copy, sizeof(copy), "%s/stripped", dir);
	shell("cp %s %s && strip %s", path, copy, copy);
	map.path = copy;
	/* a server that does not answer: it is not asked */
	setenv("DEBUGINFOD_URLS", "http://192.0.2.1", 1);
	ask(&opts, &map, target, false, &a);
	assert_string_equal(a.line, "");
	assert_int_equal(a.name[0], '[');
	assert_null(getenv("DEBUGINFOD_URLS"));

	shell("mkdir -p %s/debug/.build-id/%.2s", dir, hex);
	shell("objcopy --only-keep-debug %s %s/debug/.build-id/%.2s/%s.debug", path, dir, hex,
	      hex + 2);
	opts.debug_dir = strcat(strcpy(malloc(256), dir), "/debug");
	ask(&opts, &map, target, false, &a);
	assert_target(&a, true);

	/* the file is gone, but the directory has it by its build-id */
	shell("cp %s %s/debug/.build-id/%.2s/%s", path, dir, hex, hex + 2);
	map.path = "/gone";
	ask(&opts, &map, target, false, &a);
	assert_target(&a, true);
	assert_string_equal(a.dso, "/gone");
	free((char *)opts.debug_dir);
}

/* Was what @watch looks at opened? An O_PATH descriptor does not count: it has no effect on a device. */
static bool was_opened(int watch)
{
	char events[4096];

	return read(watch, events, sizeof(events)) > 0;
}

/* A pipe stands for a device with effects: whatever leads to it, it is not opened. */
static void test_never_opens_a_device(void **state)
{
	struct symbols_opts opts = { .info = &here };
	struct trace_mmap map = self;
	char fifo[128], copy[128], debug_dir[128], hex[41] = "";
	struct symbols *s;
	struct asked a;
	struct err err;
	int watch, fd;

	(void)state;
	for (unsigned int i = 0; i < self.build_id_len; i++)
		sprintf(hex + 2 * i, "%02x", self.build_id[i]);
	snprintf(fifo, sizeof(fifo), "%s/device", dir);
	snprintf(copy, sizeof(copy), "%s/linked", dir);
	snprintf(debug_dir, sizeof(debug_dir), "%s/fifos", dir);
	assert_int_equal(mkfifo(fifo, 0600), 0);
	watch = inotify_init1(IN_NONBLOCK | IN_CLOEXEC);
	assert_true(watch >= 0 && inotify_add_watch(watch, fifo, IN_OPEN) >= 0);
	fd = open(fifo, O_RDONLY | O_NONBLOCK);
	assert_true(was_opened(watch));
	close(fd);

	map.path = fifo;
	ask(&opts, &map, target, false, &a);
	assert_unnamed(&a, &map, "not a regular file");
	/* as a debug link, a shared debug file, an entry of a debug directory */
	map.path = copy;
	shell("cp %s %s && strip %s && echo x > %s/x && objcopy --add-gnu-debuglink=%s/x %s && "
	      "ln -sf device %s/x",
	      path, copy, copy, dir, dir, copy, dir);
	ask(&opts, &map, target, false, &a);
	assert_int_equal(a.name[0], '[');
	shell("printf '%%s\\0%%s' %s aaaaaaaaaaaaaaaaaaaa > %s/alt && "
	      "objcopy --add-section .gnu_debugaltlink=%s/alt %s %s 2>&1",
	      fifo, dir, dir, path, copy);
	ask(&opts, &map, target, false, &a);
	assert_string_equal(a.name, "symbols_test_target");
	shell("strip %s && mkdir -p %s/.build-id/%.2s && ln -s %s %s/.build-id/%.2s/%s.debug && "
	      "ln -s %s %s/.build-id/%.2s/%s",
	      copy, debug_dir, hex, fifo, debug_dir, hex, hex + 2, fifo, debug_dir, hex, hex + 2);
	opts.debug_dir = debug_dir;
	ask(&opts, &map, target, false, &a);
	map.path = "/gone";
	ask(&opts, &map, target, false, &a);
	opts.kallsyms = fifo;
	assert_int_equal(symbols_new(&opts, &s, &err), -EINVAL);
	assert_non_null(strstr(err.text, "not a regular file"));
	assert_false(was_opened(watch));
	close(watch);
}

/* Cut anywhere a file gives no symbols, or some, but no more. */
static void test_damaged(void **state)
{
	const struct symbols_opts opts = { .info = &here };
	struct trace_mmap map = self;
	char copy[128];
	struct asked a;
	struct stat st;
	int fd;

	(void)state;
	snprintf(copy, sizeof(copy), "%s/damaged", dir);
	map.path = copy;
	map.build_id_len = 0;
	assert_int_equal(stat(path, &st), 0);
	for (int i = 0; i < 40; i++) {
		shell("cp %s %s", path, copy);
		assert_int_equal(truncate(copy, i < 8 ? i * 16 : st.st_size / 32 * (i - 8)), 0);
		ask(&opts, &map, target, false, &a);
	}
	srand(1);
	for (int i = 0; i < 40; i++) {
		shell("cp %s %s", path, copy);
		fd = open(copy, O_WRONLY);
		for (int k = 0; k < 20; k++) {
			unsigned char byte = rand();

			/* headers, and anywhere */
			assert_int_equal(
				pwrite(fd, &byte, 1, rand() % (k < 10 ? 1024 : st.st_size)), 1);
		}
		close(fd);
		ask(&opts, &map, target, false, &a);
	}
}

static const struct trace_mmap no_map = { .tgid = 1, .start = 0x1000, .len = 1, .path = "/x" };

static void test_kallsyms_file(void **state)
{
	struct trace_info info = { .host = "somewhere else" };
	struct symbols_opts opts = { .info = &info };
	char file[128];
	struct err err;
	struct symbols *s;
	struct asked a;

	(void)state;
	snprintf(file, sizeof(file), "%s/kallsyms", dir);
	shell("printf 'ffffffff81000000 T _text\\nffffffff81000100 t inner\\n"
	      "ffffffff81000100 T outer\\nffffffff81000180 D data\\nnonsense\\n\\n"
	      "ffffffffc0000000 t mod_fn\\t[mod]\\n' > %s",
	      file);
	opts.kallsyms = file;
	ask(&opts, &no_map, 0xffffffff81000000ull, true, &a);
	assert_string_equal(a.name, "_text");
	assert_string_equal(a.dso, "[kernel]");
	ask(&opts, &no_map, 0xffffffff810001ffull, true, &a);
	assert_string_equal(a.name, "inner");
	ask(&opts, &no_map, 0xffffffffc0000010ull, true, &a);
	assert_string_equal(a.name, "mod_fn");
	assert_string_equal(a.dso, "[mod]");
	ask(&opts, &no_map, 0xffffffff80ffffffull, true, &a);
	assert_string_equal(a.name, "[kernel]");
	ask(&opts, &no_map, 0xffffffffd0000000ull, true, &a); /* far behind the last */
	assert_int_equal(a.name[0], '[');

	shell("printf '0000000000000000 T _text\\n' > %s", file);
	assert_int_equal(symbols_new(&opts, &s, &err), -1);
	assert_non_null(strstr(err.text, "kptr_restrict"));
	opts.kallsyms = "/no/such/file";
	assert_int_equal(symbols_new(&opts, &s, &err), -2);
}

static __u64 kernel_address(const char *name)
{
	FILE *f = fopen("/proc/kallsyms", "r");
	char line[512], is[256];
	unsigned long long addr, found = 0;

	while (f && fgets(line, sizeof(line), f))
		if (sscanf(line, "%llx %*c %255s", &addr, is) == 2 && !strcmp(is, name) && !found)
			found = addr;
	if (f)
		fclose(f);
	return found;
}

/* The list of the running kernel is taken for recordings of it alone. */
static void test_running_kernel(void **state)
{
	const __u64 text = kernel_address("_text"), addr = kernel_address("do_exit");
	struct trace_info info = here;
	const struct symbols_opts opts = { .info = &info };
	struct trace_mmap map = { .kernel = true,
				  .start = text,
				  .len = 0x40000000,
				  .pgoff = text,
				  .path = "[kernel.kallsyms]_text" };
	unsigned char notes[4096];
	struct asked a;
	size_t n;
	FILE *f;

	(void)state;
	if (!text || !addr) {
		puts("/proc/kallsyms hides its addresses here");
		skip();
	}
	ask(&opts, &no_map, addr + 1, true, &a);
	assert_string_equal(a.name, "do_exit");
	assert_int_equal(a.problems, 0);

	info.realtime_ns -= 3600 * 1000000000ull; /* another boot */
	ask(&opts, &no_map, addr + 1, true, &a);
	assert_int_equal(a.name[0], '[');
	assert_non_null(strstr(a.problem, "--kallsyms"));
	info = here;
	strcpy(info.release, "1.2.3");
	ask(&opts, &no_map, addr + 1, true, &a);
	assert_int_equal(a.name[0], '[');
	info = here;
	map.build_id_len = 20;
	ask(&opts, &map, addr + 1, true, &a);
	assert_int_equal(a.name[0], '[');
	assert_non_null(strstr(a.problem, "another kernel"));

	/* the same build at another address */
	f = fopen("/sys/kernel/notes", "r");
	n = f ? fread(notes, 1, sizeof(notes), f) : 0;
	if (f)
		fclose(f);
	for (size_t i = 0; i + 36 <= n; i += 4)
		if (!memcmp(notes + i, "\4\0\0\0\24\0\0\0\3\0\0\0GNU", 16))
			memcpy(map.build_id, notes + i + 16, 20);
	info.realtime_ns -= 3600 * 1000000000ull;
	map.start += 0x2000000;
	map.pgoff += 0x2000000;
	ask(&opts, &map, addr + 1 + 0x2000000, true, &a);
	assert_string_equal(a.name, "do_exit");
	map.path = "[kernel.kallsyms]";
	ask(&opts, &map, addr + 1 + 0x2000000, true, &a);
	assert_int_equal(a.name[0], '[');
	/* ours begin at _text, and have no offset */
	info.format = "ibscope 1";
	map.pgoff = 0;
	ask(&opts, &map, addr + 1 + 0x2000000, true, &a);
	assert_string_equal(a.name, "do_exit");
}

/* The build-id of a module says nothing of the kernel. */
static void test_module_map(void **state)
{
	const __u64 addr = kernel_address("do_exit");
	const struct symbols_opts opts = { .info = &here };
	struct trace_mmap map = { .kernel = true,
				  .start = 0xffffffffc0ff0000ull,
				  .len = 0x1000,
				  .path = "[some_module]",
				  .build_id_len = 20 };
	struct symbol sym;
	struct symbols *s;
	struct tasks *t;

	(void)state;
	if (!addr) {
		puts("/proc/kallsyms hides its addresses here");
		skip();
	}
	t = tasks_new();
	tasks_add(t, &(struct trace_event){ .kind = TRACE_MMAP, .mmap = map });
	assert_int_equal(symbols_new(&opts, &s, NULL), 0);
	symbols_find(s, t, 1, map.start + 1, TIME, true, false, &sym);
	assert_string_equal(sym.dso, "[some_module]");
	symbols_find(s, t, 1, addr + 1, TIME, true, false, &sym);
	assert_string_equal(sym.name, "do_exit");
	symbols_free(s);
	tasks_free(t);
}

static void test_vdso(void **state)
{
	struct trace_info info = here;
	const struct symbols_opts opts = { .info = &info };
	struct trace_mmap map = { .tgid = 1, .start = 0x1000, .len = 0x4000, .path = "[vdso]" };
	bool named = false;
	struct asked a;

	(void)state;
	for (__u64 addr = 0x1000; addr < 0x3000 && !named; addr += 64) {
		ask(&opts, &map, addr, false, &a);
		named = strstr(a.name, "vdso_") || strstr(a.name, "clock_");
	}
	assert_true(named);
	strcpy(info.release, "1.2.3");
	ask(&opts, &map, 0x1800, false, &a);
	assert_int_equal(a.name[0], '[');
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_demangled),
		cmocka_unit_test(test_unmapped_data),
		cmocka_unit_test(test_self),
		cmocka_unit_test(test_recent),
		cmocka_unit_test(test_other_machine),
		cmocka_unit_test(test_wrong_build_id),
		cmocka_unit_test(test_replaced),
		cmocka_unit_test(test_not_there),
		cmocka_unit_test(test_separate_debug_file),
		cmocka_unit_test(test_never_opens_a_device),
		cmocka_unit_test(test_damaged),
		cmocka_unit_test(test_generated),
		cmocka_unit_test(test_kallsyms_file),
		cmocka_unit_test(test_running_kernel),
		cmocka_unit_test(test_module_map),
		cmocka_unit_test(test_vdso),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}
