/* SPDX-License-Identifier: Apache-2.0 */
/* access.h - who may see and do what: one table, and the question asked of it.
 *
 * A row is an action. It says for each relation between who asks and what he asks about the
 * least role that may, or that for him the thing does not exist. Roles are those of the token
 * in hand; what may be seen beyond one's own follows from the user: an admin, and a user of
 * role viewer (who watches and changes nothing), see everything; all others see what is their
 * own and what the projects do that they are members of. Into project "default" everybody may
 * submit, and while it is the only one into any: a name is then just a label. Neither makes
 * people see each other's jobs. Pure. */
#pragma once
#include <stdbool.h>

#include "base/err.h"
#include "base/strv.h"

/* Each may do what those before it may. */
enum access_role { ACCESS_NONE, ACCESS_VIEWER, ACCESS_USER, ACCESS_ADMIN };

enum access_relation {
    ACCESS_OWN,    /* his, or himself */
    ACCESS_SHARED, /* of a project that he is in */
    ACCESS_SEEN,   /* somebody else's, and he sees everything */
    ACCESS_OTHER,  /* somebody else's */
    ACCESS_RELATIONS
};

enum access_answer {
    ACCESS_ALLOW,
    ACCESS_DENY, /* 403 */
    ACCESS_HIDE, /* 404: as if it were not there */
};

/* X(enumerator, own, shared, seen, other, who may): the last one ends the sentence "only … may". */
#define ACCESS_TABLE(X)                                                                            \
    X(JOB_SEE, VIEWER, VIEWER, VIEWER, HIDDEN, "its owner, the owner's project and admins")        \
    X(JOB_CHANGE, USER, ADMIN, ADMIN, HIDDEN, "its owner or an admin")                             \
    X(JOB_ADVISE, USER, USER, USER, HIDDEN, "everyone who may see it, with a token of role user")  \
    X(SUBMIT, USER, USER, ADMIN, HIDDEN, "its members or an admin")                                \
    X(MACHINE_SEE, VIEWER, VIEWER, VIEWER, VIEWER, "everybody with a token")                       \
    X(MACHINE_CHANGE, ADMIN, ADMIN, ADMIN, ADMIN, "an admin")                                      \
    X(EVENTS_SEE, VIEWER, VIEWER, VIEWER, HIDDEN, "everyone who may see their subject")            \
    X(AUDIT, NOBODY, NOBODY, VIEWER, NOBODY, "admins and users of role viewer")                    \
    X(USER_SEE, VIEWER, VIEWER, VIEWER, HIDDEN,                                                    \
      "the user, members of the user's projects and admins")                                       \
    X(USER_CHANGE, ADMIN, ADMIN, ADMIN, HIDDEN, "an admin")                                        \
    X(TOKEN_SEE, VIEWER, HIDDEN, ADMIN, HIDDEN, "their owner or an admin")                         \
    X(TOKEN_CHANGE, USER, HIDDEN, ADMIN, HIDDEN,                                                   \
      "their owner, with a token of role user, or an admin")                                       \
    X(SESSION_END, VIEWER, HIDDEN, ADMIN, HIDDEN, "their owner or an admin")                       \
    X(PROJECT_SEE, VIEWER, VIEWER, VIEWER, HIDDEN, "its members and admins")                       \
    X(PROJECT_CHANGE, ADMIN, ADMIN, ADMIN, HIDDEN, "an admin")                                     \
    X(FILES_SEE, VIEWER, VIEWER, ADMIN, HIDDEN, "its owner and admins")                            \
    X(FILES_CHANGE, USER, USER, ADMIN, HIDDEN,                                                     \
      "its owner (in common/ everybody), with a token of role user, or an admin")                  \
    X(UPLOAD, USER, HIDDEN, HIDDEN, HIDDEN, "its owner, with a token of role user")                \
    X(DATA_SEE, VIEWER, VIEWER, VIEWER, HIDDEN, "its owner, the owner's project and admins")       \
    X(DATA_CHANGE, USER, ADMIN, ADMIN, HIDDEN, "its owner or an admin")                            \
    X(SNAPSHOT_SEE, VIEWER, VIEWER, VIEWER, HIDDEN, "its owner and admins")                        \
    X(SNAPSHOT_ADD, USER, USER, USER, HIDDEN, "users, with a token of role user")                  \
    X(SNAPSHOT_CHANGE, USER, ADMIN, ADMIN, HIDDEN, "who added it or an admin")                     \
    X(SECRET_SEE, VIEWER, VIEWER, ADMIN, HIDDEN, "its owner, members of its project and admins")   \
    X(SECRET_CHANGE, USER, USER, ADMIN, HIDDEN,                                                    \
      "its owner or members of its project, with a token of role user, or an admin")               \
    X(PRESET_SEE, VIEWER, VIEWER, VIEWER, HIDDEN, "members of its project and admins")             \
    X(PRESET_CHANGE, USER, ADMIN, ADMIN, HIDDEN, "who stored it or an admin")                      \
    X(SIMULATION_SEE, VIEWER, HIDDEN, VIEWER, HIDDEN, "who asked for it and admins")               \
    X(SIMULATION_CHANGE, USER, HIDDEN, ADMIN, HIDDEN,                                              \
      "who asked for it, with a token of role user, or an admin")                                  \
    X(PIPELINE_SEE, VIEWER, VIEWER, VIEWER, HIDDEN, "its owner, its project and admins")           \
    X(PIPELINE_CHANGE, USER, ADMIN, ADMIN, HIDDEN, "its owner or an admin")                        \
    X(SERVICE_SEE, VIEWER, VIEWER, VIEWER, HIDDEN, "its owner, its project and admins")            \
    X(SERVICE_CALL, USER, USER, ADMIN, HIDDEN,                                                     \
      "its owner or members of its project, with a token of role user, or an admin")               \
    X(SERVICE_CHANGE, USER, USER, ADMIN, HIDDEN,                                                   \
      "its owner or members of its project, with a token of role user, or an admin")               \
    X(NOTEBOOK_SEE, VIEWER, HIDDEN, VIEWER, HIDDEN, "its owner and admins")                        \
    X(NOTEBOOK_CHANGE, USER, HIDDEN, ADMIN, HIDDEN,                                                \
      "its owner, with a token of role user, or an admin")                                         \
    X(PLAN_SEE, VIEWER, HIDDEN, VIEWER, HIDDEN, "who asked for it and admins")                     \
    X(PLAN_CHANGE, USER, HIDDEN, ADMIN, HIDDEN,                                                    \
      "who asked for it, with a token of role user, or an admin")                                  \
    X(PLAN_APPROVE, ADMIN, HIDDEN, ADMIN, HIDDEN, "an admin")                                      \
    X(SERVER_SEE, NONE, NONE, NONE, NONE, "everybody")

enum access_action {
#define X(e, own, shared, seen, other, who) ACCESS_##e,
    ACCESS_TABLE(X)
#undef X
        ACCESS_ACTIONS
};

/* X(enumerator, word in a sentence, word in the store, what seeing one is). Each event is about one
 * of these: who may see the thing may see its events, and nobody else but who sees everything. */
#define ACCESS_KIND_TABLE(X)                                                                       \
    X(JOB, "job", "job", JOB_SEE)                                                                  \
    X(NODE, "node", "node", MACHINE_SEE)                                                           \
    X(CLUSTER, "cluster", "cluster", MACHINE_SEE)                                                  \
    X(USER, "user", "user", USER_SEE)                                                              \
    X(TOKEN, "token", "token", TOKEN_SEE)                                                          \
    X(PROJECT, "project", "project", PROJECT_SEE)                                                  \
    X(FILE, "path", "file", FILES_SEE)                                                             \
    X(UPLOAD, "upload", "upload", UPLOAD)                                                          \
    X(DATASET, "data set", "dataset", DATA_SEE)                                                    \
    X(MODEL, "model", "model", DATA_SEE)                                                           \
    X(SNAPSHOT, "snapshot", "snapshot", SNAPSHOT_SEE)                                              \
    X(SECRET, "secret", "secret", SECRET_SEE)                                                      \
    X(PRESET, "preset", "preset", PRESET_SEE)                                                      \
    X(SIMULATION, "simulation", "simulation", SIMULATION_SEE)                                      \
    X(SERVICE, "service", "service", SERVICE_SEE)                                                  \
    X(NOTEBOOK, "notebook", "notebook", NOTEBOOK_SEE)                                              \
    X(PIPELINE, "pipeline", "pipeline", PIPELINE_SEE)                                              \
    X(PLAN, "plan", "plan", PLAN_SEE)                                                              \
    X(LOG, "the log of", "log", AUDIT)

enum access_kind {
#define X(e, said, word, see) ACCESS_KIND_##e,
    ACCESS_KIND_TABLE(X)
#undef X
        ACCESS_KINDS
};

/* As the store has it: "dataset". Static. */
const char *access_kind_to_string(enum access_kind kind);
/* The action that seeing one is. */
enum access_action access_kind_see(enum access_kind kind);

/* The cell, for one who has this role. */
enum access_answer access_ask(enum access_action action,
                              enum access_relation relation,
                              enum access_role role);
/* Who asks. Texts are borrowed. */
struct access_who {
    const char *user;
    enum access_role role; /* of the token, never above the user's */
    bool sees_all;
    bool any_project;     /* none was made yet: he may submit into any */
    const char *projects; /* that he is a member of, comma-separated */
};

/* owner or project may be NULL or "": then it is nobody's. */
enum access_relation access_relation(const struct access_who *who,
                                     const char *owner,
                                     const char *project);

#define ACCESS_DEFAULT_PROJECT "default"
enum { ACCESS_NAME_MAX = 31 };

/* Checks the name of a user or project: [a-z0-9][a-z0-9_.-]{0,30}. ERR_BAD_SPEC; what: "user". */
must_check int access_check_name(const char *what, const char *name, struct err *err);

/* What is asked about. */
struct access_thing {
    enum access_kind kind;
    const char *name;            /* of a job: its id */
    const char *owner, *project; /* NULL = none */
    bool is_common;              /* everybody sees it, as what is his project's */
    const struct strv *shared;   /* "user/bob", "project/rl": so do these; NULL = nobody */
};

/* The kinds of things that a user of this role sees when the thing has this relation to the user:
 * "job,node". */
enum { ACCESS_KINDS_TEXT = 160 };
void access_list_seen(enum access_relation relation,
                      enum access_role role,
                      char ret[static ACCESS_KINDS_TEXT]);
/* All events, whatever they are about: they are the audit log, too. */
bool access_sees_all_events(const struct access_who *who);
/* What an address that argusd calls has answered, or why it was not asked: told to who may
 * configure addresses. Whoever else may name one (the URL in a secret) could ask by it what argusd
 * reaches. */
bool access_sees_answers(const struct access_who *who);

/* 0, ERR_FORBIDDEN or ERR_NOT_FOUND with its sentence. verb: "stop". */
must_check int access_check(const struct access_who *who,
                            enum access_action action,
                            const char *verb,
                            const struct access_thing *thing,
                            struct err *err);
/* The same about what belongs to everybody. */
must_check int access_check_common(const struct access_who *who,
                                   enum access_action action,
                                   const char *verb,
                                   const struct access_thing *thing,
                                   struct err *err);
/* Into this project? */
must_check int access_check_submit(const struct access_who *who,
                                   const char *project,
                                   struct err *err);
