// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// soak_watch scrape FILE COMMAND: once a second run COMMAND, which prints /metrics, until FILE.stop
//	is there. Into FILE a line for each scrape that succeeded: time and what scrape() lists; to
//	stdout lines "back SERIES OLD NEW" of counters that went back, "unbalanced ..." of ledgers
//	that do not add up, "failed TIME", and last "scrapes N series K".
// soak_watch sizes FILE DIR: every two seconds, until FILE.stop is there, a line: time, of RSS in
//	KiB all and what is anonymous, and open files of ibscope and of ibscope-exporter, files below
//	DIR, entries of the maps cgroups, groups and slots there, and programs, maps and links of the
//	whole kernel; -1 for what is not there.
#define _GNU_SOURCE
#include <dirent.h>
#include <fcntl.h>
#include <ftw.h>
#include <linux/bpf.h>
#include <search.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

static double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_BOOTTIME, &t);
	return t.tv_sec + t.tv_nsec / 1e9;
}

static bool to_stop(const char *file)
{
	char path[256];

	snprintf(path, sizeof(path), "%s.stop", file);
	return !access(path, F_OK);
}

static void wait_until(double t)
{
	double s = t - now();

	if (s > 0)
		usleep(s * 1e6);
}

/* --- scrapes */

struct sample {
	char *series; /* name and labels */
	double value;
	unsigned int scrape; /* that had it last */
};

static struct {
	void *tree;
	size_t n;
	unsigned int scrapes;
} all;

static int by_series(const void *a, const void *b)
{
	return strcmp(((const struct sample *)a)->series, ((const struct sample *)b)->series);
}

static bool ends(const char *s, size_t n, const char *with)
{
	size_t m = strlen(with);

	return n >= m && !memcmp(s + n - m, with, m);
}

/* Of the exporter's own process nothing outlives it. */
static bool is_counter(const char *series)
{
	size_t n = strcspn(series, "{");

	return strncmp(series, "ibscope_exporter_", 17) && strncmp(series, "process_", 8) &&
	       (ends(series, n, "_total") || ends(series, n, "_bucket") ||
		ends(series, n, "_count") || ends(series, n, "_sum"));
}

/* A series that was not in the scrape before may be a new one of the same name. */
static void compare(const char *series, double value)
{
	struct sample key = { .series = (char *)series }, *s;
	struct sample **found = tfind(&key, &all.tree, by_series);

	if (!found) {
		s = malloc(sizeof(*s));
		*s = (struct sample){ .series = strdup(series) };
		tsearch(s, &all.tree, by_series);
		all.n++;
	} else {
		s = *found;
		if (s->scrape + 1 == all.scrapes && value < s->value)
			printf("back %s %.0f %.0f\n", series, s->value, value);
	}
	s->value = value;
	s->scrape = all.scrapes;
}

static struct sample **gone;
static size_t n_gone;

static void collect_gone(const void *node, VISIT when, int depth)
{
	struct sample *s = *(struct sample *const *)node;

	(void)depth;
	if ((when == postorder || when == leaf) && s->scrape + 1 < all.scrapes)
		gone[n_gone++] = s;
}

static void forget_gone(void)
{
	gone = malloc(all.n * sizeof(*gone));
	n_gone = 0;
	twalk(all.tree, collect_gone);
	for (size_t i = 0; i < n_gone; i++) {
		tdelete(gone[i], &all.tree, by_series);
		free(gone[i]->series);
		free(gone[i]);
		all.n--;
	}
	free(gone);
}

/* Values of a scrape that are looked at by name, summed over labels; and their columns in FILE. */
static const char *const columns[] = {
	"ibscope_samples_seen_total",
	"ibscope_samples_aggregated_total",
	"ibscope_samples_forwarded_total",
	"ibscope_samples_filtered_total",
	"ibscope_samples_lost_total",
	"ibscope_samples_total",
	"ibscope_samples_ended",
	"ibscope_samples_unseen_total",
	"ibscope_groups",
	"ibscope_groups_folded_total",
	"ibscope_collector_starts_total",
	"ibscope_collector_up",
	"ibscope_cpus",
	"ibscope_cpus_went_offline_total",
	"ibscope_cpus_came_online_total",
	"ibscope_clock_steps_total",
	"ibscope_suspends_total",
	"ibscope_pmu_shared_total",
};
enum {
	SEEN,
	AGGREGATED,
	FORWARDED,
	FILTERED,
	LOST,
	SAMPLES,
	ENDED,
	COLUMNS = sizeof(columns) / sizeof(columns[0])
};

/* What COMMAND printed, to be freed, and in *bytes how long it is; NULL: it failed. */
static char *output_of(const char *command, size_t *bytes)
{
	FILE *f = popen(command, "r"), *whole;
	char part[1 << 16], *text = NULL;
	size_t n;

	if (!f)
		return NULL;
	whole = open_memstream(&text, bytes);
	while ((n = fread(part, 1, sizeof(part), f)) > 0)
		fwrite(part, 1, n, whole);
	fclose(whole);
	if (!pclose(f))
		return text;
	free(text);
	return NULL;
}

/* What comes after a broken one is compared with what was before: only a whole one is looked at. */
static void scrape(FILE *out, const char *command)
{
	double start = now(), value[COLUMNS] = {};
	size_t bytes = 0;
	char *text = output_of(command, &bytes), *save = NULL;

	if (!text || !strstr(text, "\nibscope_samples_seen_total")) {
		printf("failed %.3f\n", start);
		free(text);
		return;
	}
	all.scrapes++;
	for (char *line = strtok_r(text, "\n", &save); line; line = strtok_r(NULL, "\n", &save)) {
		char *space = strrchr(line, ' ');

		if (*line == '#' || !space)
			continue;
		*space = 0;
		if (is_counter(line))
			compare(line, atof(space + 1));
		for (int i = 0; i < COLUMNS; i++) {
			size_t n = strlen(columns[i]);

			if (!strncmp(line, columns[i], n) && (line[n] == '{' || !line[n]))
				value[i] += atof(space + 1);
		}
	}
	free(text);
	forget_gone();
	if (value[SEEN] != value[AGGREGATED] + value[FORWARDED] + value[FILTERED] + value[LOST] ||
	    value[SAMPLES] + value[ENDED] != value[AGGREGATED])
		printf("unbalanced seen %.0f aggregated %.0f forwarded %.0f filtered %.0f lost "
		       "%.0f samples %.0f ended %.0f\n",
		       value[SEEN], value[AGGREGATED], value[FORWARDED], value[FILTERED],
		       value[LOST], value[SAMPLES], value[ENDED]);
	fprintf(out, "%.3f", start);
	for (int i = 0; i < COLUMNS; i++)
		fprintf(out, " %.0f", value[i]);
	fprintf(out, " %zu %.3f\n", bytes, now() - start);
	fflush(out);
}

static int scrape_all(const char *file, const char *command)
{
	FILE *out = fopen(file, "w");

	if (!out)
		return perror(file), 1;
	for (double next = now(); !to_stop(file); next = now() > next + 1 ? now() : next + 1) {
		wait_until(next);
		scrape(out, command);
		fflush(stdout);
	}
	printf("scrapes %u series %zu\n", all.scrapes, all.n);
	return fclose(out) ? 1 : 0;
}

/* --- sizes */

static long bpf(int cmd, union bpf_attr *attr)
{
	return syscall(__NR_bpf, cmd, attr, sizeof(*attr));
}

/* Without a look-up, which would keep the program from running. */
static long entries(const char *dir, const char *map)
{
	static char key[2][4096];
	union bpf_attr attr = {};
	char path[256];
	long n = 0;
	int fd;

	snprintf(path, sizeof(path), "%s/%s", dir, map);
	attr.pathname = (uintptr_t)path;
	fd = bpf(BPF_OBJ_GET, &attr);
	if (fd < 0)
		return -1;
	for (;; n++) {
		memset(&attr, 0, sizeof(attr));
		attr.map_fd = fd;
		attr.key = n ? (uintptr_t)key[n & 1] : 0;
		attr.next_key = (uintptr_t)key[~n & 1];
		if (bpf(BPF_MAP_GET_NEXT_KEY, &attr))
			break;
	}
	close(fd);
	return n;
}

static long objects(int cmd)
{
	union bpf_attr attr = {};
	long n = 0;

	while (!bpf(cmd, &attr)) {
		attr.start_id = attr.next_id;
		attr.next_id = 0;
		n++;
	}
	return n;
}

static long n_files;

static int count_file(const char *path, const struct stat *st, int what, struct FTW *ftw)
{
	(void)path, (void)st, (void)ftw;
	n_files += what == FTW_F || what == FTW_SL;
	return 0;
}

static pid_t find(const char *comm)
{
	DIR *dir = opendir("/proc");
	struct dirent *e;
	pid_t found = 0;

	while (!found && (e = readdir(dir))) {
		char path[300], have[32] = "";
		FILE *f;

		snprintf(path, sizeof(path), "/proc/%s/comm", e->d_name);
		f = *e->d_name >= '1' && *e->d_name <= '9' ? fopen(path, "r") : NULL;
		if (!f)
			continue;
		if (fgets(have, sizeof(have), f) &&
		    (have[strcspn(have, "\n")] = 0, !strcmp(have, comm)))
			found = atoi(e->d_name);
		fclose(f);
	}
	closedir(dir);
	return found;
}

static long open_files(pid_t pid)
{
	char path[64];
	long n = -2; /* . and .. */
	DIR *dir;

	snprintf(path, sizeof(path), "/proc/%d/fd", pid);
	dir = opendir(path);
	if (!dir)
		return -1;
	while (readdir(dir))
		n++;
	closedir(dir);
	return n;
}

/* From smaps_rollup: what /proc/PID/status says is, from 6.2 on, up to 32 pages a CPU off, since the
 * kernel sums per-CPU counters up only when they have grown that far. */
static long kib(pid_t pid, const char *what)
{
	char path[64], line[256], format[64];
	long n = -1;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/smaps_rollup", pid);
	snprintf(format, sizeof(format), "%s: %%ld", what);
	f = fopen(path, "r");
	while (f && fgets(line, sizeof(line), f))
		sscanf(line, format, &n);
	if (f)
		fclose(f);
	return n;
}

static int sizes(const char *file, const char *dir)
{
	static const char *const programs[] = { "ibscope", "ibscope-exporte" };
	FILE *out = fopen(file, "w");

	if (!out)
		return perror(file), 1;
	for (double next = now(); !to_stop(file); next += 2) {
		wait_until(next);
		fprintf(out, "%.3f", now());
		for (int i = 0; i < 2; i++) {
			pid_t pid = find(programs[i]);

			fprintf(out, " %ld %ld %ld", pid ? kib(pid, "Rss") : -1,
				pid ? kib(pid, "Anonymous") : -1, pid ? open_files(pid) : -1);
		}
		n_files = 0;
		nftw(dir, count_file, 16, FTW_PHYS);
		fprintf(out, " %ld %ld %ld %ld", n_files, entries(dir, "cgroups"),
			entries(dir, "groups"), entries(dir, "slots"));
		fprintf(out, " %ld %ld %ld\n", objects(BPF_PROG_GET_NEXT_ID),
			objects(BPF_MAP_GET_NEXT_ID), objects(BPF_LINK_GET_NEXT_ID));
		fflush(out);
	}
	return fclose(out) ? 1 : 0;
}

int main(int argc, char **argv)
{
	if (argc == 4 && !strcmp(argv[1], "scrape"))
		return scrape_all(argv[2], argv[3]);
	if (argc == 4 && !strcmp(argv[1], "sizes"))
		return sizes(argv[2], argv[3]);
	return fprintf(stderr, "soak_watch: see its source\n"), 125;
}
