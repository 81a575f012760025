/* SPDX-License-Identifier: Apache-2.0 */
/* overlaypack.c - the packages of a notebook to a tar by libarchive; see overlaypack.h. A file has
 * to be the one that was listed before and after it is read, as in packtar.c. The names of packages
 * and their versions are those of their directories (NAME-VERSION.dist-info): no file is read for
 * them. */
#include "fsroot/archive/overlaypack.h"

#include <archive.h>
#include <archive_entry.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/message.h"
#include "base/str.h"
#include "base/text.h"
#include "fsroot/content/upload.h"
#include "fsroot/tree/dirtree.h"

enum { OVERLAY_CHUNK = 1 << 18, OVERLAY_LINE_MAX = 128, REQUIREMENTS_MAX = 4 << 20 };
#define HEX_DIGITS "0123456789abcdef"
#define NAME_CHARS "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._"
#define VERSION_CHARS NAME_CHARS "!+"

struct overlaying {
    const struct overlaypack *o;
    struct rootdir at; /* site-packages */
    struct packlist list;
    struct upload_file *out;
    struct archive *a;
    struct archive_entry *e;
    char *chunk;
    char overlay[OVERLAY_LINE_MAX], python[OVERLAY_LINE_MAX];
    struct err written; /* why the upload took no more */
};

static void overlaying_release(struct overlaying *x)
{
    archive_entry_free(x->e);
    if (x->a)
        (void)archive_write_free(x->a); /* a failure was told by then */
    upload_file_close(x->out);
    packlist_release(&x->list);
    rootdir_release(&x->at);
    free(x->chunk);
}

/* ---- which overlay ---- */

static bool overlay_is_one(const char *name)
{
    static const char first[] = "overlay-";
    const char *hash = name + strlen(first);
    return str_starts(name, first) && strlen(hash) == OVERLAY_ENVIRONMENT - 1 &&
           strspn(hash, HEX_DIGITS) == OVERLAY_ENVIRONMENT - 1;
}

static bool overlay_is_python(const char *name)
{
    static const char first[] = "python3.";
    size_t n = strlen(first);
    return str_starts(name, first) && name[n] && strspn(name + n, "0123456789") == strlen(name + n);
}

/* "overlay-0123456789ab python3.11" */
static bool overlay_read_line(const char *line, struct overlaying *x)
{
    size_t n = strcspn(line, " "), end = strcspn(line, "\n");
    if (end >= OVERLAY_LINE_MAX || n >= end)
        return false;
    text_printf(x->overlay, "%.*s", (int)n, line);
    text_printf(x->python, "%.*s", (int)(end - n - 1), line + n + 1);
    return overlay_is_one(x->overlay) && overlay_is_python(x->python);
}

/* Which overlay the notebook used last. A record that argusd cannot read is as none: the notebook's
 * own programs can write what they like there. */
static int overlay_read_record(struct overlaying *x, struct err *err)
{
    const struct overlaypack *o = x->o;
    _cleanup_(rootdir_release) struct rootdir own = ROOTDIR_NONE;
    _cleanup_(buf_release) struct buf line = BUF_INIT(OVERLAY_LINE_MAX);
    _cleanup_(freep) char *path = xasprintf("users/%s/.argus/notebooks/%s", o->user, o->notebook);
    int r = rootdir_open(o->root, path, 0, &own, err);
    if (r == 0)
        r = rootdir_read(&own, "overlay", &line, err);
    return r == -EMSGSIZE || (r == 0 && !overlay_read_line(buf_str(&line), x)) ? -ENOENT : r;
}

/* What was listed a moment ago went, or became something else: pip writes right now. */
static int overlay_moved(int r, const char *path, struct err *err)
{
    if (r != -ENOENT && r != -ENOTDIR && r != -ELOOP && r != -EINVAL)
        return r;
    return message_refuse(err, ERR_CONFLICT, "file_written_meanwhile",
                          MESSAGE_ARGS(MESSAGE_STR("path", path)));
}

static int overlay_open(struct overlaying *x, struct err *err)
{
    const struct overlaypack *o = x->o;
    int r = overlay_read_record(x, err);
    if (r == 0) {
        _cleanup_(freep) char *site =
            xasprintf("users/%s/.argus/%s/lib/%s/site-packages", o->user, x->overlay, x->python);
        r = rootdir_open(o->root, site, 0, &x->at, err);
    }
    if (r == -ENOENT)
        return message_refuse(err, ERR_CONFLICT, "freeze_no_overlay",
                              MESSAGE_ARGS(MESSAGE_STR("name", o->notebook)));
    if (r < 0)
        return r;
    r = packlist_gather(&x->at, &o->limits, &x->list, err);
    return overlay_moved(r, "site-packages", err);
}

/* ---- what goes in ---- */

static bool overlay_is_left_out(const char *path)
{
    return str_eq(path, "_environment.pth") || str_starts(path, "pip/") ||
           (str_starts(path, "pip-") && strstr(path, ".dist-info/")) || dirtree_is_bytecode(path);
}

/* "numpy-2.1.0.dist-info" -> "numpy==2.1.0"; what is no package is passed over. */
static bool requirement_add(const char *name, struct buf *out)
{
    static const char last[] = ".dist-info";
    size_t n = strlen(name), tail = strlen(last), dash = strcspn(name, "-");
    if (!str_ends(name, last) || dash == 0 || dash + 1 >= n - tail)
        return false;
    _cleanup_(freep) char *package = xstrndup(name, dash);
    _cleanup_(freep) char *version = xstrndup(name + dash + 1, n - tail - dash - 1);
    if (str_eq(package, "pip") || package[strspn(package, NAME_CHARS)] ||
        version[strspn(version, VERSION_CHARS)])
        return false;
    (void)buf_addf(out, "%s==%s\n", package, version);
    return true;
}

static size_t requirements_add(const struct packlist *l, struct buf *out)
{
    size_t n = 0;
    for (size_t i = 0; i < l->n; i++)
        if (l->v[i].kind == PACKLIST_DIR && !strchr(l->v[i].path, '/'))
            n += requirement_add(l->v[i].path, out);
    return n;
}

/* ---- writing ---- */

static la_ssize_t overlay_on_bytes(struct archive *a, void *arg, const void *p, size_t n)
{
    struct overlaying *x = arg;
    if (upload_file_add(x->out, p, n, &x->written) == 0)
        return (la_ssize_t)n;
    archive_set_error(a, EIO, "%s", x->written.text);
    return -1;
}

static int overlay_fail(const struct overlaying *x, struct err *err)
{
    if (x->written.code) {
        if (err)
            *err = x->written;
        return x->written.code;
    }
    return message_refuse(
        err, -EIO, "archive_no_pass",
        MESSAGE_ARGS(MESSAGE_STR("verb", "written"),
                     MESSAGE_STR("why", x->a ? str_or(archive_error_string(x->a), "it is damaged")
                                             : "no memory")));
}

static int overlay_open_tar(struct overlaying *x, struct err *err)
{
    struct upload_progress none;
    upload_progress_init(&none);
    int r = upload_file_open(x->o->root, x->o->upload, &none, UPLOAD_FILE_NEW, &x->out, err);
    if (r < 0)
        return r;
    x->a = archive_write_new();
    x->e = archive_entry_new();
    x->chunk = xmalloc(OVERLAY_CHUNK);
    bool good = x->a && x->e && archive_write_set_format_pax(x->a) == ARCHIVE_OK &&
                archive_write_set_options(x->a, "pax:hdrcharset=BINARY") == ARCHIVE_OK &&
                archive_write_open(x->a, x, NULL, overlay_on_bytes, NULL) == ARCHIVE_OK;
    return good ? 0 : overlay_fail(x, err);
}

static int overlay_add_header(struct overlaying *x,
                              const char *path,
                              mode_t mode,
                              uint64_t size,
                              struct err *err)
{
    archive_entry_clear(x->e);
    archive_entry_set_pathname(x->e, path);
    archive_entry_set_filetype(x->e, AE_IFREG);
    archive_entry_set_perm(x->e, mode & 0111 ? 0755 : 0644);
    archive_entry_set_size(x->e, (int64_t)size);
    int r = archive_write_header(x->a, x->e);
    return r == ARCHIVE_OK || r == ARCHIVE_WARN ? 0 : overlay_fail(x, err);
}

static int overlay_add_text(struct overlaying *x,
                            const char *path,
                            const struct buf *text,
                            struct err *err)
{
    if (text->failed)
        return message_refuse(err, ERR_REFUSED, "pack_list_long", MESSAGE_NO_ARGS);
    int r = overlay_add_header(x, path, 0644, text->len, err);
    if (r == 0 && archive_write_data(x->a, text->data, text->len) != (la_ssize_t)text->len)
        r = overlay_fail(x, err);
    return r;
}

static int overlay_check_file(int fd, const struct packlist_entry *f, struct err *err)
{
    struct stat st;
    return fstat(fd, &st) == 0 && packlist_is_same_file(f, &st)
               ? 0
               : message_refuse(err, ERR_CONFLICT, "file_written_meanwhile",
                                MESSAGE_ARGS(MESSAGE_STR("path", f->path)));
}

static int overlay_copy(struct overlaying *x,
                        const struct packlist_entry *f,
                        int fd,
                        struct err *err)
{
    if (f->size > x->o->limits.bytes) /* the list was held against it as a whole */
        return message_refuse(err, ERR_REFUSED, "pack_too_large",
                              MESSAGE_ARGS(MESSAGE_NUM("most", x->o->limits.bytes)));
    for (uint64_t at = 0; at < f->size;) {
        size_t n = 0;
        int r = packlist_read_file(f, fd, at, x->chunk, OVERLAY_CHUNK, &n, err);
        if (r < 0)
            return r;
        if (archive_write_data(x->a, x->chunk, n) != (la_ssize_t)n)
            return overlay_fail(x, err);
        at += n;
    }
    return 0;
}

static int overlay_add_file(struct overlaying *x, const struct packlist_entry *f, struct err *err)
{
    _cleanup_(closep) int fd = rootdir_open_file(&x->at, f->path, err);
    int r = fd < 0 ? overlay_moved(fd, f->path, err) : overlay_check_file(fd, f, err);
    if (r == 0)
        r = overlay_add_header(x, f->path, f->mode, f->size, err);
    if (r == 0)
        r = overlay_copy(x, f, fd, err);
    return r < 0 ? r : overlay_check_file(fd, f, err);
}

static int overlay_add_files(struct overlaying *x, struct err *err)
{
    int r = 0;
    for (size_t i = 0; r == 0 && i < x->list.n; i++) {
        const struct packlist_entry *f = &x->list.v[i];
        if (overlay_is_left_out(f->path))
            continue;
        if (f->kind == PACKLIST_FILE)
            r = overlay_add_file(x, f, err);
        else if (f->kind == PACKLIST_SAME)
            r = message_refuse(
                err, ERR_REFUSED, "freeze_two_names",
                MESSAGE_ARGS(MESSAGE_STR("path", f->path), MESSAGE_STR("other", f->target)));
    }
    return r;
}

static int overlay_write_all(struct overlaying *x, const struct buf *requirements, struct err *err)
{
    _cleanup_(buf_release) struct buf said = BUF_INIT(2 * OVERLAY_LINE_MAX);
    (void)buf_addf(&said, "{\"environment\": \"%s\", \"python\": \"%s\"}\n",
                   x->overlay + strlen("overlay-"), x->python);
    int r = overlay_open_tar(x, err);
    if (r == 0)
        r = overlay_add_text(x, "argus-packages.txt", requirements, err);
    if (r == 0)
        r = overlay_add_text(x, "argus-environment.json", &said, err);
    if (r == 0)
        r = overlay_add_files(x, err);
    if (r == 0 && archive_write_close(x->a) != ARCHIVE_OK)
        r = overlay_fail(x, err);
    return r == 0 ? upload_file_sync(x->out, err) : r;
}

int overlaypack_write(const struct overlaypack *o, struct overlaypack_made *ret, struct err *err)
{
    _cleanup_(overlaying_release) struct overlaying x = {.o = o, .at = ROOTDIR_NONE};
    _cleanup_(buf_release) struct buf requirements = BUF_INIT(REQUIREMENTS_MAX);
    int r = overlay_open(&x, err);
    if (r < 0)
        return r;
    size_t packages = requirements_add(&x.list, &requirements);
    if (!packages)
        return message_refuse(err, ERR_CONFLICT, "freeze_nothing",
                              MESSAGE_ARGS(MESSAGE_STR("name", o->notebook)));
    r = overlay_write_all(&x, &requirements, err);
    if (r < 0)
        return r;
    ret->bytes = upload_file_offset(x.out);
    ret->packages = packages;
    text_copy(ret->environment, x.overlay + strlen("overlay-"));
    return 0;
}
