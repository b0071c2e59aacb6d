/* SPDX-License-Identifier: Apache-2.0 */
/* par.pml - several membership transactions in flight at once. 2 ranges, N nodes, T transactions.
 * Version numbers are given at commit; a commit is a delta on the current config; conflict rule on ranges.
 * Mutations:
 *  M_OVERLAP   two pending transactions may touch the same range
 *  M_SNAPSHOT  the new config is computed at BEGIN and installed whole at COMMIT
 *  M_VERTXN    config version = transaction number although commits overtake each other
 *  M_ONESLOT   a participant has one prepared slot: any outcome releases all holds
 *  M_HI        single highest-seen number instead of a per-transaction seen set (checked with -DLIVE: never commits)
 */
#ifndef N
#define N 3
#endif
#ifndef T
#define T 2
#endif
#ifndef CRASH
#define CRASH 1
#endif
#if T > 1
#define T2 2
#else
#define T2 1
#endif
#define IX(n,t) ((n)*(T+1)+(t))
#define B(x) (1<<(x))
byte db_last, dbver, pendm, commm;           /* masks over txns */
byte rng[T+1], from_at[T+1], to_at[T+1], base_at[T+1];
byte map[(T+1)*2];                            /* owner of range r under version v */
#ifdef M_SNAPSHOT
byte snap[(T+1)*2];
#endif
byte voted[N*(T+1)];
bit up[N]; byte ver[N]; byte ps[N*(T+1)]; byte seen[N]; bit live[N*2];
byte crashes;
#define MAP(v,r) map[(v)*2+(r)]
#define part(n,t) (from_at[t]==(n) || to_at[t]==(n))
#define pend(t) ((pendm>>(t))&1)
#define begun(t) ((t) <= db_last)
#define held(n,r) ((ps[IX(n,1)] && rng[1]==(r)) || (T>1 && ps[IX(n,T2)] && rng[T2]==(r)) || (T>2 && ps[IX(n,T)] && rng[T]==(r)))
#ifdef M_OVERLAP
#define NOCONF(r) 1
#else
#define NOCONF(r) (!(pend(1) && rng[1]==(r)) && !(T>1 && pend(T2) && rng[T2]==(r)) && !(T>2 && pend(T) && rng[T]==(r)))
#endif

inline adopt(n,v) { ver[n] = v; assert(!(live[n*2] && MAP(v,0) != n)); assert(!(live[n*2+1] && MAP(v,1) != n)) }

proctype Coord() { byte t;
end:
  do
#define BEG(r,d) :: atomic { db_last < T && NOCONF(r) && MAP(dbver,r) != d -> \
      db_last++; t = db_last; rng[t] = r; from_at[t] = MAP(dbver,r); to_at[t] = d; base_at[t] = dbver; pendm = pendm | B(t); SNAP(r,d) \
      printf("DB: BEGIN txn %d range %d: %d->%d\n", t, r, from_at[t], d); t = 0 }
#ifdef M_SNAPSHOT
#define SNAP(r,d) snap[t*2] = MAP(dbver,0); snap[t*2+1] = MAP(dbver,1); snap[t*2+r] = d;
#else
#define SNAP(r,d)
#endif
  BEG(0,0) BEG(0,1) BEG(1,0) BEG(1,1)
#if N > 2
  BEG(0,2) BEG(1,2)
#endif
#define DEC(x) :: atomic { begun(x) && pend(x) && voted[IX(from_at[x],x)] && voted[IX(to_at[x],x)] -> \
      pendm = pendm & (255-B(x)); commm = commm | B(x); COMMITV(x) printf("DB: COMMIT txn %d as version %d: owners %d %d\n", x, dbver, MAP(dbver,0), MAP(dbver,1)) } \
  :: atomic { begun(x) && pend(x) -> pendm = pendm & (255-B(x)); printf("DB: ABORT txn %d\n", x) }
#if defined(M_SNAPSHOT)
#define COMMITV(x) dbver++; MAP(dbver,0) = snap[(x)*2]; MAP(dbver,1) = snap[(x)*2+1];
#elif defined(M_VERTXN)
#define COMMITV(x) MAP(x,0) = MAP(dbver,0); MAP(x,1) = MAP(dbver,1); MAP(x,rng[x]) = to_at[x]; dbver = x;
#else
#define COMMITV(x) MAP(dbver+1,0) = MAP(dbver,0); MAP(dbver+1,1) = MAP(dbver,1); dbver++; MAP(dbver,rng[x]) = to_at[x];
#endif
  DEC(1)
#if T > 1
  DEC(2)
#endif
#if T > 2
  DEC(3)
#endif
  od
}
#ifdef M_ONESLOT
inline done(n,t) { k = 1; do :: k <= T -> ps[IX(n,k)] = 0; k++ :: else -> break od; k = 0 }
#else
inline done(n,t) { ps[IX(n,t)] = 0 }
#endif
proctype Node(byte n) { byte k;
end:
  do
#ifdef M_HI
#define NEW(n,t) ((t) > seen[n])
#define SEE(n,t) seen[n] = t
#else
#define NEW(n,t) (!((seen[n]>>(t))&1))
#define SEE(n,t) seen[n] = seen[n] | B(t)
#endif
#define TX(t) \
  :: atomic { up[n] && begun(t) && part(n,t) && NEW(n,t) -> SEE(n,t); \
       if :: ver[n] < base_at[t] -> adopt(n, dbver) :: else fi; ps[IX(n,t)] = 1; printf("N%d: PREPARE %d\n", n, t) } \
  :: atomic { up[n] && ps[IX(n,t)] == 1 && !live[n*2+rng[t]] -> ps[IX(n,t)] = 2; voted[IX(n,t)] = 1; printf("N%d: PREPARED %d\n", n, t) } \
  :: atomic { up[n] && ps[IX(n,t)] && !pend(t) -> if :: dbver > ver[n] -> adopt(n, dbver) :: else fi; done(n,t); printf("N%d: outcome of %d, version %d\n", n, t, ver[n]) } \
  :: atomic { up[n] && ps[IX(n,t)] && !pend(t) && !((commm>>(t))&1) -> done(n,t); printf("N%d: CANCEL %d\n", n, t) }
  TX(1)
#if T > 1
  TX(2)
#endif
#if T > 2
  TX(3)
#endif
  :: atomic { up[n] && dbver > ver[n] -> adopt(n, dbver); printf("N%d: version %d\n", n, dbver) }
  :: atomic { up[n] && crashes < CRASH -> crashes++; up[n] = 0; live[n*2] = 0; live[n*2+1] = 0; ver[n] = 0; 
       k = 1; do :: k <= T -> ps[IX(n,k)] = 0; k++ :: else -> break od; k = 0; printf("N%d: crash\n", n) }
  :: atomic { !up[n] -> up[n] = 1; ver[n] = dbver; 
       k = 1; do :: k <= T -> if :: pend(k) && part(n,k) -> pendm = pendm & (255-B(k)) :: else fi; k++ :: else -> break od; k = 0;
#ifdef M_HI
       seen[n] = db_last;
#else
       seen[n] = B(db_last+1)-1;
#endif
       printf("N%d: registered, version %d\n", n, dbver) }
  od
}
proctype Actor(byte n; byte r) {
end:
  do
  :: atomic { up[n] && !live[n*2+r] && MAP(ver[n],r) == n && !held(n,r) -> live[n*2+r] = 1; printf("N%d: active range %d under version %d\n", n, r, ver[n]) }
  :: atomic { live[n*2+r] -> live[n*2+r] = 0 }
  od
}
#define TWO(r) ((live[r] && live[2+r]) || (N>2 && live[r] && live[(N-1)*2+r]) || (N>2 && live[2+r] && live[(N-1)*2+r]))
#define STALE(n,r) (live[(n)*2+r] && MAP(dbver,r) != (n))
proctype Monitor() {
end: if
  :: atomic { TWO(0) || TWO(1) -> printf("VIOLATION: two live actors\n"); assert(false) }
  :: atomic { STALE(0,0) || STALE(0,1) || STALE(1,0) || STALE(1,1) || STALE(N-1,0) || STALE(N-1,1) -> printf("VIOLATION: live actor on a node that is not the committed owner\n"); assert(false) }
  fi }
init { byte n; atomic { MAP(0,0) = 0; MAP(0,1) = 1; n = 0; run Coord(); run Monitor();
  do :: n < N -> up[n] = 1; run Node(n); run Actor(n,0); run Actor(n,1); n++ :: else -> break od; n = 0 } }
