// SPDX-License-Identifier: Apache-2.0
// first.js - theme and language before the first paint, so that nothing flashes.
(function () {
    var root = document.documentElement;
    var theme = null;
    var lang = null;
    try {
        theme = localStorage.getItem("argus.theme");
        lang = localStorage.getItem("argus.lang");
    } catch {
        // A browser that keeps nothing gets the system's.
    }
    if (theme !== "light" && theme !== "dark")
        theme = matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light";
    if (lang !== "en" && lang !== "zh") lang = /^zh/i.test(navigator.language) ? "zh" : "en";
    root.dataset.theme = theme;
    root.lang = lang === "zh" ? "zh-CN" : "en";
})();
