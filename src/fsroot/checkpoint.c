/* SPDX-License-Identifier: Apache-2.0 */
/* checkpoint.c - finds a checkpoint that another job may go on from; see fsroot.h. It is read
 * before it is believed: the tracker's word is not enough. */
#include <errno.h>
#include <inttypes.h>

#include "fsroot/ckpt.h"
#include "fsroot/fsroot.h"

static int checkpoint_refuse(const char *job,
                             const struct ckpt_list *l,
                             int64_t step,
                             struct err *err)
{
    const struct ckpt *newest = ckpt_list_newest(l), *c = step ? ckpt_list_find(l, step) : NULL;
    if (c)
        return err_set(err, ERR_NOT_FOUND,
                       "the checkpoint of step %" PRId64 " of job '%s' cannot be gone on from: %s",
                       step, job, c->why);
    if (newest)
        return err_set(err, ERR_NOT_FOUND,
                       "job '%s' has no checkpoint of step %" PRId64
                       ": its newest is of step %" PRId64,
                       job, step, newest->step);
    if (step)
        return err_set(err, ERR_NOT_FOUND, "job '%s' has no finished checkpoint of step %" PRId64,
                       job, step);
    if (l->n)
        return err_set(err, ERR_NOT_FOUND,
                       "job '%s' has no finished checkpoint: that of step %" PRId64 " is torn: %s",
                       job, l->v[l->n - 1].step, l->v[l->n - 1].why);
    return err_set(err, ERR_NOT_FOUND, "job '%s' has no finished checkpoint", job);
}

int fsroot_checkpoint_find(const char *root,
                           const char *job,
                           const struct ckpt_list *known,
                           int64_t step,
                           int64_t *ret,
                           struct err *err)
{
    struct ckpt_list l = {0};
    int r = ckpt_look(root, job, known, 0, CKPT_LOOK_FRESH, &l, err);
    if (r < 0)
        return r;
    const struct ckpt *c = step ? ckpt_list_find(&l, step) : ckpt_list_newest(&l);
    if (c && c->state == CKPT_VERIFIED)
        *ret = c->step;
    else
        r = checkpoint_refuse(job, &l, step, err);
    ckpt_list_release(&l);
    return r;
}
