/* SPDX-License-Identifier: Apache-2.0 */
/* misstart.h - why a command does not start, said by its cause.
 *
 * The kernel has one word for many mistakes: "No such file or directory" of a script that is there
 * means its interpreter, whose name may end in a CR. So the file is looked at. */
#pragma once
#include "base/err.h"
#include "shepherd/attempt/order.h"

/* What child_start() said of the order's command becomes more exact, where the file shows more;
 * else it stays. Reads a few bytes of the file: where its file system hangs, so does this. */
void misstart_tell(const struct order *order, struct err *err);
