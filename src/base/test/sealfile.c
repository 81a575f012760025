/* SPDX-License-Identifier: Apache-2.0 */
/* What was sealed into a file opens with its key for its place; no byte of it may change, none may
 * be missing. */
#define _GNU_SOURCE
#include "base/digest/seal.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/digest/hash.h"
#include "base/file.h"
#include "base/unit.h"

static unsigned char key[SEAL_KEY_BYTES];

static int file_of(const void *p, size_t n)
{
    int fd = memfd_create("seal", MFD_CLOEXEC);
    assert_true(fd >= 0);
    assert_int_equal(file_write_all(fd, p, n), 0);
    assert_int_equal(lseek(fd, 0, SEEK_SET), 0);
    return fd;
}

static unsigned char *bytes_of(int fd, size_t *ret_n)
{
    off_t n = lseek(fd, 0, SEEK_END);
    unsigned char *p = xmalloc((size_t)n + 1);
    size_t got;
    assert_int_equal(file_read_at(fd, 0, p, (size_t)n, &got), 0);
    assert_int_equal(got, n);
    *ret_n = got;
    (void)close(fd);
    return p;
}

static unsigned char *seal(const unsigned char *p, size_t n, size_t *ret_n)
{
    int from = file_of(p, n), to = file_of("", 0);
    uint64_t bytes = 0;
    assert_int_equal(sealfile_close(key, "b/1", from, to, NULL, &bytes, NULL), 0);
    (void)close(from);
    unsigned char *sealed = bytes_of(to, ret_n);
    assert_int_equal(bytes, *ret_n);
    return sealed;
}

static int unseal(const unsigned char *sealed, size_t n, const char *place, int to, struct err *err)
{
    int from = file_of(sealed, n);
    int r = sealfile_open(key, place, from, to, 1 << 20, err);
    (void)close(from);
    return r;
}

static void test_there_and_back(void **state)
{
    (void)state;
    static const size_t sizes[] = {0, 1, 65535, 65536, 65537, 3 * 65536, 500000};
    unsigned char *plain = xcalloc(1, 500000);
    random_bytes(plain, 500000);
    for (size_t i = 0; i < array_len(sizes); i++) {
        size_t n, back;
        unsigned char *sealed = seal(plain, sizes[i], &n);
        int to = file_of("", 0);
        assert_int_equal(unseal(sealed, n, "b/1", to, NULL), 0);
        assert_int_equal(unseal(sealed, n, "b/1", -1, NULL), 0);
        unsigned char *opened = bytes_of(to, &back);
        assert_int_equal(back, sizes[i]);
        assert_memory_equal(opened, plain, back);
        assert_true(sizes[i] < 32 || !memmem(sealed, n, plain, 32));
        free(opened);
        free(sealed);
    }
    free(plain);
}

static void test_what_does_not_open(void **state)
{
    (void)state;
    size_t n;
    struct err err = {0};
    unsigned char *plain = xcalloc(1, 140000), *sealed = seal(plain, 140000, &n);
    assert_int_equal(unseal(sealed, n, "b/2", -1, &err), -EBADMSG);
    assert_string_equal(err.text, "'b/2' was sealed with another key, or it was changed or cut");
    for (size_t cut = 0; cut < n; cut += 997)
        assert_int_equal(unseal(sealed, cut, "b/1", -1, NULL), -EBADMSG);
    for (size_t at = 0; at < n; at += 1009) {
        sealed[at] ^= 1;
        assert_int_equal(unseal(sealed, n, "b/1", -1, NULL), -EBADMSG);
        sealed[at] ^= 1;
    }
    /* Two pieces change places, one stands twice, and something stands behind the end. */
    size_t piece = (64 << 10) + 17, first = n - (140000 % 65536) - 17 - 2 * piece;
    unsigned char *other = xmalloc(n + piece);
    memcpy(other, sealed, n);
    memcpy(other + first, sealed + first + piece, piece);
    memcpy(other + first + piece, sealed + first, piece);
    assert_int_equal(unseal(other, n, "b/1", -1, NULL), -EBADMSG);
    memcpy(other, sealed, first + piece);
    memcpy(other + first + piece, sealed + first, n - first);
    assert_int_equal(unseal(other, n + piece, "b/1", -1, NULL), -EBADMSG);
    memcpy(other, sealed, n);
    other[n] = 0;
    assert_int_equal(unseal(other, n + 1, "b/1", -1, NULL), -EBADMSG);
    key[3] ^= 1;
    assert_int_equal(unseal(sealed, n, "b/1", -1, NULL), -EBADMSG);
    key[3] ^= 1;
    free(other);
    free(sealed);
    free(plain);
}

static void test_bounds(void **state)
{
    (void)state;
    size_t n;
    volatile int stop = 1;
    uint64_t bytes;
    unsigned char *plain = xcalloc(1, (1 << 20) + 1), *sealed = seal(plain, (1 << 20) + 1, &n);
    assert_int_equal(unseal(sealed, n, "b/1", -1, NULL), -EFBIG);
    int from = file_of(plain, 10), to = file_of("", 0);
    assert_int_equal(sealfile_close(key, "b/1", from, to, &stop, &bytes, NULL), -ECANCELED);
    (void)close(from);
    (void)close(to);
    free(sealed);
    free(plain);
}

int main(void)
{
    hash_init();
    random_bytes(key, sizeof(key));
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_there_and_back),
        cmocka_unit_test(test_what_does_not_open),
        cmocka_unit_test(test_bounds),
    };
    return cmocka_run_group_tests_name("base/sealfile", tests, NULL, NULL);
}
