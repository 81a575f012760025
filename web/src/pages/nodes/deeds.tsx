// SPDX-License-Identifier: Apache-2.0
// deeds.tsx - what an admin does to machines: add, check, drain, remove, adopt; each with its plan and command line.
import { signal } from "@preact/signals";
import type { DrainPlan, Foreign, JobItem, Node } from "../../made/api";
import { call } from "../../api/client";
import { useAsk } from "../../api/use";
import { num, shape, visible } from "../../base/say";
import { go, setQuery } from "../../base/url";
import { Loading } from "../../kit/blank";
import { Choose, Field, Tick } from "../../kit/form";
import { ask } from "../../kit/over";
import { shell, State, Text, Time } from "../../kit/parts";
import { t } from "../../words/shared";
import { jobName } from "../jobs/columns";
import { w } from "./words";

export function addNode() {
    const name = signal("");
    const host = signal("");
    const user = signal("");
    const port = signal("");
    const pool = signal("");
    const gpus = signal("");
    const type = signal("");
    const options = () =>
        [
            ["--host", host],
            ["--user", user],
            ["--port", port],
            ["--pool", pool],
            ["--gpus", gpus],
            ["--gpu-type", type],
        ] as const;
    ask({
        title: w("a_title"),
        act: w("a_go"),
        missing: () => (name.value.trim() && host.value.trim() ? "" : w("a_must")),
        cli: () =>
            [
                `argus node add ${shell(name.value.trim() || "NAME")}`,
                ...options().flatMap(([o, v]) => (v.value.trim() ? [`${o} ${shell(v.value.trim())}`] : [])),
                "--wait",
            ].join(" "),
        body: (
            <>
                <p>{w("a_text")}</p>
                <div class="form in-dialog">
                    <fieldset>
                        <Field label={t("name")} code="name" of={name} first />
                        <Field label={w("a_host")} code="host" of={host} placeholder="10.0.0.12" />
                        <Field label={w("a_user")} code="user" of={user} />
                        <Field label={w("a_port")} code="port" of={port} kind="number" least={1} />
                        <Field label={w("a_pool")} code="labels" of={pool} placeholder="h20" />
                        <Field label={w("a_type")} code="gpu_type" of={type} />
                        <Field label={w("a_gpus")} code="gpu_count" of={gpus} kind="number" least={0} />
                    </fieldset>
                </div>
            </>
        ),
        does: async () => {
            const at = name.value.trim();
            await call("POST /v1/nodes", {
                body: {
                    name: at,
                    host: host.value.trim(),
                    ...(user.value.trim() && { user: user.value.trim() }),
                    ...(port.value && { port: Number(port.value) }),
                    ...(pool.value.trim() && { labels: pool.value.trim() }),
                    ...(gpus.value && { gpu_count: Number(gpus.value) }),
                    ...(type.value.trim() && { gpu_type: type.value.trim() }),
                },
            });
            setQuery({ node: at });
        },
        done: () => w("a_done", name.value.trim()),
    });
}

function OnIt({ node, jobs }: { node: Node; jobs: Map<string, JobItem> }) {
    if (!node.jobs.length && !node.jobs_hidden) return <p class="note quiet">{w("d_none")}</p>;
    return (
        <>
            <h3>{w("d_jobs")}</h3>
            <ul class="named">
                {node.jobs.map((id) => {
                    const j = jobs.get(id);
                    return (
                        <li>
                            {j && <State of={j.state} />}
                            <Text of={j ? jobName(j) : id} />
                            {j && (
                                <span class="dim">
                                    <Text of={j.user} /> · {shape(j)}
                                </span>
                            )}
                        </li>
                    );
                })}
            </ul>
            {node.jobs_hidden > 0 && <p class="dim">{w("d_more", node.jobs_hidden)}</p>}
        </>
    );
}

const FATES = {
    ends_before: ["p_ends", "quiet"],
    stopped: ["p_stopped", "bad"],
    restarted: ["p_restarted", "warn"],
    waited_for: ["p_waited", "quiet"],
} as const;

type DrainHow = { then: string; deadline?: string; stop_foreign?: boolean };
const amount = (v: number) => Math.round(v * 100) / 100;

/** Jobs that Argus did not submit: they are waited for, unless somebody says otherwise. */
const Others = ({ of: plan }: { of: DrainPlan }) => (
    <>
        <h3>{w("p_others", plan.foreign.length)}</h3>
        <ul class="named plan-others">
            {plan.foreign.map((f) => (
                <li>
                    <span class="cut">
                        <Text of={f.ray_id ?? w("p_nobody")} />{" "}
                        <span class="dim">
                            {f.owner && (
                                <>
                                    <Text of={f.owner} /> ·{" "}
                                </>
                            )}
                            {w("p_holds", amount(f.gpus), amount(f.cpus))}
                        </span>
                    </span>
                    <span class={`end nowrap c-${FATES[f.fate][1]}`}>{w(FATES[f.fate][0])}</span>
                </li>
            ))}
        </ul>
    </>
);

/** What the drain would do, as argusd plans it: asked anew when its fields change. */
function DrainPlanned({ node, how }: { node: Node; how: DrainHow }) {
    const asked = useAsk("POST /v1/nodes/{name}:drain", {
        path: { name: node.name },
        query: { dry_run: true },
        body: how as { then: "wait" },
    });
    if (asked.why) return <p class="note bad said">{visible(asked.why.detail)}</p>;
    if (!asked.data) return <Loading rows={Math.max(1, node.jobs.length)} />;
    const plan = asked.data as DrainPlan;
    if (!plan.jobs.length && !plan.foreign.length) return <p class="note quiet">{w("d_none")}</p>;
    return (
        <>
            {plan.foreign.length > 0 && <Others of={plan} />}
            {plan.jobs.length > 0 && <h3>{w("p_jobs", plan.jobs.length, plan.users.length)}</h3>}
            <ul class="named plan-jobs">
                {plan.jobs.map((j) => (
                    <li>
                        <State of={j.state} />
                        <span class="cut">
                            <Text of={j.name || j.job} />{" "}
                            <span class="dim">
                                <Text of={j.user} /> · {w("p_gpus", j.gpus)}
                            </span>
                        </span>
                        <span class="end nowrap">
                            <span class={`c-${FATES[j.fate][1]}`}>{w(FATES[j.fate][0])}</span>
                            {j.fate === "waited_for" && j.ends_at && (
                                <span class="dim">
                                    {" "}
                                    <Time at={j.ends_at} as="until" />
                                </span>
                            )}
                            {(j.fate === "stopped" || j.fate === "restarted") && (
                                <span class="dim"> {w("p_risk", num(j.at_risk_gpu_hours, 1))}</span>
                            )}
                        </span>
                    </li>
                ))}
            </ul>
            <p class={`note ${plan.at_risk_gpu_hours > 0 ? "warn" : "quiet"}`}>
                <span>
                    {plan.at_risk_gpu_hours > 0
                        ? w("p_lost", num(plan.at_risk_gpu_hours, 1))
                        : w(how.then === "wait" ? "p_nothing" : "p_nothing_now")}{" "}
                    {plan.empty_at ? (
                        <>
                            {w("p_empty")} <Time at={plan.empty_at} as="until" />
                        </>
                    ) : (
                        w("p_empty_unknown")
                    )}
                    {plan.empty_late_at && plan.empty_late_at !== plan.empty_at && (
                        <>
                            {w("p_late")} <Time at={plan.empty_late_at} as="until" />
                        </>
                    )}
                </span>
            </p>
        </>
    );
}

export function drainNode(node: Node, jobs: Map<string, JobItem>) {
    const then = signal<"wait" | "restart" | "stop">("wait");
    const deadline = signal("2h");
    const others = signal(false);
    const waiting = [...jobs.values()].filter((j) => j.state === "QUEUED").length;
    const how = () => ({
        then: then.value,
        ...(then.value !== "wait" && { deadline: deadline.value.trim() || "0s" }),
        ...(others.value && { stop_foreign: true }),
    });
    const Plan = () => (
        <>
            <p>{w("d_text")}</p>
            <DrainPlanned node={node} how={how()} />
            <div class="form in-dialog">
                <fieldset>
                    <Choose
                        wide={8}
                        label={w("d_then")}
                        code="then"
                        of={then}
                        choices={[
                            { value: "wait", says: w("d_wait") },
                            { value: "restart", says: w("d_restart") },
                            { value: "stop", says: w("d_stop") },
                        ]}
                    />
                    {then.value !== "wait" && (
                        <Field wide={4} label={w("d_deadline")} code="deadline" of={deadline} placeholder="2h" />
                    )}
                </fieldset>
            </div>
            <Tick label={w("d_others")} of={others} />
            <p class="note quiet">{w("d_fewer", node.gpus.total, waiting)}</p>
        </>
    );
    ask({
        title: w("d_title", node.name),
        act: w("d_go"),
        isBad: true,
        cli: () =>
            `argus node drain ${shell(node.name)}` +
            (then.value === "wait" ? "" : ` --then ${then.value} --deadline ${shell(deadline.value || "0s")}`) +
            (others.value ? " --stop-foreign" : ""),
        body: <Plan />,
        does: () =>
            call("POST /v1/nodes/{name}:drain", {
                path: { name: node.name },
                body: how(),
            }),
        done: w("d_done", node.name),
    });
}

/** As a plan: its page shows what the removal touches, step by step, and there it is applied. */
export function removeNode(node: Node, jobs: Map<string, JobItem>) {
    const force = signal(false);
    const others = signal(false);
    ask({
        title: w("r_title", node.name),
        act: w("r_go"),
        cli: () =>
            `argus ops plan remove_node --node ${shell(node.name)}` +
            (force.value ? " --force" : "") +
            (others.value ? " --stop-foreign" : ""),
        body: (
            <>
                <p>{w("r_text")}</p>
                {node.jobs.length + node.jobs_hidden > 0 && <OnIt node={node} jobs={jobs} />}
                <Tick label={w("r_force")} of={force} />
                <Tick label={w("d_others")} of={others} />
            </>
        ),
        does: async () => {
            const plan = await call("POST /v1/ops/remove_node", {
                body: { node: node.name, force: force.value, stop_foreign: others.value },
            });
            go(`/ops?plan=${encodeURIComponent(plan.id)}`);
        },
    });
}

export function adoptJob(cluster: string, f: Foreign, projects: string[]) {
    const project = signal(projects[0] ?? "default");
    const user = signal("");
    ask({
        title: w("ad_title", f.ray_id),
        act: w("ad_go"),
        missing: () => (project.value.trim() ? "" : t("project")),
        cli: () =>
            `argus adopt ${shell(f.ray_id)} --project ${shell(project.value.trim())}` +
            (user.value.trim() ? ` --user ${shell(user.value.trim())}` : ""),
        body: (
            <>
                <p>{w("ad_text")}</p>
                <div class="form in-dialog">
                    <fieldset>
                        <Field label={t("project")} code="project" of={project} list={projects} first />
                        <Field label={t("user")} code="user" of={user} />
                    </fieldset>
                </div>
            </>
        ),
        does: () =>
            call("POST /v1/clusters/{cluster}/foreign/{ray_id}:adopt", {
                path: { cluster, ray_id: f.ray_id },
                body: { project: project.value.trim(), ...(user.value.trim() && { user: user.value.trim() }) },
            }),
        done: w("ad_done", f.ray_id),
    });
}

export function checkNetwork(nodes: Node[], pool: string) {
    const own = nodes.filter((n) => n.state === "online" && !n.is_head && (!pool || n.labels.includes(pool)));
    ask({
        title: w("net_title", own.length),
        act: w("net_go"),
        cli: `argus node check --net${pool ? ` --pool ${shell(pool)}` : ""}`,
        body: <p>{w("net_text")}</p>,
        does: () => call("POST /v1/nodes:check", { body: pool ? { pool } : {} }),
        done: w("net_done"),
    });
}
