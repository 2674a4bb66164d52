// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* ibscope ctl: ask a collector how it is, and tell it what to do. */
#include "cmd.h"
#include "hist.h"
#include "metrics_governor.h"
#include "options.h"
#include "pinned.h"
#include "rows.h"
#include "clock.h"

#include <errno.h>
#include <getopt.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

struct ctl {
	const char *pin_dir;
	bool json;
	unsigned int labels;
};

static int set_pin_dir(void *ctx, const char *arg, struct err *err)
{
	struct ctl *c = ctx;

	(void)err;
	c->pin_dir = arg;
	return 0;
}

static int set_by(void *ctx, const char *arg, struct err *err)
{
	struct ctl *c = ctx;

	return labels_parse(arg, &c->labels, err);
}

static const struct option_row ctl_rows[] = {
	{ "pin-dir", 0, "DIR", "of the collector; default " IBS_PIN_DIR, set_pin_dir },
	{ "json", 0, NULL, "of snapshot: as hist --json", OPTION_FLAG(struct ctl, json) },
	{ "by", 0, "LABEL,..", "of snapshot: labels; default cgroup,src,op", set_by },
};

static int status(const struct ctl *c, const struct pinned *p, struct err *err)
{
	const struct ibs_meta *m = pinned_meta(p);
	struct ibs_meta_status st;
	struct snapshot now;
	int ret = pinned_snapshot(p, &now, err);
	bool alive = m->pid && (!kill(m->pid, 0) || errno == EPERM);

	(void)c;
	if (ret)
		return ret;
	pinned_status(p, &st);
	if (m->layout.simulated)
		printf("SIMULATED samples, not measurements\n");
	if (alive)
		printf("collector: process %u, version %s, last tick %.1f s ago\n", m->pid,
		       m->version, (clock_ns(CLOCK_BOOTTIME) - st.time_ns) / 1e9);
	else
		printf("collector: not running since %.0f s; its counters are kept\n",
		       (clock_ns(CLOCK_BOOTTIME) - st.time_ns) / 1e9);
	printf("sampling: %s on %u CPUs, options: %s\n", m->event, st.cpus,
	       *m->selection ? m->selection : "none");
	printf("groups: %zu of %u, %llu folded\n", now.n_groups, m->layout.max_slots - 1,
	       (unsigned long long)st.folded);
	printf("memory: %.1f MiB of maps, %.1f MiB of the collector\n", st.memory_bytes / 1048576.0,
	       st.rss_bytes / 1048576.0);
	if (st.bpf_runs)
		printf("cost: %.0f ns a sample in BPF, %.1f s in all; collector %.1f s\n",
		       (double)st.bpf_ns / st.bpf_runs, st.bpf_ns / 1e9, st.cpu_ns / 1e9);
	metrics_governor_text(stdout, &st);
	printf("ledger: ");
	ledger_print(stdout, &now.ledger);
	printf("\n");
	snapshot_free(&now);
	return alive ? 0
		     : err_set(err, -ESRCH,
			       "no collector runs; `ibscope serve` goes on with what is pinned");
}

struct names {
	const struct pinned *p;
	const struct snapshot *s;
	struct ibs_slot_name name;
};

static const char *name_of(void *arg, __u64 id, enum label l)
{
	struct names *n = arg;

	for (size_t i = 0; i < n->s->n_groups; i++) {
		if (n->s->groups[i].key.cgroup_id != id)
			continue;
		pinned_name(n->p, &n->s->groups[i], &n->name);
		if (l == LABEL_CONTAINER)
			return n->name.container;
		if (l == LABEL_POD)
			return n->name.pod;
		return *n->name.cgroup ? n->name.cgroup : NULL;
	}
	return NULL;
}

static int print_snapshot(const struct ctl *c, const struct pinned *p, struct err *err)
{
	const struct ibs_meta *m = pinned_meta(p);
	struct snapshot now;
	struct names names = { .p = p, .s = &now };
	struct hist_info info = { .source = m->source,
				  .event = m->event,
				  .simulated = m->layout.simulated,
				  .metric = m->layout.metric };
	struct ibs_meta_status st;
	struct rows rows;
	int ret = pinned_snapshot(p, &now, err);

	if (ret)
		return ret;
	pinned_status(p, &st);
	info.period = st.period;
	now.time_ns = st.enabled_ns / (st.cpus ? st.cpus : 1);
	if (rows_build(&now, c->labels, name_of, &names, &rows)) {
		snapshot_free(&now);
		return err_set(err, -ENOMEM, "out of memory for the output");
	}
	if (c->json)
		ret = hist_print_json(stdout, &info, &now, &rows, err);
	else
		hist_print_text(stdout, &info, &now, &rows);
	rows_free(&rows);
	snapshot_free(&now);
	return ret;
}

static const struct verb {
	const char *name, *help;
	int (*run)(const struct ctl *c, const struct pinned *p, struct err *err);
} verbs[] = {
	{ "status", "how the collector is", status },
	{ "snapshot", "all that was counted, as hist shows it", print_snapshot },
};
#define VERBS (sizeof(verbs) / sizeof(verbs[0]))

static void usage(FILE *f, const struct option_set *set)
{
	fprintf(f, "usage: ibscope ctl [options] VERB\n\n");
	for (size_t i = 0; i < VERBS; i++)
		fprintf(f, "  %-10s %s\n", verbs[i].name, verbs[i].help);
	options_help(f, set, 1);
	fprintf(f, "\nExit status: 0 done, 1 failed or, of status, no collector runs, 2 wrong "
		   "usage.\n");
}

static const struct verb *find_verb(int argc, char **argv, struct err *err)
{
	char known[128] = "";

	for (size_t i = 0; i < VERBS; i++) {
		if (argc == 1 && !strcmp(argv[0], verbs[i].name))
			return &verbs[i];
		strcat(known, i ? ", " : "");
		strcat(known, verbs[i].name);
	}
	err_set(err, -EINVAL, "expected one verb of %s", known);
	return NULL;
}

int cmd_ctl(int argc, char **argv)
{
	struct ctl c = { .pin_dir = IBS_PIN_DIR, .labels = LABELS_DEFAULT };
	const struct option_set set = { "Options", ctl_rows, sizeof(ctl_rows) / sizeof(ctl_rows[0]),
					&c };
	const struct verb *verb;
	struct pinned *p = NULL;
	struct err err = { "" };
	int ret = options_parse(argc, argv, &set, 1, &err);

	if (ret == OPTIONS_HELP) {
		usage(stdout, &set);
		return EXIT_DONE;
	}
	verb = ret ? NULL : find_verb(argc - optind, argv + optind, &err);
	if (!verb) {
		log_error("%s", err.text);
		return EXIT_USAGE;
	}
	ret = pinned_open(c.pin_dir, &p, &err) ?: verb->run(&c, p, &err);
	if (!ret && (fflush(stdout) || ferror(stdout)))
		ret = err_set(&err, -EIO, "cannot write the output: %s", strerror(errno));
	if (ret)
		log_error("%s", err.text);
	pinned_close(p);
	return ret ? EXIT_FAILED : EXIT_DONE;
}
