// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "report_private.h"

#include "base/choice.h"
#include "cgroup/container.h"

#include <ibscope/filter_fields.h>

#define PAGE_BYTES	4096ull
#define SPACE_KERNEL	(1ull << 32)
#define REGS_FOR_SRC	(1u << IBS_OP_DATA | 1u << IBS_OP_DATA2 | 1u << IBS_OP_DATA3)
#define NO_TASK		(~0u) /* perf's for one that is gone */
#define IS_KERNEL(addr) ((addr) >> 63)

#define NAME(id, name, ...) name,
static const char *const key_names[] = { REPORT_KEY_TABLE(NAME) };
static const char *const column_names[] = { REPORT_COLUMN_TABLE(NAME) };

const char *report_key_name(enum report_key k)
{
	return key_names[k];
}

const char *report_column_name(enum report_column c)
{
	return column_names[c];
}

static const char *key_name_at(unsigned int i)
{
	return key_names[i];
}

static const char *column_name_at(unsigned int i)
{
	return column_names[i];
}

int report_keys_parse(const char *text, enum report_key *keys, unsigned int *n, struct err *err)
{
	const struct choices c = { "--by", "key", key_name_at, REPORT_KEY_N };

	return choice_list_parse(&c, text, (unsigned int *)keys, n, err);
}

int report_columns_parse(const char *option, const char *text, enum report_column *columns,
			 unsigned int *n, struct err *err)
{
	const struct choices c = { option, "column", column_name_at, REPORT_COLUMN_N };

	return choice_list_parse(&c, text, (unsigned int *)columns, n, err);
}

void report_terms(FILE *f)
{
#define KEY_LINE(id, name, meaning)	       { name, meaning },
#define COLUMN_LINE(id, name, column, meaning) { name, meaning },
	static const char *const keys[][2] = { REPORT_KEY_TABLE(KEY_LINE) };
	static const char *const columns[][2] = { REPORT_COLUMN_TABLE(COLUMN_LINE) };

	fprintf(f, "\nKeys of --by:\n");
	for (size_t i = 0; i < REPORT_KEY_N; i++)
		fprintf(f, "  %-11s %s\n", keys[i][0], keys[i][1]);
	fprintf(f, "\nColumns:\n");
	for (size_t i = 0; i < REPORT_COLUMN_N; i++)
		fprintf(f, "  %-11s %s\n", columns[i][0], columns[i][1]);
}

bool report_key_of_fetch(enum report_key key)
{
	return key == REPORT_KEY_FETCH || key == REPORT_KEY_ITLB;
}

/* Is it of the data that an op accessed, or of where that was? */
static bool key_of_op(enum report_key key)
{
	static const enum report_key keys[] = {
		REPORT_KEY_SRC,		 REPORT_KEY_OP,	       REPORT_KEY_MEM_NODE,
		REPORT_KEY_DISTANCE,	 REPORT_KEY_PAGE,      REPORT_KEY_LINE,
		REPORT_KEY_SPACE,	 REPORT_KEY_PHYS_PAGE, REPORT_KEY_MAPPING,
		REPORT_KEY_RANGE,	 REPORT_KEY_VARIABLE,  REPORT_KEY_OFFSET,
		REPORT_KEY_SLAB,	 REPORT_KEY_TYPE,      REPORT_KEY_FIELD,
		REPORT_KEY_FIELD_OFFSET, REPORT_KEY_FIELD_SIZE
	};

	for (size_t i = 0; i < ARRAY_SIZE(keys); i++)
		if (keys[i] == key)
			return true;
	return false;
}

int report_keys_check(const enum report_key *keys, unsigned int n, bool fetch, struct err *err)
{
	for (unsigned int i = 0; i < n; i++)
		if (fetch ? key_of_op(keys[i]) : report_key_of_fetch(keys[i]))
			return err_set(err, -EINVAL,
				       "--by %s: samples of %s do not have that; use %s",
				       report_key_name(keys[i]), fetch ? "ibs_fetch" : "ibs_op",
				       fetch ? "fetch or itlb" : "src or op, or -e ibs_fetch//");
	return 0;
}

bool report_needs_data(const enum report_key *keys, unsigned int n)
{
	for (unsigned int i = 0; i < n; i++)
		if (keys[i] == REPORT_KEY_MAPPING || keys[i] == REPORT_KEY_RANGE ||
		    keys[i] == REPORT_KEY_VARIABLE || keys[i] == REPORT_KEY_OFFSET)
			return true;
	return false;
}

bool report_needs_types(const enum report_key *keys, unsigned int n)
{
	_Static_assert(REPORT_KEY_FIELD_SIZE == REPORT_KEY_TYPE + 3,
		       "keys of types must be neighbours");

	for (unsigned int i = 0; i < n; i++)
		if (keys[i] >= REPORT_KEY_TYPE && keys[i] <= REPORT_KEY_FIELD_SIZE)
			return true;
	return false;
}

bool report_needs_symbols(const enum report_key *keys, unsigned int n)
{
	for (unsigned int i = 0; i < n; i++)
		if (keys[i] == REPORT_KEY_SYMBOL || keys[i] == REPORT_KEY_DSO ||
		    keys[i] == REPORT_KEY_SRCLINE || keys[i] == REPORT_KEY_OMP_REGION)
			return true;
	return report_needs_data(keys, n) || report_needs_types(keys, n);
}

bool report_needs_tasks(const enum report_key *keys, unsigned int n)
{
	for (unsigned int i = 0; i < n; i++)
		if (keys[i] == REPORT_KEY_COMM || keys[i] == REPORT_KEY_CGROUP ||
		    keys[i] == REPORT_KEY_CONTAINER || keys[i] == REPORT_KEY_POD ||
		    keys[i] == REPORT_KEY_SLAB || keys[i] == REPORT_KEY_RANK ||
		    keys[i] == REPORT_KEY_REGION || keys[i] == REPORT_KEY_THREAD_ROLE)
			return true;
	return report_needs_symbols(keys, n);
}

/* The value of a key. Return: whether the sample has it. */

/* What owns the text may live as long as one of several recordings. */
static bool text_word(struct report *r, const char *text, __u64 *word)
{
	*word = text ? intern_get(&r->texts, text) : 0;
	return text != NULL;
}

const char *report_cgroup_text(const struct tasks *tasks, enum report_key key, __u64 id,
			       struct container *c, char *buf)
{
	struct container_name name;
	struct task_cgroup cgroup;

	if (!tasks_cgroup(tasks, id, &cgroup)) {
		snprintf(buf, CONTAINER_LABEL, "#%llu", (unsigned long long)id);
		return buf;
	}
	if (key == REPORT_KEY_CGROUP)
		return cgroup.path;
	if (!container_of_path(cgroup.path, NULL, c))
		return "";
	name = (struct container_name){ cgroup.container, cgroup.pod, cgroup.ns };
	return key == REPORT_KEY_CONTAINER ? container_label(c, &name, buf)
					   : container_pod_label(c, &name, buf);
}

static bool cgroup_word(struct report *r, enum report_key key, const struct trace_sample *s,
			__u64 *word)
{
	struct u64_map *known = &r->cgroups[key - REPORT_KEY_CGROUP];
	char buf[CONTAINER_LABEL];
	struct container c;
	const char *text;

	_Static_assert(REPORT_KEY_POD == REPORT_KEY_CGROUP + 2 &&
			       REPORT_KEY_CONTAINER == REPORT_KEY_CGROUP + 1,
		       "keys of cgroups must be neighbours");

	if (!s->cgroup_id)
		return false;
	*word = u64_map_get(known, s->cgroup_id);
	if (*word == U64_MAP_NONE) {
		text = report_cgroup_text(r->opts.tasks, key, s->cgroup_id, &c, buf);
		*word = text ? intern_get(&r->texts, text) : INTERN_NONE - 1;
		u64_map_put(known, s->cgroup_id, *word);
	}
	return *word != INTERN_NONE - 1;
}

static bool symbol_word(struct report *r, enum report_key key, const struct trace_event *ev,
			__u64 *word)
{
	const struct trace_sample *s = &ev->sample;
	struct symbol sym;

	if (s->has_ip)
		symbols_find(r->opts.symbols, r->opts.tasks, s->tgid, s->ip, ev->time, s->kernel,
			     key == REPORT_KEY_SRCLINE, &sym);
	if (key == REPORT_KEY_SYMBOL)
		r->code[report_code_kind(s->has_ip, &sym)]++;
	if (!s->has_ip)
		return false;
	return text_word(r,
			 key == REPORT_KEY_SYMBOL ? sym.name
			 : key == REPORT_KEY_DSO  ? sym.dso
						  : sym.srcline,
			 word);
}

static bool data_address(const struct report *r, const struct ibs_op_sample *op, __u64 *addr)
{
	return ibs_op_field(op, r->opts.phys ? IBS_OP_FIELD_DC_PHYS_AD : IBS_OP_FIELD_DC_LIN_AD,
			    addr);
}

/* Places are of virtual addresses, also with --phys. */
static void find_place(const struct report *r, const struct trace_event *ev,
		       struct data_place *place)
{
	const struct trace_sample *s = &ev->sample;
	__u64 addr;

	*place = (struct data_place){ .kind = DATA_NO_ADDRESS };
	if (ev->kind == TRACE_SAMPLE_OP && ibs_op_field(&s->op, IBS_OP_FIELD_DC_LIN_AD, &addr) &&
	    (s->has_task || IS_KERNEL(addr)))
		symbols_data(r->opts.symbols, r->opts.tasks, s->tgid, addr, ev->time, place);
}

static bool place_word(struct report *r, enum report_key key, const struct data_place *place,
		       __u64 *word)
{
	char text[4096];

	*word = place->offset;
	if (key == REPORT_KEY_OFFSET)
		return place->has_offset;
	if (key == REPORT_KEY_RANGE) {
		snprintf(text, sizeof(text), "0x%llx-0x%llx", (unsigned long long)place->start,
			 (unsigned long long)place->end);
		return text_word(r, place->end ? text : NULL, word);
	}
	/* variables of all threads fit a table only if their stacks are one row */
	return text_word(r,
			 key == REPORT_KEY_MAPPING   ? place->mapping
			 : place->kind == DATA_STACK ? "[stack]"
						     : data_place_label(place, text, sizeof(text)),
			 word);
}

static void find_type(const struct report *r, const struct trace_event *ev,
		      const struct data_place *place, struct type_access *out)
{
	const struct trace_sample *s = &ev->sample;
	__u64 width = 0, addr;
	bool exact;

	*out = (struct type_access){ .kind = TYPE_NO_ACCESS };
	if (!trace_accesses_memory(ev))
		return;
	exact = trace_sample_is_exact(s);
	out->kind = !exact ? TYPE_NO_ADDRESS : s->kernel ? TYPE_KERNEL : TYPE_NO_FILE;
	if (!ibs_op_field(&s->op, IBS_OP_FIELD_OP_MEM_WIDTH, &width) || width > 7)
		width = 0;
	width = width ? 1u << (width - 1) : 0;
	if (s->slab && ibs_op_field(&s->op, IBS_OP_FIELD_DC_LIN_AD, &addr))
		symbols_slab_type(r->opts.symbols, r->opts.tasks, s->slab, addr, width, out);
	else if (!s->kernel && s->has_task)
		symbols_type(r->opts.symbols, r->opts.tasks, s->tgid, exact ? &s->ip : NULL, place,
			     width, ev->time, out);
}

static bool slab_word(struct report *r, const struct trace_sample *s, __u64 *word)
{
	const struct ibs_slab *slab = slab_list_find(tasks_slabs(r->opts.tasks), s->slab);
	__u64 addr;

	if (!tasks_slabs(r->opts.tasks)->n || !ibs_op_field(&s->op, IBS_OP_FIELD_DC_LIN_AD, &addr))
		return false;
	return text_word(r,
			 slab		    ? slab->name
			 : !IS_KERNEL(addr) ? "[user]"
			 : s->slab	    ? "[gone]"
					    : "[no slab]",
			 word);
}

static bool type_word(struct report *r, enum report_key key, const struct type_access *a,
		      __u64 *word)
{
	char reason[32];

	*word = key == REPORT_KEY_FIELD_OFFSET ? a->field_offset : a->field_size;
	if (key == REPORT_KEY_FIELD_OFFSET || key == REPORT_KEY_FIELD_SIZE)
		return a->field_size;
	/* numbers and pointers have no fields, which is known */
	if (key == REPORT_KEY_FIELD)
		return text_word(r, a->field ?: (TYPE_FOUND(a->kind) ? "" : NULL), word);
	if (a->type)
		return text_word(r, a->type, word);
	snprintf(reason, sizeof(reason), "[%s]", type_kind_name(a->kind));
	return text_word(r, reason, word);
}

static bool space_word(const struct report *r, const struct trace_sample *s, bool op, __u64 *word)
{
	__u64 addr;

	if (!op || !data_address(r, &s->op, &addr))
		return false;
	*word = IS_KERNEL(addr) ? SPACE_KERNEL : s->tgid;
	return IS_KERNEL(addr) || s->has_task;
}

static bool page_size_word(const struct ibs_op_sample *op, __u64 *word)
{
	const struct ibs_filter_sample s = { .regs = op->reg, .ibs = &op->cpu };
	__u32 code = op->present >> IBS_OP_DATA3 & 1 ? ibs_filter_page_code(&s) : 3;

	*word = 4096ull << 9 * code;
	return code < 3;
}

static bool topology_word(const struct report *r, enum report_key key, const struct trace_sample *s,
			  __u64 *word)
{
	const struct trace_topology *t = r->opts.info->topology;

	if (!t || !s->has_cpu || s->cpu >= t->n)
		return false;
	*word = key == REPORT_KEY_CCX ? t->ccx[s->cpu] : t->node[s->cpu];
	return true;
}

static bool memory_node_word(const struct report *r, const struct ibs_op_sample *op, __u64 *word)
{
	int node = report_memory_node(r->opts.info, op);

	*word = node;
	return node >= 0;
}

static bool distance_word(const struct report *r, const struct trace_event *ev, __u64 *word)
{
	__u64 node, memory;

	if (!topology_word(r, REPORT_KEY_NODE, &ev->sample, &node) ||
	    !memory_node_word(r, &ev->sample.op, &memory))
		return false;
	*word = node_distance(&r->opts.info->topology->distance, node, memory);
	return *word;
}

static bool mode_word(const struct trace_event *ev, __u64 *word)
{
	const struct trace_sample *s = &ev->sample;

	if (ev->kind == TRACE_SAMPLE_OP)
		*word = ibs_op_mode(s->op.cpu.caps, s->op.reg);
	else
		*word = s->kernel ? IBS_MODE_KERNEL : IBS_MODE_USER;
	return s->has_ip && *word != IBS_MODE_UNKNOWN;
}

static bool rank_word(const struct report *r, const struct trace_event *ev, __u64 *word)
{
	__u32 rank;

	if (!ev->sample.has_task || !tasks_rank(r->opts.tasks, ev->sample.tgid, ev->time, &rank))
		return false;
	*word = rank;
	return true;
}

/* The number of a thread in its OpenMP team and the order of start are not the same. */
bool report_role(const struct tasks *tasks, const struct trace_event *ev, char *buf, size_t size)
{
	const struct trace_sample *s = &ev->sample;
	__u32 number;
	__u64 addr;

	if (!s->has_task)
		return false;
	if (tasks_omp(tasks, s->tid, ev->time, &number, &addr))
		snprintf(buf, size, "omp %u", number);
	else if (tasks_started(tasks, s->tgid, s->tid, ev->time, &number))
		snprintf(buf, size, "start %u", number);
	else
		return false;
	return true;
}

bool report_omp_region(const struct tasks *tasks, struct symbols *symbols,
		       const struct trace_event *ev, char *buf, size_t size)
{
	const struct trace_sample *s = &ev->sample;
	struct symbol sym;
	__u32 number;
	__u64 addr;

	if (!s->has_task || !tasks_omp(tasks, s->tid, ev->time, &number, &addr) || !addr)
		return false;
	symbols_find(symbols, tasks, s->tgid, addr, ev->time, false, true, &sym);
	snprintf(buf, size, sym.srcline ? "%s %s" : "%s", sym.name, sym.srcline);
	return true;
}

static bool key_word(struct report *r, enum report_key key, const struct trace_event *ev,
		     const struct data_place *place, const struct type_access *access, __u64 *word)
{
	const struct trace_sample *s = &ev->sample;
	bool op = ev->kind == TRACE_SAMPLE_OP;
	char text[512];

	*word = 0;
	switch (key) {
	case REPORT_KEY_SRC:
		*word = op ? ibs_op_src(s->op.cpu, s->op.reg) : 0;
		return op && (s->op.present & REGS_FOR_SRC) == REGS_FOR_SRC;
	case REPORT_KEY_OP:
		*word = op ? ibs_op_kind(s->op.reg[IBS_OP_DATA], s->op.reg[IBS_OP_DATA3]) : 0;
		return op && (s->op.present & REGS_FOR_SRC) == REGS_FOR_SRC;
	case REPORT_KEY_CGROUP:
	case REPORT_KEY_CONTAINER:
	case REPORT_KEY_POD:
		return cgroup_word(r, key, s, word);
	case REPORT_KEY_PID:
		*word = s->tgid;
		return s->has_task && s->tgid != NO_TASK;
	case REPORT_KEY_TID:
		*word = s->tid;
		return s->has_task && s->tid != NO_TASK;
	case REPORT_KEY_COMM:
		return s->has_task &&
		       text_word(r, tasks_comm(r->opts.tasks, s->tgid, s->tid, ev->time), word);
	case REPORT_KEY_CPU:
		*word = s->cpu;
		return s->has_cpu;
	case REPORT_KEY_CCX:
	case REPORT_KEY_NODE:
		return topology_word(r, key, s, word);
	case REPORT_KEY_MEM_NODE:
		return op && memory_node_word(r, &s->op, word);
	case REPORT_KEY_DISTANCE:
		return op && distance_word(r, ev, word);
	case REPORT_KEY_MODE:
		return mode_word(ev, word);
	case REPORT_KEY_SYMBOL:
	case REPORT_KEY_DSO:
	case REPORT_KEY_SRCLINE:
		return symbol_word(r, key, ev, word);
	case REPORT_KEY_IP:
		*word = s->ip;
		return s->has_ip;
	case REPORT_KEY_PHYS_PAGE:
		if (!op || !ibs_op_field(&s->op, IBS_OP_FIELD_DC_PHYS_AD, word))
			return false;
		*word &= ~(PAGE_BYTES - 1);
		return true;
	case REPORT_KEY_PAGE:
	case REPORT_KEY_LINE:
		if (!op || !data_address(r, &s->op, word))
			return false;
		*word &= key == REPORT_KEY_PAGE ? ~(PAGE_BYTES - 1) : ~63ull;
		return true;
	case REPORT_KEY_MAPPING:
	case REPORT_KEY_RANGE:
	case REPORT_KEY_VARIABLE:
	case REPORT_KEY_OFFSET:
		return place_word(r, key, place, word);
	case REPORT_KEY_SLAB:
		return op && slab_word(r, s, word);
	case REPORT_KEY_TYPE:
	case REPORT_KEY_FIELD:
	case REPORT_KEY_FIELD_OFFSET:
	case REPORT_KEY_FIELD_SIZE:
		return type_word(r, key, access, word);
	case REPORT_KEY_SPACE:
		return space_word(r, s, op, word);
	case REPORT_KEY_PAGE_SIZE:
		return op ? page_size_word(&s->op, word) : ibs_fetch_page_size(&s->fetch, word);
	case REPORT_KEY_FETCH:
		*word = ibs_fetch_class(s->fetch.cpu, s->fetch.reg[IBS_FETCH_CTL]);
		return !op && s->fetch.present >> IBS_FETCH_CTL & 1;
	case REPORT_KEY_ITLB:
		*word = ibs_fetch_itlb(s->fetch.cpu, s->fetch.reg[IBS_FETCH_CTL]);
		return !op && s->fetch.present >> IBS_FETCH_CTL & 1;
	case REPORT_KEY_RANK:
		return rank_word(r, ev, word);
	case REPORT_KEY_REGION:
		return s->has_task &&
		       text_word(r, tasks_region(r->opts.tasks, s->tid, ev->time), word);
	case REPORT_KEY_OMP_REGION:
		return report_omp_region(r->opts.tasks, r->opts.symbols, ev, text, sizeof(text)) &&
		       text_word(r, text, word);
	case REPORT_KEY_THREAD_ROLE:
		return report_role(r->opts.tasks, ev, text, sizeof(text)) &&
		       text_word(r, text, word);
	case REPORT_KEY_HOST:
		return text_word(r, *r->opts.info->host ? r->opts.info->host : NULL, word);
	default:
		return s->pmu < r->opts.info->n_pmus &&
		       text_word(r, r->opts.info->pmu[s->pmu].name, word);
	}
}

bool report_key_of(struct report *r, const struct trace_event *ev, __u64 *words)
{
	struct type_access access;
	struct data_place place = {};
	__u64 absent = 0, addr;

	if (r->needs_data || r->needs_types)
		find_place(r, ev, &place);
	if (r->needs_data)
		r->data[place.kind]++;
	if (r->needs_nodes)
		r->nodes[report_node_kind(r->opts.info, &ev->sample)]++;
	if (r->needs_types) {
		find_type(r, ev, &place, &access);
		r->types[access.kind]++;
		if (r->opts.type && (!access.type || strcmp(access.type, r->opts.type) != 0))
			return false;
		if (r->opts.type && ibs_op_field(&ev->sample.op, IBS_OP_FIELD_DC_LIN_AD, &addr))
			r->begins |= 1ull << ((addr - access.offset) & 63);
	}
	for (unsigned int k = 0; k < r->opts.n_by; k++) {
		if (key_word(r, r->opts.by[k], ev, &place, &access, &words[k]))
			continue;
		words[k] = 0;
		absent |= 1ull << k;
	}
	words[r->opts.n_by] = absent;
	return true;
}

void report_key_of_field(struct report *r, const struct type_access *field, __u64 *words)
{
	words[r->opts.n_by] = 0;
	for (unsigned int k = 0; k < r->opts.n_by; k++) {
		words[k] = 0;
		if (!report_needs_types(&r->opts.by[k], 1) ||
		    !type_word(r, r->opts.by[k], field, &words[k]))
			words[r->opts.n_by] |= 1ull << k;
	}
}

const char *report_label(const struct report *r, const __u64 *words, unsigned int k, char *buf,
			 size_t size)
{
	unsigned long long w = words[k];

	if (words[r->opts.n_by] >> k & 1)
		return NULL;
	switch (r->opts.by[k]) {
	case REPORT_KEY_SRC:
		return src_name(w);
	case REPORT_KEY_OP:
		return op_kind_name(w);
	case REPORT_KEY_FETCH:
		return fetch_class_name(w);
	case REPORT_KEY_ITLB:
		return itlb_name(w);
	case REPORT_KEY_MODE:
		return w == IBS_MODE_KERNEL ? "kernel" : "user";
	case REPORT_KEY_SPACE:
		if (w == SPACE_KERNEL)
			return "kernel";
		/* fall through */
	case REPORT_KEY_PID:
	case REPORT_KEY_TID:
	case REPORT_KEY_CPU:
	case REPORT_KEY_CCX:
	case REPORT_KEY_NODE:
	case REPORT_KEY_MEM_NODE:
	case REPORT_KEY_DISTANCE:
	case REPORT_KEY_PAGE_SIZE:
	case REPORT_KEY_RANK:
	case REPORT_KEY_OFFSET:
	case REPORT_KEY_FIELD_OFFSET:
	case REPORT_KEY_FIELD_SIZE:
		snprintf(buf, size, "%llu", w);
		return buf;
	case REPORT_KEY_IP:
	case REPORT_KEY_PAGE:
	case REPORT_KEY_PHYS_PAGE:
	case REPORT_KEY_LINE:
		snprintf(buf, size, "0x%llx", w);
		return buf;
	default:
		return intern_text(&r->texts, w);
	}
}
