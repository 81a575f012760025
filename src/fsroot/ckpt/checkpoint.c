/* SPDX-License-Identifier: Apache-2.0 */
/* checkpoint.c - finds a checkpoint that another job may go on from; see checkpoint.h. It is read
 * before it is believed: the tracker's word is not enough. */
#include <errno.h>
#include <inttypes.h>

#include "base/message.h"
#include "fsroot/ckpt/checkpoint.h"
#include "fsroot/ckpt/ckpt.h"

static int checkpoint_refuse(const char *job,
                             const struct ckpt_list *l,
                             int64_t step,
                             struct err *err)
{
    const struct ckpt *newest = ckpt_list_newest(l), *c = step ? ckpt_list_find(l, step) : NULL;
    if (c)
        return message_refuse(err, ERR_NOT_FOUND, "checkpoint_unusable",
                              MESSAGE_ARGS(MESSAGE_NUM("step", step), MESSAGE_STR("job", job),
                                           MESSAGE_KEPT("why", c->why)));
    if (newest)
        return message_refuse(err, ERR_NOT_FOUND, "no_checkpoint_at",
                              MESSAGE_ARGS(MESSAGE_STR("job", job), MESSAGE_NUM("step", step),
                                           MESSAGE_NUM("newest", newest->step)));
    if (step)
        return message_refuse(err, ERR_NOT_FOUND, "no_finished_at",
                              MESSAGE_ARGS(MESSAGE_STR("job", job), MESSAGE_NUM("step", step)));
    if (l->n)
        return message_refuse(err, ERR_NOT_FOUND, "no_finished",
                              MESSAGE_ARGS(MESSAGE_STR("job", job),
                                           MESSAGE_NUM("step", l->v[l->n - 1].step),
                                           MESSAGE_KEPT("why", l->v[l->n - 1].why)));
    return message_refuse(err, ERR_NOT_FOUND, "no_finished", MESSAGE_ARGS(MESSAGE_STR("job", job)));
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
