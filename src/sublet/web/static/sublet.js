// What a page can do on top of its HTML: times in the browser's zone, a countdown, a live log, a login's questions. Nothing needs it.
"use strict";

const root = document.documentElement;
root.classList.add("scripted");

function tellZone() {
  // The server writes times in this zone from now on; a page that was drawn in another is drawn once more.
  const zone = Intl.DateTimeFormat().resolvedOptions().timeZone || "UTC";
  const wanted = `sublet_zone=${zone}`;
  if (root.dataset.zone === zone || document.cookie.split("; ").includes(wanted)) return;
  document.cookie = `${wanted}; path=/web; max-age=31536000; samesite=strict`;
  if (root.dataset.zone && document.cookie.split("; ").includes(wanted)) location.reload();
}

function countDown(shown) {
  const until = Date.parse(shown.dataset.until);
  const tick = () => {
    const left = Math.max(0, Math.round((until - Date.now()) / 1000));
    const minutes = Math.floor(left / 60);
    shown.textContent = left ? `(${minutes ? `${minutes}m ` : ""}${left % 60}s left)` : "(expired)";
    if (left) setTimeout(tick, 1000);
    else location.reload();
  };
  if (until > Date.now()) tick();
}

const escapes = /\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)|[@-Z\\-_])/g;
const most = 2000000; // characters that are kept on the page

class Log {
  constructor(pre, base) {
    this.pre = pre;
    this.address = `${base}/log?stream=${pre.dataset.stream}&offset=`;
    this.next = Number(pre.dataset.next);
    this.ended = "ended" in pre.dataset;
    this.decoder = new TextDecoder();
    this.changed = "";
  }

  async read() {
    const answer = await fetch(this.address + this.next, { cache: "no-store" });
    if (!answer.ok || answer.redirected) throw new Error(String(answer.status));
    const bytes = await answer.arrayBuffer();
    this.next = Number(answer.headers.get("sublet-next-offset"));
    this.ended = answer.headers.get("sublet-ended") === "true";
    this.changed = answer.headers.get("sublet-changed");
    this.show(this.decoder.decode(bytes, { stream: true }));
    return bytes.byteLength;
  }

  show(added) {
    if (!added) return;
    const pre = this.pre;
    const atEnd = pre.scrollHeight - pre.scrollTop - pre.clientHeight < 40;
    const text = (pre.textContent + added).replace(escapes, "").replaceAll("\r\n", "\n");
    pre.textContent = text.replace(/[^\n]*\r(?!\n|$)/g, "").slice(-most);
    pre.parentElement.hidden = false;
    if (atEnd) pre.scrollTop = pre.scrollHeight;
  }
}

async function redraw(address) {
  // The server draws; what has changed is put in place, and an open panel that has not changed stays open.
  const answer = await fetch(address, { cache: "no-store" });
  if (!answer.ok || answer.redirected) throw new Error(String(answer.status));
  const fresh = new DOMParser().parseFromString(await answer.text(), "text/html");
  for (const part of document.querySelectorAll("[data-live]")) {
    const other = fresh.getElementById(part.id);
    if (other && other.innerHTML !== part.dataset.drawn) {
      part.dataset.drawn = other.innerHTML;
      part.innerHTML = other.innerHTML;
    }
  }
  document.title = fresh.title;
}

async function follow(session) {
  const logs = [...session.querySelectorAll("[data-stream]")].map((pre) => new Log(pre, session.dataset.session));
  for (const part of document.querySelectorAll("[data-live]")) part.dataset.drawn = part.innerHTML;
  for (const log of logs) log.pre.scrollTop = log.pre.scrollHeight;
  let seen = "";
  let wait = 700;
  for (;;) {
    try {
      let size = 0;
      for (const log of logs) size += await log.read();
      if (logs[0].changed !== seen) {
        seen = logs[0].changed;
        await redraw(session.dataset.session);
      }
      if (logs.every((log) => log.ended)) return;
      wait = size ? 400 : Math.min(wait * 1.3, 2500);
    } catch {
      wait = 5000; // the service may be starting again
    }
    while (document.hidden) await new Promise((done) => setTimeout(done, 500));
    await new Promise((done) => setTimeout(done, wait));
  }
}

async function watchLogin(section) {
  // While a person types, the question is the same, so nothing is drawn anew under their hands.
  let seen = section.dataset.version;
  for (const part of document.querySelectorAll("[data-live]")) part.dataset.drawn = part.innerHTML;
  for (;;) {
    const underWay = /^(waiting|visiting)/.test(seen);
    await new Promise((done) => setTimeout(done, underWay ? 400 : 2000));
    while (document.hidden) await new Promise((done) => setTimeout(done, 500));
    try {
      const answer = await fetch(`${section.dataset.login}/state`, { cache: "no-store" });
      if (!answer.ok || answer.redirected) throw new Error(String(answer.status));
      const version = await answer.text();
      if (version === seen) continue;
      await redraw(section.dataset.login);
      seen = version;
      section.querySelector("[autofocus]")?.focus();
    } catch {
      await new Promise((done) => setTimeout(done, 5000)); // the service may be starting again
    }
  }
}

async function watch(section) {
  // The server draws it again, as often as someone looks at it.
  for (const part of document.querySelectorAll("[data-live]")) part.dataset.drawn = part.innerHTML;
  let wait = 3000;
  for (;;) {
    await new Promise((done) => setTimeout(done, wait));
    while (document.hidden) await new Promise((done) => setTimeout(done, 500));
    try {
      await redraw(section.dataset.watch);
      wait = 3000;
    } catch {
      wait = 10000; // the service may be starting again
    }
  }
}

function offerCopy(button) {
  // Only shown with this script; without it the text can be selected as any other.
  const source = document.getElementById(button.dataset.copy);
  button.hidden = false;
  button.addEventListener("click", async () => {
    try {
      await navigator.clipboard.writeText(source.textContent);
      button.textContent = "Copied";
    } catch {
      getSelection().selectAllChildren(source); // a page that is not served securely may only select it
      button.textContent = "Selected";
    }
    setTimeout(() => (button.textContent = "Copy"), 2000);
  });
}

tellZone();
document.querySelectorAll("[data-copy]").forEach(offerCopy);
document.getElementById("wrong")?.focus();
document.querySelectorAll("[data-until]").forEach(countDown);
document.querySelectorAll("[data-session]:not([data-over])").forEach(follow);
document.querySelectorAll("[data-login]").forEach(watchLogin);
document.querySelectorAll("[data-watch]").forEach(watch);
