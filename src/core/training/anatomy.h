/* SPDX-License-Identifier: Apache-2.0 */
/* anatomy.h - where the time of a training's steps goes, from what verl tells of each.
 *
 * A step is split into stages. A stage of verl is its timing_s/ figure, but for generation: tools
 * and scores of agent loops lie inside of it, and of those the time of the slowest sample counts,
 * because the step waits for that one (verl: agent_loop, slowest = the greatest sum of generation,
 * tools and score). What no stage explains is the rest. Where verl counts saving and validation
 * beside the step, they are added to it. Where stages overlap (asynchronous trainers) their sum
 * is more than the step: then shares are of the sum, and nothing is said of idle GPUs.
 *
 *   bubble, in GPU-hours = ranks x (tools + reward + save + rest) / 3600, summed over the steps
 *
 * which is the sum over ranks of (step - own busy) with each rank taken as busy in all other
 * stages: verl tells no time of a single rank, so it is a least. A reward that a model on these
 * GPUs gives is no idle time, though it counts here: verl does not tell it apart. ranks = tokens /
 * (seconds x throughput), as verl defines perf/throughput; the caller's number where that is not
 * told.
 *
 * What a lever would give is a most, in seconds of the mean step:
 *   tools            of the slowest sample: its whole time less the longest generation of any
 *   tail             generation less the mean generation of a sample (cf. RollPacker, arXiv
 *                    2509.21009), where tools and score of the slowest are taken off already
 *   the others       the whole stage
 *
 * Pure, in bounded memory: rows of single steps at first, then each two neighbours become one. */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/field.h"
#include "core/training/training_figure.h"

/* X(enumerator, word): in the order of a step */
#define ANATOMY_STAGE_TABLE(X)                                                                     \
    X(ANATOMY_GENERATE, generate)                                                                  \
    X(ANATOMY_TOOLS, tools)                                                                        \
    X(ANATOMY_REWARD, reward)                                                                      \
    X(ANATOMY_OLD_LOG_PROB, old_log_prob)                                                          \
    X(ANATOMY_REFERENCE, reference)                                                                \
    X(ANATOMY_VALUES, values)                                                                      \
    X(ANATOMY_ADVANTAGE, advantage)                                                                \
    X(ANATOMY_UPDATE, update)                                                                      \
    X(ANATOMY_WEIGHTS, weights)                                                                    \
    X(ANATOMY_SAVE, save)                                                                          \
    X(ANATOMY_VALIDATE, validate)                                                                  \
    X(ANATOMY_REST, rest)
#define ANATOMY_STAGE_ROW(e, word) e,
enum anatomy_stage { ANATOMY_STAGE_TABLE(ANATOMY_STAGE_ROW) ANATOMY_STAGES };
#undef ANATOMY_STAGE_ROW
const char *anatomy_stage_to_string(enum anatomy_stage s);

enum { ANATOMY_ROWS = 48, ANATOMY_LEVERS = 3 };

/* The mean step of a few. */
struct anatomy_row {
    int64_t first, last, steps;
    double seconds, stage[ANATOMY_STAGES];
};

/* The sample that took longest in all steps; NaN: not told. */
struct anatomy_slowest {
    int64_t step;
    double seconds, generate, tools, score, prompt_tokens, response_tokens;
};

struct anatomy;

struct anatomy *anatomy_new(void);
void anatomy_free(struct anatomy *a); /* NULL is fine */
/* Records in their order, the look being of this record. One that tells of no step's time is
 * passed over, one that was superseded too. */
void anatomy_add(struct anatomy *a, const struct metric_record *r, const struct training_look *l);

/* X(enumerator, word, message, key of verl that pulls it) */
#define ANATOMY_LEVER_TABLE(X)                                                                     \
    X(ANATOMY_LEVER_TOOLS, "tools", "lever_tools", "actor_rollout_ref.rollout.multi_turn")         \
    X(ANATOMY_LEVER_TAIL, "tail", "lever_tail", "data.max_response_length")                        \
    X(ANATOMY_LEVER_REWARD, "reward", "lever_reward", "reward.num_workers")                        \
    X(ANATOMY_LEVER_OLD_LOG_PROB, "old_log_prob", "lever_old_log_prob",                            \
      "algorithm.rollout_correction.bypass_mode")                                                  \
    X(ANATOMY_LEVER_REFERENCE, "reference", "lever_reference",                                     \
      "actor_rollout_ref.ref.log_prob_use_dynamic_bsz")                                            \
    X(ANATOMY_LEVER_WEIGHTS, "weights", "lever_weights",                                           \
      "actor_rollout_ref.rollout.checkpoint_engine.update_weights_bucket_megabytes")               \
    X(ANATOMY_LEVER_SAVE, "save", "lever_save", "trainer.save_freq")                               \
    X(ANATOMY_LEVER_VALIDATE, "validate", "lever_validate", "trainer.test_freq")                   \
    X(ANATOMY_LEVER_REST, "rest", "lever_rest", "data.dataloader_num_workers")
#define ANATOMY_LEVER_ROW(e, ...) e,
enum anatomy_lever { ANATOMY_LEVER_TABLE(ANATOMY_LEVER_ROW) ANATOMY_LEVER_KINDS };
#undef ANATOMY_LEVER_ROW

struct anatomy_gain {
    enum anatomy_lever lever;
    double seconds; /* of the mean step, at most */
};

/* The sums over all steps. */
struct anatomy_sums {
    int64_t steps, first, last;
    double seconds;               /* of all steps */
    double stage[ANATOMY_STAGES]; /* of all steps */
    double ranks;                 /* NaN: not known */
    double bubble_hours;          /* at least, in GPU-hours; NaN: not known */
    bool overlaps;                /* stages ran beside each other */
    struct anatomy_gain levers[ANATOMY_LEVERS];
    size_t n_levers; /* the largest first; none below one step in fifty */
    struct anatomy_slowest slowest;
    /* A quarter of the steps at each end; NaN: too few. */
    double early_s, late_s;
    enum anatomy_stage grown; /* the stage that changed most between them */
    double grown_s;           /* by so much */
};
/* gpus: of the job, for a training that does not tell; 0: not known. */
void anatomy_sum(const struct anatomy *a, double gpus, struct anatomy_sums *ret);

/* The mean steps of its rows; how many there are. */
size_t anatomy_rows(const struct anatomy *a, struct anatomy_row ret[static ANATOMY_ROWS]);

/* As it is shown: "StepAnatomy" in openapi.json. Nothing is written before the first step. */
extern const struct field_table anatomy_table;
bool anatomy_to_json(const struct anatomy *a, double gpus, struct jout *j, const char *key);
/* For tests: NULL, or what is wrong with it. */
const char *anatomy_check(const struct anatomy *a);
