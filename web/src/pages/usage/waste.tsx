// SPDX-License-Identifier: Apache-2.0
// waste.tsx - which jobs wasted GPU time: whose they are, what would have spared it, what that gains, and a button that
// does it.
import type { JobWaste, Routes } from "../../made/api";
import type { Asked } from "../../api/use";
import { words } from "../../base/words";
import { Blank, Pending } from "../../kit/blank";
import { Dash, Panel, State, Text } from "../../kit/parts";
import { short } from "../../kit/stack";
import { Table, TableCsv, type Col } from "../../kit/table";
import { t } from "../../words/shared";
import { Act } from "./act";
import { adviceOf, isLittle } from "./advice";

const w = words({
    waste: ["Waste, and what would have spared it", "浪费与建议"],
    waste_n: ["{0} {0|job|jobs} looked at", "已检查 {0} 个作业"],
    waste_part: ["older ones were left out", "未含更早的作业"],
    no_waste: ["No job wasted GPU time", "没有作业浪费 GPU"],
    no_waste_text: [
        "None held GPUs idle, and no steps were run again or lost to a failure.",
        "没有闲置占用，也没有重做或因故障丢失的步数。",
    ],
    held: ["Held", "占用"],
    idle: ["Idle", "闲置"],
    redone: ["Redone", "重做"],
    failed: ["Lost to failures", "故障损失"],
    between: ["Waiting for data", "等待数据"],
    total: ["Waste", "浪费"],
    gain: ["Gain", "可省"],
    advice: ["Advice", "建议"],
});

const h = (v: number | null) => (v === null ? <Dash /> : short(v));
type RareHours = "failed_hours" | "between_hours";
type Hours = "gpu_hours" | "idle_hours" | "redone_hours" | RareHours;
const hoursCol = (key: Hours, title: string): Col<JobWaste> => ({
    key,
    title,
    num: true,
    wide: true,
    width: 76,
    draw: (j) => h(j[key]),
    csv: (j) => j[key],
});
/** A column for what few jobs have. */
const rareCol = (key: RareHours, title: string): Col<JobWaste> => ({
    ...hoursCol(key, title),
    wide: "very",
    width: 112,
    draw: (j) => (isLittle(j[key]) ? <Dash /> : short(j[key])),
});

const has = (rows: JobWaste[] | undefined, key: RareHours) => !rows || rows.some((j) => !isLittle(j[key]));

/** Beside these rows; none: each column, as CSV has them. */
const wasteCols = (rows?: JobWaste[]): Col<JobWaste>[] => [
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
    ...(has(rows, "failed_hours") ? [rareCol("failed_hours", w("failed"))] : []),
    ...(has(rows, "between_hours") ? [rareCol("between_hours", w("between"))] : []),
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
                    <Table label={w("waste")} rows={rows} cols={wasteCols(rows)} keyOf={(j) => j.id} />
                    <p class="note-row small dim">{t("whole_life")}</p>
                </>
            ) : (
                <Blank title={w("no_waste")}>{w("no_waste_text")}</Blank>
            )}
        </Panel>
    );
}
