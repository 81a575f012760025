// SPDX-License-Identifier: Apache-2.0
// recoverypanel.tsx - how much of a job's time was training (ETTR), how long its failures took to repair (MTTR), and where
// the rest went.
import type { Job } from "../../made/api";
import { gpuHours, num, span } from "../../base/say";
import { words } from "../../base/words";
import { Panel } from "../../kit/parts";
import { Table, TableCsv, type Col } from "../../kit/table";
import { t } from "../../words/shared";
import { hasTimes, timeRows, type TimeRow } from "./recovery";
import { w } from "./words";

const r = words({
    ettr: ["{0}% was training (ETTR)", "{0}% 在训练（ETTR）"],
    mttr: ["a failure took {0} to repair (MTTR)", "修复一次故障需 {0}（MTTR）"],
    failures: ["{0} {0|failure|failures}", "{0} 次故障"],
    part: ["Part", "部分"],
    time: ["Time", "时间"],
    share: ["Of the time", "占比"],
    productive: ["Training", "训练"],
    redo: ["Running steps again", "重做的步"],
    detect: ["Failure unnoticed", "发现故障"],
    diagnose: ["Failure judged", "诊断故障"],
    queue: ["Waiting for GPUs", "重新排队"],
    start: ["Starting again", "重新启动"],
    other: ["Other", "其他"],
    how: [
        "Of all attempts and the time between them; GPU-hours of waiting are those that it waited for.",
        "包括所有尝试及其间隔；排队的 GPU 时按所等的 GPU 计。",
    ],
});

const timeCols = (): Col<TimeRow>[] => [
    { key: "part", title: r("part"), draw: (x) => r(x.part), csv: (x) => x.part },
    { key: "seconds", title: r("time"), num: true, draw: (x) => span(x.seconds * 1000), csv: (x) => x.seconds },
    {
        key: "gpu_hours",
        title: t("gpu_hours"),
        num: true,
        wide: true,
        draw: (x) => gpuHours(x.gpuHours),
        csv: (x) => x.gpuHours,
    },
    { key: "share", title: r("share"), num: true, draw: (x) => `${num(x.share * 100)}%`, csv: (x) => x.share },
];

export function RecoveryPanel({ job }: { job: Job }) {
    const of = job.recovery;
    if (!hasTimes(of)) return null;
    const rows = timeRows(of, job.gpus);
    const said = [
        of.ettr !== null && r("ettr", num(of.ettr * 100)),
        of.failures > 0 && r("failures", of.failures),
        of.mttr_s !== null && r("mttr", span(of.mttr_s * 1000)),
    ];
    return (
        <Panel
            bare
            id="recovery"
            title={w("s_recovery")}
            count={said.filter(Boolean).join(" · ")}
            end={<TableCsv rows={rows} cols={timeCols()} />}
        >
            <Table label={w("s_recovery")} rows={rows} cols={timeCols()} keyOf={(x) => x.part} />
            <p class="note-row small dim">{r("how")}</p>
        </Panel>
    );
}
