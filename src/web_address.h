/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef IBSCOPE_WEB_ADDRESS_H
#define IBSCOPE_WEB_ADDRESS_H

#include "err.h"

#include <stdbool.h>
#include <sys/socket.h>

/* 9950 is none of the ports that Prometheus' wiki lists for exporters. */
#define WEB_LISTEN_DEFAULT "127.0.0.1:9950"

/**
 * web_listen() - a socket that listens
 * @text: HOST:PORT, [IPV6]:PORT or :PORT, which is all addresses of both families; port 0 is any
 *
 * Return: the socket, non-blocking; or a negative errno with @err.
 */
int web_listen(const char *text, struct err *err);

/* The address of a socket, as web_listen() reads it. */
void web_address_text(int fd, char *out, size_t size);

/* Does the address belong to this machine's loopback? */
bool web_address_loopback(const struct sockaddr *addr);

#endif
