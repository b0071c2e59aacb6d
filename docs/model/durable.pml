/* SPDX-License-Identifier: Apache-2.0 */
/* durable.pml - durable actors and their store (decision 085): X, which is asked R requests, and with SENDS a second one, Y, to which
 * X's first SENDS requests send something each. L lives of each actor: a life is one activation at one owner; it ends when its commit
 * is refused or in doubt, it dies with its node, or it hangs while the next one takes over, and goes on later.
 *  value    the number of what was done to the actor: a request's answer is its place in that history
 *  commit   a callback changes memory, and this is one commit: value, the request's answer, outbox, number of the last send received, alarm.
 *           It is done if the row has its fence and the number before. Its answer may be lost, and it may come late
 *  doubt    such a commit is read back by its number. If it was not done, the number is raised past it, so that it never will be;
 *           and a store settles what it left in doubt before it claims the actor for the same fence again
 *  claim    raises the fence and reads all of it at once
 *  asker    asks again, by the same name, when the owner was deposed or does not know; answers of a deposed owner's are not taken
 *  answers  KEEP are kept. Names are in the order of asking; the row has the greatest that was forgotten. A request that is asked again, is
 *           not greater and has no answer there is UNKNOWN, and does not run
 *  outbox   a send goes when its commit is done, and again until it is acknowledged; a later commit deletes it. To one receiver they go
 *           one after the other in the order of their numbers, and the receiver's commit has the number of the last
 *  alarm    (ALARM) the first request sets it for time 1, the second moves it to 2 if it is still set
 * A read needs no step of its own: whenever the owner rests, it could answer its value, so that must be right (Monitor).
 * Nothing is done for ever: every run comes to rest, and by then all must be done (timeout).
 * Mutations (each must be found):
 *  M_ANSWERFIRST   the answer leaves before the commit
 *  M_NOFENCESTORE  the store does not compare the fence
 *  M_NOSAVEDANSWER the answer is saved in a second commit
 *  M_NAMEDANEW     a request is asked again by a new name
 *  M_FORGOTTEN     a request whose answer may have been forgotten is run
 *  M_LATECOMMIT    a commit that was told to be undone can be done later
 *  M_DOUBTLEFT     a store claims for the same fence while an earlier commit is in doubt
 *  M_OUTBOXLOST    a take-over does not read the outbox
 *  M_SENDTWICE     a send is not compared with the last one received
 *  M_OVERTAKEN     sends to one receiver go at the same time
 *  M_ALARMLOST     the alarm's row goes in a commit before that of its callback
 */
#ifndef R
#define R 2
#endif
#ifndef L
#define L 3
#endif
#ifndef KEEP
#define KEEP R
#endif
#ifndef SENDS
#define SENDS 0
#endif
#ifndef DUP
#define DUP 1           /* so often a send goes again for no reason */
#endif
#if SENDS
#define ACTORS 2
#else
#define ACTORS 1
#endif
#define X 0
#define Y 1
#define B(r) (1<<(r))
#define HAS(set,r) (((set)>>(r))&1)
/* how a request ended; less: OK, its value */
#define NOTSAVED 100
#define UNKNOWN 101

/* the store: a row for each actor. answers, floor, outbox, alarm of X; last send received of Y */
byte sFence[ACTORS], sNumber[ACTORS], sValue[ACTORS];
byte sAnswers, sFloor, sOutbox, sAlarm, sTaken;
byte place[R];                          /* history: of each request, 0 = it was not done */
byte got;                               /* history: sends received */
byte fired; bit set;                    /* history: of the alarm */
byte now;

/* lives: a life's memory is as the row, and ahead of it while a commit is on its way */
#define NL (ACTORS*L)
#define LIVE 1
#define ENDED 2                         /* its node lives on */
#define DEAD 3
#define WAITS 1                         /* for its commit */
#define DONE 2
#define REFUSED 3
#define DOUBT 4
typedef Life {
  byte is, fence, pc, task;
  bit flies;                            /* its commit is on its way to the store; what it says is in memory */
  byte number, value, answers, floor, outbox, alarm, taken;
  byte asked, again;                    /* requests in its queue; of these: asked again */
}
Life f[NL];
byte cur[ACTORS];                       /* newest life */
#define LAST(i) ((i)%L == L-1)
#define ACTOR(i) ((i)/L)
/* tasks */
#define REQUEST 1
#define RECEIVE 10
#define DELETE 20
#define FIRE 30
#define SAVE 40                         /* M_NOSAVEDANSWER */
#define DROPROW 50                      /* M_ALARMLOST */

/* the asker */
byte fin[R], at[R]; byte again;
#define ANSWERED(r) (fin[r] < NOTSAVED -> fin[r] : 0)
#define MAX(a,b) ((a) > (b) -> (a) : (b))
#define ANSWEREDMOST MAX(ANSWERED(0), MAX(ANSWERED(1 % R), ANSWERED(2 % R)))

/* sends under way, acknowledgements under way */
byte sent, acked, twice;
#define RECEIVES(i,r) (ACTORS > 1 && f[(i) % NL].is == LIVE && f[(i) % NL].task == RECEIVE+(r))
#define NOWHERE(r) (!HAS(sent,r) && !HAS(acked,r) && !RECEIVES(L,r) && !RECEIVES(L+1,r) && !RECEIVES(L+L-1,r))

inline zero(i) {
  f[i].number = 0; f[i].value = 0; f[i].answers = 0; f[i].floor = 0; f[i].outbox = 0; f[i].alarm = 0; f[i].taken = 0; f[i].task = 0;
  f[i].pc = 0 }
inline leave(i,how) {                   /* a commit that is on its way stays so */
  f[i].is = how; f[i].pc = 0;
  if :: how == DEAD -> f[i].asked = 0; f[i].again = 0 :: else fi;
  if :: !f[i].flies -> zero(i) :: else fi }
inline tell(i,r,what) {
  if
  :: fin[r] == 0 && at[r] == f[i].fence ->
     assert(what >= NOTSAVED || place[r] == what);      /* what is told is in the store */
     assert(what != NOTSAVED || place[r] == 0);
     fin[r] = what; at[r] = 0
  :: else
  fi }
inline askagain(i,r) {
  if :: fin[r] == 0 && at[r] == f[i].fence -> at[r] = 0; again = again | B(r) :: else fi }
inline submit(i,t) {
  f[i].task = t; f[i].flies = 1; f[i].pc = WAITS }

/* at the store */
#ifdef M_NOFENCESTORE
#define FENCE(i) 1
#else
#define FENCE(i) (sFence[ACTOR(i)] == f[i].fence)
#endif
inline history(i) {
  if
  :: f[i].task >= REQUEST && f[i].task < RECEIVE ->
     r = f[i].task - REQUEST;
     assert(place[r] == 0);             /* once */
     assert(fin[r] != NOTSAVED);        /* "nothing was saved" was the truth */
     place[r] = f[i].value
  :: f[i].task >= RECEIVE && f[i].task < DELETE ->
     r = f[i].task - RECEIVE;
     assert(place[r] != 0);             /* what led to it is in the store */
     assert(!HAS(got,r));               /* once */
     got = got | B(r)
  :: f[i].task >= DELETE && f[i].task < FIRE ->
     assert(HAS(got, f[i].task - DELETE))
  :: f[i].task == FIRE ->
     assert(fired == 0);
#ifndef M_ALARMLOST
     assert(sAlarm != 0 && now >= sAlarm);
#endif
     fired = 1
  :: else
  fi;
  r = 0 }
inline land(i) {
  f[i].flies = 0;
  if
  :: FENCE(i) && sNumber[ACTOR(i)] == f[i].number ->
     assert(f[i].value == sValue[ACTOR(i)] + (f[i].task < DELETE || f[i].task == FIRE -> 1 : 0));   /* nothing is lost */
     history(i);
     sNumber[ACTOR(i)] = f[i].number + 1; sValue[ACTOR(i)] = f[i].value;
     if
     :: ACTOR(i) == X -> sAnswers = f[i].answers; sFloor = f[i].floor; sOutbox = f[i].outbox; sAlarm = f[i].alarm;
        if :: sAlarm -> set = 1 :: else fi
     :: else -> sTaken = f[i].taken
     fi;
     if :: f[i].is == LIVE && f[i].pc == WAITS -> f[i].pc = DONE :: else fi;
     printf("S: commit %d of life %d is done, task %d\n", f[i].number + 1, i, f[i].task)
  :: else ->
     if :: f[i].is == LIVE && f[i].pc == WAITS -> f[i].pc = REFUSED :: else fi;
     printf("S: commit %d of life %d is refused\n", f[i].number + 1, i)
  fi;
  if :: f[i].is != LIVE -> zero(i) :: else fi }
/* of a commit in doubt that was not done */
inline raise(i) {
#ifndef M_LATECOMMIT
  if :: sFence[ACTOR(i)] == f[i].fence && sNumber[ACTOR(i)] == f[i].number -> sNumber[ACTOR(i)] = f[i].number + 2 :: else fi
#else
  skip
#endif
}

/* requests */
inline forget(i) {                      /* the oldest */
  k = R; r2 = 0;
  do
  :: r2 < R -> if :: HAS(f[i].answers,r2) && place[r2] != 0 && (k == R || place[r2] < place[k]) -> k = r2 :: else fi; r2++
  :: else -> break
  od;
  f[i].answers = f[i].answers & (255 - B(k));
  f[i].floor = MAX(f[i].floor, k+1);
  k = 0; r2 = 0 }
#define COUNT(s) (HAS(s,0) + HAS(s,1) + HAS(s,2))
#ifdef M_NAMEDANEW
#define FOUND(i,r) (HAS(f[i].answers,r) && !HAS(f[i].again,r))
#else
#define FOUND(i,r) HAS(f[i].answers,r)
#endif
#ifdef M_FORGOTTEN
#define MAYBE(i,r) 0
#else
#define MAYBE(i,r) (HAS(f[i].again,r) && r < f[i].floor)
#endif
inline save(i,r) {
  if :: COUNT(f[i].answers) >= KEEP -> forget(i) :: else fi;
  f[i].answers = f[i].answers | B(r) }
inline run1(i,r) {
  f[i].value++;
#ifndef M_NOSAVEDANSWER
  save(i,r);
#endif
  if :: r < SENDS -> f[i].outbox = f[i].outbox | B(r) :: else fi;
#ifdef ALARM
  if
  :: r == 0 -> f[i].alarm = 1
  :: r == 1 && f[i].alarm -> f[i].alarm = 2
  :: else
  fi;
#endif
  submit(i, REQUEST+r);
#ifdef M_ANSWERFIRST
  tell(i,r,f[i].value)
#endif
}
#define TAKE(r) :: atomic { RESTS && ACTOR(i) == X && HAS(f[i].asked,r) -> \
     if \
     :: FOUND(i,r) -> printf("L%d: request %d has an answer\n", i, r); tell(i,r,place[r]) \
     :: !FOUND(i,r) && MAYBE(i,r) -> printf("L%d: request %d is UNKNOWN\n", i, r); tell(i,r,UNKNOWN) \
     :: !FOUND(i,r) && !MAYBE(i,r) -> printf("L%d: request %d runs\n", i, r); run1(i,r) \
     fi; \
     f[i].asked = f[i].asked & (255 - B(r)); f[i].again = f[i].again & (255 - B(r)) }

/* sends; the number of a send is the place of its request */
#ifdef M_OVERTAKEN
#define FIRST(i,r) 1
#else
#define FIRST(i,r) (SENDS < 2 || !HAS(f[i].outbox,1-(r)) || place[r] < place[1-(r)])
#endif
#define SEND(r) \
  :: atomic { RESTS && ACTOR(i) == X && HAS(f[i].outbox,r) && FIRST(i,r) && !HAS(sent,r) && (cur[X] == i && NOWHERE(r) || twice < DUP) -> \
     if :: cur[X] == i && NOWHERE(r) :: else -> twice++ fi; \
     sent = sent | B(r); printf("L%d: send %d goes\n", i, r) } \
  :: atomic { RESTS && ACTOR(i) == X && HAS(acked,r) && (cur[X] == i || HAS(f[i].outbox,r)) -> \
     acked = acked & (255 - B(r)); \
     if :: HAS(f[i].outbox,r) -> f[i].outbox = f[i].outbox & (255 - B(r)); submit(i, DELETE+r) :: else fi } \
  :: atomic { RESTS && ACTOR(i) == Y && HAS(sent,r) -> \
     sent = sent & (255 - B(r)); \
     if :: KNOWN(i,r) -> acked = acked | B(r) \
        :: else -> f[i].value++; f[i].taken = place[r]; submit(i, RECEIVE+r); printf("L%d: receives %d\n", i, r) fi }
#ifdef M_SENDTWICE
#define KNOWN(i,r) 0
#else
#define KNOWN(i,r) (place[r] <= f[i].taken)
#endif

inline done(i) {
  f[i].number++; f[i].pc = 0; k = f[i].task; f[i].task = 0;
  if
  :: k >= REQUEST && k < RECEIVE ->
     r = k - REQUEST;
#if SENDS
     if :: r < SENDS && FIRST(i,r) -> sent = sent | B(r) :: else fi;
#endif
#ifdef M_NOSAVEDANSWER
     save(i,r); submit(i, SAVE+r)
  :: k >= SAVE && k < DROPROW ->
     r = k - SAVE;
#endif
     tell(i,r,place[r])
  :: k >= RECEIVE && k < DELETE -> acked = acked | B(k - RECEIVE)
#ifdef M_ALARMLOST
  :: k == DROPROW -> f[i].value++; submit(i, FIRE)
#endif
  :: else
  fi;
  k = 0; r = 0 }
inline end_of_it(i,what) {
  if
  :: f[i].task >= REQUEST && f[i].task < RECEIVE ->
     r = f[i].task - REQUEST;
     if :: what == NOTSAVED -> tell(i,r,NOTSAVED) :: else -> askagain(i,r) fi
  :: else
  fi;
  r = 0;
  printf("L%d: ends, its commit was refused or in doubt\n", i);
  leave(i,ENDED) }

/* the next life of actor a, after life i */
inline begin(i,a,higher) {
  f[i+1].is = LIVE; f[i+1].fence = f[i].fence + higher; cur[a] = i+1;
  if
  :: !higher ->
     f[i+1].asked = f[i].asked; f[i+1].again = f[i].again; f[i].asked = 0; f[i].again = 0;
#ifndef M_DOUBTLEFT
     k = a*L;
     do
     :: k <= i -> if :: f[k].flies && f[k].fence == f[i].fence -> raise(k) :: else fi; k++
     :: else -> break
     od;
     k = 0
#endif
  :: else
  fi;
  claim(i+1,a) }
inline claim(i,a) {
  sFence[a] = f[i].fence; f[i].number = sNumber[a]; f[i].value = sValue[a];
  if
  :: a == X -> f[i].answers = sAnswers; f[i].floor = sFloor; f[i].alarm = sAlarm;
#ifndef M_OUTBOXLOST
     f[i].outbox = sOutbox
#endif
  :: else -> f[i].taken = sTaken
  fi;
  printf("L%d: claims with fence %d, number %d, value %d\n", i, f[i].fence, f[i].number, f[i].value) }

/* Who sleeps is woken: by a request, by its rows in the store, by a send. */
#define OPEN (fin[0] == 0 || fin[1 % R] == 0 || fin[2 % R] == 0)
#define WANTED(a) (a == X -> OPEN || sOutbox || (sAlarm && now >= sAlarm) : sent)
#define RESTS (f[i].is == LIVE && f[i].pc == 0)

proctype Owner(byte i) { byte k; byte r; byte r2;
end:
  do
  TAKE(0)
#if R > 1
  TAKE(1)
#endif
#if R > 2
  TAKE(2)
#endif
#if SENDS > 0
  SEND(0)
#endif
#if SENDS > 1
  SEND(1)
#endif
#ifdef ALARM
  :: atomic { RESTS && f[i].alarm && now >= f[i].alarm -> f[i].alarm = 0; printf("L%d: the alarm fires\n", i);
#ifdef M_ALARMLOST
     submit(i, DROPROW)
#else
     f[i].value++; submit(i, FIRE)
#endif
     }
#endif
  /* its commit comes to the store, perhaps late */
  :: atomic { f[i].flies -> land(i) }
  /* or never */
  :: atomic { f[i].flies && f[i].pc != WAITS -> f[i].flies = 0; if :: f[i].is != LIVE -> zero(i) :: else fi }
  :: atomic { f[i].is == LIVE && f[i].pc == DONE -> done(i) }
  :: atomic { f[i].is == LIVE && f[i].pc == REFUSED -> end_of_it(i,NOTSAVED) }
  /* no answer: read back */
  :: atomic { f[i].is == LIVE && f[i].pc != 0 && f[i].pc != DOUBT && !LAST(i) -> f[i].pc = DOUBT; printf("L%d: no answer of the store\n", i) }
  :: atomic { f[i].is == LIVE && f[i].pc == DOUBT ->
     if
     :: sNumber[ACTOR(i)] <= f[i].number -> raise(i); end_of_it(i,NOTSAVED)
     :: sNumber[ACTOR(i)] == f[i].number + 1 && sFence[ACTOR(i)] == f[i].fence -> f[i].flies = 0; done(i)
     :: sNumber[ACTOR(i)] > f[i].number && sFence[ACTOR(i)] != f[i].fence -> end_of_it(i,UNKNOWN)
     :: end_of_it(i,UNKNOWN)            /* it can't be read */
     fi }
  :: atomic { f[i].is == LIVE && !LAST(i) -> printf("L%d: dies\n", i); leave(i,DEAD) }
  /* the next life: at the same owner, or another takes over */
  :: atomic { cur[ACTOR(i)] == i && !LAST(i) && f[i].is == ENDED && WANTED(ACTOR(i)) -> begin(i,ACTOR(i),0) }
  :: atomic { cur[ACTOR(i)] == i && !LAST(i) && f[i].is != 0 && WANTED(ACTOR(i)) -> begin(i,ACTOR(i),1) }
  od
}

#define ASK(r) \
  :: atomic { fin[r] == 0 && at[r] == 0 && f[cur[X]].is == LIVE -> \
     at[r] = f[cur[X]].fence; f[cur[X]].asked = f[cur[X]].asked | B(r); \
     f[cur[X]].again = f[cur[X]].again | (HAS(again,r) -> B(r) : 0); printf("A: ask %d of life %d\n", r, cur[X]) } \
  :: atomic { fin[r] == 0 && at[r] != 0 && at[r] < f[cur[X]].fence -> at[r] = 0; again = again | B(r) }
active proctype Asker() {
end:
  do
  ASK(0)
#if R > 1
  ASK(1)
#endif
#if R > 2
  ASK(2)
#endif
#ifdef ALARM
  :: atomic { now < 2 -> now++ }
#endif
  od
}

#define COULDREAD(i) (f[i].is == LIVE && f[i].pc == 0)
#define DELIVERED(r) (place[r] == 0 || (HAS(got,r) && !HAS(sOutbox,r)))
active proctype Monitor() {
  if
  /* a read is told what was done before it, and nothing that is not in the store */
  :: atomic { COULDREAD(cur[X]) && (f[cur[X]].value < ANSWEREDMOST || f[cur[X]].value > sValue[X]) ->
       printf("VIOLATION: a read is answered %d\n", f[cur[X]].value); assert(false) }
  :: atomic { timeout ->
       assert(!OPEN);
#if SENDS > 0
       assert(DELIVERED(0));
#endif
#if SENDS > 1
       assert(DELIVERED(1));
#endif
#ifdef ALARM
       assert(set == fired);
#endif
     }
  fi
}

init { byte i;
  atomic {
    f[0].is = LIVE; f[0].fence = 1; sFence[X] = 1; run Owner(0);
    i = 1;
    do :: i < NL -> run Owner(i); i++ :: else -> break od;
#if SENDS > 0
    f[L].is = LIVE; f[L].fence = 1; sFence[Y] = 1; cur[Y] = L;
#endif
    i = 0 }
}
