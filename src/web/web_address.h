/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef IBSCOPE_WEB_ADDRESS_H
#define IBSCOPE_WEB_ADDRESS_H

#include "base/err.h"

#include <stdbool.h>
#include <sys/socket.h>

/* Port 9950 is not in the list of exporters in Prometheus' wiki. */
#define WEB_LISTEN_DEFAULT "127.0.0.1:9950"

/**
 * web_listen() - open a listening socket
 * @text: HOST:PORT, [IPV6]:PORT or :PORT, for all addresses of both families; port 0 is any
 *
 * Return: the socket, non-blocking; or a negative errno with @err.
 */
int web_listen(const char *text, struct err *err);

/* The address of a socket, as web_listen() reads it. */
void web_address_text(int fd, char *out, size_t size);

bool web_address_loopback(const struct sockaddr *addr);

/*
 * Is the value of a Host header a name of this machine that nobody else can have resolved to it:
 * localhost, an IP address, its own name, or one of @listen?
 */
bool web_host_is_local(const char *host, const char *const *listen, size_t n_listen);

#endif
