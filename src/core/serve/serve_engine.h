/* SPDX-License-Identifier: Apache-2.0 */
/* serve_engine.h - which arguments vLLM and SGLang take through Ray Serve's module, held against a
 * table before anything is queued: a name that the engine does not know ends a replica only once it
 * has its GPUs and has loaded for minutes.
 *
 * The table has what was read of vLLM's AsyncEngineArgs and FrontendArgs and of SGLang's
 * ServerArgs. Engines get new arguments all the time: one that is not in the table is passed on
 * where it stands in `engine_args_unchecked`. A null stands for the engine's own value. Pure. */
#pragma once
#include <stdbool.h>

#include "base/doc/doc.h"
#include "base/doc/problem.h"

/* A model's engine and its arguments. All borrowed. */
struct serve_engine_ask {
    const char *engine; /* "vllm", "sglang"; another one takes no arguments, and is not looked at */
    double gpus;        /* of a replica */
    const char *checked, *unchecked;              /* JSON objects; NULL: none */
    const struct node *checked_at, *unchecked_at; /* where they stand; NULL: that is not known, and
                                                     problems have no place */
    bool was_served; /* the version before has this engine with these arguments: their names and
                        kinds are not asked again, so that an older argusd's are no obstacle */
};

/* Adds what is wrong with them: a name that is not known, a value of the wrong kind, what argusd
 * says itself, and what Ray Serve's module refuses. */
void serve_engine_check(const struct serve_engine_ask *asked, struct problems *ps);
