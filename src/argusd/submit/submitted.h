/* SPDX-License-Identifier: Apache-2.0 */
/* submitted.h - from the body of a submit to a spec: its preset filled, and made small for a
 * smoke run. Nothing here blocks. */
#pragma once
#include "argusd/content/presets.h"
#include "argusd/ground/settings.h"
#include "core/spec/spec.h"

struct submitted {
    const struct settings *settings;
    const struct presets *presets;
    const struct access_who *who; /* who submits */
    const char *text;             /* as it came, YAML or JSON */
    size_t len;
    bool smoke;
};

/* *ret is empty before, whole and releasable in both cases. *ret_text: the spec in place of the
 * body, yours; NULL: it is the body. ERR_BAD_SPEC when ps got errors. */
must_check int submitted_read(const struct submitted *s,
                              struct spec *ret,
                              char **ret_text,
                              struct problems *ps);
