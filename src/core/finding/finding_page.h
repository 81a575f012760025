/* SPDX-License-Identifier: Apache-2.0 */
/* finding_page.h - a finding as people and programs are shown it, and as it is stored: one table
 * of its members, for the JSON and for openapi.json. */
#pragma once
#include "base/field.h"
#include "core/finding/finding.h"

struct finding_change_page {
    const char *key, *set, *scale, *add, *from;
    double min, max;
};

struct finding_second_page {
    const char *class, *meaning, *rule, *advice, *advice_code;
    double confidence;
    const struct finding_quote *quote;
};

struct finding_page {
    const char *class, *meaning, *rule, *rank, *node, *actor, *pid, *time, *advice, *advice_code;
    double confidence;
    bool fatal;
    struct field_list evidence, after, patch;
    uint64_t bytes, lines;
    struct finding_change_page changes[FINDING_CHANGES_MAX];
    struct finding_second_page other;
    const struct finding_second_page *second; /* other, or NULL */
};

extern const struct field_table finding_page_table, finding_quote_table, finding_change_table,
    finding_second_table;

/* Borrows from f, and points into itself: for one writing, in its place. */
void finding_page_fill(const struct finding *f, struct finding_page *ret);
