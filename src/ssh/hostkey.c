/* SPDX-License-Identifier: Apache-2.0 */
/* hostkey.c - our file of pinned host keys: lines "argus-<name> <type> <base64>" that ssh
 * appends at first contact. We read them, and take lines out; ssh alone writes them. */
#include <errno.h>
#include <sodium.h>
#include <stdlib.h>
#include <string.h>

#include "base/digest/hash.h"
#include "base/file.h"
#include "ssh/command.h"

enum { FILE_MAX = 8 << 20, KEY_BYTES_MAX = 4096 };

/* The next word of a line, without leading blanks. Its length; *p stands behind it. */
static size_t next_word(const char **p, const char *end, const char **ret)
{
    while (*p < end && (**p == ' ' || **p == '\t'))
        (*p)++;
    *ret = *p;
    while (*p < end && **p != ' ' && **p != '\t' && **p != '\r')
        (*p)++;
    return (size_t)(*p - *ret);
}

/* Whether a line pins a key of this name; the key's text then. */
static bool hostkey_read_line(const char *p,
                              const char *end,
                              const char *name,
                              const char **key,
                              size_t *n)
{
    const char *word = NULL;
    size_t len = next_word(&p, end, &word);
    if (len != strlen(name) || memcmp(word, name, len) != 0)
        return false;
    return next_word(&p, end, &word) > 0 && (*n = next_word(&p, end, key)) > 0;
}

static const char *line_end(const char *p, const char *end)
{
    const char *nl = memchr(p, '\n', (size_t)(end - p));
    return nl ? nl : end;
}

static bool fingerprint(const char *key, size_t n, char ret[static SSH_KEY_MAX])
{
    unsigned char bytes[KEY_BYTES_MAX], hash[HASH_BYTES];
    size_t len = 0;
    if (sodium_base642bin(bytes, sizeof(bytes), key, n, NULL, &len, NULL,
                          sodium_base64_VARIANT_ORIGINAL) != 0 ||
        len == 0)
        return false;
    hash_sha256(bytes, len, hash);
    memcpy(ret, "SHA256:", 7);
    (void)sodium_bin2base64(ret + 7, SSH_KEY_MAX - 7, hash, sizeof(hash),
                            sodium_base64_VARIANT_ORIGINAL_NO_PADDING); /* 43 characters fit */
    return true;
}

void ssh_find_key(const char *text, size_t len, const char *name, char ret[static SSH_KEY_MAX])
{
    _cleanup_(freep) char *pinned = command_key_name(name);
    const char *end = text + len;
    ret[0] = 0;
    for (const char *p = text; p < end; p = line_end(p, end) + 1) {
        const char *key = NULL;
        size_t n = 0;
        if (hostkey_read_line(p, line_end(p, end), pinned, &key, &n) && fingerprint(key, n, ret))
            return;
    }
}

/* The file; empty when there is none. */
static int hostkey_read_file(const struct ssh_target *t, struct buf *text, struct err *err)
{
    if (t->local || !t->known_hosts)
        return 0;
    int r = file_read(t->known_hosts, text, err);
    return r == -ENOENT ? 0 : r;
}

int ssh_pinned_key(const struct ssh_target *t, char ret[static SSH_KEY_MAX], struct err *err)
{
    _cleanup_(buf_release) struct buf text = BUF_INIT(FILE_MAX);
    int r = hostkey_read_file(t, &text, err);
    if (r == 0)
        ssh_find_key(buf_str(&text), text.len, t->name, ret);
    return r;
}

int ssh_forget_key(const struct ssh_target *t, struct err *err)
{
    _cleanup_(buf_release) struct buf text = BUF_INIT(FILE_MAX);
    _cleanup_(buf_release) struct buf rest = BUF_INIT(FILE_MAX);
    _cleanup_(freep) char *name = command_key_name(t->name);
    int r = hostkey_read_file(t, &text, err);
    if (r < 0)
        return r;
    const char *end = buf_str(&text) + text.len, *key = NULL;
    for (const char *p = buf_str(&text); p < end;) {
        size_t n = 0;
        const char *stop = line_end(p, end), *next = stop < end ? stop + 1 : end;
        if (!hostkey_read_line(p, stop, name, &key, &n))
            (void)buf_add(&rest, p, (size_t)(next - p)); /* no more than was read */
        p = next;
    }
    if (rest.len == text.len)
        return 0;
    return file_write(t->known_hosts, buf_str(&rest), rest.len, 0600, FILE_SYNC, err);
}
