/* SPDX-License-Identifier: Apache-2.0 */
/* files.c - files below the shared root: list a directory, bring files and whole directories here
 * or there, remove them. */
#include "argus/noun/noun.h"

#include <inttypes.h>
#include <string.h>
#include <sys/stat.h>

#include "argus/show/member.h"
#include "argus/show/table.h"
#include "argus/transfer/filecall.h"
#include "argus/transfer/filetree.h"
#include "argus/transfer/progress.h"
#include "base/message.h"
#include "base/str.h"

struct files_ls_opts {
    bool utc;
    int output;
    int64_t limit;
};

static const struct opt FILES_LS_OPTS[] = {
    {.name = "limit",
     .type = OPT_NUMBER,
     .offset = offsetof(struct files_ls_opts, limit),
     .arg = "N",
     .doc = "show at most N entries (10000)"},
    OPT_OUTPUT(struct files_ls_opts),
    OPT_UTC(struct files_ls_opts),
};

static const struct column FILES_LS_COLUMNS[] = {
    {.title = "say_name", .flags = COLUMN_FLEX, .least = 16},
    {.title = "say_kind", .rank = 2},
    {.title = "say_size", .flags = COLUMN_RIGHT},
    {.title = "say_changed", .rank = 1},
};

static void files_ls_add_row(struct table *t,
                             const json_t *e,
                             const char *name,
                             const struct when *w)
{
    char size[PROGRESS_SIZE_MAX] = "", at[WHEN_TEXT_MAX];
    const char *kind = json_get_str(e, "kind", "");
    const char *target = json_get_str(e, "target", NULL);
    bool is_file = str_eq(kind, "file");
    if (target)
        table_addf(t, STYLE_CYAN, "%s -> %s", name, target);
    else
        table_addf(t, STYLE_PLAIN, "%s%s", name, str_eq(kind, "directory") ? "/" : "");
    table_add(t, STYLE_PLAIN, kind);
    table_add(t, STYLE_PLAIN,
              is_file ? progress_size((double)json_get_int(e, "bytes", 0), size) : NULL);
    table_add(t, STYLE_PLAIN, when_point(w, when_get(e, "changed_at"), at));
}

static void files_ls_print(struct cli *cli, const json_t *v, const struct files_ls_opts *o)
{
    _cleanup_(table_freep) struct table *t =
        table_new(FILES_LS_COLUMNS, array_len(FILES_LS_COLUMNS));
    struct when w = cli_when(cli, o->utc);
    const json_t *entries = json_get_array(v, "entries");
    size_t i;
    json_t *e;
    if (!entries)
        files_ls_add_row(t, v, json_get_str(v, "path", "-"), &w);
    json_array_foreach (entries, i, e)
        files_ls_add_row(t, e, json_get_str(e, "name", "-"), &w);
    (void)table_print(t, &cli->term, o->output == OUTPUT_WIDE,
                      cli->out); /* nothing is dropped unsaid */
    if (json_get_str(v, "next_cursor", NULL))
        cli_say(cli, "say_more", NULL, NULL, NULL);
}

static int files_ls_run(struct cli *cli, void *opts, const struct strv *args, struct err *err)
{
    const struct files_ls_opts *o = opts;
    _cleanup_(json_unrefp) json_t *v = NULL;
    int r = cli_open(cli, err);
    if (r == 0)
        r = filecall_look(cli, args->n ? args->v[0] : NULL, o->limit ? o->limit : 10000, &v, err);
    if (r < 0)
        return r;
    if (o->output >= OUTPUT_JSON)
        cli_emit(cli, v, o->output);
    else
        files_ls_print(cli, v, o);
    return 0;
}

struct files_get_opts {
    bool force, recursive;
};

static const struct opt FILES_GET_OPTS[] = {
    {.letter = 'f',
     .name = "force",
     .type = OPT_FLAG,
     .offset = offsetof(struct files_get_opts, force),
     .doc = "replace a file that is there"},
    {.letter = 'r',
     .name = "recursive",
     .type = OPT_FLAG,
     .offset = offsetof(struct files_get_opts, recursive),
     .doc = "a directory with all that is in it"},
};

static int files_get_get_tree(struct cli *cli,
                              const char *path,
                              const char *to,
                              unsigned flags,
                              struct err *err)
{
    struct filetree_done done = {0};
    int r = filetree_get(cli, path, to, flags, &done, err);
    filetree_tell(cli, &done);
    return r;
}

static int files_get_run(struct cli *cli, void *opts, const struct strv *args, struct err *err)
{
    const struct files_get_opts *o = opts;
    _cleanup_(freep) char *path = xstrdup(args->v[0]);
    for (size_t n = strlen(path); o->recursive && n > 1 && path[n - 1] == '/';)
        path[--n] = 0;
    const char *name = filecall_name(path), *given = args->n > 1 ? args->v[1] : name;
    unsigned flags = o->force ? FILECALL_FORCE : 0;
    if (!*name)
        return message_refuse(err, ERR_USAGE, "cli_names_directory",
                              MESSAGE_ARGS(MESSAGE_STR("path", path)));
    if (o->recursive && str_eq(given, "-"))
        return message_refuse(err, ERR_USAGE, "cli_directory_stdout", MESSAGE_NO_ARGS);
    _cleanup_(freep) char *to =
        str_ends(given, "/") ? xasprintf("%s%s", given, name) : xstrdup(given);
    int r = cli_open(cli, err);
    if (r < 0)
        return r;
    return o->recursive ? files_get_get_tree(cli, path, to, flags, err)
                        : filecall_get(cli, path, to, flags, err);
}

struct files_put_opts {
    bool force, parents, recursive;
};

static const struct opt FILES_PUT_OPTS[] = {
    {.letter = 'f',
     .name = "force",
     .type = OPT_FLAG,
     .offset = offsetof(struct files_put_opts, force),
     .doc = "replace a file that is there"},
    {.letter = 'p',
     .name = "parents",
     .type = OPT_FLAG,
     .offset = offsetof(struct files_put_opts, parents),
     .doc = "make the directories above it"},
    {.letter = 'r',
     .name = "recursive",
     .type = OPT_FLAG,
     .offset = offsetof(struct files_put_opts, recursive),
     .doc = "a directory with all that is in it; makes the directories above it too"},
};

static int files_put_put_tree(struct cli *cli,
                              const char *from,
                              const char *goal,
                              unsigned flags,
                              struct err *err)
{
    struct filetree_done done = {0};
    int r = filetree_put(cli, from, goal, flags, &done, err);
    filetree_tell(cli, &done);
    return r;
}

static int files_put_put_file(struct cli *cli,
                              const char *from,
                              const char *goal,
                              unsigned flags,
                              struct err *err)
{
    _cleanup_(json_unrefp) json_t *v = NULL;
    int r = filecall_put(cli, from, goal, flags, &v, err);
    if (r < 0)
        return r;
    (void)fprintf(cli->out, "%s\n", member_str(v, "path"));
    cli_talk(cli, "%s: %lld bytes, SHA-256 %s", member_str(v, "path"),
             (long long)json_get_int(v, "bytes", 0), member_str(v, "sha256"));
    return 0;
}

static int files_put_check_kind(const char *from, bool recursive, struct err *err)
{
    struct stat st;
    bool is_dir = stat(from, &st) == 0 && S_ISDIR(st.st_mode);
    if (recursive && !is_dir)
        return message_refuse(err, ERR_USAGE, "cli_no_directory",
                              MESSAGE_ARGS(MESSAGE_STR("path", from)));
    if (is_dir && !recursive)
        return message_refuse(err, ERR_USAGE, "cli_is_directory",
                              MESSAGE_ARGS(MESSAGE_STR("path", from)));
    return 0;
}

static int files_put_run(struct cli *cli, void *opts, const struct strv *args, struct err *err)
{
    const struct files_put_opts *o = opts;
    _cleanup_(freep) char *from = xstrdup(args->v[0]);
    const char *goal = args->v[1];
    unsigned flags =
        (o->force ? FILECALL_FORCE : 0U) | (o->parents ? (unsigned)FILECALL_PARENTS : 0U);
    for (size_t n = strlen(from); o->recursive && n > 1 && from[n - 1] == '/';)
        from[--n] = 0;
    int r = files_put_check_kind(from, o->recursive, err);
    const char *name = filecall_name(from);
    bool is_name = !str_eq(name, "-") && !str_eq(name, ".") && !str_eq(name, "..");
    if (r == 0 && str_ends(goal, "/") && !is_name)
        r = message_refuse(err, ERR_USAGE, "cli_name_there",
                           MESSAGE_ARGS(MESSAGE_STR("path", goal)));
    if (r == 0)
        r = cli_open(cli, err);
    if (r < 0)
        return r;
    _cleanup_(freep) char *path =
        str_ends(goal, "/") ? xasprintf("%s%s", goal, name) : xstrdup(goal);
    return o->recursive ? files_put_put_tree(cli, from, path, flags, err)
                        : files_put_put_file(cli, from, path, flags, err);
}

struct files_rm_opts {
    bool recursive;
};

static const struct opt FILES_RM_OPTS[] = {
    {.letter = 'r',
     .name = "recursive",
     .type = OPT_FLAG,
     .offset = offsetof(struct files_rm_opts, recursive),
     .doc = "a directory with all that is in it"},
};

static int files_rm_run(struct cli *cli, void *opts, const struct strv *args, struct err *err)
{
    const struct files_rm_opts *o = opts;
    int r = cli_open(cli, err);
    for (size_t i = 0; r == 0 && i < args->n; i++) {
        int64_t removed = 0;
        r = filecall_remove(cli, args->v[i], o->recursive, &removed, err);
        if (r == 0)
            (void)fprintf(cli->out, "%s removed (%" PRId64 ")\n", args->v[i], removed);
    }
    return r;
}

static const struct command FILES_COMMANDS[] = {
    {
        .name = "files ls",
        .args = "[PATH]",
        .most = 1,
        .summary = "list a directory of the shared root",
        .text = "PATH is common/…, users/<you>/… or jobs/<id>/… below the shared root, or an "
                "absolute path in it. Without a PATH it lists the directories where you may begin.",
        .example = "argus files ls common/datasets\tdata sets of everybody\n"
                   "argus files ls jobs/grpo-7/checkpoints -o json\tfor programs",
        .opts = FILES_LS_OPTS,
        .n_opts = array_len(FILES_LS_OPTS),
        .opts_size = sizeof(struct files_ls_opts),
        .run = files_ls_run,
    },
    {
        .name = "files get",
        .args = "PATH [FILE|DIR]",
        .least = 1,
        .most = 2,
        .summary = "copy a file or directory of the shared root to here",
        .text = "FILE '-' is stdout; one that ends in '/' is a directory to put it in. A cut "
                "connection is made again, and the same command goes on where an earlier one "
                "ended, if the file is still the same. A file has its name only when it is "
                "whole. With -r a directory comes with all that is in it; what came before "
                "and is the same still does not come again, and links are left out.",
        .example = "argus files get jobs/grpo-7/logs/driver.log\tthe whole log\n"
                   "argus files get -r jobs/grpo-7/checkpoints ckpt\ta whole directory\n"
                   "argus files get common/datasets/x.jsonl - | head\tto another program",
        .opts = FILES_GET_OPTS,
        .n_opts = array_len(FILES_GET_OPTS),
        .opts_size = sizeof(struct files_get_opts),
        .run = files_get_run,
    },
    {
        .name = "files put",
        .args = "FILE|DIR PATH",
        .least = 2,
        .most = 2,
        .summary = "copy a file or directory from here to the shared root",
        .text = "FILE '-' is stdin. A PATH that ends in '/' is the directory to put it in. A "
                "cut connection is made again, and the same command goes on where an earlier "
                "one ended. A file appears in one step, when all of it is there and its hash "
                "is right. With -r a directory goes file by file; what the same command "
                "brought before it was ended is not sent again, and links are left out.",
        .example =
            "argus files put train.parquet users/alice/datasets/gsm8k/ -p\tmaking the directory\n"
            "argus files put -f reward.py users/alice/code/reward.py\treplace it\n"
            "argus files put -r ./raw users/alice/datasets/raw\ta whole directory",
        .opts = FILES_PUT_OPTS,
        .n_opts = array_len(FILES_PUT_OPTS),
        .opts_size = sizeof(struct files_put_opts),
        .run = files_put_run,
    },
    {
        .name = "files rm",
        .args = "PATH…",
        .least = 1,
        .most = 1000,
        .summary = "remove files of the shared root",
        .text = "Yours, and what is in common/. A link is removed and not what it leads to. "
                "The files of jobs stay.",
        .example = "argus files rm users/alice/datasets/old.parquet\tone file\n"
                   "argus files rm -r users/alice/datasets/old\ta whole directory",
        .opts = FILES_RM_OPTS,
        .n_opts = array_len(FILES_RM_OPTS),
        .opts_size = sizeof(struct files_rm_opts),
        .run = files_rm_run,
    },
};

NOUN(files, FILES_COMMANDS);
