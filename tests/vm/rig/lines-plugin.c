// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * A plugin for QEMU's TCG: which 64-byte lines each NMI of a guest with one vCPU touches, and who
 * touches them. lines.py reads what it writes.
 *
 *   -plugin lines.so,nmi=ADDRESS,out=FILE
 *
 * @nmi is the address of asm_exc_nmi. The guest says with MARK which run the NMIs belong to; those
 * outside of runs are not written. Output, in hexadecimal: a line "S RUN" for each NMI, then one for
 * each party and line of memory:
 *
 *   c|d PARTY ADDRESS BYTES PC WRITES
 *
 * code or data; 0 the kernel, 1 code of BPF programs, 2 the kernel between the first and the last
 * instruction of such code; a bit for each byte that was touched; the first instruction that did;
 * whether one wrote. What the processor reads by itself (descriptor and page tables) is not seen.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "qemu-plugin.h"

QEMU_PLUGIN_EXPORT int qemu_plugin_version = QEMU_PLUGIN_VERSION;

#define KERNEL 0xffff800000000000ULL
/* No guest has modules: what is above the kernel's image has been compiled from BPF. */
#define JIT	   0xffffffffa0000000ULL
#define LINE	   64
#define MAX_EVENTS (1 << 20)
#define TABLE	   (1 << 14)

enum party { REST, OURS, HELPER };

/* testb $0x5a, 0x69627369(%rax): where it reads, modulo a page, is the run; 0: none. */
static const unsigned char mark[] = { 0xf6, 0x80, 0x69, 0x73, 0x62, 0x69, 0x5a };
static const unsigned char iretq[] = { 0x48, 0xcf };

struct block {
	uint64_t start, end;
	bool returns; /* with iretq */
};

struct event {
	uint64_t addr, pc;
	uint32_t bytes;
	bool code, writes;
};

struct entry {
	uint64_t line, bytes, pc;
	unsigned int nmi; /* that it was used in */
	enum party party;
	bool code, writes;
};

static uint64_t nmi_entry;
static FILE *out;
static unsigned int run, nmis;
static enum { OUTSIDE, INSIDE, RETURNING } state;
static const struct block *last; /* RETURNING: the block with the iretq */
static struct event events[MAX_EVENTS];
static unsigned int n_events;
static struct entry table[TABLE];
static unsigned int used[TABLE], n_used;

static void touch(const struct event *e, enum party party, uint64_t line, uint64_t bytes)
{
	unsigned int i = ((line >> 6) * 0x9e3779b97f4a7c15ULL >> 40) + party + 3 * e->code;
	struct entry *t;

	for (;; i++) {
		t = &table[i %= TABLE];
		if (t->nmi != nmis)
			break;
		if (t->line == line && t->party == party && t->code == e->code) {
			t->bytes |= bytes;
			t->writes |= e->writes;
			return;
		}
	}
	if (n_used == TABLE / 2) {
		fprintf(stderr, "lines: an NMI with more than %u lines\n", n_used);
		exit(1);
	}
	used[n_used++] = i;
	*t = (struct entry){ line, bytes, e->pc, nmis, party, e->code, e->writes };
}

/* The NMI is over: write what it touched. */
static void finish(void)
{
	unsigned int first = n_events, end = 0;

	if (state == OUTSIDE)
		return;
	state = OUTSIDE;
	nmis++;
	n_used = 0;
	for (unsigned int i = 0; i < n_events; i++) {
		if (events[i].pc >= JIT) {
			first = first < i ? first : i;
			end = i + 1;
		}
	}
	for (unsigned int i = 0; i < n_events; i++) {
		const struct event *e = &events[i];
		enum party party = e->pc >= JIT ? OURS : i >= first && i < end ? HELPER : REST;
		uint64_t a = e->addr, left = e->bytes;

		while (left) {
			uint64_t from = a % LINE, n = LINE - from < left ? LINE - from : left;
			uint64_t bits = n == LINE ? ~0ULL : (1ULL << n) - 1;

			touch(e, party, a - from, bits << from);
			a += n;
			left -= n;
		}
	}
	fprintf(out, "S %x\n", run);
	for (unsigned int i = 0; i < n_used; i++) {
		const struct entry *t = &table[used[i]];

		fprintf(out, "%c %d %llx %llx %llx %d\n", t->code ? 'c' : 'd', t->party,
			(unsigned long long)t->line, (unsigned long long)t->bytes,
			(unsigned long long)t->pc, t->writes);
	}
}

static void record(struct event e)
{
	if (n_events == MAX_EVENTS) {
		fprintf(stderr, "lines: an NMI without an end\n");
		exit(1);
	}
	events[n_events++] = e;
}

static void on_block(unsigned int vcpu, void *data)
{
	const struct block *b = data;

	if (state == RETURNING)
		finish();
	if (b->start == nmi_entry && state == OUTSIDE && run) {
		state = INSIDE;
		n_events = 0;
	}
	if (state == OUTSIDE)
		return;
	record((struct event){ b->start, b->start, b->end - b->start, .code = true });
	if (b->returns) {
		state = RETURNING;
		last = b;
	}
}

static void on_access(unsigned int vcpu, qemu_plugin_meminfo_t info, uint64_t addr, void *data)
{
	uint64_t pc = (uintptr_t)data;

	if (state == OUTSIDE || (state == RETURNING && (pc < last->start || pc >= last->end)))
		return;
	record((struct event){ addr, pc, 1u << qemu_plugin_mem_size_shift(info),
			       .writes = qemu_plugin_mem_is_store(info) });
}

static void on_mark(unsigned int vcpu, qemu_plugin_meminfo_t info, uint64_t addr, void *data)
{
	finish();
	run = addr % 4096;
}

static bool is(const struct qemu_plugin_insn *insn, const unsigned char *bytes, size_t n)
{
	return qemu_plugin_insn_size(insn) == n && !memcmp(qemu_plugin_insn_data(insn), bytes, n);
}

static void translate_user(struct qemu_plugin_tb *tb)
{
	for (size_t i = 0; i < qemu_plugin_tb_n_insns(tb); i++) {
		struct qemu_plugin_insn *insn = qemu_plugin_tb_get_insn(tb, i);

		/* it only reads, but QEMU 7.2 forgets callbacks for reads alone */
		if (is(insn, mark, sizeof(mark)))
			qemu_plugin_register_vcpu_mem_cb(insn, on_mark, QEMU_PLUGIN_CB_NO_REGS,
							 QEMU_PLUGIN_MEM_RW, NULL);
	}
}

static void translate(qemu_plugin_id_t id, struct qemu_plugin_tb *tb)
{
	size_t n = qemu_plugin_tb_n_insns(tb);
	struct qemu_plugin_insn *insn = NULL;
	struct block *b;

	if (qemu_plugin_tb_vaddr(tb) < KERNEL) {
		translate_user(tb);
		return;
	}
	for (size_t i = 0; i < n; i++) {
		insn = qemu_plugin_tb_get_insn(tb, i);
		qemu_plugin_register_vcpu_mem_cb(insn, on_access, QEMU_PLUGIN_CB_NO_REGS,
						 QEMU_PLUGIN_MEM_RW,
						 (void *)(uintptr_t)qemu_plugin_insn_vaddr(insn));
	}
	b = malloc(sizeof(*b)); /* as long as QEMU runs, which may use the block again */
	b->start = qemu_plugin_tb_vaddr(tb);
	b->end = qemu_plugin_insn_vaddr(insn) + qemu_plugin_insn_size(insn);
	b->returns = is(insn, iretq, sizeof(iretq));
	qemu_plugin_register_vcpu_tb_exec_cb(tb, on_block, QEMU_PLUGIN_CB_NO_REGS, b);
}

static void at_exit(qemu_plugin_id_t id, void *data)
{
	finish();
	fclose(out);
}

QEMU_PLUGIN_EXPORT int qemu_plugin_install(qemu_plugin_id_t id, const qemu_info_t *info, int argc,
					   char **argv)
{
	for (int i = 0; i < argc; i++) {
		if (!strncmp(argv[i], "nmi=", 4))
			nmi_entry = strtoull(argv[i] + 4, NULL, 16);
		else if (!strncmp(argv[i], "out=", 4))
			out = fopen(argv[i] + 4, "w");
	}
	if (!nmi_entry || !out) {
		fprintf(stderr, "lines: needs nmi=ADDRESS,out=FILE\n");
		return -1;
	}
	nmis = 1;
	qemu_plugin_register_vcpu_tb_trans_cb(id, translate);
	qemu_plugin_register_atexit_cb(id, at_exit, NULL);
	return 0;
}
