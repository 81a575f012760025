/* SPDX-License-Identifier: Apache-2.0 */
/* Archives of users: what is taken, and each kind that is refused, with nothing left behind. */
#include <archive.h>
#include <archive_entry.h>
#include <dirent.h>
#include <endian.h>
#include <errno.h>
#include <fcntl.h>
#include <locale.h>
#include <lzma.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/resource.h>

#include "base/digest/filehash.h"
#include "base/str.h"
#include "base/strv.h"
#include "base/unit_dir.h"
#include "fsroot/content/snapshot.h"
#include "fsroot/tree/dirtree.h"
#include "fsroot/tree/root.h"

/* ---- archives ---- */

struct item {
    const char *path, *text; /* text of a file, target of a link */
    unsigned type;           /* 0 = a file */
    unsigned mode;           /* 0 = 0644 */
    int64_t size;            /* 0 = that of the text; a bomb's own */
};

enum form { TAR, TAR_GZ, TAR_XZ, TAR_ZST, ZIP, STORED };

static void set_form(struct archive *a, enum form form)
{
    int r = form >= ZIP ? archive_write_set_format_zip(a) : archive_write_set_format_pax(a);
    assert_int_equal(r, ARCHIVE_OK);
    if (form == TAR_GZ)
        r = archive_write_add_filter_gzip(a);
    else if (form == TAR_XZ)
        r = archive_write_add_filter_xz(a);
    else if (form == TAR_ZST)
        r = archive_write_add_filter_zstd(a);
    else if (form == STORED)
        r = archive_write_zip_set_compression_store(a);
    assert_int_equal(r, ARCHIVE_OK);
}

static void write_item(struct archive *a, const struct item *it)
{
    static const char zeros[64 << 10];
    struct archive_entry *e = archive_entry_new();
    unsigned type = it->type ? it->type : AE_IFREG;
    int64_t size = it->size ? it->size : (int64_t)strlen(str_or(it->text, ""));
    archive_entry_set_pathname(e, it->path);
    archive_entry_set_mode(e, (mode_t)(type | (it->mode ? it->mode : 0644)));
    if (type == AE_IFLNK)
        archive_entry_set_symlink(e, it->text);
    else if (type == AE_IFREG)
        archive_entry_set_size(e, size);
    assert_true(archive_write_header(a, e) >= ARCHIVE_WARN);
    if (type == AE_IFREG && it->text)
        assert_int_equal(archive_write_data(a, it->text, strlen(it->text)), strlen(it->text));
    for (int64_t left = it->text ? 0 : size; left > 0;) {
        size_t n = left < (int64_t)sizeof(zeros) ? (size_t)left : sizeof(zeros);
        assert_int_equal(archive_write_data(a, zeros, n), n);
        left -= (int64_t)n;
    }
    archive_entry_free(e);
}

static int make(enum form form, const struct item *items, size_t n)
{
    int fd = memfd_create("archive", MFD_CLOEXEC);
    struct archive *a = archive_write_new();
    assert_true(fd >= 0);
    set_form(a, form);
    assert_int_equal(archive_write_open_fd(a, fd), ARCHIVE_OK);
    for (size_t i = 0; i < n; i++)
        write_item(a, &items[i]);
    assert_int_equal(archive_write_close(a), ARCHIVE_OK);
    archive_write_free(a);
    return fd;
}

/* A header of a plain tar by hand: what no good program writes. */
static void put_header(int fd, const char *name, char type, const char *link, uint64_t size)
{
    char h[512] = {0};
    unsigned sum = 0;
    (void)snprintf(h, 100, "%s", name);
    (void)snprintf(h + 100, 8, "0000644");
    (void)snprintf(h + 108, 8, "0000000");
    (void)snprintf(h + 116, 8, "0000000");
    (void)snprintf(h + 124, 12, "%011llo", (unsigned long long)size);
    (void)snprintf(h + 136, 12, "00000000000");
    memset(h + 148, ' ', 8);
    h[156] = type;
    (void)snprintf(h + 157, 100, "%s", link);
    memcpy(h + 257,
           "ustar\0"
           "00",
           8);
    for (size_t i = 0; i < sizeof(h); i++)
        sum += (unsigned char)h[i];
    (void)snprintf(h + 148, 8, "%06o", sum);
    assert_int_equal(write(fd, h, sizeof(h)), sizeof(h));
}

static void put_block(int fd, const char *text)
{
    char block[512] = {0};
    memcpy(block, text, strlen(text));
    assert_int_equal(write(fd, block, sizeof(block)), sizeof(block));
}

static void put_end(int fd)
{
    put_block(fd, "");
    put_block(fd, "");
}

/* ---- the store of snapshots ---- */

static size_t count_in(const char *root, const char *rel)
{
    _cleanup_(freep) char *path = xasprintf("%s/%s", root, rel);
    DIR *d = opendir(path);
    size_t n = 0;
    for (struct dirent *e; d && (e = readdir(d));)
        n += strcmp(e->d_name, ".") != 0 && strcmp(e->d_name, "..") != 0;
    if (d)
        (void)closedir(d);
    return n;
}

static int try(const char *root, int fd, struct snapshot_made *made, struct err *err)
{
    struct snapshot_source s = {.root = root, .archive = fd};
    return snapshot_make(&s, made, err);
}

static void refuse_fd(const char *root, int fd, const char *why)
{
    struct snapshot_made made = {0};
    struct err err = {0};
    int r = try(root, fd, &made, &err);
    if (r != ERR_REFUSED || !strstr(err.text, why))
        fail_msg("%d: '%s' does not say '%s'", r, err.text, why);
    assert_int_equal(count_in(root, "argus/snapshots"), 0);
    (void)close(fd);
}

static void refuse(const char *root, enum form form, struct item item, const char *why)
{
    refuse_fd(root, make(form, &item, 1), why);
}

static int setup(void **state)
{
    return root_setup(state) || fsroot_prepare(*state, NULL);
}

static int teardown(void **state)
{
    struct err err = {0};
    int r = dirtree_remove(*state, &err);
    free(*state);
    return r;
}

/* ---- taken ---- */

static const struct item whole[] = {
    {.path = "./", .type = AE_IFDIR, .mode = 0755},
    {.path = "verl/", .type = AE_IFDIR, .mode = 02755},
    {.path = "verl/__init__.py", .text = ""},
    {.path = "./verl/version/version", .text = "0.9.1\n"},
    {.path = "run.sh", .text = "#!/bin/sh\n", .mode = 0755},
    {.path = "verl/latest", .text = "../run.sh", .type = AE_IFLNK},
    {.path = ".git/config", .text = "[core]\n"},
    {.path = "caf\xc3\xa9", .text = "x"},
    {.path = "empty/", .type = AE_IFDIR, .mode = 0755},
};

static void test_forms(void **state)
{
    const char *root = *state;
    char first[HASH_HEX] = "";
    for (int form = TAR; form <= ZIP; form++) {
        struct snapshot_made made = {0};
        struct err err = {0};
        int fd = make((enum form)form, whole, array_len(whole));
        if (try(root, fd, &made, &err) < 0)
            fail_msg("form %d: %s", form, err.text);
        assert_int_equal(made.files, 5);
        assert_int_equal(made.bytes, 6 + 10 + 1);
        assert_string_equal(made.verl, "0.9.1");
        assert_int_equal(made.existed, form != TAR);
        if (form == TAR)
            memcpy(first, made.hash, sizeof(first));
        assert_string_equal(made.hash, first); /* the same code has the same hash */
        assert_int_equal(count_in(root, "argus/snapshots"), 1);
        snapshot_made_release(&made);
        (void)close(fd);
    }
    _cleanup_(freep) char *tree = snapshot_tree(root, first);
    assert_text(tree, "verl/version/version", "0.9.1\n");
    assert_text(tree, "verl/latest", "#!/bin/sh\n");
    assert_int_equal(mode_of(tree, "run.sh"), 0555);
    assert_int_equal(mode_of(tree, "verl/__init__.py"), 0444);
    assert_int_equal(mode_of(tree, "verl"), 0555);
    assert_int_equal(mode_of(tree, "verl/version"), 0555);
    assert_int_equal(mode_of(tree, "."), 0555);
    assert_null(get(tree, ".git/config"));
    assert_int_equal(count_in(tree, "."), 3);
    struct manifest m = {0};
    assert_int_equal(snapshot_read(root, first, &m, NULL), 0);
    assert_int_equal(m.n, 5);
    manifest_release(&m);
}

enum { MANY = 3000 };

/* Many small ones, of which threads write batches, and some on both sides of what they take. */
static int make_many(void)
{
    static const int64_t sizes[] = {1, 300000, 1 << 20, (1 << 20) + 1, 3 << 20};
    struct item items[MANY];
    struct strv names = {0}, texts = {0};
    for (size_t i = 0; i < MANY; i++) {
        strv_addf(&names, "d%zu/e/f%zu", i / 40, i);
        if (i % 7)
            strv_addf(&texts, "file %zu", i);
        else
            strv_add(&texts, "");
        items[i] =
            (struct item){.path = names.v[i], .text = texts.v[i], .mode = i % 5 ? 0644 : 0755};
    }
    for (size_t i = 0; i < array_len(sizes); i++) {
        items[500 * i].text = NULL;
        items[500 * i].size = sizes[i];
    }
    int fd = make(TAR, items, MANY);
    strv_release(&names);
    strv_release(&texts);
    return fd;
}

static void test_many(void **state)
{
    const char *root = *state;
    struct snapshot_made made = {0};
    struct manifest m = {0};
    struct err err = {0};
    int fd = make_many();
    if (try(root, fd, &made, &err) < 0)
        fail_msg("%s", err.text);
    assert_int_equal(made.files, MANY);
    assert_int_equal(snapshot_read(root, made.hash, &m, NULL), 0);
    _cleanup_(freep) char *tree = snapshot_tree(root, made.hash);
    int dir = open(tree, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    for (size_t i = 0; i < m.n; i++) {
        unsigned char hash[HASH_BYTES];
        assert_int_equal(filehash_at(dir, m.v[i].path, m.v[i].size, hash, NULL), 0);
        assert_memory_equal(hash, m.v[i].hash, HASH_BYTES);
        assert_int_equal(mode_of(tree, m.v[i].path), m.v[i].kind == MANIFEST_PROGRAM ? 0555 : 0444);
    }
    manifest_release(&m);
    snapshot_made_release(&made);
    (void)close(dir);
    (void)close(fd);
}

/* A writer that fails ends all, and nothing stays. */
static void test_a_file_that_cannot_be_written(void **state)
{
    const char *root = *state;
    struct snapshot_made made = {0};
    struct err err = {0};
    struct rlimit old, small;
    int fd = make_many();
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &old), 0);
    small = (struct rlimit){.rlim_cur = 100000, .rlim_max = old.rlim_max};
    struct sigaction before, ignore = {.sa_handler = SIG_IGN};
    assert_int_equal(sigaction(SIGXFSZ, &ignore, &before), 0);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &small), 0);
    int r = try(root, fd, &made, &err);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &old), 0);
    assert_int_equal(sigaction(SIGXFSZ, &before, NULL), 0);
    assert_int_equal(r, -EFBIG);
    assert_non_null(strstr(err.text, "cannot be written: File too large"));
    assert_int_equal(count_in(root, "argus/snapshots"), 0);
    (void)close(fd);
}

static void test_strip(void **state)
{
    static const struct item forge[] = {{.path = "verl-main/setup.py", .text = "x"},
                                        {.path = "verl-main/verl/__init__.py", .text = ""},
                                        {.path = "verl-main/l", .text = "verl", .type = AE_IFLNK}};
    static const struct item package[] = {{.path = "verl/__init__.py", .text = ""},
                                          {.path = "verl/a.py", .text = "x"}};
    static const struct item out[] = {{.path = "top/a", .text = "x"},
                                      {.path = "top/l", .text = "../b", .type = AE_IFLNK}};
    const char *root = *state;
    struct snapshot_made made = {0};
    int fd = make(ZIP, forge, array_len(forge));
    assert_int_equal(try(root, fd, &made, NULL), 0);
    _cleanup_(freep) char *a = snapshot_tree(root, made.hash);
    assert_text(a, "setup.py", "x");
    assert_text(a, "l/__init__.py", "");
    snapshot_made_release(&made);
    (void)close(fd);
    fd = make(TAR, package, array_len(package));
    assert_int_equal(try(root, fd, &made, NULL), 0);
    _cleanup_(freep) char *b = snapshot_tree(root, made.hash);
    assert_text(b, "verl/a.py", "x");
    (void)close(fd);
    struct err err;
    fd = make(TAR, out, array_len(out));
    assert_int_equal(try(root, fd, &made, &err), ERR_REFUSED);
    assert_non_null(strstr(err.text, "leads out of the tree"));
    (void)close(fd);
    /* A hash that was asked for is of the tree as it was packed. */
    struct snapshot_source s = {.root = root, .want = made.hash};
    s.archive = make(ZIP, forge, array_len(forge));
    assert_int_equal(snapshot_make(&s, &made, &err), ERR_REFUSED);
    assert_non_null(strstr(err.text, "send it again"));
    (void)close(s.archive);
    assert_int_equal(count_in(root, "argus/snapshots"), 2);
}

/* ---- refused ---- */

static void test_names(void **state)
{
    const char *root = *state;
    static const struct {
        const char *path, *why;
    } rows[] = {
        {"../evil", "has a '.' or '..'"},
        {"a/../../evil", "has a '.' or '..'"},
        {"/etc/cron.d/evil", "is absolute"},
        {"v\xd0\xb5rl/__init__.py", "look the same"},
        {"a\xe2\x80\xae"
         "b",
         "direction-changing"},
        {"a\x01"
         "b",
         "control character"},
    };
    for (size_t i = 0; i < array_len(rows); i++) {
        refuse(root, TAR, (struct item){.path = rows[i].path, .text = "x"}, rows[i].why);
        refuse(root, ZIP, (struct item){.path = rows[i].path, .text = "x"}, rows[i].why);
    }
    refuse(root, TAR, (struct item){.path = "a\\b", .text = "x"}, "has a backslash");
    refuse(root, ZIP, (struct item){.path = "a\\..\\..\\b", .text = "x"}, "'.' or '..'");
    char deep[400] = "";
    for (int i = 0; i < 70; i++)
        (void)snprintf(deep + 2 * i, 4, "d/");
    (void)snprintf(deep + 140, 2, "f");
    refuse(root, TAR, (struct item){.path = deep, .text = "x"}, "64 directories deep");
    memset(deep, 'n', 300);
    deep[300] = 0;
    refuse(root, ZIP, (struct item){.path = deep, .text = "x"}, "more than 255 bytes");
    char raw[] = "bad\xff\xfe";
    int fd = memfd_create("raw", MFD_CLOEXEC);
    put_header(fd, raw, '0', "", 0);
    put_end(fd);
    refuse_fd(root, fd, "not valid UTF-8");
    fd = memfd_create("raw", MFD_CLOEXEC);
    put_header(fd, "cafe\xcc\x81", '0', "", 0);
    put_end(fd);
    refuse_fd(root, fd, "composed form");
}

static void test_twins(void **state)
{
    const char *root = *state;
    static const struct item rows[][2] = {
        {{.path = "a", .text = "1"}, {.path = "a", .text = "2"}},
        {{.path = "README", .text = "1"}, {.path = "ReadMe", .text = "2"}},
        {{.path = "Dir/a", .text = "1"}, {.path = "dir/b", .text = "2"}},
        {{.path = "caf\xc3\xa9", .text = "1"}, {.path = "CAF\xc3\x89", .text = "2"}},
        {{.path = "d", .text = "1"}, {.path = "d/x", .text = "2"}},
        {{.path = "d/x", .text = "1"}, {.path = "d", .text = "2"}},
        {{.path = "l", .text = "e", .type = AE_IFLNK}, {.path = "l/x", .text = "2"}},
    };
    static const char *const why[] = {"twice",
                                      "in case alone",
                                      "in case alone",
                                      "in case alone",
                                      "a file and a directory",
                                      "twice",
                                      "a link and a directory"};
    for (size_t i = 0; i < array_len(rows); i++)
        refuse_fd(root, make(TAR, rows[i], 2), why[i]);
}

static void test_links(void **state)
{
    const char *root = *state;
    refuse(root, TAR, (struct item){.path = "l", .text = "/etc/passwd", .type = AE_IFLNK},
           "'/etc/passwd'");
    refuse(root, ZIP, (struct item){.path = "l", .text = "../x", .type = AE_IFLNK},
           "leads out of the tree");
    refuse(root, TAR, (struct item){.path = "l", .text = "l", .type = AE_IFLNK}, "to itself");
    /* Each stays in the tree as a text; together they climb out of it. */
    static const struct item climb[] = {{.path = "s/d", .text = "..", .type = AE_IFLNK},
                                        {.path = "out", .text = "s/d/../x", .type = AE_IFLNK},
                                        {.path = "f", .text = "x"}};
    refuse_fd(root, make(TAR, climb, 3), "leads out of the tree");
    int fd = memfd_create("raw", MFD_CLOEXEC);
    put_header(fd, "a", '0', "", 0);
    put_header(fd, "b", '1', "a", 0);
    put_end(fd);
    refuse_fd(root, fd, "'b' in the archive is a hard link");
}

static void test_types(void **state)
{
    const char *root = *state;
    refuse(root, TAR, (struct item){.path = "dev", .type = AE_IFCHR}, "'dev' in the archive is a");
    refuse(root, TAR, (struct item){.path = "disk", .type = AE_IFBLK}, "device");
    refuse(root, TAR, (struct item){.path = "pipe", .type = AE_IFIFO}, "pipe");
    refuse(root, TAR, (struct item){.path = "su", .text = "x", .mode = 04755}, "setuid");
    refuse(root, ZIP, (struct item){.path = "sg", .text = "x", .mode = 02755}, "setgid");
    /* A sparse file of a petabyte, as GNU tar says it in a pax header. */
    int fd = memfd_create("raw", MFD_CLOEXEC);
    static const char pax[] = "22 GNU.sparse.major=1\n22 GNU.sparse.minor=0\n"
                              "29 GNU.sparse.name=giant.bin\n"
                              "40 GNU.sparse.realsize=1125899906842624\n";
    put_header(fd, "PaxHeaders/x", 'x', "", sizeof(pax) - 1);
    put_block(fd, pax);
    put_header(fd, "GNUSparseFile.0/giant.bin", '0', "", 512);
    put_block(fd, "1\n1125899906842623\n1\n");
    put_end(fd);
    refuse_fd(root, fd, "sparse file");
}

static void test_too_much(void **state)
{
    const char *root = *state;
    refuse(root, TAR_GZ, (struct item){.path = "zeros", .size = 80LL << 20}, "only a bomb");
    refuse(root, ZIP, (struct item){.path = "zeros", .size = 80LL << 20}, "only a bomb");
    /* A header that lies: five exabytes in a few hundred bytes. */
    int fd = memfd_create("raw", MFD_CLOEXEC);
    put_header(fd, "giant", '0', "", 077777777777ULL);
    put_block(fd, "");
    refuse_fd(root, fd, "a bomb");
    struct unpack_limits small = {.bytes = 100, .entries = 3, .ratio = 200};
    static const struct item four[] = {{.path = "a", .text = "1"},
                                       {.path = "b", .text = "2"},
                                       {.path = "c", .text = "3"},
                                       {.path = "d", .text = "4"}};
    struct snapshot_source s = {.root = root, .limits = &small};
    struct snapshot_made made = {0};
    struct err err;
    s.archive = make(ZIP, four, 4);
    assert_int_equal(snapshot_make(&s, &made, &err), ERR_REFUSED);
    assert_non_null(strstr(err.text, "more than 3 entries"));
    (void)close(s.archive);
    s.archive = make(TAR, four, 3);
    small.bytes = 2;
    assert_int_equal(snapshot_make(&s, &made, &err), ERR_REFUSED);
    assert_non_null(strstr(err.text, "unpacks to more than"));
    assert_int_equal(count_in(root, "argus/snapshots"), 0);
    (void)close(s.archive);
}

/* What its first block says that it takes to unpack it: 1 GiB, whatever is in it. */
static int make_wide(enum form form)
{
    int fd = make(form, &(struct item){.path = "a", .text = "x"}, 1);
    uint8_t head[64];
    assert_int_equal(pread(fd, head, sizeof(head), 0), sizeof(head));
    if (form == TAR_ZST) {
        assert_int_equal(head[4] & 0x20, 0); /* it has a window */
        head[5] = (30 - 10) << 3;
    } else {
        uint8_t *block = head + 12;
        size_t crc_at = (block[0] + 1U) * 4 - 4;
        assert_int_equal(block[2], 0x21); /* LZMA2 and nothing before it */
        block[4] = (30 - 12) * 2;
        uint32_t crc = htole32(lzma_crc32(block, crc_at, 0));
        memcpy(block + crc_at, &crc, sizeof(crc));
    }
    assert_int_equal(pwrite(fd, head, sizeof(head), 0), sizeof(head));
    return fd;
}

static void test_windows(void **state)
{
    refuse_fd(*state, make_wide(TAR_XZ), "more than 128 MiB of memory");
    refuse_fd(*state, make_wide(TAR_ZST), "more than 128 MiB of memory");
    /* In a later stream, too: what libarchive would have read of it is not asked. */
    static char noise[300000];
    for (size_t i = 0; i < sizeof(noise) - 1; i++)
        noise[i] = (char)('a' + i * i % 26);
    struct item large = {.path = "a", .text = noise};
    int fd = make(TAR_XZ, &large, 1), wide = make_wide(TAR_XZ);
    uint8_t bytes[4096];
    off_t half = lseek(fd, 0, SEEK_END);
    assert_true(half > 0 && half % 4 == 0);
    ssize_t n = pread(wide, bytes, sizeof(bytes), 0);
    assert_int_equal(pwrite(fd, bytes, (size_t)n, half), n);
    refuse_fd(*state, fd, "more than 128 MiB of memory");
    (void)close(wide);
}

/* Refused by its headers, long before the end, with nothing written. */
static void test_two_million(void **state)
{
    enum { ENTRIES = 2000000 };
    int fd = memfd_create("many", MFD_CLOEXEC);
    char h[512];
    put_header(fd, "f0000000", '0', "", 0);
    assert_int_equal(pread(fd, h, sizeof(h), 0), sizeof(h));
    /* As a file with holes: only the first entries are really there, and that is enough. */
    assert_int_equal(ftruncate(fd, (off_t)ENTRIES * 512), 0);
    for (unsigned i = 0; i <= MANIFEST_ENTRIES_MAX; i++) {
        unsigned sum = 0;
        (void)snprintf(h, 100, "f%07u", i);
        memset(h + 148, ' ', 8);
        for (size_t k = 0; k < sizeof(h); k++)
            sum += (unsigned char)h[k];
        (void)snprintf(h + 148, 8, "%06o", sum);
        assert_int_equal(pwrite(fd, h, sizeof(h), (off_t)i * 512), sizeof(h));
    }
    refuse_fd(*state, fd, "more than 250000 entries");
}

static void test_damaged(void **state)
{
    const char *root = *state;
    static const struct item rows[] = {{.path = "a", .text = "some text in a file"},
                                       {.path = "b", .text = "and more of it"}};
    for (int form = TAR; form <= ZIP; form++) {
        int fd = make((enum form)form, rows, 2);
        off_t size = lseek(fd, 0, SEEK_END);
        /* In the middle of b, of its header or of the index. */
        assert_int_equal(ftruncate(fd, form == TAR ? 512 + 512 + 512 + 4 : size / 2), 0);
        refuse_fd(root, fd, form == ZIP ? "not an archive" : "cut off");
    }
    int fd = make(TAR, rows, 2);
    assert_int_equal(ftruncate(fd, 1024), 0); /* exactly between two files */
    refuse_fd(root, fd, "cut off");
    fd = make(STORED, rows, 2);
    char bytes[400];
    ssize_t n = pread(fd, bytes, sizeof(bytes), 0);
    char *text = memmem(bytes, (size_t)n, "text", 4);
    assert_non_null(text);
    assert_int_equal(pwrite(fd, "test", 4, text - bytes), 4);
    refuse_fd(root, fd, "damaged");
    fd = memfd_create("page", MFD_CLOEXEC);
    assert_int_equal(write(fd, "<html>404</html>", 16), 16);
    refuse_fd(root, fd, "this is not an archive");
    refuse_fd(root, memfd_create("nothing", MFD_CLOEXEC), "this is not an archive");
    refuse_fd(root, make(TAR, rows, 0), "no file in it");
    static const struct item only_git[] = {{.path = ".git/HEAD", .text = "x"}};
    refuse_fd(root, make(TAR, only_git, 1), "no file in it");
    fd = memfd_create("twice", MFD_CLOEXEC);
    struct archive *a = archive_write_new();
    set_form(a, TAR_GZ);
    assert_int_equal(archive_write_add_filter_gzip(a), ARCHIVE_OK);
    assert_int_equal(archive_write_open_fd(a, fd), ARCHIVE_OK);
    write_item(a, &rows[0]);
    archive_write_free(a);
    refuse_fd(root, fd, "more than once");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_forms, setup, teardown),
        cmocka_unit_test_setup_teardown(test_many, setup, teardown),
        cmocka_unit_test_setup_teardown(test_a_file_that_cannot_be_written, setup, teardown),
        cmocka_unit_test_setup_teardown(test_strip, setup, teardown),
        cmocka_unit_test_setup_teardown(test_names, setup, teardown),
        cmocka_unit_test_setup_teardown(test_twins, setup, teardown),
        cmocka_unit_test_setup_teardown(test_links, setup, teardown),
        cmocka_unit_test_setup_teardown(test_types, setup, teardown),
        cmocka_unit_test_setup_teardown(test_too_much, setup, teardown),
        cmocka_unit_test_setup_teardown(test_windows, setup, teardown),
        cmocka_unit_test_setup_teardown(test_two_million, setup, teardown),
        cmocka_unit_test_setup_teardown(test_damaged, setup, teardown),
    };
    hash_init();
    (void)setlocale(LC_CTYPE, "C.UTF-8"); /* of the archives that we write */
    return cmocka_run_group_tests_name("fsroot/unpack", tests, NULL, NULL);
}
