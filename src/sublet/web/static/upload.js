// Sends folders and files in pieces, by tus: what was dropped or chosen, on from where it stopped before.

const PIECE = 8 << 20; // bytes that are sent at once
const PAUSES = [500, 1000, 2000, 4000, 8000, 16000]; // milliseconds before each further try
const VERSION = { "Tus-Resumable": "1.0.0" };

const base64 = (text) => btoa(String.fromCharCode(...new TextEncoder().encode(text)));
const pause = (time) => new Promise((go) => setTimeout(go, time));
const sizeOf = (bytes) => (bytes < 1 << 20 ? `${Math.ceil(bytes / 1024)} KiB` : `${(bytes / (1 << 20)).toFixed(1)} MiB`);

function nameOf(text) {
  return text.replace(/[^\p{L}\p{N}_.-]+/gu, "-").replace(/^[-.]+|[-.]+$/g, "").slice(0, 100) || "upload";
}

async function listEntry(entry, prefix = "") {
  // What a folder that was dropped holds: browsers tell a hundred entries at a time.
  if (entry.isFile) {
    const file = await new Promise((give, fail) => entry.file(give, fail));
    return [{ file, path: prefix + file.name }];
  }
  const reader = entry.createReader();
  const found = [];
  for (;;) {
    const some = await new Promise((give, fail) => reader.readEntries(give, fail));
    if (!some.length) break;
    for (const one of some) found.push(...(await listEntry(one, `${prefix}${entry.name}/`)));
  }
  return found;
}

class Uploader {
  constructor(zone) {
    this.zone = zone;
    this.says = zone.querySelector("[data-says]");
    this.bar = zone.querySelector("progress");
    this.stopper = zone.querySelector("[data-stop]");
    this.target = zone.dataset.target && document.getElementById(zone.dataset.target);
    zone.hidden = false;
    for (const input of zone.querySelectorAll("input[type=file]")) {
      input.addEventListener("change", () => {
        const chosen = [...input.files].map((file) => ({ file, path: file.webkitRelativePath || file.name }));
        input.value = "";
        this.start(chosen);
      });
    }
    zone.addEventListener("dragover", (event) => {
      event.preventDefault();
      zone.classList.add("over");
    });
    zone.addEventListener("dragleave", () => zone.classList.remove("over"));
    zone.addEventListener("drop", (event) => this.drop(event));
    this.stopper.addEventListener("click", () => this.stop?.abort());
  }

  async drop(event) {
    event.preventDefault();
    this.zone.classList.remove("over");
    const entries = [...event.dataTransfer.items].map((item) => item.webkitGetAsEntry?.()).filter(Boolean);
    const lists = await Promise.all(entries.map((entry) => listEntry(entry)));
    this.start(lists.flat());
  }

  async start(chosen) {
    if (!chosen.length || this.stop) return;
    this.stop = new AbortController();
    this.done = 0;
    this.total = chosen.reduce((sum, { file }) => sum + file.size, 0);
    this.bar.hidden = this.stopper.hidden = false;
    try {
      const name = await this.sendAll(chosen);
      this.says.textContent = `${chosen.length} ${chosen.length === 1 ? "file" : "files"}, ${sizeOf(this.total)}: upload:${name}/`;
      if (this.target) this.target.value = `upload:${name}/`;
      else location.reload();
    } catch (error) {
      this.says.textContent = error.name === "AbortError" ? "Stopped. Choose the same again to go on." : error.message;
    } finally {
      this.stop = null;
      this.bar.hidden = this.stopper.hidden = true;
    }
  }

  async sendAll(chosen) {
    // One folder is an upload of its name; what was chosen file by file is one called after the first.
    const [top, rest] = chosen[0].path.split(/\/(.*)/s);
    const isFolder = rest !== undefined && chosen.every(({ path }) => path.startsWith(`${top}/`));
    const name = nameOf(isFolder ? top : chosen[0].path);
    const known = await this.listKnown(name);
    for (const { file, path } of chosen) {
      const place = isFolder ? path.slice(top.length + 1) : path;
      await this.sendFile(name, place, file, known.get(place));
    }
    return name;
  }

  async listKnown(name) {
    const answer = await fetch(`/web/uploads/${encodeURIComponent(name)}/files`, { signal: this.stop.signal });
    const items = answer.ok ? (await answer.json()).items : [];
    return new Map(items.map((one) => [one.path, one]));
  }

  async sendFile(name, path, file, before) {
    const modified = file.lastModified / 1000;
    const isSame = before?.size === file.size && Math.abs(Date.parse(before.modified) / 1000 - modified) < 0.002;
    if (isSame && before.whole) return this.tell(file.size);
    let place = `${this.zone.dataset.upload}/${before?.id}`;
    let offset = isSame ? before.offset : 0;
    if (!isSame) {
      const values = { upload: name, path, modified: modified.toFixed(3) };
      const metadata = Object.entries(values).map(([key, value]) => `${key} ${base64(value)}`);
      const headers = { "Upload-Length": file.size, "Upload-Metadata": metadata.join(",") };
      place = (await this.ask("POST", this.zone.dataset.upload, headers)).headers.get("Location");
    }
    this.tell(offset);
    for (let tries = 0; offset < file.size; ) {
      try {
        const piece = file.slice(offset, offset + PIECE);
        const headers = { "Upload-Offset": offset, "Content-Type": "application/offset+octet-stream" };
        const at = Number((await this.ask("PATCH", place, headers, piece)).headers.get("Upload-Offset"));
        this.tell(at - offset);
        offset = at;
        tries = 0;
      } catch (error) {
        if (error.name === "AbortError" || error.isFinal || tries >= PAUSES.length) throw error;
        await pause(PAUSES[tries++]);
        const at = await this.ask("GET", place, {}).then((answer) => Number(answer.headers.get("Upload-Offset")), () => offset);
        this.tell(at - offset);
        offset = at;
      }
    }
  }

  async ask(method, place, more, body) {
    const headers = { ...VERSION, "Sublet-Proof": this.zone.dataset.proof, Accept: "application/json", ...more };
    const answer = await fetch(place, { method, headers, body, signal: this.stop.signal });
    if (answer.ok && !answer.redirected) return answer;
    const error = new Error(await describe(answer));
    error.isFinal = answer.redirected || (answer.status < 500 && ![409, 423].includes(answer.status));
    throw error;
  }

  tell(bytes) {
    this.done += bytes;
    this.bar.value = this.total ? this.done / this.total : 1;
    this.says.textContent = `${sizeOf(this.done)} of ${sizeOf(this.total)}`;
  }
}

async function describe(answer) {
  // Errors of pages are pages: their first sentence says what is wrong.
  if (answer.redirected) return "You are signed out: sign in again, and choose the same.";
  const text = new DOMParser().parseFromString(await answer.text(), "text/html").querySelector("main");
  return text?.textContent.trim().replace(/\s+/g, " ") || `The service answered ${answer.status}.`;
}

document.querySelectorAll("[data-upload]").forEach((zone) => new Uploader(zone));
