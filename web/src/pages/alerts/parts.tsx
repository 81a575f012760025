// SPDX-License-Identifier: Apache-2.0
// parts.tsx - how alerts and incidents are said and linked.
import type { Alert } from "../../made/api";
import { visible } from "../../base/say";
import { query, withQuery } from "../../base/url";
import { Text, Toned } from "../../kit/parts";
import { w } from "./words";

export const SEVERITY = { critical: "bad", warning: "warn", info: "quiet" } as const;
export type Severity = keyof typeof SEVERITY;

export const textOf = (a: Pick<Alert, "text">) => visible(a.text);
/** Without the severity in front, which stands beside it. */
export const titleOf = (i: { title: string }) => visible(i.title).replace(/^[[【][^\]】]*[\]】]\s*/, "");

export const SeverityMark = ({ of }: { of: Severity }) => (
    <Toned tone={SEVERITY[of]} icon={of === "critical" ? "unhealthy" : of === "warning" ? "alerts" : "flag"}>
        {w(of)}
    </Toned>
);

/** What the alert is about, where it has a page. */
export function Subject({ of: a }: { of: Pick<Alert, "kind" | "name"> }) {
    const to =
        a.kind === "job"
            ? `/jobs/${encodeURIComponent(a.name)}`
            : a.kind === "node" || a.kind === "gpu"
              ? withQuery("/nodes", { node: a.name.split("/")[0] })
              : a.kind === "pipeline"
                ? `/pipelines/-/${encodeURIComponent(a.name)}`
                : null;
    return (
        <span class="cut">
            <span class="dim">{visible(a.kind)} </span>
            {to ? (
                <a class="link" href={to}>
                    <Text of={a.name} />
                </a>
            ) : (
                <Text of={a.name} />
            )}
        </span>
    );
}

export const here = (change: Record<string, string | null>) =>
    withQuery("/alerts", { ...Object.fromEntries(query.value), alert: null, incident: null, ...change });
