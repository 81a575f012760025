/* SPDX-License-Identifier: Apache-2.0 */
/* msg.c - see msg.h. Its texts are put in as they are, also those that are no UTF-8. */
#include "argus/show/msg.h"

#include <string.h>

#include "base/str.h"
#include "base/text.h"

enum message_language lang_from_string(const char *locale)
{
    return locale && str_starts(locale, "zh") ? MESSAGE_CHINESE : MESSAGE_ENGLISH;
}

const char *msg(enum message_language lang, const char *code)
{
    return code ? message_words(code, lang) : "";
}

const char *msg_fill(enum message_language lang,
                     const char *code,
                     const char *const *texts,
                     char *out,
                     int out_size)
{
    struct buf b = BUF_INIT((size_t)out_size - 1);
    for (const char *p = msg(lang, code); *p;) {
        if (p[0] == '{' && p[1] >= '1' && p[1] <= '9' && p[2] == '}') {
            (void)buf_adds(&b, texts[p[1] - '1']); /* out cuts it anyway */
            p += 3;
        } else {
            (void)buf_addc(&b, *p++);
        }
    }
    text_copy_to(out, (size_t)out_size, buf_str(&b));
    buf_release(&b);
    return out;
}
