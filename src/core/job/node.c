/* SPDX-License-Identifier: Apache-2.0 */
/* node.c - the state machine of a machine; see node.h.
 *
 * As in job_event.c one table says which (step, event) pairs mean anything; all others came too
 * late or twice and change nothing. The step is the finer of the two: each belongs to few states.
 *
 *      PROBE ─▶ START ─▶ JOIN ─▶ IN ─▶ LEAVE ─▶ OUT        FENCE comes before PROBE when
 *        ▲────────┴───────┘      │       │       │         Ray's session is another one
 *        └───────── LOST ◀───────┘       └ wanted up again ┘ */
#include "core/job/node.h"

#include <stdlib.h>
#include <string.h>

#include "base/message.h"
#include "base/str.h"
#include "base/text.h"

static const usec_t JOIN_PATIENCE = 3 * USEC_MIN;  /* of a Ray that is busy, not of a quick one */
static const usec_t HEAD_PATIENCE = 15 * USEC_SEC; /* its dashboard listens already */
static const usec_t BACKOFF_FIRST = USEC_SEC;
static const usec_t BACKOFF_MOST = 30 * USEC_SEC;
enum { FORCED_TRIES = 1 };

/* ---- words ---- */

#define X(e, word) word,
static const char *const states[] = {NODE_STATE_TABLE(X)};
static const char *const wants[] = {NODE_WANT_TABLE(X)};
static const char *const thens[] = {NODE_THEN_TABLE(X)};
#undef X

static int node_word_index(const char *const *words, size_t n, const char *word)
{
    for (size_t i = 0; i < n; i++)
        if (str_eq(words[i], word))
            return (int)i;
    return (int)n;
}

const char *node_state_to_string(enum node_state s)
{
    return states[s];
}

const char *node_want_to_string(enum node_want w)
{
    return wants[w];
}

const char *node_then_to_string(enum node_then t)
{
    return thens[t];
}

enum node_then node_then_from_string(const char *word)
{
    return (enum node_then)node_word_index(thens, array_len(thens), word);
}

/* ---- the thing itself ---- */

static const struct field fact_rows[] = {
#define X(key, bytes, words)                                                                       \
    {.name = #key,                                                                                 \
     .type = FIELD_TEXT,                                                                           \
     .offset = offsetof(struct node_facts, key),                                                   \
     .size = (bytes),                                                                              \
     .flags = FIELD_OMIT,                                                                          \
     .doc = (words)},
    NODE_FACT_TEXTS(X)
#undef X
#define X(key, ctype, ftype, words)                                                                \
    {.name = #key, .type = (ftype), .offset = offsetof(struct node_facts, key), .doc = (words)},
        NODE_FACT_NUMBERS(X)
#undef X
            {.name = "skew_usec",
             .type = FIELD_INT,
             .offset = offsetof(struct node_facts, skew),
             .doc = "its clock minus argusd's"},
    {.name = "at",
     .type = FIELD_TIME,
     .offset = offsetof(struct node_facts, at),
     .doc = "when the machine was looked at"},
};
const struct field_table node_facts_table = {.name = "NodeFacts",
                                             .rows = fact_rows,
                                             .n = array_len(fact_rows),
                                             .size = sizeof(struct node_facts)};

struct node_row *node_row_new(void)
{
    struct node_row *n = xcalloc(1, sizeof(*n));
    n->spec.gpu_count = n->spec.cpu_count = -1;
    return n;
}

void node_row_free(struct node_row *n)
{
    if (!n)
        return;
    nodespec_release(&n->spec);
    free(n);
}

static void node_set_reason(struct node_row *n, const char *code, const char *text, const char *fix)
{
    text_copy(n->reason.code, str_or(code, ""));
    text_copy(n->reason.text, str_or(text, ""));
    text_copy(n->reason.fix, str_or(fix, ""));
}

static void node_set_net(struct node_row *n, enum node_net net, const char *code, const char *text)
{
    n->net = net;
    text_copy(n->net_code, str_or(code, ""));
    text_copy(n->net_text, str_or(text, ""));
}

/* What the looks at it and the check of its network have said; it is told of nodes that are in. */
static void forget_health(struct node_row *n)
{
    n->sick[0] = n->sick_code[0] = 0;
    n->sick_since = 0;
    n->ssh_away = false;
    node_set_net(n, NODE_NET_FREE, NULL, NULL);
}

static void go(struct node_row *n,
               enum node_state state,
               enum node_step step,
               const struct moment *now)
{
    if (n->state != state)
        n->since = now->wall;
    n->state = state;
    n->step = step;
    if (step != NODE_STEP_IN)
        forget_health(n);
}

/* Towards online, from the beginning. */
static void begin_join(struct node_row *n, enum node_state state, const struct moment *now)
{
    n->tries = 0;
    go(n, state, NODE_STEP_PROBE, now);
}

/* ---- events ---- */

typedef void (*change_f)(struct node_row *n, const struct node_event *e, const struct moment *now);

static void probed(struct node_row *n, const struct node_event *e, const struct moment *now)
{
    (void)e;
    n->may_run = true; /* on disk before the start */
    node_set_reason(n, "starting", "{}", NULL);
    go(n, NODE_PENDING, NODE_STEP_START, now);
}

/* What was tried did not work: on the way in from the beginning again, else once more. */
static void failed(struct node_row *n, const struct node_event *e, const struct moment *now)
{
    bool way_in = n->step == NODE_STEP_START || n->step == NODE_STEP_JOIN;
    n->tries++;
    node_set_reason(n, e->code, e->text, e->fix);
    if (way_in)
        go(n, n->state, NODE_STEP_PROBE, now);
    if (n->step == NODE_STEP_LEAVE && n->forced && n->tries >= FORCED_TRIES)
        go(n, NODE_OFFLINE, NODE_STEP_OUT, now); /* asked for: its raylet may still run */
}

static void blocked(struct node_row *n, const struct node_event *e, const struct moment *now)
{
    (void)now;
    node_set_reason(n, e->code, e->text, e->fix);
}

static void fenced(struct node_row *n, const struct node_event *e, const struct moment *now)
{
    (void)e;
    n->may_run = false;
    n->session[0] = 0;
    n->tries = 0;
    go(n, n->state, NODE_STEP_PROBE, now);
}

/* On its way out it waits for jobs of others, or for Ray to tell of them. */
static void held_up(struct node_row *n, const struct node_event *e, const struct moment *now)
{
    (void)now;
    if (n->want != NODE_WANT_UP)
        node_set_reason(n, e->code, e->text, NULL);
}

static void started(struct node_row *n, const struct node_event *e, const struct moment *now)
{
    text_copy(n->session, str_or(e->session, ""));
    node_set_reason(n, "joining", "{}", NULL);
    go(n, NODE_PENDING, NODE_STEP_JOIN, now);
}

static void seen(struct node_row *n, const struct node_event *e, const struct moment *now)
{
    if (e->session && *e->session)
        text_copy(n->session, e->session);
    n->may_run = true;
    n->tries = 0;
    forget_health(n);
    if (n->spec.check_net)
        node_set_net(n, NODE_NET_DUE, "net_check_due", "{}");
    node_set_reason(n, NULL, NULL, NULL);
    go(n, NODE_ONLINE, NODE_STEP_IN, now);
}

static void lost(struct node_row *n, const struct node_event *e, const struct moment *now)
{
    node_set_reason(n, e->code, e->text, e->fix);
    n->tries = 0;
    /* A drained node stays where it was to go; its leftovers are looked for all the same. */
    go(n, NODE_OFFLINE, n->want == NODE_WANT_UP ? NODE_STEP_PROBE : NODE_STEP_LEAVE, now);
}

/* The state of a node that is to go and is not known to be gone. */
static enum node_state leaving(const struct node_row *n)
{
    return n->state == NODE_OFFLINE ? NODE_OFFLINE : NODE_DRAINING;
}

static void lose_session(struct node_row *n, const struct node_event *e, const struct moment *now)
{
    n->tries = 0;
    node_set_reason(n, str_or(e->code, "head_restarted"), str_or(e->text, "{}"), NULL);
    if (n->want == NODE_WANT_UP)
        go(n, NODE_PENDING, NODE_STEP_FENCE, now);
    else
        go(n, leaving(n), NODE_STEP_LEAVE, now);
}

static void drain(struct node_row *n, const struct node_event *e, const struct moment *now)
{
    bool again = n->want == NODE_WANT_DRAINED && n->drain_within == e->within &&
                 n->then == e->then && n->stop_foreign == e->stop_foreign;
    if (n->want == NODE_WANT_REMOVED || again)
        return;
    n->want = NODE_WANT_DRAINED;
    n->drain_within = e->within;
    n->then = e->then;
    n->drain_due = false;
    n->stop_foreign = e->stop_foreign;
    n->downed = e->downed;
    stopwatch_start(&n->drain_watch, now);
    if (n->step == NODE_STEP_IN) {
        node_set_reason(n, "draining", e->text, NULL);
        go(n, NODE_DRAINING, NODE_STEP_IN, now);
    } else if (n->may_run && n->step != NODE_STEP_LEAVE) {
        n->tries = 0;
        node_set_reason(n, "draining", "{\"on_its_way\":1}", NULL);
        go(n, leaving(n), NODE_STEP_LEAVE, now);
    } else if (n->step != NODE_STEP_LEAVE) {
        node_set_reason(n, "drained", "{}", NULL);
        go(n, NODE_OFFLINE, NODE_STEP_OUT, now);
    }
}

static void due(struct node_row *n, const struct node_event *e, const struct moment *now)
{
    (void)now;
    if (n->state != NODE_DRAINING || n->drain_due)
        return;
    n->drain_due = true;
    node_set_reason(n, "drain_due", e->text, NULL);
}

static void empty(struct node_row *n, const struct node_event *e, const struct moment *now)
{
    if (n->state != NODE_DRAINING)
        return;
    n->tries = 0;
    node_set_reason(n, "stopping", str_or(e->text, "{}"), NULL);
    go(n, NODE_DRAINING, NODE_STEP_LEAVE, now);
}

static void stopped(struct node_row *n, const struct node_event *e, const struct moment *now)
{
    (void)e;
    n->may_run = false;
    n->session[0] = 0;
    if (n->want == NODE_WANT_UP) {
        node_set_reason(n, "rejoining", "{}", NULL);
        begin_join(n, NODE_PENDING, now);
        return;
    }
    n->tries = 0;
    node_set_reason(n, "drained", "{}", NULL);
    go(n, NODE_OFFLINE, NODE_STEP_OUT, now);
}

static void undrain(struct node_row *n, const struct node_event *e, const struct moment *now)
{
    (void)e;
    if (n->want != NODE_WANT_DRAINED)
        return;
    n->want = NODE_WANT_UP;
    n->drain_within = 0;
    n->drain_due = n->downed = n->stop_foreign = false;
    if (n->step == NODE_STEP_IN) {
        node_set_reason(n, NULL, NULL, NULL);
        go(n, NODE_ONLINE, NODE_STEP_IN, now);
    } else if (n->step == NODE_STEP_OUT) {
        node_set_reason(n, "rejoining", "{}", NULL);
        begin_join(n, NODE_PENDING, now);
    } /* leaving: it goes first, then comes in again */
}

/* One that is in goes when it is EMPTY: jobs of others may run on it. What a drain said of them
 * does not hold for the removal, which has no deadline. */
static void remove_it(struct node_row *n, const struct node_event *e, const struct moment *now)
{
    bool said_before = n->want == NODE_WANT_REMOVED && n->stop_foreign;
    n->want = NODE_WANT_REMOVED;
    n->forced |= e->forced;
    n->stop_foreign = said_before || e->stop_foreign;
    n->drain_within = 0;
    n->drain_due = false;
    n->tries = 0;
    node_set_reason(n, "removing", "{}", NULL);
    if (n->step == NODE_STEP_IN)
        go(n, NODE_DRAINING, NODE_STEP_IN, now);
    else if (n->may_run)
        go(n, leaving(n), NODE_STEP_LEAVE, now);
    else
        go(n, NODE_OFFLINE, NODE_STEP_OUT, now);
}

static void fall_sick(struct node_row *n, const struct node_event *e, const struct moment *now)
{
    if (!*n->sick)
        n->sick_since = now->wall;
    message_write(n->sick, sizeof(n->sick),
                  MESSAGE_ARGS(MESSAGE_OF("trouble", str_or(e->code, ""), str_or(e->text, "?"))));
    text_copy(n->sick_code, str_or(e->code, ""));
}

static void get_well(struct node_row *n, const struct node_event *e, const struct moment *now)
{
    (void)e;
    (void)now;
    n->sick[0] = n->sick_code[0] = 0;
    n->sick_since = 0;
}

static void go_away(struct node_row *n, const struct node_event *e, const struct moment *now)
{
    (void)e;
    (void)now;
    n->ssh_away = true;
}

static void come_back(struct node_row *n, const struct node_event *e, const struct moment *now)
{
    (void)e;
    (void)now;
    n->ssh_away = false;
}

/* One that was measured as bad stays so, with its reason, while it is measured anew. */
static void net_waits(struct node_row *n, const struct node_event *e, const struct moment *now)
{
    (void)now;
    if (n->net == NODE_NET_DUE)
        node_set_net(n, NODE_NET_DUE, e->code, e->text);
}

static void net_is_well(struct node_row *n, const struct node_event *e, const struct moment *now)
{
    (void)e;
    (void)now;
    node_set_net(n, NODE_NET_FREE, NULL, NULL);
}

static void net_is_bad(struct node_row *n, const struct node_event *e, const struct moment *now)
{
    (void)now;
    if (n->net != NODE_NET_FREE)
        node_set_net(n, NODE_NET_BAD, e->code, e->text);
}

/* NULL: the event means nothing there. */
#define WAY_IN                                                                                     \
    [NODE_EV_FAILED] = failed, [NODE_EV_SEEN] = seen, [NODE_EV_SESSION] = lose_session,            \
    [NODE_EV_DRAIN] = drain, [NODE_EV_REMOVE] = remove_it
static const change_f table[NODE_STEP_END][NODE_EV_END] = {
    [NODE_STEP_PROBE] = {WAY_IN, [NODE_EV_PROBED] = probed},
    [NODE_STEP_FENCE] = {[NODE_EV_FENCED] = fenced,
                         [NODE_EV_FAILED] = failed,
                         [NODE_EV_DRAIN] = drain,
                         [NODE_EV_REMOVE] = remove_it},
    [NODE_STEP_START] = {WAY_IN, [NODE_EV_BLOCKED] = blocked, [NODE_EV_STARTED] = started},
    [NODE_STEP_JOIN] = {WAY_IN, [NODE_EV_SILENT] = blocked},
    [NODE_STEP_IN] = {[NODE_EV_LOST] = lost,
                      [NODE_EV_SESSION] = lose_session,
                      [NODE_EV_DRAIN] = drain,
                      [NODE_EV_BLOCKED] = held_up,
                      [NODE_EV_DUE] = due,
                      [NODE_EV_EMPTY] = empty,
                      [NODE_EV_UNDRAIN] = undrain,
                      [NODE_EV_REMOVE] = remove_it,
                      [NODE_EV_SICK] = fall_sick,
                      [NODE_EV_WELL] = get_well,
                      [NODE_EV_AWAY] = go_away,
                      [NODE_EV_BACK] = come_back,
                      [NODE_EV_NET_WAITS] = net_waits,
                      [NODE_EV_NET_WELL] = net_is_well,
                      [NODE_EV_NET_BAD] = net_is_bad},
    [NODE_STEP_LEAVE] = {[NODE_EV_STOPPED] = stopped,
                         [NODE_EV_FAILED] = failed,
                         [NODE_EV_BLOCKED] = held_up,
                         [NODE_EV_DRAIN] = drain,
                         [NODE_EV_UNDRAIN] = undrain,
                         [NODE_EV_REMOVE] = remove_it},
    [NODE_STEP_OUT] = {[NODE_EV_UNDRAIN] = undrain, [NODE_EV_REMOVE] = remove_it},
};

static bool node_net_is_same(const struct node_row *a, const struct node_row *b)
{
    return a->net == b->net && !strcmp(a->net_code, b->net_code) &&
           !strcmp(a->net_text, b->net_text);
}

static bool node_drain_is_same(const struct node_row *a, const struct node_row *b)
{
    return a->drain_within == b->drain_within && a->then == b->then && a->downed == b->downed &&
           a->drain_due == b->drain_due && a->stop_foreign == b->stop_foreign;
}

/* What a change can touch and an observer can see, or a restart must find again. */
static bool same(const struct node_row *a, const struct node_row *b)
{
    return a->state == b->state && a->step == b->step && a->want == b->want &&
           a->may_run == b->may_run && a->forced == b->forced && a->tries == b->tries &&
           a->ssh_away == b->ssh_away && node_drain_is_same(a, b) && !strcmp(a->sick, b->sick) &&
           node_net_is_same(a, b) && !strcmp(a->reason.code, b->reason.code) &&
           !strcmp(a->reason.text, b->reason.text) && !strcmp(a->session, b->session);
}

bool node_apply(struct node_row *n, const struct node_event *e, const struct moment *now)
{
    change_f change = table[n->step][e->kind];
    if (!change)
        return false;
    struct node_row before = *n; /* compared only: what it points at does not change here */
    change(n, e, now);
    return !same(&before, n);
}

enum node_act node_act(const struct node_row *n)
{
    static const enum node_act acts[NODE_STEP_END] = {
        [NODE_STEP_PROBE] = NODE_ACT_PROBE, [NODE_STEP_FENCE] = NODE_ACT_FENCE,
        [NODE_STEP_START] = NODE_ACT_START, [NODE_STEP_JOIN] = NODE_ACT_WATCH,
        [NODE_STEP_IN] = NODE_ACT_WATCH,    [NODE_STEP_LEAVE] = NODE_ACT_STOP,
        [NODE_STEP_OUT] = NODE_ACT_NONE};
    if (n->step == NODE_STEP_OUT && n->want == NODE_WANT_REMOVED)
        return NODE_ACT_FORGET;
    return acts[n->step];
}

usec_t node_backoff(const struct node_row *n)
{
    usec_t span = BACKOFF_FIRST;
    if (!n->tries)
        return 0;
    for (int i = 1; i < n->tries && span < BACKOFF_MOST; i++)
        span *= 2;
    return span < BACKOFF_MOST ? span : BACKOFF_MOST;
}

usec_t node_patience(const struct node_row *n)
{
    if (n->step != NODE_STEP_JOIN)
        return 0;
    return n->is_head ? HEAD_PATIENCE : JOIN_PATIENCE;
}

bool node_is_due(const struct node_row *n, const struct moment *now)
{
    bool has_deadline = n->drain_within || n->then != NODE_THEN_WAIT;
    return n->state == NODE_DRAINING && n->step == NODE_STEP_IN && n->want == NODE_WANT_DRAINED &&
           has_deadline && !n->drain_due && stopwatch_read(&n->drain_watch, now) >= n->drain_within;
}

bool node_stops_foreign(const struct node_row *n, const struct moment *now)
{
    return n->stop_foreign &&
           (!n->drain_within || stopwatch_read(&n->drain_watch, now) >= n->drain_within);
}

const char *node_why_not(const struct node_row *n)
{
    if (n->state != NODE_ONLINE)
        return node_state_to_string(n->state);
    if (node_is_unhealthy(n))
        return "unhealthy";
    return n->net == NODE_NET_DUE ? "pending" : "";
}

bool node_is_unhealthy(const struct node_row *n)
{
    return *n->sick || n->net == NODE_NET_BAD;
}

/* All codes of the root begin so, see ssh/probe.h and ssh/raylet.h. */
bool node_misses_root(const struct node_row *n)
{
    return str_starts(n->sick_code, "root_");
}

bool node_waits_for_net(const struct node_row *n)
{
    return n->state == NODE_ONLINE && !*n->sick && n->net != NODE_NET_FREE;
}

/* Which steps a state may be in. */
static const unsigned steps_of[NODE_STATE_END] = {
    [NODE_PENDING] = 1U << NODE_STEP_PROBE | 1U << NODE_STEP_FENCE | 1U << NODE_STEP_START |
                     1U << NODE_STEP_JOIN,
    [NODE_ONLINE] = 1U << NODE_STEP_IN,
    [NODE_DRAINING] = 1U << NODE_STEP_IN | 1U << NODE_STEP_LEAVE,
    [NODE_OFFLINE] = 1U << NODE_STEP_PROBE | 1U << NODE_STEP_LEAVE | 1U << NODE_STEP_OUT,
};

static const char *check_want(const struct node_row *n)
{
    if (n->step <= NODE_STEP_IN && n->want != NODE_WANT_UP && n->state != NODE_DRAINING)
        return "only a wanted node is on its way in";
    if (n->step == NODE_STEP_OUT && n->want == NODE_WANT_UP)
        return "a wanted node is on its way in";
    bool runs = n->step == NODE_STEP_START || n->step == NODE_STEP_JOIN || n->step == NODE_STEP_IN;
    return runs && !n->may_run ? "what was or is to be started may run" : NULL;
}

const char *node_check(const struct node_row *n)
{
    if (!n->spec.name || !n->spec.host || !n->added_at)
        return "a node has a name, a host and a time";
    if (n->state >= NODE_STATE_END || !(steps_of[n->state] & 1U << n->step))
        return "the step is one of the state's";
    if ((*n->sick || n->ssh_away || n->net != NODE_NET_FREE) && n->step != NODE_STEP_IN)
        return "health is of nodes that are in";
    if (n->place < 0 || n->place > 7)
        return "at most eight raylets share a host";
    return check_want(n);
}
