/* SPDX-License-Identifier: Apache-2.0 */
/* snapcall.c - see snapcall.h. The server is asked by hash first; only what it does not have goes
 * there, as a tar made beside. */
#include "argus/snapcall.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "argus/datacall.h"
#include "argus/jobview.h"
#include "argus/pack.h"
#include "argus/upload.h"
#include "base/str.h"

enum { SHORT_HASH = 12, PATH_BYTES = 1024 };

char *snapcall_path(const char *name, const char *rest)
{
    struct buf path = BUF_INIT(PATH_BYTES);
    (void)buf_adds(&path, "/v1/snapshots/"); /* overflow: the server knows no such name */
    url_escape(&path, name);
    (void)buf_adds(&path, rest);
    return buf_take(&path);
}

static int post(struct cli *cli,
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
                 : err_set(err, ERR_USAGE, "'%.60s' is no name of a snapshot", name);
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
    int r = post(cli, name, hash, NULL, what->common, ret, err);
    if (r != ERR_NOT_FOUND)
        return r;
    r = send_tree(cli, pack, name, &sent, err);
    if (r < 0)
        return r;
    r = post(cli, name, hash, sent.id, what->common, ret, err);
    if (r < 0)
        upload_forget(cli, sent.id);
    return r;
}

static int add_tree(struct cli *cli, const struct snapcall_add *what, json_t **ret, struct err *err)
{
    struct pack *pack = NULL;
    int r = pack_open(what->source, what->most_bytes, &pack, err);
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
    r = post(cli, what->name, NULL, sent.id, what->common, ret, err);
    if (r < 0)
        upload_forget(cli, sent.id);
    return r;
}

int snapcall_add(struct cli *cli, const struct snapcall_add *what, json_t **ret, struct err *err)
{
    struct stat st = {0};
    if (strcmp(what->source, "-") != 0 && stat(what->source, &st) < 0)
        return err_set(err, ERR_USAGE, "'%s' cannot be read: %s", what->source, strerror(errno));
    bool is_tree = strcmp(what->source, "-") != 0 && S_ISDIR(st.st_mode);
    return is_tree ? add_tree(cli, what, ret, err) : add_archive(cli, what, ret, err);
}

/* ---- lines ---- */

void snapcall_print(struct cli *cli, const json_t *snapshot)
{
    char size[DATACALL_SIZE_MAX];
    const char *verl = json_get_str(snapshot, "verl", NULL);
    (void)fprintf(cli->out, "%s\n", jobview_str(snapshot, "name"));
    cli_talk(cli, "%lld files, %s%s%s, %s", (long long)json_get_int(snapshot, "files", 0),
             datacall_size(json_get_int(snapshot, "bytes", 0), size), verl ? ", verl " : "",
             str_or(verl, ""), jobview_str(snapshot, "path"));
}

void snapcall_row(struct table *t, const json_t *snapshot, const struct when *w)
{
    char size[DATACALL_SIZE_MAX], at[WHEN_TEXT_MAX];
    table_add(t, STYLE_BOLD, jobview_str(snapshot, "name"));
    table_add(t, STYLE_PLAIN,
              json_get_bool(snapshot, "common", false) ? "common" : jobview_str(snapshot, "user"));
    table_add(t, STYLE_PLAIN, json_get_str(snapshot, "verl", NULL));
    table_addf(t, STYLE_PLAIN, "%lld", (long long)json_get_int(snapshot, "files", 0));
    table_add(t, STYLE_PLAIN, datacall_size(json_get_int(snapshot, "bytes", 0), size));
    table_addf(t, STYLE_DIM, "%.*s", SHORT_HASH, jobview_str(snapshot, "hash"));
    table_add(t, STYLE_PLAIN, when_point(w, when_get(snapshot, "created_at"), at));
}
