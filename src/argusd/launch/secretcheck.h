/* SPDX-License-Identifier: Apache-2.0 */
/* secretcheck.h - a spec and its secrets: are those there that it names, and only there; and their
 * values, for what is about to run. */
#pragma once
#include "argusd/ground/settings.h"
#include "argusd/people/secrets.h"
#include "core/spec/spec.h"

/* ERR_BAD_SPEC: it names one that is not stored, or its text (as it came, or resolved) holds the
 * value of one that it names: whoever may see the job would see it. */
must_check int secretcheck(const struct secrets *s,
                           const char *user,
                           const struct spec *spec,
                           const char *text,
                           struct err *err);
/* What the job's spec names, opened: added to ret, which is to be wiped. ERR_BAD_SPEC: one is not
 * there any more. A spec that cannot be read names none: whoever plans it says so. */
must_check int secretcheck_open(struct secrets *s,
                                const struct settings *settings,
                                const struct job *job,
                                struct pairs *ret,
                                struct err *err);
/* It holds values under secret names in its environment: it is stored sealed. */
bool secretcheck_holds(const struct spec *spec);
