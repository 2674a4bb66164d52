// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Rows of functions that the compiler inlined: one for each function that it inlined them into. */
#include "report_private.h"

#define NAME_BYTES 4200 /* of a function or a file, cut before */

struct inlined_row {
	struct report_inlined names;
	__u32 word;
};

void report_inlines_part(struct report_inlines *all)
{
	u64_map_free(&all->of_pointer);
}

void report_inlines_free(struct report_inlines *all)
{
	free(all->row);
	u64_map_free(&all->of_word);
	u64_map_free(&all->of_pointer);
}

static const char *keep(struct report *r, const char *text)
{
	return text ? intern_text(&r->texts, intern_get(&r->texts, text)) : NULL;
}

static __u32 label_of(struct report *r, const char *name, const char *into)
{
	char text[2 * NAME_BYTES];

	snprintf(text, sizeof(text), "%s%s%s)", name, SCREEN_INLINED, into);
	return intern_get(&r->texts, text);
}

/* Rows are of mangled names, which are unique. Return: its index */
static __u32 row_of(struct report *r, const struct inlined *f, const struct symbol *sym)
{
	const struct object_name outer = { sym->name, sym->mangled },
				 into = f->into ? f->into->function : outer;
	struct report_inlines *all = &r->inlined;
	const __u32 word = label_of(r, f->function.mangled ?: f->function.name,
				    into.mangled ?: into.name),
		    known = u64_map_get(&all->of_word, word);

	if (known != U64_MAP_NONE)
		return known;
	u64_map_put(&r->demangled, word, label_of(r, f->function.name, into.name));
	array_reserve(all->row, all->room, all->n + 1);
	u64_map_put(&all->of_word, word, all->n);
	all->row[all->n] = (struct inlined_row){ .names = { .name = keep(r, f->function.name),
							    .mangled = keep(r, f->function.mangled),
							    .into = keep(r, into.name),
							    .into_mangled = keep(r, into.mangled),
							    .function = keep(r, outer.name) },
						 .word = word };
	return all->n++;
}

bool report_inlined_word(struct report *r, const struct inlined *f, const struct symbol *sym,
			 __u64 *word)
{
	struct report_inlines *all = &r->inlined;
	/* the code of one inlining may be in two symbols, if the compiler put what is seldom used elsewhere */
	const __u64 key =
		f->into ? (uintptr_t)f
			: words_hash((const __u64[]){ (uintptr_t)f,
						      (uintptr_t)(sym->mangled ?: sym->name) },
				     2);
	__u32 i = u64_map_get(&all->of_pointer, key);

	if (i == U64_MAP_NONE) {
		i = row_of(r, f, sym);
		u64_map_put(&all->of_pointer, key, i);
	}
	*word = all->row[i].word;
	return true;
}

const struct report_inlined *report_inlined(const struct report *r, const __u64 *words,
					    unsigned int k)
{
	__u32 i = U64_MAP_NONE;

	if (r->opts.by[k] == LABEL_SYMBOL && !(words[r->opts.n_by] >> k & 1))
		i = u64_map_get(&r->inlined.of_word, words[k]);
	return i == U64_MAP_NONE ? NULL : &r->inlined.row[i].names;
}
