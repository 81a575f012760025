/* SPDX-License-Identifier: Apache-2.0 */
/* finding_rules.c - see finding_rules.h. A rule is read by the table below, as every other
 * YAML of ours. */
#include "core/finding/rules/finding_rules.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/doc/conf.h"
#include "base/doc/doc.h"
#include "base/message.h"
#include "base/str.h"
#include "core/finding/read/finding_text.h"
#include "core/finding/rules/finding_pattern.h"
#include "core/finding/rules/finding_rule.h"

enum { RULES_MAX = 4096, ID_MAX = 60, SAMPLE_MAX = 4096, WEIGHT_MAX = 99, GOES_ON_MAX = 20 };

static const char *const CLASSES[] = {
#define X(e, word, flags, meaning) word,
    FINDING_TABLE(X)
#undef X
        NULL,
};
static const char *const ROLES[] = {
#define X(e, word) word,
    ROLE_TABLE(X)
#undef X
        NULL,
};

/* What a rule says, before it is checked. */
struct raw {
    char *id, *pattern, *advice, *advice_zh;
    int class, role, or ;
    int64_t weight, goes_on;
    bool lasting, quiet, heals, head, stalls, severe, last;
    struct strv find, context, outranks, match, miss;
    const struct node *patch;
};

#define AT(member) offsetof(struct raw, member)
static const struct field KEYS[] = {
    {.name = "id", .type = FIELD_STR, .offset = AT(id), .flags = FIELD_REQUIRED},
    {.name = "class", .type = FIELD_ENUM, .offset = AT(class), .names = CLASSES, .dflt = "none"},
    {.name = "role", .type = FIELD_ENUM, .offset = AT(role), .names = ROLES, .dflt = "cause"},
    {.name = "pattern", .type = FIELD_STR, .offset = AT(pattern), .flags = FIELD_REQUIRED},
    {.name = "find", .type = FIELD_STRV, .offset = AT(find)},
    {.name = "weight", .type = FIELD_INT, .offset = AT(weight), .min = 0, .max = WEIGHT_MAX},
    {.name = "goes_on", .type = FIELD_INT, .offset = AT(goes_on), .min = 0, .max = GOES_ON_MAX},
    {.name = "outranks", .type = FIELD_STRV, .offset = AT(outranks)},
    {.name = "lasting", .type = FIELD_BOOL, .offset = AT(lasting)},
    {.name = "quiet", .type = FIELD_BOOL, .offset = AT(quiet)},
    {.name = "heals", .type = FIELD_BOOL, .offset = AT(heals)},
    {.name = "head", .type = FIELD_BOOL, .offset = AT(head)},
    {.name = "stalls", .type = FIELD_BOOL, .offset = AT(stalls)},
    {.name = "severe", .type = FIELD_BOOL, .offset = AT(severe)},
    {.name = "last", .type = FIELD_BOOL, .offset = AT(last)},
    {.name = "or", .type = FIELD_ENUM, .offset = AT(or), .names = CLASSES, .dflt = "none"},
    {.name = "context", .type = FIELD_STRV, .offset = AT(context)},
    {.name = "advice", .type = FIELD_STR, .offset = AT(advice)},
    {.name = "advice_zh", .type = FIELD_STR, .offset = AT(advice_zh)},
    {.name = "patch", .type = FIELD_NODE, .offset = AT(patch)},
    {.name = "samples.match", .type = FIELD_STRV, .offset = AT(match), .flags = FIELD_REQUIRED},
    {.name = "samples.miss", .type = FIELD_STRV, .offset = AT(miss)},
};

struct finding_rules *finding_rules_new(void)
{
    struct finding_rules *r = xcalloc(1, sizeof(*r));
    for (size_t i = 0; i < ASKED_COUNT; i++)
        r->index[i] = finding_index_new();
    return r;
}

static void rule_release(struct finding_rule *r)
{
    free(r->id);
    free(r->family);
    free(r->pattern);
    free(r->advice);
    free(r->beats_rules);
    pcre2_code_free(r->code);
    strv_release(&r->outranks);
    strv_release(&r->needles);
    pattern_branches_free(r->branches, r->n_branches);
    strv_release(&r->match);
    strv_release(&r->miss);
    for (size_t i = 0; i < r->n_patch; i++)
        finding_change_release(&r->patch[i]);
}

void finding_rules_free(struct finding_rules *r)
{
    if (!r)
        return;
    for (size_t i = 0; i < r->n; i++)
        rule_release(&r->v[i]);
    for (size_t i = 0; i < ASKED_COUNT; i++)
        finding_index_free(r->index[i]);
    free(r->rule_of);
    free(r->v);
    free(r);
}

void finding_rules_freep(struct finding_rules **r)
{
    finding_rules_free(*r);
}

static const struct finding_rule *rule_find(const struct finding_rules *r, const char *id)
{
    for (size_t i = 0; i < r->n; i++)
        if (str_eq(r->v[i].id, id))
            return &r->v[i];
    return NULL;
}

static void rule_error(struct problems *ps,
                       const struct node *n,
                       const struct finding_rule *r,
                       const char *key,
                       const char *code,
                       const struct message_arg *args)
{
    char *field = xasprintf("%s.%s", str_or(r->id, "rule"), key);
    const struct node *at = node_find(n, key);
    at = at ? at : n;
    problems_add(ps, PROBLEM_ERROR, field, at->line, at->column, code, args);
    free(field);
}

static bool is_id(const char *s)
{
    return s && *s && strlen(s) <= ID_MAX &&
           strspn(s, "abcdefghijklmnopqrstuvwxyz0123456789-") == strlen(s);
}

static void compile_pattern(struct finding_rule *r, const struct node *n, struct problems *ps)
{
    int code;
    PCRE2_SIZE at;
    r->code = pcre2_compile((PCRE2_SPTR)r->pattern, PCRE2_ZERO_TERMINATED, 0, &code, &at, NULL);
    if (!r->code) {
        unsigned char why[200] = "";
        (void)pcre2_get_error_message(code, why, sizeof(why)); /* cut or empty is as good */
        rule_error(ps, n, r, "pattern", "rule_pattern",
                   MESSAGE_ARGS(MESSAGE_STR("why", (const char *)why), MESSAGE_NUM("at", at)));
    } else if (pattern_weave(r->pattern) == PATTERN_QUOTES) {
        rule_error(ps, n, r, "pattern", "rule_quotes", MESSAGE_NO_ARGS);
    }
}

/* True if an alternative that refers to groups has them all. */
static bool stands_alone(const struct finding_rule *r, const struct pattern_branch *b)
{
    int error;
    PCRE2_SIZE at;
    uint32_t groups = 0, of_all = 0;
    if (pattern_weave(b->text) == PATTERN_PLAIN)
        return true;
    pcre2_code *code =
        pcre2_compile((PCRE2_SPTR)b->text, PCRE2_ZERO_TERMINATED, 0, &error, &at, NULL);
    if (!code)
        return false;
    (void)pcre2_pattern_info(code, PCRE2_INFO_CAPTURECOUNT, &groups); /* of a code: cannot fail */
    (void)pcre2_pattern_info(r->code, PCRE2_INFO_CAPTURECOUNT, &of_all);
    pcre2_code_free(code);
    return groups == of_all;
}

/* The alternatives, or the whole if they do not mean the same one by one. */
static void set_branches(struct finding_rule *r)
{
    enum pattern_weave weave = pattern_weave(r->pattern);
    bool apart = weave != PATTERN_OPTIONS;
    r->branches = pattern_branches(r->pattern, &r->n_branches);
    for (size_t i = 0; weave == PATTERN_REFERS && i < r->n_branches && apart; i++)
        apart = stands_alone(r, &r->branches[i]);
    if (apart)
        return;
    pattern_branches_free(r->branches, r->n_branches);
    r->branches = pattern_whole(r->pattern, &r->n_branches);
}

/* What a line must have: as the rule says, or read off the pattern. */
static void set_needles(struct finding_rule *r,
                        const struct strv *find,
                        const struct node *n,
                        struct problems *ps)
{
    if (!r->code)
        return;
    set_branches(r);
    if (!find->n) {
        if (pattern_needles(r->pattern, &r->needles, NULL) < 0)
            rule_error(ps, n, r, "pattern", "rule_needles",
                       MESSAGE_ARGS(MESSAGE_NUM("bytes", NEEDLE_MIN)));
        return;
    }
    for (size_t i = 0; i < find->n; i++)
        if (strlen(find->v[i]) < NEEDLE_MIN)
            rule_error(ps, n, r, "find", "rule_find_short", MESSAGE_NO_ARGS);
    strv_copy(&r->needles, find);
}

/* The classes that a traceback's frames may make of this one. */
static void set_context(struct finding_rule *r,
                        const struct strv *words,
                        const struct node *n,
                        struct problems *ps)
{
    for (size_t i = 0; i < words->n; i++) {
        int class = finding_class_from_string(words->v[i]);
        if (str_eq(words->v[i], "any"))
            r->context = ~(uint64_t)0;
        else if (class >= 0)
            r->named |= (uint64_t)1 << class;
        else
            rule_error(ps, n, r, "context", "rule_context", MESSAGE_NO_ARGS);
    }
    r->context |= r->named;
}

static void check_rule(const struct finding_rules *rules,
                       const struct finding_rule *r,
                       const struct node *n,
                       struct problems *ps)
{
    bool named = r->role == ROLE_CAUSE || r->role == ROLE_FRAME;
    if (!is_id(r->id))
        rule_error(ps, n, r, "id", "rule_id", MESSAGE_NO_ARGS);
    if (rule_find(rules, r->id))
        rule_error(ps, n, r, "id", "rule_id_twice", MESSAGE_NO_ARGS);
    if (named && finding_class_is(r->class, FINDING_NO_RULE))
        rule_error(ps, n, r, "class", "rule_needs_class", MESSAGE_NO_ARGS);
    if (!named && r->class != FINDING_NONE)
        rule_error(ps, n, r, "class", "rule_no_class", MESSAGE_NO_ARGS);
    if (r->role == ROLE_CAUSE && !r->advice)
        rule_error(ps, n, r, "advice", "rule_needs_advice", MESSAGE_NO_ARGS);
    if (!r->match.n)
        rule_error(ps, n, r, "samples", "rule_needs_match", MESSAGE_NO_ARGS);
    if (r->role == ROLE_CAUSE && !r->miss.n)
        rule_error(ps, n, r, "samples", "rule_needs_miss", MESSAGE_NO_ARGS);
}

/* The weight of a rule that states none. */
static int usual_weight(enum finding_role role)
{
    return role == ROLE_CAUSE                            ? 70
           : role == ROLE_BENIGN || role == ROLE_CLEANUP ? 95
           : role == ROLE_WRAPPER                        ? 45
                                                         : 30;
}

static void take_raw(struct finding_rule *r, struct raw *raw, const char *family)
{
    *r = (struct finding_rule){
        .id = raw->id,
        .family = xstrdup(family),
        .pattern = raw->pattern,
        .advice = raw->advice,
        .class = (enum finding_class)raw->class,
        .role = (enum finding_role)raw->role,
        .weight = raw->weight ? (int)raw->weight : usual_weight((enum finding_role)raw->role),
        .goes_on = (int)raw->goes_on,
        .lasting = raw->lasting,
        .quiet = raw->quiet,
        .heals = raw->heals,
        .head = raw->head,
        .stalls = raw->stalls,
        .severe = raw->severe,
        .last = raw->last,
        .or = (enum finding_class)raw->or
        , .outranks = raw->outranks, .match = raw->match, .miss = raw->miss,
    };
    raw->id = raw->pattern = raw->advice = NULL;
    raw->outranks = raw->match = raw->miss = (struct strv){0};
}

/* What the reader of keys said, from first on, with the rule's name and place. */
static void name_problems(struct problems *ps, size_t first, const char *id, const struct node *n)
{
    for (size_t i = first; i < ps->n; i++) {
        struct problem *p = &ps->v[i];
        char *field = xasprintf("%.60s.%s", str_or(id, "rule"), p->field);
        free(p->field);
        p->field = field;
        p->column = p->line ? p->column : n->column;
        p->line = p->line ? p->line : n->line;
    }
}

static void add_rule(struct finding_rules *rules,
                     const char *family,
                     const struct node *n,
                     struct problems *ps)
{
    struct raw raw = {0};
    struct finding_rule r;
    size_t errors = ps->errors;
    size_t first = ps->n;
    conf_read(KEYS, array_len(KEYS), n, &raw, ps);
    name_problems(ps, first, raw.id, n);
    take_raw(&r, &raw, family);
    if (ps->errors == errors) {
        check_rule(rules, &r, n, ps);
        compile_pattern(&r, n, ps);
        set_needles(&r, &raw.find, n, ps);
        set_context(&r, &raw.context, n, ps);
        finding_patch_read(raw.patch, &r, ps);
    }
    conf_release(KEYS, array_len(KEYS), &raw);
    if (ps->errors > errors || rules->n >= RULES_MAX) {
        rule_release(&r);
        return;
    }
    if (rules->n == rules->cap) {
        rules->cap = rules->cap ? 2 * rules->cap : 256;
        rules->v = xrealloc(rules->v, rules->cap, sizeof(*rules->v));
    }
    rules->v[rules->n++] = r;
}

int finding_rules_add(struct finding_rules *rules,
                      const char *text,
                      size_t len,
                      struct problems *ps)
{
    assert(!rules->compiled);
    struct doc *doc = NULL;
    size_t errors = ps->errors;
    if (doc_parse(text, len, true, &doc, ps) < 0)
        return -EINVAL;
    const struct node *root = doc_root(doc), *family = node_find(root, "family"),
                      *list = node_find(root, "rules");
    if (!family || family->kind != NODE_SCALAR || !list || list->kind != NODE_SEQ)
        problems_add(ps, PROBLEM_ERROR, "", 1, 1, "rules_file", MESSAGE_NO_ARGS);
    else
        for (const struct node *n = list->first; n; n = n->next)
            add_rule(rules, family->text, n, ps);
    doc_free(doc);
    return ps->errors > errors ? -EINVAL : 0;
}

static int set_beats(struct finding_rules *rules, struct finding_rule *r, struct err *err)
{
    r->beats_rules = xcalloc((rules->n + 63) / 64, sizeof(*r->beats_rules));
    for (size_t i = 0; i < r->outranks.n; i++) {
        int class = finding_class_from_string(r->outranks.v[i]);
        const struct finding_rule *other = rule_find(rules, r->outranks.v[i]);
        if (class < 0 && !other)
            return message_refuse(
                err, -EINVAL, "rule_outranks",
                MESSAGE_ARGS(MESSAGE_STR("rule", r->id), MESSAGE_STR("other", r->outranks.v[i])));
        if (other) {
            size_t k = (size_t)(other - rules->v);
            r->beats_rules[k / 64] |= (uint64_t)1 << (k % 64);
        } else {
            r->beats_classes |= (uint64_t)1 << class;
        }
    }
    return 0;
}

static enum finding_asked asked_about(enum finding_role role)
{
    return role == ROLE_FRAME ? ASKED_CODE : role == ROLE_BENIGN ? ASKED_EXCUSE : ASKED_ANY;
}

static void index_rules(struct finding_rules *rules)
{
    for (size_t i = 0; i < rules->n; i++) {
        struct finding_rule *r = &rules->v[i];
        r->first_branch = rules->n_branches;
        rules->n_branches += (unsigned)r->n_branches;
        rules->rule_of = xrealloc(rules->rule_of, rules->n_branches, sizeof(*rules->rule_of));
        for (unsigned k = r->first_branch; k < rules->n_branches; k++)
            rules->rule_of[k] = (unsigned)i;
        finding_index_add(rules->index[asked_about(r->role)], r);
        if (r->role == ROLE_FRAME && r->pattern[0] == '^') /* of the code, not of its place */
            finding_index_add(rules->index[ASKED_ANY], r);
    }
    for (size_t i = 0; i < ASKED_COUNT; i++)
        finding_index_build(rules->index[i]);
}

int finding_rules_compile(struct finding_rules *rules, struct err *err)
{
    assert(!rules->compiled);
    if (!rules->n)
        return message_refuse(err, -EINVAL, "rules_none", MESSAGE_NO_ARGS);
    for (size_t i = 0; i < rules->n; i++) {
        int r = set_beats(rules, &rules->v[i], err);
        if (r < 0)
            return r;
    }
    index_rules(rules);
    rules->compiled = true;
    return 0;
}

/* One line against one rule, as a finder would: needles first. */
static bool sample_matches(const struct finding_rule *r, const char *line)
{
    struct finding_text t;
    size_t n = strlen(line);
    if (n > SAMPLE_MAX)
        return false;
    _cleanup_(freep) char *out = xmalloc(n + 1);
    struct needles *needles = needles_new();
    for (size_t i = 0; i < r->needles.n; i++)
        (void)needles_add(needles, r->needles.v[i], strlen(r->needles.v[i])); /* any will do */
    needles_build(needles);
    bool found = needles_find(needles, line, n) < n;
    needles_free(needles);
    finding_text_read(line, n, out, &t);
    pcre2_match_data *data = pcre2_match_data_create(1, NULL);
    assert(data);
    bool matches =
        found && pcre2_match(r->code, (PCRE2_SPTR)t.body.s, t.body.n, 0, 0, data, NULL) >= 0;
    pcre2_match_data_free(data);
    return matches;
}

void finding_rules_try(const struct finding_rules *rules, struct problems *ps)
{
    for (size_t i = 0; i < rules->n; i++) {
        const struct finding_rule *r = &rules->v[i];
        for (size_t k = 0; k < r->match.n + r->miss.n; k++) {
            bool should = k < r->match.n;
            const char *line = should ? r->match.v[k] : r->miss.v[k - r->match.n];
            if (sample_matches(r, line) != should)
                problems_add(ps, PROBLEM_ERROR, r->id, 0, 0,
                             should ? "rule_sample_missed" : "rule_sample_matched",
                             MESSAGE_ARGS(MESSAGE_STR("line", line)));
        }
    }
}
