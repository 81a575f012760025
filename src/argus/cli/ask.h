/* SPDX-License-Identifier: Apache-2.0 */
/* ask.h - a command that is data: what it asks the server, and what of the reply it shows.
 *
 * Options say themselves where they go:
 *   "body:pool"            a member of the request's JSON
 *   "body:disabled=false"  that value, when the flag is given; "body:needs=[]" is an empty list
 *   "query:user"           of the path; a flag is 1, "query:common=true" is true
 *   "path:users"           "users/NAME" in place of {of} in the path; exactly one such is needed
 * Two options with one destination do not go together. -o, --utc, --watch,
 * --dry-run and --quiet (the reply's id alone) are known by name. */
#pragma once
#include "argus/cli/listing.h"
#include "argus/show/when.h"
#include "base/strv.h"

struct cli;

struct seen {
    struct when when;
    bool wide;
};

struct ask {
    const char *method; /* NULL = GET */
    const char *path;   /* "/v1/users/{}": {} is each argument in turn, {1} the second one */
    const char *arg_to; /* "body:name": where the argument goes when the path has none */
    const char *onto; /* options change this member of what GET answers, and all of it goes back */
    const char *change;  /* the method where an option that is needed is not given: what is given is
                            changed in what there is; NULL = it is refused */
    const char *nothing; /* refusal when no option says anything for the body; NULL = it is sent */
    int tries;           /* as in client.h */
    struct listing table; /* the reply is a list */
    /* The name for {} where no argument is given: heap; NULL: the command has no such name. */
    int (*name_if_none)(struct cli *cli, char **ret, struct err *err);
    const char *done;    /* the line of success: "say_done_made" */
    const char *subject; /* of that line, "user {name}": a member of the reply, else the argument */
    const char *next;    /* "argus token add --user {name}": what may come next, as talk */
    /* The reply for people, in place of a table or line. */
    void (*print)(struct cli *cli, const json_t *answer, const struct seen *seen);
    /* The same where --dry-run was given, and nothing was done. */
    void (*print_dry)(struct cli *cli, const json_t *answer, const struct seen *seen);
};

/* The whole command, from cli_open() on; opts are laid out and values are theirs. */
must_check int ask_run(struct cli *cli,
                       const struct ask *ask,
                       const struct opt *opts,
                       size_t n_opts,
                       const void *values,
                       const struct strv *args,
                       struct err *err);

/* ---- for commands that are more than data ---- */

/* "/v1/nodes/{}:drain" with a name in place of {}: yours to free(). */
char *ask_path(const char *path, const char *name);
/* Send JSON (stolen; NULL = none); *ret is a new reference. */
must_check int ask_send(struct cli *cli,
                        const char *method,
                        const char *path,
                        json_t *body,
                        int tries,
                        json_t **ret,
                        struct err *err);
/* Refuse options that are needed and not given, or that do not go together. ERR_USAGE. */
must_check int ask_check(const struct opt *opts, size_t n, const void *values, struct err *err);
/* Add what the options say to a body. ERR_USAGE. */
must_check int ask_fill(const struct opt *opts,
                        size_t n,
                        const void *values,
                        json_t *body,
                        struct err *err);
