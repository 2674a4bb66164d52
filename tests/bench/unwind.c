// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * bench-unwind PID FILE..: prints the call chain of each FILE, addresses from the innermost on: of a stopped process, the
 * registers in the order of struct pt_regs, and the stack from the stack pointer up. unwind_gdb.py makes them.
 */
#include "symbols/chain.h"
#include "symbols/symbols.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static int add(const struct trace_event *ev, void *tasks, struct err *err)
{
	(void)err;
	tasks_add(tasks, ev);
	return 0;
}

static bool print_chain(struct symbols *symbols, const struct tasks *tasks, __u32 pid,
			const char *path, unsigned int number)
{
	static unsigned char stack[IBS_COPY_MAX];
	struct chain_frame frames[TRACE_STACK_MAX];
	__u64 regs[IBS_USER_REGS];
	struct trace_copy copy = { .regs = regs, .data = stack };
	struct trace_event ev = {
		.time = 1 + number,
		.sample = { .tgid = pid, .tid = pid, .has_task = true, .copy = &copy },
	};
	FILE *f = fopen(path, "rb");
	bool ok = f && fread(regs, sizeof(regs), 1, f) == 1;
	unsigned int n;

	if (ok)
		copy.bytes = fread(stack, 1, sizeof(stack), f);
	if (f)
		fclose(f);
	if (!ok)
		return false;
	copy.cut = copy.bytes == sizeof(stack);
	n = chain_frames(symbols, tasks, &ev, frames);
	for (unsigned int i = 0; i < n; i++)
		printf("%s%llx", i ? " " : "", (unsigned long long)frames[i].addr);
	printf("\n");
	return true;
}

int main(int argc, char **argv)
{
	const __u32 pid = argc > 1 ? atoi(argv[1]) : 0;
	struct tasks *tasks = tasks_new();
	struct trace_info info = {};
	struct symbols_opts opts = { .info = &info };
	struct task_choice choice;
	struct symbols *symbols;
	struct err err = {};
	bool ok = true;

	gethostname(info.host, sizeof(info.host) - 1);
	task_choice_init(&choice, &pid, 1, false);
	if (!pid || task_events_now("", &choice, false, 1, add, tasks, &err) ||
	    symbols_new(&opts, &symbols, &err)) {
		fprintf(stderr, "usage: bench-unwind PID FILE..: %s\n", err.text);
		return 1;
	}
	for (int i = 2; i < argc && ok; i++)
		ok = print_chain(symbols, tasks, pid, argv[i], i);
	symbols_free(symbols);
	tasks_free(tasks);
	task_choice_free(&choice);
	return !ok;
}
