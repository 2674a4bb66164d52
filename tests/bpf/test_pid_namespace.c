// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * A sampler in a PID namespace, as in a container: numbers of processes and threads are those of its namespace, and
 * tasks of other namespaces have none.
 */
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <sched.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mount.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "child_process.h"
#include "sampler/rings.h"
#include "sampler/sampler_private.h"
#include "twin_child.h"
#include "twin_model.h"

static regs_t regs; /* of a load that missed */

static enum ibs_outcome run_selected(const struct sampler_opts *opts)
{
	struct sampler *s = open_twin(opts);
	const enum ibs_outcome out = run_one(s, regs);

	close_twin(s);
	return out;
}

static void check_selected(void)
{
	struct sampler_opts opts = zen4;
	__u32 pid = 1;

	opts.sel.processes = (struct selected_pids){ .pids = &pid, .n = 1 };
	assert_int_equal(run_selected(&opts), IBS_OUTCOME_AGGREGATED);
	pid = 2;
	assert_int_equal(run_selected(&opts), IBS_OUTCOME_FILTERED_PID);
	opts.sel.threads = opts.sel.processes;
	opts.sel.processes = (struct selected_pids){};
	assert_int_equal(run_selected(&opts), IBS_OUTCOME_FILTERED_TID);
	pid = 1;
	assert_int_equal(run_selected(&opts), IBS_OUTCOME_AGGREGATED);
}

struct thread {
	struct sampler *s;
	__u32 tid;
	__u8 outcome;
};

static void *run_in_thread(void *arg)
{
	struct thread *t = arg;

	t->tid = gettid();
	twin_run_regs(t->s, (const regs_t *)&regs, 1, &t->outcome, NULL);
	return NULL;
}

/* Groups by process and thread. */
static void check_keys(void)
{
	struct sampler_opts opts = zen4;
	struct thread t = {};
	struct snapshot snap;
	pthread_t thread;

	opts.by = IBS_BY_PID | IBS_BY_TID;
	t.s = open_twin(&opts);
	assert_int_equal(pthread_create(&thread, NULL, run_in_thread, &t), 0);
	assert_int_equal(pthread_join(thread, NULL), 0);
	assert_int_equal(t.outcome, IBS_OUTCOME_AGGREGATED);
	snapshot(t.s, &snap);
	assert_int_equal(snap.n_groups, 1);
	assert_int_equal(snap.groups[0].key.tgid, 1);
	assert_int_equal(snap.groups[0].key.tid, t.tid);
	assert_true(t.tid > 1);
	snapshot_free(&snap);
	close_twin(t.s);
}

static int check_record(const struct record_batch *b, void *arg, struct err *err)
{
	(void)err;
	assert_int_equal(b->n, 1);
	assert_int_equal(b->records[0].tgid, 1);
	assert_int_equal(b->records[0].tid, 1);
	++*(int *)arg;
	return 0;
}

static void check_records(void)
{
	struct sampler_opts opts = zen4;
	struct err err = {};
	struct sampler *s;
	int n = 0;

	opts.output = SAMPLER_RECORDS;
	s = open_twin(&opts);
	assert_int_equal(run_one(s, regs), IBS_OUTCOME_FORWARDED);
	assert_int_equal(rings_drain(sampler_rings(s), UINT64_MAX, check_record, &n, &err), 0);
	assert_int_equal(n, 1);
	sampler_close(s);
}

static __u32 first; /* process of the namespace below; 0: there is none yet */

/* What a new child of the selected process comes to; the process itself stays selected. */
static void check_child(bool follow, enum ibs_outcome want)
{
	struct sampler_opts opts = zen4;
	struct child c = { .regs = (const regs_t *)&regs, .n = 1 };
	struct sampler *s;
	__u32 pid = 1;

	opts.sel.processes = (struct selected_pids){ .pids = &pid, .n = 1 };
	opts.sel.follow = follow;
	s = open_twin(&opts);
	run_child(s, &c);
	assert_int_equal(child_outcomes[0], want);
	assert_int_equal(run_one(s, regs), IBS_OUTCOME_AGGREGATED);
	/* that of a child in this namespace was entered; none of another namespace is */
	for (pid = 2; want == IBS_OUTCOME_FILTERED_PID && pid < 1000; pid++)
		assert_int_equal(s->select.processes[pid], follow && pid == first);
	close_twin(s);
}

/* Threads of another namespace have the number of no thread, also if the first one here is selected. */
static void check_thread_elsewhere(void)
{
	struct sampler_opts opts = zen4;
	struct child c = { .regs = (const regs_t *)&regs, .n = 1 };
	struct sampler *s;
	__u32 tid = 1;

	opts.sel.threads = (struct selected_pids){ .pids = &tid, .n = 1 };
	s = open_twin(&opts);
	run_child(s, &c);
	assert_int_equal(child_outcomes[0], IBS_OUTCOME_FILTERED_TID);
	close_twin(s);
}

/* Children of this namespace, and of one below it. */
static void check_children(void)
{
	pid_t pid;

	check_child(false, IBS_OUTCOME_FILTERED_PID);
	check_child(true, IBS_OUTCOME_AGGREGATED);
	assert_int_equal(unshare(CLONE_NEWPID), 0);
	pid = fork(); /* without one that lives on, the namespace takes no others */
	assert_true(pid >= 0);
	if (!pid) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		pause();
		_exit(1);
	}
	first = pid;
	check_child(false, IBS_OUTCOME_FILTERED_PID);
	check_child(true, IBS_OUTCOME_FILTERED_PID);
	check_thread_elsewhere();
	kill(pid, SIGKILL);
}

/* The first process of a namespace. It ends here. */
static void check_all(void)
{
	child_begins();
	assert_int_equal(mount("", "/", NULL, MS_REC | MS_PRIVATE, NULL), 0);
	assert_int_equal(mount("proc", "/proc", "proc", 0, NULL), 0);
	assert_int_equal(getpid(), 1);
	check_selected();
	check_keys();
	check_records();
	check_children();
	_exit(0);
}

static void test_namespace(void **state)
{
	int status;
	pid_t pid;

	(void)state;
	load_miss(regs, DRAM, 300);
	pid = fork();
	assert_true(pid >= 0);
	if (!pid) {
		if (unshare(CLONE_NEWPID | CLONE_NEWNS))
			_exit(77);
		pid = fork();
		if (!pid)
			check_all();
		if (pid < 0 || waitpid(pid, &status, 0) != pid)
			_exit(1);
		_exit(WIFEXITED(status) ? WEXITSTATUS(status) : 1);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFEXITED(status));
	if (WEXITSTATUS(status) == 77) {
		print_message("skipped: no PID namespace can be made here\n");
		skip();
	}
	assert_int_equal(WEXITSTATUS(status), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_namespace) };

	if (!can_run())
		return 77;
	return cmocka_run_group_tests(tests, children_up, children_down);
}
