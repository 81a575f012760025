// SPDX-License-Identifier: Apache-2.0
// onward.tsx - where a version of a model went: services, steps of runs, models made of it, jobs that read it.
import type { ModelUse } from "../made/api";
import { useAsk } from "../api/use";
import { visible } from "../base/say";
import { Pending } from "../kit/blank";
import { Text } from "../kit/parts";
import { w } from "./words";

/** The page of what uses it. Pure. */
export function hrefOfUse(u: ModelUse): string {
    const name = encodeURIComponent(u.name);
    switch (u.kind) {
        case "service":
            return `/services/${name}`;
        case "run":
            return `/pipelines/-/${name}`;
        case "model":
            return `/models/${name}`;
        case "job":
            return `/jobs/${name}`;
    }
}

/** What is said beside the name. Pure. */
export function saysOfUse(u: ModelUse): string {
    if (u.kind === "service") return u.has_traffic ? visible(u.endpoint ?? "") : w("o_quiet");
    if (u.kind === "run") return visible(`${u.step ?? ""} · ${w(u.made ? "o_made" : "o_read")}`);
    if (u.kind === "model") return u.said ? w("l_said") : "";
    return visible(u.state ?? "");
}

export function Onward({ name }: { name: string }) {
    const asked = useAsk("GET /v1/models/{name}/uses", { path: { name } }, { topics: ["jobs"] });
    const page = asked.data;
    if (asked.why || !page) return <Pending of={asked} lines={2} />;
    if (!page.uses.length) return <p class="mid">{w("o_none")}</p>;
    return (
        <>
            <ul class="named onward">
                {page.uses.map((u) => (
                    <li>
                        <span class="mid nowrap">{w(`o_${u.kind}`)}</span>
                        <a class="link cut" href={hrefOfUse(u)}>
                            <Text of={u.kind === "service" ? `${u.name} v${u.version}` : u.name} />
                        </a>
                        <span class="end dim cut">{saysOfUse(u)}</span>
                    </li>
                ))}
            </ul>
            {page.more && <p class="dim">{w("o_more")}</p>}
        </>
    );
}
