/* SPDX-License-Identifier: Apache-2.0 */
/* tcptry.h - one machine tries over ssh which TCP ports of another one let it in.
 *
 * tcptry.sh opens a connection to each port and closes it; nothing is sent. It uses the Python of
 * Ray's environment there, else the machine's own python3. */
#pragma once
#include "ssh/ssh.h"

enum { TCPTRY_PORTS_MAX = 16 };

/* Borrowed during the call. */
struct tcptry_want {
    const char *address; /* of the other machine, in numbers */
    int ports[TCPTRY_PORTS_MAX];
    size_t n;
    int seconds;         /* for all ports together: a filter that drops says nothing */
    const char *ray_bin; /* path of Ray's program on the machine that tries; "" = not known */
};
/* The result is read by tcptry_read(). */
struct ssh_call *tcptry_begin(uv_loop_t *loop,
                              const struct ssh_target *t,
                              const struct tcptry_want *want,
                              usec_t limit,
                              ssh_f cb,
                              void *arg);

/* False: that machine could not try, or not all of them. Else *ret is the first of the wanted ports
 * that is open, 0 = none; what it says of other ports is not believed. */
must_check bool tcptry_read(const char *text, size_t len, const struct tcptry_want *want, int *ret);
