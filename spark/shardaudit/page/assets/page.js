"use strict";

// Airflow's own theme, where this page is inside it; the system's otherwise.
function followTheme() {
  if (window.parent === window) return;
  let outer;
  try {
    outer = window.parent.document.documentElement;
  } catch {
    return; // inside somebody else's page
  }
  const take = () => {
    const theme = outer.classList.contains("dark") ? "dark" : outer.classList.contains("light") ? "light" : "";
    if (theme) document.documentElement.dataset.theme = theme;
  };
  take();
  new MutationObserver(take).observe(outer, { attributes: true, attributeFilter: ["class"] });
}

const time = (ms) => new Date(ms).toISOString().slice(0, 16).replace("T", " ");
const exact = (ms) => new Date(ms).toISOString().replace(".000Z", "Z");
const share = (part, whole) => (whole ? ` (${((100 * part) / whole).toPrecision(2)} %)` : "");

function duration(seconds) {
  seconds = Math.ceil(seconds);
  if (seconds < 120) return `≤ ${seconds} s`;
  return seconds < 7200 ? `≤ ${Math.ceil(seconds / 60)} min` : `≤ ${Math.ceil(seconds / 3600)} h`;
}

function words(map, row, bin) {
  const start = map.start + bin * map.step;
  const shards = row.shards === 1 ? row.first : `${row.first}\nto ${row.last} (${row.shards} shards)`;
  const when = `${time(start)} to ${time(start + map.step).slice(11)} UTC`;
  const verdict = map.verdicts[row.letters[bin]];
  if (!verdict) return `${shards}\n${when}\nno shard lived here`;
  const lines = [shards, when, `${verdict[0]}: ${verdict[1]}`];
  if (row.reasons[bin]) lines.push(row.reasons[bin]);
  if (verdict[0] !== "unknown") {
    const sent = row.sent[bin];
    lines.push(`${sent.toLocaleString("en")} sent`);
    for (const [name, text] of [["missing", "missing"], ["pending", "pending"], ["extra_rows", "extra rows"], ["untraced", "untraced"]]) {
      const count = row[name][bin];
      if (count) lines.push(`${count.toLocaleString("en")} ${text}${share(count, sent)}`);
    }
  }
  if (row.seconds) lines.push(`${map.metric} ${row.seconds[bin] === null ? map.notKnown : duration(row.seconds[bin])}`);
  return lines.join("\n");
}

// The address that a place leads to: fewer shards, or one shard in that time.
function target(map, row, bin) {
  const query = new URLSearchParams(window.location.search);
  query.set("first", row.first);
  query.set("last", row.last);
  if (row.shards > 1) return `stream?${query}`;
  query.set("from", exact(map.start + bin * map.step));
  query.set("to", exact(map.start + (bin + 1) * map.step));
  query.delete("metric");
  return `shard?${query}`;
}

function connectMap() {
  const holder = document.getElementById("map");
  const data = document.getElementById("map-data");
  if (!holder || !data) return;
  const map = JSON.parse(data.textContent);
  const svg = holder.querySelector("svg");
  const tip = holder.querySelector(".tip");
  const cursor = document.createElementNS("http://www.w3.org/2000/svg", "rect");
  cursor.setAttribute("class", "cursor");
  svg.append(cursor);
  const isReport = window.location.protocol === "file:" || document.querySelector("meta[http-equiv]") !== null;
  let at = null;

  function show(row, bin) {
    at = [row, bin];
    const x = map.left + bin * map.cellWidth;
    const y = map.top + row * map.cellHeight;
    for (const [name, value] of [["x", x], ["y", y], ["width", map.cellWidth], ["height", map.cellHeight]]) {
      cursor.setAttribute(name, value);
    }
    const scale = svg.clientWidth / map.width;
    tip.textContent = words(map, map.rows[row], bin);
    tip.hidden = false;
    const right = x * scale > svg.clientWidth * 0.6;
    tip.style.left = right ? "" : `${(x + map.cellWidth) * scale + 10}px`;
    tip.style.right = right ? `${svg.clientWidth - x * scale + 10}px` : "";
    tip.style.top = `${(y + map.cellHeight) * scale + 6}px`;
  }

  function placeOf(event) {
    const box = svg.getBoundingClientRect();
    const scale = map.width / box.width;
    const bin = Math.floor(((event.clientX - box.left) * scale - map.left) / map.cellWidth);
    const row = Math.floor(((event.clientY - box.top) * scale - map.top) / map.cellHeight);
    const isInside = row >= 0 && row < map.rows.length && bin >= 0 && bin < map.bins;
    return isInside ? [row, bin] : null;
  }

  function open() {
    if (at && !isReport) window.location.assign(target(map, map.rows[at[0]], at[1]));
  }

  svg.addEventListener("pointermove", (event) => {
    const place = placeOf(event);
    if (place) show(...place);
    else tip.hidden = true;
  });
  svg.addEventListener("pointerleave", () => { tip.hidden = true; });
  svg.addEventListener("click", (event) => {
    at = placeOf(event);
    open();
  });
  svg.addEventListener("keydown", (event) => {
    const moves = { ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1] };
    if (event.key === "Enter") open();
    if (!(event.key in moves)) return;
    event.preventDefault();
    const [row, bin] = at || [0, 0];
    const [down, right] = at ? moves[event.key] : [0, 0];
    show(
      Math.min(map.rows.length - 1, Math.max(0, row + down)),
      Math.min(map.bins - 1, Math.max(0, bin + right)),
    );
  });
}

// A run's page: by Airflow's own router where this page is inside it, which its frame cannot leave.
function lead(link) {
  link.addEventListener("click", (event) => {
    if (window.parent === window) return;
    event.preventDefault();
    const path = new URL(link.href).pathname;
    window.parent.history.pushState(null, "", path);
    window.parent.dispatchEvent(new PopStateEvent("popstate", { state: null }));
  });
}

function wishes(form) {
  const isWindow = form.elements.what.value === "window";
  return {
    stream: form.dataset.stream,
    from: isWindow ? form.elements.from.value.trim() : null,
    to: isWindow ? form.elements.to.value.trim() : null,
    shards: form.elements.shards.value.split(/\s+/).filter(Boolean),
    include_stuck: form.elements.include_stuck.checked,
    dry_run: form.elements.dry_run.checked,
  };
}

// Airflow shows a run's note as Markdown: from the run it leads back to what was on the screen.
function origin() {
  const { pathname, search } = (window.parent === window ? window : window.parent).location;
  return `from [the map of shardaudit](<${pathname}${search}>)`;
}

async function started(form) {
  const dag = form.dataset.dag;
  const answer = await fetch(`../api/v2/dags/${dag}/dagRuns`, {
    method: "POST",
    headers: { "Content-Type": "application/json", Accept: "application/json" },
    body: JSON.stringify({ logical_date: null, conf: wishes(form), note: origin() }),
  });
  const said = await answer.json().catch(() => ({}));
  if (!answer.ok) {
    const detail = typeof said.detail === "string" ? said.detail : JSON.stringify(said.detail || said);
    throw new Error(`Airflow answered ${answer.status}: ${detail}`);
  }
  return said.dag_run_id;
}

// A run of a DAG that is switched off waits, for ever if nobody is told.
async function isSwitchedOff(dag) {
  const answer = await fetch(`../api/v2/dags/${dag}`, { headers: { Accept: "application/json" } });
  return answer.ok && (await answer.json()).is_paused === true;
}

function connectDialog() {
  const dialog = document.getElementById("backfill");
  if (!dialog) return;
  const form = dialog.querySelector("form");
  const problem = dialog.querySelector(".error");
  const done = dialog.querySelector(".done");
  const waiting = dialog.querySelector(".waiting");
  const go = form.querySelector("button[type=submit]");
  const link = done.querySelector("a");
  lead(link);
  document.querySelector("[data-opens=backfill]").addEventListener("click", () => dialog.showModal());
  dialog.querySelector("[data-closes]").addEventListener("click", () => dialog.close());
  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    go.disabled = true; // one click, one run
    problem.hidden = true;
    try {
      const run = await started(form);
      link.textContent = run;
      link.href = `../dags/${form.dataset.dag}/runs/${encodeURIComponent(run)}`;
      done.hidden = false;
      waiting.hidden = !(await isSwitchedOff(form.dataset.dag));
      dialog.querySelector("[data-closes]").textContent = "Close"; // there is nothing to cancel any more
      link.focus();
    } catch (error) {
      problem.textContent = error.message;
      problem.hidden = false;
      go.disabled = false;
    }
  });
}

followTheme();
connectMap();
connectDialog();
