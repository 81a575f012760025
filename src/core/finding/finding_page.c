/* SPDX-License-Identifier: Apache-2.0 */
/* finding_page.c - the members of a finding's page; see finding_page.h. */
#include "core/finding/finding_page.h"

#include <math.h>
#include <stdint.h>

#define QUOTE(key, ftype, member, ...) FIELD_AT(finding_quote, key, ftype, member, __VA_ARGS__)
static const struct field quote_rows[] = {
    QUOTE("source", FIELD_STR, source),
    QUOTE("offset", FIELD_COUNT, offset),
    QUOTE("line", FIELD_COUNT, line),
    QUOTE("text", FIELD_STR, text, .flags = FIELD_ALWAYS),
};
const struct field_table finding_quote_table = FIELD_TABLE("Quote", quote_rows, finding_quote);

#define CHANGE(key, ftype, member, ...)                                                            \
    FIELD_AT(finding_change_page, key, ftype, member, __VA_ARGS__)
static const struct field change_rows[] = {
    CHANGE("key", FIELD_STR, key, .flags = FIELD_ALWAYS),
    CHANGE("set", FIELD_STR, set, .flags = FIELD_OMIT),
    CHANGE("scale", FIELD_STR, scale, .flags = FIELD_OMIT),
    CHANGE("add", FIELD_STR, add, .flags = FIELD_OMIT),
    CHANGE("from", FIELD_STR, from, .flags = FIELD_OMIT),
    CHANGE("min", FIELD_REAL, min, .flags = FIELD_OMIT | FIELD_MAYBE),
    CHANGE("max", FIELD_REAL, max, .flags = FIELD_OMIT | FIELD_MAYBE),
};
const struct field_table finding_change_table =
    FIELD_TABLE("SpecChange", change_rows, finding_change_page);

#define SECOND(key, ftype, member, ...)                                                            \
    FIELD_AT(finding_second_page, key, ftype, member, __VA_ARGS__)
static const struct field second_rows[] = {
    SECOND("class", FIELD_STR, class, .flags = FIELD_ALWAYS),
    SECOND("meaning", FIELD_STR, meaning, .flags = FIELD_ALWAYS),
    SECOND("rule", FIELD_STR, rule),
    SECOND("confidence", FIELD_REAL, confidence),
    SECOND("quote", FIELD_PART, quote, .of = &finding_quote_table),
    SECOND("advice", FIELD_STR, advice),
    SECOND("advice_code", FIELD_STR, advice_code),
};
const struct field_table finding_second_table =
    FIELD_TABLE("FindingSecond", second_rows, finding_second_page);

#define PAGE(key, ftype, member, ...) FIELD_AT(finding_page, key, ftype, member, __VA_ARGS__)
static const struct field page_rows[] = {
    PAGE("class", FIELD_STR, class, .flags = FIELD_ALWAYS),
    PAGE("meaning", FIELD_STR, meaning, .flags = FIELD_ALWAYS),
    PAGE("rule", FIELD_STR, rule),
    PAGE("confidence", FIELD_REAL, confidence),
    PAGE("rank", FIELD_STR, rank),
    PAGE("node", FIELD_STR, node),
    PAGE("actor", FIELD_STR, actor),
    PAGE("pid", FIELD_STR, pid),
    PAGE("time", FIELD_STR, time),
    PAGE("fatal", FIELD_BOOL, fatal),
    PAGE("evidence", FIELD_LIST, evidence, .of = &finding_quote_table),
    PAGE("after", FIELD_LIST, after, .of = &finding_quote_table),
    PAGE("advice", FIELD_STR, advice),
    /* Rows that older versions stored have none. */
    PAGE("advice_code", FIELD_STR, advice_code, .flags = FIELD_OWN(0)),
    PAGE("second", FIELD_PART, second, .of = &finding_second_table, .flags = FIELD_OWN(0)),
    PAGE("patch", FIELD_LIST, patch, .of = &finding_change_table),
    PAGE("bytes", FIELD_COUNT, bytes),
    PAGE("lines", FIELD_COUNT, lines),
};
const struct field_table finding_page_table = FIELD_TABLE(NULL, page_rows, finding_page);

static struct finding_change_page change_page(const struct finding_change *c)
{
    bool bounded = c->min < c->max;
    return (struct finding_change_page){.key = c->key,
                                        .set = c->op == FINDING_SET ? c->value : NULL,
                                        .scale = c->op == FINDING_SCALE ? c->value : NULL,
                                        .add = c->op == FINDING_ADD ? c->value : NULL,
                                        .from = c->from,
                                        .min = bounded ? c->min : NAN,
                                        .max = bounded ? c->max : NAN};
}

static struct field_list quotes_of(const struct finding_quote *q, size_t n)
{
    return (struct field_list){.v = (void *)(uintptr_t)q, .n = n}; /* only written out */
}

static struct finding_second_page second_page(const struct finding_second *s)
{
    return (struct finding_second_page){.class = finding_class_to_string(s->class),
                                        .meaning = finding_class_meaning(s->class),
                                        .rule = s->rule,
                                        .advice = s->advice,
                                        .advice_code = s->advice_code,
                                        .confidence = s->confidence,
                                        .quote = s->quote.text ? &s->quote : NULL};
}

void finding_page_fill(const struct finding *f, struct finding_page *ret)
{
    *ret = (struct finding_page){.class = finding_class_to_string(f->class),
                                 .meaning = finding_class_meaning(f->class),
                                 .rule = f->rule,
                                 .rank = f->rank,
                                 .node = f->node,
                                 .actor = f->actor,
                                 .pid = f->pid,
                                 .time = f->time,
                                 .advice = f->advice,
                                 .advice_code = f->advice_code,
                                 .confidence = f->confidence,
                                 .fatal = f->fatal,
                                 .evidence = quotes_of(f->evidence, f->n_evidence),
                                 .after = quotes_of(f->after, f->n_after),
                                 .patch = {.v = ret->changes, .n = f->n_patch},
                                 .bytes = f->bytes,
                                 .lines = f->lines};
    if (f->has_second) {
        ret->other = second_page(&f->second);
        ret->second = &ret->other;
    }
    for (size_t i = 0; i < f->n_patch; i++)
        ret->changes[i] = change_page(&f->patch[i]);
}

void finding_to_json(const struct finding *f, struct jout *j, const char *key)
{
    struct finding_page page;
    finding_page_fill(f, &page);
    field_to_json(&finding_page_table, &page, FIELD_ALL, FIELD_PAGE, j, key);
}
