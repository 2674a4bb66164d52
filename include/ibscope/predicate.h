/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Compiled filters: a decision list over a sample's fields. src/core/filter/filter.c makes it; the BPF
 * program reads it from constants, so that the verifier drops what the filter does not need. Pure
 * functions; user space runs the same code.
 */
#ifndef IBSCOPE_FILTER_H
#define IBSCOPE_FILTER_H

#include <ibscope/fetch_filter_fields.h>
#include <ibscope/outcome.h>

#define IBS_FILTER_TERMS   24
#define IBS_FILTER_CGROUPS 8

enum ibs_filter_cmp {
	IBS_FILTER_EQ,
	IBS_FILTER_NE,
	IBS_FILTER_LT,
	IBS_FILTER_LE,
	IBS_FILTER_GT,
	IBS_FILTER_GE,
	IBS_FILTER_ANY,	 /* a bit of the value is set */
	IBS_FILTER_NONE, /* no bit of the value is set */
};

/* Besides a later term, a term can lead to an outcome; AGGREGATED means acceptance. */
#define IBS_FILTER_END	       128
#define IBS_FILTER_TO(outcome) (IBS_FILTER_END + (outcome))
#define IBS_FILTER_ACCEPT      IBS_FILTER_TO(IBS_OUTCOME_AGGREGATED)
#define IBS_FILTER_REJECT      IBS_FILTER_TO(IBS_OUTCOME_FILTERED_EXPR)
_Static_assert(IBS_FILTER_TERMS <= IBS_FILTER_END && IBS_FILTER_TO(IBS_OUTCOME_N) <= 256,
	       "a byte must hold terms and outcomes");
_Static_assert(IBS_OUTCOME_AGGREGATED == 0, "ibs_filter_eval() tests for it");

struct ibs_filter_term {
	__u16 field;   /* enum ibs_filter_field */
	__u8 when;     /* enum ibs_filter_when, that of the field */
	__u8 cmp;      /* enum ibs_filter_cmp */
	__u8 on_true;  /* index of a later term, or IBS_FILTER_TO(outcome) */
	__u8 on_false; /* also where the field is absent */
	__u16 pad;
	__u64 value;
};
_Static_assert(sizeof(struct ibs_filter_term) == 16, "ibs_filter_term has implicit padding");

/* All zero accepts everything. */
struct ibs_filter {
	__u32 n;
	__u32 needs; /* IBS_FILTER_NEEDS_* of all terms */
	struct ibs_filter_term terms[IBS_FILTER_TERMS];
};

static __always_inline bool ibs_filter_compare(__u32 cmp, __u64 v, __u64 value)
{
	switch (cmp) {
	case IBS_FILTER_EQ:
		return v == value;
	case IBS_FILTER_NE:
		return v != value;
	case IBS_FILTER_LT:
		return v < value;
	case IBS_FILTER_LE:
		return v <= value;
	case IBS_FILTER_GT:
		return v > value;
	case IBS_FILTER_GE:
		return v >= value;
	case IBS_FILTER_ANY:
		return v & value;
	case IBS_FILTER_NONE:
		return !(v & value);
	default:
		return false;
	}
}

/*
 * Without this, clang recomputes an address at each use, and merges the two branches of a term,
 * which the verifier then cannot tell apart.
 */
#ifdef __bpf__
#define IBS_FILTER_OPAQUE(v) asm volatile("" : "+r"(v))
#else
#define IBS_FILTER_OPAQUE(v)
#endif

/**
 * ibs_filter_run() - outcome of a sample: IBS_OUTCOME_AGGREGATED if it passes
 * @f: in BPF a constant of the object; the verifier keeps only the parts in use
 * @fetch: compile-time constant: filter and registers are those of ibs_fetch, else of ibs_op
 *
 * Unrolled term by term, so that each term has its own instructions: in a shared loop body the
 * verifier could not drop what any one term needs.
 */
static __always_inline __u32 ibs_filter_run(const volatile struct ibs_filter *f,
					    const struct ibs_filter_sample *s, bool fetch)
{
	__u32 next = 0;
	__u64 v;

	IBS_FILTER_OPAQUE(f);
	if (!f->n)
		return IBS_OUTCOME_AGGREGATED;
#define IBS_FILTER_STEP(i)                                                    \
	if (next == (i)) {                                                    \
		const volatile struct ibs_filter_term *t = &f->terms[i];      \
                                                                              \
		if ((fetch ? ibs_fetch_filter_value(t->when, t->field, s, &v) \
			   : ibs_filter_value(t->when, t->field, s, &v)) &&   \
		    ibs_filter_compare(t->cmp, v, t->value)) {                \
			next = t->on_true;                                    \
			IBS_FILTER_OPAQUE(next);                              \
			if (next >= IBS_FILTER_END)                           \
				return next - IBS_FILTER_END;                 \
		} else {                                                      \
			next = t->on_false;                                   \
			if (next >= IBS_FILTER_END)                           \
				return next - IBS_FILTER_END;                 \
		}                                                             \
	}
#define IBS_FILTER_STEPS(i) \
	IBS_FILTER_STEP(i)  \
	IBS_FILTER_STEP((i) + 1) IBS_FILTER_STEP((i) + 2) IBS_FILTER_STEP((i) + 3)
#ifdef __bpf__
	IBS_FILTER_STEPS(0)
	IBS_FILTER_STEPS(4)
	IBS_FILTER_STEPS(8)
	IBS_FILTER_STEPS(12)
	IBS_FILTER_STEPS(16)
	IBS_FILTER_STEPS(20)
	_Static_assert(IBS_FILTER_TERMS == 24, "steps must be as many as terms");
#else
	for (__u32 i = 0; i < IBS_FILTER_TERMS; i++)
		IBS_FILTER_STEP(i)
#endif
#undef IBS_FILTER_STEPS
#undef IBS_FILTER_STEP
	return IBS_OUTCOME_LOST_INTERNAL; /* not reached: no term leads past the last */
}

/* Outcome of an ibs_op sample. */
static __always_inline __u32 ibs_filter_outcome(const volatile struct ibs_filter *f,
						const struct ibs_filter_sample *s)
{
	return ibs_filter_run(f, s, false);
}

/* True if the sample passes; @s->src need not be set. */
static __always_inline bool ibs_filter_eval(const volatile struct ibs_filter *f,
					    const struct ibs_filter_sample *s)
{
	struct ibs_filter_sample whole = *s;

	if (f->needs & IBS_FILTER_NEEDS_SRC)
		whole.src = ibs_filter_src(s);
	return ibs_filter_outcome(f, &whole) == IBS_OUTCOME_AGGREGATED;
}

#endif
