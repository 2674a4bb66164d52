// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * fill_pins DIR GROUPS [SLOTS [grow|same|slower|remote]]: pin what a collector would have of so many containers,
 * all sources and all buckets, and tick until SIGTERM. Nothing samples; with `grow` the counters of each
 * container go up once a second, as if something did.
 *
 * With the other words the containers have loads of a known mix for ten minutes, and from then on the first one has
 * the same, DRAM that takes half as long again, or half of its local DRAM on another node. SIGUSR1 makes `same` `slower`.
 */
#include "base/clock.h"
#include "counts/counts.h"
#include "pins/pins.h"

#include <bpf/bpf.h>
#include <errno.h>
#include <ibscope/caps.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#define CPUS	 2
#define BEFORE_S 600 /* of a story, counted by an earlier collector */
#define PERIOD	 100003

static struct layout layout;
static struct ibs_meta_layout meta_layout;

static void die(const char *what)
{
	fprintf(stderr, "fill_pins: %s: %s\n", what, strerror(errno));
	exit(1);
}

static void *make(int *fd, __u32 value, __u32 entries)
{
	LIBBPF_OPTS(bpf_map_create_opts, opts, .map_flags = BPF_F_MMAPABLE);
	size_t bytes = ((size_t)value * entries + 4095) / 4096 * 4096;
	void *p;

	*fd = bpf_map_create(BPF_MAP_TYPE_ARRAY, "fill", 4, value, entries, &opts);
	if (*fd < 0)
		die("map");
	p = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, *fd, 0);
	if (p == MAP_FAILED)
		die("mmap");
	return p;
}

/* Return: samples in the slot. */
static __u64 fill_slot(__u64 *words, __u32 slot)
{
	__u64 samples = 0;

	for (unsigned int pair = 0; pair < IBS_LAYOUT_ENTRIES; pair++) {
		__u64 *w = words + (layout.entry[pair] & IBS_LAYOUT_WORD);

		if (!layout_has(&layout, pair))
			continue;
		if (!(layout.entry[pair] & IBS_LAYOUT_HIST)) {
			samples += w[IBS_PAIR_SAMPLES] = slot + pair;
			w[IBS_PAIR_OPS] = w[IBS_PAIR_SAMPLES] * PERIOD;
			continue;
		}
		w[IBS_PAIR_OPS] = w[IBS_HIST_NO_LAT] = pair;
		for (int b = 0; b < IBS_LAT_BUCKETS; b++) {
			__u64 n = 1 + (slot * 7919 + pair * 104729 + b * 31) % 100000;

			w[IBS_HIST_BUCKET + b] = n;
			w[IBS_HIST_SUM] += n * ibs_lat_le(b);
			w[IBS_HIST_CYCLES] += n * ibs_lat_le(b) * PERIOD;
			w[IBS_PAIR_OPS] += n;
		}
		samples += w[IBS_PAIR_OPS];
		w[IBS_PAIR_OPS] *= PERIOD;
	}
	words[IBS_TLB_L2_HIT] = samples / 50;
	words[IBS_TLB_L2_MISS] = samples / 500;
	words[IBS_TLB_L2_HIT_OPS] = words[IBS_TLB_L2_HIT] * PERIOD;
	words[IBS_TLB_L2_MISS_OPS] = words[IBS_TLB_L2_MISS] * PERIOD;
	words[IBS_TLB_REFILL_N] = words[IBS_TLB_L2_HIT] + words[IBS_TLB_L2_MISS];
	words[IBS_TLB_REFILL_SUM] = words[IBS_TLB_REFILL_N] * 40 + slot;
	return samples;
}

/* What a second brings to each histogram of a slot. Return: samples. */
static __u64 grow_slot(__u64 *words, __u32 slot, __u64 second)
{
	__u64 samples = 0;

	for (unsigned int pair = 0; pair < IBS_LAYOUT_ENTRIES; pair++) {
		__u64 *w = words + (layout.entry[pair] & IBS_LAYOUT_WORD);
		__u32 b = (slot * 31 + pair * 17 + second * 7919) % IBS_LAT_BUCKETS;
		__u64 n = 1 + (slot + pair + second * second) % 9;

		if (!layout_has(&layout, pair) || !(layout.entry[pair] & IBS_LAYOUT_HIST))
			continue;
		w[IBS_PAIR_OPS] += n * PERIOD;
		w[IBS_HIST_CYCLES] += n * ibs_lat_le(b) * PERIOD;
		w[IBS_HIST_BUCKET + b] += n;
		w[IBS_HIST_SUM] += n * ibs_lat_le(b);
		samples += n;
	}
	words[IBS_TLB_L2_MISS_OPS] += PERIOD;
	return samples;
}

/* Loads of a second, with latencies around a mean; noise is that of a generator with a fixed start. */
static __u64 random_state = 88172645463325252ULL;

static __u32 random_below(__u32 n)
{
	random_state ^= random_state << 13;
	random_state ^= random_state >> 7;
	random_state ^= random_state << 17;
	return (random_state >> 32) % n;
}

static __u64 load(__u64 *words, enum ibs_src src, __u32 n, double latency)
{
	unsigned int pair = IBS_LAYOUT_IDX(IBS_OP_KIND_LOAD, src);
	__u64 *w = words + (layout.entry[pair] & IBS_LAYOUT_WORD);
	const bool hist = layout.entry[pair] & IBS_LAYOUT_HIST;

	n += random_below(n / 8 + 1);
	for (__u32 i = 0; i < n; i++) {
		__u32 cycles = latency * (75 + random_below(51)) / 100;

		if (!hist) {
			w[IBS_PAIR_SAMPLES]++;
			w[IBS_PAIR_OPS] += PERIOD;
			continue;
		}
		w[IBS_PAIR_OPS] += PERIOD;
		w[IBS_HIST_CYCLES] += (__u64)cycles * PERIOD;
		w[IBS_HIST_BUCKET + ibs_lat_bucket(cycles)]++;
		w[IBS_HIST_SUM] += cycles;
	}
	return n;
}

static __u64 tell_second(__u64 *words, const char *story)
{
	const __u32 moved = !strcmp(story, "remote") ? 40 : 0;

	return load(words, IBS_SRC_L1, 4000, 0) + load(words, IBS_SRC_L2, 400, 20) +
	       load(words, IBS_SRC_DRAM, 80 - moved, strcmp(story, "slower") ? 400 : 600) +
	       load(words, IBS_SRC_REMOTE_DRAM, 16 + moved, 700);
}

static __u64 tell_before(__u64 *words)
{
	__u64 samples = 0;

	for (int i = 0; i < BEFORE_S; i++)
		samples += tell_second(words, "same");
	return samples;
}

static void name_slot(struct ibs_slot_name *n, __u32 slot)
{
	n->cgroup_id = 1000 + slot;
	snprintf(n->name_space, sizeof(n->name_space), "production-%u", slot % 7);
	snprintf(n->pod, sizeof(n->pod), "checkout-7d9f8b6c5d-%05u", slot);
	snprintf(n->container, sizeof(n->container), "checkout");
	snprintf(n->cgroup, sizeof(n->cgroup),
		 "/kubepods.slice/kubepods-burstable.slice/"
		 "kubepods-burstable-pod%08x_1234_5678_9abc_def012345678.slice/"
		 "cri-containerd-%064x.scope",
		 slot, slot);
}

int main(int argc, char **argv)
{
	__u32 groups = argc > 2 ? atoi(argv[2]) : 0;
	__u32 slots = argc > 3 ? (__u32)atoi(argv[3]) : groups + 1;
	const bool grow = argc > 4 && !strcmp(argv[4], "grow");
	const char *story = argc > 4 && !grow ? argv[4] : NULL;
	struct timespec second = { .tv_sec = 1 };
	struct ibs_slot_owner *owners;
	struct ibs_state *state;
	int maps[IBS_PIN_META];
	struct ibs_meta *meta;
	struct pins *pins;
	struct err err;
	const char *why;
	__u64 *series, samples = 0, told = 0;
	sigset_t set;
	int signal;

	if (!groups || slots <= groups) {
		fprintf(stderr, "usage: fill_pins DIR GROUPS [SLOTS [grow|same|slower|remote]]\n");
		return 2;
	}
	sigemptyset(&set);
	sigaddset(&set, SIGTERM);
	sigaddset(&set, SIGINT);
	sigaddset(&set, SIGUSR1);
	sigprocmask(SIG_BLOCK, &set, NULL);
	layout_init(&layout, IBS_METRIC_DC_MISS_LAT, IBS_CAPS_ZEN4);
	meta_layout = (struct ibs_meta_layout){
		.n_cpus = CPUS,
		.shards = 1,
		.max_slots = slots,
		.slot_words = layout.words,
		.by = IBS_BY_CGROUP,
		.metric = IBS_METRIC_DC_MISS_LAT,
		.caps = IBS_CAPS_ZEN4,
		.simulated = 1,
		.outcomes = IBS_OUTCOME_N,
		.sources = IBS_SRC_N,
		.ops = IBS_OP_KIND_N,
		.buckets = IBS_LAT_BUCKETS,
		.state_bytes = sizeof(*state) + CPUS * sizeof(*state->cpu),
		.meta_bytes = sizeof(struct ibs_meta),
		.status_bytes = sizeof(struct ibs_meta_status),
		.name_bytes = sizeof(struct ibs_slot_name),
	};
	memcpy(meta_layout.entry, layout.entry, sizeof(layout.entry));
	if (pins_open(argv[1], 0644, &pins, &err) ||
	    pins_adopt(pins, &meta_layout, &why, &err) < 0) {
		fprintf(stderr, "fill_pins: %s\n", err.text);
		return 1;
	}
	for (int pin = 0; pin < IBS_PIN_META; pin++)
		maps[pin] = -1;
	series = make(&maps[IBS_PIN_SERIES], layout.words * 8, slots);
	owners = make(&maps[IBS_PIN_OWNERS], sizeof(*owners), slots);
	state = make(&maps[IBS_PIN_STATE], meta_layout.state_bytes, 1);
	if (pins_finish(pins, &meta_layout, maps, &err)) {
		fprintf(stderr, "fill_pins: %s\n", err.text);
		return 1;
	}
	for (__u32 slot = 1; slot <= groups; slot++) {
		__u64 *words = series + (size_t)slot * layout.words;

		samples += story ? tell_before(words) : fill_slot(words, slot);
		name_slot(&pins_names(pins)[slot], slot);
		owners[slot].key.cgroup_id = 1000 + slot;
		owners[slot].used = IBS_SLOT_USED;
	}
	state->cpu[0].seen = state->cpu[0].outcome[IBS_OUTCOME_AGGREGATED] = samples;
	meta = pins_meta(pins);
	strcpy(meta->version, IBSCOPE_VERSION);
	strcpy(meta->event, "filled");
	strcpy(meta->source, "sim");
	/* a collector was away for an hour */
	meta->start_realtime_ns -= (BEFORE_S + 3600) * 1000000000ull;
	printf("%llu samples, %u words a slot\n", samples, layout.words);
	fflush(stdout);
	do {
		pins_write_begin(&meta->seq);
		meta->status.time_ns = clock_ns(CLOCK_BOOTTIME);
		meta->status.cpus = CPUS;
		meta->status.enabled_ns = (BEFORE_S + told++) * CPUS * 1000000000ull;
		pins_write_end(&meta->seq);
		if (grow || story) {
			/* readers wait while this is odd, as while groups are folded */
			__atomic_fetch_add(&state->control.fold, 1, __ATOMIC_SEQ_CST);
			for (__u32 slot = 1; slot <= groups; slot++) {
				__u64 *words = series + (size_t)slot * layout.words;

				samples += story ? tell_second(words, slot == 1 ? story : "same")
						 : grow_slot(words, slot,
							     meta->status.time_ns / 1000000000);
			}
			__atomic_store_n(&state->cpu[0].outcome[IBS_OUTCOME_AGGREGATED], samples,
					 __ATOMIC_SEQ_CST);
			__atomic_store_n(&state->cpu[0].seen, samples, __ATOMIC_SEQ_CST);
			__atomic_fetch_add(&state->control.fold, 1, __ATOMIC_SEQ_CST);
		}
		signal = sigtimedwait(&set, NULL, &second);
		if (signal == SIGUSR1)
			story = "slower";
	} while (signal < 0 || signal == SIGUSR1);
	pins_remove(pins);
	pins_close(pins);
	return 0;
}
