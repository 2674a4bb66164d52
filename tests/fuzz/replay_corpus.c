// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * replay_corpus FILE...: run each input of a corpus once through the fuzz target that is linked in.
 * Needs no fuzzer, so that `make check` can do it with any compiler.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>

/* Far above what any input needs, far below what a machine has. */
#define RSS_MAX_KIB (2048L << 10)

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
size_t LLVMFuzzerMutate(uint8_t *data, size_t size, size_t max);

/* For targets with a mutator of their own, which is not called here. */
size_t LLVMFuzzerMutate(uint8_t *data, size_t size, size_t max)
{
	(void)data;
	(void)max;
	return size;
}

static uint8_t *read_file(const char *path, size_t *size)
{
	FILE *f = fopen(path, "rb");
	uint8_t *data = NULL;
	long end;

	if (!f)
		return NULL;
	if (!fseek(f, 0, SEEK_END) && (end = ftell(f)) >= 0 && !fseek(f, 0, SEEK_SET)) {
		/* exactly as long as the input, so that reading past it is seen */
		data = malloc(end ? end : 1);
		*size = end;
		if (data && fread(data, 1, end, f) != (size_t)end) {
			free(data);
			data = NULL;
		}
	}
	fclose(f);
	return data;
}

int main(int argc, char **argv)
{
	struct rusage usage;

	for (int i = 1; i < argc; i++) {
		size_t size = 0;
		uint8_t *data = read_file(argv[i], &size);

		if (!data) {
			fprintf(stderr, "%s: cannot be read\n", argv[i]);
			return 1;
		}
		/* the last line printed names the input that crashed */
		printf("%s\n", argv[i]);
		fflush(stdout);
		LLVMFuzzerTestOneInput(data, size);
		free(data);
	}
	getrusage(RUSAGE_SELF, &usage);
	printf("%d inputs, %ld MiB\n", argc - 1, usage.ru_maxrss >> 10);
	if (usage.ru_maxrss > RSS_MAX_KIB) {
		fprintf(stderr, "more than %ld MiB of memory\n", RSS_MAX_KIB >> 10);
		return 1;
	}
	return argc < 2;
}
