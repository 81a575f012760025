/* SPDX-License-Identifier: Apache-2.0 */
/* hydra_read.c - Hydra's lexer and grammar of overrides, by hand; see hydra_read.h.
 *
 * The lexer takes the longest token, the first of the table where two are as long; white space
 * around , : = ) ] } ( [ { belongs to the token. The parser asks one token ahead. */
#include "core/spec/hydra_read.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/buf.h"
#include "base/str.h"

enum { DEPTH_MAX = 40, TEXT_MAX = 64 * 1024 };

enum hydra_token_type {
    TOKEN_END,
    TOKEN_BAD,
    TOKEN_PAREN_OPEN,
    TOKEN_COMMA,
    TOKEN_PAREN_CLOSE,
    TOKEN_BRACKET_OPEN,
    TOKEN_BRACKET_CLOSE,
    TOKEN_BRACE_OPEN,
    TOKEN_BRACE_CLOSE,
    TOKEN_COLON,
    TOKEN_EQUAL,
    TOKEN_FLOAT,
    TOKEN_INT,
    TOKEN_BOOL,
    TOKEN_NULL,
    TOKEN_CHAR,
    TOKEN_ID,
    TOKEN_ESCAPE,
    TOKEN_BLANK,
    TOKEN_QUOTED,
    TOKEN_NAME, /* ${…} */
    TOKEN_COUNT,
};

struct hydra_token {
    enum hydra_token_type type;
    const char *s;
    size_t n;
};

struct hydra_parser {
    const char *override;
    struct hydra_token token; /* the next one */
    enum hydra_fault fault;
    const char *at; /* of the fault */
    int depth;
    bool sweeps, is_known, is_quoted;
    const char *open_name; /* a "${" without end; NULL: none */
    const char *unknown;   /* a function that Hydra has not; NULL: none */
    struct strv texts;
};

/* ---- tokens ---- */

static const char LETTERS[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_";
static const char DIGITS[] = "0123456789";
static const char NAME_REST[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_0123456789-";
static const char BLANKS[] = " \t";

static bool hydra_is_in(char c, const char *set)
{
    return c && strchr(set, c);
}

/* DIGIT (_? DIGIT)* */
static size_t hydra_digits(const char *s)
{
    size_t n = 0;
    while (hydra_is_in(s[n], DIGITS) || (n > 0 && s[n] == '_' && hydra_is_in(s[n + 1], DIGITS)))
        n++;
    return n;
}

static size_t hydra_unsigned(const char *s)
{
    return *s == '0' ? 1 : hydra_digits(s);
}

static size_t hydra_point(const char *s)
{
    size_t whole = hydra_unsigned(s);
    size_t part = s[whole] == '.' ? hydra_digits(s + whole + 1) : 0;
    return s[whole] == '.' && (whole || part) ? whole + 1 + part : 0;
}

static size_t hydra_exponent(const char *s, size_t n)
{
    if (!n || !hydra_is_in(s[n], "eE"))
        return 0;
    size_t sign = hydra_is_in(s[n + 1], "+-") ? 1 : 0, digits = hydra_digits(s + n + 1 + sign);
    return digits ? n + 1 + sign + digits : 0;
}

static size_t hydra_longer(size_t a, size_t b)
{
    return a > b ? a : b;
}

static size_t hydra_float(const char *s)
{
    size_t sign = hydra_is_in(*s, "+-") ? 1 : 0;
    s += sign;
    size_t n = hydra_point(s);
    n = hydra_longer(n, hydra_exponent(s, hydra_point(s)));
    n = hydra_longer(n, hydra_exponent(s, hydra_unsigned(s)));
    if (!strncasecmp(s, "inf", 3) || !strncasecmp(s, "nan", 3))
        n = hydra_longer(n, 3);
    return n ? sign + n : 0;
}

static size_t hydra_int(const char *s)
{
    size_t sign = hydra_is_in(*s, "+-") ? 1 : 0, n = hydra_unsigned(s + sign);
    return n ? sign + n : 0;
}

static size_t hydra_word(const char *s, const char *word)
{
    return strncasecmp(s, word, strlen(word)) ? 0 : strlen(word);
}

static size_t hydra_id(const char *s)
{
    return hydra_is_in(*s, LETTERS) ? 1 + strspn(s + 1, NAME_REST) : 0;
}

static size_t hydra_escape(const char *s)
{
    size_t n = 0;
    while (s[n] == '\\' && hydra_is_in(s[n + 1], "\\()[]{}:=, \t"))
        n += 2;
    return n;
}

size_t hydra_quoted(const char *s)
{
    size_t backslashes = 0;
    if (*s != '"' && *s != '\'')
        return 0;
    for (size_t i = 1; s[i]; i++) {
        if (s[i] == *s && backslashes % 2 == 0)
            return i + 1;
        backslashes = s[i] == '\\' ? backslashes + 1 : 0;
    }
    return 0;
}

static size_t hydra_name(const char *s)
{
    if (s[0] != '$' || s[1] != '{' || !s[2] || s[2] == '}')
        return 0;
    const char *end = strchr(s, '}');
    return end ? (size_t)(end - s) + 1 : 0;
}

/* One of these, with the blanks that belong to it. */
static size_t hydra_mark(const char *s, char mark, bool before, bool after)
{
    size_t n = before ? strspn(s, BLANKS) : 0;
    if (s[n] != mark)
        return 0;
    return n + 1 + (after ? strspn(s + n + 1, BLANKS) : 0);
}

static size_t hydra_token_length(enum hydra_token_type type, const char *s)
{
    static const struct {
        char mark;
        bool before, after;
    } marks[TOKEN_COUNT] = {
        [TOKEN_PAREN_OPEN] = {'(', true, true},     [TOKEN_COMMA] = {',', true, true},
        [TOKEN_PAREN_CLOSE] = {')', true, false},   [TOKEN_BRACKET_OPEN] = {'[', false, true},
        [TOKEN_BRACKET_CLOSE] = {']', true, false}, [TOKEN_BRACE_OPEN] = {'{', false, true},
        [TOKEN_BRACE_CLOSE] = {'}', true, false},   [TOKEN_COLON] = {':', true, true},
        [TOKEN_EQUAL] = {'=', true, true},
    };
    switch (type) {
    case TOKEN_FLOAT:
        return hydra_float(s);
    case TOKEN_INT:
        return hydra_int(s);
    case TOKEN_BOOL:
        return hydra_longer(hydra_word(s, "true"), hydra_word(s, "false"));
    case TOKEN_NULL:
        return hydra_word(s, "null");
    case TOKEN_CHAR:
        return hydra_is_in(*s, "/-\\+.$%*@?|") ? 1 : 0;
    case TOKEN_ID:
        return hydra_id(s);
    case TOKEN_ESCAPE:
        return hydra_escape(s);
    case TOKEN_BLANK:
        return strspn(s, BLANKS);
    case TOKEN_QUOTED:
        return hydra_quoted(s);
    case TOKEN_NAME:
        return hydra_name(s);
    default:
        return marks[type].mark
                   ? hydra_mark(s, marks[type].mark, marks[type].before, marks[type].after)
                   : 0;
    }
}

static struct hydra_token hydra_lex(const char *s)
{
    struct hydra_token t = {.type = *s ? TOKEN_BAD : TOKEN_END, .s = s};
    for (int type = TOKEN_BAD + 1; *s && type < TOKEN_COUNT; type++) {
        size_t n = hydra_token_length((enum hydra_token_type)type, s);
        if (n > t.n)
            t = (struct hydra_token){.type = (enum hydra_token_type)type, .s = s, .n = n};
    }
    return t;
}

/* ---- values ---- */

static bool hydra_fail(struct hydra_parser *p, enum hydra_fault fault, const char *at)
{
    if (p->fault == HYDRA_FINE) {
        p->fault = fault;
        p->at = at;
    }
    return false;
}

static bool hydra_next(struct hydra_parser *p, enum hydra_token_type type)
{
    if (p->token.type != type)
        return false;
    p->token = hydra_lex(p->token.s + p->token.n);
    return true;
}

static bool hydra_wants(struct hydra_parser *p, enum hydra_token_type type)
{
    return hydra_next(p, type) || hydra_fail(p, HYDRA_BAD_VALUE, p->token.s);
}

static bool hydra_take_element(struct hydra_parser *p);

/* Backslashes before a quote, the closing one included, are escapes. */
static char *hydra_unquote(const char *s, size_t n)
{
    struct buf out = BUF_INIT(TEXT_MAX);
    for (size_t i = 1; i + 1 < n;) {
        size_t k = strspn(s + i, "\\");
        bool escapes = s[i + k] == *s;
        for (size_t j = 0; j < (escapes ? k / 2 : k); j++)
            (void)buf_addc(&out, '\\'); /* a text that is too long is not known */
        i += k;
        if (i + 1 < n)
            (void)buf_addc(&out, s[i++]);
    }
    return buf_take_whole(&out);
}

static bool hydra_take_quoted(struct hydra_parser *p)
{
    _cleanup_(freep) char *text = hydra_unquote(p->token.s, p->token.n);
    for (const char *name = text ? strstr(text, "${") : NULL; name; name = strstr(name + 2, "${")) {
        size_t backslashes = 0;
        while (name - text > (ptrdiff_t)backslashes && name[-1 - (ptrdiff_t)backslashes] == '\\')
            backslashes++;
        if (backslashes % 2 == 0 && (!strchr(name, '}') || name[2] == '}'))
            p->open_name = p->token.s;
        p->is_known &= backslashes % 2 == 1;
    }
    p->is_known &= text != NULL;
    if (text)
        strv_add(&p->texts, text);
    p->is_quoted = true;
    return hydra_next(p, TOKEN_QUOTED);
}

/* "${a${b}": the token ends with the first '}', and OmegaConf finds no end of the outer one. */
static void hydra_add_part(struct hydra_parser *p, struct buf *out)
{
    const struct hydra_token *t = &p->token;
    if (t->type == TOKEN_NAME && memchr(t->s + 2, '{', t->n - 2) && !p->open_name)
        p->open_name = t->s;
    p->is_known &= t->type != TOKEN_NAME;
    for (size_t i = t->type == TOKEN_ESCAPE; i < t->n; i += t->type == TOKEN_ESCAPE ? 2 : 1)
        (void)buf_addc(out, t->s[i]); /* as in hydra_unquote() */
}

/* Tokens that make one text when they stand side by side. */
static bool hydra_is_primitive(enum hydra_token_type type, bool is_key)
{
    return (type >= TOKEN_FLOAT && type <= TOKEN_BLANK) ||
           (!is_key && (type == TOKEN_NAME || type == TOKEN_COLON));
}

static bool hydra_take_primitive(struct hydra_parser *p, bool is_key)
{
    const char *from = p->token.s;
    _cleanup_(buf_release) struct buf text = BUF_INIT(TEXT_MAX);
    int n = 0;
    bool blank = false;
    for (; hydra_is_primitive(p->token.type, is_key); n++) {
        blank = p->token.type == TOKEN_BLANK;
        struct hydra_token next = hydra_lex(p->token.s + p->token.n);
        if (!blank || (n > 0 && hydra_is_primitive(next.type, is_key)))
            hydra_add_part(p, &text);
        p->token = next;
    }
    if (!n || (n == 1 && blank))
        return hydra_fail(p, HYDRA_BAD_VALUE, n ? from : p->token.s);
    p->is_known &= !text.failed && !is_key;
    if (!is_key)
        strv_add(&p->texts, buf_str(&text));
    return true;
}

static bool hydra_take_list(struct hydra_parser *p)
{
    hydra_next(p, TOKEN_BRACKET_OPEN);
    p->is_known &= p->depth == 1;
    if (hydra_next(p, TOKEN_BRACKET_CLOSE))
        return true;
    do {
        if (!hydra_take_element(p))
            return false;
    } while (hydra_next(p, TOKEN_COMMA));
    return hydra_wants(p, TOKEN_BRACKET_CLOSE);
}

static bool hydra_take_mapping(struct hydra_parser *p)
{
    hydra_next(p, TOKEN_BRACE_OPEN);
    p->is_known = false;
    if (hydra_next(p, TOKEN_BRACE_CLOSE))
        return true;
    do {
        if (!hydra_take_primitive(p, true) || !hydra_wants(p, TOKEN_COLON) ||
            !hydra_take_element(p))
            return false;
    } while (hydra_next(p, TOKEN_COMMA));
    return hydra_wants(p, TOKEN_BRACE_CLOSE);
}

static bool hydra_take_argument(struct hydra_parser *p)
{
    if (p->token.type == TOKEN_ID) {
        struct hydra_token next = hydra_lex(p->token.s + p->token.n);
        if (next.type == TOKEN_EQUAL)
            p->token = hydra_lex(next.s + next.n);
    }
    return hydra_take_element(p);
}

static bool hydra_is_one_of(const struct hydra_token *t, const char *const *words)
{
    for (; *words; words++)
        if (strlen(*words) == t->n && !strncmp(*words, t->s, t->n))
            return true;
    return false;
}

/* sort and shuffle give a list for a list, else a sweep. */
static bool hydra_take_call(struct hydra_parser *p)
{
    static const char *const sweeps[] = {"choice", "range", "interval", "glob", "tag", NULL};
    static const char *const orders[] = {"sort", "shuffle", NULL};
    static const char *const casts[] = {"int", "float", "str", "bool", NULL};
    const struct hydra_token name = p->token;
    bool orders_them = hydra_is_one_of(&name, orders);
    int arguments = 0;
    p->is_known = false;
    hydra_next(p, TOKEN_ID);
    hydra_next(p, TOKEN_PAREN_OPEN);
    if (p->token.type != TOKEN_PAREN_CLOSE)
        do {
            arguments++;
            if (!hydra_take_argument(p))
                return false;
        } while (hydra_next(p, TOKEN_COMMA));
    if (!hydra_wants(p, TOKEN_PAREN_CLOSE))
        return false;
    p->sweeps |= hydra_is_one_of(&name, sweeps) || (orders_them && arguments > 1);
    if (!orders_them && !hydra_is_one_of(&name, sweeps) && !hydra_is_one_of(&name, casts) &&
        !p->unknown)
        p->unknown = name.s;
    return true;
}

static bool hydra_take_element(struct hydra_parser *p)
{
    if (p->depth == DEPTH_MAX)
        return hydra_fail(p, HYDRA_BAD_VALUE, p->token.s);
    p->depth++;
    bool ok;
    if (p->token.type == TOKEN_BRACKET_OPEN)
        ok = hydra_take_list(p);
    else if (p->token.type == TOKEN_BRACE_OPEN)
        ok = hydra_take_mapping(p);
    else if (p->token.type == TOKEN_QUOTED)
        ok = hydra_take_quoted(p);
    else if (p->token.type == TOKEN_ID &&
             hydra_lex(p->token.s + p->token.n).type == TOKEN_PAREN_OPEN)
        ok = hydra_take_call(p);
    else
        ok = hydra_take_primitive(p, false);
    p->depth--;
    return ok;
}

static void hydra_take_value(struct hydra_parser *p)
{
    const char *from = p->token.s;
    int n = 1;
    if (p->token.type == TOKEN_END) { /* "key=" is the empty text */
        strv_add(&p->texts, "");
        return;
    }
    if (!hydra_take_element(p))
        return;
    p->is_quoted &= p->texts.n == 1 && hydra_is_in(*from, "'\"");
    for (; hydra_next(p, TOKEN_COMMA); n++)
        if (!hydra_take_element(p))
            return;
    if (p->token.type != TOKEN_END)
        (void)hydra_fail(p, HYDRA_BAD_VALUE, p->token.s); /* it is false */
    else if (p->unknown)
        (void)hydra_fail(p, HYDRA_NO_CALL, p->unknown);
    else if (n > 1 || p->sweeps)
        (void)hydra_fail(p, HYDRA_SWEEP, from);
    else if (p->open_name)
        (void)hydra_fail(p, HYDRA_OPEN_NAME, p->open_name);
}

/* ---- keys ---- */

static size_t hydra_key_name(const char *s)
{
    bool first = hydra_is_in(*s, LETTERS) || *s == '$';
    size_t n = first ? 1 : 0;
    while (first && (hydra_is_in(s[n], NAME_REST) || s[n] == '$'))
        n++;
    return n;
}

/* A name, or names and numbers with dots between them. */
static size_t hydra_key_path(const char *s)
{
    size_t n = hydra_key_name(s);
    size_t part = n ? n : hydra_unsigned(s);
    if (!n && s[part] != '.')
        return 0;
    n = part;
    while (s[n] == '.') {
        part = hydra_key_name(s + n + 1);
        if (!part)
            part = hydra_unsigned(s + n + 1);
        if (!part)
            return 0;
        n += 1 + part;
    }
    return n;
}

/* Where the key ends; NULL: there is none. */
static const char *hydra_take_key(const char *s)
{
    const char *from = s;
    size_t id = hydra_id(s);
    if (s[id] == '/') {
        for (s += id; *s == '/'; s += 1 + id) {
            id = hydra_id(s + 1);
            if (!id || id != hydra_key_path(s + 1))
                return NULL;
        }
        if (from == s || !hydra_id(from))
            return NULL;
    } else {
        s += hydra_key_path(s);
    }
    if (*s != '@')
        return s;
    s++;
    return s + hydra_key_path(s);
}

enum hydra_fault hydra_read(const char *override, struct hydra_value *ret)
{
    struct hydra_parser p = {.override = override, .is_known = true};
    const char *s = override;
    bool removes = *s == '~';
    s += removes ? 1 : *s == '+' ? 1 + (s[1] == '+') : 0;
    const char *end = hydra_take_key(s);
    if (!end || (*end != '=' && !(removes && !*end))) {
        (void)hydra_fail(&p, HYDRA_BAD_KEY, end ? end : s); /* it is false */
        end = s + strcspn(s, "=");
    }
    s = *end ? end + 1 + strspn(end + 1, BLANKS) : end;
    if (p.fault == HYDRA_FINE) {
        p.token = hydra_lex(s);
        hydra_take_value(&p);
    }
    *ret = (struct hydra_value){
        .fault = p.fault,
        .at = p.at ? (size_t)(p.at - override) : 0,
        .value = (size_t)(s - override),
        .is_quoted = p.fault == HYDRA_FINE && p.is_quoted,
        .is_known = p.fault == HYDRA_FINE && p.is_known,
        .texts = p.texts,
    };
    return p.fault;
}

void hydra_value_release(struct hydra_value *v)
{
    strv_release(&v->texts);
    *v = (struct hydra_value){0};
}
