/* SPDX-License-Identifier: Apache-2.0 */
/* findingview.h - a finding for people, and any log diagnosed on this machine. */
#pragma once
#include "argus/show/term.h"
#include "core/finding/finding.h"

/* Class, who and where, the quoted lines with their places, what only followed, advice, fix. */
void findingview_print(const struct finding *f, const struct term *t, FILE *out);

/* Rules of a directory (every *.yaml of it), or, with NULL, those of this program. */
must_check int findingview_rules(const char *dir, struct finding_rules **ret, struct err *err);

/* Read a log ("-" is standard input) to its end and judge it. */
must_check int findingview_diagnose(const struct finding_rules *rules,
                                    const char *file,
                                    const struct finding_facts *facts,
                                    struct finding *ret,
                                    struct err *err);
