/* SPDX-License-Identifier: Apache-2.0
 *
 * `ringhold conform host ADDRESS`: is what connects there a host that keeps the protocol of
 * docs/host-protocol.md? It has the kind "conform", whose actors do what their messages say; the
 * page says what that is. The tester is its node.
 *
 * A vector is a name and a script; a line of it is one of these. ID is an actor, which lives once
 * in a vector:
 *
 *     + ID [STATE]          it comes to life, with this state or afresh, and says so
 *     > ID TEXT             a message of a client
 *     timer ID NUMBER, alarm ID NAME, session ID NUMBER, handoff ID     these turns
 *     answer ID TEXT        its last call is answered; `refuse ID TEXT`: with an error
 *     resume ID, end ID     it stays after all; its life is over
 *     < ID STEP             the next message is a step of its turn, and is just that, as
 *                           step_text() writes it
 *     ping                  the next message is the pong: nothing else was owed
 *     gather, go            what comes between is sent as one frame
 *     drip                  from here on byte by byte
 *     strange               from here on with fields that no version knows yet
 *     leave [ID]            the node ends the connection; the host comes again, and that actor
 *                           comes to life in the frame of the welcome
 */
#ifndef CONFORM_HOST_H
#define CONFORM_HOST_H

/* Listen at the address ("unix:PATH" or "HOST:PORT"), wait for a host, and play all vectors with
 * it: a line of TAP for each. Returns the exit code: 0, 1 when it could not begin, 2 when one
 * failed. */
int conform_host(const char *address);

#endif
