/* SPDX-License-Identifier: Apache-2.0 */
/* stacks.h - asks the nodes of an attempt where its processes stand. Blocking. */
#pragma once
#include "base/buf.h"
#include "base/err.h"
#include "base/strv.h"

/* stacks/<n>.ask is a question to every node of the attempt, <node>.json in stacks/<n>/ is that
 * node's answer; scouts/ has a file of each node that can answer. */
enum {
    FSROOT_STACKS_MOST = 10000, /* asks of one attempt */
    FSROOT_STACKS_NODES = 1024,
    FSROOT_STACKS_BYTES = 16 << 20, /* of one answer */
};
/* *ret_n: the number of this ask, the next one from 1. -EMSGSIZE: there were too many. */
must_check int fsroot_stacks_ask(const char *root,
                                 const char *job,
                                 int attempt,
                                 const char *text,
                                 int *ret_n,
                                 struct err *err);
/* Adds the nodes that have answered ("w1"). */
must_check int fsroot_stacks_answers(const char *root,
                                     const char *job,
                                     int attempt,
                                     int n,
                                     struct strv *ret,
                                     struct err *err);
/* Adds each node that can answer, with what changes every few seconds for as long as it can. */
must_check int fsroot_scouts_list(const char *root,
                                  const char *job,
                                  int attempt,
                                  struct pairs *ret,
                                  struct err *err);
/* The answer of a node. -EMSGSIZE past the ceiling of out. */
must_check int fsroot_stacks_read(const char *root,
                                  const char *job,
                                  int attempt,
                                  int n,
                                  const char *node,
                                  struct buf *out,
                                  struct err *err);
