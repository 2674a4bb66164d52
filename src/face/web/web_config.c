// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "web_config.h"
#include "base/std.h"

#include "base/regular.h"

#include <fcntl.h>
#include <libgen.h>
#include <stdio.h>
#include <unistd.h>
#include <yaml.h>

#define FILE_MAX      (1 << 20)
#define BCRYPT_LEN    60
#define BCRYPT_PREFIX 7 /* "$2y$10$" */
#define BCRYPT_DIGITS "./ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789"

const struct web_client_auth_row web_client_auths[] = {
#define AUTH_ROW(NAME, name, asked, required, verified) { asked, required, verified },
	WEB_CLIENT_AUTH_TABLE(AUTH_ROW)
#undef AUTH_ROW
};

struct reader {
	yaml_document_t doc;
	const char *dir;
	struct web_config *out;
	struct err *err;
};

static int wrong(struct reader *r, const yaml_node_t *at, const char *name, const char *what)
{
	return err_set(r->err, -EINVAL, "line %zu: %.*s%s", at->start_mark.line + 1, 200, name,
		       what);
}

static const char *text_of(const yaml_node_t *n)
{
	const char *s = (const char *)n->data.scalar.value;

	/* a NUL in the middle would end the string */
	return n->type == YAML_SCALAR_NODE && strlen(s) == n->data.scalar.length ? s : NULL;
}

typedef int pair_cb(struct reader *r, const yaml_node_t *key, const char *name, yaml_node_t *value);

/* Call @cb for each pair of a mapping; keys must be distinct strings. */
static int each_pair(struct reader *r, yaml_node_t *map, const char *of, pair_cb *cb)
{
	if (map->type == YAML_SCALAR_NODE && !map->data.scalar.length)
		return 0; /* "key:" without a value */
	if (map->type != YAML_MAPPING_NODE)
		return wrong(r, map, of, ": expected lines of `name: value`");
	for (yaml_node_pair_t *p = map->data.mapping.pairs.start; p < map->data.mapping.pairs.top;
	     p++) {
		yaml_node_t *key = yaml_document_get_node(&r->doc, p->key);
		const char *name = text_of(key);
		int ret;

		if (!name || !*name)
			return wrong(r, key, of, ": invalid key: must be a string");
		for (yaml_node_pair_t *q = map->data.mapping.pairs.start; q < p; q++)
			if (!strcmp(name, text_of(yaml_document_get_node(&r->doc, q->key))))
				return wrong(r, key, name, ": duplicate key");
		ret = cb(r, key, name, yaml_document_get_node(&r->doc, p->value));
		if (ret)
			return ret;
	}
	return 0;
}

typedef int item_cb(struct reader *r, const yaml_node_t *at, const char *name, const char *text);

/* Call @cb for each string of a list, at most WEB_LIST_MAX. */
static int each_item(struct reader *r, yaml_node_t *list, const char *name, item_cb *cb)
{
	const yaml_node_item_t *items = list->data.sequence.items.start;

	if (list->type != YAML_SEQUENCE_NODE || list->data.sequence.items.top == items ||
	    list->data.sequence.items.top - items > WEB_LIST_MAX)
		return wrong(r, list, name, ": expected a list of 1 to 16 strings");
	for (; items < list->data.sequence.items.top; items++) {
		yaml_node_t *n = yaml_document_get_node(&r->doc, *items);
		const char *text = text_of(n);
		int ret = text && *text ? cb(r, n, name, text)
					: wrong(r, n, name, ": expected a list of strings");

		if (ret)
			return ret;
	}
	return 0;
}

static int read_file(const char *path, char **out, size_t *size, struct stat *st, struct err *err)
{
	int fd = regular_open(path);
	ssize_t n = -1;

	if (fd == -EINVAL)
		return err_set(err, fd, "%s is not a regular file", path);
	if (fd < 0)
		return err_set(err, fd, "cannot open %s: %s", path, strerror(-fd));
	*out = fstat(fd, st) || st->st_size > FILE_MAX ? NULL : xrealloc(NULL, st->st_size + 1);
	if (*out)
		n = read(fd, *out, st->st_size);
	close(fd);
	if (n < 0) {
		free(*out);
		*out = NULL;
		return err_set(err, -EIO, "cannot read %s, or it is larger than 1 MiB", path);
	}
	(*out)[n] = 0;
	*size = n;
	return 0;
}

static void keep_file(struct web_config *c, const char *path, const struct stat *st)
{
	c->files[c->n_files++] = (struct web_file){ .path = xstrdup(path), .st = *st };
}

static int take_file(struct reader *r, yaml_node_t *value, const char *name, char **to)
{
	const char *text = text_of(value);
	char path[4096];
	struct stat st;
	size_t n;
	int ret;

	if (!text || !*text)
		return wrong(r, value, name, ": expected the path of a file");
	snprintf(path, sizeof(path), "%s%s%s", *text == '/' ? "" : r->dir, *text == '/' ? "" : "/",
		 text);
	ret = read_file(path, to, &n, &st, r->err);
	if (!ret && to == &r->out->key)
		ret = regular_check_secret(path, &st, "key", r->err);
	if (!ret)
		keep_file(r->out, path, &st);
	if (ret)
		err_prefix(r->err, "line %zu: %s", value->start_mark.line + 1, name);
	return ret;
}

/* --- TLS --- */

#define FIRST(name, ...) name,

static int add_choice(struct reader *r, const yaml_node_t *at, const char *name, const char *text,
		      const char *const *names, size_t n, struct web_choices *out)
{
	char all[512] = "";

	for (size_t i = 0; i < n; i++) {
		size_t len = strlen(all);

		if (!strcmp(text, names[i])) {
			out->row[out->n++] = i;
			return 0;
		}
		snprintf(all + len, sizeof(all) - len, "%s%s", i ? ", " : "", names[i]);
	}
	return err_set(r->err, -EINVAL,
		       "line %zu: %s: '%.60s' is unknown or insecure; choose from %s",
		       at->start_mark.line + 1, name, text, all);
}

static int cipher_item(struct reader *r, const yaml_node_t *at, const char *name, const char *text)
{
	static const char *const names[] = { WEB_CIPHER_TABLE(FIRST) };

	return add_choice(r, at, name, text, names, sizeof(names) / sizeof(names[0]),
			  &r->out->ciphers);
}

static int curve_item(struct reader *r, const yaml_node_t *at, const char *name, const char *text)
{
	static const char *const names[] = { WEB_CURVE_TABLE(FIRST) };

	return add_choice(r, at, name, text, names, sizeof(names) / sizeof(names[0]),
			  &r->out->curves);
}

static int san_item(struct reader *r, const yaml_node_t *at, const char *name, const char *text)
{
	(void)at;
	(void)name;
	r->out->sans[r->out->n_sans++] = xstrdup(text);
	return 0;
}

static int take_version(struct reader *r, yaml_node_t *value, const char *name, unsigned int *to)
{
	const char *text = text_of(value) ?: "";

	*to = !strcmp(text, "TLS12") ? 12 : !strcmp(text, "TLS13") ? 13 : 0;
	return *to ? 0
		   : wrong(r, value, name, ": must be TLS12 or TLS13; older versions are insecure");
}

static int take_client_auth(struct reader *r, yaml_node_t *value, const char *name)
{
#define AUTH_NAME(NAME, name, ...) name,
	static const char *const names[] = { WEB_CLIENT_AUTH_TABLE(AUTH_NAME) };
#undef AUTH_NAME
	struct web_choices one = {};
	const char *text = text_of(value);
	int ret = add_choice(r, value, name, text ?: "", names, sizeof(names) / sizeof(names[0]),
			     &one);

	r->out->client_auth = one.row[0];
	return ret;
}

static int take_bool(struct reader *r, yaml_node_t *value, const char *name, bool *to)
{
	const char *text = text_of(value) ?: "";

	*to = !strcmp(text, "true");
	return *to || !strcmp(text, "false") ? 0 : wrong(r, value, name, ": must be true or false");
}

static int tls_pair(struct reader *r, const yaml_node_t *key, const char *name, yaml_node_t *value)
{
	struct web_config *c = r->out;
	bool prefer = true;
	int ret;

	if (!strcmp(name, "cert_file"))
		return take_file(r, value, name, &c->cert);
	if (!strcmp(name, "key_file"))
		return take_file(r, value, name, &c->key);
	if (!strcmp(name, "client_ca_file"))
		return take_file(r, value, name, &c->client_ca);
	if (!strcmp(name, "client_auth_type"))
		return take_client_auth(r, value, name);
	if (!strcmp(name, "client_allowed_sans"))
		return each_item(r, value, name, san_item);
	if (!strcmp(name, "min_version"))
		return take_version(r, value, name, &c->min_tls);
	if (!strcmp(name, "max_version"))
		return take_version(r, value, name, &c->max_tls);
	if (!strcmp(name, "cipher_suites"))
		return each_item(r, value, name, cipher_item);
	if (!strcmp(name, "curve_preferences"))
		return each_item(r, value, name, curve_item);
	if (strcmp(name, "prefer_server_cipher_suites"))
		return wrong(r, key, name,
			     ": unsupported key; tls_server_config takes cert_file, key_file, "
			     "client_ca_file, client_auth_type, client_allowed_sans, min_version, "
			     "max_version, cipher_suites, curve_preferences and "
			     "prefer_server_cipher_suites");
	ret = take_bool(r, value, name, &prefer);
	c->client_order = !prefer;
	return ret;
}

static int check_tls(struct reader *r, const yaml_node_t *at, const char *name)
{
	const struct web_config *c = r->out;
	const bool verifies = web_client_auths[c->client_auth].verified;

	if (!c->cert || !c->key)
		return wrong(r, at, name, ": needs both cert_file and key_file");
	if (c->max_tls && c->max_tls < c->min_tls)
		return wrong(r, at, name, ": max_version is below min_version");
	if (verifies && !c->client_ca)
		return wrong(r, at, name, ": this client_auth_type needs client_ca_file");
	if (c->client_ca && !verifies)
		return wrong(r, at, name,
			     ": client_ca_file has no effect without client_auth_type "
			     "VerifyClientCertIfGiven or RequireAndVerifyClientCert");
	if (c->n_sans && c->client_auth != WEB_CLIENT_VERIFY)
		return wrong(r, at, name,
			     ": client_allowed_sans needs client_auth_type "
			     "RequireAndVerifyClientCert");
	return 0;
}

/* --- the rest --- */

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
	int cost;

	if (!hash || !is_bcrypt(hash))
		return wrong(r, value, name,
			     ": expected a bcrypt hash such as $2y$10$...; "
			     "`htpasswd -nBC 10 USER` prints one");
	if (strchr(name, ':'))
		return wrong(r, key, name, ": a user name cannot contain ':'");
	cost = atoi(hash + 4);
	if (cost < 4 || cost > WEB_BCRYPT_MAX)
		return wrong(r, value, name,
			     ": the cost of the hash must be from 4 to 14; 10 is usual");
	array_reserve(c->users, c->users_room, c->n_users + 1);
	c->users[c->n_users++] = (struct web_user){ .name = xstrdup(name), .hash = xstrdup(hash) };
	return 0;
}

/* Only HTTP/1.1 is supported. */
static int http_pair(struct reader *r, const yaml_node_t *key, const char *name, yaml_node_t *value)
{
	const char *text = text_of(value);

	if (!strcmp(name, "http2") && text && !strcmp(text, "false"))
		return 0;
	return wrong(r, key, name, ": unsupported; http_server_config takes only http2: false");
}

static int top_pair(struct reader *r, const yaml_node_t *key, const char *name, yaml_node_t *value)
{
	if (!strcmp(name, "tls_server_config")) {
		bool empty = value->type == YAML_SCALAR_NODE && !value->data.scalar.length;

		return each_pair(r, value, name, tls_pair) ?: (empty ? 0 : check_tls(r, key, name));
	}
	if (!strcmp(name, "basic_auth_users"))
		return each_pair(r, value, name, user_pair);
	if (!strcmp(name, "http_server_config"))
		return each_pair(r, value, name, http_pair);
	return wrong(r, key, name,
		     ": unknown key; known are tls_server_config, basic_auth_users and "
		     "http_server_config");
}

static int load(yaml_parser_t *parser, struct reader *r)
{
	yaml_node_t *root;
	int ret = 0;

	if (!yaml_parser_load(parser, &r->doc))
		return err_set(r->err, -EINVAL, "line %zu: invalid YAML: %s",
			       parser->problem_mark.line + 1, parser->problem ?: "unreadable");
	root = yaml_document_get_root_node(&r->doc);
	if (root)
		ret = each_pair(r, root, "the file", top_pair);
	yaml_document_delete(&r->doc);
	return ret;
}

/* Refuse aliases, which nobody needs here: they would let a mapping contain itself. */
static int check_events(const char *text, size_t n, struct err *err)
{
	yaml_parser_t parser;
	yaml_event_t event;
	yaml_event_type_t type = YAML_NO_EVENT;
	size_t documents = 0;
	int ret = 0;

	if (!yaml_parser_initialize(&parser))
		out_of_memory();
	yaml_parser_set_input_string(&parser, (const unsigned char *)text, n);
	while (!ret && type != YAML_STREAM_END_EVENT) {
		if (!yaml_parser_parse(&parser, &event)) {
			ret = err_set(err, -EINVAL, "line %zu: invalid YAML: %s",
				      parser.problem_mark.line + 1, parser.problem ?: "unreadable");
			break;
		}
		type = event.type;
		documents += type == YAML_DOCUMENT_START_EVENT;
		if (type == YAML_ALIAS_EVENT)
			ret = err_set(err, -EINVAL, "line %zu: aliases are not supported",
				      event.start_mark.line + 1);
		else if (documents > 1)
			ret = err_set(err, -EINVAL, "line %zu: expected one document",
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
		out_of_memory();
	yaml_parser_set_input_string(&parser, (const unsigned char *)text, n);
	ret = load(&parser, &r);
	yaml_parser_delete(&parser);
	if (ret)
		web_config_free(out);
	return ret;
}

int web_config_read(const char *path, struct web_config *out, struct err *err)
{
	char *text, *copy = xstrdup(path);
	struct stat st;
	size_t n;
	int ret = read_file(path, &text, &n, &st, err);

	if (!ret) {
		ret = web_config_parse(text, n, dirname(copy), out, err);
		free(text);
		if (!ret)
			keep_file(out, path, &st);
		else
			err_prefix(err, "%s", path);
	}
	free(copy);
	return ret;
}

static bool same_file(const struct stat *a, const struct stat *b)
{
	return a->st_dev == b->st_dev && a->st_ino == b->st_ino && a->st_size == b->st_size &&
	       a->st_mode == b->st_mode && a->st_ctim.tv_sec == b->st_ctim.tv_sec &&
	       a->st_ctim.tv_nsec == b->st_ctim.tv_nsec;
}

bool web_config_changed(const struct web_config *c)
{
	struct stat st;

	for (size_t i = 0; i < c->n_files; i++)
		if (stat(c->files[i].path, &st) || !same_file(&st, &c->files[i].st))
			return true;
	return false;
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
	free(c->client_ca);
	for (size_t i = 0; i < c->n_sans; i++)
		free(c->sans[i]);
	for (size_t i = 0; i < c->n_files; i++)
		free(c->files[i].path);
	for (size_t i = 0; i < c->n_users; i++) {
		free(c->users[i].name);
		free(c->users[i].hash);
	}
	free(c->users);
	memset(c, 0, sizeof(*c));
}
