/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* A file in bpffs, pinned by this process, that others may remove or replace. */
#ifndef IBSCOPE_PIN_FILE_H
#define IBSCOPE_PIN_FILE_H

#include "err.h"
#include "std.h"

#include <sys/types.h>

struct pin_file {
	dev_t dev; /* 0 with ino 0: no file */
	ino_t ino;
	mode_t mode;
	gid_t gid;
};

/**
 * pin_file_put() - pin a map, program or link
 * @p:     set; its mode and group are those of the new file
 * @aside: directory to move what is there already to; see pin_file_set_aside()
 *
 * Return: 0 or a negative errno with @err.
 */
int pin_file_put(struct pin_file *p, int fd, const char *path, const char *aside, struct err *err);

/* Note the file at @path as the pin. Return: false if there is none. */
bool pin_file_note(struct pin_file *p, const char *path);

/* True if the file at @path is the pin; its mode and group are noted. */
bool pin_file_is(struct pin_file *p, const char *path);

/*
 * Move what is at @path, which is not ours, to @dir/NAME-foreignN, and log that. If there are too
 * many, the oldest is removed. Return: 0, also if there is nothing, or a negative errno with @err.
 */
int pin_file_set_aside(const char *path, const char *dir, struct err *err);

#endif
