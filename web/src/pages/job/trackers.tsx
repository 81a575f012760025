// SPDX-License-Identifier: Apache-2.0
// trackers.tsx - the runs of a job's attempts in W&B, MLflow and others: how each was used, what it has, why it lacks
// something.
import type { Job, TrackerRun } from "../../made/api";
import { visible } from "../../base/say";
import { words } from "../../base/words";
import { Dash, Panel, Text } from "../../kit/parts";
import { Table, type Col } from "../../kit/table";
import { t } from "../../words/shared";
import { isWeb } from "./opinions";
import { w } from "./words";

const g = words({
    tracker: ["Tracker", "跟踪器"],
    mode: ["How it is used", "使用方式"],
    run: ["Run", "运行"],
    problem: ["Why it is not whole", "不完整的原因"],
    m_none: ["not at all", "未使用"],
    m_offline: ["to files first", "先写文件"],
    m_online: ["online", "在线"],
    s_running: ["running", "运行中"],
    s_owed: ["the rest is to be sent", "待补传"],
    s_syncing: ["a job sends it", "作业补传中"],
    s_complete: ["complete", "完整"],
    s_kept: ["in files of the job alone", "仅在作业文件中"],
    s_given_up: ["given up", "已放弃"],
});

const TONES = { running: "run", owed: "slow", syncing: "run", complete: "ok", kept: "quiet", given_up: "bad" } as const;

/** The link is made of what a spec says: only a web address becomes one, a directory is read. */
function RunOf({ of: r }: { of: TrackerRun }) {
    const says = visible(r.name || r.run || r.link || "");
    if (!r.link) return says ? <Text of={says} /> : <Dash />;
    return isWeb(r.link) ? (
        <a class="link" href={r.link} target="_blank" rel="noopener noreferrer nofollow" title={visible(r.link)}>
            {says}
        </a>
    ) : (
        <span class="mono said-block">{visible(r.link)}</span>
    );
}

const columns = (): Col<TrackerRun>[] => [
    { key: "tracker", title: g("tracker"), width: 110, draw: (r) => <span class="mono">{visible(r.tracker)}</span> },
    { key: "attempt", title: t("attempt"), width: 90, num: true, draw: (r) => r.attempt },
    { key: "mode", title: g("mode"), width: 130, draw: (r) => g(`m_${r.mode}`) },
    {
        key: "state",
        title: t("state"),
        width: 160,
        draw: (r) => <span class={`c-${TONES[r.state]}`}>{g(`s_${r.state}`)}</span>,
    },
    { key: "run", title: g("run"), draw: (r) => <RunOf of={r} /> },
    {
        key: "problem",
        title: g("problem"),
        draw: (r) => (r.problem ? <span class="said-block">{visible(r.problem)}</span> : <Dash />),
    },
];

export function Trackers({ job }: { job: Job }) {
    if (!job.trackers?.length) return null;
    return (
        <Panel id="trackers" title={w("s_trackers")} bare>
            <Table
                label={w("s_trackers")}
                rows={job.trackers}
                cols={columns()}
                keyOf={(r) => `${r.tracker} ${r.attempt}`}
            />
        </Panel>
    );
}
