// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "web_server.h"

__asm__(".section .rodata\n"
	".global web_page, web_page_size\n"
	"web_page: .incbin \"src/web/web_page.html\"\n"
	"web_page_end: .balign 8\n"
	"web_page_size: .quad web_page_end - web_page\n"
	".previous\n");
