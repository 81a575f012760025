/* SPDX-License-Identifier: Apache-2.0 */
/* finding_carrier.c - see finding_carrier.h. Each form is a function. A form that a message may
 * have as well (a word and a colon) is taken only where nothing stands before it. */
#define _GNU_SOURCE
#include "core/finding/read/finding_carrier.h"

#include <string.h>

#include "base/mem.h"

enum { NAME_MAX_BYTES = 100 };

static const char LOWER[] = "abcdefghijklmnopqrstuvwxyz", DIGIT[] = "0123456789",
                  HOST[] = "abcdefghijklmnopqrstuvwxyz0123456789-.",
                  POD[] = "abcdefghijklmnopqrstuvwxyz0123456789-._/",
                  WORD[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.",
                  HEX[] = "0123456789abcdef";

/* What is left of the line. */
struct ahead {
    const char *p, *end;
    unsigned place;
};

static size_t carrier_span(const struct ahead *a, size_t at, const char *of)
{
    size_t n = 0;
    while (a->p + at + n < a->end && a->p[at + n] && strchr(of, a->p[at + n]))
        n++;
    return n;
}

static bool carrier_has(const struct ahead *a, size_t at, const char *word)
{
    size_t n = strlen(word);
    return (size_t)(a->end - a->p) >= at + n && !memcmp(a->p + at, word, n);
}

static bool part_is(const char *p, size_t n, const char *word)
{
    return strlen(word) == n && !memcmp(p, word, n);
}

static enum text_level carrier_level(const char *p, size_t n)
{
    static const struct {
        const char *word;
        enum text_level level;
    } words[] = {{"error", LEVEL_ERROR}, {"critical", LEVEL_FATAL}, {"warning", LEVEL_WARNING},
                 {"info", LEVEL_INFO},   {"notice", LEVEL_INFO},    {"debug", LEVEL_DEBUG},
                 {"trace", LEVEL_DEBUG}};
    for (size_t i = 0; i < array_len(words); i++)
        if (part_is(p, n, words[i].word))
            return words[i].level;
    return LEVEL_NONE;
}

/* "stderr F " of CRI, behind its time. */
static bool is_cri(const struct ahead *a, struct carrier *ret)
{
    if (!(a->place & CARRIER_AFTER_TIME) ||
        !(carrier_has(a, 0, "stdout ") || carrier_has(a, 0, "stderr ")) ||
        !(carrier_has(a, 7, "F ") || carrier_has(a, 7, "P ")))
        return false;
    ret->n = 8;
    return true;
}

/* "##[error]", "::error file=x,line=1::" of GitHub Actions. */
static bool is_github(const struct ahead *a, struct carrier *ret)
{
    bool is_mark = carrier_has(a, 0, "##[");
    if (!is_mark && !carrier_has(a, 0, "::"))
        return false;
    size_t from = is_mark ? 3 : 2, n = carrier_span(a, from, LOWER);
    enum text_level level = carrier_level(a->p + from, n);
    if (is_mark && n && carrier_has(a, from + n, "]")) {
        *ret = (struct carrier){.n = from + n + 1, .level = level};
        return true;
    }
    const char *rest = a->p + from + n;
    const char *close = level ? memmem(rest, (size_t)(a->end - rest), "::", 2) : NULL;
    if (!close)
        return false;
    *ret = (struct carrier){.n = (size_t)(close + 2 - a->p), .level = level};
    return true;
}

static bool is_wandb(const struct ahead *a, struct carrier *ret)
{
    ret->n = 6;
    return carrier_has(a, 0, "wandb: ");
}

/* "trainer-1  | " of compose. */
static bool is_compose(const struct ahead *a, struct carrier *ret)
{
    size_t n = carrier_span(a, 0, POD), blanks = carrier_span(a, n, " ");
    bool is_named = memchr(a->p, '-', n) || memchr(a->p, '_', n) || blanks > 1;
    bool is_end = a->p + n + blanks + 1 == a->end;
    if (!(a->place & CARRIER_FIRST) || n < 2 || !blanks || !is_named ||
        !(carrier_has(a, n + blanks, "| ") || (is_end && carrier_has(a, n + blanks, "|"))))
        return false;
    *ret = (struct carrier){.n = n + blanks + 1, .is_stream = true};
    return true;
}

/* No host is called so: programs begin what they say with their name. */
static bool is_program(const char *p, size_t n)
{
    static const char *const heads[] = {"python",  "pip",  "lib",  "error",
                                        "warning", "exit", "errno"};
    static const char *const ends[] = {".py", ".sh", ".so", ".c", ".cc", ".cpp", ".cu", ".h"};
    for (size_t i = 0; i < array_len(heads); i++)
        if (n >= strlen(heads[i]) && !memcmp(p, heads[i], strlen(heads[i])))
            return true;
    for (size_t i = 0; i < array_len(ends); i++)
        if (n >= strlen(ends[i]) && !memcmp(p + n - strlen(ends[i]), ends[i], strlen(ends[i])))
            return true;
    return memmem(p, n, ".so.", 4);
}

/* "gpu-node07: ", "10.0.0.5: " of pdsh, clush and ansible; "rank3: ". */
static bool is_pdsh(const struct ahead *a, struct carrier *ret)
{
    size_t n = carrier_span(a, 0, HOST), digits = 0, dots = 0;
    if (!(a->place & CARRIER_FIRST) || n < 2 || n > NAME_MAX_BYTES || !carrier_has(a, n, ": "))
        return false;
    for (size_t i = 0; i < n; i++) {
        digits += strchr(DIGIT, a->p[i]) != NULL;
        dots += a->p[i] == '.';
    }
    bool is_address = digits + dots == n && dots == 3;
    bool is_host = strchr(LOWER, a->p[0]) && digits && !is_program(a->p, n);
    if (!is_address && !is_host)
        return false;
    *ret = (struct carrier){.n = n + 1, .is_stream = true};
    if (carrier_has(a, 0, "rank") && 4 + carrier_span(a, 4, DIGIT) == n)
        ret->rank = (struct text_part){a->p + 4, n - 4};
    else
        ret->node = (struct text_part){a->p, n};
    return true;
}

/* "[pod/trainer-0/main] " of kubectl, "[trainer-0 main] " of kubetail, "[rank=3]" of Determined. */
static bool is_bracket(const struct ahead *a, struct carrier *ret)
{
    if (!carrier_has(a, 0, "["))
        return false;
    if (carrier_has(a, 1, "rank=")) {
        size_t digits = carrier_span(a, 6, DIGIT);
        *ret = (struct carrier){.n = 7 + digits, .rank = {a->p + 6, digits}, .is_stream = true};
        return digits && carrier_has(a, 6 + digits, "]");
    }
    size_t pod = carrier_span(a, 1, POD), blank = carrier_has(a, 1 + pod, " ");
    size_t n = 1 + pod + blank + (blank ? carrier_span(a, 2 + pod, POD) : 0);
    bool is_pod =
        carrier_has(a, 1, "pod/") || (pod && strchr(LOWER, a->p[1]) && memchr(a->p + 1, '-', pod) &&
                                      !memchr(a->p + 1, '/', pod));
    if (!(a->place & CARRIER_FIRST) || !is_pod || n > NAME_MAX_BYTES || !carrier_has(a, n, "]") ||
        is_program(a->p + 1, pod))
        return false;
    *ret = (struct carrier){.n = n + 1 + carrier_has(a, n + 1, ":"), .is_stream = true};
    return true;
}

/* "python3[812]: ": how long; 0: there is none. Of who kills for memory the name says it. */
static size_t unit_length(const struct ahead *a, size_t at)
{
    size_t n = 0;
    if (carrier_has(a, at, "systemd-oomd") || carrier_has(a, at, "earlyoom"))
        return 0;
    while (a->p + at + n < a->end && n < NAME_MAX_BYTES && !strchr(" []:", a->p[at + n]))
        n++;
    size_t digits = n && carrier_has(a, at + n, "[") ? carrier_span(a, at + n + 1, DIGIT) : 0;
    return digits && carrier_has(a, at + n + 1 + digits, "]: ") ? n + digits + 3 : 0;
}

/* "host python3[812]: " of journald behind its time, maybe with a zone before; the same without a
 * host where nothing stands before it. */
static bool is_unit(const struct ahead *a, struct carrier *ret)
{
    size_t n = a->place & (CARRIER_FIRST | CARRIER_AFTER_TIME) ? unit_length(a, 0) : 0, at = 0;
    if (n) {
        *ret = (struct carrier){.n = n, .is_stream = true};
        return true;
    }
    if (!(a->place & CARRIER_AFTER_TIME))
        return false;
    for (int words = 0; words < 2; words++) {
        size_t host = 0;
        while (a->p + at + host < a->end && a->p[at + host] != ' ' && host < NAME_MAX_BYTES)
            host++;
        n = host ? unit_length(a, at + host + 1) : 0;
        if (n) {
            *ret = (struct carrier){
                .n = at + host + 1 + n, .node = {a->p + at, host}, .is_stream = true};
            return true;
        }
        at += host + 1;
    }
    return false;
}

/* "7a5bd9c2 || ", "|| " of Determined behind its time; "<error> " before it. */
static bool is_determined(const struct ahead *a, struct carrier *ret)
{
    size_t word = carrier_has(a, 0, "<") ? carrier_span(a, 1, LOWER) : 0;
    if (a->place & CARRIER_FIRST && word && carrier_has(a, 1 + word, "> ")) {
        *ret = (struct carrier){.n = word + 2, .level = carrier_level(a->p + 1, word)};
        return ret->level || part_is(a->p + 1, word, "none");
    }
    size_t n = carrier_span(a, 0, HEX);
    n += n >= 6 && carrier_has(a, n, " ");
    ret->n = n + 2;
    return a->place & CARRIER_AFTER_TIME && (!n || a->p[n - 1] == ' ') && carrier_has(a, n, "|| ");
}

/* "{subprocess.py:93}" of Airflow. */
static bool is_airflow(const struct ahead *a, struct carrier *ret)
{
    size_t n = carrier_has(a, 0, "{") ? 1 + carrier_span(a, 1, WORD) : 0;
    size_t line = n > 1 && carrier_has(a, n, ":") ? carrier_span(a, n + 1, DIGIT) : 0;
    ret->n = n + 2 + line;
    return a->place & CARRIER_AFTER_TIME && line && carrier_has(a, n + 1 + line, "}");
}

/* "train.loop:step:12 - " of loguru behind its level. */
static bool is_loguru(const struct ahead *a, struct carrier *ret)
{
    static const char function[] =
        "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.<>";
    size_t module = a->place & CARRIER_AFTER_TIME ? carrier_span(a, 0, WORD) : 0;
    size_t at = module && carrier_has(a, module, ":") ? module + 1 : 0;
    size_t name = at ? carrier_span(a, at, function) : 0;
    at += name;
    size_t line = name && carrier_has(a, at, ":") ? carrier_span(a, at + 1, DIGIT) : 0;
    ret->n = at + 1 + line + 2;
    return line && carrier_has(a, at + 1 + line, " - ");
}

bool carrier_read(const char *p, const char *end, unsigned place, struct carrier *ret)
{
    static bool (*const forms[])(const struct ahead *, struct carrier *) = {
        is_cri,     is_github, is_wandb,      is_compose, is_pdsh,
        is_bracket, is_unit,   is_determined, is_airflow, is_loguru,
    };
    const struct ahead a = {.p = p, .end = end, .place = place};
    for (size_t i = 0; i < array_len(forms); i++) {
        struct carrier found = {0};
        if (forms[i](&a, &found)) {
            *ret = found;
            return true;
        }
    }
    return false;
}
