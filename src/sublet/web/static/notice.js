// Shown in the pages of applications before their session ends: in the corner, out of reach of their styles; it can be closed.
(() => {
  "use strict";
  const source = document.currentScript.src.replace(/\.js$/, "");
  const seen = new Set();
  let shown = null;
  function show(notice) {
    const words = `This session ends at ${new Date(notice.ends).toLocaleTimeString([], { timeStyle: "short" })}. `
      + "What is not saved by then is lost.";
    shown?.remove();
    shown = document.createElement("div");
    const place = shown.attachShadow({ mode: "open" });
    const box = document.createElement("div");
    box.setAttribute("role", "alert");
    const style = { position: "fixed", right: "1rem", bottom: "1rem", zIndex: "2147483647", maxWidth: "min(24rem, 90vw)",
      padding: "0.75rem 1rem", borderRadius: "0.5rem", background: "#7a2e00", color: "#fff",
      font: "15px/1.4 system-ui, sans-serif", boxShadow: "0 2px 12px #0006" };
    Object.assign(box.style, style);
    const text = document.createElement("p");
    text.textContent = words;
    text.style.margin = "0 0 0.5rem";
    const extend = document.createElement("a");
    extend.href = notice.page;
    extend.target = "_blank";
    extend.rel = "noopener";
    extend.textContent = "Extend it on its page";
    const close = document.createElement("button");
    close.textContent = "Close";
    for (const each of [extend, close]) Object.assign(each.style, { color: "inherit", font: "inherit", background: "none",
      border: "0", padding: "0.25rem 1rem 0.25rem 0", cursor: "pointer", textDecoration: "underline" });
    close.addEventListener("click", () => { seen.add(notice.ends); shown.remove(); shown = null; });
    box.append(text, extend, close);
    place.append(box);
    document.body.append(shown);
  }
  async function look() {
    let wait = 60000;
    try {
      const answer = await fetch(source, { cache: "no-store" });
      if (answer.ok) {
        const notice = await answer.json();
        if (notice.warned && !seen.has(notice.ends)) show(notice);
        else { shown?.remove(); shown = null; }
        const left = Date.parse(notice.ends) - Date.now();
        if (left > 0) wait = Math.min(wait, Math.max(2000, left / 8));
      }
    } catch { /* the service may be starting again */ }
    setTimeout(look, wait);
  }
  look();
})();
