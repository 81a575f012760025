/* SPDX-License-Identifier: Apache-2.0 */
/* unpack.c - an archive becomes a tree of files; see unpack.h. Reading is libarchive's, writing
 * our own: by names below the directory, files first and links last, so that no name ever leads
 * through a link. */
#define _GNU_SOURCE
#include "fsroot/content/unpack.h"

#include <archive.h>
#include <archive_entry.h>
#include <errno.h>
#include <fcntl.h>
#include <locale.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "base/message.h"
#include "base/str.h"
#include "core/spec/snapshot.h"
#include "fsroot/content/unpack_names.h"
#include "fsroot/content/unpack_write.h"
#include "fsroot/content/unpack_xz.h"

enum { BLOCK_BYTES = 128 << 10, BOMB_BYTES = 64 << 20, FILTERS_MAX = 2 };

const struct unpack_limits unpack_default_limits = {.bytes = 20ULL << 30,
                                                    .entries = MANIFEST_ENTRIES_MAX,
                                                    .ratio = 200};

struct unpack {
    const struct unpack_limits *limits;
    struct unpack_names *names;
    int fd; /* the archive */
    uint64_t size;
    struct archive *a;
    struct unpack_xz *xz; /* NULL: the archive is no xz file */
    struct err xz_err;    /* why it cannot be read on; libarchive forgets that */
    char *last;           /* the name that was read last, for sentences */
    uint64_t bytes;
    size_t entries;
    size_t strip;          /* bytes of every name that are left away */
    struct unpack_way way; /* below the tree; the reading thread's */
    struct manifest *manifest;
    struct unpack_writers *writers;
};

/* ---- reading ---- */

static void close_archive(struct unpack *u)
{
    if (u->a)
        (void)archive_read_free(u->a); /* whatever it says, it is gone */
    u->a = NULL;
    unpack_xz_free(u->xz);
    u->xz = NULL;
}

static int refuse_broken(const struct unpack *u, struct err *err)
{
    char shown[SNAPSHOT_SHOWN];
    const char *why = *u->xz_err.text ? u->xz_err.text : archive_error_string(u->a);
    if (!u->last && (!why || strstr(why, "Unrecognized")))
        return message_refuse(err, ERR_REFUSED, "no_archive", MESSAGE_NO_ARGS);
    if (why && strstr(why, "too much memory")) /* ours of xz, and libzstd's */
        return message_refuse(err, ERR_REFUSED, "archive_memory",
                              MESSAGE_ARGS(MESSAGE_NUM("most", UNPACK_MEMORY_MAX >> 20)));
    return message_refuse(
        err, ERR_REFUSED, "archive_damaged",
        MESSAGE_ARGS(MESSAGE_STR("at", u->last ? snapshot_show(u->last, shown) : ""),
                     MESSAGE_STR("why", str_or(why, "it ends too early"))));
}

static la_ssize_t read_xz_part(struct archive *a, void *arg, const void **ret)
{
    struct unpack *u = arg;
    size_t n = 0;
    if (unpack_xz_read(u->xz, ret, &n, &u->xz_err) == 0)
        return (la_ssize_t)n;
    archive_set_error(a, EIO, "%s", u->xz_err.text);
    return ARCHIVE_FATAL;
}

static int open_bytes(struct unpack *u)
{
    if (!unpack_xz_is_one(u->fd))
        return archive_read_open_fd(u->a, u->fd, BLOCK_BYTES);
    u->xz = unpack_xz_new(u->fd);
    return archive_read_open(u->a, u, NULL, read_xz_part, NULL);
}

static int open_archive(struct unpack *u, struct err *err)
{
    u->a = archive_read_new();
    set_str(&u->last, NULL);
    bool good = u->a && lseek(u->fd, 0, SEEK_SET) == 0;
    /* ARCHIVE_WARN: it would ask another program. Those that we name are built in. libzstd takes
     * 128 MiB by itself, gzip next to nothing; xz is ours. */
    good = good && archive_read_support_filter_gzip(u->a) == ARCHIVE_OK &&
           archive_read_support_filter_zstd(u->a) == ARCHIVE_OK &&
           archive_read_support_format_tar(u->a) == ARCHIVE_OK &&
           archive_read_support_format_zip_seekable(u->a) == ARCHIVE_OK;
    if (!good)
        return err_set(err, ERR_INTERNAL, "libarchive cannot be used: %s",
                       u->a ? str_or(archive_error_string(u->a), strerror(errno)) : "no memory");
    if (open_bytes(u) != ARCHIVE_OK)
        return refuse_broken(u, err);
    return 0;
}

/* The other methods of a zip take as much memory as they say: LZMA up to 4 GiB. */
static int check_zip_method(const struct unpack *u, struct err *err)
{
    char shown[SNAPSHOT_SHOWN];
    const char *format = str_or(archive_format_name(u->a), ""); /* "ZIP 2.0 (deflation)" */
    if ((archive_format(u->a) & ARCHIVE_FORMAT_BASE_MASK) != ARCHIVE_FORMAT_ZIP ||
        strstr(format, "(uncompressed)") || strstr(format, "(deflation)"))
        return 0;
    const char *method = strchr(format, '(');
    return message_refuse(err, ERR_REFUSED, "archive_method",
                          MESSAGE_ARGS(MESSAGE_STR("name", snapshot_show(u->last, shown)),
                                       MESSAGE_STR("method", method ? method + 1 : "unknown)")));
}

/* 1 and an entry, 0 at the end. */
static int next_entry(struct unpack *u, struct archive_entry **ret, struct err *err)
{
    int r = archive_read_next_header(u->a, ret);
    if (r == ARCHIVE_EOF)
        return 0;
    if (r != ARCHIVE_OK && r != ARCHIVE_WARN)
        return refuse_broken(u, err);
    if (archive_filter_count(u->a) + !!u->xz > FILTERS_MAX) /* the last one is "none" */
        return message_refuse(err, ERR_REFUSED, "archive_twice_packed", MESSAGE_NO_ARGS);
    const char *name = archive_entry_pathname(*ret);
    if (!name)
        name = archive_entry_pathname_utf8(*ret);
    if (!name)
        return message_refuse(err, ERR_REFUSED, "archive_name_utf8", MESSAGE_NO_ARGS);
    while (str_starts(name, "./"))
        name += 2 + strspn(name + 2, "/");
    char *mine = xstrdup(name);
    for (size_t n = strlen(mine); n > 1 && mine[n - 1] == '/';)
        mine[--n] = 0;
    free(u->last);
    u->last = mine;
    int checked = check_zip_method(u, err);
    return checked < 0 ? checked : 1;
}

static bool is_in_git(const char *path)
{
    for (const char *s = path; s; s = strchr(s, '/') ? strchr(s, '/') + 1 : NULL)
        if (strncmp(s, ".git", 4) == 0 && (s[4] == '/' || !s[4]))
            return true;
    return false;
}

/* What is not written: "." itself, and what git keeps for itself. */
static bool is_left_out(const struct unpack *u)
{
    return !*u->last || !strcmp(u->last, ".") || is_in_git(u->last);
}

/* ---- the look before ---- */

static int refuse_entry(const struct unpack *u, struct err *err, const char *message)
{
    char shown[SNAPSHOT_SHOWN];
    return message_refuse(err, ERR_REFUSED, message_code(message),
                          MESSAGE_ARGS(MESSAGE_STR("name", snapshot_show(u->last, shown))));
}

static int check_type(const struct unpack *u, struct archive_entry *e, struct err *err)
{
    mode_t type = archive_entry_filetype(e), mode = archive_entry_mode(e);
    if (archive_entry_hardlink(e))
        return refuse_entry(u, err, "entry_hard_link");
    if (type == S_IFLNK || type == S_IFDIR)
        return 0;
    if (type != S_IFREG)
        return refuse_entry(u, err, "entry_odd");
    if (mode & (S_ISUID | S_ISGID))
        return refuse_entry(u, err, "entry_setuid");
    if (archive_entry_sparse_reset(e) > 0)
        return refuse_entry(u, err, "entry_sparse");
    if (archive_entry_is_data_encrypted(e) || archive_entry_is_metadata_encrypted(e))
        return refuse_entry(u, err, "entry_encrypted");
    return 0;
}

static int unpack_check_bytes(const struct unpack *u, uint64_t more, struct err *err)
{
    const struct unpack_limits *l = u->limits;
    uint64_t all = u->bytes + more;
    if ((more > l->bytes || all > l->bytes) && l->over)
        return message_refuse_kept(err, ERR_REFUSED, l->over);
    if (more > l->bytes || all > l->bytes)
        return message_refuse(
            err, ERR_REFUSED, "archive_too_large",
            MESSAGE_ARGS(MESSAGE_NUM("most", (unsigned long long)(l->bytes >> 20))));
    if (all > BOMB_BYTES && all / l->ratio > u->size)
        return message_refuse(err, ERR_REFUSED, "archive_bomb",
                              MESSAGE_ARGS(MESSAGE_NUM("ratio", l->ratio)));
    return 0;
}

static enum unpack_kind unpack_kind_of(struct archive_entry *e)
{
    mode_t type = archive_entry_filetype(e);
    return type == S_IFDIR ? UNPACK_DIRECTORY : type == S_IFLNK ? UNPACK_LINK : UNPACK_FILE;
}

static int unpack_look_at(struct unpack *u, struct archive_entry *e, struct err *err)
{
    if (++u->entries > u->limits->entries)
        return message_refuse(err, ERR_REFUSED, "archive_many",
                              MESSAGE_ARGS(MESSAGE_NUM("most", u->limits->entries)));
    if (is_left_out(u))
        return 0;
    int r = snapshot_check_path(u->last, err);
    if (r == 0)
        r = check_type(u, e, err);
    if (r == 0 && unpack_kind_of(e) == UNPACK_FILE && archive_entry_size_is_set(e)) {
        int64_t size = archive_entry_size(e);
        r = size < 0 ? refuse_entry(u, err, "entry_negative")
                     : unpack_check_bytes(u, (uint64_t)size, err);
        u->bytes += r == 0 ? (uint64_t)size : 0;
    }
    return r < 0 ? r : unpack_names_add(u->names, u->last, unpack_kind_of(e), err);
}

/* A tar ends with a block of zeros: one that was cut between two files has none. */
static int check_end(const struct unpack *u, struct err *err)
{
    static const char zeros[512];
    char last[512];
    bool is_tar = (archive_format(u->a) & ARCHIVE_FORMAT_BASE_MASK) == ARCHIVE_FORMAT_TAR;
    if (!is_tar || u->xz || archive_filter_code(u->a, 0) != ARCHIVE_FILTER_NONE)
        return 0;
    if (u->size >= sizeof(last) &&
        pread(u->fd, last, sizeof(last), (off_t)(u->size - sizeof(last))) == sizeof(last) &&
        !memcmp(last, zeros, sizeof(last)))
        return 0;
    return refuse_broken(u, err);
}

static int unpack_look_all(struct unpack *u, struct err *err)
{
    struct archive_entry *e;
    int r = open_archive(u, err);
    while (r == 0 && (r = next_entry(u, &e, err)) > 0)
        r = unpack_look_at(u, e, err);
    if (r == 0)
        r = check_end(u, err);
    close_archive(u);
    if (r == 0 && !unpack_names_files(u->names))
        r = message_refuse(err, ERR_REFUSED, "archive_empty", MESSAGE_NO_ARGS);
    return r;
}

/* ---- writing ---- */

/* Where the bytes of an entry go: a file, or memory for the writers. */
struct sink {
    int fd; /* negative: to memory */
    char *memory;
    uint64_t room;
    struct hash_running hash;
};

static int unpack_put(struct sink *to, const struct manifest_entry *me, const void *p, size_t n)
{
    if (to->fd < 0) {
        memcpy(to->memory + me->size, p, n);
        return 0;
    }
    hash_add(&to->hash, p, n);
    return file_write_all(to->fd, p, n);
}

static int copy_data(struct unpack *u, struct sink *to, struct manifest_entry *me, struct err *err)
{
    const void *block;
    size_t n;
    int64_t at;
    int r;
    while ((r = archive_read_data_block(u->a, &block, &n, &at)) == ARCHIVE_OK) {
        if (at < 0 || (uint64_t)at != me->size)
            return refuse_entry(u, err, "entry_hole");
        if (n > to->room - me->size)
            return refuse_entry(u, err, "entry_size");
        u->bytes += n;
        int x = unpack_check_bytes(u, 0, err);
        if (x < 0)
            return x;
        x = unpack_put(to, me, block, n);
        if (x < 0)
            return message_refuse(
                err, x, "disk_no_write",
                MESSAGE_ARGS(MESSAGE_STR("path", me->path), MESSAGE_STR("why", strerror(-x))));
        me->size += n;
    }
    if (r != ARCHIVE_EOF)
        return refuse_broken(u, err);
    return to->room != UINT64_MAX && me->size != to->room ? refuse_entry(u, err, "entry_size") : 0;
}

/* For a file whose size is not known, or too large for the writers. */
static int write_here(struct unpack *u, struct manifest_entry *me, uint64_t room, struct err *err)
{
    struct sink to = {.fd = -1, .room = room};
    hash_begin(&to.hash);
    int r = unpack_create(&u->way, me->path, me->kind == MANIFEST_PROGRAM, &to.fd, err);
    if (r < 0)
        return r;
    r = copy_data(u, &to, me, err);
    if (r < 0) {
        (void)close(to.fd); /* it failed already */
        return r;
    }
    hash_end(&to.hash, me->hash);
    r = unpack_close(to.fd, me->path, err);
    return r < 0 ? r : manifest_add(u->manifest, me, err);
}

static int write_by_others(struct unpack *u,
                           struct manifest_entry *me,
                           size_t size,
                           struct err *err)
{
    struct sink to = {.fd = -1, .room = size};
    int r = unpack_writers_room(u->writers, size, &to.memory, err);
    if (r == 0)
        r = copy_data(u, &to, me, err);
    if (r == 0)
        r = manifest_add(u->manifest, me, err);
    if (r == 0)
        unpack_writers_add(u->writers, u->manifest->n - 1);
    return r;
}

static int unpack_write_file(struct unpack *u, struct archive_entry *e, char *path, struct err *err)
{
    bool program = archive_entry_mode(e) & 0111;
    struct manifest_entry me = {.kind = program ? MANIFEST_PROGRAM : MANIFEST_FILE, .path = path};
    uint64_t size = archive_entry_size_is_set(e) && archive_entry_size(e) >= 0
                        ? (uint64_t)archive_entry_size(e)
                        : UINT64_MAX;
    return size <= UNPACK_WRITE_SMALL ? write_by_others(u, &me, (size_t)size, err)
                                      : write_here(u, &me, size, err);
}

/* Only noted: links are made when all files are there. */
static int note_link(struct unpack *u, struct archive_entry *e, char *path, struct err *err)
{
    const char *target = archive_entry_symlink(e);
    if (!target)
        target = archive_entry_symlink_utf8(e);
    struct manifest_entry me = {
        .kind = MANIFEST_LINK, .path = path, .target = xstrdup(str_or(target, ""))};
    int r = snapshot_check_link(path, me.target, err);
    if (r == 0)
        r = manifest_add(u->manifest, &me, err);
    free(me.target);
    return r;
}

static int write_entry(struct unpack *u, struct archive_entry *e, struct err *err)
{
    enum unpack_kind kind = unpack_kind_of(e);
    if (is_left_out(u) || kind == UNPACK_DIRECTORY || strlen(u->last) <= u->strip)
        return 0;
    int r = unpack_names_check(u->names, u->last, kind, err); /* the same as at the look */
    if (r < 0)
        return r;
    char *path = u->last + u->strip;
    return kind == UNPACK_LINK ? note_link(u, e, path, err) : unpack_write_file(u, e, path, err);
}

static int unpack_make_links(struct unpack *u, struct err *err)
{
    int r = 0;
    for (size_t i = 0; i < u->manifest->n && r == 0; i++)
        if (u->manifest->v[i].kind == MANIFEST_LINK)
            r = unpack_create_link(&u->way, u->manifest->v[i].path, u->manifest->v[i].target, err);
    /* Through other links: the kernel follows them below the tree, and no further. */
    for (size_t i = 0; i < u->manifest->n && r == 0; i++)
        if (u->manifest->v[i].kind == MANIFEST_LINK)
            r = unpack_check_link(u->way.tree, u->manifest->v[i].path, err);
    return r;
}

static int write_all(struct unpack *u, struct err *err)
{
    struct archive_entry *e;
    int r = open_archive(u, err);
    u->bytes = 0;
    u->writers = unpack_writers_new(u->way.tree, u->manifest);
    while (r == 0 && (r = next_entry(u, &e, err)) > 0)
        r = write_entry(u, e, err);
    close_archive(u);
    if (r == 0)
        r = unpack_writers_end(u->writers, err);
    unpack_writers_free(u->writers);
    if (r == 0)
        r = unpack_make_links(u, err);
    if (r == 0)
        manifest_sort(u->manifest);
    return r;
}

/* ---- all ---- */

static int unpack_all(struct unpack *u, bool strip, struct err *err)
{
    int r = unpack_look_all(u, err);
    if (r == 0 && strip)
        u->strip = unpack_names_common(u->names);
    return r < 0 ? r : write_all(u, err);
}

int unpack_archive(int archive,
                   int tree,
                   bool strip,
                   const struct unpack_limits *limits,
                   struct manifest *ret,
                   struct err *err)
{
    struct stat st;
    *ret = (struct manifest){0};
    if (fstat(archive, &st) < 0 || !S_ISREG(st.st_mode))
        return message_refuse(err, ERR_REFUSED, "archive_no_file", MESSAGE_NO_ARGS);
    /* libarchive turns names into the thread's characters. */
    locale_t utf8 = newlocale(LC_CTYPE_MASK, "C.UTF-8", (locale_t)0);
    locale_t before = utf8 ? uselocale(utf8) : (locale_t)0;
    struct unpack u = {.limits = limits,
                       .names = unpack_names_new(),
                       .fd = archive,
                       .size = (uint64_t)st.st_size,
                       .way = UNPACK_WAY(tree),
                       .manifest = ret};
    int r = unpack_all(&u, strip, err);
    unpack_names_free(u.names);
    unpack_way_release(&u.way);
    free(u.last);
    if (utf8) {
        (void)uselocale(before); /* it was valid */
        freelocale(utf8);
    }
    return r;
}
