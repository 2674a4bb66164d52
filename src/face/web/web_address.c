// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "web_server.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#define BACKLOG 512

static int bad(const char *text, struct err *err)
{
	return err_set(err, -EINVAL,
		       "invalid address '%.200s': use HOST:PORT, [IPV6]:PORT or :PORT, such "
		       "as " WEB_LISTEN_DEFAULT,
		       text);
}

/* "[::1]:80" to "::1" and "80" */
static int split(const char *text, char *host, size_t size, const char **port, struct err *err)
{
	const char *colon = strrchr(text, ':');
	size_t n = colon ? colon - text : 0;
	unsigned int number;
	int end = 0;

	if (!colon || n >= size || sscanf(colon + 1, "%5u%n", &number, &end) != 1 ||
	    colon[1] < '0' || colon[1] > '9' || colon[1 + end] || number > 65535)
		return bad(text, err);
	if (*text == '[' && n >= 2 && text[n - 1] == ']')
		snprintf(host, size, "%.*s", (int)n - 2, text + 1);
	else if (memchr(text, ':', n) || memchr(text, '[', n) || memchr(text, ']', n))
		return bad(text, err);
	else
		snprintf(host, size, "%.*s", (int)n, text);
	*port = colon + 1;
	return 0;
}

int web_check_address(const char *text, struct err *err)
{
	char host[256];
	const char *port;

	return split(text, host, sizeof(host), &port, err);
}

static int open_socket(const struct addrinfo *a, bool both)
{
	int one = 1, zero = 0;
	int fd = socket(a->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

	if (fd < 0)
		return -errno;
	setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
	if (a->ai_family == AF_INET6)
		setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, both ? &zero : &one, sizeof(one));
	if (bind(fd, a->ai_addr, a->ai_addrlen) || listen(fd, BACKLOG)) {
		int e = errno;

		close(fd);
		return -e;
	}
	return fd;
}

int web_listen(const char *text, struct err *err)
{
	struct addrinfo want = { .ai_family = AF_UNSPEC,
				 .ai_socktype = SOCK_STREAM,
				 .ai_flags = AI_PASSIVE | AI_NUMERICSERV };
	struct addrinfo *all;
	char host[256];
	const char *port = NULL;
	int fd = -ENOENT, ret = split(text, host, sizeof(host), &port, err);

	if (ret)
		return ret;
	if (!*host)
		want.ai_family = AF_INET6;
	ret = getaddrinfo(*host ? host : NULL, port, &want, &all);
	if (ret)
		return err_set(err, -EINVAL, "cannot listen on %s: %s", text, gai_strerror(ret));
	for (struct addrinfo *a = all; a && fd < 0; a = a->ai_next)
		fd = open_socket(a, !*host);
	freeaddrinfo(all);
	/* there is no IPv6 here */
	if (!*host && fd == -EAFNOSUPPORT) {
		char any[32];

		snprintf(any, sizeof(any), "0.0.0.0:%s", port);
		return web_listen(any, err);
	}
	if (fd < 0)
		return err_set(err, fd, "cannot listen on %s: %s", text, strerror(-fd));
	return fd;
}

void web_address_text(int fd, char *out, size_t size)
{
	struct sockaddr_storage addr = {};
	socklen_t n = sizeof(addr);
	char host[64] = "", port[8] = "";

	if (getsockname(fd, (struct sockaddr *)&addr, &n) ||
	    getnameinfo((struct sockaddr *)&addr, n, host, sizeof(host), port, sizeof(port),
			NI_NUMERICHOST | NI_NUMERICSERV))
		snprintf(out, size, "?");
	else
		snprintf(out, size, addr.ss_family == AF_INET6 ? "[%s]:%s" : "%s:%s", host, port);
}

bool web_address_loopback(const struct sockaddr *addr)
{
	const struct sockaddr_in *v4 = (const void *)addr;
	const struct in6_addr *v6 = &((const struct sockaddr_in6 *)addr)->sin6_addr;

	if (addr->sa_family == AF_INET)
		return ntohl(v4->sin_addr.s_addr) >> 24 == 127;
	if (addr->sa_family != AF_INET6)
		return false;
	return IN6_IS_ADDR_LOOPBACK(v6) || (IN6_IS_ADDR_V4MAPPED(v6) && v6->s6_addr[12] == 127);
}

/* The host of "HOST", "HOST:PORT" or "[IPV6]:PORT", without brackets. */
static void host_part(const char *text, char *out, size_t size)
{
	const char *end = *text == '[' ? strchr(text, ']') : strchr(text, ':');

	text += *text == '[';
	snprintf(out, size, "%.*s", (int)(end ? (size_t)(end - text) : strlen(text)), text);
}

bool web_host_is_local(const char *text, const struct web_opts *opts)
{
	char host[256], own[256] = "", other[256];
	struct in6_addr addr;
	size_t n;

	host_part(text, host, sizeof(host));
	n = strlen(host);
	if (n && host[n - 1] == '.')
		host[--n] = 0;
	if (inet_pton(AF_INET, host, &addr) == 1 || inet_pton(AF_INET6, host, &addr) == 1 ||
	    !strcasecmp(host, "localhost") || (n > 10 && !strcasecmp(host + n - 10, ".localhost")))
		return true;
	if (!gethostname(own, sizeof(own) - 1) && *own && !strcasecmp(host, own))
		return true;
	for (size_t i = 0; i < opts->n_listen; i++) {
		host_part(opts->listen[i], other, sizeof(other));
		if (*other && !strcasecmp(host, other))
			return true;
	}
	return false;
}
