/* SPDX-License-Identifier: Apache-2.0 */
/* metric.c - reads one line; see metric.h.
 *
 * A key of verl may hold anything (a data source is part of it): a console line is split on
 * " - ", and a part at its last colon. */
#define _GNU_SOURCE
#include "core/metric/metric.h"

#include <ctype.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/str.h"
#include "core/metric/metric_json.h"

enum { NUMBER_MAX = 64 };
/* A whole number above COUNT_LIMIT is no longer exact as a double (IEEE 754). */
static const double STEP_LIMIT = 1e15, COUNT_LIMIT = 9007199254740992.0;

void metric_record_release(struct metric_record *r)
{
    for (size_t i = 0; i < r->n; i++)
        free(r->v[i].name);
    free(r->v);
    metric_order_release(&r->order);
    free(r->unread);
    *r = (struct metric_record){0};
}

static void metric_add(struct metric_record *r, const char *name, size_t len, double value)
{
    size_t rank = 0;
    bool is_name = len && len <= METRIC_NAME_MAX;
    if (is_name && r->v && metric_order_find(&r->order, r->v, sizeof(*r->v), name, len, &rank)) {
        r->v[metric_order_place(&r->order, rank)].value = value;
        return;
    }
    if (!is_name || r->n == METRIC_VALUES_MAX) {
        r->left_out++;
        return;
    }
    if (r->n % 32 == 0)
        r->v = xrealloc(r->v, r->n + 32, sizeof(*r->v));
    metric_order_insert(&r->order, rank, r->n);
    r->v[r->n++] = (struct metric_value){.name = xstrndup(name, len), .value = value};
}

double metric_value(const struct metric_record *r, const char *name)
{
    for (size_t i = 0; i < r->n; i++)
        if (str_eq(r->v[i].name, name))
            return r->v[i].value;
    return NAN;
}

bool metric_is_training(const struct metric_record *r)
{
    for (size_t i = 0; i < r->n; i++)
        if (!str_starts(r->v[i].name, "val-") && !str_starts(r->v[i].name, "val/") &&
            !str_starts(r->v[i].name, METRIC_OF_SCORES) &&
            !str_starts(r->v[i].name, METRIC_OF_SAMPLES))
            return true;
    return false;
}

bool metric_has_step(const struct metric_record *r)
{
    for (size_t i = 0; i < r->n; i++)
        if (!str_starts(r->v[i].name, METRIC_OF_SCORES))
            return true;
    return r->step > 0 || (!r->n && !str_starts(str_or(r->unread, ""), METRIC_OF_SCORES));
}

/* ---- the console ---- */

/* Without colours (ESC [ … letter) and control characters, as UTF-8, and text to its end. */
static char *metric_clean(const char *line, size_t n)
{
    char *text = xmalloc(n + 1);
    size_t len = 0;
    for (size_t i = 0, used; i < n; i += used) {
        unsigned char c = (unsigned char)line[i];
        used = str_utf8_length(line + i, n - i);
        if (c == '\033' && i + 1 < n && line[i + 1] == '[') {
            for (used = 2; i + used < n && !isalpha((unsigned char)line[i + used]);)
                used++;
            used += i + used < n;
        } else if (used > 1) {
            memcpy(text + len, line + i, used);
            len += used;
        } else {
            text[len++] = !used ? '?' : (c < ' ' && c != '\r') || c == 0x7f ? ' ' : line[i];
            used = 1;
        }
    }
    text[len] = 0;
    return text;
}

/* "nan" "-inf" "Infinity", with nothing behind it. */
static bool read_odd(const char *s, double *ret)
{
    double sign = *s == '-' ? -1 : 1;
    s += *s == '-' || *s == '+';
    if (!strcasecmp(s, "nan"))
        *ret = NAN;
    else if (!strcasecmp(s, "inf") || !strcasecmp(s, "infinity"))
        *ret = sign * INFINITY;
    else if (!strcmp(s, "True") || !strcmp(s, "False"))
        *ret = *s == 'T';
    else
        return false;
    return true;
}

/* A number as Python prints it: 1e-06, 1_000, nan, True, np.float64(0.5). */
static bool metric_read_number(const char *s, size_t n, double *ret)
{
    char text[NUMBER_MAX];
    size_t len = 0;
    const char *open = memchr(s, '(', n);
    if (open && n > 4 && !strncmp(s, "np.", 3) && s[n - 1] == ')') {
        n = (size_t)(s + n - 1 - (open + 1));
        s = open + 1;
    }
    if (!n || n >= sizeof(text))
        return false;
    for (size_t i = 0; i < n; i++)
        if (s[i] != '_')
            text[len++] = s[i];
    text[len] = 0;
    if (read_odd(text, ret))
        return true;
    return strspn(text, "0123456789+-.eE") == len && str_to_real(text, ret, NULL) == 0;
}

/* "key:value", the value maybe with " [repeated 2x across cluster]" behind it. */
static void metric_add_part(struct metric_record *r, const char *part, size_t n)
{
    const char *end = memmem(part, n, " [", 2), *colon;
    if (end)
        n = (size_t)(end - part);
    while (n && isspace((unsigned char)part[n - 1]))
        n--;
    double value;
    colon = memrchr(part, ':', n);
    if (colon && metric_read_number(colon + 1, (size_t)(part + n - colon - 1), &value))
        metric_add(r, part, (size_t)(colon - part), value);
}

static bool metric_is_word(char c)
{
    return isalnum((unsigned char)c) || c == '_' || c == '/' || c == '-';
}

/* "step:12 - ", anywhere, but not the end of "global_step:12 - ". */
static const char *metric_find_step(const char *text, int64_t *ret_step)
{
    for (const char *p = text; (p = strstr(p, "step:")); p += 5) {
        size_t digits = strspn(p + 5, "0123456789");
        if ((p > text && metric_is_word(p[-1])) || !digits || digits > 15 ||
            !str_starts(p + 5 + digits, " - "))
            continue;
        *ret_step = strtoll(p + 5, NULL, 10);
        return p + 5 + digits + 3;
    }
    return NULL;
}

static bool read_console(const char *text, struct metric_record *r)
{
    const char *p = metric_find_step(text, &r->step);
    if (!p)
        return false;
    const char *end = p + strcspn(p, "\r"); /* a progress bar may follow */
    while (p < end) {
        const char *dash = memmem(p, (size_t)(end - p), " - ", 3);
        metric_add_part(r, p, (size_t)((dash ? dash : end) - p));
        p = dash ? dash + 3 : end;
    }
    return r->n > 0;
}

/* ---- JSON ---- */

static const char *const STEPS[] = {"step", "global_step"};
static const char *const TOTALS[] = {"total_steps", "max_steps"};
enum { N_STEPS = 2, N_TOTALS = 2, OBJECTS_MAX = 16 /* that a line is searched for */ };

/* What the members of the object itself say, told before its metrics are taken. */
struct json_line {
    struct metric_record *r;
    int64_t step[N_STEPS], total[N_TOTALS]; /* -1: none */
    bool has_data, in_data, in_unread;
};

static bool is_named(const struct metric_json_value *v, const char *name)
{
    return v->depth == 0 && v->n == strlen(name) && !memcmp(v->name, name, v->n);
}

/* A whole number from 0 to most; -1: it is none. */
static int64_t count_of(const struct metric_json_value *v, double most)
{
    bool is_count = !v->is_object && !v->is_unread && v->value >= 0 && v->value <= most;
    return is_count ? (int64_t)v->value : -1;
}

static void read_ours(const struct metric_json_value *v, struct metric_record *r)
{
    int64_t told = count_of(v, COUNT_LIMIT), n = told > 0 ? told : 0;
    if (is_named(v, "attempt"))
        r->attempt = n < INT32_MAX ? (int)n : 0;
    else if (is_named(v, "offset"))
        r->offset = (uint64_t)n;
    else if (is_named(v, "at"))
        r->at = (usec_t)n;
    else if (is_named(v, "total"))
        r->total = n;
    else if (is_named(v, "from_log"))
        r->from_log = n;
    else if (is_named(v, "is_made"))
        r->is_made = n;
    else if (is_named(v, "superseded"))
        r->superseded = n;
}

static void see_member(const struct metric_json_value *v, void *arg)
{
    struct json_line *l = arg;
    l->has_data = l->has_data || (v->is_object && is_named(v, "data"));
    for (size_t i = 0; i < N_STEPS; i++)
        if (is_named(v, STEPS[i]))
            l->step[i] = count_of(v, STEP_LIMIT);
    for (size_t i = 0; i < N_TOTALS; i++)
        if (is_named(v, TOTALS[i]))
            l->total[i] = count_of(v, STEP_LIMIT);
}

static void add_unread(struct metric_record *r, const char *name, size_t n, size_t values)
{
    if (!r->unread)
        r->unread = xstrndup(name, n < METRIC_NAME_MAX ? n : METRIC_NAME_MAX);
    r->n_unread += values;
}

static void add_json(struct metric_record *r, const struct metric_json_value *v, size_t prefix)
{
    if (v->is_unread)
        add_unread(r, v->name + prefix, v->n - prefix, 1);
    else if (!v->is_object)
        metric_add(r, v->name + prefix, v->n - prefix, v->value);
}

/* A member of {"step":1,"data":{…}}, or of our merged file. */
static void take_data_member(const struct metric_json_value *v, struct json_line *l)
{
    static const size_t data = sizeof("data/") - 1, unread = sizeof("unread/") - 1;
    if (v->depth == 0) {
        l->in_data = v->is_object && is_named(v, "data");
        l->in_unread = v->is_object && is_named(v, "unread");
        read_ours(v, l->r);
    } else if (l->in_data) {
        add_json(l->r, v, data);
    } else if (l->in_unread && count_of(v, COUNT_LIMIT) > 0) {
        add_unread(l->r, v->name + unread, v->n - unread, (size_t)count_of(v, COUNT_LIMIT));
    }
}

/* A plain line's. It may say how many steps there are; that is no metric. */
static void take_plain_member(const struct metric_json_value *v, struct json_line *l)
{
    const char *step = l->step[0] >= 0 ? STEPS[0] : STEPS[1]; /* one of them is there */
    bool is_total = false;
    for (size_t i = 0; i < N_TOTALS; i++)
        is_total = is_total || (is_named(v, TOTALS[i]) && l->total[i] > 0);
    if (!is_total && !is_named(v, step))
        add_json(l->r, v, 0);
}

static void take_member(const struct metric_json_value *v, void *arg)
{
    struct json_line *l = arg;
    if (l->has_data)
        take_data_member(v, l);
    else
        take_plain_member(v, l);
}

/* The object that begins at text. Returns how many bytes it has; 0: none. *ret_is_record: it is
 * in *r. */
static size_t read_json_object(const char *text, struct metric_record *r, bool *ret_is_record)
{
    struct json_line l = {.r = r, .step = {-1, -1}, .total = {-1, -1}};
    size_t n = metric_json_read(text, strlen(text), see_member, &l);
    if (!n || (l.step[0] < 0 && l.step[1] < 0))
        return n;
    r->step = l.step[0] >= 0 ? l.step[0] : l.step[1];
    (void)metric_json_read(text, n, take_member, &l); /* it is whole */
    if (!l.has_data)
        r->total = l.total[0] > 0 ? l.total[0] : l.total[1] > 0 ? l.total[1] : 0;
    *ret_is_record = r->n > 0 || r->n_unread > 0;
    return n;
}

/* An object may stand behind anything that ends there, as a progress bar does, but not within
 * something: name={…}, f({…}), 'x{…}'. */
static bool may_begin(const char *text, const char *at)
{
    return at == text || (!strchr("=(,[{\"'\\$", at[-1]) && !metric_is_word(at[-1]));
}

static bool metric_read_json(const char *text, struct metric_record *r)
{
    bool is_record = false;
    const char *p = strchr(text, '{');
    for (int tried = 0; p && tried < OBJECTS_MAX && !is_record; p = strchr(p, '{')) {
        size_t n = 0;
        if (may_begin(text, p)) {
            n = read_json_object(p, r, &is_record);
            tried++;
        }
        if (!is_record)
            metric_record_release(r);
        p += n ? n : 1;
    }
    return is_record;
}

/* ---- scores of verl's main_eval ---- */

/* The text that Python quotes at *p, without its quotes and backslashes; *p moves behind it. Heap;
 * NULL: there is none, or it has no end. */
static char *score_take_name(const char **p)
{
    const char quote = **p, *s = *p + 1, *end = s;
    if (quote != '\'' && quote != '"')
        return NULL;
    while (*end && *end != quote)
        end += *end == '\\' && end[1] ? 2 : 1;
    if (!*end)
        return NULL;
    char *name = xmalloc((size_t)(end - s) + 1); /* and not of the rest of the line, each time */
    size_t n = 0;
    for (; s < end; s++) {
        s += *s == '\\';
        name[n++] = *s;
    }
    name[n] = 0;
    *p = end + 1;
    return name;
}

/* How many bytes the value at s has: np.float64(0.5) may have a comma in its brackets. */
static size_t score_value_length(const char *s)
{
    int depth = 0;
    size_t n = 0;
    for (; s[n] && (depth > 0 || !strchr(",}", s[n])); n++)
        depth += strchr("([{", s[n]) ? 1 : strchr(")]}", s[n]) ? -1 : 0;
    return n;
}

/* 'test_score/x': 0.5 and what ends it. False: it has another form, or is of something else. */
static bool score_take_pair(const char **p, struct metric_record *r)
{
    double value;
    _cleanup_(freep) char *name = score_take_name(p);
    if (!name || !str_starts(name, METRIC_OF_SCORES) || !str_starts(*p, ": "))
        return false;
    const char *text = *p + 2;
    size_t n = score_value_length(text);
    if (metric_read_number(text, n, &value))
        metric_add(r, name, strlen(name), value);
    else
        add_unread(r, name, strlen(name), 1);
    *p = text + n;
    return true;
}

/* The dict at p, to the end of the line. */
static bool score_read_dict(const char *p, struct metric_record *r)
{
    bool ok = *p++ == '{' && score_take_pair(&p, r);
    while (ok && str_starts(p, ", ")) {
        p += 2;
        ok = score_take_pair(&p, r);
    }
    return ok && *p == '}' && !p[1 + strspn(p + 1, " \r\t")] && (r->n || r->n_unread);
}

/* It may stand behind a progress bar that did not end its line; its step is 0. */
static bool metric_read_scores(const char *text, struct metric_record *r)
{
    const char *at = strstr(text, METRIC_OF_SCORES);
    return at && at - text >= 2 && may_begin(text, at - 2) && score_read_dict(at - 2, r);
}

/* ---- all ---- */

static bool read_total(const char *text, const char *mark, int64_t *ret)
{
    const char *p = strstr(text, mark);
    size_t digits = p ? strspn(p + strlen(mark), "0123456789") : 0;
    if (!digits || digits > 15)
        return false;
    *ret = strtoll(p + strlen(mark), NULL, 10);
    return *ret > 0;
}

const char *metric_find(const char *text, size_t n)
{
    /* One search for what both have in common: nothing is looked through twice. */
    static const char step[] = "step", score[] = "st_score/";
    const char *end = text + n, *p = text;
    for (; (p = memmem(p, (size_t)(end - p), "st", 2)); p += 2) {
        size_t left = (size_t)(end - p);
        if ((left >= sizeof(step) - 1 && !memcmp(p, step, sizeof(step) - 1)) ||
            (left >= sizeof(score) - 1 && !memcmp(p, score, sizeof(score) - 1)))
            return p;
    }
    return NULL;
}

static enum metric_line metric_read_text(char *text, struct metric_record *r)
{
    if (*text == '{' && metric_read_json(text, r)) /* its keys may look like anything */
        return METRIC_RECORD;
    metric_record_release(r);
    if (metric_read_scores(text, r)) /* so may the names of data sets */
        return METRIC_RECORD;
    metric_record_release(r);
    if (read_total(text, "Total training steps: ", &r->step))
        return METRIC_TOTAL;
    if (strstr(text, "num_warmup_steps") && read_total(text, "Total steps: ", &r->step))
        return METRIC_TOTAL_MAYBE;
    if (read_console(text, r))
        return METRIC_RECORD;
    metric_record_release(r);
    return *text != '{' && metric_read_json(text, r) ? METRIC_RECORD : METRIC_NOTHING;
}

enum metric_line metric_read_line(const char *line, size_t n, struct metric_record *ret)
{
    struct metric_record r = {0};
    if (n > METRIC_LINE_MAX || !metric_find(line, n))
        return METRIC_NOTHING;
    _cleanup_(freep) char *text = metric_clean(line, n);
    enum metric_line kind = metric_read_text(text, &r);
    if (kind == METRIC_NOTHING)
        metric_record_release(&r);
    else
        *ret = r;
    return kind;
}

void metric_record_to_json(const struct metric_record *r, struct buf *out)
{
    struct jout j = jout_begin(out);
    jout_open(&j, NULL, '{');
    jout_int(&j, "step", r->step);
    jout_int(&j, "attempt", r->attempt);
    if (r->superseded)
        jout_bool(&j, "superseded", true);
    jout_int(&j, "at", (int64_t)r->at);
    jout_int(&j, "offset", (int64_t)r->offset);
    if (r->from_log)
        jout_bool(&j, "from_log", true);
    if (r->is_made)
        jout_bool(&j, "is_made", true);
    if (r->total)
        jout_int(&j, "total", r->total);
    if (r->n_unread) {
        jout_open(&j, "unread", '{');
        jout_int(&j, r->unread, (int64_t)r->n_unread);
        jout_close(&j, '}');
    }
    jout_open(&j, "data", '{');
    for (size_t i = 0; i < r->n; i++)
        jout_real(&j, r->v[i].name, r->v[i].value);
    jout_close(&j, '}');
    jout_close(&j, '}');
    (void)buf_addc(out, '\n'); /* overflow: out->failed */
}
