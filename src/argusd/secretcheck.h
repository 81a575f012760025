/* SPDX-License-Identifier: Apache-2.0 */
/* secretcheck.h - a spec at its submit: are the secrets there that it names, and only there? */
#pragma once
#include "argusd/secrets.h"
#include "core/spec.h"

/* ERR_BAD_SPEC: it names one that is not stored, or its text (as it came, or resolved) holds the
 * value of one that it names: whoever may see the job would see it. */
must_check int secretcheck(const struct secrets *s,
                           const char *user,
                           const struct spec *spec,
                           const char *text,
                           struct err *err);
/* It holds values under secret names in its environment: it is stored sealed. */
bool secretcheck_holds(const struct spec *spec);
