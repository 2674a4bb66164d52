/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Allocations that programs report by the USDT probes otel_memory:alloc(ptr, size, weighted_bytes) and
 * otel_memory:free(ptr), of programs that run already, too.
 */
#ifndef IBSCOPE_PROBES_H
#define IBSCOPE_PROBES_H

#include <stdbool.h>
#include <stddef.h>

#include <ibscope/alloc_probe.h>

struct err;
struct probes;

#define PROBES_PROVIDER "otel_memory"

/* Does an object file have the probe of allocations? */
bool probes_has(int fd);

/* Load the BPF programs. Return: 0 or a negative errno with @err. */
int probes_open(struct probes **out, struct err *err);
void probes_close(struct probes *p); /* accepts NULL */

/**
 * probes_attach() - listen to an object file
 * @path: with the probe of allocations; that of frees may be missing
 * @pid: in this process alone, not in its children; 0: in all processes
 *
 * Return: 0 or a negative errno with @err.
 */
int probes_attach(struct probes *p, const char *path, __u32 pid, struct err *err);

/**
 * probes_attach_process() - listen to all files with probes that a process has mapped
 * @children: also in other processes, of which some may be its children
 *
 * Return: their number, or a negative errno with @err.
 */
int probes_attach_process(struct probes *p, __u32 pid, bool children, struct err *err);

/* @event: of any process that has the files. Return: false to leave the others for the next call. */
typedef bool probes_cb(const struct ibs_alloc_probe_event *event, void *arg);

/* Read events that are new. */
void probes_read(struct probes *p, probes_cb *cb, void *arg);

/* Events that were lost so far. */
__u64 probes_lost(const struct probes *p);

/* Files that were attached. */
size_t probes_files(const struct probes *p);

#endif
