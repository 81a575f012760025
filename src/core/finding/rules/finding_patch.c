/* SPDX-License-Identifier: Apache-2.0 */
/* finding_patch.c - the changes of a finding: read from a rule, and put into a JobSpec.
 *
 * A rule may change a row of the JobSpec's table, an environment variable that jobs may set, or
 * one of the Hydra keys below, which every verl version that we run has. All else is an error of
 * the rule, so no finding carries a patch that a spec would refuse. */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/message.h"
#include "base/str.h"
#include "base/text.h"
#include "core/finding/rules/finding_rule.h"
#include "core/spec/spec_table.h"

#define OF(w) (1U << (w))
#define RL (OF(WORKLOAD_PPO) | OF(WORKLOAD_GRPO))

enum number_kind { NUMBER_NONE, NUMBER_WHOLE, NUMBER_REAL };

/* Hydra keys that a rule may change, and the workloads that have them. */
static const struct hydra_row {
    const char *key;
    unsigned workloads;
    enum number_kind kind;
} HYDRA[] = {
    {"actor_rollout_ref.actor.ppo_micro_batch_size_per_gpu", RL, NUMBER_WHOLE},
    {"actor_rollout_ref.actor.ppo_max_token_len_per_gpu", RL, NUMBER_WHOLE},
    {"actor_rollout_ref.rollout.log_prob_micro_batch_size_per_gpu", RL, NUMBER_WHOLE},
    {"actor_rollout_ref.ref.log_prob_micro_batch_size_per_gpu", RL, NUMBER_WHOLE},
    {"actor_rollout_ref.rollout.gpu_memory_utilization", RL, NUMBER_REAL},
    {"actor_rollout_ref.rollout.enforce_eager", RL, NUMBER_NONE},
    {"critic.ppo_micro_batch_size_per_gpu", OF(WORKLOAD_PPO), NUMBER_WHOLE},
    {"data.micro_batch_size_per_gpu", OF(WORKLOAD_SFT), NUMBER_WHOLE},
    {"data.max_token_len_per_gpu", OF(WORKLOAD_SFT), NUMBER_WHOLE},
    {"data.filter_overlong_prompts", RL, NUMBER_NONE},
    {"data.train_batch_size", RL | OF(WORKLOAD_SFT), NUMBER_WHOLE},
    {"actor_rollout_ref.actor.ppo_mini_batch_size", RL, NUMBER_WHOLE},
};

static const char OVERRIDES[] = "overrides.", ENV[] = "env.";
static const char ACTOR_TOKENS[] = "actor_rollout_ref.actor.ppo_max_token_len_per_gpu";

static const struct hydra_row *hydra_find(const char *key)
{
    for (size_t i = 0; str_starts(key, OVERRIDES) && i < array_len(HYDRA); i++)
        if (str_eq(HYDRA[i].key, key + strlen(OVERRIDES)))
            return &HYDRA[i];
    return NULL;
}

static const struct field *row_find(const char *key)
{
    for (size_t i = 0; i < spec_keys_n; i++)
        if (str_eq(spec_keys[i].name, key))
            return &spec_keys[i];
    return NULL;
}

static enum number_kind row_kind(const struct field *k)
{
    return k->type == FIELD_REAL                                                    ? NUMBER_REAL
           : k->type == FIELD_INT || k->type == FIELD_SPAN || k->type == FIELD_SIZE ? NUMBER_WHOLE
                                                                                    : NUMBER_NONE;
}

/* NULL: this may be changed, its numbers are of *ret_kind; otherwise the code of the refusal. */
static const char *refuse_key(const char *key, enum number_kind *ret_kind)
{
    const struct hydra_row *h = hydra_find(key);
    const struct field *k = row_find(key);
    *ret_kind = h ? h->kind : k ? row_kind(k) : NUMBER_NONE;
    if (h || k)
        return NULL;
    if (!str_starts(key, ENV))
        return "patch_key";
    return spec_is_reserved_env(key + strlen(ENV), NULL) ? "patch_env" : NULL;
}

/* Would the spec's own reader take this value for the row? */
static bool row_takes(const struct field *k, const char *value)
{
    struct node scalar = {.kind = NODE_SCALAR, .plain = true, .key = k->name, .text = value};
    struct node map = {.kind = NODE_MAP, .first = &scalar, .n = 1};
    struct spec s = {0};
    struct problems ps = {0};
    conf_read(k, 1, &map, &s, &ps);
    bool takes = !ps.errors;
    problems_release(&ps);
    conf_release(k, 1, &s);
    return takes;
}

static const char *refuse_change(const struct finding_change *c)
{
    enum number_kind kind;
    double v;
    const char *why = refuse_key(c->key, &kind);
    if (why)
        return why;
    if (c->op == FINDING_SET)
        return row_find(c->key) && !row_takes(row_find(c->key), c->value) ? "patch_value" : NULL;
    if (kind == NUMBER_NONE)
        return "patch_number";
    if (str_to_real(c->value, &v, NULL) < 0 || (c->op == FINDING_SCALE && v <= 0))
        return "patch_factor";
    if (c->from && str_to_real(c->from, &v, NULL) < 0)
        return "patch_from";
    return NULL;
}

/* The text of a member, NULL if it has none. */
static const char *member(const struct node *n, const char *key)
{
    const struct node *m = node_find(n, key);
    return m && m->kind == NODE_SCALAR ? m->text : NULL;
}

static double member_number(const struct node *n, const char *key)
{
    double v = 0;
    const char *text = member(n, key);
    return text && str_to_real(text, &v, NULL) == 0 ? v : 0;
}

static const char *const OPS[] = {"set", "scale", "add"};

static bool read_change(const struct node *n, struct finding_change *ret)
{
    *ret = (struct finding_change){.key = xstrdup(member(n, "key")),
                                   .from = xstrdup(member(n, "from")),
                                   .min = member_number(n, "min"),
                                   .max = member_number(n, "max")};
    for (size_t op = 0; op < array_len(OPS) && !ret->value; op++) {
        ret->value = xstrdup(member(n, OPS[op]));
        ret->op = (enum finding_change_op)op;
    }
    return ret->key && ret->value;
}

void finding_patch_read(const struct node *list, struct finding_rule *r, struct problems *ps)
{
    if (!list || node_is_null(list))
        return;
    for (const struct node *n = list->kind == NODE_SEQ ? list->first : list; n; n = n->next) {
        struct finding_change c;
        const char *why = read_change(n, &c) ? refuse_change(&c) : "patch_form";
        if (!why && r->n_patch < FINDING_CHANGES_MAX) {
            r->patch[r->n_patch++] = c;
            continue;
        }
        char *field = xasprintf("%s.patch", str_or(r->id, "rule"));
        problems_add(ps, PROBLEM_ERROR, field, n->line, n->column, why ? why : "patch_many",
                     MESSAGE_ARGS(MESSAGE_STR("key", str_or(c.key, ""))));
        free(field);
        finding_change_release(&c);
    }
}

/* The greatest divisor of whole that is not above v, at least 1. */
static int64_t divisor_below(int64_t whole, double v)
{
    for (int64_t d = (int64_t)v; d > 1 && whole - d < 1 << 20; d--)
        if (whole % d == 0)
            return d;
    return 1;
}

/* False: there is nothing to start from, or it would stay as it is. */
static bool new_number(const struct finding_change *c,
                       enum number_kind kind,
                       bool divides,
                       double old,
                       double *ret)
{
    double by = 0, v;
    if (str_to_real(c->value, &by, NULL) < 0)
        return false;
    v = c->op == FINDING_SCALE ? old * by : old + by;
    if (c->min < c->max)
        v = v < c->min ? c->min : v > c->max ? c->max : v;
    if (kind == NUMBER_WHOLE) {
        v = floor(v);
        if (c->op == FINDING_SCALE && v < 1)
            v = 1;
        if (divides && v < old && old < 1e9)
            v = (double)divisor_below((int64_t)old, v);
    }
    /* A limit must not turn the change around. */
    if (v == old || (v > old) != (c->op == FINDING_SCALE ? by > 1 : by > 0))
        return false;
    *ret = v;
    return true;
}

/* The number a spec has in a row of its table; 0: not given. */
static double row_number(const struct field *k, const struct spec *s)
{
    const char *at = (const char *)s + k->offset;
    switch (k->type) {
    case FIELD_REAL:
        return *(const double *)(const void *)at;
    case FIELD_INT:
        return (double)*(const int64_t *)(const void *)at;
    case FIELD_SPAN:
        return (double)(*(const usec_t *)(const void *)at / USEC_SEC);
    case FIELD_SIZE:
        return (double)*(const uint64_t *)(const void *)at;
    default:
        return 0;
    }
}

/* The value of a change as text, NULL if it does not apply. Yours to free. */
static char *new_value(const struct finding_change *c,
                       enum number_kind kind,
                       bool divides,
                       const char *old)
{
    double was, v;
    const char *from = old && *old ? old : c->from;
    if (c->op == FINDING_SET)
        return old && str_eq(old, c->value) ? NULL : xstrdup(c->value);
    if (!from || str_to_real(from, &was, NULL) < 0 ||
        (c->op == FINDING_SCALE ? was <= 0 : was < 0) || !new_number(c, kind, divides, was, &v))
        return NULL;
    return kind == NUMBER_WHOLE ? xasprintf("%.0f", v) : xasprintf("%.4g", v);
}

/* The sizes by tokens of an actor count where it has none by rows; 0: they do not. Else how many
 * one sequence takes. */
static double least_tokens(const struct spec *s)
{
    static const char *const lengths[] = {"data.max_prompt_length", "data.max_response_length"};
    static const char *const rows[] = {"actor_rollout_ref.actor.ppo_micro_batch_size_per_gpu",
                                       "actor_rollout_ref.actor.ppo_micro_batch_size"};
    const char *dynamic = spec_override_find(s, "actor_rollout_ref.actor.use_dynamic_bsz");
    double sum = 0;
    if (dynamic ? strcasecmp(dynamic, "true") != 0
                : spec_override_find(s, rows[0]) || spec_override_find(s, rows[1]))
        return 0;
    for (size_t i = 0; i < array_len(lengths); i++) {
        double n = 0;
        const char *text = spec_override_find(s, lengths[i]);
        sum += text && str_to_real(text, &n, NULL) == 0 && n > 0 ? n : 512; /* verl's default */
    }
    return sum;
}

static bool change_override(const struct finding_change *c, const struct spec *s, struct strv *list)
{
    const struct hydra_row *h = hydra_find(c->key);
    struct finding_change within = *c;
    if (!h || !(h->workloads & OF((unsigned)s->workload)))
        return false;
    if (str_eq(h->key, ACTOR_TOKENS)) {
        within.min = least_tokens(s);
        if (within.min <= 0)
            return false;
    }
    bool is_count = strstr(h->key, "micro_batch") != NULL;
    _cleanup_(freep) char *value =
        new_value(&within, h->kind, is_count, spec_override_find(s, h->key));
    if (!value)
        return false;
    size_t n = strlen(h->key);
    for (size_t i = 0; i < list->n; i++) {
        int marks = (int)strspn(list->v[i], "+");
        if (strncmp(list->v[i] + marks, h->key, n) != 0 || list->v[i][(size_t)marks + n] != '=')
            continue;
        char *text = xasprintf("%.*s%s=%s", marks, list->v[i], h->key, value);
        free(list->v[i]);
        list->v[i] = text;
        return true;
    }
    strv_addf(list, "%s=%s", h->key, value);
    return true;
}

static int finding_patch_put_overrides(const struct finding *f,
                                       const struct spec *s,
                                       struct jout *j)
{
    struct strv list = {0};
    int n = 0;
    strv_copy(&list, &s->overrides);
    for (size_t i = 0; i < f->n_patch; i++)
        n += change_override(&f->patch[i], s, &list);
    if (n) {
        jout_open(j, "overrides", '[');
        for (size_t i = 0; i < list.n; i++)
            jout_str(j, NULL, list.v[i]);
        jout_close(j, ']');
    }
    strv_release(&list);
    return n;
}

static int finding_patch_put_env(const struct finding *f, const struct spec *s, struct jout *j)
{
    int n = 0;
    for (size_t i = 0; i < f->n_patch; i++) {
        const struct finding_change *c = &f->patch[i];
        if (!str_starts(c->key, ENV) || pairs_find(&s->env, c->key + strlen(ENV)))
            continue; /* what the user set stays */
        if (!n++)
            jout_open(j, "env", '{');
        jout_str(j, c->key + strlen(ENV), c->value);
    }
    if (n)
        jout_close(j, '}');
    return n;
}

/* What a change makes of its row, NULL if it does not apply. Yours to free. */
static char *row_value(const struct finding_change *c, const struct field *k, const struct spec *s)
{
    char old[40] = "";
    if (k->type == FIELD_STRV &&
        ((const struct strv *)(const void *)((const char *)s + k->offset))->n)
        return NULL; /* what the user set stays */
    if (row_kind(k) != NUMBER_NONE && row_number(k, s) > 0)
        text_printf(old, "%.17g", row_number(k, s));
    else if (k->type == FIELD_BOOL)
        text_copy(old,
                  *(const bool *)(const void *)((const char *)s + k->offset) ? "true" : "false");
    return new_value(c, row_kind(k), false, old);
}

static void put_value(const struct finding_change *c,
                      const struct field *k,
                      const char *name,
                      const char *value,
                      struct jout *j)
{
    if (k->type == FIELD_INT || k->type == FIELD_REAL || k->type == FIELD_BOOL) {
        jout_raw(j, name, value);
    } else {
        char *text = k->type == FIELD_SPAN && c->op != FINDING_SET ? xasprintf("%ss", value)
                                                                   : xstrdup(value);
        jout_str(j, name, text);
        free(text);
    }
}

/* The rows of one map, "checkpoint.keep_last", or with an empty name those of none. */
static int put_rows(const struct finding *f,
                    const struct spec *s,
                    const char *map,
                    size_t n_map,
                    struct jout *j)
{
    int n = 0;
    for (size_t i = 0; i < f->n_patch; i++) {
        const struct finding_change *c = &f->patch[i];
        const struct field *k = row_find(c->key);
        const char *dot = strchr(c->key, '.');
        if (!k || (dot ? (size_t)(dot - c->key) : 0) != n_map || strncmp(c->key, map, n_map) != 0)
            continue;
        _cleanup_(freep) char *value = row_value(c, k, s);
        if (!value)
            continue;
        if (!n++ && n_map) {
            _cleanup_(freep) char *name = xstrndup(map, n_map);
            jout_open(j, name, '{');
        }
        put_value(c, k, dot ? dot + 1 : c->key, value, j);
    }
    if (n && n_map)
        jout_close(j, '}');
    return n;
}

/* Each map once: where its first change stands. */
static int put_maps(const struct finding *f, const struct spec *s, struct jout *j)
{
    int n = 0;
    for (size_t i = 0; i < f->n_patch; i++) {
        const char *key = f->patch[i].key, *dot = strchr(key, '.');
        size_t len = dot ? (size_t)(dot - key) : 0;
        bool is_first = dot && row_find(key);
        for (size_t before = 0; before < i && is_first; before++)
            is_first =
                !row_find(f->patch[before].key) || strncmp(f->patch[before].key, key, len + 1) != 0;
        if (is_first)
            n += put_rows(f, s, key, len, j);
    }
    return n;
}

int finding_patch_to_json(const struct finding *f,
                          const struct spec *s,
                          struct jout *j,
                          const char *key)
{
    int n = 0;
    jout_open(j, key, '{');
    n += put_rows(f, s, "", 0, j);
    n += put_maps(f, s, j);
    n += finding_patch_put_overrides(f, s, j);
    n += finding_patch_put_env(f, s, j);
    jout_close(j, '}');
    return n;
}

void finding_change_to_text(const struct finding_change *c, struct buf *out)
{
    static const char *const words[] = {"set to", "times", "plus"};
    const char *key = str_starts(c->key, OVERRIDES) ? c->key + strlen(OVERRIDES) : c->key;
    (void)buf_addf(out, "%s: %s %s", key, words[c->op], c->value); /* the reader sees what fits */
    if (c->from)
        (void)buf_addf(out, " (from %s)", c->from);
}
