// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Links that a killed collector has left: ended, and what their events counted goes into the ledger. */
#include "pins_private.h"

#include "base/array.h"
#include "base/clock.h"
#include "base/rlimit.h"

#include <ibscope/link_event.h>

#include "link_events.skel.h"

#include <bpf/bpf.h>
#include <dirent.h>
#include <errno.h>
#include <linux/membarrier.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

struct link {
	int fd;
	__u32 id;
};

struct links {
	struct link *at;
	size_t n, room;
};

bool pins_have_links(const struct pins *p)
{
	DIR *dir = opendir(p->links);
	struct dirent *e;
	bool any = false;

	while (dir && !any && (e = readdir(dir)))
		any = *e->d_name != '.';
	if (dir)
		closedir(dir);
	return any;
}

/* Could a collector have pinned it? Others than links of events are not ours to end. */
static bool is_link(int fd, __u32 *id)
{
	struct bpf_link_info info = {};
	__u32 len = sizeof(info);

	if (!pins_is_kind(fd, "anon_inode:bpf-link") || bpf_obj_get_info_by_fd(fd, &info, &len) ||
	    info.type != BPF_LINK_TYPE_PERF_EVENT)
		return false;
	*id = info.id;
	return true;
}

/* Open the pinned links, and remove the pins if @unpin; what is no link is set aside. */
static void open_links(struct pins *p, bool unpin, struct links *links)
{
	DIR *dir = opendir(p->links);
	struct dirent *e;
	struct link *l;
	struct err err;
	char path[sizeof(p->links) + sizeof(e->d_name)];

	while (dir && (e = readdir(dir))) {
		if (*e->d_name == '.')
			continue;
		snprintf(path, sizeof(path), "%s/%s", p->links, e->d_name);
		rlimit_files(1);
		array_reserve(links->at, links->room, links->n + 1);
		l = &links->at[links->n];
		l->fd = bpf_obj_get(path);
		if (l->fd >= 0 && is_link(l->fd, &l->id)) {
			links->n++;
			if (unpin)
				unlink(path);
			continue;
		}
		if (l->fd >= 0)
			close(l->fd);
		if (pin_file_set_aside(path, p->dir, &err))
			log_warn("%s", err.text);
	}
	if (dir)
		closedir(dir);
}

/* --- what their events have counted --- */

static int by_link(const void *a, const void *b)
{
	const struct ibs_link_event *x = a, *y = b;

	return (x->link > y->link) - (x->link < y->link);
}

/* Read all events that have links. Return: their number, in *out by link; 0 before Linux 5.19. */
static size_t read_events(struct ibs_link_event **out)
{
	libbpf_print_fn_t print = libbpf_set_print(NULL);
	struct link_events_bpf *bpf = link_events_bpf__open_and_load();
	struct bpf_link *link = bpf ? bpf_program__attach_iter(bpf->progs.link_events, NULL) : NULL;
	int fd = link ? bpf_iter_create(bpf_link__fd(link)) : -1;
	size_t bytes = 0, room = 0;
	ssize_t n = fd < 0 ? -1 : 1;
	char *at = NULL;

	while (n > 0) {
		array_reserve(at, room, bytes + 4096);
		n = read(fd, at + bytes, room - bytes);
		bytes += n > 0 ? n : 0;
	}
	libbpf_set_print(print);
	if (n < 0)
		log_debug("what the events of the killed collector counted is unknown");
	if (fd >= 0)
		close(fd);
	bpf_link__destroy(link);
	link_events_bpf__destroy(bpf);
	*out = (struct ibs_link_event *)at;
	bytes = n < 0 ? 0 : bytes / sizeof(**out);
	if (bytes)
		qsort(at, bytes, sizeof(**out), by_link);
	return bytes;
}

static bool has_link(const struct links *links, __u32 id)
{
	for (size_t i = 0; i < links->n; i++)
		if (links->at[i].id == id)
			return true;
	return false;
}

/* Whole periods that an event counted since its last one began. Return: false if that is not known. */
static bool count_periods(const struct ibs_cpu_state *st, const struct ibs_link_event *o,
			  __u64 since_ns, __u64 *samples)
{
	/* an event that left the PMU before has lost part of a period each time */
	const __u64 waited_ns = o->enabled_ns - o->running_ns;

	if (!o->period || o->counted < st->link_rest ||
	    waited_ns > clock_ns(CLOCK_MONOTONIC) - since_ns)
		return false;
	*samples += (o->counted - st->link_rest) / o->period;
	return true;
}

static void settle(struct ibs_state *state, __u32 n_cpus, const struct links *links, __u64 since_ns)
{
	struct ibs_control *control = &state->control;
	struct ibs_link_event *events = NULL, *o;
	__u64 samples = control->pmu_samples;
	size_t n, found = 0;
	bool known = true, left = false;

	if (control->pmu_marked == IBS_PMU_UNKNOWN)
		return;
	n = read_events(&events);
	for (__u32 cpu = 0; cpu < n_cpus; cpu++) {
		const struct ibs_cpu_state *st = &state->cpu[cpu];
		const struct ibs_link_event key = { .link = st->link };

		if (!st->link)
			continue;
		found++;
		if (!has_link(links, st->link)) {
			known = false;
			continue;
		}
		left = true;
		o = n ? bsearch(&key, events, n, sizeof(*o), by_link) : NULL;
		known &= o && count_periods(st, o, since_ns, &samples);
	}
	known &= found == links->n;
	if (known)
		control->pmu_total = samples;
	/*
	 * Other links than those that have ended are of a collector that was killed before it began: their events
	 * count nothing
	 */
	if (known || left || control->pmu_marked == IBS_PMU_COUNTS)
		__atomic_store_n(&control->pmu_marked, known ? IBS_PMU_ENDED : IBS_PMU_UNKNOWN,
				 __ATOMIC_RELEASE);
	free(events);
}

/* Map the pinned state, if its size is that of this build for so many CPUs. */
static struct ibs_state *map_state(const struct pins *p, const struct ibs_meta_layout *l)
{
	struct ibs_state *state = NULL;
	struct bpf_map_info info = {};
	__u32 len = sizeof(info);
	char path[PIN_PATH_MAX];
	int fd;

	pins_path(p, IBS_PIN_STATE, path);
	fd = bpf_obj_get(path);
	if (fd < 0)
		return NULL;
	if (pins_is_kind(fd, "anon_inode:bpf-map") && !bpf_obj_get_info_by_fd(fd, &info, &len) &&
	    info.value_size == l->state_bytes &&
	    info.value_size >= sizeof(*state) + (size_t)l->n_cpus * sizeof(state->cpu[0]))
		state = pins_map(fd, info.value_size, true);
	close(fd);
	return state;
}

static void close_links(struct links *links)
{
	for (size_t i = 0; i < links->n; i++)
		close(links->at[i].fd);
	free(links->at);
}

void pins_count_links(struct pins *p, __u64 since_ns)
{
	struct ibs_meta *meta = pins_map_meta(p, false);
	struct ibs_meta_layout layout;
	struct links links = {};
	struct ibs_state *state;

	if (!meta)
		return;
	layout = meta->layout;
	munmap(meta, sizeof(*meta));
	state = map_state(p, &layout);
	if (!state)
		return;
	open_links(p, false, &links);
	settle(state, layout.n_cpus, &links, since_ns);
	close_links(&links);
	munmap(state, layout.state_bytes);
}

/* After a grace period the kernel drops an unlinked pin's reference; it takes less than this. */
#define UNLINK_MS 50

/*
 * The last reference decides when the kernel closes the event: if it is a file of this process, before
 * close() returns; if it is the pin, some milliseconds after the program was detached, and samples
 * in between reach no program.
 */
void pins_end_links(struct pins *p)
{
	const struct timespec ts = { .tv_nsec = UNLINK_MS * 1000000L };
	struct links links = {};

	open_links(p, true, &links);
	if (links.n) {
		syscall(SYS_membarrier, MEMBARRIER_CMD_GLOBAL, 0, 0);
		nanosleep(&ts, NULL);
	}
	close_links(&links);
}
