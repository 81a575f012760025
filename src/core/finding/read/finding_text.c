/* SPDX-License-Identifier: Apache-2.0 */
/* finding_text.c - see finding_text.h.
 *
 * Prefixes come in any order and number, so each kind has a function that takes it off the
 * front if it is there, and they are asked in turn until none does. A wrong guess costs
 * little: rules are searched anywhere in the body. */
#include "core/finding/read/finding_text.h"

#include <ctype.h>
#include <string.h>

#include "base/mem.h"

/* What is left to look at, and what was found so far. */
struct cut {
    const char *p, *end;
    struct finding_text *t;
    bool place;        /* a time or a level came before */
    const char *begin; /* of the line: what stands there is first */
};

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static size_t digits(const char *p, const char *end)
{
    size_t n = 0;
    while (p + n < end && is_digit(p[n]))
        n++;
    return n;
}

static bool finding_text_starts_at(const struct cut *c, size_t at, const char *word)
{
    size_t n = strlen(word);
    return (size_t)(c->end - c->p) >= at + n && !memcmp(c->p + at, word, n);
}

static bool starts(const struct cut *c, const char *word)
{
    return finding_text_starts_at(c, 0, word);
}

/* The length of an escape sequence at p, 0 if there is none. */
static size_t escape_length(const char *p, const char *end)
{
    const char *q = p + 1;
    if (*p != '\033' || q >= end)
        return 0;
    if (*q == ']') { /* a title or a link: up to BEL or ST */
        while (q < end && *q != '\a' && *q != '\033')
            q++;
        return (size_t)(q - p) + (q < end && *q == '\a');
    }
    if (*q != '[')
        return 2;
    q++;
    while (q < end && !(*q >= '@' && *q <= '~'))
        q++;
    return (size_t)(q - p) + (q < end);
}

static size_t finding_text_clean(const char *line, size_t n, char *out)
{
    size_t len = 0;
    for (const char *p = line, *end = line + n; p < end;) {
        const char *plain = p;
        while (p < end && (unsigned char)*p >= ' ' && *p != 0x7f)
            p++;
        memcpy(out + len, plain, (size_t)(p - plain));
        len += (size_t)(p - plain);
        if (p == end)
            break;
        size_t skip = escape_length(p, end);
        if (*p == '\t')
            out[len++] = ' ';
        p += skip ? skip : 1;
    }
    while (len && out[len - 1] == ' ')
        len--;
    out[len] = '\0';
    return len;
}

static enum text_level level_of(const char *p, size_t n)
{
    static const struct {
        const char *word;
        enum text_level level;
    } words[] = {
        {"DEBUG", LEVEL_DEBUG},     {"INFO", LEVEL_INFO},    {"WARNING", LEVEL_WARNING},
        {"WARN", LEVEL_WARNING},    {"ERROR", LEVEL_ERROR},  {"CRITICAL", LEVEL_FATAL},
        {"FATAL", LEVEL_FATAL},     {"NOTICE", LEVEL_INFO},  {"Warning", LEVEL_WARNING},
        {"warning", LEVEL_WARNING}, {"error", LEVEL_ERROR},  {"info", LEVEL_INFO},
        {"critical", LEVEL_FATAL},  {"SEVERE", LEVEL_ERROR}, {"TRACE", LEVEL_DEBUG},
    };
    for (size_t i = 0; i < array_len(words); i++)
        if (strlen(words[i].word) == n && !memcmp(words[i].word, p, n))
            return words[i].level;
    return LEVEL_NONE;
}

/* The level of glog's letter: E0429, [E429. */
static enum text_level letter_level(char c)
{
    return c == 'I'               ? LEVEL_INFO
           : c == 'W'             ? LEVEL_WARNING
           : c == 'E'             ? LEVEL_ERROR
           : c == 'F' || c == 'C' ? LEVEL_FATAL
                                  : LEVEL_NONE;
}

static void set_level(struct finding_text *t, enum text_level level)
{
    t->level = level ? level : t->level;
}

/* Before the name of a process a low level is of who passed its line on. */
static void forget_level(struct finding_text *t)
{
    t->level = t->level < LEVEL_ERROR ? LEVEL_NONE : t->level;
}

static void finding_text_mix(struct finding_text *t, const char *p, size_t n)
{
    uint64_t h = t->stream ? t->stream : 0xcbf29ce484222325U;
    for (size_t i = 0; i < n; i++)
        h = (h ^ (unsigned char)p[i]) * 0x100000001b3U;
    t->stream = h;
}

/* │ ╭ ─ ┃ and the ❱ of rich. */
static bool take_box(struct cut *c)
{
    const char *p = c->p;
    while (c->end - p >= 3 && (unsigned char)p[0] == 0xe2 &&
           ((unsigned char)p[1] == 0x94 || (unsigned char)p[1] == 0x95 ||
            ((unsigned char)p[1] == 0x9d && (unsigned char)p[2] == 0xb1)))
        p += 3;
    if (p == c->p)
        return false;
    c->t->boxed = true;
    c->p = p;
    return true;
}

/* The value after name= inside [p, end): up to a comma, a blank or the end. */
static struct text_part finding_text_value_of(const char *p, const char *end, const char *name)
{
    size_t n = strlen(name);
    for (; p + n < end; p++)
        if (*p == *name && !memcmp(p, name, n)) {
            const char *q = p + n;
            while (q < end && *q != ',' && *q != ' ' && *q != ')')
                q++;
            return (struct text_part){p + n, (size_t)(q - p) - n};
        }
    return (struct text_part){0};
}

static bool is_ray_word(const char *p, size_t n)
{
    static const char *const words[] = {"raylet", "autoscaler", "gcs_server", "scheduler"};
    for (size_t i = 0; i < array_len(words); i++)
        if (n >= strlen(words[i]) && !memcmp(p, words[i], strlen(words[i])))
            return true;
    return false;
}

/* The name before the first blank, comma or bracket; "pid=9" has none. */
static struct text_part finding_text_name_of(const char *p, const char *end)
{
    size_t n = 0;
    while (p + n < end && !strchr(" ,=", p[n]))
        n++;
    return (struct text_part){p, p + n < end && p[n] == '=' ? 0 : n};
}

static void set_part(struct text_part *to, struct text_part part)
{
    if (part.n)
        *to = part;
}

/* (WorkerDict pid=1, ip=10.0.0.1), (raylet), (EngineCore_0 pid=7), (pid=9). */
static bool take_actor(struct cut *c)
{
    enum { LONGEST = 160 };
    if (c->p >= c->end || *c->p != '(')
        return false;
    size_t room = (size_t)(c->end - c->p);
    const char *close = memchr(c->p, ')', room < LONGEST ? room : LONGEST);
    if (!close)
        return false;
    const char *p = c->p + 1;
    struct text_part pid = finding_text_value_of(p, close, "pid=");
    if (!pid.n && !is_ray_word(p, (size_t)(close - p)))
        return false;
    set_part(&c->t->actor, finding_text_name_of(p, close));
    set_part(&c->t->pid, pid);
    set_part(&c->t->node, finding_text_value_of(p, close, "ip="));
    set_part(&c->t->rank, finding_text_value_of(p, close, "rank="));
    finding_text_mix(c->t, p, (size_t)(close - p));
    if (pid.n)
        forget_level(c->t);
    c->p = close + 1;
    return true;
}

/* The length of the word before a rank in brackets; 0: there is none. */
static size_t rank_word(const char *p, const char *end)
{
    static const char *const words[] = {"rank ",   "rank",    "Rank ", "Rank",
                                        "default", "trainer", "RANK"};
    for (size_t i = 0; i < array_len(words); i++)
        if ((size_t)(end - p) > strlen(words[i]) && !memcmp(p, words[i], strlen(words[i])))
            return strlen(words[i]);
    return 0;
}

/* Behind the closing bracket: ":", "<stderr>:" or nothing. */
static size_t rank_tail(const char *p, const char *end)
{
    if (end - p >= 9 && (!memcmp(p, "<stderr>:", 9) || !memcmp(p, "<stdout>:", 9)))
        return 9;
    return p < end && *p == ':';
}

/* [rank3]: [Rank 3] [default3]: [3]: [1,3]<stderr>: */
static bool take_rank(struct cut *c)
{
    if (c->p >= c->end || *c->p != '[')
        return false;
    size_t word = rank_word(c->p + 1, c->end);
    const char *p = c->p + 1 + word;
    size_t n = digits(p, c->end);
    if (!word && n && p + n < c->end && p[n] == ',') { /* mpirun: [job,rank] */
        p += n + 1;
        n = digits(p, c->end);
    }
    if (!n || p + n >= c->end || p[n] != ']')
        return false;
    size_t tail = rank_tail(p + n + 1, c->end);
    if (!word && !tail)
        return false;
    c->t->rank = (struct text_part){p, n};
    finding_text_mix(c->t, p, n);
    forget_level(c->t);
    c->p = p + n + 1 + tail;
    return true;
}

/* 3: of srun --label; rank 3: */
static bool take_label(struct cut *c)
{
    const char *p = c->p;
    if (starts(c, "rank ") || starts(c, "Rank "))
        p += 5;
    size_t n = digits(p, c->end);
    if (!n || n > 4 || c->end - p <= (ptrdiff_t)n + 1 || p[n] != ':' || p[n + 1] != ' ')
        return false;
    c->t->rank = (struct text_part){p, n};
    finding_text_mix(c->t, p, n);
    c->p = p + n + 1;
    return true;
}

/* True if p looks like form: '#' is a digit, ' ' a blank or a T. */
static bool has_form(const char *p, const char *end, const char *form)
{
    size_t n = strlen(form);
    if ((size_t)(end - p) < n)
        return false;
    for (size_t i = 0; i < n; i++) {
        bool fits = form[i] == '#'   ? is_digit(p[i])
                    : form[i] == ' ' ? p[i] == ' ' || p[i] == 'T'
                                     : p[i] == form[i];
        if (!fits)
            return false;
    }
    return true;
}

/* Behind the seconds: ,117 or .117, then Z or +01:00. */
static size_t time_tail(const char *p, const char *end)
{
    const char *q = p;
    if (end - q >= 2 && (*q == ',' || *q == '.') && is_digit(q[1]))
        q += 1 + digits(q + 1, end);
    if (q < end && *q == 'Z')
        q++;
    else if (has_form(q, end, "+##:##") || has_form(q, end, "-##:##"))
        q += 6;
    else if (has_form(q, end, "+####") || has_form(q, end, "-####"))
        q += 5;
    return (size_t)(q - p);
}

/* How long a time at p is; 0: there is none. */
static size_t time_length(const char *p, const char *end)
{
    static const char *const forms[] = {"####-##-## ##:##:##",
                                        "####-##-##, ##:##:##",
                                        "####/##/## ##:##:##",
                                        "##-## ##:##:##",
                                        "##/##/## ##:##:##",
                                        "##/##/#### ##:##:##",
                                        "##:##:##"};
    for (size_t i = 0; i < array_len(forms); i++)
        if (has_form(p, end, forms[i])) {
            size_t n = strlen(forms[i]);
            return n + time_tail(p + n, end);
        }
    return 0;
}

static bool take_time(struct cut *c)
{
    size_t n = time_length(c->p, c->end);
    if (!n)
        return false;
    if (!c->t->time.n)
        c->t->time = (struct text_part){c->p, n};
    c->p += n;
    c->place = true;
    return true;
}

/* Oct 04 13:19:39 host program[pid]: */
static bool take_syslog(struct cut *c)
{
    static const char months[] = "JanFebMarAprMayJunJulAugSepOctNovDec";
    const char *p = c->p;
    if (c->end - p < 20 || p[3] != ' ')
        return false;
    char month[4] = {p[0], p[1], p[2], '\0'};
    const char *at = strstr(months, month);
    if (!at || (at - months) % 3 || time_length(p + 7, c->end) < 8)
        return false;
    const char *host = p + 7 + time_length(p + 7, c->end);
    const char *q = host + 1;
    while (q < c->end && *q != ' ')
        q++;
    if (q >= c->end || *host != ' ')
        return false;
    c->t->time = (struct text_part){p, (size_t)(host - p)};
    c->t->node = (struct text_part){host + 1, (size_t)(q - host) - 1};
    const char *colon = memchr(q, ':', (size_t)(c->end - q) < 80 ? (size_t)(c->end - q) : 80);
    c->p = colon && colon + 1 < c->end && colon[1] == ' ' ? colon + 1 : q;
    return true;
}

/* "INFO error rate 0.1": a small word behind a level is of the message. */
static bool may_be_level(const struct cut *c, char after)
{
    return c->p[0] <= 'Z' || (c->place && (!c->t->level || after != ' '));
}

/* LEVEL with what parts it from the message; E0000 00:00:17.. 34 file.cc:12] of glog. */
static bool take_level(struct cut *c)
{
    size_t n = 0;
    while (c->p + n < c->end && isalpha((unsigned char)c->p[n]) && n < 9)
        n++;
    enum text_level level = level_of(c->p, n);
    if (level && c->p + n < c->end && strchr(" :|]", c->p[n]) && may_be_level(c, c->p[n])) {
        set_level(c->t, level);
        c->p += n + (c->p[n] == ':');
        c->place = true;
        return true;
    }
    n = digits(c->p + 1, c->end);
    if (c->end - c->p < 12 || !letter_level(*c->p) || n < 3 || n > 4 || c->p[1 + n] != ' ')
        return false;
    set_level(c->t, letter_level(*c->p));
    c->p += 1 + n;
    c->place = true;
    return true;
}

/* Length of file.py:12 or file.cc:12: at p (with the function that may follow), 0: none. */
static size_t place_length(const char *p, const char *end)
{
    const char *q = p;
    while (q < end && (isalnum((unsigned char)*q) || strchr("_./-<>", *q)))
        q++;
    if (q - p < 4 || q + 1 >= end || *q != ':' || !memchr(p, '.', (size_t)(q - p)))
        return 0;
    size_t n = digits(q + 1, end);
    return n ? (size_t)(q - p) + 1 + n : 0;
}

/* "812.1" of the kernel, a pid. */
static bool is_number(const char *p, const char *end)
{
    size_t n = digits(p, end);
    if (n && p + n < end && p[n] == '.')
        n += 1 + digits(p + n + 1, end);
    return n && p + n == end;
}

/* glog's "E429 13:55:49.38 34 file.cpp:17" and "E file.cpp:17". */
static bool read_glog(struct cut *in)
{
    size_t n = digits(in->p + 1, in->end);
    if (!letter_level(*in->p) || in->end - in->p < 5)
        return false;
    if (in->p[1] == ' ' && place_length(in->p + 2, in->end)) {
        set_level(in->t, letter_level(*in->p));
        return true;
    }
    if (n < 2 || n > 4)
        return false;
    set_level(in->t, letter_level(*in->p));
    in->p += 1 + n;
    in->p += in->p < in->end;
    (void)take_time(in); /* only for what it notes */
    return true;
}

/* A time, after which Ray has "E pid tid". */
static bool finding_text_read_time(struct cut *in)
{
    if (!take_time(in))
        return false;
    if (in->end - in->p > 2 && in->p[0] == ' ' && in->p[2] == ' ')
        set_level(in->t, letter_level(in->p[1]));
    return true;
}

/* "error    ", as some fill it up. */
static enum text_level padded_level(const char *p, const char *end)
{
    while (end > p && end[-1] == ' ')
        end--;
    return level_of(p, (size_t)(end - p));
}

/* Take what stands between brackets if it is a time, a level, a place, a pid or glog's. */
static bool take_bracket(struct cut *c)
{
    enum { LONGEST = 120 };
    if (c->p >= c->end || *c->p != '[')
        return false;
    size_t room = (size_t)(c->end - c->p);
    const char *close = memchr(c->p, ']', room < LONGEST ? room : LONGEST);
    struct cut in = {.p = c->p + 1, .end = close, .t = c->t, .place = true};
    while (close && in.p < close && *in.p == ' ')
        in.p++;
    if (!close || in.p == close)
        return false;
    enum text_level level = padded_level(in.p, close);
    set_level(c->t, level);
    if (!level && !finding_text_read_time(&in) && !read_glog(&in) && !place_length(in.p, close) &&
        !is_number(in.p, close))
        return false;
    c->p = close + 1;
    c->place = true;
    return true;
}

/* host:12:34 [0] of NCCL. */
static bool take_nccl(struct cut *c)
{
    const char *p = c->p;
    while (p < c->end && (isalnum((unsigned char)*p) || strchr("-_.", *p)))
        p++;
    size_t pid = p < c->end && *p == ':' ? digits(p + 1, c->end) : 0;
    const char *q = p + 1 + pid;
    size_t tid = pid && q < c->end && *q == ':' ? digits(q + 1, c->end) : 0;
    const char *close = tid ? memchr(q, ']', (size_t)(c->end - q)) : NULL;
    if (!close || p == c->p || memcmp(q + 1 + tid, " [", 2) != 0)
        return false;
    c->t->node = (struct text_part){c->p, (size_t)(p - c->p)};
    c->t->pid = (struct text_part){p + 1, pid};
    finding_text_mix(c->t, c->p, (size_t)(q - c->p));
    c->p = close + 1;
    if (starts(c, " NCCL INFO "))
        set_level(c->t, LEVEL_INFO);
    return true;
}

/* engine.py:389] and node_manager.cc:3069: before the message. */
static bool take_place(struct cut *c)
{
    size_t n = place_length(c->p, c->end);
    bool is_assertion =
        n && memmem(c->p, n, ".cu:", 4); /* of a kernel: the place is what it says */
    if (n && !is_assertion && c->p + n < c->end &&
        (c->p[n] == ']' || (c->p[n] == ':' && c->place))) {
        c->p += n + 1;
        return true;
    }
    return take_nccl(c);
}

/* " - " and "| " between the parts of a prefix. */
static bool take_dash(struct cut *c)
{
    if (starts(c, "> ") || starts(c, "| ")) { /* of who quotes another program's lines */
        c->p++;
        return true;
    }
    if (!c->place || c->end - c->p < 2 || !(*c->p == '-' || *c->p == '|') ||
        !(c->p[1] == ' ' || c->p[1] == '-'))
        return false;
    c->p += 1 + (c->p[1] == '-');
    return true;
}

/* The name of a logger between a time and a level: "train.loop - INFO - "; the stream that a
 * launcher names: "stderr: ". */
static bool take_logger(struct cut *c)
{
    enum { LONGEST = 60 };
    if (starts(c, "stderr: ") || starts(c, "stdout: ")) {
        c->p += 7;
        return true;
    }
    size_t n = 0;
    while (c->p + n < c->end && n < LONGEST &&
           (isalnum((unsigned char)c->p[n]) || strchr("_.", c->p[n])))
        n++;
    if (!c->place || !n || !finding_text_starts_at(c, n, " - "))
        return false;
    size_t word = n + 3, k = 0;
    while (c->p + word + k < c->end && isalpha((unsigned char)c->p[word + k]))
        k++;
    if (!level_of(c->p + word, k))
        return false;
    c->p += word;
    return true;
}

/* What those that carry a line put before it. */
static bool take_carrier(struct cut *c)
{
    struct carrier of;
    unsigned place = (c->p == c->begin ? CARRIER_FIRST : 0) | (c->place ? CARRIER_AFTER_TIME : 0);
    if (!carrier_read(c->p, c->end, place, &of))
        return false;
    set_level(c->t, of.level);
    set_part(&c->t->node, of.node);
    set_part(&c->t->rank, of.rank);
    if (of.is_stream)
        finding_text_mix(c->t, c->p, of.n);
    if (c->p == c->begin)
        c->begin +=
            of.n + (c->p + of.n < c->end && c->p[of.n] == ' '); /* the line that it carries */
    c->p += of.n;
    return true;
}

/* "Thu " before the date, "<34>1 " of syslog. */
static bool take_day(struct cut *c)
{
    static const char days[] = "MonTueWedThuFriSatSun";
    const char *at = c->end - c->p > 4 && c->p[3] == ' ' ? memmem(days, 21, c->p, 3) : NULL;
    if (!at || (at - days) % 3 || !time_length(c->p + 4, c->end))
        return false;
    c->p += 4;
    return true;
}

static bool take_word(struct cut *c)
{
    return take_day(c) || take_syslog(c) || take_level(c);
}

/* What may begin with the byte that stands there. */
static bool take_any(struct cut *c)
{
    unsigned char b = (unsigned char)*c->p;
    if (b == 0xe2)
        return take_box(c);
    if (take_carrier(c))
        return true;
    if (b == '(')
        return take_actor(c);
    if (b == '[')
        return take_rank(c) || take_bracket(c);
    if (isalpha(b) && take_word(c))
        return true;
    if (is_digit((char)b) && take_time(c))
        return true;
    return take_place(c) || take_label(c) || take_dash(c) || take_logger(c);
}

static size_t blanks(struct cut *c)
{
    const char *from = c->p;
    while (c->p < c->end && *c->p == ' ')
        c->p++;
    return (size_t)(c->p - from);
}

/* Take off the end: " [repeated 2x across cluster]" and the right side of a box. */
static void cut_end(struct cut *c)
{
    static const char tail[] = "x across cluster]";
    const char *p = c->end;
    if (p - c->p > 30 && !memcmp(p - (sizeof(tail) - 1), tail, sizeof(tail) - 1))
        while (p > c->p && *p != '[')
            p--;
    c->end = p;
    while (c->t->boxed && c->end - c->p >= 3 && (unsigned char)c->end[-3] == 0xe2 &&
           ((unsigned char)c->end[-2] == 0x94 || (unsigned char)c->end[-2] == 0x95))
        c->end -= 3;
    while (c->end > c->p && c->end[-1] == ' ')
        c->end--;
}

/* Take off what is only guessed: of a worker that died Ray lists all that it may have died of. */
static void cut_guess(struct cut *c)
{
    static const char *const heads[] = {"common causes include", "potential root causes",
                                        "ossible causes include", "ossible reasons include",
                                        "otential causes include"};
    for (size_t i = 0; i < array_len(heads); i++) {
        const char *at = memmem(c->p, (size_t)(c->end - c->p), heads[i], strlen(heads[i]));
        if (at)
            c->end = at;
    }
}

/* The bytes before the line itself: a byte order mark; "job<tab>step<tab>" before the time, as gh
 * prints the logs of a run. */
static size_t finding_text_columns(const char *line, size_t n)
{
    enum { LONGEST = 240, MARK = 3 };
    const char *end = line + n, *p = line;
    bool has_mark = n >= MARK && !memcmp(line, "\xef\xbb\xbf", MARK);
    for (int tabs = 0; tabs < 2 && p; tabs++) {
        size_t room = (size_t)(end - p);
        p = memchr(p, '\t', room < LONGEST ? room : LONGEST);
        p = p ? p + 1 : NULL;
    }
    if (p && end - p > MARK && !memcmp(p, "\xef\xbb\xbf", MARK))
        p += MARK;
    return p && time_length(p, end) ? (size_t)(p - line) : has_mark ? MARK : 0;
}

void finding_text_read(const char *line, size_t n, char *out, struct finding_text *ret)
{
    enum { MOST_PREFIXES = 12 };
    *ret = (struct finding_text){0};
    size_t skip = finding_text_columns(line, n);
    size_t len = finding_text_clean(line + skip, n - skip, out);
    struct cut c = {.p = out, .begin = out, .end = out + len, .t = ret};
    ret->indent = blanks(&c);
    ret->whole = (struct text_part){c.p, (size_t)(c.end - c.p)};
    for (int i = 0; i < MOST_PREFIXES && c.p < c.end && take_any(&c); i++)
        ret->indent = blanks(&c);
    cut_end(&c);
    cut_guess(&c);
    ret->body = (struct text_part){c.p, (size_t)(c.end - c.p)};
}

/* The word behind `key`, to the next blank. */
static struct text_part word_behind(struct text_part in, const char *key)
{
    const char *at = in.n ? memmem(in.s, in.n, key, strlen(key)) : NULL, *end = in.s + in.n;
    struct text_part part = {.s = at ? at + strlen(key) : NULL};
    while (part.s && part.s + part.n < end && part.s[part.n] != ' ')
        part.n++;
    return part;
}

void finding_text_subject(struct finding_text *t)
{
    struct text_part pid = t->pid.n ? (struct text_part){0} : word_behind(t->body, "Worker PID: ");
    if (!pid.n || digits(pid.s, pid.s + pid.n) != pid.n)
        return;
    t->pid = pid;
    t->actor = (struct text_part){0};
    set_part(&t->node, word_behind(t->body, "Worker IP address: "));
}
