// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* The cgroup tree on plain directories: names, watches, rescans. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "cgroup/container.h"
#include "cgroup_select/cgroup_source.h"
#include "cgroup_tree.h"

static void test_scan(void **state)
{
	struct cgroup_tree *t = usual();
	struct cgroup_stats s;

	(void)state;
	assert_true(cgroup_tree_per_cgroup(t));
	assert_int_equal(cgroup_tree_fs(t)->mode, CGROUP_MODE_V2);
	check_path(t, ino("/"), "/");
	check_path(t, ino("/a/b/c"), "/a/b/c");
	check_path(t, ino("/a/x.service"), "/a/x.service");
	check_path(t, 0, NULL);
	check_path(t, UINT64_MAX, NULL);
	assert_true(cgroup_tree_alive(t, ino("/a/b")));
	assert_false(cgroup_tree_alive(t, UINT64_MAX));
	cgroup_tree_stats(t, &s);
	assert_int_equal(s.alive, 8);
	assert_int_equal(s.watched, 8);
	assert_int_equal(s.dead, 0);
	cgroup_tree_close(t);
	cgroup_tree_close(NULL);
}

static void test_life(void **state)
{
	struct cgroup_tree *t = usual();
	struct cgroup_stats s;
	uint64_t first, second, inner;

	(void)state;
	make("/n");
	make("/n/m"); /* nobody watched it then */
	first = ino("/n");
	inner = ino("/n/m");
	cgroup_tree_update(t);
	cgroup_tree_stats(t, &s);
	assert_int_equal(s.alive, 10);
	assert_int_equal(s.watched, 10);
	make("/n2"); /* before the others go: plain file systems use a number again */
	second = ino("/n2");
	rmdir(at("/n/m"));
	rmdir(at("/n"));
	cgroup_tree_update(t);
	check_path(t, first, "/n");
	check_path(t, inner, "/n/m");
	assert_false(cgroup_tree_alive(t, first));
	assert_true(cgroup_tree_alive(t, second));
	assert_int_equal(rename(at("/n2"), at("/n")), 0);
	cgroup_tree_update(t);
	check_path(t, second, "/n"); /* both have had the path */
	check_path(t, first, "/n");
	cgroup_tree_stats(t, &s);
	assert_int_equal(s.alive, 9);
	assert_int_equal(s.watched, 9);
	assert_int_equal(s.dead, 2);
	assert_int_equal(cgroup_tree_forget_dead(t, UINT64_MAX), 0);
	assert_int_equal(cgroup_tree_forget_dead(t, 3600000000000), 0);
	check_path(t, first, "/n");
	assert_int_equal(cgroup_tree_forget_dead(t, 0), 2);
	check_path(t, first, NULL);
	cgroup_tree_stats(t, &s);
	assert_int_equal(s.dead, 0);
	cgroup_tree_close(t);
}

static void test_died(void **state)
{
	const uint64_t s = 1000000000;
	struct cgroup_tree *t = usual();
	uint64_t a = ino("/a/b/c");

	(void)state;
	assert_false(cgroup_tree_died(t, a, 0));
	/* of before the tree: it may have died just then */
	assert_true(cgroup_tree_died(t, 999999999, 0));
	assert_false(cgroup_tree_died(t, 999999999, 3600 * s));
	usleep(50000); /* the grace period below */
	assert_true(cgroup_tree_died(t, 999999999, s / 20));
	assert_int_equal(rmdir(at("/a/b/c")), 0);
	cgroup_tree_update(t);
	assert_true(cgroup_tree_died(t, a, 0));
	assert_false(cgroup_tree_died(t, a, 3600 * s));
	cgroup_tree_close(t);
}

/* The watch says nothing, and alive looks for itself. */
static void test_not_updated(void **state)
{
	struct cgroup_tree *t = usual();
	uint64_t id = ino("/a/b/c");

	(void)state;
	make("/later");
	rmdir(at("/a/b/c"));
	assert_false(cgroup_tree_alive(t, id));
	check_path(t, id, "/a/b/c");
	check_path(t, ino("/later"), "/later"); /* from the event */
	cgroup_tree_close(t);
}

/* A cgroup that was removed and made again, in a moment that no event tells of yet, is another one. */
static void test_made_again(void **state)
{
	struct cgroup_tree *t = usual();
	uint64_t first = ino("/a/b/c"), second;

	(void)state;
	assert_true(cgroup_tree_alive(t, first));
	make("/again"); /* before the other goes: plain file systems use a number again */
	second = ino("/again");
	rmdir(at("/a/b/c"));
	assert_int_equal(rename(at("/again"), at("/a/b/c")), 0);
	assert_false(cgroup_tree_alive(t, first));
	assert_true(cgroup_tree_died(t, first, 0));
	cgroup_tree_update(t);
	assert_true(cgroup_tree_alive(t, second));
	assert_false(cgroup_tree_alive(t, first));
	check_path(t, second, "/a/b/c");
	cgroup_tree_close(t);
}

static void test_moved(void **state)
{
	struct cgroup_tree *t = usual();
	uint64_t c = ino("/a/b/c");

	(void)state;
	assert_int_equal(rename(at("/a/b"), at("/q")), 0);
	cgroup_tree_update(t);
	check_path(t, c, "/q/c");
	assert_true(cgroup_tree_alive(t, c));
	cgroup_tree_close(t);
}

static void test_find(void **state)
{
	static const struct {
		const char *text, *path, *message;
		int err;
	} rows[] = {
		{ "/", "/", NULL, 0 },
		{ "/a/b", "/a/b", NULL, 0 },
		{ "a/b", "/a/b", NULL, 0 },
		{ "//a///b/./", "/a/b", NULL, 0 },
		{ "/sys/fs/cgroup", "/", NULL, 0 },
		{ "/sys/fs/cgroup/a/b/", "/a/b", NULL, 0 },
		{ "/dev-disk\\x2dby.mount", "/dev-disk\\x2dby.mount", NULL, 0 },
		{ "/a/b/d/e", NULL, "nearest that exists is '/a/b'", -ENOENT },
		{ "/zz", NULL, "nearest that exists is '/'", -ENOENT },
		{ "/cgroup.controllers", NULL, "nearest that exists is '/'", -ENOENT },
		{ "/cgroup.controllers/a", NULL, "nearest that exists is '/'", -ENOENT },
		{ "/sys/fs/cgroupx", NULL, "nearest", -ENOENT },
		{ "/a/../b", NULL, "'..'", -EINVAL },
		{ "", NULL, "empty", -EINVAL },
		{ "0", NULL, "cgroup id", -ERANGE },
		{ "99999999999999999999", NULL, "cgroup id", -ERANGE },
		{ "18446744073709551615", NULL, "'/18446744073709551615'", -ENOENT },
	};
	struct cgroup_tree *t = usual();
	char number[32], huge[1024];
	struct err e;
	uint64_t id;
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		e.text[0] = 0;
		id = 0;
		assert_int_equal(cgroup_id_of_path(t, rows[i].text, &id, &e), rows[i].err);
		if (rows[i].path)
			assert_int_equal(id, ino(rows[i].path));
		if (rows[i].message && !strstr(e.text, rows[i].message))
			fail_msg("'%s': %s", rows[i].text, e.text);
	}
	snprintf(number, sizeof(number), "%llu", (unsigned long long)ino("/a"));
	assert_int_equal(cgroup_id_of_path(t, number, &id, &e), 0);
	assert_int_equal(id, ino("/a"));
	assert_int_equal(cgroup_id_of_path(t, at("/a/b"), &id, &e), 0); /* with the prefix */
	assert_int_equal(id, ino("/a/b"));
	memset(huge, 'x', sizeof(huge) - 1);
	huge[sizeof(huge) - 1] = 0;
	assert_int_equal(cgroup_id_of_path(t, huge, &id, &e), -ENAMETOOLONG);
	cgroup_tree_close(t);
}

/* What is said of a cgroup that is not found, with the nearest one. */
static void test_find_messages(void **state)
{
	struct cgroup_tree *t = usual();
	char huge[400], want[600];
	struct err e = { "" };
	uint64_t id;

	(void)state;
	assert_int_equal(cgroup_id_of_path(t, "a/b/d/e", &id, &e), -ENOENT);
	snprintf(want, sizeof(want),
		 "no cgroup '/a/b/d/e' below %s" FS "; the nearest that exists is '/a/b'", root);
	assert_string_equal(e.text, want);
	assert_int_equal(cgroup_id_of_path(t, "/a/../b", &id, &e), -EINVAL);
	assert_string_equal(e.text, "cgroup '/a/../b': '..' is not allowed");
	assert_int_equal(cgroup_id_of_path(t, "", &id, &e), -EINVAL);
	assert_string_equal(e.text, "cgroup: the name is empty; the root is '/'");
	assert_int_equal(cgroup_id_of_path(t, "18446744073709551615", &id, &e), -ENOENT);
	assert_string_equal(e.text,
			    "no cgroup has the id 18446744073709551615; a directory of that "
			    "name is '/18446744073709551615'");
	memset(huge, 'x', sizeof(huge));
	huge[sizeof(huge) - 1] = 0;
	assert_int_equal(cgroup_id_of_path(t, huge, &id, &e), -ENAMETOOLONG);
	snprintf(want, sizeof(want),
		 "cgroup '/%.255s' below %s" FS ": File name too long; '/' can be "
		 "read",
		 huge, root);
	assert_string_equal(e.text, want);
	cgroup_tree_close(t);
	put_file("/proc/self/mountinfo",
		 "30 25 0:29 / /sys/fs/cgroup/cpu rw - cgroup cgroup rw,cpu\n");
	t = open_tree();
	assert_int_equal(cgroup_id_of_path(t, "/a", &id, &e), -EOPNOTSUPP);
	assert_string_equal(e.text,
			    "cgroup '/a': no cgroup v2 is mounted, so there is only the root; "
			    "see `ibscope doctor`");
	assert_int_equal(cgroup_id_of_path(t, FS "/cpu/a", &id, &e), -EINVAL);
	assert_string_equal(e.text,
			    "cgroup '" FS "/cpu/a' is in another hierarchy than v2, which is "
			    "not mounted; choose one with --cgroup-hierarchy");
	cgroup_tree_close(t);
}

/* Paths from what users write: absolute, without empty parts and '.'. */
static void test_clean(void **state)
{
	static const char *const rows[][2] = {
		{ "", "/" },	       { "///", "/" },	    { ".", "/" },
		{ "./.", "/" },	       { "a", "/a" },	    { "a/", "/a" },
		{ "/a//b", "/a/b" },   { "a/./b", "/a/b" }, { "...", "/..." },
		{ ".a/b.", "/.a/b." }, { "..a", "/..a" },   { "a/..b/.../c", "/a/..b/.../c" },
	};
	static const char *const bad[] = { "..", "../a", "a/..", "a/../b", "/..", "./.." };
	struct err e;
	char *path;

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		assert_int_equal(cgroup_path_clean(rows[i][0], &path, &e), 0);
		assert_string_equal(path, rows[i][1]);
		free(path);
	}
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		assert_int_equal(cgroup_path_clean(bad[i], &path, &e), -EINVAL);
	assert_string_equal(cgroup_path_below("/m/a", "/m"), "/a");
	assert_string_equal(cgroup_path_below("/m", "/m"), "");
	assert_string_equal(cgroup_path_below("/m/", "/m"), "/");
	assert_null(cgroup_path_below("/ma", "/m"));
	assert_null(cgroup_path_below("/", "/m"));
	assert_null(cgroup_path_below("/m", ""));
}

static void test_v1(void **state)
{
	struct cgroup_tree *t;
	struct cgroup_stats s;
	struct err e;
	uint64_t id;

	(void)state;
	put_file("/proc/self/mountinfo",
		 "30 25 0:29 / /sys/fs/cgroup/cpu rw - cgroup cgroup rw,cpu\n");
	t = open_tree();
	assert_int_equal(cgroup_tree_fs(t)->mode, CGROUP_MODE_V1);
	assert_false(cgroup_tree_per_cgroup(t));
	assert_int_equal(cgroup_tree_fd(t), -1);
	cgroup_tree_update(t);
	check_path(t, 1, "/");
	check_path(t, 2, NULL);
	assert_true(cgroup_tree_alive(t, 1));
	assert_false(cgroup_tree_alive(t, 2));
	assert_int_equal(cgroup_id_of_path(t, "/", &id, &e), 0);
	assert_int_equal(id, 1);
	assert_int_equal(cgroup_id_of_path(t, "/a", &id, &e), -EOPNOTSUPP);
	assert_int_equal(cgroup_id_of_path(t, FS "/cpu/a", &id, &e), -EINVAL);
	assert_non_null(strstr(e.text, "another hierarchy"));
	assert_int_equal(cgroup_tree_forget_dead(t, 0), 0);
	cgroup_tree_stats(t, &s);
	assert_int_equal(s.alive, 1);
	cgroup_tree_close(t);
	put_file("/proc/self/mountinfo", "31 25 0:30 / /gone rw - cgroup2 cgroup2 rw\n");
	assert_int_equal(cgroup_tree_open(root, &t, &e), -ENOENT);
	assert_non_null(strstr(e.text, "/gone"));
}

/* What a selection asks of a tree. */
static void test_source(void **state)
{
	struct cgroup_tree *t = usual();
	struct container_owner owner = { 1, 1 };
	struct cgroup_source src = {};
	struct err e;
	char *path;
	__u64 id;

	(void)state;
	cgroup_source_of_tree(&src, t, NULL);
	assert_false(src.recorded);
	assert_int_equal(src.find(src.arg, "a/b", &id, &path, &e), 0);
	assert_int_equal(id, ino("/a/b"));
	assert_string_equal(path, "/a/b");
	free(path);
	assert_true(src.find(src.arg, "/none", &id, &path, &e) < 0);
	assert_int_equal(src.path_of(src.arg, "a//none", &path, &e), 0);
	assert_string_equal(path, "/a/none");
	free(path);
	src.owner(src.arg, ino("/a/b"), &owner);
	assert_int_equal(owner.uid, 0);
	if (!geteuid()) {
		make("/a/user");
		assert_int_equal(chown(at("/a/user"), 65534, 65534), 0);
		make("/a/user/mine");
		cgroup_tree_update(t);
		check_path(t, ino("/a/user/mine"), "/a/user/mine");
		src.owner(src.arg, ino("/a/user/mine"), &owner);
		assert_int_equal(owner.uid, 65534);
		assert_int_equal(owner.path_len, strlen("/a/user"));
	}
	cgroup_tree_close(t);
}

#define T(f) cmocka_unit_test_setup_teardown(f, new_root, remove_root)

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(test_scan),	       T(test_life),	   T(test_not_updated),
		T(test_moved),	       T(test_find),	   T(test_v1),
		T(test_died),	       T(test_made_again), T(test_source),
		T(test_find_messages), T(test_clean),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
