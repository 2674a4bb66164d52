// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Any bytes as the recording that report, dump, replay, top, annotate and export read; the last byte chooses how.
 * No crash, and whatever the names in it are: each line printed is text, each object JSON, no cell a
 * formula. dump reads what export writes.
 */
#include <jansson.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "../../tools/ibscope/cmd.h"
#include "base/utf8.h"
#include "recording_mutator.h"

#define WORDS 8

enum format { TEXT, CSV, JSON, PERF };

static char output[] = "/tmp/ibscope-fuzz-XXXXXX";

static const struct command {
	int (*run)(int argc, char **argv);
	enum format format;
	const char *word[WORDS];
} commands[] = {
	{ cmd_report, TEXT, { "report", "--by", "comm,cgroup,container,pod,src" } },
	{ cmd_report, TEXT, { "report", "--by", "symbol,dso,srcline,mode", "-v" } },
	{ cmd_report, TEXT, { "report", "--by", "line,ccx,node", "--sort", "threads" } },
	{ cmd_report, CSV, { "report", "--csv", "--by", "comm,symbol,cgroup,container,event" } },
	{ cmd_report, JSON, { "report", "--json", "--by", "page,tid,comm,pod,op", "--phys" } },
	{ cmd_report,
	  TEXT,
	  { "report", "--comm", "plain,sh", "--cgroup", "/**", "--min-lat", "9" } },
	{ cmd_report, TEXT, { "report", "--folded", "total" } },
	{ cmd_report, TEXT, { "report", "--html", output } },
	{ cmd_dump, TEXT, { "dump", "--events" } },
	{ cmd_dump, CSV, { "dump", "--csv" } },
	{ cmd_dump, CSV, { "dump", "--csv", "--fetch" } },
	{ cmd_dump, JSON, { "dump", "--json", "--events" } },
	{ cmd_dump, TEXT, { "dump", "--container", "web,*/*", "--filter", "mem_lvl == ram" } },
	{ cmd_replay, TEXT, { "replay", "--histogram" } },
	{ cmd_replay, TEXT, { "replay", "--by", "comm,cgroup,container,src" } },
	{ cmd_replay, CSV, { "replay", "--csv", "--by", "comm,cgroup,container" } },
	{ cmd_replay, JSON, { "replay", "--json", "--by", "cgroup,comm,src,op" } },
	{ cmd_top, TEXT, { "top", "--once", "--by", "comm,cgroup", "--size", "160x45", "-i" } },
	{ cmd_report, TEXT, { "report", "--pprof", output, "--by", "comm,container,src,symbol" } },
	{ cmd_export, PERF, { "export", "--perf-data", output } },
	{ cmd_annotate, TEXT, { "annotate", "main", "-i" } },
	{ cmd_annotate, JSON, { "annotate", "--json", "--all", "main", "-i" } },
};
#define COMMANDS (sizeof(commands) / sizeof(commands[0]))
static const struct command reread = { cmd_dump, JSON, { "dump", "--json", "--events" } };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void need(int condition)
{
	if (!condition)
		abort();
}

static void remove_output(void)
{
	unlink(output);
}

/* Printing it again would change nothing, so nothing in it was to be escaped. */
static void check_text(const char *text)
{
	size_t n;

	for (; *text; text += n) {
		n = utf8_len(text);
		need(n > 0);
		need((unsigned char)*text >= ' ' || *text == '\n' || *text == '\t');
		need(*text != 0x7f && (n != 2 || memcmp(text, "\xc2\xa0", 2) >= 0));
		need(n != 3 || memcmp(text, "\u202a", 3) < 0 || memcmp(text, "\u202e", 3) > 0);
	}
}

static void check_cells(const char *text)
{
	for (bool begins = true, quoted = false; *text; text++) {
		if (begins && *text == '"') {
			quoted = true;
			continue;
		}
		/* a number may have a sign */
		need(!begins || !strchr("=+-@", *text) ||
		     (*text == '-' && text[1] >= '0' && text[1] <= '9'));
		begins = false;
		if (*text == '"')
			quoted = !quoted;
		else if (!quoted && (*text == ',' || *text == '\n'))
			begins = true;
	}
}

static void check_objects(const char *text)
{
	json_error_t e;
	json_t *j;

	while (*text) {
		j = json_loads(text, JSON_DISABLE_EOF_CHECK | JSON_DECODE_INT_AS_REAL, &e);
		need(j != NULL);
		json_decref(j);
		text += e.position;
		text += strspn(text, "\n");
	}
}

static int run(const struct command *c, const char *file)
{
	FILE *const out = stdout, *const err = stderr;
	char *argv[WORDS + 2], *printed = NULL, *said = NULL;
	size_t n, n_said;
	int argc = 0, status;

	while (argc < WORDS && c->word[argc]) {
		argv[argc] = (char *)c->word[argc];
		argc++;
	}
	argv[argc++] = (char *)file;
	argv[argc] = NULL;
	stdout = open_memstream(&printed, &n);
	stderr = open_memstream(&said, &n_said);
	need(stdout && stderr);
	status = c->run(argc, argv);
	fclose(stdout);
	fclose(stderr);
	stdout = out;
	stderr = err;
	need(strlen(printed) == n && strlen(said) == n_said);
	check_text(printed);
	check_text(said);
	if (c->format == CSV)
		check_cells(printed);
	else if (c->format == JSON)
		check_objects(printed);
	free(printed);
	free(said);
	return status;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const struct command *c;
	char file[32];
	int fd;

	if (!size)
		return 0;
	if (strstr(output, "XXXXXX")) {
		fd = mkstemp(output);
		need(fd >= 0);
		close(fd);
		atexit(remove_output);
	}
	fd = memfd_create("fuzz", MFD_CLOEXEC);
	need(fd >= 0 && write(fd, data, size - 1) == (ssize_t)size - 1);
	snprintf(file, sizeof(file), "/proc/self/fd/%d", fd);
	c = &commands[data[size - 1] % COMMANDS];
	if (!run(c, file) && c->format == PERF)
		need(!run(&reread, output));
	close(fd);
	return 0;
}
