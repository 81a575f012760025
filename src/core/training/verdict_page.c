/* SPDX-License-Identifier: Apache-2.0 */
/* verdict_page.c - the verdict as it is said and shown; see verdict.h. */
#include <math.h>
#include <string.h>

#include "base/mem.h"
#include "base/text.h"
#include "core/training/training_message.h"
#include "core/training/verdict.h"
#include "core/training/verdict_state.h"

static bool is_share(enum verdict_kind k)
{
    for (size_t i = 0; i < verdict_rules_n; i++)
        if (verdict_rules[i].kind == k)
            return (verdict_rules[i].flags & VERDICT_SHOW_PERCENT) != 0;
    return false;
}

/* "" where it is none: the sentence is chosen without it then. */
static void number_text(char text[static 32], enum verdict_kind k, double x)
{
    if (!isfinite(x))
        text_copy_to(text, 32, "");
    else if (is_share(k))
        text_printf_to(text, 32, "%.0f", 100 * x);
    else
        text_printf_to(text, 32, "%.4g", x);
}

static const char *const messages[VERDICT_KINDS] = {
#define X(e, word, ...) [e] = "verdict_" word,
    VERDICT_KIND_TABLE(X)
#undef X
};

const char *verdict_message(const struct verdict_item *item, char *text, size_t size)
{
    char value[32], base[32], limit[32];
    number_text(value, item->kind, item->value);
    number_text(base, item->kind, item->base);
    text_printf(limit, "%.6g", item->limit);
    message_write(text, size,
                  MESSAGE_ARGS(MESSAGE_NUM("step", item->onset), MESSAGE_STR("value", value),
                               MESSAGE_STR("base", base),
                               MESSAGE_STR("limit", isfinite(item->limit) ? limit : ""),
                               MESSAGE_STR("metric", item->metric),
                               MESSAGE_STR("sft", item->is_sft ? "yes" : "")));
    return messages[item->kind];
}

/* ---- the page ---- */

struct item_page {
    struct verdict_item item;
    const char *kind, *severity, *key, *metric;
    struct field_list samples;
    struct training_message said;
};
#define ITEM(name, ftype, member, ...) FIELD_AT(item_page, name, ftype, member, __VA_ARGS__)
static const struct field item_rows[] = {
    ITEM("kind", FIELD_STR, kind, .flags = FIELD_ALWAYS),
    ITEM("severity", FIELD_STR, severity, .flags = FIELD_ALWAYS, .doc = "bad or warn"),
    ITEM("stands", FIELD_BOOL, item.stands, .doc = "false: it is over"),
    ITEM("step", FIELD_INT, item.onset, .doc = "since this step"),
    ITEM("seen_at", FIELD_INT, item.told, .doc = "the step at which it was clear"),
    ITEM("ended_at", FIELD_INT, item.ended, .doc = "the step at which it was over; 0: it stands"),
    ITEM("metric", FIELD_STR, metric, .flags = FIELD_ALWAYS),
    ITEM("value", FIELD_REAL, item.value, .flags = FIELD_MAYBE),
    ITEM("baseline", FIELD_REAL, item.base, .flags = FIELD_MAYBE, .doc = "of this run itself"),
    ITEM("limit", FIELD_REAL, item.limit, .flags = FIELD_MAYBE),
    ITEM("certainty", FIELD_REAL, item.certainty, .doc = "from 0 to 1"),
    ITEM("key", FIELD_STR, key, .flags = FIELD_ALWAYS, .doc = "that changes it"),
    /* What an older version stored has none. */
    ITEM("samples",
         FIELD_LIST,
         samples,
         .of = &sample_pick_table,
         .flags = FIELD_OMIT,
         .doc = "to look at, five at most; left out where no samples are kept"),
    TRAINING_MESSAGE_ROWS(item_page, said),
};
static const struct field_table item_table = FIELD_TABLE(NULL, item_rows, item_page);

struct blind_page {
    const char *figure;
    struct training_message said;
};
static const struct field blind_rows[] = {
    FIELD_AT(blind_page, "figure", FIELD_STR, figure, .flags = FIELD_ALWAYS),
    TRAINING_MESSAGE_ROWS(blind_page, said),
};
static const struct field_table blind_table = FIELD_TABLE(NULL, blind_rows, blind_page);

struct verdict_page {
    const char *state, *kind;
    int64_t steps;
    double certainty;
    struct field_list items, blind;
    struct training_message said;
};
#define PAGE(key, ftype, member, ...) FIELD_AT(verdict_page, key, ftype, member, __VA_ARGS__)
static const struct field page_rows[] = {
    PAGE("state",
         FIELD_STR,
         state,
         .flags = FIELD_ALWAYS,
         .doc = "early, fine, warn or bad; fine: nothing wrong is seen in what is measured"),
    PAGE("kind", FIELD_STR, kind, .doc = "of the first of its items; null: there is none"),
    PAGE("steps", FIELD_INT, steps, .doc = "that were looked at"),
    PAGE("certainty", FIELD_REAL, certainty, .flags = FIELD_MAYBE),
    PAGE("items", FIELD_LIST, items, .of = &item_table, .doc = "the worst that stands first"),
    PAGE("not_measured", FIELD_LIST, blind, .of = &blind_table),
    TRAINING_MESSAGE_ROWS(verdict_page, said),
};
const struct field_table verdict_table = FIELD_TABLE("Verdict", page_rows, verdict_page);

static void verdict_item_fill(struct item_page *p, struct sample_picks *picks)
{
    char args[TRAINING_ARGS_MAX];
    enum verdict_kind k = p->item.kind;
    const char *code = verdict_message(&p->item, args, sizeof(args));
    p->kind = verdict_kind_to_string(k);
    p->severity = verdict_kind_is_severe(k) ? "bad" : "warn";
    p->key = verdict_kind_key(k, p->item.is_sft);
    p->metric = p->item.metric;
    if (picks)
        p->samples = (struct field_list){picks->v, picks->n};
    training_message_say_text(&p->said, code, args);
}

/* What stands first, each in the order of kinds. */
static size_t items_fill(const struct verdict *v, struct item_page *items)
{
    size_t n = 0;
    for (int over = 0; over < 2; over++)
        for (int k = 0; k < VERDICT_KINDS; k++)
            if (verdict_item(v, (enum verdict_kind)k, &items[n].item) &&
                items[n].item.stands == !over) {
                verdict_item_fill(&items[n], v->picks[k]);
                n++;
            }
    return n;
}

static size_t blind_fill(const struct verdict *v, struct blind_page *pages)
{
    static const char *const words[] = {
#define X(e, word) word,
        VERDICT_BLIND_TABLE(X)
#undef X
    };
    static const char *const codes[] = {
#define X(e, word) "unmeasured_" word,
        VERDICT_BLIND_TABLE(X)
#undef X
    };
    unsigned blind = verdict_blind(v);
    size_t n = 0;
    for (size_t i = 0; i < VERDICT_BLINDS; i++)
        if (blind >> i & 1) {
            pages[n].figure = words[i];
            training_message_say(&pages[n++].said, codes[i], MESSAGE_NO_ARGS);
        }
    return n;
}

bool verdict_to_json(const struct verdict *v, struct jout *j, const char *key)
{
    struct item_page *items = xcalloc(VERDICT_KINDS, sizeof(*items));
    struct blind_page *blind = xcalloc(VERDICT_BLINDS, sizeof(*blind));
    size_t n = items_fill(v, items), n_blind = blind_fill(v, blind);
    const struct item_page *first = n && items[0].item.stands ? &items[0] : NULL;
    struct verdict_page page = {
        .state = first                     ? first->severity
                 : v->steps < VERDICT_FROM ? "early"
                                           : "fine",
        .kind = first ? first->kind : NULL,
        .steps = v->steps,
        .certainty = first ? first->item.certainty : (double)NAN,
        .items = {items, n},
        .blind = {blind, n_blind},
    };
    if (first)
        training_message_say_text(&page.said, first->said.code, first->said.args);
    else
        training_message_say(
            &page.said, v->steps < VERDICT_FROM ? "verdict_early" : "verdict_fine",
            MESSAGE_ARGS(MESSAGE_NUM("steps", v->steps), MESSAGE_NUM("least", VERDICT_FROM)));
    if (v->steps)
        field_to_json(&verdict_table, &page, FIELD_ALL, FIELD_PAGE, j, key);
    training_message_release(&page.said);
    for (size_t i = 0; i < n; i++)
        training_message_release(&items[i].said);
    for (size_t i = 0; i < n_blind; i++)
        training_message_release(&blind[i].said);
    freep(&items);
    freep(&blind);
    return v->steps > 0;
}

uint64_t verdict_seen_from_json(const json_t *verdict)
{
    uint64_t seen = 0;
    size_t i;
    const json_t *item;
    json_array_foreach (json_get_array(verdict, "items"), i, item) {
        enum verdict_kind k = verdict_kind_from_string(json_get_str(item, "kind", ""));
        seen |= k < VERDICT_KINDS ? verdict_kind_bit(k) : 0;
    }
    return seen;
}
