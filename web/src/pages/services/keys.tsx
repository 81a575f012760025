// SPDX-License-Identifier: Apache-2.0
// keys.tsx - keys that open one service alone: made (and shown once), listed with their limits, removed.
import { signal } from "@preact/signals";
import { useState } from "preact/hooks";
import type { ServiceKey } from "../../made/api";
import { call } from "../../api/client";
import { useAsk } from "../../api/use";
import { num, visible } from "../../base/say";
import { Blank, Pending } from "../../kit/blank";
import { Field } from "../../kit/form";
import { Icon } from "../../kit/icons";
import { ask } from "../../kit/over";
import { copy, Dash, Panel, shell, Text, Time } from "../../kit/parts";
import { Table, type Col } from "../../kit/table";
import { t } from "../../words/shared";
import { w } from "./words";

function addKey(service: string, made: (key: ServiceKey) => void) {
    const name = signal("");
    const requests = signal("");
    const tokens = signal("");
    const expires = signal("90d");
    const given = () => ({
        ...(name.value.trim() && { name: name.value.trim() }),
        ...(requests.value.trim() && { requests_per_minute: Number(requests.value) }),
        ...(tokens.value.trim() && { tokens_per_minute: Number(tokens.value) }),
        ...(expires.value.trim() && { expires: expires.value.trim() }),
    });
    ask({
        title: w("key_title", visible(service)),
        act: w("key_go"),
        cli: () =>
            Object.entries(given()).reduce(
                (line, [k, v]) => `${line} --${k.replaceAll("_", "-")} ${shell(String(v))}`,
                `argus service key new ${shell(service)}`,
            ),
        body: (
            <>
                <p>{w("keys_text")}</p>
                <div class="form in-dialog">
                    <fieldset>
                        <Field label={w("key_for")} code="name" of={name} first />
                        <Field label={w("key_expires")} code="expires" of={expires} list={["30d", "90d", "365d"]} />
                        <Field
                            label={w("key_requests")}
                            code="requests_per_minute"
                            of={requests}
                            kind="number"
                            least={0}
                            placeholder={w("key_as_service")}
                        />
                        <Field
                            label={w("key_tokens")}
                            code="tokens_per_minute"
                            of={tokens}
                            kind="number"
                            least={0}
                            placeholder={w("key_as_service")}
                        />
                    </fieldset>
                </div>
            </>
        ),
        does: async () => made(await call("POST /v1/service-keys", { body: { service, ...given() } })),
    });
}

function dropKey(key: ServiceKey, done: () => void) {
    ask({
        title: w("key_rm_title", visible(key.name || key.id)),
        act: w("key_rm_go"),
        isBad: true,
        cli: `argus service key rm ${shell(key.id)}`,
        body: <p>{w("key_rm_text")}</p>,
        does: async () => {
            await call("DELETE /v1/service-keys/{key}", { path: { key: key.id } });
            done();
        },
        done: w("key_rm_done"),
    });
}

const limitSays = (n: number) => (n ? num(n) : <Dash />);

const keyCols = (may: boolean, again: () => void): Col<ServiceKey>[] => [
    {
        key: "name",
        title: w("key_for"),
        draw: (k) => (
            <>
                <Text of={k.name || k.id} />
                {k.state !== "works" && (
                    <span class="c-warn"> · {w(k.state === "void" ? "key_void" : "key_expired")}</span>
                )}
            </>
        ),
    },
    { key: "user", title: t("user"), width: 96, wide: true, draw: (k) => <Text of={k.user} /> },
    {
        key: "requests",
        title: w("rate"),
        width: 96,
        num: true,
        wide: "very",
        draw: (k) => limitSays(k.requests_per_minute),
    },
    {
        key: "tokens",
        title: w("key_tokens"),
        width: 96,
        num: true,
        wide: "very",
        draw: (k) => limitSays(k.tokens_per_minute),
    },
    {
        key: "expires_at",
        title: w("key_expires"),
        width: 96,
        wide: true,
        draw: (k) => (k.expires_at ? <Time at={k.expires_at} /> : <Dash />),
    },
    { key: "last_use_at", title: w("key_used"), width: 96, draw: (k) => <Time at={k.last_use_at} as="ago" /> },
    ...(may
        ? [
              {
                  key: "deed",
                  title: "",
                  width: 90,
                  draw: (k: ServiceKey) => (
                      <button
                          type="button"
                          class="btn bare bad"
                          aria-label={`${w("rm")} ${k.name || k.id}`}
                          onClick={() => dropKey(k, again)}
                      >
                          {w("rm")}
                      </button>
                  ),
              },
          ]
        : []),
];

export function Keys({ name, may }: { name: string; may: boolean }) {
    const asked = useAsk("GET /v1/service-keys", { query: { service: name } }, { topics: ["events"] });
    const [made, setMade] = useState<ServiceKey | null>(null);
    const rows = asked.data?.keys;
    const add = () =>
        addKey(name, (k) => {
            setMade(k);
            asked.again();
        });
    return (
        <Panel
            bare
            id="keys"
            title={w("keys")}
            count={rows?.length || undefined}
            end={
                may && (
                    <button type="button" class="btn act" onClick={add}>
                        <Icon name="plus" />
                        {w("key_go")}
                    </button>
                )
            }
        >
            {made?.key && (
                <div class="note ok svc-once" role="status">
                    <Icon name="succeeded" />
                    <div class="grow">
                        <p>{w("key_once", visible(made.name || made.id))}</p>
                        <p class="mono svc-key">{visible(made.key)}</p>
                    </div>
                    <button type="button" class="btn" onClick={() => void copy(made.key!)}>
                        <Icon name="copy" />
                        {w("key_copy")}
                    </button>
                    <button type="button" class="btn bare" onClick={() => setMade(null)}>
                        {w("key_kept")}
                    </button>
                </div>
            )}
            {asked.why || !rows ? (
                <Pending of={asked} lines={2} />
            ) : rows.length ? (
                <Table label={w("keys")} rows={rows} cols={keyCols(may, asked.again)} keyOf={(k) => k.id} />
            ) : (
                <Blank title={w("no_keys")}>{w("keys_text")}</Blank>
            )}
        </Panel>
    );
}
