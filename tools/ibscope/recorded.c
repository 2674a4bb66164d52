// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "recorded.h"

#include <errno.h>
#include <getopt.h>
#include <string.h>

static const char *const selecting[] = { "cpu",		"pid",	       "tid",	      "comm",
					 "cgroup",	"container",   "src",	      "op",
					 "min-lat",	"max-lat",     "user",	      "kernel",
					 "tlb",		"min-tlb-lat", "max-tlb-lat", "page-size",
					 "remote-node", "addr",	       "ip",	      "filter",
					 "explain",	"metric",      "verbose" };
static const char *const grouping[] = { "by", "max-groups", "max-memory" };

static int refuse_follow(void *ctx, const char *arg, struct err *err)
{
	(void)ctx;
	(void)arg;
	return err_set(err, -EINVAL,
		       "--follow: of a recording all processes are known: name the children too, "
		       "or select by --cgroup or --comm");
}

static void add_rows(struct recorded_options *o, const char *const *names, size_t n)
{
	for (size_t i = 0; i < n; i++)
		for (size_t row = 0; row < sampling_n_options && o->n < RECORDED_ROWS; row++)
			if (!strcmp(sampling_options[row].name, names[i]))
				o->rows[o->n++] = sampling_options[row];
}

void recorded_options(struct recorded_options *o, bool groups)
{
	memset(o, 0, sizeof(*o));
	add_rows(o, selecting, sizeof(selecting) / sizeof(selecting[0]));
	if (groups)
		add_rows(o, grouping, sizeof(grouping) / sizeof(grouping[0]));
	o->rows[o->n++] =
		(struct option_row){ "follow", 0, NULL,
				     "refused: a recording's processes are known", refuse_follow };
}

int recorded_parse(struct sampling *s, int argc, char **argv, const struct option_set *sets,
		   size_t n_sets, const char **file, struct err *err)
{
	const struct selection *sel = &s->opts.sel;
	int ret = options_parse(argc, argv, sets, n_sets, err);

	if (ret)
		return ret;
	ret = sampling_filter(s, err);
	if (ret)
		return ret;
	if (sel->max_lat && sel->min_lat > sel->max_lat)
		return err_set(err, -EINVAL, "--min-lat %u is above --max-lat %u", sel->min_lat,
			       sel->max_lat);
	if (s->explain)
		return 0;
	if (optind == argc)
		return err_set(err, -EINVAL,
			       "which recording? Give a file, or '-' for standard input");
	if (argc - optind > 1)
		return err_set(err, -EINVAL, "'%s': one recording at a time", argv[optind + 1]);
	*file = argv[optind];
	return 0;
}

void recorded_selection(struct sampling *s, struct replay_opts *out)
{
	*out = (struct replay_opts){
		.sampler = s->opts,
		.filter = s->filter.text ? &s->filter : NULL,
		.cgroups = s->cgroups,
		.n_cgroups = s->n_cgroups,
		.containers = s->containers,
		.n_containers = s->n_containers,
		.cpus = s->has_cpus ? &s->cpus : NULL,
	};
}

bool recorded_whole(const struct trace *t, const char *file)
{
	const struct trace_end *end = trace_end(t);

	if (end->whole)
		return true;
	log_error("%s is not whole: %s", file, end->missing);
	return false;
}
