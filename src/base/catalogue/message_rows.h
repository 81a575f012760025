/* SPDX-License-Identifier: Apache-2.0 */
/* message_rows.h - the catalogue behind message.h, one file of rows per family of messages.
 *
 * {key} is the argument of that name, {key|one|more} a word that depends on a number. Of several
 * rows with one code the first is said all of whose arguments are there, so the row with the most
 * arguments comes first; {key||} asks for an argument and says nothing. ${…} is a text as it is.
 * Every row has all languages, with the same arguments in each, and so has its fix, where it has
 * one. */
#pragma once
#include <stddef.h>

#include "base/message.h"

struct message_row {
    const char *code, *said[MESSAGE_LANGUAGES];
    const char *fix[MESSAGE_LANGUAGES]; /* what to do about it; NULL: nothing to say */
};
#define SAY_FIX(c, english, chinese, english_fix, chinese_fix)                                     \
    {                                                                                              \
        .code = (c), .said = {english, chinese}, .fix = { english_fix, chinese_fix }               \
    }
#define SAY(c, english, chinese) SAY_FIX(c, english, chinese, NULL, NULL)
struct message_family {
    const struct message_row *rows;
    size_t n;
};
#define MESSAGE_FAMILY(r)                                                                          \
    {                                                                                              \
        .rows = (r), .n = sizeof(r) / sizeof((r)[0])                                               \
    }

extern const struct message_family message_wait;       /* why a job waits, what would start it */
extern const struct message_family message_refusal;    /* of the API */
extern const struct message_family message_form;       /* how a YAML or JSON text is read */
extern const struct message_family message_spec;       /* JobSpec, NodeSpec, preset */
extern const struct message_family message_conf;       /* argus.yaml, rules */
extern const struct message_family message_fact;       /* facts of alerts, severities */
extern const struct message_family message_thing;      /* what people keep: presets, data, users */
extern const struct message_family message_check;      /* found before a job starts: preflight */
extern const struct message_family message_class;      /* class_… of err.h */
extern const struct message_family message_advice;     /* of findings that no rule makes */
extern const struct message_family message_rule;       /* of rules: made by tools/advicerows */
extern const struct message_family message_ask;        /* how a request is made */
extern const struct message_family message_simulation; /* replays of past jobs */
extern const struct message_family message_file;       /* files, uploads, archives */
extern const struct message_family message_account;    /* users, projects, tokens, secrets */
extern const struct message_family message_machine;    /* asked of machines */
extern const struct message_family message_cli;        /* of the command line itself */
extern const struct message_family message_disk;       /* the shared root and what lies on it */
extern const struct message_family message_ray;  /* what Ray answers, and whether it can be asked */
extern const struct message_family message_pipe; /* pipelines, runs, schedules */
extern const struct message_family message_serve;    /* services, Ray Serve */
extern const struct message_family message_notebook; /* notebooks, their door */
extern const struct message_family message_ops;      /* plans, their steps */
extern const struct message_family message_doctor;   /* what argusd finds of itself */
extern const struct message_family message_now;      /* not now, perhaps later */
extern const struct message_family message_job;      /* what happens to a job: start, run, end */
extern const struct message_family message_training; /* a training: its alerts, its step */
extern const struct message_family message_verdict;  /* what is wrong with a training */
extern const struct message_family message_trial;    /* what a trial finds */
extern const struct message_family message_event;    /* what the kind of an event says alone */
extern const struct message_family message_title;    /* columns of argus's tables */
extern const struct message_family message_talk;     /* what argus says by itself */
extern const struct message_family message_node;     /* machines: probe, join, health, leave */

/* The catalogue, row by row: NULL behind the last. */
const struct message_row *message_row(size_t i);
