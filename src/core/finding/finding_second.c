/* SPDX-License-Identifier: Apache-2.0 */
/* finding_second.c - what it is else, where that is close.
 *
 * In this order: a candidate of another class that nothing outranks and that is hardly lighter
 * than the first; what an exception is by itself, where only the frames of its traceback gave the
 * class; what the rule of the first says it is as likely (`or`). A finding that is sure has none:
 * a second that always stands there says nothing. */
#include <stdlib.h>

#include "base/mem.h"
#include "core/finding/finding_candidate.h"

enum {
    SECOND_STEPS = 1, /* so much lighter it may be */
    SURE = 60,        /* a first that weighs so much has a second only within its own step */
};

/* Behind the first, and both together at most 1. */
static double second_confidence(const struct finding *f, int weight)
{
    static const double by_step[] = {0.2, 0.3, 0.4, 0.45, 0.5};
    double most = 1 - f->confidence, v = by_step[weight / STEP];
    v = v < most ? v : most;
    return v < f->confidence ? v : f->confidence;
}

static void second_set(struct finding *ret,
                       enum finding_class class,
                       const struct finding_rule *rule,
                       int weight)
{
    ret->second = (struct finding_second){.class = class,
                                          .rule = xstrdup(rule ? rule->id : NULL),
                                          .confidence = second_confidence(ret, weight)};
    if (rule && rule->advice && rule->class == class) {
        ret->second.advice = xstrdup(rule->advice);
        ret->second.advice_code = xstrdup(rule->id);
    }
}

static bool second_is_close(const struct candidate *best, const struct candidate *other)
{
    int steps = best->weight / STEP - other->weight / STEP;
    return other->weight >= HINT && steps <= (best->weight >= SURE ? 0 : SECOND_STEPS);
}

static void second_of_candidate(const struct candidate *other, struct finding *ret)
{
    const struct finding_event *e = other->event;
    second_set(ret, other->class, e && e->frame ? e->frame : e ? e->rule : NULL, other->weight);
    if (e) {
        ret->second.quote = (struct finding_quote){.source = xstrdup(e->quote.source),
                                                   .offset = e->quote.offset,
                                                   .line = e->quote.line,
                                                   .text = xstrdup(e->quote.text)};
        return;
    }
    free(ret->second.rule);
    ret->second.rule = xstrdup(other->fact->id);
    ret->second.quote.text = xstrdup(other->fact->text);
}

void finding_second_fill(const struct candidates *c,
                         const struct candidate *best,
                         struct finding *ret)
{
    const struct candidate *other = candidates_best(c, best);
    const struct finding_event *e = best->event;
    if (other && second_is_close(best, other))
        second_of_candidate(other, ret);
    else if (e && e->frame && e->rule->class != e->class)
        second_set(ret, e->rule->class, e->rule, e->rule->weight);
    else if (e && e->rule->or != FINDING_NONE && e->rule->or != e->class)
        second_set(ret, e->rule->or, NULL, best->weight);
    ret->has_second = ret->second.class != FINDING_NONE;
}
