// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "web_private.h"

__asm__(".section .rodata\n"
	".global web_page, web_page_end\n"
	"web_page: .incbin \"src/web_page.html\"\n"
	"web_page_end: .byte 0\n"
	".previous\n");
