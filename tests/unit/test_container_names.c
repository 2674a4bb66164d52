// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Names of containers, from files such as each runtime leaves, and from files that are none. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>

#include <cmocka.h>

#include "cgroup/container.h"
#include "tree.h"

#define A    "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
#define B    "fedcba9876543210fedcba9876543210fedcba9876543210fedcba9876543210"
#define C    "cccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccc"
#define D    "dddddddddddddddddddddddddddddddddddddddddddddddddddddddddddddddd"
#define POD  "12345678-9abc-def0-1234-56789abcdef0"
#define HASH "0123456789abcdef0123456789abcdef"
#define KUBE "/kubepods/burstable/pod" POD
#define USER "/user.slice/user-1000.slice/user@1000.service/user.slice/libpod-"

static struct container_names *names;

static int up(void **state)
{
	int ret = new_root(state);

	names = container_names_open(root);
	return ret;
}

static int down(void **state)
{
	container_names_close(names);
	return remove_root(state);
}

/* As if nothing had been asked before. */
static void reopen(void)
{
	container_names_close(names);
	names = container_names_open(root);
}

static const char *label(const char *path, const struct container_owner *owner)
{
	struct container c;

	return container_of_path(path, owner, &c) ? container_names_label(names, &c) : "";
}

static const char *pod_label(const char *path, const struct container_owner *owner)
{
	struct container c;

	return container_of_path(path, owner, &c) ? container_names_pod_label(names, &c) : "";
}

static void check(const char *path, const char *container, const char *pod, const char *ns)
{
	const struct container_name *n;
	struct container c;

	assert_true(container_of_path(path, NULL, &c));
	n = container_names_find(names, &c);
	if (strcmp(n->container, container) || strcmp(n->pod, pod) || strcmp(n->ns, ns))
		fail_msg("%s: '%s' '%s' '%s'", path, n->container, n->pod, n->ns);
}

static void test_docker(void **state)
{
	(void)state;
	put_file("/var/lib/docker/containers/" A "/config.v2.json",
		 "{\"ID\":\"" A "\",\"Name\":\"/web-1\",\"Config\":{\"Labels\":{\"a\":\"b\"}}}");
	put_file("/var/lib/docker/containers/" B "/config.v2.json",
		 "{\"Name\":\"/k8s_app_shop-0_prod_" POD "_0\",\"Config\":{\"Labels\":{"
		 "\"io.kubernetes.container.name\":\"app\",\"io.kubernetes.pod.name\":\"shop-0\","
		 "\"io.kubernetes.pod.namespace\":\"prod\"}}}");
	put_file("/etc/docker/daemon.json", "{\"data-root\":\"/mnt/docker\"}");
	put_file("/mnt/docker/containers/" C "/config.v2.json", "{\"Name\":\"/moved\"}");
	check("/docker/" A, "web-1", "", "");
	check("/system.slice/docker-" A ".scope/init.scope", "web-1", "", "");
	check(KUBE "/" B, "app", "shop-0", "prod");
	check("/docker/" C, "moved", "", "");
}

static void test_podman(void **state)
{
	(void)state;
	put_file("/var/lib/containers/storage/overlay-containers/containers.json",
		 "[{\"id\":\"" A "\",\"names\":[\"db\",\"other\"],\"layer\":\"x\"},{\"id\":7},"
		 "{\"id\":\"" C "\",\"names\":[]}, 3, \"x\"]");
	put_file("/var/lib/containers/storage/overlay-containers/volatile-containers.json",
		 "[{\"id\":\"" B "\",\"names\":[\"job\"]}]");
	check("/machine.slice/libpod-" A ".scope/container", "db", "", "");
	check("/machine.slice/libpod-" B ".scope", "job", "", "");
	check("/machine.slice/libpod-" C ".scope", "", "", "");
}

static void wait_ms(int ms)
{
	usleep(ms * 1000);
}

/* A file whose texts end with zeros, which are newlines in @text. */
static void put_strings(const char *below, const char *text)
{
	char path[512];
	FILE *f;

	snprintf(path, sizeof(path), "%s%s", root, below);
	f = fopen(path, "w");
	assert_non_null(f);
	for (; *text; text++)
		fputc(*text == '\n' ? 0 : *text, f);
	fclose(f);
}

/* A process as /proc shows it; in @argv newlines are zeros. */
static void put_process(int pid, const char *comm, const char *uids, const char *pids,
			const char *cgroup, const char *argv)
{
	char path[64], text[1024];

	snprintf(path, sizeof(path), "/proc/%d/comm", pid);
	put_file(path, comm);
	snprintf(path, sizeof(path), "/proc/%d/status", pid);
	snprintf(text, sizeof(text), "Name:\tx\nUid:\t%s\nNSpid:\t%s\n", uids, pids);
	put_file(path, text);
	snprintf(path, sizeof(path), "/proc/%d/cgroup", pid);
	snprintf(text, sizeof(text), "4:memory:/\n0::%s\n", cgroup);
	put_file(path, text);
	snprintf(path, sizeof(path), "/proc/%d/cmdline", pid);
	put_strings(path, argv);
}

#define STATE "/run/moved/io.containerd.runtime.v2.task"

/* Storage that was moved, as configuration files say, or only processes. */
static void test_moved(void **state)
{
	(void)state;
	put_file("/etc/containers/storage.conf", "[storage]\n  graphroot = \"/mnt/pods\"\n");
	put_file("/mnt/pods/zfs-containers/containers.json",
		 "[{\"id\":\"" A "\",\"names\":[\"configured\"]}]");
	check("/machine.slice/libpod-" A ".scope", "configured", "", "");
	put_file("/etc/containerd/config.toml", "version = 2\nstate = \"/mnt/state\"\n");
	put_file("/mnt/state/io.containerd.runtime.v2.task/k8s.io/" A "/config.json",
		 "{\"annotations\":{\"io.kubernetes.cri.container-name\":\"web\"}}");
	reopen();
	check(KUBE "/" A, "web", "", "");
	/* podman --root: conmon's bundle; and a name that was changed since it was started */
	put_process(7, "conmon\n", "0\t0\t0\t0", "7", "/machine.slice/libpod-conmon-" B ".scope",
		    "/usr/bin/conmon\n-c\n" B "\n-b\n/mnt/alt/overlay-containers/" B
		    "/userdata\n-n\nweb\n");
	put_file("/mnt/alt/overlay-containers/containers.json",
		 "[{\"id\":\"" B "\",\"names\":[\"renamed\"]}]");
	reopen();
	check("/libpod_parent/libpod-" B, "renamed", "", "");
	/* dockerd with userns-remap, containerd */
	put_process(8, "dockerd\n", "0\t0\t0\t0", "8", "/system.slice/docker.service",
		    "dockerd\n-D\n--data-root=/mnt/d\n");
	put_file("/mnt/d/100000.100000/containers/" C "/config.v2.json", "{\"Name\":\"/far\"}");
	put_process(9, "containerd\n", "0\t0\t0\t0", "9", "/", "containerd\n-c\n/mnt/c.toml\n");
	put_file("/mnt/c.toml", "state=\"/run/moved\"");
	put_file(STATE "/default/web/config.json",
		 "{\"linux\":{\"cgroupsPath\":\"/default/web\"}}");
	put_process(10, "dockerd\n", "0\t0\t0\t0", "10", "/",
		    "dockerd\n--config-file\n/mnt/d.json");
	put_file("/mnt/d.json", "{\"data-root\":\"/mnt/d2\"}");
	put_file("/mnt/d2/containers/" D "/config.v2.json", "{\"Name\":\"/farther\"}");
	reopen();
	check("/docker/" C, "far", "", "");
	check("/docker/" D, "farther", "", "");
	check("/default/web", "web", "", "");
}

/* Processes that only look like those of root's runtimes. */
static void test_moved_by_others(void **state)
{
	static const struct {
		const char *uids, *pids, *cgroup;
	} rows[] = {
		{ "0\t1000\t0\t0", "7", "/" },		{ "1000\t0\t0\t0", "7", "/" },
		{ "1000\t1000\t1000\t1000", "7", "/" }, { "0\t0\t0\t0", "7\t1", "/" },
		{ "0\t0\t0\t0", "7", "/docker/" C },	{ "0\t0\t0\t0", "7", "/lxc.payload.x" },
	};

	(void)state;
	put_file("/mnt/alt/overlay-containers/containers.json",
		 "[{\"id\":\"" B "\",\"names\":[\"fake\"]}]");
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		put_process(7, "conmon\n", rows[i].uids, rows[i].pids, rows[i].cgroup,
			    "conmon\n-b\n/mnt/alt/overlay-containers/" B "/userdata\n");
		put_process(8, "containerd\n", rows[i].uids, rows[i].pids, rows[i].cgroup,
			    "containerd\n--state\n/run/moved\n");
		put_file(STATE "/default/web/config.json",
			 "{\"linux\":{\"cgroupsPath\":\"/default/web\"}}");
		reopen();
		check("/libpod_parent/libpod-" B, "", "", "");
		check("/default/web", "", "", "");
	}
}

/* A runtime in the container in which we are, beside one in another. */
static void test_in_our_container(void **state)
{
	const char *ours = "/libpod_parent/libpod-" C;

	(void)state;
	put_file("/mnt/d/containers/" A "/config.v2.json", "{\"Name\":\"/web\"}");
	put_process(8, "dockerd\n", "0\t0\t0\t0", "8", "/libpod_parent/libpod-" C "/x",
		    "dockerd\n--data-root=/mnt/d\n");
	reopen();
	check("/docker/" A, "", "", "");
	assert_false(container_is_ours(root, ours));
	put_file("/proc/self/cgroup", "9:name=systemd:/\n8:pids:/libpod_parent/libpod-" D
				      "\n4:memory:/libpod_parent/libpod-" C "/y\n0::/\n");
	reopen();
	check("/docker/" A, "web", "", "");
	assert_true(container_is_ours(root, ours));
	assert_true(container_is_ours(root, "/libpod_parent/libpod-" D));
	assert_false(container_is_ours(root, "/libpod_parent/libpod-" B));
	assert_false(container_is_ours(root, "/libpod_parent"));
	/* in a container that is in ours */
	assert_false(container_is_ours(root, "/libpod_parent/libpod-" C "/docker/" A));
}

/* "ctr run IMAGE web"; a cgroup that happens to have such a path is none. */
static void test_plain_containerd(void **state)
{
	const char *file = "/run/containerd/io.containerd.runtime.v2.task/default/web/config.json";

	(void)state;
	put_file(file, "{\"linux\":{\"cgroupsPath\":\"/default/other\"}}");
	check("/default/web", "", "", "");
	assert_string_equal(label("/default/web", NULL), "");
	assert_string_equal(label("/default/none", NULL), "");
	put_file(file, "{\"linux\":{\"cgroupsPath\":\"/default/web\"}}");
	reopen();
	check("/default/web/below", "web", "", "");
	check("/docker/" A "/default/web", "", "", "");
	/* a name in the path */
	check("/lxc.payload.box/init.scope", "box", "", "");
	check("/machine.slice/machine-my\\x2dbox.scope/payload", "my-box", "", "");
	assert_string_equal(label("/lxc.payload.box/docker/" A, NULL), "0123456789ab");
}

/* A pod's id is in the path or, without an infra container, in the container's file. */
static void test_podman_pods(void **state)
{
	const char *db = "/var/lib/containers/storage/libpod/bolt_state.db";

	(void)state;
	put_file("/var/lib/containers/storage/overlay-containers/containers.json",
		 "[{\"id\":\"" A "\",\"names\":[\"web\"]},{\"id\":\"" C "\",\"names\":[\"db\"]}]");
	put_file("/var/lib/containers/storage/overlay-containers/" C "/userdata/config.json",
		 "{\"annotations\":{\"io.container.manager\":\"libpod\","
		 "\"io.kubernetes.cri-o.SandboxID\":\"" B "\"}}");
	assert_string_equal(pod_label("/libpod_parent/" B "/libpod-" A, NULL), "fedcba987654");
	put_file(db, "\1\2{\"id\":\"" B "\"}{\"id\":\"" B "\",\"name\":\"sh\1p\"}{\"id\":\"" B
		     "\",\"name\":\"shop\",\"namespace\"}\3{\"id\":\"" A "\",\"name\":\"cut");
	reopen();
	check("/libpod_parent/" B "/libpod-" A, "web", "shop", "");
	check("/machine.slice/machine-libpod_pod_" B ".slice/libpod-" A ".scope/container", "web",
	      "shop", "");
	check("/machine.slice/libpod-" C ".scope", "db", "shop", "");
	check("/machine.slice/machine-libpod_pod_" B ".slice", "", "shop", "");
	assert_string_equal(pod_label("/libpod_parent/" B "/libpod-" A, NULL), "shop");
	/* another's */
	check("/docker/" C "/libpod_parent/" B "/libpod-" A, "", "", "");
}

/* A container and a user's home are looked at again after the name is known. */
static void test_renamed(void **state)
{
	const char *path = "/var/lib/docker/containers/" A "/config.v2.json";

	(void)state;
	put_file(path, "{\"Name\":\"/one\"}");
	check("/docker/" A, "one", "", "");
	put_file(path, "{\"Name\":\"/two\"}");
	check("/docker/" A, "one", "", "");
	for (int i = 0; i < 120 && strcmp(label("/docker/" A, NULL), "two"); i++)
		wait_ms(100);
	check("/docker/" A, "two", "", "");
}

/* What is there, but not for us. */
static void test_unreadable(void **state)
{
	char path[256], full[512];
	bool found, denied;

	(void)state;
	if (geteuid())
		skip(); /* root alone can lose the right to read */
	assert_false(container_names_unreadable(root, &found, path, sizeof(path)));
	assert_false(found);
	put_dir("/run/containerd/io.containerd.runtime.v2.task/");
	put_dir("/var/lib/docker/containers/");
	assert_false(container_names_unreadable(root, &found, path, sizeof(path)));
	assert_true(found);
	snprintf(full, sizeof(full), "%s/var/lib/docker", root);
	assert_int_equal(chmod(full, 0700), 0);
	assert_int_equal(chmod(root, 0755), 0);
	assert_int_equal(seteuid(65534), 0);
	denied = container_names_unreadable(root, &found, path, sizeof(path));
	assert_int_equal(seteuid(0), 0);
	assert_true(denied);
	assert_string_equal(path, "/var/lib/docker/containers");
}

/* Of a user's containers, and of no others. */
static void test_rootless(void **state)
{
	(void)state;
	put_file("/etc/passwd", "root:x:0:0::/root:/bin/sh\nbad line\n"
				"u:x:1000:1000::/home/u:/bin/sh\nv:x:1001:1001::/home/v:/bin/sh\n");
	put_file("/home/u/.local/share/containers/storage/overlay-containers/containers.json",
		 "[{\"id\":\"" A "\",\"names\":[\"mine\"]},{\"id\":\"" B
		 "\",\"names\":[\"fake\"]}]");
	put_file("/home/u/.local/share/docker/containers/" C "/config.v2.json",
		 "{\"Name\":\"/rootless\"}");
	check(USER B ".scope", "fake", "", "");
	check("/machine.slice/libpod-" B ".scope", "", "", "");
	check("/user.slice/user-1001.slice/libpod-" B ".scope", "", "", "");
	check("/user.slice/user-77.slice/libpod-" B ".scope", "", "", "");
	check(USER A ".scope/container", "mine", "", "");
	check("/user.slice/user-1000.slice/user@1000.service/docker-" C ".scope", "rootless", "",
	      "");
}

/* A directory that @uid owns. */
static void own(const char *below, unsigned int uid)
{
	char path[512];

	snprintf(path, sizeof(path), "%s%s", root, below);
	assert_int_equal(chown(path, uid, -1), 0);
}

/* Users moved their storage, or /etc/passwd does not know them: files and processes of theirs do. */
static void test_rootless_moved(void **state)
{
	(void)state;
	if (geteuid())
		skip();
	put_file("/etc/passwd", "u:x:1000:1000::/home/u:/bin/sh\n");
	put_file("/home/u/.config/containers/storage.conf", "graphroot = \"/mnt/u\"\n");
	put_file("/mnt/u/overlay-containers/containers.json",
		 "[{\"id\":\"" A "\",\"names\":[\"configured\"]}]");
	check(USER A ".scope", "", "", ""); /* somebody else's directory */
	own("/mnt/u", 1000);
	reopen();
	check(USER A ".scope", "configured", "", "");
	put_process(7, "conmon\n", "77\t77\t77\t77", "7", "/user.slice/user-77.slice/s.scope",
		    "conmon\n-b\n/mnt/alt/overlay-containers/" B "/userdata\n");
	put_file("/mnt/alt/overlay-containers/containers.json",
		 "[{\"id\":\"" B "\",\"names\":[\"alt\"]}]");
	own("/mnt/alt", 77);
	put_process(8, "dockerd\n", "78\t78\t78\t78", "8", "/user.slice/user-78.slice/s.scope",
		    "dockerd\n");
	put_strings("/proc/8/environ", "A=HOME=/x\nHOME=/net/w\n");
	put_file("/net/w/.local/share/docker/containers/" C "/config.v2.json",
		 "{\"Name\":\"/far\"}");
	reopen();
	check("/user.slice/user-77.slice/libpod-" B ".scope", "alt", "", "");
	check("/user.slice/user-1000.slice/libpod-" B ".scope", "", "", "");
	reopen();
	check("/user.slice/user-78.slice/docker-" C ".scope", "far", "", "");
	check("/user.slice/user-79.slice/docker-" C ".scope", "", "", "");
	check("/docker/" C, "", "", "");
	check("/user.slice/user-1000.slice/user@1000.service/lxc.payload.box", "box", "", "");
}

/* Cgroups that others named like those of root's runtimes: no name of theirs. */
static void test_spoofed(void **state)
{
	static const struct container_owner service = { 33, 23 }, user = { 1000, 45 },
					    root_owner = { 0, 0 };
	const char *in_service = "/system.slice/u.service/docker-" A ".scope";

	(void)state;
	put_file("/etc/passwd", "u:x:1000:1000::/home/u:/bin/sh\n");
	put_file("/var/lib/docker/containers/" A "/config.v2.json", "{\"Name\":\"/payments\"}");
	put_file("/run/containerd/io.containerd.runtime.v2.task/k8s.io/" C "/config.json",
		 "{\"annotations\":{\"io.kubernetes.cri.container-name\":\"web\","
		 "\"io.kubernetes.cri.sandbox-name\":\"payments-0\","
		 "\"io.kubernetes.cri.sandbox-namespace\":\"prod\"}}");
	put_file("/var/log/containers/payments-0_prod_web-" B ".log", "");
	put_dir("/var/log/pods/prod_payments-0_" POD "/web/");
	/* the real ones */
	check("/system.slice/docker-" A ".scope", "payments", "", "");
	check(KUBE "/" C, "web", "payments-0", "prod");
	check(KUBE "/" B, "web", "payments-0", "prod");
	assert_string_equal(label(in_service, &root_owner), "payments");
	/* a user's, in their slice and in a service */
	check("/user.slice/user-1000.slice/user@1000.service/docker-" A ".scope", "", "", "");
	check("/user.slice/user-1000.slice/docker/" C, "", "", "");
	check("/user.slice/user-1000.slice/kubepods/pod" POD "/" B, "", "", "");
	check("/user.slice/user-1000.slice/kubepods/pod" POD, "", "", "");
	assert_string_equal(label("/user.slice/user-1000.slice/docker/" A, &user), "");
	assert_string_equal(label(in_service, &service), "");
	assert_string_equal(pod_label("/user.slice/user-1000.slice/kubepods/pod" POD, NULL), POD);
	/* inside another container */
	check("/docker/" B "/docker/" A, "", "", "");
	check("/docker/" B "/kubepods/pod" POD "/" C, "", "", "");
	check("/docker/" B "/kubepods/pod" POD, "", "", "");
	assert_string_equal(label("/docker/" B "/docker/" A, NULL), "0123456789ab");
	/* what a user's own runtime says is never a pod */
	put_file("/home/u/.local/share/docker/containers/" A "/config.v2.json",
		 "{\"Name\":\"/mine\",\"Config\":{\"Labels\":{"
		 "\"io.kubernetes.pod.name\":\"payments-0\","
		 "\"io.kubernetes.pod.namespace\":\"prod\"}}}");
	reopen();
	check("/user.slice/user-1000.slice/user@1000.service/docker-" A ".scope", "mine", "", "");
	check("/system.slice/docker-" A ".scope", "payments", "", "");
}

#define OUTER "/docker/" A
#define DIND  "/outer/var/lib/docker/containers/"

/* Root directories of processes, of containers, as /proc has them. */
static void put_process_root(int pid, const char *cgroup, const char *below)
{
	char link[512], path[512];

	put_process(pid, "dockerd\n", "0\t0\t0\t0", "1\t1", cgroup, "dockerd\n");
	snprintf(link, sizeof(link), "%s/proc/%d/root", root, pid);
	snprintf(path, sizeof(path), "%s%s", root, below);
	assert_int_equal(symlink(path, link), 0);
}

static bool can_chroot(void)
{
	pid_t pid = fork();
	int status;

	if (!pid)
		_exit(chroot("/"));
	return waitpid(pid, &status, 0) == pid && !status;
}

/* What is inside a container is called by the files in there, behind the name of that container. */
static void test_nested(void **state)
{
	struct container c;

	(void)state;
	if (!can_chroot())
		skip();
	put_file("/var/lib/docker/containers/" A "/config.v2.json", "{\"Name\":\"/kind\"}");
	put_file("/var/lib/docker/containers/" C "/config.v2.json", "{\"Name\":\"/other\"}");
	put_file(DIND B "/config.v2.json", "{\"Name\":\"/web\"}");
	put_file("/outer/etc/docker/daemon.json", "{\"data-root\":\"/mnt\"}");
	put_file("/outer/mnt/containers/" D "/config.v2.json", "{\"Name\":\"/moved\"}");
	put_file("/outer/run/containerd/io.containerd.runtime.v2.task/k8s.io/" C "/config.json",
		 "{\"annotations\":{\"io.kubernetes.cri.container-name\":\"app\","
		 "\"io.kubernetes.cri.sandbox-name\":\"db-0\","
		 "\"io.kubernetes.cri.sandbox-namespace\":\"shop\"}}");
	put_dir("/outer/var/log/pods/shop_db-0_" POD "/app/");
	put_file("/var/log/containers/ci-1_ci_dind-" B ".log", "");
	put_dir("/var/log/pods/ci_ci-1_" POD "/dind/");
	/* of others, and of what is in another container in there */
	put_process_root(7, "/system.slice/x.service", "/nothing");
	put_process_root(8, OUTER "/docker/" B, "/nothing");
	put_process_root(9, OUTER "/init", "/outer");
	check(OUTER "/docker/" B, "kind/web", "", "");
	check(OUTER "/docker/" B "/x", "kind/web", "", "");
	check(OUTER "/docker/" D, "kind/moved", "", "");
	check(OUTER "/kubelet/kubepods/pod" POD "/" C, "kind/app", "db-0", "kind/shop");
	check(OUTER "/kubelet/kubepods/pod" POD, "", "db-0", "kind/shop");
	assert_string_equal(pod_label(OUTER "/kubelet/kubepods/pod" POD, NULL), "kind/shop/db-0");
	/* nobody is in this one */
	check("/docker/" C "/docker/" B, "", "", "");
	/* nor is a runtime known that is in two */
	check(OUTER "/docker/" B "/docker/" D, "", "", "");
	/* the pod around */
	put_process_root(10, KUBE "/" B, "/outer");
	check(KUBE "/" B "/docker/" D, "dind/moved", "ci-1", "ci");
	assert_true(container_of_path(KUBE "/" B "/docker/" D, NULL, &c));
	assert_string_equal(c.outer.id, B);
}

/* Whatever is there, the names of others are found, and soon. */
static void test_nested_hostile(void **state)
{
	char path[512], link[512];

	(void)state;
	if (!can_chroot())
		skip();
	put_file("/var/lib/docker/containers/" A "/config.v2.json", "{\"Name\":\"/bad\"}");
	put_file("/secret/config.v2.json", "{\"Name\":\"/secret\"}");
	put_process_root(9, OUTER, "/outer");
	put_file(DIND D "/config.v2.json", "{\"Name\":\"/web\"}");
	/* links lead to what is in there */
	put_dir(DIND B "/");
	snprintf(path, sizeof(path), "%s/secret/config.v2.json", root);
	snprintf(link, sizeof(link), "%s" DIND B "/config.v2.json", root);
	assert_int_equal(symlink(path, link), 0);
	put_dir(DIND C "/");
	snprintf(link, sizeof(link), "%s" DIND C "/config.v2.json", root);
	assert_int_equal(symlink("/../../../../../../../../secret/config.v2.json", link), 0);
	/* pipes, and a /proc that leads elsewhere */
	put_dir("/outer/run/containers/storage/overlay-containers/");
	snprintf(path, sizeof(path),
		 "%s/outer/run/containers/storage/overlay-containers/containers.json", root);
	assert_int_equal(mkfifo(path, 0600), 0);
	put_dir("/outer/proc/self/");
	snprintf(link, sizeof(link), "%s/outer/proc/self/fd", root);
	assert_int_equal(symlink("/run/containers/storage", link), 0);
	/* a huge file */
	put_dir("/outer/var/lib/containers/storage/overlay-containers/");
	put_file("/outer/var/lib/containers/storage/overlay-containers/containers.json", "[");
	snprintf(path, sizeof(path),
		 "%s/outer/var/lib/containers/storage/overlay-containers/containers.json", root);
	assert_int_equal(truncate(path, 1LL << 40), 0);
	check(OUTER "/docker/" B, "", "", "");
	check(OUTER "/docker/" C, "", "", "");
	check(OUTER "/docker/" D, "bad/web", "", "");
}

static void test_containerd(void **state)
{
	(void)state;
	put_file("/run/containerd/io.containerd.runtime.v2.task/moby/" A "/config.json",
		 "{\"ociVersion\":\"1.0.2\",\"annotations\":{}}");
	put_file("/run/containerd/io.containerd.runtime.v2.task/k8s.io/" A "/config.json",
		 "{\"annotations\":{\"io.kubernetes.cri.container-name\":\"web\","
		 "\"io.kubernetes.cri.container-type\":\"container\","
		 "\"io.kubernetes.cri.sandbox-name\":\"web-0\","
		 "\"io.kubernetes.cri.sandbox-namespace\":\"default\"}}");
	put_file("/run/containerd/io.containerd.runtime.v2.task/default/" B "/config.json",
		 "{\"annotations\":{\"nerdctl/name\":\"nerd\",\"nerdctl/namespace\":\"default\"}}");
	put_file("/run/k3s/containerd/io.containerd.runtime.v2.task/k8s.io/" C "/config.json",
		 "{\"annotations\":{\"io.kubernetes.cri.container-type\":\"sandbox\","
		 "\"io.kubernetes.cri.sandbox-name\":\"web-0\","
		 "\"io.kubernetes.cri.sandbox-namespace\":\"default\"}}");
	check(KUBE "/" A, "web", "web-0", "default");
	check("/system.slice/nerdctl-" B ".scope", "nerd", "", "");
	check(KUBE "/" C, "POD", "web-0", "default");
}

static void test_crio(void **state)
{
	(void)state;
	put_file("/run/containers/storage/overlay-containers/" A "/userdata/config.json",
		 "{\"annotations\":{\"io.kubernetes.container.name\":\"dns\","
		 "\"io.kubernetes.pod.name\":\"dns-x\",\"io.kubernetes.pod.namespace\":\"kube-"
		 "system\"}}");
	put_file("/var/lib/containers/storage/overlay-containers/containers.json",
		 "[{\"id\":\"" A "\",\"names\":[\"k8s_dns_dns-x_kube-system_" POD "_0\"]}]");
	check("/kubepods.slice/kubepods-pod12345678_9abc_def0_1234_56789abcdef0.slice/crio-" A
	      ".scope/container",
	      "dns", "dns-x", "kube-system");
}

static void test_kubelet_logs(void **state)
{
	(void)state;
	put_file("/var/log/containers/web-0_default_web-ui-" A ".log", "");
	put_file("/var/log/containers/bad_default_-" B ".log", "");
	put_file("/var/log/containers/x_y_z-" B ".txt", "");
	put_dir("/var/log/pods/kube-system_etcd-n1_" HASH "/etcd/");
	put_dir("/var/log/pods/default_web-0_" POD "/web-ui/");
	put_dir("/var/log/pods/nonsense/");
	check(KUBE "/" A, "web-ui", "web-0", "default");
	check(KUBE, "", "web-0", "default");
	check(KUBE "/" B, "", "web-0", "default");
	check("/kubepods/burstable/pod" HASH, "", "etcd-n1", "kube-system");
	assert_string_equal(label(KUBE "/" A "/x", NULL), "web-ui");
	assert_string_equal(label(KUBE "/" B, NULL), "fedcba987654");
	assert_string_equal(label(KUBE, NULL), "");
	assert_string_equal(label("/system.slice", NULL), "");
	assert_string_equal(pod_label(KUBE "/" A, NULL), "default/web-0");
	assert_string_equal(pod_label("/kubepods/pod" HASH "/" C, NULL), "kube-system/etcd-n1");
	assert_string_equal(pod_label("/kubepods/pod00000000-9abc-def0-1234-56789abcdef0", NULL),
			    "00000000-9abc-def0-1234-56789abcdef0");
	assert_string_equal(pod_label("/docker/" A, NULL), "default/web-0");
	assert_string_equal(pod_label("/a", NULL), "");
}

/* No file of these is a name, and none stops us. */
static void test_hostile(void **state)
{
	static const char *const texts[] = {
		"",
		"{",
		"[]",
		"null",
		"3",
		"\"x\"",
		"{\"Name\":3}",
		"{\"Name\":\"/\"}",
		"{\"Name\":\"/a b\"}",
		"{\"Name\":\"/\\u001b[31m\"}",
		"{\"Name\":\"/a\\u0000b\"}",
		"{\"Name\":\"/../../x\"}",
		"{\"Config\":[],\"Name\":[\"/x\"]}",
		"{\"Config\":{\"Labels\":3}}",
		"{\"Name\":\"/\xff\xfe\"}",
		"{\"Name\":\"/\xc3\xa4\"}",
	};
	const char *path = "/var/lib/docker/containers/" A "/config.v2.json";
	const char *list = "/var/lib/containers/storage/overlay-containers/containers.json";
	static char big[(1 << 20) + 64];
	char full[512], deep[6000];

	(void)state;
	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
		put_file(path, texts[i]);
		put_file(list, texts[i]);
		reopen();
		check("/docker/" A, "", "", "");
	}
	memset(deep, '[', sizeof(deep) - 1);
	deep[sizeof(deep) - 1] = 0;
	put_file(path, deep);
	put_file(list, deep);
	reopen();
	check("/docker/" A, "", "", "");
	/* a name of 254, and one of 253 */
	memset(big, 'x', 300);
	memcpy(big, "{\"Name\":\"", 9);
	strcpy(big + 9 + 254, "\"}");
	put_file(path, big);
	reopen();
	check("/docker/" A, "", "", "");
	strcpy(big + 9 + 253, "\"}");
	put_file(path, big);
	reopen();
	big[9 + 253] = 0;
	check("/docker/" A, big + 9, "", "");
	/* as large as is read, and larger */
	for (int over = 0; over < 2; over++) {
		memset(big, ' ', sizeof(big));
		strcpy(big + (1 << 20) - 14 + over, "{\"Name\":\"/x\"}");
		assert_int_equal(strlen(big), (1 << 20) - 1 + over * 1);
		if (over)
			strcat(big, " ");
		put_file(path, big);
		reopen();
		check("/docker/" A, over ? "" : "x", "", "");
	}
	/* neither waited for nor opened */
	snprintf(full, sizeof(full), "%s%s", root, path);
	unlink(full);
	assert_int_equal(mkfifo(full, 0600), 0);
	reopen();
	check("/docker/" A, "", "", "");
	unlink(full);
	assert_int_equal(symlink("config.v2.json", full), 0);
	reopen();
	check("/docker/" A, "", "", "");
	unlink(full);
	assert_int_equal(symlink("/dev/zero", full), 0);
	reopen();
	check("/docker/" A, "", "", "");
	unlink(full);
	assert_int_equal(mkdir(full, 0755), 0);
	reopen();
	check("/docker/" A, "", "", "");
}

/* Files may come after the cgroup; and a name outlives them. */
static void test_later(void **state)
{
	const char *path = "/var/lib/docker/containers/" A "/config.v2.json";
	const char *list = "/var/lib/containers/storage/overlay-containers/containers.json";
	char full[512];

	(void)state;
	check("/docker/" A, "", "", "");
	check("/machine.slice/libpod-" B ".scope", "", "", "");
	put_file(path, "{\"Name\":\"/late\"}");
	put_file(list, "[{\"id\":\"" B "\",\"names\":[\"one\"]}]");
	check("/docker/" A, "", "", ""); /* too soon to look again */
	wait_ms(120);
	check("/docker/" A, "late", "", "");
	check("/machine.slice/libpod-" B ".scope", "one", "", "");
	/* another in the list, within the same tick of the file system's clock perhaps */
	check("/machine.slice/libpod-" C ".scope", "", "", "");
	put_file(list, "[{\"id\":\"" C "\",\"names\":[\"two\"]}]");
	wait_ms(220);
	check("/machine.slice/libpod-" C ".scope", "two", "", "");
	snprintf(full, sizeof(full), "%s%s", root, path);
	unlink(full);
	snprintf(full, sizeof(full), "%s%s", root, list);
	unlink(full);
	wait_ms(120);
	check("/docker/" A, "late", "", "");
	check("/machine.slice/libpod-" B ".scope", "one", "", "");
}

/* More than are remembered. */
static void test_many(void **state)
{
	char path[128], id[65];
	struct container c;

	(void)state;
	put_file("/var/lib/docker/containers/" A "/config.v2.json", "{\"Name\":\"/web\"}");
	check("/docker/" A, "web", "", "");
	for (int i = 0; i < 70000; i++) {
		snprintf(id, sizeof(id), "%064x", i);
		snprintf(path, sizeof(path), "/docker/%s", id);
		assert_true(container_of_path(path, NULL, &c));
		container_names_find(names, &c);
	}
	check("/docker/" A, "web", "", "");
}

static double us(struct timespec from)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (now.tv_sec - from.tv_sec) * 1e6 + (now.tv_nsec - from.tv_nsec) / 1e3;
}

/* What a look-up takes, for those who read the output. */
static void test_cost(void **state)
{
	enum { IDS = 1000 };
	static const char *const what[] = { "docker", "containerd", "no file", "known" };
	char path[256], id[65], text[512];

	(void)state;
	for (int i = 0; i < IDS; i++) {
		snprintf(path, sizeof(path), "/var/lib/docker/containers/%064x/config.v2.json", i);
		snprintf(text, sizeof(text), "{\"Name\":\"/c%d\",\"Config\":{\"Labels\":{}}}", i);
		put_file(path, text);
		snprintf(path, sizeof(path),
			 "/run/containerd/io.containerd.runtime.v2.task/k8s.io/%064x/config.json",
			 IDS + i);
		snprintf(text, sizeof(text),
			 "{\"annotations\":{\"io.kubernetes.cri.container-name\":\"c%d\"}}", i);
		put_file(path, text);
	}
	for (int kind = 0; kind < 4; kind++) {
		struct timespec start;

		clock_gettime(CLOCK_MONOTONIC, &start);
		for (int i = 0; i < IDS; i++) {
			snprintf(id, sizeof(id), "%064x", kind % 3 * IDS + i);
			snprintf(path, sizeof(path), "/docker/%s", id);
			label(path, NULL);
		}
		print_message("%s: %.1f us a name\n", what[kind], us(start) / IDS);
	}
	check("/docker/00000000000000000000000000000000000000000000000000000000000003e7", "c999",
	      "", "");
}

static void test_patterns(void **state)
{
	static const struct {
		const char *pattern;
		bool web, pod, bare; /* NS/POD/web, the pod's own cgroup, a docker container web */
	} rows[] = {
		{ "web", true, false, true },
		{ "we", false, false, false },
		{ "w*", true, false, true },
		{ "*", true, false, true },
		{ "ns/pod-0", true, true, false },
		{ "ns/pod-1", false, false, false },
		{ "ns/pod-0/web", true, false, false },
		{ "ns/pod-0/x", false, false, false },
		{ "*/pod-?/w[e]b", true, false, false },
		{ "ns/*", true, true, false },
		{ "ns/pod-0/*", true, false, false },
		{ "ns/pod-0/web/x", false, false, false },
		{ POD, true, true, false },
		{ "", false, false, false },
		{ "/", false, false, false },
		{ "//", false, false, false },
		{ "ns/pod-0/", false, false, false },
		{ "w\\eb", false, false, false },
		{ "*/web", false, false, false },
	};
	const struct container_name in_pod = { "web", "pod-0", "ns" }, bare = { "web", "", "" },
				    of_pod = { "", "pod-0", "ns" }, inner = { "kind/web", "", "" },
				    inner_pod = { "kind/web", "pod-0", "kind/ns" };
	struct container c[3];

	(void)state;
	assert_true(container_of_path(KUBE "/" A, NULL, &c[0]));
	assert_true(container_of_path(KUBE, NULL, &c[1]));
	assert_true(container_of_path("/docker/" B, NULL, &c[2]));
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		const char *p = rows[i].pattern;

		if (container_matches(p, &c[0], &in_pod) != rows[i].web ||
		    container_matches(p, &c[1], &of_pod) != rows[i].pod ||
		    container_matches(p, &c[2], &bare) != rows[i].bare)
			fail_msg("'%s'", p);
	}
	assert_true(
		container_matches("shop", &c[2], &(struct container_name){ "web", "shop", "" }));
	assert_false(container_matches("pod-0", &c[0], &in_pod));
	/* inside a container */
	assert_true(container_matches("kind/web", &c[2], &inner));
	assert_true(container_matches("k*/*", &c[2], &inner));
	assert_false(container_matches("web", &c[2], &inner));
	assert_false(container_matches("*", &c[2], &inner));
	assert_true(container_matches("kind/ns/pod-0", &c[0], &inner_pod));
	assert_true(container_matches("kind/ns/pod-0/web", &c[0], &inner_pod));
	assert_false(container_matches("ns/pod-0", &c[0], &inner_pod));
	assert_true(container_is_id_prefix("0123"));
	assert_true(container_is_id_prefix(A));
	assert_false(container_is_id_prefix(A "0"));
	assert_false(container_is_id_prefix("012"));
	assert_false(container_is_id_prefix("012G"));
	assert_false(container_is_id_prefix(""));
}

static void test_command_cgroups(void **state)
{
	static const char *const cut[][2] = {
		{ "/ibscope-12-1", "/" },
		{ "/a.slice/ibscope-12-1", "/a.slice" },
		{ "/ibscope-12-1/below", "/ibscope-12-1/below" },
		{ "/ibscope-12", "/ibscope-12" },
		{ "/ibscope--1", "/ibscope--1" },
		{ "/ibscope-exporter.service", "/ibscope-exporter.service" },
		{ "/ibscope-12-1x", "/ibscope-12-1x" },
		{ "/", "/" },
		{ "", "" },
		{ "#123", "#123" },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cut) / sizeof(*cut); i++) {
		char path[64];

		strcpy(path, cut[i][0]);
		container_cut_command(path);
		assert_string_equal(path, cut[i][1]);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_command_cgroups),
		cmocka_unit_test_setup_teardown(test_docker, up, down),
		cmocka_unit_test_setup_teardown(test_podman, up, down),
		cmocka_unit_test_setup_teardown(test_moved, up, down),
		cmocka_unit_test_setup_teardown(test_moved_by_others, up, down),
		cmocka_unit_test_setup_teardown(test_in_our_container, up, down),
		cmocka_unit_test_setup_teardown(test_plain_containerd, up, down),
		cmocka_unit_test_setup_teardown(test_podman_pods, up, down),
		cmocka_unit_test_setup_teardown(test_renamed, up, down),
		cmocka_unit_test_setup_teardown(test_unreadable, up, down),
		cmocka_unit_test_setup_teardown(test_rootless, up, down),
		cmocka_unit_test_setup_teardown(test_rootless_moved, up, down),
		cmocka_unit_test_setup_teardown(test_spoofed, up, down),
		cmocka_unit_test_setup_teardown(test_nested, up, down),
		cmocka_unit_test_setup_teardown(test_nested_hostile, up, down),
		cmocka_unit_test_setup_teardown(test_containerd, up, down),
		cmocka_unit_test_setup_teardown(test_crio, up, down),
		cmocka_unit_test_setup_teardown(test_kubelet_logs, up, down),
		cmocka_unit_test_setup_teardown(test_hostile, up, down),
		cmocka_unit_test_setup_teardown(test_later, up, down),
		cmocka_unit_test_setup_teardown(test_many, up, down),
		cmocka_unit_test_setup_teardown(test_cost, up, down),
		cmocka_unit_test(test_patterns),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
