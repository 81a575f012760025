/* SPDX-License-Identifier: Apache-2.0 */
/* finding_builtin.c - the rules that lie in rules/, as the program was built with them. */
#include <errno.h>

#include "core/finding/rules/finding_rules.h"
#include "embedded.h"

#define FILES(X)                                                                                   \
    X(config)                                                                                      \
    X(data) X(engine) X(gpu) X(memory) X(nccl) X(noise) X(python) X(ray) X(system) X(training)

static const struct {
    const char *name;
    const unsigned char *text;
    const size_t *size;
} BUILT_IN[] = {
#define X(name) {#name ".yaml", embedded_##name##_yaml, &embedded_##name##_yaml_size},
    FILES(X)
#undef X
};

int finding_rules_built_in(struct finding_rules **ret, struct err *err)
{
    struct finding_rules *rules = finding_rules_new();
    struct problems ps = {0};
    int r = 0;
    for (size_t i = 0; i < array_len(BUILT_IN) && r == 0; i++) {
        r = finding_rules_add(rules, (const char *)BUILT_IN[i].text, *BUILT_IN[i].size, &ps);
        if (r < 0 && ps.n)
            (void)problems_to_err(&ps, BUILT_IN[i].name, r, err); /* only fills err */
    }
    problems_release(&ps);
    if (r == 0)
        r = finding_rules_compile(rules, err);
    if (r < 0) {
        finding_rules_free(rules);
        return r;
    }
    *ret = rules;
    return 0;
}
