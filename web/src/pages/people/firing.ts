// SPDX-License-Identifier: Apache-2.0
// firing.ts - on which jobs the alerts of a project hold now, and the options that set its alerts. Pure.
import type { Alert, Job } from "../../made/api";

/** The rule by which the alerts of metrics are told. */
export const RULE = "job_metric";

/** The ids of the project's jobs of which an alert of a metric is open, each once. */
export const firingJobs = (project: string, alerts: Pick<Alert, "rule" | "project" | "name" | "open">[]): string[] => [
    ...new Set(alerts.filter((a) => a.open && a.rule === RULE && a.project === project).map((a) => a.name)),
];

/** Those of the jobs that have this alert, whoever asked for it, and on which it holds. */
export const holdsOn = <J extends Pick<Job, "metric_alerts">>(alert: string, jobs: J[]): J[] =>
    jobs.filter((j) => (j.metric_alerts ?? []).some((a) => a.stands && a.alert === alert));

/** The options of `argus project set` that give a project these alerts in place of those that it has. */
export const alertOptions = (alerts: string[], shell: (text: string) => string): string =>
    alerts.length ? alerts.map((a) => ` --alert ${shell(a)}`).join("") : " --no-alerts";
