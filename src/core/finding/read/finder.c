/* SPDX-License-Identifier: Apache-2.0 */
/* finder.c - the reading half of finding.h: bytes to pieces to events.
 *
 * A piece is what stands between two ends of line (\n, or the \r of a progress bar), or so many
 * bytes of a longer line. Only pieces that hold a rule's needle are looked at. Of a line the
 * heaviest cause counts, unless a heavier rule says that such a line means nothing. Of each rule
 * the first lines and the last are kept, so that memory does not grow with the log. */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/str.h"
#include "core/finding/read/finding_finder.h"
#include "core/finding/read/finding_piece.h"

enum {
    MATCH_LIMIT = 200000, /* steps of one search: a pattern that goes wild matches nothing */
    PART_MAX = 100,       /* bytes of a rank, a node, a time */
    QUIET_WEIGHT = 10,    /* of a cause in a line that is no error, or passes one on */
};

struct finder *finder_new(const struct finding_rules *rules)
{
    assert(rules->compiled);
    struct finder *f = xcalloc(1, sizeof(*f));
    f->rules = rules;
    f->line = 1;
    unwrap_init(&f->unwrap);
    f->events = xcalloc(rules->n, sizeof(*f->events));
    size_t words = 1;
    for (size_t i = 0; i < ASKED_COUNT; i++)
        if (finding_index_words(rules->index[i]) > words)
            words = finding_index_words(rules->index[i]);
    f->n_found = words;
    f->found = xcalloc(words, sizeof(*f->found));
    f->n_may = (rules->n_branches + 63) / 64;
    f->codes = xcalloc(rules->n_branches, sizeof(*f->codes));
    f->may = xcalloc(f->n_may, sizeof(*f->may));
    f->match = pcre2_match_data_create(1, NULL);
    f->context = pcre2_match_context_create(NULL);
    assert(f->match && f->context);
    (void)pcre2_set_match_limit(f->context, MATCH_LIMIT);
    f->body = xmalloc(FINDING_LINE_MAX + 1);
    f->folded = xmalloc(FINDING_LINE_MAX + 1);
    return f;
}

void finding_event_release(struct finding_event *e)
{
    free(e->quote.source);
    free(e->quote.text);
    free(e->rank);
    free(e->node);
    free(e->actor);
    free(e->pid);
    free(e->time);
    *e = (struct finding_event){0};
}

void finder_free(struct finder *f)
{
    if (!f)
        return;
    for (size_t i = 0; i < f->rules->n; i++) {
        for (size_t k = 0; k < EVENTS_FIRST; k++)
            finding_event_release(&f->events[i].first[k]);
        finding_event_release(&f->events[i].last);
    }
    for (size_t i = 0; i < f->n_streams; i++)
        finding_event_release(&f->streams[i].frame);
    for (size_t i = 0; i < f->n_sources; i++)
        free(f->sources[i]);
    free(f->sources);
    unwrap_release(&f->unwrap);
    free(f->events);
    free(f->found);
    free(f->hits.v);
    free(f->may);
    for (size_t i = 0; i < f->rules->n_branches; i++)
        pcre2_code_free(f->codes[i].code);
    free(f->codes);
    free(f->body);
    free(f->folded);
    pcre2_match_data_free(f->match);
    pcre2_match_context_free(f->context);
    free(f);
}

void finder_freep(struct finder **f)
{
    finder_free(*f);
}

/* A copy without what is no UTF-8, cut to max. */
static char *copy_text(const char *s, size_t n, size_t max)
{
    struct buf b = BUF_INIT(FINDING_LINE_MAX * 3);
    for (size_t i = 0; i < n && b.len < max;) {
        size_t plain = 0;
        while (i + plain < n && (unsigned char)s[i + plain] < 0x80 && b.len + plain < max)
            plain++;
        (void)buf_add(&b, s + i, plain); /* below its ceiling */
        i += plain;
        if (i >= n || b.len >= max)
            break;
        size_t k = str_utf8_length(s + i, n - i);
        (void)buf_add(&b, k ? s + i : "\xef\xbf\xbd", k ? k : 3); /* below its ceiling */
        i += k ? k : 1;
    }
    return buf_take(&b);
}

static char *copy_part(struct text_part p)
{
    return p.n ? copy_text(p.s, p.n, PART_MAX) : NULL;
}

#define ANY (~(uint64_t)0)

/* Where a piece stands. */
struct place {
    uint64_t at, offset, line;
};

static void finder_fill_event(struct finder *f,
                              struct finding_event *e,
                              const struct finding_rule *rule,
                              int weight,
                              const struct finding_text *t,
                              const struct place *where)
{
    struct finding_text about = *t;
    finding_text_subject(&about);
    finding_event_release(e);
    *e = (struct finding_event){
        .rule = rule,
        .class = rule->class,
        .weight = weight,
        .at = where->at,
        .progress = f->progress,
        .is_step = f->progress && f->progress_at == where->at,
        .quote = {.source = f->n_sources ? xstrdup(f->sources[f->n_sources - 1]) : NULL,
                  .offset = where->offset,
                  .line = where->line,
                  .text = copy_text(t->whole.s, t->whole.n, FINDING_QUOTE_MAX)},
        .rank = copy_part(about.rank),
        .node = copy_part(about.node),
        .actor = copy_part(about.actor),
        .pid = copy_part(about.pid),
        .time = copy_part(t->time),
    };
}

/* A message that goes on in the next line. */
static bool ends_open(const struct finding_text *t)
{
    static const char traceback[] = "call last):";
    size_t n = t->body.n, k = sizeof(traceback) - 1;
    return n && t->body.s[n - 1] == ':' && (n < k || memcmp(t->body.s + n - k, traceback, k) != 0);
}

/* A line behind that of f->goes_on is quoted with it if the same process wrote it. */
static void finder_go_on(struct finder *f, const char *p, size_t n)
{
    struct finding_event *e = f->goes_on;
    size_t has = strlen(e->quote.text);
    struct finding_text t;
    f->goes_on = --f->goes_on_for > 0 ? e : NULL;
    finding_text_read(p, n, f->body, &t);
    if (!t.body.n || t.stream != f->goes_on_key || has + 1 >= FINDING_QUOTE_MAX ||
        stream_is_code(finder_stream(f, t.stream), &t, 0))
        return;
    _cleanup_(freep) char *head = e->quote.text;
    _cleanup_(freep) char *more = copy_text(t.body.s, t.body.n, FINDING_QUOTE_MAX - has - 1);
    e->quote.text = xasprintf("%s %s", head, more);
}

/* The same for the lines that begin at p, where the reader stands. Lines are looked at in advance,
 * and once: goes_on_at is where the next one is. */
static void look_on(struct finder *f, const char *p, size_t n)
{
    size_t at = f->goes_on && f->goes_on_at > f->total ? (size_t)(f->goes_on_at - f->total) : 0;
    while (f->goes_on && at < n) {
        size_t room = n - at < FINDING_LINE_MAX ? n - at : FINDING_LINE_MAX;
        size_t len = piece_end(p + at, room);
        if (len)
            finder_go_on(f, p + at, len);
        at += len + (len < n - at && (p[at + len] == '\n' || p[at + len] == '\r'));
        f->goes_on_at = f->total + at;
    }
}

/* The event of a rule that matched now; borrowed. */
static struct finding_event *finder_note(struct finder *f,
                                         const struct finding_rule *rule,
                                         int weight,
                                         const struct finding_text *t,
                                         const struct place *where)
{
    struct rule_events *of = &f->events[rule - f->rules->v];
    struct finding_event *e = of->n < EVENTS_FIRST ? &of->first[of->n] : &of->last;
    of->n++;
    finder_fill_event(f, e, rule, weight, t, where);
    f->goes_on_for = rule->goes_on ? rule->goes_on : ends_open(t);
    f->goes_on = f->goes_on_for ? e : NULL;
    f->goes_on_key = t->stream;
    f->goes_on_at = 0;
    return e;
}

/* The best rule of a line for each role. */
struct best {
    const struct finding_rule *of[ROLE_COUNT];
    int weight[ROLE_COUNT];
};

static bool finder_is_empty(const struct best *b)
{
    for (size_t i = 0; i < ROLE_COUNT; i++)
        if (b->of[i])
            return false;
    return true;
}

/* Lower case into out; false: it has bytes that clean text has not. */
static bool fold(const char *p, size_t n, char *out)
{
    unsigned char least = 0xff;
    for (size_t i = 0; i < n; i++) {
        unsigned char c = (unsigned char)p[i];
        least = c < least ? c : least;
        out[i] = (char)(c + ((unsigned char)(c - 'A') < 26) * 0x20);
    }
    return !n || least >= ' ';
}

/* The rules that may match the line that is looked at; false: none. f->found has what it has. */
static bool mark_found(struct finder *f, enum finding_asked asked)
{
    bool blind, any;
    memset(f->may, 0, f->n_may * sizeof(*f->may));
    any = finding_index_mark(f->rules->index[asked], f->folded, f->n_folded, f->found, f->may,
                             &blind);
    f->mute_key = blind ? f->mute_key : 0;
    return any;
}

static void forget_found(struct finder *f)
{
    memset(f->found, 0, f->n_found * sizeof(*f->found));
}

/* The same, for which its texts are looked for first. */
static bool mark(struct finder *f, enum finding_asked asked)
{
    forget_found(f);
    finding_index_all(f->rules->index[asked], f->folded, 0, f->n_folded, f->found);
    return mark_found(f, asked);
}

/* The code of a branch, made when a line asks for it first: most are never asked for. */
static const pcre2_code *code_of(struct finder *f, const struct finding_rule *r, unsigned branch)
{
    int error;
    PCRE2_SIZE at;
    pcre2_code **code = &f->codes[branch].code;
    if (!*code) {
        const char *text = r->branches[branch - r->first_branch].text;
        *code = pcre2_compile((PCRE2_SPTR)text, PCRE2_ZERO_TERMINATED, 0, &error, &at, NULL);
        assert(*code);                                      /* finding_rules.c saw to that */
        (void)pcre2_jit_compile(*code, PCRE2_JIT_COMPLETE); /* else only slower */
    }
    return *code;
}

static void try_branch(struct finder *f,
                       unsigned branch,
                       const struct finding_text *t,
                       struct best *b)
{
    const struct finding_rule *r = &f->rules->v[f->rules->rule_of[branch]];
    int weight = r->weight;
    if (r->severe && t->level < LEVEL_ERROR)
        return;
    if (r->role == ROLE_CAUSE && !r->quiet && t->level && t->level < LEVEL_ERROR)
        weight = QUIET_WEIGHT;
    if (weight <= b->weight[r->role])
        return;
    /* Negative: no match, or a limit of the search was reached, which is none either. */
    if (pcre2_match(code_of(f, r, branch), (PCRE2_SPTR)t->body.s, t->body.n, 0, 0, f->match,
                    f->context) >= 0) {
        b->of[r->role] = r;
        b->weight[r->role] = weight;
    }
}

static void try_rules(struct finder *f, const struct finding_text *t, struct best *b)
{
    for (size_t w = 0; w < f->n_may; w++)
        for (uint64_t bits = f->may[w]; bits; bits &= bits - 1)
            try_branch(f, (unsigned)(64 * w) + (unsigned)__builtin_ctzll(bits), t, b);
}

static void note_frame(struct finder *f,
                       struct stream *s,
                       const struct finding_rule *r,
                       const struct finding_text *t,
                       const struct place *where)
{
    if (!s->open && !s->ignored)
        stream_reset(s);
    s->open = true;
    stream_place(s, t, where->line);
    if (stream_at_place(t))
        s->last = r && r->last ? r : NULL;
    if (!r || r->last || s->ignored || (s->has_frame && r->weight < s->frame.weight))
        return;
    finder_fill_event(f, &s->frame, r, r->weight, t, where);
    s->has_frame = true;
}

/* An assertion that says nothing: what was asserted does. */
static void quote_assertion(struct finding_event *e, struct stream *s, const struct finding_text *t)
{
    static const char bare[] = "AssertionError";
    struct finding_quote quote = e->quote;
    const char *asserted = s->frame.quote.text ? strstr(s->frame.quote.text, "assert ") : NULL;
    if (!asserted || t->body.n > sizeof(bare) || memcmp(t->body.s, bare, sizeof(bare) - 1) != 0)
        return;
    e->quote = s->frame.quote;
    s->frame.quote = quote;
}

static void take_frame(struct finding_event *e, const struct finding_rule *frame)
{
    e->class = frame->class;
    e->frame = frame;
    e->weight = frame->weight > e->weight ? frame->weight : e->weight;
}

static void note_cause(struct finder *f,
                       struct stream *s,
                       const struct best *b,
                       const struct finding_text *t,
                       const struct place *where)
{
    const struct finding_rule *r = b->of[ROLE_CAUSE];
    if (s->ignored && s->open) {
        stream_reset(s);
        return;
    }
    bool passed_on = b->weight[ROLE_WRAPPER] >= b->weight[ROLE_CAUSE];
    struct finding_event *e =
        finder_note(f, r, passed_on ? QUIET_WEIGHT : b->weight[ROLE_CAUSE], t, where);
    f->failed = f->failed || passed_on;
    if (passed_on)
        return;
    if (s->has_frame && r->context >> s->frame.class & 1) {
        take_frame(e, s->frame.rule);
        quote_assertion(e, s, t);
    }
    if (s->last && r->named >> s->last->class & 1 && e->weight < s->last->weight)
        take_frame(e, s->last);
    s->open = false;
}

static void begin_traceback(struct finder *f, struct stream *s, const struct finding_text *t)
{
    bool ignored = s->ignored && !s->open;
    stream_reset(s);
    s->open = true;
    s->indent = t->indent;
    s->ignored = ignored;
    f->failed = f->failed || !ignored;
}

static void note_line(struct finder *f,
                      struct stream *s,
                      const struct best *b,
                      const struct finding_text *t,
                      const struct place *where)
{
    int excuse = b->weight[ROLE_BENIGN] > b->weight[ROLE_CLEANUP] ? b->weight[ROLE_BENIGN]
                                                                  : b->weight[ROLE_CLEANUP];
    const struct finding_rule *wrapper = b->of[ROLE_WRAPPER], *cause = b->of[ROLE_CAUSE];
    if (b->of[ROLE_PROGRESS]) {
        f->progress++;
        f->progress_at = where->at;
    }
    if (b->of[ROLE_SUCCESS]) {
        f->success = true;
        f->success_at = where->at;
    }
    if (b->of[ROLE_IGNORED]) {
        stream_reset(s);
        s->ignored = true;
        return;
    }
    if (b->of[ROLE_TRACEBACK])
        begin_traceback(f, s, t);
    bool empty = wrapper && cause && cause->context == ANY && /* its name says nothing */
                 b->weight[ROLE_WRAPPER] >= b->weight[ROLE_CAUSE];
    if (cause && !empty && b->weight[ROLE_CAUSE] > excuse)
        note_cause(f, s, b, t, where);
    else if (b->of[ROLE_CLEANUP])
        (void)finder_note(f, b->of[ROLE_CLEANUP], 0, t, where); /* kept with its rule */
    else if (wrapper && b->weight[ROLE_WRAPPER] > excuse) {
        f->failed = true;
        (void)finder_note(f, wrapper, 0, t, where);
    }
}

/* Nothing was matched in the line that is looked at, whatever it follows. */
static void keep_mute(struct finder *f)
{
    if (f->mute_key)
        mute_add(&f->mute, f->mute_key);
}

/* "x.py:7: UserWarning: " says the level of what follows. */
static bool warns(struct text_part p)
{
    static const char word[] = "Warning: ";
    const char *at = memmem(p.s, p.n, word, sizeof(word) - 1);
    return at && ((at - p.s >= 4 && !memcmp(at - 4, "User", 4)) ||
                  (at - p.s >= 7 && !memcmp(at - 7, "Runtime", 7)));
}

/* Clean text into t; false: no rule may match. Most lines with a text of a rule have it in
 * vain, which is seen before they are cleaned, unless escapes may stand in their words. */
static bool finder_read_text(struct finder *f, const char *p, size_t n, struct finding_text *t)
{
    size_t from = 0, to = n;
    while (from < to && p[from] == ' ')
        from++;
    while (from < to && p[to - 1] == ' ')
        to--;
    f->n_folded = to - from;
    bool plain = fold(p + from, to - from, f->folded);
    f->mute_key = plain && n <= MUTE_LINE_MAX ? mute_key(p, n, f->found, f->n_found) : 0;
    if (f->mute_key && mute_has(&f->mute, f->mute_key))
        return false;
    if (plain && !mark_found(f, ASKED_ANY)) {
        keep_mute(f);
        return false;
    }
    finding_text_read(p, n, f->body, t);
    if (!t->level && warns(t->body))
        t->level = LEVEL_WARNING;
    if (plain)
        return true;
    f->n_folded = t->whole.n;
    (void)fold(t->whole.s, t->whole.n, f->folded); /* clean already */
    return mark(f, ASKED_ANY);
}

/* A line of which f->found has the texts that it holds. */
static void read_piece(struct finder *f, const char *p, size_t n, const struct place *where)
{
    struct finding_text t;
    if (!finder_read_text(f, p, n, &t))
        return;
    struct stream *s = finder_stream(f, t.stream);
    s->used = where->at;
    struct best b = {0};
    if (stream_is_code(s, &t, where->line)) {
        if (mark(f, ASKED_CODE))
            try_rules(f, &t, &b);
        note_frame(f, s, b.of[ROLE_FRAME], &t, where);
        return;
    }
    try_rules(f, &t, &b);
    if (!t.boxed && t.indent < 2 && finder_is_empty(&b)) {
        keep_mute(f);
        return;
    }
    if ((b.of[ROLE_CAUSE] || b.of[ROLE_WRAPPER]) && mark(f, ASKED_EXCUSE))
        try_rules(f, &t, &b); /* else there is nothing to excuse */
    note_line(f, s, &b, &t, where);
}

static void advance(struct finder *f, const char *p, size_t n)
{
    uint64_t lines = piece_lines(p, n);
    f->offset += n;
    f->total += n;
    f->line += lines;
    f->lines += lines;
}

/* The piece at p, and the end of line behind it. Its length with that. */
static size_t take_piece(struct finder *f, const char *p, size_t len, size_t room)
{
    struct place where = {f->total, f->offset, f->line};
    read_piece(f, p, len, &where);
    len += len < room && (p[len] == '\n' || p[len] == '\r');
    advance(f, p, len);
    return len;
}

/* Whole pieces: the bytes end with the end of one. */
static void read_block(struct finder *f, const char *p, size_t n)
{
    const struct finding_index *ix = f->rules->index[ASKED_ANY];
    const struct needle_hits *hits = &f->hits;
    size_t done = 0, seen = 0; /* read, looked through */
    look_on(f, p, n);
    while (seen < n) {
        seen = finding_index_look(ix, p, seen, n, &f->hits);
        for (size_t i = 0; i < hits->n;) {
            if (hits->v[i].at < done) { /* of a line that was read */
                i++;
                continue;
            }
            size_t from = done + piece_start(p + done, hits->v[i].at - done);
            size_t room = n - from < FINDING_LINE_MAX ? n - from : FINDING_LINE_MAX;
            size_t len = piece_end(p + from, room);
            forget_found(f);
            for (; i < hits->n && hits->v[i].at < from + len; i++)
                f->found[hits->v[i].needle / 64] |= (uint64_t)1 << (hits->v[i].needle % 64);
            if (from + len > seen)
                finding_index_all(ix, p + from, seen - from, len, f->found);
            advance(f, p + done, from - done);
            done = from + take_piece(f, p + from, len, n - from);
            look_on(f, p + done, n - done);
            seen = done > seen ? done : seen;
        }
    }
    advance(f, p + done, n - done);
}

static void end_carry(struct finder *f)
{
    size_t n = f->n_carry;
    f->n_carry = 0;
    read_block(f, f->carry, n);
}

/* Bytes of a piece that began before or does not end here. How many were taken. */
static size_t carry(struct finder *f, const char *p, size_t n)
{
    size_t room = FINDING_LINE_MAX - f->n_carry;
    size_t take = piece_end(p, n < room ? n : room);
    memcpy(f->carry + f->n_carry, p, take);
    f->n_carry += take;
    if (take < n && f->n_carry < FINDING_LINE_MAX) { /* its end was found */
        end_carry(f);
        advance(f, p + take, 1);
        return take + 1;
    }
    if (f->n_carry == FINDING_LINE_MAX)
        end_carry(f);
    return take;
}

static void finder_read_plain(struct finder *f, const char *p, size_t n)
{
    while (n) {
        size_t whole = f->n_carry ? 0 : piece_whole(p, n), took = whole;
        if (whole)
            read_block(f, p, whole);
        else
            took = carry(f, p, n);
        p += took;
        n -= took;
    }
}

/* Lines that were carried in something else: they stand where that does. */
static void finder_read_unwrapped(const struct unwrapped *u, void *arg)
{
    struct finder *f = arg;
    uint64_t offset = f->offset, line = f->line, total = f->total, lines = f->lines;
    for (size_t at = 0, n; at < u->n; at += n) {
        const char *nl = memchr(u->text + at, '\n', u->n - at);
        n = nl ? (size_t)(nl - u->text) - at + 1 : u->n - at;
        f->offset = offset;
        f->line = line;
        read_block(f, u->text + at, n);
    }
    f->offset = offset + u->bytes;
    f->line = line + u->lines;
    f->total = total + u->bytes;
    f->lines = lines + u->lines;
}

static void finder_read(struct finder *f, const char *p, size_t n)
{
    if (f->unwrap.form == UNWRAP_PLAIN)
        finder_read_plain(f, p, n);
    else
        unwrap_feed(&f->unwrap, p, n, finder_read_unwrapped, f);
}

/* Enough was seen of the source, or there is no more. */
static void finder_decide_form(struct finder *f)
{
    struct buf *head = &f->unwrap.head;
    f->unwrap.form = unwrap_form_of(buf_str(head), head->len);
    finder_read(f, buf_str(head), head->len);
    buf_reset(head);
}

void finder_feed(struct finder *f, const void *bytes, size_t n)
{
    const char *p = bytes;
    struct buf *head = &f->unwrap.head;
    if (f->unwrap.form == UNWRAP_UNSEEN) {
        size_t room = UNWRAP_HEAD - head->len, take = n < room ? n : room;
        (void)buf_add(head, p, take); /* there is room */
        p += take;
        n -= take;
        if (head->len < UNWRAP_HEAD)
            return;
        finder_decide_form(f);
    }
    if (n)
        finder_read(f, p, n);
}

/* All that was fed is read: what follows stands elsewhere. */
static void finder_flush(struct finder *f)
{
    if (f->unwrap.form == UNWRAP_UNSEEN && f->unwrap.head.len)
        finder_decide_form(f);
    if (f->unwrap.form == UNWRAP_PLAIN)
        end_carry(f);
    else if (f->unwrap.form != UNWRAP_UNSEEN)
        unwrap_end(&f->unwrap, finder_read_unwrapped, f);
}

void finder_seek(struct finder *f, uint64_t offset, uint64_t line)
{
    finder_flush(f);
    f->goes_on = NULL;
    f->offset = offset;
    f->line = line;
}

void finder_source(struct finder *f, const char *name)
{
    finder_seek(f, 0, 1);
    f->unwrap.form = UNWRAP_UNSEEN;
    for (size_t i = 0; i < f->n_streams; i++)
        f->streams[i].open = false;
    if (f->n_sources == FINDING_SOURCES_MAX)
        return;
    f->sources = xrealloc(f->sources, f->n_sources + 1, sizeof(*f->sources));
    f->sources[f->n_sources++] = xstrdup(name);
}
