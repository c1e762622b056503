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
    shown.textContent = left ? `(${minutes ? `${minutes}m ` : ""}${left % 60}s left)` : "(expired)";
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

tellZone();
document.querySelectorAll("[data-copy]").forEach(offerCopy);
document.getElementById("wrong")?.focus();
document.querySelectorAll("[data-until]").forEach(countDown);
