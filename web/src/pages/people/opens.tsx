// SPDX-License-Identifier: Apache-2.0
// opens.tsx - what opens the server to a person: tokens and browsers that are logged in, each with its end. An admin sees
// it in the drawer of that person; one's own are on the page of settings.
import type { Session, Token } from "../../made/api";
import { call, session } from "../../api/client";
import { useAsk } from "../../api/use";
import { visible } from "../../base/say";
import { Pending } from "../../kit/blank";
import { ask } from "../../kit/over";
import { shell, Text, Time } from "../../kit/parts";
import { Table, type Col } from "../../kit/table";
import { t } from "../../words/shared";
import { w } from "./words";

function revokeToken(x: Token, done: () => void) {
    ask({
        title: w("rv_title", visible(x.name || x.id), visible(x.user)),
        act: w("rv_go"),
        isBad: true,
        cli: `argus token revoke ${shell(x.id)}`,
        body: <p>{w("rv_text")}</p>,
        does: async () => {
            await call("DELETE /v1/tokens/{token}", { path: { token: x.id } });
            done();
        },
        done: w("rv_done"),
    });
}

function endSession(x: Session, done: () => void) {
    ask({
        title: w("se_title", visible(x.user)),
        act: w("se_go"),
        isBad: true,
        cli: `argus session end ${shell(x.id)}`,
        body: <p>{w("se_text", visible(x.agent || "?"))}</p>,
        does: async () => {
            await call("DELETE /v1/sessions/{session}", { path: { session: x.id } });
            done();
        },
        done: w("se_done"),
    });
}

/** A column with a button in each row, but for those for which `not` is true. */
export const deed = <R,>(
    says: string,
    name: (of: R) => string,
    act: (of: R) => void,
    not: (of: R) => boolean,
): Col<R> => ({
    key: "deed",
    title: "",
    width: 96,
    draw: (of) =>
        not(of) ? (
            <span class="dim">{w("in_use")}</span>
        ) : (
            <button
                type="button"
                class="btn bare bad"
                aria-label={`${says} ${visible(name(of))}`}
                onClick={() => act(of)}
            >
                {says}
            </button>
        ),
});

export function TokensOf({ user, done }: { user: string; done: () => void }) {
    const asked = useAsk("GET /v1/tokens", { query: { user } }, { topics: ["events"] });
    const rows = asked.data?.tokens;
    const cols: Col<Token>[] = [
        { key: "name", title: t("name"), draw: (x) => <Text of={x.name || x.id} /> },
        { key: "role", title: w("role"), width: 76, draw: (x) => x.role },
        { key: "last_use_at", title: w("last_use"), width: 104, draw: (x) => <Time at={x.last_use_at} as="ago" /> },
        deed(
            w("revoke"),
            (x) => x.name || x.id,
            (x) =>
                revokeToken(x, () => {
                    asked.again();
                    done();
                }),
            (x) => x.id === session.value?.token_id,
        ),
    ];
    return (
        <section class="opens-tokens">
            <h3>{w("tokens")}</h3>
            {asked.why || !rows ? (
                <Pending of={asked} lines={2} />
            ) : rows.length ? (
                <Table label={w("tokens")} rows={rows} cols={cols} keyOf={(x) => x.id} />
            ) : (
                <p class="dim">{w("no_tokens")}</p>
            )}
        </section>
    );
}

export function SessionsOf({ user }: { user: string }) {
    const asked = useAsk("GET /v1/sessions", { query: { user } }, { topics: ["events"] });
    const rows = asked.data?.sessions;
    const cols: Col<Session>[] = [
        {
            key: "agent",
            title: w("browser"),
            draw: (x) => (
                <span class="cut" title={visible(x.agent ?? "")}>
                    <Text of={x.agent} />
                </span>
            ),
        },
        { key: "last_use_at", title: w("last_use"), width: 104, draw: (x) => <Time at={x.last_use_at} as="ago" /> },
        deed(
            w("log_out"),
            (x) => x.id,
            (x) => endSession(x, asked.again),
            (x) => x.id === session.value?.id,
        ),
    ];
    return (
        <section class="opens-sessions">
            <h3>{w("sessions")}</h3>
            {asked.why || !rows ? (
                <Pending of={asked} lines={2} />
            ) : rows.length ? (
                <Table label={w("sessions")} rows={rows} cols={cols} keyOf={(x) => x.id} />
            ) : (
                <p class="dim">{w("no_sessions")}</p>
            )}
        </section>
    );
}
