// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "profile.h"
#include "gzip_out.h"
#include "pprof_costs.h"
#include "pprof_message.h"
#include "pprof_words.h"

#include "base/utf8.h"
#include "symbols/chain.h"

#define FRAMES	  (TRACE_STACK_MAX + 1) /* with the mark of a simulation */
#define TEXT	  1024			/* of a name */
#define SIMULATED "SIMULATED"
#define LONE	  1 /* in place of the parent: the frame is all of its stack */

/* Of words alone: equal ones have equal bytes. */
struct mapping {
	__u64 start, end, pgoff;
	const char *path;
	__u32 build_id_len;
	unsigned char build_id[20];
};
struct location {
	__u64 mapping, addr; /* 0: none; else index + 1 */
	__u64 functions;     /* where they begin in pprof.inlined */
};
/* Strings. */
struct function {
	__u64 name, system_name; /* the latter as the linker has it */
};
_Static_assert(sizeof(struct mapping) % 8 == 0, "mappings are compared word by word");

struct pprof {
	struct report_opts opts;
	struct report *labels;
	struct intern texts;
	struct u64_map function_of; /* by address of the name, as the linker has it */
	struct word_table mappings, locations, functions, stacks, labels_of;
	struct pprof_rows rows;
	struct chain_memo memo; /* location of a frame, without a parent; stack of a LONE frame */
	/* functions of a location: their number, and from the innermost on the index + 1 of each */
	struct word_table inlined;
	__u64 first, last; /* time; 0: unknown */
	unsigned int units;
	bool no_estimate;
	__u64 code[CODE_KIND_N]; /* samples, by how much is known of their functions */
	__u32 simulated;	 /* location of the mark, 0: none */
};

#define WORDS(type) (sizeof(type) / 8)

static __u32 printable_of(struct pprof *p, const char *name)
{
	char printable[TEXT];

	utf8_escape(printable, sizeof(printable), name);
	return intern_get(&p->texts, printable);
}

/* From 1 on. */
static __u32 function_at(struct pprof *p, const char *name, const char *system_name)
{
	const struct function f = { printable_of(p, name), printable_of(p, system_name) };

	return word_table_at(&p->functions, &f, WORDS(f)) / WORDS(f) + 1;
}

/* Unresolved addresses of a file are one function, as pprof itself shows them. */
static __u32 function_of(struct pprof *p, const struct symbol *symbol)
{
	const char *key = symbol->mangled ?: symbol->name, *base;
	__u32 id = u64_map_get(&p->function_of, (uintptr_t)key);
	char name[TEXT];

	if (id != U64_MAP_NONE)
		return id;
	snprintf(name, sizeof(name), "%s", symbol->name);
	if (*symbol->name == '[' && symbol->dso) {
		base = strrchr(symbol->dso, '/');
		snprintf(name, sizeof(name), *symbol->dso == '[' ? "%s" : "[%s]",
			 base ? base + 1 : symbol->dso);
	}
	id = function_at(p, name, symbol->mangled ?: name);
	u64_map_put(&p->function_of, (uintptr_t)key, id);
	return id;
}

/* The function of a symbol is behind those that were inlined into it. */
static __u32 functions_of(struct pprof *p, const struct symbol *symbol)
{
	__u64 words[INLINED_MAX + 2] = { 0 };

	for (const struct inlined *f = symbols_inlined(p->opts.symbols, symbol); f; f = f->into)
		words[++words[0]] =
			function_of(p, &(struct symbol){ f->function.name, f->function.mangled });
	words[++words[0]] = function_of(p, symbol);
	return word_table_at(&p->inlined, words, words[0] + 1);
}

/*
 * Where a mapping is in an object. Profiles are for other people, too, who must not learn where the kernel is: there
 * addresses are relative to the mapping.
 */
static void place_mapping(const struct task_map *map, bool kernel, struct mapping *m,
			  struct location *l)
{
	const __u64 start = kernel ? 0 : map->pgoff;

	*m = (struct mapping){ start, map->end - map->start + start, kernel ? 0 : map->pgoff,
			       map->path, map->build_id_len };
	if (map->build_id)
		memcpy(m->build_id, map->build_id, map->build_id_len);
	l->addr += start - map->start;
}

/* The location of a frame, from 1 on. */
static __u32 find_location(struct pprof *p, const struct trace_event *ev,
			   const struct chain_frame *frame, enum code_kind *kind)
{
	const struct report_opts *o = &p->opts;
	__u32 tgid = ev->sample.tgid;
	struct location l = { .addr = 0 };
	struct task_map map;
	struct symbol symbol;

	if (tasks_map(o->tasks, tgid, frame->addr, ev->time, frame->kernel, &map) &&
	    (!frame->kernel || map.start >> 63)) {
		struct mapping m;

		l.addr = frame->addr;
		place_mapping(&map, frame->kernel, &m, &l);
		l.mapping = word_table_at(&p->mappings, &m, WORDS(m)) + 1ull;
	}
	symbols_find(o->symbols, o->tasks, tgid, frame->addr, ev->time, frame->kernel, false,
		     &symbol);
	*kind = report_code_kind(true, &symbol);
	l.functions = functions_of(p, &symbol);
	return word_table_at(&p->locations, &l, WORDS(l)) / WORDS(l) + 1;
}

/* The same, if need be. */
static __u32 location_of(struct pprof *p, const struct trace_event *ev,
			 const struct chain_frame *frame, bool innermost)
{
	const struct chain_place place =
		chain_place_of(p->opts.tasks, p->opts.symbols, ev, frame, 0);
	enum code_kind kind = CODE_NAMED;
	__u32 location;

	if (!chain_memo_get(&p->memo, &place, &location)) {
		location = find_location(p, ev, frame, &kind);
		if (kind == CODE_NAMED)
			chain_memo_put(&p->memo, &place, location);
	}
	p->code[kind] += innermost;
	return location;
}

/* The words of a stack are their number and the locations from the innermost on. */
static __u32 stack_at(struct pprof *p, __u64 *words, unsigned int n)
{
	words[0] = n + !!p->simulated;
	words[n + 1] = p->simulated;
	return word_table_at(&p->stacks, words, words[0] + 1);
}

/* Most stacks are of one frame: those are found at once. */
static __u32 lone_stack_of(struct pprof *p, const struct trace_event *ev,
			   const struct chain_frame *frame)
{
	const struct chain_place place =
		chain_place_of(p->opts.tasks, p->opts.symbols, ev, frame, LONE);
	enum code_kind kind = CODE_NAMED;
	__u64 words[3];
	__u32 stack;

	if (!chain_memo_get(&p->memo, &place, &stack)) {
		words[1] = find_location(p, ev, frame, &kind);
		stack = stack_at(p, words, 1);
		if (kind == CODE_NAMED)
			chain_memo_put(&p->memo, &place, stack);
	}
	p->code[kind]++;
	return stack;
}

static __u32 stack_of(struct pprof *p, const struct trace_event *ev)
{
	struct chain_frame frames[TRACE_STACK_MAX];
	unsigned int n = chain_frames(p->opts.symbols, p->opts.tasks, ev, frames);
	bool known = n > 0;
	__u64 words[FRAMES + 2];

	if (n == 1)
		return lone_stack_of(p, ev, &frames[0]);
	p->code[CODE_NO_ADDRESS] += !known;
	if (!n) /* an address that nothing is known of */
		frames[n++] = (struct chain_frame){ 0 };
	for (unsigned int i = 0; i < n; i++)
		words[i + 1] = location_of(p, ev, &frames[i], known && !i);
	return stack_at(p, words, n);
}

void pprof_expect(const struct pprof *p, const struct trace_hint *hint)
{
	chain_memo_prefetch(&p->memo, hint->ip, hint->tgid, LONE);
}

struct pprof *pprof_new(const struct report_opts *opts)
{
	struct pprof *p = xcalloc(1, sizeof(*p));
	struct location mark = { 0 };
	__u64 words[2] = { 1 };

	p->opts = *opts;
	report_new(opts, &p->labels, NULL);
	intern_get(&p->texts, "");
	if (opts->info->simulated) {
		words[1] = function_at(p, SIMULATED, SIMULATED);
		mark.functions = word_table_at(&p->inlined, words, ARRAY_SIZE(words));
		word_table_at(&p->locations, &mark, WORDS(mark));
		p->simulated = 1;
	}
	return p;
}

void pprof_free(struct pprof *p)
{
	if (!p)
		return;

	struct word_table *tables[] = { &p->mappings, &p->locations, &p->functions,
					&p->stacks,   &p->inlined,   &p->labels_of };

	for (size_t i = 0; i < ARRAY_SIZE(tables); i++)
		word_table_free(tables[i]);
	pprof_rows_free(&p->rows);
	report_free(p->labels);
	u64_map_free(&p->function_of);
	intern_free(&p->texts);
	chain_memo_free(&p->memo);
	free(p);
}

void pprof_add(struct pprof *p, const struct trace_event *ev, const char *service)
{
	__u64 words[REPORT_WORDS];
	struct pprof_row row = { 0 };
	char printable[TEXT];

	if (ev->kind != trace_kind_of(p->opts.metric))
		return;
	report_key_of(p->labels, ev, words);
	row.labels = word_table_again(&p->labels_of, words, report_key_words(&p->opts));
	row.stack = stack_of(p, ev);
	if (service) {
		utf8_escape(printable, sizeof(printable), service);
		row.service = intern_get(&p->texts, printable);
	}
	p->no_estimate |= !pprof_costs(&p->opts, ev, &row, &p->units);
	pprof_rows_add(&p->rows, &row);
	if (ev->time && (!p->first || ev->time < p->first))
		p->first = ev->time;
	p->last = ev->time > p->last ? ev->time : p->last;
}

/* Field numbers of profile.proto. */
enum {
	PROFILE_SAMPLE_TYPE = 1,
	PROFILE_SAMPLE,
	PROFILE_MAPPING,
	PROFILE_LOCATION,
	PROFILE_FUNCTION,
	PROFILE_STRING,
	PROFILE_TIME = 9,
	PROFILE_DURATION,
	PROFILE_PERIOD_TYPE,
	PROFILE_PERIOD,
	PROFILE_COMMENT,
	PROFILE_DEFAULT_TYPE,
};

/* The output, and the strings that are only met while it is written. */
struct writer {
	const struct pprof *p;
	struct intern texts; /* numbered behind those of @p */
	struct message body, part, head;
	struct u64_map label_of[REPORT_WORDS]; /* strings of the words of each key, */
	__u32 name_of[REPORT_WORDS];	       /* and of its name */
	struct gzip_out *out;
};

static __u32 string_of(struct writer *w, const char *text)
{
	char printable[TEXT];

	utf8_escape(printable, sizeof(printable), text);
	return w->p->texts.n + intern_get(&w->texts, printable);
}

/* Write the body as a field of the profile, and begin another one. */
static void flush(struct writer *w, unsigned int field)
{
	struct message *head = &w->head;

	put_varint(head, field << 3 | 2);
	put_varint(head, w->body.n);
	gzip_out_put(w->out, head->data, head->n);
	gzip_out_put(w->out, w->body.data, w->body.n);
	head->n = w->body.n = 0;
}

static void write_number(struct writer *w, unsigned int field, __u64 v)
{
	put_number(&w->part, field, v);
	gzip_out_put(w->out, w->part.data, w->part.n);
	w->part.n = 0;
}

static void write_type(struct writer *w, unsigned int field, const char *type, const char *unit)
{
	put_number(&w->body, 1, string_of(w, type));
	put_number(&w->body, 2, string_of(w, unit));
	flush(w, field);
}

static void put_values(struct writer *w, const struct pprof_row *c)
{
	const __u64 all[] = { c->samples, c->cycles, c->remote_cycles, c->estimated };
	const __u64 bare[] = { c->samples, c->latency, c->remote_latency };

	if (w->p->no_estimate)
		for (int i = 0; i < 3; i++)
			put_varint(&w->part, bare[i]);
	else
		for (int i = 0; i < 4; i++)
			put_varint(&w->part, all[i]);
	if (!ibs_metric_of_fetch(w->p->opts.metric))
		put_varint(&w->part, c->dram);
	put_bytes(&w->body, 2, w->part.data, w->part.n);
	w->part.n = 0;
}

static void put_text_label(struct writer *w, __u32 key, __u32 text)
{
	put_number(&w->part, 1, key);
	put_number(&w->part, 2, text);
	put_bytes(&w->body, 3, w->part.data, w->part.n);
	w->part.n = 0;
}

/* The string of a value, as interned first: samples share few. 0: it has none. */
static __u32 label_string(struct writer *w, const __u64 *words, unsigned int k, const char *name)
{
	__u32 known = u64_map_get(&w->label_of[k], words[k]);
	const char *text;
	char buf[64];

	if (known != U64_MAP_NONE)
		return known;
	text = report_label(w->p->labels, words, k, buf, sizeof(buf));
	known = 0;
	if (text && *text) {
		w->name_of[k] = string_of(w, name);
		known = string_of(w, text);
	}
	u64_map_put(&w->label_of[k], words[k], known);
	return known;
}

static void put_label(struct writer *w, const __u64 *words, unsigned int k)
{
	enum label key = w->p->opts.by[k];
	const char *name;
	__u32 text;

	if (words[w->p->opts.n_by] >> k & 1)
		return;
	name = key == LABEL_SRC ? "source" : key == LABEL_COMM ? "thread" : label_name(key);
	if (key != LABEL_PAGE_SIZE) {
		text = label_string(w, words, k, name);
		if (text)
			put_text_label(w, w->name_of[k], text);
		return;
	}
	put_number(&w->part, 1, string_of(w, name));
	put_number(&w->part, 3, words[k]);
	put_number(&w->part, 4, string_of(w, "bytes"));
	put_bytes(&w->body, 3, w->part.data, w->part.n);
	w->part.n = 0;
}

static void write_samples(struct writer *w)
{
	const struct pprof *p = w->p;

	for (size_t n = 0; n < p->rows.n; n++) {
		const struct pprof_row *row = &p->rows.row[n];
		const __u64 *words = &p->labels_of.words[row->labels];
		const __u64 *stack = &p->stacks.words[row->stack];

		for (__u64 i = 1; i <= stack[0]; i++)
			put_varint(&w->part, stack[i]);
		put_bytes(&w->body, 1, w->part.data, w->part.n);
		w->part.n = 0;
		put_values(w, row);
		for (unsigned int k = 0; k < p->opts.n_by; k++)
			put_label(w, words, k);
		if (row->service)
			put_text_label(w, string_of(w, "service"), row->service);
		flush(w, PROFILE_SAMPLE);
	}
}

static void write_mappings(struct writer *w)
{
	const struct mapping *m = (const void *)w->p->mappings.words;

	for (size_t i = 0; i < w->p->mappings.n / WORDS(*m); i++, m++) {
		char hex[2 * sizeof(m->build_id) + 1] = "";

		for (unsigned int b = 0; b < m->build_id_len; b++)
			sprintf(hex + 2 * b, "%02x", m->build_id[b]);
		put_number(&w->body, 1, i + 1);
		put_number(&w->body, 2, m->start);
		put_number(&w->body, 3, m->end);
		put_number(&w->body, 4, m->pgoff);
		put_number(&w->body, 5, string_of(w, m->path));
		put_number(&w->body, 6, string_of(w, hex));
		put_number(&w->body, 7, 1);
		flush(w, PROFILE_MAPPING);
	}
}

static void write_locations(struct writer *w)
{
	const struct location *l = (const void *)w->p->locations.words;
	const __u64 *function;

	for (size_t i = 0; i < w->p->locations.n / WORDS(*l); i++, l++) {
		put_number(&w->body, 1, i + 1);
		put_number(&w->body, 2,
			   l->mapping ? (l->mapping - 1) / WORDS(struct mapping) + 1 : 0);
		put_number(&w->body, 3, l->addr);
		function = &w->p->inlined.words[l->functions];
		for (__u64 k = 1; k <= function[0]; k++) {
			put_number(&w->part, 1, function[k]);
			put_bytes(&w->body, 4, w->part.data, w->part.n);
			w->part.n = 0;
		}
		flush(w, PROFILE_LOCATION);
	}
}

static void write_functions(struct writer *w)
{
	const struct function *f = (const void *)w->p->functions.words;

	for (size_t i = 0; i < w->p->functions.n / WORDS(*f); i++, f++) {
		put_number(&w->body, 1, i + 1);
		put_number(&w->body, 2, f->name);
		put_number(&w->body, 3, f->system_name);
		flush(w, PROFILE_FUNCTION);
	}
}

/* For how many samples the function is known, and why not for the others. */
static void write_code_kinds(struct writer *w)
{
	char text[TEXT] = "symbols:";

	for (unsigned int k = 0; k < CODE_KIND_N; k++)
		if (w->p->code[k])
			snprintf(text + strlen(text), sizeof(text) - strlen(text), " %llu %s",
				 (unsigned long long)w->p->code[k], code_kind_name(k));
	write_number(w, PROFILE_COMMENT, string_of(w, text));
}

__u64 pprof_samples(const struct pprof *p, enum code_kind kind)
{
	return p->code[kind];
}

static void write_comments(struct writer *w, const struct report_head *h)
{
	const struct trace_info *info = h->info;
	char text[TEXT];

	if (info->simulated)
		write_number(w, PROFILE_COMMENT, string_of(w, "SIMULATED samples"));
	snprintf(text, sizeof(text), "ibscope report %s: %llu of %llu samples of %s, host %s",
		 h->options, (unsigned long long)h->selected,
		 (unsigned long long)(h->op_samples + h->fetch_samples), h->file, info->host);
	write_number(w, PROFILE_COMMENT, string_of(w, text));
	write_code_kinds(w);
	if (h->lost_samples || h->lost_records || !h->end->whole) {
		snprintf(text, sizeof(text), "lost while recording: %llu samples, %llu records%s%s",
			 (unsigned long long)h->lost_samples, (unsigned long long)h->lost_records,
			 h->end->whole ? "" : "; INCOMPLETE: ", h->end->missing);
		write_number(w, PROFILE_COMMENT, string_of(w, text));
	}
}

static void write_time(struct writer *w, const struct trace_info *info)
{
	const struct pprof *p = w->p;

	if (p->first && info->realtime_ns)
		write_number(w, PROFILE_TIME, info->realtime_ns + p->first - info->monotonic_ns);
	if (p->first)
		write_number(w, PROFILE_DURATION, p->last - p->first);
}

static void write_strings(struct writer *w)
{
	for (size_t i = 0; i < w->p->texts.n + w->texts.n; i++) {
		const char *text = i < w->p->texts.n ? intern_text(&w->p->texts, i)
						     : intern_text(&w->texts, i - w->p->texts.n);

		array_reserve(w->body.data, w->body.room, TEXT);
		w->body.n = stpcpy((char *)w->body.data, text) - (char *)w->body.data;
		flush(w, PROFILE_STRING);
	}
}

static void write_all(struct writer *w, const struct report_head *head)
{
	const struct pprof *p = w->p;
	const char *unit = report_unit_name(p->units) ?: "count";

	write_type(w, PROFILE_SAMPLE_TYPE, "samples", "count");
	write_type(w, PROFILE_SAMPLE_TYPE, p->no_estimate ? "latency" : "miss_cycles", "cycles");
	write_type(w, PROFILE_SAMPLE_TYPE, p->no_estimate ? "remote_latency" : "remote_miss_cycles",
		   "cycles");
	if (!p->no_estimate)
		write_type(w, PROFILE_SAMPLE_TYPE, "estimated_ops", unit);
	if (!ibs_metric_of_fetch(p->opts.metric))
		write_type(w, PROFILE_SAMPLE_TYPE, "dram", "count");
	write_number(w, PROFILE_DEFAULT_TYPE,
		     string_of(w, p->no_estimate ? "latency" : "miss_cycles"));
	if (head->info->n_pmus && !head->info->pmu->freq && !trace_has_strata(head->info)) {
		write_type(w, PROFILE_PERIOD_TYPE, "ibs", unit);
		write_number(w, PROFILE_PERIOD, head->info->pmu->period);
	}
	write_time(w, head->info);
	write_comments(w, head);
	write_samples(w);
	write_mappings(w);
	write_locations(w);
	write_functions(w);
	write_strings(w); /* last: all are known now */
}

int pprof_write(struct pprof *p, const struct report_head *head, int fd, struct err *err)
{
	struct writer w = { .p = p, .out = gzip_out_new(fd) };
	int ret;

	pprof_rows_flush(&p->rows);
	write_all(&w, head);
	ret = gzip_out_close(w.out);
	if (ret)
		err_set(err, ret, "cannot write the profile: %s", strerror(-ret));
	intern_free(&w.texts);
	free(w.body.data);
	free(w.part.data);
	free(w.head.data);
	for (unsigned int k = 0; k < REPORT_WORDS; k++)
		u64_map_free(&w.label_of[k]);
	return ret;
}
