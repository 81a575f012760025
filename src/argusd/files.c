/* SPDX-License-Identifier: Apache-2.0 */
/* files.c - one round of looks at beats and exit files; see files.h. */
#include "argusd/files.h"

#include <stdlib.h>

#include "argusd/work.h"
#include "base/mem.h"

struct round {
    char *root;
    struct files_look *looks;
    size_t n;
    files_f done;
    void *arg;
};

static void run(void *arg)
{
    struct round *r = arg;
    for (size_t i = 0; i < r->n; i++) {
        struct files_look *k = &r->looks[i];
        fsroot_beat_read(r->root, k->id, k->k, &k->beat);
        fsroot_exit_read(r->root, k->id, k->k, &k->exit);
    }
}

static void finish(void *arg)
{
    struct round *r = arg;
    r->done(r->looks, r->n, r->arg);
    for (size_t i = 0; i < r->n; i++)
        free(r->looks[i].id);
    free(r->looks);
    free(r->root);
    free(r);
}

void files_start(uv_loop_t *loop,
                 const char *root,
                 struct files_look *taken,
                 size_t n,
                 files_f done,
                 void *arg)
{
    struct round *r = xcalloc(1, sizeof(*r));
    *r = (struct round){.root = xstrdup(root), .looks = taken, .n = n, .done = done, .arg = arg};
    work_start(loop, run, finish, r);
}
