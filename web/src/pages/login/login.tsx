// SPDX-License-Identifier: Apache-2.0
// login.tsx - a token once; from then on a cookie that no script reads. Nothing of the token is kept here.
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
});

export function Login() {
    const field = useRef<HTMLInputElement>(null);
    const [why, setWhy] = useState("");
    const [busy, setBusy] = useState(false);
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
            await logIn(token);
        } catch (x) {
            setWhy(x instanceof Refusal ? x.detail : String(x));
            setBusy(false);
            field.current?.select();
        }
    };
    return (
        <main class="login">
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
