/* SPDX-License-Identifier: Apache-2.0 */
/* routes_shapes.c - the shapes that replies of several nouns share: a reason, a checkpoint, what a
 * trial saw, how a training goes. */
#include "argusd/api/routes.h"

#include "argusd/kit/view.h"
#include "core/spec/spec.h"

/* Why its newest attempt ended badly; of what was found before an attempt, the class alone. */
#define FINDING "{\"anyOf\":[" REF("Finding") "," REF("FindingBrief") ",{\"type\":\"null\"}]}"

static const struct field reason_rows[] = {HAS_TEXT("code"), HAS_TEXT("text"), OPT_ARGS};
SHAPE(reason)

static const struct field eta_rows[] = {HAS_TIME("p50"), HAS_TIME("p90")};
SHAPE(eta)

static const struct field node_gpus_rows[] = {HAS_TEXT("name"), HAS_AS("gpu_ids", LIST(INTEGER))};
SHAPE(node_gpus)

static const struct field snapshot_use_rows[] = {HAS_TEXT("key"),       HAS_TEXT("name"),
                                                 HAS_BOOLEAN("common"), HAS_TEXT("hash"),
                                                 HAS_TEXT("path"),      MAY_TEXT("verl")};
SHAPE(snapshot_use)

static const struct field input_use_rows[] = {
    HAS_TEXT("key"),   HAS_TEXT("text"), HAS_TEXT("kind"),  HAS_TEXT("ref"),
    HAS_TEXT("entry"), MAY_TEXT("hash"), HAS_TEXTS("files")};
SHAPE(input_use)

static const struct field placement_nodes_rows[] = {HAS_TEXT("name"), HAS_NUMBER("leased_gpus"),
                                                    HAS_NUMBER("gpus"), HAS_INTEGER("actors"),
                                                    HAS_INTEGER("bundles")};
SHAPE(placement_nodes)

static const struct field placement_rows[] = {HAS_BOOLEAN("ok"),
                                              HAS_NUMBER("beyond_gpus"),
                                              HAS_NUMBER("waiting_gpus"),
                                              HAS_BOOLEAN("is_partial"),
                                              HAS_LIST("nodes", placement_nodes_table),
                                              MAY_TIME("checked_at")};
SHAPE(placement)

static const struct field imports_processes_rows[] = {MAY_TEXT("kind"),   MAY_TEXT("node"),
                                                      HAS_INTEGER("pid"), MAY_TEXT("verl"),
                                                      MAY_TEXT("file"),   HAS_BOOLEAN("ok")};
SHAPE(imports_processes)

static const struct field imports_rows[] = {HAS_LIST("processes", imports_processes_table),
                                            HAS_INTEGER("attempt"),
                                            HAS_BOOLEAN("ok"),
                                            MAY_TEXT("verl"),
                                            MAY_TEXT("file"),
                                            MAY_TEXT("snapshot"),
                                            MAY_TEXT("hash"),
                                            MAY_TEXT("reward"),
                                            MAY_TEXT("python"),
                                            MAY_TEXT("torch"),
                                            MAY_TEXT("ray"),
                                            HAS_TEXTS("nodes"),
                                            MAY_TEXT("mismatch")};
SHAPE(imports)

static const struct field trial_result_findings_rows[] = {HAS_TEXT("class"), HAS_TEXT("field"),
                                                          HAS_TEXT("detail"), MAY_TEXT("hint")};
SHAPE(trial_result_findings)

static const struct field trial_result_rows[] = {
    HAS_BOOLEAN("ok"),
    HAS_LIST("findings", trial_result_findings_table),
    OPT_AS("seconds", NUMBER_OR_NULL),
    OPT_AS("versions", OBJECT_AS_IT_CAME("a version, by package")),
    OPT_AS("row", AS_IT_CAME("the first row of the data")),
    OPT_AS("reward", AS_IT_CAME("what the reward gave for it")),
    OPT_AS("train_rows", NUMBER_OR_NULL),
    OPT_AS("verl_at", TEXT_OR_NULL)};
SHAPE(trial_result)

static const struct field curve_rows[] = {HAS_TEXT("key"),
                                          MAY_NUMBER("value"),
                                          HAS_INTEGER("step"),
                                          OPT_AS("min", NUMBER_OR_NULL),
                                          OPT_AS("max", NUMBER_OR_NULL),
                                          HAS_AS("spark", LIST(NUMBER_OR_NULL))};
SHAPE(curve)

static const struct field training_not_finite_rows[] = {HAS_TEXT("key"), HAS_INTEGER("step")};
SHAPE(training_not_finite)

static const struct field training_collapse_rows[] = {HAS_INTEGER("step"), MAY_NUMBER("best"),
                                                      MAY_NUMBER("now")};
SHAPE(training_collapse)

static const struct field training_attempts_rows[] = {
    HAS_INTEGER("k"),     HAS_INTEGER("steps"), HAS_INTEGER("lost"), MAY_NUMBER("good_s"),
    MAY_NUMBER("lost_s"), HAS_INTEGER("saves"), MAY_NUMBER("save_s")};
SHAPE(training_attempts)

static const struct field training_rows[] = {HAS_INTEGER("step"),
                                             MAY_INTEGER("total_steps"),
                                             MAY_NUMBER("progress"),
                                             MAY_NUMBER("eta_s"),
                                             MAY_TIME("eta"),
                                             MAY_NUMBER("step_seconds"),
                                             MAY_NUMBER("tokens_per_s"),
                                             MAY_TIME("updated_at"),
                                             HAS_INTEGER("attempt"),
                                             MAY_NUMBER("mfu"),
                                             MAY("reward", "Curve"),
                                             MAY("loss", "Curve"),
                                             MAY("validation", "Curve"),
                                             MAY_PART("not_finite", training_not_finite_table),
                                             MAY_PART("collapse", training_collapse_table),
                                             HAS_INTEGER("superseded"),
                                             HAS_INTEGER("left_out"),
                                             HAS_LIST("attempts", training_attempts_table),
                                             HAS_AS("latest", MAP(NUMBER_OR_NULL)),
                                             HAS_INTEGER("keys")};
SHAPE(training)

static const struct field quote_rows[] = {MAY_TEXT("source"), HAS_INTEGER("offset"),
                                          HAS_INTEGER("line"), HAS_TEXT("text")};
SHAPE(quote)

static const struct field spec_change_rows[] = {
    HAS_TEXT("key"),  OPT_TEXT("set"),   OPT_TEXT("scale"), OPT_TEXT("add"),
    OPT_TEXT("from"), OPT_NUMBER("min"), OPT_NUMBER("max")};
SHAPE(spec_change)

static const struct field finding_rows[] = {HAS_TEXT("class"),
                                            HAS_INTEGER("attempt"),
                                            HAS_TEXT("sentence"),
                                            HAS_TIME("at"),
                                            HAS_TEXT("meaning"),
                                            MAY_TEXT("rule"),
                                            HAS_NUMBER("confidence"),
                                            MAY_TEXT("rank"),
                                            MAY_TEXT("node"),
                                            MAY_TEXT("actor"),
                                            MAY_TEXT("pid"),
                                            MAY_TEXT("time"),
                                            HAS_BOOLEAN("fatal"),
                                            HAS_AS("evidence", LIST(REF("Quote"))),
                                            HAS_AS("after", LIST(REF("Quote"))),
                                            MAY_TEXT("advice"),
                                            HAS_AS("patch", LIST(REF("SpecChange"))),
                                            HAS_INTEGER("bytes"),
                                            HAS_INTEGER("lines"),
                                            OPT_INTEGER("skipped_bytes"),
                                            OPT_TEXT("job")};
SHAPE(finding)

static const struct field finding_brief_rows[] = {HAS_TEXT("class"), HAS_TEXT("sentence"),
                                                  MAY_TEXT("node"), MAY_TEXT("advice")};
SHAPE(finding_brief)

static const struct field checkpoint_rows[] = {
    HAS_INTEGER("step"),
    HAS_AS("state", WORDS("\"partial\",\"complete\",\"verified\",\"broken\"")),
    HAS_BOOLEAN("verified"),
    HAS_INTEGER("bytes"),
    MAY_TIME("at"),
    MAY_INTEGER("attempt"),
    MAY_NUMBER("value"),
    MAY_TEXT("why")};
SHAPE(checkpoint)

/* A job in a list; the page of a job has the same members and more. */
#define JOB_ITEM_ROWS                                                                              \
    HAS_TEXT("id"), MAY_TEXT("name"), HAS_TEXT("user"), HAS_TEXT("project"), HAS_TEXT("workload"), \
        HAS_TEXT("cluster"), HAS("state", "JobState"), HAS_TEXTS("flags"),                         \
        OPT_TIME("unknown_since"), HAS("reason", "Reason"), OPT_INTEGER("position"),               \
        MAY("eta", "Eta"), MAY_TEXT("pool"), HAS_INTEGER("priority"), HAS_INTEGER("nnodes"),       \
        HAS_NUMBER("n_gpus_per_node"), HAS_NUMBER("gpus"), MAY_TIME("queued_at"),                  \
        MAY_TIME("started_at"), MAY_TIME("ended_at"), HAS_INTEGER("attempt"),                      \
        HAS_INTEGER("restarts"), MAY_INTEGER("step"), MAY_NUMBER("gpu_util")

static const struct field job_item_rows[] = {JOB_ITEM_ROWS};
SHAPE(job_item)

static const struct field proof_rows[] = {HAS_AS("driver_on_worker", BOOLEAN_OR_NULL),
                                          MAY_TEXT("driver_node"),
                                          MAY_TEXT("driver_node_ip"),
                                          MAY_TEXT("head_ip"),
                                          MAY_TIME("checked_at"),
                                          MAY("imports", "Imports")};
SHAPE(proof)

static const struct field job_paths_rows[] = {HAS_TEXT("dir"), HAS_TEXT("driver_log"),
                                              HAS_TEXT("config"), HAS_TEXT("checkpoints"),
                                              HAS_TEXT("metrics")};
SHAPE(job_paths)

static const struct field job_driver_rows[] = {HAS_TEXT("node"), HAS_TEXT("ip"),
                                               MAY_INTEGER("pid")};
SHAPE(job_driver)

static const struct field job_restart_rows[] = {HAS_INTEGER("max"), HAS_INTEGER("failures"),
                                                HAS_INTEGER("preemptions"),
                                                HAS_BOOLEAN("preemptible"), HAS_TEXTS("avoid")};
SHAPE(job_restart)

static const struct field job_exit_rows[] = {HAS_TEXT("cause"), MAY_INTEGER("code"),
                                             MAY_TEXT("signal")};
SHAPE(job_exit)

static const struct field job_rows[] = {JOB_ITEM_ROWS,
                                        HAS_TEXT("submission_id"),
                                        HAS_TEXT("output_dir"),
                                        MAY_PART("paths", job_paths_table),
                                        MAY_PART("driver", job_driver_table),
                                        MAY("proof", "Proof"),
                                        MAY("trial", "TrialResult"),
                                        HAS_AS("nodes", LIST(REF("NodeGpus"))),
                                        HAS_PART("restart", job_restart_table),
                                        MAY_TEXT("held_by"),
                                        MAY_TEXT("retry_of"),
                                        HAS_AS("attempts", LIST(REF("Attempt"))),
                                        MAY("placement", "Placement"),
                                        HAS_AS("argv", LIST_OR_NULL(TEXT)),
                                        MAY_TEXT("verl"),
                                        MAY("snapshot", "SnapshotUse"),
                                        HAS_AS("snapshots", LIST(REF("SnapshotUse"))),
                                        HAS_TEXT("spec"),
                                        HAS_AS("inputs", LIST(REF("InputUse"))),
                                        MAY("resolved_spec", "ResolvedSpec"),
                                        HAS_AS("warnings", LIST(REF("SpecProblem"))),
                                        MAY("metrics", "Training"),
                                        MAY("goodput", "Goodput"),
                                        HAS_AS("checkpoints", LIST_OR_NULL(REF("Checkpoint"))),
                                        MAY_PART("exit", job_exit_table),
                                        HAS_AS("finding", FINDING),
                                        MAY_TIME("deadline")};
SHAPE(job)

static const struct field plan_demand_rows[] = {HAS_INTEGER("nnodes"), HAS_NUMBER("gpus"),
                                                HAS_NUMBER("cpus"), HAS_NUMBER("memory")};
SHAPE(plan_demand)

static const struct field spec_edit_rows[] = {HAS_TEXT("key"), MAY_TEXT("old"), MAY_TEXT("new")};
SHAPE(spec_edit)

static const struct field plan_placement_rows[] = {HAS_AS("nodes", LIST(REF("NodeGpus"))),
                                                   MAY_TEXT("driver_node")};
SHAPE(plan_placement)

static const struct field plan_why_rows[] = {HAS_TEXT("code"), HAS_TEXT("text"), OPT_ARGS,
                                             HAS_INTEGER("position"), HAS_TEXT("hint_text")};
SHAPE(plan_why)

static const struct field plan_quota_project_rows[] = {
    HAS_TEXT("name"),           HAS_NUMBER("gpus_used"),
    HAS_NUMBER("gpus_after"),   HAS_INTEGER("running"),
    HAS_INTEGER("queued"),      OPT_NUMBER("gpus_guaranteed"),
    OPT_NUMBER("gpus_ceiling"), OPT_NUMBER("gpus_borrowed_after")};
SHAPE(plan_quota_project)

static const struct field plan_quota_rows[] = {HAS_PART("project", plan_quota_project_table),
                                               HAS_PART("user", plan_quota_project_table)};
SHAPE(plan_quota)

static const struct field plan_advice_rows[] = {MAY_TEXT("key"), MAY_TEXT("value"),
                                                HAS_TEXT("text")};
SHAPE(plan_advice)

static const struct field plan_trial_rows[] = {
    HAS_AS("state", WORDS("\"not_run\",\"passed\",\"failed\"")), HAS_TEXT("text"),
    MAY("result", "TrialResult")};
SHAPE(plan_trial)

static const struct field plan_rows[] = {HAS_BOOLEAN("dry_run"),
                                         MAY("resolved_spec", "ResolvedSpec"),
                                         HAS_PART("demand", plan_demand_table),
                                         HAS_BOOLEAN("fits_pool"),
                                         HAS_INTEGER("queue_length"),
                                         HAS_AS("problems", LIST(REF("SpecProblem"))),
                                         MAY_TEXT("verl"),
                                         OPT_AS("changes", LIST(REF("SpecEdit"))),
                                         HAS_AS("argv", LIST_OR_NULL(TEXT)),
                                         MAY_PART("placement", plan_placement_table),
                                         MAY_PART("why", plan_why_table),
                                         MAY("eta", "Eta"),
                                         HAS_PART("quota", plan_quota_table),
                                         OPT_LIST("advice", plan_advice_table),
                                         HAS_PART("trial", plan_trial_table)};
SHAPE(plan)

static const struct http_schema schemas[] = {
    {.name = "JobState",
     .json = WORDS("\"QUEUED\",\"STARTING\",\"RUNNING\",\"STOPPING\",\"SUCCEEDED\",\"FAILED\","
                   "\"STOPPED\",\"TIMEOUT\"")},
    {.name = "JobSpec", .table = &spec_table, .is_form = true},
    {.name = "ResolvedSpec", .table = &spec_table},
    {.name = "PresetSpec",
     .json = "{\"type\":\"object\",\"description\":\"keys of the JobSpec, and the holes of its "
             "preset\",\"required\":[\"preset\"],\"properties\":{\"preset\":" TEXT
             "},\"additionalProperties\":" AS_IT_CAME("a key of the JobSpec, or a hole") "}"},
    {.name = "JobOrder", .json = "{\"anyOf\":[" REF("JobSpec") "," REF("PresetSpec") "]}"},
    {.name = "Reason", .table = &reason_table},
    {.name = "Eta", .table = &eta_table},
    {.name = "NodeGpus", .table = &node_gpus_table},
    {.name = "SnapshotUse", .table = &snapshot_use_table},
    {.name = "InputUse", .table = &input_use_table},
    {.name = "Placement", .table = &placement_table},
    {.name = "Imports", .table = &imports_table},
    {.name = "TrialResult", .table = &trial_result_table},
    {.name = "Curve", .table = &curve_table},
    {.name = "Training", .table = &training_table},
    {.name = "Quote", .table = &quote_table},
    {.name = "SpecChange", .table = &spec_change_table},
    {.name = "Finding", .table = &finding_table},
    {.name = "FindingBrief", .table = &finding_brief_table},
    {.name = "Checkpoint", .table = &checkpoint_table},
    {.name = "JobItem", .table = &job_item_table},
    {.name = "Attempt", .table = &view_attempt_table},
    {.name = "Proof", .table = &proof_table},
    {.name = "Goodput", .table = &view_goodput_table},
    {.name = "Job", .table = &job_table},
    {.name = "SpecEdit", .table = &spec_edit_table},
    {.name = "Plan", .table = &plan_table},
};

const struct api_part part_routes_shapes = {NULL, 0, schemas, array_len(schemas)};
