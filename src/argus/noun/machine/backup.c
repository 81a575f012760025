/* SPDX-License-Identifier: Apache-2.0 */
/* backup.c - the backups of the store: which there are, and one more now. They are opened by
 * `argusd restore`, without a server. */
#include "argus/noun/noun.h"

static const struct opt LS_OPTS[] = {LISTING_OPTS};
static const struct opt NOW_OPTS[] = {LISTING_OPTS};

static const struct column BACKUPS[] = {
    {.title = "say_name", .flags = COLUMN_FLEX, .least = 20, .key = "name"},
    {.title = "say_made", .key = "taken_at", .as = CELL_TIME},
    {.title = "say_size", .flags = COLUMN_RIGHT, .key = "bytes", .as = CELL_SIZE},
};

static const struct command BACKUP_COMMANDS[] = {
    {.name = "backup ls",
     .args = "",
     .summary = "list the backups of the store",
     .text = "argusd makes one each hour (`backup.every` in argus.yaml): the store and the keys, "
             "sealed with `backup.key` of its state_dir. Without that key no backup opens, so keep "
             "a copy of the key on another machine. 'argusd restore', on the head, puts one back.",
     OPTS(LS_OPTS),
     .ask = {.path = "/v1/backups", .table = {.key = "backups", COLUMNS(BACKUPS)}}},
    {.name = "backup now",
     .args = "",
     .summary = "make a backup of the store now",
     .text = "For admins, before an upgrade say. It is begun; 'argus backup ls' shows it once it "
             "was read again and found whole.",
     OPTS(NOW_OPTS),
     .ask = {.method = "POST",
             .path = "/v1/backups",
             .done = "say_done_begun",
             .subject = "backup in {place}"}},
};

NOUN(backup, BACKUP_COMMANDS);
