// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Rules of unwinding, as an assembler wrote them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include <cmocka.h>

#include "naming/elf_file.h"

#define TEXT	0x1000 /* where code begins, in the file and for the linker */
#define RSI	4
#define R12	12
#define R13	13
#define ESCAPED "\t.cfi_escape "

/* A function has 16 bytes. */
static const char source[] =
	".section .note.GNU-stack,\"\",@progbits\n"
	".text\n"
	"\t.cfi_startproc\n" /* 0: pushes, and keeps a register in another one */
	"\tpush %rbx\n"
	"\t.cfi_adjust_cfa_offset 8\n\t.cfi_rel_offset %rbx, 0\n"
	"\tnop\n"
	"\t.cfi_register %r12, %rsi\n"
	"\tnop\n"
	"\t.cfi_undefined %r13\n\t.cfi_undefined %rip\n"
	"\tret\n"
	"\t.cfi_endproc\n\t.balign 16\n"
	"\t.cfi_startproc\n" /* 1: a signal: CFA *(rsp + 160), rip at rsp + 168, rbp at rsp - 8 */
	"\t.cfi_signal_frame\n" ESCAPED "0x0f,4,0x77,0xa0,1,6\n" ESCAPED
	"0x10,16,3,0x77,0xa8,1\n" ESCAPED "0x10,6,2,0x77,0x78\n"
	"\tnop\n"
	"\t.cfi_endproc\n\t.balign 16\n"
	"\t.cfi_startproc\n" /* 2: a stub of the linker: rsp + 8 + ((rip & 15) >= 11) * 8 */
	ESCAPED "0x0f,11,0x77,8,0x80,0,0x3f,0x1a,0x3b,0x2a,0x33,0x24,0x22\n"
	"\t.fill 16, 1, 0x90\n"
	"\t.cfi_endproc\n"
	"\t.cfi_startproc\n" /* 3: an expression that nobody reads: rsp * rsp */
	ESCAPED "0x0f,5,0x77,0,0x77,0,0x1e\n"
	"\t.fill 16, 1, 0x90\n"
	"\t.cfi_endproc\n"
	"\t.fill 16, 1, 0x90\n" /* 4: without a table */
	"\t.cfi_startproc\n" /* 5: the table knows no pops: rbp at rsp + 16, later below the stack pointer */
	"\t.cfi_def_cfa %rbp, 32\n\t.cfi_offset %rbp, -16\n\t.cfi_offset %r12, -24\n"
	"\tadd $8, %rsp\n"
	"\t.cfi_def_cfa %rsp, 24\n"
	"\tpop %r12\n"
	"\t.cfi_def_cfa_offset 16\n"
	"\tpop %rbp\n"
	"\t.cfi_def_cfa_offset 8\n"
	"\tret\n"
	"\tint3\n" /* by the table as if a return came */
	"\t.cfi_endproc\n\t.balign 16\n";

static char path[] = "/tmp/test_elf_frame.XXXXXX";
static struct elf_file *file;

static int build(void **state)
{
	const struct elf_file_opts opts = { .trusted = true };
	char command[256], why[160];
	int fd = mkstemp(path);
	FILE *f;

	(void)state;
	assert_true(fd >= 0);
	close(fd);
	snprintf(command, sizeof(command),
		 "cc -shared -nostdlib -Wl,-Ttext=%#x,-z,max-page-size=4096 -x assembler -o %s -",
		 TEXT, path);
	f = popen(command, "w");
	assert_non_null(f);
	assert_int_equal(fwrite(source, 1, strlen(source), f), strlen(source));
	assert_int_equal(pclose(f), 0);
	file = elf_file_open(path, NULL, 0, &opts, why, sizeof(why));
	return !file;
}

static int clean(void **state)
{
	(void)state;
	elf_file_close(file);
	return unlink(path);
}

/* The rules at a byte of a function. */
static struct frame_row row_at(unsigned int function, unsigned int byte)
{
	struct frame_row row;

	assert_true(elf_file_frame(file, TEXT + 16 * function + byte, &row));
	return row;
}

static void is(struct frame_rule r, enum frame_rule_kind kind, unsigned int base, int offset)
{
	assert_int_equal(r.kind, kind);
	if (kind >= FRAME_VALUE) {
		assert_int_equal(r.base, base);
		assert_int_equal(r.offset, offset);
		assert_int_equal(r.more, 0);
	}
}

static void test_usual(void **state)
{
	struct frame_row row = row_at(0, 0);

	(void)state;
	is(row.cfa, FRAME_VALUE, FRAME_RSP, 8);
	is(row.reg[FRAME_RIP], FRAME_AT, FRAME_CFA, -8);
	is(row.reg[FRAME_RSP], FRAME_VALUE, FRAME_CFA, 0);
	is(row.reg[FRAME_RBX], FRAME_SAME, 0, 0);
	is(row.reg[FRAME_RAX], FRAME_LOST, 0, 0);
	assert_false(row.of_signal);
	row = row_at(0, 1);
	is(row.cfa, FRAME_VALUE, FRAME_RSP, 16);
	is(row.reg[FRAME_RBX], FRAME_AT, FRAME_CFA, -16);
	is(row.reg[R12], FRAME_SAME, 0, 0);
	row = row_at(0, 2);
	is(row.reg[R12], FRAME_VALUE, RSI, 0);
	is(row.reg[FRAME_RIP], FRAME_AT, FRAME_CFA, -8);
	row = row_at(0, 3);
	is(row.reg[R13], FRAME_LOST, 0, 0);
	is(row.reg[FRAME_RIP], FRAME_LOST, 0, 0);
}

/* What has been popped is in the register; what will be is on the stack. */
static void test_end(void **state)
{
	struct frame_row row = row_at(5, 0);

	(void)state;
	is(row.reg[FRAME_RBP], FRAME_AT, FRAME_CFA, -16);
	row = row_at(5, 4);
	is(row.cfa, FRAME_VALUE, FRAME_RSP, 24);
	is(row.reg[FRAME_RBP], FRAME_AT, FRAME_CFA, -16);
	is(row.reg[R12], FRAME_AT, FRAME_CFA, -24);
	row = row_at(5, 6);
	is(row.reg[FRAME_RBP], FRAME_AT, FRAME_CFA, -16);
	is(row.reg[R12], FRAME_SAME, 0, 0);
	row = row_at(5, 7);
	is(row.reg[FRAME_RBP], FRAME_SAME, 0, 0);
	is(row.reg[R12], FRAME_SAME, 0, 0);
	is(row.reg[FRAME_RIP], FRAME_AT, FRAME_CFA, -8);
	row = row_at(5, 8);
	is(row.reg[FRAME_RBP], FRAME_AT, FRAME_CFA, -16);
}

static void test_signal(void **state)
{
	const struct frame_row row = row_at(1, 0);

	(void)state;
	assert_true(row.of_signal);
	is(row.cfa, FRAME_AT_AT, FRAME_RSP, 160);
	is(row.reg[FRAME_RIP], FRAME_AT, FRAME_RSP, 168);
	is(row.reg[FRAME_RBP], FRAME_AT, FRAME_RSP, -8);
}

static void test_stub(void **state)
{
	(void)state;
	for (unsigned int byte = 0; byte < 16; byte++)
		is(row_at(2, byte).cfa, FRAME_VALUE, FRAME_RSP, byte >= 11 ? 16 : 8);
}

static void test_unknown(void **state)
{
	struct frame_row row;

	(void)state;
	is(row_at(3, 5).cfa, FRAME_UNREADABLE, 0, 0);
	assert_false(elf_file_frame(file, TEXT + 16 * 4, &row));
	assert_false(elf_file_frame(file, 1 << 30, &row));
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_usual),	cmocka_unit_test(test_end),
		cmocka_unit_test(test_signal),	cmocka_unit_test(test_stub),
		cmocka_unit_test(test_unknown),
	};

	return cmocka_run_group_tests(tests, build, clean);
}
