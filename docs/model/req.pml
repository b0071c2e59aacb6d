/* SPDX-License-Identifier: Apache-2.0 */
/* req.pml - request path while one range moves: gateways, hold, forward, retry, dedup, order.
 * NN nodes, C clients (each with its own gateway), Q pipelined requests per client to ONE moving entity.
 * The transaction is abstract (its agreement is checked in txn.pml): PREPARE/hold, drain+flush, commit|abort.
 * DURABLE: state + dedup window are written to the store before the reply leaves.
 * default (VOLATILE): they reach the new owner only by drain/hand-over; a crash loses them -> COLD rule.
 * Mutations:
 *  M_NOTAG    node ignores that the request carries a newer config version than its own
 *  M_NODEDUP  no duplicate check
 *  M_NOXFER   dedup window is not handed over with the actor
 *  M_NOORDER  owner executes in arrival order instead of sequence order
 *  M_NORETRY  gateway does not retry
 *  M_COLD     after a cold takeover the request is simply executed
 *  M_ATT1     COLD answer skipped for copies sent as first attempt
 *  M_NOBASE   requests do not carry the lowest unfinished sequence number
 *  M_LOCAL    on outcome the held requests are always executed locally (old owner does not look at the config)
 *  M_RESTAMP  gateway re-stamps a COLD request although several copies exist
 *  M_NOPREV   (not with CONTIG) a request does not tell its predecessor: never answered
 *  M_FIRSTPREV with M_NOBASE (not with CONTIG): of two copies that meet, the predecessor of the first is kept
 * Order: a copy carries base = lowest unfinished of its lane and prev = the unfinished one before it, both of the
 * moment of its send; the owner keeps the highest base it was told with the dedup record (docs/decisions/005).
 * -DCONTIG (variant, not what is built): seq == max(last+1, base), the contiguous numbers of the original rule.
 */
#ifndef NN
#define NN 2
#endif
#ifndef C
#define C 1
#endif
#ifndef Q
#define Q 3
#endif
#ifndef MAXV
#define MAXV 2
#endif
#ifndef CRASH
#define CRASH 0
#endif
#ifndef SPUR
#define SPUR 1
#endif
#ifndef RLOSS
#define RLOSS 0
#endif
#ifndef ABAN
#define ABAN 0
#endif
#ifndef BUSY
#define BUSY 0
#endif
#define R (C*Q)
#define B(x) (1<<(x))
#define ALLR (B(R)-1)
#define IX(n,r) ((n)*R+(r))

/* db */
byte dbver; byte own[MAXV+1]; bit pend; byte pto; bit drained; byte cold;
#define SRC own[dbver]
byte aborts, crashes, spur, rloss, aban, busy;
/* nodes */
bit up[NN]; byte ver[NN]; bit hold[NN]; bit act[NN]; byte mem[NN*C]; byte heldq[NN]; byte heldb[NN*R];
/* copies in the network or queued at the node: tag = version+1, base, hops, retry flag */
byte net[NN*R]; byte nb[NN*R]; byte nh[NN*R];
#ifndef CONTIG
byte np[NN*R]; byte heldp[NN*R];      /* predecessor of the copy */
byte mbase[NN*C]; byte sbase[C];      /* highest base told, beside mem and sto */
#endif
#ifdef M_ATT1
bit nf[NN*R]; bit heldf[NN*R];
#endif
/* store */
byte sto[C];
/* gateways */
byte gver[C]; byte nxt[C]; byte ok, err; byte fv[R]; byte cop[R];
byte rep, repc;      /* answers in flight: OK, COLD */
/* history */
byte ex; byte lastx[C];

#define fin(r) (((ok|err)>>(r))&1)
inline setbase(c,b) { b = 0; do :: b < Q && fin((c)*Q+b) -> b++ :: else -> break od; b++ }   /* 1-based */

#ifdef CONTIG
#define SETPREV(c,k) p = 0
#define PUTP(n,r,p)
#else
#define SETPREV(c,k) p = k; do :: p > 0 && fin((c)*Q+p-1) -> p-- :: else -> break od
#ifdef M_FIRSTPREV
#define PUTP(n,r,p) np[IX(n,r)] = (net[IX(n,r)] -> np[IX(n,r)] : p);
#else
#define PUTP(n,r,p) np[IX(n,r)] = (net[IX(n,r)] && np[IX(n,r)] < p -> np[IX(n,r)] : p);
#endif
#endif
inline put(n,r,tag,base,h,f,p) {
  if
  :: up[n] ->                  /* a slot merges copies of one request: highest tag, highest base, lowest prev */
     PUTP(n,r,p)
     net[IX(n,r)] = (net[IX(n,r)] > tag+1 -> net[IX(n,r)] : tag+1);
     nb[IX(n,r)] = (nb[IX(n,r)] > base -> nb[IX(n,r)] : base); nh[IX(n,r)] = (nh[IX(n,r)] > h -> nh[IX(n,r)] : h);
#ifdef M_ATT1
     nf[IX(n,r)] = f
#endif
  :: else                      /* connection refused: copy is gone */
  fi
}
inline clr(n,r) { net[IX(n,r)] = 0; nb[IX(n,r)] = 0; nh[IX(n,r)] = 0;
#ifndef CONTIG
  np[IX(n,r)] = 0;
#endif
#ifdef M_ATT1
  nf[IX(n,r)] = 0
#endif
}

#define INNET(r) (net[IX(0,r)] || net[IX(1,r)] || net[IX(NN-1,r)])
#define INHELD(r) (((heldq[0]|heldq[1]|heldq[NN-1])>>(r))&1)
#define NOWHERE(r) (!INNET(r) && !INHELD(r) && !(((rep|repc)>>(r))&1))

proctype Gateway(byte c) { byte b; byte r; byte p;
end:
  do
  :: atomic { nxt[c] < Q && up[own[gver[c]]] ->
       r = c*Q + nxt[c]; nxt[c]++; setbase(c,b); SETPREV(c, (r - c*Q)); fv[r] = gver[c]; cop[r] = 1;
       printf("G%d: send %d to N%d tag %d base %d\n", c, r-c*Q+1, own[gver[c]], gver[c], b);
       put(own[gver[c]], r, gver[c], b, 0, 1, p); b = 0; r = 0; p = 0 }
#define RETRY(k) :: atomic { k < nxt[c] && !fin(c*Q+k) && up[own[gver[c]]] && (NOWHERE(c*Q+k) || spur < SPUR || BASEADV(k)) -> \
       r = c*Q+k; if :: NOWHERE(r) || BASEADV(k) :: else -> spur++ fi; setbase(c,b); SETPREV(c,k); if :: cop[r] < 2 -> cop[r]++ :: else fi; \
       printf("G%d: retry %d to N%d tag %d base %d\n", c, k+1, own[gver[c]], gver[c], b); \
       put(own[gver[c]], r, gver[c], b, 0, 0, p); b = 0; r = 0; p = 0 }
#define NB(n,k) (nb[IX(n,c*Q+k)] < k+1 && heldb[IX(n,c*Q+k)] < k+1)
#define BASEADV(k) (k > 0 && NB(0,k) && NB(1,k) && NB(NN-1,k) && !((rep>>(c*Q+k))&1) && !((repc>>(c*Q+k))&1) && (k == 0 || fin(c*Q)) && (k < 2 || fin(c*Q+1)) && (CRASH > 0 || ABAN > 0))
#ifndef M_NORETRY
  RETRY(0)
#if Q > 1
  RETRY(1)
#endif
#if Q > 2
  RETRY(2)
#endif
#endif
#define ANSW(k) :: atomic { ((rep>>(c*Q+k))&1) -> rep = rep & (255-B(c*Q+k)); \
       if :: !fin(c*Q+k) -> ok = ok | B(c*Q+k) :: else fi; printf("G%d: answer %d OK\n", c, k+1) } \
  :: atomic { ((rep>>(c*Q+k))&1) && rloss < RLOSS -> rloss++; rep = rep & (255-B(c*Q+k)); printf("G%d: answer %d lost\n", c, k+1) } \
  :: atomic { ((repc>>(c*Q+k))&1) && (dbver == gver[c]) -> repc = repc & (255-B(c*Q+k)); \
       if \
       :: !fin(c*Q+k) && SOLE(k) -> fv[c*Q+k] = gver[c]; cop[c*Q+k] = 0; printf("G%d: COLD %d, only copy: stamp again\n", c, k+1) \
       :: !fin(c*Q+k) && !(SOLE(k)) -> err = err | B(c*Q+k); printf("G%d: answer %d UNKNOWN\n", c, k+1) \
       :: else fi } \
  :: atomic { k < nxt[c] && !fin(c*Q+k) && aban < ABAN -> aban++; err = err | B(c*Q+k); printf("G%d: deadline of %d\n", c, k+1) }
#ifdef M_RESTAMP
#define SOLE(k) 1
#else
#define SOLE(k) (cop[c*Q+k] <= 1)
#endif
  ANSW(0)
#if Q > 1
  ANSW(1)
#endif
#if Q > 2
  ANSW(2)
#endif
  :: atomic { gver[c] < dbver -> gver[c] = dbver; printf("G%d: config %d\n", c, dbver) }
  od
}

#ifdef M_NOTAG
#define TAGOK(n,r) 1
#else
#define TAGOK(n,r) (net[IX(n,r)] <= ver[n]+1)
#endif
#define MINE(n) (own[ver[n]] == n)
#define MEM(n,r) mem[(n)*C+(r)/Q]
#define SEQ(r) ((r)%Q+1)
#ifndef CONTIG
#define MBASE(n,r) mbase[(n)*C+(r)/Q]
#define TOLD(n,r) (act[n] -> MBASE(n,r) : sbase[(r)/Q])
#define KNOWN(n,r) (nb[IX(n,r)] > TOLD(n,r) -> nb[IX(n,r)] : TOLD(n,r))
#define KEEPBASE(n,r) MBASE(n,r) = KNOWN(n,r);
#define ABANDONED(n,r) (SEQ(r) < TOLD(n,r) && !DUP(n,r))
#else
#define KEEPBASE(n,r)
#define ABANDONED(n,r) 0
#endif
#define ACTMEM(n,r) (act[n] -> MEM(n,r) : sto[(r)/Q])     /* what it knows, or would know after activation */

inline activate(n) {
  if :: !act[n] -> act[n] = 1;
        assert(!(act[0] && act[1]) && !(NN > 2 && ((act[0] && act[NN-1]) || (act[1] && NN > 2 && act[NN-1]))));
        mem[n*C] = sto[0];
#if C > 1
        mem[n*C+1] = sto[1];
#endif
#ifndef CONTIG
        mbase[n*C] = sbase[0];
#if C > 1
        mbase[n*C+1] = sbase[1];
#endif
#endif
     :: else fi
}
inline execute(n,r) {
  assert(own[dbver] == n && !drained);               /* never by a stale owner */
  assert(!((ex>>(r))&1));                            /* never twice */
  assert(SEQ(r) > lastx[(r)/Q]);                     /* order per (client, entity) */
  ex = ex | B(r); lastx[(r)/Q] = SEQ(r);
  MEM(n,r) = SEQ(r); KEEPBASE(n,r)
#ifdef DURABLE
  sto[(r)/Q] = SEQ(r);
#ifndef CONTIG
  sbase[(r)/Q] = MBASE(n,r);
#endif
#endif
  rep = rep | B(r);
  printf("N%d: execute %d of client %d\n", n, SEQ(r), (r)/Q)
}
/* M_NODEDUP: seq order is kept, duplicates are run again.  M_NOORDER: perfect id-based dedup, arrival order (FIFO per path). */
#if defined(M_NODEDUP)
#define DUP(n,r) 0
#ifdef CONTIG
#define NEXTOK(n,r) (SEQ(r) <= ACTMEM(n,r)+1)
#else
#define NEXTOK(n,r) (np[IX(n,r)] < KNOWN(n,r) || ACTMEM(n,r) >= np[IX(n,r)])
#endif
#elif defined(M_NOORDER)
#define DUP(n,r) ((ex>>(r))&1)
#define NEXTOK(n,r) (SEQ(r) == 1 || (net[IX(n,(r)-(SEQ(r) > 1 -> 1 : 0))] == 0 && !((heldq[n]>>((r)-(SEQ(r) > 1 -> 1 : 0)))&1)))
#elif defined(M_NOBASE)
#define DUP(n,r) (SEQ(r) <= ACTMEM(n,r))
#ifdef CONTIG
#define NEXTOK(n,r) (SEQ(r) == ACTMEM(n,r)+1)
#else
#define NEXTOK(n,r) (np[IX(n,r)] == 0 || ACTMEM(n,r) >= np[IX(n,r)])
#endif
#elif defined(M_NOPREV)
#define DUP(n,r) (SEQ(r) <= ACTMEM(n,r))
#define NEXTOK(n,r) 1
#elif !defined(CONTIG)
#define DUP(n,r) (SEQ(r) <= ACTMEM(n,r))
#define NEXTOK(n,r) (np[IX(n,r)] == 0 || np[IX(n,r)] < KNOWN(n,r) || ACTMEM(n,r) >= np[IX(n,r)])
#else
#define DUP(n,r) (SEQ(r) <= ACTMEM(n,r))
#define NEXTOK(n,r) (SEQ(r) == ACTMEM(n,r)+1 || (SEQ(r) == nb[IX(n,r)] && SEQ(r) > ACTMEM(n,r)))
#endif
#if defined(DURABLE) || defined(M_COLD)
#define COLDREQ(n,r) 0
#else
#ifdef M_ATT1
#define COLDREQ(n,r) (fv[r] < cold && !nf[IX(n,r)])
#else
#define COLDREQ(n,r) (fv[r] < cold)
#endif
#endif

#define REQ(n,r) \
  /* not owner: forward upward */ \
  :: atomic { up[n] && net[IX(n,r)] && TAGOK(n,r) && !MINE(n) -> \
       FWDASSERT(n,r); h = nh[IX(n,r)] + 1; assert(h <= MAXV+1); k = nb[IX(n,r)]; GETF(n,r) GETP(n,r) clr(n,r); \
       printf("N%d: forward %d of client %d to N%d tag %d hop %d\n", n, SEQ(r), (r)/Q, own[ver[n]], ver[n], h); \
       put(own[ver[n]], r, ver[n], k, h, f, q); h = 0; k = 0; f = 0; q = 0 } \
  /* owner, range held */ \
  :: atomic { up[n] && net[IX(n,r)] && TAGOK(n,r) && MINE(n) && hold[n] -> \
       if :: SETHP(n,r) heldq[n] = heldq[n] | B(r); heldb[IX(n,r)] = (heldb[IX(n,r)] > nb[IX(n,r)] -> heldb[IX(n,r)] : nb[IX(n,r)]); SETHF(n,r) printf("N%d: hold %d of client %d\n", n, SEQ(r), (r)/Q) \
          :: busy < BUSY -> busy++; printf("N%d: hold queue full, BUSY %d\n", n, SEQ(r)) fi; clr(n,r) } \
  /* owner: duplicate */ \
  :: atomic { up[n] && net[IX(n,r)] && TAGOK(n,r) && MINE(n) && !hold[n] && DUP(n,r) -> \
       activate(n); if :: ((ex>>(r))&1) -> rep = rep | B(r); printf("N%d: duplicate %d, answer again\n", n, SEQ(r)) :: else fi; clr(n,r) } \
  /* owner: given up by its gateway, and that was told */ \
  :: atomic { up[n] && net[IX(n,r)] && TAGOK(n,r) && MINE(n) && !hold[n] && ABANDONED(n,r) -> \
       clr(n,r); printf("N%d: %d of client %d was given up\n", n, SEQ(r), (r)/Q) } \
  /* owner: execute or COLD */ \
  :: atomic { up[n] && net[IX(n,r)] && TAGOK(n,r) && MINE(n) && !hold[n] && !DUP(n,r) && !ABANDONED(n,r) && NEXTOK(n,r) -> \
       if :: COLDREQ(n,r) -> repc = repc | B(r); printf("N%d: COLD %d\n", n, SEQ(r)) \
          :: else -> activate(n); execute(n,r) fi; clr(n,r) }
#ifdef M_NOTAG
#define FWDASSERT(n,r)
#else
#define FWDASSERT(n,r) assert(ver[n]+1 > net[IX(n,r)])
#endif
#ifdef M_ATT1
#define GETF(n,r) f = nf[IX(n,r)];
#define SETHF(n,r) heldf[IX(n,r)] = nf[IX(n,r)];
#define HF(n,r) heldf[IX(n,r)]
#else
#define GETF(n,r)
#define SETHF(n,r)
#define HF(n,r) 0
#endif

#ifdef CONTIG
#define GETP(n,r)
#define SETHP(n,r)
#define HP(n,r) 0
#define CLRHP(n,r)
#else
#define GETP(n,r) q = np[IX(n,r)];
#define SETHP(n,r) heldp[IX(n,r)] = (((heldq[n]>>(r))&1) && heldp[IX(n,r)] < np[IX(n,r)] -> heldp[IX(n,r)] : np[IX(n,r)]);
#define HP(n,r) heldp[IX(n,r)]
#define CLRHP(n,r) heldp[IX(n,r)] = 0;
#endif
inline relheld(n,r) {
  if :: (heldq[n]>>(r))&1 ->
#ifdef M_LOCAL
        put(n, r, 0, heldb[IX(n,r)], 0, HF(n,r), HP(n,r))
#else
        put(own[ver[n]], r, ver[n], heldb[IX(n,r)], 0, HF(n,r), HP(n,r))
#endif
        ; CLRHP(n,r) heldb[IX(n,r)] = 0
     :: else fi
}

#if C > 1
#define MEMZERO1(n) mem[n*C] = 0; mem[n*C+1] = 0
#define BASEZERO(n) ; mbase[n*C] = 0; mbase[n*C+1] = 0
#else
#define MEMZERO1(n) mem[n*C] = 0
#define BASEZERO(n) ; mbase[n*C] = 0
#endif
#ifdef CONTIG
#define MEMZERO(n) MEMZERO1(n)
#else
#define MEMZERO(n) MEMZERO1(n) BASEZERO(n)
#endif
inline flush(n) {
#ifdef M_NOXFER
  skip
#else
  sto[0] = mem[n*C];
#if C > 1
  sto[1] = mem[n*C+1];
#endif
#ifndef CONTIG
  sbase[0] = mbase[n*C];
#if C > 1
  sbase[1] = mbase[n*C+1];
#endif
#endif
#endif
  ; MEMZERO(n)
}

proctype Node(byte n) { byte h; byte k; bit f; byte q;
end:
  do
  REQ(n,0)
#if R > 1
  REQ(n,1)
#endif
#if R > 2
  REQ(n,2)
#endif
#if R > 3
  REQ(n,3)
#endif
  /* learn the outcome/config (COMMIT, CANCEL, poll or lease answer) */
  :: atomic { up[n] && (ver[n] < dbver || (hold[n] && !(pend && SRC == n))) ->
       ver[n] = dbver; printf("N%d: config %d\n", n, dbver);
       if
       :: hold[n] && !(pend && SRC == n) ->
          hold[n] = 0;
#ifdef M_LOCAL
          if :: heldq[n] -> assert(own[dbver] == n) :: else fi;
#endif
          relheld(n,0);
#if R > 1
          relheld(n,1);
#endif
#if R > 2
          relheld(n,2);
#endif
#if R > 3
          relheld(n,3);
#endif
          heldq[n] = 0
       :: else
       fi }
  :: atomic { up[n] && act[n] && !hold[n] -> act[n] = 0; flush(n); printf("N%d: passivate\n", n) }
#if CRASH
  :: atomic { up[n] && crashes < CRASH -> crashes++; up[n] = 0; hold[n] = 0; act[n] = 0; heldq[n] = 0; ver[n] = 0;
       k = 0; do :: k < R -> clr(n,k); CLRHP(n,k) heldb[IX(n,k)] = 0; k++ :: else -> break od; k = 0;
       MEMZERO(n);
       printf("N%d: crash\n", n) }
  :: atomic { !up[n] && (own[dbver] != n || dbver < MAXV) ->       /* restart: REGISTER */
       up[n] = 1;
       if :: pend && (SRC == n || pto == n) -> pend = 0; drained = 0; pto = 0 :: else fi;
       if :: own[dbver] == n -> own[dbver+1] = n; dbver++; cold = dbver :: else fi;
       ver[n] = dbver; printf("N%d: restart, registered, config %d cold %d\n", n, dbver, cold) }
  :: atomic { !up[n] && own[dbver] == n && dbver < MAXV && up[(n+1)%NN] ->   /* lease over: forced takeover */
       own[dbver+1] = (n+1)%NN; dbver++; cold = dbver; pend = 0; drained = 0; pto = 0;
       printf("DB: REASSIGN version %d owner %d\n", dbver, own[dbver]) }
#endif
  od
}
active proctype Txn() {
end:
  do
#define MOVE(d) :: atomic { !pend && dbver < MOVES && SRC != d && up[SRC] && ver[SRC] == dbver && up[d] && !hold[SRC] -> pend = 1; pto = d; hold[SRC] = 1; \
       printf("DB: BEGIN move N%d->N%d, hold\n", SRC, d) }
#ifndef MOVES
#define MOVES (MAXV-CRASH)
#endif
  MOVE(0)
  MOVE(1)
#if NN > 2
  MOVE(2)
#endif
  :: atomic { pend && !drained && up[SRC] && hold[SRC] -> 
       if :: act[SRC] -> act[SRC] = 0; flush(SRC) :: else fi; drained = 1; printf("DB: PREPARED\n") }
  :: atomic { pend && drained -> own[dbver+1] = pto; dbver++; pend = 0; drained = 0; pto = 0; printf("DB: COMMIT version %d owner %d\n", dbver, own[dbver]) }
#ifndef NOABORT
  :: atomic { pend && aborts < 1 -> aborts++; pend = 0; drained = 0; pto = 0; printf("DB: ABORT\n") }
#endif
  od
}

init { byte n;
  atomic { n = 0; do :: n < NN -> up[n] = 1; run Node(n); n++ :: else -> break od;
    n = 0; do :: n < C -> run Gateway(n); n++ :: else -> break od; n = 0 }
}
#define alldone ((ok|err) == ALLR)
#define allok (ok == ALLR)
#ifdef LIVE
/* faults may stop at any moment: fairness must not force a fault to happen */
bit tick;
active proctype Tick() { end: do :: tick = 1 - tick od }      /* a blocked system still runs: makes deadlocks visible to LTL */
active proctype Calm() { atomic { crashes = CRASH; spur = SPUR; rloss = RLOSS; aban = ABAN; busy = BUSY; aborts = 1 } }
ltl answered { <> alldone }
ltl answered_ok { <> allok }
#endif
