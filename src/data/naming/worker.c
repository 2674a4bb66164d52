// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * A program that is executed as naming_worker does nothing but this, before its main(): so every program with this
 * library has its own worker, whose memory holds nothing of the process that started it.
 */
#include "code_dump.h"
#include "code_map.h"
#include "confine.h"
#include "elf_file.h"
#include "naming_wire.h"

#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <ucontext.h>
#include <unistd.h>

const char naming_worker[] = "ibscope-names";

/* One of them, or none. */
static struct opened {
	struct elf_file *elf;
	struct code_map *code;
	struct code_dump *dump;
} files[NAMING_OBJECTS];

static struct naming_request request;
static struct naming_reply reply;

/* --- opening: the parent does it --- */

static int ask_for_file(const char *path)
{
	static struct naming_reply wants;
	static struct naming_request got;
	size_t len = strnlen(path, NAMING_TEXT_MAX) + 1;
	int fd;

	if (len > NAMING_TEXT_MAX)
		return -ENAMETOOLONG;
	memset(&wants, 0, NAMING_REPLY_HEAD);
	wants.kind = NAMING_WANTS_FILE;
	wants.len[0] = len;
	memcpy(wants.text, path, len);
	if (naming_send(NAMING_FD, &wants, NAMING_REPLY_HEAD + len, -1) ||
	    naming_receive(NAMING_FD, &got, sizeof(got), &fd) < 0 || got.op != NAMING_FILE)
		_exit(1);
	return fd >= 0 ? fd : got.a && got.a < 4096 ? -(int)got.a : -ENOENT;
}

/* regular_open() opens what it has checked by its link in /proc. */
static int open_again(const char *path)
{
	static const char links[] = "/proc/self/fd/";

	if (strncmp(path, links, strlen(links)) != 0)
		return ask_for_file(path);
	return fcntl(atoi(path + strlen(links)), F_DUPFD_CLOEXEC, 0);
}

/* fstat() is this with an empty path. */
static int stat_open(const char *path, int fd, struct stat *st)
{
	if (*path)
		return -ENOENT;
	return syscall(SYS_fstat, fd, st) ? -errno : 0;
}

static void on_call(int signal, siginfo_t *info, void *context)
{
	greg_t *reg = ((ucontext_t *)context)->uc_mcontext.gregs;
	int old_errno = errno, ret;

	(void)signal;
	switch (info->si_syscall) {
	case SYS_open:
		ret = open_again((const char *)reg[REG_RDI]);
		break;
	case SYS_openat:
		ret = open_again((const char *)reg[REG_RSI]);
		break;
	default:
		ret = stat_open((const char *)reg[REG_RSI], (int)reg[REG_RDI],
				(struct stat *)reg[REG_RDX]);
		break;
	}
	reg[REG_RAX] = ret;
	errno = old_errno;
}

/* --- answers --- */

static size_t used; /* bytes of texts in the reply */

static void put_text(int i, const char *text)
{
	size_t n = text ? strnlen(text, NAMING_TEXT_MAX - 1) : 0;

	if (!text)
		return;
	memcpy(reply.text + used, text, n);
	reply.text[used + n] = 0;
	reply.len[i] = n + 1;
	used += n + 1;
}

/* As people write it; then as the linker has it, if that is another one. */
static void put_name(struct elf_file *o, const char *name)
{
	const char *demangled = name ? elf_file_demangled(o, name) : NULL;

	put_text(0, demangled ?: name);
	put_text(1, demangled ? name : NULL);
}

static void put_type(const struct type_access *t)
{
	reply.ret = t->kind;
	reply.v[0] = t->offset;
	reply.v[1] = t->field_offset;
	reply.v[2] = t->field_size;
	put_text(0, t->type);
	put_text(1, t->field);
}

/* Valid texts, the last of which may be missing. */
static bool is_request(size_t bytes)
{
	return bytes >= offsetof(struct naming_request, text) && request.op < NAMING_FILE &&
	       naming_request_bytes(&request) == bytes && request.object < NAMING_OBJECTS &&
	       (!request.text_len || !request.text[request.text_len - 1]);
}

static void close_object(struct opened *o)
{
	elf_file_close(o->elf);
	code_map_free(o->code);
	code_dump_free(o->dump);
	*o = (struct opened){};
}

static void open_code(struct opened *o)
{
	int fd = ask_for_file(request.text);
	char why[160];

	if (fd < 0)
		snprintf(why, sizeof(why), "%s", strerror(-fd));
	else if (request.flag & NAMING_CODE_DUMP)
		o->dump = code_dump_read(fd, why, sizeof(why));
	else
		o->code = code_map_read(fd, why, sizeof(why));
	if (fd >= 0)
		close(fd);
	reply.ret = o->code || o->dump;
	put_text(0, reply.ret ? NULL : why);
}

static void open_object(struct opened *o)
{
	const char *debug_dir = request.text + strlen(request.text) + 1;
	const struct elf_file_opts opts = {
		.debug_dir = debug_dir < request.text + request.text_len ? debug_dir : NULL,
		.trusted = request.trusted,
		.debuginfod = request.debuginfod,
		.mangled = request.flag & NAMING_MANGLED,
	};
	char why[160] = "";

	close_object(o);
	if (request.flag & (NAMING_CODE_MAP | NAMING_CODE_DUMP)) {
		open_code(o);
		return;
	}
	o->elf = elf_file_open(request.text, request.build_id_len ? request.build_id : NULL,
			       request.build_id_len, &opts, why, sizeof(why));
	reply.ret = o->elf != NULL;
	put_text(0, o->elf ? NULL : why);
}

/* One field of a type. */
struct wanted {
	__u64 left;
	bool found;
};

static void pick_field(const char *path, __u64 offset, __u64 size, void *arg)
{
	struct wanted *w = arg;

	if (w->left--)
		return;
	w->found = true;
	reply.v[0] = offset;
	reply.v[1] = size;
	put_text(0, path);
}

/* ret: 0 if no access to the type was found, 1 behind its last field, 2 for a field */
static void layout(struct elf_file *o)
{
	struct wanted w = { .left = request.a };
	struct types *types = elf_file_types(o);

	reply.ret = types && types_layout(types, request.text, pick_field, &w);
	reply.ret += w.found;
}

static void function(struct elf_file *o)
{
	struct elf_file_function f;

	reply.ret = elf_file_function(o, request.a, &f, &reply.v[2]);
	if (!reply.ret)
		return;
	reply.v[0] = f.start;
	reply.v[1] = f.size;
	put_text(0, f.name);
}

static void line(struct elf_file *o)
{
	struct source_place place;

	reply.ret = elf_file_line(o, request.a, &place);
	if (!reply.ret)
		return;
	reply.v[0] = place.line;
	put_text(0, place.file);
	put_text(1, place.dir);
}

static void srcline(struct elf_file *o)
{
	char text[NAMING_TEXT_MAX];

	reply.ret = elf_file_srcline(o, request.a, text, sizeof(text));
	put_text(0, reply.ret ? text : NULL);
}

static void variable(struct elf_file *o)
{
	const char *name = NULL;

	reply.ret = elf_file_variable(o, request.a, request.flag, request.b, &name, &reply.v[0]);
	put_name(o, reply.ret ? name : NULL);
}

static void symbol(struct elf_file *o)
{
	struct addr_span span;
	struct types_inlined call;

	put_name(o, elf_file_symbol(o, request.a, &span));
	if (request.flag && elf_file_inlined(o, request.a, false, 0, &call))
		reply.v[0] = call.id;
	if (request.flag)
		elf_file_inlined_span(o, request.a, &span);
	reply.v[1] = span.from;
	reply.v[2] = span.until;
}

static void inlined(struct elf_file *o)
{
	struct types_inlined call;
	char path[NAMING_TEXT_MAX];
	bool relative;

	reply.ret = elf_file_inlined(o, request.a, request.flag, request.b, &call);
	if (!reply.ret)
		return;
	reply.v[0] = call.id;
	reply.v[1] = call.line;
	reply.v[2] = call.into;
	put_name(o, call.name);
	if (!call.file)
		return;
	relative = *call.file != '/' && call.dir;
	snprintf(path, sizeof(path), "%s%s%s", relative ? call.dir : "", relative ? "/" : "",
		 call.file);
	put_text(3, path);
}

static void code(struct elf_file *o)
{
	unsigned char *to = (unsigned char *)reply.text;
	size_t size = request.size < sizeof(reply.text) ? request.size : sizeof(reply.text);

	used = reply.data_len = request.op == NAMING_READ ? elf_file_read(o, request.a, to, size)
							  : elf_file_code(o, request.a, to, size);
}

static void frame(struct elf_file *o)
{
	struct frame_row row;

	if (!elf_file_frame(o, request.a, &row))
		return;
	memcpy(reply.text, &row, sizeof(row));
	used = reply.data_len = sizeof(row);
}

static void answer(struct elf_file *o)
{
	struct type_access type;

	switch (request.op) {
	case NAMING_SYMBOL:
		symbol(o);
		break;
	case NAMING_NAME:
		put_name(o, elf_file_name(o, request.a));
		break;
	case NAMING_VARIABLE:
		variable(o);
		break;
	case NAMING_VARIABLE_TYPE:
		elf_file_variable_type(o, request.a, request.flag, request.b, request.size, &type);
		put_type(&type);
		break;
	case NAMING_CODE_TYPE:
		elf_file_code_type(o, request.a, &type);
		put_type(&type);
		break;
	case NAMING_TYPE:
		elf_file_type(o, request.a, &type);
		put_type(&type);
		break;
	case NAMING_FUNCTION:
		function(o);
		break;
	case NAMING_READ:
	case NAMING_CODE:
		code(o);
		return;
	case NAMING_FRAME:
		frame(o);
		return;
	case NAMING_IS_GO:
		reply.ret = elf_file_is_go(o);
		break;
	case NAMING_LINE:
		line(o);
		break;
	case NAMING_SRCLINE:
		srcline(o);
		break;
	case NAMING_LAYOUT:
		layout(o);
		break;
	case NAMING_INLINED:
		inlined(o);
		break;
	}
	put_text(2, elf_file_problem(o));
}

static void code_at(const struct code_dump *d)
{
	struct code_span span;

	code_dump_find(d, request.a, request.b, &span);
	reply.v[0] = span.from;
	reply.v[1] = span.until;
	put_text(0, span.name);
}

static void serve(void)
{
	ssize_t n;
	int fd;

	reply.kind = NAMING_READY;
	naming_send(NAMING_FD, &reply, NAMING_REPLY_HEAD, -1);
	while ((n = naming_receive(NAMING_FD, &request, sizeof(request), &fd)) > 0) {
		struct opened *o = &files[request.object % NAMING_OBJECTS];

		if (!is_request(n))
			return;
		memset(&reply, 0, NAMING_REPLY_HEAD);
		reply.kind = NAMING_ANSWER;
		used = 0;
		if (request.op == NAMING_CLOSE) {
			close_object(o);
			continue;
		}
		if (request.op == NAMING_OPEN)
			open_object(o);
		else if (o->elf)
			answer(o->elf);
		else if (o->code && request.op == NAMING_SYMBOL)
			put_text(0, code_map_find(o->code, request.a));
		else if (o->dump && request.op == NAMING_CODE_AT)
			code_at(o->dump);
		else
			return;
		if (naming_send(NAMING_FD, &reply, NAMING_REPLY_HEAD + used, -1))
			return;
	}
}

/* Nobody reads what it prints, and the kernel's first choice when memory is short is this process. */
static void enter(void)
{
	int null = open("/dev/null", O_RDWR | O_CLOEXEC);
	int oom = open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC);

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	for (int i = STDIN_FILENO; null >= 0 && i <= STDERR_FILENO; i++)
		dup2(null, i);
	if (oom >= 0 && write(oom, "1000", 4) < 0)
		close(oom);
	close_range(NAMING_FD + 1, ~0U, 0);
}

__attribute__((constructor)) static void worker_main(int argc, char **argv)
{
	int type;
	socklen_t len = sizeof(type);

	if (argc != 1 || strcmp(argv[0], naming_worker) != 0 ||
	    getsockopt(NAMING_FD, SOL_SOCKET, SO_TYPE, &type, &len) || type != SOCK_SEQPACKET)
		return;
	enter();
	if (!confine(on_call))
		serve();
	_exit(1);
}
