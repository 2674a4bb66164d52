// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "metrics_self.h"

#include "base/clock.h"

#include <dirent.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

static void read_memory(struct process_stats *out)
{
	unsigned long long size, rss;
	FILE *f = fopen("/proc/self/statm", "re");

	if (f && fscanf(f, "%llu %llu", &size, &rss) == 2) {
		out->virtual_bytes = (double)size * sysconf(_SC_PAGESIZE);
		out->rss_bytes = (double)rss * sysconf(_SC_PAGESIZE);
	}
	if (f)
		fclose(f);
}

static void read_fds(struct process_stats *out)
{
	DIR *d = opendir("/proc/self/fd");
	struct rlimit limit;

	if (d) {
		out->open_fds = -1; /* the directory's own */
		for (struct dirent *e; (e = readdir(d));)
			out->open_fds += *e->d_name != '.';
		closedir(d);
	}
	if (!getrlimit(RLIMIT_NOFILE, &limit))
		out->max_fds = limit.rlim_cur;
}

/* Field 22 of /proc/self/stat, in ticks since boot. */
static double start_time_s(void)
{
	char text[1024] = "", *p;
	unsigned long long ticks;
	FILE *f = fopen("/proc/self/stat", "re");

	if (!f)
		return NAN;
	if (!fgets(text, sizeof(text), f))
		*text = 0;
	fclose(f);
	p = strrchr(text, ')'); /* ends the name, which may contain spaces */
	for (int field = 2; p && field < 22; field++)
		p = strchr(p + 1, ' ');
	if (!p || sscanf(p, " %llu", &ticks) != 1)
		return NAN;
	return (clock_ns(CLOCK_REALTIME) / 1e9 - clock_ns(CLOCK_BOOTTIME) / 1e9) +
	       (double)ticks / sysconf(_SC_CLK_TCK);
}

void process_stats_read(struct process_stats *out)
{
	static double started; /* read once: setting the clock must not move it */

	*out = (struct process_stats){ NAN, NAN, NAN, NAN, NAN, NAN };
	out->cpu_s = clock_ns(CLOCK_PROCESS_CPUTIME_ID) / 1e9;
	read_memory(out);
	read_fds(out);
	if (!started)
		started = start_time_s();
	out->start_s = started;
}
