/* SPDX-License-Identifier: Apache-2.0 */
/* nodes_exporter.c - keeps the exporter of a node's GPU figures running, where its NodeSpec names
 * one; see nodes_run.h.
 *
 * Each look asks over ssh that it runs: it is adopted, or started, and argusd then asks its page
 * (figures). One that ends is tried again after 5 s, then twice as long each time, 5 minutes at
 * most. It goes with the raylet: whatever ends that ends it too. Its troubles are told and change
 * nothing else: the driver and Ray tell of the GPUs as well. */
#include <string.h>

#include "argusd/machines/nodes_run.h"
#include "base/log.h"
#include "base/str.h"
#include "base/text.h"

static const usec_t EXPORTER_LIMIT = 30 * USEC_SEC;
static const usec_t EXPORTER_AGAIN = 5 * USEC_SEC;
static const usec_t EXPORTER_AGAIN_MAX = 5 * USEC_MIN;

static const char *exporter_program(enum nodespec_exporter which)
{
    static const char *const programs[] = {
#define X(e, word, program) program,
        NODESPEC_EXPORTER_TABLE(X)
#undef X
    };
    return programs[which];
}

/* Told once: what is not as it was. */
static void exporter_tell(struct noderun *nr, const char *code, const char *text)
{
    if (!strcmp(nr->exporter.code, code))
        return;
    text_copy(nr->exporter.code, code);
    text_copy(nr->exporter.text, text);
    nodes_tell(nr, "node_exporter", code, text);
}

static void exporter_give(const struct noderun *nr, int port)
{
    bool is_dcgm = nr->row->spec.exporter == NODESPEC_EXPORTER_DCGM;
    if (nr->nodes->p.figures)
        figures_put_exporter(nr->nodes->p.figures, nr->row->spec.name,
                             is_dcgm ? FIGURE_OF_DCGM : FIGURE_OF_NVIDIA, port);
}

static int exporter_port(const struct noderun *nr)
{
    return ports_at(&nr->nodes->p.settings->ports, PORTS_EXPORTER, nr->row->place).first;
}

static void exporter_fail(struct noderun *nr, usec_t now)
{
    usec_t wait = EXPORTER_AGAIN << (nr->exporter.tries < 10 ? nr->exporter.tries : 10);
    nr->exporter.tries++;
    nr->exporter.after = now + (wait < EXPORTER_AGAIN_MAX ? wait : EXPORTER_AGAIN_MAX);
}

static void exporter_on_asked(const struct raylet_exporter *r, void *arg)
{
    struct noderun *nr = arg;
    usec_t now = clock_mono();
    nr->exporter.call = NULL;
    if (nr->row->step != NODE_STEP_IN)
        return; /* what it saw is of another time */
    nr->exporter.after = now + nr->nodes->p.settings->look_every;
    if (r->end.outcome == RAYLET_SSH)
        return; /* the look tells of that */
    if (r->end.outcome != RAYLET_OK) {
        exporter_tell(nr, raylet_outcome_to_string(r->end.outcome), r->end.text);
        exporter_fail(nr, now);
        return;
    }
    exporter_tell(nr, raylet_exporter_to_string(r->state), r->text);
    if (r->state == RAYLET_EXPORTER_RUNS || r->state == RAYLET_EXPORTER_FOREIGN) {
        nr->exporter.tries = 0;
        exporter_give(nr, exporter_port(nr));
    } else {
        exporter_give(nr, 0);
        exporter_fail(nr, now);
    }
}

void nodes_exporter(struct noderun *nr, usec_t now)
{
    const struct nodes *ns = nr->nodes;
    const struct settings *s = ns->p.settings;
    struct ssh_target t;
    if (nr->row->spec.exporter == NODESPEC_EXPORTER_NONE || nr->exporter.call)
        return;
    if (nr->row->step != NODE_STEP_IN) {
        nr->exporter.after = 0;
        nr->exporter.code[0] = 0;
        exporter_give(nr, 0);
        return;
    }
    if (now < nr->exporter.after || nr->op)
        return;
    _cleanup_(freep) char *place =
        cluster_root_is_ok(ns->p.cluster) ? xasprintf("%s/argus/bin", s->shared_root) : NULL;
    struct raylet_exporter_spec spec = {.owner = ns->p.instance,
                                        .node = nr->row->spec.name,
                                        .program = exporter_program(nr->row->spec.exporter),
                                        .place = place,
                                        .address = *nr->row->address ? nr->row->address : NULL,
                                        .port = exporter_port(nr)};
    nodes_target(nr, &t);
    nr->exporter.call =
        raylet_exporter(ns->p.loop, &t, &spec, EXPORTER_LIMIT, exporter_on_asked, nr);
}

void nodes_exporter_cancel(struct noderun *nr)
{
    raylet_call_free(nr->exporter.call);
    nr->exporter.call = NULL;
}
