/* SPDX-License-Identifier: Apache-2.0 */
/* routes_shapes.c - the schemas that replies of several nouns share: a reason, a checkpoint, what a
 * trial saw, how a training goes. */
#include "argusd/kit/part.h"

#include "argusd/archive/archives.h"
#include "argusd/content/code.h"
#include "argusd/content/registry_inputs.h"
#include "argusd/evidence/diagnosis.h"
#include "argusd/evidence/placement_page.h"
#include "argusd/kit/saying.h"
#include "argusd/kit/view.h"
#include "argusd/submit/plan.h"
#include "argusd/trackers/trackers.h"
#include "core/account/recovery_job.h"
#include "core/check/trial.h"
#include "core/metric/ckpt.h"
#include "core/metric/metric_watch.h"
#include "core/past/advise.h"
#include "core/spec/respec.h"
#include "core/spec/spec.h"
#include "fsroot/attempt/proof.h"

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
    {.name = "SnapshotUse", .table = &code_use_table},
    {.name = "InputUse", .table = &registry_input_table},
    {.name = "Placement", .table = &placement_table},
    {.name = "Imports", .table = &proof_summary_table},
    {.name = "TrialResult", .table = &trial_result_table},
    {.name = "Curve", .table = &metric_curve_table},
    {.name = "Training", .table = &metric_training_table},
    {.name = "Quote", .table = &finding_quote_table},
    {.name = "SpecChange", .table = &finding_change_table},
    {.name = "FindingSecond", .table = &finding_second_table},
    {.name = "Finding", .table = &diagnosis_table},
    {.name = "FindingBrief", .table = &view_brief_table},
    {.name = "CheckpointUser", .table = &ckpt_user_table},
    {.name = "Checkpoint", .table = &ckpt_table},
    {.name = "JobItem", .table = &view_item_table},
    {.name = "Attempt", .table = &view_attempt_table},
    {.name = "Proof", .table = &view_proof_table},
    {.name = "Goodput", .table = &view_goodput_table},
    {.name = "Recovery", .table = &recovery_page_table},
    {.name = "TrackerRun", .table = &tracker_run_table, .which = FIELD_SHOWN},
    {.name = "JobArchive", .table = &archives_table, .which = FIELD_SHOWN},
    {.name = "Job", .table = &view_job_table},
    {.name = "SpecEdit", .table = &respec_edit_table},
    {.name = "Plan", .table = &plan_table},
    {.name = "Advice", .table = &advise_table},
};

const struct api_part part_routes_shapes = {NULL, 0, schemas, array_len(schemas)};
