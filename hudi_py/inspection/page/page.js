"use strict";
(() => {
  // Text of the table is only ever set as textContent: nothing in it can become markup.
  const byId = (id) => document.getElementById(id);
  // Control characters and marks that turn the direction of text are shown as escapes, as on the command line: else a
  // name could look like another one. Lines of a text are split by its writer, never by a name in it.
  const CONTROL = /[\u0000-\u001f\u007f-\u009f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ufeff]/g;
  const visible = (text) => String(text).replace(CONTROL, (mark) => {
    const code = mark.charCodeAt(0), named = { 9: "\\t", 10: "\\n", 13: "\\r" };
    return named[code] || (code < 256 ? `\\x${code.toString(16).padStart(2, "0")}` : `\\u${code.toString(16).padStart(4, "0")}`);
  });
  // Names are for writers to choose: one of thousands of letters must not push everything else off the screen.
  const brief = (text, length = 200) => { const marks = [...visible(text)]; return marks.length > length ? `${marks.slice(0, length).join("")}…` : marks.join(""); };
  // One word of a shell, whatever is in it: it stands in a command that people copy.
  const word = (text) => {
    if (/^[\w@%+=:,./-]+$/.test(text)) return text;
    const shown = visible(text);
    return shown === text ? `'${text.replaceAll("'", "'\"'\"'")}'` : `$'${visible(text.replace(/[\\']/g, "\\$&"))}'`;
  };
  const make = (tag, text, className) => {
    const element = document.createElement(tag);
    if (text !== undefined && text !== null) element.textContent = visible(text);
    if (className) element.className = className;
    return element;
  };
  // Lines of text, which may be many: they scroll by themselves, with the keyboard too.
  const lines = (name, text) => {
    const element = make("pre");
    element.textContent = text;
    element.tabIndex = 0;
    element.setAttribute("role", "region");
    element.setAttribute("aria-label", name);
    return element;
  };
  const clear = (element) => { element.textContent = ""; return element; };
  const bytes = (count) => {
    if (count === null || count === undefined) return "?";
    const units = ["B", "kB", "MB", "GB", "TB", "PB"];
    let size = count, unit = 0;
    while (size >= 1000 && unit < units.length - 1) { size /= 1000; unit += 1; }
    return unit === 0 ? `${size} B` : `${size.toFixed(1)} ${units[unit]}`;
  };
  const counted = (number, noun) => `${number.toLocaleString("en")} ${noun}${number === 1 ? "" : "s"}`;
  const span = (seconds) => {
    if (seconds === null || seconds === undefined) return "-";
    for (const [length, unit] of [[86400, "d"], [3600, "h"], [60, "min"]]) {
      if (seconds >= length) return `${(seconds / length).toFixed(1)} ${unit}`;
    }
    return seconds >= 10 ? `${Math.round(seconds)} s` : seconds >= 1 ? `${seconds.toFixed(1)} s` : `${Math.round(seconds * 1000)} ms`;
  };
  const moment = (iso) => iso.replace("T", " ").replace(/(\+00:00|Z)$/, " UTC");
  const color = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
  const HELD = new Set(["live", "retained", "replaced", "savepoint", "lease", "pending", "removable", "unexamined", "uncommitted", "orphan"]);
  const holderColor = (name) => (HELD.has(name) ? `var(--${name})` : "var(--other)");
  const LANES = ["commit", "deltacommit", "replacecommit", "clustering", "compaction", "logcompaction", "indexing",
    "clean", "rollback", "restore", "savepoint"];
  const PLANNED = new Set(["compaction", "logcompaction", "clustering", "clean", "rollback", "restore"]);
  const PAGE = 50, PADDING = [null, 36, null, null];  // at the right, for half of a date

  let data = JSON.parse(byId("data").textContent);
  if (data.partial) data.events = data.events.map((each) => ({ ...data.nothing, operation: each.action.toUpperCase(), ...each }));
  let charts = [];
  let shown = [];
  let pageNumber = 0;
  let chosen = -1;

  // An address of this table at the server; what goes wrong is an answer, too.
  const ask = async (address, options = {}) => {
    try {
      const response = await fetch(`${data.live}${address}`, { credentials: "same-origin", ...options });
      const answer = await response.json();
      return response.ok || answer.error ? answer : { error: { message: String(response.status) } };
    } catch (error) {
      return { error: { message: error.message } };
    }
  };

  const table = (element, columns, rows) => {
    clear(element);
    const head = element.createTHead().insertRow();
    for (const [name, className] of columns) {
      const cell = make("th", name, className);
      cell.scope = "col";
      head.append(cell);
    }
    const body = element.createTBody();
    for (const row of rows) {
      const line = body.insertRow();
      row.forEach((value, index) => {
        const cell = line.insertCell();
        cell.className = columns[index][1] || "";
        if (value instanceof Node) cell.append(value); else cell.textContent = visible(value ?? "");
      });
    }
  };

  const header = () => {
    const about = data.table;
    byId("name").textContent = brief(about.name);
    byId("location").textContent = visible(about.location);
    const facts = [`${about.type.toLowerCase().replaceAll("_", " ")}`, `table version ${about.version}`];
    if (about.record_key.length) facts.push(brief(`key ${about.record_key.join(", ")}`));
    if (about.partitioned_by.length) facts.push(brief(`partitioned by ${about.partitioned_by.join(", ")}`));
    facts.push(`times of instants in ${about.zone}`);
    byId("facts").textContent = visible(facts.join(" · "));
    byId("footer").textContent = `As of ${moment(data.generated_at)}. Made by hudi-py; nothing was loaded from other places.`;
    // A report has no address of a server in it.
    byId("all-tables").hidden = !data.list;
    if (data.list) byId("all-tables").href = "/";
  };

  const share = (names) => {
    const found = { files: 0, bytes: 0 };
    for (const each of data.usage ? data.usage.by_reason : []) {
      if (names.includes(each.reason)) { found.files += each.files; found.bytes += each.bytes; }
    }
    return found;
  };

  const tiles = () => {
    const box = clear(byId("tiles")), unknown = data.partial ? "…" : "?";
    const last = data.events.filter((each) => each.files_written && each.state === "COMPLETED" && each.at !== null).at(-1);
    const wasted = share(["removable", "unexamined", "orphan"]);
    const pending = data.events.filter((each) => each.state !== "COMPLETED").length;
    const all = [
      [data.usage ? bytes(data.usage.total.bytes) : unknown, "in all files"],
      [data.partial ? unknown : bytes(share(["live"]).bytes), "newest rows"],
      [data.partial ? unknown : bytes(wasted.bytes), "not needed"],
      [data.partitions ? data.partitions.length.toLocaleString("en") : unknown, "partitions"],
      [(data.events.length + data.events_left_out).toLocaleString("en"), "instants"],
      [pending.toLocaleString("en"), "pending"],
      [last ? span(Math.max(0, Date.parse(data.generated_at) / 1000 - last.at)) : data.partial ? unknown : "-", "since the last commit"],
    ];
    for (const [value, label] of all) {
      const tile = make("div", null, "tile");
      tile.append(make("b", value), make("span", label, "soft"));
      box.append(tile);
    }
  };

  const GROUP = 3, PLACES = 200;
  const finding = (severity, code, where, message, fix) => {
    const card = make("div", null, `card finding ${severity}`), title = make("p");
    // The table itself has no path below the table.
    title.append(make("span", severity, "severity"), " ", make("code", code), ...(where.textContent === "." ? [] : [" ", where]));
    card.append(title, make("p", message), make("p", `What to do: ${fix}`, "soft"));
    return card;
  };
  const findings = () => {
    const box = clear(byId("findings")), location = word(data.table.location);
    if (data.partial) { box.append(make("p", "Not looked for yet.", "hint")); return; }
    for (const problem of data.problems) {
      const fix = `hudi-py check ${location} names all damage; hudi-py recover ${location} --dry-run says what can be repaired`;
      box.append(finding("error", "unreadable", make("span", "a part of this page was left out", "soft"), problem, fix));
    }
    if (!data.findings.length && !data.problems.length) box.append(make("p", "Nothing is wrong with settings and health."));
    // What is said of hundreds of partitions is said once: else nobody would see the rest.
    for (const code of new Set(data.findings.map((each) => each.code))) {
      const same = data.findings.filter((each) => each.code === code);
      if (same.length <= GROUP) {
        for (const each of same) box.append(finding(each.severity, code, make("span", each.where, "path soft"), each.message, each.fix));
        continue;
      }
      const first = same[0], rest = make("details"), list = make("ul");
      const card = finding(first.severity, code, make("span", counted(same.length, "place"), "soft"), `${first.where}: ${first.message}`, first.fix);
      for (const each of same.slice(1, PLACES)) {
        const line = make("li");
        line.append(make("span", each.where, "path"), `: ${visible(each.message)}`);
        list.append(line);
      }
      if (same.length > PLACES) list.append(make("li", `and ${same.length - PLACES} more; hudi-py doctor ${location} lists all`));
      rest.append(make("summary", `the other ${same.length - 1}`), list);
      card.append(rest);
      box.append(card);
    }
  };

  const show = (index) => {
    const card = clear(byId("instant"));
    const each = data.events[index];
    if (!each) return;
    chosen = index;
    const title = make("p");
    title.append(make("b", each.requested_time), visible(` ${brief(each.operation.toLowerCase())} (${each.action}, ${each.state.toLowerCase()}${each.archived ? ", archived" : ""})`));
    card.append(title);
    const parts = [];
    if (each.completion_time) parts.push(`completed ${each.completion_time}`);
    if (each.seconds !== null) parts.push(`took ${span(each.seconds)}`);
    for (const [name, word] of [["rows_inserted", "inserted"], ["rows_updated", "updated"], ["rows_deleted", "deleted"], ["rows_rewritten", "rewritten"]]) {
      if (each[name]) parts.push(`${counted(each[name], "row")} ${word}`);
    }
    if (each.files_written) parts.push(`${counted(each.files_written, "file")} written, ${bytes(each.bytes_written)}`);
    if (each.files_deleted) parts.push(`${counted(each.files_deleted, "file")} deleted`);
    if (each.groups_replaced) parts.push(`${counted(each.groups_replaced, "file group")} replaced`);
    if (each.partition_count) parts.push(counted(each.partition_count, "partition"));
    card.append(make("p", parts.join(" · ")));
    if (each.problem) card.append(make("p", each.problem));
    const names = Object.keys(each.parameters);
    if (names.length) card.append(lines("parameters", names.map((name) => visible(`${name}: ${JSON.stringify(each.parameters[name])}`)).join("\n")));
    // Of a service that is only requested, the content is its plan; a write that is pending has none.
    if (each.state === "COMPLETED" || (each.state === "REQUESTED" && data.live && PLANNED.has(each.action))) card.append(decoded(each));
  };

  // Everything that the instant holds: a report brings along the newest ones, a server is asked for the one that is opened.
  const decoded = (each) => {
    const details = make("details"), text = data.contents[`${each.requested_time} ${each.action}`];
    details.append(make("summary", "decoded content"));
    const fill = (content) => details.append(lines("decoded content", content.split("\n").map(visible).join("\n")));
    if (text !== undefined) fill(text);
    else if (!data.live) details.append(make("p", `Not in this file; hudi-py instant ${word(data.table.location)} ${each.requested_time} shows it.`, "hint"));
    else details.addEventListener("toggle", async () => {
      const answer = await ask(`instant/${each.requested_time}?action=${each.action}`);
      if (answer.error) details.append(make("p", `No content: ${answer.error.message}`, "hint"));
      else fill(JSON.stringify(answer.content, null, 1));
    }, { once: true });
    return details;
  };

  const axes = () => {
    const text = color("--soft"), line = color("--line");
    const grid = { stroke: line, width: 1 }, ticks = { stroke: line, width: 1 };
    return { x: { stroke: text, grid, ticks, space: 90, values: dates }, y: { stroke: text, grid, ticks } };
  };
  // Times are those that stand in the instants, whatever the clock of the browser is set to: x is such a time as if in UTC.
  const tzDate = (seconds) => uPlot.tzDate(new Date(seconds * 1000), "Etc/UTC");
  const clock = (each) => each.at + (each.utc_offset || 0);
  const dates = (self, splits, axis, space, step) => {
    let before = "";
    return splits.map((seconds) => {
      const [day, time] = new Date(seconds * 1000).toISOString().split("T");
      if (step >= 28 * 86400) return step >= 365 * 86400 ? day.slice(0, 4) : day.slice(0, 7);
      if (step >= 86400) return day;
      const shown = time.slice(0, step < 1 ? 12 : step < 60 ? 8 : 5), isSame = day === before;
      before = day;
      return isSame ? shown : `${shown}\n${day}`;
    });
  };

  const timeline = () => {
    const box = clear(byId("timeline"));
    const events = data.events.map((each, index) => [each, index]).filter(([each]) => each.at !== null).sort((a, b) => clock(a[0]) - clock(b[0]));
    byId("timeline-controls").hidden = byId("timeline-hint").hidden = !events.length;
    if (!events.length) { box.append(make("p", data.events.length ? "Not drawn: no instant has a time that is a date." : "No instants yet.", "hint")); return; }
    const lanes = LANES.filter((lane) => events.some(([each]) => each.action === lane));
    for (const [each] of events) if (!lanes.includes(each.action)) lanes.push(each.action);
    const colors = ["--retained", "--live", "--savepoint", "--pending", "--uncommitted", "--other"];
    const times = events.map(([each]) => clock(each));
    const series = [{}], columns = [times];
    lanes.forEach((lane, row) => {
      for (const isDone of [true, false]) {
        const values = events.map(([each]) => (each.action === lane && (each.state === "COMPLETED") === isDone ? lanes.length - 1 - row : null));
        if (!isDone && values.every((value) => value === null)) continue;
        const stroke = isDone ? color(colors[row % colors.length]) : color("--removable");
        series.push({ label: isDone ? lane : `${lane}, pending`, stroke, paths: () => null, points: { show: true, size: isDone ? 7 : 11, stroke, fill: isDone ? stroke : color("--back"), width: isDone ? 1 : 2 } });
        columns.push(values);
      }
    });
    const style = axes();
    const padding = Math.max((times.at(-1) - times[0]) * 0.02, 1);
    const whole = { min: times[0] - padding, max: times.at(-1) + padding };
    const height = Math.max(180, 46 * lanes.length + 70);
    // Actions that took long are bars, from the beginning to the end; at least a pixel longer than their dot is wide.
    const bars = (self) => {
      const { min, max } = self.scales.x, ratio = devicePixelRatio || 1;
      const perPixel = (max - min) / Math.max(self.bbox.width, 1);
      self.ctx.save();
      self.ctx.lineWidth = 5 * ratio;
      self.ctx.globalAlpha = 0.45;
      for (const [each] of events) {
        const begin = clock(each);
        if (!each.seconds || begin > max || begin + each.seconds < min || each.seconds / perPixel < 8 * ratio) continue;
        const row = lanes.indexOf(each.action), y = self.valToPos(lanes.length - 1 - row, "y", true);
        self.ctx.strokeStyle = color(colors[row % colors.length]);
        self.ctx.beginPath();
        self.ctx.moveTo(self.valToPos(Math.max(begin, min), "x", true), y);
        self.ctx.lineTo(self.valToPos(Math.min(begin + each.seconds, max), "x", true), y);
        self.ctx.stroke();
      }
      self.ctx.restore();
    };
    const chart = new uPlot({
      width: box.clientWidth, height, padding: PADDING, tzDate, legend: { show: false }, hooks: { drawAxes: [bars] },
      cursor: { y: false, points: { show: false }, drag: { x: true, y: false } },
      scales: { x: { time: true, range: (self, min, max) => (min === null ? [whole.min, whole.max] : [min, max]) }, y: { range: [-0.6, lanes.length - 0.4] } },
      axes: [style.x, { ...style.y, size: 120, splits: lanes.map((_, row) => row), values: (self, splits) => splits.map((row) => lanes[lanes.length - 1 - row] || "") }],
      series,
    }, columns, box);
    chart.setScale("x", whole);
    const zoom = (factor, shift) => {
      const { min, max } = chart.scales.x;
      const half = ((max - min) / 2) * factor, middle = (min + max) / 2 + (max - min) * shift;
      if (half > 0.0005) chart.setScale("x", { min: middle - half, max: middle + half });
    };
    chart.over.addEventListener("dblclick", () => chart.setScale("x", whole));
    chart.over.addEventListener("click", () => { if (chart.cursor.idx !== null && chart.cursor.idx !== undefined) show(events[chart.cursor.idx][1]); });
    chart.over.addEventListener("wheel", (event) => { if (event.ctrlKey) { event.preventDefault(); zoom(event.deltaY > 0 ? 1.25 : 0.8, 0); } }, { passive: false });
    for (const [name, factor, shift] of [["earlier", 1, -0.5], ["later", 1, 0.5], ["in", 0.5, 0], ["out", 2, 0]]) byId(`zoom-${name}`).onclick = () => zoom(factor, shift);
    byId("zoom-all").onclick = () => chart.setScale("x", whole);
    box.onkeydown = (event) => {
      const order = events.map(([, index]) => index);
      const keys = {
        "+": () => zoom(0.5, 0), "=": () => zoom(0.5, 0), "-": () => zoom(2, 0), "0": () => chart.setScale("x", whole),
        ArrowLeft: () => zoom(1, -0.2), ArrowRight: () => zoom(1, 0.2),
        PageUp: () => show(order[Math.max(order.indexOf(chosen) - 1, 0)]),
        PageDown: () => show(order[Math.min(order.indexOf(chosen) + 1, order.length - 1)]),
      };
      if (keys[event.key] && !event.ctrlKey && !event.metaKey) { event.preventDefault(); keys[event.key](); }
    };
    charts.push([chart, box]);
  };

  const historyTable = () => {
    const wanted = byId("search").value.trim().toLowerCase(), action = byId("action").value;
    shown = [];
    for (let index = data.events.length - 1; index >= 0; index -= 1) {
      const each = data.events[index];
      if (action && each.action !== action) continue;
      if (wanted && !`${each.requested_time} ${each.operation} ${each.state} ${JSON.stringify(each.parameters)} ${each.partitions.join(" ")}`.toLowerCase().includes(wanted)) continue;
      shown.push(index);
    }
    const pages = Math.max(1, Math.ceil(shown.length / PAGE));
    pageNumber = Math.min(pageNumber, pages - 1);
    const rows = shown.slice(pageNumber * PAGE, (pageNumber + 1) * PAGE).map((index) => {
      const each = data.events[index];
      const button = make("button", each.requested_time, "plain");
      button.type = "button";
      button.addEventListener("click", () => show(index));
      const rowsChanged = each.rows_inserted + each.rows_updated + each.rows_deleted;
      return [button, brief(each.operation.toLowerCase(), 60), each.state.toLowerCase(), span(each.seconds), rowsChanged ? rowsChanged.toLocaleString("en") : "",
        each.files_written ? each.files_written.toLocaleString("en") : "", each.bytes_written ? bytes(each.bytes_written) : "", each.files_deleted ? each.files_deleted.toLocaleString("en") : ""];
    });
    table(byId("history"), [["instant"], ["operation"], ["state"], ["took", "number"], ["rows", "number"], ["files written", "number"], ["size", "number"], ["files deleted", "number"]], rows);
    byId("page-number").textContent = shown.length ? `page ${pageNumber + 1} of ${pages}, ${counted(shown.length, "action")}` : "no action matches";
    // Nothing to search, and a table without rows says nothing.
    for (const name of ["history-title", "history-controls", "history-box"]) byId(name).hidden = !data.events.length;
    byId("newer").disabled = pageNumber === 0;
    byId("older").disabled = pageNumber >= pages - 1;
  };

  const historyControls = () => {
    const select = byId("action"), before = select.value;
    clear(select).append(new Option("all", ""));
    for (const action of [...new Set(data.events.map((each) => each.action))].sort()) select.append(new Option(visible(action), action));
    select.value = before;
    if (select.selectedIndex < 0) select.selectedIndex = 0;
  };

  const storage = () => {
    const bar = clear(byId("bar")), reasons = data.usage ? data.usage.by_reason : [];
    const sums = new Map();
    for (const each of reasons) sums.set(each.reason, (sums.get(each.reason) || 0) + each.bytes);
    const total = data.usage ? data.usage.total.bytes : 0;
    const told = [];
    for (const [reason, size] of sums) {
      if (!size) continue;
      const part = make("span");
      part.style.flexGrow = String(size);
      part.style.background = holderColor(reason);
      part.title = `${reason}: ${bytes(size)}`;
      bar.append(part);
      told.push(`${reason.replaceAll("_", " ")} ${bytes(size)}`);
    }
    bar.setAttribute("role", "img");
    bar.setAttribute("aria-label", told.length ? told.join(", ") : "no files");
    table(byId("reasons"), [["reason"], ["files", "number"], ["size", "number"], ["share", "number"], ["rule"]], reasons.map((each) => {
      const name = make("span");
      const swatch = make("span", null, "swatch");
      swatch.style.background = holderColor(each.reason);
      name.className = "held";
      name.append(swatch, each.reason.replaceAll("_", " "));
      name.title = data.meanings[each.reason] || "";
      return [name, each.files.toLocaleString("en"), bytes(each.bytes), total ? `${((100 * each.bytes) / total).toFixed(1)} %` : "", each.rule];
    }));
  };

  const legend = (entries) => {
    const list = make("p", null, "legend");
    for (const [name, text] of entries) {
      const entry = make("span", null, "held"), swatch = make("span", null, "swatch");
      swatch.style.background = holderColor(name);
      entry.append(swatch, visible(text));
      list.append(entry);
    }
    return list;
  };

  const STORED = [["live", "newest rows"], ["retained", "older versions"], ["replaced", "replaced file groups"], ["savepoint", "held by savepoints"]];
  // What commits wrote and cleans deleted, summed up; not the listing, which only knows the present.
  const stored = () => {
    const box = clear(byId("stored")), points = data.stored, hint = clear(byId("stored-hint"));
    if (!points.length) { box.append(make("p", "Nothing to draw: no completed action wrote or deleted files.", "hint")); return; }
    const [last, ...kept] = points.at(-1), sum = kept.reduce((one, two) => one + two);
    const now = share(["live", "retained", "savepoint", "lease", "pending", "removable", "unexamined"]).bytes;
    const told = STORED.map(([, text], at) => `${bytes(kept[at])} ${at < 3 ? "of " : ""}${text}`).filter((_, at) => at < 2 || kept[at]);
    hint.textContent = `After each action, from what the instants tell; at the end ${told.join(", ")}.`
      + (data.usage && sum !== now ? ` The files themselves have ${bytes(now)}: not all that happened to them is on the timeline.` : "");
    // The last state lasts: without a width nobody would see it.
    const drawn = [...points, [last + Math.max((last - points[0][0]) * 0.03, 1), ...kept]];
    const style = axes(), stepped = uPlot.paths.stepped({ align: 1 });
    const area = ([name, label]) => ({ label, stroke: color(`--${name}`), fill: color(`--${name}`), width: 1, paths: stepped, points: { show: false } });
    // Stacked: each is drawn up to the sum of itself and those below it, the highest first.
    const heights = STORED.map((_, count) => drawn.map((point) => point.slice(1, count + 2).reduce((one, two) => one + two)));
    const seen = STORED.map((each, at) => [each, heights[at]]).filter((_, at) => at < 2 || points.some((point) => point[at + 1]));
    const chart = new uPlot({
      width: box.clientWidth, height: 220, padding: PADDING, tzDate, legend: { show: false }, cursor: { y: false, points: { show: false }, drag: { x: true, y: false } },
      scales: { x: { time: true }, y: { range: (self, min, max) => [0, Math.max(max * 1.05, 1)] } },
      axes: [style.x, { ...style.y, size: 80, values: (self, splits) => splits.map(bytes) }],
      series: [{}, ...seen.map(([each]) => area(each)).reverse()],
    }, [drawn.map(([at]) => at), ...seen.map(([, height]) => height).reverse()], box);
    box.append(legend(seen.map(([each]) => each)));
    charts.push([chart, box]);
  };

  const sizes = () => {
    const box = clear(byId("sizes")), all = data.simulations;
    byId("retention-hint").hidden = byId("retention-controls").hidden = !all.length;
    if (!all.length) { box.append(make("p", `Not replayed: ${data.not_simulated}.`, "hint")); return; }
    const slider = byId("retained");
    slider.max = String(all.length - 1);
    if (!slider.dataset.touched) slider.value = String(all.findLastIndex((each) => each.commits_retained <= 10));
    const clocks = new Map(data.events.map((each) => [each.at, clock(each)]));
    const times = all[0].points.map(([at]) => clocks.get(at) ?? at);
    if (times.some((at) => at === null)) { box.append(make("p", "Not drawn: an instant has a time that is not a date.", "hint")); return; }
    const style = axes();
    const chart = new uPlot({
      width: box.clientWidth, height: 260, padding: PADDING, tzDate, legend: { show: false },
      scales: { x: { time: true }, y: { range: (self, min, max) => [0, Math.max(max * 1.05, 1)] } },
      axes: [style.x, { ...style.y, size: 80, values: (self, splits) => splits.map(bytes) }],
      series: [{}, { label: "size", stroke: color("--retained"), width: 2, fill: `${color("--retained")}22`, value: (self, value) => bytes(value) }],
    }, [times, all[0].points.map(() => null)], box);
    const draw = () => {
      const each = all[Number(slider.value)] || all.at(-1);
      chart.setData([times, each.points.map(([, size]) => size)]);
      const text = `${each.commits_retained}: ${bytes(each.bytes_end)} in the end, ${bytes(each.bytes_max)} at most, ${counted(each.files_deleted, "file")} deleted`;
      byId("retained-text").textContent = text;
      slider.setAttribute("aria-valuetext", text);
    };
    slider.oninput = () => { slider.dataset.touched = "yes"; draw(); };
    draw();
    if (data.not_simulated) box.append(make("p", `Others are not replayed: ${data.not_simulated}.`, "hint"));
    charts.push([chart, box]);
  };

  // What only a server can answer; a report has no one to ask.
  let planned = 0;
  const plan = async () => {
    const kind = byId("plan-kind").value, number = byId("plan-number").value, asked = ++planned;
    byId("plan-command").textContent = `hudi-py clean ${word(data.table.location)} --${kind.replaceAll("_", "-")} ${number}`;
    byId("plan-number").setAttribute("aria-valuetext", `${number} ${byId("plan-kind").selectedOptions[0].text}`);
    try {
      const answer = await fetch(`${data.live}plan?${kind}=${number}`, { credentials: "same-origin" });
      const found = await answer.json();
      // A slower answer to an earlier question must not replace this one's.
      if (asked !== planned) return;
      if (!answer.ok) throw new Error(found.error.message);
      const rest = found.totals.files - Math.min(found.files.length, 20);
      byId("plan-text").textContent = `${number}: ${counted(found.totals.files, "file")} would be deleted, ${bytes(found.totals.bytes)}${rest > 0 ? `; ${counted(rest, "file")} more than listed` : ""}${[...found.breakers.map((each) => `refused: ${each}`), ...found.warnings].map((each) => `; ${visible(each)}`).join("")}`;
      table(byId("plan-files"), [["would be deleted", "path"], ["size", "number"], ["why"]], found.files.slice(0, 20).map((each) => [each.path, bytes(each.bytes), each.reason]));
      byId("plan-list").hidden = !found.files.length;
    } catch (error) {
      if (asked === planned) byId("plan-text").textContent = visible(`No preview: ${error.message}`);
    }
  };

  const columnsOf = async (partition) => {
    const box = clear(byId("columns"));
    if (!data.live) return;
    const answer = await fetch(`${data.live}columns?partition=${encodeURIComponent(partition)}`, { credentials: "same-origin" }).catch(() => null);
    const found = answer && answer.ok ? await answer.json() : null;
    clear(box);
    if (!found) return;
    const title = make("h3", `Columns of ${partition || "the table"}`);
    title.id = "columns-title";
    box.append(title);
    if (!found.columns) { box.append(make("p", "The metadata table has no column statistics of all files here.", "hint")); return; }
    const inner = document.createElement("table");
    const shown = (value) => (value === null ? "?" : String(value));
    table(inner, [["column"], ["type"], ["smallest", "path"], ["largest", "path"], ["nulls", "number"]], Object.entries(found.columns).map(([name, each]) => [name, each.kind || "?", shown(each.min), shown(each.max), shown(each.nulls)]));
    const scroll = make("div", null, "scroll");
    scroll.tabIndex = 0;
    scroll.setAttribute("role", "region");
    scroll.setAttribute("aria-labelledby", "columns-title");
    scroll.append(inner);
    box.append(scroll);
  };

  // Seconds of a time that an instant names, as if in UTC; null if it is no date.
  const secondsOf = (time) => {
    const parts = /^(\d{4})(\d\d)(\d\d)(\d\d)(\d\d)(\d\d)(\d{3})?$/.exec(time || "");
    return parts ? Date.UTC(parts[1], parts[2] - 1, parts[3], parts[4], parts[5], parts[6], parts[7] || 0) / 1000 : null;
  };
  const GROUPS = 30, NEVER_READ = new Set(["uncommitted", "orphan"]);
  let partitionCharts = [];

  // A row for each file group: a base file is a line from its commit until the next one's, a log file a dot.
  const slices = (found, box) => {
    const groups = new Map();
    for (const each of found) {
      const at = secondsOf(each.commit);
      if (each.group === null || at === null) continue;
      if (!groups.has(each.group)) groups.set(each.group, []);
      groups.get(each.group).push({ ...each, at });
    }
    if (!groups.size) return;
    // Those with most slices first: there is most to see.
    const rows = [...groups].sort((a, b) => b[1].length - a[1].length).slice(0, GROUPS);
    const files = rows.flatMap(([, each], row) => each.map((file) => ({ ...file, row }))).sort((a, b) => a.at - b.at);
    const kinds = [...new Set(files.map((each) => each.reason))];
    const first = files[0].at, last = Math.max(files.at(-1).at, ...data.events.slice(-1).map((each) => secondsOf(each.requested_time) || 0));
    const padding = Math.max((last - first) * 0.03, 1), end = last + padding;
    const place = (row) => rows.length - 1 - row;
    const bars = (self) => {
      const ratio = devicePixelRatio || 1, next = new Map();
      self.ctx.save();
      self.ctx.lineWidth = 4 * ratio;
      for (const each of [...files].reverse()) {
        if (!each.is_base || NEVER_READ.has(each.reason)) continue;
        const until = next.get(each.row) ?? end, y = self.valToPos(place(each.row), "y", true);
        next.set(each.row, each.at);
        self.ctx.globalAlpha = 0.5;
        self.ctx.strokeStyle = color(HELD.has(each.reason) ? `--${each.reason}` : "--other");
        self.ctx.beginPath();
        self.ctx.moveTo(self.valToPos(each.at, "x", true), y);
        self.ctx.lineTo(self.valToPos(until, "x", true), y);
        self.ctx.stroke();
      }
      self.ctx.restore();
    };
    const style = axes(), about = make("div", null, "chart");
    const counts = kinds.map((kind) => `${counted(files.filter((each) => each.reason === kind).length, "file")} ${kind.replaceAll("_", " ")}`);
    about.setAttribute("role", "img");
    about.setAttribute("aria-label", `Slices of ${counted(rows.length, "file group")} over time: ${counts.join(", ")}`);
    box.append(legend(kinds.map((kind) => [kind, `${kind.replaceAll("_", " ")}: ${data.meanings[kind] || ""}`])), about);
    if (rows.length < groups.size) box.append(make("p", `Drawn are the ${rows.length} file groups with most files, of ${groups.size.toLocaleString("en")}.`, "hint"));
    const chart = new uPlot({
      width: about.clientWidth, padding: PADDING, height: Math.max(120, 22 * rows.length + 70), tzDate, legend: { show: false }, hooks: { drawAxes: [bars] },
      cursor: { show: false },
      scales: { x: { time: true, range: () => [first - padding, end] }, y: { range: [-0.6, rows.length - 0.4] } },
      axes: [style.x, { ...style.y, size: 90, splits: rows.map((_, row) => row), values: (self, splits) => splits.map((row) => visible((rows[place(row)] || [""])[0].slice(0, 8))) }],
      series: [{}, ...kinds.map((kind) => {
        const stroke = color(HELD.has(kind) ? `--${kind}` : "--other");
        return { label: kind, stroke, paths: () => null, points: { show: true, size: 7, stroke, fill: stroke } };
      })],
    }, [files.map((each) => each.at), ...kinds.map((kind) => files.map((each) => (each.reason === kind ? place(each.row) : null)))], about);
    partitionCharts.push([chart, about]);
  };

  let opened = null;  // the partition whose files are shown
  const FILES = 500;
  const filesOf = async (partition, takesFocus = true) => {
    opened = partition;
    columnsOf(partition);
    let found = data.files.filter((each) => each.partition === partition), note = "";
    // A page has the files of some partitions only; a server is asked for the others.
    if (data.files_left_out && data.live) {
      const answer = await ask(`slices?partition=${encodeURIComponent(partition)}`);
      if (opened !== partition) return;
      if (answer.error) note = `No files: ${answer.error.message}`;
      else found = answer.files;
    } else if (data.files_left_out) note = `The page has the newest files of each partition, ${counted(data.files.length, "file")} in all; hudi-py files and hudi-py explain show the others.`;
    for (const [chart] of partitionCharts) chart.destroy();
    partitionCharts = [];
    const box = clear(byId("files"));
    const title = make("h3", `Files of ${partition || "the table"}`);
    title.id = "files-title";
    title.tabIndex = -1;
    box.append(title);
    slices(found, box);
    const inner = document.createElement("table");
    table(inner, [["file", "path"], ["size", "number"], ["commit"], ["reason"], ["rule"]], found.slice(0, FILES).map((each) => [each.name, bytes(each.bytes), each.commit || "-", each.reason, each.rule]));
    const scroll = make("div", null, "scroll");
    scroll.tabIndex = 0;
    scroll.setAttribute("role", "region");
    scroll.setAttribute("aria-labelledby", "files-title");
    scroll.append(inner);
    box.append(scroll);
    if (found.length > FILES) note = `${note} ${counted(found.length - FILES, "older file")} not listed.`.trim();
    if (note) box.append(make("p", note, "hint"));
    if (takesFocus) title.focus();
  };

  const partitions = () => {
    const wanted = byId("partition-search").value.trim().toLowerCase();
    const known = data.partitions || [];
    byId("partitions-hint").textContent = data.partitions === null ? "Not listed: a part of the table that this needs cannot be read; see the findings." : known.length ? "" : "No partitions yet.";
    byId("partitions-hint").hidden = known.length > 0;
    byId("partitions-controls").hidden = byId("partitions-box").hidden = !known.length;
    const all = known.filter((each) => each.partition.toLowerCase().includes(wanted));
    table(byId("partitions"), [["partition"], ["files", "number"], ["size", "number"], ["newest rows", "number"], ["older, kept", "number"], ["not needed", "number"]], all.slice(0, 200).map((each) => {
      const sum = (...names) => names.reduce((found, name) => found + (each.reasons[name] ? each.reasons[name][1] : 0), 0);
      const button = make("button", each.partition || "(none)", "plain");
      button.type = "button";
      button.addEventListener("click", () => filesOf(each.partition));
      return [button, each.files.toLocaleString("en"), bytes(each.bytes), bytes(sum("live")), bytes(sum("retained", "savepoint", "lease", "pending")), bytes(sum("removable", "unexamined", "orphan"))];
    }));
    if (!all.length) byId("partitions").createCaption().textContent = "No partition matches.";
    else if (all.length > 200) byId("partitions").createCaption().textContent = `The largest 200 of ${counted(all.length, "partition")}; filter to see others.`;
  };

  // Actions: shown only by a server that takes them; each is tried first, and done after another click.
  let asked = 0;  // an answer to what was asked before the last question is not shown: the button does the last one
  const act = async (name, isTrial) => {
    const box = clear(byId("doing-text")), go = byId("doing-go"), mine = ++asked;
    go.disabled = true;
    box.append(make("p", isTrial ? "Asking what it would do …" : "Under way; this may take long. It goes on if you close the page."));
    let answer = null;
    try {
      const response = await fetch(`${data.live}do/${name}`, { method: "POST", credentials: "same-origin", headers: { "Content-Type": "application/json" }, body: JSON.stringify({ dry_run: isTrial }) });
      answer = await response.json();
    } catch (error) {
      answer = { error: { message: `no answer from the server (${error.message}); the timeline shows whether it was done` } };
    }
    if (mine !== asked) return;
    clear(box);
    if (answer.error) { box.append(make("p", answer.error.message, "severity")); return; }
    box.append(make("p", isTrial ? (answer.is_due ? "It would do this:" : "There is nothing to do:") : "Done:"));
    const list = make("ul");
    for (const line of answer.lines) list.append(make("li", line));
    box.append(list);
    go.disabled = !isTrial || !answer.is_due;
  };

  const actions = () => {
    const offered = data.actions || [];
    byId("actions-section").hidden = !offered.length;
    byId("actions-link").hidden = !offered.length;
    const box = clear(byId("actions"));
    for (const each of offered) {
      const button = make("button", `${each.name} …`);
      button.type = "button";
      button.addEventListener("click", () => {
        byId("doing-title").textContent = visible(`${each.name}: ${data.table.name}`);
        byId("doing-go").onclick = () => act(each.name, false);
        byId("doing").showModal();
        act(each.name, true);
      });
      box.append(button, make("span", each.summary));
    }
  };
  byId("doing-close").addEventListener("click", () => byId("doing").close());

  const drawCharts = () => {
    for (const [chart] of charts) chart.destroy();
    charts = [];
    timeline();
    if (data.partial) return;
    stored();
    sizes();
  };

  // Of a long timeline the server sends the instants first; what they hold, and the files, come with the next answer.
  const draw = () => {
    for (const name of ["storage", "retention", "partitions"]) byId(`${name}-section`).hidden = Boolean(data.partial);
    header(); tiles(); findings(); historyControls(); historyTable(); actions(); drawCharts();
    document.documentElement.dataset.ready = data.partial ? "partly" : "yes";
    if (data.partial) { byId("status").textContent = "Reading what the instants hold, and the files…"; return; }
    storage(); partitions();
    byId("plan-box").hidden = !data.live;
    if (data.live) plan();
  };

  byId("search").addEventListener("input", () => { pageNumber = 0; historyTable(); });
  byId("action").addEventListener("change", () => { pageNumber = 0; historyTable(); });
  byId("newer").addEventListener("click", () => { pageNumber -= 1; historyTable(); });
  byId("older").addEventListener("click", () => { pageNumber += 1; historyTable(); });
  byId("partition-search").addEventListener("input", partitions);
  byId("plan-kind").addEventListener("change", plan);
  byId("plan-number").addEventListener("change", plan);
  const refreshFiles = () => { if (opened !== null) filesOf(opened, false); };
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => { drawCharts(); refreshFiles(); });
  let resized = 0;
  addEventListener("resize", () => {
    cancelAnimationFrame(resized);
    resized = requestAnimationFrame(() => { for (const [chart, box] of [...charts, ...partitionCharts]) chart.setSize({ width: box.clientWidth, height: chart.height }); });
  });

  // Live updates: only the server's page names where to ask.
  if (data.live) {
    const follow = async () => {
      try {
        const answer = await fetch(`${data.live}version`, { credentials: "same-origin" });
        if (!answer.ok) throw new Error(String(answer.status));
        const { version } = await answer.json();
        if (version !== data.version) {
          const whole = await fetch(`${data.live}document`, { credentials: "same-origin" });
          if (!whole.ok) throw new Error(String(whole.status));
          if (data.partial) { chosen = -1; clear(byId("instant")); }  // the archived actions come before the others
          data = await whole.json();
          draw();
          refreshFiles();
          byId("status").textContent = `Updated ${moment(data.generated_at)}`;
        }
      } catch (error) {
        byId("status").textContent = `No answer from the server (${error.message}); this is the state of ${moment(data.generated_at)}.`;
      }
      setTimeout(follow, 3000);
    };
    setTimeout(follow, data.partial ? 0 : 3000);
  }
  draw();
})();
