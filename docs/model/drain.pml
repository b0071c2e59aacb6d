/* SPDX-License-Identifier: Apache-2.0 */
/* drain.pml - nested calls while a range is being drained (hold-induced deadlock).
 * Actor A (moving range, node S) runs a task that calls C (static, node X); C calls B (moving range, node S).
 * C is also asked by others: then its call to B does not name A, and A's call waits in C's mailbox.
 * New external requests for A and B arrive all the time. The hold is set in the middle of anything.
 * -DM_NOCHAIN: every new request of the range is held, also those that belong to a running call chain.
 * -DM_CONVOY: only what names a running actor of the range passes the hold; what C asks for others never does.
 */
#define IDLE 0
#define RUN 1
#define WAITC 2
byte a = IDLE, b = IDLE, c = IDLE;
bit hold, prepared; byte ext = 0, extC = 0;
bit reqC, reqB, repB, repC; bit bByCall, cByA;
#ifdef M_NOCHAIN
#define PASSES 0
#else
#ifdef M_CONVOY
#define PASSES (a == WAITC && cByA)
#else
#define PASSES (a == WAITC) /* at once if the chain names A, else when the drain has taken long */
#endif
#endif
active proctype Task() {
end:
  do
  :: atomic { a == IDLE && !hold && ext < 3 -> ext++; a = RUN; printf("S: A starts\n") }
  :: atomic { a == RUN -> a = WAITC; reqC = 1; printf("S: A calls C\n") }
  :: atomic { a == WAITC && repC -> repC = 0; a = IDLE; printf("S: A done\n") }
  od }
active proctype TaskB() {
end:
  do
  :: atomic { b == IDLE && !hold && ext < 3 -> ext++; b = RUN; bByCall = 0; printf("S: B starts (external)\n") }
  :: atomic { b == IDLE && reqB && (!hold || PASSES) -> reqB = 0; b = RUN; bByCall = 1; assert(!prepared); printf("S: B starts (call of C)\n") }
  :: atomic { b == RUN -> b = IDLE; if :: bByCall -> repB = 1 :: else fi; bByCall = 0; printf("S: B done\n") }
  od }
active proctype TaskC() {
end:
  do
  :: atomic { c == IDLE && reqC -> reqC = 0; c = WAITC; cByA = 1; reqB = 1; printf("X: C calls B for A\n") }
  :: atomic { c == IDLE && extC < 2 -> extC++; c = WAITC; cByA = 0; reqB = 1; printf("X: C calls B for others\n") }
  :: atomic { c == WAITC && repB -> repB = 0; c = IDLE; if :: cByA -> repC = 1 :: else fi; cByA = 0; printf("X: C done\n") }
  od }
active proctype Part() {
  atomic { hold = 1; printf("S: PREPARE, hold\n") };
end:
  atomic { a == IDLE && b == IDLE -> prepared = 1; printf("S: PREPARED\n") }
}
ltl drains { <> prepared }
