/* SPDX-License-Identifier: Apache-2.0 */
/* noderecord.c - see noderecord.h. Words for enums and names for members, so that an older or
 * newer argusd reads what it knows. Monotonic times are not stored: a restart waits anew. */
#include "argusd/machines/noderecord.h"

#include <stdlib.h>
#include <string.h>

#include "base/doc/doc.h"
#include "base/message.h"
#include "base/str.h"
#include "base/text.h"

static const char *const want_words[] = {
#define X(e, word) word,
    NODE_WANT_TABLE(X) NULL};
static const char *const state_words[] = {NODE_STATE_TABLE(X) NULL};
static const char *const step_words[] = {NODE_STEP_TABLE(X) NULL};
static const char *const then_words[] = {NODE_THEN_TABLE(X) NULL};
static const char *const net_words[] = {NODE_NET_TABLE(X) NULL};
#undef X

#define ROW(key, ftype, member, ...)                                                               \
    {                                                                                              \
        .name = key, .type = ftype, .offset = offsetof(struct node_row, member), __VA_ARGS__       \
    }
#define WORDS(key, words) ROW(#key, FIELD_ENUM, key, .names = (words))
#define CHARS(key, member)                                                                         \
    ROW(key, FIELD_TEXT, member, .size = sizeof(((struct node_row *)0)->member))
/* All but the spec, which is a table of its own. */
static const struct field record_rows[] = {
    ROW("seq", FIELD_INT, seq),
    WORDS(want, want_words),
    WORDS(state, state_words),
    WORDS(step, step_words),
    ROW("added_at", FIELD_TIME, added_at),
    ROW("since", FIELD_TIME, since),
    CHARS("code", reason.code),
    CHARS("text", reason.text),
    CHARS("fix", reason.fix),
    CHARS("sick", sick),
    CHARS("sick_code", sick_code),
    ROW("sick_since", FIELD_TIME, sick_since),
    WORDS(net, net_words),
    CHARS("net_code", net_code),
    CHARS("net_text", net_text),
    CHARS("added_by", added_by),
    ROW("ssh_away", FIELD_BOOL, ssh_away),
    ROW("may_run", FIELD_BOOL, may_run),
    ROW("tries", FIELD_INT32, tries),
    ROW("place", FIELD_INT32, place),
    CHARS("session", session),
    CHARS("host_key", host_key),
    CHARS("address", address),
    ROW("drain_within", FIELD_SPAN, drain_within),
    ROW("drain_watch.spent", FIELD_SPAN, drain_watch.spent),
    ROW("drain_watch.running", FIELD_BOOL, drain_watch.running),
    ROW("drain_watch.wall", FIELD_TIME, drain_watch.wall),
    ROW("drain_watch.boot", FIELD_SPAN, drain_watch.boot),
    CHARS("drain_watch.boot_id", drain_watch.boot_id),
    WORDS(then, then_words),
    ROW("drain_due", FIELD_BOOL, drain_due),
    ROW("downed", FIELD_BOOL, downed),
    ROW("forced", FIELD_BOOL, forced),
    ROW("stop_foreign", FIELD_BOOL, stop_foreign),
    CHARS("slow", slow),
    CHARS("remedies", remedies),
    ROW("facts", FIELD_OBJECT, facts, .of = &node_facts_table),
};
static const struct field_table record_table = {.rows = record_rows,
                                                .n = array_len(record_rows),
                                                .size = sizeof(struct node_row)};

void noderecord_write(const struct node_row *n, struct buf *out)
{
    struct jout j = jout_begin(out);
    jout_open(&j, NULL, '{');
    nodespec_to_json(&n->spec, &j, "spec", false);
    field_put_members(&record_table, n, FIELD_ALL, FIELD_ROW, &j);
    jout_close(&j, '}');
}

/* A word that is not known stays the end of its enum. */
static void read_row(const json_t *o, struct node_row *n)
{
    n->want = NODE_WANT_END;
    n->state = NODE_STATE_END;
    n->step = NODE_STEP_END;
    n->then = json_object_get(o, "then") ? NODE_THEN_END : NODE_THEN_WAIT;
    n->net = json_object_get(o, "net") ? NODE_NET_END : NODE_NET_FREE;
    field_from_json(&record_table, o, FIELD_ALL, n);
}

static int noderecord_read_spec(const char *text, struct node_row *n, struct err *err)
{
    struct problems ps = {0};
    _cleanup_(doc_freep) struct doc *d = NULL;
    struct nodespec spec = {0};
    int r = doc_parse(text, strlen(text), false, &d, &ps);
    if (r == 0)
        r = nodespec_read(node_find(doc_root(d), "spec"), "", &spec, &ps);
    nodespec_move(&n->spec, &spec);
    if (r < 0)
        r = problems_to_err(&ps, "a node of the store", ERR_STORE, err);
    problems_release(&ps);
    return r;
}

int noderecord_read(const char *text, struct node_row **ret, struct err *err)
{
    _cleanup_(json_unrefp) json_t *o = NULL;
    struct node_row *n = node_row_new();
    int r = json_parse(text, strlen(text), NODERECORD_MAX, &o, err);
    if (r == 0)
        r = noderecord_read_spec(text, n, err);
    if (r == 0) {
        read_row(o, n);
        bool known = n->want < NODE_WANT_END && n->state < NODE_STATE_END &&
                     n->step < NODE_STEP_END && n->then < NODE_THEN_END && n->net < NODE_NET_END;
        const char *broken = known ? node_check(n) : "a word is not known";
        if (broken)
            r = message_refuse(err, ERR_STORE, "stored_node_broken",
                               MESSAGE_ARGS(MESSAGE_STR("why", broken)));
    }
    if (r < 0)
        node_row_free(n);
    else
        *ret = n;
    return r;
}
