/* SPDX-License-Identifier: Apache-2.0
 *
 * Sessions that outlive their connection: bind with keep, resume, ack, begun.
 */
#include "conform/conform.h"

// clang-format off
static const struct vector vectors[] = {
    // Packets that make no sense.
    {"an ack without a session is passed over", FROM_AUTH, OF_ALL,
     "> 11 00000c  0000000000000005 00000008\nsilence"},
    {"fields that a later version appends to ack are passed over", FROM_AUTH, OF_ALL,
     "> 11 00000e  0000000000000005 00000008 abcd\nsilence"},
    {"an ack of 0 bytes is kicked", FROM_AUTH, OF_ALL,
     "> 11 000000\nkick 100"},
    {"an ack of 7 bytes is kicked", FROM_AUTH, OF_ALL,
     "> 11 000007  00000000000000\nkick 100"},
    {"an ack of 8 bytes is kicked", FROM_AUTH, OF_ALL,
     "> 11 000008  0000000000000005\nkick 100"},
    {"an ack of 11 bytes is kicked", FROM_AUTH, OF_ALL,
     "> 11 00000b  0000000000000005 000000\nkick 100"},
    {"a begun before hello is kicked", FROM_START, OF_ALL,
     "> 10 000024  000000000000000000000000000000000000000000000000 0000000000000001 00007530\n"
     "kick 102"},
    {"a begun before auth is kicked", FROM_HELLO, OF_KEYS,
     "> 10 000024  000000000000000000000000000000000000000000000000 0000000000000001 00007530\n"
     "kick 106"},
    {"a begun is kicked", FROM_AUTH, OF_ALL,
     "> 10 000024  000000000000000000000000000000000000000000000000 0000000000000001 00007530\n"
     "kick 100"},
    {"a resume of 0 bytes is kicked", FROM_AUTH, OF_ALL,
     "> 0e 000000\nkick 100"},
    {"a resume of 7 bytes is kicked", FROM_AUTH, OF_ALL,
     "> 0e 000007  00000007000400\nkick 100"},
    {"a resume without id is BAD_REQUEST", FROM_AUTH, OF_ALL,
     "> 0e 000008  00000007 00 00 0000\nstatus 7 9\nsilence"},
    {"a resume without its session is BAD_REQUEST", FROM_AUTH, OF_ALL,
     "ask 14 7\nstatus 7 9\nsilence"},
    {"a resume whose session is cut is BAD_REQUEST", FROM_AUTH, OF_ALL,
     "ask 14 7 0102030405060708 0102030405060708 0102030405060708 0000000000000000 000000\n"
     "status 7 9\nsilence"},
    {"a resume of a session of zeros is BAD_REQUEST", FROM_AUTH, OF_ALL,
     "ask 14 7 0000000000000000 0000000000000000 0000000000000000 0000000000000000 00000001\n"
     "status 7 9\nsilence"},
    {"a resume of a session that never was is refused", FROM_AUTH, OF_ALL,
     "ask 14 7 0102030405060708 0102030405060708 0000000000000001 0000000000000000 00000001\n"
     "status 7 2,6,8\nsilence"},
    {"a resume over the limit is kicked", FROM_AUTH, OF_ALL,
     "big 14 over\nkick 101"},
    {"a request that was sent before, without a session, is BAD_REQUEST", FROM_AUTH, OF_ALL,
     "again 3 00\nstatus 3 9\nsilence"},

    // Binds that are to be kept.
    {"a bind with keep is answered by a session", FROM_AUTH, OF_ALL,
     "keep 1\nkept 1\nsilence"},
    {"requests of a session are answered", FROM_AUTH, OF_ALL,
     "keep 1\nkept 1\nask 6 1\nstatus 1 any\nask 6 2\nstatus 2 any\nack 3\nsilence"},
    {"in a session a request named 0 is BAD_REQUEST", FROM_AUTH, OF_ALL,
     "keep 1\nkept 1\nask 6 0\nstatus 0 9\nsilence"},
    {"a second bind with keep is BAD_REQUEST", FROM_AUTH, OF_ALL,
     "keep 1\nkept 1\nkeep 2\nstatus 2 9\nsilence"},
    {"acks without end, of what never was, are no harm", FROM_AUTH, OF_ALL,
     "keep 1\nkept 1\nack 1\nack 0\nack 4294967295\n> 11 00000c  ffffffffffffffff ffffffff\n"
     "ask 6 1\nstatus 1 any\nsilence"},

    // Resumes.
    {"a session is resumed by another connection", FROM_AUTH, OF_ALL,
     "keep 1\nkept 1\nredial\nresume 1 all 1\nresumed 1\nask 6 1\nstatus 1 any\nsilence"},
    {"a session is resumed time and again", FROM_AUTH, OF_ALL,
     "keep 1\nkept 1\nredial\nresume 1 all 1\nresumed 1\nredial\nresume 1 all 1\nresumed 1\nredial\n"
     "resume 1 all 1\nresumed 1\nask 6 1\nstatus 1 any\nsilence"},
    {"a session is resumed behind a kick for bytes that are no packet", FROM_AUTH, OF_ALL,
     "keep 1\nkept 1\nredial\nresume 1 all 1\nresumed 1\n> 63 000000\nkick 100\nredial\n"
     "resume 1 all 1\nresumed 1\nsilence"},
    {"a request that is sent again is answered with what it answered then", FROM_AUTH, OF_ALL,
     "keep 1\nkept 1\nask 6 1 68 69\nanswer 1\nredial\nresume 1 all 1\nresumed 1\nagain 1 68 69\n"
     "same 1\nsilence"},
    {"a request that is sent again twice is answered twice with the same", FROM_AUTH, OF_ALL,
     "keep 1\nkept 1\nask 6 1 68 69\nanswer 1\nredial\nresume 1 all 1\nresumed 1\nredial\n"
     "resume 2 all 1\nresumed 2\nagain 1 68 69\nsame 1\nask 6 2\nstatus 2 any\nsilence"},
    {"a request that never arrived runs when it is sent again", FROM_AUTH, OF_ALL,
     "keep 1\nkept 1\nredial\nresume 1 all 1\nresumed 1\nagain 1 68 69\nstatus 1 any\nsilence"},
    {"the connection before is kicked when its session is resumed", FROM_AUTH, OF_ALL,
     "keep 1\nkept 1\nanother\nresume 1 all 1\nresumed 1\nother\nkick 1"},
    {"a resume that is older than one that was taken is REJECTED, and kicks nobody", FROM_AUTH, OF_ALL,
     "keep 1\nkept 1\nanother\nresume 1 all 1 2\nresumed 1\nother\nkick 1\nredial\n"
     "resume 1 all 1 1\nrejected 1 REPLACED\nother\nask 6 1\nstatus 1 any\nsilence"},
    {"a resume that counts no attempt is taken behind one that does", FROM_AUTH, OF_ALL,
     "keep 1\nkept 1\nredial\nresume 1 all 1 2\nresumed 1\nredial\nresume 1 all 1\nresumed 1\nsilence"},
    {"behind another bind a resume is REJECTED, as REPLACED", FROM_AUTH, OF_ALL,
     "keep 1\nkept 1\nanother\nask 11 1\nbound 1\nother\nkick 1\nredial\nresume 1 all 1\n"
     "rejected 1 REPLACED\nsilence"},
    {"behind an unbind a resume is REJECTED, as GONE", FROM_AUTH, OF_ALL,
     "keep 1\nkept 1\n> 0c 000004  00000009\nstatus 9 0\nredial\nresume 1 all 1\nrejected 1 GONE\n"
     "silence"},
    {"behind a REJECTED resume one may bind anew", FROM_AUTH, OF_ALL,
     "keep 1\nkept 1\n> 0c 000004  00000009\nstatus 9 0\nredial\nresume 1 all 1\nrejected 1 GONE\n"
     "keep 2\nkept 2\nsilence"},

    // Pushes.
    {"pushes arrive in order", FROM_AUTH, OF_PUSH,
     "keep 1\nkept 1\nask-push 1\nask-push 2\nask-push 3\npushes 3"},
    {"a push that isn't acknowledged comes again", FROM_AUTH, OF_PUSH,
     "keep 1\nkept 1\nask-push 1\npushes 1\nredial\nresume 2 none 1\nresumed 2\npushes 1"},
    {"a push that is acknowledged does not come again", FROM_AUTH, OF_PUSH,
     "keep 1\nkept 1\nask-push 1\npushes 1\nack 2\nredial\nresume 2 all 2\nresumed 2\nask-push 2\n"
     "pushes 2"},
};
// clang-format on

const struct vectors conform_sessions = {vectors, sizeof vectors / sizeof vectors[0]};
