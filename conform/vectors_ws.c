/* SPDX-License-Identifier: Apache-2.0
 *
 * WebSockets: their handshake, and frames that break the rules of RFC 6455.
 */
#include "conform/conform.h"

#define GET        "GET {path} HTTP/1.1|"
#define HOST       "Host: {host}|"
#define UPGRADE    "Upgrade: websocket|"
#define CONNECTION "Connection: Upgrade|"
#define KEY        "Sec-WebSocket-Key: {key}|"
#define VERSION    "Sec-WebSocket-Version: 13|"
#define HELLO      "01 000006 5248 01 01 0000"

// clang-format off
static const struct vector vectors[] = {
    // The handshake.
    {"a handshake makes a WebSocket", FROM_DIAL, OF_WS,
     "http " GET HOST UPGRADE CONNECTION KEY VERSION "\nupgraded\n> " HELLO "\ngreeted"},
    {"a handshake may come byte by byte", FROM_DIAL, OF_WS,
     "http-drip " GET HOST UPGRADE CONNECTION KEY VERSION "\nupgraded\n> " HELLO "\ngreeted"},
    {"names and words of a handshake may be in any case", FROM_DIAL, OF_WS,
     "http " GET "hOST:{host}|UPGRADE:   WebSocket|connection: keep-alive, upgrade|"
     "sec-websocket-key: {key}|SEC-WEBSOCKET-VERSION: 13|\nupgraded"},
    {"what follows a ? in the path is passed over", FROM_DIAL, OF_WS,
     "http GET {path}?a=b HTTP/1.1|" HOST UPGRADE CONNECTION KEY VERSION "\nupgraded"},
    {"the protocol that a client names is answered", FROM_DIAL, OF_WS,
     "http " GET HOST UPGRADE CONNECTION KEY VERSION "Sec-WebSocket-Protocol: other, ringhold.v1|\n"
     "upgraded ringhold.v1"},
    {"another protocol is not", FROM_DIAL, OF_WS,
     "http " GET HOST UPGRADE CONNECTION KEY VERSION "Sec-WebSocket-Protocol: other|\nupgraded"},
    {"no extension is agreed on", FROM_DIAL, OF_WS,
     "http " GET HOST UPGRADE CONNECTION KEY VERSION
     "Sec-WebSocket-Extensions: permessage-deflate; client_max_window_bits|\nupgraded"},
    {"what follows the handshake need not wait for its answer", FROM_DIAL, OF_WS,
     "http " GET HOST UPGRADE CONNECTION KEY VERSION "\nframe 82 " HELLO "\nupgraded\ngreeted"},
    {"another path is refused", FROM_DIAL, OF_WS,
     "http GET /no/such/path HTTP/1.1|" HOST UPGRADE CONNECTION KEY VERSION "\nrefused 404"},
    {"another method is refused", FROM_DIAL, OF_WS,
     "http POST {path} HTTP/1.1|" HOST UPGRADE CONNECTION KEY VERSION "\nrefused 405"},
    {"HTTP that is no upgrade is refused", FROM_DIAL, OF_WS,
     "http " GET HOST "\nrefused 426"},
    {"version 12 is refused", FROM_DIAL, OF_WS,
     "http " GET HOST UPGRADE CONNECTION KEY "Sec-WebSocket-Version: 12|\nrefused 426"},
    {"no version is refused", FROM_DIAL, OF_WS,
     "http " GET HOST UPGRADE CONNECTION KEY "\nrefused 426"},
    {"HTTP/1.0 is refused", FROM_DIAL, OF_WS,
     "http GET {path} HTTP/1.0|" HOST UPGRADE CONNECTION KEY VERSION "\nrefused 400"},
    {"no Host is refused", FROM_DIAL, OF_WS,
     "http " GET UPGRADE CONNECTION KEY VERSION "\nrefused 400"},
    {"no Connection is refused", FROM_DIAL, OF_WS,
     "http " GET HOST UPGRADE KEY VERSION "\nrefused 400"},
    {"no key is refused", FROM_DIAL, OF_WS,
     "http " GET HOST UPGRADE CONNECTION VERSION "\nrefused 400"},
    {"a key that is too short is refused", FROM_DIAL, OF_WS,
     "http " GET HOST UPGRADE CONNECTION "Sec-WebSocket-Key: c2hvcnQ=|" VERSION "\nrefused 400"},
    {"a request with a body is refused", FROM_DIAL, OF_WS,
     "http " GET HOST UPGRADE CONNECTION KEY VERSION "Content-Length: 5|\nrefused 400"},
    {"a header with a byte of control is refused", FROM_DIAL, OF_WS,
     "http " GET HOST UPGRADE CONNECTION KEY VERSION "X-Odd: a\001b|\nrefused 400"},
    {"more than 8 KiB of headers are refused", FROM_DIAL, OF_WS,
     "http " GET HOST UPGRADE CONNECTION KEY VERSION "X-Long: {long}|\nrefused 431"},
    {"a packet instead of a handshake is refused", FROM_DIAL, OF_WS,
     "raw " HELLO "\nrefused 400"},
    {"TLS instead of a handshake is refused", FROM_DIAL, OF_WS,
     "raw 1603010200010001fc0303\nrefused 400"},
    {"empty lines instead of a handshake are refused", FROM_DIAL, OF_WS,
     "raw 0d0a0d0a0d0a\nrefused 400"},
    {"half a handshake and the end are no harm", FROM_DIAL, OF_WS,
     "http-part " GET HOST "\nhalf-close\ngone"},
    {"the end instead of a handshake is no harm", FROM_DIAL, OF_WS,
     "half-close\ngone"},
    {"a client that sends nothing gets no handshake", FROM_DIAL, OF_PATIENT_WS,
     "refused 408"},
    {"a client that sends half a handshake gets none", FROM_DIAL, OF_PATIENT_WS,
     "http-part " GET HOST "\nrefused 408"},

    // Messages.
    {"a text message is closed", FROM_START, OF_WS,
     "frame 81 68656c6c6f\nclosed 1003"},
    {"an empty text message is closed", FROM_START, OF_WS,
     "frame 81\nclosed 1003"},
    {"an empty message is closed", FROM_START, OF_WS,
     "frame 82\nclosed 1008"},
    {"a message that is half a packet's head is closed", FROM_START, OF_WS,
     "frame 82 01 0000\nclosed 1008"},
    {"a message that is half a packet is closed", FROM_START, OF_WS,
     "frame 82 01 000006 5248 01 01 00\nclosed 1008"},
    {"a message that is two packets is closed", FROM_START, OF_WS,
     "frame 82 " HELLO " 03 000001 78\nclosed 1008"},
    {"a message over the limit is closed", FROM_START, OF_WS,
     "raw 82 ff 0000000000ffffff 00000000 00\nclosed 1009"},
    {"a message longer than any is closed", FROM_START, OF_WS,
     "raw 82 ff 7fffffffffffffff 00000000 00\nclosed 1009"},
    {"a message may come in fragments, with pings between them", FROM_START, OF_WS,
     "frame 02 01 0000\nframe 89 686579\nframe 00\nframe 80 06 5248 01 01 0000\npong 686579\n"
     "greeted"},
    {"the rest of no message is closed", FROM_START, OF_WS,
     "frame 80 " HELLO "\nclosed 1002"},
    {"a message within another is closed", FROM_START, OF_WS,
     "frame 02 01 0000\nframe 82 " HELLO "\nclosed 1002"},

    // Frames.
    {"a frame without a mask is closed", FROM_START, OF_WS,
     "bare 82 " HELLO "\nclosed 1002"},
    {"a ping without a mask is closed", FROM_START, OF_WS,
     "bare 89 78\nclosed 1002"},
    {"a frame with the first reserved bit is closed", FROM_START, OF_WS,
     "frame c2 " HELLO "\nclosed 1002"},
    {"a frame with the second reserved bit is closed", FROM_START, OF_WS,
     "frame a2 " HELLO "\nclosed 1002"},
    {"a frame with the third reserved bit is closed", FROM_START, OF_WS,
     "frame 92 " HELLO "\nclosed 1002"},
    {"a frame of opcode 3 is closed", FROM_START, OF_WS,
     "frame 83 78\nclosed 1002"},
    {"a frame of opcode 7 is closed", FROM_START, OF_WS,
     "frame 87 78\nclosed 1002"},
    {"a frame of opcode 11 is closed", FROM_START, OF_WS,
     "frame 8b 78\nclosed 1002"},
    {"a frame of opcode 15 is closed", FROM_START, OF_WS,
     "frame 8f 78\nclosed 1002"},
    {"a length of two bytes that one could hold is closed", FROM_START, OF_WS,
     "raw 82 fe 0005 00000000 0000000000\nclosed 1002"},
    {"a length of eight bytes that two could hold is closed", FROM_START, OF_WS,
     "raw 82 ff 0000000000000005 00000000 0000000000\nclosed 1002"},
    {"half a frame and the end are no harm", FROM_START, OF_WS,
     "raw 82 8a 00000000 01 000006\nhalf-close\ngone"},

    // Frames of control.
    {"a WebSocket's ping is answered", FROM_START, OF_WS,
     "frame 89 78\npong 78"},
    {"a WebSocket's ping of 125 bytes is answered", FROM_START, OF_WS,
     "frame 89 6161616161616161616161616161616161616161616161616161616161616161616161616161616"
     "1616161616161616161616161616161616161616161616161616161616161616161616161616161616161616"
     "16161616161616161616161616161616161616161616161616161616161616161616161616161616161\n"
     "pong 61616161616161616161616161616161616161616161616161616161616161616161616161616161616"
     "1616161616161616161616161616161616161616161616161616161616161616161616161616161616161616"
     "1616161616161616161616161616161616161616161616161616161616161616161616161616161"},
    {"a WebSocket's ping of 126 bytes is closed", FROM_START, OF_WS,
     "raw 89 fe 007e 00000000\nclosed 1002"},
    {"a ping in fragments is closed", FROM_START, OF_WS,
     "frame 09 78\nclosed 1002"},
    {"an unasked pong is ignored", FROM_START, OF_WS,
     "frame 8a 78\n> " HELLO "\ngreeted"},
    {"a flood of WebSocket's pings is closed", FROM_START, OF_WS,
     "pings 1000\nclosed 1008"},
    {"a close is answered with its code", FROM_START, OF_WS,
     "frame 88 03e8\nclosed 1000"},
    {"a close with a reason is answered with its code", FROM_START, OF_WS,
     "frame 88 03e9 627965\nclosed 1001"},
    {"a close with a code of the client's own is answered with it", FROM_START, OF_WS,
     "frame 88 0bb8\nclosed 3000"},
    {"a close without a code is answered", FROM_START, OF_WS,
     "frame 88\nclosed 1005"},
    {"a close behind hello is answered", FROM_HELLO, OF_WS,
     "frame 88 03e8\nclosed 1000"},
    {"what follows a close is not answered", FROM_HELLO, OF_WS,
     "frame 88 03e8\nframe 82 03 000001 78\nclosed 1000"},
    {"a close with half a code is closed", FROM_START, OF_WS,
     "frame 88 03\nclosed 1002"},
    {"a close with code 999 is closed", FROM_START, OF_WS,
     "frame 88 03e7\nclosed 1002"},
    {"a close with code 1004 is closed", FROM_START, OF_WS,
     "frame 88 03ec\nclosed 1002"},
    {"a close with code 1005 is closed", FROM_START, OF_WS,
     "frame 88 03ed\nclosed 1002"},
    {"a close with code 1006 is closed", FROM_START, OF_WS,
     "frame 88 03ee\nclosed 1002"},
    {"a close whose reason is no UTF-8 is closed", FROM_START, OF_WS,
     "frame 88 03e8 c0af\nclosed 1007"},
    {"a close whose reason is UTF-8 that is cut is closed", FROM_START, OF_WS,
     "frame 88 03e8 e282\nclosed 1007"},
    {"a close in fragments is closed", FROM_START, OF_WS,
     "frame 08 03e8\nclosed 1002"},
};
// clang-format on

const struct vectors conform_frames = {vectors, sizeof vectors / sizeof vectors[0]};
