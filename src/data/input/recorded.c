// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "recorded.h"

#include "base/exit_status.h"
#include "base/screen.h"
#include "base/text.h"
#include "heap/heap_blocks.h"

#define PIPE_ROWS      20
#define MIN_ROWS       5
#define HEAD_LINES     16 /* of text, with the prompt after it */
#define PROBLEMS_SHOWN 10 /* files without symbols to name, unless -v */

static int check_strata(const struct recorded_input *in, const char *name, const struct trace *t,
			struct err *err)
{
	if (!trace_has_strata(trace_info(t)) || in->strata == RECORDED_SAMPLES)
		return 0;
	if (in->strata == RECORDED_NO_STRATA)
		return err_set(err, -EINVAL,
			       "%s was recorded with --strata, whose samples have different "
			       "weights, which this command cannot use; see `ibscope report`",
			       name);
	if (!trace_weights_known(t))
		return err_set(err, -ENODATA,
			       "%s was recorded with --strata, and has no complete slice of the "
			       "full stratum: what its samples represent is unknown; `ibscope "
			       "dump` shows them",
			       name);
	return 0;
}

int recorded_open(const struct recorded_input *in, struct trace **out, struct err *err)
{
	int ret;

	trace_limit_memory(in->max_memory);
	ret = trace_open(in->file, out, err);
	if (ret == -ENOENT && !strcmp(in->file, RECORDED_FILE))
		err_set(err, ret,
			"no file " RECORDED_FILE " here: `ibscope record` writes it; or name a "
			"recording");
	if (ret)
		return ret;
	ret = check_strata(in, recorded_name(in), *out, err);
	if (ret) {
		trace_close(*out);
		*out = NULL;
	}
	return ret;
}

const char *recorded_name(const struct recorded_input *in)
{
	return strcmp(in->file, "-") ? in->file : "standard input";
}

const char *recorded_again(const struct recorded_input *in)
{
	return *in->file == '-' ? "-" : in->file;
}

void recorded_selection(struct sampling_opts *s, struct replay_opts *out)
{
	const struct filter *filter = &s->select.filter[sampling_of_fetch(s)];

	*out = (struct replay_opts){
		.metric = s->event[0].metric,
		.max_groups = s->sampler.max_groups,
		.sel = sampling_selection(s, 0),
		.filter = filter->text ? filter : NULL,
		.cgroups = s->select.cgroups,
		.n_cgroups = s->select.n_cgroups,
		.containers = s->select.containers,
		.n_containers = s->select.n_containers,
		.cpus = s->has_cpus ? &s->cpus : NULL,
	};
}

bool recorded_left_out(enum ibs_metric metric, __u64 samples, char *buf, size_t size)
{
	const char *other = ibs_metric_of_fetch(metric) ? "ibs_op" : "ibs_fetch";

	snprintf(buf, size,
		 samples == 1 ? "%s sample of %s is left out; -e %s shows it"
			      : "%s samples of %s are left out; -e %s shows them",
		 TEXT_COUNT(samples), other, other);
	return samples != 0;
}

void recorded_nothing(struct replay *r, const char *of)
{
	struct replay_rest rest = {};
	struct snapshot snap = {};
	char text[512] = "";
	struct err err;
	size_t n = 0;

	if (r && !replay_snapshot(r, &snap, &err))
		replay_rest(r, &rest);
	if (rest.other_cpus)
		n = snprintf(text, sizeof(text), "cpu %s", TEXT_COUNT(rest.other_cpus));
	for (int o = 0; o < IBS_OUTCOME_N && n < sizeof(text); o++)
		if (outcome_kind(o) == IBS_OUTCOME_KIND_FILTERED && snap.ledger.outcome[o])
			n += snprintf(text + n, sizeof(text) - n, "%s%s %s", n ? ", " : "",
				      outcome_name(o), TEXT_COUNT(snap.ledger.outcome[o]));
	if (n)
		log_warn("no sample is selected; samples dropped by each part of the selection: %s",
			 text);
	else
		log_warn("no sample is selected: the recording has none%s%s", of ? " of " : "",
			 of ?: "");
	snapshot_free(&snap);
}

int recorded_open_replay(struct recorded *r, const struct replay_opts *opts, struct err *err)
{
	int ret = replay_open(r->trace, opts, &r->replay, err);

	r->usage = ret == -EINVAL || ret == -ERANGE;
	return ret;
}

static int start_selection(struct recorded *r, struct sampling_opts *s, struct err *err)
{
	struct replay_opts opts;

	recorded_selection(s, &opts);
	if (!replay_selects(&opts))
		return 0;
	return recorded_open_replay(r, &opts, err);
}

/* The second half of recorded_start(), after opening the recording. */
static int start(struct recorded *r, struct sampling_opts *s, bool names, bool symbols,
		 struct err *err)
{
	const bool heap = r->heap && trace_info(r->trace)->alloc_bytes;
	int ret = 0;

	names |= heap;
	symbols |= heap; /* of the code that allocated */
	r->kind = trace_kind_of(s->event[0].metric);
	r->head.options = r->options;
	r->head.file = recorded_name(&r->input);
	r->head.info = r->symbols_opts.info = trace_info(r->trace);
	trace_show_progress(r->trace);
	r->tasks = tasks_new();
	if (heap)
		tasks_keep_heap(r->tasks);
	else
		trace_skip_allocs(r->trace);
	if (names || r->head.info->job_ranks)
		ret = tasks_read(r->tasks, r->trace, err);
	trace_skip_allocs(r->trace); /* the heap has them now */
	if (!ret && symbols)
		ret = symbols_new(&r->symbols_opts, &r->symbols, err);
	if (!ret && symbols && r->places && (!r->places_last || heap))
		ret = symbols_read_stacks(r->symbols, r->tasks, r->trace, err);
	return ret ?: start_selection(r, s, err);
}

int recorded_start(struct recorded *r, struct sampling_opts *s, bool names, bool symbols,
		   struct err *err)
{
	int ret = recorded_open(&r->input, &r->trace, err);

	return ret ?: start(r, s, names, symbols, err);
}

int recorded_next(struct recorded *r, struct trace_event *ev, struct err *err)
{
	struct report_head *h = &r->head;
	int ret;

	while ((ret = trace_next(r->trace, ev, err)) > 0) {
		if (ev->kind == TRACE_LOST)
			*(ev->lost.samples ? &h->lost_samples : &h->lost_records) += ev->lost.n;
		if (ev->kind != TRACE_SAMPLE_OP && ev->kind != TRACE_SAMPLE_FETCH)
			continue;
		*(ev->kind == TRACE_SAMPLE_OP ? &h->op_samples : &h->fetch_samples) += 1;
		if (r->places_last && !tasks_heap(r->tasks))
			symbols_learn_stack(r->symbols, r->tasks, ev);
		if (ev->kind != r->kind)
			continue;
		if (r->symbols)
			symbols_note_container(r->symbols, r->tasks, ev);
		ret = r->replay ? replay_judge(r->replay, ev, err) : 1;
		if (!ret)
			continue;
		h->selected += ret > 0;
		return ret;
	}
	h->end = trace_end(r->trace);
	return ret;
}

void recorded_losses(const struct report_head *h)
{
	__u64 lost = h->lost_samples;
	char text[128];

	if (h->end->has_ledger && ledger_sum(&h->end->ledger, IBS_OUTCOME_KIND_LOST) > lost)
		lost = ledger_sum(&h->end->ledger, IBS_OUTCOME_KIND_LOST);
	if (lost)
		log_warn("%s: %s samples were lost while recording", h->file, TEXT_COUNT(lost));
	if (h->lost_records) {
		trace_lost_text(h->info, h->lost_records, text, sizeof(text));
		log_warn("%s: %s", h->file, text);
	}
}

static void show_problem(const char *text, void *arg)
{
	size_t *n = arg;

	if ((*n)++ < PROBLEMS_SHOWN || log_is_verbose())
		log_warn("no symbols for %s", text);
}

/* Why samples may be in memory that was not noted. */
static void show_heap_problems(const struct recorded *r)
{
	const struct heap *heap = tasks_heap(r->tasks);
	__u64 left_out, lost;

	if (!heap)
		return;
	lost = trace_end(r->trace)->lost_allocs;
	left_out = heap_counts(heap).left_out;
	if (left_out)
		log_warn("%s allocations and frees are too many to keep: from the first of them "
			 "on, memory counts as not noted",
			 TEXT_COUNT(left_out));
	if (lost)
		log_warn("%s allocations and frees were lost while recording", TEXT_COUNT(lost));
}

void recorded_problems(const struct recorded *r)
{
	size_t n = 0;

	show_heap_problems(r);
	if (!r->symbols)
		return;
	symbols_problems(r->symbols, show_problem, &n);
	if (n > PROBLEMS_SHOWN && !log_is_verbose())
		log_warn("no symbols for %zu more files; -v names them", n - PROBLEMS_SHOWN);
}

int recorded_status(const struct recorded *r, int ret, const struct err *err)
{
	const struct trace_end *end;

	if (ret) {
		if (ret == -ENOMEM && out_of_memory_message)
			out_of_memory_message(out_of_memory_arg);
		else
			log_error("%s", err->text);
		return r->usage ? EXIT_USAGE : EXIT_FAILED;
	}
	recorded_problems(r);
	end = trace_end(r->trace);
	if (!end->whole)
		log_error("%s is incomplete: %s", recorded_name(&r->input), end->missing);
	return end->whole ? EXIT_DONE : EXIT_FAILED;
}

static void close_trace(struct recorded *r)
{
	replay_close(r->replay);
	symbols_free(r->symbols);
	tasks_free(r->tasks);
	trace_close(r->trace);
	r->replay = NULL;
	r->symbols = NULL;
	r->tasks = NULL;
	r->trace = NULL;
	r->head = (struct report_head){};
}

/* Kept after one of several recordings is closed. */
struct recorded_part {
	struct trace_info *info; /* one allocation, with pmu and end after it */
	struct trace_pmu *pmu;
	struct trace_end *end;
};

int recorded_list(struct recorded *r, struct err *err)
{
	char *const one[] = { (char *)r->input.file };
	char *const *files = r->input.n_files > 1 ? r->input.files : one;
	int n = r->input.n_files > 1 ? r->input.n_files : 1, ret = 0;

	for (int i = 0; i < n && !ret; i++)
		ret = trace_parts_add(files[i], &r->parts, &r->n_parts, err);
	r->job = trace_job_new();
	return ret;
}

static void keep_head(struct recorded *r)
{
	const struct trace_info *info = trace_info(r->trace);
	const size_t pmus = info->n_pmus * sizeof(*info->pmu);
	struct recorded_part *p;

	r->done = xrealloc(r->done, (r->n_done + 1) * sizeof(*r->done));
	r->done_heads = xrealloc(r->done_heads, (r->n_done + 1) * sizeof(*r->done_heads));
	p = &r->done[r->n_done];
	p->info = xcalloc(1, sizeof(*p->info) + sizeof(*p->end) + pmus);
	p->end = (struct trace_end *)(p->info + 1);
	p->pmu = (struct trace_pmu *)(p->end + 1);
	*p->info = *info;
	*p->end = *r->head.end;
	memcpy(p->pmu, info->pmu, pmus);
	p->info->pmu = p->pmu;
	p->info->topology = NULL;
	p->info->memory = NULL;
	p->info->n_memory = 0;
	r->done_heads[r->n_done] = r->head;
	r->done_heads[r->n_done].info = p->info;
	r->done_heads[r->n_done++].end = p->end;
}

void recorded_end_part(struct recorded *r)
{
	if (!r->n_done)
		recorded_problems(r);
	if (!r->head.end->whole)
		log_warn("%s is incomplete: %s", r->head.file, r->head.end->missing);
	keep_head(r);
	close_trace(r);
}

/* With strata, buckets and means are of weights: a sum of both kinds would be of neither. */
static int check_part(const struct recorded *r, const char *name, struct err *err)
{
	const bool strata = trace_has_strata(trace_info(r->trace));
	const int ret = check_strata(&r->input, name, r->trace, err);

	if (!ret && r->n_done && trace_has_strata(r->done[0].info) != strata)
		return err_set(err, -EINVAL,
			       "%s was recorded %s --strata, unlike %s: report it by itself", name,
			       strata ? "with" : "without", r->done_heads[0].file);
	return ret;
}

int recorded_start_part(struct recorded *r, size_t part, struct sampling_opts *s, bool symbols)
{
	const struct trace_part *p = &r->parts[part];
	struct err err = { "" };
	int ret;

	trace_limit_memory(r->input.max_memory);
	ret = trace_part_open(p, &r->trace, &err);

	ret = ret ?: check_part(r, p->name, &err);
	ret = ret ?: start(r, s, true, symbols, &err);
	if (!ret && trace_job_add(r->job, p->name, trace_info(r->trace), r->tasks)) {
		r->head.file = p->name;
		return 1;
	}
	if (ret)
		log_warn("%s: left out", err.text);
	close_trace(r);
	r->left_out = true;
	return 0;
}

int recorded_sum(struct recorded *r, struct err *err)
{
	struct trace_info *info = &r->sum_info;
	struct trace_end *end = &r->sum_end;
	struct report_head *sum = &r->head;

	if (!r->n_done)
		return err_set(err, -ENODATA, "none of the %zu recordings can be read", r->n_parts);
	r->left_out |= !trace_job_complete(r->job);
	*info = *r->done[0].info;
	*end = (struct trace_end){ .whole = true, .has_ledger = true, .ledger.pmu_exact = true };
	end->n_ledgers = r->done_heads[0].end->n_ledgers;
	for (unsigned int e = 0; e < end->n_ledgers; e++)
		end->event_ledger[e].pmu_exact = true;
	*sum = (struct report_head){ .file = recorded_name(&r->input),
				     .info = info,
				     .end = end,
				     .options = r->options,
				     .part = r->done_heads,
				     .n_parts = r->n_done };
	info->n_cpus = 0;
	for (size_t i = 0; i < r->n_done; i++) {
		const struct report_head *h = &r->done_heads[i];

		info->n_cpus += h->info->n_cpus;
		info->simulated |= h->info->simulated;
		if (strcmp(info->source, h->info->source))
			info->source = "mixed";
		if (strcmp(info->host, h->info->host))
			info->host[0] = 0;
		if (strcmp(info->filter, h->info->filter))
			info->filter[0] = 0;
		sum->op_samples += h->op_samples;
		sum->fetch_samples += h->fetch_samples;
		sum->selected += h->selected;
		sum->lost_samples += h->lost_samples;
		sum->lost_records += h->lost_records;
		end->whole &= h->end->whole;
		end->has_ledger &= h->end->has_ledger;
		end->skipped_blocks += h->end->skipped_blocks;
		end->skipped_bytes += h->end->skipped_bytes;
		ledger_add(&end->ledger, &h->end->ledger, 1);
		if (end->n_ledgers != h->end->n_ledgers)
			end->n_ledgers = 0;
		for (unsigned int e = 0; e < end->n_ledgers; e++)
			ledger_add(&end->event_ledger[e], &h->end->event_ledger[e], 1);
	}
	if (!end->whole)
		snprintf(end->missing, sizeof(end->missing),
			 "some of the recordings are incomplete");
	return 0;
}

void recorded_close(struct recorded *r)
{
	close_trace(r);
	for (size_t i = 0; i < r->n_done; i++)
		free(r->done[i].info);
	free(r->done);
	free(r->done_heads);
	trace_parts_free(r->parts, r->n_parts);
	trace_job_free(r->job);
	free(r->options);
}

size_t recorded_rows(const struct screen *screen)
{
	if (!screen->height)
		return PIPE_ROWS;
	return screen->height > HEAD_LINES + MIN_ROWS ? screen->height - HEAD_LINES : MIN_ROWS;
}
