// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Containers and pods by cgroup path: each runtime and driver, nested ones, near misses. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "cgroup/container.h"

#define A    "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
#define B    "fedcba9876543210fedcba9876543210fedcba9876543210fedcba9876543210"
#define POD_ "12345678_9abc_def0_1234_56789abcdef0"
#define POD  "12345678-9abc-def0-1234-56789abcdef0"
#define HASH "0123456789abcdef0123456789abcdef"
#define BEST "/kubepods.slice/kubepods-besteffort.slice/kubepods-besteffort-pod" POD_ ".slice"
#define KIND "/system.slice/docker-" A ".scope"

/* clang-format off */
static const struct {
	const char *path, *below; /* the container's own, and what is in it */
	const char *runtime, *id, *pod;
	unsigned int depth;
} rows[] = {
	{ "/system.slice/docker-" A ".scope", "", "docker", A, "", 1 },
	{ "/system.slice/docker-" A ".scope", "/init.scope", "docker", A, "", 1 },
	{ "/docker/" A, "", "docker", A, "", 1 },
	{ "/machine.slice/libpod-" A ".scope", "", "podman", A, "", 1 },
	{ "/machine.slice/libpod-" A ".scope", "/container", "podman", A, "", 1 },
	{ "/libpod_parent/libpod-" A, "", "podman", A, "", 1 },
	{ "/user.slice/user-1000.slice/user@1000.service/user.slice/libpod-" A ".scope",
	  "/container", "podman", A, "", 1 },
	/* --cgroups=split, as Quadlet's units have it */
	{ "/system.slice/web.service/libpod-payload-" A, "/x", "podman", A, "", 1 },
	{ "/quad.service/libpod-payload-" A, "", "podman", A, "", 1 },
	{ "/machine.slice/machine-libpod_pod_" B ".slice/libpod-" A ".scope", "/container",
	  "podman", A, B, 1 },
	{ "/user.slice/user-1000.slice/user@1000.service/user.slice/user-libpod_pod_" B
	  ".slice/libpod-" A ".scope", "", "podman", A, B, 1 },
	{ "/libpod_parent/" B "/libpod-" A, "", "podman", A, B, 1 },
	{ "/libpod_parent/" B, "", "", "", B, 0 },
	/* no id, but a name */
	{ "/lxc.payload.web-1", "/init.scope", "lxc", "web-1", "", 1 },
	{ "/lxc.payload/web", "", "lxc", "web", "", 1 },
	{ "/user.slice/user-1000.slice/session-1.scope/lxc.payload.web", "", "lxc", "web", "", 1 },
	{ "/system.slice/lxc.service/lxc.payload.web", "", "lxc", "web", "", 1 },
	{ "/lxc.payload.web/docker/" A, "", "docker", A, "", 2 },
	{ "/machine.slice/systemd-nspawn@web\\x2d1.service/payload", "/a", "nspawn", "web-1", "", 1 },
	{ "/machine.slice/machine-web\\x2d1.scope/payload", "", "nspawn", "web-1", "", 1 },
	{ "/default/web", "/a", "containerd", "default/web", "", 0 },
	{ "/docker/buildkit", "", "containerd", "docker/buildkit", "", 0 },
	{ "/a/b/lxc.payload.web", "", "lxc", "web", "", 1 },
	{ "/system.slice/nerdctl-" A ".scope", "", "containerd", A, "", 1 },
	{ "/default/" A, "", "", A, "", 1 },
	{ BEST "/cri-containerd-" A ".scope", "", "containerd", A, POD, 1 },
	{ BEST "/cri-containerd-" A ".scope", "/system.slice/x.service", "containerd", A, POD, 1 },
	{ BEST "/crio-" A ".scope", "", "cri-o", A, POD, 1 },
	{ BEST "/docker-" A ".scope", "", "docker", A, POD, 1 },
	{ BEST, "/crio-conmon-" A ".scope", "", "", POD, 0 },
	{ BEST, "", "", "", POD, 0 },
	{ "/kubepods.slice/kubepods-pod" POD_ ".slice/cri-containerd-" A ".scope", "",
	  "containerd", A, POD, 1 },
	{ "/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod" HASH ".slice/crio-" A
	  ".scope", "", "cri-o", A, HASH, 1 },
	{ "/kubepods/besteffort/pod" POD "/" A, "", "", A, POD, 1 },
	{ "/kubepods/pod" POD "/" A, "", "", A, POD, 1 },
	{ "/kubepods/burstable/pod" HASH "/" A, "", "", A, HASH, 1 },
	{ "/kubepods/burstable/pod" POD "/crio-" A, "", "cri-o", A, POD, 1 },
	{ "/kubepods/burstable/pod" POD, "", "", "", POD, 0 },
	{ "/system.slice/kubepods-burstable-pod" POD_ ".slice:cri-containerd:" A, "", "containerd",
	  A, POD, 1 },
	{ "/system.slice/a:b:" A, "", "", A, "", 1 },
	/* one in another */
	{ "/docker/" A "/docker/" B, "/x", "docker", B, "", 2 },
	{ KIND "/docker/" B, "", "docker", B, "", 2 },
	{ KIND "/kubelet.slice/kubelet-kubepods.slice/kubelet-kubepods-burstable.slice/"
	  "kubelet-kubepods-burstable-pod" POD_ ".slice/cri-containerd-" B ".scope", "",
	  "containerd", B, POD, 2 },
	{ KIND "/kubelet/kubepods/burstable/pod" POD "/" B, "", "", B, POD, 2 },
	{ KIND "/kubelet.slice/kubelet-kubepods-pod" POD_ ".slice", "", "", "", POD, 1 },
	{ "/kubepods/burstable/pod" POD "/" A "/docker/" B, "", "docker", B, POD, 2 },
};
/* clang-format on */

static void test_rows(void **state)
{
	struct container c;
	char path[1024];
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		snprintf(path, sizeof(path), "%s%s", rows[i].path, rows[i].below);
		if (!container_of_path(path, NULL, &c))
			fail_msg("nothing in %s", path);
		if (strcmp(c.runtime, rows[i].runtime) || strcmp(c.id, rows[i].id) ||
		    strcmp(c.pod_uid, rows[i].pod) || c.depth != rows[i].depth ||
		    c.path_len != strlen(rows[i].path))
			fail_msg("%s: '%s' '%s' '%s' %u %zu", path, c.runtime, c.id, c.pod_uid,
				 c.depth, c.path_len);
	}
}

/* Whose runtime made the cgroup: by the owners of those around it, else by the slice. */
static void test_owner(void **state)
{
	static const struct {
		const char *path;
		struct container_owner owner;
		unsigned int uid;
		bool host_pod;
	} rows[] = {
		{ "/docker/" A, { 0, 0 }, 0, false },
		{ "/system.slice/docker-" A ".scope", { 0, 0 }, 0, false },
		/* what root made for somebody, with a user namespace, is root's; what is below is not */
		{ "/system.slice/docker-" A ".scope", { 100000, 84 }, 0, false },
		{ "/system.slice/docker-" A ".scope/sub", { 100000, 84 }, 0, false },
		{ "/system.slice/docker-" A ".scope/docker/" B, { 100000, 84 }, 100000, false },
		{ "/system.slice/u.service/docker-" A ".scope", { 33, 23 }, 33, false },
		{ "/system.slice/k3s.service/kubepods-pod" POD_ ".slice:cri-containerd:" A,
		  { 0, 0 },
		  0,
		  true },
		{ "/user.slice/user-1000.slice/user@1000.service/docker-" A ".scope",
		  { 0, 0 },
		  1000,
		  false },
		{ "/user.slice/user-1000.slice/lxc.payload.web", { 0, 0 }, 1000, false },
		{ "/user.slice/user-1000.slice/user@1000.service/docker-" A ".scope",
		  { 1000, 45 },
		  1000,
		  false },
		{ "/user.slice/user-1000.slice/kubepods/pod" POD "/" A, { 0, 0 }, 1000, false },
		{ "/user.slice/user-1000.slicer/docker-" A ".scope", { 0, 0 }, 0, false },
		{ BEST "/crio-" A ".scope", { 0, 0 }, 0, true },
		{ BEST "/crio-" A ".scope/kubepods/pod" POD, { 0, 0 }, 0, false },
		{ BEST, { 1000, 0 }, 1000, false },
		{ "/lxc.payload.web", { 1000, 16 }, 0, false },
		{ "/libpod_parent/" B "/libpod-" A, { 0, 0 }, 0, true },
	};
	struct container c;

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		assert_true(container_of_path(rows[i].path, &rows[i].owner, &c));
		if (c.uid != rows[i].uid || c.host_pod != rows[i].host_pod)
			fail_msg("%s: uid %u, pod of the host: %d", rows[i].path, c.uid,
				 c.host_pod);
	}
}

static void test_none(void **state)
{
	static const char *const paths[] = {
		"",
		"/",
		"//",
		"/system.slice/ssh.service",
		"/system.slice/docker.service",
		"/docker",
		"/x.slice/docker/" HASH,
		"/x.slice/docker/" A "0",
		"/x.slice/docker/" A ".scope.d",
		"/x.slice/docker/X123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef",
		"/x.slice/docker/0123456789ABCDEF0123456789abcdef0123456789abcdef0123456789abcdef",
		"/docker/" A ".scope",
		"/docker/a b",
		"/docker/-a",
		"/lxc.payload.",
		"/lxc.monitor.web",
		"/lxc.payload.a b",
		"/machine.slice/machine-web.scope",
		"/machine.slice/machine-web.scope/supervisor",
		"/machine.slice/machine-.scope/payload",
		"/system.slice/web.service/payload",
		"/machine.slice/machine-libpod_pod_" HASH ".slice",
		"/libpod_parent/x.slice",
		"/user.slice/user-1000.slice/machine-web.scope/payload",
		"/user.slice/user-1000.slice",
		"/system.slice/docker-.scope",
		"/system.slice/docker" A ".scope",
		"/system.slice/mydocker-" A ".scope",
		"/system.slice/docker-" A ".service",
		"/machine.slice/libpod-conmon-" A ".scope",
		"/machine.slice/machine-qemu.scope",
		"/system.slice/:" A,
		"/system.slice/x:" A,
		"/kubepods.slice",
		"/kubepods.slice/kubepods-burstable.slice",
		"/kubepods.slice/kubepods-pod.slice",
		"/kubepods.slice/kubepods-pod" POD ".slice",
		"/x.slice/pod" POD_,
		"/x.slice/xpod" POD,
		"/x.slice/pod" POD "0",
		"/x.slice/pod12345678-9abc-def0-1234056789abcdef0",
		"/x.slice/pod12345678-9abc-def0-1234-56789abcdeg0",
		"/pod",
		"pod" POD_,
	};
	struct container c;
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(paths) / sizeof(paths[0]); i++) {
		if (container_of_path(paths[i], NULL, &c))
			fail_msg("%s: '%s' '%s'", paths[i], c.id, c.pod_uid);
		assert_string_equal(c.runtime, "");
		assert_string_equal(c.id, "");
		assert_string_equal(c.pod_uid, "");
		assert_int_equal(c.depth, 0);
	}
}

/* Cut and spoiled at each byte: only for what the sanitizers say, and nothing half-filled. */
static void test_broken(void **state)
{
	char path[1024];
	struct container c;
	size_t i, k, n;

	(void)state;
	for (i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		n = strlen(rows[i].path);
		for (k = 0; k < n; k++) {
			snprintf(path, sizeof(path), "%s", rows[i].path);
			path[k] = "/:-_.g\377"[k % 7];
			container_of_path(path, NULL, &c);
			path[k] = 0;
			container_of_path(path, NULL, &c);
			assert_true(!*c.id || c.kind != CONTAINER_BY_ID ||
				    strlen(c.id) == CONTAINER_ID_LEN);
			assert_true(!*c.pod_uid || strlen(c.pod_uid) == 36 ||
				    strlen(c.pod_uid) == 32 ||
				    strlen(c.pod_uid) == CONTAINER_ID_LEN);
			assert_true(c.path_len <= k);
		}
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_rows),
		cmocka_unit_test(test_owner),
		cmocka_unit_test(test_none),
		cmocka_unit_test(test_broken),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
