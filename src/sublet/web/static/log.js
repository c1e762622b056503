// A session's page: its log, the end first, with a bounded part of it on the page; and its phases, live. Nothing needs it.
"use strict";

const piece = 32768; // bytes that are asked for at once when one scrolls
const most = 8 * piece; // bytes that are on the page
const newline = 10;
const escapes = /\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)|[@-Z\\-_])/g;

function clean(bytes) {
  // As a terminal would show it: no colour codes, and of a line that was written over the last state only.
  const text = new TextDecoder().decode(bytes).replace(escapes, "").replaceAll("\0", "");
  if (!text.includes("\r")) return text;
  const last = (line) => line.slice(line.lastIndexOf("\r", line.length - 2) + 1);
  return text.replaceAll("\r\n", "\n").split("\n").map((line) => (line.includes("\r") ? last(line) : line)).join("\n");
}

function joined(first, second) {
  const all = new Uint8Array(first.length + second.length);
  all.set(first);
  all.set(second, first.length);
  return all;
}

class Log {
  constructor(pre, base) {
    this.pre = pre;
    this.address = `${base}/log?stream=${pre.dataset.stream}`;
    this.start = Number(pre.dataset.start); // the first byte that is on the page
    this.next = Number(pre.dataset.next); // the byte after the last one
    this.ended = "ended" in pre.dataset;
    this.atEnd = "tail" in pre.dataset; // whether all to the end is on the page
    this.pending = new Uint8Array(); // a line that has not ended yet
    this.chunks = [{ node: this.span(pre.textContent), start: this.start, size: this.next - this.start }];
    pre.replaceChildren(this.chunks[0].node);
    this.last = pre.appendChild(this.span(""));
    this.busy = false;
    this.changed = "";
    pre.addEventListener("scroll", () => this.scrolled(), { passive: true });
    this.jump = pre.parentElement.querySelector("[data-jump]");
    this.jump?.addEventListener("click", (event) => {
      event.preventDefault();
      this.toEnd();
    });
  }

  span(text) {
    const node = document.createElement("span");
    node.textContent = text;
    return node;
  }

  async ask(query) {
    const answer = await ask(this.address + query);
    const bytes = new Uint8Array(await answer.arrayBuffer());
    const header = (name) => answer.headers.get(`sublet-${name}`);
    this.changed = header("changed");
    return { bytes, start: Number(header("offset")), next: Number(header("next-offset")), ended: header("ended") === "true", over: header("over") === "true" };
  }

  async read() {
    // What has been printed since; who reads further up is not disturbed, and what comes faster than it can be read is passed over.
    if (this.busy) return 0;
    if (this.atEnd && !this.follows() && this.size() > most) this.leaveEnd();
    if (!this.atEnd) {
      this.ended = (await this.ask(`&offset=${this.next}&limit=1`)).over;
      return 0;
    }
    let found = await this.ask(`&offset=${this.next}&limit=${4 * piece}`);
    const size = found.bytes.length;
    if (size >= 4 * piece) {
      found = await this.ask(`&tail=${piece}`);
      if (found.start > this.next) this.clear(found.start);
      else found.bytes = found.bytes.subarray(this.next - found.start);
    }
    this.append(found.bytes);
    this.next = found.next;
    this.ended = found.ended;
    return size;
  }

  clear(start) {
    for (const chunk of this.chunks) chunk.node.remove();
    this.chunks = [];
    this.pending = new Uint8Array();
    this.last.textContent = "";
    this.start = this.next = start;
  }

  append(bytes) {
    if (!bytes.length) return;
    const follows = this.follows();
    const all = joined(this.pending, bytes);
    const start = this.next - this.pending.length;
    const cut = all.lastIndexOf(newline) + 1 || (all.length > piece ? all.length : 0);
    if (cut) this.add(all.subarray(0, cut), start);
    this.pending = all.slice(cut);
    this.last.textContent = clean(this.pending);
    this.pre.parentElement.hidden = false;
    if (!follows) return;
    this.drop("first");
    this.pre.scrollTop = this.pre.scrollHeight;
  }

  follows() {
    return this.pre.scrollHeight - this.pre.scrollTop - this.pre.clientHeight < 40;
  }

  size() {
    return this.chunks.reduce((sum, chunk) => sum + chunk.size, 0);
  }

  add(bytes, start) {
    const end = this.chunks.at(-1);
    if (end && end.size + bytes.length < piece) {
      end.node.append(clean(bytes));
      end.size += bytes.length;
      return;
    }
    const node = this.span(clean(bytes));
    this.last.before(node);
    this.chunks.push({ node, start, size: bytes.length });
  }

  drop(which) {
    // Only a part is on the page, however long the log is.
    let size = this.size();
    while (size > most && this.chunks.length > 1) {
      const chunk = which === "first" ? this.chunks.shift() : this.chunks.pop();
      chunk.node.remove();
      size -= chunk.size;
      if (which === "first") this.start = this.chunks[0].start;
      else {
        this.leaveEnd();
        this.next = chunk.start;
      }
    }
  }

  leaveEnd() {
    this.atEnd = false;
    this.next -= this.pending.length;
    this.pending = new Uint8Array();
    this.last.textContent = "";
    if (this.jump) this.jump.hidden = false;
  }

  async scrolled() {
    const pre = this.pre;
    if (this.busy || pre.scrollHeight <= pre.clientHeight) return;
    if (pre.scrollTop < 300 && this.start > 0) await this.once(() => this.earlier());
    else if (pre.scrollHeight - pre.scrollTop - pre.clientHeight < 300 && !this.atEnd) await this.once(() => this.later());
  }

  async once(work) {
    this.busy = true;
    try {
      await work();
    } catch {
      // the service may be starting again: scrolling on tries once more
    } finally {
      this.busy = false;
    }
  }

  async earlier() {
    const found = await this.ask(`&before=${this.start}&limit=${piece}`);
    if (!found.bytes.length) return;
    const height = this.pre.scrollHeight;
    const node = this.span(clean(found.bytes));
    this.pre.prepend(node);
    this.chunks.unshift({ node, start: found.start, size: found.bytes.length });
    this.start = found.start;
    this.pre.scrollTop += this.pre.scrollHeight - height;
    this.drop("last");
  }

  async later() {
    const found = await this.ask(`&offset=${this.next}&limit=${piece}`);
    const whole = found.bytes.length < piece ? found.bytes.length : found.bytes.lastIndexOf(newline) + 1 || found.bytes.length;
    this.add(found.bytes.subarray(0, whole), this.next);
    this.next += whole;
    if (found.bytes.length < piece) {
      this.atEnd = true;
      this.ended = found.ended;
      if (this.jump) this.jump.hidden = true;
    }
    const height = this.pre.scrollHeight;
    this.drop("first");
    this.pre.scrollTop -= Math.max(0, height - this.pre.scrollHeight);
  }

  toEnd() {
    return this.once(async () => {
      const found = await this.ask(`&tail=${piece}`);
      this.clear(found.start);
      this.atEnd = true;
      this.append(found.bytes);
      this.next = found.next;
      this.ended = found.ended;
      if (this.jump) this.jump.hidden = true;
      this.pre.scrollTop = this.pre.scrollHeight;
    });
  }
}

async function follow(session) {
  const logs = [...session.querySelectorAll("[data-stream]")].map((pre) => new Log(pre, session.dataset.session));
  remember();
  for (const log of logs) if (log.atEnd) log.pre.scrollTop = log.pre.scrollHeight;
  if ("over" in session.dataset) return;
  let seen = "";
  let wait = 700;
  for (;;) {
    try {
      let size = 0;
      for (const log of logs) size += await log.read();
      if (logs[0].changed !== seen) {
        await redraw(location.pathname + location.search);
        seen = logs[0].changed;
      }
      if (logs.every((log) => log.ended)) {
        session.dataset.over = ""; // a log without a line says so now
        return;
      }
      wait = size ? 400 : Math.min(wait * 1.3, 2500);
    } catch {
      wait = 2000; // the service may be starting again
    }
    await awhile(wait);
  }
}

document.querySelectorAll("[data-session]").forEach(follow);
