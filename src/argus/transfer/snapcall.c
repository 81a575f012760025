/* SPDX-License-Identifier: Apache-2.0 */
/* snapcall.c - see snapcall.h. The server is asked by hash first; only what it does not have goes
 * there, as a tar made beside. */
#include "argus/transfer/snapcall.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "argus/cli/cli.h"
#include "argus/transfer/pack.h"
#include "argus/transfer/pack_list.h"
#include "argus/transfer/upload.h"
#include "base/message.h"
#include "base/str.h"

enum { SHORT_HASH = 12 };

static int snapcall_post(struct cli *cli,
                         const char *name,
                         const char *hash,
                         const char *upload,
                         bool common,
                         json_t **ret,
                         struct err *err)
{
    _cleanup_(json_unrefp) json_t *body = json_object();
    (void)json_object_set_new(body, "name", json_string(name)); /* fails for lack of memory */
    if (hash)
        (void)json_object_set_new(body, "hash", json_string(hash));
    if (upload)
        (void)json_object_set_new(body, "upload", json_string(upload));
    if (common)
        (void)json_object_set_new(body, "common", json_true());
    char *text = json_dumps(body, JSON_COMPACT);
    struct request request = {.method = "POST",
                              .path = "/v1/snapshots",
                              .content_type = "application/json",
                              .body = text,
                              .body_len = text ? strlen(text) : 0};
    int r = text ? client_json(cli->client, &request, ret, err)
                 : message_refuse(err, ERR_USAGE, "cli_no_snapshot",
                                  MESSAGE_ARGS(MESSAGE_STR("text", name)));
    free(text);
    return r;
}

static int send_tree(struct cli *cli,
                     struct pack *pack,
                     const char *name,
                     struct upload_sent *ret,
                     struct err *err)
{
    _cleanup_(closep) int fd = -1;
    int r = pack_write(pack, &fd, err);
    return r < 0 ? r : upload_send_fd(cli, fd, name, name, ret, err);
}

static int add_pack(struct cli *cli,
                    const struct snapcall_add *what,
                    struct pack *pack,
                    json_t **ret,
                    struct err *err)
{
    char hash[HASH_HEX];
    struct upload_sent sent = {0};
    (void)manifest_hash(pack_manifest(pack), hash);
    _cleanup_(freep) char *name = strchr(what->name, '@')
                                      ? xstrdup(what->name)
                                      : xasprintf("%s@%.*s", what->name, SHORT_HASH, hash);
    int r = snapcall_post(cli, name, hash, NULL, what->common, ret, err);
    if (r != ERR_NOT_FOUND)
        return r;
    r = send_tree(cli, pack, name, &sent, err);
    if (r < 0)
        return r;
    r = snapcall_post(cli, name, hash, sent.id, what->common, ret, err);
    if (r < 0)
        upload_forget(cli, sent.id);
    return r;
}

static void say_of_tree(const struct err *what, void *arg)
{
    const struct cli *cli = arg;
    _cleanup_(freep) char *text = cli_err_text(cli, what);
    cli_talk(cli, "%s", text);
}

static int add_tree(struct cli *cli, const struct snapcall_add *what, json_t **ret, struct err *err)
{
    struct pack *pack = NULL;
    const struct pack_tell tell = {.say = say_of_tree, .arg = cli};
    int r = pack_open(what->source, what->most_bytes, &tell, &pack, err);
    if (r == 0)
        r = add_pack(cli, what, pack, ret, err);
    pack_free(pack);
    return r;
}

static int add_archive(struct cli *cli,
                       const struct snapcall_add *what,
                       json_t **ret,
                       struct err *err)
{
    struct upload_sent sent = {0};
    int r = upload_send(cli, what->source, NULL, &sent, err);
    if (r < 0)
        return r;
    r = snapcall_post(cli, what->name, NULL, sent.id, what->common, ret, err);
    if (r < 0)
        upload_forget(cli, sent.id);
    return r;
}

int snapcall_add(struct cli *cli, const struct snapcall_add *what, json_t **ret, struct err *err)
{
    struct stat st = {0};
    if (strcmp(what->source, "-") != 0 && stat(what->source, &st) < 0)
        return message_refuse(
            err, ERR_USAGE, "disk_no_read",
            MESSAGE_ARGS(MESSAGE_STR("path", what->source), MESSAGE_STR("why", strerror(errno))));
    bool is_tree = strcmp(what->source, "-") != 0 && S_ISDIR(st.st_mode);
    return is_tree ? add_tree(cli, what, ret, err) : add_archive(cli, what, ret, err);
}
