/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The options of a collector, from its command line, its file and the live settings. */
#ifndef IBSCOPE_COLLECTOR_SETTINGS_H
#define IBSCOPE_COLLECTOR_SETTINGS_H

#include "control.h"

#include "cgroup/cgroup.h"
#include "base/choice.h"
#include "base/options.h"
#include "flight/flight.h"
#include "session/session.h"

#include <ibscope/pin_layout.h>

/* --- live options: set while a collector runs; they override file and command line --- */

struct live_option {
	char *name;
	char *value; /* NULL: the option takes none; "": its default */
	uid_t uid;   /* user that set it */
	time_t when; /* time when it was set */
};

/* Names can occur repeatedly, like options. The zero value is empty. */
struct live_options {
	struct live_option *one;
	size_t n, room;
};

void live_options_copy(struct live_options *to, const struct live_options *from);

/* Set the lines of a request; they override earlier ones of the same names. */
void live_options_set(struct live_options *l, const struct control_request *r);

/* Return: whether the option was set. */
bool live_options_unset(struct live_options *l, const char *name);

/* Return: whether both set the option to the same values. */
bool live_options_same(const struct live_options *a, const struct live_options *b,
		       const char *name);

/* For option_set.skip: true if a live option overrides @name. @arg: a struct live_options */
bool live_options_hide(void *arg, const char *name);

/* Return: 0, or a negative errno with @err. */
int live_options_apply(const struct live_options *l, const struct option_set *sets, size_t n_sets,
		       struct err *err);

void live_options_free(struct live_options *l);

/* --- all options --- */

struct collector_settings;

/* Additional options of the program that runs a collector. */
struct collector_extra {
	const char *title;
	const struct option_row *rows;
	size_t n;
	size_t size; /* size of the context of the rows, which is zeroed before each parse */
	/* May derive settings from @set->extra. Return: 0, or a negative errno with @err. */
	int (*check)(struct collector_settings *set, struct err *err);
};

struct collector_opts {
	int argc;
	char **argv;			     /* kept */
	const struct collector_extra *extra; /* NULL: no other options */
	/* Called before the sampler is closed and another one opened; may be NULL. */
	void (*closing)(void *arg);
	void *arg;
};

#define COLLECTOR_EVENTS SESSION_EVENTS

struct collector_settings {
	struct sampling_opts sampling; /* with two events, the first is ibs_op */
	const char *config;	       /* NULL: none */
	bool config_check, unpin;
	char pin_dir[256];
	mode_t pin_mode;
	double grace_s; /* how long to keep the series of a removed cgroup */
	double lease_s; /* how long sampling continues if the collector is killed; 0: without end */
	char control[sizeof(((struct ibs_meta *)0)->control)]; /* or "none" */
	bool control_given;
	char user_socket[CONTROL_PATH_MAX + 1]; /* or "none" */
	char user_jobs[CGROUP_PATTERN_MAX];	/* "": no pattern */
	mode_t control_mode;
	double max_overhead; /* share of the CPUs' time; 0: no budget */
	bool overhead_given;
	double nmi_ns;	   /* 0: measure it */
	double max_bpf_ns; /* mean run of the program; 0: no limit */
	bool bpf_time_given;
	__u64 max_rss_bytes; /* 0: the default */
	struct flight_opts flight;
	void *extra;
};

/* Where options come from. */
struct settings_source {
	int argc;
	char **argv;
	char *config_text; /* contents of --config at the last read */
	size_t config_size;
	const struct collector_extra *extra; /* NULL: none */
};

/* Read the file of --config. The caller frees the previous text. */
int settings_read_config(struct settings_source *src, struct err *err);

/**
 * settings_parse() - parse file, command line and live options, in this order
 *
 * Return: 0, OPTIONS_HELP, or a negative errno with @err; call settings_close() in any case.
 */
int settings_parse(const struct settings_source *src, const struct live_options *live,
		   struct collector_settings *out, struct err *err);

/* NULL: unknown option; @near is then offered all names. */
const struct option_row *settings_find_option(const struct settings_source *src, const char *name,
					      struct suggestion *near);

void settings_help(const struct settings_source *src, FILE *f);

/* The command line as one text for readers. */
void settings_command_line(const struct settings_source *src, char *out, size_t size);

void settings_close(struct collector_settings *s);

#endif
