// SPDX-License-Identifier: Apache-2.0
// watched.tsx - the alerts of metrics that a project asks for, of each of its jobs: which there are, on which jobs they
// hold now, and for admins how one is added and removed.
import { signal } from "@preact/signals";
import { useEffect, useState } from "preact/hooks";
import type { Job, Project } from "../../made/api";
import { call } from "../../api/client";
import { useAsk } from "../../api/use";
import { visible } from "../../base/say";
import { Field } from "../../kit/form";
import { Icon } from "../../kit/icons";
import { ask } from "../../kit/over";
import { Dash, shell, Text } from "../../kit/parts";
import { Table, type Col } from "../../kit/table";
import { jobName } from "../jobs/columns";
import { alertOptions, firingJobs, holdsOn, RULE } from "./firing";
import { deed } from "./opens";
import { w } from "./words";

/** argusd takes no more for one project. */
const ALERTS_MOST = 16;
/** Jobs that are asked which of their alerts hold; beyond, only their number is shown. */
const JOBS_MOST = 20;
const OPEN_MOST = 2000;
const EXAMPLE = "actor/entropy < 0.1 for 10 steps";

const lineOf = (p: Project, alerts: string[]) => `argus project set ${shell(p.name)}${alertOptions(alerts, shell)}`;

/** A change replaces all of them, so it begins with those that are there by now. */
async function change(p: Project, from: (alerts: string[]) => string[]) {
    const path = { project: p.name };
    const now = await call("GET /v1/projects/{project}", { path });
    await call("PATCH /v1/projects/{project}", { path, body: { alerts: from(now.alerts) } });
}

function addAlert(p: Project, done: () => void) {
    const text = signal("");
    const asked = () => text.value.trim();
    ask({
        title: w("al_title", visible(p.name)),
        act: w("al_add"),
        missing: () => (!asked() ? w("al_must") : p.alerts.includes(asked()) ? w("al_twice") : ""),
        cli: () => lineOf(p, [...p.alerts, asked() || EXAMPLE]),
        body: (
            <div class="form in-dialog">
                <fieldset>
                    <Field
                        wide={12}
                        label={w("al_one")}
                        code="alerts"
                        of={text}
                        placeholder={EXAMPLE}
                        help={w("al_help")}
                        first
                    />
                </fieldset>
            </div>
        ),
        does: async () => {
            await change(p, (alerts) => [...alerts.filter((a) => a !== asked()), asked()]);
            done();
        },
        done: w("al_added"),
    });
}

function removeAlert(p: Project, text: string, done: () => void) {
    ask({
        title: w("al_rm_title", visible(p.name)),
        act: w("al_rm"),
        isBad: true,
        cli: lineOf(
            p,
            p.alerts.filter((a) => a !== text),
        ),
        body: <p>{w("al_rm_text", visible(text))}</p>,
        does: async () => {
            await change(p, (alerts) => alerts.filter((a) => a !== text));
            done();
        },
        done: w("al_removed"),
    });
}

/** Jobs of the project that have an open alert of a metric, and how many more there are than were asked. */
function useFiring(p: Project): { jobs: Job[]; more: number } {
    const route = p.alerts.length ? ("GET /v1/alerts" as const) : null;
    const live = { topics: ["events" as const], every: 15_000 };
    const open = useAsk(route, { query: { state: "open", limit: OPEN_MOST } }, live).data;
    const silenced = useAsk(route, { query: { state: "silenced", limit: OPEN_MOST } }, live).data;
    const [jobs, setJobs] = useState<Job[]>([]);
    const all = firingJobs(p.name, [...(open?.alerts ?? []), ...(silenced?.alerts ?? [])]);
    const ids = all.slice(0, JOBS_MOST);
    useEffect(() => {
        const control = new AbortController();
        const { signal: given } = control;
        const load = async () => {
            const each = await Promise.allSettled(
                ids.map((id) => call("GET /v1/jobs/{id}", { path: { id }, signal: given })),
            );
            if (!given.aborted) setJobs(each.flatMap((e) => (e.status === "fulfilled" ? [e.value] : [])));
        };
        void load();
        return () => control.abort();
    }, [ids.join(), open]);
    return { jobs, more: all.length - ids.length };
}

function On({ jobs }: { jobs: Job[] }) {
    if (!jobs.length) return <Dash />;
    return (
        <span class="st c-bad">
            <Icon name="failed" />
            <span>
                {jobs.map((j, i) => (
                    <>
                        {i > 0 && ", "}
                        <a class="link" href={`/jobs/${encodeURIComponent(j.id)}`}>
                            <Text of={jobName(j)} />
                        </a>
                    </>
                ))}
            </span>
        </span>
    );
}

const Said = ({ of }: { of: string }) => (
    <code class="reads" title={visible(of)}>
        {visible(of)}
    </code>
);

export function AlertsOf({ project: p, may, done }: { project: Project; may: boolean; done: () => void }) {
    const { jobs, more } = useFiring(p);
    const rule = useAsk(p.alerts.length ? "GET /v1/alert_rules/{rule}" : null, { path: { rule: RULE } });
    const cols: Col<string>[] = [
        { key: "alert", title: w("al_one"), draw: (a) => <Said of={a} /> },
        { key: "on", title: w("al_on"), width: 150, draw: (a) => <On jobs={holdsOn(a, jobs)} /> },
        ...(may
            ? [
                  deed<string>(
                      w("rm"),
                      (a) => a,
                      (a) => removeAlert(p, a, done),
                      () => false,
                  ),
              ]
            : []),
    ];
    return (
        <section class="alerts-of">
            <h3>{w("alerts")}</h3>
            <p class="small dim">{w("al_text")}</p>
            {p.alerts.length ? (
                <Table label={w("alerts")} rows={p.alerts} cols={cols} keyOf={(a) => a} />
            ) : (
                <p class="dim">{w("al_none")}</p>
            )}
            {rule.data?.off && <p class="small c-warn">{w("al_off", RULE)}</p>}
            {more > 0 && <p class="small dim">{w("al_more", more)}</p>}
            {may && p.alerts.length < ALERTS_MOST && (
                <button type="button" class="btn" onClick={() => addAlert(p, done)}>
                    <Icon name="plus" />
                    {w("al_add")}
                </button>
            )}
        </section>
    );
}
