#pragma once
struct record_finding {
    char *json; /* object */
    char *rule;
};
struct record_extra {
    char *argv; /* JSON array */
    char *verl;
    char *snapshots; /* JSON array */
    struct record_finding finding;
};
