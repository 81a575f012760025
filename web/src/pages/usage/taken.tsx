// SPDX-License-Identifier: Apache-2.0
// taken.tsx - advice that a later job took: what it foresaw beside what was got, and how far the two lie apart in the
// median. Where no job took any, nothing is claimed.
import type { AdviceTaken, JobWasteList } from "../../made/api";
import { figure } from "../../base/say";
import { words } from "../../base/words";
import { Panel, Text } from "../../kit/parts";
import { Table, TableCsv, type Col } from "../../kit/table";
import { t } from "../../words/shared";
import { medianOf, tookOf } from "./advice";

const w = words({
    taken: ["Advice taken, and what it brought", "已采纳的建议与效果"],
    pairs: ["{0} taken, median error {1}", "已采纳 {0} 条，误差中位数 {1}"],
    advised: ["Advised job", "受建议作业"],
    next: ["Next job", "后续作业"],
    foreseen: ["Foreseen", "预计可省"],
    got: ["Got", "实际节省"],
    advice: ["Advice", "建议"],
    how: [
        "GPU-hours of the advised job. Got: what it would have been spared at the next job's price of a step, or of a failure.",
        "单位：受建议作业的 GPU 时。实际节省：按后续作业每步或每次故障的代价折算。",
    ],
});

const link = (id: string, text: string) => (
    <a class="name cut" href={`/jobs/${encodeURIComponent(id)}`}>
        <Text of={text} />
    </a>
);

const takenCols = (): Col<AdviceTaken>[] => [
    { key: "next", title: w("next"), draw: (p) => link(p.next, p.name || p.next), csv: (p) => p.next },
    { key: "id", title: w("advised"), wide: true, draw: (p) => link(p.id, p.id), csv: (p) => p.id },
    { key: "user", title: t("user"), wide: true, width: 96, draw: (p) => <Text of={p.user} />, csv: (p) => p.user },
    { key: "advice", title: w("advice"), wide: true, draw: tookOf, csv: tookOf },
    {
        key: "foreseen_hours",
        title: w("foreseen"),
        num: true,
        width: 96,
        draw: (p) => figure(p.foreseen_hours),
        csv: (p) => p.foreseen_hours,
    },
    {
        key: "got_hours",
        title: w("got"),
        num: true,
        width: 96,
        draw: (p) => <b>{figure(p.got_hours)}</b>,
        csv: (p) => p.got_hours,
    },
];

/** Nothing where no job took an advice. */
export function Taken({ of }: { of: JobWasteList | undefined }) {
    if (!of?.taken.length) return null;
    return (
        <Panel
            bare
            title={w("taken")}
            count={w("pairs", of.taken_count, medianOf(of))}
            end={<TableCsv rows={of.taken} cols={takenCols()} />}
        >
            <Table label={w("taken")} rows={of.taken} cols={takenCols()} keyOf={(p) => p.id} />
            <p class="note-row small dim">{w("how")}</p>
        </Panel>
    );
}
