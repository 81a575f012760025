/* SPDX-License-Identifier: Apache-2.0 */
/* training_pick.c - which samples are asked for, and when; see training.h. Samples are known a
 * little later than metrics: until those of the wanted step are there, the newest before it are
 * shown. */
#include "core/training/training.h"

/* One question for all kinds and alerts of a training. */
struct picking {
    uint64_t stamp;
    training_pick_f *pick;
    void *arg;
};

/* False: what is known stays. Samples that could not be read now are asked for again. */
static bool picking_ask(const struct picking *p,
                        const struct sample_picks *had,
                        enum sample_pick_by by,
                        int64_t step,
                        struct sample_picks *ret)
{
    bool is_known = had && had->wanted == step && (had->is_last || had->stamp == p->stamp);
    if (is_known)
        return false;
    *ret = (struct sample_picks){.wanted = step, .stamp = p->stamp};
    p->pick(by, step, ret, p->arg);
    return ret->stamp || !had || had->wanted != step;
}

static void picking_verdict(const struct picking *p, struct verdict *v)
{
    struct sample_picks picks;
    struct verdict_item item;
    for (int i = 0; i < VERDICT_KINDS; i++) {
        enum verdict_kind k = (enum verdict_kind)i;
        if (verdict_item(v, k, &item) &&
            picking_ask(p, verdict_picks(v, k), verdict_pick_by(&item), item.told, &picks))
            verdict_set_picks(v, k, &picks);
    }
}

static void picking_alarms(const struct picking *p, struct metric_alarms *as)
{
    struct sample_picks picks;
    struct metric_alarm a;
    for (size_t i = 0; i < metric_alarms_count(as); i++) {
        metric_alarms_get(as, i, &a);
        if (a.seen && picking_ask(p, a.picks, sample_pick_by_metric(a.metric), a.told, &picks))
            metric_alarms_set_picks(as, i, &picks);
    }
}

void training_pick(struct training *t, uint64_t stamp, training_pick_f *pick, void *arg)
{
    const struct picking p = {stamp, pick, arg};
    if (!stamp)
        return;
    picking_verdict(&p, t->verdict);
    picking_alarms(&p, t->alarms);
}
