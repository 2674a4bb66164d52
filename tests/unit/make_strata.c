// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * make_strata FILE SEED SLICES [cut|miss-first|more]: a recording with strata of a machine of which everything is known, and
 * as JSON what that is: ops and miss cycles from DRAM and of all others, and the samples of each stratum.
 * "cut" leaves out the end; "miss-first" begins with the miss stratum; with "more", twice as many ops come from DRAM.
 */
#include "strata_recording.h"

#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

int main(int argc, char **argv)
{
	const char *how = argc > 4 ? argv[4] : "";
	struct sr_truth t;
	int fd;

	if (argc < 4) {
		fprintf(stderr, "usage: make_strata FILE SEED SLICES [cut|miss-first|more]\n");
		return 2;
	}
	sr_more = strcmp(how, "more") ? 1 : 2;
	fd = open(argv[1], O_WRONLY | O_CREAT | O_TRUNC, 0666);
	if (fd < 0 || sr_write(fd, strtoul(argv[2], NULL, 10), strtoul(argv[3], NULL, 10),
			       strcmp(how, "miss-first") ? STRATUM_FULL : STRATUM_MISS,
			       strcmp(how, "cut") != 0, &t)) {
		fprintf(stderr, "make_strata: cannot write %s\n", argv[1]);
		return 1;
	}
	printf("{\"dram\": {\"ops\": %.0f, \"cycles\": %.0f}, \"other\": {\"ops\": %.0f, "
	       "\"cycles\": %.0f}, "
	       "\"samples\": {\"full\": %llu, \"miss\": %llu}}\n",
	       t.ops[SR_DRAM], t.cycles[SR_DRAM], t.ops[SR_OTHER], t.cycles[SR_OTHER],
	       (unsigned long long)t.samples[STRATUM_FULL],
	       (unsigned long long)t.samples[STRATUM_MISS]);
	return close(fd) != 0;
}
