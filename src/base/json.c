/* SPDX-License-Identifier: Apache-2.0 */
/* json.c - glue for jansson and a writer that needs no tree; see json.h. */
#include "base/json.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/message.h"
#include "base/str.h"
#include "base/text.h"

int json_parse(const char *text, size_t len, size_t max, json_t **ret, struct err *err)
{
    if (len > max)
        return message_refuse(err, ERR_TOO_LARGE, "json_large",
                              MESSAGE_ARGS(MESSAGE_NUM("bytes", len), MESSAGE_NUM("most", max)));
    if (len && memchr(text, 0, len)) /* jansson takes one at the end for the end */
        return message_refuse(err, ERR_BAD_REQUEST, "json_nul", MESSAGE_NO_ARGS);
    json_error_t e;
    json_t *v = json_loadb(text, len, JSON_REJECT_DUPLICATES | JSON_DECODE_ANY, &e);
    if (!v)
        return message_refuse(err, ERR_BAD_REQUEST, "json_broken",
                              MESSAGE_ARGS(MESSAGE_NUM("line", e.line),
                                           MESSAGE_NUM("column", e.column),
                                           MESSAGE_STR("why", e.text)));
    *ret = v;
    return 0;
}

const char *json_get_str(const json_t *object, const char *key, const char *dflt)
{
    const char *s = json_string_value(json_object_get(object, key));
    return s ? s : dflt;
}

int64_t json_get_int(const json_t *object, const char *key, int64_t dflt)
{
    const json_t *v = json_object_get(object, key);
    int64_t n;
    if (json_is_integer(v))
        return json_integer_value(v);
    if (json_is_real(v) && fabs(json_real_value(v)) < 9e18)
        return (int64_t)json_real_value(v);
    if (json_is_string(v) && str_to_int(json_string_value(v), INT64_MIN, INT64_MAX, &n, NULL) == 0)
        return n;
    return dflt;
}

double json_get_real(const json_t *object, const char *key, double dflt)
{
    const json_t *v = json_object_get(object, key);
    double d;
    if (json_is_number(v))
        return json_number_value(v);
    if (json_is_string(v) && str_to_real(json_string_value(v), &d, NULL) == 0)
        return d;
    return dflt;
}

bool json_get_bool(const json_t *object, const char *key, bool dflt)
{
    const json_t *v = json_object_get(object, key);
    return json_is_boolean(v) ? json_is_true(v) : dflt;
}

const json_t *json_get_object(const json_t *object, const char *key)
{
    const json_t *v = json_object_get(object, key);
    return json_is_object(v) ? v : NULL;
}

const json_t *json_get_array(const json_t *object, const char *key)
{
    const json_t *v = json_object_get(object, key);
    return json_is_array(v) ? v : NULL;
}

void json_unrefp(json_t **p)
{
    json_decref(*p);
    *p = NULL;
}

struct jout jout_begin(struct buf *out)
{
    return (struct jout){.out = out};
}

static void json_add_escape(struct buf *out, unsigned char c)
{
    static const char plain[] = "\"\\\b\f\n\r\t", letter[] = "\"\\bfnrt";
    const char *p = c ? strchr(plain, c) : NULL;
    if (p)
        (void)buf_addf(out, "\\%c", letter[p - plain]); /* overflow: out->failed */
    else
        (void)buf_addf(out, "\\u%04x", c);
}

/* How many bytes from the start stand for themselves in a JSON string: printable ASCII but for the
 * quote and the backslash. */
static size_t json_plain_run(const unsigned char *s, size_t n)
{
    size_t i = 0;
    while (i < n && (unsigned)s[i] - ' ' <= '~' - ' ' && s[i] != '"' && s[i] != '\\')
        i++;
    return i;
}

/* The usual value, in one piece; false where a byte needs more. */
static bool json_add_plain(struct buf *out, const char *value, size_t n)
{
    if (json_plain_run((const unsigned char *)value, n) != n)
        return false;
    char *p = buf_room(out, n + 2);
    if (!p)
        return true; /* out->failed */
    p[0] = '"';
    memcpy(p + 1, value, n);
    p[n + 1] = '"';
    buf_wrote(out, n + 2);
    return true;
}

static void json_add_quoted(struct buf *out, const char *value, size_t n)
{
    const unsigned char *s = (const unsigned char *)value;
    if (json_add_plain(out, value, n))
        return;
    (void)buf_addc(out, '"'); /* overflow is seen in out->failed, here and below */
    for (size_t i = 0, run; i < n; i += run) {
        run = json_plain_run(s + i, n - i);
        if (run) {
            (void)buf_add(out, s + i, run);
            continue;
        }
        run = str_utf8_length(s + i, n - i);
        if (run > 1) {
            (void)buf_add(out, s + i, run);
        } else if (run == 1) {
            json_add_escape(out, s[i]);
        } else {
            (void)buf_adds(out, "\xef\xbf\xbd");
            run = 1;
        }
    }
    (void)buf_addc(out, '"');
}

static void begin_value(struct jout *j, const char *key)
{
    if (j->comma)
        (void)buf_addc(j->out, ','); /* overflow: out->failed */
    j->comma = true;
    if (key) {
        json_add_quoted(j->out, key, strlen(key));
        (void)buf_addc(j->out, ':');
    }
}

void jout_key(struct jout *j, const char *key, size_t n)
{
    char *p = buf_room(j->out, n + 4);
    if (!p)
        return; /* out->failed */
    char *at = p;
    if (j->comma)
        *at++ = ',';
    *at++ = '"';
    memcpy(at, key, n);
    at += n;
    *at++ = '"';
    *at++ = ':';
    buf_wrote(j->out, (size_t)(at - p));
    j->comma = false; /* its value follows at once */
}

void jout_open(struct jout *j, const char *key, char bracket)
{
    begin_value(j, key);
    (void)buf_addc(j->out, bracket); /* overflow: out->failed */
    j->comma = false;
}

void jout_close(struct jout *j, char bracket)
{
    (void)buf_addc(j->out, bracket); /* overflow: out->failed */
    j->comma = true;
}

void jout_strn(struct jout *j, const char *key, const char *value, size_t n)
{
    begin_value(j, key);
    if (value)
        json_add_quoted(j->out, value, n);
    else
        (void)buf_adds(j->out, "null"); /* overflow: out->failed */
}

void jout_str(struct jout *j, const char *key, const char *value)
{
    jout_strn(j, key, value, value ? strlen(value) : 0);
}

void jout_int(struct jout *j, const char *key, int64_t value)
{
    begin_value(j, key);
    (void)buf_add_int(j->out, value); /* overflow: out->failed */
}

void json_real_text(double v, char ret[static JSON_REAL_TEXT])
{
    enum { ALL_DIGITS = 17 };
    for (int digits = 15; digits <= ALL_DIGITS; digits++) {
        text_printf_to(ret, JSON_REAL_TEXT, "%.*g", digits, v);
        double back = strtod(ret, NULL);
        if (!(back < v) && !(back > v))
            return;
    }
}

void jout_real(struct jout *j, const char *key, double value)
{
    begin_value(j, key);
    double whole = trunc(value);
    if (!isfinite(value))
        (void)buf_adds(j->out, "null"); /* overflow: out->failed, here and below */
    else if (fabs(value) < 1e15 && !(value < whole) && !(value > whole))
        (void)buf_add_int(j->out, (int64_t)value);
    else
        (void)buf_addf(j->out, "%.15g", value);
}

void jout_bool(struct jout *j, const char *key, bool value)
{
    jout_raw(j, key, value ? "true" : "false");
}

void jout_null(struct jout *j, const char *key)
{
    jout_raw(j, key, "null");
}

void jout_count(struct jout *j, const char *key, int64_t value)
{
    if (value >= 0)
        jout_int(j, key, value);
    else
        jout_null(j, key);
}

void jout_time(struct jout *j, const char *key, uint64_t wall_usec)
{
    char text[CLOCK_TEXT_MAX];
    jout_str(j, key, wall_usec ? clock_to_string(wall_usec, text) : NULL);
}

void jout_raw(struct jout *j, const char *key, const char *text)
{
    begin_value(j, key);
    (void)buf_adds(j->out, text); /* overflow: out->failed */
}
