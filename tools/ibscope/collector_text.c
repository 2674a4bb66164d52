// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "collector_text.h"

#include "clock.h"
#include "hist.h"
#include "metrics_governor.h"
#include "utf8.h"

void collector_print(FILE *f, const struct metrics_collector *c)
{
	const struct ibs_meta_status *st = &c->status;
	const struct ibs_meta *m = c->meta;
	const double ago_s = (clock_ns(CLOCK_BOOTTIME) - st->time_ns) / 1e9;
	const bool runs = metrics_collector_alive(m, st);

	if (m->layout.simulated)
		fprintf(f, "SIMULATED samples, not measurements\n");
	if (runs)
		fprintf(f, "collector: process %u, version %s, last tick %.1f s ago\n", m->pid,
			m->version, ago_s);
	else
		fprintf(f, "collector: not running since %.0f s; its counters are kept\n", ago_s);
	fprintf(f, "sampling: %s on %u CPUs, options: %s\n", m->event, st->cpus,
		*m->selection ? m->selection : "none");
	if (runs && *m->live) {
		fprintf(f, "set live: ");
		utf8_put(f, m->live);
		fputc('\n', f);
	}
	if (runs && *m->control)
		fprintf(f, "control: %s, %llu changes\n", m->control, st->live_changes);
	fprintf(f, "groups: %zu of %u, %llu folded, %llu displaced by busier ones\n", c->groups,
		m->layout.max_slots - 1, st->folded, st->displaced);
	fprintf(f,
		"machine: CPUs went offline %llu times and came %llu times, clock set %llu times, "
		"suspended %llu times, PMU shared %llu times\n",
		st->cpus_went, st->cpus_came, st->clock_steps, st->suspends, st->pmu_shared);
	fprintf(f, "memory: %.1f MiB of maps, %.1f MiB of the collector\n",
		st->memory_bytes / 1048576.0, st->rss_bytes / 1048576.0);
	if (st->bpf_runs)
		fprintf(f, "cost: %.0f ns a sample in BPF, %.1f s in all; collector %.1f s\n",
			(double)st->bpf_ns / st->bpf_runs, st->bpf_ns / 1e9, st->cpu_ns / 1e9);
	metrics_governor_text(f, st);
	fprintf(f, "ledger: ");
	ledger_print(f, &c->ledger);
	fprintf(f, "\n");
}

void collector_print_json(FILE *f, const struct metrics_collector *c)
{
	fprintf(f, "{\"runs\":%s", metrics_collector_alive(c->meta, &c->status) ? "true" : "false");
	metrics_collector_json(f, c);
	fprintf(f, "}\n");
}
