/* SPDX-License-Identifier: Apache-2.0 */
/* metric_alert.c - one line of words, read from its begin to its end; see metric_alert.h. The first
 * word that does not fit is told with its column, and with what would fit there. */
#include "core/spec/metric_alert.h"

#include <ctype.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/message.h"
#include "base/str.h"

static const char BLANKS[] = " \t";

/* The words of an alert, one after the other. */
struct alert_words {
    const char *text, *at; /* at: behind the newest word */
    char word[METRIC_ALERT_TEXT_MAX + 1];
    size_t column; /* of the newest word, from 1 */
};

void metric_alert_release(struct metric_alert *a)
{
    free(a->metric);
    *a = (struct metric_alert){0};
}

/* False at the end. */
static bool words_next(struct alert_words *w)
{
    const char *from = w->at + strspn(w->at, BLANKS);
    size_t n = strcspn(from, BLANKS);
    w->column = (size_t)(from - w->text) + 1;
    memcpy(w->word, from, n); /* the text is no longer than the array */
    w->word[n] = 0;
    w->at = from + n;
    return n > 0;
}

static bool words_is(const struct alert_words *w, const char *word)
{
    return strcasecmp(w->word, word) == 0;
}

static int words_refuse(const struct alert_words *w, const char *wanted, struct err *err)
{
    return message_refuse(err, ERR_BAD_SPEC, "metric_alert_bad",
                          MESSAGE_ARGS(MESSAGE_STR("alert", w->text),
                                       MESSAGE_STR("found", *w->word ? w->word : "its end"),
                                       MESSAGE_NUM("column", w->column),
                                       MESSAGE_STR("wanted", wanted)));
}

/* The newest word as a number; its % may stand behind a blank. */
static int words_number(struct alert_words *w, bool *ret_percent, double *ret, struct err *err)
{
    char *end;
    double x = strtod(w->word, &end);
    bool is_percent = *end == '%' && !end[1];
    if (end == w->word || (*end && !is_percent) || !isfinite(x))
        return words_refuse(w, "a number", err);
    struct alert_words next = *w;
    if (!is_percent && words_next(&next) && words_is(&next, "%")) {
        is_percent = true;
        *w = next;
    }
    *ret_percent = is_percent;
    *ret = is_percent ? x / 100 : x;
    return 0;
}

static int read_kind(struct alert_words *w, enum metric_alert_kind *ret, struct err *err)
{
    static const char *const words[] = {
#define X(e, word) word,
        METRIC_ALERT_TABLE(X)
#undef X
    };
    (void)words_next(w); /* at the end the word is empty */
    for (int k = 0; k < METRIC_ALERT_KINDS; k++)
        if (words_is(w, words[k])) {
            *ret = (enum metric_alert_kind)k;
            return 0;
        }
    return words_refuse(w, "one of < <= > >= falls rises is", err);
}

/* "20 % from best" */
static int read_share(struct alert_words *w, struct metric_alert *a, struct err *err)
{
    bool is_percent = false;
    int r = words_number(w, &is_percent, &a->number, err);
    if (r < 0)
        return r;
    if (!is_percent || a->number <= 0)
        return words_refuse(w, "a percentage above 0, such as 20 %", err);
    if (!words_next(w) || !words_is(w, "from"))
        return words_refuse(w, "from best, or from first", err);
    bool is_word = words_next(w);
    a->from_first = is_word && words_is(w, "first");
    return is_word && (a->from_first || words_is(w, "best"))
               ? 0
               : words_refuse(w, "best or first", err);
}

static int read_steps(struct alert_words *w, struct metric_alert *a, struct err *err)
{
    char *end;
    a->steps = 1;
    if (!words_next(w))
        return 0;
    if (!words_is(w, "for"))
        return words_refuse(w, "for N steps, or nothing", err);
    (void)words_next(w);
    a->steps = strtoll(w->word, &end, 10);
    if (!*w->word || *end || a->steps < 1 || a->steps > METRIC_ALERT_STEPS_MAX)
        return words_refuse(w, "a number of steps, from 1 to 100000", err);
    if (!words_next(w) || (!words_is(w, "steps") && !words_is(w, "step")))
        return words_refuse(w, "steps", err);
    return words_next(w) ? words_refuse(w, "its end", err) : 0;
}

static int read_alert(struct alert_words *w, struct metric_alert *a, struct err *err)
{
    bool is_percent = false;
    if (!words_next(w))
        return words_refuse(w, "the name of a metric", err);
    a->metric = xstrdup(w->word);
    int r = read_kind(w, &a->kind, err);
    if (r < 0)
        return r;
    (void)words_next(w); /* at the end the word is empty: no number */
    if (a->kind == METRIC_ALERT_IS_NAN)
        r = words_is(w, "nan") ? 0 : words_refuse(w, "nan", err);
    else if (a->kind == METRIC_ALERT_FALLS || a->kind == METRIC_ALERT_RISES)
        r = read_share(w, a, err);
    else
        r = words_number(w, &is_percent, &a->number, err);
    return r < 0 ? r : read_steps(w, a, err);
}

int metric_alert_parse(const char *text, struct metric_alert *ret, struct err *err)
{
    struct alert_words w = {.text = text, .at = text};
    struct metric_alert a = {0};
    if (strlen(text) > METRIC_ALERT_TEXT_MAX)
        return message_refuse(err, ERR_BAD_SPEC, "metric_alert_long",
                              MESSAGE_ARGS(MESSAGE_NUM("most", METRIC_ALERT_TEXT_MAX)));
    int r = read_alert(&w, &a, err);
    if (r < 0) {
        metric_alert_release(&a);
        return r;
    }
    *ret = a;
    return 0;
}
