/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What a process calls itself to OpenTelemetry. */
#ifndef IBSCOPE_PUSH_SERVICE_H
#define IBSCOPE_PUSH_SERVICE_H

#include <sys/types.h>

#define PUSH_SERVICE_MAX 128

/**
 * push_service_name() - service.name of the process context that a process publishes
 *
 * As version 2 of OpenTelemetry's process context has it (OTEP 4719): a mapping named OTEL_CTX.
 *
 * Return: @out, or NULL if the process is gone, publishes nothing, or is just changing it.
 */
const char *push_service_name(pid_t pid, char out[PUSH_SERVICE_MAX]);

#endif
