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

enum { DEPTH_MAX = 4, NUMBER_MAX = 64 };
static const double STEP_LIMIT = 1e15;

void metric_record_release(struct metric_record *r)
{
    for (size_t i = 0; i < r->n; i++)
        free(r->v[i].name);
    free(r->v);
    *r = (struct metric_record){0};
}

static struct metric_value *metric_value_find(const struct metric_record *r,
                                              const char *name,
                                              size_t len)
{
    for (size_t i = 0; i < r->n; i++)
        if (!strncmp(r->v[i].name, name, len) && !r->v[i].name[len])
            return &r->v[i];
    return NULL;
}

static void metric_add(struct metric_record *r, const char *name, size_t len, double value)
{
    struct metric_value *old =
        len && len <= METRIC_NAME_MAX ? metric_value_find(r, name, len) : NULL;
    if (old) {
        old->value = value;
        return;
    }
    if (!len || len > METRIC_NAME_MAX || r->n == METRIC_VALUES_MAX) {
        r->left_out++;
        return;
    }
    if (r->n % 32 == 0)
        r->v = xrealloc(r->v, r->n + 32, sizeof(*r->v));
    r->v[r->n++] = (struct metric_value){.name = xstrndup(name, len), .value = value};
}

double metric_value(const struct metric_record *r, const char *name)
{
    const struct metric_value *v = metric_value_find(r, name, strlen(name));
    return v ? v->value : NAN;
}

bool metric_is_training(const struct metric_record *r)
{
    for (size_t i = 0; i < r->n; i++)
        if (!str_starts(r->v[i].name, "val-") && !str_starts(r->v[i].name, "val/"))
            return true;
    return false;
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

/* Numbers of an object, those of objects in it as "outer/inner". */
static void metric_add_members(struct metric_record *r,
                               const json_t *o,
                               const char *prefix,
                               int depth)
{
    void *it = json_object_iter((json_t *)(uintptr_t)o);
    for (; it; it = json_object_iter_next((json_t *)(uintptr_t)o, it)) {
        const json_t *v = json_object_iter_value(it);
        const char *key = json_object_iter_key(it);
        bool is_odd = json_is_null(v), is_bool = json_is_boolean(v);
        if (!json_is_number(v) && !is_odd && !is_bool && !json_is_object(v))
            continue;
        _cleanup_(freep) char *name = xasprintf("%s%s%s", prefix, *prefix ? "/" : "", key);
        if (json_is_object(v) && depth < DEPTH_MAX)
            metric_add_members(r, v, name, depth + 1);
        else if (!json_is_object(v))
            metric_add(r, name, strlen(name),
                       is_odd    ? NAN
                       : is_bool ? (double)json_is_true(v)
                                 : json_number_value(v));
    }
}

static bool get_step(const json_t *o, const char *key, int64_t *ret)
{
    const json_t *v = json_object_get(o, key);
    double step = json_is_number(v) ? json_number_value(v) : -1;
    if (!(step >= 0) || step > STEP_LIMIT)
        return false;
    *ret = (int64_t)step;
    return true;
}

static void read_ours(const json_t *o, struct metric_record *r)
{
    int64_t offset = json_get_int(o, "offset", 0), attempt = json_get_int(o, "attempt", 0);
    int64_t at = json_get_int(o, "at", 0), total = json_get_int(o, "total", 0);
    r->attempt = attempt > 0 && attempt < INT32_MAX ? (int)attempt : 0;
    r->offset = offset > 0 ? (uint64_t)offset : 0;
    r->at = at > 0 ? (usec_t)at : 0;
    r->total = total > 0 ? total : 0;
    r->from_log = json_get_bool(o, "from_log", false);
    r->superseded = json_get_bool(o, "superseded", false);
}

/* json.dumps() of Python writes NaN and Infinity, which JSON has no word for: null here. */
static void mend_odd(const char *text, struct buf *out)
{
    static const char *const odd[] = {"-Infinity", "Infinity", "NaN"};
    bool quoted = false;
    for (const char *p = text; *p;) {
        size_t len = 1;
        if (quoted && *p == '\\' && p[1])
            len = 2;
        else if (*p == '"')
            quoted = !quoted;
        bool mended = false;
        for (size_t i = 0; !quoted && !mended && i < array_len(odd); i++)
            if ((mended = str_starts(p, odd[i])))
                len = strlen(odd[i]);
        (void)buf_add(out, mended ? "null" : p, mended ? 4 : len); /* overflow: out->failed */
        p += len;
    }
}

static json_t *metric_parse(const char *text)
{
    json_t *o = NULL;
    size_t n = strlen(text);
    if (json_parse(text, n, METRIC_LINE_MAX, &o, NULL) == 0)
        return o;
    if (!strstr(text, "NaN") && !strstr(text, "Infinity"))
        return NULL;
    struct buf out = BUF_INIT(2 * (size_t)METRIC_LINE_MAX);
    mend_odd(text, &out);
    if (out.failed || json_parse(buf_str(&out), out.len, out.max, &o, NULL) < 0)
        o = NULL;
    buf_release(&out);
    return o;
}

/* A plain line may say how many steps there are; that is no metric. */
static void take_total(json_t *o, struct metric_record *r)
{
    static const char *const totals[] = {"total_steps", "max_steps"};
    for (size_t i = 0; i < array_len(totals); i++) {
        int64_t total = 0;
        if (!get_step(o, totals[i], &total) || total <= 0)
            continue;
        r->total = r->total ? r->total : total;
        (void)json_object_del(o, totals[i]); /* it is there */
    }
}

static bool metric_read_json(char *text, struct metric_record *r)
{
    static const char *const steps[] = {"step", "global_step"};
    char *begin = strchr(text, '{'), *end = begin ? strrchr(begin, '}') : NULL;
    if (!end || (begin > text && begin[-1] != ' '))
        return false;
    end[1] = 0;
    _cleanup_(json_unrefp) json_t *o = metric_parse(begin);
    size_t i = 0;
    while (i < array_len(steps) && !get_step(o, steps[i], &r->step))
        i++;
    if (i == array_len(steps))
        return false;
    const json_t *data = json_get_object(o, "data");
    if (data) {
        read_ours(o, r);
        metric_add_members(r, data, "", 0);
    } else {
        (void)json_object_del(o, steps[i]); /* it is there */
        take_total(o, r);
        metric_add_members(r, o, "", 0);
    }
    return r->n > 0;
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
    return memmem(text, n, "step", 4);
}

static enum metric_line metric_read_text(char *text, struct metric_record *r)
{
    if (*text == '{' && metric_read_json(text, r)) /* its keys may look like anything */
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
    if (r->total)
        jout_int(&j, "total", r->total);
    jout_open(&j, "data", '{');
    for (size_t i = 0; i < r->n; i++)
        jout_real(&j, r->v[i].name, r->v[i].value);
    jout_close(&j, '}');
    jout_close(&j, '}');
    (void)buf_addc(out, '\n'); /* overflow: out->failed */
}
