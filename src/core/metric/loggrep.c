/* SPDX-License-Identifier: Apache-2.0 */
/* loggrep.c - the lines of a text that match a pattern; see loggrep.h.
 *
 * A text is searched as a whole, which is fast, and the line where a match begins is tried alone:
 * so what crosses a line's end does not count. Patterns that see the ends of a text, and texts on
 * which the whole search takes too long, go line by line.
 *
 * PCRE2 counts its steps anew at each byte where a match may begin, and many steps not at all: a
 * lazy repeat of one character could take hours below its limits. So every pattern that can go
 * back is compiled with callouts, which count for the whole text. */
#define _GNU_SOURCE
#define PCRE2_CODE_UNIT_WIDTH 8
#include "core/metric/loggrep.h"
#include "base/message.h"

#include <pcre2.h>
#include <stdlib.h>
#include <string.h>

enum {
    NEST_LIMIT = 50,       /* groups in groups; PCRE2 itself would take 250 */
    LINE_LIMIT = 50000,    /* steps of a match: a fraction of a millisecond */
    WHOLE_LIMIT = 5000000, /* the same for a text of many lines: some tens of them */
    STEPS_OF_BYTE = 16, /* so many more for each byte of a line: one of half a MiB is no attack */
    BYTES_OF_STEP = 16, /* that a repeat runs over */
    LATE_STEPS = 32768, /* between two looks at the clock; an honest line takes fewer */
};

struct loggrep {
    pcre2_code *code;
    pcre2_match_data *match;
    pcre2_match_context *of_line, *of_whole;
    bool by_line;

    /* The match under way: what it has cost, what it may, when the clock is looked at. */
    size_t steps, most, look_at, at;
    bool was_late; /* also of the scan under way */
    loggrep_late_f is_late;
    void *late_arg;
};

/* PCRE2 asks before each item of the pattern. What it ran over since the last time counts. */
static int loggrep_on_step(pcre2_callout_block *block, void *arg)
{
    struct loggrep *g = arg;
    size_t now = block->current_position;
    g->steps += 1 + (now > g->at ? now - g->at : g->at - now) / BYTES_OF_STEP;
    g->at = now;
    if (g->steps > g->most)
        return PCRE2_ERROR_MATCHLIMIT;
    if (!g->is_late || g->steps < g->look_at)
        return 0;
    g->look_at = g->steps + LATE_STEPS;
    g->was_late = g->was_late || g->is_late(g->late_arg);
    return g->was_late ? PCRE2_ERROR_MATCHLIMIT : 0;
}

static int loggrep_match(struct loggrep *g,
                         const char *text,
                         size_t n,
                         size_t at,
                         pcre2_match_context *limits)
{
    g->steps = 0;
    g->look_at = LATE_STEPS;
    g->at = at;
    g->most = limits == g->of_line ? LINE_LIMIT + STEPS_OF_BYTE * n : WHOLE_LIMIT;
    return pcre2_match(g->code, (PCRE2_SPTR)text, n, at, 0, g->match, limits);
}

static pcre2_match_context *context(struct loggrep *g, uint32_t limit)
{
    pcre2_match_context *c = pcre2_match_context_create(NULL);
    (void)pcre2_set_callout(c, loggrep_on_step, g); /* this cannot fail, nor can these */
    (void)pcre2_set_match_limit(c, limit);
    (void)pcre2_set_depth_limit(c, limit);
    (void)pcre2_set_heap_limit(c, 8192);
    return c;
}

/* \A \z \Z \G, and what looks around: they would see the text, not the line. */
static bool means_ends(const char *pattern)
{
    if (strstr(pattern, "(?=") || strstr(pattern, "(?!") || strstr(pattern, "(?<"))
        return true;
    for (const char *p = pattern; (p = strchr(p, '\\')) && p[1]; p += 2)
        if (strchr("AzZG", p[1]))
            return true;
    return false;
}

/* It has a choice at which it can turn back. */
static bool loggrep_can_go_back(const char *pattern)
{
    return strpbrk(pattern, "*+?{(|") != NULL;
}

int loggrep_new(const char *pattern, struct loggrep **ret, struct err *err)
{
    int code = 0;
    PCRE2_SIZE at = 0;
    if (!*pattern || strlen(pattern) > LOGGREP_PATTERN_MAX)
        return message_refuse(err, ERR_BAD_REQUEST, "pattern_size",
                              MESSAGE_ARGS(MESSAGE_NUM("most", LOGGREP_PATTERN_MAX)));
    pcre2_compile_context *limits = pcre2_compile_context_create(NULL);
    (void)pcre2_set_max_pattern_length(limits, LOGGREP_PATTERN_MAX); /* these cannot fail */
    (void)pcre2_set_parens_nest_limit(limits, NEST_LIMIT);
    uint32_t flags = PCRE2_MULTILINE | PCRE2_NEVER_BACKSLASH_C;
    if (loggrep_can_go_back(pattern))
        flags |= PCRE2_AUTO_CALLOUT;
    pcre2_code *compiled =
        pcre2_compile((PCRE2_SPTR)pattern, PCRE2_ZERO_TERMINATED, flags, &code, &at, limits);
    pcre2_compile_context_free(limits);
    if (!compiled) {
        unsigned char why[200] = "";
        (void)pcre2_get_error_message(code, why, sizeof(why)); /* cut or empty is as good */
        return message_refuse(err, ERR_BAD_REQUEST, "bad_pattern",
                              MESSAGE_ARGS(MESSAGE_STR("pattern", pattern),
                                           MESSAGE_STR("why", (const char *)why),
                                           MESSAGE_NUM("at", (size_t)at)));
    }
    (void)pcre2_jit_compile(compiled, PCRE2_JIT_COMPLETE); /* without it, only slower */
    struct loggrep *g = xcalloc(1, sizeof(*g));
    *g = (struct loggrep){.code = compiled,
                          .match = pcre2_match_data_create(1, NULL),
                          .of_line = context(g, LINE_LIMIT),
                          .of_whole = context(g, WHOLE_LIMIT),
                          .by_line = means_ends(pattern)};
    *ret = g;
    return 0;
}

void loggrep_free(struct loggrep *g)
{
    if (!g)
        return;
    pcre2_match_data_free(g->match);
    pcre2_match_context_free(g->of_line);
    pcre2_match_context_free(g->of_whole);
    pcre2_code_free(g->code);
    free(g);
}

void loggrep_until(struct loggrep *g, loggrep_late_f is_late, void *arg)
{
    g->is_late = is_late;
    g->late_arg = arg;
    g->was_late = false;
}

bool loggrep_matches(struct loggrep *g, const char *line, size_t n)
{
    return loggrep_match(g, line, n, 0, g->of_line) >= 0;
}

/* Where the next line that may match begins; n: none does. */
static size_t next_line(struct loggrep *g, const char *text, size_t n, size_t at, bool *by_line)
{
    if (*by_line)
        return at;
    int r = loggrep_match(g, text, n, at, g->of_whole);
    if (r == PCRE2_ERROR_NOMATCH)
        return n;
    *by_line = r < 0;
    if (r < 0)
        return at;
    size_t found = pcre2_get_ovector_pointer(g->match)[0];
    const char *before = found > at ? memrchr(text + at, '\n', found - at) : NULL;
    return before ? (size_t)(before + 1 - text) : at;
}

size_t loggrep_scan(struct loggrep *g, const char *text, size_t n, loggrep_hit_f on_hit, void *arg)
{
    bool by_line = g->by_line;
    size_t at = 0;
    g->was_late = false;
    while (at < n) {
        at = next_line(g, text, n, at, &by_line);
        if (at >= n)
            break;
        if (g->was_late && at)
            return at;
        const char *stop = memchr(text + at, '\n', n - at);
        size_t len = stop ? (size_t)(stop - text) - at : n - at;
        size_t begin = at;
        at += len + (stop != NULL);
        if (loggrep_matches(g, text + begin, len) && !on_hit(begin, text + begin, len, arg))
            return at;
        if (g->was_late)
            return begin ? begin : at;
    }
    return n;
}
