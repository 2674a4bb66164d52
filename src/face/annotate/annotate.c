// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "annotate.h"

#include "base/choice.h"
#include "disasm/disasm.h"
#include "report/report.h"
#include "table/table.h"

#include <ibscope/op_fields.h>
#include <math.h>

#define CALLERS_VALID 100 /* latencies: those of fewer samples say little */
#define OTHERS_MAX    8	  /* maximum number of files named in a message */

/* X(COLUMN, "name", digits, COLUMN_*, value of sums `s`, "meaning") */
#define COLUMNS(X)                                                                               \
	X(SAMPLES, "samples", 0, 0, s->samples, "samples")                                       \
	X(SAMPLE_SHARE, "sample_share", 0, 0, ratio(s->samples, total->samples),                 \
	  "share of the function's samples")                                                     \
	X(INSTRUCTION_CYCLES, "miss_cycles", 0, 0,                                               \
	  s->valid && s->no_period ? (double)NAN : s->cycles,                                    \
	  "latency x ops that a sample represents")                                              \
	X(LOW, "low", 0, 0, interval_of(s).low, "lower end of the 95 % interval of miss_cycles") \
	X(HIGH, "high", 0, 0, interval_of(s).high, "upper end of it")                            \
	X(SHARE, "share", 0, 0, ratio(s->cycles, total->cycles),                                 \
	  "share of the function's miss cycles")                                                 \
	X(SHARE_LOW, "share_low", 0, 0, share_interval_of(s, total).low,                         \
	  "lower end of the 95 % interval of share")                                             \
	X(SHARE_HIGH, "share_high", 0, 0, share_interval_of(s, total).high, "upper end of it")   \
	X(INSTRUCTION_MEAN, "mean", 0, 0, ratio(s->sum, s->timed), "mean latency, cycles")       \
	X(DRAM, "dram", 0, 0, ratio(s->dram, s->known),                                          \
	  "share of the row's miss cycles for data from DRAM")                                   \
	X(REMOTE, "remote", 0, 0, ratio(s->remote, s->known),                                    \
	  "share of the row's miss cycles for data from other nodes")                            \
	X(HITM, "hitm", 0, 0, s->states || !s->cached ? ratio(s->hitm, s->known) : (double)NAN,  \
	  "share of the row's miss cycles for lines that another cache had modified")            \
	X(WALK, "walk", 0, 0, ratio(s->walks, s->accesses),                                      \
	  "share of loads and stores that walked page tables")                                   \
	X(MISPREDICTED, "mispredicted", 0, 0, ratio(s->mispredicted, s->branches),               \
	  "share of retired branches that were mispredicted")

static const struct column columns[] = { COLUMNS(COLUMN_ROW) };
const struct columns annotate_columns = { columns, ARRAY_SIZE(columns), .exact = true };

struct annotate *annotate_new(const struct annotate_opts *opts)
{
	struct annotate *a = xcalloc(1, sizeof(*a));

	a->opts = *opts;
	return a;
}

static void free_function(struct annotate_function *f)
{
	free(f->sums);
	free(f->callers);
	u64_map_free(&f->of);
	u64_map_free(&f->caller_of);
}

void annotate_free(struct annotate *a)
{
	if (!a)
		return;
	for (size_t i = 0; i < a->n; i++)
		free(a->row[i].text);
	for (size_t i = 0; i < a->n_functions; i++)
		free_function(&a->function[i]);
	free(a->row);
	free(a->function);
	intern_free(&a->names);
	intern_free(&a->callers);
	intern_free(&a->paths);
	u64_map_free(&a->named);
	free(a);
}

static double ratio(__u64 part, __u64 all)
{
	return all ? (double)part / all : (double)NAN;
}

static const struct bounds unknown = { NAN, NAN };

static struct bounds interval_of(const struct annotate_sums *s)
{
	return !s->valid || s->no_period ? unknown : estimate_interval(&s->waits, 0);
}

static struct bounds share_interval_of(const struct annotate_sums *s,
				       const struct annotate_sums *total)
{
	return s->valid ? estimate_share(&s->waits, &total->waits) : unknown;
}

double annotate_value(const struct annotate_sums *s, const struct annotate_sums *total,
		      enum table_column column)
{
	switch (column) {
		COLUMNS(COLUMN_CASE)
	default:
		return NAN;
	}
}

/* @n: as many samples of one weight the sample counts for */
static void add_wait(struct annotate_sums *s, const struct report_wait *w, __u64 n)
{
	s->valid++;
	s->timed += n;
	s->sum += n * w->lat;
	s->cycles += w->cycles;
	estimate_add(&s->waits, w->cycles);
	s->known += w->known ? w->cycles : 0;
	s->dram += table_is_dram(w->src) ? w->cycles : 0;
	s->remote += table_is_remote(w->src) ? w->cycles : 0;
	s->cached += w->cached;
	s->states += w->has_state;
	s->hitm += w->hitm ? w->cycles : 0;
}

static void add_caller(struct annotate *a, struct annotate_function *f,
		       const struct trace_event *ev, __u64 cycles)
{
	struct object_name name = { 0 };
	__u32 key = 0, i;

	if (report_caller(a->opts.symbols, a->opts.tasks, ev, &name))
		key = 1 + intern_get(&a->callers, name.mangled ?: name.name);
	i = u64_map_get(&f->caller_of, key);
	if (i == U64_MAP_NONE) {
		i = f->n_callers++;
		array_reserve_zero(f->callers, f->callers_room, f->n_callers);
		u64_map_put(&f->caller_of, key, i);
		f->callers[i] =
			(struct annotate_caller){ .name = name.name, .mangled = name.mangled };
	}
	f->callers[i].samples++;
	f->callers[i].cycles += cycles;
}

/* Return: the miss cycles of the sample. */
static __u64 add_sums(struct annotate_sums *s, const struct annotate *a,
		      const struct trace_event *ev)
{
	const struct ibs_op_sample *op = &ev->sample.op;
	struct report_wait w = { 0 };
	enum report_unit unit;
	__u64 period, n, yes;

	s->samples++;
	s->memory += trace_accesses_memory(ev);
	s->stores += ibs_op_field(op, IBS_OP_FIELD_ST_OP, &yes) && yes &&
		     ibs_op_field(op, IBS_OP_FIELD_LD_OP, &yes) && !yes;
	period = report_period(a->opts.info, ev, &unit);
	n = trace_has_strata(a->opts.info) ? period : 1;
	if (report_wait(a->opts.metric, &ev->sample, period, &w)) {
		s->no_period |= !period;
		add_wait(s, &w, n);
	} else {
		w.cycles = 0;
	}
	if (ibs_op_field(op, IBS_OP_FIELD_DC_L1TLB_MISS, &yes)) {
		s->accesses += n;
		s->walks += ibs_op_field(op, IBS_OP_FIELD_DC_L2TLB_MISS, &yes) && yes ? n : 0;
	}
	if (ibs_op_field(op, IBS_OP_FIELD_OP_BRN_MISP, &yes)) {
		s->branches += n;
		s->mispredicted += yes ? n : 0;
	}
	return w.cycles;
}

static struct annotate_function *function_of(struct annotate *a, __u32 name,
					     const struct symbol_code *code)
{
	const __u32 last = u64_map_get(&a->named, name);
	struct annotate_function *f;

	for (__u32 i = last; i != U64_MAP_NONE; i = f->next) {
		f = &a->function[i];
		if (f->code.object == code->object && f->code.start == code->start)
			return f;
	}
	array_reserve(a->function, a->room, a->n_functions + 1);
	u64_map_put(&a->named, name, a->n_functions);
	f = &a->function[a->n_functions++];
	*f = (struct annotate_function){ .code = *code, .name = name, .next = last };
	return f;
}

static bool is_asked_for(const char *object, const char *path)
{
	const char *last = path ? strrchr(path, '/') : NULL;

	return !object || (path && !strcmp(path, object)) || (last && !strcmp(last + 1, object));
}

static bool is_named(const struct annotate *a, const char *name, const char *mangled)
{
	return !strcmp(name, a->opts.name) || (mangled && !strcmp(mangled, a->opts.name));
}

/* Where the function is if it has no code of its own. */
static void find_inlined(struct annotate *a, const struct symbol *sym)
{
	const struct inlined *f = a->opts.name && !a->n_functions && !a->inlined_into
					  ? symbols_inlined(a->opts.symbols, sym)
					  : NULL;

	for (; f && !a->inlined_into; f = f->into)
		if (is_named(a, f->function.name, f->function.mangled))
			a->inlined_into = sym->name;
}

void annotate_add(struct annotate *a, const struct trace_event *ev)
{
	const struct trace_sample *s = &ev->sample;
	struct annotate_function *f;
	struct symbol_code code;
	struct symbol sym;
	__u32 i, name = 0;
	__u64 cycles;

	if (ev->kind != TRACE_SAMPLE_OP) {
		a->fetches += ev->kind == TRACE_SAMPLE_FETCH;
		return;
	}
	if (!trace_sample_is_exact(s)) {
		a->inexact++;
		return;
	}
	symbols_find(a->opts.symbols, a->opts.tasks, s->tgid, s->ip, ev->time, s->kernel, false,
		     &sym);
	if (*sym.name != '[')
		name = intern_get(&a->names, sym.name);
	if (*sym.name == '[' || (a->opts.name && !is_named(a, sym.name, sym.mangled)) ||
	    !symbols_code(a->opts.symbols, a->opts.tasks, s->tgid, s->ip, ev->time, s->kernel,
			  &code)) {
		a->elsewhere++;
		find_inlined(a, &sym);
		return;
	}
	f = function_of(a, name, &code);
	i = u64_map_get(&f->of, code.at);
	if (i == U64_MAP_NONE) {
		i = f->n++;
		array_reserve_zero(f->sums, f->room, f->n);
		u64_map_put(&f->of, code.at, i);
	}
	add_sums(&f->sums[i], a, ev);
	cycles = add_sums(&f->total, a, ev);
	if (trace_has_chains(a->opts.info))
		add_caller(a, f, ev, cycles);
}

/* Functions of the requested object first, then by cost. */
static int compare(const void *pa, const void *pb, void *object)
{
	const struct annotate_function *a = pa, *b = pb;
	int mine = is_asked_for(object, b->code.dso) - is_asked_for(object, a->code.dso);

	if (mine)
		return mine;
	if (a->total.cycles != b->total.cycles)
		return a->total.cycles > b->total.cycles ? -1 : 1;
	if (a->total.samples != b->total.samples)
		return a->total.samples > b->total.samples ? -1 : 1;
	return a->code.start < b->code.start ? -1 : a->code.start > b->code.start;
}

static int refuse_object(const struct annotate *a, struct err *err)
{
	char files[512] = "";
	size_t n = 0;

	for (size_t i = 0; i < a->n_functions && i < OTHERS_MAX && n < sizeof(files); i++)
		n += snprintf(files + n, sizeof(files) - n, "%s%.100s", i ? ", " : "",
			      a->function[i].code.dso);
	return err_set(err, -ENOENT, "--object: no sample of '%s' is in '%s'; there are some in %s",
		       a->function[0].code.name, a->opts.object, files);
}

static int refuse_name(const struct annotate *a, struct err *err)
{
	struct suggestion near;

	if (!a->opts.name)
		return err_set(err, -ENOENT,
			       "no sample has an exact address in a known function; "
			       "`ibscope report --by symbol,dso` prints where they are");
	if (intern_find(&a->names, a->opts.name) != INTERN_NONE)
		return err_set(err, -ENOENT,
			       "the code of '%s' is in no file: a process generated it",
			       a->opts.name);
	if (a->inlined_into)
		return err_set(
			err, -ENOENT,
			"'%s' has no code of its own: it is inlined into '%s'; annotate that",
			a->opts.name, a->inlined_into);
	suggestion_start(&near, a->opts.name, strlen(a->opts.name));
	for (size_t i = 0; i < a->names.n; i++)
		suggestion_offer(&near, intern_text(&a->names, i));
	return err_set(
		err, -ENOENT, "no sample is in a function '%s'%s", a->opts.name,
		near.best ? suggestion_text(&near)
			  : "; `ibscope report --by symbol,dso` prints those that have samples");
}

/* Find the sums of a row's address. */
static const struct annotate_sums *sums_at(const struct annotate_function *f, __u64 addr)
{
	__u32 i = u64_map_get(&f->of, addr);

	return i == U64_MAP_NONE ? NULL : &f->sums[i];
}

static char *text_of(const struct annotate *a, const struct insn *in)
{
	const struct symbol_code *code = &a->function[0].code;
	const char *name = NULL;

	if (in->has_target && in->target - code->start >= code->size)
		name = symbols_code_name(a->opts.symbols, code, in->target);
	return name ? xasprintf("%s <%s>", in->text, name) : xstrdup(in->text);
}

static const char *path_of(struct annotate *a, const struct source_place *place)
{
	bool relative = *place->file != '/' && place->dir;
	char path[4096];

	snprintf(path, sizeof(path), "%s%s%s", relative ? place->dir : "", relative ? "/" : "",
		 place->file);
	return intern_text(&a->paths, intern_get(&a->paths, path));
}

/* Return: length of the instruction; 1 if it is invalid. */
static unsigned int add_row(struct annotate *a, struct disasm *d, const unsigned char *bytes,
			    __u64 addr, bool inside)
{
	const struct annotate_function *f = &a->function[0];
	struct source_place place;
	struct annotate_row *r;
	struct insn in;

	if (!disasm_decode(d, bytes, f->code.start + f->code.size - addr, addr, &in)) {
		in.len = 1;
		snprintf(in.text, sizeof(in.text), ".byte 0x%02x", *bytes);
	}
	array_reserve(a->row, a->rows_room, a->n + 1);
	r = &a->row[a->n++];
	*r = (struct annotate_row){ .addr = addr,
				    .len = in.len,
				    .inside = inside,
				    .text = text_of(a, &in),
				    .data = { .kind = TYPE_NO_ACCESS },
				    .sums = sums_at(f, addr),
				    .inlined =
					    symbols_code_inlined(a->opts.symbols, &f->code, addr) };
	/* an access of the stack is not an operand */
	if (in.n_mem || (r->sums && r->sums->memory))
		symbols_code_type(&f->code, addr, &r->data);
	if (r->sums) {
		a->types[r->data.kind] += r->sums->memory;
		a->types[TYPE_NO_ACCESS] += r->sums->samples - r->sums->memory;
	}
	if (symbols_code_line(&f->code, addr, &place)) {
		r->file = path_of(a, &place);
		r->line = place.line;
	}
	return in.len;
}

static void disassemble(struct annotate *a, struct disasm *d, const unsigned char *bytes)
{
	const struct symbol_code *code = &a->function[0].code;
	unsigned int len;

	for (__u64 i = 0; i < code->size; i += len) {
		len = add_row(a, d, bytes + i, code->start + i, false);
		for (unsigned int k = 1; k < len; k++)
			if (sums_at(&a->function[0], code->start + i + k))
				add_row(a, d, bytes + i + k, code->start + i + k, true);
	}
}

/* Drop functions with other names than the first. */
static void keep_first_name(struct annotate *a)
{
	size_t kept = 0;

	for (size_t i = 0; i < a->n_functions; i++) {
		if (a->function[i].name == a->function[0].name) {
			a->function[kept++] = a->function[i];
			continue;
		}
		a->elsewhere += a->function[i].total.samples;
		free_function(&a->function[i]);
	}
	a->n_functions = kept;
}

bool annotate_callers_by_cycles(const struct annotate *a)
{
	const struct annotate_sums *total = &a->function[0].total;

	return total->valid >= CALLERS_VALID && total->cycles;
}

static int compare_callers(const void *pa, const void *pb, void *arg)
{
	const struct annotate_caller *a = pa, *b = pb;

	if (annotate_callers_by_cycles(arg) && a->cycles != b->cycles)
		return a->cycles > b->cycles ? -1 : 1;
	if (a->samples != b->samples)
		return a->samples > b->samples ? -1 : 1;
	return strcmp(a->name ?: "", b->name ?: "");
}

int annotate_finish(struct annotate *a, struct err *err)
{
	const struct symbol_code *code;
	struct disasm *d = NULL;
	unsigned char *bytes;
	int ret;

	if (!a->n_functions)
		return refuse_name(a, err);
	qsort_r(a->function, a->n_functions, sizeof(*a->function), compare, (void *)a->opts.object);
	keep_first_name(a);
	if (a->function[0].n_callers)
		qsort_r(a->function[0].callers, a->function[0].n_callers,
			sizeof(struct annotate_caller), compare_callers, a);
	code = &a->function[0].code;
	for (size_t i = 1; i < a->n_functions; i++)
		a->namesakes += a->function[i].total.samples;
	if (!is_asked_for(a->opts.object, code->dso))
		return refuse_object(a, err);
	if (code->size > ANNOTATE_BYTES_MAX)
		return err_set(err, -E2BIG,
			       "'%s' of %s has %llu bytes of code; at most %u can be annotated",
			       code->name, code->dso, (unsigned long long)code->size,
			       ANNOTATE_BYTES_MAX);
	bytes = xcalloc(1, code->size);
	ret = symbols_code_read(a->opts.symbols, code, bytes, err);
	if (!ret) {
		d = disasm_new(a->opts.intel);
		ret = d ? 0 : err_set(err, -ENOTSUP, "libcapstone cannot be used here");
	}
	if (!ret)
		disassemble(a, d, bytes);
	disasm_free(d);
	free(bytes);
	return ret;
}
