/* SPDX-License-Identifier: Apache-2.0 */
/* routes_shapes.c - the shapes that replies of several nouns share: a reason, a checkpoint, what a
 * trial saw, how a training goes. */
#include "argusd/api/routes.h"

#include "argusd/archive/archives.h"
#include "argusd/kit/saying.h"
#include "argusd/kit/view.h"
#include "argusd/submit/plan.h"
#include "core/metric/ckpt.h"
#include "core/past/advise.h"
#include "core/spec/spec.h"

static const struct field snapshot_use_rows[] = {HAS_TEXT("key"),       HAS_TEXT("name"),
                                                 HAS_BOOLEAN("common"), HAS_TEXT("hash"),
                                                 HAS_TEXT("path"),      MAY_TEXT("verl")};
SHAPE(snapshot_use)

static const struct field input_use_rows[] = {
    HAS_TEXT("key"),   HAS_TEXT("text"), HAS_TEXT("kind"),  HAS_TEXT("ref"),
    HAS_TEXT("entry"), MAY_TEXT("hash"), HAS_TEXTS("files")};
SHAPE(input_use)

/* is_leased and actors_outside: not in what older versions stored. */
static const struct field placement_nodes_rows[] = {
    HAS_TEXT("name"),   OPT_BOOLEAN("is_leased"), HAS_NUMBER("leased_gpus"),
    HAS_NUMBER("gpus"), HAS_INTEGER("actors"),    HAS_INTEGER("bundles")};
SHAPE(placement_nodes)

static const struct field placement_rows[] = {
    HAS_BOOLEAN("ok"),          HAS_NUMBER("beyond_gpus"),
    HAS_NUMBER("waiting_gpus"), OPT_INTEGER("actors_outside"),
    HAS_BOOLEAN("is_partial"),  HAS_LIST("nodes", placement_nodes_table),
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
                                            OPT_AS("advice_code", TEXT_OR_NULL),
                                            HAS_AS("patch", LIST(REF("SpecChange"))),
                                            HAS_INTEGER("bytes"),
                                            HAS_INTEGER("lines"),
                                            OPT_INTEGER("skipped_bytes"),
                                            OPT_TEXT("job")};
SHAPE(finding)

static const struct field spec_edit_rows[] = {HAS_TEXT("key"), MAY_TEXT("old"), MAY_TEXT("new")};
SHAPE(spec_edit)

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
    {.name = "Reason", .table = &said_table},
    {.name = "Eta", .table = &view_eta_table},
    {.name = "NodeGpus", .table = &view_node_gpus_table},
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
    {.name = "FindingBrief", .table = &view_brief_table},
    {.name = "Checkpoint", .table = &ckpt_table},
    {.name = "JobItem", .table = &view_item_table},
    {.name = "Attempt", .table = &view_attempt_table},
    {.name = "Proof", .table = &view_proof_table},
    {.name = "Goodput", .table = &view_goodput_table},
    {.name = "JobArchive", .table = &archives_table, .which = FIELD_SHOWN},
    {.name = "Job", .table = &view_job_table},
    {.name = "SpecEdit", .table = &spec_edit_table},
    {.name = "Plan", .table = &plan_table},
    {.name = "Advice", .table = &advise_table},
    {.name = "Hint", .table = &why_hint_table},
};

const struct api_part part_routes_shapes = {NULL, 0, schemas, array_len(schemas)};
