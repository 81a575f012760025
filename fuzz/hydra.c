/* SPDX-License-Identifier: Apache-2.0 */
/* hydra.c - quotes any text and reads it back as Hydra and then OmegaConf do (rules at the top
 * of core/verl/hydra.c): the bytes must be those that were meant. */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "core/verl/hydra.h"
#include "fuzz.h"

/* Undo: a run of backslashes before stop is 2k + 1 and stood for k and the stop itself. */
static void unescape(struct buf *out, const char *s, const char *stop, bool at_end)
{
    while (*s) {
        size_t n = strspn(s, "\\");
        bool stops = !strncmp(s + n, stop, strlen(stop));
        assert(!stops || n % 2 == 1); /* else the reader sees the stop */
        for (size_t i = stops ? n / 2 : !s[n] && at_end ? n / 2 : n; i > 0; i--)
            (void)buf_addc(out, '\\'); /* out is as large as the input */
        s += n;
        if (*s)
            (void)buf_addc(out, *s++);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    _cleanup_(freep) char *value = xstrndup((const char *)data, size);
    _cleanup_(buf_release) struct buf quoted = BUF_INIT(1 << 20), one = BUF_INIT(1 << 20),
                                      two = BUF_INIT(1 << 20);
    if (hydra_quote(&quoted, value, NULL) < 0)
        return quoted.len ? abort(), 0 : 0;
    if (quoted.data[0] != '\'') { /* bare: the very text */
        assert(!strcmp(quoted.data, value));
        return 0;
    }
    assert(quoted.data[quoted.len - 1] == '\'');
    quoted.data[quoted.len - 1] = 0;
    unescape(&one, quoted.data + 1, "'", true);
    unescape(&two, buf_str(&one), "${", false);
    assert(!strcmp(buf_str(&two), value));
    return 0;
}
