/* SPDX-License-Identifier: Apache-2.0 */
/* spec_secret.h - keys that somebody wrote into overrides, entrypoint or arguments.
 *
 * A text looks like a key by the form that a provider gives its keys ("sk-…", "hf_…"), by the name
 * before it (api_key=…, --token …, PASSWORD=…) or by its place in a URL ("://user:value@"). What is
 * looked up while the job runs ($NAME, ${oc.env:NAME}) is none. It is a guess: what follows from it
 * is a warning and stars in what others see, never a refusal. Pure. */
#pragma once
#include <stdbool.h>

#include "base/strv.h"

struct spec;

/* One text of a mebibyte may hold 100,000 different ones: each is compared with this many at most.
 */
enum { SPEC_SECRETS_ONCE = 256 };

/* The values in this text that look like keys, and the names before them ("" for one known by its
 * form). Each is there once as long as there are no more than SPEC_SECRETS_ONCE. Both are added to;
 * names may be NULL. previous: the argument before, NULL for a line of its own. */
void spec_secrets_in(const char *text,
                     const char *previous,
                     struct strv *values,
                     struct strv *names);
/* The same values, for many texts in one list: a value may be in it more than once. */
void spec_add_secrets(const char *text, const char *previous, struct strv *ret);
/* Those of all overrides and arguments of a spec, and of its eval_on_save, added to ret, which is
 * in the order of bytes then. */
void spec_list_secrets(const struct spec *s, struct strv *ret);
