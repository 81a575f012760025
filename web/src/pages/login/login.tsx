// SPDX-License-Identifier: Apache-2.0
// login.tsx - a token or a login link once; from then on a cookie that no script reads. Nothing of either is kept here.
//
// A link is used up by a button that a person presses: what only looks at an address (a preview, a scanner of mails) uses
// it up by nothing, and what stands behind its '#' is sent to no server before that.
import { useRef, useState } from "preact/hooks";
import { logIn, Refusal } from "../../api/client";
import { lang, setLang } from "../../base/prefs";
import { visible } from "../../base/say";
import { words } from "../../base/words";
import { Icon, Mark } from "../../kit/icons";
import { Cli } from "../../kit/parts";

const w = words({
    title: ["Log in to Argus", "登录 Argus"],
    token: ["Token", "令牌"],
    go: ["Log in", "登录"],
    hint: ["Your own: an admin made it, or you did with the command line.", "由管理员发放，或自己用命令行创建。"],
    wrong: ["That did not work", "未能登录"],
    bad_form: ["A token begins with argus_ and has 49 characters.", "令牌以 argus_ 开头，共 49 个字符。"],
    kept: [
        "This browser stays logged in until you log out, or was not used for a day.",
        "登录状态会保持，直到退出登录或一天未使用。",
    ],
    other: ["中文", "EN"],
    by_link: ["This link logs this browser in, once.", "此链接可让本浏览器登录一次。"],
    by_token: ["Log in with a token instead", "改用令牌登录"],
});

/** Taken out of the address at once: it shall not stay in the history. */
function takeLink(): string | null {
    const link = /^#login=([\w-]{20,64})$/.exec(location.hash)?.[1] ?? null;
    if (link) history.replaceState(null, "", location.pathname + location.search);
    return link;
}
const given = takeLink();

function ByLink({ link, other }: { link: string; other: () => void }) {
    const [why, setWhy] = useState("");
    const [busy, setBusy] = useState(false);
    const submit = async (e: Event) => {
        e.preventDefault();
        setBusy(true);
        try {
            await logIn({ link });
        } catch (x) {
            setWhy(x instanceof Refusal ? x.detail : String(x));
            setBusy(false);
        }
    };
    return (
        <form class="panel" onSubmit={(e) => void submit(e)}>
            <span class="brand">
                <Mark />
                <h1>{w("title")}</h1>
            </span>
            <p class={why ? "c-bad" : "dim"} role={why ? "alert" : undefined}>
                {why ? visible(why) : w("by_link")}
            </p>
            <button type="submit" class="btn main big" disabled={busy || !!why} ref={(el) => el?.focus()}>
                {w("go")}
            </button>
            <button type="button" class="btn bare" onClick={other}>
                {w("by_token")}
            </button>
        </form>
    );
}

export function Login() {
    const field = useRef<HTMLInputElement>(null);
    const [why, setWhy] = useState("");
    const [busy, setBusy] = useState(false);
    const [link, setLink] = useState(given);
    const submit = async (e: Event) => {
        e.preventDefault();
        const token = field.current!.value.trim();
        if (!/^argus_[\w-]{43}$/.test(token)) {
            setWhy(w("bad_form"));
            field.current!.focus();
            return;
        }
        setBusy(true);
        try {
            await logIn({ token });
        } catch (x) {
            setWhy(x instanceof Refusal ? x.detail : String(x));
            setBusy(false);
            field.current?.select();
        }
    };
    return (
        <main class="login">
            {link ? (
                <ByLink link={link} other={() => setLink(null)} />
            ) : (
                <form class="panel" onSubmit={(e) => void submit(e)} noValidate>
                    <span class="brand">
                        <Mark />
                        <h1>{w("title")}</h1>
                    </span>
                    <label>
                        <span>{w("token")}</span>
                        <input
                            ref={field}
                            class={`field mono ${why ? "wrong" : ""}`}
                            type="password"
                            name="token"
                            autocomplete="current-password"
                            autofocus
                            required
                            aria-invalid={!!why}
                            aria-describedby="login-says"
                            placeholder="argus_…"
                        />
                    </label>
                    <p id="login-says" class={why ? "c-bad" : "dim"} role={why ? "alert" : undefined}>
                        {why ? (
                            <>
                                {w("wrong")}: {visible(why)}
                            </>
                        ) : (
                            w("hint")
                        )}
                    </p>
                    <button type="submit" class="btn main big" disabled={busy}>
                        {w("go")}
                    </button>
                    <div class="login-foot">
                        <Cli line="argus token add --name browser" />
                        <p class="small dim">{w("kept")}</p>
                    </div>
                </form>
            )}
            <button
                type="button"
                class="btn bare"
                lang={lang.value === "zh" ? "en" : "zh"}
                onClick={() => setLang(lang.value === "zh" ? "en" : "zh")}
            >
                <Icon name="users" />
                {w("other")}
            </button>
        </main>
    );
}
