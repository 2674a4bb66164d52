/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What is said of cgroups on the command line, and the cgroups that fit it now. */
#ifndef IBSCOPE_CGROUP_TERMS_H
#define IBSCOPE_CGROUP_TERMS_H

#include "container.h"
#include "sampling_private.h"

/* Within a kind one that fits is enough, and one to leave out wins; all kinds there are must agree. */
enum term_kind {
	TERM_CGROUP,
	TERM_CONTAINER,
	TERM_SELECTS,
	TERM_FILTER = TERM_SELECTS,
};
#define TERM_SELECTING (1U << TERM_CGROUP | 1U << TERM_CONTAINER)

/* One of the list of an option, or one cgroup or container of the filter. */
struct term {
	enum term_kind kind;
	const char *option; /* for messages */
	char *text;
	bool container, pattern, out;
	__u16 min_lat;
	__u8 filter;
	char id[CONTAINER_ID_LEN + 1]; /* of a container: what its first digits came to */
};

struct cgroup_terms {
	struct term *term;
	size_t n;
	unsigned int kinds; /* 1 << enum term_kind that there are */
	unsigned int wants; /* of them, those that name what to keep */
	bool containers, labels, warned;
	struct selected_cgroup *selected;
	size_t n_selected;
	uint64_t changes; /* of the tree, when it was last looked through */
	size_t nameless;  /* containers whose names were not known then */
	double looked_s, cost_s;
};

/* A cgroup that fits a term. */
struct hit {
	__u64 id;
	char *path; /* NULL with one kind alone, or if not known */
	const struct term *term;
	bool by_id; /* by its first digits: counts only if nothing has that name */
	char container[CONTAINER_ID_LEN + 1];
};

struct hits {
	struct hit *hit;
	size_t n, room;
};

struct look {
	struct sampling *s;
	struct hits hits;
	const struct term *term; /* of a pattern of paths */
	bool paths;		 /* are needed */
};

/* Has it what patterns have? */
bool cgroup_term_is_pattern(const char *text);

/* All cgroups that fit, to l->hits, also on failure. Return: 0 or -ENOMEM. */
int hits_look(struct look *l);
void hits_free(struct hits *h);

/**
 * hits_select() - what the sampler is to be told; several hits of a cgroup are one entry
 * @h: is put in order of ids
 *
 * Return: 0, the caller frees *out; or -ENOMEM.
 */
int hits_select(struct cgroup_terms *ts, struct hits *h, struct selected_cgroup **out,
		size_t *n_out);

#endif
