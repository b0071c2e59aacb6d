/* SPDX-License-Identifier: Apache-2.0
 *
 * What a gateway must do with skynet's frames. What packets say is tried through them, too.
 */
#include "conform/conform.h"

// clang-format off
static const struct vector vectors[] = {
    {"the page's hello in a frame is answered in one", FROM_START, OF_SKYNET,
     "raw 0007 01 5248 01 01 0000\ngreeted"},
    {"the page's ping in a frame comes back as a pong", FROM_HELLO, OF_SKYNET,
     "raw 0002 03 78\n< 04 000001 78\nsilence"},
    {"a frame of a type alone is a packet", FROM_HELLO, OF_SKYNET,
     "raw 0001 03\n< 04 000000\nsilence"},
    {"frames in one write are each a packet", FROM_HELLO, OF_SKYNET,
     "raw 0002 03 61 0002 03 62\n< 04 000001 61\n< 04 000001 62\nsilence"},
    {"a frame in parts is one packet", FROM_HELLO, OF_SKYNET,
     "raw 00\nraw 03\nraw 03\nraw 61\nraw 62\n< 04 000002 6162\nsilence"},
    {"the page's request in a frame is answered", FROM_AUTH, OF_SKYNET,
     "raw 0012 06 01020304 01 04 0506 626f7373 6869742037\nstatus 16909060 any"},
    {"a frame without a type is kicked", FROM_AUTH, OF_SKYNET,
     "raw 0000\nkick 100"},
    {"a frame without a type instead of a hello is kicked", FROM_START, OF_SKYNET,
     "raw 0000 0007 01 5248 01 01 0000\nkick 100"},
    {"what came before a frame without a type is dropped, or answered before it", FROM_HELLO,
     OF_SKYNET, "raw 0002 03 78 0000\ngone"},
    {"half a frame's size and the end are no harm", FROM_AUTH, OF_SKYNET,
     "raw 00\nhalf-close\ngone"},
    {"half a frame and the end are no harm", FROM_AUTH, OF_SKYNET,
     "raw 0009 03 61\nhalf-close\ngone"},
};
// clang-format on

const struct vectors conform_skynet = {vectors, sizeof vectors / sizeof vectors[0]};
