/* SPDX-License-Identifier: Apache-2.0 */
/* restart.c - reads a spec's `restart` and counts what came of it. The list of bad nodes has a
 * ceiling: a job with a thousand restarts does not grow its row with each. See restart.h. */
#include "core/spec/restart.h"

#include <stdlib.h>
#include <string.h>

#include "base/str.h"

enum { BAD_NODES_MAX = 1024 };

/* ---- what restart.on names ---- */

static uint64_t class_bit(enum finding_class c)
{
    return (uint64_t)1 << c;
}

bool restart_on_add(struct restart_on *on, const char *word)
{
    int class = finding_class_from_string(word), code = restart_code_of(word);
    if (code > 0)
        on->codes[code / 64] |= (uint64_t)1 << (code % 64);
    if (class < 0 || finding_class_is((enum finding_class) class, FINDING_NO_RESTART))
        return code > 0;
    on->classes |= class_bit((enum finding_class) class);
    return true;
}

bool restart_on_has(const struct restart_on *on, enum finding_class c)
{
    return on->classes & class_bit(c);
}

static bool has_code(const struct restart_on *on, int code)
{
    return code > 0 && code < 256 && on->codes[code / 64] & (uint64_t)1 << (code % 64);
}

void restart_on_to_text(const struct restart_on *on, struct buf *out)
{
    const char *comma = "";
    for (int c = 0; c < FINDING_CLASS_COUNT; c++)
        if (restart_on_has(on, (enum finding_class)c)) {
            (void)buf_addf(out, "%s%s", comma, finding_class_to_string((enum finding_class)c));
            comma = ",";
        }
    for (int code = 1; code < 256; code++)
        if (has_code(on, code)) {
            (void)buf_addf(out, "%sexit:%d", comma, code);
            comma = ",";
        }
    if (on->foreign)
        (void)buf_addf(out, "%s%s", comma, on->foreign); /* the caller looks at failed */
}

void restart_on_from_text(const char *text, struct restart_on *ret)
{
    const char *it;
    size_t n;
    *ret = (struct restart_on){0};
    while ((it = str_item(&text, &n))) {
        _cleanup_(freep) char *word = xstrndup(it, n);
        if (restart_on_add(ret, word))
            continue;
        char *list = xasprintf("%s%s%s", str_or(ret->foreign, ""), ret->foreign ? "," : "", word);
        free(ret->foreign);
        ret->foreign = list;
    }
}

static void take_words(struct restart_on *on, const struct strv *words)
{
    for (size_t i = 0; i < words->n; i++)
        (void)restart_on_add(on, words->v[i]); /* spec_check.c refused what is none */
    for (int c = 0; c < FINDING_CLASS_COUNT && !words->n; c++)
        if (finding_class_is((enum finding_class)c, FINDING_RESTARTS))
            on->classes |= class_bit((enum finding_class)c);
}

/* ---- the rules ---- */

void restart_from_spec(const struct spec *spec, struct restart *ret)
{
    bool trains = workload_trains((enum workload)spec->workload);
    bool goes_on = !trains || (spec->resume_mode != SPEC_RESUME_NEVER && !spec->checkpoint_none);
    *ret = (struct restart){.max = (int)spec->restart_max,
                            .backoff = spec->restart_backoff,
                            .avoid = spec->restart_avoid_failed_nodes,
                            .preemptible = spec->restart_max > 0 && goes_on};
    if (ret->max)
        take_words(&ret->on, &spec->restart_on);
}

void restart_release(struct restart *r)
{
    free(r->on.foreign);
    free(r->bad_nodes);
    *r = (struct restart){0};
}

bool restart_is_due(const struct restart *r, enum finding_class class, bool head_lost)
{
    bool infra = head_lost || finding_class_is(class, FINDING_IS_INFRA);
    if (r->failures >= r->max)
        return false;
    return restart_on_has(&r->on, class) || (infra && restart_on_has(&r->on, FINDING_INFRA));
}

int restart_code_of(const char *word)
{
    static const char PREFIX[] = "exit:";
    int64_t code = 0;
    if (!str_starts(word, PREFIX) || str_to_int(word + strlen(PREFIX), 1, 255, &code, NULL) < 0)
        return 0;
    return (int)code;
}

bool restart_is_due_by_code(const struct restart *r, int code)
{
    return r->failures < r->max && has_code(&r->on, code);
}

void restart_note_failure(struct restart *r, const char *node)
{
    r->failures++;
    r->pause = r->backoff;
    if (!r->avoid || !node || !*node || str_list_has(r->bad_nodes, node))
        return;
    const char *old = str_or(r->bad_nodes, "");
    if (strlen(old) + strlen(node) > BAD_NODES_MAX)
        old = ""; /* so many: begin anew */
    char *list = xasprintf("%s%s%s", node, *old ? "," : "", old);
    free(r->bad_nodes);
    r->bad_nodes = list;
}
