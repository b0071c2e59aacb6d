/* SPDX-License-Identifier: Apache-2.0
 *
 * Planted: what do only planted bugs do?
 */
#ifndef TXN_LEADER_PLANTED_H
#define TXN_LEADER_PLANTED_H

#include "txn/leader/coordinator.h"

struct planted {
    struct buffer config; /* packed */
    uint64_t read_us;     /* when it was read */
};

#ifdef RINGHOLD_MUTANTS

/* M_LOCALNUM: PREPARE leaves under a number that is only guessed, before the log has it. */
void planted_localnum(struct coordinator *c, const Rh__CommandBegin *begin);
/* M_READFIRST: a configuration that was read up to a second ago; to be proto_free()d. */
ProtobufCMessage *planted_readfirst(struct coordinator *c);
void planted_fini(struct coordinator *c);

#else

static inline void planted_localnum(struct coordinator *c, const Rh__CommandBegin *begin)
{
    (void)c;
    (void)begin;
}

static inline ProtobufCMessage *planted_readfirst(struct coordinator *c)
{
    (void)c;
    return NULL;
}

static inline void planted_fini(struct coordinator *c)
{
    (void)c;
}

#endif

#endif
