/* SPDX-License-Identifier: Apache-2.0
 *
 * A small record on disk that never goes back: the transaction numbers a node
 * has seen, the highest number a coordinator has applied.
 *
 *     0          4096        8192
 *     +----------+-----------+
 *     | slot 0   | slot 1    |      written in turn, each: magic, count, size, payload, CRC-32C
 *     +----------+-----------+
 *
 * A store writes the older slot and fsyncs before it returns, so a crash in the
 * middle leaves the other one whole. The file's folder is fsynced when the file
 * is made. All calls block: shells run them off the loop or accept the wait.
 */
#ifndef STORAGE_NUMBER_H
#define STORAGE_NUMBER_H

#include "base/bytes.h"
#include "base/err.h"

enum { NUMBER_PAYLOAD_MAX = 1024 };

struct number;

/* Open or make the file at `path`. `payload` gets what was stored last, empty if nothing ever was.
 * ERR_CORRUPT: the file is there, but no slot of it is whole; ERR_IO. Says why in the log. */
MUST_CHECK enum err number_open(struct number **out, const char *path, struct buffer *payload);

/* Replace the payload (<= NUMBER_PAYLOAD_MAX). It is on disk when this returns ERR_OK; after ERR_IO
 * nobody knows: end the process. Not from two threads at a time. */
MUST_CHECK enum err number_store(struct number *n, struct bytes payload);

/* Takes NULL. */
void number_close(struct number *n);

#endif
