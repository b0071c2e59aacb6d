/* SPDX-License-Identifier: Apache-2.0 */
/* txn.pml - agreement + ownership of ONE moving range.
 *
 * N nodes, two coordinator processes (Raft leader candidates), a replicated
 * state machine ("db") fed by an asynchronous log whose uncommitted suffix may
 * be kept or cut at an election, message sets that never forget (so every
 * message may be lost, duplicated, delayed and reordered without bound),
 * node crash/restart, abstract lease (expiry is ordered before reassignment).
 *
 * Default = what is built: REGISTER aborts every pending txn of the node (docs/decisions/003). Variants, not built:
 *  R_DISK      restart re-enters PREPARED from disk
 *  R_UNI       (with R_DISK) REGISTER carries the number on disk: same pending number -> resume PREPARED, any other
 *              pending txn of the node -> aborted in the same log entry
 * Each -DM_xxx removes ONE rule (mutation):
 *  M_RESTART   restarted node serves as soon as it finds itself in the config
 *  M_NOFSYNC   with R_DISK: PREPARED sent before the number is durable
 *  M_REPLAY    no highest-seen number: old PREPARE is accepted again
 *  M_BASE      PREPARE accepted on an older config than the txn's base
 *  M_REGRESS   COMMIT of an older version is applied over a newer one
 *  M_CANCEL    CANCEL sent when the abort is proposed, not when applied
 *  M_COMMIT    COMMIT sent when the commit is proposed, not when applied
 *  M_SAMENUM   new leader re-initiates with the same number, counts old votes
 *  M_UNCOND    log entries applied unconditionally (late abort/commit overrides)
 *  M_STALE     poll answered by a stale replica ("not pending")
 *  M_LOCALNUM  number taken from the coordinator's own disk, sent before commit
 *  M_NODRAIN   PREPARED sent while the actor is still live
 *  M_NOWAIT    reassignment does not wait for lease expiry
 *  M_RUNOVER   actor keeps running after its node's lease expired
 *  M_FENCEPEND fencing a node does not abort its pending transaction
 *  M_READFIRST restarted node reads the config before it registers its new incarnation
 *  M_REGDST    (expected to hold) re-registration of a destination does not abort
 *  M_NOPOLL    prepared participant does not poll the db (liveness)
 *  M_NOTIMER   coordinator has no timer (liveness, with HANG: a task that never ends)
 *  M_RESTORE   db restored from backup without era/lease wait
 *  M_ERAMSG    a node of the old era follows answers of the new era in place
 */
#ifndef N
#define N 3
#endif
#ifndef MAXT
#define MAXT 2
#endif
#ifndef CRASH
#define CRASH 1
#endif
#ifndef ELECT
#define ELECT 1
#endif
#ifndef FENCE
#define FENCE 0
#endif
#ifndef LEXP
#define LEXP 1
#endif
#ifndef RESTORE
#define RESTORE 0
#endif

#define B(t) (1<<(t))
#define IDLE 0
#define DRAIN 1
#define PREP 2
/* leader states */
#define FOLL 0
#define LIDLE 1
#define WAITV 2
#define PROP 3
#define RECOV 4
#define LSENT 5

/* ---- replicated state machine */
byte db_last;            /* highest number ever allocated              */
byte db_pend;            /* pending txn, 0 = none                       */
byte db_ver;             /* committed config version (= txn number)     */
byte from_at[MAXT+1];    /* immutable content of txn t                  */
byte to_at[MAXT+1];      /* owner of the range under version t          */
byte base_at[MAXT+1];
byte cmask = 1;          /* bit t: txn t committed (bit 0 = initial)    */
byte db_fenced;          /* bit n: incarnation of n barred from leases  */
#if RESTORE
byte bk_ver, bk_last; bit restored, eraw;
bit nera[N];             /* era the node registered in */
#endif
chan rlog = [2] of { bit, byte };   /* proposed outcomes: 1 commit, 0 abort */
bit lead;                /* real Raft leader */
byte elections, crashes, fences, lexp;

/* ---- coordinators */
byte lst[2]; byte ltx[2];
#ifdef M_LOCALNUM
byte lnum[2], lto[2], lfrom[2], lprep[2];
#endif
/* ---- messages: votes are a set; PREPARE/COMMIT/CANCEL(t) may be delivered at
 *      any moment after they could have been sent, any number of times, or never */
byte voted[N];
byte early_c, early_x;

/* ---- nodes */
#ifdef M_READFIRST
byte rver[N];
#endif
bit up[N]; byte ver[N]; byte hi[N]; byte st[N]; byte ptx[N]; bit live[N];
#ifdef R_DISK
byte disk[N];
#endif
#if FENCE || RESTORE
bit lease[N];
#define LEASED(n) lease[n]
#else
#define LEASED(n) 1
#endif

#define OWN(v) to_at[v]
#define part(n,t) (from_at[t]==(n) || to_at[t]==(n))
#define committed(t) ((cmask>>(t))&1)
#define aborted(t) ((t)<=db_last && db_pend!=(t) && !committed(t))
#define db_owner OWN(db_ver)

inline apply(k,t) {   /* one entry of the log */
  if
#ifndef M_UNCOND
  :: db_pend != t -> skip                       /* conditional: first decision wins */
  :: db_pend == t ->
#else
  :: true ->
#endif
     if
     :: k == 1 -> db_ver = t; cmask = cmask | B(t); printf("DB: txn %d COMMITTED owner=%d\n", t, to_at[t])
     :: else   ->
#ifdef M_UNCOND
        if :: db_ver == t -> db_ver = base_at[t]; cmask = cmask & (255 - B(t)) :: db_ver != t -> skip fi;
#endif
        printf("DB: txn %d ABORTED\n", t)
     fi;
     db_pend = 0
  fi
}

inline begin(t,to) {  /* allocate number, record pending; base = current version */
  db_last = t; db_pend = t; from_at[t] = db_owner; to_at[t] = to; base_at[t] = db_ver;
  printf("DB: BEGIN txn %d move %d->%d base=%d\n", t, from_at[t], to, db_ver)
}

#define ROOM (lead != i || len(rlog) < 2)   /* model bound only */
#define barred(n) ((db_fenced>>(n))&1)
#if RESTORE
#define ERAOK (!eraw)
#else
#define ERAOK 1
#endif
#if RESTORE && !defined(M_RESTORE) && !defined(M_ERAMSG)
#define SAMEERA(n) (nera[n] == restored)   /* every answer carries the era; other era: stop, register again */
#else
#define SAMEERA(n) 1
#endif
#define BEGINTO(D) :: atomic { lst[i] == LIDLE && lead == i && db_pend == 0 && db_last < MAXT && ERAOK \
       && db_owner != D && !barred(D) && !barred(db_owner) -> \
       t = db_last + 1; begin(t, D); ltx[i] = t; lst[i] = WAITV; t = 0 }
#ifdef M_NOWAIT
#define EXPIRED(n) 1
#else
#define EXPIRED(n) (!LEASED(n))
#endif
#ifdef M_FENCEPEND
#define PENDOK 1
#else
#define PENDOK (db_pend == 0)
#endif
#define REASSIGN(D) :: atomic { lead == i && lst[i] != FOLL && lst[i] != RECOV && barred(db_owner) && db_last < MAXT \
       && EXPIRED(db_owner) && PENDOK && db_owner != D && !barred(D) -> \
       t = db_last + 1; db_last = t; from_at[t] = db_owner; to_at[t] = D; base_at[t] = db_ver; db_ver = t; \
       cmask = cmask | B(t); printf("DB: REASSIGN version %d owner=%d\n", t, D); t = 0 }

proctype Leader(bit i) {
  bit k; byte t; byte d;
end:
  do
  :: atomic { elections < ELECT ->       /* election of i; i == lead: coordinator crash + restart */
       elections++;
       do
       :: rlog?k,t -> apply(k,t)                       /* kept: applied behind the barrier entry */
       :: nempty(rlog) -> do :: rlog?k,t :: empty(rlog) -> break od; break    /* cut */
       :: empty(rlog) -> break
       od;
       lead = i; lst[i] = RECOV; ltx[i] = 0; k = 0; t = 0;
       printf("ELECT leader %d\n", i) }
  :: atomic { lead != i && lst[i] != FOLL -> lst[i] = FOLL; ltx[i] = 0 }  /* learns it was deposed */
  :: atomic { lst[i] == RECOV && lead == i ->
       if
       :: db_pend == 0 -> lst[i] = LIDLE
#ifdef M_SAMENUM
       :: db_pend != 0 -> ltx[i] = db_pend; lst[i] = WAITV; printf("L%d: re-initiate txn %d (same number)\n", i, db_pend)
#else
       :: db_pend != 0 && db_last < MAXT ->             /* supersede: abort old + begin new, one entry */
            t = db_last + 1; d = to_at[db_pend]; begin(t, d); ltx[i] = t; lst[i] = WAITV; t = 0; d = 0
       :: db_pend != 0 && db_last == MAXT -> db_pend = 0; lst[i] = LIDLE
#endif
       fi }
#ifdef M_LOCALNUM
  /* number from the coordinator's own disk: PREPARE leaves before the log has the number; a deposed leader does it too.
     The content of txn t is whatever the last writer of t meant: two leaders use one number for two changes. */
  :: atomic { lst[i] == LIDLE && lnum[i] < MAXT && lnum[i] == db_last ->
       lnum[i]++; t = lnum[i]; lto[i] = (db_owner + 1 + i) % N; ltx[i] = t; lst[i] = LSENT;
       lprep[i] = t; lfrom[i] = db_owner;
       printf("L%d: own number %d (%d->%d), PREPARE sent\n", i, t, lfrom[i], lto[i]); t = 0 }
  :: atomic { lst[i] == LSENT && lead == i && db_pend == 0 ->
       db_last = ltx[i]; db_pend = ltx[i]; from_at[ltx[i]] = lfrom[i]; to_at[ltx[i]] = lto[i]; base_at[ltx[i]] = db_ver;
       lst[i] = WAITV; printf("DB: BEGIN txn %d move %d->%d\n", ltx[i], lfrom[i], lto[i]) }
#else
  BEGINTO(0)
  BEGINTO(1)
#if N == 3
  BEGINTO(2)
#endif
#endif
  :: atomic { lst[i] == WAITV && ROOM && (voted[from_at[ltx[i]]] & B(ltx[i])) && (voted[to_at[ltx[i]]] & B(ltx[i])) ->
       lst[i] = PROP; printf("L%d: all PREPARED %d, propose COMMIT\n", i, ltx[i]);
#ifdef M_COMMIT
       early_c = early_c | B(ltx[i]); printf("L%d: sends COMMIT %d early\n", i, ltx[i]);
#endif
       if :: lead == i -> rlog!1,ltx[i] :: lead != i -> skip fi }
#ifndef M_NOTIMER
  :: atomic { lst[i] == WAITV && ROOM ->                  /* timer */
       lst[i] = PROP; printf("L%d: timer, propose ABORT %d\n", i, ltx[i]);
#ifdef M_CANCEL
       early_x = early_x | B(ltx[i]); printf("L%d: sends CANCEL %d early\n", i, ltx[i]);
#endif
       if :: lead == i -> rlog!0,ltx[i] :: lead != i -> skip fi }
#endif
  :: atomic { lst[i] == PROP && lead == i && db_pend == ltx[i] && len(rlog) == 1 ->
       rlog!0,ltx[i]; printf("L%d: timer while COMMIT in the log: also ABORT %d\n", i, ltx[i]) }
  :: atomic { lead == i && (lst[i] == PROP || lst[i] == WAITV) && db_pend != ltx[i] -> lst[i] = LIDLE; ltx[i] = 0 }
#if FENCE
  :: atomic { fences < FENCE && lead == i && lst[i] != FOLL && lst[i] != RECOV && !((db_fenced>>db_owner)&1) ->
       fences++; db_fenced = db_fenced | B(db_owner);
#ifndef M_FENCEPEND
       if :: db_pend != 0 && part(db_owner, db_pend) -> db_pend = 0 :: else fi;
#endif
       printf("DB: FENCE_BEGIN node %d\n", db_owner) }
  REASSIGN(0)
  REASSIGN(1)
#if N == 3
  REASSIGN(2)
#endif
#endif
  od
}

active proctype Raft() { bit k; byte t;
end:
  do :: atomic { nempty(rlog) -> rlog?k,t; apply(k,t); k = 0; t = 0 } od
}

inline adopt(n,v) {   /* node n switches its config to v */
  ver[n] = v;
  assert(!(live[n] && OWN(v) != n))     /* run-time invariant I4 */
}
#ifdef R_DISK
#define CLR(n) st[n] = IDLE; ptx[n] = 0; disk[n] = 0
#else
#define CLR(n) st[n] = IDLE; ptx[n] = 0
#endif

#ifdef M_LOCALNUM
#define BEGUN(t) (lprep[0]==(t) || lprep[1]==(t))
#undef part
#define part(n,t) ((lprep[0]==(t) && (lfrom[0]==(n)||lto[0]==(n))) || (lprep[1]==(t) && (lfrom[1]==(n)||lto[1]==(n))))
#else
#define BEGUN(t) ((t) <= db_last)
#endif
#ifdef M_REPLAY
#define CANPREP(t) (BEGUN(t) && part(n,t) && ptx[n] != (t))
#else
#define CANPREP(t) (BEGUN(t) && part(n,t) && (t) > hi[n])
#endif
#ifdef M_REGRESS
#define CANCOMM(t) ((committed(t) || (early_c & B(t))) && (t) != ver[n])
#else
#define CANCOMM(t) ((committed(t) || (early_c & B(t))) && (t) > ver[n])
#endif
#ifdef M_NODRAIN
#define DRAINED(n) 1
#else
#define DRAINED(n) (!live[n])
#endif
inline prepare(n,t) {
  hi[n] = (t > hi[n] -> t : hi[n]);
#ifndef M_BASE
  if :: ver[n] < base_at[t] -> adopt(n, db_ver); printf("N%d: behind base, fetched version %d\n", n, db_ver)
     :: else fi;
#endif
  if
#ifndef M_REPLAY
  :: ver[n] >= t -> skip
  :: ver[n] < t ->
#else
  :: true ->
#endif
     st[n] = DRAIN; ptx[n] = t; printf("N%d: PREPARE %d, hold\n", n, t);
#ifdef R_DISK
#ifndef M_NOFSYNC
     disk[n] = t
#else
     if :: disk[n] = t :: skip fi
#endif
#endif
  fi
}
inline commit(n,t) {
  printf("N%d: COMMIT %d\n", n, t);
  hi[n] = (t > hi[n] -> t : hi[n]);
  adopt(n, t);
  if :: st[n] != IDLE && t >= ptx[n] -> CLR(n) :: else fi
}

#ifdef M_REGDST
#define REGPART(n) (from_at[db_pend] == n)
#else
#define REGPART(n) part(n, db_pend)
#endif
proctype Node(byte n) {
end:
  do
  /* ---- PREPARE(t) */
  :: atomic { up[n] && SAMEERA(n) && CANPREP(1) -> prepare(n,1) }
#if MAXT > 1
  :: atomic { up[n] && SAMEERA(n) && CANPREP(2) -> prepare(n,2) }
#endif
#if MAXT > 2
  :: atomic { up[n] && SAMEERA(n) && CANPREP(3) -> prepare(n,3) }
#endif
  /* ---- drained -> PREPARED */
  :: atomic { up[n] && st[n] == DRAIN && DRAINED(n) -> st[n] = PREP; voted[n] = voted[n] | B(ptx[n]); printf("N%d: PREPARED %d\n", n, ptx[n]) }
#ifndef NO_DECISION_MSG
  /* ---- COMMIT(t) */
  :: atomic { up[n] && SAMEERA(n) && CANCOMM(1) -> commit(n,1) }
#if MAXT > 1
  :: atomic { up[n] && SAMEERA(n) && CANCOMM(2) -> commit(n,2) }
#endif
#if MAXT > 2
  :: atomic { up[n] && SAMEERA(n) && CANCOMM(3) -> commit(n,3) }
#endif
  /* ---- CANCEL(t) */
  :: atomic { up[n] && SAMEERA(n) && st[n] != IDLE && (aborted(ptx[n]) || (early_x & B(ptx[n]))) ->
       printf("N%d: CANCEL %d\n", n, ptx[n]); CLR(n) }
#endif
#ifndef M_NOPOLL
  /* ---- every answer of the leader (lease renewal) carries the version: a node behind fetches it */
  :: atomic { up[n] && SAMEERA(n) && st[n] == IDLE && db_ver > ver[n] -> adopt(n, db_ver) }
#endif
  /* ---- poll: not pending any more -> follow the current config */
#ifndef M_NOPOLL
  :: atomic { up[n] && SAMEERA(n) && st[n] != IDLE && db_pend != ptx[n] && ptx[n] <= db_last ->
       printf("N%d: poll: txn %d over, version %d\n", n, ptx[n], db_ver);
       if :: db_ver > ver[n] -> adopt(n, db_ver) :: else fi;
       CLR(n) }
#endif
#ifdef M_STALE
  :: atomic { up[n] && st[n] != IDLE -> printf("N%d: poll on a stale replica: txn %d unknown\n", n, ptx[n]); CLR(n) }
#endif
  /* ---- crash */
  :: atomic { up[n] && crashes < CRASH ->
       crashes++; up[n] = 0; live[n] = 0; st[n] = IDLE; ptx[n] = 0; ver[n] = 0; hi[n] = 0;
#if FENCE || RESTORE
       lease[n] = 0;
#endif
       printf("N%d: crash\n", n) }
  /* ---- restart */
#ifdef M_READFIRST
  :: atomic { !up[n] && rver[n] == 0 -> rver[n] = db_ver + 1; printf("N%d: restart reads config %d\n", n, db_ver) }
  :: atomic { !up[n] && rver[n] != 0 ->
       up[n] = 1; ver[n] = rver[n] - 1; rver[n] = 0;
#else
  :: atomic { !up[n] && ERAOK ->
#if RESTORE
       nera[n] = restored;
#endif
       up[n] = 1; ver[n] = db_ver;
#endif
       printf("N%d: restart, config %d\n", n, db_ver);
#ifdef R_DISK
       if
       :: disk[n] != 0 && db_pend == disk[n] -> st[n] = PREP; ptx[n] = disk[n]; printf("N%d: restart: still prepared %d\n", n, disk[n])
       :: else -> disk[n] = 0;
#ifdef R_UNI
          if :: db_pend != 0 && part(n, db_pend) -> printf("DB: REGISTER %d aborts txn %d\n", n, db_pend); db_pend = 0 :: else fi
#endif
       fi;
       hi[n] = db_last; db_fenced = db_fenced & (255 - B(n));
#else
#ifdef M_RESTART
       hi[n] = db_last;
#else
       /* REGISTER: one log entry = new incarnation + abort of its pending txns */
       if :: db_pend != 0 && REGPART(n) -> printf("DB: REGISTER %d aborts txn %d\n", n, db_pend); db_pend = 0 :: else fi;
       hi[n] = db_last;
       db_fenced = db_fenced & (255 - B(n));
#endif
#endif
     }
#if FENCE || RESTORE
  /* ---- lease */
  :: atomic { up[n] && lease[n] && (lexp < LEXP || barred(n)) -> if :: !barred(n) -> lexp++ :: else fi; lease[n] = 0;
#ifndef M_RUNOVER
       live[n] = 0;
#endif
       printf("N%d: lease expired\n", n) }
  :: atomic { up[n] && !lease[n] && !barred(n) && ERAOK && SAMEERA(n) -> lease[n] = 1 }
  /* a fenced node learns it: process exit, comes back as a new incarnation */
  :: atomic { up[n] && !lease[n] && ((db_fenced>>n)&1) -> up[n] = 0; live[n] = 0; st[n] = IDLE; ptx[n] = 0; ver[n] = 0; hi[n] = 0; printf("N%d: fenced, exits\n", n) }
#if RESTORE
#ifndef M_RESTORE
  :: atomic { up[n] && !SAMEERA(n) -> lease[n] = 0; up[n] = 0; live[n] = 0; st[n] = IDLE; ptx[n] = 0; ver[n] = 0; hi[n] = 0; printf("N%d: older era, exits\n", n) }
#endif
#endif
#endif
  od
}

/* activation / passivation of the range's actor on node n */
proctype Actor(byte n) {
end:
  do
  :: atomic { up[n] && !live[n] && OWN(ver[n]) == n && st[n] == IDLE && LEASED(n) ->
       live[n] = 1; printf("N%d: actor ACTIVE under version %d\n", n, ver[n]) }
#ifndef HANG
  :: atomic { up[n] && live[n] -> live[n] = 0; printf("N%d: actor stopped\n", n) }
#endif
  od
}

#if N == 3
#define TWO ((live[0]&&live[1]) || (live[0]&&live[2]) || (live[1]&&live[2]))
#define STALEOWNER ((live[0]&&db_owner!=0) || (live[1]&&db_owner!=1) || (live[2]&&db_owner!=2))
#else
#define TWO (live[0]&&live[1])
#define STALEOWNER ((live[0]&&db_owner!=0) || (live[1]&&db_owner!=1))
#endif

#ifndef NOMON
active proctype Monitor() {
end:
  if
  :: atomic { TWO -> printf("VIOLATION: two live actors\n"); assert(false) }
#ifdef CHK_STALE
  :: atomic { STALEOWNER -> printf("VIOLATION: live actor on a node that is not the committed owner\n"); assert(false) }
#endif
  fi
}
#endif

#if RESTORE
active proctype Restore() {
end1:  atomic { db_pend == 0 && empty(rlog) -> bk_ver = db_ver; bk_last = db_last };
end2:  atomic { db_pend == 0 && empty(rlog) && db_ver != bk_ver ->
     db_ver = bk_ver; 
#ifdef M_RESTORE
     db_last = bk_last; cmask = cmask & ((1<<(bk_last+1))-1);
#else
     cmask = cmask & ((1<<(bk_ver+1))-1);
     eraw = 1;      /* new era: numbers stay above the old ones, no lease until all old ones expired */
#endif
     restored = 1;
     printf("DB: RESTORED from backup, version %d\n", db_ver) };
#ifndef M_RESTORE
end3:  atomic { !lease[0] && !lease[1] && !lease[N-1] -> eraw = 0; printf("DB: era wait over\n") }
#endif
end: skip
}
#endif

init { byte n;
  atomic {
    lst[0] = LIDLE; lead = 0;
    n = 0;
    do :: n < N -> up[n] = 1;
#if FENCE || RESTORE
       lease[n] = 1;
#endif
       run Node(n); run Actor(n); n++ :: else -> break od;
    n = 0;
    run Leader(0); run Leader(1)
  }
}

/* ---- liveness */
#define pend0 (db_pend == 0)
#if N == 3
#define rel ((!up[0]||st[0]==IDLE) && (!up[1]||st[1]==IDLE) && (!up[2]||st[2]==IDLE))
#define oserv ((db_owner==0&&live[0]) || (db_owner==1&&live[1]) || (db_owner==2&&live[2]))
#else
#define rel ((!up[0]||st[0]==IDLE) && (!up[1]||st[1]==IDLE))
#define oserv ((db_owner==0&&live[0]) || (db_owner==1&&live[1]))
#endif
#ifdef LIVE
/* faults may stop at any moment: fairness must not force a fault to happen */
bit tick;
active proctype Tick() { end: do :: tick = 1 - tick od }      /* a blocked system still runs: makes deadlocks visible to LTL */
active proctype Calm() { atomic { crashes = CRASH; elections = ELECT; fences = FENCE; lexp = LEXP } }
ltl txn_ends  { <>[] pend0 }
ltl released  { <>[] rel }
ltl served    { []<> oserv }
#endif
