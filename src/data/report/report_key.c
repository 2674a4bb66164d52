// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "report_private.h"

#include "cgroup/container.h"

#include <ibscope/filter_fields.h>

#define PAGE_BYTES	4096ull
#define LINE_BYTES	64ull
#define SPACE_KERNEL	(1ull << 32)
#define REGS_FOR_SRC	(1u << IBS_OP_DATA | 1u << IBS_OP_DATA2 | 1u << IBS_OP_DATA3)
#define NO_TASK		(~0u) /* perf's for one that is gone */
#define IS_KERNEL(addr) ((addr) >> 63)

/* A sample, one of the keys, and what is known of the data if keys need that. */
struct key_sample {
	struct report *r;
	const struct trace_event *ev;
	enum label key;
	struct data_place place;
	struct type_access type;
};

/* A value whose text is asked for. */
struct key_value {
	const struct report *r;
	enum label key;
	unsigned long long word;
	char *buf; /* for text that is made */
	size_t size;
};

/* The value of a key. Return: whether the sample has it; only called if its event can have it. */
typedef bool key_word(const struct key_sample *k, __u64 *word);
typedef const char *key_text(const struct key_value *v);

/* What owns the text may live as long as one of several recordings. */
static bool text_word(struct report *r, const char *text, __u64 *word)
{
	*word = text ? intern_get(&r->texts, text) : 0;
	return text != NULL;
}

/* Rows are of mangled names, which are unique: overloads, for example, are printed alike. */
static bool name_word(struct report *r, const char *name, const char *mangled, __u64 *word)
{
	if (!text_word(r, mangled ?: name, word))
		return false;
	if (mangled && u64_map_get(&r->demangled, *word) == U64_MAP_NONE)
		u64_map_put(&r->demangled, *word, intern_get(&r->texts, name));
	return true;
}

/* The same for names that live as long as the recording: their address finds the word. */
static bool symbol_name_word(struct report *r, const struct symbol *sym, __u64 *word)
{
	const uintptr_t key = (uintptr_t)(sym->mangled ?: sym->name);

	*word = u64_map_get(&r->word_of, key);
	if (*word != U64_MAP_NONE)
		return true;
	name_word(r, sym->name, sym->mangled, word);
	u64_map_put(&r->word_of, key, *word);
	return true;
}

static bool comm_text_word(struct report *r, const char *comm, __u64 *word)
{
	return comm && symbol_name_word(r, &(struct symbol){ .name = comm }, word);
}

static bool cgroup_word(const struct key_sample *k, __u64 *word)
{
	const __u64 id = k->ev->sample.cgroup_id;
	struct report *r = k->r;
	struct u64_map *known = &r->cgroups[k->key - LABEL_CGROUP];
	char buf[CONTAINER_LABEL];
	struct container c;
	const char *text;

	_Static_assert(LABEL_POD == LABEL_CGROUP + 2 && LABEL_CONTAINER == LABEL_CGROUP + 1,
		       "keys of cgroups must be neighbours");

	if (!id)
		return false;
	*word = u64_map_get(known, id);
	if (*word == U64_MAP_NONE) {
		text = report_cgroup_text(r->opts.tasks, k->key, id, &c, buf);
		*word = text ? intern_get(&r->texts, text) : INTERN_NONE - 1;
		u64_map_put(known, id, *word);
	}
	return *word != INTERN_NONE - 1;
}

/* --- who --- */

static bool task_word(const struct key_sample *k, __u64 *word)
{
	const struct trace_sample *s = &k->ev->sample;

	*word = k->key == LABEL_PID ? s->tgid : s->tid;
	return s->has_task && *word != NO_TASK;
}

static bool comm_word(const struct key_sample *k, __u64 *word)
{
	const struct trace_sample *s = &k->ev->sample;

	return s->has_task &&
	       comm_text_word(k->r, tasks_comm(k->r->opts.tasks, s->tgid, s->tid, k->ev->time),
			      word);
}

static bool rank_word(const struct key_sample *k, __u64 *word)
{
	__u32 rank;

	if (!k->ev->sample.has_task ||
	    !tasks_rank(k->r->opts.tasks, k->ev->sample.tgid, k->ev->time, &rank))
		return false;
	*word = rank;
	return true;
}

static bool region_word(const struct key_sample *k, __u64 *word)
{
	return k->ev->sample.has_task &&
	       text_word(k->r, tasks_region(k->r->opts.tasks, k->ev->sample.tid, k->ev->time),
			 word);
}

static bool role_word(const struct key_sample *k, __u64 *word)
{
	char text[64];

	return report_role(k->r->opts.tasks, k->ev, text, sizeof(text)) &&
	       text_word(k->r, text, word);
}

static bool omp_region_word(const struct key_sample *k, __u64 *word)
{
	char text[512];

	return report_omp_region(k->r->opts.tasks, k->r->opts.symbols, k->ev, text, sizeof(text)) &&
	       text_word(k->r, text, word);
}

/* --- where it ran --- */

static bool cpu_word(const struct key_sample *k, __u64 *word)
{
	*word = k->ev->sample.cpu;
	return k->ev->sample.has_cpu;
}

/* Complex or node of the CPU. */
static bool topology_word(const struct key_sample *k, __u64 *word)
{
	const struct trace_topology *t = k->r->opts.info->topology;
	const struct trace_sample *s = &k->ev->sample;

	if (!t || !s->has_cpu || s->cpu >= t->n)
		return false;
	*word = (k->key == LABEL_CCX ? t->ccx : t->node)[s->cpu];
	return true;
}

static bool mem_node_word(const struct key_sample *k, __u64 *word)
{
	int node = report_memory_node(k->r->opts.info, &k->ev->sample.op);

	*word = node;
	return node >= 0;
}

static bool distance_word(const struct key_sample *k, __u64 *word)
{
	__u64 node, memory;

	if (!topology_word(k, &node) || !mem_node_word(k, &memory))
		return false;
	*word = node_distance(&k->r->opts.info->topology->distance, node, memory);
	return *word;
}

static bool host_word(const struct key_sample *k, __u64 *word)
{
	const char *host = k->r->opts.info->host;

	return text_word(k->r, *host ? host : NULL, word);
}

/* --- the op, or the fetch --- */

static bool event_word(const struct key_sample *k, __u64 *word)
{
	const struct trace_info *info = k->r->opts.info;

	return k->ev->sample.pmu < info->n_pmus &&
	       text_word(k->r, info->pmu[k->ev->sample.pmu].name, word);
}

static bool op_word(const struct key_sample *k, __u64 *word)
{
	const struct ibs_op_sample *op = &k->ev->sample.op;

	*word = k->key == LABEL_SRC ? ibs_op_src(op->cpu, op->reg)
				    : ibs_op_kind(op->reg[IBS_OP_DATA], op->reg[IBS_OP_DATA3]);
	return (op->present & REGS_FOR_SRC) == REGS_FOR_SRC;
}

static bool fetch_word(const struct key_sample *k, __u64 *word)
{
	const struct ibs_fetch_sample *f = &k->ev->sample.fetch;

	*word = k->key == LABEL_FETCH ? (unsigned int)ibs_fetch_class(f->cpu, f->reg[IBS_FETCH_CTL])
				      : (unsigned int)ibs_fetch_itlb(f->cpu, f->reg[IBS_FETCH_CTL]);
	return f->present >> IBS_FETCH_CTL & 1;
}

/* The bit is valid for memory accesses only. */
static bool prefetch_word(const struct key_sample *k, __u64 *word)
{
	return ibs_op_field(&k->ev->sample.op, IBS_OP_FIELD_SW_PF, word);
}

/* Of an access that missed the L1 cache: did it find a miss of its line under way? */
static bool miss_word(const struct key_sample *k, __u64 *word)
{
	const struct ibs_op_sample *op = &k->ev->sample.op;
	__u64 missed;

	return ibs_op_field(op, IBS_OP_FIELD_DC_MISS, &missed) && missed &&
	       ibs_op_field(op, IBS_OP_FIELD_DC_MISS_NO_MAB_ALLOC, word);
}

static bool mode_word(const struct key_sample *k, __u64 *word)
{
	const struct trace_sample *s = &k->ev->sample;

	if (k->ev->kind == TRACE_SAMPLE_OP)
		*word = ibs_op_mode(s->op.cpu.caps, s->op.reg);
	else
		*word = s->kernel ? IBS_MODE_KERNEL : IBS_MODE_USER;
	return s->has_ip && *word != IBS_MODE_UNKNOWN;
}

static bool ip_word(const struct key_sample *k, __u64 *word)
{
	*word = k->ev->sample.ip;
	return k->ev->sample.has_ip;
}

static bool symbol_word(const struct key_sample *k, __u64 *word)
{
	const struct trace_sample *s = &k->ev->sample;
	const enum label key = k->key;
	struct report *r = k->r;
	const struct inlined *f;
	struct symbol sym;

	if (s->has_ip)
		symbols_find(r->opts.symbols, r->opts.tasks, s->tgid, s->ip, k->ev->time, s->kernel,
			     key == LABEL_SRCLINE, &sym);
	if (key == LABEL_SYMBOL)
		r->code[report_code_kind(s->has_ip, &sym)]++;
	if (s->has_ip && key == LABEL_SYMBOL) {
		f = symbols_inlined(r->opts.symbols, &sym);
		return f ? report_inlined_word(r, f, &sym, word) : symbol_name_word(r, &sym, word);
	}
	return s->has_ip && text_word(r, key == LABEL_DSO ? sym.dso : sym.srcline, word);
}

/* --- who called --- */

static bool caller_word(const struct key_sample *k, __u64 *word)
{
	struct object_name name;

	return report_caller(k->r->opts.symbols, k->r->opts.tasks, k->ev, &name) &&
	       name_word(k->r, name.name, name.mangled, word);
}

static bool stack_word(const struct key_sample *k, __u64 *word)
{
	char text[REPORT_STACK];

	return report_stack(k->r->opts.symbols, k->r->opts.tasks, k->ev, text, sizeof(text)) &&
	       text_word(k->r, text, word);
}

/* --- the address of the data --- */

static bool data_address(const struct report *r, const struct ibs_op_sample *op, __u64 *addr)
{
	return ibs_op_field(op, r->opts.phys ? IBS_OP_FIELD_DC_PHYS_AD : IBS_OP_FIELD_DC_LIN_AD,
			    addr);
}

/* Page or cache line. */
static bool block_word(const struct key_sample *k, __u64 *word)
{
	const struct ibs_op_sample *op = &k->ev->sample.op;
	const bool known = k->key == LABEL_PHYS_PAGE
				   ? ibs_op_field(op, IBS_OP_FIELD_DC_PHYS_AD, word)
				   : data_address(k->r, op, word);

	*word &= ~((k->key == LABEL_LINE ? LINE_BYTES : PAGE_BYTES) - 1);
	return known;
}

static bool space_word(const struct key_sample *k, __u64 *word)
{
	const struct trace_sample *s = &k->ev->sample;
	__u64 addr;

	if (!data_address(k->r, &s->op, &addr))
		return false;
	*word = IS_KERNEL(addr) ? SPACE_KERNEL : s->tgid;
	return IS_KERNEL(addr) || s->has_task;
}

static bool page_size_word(const struct key_sample *k, __u64 *word)
{
	const struct ibs_op_sample *op = &k->ev->sample.op;
	const struct ibs_filter_sample s = { .regs = op->reg, .ibs = &op->cpu };
	__u32 code = op->present >> IBS_OP_DATA3 & 1 ? ibs_filter_page_code(&s) : 3;

	if (k->ev->kind == TRACE_SAMPLE_FETCH)
		return ibs_fetch_page_size(&k->ev->sample.fetch, word);
	*word = 4096ull << 9 * code;
	return code < 3;
}

/* --- what lies there --- */

static bool mapping_word(const struct key_sample *k, __u64 *word)
{
	return text_word(k->r, k->place.mapping, word);
}

static bool range_word(const struct key_sample *k, __u64 *word)
{
	const struct data_place *p = &k->place;
	char text[64];

	snprintf(text, sizeof(text), "0x%llx-0x%llx", (unsigned long long)p->start,
		 (unsigned long long)p->end);
	return text_word(k->r, p->end ? text : NULL, word);
}

/* Variables of all threads fit a table only if their stacks are one row. */
static bool variable_word(const struct key_sample *k, __u64 *word)
{
	const struct data_place *p = &k->place;
	char text[4096];

	return name_word(
		k->r, p->kind == DATA_STACK ? "[stack]" : data_place_label(p, text, sizeof(text)),
		p->mangled, word);
}

static bool offset_word(const struct key_sample *k, __u64 *word)
{
	*word = k->place.offset;
	return k->place.has_offset;
}

static bool allocation_word(const struct key_sample *k, __u64 *word)
{
	return report_allocation_word(k->r, k->ev, &k->place, word);
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

static bool slab_word(const struct key_sample *k, __u64 *word)
{
	const struct trace_sample *s = &k->ev->sample;
	const struct slab_list *slabs = tasks_slabs(k->r->opts.tasks);
	const struct ibs_slab *slab = slab_list_find(slabs, s->slab);
	__u64 addr;

	if (!slabs->n || !ibs_op_field(&s->op, IBS_OP_FIELD_DC_LIN_AD, &addr))
		return false;
	return text_word(k->r,
			 slab		    ? slab->name
			 : !IS_KERNEL(addr) ? "[user]"
			 : s->slab	    ? "[gone]"
					    : "[no slab]",
			 word);
}

static bool type_word(const struct key_sample *k, __u64 *word)
{
	char reason[32];

	snprintf(reason, sizeof(reason), "[%s]", type_kind_name(k->type.kind));
	return text_word(k->r, k->type.type ?: reason, word);
}

/* Numbers and pointers have no fields, which is known. */
static bool field_word(const struct key_sample *k, __u64 *word)
{
	return text_word(k->r, k->type.field ?: (TYPE_FOUND(k->type.kind) ? "" : NULL), word);
}

static bool field_place_word(const struct key_sample *k, __u64 *word)
{
	*word = k->key == LABEL_FIELD_OFFSET ? k->type.field_offset : k->type.field_size;
	return k->type.field_size;
}

/* --- the texts of values --- */

static const char *text_of(const struct key_value *v)
{
	return intern_text(&v->r->texts, v->word);
}

static const char *name_of(const struct key_value *v)
{
	__u32 id = u64_map_get(&v->r->demangled, v->word);

	return intern_text(&v->r->texts, id == U64_MAP_NONE ? v->word : id);
}

static const char *number_of(const struct key_value *v)
{
	snprintf(v->buf, v->size, "%llu", v->word);
	return v->buf;
}

static const char *address_of(const struct key_value *v)
{
	snprintf(v->buf, v->size, "0x%llx", v->word);
	return v->buf;
}

static const char *space_of(const struct key_value *v)
{
	return v->word == SPACE_KERNEL ? "kernel" : number_of(v);
}

static const char *mode_of(const struct key_value *v)
{
	return v->word == IBS_MODE_KERNEL ? "kernel" : "user";
}

static const char *prefetch_of(const struct key_value *v)
{
	return v->word ? "software" : "none";
}

static const char *miss_of(const struct key_value *v)
{
	return v->word ? "secondary" : "primary";
}

static const char *kind_of(const struct key_value *v)
{
	return series_label(&(const struct series){ .op = v->word, .src = v->word }, v->key);
}

#define COUNTED(id, name, by, label, flags, word, text, meaning) { word, text },
#define RECORDED(id, name, flags, word, text, meaning)		 { word, text },

static const struct {
	key_word *word;
	key_text *text;
} keys[LABEL_ALL] = { LABEL_TABLE(COUNTED) RECORDED_KEY_TABLE(RECORDED) };

static bool find_word(struct key_sample *k, enum label key, __u64 *word)
{
	const bool op = k->ev->kind == TRACE_SAMPLE_OP;

	k->key = key;
	*word = 0;
	return !(label_info[key].flags & (op ? KEY_OF_FETCH : KEY_OF_OP)) &&
	       keys[key].word(k, word);
}

bool report_key_of(struct report *r, const struct trace_event *ev, __u64 *words)
{
	struct key_sample k = { .r = r, .ev = ev };
	__u64 absent = 0, addr;

	if (r->flags & (KEY_DATA | KEY_TYPES))
		report_place(r->opts.symbols, r->opts.tasks, ev, &k.place);
	if (r->flags & KEY_DATA)
		r->data[k.place.kind]++;
	if (r->flags & KEY_NODES)
		r->nodes[report_node_kind(r->opts.info, &ev->sample)]++;
	if (r->flags & KEY_TYPES) {
		find_type(r, ev, &k.place, &k.type);
		r->types[k.type.kind]++;
		if (r->opts.type && (!k.type.type || strcmp(k.type.type, r->opts.type) != 0))
			return false;
		if (r->opts.type && TYPE_FOUND(k.type.kind) &&
		    ibs_op_field(&ev->sample.op, IBS_OP_FIELD_DC_LIN_AD, &addr))
			r->begins |= 1ull << ((addr - k.type.offset) & 63);
	}
	for (unsigned int i = 0; i < r->opts.n_by; i++) {
		if (find_word(&k, r->opts.by[i], &words[i]))
			continue;
		words[i] = 0;
		absent |= 1ull << i;
	}
	words[r->opts.n_by] = absent;
	return true;
}

void report_key_of_field(struct report *r, const struct type_access *field, __u64 *words)
{
	struct key_sample k = { .r = r, .type = *field };
	__u64 absent = 0;

	for (unsigned int i = 0; i < r->opts.n_by; i++) {
		const enum label key = r->opts.by[i];

		words[i] = 0;
		k.key = key;
		if (!(label_info[key].flags & KEY_TYPES) || !keys[key].word(&k, &words[i]))
			absent |= 1ull << i;
	}
	words[r->opts.n_by] = absent;
}

const char *report_label(const struct report *r, const __u64 *words, unsigned int k, char *buf,
			 size_t size)
{
	const struct key_value v = { r, r->opts.by[k], words[k], buf, size };

	return words[r->opts.n_by] >> k & 1 ? NULL : keys[r->opts.by[k]].text(&v);
}

bool report_is_name(enum label key)
{
	return keys[key].text == name_of;
}

const char *report_mangled(const struct report *r, const __u64 *words, unsigned int k)
{
	const struct report_inlined *inlined = report_inlined(r, words, k);

	if (inlined)
		return inlined->mangled;
	return report_is_name(r->opts.by[k]) && !(words[r->opts.n_by] >> k & 1) &&
			       u64_map_get(&r->demangled, words[k]) != U64_MAP_NONE
		       ? intern_text(&r->texts, words[k])
		       : NULL;
}
