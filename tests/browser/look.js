// What a careful reader of a page would object to; an empty list is praise.
(phone) => {
  const wrong = [];
  const shown = (e) => e.checkVisibility({ visibilityProperty: true }) && e.getBoundingClientRect().width > 1;
  const name = (e) => `${e.tagName.toLowerCase()}${e.id ? "#" + e.id : ""} "${e.textContent.trim().slice(0, 30)}"`;

  for (const e of document.querySelectorAll("input:not([type=hidden]), select, textarea"))
    if (!e.labels.length && !e.ariaLabel) wrong.push(`no label: ${name(e)}`);
  for (const e of document.querySelectorAll("button, a"))
    if (!(e.ariaLabel || e.textContent).trim()) wrong.push(`nothing to read: ${e.outerHTML.slice(0, 80)}`);
  if (document.querySelectorAll("h1").length !== 1) wrong.push("not exactly one h1");
  for (const mark of ["header", "main", "footer", "nav[aria-label]"])
    if (document.querySelectorAll(mark).length < 1) wrong.push(`no ${mark}`);
  if (!document.documentElement.lang || !document.title) wrong.push("no language or title");
  let level = 1;
  for (const e of document.querySelectorAll("h1, h2, h3, h4")) {
    const next = Number(e.tagName[1]);
    if (next > level + 1) wrong.push(`a level is left out before ${name(e)}`);
    level = next;
  }
  for (const e of document.querySelectorAll("main svg"))
    if (e.role !== "img" || !e.querySelector("title") || !e.querySelector("desc")) wrong.push("a drawing without title");
  const ids = [...document.querySelectorAll("[id]")].map((e) => e.id);
  for (const id of new Set(ids.filter((id, i) => ids.indexOf(id) !== i))) wrong.push(`two are called ${id}`);
  for (const e of document.querySelectorAll("[aria-labelledby], [aria-describedby]"))
    for (const id of `${e.getAttribute("aria-labelledby") || ""} ${e.getAttribute("aria-describedby") || ""}`.split(/\s+/))
      if (id && !document.getElementById(id)) wrong.push(`${name(e)} points to ${id}, which is not there`);

  const numbers = (colour) => (colour.match(/[\d.]+/g) || []).map(Number);
  const light = ([r, g, b]) =>
    [r, g, b].map((v) => v / 255).map((v) => (v <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4))
      .reduce((sum, v, i) => sum + v * [0.2126, 0.7152, 0.0722][i], 0);
  const behind = (e) => {
    for (; e; e = e.parentElement) {
      const colour = numbers(getComputedStyle(e).backgroundColor);
      if (colour.length === 3 || colour[3] > 0.99) return colour;
    }
    return [255, 255, 255];
  };
  for (const e of document.querySelectorAll("body *")) {
    const says = [...e.childNodes].some((n) => n.nodeType === 3 && n.textContent.trim());
    if (!says || !shown(e) || e.closest("svg")) continue;
    const style = getComputedStyle(e);
    const [a, b] = [light(numbers(style.color)), light(behind(e))].sort((x, y) => y - x);
    const ratio = (a + 0.05) / (b + 0.05);
    if (ratio < 4.5) wrong.push(`contrast ${ratio.toFixed(2)}: ${name(e)}`);
  }
  if (document.documentElement.scrollWidth > innerWidth) wrong.push(`wider than the screen: ${document.documentElement.scrollWidth}`);
  if (phone)
    for (const e of document.querySelectorAll("button, .button, select, summary, nav a, input:not([type=hidden]):not([type=radio]), textarea")) {
      const box = e.getBoundingClientRect();
      if (shown(e) && box.height < 43.5) wrong.push(`only ${box.height} high: ${name(e)}`);
    }
  return wrong;
}
