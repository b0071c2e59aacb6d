/* stream.pml - the request path by streams, with forwarding: one gateway, NN nodes, one lane of Q pipelined requests (one session,
 * one entity), while the entity's range moves (hold, commit or abort), links break, nodes crash.
 *
 * A stream is (client, incarnation of a node); a client is the gateway or a node that forwards. The client numbers what it sends on it
 * (the index in sq). The node takes it in that order (exp = what comes next), appends answers to its log (lr, lc) in the order of their
 * ends, and the client reads the log in order (got). No record of a request is kept anywhere else: nothing moves with the actor.
 *  resume   a link that broke is joined again by telling exp and got; the old connection is read no more. What was not taken is sent
 *           again, or goes elsewhere (the gateway), or is refused (a node that forwards).
 *  fence    a refusal closes the stream for the lane: what was sent before the client heard of it (sa < fence) is refused too.
 *  lane     the gateway sends requests of a lane while all unanswered of it are in the same stream and none of it was refused; else
 *           when none is under way. One that was given up (TIMEOUT) counts until it is answered, withdrawn, or its stream is dead.
 *  forward  (R8F) a node passes what it held, and what comes later, to the owner by its own stream to it. The request stays taken and
 *           unanswered in the stream that it came by until the answer, or the refusal, of the next hop is appended to that one's log.
 *  beside   while a node has unanswered forwards of a lane that came by one stream, what comes behind them by it goes the same way or is
 *           refused: it neither runs here nor goes to a third node.
 *  death    the incarnation is over by the configuration: what was sent there and is unanswered is UNKNOWN. Who adopts that version has
 *           dropped what the dead node forwarded and nobody has run.
 * A request is forwarded once: whoever has one that is lost knows by which node it came, and nobody else has it.
 * Mutations (each must be found):
 *  M_NOFENCE   a refusal does not close the stream            M_NOLANE    a request goes to the new owner while one before it is elsewhere
 *  M_NOSEQ     after a resume all that is unanswered is sent again, and the node does not look at numbers
 *  M_OLDCONN   the node goes on reading the old connection after a resume
 *  M_REROUTE   a broken link: what is under way is asked of the new owner at once
 *  M_DEADSEND  a dead stream: what was under way there is asked of the new owner
 *  M_ZOMBIE    a request that was given up does not count
 *  M_LOCAL     held requests run here whatever the configuration says
 *  M_NOTAG     a node does not wait for the version that a request carries: it is refused to and fro for ever
 *  M_REFUSERUN a held request that expires does not close the stream for those behind it
 *  M_LATEACK   a frame says what was heard when it leaves, not when its requests were put into it
 *  M_NOLOG     the log is freed when it is sent, not when it is acknowledged: never answered
 * and of forwarding:
 *  M_FWORDER   what was held is forwarded in the opposite order
 *  M_FWBOTH    it is forwarded and refused
 *  M_FWAFTER   the link to the next node breaks: UNKNOWN at once, and it is still sent when the link is back
 *  M_BESIDE    what comes behind a forward runs here when the range is back
 *  M_THIRD     what comes behind a forward goes to the owner of now
 *  M_RELAY     the refusal of the next hop is told without closing the stream that the request came by
 *  M_DEADFWD   what a dead node forwarded is run after its death was adopted
 *  M_TWOHOPS   what was forwarded is forwarded again
 *  M_DEADREF   forwards to a dead node are refused, not UNKNOWN
 */
#ifndef NN
#define NN 2
#endif
#ifndef Q
#define Q 2
#endif
#ifndef MAXV
#define MAXV 2
#endif
#ifndef CRASH
#define CRASH 0
#endif
#ifndef MOVES
#define MOVES (MAXV-CRASH)
#endif
#ifndef BREAKS
#define BREAKS 1
#endif
#ifndef BUSY
#define BUSY 1
#endif
#ifndef ABAN
#define ABAN 1
#endif
#ifndef NOPASS
#define NOPASS 1        /* so often a node refuses MOVED what it could forward */
#endif
#ifndef L
#define L 6
#endif
#define OK 1
#define REFUSED 2
#define MOVED 3         /* + version */
#define UNKNOWN 16
#define G NN            /* the gateway as a client */

byte dbver, own[MAXV+1]; bit pend, drained; byte pto;
#define SRC own[dbver]
byte aborts, crashes, breaks, busy, aban, nopass;
typedef Str {
  byte sq[L]; byte sa[L]; byte sv[L];      /* sent: where it came from * Q + request; got at that time; version */
  byte slen, wire, exp;                    /* numbered, on the connection, taken */
  byte lr[L]; byte lc[L];                  /* log: likewise, code */
  byte llen, got, fence;
  bit link;
  bit dead, cd, sd;                        /* an end of it is dead; client, server have drawn the consequence */
#ifdef M_OLDCONN
  byte oq; bit on;                         /* still in the old connection */
#endif
}
Str s[(NN+1)*NN];
#define S(c,n) s[(c)*NN+(n)]
byte fw[NN*(NN+1)*Q];                      /* node n, came from c, request r: forwarded to, +1 */
#define FW(n,c,r) fw[((n)*(NN+1)+(c))*Q+(r)]
typedef Held { byte x[Q]; byte c[Q]; byte a[Q]; byte hn };
Held h[NN];
bit up[NN], hold[NN], fenced[NN]; byte ver[NN], deadver[NN];
byte gver, needv;
byte st[Q];      /* 0 waits at the gateway, 1 sent, 2 OK, 3 UNKNOWN, 4 TIMEOUT, 5 REJECTED */
byte at[Q];      /* node whose stream it is in, +1 */
bit zomb[Q];     /* given up, still counted */
bit trouble;
byte ex, lastx;

#define SENT(r) (st[r] == 1 || zomb[r])
#define DONE(r) (st[r] >= 2)
#define UNDERWAY (SENT(0) || (Q > 1 && SENT(1 % Q)) || (Q > 2 && SENT(2 % Q)))
#define ELSE(r,n) (SENT(r) && at[r] != (n)+1)
#define ELSEWHERE(n) (ELSE(0,n) || (Q > 1 && ELSE(1 % Q,n)) || (Q > 2 && ELSE(2 % Q,n)))
#define ALLDONE (DONE(0) && DONE(1 % Q) && DONE(2 % Q))
#define FIRST (st[0] == 0 -> 0 : (Q > 1 && st[1 % Q] == 0 -> 1 : (Q > 2 && st[2 % Q] == 0 -> 2 : Q)))
#define HELDBY(n,cc) ((h[n].hn > 0 && h[n].c[0] == cc) || (h[n].hn > 1 && h[n].c[1 % Q] == cc) || (h[n].hn > 2 && h[n].c[2 % Q] == cc))
/* where the unanswered forwards of n are that came from c, +1 */
#define PEND(n,c) (FW(n,c,0) -> FW(n,c,0) : (FW(n,c,1 % Q) -> FW(n,c,1 % Q) : FW(n,c,2 % Q)))
#define MINE(n) (own[ver[n]] == n)

inline settle() { if :: !UNDERWAY -> trouble = 0 :: else fi }
inline zero(_c,_n) { i = 0; do :: i < L -> S(_c,_n).sq[i] = 0; S(_c,_n).sa[i] = 0; S(_c,_n).sv[i] = 0; S(_c,_n).lr[i] = 0; S(_c,_n).lc[i] = 0; i++ :: else -> break od; i = 0;
  S(_c,_n).slen = 0; S(_c,_n).wire = 0; S(_c,_n).exp = 0; S(_c,_n).llen = 0; S(_c,_n).got = 0; S(_c,_n).fence = 0 }
inline normal(_c,_n) { if :: S(_c,_n).exp == S(_c,_n).slen && S(_c,_n).got == S(_c,_n).llen && !HELDBY(_n,_c) -> zero(_c,_n) :: else fi }
inline done(_c,_n) {      /* both ends know of the death: the stream of the next incarnation may begin */
  if :: S(_c,_n).cd && S(_c,_n).sd -> zero(_c,_n); S(_c,_n).dead = 0; S(_c,_n).cd = 0; S(_c,_n).sd = 0; S(_c,_n).link = 0;
#ifdef M_OLDCONN
        S(_c,_n).on = 0; S(_c,_n).oq = 0;
#endif
     :: else fi }
inline append(_c,_n,xx,code) { S(_c,_n).lr[S(_c,_n).llen] = xx; S(_c,_n).lc[S(_c,_n).llen] = code; S(_c,_n).llen++ }
inline refuse(_c,_n,xx,code) { append(_c,_n,xx,code);
#ifndef M_NOFENCE
  S(_c,_n).fence = S(_c,_n).llen;
#endif
  printf("N%d: refuse %d of C%d (%d)\n", _n, (xx)%Q+1, _c, code) }
inline execute(_c,_n,xx) {
  assert(own[dbver] == _n && !drained);
  assert(!((ex>>((xx)%Q))&1));            /* once */
  assert((xx)%Q+1 > lastx);               /* in order */
  assert(st[(xx)%Q] != 5);                /* never what was rejected */
  ex = ex | (1<<((xx)%Q)); lastx = (xx)%Q+1;
  append(_c,_n,xx,OK);
  printf("N%d: execute %d of C%d\n", _n, (xx)%Q+1, _c) }
#ifdef M_TWOHOPS
#define FRESH(c,xx) ((xx)/Q == G)
#else
#define FRESH(c,xx) ((c) == G)
#endif
#define MAYPASS(c,n,xx,o) (FRESH(c,xx) && (o) != n && !S(n,o).dead && S(n,o).slen < L)
/* it is not for this node, or follows what was not: on, or back. o is set. */
inline pass(_c,_n,xx) {
  if
  :: MAYPASS(_c,_n,xx,o) ->
     printf("N%d: forward %d of C%d to N%d\n", _n, (xx)%Q+1, _c, o);
     FW(_n,_c,(xx)%Q) = o+1;
     S(_n,o).sq[S(_n,o).slen] = _c*Q+(xx)%Q; S(_n,o).sa[S(_n,o).slen] = S(_n,o).got; S(_n,o).sv[S(_n,o).slen] = ver[_n]; S(_n,o).slen++;
     if :: S(_n,o).link -> S(_n,o).wire = S(_n,o).slen :: else fi;
#ifdef M_FWBOTH
     refuse(_c,_n,xx,MOVED+ver[_n])
#endif
  :: !MAYPASS(_c,_n,xx,o) || nopass < NOPASS ->
     if :: MAYPASS(_c,_n,xx,o) -> nopass++ :: else fi;
     refuse(_c,_n,xx,MOVED+ver[_n])
  fi }

#ifdef M_NOLANE
#define MAY(n) (!trouble)
#else
#define MAY(n) (!UNDERWAY || (!trouble && !ELSEWHERE(n)))
#endif
#ifdef M_LATEACK
#define LATEACK(C,N) i = S(C,N).exp; do :: i < S(C,N).slen -> S(C,N).sa[i] = S(C,N).got; i++ :: else -> break od; i = 0;
#else
#define LATEACK(C,N)
#endif
#ifdef M_OLDCONN
#define OLDCONN(C,N) if :: S(C,N).exp < S(C,N).wire -> S(C,N).oq = S(C,N).sq[S(C,N).exp]; S(C,N).on = 1 :: else fi;
#else
#define OLDCONN(C,N)
#endif
#ifdef M_NOSEQ
#define NOSEQ(N) i = 0; do :: i < S(G,N).exp && !(SENT(S(G,N).sq[i]%Q) && at[S(G,N).sq[i]%Q] == N+1) -> i++ :: else -> break od; S(G,N).exp = i; i = 0;
#else
#define NOSEQ(N)
#endif
#ifdef M_NOLOG
#define LOSELOG(C,N) S(C,N).got = S(C,N).llen; normal(C,N);
#else
#define LOSELOG(C,N)
#endif
#ifdef M_DEADSEND
#define DEADST 0
#else
#define DEADST 3
#endif
#ifdef M_ZOMBIE
#define ZOMBIE(R) at[R] = 0;
#else
#define ZOMBIE(R) zomb[R] = 1;
#endif

proctype Gateway() { byte i; byte r; byte n; byte c;
end:
  do
  /* send the lowest that waits */
  :: atomic { FIRST < Q && gver >= needv && S(G,own[gver]).link && up[own[gver]] && !S(G,own[gver]).dead && MAY(own[gver]) && S(G,own[gver]).slen < L ->
       r = FIRST; n = own[gver];
       S(G,n).sq[S(G,n).slen] = G*Q+r; S(G,n).sa[S(G,n).slen] = S(G,n).got; S(G,n).sv[S(G,n).slen] = gver; S(G,n).slen++; S(G,n).wire = S(G,n).slen;
       st[r] = 1; at[r] = n+1;
       printf("G: send %d to N%d as %d, version %d\n", r+1, n, S(G,n).slen, gver); r = 0; n = 0 }
  /* read the log */
#define READ(N) :: atomic { S(G,N).link && up[N] && S(G,N).got < S(G,N).llen -> \
       r = S(G,N).lr[S(G,N).got]%Q; c = S(G,N).lc[S(G,N).got]; S(G,N).got++; \
       printf("G: answer %d of N%d for %d: %d\n", S(G,N).got, N, r+1, c); \
       if :: at[r] != N+1 -> skip                                     /* asked elsewhere since */ \
          :: else -> at[r] = 0; \
             if :: c >= MOVED && c < UNKNOWN && c-MOVED > needv -> needv = c-MOVED :: else fi; \
             if :: zomb[r] -> zomb[r] = 0 \
                :: !zomb[r] && c == OK -> assert(!DONE(r)); st[r] = 2 \
                :: !zomb[r] && c >= UNKNOWN -> st[r] = 3 \
                :: !zomb[r] && c != OK && c < UNKNOWN -> st[r] = 0; trouble = 1 \
             fi \
       fi; \
       LATEACK(G,N) settle(); normal(G,N); r = 0; c = 0 }
  READ(0)
  READ(1)
#if NN > 2
  READ(2)
#endif
  /* the link is made again: exp is told, the old connection is read no more */
#define RESUME(N) :: atomic { !S(G,N).link && up[N] && !S(G,N).dead -> \
       printf("G: link to N%d, which has taken %d of %d\n", N, S(G,N).exp, S(G,N).slen); \
       OLDCONN(G,N) \
       NOSEQ(N) \
       if :: own[gver] == N || S(G,N).exp == S(G,N).slen -> S(G,N).wire = S(G,N).slen \
          :: else -> i = S(G,N).exp; \
             do :: i < S(G,N).slen -> r = S(G,N).sq[i]%Q; \
                   if :: at[r] == N+1 -> at[r] = 0; if :: zomb[r] -> zomb[r] = 0 :: else -> st[r] = 0; trouble = 1 fi :: else fi; \
                   S(G,N).sq[i] = 0; S(G,N).sa[i] = 0; S(G,N).sv[i] = 0; i++ \
                :: else -> break od; \
             S(G,N).slen = S(G,N).exp; S(G,N).wire = S(G,N).exp \
       fi; \
       S(G,N).link = 1; settle(); normal(G,N); i = 0; r = 0 }
  RESUME(0)
  RESUME(1)
#if NN > 2
  RESUME(2)
#endif
#ifdef M_REROUTE
#define REROUTE(N) if :: own[gver] != N -> i = 0; do :: i < Q -> if :: at[i] == N+1 && st[i] == 1 -> at[i] = 0; st[i] = 0 :: else fi; i++ :: else -> break od; i = 0; settle() :: else fi;
#else
#define REROUTE(N)
#endif
#define BREAK(N) :: atomic { S(G,N).link && breaks < BREAKS -> breaks++; S(G,N).link = 0; printf("link to N%d breaks\n", N); REROUTE(N) LOSELOG(G,N) }
  BREAK(0)
  BREAK(1)
#if NN > 2
  BREAK(2)
#endif
  /* news */
  :: atomic { gver < dbver -> gver = dbver; printf("G: config %d\n", gver) }
#define DEATH(N) :: atomic { S(G,N).dead && !S(G,N).cd && gver >= deadver[N] -> \
       printf("G: stream of N%d is dead\n", N); \
       i = 0; do :: i < Q -> \
         if :: at[i] == N+1 -> at[i] = 0; if :: zomb[i] -> zomb[i] = 0 :: !zomb[i] -> st[i] = DEADST fi :: else fi; i++ \
         :: else -> break od; i = 0; \
       S(G,N).cd = 1; done(G,N); settle() }
  DEATH(0)
  DEATH(1)
#if NN > 2
  DEATH(2)
#endif
  /* deadline */
#define GIVEUP(R) :: atomic { R < Q && aban < ABAN && st[R] == 0 && FIRST == R -> aban++; st[R] = 5; printf("G: %d rejected\n", R+1); assert(!((ex>>(R))&1)) } \
  :: atomic { R < Q && aban < ABAN && st[R] == 1 -> aban++; st[R] = 4; printf("G: %d timed out\n", R+1); ZOMBIE(R) settle() }
#if ABAN > 0
  GIVEUP(0)
  GIVEUP((1 % Q))
#if Q > 2
  GIVEUP((2 % Q))
#endif
#endif
  od
}

#ifdef M_NOTAG
#define TAGOK(C,N) 1
#else
#define TAGOK(C,N) (S(C,N).sv[S(C,N).exp] <= ver[N])
#endif
#ifdef M_LOCAL
#define GONE(N) 0
#else
#define GONE(N) (!MINE(N))
#endif
#ifdef M_BESIDE
#define BEHIND(N) (p != 0 && !MINE(N))
#else
#define BEHIND(N) (p != 0)
#endif
#ifdef M_THIRD
#define WHERE(N) own[ver[N]]
#else
#define WHERE(N) (p != 0 -> p-1 : own[ver[N]])
#endif
#ifdef M_RELAY
#define RELAY(c,n,xx,code) append(c,n,xx,code)
#else
#define RELAY(c,n,xx,code) append(c,n,xx,code); if :: code >= REFUSED && code < UNKNOWN -> S(c,n).fence = S(c,n).llen :: else fi
#endif

/* the client c is dead by the configuration: nothing of it that nobody has run is run */
inline drop(_c,_n) {
  printf("N%d: what C%d forwarded is dropped\n", _n, _c);
  i = 0; j = 0;
  do :: i < h[_n].hn ->
        if :: h[_n].c[i] != _c -> h[_n].x[j] = h[_n].x[i]; h[_n].c[j] = h[_n].c[i]; h[_n].a[j] = h[_n].a[i]; j++ :: else fi; i++
     :: else -> break od;
  i = j; do :: i < h[_n].hn -> h[_n].x[i] = 0; h[_n].c[i] = 0; h[_n].a[i] = 0; i++ :: else -> break od;
  h[_n].hn = j; i = 0; j = 0;
  do :: i < Q -> FW(_n,_c,i) = 0; i++ :: else -> break od; i = 0 }
/* the node o is dead by the configuration: what n forwarded there is UNKNOWN */
inline lost(_n,_o) {
  j = 0;
  do :: j <= NN -> i = 0;
        do :: i < Q -> if :: FW(_n,j,i) == _o+1 -> FW(_n,j,i) = 0; printf("N%d: forward of %d is lost\n", _n, i+1);
#ifdef M_DEADREF
                       if :: j != _n -> refuse(j,_n,G*Q+i,REFUSED) :: else fi
#else
                       if :: j != _n -> append(j,_n,G*Q+i,UNKNOWN) :: else fi
#endif
                       :: else fi; i++ :: else -> break od;
        j++ :: else -> break od; i = 0; j = 0 }

proctype Node(byte n) { byte i; byte j; byte x; byte a; byte p; byte o; byte c; byte k;
end:
  do
  /* take the next of a stream */
#define TAKE(C) :: atomic { C != n && up[n] && !S(C,n).sd && S(C,n).exp < S(C,n).wire && TAGOK(C,n) -> \
       x = S(C,n).sq[S(C,n).exp]; a = S(C,n).sa[S(C,n).exp]; S(C,n).exp++; p = PEND(n,C); \
       if \
       :: a < S(C,n).fence -> refuse(C,n,x,REFUSED) \
       :: a >= S(C,n).fence && (BEHIND(n) || !MINE(n)) -> o = WHERE(n); pass(C,n,x) \
       :: a >= S(C,n).fence && !BEHIND(n) && MINE(n) && hold[n] -> h[n].x[h[n].hn] = x; h[n].c[h[n].hn] = C; h[n].a[h[n].hn] = a; h[n].hn++; printf("N%d: hold %d of C%d\n", n, x%Q+1, C) \
       :: a >= S(C,n).fence && !BEHIND(n) && MINE(n) && busy < BUSY -> busy++; refuse(C,n,x,REFUSED) \
       :: a >= S(C,n).fence && !BEHIND(n) && MINE(n) && !hold[n] -> execute(C,n,x) \
       fi; x = 0; a = 0; p = 0; o = 0 }
  TAKE(0)
  TAKE(1)
  TAKE(2)
#if NN > 2
  TAKE(3)
#endif
#ifdef M_OLDCONN
#define TAKEOLD(C) :: atomic { C != n && up[n] && S(C,n).on && MINE(n) && !hold[n] -> S(C,n).on = 0; x = S(C,n).oq; S(C,n).oq = 0; execute(C,n,x); x = 0 }
  TAKEOLD(0)
  TAKEOLD(1)
  TAKEOLD(2)
#endif
  /* the first that is held expires */
  :: atomic { up[n] && hold[n] && h[n].hn > 0 && busy < BUSY -> busy++;
       x = h[n].x[0]; c = h[n].c[0]; i = 1;
       do :: i < h[n].hn -> h[n].x[i-1] = h[n].x[i]; h[n].c[i-1] = h[n].c[i]; h[n].a[i-1] = h[n].a[i]; i++ :: else -> break od;
       h[n].hn--; h[n].x[h[n].hn] = 0; h[n].c[h[n].hn] = 0; h[n].a[h[n].hn] = 0; i = 0;
#ifdef M_REFUSERUN
       append(c,n,x,REFUSED);
#else
       refuse(c,n,x,REFUSED);
#endif
       x = 0; c = 0 }
  /* as a client of O: read its log, join again, lose the link */
#define CLIENT(O) :: atomic { O != n && up[n] && S(n,O).link && up[O] && !S(n,O).dead && S(n,O).got < S(n,O).llen -> \
       x = S(n,O).lr[S(n,O).got]; k = S(n,O).lc[S(n,O).got]; S(n,O).got++; c = x/Q; \
       if :: FW(n,c,x%Q) != O+1 -> skip \
          :: else -> FW(n,c,x%Q) = 0; printf("N%d: N%d answers %d of C%d: %d\n", n, O, x%Q+1, c, k); RELAY(c,n,G*Q+x%Q,k) \
       fi; LATEACK(n,O) normal(n,O); x = 0; k = 0; c = 0 } \
  :: atomic { O != n && up[n] && !S(n,O).link && up[O] && !S(n,O).dead && S(n,O).slen > 0 -> \
       printf("N%d: link to N%d, which has taken %d of %d\n", n, O, S(n,O).exp, S(n,O).slen); \
       OLDCONN(n,O) \
       if :: own[ver[n]] == O || S(n,O).exp == S(n,O).slen -> S(n,O).wire = S(n,O).slen \
          :: else -> j = S(n,O).exp; \
             do :: j < S(n,O).slen -> x = S(n,O).sq[j]; c = x/Q; \
                   if :: FW(n,c,x%Q) == O+1 -> FW(n,c,x%Q) = 0; refuse(c,n,G*Q+x%Q,MOVED+ver[n]) :: else fi; \
                   S(n,O).sq[j] = 0; S(n,O).sa[j] = 0; S(n,O).sv[j] = 0; j++ \
                :: else -> break od; \
             S(n,O).slen = S(n,O).exp; S(n,O).wire = S(n,O).exp \
       fi; \
       S(n,O).link = 1; normal(n,O); j = 0; x = 0; c = 0 } \
  :: atomic { O != n && up[n] && S(n,O).link && S(n,O).slen > 0 && breaks < BREAKS -> breaks++; S(n,O).link = 0; printf("N%d: link to N%d breaks\n", n, O); \
       FWAFTER(O) LOSELOG(n,O) }
#ifdef M_FWAFTER
#define FWAFTER(O) lost(n,O);
#else
#define FWAFTER(O)
#endif
  CLIENT(0)
  CLIENT(1)
#if NN > 2
  CLIENT(2)
#endif
  /* outcome, or a newer configuration */
  :: atomic { up[n] && (ver[n] < dbver || (hold[n] && !(pend && SRC == n))) ->
       ver[n] = dbver; printf("N%d: config %d\n", n, dbver);
#if CRASH
#ifdef M_DEADFWD
#define DROP(C)
#else
#define DROP(C) drop(C,n);
#endif
#define ENDS(C) if :: C != n && S(C,n).dead && !S(C,n).sd && dbver >= deadver[C] -> DROP(C) S(C,n).sd = 1; done(C,n) :: else fi; \
       if :: C != n && S(n,C).dead && !S(n,C).cd && dbver >= deadver[C] -> lost(n,C); S(n,C).cd = 1; done(n,C) :: else fi;
       ENDS(0)
       ENDS(1)
#if NN > 2
       ENDS(2)
#endif
#endif
       if
       :: hold[n] && !(pend && SRC == n) ->
          hold[n] = 0; k = 0;
          do :: k < h[n].hn ->
#ifdef M_FWORDER
                i = h[n].hn-1-k;
#else
                i = k;
#endif
                x = h[n].x[i]; c = h[n].c[i]; a = h[n].a[i]; i = 0; p = PEND(n,c);
                if
                :: a < S(c,n).fence -> refuse(c,n,x,REFUSED)
                :: a >= S(c,n).fence && (GONE(n) || BEHIND(n)) -> o = WHERE(n); pass(c,n,x)
                :: a >= S(c,n).fence && !GONE(n) && !BEHIND(n) -> execute(c,n,x)
                fi; k++
             :: else -> break od;
          k = 0; do :: k < Q -> h[n].x[k] = 0; h[n].c[k] = 0; h[n].a[k] = 0; k++ :: else -> break od;
          h[n].hn = 0; k = 0; x = 0; a = 0; c = 0; p = 0; o = 0
       :: else fi }
#if CRASH
/* n is down and its streams were not buried yet */
#define GRAVE(n) i = 0; do :: i <= NN -> if :: i != n -> S(i,n).dead = 1; S(i,n).sd = 1; done(i,n) :: else fi; i++ :: else -> break od; \
       j = 0; do :: j < NN -> if :: j != n -> S(n,j).dead = 1; S(n,j).cd = 1; c = j; done(n,c) :: else fi; j++ :: else -> break od; i = 0; j = 0; c = 0;
#define BURIED(n) (!S(G,n).dead && !S((n+1)%NN,n).dead && !S(n,(n+1)%NN).dead && !S((n+NN-1)%NN,n).dead && !S(n,(n+NN-1)%NN).dead)
  :: atomic { up[n] && crashes < CRASH && BURIED(n) -> crashes++; up[n] = 0; hold[n] = 0; ver[n] = 0;
       i = 0; do :: i <= NN -> if :: i != n -> S(i,n).link = 0; S(i,n).wire = S(i,n).exp; j = 0; do :: j < Q -> FW(n,i,j) = 0; j++ :: else -> break od :: else fi; i++ :: else -> break od;
       j = 0; do :: j < NN -> if :: j != n -> S(n,j).link = 0 :: else fi; j++ :: else -> break od;
       i = 0; do :: i < Q -> h[n].x[i] = 0; h[n].c[i] = 0; h[n].a[i] = 0; i++ :: else -> break od; h[n].hn = 0; i = 0; j = 0;
       printf("N%d: crash\n", n) }
  :: atomic { !up[n] && dbver < MAXV && BURIED(n) ->                     /* restart: REGISTER */
       if :: pend && (SRC == n || pto == n) -> pend = 0; drained = 0; pto = 0 :: else fi;
       own[dbver+1] = own[dbver]; dbver++; deadver[n] = dbver; GRAVE(n)
       up[n] = 1; fenced[n] = 0; ver[n] = dbver; printf("N%d: restart, registered, config %d\n", n, dbver) }
  :: atomic { !up[n] && own[dbver] == n && dbver < MAXV && up[(n+1)%NN] && BURIED(n) && !fenced[n] ->   /* lease over: forced take-over */
       own[dbver+1] = (n+1)%NN; dbver++; pend = 0; drained = 0; pto = 0; fenced[n] = 1; deadver[n] = dbver; GRAVE(n)
       printf("DB: REASSIGN version %d owner %d\n", dbver, own[dbver]) }
  :: atomic { !up[n] && own[dbver] != n && dbver < MAXV && BURIED(n) && !fenced[n] ->                  /* fenced without vnodes */
       if :: pend && pto == n -> pend = 0; drained = 0; pto = 0 :: else fi;
       own[dbver+1] = own[dbver]; dbver++; fenced[n] = 1; deadver[n] = dbver; GRAVE(n) printf("DB: N%d fenced, version %d\n", n, dbver) }
#endif
  od
}
active proctype Txn() {
end:
  do
#define MOVE(d) :: atomic { !pend && dbver < MOVES && SRC != d && up[SRC] && ver[SRC] == dbver && up[d] && !hold[SRC] -> pend = 1; pto = d; hold[SRC] = 1; \
       printf("DB: BEGIN move N%d->N%d, hold\n", SRC, d) }
  MOVE(0)
  MOVE(1)
#if NN > 2
  MOVE(2)
#endif
  :: atomic { pend && !drained && up[SRC] -> drained = 1 }              /* images are at the new owner, all acknowledged */
  :: atomic { pend && drained && up[SRC] && up[pto] && dbver < MAXV -> own[dbver+1] = pto; dbver++; pend = 0; drained = 0; pto = 0; printf("DB: COMMIT %d owner N%d\n", dbver, own[dbver]) }
  :: atomic { pend && aborts < 1 -> aborts++; pend = 0; drained = 0; pto = 0; printf("DB: ABORT\n") }
  od
}
init { byte i;
  atomic { i = 0; do :: i < NN -> up[i] = 1; S(G,i).link = 1; i++ :: else -> break od;
    i = 0; do :: i < (NN+1)*NN -> s[i].link = 1; i++ :: else -> break od;
    i = 0; do :: i < NN -> run Node(i); i++ :: else -> break od; run Gateway(); i = 0 }
}
#define alldone ALLDONE
ltl answered { <> alldone }
