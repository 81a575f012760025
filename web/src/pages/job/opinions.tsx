// SPDX-License-Identifier: Apache-2.0
// opinions.tsx - what others say of a failure, beside the finding: the ops agent, a person, a model that was asked.
import type { Opinion } from "../../made/api";
import { visible } from "../../base/say";
import { Panel, Text, Time } from "../../kit/parts";
import { w } from "./words";

/** The link is a stranger's: only a web address becomes one. */
export const isWeb = (link: string) => /^https?:\/\//.test(link);

function One({ of: o }: { of: Opinion }) {
    return (
        <li>
            <p class="small dim">
                <Text of={o.author} /> · <Time at={o.at} /> · {w("found_in", o.attempt)}
                {o.source === "second_opinion" && <> · {w("by_model", visible(o.model ?? ""))}</>}
                {o.confidence !== null && <> · {w("sure", Math.round(o.confidence * 100))}</>}
            </p>
            {o.class !== null && <code>{visible(o.class)}</code>}
            <p class="said">{visible(o.cause)}</p>
            {o.advice !== null && <p class="said advice">{visible(o.advice)}</p>}
            {o.patch !== null && <pre class="quote">{visible(JSON.stringify(o.patch, null, 2))}</pre>}
            {o.link !== null && isWeb(o.link) && (
                <p class="small">
                    <a class="link" href={o.link} rel="noopener noreferrer nofollow">
                        {visible(o.link)}
                    </a>
                </p>
            )}
        </li>
    );
}

export function Opinions({ of }: { of: Opinion[] }) {
    if (!of.length) return null;
    return (
        <Panel id="opinions" title={w("s_opinions")}>
            <p class="small mid">{w("opinions_note")}</p>
            <ol class="opinions">
                {of.map((o) => (
                    <One of={o} />
                ))}
            </ol>
        </Panel>
    );
}
