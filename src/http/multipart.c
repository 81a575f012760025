/* SPDX-License-Identifier: Apache-2.0 */
/* multipart.c - the parts of a multipart/form-data body, piece by piece; see multipart.h.
 *
 *   delimiter -> "\r\n" -> head -> data -> delimiter ... -> "--" -> "\r\n" or nothing
 *
 * A delimiter is "\r\n--BOUNDARY"; that of the first part has its "\r\n" given. No '\r' is in a
 * boundary: a delimiter that breaks off can begin anew only at the byte that broke it, so the count
 * of its bytes that have matched is all there is to remember between two pieces. */
#include "http/multipart.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/message.h"
#include "base/str.h"

enum { DELIMITER_MAX = MULTIPART_BOUNDARY_MAX + 4 };

enum step { FIRST, AFTER, AFTER_CR, AFTER_DASH, HEAD, DATA, END, END_CR, OVER };

struct multipart {
    struct multipart_to to;
    enum step step;
    char delimiter[DELIMITER_MAX + 1];
    size_t len, matched; /* of it */
    struct buf head;
};

/* ---- the boundary ---- */

static bool is_boundary_char(char c)
{
    return isalnum((unsigned char)c) || (c && strchr("'()+_,-./:=? ", c));
}

/* The value of `boundary` in the header; how long it is, 0 = it is not good. */
static size_t find_boundary(const char *type, const char **ret)
{
    const char *at = NULL;
    for (const char *s = type; (s = strchr(s, ';'));) {
        s += 1 + strspn(s + 1, " \t");
        if (strncasecmp(s, "boundary=", 9) != 0)
            continue;
        if (at)
            return 0; /* which of the two? */
        at = s + 9;
    }
    if (!at)
        return 0;
    bool quoted = *at == '"';
    at += quoted;
    size_t n = strcspn(at, quoted ? "\"" : "; \t");
    const char *rest = at + n + quoted;
    if (!n || n > MULTIPART_BOUNDARY_MAX || at[n - 1] == ' ' || (quoted && at[n] != '"'))
        return 0;
    for (size_t i = 0; i < n; i++)
        if (!is_boundary_char(at[i]))
            return 0;
    rest += strspn(rest, " \t");
    *ret = at;
    return !*rest || *rest == ';' ? n : 0;
}

int multipart_new(const char *content_type,
                  const struct multipart_to *to,
                  struct multipart **ret,
                  struct err *err)
{
    const char *boundary = NULL;
    size_t n = find_boundary(content_type, &boundary);
    if (!n)
        return message_refuse(err, ERR_BAD_REQUEST, "form_no_boundary",
                              MESSAGE_ARGS(MESSAGE_NUM("most", MULTIPART_BOUNDARY_MAX)));
    struct multipart *m = xcalloc(1, sizeof(*m));
    m->to = *to;
    memcpy(m->delimiter, "\r\n--", 4);
    memcpy(m->delimiter + 4, boundary, n);
    m->len = n + 4;
    m->matched = 2; /* the line before the first is not sent */
    buf_init(&m->head, MULTIPART_HEAD_MAX);
    *ret = m;
    return 0;
}

void multipart_free(struct multipart *m)
{
    if (!m)
        return;
    buf_release(&m->head);
    free(m);
}

/* ---- the head of a part ---- */

/* A quoted text at *p, into ret; *p goes behind it. */
static bool multipart_take_quoted(const char **p, char *ret, size_t size)
{
    size_t n = 0;
    const char *s = *p + 1;
    for (; *s && *s != '"'; s++) {
        if (*s == '\\' && (s[1] == '"' || s[1] == '\\'))
            s++;
        if (n + 1 >= size)
            return false;
        ret[n++] = *s;
    }
    ret[n] = 0;
    *p = s + 1;
    return *s == '"';
}

static bool multipart_take_value(const char **p, char *ret, size_t size)
{
    if (**p == '"')
        return multipart_take_quoted(p, ret, size);
    size_t n = strcspn(*p, "; \t\"");
    if (!n || n >= size)
        return false;
    memcpy(ret, *p, n);
    ret[n] = 0;
    *p += n;
    return true;
}

struct disposition {
    char name[MULTIPART_NAME_MAX + 1], file[MULTIPART_FILE_MAX + 1];
    bool is_there, has_name, has_file;
};

/* Once, and if it fits. */
static bool multipart_keep(const char *value, char *to, size_t size, bool *has)
{
    if (*has || strlen(value) >= size)
        return false;
    *has = true;
    memcpy(to, value, strlen(value) + 1);
    return true;
}

/* " name=\"x\"; filename=\"y\"" behind "form-data;". Others, such as filename*, say nothing new. */
static bool read_disposition(const char *s, struct disposition *d)
{
    char value[MULTIPART_HEAD_MAX];
    while (*s) {
        s += strspn(s, " \t");
        const char *key = s;
        size_t n = strcspn(s, "=; \t\"");
        s += n;
        if (!n || *s++ != '=' || !multipart_take_value(&s, value, sizeof(value)))
            return false;
        if (n == 4 && !strncasecmp(key, "name", n) &&
            !multipart_keep(value, d->name, sizeof(d->name), &d->has_name))
            return false;
        if (n == 8 && !strncasecmp(key, "filename", n) &&
            !multipart_keep(value, d->file, sizeof(d->file), &d->has_file))
            return false;
        s += strspn(s, " \t");
        if (*s && *s++ != ';')
            return false;
    }
    return d->has_name;
}

static bool is_plain_line(const char *s)
{
    for (; *s; s++)
        if (((unsigned char)*s < 0x20 && *s != '\t') || *s == 0x7f)
            return false;
    return true;
}

static const char *multipart_value_of(const char *line, const char *name)
{
    size_t n = strlen(name);
    return !strncasecmp(line, name, n) && line[n] == ':'
               ? line + n + 1 + strspn(line + n + 1, " \t")
               : NULL;
}

static int multipart_read_line(const char *line, struct disposition *d, struct err *err)
{
    const char *v = multipart_value_of(line, "Content-Transfer-Encoding");
    if (v && strcasecmp(v, "binary") != 0 && strcasecmp(v, "8bit") != 0 &&
        strcasecmp(v, "7bit") != 0)
        return message_refuse(err, ERR_BAD_REQUEST, "form_encoded",
                              MESSAGE_ARGS(MESSAGE_STR("encoding", v)));
    if ((v = multipart_value_of(line, "Content-Disposition"))) {
        size_t n = strlen("form-data");
        if (d->is_there || strncasecmp(v, "form-data", n) != 0 || v[n] != ';' ||
            !read_disposition(v + n + 1, d))
            v = NULL;
        d->is_there = true;
    } else {
        v = line;
    }
    if (!v || !strchr(line, ':') || !is_plain_line(line))
        return message_refuse(err, ERR_BAD_REQUEST, "form_bad_head", MESSAGE_NO_ARGS);
    return 0;
}

/* Whole, with the empty line. */
static int end_head(struct multipart *m, struct err *err)
{
    struct disposition d = {0};
    char *s = m->head.data;
    int r = strlen(s) == m->head.len
                ? 0
                : message_refuse(err, ERR_BAD_REQUEST, "form_bad_head", MESSAGE_NO_ARGS);
    for (char *end; r == 0 && (end = strstr(s, "\r\n")) && end != s; s = end + 2) {
        *end = 0;
        r = multipart_read_line(s, &d, err);
    }
    if (r == 0 && !d.is_there)
        r = message_refuse(err, ERR_BAD_REQUEST, "form_no_name", MESSAGE_NO_ARGS);
    buf_reset(&m->head);
    m->step = DATA;
    return r < 0 ? r : m->to.part(d.name, d.has_file ? d.file : NULL, m->to.arg, err);
}

static int add_head(struct multipart *m, const char *p, size_t n, size_t *ret_used, struct err *err)
{
    const char *line = memchr(p, '\n', n);
    size_t take = line ? (size_t)(line - p) + 1 : n;
    *ret_used = take;
    if (buf_add(&m->head, p, take) < 0)
        return message_refuse(err, ERR_BAD_REQUEST, "form_long_head",
                              MESSAGE_ARGS(MESSAGE_NUM("most", MULTIPART_HEAD_MAX)));
    const struct buf *h = &m->head;
    bool whole = line && h->len >= 2 && !memcmp(h->data + h->len - 2, "\r\n", 2) &&
                 (h->len == 2 || (h->len >= 4 && !memcmp(h->data + h->len - 4, "\r\n", 2)));
    return whole ? end_head(m, err) : 0;
}

/* ---- data ---- */

static int broken(struct err *err)
{
    return message_refuse(err, ERR_BAD_REQUEST, "form_broken", MESSAGE_NO_ARGS);
}

static int add_data(struct multipart *m, const char *p, size_t n, size_t *ret_used, struct err *err)
{
    size_t i = 0;
    while (i < n && m->matched < m->len) {
        int r = 0;
        if (m->matched && p[i] == m->delimiter[m->matched]) {
            m->matched++;
            i++;
        } else if (m->matched) {
            if (m->step == FIRST)
                return broken(err);
            r = m->to.data(m->delimiter, m->matched, m->to.arg, err);
            m->matched = 0;
        } else {
            const char *cr = memchr(p + i, '\r', n - i);
            size_t run = cr ? (size_t)(cr - p) - i : n - i;
            if (run)
                r = m->to.data(p + i, run, m->to.arg, err);
            m->matched = cr != NULL;
            i += run + (cr != NULL);
        }
        if (r < 0)
            return r;
    }
    if (m->matched == m->len) {
        m->matched = 0;
        m->step = AFTER;
    }
    *ret_used = i;
    return 0;
}

/* What stands behind a delimiter, byte by byte: a new line, or the end. */
static int add_mark(struct multipart *m, char c, struct err *err)
{
    static const struct {
        enum step from;
        char c;
        enum step to;
    } steps[] = {
        {AFTER, '\r', AFTER_CR}, {AFTER_CR, '\n', HEAD}, {AFTER, '-', AFTER_DASH},
        {AFTER_DASH, '-', END},  {END, '\r', END_CR},    {END_CR, '\n', OVER},
    };
    for (size_t i = 0; i < array_len(steps); i++)
        if (steps[i].from == m->step && steps[i].c == c) {
            m->step = steps[i].to;
            return 0;
        }
    return broken(err);
}

int multipart_add(struct multipart *m, const char *p, size_t n, struct err *err)
{
    for (size_t used = 0; n; p += used, n -= used) {
        int r;
        used = 1;
        if (m->step == FIRST || m->step == DATA)
            r = add_data(m, p, n, &used, err);
        else if (m->step == HEAD)
            r = add_head(m, p, n, &used, err);
        else
            r = add_mark(m, *p, err);
        if (r < 0)
            return r;
    }
    return 0;
}

int multipart_end(const struct multipart *m, struct err *err)
{
    return m->step == END || m->step == OVER
               ? 0
               : message_refuse(err, ERR_BAD_REQUEST, "form_cut", MESSAGE_NO_ARGS);
}
