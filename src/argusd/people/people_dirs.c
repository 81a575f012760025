/* SPDX-License-Identifier: Apache-2.0 */
/* people_dirs.c - see people_dirs.h. A user may go while his directories are made: the end of
 * the work looks him up again by name. */
#include "argusd/people/people_dirs.h"

#include <stdlib.h>

#include "argusd/ground/work.h"
#include "base/log.h"
#include "base/str.h"
#include "fsroot/tree/root.h"

struct making {
    struct people *people;
    char *root, *user;
    struct err err;
};

static void people_dirs_run(void *arg)
{
    struct making *m = arg;
    if (fsroot_user_prepare(m->root, m->user, &m->err) < 0 && !m->err.code)
        m->err.code = ERR_INTERNAL; /* never without a sentence, in truth */
}

static void people_dirs_done(void *arg)
{
    struct making *m = arg;
    struct person *p = people_find(m->people, m->user);
    if (m->err.code) {
        log_warn("people", "directories of a user cannot be made: %s user=%s", m->err.text,
                 m->user);
        if (p)
            p->has_dirs = false;
    }
    free(m->root);
    free(m->user);
    free(m);
}

void people_dirs_make(uv_loop_t *loop,
                      const struct cluster *cluster,
                      const char *shared_root,
                      struct people *people,
                      struct person *p)
{
    if (p->has_dirs)
        return;
    p->wants_dirs = !cluster_root_is_ok(cluster) || cluster_root_hangs(cluster);
    if (p->wants_dirs)
        return;
    p->has_dirs = true;
    struct making *m = xcalloc(1, sizeof(*m));
    *m = (struct making){.people = people, .root = xstrdup(shared_root), .user = xstrdup(p->name)};
    work_start(loop, people_dirs_run, people_dirs_done, m);
}

void people_dirs_retry(uv_loop_t *loop,
                       const struct cluster *cluster,
                       const char *shared_root,
                       struct people *people)
{
    struct person *p;
    if (!cluster_root_is_ok(cluster))
        return;
    for (size_t pos = 0; (p = people_next(people, &pos));)
        if (p->wants_dirs)
            people_dirs_make(loop, cluster, shared_root, people, p);
}
