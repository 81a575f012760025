/* SPDX-License-Identifier: Apache-2.0 */
/* nodes_foreign.c - jobs of others on a machine that is to go: who they are, what they hold, and
 * whether its raylet may be stopped; see nodes_run.h.
 *
 * core/job/vacancy.h decides; here is what it looks at. Where the head goes all of the cluster is
 * meant: no job of Ray outlives it. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "argusd/ground/foreign.h"
#include "argusd/machines/adopted.h"
#include "argusd/machines/nodes_run.h"
#include "base/message.h"
#include "base/str.h"
#include "base/text.h"

/* Before it is told that Ray does not tell: most often it soon does. */
static const usec_t TELL_AFTER = 30 * USEC_SEC;
enum { HOLDER_TEXT_MAX = 300, RAY_ID_SAID = 40, OWNER_SAID = 32, HOLDERS_SAID = 3 };

/* ---- who is there ---- */

static const struct cluster_node *nodes_foreign_place(const struct noderun *nr)
{
    return nr->ray_alive ? cluster_find_id(nr->nodes->p.cluster, nr->ray_id) : NULL;
}

/* What Ray counts there beyond our leases; of a Ray that is away the count is of before. A job of
 * ours may use more CPUs in Ray than it leased: while one is there, or has just left, nobody can
 * tell whose the others are. */
static void nodes_foreign_add_use(const struct nodes *ns,
                                  const struct cluster_node *k,
                                  bool is_new,
                                  double *gpus,
                                  double *cpus)
{
    double more_gpus, more_cpus;
    bool is_leased = sched_node_lease(ns->p.sched, k->name, 0);
    if (!is_new && (!cluster_is_up(ns->p.cluster) || nodes_was_leased(ns, k->name)))
        return;
    nodes_foreign_use(ns, k, is_new, &more_gpus, &more_cpus); /* of a dead one nothing */
    *gpus += more_gpus;
    *cpus += is_leased ? 0 : more_cpus;
}

/* nr NULL: on all machines, as for the head. is_new: Ray's count is of after the end of the last
 * lease there. free() *ret. */
static size_t nodes_foreign_see(const struct nodes *ns,
                                const struct noderun *nr,
                                bool is_new,
                                struct foreign_hold **ret,
                                double *ret_gpus,
                                double *ret_cpus)
{
    const struct foreign *f = cluster_foreign(ns->p.cluster);
    bool everywhere = !nr || nr->row->is_head;
    const struct cluster_node *k = everywhere ? NULL : nodes_foreign_place(nr);
    size_t n = 0;
    *ret = NULL;
    *ret_gpus = *ret_cpus = 0;
    if (k)
        nodes_foreign_add_use(ns, k, is_new, ret_gpus, ret_cpus);
    if (!everywhere)
        return k ? foreign_on(f, k->node_id, k->ip, ret) : 0;
    const struct cluster_node *v = cluster_nodes(ns->p.cluster, &n);
    for (size_t i = 0; i < n; i++)
        nodes_foreign_add_use(ns, &v[i], is_new, ret_gpus, ret_cpus);
    return foreign_on(f, NULL, NULL, ret);
}

static struct nodes_holder *nodes_foreign_list(const struct nodes *ns,
                                               const struct noderun *nr,
                                               bool is_new,
                                               size_t *ret_n)
{
    const char *session = cluster_session(ns->p.cluster);
    struct foreign_hold *holds;
    double gpus, cpus;
    size_t n = nodes_foreign_see(ns, nr, is_new, &holds, &gpus, &cpus);
    struct nodes_holder *v = xcalloc(n + 1, sizeof(*v));
    for (size_t i = 0; i < n; i++) {
        const char *ray_id = holds[i].job->ray_id;
        const struct adopted_item *its = adopted_find(ns->p.adopted, ray_id, session);
        v[i] = (struct nodes_holder){.ray_id = ray_id,
                                     .project = its ? its->project : NULL,
                                     .owner = its ? its->owner : NULL,
                                     .gpus = holds[i].gpus,
                                     .cpus = holds[i].cpus};
        gpus -= holds[i].gpus;
        cpus -= holds[i].cpus;
    }
    free(holds);
    if (vacancy_is_use(gpus, cpus))
        v[n++] = (struct nodes_holder){.gpus = gpus > 0 ? gpus : 0, .cpus = cpus > 0 ? cpus : 0};
    *ret_n = n;
    return v;
}

struct nodes_holder *nodes_holders(const struct nodes *ns, const struct noderun *nr, size_t *ret_n)
{
    return nodes_foreign_list(ns, nr, false, ret_n);
}

void nodes_foreign_ask(const struct nodes *ns)
{
    bool wanted = false;
    for (size_t i = 0; i < ns->n; i++)
        wanted |= ns->v[i]->row->state == NODE_DRAINING;
    foreign_want(cluster_foreign(ns->p.cluster), wanted);
}

/* ---- whether it may go ---- */

/* Ray is silent, and its head is gone: we stopped it, or its machine says that it is not there. */
static bool nodes_foreign_no_head(const struct nodes *ns)
{
    const struct noderun *head = nodes_find(ns, "head");
    usec_t heard = foreign_jobs_of(cluster_foreign(ns->p.cluster));
    if (cluster_is_up(ns->p.cluster))
        return false;
    return (head && head->row->step == NODE_STEP_OUT) || nodes_head_gone(ns) > heard;
}

/* Nothing of Ray can run there. That Ray does not list the node says nothing while Ray was not seen
 * once, unless its raylet never joined; nor of a node that is in, which is lost first. */
static bool nodes_foreign_is_lost(const struct noderun *nr)
{
    const struct node_row *n = nr->row;
    bool may_be = *n->session && !nr->nodes->generation;
    bool unlisted = !nodes_foreign_place(nr) && !may_be;
    return n->state == NODE_OFFLINE || (n->step == NODE_STEP_LEAVE && unlisted) ||
           (!n->is_head && nodes_foreign_no_head(nr->nodes));
}

enum vacancy nodes_vacancy(struct noderun *nr)
{
    const struct nodes *ns = nr->nodes;
    const struct foreign *f = cluster_foreign(ns->p.cluster);
    const struct node_row *n = nr->row;
    const struct moment at = nodes_moment(ns);
    usec_t now = clock_mono();
    bool is_leased = n->step == NODE_STEP_IN && !n->forced && nodes_is_busy(nr);
    bool has_place = n->is_head || nodes_foreign_place(nr); /* or the lists say nothing of it */
    nr->idle_since = is_leased ? 0 : nr->idle_since ? nr->idle_since : now;
    struct foreign_hold *holds;
    struct vacancy_sight s = {.is_leased = is_leased,
                              .is_lost = nodes_foreign_is_lost(nr),
                              .may_end = node_stops_foreign(n, &at),
                              .is_whole = n->downed,
                              .ray_away = !cluster_is_up(ns->p.cluster),
                              .since = nr->idle_since,
                              .use_of = has_place ? cluster_use_of(ns->p.cluster) : 0,
                              .holders_of = has_place ? foreign_holders_of(f) : 0,
                              .jobs_of = has_place ? foreign_jobs_of(f) : 0,
                              .anywhere = foreign_count_live(f)};
    s.here = nodes_foreign_see(ns, nr, true, &holds, &s.gpus, &s.cpus);
    free(holds);
    return vacancy_judge(&s, now);
}

/* ---- what is said ---- */

static double nodes_foreign_round(double amount)
{
    return round(amount * 100) / 100;
}

static void nodes_put_holder(struct jout *j, const struct nodes_holder *h)
{
    char text[HOLDER_TEXT_MAX], ray_id[RAY_ID_SAID] = "", owner[OWNER_SAID] = "";
    bool holds = vacancy_is_use(h->gpus, h->cpus);
    text_copy(ray_id, str_or(h->ray_id, ""));
    text_copy(owner, str_or(h->owner, ""));
    const struct message_arg who = MESSAGE_STR("ray_id", ray_id);
    const struct message_arg whose = MESSAGE_STR("claim_user", owner);
    const struct message_arg gpus = MESSAGE_NUM("gpus", nodes_foreign_round(h->gpus));
    const struct message_arg cpus = MESSAGE_NUM("cpus", nodes_foreign_round(h->cpus));
    if (!h->ray_id)
        message_write(text, sizeof(text), MESSAGE_ARGS(gpus, cpus));
    else if (holds)
        message_write(text, sizeof(text), MESSAGE_ARGS(who, whose, gpus, cpus));
    else
        message_write(text, sizeof(text), MESSAGE_ARGS(who, whose));
    const char *named = holds ? "foreign_holds" : "foreign_runs";
    message_put(j, NULL, h->ray_id ? named : "foreign_nobody", text);
}

/* With the first `most` of them by name. "{}" where that is too long. */
static void nodes_write_holders(const struct noderun *nr,
                                const struct nodes_holder *v,
                                size_t n,
                                size_t most,
                                char text[static NODE_TEXT_MAX])
{
    char more[64];
    struct message m;
    message_begin(&m);
    jout_str(&m.j, "node", nr->row->spec.name);
    if (nr->row->downed)
        jout_int(&m.j, "cluster", 1);
    if (nr->row->want == NODE_WANT_REMOVED)
        jout_int(&m.j, "removing", 1);
    jout_open(&m.j, "holders", '[');
    for (size_t i = 0; i < n && i < most; i++)
        nodes_put_holder(&m.j, &v[i]);
    if (n > most) {
        message_write(more, sizeof(more), MESSAGE_ARGS(MESSAGE_NUM("n", n - most)));
        message_put(&m.j, NULL, "foreign_more", more);
    }
    jout_close(&m.j, ']');
    message_end(&m, text, NODE_TEXT_MAX);
}

static void nodes_say_holders(const struct noderun *nr, char text[static NODE_TEXT_MAX])
{
    size_t n;
    struct nodes_holder *v = nodes_foreign_list(nr->nodes, nr, true, &n);
    for (size_t most = HOLDERS_SAID;; most--) {
        nodes_write_holders(nr, v, n, most, text);
        if (strcmp(text, "{}") != 0 || !most)
            break;
    }
    free(v);
}

void nodes_tell_vacancy(struct noderun *nr, enum vacancy v)
{
    char text[NODE_TEXT_MAX];
    struct node_event e = {.kind = NODE_EV_BLOCKED, .text = text};
    if (v == VACANCY_OTHERS) {
        e.code = "drain_foreign";
        nodes_say_holders(nr, text);
    } else if (v == VACANCY_UNTOLD && clock_mono() - nr->idle_since >= TELL_AFTER) {
        e.code = "drain_untold";
        nodes_write_holders(nr, NULL, 0, 0, text);
    } else {
        return;
    }
    (void)nodes_change(nr, &e, "argusd"); /* once */
}

size_t nodes_holders_names(const struct nodes *ns, const struct noderun *nr, char *ret, size_t size)
{
    size_t n, len = 0, named = 0;
    struct nodes_holder *v = nodes_holders(ns, nr, &n);
    *ret = 0;
    for (size_t i = 0; i < n && len < size && named < HOLDERS_SAID; i++)
        if (v[i].ray_id) {
            char ray_id[RAY_ID_SAID];
            text_copy(ray_id, v[i].ray_id);
            len += (size_t)snprintf(ret + len, size - len, "%s%s", named++ ? ", " : "", ray_id);
        }
    if (n > named && named && len < size)
        text_copy_to(ret + len, size - len, ", …");
    free(v);
    return n;
}
