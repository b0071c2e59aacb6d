/* SPDX-License-Identifier: Apache-2.0 */
/* lease.pml - node lease, leader change, drift, suspend, fencing token. Discrete real time.
 * Node A owns a range; B gets it by forced reassignment. Two Raft leaders.
 * D = lease length in ticks of A's clock, E = drift+margin added by leaders.
 * A's clock may be slow by one tick in any D+1 (drift bound).
 * Mutations:
 *  M_RECV    lease counted from the receipt of the grant, not from the send of the request
 *  M_NOCONF  leader grants without confirming its leadership by a quorum round
 *  M_NEWLEAD new leader does not wait a full lease after its election
 *  M_DRIFT   no drift margin (E=0)
 *  M_MONO    A's clock stops while A is suspended (CLOCK_MONOTONIC in a suspended VM)
 *  M_NOSTOP  the leader does not stop granting before it starts the wait
 *  M_ENDCHK  lease checked at task start only, not at each output
 *  M_NOTOKEN store accepts writes without comparing the fencing token
 *  M_READ1ST new owner reads the state before it raises the token in the store
 *  M_BARRIER new leader grants/fences before applying the log up to its own term's first entry
 */
#ifndef D
#define D 3
#endif
#ifdef M_DRIFT
#define E 0
#else
#ifndef E
#define E 1
#endif
#endif
#ifndef ELECT
#define ELECT 2
#endif
#ifndef SLOTS
#define SLOTS 2
#endif
/* replicated */
bit lead; bit fenced; bit reassigned; byte elections;
/* leaders */
bit bel[2];            /* believes it is leader */
byte hold[2];          /* ticks before it may reassign: covers every grant it may be answerable for */
bit lfenced[2];        /* leader's local view of fenced */
/* A */
byte left; bit susp; byte since = D+1; bit asilent;
/* renewal slots: 0 free, 1 request in flight, 2 at leader (awaiting quorum), 3 grant in flight */
byte rq[SLOTS]; byte age[SLOTS]; bit by[SLOTS];
/* task of A with one output (store write) */
byte task;             /* 0 none, 1 passed the start check, 2 passed the output check, write in flight */
/* store */
byte tok = 1; bit bread; bit dirty;
bit bclaimed;

#define ALIVE (left > 0 && !susp)

#ifdef STOREONLY       /* only the store property: must hold even with broken clocks (M_MONO, M_DRIFT, M_NEWLEAD ...) */
#define OUTCHK skip
#else
#define OUTCHK assert(!reassigned)
#endif
proctype Leader(bit i) {
end:
  do
  :: atomic { elections < ELECT -> elections++;      /* i == lead: restart of the leader process */
        lead = i; bel[i] = 1;
#ifdef M_NEWLEAD
       hold[i] = 0;
#else
       hold[i] = D + E;
#endif
#ifdef M_BARRIER
       if :: lfenced[i] = 0 :: lfenced[i] = fenced fi;
#else
       lfenced[i] = fenced;
#endif
       printf("X: leader %d elected, wait=%d\n", i, hold[i]) }
  :: atomic { bel[i] && lead != i -> bel[i] = 0 }
  :: atomic { bel[i] && rq[0] == 1 && !lfenced[i] -> rq[0] = 2; by[0] = i }
#if SLOTS > 1
  :: atomic { bel[i] && rq[1] == 1 && !lfenced[i] -> rq[1] = 2; by[1] = i }
#endif
#ifdef M_NOCONF
#define CONF 1
#else
#define CONF (lead == i)
#endif
#ifdef M_NOSTOP
#define NF 1
#else
#define NF (!lfenced[i] || lead != i)
#endif
#define GRANT(s) :: atomic { rq[s] == 2 && by[s] == i && bel[i] && CONF && NF -> rq[s] = 3; HOLDUP \
       printf("X: leader %d grants (request age %d)\n", i, age[s]) }
#ifdef M_NOSTOP
#define HOLDUP
#else
#define HOLDUP hold[i] = D + E;
#endif
  GRANT(0)
#if SLOTS > 1
  GRANT(1)
#endif
  :: atomic { bel[i] && lead == i && !fenced -> fenced = 1; lfenced[i] = 1;
#ifdef M_NOSTOP
       hold[i] = D + E;
#endif
       printf("X: FENCE_BEGIN committed by %d, wait=%d\n", i, hold[i]) }
  :: atomic { bel[i] && lead == i && fenced && !lfenced[i] -> lfenced[i] = 1 }
  :: atomic { bel[i] && lead == i && fenced && !reassigned && hold[i] == 0 -> reassigned = 1; printf("X: REASSIGN committed by %d\n", i) }
  od
}

proctype A() {
end:
  do
#define RENEW(s) :: atomic { !susp && rq[s] == 0 && !asilent -> rq[s] = 1; age[s] = 0 } \
  :: atomic { rq[s] != 0 -> rq[s] = 0; age[s] = 0; by[s] = 0 } /* lost */ \
  :: atomic { !susp && rq[s] == 3 -> \
       if :: GRANTLEN(s) > left -> left = GRANTLEN(s); printf("A: lease %d (age %d)\n", left, age[s]) :: else fi; \
       rq[s] = 0; age[s] = 0; by[s] = 0 }
#ifdef M_RECV
#define GRANTLEN(s) D
#else
#define GRANTLEN(s) (age[s] >= D -> 0 : D - age[s])
#endif
  RENEW(0)
#if SLOTS > 1
  RENEW(1)
#endif
  :: atomic { susp = 1 - susp; if :: susp -> printf("A: suspended\n") :: else -> printf("A: resumed\n") fi }
#ifdef TASKS
  /* one task: start check, output check, write arrives at the store any time later */
  :: atomic { task == 0 && ALIVE -> task = 1; printf("A: task starts\n") }
#ifdef M_ENDCHK
  :: atomic { task == 1 && !susp -> task = 2; printf("A: output leaves\n"); OUTCHK }
#else
  :: atomic { task == 1 && ALIVE -> task = 2; printf("A: output leaves\n"); OUTCHK }
  :: atomic { task == 1 && !susp && left == 0 -> task = 0; printf("A: lease over, task killed\n") }
#endif
#endif
  od
}

#ifdef TASKS
/* network + store: the write may arrive arbitrarily late */
active proctype Store() {
end:
  do
  :: atomic { task == 2 -> task = 0;
#ifndef M_NOTOKEN
       if :: tok <= 1 ->
#endif
          printf("STORE: write of A accepted\n");
          assert(!bread)           /* B already built its actor from an older state */
#ifndef M_NOTOKEN
          :: else -> printf("STORE: write of A refused (token)\n")
       fi
#endif
     }
  od
}
active proctype Bnode() {
#ifdef M_READ1ST
  atomic { reassigned -> bread = 1; printf("B: reads state, activates\n") };
  atomic { tok = 2; printf("B: raises the token\n") };
#else
  atomic { reassigned -> tok = 2; bread = 1; printf("B: raises the token and reads, activates\n") };
#endif
end: skip
}
#endif

inline nodetick() {
  if :: left > 0 -> left-- :: else fi;
  if :: rq[0] != 0 && age[0] < D -> age[0]++ :: else fi;
#if SLOTS > 1
  if :: rq[1] != 0 && age[1] < D -> age[1]++ :: else fi;
#endif
}
active proctype Clock() {
end:
  do
  :: atomic { true ->
       if
       :: hold[0] > 0 -> hold[0]-- :: else fi;
       if
       :: hold[1] > 0 -> hold[1]-- :: else fi;
       if
       :: true -> 
#ifdef M_MONO
          if :: !susp -> nodetick() :: else fi
#else
          nodetick()
#endif
          ; if :: since <= D -> since++ :: else fi
       :: since > D && (left > 0 || rq[0] != 0) -> since = 0; printf("T: A's clock is late by one tick\n")
       fi;
     }
  od
}

#ifndef STOREONLY
active proctype Monitor() {
end:
  if
  :: atomic { reassigned && ALIVE -> printf("VIOLATION: reassigned while A may serve (left=%d)\n", left); assert(false) }
  fi
}
#endif
#ifdef LIVE
bit tick;
active proctype Tick() { end: do :: tick = 1 - tick od }
ltl dead_reassigned { <> reassigned }
#endif
init { atomic {
#ifdef LIVE
  asilent = 1;      /* A is gone for good */
#endif
  left = D; bel[0] = 1; hold[0] = D + E; run Leader(0); run Leader(1); run A() } }
