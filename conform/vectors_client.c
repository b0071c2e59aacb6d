/* SPDX-License-Identifier: Apache-2.0
 *
 * What a library for game clients must do: with honest gateways, and with such that lie.
 */
#include "conform/client.h"

/* What a gateway says first, and the answers to a bind and a resume. */
#define ACK       "2 01 00 0000 00007530 00010000 00000400 1122334455667788\n"
#define BIND      "< 11 ........ 04 02 0007 'me'\n"
#define SESSION_1 "> 7 NAME 00 00000000 SESSION 0000000000000001 00007530\n"
#define BACK      "come\ngreet\n"
#define BOUND     "meet\nsays bound afresh\n"

const struct client_vector conform_client_vectors[] = {
    /* ---- packets */
    {"hello, bind and its answer are the page's",
     .script = "come\n< 1 5248 01 01 0000\n> " ACK BIND SESSION_1 "says bound afresh\n"},
    {"a request and a notify are the page's",
     .script = BOUND "type hello\n< 6 ........ 00 02 0007 'me' 'hello'\n> 7 NAME 00 00000000 "
                     "'yes'\nsays answer OK yes\ntype !note\n< 8 "
                     "........ 00 02 0007 'me' 'note'\n"},
    {"names of requests grow over all connections of a session",
     .script = BOUND
     "type a\n< 6 00000001 00 02 0007 'me' 'a'\nanswer a 0\nsays answer OK\ntype b\n< 6 00000002 "
     "00 02 0007 'me' "
     "'b'\nanswer b 0\nsays answer OK\nclose\n" BACK
     "< 14 ........ 00 02 0007 'me' SESSION 0000000000000000 00000003 0001\nanswer resume 0 \n"
     "says bound again\ntype c\n< 6 00000003 00 02 0007 'me' 'c'\nanswer c 0 x\nsays answer OK "
     "x\n"},
    {"a ping comes back as a pong",
     .script = BOUND "> 3 78\n< 4 78\n> 3\n< 4\n> 3 noise:64\n< 4 noise:64\n"},
    {"packets in pieces",
     .script = "come\ndrip\ngreet\n" BIND SESSION_1
               "says bound afresh\n> 9 0000000000000001 'hi'\nsays push 1 lost 0 hi\n"},
    {"many packets at once",
     .script = BOUND "type a\nasked a\ngather\n> 9 0000000000000001 'one'\nanswer a 0 yes\n> 9 "
                     "0000000000000002 'two'\n> 3 78\ngo\nsays "
                     "push 1 lost 0 one\nsays answer OK yes\nsays push 2 lost 0 two\n< 4 78\n"},
    {"a large answer and a large push",
     .script = BOUND "type a\nasked a\n> 7 NAME 00 00000000 x:100\nsays answer OK xxxx*\n> 9 "
                     "0000000000000001 x:1000000\nsays push 1 lost 0 "
                     "xxxx*\n"},
    {"fields and packets of later versions are passed over",
     .script =
         "come\n< 1 5248 01 01 0000\n> 2 01 00 0000 00007530 00010000 00000400 1122334455667788 "
         "'later'\n" BIND SESSION_1 "> 128 'hey'\n> 200\n> 255 noise:100\nsays bound afresh\ntype "
         "a\nasked a\nanswer a 0 yes\nsays answer OK yes\n"},

    /* ---- answers */
    {"each status is told",
     .script = BOUND "type 1\nasked 1\nanswer 1 1 no\nsays answer ACTOR_FAILED no\ntype 2\nasked "
                     "2\nanswer 2 2\nsays answer UNKNOWN\n"
                     "type 3\nasked 3\nanswer 3 3\nsays answer TIMEOUT\ntype 4\nasked 4\nanswer 4 "
                     "4\nsays answer MOVING\n"
                     "type 5\nasked 5\nanswer 5 5\nsays answer OVERLOADED\ntype 6\nasked 6\nanswer "
                     "6 6\nsays answer NO_OWNER\n"
                     "type 7\nasked 7\nanswer 7 7\nsays answer QUARANTINED\ntype 8\nasked "
                     "8\nanswer 8 8 no\nsays answer REJECTED no\n"
                     "type 9\nasked 9\nanswer 9 9\nsays answer BAD_REQUEST\ntype a\nasked "
                     "a\nanswer a 10\nsays answer UNAUTHORIZED\n"
                     "type b\nasked b\nanswer b 11\nsays answer RATE_LIMITED\n"},
    {"a status of a later version is UNKNOWN",
     .script = BOUND "type a\nasked a\nanswer a 99 hm\nsays answer UNKNOWN hm\n"},
    {"answers come in any order",
     .script = BOUND "type a\ntype b\ntype c\nasked a\nasked b\nasked c\nanswer c 0 C\nanswer a 0 "
                     "A\nanswer b 0 B\nsays answer OK C\nsays "
                     "answer OK A\nsays answer OK B\n"},
    {"answers come once: a second one, and such that nobody waits for, are passed over",
     .script = BOUND
     "> 7 00000000 00 00000000 'junk'\n> 7 0000004d 02 00000000 'junk'\n> 7 ffffffff 00 00000000 "
     "'junk'\n> 7 7ffffffe 00 00000000 "
     "'junk'\n> 7 7fffffff 00 00000000 'junk'\n> 7 7fffffff 08 00000000 'GONE'\ntype a\nasked "
     "a\nanswer a 0 yes\nanswer a 0 no\nanswer a 1 no\nsays answer OK yes\ntype b\nasked "
     "b\nanswer a 0 no\nanswer b 0 yes\nsays answer OK yes\n"},
    {"a request without an answer ends as TIMEOUT",
     .script = BOUND "type a\nasked a\nsays answer TIMEOUT\n",
     .slow = true},
    {"a request that reaches no gateway ends as MOVING",
     .script = "type a\nsays answer MOVING\n",
     .slow = true},
    {"requests of before the first connection are sent, in order, behind the bind",
     .script = "type a\ntype !n\ntype b\ncome\ngreet\n" BIND SESSION_1
               "asked a\ntold n\nasked b\nanswer a 0 1\nanswer b 0 2\nsays answer OK 1\nsays "
               "answer OK 2\nsays bound afresh\n"},

    /* ---- binds */
    {"a bind that is refused is told, and requests go on",
     .script = "come\ngreet\nrefuse\nsays refused REFUSED\n"},
    {"a bind that finds nobody is tried again there",
     .script = "come\ngreet\n" BIND "answer bind 4\n" BIND "answer bind 5\n" BIND SESSION_1
               "says bound afresh\n"},
    {"a bind that is answered a second time, too, is tried again all the same",
     .script = "come\ngreet\n" BIND "gather\nanswer bind 4\n" SESSION_1 "go\n" BIND SESSION_1
               "says bound afresh\n"},
    {"a bind in doubt is tried again at another connection",
     .script = "come\ngreet\n" BIND "answer bind 2\ngone\nmeet\nsays bound afresh\n"},
    {"a gateway that keeps no sessions gets a plain bind",
     .script =
         "come\ngreet\n" BIND
         "answer bind 9 flags\n< 11 ........ 00 02 0007 'me'\nanswer bind 0\nsays bound afresh\n"
         "> 9 0000000000000001 'a'\nsays push 1 lost 0 a\nclose\nmeet\nsays bound afresh\n> 9 "
         "0000000000000001 'a'\nsays push 1 lost 0 a\n"},
    {"what stands behind a bind waits for its answer",
     .script = "type a\ncome\ngreet\n" BIND "> 3 78\n< 4 78\n" SESSION_1
               "asked a\nanswer a 0 yes\nsays answer OK yes\nsays bound afresh\n"},

    /* ---- pushes */
    {"pushes come in order, each once, and what is lost is told",
     .script =
         BOUND "> 9 0000000000000001 'a'\n> 9 0000000000000002 'b'\n> 9 0000000000000002 'b'\n> 9 "
               "0000000000000001 'a'\n> 9 0000000000000005 "
               "'e'\n> 9 0000000000000004 'd'\n> 9 0000000000000006 'f'\n> 9 0000000000000000 "
               "'z'\nsays push 1 lost 0 a\nsays push 2 lost 0 b\nsays push 5 lost 2 e\nsays "
               "push 6 lost 0 f\n"},
    {"pushes before a new session are told as lost",
     .script = "come\ngreet\n" BIND "> 7 NAME 00 00000000 SESSION 0000000000000005 00007530\nsays "
               "bound afresh\n> 9 0000000000000005 'e'\nsays push 5 "
               "lost 4 e\n"},
    {"pushes and answers are acknowledged",
     .script =
         BOUND "> 9 0000000000000001 'a'\n> 9 0000000000000002 'b'\nacked 2\n> 9 0000000000000003 "
               "'c'\nacked 3\nsays push 1 lost 0 a\nsays push 2 lost 0 b\nsays push 3 lost 0 c\n"},

    /* ---- resume */
    {"a session is resumed, and requests without an answer are sent again, in order",
     .script =
         BOUND "> 9 0000000000000001 'one'\nsays push 1 lost 0 one\ntype a\ntype b\ntype !n\ntype "
               "c\nasked a\nasked b\ntold n\nasked "
               "c\nanswer b 0 B\nsays answer OK B\nclose\n" BACK
               "< 14 ........ 00 02 0007 'me' SESSION 0000000000000001 =a 0001\n> 7 NAME 00 "
               "00000000 SESSION 0000000000000002 "
               "00007530\nsays bound again\n< 6 =a 08 02 0007 'me' 'a'\n< 6 =c 08 02 0007 'me' "
               "'c'\n> 9 0000000000000002 'two'\nsays push "
               "2 lost 0 two\nanswer c 0 C\nanswer a 0 A\nsays answer OK A\nsays answer OK C\n"},
    {"resumes are counted, and one that finds nobody is tried again",
     .script = BOUND
     "close\n" BACK
     "< 14 ........ 00 02 0007 'me' SESSION 0000000000000000 00000001 0001\nanswer resume 4\n"
     "< 14 ........ 00 02 0007 'me' SESSION 0000000000000000 00000001 0002\nclose\n" BACK
     "< 14 ........ 00 02 0007 'me' SESSION 0000000000000000 00000001 0003\nanswer resume 0 \nsays "
     "bound again\n"},
    {"pushes that were too many to keep are told as lost",
     .script =
         BOUND "> 9 0000000000000001 'a'\nsays push 1 lost 0 a\nclose\n" BACK
               "< 14 ........ 00 02 0007 'me' SESSION 0000000000000001 00000001 0001\n> 7 NAME 00 "
               "00000000 SESSION 0000000000000009 "
               "00007530\nsays bound again\n> 9 0000000000000009 'i'\nsays push 9 lost 7 i\n"},
    {"where nothing can be resumed it begins afresh, and what was under way is UNKNOWN",
     .script = BOUND "> 9 0000000000000003 'c'\nsays push 3 lost 2 c\ntype a\nasked a\nclose\n" BACK
                     "< 14 *\nanswer resume 8 GONE\n" BIND "says answer UNKNOWN\n" SESSION_1
                     "says bound afresh\n> 9 0000000000000001 'a'\nsays push 1 lost 0 a\n"},
    {"who was replaced stays away",
     .script = BOUND "close\n" BACK "< 14 *\nanswer resume 8 REPLACED\nsays kicked 1 *\nended\n"},
    {"an actor that begins anew counts its pushes anew",
     .script = BOUND "> 9 0000000000000007 'g'\nsays push 7 lost 6 g\ntype a\nasked a\n> 16 OTHER "
                     "0000000000000001 00007530\nsays begun\n"
                     "> 9 0000000000000001 'a'\nsays push 1 lost 0 a\nanswer a 0 yes\nsays answer "
                     "OK yes\ntype b\nasked b\nclose\n" BACK
                     "< 14 ........ 00 02 0007 'me' OTHER 0000000000000001 =b 0001\n> 7 NAME 00 "
                     "00000000 OTHER 0000000000000002 "
                     "00007530\nsays bound again\n< 6 =b 08 02 0007 'me' 'b'\nanswer b 0 yes\nsays "
                     "answer OK yes\n"},
    {"what was sent before it began anew is not sent again",
     .script =
         BOUND "type a\nasked a\n> 16 OTHER 0000000000000001 00007530\nsays begun\nclose\nsays "
               "answer UNKNOWN\n" BACK "< 14 ........ 00 02 0007 'me' OTHER 0000000000000000 "
               "00000002 0001\n> 7 NAME 00 00000000 OTHER 0000000000000001 "
               "00007530\nsays bound again\n"},
    {"what was sent without a session is not sent again",
     .script = "come\ngreet\nrefuse\nsays refused REFUSED\ntype a\nasked a\nclose\nsays answer "
               "UNKNOWN\n"},

    /* ---- gateways that stop */
    {"a gateway that stops gets nothing more, and is left when it has answered",
     .script = BOUND "type a\nasked a\n> 10 00000000 'stop'\nsays goaway *\ntype b\n> 3 78\n< 4 "
                     "78\nanswer a 0 A\nsays answer OK A\ngone\n"
                     "come other\ngreet\n< 14 *\n> 7 NAME 00 00000000 SESSION 0000000000000001 "
                     "00007530\nsays bound again\nasked b\nanswer b 0 "
                     "B\nsays answer OK B\n"},
    {"what a gateway that stops did not run goes to the next, in order",
     .script = BOUND
     "type a\ntype b\ntype c\nasked a\nasked b\nasked c\n> 10 00000000 'stop'\nanswer a 4\nanswer "
     "b 0 B\nanswer c 4\nsays "
     "answer OK B\ngone\ncome other\ngreet\n< 14 *\n> 7 NAME 00 00000000 SESSION 0000000000000001 "
     "00007530\nsays bound "
     "again\nasked a\nasked c\nanswer a 0 A\nanswer c 0 C\nsays answer OK A\nsays answer OK C\n"},
    {"who is turned away comes to another gateway",
     .script =
         "instead 10 00000064 'full'\ncome other\ngreet\n" BIND SESSION_1 "says bound afresh\n"},
    {"a gateway that says nothing more is asked, and left",
     .script = "come\ngreet 0 2000\n" BIND SESSION_1 "says bound afresh\nmute\n< 3 *\nleaves\n" BACK
               "< 14 *\nanswer resume 0 \nsays bound again\n"},
    {"a gateway that never greets is left",
     .script = "come\n< 1 *\nleaves\ncome other\ngreet\nrefuse\n",
     .slow = true},
    {"a hello-ack without an end is left",
     .script =
         "come\n< 1 *\nmessage 02 000018 01 00 0000 00007530\nleaves\ncome other\ngreet\nrefuse\n",
     .slow = true},

    /* ---- kicks */
    {"kicks for good are for good: 1",
     .script = BOUND "> 5 00000001 'bye'\nsays kicked 1 *\nended\n"},
    {"kicks for good are for good: 0",
     .script = BOUND "> 5 00000000 'bye'\nsays kicked 0 *\nended\n"},
    {"kicks for good are for good: 100",
     .script = BOUND "> 5 00000064 'bye'\nsays kicked 100 *\nended\n"},
    {"kicks for good are for good: 101, of nothing that was sent",
     .script = "come\ngreet\nrefuse\nsays refused REFUSED\n> 5 00000065 'bye'\nsays kicked 101 "
               "*\nended\n"},
    {"kicks for good are for good: 103",
     .script = "come\n< 1 *\n> 5 00000067 'bye'\nsays kicked 103 *\nended\n"},
    {"kicks for good are for good: 113",
     .script = BOUND "> 5 00000071 'bye'\nsays kicked 113 *\nended\n"},
    {"kicks for good are for good: 1000",
     .script = BOUND
     "type a\nasked a\n> 5 000003e8 'bye'\nsays answer UNKNOWN\nsays kicked 1000 *\nended\n"},
    {"kicks for good are for good: the largest",
     .script = BOUND "> 5 ffffffff\nsays kicked 4294967295*\nended\n"},
    {"other kicks end the session alone",
     .script =
         "instead 5 00000066 'late'\n" BOUND "> 5 00000068 'silent'\nleaves\nmeet\nsays bound "
         "afresh\n> 5 00000069 'no memory'\nleaves\nmeet\nsays "
         "bound afresh\n"},

    /* ---- limits */
    {"what is larger than the gateway takes is not sent",
     .script = "come\ngreet 0 30000 600\n" BIND SESSION_1
               "says bound afresh\nlarge 700\ntype small\nasked small\nanswer small 0 yes\nsays "
               "answer OK yes\nsays answer "
               "BAD_REQUEST*\nlarge 580\n< 6 ........ 00 02 0007 'me' x:580\n> 7 NAME 00 00000000 "
               "'yes'\nsays answer OK yes\n"},
    {"what was larger than the gateway takes is not sent there, once it says so",
     .script = "large 700\ntype small\ncome\ngreet 0 30000 600\n" BIND SESSION_1
               "says bound afresh\nasked small\nanswer small 0 yes\nsays answer OK yes\nsays "
               "answer BAD_REQUEST*\n"},
    {"what was called too large is not sent again",
     .script = "come\ngreet\nrefuse\nlarge 1001\n< 6 ........ 00 02 0007 'me' "
               "x:1001\ntoo-large\nleaves\nsays answer BAD_REQUEST*\n"},

    /* ---- who it is */
    {"who has no token stays away from a gateway that asks for one",
     .script = "come\ngreet 1\nsays kicked 106*\nended\n"},
    {"a token is shown, and it hears who it is",
     .script =
         "come\ngreet 1\n< 13 'secret'\n> 15 000000006b49d200 0007 02 'me'\nsays known 7 me\n" BIND
             SESSION_1 "says bound afresh\n",
     .token = "secret"},
    {"a gateway that asks for none is shown none", .script = BOUND, .token = "secret"},
    {"a token from the gateway is shown until it is refused",
     .script =
         "come\ngreet 1\n< 13 'secret'\n> 15 000000006b49d200 0007 02 'me' 0005 'given'\n" BIND
             SESSION_1 "says bound afresh\nclose\n"
         "come\ngreet 1\n< 13 'given'\n> 5 0000006f 'expired'\nleaves\n"
         "come\ngreet 1\n< 13 'secret'\n> 15 000000006b49d200 0007 02 'me'\n< 14 *\nanswer resume "
         "0 \nsays bound again\n",
     .token = "secret"},
    {"a token that is refused is refused for good",
     .script = "come\ngreet 1\n< 13 'secret'\n> 5 0000006d 'forged'\nsays kicked 109 *\nended\n",
     .token = "secret"},
    {"it goes on as another entity, when it has its answers",
     .script = BOUND "type a\nasked a\n> 18 0000000000000000 0008 04 'mage'\nsays rebound 8 "
                     "mage\nanswer a 0 A\nsays answer OK A\n< 11 ........ "
                     "04 04 0008 'mage'\n> 7 NAME 00 00000000 OTHER 0000000000000001 "
                     "00007530\nsays bound afresh\ntype b\n< 6 ........ 00 04 0008 'mage' "
                     "'b'\n> 7 NAME 00 00000000 'B'\nsays answer OK B\nclose\n" BACK
                     "< 14 ........ 00 04 0008 'mage' OTHER 0000000000000000 00000003 0001\nanswer "
                     "resume 0 \nsays bound again\n"},
    {"another entity that does not take it is told",
     .script = BOUND "> 18 0000000000000000 0008 04 'mage'\nsays rebound 8 mage\n< 11 ........ 04 "
                     "04 0008 'mage'\nanswer bind 8 REFUSED\nsays refused REFUSED\n"},

    /* ---- lies: each ends the connection, and the client goes on */
    {"lies: a hello-ack that is cut",
     .script = "come\n< 1 *\nmessage 02 000018 01 00 0000 00007530\nhalf\nleaves\ninstead 2 01 00 "
               "0000 00007530\n"},
    {"lies: versions that nobody asked for",
     .script = "instead 2 00 00 0000 00007530 00010000 00000400 1122334455667788\ninstead 2 02 00 "
               "0000 00007530 00010000 00000400 1122334455667788\n"},
    {"lies: limits that nobody has",
     .script = "instead 2 01 00 0000 00007530 00000000 00000400 1122334455667788\ninstead 2 01 00 "
               "0000 00007530 000001ff 00000400 1122334455667788\n"},
    {"lies: something else than a hello-ack",
     .script = "instead 15 zeros:10 01 78\ninstead 7 00000001 00 00000000\ninstead 9 "
               "zeros:8\ninstead 16 zeros:36\n"},
    {"lies: a second hello-ack", .script = "behind " ACK "behind 15 zeros:10 01 78\n"},
    {"lies: packets that no gateway sends", .script = "behind 0\nbehind 99\nbehind 6 zeros:20\n"},
    {"lies: packets that are cut",
     .script = "behind 7 zeros:8\nbehind 9 zeros:7\nbehind 16 zeros:35\n"},
    {"lies: notices that are cut",
     .script = "behind 5 zeros:3\nbehind 10 zeros:3\nbehind 3 zeros:65\n"},
    {"lies: entities that are cut",
     .script =
         "behind 18 zeros:10 00\nbehind 18 zeros:10 ff 78\nbehind 18 zeros:10 01 78 ffff 78\n"},
    {"lies: packets that are larger than it takes",
     .script = "behind 9 zeros:2097152\nbehind 9 zeros:16777215\n"},
    {"lies: a size that is never reached",
     .script = "come\ngreet\nraw 09 ff ff ff 09 ff ff ff 09 ff ff ff\nleaves\n"},
    {"lies: noise",
     .script = "come\ngreet\nraw noise:65536\nhalf\nleaves\ncome\nraw noise:65536\nhalf\nleaves\n"},
    {"lies: an end, at once", .script = "come\nclose\ncome\n< 1 *\nclose\ncome\ngreet\nclose\n"},
    {"lies: a session that is cut",
     .script = BOUND "> 16 zeros:35\nleaves\n" BACK "< 14 *\nanswer resume 0 \nsays bound again\n"},
    {"lies: pushes and a session before the bind is answered",
     .script = "come\ngreet\n" BIND
               "> 9 0000000000000001 'x'\n> 16 OTHER 0000000000000001 00007530\n" SESSION_1
               "says bound afresh\n> 9 0000000000000001 'a'\nsays push 1 lost 0 a\n"},
    {"lies: pushes and a session of nobody",
     .script = "come\ngreet\nrefuse\nsays refused REFUSED\n> 9 ffffffffffffffff 'x'\n> 16 OTHER "
               "0000000000000001 00007530\n"},
    {"lies: a flood of a gateway that does not read",
     .script = "come\ngreet\nrefuse\nflood\nsmall\n"},
    {"what came before a packet that is too large counts",
     .script = BOUND "gather\n> 5 000003e8 'bye'\nraw 09 ff ff ff\nsays kicked 1000 *\nended\n",
     .carrier = "tcp"},
    {"what came before invalid bytes counts",
     .script = BOUND "gather\n> 5 000003e8 'bye'\nraw ff ff ff ff\nsays kicked 1000 *\nended\n",
     .carrier = "ws"},
    {"lies: text in a WebSocket", .script = BOUND "raw 81 05 'hello'\nleaves\n", .carrier = "ws"},
};

const size_t conform_client_count =
    sizeof conform_client_vectors / sizeof conform_client_vectors[0];
