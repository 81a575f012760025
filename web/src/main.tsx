// SPDX-License-Identifier: Apache-2.0
// main.tsx - the start: who is logged in here, then the shell, or the login over nothing.
import { render } from "preact";
import "./style/tokens.css";
import "./style/base.css";
import "./style/components.css";
import "./style/more.css";
import "./api/own";
import { findSession, session } from "./api/client";
import { followChanges } from "./api/live";
import { listenToKeys } from "./base/keys";
import { followLinks } from "./base/url";
import { Refused } from "./kit/blank";
import { Login } from "./pages/login/login";
import { Shell } from "./shell/shell";

function App() {
    if (session.value === undefined) return null;
    return session.value ? <Shell /> : <Login />;
}

const root = document.getElementById("app")!;

function start() {
    findSession().then(
        () => render(<App />, root),
        (e: unknown) => render(<Refused why={e} again={() => location.reload()} />, root),
    );
}

followLinks();
listenToKeys();
followChanges();
start();
