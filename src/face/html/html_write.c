// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "html_write.h"

#include "base/utf8.h"
#include "page_hashes.h"

#include <errno.h>
#include <gnutls/gnutls.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

/* report.js is the parts of src/face/html/page, joined when this is built. */
#define ASSET(name, file)                                                                   \
	__asm__(".section .rodata\n" #name ": .incbin \"" file "\"\n" #name "_end:\n"       \
		".balign 8\n" #name "_size: .quad " #name "_end - " #name "\n.previous\n"); \
	extern const char name[] __attribute__((visibility("hidden")));                     \
	extern const __u64 name##_size __attribute__((visibility("hidden")))

ASSET(html_asset_css, "src/face/view/page/style.css");
ASSET(html_asset_body, "src/face/html/page/report.html");
ASSET(html_asset_js, HTML_JS_FILE);

void html_write_head(FILE *f, const char *title, const char *band)
{
	fputs("<!doctype html>\n<html lang=\"en\">\n<meta charset=\"utf-8\">\n"
	      "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; "
	      "style-src "
	      "'sha256-" HTML_CSS_SHA256 "'; script-src 'sha256-" HTML_JS_SHA256
	      "'; base-uri 'none'; form-action 'none'\">\n"
	      "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
	      "<meta name=\"color-scheme\" content=\"light dark\">\n<title>",
	      f);
	utf8_put_markup(f, title);
	fputs("</title>\n<style>", f);
	fwrite(html_asset_css, 1, html_asset_css_size, f);
	fputs("</style>\n<p class=\"band\" role=\"status\">", f);
	utf8_put_markup(f, band);
	fputs("</p>\n", f);
}

void html_write_views(FILE *f)
{
	fwrite(html_asset_body, 1, html_asset_body_size, f);
}

void html_write_facts(FILE *f, const char *json, size_t size)
{
	fputs("<script type=\"application/json\" id=\"facts-data\">", f);
	for (size_t i = 0; i < size; i++)
		if (json[i] == '<') /* in strings only */
			fputs("\\u003c", f);
		else
			fputc(json[i], f);
	fputs("</script>\n", f);
}

struct packer {
	FILE *f;
	z_stream z;
	unsigned char out[3 * 4096]; /* of which whole triples are written */
	size_t n;
};

static void put_base64(struct packer *p, bool all)
{
	const size_t n = all ? p->n : p->n / 3 * 3;
	const gnutls_datum_t data = { p->out, n };
	gnutls_datum_t text;

	if (!n)
		return;
	if (gnutls_base64_encode2(&data, &text))
		out_of_memory();
	fwrite(text.data, 1, text.size, p->f);
	gnutls_free(text.data);
	memmove(p->out, p->out + n, p->n - n);
	p->n -= n;
}

static void pack(struct packer *p, const void *data, size_t size, int flush)
{
	p->z.next_in = (void *)data;
	p->z.avail_in = size;
	do {
		p->z.next_out = p->out + p->n;
		p->z.avail_out = sizeof(p->out) - p->n;
		deflate(&p->z, flush);
		p->n = sizeof(p->out) - p->z.avail_out;
		put_base64(p, false);
	} while (p->z.avail_in || !p->z.avail_out);
}

enum {
	LATENCIES,
	OPERATIONS,
	CYCLES,
	EXPOSED,
	SAMPLES,
	STACK,
	MAX,
	TIME,
	GROUP,
	CPU,
	RANK,
	ROLE,
	REGION,
	SITE,
	SOURCE,
	FLAGS,
	BUCKET,
	MEMORY
};

static const size_t widths[] = {
	[LATENCIES] = 8, [OPERATIONS] = 8, [CYCLES] = 8, [EXPOSED] = 8, [SAMPLES] = 4, [STACK] = 4,
	[MAX] = 2,	 [TIME] = 2,	   [GROUP] = 2,	 [CPU] = 2,	[RANK] = 2,    [ROLE] = 2,
	[REGION] = 2,	 [SITE] = 2,	   [SOURCE] = 1, [FLAGS] = 1,	[BUCKET] = 1,  [MEMORY] = 1
};

/* Little endian, like typed arrays of browsers on all common machines. */
static void put_cell(unsigned char *to, unsigned int column, const struct html_row *row,
		     const __u8 *sources)
{
	const struct html_key *k = &row->key;
	__u32 word = column == SAMPLES	? row->samples
		     : column == STACK	? k->stack
		     : column == MAX	? row->max
		     : column == TIME	? k->time
		     : column == GROUP	? k->group
		     : column == CPU	? k->cpu
		     : column == RANK	? k->rank
		     : column == ROLE	? k->role
		     : column == REGION ? k->region
		     : column == SITE	? k->site
		     : column == SOURCE ? sources[k->source]
		     : column == FLAGS	? k->flags
		     : column == BUCKET ? k->bucket
					: k->memory;
	double real = column == LATENCIES    ? row->latencies
		      : column == OPERATIONS ? row->operations
		      : column == EXPOSED    ? row->exposed
					     : row->cycles;

	if (widths[column] == 8)
		memcpy(to, &real, 8);
	else
		memcpy(to, &word, widths[column]);
}

void html_write_rows(FILE *f, const struct html_rows *rows, const __u8 *sources, __u64 period,
		     bool exposed)
{
	struct packer *p = xcalloc(1, sizeof(*p));
	unsigned char buf[8 * 1024];

	if (deflateInit(&p->z, 6) != Z_OK)
		out_of_memory();
	p->f = f;
	fputs("<script type=\"text/plain\" id=\"cells-data\">", f);
	for (unsigned int c = LATENCIES; c <= MEMORY; c++) {
		size_t used = 0, rest = -(rows->n * widths[c]) & 7;

		if (period && (c == OPERATIONS || c == CYCLES))
			continue; /* the page computes them */
		if (c == EXPOSED && !exposed)
			continue;
		for (size_t i = 0; i < rows->n; i++) {
			put_cell(buf + used, c, &rows->row[i], sources);
			used += widths[c];
			if (used == sizeof(buf)) {
				pack(p, buf, used, Z_NO_FLUSH);
				used = 0;
			}
		}
		memset(buf + used, 0, rest); /* there is room: sizeof(buf) is a multiple of 8 */
		pack(p, buf, used + rest, Z_NO_FLUSH);
	}
	pack(p, buf, 0, Z_FINISH);
	put_base64(p, true);
	fputs("</script>\n", f);
	deflateEnd(&p->z);
	free(p);
}

void html_write_tail(FILE *f)
{
	fputs("<script>", f);
	fwrite(html_asset_js, 1, html_asset_js_size, f);
	fputs("</script>\n</html>\n", f);
}
