/* SPDX-License-Identifier: Apache-2.0 */
/* answer.c - reads the answer of a server that nobody vouches for; see answer.h. */
#include "http/proxy/answer.h"

#include <errno.h>
#include <string.h>
#include <strings.h>

#include "base/str.h"

enum {
    SIZE_LINE_MAX = 1024, /* a chunk's size with its extensions */
    TRAILER_MAX = 8 << 10,
};

size_t answer_head_length(const char *text, size_t n, size_t seen)
{
    size_t from = seen > 3 ? seen - 3 : 0;
    const char *end = n > from ? memmem(text + from, n - from, "\r\n\r\n", 4) : NULL;
    return end ? (size_t)(end - text) + 4 : 0;
}

static bool answer_is_name(const char *s, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        unsigned char c = (unsigned char)s[i];
        bool is_plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
        if (!is_plain && (!c || !strchr("!#$%&'*+-.^_`|~", c)))
            return false;
    }
    return n > 0;
}

static bool answer_is_text(const char *s, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        unsigned char c = (unsigned char)s[i];
        if ((c < 0x20 && c != '\t') || c == 0x7f)
            return false;
    }
    return true;
}

/* "HTTP/1.1 200 Fine" */
static int answer_parse_status(const char *s, size_t n, struct answer *ret)
{
    if (n < 12 || strncmp(s, "HTTP/1.", 7) != 0 || (s[7] != '0' && s[7] != '1') || s[8] != ' ' ||
        (n > 12 && s[12] != ' ') || !answer_is_text(s, n))
        return -EBADMSG;
    for (size_t i = 9; i < 12; i++)
        if (s[i] < '0' || s[i] > '9')
            return -EBADMSG;
    ret->status = (s[9] - '0') * 100 + (s[10] - '0') * 10 + (s[11] - '0');
    return ret->status < 100 || ret->status > 599 ? -EBADMSG : 0;
}

static int answer_parse_field(char *s, size_t n, struct answer *ret)
{
    char *colon = memchr(s, ':', n);
    if (!colon || !answer_is_name(s, (size_t)(colon - s)) || !answer_is_text(s, n) ||
        ret->n == ANSWER_FIELDS_MAX)
        return -EBADMSG;
    char *value = colon + 1, *end = s + n;
    while (value < end && (*value == ' ' || *value == '\t'))
        value++;
    while (end > value && (end[-1] == ' ' || end[-1] == '\t'))
        end--;
    *colon = 0;
    *end = 0;
    ret->fields[ret->n++] = (struct answer_field){s, value};
    return 0;
}

/* The value of a field that may stand there once; -EBADMSG: it stands there twice. */
static int answer_find_one(const struct answer *a, const char *name, const char **ret)
{
    for (size_t i = 0; i < a->n; i++) {
        if (strcasecmp(a->fields[i].name, name) != 0)
            continue;
        if (*ret)
            return -EBADMSG;
        *ret = a->fields[i].value;
    }
    return 0;
}

static bool answer_has_body(const struct answer *a, bool to_head)
{
    return !to_head && a->status >= 200 && a->status != 204 && a->status != 304;
}

/* The framing fields: at most one of each, and not both. */
static int answer_parse_framing(struct answer *a, bool to_head, bool is_old)
{
    const char *length = NULL, *encoding = NULL;
    if (answer_find_one(a, "Content-Length", &length) < 0 ||
        answer_find_one(a, "Transfer-Encoding", &encoding) < 0)
        return -EBADMSG;
    a->length = -1;
    if (encoding && (length || is_old || strcasecmp(encoding, "chunked") != 0))
        return -EBADMSG;
    if (length &&
        (*length < '0' || *length > '9' || str_to_int(length, 0, INT64_MAX, &a->length, NULL) < 0))
        return -EBADMSG;
    a->body = !answer_has_body(a, to_head) ? ANSWER_NONE
              : encoding                   ? ANSWER_CHUNKED
              : length                     ? ANSWER_LENGTH
                                           : ANSWER_UNTIL_CLOSE;
    return 0;
}

int answer_parse(char *text, size_t n, bool to_head, struct answer *ret, struct err *err)
{
    char *p = text, *end = text + n;
    memset(ret, 0, offsetof(struct answer, fields));
    for (bool is_first = true; p < end; is_first = false) {
        char *stop = memmem(p, (size_t)(end - p), "\r\n", 2);
        if (!stop)
            return err_set(err, -EBADMSG, "its head has no end");
        size_t len = (size_t)(stop - p);
        if (!len)
            break;
        int r = is_first ? answer_parse_status(p, len, ret) : answer_parse_field(p, len, ret);
        if (r < 0)
            return err_set(err, r, "%s of its head is not HTTP/1",
                           is_first ? "the first line" : "a line");
        p = stop + 2;
    }
    if (!ret->status)
        return err_set(err, -EBADMSG, "it has no head");
    return answer_parse_framing(ret, to_head, text[7] == '0') < 0
               ? err_set(err, -EBADMSG, "the length of its body is ambiguous")
               : 0;
}

const char *answer_find(const struct answer *a, const char *name)
{
    for (size_t i = 0; i < a->n; i++)
        if (!strcasecmp(a->fields[i].name, name))
            return a->fields[i].value;
    return NULL;
}

bool answer_list_has(const char *list, const char *word)
{
    size_t n = strlen(word);
    for (const char *p = list; *p;) {
        p += strspn(p, ", \t");
        size_t len = strcspn(p, ", \t");
        if (len == n && !strncasecmp(p, word, n))
            return true;
        p += len;
    }
    return false;
}

/* ---- chunks ---- */

enum dechunk_state { SIZE, EXTENSION, SIZE_LF, CONTENT, CONTENT_CR, CONTENT_LF, TRAILER, LAST_LF };

static int dechunk_size(struct dechunk *d, char c)
{
    int digit = c >= '0' && c <= '9'   ? c - '0'
                : c >= 'a' && c <= 'f' ? c - 'a' + 10
                : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                       : -1;
    if (digit >= 0) {
        if (d->left >> 55)
            return -EBADMSG;
        d->left = d->left << 4 | (unsigned)digit;
        return 0;
    }
    if (!d->line || (c != '\r' && c != ';' && c != ' '))
        return -EBADMSG;
    d->state = c == '\r' ? SIZE_LF : EXTENSION;
    return 0;
}

/* Lines of fields behind the last chunk, which are read and dropped; an empty one is the end. */
static int dechunk_trailer(struct dechunk *d, char c)
{
    if (++d->trailer > TRAILER_MAX || c == '\n')
        return -EBADMSG;
    if (c == '\r')
        d->state = LAST_LF;
    return 0;
}

static int dechunk_byte(struct dechunk *d, char c)
{
    switch ((enum dechunk_state)d->state) {
    case SIZE:
    case EXTENSION:
        if (d->line > SIZE_LINE_MAX)
            return -EBADMSG;
        if (d->state == SIZE) {
            int r = dechunk_size(d, c);
            d->line++;
            return r;
        }
        d->line++;
        if (c == '\r')
            d->state = SIZE_LF;
        return c == '\n' ? -EBADMSG : 0;
    case SIZE_LF:
        d->line = 0;
        d->state = d->left ? CONTENT : TRAILER;
        return c == '\n' ? 0 : -EBADMSG;
    case CONTENT_CR:
        d->state = CONTENT_LF;
        return c == '\r' ? 0 : -EBADMSG;
    case CONTENT_LF:
        d->state = SIZE;
        return c == '\n' ? 0 : -EBADMSG;
    case TRAILER:
        d->line++;
        return dechunk_trailer(d, c);
    case LAST_LF:
        if (c != '\n')
            return -EBADMSG;
        d->is_over = d->line == 1;
        d->state = TRAILER;
        d->line = 0;
        return 0;
    case CONTENT:
        break;
    }
    return -EBADMSG; /* content is no line */
}

int64_t dechunk_step(struct dechunk *d, char *p, size_t n)
{
    size_t out = 0;
    for (size_t i = 0; i < n && !d->is_over;) {
        if (d->state != CONTENT) {
            if (dechunk_byte(d, p[i++]) < 0)
                return -EBADMSG;
            continue;
        }
        size_t k = n - i < d->left ? n - i : (size_t)d->left;
        memmove(p + out, p + i, k);
        out += k;
        i += k;
        d->left -= k;
        if (!d->left)
            d->state = CONTENT_CR;
    }
    return (int64_t)out;
}
