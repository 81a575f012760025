/* SPDX-License-Identifier: Apache-2.0 */
/* finding_unwrap.c - see finding_unwrap.h. A line of JSON that holds no message we know is passed
 * on as it is; so is one that is no JSON, among others that are. */
#define _GNU_SOURCE
#include "core/finding/read/finding_unwrap.h"

#include <string.h>
#include <strings.h>

#include "base/json.h"
#include "base/str.h"

/* Texts of a record which are its message; those that are sure need nothing beside them. */
#define MESSAGE(key, is_sure)                                                                      \
    {                                                                                              \
        key, "\"" key "\"", is_sure                                                                \
    }
static const struct {
    const char *key, *quoted;
    bool is_sure;
} MESSAGES[] = {MESSAGE("log", true),      MESSAGE("MESSAGE", true), MESSAGE("textPayload", true),
                MESSAGE("message", false), MESSAGE("msg", false),    MESSAGE("line", false)};
#undef MESSAGE
/* What no other JSON than a record of a log has. */
static const char *const BESIDE[] = {"time",   "timestamp", "@timestamp", "ts",          "_time",
                                     "level",  "levelname", "severity",   "stream",      "asctime",
                                     "logger", "datetime",  "kubernetes", "container_id"};
/* Texts that follow the message. */
static const char *const TRACES[] = {"exc_info",    "exc_text",   "exception",
                                     "stack_trace", "stacktrace", "traceback"};

void unwrap_init(struct unwrap *u)
{
    *u = (struct unwrap){.head = BUF_INIT(UNWRAP_HEAD),
                         .line = BUF_INIT(UNWRAP_LINE_MAX),
                         .text = BUF_INIT(2 * UNWRAP_LINE_MAX)};
}

void unwrap_release(struct unwrap *u)
{
    buf_release(&u->head);
    buf_release(&u->line);
    buf_release(&u->text);
}

/* ---- which form ---- */

static bool unwrap_is_record(const char *p, size_t n)
{
    for (size_t i = 0; n && *p == '{' && i < array_len(MESSAGES); i++)
        if (memmem(p, n, MESSAGES[i].quoted, strlen(MESSAGES[i].quoted)))
            return true;
    return false;
}

/* UTF-16 without its mark: of Latin text every other byte is zero. */
static enum unwrap_form unwrap_by_zeros(const char *p, size_t n)
{
    enum { FEWEST = 32 };
    size_t zeros[2] = {0};
    for (size_t i = 0; i < n; i++)
        zeros[i % 2] += !p[i];
    size_t half = n / 2;
    bool little = half >= FEWEST && zeros[1] * 10 > half * 6 && zeros[0] * 20 < half;
    bool big = half >= FEWEST && zeros[0] * 10 > half * 6 && zeros[1] * 20 < half;
    return little ? UNWRAP_UTF16LE : big ? UNWRAP_UTF16BE : UNWRAP_PLAIN;
}

enum unwrap_form unwrap_form_of(const char *p, size_t n)
{
    n = n < UNWRAP_HEAD ? n : UNWRAP_HEAD;
    if (n >= 2 && !memcmp(p, "\xff\xfe", 2))
        return UNWRAP_UTF16LE;
    if (n >= 2 && !memcmp(p, "\xfe\xff", 2))
        return UNWRAP_UTF16BE;
    for (const char *line = p, *end = p + n; line < end;) {
        const char *nl = memchr(line, '\n', (size_t)(end - line));
        size_t len = (size_t)((nl ? nl : end) - line);
        if (unwrap_is_record(line, len))
            return UNWRAP_JSON;
        line += len + 1;
    }
    return unwrap_by_zeros(p, n);
}

/* Zeros in a row are a hole, as logs have that were cut while they were written. */
bool unwrap_is_text(const char *p, size_t n)
{
    enum { PER_CENT = 4 };
    size_t odd = 0, zeros = 0;
    enum unwrap_form form = unwrap_form_of(p, n);
    if (form == UNWRAP_UTF16LE || form == UNWRAP_UTF16BE)
        return true;
    for (size_t i = 0; i < n; i++) {
        unsigned char c = (unsigned char)p[i];
        bool is_hole = !c && ((i && !p[i - 1]) || (i + 1 < n && !p[i + 1]));
        zeros += is_hole;
        odd += !is_hole && (c < '\a' || (c > '\r' && c < ' ' && c != '\033') || c == 0x7f);
    }
    return zeros < n && odd * 100 <= (n - zeros) * PER_CENT;
}

/* ---- one object ---- */

static const char *unwrap_message(const json_t *o, const json_t **ret_bytes)
{
    bool is_record = false;
    for (size_t i = 0; i < array_len(BESIDE); i++)
        is_record = is_record || json_object_get(o, BESIDE[i]);
    for (size_t i = 0; i < array_len(MESSAGES); i++) {
        const json_t *v = json_object_get(o, MESSAGES[i].key);
        if (!v || !(is_record || MESSAGES[i].is_sure))
            continue;
        if (json_is_string(v))
            return json_string_value(v);
        if (json_is_array(v) && str_eq(MESSAGES[i].key, "MESSAGE"))
            *ret_bytes = v;
    }
    const json_t *inner = json_object_get(o, "jsonPayload");
    return json_is_object(inner) ? json_get_str(inner, "message", NULL) : NULL;
}

/* journald writes what is no UTF-8 as a list of its bytes. */
static void unwrap_add_bytes(struct buf *out, const json_t *list)
{
    for (size_t i = 0; i < json_array_size(list); i++)
        (void)buf_addc(out, (char)json_integer_value(json_array_get(list, i))); /* cut: fine */
}

static void unwrap_add_level(struct buf *out, const json_t *o)
{
    static const char *const keys[] = {"level", "levelname", "severity"};
    static const char *const words[] = {"DEBUG",   "INFO",  "NOTICE",   "WARN",
                                        "WARNING", "ERROR", "CRITICAL", "FATAL"};
    for (size_t i = 0; i < array_len(keys); i++) {
        const char *level = json_get_str(o, keys[i], NULL);
        for (size_t k = 0; level && k < array_len(words); k++)
            if (!strcasecmp(level, words[k])) {
                (void)buf_addf(out, "%s ", words[k]); /* cut: fine, here and below */
                return;
            }
    }
}

/* Whether the next record goes on with this one's line: docker and CRI cut long lines. */
static bool unwrap_goes_on(const json_t *o)
{
    const char *tag = json_get_str(o, "_p", json_get_str(o, "logtag", NULL));
    bool is_docker = json_get_str(o, "log", NULL) && json_get_str(o, "stream", NULL);
    return tag ? str_eq(tag, "P") : is_docker;
}

/* The message of a record behind what out has. False: it is none. *ret_ends: a line ends with it.
 */
static bool unwrap_record(const char *p, size_t n, struct buf *out, bool *ret_ends)
{
    _cleanup_(json_unrefp) json_t *o = NULL;
    const json_t *bytes = NULL;
    if (!unwrap_is_record(p, n) || json_parse(p, n, UNWRAP_LINE_MAX, &o, NULL) < 0)
        return false;
    const char *message = unwrap_message(o, &bytes);
    if (!message && !bytes)
        return false;
    unwrap_add_level(out, o);
    if (message)
        (void)buf_adds(out, message);
    else
        unwrap_add_bytes(out, bytes);
    for (size_t i = 0; i < array_len(TRACES); i++) {
        const char *more = json_get_str(o, TRACES[i], NULL);
        if (more)
            (void)buf_addf(out, "\n%s", more);
    }
    bool is_open = !out->len || out->data[out->len - 1] != '\n';
    *ret_ends = !is_open || !unwrap_goes_on(o);
    if (is_open && *ret_ends)
        (void)buf_addc(out, '\n');
    return true;
}

/* ---- lines ---- */

static void unwrap_tell(struct unwrap *u, struct buf *text, unwrap_f *told, void *arg)
{
    struct unwrapped out = {
        .text = buf_str(text), .n = text->len, .bytes = u->bytes, .lines = u->lines};
    u->bytes = u->lines = 0;
    if (out.n || out.bytes)
        told(&out, arg);
    buf_reset(text);
}

static void unwrap_json_line(struct unwrap *u, unwrap_f *told, void *arg)
{
    const char *p = buf_str(&u->line);
    size_t n = u->line.len;
    bool ends = true;
    while (n && strchr("\r\n ", p[n - 1]) && p[n - 1])
        n--;
    size_t skip = strspn(p, " ");
    if (skip > n || !unwrap_record(p + skip, n - skip, &u->text, &ends))
        (void)buf_add(&u->text, p, u->line.len); /* cut: fine */
    buf_reset(&u->line);
    if (ends || u->text.failed || u->text.len > UNWRAP_LINE_MAX)
        unwrap_tell(u, &u->text, told, arg);
}

static void unwrap_json(struct unwrap *u, const char *p, size_t n, unwrap_f *told, void *arg)
{
    while (n) {
        const char *nl = memchr(p, '\n', n);
        size_t take = nl ? (size_t)(nl - p) + 1 : n, room = UNWRAP_LINE_MAX - u->line.len;
        bool is_whole = nl && take <= room;
        take = take < room ? take : room;
        (void)buf_add(&u->line, p, take); /* there is room */
        u->bytes += take;
        u->lines += is_whole;
        if (is_whole || u->line.len == UNWRAP_LINE_MAX)
            unwrap_json_line(u, told, arg);
        p += take;
        n -= take;
    }
}

static void unwrap_unit(struct unwrap *u, unsigned unit)
{
    unsigned high = u->high;
    u->high = 0;
    if (unit >= 0xd800 && unit < 0xdc00) {
        u->high = unit;
        return;
    }
    if (unit >= 0xdc00 && unit < 0xe000)
        unit = high ? 0x10000 + ((high - 0xd800) << 10) + (unit - 0xdc00) : 0xfffd;
    if (unit != 0xfeff)
        (void)buf_add_utf8(&u->line, unit); /* there is room */
}

static void unwrap_utf16(struct unwrap *u, const char *p, size_t n, unwrap_f *told, void *arg)
{
    enum { LONGEST = UNWRAP_LINE_MAX - 8 };
    for (size_t i = 0; i < n; i++) {
        unsigned byte = (unsigned char)p[i];
        u->bytes++;
        if (!u->half) {
            u->half = 0x100 | byte;
            continue;
        }
        unsigned first = u->half & 0xff;
        unsigned unit = u->form == UNWRAP_UTF16LE ? byte << 8 | first : first << 8 | byte;
        u->half = 0;
        unwrap_unit(u, unit);
        u->lines += unit == '\n';
        if (unit == '\n' || u->line.len > LONGEST)
            unwrap_tell(u, &u->line, told, arg);
    }
}

void unwrap_feed(struct unwrap *u, const char *p, size_t n, unwrap_f *told, void *arg)
{
    if (u->form == UNWRAP_JSON)
        unwrap_json(u, p, n, told, arg);
    else
        unwrap_utf16(u, p, n, told, arg);
}

void unwrap_end(struct unwrap *u, unwrap_f *told, void *arg)
{
    if (u->form == UNWRAP_JSON && u->line.len)
        unwrap_json_line(u, told, arg);
    unwrap_tell(u, u->form == UNWRAP_JSON ? &u->text : &u->line, told, arg);
    u->half = u->high = 0;
}
