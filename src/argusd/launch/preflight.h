/* SPDX-License-Identifier: Apache-2.0 */
/* preflight.h - the look at the shared root before a job is accepted: in the worker pool, a few
 * at a time, and answered in time even when a file system hangs. Who asks the same at the same
 * time shares a look. core/check/preflight.h judges. */
#pragma once
#include <uv.h>

#include "core/check/preflight.h"

#define PREFLIGHT_DEADLINE (5 * USEC_SEC)

struct preflights;
struct preflights *preflights_new(uv_loop_t *loop);
/* No look is asked for any more, and nobody is answered. */
void preflights_close(struct preflights *p); /* NULL is fine */
void preflights_free(struct preflights *p);  /* once the loop has run dry */

struct preflight_seen {
    bool late;         /* it took longer than PREFLIGHT_DEADLINE: nothing but `where` is set */
    char where[1024];  /* at what it hangs */
    bool job_is_there; /* of a spec with an id: something has the name of its directory */
    const char *verl;  /* the version found in the tree; NULL: none */
    const struct preflight_facts *facts;
};

/* Called once, later, on the loop; seen is borrowed for the call. */
typedef void (*preflight_f)(const struct preflight_seen *seen, void *arg);

struct preflight_asker;
/* tree: where verl is looked for, NULL: nowhere. Everything is borrowed for the call. */
struct preflight_asker *preflight_look(struct preflights *p,
                                       const struct spec *spec,
                                       const struct preflight_where *where,
                                       const char *tree,
                                       preflight_f cb,
                                       void *arg);
/* Who asked has gone: cb is not called. NULL is fine: he asked for nothing yet. */
void preflight_forget(struct preflight_asker *a);
