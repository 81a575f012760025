// SPDX-License-Identifier: Apache-2.0
// waste.tsx - which jobs wasted GPU time: whose they are, what would have spared it, what that gains, and a button that
// does it: a new job with the key changed, the change of one that waits, or where the time goes in its steps.
import type { JobWaste, Routes } from "../../made/api";
import { call, Refusal, session } from "../../api/client";
import type { Asked } from "../../api/use";
import { packed } from "../../base/anchor";
import { textOfJob } from "../../base/spectext";
import { go, withQuery } from "../../base/url";
import { words } from "../../base/words";
import { Blank, Pending } from "../../kit/blank";
import { Dash, Panel, State, Text, toast } from "../../kit/parts";
import { short } from "../../kit/stack";
import { Table, TableCsv, type Col } from "../../kit/table";
import { t } from "../../words/shared";
import { advised, adviceOf, canTake } from "./advice";

const w = words({
    waste: ["Waste, and what would have spared it", "浪费与建议"],
    waste_n: ["{0} {0|job|jobs} looked at", "已检查 {0} 个作业"],
    waste_part: ["older ones were left out", "未含更早的作业"],
    no_waste: ["No job wasted GPU time", "没有作业浪费 GPU"],
    no_waste_text: ["None held GPUs idle, and no steps were run again.", "没有闲置占用，也没有重做的步数。"],
    held: ["Held", "占用"],
    idle: ["Idle", "闲置"],
    redone: ["Redone", "重做"],
    total: ["Waste", "浪费"],
    gain: ["Gain", "可省"],
    advice: ["Advice", "建议"],
    change: ["Change it", "更改"],
    submit: ["Submit so", "按此提交"],
    steps: ["Show its steps", "查看各步"],
});

const h = (v: number | null) => (v === null ? <Dash /> : short(v));
const hoursCol = (key: "gpu_hours" | "idle_hours" | "redone_hours", title: string): Col<JobWaste> => ({
    key,
    title,
    num: true,
    wide: true,
    width: 76,
    draw: (j) => h(j[key]),
    csv: (j) => j[key],
});

/** A new job of this one's spec, with the advice taken; it is looked at before it is submitted. */
async function takeAdvice(j: JobWaste) {
    try {
        const job = await call("GET /v1/jobs/{id}", { path: { id: j.id } });
        const text = advised(textOfJob(job.spec), j, job);
        go(`${withQuery("/submit", { from: j.id })}#spec=${packed(text)}`);
    } catch (e) {
        if (!(e instanceof Refusal)) throw e;
        toast(e.message);
    }
}

function Act({ of: j }: { of: JobWaste }) {
    const at = `/jobs/${encodeURIComponent(j.id)}`;
    if (j.advice === "faster_data")
        return (
            <a class="btn small" href={`${at}#steps`}>
                {w("steps")}
            </a>
        );
    if (!canTake(j) || session.value?.role === "viewer") return null;
    if (j.state === "QUEUED")
        return (
            <a class="btn small act" href={withQuery("/queue", { why: j.id })}>
                {w("change")}
            </a>
        );
    return (
        <button type="button" class="btn small act" onClick={() => void takeAdvice(j)}>
            {w("submit")}
        </button>
    );
}

const wasteCols = (): Col<JobWaste>[] => [
    {
        key: "job",
        title: t("job"),
        draw: (j) => (
            <span class="row">
                <State of={j.state} wordless />
                <a class="name cut" href={`/jobs/${encodeURIComponent(j.id)}`}>
                    <Text of={j.name || j.id} />
                </a>
            </span>
        ),
        csv: (j) => j.id,
    },
    { key: "user", title: t("user"), width: 96, draw: (j) => <Text of={j.user} />, csv: (j) => j.user },
    hoursCol("gpu_hours", w("held")),
    hoursCol("idle_hours", w("idle")),
    hoursCol("redone_hours", w("redone")),
    {
        key: "waste_hours",
        title: w("total"),
        num: true,
        width: 76,
        draw: (j) => <b>{short(j.waste_hours)}</b>,
        csv: (j) => j.waste_hours,
    },
    {
        key: "gain_hours",
        title: w("gain"),
        num: true,
        wide: true,
        width: 76,
        draw: (j) => (j.gain_hours ? short(j.gain_hours) : <Dash />),
        csv: (j) => j.gain_hours,
    },
    {
        key: "advice",
        title: w("advice"),
        draw: (j) =>
            j.advice === "none" ? (
                <Dash />
            ) : (
                <span class="row wrap">
                    <span>{adviceOf(j)}</span>
                    <Act of={j} />
                </span>
            ),
        csv: adviceOf,
    },
];

export function Waste({ asked }: { asked: Asked<Routes["GET /v1/usage/jobs"]["reply"]> }) {
    const rows = asked.data?.jobs.filter((j) => j.waste_hours > 0 || j.advice !== "none");
    return (
        <Panel
            bare
            title={w("waste")}
            count={
                asked.data &&
                [w("waste_n", asked.data.looked_at), !asked.data.complete && w("waste_part")].filter(Boolean).join(", ")
            }
            end={!!rows?.length && <TableCsv rows={rows} cols={wasteCols()} />}
        >
            {asked.why || !rows ? (
                <Pending of={asked} lines={4} />
            ) : rows.length ? (
                <>
                    <Table label={w("waste")} rows={rows} cols={wasteCols()} keyOf={(j) => j.id} />
                    <p class="note-row small dim">{t("whole_life")}</p>
                </>
            ) : (
                <Blank title={w("no_waste")}>{w("no_waste_text")}</Blank>
            )}
        </Panel>
    );
}
