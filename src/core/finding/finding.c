/* SPDX-License-Identifier: Apache-2.0 */
/* finding.c - findings as values: their words, read from JSON, and one line for people. */
#include "core/finding/finding.h"

#include <stdlib.h>
#include <string.h>

#include "base/message.h"
#include "base/str.h"
#include "base/text.h"
#include "core/finding/rules/finding_rule.h"

static const char *const OPS[] = {"set", "scale", "add"};

static void quote_release(struct finding_quote *q)
{
    free(q->source);
    free(q->text);
}

void finding_change_release(struct finding_change *c)
{
    free(c->key);
    free(c->value);
    free(c->from);
}

void finding_change_copy(struct finding_change *dst, const struct finding_change *src)
{
    *dst = *src;
    dst->key = xstrdup(src->key);
    dst->value = xstrdup(src->value);
    dst->from = xstrdup(src->from);
}

void finding_release(struct finding *f)
{
    free(f->rule);
    free(f->advice);
    free(f->advice_code);
    free(f->rank);
    free(f->node);
    free(f->actor);
    free(f->pid);
    free(f->time);
    free(f->second.rule);
    free(f->second.advice);
    free(f->second.advice_code);
    quote_release(&f->second.quote);
    for (size_t i = 0; i < f->n_evidence; i++)
        quote_release(&f->evidence[i]);
    for (size_t i = 0; i < f->n_after; i++)
        quote_release(&f->after[i]);
    for (size_t i = 0; i < f->n_patch; i++)
        finding_change_release(&f->patch[i]);
    *f = (struct finding){0};
}

enum { ADVICE_MAX = 512 };

void finding_advise(struct finding *f, const char *code)
{
    char text[ADVICE_MAX];
    message_to_string(code, "{}", true, text, sizeof(text));
    free(f->advice);
    free(f->advice_code);
    f->advice = xstrdup(text);
    f->advice_code = xstrdup(code);
}

static uint64_t get_count(const json_t *o, const char *key)
{
    int64_t v = json_get_int(o, key, 0);
    return v > 0 ? (uint64_t)v : 0;
}

static struct finding_quote quote_from_json(const json_t *o)
{
    return (struct finding_quote){.source = xstrdup(json_get_str(o, "source", NULL)),
                                  .offset = get_count(o, "offset"),
                                  .line = get_count(o, "line"),
                                  .text = xstrdup(json_get_str(o, "text", ""))};
}

static size_t quotes_from_json(const json_t *list, struct finding_quote *q, size_t max)
{
    size_t n = json_array_size(list) < max ? json_array_size(list) : max;
    for (size_t i = 0; i < n; i++)
        q[i] = quote_from_json(json_array_get(list, i));
    return n;
}

/* One of an older Argus has none; one of a newer one may have a class without a row here. */
static void second_from_json(const json_t *o, struct finding *f)
{
    int class = finding_class_from_string(json_get_str(o, "class", NULL));
    const json_t *quote = json_get_object(o, "quote");
    if (class < 0)
        return;
    f->has_second = true;
    f->second =
        (struct finding_second){.class = (enum finding_class) class,
                                .rule = xstrdup(json_get_str(o, "rule", NULL)),
                                .advice = xstrdup(json_get_str(o, "advice", NULL)),
                                .advice_code = xstrdup(json_get_str(o, "advice_code", NULL)),
                                .confidence = json_get_real(o, "confidence", 0)};
    if (quote)
        f->second.quote = quote_from_json(quote);
}

static void changes_from_json(const json_t *list, struct finding *f)
{
    for (size_t i = 0; i < json_array_size(list) && f->n_patch < FINDING_CHANGES_MAX; i++) {
        const json_t *o = json_array_get(list, i);
        for (int op = 0; op < (int)array_len(OPS); op++) {
            const char *value = json_get_str(o, OPS[op], NULL), *key = json_get_str(o, "key", NULL);
            if (value && key)
                f->patch[f->n_patch++] =
                    (struct finding_change){.key = xstrdup(key),
                                            .op = (enum finding_change_op)op,
                                            .value = xstrdup(value),
                                            .from = xstrdup(json_get_str(o, "from", NULL)),
                                            .min = json_get_real(o, "min", 0),
                                            .max = json_get_real(o, "max", 0)};
            if (value)
                break;
        }
    }
}

int finding_from_json(const json_t *o, struct finding *ret, struct err *err)
{
    *ret = (struct finding){0};
    const char *word = json_get_str(o, "class", NULL);
    int class = finding_class_from_string(word);
    if (class < 0)
        return message_refuse(err, ERR_BAD_REQUEST, "no_finding_class",
                              MESSAGE_ARGS(MESSAGE_STR("text", str_or(word, ""))));
    ret->class = (enum finding_class) class;
    ret->rule = xstrdup(json_get_str(o, "rule", NULL));
    ret->advice = xstrdup(json_get_str(o, "advice", NULL));
    ret->advice_code = xstrdup(json_get_str(o, "advice_code", NULL));
    ret->confidence = json_get_real(o, "confidence", 0);
    ret->rank = xstrdup(json_get_str(o, "rank", NULL));
    ret->node = xstrdup(json_get_str(o, "node", NULL));
    ret->actor = xstrdup(json_get_str(o, "actor", NULL));
    ret->pid = xstrdup(json_get_str(o, "pid", NULL));
    ret->time = xstrdup(json_get_str(o, "time", NULL));
    ret->fatal = json_get_bool(o, "fatal", false);
    ret->n_evidence =
        quotes_from_json(json_get_array(o, "evidence"), ret->evidence, FINDING_EVIDENCE_MAX);
    ret->n_after = quotes_from_json(json_get_array(o, "after"), ret->after, FINDING_AFTER_MAX);
    changes_from_json(json_get_array(o, "patch"), ret);
    second_from_json(json_get_object(o, "second"), ret);
    ret->bytes = get_count(o, "bytes");
    ret->lines = get_count(o, "lines");
    return 0;
}

const char *finding_line(const struct finding *f, char *out, size_t size)
{
    struct buf b = BUF_INIT(FINDING_QUOTE_MAX * 4);
    (void)buf_adds(&b, finding_class_to_string(f->class)); /* all below its ceiling */
    if (f->node)
        (void)buf_addf(&b, " on %s", f->node);
    if (f->rank)
        (void)buf_addf(&b, "%s rank %s", f->node ? "," : " in", f->rank);
    if (f->n_evidence)
        (void)buf_addf(&b, ": %s", f->evidence[0].text);
    text_copy_to(out, size, buf_str(&b));
    for (size_t n = strlen(out); b.len >= size && n && (out[n - 1] & 0x80);)
        out[--n] = '\0'; /* no half of a character */
    buf_release(&b);
    return out;
}
