/* SPDX-License-Identifier: Apache-2.0 */
/* loglist.h - the files of an attempt that hold what its workers printed, and its scene.
 *
 * Whatever runs in a job can write to its directory: a name that is not plain is passed over, no
 * link is followed, and files, nodes and names that are looked at have ceilings. Blocking. */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

enum { LOGLIST_FILES_MAX = 4096, LOGLIST_NODES_MAX = 1024 };

enum loglist_source {
    LOGLIST_WORKER, /* logs/workers/<node>/worker-….{out,err} */
    LOGLIST_SCENE,  /* scene/<node>/….{txt,json,log}, and the same in its logs/; of no node
                       scene/ray_nodes.json and scene/ray_actors.json */
    LOGLIST_SOURCES
};
const char *loglist_source_to_string(enum loglist_source s); /* "worker", "scene" */
/* -EINVAL: there is no such source. */
must_check int loglist_source_from_string(const char *text, enum loglist_source *ret);

struct loglist_file {
    enum loglist_source source;
    char *node;        /* "" for what belongs to none */
    char *name;        /* below the node's directory */
    char *actor;       /* its class; NULL: not known */
    int64_t pid, rank; /* -1: not known */
    uint64_t bytes;    /* where it ends, as logread_at() counts */
};

/* Zeroed memory is an empty one. */
struct loglist {
    struct loglist_file *v;
    size_t n, cap;
    bool is_cut; /* there are more than the ceilings let in */
};
void loglist_release(struct loglist *l);

/* Adds those of one source, by node, rank and name. node: only of this one; NULL: of all. That
 * there are none is fine. */
must_check int loglist_read(const char *root,
                            const char *job,
                            int attempt,
                            enum loglist_source source,
                            const char *node,
                            struct loglist *ret,
                            struct err *err);

/* The name that clients use: "<node>/<name>", or "<name>" for a log of no node. The caller frees
 * it. */
char *loglist_name(const struct loglist_file *f);
/* The name for logread_at() of a file that a client calls so; NULL: no file of the source can be
 * called that. Yours. */
char *loglist_path(enum loglist_source source, const char *file);
