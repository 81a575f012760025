/* SPDX-License-Identifier: Apache-2.0 */
/* modelcache.h - a model of the shared root on a machine's own disk: found there, or copied.
 *
 * modelcache.sh says how the cache looks. A copy gets its name only once it was read back and has
 * the hash of the registry; one that was changed since is made anew. Two that ask for the same wait
 * for one copy. What was used longest ago goes where there is no room, unless a job that is not
 * over uses it. Whatever fails leaves the shared root as it was, for who asks to go on with. */
#pragma once
#include <stdint.h>

#include "ssh/ssh.h"

enum { MODELCACHE_LIVE_MAX = 256 };

/* Borrowed during the call. */
struct modelcache_want {
    const char *dir;  /* of the cache, on that machine */
    const char *from; /* directory of the model */
    const char *hash; /* of the registry, in hex: of a line "<sha256>  <name>" for each file */
    uint64_t most;    /* bytes that all copies may take */
    const char *job;
    const char *const *live; /* jobs that are not over there */
    size_t n_live;
};

/* X(enumerator, word) */
#define MODELCACHE_TABLE(X)                                                                        \
    X(HIT, "hit")                                                                                  \
    X(MISS, "miss")       /* it was copied: it is there now */                                     \
    X(FULL, "full")       /* there is no room for it */                                            \
    X(DIFFERS, "differs") /* what lies on the shared root has another hash */                      \
    X(BROKEN, "broken")   /* the directory cannot be used, or the copy failed */                   \
    X(AWAY, "away")       /* ssh: the machine was not reached, or it took too long */
#define X(name, word) MODELCACHE_##name,
enum modelcache_state { MODELCACHE_TABLE(X) MODELCACHE_END };
#undef X
const char *modelcache_to_string(enum modelcache_state state);

struct modelcache_found {
    enum modelcache_state state;
    uint64_t bytes; /* of the model */
    int removed;    /* other copies that went for it */
    char text[200]; /* why it is not there; "" */
};
typedef void (*modelcache_f)(const struct modelcache_found *found, void *arg);

struct modelcache;
/* As ssh_run(): one callback, from the loop and never from inside of this call; then the handle is
 * gone. */
struct modelcache *modelcache_ask(uv_loop_t *loop,
                                  const struct ssh_target *t,
                                  const struct modelcache_want *want,
                                  usec_t limit,
                                  modelcache_f cb,
                                  void *arg);
void modelcache_free(struct modelcache *m); /* the callback never comes; NULL is fine */

/* Any bytes as the answer: for tests. */
void modelcache_read(const char *text, size_t len, struct modelcache_found *ret);
