/* SPDX-License-Identifier: Apache-2.0
 *
 * Planted bugs: each takes one rule of specification §1 away, and the simulator must
 * find out (make mutants). In every other build mutant() is a constant false,
 * so no trace of them is left in the code.
 */
#ifndef BASE_MUTANT_H
#define BASE_MUTANT_H

#include <stdbool.h>

#define MUTANT_LIST(X)                                                                \
    X(M_NONE, "no rule removed")                                                      \
    X(M_AHEAD, "a node takes requests of a ring that it does not know yet")           \
    X(M_NODRAIN, "PREPARED leaves before the actors stopped")                         \
    X(M_REPLAY, "a transaction's number is accepted twice")                           \
    X(M_STALE, "an outcome is settled by an old configuration")                       \
    X(M_BASE, "PREPARE is accepted on a configuration older than its base")           \
    X(M_REGRESS, "an older COMMIT is applied over a newer configuration")             \
    X(M_LOCAL, "held requests run here although the arc has gone")                    \
    X(M_NOTAG, "nobody waits for the version a request carries, forwards don't tell") \
    X(M_NOORDER, "requests of a session run as they arrive")                          \
    X(M_NODEDUP, "a request that ran is run again")                                   \
    X(M_NOXFER, "order records stay behind when their actor moves")                   \
    X(M_COLD, "a request from before a cold take-over is run")                        \
    X(M_ATT1, "a first copy from before a cold take-over is run")                     \
    X(M_RESTAMP, "a request is stamped anew although copies of it exist")             \
    X(M_NORETRY, "a request lost with a link is not sent again")                      \
    X(M_NOBASE, "nobody is told that an earlier request was given up")                \
    X(M_NOCHAIN, "the hold keeps back what a running chain waits for")                \
    X(M_EACHREFUSES, "whoever meets his own probe refuses a call of the circle")      \
    X(M_NOCIRCLE, "actors that wait for each other in a circle are not found")        \
    X(M_CONVOY, "a drain keeps back calls that only in a circle wait for it")         \
    X(M_LATE, "a late answer of a fenced owner is taken")                             \
    X(M_STALEWARM, "state staged for an aborted transaction is used later")           \
    X(M_STALEIMAGE, "what went ahead of a hold stands though its actor ran since")    \
    X(M_FIRSTIMAGE, "of an actor's images in one hand-over the first one counts")     \
    X(M_FORMERIMAGE, "what went ahead of a superseded move stands in the next")       \
    X(M_NEWERSTATE, "a state of a newer version is handed to an older node")          \
    X(M_RESTART, "a restarted node serves before it is registered")                   \
    X(M_COMMIT, "the leader commits without all votes")                               \
    X(M_EARLY, "CANCEL leaves before the abort is applied")                           \
    X(M_NOCONF, "a lease is granted without a quorum round")                          \
    X(M_BARRIER, "a new leader acts before it applied what was committed before it")  \
    X(M_NOSTOP, "a fenced node still gets leases")                                    \
    X(M_EAGER, "a silent node is fenced while its lease lasts")                       \
    X(M_NOWAIT, "vnodes are reassigned before the lease ended")                       \
    X(M_NEWLEAD, "a new leader does not wait for the old one's grants")               \
    X(M_DRIFT, "the leader has no margin for the clocks' rates")                      \
    X(M_FENCEPEND, "a fenced node's transactions may still commit")                   \
    X(M_RESTORE, "a restored state serves at once")                                   \
    X(M_UNCOND, "a commit is applied to a transaction that was aborted")              \
    X(M_LOCALNUM, "PREPARE leaves under a guessed number, before the log has it")     \
    X(M_READFIRST, "a registration is answered with an older configuration")          \
    X(M_RECV, "a lease counts from the arrival of its grant")                         \
    X(M_ENDCHK, "the lease is checked when a task starts, not at its outputs")        \
    X(M_RUNOVER, "a task goes on after the hard end of the lease")                    \
    X(M_ERAMSG, "messages of a newer era are followed in place")                      \
    X(M_MONO, "lease clocks stop while the machine sleeps")                           \
    X(M_NOTOKEN, "the store takes writes of any token")                               \
    X(M_READ1ST, "the state is read first, then the token is raised")                 \
    X(M_OVERLAP, "two pending transactions touch one vnode")                          \
    X(M_SNAPSHOT, "COMMIT installs the ring as it was computed at BEGIN")             \
    X(M_VERTXN, "a version is the number of its transaction")                         \
    X(M_ONESLOT, "an outcome releases the holds of all transactions")                 \
    X(M_NOTIMER, "a transaction has no deadline")                                     \
    X(M_NOPOLL, "a node that waits for an outcome does not ask")                      \
    X(M_WAKELOST, "requests that wait while their actor retires are lost")            \
    X(M_RETIREHELD, "an actor retires while it is frozen")                            \
    X(M_RUNENDED, "an actor that has ended itself is given one message more")         \
    X(M_RETURNLOST, "a task that was not begun in time is forgotten")                 \
    X(M_UNTOLD, "a request is answered before the fleet remembers its actor's id")    \
    X(M_NORECALL, "ids that the fleet remembers are not brought back")                \
    X(M_NOREMEMBER, "an actor that lives unasked waits for a request when it moved")  \
    X(M_POKEHELD, "an actor has its turn although it is frozen")                      \
    X(M_SAMENUM_CANCEL, "a new leader goes on with the old number, CANCEL is early")  \
    X(M_ROLE, "cells of a role are given to any node")                                \
    X(M_YOUNGEST, "a singleton goes to the node that came last")                      \
    X(M_ASLEEP, "singletons and daemons wait until they are asked")                   \
    X(M_ONESTRIKE, "whatever ran when a process died is in quarantine at once")       \
    X(M_POISON, "an actor in quarantine is activated like any other")                 \
    X(M_THIRDDEATH, "what two nodes died of is sent to a third")                      \
    X(M_STRIKETWICE, "a death that others told of counts again as the node returns")  \
    X(M_SEALEDON, "the coordinators of an old generation go on behind the SEAL")      \
    X(M_OLDLEADS, "the leader of an old generation goes on as if it led")             \
    X(M_OLDSTATE, "a generation begins from an older state than the SEAL's")          \
    X(M_TERMSANEW, "terms begin anew with each generation")                           \
    X(M_UNFOUNDED, "a generation begins before it is on the disk")                    \
    X(M_OLDFOLDER, "an old copy of a folder proves its former process dead")          \
    X(M_KEEPLINKS, "who stood still reads what lay in its sockets meanwhile")         \
    X(M_KEPTLATE, "what was kept until a lease came is run however late")             \
    X(M_ERAKEPT, "what waits at the gate survives a change of era")                   \
    X(M_PASSEDLATE, "a request that waited is passed on with all the time it had")    \
    X(M_WAITLONG, "a lease is waited for longer than it lasts")                       \
    X(M_ANYCOLD, "a take-over anywhere makes answers of before it UNKNOWN")           \
    X(M_GIVEUP, "what a busy node refuses is rejected though it has time")            \
    X(M_FORCED, "an operator's COMMIT needs no votes")                                \
    X(M_STRAYOWN, "a repair stops actors in the node's own vnodes, too")              \
    X(M_UNKEPT, "a copy of what ran runs again when its answer is not kept any more") \
    X(M_NOPREV, "a request does not name the one before it")                          \
    X(M_LATEGATE, "what a node says leaves until its lease's very end")               \
    X(M_DRAINOVER, "a drain ends with its process")                                   \
    X(M_OLDWISH, "an operator's wish is done again after a later one")                \
    X(M_LASTDRAINS, "the last node of a role may be drained")                         \
    X(M_PINMOVES, "the planner takes what is pinned for any other, once it is there") \
    X(M_EXITANY, "a repair ends a process that is a member")                          \
    X(M_LEFTCOLD, "a merged vnode is as cold as the first of the two")                \
    X(M_SOFTBEGINS, "requests begin in the last part of a lease")                     \
    X(M_FIRSTHEARD, "when all were silent, all but the first that is heard are over") \
    X(M_NONCETWICE, "a registration that is asked for again is made again")           \
    X(M_DIRECTONLY, "a call tells its direct caller alone")                           \
    X(M_NOACQUIT, "a guess about a death stands when the node knows better")          \
    X(M_AWAYANEW, "a client may be away as long again after each move")               \
    X(M_KEPTONCE, "what guards against copies is kept from its making")               \
    X(M_ANYGENERATION, "messages of newer coordinators are followed in place")        \
    X(M_LOWERED, "a leader with shorter leases says so while longer ones last")       \
    X(M_LACKED, "all nodes of a state that was put back are all there are")           \
    X(M_SHORTMARGIN, "the margin of a longer lease is the leader's own")              \
    X(M_EXTENDEARLY, "leases are extended before the log has their length")           \
    X(M_EXTENDIGNORED, "who waits for a lease takes it for one of the leader's own")  \
    X(M_EXTENDTRUSTED, "who was granted a short lease is taken to have no long one")  \
    X(M_EARLIERCOUNTS, "a grant of an earlier renewal than the one in force counts")  \
    X(M_EXTENDDROPPED, "the longest lease is forgotten while extended ones last")     \
    X(M_PROBEONCE, "a call that waits on sends no second probe")                      \
    X(M_PROBESAGAIN, "probes go along the same call again and again")                 \
    X(M_SPLITWARM, "a vnode that is split has a half that was never cold")            \
    X(M_BASEGONE, "an answer goes as soon as its own request is the lowest")          \
    X(M_RETIREFORGETS, "what guards against copies goes as its actor retires")        \
    X(M_GAVEUP, "what is not sent at its deadline is rejected, whatever ran")         \
    X(M_SETSTAYS, "of a set that shrinks the last go on")                             \
    X(M_ANYZONE, "a role that is kept in a zone gets cells of any")                   \
    X(M_TAGSPLIT, "ids of one tag live where each would without it")                  \
    X(M_NOTHOST, "cells of a kind are given to nodes that don't host it")             \
    X(M_CANARYWHOLE, "a canary gets its share by its whole weight")                   \
    X(M_OLDESTDRAINS, "a singleton may go to a node that drains")                     \
    X(M_STOPSTAYS, "a stop is in force behind the process that it ended")             \
    X(M_LATECALL, "a call passes a hold whose images are complete")                   \
    X(M_SEENUNTOLD, "a leader isn't told of transactions that only a node knows")     \
    X(M_UNASKED, "where no node is registered, all have said that they know no more") \
    X(M_COLDLOST, "a restore forgets who was taken over before it")                   \
    X(M_LATEREFUSAL, "who said before its election that it does not lead, does not")  \
    X(M_SLEEPERASKED, "what is only for who is awake is asked again of who sleeps")   \
    X(M_PUTOFFRUNS, "a call that was refused for a circle runs by a copy put off")    \
    X(M_RESTLESS, "what moved for the load's sake may be moved again at once")        \
    X(M_LISTOMITS, "a page of the actors ends amid a bucket, whose rest is in none")

/* Of what is on a disk: the simulator, over shipped files. */
#define MUTANT_STORAGE_LIST(X)                                                       \
    X(M_LEASELOST, "the longest lease is not in snapshots")                          \
    X(M_ERALOST, "a state that was restored does not wait for the leases of before") \
    X(M_LOGSYNC, "the log is not synced")                                            \
    X(M_TAILFIRST, "the witness of the log is written before what it is of")         \
    X(M_NUMBERSYNC, "a node's number is not synced")                                 \
    X(M_NAMESYNC, "the name of a new number file is not synced")

/* Of the node's worker threads, which no simulator reaches: tests/node/node_threads_test.c
 * --mutants. */
#define MUTANT_THREAD_LIST(X)                                             \
    X(M_RECALL, "a worker begins what was taken back from its queue")     \
    X(M_STARTCHK, "a worker begins what has waited past the lease's end") \
    X(M_CALLAHEAD, "a call is made before what its actor said before it is heard")

/* Of links, which no simulator has: tests/wire/access_test.c --mutants. */
#define MUTANT_LINK_LIST(X) X(M_ANYROLE, "whoever has a link may say everything")

/* Of streams: tests/stream/judge_test.c --mutants; some in the fleet simulator, too. */
#define MUTANT_STREAM_LIST(X)                                                             \
    X(M_NOFENCE, "a refusal does not keep back what was sent behind it")                  \
    X(M_REFUSERUN, "what is in a queue runs though one before it was refused")            \
    X(M_LATEACK, "a frame says what was heard when it leaves, not when it was begun")     \
    X(M_NOLANE, "a request goes to the new owner while one before it is elsewhere")       \
    X(M_NOSEQ, "behind a broken link all that is unanswered is sent again")               \
    X(M_NOLOG, "answers are forgotten when they are sent")                                \
    X(M_OLDCONN, "a node goes on reading the old connection of a stream")                 \
    X(M_REROUTE, "behind a broken link what was sent is asked of the new owner")          \
    X(M_DEADSEND, "what was sent to a dead node is asked of the new owner")               \
    X(M_ZOMBIE, "a request that was given up does not count in its lane")                 \
    X(M_BESIDE, "what comes behind a forward runs when the range is back")                \
    X(M_THIRD, "what comes behind a forward goes to the owner of now")                    \
    X(M_RELAY, "a refusal of the next node does not keep back what is behind it")         \
    X(M_TWOHOPS, "what was forwarded is forwarded again")                                 \
    X(M_DEADFWD, "what a dead node forwarded is run behind its death")                    \
    X(M_FORGETFWD, "a stream is forgotten though a forward of it is unanswered")          \
    X(M_FWAFTER, "a forward is told UNKNOWN when its link breaks, and sent all the same") \
    X(M_NOTAGAIN, "what is asked again does not say so")                                  \
    X(M_NAMEDANEW, "a request gets a new name when it is asked again")                    \
    X(M_DOUBTPASSED, "what is UNKNOWN does not keep back what was sent behind it")

/* Of the coordinators: tests/txn/roles_test.c, suspect_test.c, fence_test.c, coordinator_test.c and
 * coordinator_story_test.c there --mutants. */
#define MUTANT_STATE_LIST(X)                                                     \
    X(M_TWONAMES, "a number is another kind on each node")                       \
    X(M_LASTKINDS, "who registers last says what all nodes of its role host")    \
    X(M_ANYSTRIKE, "a node strikes actors that its former process did not have") \
    X(M_OTHERMAP, "a node with another ring at its version gets leases")         \
    X(M_BELIEVED, "a node is believed what it tells of the vnodes of others")    \
    X(M_MOVEDON, "what moves for the load's sake does not rest before it moved") \
    X(M_OLDPLAN, "who was silent and is heard again gives all that it has")

/* Of clocks beyond the promise: tests/txn/drift_test.c --mutants. */
#define MUTANT_CLOCK_LIST(X)                                                \
    X(M_SLOWCLOCK, "a node whose clock is slow gets leases of full length") \
    X(M_LATECLOCK, "a renewal that came late is taken for a clock that lies")

/* Of what a coordinator promises: tests/txn/coordinator_story_test.c --mutants, and the simulator.
 */
#define MUTANT_PROMISE_LIST(X)                                                             \
    X(M_OLDCOPY, "a leader goes on though nodes know more than it")                        \
    X(M_JUDGEDLATE, "who told more than was drawn is judged by what was drawn since then") \
    X(M_STOPFORGOTTEN, "who dies while it stops is forgotten as if it had been removed")   \
    X(M_SECONDWISH, "an operator's question that crosses its answer is a second wish")     \
    X(M_TOOSURE, "a restarted leader draws numbers before it has heard who may know more") \
    X(M_ELDERAGAIN, "a restored group goes on with an incarnation of before")              \
    X(M_BACKUPLEASE, "a restored group waits for leases as its backup knows them")

/* Of one node, and of who sends what to it: tests/node/host_story_test.c --mutants. */
#define MUTANT_IDENTITY_LIST(X)                                                    \
    X(M_NAME, "whoever says an incarnation is it, whatever its name")              \
    X(M_ANYSOURCE, "state of a transaction is taken from any link")                \
    X(M_OLDPREPARE, "a PREPARE below one in the book that has its cells is taken") \
    X(M_DRAWNTWICE, "a PREPARE of a known number is that one, whatever it moves")  \
    X(M_MERGEDIN, "what came waits for a vnode that names its transaction")        \
    X(M_LISTEDPART, "what was listed in part and came warm is not listed")         \
    X(M_ENDEDIMAGE, "what went ahead of a hold stands though its actor ended")     \
    X(M_ORPHANRUNS, "what a node that is over told others runs yet")

/* Of where askers say that ids are: tests/node/streams_test.c --mutants. */
#define MUTANT_TOLD_LIST(X) X(M_TOLDHASH, "where an asker says that an id is, is not looked at")

/* Of clients' sessions: tests/node/session_walk_test.c --mutants, and the simulator. */
#define MUTANT_SESSION_LIST(X)                                                     \
    X(M_TWOBOUND, "a second client is bound where the first was to stay")          \
    X(M_AWAYPUSH, "what is pushed while a client is away is not kept")             \
    X(M_UNSEENSTAYS, "what is not acknowledged stays behind when its actor moves") \
    X(M_OLDLOST, "the end of a former connection ends the session")                \
    X(M_OLDROUND, "a client that is back is pushed to by its former connection")   \
    X(M_ANYKEY, "whoever comes back gets the session that is there")               \
    X(M_STALERETURN, "a client is kicked by its own resume of before")             \
    X(M_OWNNUMBER, "requests of a client that is back are numbered anew")          \
    X(M_ACKALL, "what a client has not acknowledged is let go when it is back")    \
    X(M_CASTPASS, "what an actor sends behind a broadcast overtakes it")           \
    X(M_CASTEDGE, "a broadcast that pauses goes on behind the next member")        \
    X(M_EACHOTHER, "where several may be bound, each takes another's place")       \
    X(M_FIRSTPUSHED, "of several that are bound only the first is pushed to")      \
    X(M_FIRSTMOVES, "of several that are bound only the first moves along")        \
    X(M_TOOMANY, "more are bound than may be")

/* Of sessions that move with their actors, and are lost with them: sim/players/players.h. */
#define MUTANT_PLAYER_LIST(X)                                                            \
    X(M_REBINDONCE, "who was passed on and did not hear of it is not told again")        \
    X(M_BONDSTAYS, "a client stays behind when its actor moves")                         \
    X(M_FENCELESS, "the stamp of a bond tells no fence, only what its node has counted") \
    X(M_OLDKEY, "a session that is begun afresh keeps its name")                         \
    X(M_NOTETWICE, "a note that binds runs at a second incarnation")                     \
    X(M_JOINTWICE, "who joins a group twice is pushed to twice")                         \
    X(M_CASTLANE, "pushes to groups and what is sent behind them are numbered apart")    \
    X(M_GROUPSTAYS, "who leaves a group is pushed to with the others")                   \
    X(M_OLDLINE, "a client that is back gets replies to its former connection")          \
    X(M_UNVOUCHED, "a client that may have left is taken to be here still")              \
    X(M_CASTMOVED, "what an actor tells behind its move overtakes what it told before")  \
    X(M_CASTSHORT, "the last member of a group is not pushed to")                        \
    X(M_NEWESTGONE, "of more than is kept for a client the newest push is let go")       \
    X(M_AWAYTAKEN, "who is away is in the way of a new client")                          \
    X(M_GAPLOST, "what is missing among pushes is not waited for")                       \
    X(M_SAMELIFE, "an actor that starts again at its node is the incarnation of before")

/* Of durable actors: the simulator, tests/node/runtime_durable_test.c, runtime_alarms_test.c,
 * runtime_sends_test.c, alarms_test.c, outbox_test.c, operate_test.c, host_story_test.c, and
 * tests/storage/actor_store_test.c, remote_store_test.c and store_tools_test.c, with --mutants. */
#define MUTANT_DURABLE_LIST(X)                                                            \
    X(M_ANSWERFIRST, "a durable actor's answer leaves before what it tells of is saved")  \
    X(M_OUTBOXLOST, "what an owner before has not delivered is not sent again")           \
    X(M_SENDTWICE, "what comes again of an outbox is taken again")                        \
    X(M_NOFENCESTORE, "the store does not compare the fence of who writes")               \
    X(M_HALFBATCH, "what an operator changes is kept in part when it is refused")         \
    X(M_NOTALONE, "values are changed in a file that somebody else has open")             \
    X(M_HALFCOPY, "a store of which only a part was copied is opened by nodes")           \
    X(M_ALARMLOST, "a fired alarm is gone though its callback failed")                    \
    X(M_ALARMEARLY, "an alarm goes off before its time")                                  \
    X(M_ALARMAPART, "an alarm is set by another commit than what goes with it")           \
    X(M_ALARMASLEEP, "an alarm does not wake who sleeps")                                 \
    X(M_NOSAVEDANSWER, "a commit does not hold the answer of its request")                \
    X(M_LATECOMMIT, "a commit that was told to be undone can be done later")              \
    X(M_OLDSTORE, "a store that went back in time is not noticed")                        \
    X(M_ANSWERAPART, "an answer is saved by another commit than what goes with it")       \
    X(M_ANSWERGONE, "of the answers of an actor the last one alone is kept")              \
    X(M_LATELOST, "what is asked behind a later request is LOST, and nobody looks")       \
    X(M_LATERUNS, "what is asked behind a later request runs behind it")                  \
    X(M_COPYUNSEEN, "what guards against copies is not kept longer for a copy that came") \
    X(M_LATEREFUSED, "what is asked late, and refused, did not run")                      \
    X(M_TAKENLOST, "that a send was taken is not saved")                                  \
    X(M_ALARMSTAYS, "alarms stay behind when their actor moves")                          \
    X(M_TAKENEARLY, "a send is taken before anything came of it")

/* Of what clients of one gateway do to each other: tests/gateway/share_test.c --mutants. */
#define MUTANT_SHARE_LIST(X) X(M_UNCOUNTED, "what one holds of a gateway is not counted")

/* Of the coordinators' rounds and beats: tests/raft/replica_test.c --mutants. */
#define MUTANT_ROUND_LIST(X)                                                      \
    X(M_ANYROUND, "an answer to an earlier round confirms the last one, too")     \
    X(M_OLDTERMROUND, "a voter repeats the number of a round of an older term")   \
    X(M_LATENEWS, "voters hear with a calm leader's next beat what is committed") \
    X(M_QUIETBEATS, "a calm leader asks no voter for an answer")

/* Of the router: tests/gateway/router_test.c --mutants. */
#define MUTANT_ROUTE_LIST(X) \
    X(M_BAREDOUBT, "what may have run is said not to have, for its role has no node now")

/* Of hosts: tests/hosted/hosted_test.c --mutants. */
#define MUTANT_HOSTED_LIST(X)                                                          \
    X(M_STALESTEP, "what a host says of a turn that is over is done by one that runs") \
    X(M_HOSTSTAYS, "actors of a host that ended are not told")

/* Of back ends' requests: tests/gateway/client_http_test.c --mutants. */
#define MUTANT_HTTP_LIST(X)                                            \
    X(M_KEYIGNORED, "a request that is asked again by its key is new") \
    X(M_TWOLENGTHS, "a length is taken beside chunks")                 \
    X(M_ANYTOKEN, "the token of one request lets the next in without one")

enum mutant {
#define X(name, text) name,
    MUTANT_LIST(X) MUTANT_STORAGE_LIST(X) MUTANT_THREAD_LIST(X) MUTANT_LINK_LIST(X)
        MUTANT_STREAM_LIST(X) MUTANT_STATE_LIST(X) MUTANT_CLOCK_LIST(X) MUTANT_PROMISE_LIST(X)
            MUTANT_IDENTITY_LIST(X) MUTANT_SESSION_LIST(X) MUTANT_PLAYER_LIST(X)
                MUTANT_SHARE_LIST(X) MUTANT_DURABLE_LIST(X) MUTANT_ROUND_LIST(X)
                    MUTANT_HOSTED_LIST(X) MUTANT_ROUTE_LIST(X) MUTANT_HTTP_LIST(X)
                        MUTANT_TOLD_LIST(X)
#undef X
};

#ifdef RINGHOLD_MUTANTS

extern enum mutant mutant_planted; /* set by the simulator, and by tests of threads */

static inline bool mutant(enum mutant m)
{
    return mutant_planted == m;
}

/* Plant in this process what RINGHOLD_MUTANT names; one that is not known ends it, with a line on
 * stderr. For tests of real processes. */
void mutant_from_environment(void);

#else

static inline bool mutant(enum mutant m)
{
    (void)m;
    return false;
}

static inline void mutant_from_environment(void)
{
}

#endif

/* "M_NODRAIN" */
const char *mutant_name(enum mutant m);
const char *mutant_text(enum mutant m);

/* False if there is none of that name that the simulator can plant. */
bool mutant_named(const char *name, enum mutant *m);

#endif
