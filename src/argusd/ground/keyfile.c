/* SPDX-License-Identifier: Apache-2.0 */
/* keyfile.c - see keyfile.h. A key that others could open is no key any more: it is refused. */
#define _GNU_SOURCE
#include "argusd/ground/keyfile.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/digest/hash.h"
#include "base/file.h"
#include "base/str.h"

static int keyfile_check(const char *path, struct err *err)
{
    struct stat st;
    if (lstat(path, &st) < 0)
        return err_set(err, -errno, "'%s' cannot be read: %s", path, strerror(errno));
    if (!S_ISREG(st.st_mode) || st.st_uid != geteuid())
        return err_set(err, ERR_USAGE, "'%s' is not a plain file of the user that argusd runs as",
                       path);
    if (st.st_mode & 077)
        return err_set(err, ERR_USAGE,
                       "others can open '%s' (mode %03o): make it 0600 and consider what it "
                       "protected as known",
                       path, (unsigned)st.st_mode & 0777);
    return 0;
}

static int hex_digit(char c)
{
    const char *digits = "0123456789abcdef", *p = c ? strchr(digits, c) : NULL;
    return p ? (int)(p - digits) : -1;
}

static bool keyfile_parse(const char *text, unsigned char ret[static SEAL_KEY_BYTES])
{
    if (strspn(text, "0123456789abcdef") != 2 * SEAL_KEY_BYTES)
        return false;
    for (size_t i = 0; i < SEAL_KEY_BYTES; i++)
        ret[i] = (unsigned char)(hex_digit(text[2 * i]) * 16 + hex_digit(text[2 * i + 1]));
    return true;
}

int keyfile_read(const char *path, unsigned char ret[static SEAL_KEY_BYTES], struct err *err)
{
    struct buf text = BUF_INIT(4096);
    int r = keyfile_check(path, err);
    if (r == 0)
        r = file_read(path, &text, err);
    if (r == 0 && !keyfile_parse(buf_str(&text), ret))
        r = err_set(err, ERR_USAGE, "'%s' holds no key of ours: bring back the one of a backup",
                    path);
    seal_forget(text.data, text.len);
    buf_release(&text);
    return r;
}

int keyfile_write(const char *path, const unsigned char key[static SEAL_KEY_BYTES], struct err *err)
{
    char hex[2 * SEAL_KEY_BYTES + 2];
    (void)str_hex(key, SEAL_KEY_BYTES, hex);
    hex[sizeof(hex) - 2] = '\n';
    int r = file_write_private(path, hex, sizeof(hex) - 1, err);
    seal_forget(hex, sizeof(hex));
    return r < 0 ? err_set(err, ERR_STORE, "the key cannot be written to '%s'", path) : 0;
}

int keyfile_make(const char *path, unsigned char ret[static SEAL_KEY_BYTES], struct err *err)
{
    random_bytes(ret, SEAL_KEY_BYTES);
    return keyfile_write(path, ret, err);
}
