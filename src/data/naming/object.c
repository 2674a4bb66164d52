// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Questions about an object, and their answers. */
#include "naming.h"
#include "naming_private.h"

#include "base/rlimit.h"

#include <unistd.h>

#define SPANS_MAX   64 /* of one address that are kept */
#define NOT_INLINED (U64_MAP_NONE - 1)
#define ANSWERS_MAX (1U << 18) /* of an object; then it is asked again */

/* Have it opened by the worker, unless that failed before. */
static void open_or_remember(struct object *o)
{
	const char *before;

	if (o->fd >= 0 && fstat(o->fd, &o->stat))
		o->stat = (struct stat){};
	before = o->fd < 0 ? NULL : naming_remembered(o->naming->opts.memory, &o->stat);
	if (before) {
		snprintf(o->why, sizeof(o->why), "%s", before);
		o->given_up = true;
	} else {
		naming_open(o);
	}
}

struct object *object_open(struct naming *n, const struct object_place *place, char *why,
			   size_t size)
{
	struct object *o = xcalloc(1, sizeof(*o));

	o->naming = n;
	o->root = place->root;
	o->path = xstrdup(place->path);
	o->trusted = place->trusted;
	o->number = n->objects++ % NAMING_OBJECTS;
	if (place->build_id && place->build_id_len <= sizeof(o->build_id)) {
		memcpy(o->build_id, place->build_id, place->build_id_len);
		o->build_id_len = place->build_id_len;
	}
	rlimit_files(8);
	o->fd = -ENOENT;
	if (!place->elsewhere && !strcmp(o->path, "[vdso]"))
		o->fd = file_open_vdso();
	else if (!place->elsewhere && o->path[0] == '/' && o->path[1] != '/')
		o->fd = file_open(&o->root, o->path);
	if (o->fd < 0)
		o->path_errno = -o->fd;
	open_or_remember(o);
	if (!o->other)
		return o;
	snprintf(why, size, "%s",
		 place->elsewhere ? "a container's file whose process has exited" : o->why);
	object_close(o);
	return NULL;
}

static void explain(const struct code_map_place *place, int error, char *why, size_t size)
{
	if (error == ENOENT && !place->dump)
		*why = 0;
	else if (error == ESRCH)
		snprintf(why, size, "%s", place->dump ? "the process is not known any more" : "");
	else if (error == EFBIG)
		snprintf(why, size, "larger than %s", place->dump ? "2 GiB" : "64 MiB");
	else
		snprintf(why, size, "%s",
			 error == EINVAL || error == ELOOP ? "not a regular file"
			 : error == EPERM		   ? "it belongs to another user"
			 : error == ENOEXEC		   ? "not a jitdump of the process"
							   : strerror(error));
}

struct object *object_open_code_map(struct naming *n, const struct code_map_place *place, char *why,
				    size_t size)
{
	struct object *o;
	char path[PATH_MAX];
	int fd = file_open_code_list(&place->root, place->pid, place->alive, place->dump, path,
				     sizeof(path));

	*why = 0;
	if (fd < 0) {
		explain(place, -fd, why, size);
		return NULL;
	}
	o = xcalloc(1, sizeof(*o));
	o->naming = n;
	o->root = place->root;
	o->path = xstrdup(path);
	o->code_list = place->dump ? NAMING_CODE_DUMP : NAMING_CODE_MAP;
	o->number = n->objects++ % NAMING_OBJECTS;
	o->fd = fd;
	open_or_remember(o);
	if (!o->other)
		return o;
	snprintf(why, size, "%s", o->why);
	object_close(o);
	return NULL;
}

void naming_close(struct object *o)
{
	const struct naming_request q = { .op = NAMING_CLOSE, .object = o->number };

	if (o->naming->pid && o->generation == o->naming->generation)
		naming_send(o->naming->sock, &q, naming_request_bytes(&q), -1);
	o->generation = 0;
}

static void free_inlined(struct object *o)
{
	for (size_t i = 0; i < o->n_inlined; i++)
		free(o->inlined[i]);
	free(o->inlined);
	u64_map_free(&o->inlined_of);
	for (int i = 0; i < 2; i++)
		u64_map_free(&o->inlined_at[i]);
}

void object_close(struct object *o)
{
	if (!o)
		return;
	naming_close(o);
	object_forget_code(o);
	if (o->fd >= 0)
		close(o->fd);
	free_inlined(o);
	u64_map_free(&o->answer_of);
	u64_map_free(&o->frame_of);
	free(o->frames);
	free(o->answers);
	free(o->spans);
	free(o->path);
	free(o);
}

const char *object_problem(const struct object *o)
{
	return *o->why ? o->why : NULL;
}

bool object_lacks_time(const struct object *o)
{
	return o->lacks_time;
}

/* --- answers --- */

static bool is_same(const struct answer *a, const struct answer *b)
{
	return a->op == b->op && a->a == b->a && a->b == b->b && a->size == b->size &&
	       a->flag == b->flag;
}

static void set_request(struct object *o, const struct answer *a)
{
	struct naming_request *q = &o->naming->request;

	*q = (struct naming_request){ .op = a->op,
				      .object = o->number,
				      .a = a->a,
				      .b = a->b,
				      .size = a->size,
				      .flag = a->flag };
}

static const char *keep(struct object *o, const char *text)
{
	struct intern *texts = &o->naming->texts;
	__u32 id;

	if (!text)
		return NULL;
	id = intern_find(texts, text);
	if (id == INTERN_NONE) {
		o->text_bytes += strlen(text) + 1;
		id = intern_get(texts, text);
	}
	return intern_text(texts, id);
}

static struct answer *store(struct object *o, const struct answer *a, __u64 key)
{
	if (o->n_answers >= ANSWERS_MAX) {
		o->n_answers = 0;
		u64_map_free(&o->answer_of);
	}
	array_reserve(o->answers, o->room, o->n_answers + 1);
	if (a->op == NAMING_CODE_AT)
		u64_map_add(&o->answer_of, key, o->n_answers);
	else
		u64_map_put(&o->answer_of, key, o->n_answers);
	o->answers[o->n_answers] = *a;
	return &o->answers[o->n_answers++];
}

/* Names alone are kept for other processes. */
static bool is_kept(const struct answer *question)
{
	return question->op == NAMING_SYMBOL && !question->flag;
}

/* Put a question to the worker, and keep the answer: under @key, or not if that is 0. Return: as ask(). */
static const struct answer *ask_worker(struct object *o, struct answer question, __u64 key)
{
	const struct naming_reply *r = &o->naming->reply;
	const char *texts[NAMING_TEXTS];
	static struct answer unkept;

	if (o->text_bytes > OBJECT_TEXTS && !o->given_up) {
		snprintf(o->why, sizeof(o->why), "its names have more than %llu MiB",
			 OBJECT_TEXTS >> 20);
		o->given_up = true;
	}
	set_request(o, &question);
	if (!naming_ask(o, texts))
		return NULL;
	if (texts[2]) {
		snprintf(o->why, sizeof(o->why), "%s", texts[2]);
		naming_remember(o->naming->opts.memory, o);
	}
	question.ret = r->ret;
	memcpy(question.v, r->v, sizeof(question.v));
	question.text[0] = keep(o, texts[0]);
	question.text[1] = keep(o, texts[1]);
	question.text[2] = keep(o, texts[3]);
	if (is_kept(&question) && o->spent_ns > KEPT_S * 1e9)
		naming_keep(o->naming->opts.memory, o, question.a, question.text);
	if (key)
		return store(o, &question, key);
	unkept = question;
	return &unkept;
}

/* Return: NULL if nothing is known any more; else valid until the next question. */
static const struct answer *ask(struct object *o, struct answer question)
{
	__u64 key = words_hash((const __u64[]){ question.op, question.a, question.b, question.size,
						question.flag },
			       5);
	__u32 known = u64_map_get(&o->answer_of, key);
	const char *texts[2];

	if (known != U64_MAP_NONE && is_same(&o->answers[known], &question))
		return &o->answers[known];
	if (is_kept(&question) && !o->given_up &&
	    naming_recall(o->naming->opts.memory, o, question.a, texts)) {
		question.text[0] = keep(o, texts[0]);
		question.text[1] = keep(o, texts[1]);
		return store(o, &question, key);
	}
	return ask_worker(o, question, key);
}

static void put_inlined(struct u64_map *of, __u64 at, __u32 known)
{
	if (of->n >= ANSWERS_MAX)
		u64_map_free(of);
	u64_map_put(of, at, known);
}

static struct object_name name_of(const struct answer *reply)
{
	return reply ? (struct object_name){ reply->text[0], reply->text[1] }
		     : (struct object_name){};
}

/* Return: the number of spans that begin at or before an offset. */
static size_t spans_before(const struct object *o, __u64 offset)
{
	size_t lo = 0, hi = o->n_spans;

	while (lo < hi) {
		size_t mid = lo + (hi - lo) / 2;

		if (o->spans[mid].from <= offset)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo;
}

/* Return: the name at an offset, if a span is known to have it, or NULL. */
static const struct name_span *known_span(const struct object *o, __u64 offset, bool inlined)
{
	size_t n = spans_before(o, offset);
	const struct name_span *s = n ? &o->spans[n - 1] : NULL;

	return s && offset < s->until && s->has_inlined >= inlined ? s : NULL;
}

/* The worker may send any: then it is of this offset alone. */
static const struct name_span *add_span(struct object *o, __u64 offset, bool inlined,
					const struct answer *a)
{
	const bool valid = offset >= a->v[1] && offset < a->v[2];
	const struct name_span s = { .from = valid ? a->v[1] : offset,
				     .until = valid ? a->v[2] : offset + 1,
				     .inlined = inlined ? a->v[0] : 0,
				     .has_inlined = inlined,
				     .text = { a->text[0], a->text[1] } };
	size_t at;

	if (o->n_spans >= ANSWERS_MAX)
		o->n_spans = 0;
	at = spans_before(o, s.from);
	/* the same one, now with what is inlined there */
	if (at && o->spans[at - 1].from == s.from) {
		o->spans[at - 1] = s;
		return &o->spans[at - 1];
	}
	array_reserve(o->spans, o->spans_room, o->n_spans + 1);
	memmove(&o->spans[at + 1], &o->spans[at], (o->n_spans++ - at) * sizeof(s));
	o->spans[at] = s;
	return &o->spans[at];
}

/* Return: NULL if nothing is known any more; else valid until the next question. */
static const struct name_span *span_of(struct object *o, __u64 offset, bool inlined)
{
	const struct name_span *s = known_span(o, offset, inlined);
	const struct answer question = { .op = NAMING_SYMBOL, .a = offset, .flag = inlined }, *a;

	if (s && is_kept(&question) && o->spent_ns > KEPT_S * 1e9)
		naming_keep(o->naming->opts.memory, o, offset, s->text);
	if (s)
		return s;
	a = ask(o, question);
	return a ? add_span(o, offset, inlined, a) : NULL;
}

bool object_symbol(struct object *o, __u64 offset, struct object_name *out)
{
	const bool inlined = o->naming->asks_inlined && !o->code_list;
	const struct name_span *s = span_of(o, offset, inlined);
	__u32 known = NOT_INLINED;

	if (s && s->inlined)
		known = u64_map_get(&o->inlined_of, s->inlined);
	if (s && inlined && known != U64_MAP_NONE)
		put_inlined(&o->inlined_at[0], offset, known);
	*out = s ? (struct object_name){ s->text[0], s->text[1] } : (struct object_name){};
	return out->name;
}

/* An answer is kept for all times for which it holds. */
const char *object_code_at(struct object *o, __u64 addr, __u64 time)
{
	const struct answer question = { .op = NAMING_CODE_AT, .a = addr, .b = time };
	__u64 key = words_hash((const __u64[]){ question.op, addr }, 2);
	const struct answer *a;
	unsigned int n = 0;
	__u32 i;

	u64_map_for_each(i, &o->answer_of, key)
	{
		a = &o->answers[i];
		if (a->op == question.op && a->a == addr && time >= a->v[0] && time < a->v[1])
			return a->text[0];
		if (++n == SPANS_MAX)
			break;
	}
	a = ask_worker(o, question, n < SPANS_MAX ? key : 0);
	return a ? a->text[0] : NULL;
}

const char *object_name(struct object *o, __u64 addr)
{
	const struct answer *reply = ask(o, (struct answer){ .op = NAMING_NAME, .a = addr });

	return reply ? reply->text[0] : NULL;
}

const char *object_srcline(struct object *o, __u64 offset)
{
	const struct answer *reply = ask(o, (struct answer){ .op = NAMING_SRCLINE, .a = offset });

	return reply ? reply->text[0] : NULL;
}

bool object_is_go(struct object *o)
{
	const struct answer *reply = ask(o, (struct answer){ .op = NAMING_IS_GO });

	return reply && reply->ret;
}

bool object_variable(struct object *o, __u64 pgoff, bool exec, __u64 offset,
		     struct object_name *name, __u64 *at)
{
	const struct answer *reply = ask(
		o, (struct answer){ .op = NAMING_VARIABLE, .a = pgoff, .b = offset, .flag = exec });

	if (!reply || !reply->ret)
		return false;
	*name = name_of(reply);
	*at = reply->v[0];
	return true;
}

/* --- inlined functions: a chain is kept once, whatever addresses have it --- */

static struct inlined *new_inlined(const struct answer *a)
{
	struct inlined *f = xcalloc(1, sizeof(*f));

	f->function = name_of(a);
	f->file = a->text[2];
	f->line = (int)a->v[1];
	return f;
}

static __u32 add_inlined(struct object *o, __u64 id, struct inlined *f, __u32 into)
{
	/* the worker may send anything, such as a chain that never ends */
	if (into != NOT_INLINED && o->inlined[into]->depth < INLINED_MAX)
		f->into = o->inlined[into];
	f->depth = f->into ? f->into->depth + 1 : 1;
	array_reserve(o->inlined, o->inlined_room, o->n_inlined + 1);
	o->inlined[o->n_inlined] = f;
	u64_map_put(&o->inlined_of, id, o->n_inlined);
	return o->n_inlined++;
}

/* Ask from the innermost one on, until one is known. */
static __u32 ask_inlined(struct object *o, struct answer question)
{
	struct inlined *new[INLINED_MAX];
	__u32 known = U64_MAP_NONE;
	__u64 id[INLINED_MAX], next = 1;
	const struct answer *a;
	unsigned int n = 0;

	while (next && known == U64_MAP_NONE && n < INLINED_MAX && o->n_inlined + n < ANSWERS_MAX) {
		question.b = n;
		a = ask_worker(o, question, 0);
		if (!a || !a->ret || !a->text[0])
			break;
		known = u64_map_get(&o->inlined_of, a->v[0]);
		if (known != U64_MAP_NONE)
			break;
		id[n] = a->v[0];
		next = a->v[2];
		new[n++] = new_inlined(a);
		known = u64_map_get(&o->inlined_of, next);
	}
	known = known == U64_MAP_NONE ? NOT_INLINED : known;
	while (n--)
		known = add_inlined(o, id[n], new[n], known);
	return known;
}

static const struct inlined *find_inlined(struct object *o, __u64 at, bool is_address)
{
	struct u64_map *of = &o->inlined_at[is_address];
	__u32 known = u64_map_get(of, at);

	o->naming->asks_inlined |= !is_address;
	if (known == U64_MAP_NONE) {
		known = ask_inlined(
			o, (struct answer){ .op = NAMING_INLINED, .a = at, .flag = is_address });
		put_inlined(of, at, known);
	}
	return known == NOT_INLINED ? NULL : o->inlined[known];
}

const struct inlined *object_inlined(struct object *o, __u64 offset)
{
	return find_inlined(o, offset, false);
}

const struct inlined *object_inlined_at(struct object *o, __u64 addr)
{
	return find_inlined(o, addr, true);
}

static void get_type(struct object *o, const struct answer question, struct type_access *out)
{
	const struct answer *reply = ask(o, question);

	*out = (struct type_access){ .kind = TYPE_NO_DEBUG };
	/* one that was found has a type, and no other */
	if (!reply || reply->ret < 0 || reply->ret >= TYPE_KIND_N ||
	    TYPE_FOUND(reply->ret) != !!reply->text[0])
		return;
	*out = (struct type_access){ .kind = reply->ret,
				     .type = reply->text[0],
				     .field = reply->text[1],
				     .offset = reply->v[0],
				     .field_offset = reply->v[1],
				     .field_size = reply->v[2] };
}

void object_code_type(struct object *o, __u64 addr, struct type_access *out)
{
	get_type(o, (struct answer){ .op = NAMING_CODE_TYPE, .a = addr }, out);
}

void object_type(struct object *o, __u64 offset, struct type_access *out)
{
	get_type(o, (struct answer){ .op = NAMING_TYPE, .a = offset }, out);
}

void object_variable_type(struct object *o, __u64 pgoff, bool exec, __u64 offset, unsigned int size,
			  struct type_access *out)
{
	get_type(o,
		 (struct answer){ .op = NAMING_VARIABLE_TYPE,
				  .a = pgoff,
				  .b = offset,
				  .flag = exec,
				  .size = size },
		 out);
}

#define FIELDS_MAX 65536

bool object_layout(struct object *o, const char *name, types_field_cb *cb, void *arg)
{
	struct naming_request *q = &o->naming->request;
	const struct naming_reply *r = &o->naming->reply;
	const char *texts[NAMING_TEXTS];
	size_t len = strlen(name) + 1;

	for (__u64 i = 0; i < FIELDS_MAX && len <= NAMING_TEXT_MAX; i++) {
		*q = (struct naming_request){
			.op = NAMING_LAYOUT, .object = o->number, .a = i, .text_len = len
		};
		memcpy(q->text, name, len);
		if (!naming_ask(o, texts) || !r->ret)
			return i > 0;
		if (r->ret == 1 || !texts[0])
			return true;
		cb(texts[0], r->v[0], r->v[1], arg);
	}
	return true;
}

bool object_function(struct object *o, __u64 offset, struct object_function *out, __u64 *at)
{
	const struct answer *reply = ask(o, (struct answer){ .op = NAMING_FUNCTION, .a = offset });

	if (!reply || !reply->ret || !reply->text[0])
		return false;
	*out = (struct object_function){ reply->text[0], reply->v[0], reply->v[1] };
	*at = reply->v[2];
	return true;
}

bool object_line(struct object *o, __u64 addr, struct source_place *out)
{
	const struct answer *reply = ask(o, (struct answer){ .op = NAMING_LINE, .a = addr });

	if (!reply || !reply->ret || !reply->text[0])
		return false;
	*out = (struct source_place){ reply->text[0], reply->text[1], (int)reply->v[0] };
	return true;
}
