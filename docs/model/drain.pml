/* SPDX-License-Identifier: Apache-2.0 */
/* drain.pml - nested calls while a range is being drained (hold-induced deadlock).
 * Actor A (moving range, node S) runs a task that calls C (static, node X); C calls B (moving range, node S).
 * New external requests for A and B arrive all the time. The hold is set in the middle of anything.
 * -DM_NOCHAIN: every new request of the range is held, also those that belong to a running call chain.
 */
#define IDLE 0
#define RUN 1
#define WAITC 2
byte a = IDLE, b = IDLE, c = IDLE;
bit hold, prepared, released; byte tries; byte ext = 0;
bit reqC, reqB, repB, repC; bit bByChain, heldB;
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
  :: atomic { b == IDLE && !hold && ext < 3 -> ext++; b = RUN; bByChain = 0; printf("S: B starts (external)\n") }
#ifdef M_NOCHAIN
  :: atomic { b == IDLE && reqB && !hold -> reqB = 0; b = RUN; bByChain = 1 }
#else
  :: atomic { b == IDLE && reqB && (!hold || a == WAITC) -> reqB = 0; b = RUN; bByChain = 1; assert(!prepared); printf("S: B starts (chain of A)\n") }
#endif
  :: atomic { b == RUN -> b = IDLE; if :: bByChain -> repB = 1 :: else fi; bByChain = 0; printf("S: B done\n") }
  od }
active proctype TaskC() {
end:
  do
  :: atomic { c == IDLE && reqC -> reqC = 0; c = WAITC; reqB = 1; printf("X: C calls B\n") }
  :: atomic { c == WAITC && repB -> repB = 0; c = IDLE; repC = 1; printf("X: C done\n") }
  od }
active proctype Part() {
  atomic { hold = 1; printf("S: PREPARE, hold\n") };
end:
  atomic { a == IDLE && b == IDLE && !reqB -> prepared = 1; printf("S: PREPARED\n") }
}
ltl drains { <> prepared }
