// SPDX-License-Identifier: Apache-2.0
// blank.tsx - the states of a panel that has nothing to show: empty, loading, refused, not allowed.
import type { ComponentChildren } from "preact";
import { useEffect, useState } from "preact/hooks";
import { Refusal } from "../api/client";
import { visible } from "../base/say";
import { t } from "../words/shared";
import { Icon, type IconName } from "./icons";

/** Says what there is not and what to do first. */
export function Blank(props: {
    title: string;
    children?: ComponentChildren;
    act?: ComponentChildren;
    icon?: IconName;
    bad?: boolean;
    /** In the place of the whole page, so its title is the page's heading. */
    whole?: boolean;
}) {
    const Title = props.whole ? "h1" : "p";
    return (
        <div class="blank">
            <Title class={`blank-title row ${props.bad ? "c-bad" : ""}`}>
                {props.icon && <Icon name={props.icon} />}
                <span>{props.title}</span>
            </Title>
            {props.children && <div>{props.children}</div>}
            {props.act && <div class="row">{props.act}</div>}
        </div>
    );
}

/** Grey bars in the rows' places, after 200 ms: what comes sooner does not flicker. */
export function Loading({ rows = 6 }: { rows?: number }) {
    const [late, setLate] = useState(false);
    useEffect(() => {
        const timer = setTimeout(() => setLate(true), 200);
        return () => clearTimeout(timer);
    }, []);
    return (
        <div class="loading" role="status">
            <span class="sr">{t("loading")}</span>
            {late &&
                Array.from({ length: rows }, (_, i) => (
                    <div class="row">
                        <span class="skel" style={{ width: "88px" }} />
                        <span class="skel grow" style={{ maxWidth: `${260 - (i % 3) * 50}px` }} />
                        <span class="skel" style={{ width: "64px" }} />
                    </div>
                ))}
        </div>
    );
}

/** What was refused, in the server's words, with its code and a way to try again. */
export function Refused({ why, again, whole }: { why: unknown; again?: () => void; whole?: boolean }) {
    const r = why instanceof Refusal ? why : new Refusal(0, "page", String(why), undefined, null);
    const denied = r.status === 403;
    return (
        <Blank
            whole={whole}
            bad={!denied}
            icon={denied ? "users" : "unhealthy"}
            title={denied ? t("no_permission") : t("error")}
            act={
                again && (
                    <button type="button" class="btn" onClick={again}>
                        {t("retry_now")}
                    </button>
                )
            }
        >
            <p class="said">{visible(r.detail)}</p>
            {r.hint && <p class="said">{visible(r.hint)}</p>}
            <p class="small dim">
                <code>{r.code}</code>
                {r.status > 0 && ` · ${r.status}`}
            </p>
        </Blank>
    );
}

/** Stands where an answer will be: why it is refused, or that it is awaited. framed: as a panel of its own. */
export function Pending(props: {
    of: { why: unknown; again: () => void };
    lines: number;
    framed?: boolean;
    whole?: boolean;
}) {
    const { why, again } = props.of;
    const says = why ? <Refused why={why} again={again} whole={props.whole} /> : <Loading rows={props.lines} />;
    return props.framed ? <section class="panel">{says}</section> : says;
}
