/* SPDX-License-Identifier: Apache-2.0 */
/* finding_describe.c - the page for people: every class, what it means, what to do. */
#include <string.h>

#include "base/str.h"
#include "core/finding/rules/finding_rule.h"

static void describe_rule(const struct finding_rule *r, struct buf *out)
{
    (void)buf_addf(out, "- **%s**: %s.\n", r->id, r->advice); /* the caller looks at failed */
    for (size_t i = 0; i < r->n_patch; i++) {
        (void)buf_adds(out, i ? ", " : "  Fix: ");
        finding_change_to_text(&r->patch[i], out);
    }
    if (r->n_patch)
        (void)buf_adds(out, ".\n");
}

static void describe_class(const struct finding_rules *rules,
                           enum finding_class class,
                           struct buf *out)
{
    (void)buf_addf(out, "\n## %s\n%s.\n", finding_class_to_string(class),
                   finding_class_meaning(class));
    bool first = true;
    for (size_t i = 0; i < rules->n; i++) {
        const struct finding_rule *r = &rules->v[i];
        if (r->class != class || r->role != ROLE_CAUSE)
            continue;
        (void)buf_adds(out, first ? "\n" : "");
        first = false;
        describe_rule(r, out);
    }
}

void finding_rules_describe(const struct finding_rules *r, struct buf *out)
{
    (void)buf_adds(out,
                   "# Findings\n\nWhat an interruption can be, by class, and what to do. Made from "
                   "`rules/*.yaml` by `argus diagnose --list-rules`; the\nrules are data: a "
                   "directory of them is tried with `argus diagnose --log FILE --rules DIR`.\n");
    for (int c = 0; c < FINDING_CLASS_COUNT; c++)
        describe_class(r, (enum finding_class)c, out);
}
