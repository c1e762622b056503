// Pages that stay true while they are open: what has changed is put in place, and a lost service is waited for. Nothing needs it.
"use strict";

const pause = (milliseconds) => new Promise((done) => setTimeout(done, milliseconds));

async function awhile(milliseconds) {
  // A page that nobody looks at asks nothing.
  await pause(milliseconds);
  while (document.hidden) await new Promise((seen) => document.addEventListener("visibilitychange", seen, { once: true }));
}

const reconnecting = "The service does not answer. Reconnecting…";
const connection = {
  note: null,
  words: reconnecting,
  tell(words) {
    if (!this.note) {
      this.note = document.createElement("p");
      this.note.className = "notice reconnecting";
      this.note.setAttribute("role", "status");
      document.getElementById("main").prepend(this.note);
    }
    if (this.note.textContent !== words) this.note.textContent = words;
  },
  lost() {
    this.tell(this.words);
  },
  held() {
    this.words = "The service does not answer. Nothing was sent: try again in a moment.";
    this.lost();
  },
  found() {
    this.note?.remove();
    this.note = null;
    this.words = reconnecting;
  },
};

async function ask(address) {
  // An answer of the service, or an error; whether it can be reached is told on the page.
  let answer;
  try {
    answer = await fetch(address, { cache: "no-store" });
  } catch (error) {
    connection.lost();
    throw error;
  }
  if (answer.redirected) connection.tell("You are signed out. Reload this page to sign in again.");
  else if (answer.status >= 500) connection.lost();
  else connection.found();
  if (!answer.ok || answer.redirected) throw new Error(String(answer.status));
  return answer;
}

function say(words) {
  // For those who listen to a page: politely, and only what is new.
  let place = document.getElementById("announced");
  if (!place) {
    place = document.createElement("p");
    place.id = "announced";
    place.className = "unseen";
    place.setAttribute("role", "status");
    document.body.append(place);
  }
  place.textContent = words;
}

const handles = "a[href], button, input, select, textarea, summary, [tabindex]";
const nameOf = (element) =>
  element.id || element.getAttribute("aria-label") || element.getAttribute("href") || element.name || element.textContent.trim();

const fields = "input:not([type=hidden]), textarea, select";

function isChanged(field) {
  // Whether a person has typed or chosen something there; what the server drew may be drawn anew.
  if (field.matches("select")) {
    const drawn = [...field.options].findIndex((option) => option.defaultSelected);
    return field.selectedIndex !== Math.max(drawn, 0);
  }
  return field.value !== field.defaultValue || field.checked !== field.defaultChecked;
}

function replace(part, markup) {
  // What a person has opened, scrolled to, focused or typed stays as it is.
  const active = part.contains(document.activeElement) ? document.activeElement : null;
  const focused = active && nameOf(active);
  const open = [...part.querySelectorAll("details[open]")].map((one) => nameOf(one.querySelector("summary")));
  const typed = [...part.querySelectorAll(fields)].filter(isChanged).map((one) => [nameOf(one), one.value, one.checked]);
  const scrolled = [...part.querySelectorAll(".wide")].map((one) => one.scrollLeft);
  const place = window.scrollY;
  part.innerHTML = markup;
  for (const one of part.querySelectorAll("details")) if (open.includes(nameOf(one.querySelector("summary")))) one.open = true;
  for (const [name, value, checked] of typed) {
    const field = [...part.querySelectorAll(fields)].find((one) => nameOf(one) === name);
    if (field?.type === "checkbox" || field?.type === "radio") field.checked = checked;
    else if (field) field.value = value;
  }
  part.querySelectorAll(".wide").forEach((one, index) => (one.scrollLeft = scrolled[index] || 0));
  if (active) [...part.querySelectorAll(handles)].find((one) => nameOf(one) === focused)?.focus({ preventScroll: true });
  if (window.scrollY !== place) window.scrollTo({ top: place, behavior: "instant" });
}

const liveParts = () => [...document.querySelectorAll("[data-live]")];
// What changes by itself is no news: the proofs of forms, a countdown, and the line that is now.
const stable = (part) =>
  part.innerHTML
    .replace(/<input type="hidden"[^>]*>/g, "")
    .replace(/(<span class="countdown"[^>]*>)[^<]*/g, "$1")
    .replace(/<g class="now">.*?<\/g>/gs, "");

function remember() {
  for (const part of liveParts()) part.dataset.drawn ||= stable(part);
}

async function redraw(address) {
  // The server draws; what has changed is put in place. True if anything has that is news.
  const answer = await ask(address);
  const fresh = new DOMParser().parseFromString(await answer.text(), "text/html");
  const script = (page) => page.querySelector("script[src*='/live.js']")?.getAttribute("src");
  if (script(fresh) && script(fresh) !== script(document) && !document.activeElement?.matches("input, textarea, select")) {
    location.reload(); // the service has been updated meanwhile
    return false;
  }
  let changed = false;
  for (const part of liveParts()) {
    const other = fresh.getElementById(part.id);
    if (!other || stable(other) === part.dataset.drawn || part.querySelector("[data-sending]")) continue;
    part.dataset.drawn = stable(other);
    replace(part, other.innerHTML);
    part.querySelectorAll("[data-until]").forEach(countDown);
    if (!("quiet" in part.dataset)) changed = true;
  }
  document.title = fresh.title;
  const onward = document.querySelector("a[data-leads-on]");
  if (onward) location.replace(onward.href);
  return changed;
}

async function watch(section) {
  // Drawn again as long as someone looks at it: at once after a change, ever less often while nothing changes.
  remember();
  const least = Number(section.dataset.every) || 3000;
  let wait = least;
  for (;;) {
    await awhile(wait);
    try {
      const changed = await redraw(section.dataset.watch || location.pathname + location.search);
      if (changed) say(section.dataset.says || "This page was updated.");
      wait = changed ? least : Math.min(wait * 1.3, 5 * least);
    } catch {
      wait = Math.min(wait * 1.5, 10000); // the service may be starting again
    }
  }
}

async function watchLogin(section) {
  // While a person types, the question is the same, so nothing is drawn anew under their hands.
  let seen = section.dataset.version;
  remember();
  for (;;) {
    await awhile(/^(waiting|visiting)/.test(seen) ? 400 : 2000);
    try {
      const version = await (await ask(`${section.dataset.login}/state`)).text();
      if (version === seen) continue;
      await redraw(section.dataset.login);
      seen = version;
      section.querySelector("[autofocus]")?.focus();
    } catch {
      await pause(3000); // the service may be starting again
    }
  }
}

document.querySelectorAll("[data-login]").forEach(watchLogin);
document.querySelectorAll("[data-watch]").forEach(watch);
