/* SPDX-License-Identifier: Apache-2.0 */
/* handover.pml - commit-first, per-actor hand-over ("custody"): the ring switches first, every entity
 * of the moved range then changes hands on its own. S = old owner, D = new owner, NE entities.
 * A node that is the owner but has not yet received RELEASE(e) must not activate e.
 * Mutations:
 *  M_TIMEOUT   D activates e when no RELEASE came in time
 *  M_NOMARK    S does not refuse activation of an entity it has released (PULL does not carry the version)
 *  M_BUSYREL   S releases an entity whose task is running
 *  M_STALEWARM D takes the warm copy without comparing its state version with the store
 *  M_NOFLUSH   S releases before the state is in the store
 *  M_NOLEASE   D treats a silent S as dead without lease expiry
 * -DHYBRID: two-phase commit first holds the range and freezes the idle entities (state staged at D, keyed by the
 *  attempt); the commit may come while some entities still run (stragglers): these follow by custody.
 *  M_STALEREL  (HYBRID) D uses a staged copy of an aborted attempt
 */
#ifndef NE
#define NE 2
#endif
#ifndef MAXS
#define MAXS 2
#endif
#ifndef CRASH
#define CRASH 1
#endif
bit moved; bit sgone;                 /* db: range moved to D; S's incarnation is over (registered anew or fenced) */
bit sUp = 1, dUp = 1, sLease = 1, kS, kD = 0;
bit liveS[NE], runS[NE], out[NE], drain[NE];
bit liveD[NE], runD[NE], have[NE];
byte memS[NE], memD[NE], sto[NE], acc[NE];  /* state version in memory / store / last accepted (history) */
bit pull[NE], rel[NE]; byte warm[NE];        /* messages (sets), warm copy in RELEASE */
byte crashes; byte served[NE];
#ifdef HYBRID
byte att = 1, catt, hatt; bit frz[NE]; byte relatt[NE];
#define NOHOLD (hatt == 0)
#ifdef M_STALEREL
#define RELCUR(e) 1
#else
#define RELCUR(e) (relatt[e] == catt)
#endif
#define SETATT(e) relatt[e] = catt
#else
#define NOHOLD 1
#define RELCUR(e) 1
#define SETATT(e) skip
#endif
bit want[NE];                          /* a request for e waits at D */

#ifdef M_NOMARK
#define MARK(e) 1
#else
#define MARK(e) (!out[e])
#endif
#ifdef M_TIMEOUT
#define TMO 1
#else
#define TMO 0
#endif
#ifdef M_BUSYREL
#define RELOK(e) 1
#else
#define RELOK(e) (!runS[e])
#endif
proctype S(byte e) {
end:
  do
  :: atomic { sUp && sLease && !liveS[e] && !kS && NOHOLD && MARK(e) -> liveS[e] = 1; memS[e] = sto[e]; printf("S: activate %d (state %d)\n", e, memS[e]) }
  :: atomic { sUp && sLease && liveS[e] && !runS[e] && !drain[e] && NOHOLD && memS[e] < MAXS -> runS[e] = 1 }
  :: atomic { sUp && runS[e] -> runS[e] = 0; memS[e]++; acc[e] = memS[e]; printf("S: task of %d done, state %d\n", e, memS[e]) }
#ifdef HYBRID
  /* hold: freeze an idle entity, stage its state at D under this attempt */
  :: atomic { sUp && sLease && hatt == att && !moved && !frz[e] && !runS[e] ->
       if :: liveS[e] -> sto[e] = memS[e]; liveS[e] = 0 :: else fi;
       frz[e] = 1; rel[e] = 1; relatt[e] = att; warm[e] = sto[e]; printf("S: freeze %d, staged (attempt %d, state %d)\n", e, att, sto[e]) }
#endif
  /* PULL(e) carries the new version: S learns it */
  :: atomic { sUp && pull[e] && !out[e] && !drain[e] ->
#ifndef M_NOMARK
       kS = 1;
#endif
       if :: liveS[e] -> drain[e] = 1 :: else -> out[e] = 1; rel[e] = 1; SETATT(e); warm[e] = sto[e]; printf("S: RELEASE %d (not in memory)\n", e) fi;
       pull[e] = 0 }
  :: atomic { sUp && pull[e] && out[e] -> rel[e] = 1; SETATT(e); pull[e] = 0; printf("S: RELEASE %d again\n", e) }
  /* after learning the version: drain on its own and push */
  :: atomic { sUp && kS && liveS[e] && !drain[e] -> drain[e] = 1 }
  :: atomic { sUp && drain[e] && liveS[e] && RELOK(e) ->
       drain[e] = 0; out[e] = 1; rel[e] = 1; SETATT(e); warm[e] = memS[e];
#ifndef M_NOFLUSH
       sto[e] = memS[e];
#endif
#ifndef M_BUSYREL
       liveS[e] = 0;
#else
       if :: !runS[e] -> liveS[e] = 0 :: else fi;
#endif
       printf("S: RELEASE %d (state %d)\n", e, warm[e]) }
#ifdef M_BUSYREL
  :: atomic { out[e] && liveS[e] && !runS[e] -> liveS[e] = 0 }
#endif
  od
}
active proctype Sctl() { byte e;
end:
  do
  :: atomic { sUp && moved && !kS -> kS = 1; printf("S: learns the version\n") }
  :: atomic { sUp && crashes < CRASH -> crashes++; sUp = 0; sLease = 0;
       e = 0; do :: e < NE ->
          if :: liveS[e] && !out[e] -> acc[e] = sto[e] :: else fi;     /* unflushed work of a crashed node is gone (COLD) */
          liveS[e] = 0; runS[e] = 0; drain[e] = 0; memS[e] = 0; out[e] = 0; pull[e] = 0; e++ :: else -> break od; e = 0;
       kS = 1;                      /* it will come back with the current config */
       printf("S: crash\n") }
  :: atomic { !sUp -> sUp = 1; sgone = 1; kS = moved; 
       if :: !moved -> sLease = 1; sgone = 0 :: else fi; 
#ifdef HYBRID
       if :: !moved && hatt == att -> att++ :: else fi;      /* REGISTER aborts the pending attempt */
       if :: !moved -> hatt = 0; frz[0] = 0; frz[NE-1] = 0 :: else fi;
#endif
       printf("S: registered anew\n") }
  :: atomic { sUp && !sLease && !sgone && !moved -> sLease = 1; printf("S: lease renewed\n") }
  /* partition: lease runs out, S stops its actors, then it may be fenced */
  :: atomic { sUp && sLease && crashes < CRASH -> crashes++; sLease = 0;
       e = 0; do :: e < NE ->
          if :: liveS[e] && !out[e] -> acc[e] = sto[e] :: else fi;
          liveS[e] = 0; runS[e] = 0; drain[e] = 0; memS[e] = 0; e++ :: else -> break od; e = 0;
       printf("S: lease over, actors stopped\n") }
#ifdef M_NOLEASE
  :: atomic { moved && !sgone && crashes < CRASH -> crashes++; sgone = 1; printf("DB: S fenced\n") }
#else
  :: atomic { !sLease && !sgone && moved -> sgone = 1; printf("DB: S fenced\n") }
#endif
  od
}

#ifdef HYBRID
active proctype Db() {
end:
  do
  :: atomic { !moved && hatt == 0 && sUp && sLease && !sgone -> hatt = att; printf("DB: PREPARE attempt %d\n", att) }
  :: atomic { !moved && hatt == att -> moved = 1; catt = att; printf("DB: COMMIT attempt %d, range moved to D\n", att) }
  :: atomic { !moved && hatt == att && att < 3 -> att++; printf("DB: ABORT attempt %d\n", att-1) }
  :: atomic { !moved && hatt != 0 && hatt != att -> hatt = 0; frz[0] = 0; frz[NE-1] = 0; printf("S: CANCEL, resume\n") }
  od }
#else
active proctype Db() { atomic { sUp -> moved = 1; printf("DB: COMMIT, range moved to D\n") } }
#endif

proctype Dn(byte e) {
end:
  do
  :: atomic { dUp && moved && !kD -> kD = 1; printf("D: learns the version\n") }
  :: atomic { dUp && kD && !want[e] && served[e] < 2 -> want[e] = 1 }
  :: atomic { dUp && kD && want[e] && !liveD[e] && !have[e] && !pull[e] && !(rel[e] && RELCUR(e)) && sUp && !sgone -> pull[e] = 1; printf("D: PULL %d\n", e) }
  :: atomic { dUp && kD && rel[e] && RELCUR(e) && !have[e] -> have[e] = 1; printf("D: has RELEASE %d\n", e) }
  :: atomic { dUp && kD && want[e] && !liveD[e] && (have[e] || sgone || TMO) ->
       liveD[e] = 1;
#ifdef M_STALEWARM
       memD[e] = (rel[e] -> warm[e] : sto[e]);
#else
       memD[e] = (rel[e] && warm[e] >= sto[e] -> warm[e] : sto[e]);
#endif
       printf("D: activate %d (state %d)\n", e, memD[e]);
       assert(!liveS[e]);               /* at most one live actor */
       assert(memD[e] == acc[e]) }      /* nothing accepted is lost */
  :: atomic { liveD[e] && !runD[e] && want[e] -> runD[e] = 1 }
  :: atomic { runD[e] -> runD[e] = 0; memD[e]++; acc[e] = memD[e]; sto[e] = memD[e]; want[e] = 0; if :: served[e] < 2 -> served[e]++ :: else fi; printf("D: task of %d done, state %d\n", e, memD[e]) }
  :: atomic { liveD[e] && !runD[e] && !want[e] -> liveD[e] = 0; sto[e] = memD[e] }
  od
}
active proctype Dctl() { byte e;
end:
  do
  :: atomic { dUp && crashes < CRASH -> crashes++; dUp = 0; kD = 0;
      e = 0; do :: e < NE -> if :: liveD[e] -> acc[e] = sto[e] :: else fi;
         liveD[e] = 0; runD[e] = 0; have[e] = 0; memD[e] = 0; want[e] = 0; e++ :: else -> break od; e = 0; printf("D: crash\n") }
  :: atomic { !dUp -> dUp = 1 }
  od
}
active proctype Monitor() {
end: if :: atomic { (liveS[0] && liveD[0]) || (liveS[NE-1] && liveD[NE-1]) -> printf("VIOLATION: two live actors\n"); assert(false) } fi
}
init { byte e; atomic { e = 0; do :: e < NE -> run S(e); run Dn(e); e++ :: else -> break od; e = 0 } }
#ifdef LIVE
/* faults may stop at any moment: fairness must not force a fault to happen */
bit tick;
active proctype Tick() { end: do :: tick = 1 - tick od }      /* a blocked system still runs: makes deadlocks visible to LTL */
active proctype Calm() { atomic { crashes = CRASH } }
ltl all_served { <> (served[0] == 2 && served[NE-1] == 2) }
#endif
