/* SPDX-License-Identifier: Apache-2.0 */
/* localdir.c - see localdir.h. The spec that is sent is the user's with the snapshot's name put in
 * (overlay.h), so that places are told of his own text; code is meant, and a ceiling says so before
 * the bytes of a data set are hashed. */
#include "argus/job/localdir.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "argus/cli/cli.h"
#include "argus/job/overlay.h"
#include "argus/show/member.h"
#include "argus/transfer/snapcall.h"
#include "base/doc/doc.h"
#include "base/str.h"
#include "core/spec/snapshot.h"

/* Code, not data: what is larger is sent by whoever wants it so, with 'argus snapshot add'. */
static const uint64_t BYTES_MAX = (uint64_t)2 << 30;

bool localdir_is(const char *text)
{
    return str_eq(text, ".") || str_eq(text, "..") || str_starts(text, "./") ||
           str_starts(text, "../");
}

/* The working_dir of what is to be sent; yours, NULL: none that is here. */
static char *find_dir(const struct submission *s)
{
    const struct buf *text = s->sent.len ? &s->sent : &s->text;
    struct problems ps = {0};
    struct doc *d = NULL;
    char *dir = NULL;
    if (doc_parse(buf_str(text), text->len, false, &d, &ps) == 0) { /* else the server says why */
        const struct node *n = node_find(doc_root(d), "working_dir");
        if (n && n->kind == NODE_SCALAR && localdir_is(n->text))
            dir = xstrdup(n->text);
    }
    doc_free(d);
    problems_release(&ps);
    return dir;
}

static bool is_set(const struct strv *sets)
{
    for (size_t i = 0; i < sets->n; i++)
        if (str_starts(sets->v[i], "working_dir="))
            return true;
    return false;
}

/* Where dir is, whole; yours. */
static char *localdir_resolve(const char *dir,
                              const char *file,
                              const struct strv *sets,
                              struct err *err)
{
    struct stat st = {0};
    const char *slash = file && !is_set(sets) ? strrchr(file, '/') : NULL;
    _cleanup_(freep) char *path =
        slash ? xasprintf("%.*s%s", (int)(slash - file + 1), file, dir) : xstrdup(dir);
    char *whole = realpath(path, NULL);
    if (!whole || stat(whole, &st) < 0 || !S_ISDIR(st.st_mode)) {
        (void)message_refuse(
            err, ERR_USAGE, "cli_no_working_dir",
            MESSAGE_ARGS(MESSAGE_STR("path", dir),
                         MESSAGE_STR("why", whole ? "" : strerror(errno)))); /* only fills err */
        free(whole);
        return NULL;
    }
    return whole;
}

/* In place of what was to be sent. */
static int name_it(struct submission *s, const char *ref, struct err *err)
{
    _cleanup_(strv_release) struct strv sets = {0};
    const struct buf *text = s->sent.len ? &s->sent : &s->text;
    struct buf out = BUF_INIT(SUBMISSION_MAX);
    strv_addf(&sets, "working_dir=\"%s\"", ref);
    int r = overlay_apply(buf_str(text), text->len, &sets, &out, err);
    if (r == 0) {
        buf_release(&s->sent);
        s->sent = out;
        out = BUF_INIT(1);
    }
    buf_release(&out);
    return r;
}

int localdir_send(struct cli *cli,
                  struct submission *s,
                  const char *file,
                  const struct strv *sets,
                  struct err *err)
{
    char name[SNAPSHOT_DERIVED_MAX + 1], size[SIZE_TEXT_MAX];
    _cleanup_(json_unrefp) json_t *snapshot = NULL;
    _cleanup_(freep) char *dir = find_dir(s);
    if (!dir)
        return 0;
    _cleanup_(freep) char *path = localdir_resolve(dir, file, sets, err);
    if (!path)
        return err->code;
    struct snapcall_add what = {
        .source = path, .name = snapshot_derive_name(path, name), .most_bytes = BYTES_MAX};
    int r = snapcall_add(cli, &what, &snapshot, err);
    if (r < 0)
        return err ? message_refuse(err, r, "cli_of_working_dir",
                                    MESSAGE_ARGS(MESSAGE_STR("path", dir), MESSAGE_ERR("why", err)))
                   : r;
    cli_talk(cli, "working_dir '%s' is snapshot %s (%lld files, %s)", dir,
             member_str(snapshot, "name"), (long long)json_get_int(snapshot, "files", 0),
             size_text(json_get_int(snapshot, "bytes", 0), size));
    return name_it(s, member_str(snapshot, "name"), err);
}
