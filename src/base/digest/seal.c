/* SPDX-License-Identifier: Apache-2.0 */
/* seal.c - encrypted boxes for secrets, and sealed files; see seal.h. Inside the box stand the
 * place, a zero byte and the bytes; of a file the place is the additional data of each piece. */
#include "base/digest/seal.h"

#include <assert.h>
#include <errno.h>
#include <sodium.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
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

/* ---- files ---- */

static const char SEALFILE_MARK[] = "argus-sealed-file:1\n";
enum {
    MARK_BYTES = sizeof(SEALFILE_MARK) - 1,
    HEADER = crypto_secretstream_xchacha20poly1305_HEADERBYTES,
    MORE = crypto_secretstream_xchacha20poly1305_ABYTES,
    PIECE = 64 << 10,
};

struct sealing {
    crypto_secretstream_xchacha20poly1305_state state;
    const char *place;
    int from, to;
    unsigned char plain[PIECE], sealed[PIECE + MORE];
};

static struct sealing *sealing_new(const char *place, int from, int to)
{
    struct sealing *s = xcalloc(1, sizeof(*s));
    s->place = place;
    s->from = from;
    s->to = to;
    return s;
}

static void sealing_free(struct sealing *s)
{
    sodium_memzero(s, sizeof(*s));
    free(s);
}

/* n bytes, fewer only at the end. A negative errno. */
static int sealing_fill(int fd, unsigned char *to, size_t n, size_t *ret)
{
    *ret = 0;
    while (*ret < n) {
        ssize_t got = read(fd, to + *ret, n - *ret);
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0)
            return -errno;
        if (!got)
            break;
        *ret += (size_t)got;
    }
    return 0;
}

static int sealing_begin(struct sealing *s, const unsigned char *key)
{
    unsigned char head[MARK_BYTES + HEADER];
    memcpy(head, SEALFILE_MARK, MARK_BYTES);
    (void)crypto_secretstream_xchacha20poly1305_init_push(&s->state, head + MARK_BYTES,
                                                          key); /* always 0 */
    return file_write_all(s->to, head, sizeof(head));
}

/* One piece, the last one if fewer bytes than a piece were left; an empty last one is a piece. */
static int sealing_push(struct sealing *s, bool *ret_last, uint64_t *bytes)
{
    size_t n;
    unsigned long long sealed;
    int r = sealing_fill(s->from, s->plain, PIECE, &n);
    if (r < 0)
        return r;
    *ret_last = n < PIECE;
    (void)crypto_secretstream_xchacha20poly1305_push(
        &s->state, s->sealed, &sealed, s->plain, n, (const unsigned char *)s->place,
        strlen(s->place),
        *ret_last ? crypto_secretstream_xchacha20poly1305_TAG_FINAL : 0); /* always 0 */
    *bytes += sealed;
    return file_write_all(s->to, s->sealed, (size_t)sealed);
}

int sealfile_close(const unsigned char key[static SEAL_KEY_BYTES],
                   const char *place,
                   int from,
                   int to,
                   const volatile int *stop,
                   uint64_t *ret_bytes,
                   struct err *err)
{
    struct sealing *s = sealing_new(place, from, to);
    uint64_t bytes = MARK_BYTES + HEADER;
    bool last = false;
    int r = sealing_begin(s, key);
    while (r == 0 && !last)
        r = stop && *stop ? -ECANCELED : sealing_push(s, &last, &bytes);
    sealing_free(s);
    if (r < 0)
        return err_set(err, r, "'%s' cannot be sealed: %s", place, strerror(-r));
    *ret_bytes = bytes;
    return 0;
}

/* ---- opening ---- */

static int sealing_begin_open(struct sealing *s, const unsigned char *key)
{
    unsigned char head[MARK_BYTES + HEADER];
    size_t n;
    int r = sealing_fill(s->from, head, sizeof(head), &n);
    if (r < 0)
        return r;
    if (n < sizeof(head) || memcmp(head, SEALFILE_MARK, MARK_BYTES) != 0 ||
        crypto_secretstream_xchacha20poly1305_init_pull(&s->state, head + MARK_BYTES, key) != 0)
        return -EBADMSG;
    return 0;
}

static int sealing_pull(struct sealing *s, bool *ret_last, uint64_t *left)
{
    size_t n;
    unsigned long long plain;
    unsigned char tag;
    int r = sealing_fill(s->from, s->sealed, sizeof(s->sealed), &n);
    if (r < 0)
        return r;
    if (crypto_secretstream_xchacha20poly1305_pull(&s->state, s->plain, &plain, &tag, s->sealed, n,
                                                   (const unsigned char *)s->place,
                                                   strlen(s->place)) != 0)
        return -EBADMSG;
    *ret_last = tag == crypto_secretstream_xchacha20poly1305_TAG_FINAL;
    if (plain > *left)
        return -EFBIG;
    *left -= plain;
    return s->to < 0 ? 0 : file_write_all(s->to, s->plain, (size_t)plain);
}

int sealfile_open(const unsigned char key[static SEAL_KEY_BYTES],
                  const char *place,
                  int from,
                  int to,
                  uint64_t most,
                  struct err *err)
{
    struct sealing *s = sealing_new(place, from, to);
    bool last = false;
    size_t behind = 0;
    int r = sealing_begin_open(s, key);
    while (r == 0 && !last)
        r = sealing_pull(s, &last, &most);
    if (r == 0)
        r = sealing_fill(from, s->sealed, 1, &behind);
    if (r == 0 && behind)
        r = -EBADMSG;
    sealing_free(s);
    if (r == -EBADMSG)
        return err_set(err, r, "'%s' was sealed with another key, or it was changed or cut", place);
    return r < 0 ? err_set(err, r, "'%s' cannot be opened: %s", place, strerror(-r)) : 0;
}
