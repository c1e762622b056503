// What a page can do on top of its HTML: times in the browser's zone, a countdown, buttons that copy. Nothing needs it.
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
    if (!shown.isConnected) return; // the page has been drawn anew
    const left = Math.max(0, Math.round((until - Date.now()) / 1000));
    const minutes = Math.floor(left / 60);
    shown.textContent = left ? `(${minutes ? `${minutes} min ` : ""}${left % 60} s left)` : "(expired)";
    if (left) setTimeout(tick, 1000);
    else location.reload();
  };
  if (until > Date.now()) tick();
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

function sayAsking(button) {
  // Platforms may take seconds to answer: until the next page is here, the form says so, and is sent only once.
  const words = button.textContent;
  const note = document.createElement("span");
  note.className = "asking";
  note.setAttribute("role", "status");
  button.after(note);
  const end = () => {
    button.textContent = words;
    note.textContent = "";
    delete button.form.dataset.asking;
  };
  button.form.addEventListener("submit", (event) => {
    if (button.form.dataset.asking) return event.preventDefault();
    if (event.submitter && event.submitter !== button) return;
    button.form.dataset.asking = "yes";
    button.textContent = "Asking…";
    note.textContent = "Asking the platforms. This can take a few seconds.";
  });
  addEventListener("pageshow", end); // also when someone comes back to this page
}

tellZone();
document.querySelectorAll("[data-asks]").forEach(sayAsking);
document.querySelectorAll("[data-copy]").forEach(offerCopy);
document.getElementById("wrong")?.focus();
document.querySelectorAll("[data-until]").forEach(countDown);
