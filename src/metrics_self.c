// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "metrics_out.h"

#include <dirent.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#define METRIC_TABLE(X)                                                                         \
	X(DURATION, "ibscope_scrape_duration_seconds", GAUGE, "seconds",                        \
	  "Time that reading the counters took for this answer.")                               \
	X(SCRAPES, "ibscope_exporter_scrapes", COUNTER, "", "Answers to scrapes.")              \
	X(READS, "ibscope_exporter_reads", COUNTER, "",                                         \
	  "Times that counters were read; scrapes of the same second share one.")               \
	X(READ_ERRORS, "ibscope_exporter_read_errors", COUNTER, "",                             \
	  "Times that they could not be.")                                                      \
	X(CONNECTIONS, "ibscope_exporter_connections", GAUGE, "", "Connections that are open.") \
	X(CROWDED_OUT, "ibscope_exporter_connections_crowded_out", COUNTER, "",                 \
	  "Connections closed because they were too slow, or in the way of others.")            \
	X(MAPPED, "ibscope_exporter_maps_mapped", GAUGE, "",                                    \
	  "1 if counters are read from mapped memory, which costs no samples.")                 \
	X(CPU, "process_cpu_seconds", COUNTER, "seconds", "User and system CPU time.")          \
	X(RSS, "process_resident_memory_bytes", GAUGE, "bytes", "Resident memory size.")        \
	X(VSZ, "process_virtual_memory_bytes", GAUGE, "bytes", "Virtual memory size.")          \
	X(FDS, "process_open_fds", GAUGE, "", "Open file descriptors.")                         \
	X(MAX_FDS, "process_max_fds", GAUGE, "", "File descriptors that may be open.")          \
	X(START, "process_start_time_seconds", GAUGE, "seconds",                                \
	  "When the process began, as Unix time.")

static const struct metric metrics[] = { METRIC_TABLE(METRIC_ROW) };
enum metric_id { METRIC_TABLE(METRIC_ENUM) METRICS };

static void print_memory(FILE *f, enum metrics_format format)
{
	unsigned long long size, rss;
	FILE *statm = fopen("/proc/self/statm", "re");
	bool known = statm && fscanf(statm, "%llu %llu", &size, &rss) == 2;

	if (statm)
		fclose(statm);
	if (!known)
		return;
	metric_one(f, format, &metrics[M_RSS], (double)rss * sysconf(_SC_PAGESIZE));
	metric_one(f, format, &metrics[M_VSZ], (double)size * sysconf(_SC_PAGESIZE));
}

static void print_fds(FILE *f, enum metrics_format format)
{
	DIR *d = opendir("/proc/self/fd");
	struct rlimit limit;
	int n = -1; /* the directory's own */

	if (d) {
		for (struct dirent *e; (e = readdir(d));)
			n += *e->d_name != '.';
		closedir(d);
		metric_one(f, format, &metrics[M_FDS], n);
	}
	if (!getrlimit(RLIMIT_NOFILE, &limit))
		metric_one(f, format, &metrics[M_MAX_FDS], limit.rlim_cur);
}

/* Field 22 of /proc/self/stat, in ticks since boot; 0 is not known. */
static double start_time_s(void)
{
	char text[1024] = "", *p;
	struct timespec boot, now;
	unsigned long long ticks;
	FILE *f = fopen("/proc/self/stat", "re");

	if (!f)
		return 0;
	if (!fgets(text, sizeof(text), f))
		*text = 0;
	fclose(f);
	p = strrchr(text, ')'); /* of the name, which may hold blanks */
	for (int field = 2; p && field < 22; field++)
		p = strchr(p + 1, ' ');
	if (!p || sscanf(p, " %llu", &ticks) != 1)
		return 0;
	clock_gettime(CLOCK_BOOTTIME, &boot);
	clock_gettime(CLOCK_REALTIME, &now);
	return now.tv_sec - boot.tv_sec + (now.tv_nsec - boot.tv_nsec) / 1e9 +
	       (double)ticks / sysconf(_SC_CLK_TCK);
}

static void print_process(FILE *f, enum metrics_format format)
{
	static double started; /* the clock may be set, but that is not when we began */
	struct timespec cpu;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &cpu);
	metric_one(f, format, &metrics[M_CPU], cpu.tv_sec + cpu.tv_nsec / 1e9);
	print_memory(f, format);
	print_fds(f, format);
	if (!started)
		started = start_time_s();
	if (started)
		metric_one(f, format, &metrics[M_START], started);
}

void metrics_self_print(FILE *f, enum metrics_format format, const struct metrics_self *self)
{
	metric_one(f, format, &metrics[M_DURATION], self->read_s);
	metric_one(f, format, &metrics[M_SCRAPES], self->scrapes);
	metric_one(f, format, &metrics[M_READS], self->reads);
	metric_one(f, format, &metrics[M_READ_ERRORS], self->read_errors);
	metric_one(f, format, &metrics[M_CONNECTIONS], self->connections);
	metric_one(f, format, &metrics[M_CROWDED_OUT], self->crowded_out);
	metric_one(f, format, &metrics[M_MAPPED], self->mapped);
	print_process(f, format);
}

void metrics_self_list(FILE *f)
{
	for (int m = 0; m < METRICS; m++)
		metric_describe(f, &metrics[m]);
}
