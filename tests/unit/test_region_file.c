// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * The file that include/ibscope/region.h makes, without its reader: what both have to agree on although they
 * are built at different times, and what a program is left with if no file can be made.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <ibscope/region.h>

#include "base/std.h"

#include <dirent.h>
#include <errno.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>

static char dir[64];

/* Of the file of this process with this number. */
static const char *path_of(int number)
{
	static char path[128];

	snprintf(path, sizeof(path), "%s/%d.%d", dir, (int)getpid(), number);
	return path;
}

static bool exists(int number)
{
	return !access(path_of(number), F_OK);
}

static int files(void)
{
	DIR *d = opendir(dir);
	int n = 0;

	assert_non_null(d);
	for (struct dirent *e; (e = readdir(d));)
		n += *e->d_name != '.';
	closedir(d);
	return n;
}

/* How often a file is in the memory of this process. */
static int mapped(int number)
{
	FILE *f = fopen("/proc/self/maps", "re");
	char line[512];
	int n = 0;

	assert_non_null(f);
	while (fgets(line, sizeof(line), f))
		n += strstr(line, path_of(number)) != NULL;
	fclose(f);
	return n;
}

static int up(void **state)
{
	(void)state;
	strcpy(dir, "/tmp/region-file.XXXXXX");
	if (!mkdtemp(dir))
		return -1;
	return setenv(IBSCOPE_REGION_DIR, dir, 1);
}

static int down(void **state)
{
	(void)state;
	ibscope_region_forked_();
	unsetenv(IBSCOPE_REGION_DIR);
	for (int i = 0; i <= IBSCOPE_REGION_FILES; i++)
		unlink(path_of(i));
	return rmdir(dir);
}

static struct ibscope_region_file *begin(const char *name)
{
	struct ibscope_region_file *f;

	ibscope_region_begin(name);
	f = ibscope_region_file();
	assert_non_null(f);
	return f;
}

/* A collector reads what a program wrote that was built with another version of the header. */
static void test_check(void **state)
{
	const struct ibscope_region_event zero = {}, e = { .tid = 1234,
							   .time_ns = 123456789012345,
							   .value = 0x7f12345678,
							   .team = 0x89abcdef,
							   .number = 0xfedc,
							   .kind = IBSCOPE_REGION_OMP_BEGIN };

	(void)state;
	assert_int_equal(ibscope_region_check(&e, 0), 0x52d0a1b9);
	assert_int_equal(ibscope_region_check(&e, (1ULL << 40) + 77), 0x97d840d0);
	assert_int_equal(ibscope_region_check(&zero, 0), 0x7e154af9);
}

/* Objects of one program share the table of names, though built with different versions of the header. */
static void test_places(void **state)
{
	static const struct {
		unsigned int at;
		const char *name;
	} want[] = {
		{ 0, "" },
		{ 250, "a" },
		{ 41, "solve" },
		{ 185, "Foo::bar<int>::operator()(double)" },
		{ 251, "0123456789abcdef0123456789abcdef0123456789abcdef0123456789a" },
	};
	struct ibscope_region_file *f = xcalloc(1, sizeof(*f));

	(void)state;
	for (int round = 0; round < 2; round++)
		for (size_t i = 0; i < ARRAY_SIZE(want); i++) {
			char text[2 * IBSCOPE_REGION_TEXT];

			/* what is behind a name makes no difference */
			memset(text, 'x' + round, sizeof(text));
			strcpy(text, want[i].name);
			assert_int_equal(ibscope_region_name_(f, text), want[i].at);
			assert_int_equal(f->name[want[i].at].state, 2);
			assert_string_equal(f->name[want[i].at].text, want[i].name);
		}
	free(f);
}

static void test_longest(void **state)
{
	struct ibscope_region_file *f = xcalloc(1, sizeof(*f));
	char text[IBSCOPE_REGION_TEXT + 20];
	uint64_t at;

	(void)state;
	for (size_t n = IBSCOPE_REGION_TEXT - 2; n < sizeof(text); n++) {
		memset(text, 'n', n);
		text[n] = 0;
		at = ibscope_region_name_(f, text);
		assert_int_equal(f->name[at].text[IBSCOPE_REGION_TEXT - 1], 0);
		assert_int_equal(strlen(f->name[at].text),
				 n < IBSCOPE_REGION_TEXT ? n : IBSCOPE_REGION_TEXT - 1);
		assert_int_equal(f->name[at + 1].state, 0); /* not written beyond the entry */
		if (n >= IBSCOPE_REGION_TEXT)		    /* the same as far as it is kept */
			assert_int_equal(ibscope_region_name_(f, text), at);
	}
	free(f);
}

/* The entry behind, if one is taken or being written, and the first one behind the last. */
static void test_collisions(void **state)
{
	const uint64_t last = IBSCOPE_REGION_NAMES - 2;
	struct ibscope_region_file *f = xcalloc(1, sizeof(*f));

	(void)state;
	f->name[41].state = 2;
	strcpy(f->name[41].text, "solver"); /* not "solve", which it begins with */
	f->name[42].state = 1;
	strcpy(f->name[42].text, "solve");
	assert_int_equal(ibscope_region_name_(f, "solve"), 43);
	assert_int_equal(ibscope_region_name_(f, "solve"), 43);
	for (uint64_t i = 250; i <= last; i++)
		f->name[i].state = 1;
	assert_int_equal(ibscope_region_name_(f, "a"), 0);
	for (uint64_t i = 0; i <= last; i++)
		f->name[i].state = 1;
	f->name[249].state = 0; /* the last one that is looked at */
	assert_int_equal(ibscope_region_name_(f, "a"), 249);
	assert_int_equal(ibscope_region_name_(f, "b"), IBSCOPE_REGION_NAMES - 1);
	assert_int_equal(f->name[IBSCOPE_REGION_NAMES - 1].state, 0);
	free(f);
}

static struct ibscope_region_file *half;
static long page;
static uint32_t state_then;

static void look(int signal)
{
	(void)signal;
	state_then = half->name[63].state;
	if (mprotect((char *)half + page, page, PROT_READ | PROT_WRITE))
		_exit(1);
}

/* An entry is neither free nor complete while its text is copied: here it is stopped in between. */
static void test_being_written(void **state)
{
	const char name[] = "a name that goes on in the second page of the file, 540"; /* at 63 */
	struct sigaction on_fault = { .sa_handler = look }, before;

	(void)state;
	page = sysconf(_SC_PAGESIZE);
	if (page != 4096)
		skip();
	half = mmap(NULL, sizeof(*half), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1,
		    0);
	assert_ptr_not_equal(half, MAP_FAILED);
	assert_true(offsetof(struct ibscope_region_file, name[63].text) < 4096);
	assert_true(offsetof(struct ibscope_region_file, name[63].text[sizeof(name) - 2]) >= 4096);
	assert_int_equal(mprotect((char *)half + page, page, PROT_READ), 0);
	assert_int_equal(sigaction(SIGSEGV, &on_fault, &before), 0);
	state_then = 99;
	assert_int_equal(ibscope_region_name_(half, name), 63);
	assert_int_equal(sigaction(SIGSEGV, &before, NULL), 0);
	assert_int_equal(state_then, 1);
	assert_int_equal(half->name[63].state, 2);
	assert_string_equal(half->name[63].text, name);
	munmap(half, sizeof(*half));
}

static uint64_t now_ns(void)
{
	struct timespec t;

	assert_int_equal(clock_gettime(CLOCK_MONOTONIC, &t), 0);
	return t.tv_sec * 1000000000ull + t.tv_nsec;
}

/* Of an event, all that does not belong to its kind is 0. */
static void test_events(void **state)
{
	const uint64_t before = now_ns();
	const struct ibscope_region_file *f = begin("a");

	(void)state;
	ibscope_region_end();
	assert_in_range(f->event[1].time_ns, f->event[0].time_ns, now_ns());
	assert_true(f->event[0].time_ns >= before);
	assert_true(f->magic == IBSCOPE_REGION_MAGIC);
	assert_int_equal(f->n, 2);
	for (unsigned int i = 0; i < 2; i++) {
		const struct ibscope_region_event *e = &f->event[i];

		assert_int_equal(e->kind, i ? IBSCOPE_REGION_END : IBSCOPE_REGION_BEGIN);
		assert_int_equal(e->value, i ? 0 : 250);
		assert_int_equal(e->team, 0);
		assert_int_equal(e->number, 0);
		assert_int_equal(e->check, ibscope_region_check(e, i));
	}
}

/* Only its user may read it, it is as large as it is mapped, and no descriptor stays open. */
static void test_file(void **state)
{
	const mode_t mask = umask(0);
	const int before = dup(0);
	struct stat st;
	int after;

	(void)state;
	close(before);
	begin("a");
	umask(mask);
	after = dup(0);
	close(after);
	assert_int_equal(before, after);
	assert_int_equal(stat(path_of(0), &st), 0);
	assert_int_equal(st.st_mode & 07777, 0600);
	assert_int_equal(st.st_size, sizeof(struct ibscope_region_file));
	assert_int_equal(mapped(0), 1);
	ibscope_region_forked_();
	assert_int_equal(mapped(0), 0);
	begin("a"); /* as after an exec */
	assert_int_equal(mapped(1), 1);
	assert_int_equal(files(), 2);
}

/* A program that closed its standard input has a file with descriptor 0. */
static void test_descriptor_0(void **state)
{
	const int kept = fcntl(0, F_DUPFD_CLOEXEC, 10);

	(void)state;
	close(0);
	ibscope_region_begin("a");
	if (kept >= 0) {
		dup2(kept, 0);
		close(kept);
	}
	assert_non_null(ibscope_region_file());
	assert_int_equal(mapped(0), 1);
	assert_int_equal(files(), 1);
}

/* Of two threads that open a file at the same time, the second one uses that of the first. */
static void test_two_open(void **state)
{
	struct ibscope_region_file *first = begin("a");

	(void)state;
	assert_ptr_equal(ibscope_region_open_(), first);
	assert_ptr_equal(ibscope_region_file(), first);
	assert_true(exists(1));
	assert_int_equal(mapped(0), 1);
	assert_int_equal(mapped(1), 0);
	ibscope_region_forked_();
	ibscope_region_file_ = IBSCOPE_REGION_NONE;
	assert_null(ibscope_region_open_());
	assert_int_equal(mapped(2), 0);
	assert_null(ibscope_region_file());
}

static void none(int n_files)
{
	ibscope_region_begin("a");
	ibscope_region_end();
	assert_ptr_equal(ibscope_region_file_, IBSCOPE_REGION_NONE);
	assert_int_equal(files(), n_files);
	ibscope_region_forked_();
}

static void test_too_many_files(void **state)
{
	(void)state;
	for (int i = 0; i < IBSCOPE_REGION_FILES; i++) {
		const int fd = open(path_of(i), O_CREAT | O_EXCL | O_WRONLY | O_CLOEXEC, 0600);

		assert_true(fd >= 0);
		close(fd);
	}
	none(IBSCOPE_REGION_FILES);
	assert_int_equal(unlink(path_of(IBSCOPE_REGION_FILES - 1)), 0);
	begin("a");
	assert_int_equal(mapped(IBSCOPE_REGION_FILES - 1), 1);
}

/* The path with its final 0 fits or not, to the byte; a part of it is the path of something else. */
static void test_long_path(void **state)
{
	const size_t name = strlen(path_of(0)) - strlen(dir), room = 4096;
	char *longer = xcalloc(1, room + 64);

	(void)state;
	strcpy(longer, dir);
	memset(longer + strlen(dir), '/', room + 8 - strlen(dir));
	for (size_t n = room + 8; n + name >= room; n--) {
		longer[n] = 0;
		assert_int_equal(setenv(IBSCOPE_REGION_DIR, longer, 1), 0);
		none(0);
	}
	longer[room - 1 - name] = 0;
	assert_int_equal(setenv(IBSCOPE_REGION_DIR, longer, 1), 0);
	begin("a");
	assert_true(exists(0));
	free(longer);
}

/* Without room for all of it, nothing stays behind. */
static void test_no_room(void **state)
{
	struct rlimit before, small;

	(void)state;
	assert_int_equal(getrlimit(RLIMIT_FSIZE, &before), 0);
	small = before;
	small.rlim_cur = sizeof(struct ibscope_region_file) - 1;
	signal(SIGXFSZ, SIG_IGN);
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &small), 0);
	ibscope_region_begin("a");
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &before), 0);
	signal(SIGXFSZ, SIG_DFL);
	assert_ptr_equal(ibscope_region_file_, IBSCOPE_REGION_NONE);
	assert_int_equal(files(), 0);
}

/* A child that begins a region has a file of its own, also if its parent had one. */
static void test_child(void **state)
{
	struct ibscope_region_file *f = begin("parent");
	char path[128];
	pid_t child;
	int status;

	(void)state;
	child = fork();
	if (!child) {
		ibscope_region_begin("child");
		_exit(ibscope_region_file() && exists(0) && mapped(0) == 1 ? 0 : 1);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
	assert_int_equal(f->n, 1);
	assert_ptr_equal(ibscope_region_file(), f);
	snprintf(path, sizeof(path), "%s/%d.0", dir, child);
	assert_int_equal(unlink(path), 0);
}

int main(void)
{
#define TEST(f)	    cmocka_unit_test(f)
#define WITH_DIR(f) cmocka_unit_test_setup_teardown(f, up, down)
	const struct CMUnitTest tests[] = {
		TEST(test_check),	  TEST(test_places),
		TEST(test_longest),	  TEST(test_collisions),
		TEST(test_being_written), WITH_DIR(test_events),
		WITH_DIR(test_file),	  WITH_DIR(test_descriptor_0),
		WITH_DIR(test_two_open),  WITH_DIR(test_too_many_files),
		WITH_DIR(test_long_path), WITH_DIR(test_no_room),
		WITH_DIR(test_child),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
