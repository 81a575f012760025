/* SPDX-License-Identifier: Apache-2.0 */
/* seal.c - encrypted boxes for secrets; see seal.h. Inside the box stand the place, a zero byte
 * and the bytes. */
#include "base/seal.h"

#include <assert.h>
#include <errno.h>
#include <sodium.h>
#include <stdlib.h>
#include <string.h>

#include "base/str.h"

static const char MARK[] = "argus-sealed:1:";
enum { VARIANT = sodium_base64_VARIANT_URLSAFE_NO_PADDING, NONCE = crypto_secretbox_NONCEBYTES };
static_assert(SEAL_KEY_BYTES == crypto_secretbox_KEYBYTES, "a key of secretbox");

bool seal_is_sealed(const char *text)
{
    return text && str_starts(text, MARK);
}

void seal_forget(void *p, size_t n)
{
    if (n)
        sodium_memzero(p, n);
}

char *seal_close(const unsigned char key[static SEAL_KEY_BYTES],
                 const char *place,
                 const void *p,
                 size_t n)
{
    size_t head = strlen(place) + 1, plain = head + n, boxed = plain + crypto_secretbox_MACBYTES;
    unsigned char *text = xmalloc(plain), *box = xmalloc(NONCE + boxed);
    memcpy(text, place, head);
    if (n)
        memcpy(text + head, p, n);
    randombytes_buf(box, NONCE);
    (void)crypto_secretbox_easy(box + NONCE, text, plain, box, key); /* always 0 */
    size_t mark = sizeof(MARK) - 1, len = sodium_base64_ENCODED_LEN(NONCE + boxed, VARIANT);
    char *out = xmalloc(mark + len);
    memcpy(out, MARK, mark);
    (void)sodium_bin2base64(out + mark, len, box, NONCE + boxed, VARIANT); /* len is for it */
    seal_forget(text, plain);
    free(text);
    free(box);
    return out;
}

/* The bytes of the box into text, which has room for them. */
static bool unbox(const unsigned char key[static SEAL_KEY_BYTES],
                  const char *sealed,
                  unsigned char *text,
                  size_t *ret_n)
{
    const char *code = sealed + sizeof(MARK) - 1;
    size_t max = strlen(code), n;
    unsigned char *box = xmalloc(max + 1);
    bool ok = sodium_base642bin(box, max, code, max, NULL, &n, NULL, VARIANT) == 0 &&
              n >= NONCE + crypto_secretbox_MACBYTES &&
              crypto_secretbox_open_easy(text, box + NONCE, n - NONCE, box, key) == 0;
    *ret_n = ok ? n - NONCE - crypto_secretbox_MACBYTES : 0;
    free(box);
    return ok;
}

int seal_open(const unsigned char key[static SEAL_KEY_BYTES],
              const char *place,
              const char *sealed,
              struct buf *out,
              struct err *err)
{
    size_t max = strlen(sealed) + 1, n = 0, head = strlen(place) + 1;
    unsigned char *text = xmalloc(max);
    bool ok = seal_is_sealed(sealed) && unbox(key, sealed, text, &n) && n >= head &&
              !memcmp(text, place, head) && buf_add(out, text + head, n - head) == 0;
    seal_forget(text, max);
    free(text);
    return ok ? 0
              : err_set(err, -EBADMSG, "'%s' was sealed with another key, or its row was changed",
                        place);
}
