/* SPDX-License-Identifier: Apache-2.0 */
/* training.c - one record goes to all that judge a training; see training.h. Its figures are looked
 * up once. */
#include "core/training/training.h"

#include <stdlib.h>

#include "base/mem.h"

struct training *training_new(void)
{
    struct training *t = xcalloc(1, sizeof(*t));
    t->verdict = verdict_new();
    t->anatomy = anatomy_new();
    return t;
}

struct training *training_like(const struct training *t)
{
    struct training *ret = training_new();
    verdict_free(ret->verdict);
    ret->verdict = verdict_like(t->verdict);
    ret->alarms = metric_alarms_like(t->alarms);
    return ret;
}

void training_set_alerts(struct training *t, const struct strv *own, const struct strv *of_project)
{
    if (!t->alarms)
        t->alarms = metric_alarms_new(own, of_project);
}

void training_free(struct training *t)
{
    if (!t)
        return;
    verdict_free(t->verdict);
    anatomy_free(t->anatomy);
    metric_alarms_free(t->alarms);
    free(t);
}

void training_add(struct training *t,
                  const struct metric_record *r,
                  const struct metric_watch *watch)
{
    struct training_look look;
    struct metric_trouble trouble;
    training_look(r, &look);
    metric_watch_trouble(watch, &trouble);
    verdict_add(t->verdict, r, &look, &trouble);
    anatomy_add(t->anatomy, r, &look);
    metric_alarms_add(t->alarms, r);
}
