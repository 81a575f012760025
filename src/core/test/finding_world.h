/* SPDX-License-Identifier: Apache-2.0 */
/* finding_world.h - the shipped rules for the tests of findings: a static set for each program. */
#pragma once
#include "base/unit.h"
#include "core/finding/finding.h"
#include "core/finding/rules/finding_rules.h"

static struct finding_rules *rules;

static int finding_set_up(void **state)
{
    struct err err = {0};
    (void)state;
    if (finding_rules_built_in(&rules, &err) < 0) {
        print_error("%s\n", err.text);
        return -1;
    }
    return 0;
}

static int finding_tear_down(void **state)
{
    (void)state;
    finding_rules_free(rules);
    return 0;
}
