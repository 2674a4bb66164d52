// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "bench_reader.h"

#include "clock.h"
#include "recording.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

struct bench_reader {
	const struct bench *bench;
	struct sampler *sampler;
	struct recording *recording;
	pthread_t thread;
	_Atomic bool stop;
	struct bench_read read;
	int ret;
	struct err err;
};

int bench_recording(const struct bench *b, int fd, bool compress, struct recording **out,
		    struct err *err)
{
	const struct trace_pmu pmu = { .name = EVENT_DEFAULT, .op = true };
	struct trace_info info = { .source = b->source == SAMPLER_IBS ? "ibs" : "sim",
				   .simulated = b->source != SAMPLER_IBS,
				   .cpu = b->cpu_info,
				   .has_cpu = true,
				   .pmu = &pmu,
				   .n_pmus = 1 };
	const struct recording_opts opts = { .fd = fd, .info = &info, .compress = compress };

	if (b->source != SAMPLER_IBS)
		cpu_info_set(&info.cpu, "AuthenticAMD", 0x19, 0x11, b->ibs.caps);
	return recording_create(&opts, out, err);
}

int bench_to_recording(const struct record_batch *batch, void *recording, struct err *err)
{
	return batch->raw ? recording_samples_raw(recording, batch->raw, NULL, batch->n, err)
			  : recording_samples(recording, batch->records, NULL, batch->n, err);
}

static int read_until_told(struct bench_reader *r)
{
	struct rings *rings = sampler_rings(r->sampler);
	int ret = quiet_bind(r->bench->reader_cpu, &r->err);
	bool last = false;

	while (!ret && !last) {
		struct pollfd p = { .fd = rings_fd(rings), .events = POLLIN };

		poll(&p, 1, rings_delay_ms(rings));
		last = r->stop;
		ret = rings_drain(rings, last ? UINT64_MAX : clock_ns(CLOCK_MONOTONIC),
				  bench_to_recording, r->recording, &r->err);
		ret = ret ?: recording_flush(r->recording, NULL, &r->err);
	}
	return ret;
}

static void *read_all(void *arg)
{
	struct bench_reader *r = arg;

	r->ret = read_until_told(r);
	r->read.cpu_ns = clock_ns(CLOCK_THREAD_CPUTIME_ID);
	return NULL;
}

int bench_reader_start(const struct bench *b, struct sampler *s, int fd, struct bench_reader **out,
		       struct err *err)
{
	struct bench_reader *r = calloc(1, sizeof(*r));
	int ret;

	if (!r)
		return err_set(err, -ENOMEM, "out of memory");
	r->bench = b;
	r->sampler = s;
	ret = bench_recording(b, fd, false, &r->recording, err);
	if (!ret) {
		ret = -pthread_create(&r->thread, NULL, read_all, r);
		if (ret)
			err_set(err, ret, "cannot make a thread: %s", strerror(-ret));
	}
	if (ret) {
		recording_close(r->recording);
		free(r);
		return ret;
	}
	*out = r;
	return 0;
}

int bench_reader_end(struct bench_reader *r, struct bench_read *out, struct err *err)
{
	struct ledger ledger = {};
	struct pmu_state pmu;
	int ret;

	if (!r)
		return 0;
	r->stop = true;
	pthread_join(r->thread, NULL);
	ret = r->ret;
	if (ret)
		*err = r->err;
	ret = ret ?: sampler_ledger(r->sampler, &ledger, &pmu, err);
	r->read.cpu_ns -= clock_ns(CLOCK_THREAD_CPUTIME_ID); /* of this thread */
	ret = ret ?: recording_finish(r->recording, &ledger, err);
	r->read.cpu_ns += clock_ns(CLOCK_THREAD_CPUTIME_ID);
	r->read.records = rings_taken(sampler_rings(r->sampler));
	r->read.bytes = recording_bytes(r->recording);
	recording_close(r->recording);
	*out = r->read;
	free(r);
	return ret;
}
