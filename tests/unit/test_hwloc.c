// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* The machine of a recording in the XML of hwloc: what is in what, and what the samples of CPUs add up to. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "profile/profile.h"

static struct trace_topology topology;
static struct trace_info info;
static char *printed;

static void print(struct report_row *rows, size_t n)
{
	const struct report_table table = { .rows = rows, .n = n };
	size_t size;
	FILE *f;

	free(printed);
	f = open_memstream(&printed, &size);
	report_hwloc(f, &info, &table);
	fclose(f);
}

static int begin(void **state)
{
	(void)state;
	topology = (struct trace_topology){ .n = 4 };
	info = (struct trace_info){
		.source = "ibs", .host = "h<1", .release = "6.12", .topology = &topology
	};
	return 0;
}

static void has(const char *what)
{
	if (!strstr(printed, what))
		fail_msg("'%s' is not in '%s'", what, printed);
}

static unsigned int count(const char *what)
{
	unsigned int n = 0;

	for (const char *at = printed; (at = strstr(at, what)); at++)
		n++;
	return n;
}

#define SETS(cpus, nodes)                                                    \
	" cpuset=\"" cpus "\" complete_cpuset=\"" cpus "\" nodeset=\"" nodes \
	"\" complete_nodeset=\"" nodes "\""
#define CACHE                                                                            \
	" cache_size=\"0\" depth=\"3\" cache_linesize=\"64\" cache_associativity=\"0\" " \
	"cache_type=\"0\">\n"

/* Two sockets of a node each, the first one with two L3 complexes. */
static void test_machine(void **state)
{
	static const struct memory_range memory[] = { { .start = 0, .end = 4096, .node = 0 },
						      { .start = 4096, .end = 12288, .node = 1 },
						      { .start = 12288, .end = 12388, .node = 0 } };
	static const char *const label[][1] = { { "2" }, { "4" }, { NULL } };
	struct report_row rows[] = {
		{ .label = (const char **)label[0], .samples = 7, .cycles = 99 },
		{ .label = (const char **)label[1], .samples = 1 },
		{ .label = (const char **)label[2], .samples = 2 }
	};

	(void)state;
	topology.has_sockets = true;
	memcpy(topology.socket, (__u16[]){ 0, 0, 1, 1 }, 8);
	memcpy(topology.node, (__u16[]){ 0, 0, 1, 1 }, 8);
	memcpy(topology.ccx, (__u16[]){ 0, 1, 2, 2 }, 8);
	info.memory = memory;
	info.n_memory = 3;
	info.has_cpu = true;
	strcpy(info.cpu.name, "EPYC");
	print(rows, 3);
	assert_string_equal(
		printed, "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n"
			 "<!DOCTYPE topology SYSTEM \"hwloc2.dtd\">\n"
			 "<topology version=\"2.0\">\n"
			 "  <object type=\"Machine\" os_index=\"0\"" SETS(
				 "0x0000000f",
				 "0x00000003") " gp_index=\"1\">\n"
					       "    <info name=\"HostName\" value=\"h&lt;1\"/>\n"
					       "    <info name=\"OSName\" value=\"Linux\"/>\n"
					       "    <info name=\"OSRelease\" value=\"6.12\"/>\n"
					       "    <info name=\"CPUModel\" value=\"EPYC\"/>\n"
					       "    <info name=\"ibscope.source\" value=\"ibs\"/>\n"
					       "    <object type=\"Package\" os_index=\"0\"" SETS("0x00000003",
												  "0x00000001") " gp_index=\"2\">\n"
														"      <object type=\"Group\" os_index=\"0\"" SETS("0x00000003",
																				   "0x00000001") " gp_index=\"3\" kind=\"0\" subkind=\"0\">\n"
																						 "        <object type=\"NUMANode\" os_index=\"0\"" SETS("0x00000003", "0x00000001") " gp_index=\"4\" local_memory=\"4196\"/>\n"
																																     "        <object type=\"L3Cache\" os_index=\"0\"" SETS("0x00000001", "0x00000001") " gp_index=\"5\"" CACHE "          <object type=\"PU\" os_index=\"0\"" SETS("0x00000001", "0x00000001") " gp_index=\"6\">\n"
																																																								"          </object>\n"
																																																								"        </object>\n"
																																																								"        <object type=\"L3Cache\" os_index=\"1\"" SETS(
																																																									"0x00000002",
																																																									"0x00000001") " gp_index=\"7\"" CACHE
																																																										      "          <object type=\"PU\" os_index=\"1\"" SETS(
																																																											      "0x00000002", "0x00000001") " gp_index=\"8\">\n"
																																																															  "          </object>\n"
																																																															  "        </object>\n"
																																																															  "      </object>\n"
																																																															  "    </object>\n"
																																																															  "    <object type=\"Package\" os_index=\"1\"" SETS("0x0000000c",
																																																																					     "0x00000002") " gp_index=\"9\">\n"
																																																																							   "      <object type=\"Group\" os_index=\"1\"" SETS(
																																																																								   "0x0000000c",
																																																																								   "0x00000002") " gp_index=\"10\" kind=\"0\" subkind=\"0\">\n"
																																																																										 "        <object type=\"NUMANode\" os_index=\"1\"" SETS(
																																																																											 "0x0000000c",
																																																																											 "0x00000002") " gp_index=\"11\" local_memory=\"8192\"/>\n"
																																																																												       "        <object type=\"L3Cache\" os_index=\"2\"" SETS("0x0000000c", "0x00000002") " gp_index=\"12\"" CACHE "          <object type=\"PU\" os_index=\"2\"" SETS("0x00000004",
																																																																																																       "0x00000002") " gp_index=\"13\">\n"
																																																																																																		     "            <info name=\"ibscope.samples\" value=\"7\"/>\n"
																																																																																																		     "            <info name=\"ibscope.miss_cycles\" value=\"99\"/>\n"
																																																																																																		     "          </object>\n"
																																																																																																		     "          <object type=\"PU\" os_index=\"3\"" SETS(
																																																																																																			     "0x00000008",
																																																																																																			     "0x00000002") " gp_index=\"14\">\n"
																																																																																																					   "          </object>\n"
																																																																																																					   "        </object>\n"
																																																																																																					   "      </object>\n"
																																																																																																					   "    </object>\n"
																																																																																																					   "  </object>\n"
																																																																																																					   "</topology>\n");
}

/* A node with two sockets has these in it, and a machine that does not say has one socket. */
static void test_sockets(void **state)
{
	(void)state;
	info.simulated = true;
	print(NULL, 0);
	has("<info name=\"ibscope.source\" value=\"SIMULATED\"/>");
	assert_int_equal(count("\"CPUModel\""), 0);
	has("    <object type=\"Package\" os_index=\"0\"" SETS("0x0000000f", "0x00000001"));
	has("      <object type=\"Group\" os_index=\"0\"" SETS("0x0000000f", "0x00000001"));
	topology.socket[3] = 1; /* not said to be known */
	print(NULL, 0);
	assert_int_equal(count("\"Package\""), 1);
	topology.has_sockets = true;
	print(NULL, 0);
	has("    <object type=\"Group\" os_index=\"0\"" SETS("0x0000000f", "0x00000001"));
	has("      <object type=\"Package\" os_index=\"0\"" SETS("0x00000007", "0x00000001"));
	has("      <object type=\"Package\" os_index=\"1\"" SETS("0x00000008", "0x00000001"));
	assert_int_equal(count("\"PU\""), 4);
	assert_int_equal(count("</object>"), 1 + 1 + 2 + 2 + 4);
}

/* Sets have words of 32 bits, the highest first; the nodes of CPUs need not be in order. */
static void test_many(void **state)
{
	(void)state;
	topology.n = 35;
	topology.node[2] = 33;
	print(NULL, 0);
	has("\"Machine\" os_index=\"0\"" SETS("0x00000007,0xffffffff", "0x00000002,0x00000001"));
	has("\"NUMANode\" os_index=\"33\"" SETS("0x00000000,0x00000004", "0x00000002,0x00000000"));
	has("\"PU\" os_index=\"34\"" SETS("0x00000004,0x00000000", "0x00000000,0x00000001"));
}

static void test_can(void **state)
{
	(void)state;
	assert_true(report_hwloc_can(&info));
	topology.node[3] = 1023;
	assert_true(report_hwloc_can(&info));
	topology.node[3] = 1024;
	assert_false(report_hwloc_can(&info));
	topology.n = 3; /* the others do not count */
	assert_true(report_hwloc_can(&info));
	info.topology = NULL;
	assert_false(report_hwloc_can(&info));
}

#define T(f) cmocka_unit_test_setup(f, begin)

int main(void)
{
	const struct CMUnitTest tests[] = { T(test_machine), T(test_sockets), T(test_many),
					    T(test_can) };
	int ret = cmocka_run_group_tests(tests, NULL, NULL);

	free(printed);
	return ret;
}
