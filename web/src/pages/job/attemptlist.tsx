// SPDX-License-Identifier: Apache-2.0
// attemptlist.tsx - the attempts of a job, one a row: when each began to wait, how long it waited and ran, on which
// nodes, and why it ended. A row leads to the log and the finding of its attempt.
import type { Attempt, Job } from "../../made/api";
import { now, span, visible, wholeSeconds } from "../../base/say";
import { setQuery } from "../../base/url";
import { words } from "../../base/words";
import { Dash, Panel, Time } from "../../kit/parts";
import { Table, TableCsv, type Col } from "../../kit/table";
import { t } from "../../words/shared";
import { placesOf, ranOf, waitedOf, whyEnded } from "./attempts";
import { w } from "./words";

const g = words({
    nodes: ["Nodes (GPUs)", "节点（GPU）"],
    ended_by: ["Why it ended", "结束原因"],
    s_PLANNED: ["planned", "已计划"],
    s_ACCEPTED: ["Ray has it", "Ray 已收到"],
    s_RUNNING: ["running", "运行中"],
    s_ENDED: ["over", "已结束"],
    s_ABANDONED: ["given up before it ran", "未运行即放弃"],
});

const Lasted = ({ of }: { of: number | null }) => (of === null ? <Dash /> : <>{span(of)}</>);

function Why({ of: a }: { of: Attempt }) {
    const why = whyEnded(a);
    if (!why.class && !why.says) return <Dash />;
    return (
        <span class="reads" title={visible(why.says)}>
            {why.class && <code class="c-bad">{visible(why.class)}</code>} {visible(why.says)}
        </span>
    );
}

const columns = (at: number): Col<Attempt>[] => [
    {
        key: "attempt",
        title: t("attempt"),
        width: 110,
        draw: (a) => (
            <button type="button" class="link" onClick={() => setQuery({ attempt: String(a.k), line: null })}>
                {w("attempt_n", a.k)}
            </button>
        ),
        csv: (a) => a.k,
    },
    {
        key: "state",
        title: t("state"),
        width: 120,
        wide: true,
        draw: (a) => g(`s_${a.state}`),
        csv: (a) => a.state,
    },
    {
        key: "queued_at",
        title: t("queued_at"),
        width: 110,
        wide: true,
        draw: (a) => <Time at={a.queued_at} />,
        csv: (a) => a.queued_at,
    },
    {
        key: "waited_s",
        title: t("waited"),
        width: 90,
        num: true,
        draw: (a) => <Lasted of={waitedOf(a, at)} />,
        csv: (a) => wholeSeconds(waitedOf(a, at)),
    },
    {
        key: "ran_s",
        title: t("ran"),
        width: 90,
        num: true,
        draw: (a) => <Lasted of={ranOf(a, at)} />,
        csv: (a) => wholeSeconds(ranOf(a, at)),
    },
    {
        key: "nodes",
        title: g("nodes"),
        draw: (a) =>
            a.nodes.length ? (
                <span class="mono reads" title={visible(placesOf(a.nodes))}>
                    {visible(placesOf(a.nodes))}
                </span>
            ) : (
                <Dash />
            ),
        csv: (a) => placesOf(a.nodes),
    },
    {
        key: "why",
        title: g("ended_by"),
        draw: (a) => <Why of={a} />,
        csv: (a) => [whyEnded(a).class, whyEnded(a).says].filter(Boolean).join(": "),
    },
];

/** shown: the attempt whose log and finding the page shows. */
export function AttemptList({ job, shown }: { job: Job; shown: number }) {
    if (!job.attempts.length) return null;
    const cols = columns(now.value);
    return (
        <Panel
            bare
            id="attempts"
            title={w("s_attempts")}
            count={job.attempts.length}
            end={<TableCsv rows={job.attempts} cols={cols} />}
        >
            <Table
                label={w("s_attempts")}
                rows={job.attempts}
                cols={cols}
                keyOf={(a) => String(a.k)}
                current={job.attempts.length > 1 ? String(shown) : null}
            />
        </Panel>
    );
}
