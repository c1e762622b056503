// A form is sent once the service answers; else it stays as it was typed, and the page says so. Nothing needs it.
"use strict";

{
  const mark = document.querySelector("link[rel=icon]").href;
  const ready = new WeakSet(); // forms that go now
  const away = [502, 503, 504]; // what a proxy says for a service that is down

  const answers = async () => {
    // Whoever is slow is still there: the browser itself waits for it.
    try {
      const answer = await fetch(mark, { method: "HEAD", cache: "no-store", signal: AbortSignal.timeout(5000) });
      return !away.includes(answer.status);
    } catch (error) {
      return error.name === "TimeoutError";
    }
  };

  const hold = async (event) => {
    const form = event.target;
    if (form.getAttribute("method")?.toLowerCase() !== "post" || ready.delete(form)) return;
    event.preventDefault();
    event.stopImmediatePropagation();
    if ("sending" in form.dataset) return; // clicked twice
    form.dataset.sending = "";
    const there = await answers();
    delete form.dataset.sending;
    if (!there) return connection.held();
    connection.found();
    ready.add(form);
    form.requestSubmit(event.submitter);
    ready.delete(form);
  };

  addEventListener("submit", hold, true);
}
