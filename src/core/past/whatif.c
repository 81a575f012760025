/* SPDX-License-Identifier: Apache-2.0 */
/* whatif.c - see whatif.h.
 *
 * Both sides get the same jobs and learn spans by themselves, as argusd does: nothing of the one
 * replay is known to the other, so that their difference is the nodes' alone. */
#include "core/past/whatif.h"

static void whatif_play(const struct whatif_facts *f, int nodes, struct whatif_side *ret)
{
    const struct replay r = {.jobs = f->jobs,
                             .n = f->n,
                             .nodes = nodes,
                             .gpus_per_node = f->gpus_per_node,
                             .policy = f->policy,
                             .learner = true};
    struct tally *tally = tally_new(f->from, f->span);
    struct tally_report report;
    (void)replay_run(&r, tally); /* the digest is for those who compare runs */
    tally_report(tally, f->span, &report);
    tally_free(tally);
    *ret = (struct whatif_side){.nodes = nodes,
                                .utilisation = report.utilisation,
                                .mean_s = report.wait.mean,
                                .p50_s = report.wait.p50,
                                .p95_s = report.wait.p95,
                                .never = report.never};
}

void whatif_run(const struct whatif_facts *f, struct whatif *ret)
{
    whatif_play(f, f->nodes, &ret->now);
    whatif_play(f, f->nodes + f->more, &ret->then);
}
