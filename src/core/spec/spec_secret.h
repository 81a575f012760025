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

/* The values in this text that look like keys, each once, and the names before them ("" for one
 * known by its form). Both are added to; names may be NULL. previous: the argument before, NULL for
 * a line of its own. */
void spec_secrets_in(const char *text,
                     const char *previous,
                     struct strv *values,
                     struct strv *names);
/* Those of all overrides and arguments of a spec, and of its eval_on_save. */
void spec_list_secrets(const struct spec *s, struct strv *ret);
