/* SPDX-License-Identifier: Apache-2.0 */
/* removal.h - what uses a data set, a model or a preset that somebody thinks of removing.
 *
 * A list to which each room adds its own things (api/content/removalplan.c asks them). Who asks is
 * told the names of what he may see; of the rest he is told how many there are, and whether they
 * stand in the way. Nothing is changed. */
#pragma once
#include "argusd/kit/api.h"

enum removal_kind { REMOVAL_JOB, REMOVAL_SERVICE, REMOVAL_PIPELINE, REMOVAL_PRESET };

/* Names beyond these are counted with those that are not seen. */
enum { REMOVAL_USERS_MAX = 200 };

/* Texts are borrowed for the request. */
struct removal_user {
    int kind; /* enum removal_kind */
    const char *name, *owner;
    bool keeps; /* while it is there the removal is refused */
};

struct removal {
    const struct api *a;
    const struct access_who *who;       /* who asks */
    const struct registry_entry *entry; /* what would go: this */
    const struct preset_item *preset;   /* or this; the other one is NULL */
    const char *name;                   /* of what would go */
    struct field_list users;            /* of struct removal_user */
    int64_t hidden;
    bool is_refused;
};
extern const struct field_table removal_table,
    removal_user_table; /* "RemovalPlan", "RemovalUser" */
void removal_release(struct removal *r);

/* sees: who asks may see it. */
void removal_add(struct removal *r, const struct removal_user *user, bool sees);

/* Does this text, or one of this list of texts, mean the entry that would go, where it stands in a
 * thing of this user? NULL is fine. */
bool removal_is_named(const struct removal *r,
                      const char *user,
                      enum registry_kind kind,
                      const json_t *value);
/* Does this JobSpec of a user take the entry, or is it made of the preset? project: where it is
 * submitted into if it says nothing; may be NULL. */
bool removal_is_in_spec(const struct removal *r,
                        const char *user,
                        const char *project,
                        const json_t *spec);
