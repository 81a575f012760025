/* SPDX-License-Identifier: Apache-2.0 */
/* trial_finding.c - the finding of a trial; see trial.h. Texts and numbers are those of the job's
 * own environment: an advice is one of the catalogue's, a patch has known keys and a value that is
 * worked out here. */
#include <inttypes.h>
#include <string.h>

#include "base/message.h"
#include "base/str.h"
#include "base/text.h"
#include "core/check/trial.h"

enum {
    TRIAL_PATH_MAX = 4096,
    TRIAL_CODE_MAX = 40,
    TRIAL_SILENT_MAX = 120,
    TRIAL_BATCH_MAX = 1 << 20
};

static enum finding_class class_of_trial(const char *word)
{
    int class = finding_class_from_string(word);
    bool fits = class >= 0 && finding_class_is((enum finding_class) class, FINDING_OF_TRIAL);
    return fits ? (enum finding_class) class : FINDING_CONFIG_ERROR;
}

static uint64_t trial_count(const json_t *o, const char *key)
{
    int64_t v = json_get_int(o, key, 0);
    return v > 0 ? (uint64_t)v : 0;
}

static char *trial_copy(const char *text, size_t max)
{
    return xstrndup(text, str_cut(text, max));
}

/* at: {"offset","line"} of the source; NULL, and a source that is no text: a fact. */
static void trial_quote(struct finding *f, const char *source, const json_t *at, const char *text)
{
    if (f->n_evidence == FINDING_EVIDENCE_MAX)
        return;
    f->evidence[f->n_evidence++] =
        (struct finding_quote){.source = at ? trial_copy(source, TRIAL_PATH_MAX) : NULL,
                               .offset = trial_count(at, "offset"),
                               .line = trial_count(at, "line"),
                               .text = trial_copy(text, FINDING_QUOTE_MAX)};
}

/* The sentence, and the user's own line, which stands in a file that only its whole path names. */
static void trial_quote_found(struct finding *f, const json_t *found)
{
    const json_t *place = json_get_object(found, "place");
    const char *file = json_get_str(place, "file", ""), *says = json_get_str(found, "detail", "");
    char silent[TRIAL_SILENT_MAX];
    message_to_string("trial_silent", "{}", true, silent, sizeof(silent));
    trial_quote(f, TRIAL_LOG, json_get_object(found, "log"), *says ? says : silent);
    if (*file == '/')
        trial_quote(f, file, place, json_get_str(place, "text", ""));
}

/* By the word that the trial says, a row of message_advice.c. */
static void trial_advise(struct finding *f, const char *code)
{
    char name[TRIAL_CODE_MAX];
    text_printf(name, "trial-%s", code);
    if (!*code || !message_is_known(name))
        text_copy(name, "trial");
    finding_advise(f, name);
    f->rule = xstrdup(name);
}

/* The largest size that the rows fill; a divisor of the old size divides by what that one did. */
static int64_t largest_batch(int64_t rows, int64_t batch)
{
    int64_t parts = (batch + rows - 1) / rows;
    while (batch % parts)
        parts++;
    return batch / parts;
}

static void trial_set(struct finding *f, const char *key, int64_t value)
{
    f->patch[f->n_patch++] = (struct finding_change){
        .key = xstrdup(key), .op = FINDING_SET, .value = xasprintf("%" PRId64, value)};
}

/* A batch that the data does not fill: {"rows","batch","mini_batch"} as the trial counted them. */
static void trial_patch(struct finding *f, const json_t *fit)
{
    int64_t rows = json_get_int(fit, "rows", 0), batch = json_get_int(fit, "batch", 0);
    if (rows <= 0 || batch <= rows || batch > TRIAL_BATCH_MAX)
        return;
    int64_t fits = largest_batch(rows, batch);
    trial_set(f, "overrides.data.train_batch_size", fits);
    if (json_get_int(fit, "mini_batch", 0) > fits)
        trial_set(f, "overrides.actor_rollout_ref.actor.ppo_mini_batch_size", fits);
}

void trial_finding(const json_t *findings, struct finding *ret)
{
    const json_t *first = json_array_get(findings, 0), *found;
    size_t i;
    *ret = (struct finding){
        .class = class_of_trial(json_get_str(first, "class", "")), .confidence = 1, .fatal = true};
    trial_advise(ret, json_get_str(first, "advice", ""));
    trial_patch(ret, json_get_object(first, "fit"));
    json_array_foreach (findings, i, found)
        trial_quote_found(ret, found);
    if (!ret->n_evidence)
        trial_quote_found(ret, NULL);
}

void trial_finding_of_refusal(const char *sentence, struct finding *ret)
{
    *ret = (struct finding){.class = FINDING_CONFIG_ERROR, .confidence = 1, .fatal = true};
    trial_advise(ret, "refused");
    trial_quote(ret, NULL, NULL, sentence);
}
