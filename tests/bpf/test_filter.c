// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * The filter as the kernel runs it: on random filters and samples it says what user space says, and
 * the longest one loads as a perf_event program. The object, filter_test.bpf.o, lies beside the
 * test program.
 */
#include <bpf/bpf.h>
#include <bpf/btf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <cmocka.h>

#include "../unit/filter_gen.h"
#include "base/err.h"
#include "filter_test.h"
#include "perf/sample_cost.h"

#define LOG_SIZE (1 << 20)

static char object[4096];
static char verifier_log[LOG_SIZE];

static int quiet(enum libbpf_print_level level, const char *fmt, va_list ap)
{
	return level == LIBBPF_WARN ? vfprintf(stderr, fmt, ap) : 0;
}

/* Where a variable lies in the contents of its map. */
static void *variable(struct bpf_object *obj, const char *section, const char *name)
{
	const struct btf *btf = bpf_object__btf(obj);
	struct bpf_map *map = bpf_object__find_map_by_name(obj, section);
	const struct btf_var_secinfo *v;
	const struct btf_type *sec;
	size_t size;
	int id;

	assert_non_null(map);
	id = btf__find_by_name_kind(btf, section, BTF_KIND_DATASEC);
	assert_true(id > 0);
	sec = btf__type_by_id(btf, id);
	v = btf_var_secinfos(sec);
	for (int i = 0; i < btf_vlen(sec); i++, v++) {
		const struct btf_type *t = btf__type_by_id(btf, v->type);

		if (!strcmp(btf__name_by_offset(btf, t->name_off), name))
			return (char *)bpf_map__initial_value(map, &size) + v->offset;
	}
	fail_msg("no variable %s", name);
	return NULL;
}

/* Only @progs, a list that ends in NULL, are loaded. */
static struct bpf_object *load(const struct ibs_filter *f, __u32 caps, __u32 quirks,
			       const char *const *progs)
{
	struct bpf_object *obj = bpf_object__open_file(object, NULL);
	const struct ibs_cpu cpu = { .caps = caps, .quirks = quirks };
	struct bpf_program *prog;

	if (!obj)
		fail_msg("%s: %s", object, strerror(errno));
	memcpy(variable(obj, ".rodata", "cfg_filter"), f, sizeof(*f));
	memcpy(variable(obj, ".rodata", "cfg_ibs"), &cpu, sizeof(cpu));
	bpf_object__for_each_program (prog, obj)
		bpf_program__set_autoload(prog, false);
	for (; *progs; progs++) {
		prog = bpf_object__find_program_by_name(obj, *progs);
		bpf_program__set_autoload(prog, true);
		bpf_program__set_log_level(prog, 4);
		bpf_program__set_log_buf(prog, verifier_log, sizeof(verifier_log));
	}
	if (bpf_object__load(obj))
		fail_msg("not loaded: %s\n%s", strerror(errno), verifier_log);
	return obj;
}

static struct bpf_prog_info prog_info(struct bpf_object *obj, const char *name)
{
	struct bpf_prog_info info = {};
	__u32 len = sizeof(info);
	int fd = bpf_program__fd(bpf_object__find_program_by_name(obj, name));

	assert_int_equal(bpf_obj_get_info_by_fd(fd, &info, &len), 0);
	return info;
}

static unsigned int verified(void)
{
	const char *at = strstr(verifier_log, "processed ");
	unsigned int n = 0;

	if (at)
		sscanf(at, "processed %u", &n);
	return n;
}

static const char *const nmi[] = { "filter_nmi", NULL };

static void report(const char *what, const struct ibs_filter *f)
{
	struct bpf_object *obj = load(f, 0xbff, 0, nmi);
	struct bpf_prog_info info = prog_info(obj, nmi[0]);

	print_message("%-28s verified %6u, xlated %5u insns, jited %5u bytes\n", what, verified(),
		      info.xlated_prog_len / 8, info.jited_prog_len);
	bpf_object__close(obj);
}

static void report_text(const char *text)
{
	struct filter f;
	struct err e = {};

	if (filter_parse(text, &f, &e))
		fail_msg("'%s': %s", text, e.text);
	report(text, &f.prog);
	filter_free(&f);
}

/* All terms in use, each of them another field, in the shape that has the most paths. */
static void longest(struct ibs_filter *f, int first, bool mixed)
{
	memset(f, 0, sizeof(*f));
	f->n = IBS_FILTER_TERMS;
	for (int i = 0; i < IBS_FILTER_TERMS; i++) {
		struct ibs_filter_term *t = &f->terms[i];
		bool last = i == IBS_FILTER_TERMS - 1;
		int field = (first + i) % IBS_FILTER_FIELD_N;

		t->field = field;
		t->when = filter_fields[field].when;
		t->cmp = i % (IBS_FILTER_NONE + 1);
		t->value = 1;
		t->on_true = last ? IBS_FILTER_ACCEPT : i + 1;
		t->on_false =
			last || !mixed || i + 3 >= IBS_FILTER_TERMS ? IBS_FILTER_REJECT : i + 3;
		f->needs |= filter_fields[field].needs;
	}
}

static void test_loads(void **state)
{
	struct ibs_filter f = {};
	struct utsname u;

	(void)state;
	uname(&u);
	print_message("kernel %s\n", u.release);
	{
		static const char *const empty[] = { "filter_empty", NULL };
		struct bpf_object *obj = load(&f, 0xbff, 0, empty);
		struct bpf_prog_info info = prog_info(obj, empty[0]);

		print_message("%-28s verified %6u, xlated %5u insns, jited %5u bytes\n",
			      "no filter code", verified(), info.xlated_prog_len / 8,
			      info.jited_prog_len);
		bpf_object__close(obj);
	}
	report("none", &f);
	report_text("tag_to_ret > 300");
	report_text("dc_miss_lat > 300");
	report_text("pid == 7");
	report_text("mem_lvl == ram");
	report_text("data_src == dram");
	report_text("mem_lvl == ram && weight1 > 300");
	report_text("data_src == dram || data_src == remote-dram || data_src == cxl");
	report_text("mem_lvl == ram && weight1 > 300 || swpf == 1 && l2_miss == 1");
	longest(&f, 0, false);
	report("24 terms, first, AND", &f);
	longest(&f, 0, true);
	report("24 terms, first, mixed", &f);
	longest(&f, 27, false);
	report("24 terms, last, AND", &f);
	longest(&f, 27, true);
	report("24 terms, last, mixed", &f);
	for (int i = 0; i < IBS_FILTER_TERMS; i++) {
		f.terms[i].field = IBS_FILTER_MEM_LVL;
		f.terms[i].when = IBS_FILTER_WHEN_LVL;
	}
	report("24 terms, mem_lvl, mixed", &f);
}

static const __u32 gens[][2] = {
	{ 0x3ff, 0 },	{ 0x3ff, IBS_QUIRK_OP_1293 | IBS_QUIRK_NO_CACHE_HIT_ST_A },
	{ 0xbff, 0 },	{ 0x81bff, 0 },
	{ 0x9fbff, 0 },
};

/* The program type is asked for too: of one that is not known the helper's probe says yes. */
static void need_bpf_loop(void)
{
	if (libbpf_probe_bpf_prog_type(BPF_PROG_TYPE_SYSCALL, NULL) == 1 &&
	    libbpf_probe_bpf_helper(BPF_PROG_TYPE_SYSCALL, BPF_FUNC_loop, NULL) == 1)
		return;
	print_message("skipped: this kernel has no bpf_loop() (v5.17)\n");
	skip();
}

static int compare(struct gen_rng *r, const struct filter *f, const char *text)
{
	static const char *const run[] = { "filter_run", NULL };
	const __u32 *gen = gens[gen_below(r, sizeof(gens) / sizeof(gens[0]))];
	struct bpf_object *obj = load(&f->prog, gen[0], gen[1], run);
	LIBBPF_OPTS(bpf_test_run_opts, opts);
	static struct filter_test_area area;
	struct bpf_map *bss = bpf_object__find_map_by_name(obj, ".bss");
	__u32 want[FILTER_TEST_SAMPLES];
	size_t size, at;
	char *bytes;
	__u32 zero = 0;
	int passed = 0;

	at = (char *)variable(obj, ".bss", "area") - (char *)bpf_map__initial_value(bss, &size);
	for (int i = 0; i < FILTER_TEST_SAMPLES; i++) {
		struct filter_test_sample *in = &area.sample[i];
		struct ibs_filter_sample s;
		struct gen_sample gs;

		gen_sample(r, gen[0], gen[1], &gs);
		gen_to_filter(&gs, f, &s);
		memcpy(in->regs, s.regs, sizeof(in->regs));
		in->pid_tgid = s.pid_tgid;
		in->uid_gid = s.uid_gid;
		in->cpu = s.cpu;
		in->cgroups = s.cgroups;
		want[i] = ibs_filter_outcome(&f->prog, &s);
	}
	memset(area.outcome, 0xff, sizeof(area.outcome));
	bytes = calloc(1, size);
	assert_non_null(bytes);
	memcpy(bytes + at, &area, sizeof(area));
	assert_int_equal(bpf_map_update_elem(bpf_map__fd(bss), &zero, bytes, 0), 0);
	assert_int_equal(
		bpf_prog_test_run_opts(
			bpf_program__fd(bpf_object__find_program_by_name(obj, run[0])), &opts),
		0);
	assert_int_equal(bpf_map_lookup_elem(bpf_map__fd(bss), &zero, bytes), 0);
	memcpy(&area, bytes + at, sizeof(area));
	for (int i = 0; i < FILTER_TEST_SAMPLES; i++) {
		if (area.outcome[i] != want[i])
			fail_msg("'%s': BPF says %d, user space %d", text, area.outcome[i],
				 want[i]);
		passed += want[i] == IBS_OUTCOME_AGGREGATED;
	}
	free(bytes);
	bpf_object__close(obj);
	return passed;
}

static void test_same_as_user_space(void **state)
{
	enum { FILTERS = 120 };
	int passed = 0, all = FILTERS * FILTER_TEST_SAMPLES, n = 0;

	(void)state;
	need_bpf_loop();
	for (int i = 0; n < FILTERS; i++) {
		struct gen_rng r = { .seed = i + 77 };
		struct filter_part parts[3];
		struct filter f;
		char *texts[3];

		for (int p = 0; p < 3; p++) {
			struct gen g = {};

			texts[p] = gen_text(&g, &r, gen_tree(&g, &r, p ? i % 2 : 1 + i % 5));
			parts[p] = (struct filter_part){
				.text = texts[p],
				.outcome = IBS_OUTCOME_FILTERED_MODE + p,
			};
		}
		if (!filter_compile(parts, 1 + i % 3, &f, NULL)) {
			passed += compare(&r, &f, f.text);
			filter_free(&f);
			n++;
		}
		for (int p = 0; p < 3; p++)
			free(texts[p]);
	}
	print_message("%d of %d samples passed\n", passed, all);
	assert_in_range(passed, all / 10, all * 9 / 10);
}

/* Every term and comparison at least once, which random filters may not reach. */
static void test_every_term(void **state)
{
	struct gen_rng r = { .seed = 5 };
	struct filter f = {};

	(void)state;
	need_bpf_loop();
	for (int first = 0; first < IBS_FILTER_FIELD_N; first += 8) {
		for (int shift = 0; shift < 2; shift++) {
			longest(&f.prog, first, shift);
			/* each term decides for itself, so that all are reached */
			for (__u32 i = 0; i < f.prog.n; i++) {
				f.prog.terms[i].cmp = (i + first / 8 + shift * 4) % 8;
				f.prog.terms[i].on_false =
					i + 1 < f.prog.n ? i + 1 : IBS_FILTER_REJECT;
				f.prog.terms[i].on_true =
					i % 5 == 4 ? IBS_FILTER_ACCEPT : f.prog.terms[i].on_false;
			}
			compare(&r, &f, "every term");
		}
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_loads),
		cmocka_unit_test(test_same_as_user_space),
		cmocka_unit_test(test_every_term),
	};
	ssize_t n = readlink("/proc/self/exe", object, sizeof(object) - 32);
	const int prog = sample_cost_empty_program();
	char *slash;

	libbpf_set_print(quiet);
	if (prog < 0) {
		printf("cannot load BPF programs: %s\n", strerror(-prog));
		return 77;
	}
	close(prog);
	if (n < 0)
		return 1;
	object[n] = 0;
	slash = strrchr(object, '/');
	strcpy(slash, "/filter_test.bpf.o");
	if (access(object, R_OK)) {
		printf("%s is not built\n", object);
		return 77;
	}
	return cmocka_run_group_tests(tests, NULL, NULL);
}
