/* SPDX-License-Identifier: Apache-2.0
 *
 * A shared object without the symbol that a node looks for.
 */
extern const int something_else;
const int something_else = 1;
