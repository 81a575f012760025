// SPDX-License-Identifier: Apache-2.0
// page.tsx - what is one's own: language, theme, tokens (each shown once), browsers that are logged in, secrets by name.
import { signal } from "@preact/signals";
import { useState } from "preact/hooks";
import type { Secret, Session, Token } from "../../made/api";
import { call, session } from "../../api/client";
import { useAsk } from "../../api/use";
import { useDo } from "../../base/acts";
import { lang, letters, setLang, setLetters, setTheme, theme } from "../../base/prefs";
import { bytes, ms, visible } from "../../base/say";
import { query, setQuery } from "../../base/url";
import { words } from "../../base/words";
import { Blank, Pending } from "../../kit/blank";
import { Choose, Field } from "../../kit/form";
import { Icon } from "../../kit/icons";
import { ask } from "../../kit/over";
import { Cli, copy, Head, Panel, Seg, shell, Text, Time } from "../../kit/parts";
import { Table, type Col } from "../../kit/table";
import { t } from "../../words/shared";

const w = words({
    sub: ["{0}, {1}", "{0}，{1}"],
    look: ["How it looks", "外观"],
    language: ["Language", "语言"],
    single: ["Single letters act", "单字母快捷键"],
    on: ["On", "开"],
    off: ["Off", "关"],
    tokens: ["My tokens", "我的令牌"],
    tokens_text: [
        "A token opens the API and the command line as you. It is shown once, when it is made.",
        "令牌以你的身份访问 API 和命令行；仅在创建时显示一次。",
    ],
    role: ["Role", "角色"],
    made: ["Made", "创建于"],
    expires: ["Expires", "到期"],
    never: ["never", "永不"],
    last_use: ["Last use", "最近使用"],
    add_token: ["Make a token", "创建令牌"],
    tok_must: ["A name is needed", "需要名称"],
    tok_go: ["Make the token", "创建令牌"],
    once: ["This is the only time that token “{0}” is shown.", "令牌“{0}”仅显示这一次。"],
    copy_it: ["Copy the token", "复制令牌"],
    kept_it: ["I have kept it", "已保存"],
    revoke: ["Revoke", "吊销"],
    rv_title: ["Revoke token {0}?", "吊销令牌 {0}？"],
    rv_text: [
        "Whatever uses it is refused from now on: command lines, scripts, and the browsers that were logged in with it.",
        "使用它的命令行、脚本以及以它登录的浏览器将立即被拒绝。",
    ],
    rv_go: ["Revoke the token", "吊销令牌"],
    rv_done: ["The token opens nothing any more", "令牌已失效"],
    this_one: ["this browser's", "本浏览器所用"],
    licences: ["Licences of what these pages are made of", "本页面所用软件的许可证"],
    sessions: ["Browsers that are logged in", "已登录的浏览器"],
    agent: ["Browser", "浏览器"],
    here: ["here", "当前"],
    show_all: ["Show all {0}", "显示全部 {0} 个"],
    since: ["Since", "自"],
    end: ["Log out", "退出登录"],
    se_title: ["Log that browser out?", "让该浏览器退出登录？"],
    se_text: [
        "{0}, used {1}. What is typed in there and not sent is lost.",
        "{0}，最近使用 {1}。其中尚未提交的输入将丢失。",
    ],
    se_go: ["Log it out", "退出登录"],
    se_done: ["It is logged out", "已退出登录"],
    secrets: ["My secrets", "我的密钥"],
    secrets_text: [
        "Jobs that name a secret get its value as a variable. The value is never shown again, here or elsewhere.",
        "作业按名称引用密钥，值以环境变量传入；此后任何地方都不再显示其值。",
    ],
    size: ["Size", "大小"],
    changed: ["Changed", "修改于"],
    set: ["Set a secret", "设置密钥"],
    set_go: ["Keep the secret", "保存密钥"],
    set_done: ["Secret {0} is kept", "已保存密钥 {0}"],
    set_must: ["A name and a value are needed", "需要名称和值"],
    value: ["Value", "值"],
    rm: ["Remove", "移除"],
    rm_title: ["Remove secret {0}?", "移除密钥 {0}？"],
    rm_text: [
        "Jobs that name it are refused from now on; what runs keeps its copy.",
        "引用它的新作业将被拒绝；运行中的作业保留副本。",
    ],
    rm_go: ["Remove the secret", "移除密钥"],
    rm_done: ["The secret is gone", "密钥已移除"],
    none_tokens: ["No tokens", "没有令牌"],
    none_secrets: ["No secrets", "没有密钥"],
});

const expiry = (x: { expires_at: string | null }) =>
    x.expires_at ? <Time at={x.expires_at} /> : <span class="dim">{w("never")}</span>;

function Look() {
    return (
        <Panel title={w("look")}>
            <div class="set-rows">
                <span class="mid">{w("language")}</span>
                <Seg
                    label={w("language")}
                    value={lang.value}
                    onChange={setLang}
                    of={[
                        { value: "en", says: <span lang="en">English</span> },
                        { value: "zh", says: <span lang="zh">中文</span> },
                    ]}
                />
                <span class="mid">{t("theme")}</span>
                <Seg
                    label={t("theme")}
                    value={theme.value}
                    onChange={setTheme}
                    of={[
                        { value: "light", says: t("theme_light") },
                        { value: "dark", says: t("theme_dark") },
                        { value: "system", says: t("theme_system") },
                    ]}
                />
                <span class="mid">{w("single")}</span>
                <Seg
                    label={w("single")}
                    value={letters.value ? "on" : "off"}
                    onChange={(v) => setLetters(v === "on")}
                    of={[
                        { value: "on", says: w("on") },
                        { value: "off", says: w("off") },
                    ]}
                />
            </div>
        </Panel>
    );
}

const ROLES = ["viewer", "user", "admin"] as const;

function addToken(made: (token: Token) => void) {
    const name = signal("");
    const role = signal<(typeof ROLES)[number]>((session.value?.role as "user") ?? "user");
    const expires = signal("90d");
    const may = ROLES.slice(0, ROLES.indexOf((session.value?.role as "user") ?? "viewer") + 1);
    ask({
        title: w("add_token"),
        act: w("tok_go"),
        missing: () => (name.value.trim() ? "" : w("tok_must")),
        cli: () =>
            `argus token add --name ${shell(name.value.trim() || "NAME")} --role ${role.value}` +
            (expires.value.trim() ? ` --expires ${shell(expires.value.trim())}` : ""),
        body: (
            <>
                <p>{w("tokens_text")}</p>
                <div class="form in-dialog">
                    <fieldset>
                        <Field label={t("name")} code="name" of={name} first />
                        <Choose
                            wide={3}
                            label={w("role")}
                            of={role}
                            choices={may.map((r) => ({ value: r, says: r }))}
                        />
                        <Field wide={3} label={w("expires")} of={expires} list={["30d", "90d", "365d"]} />
                    </fieldset>
                </div>
            </>
        ),
        does: async () =>
            made(
                await call("POST /v1/tokens", {
                    body: {
                        name: name.value.trim(),
                        role: role.value,
                        ...(expires.value.trim() && { expires: expires.value.trim() }),
                    },
                }),
            ),
    });
}

function Tokens() {
    const asked = useAsk("GET /v1/tokens", {}, { topics: ["events"] });
    const [made, setMade] = useState<Token | null>(null);
    const rows = asked.data?.tokens;
    const add = () =>
        addToken((x) => {
            setMade(x);
            asked.again();
        });
    useDo({ token: session.value?.role !== "viewer" && add });
    const revoke = (x: Token) =>
        ask({
            title: w("rv_title", x.name || x.id),
            act: w("rv_go"),
            isBad: true,
            cli: `argus token revoke ${shell(x.id)}`,
            body: <p>{w("rv_text")}</p>,
            does: async () => {
                await call("DELETE /v1/tokens/{token}", { path: { token: x.id } });
                asked.again();
            },
            done: w("rv_done"),
        });
    const cols: Col<Token>[] = [
        {
            key: "name",
            title: t("name"),
            draw: (x) => (
                <>
                    <span class="name">
                        <Text of={x.name || x.id} />
                    </span>
                    {x.id === session.value?.token_id && <span class="dim"> · {w("this_one")}</span>}
                </>
            ),
        },
        { key: "role", title: w("role"), width: 84, draw: (x) => x.role },
        { key: "created_at", title: w("made"), width: 110, wide: true, draw: (x) => <Time at={x.created_at} /> },
        { key: "expires_at", title: w("expires"), width: 110, draw: expiry },
        {
            key: "last_use_at",
            title: w("last_use"),
            width: 110,
            wide: true,
            draw: (x) => <Time at={x.last_use_at} as="ago" />,
        },
        {
            key: "deed",
            title: "",
            width: 110,
            draw: (x) => (
                <button
                    type="button"
                    class="btn bare bad"
                    aria-label={`${w("revoke")} ${x.name || x.id}`}
                    onClick={() => revoke(x)}
                >
                    {w("revoke")}
                </button>
            ),
        },
    ];
    return (
        <Panel
            bare
            id="tokens"
            title={w("tokens")}
            count={rows?.length}
            end={
                session.value?.role !== "viewer" && (
                    <button type="button" class="btn act" onClick={add}>
                        <Icon name="plus" />
                        {w("add_token")}
                    </button>
                )
            }
        >
            {made?.token && (
                <div class="note ok set-once" role="status">
                    <Icon name="succeeded" />
                    <div class="grow">
                        <p>{w("once", made.name || made.id)}</p>
                        <p class="mono set-token">{visible(made.token)}</p>
                    </div>
                    <button type="button" class="btn" onClick={() => void copy(made.token!)}>
                        <Icon name="copy" />
                        {w("copy_it")}
                    </button>
                    <button type="button" class="btn bare" onClick={() => setMade(null)}>
                        {w("kept_it")}
                    </button>
                </div>
            )}
            {asked.why || !rows ? (
                <Pending of={asked} lines={3} />
            ) : rows.length ? (
                <Table label={w("tokens")} rows={rows} cols={cols} keyOf={(x) => x.id} />
            ) : (
                <Blank title={w("none_tokens")}>{w("tokens_text")}</Blank>
            )}
        </Panel>
    );
}

const FEW = 6;

function Sessions() {
    const asked = useAsk("GET /v1/sessions", {}, { topics: ["events"] });
    const all = asked.data?.sessions.toSorted(
        (a, b) =>
            Number(b.id === session.value?.id) - Number(a.id === session.value?.id) ||
            ms(b.last_use_at) - ms(a.last_use_at),
    );
    const whole = query.value.get("sessions") === "all";
    const rows = whole ? all : all?.slice(0, FEW);
    const end = (x: Session) =>
        ask({
            title: w("se_title"),
            act: w("se_go"),
            isBad: true,
            cli: `argus session end ${shell(x.id)}`,
            body: <p>{w("se_text", visible(x.agent ?? "?"), x.last_use_at ?? "–")}</p>,
            does: async () => {
                await call("DELETE /v1/sessions/{session}", { path: { session: x.id } });
                asked.again();
            },
            done: w("se_done"),
        });
    const cols: Col<Session>[] = [
        {
            key: "agent",
            title: w("agent"),
            draw: (x) => (
                <>
                    <span title={visible(x.agent ?? "")}>
                        <Text of={x.agent} />
                    </span>
                    {x.id === session.value?.id && <b> · {w("here")}</b>}
                </>
            ),
        },
        { key: "created_at", title: w("since"), width: 110, wide: true, draw: (x) => <Time at={x.created_at} /> },
        { key: "last_use_at", title: w("last_use"), width: 110, draw: (x) => <Time at={x.last_use_at} as="ago" /> },
        { key: "expires_at", title: w("expires"), width: 110, wide: true, draw: expiry },
        {
            key: "deed",
            title: "",
            width: 110,
            draw: (x) =>
                x.id !== session.value?.id && (
                    <button
                        type="button"
                        class="btn bare bad"
                        aria-label={`${w("end")} ${x.id}`}
                        onClick={() => end(x)}
                    >
                        {w("end")}
                    </button>
                ),
        },
    ];
    return (
        <Panel bare id="sessions" title={w("sessions")} count={all?.length} end={<Cli line="argus session ls" />}>
            {asked.why || !rows ? (
                <Pending of={asked} lines={2} />
            ) : (
                <>
                    <Table label={w("sessions")} rows={rows} cols={cols} keyOf={(x) => x.id} />
                    {!whole && all!.length > FEW && (
                        <p class="note-row">
                            <button type="button" class="btn" onClick={() => setQuery({ sessions: "all" })}>
                                {w("show_all", all!.length)}
                            </button>
                        </p>
                    )}
                </>
            )}
        </Panel>
    );
}

function Secrets() {
    const asked = useAsk("GET /v1/secrets", {}, { topics: ["events"] });
    const rows = asked.data?.secrets;
    const set = () => {
        const name = signal("");
        const value = signal("");
        ask({
            title: w("set"),
            act: w("set_go"),
            missing: () => (name.value.trim() && value.value ? "" : w("set_must")),
            cli: () => `argus secret set ${shell(name.value.trim() || "NAME")}`,
            body: (
                <>
                    <p>{w("secrets_text")}</p>
                    <div class="form in-dialog">
                        <fieldset>
                            <Field label={t("name")} code="name" of={name} placeholder="WANDB_API_KEY" first />
                            <Field label={w("value")} of={value} kind="password" />
                        </fieldset>
                    </div>
                </>
            ),
            does: async () => {
                await call("PUT /v1/secrets/{name}", {
                    path: { name: name.value.trim() },
                    body: { value: value.value },
                });
                asked.again();
            },
            done: () => w("set_done", name.value.trim()),
        });
    };
    const remove = (x: Secret) =>
        ask({
            title: w("rm_title", x.name),
            act: w("rm_go"),
            isBad: true,
            cli: `argus secret rm ${shell(x.name)}`,
            body: <p>{w("rm_text")}</p>,
            does: async () => {
                await call("DELETE /v1/secrets/{name}", { path: { name: x.name } });
                asked.again();
            },
            done: w("rm_done"),
        });
    const cols: Col<Secret>[] = [
        {
            key: "name",
            title: t("name"),
            draw: (x) => (
                <>
                    <Text of={x.name} mono />
                    {x.project && (
                        <span class="dim">
                            {" "}
                            · <Text of={x.project} />
                        </span>
                    )}
                </>
            ),
        },
        { key: "bytes", title: w("size"), width: 84, num: true, wide: true, draw: (x) => bytes(x.bytes) },
        {
            key: "changed_at",
            title: w("changed"),
            width: 110,
            draw: (x) => <Time at={x.changed_at ?? x.created_at} as="ago" />,
        },
        {
            key: "last_use_at",
            title: w("last_use"),
            width: 110,
            wide: true,
            draw: (x) => <Time at={x.last_use_at} as="ago" />,
        },
        {
            key: "deed",
            title: "",
            width: 110,
            draw: (x) =>
                !x.project && (
                    <button
                        type="button"
                        class="btn bare bad"
                        aria-label={`${w("rm")} ${x.name}`}
                        onClick={() => remove(x)}
                    >
                        {w("rm")}
                    </button>
                ),
        },
    ];
    return (
        <Panel
            bare
            id="secrets"
            title={w("secrets")}
            count={rows?.length}
            end={
                session.value?.role !== "viewer" && (
                    <button type="button" class="btn act" onClick={set}>
                        <Icon name="plus" />
                        {w("set")}
                    </button>
                )
            }
        >
            {asked.why || !rows ? (
                <Pending of={asked} lines={2} />
            ) : rows.length ? (
                <Table label={w("secrets")} rows={rows} cols={cols} keyOf={(x) => `${x.project ?? ""}/${x.name}`} />
            ) : (
                <Blank title={w("none_secrets")}>{w("secrets_text")}</Blank>
            )}
        </Panel>
    );
}

export default function Settings() {
    const own = session.value;
    return (
        <>
            <Head title={t("settings")} sub={own && w("sub", own.user, own.role)} cli="argus token ls" />
            <div class="cols">
                <Look />
                <Tokens />
                <Sessions />
                <Secrets />
            </div>
            <p class="small dim">
                <a class="link" href="/licenses.txt" target="_blank" rel="noreferrer">
                    {w("licences")}
                </a>
            </p>
        </>
    );
}
