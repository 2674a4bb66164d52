// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* The process that reads strangers' object files: what it may do, what it costs, and what it says. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <elf.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "naming/code_map.h"
#include "naming/confine.h"
#include "naming/demangle.h"
#include "naming/elf_file.h"
#include "naming/naming.h"
#include "naming/naming_wire.h"

#define BASE 0x400000ull

static char dir[] = "/tmp/test_naming.XXXXXX";

static int setup(void **state)
{
	(void)state;
	return mkdtemp(dir) && !chmod(dir, 0755) ? 0 : -1;
}

static int teardown(void **state)
{
	char cmd[256];

	(void)state;
	snprintf(cmd, sizeof(cmd), "rm -rf %s", dir);
	return system(cmd);
}

static const char *path_of(const char *name)
{
	static char path[4][512];
	static int i;

	i = (i + 1) % 4;
	snprintf(path[i], sizeof(path[i]), "%s/%s", dir, name);
	return path[i];
}

enum { NONE, TEXT, SYMTAB, STRTAB, SECTIONS };

/* A program with one function, "target", at BASE, and a table of @n symbols, most of which are holes in the file. */
static void make_program(const char *path, __u64 n)
{
	static const char names[] = "\0target\0.text\0.symtab\0.strtab";
	const __u64 code = 0x1000, table = 0x2000, end = table + n * sizeof(Elf64_Sym);
	const Elf64_Ehdr head = {
		.e_ident = { 0x7f, 'E', 'L', 'F', ELFCLASS64, ELFDATA2LSB, EV_CURRENT },
		.e_type = ET_EXEC,
		.e_machine = EM_X86_64,
		.e_version = EV_CURRENT,
		.e_phoff = sizeof(head),
		.e_shoff = end + sizeof(names),
		.e_ehsize = sizeof(head),
		.e_phentsize = sizeof(Elf64_Phdr),
		.e_phnum = 1,
		.e_shentsize = sizeof(Elf64_Shdr),
		.e_shnum = SECTIONS,
		.e_shstrndx = STRTAB,
	};
	const Elf64_Phdr load = { PT_LOAD, PF_R | PF_X, code, BASE, BASE, 0x1000, 0x1000, 0x1000 };
	const Elf64_Shdr sections[SECTIONS] = {
		[TEXT] = { 8, SHT_PROGBITS, SHF_ALLOC | SHF_EXECINSTR, BASE, code, 0x1000, 0, 0, 16,
			   0 },
		[SYMTAB] = { 14, SHT_SYMTAB, 0, 0, table, end - table, STRTAB, 1, 8,
			     sizeof(Elf64_Sym) },
		[STRTAB] = { 22, SHT_STRTAB, 0, 0, end, sizeof(names), 0, 0, 1, 0 },
	};
	const Elf64_Sym target = { 1, ELF64_ST_INFO(STB_GLOBAL, STT_FUNC), 0, TEXT, BASE, 16 };
	int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);

	assert_int_equal(pwrite(fd, &head, sizeof(head), 0), sizeof(head));
	assert_int_equal(pwrite(fd, &load, sizeof(load), sizeof(head)), sizeof(load));
	assert_int_equal(pwrite(fd, &target, sizeof(target), table + sizeof(target)),
			 sizeof(target));
	assert_int_equal(pwrite(fd, names, sizeof(names), end), sizeof(names));
	assert_int_equal(pwrite(fd, sections, sizeof(sections), end + sizeof(names)),
			 sizeof(sections));
	close(fd);
}

#define DEAR_SYMBOLS 500000

/* One that takes long to read on any machine: many of its symbols are functions, which are sorted. */
static void make_dear_program(const char *path)
{
	const Elf64_Sym other = {
		1, ELF64_ST_INFO(STB_GLOBAL, STT_FUNC), 0, TEXT, BASE + 0x800, 16
	};
	const size_t bytes = DEAR_SYMBOLS * sizeof(other);
	Elf64_Sym *all = malloc(bytes);
	int fd;

	make_program(path, 1900000);
	fd = open(path, O_WRONLY | O_CLOEXEC);
	for (int i = 0; i < DEAR_SYMBOLS; i++)
		all[i] = other;
	assert_int_equal(pwrite(fd, all, bytes, 0x2000 + 2 * sizeof(other)), bytes);
	close(fd);
	free(all);
}

static struct object *open_at(struct naming *n, const char *path, char why[160])
{
	*why = 0;
	return object_open(n, &(struct object_place){ .path = path, .trusted = true }, why, 160);
}

static struct object *must_open(struct naming *n, const char *path)
{
	char why[160];
	struct object *o = open_at(n, path, why);

	if (!o)
		fail_msg("%s: %s", path, why);
	return o;
}

/* NULL: none is known. */
static const char *symbol_at(struct object *o, __u64 offset)
{
	struct object_name name;

	return object_symbol(o, offset, &name) ? name.name : NULL;
}

/* The child of this process. */
static pid_t worker(void)
{
	FILE *f = fopen("/proc/thread-self/children", "r");
	int pid = 0;

	assert_non_null(f);
	assert_int_equal(fscanf(f, "%d", &pid), 1);
	fclose(f);
	return pid;
}

static void status_of(pid_t pid, const char *key, char *value, size_t size)
{
	char path[64], line[256];
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/status", pid);
	f = fopen(path, "r");
	assert_non_null(f);
	*value = 0;
	while (fgets(line, sizeof(line), f))
		if (!strncmp(line, key, strlen(key)))
			snprintf(value, size, "%s", line + strlen(key));
	value[strcspn(value, "\n")] = 0;
	fclose(f);
}

/* The soft and the hard limit, as the kernel lists them. */
static void limits_of(pid_t pid, const char *name, unsigned long long limit[2])
{
	char path[64], line[256], text[2][24];
	bool found = false;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/limits", pid);
	f = fopen(path, "r");
	assert_non_null(f);
	while (!found && fgets(line, sizeof(line), f))
		found = !strncmp(line, name, strlen(name)) && line[strlen(name)] == ' ' &&
			sscanf(line + strlen(name), "%23s %23s", text[0], text[1]) == 2;
	fclose(f);
	assert_true(found);
	for (int i = 0; i < 2; i++)
		limit[i] = strcmp(text[i], "unlimited") ? strtoull(text[i], NULL, 10) : -1ull;
}

/* A hostile object gets no more than this, nor can it raise it. */
static void check_limits(pid_t pid)
{
	static const struct {
		const char *name;
		unsigned long long most;
	} rows[] = {
#ifndef __SANITIZE_ADDRESS__ /* which reserves terabytes of addresses */
		{ "Max address space", 6ull << 30 },
#endif
		{ "Max cpu time", 600 },
		{ "Max open files", 65536 },
		{ "Max file size", 0 },
		{ "Max processes", 0 },
		{ "Max core file size", 0 },
		{ "Max locked memory", 0 },
		{ "Max msgqueue size", 0 },
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		unsigned long long limit[2];

		limits_of(pid, rows[i].name, limit);
		if (limit[0] > rows[i].most || limit[1] > rows[i].most)
			fail_msg("%s: %llu, at most %llu; not more than %llu expected",
				 rows[i].name, limit[0], limit[1], rows[i].most);
	}
}

static void test_worker_has_nothing(void **state)
{
	struct naming *n = naming_new(&(struct naming_opts){});
	struct object *o;
	char value[256];
	pid_t pid;

	(void)state;
	make_program(path_of("good"), 2);
	o = must_open(n, path_of("good"));
	assert_string_equal(symbol_at(o, 0x1008), "target");
	assert_null(symbol_at(o, 0x1100));
	pid = worker();
	for (const char *const *key =
		     (const char *const[]){ "CapInh:", "CapPrm:", "CapEff:", "CapAmb:", NULL };
	     *key; key++) {
		status_of(pid, *key, value, sizeof(value));
		assert_string_equal(value, "\t0000000000000000");
	}
	status_of(pid, "NoNewPrivs:", value, sizeof(value));
	assert_string_equal(value, "\t1");
	status_of(pid, "Seccomp:", value, sizeof(value));
	assert_string_equal(value, "\t2");
	status_of(pid, "Uid:", value, sizeof(value));
	if (!geteuid())
		assert_true(strtoul(value, NULL, 10) >= 65534);
	check_limits(pid);
	object_close(o);
	naming_free(n);
}

/* --- calls --- */

static void no_open(int signal, siginfo_t *info, void *context)
{
	(void)signal, (void)info, (void)context;
	_exit(7); /* it came here, and did not open anything */
}

static void call_socket(void)
{
	socket(AF_UNIX, SOCK_STREAM, 0);
}

static void call_fork(void)
{
	if (!fork())
		_exit(0);
}

static void call_exec(void)
{
	execl("/bin/true", "true", NULL);
}

static void call_kill(void)
{
	kill(getppid(), 0);
}

static void call_unlink(void)
{
	unlink("/nonexistent");
}

static void call_trace(void)
{
	ptrace(PTRACE_TRACEME, 0, NULL, NULL);
}

static void call_chmod(void)
{
	chmod("/nonexistent", 0);
}

static void call_open(void)
{
	open("/etc/passwd", O_RDONLY);
}

static int status_after(void (*call)(void))
{
	pid_t pid = fork();
	int status;

	if (!pid) {
		if (confine(no_open))
			_exit(1);
		call();
		_exit(0);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	return status;
}

static void test_forbidden_calls(void **state)
{
	void (*const calls[])(void) = { call_socket, call_fork,	 call_exec, call_kill,
					call_unlink, call_trace, call_chmod };

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(calls); i++) {
		int status = status_after(calls[i]);

		assert_true(WIFSIGNALED(status));
		assert_int_equal(WTERMSIG(status), SIGSYS);
	}
	assert_int_equal(WEXITSTATUS(status_after(call_open)), 7);
}

/* --- limits --- */

static void test_too_many_symbols(void **state)
{
	struct naming_memory *memory = naming_memory_new();
	struct naming *n = naming_new(&(struct naming_opts){ .memory = memory });
	struct object *big, *good;
	const char *path, *why;
	__u32 seen = 0;

	(void)state;
	make_program(path_of("big"), 2000001);
	make_program(path_of("good"), 2);
	big = must_open(n, path_of("big"));
	good = must_open(n, path_of("good"));
	assert_null(symbol_at(big, 0x1008));
	assert_non_null(
		strstr(object_problem(big), "it has 2000001 symbols; the limit is 2000000"));
	assert_string_equal(symbol_at(good, 0x1008), "target");
	assert_null(object_problem(good));
	object_close(big);
	assert_true(naming_memory_next(memory, &seen, &path, &why));
	assert_string_equal(path, path_of("big"));
	assert_false(naming_memory_next(memory, &seen, &path, &why));

	/* it is remembered without being read, until it changes */
	big = must_open(n, path_of("big"));
	assert_non_null(strstr(object_problem(big), "symbols"));
	object_close(big);
	make_program(path_of("big"), 2);
	big = must_open(n, path_of("big"));
	assert_string_equal(symbol_at(big, 0x1008), "target");
	object_close(big);
	object_close(good);
	naming_free(n);
	naming_memory_free(memory);
}

/* An answer holds for all of a function, which then costs one question, and for nothing around it. */
static void test_span(void **state)
{
	struct naming *n = naming_new(&(struct naming_opts){});
	struct object *o;

	(void)state;
	make_program(path_of("span"), 2);
	o = must_open(n, path_of("span"));
	assert_string_equal(symbol_at(o, 0x1008), "target");
	naming_end(n); /* no more questions */
	assert_string_equal(symbol_at(o, 0x1000), "target");
	assert_string_equal(symbol_at(o, 0x100f), "target");
	assert_null(symbol_at(o, 0xfff));
	assert_null(symbol_at(o, 0x1010));
	assert_non_null(object_problem(o));
	object_close(o);
	naming_free(n);
}

static __u64 inlined_at(struct elf_file *o, __u64 offset)
{
	struct types_inlined f;

	return elf_file_inlined(o, offset, false, 0, &f) ? f.id : 0;
}

/* A program whose functions have inlined code in the middle; this one may be built without any. */
static void make_inlining_program(const char *path)
{
	static const char call[] =
		"{ int s = n; for (int i = 0; i < n; i++) s += twice(i) ^ once(s); return s; }";
	char command[1024];
	FILE *f;

	snprintf(command, sizeof(command), "cc -O2 -g -x c -o %s -", path);
	f = popen(command, "w");
	assert_non_null(f);
	fprintf(f, "#define IN static inline __attribute__((always_inline)) int\n"
		   "IN once(int n) { return n * 7 + 3; }\n"
		   "IN twice(int n) { return once(n) * once(n + 1); }\n");
	for (int i = 0; i < 20; i++)
		fprintf(f, "__attribute__((noinline)) int f%d(int n) %s\n", i, call);
	fprintf(f, "int main(int n, char **v) { (void)v; return 0");
	for (int i = 0; i < 20; i++)
		fprintf(f, " + f%d(n)", i);
	fprintf(f, "; }\n");
	assert_int_equal(pclose(f), 0);
}

/* Each offset of a span has the name and the inlined function of the first one. */
static void test_span_of_inlined(void **state)
{
	const struct elf_file_opts opts = { .trusted = true };
	struct addr_span span, unused;
	unsigned int inlined = 0, spans = 0;
	__u64 at, id;
	char why[160];
	struct elf_file *o;
	const char *name;
	struct stat st;

	(void)state;
	make_inlining_program(path_of("inlining"));
	assert_int_equal(stat(path_of("inlining"), &st), 0);
	o = elf_file_open(path_of("inlining"), NULL, 0, &opts, why, sizeof(why));
	assert_non_null(o);
	for (at = 0; at < (__u64)st.st_size; at = span.until, spans++) {
		name = elf_file_symbol(o, at, &span);
		id = inlined_at(o, at);
		elf_file_inlined_span(o, at, &span);
		assert_in_range(at, span.from, span.until - 1);
		for (__u64 i = span.from; i < span.until && i < (__u64)st.st_size; i++) {
			assert_ptr_equal(elf_file_symbol(o, i, &unused), name);
			assert_int_equal(inlined_at(o, i), id);
		}
		inlined += id != 0;
	}
	assert_true(spans > 100);
	assert_true(inlined > 10);
	elf_file_close(o);
}

/* --- attempts --- */

static struct object *must_defer(struct naming *n, const char *path)
{
	struct object *o = must_open(n, path);

	assert_true(object_deferred(o));
	assert_null(symbol_at(o, 0x1008));
	return o;
}

/* Nothing is read at a limit of 0; then what takes too long is deferred, and has its name in a longer attempt. */
static void test_attempts(void **state)
{
	struct naming_memory *memory = naming_memory_new();
	struct naming *n = naming_new(&(struct naming_opts){ .cpu_s = 20, .memory = memory });
	struct object *dear, *cheap;
	double cost_s;

	(void)state;
	make_dear_program(path_of("dear"));
	make_program(path_of("cheap"), 2);
	naming_limit_attempt(n, 0);
	dear = must_defer(n, path_of("dear"));
	cheap = must_defer(n, path_of("cheap"));
	assert_int_equal(waitpid(-1, NULL, WNOHANG), -1); /* there is no worker */
	assert_true(object_cost(cheap) < object_cost(dear));
	assert_int_equal(object_owner(cheap), geteuid());

	naming_limit_attempt(n, 0.02);
	object_attempt(dear);
	assert_null(symbol_at(dear, 0x1008));
	assert_true(object_deferred(dear));
	assert_null(object_problem(dear));
	object_rest(dear);
	naming_limit_attempt(n, 10);
	object_attempt(cheap);
	assert_string_equal(symbol_at(cheap, 0x1008) ?: "", "target");
	object_rest(cheap);
	object_attempt(dear);
	assert_string_equal(symbol_at(dear, 0x1008) ?: "", "target");
	object_rest(dear);
	cost_s = object_cost(dear);
	assert_true(cost_s > 0.02 && cost_s < 10);
	object_close(dear);
	object_close(cheap);
	naming_free(n);

	/* the next profile has the name without a worker, and no other */
	n = naming_new(&(struct naming_opts){ .cpu_s = 20, .memory = memory });
	naming_limit_attempt(n, 0);
	dear = must_open(n, path_of("dear"));
	object_attempt(dear);
	assert_string_equal(symbol_at(dear, 0x1008) ?: "", "target");
	assert_false(object_deferred(dear));
	assert_true(object_cost(dear) == cost_s);
	assert_null(symbol_at(dear, 0x1009));
	naming_end(n);
	object_attempt(dear);
	assert_string_equal(symbol_at(dear, 0x1008) ?: "", "target");
	assert_null(symbol_at(dear, 0x1009));
	assert_true(object_lacks_time(dear));
	assert_non_null(object_problem(dear));
	object_close(dear);
	/* it may be another file now */
	make_program(path_of("dear"), 2);
	dear = must_open(n, path_of("dear"));
	assert_null(symbol_at(dear, 0x1008));
	object_close(dear);
	naming_free(n);
	naming_memory_free(memory);
}

static void test_time(void **state)
{
	struct naming *n = naming_new(&(struct naming_opts){ .wall_s = 0.05 });
	struct object *o;

	(void)state;
	make_program(path_of("late"), 2);
	usleep(60000);
	assert_true(naming_is_over(n));
	o = must_open(n, path_of("late"));
	assert_null(symbol_at(o, 0x1008));
	assert_true(object_lacks_time(o));
	assert_non_null(strstr(object_problem(o), "within 0.05 s"));
	object_close(o);
	naming_free(n);

	/* what is cheap has a name even when others took all the time; what is not has none */
	n = naming_new(&(struct naming_opts){ .cpu_s = 0.001 });
	make_program(path_of("dear"), 1900000);
	o = must_open(n, path_of("dear"));
	symbol_at(o, 0x1008);
	assert_true(naming_is_over(n));
	object_close(o);
	o = must_open(n, path_of("late"));
	if (!object_lacks_time(o))
		assert_string_equal(symbol_at(o, 0x1008) ?: "", "target");
	object_close(o);
	naming_free(n);
}

static void test_too_large(void **state)
{
	struct naming *n = naming_new(&(struct naming_opts){});
	char why[160];

	(void)state;
	make_program(path_of("large"), 2);
	assert_int_equal(truncate(path_of("large"), (2l << 30) + 1), 0);
	assert_null(open_at(n, path_of("large"), why));
	assert_non_null(strstr(why, "larger than 2 GiB"));
	naming_free(n);
}

/* Whoever kills the worker loses nothing but time: others read it before, so nobody is blamed at once. */
static void test_worker_is_killed(void **state)
{
	struct naming *n = naming_new(&(struct naming_opts){});
	struct object *a, *b;

	(void)state;
	make_program(path_of("a"), 2);
	make_program(path_of("b"), 2);
	a = must_open(n, path_of("a"));
	b = must_open(n, path_of("b"));
	for (int i = 0; i < 3; i++) {
		assert_string_equal(symbol_at(i % 2 ? a : b, 0x1000 + i), "target");
		assert_int_equal(kill(worker(), SIGKILL), 0);
	}
	assert_null(object_problem(a));
	assert_null(object_problem(b));
	object_close(a);
	object_close(b);
	naming_free(n);
}

/* If it read nothing else, the object is to blame: it is not tried again. */
static void test_worker_dies(void **state)
{
	struct naming *n = naming_new(&(struct naming_opts){});
	struct object *a, *b;

	(void)state;
	make_program(path_of("a"), 2);
	make_program(path_of("b"), 2);
	a = must_open(n, path_of("a"));
	assert_int_equal(kill(worker(), SIGKILL), 0);
	assert_null(symbol_at(a, 0x1000));
	assert_string_equal(object_problem(a), "reading it crashes");
	assert_false(object_lacks_time(a));
	assert_null(symbol_at(a, 0x1001));
	/* others are read */
	b = must_open(n, path_of("b"));
	assert_string_equal(symbol_at(b, 0x1000), "target");
	assert_null(object_problem(b));
	object_close(a);
	object_close(b);
	naming_free(n);
}

static void test_replies(void **state)
{
	const char *texts[NAMING_TEXTS];
	struct naming_reply r = { .kind = NAMING_ANSWER, .len = { 3, 0, 2 }, .text = "ab\0c" };
	const size_t good = NAMING_REPLY_HEAD + 5;

	(void)state;
	assert_true(naming_reply_check(&r, good, texts));
	assert_string_equal(texts[0], "ab");
	assert_null(texts[1]);
	assert_string_equal(texts[2], "c");
	assert_false(naming_reply_check(&r, good - 1, texts));
	assert_false(naming_reply_check(&r, NAMING_REPLY_HEAD - 1, texts));
	assert_false(naming_reply_check(&r, sizeof(r) + 1, texts));
	r.len[0] = 2; /* not at its end */
	assert_false(naming_reply_check(&r, good, texts));
	r.len[0] = 0xffffffff;
	assert_false(naming_reply_check(&r, good, texts));
	r.len[0] = 3;
	r.data_len = 6;
	assert_false(naming_reply_check(&r, good, texts));
}

/* --- containers --- */

/* A process whose root is @root. */
static pid_t contain(const char *root)
{
	int ready[2];
	char byte;
	pid_t pid;

	assert_int_equal(pipe(ready), 0);
	pid = fork();
	if (!pid) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		if (chroot(root) || chdir("/") || write(ready[1], "", 1) != 1)
			_exit(1);
		pause();
		_exit(0);
	}
	close(ready[1]);
	assert_int_equal(read(ready[0], &byte, 1), 1);
	close(ready[0]);
	return pid;
}

static ino_t inode_of(int fd)
{
	struct stat st;

	assert_true(fd >= 0);
	assert_int_equal(fstat(fd, &st), 0);
	close(fd);
	return st.st_ino;
}

static ino_t inode_at(const char *path)
{
	return inode_of(open(path, O_PATH | O_CLOEXEC));
}

static __u64 now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1000000000ull + t.tv_nsec;
}

static void test_container_paths(void **state)
{
	char up[600], host[512], in[512], link[512];
	struct naming_root root, ours;
	pid_t pid;

	(void)state;
	if (geteuid())
		skip(); /* chroot() */
	snprintf(host, sizeof(host), "%s", path_of("host"));
	snprintf(in, sizeof(in), "%s/host", path_of("root"));
	make_program(host, 2);
	assert_int_equal(mkdir(path_of("root"), 0755), 0);
	snprintf(link, sizeof(link), "%s/absolute", path_of("root"));
	assert_int_equal(symlink(host, link), 0);
	snprintf(link, sizeof(link), "%s/relative", path_of("root"));
	snprintf(up, sizeof(up), "../../../../..%s", host);
	assert_int_equal(symlink(up, link), 0);
	snprintf(link, sizeof(link), "%s/magic", path_of("root"));
	assert_int_equal(symlink("/proc/self/exe", link), 0);
	pid = contain(path_of("root"));
	assert_true(file_root(pid, now_ns(), &root));
	assert_true(file_root(getpid(), now_ns(), &ours));
	assert_int_equal(ours.id, 0);
	assert_int_equal(root.pid, pid);
	assert_int_not_equal(root.id, 0);
	/* a process that started later has the number of another */
	assert_false(file_root(pid, 1, &ours));

	assert_int_equal(file_open(&root, "/absolute"), -ENOENT);
	assert_int_equal(file_open(&root, "/relative"), -ENOENT);
	assert_int_equal(file_open(&root, "/magic"), -ENOENT);
	assert_int_equal(file_open(&root, host), -ENOENT);
	snprintf(up, sizeof(up), "/../../..%s", host);
	assert_int_equal(file_open(&root, up), -ENOENT);
	make_program(in, 3);
	assert_int_equal(inode_of(file_open(&root, "/host")), inode_at(in));
	assert_int_equal(inode_of(file_open(&root, "/../host")), inode_at(in));
	assert_int_equal(inode_of(file_open(NULL, host)), inode_at(host));
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	assert_false(file_root(pid, now_ns(), &root));
}

/* The files of a container that has gone are not those of the host. */
static void test_elsewhere(void **state)
{
	struct naming *n = naming_new(&(struct naming_opts){});
	struct object_place place = { .path = path_of("good"), .trusted = true, .elsewhere = true };
	char why[160] = "";

	(void)state;
	make_program(path_of("good"), 2);
	assert_null(object_open(n, &place, why, sizeof(why)));
	assert_string_equal(why, "a container's file whose process has exited");
	naming_free(n);
}

/* --- names --- */

static const char *demangled(const char *name)
{
	static char text[NAMING_TEXT_MAX];

	return demangle(name, text, sizeof(text)) ? text : name;
}

static void test_demangled(void **state)
{
	static const char *const names[][2] = {
		{ "_ZN2ns5Class6methodEi", "ns::Class::method" },
		{ "_ZNK2ns5Class6methodEv", "ns::Class::method" },
		{ "_ZN2ns5tableE", "ns::table" },
		{ "_ZTVN2ns5ClassE", "vtable for ns::Class" },
		{ "_ZNSt6vectorIiSaIiEE9push_backEOi",
		  "std::vector<int, std::allocator<int> >::push_back" },
		{ "_ZZ4mainENKUlvE_clEv", "main::{lambda()#1}::operator()" },
		{ "_ZN12_GLOBAL__N_13fooEv.constprop.0", "(anonymous namespace)::foo" },
		/* Rust, legacy and v0 */
		{ "_ZN4core3fmt5Write9write_fmt17h0123456789abcdefE",
		  "core::fmt::Write::write_fmt" },
		{ "_ZN4core3ptr42drop_in_place$LT$alloc..string..String$GT$17h0123456789abcdefE",
		  "core::ptr::drop_in_place<alloc::string::String>" },
		{ "_RNvCs1234_7mycrate3foo", "mycrate::foo" },
		{ "_RINvNtC3std3mem8align_ofjdE", "std::mem::align_of::<usize, f64>" },
		/* other names, and what only begins like those */
		{ "main", "main" },
		{ "_Rep_base", "_Rep_base" },
		{ "_start", "_start" },
		{ "", "" },
		{ "_", "_" },
		{ "_Z", "_Z" },
		{ "_ZN", "_ZN" },
		{ "_ZN2ns5Clas", "_ZN2ns5Clas" },
		{ "_ZN2ns99999999999999999999Class6methodEi",
		  "_ZN2ns99999999999999999999Class6methodEi" },
		{ "_R", "_R" },
		{ "_RNvC", "_RNvC" },
		{ "_RNvCs1234_7mycrate3fo", "_RNvCs1234_7mycrate3fo" },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		assert_string_equal(demangled(names[i][0]), names[i][1]);
}

/* Each argument of the template is a pair of the one before: 2^@times in all. */
static void make_doubling(char *name, size_t size, int times)
{
	static const char digit[] = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ";
	size_t n = snprintf(name, size, "_Z1fI1AIiiE");

	for (int i = 1; i <= times; i++) {
		char of[8] = { 'S', digit[i % 36], '_' };

		if (i >= 36)
			snprintf(of, sizeof(of), "S%c%c_", digit[i / 36], digit[i % 36]);
		n += snprintf(name + n, size - n, "S0_I%s%sE", of, of);
	}
	snprintf(name + n, size - n, "Ev");
}

static void test_hostile_names(void **state)
{
	static const char *const deep[][2] = {
		{ "_Z1fI", "P" }, { "_Z", "N" },    { "_Z1f", "I" },	{ "_ZN", "St" },
		{ "_R", "N" },	  { "_RMC0", "R" }, { "_RNvC", "TB_" }, { "_Z1fIX", "ad" },
	};
	static const size_t lengths[] = { 500, DEMANGLE_MAX, 1 << 20 };
	char *name = malloc(2 << 20), small[14], fits[15];

	(void)state;
	assert_non_null(name);
	for (size_t i = 0; i < sizeof(deep) / sizeof(deep[0]); i++)
		for (size_t k = 0; k < 3; k++) {
			strcpy(name, deep[i][0]);
			for (size_t n = strlen(name); n < lengths[k]; n += strlen(deep[i][1]))
				strcpy(name + n, deep[i][1]);
			assert_string_equal(demangled(name), name);
		}
	sprintf(name, "_ZN%d", DEMANGLE_MAX);
	memset(name + strlen(name), 'a', DEMANGLE_MAX);
	assert_string_equal(demangled(name), name);
	make_doubling(name, 2 << 20, 60);
	assert_string_equal(demangled(name), name);
	make_doubling(name, 2 << 20, 2);
	assert_string_equal(demangled(name),
			    "f<A<int, int>, A<A<int, int>, A<int, int> >, A<A<A<int, int>, A<int, "
			    "int> >, A<A<int, int>, A<int, int> > > >");
	free(name);
	/* the end of the text has room, or all of it stays mangled */
	assert_false(demangle("_ZN2ns5Class3getEv", small, sizeof(small)));
	assert_true(demangle("_ZN2ns5Class3getEv", fits, sizeof(fits)));
	assert_string_equal(fits, "ns::Class::get");
}

/* --- lists of generated code --- */

static void put_file(const char *path, const char *text, size_t n)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);

	assert_int_equal(write(fd, text, n), n);
	close(fd);
}

static struct code_map *read_list(const char *text, size_t n, char why[160])
{
	struct code_map *m;
	int fd;

	put_file(path_of("list"), text, n);
	fd = open(path_of("list"), O_RDONLY | O_CLOEXEC);
	m = code_map_read(fd, why, 160);
	close(fd);
	return m;
}

static void assert_code(const struct code_map *m, __u64 addr, const char *name)
{
	const char *found = code_map_find(m, addr);

	if (!name)
		assert_null(found);
	else
		assert_string_equal(found ?: "", name);
}

static void test_code_map(void **state)
{
	static const char text[] =
		"1000 100 all of it\n"
		"1040 10 inner\n"
		"10f0 20 behind\n"
		"2000 10 old\n"
		"0x1ff8 0x10 later\r\x1b[31m\n"
		"3000 0 empty\nnothing\n\n3000 10\n3000 10 \n-3000 10 x\n 3000 10 x\n"
		"3000  10 x\n11112222333344445 1 too long\nffffffffffffffff 2 behind the end\n"
		"fffffffffffffff0 f last\n"
		"3000 10 cut off";
	char why[160];
	struct code_map *m = read_list(text, sizeof(text) - 1, why);

	(void)state;
	assert_non_null(m);
	assert_code(m, 0xfff, NULL);
	assert_code(m, 0x1000, "all of it");
	assert_code(m, 0x103f, "all of it");
	assert_code(m, 0x1040, "inner");
	assert_code(m, 0x104f, "inner");
	assert_code(m, 0x1050, "all of it");
	assert_code(m, 0x10ef, "all of it");
	assert_code(m, 0x10f0, "behind");
	assert_code(m, 0x110f, "behind");
	assert_code(m, 0x1110, NULL);
	assert_code(m, 0x1ff8, "later\r\x1b[31m");
	assert_code(m, 0x2007, "later\r\x1b[31m");
	assert_code(m, 0x2008, "old");
	assert_code(m, 0x3000, NULL);
	assert_code(m, 0xfffffffffffffff1, "last");
	assert_code(m, 0xffffffffffffffff, NULL);
	code_map_free(m);
}

/* The same as a search from the end of the list. */
static void test_random_code_maps(void **state)
{
	enum { LINES = 300, SPAN = 400 };
	char text[LINES * 16], why[160], name[16];

	(void)state;
	for (unsigned int seed = 1; seed <= 20; seed++) {
		unsigned int start[LINES], size[LINES];
		struct code_map *m;
		size_t n = 0;

		for (int i = 0; i < LINES; i++) {
			start[i] = rand_r(&seed) % SPAN;
			size[i] = 1 + rand_r(&seed) % (i % 7 ? 8 : 80);
			n += sprintf(text + n, "%x %x f%d\n", start[i], size[i], i);
		}
		m = read_list(text, n, why);
		assert_non_null(m);
		for (unsigned int at = 0; at < SPAN + 100; at++) {
			int i = LINES - 1;

			while (i >= 0 && (at < start[i] || at >= start[i] + size[i]))
				i--;
			sprintf(name, "f%d", i);
			assert_code(m, at, i < 0 ? NULL : name);
		}
		code_map_free(m);
	}
}

static void test_hostile_code_maps(void **state)
{
	const size_t large = CODE_MAP_BYTES + 1;
	char *text = malloc(large), why[160];
	struct code_map *m;
	size_t n = 0;

	(void)state;
	assert_non_null(text);
	m = read_list("", 0, why);
	assert_non_null(m);
	assert_code(m, 0, NULL);
	code_map_free(m);
	assert_null(read_list("\x7f"
			      "ELF\n\0\n\n",
			      8, why));
	assert_non_null(strstr(why, "'START SIZE NAME'"));
	memset(text, 'a', large);
	assert_null(read_list(text, large, why));
	assert_string_equal(why, "larger than 64 MiB");
	/* one line of almost that size, and the most lines there may be, each inside of the one before */
	memcpy(text, "1 2 ", 4);
	text[large - 2] = '\n';
	m = read_list(text, large - 1, why);
	assert_non_null(m);
	code_map_free(m);
	for (int i = 0; i < CODE_MAP_ENTRIES; i++)
		n += sprintf(text + n, "%x %x f%d\n", i, 2 * (CODE_MAP_ENTRIES - i), i);
	m = read_list(text, n, why);
	assert_non_null(m);
	assert_code(m, 0, "f0");
	assert_code(m, CODE_MAP_ENTRIES, "f999999");
	assert_code(m, CODE_MAP_ENTRIES + 2, "f999997");
	code_map_free(m);
	n += sprintf(text + n, "0 1 one too many\n");
	assert_null(read_list(text, n, why));
	assert_non_null(strstr(why, "more than 1000000 lines"));
	free(text);
}

/* Its own list, in its own /tmp: of the right kind and owner. */
static void test_code_map_files(void **state)
{
	const struct naming_root here = {};
	char path[64], list[64];
	int fd;

	(void)state;
	snprintf(list, sizeof(list), "/tmp/perf-%d.map", getpid());
	unlink(list);
#define OPEN_LIST() file_open_code_list(&here, getpid(), true, NULL, path, sizeof(path))
	assert_int_equal(OPEN_LIST(), -ENOENT);
	assert_string_equal(path, list);
	assert_int_equal(mkfifo(list, 0666), 0);
	assert_int_equal(OPEN_LIST(), -EINVAL);
	unlink(list);
	assert_int_equal(symlink("/etc/passwd", list), 0);
	assert_int_equal(OPEN_LIST(), -EINVAL);
	unlink(list);
	assert_int_equal(mkdir(list, 0755), 0);
	assert_int_equal(OPEN_LIST(), -EINVAL);
	rmdir(list);
	put_file(list, "1 1 f\n", 6);
	fd = OPEN_LIST();
	assert_true(fd >= 0);
	close(fd);
	assert_int_equal(file_open_code_list(&here, getpid(), false, NULL, path, sizeof(path)),
			 -ESRCH);
	assert_int_equal(truncate(list, CODE_MAP_BYTES + 1ll), 0);
	assert_int_equal(OPEN_LIST(), -EFBIG);
	if (!geteuid()) {
		assert_int_equal(truncate(list, 6), 0);
		assert_int_equal(chown(list, 12345, 12345), 0);
		assert_int_equal(OPEN_LIST(), -EPERM);
	}
	unlink(list);
#undef OPEN_LIST
}

/* A new worker reads it again, by the same descriptor. */
static void test_code_map_again(void **state)
{
	struct naming *n = naming_new(&(struct naming_opts){});
	const struct code_map_place place = { .pid = getpid(), .alive = true };
	char list[64], why[160];
	struct object *o;

	(void)state;
	snprintf(list, sizeof(list), "/tmp/perf-%d.map", getpid());
	unlink(list);
	put_file(list, "1000 8 a\n1008 8 b\n", 18);
	o = object_open_code_map(n, &place, why, sizeof(why));
	unlink(list);
	assert_non_null(o);
	assert_string_equal(symbol_at(o, 0x1000), "a");
	make_program(path_of("a"), 2);
	object_close(must_open(n, path_of("a")));
	assert_int_equal(kill(worker(), SIGKILL), 0);
	assert_string_equal(symbol_at(o, 0x1008) ?: "", "b");
	object_close(o);
	naming_free(n);
}

/* The bytes that a file has from an offset on, as far as they are of one segment. */
static size_t code_of(const unsigned char *file, __u64 offset, const unsigned char **code)
{
	const Elf64_Ehdr *head = (const void *)file;
	const Elf64_Phdr *ph = (const void *)(file + head->e_phoff);

	for (int i = 0; i < head->e_phnum; i++) {
		if (ph[i].p_type != PT_LOAD || offset < ph[i].p_offset ||
		    offset >= ph[i].p_offset + ph[i].p_filesz)
			continue;
		*code = file + offset;
		return ph[i].p_offset + ph[i].p_filesz - offset;
	}
	return 0;
}

/* Two files that differ in every byte of code, asked by turns: everywhere, and where segments begin and end. */
static void test_code(void **state)
{
	struct naming *n = naming_new(&(struct naming_opts){ 0 });
	unsigned char *file[2], buf[16];
	const unsigned char *code = NULL;
	const Elf64_Ehdr *head;
	const Elf64_Phdr *ph;
	struct object *o[2];
	size_t size;
	struct stat st;
	int fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);

	(void)state;
	assert_int_equal(fstat(fd, &st), 0);
	size = st.st_size;
	for (int k = 0; k < 2; k++) {
		file[k] = malloc(size);
		assert_non_null(file[k]);
		assert_int_equal(pread(fd, file[k], size, 0), size);
	}
	close(fd);
	head = (const void *)file[0];
	ph = (const void *)(file[0] + head->e_phoff);
	for (int i = 0; i < head->e_phnum; i++)
		for (__u64 at = 0; ph[i].p_flags & PF_X && at < ph[i].p_filesz; at++)
			file[1][ph[i].p_offset + at] ^= 0xff;
	for (int k = 0; k < 2; k++) {
		put_file(path_of(k ? "code1" : "code0"), (const char *)file[k], size);
		o[k] = must_open(n, path_of(k ? "code1" : "code0"));
	}
	srand(1);
	for (int i = 0; i < 6000; i++) {
		const int k = i & 1, p = rand() % head->e_phnum, edge = rand() % 3;
		const size_t want = 1 + rand() % sizeof(buf);
		const __u64 near = ph[p].p_offset + (edge == 1 ? ph[p].p_filesz : 0) - 20;
		const __u64 at = edge < 2 ? near + rand() % 40 : rand() % (size + 64);
		size_t has = code_of(file[k], at, &code);

		has = has < want ? has : want;
		assert_int_equal(object_code(o[k], at, buf, want), has);
		assert_int_equal(memcmp(buf, code, has), 0);
	}
	object_close(o[0]);
	object_close(o[1]);
	naming_free(n);
	free(file[0]);
	free(file[1]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_worker_has_nothing),
		cmocka_unit_test(test_forbidden_calls),
		cmocka_unit_test(test_too_many_symbols),
		cmocka_unit_test(test_too_large),
		cmocka_unit_test(test_worker_is_killed),
		cmocka_unit_test(test_worker_dies),
		cmocka_unit_test(test_replies),
		cmocka_unit_test(test_container_paths),
		cmocka_unit_test(test_elsewhere),
		cmocka_unit_test(test_demangled),
		cmocka_unit_test(test_hostile_names),
		cmocka_unit_test(test_code_map),
		cmocka_unit_test(test_random_code_maps),
		cmocka_unit_test(test_hostile_code_maps),
		cmocka_unit_test(test_code_map_files),
		cmocka_unit_test(test_code_map_again),
		cmocka_unit_test(test_code),
		cmocka_unit_test(test_span),
		cmocka_unit_test(test_span_of_inlined),
		cmocka_unit_test(test_attempts),
		cmocka_unit_test(test_time),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}
