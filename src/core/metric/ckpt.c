/* SPDX-License-Identifier: Apache-2.0 */
/* ckpt.c - the list of a job's checkpoints, and which of them stay; see ckpt.h.
 *
 * Only what was read counts: a checkpoint that is merely there by name never makes an older one
 * go, for it may turn out to be torn. */
#include "core/metric/ckpt.h"

#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/str.h"
#include "base/text.h"

/* Each name at its longest, all of it quoted, with its number. */
enum { VALUES_TEXT_MAX = CKPT_VALUES_MAX * (3 * CKPT_NAME_MAX + 64) };

int64_t ckpt_step_of_name(const char *name)
{
    static const char prefix[] = "global_step_";
    int64_t step = 0;
    if (!str_starts(name, prefix))
        return 0;
    const char *number = name + sizeof(prefix) - 1;
    if (*number < '1' || *number > '9' || str_to_int(number, 1, INT32_MAX, &step, NULL) < 0)
        return 0;
    return step;
}

#define ROW(e, word) word,
static const char *const state_words[] = {CKPT_STATE_TABLE(ROW) NULL};
static const char *const eval_words[] = {CKPT_EVAL_TABLE(ROW) NULL};
static const char *const keep_words[] = {CKPT_KEEP_TABLE(ROW) NULL};
#undef ROW

const char *ckpt_state_to_string(enum ckpt_state s)
{
    return state_words[s];
}

bool ckpt_state_from_string(const char *word, enum ckpt_state *ret)
{
    for (int s = 0; s < CKPT_STATE_COUNT; s++)
        if (str_eq(word, ckpt_state_to_string((enum ckpt_state)s))) {
            *ret = (enum ckpt_state)s;
            return true;
        }
    return false;
}

const char *ckpt_keep_to_string(enum ckpt_keep k)
{
    return keep_words[k];
}

/* ---- the list ---- */

void ckpt_list_release(struct ckpt_list *l)
{
    for (size_t i = 0; i < CKPT_VALUES_MAX; i++)
        free(l->names[i]);
    free(l->v);
    *l = (struct ckpt_list){0};
}

struct ckpt *ckpt_list_add(struct ckpt_list *l, int64_t step)
{
    size_t at = l->n;
    if ((l->n & (l->n - 1)) == 0)
        l->v = xrealloc(l->v, l->n ? l->n * 2 : 1, sizeof(*l->v));
    while (at && l->v[at - 1].step > step) {
        l->v[at] = l->v[at - 1];
        at--;
    }
    l->n++;
    l->v[at] = (struct ckpt){.step = step};
    return &l->v[at];
}

void ckpt_list_copy(struct ckpt_list *to, const struct ckpt_list *from)
{
    to->tracker = from->tracker;
    to->cut = from->cut;
    ckpt_list_copy_names(to, from);
    for (size_t i = 0; i < from->n; i++)
        *ckpt_list_add(to, from->v[i].step) = from->v[i];
}

void ckpt_list_copy_names(struct ckpt_list *to, const struct ckpt_list *from)
{
    for (size_t i = 0; i < CKPT_VALUES_MAX; i++)
        to->names[i] = xstrdup(from->names[i]);
}

void ckpt_list_remove(struct ckpt_list *l, int64_t step)
{
    size_t kept = 0;
    for (size_t i = 0; i < l->n; i++)
        if (l->v[i].step != step)
            l->v[kept++] = l->v[i];
    l->n = kept;
}

struct ckpt *ckpt_list_find(const struct ckpt_list *l, int64_t step)
{
    for (size_t i = 0; i < l->n; i++)
        if (l->v[i].step == step)
            return &l->v[i];
    return NULL;
}

const struct ckpt *ckpt_list_newest(const struct ckpt_list *l)
{
    for (size_t i = l->n; i > 0; i--)
        if (l->v[i - 1].state == CKPT_VERIFIED)
            return &l->v[i - 1];
    return NULL;
}

uint64_t ckpt_list_bytes(const struct ckpt_list *l)
{
    uint64_t sum = 0;
    for (size_t i = 0; i < l->n; i++)
        sum = sum + l->v[i].bytes < sum ? UINT64_MAX : sum + l->v[i].bytes;
    return sum;
}

const struct ckpt *ckpt_list_best(const struct ckpt_list *l, bool is_min)
{
    const struct ckpt *best = NULL;
    double sign = is_min ? -1 : 1;
    for (size_t i = 0; i < l->n; i++) {
        const struct ckpt *c = &l->v[i];
        if (c->state != CKPT_VERIFIED || !c->has_value || !isfinite(c->value))
            continue;
        if (!best || sign * c->value >= sign * best->value)
            best = c;
    }
    return best;
}

int ckpt_refuse_best(const char *job, const char *metric, struct err *err)
{
    if (!metric)
        return message_refuse(err, ERR_NOT_FOUND, "no_best", MESSAGE_ARGS(MESSAGE_STR("job", job)));
    return message_refuse(err, ERR_NOT_FOUND, "no_best",
                          MESSAGE_ARGS(MESSAGE_STR("job", job), MESSAGE_STR("metric", metric)));
}

/* ---- the values of validation ---- */

/* A metric that checkpoints carry is of one of these kinds: the first says the most. */
static const char *const told_by[] = {"val-core/", "val/", "eval/"};
static size_t ckpt_rank(const char *metric)
{
    size_t i = 0;
    while (i < array_len(told_by) && !str_starts(metric, told_by[i]))
        i++;
    return i;
}

bool ckpt_is_validation(const char *metric)
{
    return ckpt_rank(metric) < array_len(told_by) && strlen(metric) <= CKPT_NAME_MAX &&
           !str_has_control(metric);
}

bool ckpt_metric_is_min(const char *metric)
{
    return strstr(metric, "loss") != NULL;
}

int ckpt_list_name(struct ckpt_list *l, const char *metric)
{
    int i = 0;
    while (i < CKPT_VALUES_MAX && l->names[i] && strcmp(l->names[i], metric) != 0)
        i++;
    if (i == CKPT_VALUES_MAX)
        return -1;
    if (!l->names[i])
        l->names[i] = xstrdup(metric);
    return i;
}

const char *ckpt_list_main(const struct ckpt_list *l)
{
    const char *best = NULL;
    for (int i = 0; i < CKPT_VALUES_MAX && l->names[i]; i++) {
        const char *name = l->names[i];
        size_t rank = ckpt_rank(name), least = best ? ckpt_rank(best) : SIZE_MAX;
        if (rank < least || (rank == least && strcmp(name, best) < 0))
            best = name;
    }
    return best;
}

static bool has_validation(const json_t *latest)
{
    const char *name;
    const json_t *v;
    bool has = false;
    json_object_foreach ((json_t *)(uintptr_t)latest, name, v)
        has = has || ckpt_is_validation(name);
    return has;
}

/* True: it stands among the values, since now or before. */
static bool ckpt_take_one(struct ckpt_list *l, struct ckpt *c, const char *name, double value)
{
    int at = ckpt_is_validation(name) && isfinite(value) ? ckpt_list_name(l, name) : -1;
    if (at < 0)
        return false;
    if (!(c->told & 1U << at))
        c->values[at] = value;
    c->told |= 1U << at;
    return true;
}

size_t ckpt_take_eval(struct ckpt_list *l,
                      struct ckpt *c,
                      const json_t *latest,
                      const char *pattern,
                      size_t *ret_kept)
{
    const char *before = has_validation(latest) ? "" : "eval/", *name;
    const json_t *v;
    size_t told = 0, fit = 0;
    double sum = 0;
    *ret_kept = 0;
    json_object_foreach ((json_t *)(uintptr_t)latest, name, v) {
        _cleanup_(freep) char *as = xasprintf("%s%s", before, name);
        double value = json_is_number(v) ? json_number_value(v) : (double)NAN;
        told += isfinite(value) ? 1 : 0;
        *ret_kept += ckpt_take_one(l, c, as, value) ? 1 : 0;
        if (pattern && str_glob(pattern, as) && isfinite(value)) {
            sum += value;
            fit++;
        }
    }
    if (fit && !c->has_value) {
        c->has_value = true;
        c->value = sum / (double)fit;
    }
    return told;
}

static void ckpt_carry_eval(struct ckpt_list *to,
                            struct ckpt *c,
                            const struct ckpt_list *from,
                            const struct ckpt *old)
{
    c->eval = old->eval;
    memcpy(c->eval_job, old->eval_job, sizeof(c->eval_job));
    for (int i = 0; i < CKPT_VALUES_MAX && from->names[i]; i++)
        if (old->told & 1U << i)
            (void)ckpt_take_one(to, c, from->names[i], old->values[i]); /* no room: left out */
    if (!c->has_value && old->has_value) {
        c->has_value = true;
        c->value = old->value;
    }
}

void ckpt_list_carry_evals(struct ckpt_list *to, const struct ckpt_list *from)
{
    for (size_t i = 0; i < to->n; i++) {
        const struct ckpt *old = ckpt_list_find(from, to->v[i].step);
        if (old && old->eval != to->v[i].eval)
            ckpt_carry_eval(to, &to->v[i], from, old);
    }
}

void ckpt_list_show(struct ckpt_list *l, const char *metric)
{
    int at = ckpt_list_name(l, metric);
    for (size_t i = 0; at >= 0 && i < l->n; i++) {
        l->v[i].has_value = (l->v[i].told & 1U << at) != 0;
        l->v[i].value = l->v[i].values[at];
    }
}

/* ---- references to a checkpoint ---- */

static bool is_id_char(char c)
{
    return isalnum((unsigned char)c) || c == '-' || c == '_' || c == '.';
}

enum { MEANT_NONE = -1, MEANT_ALL = 0 };

/* The step that is named by what follows the job's id in a text, or one of MEANT_*. */
static int64_t ckpt_step_meant(const char *rest)
{
    static const char dir[] = "/checkpoints", name[] = "/global_step_";
    const char *number = NULL;
    char *end = NULL;
    if (*rest == '@')
        number = rest + 1;
    else if (!str_starts(rest, dir))
        return MEANT_NONE;
    else if (!str_starts(rest + sizeof(dir) - 1, name))
        return MEANT_ALL; /* the directory of all */
    else
        number = rest + sizeof(dir) - 1 + sizeof(name) - 1;
    long long step = strtoll(number, &end, 10);
    return end != number && step > 0 ? step : MEANT_NONE;
}

/* The next step, or MEANT_ALL, that the text names of this job; *at is where to look, and then
 * where to go on. MEANT_NONE: it names no more. */
static int64_t ckpt_next_meant(const char *text, const char *job, const char **at)
{
    size_t n = strlen(job);
    for (const char *p = *at; n && (p = strstr(p, job)); p += n) {
        bool begins = p == text || !is_id_char(p[-1]);
        int64_t step = begins ? ckpt_step_meant(p + n) : MEANT_NONE;
        if (step == MEANT_NONE)
            continue;
        *at = p + n;
        return step;
    }
    return MEANT_NONE;
}

bool ckpt_is_meant(const char *text, const char *job, int64_t step)
{
    const char *at = text;
    for (int64_t named; at && (named = ckpt_next_meant(text, job, &at)) != MEANT_NONE;)
        if (named == step || named == MEANT_ALL)
            return true;
    return false;
}

static int ckpt_compare_step(const void *key, const void *item)
{
    const int64_t *step = key;
    const struct ckpt *c = item;
    return *step < c->step ? -1 : *step > c->step;
}

bool ckpt_mark_meant(const char *text, const char *job, const struct ckpt_list *l, bool *marks)
{
    const char *at = text;
    bool any = false;
    for (int64_t named; l->n && (named = ckpt_next_meant(text, job, &at)) != MEANT_NONE;) {
        if (named == MEANT_ALL) {
            memset(marks, true, l->n * sizeof(*marks));
            return true;
        }
        const struct ckpt *c = bsearch(&named, l->v, l->n, sizeof(*l->v), ckpt_compare_step);
        if (c)
            any = marks[c - l->v] = true;
    }
    return any;
}

/* ---- JSON ---- */

static const struct field ckpt_user_rows[] = {
    FIELD_AT(ckpt_user, "kind", FIELD_STR, kind, .flags = FIELD_ALWAYS),
    FIELD_AT(ckpt_user, "name", FIELD_STR, name, .flags = FIELD_ALWAYS, .doc = "of a job: its id"),
};
const struct field_table ckpt_user_table = FIELD_TABLE("CheckpointUser", ckpt_user_rows, ckpt_user);

struct ckpt_page {
    struct ckpt c;
    bool is_verified;
    uint64_t bytes;
    int attempt;  /* -1 = not known */
    double value; /* NaN = none */
    char *values; /* JSON */
    const char *eval_job, *why;
};
#define PAGE(key, ftype, member, ...) FIELD_AT(ckpt_page, key, ftype, member, __VA_ARGS__)
static const struct field ckpt_rows[] = {
    PAGE("step", FIELD_INT, c.step),
    PAGE("state", FIELD_ENUM, c.state, .names = state_words),
    PAGE("verified", FIELD_BOOL, is_verified),
    PAGE("bytes", FIELD_COUNT, bytes),
    PAGE("at", FIELD_TIME, c.at),
    PAGE("attempt", FIELD_INT32, attempt, .flags = FIELD_NO_LIMIT),
    PAGE("value", FIELD_REAL, value, .flags = FIELD_MAYBE),
    PAGE("values",
         FIELD_JSON,
         values,
         .flags = FIELD_ALWAYS,
         .schema =
             "{\"type\":\"object\",\"additionalProperties\":{\"type\":[\"number\",\"null\"]}}",
         .doc = "what validation told at its step, val-core/ and val/, and what the job of "
                "eval_on_save told of it, eval/: at most 8 metrics of a job"),
    PAGE("eval",
         FIELD_ENUM,
         c.eval,
         .names = eval_words,
         .doc = "what became of the job of eval_on_save"),
    PAGE("eval_job", FIELD_STR, eval_job, .doc = "that job"),
    PAGE("pinned",
         FIELD_BOOL,
         c.pinned,
         .flags = FIELD_OMIT,
         .doc = "it stays whatever the retention says; left out of others"),
    PAGE("kept",
         FIELD_ENUM,
         c.kept,
         .names = keep_words,
         .flags = FIELD_OMIT,
         .doc = "in a list: why it stays; left out of one that the retention lets go"),
    PAGE("used_by",
         FIELD_LIST,
         c.users,
         .of = &ckpt_user_table,
         .flags = FIELD_OMIT,
         .doc = "with ?used_by: jobs that are not over and entries of the registry that need it, "
                "at most 8 of those that you may see; left out of others"),
    PAGE("why", FIELD_STR, why),
};
#undef PAGE
const struct field_table ckpt_table = FIELD_TABLE("Checkpoint", ckpt_rows, ckpt_page);

void ckpt_write_why(char why[static CKPT_WHY_MAX], const char *code, const struct message_arg *args)
{
    size_t n = strlen(code);
    memcpy(why, code, n);
    message_write(why + n, CKPT_WHY_MAX - n, args);
}

/* Those of its values that were told, as a JSON object. Heap. */
static char *ckpt_values_text(const struct ckpt *c, const struct ckpt_list *l)
{
    struct buf out = BUF_INIT(VALUES_TEXT_MAX);
    struct jout j = jout_begin(&out);
    jout_open(&j, NULL, '{');
    for (size_t i = 0; l && i < CKPT_VALUES_MAX && l->names[i]; i++)
        if (c->told & 1U << i)
            jout_real(&j, l->names[i], c->values[i]);
    jout_close(&j, '}');
    return buf_take(&out);
}

void ckpt_to_json(const struct ckpt *c,
                  const struct ckpt_list *l,
                  const struct message_listener *to,
                  struct jout *j,
                  const char *key)
{
    _cleanup_(freep) char *values = ckpt_values_text(c, l);
    _cleanup_(freep) char *said = to ? message_kept_say(c->why, to) : xstrdup(c->why);
    const struct ckpt_page page = {.c = *c,
                                   .is_verified = c->state == CKPT_VERIFIED,
                                   .bytes = c->bytes & INT64_MAX,
                                   .attempt = c->attempt > 0 ? c->attempt : -1,
                                   .value = c->has_value ? c->value : NAN,
                                   .values = values,
                                   .eval_job = *c->eval_job ? c->eval_job : NULL,
                                   .why = *said ? said : NULL};
    field_to_json(&ckpt_table, &page, FIELD_ALL, FIELD_PAGE, j, key);
}

static void ckpt_read_values(const json_t *o, struct ckpt_list *l, struct ckpt *c)
{
    const char *name;
    const json_t *v;
    json_object_foreach ((json_t *)(uintptr_t)json_get_object(o, "values"), name, v) {
        int at = ckpt_is_validation(name) ? ckpt_list_name(l, name) : -1;
        if (at < 0)
            continue;
        c->told |= 1U << at;
        c->values[at] = json_is_number(v) ? json_number_value(v) : (double)NAN;
    }
}

static void ckpt_read_eval(const json_t *o, struct ckpt *c)
{
    const char *word = json_get_str(o, "eval", "");
    for (unsigned e = 0; e < CKPT_EVAL_COUNT; e++)
        if (!strcmp(word, eval_words[e]))
            c->eval = (enum ckpt_eval)e;
    text_copy(c->eval_job, json_get_str(o, "eval_job", ""));
}

int ckpt_from_json(const json_t *o, struct ckpt_list *l, struct ckpt *ret)
{
    struct ckpt c = {.step = json_get_int(o, "step", 0),
                     .attempt = (int)json_get_int(o, "attempt", 0)};
    const json_t *value = json_object_get(o, "value");
    int64_t bytes = json_get_int(o, "bytes", 0);
    const char *at = json_get_str(o, "at", NULL);
    if (c.step < 1 || bytes < 0 ||
        !ckpt_state_from_string(json_get_str(o, "state", NULL), &c.state))
        return -EINVAL;
    if (at && clock_from_string(at, &c.at, NULL) < 0)
        return -EINVAL;
    c.bytes = (uint64_t)bytes;
    c.has_value = json_is_number(value);
    c.value = c.has_value ? json_number_value(value) : 0;
    ckpt_read_values(o, l, &c);
    ckpt_read_eval(o, &c);
    text_copy(c.why, json_get_str(o, "why", ""));
    *ret = c;
    return 0;
}

/* ---- the plan ---- */

/* The rule for a checkpoint that is not verified. */
static enum ckpt_keep keep_unfinished(const struct ckpt_list *l,
                                      const struct ckpt *c,
                                      int64_t newest,
                                      const struct ckpt_policy *p)
{
    bool may_be_written = !p->is_over && c->step > newest;
    bool is_named = c->step == l->tracker; /* verl takes it up by itself */
    return c->state == CKPT_COMPLETE || may_be_written || is_named ? CKPT_KEEP_OPEN : CKPT_GOES;
}

void ckpt_plan(const struct ckpt_list *l, const struct ckpt_policy *p, enum ckpt_keep *ret)
{
    const struct ckpt *newest = ckpt_list_newest(l);
    const struct ckpt *best = p->best ? ckpt_list_best(l, p->best_is_min) : NULL;
    int64_t kept = 0;
    for (size_t i = l->n; i > 0; i--) {
        const struct ckpt *c = &l->v[i - 1];
        enum ckpt_keep keep = CKPT_GOES;
        bool counts = c->state == CKPT_VERIFIED && kept < p->keep_last;
        kept += counts;
        if (!newest)
            keep = CKPT_KEEP_OPEN;
        else if (c->pinned)
            keep = CKPT_KEEP_PINNED;
        else if (c == newest)
            keep = CKPT_KEEP_ONLY;
        else if (c->held)
            keep = CKPT_KEEP_HELD;
        else if (c == best)
            keep = CKPT_KEEP_BEST;
        else if (counts)
            keep = CKPT_KEEP_LAST;
        else if (c->state != CKPT_VERIFIED || c->step == l->tracker)
            keep = keep_unfinished(l, c, newest->step, p);
        ret[i - 1] = keep;
    }
}

static bool ckpt_may_go(const struct ckpt_list *l, const enum ckpt_keep *plan, size_t i)
{
    return plan[i] == CKPT_KEEP_LAST && l->v[i].step != l->tracker;
}

uint64_t ckpt_plan_room(const struct ckpt_list *l, uint64_t bytes, enum ckpt_keep *plan)
{
    uint64_t freed = 0, most = 0;
    for (size_t i = 0; i < l->n; i++) {
        freed += plan[i] == CKPT_GOES ? l->v[i].bytes : 0;
        most += plan[i] == CKPT_GOES || ckpt_may_go(l, plan, i) ? l->v[i].bytes : 0;
    }
    for (size_t i = 0; i < l->n && freed < bytes && most >= bytes; i++)
        if (ckpt_may_go(l, plan, i)) {
            plan[i] = CKPT_GOES;
            freed += l->v[i].bytes;
        }
    return freed;
}
