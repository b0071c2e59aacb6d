/* SPDX-License-Identifier: Apache-2.0
 *
 * What `ringhold fix` may have a process do: the numbers of AdminRepair.what and
 * Repair.what. Each is harmless to a process that has nothing wrong.
 */
#ifndef WIRE_REPAIR_H
#define WIRE_REPAIR_H

enum repair_task {
    REPAIR_TASK_FETCH = 1,   /* node, gateway: fetch the whole configuration again */
    REPAIR_TASK_OUTCOME = 2, /* node: hear once more what became of a transaction it holds for */
    REPAIR_TASK_STRAYS = 3,  /* node: stop the actors that live outside your vnodes */
    REPAIR_TASK_EXIT = 4,    /* node: you are not this cluster's any more: stop all, exit 75 */
};

#endif
