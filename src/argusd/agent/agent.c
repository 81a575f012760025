/* SPDX-License-Identifier: Apache-2.0 */
/* agent.c - see agent.h. Once a second: is a batch due? One that was not taken is made anew, with
 * the figures and by the rights of then. */
#include "argusd/agent/agent.h"

#include <stdlib.h>
#include <string.h>

#include "argusd/agent/agent_run.h"
#include "base/log.h"
#include "base/str.h"
#include "base/text.h"

enum { AGENT_TICK_MS = 1000 };

#define CURSOR(key, member) FIELD_AT(agent, key, FIELD_INT, member, .flags = FIELD_STORED)
static const struct field cursor_rows[] = {
    CURSOR("taken", taken),
    CURSOR("gap_since", gap.since),
    CURSOR("gap_next", gap.next),
};
static const struct field_table cursor_table = FIELD_TABLE(NULL, cursor_rows, agent);

struct agent *agent_new(struct api *a)
{
    struct agent *g = xcalloc(1, sizeof(*g));
    const struct settings *s = a->settings;
    struct courier_parts parts = {.loop = a->loop,
                                  .secrets = a->secrets,
                                  .secrets_of = s->agent_secrets_of,
                                  .to = &s->agent,
                                  .networks = &s->call_networks,
                                  .log = "agent",
                                  .said = "the ops agent"};
    struct err err = {0};
    g->a = a;
    if ((s->agent.url || s->agent.url_secret) && courier_new(&parts, &g->courier, &err) < 0)
        log_err("agent", "the ops agent cannot be reached: %s", err.text);
    return g;
}

void agent_restore(struct agent *g, const struct store_entry *row)
{
    g->has_taken = field_from_text(&cursor_table, row->body, FIELD_STORED, g);
    if (!g->has_taken)
        log_err("agent", "the store's row of the ops agent cannot be read");
}

static void agent_save(const struct agent *g)
{
    _cleanup_(freep) char *body = field_to_text(&cursor_table, g, FIELD_STORED, FIELD_ROW);
    struct store_entry row = {
        .kind = AGENT_ENTRY, .name = "cursor", .body = body, .at = clock_wall()};
    store_put_entry(g->a->store, &row);
}

void agent_close(struct agent *g)
{
    if (!g || g->closing)
        return;
    g->closing = true;
    if (g->has_timer)
        uv_close((uv_handle_t *)&g->timer, NULL);
    if (g->read)
        store_read_cancel(g->read);
    g->read = NULL;
    courier_free(g->courier);
    g->courier = NULL;
}

void agent_free(struct agent *g)
{
    free(g);
}

/* ---- who is too far behind ---- */

static void tell_gap(struct agent *g)
{
    static const struct access_thing thing = {.kind = ACCESS_KIND_CLUSTER};
    char text[200], said[200];
    message_write(text, sizeof(text),
                  MESSAGE_ARGS(MESSAGE_NUM("first_event", g->gap.since + 1),
                               MESSAGE_NUM("last_event", g->gap.next)));
    message_to_string("agent_gap", text, true, said, sizeof(said));
    struct events_note note = {.thing = &thing,
                               .kind = "agent_gap",
                               .actor = "argusd",
                               .object = "agent/agent",
                               .code = "agent_gap",
                               .text = text};
    events_add(g->a->events, &note, clock_wall());
    log_warn("agent", "%s", said);
}

/* Who is too far behind is told a gap: what it may be behind has a ceiling. */
static void agent_skip(struct agent *g)
{
    int64_t oldest = events_last(g->a->events) - g->a->settings->agent_behind;
    if (g->taken >= oldest)
        return;
    bool is_new = !g->gap.next;
    g->gap = (struct agent_gap){.since = is_new ? g->taken : g->gap.since, .next = oldest};
    g->taken = oldest;
    agent_save(g);
    if (is_new)
        tell_gap(g);
}

/* ---- sending ---- */

static void agent_turn(struct agent *g);

static void agent_took(struct agent *g)
{
    g->taken = g->batch.next;
    g->more = g->batch.more;
    if (g->batch.has_gap)
        g->gap = (struct agent_gap){0};
    g->batches++;
    agent_save(g);
}

/* A batch that is refused is sent again, too: an agent that cannot read it is to be mended, and
 * the ceiling holds for it as for a dead one. */
static void agent_on_answer(enum alert_verdict v, const char *why, void *arg)
{
    struct agent *g = arg;
    g->sending = false;
    if (g->closing)
        return;
    if (v == ALERT_TAKEN) {
        courier_settled(g->courier, NULL);
        agent_took(g);
        agent_turn(g);
    } else {
        courier_failed(g->courier, why, clock_mono());
        g->more = true; /* made anew when the pause is over: by what may be seen then */
    }
}

/* ---- reading ---- */

static void agent_on_page(const struct store_result *r, void *arg)
{
    struct agent *g = arg;
    struct buf body = BUF_INIT(AGENT_BATCH_BYTES);
    g->read = NULL;
    if (g->closing)
        return;
    if (r->err.code) {
        courier_failed(g->courier, r->err.text, clock_mono());
        return;
    }
    bool any = agent_batch_make(g, r, &g->batch, &body);
    const struct courier_message m = {.id = g->batch.id, .body = buf_str(&body)};
    if (any) {
        g->sending = courier_send(g->courier, &m, agent_on_answer, g, clock_mono());
    } else {
        g->taken = g->batch.next; /* of what is not for it: a restart reads it again */
        g->more = g->batch.more;
    }
    buf_release(&body);
}

/* As its token is now: one that was revoked or has expired sees nothing. */
static bool agent_admit(struct agent *g, usec_t mono)
{
    const char *id = str_or(g->a->settings->agent_token, "");
    char why[200];
    g->who = (struct http_principal){0};
    if (tokens_check_id(g->a->tokens, id, clock_wall(), &g->who) == 0 &&
        people_admit(g->a->people, &g->who) == 0)
        return true;
    text_printf(why, "its token '%.60s' opens nothing: %.100s", id, g->who.why_not);
    courier_failed(g->courier, why, mono);
    return false;
}

static void agent_read(struct agent *g)
{
    struct people_sight sight;
    struct store_then then = {.done = agent_on_page, .arg = g};
    people_sight(g->a->people, &g->who, &sight);
    struct store_event_query q = {
        .since = g->taken, .limit = AGENT_EVENTS_MAX, .scope = sight.scope};
    g->through = events_last(g->a->events);
    g->read = store_list_events(g->a->store, &q, &then);
    people_sight_release(&sight);
}

static void agent_turn(struct agent *g)
{
    usec_t mono = clock_mono();
    if (g->closing || g->read || g->sending || !courier_is_ready(g->courier, mono))
        return;
    agent_skip(g);
    if (!g->more && mono < g->due)
        return;
    g->more = false;
    g->due = mono + g->a->settings->agent_every;
    if (agent_admit(g, mono))
        agent_read(g);
}

static void agent_on_tick(uv_timer_t *timer)
{
    agent_turn(timer->data);
}

/* A new agent begins with what happens from now on; what was before it can ask for. */
void agent_start(struct agent *g)
{
    if (!g->courier)
        return;
    if (!g->has_taken) {
        g->taken = events_last(g->a->events);
        agent_save(g);
    }
    uv_timer_init(g->a->loop, &g->timer);
    g->timer.data = g;
    g->has_timer = true;
    uv_timer_start(&g->timer, agent_on_tick, AGENT_TICK_MS, AGENT_TICK_MS);
}

void agent_state(const struct agent *g, struct agent_state *ret)
{
    struct courier_state c = {.trouble = ""};
    if (g->courier)
        courier_state(g->courier, &c);
    *ret = (struct agent_state){.is_there = g->courier != NULL,
                                .token = g->a->settings->agent_token,
                                .taken = g->taken,
                                .last = events_last(g->a->events),
                                .has_gap = g->gap.next > 0,
                                .gap_since = g->gap.since,
                                .gap_next = g->gap.next,
                                .batches = g->batches,
                                .taken_at = c.taken_at,
                                .failing_for = c.failing_for,
                                .trouble = c.trouble};
}
