// A session's page tells before the end: in the title, and by a notification of the browser if one was asked for. Nothing needs it.
"use strict";

{
  const ending = document.getElementById("ending");
  const offer = document.querySelector("[data-notify]");
  const known = "Notification" in window ? () => Notification.permission : () => "denied";
  const address = document.querySelector("[data-session]")?.dataset.session;
  let told = "";

  const tell = (part) => {
    const words = part?.querySelector("[data-warning]")?.textContent ?? "";
    if (words && words !== told && known() === "granted") new Notification("Sublet", { body: words, tag: address });
    told = words;
  };

  const lookWhileHidden = async () => {
    // Pages that nobody looks at are not drawn anew; the end of a session does not wait for that.
    for (;;) {
      await pause(20000);
      if (!document.hidden || known() !== "granted") continue;
      try {
        const page = new DOMParser().parseFromString(await (await ask(address)).text(), "text/html");
        tell(page.getElementById("ending"));
      } catch {
        continue; // the service may be starting again
      }
    }
  };

  if (ending && offer && address) {
    offer.hidden = known() !== "default";
    offer.querySelector("button").addEventListener("click", async () => {
      await Notification.requestPermission();
      offer.hidden = true;
      tell(ending);
    });
    new MutationObserver(() => tell(ending)).observe(ending, { childList: true, subtree: true });
    tell(ending);
    lookWhileHidden();
  }
}
