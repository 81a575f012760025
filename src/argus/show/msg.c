/* SPDX-License-Identifier: Apache-2.0 */
/* msg.c - the table of msg.h. Texts are filled in by hand and not by printf: a
 * format that is chosen at run time cannot be checked by the compiler. */
#include "argus/show/msg.h"

#include <assert.h>
#include <string.h>

#include "base/str.h"
#include "base/text.h"

struct words {
    const char *text[2];
};

static const struct words WORDS[] = {
#define X(id, en, zh) {{en, zh}},
    MSG_TABLE(X)
#undef X
};
static_assert(array_len(WORDS) == MSG_COUNT, "one row for each message");

enum message_language lang_from_string(const char *locale)
{
    return locale && str_starts(locale, "zh") ? MESSAGE_CHINESE : MESSAGE_ENGLISH;
}

const char *msg(enum message_language lang, enum msg_id id)
{
    return WORDS[id].text[lang];
}

const char *msg_fill(enum message_language lang,
                     enum msg_id id,
                     const char *const *texts,
                     char *out,
                     int out_size)
{
    struct buf b = BUF_INIT((size_t)out_size - 1);
    for (const char *p = msg(lang, id); *p;) {
        if (*p == '%') {
            (void)buf_adds(&b, *texts++); /* out cuts it anyway */
            p += 2;
            continue;
        }
        (void)buf_addc(&b, *p++);
    }
    text_copy_to(out, (size_t)out_size, buf_str(&b));
    buf_release(&b);
    return out;
}
