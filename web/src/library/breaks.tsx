// SPDX-License-Identifier: Apache-2.0
// breaks.tsx - what uses a data set, a model or a preset that is to be removed, by name, in the dialog that removes it.
import { useEffect } from "preact/hooks";
import { signal, type Signal } from "@preact/signals";
import type { RemovalPlan, RemovalUser } from "../made/api";
import { useAsk } from "../api/use";
import { visible } from "../base/say";
import { withQuery } from "../base/url";
import { Loading } from "../kit/blank";
import { Text } from "../kit/parts";
import { w } from "./words";

/** Its page, or the list that shows it. Pure. */
export function hrefOfUser(u: RemovalUser): string {
    const name = encodeURIComponent(u.name);
    switch (u.kind) {
        case "job":
            return `/jobs/${name}`;
        case "service":
            return `/services/${name}`;
        case "pipeline":
            return withQuery(`/pipelines/${name}`, { user: u.owner ?? "" });
        case "preset":
            return withQuery("/presets", { name: `${u.owner ?? ""}:${u.name}` });
    }
}

const ROUTES = {
    data: "DELETE /v1/datasets/{name}",
    models: "DELETE /v1/models/{name}",
    presets: "DELETE /v1/presets/{name}",
} as const;

/** For `stands`, and for `missing` of the dialog: nothing is removed before it is known what breaks. */
export const looking = () => signal(w("b_looking"));

/** stands: why the removal cannot be done, said beside the button; "": it can. */
export function Breaks(p: { kind: keyof typeof ROUTES; name: string; project?: string; stands: Signal<string> }) {
    const asked = useAsk(ROUTES[p.kind], { path: { name: p.name }, query: { dry_run: true, project: p.project } });
    const plan = asked.data as RemovalPlan | undefined;
    useEffect(() => {
        // Where nobody tells, the server itself refuses what it must.
        p.stands.value = plan ? (plan.refused ? w("b_refused") : "") : asked.why ? "" : w("b_looking");
    }, [plan, asked.why]);
    if (asked.why) return <p class="note bad said">{visible(asked.why.detail)}</p>;
    if (!plan) return <Loading rows={2} />;
    if (!plan.users.length && !plan.hidden) return <p class="note quiet breaks">{w("b_free")}</p>;
    return (
        <div class="breaks">
            <h3>{w("b_title", plan.users.length + plan.hidden)}</h3>
            <ul class="named">
                {plan.users.map((u) => (
                    <li>
                        <span class="mid nowrap">{w(`b_${u.kind}`)}</span>
                        <a class="link cut" href={hrefOfUser(u)}>
                            <Text of={u.name} />
                        </a>
                        <span class={u.keeps ? "end nowrap c-warn" : "end nowrap dim"}>
                            {w(u.keeps ? "b_keeps" : "b_breaks")}
                        </span>
                    </li>
                ))}
            </ul>
            {plan.hidden > 0 && <p class="dim">{w("b_hidden", plan.hidden)}</p>}
        </div>
    );
}
