/* SPDX-License-Identifier: Apache-2.0 */
/* snapshot.c - snapshots: code on the shared root that never changes again. */
#include "argus/noun/noun.h"

#include <stdio.h>
#include <string.h>

#include "argus/show/member.h"
#include "argus/transfer/snapcall.h"
#include "base/message.h"

enum { SHORT_HASH = 12 };

struct snapshot_add_opts {
    int output;
    const char *name;
    bool common;
};

static const struct opt ADD_OPTS[] = {
    {.name = "name",
     .type = OPT_TEXT,
     .offset = offsetof(struct snapshot_add_opts, name),
     .arg = "NAME@VERSION",
     .doc = "name of the snapshot; for a directory the version may be left out, and is then the "
            "beginning of the hash"},
    {.name = "common",
     .type = OPT_FLAG,
     .offset = offsetof(struct snapshot_add_opts, common),
     .doc = "let everybody use it; else it is yours alone"},
    OPT_OUTPUT(struct snapshot_add_opts),
};

static const struct opt LS_OPTS[] = {LISTING_OPTS};
static const struct opt DIFF_OPTS[] = {OPT_OUTPUT(struct listing_opts)};
static const struct opt RM_OPTS[] = {
    {.name = "common",
     .type = OPT_FLAG,
     .doc = "the common one, though there is one of yours with this name",
     .to = "query:common=true"},
};

static const struct opt NEEDS_OPTS[] = {
    {.name = "set",
     .type = OPT_LIST,
     .arg = "NEED",
     .doc = "one need, as torch>=2.4; all that are given take the place of those there were",
     .to = "body:needs"},
    {.name = "none", .type = OPT_FLAG, .doc = "say that it needs nothing", .to = "body:needs=[]"},
    {.name = "common",
     .type = OPT_FLAG,
     .doc = "the common one, though there is one of yours with this name",
     .to = "query:common=true"},
};

static void snapshot_owner(struct table *t, const json_t *snapshot, const struct when *w)
{
    bool common = json_get_bool(snapshot, "common", false);
    (void)w;
    table_add(t, STYLE_PLAIN, common ? "common" : member_str(snapshot, "user"));
}

static void snapshot_hash(struct table *t, const json_t *snapshot, const struct when *w)
{
    (void)w;
    table_addf(t, STYLE_DIM, "%.*s", SHORT_HASH, member_str(snapshot, "hash"));
}

static const struct column SNAPSHOTS[] = {
    {.title = "say_name", .flags = COLUMN_NAME, .least = 16, .key = "name", .style = STYLE_BOLD},
    {.title = "say_owner", .flags = COLUMN_FLEX, .least = 8, .draw = snapshot_owner},
    {.title = "say_verl", .flags = COLUMN_FLEX, .least = 6, .key = "verl"},
    {.title = "say_files", .flags = COLUMN_RIGHT, .rank = 1, .key = "files", .as = CELL_NUMBER},
    {.title = "say_size", .flags = COLUMN_RIGHT, .key = "bytes", .as = CELL_SIZE},
    {.title = "say_hash", .rank = 2, .draw = snapshot_hash},
    {.title = "say_made", .key = "created_at", .as = CELL_TIME},
};

static const struct column SNAPSHOT_FILES[] = {
    {.title = "say_name", .flags = COLUMN_FLEX, .least = 16, .key = "name", .style = STYLE_BOLD},
    {.title = "say_kind", .key = "kind"},
    {.title = "say_files", .flags = COLUMN_RIGHT, .key = "files", .as = CELL_NUMBER},
    {.title = "say_size", .flags = COLUMN_RIGHT, .key = "bytes", .as = CELL_SIZE},
};
static const struct opt SNAPSHOT_FILES_OPTS[] = {
    {.name = "below",
     .type = OPT_TEXT,
     .arg = "DIR",
     .doc = "a directory of the snapshot",
     .to = "query:below"},
    LISTING_OPTS,
};

static void snapshot_print_diff(struct cli *cli, const json_t *answer, const struct seen *seen)
{
    size_t i;
    (void)seen;
    const json_t *one;
    json_array_foreach (json_get_array(answer, "differences"), i, one) {
        const char *how = member_str(one, "how");
        bool added = !strcmp(how, "added"), removed = !strcmp(how, "removed");
        enum style style = added ? STYLE_GREEN : removed ? STYLE_RED : STYLE_YELLOW;
        (void)fprintf(cli->out, "%s%c %s%s\n", term_on(&cli->term, style),
                      added     ? '+'
                      : removed ? '-'
                                : '~',
                      member_str(one, "path"), term_off(&cli->term, style));
    }
    cli_talk(cli, "%lld added, %lld removed, %lld changed%s",
             (long long)json_get_int(answer, "added", 0),
             (long long)json_get_int(answer, "removed", 0),
             (long long)json_get_int(answer, "changed", 0),
             json_get_bool(answer, "more", false) ? "; the first 1000 are shown" : "");
}

static void snapshot_print(struct cli *cli, const json_t *snapshot)
{
    char size[SIZE_TEXT_MAX];
    const char *verl = json_get_str(snapshot, "verl", NULL);
    (void)fprintf(cli->out, "%s\n", member_str(snapshot, "name"));
    cli_talk(cli, "%lld files, %s%s%s, %s", (long long)json_get_int(snapshot, "files", 0),
             size_text(json_get_int(snapshot, "bytes", 0), size), verl ? ", verl " : "",
             str_or(verl, ""), member_str(snapshot, "path"));
}

static int snapshot_add(struct cli *cli, void *opts, const struct strv *args, struct err *err)
{
    const struct snapshot_add_opts *o = opts;
    _cleanup_(json_unrefp) json_t *answer = NULL;
    struct snapcall_add what = {.source = args->v[0], .name = o->name, .common = o->common};
    if (!o->name)
        return message_refuse(err, ERR_USAGE, "cli_give_version", MESSAGE_NO_ARGS);
    int r = cli_open(cli, err);
    if (r >= 0)
        r = snapcall_add(cli, &what, &answer, err);
    if (r < 0)
        return r;
    if (o->output >= OUTPUT_JSON)
        cli_emit(cli, answer, o->output);
    else
        snapshot_print(cli, answer);
    return 0;
}

static void snapshot_print_whole(struct cli *cli, const json_t *snapshot, const struct seen *seen)
{
    size_t i;
    const json_t *need;
    (void)seen;
    snapshot_print(cli, snapshot);
    json_array_foreach (json_get_array(snapshot, "needs"), i, need)
        (void)fprintf(cli->out, "needs %s\n", json_string_value(need));
}

static const struct command SNAPSHOT_COMMANDS[] = {
    {
        .name = "snapshot add",
        .args = "DIR|ARCHIVE",
        .least = 1,
        .most = 1,
        .summary = "keep code as it is now, for jobs to name",
        .text = "A directory is packed as git would add it: all that no .gitignore leaves out, "
                "and never .git. An ARCHIVE is a zip, a tar (.gz, .xz, .zst) or a git "
                "bundle, of which the commit, tag or branch is taken that VERSION names, "
                "else HEAD. What the server has already is not sent again. A spec names it "
                "with 'code: NAME@VERSION', or as 'working_dir'.",
        .example = "argus snapshot add ~/verl --name verl@0.9.1 --common\tone version for all\n"
                   "argus snapshot add . --name mycode\twork in progress, named by its hash",
        OPTS(ADD_OPTS),
        .opts_size = sizeof(struct snapshot_add_opts),
        .run = snapshot_add,
    },
    {
        .name = "snapshot ls",
        .args = "",
        .summary = "list the snapshots",
        .text = "Lists common snapshots and your own; admins see all. VERL is the version of verl "
                "in it.",
        OPTS(LS_OPTS),
        .ask = {.path = "/v1/snapshots",
                .table = {.key = "snapshots", COLUMNS(SNAPSHOTS), .none = "say_no_snapshots"}},
    },
    {
        .name = "snapshot show",
        .args = "NAME@VERSION",
        .least = 1,
        .most = 1,
        .summary = "show a snapshot, and what it asks of a machine",
        .text = "Needs are versions that its pyproject.toml, setup.cfg, setup.py or "
                "requirements.txt ask for, of what a node's probe knows: python, torch, ray, "
                "vllm, sglang, numpy, transformers, cuda, driver; or what 'snapshot needs' has "
                "set. A job does not go to machines that are known not to have them, and a "
                "submit says which they are.",
        OPTS(DIFF_OPTS),
        .ask = {.path = "/v1/snapshots/{}", .print = snapshot_print_whole},
    },
    {
        .name = "snapshot files",
        .args = "NAME@VERSION",
        .least = 1,
        .most = 1,
        .summary = "list what is in a snapshot, a directory at a time",
        .text = "A directory tells how many files are below it, and their bytes. A snapshot does "
                "not change, so what is listed stays true for as long as the snapshot is there.",
        .example = "argus snapshot files verl@0.9.1 --below verl/trainer\twhat is in there",
        OPTS(SNAPSHOT_FILES_OPTS),
        .ask = {.path = "/v1/snapshots/{}:files",
                .table = {.key = "entries", COLUMNS(SNAPSHOT_FILES)}},
    },
    {
        .name = "snapshot needs",
        .args = "NAME@VERSION",
        .least = 1,
        .most = 1,
        .summary = "say what a snapshot asks of a machine",
        .text = "What you say replaces what its setup files say. Jobs that wait with the snapshot "
                "go by it at once; 'argus events' keeps what was there before. A spec with its "
                "own py_executable brings its packages along: then a machine must only meet what "
                "its snapshots need of ray and driver.",
        .example = "argus snapshot needs verl@0.9.1 --set 'torch>=2.6' --set 'python>=3.10'	"
                   "both, and nothing else",
        OPTS(NEEDS_OPTS),
        .ask = {.method = "PATCH",
                .path = "/v1/snapshots/{}",
                .nothing = "cli_say_needs",
                .done = "say_done_changed",
                .subject = "needs of snapshot {name}"},
    },
    {
        .name = "snapshot diff",
        .args = "A B",
        .least = 2,
        .most = 2,
        .summary = "compare two snapshots by their files",
        .text = "+ marks a file that only B has, - one that only A has, ~ one that differs.",
        .example = "argus snapshot diff verl@0.9.0 verl@0.9.1\twhat is new",
        OPTS(DIFF_OPTS),
        .ask = {.path = "/v1/snapshots/{}:diff?with={1}", .print = snapshot_print_diff},
    },
    {
        .name = "snapshot rm",
        .args = "NAME@VERSION…",
        .least = 1,
        .most = ARGS_ANY,
        .summary = "remove snapshots",
        .text = "A snapshot that a job uses which is not over is not removed. You may remove your "
                "own snapshots, and common ones that you added; admins may remove any common one.",
        OPTS(RM_OPTS),
        .ask = {.method = "DELETE",
                .path = "/v1/snapshots/{}",
                .done = "say_done_removed",
                .subject = "snapshot {name}"},
    },
};

NOUN(snapshot, SNAPSHOT_COMMANDS);
