// SPDX-License-Identifier: Apache-2.0
// failures.tsx - what failures cost: how much of the jobs' time was training, how long a failure takes to repair, and
// which classes and nodes cost most. A node leads to its page; a class, and the figures of both, to the jobs that failed
// by it in that time.
import type { ComponentChildren } from "preact";
import type { RecoveryCost } from "../../made/api";
import { useAsk } from "../../api/use";
import { num, span } from "../../base/say";
import { withQuery } from "../../base/url";
import { words } from "../../base/words";
import { Blank, Pending } from "../../kit/blank";
import { Dash, Panel, Text } from "../../kit/parts";
import { short } from "../../kit/stack";
import { Table, TableCsv, type Col } from "../../kit/table";
import { t } from "../../words/shared";
import { behindClass, behindNode } from "./lead";
import type { Period } from "./period";

const w = words({
    title: ["What failures cost", "故障代价"],
    ettr: [
        "{0}% of the time was training (ETTR); a failure takes {1} to repair",
        "{0}% 的时间在训练（ETTR）；修复一次故障需 {1}",
    ],
    ettr_alone: ["{0}% of the time was training (ETTR)", "{0}% 的时间在训练（ETTR）"],
    by_class: ["By class", "按类别"],
    by_node: ["By node", "按节点"],
    failures: ["Failures", "失败次数"],
    cost: ["GPU-hours", "GPU 时"],
    detect: ["Noticed", "发现"],
    diagnose: ["Judged", "诊断"],
    queue: ["Queued", "排队"],
    start: ["To start", "启动"],
    redo: ["Redone", "重做"],
    repair: ["To repair", "修复"],
    none: ["No job failed in that time", "该时段内没有作业失败"],
});

const PARTS = ["detect", "diagnose", "queue", "start", "redo"] as const;

function cols(of: "class" | "node", period: Period): Col<RecoveryCost>[] {
    const behindRow = of === "class" ? behindClass : behindNode;
    const jobs = (c: RecoveryCost) => withQuery("/jobs", behindRow(c.name, period));
    const behind = (c: RecoveryCost, says: ComponentChildren) => <a href={jobs(c)}>{says}</a>;
    return [
        {
            key: of,
            title: of === "class" ? w("by_class") : w("by_node"),
            draw: (c) => (
                <a class="name cut" href={of === "node" ? withQuery("/nodes", { node: c.name }) : jobs(c)}>
                    <Text of={c.name ?? "–"} />
                </a>
            ),
            csv: (c) => c.name,
        },
        {
            key: "failures",
            title: w("failures"),
            num: true,
            width: 76,
            draw: (c) => behind(c, num(c.failures)),
            csv: (c) => c.failures,
        },
        ...PARTS.map((p): Col<RecoveryCost> => ({
            key: `${p}_hours`,
            title: w(p),
            num: true,
            wide: true,
            width: 76,
            draw: (c) => behind(c, short(c[`${p}_hours`])),
            csv: (c) => c[`${p}_hours`],
        })),
        {
            key: "mttr_s",
            title: w("repair"),
            num: true,
            wide: true,
            width: 92,
            draw: (c) => (c.mttr_s === null ? <Dash /> : behind(c, span(c.mttr_s * 1000))),
            csv: (c) => c.mttr_s,
        },
        {
            key: "cost_hours",
            title: w("cost"),
            num: true,
            width: 92,
            draw: (c) => behind(c, <b>{short(c.cost_hours)}</b>),
            csv: (c) => c.cost_hours,
        },
    ];
}

export function Failures({ period }: { period: Period }) {
    const asked = useAsk(
        "GET /v1/usage/recovery",
        { query: { from: period.from, to: period.to } },
        { topics: ["jobs"], every: 60_000 },
    );
    const of = asked.data;
    const mttr = of?.total.mttr_s ?? null;
    const ettr = of?.ettr ?? null;
    const failed = (rows: RecoveryCost[]) => rows.filter((c) => c.failures > 0);
    return (
        <Panel
            bare
            title={w("title")}
            count={
                ettr === null
                    ? undefined
                    : mttr === null
                      ? w("ettr_alone", num(ettr * 100))
                      : w("ettr", num(ettr * 100), span(mttr * 1000))
            }
            end={!!of?.classes.length && <TableCsv rows={failed(of.classes)} cols={cols("class", period)} />}
        >
            {asked.why || !of ? (
                <Pending of={asked} lines={3} />
            ) : !failed(of.classes).length ? (
                <Blank title={w("none")} />
            ) : (
                <>
                    <Table
                        label={`${w("title")}: ${w("by_class")}`}
                        rows={failed(of.classes)}
                        cols={cols("class", period)}
                        keyOf={(c) => c.name ?? ""}
                    />
                    {failed(of.nodes).length > 0 && (
                        <Table
                            label={`${w("title")}: ${w("by_node")}`}
                            rows={failed(of.nodes)}
                            cols={cols("node", period)}
                            keyOf={(c) => c.name ?? ""}
                        />
                    )}
                    <p class="note-row small dim">{t("whole_life")}</p>
                </>
            )}
        </Panel>
    );
}
