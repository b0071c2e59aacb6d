/* SPDX-License-Identifier: Apache-2.0
 *
 * A small record on disk that never goes back: the transaction numbers a node
 * has seen, the highest number a coordinator has applied.
 *
 *     0                  4096                8192
 *     +---------+---------+---------+---------+
 *     | record  | again   | record  | again   |    a slot is 4096 bytes, the record in it twice
 *     +---------+---------+---------+---------+    record: magic, count, size, payload, CRC-32C
 *
 * A store writes the older slot and fsyncs before it returns, so a crash in the
 * middle leaves the other one whole. A byte that rots later spoils one record of
 * two: what was confirmed is still known, or it is refused, but it never goes
 * back. A file is made whole under another name: an empty or a short one is
 * damaged. All calls block: shells run them off the loop or accept the wait.
 */
#ifndef STORAGE_LOG_NUMBER_H
#define STORAGE_LOG_NUMBER_H

#include "base/bytes.h"
#include "base/err.h"

enum { NUMBER_PAYLOAD_MAX = 1024 };

struct number;

/* Open or make the file at `path`. `payload` gets what was stored last, empty if nothing ever was.
 * ERR_CORRUPT: the file is there, but damaged; ERR_IO. Says why in the log. */
MUST_CHECK enum err number_open(struct number **out, const char *path, struct buffer *payload);

/* Read the file without changing it. ERR_NOT_FOUND, ERR_IO (errno says why), or ERR_CORRUPT: then
 * `*why` is a static text. `*why` is also set with ERR_OK when only one record of a pair is whole.
 */
MUST_CHECK enum err number_read(const char *path, struct buffer *payload, const char **why);

/* Replace the payload (<= NUMBER_PAYLOAD_MAX). It is on disk when this returns ERR_OK; after ERR_IO
 * nobody knows: end the process. Not from two threads at a time. */
MUST_CHECK enum err number_store(struct number *n, struct bytes payload);

/* Takes NULL. */
void number_close(struct number *n);

#endif
