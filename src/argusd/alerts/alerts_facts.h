/* SPDX-License-Identifier: Apache-2.0 */
/* alerts_facts.h - a list of facts about one subject, and who makes such lists. Inside of the room
 * alone. */
#pragma once
#include "argusd/alerts/alerts_run.h"

enum { FACTS_MAX = 40, FACT_TEXT_MAX = 400 };
struct facts {
    struct alert_fact v[FACTS_MAX];
    size_t n;
    struct alert_saying says; /* name NULL: none */
    char said[FACT_TEXT_MAX];
};

/* Texts and names are borrowed until the rules were asked. text NULL: it is not known. */
void fact_text(struct facts *f, const char *name, const char *text);
void fact_number(struct facts *f, const char *name, double number);
/* A message as its code and arguments, which its reader hears in his language; one for each list.
 */
void fact_message(struct facts *f, const char *name, const char *code, const char *args);
/* The fact "reason"; args "": that none is known. */
void fact_reason(struct facts *f, const char *code, const char *args);
void fact_yes(struct facts *f, const char *name, bool yes);
/* All rules of this kind are asked. */
void alerts_see(struct alerts *as, const struct alert_subject *what, struct facts *f, usec_t now);

/* alerts_nodes.c */
void alerts_see_nodes(struct alerts *as, usec_t now);
void alerts_see_gpus(struct alerts *as, usec_t now);
