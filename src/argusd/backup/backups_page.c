/* SPDX-License-Identifier: Apache-2.0 */
/* backups_page.c - /v1/backups: the list, and one more now. Nothing of a backup is handed out: it
 * is opened by `argusd restore` on the machine that has the key. */
#include <string.h>

#include "argusd/api/routes.h"
#include "argusd/backup/backups.h"
#include "argusd/kit/resource.h"
#include "argusd/kit/view.h"

enum { BACKUPS_REPLY_MAX = 4096, BACKUPS_BODY_MAX = 4096 };

#define SHOWN(key, ftype, member, ...)                                                             \
    FIELD_AT(backup_file, key, ftype, member, .flags = FIELD_SHOWN, __VA_ARGS__)
static const struct field backup_rows[] = {
    SHOWN("name", FIELD_TEXT, name, .size = BACKUP_NAME_MAX),
    SHOWN("taken_at", FIELD_TIME, at, .doc = "time that the name of the backup says"),
    SHOWN("bytes", FIELD_COUNT, bytes, .doc = "size of the sealed file"),
};
static const struct field_table backup_table = FIELD_TABLE("Backup", backup_rows, backup_file);

static const void *backup_next(struct resource_ask *q, size_t *pos)
{
    const struct backup_files *all = backups_all(q->a->backups);
    return *pos < all->n ? &all->v[(*pos)++] : NULL;
}

static void backup_thing(struct resource_ask *q,
                         const void *x,
                         const void *asked,
                         struct access_thing *ret)
{
    const struct backup_file *f = x;
    (void)q;
    (void)asked;
    ret->name = f ? f->name : "new";
}

static const struct resource backup_noun = {.noun = "backup",
                                            .kind = ACCESS_KIND_LOG,
                                            .collection = "backups",
                                            .page = &backup_table,
                                            .may_see = ACCESS_AUDIT,
                                            .next = backup_next,
                                            .thing = backup_thing};

struct backup_begun {
    bool making;
    const char *place;
};
static const struct field begun_rows[] = {
    FIELD_AT(backup_begun, "making", FIELD_BOOL, making, .flags = FIELD_SHOWN),
    FIELD_AT(backup_begun,
             "place",
             FIELD_STR,
             place,
             .flags = FIELD_SHOWN | FIELD_ALWAYS,
             .doc = "the directory that it will be in"),
};
static const struct field_table begun_table = FIELD_TABLE("BackupBegun", begun_rows, backup_begun);

static void backups_post(struct http_req *req, void *app)
{
    struct api *a = app;
    struct err err = {0};
    int r = backups_begin(a->backups, http_req_principal(req)->user, &err);
    if (r < 0) {
        api_fail(req, &err, api_barrier(a));
        return;
    }
    const struct backup_begun page = {
        .making = true,
        .place = a->settings->backup_dir ? a->settings->backup_dir : "${SHARED_ROOT}/argus/backup"};
    struct buf out = BUF_INIT(BACKUPS_REPLY_MAX);
    struct jout j = jout_begin(&out);
    field_to_json(&begun_table, &page, FIELD_ALL, FIELD_PAGE, &j, NULL);
    http_reply_json(req, 202, &out, api_barrier(a));
    buf_release(&out);
}

static const struct http_route rows[] = {
    RESOURCE_LIST(&backup_noun,
                  "/v1/backups",
                  VIEWER,
                  "the backups of the store, the newest first",
                  .reply_schema = "BackupList"),
    {.method = "POST",
     .pattern = "/v1/backups",
     .least = HTTP_ROLE_ADMIN,
     .max_body = BACKUPS_BODY_MAX, /* {}, which the CLI sends */
     .handle = backups_post,
     .summary = "make a backup of the store now; its end is an event",
     .reply_schema = "BackupBegun",
     .reply_status = 202},
};
static const struct http_schema schemas[] = {
    {.name = "Backup", .table = &backup_table, .which = FIELD_SHOWN},
    {.name = "BackupBegun", .table = &begun_table},
    LIST_OF("BackupList", "backups", "Backup"),
};
const struct api_part part_backups_page = {rows, array_len(rows), schemas, array_len(schemas)};
