// SPDX-License-Identifier: Apache-2.0
// columns.tsx - what a list of jobs can show of a job.
import type { JobItem } from "../../made/api";
import { figure, gpuHours, ms, NOTHING, now, shape, span, wholeSeconds } from "../../base/say";
import type { Column } from "../../kit/list";
import { Dash, Flag, Meter, State, Text, Time } from "../../kit/parts";
import { t } from "../../words/shared";

export const OVER = ["SUCCEEDED", "FAILED", "STOPPED", "TIMEOUT"];
/** Those whose checkpoints a later job can go on from. */
export const TRAINS = ["ppo", "grpo", "sft"];
export const isOver = (j: { state: string }) => OVER.includes(j.state);
/** "-" in a name's place would sort as a name. */
export const jobName = (j: { name: string | null; id: string }) => j.name ?? j.id;

export function ranFor(j: Pick<JobItem, "started_at" | "ended_at">): number | null {
    if (!j.started_at) return null;
    return (j.ended_at ? ms(j.ended_at) : now.value) - ms(j.started_at);
}

export const Flags = ({ of }: { of: JobItem }) => (
    <>
        {of.flags.map((f) => (
            <Flag of={f} more={f === "RESTARTING" ? String(of.restarts) : undefined} />
        ))}
    </>
);

export const STATE_ORDER = ["RUNNING", "STARTING", "STOPPING", "QUEUED", "FAILED", "TIMEOUT", "STOPPED", "SUCCEEDED"];

export const jobColumns = (): Column<JobItem>[] => [
    {
        key: "state",
        title: t("state"),
        width: 112,
        rank: 0,
        draw: (j) => <State of={j.state} />,
        sort: (j) => STATE_ORDER.indexOf(j.state),
        csv: (j) => j.state,
    },
    {
        key: "name",
        title: t("job"),
        width: 0,
        rank: 0,
        draw: (j) => (
            <span class="row">
                <a class="name cut" href={`/jobs/${encodeURIComponent(j.id)}`} tabIndex={-1}>
                    <Text of={jobName(j)} />
                </a>
                <Flags of={j} />
            </span>
        ),
        sort: (j) => jobName(j).toLowerCase(),
        csv: (j) => j.name,
    },
    {
        key: "id",
        title: t("id"),
        width: 190,
        rank: 12,
        draw: (j) => <Text of={j.id} mono />,
        sort: (j) => j.id,
        csv: (j) => j.id,
    },
    {
        key: "user",
        title: t("user"),
        width: 92,
        rank: 4,
        draw: (j) => <Text of={j.user} />,
        sort: (j) => j.user,
        csv: (j) => j.user,
    },
    {
        key: "project",
        title: t("project"),
        width: 100,
        rank: 9,
        draw: (j) => <Text of={j.project} />,
        sort: (j) => j.project,
        csv: (j) => j.project,
    },
    {
        key: "workload",
        title: t("workload"),
        width: 84,
        rank: 7,
        draw: (j) => <Text of={j.workload} />,
        sort: (j) => j.workload,
        csv: (j) => j.workload,
    },
    {
        key: "gpus",
        title: t("gpus"),
        width: 68,
        rank: 1,
        num: true,
        draw: shape,
        sort: (j) => j.gpus,
        csv: (j) => j.gpus,
    },
    {
        key: "pool",
        title: t("pool"),
        width: 84,
        rank: 5,
        draw: (j) => <Text of={j.pool} />,
        sort: (j) => j.pool,
        csv: (j) => j.pool,
    },
    {
        key: "step",
        title: t("step"),
        width: 96,
        rank: 3,
        num: true,
        draw: (j) =>
            j.step === null ? (
                <Dash />
            ) : j.total_steps ? (
                <span class="util" title={`${j.step} / ${j.total_steps}`}>
                    <Meter part={j.step / j.total_steps} />
                    {j.step.toLocaleString("en-US")}
                </span>
            ) : (
                j.step.toLocaleString("en-US")
            ),
        sort: (j) => j.step,
        csv: (j) => j.step,
    },
    {
        key: "reward",
        title: t("reward"),
        width: 76,
        rank: 8,
        num: true,
        draw: (j) => figure(j.reward),
        sort: (j) => j.reward,
        csv: (j) => j.reward,
    },
    {
        key: "ends",
        title: t("ends"),
        width: 104,
        rank: 8,
        draw: (j) => <Time at={j.ends?.p50} />,
        sort: (j) => (j.ends ? ms(j.ends.p50) : null),
        csv: (j) => j.ends?.p50,
    },
    {
        key: "gpu_util",
        title: t("util"),
        width: 104,
        rank: 6,
        draw: (j) =>
            j.gpu_util === null ? (
                <Dash />
            ) : (
                <span class="util">
                    <Meter part={j.gpu_util / 100} tone={j.gpu_util < 10 ? "slow" : undefined} />
                    {Math.round(j.gpu_util)}%
                </span>
            ),
        sort: (j) => j.gpu_util,
        csv: (j) => j.gpu_util,
    },
    {
        key: "gpu_hours",
        title: t("gpu_hours"),
        width: 84,
        rank: 8,
        num: true,
        draw: (j) => (j.gpu_hours > 0 ? gpuHours(j.gpu_hours) : <Dash />),
        sort: (j) => j.gpu_hours,
        csv: (j) => j.gpu_hours,
    },
    {
        key: "priority",
        title: t("priority"),
        width: 76,
        rank: 11,
        num: true,
        draw: (j) => j.priority,
        sort: (j) => j.priority,
        csv: (j) => j.priority,
    },
    {
        key: "eta",
        title: t("eta"),
        width: 104,
        rank: 8,
        draw: (j) => (j.state === "QUEUED" ? <Time at={j.eta?.p50} /> : <Dash />),
        sort: (j) => (j.eta ? ms(j.eta.p50) : null),
        csv: (j) => j.eta?.p50,
    },
    {
        key: "restarts",
        title: t("restarts"),
        width: 84,
        rank: 13,
        num: true,
        draw: (j) => j.restarts || <Dash />,
        sort: (j) => j.restarts,
        csv: (j) => j.restarts,
    },
    {
        key: "nodes",
        title: t("nodes"),
        width: 150,
        rank: 14,
        draw: (j) => (j.nodes.length ? <Text of={j.nodes.map((n) => n.name).join(", ")} /> : <Dash />),
        csv: (j) => j.nodes.map((n) => n.name).join(" "),
    },
    {
        key: "queued_at",
        title: t("queued_at"),
        width: 96,
        rank: 10,
        draw: (j) => <Time at={j.queued_at} />,
        sort: (j) => ms(j.queued_at),
        csv: (j) => j.queued_at,
    },
    {
        key: "started_at",
        title: t("started_at"),
        width: 96,
        rank: 15,
        draw: (j) => <Time at={j.started_at} />,
        sort: (j) => (j.started_at ? ms(j.started_at) : null),
        csv: (j) => j.started_at,
    },
    {
        key: "ended_at",
        title: t("ended_at"),
        width: 96,
        rank: 16,
        draw: (j) => <Time at={j.ended_at} />,
        sort: (j) => (j.ended_at ? ms(j.ended_at) : null),
        csv: (j) => j.ended_at,
    },
    {
        key: "ran",
        title: t("ran"),
        width: 84,
        rank: 2,
        num: true,
        draw: (j) => {
            const ran = ranFor(j);
            return ran === null ? NOTHING : span(ran);
        },
        sort: ranFor,
        csv: (j) => wholeSeconds(ranFor(j)),
    },
];
