// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Any bytes as what diff compares: the answer of a Prometheus server or an exporter, or a file of counts. No crash, finite
 * results, and whatever the names in it are: each line printed is text, JSON is JSON.
 *
 * The first byte says which, and how it is compared and printed. B follows a NUL byte, else it is A again.
 */
#include <fcntl.h>
#include <jansson.h>
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/utf8.h"
#include "diff/diff.h"

#define ROUNDS 16
#define NOW_S  2000 /* of the histories in the corpus */

/* bits of the first byte; the two lowest are the format, the next two enum diff_per */
#define COUNTS 0x10
#define FETCH  0x20
#define KEYS   0x40 /* those given rather than those of the counts */
#define PAGE   0x80 /* HTML instead */

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void need(int condition)
{
	if (!condition)
		abort();
}

static void check_text(const char *text)
{
	size_t n;

	for (; *text; text += n) {
		n = utf8_len(text);
		need(n > 0);
		need((unsigned char)*text >= ' ' || *text == '\n' || *text == '\t');
		need(*text != 0x7f && (n != 2 || memcmp(text, "\xc2\xa0", 2) >= 0));
	}
}

static int add_counts(struct diff *d, enum compare_side side, const char *text, size_t n,
		      struct err *err)
{
	int fd = memfd_create("fuzz", MFD_CLOEXEC), ret;
	char file[32];

	need(fd >= 0 && write(fd, text, n) == (ssize_t)n);
	snprintf(file, sizeof(file), "/proc/self/fd/%d", fd);
	d->about[side].file = "counts";
	ret = side == COMPARE_A ? diff_keys_of_counts(d, file, err) : 0;
	ret = ret ?: diff_add_counts(d, side, file, err);
	close(fd);
	return ret;
}

static int add(struct diff *d, enum compare_side side, bool counts, const char *text, size_t n,
	       struct err *err)
{
	/* the seconds of the answers in the corpus */
	const struct diff_window w = {
		.url = "http://localhost", .match = "", .from_s = 1000, .seconds = 300
	};

	if (counts)
		return add_counts(d, side, text, n, err);
	d->about[side].file = w.url;
	if (memmem(text, n, "\"intervals\"", 11))
		return diff_add_history_answer(d, side, &w, text, n, NOW_S, err);
	return diff_add_answer(d, side, &w, text, n, err);
}

/* A server can report more latencies than samples; a file of counts is refused then. */
static void check_result(const struct compare_result *r, bool counts)
{
	for (unsigned int s = 0; s < COMPARE_SIDES; s++)
		need(isfinite(r->side[s].y) && isfinite(r->side[s].base) &&
		     (!counts || r->side[s].valid <= r->side[s].samples));
	need(isfinite(r->change.change) && r->change.low <= r->change.high);
}

static void print(const struct diff *d, const struct compare_result *r, uint8_t how)
{
	struct screen screen;
	struct diff_print p = { .screen = &screen, .format = how % FORMAT_N };
	char *text = NULL;
	size_t n;
	json_t *j;
	FILE *f = open_memstream(&text, &n);

	need(f != NULL);
	screen_of(f, &screen);
	if (how & PAGE)
		diff_put_html(f, d, r);
	else
		diff_print(f, &p, d, r);
	need(!fclose(f) && strlen(text) == n);
	check_text(text);
	if (p.format == FORMAT_JSON && !(how & PAGE)) {
		j = json_loadb(text, n, JSON_DECODE_INT_AS_REAL, NULL);
		need(j != NULL);
		json_decref(j);
	}
	free(text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct diff d = { .by = { LABEL_CONTAINER, LABEL_CGROUP }, .n_by = 2, .n_causes = 1 };
	struct compare_result r = {};
	struct err err = { "" };
	const char *a, *b;
	size_t n_a, n_b;
	uint8_t how;
	int ret;

	if (!size)
		return 0;
	how = *data;
	a = (const char *)data + 1;
	n_a = strnlen(a, size - 1);
	b = n_a < size - 1 ? a + n_a + 1 : a;
	n_b = n_a < size - 1 ? size - 1 - n_a - 1 : n_a;
	d.per = how / 4 % 4 < DIFF_PER_N ? how / 4 % 4 : 0;
	d.metric = how & FETCH ? IBS_METRIC_FETCH_LAT : IBS_METRIC_DC_MISS_LAT;
	d.event = how & FETCH ? "ibs_fetch" : "ibs_op";
	d.causes[0] = how & FETCH ? LABEL_FETCH : LABEL_SRC;
	d.by_default = !(how & KEYS);
	d.causes_by_default = true;
	d.html = how & PAGE;
	d.max_memory = 1ULL << 46; /* that of sanitizers included */
	d.compare = compare_new(d.per == DIFF_PER_SECOND, ROUNDS);
	ret = add(&d, COMPARE_A, how & COUNTS, a, n_a, &err);
	ret = ret ?: add(&d, COMPARE_B, how & COUNTS, b, n_b, &err);
	ret = ret ?: diff_check(&d, &err);
	ret = ret ?: compare_finish(d.compare, &r, &err);
	need(!ret || ret == -EAGAIN || *err.text);
	if (!ret) {
		check_result(&r, how & COUNTS);
		print(&d, &r, how);
	}
	compare_result_free(&r);
	diff_reset(&d);
	return 0;
}
