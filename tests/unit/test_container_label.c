// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Labels of containers and pods, from names that are known or not. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "cgroup/container.h"

#define ID  "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
#define POD "12345678-9abc-def0-1234-56789abcdef0"

static char buf[CONTAINER_LABEL];

/* The name, else the first 12 digits of the id, unless a user made the container, or it has no id. */
static void test_container(void **state)
{
	struct container c = { .kind = CONTAINER_BY_ID, .id = ID };
	struct container_name web = { "web", "", "" }, none = { "", "", "" };

	(void)state;
	assert_string_equal(container_label(&c, &web, buf), "web");
	assert_string_equal(container_label(&c, &none, buf), "0123456789ab");
	assert_true(container_is_nameless(&c, &none));
	assert_false(container_is_nameless(&c, &web));
	c.uid = 1000;
	assert_string_equal(container_label(&c, &web, buf), "web");
	assert_string_equal(container_label(&c, &none, buf), "");
	c = (struct container){ .kind = CONTAINER_BY_NAME, .id = ID };
	assert_string_equal(container_label(&c, &none, buf), "");
	assert_string_equal(container_label(&c, &web, buf), "web");
	assert_false(container_is_nameless(&c, &none));
	/* a pod's own cgroup */
	c = (struct container){ .kind = CONTAINER_BY_ID, .pod_uid = POD };
	assert_string_equal(container_label(&c, &web, buf), "");
	assert_false(container_is_nameless(&c, &none));
}

/* "namespace/pod", else the uid of the pod; podman has pods without a namespace, and ids like those of containers. */
static void test_pod(void **state)
{
	struct container c = { .kind = CONTAINER_BY_ID, .id = ID, .pod_uid = POD };
	struct container_name shop = { "web", "pod-0", "shop" }, podman = { "web", "pod-0", "" },
			      none = { "web", "", "" };
	char name_space[254], pod[254], want[512];

	(void)state;
	assert_string_equal(container_pod_label(&c, &shop, buf), "shop/pod-0");
	assert_string_equal(container_pod_label(&c, &podman, buf), "pod-0");
	assert_string_equal(container_pod_label(&c, &none, buf), POD);
	strcpy(c.pod_uid, ID);
	assert_string_equal(container_pod_label(&c, &none, buf), "0123456789ab");
	*c.pod_uid = 0;
	assert_string_equal(container_pod_label(&c, &none, buf), "");
	/* the longest names that Kubernetes has */
	memset(name_space, 'n', 253);
	memset(pod, 'p', 253);
	name_space[253] = pod[253] = 0;
	shop = (struct container_name){ "web", pod, name_space };
	snprintf(want, sizeof(want), "%s/%s", name_space, pod);
	assert_string_equal(container_pod_label(&c, &shop, buf), want);
}

static void test_command(void **state)
{
	char inner[] = "/a/ibscope-1-2", outer[] = "/ibscope-1-2/a", top[] = "/ibscope-1-2",
	     relative[] = "ibscope-1-2";

	(void)state;
	assert_true(container_is_command("ibscope-1-2"));
	assert_true(container_is_command("ibscope-4194304-10"));
	assert_false(container_is_command("ibscope-1-"));
	assert_false(container_is_command("ibscope--2"));
	assert_false(container_is_command("ibscope-1"));
	assert_false(container_is_command("ibscope-1.2"));
	assert_false(container_is_command("ibscope-1-2x"));
	assert_false(container_is_command("ibscope-x1-2"));
	assert_false(container_is_command("ibscope-"));
	assert_false(container_is_command("ibscope"));
	assert_false(container_is_command("Ibscope-1-2"));
	container_cut_command(inner);
	assert_string_equal(inner, "/a");
	container_cut_command(outer);
	assert_string_equal(outer, "/ibscope-1-2/a");
	container_cut_command(top);
	assert_string_equal(top, "/");
	container_cut_command(relative);
	assert_string_equal(relative, "ibscope-1-2");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_container),
		cmocka_unit_test(test_pod),
		cmocka_unit_test(test_command),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
