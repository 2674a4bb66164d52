// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Types, places of variables and inlined functions of debug information that is written here byte by byte: what other
 * languages than C and other compilers write. Its code never runs.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "self_types.h"

/* clang-format off */

/* Abbreviations: number, tag, children, and attributes with their forms. */
__asm__(
	".macro abbrev number, tag, children, attributes:vararg\n"
	"	.uleb128 \\number, \\tag\n"
	"	.byte \\children\n"
	"	.uleb128 \\attributes\n"
	"	.byte 0, 0\n"
	".endm\n"
	".section .debug_abbrev,\"\",@progbits\n"
	".Lmade_abbrev:\n"
	"abbrev 1, 0x11, 1, 0x13, 0x05, 0x1b, 0x08, 0x11, 0x01, 0x12, 0x07, 0x10, 0x17\n" /* unit */
	"abbrev 2, 0x24, 0, 0x03, 0x08, 0x0b, 0x0b\n"			/* base type: name, size */
	"abbrev 3, 0x13, 1, 0x03, 0x08, 0x0b, 0x0b\n"			/* struct: name, size */
	"abbrev 4, 0x0d, 0, 0x03, 0x08, 0x49, 0x13, 0x38, 0x0b\n"	/* member: name, type, place */
	"abbrev 5, 0x02, 1, 0x03, 0x08, 0x0b, 0x0b\n"			/* class: name, size */
	"abbrev 6, 0x1c, 0, 0x49, 0x13, 0x38, 0x0b\n"			/* base: type, place */
	"abbrev 7, 0x0d, 0, 0x03, 0x08, 0x49, 0x13, 0x3f, 0x19\n"	/* static member: name, type */
	"abbrev 8, 0x34, 0, 0x03, 0x08, 0x49, 0x13, 0x02, 0x18\n"	/* variable: name, type, location */
	"abbrev 9, 0x01, 1, 0x49, 0x13\n"				/* array: type */
	"abbrev 10, 0x21, 0, 0x22, 0x0b, 0x2f, 0x0b\n"			/* range: lower and upper bound */
	"abbrev 11, 0x21, 0, 0x37, 0x0b\n"				/* range: count */
	"abbrev 12, 0x0f, 0, 0x49, 0x13\n"				/* pointer: type */
	"abbrev 13, 0x0f, 0, 0x03, 0x08, 0x49, 0x13\n"			/* pointer: name, type */
	"abbrev 14, 0x10, 0, 0x49, 0x13\n"				/* reference: type */
	"abbrev 15, 0x42, 0, 0x49, 0x13\n"				/* rvalue reference: type */
	"abbrev 16, 0x39, 1, 0x03, 0x08\n"				/* namespace: name */
	"abbrev 17, 0x39, 1, 0x3b, 0x0b\n"				/* namespace: line */
	"abbrev 18, 0x33, 1, 0x15, 0x13\n"				/* variants: discriminant */
	"abbrev 19, 0x19, 1, 0x16, 0x0b\n"				/* variant: its value */
	"abbrev 20, 0x0d, 0, 0x49, 0x13, 0x38, 0x0b\n"			/* member: type, place */
	"abbrev 21, 0x0d, 0, 0x03, 0x08, 0x49, 0x13, 0x38, 0x18\n"	/* member: name, type, expression */
	"abbrev 22, 0x2e, 1, 0x03, 0x08, 0x11, 0x01, 0x12, 0x07, 0x40, 0x18\n" /* function: name, code, frame */
	"abbrev 23, 0x2e, 0, 0x03, 0x08, 0x49, 0x13\n"			/* function: name, type */
	"abbrev 24, 0x05, 0, 0x49, 0x13, 0x02, 0x18\n"			/* parameter: type, location */
	"abbrev 25, 0x1d, 1, 0x31, 0x13, 0x11, 0x01, 0x12, 0x07, 0x58, 0x0b, 0x59, 0x0b\n" /* inlined: of, code, call */
	"abbrev 26, 0x1d, 0, 0x31, 0x13, 0x11, 0x01, 0x12, 0x07, 0x58, 0x0b\n"	/* the same without a line */
	"abbrev 27, 0x1d, 0, 0x31, 0x13, 0x11, 0x01, 0x12, 0x07, 0x59, 0x0b\n"	/* without a file */
	"abbrev 28, 0x48, 0, 0x7d, 0x01, 0x7f, 0x13\n"			/* call: where it returns to, function */
	"abbrev 29, 0x2e, 0, 0x03, 0x08, 0x6e, 0x08\n"			/* function: name, name of the linker */
	"abbrev 30, 0x21, 0, 0x22, 0x0b\n"				/* range: lower bound */
	"abbrev 31, 0x2e, 0, 0x03, 0x08\n"				/* function: name */
	"abbrev 32, 0x04, 0, 0x03, 0x08, 0x0b, 0x0b\n"			/* enum: name, size */
	"abbrev 33, 0x26, 0, 0x3b, 0x0b\n"				/* const: line */
	"abbrev 34, 0x13, 0, 0x03, 0x08, 0x3c, 0x19\n"			/* struct without a definition: name */
	"abbrev 35, 0x16, 0, 0x03, 0x08, 0x49, 0x13\n"			/* typedef: name, type */
	"abbrev 36, 0x0b, 1, 0x11, 0x01, 0x12, 0x07\n"			/* block: code */
	"abbrev 37, 0x01, 0, 0x49, 0x13\n"				/* array of which nothing is known: type */
	"abbrev 38, 0x21, 0, 0x37, 0x07\n"				/* range: large count */
	"abbrev 39, 0x13, 0, 0x03, 0x08, 0x0b, 0x07\n"			/* struct: name, large size */
	"abbrev 40, 0x13, 1, 0x0b, 0x0b\n"				/* struct: size */
	"abbrev 41, 0x4109, 0, 0x11, 0x01, 0x31, 0x13\n"		/* call as GNU had it: where it returns to, function */
	"abbrev 42, 0x05, 0, 0x49, 0x13, 0x02, 0x0a\n"			/* parameter as Go has it: type, block */
	".byte 0\n"
	".text\n");

/* Two files: 0 and 1. */
__asm__(
	".section .debug_line.made,\"\",@progbits\n"
	".Lmade_line:\n"
	"	.4byte .Lmade_line_end - .Lmade_line - 4\n"
	"	.2byte 5\n"
	"	.byte 8, 0\n"
	"	.4byte .Lmade_line_end - .Lmade_line_head\n"
	".Lmade_line_head:\n"
	"	.byte 1, 1, 1, -5, 14, 13, 0, 1, 1, 1, 1, 0, 0, 0, 1, 0, 0, 1\n"
	"	.byte 1, 1, 8, 1\n"
	"	.asciz \"/made\"\n"
	"	.byte 2, 1, 8, 2, 0x0b, 2\n"
	"	.asciz \"made.c\"\n"
	"	.byte 0\n"
	"	.asciz \"call.h\"\n"
	"	.byte 0\n"
	".Lmade_line_end:\n"
	".text\n");

#define REF(label)     ".4byte .Lmade_" #label " - .Lmade_info\n"
#define TYPE(label)    ".Lmade_" #label ": .uleb128 "
#define NAME(text)     ".asciz \"" text "\"\n"
#define BYTE(n)	       ".byte " #n "\n"
#define END	       ".byte 0\n"
#define MEMBER(name, type, at) ".uleb128 4\n" NAME(name) REF(type) BYTE(at)
#define VARIABLE(name, type) ".uleb128 8\n" NAME(#name) REF(type) ".byte 9, 3\n.8byte " #name "\n"
#define PARAMETER(type, ...) ".uleb128 24\n" REF(type) ".byte " #__VA_ARGS__ "\n"
#define CODE(from, end) ".8byte " #from "\n.8byte " #end " - " #from "\n"

__asm__(
	".section .debug_info,\"\",@progbits\n"
	".Lmade_info:\n"
	"	.4byte .Lmade_info_end - .Lmade_info - 4\n"
	"	.2byte 5\n"
	"	.byte 1, 8\n"
	"	.4byte .Lmade_abbrev\n"
	".uleb128 1\n.2byte 0x21\n" NAME("/made") CODE(made_code, made_all_end) ".4byte .Lmade_line\n" /* C++ */
	TYPE(int) "2\n" NAME("int") BYTE(4)
	TYPE(long) "2\n" NAME("long") BYTE(8)
	TYPE(char) "2\n" NAME("char") BYTE(1)
	".uleb128 16\n" NAME("shop")
		TYPE(base) "3\n" NAME("Base") BYTE(8)
			MEMBER("id", long, 0)
		END
		TYPE(item) "5\n" NAME("Item") BYTE(32)
			TYPE(inner) "3\n" NAME("Inner") BYTE(8)
				MEMBER("a", int, 0)
			END
			".uleb128 6\n" REF(base) BYTE(0)
			MEMBER("price", int, 8)
			".uleb128 7\n" NAME("count") REF(long)
			".uleb128 21\n" NAME("moved") REF(int) ".byte 2, 0x23, 16\n"
			".uleb128 21\n" NAME("odd") REF(int) ".byte 3, 0x23, 20, 0x06\n"
			MEMBER("next", item_reference, 24)
		END
		".uleb128 17\n" BYTE(1)
			TYPE(hidden) "3\n" NAME("Hidden") BYTE(4)
				MEMBER("h", int, 0)
			END
		END
		VARIABLE(made_hidden, hidden)
		TYPE(small) "31\n" NAME("small")
		".uleb128 17\n" BYTE(1)
			TYPE(hushed) "31\n" NAME("hushed")
		END
	END
	TYPE(tiny) "29\n" NAME("tiny") NAME("_Z4tinyv")
	TYPE(item_reference) "14\n" REF(item)
	TYPE(item_moved) "15\n" REF(item)
	TYPE(item_pointer) "12\n" REF(item)
	TYPE(base_pointer) "12\n" REF(base)
	TYPE(named_pointer) "13\n" NAME("*shop.Item") REF(item)
	TYPE(color) "32\n" NAME("Color") BYTE(4)
	TYPE(five) "9\n" REF(int)
		".uleb128 10\n.byte 1, 5\n"
	END
	TYPE(six) "9\n" REF(int)
		".uleb128 11\n" BYTE(2)
		".uleb128 11\n" BYTE(3)
	END
	TYPE(open) "9\n" REF(int)
		".uleb128 30\n" BYTE(0)
	END
	TYPE(flex) "3\n" NAME("Flex") BYTE(8)
		MEMBER("n", long, 0)
		MEMBER("more", open, 8)
	END
	TYPE(flex_pointer) "12\n" REF(flex)
	TYPE(pair) "3\n" NAME("Pair") BYTE(16)
		MEMBER("a", item_pointer, 0)
		MEMBER("b", flex_pointer, 8)
	END
	/* enums of Rust, of which the second one has no discriminant of its own */
	TYPE(num) "3\n" NAME("Num") BYTE(16)
		MEMBER("value", long, 8)
	END
	TYPE(text) "3\n" NAME("Text") BYTE(16)
		MEMBER("ptr", item_pointer, 8)
	END
	TYPE(value) "3\n" NAME("Value") BYTE(16)
		".uleb128 18\n" REF(discriminant)
			TYPE(discriminant) "20\n" REF(long) BYTE(0)
			".uleb128 19\n" BYTE(0)
				MEMBER("Num", num, 0)
			END
			".uleb128 19\n" BYTE(1)
				MEMBER("Text", text, 0)
			END
		END
		MEMBER("after", char, 15)
	END
	TYPE(some) "3\n" NAME("Some") BYTE(8)
		MEMBER("it", item_pointer, 0)
	END
	TYPE(niche) "3\n" NAME("Niche") BYTE(8)
		".uleb128 18\n" REF(of_niche)
			TYPE(of_niche) "20\n" REF(long) BYTE(0)
			".uleb128 19\n" BYTE(1)
				MEMBER("Some", some, 0)
			END
			".uleb128 19\n" BYTE(2)
				MEMBER("Other", base, 0)
			END
		END
	END
	TYPE(nothing) "33\n" BYTE(1)
	TYPE(nothing_pointer) "12\n" REF(nothing)
	TYPE(declared) "34\n" NAME("Declared")
	TYPE(declared_pointer) "12\n" REF(declared)
	TYPE(itself) "35\n" NAME("itself") REF(itself)
	TYPE(itself_pointer) "12\n" REF(itself)
	TYPE(items) "9\n" REF(item)
		".uleb128 11\n" BYTE(5)
	END
	TYPE(items_pointer) "12\n" REF(items)
	TYPE(niche_pointer) "12\n" REF(niche)
	TYPE(unnamed) "40\n" BYTE(4)
		MEMBER("u", int, 0)
	END
	/* what is larger than memory, or of unknown size */
	TYPE(unknown) "37\n" REF(int)
	TYPE(many) "9\n" REF(char)
		".uleb128 38\n.8byte 1 << 63\n"
		".uleb128 11\n" BYTE(4)
	END
	TYPE(huge) "39\n" NAME("Huge") ".8byte 1 << 63\n"
	TYPE(of_huge) "9\n" REF(huge)
		".uleb128 11\n" BYTE(4)
	END
	TYPE(of_pointers) "9\n" REF(item_pointer)
		".uleb128 38\n.8byte 1 << 62\n"
	END
	TYPE(four) "9\n" REF(char)
		".uleb128 11\n" BYTE(4)
	END
	TYPE(of_four) "9\n" REF(four)
		".uleb128 38\n.8byte 1 << 63\n"
	END
	TYPE(int_pointer) "12\n" REF(int)
	/* more levels than are followed: of pointers, of structs, and of names for a type */
	TYPE(pointers) "12\n.4byte . + 4 - .Lmade_info\n"
	".rept 59\n.uleb128 12\n.4byte . + 4 - .Lmade_info\n.endr\n"
	".uleb128 2\n" NAME("deep") BYTE(4)
	TYPE(structs) "3\n" NAME("s") BYTE(4)
		".uleb128 4\n" NAME("a") ".4byte . + 6 - .Lmade_info\n" BYTE(0)
	END
	".rept 59\n"
		".uleb128 3\n" NAME("s") BYTE(4)
		".uleb128 4\n" NAME("a") ".4byte . + 6 - .Lmade_info\n" BYTE(0)
		END
	".endr\n"
	".uleb128 2\n" NAME("int") BYTE(4)
	TYPE(names) "35\n" NAME("n") ".4byte . + 4 - .Lmade_info\n"
	".rept 59\n.uleb128 35\n" NAME("n") ".4byte . + 4 - .Lmade_info\n.endr\n"
	".uleb128 2\n" NAME("int") BYTE(4)
	TYPE(few_names) "35\n" NAME("n") ".4byte . + 4 - .Lmade_info\n"
	".rept 46\n.uleb128 35\n" NAME("n") ".4byte . + 4 - .Lmade_info\n.endr\n"
	".uleb128 2\n" NAME("int") BYTE(4)
	VARIABLE(made_pointers, pointers)
	VARIABLE(made_structs, structs)
	VARIABLE(made_names, names)
	VARIABLE(made_few_names, few_names)
	VARIABLE(made_nothing, nothing_pointer)
	VARIABLE(made_unnamed, unnamed)
	VARIABLE(made_unknown, unknown)
	VARIABLE(made_many, many)
	VARIABLE(made_of_huge, of_huge)
	VARIABLE(made_of_pointers, of_pointers)
	VARIABLE(made_of_four, of_four)
	VARIABLE(made_itself, itself)
	VARIABLE(made_declared, declared)
	VARIABLE(made_item, item)
	VARIABLE(made_reference, item_reference)
	VARIABLE(made_moved, item_moved)
	VARIABLE(made_named, named_pointer)
	VARIABLE(made_inner, inner)
	VARIABLE(made_color, color)
	VARIABLE(made_five, five)
	VARIABLE(made_six, six)
	VARIABLE(made_value, value)
	VARIABLE(made_niche, niche)
	TYPE(callee) "23\n" NAME("make") REF(item_pointer)
	/* a function: eight places of variables, which is as many as there is room for at first */
	".uleb128 22\n" NAME("made_code") CODE(made_code, made_code_end) ".byte 1, 0x9c\n"
		PARAMETER(item_pointer, 1, 0x55)			/* in rdi */
		PARAMETER(item_pointer, 3, 0x74, 8, 0x9f)		/* rsi plus 8 */
		PARAMETER(pair, 6, 0x51, 0x93, 8, 0x52, 0x93, 8)	/* in rdx and rcx */
		PARAMETER(item, 2, 0x91, 0x40)				/* 64 below the frame */
		PARAMETER(base_pointer, 1, 0x58)			/* in r8 */
		PARAMETER(item_pointer, 1, 0x58)			/* the same as a larger type */
		PARAMETER(int, 3, 0x77, 0xc0, 0)			/* at 64(%rsp) */
		".uleb128 28\n.8byte made_after_call\n" REF(callee)
		".uleb128 25\n" REF(small) CODE(made_in_small, made_in_small_end) ".byte 1, 42\n"
			".uleb128 25\n" REF(tiny) CODE(made_in_tiny, made_in_small_end) ".byte 0, 7\n"
			END
		END
		".uleb128 26\n" REF(small) CODE(made_no_line, made_no_file) ".byte 1\n"
		".uleb128 27\n" REF(small) CODE(made_no_file, made_bad_file) ".byte 42\n"
		".uleb128 25\n" REF(small) CODE(made_bad_file, made_bad_file_end) ".byte 2, 42\n"
		END
	END
	/* a function whose frame is where rbp is */
	".uleb128 22\n" NAME("made_more") CODE(made_more, made_more_end) ".byte 1, 0x56\n"
		PARAMETER(item_pointer, 1, 0x55)			/* in rdi */
		PARAMETER(items_pointer, 1, 0x51)			/* rdx */
		PARAMETER(item_pointer, 1, 0x58)			/* r8 */
		PARAMETER(nothing_pointer, 1, 0x59)			/* r9 */
		PARAMETER(niche_pointer, 1, 0x5c)			/* r12 */
		PARAMETER(declared_pointer, 1, 0x5d)			/* r13 */
		PARAMETER(itself_pointer, 1, 0x5e)			/* r14 */
		PARAMETER(pair, 8, 0x73, 8, 0x9f, 0x93, 8, 0x5f, 0x93, 8) /* rbx plus 8, and r15 */
		PARAMETER(int, 4, 0x77, 0xd0, 0, 0x06)			/* not at 80(%rsp), but where that points to */
		PARAMETER(int, 2, 0x31, 0x9f)				/* nowhere: it is 1 */
		PARAMETER(int_pointer, 1, 0x52)				/* in rcx, with other types: the largest struct counts */
		PARAMETER(item_pointer, 1, 0x52)
		PARAMETER(base_pointer, 1, 0x52)
		PARAMETER(int, 3, 0x91, 0x80, 0x7f)			/* the same 128 below the frame */
		PARAMETER(item, 3, 0x91, 0x80, 0x7f)
		PARAMETER(base, 3, 0x91, 0x80, 0x7f)
		PARAMETER(pair, 10, 0x91, 0xe0, 0x7e, 0x93, 8, 0x91, 0xb8, 0x7e, 0x93, 8) /* 160, and 200 below the frame */
		PARAMETER(int, 4, 0x91, 0xa0, 0x7f, 0x9f)		/* nowhere: an address */
		".uleb128 36\n" CODE(made_block, made_block_end)
			PARAMETER(item_pointer, 1, 0x54)		/* rsi */
		END
		".uleb128 36\n" CODE(made_slot, made_slot_end)
			PARAMETER(int, 2, 0x91, 0x60)			/* 32 below the frame */
		END
		".uleb128 36\n" CODE(made_rax, made_rax_end)
			PARAMETER(item_pointer, 1, 0x50)		/* rax */
		END
		".uleb128 36\n" CODE(made_at_rax, made_at_rax_end)
			PARAMETER(int, 2, 0x70, 24)			/* 24(%rax) */
		END
		".uleb128 36\n" CODE(made_far, made_far_end)
			PARAMETER(item_pointer, 1, 0x5b)		/* r11 */
		END
		".uleb128 36\n" CODE(made_hushed, made_hushed_end)
			".uleb128 26\n" REF(hushed) CODE(made_hushed, made_hushed_end) ".byte 1\n"
		END
		/* as deep as is followed, and deeper */
		".rept 46\n.uleb128 36\n" CODE(made_deep, made_deep_end) ".endr\n"
			PARAMETER(item_pointer, 1, 0x54)
			".rept 14\n.uleb128 36\n" CODE(made_deep, made_deep_end) ".endr\n"
				PARAMETER(item_pointer, 1, 0x5a)
			".rept 14\n.byte 0\n.endr\n"
		".rept 46\n.byte 0\n.endr\n"
		".uleb128 41\n.8byte made_after_gnu\n" REF(callee)
		".uleb128 22\n" NAME("made_nested") CODE(made_nested, made_nested_end) ".byte 1, 0x9c\n"
			".uleb128 42\n" REF(item_pointer) ".byte 1, 0x53\n"	/* rbx */
		END
	END
	END
	".Lmade_info_end:\n"
	".text\n");

#define LABEL(name) ".globl " #name "\n" #name ": "

__asm__(
	".section .text.made,\"ax\",@progbits\n" /* the compiler's unit does not have it */
	LABEL(made_code) "\n"
	"	.cfi_startproc\n"
	LABEL(made_at_price) "movl 8(%rdi), %eax\n"
	LABEL(made_at_minus) "movl 16(%rsi), %eax\n"
	LABEL(made_at_piece) "movl 8(%rdx), %eax\n"
	LABEL(made_at_second) "movq (%rcx), %rax\n"
	LABEL(made_at_flex) "movl 20(%rcx), %eax\n"
	LABEL(made_at_frame) "movl -48(%rsp), %eax\n"
	LABEL(made_at_below) "movl -60(%rsp), %eax\n"
	LABEL(made_at_slot) "movl 64(%rsp), %eax\n"
	LABEL(made_at_largest) "movl 8(%r8), %eax\n"
	"	call made_callee\n"
	LABEL(made_after_call) "movl 8(%rax), %r9d\n"
	LABEL(made_at_other) "movl 8(%r9), %r9d\n"
	"	call made_callee\n"
	LABEL(made_after_other) "movl 8(%rax), %r9d\n"
	LABEL(made_in_small) "nop\n"
	LABEL(made_in_tiny) "nop\n"
	LABEL(made_in_small_end) "nop\n"
	LABEL(made_no_line) "nop\n"
	LABEL(made_no_file) "nop\n"
	LABEL(made_bad_file) "nop\n"
	LABEL(made_bad_file_end) "ret\n"
	"	.cfi_endproc\n"
	LABEL(made_code_end) "\n"
	"made_callee: ret\n"
	LABEL(made_more) "push %rbp\n"
	"	.cfi_startproc\n"
	"	.cfi_def_cfa_offset 16\n"
	"	mov %rsp, %rbp\n"
	"	.cfi_def_cfa_register %rbp\n"
	LABEL(made_before) "movl 8(%rsi), %eax\n"
	LABEL(made_block) "movl 8(%rsi), %eax\n"
	LABEL(made_at_next) "movl 40(%rsi), %eax\n"
	"	add $32, %rsi\n"
	LABEL(made_last) "movl 8(%rsi), %eax\n"
	LABEL(made_block_end) "movl 8(%rsi), %eax\n"
	LABEL(made_at_far) "movl 40(%r8), %eax\n"
	"	add $24, %r8\n"
	LABEL(made_store) "movl %ecx, -32(%rbp)\n"
	LABEL(made_slot) "movl -32(%rbp), %eax\n"
	"	lea -32(%rbp), %r10\n"
	LABEL(made_through) "movl (%r10), %eax\n"
	LABEL(made_beside) "movl 4(%r10), %eax\n"
	LABEL(made_slot_end) "movl -32(%rbp), %eax\n"
	LABEL(made_store_after) "movl %ecx, -32(%rbp)\n"
	LABEL(made_element) "movl 40(%rdx), %eax\n"
	LABEL(made_negative) "movl -24(%rdx), %eax\n"
	LABEL(made_exact) "movq -32(%rdx), %rax\n"
	LABEL(made_third) "movq 64(%rdx), %rax\n"
	"	lea made_six(%rip), %r10\n"
	LABEL(made_index) "movl (%r10,%rax,4), %eax\n"
	LABEL(made_index_4) "movl 4(%r10,%rax,4), %eax\n"
	LABEL(made_swapped) "movl 8(%r11,%rdi,1), %eax\n"
	LABEL(made_scaled) "movl 8(%r11,%rdi,4), %eax\n"
	LABEL(made_no_base) "movl 8(,%rdi,1), %eax\n"
	LABEL(made_no_base_4) "movl 8(,%rdi,4), %eax\n"
	"	add %rdi, %r11\n"
	LABEL(made_added) "movl 8(%r11), %eax\n"
	"	xor %r11d, %r11d\n"
	"	add 24(%rdi), %r11\n"
	LABEL(made_added_load) "movl 8(%r11), %eax\n"
	"	mov 8(%rdi), %r10\n"
	LABEL(made_price) "movl (%r10), %eax\n"
	"	mov 28(%rdi), %r10\n"
	LABEL(made_half) "movl 8(%r10), %eax\n"
	"	mov 200(%rdi), %r10\n"
	LABEL(made_outside) "movl (%r10), %eax\n"
	"	mov -80(%rbp), %r10\n"
	LABEL(made_from_slot) "movl (%r10), %eax\n"
	"	mov (%r12), %r10\n"
	LABEL(made_ambiguous) "movl 8(%r10), %eax\n"
	LABEL(made_void) "movl (%r9), %eax\n"
	LABEL(made_undefined) "movl (%r13), %eax\n"
	LABEL(made_of_itself) "movl (%r14), %eax\n"
	LABEL(made_piece) "movl 16(%rbx), %eax\n"
	LABEL(made_piece_2) "movq (%r15), %rax\n"
	LABEL(made_deref) "movl 80(%rsp), %eax\n"
	/* three jumps to a place, of which the last one brings another type */
	"	mov %rdi, %r11\n"
	"	jz 1f\n"
	"	mov 24(%rdi), %r11\n"
	"	js 1f\n"
	"	mov %r15, %r11\n"
	"	jo 1f\n"
	"	mov %rdi, %r11\n"
	"1:\n"
	LABEL(made_differ) "movl 8(%r11), %eax\n"
	"	mov %rdi, %r11\n"
	"	jz 2f\n"
	"	mov 24(%rdi), %r11\n"
	"	js 2f\n"
	"	mov 24(%rdi), %r11\n"
	"2:\n"
	LABEL(made_agree) "movl 8(%r11), %eax\n"
	/* 23 copies are followed, and no more */
	"	mov %rdi, %r10\n"
	"	.rept 11\n"
	"	mov %r10, %r11\n"
	"	mov %r11, %r10\n"
	"	.endr\n"
	LABEL(made_copied) "movl 8(%r10), %eax\n"
	"	mov %r10, %r11\n"
	LABEL(made_copied_more) "movl 8(%r11), %eax\n"
	LABEL(made_of_several) "movl 8(%rcx), %eax\n"
	LABEL(made_largest_slot) "movl -120(%rbp), %eax\n"
	LABEL(made_first_piece) "movq -160(%rbp), %rax\n"
	LABEL(made_second_piece) "movq -200(%rbp), %rax\n"
	/* loops over arrays: of a variable, and of what a pointer is to */
	"	lea made_six(%rip), %r10\n"
	"3:\n"
	LABEL(made_loop) "movl (%r10), %eax\n"
	LABEL(made_loop_4) "movl 4(%r10), %eax\n"
	"	add $4, %r10\n"
	"	jnz 3b\n"
	"	mov %rdi, %r11\n"
	"4:\n"
	LABEL(made_each) "movl 8(%r11), %eax\n"
	LABEL(made_each_next) "movl 40(%r11), %eax\n"
	"	add $32, %r11\n"
	"	jnz 4b\n"
	"	mov %rdi, %r11\n"
	"5:\n"
	LABEL(made_uneven) "movl 8(%r11), %eax\n"
	"	add $24, %r11\n"
	"	jnz 5b\n"
	/* one path brings an element of an unknown index */
	"	lea made_six(%rip), %r10\n"
	"	jz 6f\n"
	"	lea made_six(%rip), %r10\n"
	"	add %r8, %r10\n"
	"6:\n"
	LABEL(made_maybe) "movl (%r10), %eax\n"
	LABEL(made_maybe_4) "movl 4(%r10), %eax\n"
	LABEL(made_hushed) "nop\n"
	LABEL(made_hushed_end) "xor %r10d, %r10d\n"
	LABEL(made_deep) "movl 8(%rsi), %eax\n"
	LABEL(made_deeper) "movl 8(%r10), %eax\n"
	LABEL(made_deep_end) "nop\n"
	LABEL(made_rax) "movl 8(%rax), %ecx\n"
	LABEL(made_rax_end) "xor %eax, %eax\n"
	LABEL(made_at_rax) "movl 24(%rax), %ecx\n"
	LABEL(made_at_rax_end) "movl 24(%rax), %ecx\n"
	"	call made_callee\n"
	LABEL(made_after_gnu) "movl 8(%rax), %ecx\n"
	/* 2000 instructions are */
	"	xor %r11d, %r11d\n"
	LABEL(made_far) "nop\n"
	LABEL(made_far_end) ".rept 1990\n"
	"	nop\n"
	"	.endr\n"
	LABEL(made_near) "movl 8(%r11), %eax\n"
	"	.rept 20\n"
	"	nop\n"
	"	.endr\n"
	LABEL(made_too_far) "movl 8(%r11), %eax\n"
	"	pop %rbp\n"
	"	ret\n"
	"	.cfi_endproc\n"
	LABEL(made_more_end) "\n"
	LABEL(made_nested) "movl 8(%rbx), %eax\n"
	"	ret\n"
	LABEL(made_nested_end) "\n"
	LABEL(made_all_end) "\n"
	".bss\n"
	".balign 16\n"
	LABEL(made_item) ".zero 32\n"
	LABEL(made_reference) ".zero 8\n"
	LABEL(made_moved) ".zero 8\n"
	LABEL(made_named) ".zero 8\n"
	LABEL(made_inner) ".zero 8\n"
	LABEL(made_hidden) ".zero 4\n"
	LABEL(made_color) ".zero 4\n"
	LABEL(made_value) ".zero 16\n"
	LABEL(made_niche) ".zero 8\n"
	LABEL(made_pointers) ".zero 8\n"
	LABEL(made_structs) ".zero 8\n"
	LABEL(made_names) ".zero 8\n"
	LABEL(made_few_names) ".zero 8\n"
	LABEL(made_nothing) ".zero 8\n"
	LABEL(made_unnamed) ".zero 8\n"
	LABEL(made_unknown) ".zero 8\n"
	LABEL(made_many) ".zero 8\n"
	LABEL(made_of_huge) ".zero 8\n"
	LABEL(made_of_pointers) ".zero 8\n"
	LABEL(made_of_four) ".zero 8\n"
	LABEL(made_itself) ".zero 8\n"
	LABEL(made_declared) ".zero 8\n"
	LABEL(made_five) ".zero 40\n"
	LABEL(made_six) ".zero 40\n"
	".text\n");

/* clang-format on */

extern const char made_code[], made_at_price[], made_at_minus[], made_at_piece[], made_at_second[],
	made_at_flex[], made_at_frame[], made_at_below[], made_at_slot[], made_at_largest[],
	made_after_call[], made_at_other[], made_after_other[], made_in_small[], made_in_tiny[],
	made_in_small_end[], made_no_line[], made_no_file[], made_bad_file[], made_bad_file_end[];
extern const char made_before[], made_block[], made_at_next[], made_last[], made_block_end[],
	made_at_far[], made_store[], made_slot[], made_through[], made_beside[], made_slot_end[],
	made_store_after[], made_element[], made_negative[], made_exact[], made_third[],
	made_index[], made_index_4[], made_swapped[], made_scaled[], made_no_base[],
	made_no_base_4[], made_added[], made_added_load[], made_price[], made_half[],
	made_outside[], made_from_slot[], made_ambiguous[], made_void[], made_undefined[],
	made_of_itself[], made_piece[], made_piece_2[], made_deref[], made_differ[], made_agree[],
	made_copied[], made_copied_more[], made_rax[], made_at_rax[], made_at_rax_end[],
	made_after_gnu[], made_near[], made_too_far[], made_nested[];
extern const char made_of_several[], made_largest_slot[], made_first_piece[], made_second_piece[],
	made_loop[], made_loop_4[], made_each[], made_each_next[], made_uneven[], made_maybe[],
	made_maybe_4[], made_hushed[], made_deep[], made_deeper[], made_pointers[], made_structs[],
	made_names[], made_few_names[];
extern const char made_nothing[], made_unnamed[], made_unknown[], made_many[], made_of_huge[],
	made_of_pointers[], made_of_four[], made_itself[], made_declared[];
extern const char made_item[], made_reference[], made_moved[], made_named[], made_inner[],
	made_hidden[], made_color[], made_value[], made_niche[], made_five[], made_six[];

/* @bytes at an offset of a variable */
static void data(const char *variable, __u64 at, unsigned int bytes, const char *type,
		 const char *field, __u64 begin, __u64 size)
{
	types_of_data(t, linked(variable) + at, bytes, &got);
	found(TYPE_VARIABLE, type, field, at, begin, size);
}

static void no_variable(const char *variable, __u64 at)
{
	types_of_data(t, linked(variable) + at, 4, &got);
	assert_int_equal(got.kind, TYPE_NO_VARIABLE);
	assert_null(got.type);
}

/* Bases are part of a class, static members and types in it are not. */
static void test_class(void **state)
{
	char text[1024] = "";

	(void)state;
	data(made_item, 0, 8, "shop::Item", "id", 0, 8);
	data(made_item, 7, 1, "shop::Item", "id", 0, 8);
	data(made_item, 8, 4, "shop::Item", "price", 8, 4);
	data(made_item, 12, 4, "shop::Item", "[padding]", 12, 4);
	/* the place of a member may be an expression, but only a simple one */
	data(made_item, 16, 4, "shop::Item", "moved", 16, 4);
	data(made_item, 20, 4, "shop::Item", "[padding]", 20, 4);
	data(made_item, 24, 8, "shop::Item", "next", 24, 8);
	data(made_item, 31, 1, "shop::Item", "next", 24, 8);
	assert_true(types_layout(t, "shop::Item", list, text));
	assert_string_equal(text, "id 0 8\nprice 8 4\nmoved 16 4\nnext 24 8\n");
}

static void test_names(void **state)
{
	(void)state;
	data(made_reference, 0, 8, "shop::Item&", NULL, 0, 0);
	data(made_moved, 0, 8, "shop::Item&", NULL, 0, 0);
	data(made_named, 0, 8, "*shop.Item", NULL, 0, 0);
	data(made_inner, 0, 4, "shop::Item::Inner", "a", 0, 4);
	data(made_hidden, 0, 4, "shop::(anonymous)::Hidden", "h", 0, 4);
	data(made_color, 0, 4, "Color", NULL, 0, 0);
}

/* Nothing is a variable whose size is not known, or which memory has no room for. */
static void test_sizes(void **state)
{
	(void)state;
	data(made_nothing, 0, 8, "void*", NULL, 0, 0);
	data(made_unnamed, 0, 4, "(anonymous)", "u", 0, 4);
	no_variable(made_unnamed, 4);
	no_variable(made_unknown, 0);
	no_variable(made_many, 0);
	no_variable(made_of_huge, 0);
	no_variable(made_of_pointers, 0);
	no_variable(made_of_four, 0);
	no_variable(made_itself, 0);
	no_variable(made_declared, 0);
}

/* The number of elements, by bounds or by their count. */
static void test_arrays(void **state)
{
	(void)state;
	data(made_five, 0, 4, "int", NULL, 0, 0);
	types_of_data(t, linked(made_five) + 19, 1, &got);
	found(TYPE_VARIABLE, "int", NULL, 3, 0, 0);
	no_variable(made_five, 20);
	types_of_data(t, linked(made_six) + 23, 1, &got);
	found(TYPE_VARIABLE, "int", NULL, 3, 0, 0);
	no_variable(made_six, 24);
}

/* Variants overlap. A discriminant that is in one of them is that. */
static void test_variants(void **state)
{
	char text[1024] = "";

	(void)state;
	data(made_value, 0, 8, "Value", "[variant]", 0, 8);
	data(made_value, 8, 8, "Value", "Num.value|Text.ptr", 8, 8);
	data(made_value, 15, 1, "Value", "after", 15, 1);
	data(made_niche, 0, 8, "Niche", "Some.it|Other.id", 0, 8);
	assert_true(types_layout(t, "Value", list, text));
	assert_string_equal(text, "[variant] 0 8\nNum.value 8 8\nText.ptr 8 8\nafter 15 1\n");
	*text = 0;
	assert_true(types_layout(t, "Niche", list, text));
	assert_string_equal(text, "[variant] 0 8\nSome.it 0 8\nOther.id 0 8\n");
}

static void code(const char *at, enum type_kind kind, const char *type, const char *field,
		 __u64 offset, __u64 begin, __u64 size)
{
	types_of_code(t, linked(at), &got);
	found(kind, type, field, offset, begin, size);
}

/* Variables may be in registers, in a register minus a number, in several, on the stack or below the frame. */
static void test_places(void **state)
{
	(void)state;
	code(made_at_price, TYPE_POINTER, "shop::Item", "price", 8, 8, 4);
	code(made_at_minus, TYPE_POINTER, "shop::Item", "price", 8, 8, 4);
	code(made_at_piece, TYPE_POINTER, "shop::Item", "price", 8, 8, 4);
	code(made_at_second, TYPE_POINTER, "Flex", "n", 0, 0, 8);
	/* behind the end of a struct, where an array without a bound goes on */
	code(made_at_flex, TYPE_POINTER, "Flex", "more[]", 20, 8, 4);
	code(made_at_frame, TYPE_STACK, "shop::Item", "price", 8, 8, 4);
	none(made_at_below, TYPE_STACK_SLOT);
	code(made_at_slot, TYPE_STACK, "int", NULL, 0, 0, 0);
	code(made_at_largest, TYPE_POINTER, "shop::Item", "price", 8, 8, 4);
}

/* What a function returns is known where debug information says which one was called. */
static void test_calls(void **state)
{
	(void)state;
	code(made_after_call, TYPE_POINTER, "shop::Item", "price", 8, 8, 4);
	none(made_at_other, TYPE_REGISTER); /* four bytes are no pointer */
	none(made_after_other, TYPE_REGISTER);
}

static void price(const char *at)
{
	code(at, TYPE_POINTER, "shop::Item", "price", 8, 8, 4);
}

/* A variable of a block is known from its beginning on, and where its register still has it. */
static void test_blocks(void **state)
{
	(void)state;
	none(made_before, TYPE_REGISTER);
	price(made_block);
	price(made_at_next); /* it is advanced by whole elements: the next one */
	price(made_last);
	price(made_block_end);
	none(made_at_far, TYPE_OUTSIDE); /* it is advanced by something else */
	price(made_rax);
	code(made_at_rax, TYPE_STACK, "int", NULL, 0, 0, 0);
	none(made_at_rax_end, TYPE_REGISTER);
	price(made_nested);
}

/* A store puts the variable into its slot. */
static void test_slots(void **state)
{
	(void)state;
	code(made_store, TYPE_STACK, "int", NULL, 0, 0, 0);
	code(made_slot, TYPE_STACK, "int", NULL, 0, 0, 0);
	code(made_through, TYPE_STACK, "int", NULL, 0, 0, 0);
	none(made_beside, TYPE_STACK_SLOT);
	none(made_slot_end, TYPE_STACK_SLOT);
	none(made_store_after, TYPE_STACK_SLOT);
	none(made_deref, TYPE_STACK_SLOT);
}

/* Elements before and behind the one that a pointer is to; an unknown index. */
static void test_elements(void **state)
{
	(void)state;
	price(made_element);
	price(made_negative);
	code(made_exact, TYPE_POINTER, "shop::Item", "id", 0, 0, 8);
	code(made_third, TYPE_POINTER, "shop::Item", "id", 0, 0, 8);
	code(made_index, TYPE_VARIABLE, "int", NULL, 0, 0, 0);
	none(made_index_4, TYPE_NO_VARIABLE); /* another variable may be there */
	price(made_swapped);
	none(made_scaled, TYPE_REGISTER);
	price(made_no_base);
	none(made_no_base_4, TYPE_NO_VARIABLE);
	price(made_added);
	price(made_added_load);
}

/* Numbers, halves of pointers, and pointers to what is not known. */
static void test_untyped(void **state)
{
	(void)state;
	none(made_price, TYPE_UNTYPED);
	none(made_half, TYPE_UNTYPED);
	none(made_outside, TYPE_REGISTER);
	none(made_from_slot, TYPE_REGISTER);
	none(made_ambiguous, TYPE_UNTYPED);
	none(made_void, TYPE_UNTYPED);
	none(made_undefined, TYPE_UNTYPED);
	none(made_of_itself, TYPE_UNTYPED);
	price(made_piece);
	code(made_piece_2, TYPE_POINTER, "Flex", "n", 0, 0, 8);
}

/* All paths must agree; what is far away is not looked for. */
static void test_far(void **state)
{
	(void)state;
	none(made_differ, TYPE_REGISTER);
	price(made_agree);
	price(made_copied);
	none(made_copied_more, TYPE_REGISTER);
	price(made_after_gnu);
	price(made_near);
	none(made_too_far, TYPE_REGISTER);
}

/* Of several variables in one place the largest struct; of pieces the one that is there. */
static void test_several(void **state)
{
	(void)state;
	price(made_of_several);
	code(made_largest_slot, TYPE_STACK, "shop::Item", "price", 8, 8, 4);
	code(made_first_piece, TYPE_STACK, "Pair", "a", 0, 0, 8);
	code(made_second_piece, TYPE_STACK, "Pair", "b", 8, 8, 8);
}

/* All elements have one type, but beside the first one of a variable another one may be. */
static void test_loops(void **state)
{
	(void)state;
	code(made_loop, TYPE_VARIABLE, "int", NULL, 0, 0, 0);
	none(made_loop_4, TYPE_NO_VARIABLE);
	price(made_each);
	price(made_each_next);
	none(made_uneven, TYPE_REGISTER);
	code(made_maybe, TYPE_VARIABLE, "int", NULL, 0, 0, 0);
	none(made_maybe_4, TYPE_NO_VARIABLE);
}

/* What is nested deeper than anybody writes is not followed. */
static void test_nested(void **state)
{
	char name[64] = "void";

	(void)state;
	price(made_deep);
	none(made_deeper, TYPE_REGISTER);
	memset(name + 4, '*', 48);
	data(made_pointers, 0, 8, name, NULL, 0, 0);
	data(made_structs, 0, 4, "s", "[padding]", 0, 4);
	no_variable(made_names, 0);
	data(made_few_names, 0, 4, "int", NULL, 0, 0);
}

static void inlined(const char *at, unsigned int level, const char *name, const char *file,
		    int line, struct types_inlined *out)
{
	assert_true(types_inlined(t, linked(at), level, out));
	assert_string_equal(out->name, name);
	if (file)
		assert_string_equal(out->file, file);
	else
		assert_null(out->file);
	assert_int_equal(out->line, line);
}

/* The name is the linker's, or has the scope; a call without a place has none. */
static void test_inlined(void **state)
{
	struct types_inlined small, again, tiny, bad;
	struct addr_span span;

	(void)state;
	inlined(made_in_small, 0, "shop::small", "/made/call.h", 42, &small);
	assert_string_equal(small.dir, "/made");
	assert_int_equal(small.into, 0);
	assert_false(types_inlined(t, linked(made_in_small), 1, &again));
	inlined(made_in_tiny, 0, "_Z4tinyv", "/made/made.c", 7, &tiny);
	assert_int_equal(tiny.into, small.id);
	inlined(made_in_tiny, 1, "shop::small", "/made/call.h", 42, &again);
	assert_int_equal(again.id, small.id);
	assert_true(tiny.id != small.id);
	assert_false(types_inlined(t, linked(made_in_tiny), 2, &again));
	assert_false(types_inlined(t, linked(made_in_small_end), 0, &again));
	inlined(made_no_line, 0, "shop::small", NULL, 0, &bad);
	assert_null(bad.dir);
	assert_true(bad.id != small.id);
	inlined(made_no_file, 0, "shop::small", NULL, 0, &bad);
	inlined(made_bad_file, 0, "shop::small", NULL, 0, &bad);
	assert_false(types_inlined(t, linked(made_bad_file_end), 0, &bad));
	/* in a block, and of a namespace without a name */
	inlined(made_hushed, 0, "shop::(anonymous namespace)::hushed", NULL, 0, &bad);
	/* from one edge to the next */
	span = ADDR_SPAN_ALL;
	types_inlined_span(t, linked(made_in_small), &span);
	assert_int_equal(span.from, linked(made_in_small));
	assert_int_equal(span.until, linked(made_in_tiny));
	span = ADDR_SPAN_ALL;
	types_inlined_span(t, linked(made_in_tiny), &span);
	assert_int_equal(span.from, linked(made_in_tiny));
	assert_int_equal(span.until, linked(made_in_small_end));
	span = ADDR_SPAN_ALL;
	types_inlined_span(t, linked(made_at_price), &span);
	assert_int_equal(span.from, linked(made_code));
	assert_int_equal(span.until, linked(made_in_small));
}

#define T(f) cmocka_unit_test_setup_teardown(f, set_up, clean_up)

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(test_class),	T(test_names),	 T(test_arrays),   T(test_variants),
		T(test_places), T(test_calls),	 T(test_inlined),  T(test_sizes),
		T(test_blocks), T(test_slots),	 T(test_elements), T(test_untyped),
		T(test_far),	T(test_several), T(test_loops),	   T(test_nested),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
