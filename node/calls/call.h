/* SPDX-License-Identifier: Apache-2.0
 *
 * What one actor asks of another, on its way between the runtime it is on
 * (node/runtime/runtime.h) and the node's calls (node/calls_uv.c), and the answer back.
 *
 * The runtime copies nothing and waits for nothing: it names what it asked by
 * `number`. An answer whose number it no longer knows is dropped there (the actor
 * moved, or stopped), so the calls answer each one once and need not ask who is
 * still alive.
 */
#ifndef NODE_CALLS_CALL_H
#define NODE_CALLS_CALL_H

#include "base/bytes.h"
#include "wire/record.h"

#include <ringhold.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

/* In a call's number: the caller's kind is brief, and so is what it does with the answer. */
#define CALL_BRIEF (UINT64_C(1) << 55)

/* Borrowed, all of it. Everything is within its limits: id 1..RECORD_ID_MAX bytes, payload at most
 * RECORD_BODY_MAX. */
struct call {
    uint32_t worker;    /* whose runtime asks */
    uint64_t run;       /* ticket of the message in whose midst it asks; 0 = it does not */
    uint64_t number;    /* of the call at this node, never used again; 0 = rh_send() */
    uint64_t session;   /* of the incarnation that calls, at this node: what it asks of one other
                           actor runs there in order */
    uint16_t from_kind; /* who calls */
    struct bytes from;  /* empty: the program around the node does (node/outside_uv.h) */
    uint16_t kind;      /* whom */
    struct bytes id;
    struct bytes payload;
    size_t count;        /* of a broadcast: id is so many of them, each u8 size, bytes; else 0 */
    bool push;           /* rh_push_ids(): payload is a session note, for an actor that is awake */
    bool outgoing;       /* rh_send_once(): payload is a note of it, for the actor's runtime */
    uint32_t timeout_ms; /* 1..60000; 0 = rh_send() */
    uint32_t flags;      /* enum rh_message_flags: NO_REPLY = rh_send(), IDEMPOTENT */
    /* Of the message that the caller runs: the actors whose calls led to it, without the caller
     * itself. None when it calls from a turn. */
    uint8_t chain_count;
    uint64_t chain[RECORD_CHAIN_MAX];
};

/* Broadcasts of all actors of a node: counted up by who makes them, on any thread, and down by who
 * hands them out. */
struct broadcasting {
    _Atomic size_t size;      /* bytes of those that wait */
    _Atomic uint64_t refused; /* for that was too much */
};

/* What all runtimes of a node number together, on any thread: an actor may come on another of them,
 * and what it numbered on the one must be older than what it numbers on the other. */
struct numbering {
    _Atomic uint64_t bonds;   /* within one fence stamps of bonds grow, for a fence has one owner */
    _Atomic uint64_t calls;   /* an answer that comes late finds nothing, never another call */
    _Atomic uint64_t callers; /* the calls of two incarnations are not taken for one another's */
    _Atomic uint64_t starts;  /* likewise of bonds: of rh_incarnation() */
};

struct call_answer {
    uint32_t worker; /* as of the call */
    uint64_t number;
    int status; /* enum rh_result: OK, FAILED, UNKNOWN to QUARANTINED, DEADLOCK */
    struct bytes payload;
};

#endif
