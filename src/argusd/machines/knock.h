/* SPDX-License-Identifier: Apache-2.0 */
/* knock.h - one try to open a TCP connection to a machine. It is closed at once; nothing is sent.
 */
#pragma once
#include <uv.h>

#include "base/clock.h"

struct knock;
/* status: 0, or why it was not opened (UV_ECONNREFUSED …). The knock is over when it is called. */
typedef void (*knock_f)(int status, void *arg);

/* 0: cb is called later. KNOCK_NO_ADDRESS: that is no address, and *ret stays. Else why it failed
 * at once: cb is not called, and *ret stays. */
enum { KNOCK_NO_ADDRESS = 1 };
must_check int knock_begin(uv_loop_t *loop,
                           const char *address,
                           int port,
                           knock_f cb,
                           void *arg,
                           struct knock **ret);
/* It has taken longer than the limit, at this moment (monotonic). */
bool knock_is_late(const struct knock *k, usec_t now, usec_t limit);
/* cb is not called any more. Sets *k to NULL; a NULL one is fine. */
void knock_end(struct knock **k);
