// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "cpu.h"

#include "base/utf8.h"

#include <stdio.h>
#include <string.h>

#ifdef __x86_64__
#include <cpuid.h>
#endif

/*
 * First family and model, last model, name. Linux arch/x86/kernel/cpu/amd.c (bsp_init_amd) and
 * hygon.c; the families before Zen from AMD's revision guides.
 */
static const struct {
	__u32 family, first, last;
	const char *name;
} generations[] = {
	{ 0x10, 0x00, 0xff, "family 10h (K10)" },
	{ 0x11, 0x00, 0xff, "family 11h" },
	{ 0x12, 0x00, 0xff, "family 12h (Llano)" },
	{ 0x14, 0x00, 0xff, "family 14h (Bobcat)" },
	{ 0x15, 0x00, 0x01, "family 15h (Bulldozer)" },
	{ 0x15, 0x02, 0x1f, "family 15h (Piledriver)" },
	{ 0x15, 0x30, 0x3f, "family 15h (Steamroller)" },
	{ 0x15, 0x60, 0x7f, "family 15h (Excavator)" },
	{ 0x16, 0x00, 0xff, "family 16h (Jaguar)" },
	{ 0x17, 0x00, 0x2f, "Zen 1" },
	{ 0x17, 0x30, 0x4f, "Zen 2" },
	{ 0x17, 0x50, 0x5f, "Zen 1" },
	{ 0x17, 0x60, 0x7f, "Zen 2" },
	{ 0x17, 0x90, 0xaf, "Zen 2" },
	{ 0x18, 0x00, 0xff, "Hygon (Zen 1)" },
	{ 0x19, 0x00, 0x0f, "Zen 3" },
	{ 0x19, 0x10, 0x1f, "Zen 4" },
	{ 0x19, 0x20, 0x5f, "Zen 3" },
	{ 0x19, 0x60, 0xaf, "Zen 4" },
	{ 0x1a, 0x00, 0x2f, "Zen 5" },
	{ 0x1a, 0x40, 0x4f, "Zen 5" },
	{ 0x1a, 0x50, 0x5f, "Zen 6" },
	{ 0x1a, 0x60, 0x7f, "Zen 5" },
	{ 0x1a, 0x80, 0xaf, "Zen 6" },
	{ 0x1a, 0xc0, 0xcf, "Zen 6" },
};

/* Signatures of CPUID Fn4000_0000, EBX ECX EDX. */
static const struct {
	const char *signature, *name;
} hypervisors[] = {
	{ "KVMKVMKVM", "KVM" },	       { "Linux KVM Hv", "KVM (Hyper-V interface)" },
	{ "Microsoft Hv", "Hyper-V" }, { "VMwareVMware", "VMware" },
	{ "XenVMMXenVMM", "Xen" },     { "TCGTCGTCGTCG", "QEMU TCG" },
	{ "bhyve bhyve ", "bhyve" },   { "VBoxVBoxVBox", "VirtualBox" },
	{ "ACRNACRNACRN", "ACRN" },    { " prl hyperv ", "Parallels" },
	{ "___ NVMM ___", "NVMM" },    { "OpenBSDVMM58", "OpenBSD vmm" },
};

const char *cpu_generation(const struct cpu_info *cpu)
{
	size_t i;

	for (i = 0; cpu->amd && i < sizeof(generations) / sizeof(generations[0]); i++) {
		if (cpu->family == generations[i].family && cpu->model >= generations[i].first &&
		    cpu->model <= generations[i].last)
			return generations[i].name;
	}
	return "unknown generation";
}

const char *cpu_text(const struct cpu_info *cpu, char *buf, size_t size)
{
	const char *generation = cpu_generation(cpu);

	if (!*cpu->name)
		snprintf(buf, size, "%s", generation);
	else if (strstr(cpu->name, generation))
		snprintf(buf, size, "%s", cpu->name);
	else
		snprintf(buf, size, "%s (%s)", cpu->name, generation);
	return buf;
}

void cpu_info_set(struct cpu_info *c, const char *vendor, __u32 family, __u32 model, __u32 caps)
{
	*c = (struct cpu_info){ .family = family, .model = model };
	snprintf(c->vendor, sizeof(c->vendor), "%s", vendor);
	c->amd = !strcmp(c->vendor, "AuthenticAMD") || !strcmp(c->vendor, "HygonGenuine");
	c->ibs = c->amd && caps;
	if (c->ibs)
		c->caps = caps & IBS_CAPS_AVAIL ? caps : IBS_CAPS_DEFAULT;
	if (c->amd)
		c->quirks = ibs_quirks(family, model);
}

static void read_hypervisor(cpu_leaf *leaf, struct cpu_info *c)
{
	struct cpu_regs r = leaf(0x40000000);
	char sig[13] = "";

	memcpy(sig, &r.ebx, 4);
	memcpy(sig + 4, &r.ecx, 4);
	memcpy(sig + 8, &r.edx, 4);
	/* the text is printed on terminals */
	utf8_escape(c->hypervisor_name, sizeof(c->hypervisor_name), *sig ? sig : "unnamed");
	for (size_t i = 0; i < sizeof(hypervisors) / sizeof(hypervisors[0]); i++) {
		if (!strcmp(sig, hypervisors[i].signature))
			snprintf(c->hypervisor_name, sizeof(c->hypervisor_name), "%s",
				 hypervisors[i].name);
	}
}

static void read_name(cpu_leaf *leaf, struct cpu_info *c)
{
	char raw[49] = "";
	struct cpu_regs r;
	size_t n;

	for (int i = 0; i < 3; i++) {
		r = leaf(0x80000002 + i);
		memcpy(raw + i * 16, &r, 16);
	}
	for (n = strlen(raw); n && raw[n - 1] == ' '; n--)
		raw[n - 1] = 0;
	utf8_escape(c->name, sizeof(c->name), raw + strspn(raw, " "));
}

void cpu_info_decode(cpu_leaf *leaf, struct cpu_info *out)
{
	__u32 ext_max, family, model, caps = 0;
	char vendor[13] = "";
	struct cpu_regs r = leaf(0);

	memcpy(vendor, &r.ebx, 4);
	memcpy(vendor + 4, &r.edx, 4);
	memcpy(vendor + 8, &r.ecx, 4);
	r = leaf(1);
	family = r.eax >> 8 & 0xf;
	model = r.eax >> 4 & 0xf;
	if (family == 0xf)
		family += r.eax >> 20 & 0xff;
	if (family >= 6)
		model |= r.eax >> 12 & 0xf0;
	ext_max = leaf(0x80000000).eax;
	/* As Linux ibs.c, __get_ibs_caps: the default if the leaf is missing or invalid. */
	if (ext_max >= 0x80000001 && (leaf(0x80000001).ecx & 1 << 10)) {
		caps = ext_max >= 0x8000001b ? leaf(0x8000001b).eax : 0;
		if (!(caps & IBS_CAPS_AVAIL))
			caps = IBS_CAPS_DEFAULT;
	}
	cpu_info_set(out, vendor, family, model, caps);
	out->stepping = r.eax & 0xf;
	if (ext_max >= 0x80000004)
		read_name(leaf, out);
	out->hypervisor = r.ecx >> 31;
	if (out->hypervisor)
		read_hypervisor(leaf, out);
}

#ifdef __x86_64__
static struct cpu_regs leaf(__u32 nr)
{
	struct cpu_regs r;

	__cpuid_count(nr, 0, r.eax, r.ebx, r.ecx, r.edx);
	return r;
}

void cpu_info_read(struct cpu_info *out)
{
	cpu_info_decode(leaf, out);
}
#else
void cpu_info_read(struct cpu_info *out)
{
	*out = (struct cpu_info){ 0 };
}
#endif
