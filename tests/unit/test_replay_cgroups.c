// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* The cgroups of a recording: by path and id, with the names of their containers. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/std.h"
#include "replay/replay_cgroups.h"

#define BOX	"0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
#define DOCKER	"/system.slice/docker-" BOX ".scope"
#define UNFOUND 12345 /* in place of what a call must replace */

static struct replay_cgroups cgroups;
static struct cgroup_source source;

static int set_up(void **state)
{
	(void)state;
	replay_cgroups_source(&cgroups, &source);
	return 0;
}

static int tear_down(void **state)
{
	static const struct replay_cgroups empty;

	(void)state;
	replay_cgroups_free(&cgroups);
	return memcmp(&cgroups, &empty, sizeof(empty));
}

/* A cgroup is added once, whatever it is added for; its last path is the one that counts. */
static void test_paths(void **state)
{
	(void)state;
	assert_null(replay_cgroups_path(&cgroups, 7));
	replay_cgroups_add(&cgroups, 7, NULL);
	assert_null(replay_cgroups_path(&cgroups, 7));
	replay_cgroups_add(&cgroups, 7, "/a");
	assert_string_equal(replay_cgroups_path(&cgroups, 7), "/a");
	replay_cgroups_add(&cgroups, 7, NULL);
	replay_cgroups_add(&cgroups, 8, "/b");
	assert_string_equal(replay_cgroups_path(&cgroups, 7), "/a");
	replay_cgroups_add(&cgroups, 7, "/c");
	replay_cgroups_add(&cgroups, 7, "/c");
	assert_string_equal(replay_cgroups_path(&cgroups, 7), "/c");
	assert_string_equal(replay_cgroups_path(&cgroups, 8), "/b");
	assert_null(replay_cgroups_path(&cgroups, 9));
}

struct listed {
	__u64 ids[4];
	const char *paths[4];
	size_t n, last; /* `last`: stop there */
};

static int list(uint64_t id, const char *path, void *arg)
{
	struct listed *l = arg;

	l->ids[l->n] = id;
	l->paths[l->n++] = path;
	return l->n == l->last ? -EINTR : 0;
}

/* All cgroups in the order in which they were added, until the callback has had enough. */
static void test_each(void **state)
{
	struct listed all = {}, two = { .last = 2 };

	(void)state;
	assert_int_equal(source.each(source.arg, list, &all), 0);
	assert_int_equal(all.n, 0);
	replay_cgroups_add(&cgroups, 9, "/a");
	replay_cgroups_add(&cgroups, 7, NULL);
	replay_cgroups_add(&cgroups, 9, "/a");
	replay_cgroups_add(&cgroups, 8, "/b");
	assert_int_equal(source.each(source.arg, list, &all), 0);
	assert_int_equal(all.n, 3);
	assert_int_equal(all.ids[0], 9);
	assert_int_equal(all.ids[1], 7);
	assert_int_equal(all.ids[2], 8);
	assert_string_equal(all.paths[0], "/a");
	assert_null(all.paths[1]);
	assert_string_equal(all.paths[2], "/b");
	assert_int_equal(source.each(source.arg, list, &two), -EINTR);
	assert_int_equal(two.n, 2);
}

struct found {
	int ret;
	__u64 id;
	char *path; /* to be freed */
	struct err err;
};

static struct found find(const char *text)
{
	struct found f = { .id = UNFOUND, .path = (char *)text };

	f.ret = source.find(source.arg, text, &f.id, &f.path, &f.err);
	return f;
}

/* By path: the cgroup or one in it must be known. An id is not looked for. */
static void finds_path(const char *text, const char *path)
{
	const struct found f = find(text);

	if (f.ret)
		fail_msg("%s: %s", text, f.err.text);
	assert_int_equal(f.id, 0);
	assert_string_equal(f.path, path);
	free(f.path);
}

static void finds_nothing(const char *text, int ret, const char *message)
{
	const struct found f = find(text);

	assert_int_equal(f.ret, ret);
	assert_int_equal(f.id, 0);
	assert_null(f.path);
	if (!strstr(f.err.text, message))
		fail_msg("'%s' lacks '%s'", f.err.text, message);
}

static void test_find(void **state)
{
	struct found f;

	(void)state;
	/* in a recording without any path there is not even a root */
	replay_cgroups_add(&cgroups, 6, NULL);
	finds_nothing("/", -ENOENT, "no cgroup '/' in the recording, which has the paths of 0");
	replay_cgroups_add(&cgroups, 7, "/a/b/c");
	replay_cgroups_add(&cgroups, 8, "/ab");
	finds_path("/", "/");
	finds_path("/a/b/c", "/a/b/c");
	finds_path("/a/b", "/a/b");
	finds_path("/a", "/a");
	finds_path("a/", "/a");
	finds_path("/ab", "/ab");
	finds_path("/sys/fs/cgroup/a/b", "/a/b");
	finds_path("/sys/fs/cgroup/unified/a/b", "/a/b");
	finds_nothing("/b", -ENOENT, "no cgroup '/b' in the recording, which has the paths of 2");
	finds_nothing("/a/b/c/d", -ENOENT, "paths of 2");
	finds_path("", "/");
	finds_nothing("7a", -ENOENT, "no cgroup '/7a'");
	finds_nothing("/a/../b", -EINVAL, "'..' is not allowed");
	/* by id, of which the path may be unknown */
	f = find("7");
	assert_int_equal(f.ret, 0);
	assert_int_equal(f.id, 7);
	assert_string_equal(f.path, "/a/b/c");
	free(f.path);
	f = find("6");
	assert_int_equal(f.ret, 0);
	assert_int_equal(f.id, 6);
	assert_null(f.path);
	finds_nothing("9", -ENOENT, "no cgroup in the recording has the id 9");
	finds_nothing("0", -ERANGE, "cgroup id");
	finds_nothing("18446744073709551616", -ERANGE, "cgroup id");
	finds_nothing("18446744073709551615", -ENOENT, "has the id 18446744073709551615");
}

/* More than there is room for at first, up to the last one that there is room for; sanitizers look at the rest. */
static void test_many(void **state)
{
	char path[16];

	(void)state;
	for (int n = 1; n <= 64; n++) {
		snprintf(path, sizeof(path), "/%d", n);
		replay_cgroups_add(&cgroups, 1000 + n, path);
		finds_nothing("/0", -ENOENT, "no cgroup '/0'");
		finds_path(path, path);
		assert_string_equal(replay_cgroups_path(&cgroups, 1000 + n), path);
		assert_null(replay_cgroups_path(&cgroups, 1000));
	}
	assert_string_equal(replay_cgroups_path(&cgroups, 1001), "/1");
}

static const char *label(const char *path, bool pod)
{
	static char buf[CONTAINER_LABEL];

	return replay_cgroups_label(&cgroups, path, pod, buf);
}

/* A container has a name, in all cgroups in it, as soon as it was recorded for one of them; the last one counts. */
static void test_labels(void **state)
{
	(void)state;
	assert_string_equal(label("/", false), "");
	assert_string_equal(label("/system.slice", true), "");
	assert_string_equal(label(DOCKER, false), "0123456789ab");
	assert_string_equal(label(DOCKER "/init", false), "0123456789ab");
	assert_string_equal(label(DOCKER, true), "");
	replay_cgroups_name(&cgroups, DOCKER "/init", "shop", NULL, NULL);
	assert_string_equal(label(DOCKER, false), "shop");
	assert_string_equal(label(DOCKER "/other", false), "shop");
	assert_string_equal(label(DOCKER, true), "");
	replay_cgroups_name(&cgroups, DOCKER, "shop-1", "web", "prod");
	assert_string_equal(label(DOCKER "/init", false), "shop-1");
	assert_string_equal(label(DOCKER "/init", true), "prod/web");
	replay_cgroups_name(&cgroups, DOCKER, NULL, "pod", "");
	assert_string_equal(label(DOCKER, false), "0123456789ab");
	assert_string_equal(label(DOCKER, true), "pod");
	/* what is in no container has no name */
	replay_cgroups_name(&cgroups, "/system.slice", "none", NULL, NULL);
	assert_string_equal(label("/system.slice", false), "");
}

static void path_of_container(unsigned int n, char path[128])
{
	snprintf(path, 128, "/docker/%08x%.56s", n, BOX);
}

static void test_many_labels(void **state)
{
	char path[128], name[16];

	(void)state;
	for (unsigned int n = 0; n < 33; n++) {
		path_of_container(n, path);
		snprintf(name, sizeof(name), "box-%u", n);
		replay_cgroups_name(&cgroups, path, name, NULL, NULL);
	}
	for (unsigned int n = 0; n < 34; n++) {
		path_of_container(n, path);
		snprintf(name, sizeof(name), n < 33 ? "box-%u" : "%08x0123", n);
		assert_string_equal(label(path, false), name);
	}
}

/* The names as a selection asks for them: of the container at hand, which may be around the path's own. */
static void test_source(void **state)
{
	struct container c = { .path_len = strlen(DOCKER) };
	const struct container_name *name;
	char *path;
	struct err err;

	(void)state;
	assert_true(source.recorded);
	name = source.name(source.names, DOCKER, &c);
	assert_string_equal(name->container, "");
	assert_string_equal(name->pod, "");
	assert_string_equal(name->ns, "");
	replay_cgroups_name(&cgroups, DOCKER, "shop", "web", "prod");
	name = source.name(source.names, DOCKER "/docker/f" BOX, &c);
	assert_string_equal(name->container, "shop");
	assert_string_equal(name->pod, "web");
	assert_string_equal(name->ns, "prod");
	c.path_len = strlen("/system.slice");
	name = source.name(source.names, DOCKER, &c);
	assert_string_equal(name->container, "");
	/* patterns have the usual mount point in front, too */
	assert_int_equal(source.path_of(source.arg, "/sys/fs/cgroup/a/*", &path, &err), 0);
	assert_string_equal(path, "/a/*");
	free(path);
	assert_int_equal(source.path_of(source.arg, "/b//c", &path, &err), 0);
	assert_string_equal(path, "/b/c");
	free(path);
	assert_int_equal(source.path_of(source.arg, "..", &path, &err), -EINVAL);
}

/* Freed, it is empty, and may be used again. */
static void test_reuse(void **state)
{
	(void)state;
	for (int i = 0; i < 2; i++) {
		replay_cgroups_add(&cgroups, 7, "/a");
		replay_cgroups_name(&cgroups, DOCKER, "shop", NULL, NULL);
		replay_cgroups_free(&cgroups);
		assert_null(replay_cgroups_path(&cgroups, 7));
		assert_string_equal(label(DOCKER, false), "0123456789ab");
	}
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_paths),  TEST(test_each),	   TEST(test_find),   TEST(test_many),
		TEST(test_labels), TEST(test_many_labels), TEST(test_source), TEST(test_reuse),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
