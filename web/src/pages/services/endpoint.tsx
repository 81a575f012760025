// SPDX-License-Identifier: Apache-2.0
// endpoint.tsx - where a service answers, and the lines with which one asks it.
import type { Service } from "../../made/api";
import { visible } from "../../base/say";
import { Icon } from "../../kit/icons";
import { copy, Panel, shell } from "../../kit/parts";
import { t } from "../../words/shared";
import { endpointOf, isModel } from "./parts";
import { w } from "./words";

export function linesOf(s: Service): { curl: string; cli: string } {
    const model = isModel(s);
    const auth = `-H "Authorization: Bearer $ARGUS_TOKEN"`;
    const home = endpointOf(s);
    const body = JSON.stringify({ model: s.name, stream: true, messages: [{ role: "user", content: "1 + 1 =" }] });
    return {
        curl: model
            ? `curl -N ${auth} -H 'Content-Type: application/json' ${home}/chat/completions -d ${shell(body)}`
            : `curl ${auth} ${home.replace(/\/v1$/, "")}/`,
        cli: model ? `argus service ask ${shell(s.name)} '1 + 1 ='` : `argus service ask ${shell(s.name)} --path /`,
    };
}

function Line({ says, line }: { says: string; line: string }) {
    return (
        <div class="svc-line">
            <div class="row small dim">
                {says}
                <span class="grow" />
                <button
                    type="button"
                    class="btn icon bare"
                    title={t("copy_cli")}
                    aria-label={`${t("copy_cli")}: ${says}`}
                    onClick={() => void copy(line)}
                >
                    <Icon name="copy" />
                </button>
            </div>
            <pre class="lib-pre" tabIndex={0}>
                {visible(line)}
            </pre>
        </div>
    );
}

export function Endpoint({ of: s }: { of: Service }) {
    const lines = linesOf(s);
    const model = isModel(s);
    return (
        <Panel title={w("endpoint")}>
            <p class="mid small">{model ? w("endpoint_text") : w("endpoint_app")}</p>
            <Line says="URL" line={model ? endpointOf(s) : endpointOf(s).replace(/\/v1$/, "/")} />
            <Line says={w("by_curl")} line={lines.curl} />
            <Line says={w("by_cli")} line={lines.cli} />
        </Panel>
    );
}
