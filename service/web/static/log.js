// The log viewer: jumps between evidence and found lines in place. A log of several pages is scrolled as a whole: only
// the lines near the window are in the document. Without scripts there are pages, and links between them.
"use strict";
(() => {
  const log = document.querySelector("[data-log]"), box = log && log.querySelector(".wide"), table = box && box.querySelector("table");
  if (!table) return;
  const bar = log.querySelector(".log-bar"), form = bar.querySelector("form"), find = form.elements.q, toggle = bar.querySelector(".toggle"), at = bar.querySelector(".at");
  const BLOCK = 32; // lines that are put in and taken out together
  const MARGIN = 600; // pixels above and below the window that are drawn
  const make = (tag, name, text) => { const made = document.createElement(tag); if (name) made.className = name; if (text !== undefined) made.textContent = text; return made; };
  const figure = (number) => number.toLocaleString("en");
  const unwrapped = () => box.classList.contains("nowrap");

  // What is shown: texts by position, the line numbers of positions, and the roles of evidence.
  let texts = [], numbers = [], roles = new Map(), found = [], words = null, sought = "", whole = true, ready = false;
  let here = -1; // the position of the line that the address names

  const read = () => {
    const rows = [...table.rows];
    texts = rows.map((row) => row.querySelector("code").textContent);
    numbers = rows.map((row) => Number(row.id.slice(1)));
    rows.forEach((row, position) => { if (row.className) roles.set(position, [row.className]); });
  };
  const receive = (answer) => {
    texts = answer.text.split("\n");
    const runs = answer.numbers;
    numbers = new Array(texts.length);
    for (let run = 0; run < runs.length; run++) {
      const [first, number] = runs[run], end = run + 1 < runs.length ? runs[run + 1][0] : texts.length;
      for (let position = first; position < end; position++) numbers[position] = number + position - first;
    }
    roles = new Map(answer.roles.map(([position, ...role]) => [position, role]));
  };
  // The first position whose number is not below the wanted one; the last one if there is none.
  const positionOf = (number) => { const position = numbers.findIndex((one) => one >= number); return position < 0 ? numbers.length - 1 : position; };
  const address = (number) => {
    const query = new URLSearchParams({ line: number });
    if (unwrapped()) query.set("wrap", "no");
    return "?" + query + "#L" + number;
  };

  // One row, as the page has it without scripts.
  const marked = (code, text) => {
    let done = 0;
    if (words) for (const match of text.matchAll(words)) {
      code.append(text.slice(done, match.index), make("mark", "", match[0]));
      done = match.index + match[0].length;
    }
    code.append(text.slice(done));
  };
  const rowOf = (position) => {
    const row = make("tr"), place = make("td", "no"), link = make("a", "", String(numbers[position])), cell = make("td", "text"), code = make("code"), role = roles.get(position);
    row.id = "L" + numbers[position];
    row.setAttribute("aria-rowindex", position + 1);
    link.href = address(numbers[position]);
    place.append(link);
    if (role) {
      const label = make("span", "role"), glyph = make("span", "", role[1]);
      row.className = role[0];
      glyph.setAttribute("aria-hidden", "true");
      label.append(glyph, " " + role[0]);
      cell.append(label, " ");
    }
    marked(code, texts[position]);
    cell.append(code);
    row.append(place, cell);
    if (position === here) tell(row);
    return row;
  };
  const tell = (row) => { row.classList.add("here"); row.setAttribute("aria-current", "true"); };
  const mark = (row) => {
    for (const one of table.querySelectorAll(".here")) { one.classList.remove("here"); one.removeAttribute("aria-current"); }
    if (row) tell(row);
  };

  // The whole log: blocks of lines near the window, and empty room for all others. Heights are computed until a block
  // has been drawn once; the line that one reads stays in its place when the room above turns out higher or lower.
  const above = make("div"), below = make("div");
  const blocks = new Map();
  let heights = new Float64Array(0), tops = new Float64Array(1), first = 0, last = -1, width = 0, reading = null;

  const sum = () => { for (let block = 0; block < heights.length; block++) tops[block + 1] = tops[block] + heights[block]; };
  const WIDE = /[\t\u1100-\uffdc]/g; // a tab, or a character of two columns such as Chinese ones
  const columns = (text) => { let count = text.length; for (const [one] of text.matchAll(WIDE)) count += one === "\t" ? 7 : 1; return count; };
  const estimate = () => {
    const row = rowOf(0), probe = row.querySelector("code");
    probe.replaceChildren("0".repeat(100));
    probe.className = "probe";
    const body = make("tbody");
    body.append(row);
    table.append(body);
    const cell = row.lastElementChild, style = getComputedStyle(cell);
    const fits = Math.max(1, Math.floor(100 * (cell.clientWidth - parseFloat(style.paddingLeft) - parseFloat(style.paddingRight)) / probe.getBoundingClientRect().width));
    const labelled = (position) => { const role = roles.get(position); return role ? role[0].length + 3 : 0; };
    const height = row.getBoundingClientRect().height, wraps = !unwrapped();
    body.remove();
    heights = new Float64Array(Math.ceil(texts.length / BLOCK));
    tops = new Float64Array(heights.length + 1);
    for (let position = 0; position < texts.length; position++) heights[Math.floor(position / BLOCK)] += height * (wraps ? Math.max(1, Math.ceil((columns(texts[position]) + labelled(position)) / fits)) : 1);
    sum();
  };
  const blockAt = (y) => {
    let low = 0, high = heights.length - 1;
    while (low < high) { const middle = (low + high + 1) >> 1; if (tops[middle] <= y) low = middle; else high = middle - 1; }
    return low;
  };
  // The first line below what stays at the top (on phones a part of the bar), if its block is drawn and stays.
  const edge = () => Math.max(0, (getComputedStyle(bar).position === "sticky" ? bar : at.parentElement).getBoundingClientRect().bottom);
  const topmost = (from, to) => {
    const limit = edge(), block = blockAt(limit - above.getBoundingClientRect().top), body = blocks.get(block);
    if (!body || block < from || block > to) return null;
    const rows = body.rows;
    let low = 0, high = rows.length - 1;
    while (low < high) { const middle = (low + high) >> 1; if (rows[middle].getBoundingClientRect().bottom > limit) high = middle; else low = middle + 1; }
    return { position: block * BLOCK + low, top: rows[low].getBoundingClientRect().top };
  };
  const drawn = (block) => {
    const body = make("tbody");
    for (let position = block * BLOCK; position < Math.min(texts.length, (block + 1) * BLOCK); position++) body.append(rowOf(position));
    return body;
  };
  const place = (from, to, again) => {
    const still = topmost(from, to), fresh = [];
    for (const [block, body] of blocks) if (again || block < from || block > to) { body.remove(); blocks.delete(block); }
    let next = null;
    for (let block = to; block >= from; block--) {
      let body = blocks.get(block);
      if (!body) { body = drawn(block); blocks.set(block, body); table.insertBefore(body, next); fresh.push(block); }
      next = body;
    }
    [first, last] = [from, to];
    const room = () => {
      sum();
      above.style.height = tops[from] + "px";
      below.style.height = tops[heights.length] - tops[to + 1] + "px";
    };
    room();
    // Mostly as computed: then this is the only time that the browser lays the page out.
    const real = fresh.map((block) => blocks.get(block).getBoundingClientRect().height);
    if (real.some((height, number) => Math.abs(height - heights[fresh[number]]) > 0.1)) {
      fresh.forEach((block, number) => { heights[block] = real[number]; });
      room();
    }
    if (!still) return;
    const moved = rowAt(still.position).getBoundingClientRect().top - still.top;
    if (Math.abs(moved) >= 1) window.scrollBy({ top: moved, behavior: "instant" });
  };
  const draw = () => {
    for (let round = 0; round < 4; round++) {
      const top = -above.getBoundingClientRect().top;
      const from = blockAt(top - MARGIN), to = blockAt(top + window.innerHeight + MARGIN);
      if (from === first && to === last) break;
      place(from, to, false);
    }
    reading = topmost(first, last) ?? reading;
  };
  const redraw = (still) => {
    estimate();
    place(first, last, true);
    if (still) bring(still.position, Math.max(still.top, edge())); // a long line may be much lower now
    draw();
  };
  // Jumps. The line comes to the upper third of the window.
  const rowAt = (position) => whole ? table.rows[position] : blocks.get(Math.floor(position / BLOCK))?.rows[position % BLOCK];
  const bring = (position, to) => {
    for (let round = 0; round < 5; round++) {
      const row = rowAt(position);
      const off = (row ? row.getBoundingClientRect().top : above.getBoundingClientRect().top + tops[Math.floor(position / BLOCK)]) - to;
      window.scrollBy({ top: off, behavior: "instant" });
      if (!whole) draw();
      if (row && Math.abs(off) < 1) break;
    }
  };
  const go = (position, how) => {
    if (position < 0 || position >= texts.length) return;
    here = position;
    bring(position, Math.round(Math.max(edge() + 24, window.innerHeight / 3)));
    const row = rowAt(position);
    mark(row);
    if (how === "push") history.pushState(null, "", address(numbers[position]));
    else if (how === "replace") history.replaceState(null, "", address(numbers[position]));
    tellLine();
    if (how === "push" && row) row.querySelector("a").focus({ preventScroll: true });
  };
  const tellLine = () => {
    let line = at.querySelector("strong"), button = at.querySelector("button");
    if (!line) { line = make("strong"); at.prepend(line); }
    line.textContent = "line " + figure(numbers[here]);
    if (!button && navigator.clipboard) {
      button = make("button", "small");
      button.type = "button";
      button.addEventListener("click", async () => { await navigator.clipboard.writeText(location.href); button.textContent = "Copied"; });
      line.after(" ", button);
    }
    if (button) button.textContent = "Copy link";
    said.textContent = ordinal();
  };

  // Where "Previous" and "Next" go: the found lines, or else the evidence.
  const stops = () => words ? found : [...roles.keys()].filter((position) => roles.get(position)[0] !== "context").sort((one, other) => one - other);
  const ordinal = () => {
    const all = stops(), number = all.indexOf(here), of = words ? "found line" : "evidence";
    if (number >= 0) return of + " " + figure(number + 1) + " of " + figure(all.length);
    if (!words) return "";
    return all.length ? figure(all.length) + (all.length === 1 ? " line contains this" : " lines contain this") : "no line contains this";
  };
  const step = (forward) => {
    const all = stops();
    if (!all.length) return;
    const from = here < 0 ? (forward ? -1 : texts.length) : here;
    const next = forward ? all.find((one) => one > from) : all.findLast((one) => one < from);
    go(next ?? (forward ? all[0] : all[all.length - 1]), "replace");
  };
  const search = () => {
    sought = find.value.trim();
    words = sought ? new RegExp(sought.replace(/[.*+?^${}()|[\]\\]/g, "\\$&"), "gi") : null;
    found = [];
    if (words) texts.forEach((one, position) => { words.lastIndex = 0; if (words.test(one)) found.push(position); });
    if (whole) [...table.rows].forEach((row, position) => { const code = row.querySelector("code"); if (words || code.firstElementChild) { code.replaceChildren(); marked(code, texts[position]); } });
    else place(first, last, true);
    controls.hidden = !stops().length && !words;
    buttons.forEach((button) => { button.disabled = !stops().length; });
    said.textContent = ordinal();
  };

  const controls = make("p", "steps"), said = make("span", "muted");
  const buttons = [["Previous", false], ["Next", true]].map(([name, forward]) => {
    const button = make("button", "small", name);
    button.type = "button";
    button.title = name + " found line, or evidence; press " + (forward ? "j" : "k");
    button.addEventListener("click", () => step(forward));
    return button;
  });
  said.setAttribute("role", "status");
  controls.append(...buttons.flatMap((button) => [button, " "]), said);

  form.addEventListener("submit", (event) => {
    if (!ready) return;
    event.preventDefault();
    log.querySelector(".found")?.remove();
    if (find.value.trim() !== sought) search();
    if (words) step(true);
  });
  toggle.addEventListener("click", (event) => {
    if (!ready || event.ctrlKey || event.metaKey || event.shiftKey) return;
    event.preventDefault();
    const still = whole ? null : topmost(first, last);
    box.classList.toggle("nowrap");
    [toggle.textContent, toggle.dataset.other] = [toggle.dataset.other, toggle.textContent];
    if (!whole) redraw(still);
    const query = new URLSearchParams(location.search);
    if (unwrapped()) query.set("wrap", "no"); else query.delete("wrap");
    history.replaceState(null, "", (query.size ? "?" + query : location.pathname) + location.hash);
  });
  // Links to lines of this log: of rows, evidence and search results.
  log.addEventListener("click", (event) => {
    const link = event.target.closest("a[href*='#L']");
    if (!link || event.ctrlKey || event.metaKey || event.shiftKey || !ready) return;
    event.preventDefault();
    go(positionOf(Number(link.hash.slice(2))), "push");
  });
  window.addEventListener("popstate", () => {
    const line = Number(new URLSearchParams(location.search).get("line"));
    if (line && ready) go(positionOf(line), "");
  });
  window.addEventListener("keydown", (event) => {
    if (event.defaultPrevented || event.ctrlKey || event.metaKey || event.altKey || !ready || !["j", "k"].includes(event.key)) return;
    if (event.target.closest("input, select, textarea, [contenteditable], dialog")) return;
    try { if (localStorage.getItem("faultline-keys-off") === "1") return; } catch { /* private window */ }
    event.preventDefault();
    step(event.key === "j");
  }, true);

  const begin = () => {
    ready = true;
    log.classList.add("scripted");
    toggle.before(controls);
    const line = new URLSearchParams(location.search).get("line");
    if (line !== null) here = positionOf(Number(line));
    if (here >= 0) mark(rowAt(here));
    search();
  };
  read();
  if (Number(log.dataset.total) <= texts.length) { begin(); return; }
  const turned = (answer) => {
    // The first row in the window keeps its place.
    const limit = Math.max(0, edge()), seen = [...table.rows].find((row) => row.getBoundingClientRect().bottom > limit);
    const number = seen ? Number(seen.id.slice(1)) : 0, top = seen ? seen.getBoundingClientRect().top : 0;
    receive(answer);
    whole = false;
    for (const pager of log.querySelectorAll(".pages")) pager.remove();
    table.replaceChildren();
    table.setAttribute("aria-rowcount", texts.length);
    box.prepend(above);
    box.append(below);
    estimate();
    begin();
    if (window.scrollY > 0 || number !== numbers[0]) bring(positionOf(number), top);
    draw();
    window.addEventListener("scroll", draw, { passive: true });
    window.addEventListener("keydown", (event) => {
      if (event.defaultPrevented || event.ctrlKey || event.metaKey || event.altKey || event.shiftKey || !["Home", "End"].includes(event.key)) return;
      if (event.target.closest("input, select, textarea, [contenteditable], dialog")) return;
      event.preventDefault(); // browsers scroll there slowly, and lines that are drawn on the way end that
      for (let round = 0; round < 3; round++) {
        window.scrollTo({ top: event.key === "End" ? document.documentElement.scrollHeight : 0, behavior: "instant" });
        draw();
      }
    });
    width = box.clientWidth;
    new ResizeObserver(() => { if (box.clientWidth !== width) { width = box.clientWidth; redraw(reading); } }).observe(box);
  };
  fetch(log.dataset.log).then((answer) => (answer.ok ? answer.json() : null)).then((answer) => { if (answer) turned(answer); }).catch(() => undefined); // the pages stay
})();
