/* SPDX-License-Identifier: Apache-2.0 */
/* slotbook_text.c - events of the book as JSON and back; see slotbook.h.
 * A member that is missing is 0 or "", so that an older argusd's events can be read. */
#include "core/account/slotbook_state.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/field.h"
#include "base/json.h"
#include "base/str.h"

#define X(name, word) [SLOTBOOK_EV_##name] = #word,
static const char *const kind_words[] = {SLOTBOOK_EVENT_TABLE(X)};
#undef X
static const char *const state_words[] = {"open", "draining", "down"};
static_assert(array_len(kind_words) == SLOTBOOK_EV_END_OF_TABLE, "each event has its word");
static_assert(array_len(state_words) == SLOTBOOK_STATES, "each state has its word");

enum { EVENT_MAX = 1 << 20, PARTS_MAX = 1 << 16 };

/* ---- to text ---- */

static void put_amount(struct jout *j, const char *key, int64_t v)
{
    if (v)
        jout_int(j, key, v);
}

static void put_text(struct jout *j, const char *key, const char *v)
{
    if (v && *v)
        jout_str(j, key, v);
}

static void put_parts(struct jout *j, const struct slotbook_event *e)
{
    if (!e->n_parts)
        return;
    jout_open(j, "parts", '[');
    for (size_t i = 0; i < e->n_parts; i++) {
        const struct slotbook_part *p = &e->parts[i];
        jout_open(j, NULL, '{');
        jout_str(j, "node", p->node);
        put_amount(j, "amount", p->amount);
        put_amount(j, "idle", p->idle);
        put_amount(j, "unknown", p->unknown);
        put_amount(j, "busy", p->busy);
        jout_close(j, '}');
    }
    jout_close(j, ']');
}

static void slotbook_put_event(struct jout *j, const struct slotbook_event *e)
{
    jout_open(j, NULL, '{');
    jout_str(j, "event", kind_words[e->kind]);
    jout_int(j, "at", e->at);
    put_text(j, "name", e->name);
    put_text(j, "labels", e->labels);
    put_text(j, "project", e->project);
    put_text(j, "user", e->user);
    put_text(j, "workload", e->workload);
    put_amount(j, "gpus", e->gpus);
    put_amount(j, "foreign", e->foreign);
    put_amount(j, "clearing", e->clearing);
    if (e->state != SLOTBOOK_OPEN)
        jout_str(j, "state", state_words[e->state]);
    put_amount(j, "amount", e->amount);
    put_amount(j, "offset", e->offset);
    put_parts(j, e);
    put_amount(j, "held", e->so_far.held);
    put_amount(j, "idle", e->so_far.idle);
    put_amount(j, "unknown", e->so_far.unknown);
    put_amount(j, "busy", e->so_far.busy);
    put_amount(j, "redone", e->so_far.redone);
    jout_close(j, '}');
}

void slotbook_event_to_json(const struct slotbook_event *e, struct buf *out)
{
    struct jout j = jout_begin(out);
    slotbook_put_event(&j, e);
}

static void save_lease(struct jout *j, const struct slotbook *b, const struct slotbook_lease *l)
{
    struct slotbook_event e = {.kind = SLOTBOOK_EV_BEGIN,
                               .at = b->now,
                               .name = l->job,
                               .project = l->project,
                               .user = l->user,
                               .workload = l->workload,
                               .parts = xcalloc(l->n_parts + 1, sizeof(*e.parts)),
                               .n_parts = l->n_parts};
    (void)slotbook_job(b, l->job, b->now, &e.so_far); /* it is there */
    for (size_t i = 0; i < l->n_parts; i++) {
        const struct slotbook_stay *s = &l->parts[i];
        e.parts[i] = (struct slotbook_part){.node = s->host->name,
                                            .amount = s->amount,
                                            .idle = s->idle,
                                            .unknown = s->unknown,
                                            .busy = s->busy};
    }
    slotbook_put_event(j, &e);
    free(e.parts);
    if (l->redoes)
        slotbook_put_event(
            j, &(struct slotbook_event){
                   .kind = SLOTBOOK_EV_REDO, .at = b->now, .name = l->job, .amount = 1});
}

static void save_host(struct jout *j, const struct slotbook *b, const struct slotbook_host *h)
{
    struct slotbook_event e = {.kind = SLOTBOOK_EV_NODE,
                               .at = b->now,
                               .name = h->name,
                               .labels = h->labels,
                               .gpus = h->gpus,
                               .foreign = h->foreign,
                               .clearing = h->clearing,
                               .state = h->state};
    slotbook_put_event(j, &e);
    if (h->kept)
        slotbook_put_event(
            j, &(struct slotbook_event){
                   .kind = SLOTBOOK_EV_KEEP, .at = b->now, .name = h->name, .amount = h->kept});
}

static void save_claims(struct jout *j, const struct slotbook *b, enum slotbook_kind kind)
{
    const struct slotbook_claim *c;
    for (size_t pos = 0; (c = slotbook_claim_next(b, kind, &pos));)
        slotbook_put_event(j, &(struct slotbook_event){.kind = kind,
                                                       .at = b->now,
                                                       .project = c->project,
                                                       .labels = c->pool,
                                                       .amount = c->amount});
}

/* A host that is gone, and on which a lease lies: known, so that it keeps its labels, then gone. */
void slotbook_save(const struct slotbook *b, struct buf *out)
{
    struct jout j = jout_begin(out);
    const struct slotbook_host *h;
    const struct slotbook_lease *l;
    jout_open(&j, NULL, '[');
    slotbook_put_event(
        &j, &(struct slotbook_event){.kind = SLOTBOOK_EV_CLOCK, .at = b->now, .offset = b->offset});
    for (size_t pos = 0; (h = map_next(b->hosts, &pos, NULL));)
        save_host(&j, b, h);
    for (size_t pos = 0; (l = map_next(b->leases, &pos, NULL));)
        save_lease(&j, b, l);
    for (size_t pos = 0; (h = map_next(b->hosts, &pos, NULL));)
        if (!h->listed)
            slotbook_put_event(&j, &(struct slotbook_event){
                                       .kind = SLOTBOOK_EV_GONE, .at = b->now, .name = h->name});
    save_claims(&j, b, SLOTBOOK_EV_GUARANTEE);
    save_claims(&j, b, SLOTBOOK_EV_WAIT);
    jout_close(&j, ']');
}

/* ---- back ---- */

static size_t slotbook_word_of(const char *word, const char *const *words, size_t n)
{
    size_t i = 0;
    while (i < n && strcmp(word, words[i]) != 0)
        i++;
    return i;
}

static void read_parts(const json_t *list, struct slotbook_event *e)
{
    size_t n = list ? json_array_size(list) : 0;
    e->n_parts = n < PARTS_MAX ? n : PARTS_MAX;
    e->parts = xcalloc(e->n_parts + 1, sizeof(*e->parts));
    for (size_t i = 0; i < e->n_parts; i++) {
        const json_t *p = json_array_get(list, i);
        e->parts[i] = (struct slotbook_part){.node = json_get_str(p, "node", ""),
                                             .amount = json_get_int(p, "amount", 0),
                                             .idle = json_get_int(p, "idle", 0),
                                             .unknown = json_get_int(p, "unknown", 0),
                                             .busy = json_get_int(p, "busy", 0)};
    }
}

static bool replay_one_of(struct slotbook *b, const json_t *v)
{
    const char *word = json_get_str(v, "event", "");
    const char *state = json_get_str(v, "state", state_words[SLOTBOOK_OPEN]);
    struct slotbook_event e = {
        .kind = (enum slotbook_kind)slotbook_word_of(word, kind_words, array_len(kind_words)),
        .at = json_get_int(v, "at", 0),
        .name = json_get_str(v, "name", ""),
        .labels = json_get_str(v, "labels", ""),
        .project = json_get_str(v, "project", ""),
        .user = json_get_str(v, "user", ""),
        .workload = json_get_str(v, "workload", ""),
        .gpus = json_get_int(v, "gpus", 0),
        .foreign = json_get_int(v, "foreign", 0),
        .clearing = json_get_int(v, "clearing", 0),
        .state = (enum slotbook_state)slotbook_word_of(state, state_words, array_len(state_words)),
        .amount = json_get_int(v, "amount", 0),
        .offset = json_get_int(v, "offset", 0),
        .so_far = {.held = json_get_int(v, "held", 0),
                   .idle = json_get_int(v, "idle", 0),
                   .unknown = json_get_int(v, "unknown", 0),
                   .busy = json_get_int(v, "busy", 0),
                   .redone = json_get_int(v, "redone", 0)},
    };
    if (e.kind == SLOTBOOK_EV_END_OF_TABLE || e.state == SLOTBOOK_STATES)
        return false;
    read_parts(json_get_array(v, "parts"), &e);
    (void)slotbook_apply(b, &e); /* it was worth keeping then */
    free(e.parts);
    return true;
}

bool slotbook_load(struct slotbook *b, const char *text, size_t len)
{
    _cleanup_(json_unrefp) json_t *all = NULL;
    if (json_parse(text, len, SLOTBOOK_TEXT_MAX, &all, NULL) < 0 || !json_is_array(all))
        return false;
    for (size_t i = 0; i < json_array_size(all); i++)
        if (!replay_one_of(b, json_array_get(all, i)))
            return false;
    return true;
}
