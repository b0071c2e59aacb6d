/* SPDX-License-Identifier: Apache-2.0
 *
 * Which gateway is that? Each thread of a gateway's process is a gateway of its
 * own, under the process's name: nodes and coordinators know it by an id of which
 * the low bits say which thread it is, and all others are the process's.
 */
#ifndef WIRE_GATEWAY_ID_H
#define WIRE_GATEWAY_ID_H

#include <stdint.h>

enum { GATEWAY_THREADS_MAX = 64 /* a power of two */ };

/* Return one id for all threads of a process: the id of its first thread. */
static inline uint64_t gateway_id_process(uint64_t id)
{
    return id & ~(uint64_t)(GATEWAY_THREADS_MAX - 1);
}

/* From 0. Of a process with one thread it says nothing. */
static inline unsigned gateway_id_thread(uint64_t id)
{
    return (unsigned)(id & (GATEWAY_THREADS_MAX - 1));
}

#endif
