// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "web_config.h"

#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <yaml.h>

#define FILE_MAX      (1 << 20)
#define BCRYPT_LEN    60
#define BCRYPT_PREFIX 7 /* "$2y$10$" */
#define BCRYPT_DIGITS "./ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789"

struct reader {
	yaml_document_t doc;
	const char *dir;
	struct web_config *out;
	struct err *err;
};

static int wrong(struct reader *r, const yaml_node_t *at, const char *what, const char *name)
{
	return err_set(r->err, -EINVAL, "line %zu: %.*s%s", at->start_mark.line + 1, 200, name,
		       what);
}

static const char *text_of(const yaml_node_t *n)
{
	const char *s = (const char *)n->data.scalar.value;

	/* a NUL in the middle would be the end for us alone */
	return n->type == YAML_SCALAR_NODE && strlen(s) == n->data.scalar.length ? s : NULL;
}

typedef int pair_cb(struct reader *r, const yaml_node_t *key, const char *name, yaml_node_t *value);

/* Call @cb for each pair of a mapping, whose keys must be texts that differ. */
static int each_pair(struct reader *r, yaml_node_t *map, const char *of, pair_cb *cb)
{
	if (map->type == YAML_SCALAR_NODE && !map->data.scalar.length)
		return 0; /* "key:" without anything */
	if (map->type != YAML_MAPPING_NODE)
		return wrong(r, map, " must hold `name: value` lines", of);
	for (yaml_node_pair_t *p = map->data.mapping.pairs.start; p < map->data.mapping.pairs.top;
	     p++) {
		yaml_node_t *key = yaml_document_get_node(&r->doc, p->key);
		const char *name = text_of(key);
		int ret;

		if (!name || !*name)
			return wrong(r, key, " has a key that is no text", of);
		for (yaml_node_pair_t *q = map->data.mapping.pairs.start; q < p; q++)
			if (!strcmp(name, text_of(yaml_document_get_node(&r->doc, q->key))))
				return wrong(r, key, " is there twice", name);
		ret = cb(r, key, name, yaml_document_get_node(&r->doc, p->value));
		if (ret)
			return ret;
	}
	return 0;
}

static int read_file(const char *path, char **out, size_t *size, struct err *err)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	struct stat st;
	ssize_t n = -1;

	if (fd < 0 || fstat(fd, &st)) {
		int e = errno;

		if (fd >= 0)
			close(fd);
		return err_set(err, -e, "cannot open %s: %s", path, strerror(e));
	}
	if (!S_ISREG(st.st_mode) || st.st_size > FILE_MAX) {
		close(fd);
		return err_set(err, -EINVAL, "%s is no file of at most 1 MiB", path);
	}
	*out = malloc(st.st_size + 1);
	if (*out)
		n = read(fd, *out, st.st_size);
	close(fd);
	if (n < 0) {
		free(*out);
		*out = NULL;
		return err_set(err, -EIO, "cannot read %s", path);
	}
	(*out)[n] = 0;
	*size = n;
	return 0;
}

static int take_file(struct reader *r, yaml_node_t *value, const char *name, char **to)
{
	const char *text = text_of(value);
	char path[4096];
	size_t n;
	int ret;

	if (!text || !*text)
		return wrong(r, value, " must be the path of a file", name);
	snprintf(path, sizeof(path), "%s%s%s", *text == '/' ? "" : r->dir, *text == '/' ? "" : "/",
		 text);
	ret = read_file(path, to, &n, r->err);
	if (ret)
		err_prefix(r->err, "line %zu: %s", value->start_mark.line + 1, name);
	return ret;
}

static int tls_pair(struct reader *r, const yaml_node_t *key, const char *name, yaml_node_t *value)
{
	if (!strcmp(name, "cert_file"))
		return take_file(r, value, name, &r->out->cert);
	if (!strcmp(name, "key_file"))
		return take_file(r, value, name, &r->out->key);
	return wrong(r, key, " is not supported; tls_server_config takes cert_file and key_file",
		     name);
}

static bool is_bcrypt(const char *s)
{
	return strlen(s) == BCRYPT_LEN && !strncmp(s, "$2", 2) && strchr("aby", s[2]) &&
	       s[3] == '$' && s[4] >= '0' && s[4] <= '9' && s[5] >= '0' && s[5] <= '9' &&
	       s[6] == '$' &&
	       strspn(s + BCRYPT_PREFIX, BCRYPT_DIGITS) == BCRYPT_LEN - BCRYPT_PREFIX;
}

static int user_pair(struct reader *r, const yaml_node_t *key, const char *name, yaml_node_t *value)
{
	struct web_config *c = r->out;
	const char *hash = text_of(value);
	struct web_user *more;
	int cost;

	if (!hash || !is_bcrypt(hash))
		return wrong(r, value,
			     ": a hash of bcrypt is expected, as $2y$10$...; "
			     "`htpasswd -nBC 10 USER` makes one",
			     name);
	if (strchr(name, ':'))
		return wrong(r, key, ": a user's name has no ':'", name);
	cost = atoi(hash + 4);
	if (cost < 4 || cost > WEB_BCRYPT_MAX)
		return wrong(r, value, ": the cost of the hash must be from 4 to 14; 10 is usual",
			     name);
	more = realloc(c->users, (c->n_users + 1) * sizeof(*more));
	if (!more)
		return err_set(r->err, -ENOMEM, "out of memory");
	c->users = more;
	more += c->n_users++;
	more->name = strdup(name);
	more->hash = strdup(hash);
	return more->name && more->hash ? 0 : err_set(r->err, -ENOMEM, "out of memory");
}

/* HTTP/1.1 is what there is, so that one may only say that no other is wanted. */
static int http_pair(struct reader *r, const yaml_node_t *key, const char *name, yaml_node_t *value)
{
	const char *text = text_of(value);

	if (!strcmp(name, "http2") && text && !strcmp(text, "false"))
		return 0;
	return wrong(r, key, " is not supported; http_server_config takes only http2: false", name);
}

static int top_pair(struct reader *r, const yaml_node_t *key, const char *name, yaml_node_t *value)
{
	if (!strcmp(name, "tls_server_config")) {
		int ret = each_pair(r, value, name, tls_pair);

		if (!ret && !r->out->cert != !r->out->key)
			return wrong(r, key, " needs both cert_file and key_file", name);
		return ret;
	}
	if (!strcmp(name, "basic_auth_users"))
		return each_pair(r, value, name, user_pair);
	if (!strcmp(name, "http_server_config"))
		return each_pair(r, value, name, http_pair);
	return wrong(r, key,
		     " is not known; there are tls_server_config, basic_auth_users and "
		     "http_server_config",
		     name);
}

static int load(yaml_parser_t *parser, struct reader *r)
{
	yaml_node_t *root;
	int ret = 0;

	if (!yaml_parser_load(parser, &r->doc))
		return err_set(r->err, -EINVAL, "line %zu: no YAML: %s",
			       parser->problem_mark.line + 1,
			       parser->problem ?: "what stands there cannot be read");
	root = yaml_document_get_root_node(&r->doc);
	if (root)
		ret = each_pair(r, root, "the file", top_pair);
	yaml_document_delete(&r->doc);
	return ret;
}

/*
 * Aliases would let a mapping hold itself; as none is needed, and a file that holds them is of
 * another kind, they are refused before anything is read.
 */
static int check_events(const char *text, size_t n, struct err *err)
{
	yaml_parser_t parser;
	yaml_event_t event;
	yaml_event_type_t type = YAML_NO_EVENT;
	size_t documents = 0;
	int ret = 0;

	if (!yaml_parser_initialize(&parser))
		return err_set(err, -ENOMEM, "out of memory");
	yaml_parser_set_input_string(&parser, (const unsigned char *)text, n);
	while (!ret && type != YAML_STREAM_END_EVENT) {
		if (!yaml_parser_parse(&parser, &event)) {
			ret = err_set(err, -EINVAL, "line %zu: no YAML: %s",
				      parser.problem_mark.line + 1, parser.problem ?: "unreadable");
			break;
		}
		type = event.type;
		documents += type == YAML_DOCUMENT_START_EVENT;
		if (type == YAML_ALIAS_EVENT)
			ret = err_set(err, -EINVAL, "line %zu: aliases are not supported",
				      event.start_mark.line + 1);
		else if (documents > 1)
			ret = err_set(err, -EINVAL, "line %zu: a second document",
				      event.start_mark.line + 1);
		yaml_event_delete(&event);
	}
	yaml_parser_delete(&parser);
	return ret;
}

int web_config_parse(const char *text, size_t n, const char *dir, struct web_config *out,
		     struct err *err)
{
	struct reader r = { .dir = dir, .out = out, .err = err };
	yaml_parser_t parser;
	int ret;

	memset(out, 0, sizeof(*out));
	ret = check_events(text, n, err);
	if (ret)
		return ret;
	if (!yaml_parser_initialize(&parser))
		return err_set(err, -ENOMEM, "out of memory");
	yaml_parser_set_input_string(&parser, (const unsigned char *)text, n);
	ret = load(&parser, &r);
	yaml_parser_delete(&parser);
	if (ret)
		web_config_free(out);
	return ret;
}

int web_config_read(const char *path, struct web_config *out, struct err *err)
{
	char *text, *copy = strdup(path);
	size_t n;
	int ret = copy ? read_file(path, &text, &n, err) : -ENOMEM;

	if (!ret) {
		ret = web_config_parse(text, n, dirname(copy), out, err);
		free(text);
		if (ret)
			err_prefix(err, "%s", path);
	}
	free(copy);
	return ret;
}

static void forget(char *secret)
{
	if (secret)
		explicit_bzero(secret, strlen(secret));
	free(secret);
}

void web_config_free(struct web_config *c)
{
	free(c->cert);
	forget(c->key);
	for (size_t i = 0; i < c->n_users; i++) {
		free(c->users[i].name);
		free(c->users[i].hash);
	}
	free(c->users);
	memset(c, 0, sizeof(*c));
}
