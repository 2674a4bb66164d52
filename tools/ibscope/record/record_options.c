// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* The options of record, one function and one row each. */
#include "base/choice.h"
#include "base/num.h"
#include "record_private.h"

#define ROTATE_MAX     10000
#define DURATION_MAX_S (10000.0 * 86400)
#define ALLOCS_DEFAULT 4096
#define ALLOCS_MAX     (1ULL << 40)

static int set_raw(void *ctx, const char *arg, struct err *err)
{
	struct record *r = ctx;

	(void)arg;
	(void)err;
	r->sampling.sampler.output = SAMPLER_RECORDS_RAW;
	return 0;
}

/* "dwarf" or "dwarf,16K". */
static int parse_copy_bytes(const char *arg, __u32 *out, struct err *err)
{
	static const struct size_arg size = { .name = "--call-graph dwarf,BYTES",
					      .min = IBS_COPY_STEP,
					      .max = IBS_COPY_MAX };
	uint64_t bytes = IBS_COPY_DEFAULT;
	int ret = *arg ? num_parse_size(&size, arg + 1, &bytes, err) : 0;

	*out = (bytes + IBS_COPY_STEP - 1) / IBS_COPY_STEP * IBS_COPY_STEP;
	return ret;
}

static int set_call_graph(void *ctx, const char *arg, struct err *err)
{
	static const char *const ways[] = { "fp", "kernel", "dwarf" };
	static const char dwarf[] = "dwarf";
	static const struct choices choices = {
		.option = "--call-graph", .what = "way to unwind", .n = 3, .names = ways
	};
	struct sampler_opts *to = &((struct record *)ctx)->sampling.sampler;
	__u32 copy_bytes = 0;
	unsigned int way = 0;
	int ret;

	if (!strncmp(arg, dwarf, strlen(dwarf)) && (arg[5] == ',' || !arg[5]))
		ret = parse_copy_bytes(arg + strlen(dwarf), &copy_bytes, err);
	else
		ret = choice_parse(&choices, arg, &way, err);
	if (ret)
		return ret;
	to->stacks = true;
	to->kernel_stacks = way == 1;
	to->copy_bytes = copy_bytes;
	return 0;
}

static int set_allocs(void *ctx, const char *arg, struct err *err)
{
	static const struct size_arg size = { .name = "--allocs", .min = 1, .max = ALLOCS_MAX };

	uint64_t bytes = ALLOCS_DEFAULT;
	int ret = arg ? num_parse_size(&size, arg, &bytes, err) : 0;

	((struct record *)ctx)->alloc_bytes = bytes;
	return ret;
}

static int set_max_loss(void *ctx, const char *arg, struct err *err)
{
	struct record *r = ctx;

	return num_parse_percent("--max-loss", arg, 0, 100, &r->max_loss, err);
}

int record_check_strata(const struct record *r, struct err *err)
{
	if (r->out.format != OUTPUT_RECORDING)
		return err_set(err, -EINVAL,
			       "--strata: lines of text have no weights; record to a file");
	if (r->sampling.n_events == 2)
		return err_set(err, -EINVAL, "--strata: works with one event");
	if (r->out.rotate)
		return err_set(err, -EINVAL,
			       "--strata and --rotate exclude each other: the files would share "
			       "slices of time, which give samples their weights");
	return 0;
}

/* clang-format off: a row is a row */
const struct option_row record_options[] = {
	{ "output", 'o', "FILE",
	  "output file; default " OUTPUT_DEFAULT_PATH
	  ", or '-' (stdout) for text; an existing file is "
	  "renamed to FILE.old",
	  OPTION_WORD(struct record, out.path) },
	{ "per-rank", 0, NULL,
	  "COMMAND is a rank of an MPI job: the first rank of each node records all ranks of the "
	  "node; in FILE, %h is the host, %r the rank; default " RECORD_RANK_PATH,
	  OPTION_FLAG(struct record, per_rank) },
	{ "omp", 0, NULL,
	  "record the OpenMP regions and thread numbers of COMMAND, if its runtime has OMPT",
	  OPTION_FLAG(struct record, omp) },
	{ "markers", 0, NULL, "record the regions that COMMAND marks with LIKWID or Caliper",
	  OPTION_FLAG(struct record, markers) },
	{ "csv", 0, NULL, "print one line per sample, after a header",
	  OPTION_FLAG(struct record, csv) },
	{ "json", 0, NULL, "print one JSON object per sample", OPTION_FLAG(struct record, json) },
	{ "raw", 0, NULL, "record all registers unchanged", set_raw },
	{ "stacks", 'g', NULL, "record call chains of selected samples, as --call-graph fp",
	  OPTION_FLAG(struct record, sampling.sampler.stacks) },
	{ "call-graph", 0, "fp|kernel|dwarf[,BYTES]",
	  "record call chains: fp walks frame pointers of user space after a sample is selected; "
	  "kernel also has the kernel's own frames, but unwinds at every sample, even at dropped "
	  "ones; dwarf copies the user's registers and BYTES of its stack (8K, at most 64K) of "
	  "selected samples, which readers unwind: for code without frame pointers",
	  set_call_graph },
	{ "slabs", 0, NULL,
	  "record the slab cache of kernel data, for `ibscope report --by slab,type,field` (Linux "
	  "6.13)",
	  OPTION_FLAG(struct record, sampling.sampler.slabs) },
	{ "strata", 0, STRATA_OPTION_CHOICES,
	  "alternate between all ops and, at a shorter period, only those that miss the L3; "
	  "readers "
	  "use the weights of both; auto: where the machine can; default off",
	  OPTION_CHOICE(struct record, sampling.strata, "choice", strata_option_name,
			STRATA_OPTIONS) },
	{ "allocs", 0, "[=BYTES]",
	  "record allocations of at least BYTES (4K) by COMMAND and a sample of smaller ones, with "
	  "their stacks, for `ibscope report --by allocation`; or those that COMMAND, or the "
	  "processes of --pid, report by the USDT probes otel_memory",
	  set_allocs },
	{ "code-maps", 0, NULL,
	  "record maps of code only: cheaper if processes map and unmap memory all the time, but "
	  "heaps, stacks and data files stay unnamed",
	  OPTION_FLAG(struct record, code_maps) },
	{ "duration", 0, "TIME", "stop after TIME, in seconds or as in 5m",
	  OPTION_DURATION(struct record, duration_s, 1e-3, DURATION_MAX_S) },
	{ "max-size", 0, "SIZE", "stop when the file reaches SIZE, as in 500M",
	  OPTION_SIZE(struct record, max_bytes, 0, 4096, 1ULL << 60) },
	{ "rotate", 0, "N", "start a new file instead of stopping, and keep N: FILE, FILE.1, ..",
	  OPTION_NUMBER(struct record, out.rotate, 2, ROTATE_MAX), .what = "files" },
	{ "ring-size", 0, "SIZE",
	  "kernel buffer of each CPU, a power of two, as in 256K; by default as large as "
	  "--max-memory allows, up to 1M",
	  OPTION_SIZE(struct record, sampling.sampler.ring_bytes, 0, SAMPLER_RING_MIN,
		      SAMPLER_RING_MAX) },
	{ "compress", 'z', NULL, "compress with zstd: half the size at three times the CPU cost",
	  OPTION_FLAG(struct record, out.compress) },
	{ "max-loss", 0, "N%",
	  "exit with status 1 if a larger share of samples was lost to a full buffer; default 10%",
	  set_max_loss },
};
/* clang-format on */
const size_t record_n_options = ARRAY_SIZE(record_options);
