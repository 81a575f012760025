/* SPDX-License-Identifier: Apache-2.0 */
/* remedycall.h - what is put right on a machine over ssh: processes of jobs that are over,
 * directories of Ray sessions that are dead. Whether it may be done now says core/job/remedy.h.
 *
 * remedycall.sh says what is ended and removed, exactly. Both may come twice, and may break off in
 * the middle: what is left then is found by the next one. */
#pragma once
#include <stdint.h>

#include "ssh/ssh.h"

/* Borrowed during the call. */
struct remedycall_want {
    const char *owner, *node; /* as raylet.h has them */
    const char *job;          /* whose processes are to end; NULL: dead sessions are to go */
    const char *temp_dir;     /* of Ray, NULL = its own choice */
};

struct remedycall_found {
    enum ssh_trouble trouble; /* not SSH_OK: it is not known what was done */
    bool is_whole;            /* it came to its end; false: of what was done this is a part */
    char text[400];           /* of the trouble's message */
    uint64_t processes, killed, left; /* ended or not; by SIGKILL; that nothing has ended */
    uint64_t sessions, bytes;         /* directories that are gone, and what they took */
};
typedef void (*remedycall_f)(const struct remedycall_found *found, void *arg);

struct remedycall;
/* As ssh_run(): one callback, from the loop and never from inside of this call; then the handle is
 * gone. */
struct remedycall *remedycall_new(uv_loop_t *loop,
                                  const struct ssh_target *t,
                                  const struct remedycall_want *want,
                                  usec_t limit,
                                  remedycall_f cb,
                                  void *arg);
void remedycall_free(struct remedycall *c); /* the callback never comes; NULL is fine */

/* Any bytes as the answer: for tests. */
void remedycall_read(const char *text, size_t len, struct remedycall_found *ret);
