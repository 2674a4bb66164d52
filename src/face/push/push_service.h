/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The OpenTelemetry service name of a process. */
#ifndef IBSCOPE_PUSH_SERVICE_H
#define IBSCOPE_PUSH_SERVICE_H

#include <sys/types.h>

#define PUSH_SERVICE_MAX 128

/**
 * push_service_name() - read service.name from the process context of a process
 *
 * Version 2 of OpenTelemetry's process context (OTEP 4719): a mapping named OTEL_CTX.
 *
 * Return: @out, or NULL if the process has exited, publishes nothing, or is just changing it.
 */
const char *push_service_name(pid_t pid, char out[PUSH_SERVICE_MAX]);

#endif
