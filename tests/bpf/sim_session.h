/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* A session of the simulation on CPU 0, made from words of a command line. After cmocka.h. */
#ifndef IBSCOPE_TESTS_SIM_SESSION_H
#define IBSCOPE_TESTS_SIM_SESSION_H

#include "base/clock.h"
#include "bind_to.h"
#include "session/session_private.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define OPTIONS 32 /* of a test */

static struct sampling_opts o,
	used[OPTIONS + 1]; /* a session uses the lists of those that it was given */
static unsigned int n_used;
static struct session *s;
static struct err err;

/* --- options and messages --- */

static inline int parse_words(int n, const char *const *words)
{
	const struct option_set sets[] = {
		{ "Sampling", sampling_options, sampling_n_options, &o },
		{ "Selection", select_option_rows, select_option_n_rows, &o.select },
	};
	char *argv[24] = { (char *)"hist", (char *)"--source", (char *)"sim", (char *)"-C",
			   (char *)"0" };

	memcpy(argv + 5, words, n * sizeof(*words));
	assert_true(n_used < OPTIONS);
	used[n_used++] = o;
	sampling_init(&o);
	o.takes_two = true;
	err = (struct err){ "" };
	return options_parse(n + 5, argv, sets, 2, &err) ?: sampling_check(&o, &err);
}

#define PARSE(...)                                                        \
	do {                                                              \
		static const char *const words_[] = { __VA_ARGS__ };      \
                                                                          \
		if (parse_words(sizeof(words_) / sizeof(char *), words_)) \
			fail_msg("%s", err.text);                         \
	} while (0)

static char *said;
static size_t said_bytes;
static FILE *log_file;

static inline void listen(void)
{
	log_file = open_memstream(&said, &said_bytes);
	log_to(log_file);
}

/* Return: what was said since listen(), until the next one. */
static inline const char *heard(void)
{
	static char text[8192];

	if (!log_file)
		return "";
	fclose(log_file);
	log_file = NULL;
	log_to(NULL);
	snprintf(text, sizeof(text), "%s", said);
	free(said);
	return text;
}

static inline int new_session(void **state)
{
	(void)state;
	s = session_new();
	listen();
	return 0;
}

static inline int free_session(void **state)
{
	(void)state;
	session_free(s);
	used[n_used++] = o;
	while (n_used)
		sampling_free(&used[--n_used]);
	o = (struct sampling_opts){};
	heard();
	return 0;
}

static inline void open_it(void)
{
	if (session_open(s, &o, &err))
		fail_msg("%s", err.text);
}

static inline void run_for(double seconds)
{
	const double end = now_s() + seconds;

	while (now_s() < end)
		;
}

static inline struct snapshot snapshot(unsigned int n)
{
	struct snapshot snap;

	if (sampler_snapshot(session_event(s, n)->sampler, &snap, &err))
		fail_msg("%s", err.text);
	return snap;
}

static inline __u64 seen(unsigned int n)
{
	struct snapshot snap = snapshot(n);
	const __u64 samples = snap.ledger.seen;

	snapshot_free(&snap);
	return samples;
}

/* False, with a reason, where nothing can be sampled. */
static inline bool can_sample(void)
{
	int ret;

	bind_to(0);
	PARSE("-c", "1000000");
	s = session_new();
	listen();
	ret = session_open(s, &o, &err);
	free_session(NULL);
	if (ret)
		printf("skipped: %s\n", err.text);
	return !ret;
}

#endif
