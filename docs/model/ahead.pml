/* SPDX-License-Identifier: Apache-2.0 */
/* ahead.pml - images that go ahead of the hold (decision 075, specification 8.7). S gives one vnode with NE actors to D by
 * transactions 1 .. MAXT, one after the other; each may be superseded, aborted or committed. S may restart.
 * The stream of a transaction is in order and loses nothing (go-back-N, node/host/handover.c): a channel. What D staged is
 * keyed by (transaction, incarnation of S). `now` is what an actor's state really is, 0 = it ended; an actor begins
 * again with a greater number.
 * Mutations:
 *  M_STALEIMAGE  an actor that changed since its image left freezes as if it had not
 *  M_FIRSTIMAGE  of the images of one actor the first that came counts
 *  M_ENDEDIMAGE  nothing tells that an actor ended whose image went ahead
 *  M_FORMERIMAGE what went ahead of a superseded transaction stands in the next
 *  M_ABORTIMAGE  what was staged for an aborted transaction is used by the one that commits
 *  M_OLDGIVER    what an incarnation of S before the restart sent is used
 */
#ifndef NE
#define NE 2
#endif
#ifndef MAXT
#define MAXT 2
#endif
#ifndef MAXV
#define MAXV 2
#endif
#ifndef CRASH
#define CRASH 1
#endif
#define ENDS 255 /* in place of an actor: END of the stream */

byte now[NE];            /* truth: what the owner's actor is, 0 = there is none */
byte top[NE];            /* numbers drawn for it */
byte txn = 0;            /* pending, 0 = none */
byte last = 0;           /* number drawn last */
bit held, ended, moved;
bit sent[NE], copied[NE], frozen[NE];
byte inc = 1, crashes = 0;

chan wire = [NE + 2] of { byte, byte, byte, byte }; /* txn, incarnation, actor, state */

/* D: what is staged, of which transaction and incarnation */
byte staged[NE], ofTxn[NE], ofInc[NE]; bit has[NE];
byte endTxn = 0, endInc = 0;
byte e;

/* everything about the transaction that ends is forgotten at S */
inline forget() {
  e = 0; do :: e < NE -> sent[e] = 0; copied[e] = 0; frozen[e] = 0; e++ :: else -> break od; e = 0;
  held = 0; ended = 0
}
inline drop_staged() {
#ifndef M_ABORTIMAGE
  e = 0; do :: e < NE -> has[e] = 0; staged[e] = 0; ofTxn[e] = 0; ofInc[e] = 0; e++ :: else -> break od; e = 0;
#endif
  endTxn = 0; endInc = 0
}

proctype Actor(byte a) {
end:
  do
  /* it runs, or begins: its state is another */
  :: atomic { !moved && !frozen[a] && top[a] < MAXV -> top[a]++; now[a] = top[a];
#ifndef M_STALEIMAGE
       copied[a] = 0
#endif
     }
  /* it ends: nothing is left of it */
  :: atomic { !moved && !frozen[a] && now[a] != 0 && nfull(wire) ->
       now[a] = 0; copied[a] = 0;
#ifndef M_ENDEDIMAGE
       if :: sent[a] && txn != 0 && !ended -> wire ! txn, inc, a, 0 :: else fi
#else
       sent[a] = 0
#endif
     }
  /* its image goes ahead */
  :: atomic { txn != 0 && !held && !moved && !sent[a] && now[a] != 0 && nfull(wire) ->
       wire ! txn, inc, a, now[a]; sent[a] = 1; copied[a] = 1 }
  /* the hold freezes it: as it is, or with a newer image. One that is not there has nothing to freeze: the cell is held */
  :: atomic { held && !ended && !frozen[a] && copied[a] -> frozen[a] = 1 }
  :: atomic { held && !ended && !frozen[a] && !copied[a] && now[a] != 0 && nfull(wire) ->
       frozen[a] = 1; wire ! txn, inc, a, now[a] }
  :: atomic { held && !ended && !frozen[a] && now[a] == 0 -> frozen[a] = 1 }
  od
}

active proctype S() {
end:
  do
  /* PREPARE of a new transaction */
  :: atomic { txn == 0 && !moved && last < MAXT -> last++; txn = last }
  :: atomic { txn != 0 && !held && !moved -> held = 1 }
  /* all are frozen: END */
  :: atomic { held && !ended && frozen[0] && frozen[NE - 1] && nfull(wire) -> wire ! txn, inc, ENDS, 0; ended = 1 }
  /* CANCEL: all go on */
  :: atomic { txn != 0 && !moved && endTxn != txn -> forget(); drop_staged(); txn = 0 }
  /* the outcome of one that voted may be an abort as well */
  :: atomic { txn != 0 && !moved && endTxn == txn -> forget(); drop_staged(); txn = 0 }
  /* SUPERSEDE: the hold passes over, what is frozen goes anew */
  :: atomic { txn != 0 && !moved && last < MAXT ->
       last++; txn = last; ended = 0;
       e = 0; do :: e < NE -> frozen[e] = 0;
#ifndef M_FORMERIMAGE
          copied[e] = 0; sent[e] = 0;
#endif
          e++ :: else -> break od; e = 0;
       drop_staged() }
  /* it restarts: REGISTER aborts, its memory is gone, and what it had with it */
  :: atomic { !moved && crashes < CRASH -> crashes++; inc++; forget(); txn = 0;
       e = 0; do :: e < NE -> now[e] = 0; e++ :: else -> break od; e = 0;
#ifndef M_OLDGIVER
       drop_staged()
#else
       endTxn = 0; endInc = 0
#endif
     }
  /* COMMIT: S and D voted; D promotes */
  :: atomic { txn != 0 && ended && endTxn == txn && endInc == inc -> moved = 1;
       e = 0; do
       :: e < NE ->
          assert(now[e] == (has[e] -> staged[e] : 0));
          e++
       :: else -> break od; e = 0 }
  od
}

active proctype D() { byte t, i, a, v;
end:
  do
  :: atomic { wire ? t, i, a, v ->
       if
       :: t != txn || i != inc ->          /* no such transaction (any more) here, or not its source */
#ifdef M_OLDGIVER
          if :: a != ENDS && i != inc -> has[a] = (v != 0); staged[a] = v; ofTxn[a] = t; ofInc[a] = i :: else fi
#else
          skip
#endif
       :: else ->
          if
          :: a == ENDS -> endTxn = t; endInc = i
#ifdef M_FIRSTIMAGE
          :: a != ENDS && ofTxn[a] == t -> skip
#endif
#ifdef M_FIRSTIMAGE
          :: a != ENDS && ofTxn[a] != t ->
#else
          :: a != ENDS ->
#endif
             has[a] = (v != 0); staged[a] = v; ofTxn[a] = t; ofInc[a] = i
          fi
       fi }
  od
}

init { atomic { e = 0; do :: e < NE -> run Actor(e); e++ :: else -> break od; e = 0 } }
