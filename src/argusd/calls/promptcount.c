/* SPDX-License-Identifier: Apache-2.0 */
/* promptcount.c - see promptcount.h. The body is a stranger's and is not read as JSON: whatever it
 * is, it has a number, which is never more than its bytes. */
#include "argusd/calls/promptcount.h"

#include <stdbool.h>

/* A letter of base64, also of that for URLs. */
static bool promptcount_is_packed(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '+' ||
           c == '/' || c == '-' || c == '_' || c == '=';
}

/* Behind a backslash: "\/" is how some write a slash in JSON, "\n" may stand in base64. Whatever
 * else is escaped is of a text, and what a text is made of counts, however long it is. */
static void promptcount_add_escaped(struct promptcount *c, char is)
{
    enum { HEX_TOO_MANY = 3 }; /* "\u4f60" counts as the three bytes that it has in UTF-8 */
    if (is != '/' && is != 'n' && is != 'r')
        c->run = 0;
    c->bytes += c->run < PROMPTCOUNT_RUN;
    c->skip = is == 'u' ? HEX_TOO_MANY : 0;
}

static void promptcount_add_byte(struct promptcount *c, char is)
{
    const bool is_escaped = c->is_escaped;
    c->is_escaped = !is_escaped && is == '\\';
    if (is_escaped) {
        promptcount_add_escaped(c, is);
    } else if (c->skip) {
        c->skip--;
    } else {
        bool goes_on = c->is_escaped || promptcount_is_packed(is);
        c->run = goes_on ? c->run + 1 : 0;
        c->bytes += c->run <= PROMPTCOUNT_RUN;
    }
}

void promptcount_add(struct promptcount *c, const char *p, size_t n)
{
    for (size_t i = 0; i < n; i++)
        promptcount_add_byte(c, p[i]);
}

int64_t promptcount_tokens(const struct promptcount *c)
{
    return (int64_t)((c->bytes + PROMPTCOUNT_BYTES_OF_TOKEN - 1) / PROMPTCOUNT_BYTES_OF_TOKEN);
}
